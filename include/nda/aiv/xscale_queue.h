/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One XSCALE queue, as a vector core drives it, and the engine that Device and Batch take:
 *
 *	nda::aiv::Device<nda::aiv::SoftCore, nda::aiv::xscale::Engine> nda;
 *
 * There are two ways to post. The fast one takes everything that does not depend on the
 * operation from the queue's mutable line and has one compare, head < limit, for all that
 * could be in its way. The slow one is the complete algorithm from head, tail and the
 * immutable lines; it takes over wherever the fast one may not go, and leaves the line
 * worked out anew. Where only every k-th WQE has a completion, a short form of it posts
 * that one. All leave the same queue behind.
 *
 * Order of a post: the WQE, all of its 128 bytes, the word that has its index last, then
 * the doorbell. There is no record.
 *
 * A CQ's first lap waits for owner bits of 0: a ring that nobody filled with
 * cqe_ring_fill looks like successes. libnda fills it; and what names another QP than the
 * queue's, as zeros do, is no completion of it, but ends it with NDA_BAD_RESPONSE.
 *
 * Atomics are the masked forms, whose byte order is settled. A queue may ask for the plain
 * forms of fetch_add and compare_swap of 8 bytes, which the public library uses.
 *
 * A queue belongs to one core: nothing here is atomic against another poster.
 */
#ifndef NDA_AIV_XSCALE_QUEUE_H
#define NDA_AIV_XSCALE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include <nda/aiv/core.h>
#include <nda/aiv/queue.h>
#include <nda/aiv/xscale_state.h>
#include <nda/hw/xscale.h>
#include <nda/table.h>

namespace nda::aiv::xscale {

/* What follows the segments of a WQE with one local segment, and then the word that has its
 * index. */
template <class Core>
NDA_DEV void finish_wqe(const Core &core, uint64_t slot, uint64_t id)
{
	wqe_store<uint64_t>(core, slot, 48, 0);
	wqe_store<uint64_t>(core, slot, 56, 0);
	wqe_store<uint64_t>(core, slot, 64, 0);
	wqe_store<uint64_t>(core, slot, 72, 0);
	wqe_store<uint64_t>(core, slot, 80, 0);
	wqe_store<uint64_t>(core, slot, 88, 0);
	wqe_store<uint64_t>(core, slot, 96, 0);
	wqe_store<uint64_t>(core, slot, 104, 0);
	wqe_store<uint64_t>(core, slot, 112, 0);
	wqe_store<uint64_t>(core, slot, 120, 0);
	wqe_store_last(core, slot, 8, id);
	wqe_publish(core, slot, 0, format::wqe_bytes);
}

/* Tells the NIC of every WQE that @value covers; the queue's line is in memory by then, so
 * that the host sees what the NIC saw. */
template <class Core>
NDA_DEV void ring_doorbell(const Core &core, uint64_t q, uint64_t doorbell, uint64_t value)
{
	core.clean(
		site::queue_line, q + offsetof(nda_queue, state), sizeof(nda_queue_state));
	core.dsb(site::before_doorbell);
	core.template st_dev<uint64_t>(doorbell, value);
}

NDA_DEV constexpr uint8_t opcode_of(verb v)
{
	return v == verb::read ? format::op_read : format::op_write;
}

/* Posts one WQE with a doorbell if the window is open and the length is one WQE's; false,
 * and nothing done, if the slow path has to see to it. Each value is taken where it is
 * stored: the compiler does not know that slots are no queues. */
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

	wqe_store(core, slot, 0, format::control_word(opcode_of(what), 2, length));
	wqe_store(core, slot, 16, length | target.key_word0(core, q));
	wqe_store(core, slot, 24, target.remote_va(core, q));
	wqe_store(core, slot, 32, length | target.key_word1(core, q));
	wqe_store(core, slot, 40, local_va);
	uint64_t id = NDA_QUEUE_LOAD(core, q, state.next_word0);
	finish_wqe(core, slot, id);

