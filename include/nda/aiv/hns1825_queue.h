/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One 1825 queue, as a vector core drives it: post, poll, quiet, fence.
 *
 * There are two ways to post. The fast one takes everything that does not depend on the
 * operation from the queue's mutable line and has one compare, head < limit, for all that
 * could be in its way. The slow one is the complete algorithm from head, tail and the
 * immutable lines; it takes over wherever the fast one may not go, and leaves the line
 * worked out anew. Where only every k-th WQE has a completion, a short form of it posts
 * that one. All leave the same queue behind.
 *
 * Order of a post: the invalid marker of the slot after it, the WQE with its first word
 * last, the record, the doorbell. A core that stops in between leaves nothing that the NIC
 * would take for a WQE.
 *
 * A queue belongs to one core: nothing here is atomic against another poster.
 */
#ifndef NDA_AIV_HNS1825_QUEUE_H
#define NDA_AIV_HNS1825_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include <nda/aiv/core.h>
#include <nda/aiv/hns1825_state.h>
#include <nda/aiv/queue.h>
#include <nda/hw/hns1825.h>
#include <nda/table.h>

namespace nda::aiv::hns1825 {

/* The format's opcode of a verb that it has. */
NDA_DEV constexpr uint8_t opcode_of(verb v)
{
	return v == verb::read ? format::op_read : format::op_write;
}

/* Makes the slot after the one at @slot invalid for its WQE. A core that copies its WQEs
 * copies the marker along: out of the cache its line would be written back some time, over
 * the WQE that is copied there next. */
template <class Core>
NDA_DEV void write_marker(
	const Core &core, uint64_t slot, uint64_t next_slot, uint8_t marker)
{
	if constexpr (Core::stages_wqes) {
		core.template stage<uint8_t>(format::wqe_bytes, marker);
		if (next_slot != slot + format::wqe_bytes)
			core.unstage(next_slot, format::wqe_bytes, 1);
	} else {
		core.template store<uint8_t>(next_slot, marker);
		core.clean(site::wqe_marker, next_slot, 1);
	}
}

/* Sends a WQE on its way, and the marker if it is behind it. */
template <class Core>
NDA_DEV void publish(const Core &core, uint64_t slot, uint64_t next_slot)
{
	if (Core::stages_wqes && next_slot == slot + format::wqe_bytes)
		wqe_publish(core, slot, 0, format::wqe_bytes + 1);
	else
		wqe_publish(core, slot, 0, format::wqe_bytes);
}

/* The first seven of a WQE's words are stored in any order, the one with the owner bit last
 * and after them; before it all the slot is made invalid for the WQE after this one. */
template <class Core>
NDA_DEV void write_wqe(const Core &core, uint64_t slot, uint64_t next_slot, uint8_t marker,
	const uint64_t w[format::wqe_words])
{
	write_marker(core, slot, next_slot, marker);
	wqe_store(core, slot, 8, w[1]);
	wqe_store(core, slot, 16, w[2]);
	wqe_store(core, slot, 24, w[3]);
	wqe_store(core, slot, 32, w[4]);
	wqe_store(core, slot, 40, w[5]);
	wqe_store(core, slot, 48, w[6]);
	wqe_store(core, slot, 56, w[7]);
	wqe_store_last(core, slot, 0, w[0]);
	publish(core, slot, next_slot);
}

/* Tells the NIC of every WQE below @head; the queue's line is on its way to memory by
 * then, so that the host sees what the NIC saw. */
template <class Core>
NDA_DEV void ring_doorbell(const Core &core, uint64_t q, uint32_t head, uint64_t record,
	uint64_t doorbell, uint64_t value)
{
	core.clean(
		site::queue_line, q + offsetof(nda_queue, state), sizeof(nda_queue_state));
	core.dsb(site::before_record);
	core.template store_release<uint32_t>(record, format::sq_record(head));
	core.clean(site::sq_record, record, 4);
	core.dsb(site::before_doorbell);
	core.template st_dev<uint64_t>(doorbell, value);
}

/*
 * Posts one WQE with a doorbell if the window is open and the length is one WQE's; false,
 * and nothing done, if the slow path has to see to it.
 *
 * The same as write_wqe(), with each value taken where it is stored, twice if need be: the
 * compiler, which does not know that slots are no queues, would else need a register for
 * each, and moves arguments out of their way.
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

	constexpr uint8_t opcode = opcode_of(what);
	uint64_t slot = NDA_QUEUE_LOAD(core, q, state.next_slot);
	uint64_t length_be = format::bswap64(length);

	write_marker(core, slot, slot + format::wqe_bytes,
		NDA_QUEUE_LOAD(core, q, state.next_marker));
	wqe_store<uint64_t>(core, slot, 8, 0);
	wqe_store(core, slot, 24, format::command_word(opcode));
	wqe_store(core, slot, 32, format::bswap64(target.remote_va(core, q)));
	wqe_store(core, slot, 40, target.key_word0(core, q));
	wqe_store(core, slot, 48, format::bswap64(local_va));
	wqe_store(
		core, slot, 56, format::gather_word(length_be, target.key_word1(core, q)));
	wqe_store(core, slot, 16,
		format::task_word(length_be,
			format::task_bits_as(
				opcode, NDA_QUEUE_LOAD(core, q, state.next_task))));
	uint64_t word0 = NDA_QUEUE_LOAD(core, q, state.next_word0);
	wqe_store_last(core, slot, 0, word0);
	publish(core, slot, slot + format::wqe_bytes);

	uint32_t head = NDA_QUEUE_LOAD(core, q, state.head) + 1;
	NDA_QUEUE_STORE(core, q, state.head, head);
	NDA_QUEUE_STORE(core, q, state.next_slot,
		NDA_QUEUE_LOAD(core, q, state.next_slot) + format::wqe_bytes);
	NDA_QUEUE_STORE(core, q, state.next_word0, format::control_word_next(word0));
	ring_doorbell(core, q, head, NDA_QUEUE_LOAD(core, q, sq_record),
		NDA_QUEUE_LOAD(core, q, sq_doorbell),
		NDA_QUEUE_LOAD(core, q, state.doorbell));
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

	NDA_DEV enum nda_status accepts(const operation &) const { return NDA_OK; }

	NDA_DEV static uint32_t units(const operation &) { return 1; }

	NDA_DEV void refresh(
		uint32_t head, uint32_t tail, uint32_t signalled, bool in_batch) const
	{
		window w = make_window(load_geometry(), head, tail, signalled);

		NDA_QUEUE_STORE(core_, q_, state.limit, shut(in_batch) ? head : w.limit);
		NDA_QUEUE_STORE(core_, q_, state.next_slot, w.next_slot);
		NDA_QUEUE_STORE(core_, q_, state.next_word0, w.next_word0);
		NDA_QUEUE_STORE(core_, q_, state.doorbell, w.doorbell);
		NDA_QUEUE_STORE(core_, q_, state.next_task, w.next_task);
		NDA_QUEUE_STORE(core_, q_, state.next_marker, w.next_marker);
	}

	NDA_DEV void ring_to(uint32_t head) const
	{
		ring_doorbell(core_, q_, head, NDA_QUEUE_LOAD(core_, q_, sq_record),
			NDA_QUEUE_LOAD(core_, q_, sq_doorbell),
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
			op.fence)
			return false;
		geometry r = load_geometry();
		uint32_t tail = NDA_QUEUE_LOAD(core_, q, state.tail);
		uint32_t block = min_u32(r.depth, 256) - 1;
		if (head - tail >= r.capacity || (head & block) == block)
			return false;

		uint64_t slot = NDA_QUEUE_LOAD(core_, q, state.next_slot);
		uint64_t word0 = NDA_QUEUE_LOAD(core_, q, state.next_word0);
		uint64_t length_be = format::bswap64(op.length);
		uint64_t keys[2];

		format::key_words(op.rkey, op.lkey, keys);
		uint64_t w[format::wqe_words] = {word0 | format::control_signalled, 0,
			format::task_word(length_be,
				format::task_bits(opcode_of(op.op), true, false)),
			format::command_word(opcode_of(op.op)),
			format::bswap64(op.remote_va), keys[0],
			format::bswap64(op.local_va),
			format::gather_word(length_be, keys[1])};
		hns1825::write_wqe(core_, slot, slot + format::wqe_bytes,
			NDA_QUEUE_LOAD(core_, q, state.next_marker), w);

		head++;
		NDA_QUEUE_STORE(core_, q, state.head, head);
		NDA_QUEUE_STORE(core_, q, state.signalled, head);
		NDA_QUEUE_STORE(core_, q, state.limit, window_limit(r, head, tail, head));
		NDA_QUEUE_STORE(core_, q, state.next_slot, slot + format::wqe_bytes);
		NDA_QUEUE_STORE(
			core_, q, state.next_word0, format::control_word_next(word0));
		if (!in_batch)
			ring_doorbell(core_, q, head, NDA_QUEUE_LOAD(core_, q, sq_record),
				NDA_QUEUE_LOAD(core_, q, sq_doorbell),
				NDA_QUEUE_LOAD(core_, q, state.doorbell));
		return true;
	}

	NDA_DEV void write_wqe(
		const operation &op, uint32_t head, bool signalled, bool fence) const
	{
		geometry r = load_geometry();
		format::rdma what;
		uint64_t w[format::wqe_words];

		what.opcode = opcode_of(op.op);
		what.signalled = signalled;
		what.fence = fence;
		what.length = static_cast<uint32_t>(op.length);
		what.remote_va = op.remote_va;
		what.local_va = op.local_va;
		what.rkey = op.rkey;
		what.lkey = op.lkey;
		format::encode(format::rdma_wqe(what, head, r.depth), w);
		hns1825::write_wqe(core_, slot_address(r, head), slot_address(r, head + 1),
			format::invalid_marker(head + 1, r.depth), w);
	}

	template <verb what>
	NDA_DEV void write_usual(uint32_t head, bool signalled, uint64_t symmetric,
		uint64_t local_va, uint64_t length) const
	{
		geometry r = load_geometry();
		uint64_t length_be = format::bswap64(length);
		uint64_t w[format::wqe_words] = {
			format::control_word(head, r.depth, signalled), 0,
			format::task_word(length_be,
				format::task_bits(opcode_of(what), signalled, false)),
			format::command_word(opcode_of(what)),
			format::bswap64(
				symmetric + NDA_QUEUE_LOAD(core_, q_, remote_delta)),
			NDA_QUEUE_LOAD(core_, q_, key_words[0]), format::bswap64(local_va),
			format::gather_word(
				length_be, NDA_QUEUE_LOAD(core_, q_, key_words[1]))};

		hns1825::write_wqe(core_, slot_address(r, head), slot_address(r, head + 1),
			format::invalid_marker(head + 1, r.depth), w);
	}

	NDA_DEV static bool lap_bit(uint32_t ci, uint32_t depth)
	{
		return format::owner_bit(ci, depth);
	}

	NDA_DEV static bool failed(uint64_t word, uint32_t ci, uint32_t depth)
	{
		return format::cqe_look(word, ci, depth) == format::cqe_state::error;
	}

	template <bool owner>
	NDA_DEV stop scan(uint64_t cqe, uint32_t stride, uint32_t count) const
	{
		constexpr uint32_t owner_mask = uint32_t{1} << 31;
		uint64_t word;

		do {
			core_.invalidate(site::cq_look, cqe, format::cqe_bytes);
			word = core_.template load_acquire<uint64_t>(cqe);
			if (((static_cast<uint32_t>(word) & owner_mask) != 0) != owner ||
				word >= format::cqe_special)
				break;
			cqe += stride;
		} while (--count != 0);
		return {count, word};
	}

	/* Moves the tail behind the WQE that the CQE at @cqe, the last of @count consumed,
	 * names: everything before it is done too. */
	NDA_DEV void settle(reader *r, uint64_t cqe, uint32_t count, bool error) const
	{
		/* Anew, now that the first word says that the rest is there. */
		core_.invalidate(site::cq_entry, cqe, format::cqe_bytes);
		uint64_t word = core_.template load<uint64_t>(cqe + 24);
		uint16_t counter = format::cqe_wqe_counter(word);
		uint32_t done = static_cast<uint16_t>(counter - r->tail) + uint32_t{1};

		if (Base::settle(r, done, count) && !error)
			return;
		r->seen = error ? format::status_of(format::cqe_syndrome(word))
				: NDA_BAD_RESPONSE;
		latch({r->seen,
			static_cast<uint8_t>(error ? format::cqe_syndrome(word) : 0),
			static_cast<uint8_t>(error ? format::cqe_vendor(word) : 0),
			counter});
	}

	NDA_DEV void publish_ci(uint32_t ci) const
	{
		uint64_t record = NDA_QUEUE_LOAD(core_, q_, cq_record);

		core_.template store_release<uint32_t>(record, format::cq_record(ci));
		core_.clean(site::cq_record, record, 4);
	}
};

} // namespace nda::aiv::hns1825

#endif
