/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A queue of Ascend 910's RoCE NIC, as a vector core drives it, and the engine over it.
 *
 * There are two ways to post, as for the 1825: the fast one takes everything that does not
 * depend on the operation from the queue's mutable line and has one compare, head < limit,
 * for all that could be in its way; the complete one takes over wherever that may not go,
 * and leaves the line worked out anew. Where only every k-th WQE has a completion, a short
 * form of it posts that one. All leave the same queue behind.
 *
 * Order of a post: the WQE with its first word last, which holds the owner bit, for NICs
 * that fetch before the doorbell; the record, if the queue has one; the doorbell.
 *
 * A fence is the strong-order bit of the next WQE. The consumer index goes to the CQ's
 * record, or to its doorbell register if the queue has that.
 *
 * A queue belongs to one core: nothing here is atomic against another poster.
 */
#ifndef NDA_AIV_IN_DIE_QUEUE_H
#define NDA_AIV_IN_DIE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include <nda/aiv/core.h>
#include <nda/aiv/in_die_state.h>
#include <nda/aiv/queue.h>
#include <nda/hw/in_die.h>
#include <nda/table.h>

namespace nda::aiv::in_die {

/* The format's opcode of a verb that it has: the digits of one number, as a table would be
 * static data. */
NDA_DEV constexpr uint8_t opcode_of(verb v)
{
	constexpr uint32_t opcodes = format::op_write << 4 * int(verb::write) |
		format::op_read << 4 * int(verb::read) |
		format::op_write_immediate << 4 * int(verb::write_immediate) |
		format::op_fetch_add << 4 * int(verb::fetch_add) |
		format::op_compare_swap << 4 * int(verb::compare_swap);

	return opcodes >> 4 * uint32_t(v) & 15;
}

/* From the control word of a WRITE that of @what. */
NDA_DEV constexpr uint64_t control_word_as(verb what, uint64_t word)
{
	return word ^ (format::op_write ^ opcode_of(what));
}

/* A WQE's words, the one with the owner bit last and after the others. */
template <class Core>
NDA_DEV void write_words(
	const Core &core, uint64_t slot, const uint64_t w[format::wqe_words])
{
	wqe_store(core, slot, 8, w[1]);
	wqe_store(core, slot, 16, w[2]);
	wqe_store(core, slot, 24, w[3]);
	wqe_store(core, slot, 32, w[4]);
	wqe_store(core, slot, 40, w[5]);
	wqe_store(core, slot, 48, w[6]);
	wqe_store(core, slot, 56, w[7]);
	wqe_store_last(core, slot, 0, w[0]);
	wqe_publish(core, slot, 0, format::wqe_bytes);
}

/* Tells the NIC of every WQE below @head; the queue's line is on its way to memory by
 * then, so that the host sees what the NIC saw. */
template <class Core>
NDA_DEV void ring_doorbell(const Core &core, uint64_t q, uint32_t head)
{
	core.clean(
		site::queue_line, q + offsetof(nda_queue, state), sizeof(nda_queue_state));
	core.dsb(site::before_record);
	if (NDA_DEV_RARE(NDA_QUEUE_LOAD(core, q, sq_record) != 0)) {
		uint64_t record = NDA_QUEUE_LOAD(core, q, sq_record);

		core.template store_release<uint32_t>(record, format::sq_record(head));
		core.clean(site::sq_record, record, 4);
		core.dsb(site::before_doorbell);
	}
	core.template st_dev<uint64_t>(NDA_QUEUE_LOAD(core, q, sq_doorbell),
		format::doorbell_value(NDA_QUEUE_LOAD(core, q, doorbell_template), head));
}

/*
 * Posts one WQE with a doorbell if the window is open and the length is one WQE's; false,
 * and nothing done, if the complete algorithm has to see to it.
 *
 * Each value is taken where it is stored: the compiler, which does not know that slots are
 * no queues, would else need a register for each.
 */
template <verb what, class Core, class Target>
NDA_DEV bool post_fast(const Core &core, uint64_t q, const Target &target,
	uint64_t local_va, uint64_t length)
{
	if (NDA_DEV_RARE(static_cast<int32_t>(NDA_QUEUE_LOAD(core, q, state.head) -
				 NDA_QUEUE_LOAD(core, q, state.limit)) >= 0))
		return false;
	if (NDA_DEV_RARE(length - 1 >= format::max_length))
		return false;

	uint64_t slot = NDA_QUEUE_LOAD(core, q, state.next_slot);

	wqe_store(core, slot, 8, format::one_sge);
	wqe_store(core, slot, 16, target.key_word0(core, q));
	wqe_store(core, slot, 24, target.remote_va(core, q));
	wqe_store(core, slot, 32, target.key_word1(core, q) | length);
	wqe_store(core, slot, 40, local_va);
	wqe_store<uint64_t>(core, slot, 48, 0);
	wqe_store<uint64_t>(core, slot, 56, 0);
	wqe_store_last(core, slot, 0,
		control_word_as(what, NDA_QUEUE_LOAD(core, q, state.next_word0)) |
			length << 32);
	wqe_publish(core, slot, 0, format::wqe_bytes);

	uint32_t head = NDA_QUEUE_LOAD(core, q, state.head) + 1;
	NDA_QUEUE_STORE(core, q, state.head, head);
	NDA_QUEUE_STORE(core, q, state.next_slot,
		NDA_QUEUE_LOAD(core, q, state.next_slot) + format::wqe_bytes);
	ring_doorbell(core, q, head);
	return true;
}

/* How many WQEs from @head on the window has, if it was shut by nothing but that the first
 * of them has to ask for a completion, which then opens it; else 0. @flags: the queue's, if
 * it may be posted to. */
template <class Core>
NDA_DEV uint32_t window_of_completion(
	const Core &core, uint64_t q, uint32_t head, uint32_t flags)
{
	uint32_t every = NDA_QUEUE_LOAD(core, q, signal_every);
	uint32_t last = NDA_QUEUE_LOAD(core, q, sq_depth) - 1;
	uint32_t capacity = min_u32(last, NDA_QUEUE_LOAD(core, q, cq_depth) - 1);
	uint32_t outstanding = head - NDA_QUEUE_LOAD(core, q, state.tail);

	if (every == 1 || outstanding >= capacity ||
		head - NDA_QUEUE_LOAD(core, q, state.signalled) != every - 1 ||
		NDA_QUEUE_LOAD(core, q, state.flags) != flags ||
		NDA_QUEUE_LOAD(core, q, state.error.status) != NDA_OK)
		return 0;
	return min_u32(min_u32(last - (head & last), every), capacity - outstanding);
}

/* The complete way, polling and the rest: what RingQueue asks for. */
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
	using Base::latch;
	using Base::q_;
	using Base::shut;
	using Base::sticky;
	using typename Base::reader;
	using typename Base::stop;

