// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// How much memory a job needs, and whether the machine has it.
#ifndef NDA_PERF_MEMORY_H
#define NDA_PERF_MEMORY_H

#include <cstdint>
#include <string>

#include "lib/tools/perf/layout.h"
#include "lib/tools/perf/options.h"

namespace nda::perf {

// The rings of one queue and what belongs to it, about, but not less.
// format: enum nda_format
uint64_t queue_bytes(uint32_t format, uint32_t depth);

// The NPU memory of a PE: heap, queues and tables.
uint64_t npu_bytes(const Options &options, uint32_t format, uint64_t heap_bytes);

// "" or why the PEs of this machine must not be started: more than is available. 0: that is
// not known.
std::string check_memory(const Options &options, uint32_t format, const MemoryPlan &plan,
	uint64_t available_bytes);

// MemAvailable of /proc/meminfo, or 0.
uint64_t available_bytes();

} // namespace nda::perf

#endif
