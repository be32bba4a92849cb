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

NDA_DEV constexpr uint8_t opcode_of(verb v)
{
	/* The digits of one number, as a table would be static data. */
	constexpr uint32_t opcodes = format::op_write << 4 * int(verb::write) |
		format::op_read << 4 * int(verb::read) |
		format::op_write_immediate << 4 * int(verb::write_immediate) |
		format::op_fetch_add << 4 * int(verb::fetch_add) |
		format::op_compare_swap << 4 * int(verb::compare_swap);

	return opcodes >> 4 * uint32_t(v) & 15;
}

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
		q.signal_every <= q.cq_depth / 2 && power_of_two(q.rxe.sq_slot_bytes) &&
		q.rxe.sq_slot_bytes > format::wqe_bytes &&
		q.rxe.sq_data_bytes >= format::sge_bytes &&
		q.rxe.sq_data_bytes <= q.rxe.sq_slot_bytes - format::wqe_bytes &&
		q.cqe_stride >= format::cqe_bytes && q.cqe_stride % 8 == 0 &&
		q.sq_base != 0 && q.sq_base % 8 == 0 && q.cq_base != 0 &&
		q.cq_base % 8 == 0 && q.sq_record != 0 && q.sq_record % 4 == 0 &&
		q.cq_record != 0 && q.cq_record % 4 == 0 && q.rxe.cq_producer != 0 &&
		q.rxe.cq_producer % 4 == 0 && q.sq_doorbell != 0 && q.sq_doorbell % 8 == 0;
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

/* What RingQueue asks for. */
template <class Core>
class Queue : public RingQueue<Core, Queue<Core>> {
	typedef RingQueue<Core, Queue<Core>> Base;

public:
	static constexpr uint64_t max_length = format::max_length;

	/* @q: address of the struct nda_queue. @limits: of a call that waits. */
	NDA_DEV Queue(const Core &core, uint64_t q, const wait_limits &limits)
		: Base(core, q, limits)
	{}

	/* There is none here. */
	template <verb>
	NDA_DEV bool post_shared_fast(uint64_t, uint64_t, uint64_t, enum nda_status *) const
	{
		return false;
	}

private:
	friend Base;
	using Base::core_;
	using Base::latch;
	using Base::q_;
	using typename Base::reader;

	/* Whether what cannot be split is one WQE. */
	NDA_DEV enum nda_status accepts(const operation &op) const
	{
		uint32_t room = NDA_QUEUE_LOAD(core_, q_, rxe.sq_data_bytes);

		if (op.inline_data || op.inline_operand)
			return op.length <= room ? NDA_OK : NDA_INVALID;
		return op.n_pieces == 0 ||
				(op.length <= max_length &&
					op.n_pieces <= room / format::sge_bytes)
			? NDA_OK
			: NDA_INVALID;
	}

	NDA_DEV static uint32_t units(const operation &) { return 1; }

	NDA_DEV uint32_t capacity() const
	{
		return capacity_of(NDA_QUEUE_LOAD(core_, q_, sq_depth),
			NDA_QUEUE_LOAD(core_, q_, cq_depth));
	}

	/* Nothing is held ready: every post is a complete one. */
	NDA_DEV void refresh(uint32_t head, uint32_t, uint32_t, bool) const
	{
		NDA_QUEUE_STORE(core_, q_, state.limit, head);
	}

	NDA_DEV void credited(uint32_t, uint32_t) const {}

	NDA_DEV void ring_to(uint32_t head) const
	{
		uint32_t mask = NDA_QUEUE_LOAD(core_, q_, sq_depth) - 1;
		uint64_t record = NDA_QUEUE_LOAD(core_, q_, sq_record);

		core_.clean(site::queue_line, q_ + offsetof(nda_queue, state),
			sizeof(nda_queue_state));
		core_.dsb(site::before_record);
		core_.template store_release<uint32_t>(record, head & mask);
		core_.clean(site::sq_record, record, 4);
		core_.dsb(site::before_doorbell);
		core_.template st_dev<uint64_t>(
			NDA_QUEUE_LOAD(core_, q_, sq_doorbell), doorbell_value(head));
	}

	NDA_DEV void write_wqe(
		const operation &op, uint32_t head, bool signalled, bool fence) const
	{
		uint64_t slot = NDA_QUEUE_LOAD(core_, q_, sq_base) +
			uint64_t{head & (NDA_QUEUE_LOAD(core_, q_, sq_depth) - 1)} *
				NDA_QUEUE_LOAD(core_, q_, rxe.sq_slot_bytes);
		format::wqe what = {};
		uint64_t w[format::wqe_words];

		what.wr_id = head;
		what.opcode = opcode_of(op.op);
		what.flags = (signalled ? format::send_signalled : 0) |
			(fence ? format::send_fence : 0) |
			(op.inline_data || op.inline_operand ? format::send_inline : 0);
		what.immediate = op.op == verb::write_immediate ? op.immediate : 0;
		what.remote_va = op.remote_va;
		what.rkey = op.rkey;
		what.compare_add = op.op == verb::compare_swap ? op.compare : op.operand;
		what.swap = op.op == verb::compare_swap ? op.operand : 0;
		what.iova = op.remote_va;
		what.ssn = head;
		what.length = static_cast<uint32_t>(op.length);
		what.resid = what.length;
		what.num_sge = write_data(slot + format::wqe_bytes, op);
		format::encode(what, w);
		for (uint32_t i = 0; i < format::wqe_words; i++)
			core_.template store<uint64_t>(slot + uint64_t{i} * 8, w[i]);
		core_.clean(site::wqe, slot, NDA_QUEUE_LOAD(core_, q_, rxe.sq_slot_bytes));
	}