	NDA_DEV geometry load_geometry() const
	{
		return make_geometry(NDA_QUEUE_LOAD(core_, q_, sq_base),
			NDA_QUEUE_LOAD(core_, q_, sq_depth),
			NDA_QUEUE_LOAD(core_, q_, cq_depth),
			NDA_QUEUE_LOAD(core_, q_, signal_every));
	}

	NDA_DEV uint32_t capacity() const { return load_geometry().capacity; }

	NDA_DEV static uint32_t units(const operation &) { return 1; }

	NDA_DEV static enum nda_status accepts(const operation &op)
	{
		if (op.inline_data || op.inline_operand)
			return op.length <= format::max_inline ? NDA_OK : NDA_INVALID;
		return op.n_pieces <= format::max_sges &&
				(op.n_pieces == 0 || op.length <= format::max_length)
			? NDA_OK
			: NDA_INVALID;
	}

	NDA_DEV void refresh(
		uint32_t head, uint32_t tail, uint32_t signalled, bool in_batch) const
	{
		window w = make_window(load_geometry(), head, tail, signalled);

		NDA_QUEUE_STORE(core_, q_, state.limit, shut(in_batch) ? head : w.limit);
		NDA_QUEUE_STORE(core_, q_, state.next_slot, w.next_slot);
		NDA_QUEUE_STORE(core_, q_, state.next_word0, w.next_word0);
	}

