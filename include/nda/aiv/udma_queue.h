/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One UDMA queue, the sending half of a URMA jetty, as a vector core drives it, and the
 * engine that Device and Batch take:
 *
 *	nda::aiv::Device<nda::aiv::SoftCore, nda::aiv::udma::Engine> nda;
 *
 * The ring's unit is the block of 64 bytes. The fast way posts requests of one block, with
 * one entry: everything that does not depend on the operation is in the queue's lines, and
 * head < limit stands for all that could be in its way. The rest is posted by the complete
 * algorithm, which puts the request together in words and stores them block by block, so
 * that one that goes over the ring's end goes on at its start.
 *
 * Order of a post: the request with its first word last, then the doorbell, which is the
 * head. There is no record.
 *
 * Order between requests: in general they are relaxed and may overtake each other. From
 * fence() on, until what was posted before it is done, they are strong and fenced, all of
 * them: it is not said that a relaxed one does not overtake a strong one before it. A
 * signal is strong by itself.
 *
 * A queue belongs to one core: nothing here is atomic against another poster, but for what
 * RingQueue's shared calls need.
 */
#ifndef NDA_AIV_UDMA_QUEUE_H
#define NDA_AIV_UDMA_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include <nda/aiv/core.h>
#include <nda/aiv/queue.h>
#include <nda/aiv/udma_state.h>
#include <nda/hw/udma.h>
#include <nda/table.h>

namespace nda::aiv::udma {

/* The format's opcode of a verb that it has; a reduction is a WRITE. A table would be
 * static data: the opcodes are the digits of one number. */
NDA_DEV constexpr uint8_t opcode_of(verb v)
{
	return 0x333337b5463 >> static_cast<uint8_t>(v) * 4 & 15;
}
static_assert(opcode_of(verb::write) == format::op_write &&
		opcode_of(verb::read) == format::op_read &&
		opcode_of(verb::write_immediate) == format::op_write_immediate &&
		opcode_of(verb::write_signal) == format::op_write_notify &&
		opcode_of(verb::fetch_add) == format::op_fetch_add &&
		opcode_of(verb::compare_swap) == format::op_compare_swap &&
		opcode_of(verb::add_f32) == format::op_write,
	"the digits");

/* The words of a request of one block behind the first one. */
template <class Core>
NDA_DEV void write_rest(const Core &core, uint64_t slot, const uint64_t words[3],
	uint64_t token, uint64_t remote_va, uint64_t sge, uint64_t local_va)
{
	wqe_store(core, slot, 8, words[0]);
	wqe_store(core, slot, 16, words[1]);
	wqe_store(core, slot, 24, words[2]);
	wqe_store(core, slot, 32, token);
	wqe_store(core, slot, 40, remote_va);
	wqe_store(core, slot, 48, sge);
	wqe_store(core, slot, 56, local_va);
}

/* Tells the NIC of every request below @head; the queue's line is on its way to memory by
 * then, so that the host sees what the NIC saw. */
template <class Core>
NDA_DEV void ring_doorbell(const Core &core, uint64_t q, uint32_t head, uint64_t doorbell)
{
	core.clean(
		site::queue_line, q + offsetof(nda_queue, state), sizeof(nda_queue_state));
	core.dsb(site::before_doorbell);
	core.template st_dev<uint32_t>(doorbell, head);
}

/*
 * Posts a WRITE or READ of the heap with a doorbell if the window is open and the length is
 * one request's; false, and nothing done, if the slow path has to see to it. Each value is
 * taken where it is stored: the compiler, which does not know that slots are no queues,
 * would else need a register for each.
 */
template <verb what, class Core>
NDA_DEV bool post_fast(const Core &core, uint64_t q, uint64_t symmetric, uint64_t local_va,
	uint64_t length)
{
	if (NDA_DEV_RARE(static_cast<int32_t>(NDA_QUEUE_LOAD(core, q, state.head) -
				 NDA_QUEUE_LOAD(core, q, state.limit)) >= 0))
		return false;
	if (NDA_DEV_RARE(length - 1 >= format::max_length))
		return false;

	uint64_t slot = NDA_QUEUE_LOAD(core, q, state.next_slot);

	wqe_store(core, slot, 8, NDA_QUEUE_LOAD(core, q, udma.words[0]));
	wqe_store(core, slot, 16, NDA_QUEUE_LOAD(core, q, udma.words[1]));
	wqe_store(core, slot, 24, NDA_QUEUE_LOAD(core, q, udma.words[2]));
	wqe_store(core, slot, 32, NDA_QUEUE_LOAD(core, q, key_words[0]));
	wqe_store(core, slot, 40, symmetric + NDA_QUEUE_LOAD(core, q, remote_delta));
	wqe_store(core, slot, 48, length | NDA_QUEUE_LOAD(core, q, key_words[1]));
	wqe_store(core, slot, 56, local_va);
	wqe_store_last(core, slot, 0,
		format::word0_as(
			opcode_of(what), NDA_QUEUE_LOAD(core, q, state.next_word0)));
	wqe_publish(core, slot, 0, format::bb_bytes);

	uint32_t head = NDA_QUEUE_LOAD(core, q, state.head) + 1;
	NDA_QUEUE_STORE(core, q, state.head, head);
	NDA_QUEUE_STORE(core, q, state.next_slot,
		NDA_QUEUE_LOAD(core, q, state.next_slot) + format::bb_bytes);
	ring_doorbell(core, q, head, NDA_QUEUE_LOAD(core, q, sq_doorbell));
	return true;
}

/* The slow path, polling and the rest: what RingQueue asks for. */
template <class Core>
class Queue : public RingQueue<Core, Queue<Core>> {
	typedef RingQueue<Core, Queue<Core>> Base;

public:
	static constexpr uint64_t max_length = format::max_length;

