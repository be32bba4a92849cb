/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A published table with XSCALE rings in ordinary memory, and a scripted NIC behind it:
 * takes what the doorbells announce, checks every WQE as a strict reader, moves the bytes,
 * completes. Much less than the device model: no keys but one of each kind, no transport.
 * PE 0 is the own one; all peers' heaps are one.
 */
#ifndef TESTS_MOCK_XSCALE_RIG_H
#define TESTS_MOCK_XSCALE_RIG_H

#include <stdint.h>
#include <string.h>

#include <string>
#include <vector>

#include <nda/aiv/xscale_state.h>
#include <nda/hw/xscale.h>
#include <nda/table.h>

namespace nda::test {

struct XscaleOptions {
	uint32_t n_pes = 2;
	uint32_t sq_depth = 64;
	uint32_t cq_depth = 64;
	uint32_t signal_every = 1;
	uint32_t cqe_stride = 64;
	uint32_t start = 0; /* first index of SQ and CQ */
	uint32_t timeout_us = 1000;
	uint64_t heap_bytes = 65536;
	uint8_t atomics = 0; /* enum nda_xscale_atomics */
	bool preset = true;  /* the CQ's owner bits */
};

class XscaleRig {
public:
	typedef XscaleOptions Options;

	static constexpr uint32_t lkey = 0x95263748;
	static constexpr uint32_t rkey = 0xa1b2c3d4;
	static constexpr uint8_t fence_mode = 2;

	explicit XscaleRig(const XscaleOptions &options = {})
		: options_(options),
		  table_(sizeof(nda_table) + uint64_t{options.n_pes} * NDA_QUEUE_STRIDE, 0),
		  own_(options.heap_bytes, 0), peer_(options.heap_bytes, 0)
	{
		nda_table *t = table();

		t->magic = NDA_TABLE_MAGIC;
		t->version = NDA_TABLE_VERSION;
		t->size_bytes = table_.bytes;
		t->n_pes = options.n_pes;
		t->n_cores = 1;
		t->queues_per_core = 1;
		t->format = NDA_FORMAT_XSCALE;
		t->heap_base = own_base();
		t->heap_bytes = options.heap_bytes;
		t->queues_offset = sizeof(nda_table);
		t->device_timeout_us = options.timeout_us;
		nics_.resize(options.n_pes);
		for (uint32_t pe = 1; pe < options.n_pes; pe++)
			make_queue(pe);
	}

	nda_table *table() { return reinterpret_cast<nda_table *>(table_.address()); }
	uint64_t address() const { return table_.address(); }
	uint64_t bytes() const { return table_.bytes; }
	nda_queue &queue(uint32_t pe)
	{
		return reinterpret_cast<nda_queue *>(
			table_.address() + sizeof(nda_table))[pe];
	}

	uint8_t *own() { return own_.at(0); }
	uint8_t *peer() { return peer_.at(0); }
	uint64_t own_base() const { return own_.address(); }
	/* The 8 or 4 bytes of the peer's heap at the offset of own address @addr. */
	template <class T>
	T &peer_word(uint64_t addr)
	{
		return *reinterpret_cast<T *>(peer_.address() + (addr - own_base()));
	}

	uint8_t *sq(uint32_t pe) { return nics_[pe].sq.at(0); }
	uint8_t *cq(uint32_t pe) { return nics_[pe].cq.at(0); }
	uint64_t doorbell(uint32_t pe) const { return load(nics_[pe].words.at(0)); }
	uint64_t cq_doorbell(uint32_t pe) const { return load(nics_[pe].words.at(64)); }
	void words(uint32_t pe, uint32_t index, uint64_t w[hw::xscale::wqe_words])
	{
		memcpy(w, slot(pe, index), hw::xscale::wqe_bytes);
	}
	hw::xscale::wqe wqe(uint32_t pe, uint32_t index)
	{
		uint64_t w[hw::xscale::wqe_words];

		words(pe, index, w);
		return hw::xscale::decode(w);
	}

	/* ---- The NIC ---- */

	/* Why the first thing that was not as it should be was not; empty: all was. */
	std::string fault;
	/* Whether WQEs do anything; else their addresses and keys are not looked at. */
	bool move_bytes = true;
	/* Immediate values that the peers have received. */
	std::vector<uint32_t> received;

	/* Takes up to @most WQEs of what the doorbell announced. Returns how many. */
	uint32_t run(uint32_t pe, uint32_t most = UINT32_MAX)
	{
		Nic &nic = nics_[pe];
		uint32_t n = 0;

		look(pe);
		for (; n < most && nic.next != nic.known && fault.empty(); n++) {
			uint64_t w[hw::xscale::wqe_words];

			for (uint32_t i = 0; i < hw::xscale::wqe_words; i++)
				w[i] = load(slot(pe, nic.next) + i * 8);
			hw::xscale::wqe_fault wrong = hw::xscale::check(w, nic.next);
			if (wrong != hw::xscale::wqe_fault::none) {
				complain("WQE fault " + std::to_string(int(wrong)));
				return n;
			}
			hw::xscale::wqe f = hw::xscale::decode(w);
			uint8_t error = nic.failed ? uint8_t{hw::xscale::error_flushed}
						   : execute(f);
			if (f.completion || error)
				complete(pe, nic.next, error);
			nic.failed = nic.failed || error != 0;
			nic.next++;
		}
		return n;
	}

