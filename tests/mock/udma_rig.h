/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A published table with UDMA rings in ordinary memory, and a scripted NIC behind it: takes
 * what the doorbells announce, checks every request as a strict reader, moves the bytes,
 * completes. Much less than the device model: one token of each kind, no transport. PE 0 is
 * the own one; all peers' heaps are one.
 */
#ifndef TESTS_MOCK_UDMA_RIG_H
#define TESTS_MOCK_UDMA_RIG_H

#include <stdint.h>
#include <string.h>

#include <string>
#include <vector>

#include <nda/aiv/udma_state.h>
#include <nda/hw/udma.h>
#include <nda/table.h>

namespace nda::test {

struct UdmaOptions {
	uint32_t n_pes = 2;
	uint32_t sq_depth = 64; /* blocks */
	uint32_t cq_depth = 64;
	uint32_t signal_every = 1;
	uint32_t cqe_stride = 64;
	uint32_t start = 0; /* first index of SQ and CQ */
	uint32_t timeout_us = 1000;
	uint64_t heap_bytes = 65536;
	uint8_t fill = 0xa5; /* of the send ring, as if from earlier laps */
	uint8_t order = aiv::udma::default_order;
	uint8_t strong_order = aiv::udma::default_strong_order;
	bool owner = true;
	uint16_t max_inline = 208;
	bool names_last_block = false; /* what a completion says of its request */
};

class UdmaRig {
public:
	static constexpr uint32_t local_token_id = 0x56789;
	static constexpr uint32_t token_id = 0xabcde;
	static constexpr uint32_t token_value = 0xcafef00d;
	static constexpr uint32_t tp_id = 0x123456;

	explicit UdmaRig(const UdmaOptions &options = {})
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
		t->format = NDA_FORMAT_UDMA;
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
	/* The T of the peer's heap at the offset of own address @addr. */
	template <class T>
	T &peer_word(uint64_t addr)
	{
		return *reinterpret_cast<T *>(peer_.address() + (addr - own_base()));
	}

	uint8_t *sq(uint32_t pe) { return nics_[pe].sq.at(0); }
	uint8_t *cq(uint32_t pe) { return nics_[pe].cq.at(0); }
	uint32_t doorbell(uint32_t pe) const { return load32(nics_[pe].words.at(0)); }
	uint32_t cq_record(uint32_t pe) const { return load32(nics_[pe].words.at(64)); }
	/* The words of the request at @index, four blocks of the ring. */
	void words(uint32_t pe, uint32_t index, uint64_t w[hw::udma::max_words])
	{
		for (uint32_t i = 0; i < hw::udma::max_words; i++)
			w[i] = load(block(pe, index + i / 8) + i % 8 * 8);
	}
	hw::udma::control control(uint32_t pe, uint32_t index)
	{
		uint64_t w[hw::udma::max_words];

		words(pe, index, w);
		return hw::udma::decode(w);
	}

	/* ---- The NIC ---- */

	/* Why the first thing that was not as it should be was not; empty: all was. */
	std::string fault;
	/* Whether requests do anything; else their addresses and tokens are not looked at.
	 */
	bool move_bytes = true;
	std::vector<uint32_t> received; /* immediate values */

	/* Takes up to @most requests of what the doorbell announced. Returns how many. */
	uint32_t run(uint32_t pe, uint32_t most = UINT32_MAX)
	{
		Nic &nic = nics_[pe];
		uint32_t n = 0;

		look(pe);
		for (; n < most && nic.next != nic.known && fault.empty(); n++) {
			uint64_t w[hw::udma::max_words];

			words(pe, nic.next, w);
			hw::udma::sqe_fault wrong = hw::udma::check(w, nic.next,
				options_.sq_depth, {options_.owner, options_.max_inline});
			hw::udma::control f = hw::udma::decode(w);
			if (wrong != hw::udma::sqe_fault::none) {
				complain("request fault " + std::to_string(int(wrong)));
				return n;
			}
			uint32_t bbs = hw::udma::bbs_of(f);
			if (bbs > nic.known - nic.next)
				complain("a request that is not all there");
			uint32_t raw = nic.failed ? uint32_t{hw::udma::status_flushed} << 8
				: nic.fails != 0  ? nic.fails
						  : execute(f, w);
			if (f.completion || raw != 0)
				complete(pe, nic.next, bbs, raw);
			nic.failed = nic.failed || raw != 0;
			nic.next += bbs;
		}
		return n;
	}

