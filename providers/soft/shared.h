// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The control segment of a process: what NIC models of other processes must know of it.
// Only its owner writes to it; peers map it read-only and trust nothing in it: a number
// read here is checked against what the reader itself knows before it becomes an address.
//
// An engine marks the time in which it relies on an entry by its pass counter, odd
// meanwhile, and looks at the entry after that. An owner that takes an entry back first
// marks the entry, then waits for the odd counters to change (Fabric::quiesce). Both sides
// are sequentially consistent, so one of them sees the other.
#ifndef NDA_SOFT_SHARED_H
#define NDA_SOFT_SHARED_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <pthread.h>

namespace nda::soft {

// Keys have 30 bits, as the narrowest field of a WQE: the low 16 an index, the others a
// generation, so that a key of an earlier region names nothing.
constexpr uint32_t mr_count = 1u << 16;
constexpr uint32_t mr_index(uint32_t key)
{
	return key & (mr_count - 1);
}
constexpr uint32_t generation_mask = 0x3fff;

constexpr uint32_t qp_count = 1u << 16; // QPNs 1 to qp_count - 1, unique in the process
constexpr uint32_t max_npus = 64;       // of a process

// A segment is the memory of one NPU. Its number: a generation and the NPU's slot.
constexpr uint32_t segment_slot(uint32_t id)
{
	return id % max_npus;
}

struct SharedMr {
	std::atomic<uint32_t> key; // 0: none
	std::atomic<uint32_t> access;
	std::atomic<uint32_t> pd;
	std::atomic<uint32_t> segment;
	std::atomic<uint64_t> address; // the owner's NPU address
	std::atomic<uint64_t> offset;  // in the segment
	std::atomic<uint64_t> size;
	uint64_t reserved[3];
};
static_assert(sizeof(SharedMr) == 64);

enum class QpLife : uint32_t {
	closed = 0,    // no QP, or not yet ready to receive
	receiving = 1, // RTR, RTS
	error = 2,
};

struct SharedQp {
	std::atomic<QpLife> life;
	std::atomic<uint32_t> peer_qpn;
	std::atomic<uint64_t> gid[2];
	std::atomic<uint64_t> peer_gid[2];
	std::atomic<uint32_t> pd;
	std::atomic<uint32_t> access;
	std::atomic<uint32_t> reads;    // READs it answers at a time; 0: none
	std::atomic<uint32_t> receives; // whether it has a receive queue
	std::atomic<uint64_t> rnr_ns;   // how long a peer waits for a receive to come

	// Messages that need a receive go from word to word, as no process writes to
	// another's: one at a time is offered here, and taken by the peer's engine, which
	// says so in its own entry. Numbers go on through all lives of the entry.
	alignas(64) std::atomic<uint64_t> offered; // the number of this QP's last one
	std::atomic<uint32_t> immediate;
	std::atomic<uint32_t> bytes;
	std::atomic<uint64_t> taken;   // the number of the peer's last one
	std::atomic<uint64_t> refused; // of that for which there was no receive
	std::atomic<uint32_t> engine;  // the one that takes
	uint32_t reserved0;
	uint64_t reserved[3];
};
static_assert(sizeof(SharedQp) == 128);

struct SharedEngine {
	alignas(64) std::atomic<uint64_t> pass; // odd while the engine relies on entries
	// Not 0 while its thread sleeps in a futex on this word, after which it looks at
	// what peers offer. Who offers wakes it, and goes on to do so until what it offered
	// was taken: the thread may have been about to sleep.
	alignas(64) std::atomic<uint32_t> asleep;
};

constexpr uint64_t control_magic = 0x6c74632d61646e03; // "\3nda-ctl"

struct ControlSegment {
	uint64_t magic;
	uint64_t process;
	// Robust, locked by a thread that lives as long as the process: the kernel clears
	// the owner in its first word as that thread dies, before it tears down memory.
	alignas(64) pthread_mutex_t life;
	SharedEngine engines[max_npus];
	SharedMr mrs[mr_count];
	SharedQp qps[qp_count];
};

} // namespace nda::soft

#endif
