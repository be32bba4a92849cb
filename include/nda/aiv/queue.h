/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the queues of all formats share: posting, waiting and polling, over what a format's
 * own class knows of its WQEs, CQEs and doorbells.
 *
 * An engine, the code of one format, is to Device and Batch a class with
 *
 *   table_format               the enum nda_format of its tables
 *   supports(verb, size)       which operations it can express; size: of an atomic
 *   queue<Core>                the complete algorithms, a RingQueue
 *   line<Core>                 the queue's mutable line while a batch has it
 *   post_to_heap<verb>(), post_to_region<verb>()
 *                              the usual WRITE or READ in short; false where post() has to
 *                              see to it
 *   keys_fit(rkey, lkey)       whether the format can hold them
 *   result<T>(raw)             an atomic's former value from the word that the NIC left
 *   emulates(verb, size)       an atomic that Device makes of fetch_add and compare_swap
 *   has_inline, has_inline_operand, has_pieces
 *                              what a payload may be beside one range of local memory
 *   reaches_itself             there are queues to the own PE, else Device does without
 *   keeps_order                results of READs and atomics come in the order of posting
 */
#ifndef NDA_AIV_QUEUE_H
#define NDA_AIV_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include <nda/aiv/core.h>
#include <nda/table.h>

namespace nda::aiv {

enum class verb : uint8_t {
	write,
	read,
	write_immediate,
	write_signal, /* the payload, then 8 bytes elsewhere, in one WQE */
	fetch_add,
	compare_swap,
	swap,
	fetch_and,
	fetch_or,
	fetch_xor,
	add_f32, /* nothing fetched */
};

NDA_DEV constexpr bool is_atomic(verb v)
{
	return v >= verb::fetch_add && v <= verb::fetch_xor;
}

/* What is posted: a WRITE or READ of any length, or one WQE of another kind. */
struct operation {
	verb op;
	uint8_t size;         /* bytes of an atomic: 4, 8 or 16; length is the same */
	bool want_completion; /* of the last WQE, beside those of every k-th */
	bool even_empty;      /* length 0 is posted, too */
	bool fence;           /* waits for earlier READs and atomics at the NIC */
	bool inline_data;     /* the bytes at local_va are part of the WQE */
	bool inline_operand;  /* ... or the first length bytes of operand */
	bool ordered;         /* takes effect after every WRITE posted before */
	uint32_t rkey;
	uint32_t rkey_id; /* udma: token id that rkey is the value of */
	uint32_t lkey;
	uint64_t remote_va;
	uint64_t local_va; /* of an atomic: where the former value goes */
	uint64_t length;
	uint32_t n_pieces; /* not 0: pieces, of length bytes in all, are local_va's */
	/* What follows is undefined where the verb and the members above do without. */
	uint32_t immediate;
	const nda_piece *pieces;
	uint64_t operand; /* what is added, stored or combined; and its upper half */
	uint64_t operand_high;
	uint64_t compare;
	uint64_t compare_high;
	uint64_t signal_va; /* write_signal */
	uint64_t signal_value;
};

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

/* Where a usual post goes and by which keys, asked for in the order of the WQE's words: the
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

/* Whether a post has to be refused, or done in another way, whatever the window says. */
NDA_DEV bool window_shut(const nda_queue_state &s)
{
	return s.error.status != NDA_OK || s.flags != 0;
}

/*
 * Lends the queue to a view whose poster and poller count in head, tail and cq_ci
 * themselves: native posts are refused until the format's take_back(), however head moves.
 * False, and nothing changed, if the queue is lent already, in error, in the middle of
 * something, or if its indices have come apart, which they do where not every WQE has a
 * completion: such a view counts CQEs as WQEs. No core may use the queue meanwhile.
 */
NDA_DEV bool lend(nda_queue_state *s)
{
	if (window_shut(*s) || s->head != s->tail || s->cq_ci != s->head)
		return false;
	s->flags = NDA_QUEUE_IN_VIEW;
	s->limit = s->head;
	return true;
}

/* Who may use a queue, by its mutable line. */
template <class Core>
class QueueBase {
protected:
	NDA_DEV QueueBase(const Core &core, uint64_t q, const wait_limits &limits)
		: core_(core), q_(q), limits_(limits)
	{}

