// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// How a NIC comes to reach memory: what is asked for, and what came of it.
#ifndef NDA_LIB_REGISTRATION_H
#define NDA_LIB_REGISTRATION_H

#include <cstdint>
#include <infiniband/verbs.h>

#include <nda/nic.h>

#include "lib/nda/kernel.h"

namespace nda {

struct MemoryRange {
	uint64_t addr; // the NPU's
	uint64_t size;
	uint64_t host; // not 0: it is host memory, here, and mapped to the NPU at addr
	const nda_mr_info *tried; // then, not nullptr: what came of other ways before
};

struct Registration {
	ibv_mr *mr = nullptr;
	KernelObject memory; // what /dev/nda has of it
	nda_mr_info info = {};
};

// The way that the environment asks for; enum nda_mr_way. -EINVAL: it names none.
int mr_way_of_environment(uint32_t &way);
// "a dma-buf".
const char *mr_way_text(uint32_t way);
// What came of this thread's last registration.
nda_mr_info &mr_tried();

} // namespace nda

#endif