	NDA_QUEUE_STORE(core, q, state.head, NDA_QUEUE_LOAD(core, q, state.head) + 1);
	NDA_QUEUE_STORE(core, q, state.next_slot, slot + format::wqe_bytes);
	NDA_QUEUE_STORE(core, q, state.next_word0, format::id_word_next(id));
	uint64_t value = NDA_QUEUE_LOAD(core, q, state.doorbell);
	NDA_QUEUE_STORE(core, q, state.doorbell, value + format::units_per_wqe);
	ring_doorbell(core, q, NDA_QUEUE_LOAD(core, q, sq_doorbell), value);
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
	using Base::latch;
	using Base::q_;
	using Base::shut;
	using Base::sticky;
	using typename Base::reader;
	using typename Base::stop;

	NDA_DEV geometry load_geometry() const
	{
		return make_geometry(NDA_QUEUE_LOAD(core_, q_, sq_base),
			NDA_QUEUE_LOAD(core_, q_, doorbell_template),
			NDA_QUEUE_LOAD(core_, q_, sq_depth),
			NDA_QUEUE_LOAD(core_, q_, cq_depth),
			NDA_QUEUE_LOAD(core_, q_, signal_every));
	}

	NDA_DEV uint32_t capacity() const { return load_geometry().capacity; }

	NDA_DEV static uint32_t units(const operation &) { return 1; }

	NDA_DEV static enum nda_status accepts(const operation &op)
	{
		if (op.inline_data || op.inline_operand || op.op == verb::write_signal ||
			op.op == verb::add_f32 ||
			(is_atomic(op.op) && op.size != 4 && op.size != 8))
			return NDA_NOT_SUPPORTED;
		/* What is empty exists only with an immediate value; a READ is invalid. */
		if (op.length == 0 && op.even_empty && op.op != verb::write_immediate)
			return NDA_INVALID;
		if (op.n_pieces == 0)
			return NDA_OK;
		return op.n_pieces <= (op.op == verb::read ? 1 : format::max_pieces) &&
				op.length <= max_length
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
		NDA_QUEUE_STORE(core_, q_, state.doorbell, w.doorbell);
	}

	NDA_DEV void ring_to(uint32_t head) const
	{
		ring_doorbell(core_, q_, NDA_QUEUE_LOAD(core_, q_, sq_doorbell),
			format::doorbell_value(
				NDA_QUEUE_LOAD(core_, q_, doorbell_template), head));
	}

	/*
	 * Posts the WQE that ends a series without a completion, from the words prepared in
	 * the line; false, and nothing done, if anything else shut the window too. Once in
	 * every interval: the complete algorithm would cost more than the completions that
	 * it saves.
	 */
	NDA_DEV bool post_signalled(const operation &op, bool in_batch)
	{
		/* By value: the compiler does not know that slots are no members. */
		uint64_t q = q_;
		uint32_t head = NDA_QUEUE_LOAD(core_, q, state.head);
		uint32_t every = NDA_QUEUE_LOAD(core_, q, signal_every);

		if (every == 1 ||
			head - NDA_QUEUE_LOAD(core_, q, state.signalled) != every - 1 ||
			NDA_QUEUE_LOAD(core_, q, state.flags) !=
				(in_batch ? NDA_QUEUE_IN_BATCH : 0) ||
			sticky() != NDA_OK || op.length - 1 >= format::max_length ||
			op.op > verb::read || op.n_pieces != 0 || op.fence)
			return false;
		geometry r = load_geometry();
		uint32_t tail = NDA_QUEUE_LOAD(core_, q, state.tail);
		if (head - tail >= r.capacity || (head & (r.depth - 1)) == r.depth - 1)
			return false;

		uint64_t slot = NDA_QUEUE_LOAD(core_, q, state.next_slot);
		uint64_t id = NDA_QUEUE_LOAD(core_, q, state.next_word0);
		uint32_t length = static_cast<uint32_t>(op.length);
		wqe_store(
			core_, slot, 0, format::control_word(opcode_of(op.op), 2, length));
		wqe_store(core_, slot, 16, format::segment_word(length, op.rkey));
		wqe_store(core_, slot, 24, op.remote_va);
		wqe_store(core_, slot, 32, format::segment_word(length, op.lkey));
		wqe_store(core_, slot, 40, op.local_va);
		finish_wqe(core_, slot, id | format::id_signalled);

		uint64_t value = NDA_QUEUE_LOAD(core_, q, state.doorbell);
		head++;
		NDA_QUEUE_STORE(core_, q, state.head, head);
		NDA_QUEUE_STORE(core_, q, state.signalled, head);
		NDA_QUEUE_STORE(core_, q, state.limit, window_limit(r, head, tail, head));
		NDA_QUEUE_STORE(core_, q, state.next_slot, slot + format::wqe_bytes);
		NDA_QUEUE_STORE(core_, q, state.next_word0, format::id_word_next(id));
		NDA_QUEUE_STORE(core_, q, state.doorbell, value + format::units_per_wqe);
		if (!in_batch)
			ring_doorbell(
				core_, q, NDA_QUEUE_LOAD(core_, q, sq_doorbell), value);
		return true;
	}