	/* @q: address of the struct nda_queue. @limits: of a call that waits. */
	NDA_DEV Queue(const Core &core, uint64_t q, const wait_limits &limits)
		: Base(core, q, limits)
	{}

private:
	friend Base;
	using Base::core_;
	using Base::is_shared;
	using Base::latch;
	using Base::q_;
	using Base::shared;
	using Base::shared_load;
	using Base::shut;
	using Base::signalled_up_to;
	using Base::sticky;
	using typename Base::reader;
	using typename Base::stop;

	NDA_DEV geometry load_geometry() const
	{
		nda_queue_udma u;

		u.order = NDA_QUEUE_LOAD(core_, q_, udma.order);
		u.strong_order = NDA_QUEUE_LOAD(core_, q_, udma.strong_order);
		u.owner = NDA_QUEUE_LOAD(core_, q_, udma.owner);
		return make_geometry(NDA_QUEUE_LOAD(core_, q_, sq_base),
			NDA_QUEUE_LOAD(core_, q_, doorbell_template), u,
			NDA_QUEUE_LOAD(core_, q_, sq_depth),
			NDA_QUEUE_LOAD(core_, q_, cq_depth),
			NDA_QUEUE_LOAD(core_, q_, signal_every));
	}

	NDA_DEV uint32_t capacity() const
	{
		return capacity_of(NDA_QUEUE_LOAD(core_, q_, sq_depth),
			NDA_QUEUE_LOAD(core_, q_, cq_depth));
	}

	/* ---- Posting ---- */

	NDA_DEV static uint32_t sges_of(const operation &op)
	{
		if (op.inline_data)
			return 0;
		/* A notification of nothing has an entry of length 0, an immediate none. */
		if (op.length == 0 && op.op == verb::write_immediate)
			return 0;
		return op.n_pieces == 0 ? 1 : op.n_pieces;
	}

	NDA_DEV enum nda_status accepts(const operation &op) const
	{
		uint8_t opcode = opcode_of(op.op);

		if (!format::token_id_fits(op.rkey_id) || !format::token_id_fits(op.lkey))
			return NDA_INVALID;
		if (op.inline_data)
			return op.length <=
					format::max_inline(opcode,
						NDA_QUEUE_LOAD(core_, q_, udma.max_inline))
				? NDA_OK
				: NDA_INVALID;
		return op.n_pieces == 0 ||
				(op.n_pieces <= format::max_sges(opcode) &&
					op.length <= max_length)
			? NDA_OK
			: NDA_INVALID;
	}

