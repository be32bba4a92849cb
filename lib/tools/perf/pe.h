// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_PERF_PE_H
#define NDA_PERF_PE_H

#include <nda/bootstrap.h>

#include "lib/tools/perf/layout.h"
#include "lib/tools/perf/options.h"
#include "lib/tools/perf/session.h"

namespace nda::perf {

struct PeEnd {
	int exit_status;
	bool broken; // only the end of the process can clear away what is left
};

// Everything one PE does.
PeEnd run_pe(const Options &options, const MemoryPlan &plan, const nda_bootstrap &bootstrap,
	const Send &send);

} // namespace nda::perf

#endif