	/* The opcode of an atomic, and what it is made of. By masks: a chain of cases may
	 * become a table, which would be static data. */
	NDA_DEV uint8_t atomic_of(const operation &op, bool plain, format::atomic *a) const
	{
		static_assert(format::op_masked_compare_swap4 ==
					format::op_masked_fetch_add4 - 1 &&
				format::op_masked_compare_swap ==
					format::op_masked_fetch_add - 1 &&
				format::op_compare_swap == format::op_fetch_add - 1,
			"each compare-and-swap comes before its fetch-and-add");
		bool adds = op.op == verb::fetch_add || op.op == verb::fetch_xor;
		uint64_t compares = all_if(op.op == verb::compare_swap);
		uint64_t ands = all_if(op.op == verb::fetch_and);
		uint64_t ors = all_if(op.op == verb::fetch_or);
		/* Those that the plain forms can express. */
		plain = plain && ((compares & 1) != 0 || op.op == verb::fetch_add);

		a->value = op.operand;
		a->boundary = all_if(op.op == verb::fetch_xor);
		a->compare = op.compare & compares;
		a->compare_mask = compares;
		a->swap_mask = (~op.operand & ands) | (op.operand & ors) | ~(ands | ors);
		return static_cast<uint8_t>(
			(op.size == 4           ? format::op_masked_fetch_add4
					: plain ? format::op_fetch_add
						: format::op_masked_fetch_add) -
			(adds ? 0 : 1));
	}

	NDA_DEV static uint64_t all_if(bool condition)
	{
		return uint64_t{0} - uint64_t{condition};
	}

	NDA_DEV void write_segment(uint64_t slot, uint32_t offset, uint32_t length,
		uint32_t key, uint64_t va) const
	{
		wqe_store(core_, slot, offset, format::segment_word(length, key));
		wqe_store(core_, slot, offset + 8, va);
	}

	/* Ends a WQE of which @used bytes are written, but for the word with its index. */
	NDA_DEV void write_rest(uint64_t slot, uint32_t used, uint64_t id) const
	{
		for (; used < format::wqe_bytes; used += 8)
			wqe_store<uint64_t>(core_, slot, used, 0);
		wqe_store_last(core_, slot, 8, id);
		wqe_publish(core_, slot, 0, format::wqe_bytes);
	}

	NDA_DEV void write_atomic(const operation &op, uint64_t slot, uint64_t id) const
	{
		uint32_t forms = NDA_QUEUE_LOAD(core_, q_, xscale.atomics);
		format::atomic a;
		uint64_t operands[4];
		uint8_t opcode = atomic_of(op, (forms & NDA_XSCALE_PLAIN_ATOMICS) != 0, &a);

		format::encode_atomic(
			opcode, a, (forms & NDA_XSCALE_LITTLE_ENDIAN) != 0, operands);
		wqe_store(core_, slot, 0,
			format::control_word(opcode, format::atomic_segments(opcode),
				format::atomic_length(opcode)));
		write_segment(slot, 16, op.size, op.rkey, op.remote_va);
		write_segment(slot, 32, op.size, op.lkey, op.local_va);
		for (uint32_t i = 0; i < 4; i++)
			wqe_store(core_, slot, 48 + i * 8, operands[i]);
		write_rest(slot, 80, id | format::id_inline);
	}