	NDA_DEV void ring_to(uint32_t head) const { ring_doorbell(core_, q_, head); }

	/*
	 * Posts the WQE that ends a series without a completion, from the words prepared in
	 * the line; false, and nothing done, if anything else shut the window too. Once in
	 * every interval: the complete algorithm would cost more than the completions that
	 * it saves.
	 */
	NDA_DEV bool post_signalled(const operation &op, bool in_batch) const
	{
		/* By value: the compiler does not know that slots are no members. */
		uint64_t q = q_;
		uint32_t head = NDA_QUEUE_LOAD(core_, q, state.head);
		uint32_t window = window_of_completion(
			core_, q, head, in_batch ? NDA_QUEUE_IN_BATCH : 0);

		if (window == 0 || !plain(op))
			return false;

		uint64_t slot = NDA_QUEUE_LOAD(core_, q, state.next_slot);
		uint64_t keys[2];

		format::key_words(op.rkey, op.lkey, keys);
		uint64_t w[format::wqe_words] = {
			control_word_as(op.op, NDA_QUEUE_LOAD(core_, q, state.next_word0)) |
				format::control_signalled | op.length << 32,
			format::one_sge, keys[0], op.remote_va, keys[1] | op.length,
			op.local_va, 0, 0};
		write_words(core_, slot, w);

		NDA_QUEUE_STORE(core_, q, state.limit, head + window);
		head++;
		NDA_QUEUE_STORE(core_, q, state.head, head);
		NDA_QUEUE_STORE(core_, q, state.signalled, head);
		NDA_QUEUE_STORE(core_, q, state.next_slot, slot + format::wqe_bytes);
		if (!in_batch)
			ring_doorbell(core_, q, head);
		return true;
	}

	/* Whether it is one WQE of which the usual post would make the same. */
	NDA_DEV static bool plain(const operation &op)
	{
		return (op.op == verb::write || op.op == verb::read) &&
			op.length - 1 < format::max_length && op.n_pieces == 0 &&
			!op.inline_data && !op.inline_operand && !op.fence;
	}

	NDA_DEV void write_wqe(
		const operation &op, uint32_t head, bool signalled, bool fence) const
	{
		geometry r = load_geometry();
		format::request what = {};
		uint64_t w[format::wqe_words];

		what.opcode = opcode_of(op.op);
		what.signalled = signalled;
		what.fence = fence;
		what.length = static_cast<uint32_t>(op.length);
		what.immediate = op.op == verb::write_immediate ? op.immediate : 0;
		what.rkey = op.rkey;
		what.remote_va = op.remote_va;
		fill_data(op, &what);
		format::encode(format::request_wqe(what, head, r.depth), w);
		write_words(core_, slot_address(r, head), w);
	}

	/* Segments, inline data and operands. */
	NDA_DEV void fill_data(const operation &op, format::request *what) const
	{
		if (op.length == 0)
			return;
		if (op.inline_data || op.inline_operand) {
			what->inline_data = true;
			fill_inline(op, what->data);
			return;
		}
		if (op.n_pieces == 0) {
			what->sges = 1;
			what->data[0] = format::sge_word(what->length, op.lkey);
			what->data[1] = op.local_va;
		}
		for (uint32_t i = 0; i < op.n_pieces; i++) {
			what->sges = i + 1;
			what->data[2 * i] = format::sge_word(
				static_cast<uint32_t>(op.pieces[i].length), op.lkey);
			what->data[2 * i + 1] = op.pieces[i].addr;
		}
		if (is_atomic(op.op)) {
			what->data[2] = op.operand;
			what->data[3] = op.op == verb::compare_swap ? op.compare : 0;
		}
	}

	/* The source may lie anywhere; behind it are zeros. */
	NDA_DEV void fill_inline(
		const operation &op, uint64_t data[format::data_words]) const
	{
		if (op.inline_operand) {
			data[0] = op.length < 8
				? op.operand & ((uint64_t{1} << op.length * 8) - 1)
				: op.operand;
			data[1] = op.length > 8 ? op.operand_high : 0;
			return;
		}
		for (uint32_t i = 0; i < op.length; i++)
			data[i / 8] |=
				uint64_t{core_.template load<uint8_t>(op.local_va + i)}
				<< (i % 8 * 8);
	}

