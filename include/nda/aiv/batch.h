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
 * makes the batch ring early, for WQEs without a doorbell are never done.
 *
 * Included by nda/aiv/device.h.
 */
#ifndef NDA_AIV_BATCH_H
#define NDA_AIV_BATCH_H

#include <stdint.h>

#include <nda/aiv/device.h>

namespace nda::aiv {

template <class Core, class Engine>
class Batch {
public:
	NDA_DEV Batch(Device<Core, Engine> *device, uint32_t pe) : device_(device)
	{
		if (pe >= device->n_pes_)
			return;

		q_ = device->queue_address(pe);
		line_.begin(device->core_, q_);
		open_ = device->open_batch(q_);
		if (open_)
			line_.take(device->core_, q_);
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
		return post<verb::write>(dst, src, n);
	}

	NDA_DEV enum nda_status get_nbi(uint64_t dst, uint64_t src, uint64_t n)
	{
		return post<verb::read>(src, dst, n);
	}

	/* put_nbi() or get_nbi() whose WQE asks for a completion, whatever the queue's
	 * rule, and submit(), also if the operation fails: the operation's status. */
	NDA_DEV enum nda_status put_submit(uint64_t dst, uint64_t src, uint64_t n)
	{
		enum nda_status status = post_slow(verb::write, dst, src, n, true);

		submit();
		return status;
	}

	NDA_DEV enum nda_status get_submit(uint64_t dst, uint64_t src, uint64_t n)
	{
		enum nda_status status = post_slow(verb::read, src, dst, n, true);

		submit();
		return status;
	}

	/* Rings for what the batch posted, if anything, and ends it. NDA_OK; NDA_INVALID if
	 * there is no batch to end. */
	NDA_DEV enum nda_status submit()
	{
		if (!open_)
			return NDA_INVALID;

		line_.give(device_->core_, q_);
		device_->close_batch(q_);
		open_ = false;
		line_.end();
		return NDA_OK;
	}

private:
	template <verb what>
	NDA_DEV enum nda_status post(uint64_t symmetric, uint64_t local, uint64_t n)
	{
		if (line_.template post<what>(device_->core_, symmetric, local, n))
			return NDA_OK;
		return post_slow(what, symmetric, local, n, false);
	}

	NDA_DEV enum nda_status post_slow(verb what, uint64_t symmetric, uint64_t local,
		uint64_t n, bool want_completion)
	{
		/* A slow path that posts nothing leaves the line as it finds it. */
		if (open_)
			line_.give(device_->core_, q_);

		auto result = device_->post_in_batch(
			q_, symmetric, local, n, what, want_completion, open_);
		open_ = result.open;
		if (open_)
			line_.take(device_->core_, q_);
		return result.status;
	}

	Device<Core, Engine> *device_;
	uint64_t q_ = 0; /* 0: no such PE */
	bool open_ = false;
	typename Engine::template line<Core> line_;
};

} // namespace nda::aiv

#endif
