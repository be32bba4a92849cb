/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The 1825 as Device and Batch use it, see nda/aiv/queue.h.
 */
#ifndef NDA_AIV_HNS1825_ENGINE_H
#define NDA_AIV_HNS1825_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include <nda/aiv/hns1825_queue.h>
#include <nda/hw/hns1825.h>
#include <nda/table.h>

namespace nda::aiv::hns1825 {

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
		task_ = NDA_QUEUE_LOAD(core, q, state.next_task);
		marker_ = NDA_QUEUE_LOAD(core, q, state.next_marker);
		NDA_QUEUE_STORE(core, q, state.limit, head);
	}

	/* What posting changed of the line. */
	NDA_DEV void give(const Core &core, uint64_t q) const
	{
		NDA_QUEUE_STORE(core, q, state.head, limit_ - left_);
		NDA_QUEUE_STORE(core, q, state.limit, limit_);
		NDA_QUEUE_STORE(core, q, state.next_slot, slot_);
		NDA_QUEUE_STORE(core, q, state.next_word0, word0_);
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

		constexpr uint8_t opcode = opcode_of(what);
		uint64_t length_be = format::bswap64(length);
		uint64_t next_slot = slot_ + format::wqe_bytes;

		write_marker(core, slot_, next_slot, marker_);
		wqe_store<uint64_t>(core, slot_, 8, 0);
		wqe_store(core, slot_, 16,
			format::task_word(length_be, format::task_bits_as(opcode, task_)));
		wqe_store(core, slot_, 24, format::command_word(opcode));
		wqe_store(core, slot_, 32, format::bswap64(symmetric + delta_));
		wqe_store(core, slot_, 40, kw0_);
		wqe_store(core, slot_, 48, format::bswap64(local));
		wqe_store(core, slot_, 56, format::gather_word(length_be, kw1_));
		wqe_store_last(core, slot_, 0, word0_);
		publish(core, slot_, next_slot);
		left_--;
		slot_ = next_slot;
		word0_ = format::control_word_next(word0_);
		return true;
	}

private:
	uint8_t marker_ = 0;
	/* As in the queue's line; head is limit_ - left_. */
	uint32_t left_ = 0;
	uint32_t limit_ = 0;
	uint64_t slot_ = 0;
	uint64_t word0_ = 0;
	uint64_t task_ = 0;
	uint64_t delta_ = 0;
	uint64_t kw0_ = 0;
	uint64_t kw1_ = 0;
};

struct Engine {
	static constexpr uint32_t table_format = NDA_FORMAT_HNS1825;
	static constexpr bool has_inline = false;
	static constexpr bool has_inline_operand = false;
	static constexpr bool has_pieces = false;
	static constexpr bool reaches_itself = true;
	static constexpr bool keeps_order = true;

	NDA_DEV static constexpr bool emulates(verb, uint32_t) { return false; }

	NDA_DEV static constexpr bool supports(verb v, uint32_t)
	{
		return v == verb::write || v == verb::read;
	}

	template <class Core>
	using queue = Queue<Core>;
	template <class Core>
	using line = Line<Core>;

	NDA_DEV static bool keys_fit(uint32_t, uint32_t lkey)
	{
		return format::lkey_fits(lkey);
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

} // namespace nda::aiv::hns1825

#endif