	NDA_DEV static uint32_t units(const operation &op)
	{
		uint8_t opcode = opcode_of(op.op);

		if (is_atomic(op.op))
			return format::atomic_bbs;
		return op.inline_data
			? format::bbs_of_inline(opcode, static_cast<uint32_t>(op.length))
			: format::bbs_of_sges(opcode, sges_of(op));
	}

	NDA_DEV void refresh(
		uint32_t head, uint32_t tail, uint32_t signalled, bool in_batch) const
	{
		uint32_t fenced = NDA_QUEUE_LOAD(core_, q_, state.udma.fenced);
		window w = make_window(load_geometry(), head, tail, signalled, fenced);

		/* One that is over stays over when the indices wrap. */
		if (!behind_fence(fenced, tail))
			NDA_QUEUE_STORE(core_, q_, state.udma.fenced, tail);
		NDA_QUEUE_STORE(core_, q_, state.limit, shut(in_batch) ? head : w.limit);
		NDA_QUEUE_STORE(core_, q_, state.next_slot, w.next_slot);
		NDA_QUEUE_STORE(core_, q_, state.next_word0, w.next_word0);
	}

	/* A fence may be over, too. */
	NDA_DEV void credited(uint32_t head, uint32_t tail) const
	{
		refresh(head, tail, NDA_QUEUE_LOAD(core_, q_, state.signalled), false);
	}

	NDA_DEV void ring_to(uint32_t head) const
	{
		ring_doorbell(core_, q_, head, NDA_QUEUE_LOAD(core_, q_, sq_doorbell));
	}

	/* Counts one completion more to come, of the request whose end is @end. Of a shared
	 * queue count and end are one word: who reads completions does not post. */
	NDA_DEV void expect_completion(uint32_t head, uint32_t end) const
	{
		if (is_shared()) {
			uint64_t at = shared(offsetof(nda_queue_shared, asked));
			uint32_t count =
				static_cast<uint32_t>(core_.template load<uint64_t>(at)) +
				1;

			core_.template store_release<uint64_t>(
				at, uint64_t{end} << 32 | count);
			return;
		}
		uint32_t expected = signalled_up_to(head) +
			NDA_QUEUE_LOAD(core_, q_, state.udma.cqes) + 1;

		NDA_QUEUE_STORE(core_, q_, state.udma.cqes, expected - end);
	}

	/*
	 * Posts the request that ends a series without a completion, from what is prepared
	 * in the line; false, and nothing done, if anything else shut the window too. Once
	 * in every interval: the complete algorithm would cost more than the completions
	 * that it saves.
	 */
	NDA_DEV bool post_signalled(const operation &op, bool in_batch)
	{
		/* By value: the compiler does not know that slots are no members. */
		uint64_t q = q_;
		uint32_t head = NDA_QUEUE_LOAD(core_, q, state.head);
		uint32_t every = NDA_QUEUE_LOAD(core_, q, signal_every);
		uint32_t depth = NDA_QUEUE_LOAD(core_, q, sq_depth);
		uint32_t capacity = min_u32(depth, NDA_QUEUE_LOAD(core_, q, cq_depth));
		uint32_t outstanding = head - NDA_QUEUE_LOAD(core_, q, state.tail);
		uint32_t to_end = depth - 1 - (head & (depth - 1));

		if (every == 1 ||
			head - NDA_QUEUE_LOAD(core_, q, state.signalled) != every - 1 ||
			NDA_QUEUE_LOAD(core_, q, state.flags) !=
				(in_batch ? NDA_QUEUE_IN_BATCH : 0) ||
			sticky() != NDA_OK || op.length - 1 >= max_length ||
			op.op > verb::read || op.n_pieces != 0 ||
			(op.fence | op.inline_data | op.ordered) != 0 ||
			!format::token_id_fits(op.rkey_id | op.lkey) ||
			outstanding >= capacity || to_end == 0)
			return false;

		uint64_t slot = NDA_QUEUE_LOAD(core_, q, state.next_slot);
		uint64_t words[3] = {
			format::target_word_as(
				NDA_QUEUE_LOAD(core_, q, udma.words[0]), op.rkey_id, 1),
			NDA_QUEUE_LOAD(core_, q, udma.words[1]),
			NDA_QUEUE_LOAD(core_, q, udma.words[2])};
		write_rest(core_, slot, words, op.rkey, op.remote_va,
			format::sge_word(static_cast<uint32_t>(op.length), op.lkey),
			op.local_va);
		wqe_store_last(core_, slot, 0,
			format::word0_as(opcode_of(op.op),
				NDA_QUEUE_LOAD(core_, q, state.next_word0)) |
				format::word0_completion);
		wqe_publish(core_, slot, 0, format::bb_bytes);

		/* As expect_completion(): one more for all blocks since the last one. */
		NDA_QUEUE_STORE(core_, q, state.udma.cqes,
			NDA_QUEUE_LOAD(core_, q, state.udma.cqes) + 1 - every);
		head++;
		NDA_QUEUE_STORE(core_, q, state.head, head);
		NDA_QUEUE_STORE(core_, q, state.signalled, head);
		/* As window_limit(), right behind a completion. */
		NDA_QUEUE_STORE(core_, q, state.limit,
			head +
				min_u32(every - 1,
					min_u32(to_end - 1, capacity - outstanding - 1)));
		NDA_QUEUE_STORE(core_, q, state.next_slot, slot + format::bb_bytes);
		if (!in_batch)
			ring_doorbell(
				core_, q, head, NDA_QUEUE_LOAD(core_, q, sq_doorbell));
		return true;
	}

