// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Not linked to the library that it registers with.
#define EXTEND_DRIVER_NAME "extend_unlinked"
#define EXTEND_DRIVER_CAP 1
#include "tests/mock/extend_driver.h"
