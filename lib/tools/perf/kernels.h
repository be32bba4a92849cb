// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The kernels of nda-perf. Each core has its own queues, its own slots for messages in the
// heap, and its own result.
#ifndef NDA_PERF_KERNELS_H
#define NDA_PERF_KERNELS_H

#include <cstdint>
#include <vector>

#include <nda/core.h>

#include "lib/tools/perf/histogram.h"

namespace nda::perf {

struct alignas(64) CoreResult {
	int status = 0; // enum nda_status; the rest counts what was done before
	uint32_t core = 0;
	uint32_t peer = 0; // the failed message's
	uint64_t messages = 0;
	// By the clock of the machine, which all PEs have in common.
	uint64_t start_ns = 0;
	uint64_t end_ns = 0;
	Histogram latency; // of a message and its quiet, or of a window of a copy
};
using Results = std::vector<CoreResult>; // one per core

// When the cores of a measurement begin, and when it is enough.
struct Pace {
	uint64_t start_ns = 0; // waits for that moment before the first message
	uint64_t messages = 0; // at most, 0: no limit
	uint64_t time_us = 0;  // at most, 0: no limit
};

// The argument of the kernels that measure put and get. One of the limits is set.
struct Work : Pace {
	uint64_t table = 0;
	uint32_t peer = 0;
	bool get = false;
	// Message i of core c goes from source + offset to target + offset, with
	// offset = (c * slots + i % slots) * stride.
	uint64_t source = 0;
	uint64_t target = 0;
	uint64_t size = 0;
	uint64_t stride = 0;
	uint64_t slots = 0;
	uint64_t window = 0;
	uint64_t batch = 0;
	Results results;
};

uint64_t now_ns();

void memcpy_kernel(const nda_core *core, void *work); // the same bytes by memcpy()

// The argument of the kernel that copies: one piece of a file to every other PE.
struct CopyWork {
	uint64_t table = 0;
	uint64_t address = 0; // in the heap
	uint64_t size = 0;
	uint64_t chunk = 0;
	uint64_t window = 0;
	uint64_t batch = 0;
	Results results;
};

// The argument of the kernels that count up the counters of all other PEs, these taking
// turns.
struct AtomicWork : Pace {
	uint64_t table = 0;
	uint64_t counter = 0; // in the heap
	uint64_t first = 0;   // what it holds at the beginning
	// The value that message i of core c found goes to formers + (c * slots + i %
	// slots) *
	// 8. For a loop of compare_swap a message is what made it come to its end.
	uint64_t formers = 0;
	uint64_t slots = 0;
	uint64_t window = 0;
	uint64_t changes_limit = 0; // of a core, of all counters together; 0: no limit
	// How often core c changed the counter of a PE: changes[c * PEs + PE].
	std::vector<uint64_t> changes;
	Results results;
};

// The kernels that drive a NIC. Those of atomics are nullptr where its queue format has no
// such operation.
struct Kernels {
	nda_kernel_fn latency; // each message is waited for
	nda_kernel_fn rate;    // each window is waited for
	nda_kernel_fn copy;
	nda_kernel_fn fetch_add_latency;
	nda_kernel_fn fetch_add_rate;
	nda_kernel_fn
		compare_swap; // one at a time, for each needs what the one before found
};
// Those of a queue format, enum nda_format; nullptr: there are none.
const Kernels *kernels_of(uint32_t format);

} // namespace nda::perf

#endif
