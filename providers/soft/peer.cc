// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/peer.h"

#include <climits>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace nda::soft {

Peer::View Peer::segment(uint32_t id) const
{
	const Segment &s = segments_[segment_slot(id)];
	if (id == 0 || s.id.load(std::memory_order_seq_cst) != id)
		return {};
	return s.view;
}

// The first word of a mutex of glibc holds the owner's thread number; the kernel clears it
// when the owner of a robust one dies. Reading it is all a peer does: it needs no right to
// write, and no peer can come to own the mutex.
bool Peer::alive() const
{
	if (!mapping_)
		return true; // this process
	const auto *word = reinterpret_cast<const uint32_t *>(&control_->life);
	return (__atomic_load_n(word, __ATOMIC_ACQUIRE) & FUTEX_TID_MASK) != 0;
}

// The mapping is read-only, which is enough to wake who waits.
void Peer::wake(uint32_t engine) const
{
	if (engine >= max_npus)
		return;
	const std::atomic<uint32_t> &asleep = control_->engines[engine].asleep;
	if (asleep.load(std::memory_order_seq_cst))
		syscall(SYS_futex, &asleep, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Peer::add(uint32_t id, View view, Mapping mapping)
{
	Segment &s = segments_[segment_slot(id)];
	s.view = view;
	s.mapping = std::move(mapping);
	s.id.store(id, std::memory_order_release);
}

} // namespace nda::soft