	template <verb what>
	NDA_DEV void write_usual(uint32_t head, bool signalled, uint64_t symmetric,
		uint64_t local_va, uint64_t length) const
	{
		uint32_t depth = NDA_QUEUE_LOAD(core_, q_, sq_depth);
		uint64_t w[format::wqe_words] = {
			format::control_word(opcode_of(what), head, depth, signalled) |
				length << 32,
			format::one_sge, NDA_QUEUE_LOAD(core_, q_, key_words[0]),
			symmetric + NDA_QUEUE_LOAD(core_, q_, remote_delta),
			NDA_QUEUE_LOAD(core_, q_, key_words[1]) | length, local_va, 0, 0};

		write_words(core_,
			NDA_QUEUE_LOAD(core_, q_, sq_base) +
				uint64_t{head & (depth - 1)} * format::wqe_bytes,
			w);
	}

	NDA_DEV static bool lap_bit(uint32_t ci, uint32_t depth)
	{
		return format::owner_bit(ci, depth);
	}

	NDA_DEV static bool failed(uint64_t word, uint32_t ci, uint32_t depth)
	{
		return format::cqe_look(static_cast<uint32_t>(word), ci, depth) ==
			format::cqe_state::error;
	}

	template <bool owner>
	NDA_DEV stop scan(uint64_t cqe, uint32_t stride, uint32_t count) const
	{
		uint32_t word;

		do {
			core_.invalidate(site::cq_look, cqe, format::cqe_bytes);
			word = core_.template load_acquire<uint32_t>(cqe);
			if ((word & format::cqe_decisive) !=
				(owner ? format::cqe_owner : 0))
				break;
			cqe += stride;
		} while (--count != 0);
		return {count, word};
	}

	/* Moves the tail behind the WQE that the CQE at @cqe, the last of @count consumed,
	 * names: everything before it is done too. */
	NDA_DEV void settle(reader *r, uint64_t cqe, uint32_t count, bool error) const
	{
		/* What decided is in the first word, and was there when it was read. */
		uint32_t word = core_.template load<uint32_t>(cqe);
		uint32_t done = format::wqes_done(format::cqe_wqe_index(word), r->tail,
			NDA_QUEUE_LOAD(core_, q_, sq_depth));
		/* A receive's names no WQE. */
		bool known = Base::settle(
			r, (word & format::cqe_receive) != 0 ? UINT32_MAX : done, count);

		if (known && !error)
			return;
		/* Anew, now that the first word says that the rest is there. */
		core_.invalidate(site::cq_entry, cqe, format::cqe_bytes);
		uint32_t more =
			core_.template load<uint32_t>(cqe + format::cqe_sub_status_offset);
		uint8_t status = format::cqe_status(word);
		r->seen = status != 0 ? format::status_of(status) : NDA_BAD_RESPONSE;
		latch({r->seen, status,
			static_cast<uint8_t>(
				status != 0 ? format::cqe_sub_status(more) : 0),
			format::cqe_wqe_index(word)});
	}

	NDA_DEV void publish_ci(uint32_t ci) const
	{
		uint64_t doorbell = NDA_QUEUE_LOAD(core_, q_, in_die.cq_doorbell);

		if (doorbell != 0) {
			core_.template st_dev<uint64_t>(doorbell,
				format::cq_doorbell_value(
					NDA_QUEUE_LOAD(core_, q_, in_die.cq_template), ci));
			return;
		}
		uint64_t record = NDA_QUEUE_LOAD(core_, q_, cq_record);

		core_.template store_release<uint32_t>(record, format::cq_record(ci));
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
		q_ = q;
	}

	/* What posting changed of the line. */
	NDA_DEV void give(const Core &core, uint64_t q) const
	{
		NDA_QUEUE_STORE(core, q, state.head, limit_ - left_);
		NDA_QUEUE_STORE(core, q, state.limit, limit_);
		NDA_QUEUE_STORE(core, q, state.next_slot, slot_);
	}

	/* Nothing more is posted by it. */
	NDA_DEV void end()
	{
		left_ = 0;
		q_ = 0;
	}