	/* An empty one, which has an immediate value, has no local segment. */
	NDA_DEV void write_transfer(const operation &op, uint64_t slot, uint64_t id) const
	{
		uint32_t length = static_cast<uint32_t>(op.length);
		uint32_t pieces = op.n_pieces != 0 ? op.n_pieces : length != 0 ? 1 : 0;
		uint64_t control =
			format::control_word(opcode_of(op.op), 1 + pieces, length);

		if (op.op == verb::write_immediate) {
			control |= format::control_immediate;
			id |= op.immediate;
		}
		wqe_store(core_, slot, 0, control);
		write_segment(slot, 16, length, op.rkey, op.remote_va);
		if (op.n_pieces == 0 && length != 0)
			write_segment(slot, 32, length, op.lkey, op.local_va);
		for (uint32_t i = 0; i < op.n_pieces; i++)
			write_segment(slot, 32 + i * 16,
				static_cast<uint32_t>(op.pieces[i].length), op.lkey,
				op.pieces[i].addr);
		write_rest(slot, 32 + pieces * 16, id);
	}

	NDA_DEV void write_wqe(
		const operation &op, uint32_t head, bool signalled, bool fence) const
	{
		uint64_t slot = slot_address(load_geometry(), head);
		uint64_t id = format::id_word(head, signalled,
			fence ? NDA_QUEUE_LOAD(core_, q_, xscale.fence_mode) : 0);

		if (is_atomic(op.op))
			write_atomic(op, slot, id);
		else
			write_transfer(op, slot, id);
	}

	template <verb what>
	NDA_DEV void write_usual(uint32_t head, bool signalled, uint64_t symmetric,
		uint64_t local_va, uint64_t length) const
	{
		uint64_t slot = slot_address(load_geometry(), head);

		wqe_store(core_, slot, 0, format::control_word(opcode_of(what), 2, length));
		wqe_store(
			core_, slot, 16, length | NDA_QUEUE_LOAD(core_, q_, key_words[0]));
		wqe_store(core_, slot, 24,
			symmetric + NDA_QUEUE_LOAD(core_, q_, remote_delta));
		wqe_store(
			core_, slot, 32, length | NDA_QUEUE_LOAD(core_, q_, key_words[1]));
		wqe_store(core_, slot, 40, local_va);
		finish_wqe(core_, slot, format::id_word(head, signalled, 0));
	}

	NDA_DEV static bool lap_bit(uint32_t ci, uint32_t depth)
	{
		return format::owner_bit(ci, depth);
	}

	/* scan() has seen both words. */
	NDA_DEV static bool failed(uint64_t word, uint32_t, uint32_t) { return word != 0; }

	template <bool owner>
	NDA_DEV stop scan(uint64_t cqe, uint32_t stride, uint32_t count) const
	{
		do {
			core_.invalidate(site::cq_look, cqe, format::cqe_bytes);
			uint64_t word = core_.template load_acquire<uint64_t>(cqe + 24);
			if ((word >> 63 != 0) != owner)
				return {count, 0};
			/* Anew, now that the last word says that the rest is there. */
			core_.invalidate(site::cq_entry, cqe, format::cqe_bytes);
			if (core_.template load<uint8_t>(cqe) != format::error_none)
				return {count, 1};
			cqe += stride;
		} while (--count != 0);
		return {0, 0};
	}

	/* Moves the tail behind the WQE that the CQE at @cqe, the last of @count consumed,
	 * names: everything before it is done too. */
	NDA_DEV void settle(reader *r, uint64_t cqe, uint32_t count, bool) const
	{
		uint64_t word0 = core_.template load<uint64_t>(cqe);
		uint8_t error = format::cqe_error(word0);
		uint32_t index =
			format::cqe_wqe_index(core_.template load<uint64_t>(cqe + 24));
		uint32_t done = ((index - r->tail) & (format::wqe_index_span - 1)) + 1;

		if (!format::cqe_of_qp(word0, NDA_QUEUE_LOAD(core_, q_, qpn)))
			r->lost = true;
		else if (Base::settle(r, done, count) && error == 0)
			return;
		r->seen = error != 0 ? format::status_of(error) : NDA_BAD_RESPONSE;
		latch({r->seen, error, 0, static_cast<uint16_t>(index)});
	}

