// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Needs a function that nobody has: it cannot be loaded.
#define EXTEND_DRIVER_NAME "extend_lacking"
#define EXTEND_DRIVER_CAP 4
#include "tests/mock/extend_driver.h"

extern "C" int extend_function_that_nobody_has(int value);

extern "C" __attribute__((visibility("default"))) int extend_lacking_use(int value)
{
	return extend_function_that_nobody_has(value);
}