	/* Why this queue may not be touched now; NDA_OK if it may. */
	NDA_DEV enum nda_status not_ours(bool in_batch) const
	{
		uint32_t flags = NDA_QUEUE_LOAD(core_, q_, state.flags);

		if (NDA_QUEUE_LOAD(core_, q_, valid) == 0)
			return NDA_INVALID;
		if ((flags & NDA_QUEUE_IN_VIEW) != 0)
			return NDA_QUEUE_LENT;
		if ((flags & NDA_QUEUE_SHARED) != 0)
			return NDA_INVALID;
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

	/* Whether posts are refused, or done in another way, whatever the window says. */
	NDA_DEV bool shut(bool in_batch) const
	{
		uint32_t flags = NDA_QUEUE_LOAD(core_, q_, state.flags);

		return sticky() != NDA_OK ||
			(in_batch ? flags & ~uint32_t{NDA_QUEUE_IN_BATCH} : flags) != 0;
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
		NDA_QUEUE_STORE(core_, q_, state.error.raw_status, error.raw_status);
		NDA_QUEUE_STORE(core_, q_, state.error.raw_vendor, error.raw_vendor);
		NDA_QUEUE_STORE(core_, q_, state.error.wqe_index, error.wqe_index);
		/* Last, for cores that share the queue. */
		core_.template store_release<uint32_t>(
			q_ + offsetof(nda_queue, state.error.status), error.status);
	}

	const Core &core_;
	uint64_t q_;
	wait_limits limits_;
};

/*
 * The complete algorithms; a value of Self is made for each call. Self, the format's class,
 * has, for RingQueue alone and through a friend declaration or in public,
 *
 *   max_length                       bytes of one WQE
 *   uint32_t capacity()              ring units that may be outstanding
 *   enum nda_status accepts(op)      NDA_OK; NDA_INVALID: it cannot be one WQE and must be;
 *                                    NDA_NOT_SUPPORTED
 *   uint32_t units(op)               ring units of one WQE of it
 *   void write_wqe(op, head, signalled, fence)
 *                                    the WQE, and what the format wants around it
 *   void refresh(head, tail, signalled, in_batch)
 *                                    works the line's derived members out anew
 *   void ring_to(head)               line, record and doorbell
 *   bool lap_bit(ci, depth)          the owner bit of a CQE that is there
 *   stop scan<bit>(cqe, stride, count)
 *                                    looks at up to @count > 0 CQEs from @cqe on, all of
 *                                    one lap with that owner bit, until one is no success
 *   bool failed(word, ci, depth)     whether that one, of which scan() gave @word, is an
 *                                    error, and not just not there yet
 *   void settle(reader *, cqe, count, error)
 *                                    moves the tail behind what the last of @count CQEs
 *                                    names: everything before it is done too. Latches
 *   void publish_ci(ci)              tells the NIC, and cleans that
 *   void write_usual<what>(head, signalled, symmetric, local_va, length)
 *                                    as write_wqe() of a WRITE or READ of the heap that is
 *                                    one WQE, where post_shared_fast() is used
 *
 * and may have, instead of those below, post_signalled(), credited(), flush_operation() and
 * consume(). Where it has no credited() it has load_geometry(), and its namespace
 * window_limit().
 *
 * A queue belongs to one core, and nothing is atomic against another poster, but for
 * the functions with shared in their names: they are for a queue whose cores share it, all
 * of which have atomics and caches that are coherent.
 */
template <class Core, class Self>
class RingQueue : protected QueueBase<Core> {
public:
	/*
	 * Posts @op, in as many WQEs as its length needs and none for 0. Waits for credit
	 * up to the deadline: NDA_TIMEOUT then, with the WQEs posted so far on their way.
	 * @in_batch: the caller has the batch open and rings later; limit then is the
	 * batch's.
	 */
	NDA_DEV_SLOW enum nda_status post(const operation &op, bool in_batch) noexcept
	{
		return self().post_signalled(op, in_batch) ? NDA_OK
							   : post_any(op, in_batch);
	}

	/* The same by the complete algorithm alone. */
	NDA_DEV_SLOW enum nda_status post_any(const operation &op, bool in_batch) noexcept
	{
		enum nda_status status = refusal(in_batch);
		parts cut(op);
		operation part;

		if (status == NDA_OK)
			status = self().accepts(op);
		while (status == NDA_OK && cut.next(&part)) {
			Deadline<Core> deadline(core_, limits_);
			status = wait_for_credit(self().units(part), in_batch, &deadline);
			if (status != NDA_OK)
				break;
			post_one(part, in_batch);
			if (!in_batch)
				ring();
		}
		return status;
	}

