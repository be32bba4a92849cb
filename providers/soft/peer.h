// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_SOFT_PEER_H
#define NDA_SOFT_PEER_H

#include "providers/soft/resource.h"
#include "providers/soft/shared.h"

#include <atomic>

namespace nda::soft {

// A process as seen from this one; this one itself is among them. Engines read it while
// the service thread changes it.
class Peer {
public:
	Peer(uint64_t process, const ControlSegment *control, Mapping mapping)
		: process_(process), control_(control), mapping_(std::move(mapping))
	{}

	uint64_t process() const { return process_; }
	const ControlSegment &control() const { return *control_; }
	// Whether it is no use to talk to: gone, or dropped. It does not come back.
	bool dead() const { return lost_.load(std::memory_order_acquire) || !alive(); }
	// Whether its threads run: one that was dropped may still be in a transfer.
	bool alive() const;

	struct View {
		uint8_t *base = nullptr;
		uint64_t size = 0;
	};
	// Where this process has mapped a segment; base is nullptr if it has not (yet).
	View segment(uint32_t id) const;
	// Wakes the thread of an engine if it sleeps. Whatever the number is.
	void wake(uint32_t engine) const;

private:
	friend class Fabric;
	struct Segment {
		std::atomic<uint32_t> id{0}; // 0: none; the rest is fixed meanwhile
		View view;
		Mapping mapping; // of a peer's memory
	};

	void add(uint32_t id, View view, Mapping mapping);

	const uint64_t process_;
	const ControlSegment *const control_;
	const Mapping mapping_; // empty for this process itself
	std::atomic<bool> lost_{false};
	Segment segments_[max_npus];
	// Under Fabric's mutex.
	bool complete_ = false; // all segments of the start have come
	int refused_ = 0;       // why it did not take this process's, an errno
	int failure_ = 0;       // why this process dropped it, an errno
};

} // namespace nda::soft

#endif
