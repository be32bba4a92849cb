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

/* A WRITE or READ of any length. */
struct operation {
	uint8_t opcode;
	bool want_completion; /* of the last WQE, beside those of every k-th */
	uint32_t rkey;
	uint32_t lkey;
	uint64_t remote_va;
	uint64_t local_va;
	uint64_t length;
};

/* The first seven of a WQE's words are stored in any order, the one with the owner bit last
 * and after them; before it all the slot is made invalid for the WQE after this one. */
template <class Core>
NDA_DEV void write_wqe(const Core &core, uint64_t slot, uint64_t next_slot, uint8_t marker,
	const uint64_t w[format::wqe_words])
{
	core.template store<uint8_t>(next_slot, marker);
	core.clean(next_slot, 1);
	core.template store<uint64_t>(slot + 8, w[1]);
	core.template store<uint64_t>(slot + 16, w[2]);
	core.template store<uint64_t>(slot + 24, w[3]);
	core.template store<uint64_t>(slot + 32, w[4]);
	core.template store<uint64_t>(slot + 40, w[5]);
	core.template store<uint64_t>(slot + 48, w[6]);
	core.template store<uint64_t>(slot + 56, w[7]);
	core.template store_release<uint64_t>(slot, w[0]);
	core.clean(slot, format::wqe_bytes);
}

/* Tells the NIC of every WQE below @head; the queue's line is on its way to memory by
 * then, so that the host sees what the NIC saw. */
template <class Core>
NDA_DEV void ring_doorbell(const Core &core, uint64_t q, uint32_t head, uint64_t record,
	uint64_t doorbell, uint64_t value)
{
	core.clean(q + offsetof(nda_queue, state), sizeof(nda_queue_state));
	core.dsb();
	core.template store_release<uint32_t>(record, format::sq_record(head));
	core.clean(record, 4);
	core.dsb();
	core.st_dev(doorbell, value);
}

/* Where an operation goes and by which keys, asked for in the order of the WQE's words: the
 * peer's heap, all from the queue's line; @symmetric is the address in the own heap. */
struct heap_target {
	uint64_t symmetric;

	template <class Core>
	NDA_DEV uint64_t remote_va(const Core &core, uint64_t q) const
	{
		return symmetric + NDA_QUEUE_LOAD(core, q, remote_delta);
	}
	template <class Core>
	NDA_DEV uint64_t key_word0(const Core &core, uint64_t q) const
	{
		return NDA_QUEUE_LOAD(core, q, key_words[0]);
	}
	template <class Core>
	NDA_DEV uint64_t key_word1(const Core &core, uint64_t q) const
	{
		return NDA_QUEUE_LOAD(core, q, key_words[1]);
	}
};

/* ... or a region outside the heap. */
struct region_target {
	uint64_t va;
	uint64_t key_words[2];

	template <class Core>
	NDA_DEV uint64_t remote_va(const Core &, uint64_t) const
	{
		return va;
	}
	template <class Core>
	NDA_DEV uint64_t key_word0(const Core &, uint64_t) const
	{
		return key_words[0];
	}
	template <class Core>
	NDA_DEV uint64_t key_word1(const Core &, uint64_t) const
	{
		return key_words[1];
	}
};

/*
 * Posts one WQE with a doorbell if the window is open and the length is one WQE's; false,
 * and nothing done, if the slow path has to see to it.
 *
 * The same as write_wqe(), with each value taken where it is stored, twice if need be: the
 * compiler, which does not know that slots are no queues, would else need a register for
 * each, and moves arguments out of their way.
 */
