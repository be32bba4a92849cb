// SPDX-License-Identifier: GPL-2.0
/* nda_ascend.ko where it cannot be built. */
#include "nda_stub.h"

MODULE_DESCRIPTION("NPU Direct Async: NPU memory by the Ascend driver (missing)");
