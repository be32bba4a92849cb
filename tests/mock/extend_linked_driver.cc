// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Linked to the library, as most drivers are.
#define EXTEND_DRIVER_NAME "extend_linked"
#define EXTEND_DRIVER_CAP 3
#include "tests/mock/extend_driver.h"
