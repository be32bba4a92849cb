// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_PERF_SIGNAL_H
#define NDA_PERF_SIGNAL_H

#include <cstdint>

#include "lib/tools/perf/session.h"

namespace nda::perf {

// Measures put_signal with every size of the options; PE 0 sends the rows.
Outcome signal(Session &session, uint64_t area_bytes);

} // namespace nda::perf

#endif
