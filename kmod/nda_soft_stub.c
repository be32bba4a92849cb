// SPDX-License-Identifier: GPL-2.0
/* nda_soft.ko where it cannot be built. */
#include "nda_stub.h"

MODULE_DESCRIPTION(
	"NPU Direct Async: the memory and doorbells of an NPU that is software (missing)");
