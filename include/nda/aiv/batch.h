/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Batch: operations on one PE that share a doorbell.
 *
 *	auto batch = device.batch(pe);
 *	batch.put_nbi(dst, src, n); ...
 *	batch.submit();
 *
 * What the queue's line holds is in the batch's members, registers where it is inlined.
 * While a batch is open its queue takes nothing else: operations of the device on that PE
 * return NDA_INVALID. submit() ends it; the next operation opens it again. A full ring
 *makes the batch ring early, for WQEs without a doorbell are never done.
 *
 * Included by nda/aiv/device.h.
 */
#ifndef NDA_AIV_BATCH_H
#define NDA_AIV_BATCH_H

#include <stdint.h>

#include <nda/aiv/device.h>

namespace nda::aiv {

template <class Core>
class Batch {
public:
	NDA_DEV Batch(Device<Core> *device, uint32_t pe) : device_(device)
	{
		if (pe >= device->n_pes_)
			return;

		const Core &core = device->core_;
		q_ = device->queue_address(pe);
		delta_ = NDA_QUEUE_LOAD(core, q_, remote_delta);
		kw0_ = NDA_QUEUE_LOAD(core, q_, key_words[0]);
		kw1_ = NDA_QUEUE_LOAD(core, q_, key_words[1]);
		open_ = device->open_batch(q_);
		if (open_)
			take_line();
	}

	/* Submits what is not submitted; its status is then that of the next quiet(). */
	NDA_DEV ~Batch()
	{
		if (open_)
			submit();
	}

	Batch(const Batch &) = delete;
	Batch &operator=(const Batch &) = delete;

	/* As Device's, without the doorbell. */
	NDA_DEV enum nda_status put_nbi(uint64_t dst, uint64_t src, uint64_t n)
	{
		return post<hns1825::format::op_write>(dst, src, n);
	}

	NDA_DEV enum nda_status get_nbi(uint64_t dst, uint64_t src, uint64_t n)
	{
		return post<hns1825::format::op_read>(src, dst, n);
	}

	/* put_nbi() or get_nbi() whose WQE asks for a completion, whatever the queue's
	 * rule, and submit(), also if the operation fails: the operation's status. */
	NDA_DEV enum nda_status put_submit(uint64_t dst, uint64_t src, uint64_t n)
	{
		enum nda_status status =
			post_slow(hns1825::format::op_write, dst, src, n, true);

		submit();
		return status;
	}

	NDA_DEV enum nda_status get_submit(uint64_t dst, uint64_t src, uint64_t n)
	{
		enum nda_status status =
			post_slow(hns1825::format::op_read, src, dst, n, true);

		submit();
		return status;
	}

	/* Rings for what the batch posted, if anything, and ends it. NDA_OK; NDA_INVALID if
	 * there is no batch to end. */
	NDA_DEV enum nda_status submit()
	{
		if (!open_)
			return NDA_INVALID;

		give_line();
		device_->close_batch(q_, limit_ - left_);
		open_ = false;
		left_ = 0;
		return NDA_OK;
	}

private:
	/* post_fast() with the line in members. */
	template <uint8_t opcode>
	NDA_DEV enum nda_status post(uint64_t symmetric, uint64_t local, uint64_t n)
	{
		namespace format = hns1825::format;

		if (NDA_DEV_RARE(left_ == 0 || n - 1 >= format::max_length))
			return post_slow(opcode, symmetric, local, n, false);

		const Core &core = device_->core_;
		uint64_t length_be = format::bswap64(n);
		uint64_t next_slot = slot_ + format::wqe_bytes;

		core.template store<uint8_t>(next_slot, marker_);
		core.clean(next_slot, 1);
		core.template store<uint64_t>(slot_ + 8, 0);
		core.template store<uint64_t>(slot_ + 16,
			format::task_word(length_be, format::task_bits_as(opcode, task_)));
		core.template store<uint64_t>(slot_ + 24, format::command_word(opcode));
		core.template store<uint64_t>(
			slot_ + 32, format::bswap64(symmetric + delta_));
		core.template store<uint64_t>(slot_ + 40, kw0_);
		core.template store<uint64_t>(slot_ + 48, format::bswap64(local));
		core.template store<uint64_t>(
			slot_ + 56, format::gather_word(length_be, kw1_));
		core.template store_release<uint64_t>(slot_, word0_);
		core.clean(slot_, format::wqe_bytes);
		left_--;
		slot_ = next_slot;
		word0_ = format::control_word_next(word0_);
		return NDA_OK;
	}

	NDA_DEV enum nda_status post_slow(uint8_t opcode, uint64_t symmetric,
		uint64_t local, uint64_t n, bool want_completion)
	{
		/* A slow path that posts nothing leaves the line as it finds it. */
		if (open_)
			give_line();

		auto result = device_->post_in_batch(
			q_, symmetric, local, n, opcode, want_completion, open_);
		open_ = result.open;
		if (open_)
			take_line();
		return result.status;
	}

	/* What posting changed of the line. */
	NDA_DEV void give_line()
	{
		const Core &core = device_->core_;

		NDA_QUEUE_STORE(core, q_, state.head, limit_ - left_);
		NDA_QUEUE_STORE(core, q_, state.limit, limit_);
		NDA_QUEUE_STORE(core, q_, state.next_slot, slot_);
		NDA_QUEUE_STORE(core, q_, state.next_word0, word0_);
	}

	/* The line's window becomes the batch's; nobody else may post by it. */
	NDA_DEV void take_line()
	{
		const Core &core = device_->core_;
		uint32_t head = NDA_QUEUE_LOAD(core, q_, state.head);

		limit_ = NDA_QUEUE_LOAD(core, q_, state.limit);
		left_ = limit_ - head;
		slot_ = NDA_QUEUE_LOAD(core, q_, state.next_slot);
		word0_ = NDA_QUEUE_LOAD(core, q_, state.next_word0);
		task_ = NDA_QUEUE_LOAD(core, q_, state.next_task);
		marker_ = NDA_QUEUE_LOAD(core, q_, state.next_marker);
		NDA_QUEUE_STORE(core, q_, state.limit, head);
	}

	Device<Core> *device_;
	uint64_t q_ = 0; /* 0: no such PE */
	bool open_ = false;
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

} // namespace nda::aiv

#endif