	/* The next request ends with @raw, the rest flushed. */
	void fail_next(uint32_t pe, uint32_t raw) { nics_[pe].fails = raw; }

	/* Completes the request at @index; @raw: status << 8 | substatus. */
	void complete(uint32_t pe, uint32_t index, uint32_t bbs, uint32_t raw = 0)
	{
		hw::udma::cqe f = {};

		f.status = static_cast<uint8_t>(raw >> 8);
		f.substatus = static_cast<uint8_t>(raw);
		f.entry_index = static_cast<uint16_t>(
			index + (options_.names_last_block ? bbs - 1 : 0));
		complete(pe, f);
	}

	/* The same with any completion, whose owner bit is set here. */
	void complete(uint32_t pe, hw::udma::cqe f)
	{
		Nic &nic = nics_[pe];
		uint64_t w[hw::udma::cqe_words];
		uint8_t *at = nic.cq.at(
			uint64_t{nic.pi & (options_.cq_depth - 1)} * options_.cqe_stride);

		if (((nic.pi - cq_record(pe)) & hw::udma::ci_mask_22) >= options_.cq_depth)
			complain("the CQ is overrun");
		f.is_jetty = 1;
		f.owner = hw::udma::owner_bit(nic.pi, options_.cq_depth);
		hw::udma::encode(f, w);
		for (uint32_t i = hw::udma::cqe_words; i-- > 0;)
			store(at + i * 8, w[i]);
		nic.pi++;
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
		Memory words; /* doorbell, CQ record */
		uint32_t known = 0;
		uint32_t next = 0; /* block */
		uint32_t pi = 0;   /* completion */
		uint32_t fails = 0;
		bool failed = false;
	};

