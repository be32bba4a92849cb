// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Phases of a measurement: a kernel on the cores of all PEs, and what came of it. All
// functions are called by every PE.
#ifndef NDA_PERF_PHASE_H
#define NDA_PERF_PHASE_H

#include <cstdint>
#include <string>
#include <vector>

#include "lib/tools/perf/session.h"

namespace nda::perf {

// What a PE tells the others after it ran a kernel.
struct Tally {
	Outcome outcome = Outcome::ok;
	uint64_t messages = 0;
	uint64_t least = 0;             // messages of the core that has the fewest
	uint64_t start_ns = UINT64_MAX; // of the first of its cores, after the common base
	uint64_t end_ns = 0;            // of the last one
};

// What all PEs did in one kernel, or in several.
struct Totals {
	uint64_t messages = 0;
	uint64_t elapsed_ns = 0;
	void add(const std::vector<Tally> &tallies);
	double messages_per_s() const
	{
		return elapsed_ns ? double(messages) * 1e9 / double(elapsed_ns) : 0;
	}
};

// Runs a kernel on all PEs that take part, all cores beginning at the same time.
// pace: of the kernel's work. tallies: of every PE.
Outcome run_phase(Session &session, const Session::Launch &launch, Pace &pace,
	bool takes_part, std::vector<Tally> *tallies);

// Adds the latencies of all cores of all PEs.
Outcome add_latencies(Session &session, const Results &results, Histogram *latencies);

// Reports what is wrong at this PE, "" if nothing is, unless something was reported before;
// clears *good if anything is at any PE.
Outcome note(
	Session &session, const std::string &object, const std::string &wrong, bool *good);

// What rows of every measurement have in common.
Row new_row(Session &session);

} // namespace nda::perf

#endif