	/* NDA_OK, or what a post would be refused with. */
	NDA_DEV enum nda_status usable() const { return refusal(false); }

	/* Tells the NIC of everything posted. */
	NDA_DEV void ring()
	{
		uint32_t head = NDA_QUEUE_LOAD(core_, q_, state.head);

		NDA_QUEUE_STORE(core_, q_, state.rung, static_cast<uint16_t>(head));
		self().ring_to(head);
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

		Deadline<Core> deadline(core_, limits_);
		reader r = start_reading();
		uint32_t first = r.ci;
		bool expired = false;

		while (static_cast<int32_t>(target - r.ci) > 0) {
			if (self().consume(&r, target - r.ci) != 0) {
				status = static_cast<enum nda_status>(r.seen);
				if (status != NDA_OK)
					break;
				continue;
			}
			if (expired) {
				status = deadline.status();
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
			if (status != NDA_OK && sticky() == NDA_OK)
				return status;
			r = start_reading();
		}

		uint32_t first = r.ci;
		self().consume(&r, r.head - r.tail);
		if (NDA_DEV_RARE(r.tail != r.head))
			return wait_until_quiet(r, first, deadline);
		publish(r, first);
		return sticky();
	}

	/* Waits up to the deadline until everything posted below @index, a former head, is
	 * done. The queue's sticky error. */
	NDA_DEV_SLOW enum nda_status wait_until_done(
		uint32_t index, Deadline<Core> *deadline) noexcept
	{
		enum nda_status status = refusal(false);
		reader r = start_reading();
		uint32_t first = r.ci;
		bool expired = false;

		if (status != NDA_OK || static_cast<int32_t>(r.tail - index) >= 0)
			return status;
		/* It may wait for a completion that nobody asked for. */
		if (static_cast<int32_t>(signalled_up_to(r.head) - index) < 0)
			return quiet(deadline);
		while (status == NDA_OK && static_cast<int32_t>(r.tail - index) < 0) {
			if (self().consume(&r, r.head - r.tail) != 0) {
				status = sticky();
				continue;
			}
			if (expired) {
				status = deadline->status();
				break;
			}
			expired = deadline->passed();
			core_.relax();
		}
		publish(r, first);
		return status;
	}

	/* What is posted next starts after every READ and atomic posted before. WRITEs of
	 * one queue keep their order by themselves, but for UDMA, where they too need it.
	 */
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
		settle_line();
		return NDA_OK;
	}

	/*
	 * Posts @op to a shared queue, with a doorbell for each WQE. Ring units are
	 * reserved by compare and swap; WQEs become valid, and are rung for, in the order
	 * in which their units were reserved, so that a post waits for those before it
	 * that are still writing. Everything else is as with post().
	 */
	NDA_DEV_SLOW enum nda_status post_shared(const operation &op) noexcept
	{
		enum nda_status status = shared_refusal();
		parts cut(op);
		operation part;
		uint32_t end;

		if (status == NDA_OK)
			status = self().accepts(op);
		while (status == NDA_OK && cut.next(&part)) {
			Deadline<Core> deadline(core_, limits_);
			status = post_one_shared(part, &deadline, &end);
		}
		return status;
	}

	/*
	 * The same for a WRITE or READ of the heap that is one WQE, in the usual case:
	 * false, and nothing done, if post_shared() has to see to it.
	 */
	template <verb what>
	NDA_DEV bool post_shared_fast(uint64_t symmetric, uint64_t local_va,
		uint64_t length, enum nda_status *status)
	{
		if (NDA_QUEUE_LOAD(core_, q_, state.flags) != NDA_QUEUE_SHARED ||
			NDA_QUEUE_LOAD(core_, q_, valid) == 0 ||
			shared_sticky() != NDA_OK || length - 1 >= Self::max_length)
			return false;
		/* In the order of reserve_shared(). */
		uint32_t tail = shared_load(offsetof(nda_queue_shared, tail));
		uint32_t head = shared_load(offsetof(nda_queue_shared, head));
		if (head - tail >= self().capacity() ||
			core_.template compare_swap<uint32_t>(
				shared(offsetof(nda_queue_shared, head)), head, head + 1) !=
				head)
			return false;
		*status = shared_load(offsetof(nda_queue_shared, turn)) == head
			? NDA_OK
			: wait_for_turn(head);
		if (*status != NDA_OK)
			return true;
		self().template write_usual<what>(
			head, ends_interval(head, head + 1), symmetric, local_va, length);
		finish_shared(head + 1);
		return true;
	}