	/* Whether the request at @head comes after a fence, or @fence begins one there. A
	 * shared queue has none. */
	NDA_DEV bool after_fence(uint32_t head, bool fence) const
	{
		if (is_shared())
			return fence;
		if (fence)
			NDA_QUEUE_STORE(core_, q_, state.udma.fenced, head);
		return fence ||
			behind_fence(NDA_QUEUE_LOAD(core_, q_, state.udma.fenced),
				NDA_QUEUE_LOAD(core_, q_, state.tail));
	}

	NDA_DEV void write_wqe(
		const operation &op, uint32_t head, bool signalled, bool fence) const
	{
		geometry r = load_geometry();
		uint32_t n = units(op) * format::bb_words;
		uint64_t w[format::max_words];

		bool strong = after_fence(head, fence) || op.ordered ||
			op.op == verb::write_signal || op.op == verb::write_immediate;

		for (uint32_t i = 0; i < n; i++)
			w[i] = 0;
		w[0] = format::word0_as(opcode_of(op.op), first_word(r, head, strong)) |
			(signalled ? format::word0_completion : 0);
		w[1] = format::target_word_as(
			NDA_QUEUE_LOAD(core_, q_, udma.words[0]), op.rkey_id, sges_of(op));
		w[2] = NDA_QUEUE_LOAD(core_, q_, udma.words[1]);
		w[3] = NDA_QUEUE_LOAD(core_, q_, udma.words[2]);
		w[4] = op.rkey;
		w[5] = op.remote_va;
		fill_body(op, w);
		store_words(r, head, w, n);
		if (signalled)
			expect_completion(head, head + n / format::bb_words);
	}

	template <verb what>
	NDA_DEV void write_usual(uint32_t head, bool signalled, uint64_t symmetric,
		uint64_t local_va, uint64_t length) const
	{
		geometry r = load_geometry();
		uint64_t slot = slot_address(r, head);
		uint64_t words[3] = {NDA_QUEUE_LOAD(core_, q_, udma.words[0]),
			NDA_QUEUE_LOAD(core_, q_, udma.words[1]),
			NDA_QUEUE_LOAD(core_, q_, udma.words[2])};

		write_rest(core_, slot, words, NDA_QUEUE_LOAD(core_, q_, key_words[0]),
			symmetric + NDA_QUEUE_LOAD(core_, q_, remote_delta),
			NDA_QUEUE_LOAD(core_, q_, key_words[1]) | length, local_va);
		wqe_store_last(core_, slot, 0,
			format::word0_as(opcode_of(what),
				first_word(r, head, after_fence(head, false))) |
				(signalled ? format::word0_completion : 0));
		wqe_publish(core_, slot, 0, format::bb_bytes);
		if (signalled)
			expect_completion(head, head + 1);
	}

