// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Ends the process that loads it.
#include <cstdlib>

__attribute__((constructor)) static void end()
{
	abort();
}
