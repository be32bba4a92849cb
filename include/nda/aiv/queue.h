/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the queues of all formats share, and what an engine, that is, the code of one
 * format, is to Device and Batch: a class with
 *
 *   table_format               the enum nda_format of its tables
 *   op_write, op_read          opcodes for the templates below
 *   operation                  a transfer of any length: opcode, want_completion, rkey,
 *                              lkey, remote_va, local_va, length
 *   queue<Core>                the complete algorithms: post(), ring(), quiet(), fence()
 *   line<Core>                 the queue's mutable line while a batch has it
 *   post_to_heap<op>(), post_to_region<op>()
 *                              the usual post in short; false where post() has to see to it
 *   keys_fit(rkey, lkey)       whether the format can hold them
 *   has_immediate, has_inline, has_atomics, has_pieces
 *                              which operations beside WRITE and READ it can express
 */
#ifndef NDA_AIV_QUEUE_H
#define NDA_AIV_QUEUE_H

#include <stdint.h>

#include <nda/aiv/core.h>
#include <nda/table.h>

namespace nda::aiv {

NDA_DEV constexpr uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

NDA_DEV constexpr bool power_of_two(uint32_t v)
{
	return v != 0 && (v & (v - 1)) == 0;
}

/* How many WQEs may be posted before the next one that must ask for a completion; 0: the
 * next one must. Not for @signal_every 1. */
NDA_DEV constexpr uint32_t unsignalled_left(
	uint32_t signal_every, uint32_t head, uint32_t signalled)
{
	uint32_t run = head - signalled;

	return run >= signal_every - 1 ? 0 : signal_every - 1 - run;
}

/* Who may use a queue, by its mutable line. */
template <class Core>
class QueueBase {
protected:
	NDA_DEV QueueBase(const Core &core, uint64_t q, uint64_t timeout_us)
		: core_(core), q_(q), timeout_us_(timeout_us)
	{}

	/* Why this queue may not be touched now; NDA_OK if it may. */
	NDA_DEV enum nda_status not_ours(bool in_batch) const
	{
		uint32_t flags = NDA_QUEUE_LOAD(core_, q_, state.flags);

		if (NDA_QUEUE_LOAD(core_, q_, valid) == 0)
			return NDA_INVALID;
		if ((flags & NDA_QUEUE_IN_VIEW) != 0)
			return NDA_QUEUE_LENT;
		return !in_batch && (flags & NDA_QUEUE_IN_BATCH) != 0 ? NDA_INVALID
								      : NDA_OK;
	}

	/* The queue's first error. */
	NDA_DEV enum nda_status sticky() const
	{
		return static_cast<enum nda_status>(
			NDA_QUEUE_LOAD(core_, q_, state.error.status));
	}

	/* Why it takes no operation. */
	NDA_DEV enum nda_status refusal(bool in_batch) const
	{
		enum nda_status status = not_ours(in_batch);

		return status != NDA_OK ? status : sticky();
	}

	/* The index after the last WQE with a completion. */
	NDA_DEV uint32_t signalled_up_to(uint32_t head) const
	{
		return NDA_QUEUE_LOAD(core_, q_, signal_every) == 1
			? head
			: NDA_QUEUE_LOAD(core_, q_, state.signalled);
	}

	/* Makes @error the queue's, unless it has one. */
	NDA_DEV void latch(const nda_queue_error &error) const
	{
		if (sticky() != NDA_OK)
			return;
		NDA_QUEUE_STORE(core_, q_, state.error.status, error.status);
		NDA_QUEUE_STORE(core_, q_, state.error.raw_status, error.raw_status);
		NDA_QUEUE_STORE(core_, q_, state.error.raw_vendor, error.raw_vendor);
		NDA_QUEUE_STORE(core_, q_, state.error.wqe_index, error.wqe_index);
	}

	const Core &core_;
	uint64_t q_;
	uint64_t timeout_us_;
};

} // namespace nda::aiv

#endif
