// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_PERF_BARRIER_H
#define NDA_PERF_BARRIER_H

#include "lib/tools/perf/session.h"

namespace nda::perf {

// Measures barrier_all and sync_all; PE 0 sends the rows.
Outcome barrier(Session &session);

} // namespace nda::perf

#endif