	/* What the operation has beyond the control, and its bits there. */
	NDA_DEV void fill_body(const operation &op, uint64_t w[format::max_words]) const
	{
		if (op.op == verb::write_signal) {
			w[6] = format::notify_word(op.rkey_id, op.rkey);
			w[7] = op.signal_va;
			w[8] = op.signal_value;
		} else if (op.op == verb::write_immediate) {
			w[6] = op.immediate;
			w[7] = format::notify_word(op.rkey_id, op.rkey);
		} else if (op.op == verb::add_f32) {
			w[0] |= format::word0_udf;
			w[4] |= format::reduce_bits(
				format::reduce_add, format::reduce_float32);
		} else if (is_atomic(op.op)) {
			fill_operands(op, w + format::operand_word);
		}

		uint64_t *data = w + format::data_word(opcode_of(op.op));
		if (op.inline_data) {
			w[0] |= format::inline_bits(static_cast<uint32_t>(op.length));
			fill_inline(op, data);
		} else if (op.n_pieces == 0) {
			if (sges_of(op) != 0) {
				data[0] = format::sge_word(
					static_cast<uint32_t>(op.length), op.lkey);
				data[1] = op.local_va;
			}
		} else {
			for (uint32_t i = 0; i < op.n_pieces; i++) {
				data[2 * i] = format::sge_word(
					static_cast<uint32_t>(op.pieces[i].length),
					op.lkey);
				data[2 * i + 1] = op.pieces[i].addr;
			}
		}
	}

	/* The value, and for a compare-and-swap what is compared right behind it. */
	NDA_DEV static void fill_operands(const operation &op, uint64_t out[4])
	{
		bool swap = op.op == verb::compare_swap;

		if (op.size == 4) {
			out[0] = static_cast<uint32_t>(op.operand) |
				(swap ? op.compare << 32 : 0);
			return;
		}
		out[0] = op.operand;
		if (op.size == 8) {
			out[1] = swap ? op.compare : 0;
			return;
		}
		out[1] = op.operand_high;
		out[2] = op.compare;
		out[3] = op.compare_high;
	}

	/* Bytes one by one, for the source may lie anywhere. */
	NDA_DEV void fill_inline(const operation &op, uint64_t *out) const
	{
		for (uint32_t i = 0; i < op.length; i++) {
			uint64_t byte = op.inline_data
				? core_.template load<uint8_t>(op.local_va + i)
				: op.operand >> i * 8 & 0xff;

			out[i / 8] |= byte << i % 8 * 8;
		}
	}

	/* The @n words of a request at @head, the first one last, going on at the ring's
	 * start behind its end. */
	NDA_DEV void store_words(const geometry &r, uint32_t head,
		const uint64_t w[format::max_words], uint32_t n) const
	{
		uint32_t to_end = (r.depth - (head & (r.depth - 1))) * format::bb_words;
		uint32_t first = min_u32(n, to_end);
		uint64_t slot = slot_address(r, head);
		uint64_t rest = r.base - uint64_t{first} * 8;

		for (uint32_t i = first; i < n; i++)
			wqe_store(core_, rest, i * 8, w[i]);
		for (uint32_t i = 1; i < first; i++)
			wqe_store(core_, slot, i * 8, w[i]);
		wqe_store_last(core_, slot, 0, w[0]);
		if (first != n)
			wqe_publish(core_, rest, first * 8, (n - first) * 8);
		wqe_publish(core_, slot, 0, first * 8);
	}

	/* ---- Completions ---- */

	NDA_DEV static bool lap_bit(uint32_t ci, uint32_t depth)
	{
		return format::owner_bit(ci, depth);
	}

	NDA_DEV static bool failed(uint64_t word, uint32_t ci, uint32_t depth)
	{
		return format::cqe_ready(word, ci, depth);
	}