	/* As quiet(), for what had been posted by whichever core when this was called. */
	NDA_DEV_SLOW enum nda_status quiet_shared(Deadline<Core> *deadline) noexcept
	{
		enum nda_status status = shared_refusal();
		uint32_t target = shared_load(offsetof(nda_queue_shared, head));
		uint32_t mask = shared_interval() - 1;
		bool expired = false;

		if (status != NDA_OK && status != shared_sticky())
			return status;
		/* After the tail: whoever moved it latched before. */
		if (shared_load(offsetof(nda_queue_shared, tail)) == target)
			return shared_sticky();
		if ((target & mask) != 0 && status == NDA_OK) {
			operation flush = self().flush_operation();

			flush.want_completion = true;
			status = post_one_shared(flush, deadline, &target);
			if (status != NDA_OK && shared_sticky() == NDA_OK)
				return status;
		}
		for (;;) {
			uint32_t tail = shared_load(offsetof(nda_queue_shared, tail));

			status = shared_sticky();
			/* What asked for nothing is not reported after an error. */
			if (static_cast<int32_t>(tail - target) >= 0 ||
				(status != NDA_OK &&
					static_cast<int32_t>(tail - (target & ~mask)) >= 0))
				return status;
			if (poll_shared() != 0)
				continue;
			if (expired)
				return status != NDA_OK ? status : deadline->status();
			expired = deadline->passed();
			core_.relax();
		}
	}

	/* Brings the line to memory where no doorbell follows: the next kernel may run on
	 * another core, and what this one's cache still held would then be written over the
	 * other's. */
	NDA_DEV void settle_line() const
	{
		core_.clean(site::idle_line, q_ + offsetof(nda_queue, state),
			sizeof(nda_queue_state));
		core_.dsb(site::after_idle);
	}

	/* What head will be after one more WQE of @op. */
	NDA_DEV uint32_t head_after(const operation &op) const
	{
		return NDA_QUEUE_LOAD(core_, q_, state.head) + self().units(op);
	}

protected:
	using QueueBase<Core>::core_;
	using QueueBase<Core>::q_;
	using QueueBase<Core>::limits_;
	using QueueBase<Core>::not_ours;
	using QueueBase<Core>::sticky;
	using QueueBase<Core>::refusal;
	using QueueBase<Core>::shut;
	using QueueBase<Core>::signalled_up_to;
	using QueueBase<Core>::latch;

	NDA_DEV RingQueue(const Core &core, uint64_t q, const wait_limits &limits)
		: QueueBase<Core>(core, q, limits)
	{}

	NDA_DEV bool is_shared() const
	{
		return (NDA_QUEUE_LOAD(core_, q_, state.flags) & NDA_QUEUE_SHARED) != 0;
	}

	/* The address of a member of nda_queue_shared. */
	NDA_DEV uint64_t shared(size_t member) const
	{
		return q_ + offsetof(nda_queue, state) + member;
	}

	NDA_DEV uint32_t shared_load(size_t member) const
	{
		return core_.template load_acquire<uint32_t>(shared(member));
	}

	/* An operation as the WQEs that its length needs. */
	class parts {
	public:
		NDA_DEV explicit parts(const operation &op)
			: rest_(op), more_(op.length != 0 || op.even_empty)
		{}

		/* The next one; false if there is none. */
		NDA_DEV bool next(operation *part)
		{
			if (!more_)
				return false;
			more_ = rest_.length > Self::max_length;
			*part = rest_;
			if (!more_)
				return true;
			/* What is said once is said by the last. */
			part->op = rest_.op == verb::read ? verb::read : verb::write;
			part->want_completion = false;
			part->length = Self::max_length;
			rest_.length -= part->length;
			rest_.remote_va += part->length;
			rest_.local_va += part->length;
			rest_.fence = false;
			return true;
		}

	private:
		operation rest_;
		bool more_;
	};

