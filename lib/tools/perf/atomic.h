// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_PERF_ATOMIC_H
#define NDA_PERF_ATOMIC_H

#include "lib/tools/perf/session.h"

namespace nda::perf {

// One PE's part of counting in the other PEs' memories: a row for each operation.
Outcome atomic(Session &session);

} // namespace nda::perf

#endif
