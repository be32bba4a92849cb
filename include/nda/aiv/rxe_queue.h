/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One Soft-RoCE queue, as a core that shares the host's memory drives it, and the engine
 * that Device and Batch take:
 *
 *	nda::aiv::Device<nda::aiv::SoftCore, nda::aiv::rxe::Engine> nda;
 *
 * The NIC is the kernel, and each of its messages costs far more than what is done here:
 * there is one way to post, the complete one. Order of a post: the WQE, the ring's producer
 * index, the doorbell. The doorbell is a word that the host's proxy takes by exchange with
 * 0, hence never 0.
 *
 * Indices in the queue's line run free, those in a ring's header are masked. A WQE carries
 * its index as wr_id, so each CQE names its WQE. After an error the kernel completes every
 * WQE that is left, whether it asked for that or not.
 *
 * A queue belongs to one core: nothing here is atomic against another poster.
 */
#ifndef NDA_AIV_RXE_QUEUE_H
#define NDA_AIV_RXE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include <nda/aiv/core.h>
#include <nda/aiv/queue.h>
#include <nda/hw/rxe.h>
#include <nda/table.h>

namespace nda::aiv::rxe {

namespace format = nda::hw::rxe;

/* Of the ring; also what state.rung can tell apart. */
constexpr uint32_t max_depth = 32768;

/* What is posted: a WRITE or READ of any length, or one WQE of another kind. */
struct operation {
	uint8_t opcode;
	bool want_completion; /* of the last WQE, beside those of every k-th */
	bool even_empty;      /* length 0 is posted, too */
	bool inline_data;     /* the bytes at local_va are part of the WQE */
	uint32_t rkey;
	uint32_t lkey;
	uint64_t remote_va;
	uint64_t local_va;
	uint64_t length;
	uint32_t immediate;
	uint32_t n_pieces; /* not 0: pieces, of length bytes in all, are local_va's */
	const nda_piece *pieces;
	uint64_t compare_add;
	uint64_t swap;
};

/* The value that rings for @head. */
NDA_DEV constexpr uint64_t doorbell_value(uint32_t head)
{
	return uint64_t{1} << 32 | head;
}

/* Most outstanding WQEs: one slot of a ring stays free, and each may need a place in the
 * CQ. */
NDA_DEV constexpr uint32_t capacity_of(uint32_t sq_depth, uint32_t cq_depth)
{
	return min_u32(sq_depth, cq_depth) - 1;
}

/* Whether the immutable lines describe a queue that the data plane can work on. */
NDA_DEV bool queue_usable(const nda_queue &q)
{
	return q.valid != 0 && power_of_two(q.sq_depth) && power_of_two(q.cq_depth) &&
		q.sq_depth >= 4 && q.sq_depth <= max_depth && q.cq_depth >= 4 &&
		q.signal_every >= 1 && q.signal_every <= q.sq_depth / 2 &&
		q.signal_every <= q.cq_depth / 2 && power_of_two(q.sq_slot_bytes) &&
		q.sq_slot_bytes > format::wqe_bytes &&
		q.sq_data_bytes >= format::sge_bytes &&
		q.sq_data_bytes <= q.sq_slot_bytes - format::wqe_bytes &&
		q.cqe_stride >= format::cqe_bytes && q.cqe_stride % 8 == 0 &&
		q.sq_base != 0 && q.sq_base % 8 == 0 && q.cq_base != 0 &&
		q.cq_base % 8 == 0 && q.sq_record != 0 && q.sq_record % 4 == 0 &&
		q.cq_record != 0 && q.cq_record % 4 == 0 && q.cq_producer != 0 &&
		q.cq_producer % 4 == 0 && q.sq_doorbell != 0 && q.sq_doorbell % 8 == 0;
}

/* The mutable line for these indices: head of the next WQE, tail of the oldest that is not
 * known to be done, ci of the next CQE. Every outstanding WQE is taken to have a
 * completion. (0, 0, 0) initialises. */
NDA_DEV nda_queue_state derive_state(uint32_t head, uint32_t tail, uint32_t ci)
{
	nda_queue_state s = {};

	s.head = head;
	s.limit = head;
	s.tail = tail;
	s.cq_ci = ci;
	s.rung = static_cast<uint16_t>(head);
	s.signalled = head;
	return s;
}

/* A value of this is made for each call. */
template <class Core>
class Queue : private QueueBase<Core> {
public:
	/* @q: address of the struct nda_queue. @timeout_us: of a call that waits. */
	NDA_DEV Queue(const Core &core, uint64_t q, uint64_t timeout_us)
		: QueueBase<Core>(core, q, timeout_us)
	{}