	/* A reader of the CQ: indices as far as it has come, not yet published. */
	struct reader {
		uint32_t ci;
		uint32_t tail;
		uint32_t head;
		uint32_t seen; /* status of the last error CQE that it met */
		bool lost;     /* met a CQE that cannot be of this queue */
	};

	/*
	 * Moves the tail on by @done units, up to which the last of @count CQEs consumed
	 * says that everything is done, with or without a completion of its own. False
	 * where it names nothing outstanding, or there are more CQEs than WQEs: nothing
	 * that this CQ says can be believed any more.
	 */
	NDA_DEV bool settle(reader *r, uint32_t done, uint32_t count) const
	{
		/* Of a shared queue others have posted since its head was read. */
		if (NDA_DEV_RARE(done > r->head - r->tail) && is_shared())
			r->head = shared_load(offsetof(nda_queue_shared, head));
		bool known = done <= r->head - r->tail && count <= done;

		if (known)
			r->tail += done;
		else
			r->lost = true;
		return known;
	}

	/* Posts an operation that needs no more than its WQE and a doorbell; false, and
	 * nothing done, if it is not such a one. */
	NDA_DEV bool post_signalled(const operation &, bool) { return false; }

	/* Completions came: the window may be wider. Nothing else of the line depends on
	 * the tail. */
	NDA_DEV void credited(uint32_t head, uint32_t tail) const
	{
		NDA_QUEUE_STORE(core_, q_, state.limit,
			shut(false) ? head
				    : window_limit(self().load_geometry(), head, tail,
					      NDA_QUEUE_LOAD(core_, q_, state.signalled)));
	}

	/* Where a run over CQEs of one lap stopped: @left of them not looked at or not
	 * done, @word what the one that was not done had. */
	struct stop {
		uint32_t left;
		uint64_t word;
	};

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
			stop end = Self::lap_bit(r->ci, depth)
				? self().template scan<true>(cqe, stride, count)
				: self().template scan<false>(cqe, stride, count);

			r->ci += count - end.left;
			most -= count - end.left;
			if (end.left == 0)
				continue;
			/* By the same word: a second look might see another state. */
			error = Self::failed(end.word, r->ci, depth);
			r->ci += error ? 1 : 0;
			break;
		}
		if (r->ci != first)
			self().settle(r, cqe_address(r->ci - 1, depth, stride),
				r->ci - first, error);
		return r->ci - first;
	}

	/*
	 * Ends a series of WQEs without a completion by one that has one and comes after
	 * them: a READ of 8 bytes, since a WRITE would need remote bytes of its own to
	 * overwrite, and an operation of length 0 is one whose encoding no source shows.
	 */
	NDA_DEV operation flush_operation() const
	{
		operation op = {};

		op.op = verb::read;
		op.rkey = NDA_QUEUE_LOAD(core_, q_, rkey);
		op.rkey_id = NDA_QUEUE_LOAD(core_, q_, rkey_id);
		op.lkey = NDA_QUEUE_LOAD(core_, q_, lkey);
		op.remote_va = NDA_QUEUE_LOAD(core_, q_, scratch_remote);
		op.local_va = NDA_QUEUE_LOAD(core_, q_, scratch_local) + NDA_SCRATCH_FLUSH;
		op.length = 8;
		return op;
	}