	/* What follows a WQE at @at; the number of SGEs. */
	NDA_DEV uint32_t write_data(uint64_t at, const operation &op) const
	{
		if (op.length == 0)
			return 0;
		if (op.inline_operand) {
			core_.template store<uint64_t>(at, op.operand);
			return 0;
		}
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

	/* A WRITE of no bytes, which needs no memory on either side. */
	NDA_DEV static operation flush_operation()
	{
		operation op = {};

		op.op = verb::write;
		op.even_empty = true;
		return op;
	}

	NDA_DEV uint64_t cqe_address(uint32_t ci) const
	{
		return NDA_QUEUE_LOAD(core_, q_, cq_base) +
			uint64_t{ci & (NDA_QUEUE_LOAD(core_, q_, cq_depth) - 1)} *
			NDA_QUEUE_LOAD(core_, q_, cqe_stride);
	}

	NDA_DEV uint32_t consume(reader *r, uint32_t most) const
	{
		uint64_t producer = NDA_QUEUE_LOAD(core_, q_, rxe.cq_producer);
		uint32_t mask = NDA_QUEUE_LOAD(core_, q_, cq_depth) - 1;
		uint32_t n = 0;
		bool good = true;

		core_.invalidate(site::cq_look, producer, 4);
		uint32_t there = min_u32(most,
			(core_.template load_acquire<uint32_t>(producer) - r->ci) & mask);
		for (; n < there && good; n++) {
			uint64_t cqe = cqe_address(r->ci + n);

			core_.invalidate(site::cq_entry, cqe, format::cqe_bytes);
			good = format::sent(core_.template load<uint64_t>(cqe + 8));
		}
		if (n == 0)
			return 0;
		r->ci += n;
		settle(r, cqe_address(r->ci - 1), n, good);
		return n;
	}

	/* Moves the tail behind the WQE that the CQE at @cqe, the last of @count consumed,
	 * names: everything before it is done too. */
	NDA_DEV void settle(reader *r, uint64_t cqe, uint32_t count, bool good) const
	{
		uint64_t wr_id = core_.template load<uint64_t>(cqe);
		uint32_t before = static_cast<uint32_t>(wr_id) - r->tail;
		bool known =
			Base::settle(r, wr_id >> 32 == 0 ? before + 1 : UINT32_MAX, count);
		if (known && good)
			return;

		uint32_t raw = format::low(core_.template load<uint64_t>(cqe + 8));
		uint32_t vendor = format::low(core_.template load<uint64_t>(cqe + 16));
		r->seen = static_cast<uint32_t>(
			raw == 0 ? NDA_BAD_RESPONSE : format::status_of(raw));
		latch({r->seen, static_cast<uint8_t>(raw), static_cast<uint8_t>(vendor),
			static_cast<uint16_t>(wr_id)});
	}

	NDA_DEV void publish_ci(uint32_t ci) const
	{
		uint64_t record = NDA_QUEUE_LOAD(core_, q_, cq_record);

		core_.template store_release<uint32_t>(
			record, ci & (NDA_QUEUE_LOAD(core_, q_, cq_depth) - 1));
		core_.clean(site::cq_record, record, 4);
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
	template <verb what>
	NDA_DEV bool post(const Core &, uint64_t, uint64_t, uint64_t)
	{
		return false;
	}
};

struct Engine {
	static constexpr uint32_t table_format = NDA_FORMAT_RXE;
	static constexpr bool has_inline = true;
	static constexpr bool has_inline_operand = true;
	static constexpr bool has_pieces = true;
	static constexpr bool reaches_itself = true;
	static constexpr bool keeps_order = true;

	NDA_DEV static constexpr bool emulates(verb, uint32_t) { return false; }

	NDA_DEV static constexpr bool supports(verb v, uint32_t size)
	{
		return v == verb::write || v == verb::read || v == verb::write_immediate ||
			((v == verb::fetch_add || v == verb::compare_swap) && size == 8);
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
	NDA_DEV static bool post_to_heap(
		const Core &, uint64_t, uint64_t, uint64_t, uint64_t)
	{
		return false;
	}

	template <verb what, class Core>
	NDA_DEV static bool post_to_region(
		const Core &, uint64_t, uint64_t, uint32_t, uint64_t, uint32_t, uint64_t)
	{
		return false;
	}
};

} // namespace nda::aiv::rxe

#endif