	/* post_fast() with the line in members; false if the complete algorithm has to see
	 * to it. */
	template <verb what>
	NDA_DEV bool post(
		const Core &core, uint64_t symmetric, uint64_t local, uint64_t length)
	{
		if (NDA_DEV_RARE(length - 1 >= format::max_length))
			return false;
		if (NDA_DEV_RARE(left_ == 0))
			return post_signalled<what>(core, symmetric, local, length);

		write<what>(core, symmetric, local, length, 0);
		left_--;
		return true;
	}

private:
	template <verb what>
	NDA_DEV void write(const Core &core, uint64_t symmetric, uint64_t local,
		uint64_t length, uint64_t flags)
	{
		wqe_store(core, slot_, 8, format::one_sge);
		wqe_store(core, slot_, 16, kw0_);
		wqe_store(core, slot_, 24, symmetric + delta_);
		wqe_store(core, slot_, 32, kw1_ | length);
		wqe_store(core, slot_, 40, local);
		wqe_store<uint64_t>(core, slot_, 48, 0);
		wqe_store<uint64_t>(core, slot_, 56, 0);
		wqe_store_last(core, slot_, 0,
			control_word_as(what, word0_) | flags | length << 32);
		wqe_publish(core, slot_, 0, format::wqe_bytes);
		slot_ += format::wqe_bytes;
	}

	/* The WQE that ends a series without a completion, without leaving the line; false,
	 * and nothing done, if anything else shut the window. */
	template <verb what>
	NDA_DEV bool post_signalled(
		const Core &core, uint64_t symmetric, uint64_t local, uint64_t length)
	{
		uint32_t window = q_ == 0
			? 0
			: window_of_completion(core, q_, limit_, NDA_QUEUE_IN_BATCH);

		if (window == 0)
			return false;
		write<what>(core, symmetric, local, length, format::control_signalled);
		NDA_QUEUE_STORE(core, q_, state.signalled, limit_ + 1);
		limit_ += window;
		left_ = window - 1;
		return true;
	}

	/* As in the queue's line; head is limit_ - left_. */
	uint32_t left_ = 0;
	uint32_t limit_ = 0;
	uint64_t slot_ = 0;
	uint64_t word0_ = 0;
	uint64_t delta_ = 0;
	uint64_t kw0_ = 0;
	uint64_t kw1_ = 0;
	uint64_t q_ = 0; /* while it is the batch's */
};

struct Engine {
	static constexpr uint32_t table_format = NDA_FORMAT_IN_DIE;
	static constexpr bool has_inline = true;
	static constexpr bool has_inline_operand = true;
	static constexpr bool has_pieces = true;
	static constexpr bool reaches_itself = true;
	static constexpr bool keeps_order = true;

	NDA_DEV static constexpr bool emulates(verb, uint32_t) { return false; }

	/* Atomics of 8 bytes alone, and only these two. */
	NDA_DEV static constexpr bool supports(verb v, uint32_t size)
	{
		return v == verb::write || v == verb::read || v == verb::write_immediate ||
			((v == verb::fetch_add || v == verb::compare_swap) &&
				size == format::atomic_bytes);
	}

	template <class Core>
	using queue = Queue<Core>;
	template <class Core>
	using line = Line<Core>;

	NDA_DEV static bool keys_fit(uint32_t, uint32_t) { return true; }

	template <class T>
	NDA_DEV static T result(T raw)
	{
		return raw;
	}

	template <verb what, class Core>
	NDA_DEV static bool post_to_heap(const Core &core, uint64_t q, uint64_t symmetric,
		uint64_t local, uint64_t n)
	{
		heap_target target = {symmetric};

		return post_fast<what>(core, q, target, local, n);
	}

	template <verb what, class Core>
	NDA_DEV static bool post_to_region(const Core &core, uint64_t q, uint64_t remote_va,
		uint32_t rkey, uint64_t local, uint32_t lkey, uint64_t n)
	{
		region_target target;

		target.va = remote_va;
		format::key_words(rkey, lkey, target.key_words);
		return post_fast<what>(core, q, target, local, n);
	}
};

} // namespace nda::aiv::in_die

#endif
