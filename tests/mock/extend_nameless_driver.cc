// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Registers what no library can take: a driver that opens nothing.
#include "ibv_extend.h"

static const verbs_device_extend_ops driver = {"extend_nameless", nullptr, nullptr};
PROVIDER_EXTEND_DRIVER(driver)