	/*
	 * Posts @op, in as many WQEs as its length needs; NDA_INVALID if one that has to be
	 * one WQE does not fit. Waits for credit up to the deadline: NDA_TIMEOUT then, with
	 * the WQEs posted so far on their way. @in_batch: the caller has the batch open and
	 * rings later.
	 */
	NDA_DEV_SLOW enum nda_status post(const operation &op, bool in_batch) noexcept
	{
		enum nda_status status = refusal(in_batch);
		uint64_t left = op.length;
		bool more = left != 0 || op.even_empty;
		operation part = op;

		if (status == NDA_OK && !fits(op))
			return NDA_INVALID;
		while (status == NDA_OK && more) {
			more = left > format::max_length;
			part.length = more ? format::max_length : left;
			/* What is said once is said by the last. */
			part.opcode = more && op.opcode == format::op_write_immediate
				? uint8_t{format::op_write}
				: op.opcode;
			part.want_completion = !more && op.want_completion;
			status = wait_for_credit(in_batch);
			if (status != NDA_OK)
				break;
			post_one(part);
			if (!in_batch)
				ring();
			left -= part.length;
			part.remote_va += part.length;
			part.local_va += part.length;
		}
		return status;
	}

	/* Tells the NIC of everything posted. */
	NDA_DEV void ring()
	{
		uint32_t head = NDA_QUEUE_LOAD(core_, q_, state.head);
		uint32_t mask = NDA_QUEUE_LOAD(core_, q_, sq_depth) - 1;
		uint64_t record = NDA_QUEUE_LOAD(core_, q_, sq_record);

		NDA_QUEUE_STORE(core_, q_, state.rung, static_cast<uint16_t>(head));
		core_.clean(q_ + offsetof(nda_queue, state), sizeof(nda_queue_state));
		core_.dsb();
		core_.template store_release<uint32_t>(record, head & mask);
		core_.clean(record, 4);
		core_.dsb();
		core_.st_dev(NDA_QUEUE_LOAD(core_, q_, sq_doorbell), doorbell_value(head));
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
			status = post_flush();
			if (status != NDA_OK)
				return status;
			r = start_reading();
		}
		return wait_until_quiet(r, deadline);
	}

	/* What is posted next starts after everything posted before is done. */
	NDA_DEV enum nda_status fence()
	{
		enum nda_status status = refusal(false);

		if (status == NDA_OK &&
			NDA_QUEUE_LOAD(core_, q_, state.head) !=
				NDA_QUEUE_LOAD(core_, q_, state.tail))
			NDA_QUEUE_STORE(core_, q_, state.flags,
				static_cast<uint8_t>(
					NDA_QUEUE_LOAD(core_, q_, state.flags) |
					NDA_QUEUE_IN_FENCE));
		return status;
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
		bool lost; /* met a CQE that cannot be of this queue */
	};

	/* Whether what cannot be split is one WQE. */
	NDA_DEV bool fits(const operation &op) const
	{
		uint32_t room = NDA_QUEUE_LOAD(core_, q_, sq_data_bytes);

		if (op.inline_data)
			return op.length <= room;
		return op.n_pieces == 0 ||
			(op.length <= format::max_length &&
				op.n_pieces <= room / format::sge_bytes);
	}

	NDA_DEV uint32_t capacity() const
	{
		return capacity_of(NDA_QUEUE_LOAD(core_, q_, sq_depth),
			NDA_QUEUE_LOAD(core_, q_, cq_depth));
	}

	NDA_DEV bool completion_due(uint32_t head) const
	{
		uint32_t every = NDA_QUEUE_LOAD(core_, q_, signal_every);

		return every <= 1 ||
			unsignalled_left(every, head,
				NDA_QUEUE_LOAD(core_, q_, state.signalled)) == 0;
	}