	static uint64_t load(const uint8_t *at)
	{
		return __atomic_load_n(
			reinterpret_cast<const uint64_t *>(at), __ATOMIC_ACQUIRE);
	}
	static uint32_t load32(const uint8_t *at)
	{
		return __atomic_load_n(
			reinterpret_cast<const uint32_t *>(at), __ATOMIC_ACQUIRE);
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

	uint8_t *block(uint32_t pe, uint32_t index)
	{
		return nics_[pe].sq.at(
			uint64_t{index & (options_.sq_depth - 1)} * hw::udma::bb_bytes);
	}

	void look(uint32_t pe)
	{
		Nic &nic = nics_[pe];
		uint32_t head = doorbell(pe);

		if (head - nic.next > options_.sq_depth ||
			head - nic.next < nic.known - nic.next)
			complain("a doorbell that goes back, or beyond the ring");
		else
			nic.known = head;
	}

	void make_queue(uint32_t pe)
	{
		Nic &nic = nics_[pe];
		nda_queue &q = queue(pe);
		const uint64_t eid[2] = {0x0706050403020100, pe};

		nic.sq = Memory(
			uint64_t{options_.sq_depth} * hw::udma::bb_bytes, options_.fill);
		nic.cq = Memory(uint64_t{options_.cq_depth} * options_.cqe_stride, 0);
		nic.words = Memory(128, 0);
		nic.known = nic.next = nic.pi = options_.start;
		aiv::udma::describe_peer(&q, tp_id, eid, token_id, token_value, true,
			local_token_id, hw::udma::jetty_type_jetty, 0);
		q.remote_delta = peer_.address() - own_.address();
		q.sq_doorbell = nic.words.address();
		q.cq_record = nic.words.address() + 64;
		q.sq_base = nic.sq.address();
		q.cq_base = nic.cq.address();
		q.qpn = 0x9000 + pe;
		q.cqn = 0x8050 + pe;
		q.signal_every = options_.signal_every;
		q.sq_depth = options_.sq_depth;
		q.cq_depth = options_.cq_depth;
		q.cqe_stride = options_.cqe_stride;
		q.scratch_local = own_.address() + options_.heap_bytes -
			NDA_SCRATCH_BYTES * (uint64_t{pe} + 1);
		q.scratch_remote = peer_.address();
		q.udma.order = options_.order;
		q.udma.strong_order = options_.strong_order;
		q.udma.owner = options_.owner;
		q.udma.ci_mask = aiv::udma::default_ci_mask;
		q.udma.max_inline = options_.max_inline;
		q.valid = 1;
		q.state = aiv::udma::derive_state(
			q, options_.start, options_.start, options_.start);
		uint32_t start = options_.start;
		memcpy(nic.words.at(0), &start, sizeof(start));
		start &= aiv::udma::default_ci_mask;
		memcpy(nic.words.at(64), &start, sizeof(start));
		age_cq(pe);
	}

	/* Leaves in each slot what a NIC that has come to the start index would have. */
	void age_cq(uint32_t pe)
	{
		for (uint32_t i = 0; i < options_.cq_depth && options_.start != 0; i++) {
			uint32_t index = options_.start + i;
			uint64_t w[hw::udma::cqe_words];
			hw::udma::cqe f = {};

			f.owner = hw::udma::owner_bit(index, options_.cq_depth) ? 0 : 1;
			f.entry_index = static_cast<uint16_t>(index);
			hw::udma::encode(f, w);
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

	static constexpr uint32_t remote_denied =
		hw::udma::status_remote << 8 | hw::udma::remote_access;
	static constexpr uint32_t local_denied =
		hw::udma::status_local << 8 | hw::udma::local_access;

	/* The raw status. */
	uint32_t execute(const hw::udma::control &f, const uint64_t w[hw::udma::max_words])
	{
		namespace u = hw::udma;
		uint64_t length = u::total_length(f, w);
		uint8_t *remote = reinterpret_cast<uint8_t *>(f.remote_va);
		const uint64_t *data = w + u::data_word(f.opcode);

		if (!move_bytes)
			return 0;
		if (f.token_id != token_id || f.token_value != token_value ||
			(length != 0 && !inside(peer_, f.remote_va, length)))
			return remote_denied;
		if (f.inline_data)
			memcpy(remote, data, length);
		for (uint32_t i = 0; i < f.sge_count; i++, data += 2) {
			u::sge s = u::decode_sge(data);
			uint8_t *local = reinterpret_cast<uint8_t *>(s.va);

			if (s.token_id != local_token_id ||
				(s.length != 0 && !inside(own_, s.va, s.length)))
				return local_denied;
			if (u::atomic(f.opcode))
				change(f, w, remote, local, s.length);
			else if (f.udf)
				add(remote, local);
			else if (f.opcode == u::op_read)
				memcpy(local, remote, s.length);
			else
				memcpy(remote, local, s.length);
			remote += s.length;
		}
		if (f.opcode == u::op_write_immediate)
			received.push_back(static_cast<uint32_t>(w[u::control_words]));
		if (f.opcode != u::op_write_notify)
			return 0;
		u::notify n = u::decode_notify(w + u::control_words);
		if (n.token_id != token_id || n.token_value != token_value ||
			!inside(peer_, n.va, 8))
			return remote_denied;
		memcpy(reinterpret_cast<void *>(n.va), &n.data, 8);
		return 0;
	}

	static void change(const hw::udma::control &f, const uint64_t *w, uint8_t *remote,
		uint8_t *local, uint32_t size)
	{
		const uint8_t *operands =
			reinterpret_cast<const uint8_t *>(w + hw::udma::operand_word);
		uint8_t former[16];

		memcpy(former, remote, size);
		if (f.opcode == hw::udma::op_compare_swap) {
			if (memcmp(former, operands + size, size) == 0)
				memcpy(remote, operands, size);
		} else {
			uint64_t sum = 0, more = 0;

			memcpy(&sum, former, size);
			memcpy(&more, operands, size);
			sum += more;
			memcpy(remote, &sum, size);
		}
		memcpy(local, former, size);
	}

	static void add(uint8_t *remote, const uint8_t *local)
	{
		float there, more;

		memcpy(&there, remote, sizeof(there));
		memcpy(&more, local, sizeof(more));
		there += more;
		memcpy(remote, &there, sizeof(there));
	}

	UdmaOptions options_;
	Memory table_;
	Memory own_;
	Memory peer_;
	std::vector<Nic> nics_;
};

} // namespace nda::test

#endif
