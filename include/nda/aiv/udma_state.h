/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The mutable line of a UDMA queue as a function of its state: used by the host that fills
 * a queue, and by the slow path of the data plane. Pure functions on values.
 *
 * Indices count the ring's blocks of 64 bytes. How many completions are still to come does
 * not follow from them, as a request takes one to four blocks: state.udma.cqes says it, as
 * the consumer index after the last of them less the index after the last request that
 * asked for one. A request of one block with a completion leaves that difference as it is.
 */
#ifndef NDA_AIV_UDMA_STATE_H
#define NDA_AIV_UDMA_STATE_H

#include <stdint.h>

#include <nda/aiv/queue.h>
#include <nda/hw/udma.h>
#include <nda/table.h>

namespace nda::aiv::udma {

namespace format = nda::hw::udma;

/* The parameters of a queue that no source settles, with what is right for all of them:
 * - completions keep the order of posting, so that one stands for all before it;
 * - in general relaxed, which a later strong request does not overtake;
 * - strong and fenced where something must come after what was posted before. */
constexpr uint8_t default_order = format::place_relaxed | format::order_completions;
constexpr uint8_t default_strong_order =
	format::place_strong | format::order_completions | format::order_fence;
constexpr uint32_t default_ci_mask = format::ci_mask_22;

/* What of a queue's immutable lines decides about posting. */
struct geometry {
	uint64_t base;
	uint64_t word0;  /* of a WRITE in the lap whose owner bit is 0, relaxed */
	uint64_t strong; /* the bits to change for a strong one */
	uint32_t depth;  /* blocks */
	uint32_t capacity;
	uint32_t signal_every; /* blocks; 1: every request has a completion */
	bool owner;
};

/* What follows from the state: those members of nda_queue_state. */
struct window {
	uint64_t next_slot;
	uint64_t next_word0;
	uint32_t limit;
};

/* Each outstanding block may need a place in the CQ. */
NDA_DEV constexpr uint32_t capacity_of(uint32_t sq_depth, uint32_t cq_depth)
{
	return min_u32(sq_depth, cq_depth);
}

/* @word0: template_word() of the peer. */
NDA_DEV geometry make_geometry(uint64_t base, uint64_t word0, const nda_queue_udma &u,
	uint32_t sq_depth, uint32_t cq_depth, uint32_t signal_every)
{
	geometry r;

	r.base = base;
	r.word0 = word0 | format::opcode_bits(format::op_write) |
		format::order_bits(u.order) |
		(signal_every == 1 ? format::word0_completion : 0);
	r.strong = format::order_bits(u.order ^ u.strong_order);
	r.depth = sq_depth;
	r.capacity = capacity_of(sq_depth, cq_depth);
	r.signal_every = signal_every;
	r.owner = u.owner != 0;
	return r;
}

NDA_DEV uint64_t slot_address(const geometry &r, uint32_t index)
{
	return r.base + uint64_t{index & (r.depth - 1)} * format::bb_bytes;
}

/* Whether what is posted at a time when @tail is the oldest outstanding block has to come
 * after a fence that was at @fenced. */
NDA_DEV constexpr bool behind_fence(uint32_t fenced, uint32_t tail)
{
	return static_cast<int32_t>(fenced - tail) > 0;
}

/* First word of a WRITE at @index, without a completion of its own where not all have one.
 */
NDA_DEV uint64_t first_word(const geometry &r, uint32_t index, bool strong)
{
	return (r.word0 ^ (strong ? r.strong : 0)) |
		(r.owner && format::owner_bit(index, r.depth) ? format::word0_owner : 0);
}

/* How far the window from @head on goes, while nothing but posting of single blocks
 * happens: as far as there is credit, and not over the end of the ring, where the slot goes
 * back and the owner bit changes. */
NDA_DEV uint32_t window_limit(
	const geometry &r, uint32_t head, uint32_t tail, uint32_t signalled)
{
	uint32_t outstanding = head - tail;
	/* The last block of the ring is left to the slow way. */
	uint32_t left = r.depth - 1 - (head & (r.depth - 1));

	left = min_u32(left, outstanding >= r.capacity ? 0 : r.capacity - outstanding);
	if (r.signal_every != 1)
		left = min_u32(left, unsignalled_left(r.signal_every, head, signalled));
	return head + left;
}

NDA_DEV window make_window(const geometry &r, uint32_t head, uint32_t tail,
	uint32_t signalled, uint32_t fenced)
{
	window w;

	w.limit = window_limit(r, head, tail, signalled);
	w.next_slot = slot_address(r, head);
	w.next_word0 = first_word(r, head, behind_fence(fenced, tail));
	return w;
}

NDA_DEV geometry geometry_of(const nda_queue &q)
{
	return make_geometry(q.sq_base, q.doorbell_template, q.udma, q.sq_depth, q.cq_depth,
		q.signal_every);
}

/* Works the derived members of @s out anew from the others. */
NDA_DEV void derive_window(const nda_queue &q, nda_queue_state *s)
{
	window w =
		make_window(geometry_of(q), s->head, s->tail, s->signalled, s->udma.fenced);

	s->limit = s->error.status != NDA_OK || s->flags != 0 ? s->head : w.limit;
	s->next_slot = w.next_slot;
	s->next_word0 = w.next_word0;
}

/*
 * The mutable line of @q, of which only the immutable members are read, for these indices:
 * head of the next request, tail of the oldest that is not known to be done, ci of the next
 * completion. Every outstanding block is taken to be a request with a completion. No error,
 * not lent, no flags. (0, 0, 0) initialises.
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
	s.udma.cqes = ci - tail;
	s.udma.fenced = tail;
	derive_window(q, &s);
	return s;
}

/* The format's own members of @q for a queue to that peer: @token_value of 32 bits and
 * @token_id of the peer's heap, @local_token_id of the own, as the SGE has it. The sizes,
 * rings and registers, and q->udma's parameters, are the caller's. */
NDA_DEV void describe_peer(nda_queue *q, uint32_t tp_id, const uint64_t eid[2],
	uint32_t token_id, uint32_t token_value, bool token_en, uint32_t local_token_id,
	uint8_t jetty_type, uint8_t target_hint)
{
	q->doorbell_template = format::template_word(token_en, jetty_type, target_hint);
	q->rkey = token_value;
	q->rkey_id = token_id;
	q->lkey = local_token_id;
	q->key_words[0] = token_value;
	q->key_words[1] = format::sge_word(0, local_token_id);
	q->udma.words[0] = format::target_word(tp_id, token_id, 1);
	q->udma.words[1] = eid[0];
	q->udma.words[2] = eid[1];
}

/* Whether the immutable lines describe a queue that the data plane can work on. Where
 * completions come in any order each request needs its own. */
NDA_DEV bool queue_usable(const nda_queue &q)
{
	return q.valid != 0 && power_of_two(q.sq_depth) && power_of_two(q.cq_depth) &&
		q.sq_depth >= format::max_bbs && q.sq_depth <= format::max_depth &&
		q.cq_depth >= format::max_bbs && q.signal_every >= 1 &&
		q.signal_every <= q.sq_depth / 2 && q.signal_every <= q.cq_depth / 2 &&
		q.cqe_stride >= format::cqe_bytes && q.cqe_stride % 8 == 0 &&
		q.sq_base % format::bb_bytes == 0 && q.cq_base % 8 == 0 &&
		q.cq_record % 4 == 0 && q.sq_doorbell % 4 == 0 &&
		q.cq_depth <= q.udma.ci_mask && format::token_id_fits(q.lkey) &&
		format::token_id_fits(q.rkey_id) &&
		(q.udma.order & 3) <= format::place_strong &&
		(q.udma.strong_order & 3) <= format::place_strong &&
		(q.signal_every == 1 ||
			((q.udma.order & format::order_completions) != 0 &&
				(q.udma.strong_order & format::order_completions) != 0 &&
				q.scratch_local != 0 && q.scratch_remote != 0));
}

} // namespace nda::aiv::udma

#endif