	/* Completes the WQE of @index. */
	void complete(uint32_t pe, uint32_t index, uint8_t error = 0)
	{
		hw::xscale::cqe f = {};

		f.error = error;
		f.qp_id = queue(pe).qpn & 0x7fff;
		f.opcode = *slot(pe, index);
		f.wqe_id = hw::xscale::wqe_id_of(index);
		f.timestamp = 0x123456789abcdef;
		complete(pe, f);
	}

	/* The same with any CQE, whose owner bit is set here. */
	void complete(uint32_t pe, hw::xscale::cqe f)
	{
		Nic &nic = nics_[pe];
		uint32_t taken = hw::xscale::decode_cq_doorbell(cq_doorbell(pe)).next_cid;
		uint64_t w[hw::xscale::cqe_words];
		uint8_t *at = nic.cq.at(
			uint64_t{nic.pi & (options_.cq_depth - 1)} * options_.cqe_stride);

		if (((nic.pi - taken) & 0x7fffff) >= options_.cq_depth)
			complain("the CQ is overrun");
		f.owner = hw::xscale::owner_bit(nic.pi, options_.cq_depth);
		hw::xscale::encode(f, w);
		for (uint32_t i = 0; i < hw::xscale::cqe_words; i++)
			store(at + i * 8, w[i]);
		nic.pi++;
	}

	/* Goes into error at its next WQE: that with @error, the rest that is announced
	 * flushed. */
	void fail(uint32_t pe, uint8_t error)
	{
		Nic &nic = nics_[pe];

		look(pe);
		for (; nic.next != nic.known; nic.next++) {
			complete(pe, nic.next, error);
			error = hw::xscale::error_flushed;
		}
		nic.failed = true;
	}

	uint32_t completions(uint32_t pe) const { return nics_[pe].pi - options_.start; }
	uint32_t next(uint32_t pe) const { return nics_[pe].next; }

private:
	/* On a cache line. */
	struct Memory {
		uint64_t bytes = 0;
		std::vector<uint64_t> words;

		Memory() = default;
		Memory(uint64_t n, uint8_t fill) : bytes(n), words(n / 8 + 8)
		{
			memset(at(0), fill, n);
		}
		uint64_t address() const
		{
			return (reinterpret_cast<uint64_t>(words.data()) + 63) &
				~uint64_t{63};
		}
		uint8_t *at(uint64_t offset) const
		{
			return reinterpret_cast<uint8_t *>(address() + offset);
		}
	};

	struct Nic {
		Memory sq;
		Memory cq;
		Memory words; /* SQ doorbell, CQ doorbell */
		uint32_t known = 0;
		uint32_t next = 0; /* WQE */
		uint32_t pi = 0;   /* CQE */
		bool failed = false;
	};

	static uint64_t load(const uint8_t *at)
	{
		return __atomic_load_n(
			reinterpret_cast<const uint64_t *>(at), __ATOMIC_ACQUIRE);
	}
	static void store(uint8_t *at, uint64_t value)
	{
		__atomic_store_n(reinterpret_cast<uint64_t *>(at), value, __ATOMIC_RELEASE);
	}

	void complain(const std::string &what)
	{
		if (fault.empty())
			fault = what;
	}

	uint8_t *slot(uint32_t pe, uint32_t index)
	{
		return nics_[pe].sq.at(
			uint64_t{index & (options_.sq_depth - 1)} * hw::xscale::wqe_bytes);
	}

	/* Takes the doorbells. */
	void look(uint32_t pe)
	{
		Nic &nic = nics_[pe];
		hw::xscale::doorbell d = hw::xscale::decode_doorbell(doorbell(pe));
		hw::xscale::cq_doorbell c = hw::xscale::decode_cq_doorbell(cq_doorbell(pe));

		if (d.qp_id != queue(pe).qpn || d.reserved || d.next_pid % 8 != 0)
			complain("a doorbell that is none of the queue's");
		if (c.cq_id != queue(pe).cqn || c.reserved ||
			c.state != hw::xscale::cq_keep)
			complain("a CQ doorbell that is none of the queue's");
		uint32_t step = (d.next_pid / 8 - nic.known) & 0x3ffff;
		if (step > options_.sq_depth)
			complain("a doorbell that goes back");
		else
			nic.known += step;
	}

