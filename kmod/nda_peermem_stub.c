// SPDX-License-Identifier: GPL-2.0
/* nda_peermem.ko where it cannot be built. */
#include "nda_stub.h"

MODULE_DESCRIPTION(
	"NPU Direct Async: NPU memory by the RDMA core's peer-memory interface (missing)");
