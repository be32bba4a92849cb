// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Apart, so that a copy of the library made for tests can look elsewhere.
#include "lib/ibv_extend/search.h"

namespace nda::extend {

SearchPaths system_paths()
{
	return {"/etc/libibverbs_extend.d",
		{"/usr/local/lib64", "/usr/lib64", "/usr/local/lib", "/usr/lib"}};
}

} // namespace nda::extend