	template <bool owner>
	NDA_DEV stop scan(uint64_t cqe, uint32_t stride, uint32_t count) const
	{
		constexpr uint32_t good = owner ? format::cqe_owner : 0;
		uint64_t word;

		do {
			core_.invalidate(site::cq_look, cqe, 8);
			word = core_.template load_acquire<uint64_t>(cqe);
			if ((static_cast<uint32_t>(word) & format::cqe_look_mask) != good)
				break;
			cqe += stride;
		} while (--count != 0);
		return {count, word};
	}

	NDA_DEV void settle(reader *r, uint64_t cqe, uint32_t count, bool error) const
	{
		uint64_t word = core_.template load<uint64_t>(cqe);
		uint32_t signalled;
		uint32_t left;

		if (is_shared()) {
			uint64_t asked = core_.template load_acquire<uint64_t>(
				shared(offsetof(nda_queue_shared, asked)));

			signalled = static_cast<uint32_t>(asked >> 32);
			left = static_cast<uint32_t>(asked) - r->ci;
		} else {
			signalled = signalled_up_to(r->head);
			left = signalled + NDA_QUEUE_LOAD(core_, q_, state.udma.cqes) -
				r->ci;
		}
		bool of_send = (word & format::cqe_receive) == 0;

		if (error && of_send && format::cqe_flush_done(word)) {
			/* There is no other to come for what is posted by now. */
			if (is_shared())
				r->head = shared_load(offsetof(nda_queue_shared, head));
			r->tail = r->head;
			if (!is_shared())
				NDA_QUEUE_STORE(
					core_, q_, state.udma.cqes, r->ci - signalled);
		} else if (!of_send || !believe(r, word, count, left, signalled)) {
			r->lost = true;
			r->seen = NDA_BAD_RESPONSE;
			latch(error_of(NDA_BAD_RESPONSE, word));
			return;
		}
		if (!error)
			return;
		r->seen = format::status_of(
			format::cqe_status(word), format::cqe_substatus(word));
		latch(error_of(r->seen, word));
	}

	/* False where the completion names nothing outstanding, or there are more of them
	 * than were asked for. @left: to come after this one. */
	NDA_DEV bool believe(reader *r, uint64_t word, uint32_t count, uint32_t left,
		uint32_t signalled) const
	{
		/* Of a shared queue others have posted since its head was read. */
		if (is_shared())
			r->head = shared_load(offsetof(nda_queue_shared, head));
		uint32_t done = format::bbs_done(format::cqe_entry_index(word), r->tail,
			NDA_QUEUE_LOAD(core_, q_, sq_depth));

		if (static_cast<int32_t>(left) < 0 || done > r->head - r->tail)
			return false;
		/* Where completions keep no order, one says nothing of the others. */
		if ((NDA_QUEUE_LOAD(core_, q_, udma.order) & format::order_completions) !=
			0) {
			if (count > done)
				return false;
			/* It may name any of its request's blocks: up to there at least. */
			r->tail += done;
		}
		if (left == 0)
			r->tail = signalled;
		return true;
	}

	NDA_DEV static nda_queue_error error_of(uint32_t status, uint64_t word)
	{
		return {status, format::cqe_status(word), format::cqe_substatus(word),
			format::cqe_entry_index(word)};
	}

	NDA_DEV void publish_ci(uint32_t ci) const
	{
		uint64_t record = NDA_QUEUE_LOAD(core_, q_, cq_record);

		core_.template store_release<uint32_t>(record,
			format::cq_record(ci, NDA_QUEUE_LOAD(core_, q_, udma.ci_mask)));
		core_.clean(site::cq_record, record, 4);
	}
};

/* What the queue's line holds, in members: registers where it is inlined. */
template <class Core>
class Line {
public:
	/* What posting does not change; @q outlives this. */
	NDA_DEV void begin(const Core &core, uint64_t q)
	{
		delta_ = NDA_QUEUE_LOAD(core, q, remote_delta);
		kw0_ = NDA_QUEUE_LOAD(core, q, key_words[0]);
		kw1_ = NDA_QUEUE_LOAD(core, q, key_words[1]);
		words_[0] = NDA_QUEUE_LOAD(core, q, udma.words[0]);
		words_[1] = NDA_QUEUE_LOAD(core, q, udma.words[1]);
		words_[2] = NDA_QUEUE_LOAD(core, q, udma.words[2]);
	}

