// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_PERF_COPY_H
#define NDA_PERF_COPY_H

#include <cstdint>

#include "lib/tools/perf/session.h"

namespace nda::perf {

// Moves every file of the options from PE 0's memory to the others'; PE 0 sends the rows.
Outcome copy(Session &session, uint64_t piece_bytes);

} // namespace nda::perf

#endif