	NDA_DEV bool completion_due(uint32_t head, uint32_t units) const
	{
		uint32_t every =
			min_u32(NDA_QUEUE_LOAD(core_, q_, signal_every), self().capacity());

		return every <= 1 ||
			head - NDA_QUEUE_LOAD(core_, q_, state.signalled) + units >= every;
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

	/* Makes what @r consumed from @first on known: to this core's later posts, the host
	 * and the NIC. */
	NDA_DEV void publish(const reader &r, uint32_t first)
	{
		if (r.ci == first)
			return;
		NDA_QUEUE_STORE(core_, q_, state.tail, r.tail);
		NDA_QUEUE_STORE(core_, q_, state.cq_ci, r.ci);
		self().credited(r.head, r.tail);
		core_.clean(site::cq_line, q_ + offsetof(nda_queue, state),
			sizeof(nda_queue_state));
		self().publish_ci(r.ci);
		core_.dsb(site::after_poll);
	}

private:
	NDA_DEV Self &self() { return static_cast<Self &>(*this); }
	NDA_DEV const Self &self() const { return static_cast<const Self &>(*this); }

	/* One WQE at head, for which there is credit. */
	NDA_DEV void post_one(const operation &op, bool in_batch)
	{
		uint32_t head = NDA_QUEUE_LOAD(core_, q_, state.head);
		uint32_t signalled = NDA_QUEUE_LOAD(core_, q_, state.signalled);
		uint32_t flags = NDA_QUEUE_LOAD(core_, q_, state.flags);
		uint32_t units = self().units(op);
		bool completion = op.want_completion || completion_due(head, units);

		self().write_wqe(op, head, completion,
			op.fence || (flags & NDA_QUEUE_IN_FENCE) != 0);
		head += units;
		if (completion)
			signalled = head;
		NDA_QUEUE_STORE(core_, q_, state.head, head);
		NDA_QUEUE_STORE(core_, q_, state.signalled, signalled);
		NDA_QUEUE_STORE(core_, q_, state.flags,
			static_cast<uint8_t>(flags & ~uint32_t{NDA_QUEUE_IN_FENCE}));
		self().refresh(
			head, NDA_QUEUE_LOAD(core_, q_, state.tail), signalled, in_batch);
	}

	/* Until @units more may be posted. */
	NDA_DEV enum nda_status wait_for_credit(
		uint32_t units, bool in_batch, Deadline<Core> *deadline)
	{
		uint32_t capacity = self().capacity();
		reader r = start_reading();

		if (r.head - r.tail + units <= capacity)
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
			self().consume(&r, r.head - r.tail);
			status = sticky();
			if (status != NDA_OK || r.head - r.tail + units <= capacity)
				break;
			if (expired) {
				status = deadline->status();
				break;
			}
			expired = deadline->passed();
			core_.relax();
		}
		publish(r, first);
		return status;
	}

	NDA_DEV enum nda_status post_flush(Deadline<Core> *deadline)
	{
		operation op = self().flush_operation();
		enum nda_status status = wait_for_credit(self().units(op), false, deadline);

		op.want_completion = true;
		return status == NDA_OK ? post(op, false) : status;
	}

	/* ---- Shared queues ---- */

	NDA_DEV enum nda_status shared_sticky() const
	{
		return static_cast<enum nda_status>(
			shared_load(offsetof(nda_queue_shared, error.status)));
	}

	NDA_DEV enum nda_status shared_refusal() const
	{
		if (NDA_QUEUE_LOAD(core_, q_, valid) == 0 || !is_shared())
			return NDA_INVALID;
		return shared_sticky();
	}

	/* A completion each so many units: by the index alone, hence a power of two, and
	 * never so many that a full ring holds none. */
	NDA_DEV uint32_t shared_interval() const
	{
		uint32_t most = min_u32(NDA_QUEUE_LOAD(core_, q_, signal_every),
			(self().capacity() + 1) / 4);
		uint32_t interval = 1;

		while (interval <= most / 2)
			interval *= 2;
		return interval;
	}

	/* Whether what takes the units from @head to @next has a completion anyway. */
	NDA_DEV bool ends_interval(uint32_t head, uint32_t next) const
	{
		uint32_t interval = NDA_QUEUE_LOAD(core_, q_, signal_every) == 1
			? 1
			: shared_interval();

		return interval == 1 || ((head ^ next) & ~(interval - 1)) != 0;
	}

	/* @end: the index after it. */
	NDA_DEV enum nda_status post_one_shared(
		const operation &op, Deadline<Core> *deadline, uint32_t *end)
	{
		uint32_t units = self().units(op);
		uint32_t head = 0;
		enum nda_status status = reserve_shared(units, &head, deadline);

		if (status == NDA_OK)
			status = wait_for_turn(head);
		if (status != NDA_OK)
			return status;

		uint32_t next = head + units;
		*end = next;
		self().write_wqe(op, head, op.want_completion || ends_interval(head, next),
			op.fence);
		finish_shared(next);
		return NDA_OK;
	}

	/* Rings for what is below @next, and lets the next one write. */
	NDA_DEV void finish_shared(uint32_t next) const
	{
		self().ring_to(next);
		core_.template store_release<uint32_t>(
			shared(offsetof(nda_queue_shared, turn)), next);
	}

