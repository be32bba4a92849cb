// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Takes the name of Soft-RoCE's verbs driver, to be opened over a real device.
#define EXTEND_DRIVER_NAME "rxe"
#define EXTEND_DRIVER_CAP 114
#include "tests/mock/extend_driver.h"
