// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_RXE_MEMORY_H
#define NDA_RXE_MEMORY_H

#include "ibv_extend.h"

namespace nda::rxe {

// Soft-RoCE's rings are host memory, and its WQEs hold host addresses: only an NPU that has
// the host's address space can drive it. 0 if memory that ops allocates and sets is the
// host's memory at the same address; -EINVAL: ops lacks what that takes; -EOPNOTSUPP: it is
// not; or another negative errno. what: for the text of an error.
int require_shared_memory(const ibv_extend_ops *ops, const char *what);

} // namespace nda::rxe

#endif
