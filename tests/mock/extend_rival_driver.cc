// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Wants the name that the unlinked driver has.
#define EXTEND_DRIVER_NAME "extend_unlinked"
#define EXTEND_DRIVER_CAP 2
#include "tests/mock/extend_driver.h"