	NDA_DEV void publish_ci(uint32_t ci) const
	{
		core_.template st_dev<uint64_t>(
			NDA_QUEUE_LOAD(core_, q_, xscale.cq_doorbell),
			format::cq_doorbell_value(
				NDA_QUEUE_LOAD(core_, q_, xscale.cq_doorbell_template),
				ci));
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
		remote_key_ = NDA_QUEUE_LOAD(core, q, key_words[0]);
		local_key_ = NDA_QUEUE_LOAD(core, q, key_words[1]);
	}

	/* The line's window becomes the batch's; nobody else may post by it. */
	NDA_DEV void take(const Core &core, uint64_t q)
	{
		uint32_t head = NDA_QUEUE_LOAD(core, q, state.head);

		limit_ = NDA_QUEUE_LOAD(core, q, state.limit);
		left_ = limit_ - head;
		slot_ = NDA_QUEUE_LOAD(core, q, state.next_slot);
		id_ = NDA_QUEUE_LOAD(core, q, state.next_word0);
		NDA_QUEUE_STORE(core, q, state.limit, head);
	}

	/* What posting changed of the line. */
	NDA_DEV void give(const Core &core, uint64_t q) const
	{
		uint32_t head = limit_ - left_;
		uint64_t posted = head - NDA_QUEUE_LOAD(core, q, state.head);

		NDA_QUEUE_STORE(core, q, state.head, head);
		NDA_QUEUE_STORE(core, q, state.limit, limit_);
		NDA_QUEUE_STORE(core, q, state.next_slot, slot_);
		NDA_QUEUE_STORE(core, q, state.next_word0, id_);
		NDA_QUEUE_STORE(core, q, state.doorbell,
			NDA_QUEUE_LOAD(core, q, state.doorbell) +
				posted * format::units_per_wqe);
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

		wqe_store(core, slot_, 0, format::control_word(opcode_of(what), 2, length));
		wqe_store(core, slot_, 16, length | remote_key_);
		wqe_store(core, slot_, 24, symmetric + delta_);
		wqe_store(core, slot_, 32, length | local_key_);
		wqe_store(core, slot_, 40, local);
		finish_wqe(core, slot_, id_);
		left_--;
		slot_ += format::wqe_bytes;
		id_ = format::id_word_next(id_);
		return true;
	}

private:
	/* As in the queue's line; head is limit_ - left_. */
	uint32_t left_ = 0;
	uint32_t limit_ = 0;
	uint64_t slot_ = 0;
	uint64_t id_ = 0;
	uint64_t delta_ = 0;
	uint64_t remote_key_ = 0;
	uint64_t local_key_ = 0;
};

struct Engine {
	static constexpr uint32_t table_format = NDA_FORMAT_XSCALE;
	static constexpr bool has_inline = false; /* no source shows the layout */
	static constexpr bool has_inline_operand = false;
	static constexpr bool has_pieces = true;
	static constexpr bool reaches_itself = true;
	static constexpr bool keeps_order = true;

	NDA_DEV static constexpr bool supports(verb v, uint32_t size)
	{
		return v == verb::write || v == verb::read || v == verb::write_immediate ||
			(is_atomic(v) && (size == 4 || size == 8));
	}

	NDA_DEV static constexpr bool emulates(verb, uint32_t) { return false; }

	NDA_DEV static bool keys_fit(uint32_t, uint32_t) { return true; }

	/* The NIC leaves 4 bytes in the other order. */
	template <class T>
	NDA_DEV static T result(T raw)
	{
		if constexpr (sizeof(T) == 4)
			return static_cast<T>(format::result4(static_cast<uint32_t>(raw)));
		else
			return raw;
	}

	template <class Core>
	using queue = Queue<Core>;
	template <class Core>
	using line = Line<Core>;

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
		region_target target = {remote_va,
			{format::segment_word(0, rkey), format::segment_word(0, lkey)}};

		return post_fast<what>(core, q, target, local, n);
	}
};

} // namespace nda::aiv::xscale

#endif
