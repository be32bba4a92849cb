// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Prints, for a test that runs it with raised privilege, whether it has that and what of
// the environment the search uses.
#include "lib/ibv_extend/search.h"

#include <cstdio>
#include <sys/auxv.h>
#include <unistd.h>

int main()
{
	nda::extend::SearchReport report;
	auto entries = nda::extend::collect_entries({"/nonexistent", {}}, report);
	printf("%s entries %zu: %s\n", getauxval(AT_SECURE) ? "raised" : "plain",
		entries.size(), report.front().message().c_str());
	fflush(stdout);
	_exit(0); // a leak check does not work with raised privilege
}
