// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A shared object that is no driver: it registers nothing.
extern "C" __attribute__((visibility("default"))) int extend_silent_value()
{
	return 1;
}
