/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The mutable line of an 1825 queue as a function of its state: used by the host that fills
 * or takes back a queue, and by the slow path of the data plane. Pure functions on values.
 */
#ifndef NDA_AIV_HNS1825_STATE_H
#define NDA_AIV_HNS1825_STATE_H

#include <stdint.h>

#include <nda/aiv/queue.h>
#include <nda/hw/hns1825.h>
#include <nda/table.h>

namespace nda::aiv::hns1825 {

namespace format = nda::hw::hns1825;

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
	uint64_t next_word0;
	uint64_t doorbell;
	uint32_t limit;
	uint64_t next_task;
	uint8_t next_marker;
};

/* One slot of the ring stays free, so that the marker after the newest WQE never hits one
 * that the NIC has not read. An outstanding WQE may need a place in the CQ, too. */
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
 * is credit, and not over the end of an aligned block of min(depth, 256), where the owner
 * bit or the doorbell changes. */
NDA_DEV uint32_t window_limit(
	const geometry &r, uint32_t head, uint32_t tail, uint32_t signalled)
{
	uint32_t outstanding = head - tail;
	uint32_t block = min_u32(r.depth, 256) - 1;
	uint32_t left = block - (head & block);

	left = min_u32(left, outstanding >= r.capacity ? 0 : r.capacity - outstanding);
	if (r.signal_every != 1)
		left = min_u32(left, unsignalled_left(r.signal_every, head, signalled));
	return head + left;
}

NDA_DEV window make_window(
	const geometry &r, uint32_t head, uint32_t tail, uint32_t signalled)
{
	bool every = r.signal_every == 1;
	window w;

	w.limit = window_limit(r, head, tail, signalled);
	w.next_slot = slot_address(r, head);
	w.next_word0 = format::control_word(head, r.depth, every);
	w.doorbell = format::doorbell_value(r.doorbell_template, head);
	w.next_task = format::task_bits(format::op_write, every, false);
	w.next_marker = format::invalid_marker(head + 1, r.depth);
	return w;
}

NDA_DEV geometry geometry_of(const nda_queue &q)
{
	return make_geometry(
		q.sq_base, q.doorbell_template, q.sq_depth, q.cq_depth, q.signal_every);
}

/* Works the derived members of @s out anew from the others. */
NDA_DEV void derive_window(const nda_queue &q, nda_queue_state *s)
{
	window w = make_window(geometry_of(q), s->head, s->tail, s->signalled);

	s->limit = window_shut(*s) ? s->head : w.limit;
	s->next_slot = w.next_slot;
	s->next_word0 = w.next_word0;
	s->doorbell = w.doorbell;
	s->next_task = w.next_task;
	s->next_marker = w.next_marker;
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
	nda_queue_state s = {};

	s.head = head;
	s.tail = tail;
	s.cq_ci = ci;
	s.rung = static_cast<uint16_t>(head);
	s.signalled = head;
	derive_window(q, &s);
	return s;
}

/* Takes a lent queue back from its view, from the indices the view left. False, and nothing
 * changed, if it was not lent. */
NDA_DEV bool take_back(const nda_queue &q, nda_queue_state *s)
{
	if ((s->flags & NDA_QUEUE_IN_VIEW) == 0)
		return false;
	*s = derive_state(q, s->head, s->tail, s->cq_ci);
	return true;
}

/* Whether the immutable lines describe a queue that the data plane can work on. */
NDA_DEV bool queue_usable(const nda_queue &q)
{
	return q.valid != 0 && power_of_two(q.sq_depth) && power_of_two(q.cq_depth) &&
		q.sq_depth >= format::min_depth && q.sq_depth <= format::max_depth &&
		q.cq_depth >= format::min_depth && q.signal_every >= 1 &&
		q.signal_every <= q.sq_depth / 2 && q.signal_every <= q.cq_depth / 2 &&
		q.cqe_stride >= format::cqe_bytes && q.cqe_stride % 8 == 0 &&
		q.sq_base % format::wqe_bytes == 0 && q.cq_base % 8 == 0 &&
		q.sq_record % 4 == 0 && q.cq_record % 4 == 0 && q.sq_doorbell % 8 == 0 &&
		format::lkey_fits(q.lkey) &&
		(q.signal_every == 1 || (q.scratch_local != 0 && q.scratch_remote != 0));
}

} // namespace nda::aiv::hns1825

#endif