template <uint8_t opcode, class Core, class Target>
NDA_DEV bool post_fast(const Core &core, uint64_t q, const Target &target,
	uint64_t local_va, uint64_t length)
{
	if (NDA_DEV_RARE(static_cast<int32_t>(NDA_QUEUE_LOAD(core, q, state.head) -
				 NDA_QUEUE_LOAD(core, q, state.limit)) >= 0))
		return false;
	if (NDA_DEV_RARE(length - 1 >= format::max_length))
		return false;

	uint64_t slot = NDA_QUEUE_LOAD(core, q, state.next_slot);
	uint64_t length_be = format::bswap64(length);

	core.template store<uint8_t>(
		slot + format::wqe_bytes, NDA_QUEUE_LOAD(core, q, state.next_marker));
	core.clean(slot + format::wqe_bytes, 1);
	core.template store<uint64_t>(slot + 8, 0);
	core.template store<uint64_t>(slot + 24, format::command_word(opcode));
	core.template store<uint64_t>(
		slot + 32, format::bswap64(target.remote_va(core, q)));
	core.template store<uint64_t>(slot + 40, target.key_word0(core, q));
	core.template store<uint64_t>(slot + 48, format::bswap64(local_va));
	core.template store<uint64_t>(
		slot + 56, format::gather_word(length_be, target.key_word1(core, q)));
	core.template store<uint64_t>(slot + 16,
		format::task_word(length_be,
			format::task_bits_as(
				opcode, NDA_QUEUE_LOAD(core, q, state.next_task))));
	uint64_t word0 = NDA_QUEUE_LOAD(core, q, state.next_word0);
	core.template store_release<uint64_t>(slot, word0);
	core.clean(slot, format::wqe_bytes);

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

/* The slow path, polling and the rest. A value of this is made for each call. */
template <class Core>
class Queue : private QueueBase<Core> {
public:
	/* @q: address of the struct nda_queue. @timeout_us: of a call that waits. */
	NDA_DEV Queue(const Core &core, uint64_t q, uint64_t timeout_us)
		: QueueBase<Core>(core, q, timeout_us)
	{}

	/*
	 * Posts @op, in as many WQEs as its length needs and none for 0. Waits for credit
	 * up to the deadline: NDA_TIMEOUT then, with the WQEs posted so far on their way.
	 * @in_batch: the caller has the batch open and rings later; limit then is the
	 * batch's.
	 */
	NDA_DEV_SLOW enum nda_status post(const operation &op, bool in_batch) noexcept
	{
		return post_signalled(op, in_batch) ? NDA_OK : post_any(op, in_batch);
	}

	/* The same by the complete algorithm alone. */
	NDA_DEV_SLOW enum nda_status post_any(const operation &op, bool in_batch) noexcept
	{
		enum nda_status status = refusal(in_batch);
		operation part = op;

		while (status == NDA_OK && part.length != 0) {
			uint64_t length = part.length < format::max_length
				? part.length
				: format::max_length;

			Deadline<Core> deadline(core_, timeout_us_);
			status = wait_for_credit(in_batch, &deadline);
			if (status != NDA_OK)
				break;
			post_one(part, static_cast<uint32_t>(length),
				part.length == length && part.want_completion, in_batch);
			if (!in_batch)
				ring();
			part.remote_va += length;
			part.local_va += length;
			part.length -= length;
		}
		return status;
	}

	/* Tells the NIC of everything posted. */
	NDA_DEV void ring()
	{
		uint32_t head = NDA_QUEUE_LOAD(core_, q_, state.head);

		NDA_QUEUE_STORE(core_, q_, state.rung, static_cast<uint16_t>(head));
		ring_doorbell(core_, q_, head, NDA_QUEUE_LOAD(core_, q_, sq_record),
			NDA_QUEUE_LOAD(core_, q_, sq_doorbell),
			format::doorbell_value(
				NDA_QUEUE_LOAD(core_, q_, doorbell_template), head));
	}

	/*
	 * Consumes CQEs up to consumer index @target, waiting for them up to the deadline.
	 * Stops after the first error CQE, which is consumed like any other, with its
	 * status; NDA_TIMEOUT at the deadline. What was consumed is published in every
	 * case.
	 */
	NDA_DEV enum nda_status poll_cq(uint32_t target)
	{
		enum nda_status status = not_ours(false);

		if (status != NDA_OK)
			return status;

		Deadline<Core> deadline(core_, timeout_us_);
		reader r = start_reading();
		uint32_t first = r.ci;
		bool expired = false;

		while (static_cast<int32_t>(target - r.ci) > 0) {
			if (consume(&r, target - r.ci) != 0) {
				status = static_cast<enum nda_status>(r.seen);
				if (status != NDA_OK)
					break;
				continue;
			}
			if (expired) {
				status = NDA_TIMEOUT;
				break;
			}
			expired = deadline.passed();
			core_.relax();
		}
		publish(r, first);
		return status;
	}

	/*
	 * Waits up to the deadline until everything posted is done. The queue's sticky
	 * error, the first of the CQEs consumed if it has none yet; after an error it goes
	 * on over the CQEs of the flushed WQEs.
	 */
	NDA_DEV enum nda_status quiet(Deadline<Core> *deadline)
	{
		enum nda_status status = not_ours(false);

		if (status != NDA_OK)
			return status;

		reader r = start_reading();
		if (r.head == r.tail)
			return sticky();
		if (signalled_up_to(r.head) != r.head && sticky() == NDA_OK) {
			status = post_flush(deadline);
			if (status != NDA_OK)
				return status;
			r = start_reading();
		}

		uint32_t first = r.ci;
		consume(&r, r.head - r.tail);
		if (NDA_DEV_RARE(r.tail != r.head))
			return wait_until_quiet(r, first, deadline);
		publish(r, first);
		return sticky();
	}

	/* What is posted next starts after every READ posted before; WRITEs of one queue
	 * keep their order by themselves. */
	NDA_DEV enum nda_status fence()
	{
		enum nda_status status = refusal(false);
		uint32_t head = NDA_QUEUE_LOAD(core_, q_, state.head);

		if (status != NDA_OK || head == NDA_QUEUE_LOAD(core_, q_, state.tail))
			return status;
		NDA_QUEUE_STORE(core_, q_, state.flags,
			static_cast<uint8_t>(NDA_QUEUE_LOAD(core_, q_, state.flags) |
				NDA_QUEUE_IN_FENCE));
		NDA_QUEUE_STORE(core_, q_, state.limit, head);
		return NDA_OK;
	}

private:
	using QueueBase<Core>::core_;
	using QueueBase<Core>::q_;
	using QueueBase<Core>::timeout_us_;
	using QueueBase<Core>::not_ours;
	using QueueBase<Core>::sticky;
	using QueueBase<Core>::refusal;
	using QueueBase<Core>::signalled_up_to;
	using QueueBase<Core>::latch;

	/* A reader of the CQ: indices as far as it has come, not yet published. */
	struct reader {
		uint32_t ci;
		uint32_t tail;
		uint32_t head;
		uint32_t seen; /* status of the last error CQE that it met */
		bool lost;     /* met a CQE that cannot be of this queue */
	};

	/* Where a run over CQEs of one lap stopped: @left of them not looked at or not
	 * done,
	 * @word the first word of the one that was not done. */
	struct stop {
		uint32_t left;
		uint64_t word;
	};

	NDA_DEV geometry load_geometry() const
	{
		return make_geometry(NDA_QUEUE_LOAD(core_, q_, sq_base),
			NDA_QUEUE_LOAD(core_, q_, doorbell_template),
			NDA_QUEUE_LOAD(core_, q_, sq_depth),
			NDA_QUEUE_LOAD(core_, q_, cq_depth),
			NDA_QUEUE_LOAD(core_, q_, signal_every));
	}

	/* Whether posts are refused, or done in another way, whatever the window says. */
	NDA_DEV bool shut(bool in_batch) const
	{
		uint32_t flags = NDA_QUEUE_LOAD(core_, q_, state.flags);

		return sticky() != NDA_OK ||
			(in_batch ? flags & ~uint32_t{NDA_QUEUE_IN_BATCH} : flags) != 0;
	}

	/* The derived part of the mutable line, from the rest of it. */
	NDA_DEV void store_window(const geometry &r, uint32_t head, uint32_t tail,
		uint32_t signalled, bool in_batch)
	{
		window w = make_window(r, head, tail, signalled);

		NDA_QUEUE_STORE(core_, q_, state.limit, shut(in_batch) ? head : w.limit);
		NDA_QUEUE_STORE(core_, q_, state.next_slot, w.next_slot);
		NDA_QUEUE_STORE(core_, q_, state.next_word0, w.next_word0);
		NDA_QUEUE_STORE(core_, q_, state.doorbell, w.doorbell);
		NDA_QUEUE_STORE(core_, q_, state.next_task, w.next_task);
		NDA_QUEUE_STORE(core_, q_, state.next_marker, w.next_marker);
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
			sticky() != NDA_OK || op.length - 1 >= format::max_length)
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
			format::task_word(
				length_be, format::task_bits(op.opcode, true, false)),
			format::command_word(op.opcode), format::bswap64(op.remote_va),
			keys[0], format::bswap64(op.local_va),
			format::gather_word(length_be, keys[1])};
		write_wqe(core_, slot, slot + format::wqe_bytes,
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

	/* One WQE at head, for which there is credit. */
	NDA_DEV void post_one(
		const operation &op, uint32_t length, bool want_completion, bool in_batch)
	{
		geometry r = load_geometry();
		uint32_t head = NDA_QUEUE_LOAD(core_, q_, state.head);
		uint32_t signalled = NDA_QUEUE_LOAD(core_, q_, state.signalled);
		uint32_t flags = NDA_QUEUE_LOAD(core_, q_, state.flags);
		format::rdma what;
		uint64_t w[format::wqe_words];

		what.opcode = op.opcode;
		what.signalled = want_completion || r.signal_every == 1 ||
			unsignalled_left(r.signal_every, head, signalled) == 0;
		what.fence = (flags & NDA_QUEUE_IN_FENCE) != 0;
		what.length = length;
		what.remote_va = op.remote_va;
		what.local_va = op.local_va;
		what.rkey = op.rkey;
		what.lkey = op.lkey;
		format::encode(format::rdma_wqe(what, head, r.depth), w);
		write_wqe(core_, slot_address(r, head), slot_address(r, head + 1),
			format::invalid_marker(head + 1, r.depth), w);

		head++;
		if (what.signalled)
			signalled = head;
		NDA_QUEUE_STORE(core_, q_, state.head, head);
		NDA_QUEUE_STORE(core_, q_, state.signalled, signalled);
		NDA_QUEUE_STORE(core_, q_, state.flags,
			static_cast<uint8_t>(flags & ~uint32_t{NDA_QUEUE_IN_FENCE}));
		store_window(r, head, NDA_QUEUE_LOAD(core_, q_, state.tail), signalled,
			in_batch);
	}

	/* Until one WQE more may be posted. */
	NDA_DEV enum nda_status wait_for_credit(bool in_batch, Deadline<Core> *deadline)
	{
		uint32_t capacity = load_geometry().capacity;
		reader r = start_reading();

		if (r.head - r.tail < capacity)
			return NDA_OK;
		/* What waits for its doorbell would be waited for in vain. */
		if (in_batch &&
			NDA_QUEUE_LOAD(core_, q_, state.rung) !=
				static_cast<uint16_t>(r.head))
			ring();

		uint32_t first = r.ci;
		bool expired = false;
		enum nda_status status = NDA_OK;
		for (;;) {
			consume(&r, r.head - r.tail);
			status = sticky();
			if (status != NDA_OK || r.head - r.tail < capacity)
				break;
			if (expired) {
				status = NDA_TIMEOUT;
				break;
			}
			expired = deadline->passed();
			core_.relax();
		}
		publish(r, first);
		return status;
	}

	/*
	 * Ends a series of WQEs without a completion by one that has one and comes after
	 * them: a READ of 8 bytes, since a WRITE would need remote bytes of its own to
	 * overwrite, and an operation of length 0 is one whose encoding no source shows.
	 */
	NDA_DEV enum nda_status post_flush(Deadline<Core> *deadline)
	{
		enum nda_status status = wait_for_credit(false, deadline);
		operation op;

		if (status != NDA_OK)
			return status;

		op.opcode = format::op_read;
		op.want_completion = true;
		op.rkey = NDA_QUEUE_LOAD(core_, q_, rkey);
		op.lkey = NDA_QUEUE_LOAD(core_, q_, lkey);
		op.remote_va = NDA_QUEUE_LOAD(core_, q_, scratch_remote);
		op.local_va = NDA_QUEUE_LOAD(core_, q_, scratch_local);
		op.length = 8;
		return post(op, false);
	}

	/* The rest of quiet() where not everything was there at once; @first as publish().
	 */
	NDA_DEV_SLOW enum nda_status wait_until_quiet(
		reader r, uint32_t first, Deadline<Core> *deadline) noexcept
	{
		enum nda_status status = NDA_OK;
		bool expired = false;

		while (r.tail != r.head && !r.lost) {
			if (consume(&r, r.head - r.tail) != 0)
				continue;
			/* A failed queue may or may not report what asked for nothing. */
			if (sticky() != NDA_OK &&
				static_cast<int32_t>(r.tail - signalled_up_to(r.head)) >= 0)
				break;
			if (expired) {
				status = NDA_TIMEOUT;
				break;
			}
			expired = deadline->passed();
			core_.relax();
		}
		publish(r, first);
		return sticky() != NDA_OK ? sticky() : status;
	}

	NDA_DEV reader start_reading() const
	{
		reader r;

		r.ci = NDA_QUEUE_LOAD(core_, q_, state.cq_ci);
		r.tail = NDA_QUEUE_LOAD(core_, q_, state.tail);
		r.head = NDA_QUEUE_LOAD(core_, q_, state.head);
		r.seen = NDA_OK;
		r.lost = false;
		return r;
	}

	/* Looks at up to @count > 0 CQEs from @cqe on, all of one lap with that owner bit,
	 * until one is not a success. */
	template <bool owner>
	NDA_DEV stop scan(uint64_t cqe, uint32_t stride, uint32_t count) const
	{
		constexpr uint32_t owner_mask = uint32_t{1} << 31;
		uint64_t word;

		do {
			core_.invalidate(cqe, format::cqe_bytes);
			word = core_.template load_acquire<uint64_t>(cqe);
			if (((static_cast<uint32_t>(word) & owner_mask) != 0) != owner ||
				word >= format::cqe_special)
				break;
			cqe += stride;
		} while (--count != 0);
		return {count, word};
	}

	NDA_DEV uint64_t cqe_address(uint32_t ci, uint32_t depth, uint32_t stride) const
	{
		return NDA_QUEUE_LOAD(core_, q_, cq_base) +
			uint64_t{ci & (depth - 1)} * stride;
	}

	/* Consumes up to @most CQEs that are there, and none after an error. Returns how
	 * many; r->seen is set by an error. */
	NDA_DEV uint32_t consume(reader *r, uint32_t most) const
	{
		uint32_t depth = NDA_QUEUE_LOAD(core_, q_, cq_depth);
		uint32_t stride = NDA_QUEUE_LOAD(core_, q_, cqe_stride);
		uint32_t first = r->ci;
		bool error = false;

		while (most != 0) {
			uint32_t count = min_u32(most, depth - (r->ci & (depth - 1)));
			uint64_t cqe = cqe_address(r->ci, depth, stride);
			stop end = format::owner_bit(r->ci, depth)
				? scan<true>(cqe, stride, count)
				: scan<false>(cqe, stride, count);

			r->ci += count - end.left;
			most -= count - end.left;
			if (end.left == 0)
				continue;
			/* By the same word: a second look might see another state. */
			if (format::cqe_look(end.word, r->ci, depth) ==
				format::cqe_state::error) {
				error = true;
				r->ci++;
			}
			break;
		}
		if (r->ci != first)
			settle(r, cqe_address(r->ci - 1, depth, stride), r->ci - first,
				error);
		return r->ci - first;
	}

	/* Moves the tail behind the WQE that the CQE at @cqe, the last of @count consumed,
	 * names: everything before it is done too, with or without a completion of its own.
	 * Where it names none that is outstanding, or there are more CQEs than WQEs,
	 * nothing that this CQ says can be believed any more. */
	NDA_DEV void settle(reader *r, uint64_t cqe, uint32_t count, bool error) const
	{
		/* Anew, now that the first word says that the rest is there. */
		core_.invalidate(cqe, format::cqe_bytes);
		uint64_t word = core_.template load<uint64_t>(cqe + 24);
		uint16_t counter = format::cqe_wqe_counter(word);
		uint32_t done = static_cast<uint16_t>(counter - r->tail) + uint32_t{1};
		bool known = done <= r->head - r->tail && count <= done;

		if (known)
			r->tail += done;
		else
			r->lost = true;
		if (known && !error)
			return;
		r->seen = error ? format::status_of(format::cqe_syndrome(word))
				: NDA_BAD_RESPONSE;
		latch({r->seen,
			static_cast<uint8_t>(error ? format::cqe_syndrome(word) : 0),
			static_cast<uint8_t>(error ? format::cqe_vendor(word) : 0),
			counter});
	}

	/* Makes what @r consumed from @first on known: to this core's later posts, the host
	 * and the NIC. */
	NDA_DEV void publish(const reader &r, uint32_t first)
	{
		if (r.ci == first)
			return;
		NDA_QUEUE_STORE(core_, q_, state.tail, r.tail);
		NDA_QUEUE_STORE(core_, q_, state.cq_ci, r.ci);
		NDA_QUEUE_STORE(core_, q_, state.limit,
			shut(false) ? r.head
				    : window_limit(load_geometry(), r.head, r.tail,
					      NDA_QUEUE_LOAD(core_, q_, state.signalled)));
		core_.clean(q_ + offsetof(nda_queue, state), sizeof(nda_queue_state));

		uint64_t record = NDA_QUEUE_LOAD(core_, q_, cq_record);
		core_.template store_release<uint32_t>(record, format::cq_record(r.ci));
		core_.clean(record, 4);
		core_.dsb();
	}
};

} // namespace nda::aiv::hns1825

#endif
