// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The kernels of nda-perf. Each core has its own queues, its own slots for messages in the
// heap, and its own result.
#ifndef NDA_PERF_KERNELS_H
#define NDA_PERF_KERNELS_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nda/core.h>

#include "lib/tools/perf/histogram.h"
#include "lib/tools/perf/options.h"

namespace nda::perf {

constexpr uint32_t any_peer = UINT32_MAX;

struct alignas(64) CoreResult {
	int status = 0; // enum nda_status; the rest counts what was done before
	uint32_t core = 0;
	uint32_t peer = 0; // the failed message's, or any_peer
	uint64_t messages = 0;
	// By the clock of the machine, which all PEs have in common.
	uint64_t start_ns = 0;
	uint64_t end_ns = 0;
	// Of a message and its quiet, a window of a copy, half of a ping-pong's round, a
	// barrier.
	Histogram latency;
};
using Results = std::vector<CoreResult>; // one per core

// When the cores of a measurement begin, and when it is enough.
struct Pace {
	uint64_t start_ns = 0; // waits for that moment before the first message
	uint64_t messages = 0; // at most, 0: no limit
	uint64_t time_us = 0;  // at most, 0: no limit
};

// Where messages of one size lie. Message i of core c goes from source + offset to target +
// offset, with offset = (c * slots + i % slots) * stride.
struct Slots {
	uint64_t source = 0;
	uint64_t target = 0;
	uint64_t size = 0;
	uint64_t stride = 0;
	uint64_t slots = 0;
};

// The argument of the kernels that measure put, get, and put_signal one way. One of the
// limits is set.
struct Work : Pace, Slots {
	uint64_t table = 0;
	uint32_t peer = 0;
	bool get = false;
	uint64_t window = 0;
	uint64_t batch = 0;
	uint32_t queues = 1; // of a core, taking turns
	// Not 0: message i of core c is a put_signal of i + 1 to the word at signals + (c *
	// slots + i % slots) * signal_stride.
	uint64_t signals = 0;
	Results results;
};
constexpr uint64_t signal_stride = 64;

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

// The argument of the kernels that change the counters of all other PEs, these taking
// turns.
struct AtomicWork : Pace {
	uint64_t table = 0;
	Atomic operation = Atomic::fetch_add;
	uint32_t bytes = 8;
	uint64_t counter = 0; // in the heap
	// The value that message i of core c found goes to formers + (c * slots + i %
	// slots) * 8. For a loop of compare_swap a message is what made it come to its end.
	uint64_t formers = 0;
	uint64_t slots = 0;
	uint64_t window = 0;
	uint64_t changes_limit = 0; // of a core, of all counters together; 0: no limit
	// What core c did to the counter of a PE, as one operand: folded[c * PEs + PE].
	std::vector<uint64_t> folded;
	std::vector<uint64_t> changes; // of each core
	Results results;
};

// The argument of the kernel in which two PEs send each other bursts of put_signals, in
// turn. The one that begins also says which round is the last.
struct PingPongWork : Pace, Slots {
	uint64_t table = 0;
	uint32_t peer = 0;
	bool begins = false;
	uint64_t burst = 0;   // messages, at most slots
	uint64_t signals = 0; // as in Work; all 0 at the beginning
	bool verify = false;  // each message has data of its own, checked before the answer
	std::vector<std::string> wrong; // of each core: what was found, or ""
	Results results;
};

// The argument of the kernel of barriers: so many as `messages` says, by one core.
struct BarrierWork : Pace {
	uint64_t table = 0;
	Barrier operation = Barrier::barrier_all;
	// Verify: two sets of a word for each PE, where that PE leaves the number of every
	// other barrier; and behind them two words that they come from. 0: only measure.
	uint64_t letters = 0;
	std::string wrong; // what was found, or ""
	Results results;
};
constexpr uint64_t letters_bytes(uint32_t pes)
{
	return (2 * uint64_t(pes) + 2) * 8;
}

// How an engine does an atomic.
enum class Way {
	none,
	queued, // several may be under way
	waited  // one at a time: each needs what the one before found
};

// The kernels that drive a NIC.
struct Kernels {
	nda_kernel_fn latency; // each message is waited for
	nda_kernel_fn rate;    // each window is waited for
	nda_kernel_fn copy;
	nda_kernel_fn ping_pong;
	nda_kernel_fn barrier;
	nda_kernel_fn atomic_latency;
	nda_kernel_fn atomic_rate;  // of what is queued
	nda_kernel_fn compare_swap; // in a loop, until it has changed the counter
	Way (*way_of)(Atomic operation, uint32_t bytes);
};
// Those of a queue format, enum nda_format, if there are any.
std::optional<Kernels> kernels_of(uint32_t format);

} // namespace nda::perf

#endif