	/* One WQE at head, for which there is credit. */
	NDA_DEV void post_one(const operation &op)
	{
		uint32_t head = NDA_QUEUE_LOAD(core_, q_, state.head);
		uint32_t flags = NDA_QUEUE_LOAD(core_, q_, state.flags);
		bool signalled = op.want_completion || completion_due(head);
		uint64_t slot = NDA_QUEUE_LOAD(core_, q_, sq_base) +
			uint64_t{head & (NDA_QUEUE_LOAD(core_, q_, sq_depth) - 1)} *
				NDA_QUEUE_LOAD(core_, q_, sq_slot_bytes);
		format::wqe what = {};
		uint64_t w[format::wqe_words];

		what.wr_id = head;
		what.opcode = op.opcode;
		what.flags = (signalled ? format::send_signalled : 0) |
			((flags & NDA_QUEUE_IN_FENCE) != 0 ? format::send_fence : 0) |
			(op.inline_data ? format::send_inline : 0);
		what.immediate = op.immediate;
		what.remote_va = op.remote_va;
		what.rkey = op.rkey;
		what.compare_add = op.compare_add;
		what.swap = op.swap;
		what.iova = op.remote_va;
		what.ssn = head;
		what.length = static_cast<uint32_t>(op.length);
		what.resid = what.length;
		what.num_sge = write_data(slot + format::wqe_bytes, op);
		format::encode(what, w);
		for (uint32_t i = 0; i < format::wqe_words; i++)
			core_.template store<uint64_t>(slot + uint64_t{i} * 8, w[i]);
		core_.clean(slot, NDA_QUEUE_LOAD(core_, q_, sq_slot_bytes));

		head++;
		if (signalled)
			NDA_QUEUE_STORE(core_, q_, state.signalled, head);
		NDA_QUEUE_STORE(core_, q_, state.head, head);
		NDA_QUEUE_STORE(core_, q_, state.limit, head);
		NDA_QUEUE_STORE(core_, q_, state.flags,
			static_cast<uint8_t>(flags & ~uint32_t{NDA_QUEUE_IN_FENCE}));
	}

	/* What follows a WQE at @at; the number of SGEs. */
	NDA_DEV uint32_t write_data(uint64_t at, const operation &op) const
	{
		if (op.length == 0)
			return 0;
		if (op.inline_data) {
			write_inline(at, op.local_va, op.length);
			return 0;
		}
		if (op.n_pieces == 0) {
			write_sge(at, op.local_va, op.length, op.lkey);
			return 1;
		}
		for (uint32_t i = 0; i < op.n_pieces; i++)
			write_sge(at + uint64_t{i} * format::sge_bytes, op.pieces[i].addr,
				op.pieces[i].length, op.lkey);
		return op.n_pieces;
	}

	NDA_DEV void write_sge(
		uint64_t at, uint64_t addr, uint64_t length, uint32_t lkey) const
	{
		core_.template store<uint64_t>(at, addr);
		core_.template store<uint64_t>(
			at + 8, format::sge_word(static_cast<uint32_t>(length), lkey));
	}

	/* Whole words, the last filled up with zeros; the source may lie anywhere. */
	NDA_DEV void write_inline(uint64_t at, uint64_t from, uint64_t length) const
	{
		for (uint64_t i = 0; i < length; i += 8) {
			uint64_t word = 0;

			for (uint64_t j = 0; j < 8 && i + j < length; j++)
				word |= uint64_t{core_.template load<uint8_t>(from + i + j)}
					<< (j * 8);
			core_.template store<uint64_t>(at + i, word);
		}
	}

