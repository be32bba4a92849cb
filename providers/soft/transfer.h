// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What requests do to memory, on host addresses that were checked before. Memory is other
// processes' too: what has to be atomic is so for everybody, by the CPU's own instructions.
#ifndef NDA_SOFT_TRANSFER_H
#define NDA_SOFT_TRANSFER_H

#include "providers/soft/queue_format.h"

namespace nda::soft {

// Carries out a compare_swap or fetch_add on the aligned target and puts what was there
// before, of a.size bytes, at result.
void execute_atomic(Operation op, const Atomic &a, void *target, void *result);

// Bytes of an element.
uint32_t element_size(Reduce reduce);
// Whole elements, of which the target's are aligned.
void reduce_into(Reduce reduce, void *target, const void *from, uint64_t size);

} // namespace nda::soft

#endif