	void make_queue(uint32_t pe)
	{
		namespace x = hw::xscale;
		Nic &nic = nics_[pe];
		nda_queue &q = queue(pe);

		/* What an earlier lap left. */
		nic.sq = Memory(uint64_t{options_.sq_depth} * x::wqe_bytes, 0xee);
		nic.cq = Memory(uint64_t{options_.cq_depth} * options_.cqe_stride,
			options_.preset ? x::cqe_ring_fill : 0);
		nic.words = Memory(128, 0);
		nic.known = nic.next = nic.pi = options_.start;
		q.remote_delta = peer_.address() - own_.address();
		q.rkey = rkey;
		q.lkey = lkey;
		q.key_words[0] = x::segment_word(0, rkey);
		q.key_words[1] = x::segment_word(0, lkey);
		q.sq_doorbell = nic.words.address();
		q.sq_base = nic.sq.address();
		q.cq_base = nic.cq.address();
		q.qpn = 0x9000 + pe;
		q.cqn = 0x8050 + pe;
		q.doorbell_template = x::doorbell_template(q.qpn);
		q.signal_every = options_.signal_every;
		q.sq_depth = options_.sq_depth;
		q.cq_depth = options_.cq_depth;
		q.cqe_stride = options_.cqe_stride;
		q.scratch_local = own_.address() + options_.heap_bytes -
			NDA_SCRATCH_BYTES * (uint64_t{pe} + 1);
		q.scratch_remote = peer_.address();
		q.xscale.cq_doorbell = nic.words.address() + 64;
		q.xscale.cq_doorbell_template = x::cq_doorbell_template(q.cqn, x::cq_keep);
		q.xscale.fence_mode = fence_mode;
		q.xscale.atomics = options_.atomics;
		q.valid = 1;
		q.state = aiv::xscale::derive_state(
			q, options_.start, options_.start, options_.start);
		store(nic.words.at(0),
			x::doorbell_value(q.doorbell_template, options_.start));
		store(nic.words.at(64),
			x::cq_doorbell_value(
				q.xscale.cq_doorbell_template, options_.start));
		age_cq(pe);
	}

	/* Leaves in each slot what a NIC that has come to the start index would have. */
	void age_cq(uint32_t pe)
	{
		for (uint32_t i = 0; i < options_.cq_depth && options_.start != 0; i++) {
			uint32_t index = options_.start + i;
			hw::xscale::cqe f = {};
			uint64_t w[hw::xscale::cqe_words];

			f.owner = hw::xscale::owner_bit(index, options_.cq_depth) ? 0 : 1;
			f.qp_id = queue(pe).qpn & 0x7fff;
			f.wqe_id = hw::xscale::wqe_id_of(index - options_.cq_depth);
			hw::xscale::encode(f, w);
			memcpy(cq(pe) +
					size_t{index & (options_.cq_depth - 1)} *
						options_.cqe_stride,
				w, sizeof(w));
		}
	}

	static bool inside(const Memory &m, uint64_t addr, uint64_t n)
	{
		return addr >= m.address() && addr - m.address() <= m.bytes &&
			n <= m.bytes - (addr - m.address());
	}

	/* The error code. */
	uint8_t execute(const hw::xscale::wqe &f)
	{
		namespace x = hw::xscale;
		uint32_t size = x::atomic_bytes(f.opcode);
		uint8_t *remote = reinterpret_cast<uint8_t *>(f.remote.va);

		if (!move_bytes)
			return 0;
		if (f.remote.length != 0 &&
			(f.remote.key != rkey ||
				!inside(peer_, f.remote.va, f.remote.length)))
			return x::error_nak_access;
		if (size != 0)
			return execute_atomic(f, size);
		for (uint32_t i = 0; i < x::pieces_of(f); i++) {
			x::segment s = x::piece(f, i);

			if (s.key != lkey || !inside(own_, s.va, s.length))
				return x::error_local_mr;
			if (f.opcode == x::op_read)
				memcpy(reinterpret_cast<void *>(s.va), remote, s.length);
			else
				memcpy(remote, reinterpret_cast<void *>(s.va), s.length);
			remote += s.length;
		}
		if (f.immediate)
			received.push_back(f.data);
		return 0;
	}

	uint8_t execute_atomic(const hw::xscale::wqe &f, uint32_t size)
	{
		namespace x = hw::xscale;
		bool little = (options_.atomics & NDA_XSCALE_LITTLE_ENDIAN) != 0;
		uint64_t former = 0, after;
		x::atomic a = x::decode_atomic(f.opcode, f.more, little);

		if (f.remote.va % size != 0)
			return x::error_atomic_va;
		if (f.local.key != lkey || !inside(own_, f.local.va, size))
			return x::error_local_mr;
		memcpy(&former, reinterpret_cast<void *>(f.remote.va), size);
		after = x::atomic_outcome(f.opcode, a, former);
		memcpy(reinterpret_cast<void *>(f.remote.va), &after, size);
		if (size == 4)
			former = x::result4(static_cast<uint32_t>(former));
		memcpy(reinterpret_cast<void *>(f.local.va), &former, size);
		return 0;
	}

	XscaleOptions options_;
	Memory table_;
	Memory own_;
	Memory peer_;
	std::vector<Nic> nics_;
};

} // namespace nda::test

#endif
