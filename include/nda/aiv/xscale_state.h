/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The mutable line of an XSCALE queue as a function of its state: used by the host that
 * fills a queue, and by the slow path of the data plane. Pure functions on values.
 */
#ifndef NDA_AIV_XSCALE_STATE_H
#define NDA_AIV_XSCALE_STATE_H

#include <stdint.h>

#include <nda/aiv/queue.h>
#include <nda/hw/xscale.h>
#include <nda/table.h>

namespace nda::aiv::xscale {

namespace format = nda::hw::xscale;

/* What of a queue's immutable lines decides about posting. */
struct geometry {
	uint64_t base;
	uint64_t doorbell_template;
	uint32_t depth;
	uint32_t capacity;     /* most outstanding WQEs */
	uint32_t signal_every; /* 1: every WQE has a completion */
};

/* What follows from the state: those members of nda_queue_state. */
struct window {
	uint64_t next_slot;
	uint64_t next_word0; /* format::id_word() of head */
	uint64_t doorbell;   /* what rings for the WQE at head */
	uint32_t limit;
};

/* One slot of the ring stays free, as in the Linux driver. An outstanding WQE may need a
 * place in the CQ, too. */
NDA_DEV geometry make_geometry(uint64_t base, uint64_t doorbell_template, uint32_t sq_depth,
	uint32_t cq_depth, uint32_t signal_every)
{
	geometry r;

	r.base = base;
	r.doorbell_template = doorbell_template;
	r.depth = sq_depth;
	r.capacity = min_u32(sq_depth, cq_depth) - 1;
	/* A full ring must hold a WQE whose completion frees others. */
	r.signal_every = signal_every > r.capacity ? r.capacity : signal_every;
	if (r.signal_every == 0)
		r.signal_every = 1;
	return r;
}

NDA_DEV uint64_t slot_address(const geometry &r, uint32_t index)
{
	return r.base + uint64_t{index & (r.depth - 1)} * format::wqe_bytes;
}

/* How far the window from @head on goes, while nothing but posting happens: as far as there
 * is credit, and not over the end of the ring, where the slots start anew. The doorbell's
 * index wraps only there, for a depth divides its range. */
NDA_DEV uint32_t window_limit(
	const geometry &r, uint32_t head, uint32_t tail, uint32_t signalled)
{
	uint32_t outstanding = head - tail;
	uint32_t last = r.depth - 1;
	uint32_t left = last - (head & last);

	left = min_u32(left, outstanding >= r.capacity ? 0 : r.capacity - outstanding);
	if (r.signal_every != 1)
		left = min_u32(left, unsignalled_left(r.signal_every, head, signalled));
	return head + left;
}

NDA_DEV window make_window(
	const geometry &r, uint32_t head, uint32_t tail, uint32_t signalled)
{
	window w;

	w.limit = window_limit(r, head, tail, signalled);
	w.next_slot = slot_address(r, head);
	w.next_word0 = format::id_word(head, r.signal_every == 1, 0);
	w.doorbell = format::doorbell_value(r.doorbell_template, head + 1);
	return w;
}

/*
 * The mutable line of @q, of which only the immutable members are read, for these indices:
 * head of the next WQE, tail of the oldest that is not known to be done, ci of the next
 * CQE. Every outstanding WQE is taken to have a completion. No error, not lent, no flags.
 * (0, 0, 0) initialises.
 */
NDA_DEV nda_queue_state derive_state(
	const nda_queue &q, uint32_t head, uint32_t tail, uint32_t ci)
{
	window w = make_window(make_geometry(q.sq_base, q.doorbell_template, q.sq_depth,
				       q.cq_depth, q.signal_every),
		head, tail, head);
	nda_queue_state s = {};

	s.head = head;
	s.tail = tail;
	s.cq_ci = ci;
	s.rung = static_cast<uint16_t>(head);
	s.signalled = head;
	s.limit = w.limit;
	s.next_slot = w.next_slot;
	s.next_word0 = w.next_word0;
	s.doorbell = w.doorbell;
	return s;
}

/* Whether the immutable lines describe a queue that the data plane can work on. Numbers
 * that do not fit into a doorbell would ring for another queue. */
NDA_DEV bool queue_usable(const nda_queue &q)
{
	return q.valid != 0 && power_of_two(q.sq_depth) && power_of_two(q.cq_depth) &&
		q.sq_depth >= format::min_depth && q.sq_depth <= format::max_depth &&
		q.cq_depth >= format::min_depth && q.qpn <= format::max_number &&
		q.cqn <= format::max_number && q.signal_every >= 1 &&
		q.signal_every <= q.sq_depth / 2 && q.signal_every <= q.cq_depth / 2 &&
		q.cqe_stride >= format::cqe_bytes && q.cqe_stride % 8 == 0 &&
		q.sq_base != 0 && q.sq_base % NDA_CACHE_LINE == 0 && q.cq_base != 0 &&
		q.cq_base % 8 == 0 && q.sq_doorbell != 0 && q.sq_doorbell % 8 == 0 &&
		q.xscale.cq_doorbell != 0 && q.xscale.cq_doorbell % 8 == 0 &&
		q.xscale.fence_mode >= 1 && q.xscale.fence_mode <= 3 &&
		(q.signal_every == 1 || (q.scratch_local != 0 && q.scratch_remote != 0));
}

} // namespace nda::aiv::xscale

#endif