	/* Until one WQE more may be posted. */
	NDA_DEV enum nda_status wait_for_credit(bool in_batch)
	{
		uint32_t most = capacity();
		reader r = start_reading();

		if (r.head - r.tail < most)
			return NDA_OK;
		/* What waits for its doorbell would be waited for in vain. */
		if (in_batch &&
			NDA_QUEUE_LOAD(core_, q_, state.rung) !=
				static_cast<uint16_t>(r.head))
			ring();

		Deadline<Core> deadline(core_, timeout_us_);
		uint32_t first = r.ci;
		bool expired = false;
		enum nda_status status = NDA_OK;
		for (;;) {
			consume(&r);
			status = sticky();
			if (status != NDA_OK || r.head - r.tail < most)
				break;
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

	/* Ends a series of WQEs without a completion by one that has one and comes after
	 * them: a WRITE of no bytes, which needs no memory on either side. */
	NDA_DEV enum nda_status post_flush()
	{
		operation op = {};

		op.opcode = format::op_write;
		op.want_completion = true;
		op.even_empty = true;
		return post(op, false);
	}

	NDA_DEV_SLOW enum nda_status wait_until_quiet(
		reader r, Deadline<Core> *deadline) noexcept
	{
		enum nda_status status = NDA_OK;
		uint32_t first = r.ci;
		bool expired = false;

		while (r.tail != r.head && !r.lost) {
			if (consume(&r) != 0)
				continue;
			/* What asked for nothing may have been done before the error. */
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
		r.lost = false;
		return r;
	}

	NDA_DEV uint64_t cqe_address(uint32_t ci) const
	{
		return NDA_QUEUE_LOAD(core_, q_, cq_base) +
			uint64_t{ci & (NDA_QUEUE_LOAD(core_, q_, cq_depth) - 1)} *
			NDA_QUEUE_LOAD(core_, q_, cqe_stride);
	}

	/* Consumes the CQEs that are there, and none after an error. Returns how many. */
	NDA_DEV uint32_t consume(reader *r) const
	{
		uint64_t producer = NDA_QUEUE_LOAD(core_, q_, cq_producer);
		uint32_t mask = NDA_QUEUE_LOAD(core_, q_, cq_depth) - 1;
		uint32_t n = 0;
		bool good = true;

		core_.invalidate(producer, 4);
		uint32_t there =
			(core_.template load_acquire<uint32_t>(producer) - r->ci) & mask;
		for (; n < there && good; n++) {
			uint64_t cqe = cqe_address(r->ci + n);

			core_.invalidate(cqe, format::cqe_bytes);
			good = format::sent(core_.template load<uint64_t>(cqe + 8));
		}
		if (n == 0)
			return 0;
		r->ci += n;
		settle(r, cqe_address(r->ci - 1), n, good);
		return n;
	}

	/* Moves the tail behind the WQE that the CQE at @cqe, the last of @count consumed,
	 * names: everything before it is done too, with or without a completion of its own.
	 * Where it names none that is outstanding, or there are more CQEs than WQEs,
	 * nothing that this CQ says can be believed any more. */
	NDA_DEV void settle(reader *r, uint64_t cqe, uint32_t count, bool good) const
	{
		uint64_t wr_id = core_.template load<uint64_t>(cqe);
		uint32_t outstanding = r->head - r->tail;
		uint32_t before = static_cast<uint32_t>(wr_id) - r->tail;
		bool known =
			wr_id >> 32 == 0 && before < outstanding && count <= before + 1;

		if (known)
			r->tail += before + 1;
		else
			r->lost = true;
		if (known && good)
			return;

		uint32_t raw = format::low(core_.template load<uint64_t>(cqe + 8));
		uint32_t vendor = format::low(core_.template load<uint64_t>(cqe + 16));
		latch({static_cast<uint32_t>(
			       raw == 0 ? NDA_BAD_RESPONSE : format::status_of(raw)),
			static_cast<uint8_t>(raw), static_cast<uint8_t>(vendor),
			static_cast<uint16_t>(wr_id)});
	}

	/* Makes what @r consumed from @first on known: to this core's later posts, the host
	 * and the NIC. */
	NDA_DEV void publish(const reader &r, uint32_t first)
	{
		if (r.ci == first)
			return;
		NDA_QUEUE_STORE(core_, q_, state.tail, r.tail);
		NDA_QUEUE_STORE(core_, q_, state.cq_ci, r.ci);
		core_.clean(q_ + offsetof(nda_queue, state), sizeof(nda_queue_state));

		uint64_t record = NDA_QUEUE_LOAD(core_, q_, cq_record);
		core_.template store_release<uint32_t>(
			record, r.ci & (NDA_QUEUE_LOAD(core_, q_, cq_depth) - 1));
		core_.clean(record, 4);
		core_.dsb();
	}
};

/* Nothing of the queue's line is worth holding. */
template <class Core>
class Line {
public:
	NDA_DEV void begin(const Core &, uint64_t) {}
	NDA_DEV void take(const Core &, uint64_t) {}
	NDA_DEV void give(const Core &, uint64_t) const {}
	NDA_DEV void end() {}
	template <uint8_t opcode>
	NDA_DEV bool post(const Core &, uint64_t, uint64_t, uint64_t)
	{
		return false;
	}
};

struct Engine {
	static constexpr uint32_t table_format = NDA_FORMAT_RXE;
	static constexpr uint8_t op_write = format::op_write;
	static constexpr uint8_t op_write_immediate = format::op_write_immediate;
	static constexpr uint8_t op_read = format::op_read;
	static constexpr uint8_t op_compare_swap = format::op_compare_swap;
	static constexpr uint8_t op_fetch_add = format::op_fetch_add;
	static constexpr bool has_immediate = true;
	static constexpr bool has_inline = true;
	static constexpr bool has_atomics = true;
	static constexpr bool has_pieces = true;

	typedef rxe::operation operation;
	template <class Core>
	using queue = Queue<Core>;
	template <class Core>
	using line = Line<Core>;

	NDA_DEV static bool keys_fit(uint32_t, uint32_t) { return true; }

	template <uint8_t opcode, class Core>
	NDA_DEV static bool post_to_heap(
		const Core &, uint64_t, uint64_t, uint64_t, uint64_t)
	{
		return false;
	}

	template <uint8_t opcode, class Core>
	NDA_DEV static bool post_to_region(
		const Core &, uint64_t, uint64_t, uint32_t, uint64_t, uint32_t, uint64_t)
	{
		return false;
	}
};

} // namespace nda::aiv::rxe

#endif