	NDA_DEV enum nda_status reserve_shared(
		uint32_t units, uint32_t *head, Deadline<Core> *deadline)
	{
		uint32_t capacity = self().capacity();
		bool expired = false;

		for (;;) {
			/* The tail first: it never is past a head that is read later. */
			uint32_t tail = shared_load(offsetof(nda_queue_shared, tail));
			uint32_t at = shared_load(offsetof(nda_queue_shared, head));

			if (at - tail + units <= capacity) {
				if (core_.template compare_swap<uint32_t>(
					    shared(offsetof(nda_queue_shared, head)), at,
					    at + units) != at)
					continue;
				*head = at;
				return NDA_OK;
			}
			if (shared_sticky() != NDA_OK)
				return shared_sticky();
			if (poll_shared() != 0)
				continue;
			if (expired)
				return deadline->status();
			expired = deadline->passed();
			core_.relax();
		}
	}

	/* Whoever reserved and does not write takes the queue with it, as this core does if
	 * it gives up: hence not by the abort word, for those before it only write. */
	NDA_DEV_SLOW enum nda_status wait_for_turn(uint32_t head) noexcept
	{
		Deadline<Core> deadline(core_, {limits_.timeout_us, 0});
		bool expired = false;

		while (shared_load(offsetof(nda_queue_shared, turn)) != head) {
			if (expired) {
				latch_shared(head);
				return NDA_LOCAL_QP;
			}
			expired = deadline.passed();
			core_.relax();
		}
		return NDA_OK;
	}

	NDA_DEV void latch_shared(uint32_t head)
	{
		Deadline<Core> deadline(core_, {limits_.timeout_us, 0});
		bool expired = false;

		while (!lock_shared()) {
			/* Whoever holds the lock may be the one that is gone. */
			if (expired)
				return;
			expired = deadline.passed();
			core_.relax();
		}
		latch({NDA_LOCAL_QP, 0, 0, static_cast<uint16_t>(head)});
		unlock_shared();
	}

	NDA_DEV bool lock_shared() const
	{
		return core_.template compare_swap<uint32_t>(
			       shared(offsetof(nda_queue_shared, lock)), 0, 1) == 0;
	}

	NDA_DEV void unlock_shared() const
	{
		core_.template store_release<uint32_t>(
			shared(offsetof(nda_queue_shared, lock)), 0);
	}

	/* Takes CQEs unless another core does; how many. */
	NDA_DEV_SLOW uint32_t poll_shared() noexcept
	{
		if (!lock_shared())
			return 0;

		reader r;
		r.ci = NDA_QUEUE_LOAD(core_, q_, state.cq_ci);
		r.tail = NDA_QUEUE_LOAD(core_, q_, state.tail);
		/* A WQE may be done before its poster has passed the turn on. */
		r.head = shared_load(offsetof(nda_queue_shared, head));
		r.seen = NDA_OK;
		r.lost = false;
		uint32_t n = self().consume(&r, r.head - r.tail);
		if (n != 0) {
			NDA_QUEUE_STORE(core_, q_, state.cq_ci, r.ci);
			self().publish_ci(r.ci);
			/* The usual post stays away however far head goes. */
			core_.template store_release<uint32_t>(
				shared(offsetof(nda_queue_shared, limit)), r.head);
			core_.template store_release<uint32_t>(
				shared(offsetof(nda_queue_shared, tail)), r.tail);
		}
		unlock_shared();
		return n;
	}

	/* The rest of quiet() where not everything was there at once; @first as publish().
	 */
	NDA_DEV_SLOW enum nda_status wait_until_quiet(
		reader r, uint32_t first, Deadline<Core> *deadline) noexcept
	{
		enum nda_status status = NDA_OK;
		bool expired = false;

		/* Met before: nothing that this CQ says can be believed any more. */
		if (sticky() == NDA_BAD_RESPONSE &&
			NDA_QUEUE_LOAD(core_, q_, state.error.raw_status) == 0)
			r.lost = true;
		while (r.tail != r.head && !r.lost) {
			if (self().consume(&r, r.head - r.tail) != 0)
				continue;
			/* A failed queue may or may not report what asked for nothing. */
			if (sticky() != NDA_OK &&
				static_cast<int32_t>(r.tail - signalled_up_to(r.head)) >= 0)
				break;
			if (expired) {
				status = deadline->status();
				break;
			}
			expired = deadline->passed();
			core_.relax();
		}
		publish(r, first);
		return sticky() != NDA_OK ? sticky() : status;
	}
};

} // namespace nda::aiv

#endif