	/* The line's window becomes the batch's; nobody else may post by it. */
	NDA_DEV void take(const Core &core, uint64_t q)
	{
		uint32_t head = NDA_QUEUE_LOAD(core, q, state.head);

		limit_ = NDA_QUEUE_LOAD(core, q, state.limit);
		left_ = limit_ - head;
		slot_ = NDA_QUEUE_LOAD(core, q, state.next_slot);
		word0_ = NDA_QUEUE_LOAD(core, q, state.next_word0);
		NDA_QUEUE_STORE(core, q, state.limit, head);
	}

	/* What posting changed of the line. */
	NDA_DEV void give(const Core &core, uint64_t q) const
	{
		NDA_QUEUE_STORE(core, q, state.head, limit_ - left_);
		NDA_QUEUE_STORE(core, q, state.limit, limit_);
		NDA_QUEUE_STORE(core, q, state.next_slot, slot_);
	}

	/* Nothing more is posted by it. */
	NDA_DEV void end() { left_ = 0; }

	/* post_fast() with the line in members; false if the slow path has to see to it. */
	template <verb what>
	NDA_DEV bool post(
		const Core &core, uint64_t symmetric, uint64_t local, uint64_t length)
	{
		if (NDA_DEV_RARE(left_ == 0 || length - 1 >= format::max_length))
			return false;

		write_rest(core, slot_, words_, kw0_, symmetric + delta_, length | kw1_,
			local);
		wqe_store_last(core, slot_, 0, format::word0_as(opcode_of(what), word0_));
		wqe_publish(core, slot_, 0, format::bb_bytes);
		left_--;
		slot_ += format::bb_bytes;
		return true;
	}

private:
	/* As in the queue's line; head is limit_ - left_. */
	uint32_t left_ = 0;
	uint32_t limit_ = 0;
	uint64_t slot_ = 0;
	uint64_t word0_ = 0;
	uint64_t delta_ = 0;
	uint64_t kw0_ = 0;
	uint64_t kw1_ = 0;
	uint64_t words_[3] = {};
};

struct Engine {
	static constexpr uint32_t table_format = NDA_FORMAT_UDMA;
	static constexpr bool has_inline = true;
	/* Of any size would need a queue that allows it. */
	static constexpr bool has_inline_operand = false;
	static constexpr bool has_pieces = true;
	/* A jetty does not send to its own PE. */
	static constexpr bool reaches_itself = false;
	static constexpr bool keeps_order = false;

	NDA_DEV static constexpr bool supports(verb v, uint32_t size)
	{
		return v == verb::compare_swap ? size == 4 || size == 8 || size == 16
			: v == verb::fetch_add || v == verb::add_f32
			? size == 4 || (size == 8 && v == verb::fetch_add)
			: !is_atomic(v);
	}

	/* By READ and compare-and-swap, where it is waited for. */
	NDA_DEV static constexpr bool emulates(verb v, uint32_t size)
	{
		return (size == 4 || size == 8) &&
			(v == verb::swap || v == verb::fetch_and || v == verb::fetch_or ||
				v == verb::fetch_xor);
	}

	template <class Core>
	using queue = Queue<Core>;
	template <class Core>
	using line = Line<Core>;

	/* A token value has all 32 bits; of the own segment only the id is used. */
	NDA_DEV static bool keys_fit(uint32_t, uint32_t lkey)
	{
		return format::token_id_fits(lkey);
	}

	template <class T>
	NDA_DEV static T result(T raw)
	{
		return raw;
	}

	template <verb what, class Core>
	NDA_DEV static bool post_to_heap(const Core &core, uint64_t q, uint64_t symmetric,
		uint64_t local, uint64_t n)
	{
		return post_fast<what>(core, q, symmetric, local, n);
	}

	/* A region has a token id of its own, which is not among the arguments. */
	template <verb what, class Core>
	NDA_DEV static bool post_to_region(
		const Core &, uint64_t, uint64_t, uint32_t, uint64_t, uint32_t, uint64_t)
	{
		return false;
	}
};

} // namespace nda::aiv::udma

#endif
