// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Paths of the copy of the library that tests use: what the environment says, at each
// search.
#include "lib/ibv_extend/search.h"

#include <cstdlib>

namespace nda::extend {

SearchPaths system_paths()
{
	const char *config = getenv("EXTEND_TEST_CONFIG");
	const char *drivers = getenv("EXTEND_TEST_DRIVERS");
	SearchPaths paths = {config ? config : "/nonexistent/extend", {}};
	if (drivers)
		paths.driver_directories.push_back(drivers);
	return paths;
}

} // namespace nda::extend
