/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A published table with its rings in ordinary memory, and a scripted NIC behind it: takes
 * what the records announce, checks every WQE as a strict reader, moves the bytes if told
 * where remote memory is, completes. Much less than the device model: no keys, no doorbell
 * trigger, no transport.
 */
#ifndef TESTS_MOCK_HNS1825_RIG_H
#define TESTS_MOCK_HNS1825_RIG_H

#include <stdint.h>
#include <string.h>

#include <memory>
#include <string>
#include <vector>

#include <nda/aiv/hns1825_state.h>
#include <nda/hw/hns1825.h>
#include <nda/table.h>

namespace nda::test {

namespace format = nda::hw::hns1825;

struct RigOptions {
	uint32_t n_pes = 2;
	uint32_t n_cores = 1;
	uint32_t my_pe = 0;
	uint32_t sq_depth = 64;
	uint32_t cq_depth = 64;
	uint32_t signal_every = 1;
	uint32_t cqe_stride = 64;
	uint32_t start = 0; /* first index of SQ and CQ */
	uint32_t timeout_us = 1000;
	uint64_t heap_base = 0x100000000;
	uint64_t heap_bytes = 1 << 20;
	uint64_t remote_delta = 0x7000000000; /* of each peer */
	uint32_t rkey = 0xa1b2c3d4;
	uint32_t lkey = 0x15263748;
};

class Rig {
public:
	explicit Rig(const RigOptions &options) : options_(options)
	{
		size_t n = size_t{options.n_pes} * options.n_cores;
		nda_table *t;

		bytes_ = sizeof(nda_table) + n * NDA_QUEUE_STRIDE;
		table_ = allocate(bytes_);
		t = table();
		t->magic = NDA_TABLE_MAGIC;
		t->version = NDA_TABLE_VERSION;
		t->size_bytes = bytes_;
		t->my_pe = options.my_pe;
		t->n_pes = options.n_pes;
		t->n_cores = options.n_cores;
		t->queues_per_core = 1;
		t->format = NDA_FORMAT_HNS1825;
		t->heap_base = options.heap_base;
		t->heap_bytes = options.heap_bytes;
		t->queues_offset = sizeof(nda_table);
		t->device_timeout_us = options.timeout_us;
		nics_.resize(n);
		for (uint32_t core = 0; core < options.n_cores; core++)
			for (uint32_t pe = 0; pe < options.n_pes; pe++)
				if (pe != options.my_pe)
					make_queue(core, pe);
	}

	nda_table *table() { return reinterpret_cast<nda_table *>(table_.get()); }
	uint64_t address() { return reinterpret_cast<uint64_t>(table_.get()); }
	uint64_t bytes() const { return bytes_; }

	nda_queue &queue(uint32_t pe, uint32_t core = 0)
	{
		return reinterpret_cast<nda_queue *>(
			table_.get() + sizeof(nda_table))[core * options_.n_pes + pe];
	}

	/* The queue's ring, CQ and its three words: SQ record, CQ record, doorbell. */
	uint8_t *sq(uint32_t pe, uint32_t core = 0)
	{
		return reinterpret_cast<uint8_t *>(queue(pe, core).sq_base);
	}
	uint8_t *cq(uint32_t pe, uint32_t core = 0)
	{
		return reinterpret_cast<uint8_t *>(queue(pe, core).cq_base);
	}
	uint32_t cq_record(uint32_t pe, uint32_t core = 0)
	{
		return format::cq_record_ci(__atomic_load_n(
			reinterpret_cast<uint32_t *>(queue(pe, core).cq_record),
			__ATOMIC_ACQUIRE));
	}
	uint32_t sq_record(uint32_t pe, uint32_t core = 0)
	{
		return format::sq_record_head(__atomic_load_n(
			reinterpret_cast<uint32_t *>(queue(pe, core).sq_record),
			__ATOMIC_ACQUIRE));
	}
	void slot(uint32_t pe, uint32_t index, uint64_t words[format::wqe_words])
	{
		memcpy(words,
			sq(pe) +
				size_t{index & (options_.sq_depth - 1)} * format::wqe_bytes,
			format::wqe_bytes);
	}

	/* ---- The NIC ---- */

	/* Takes up to @most WQEs of what the record announces, completing those that ask
	 * for it. Returns how many; a WQE that is not as it should be ends it and sets
	 * fault(). */
	uint32_t nic_run(uint32_t pe, uint32_t most = UINT32_MAX, uint32_t core = 0)
	{
		Nic &nic = nic_of(pe, core);
		uint32_t head = sq_record(pe, core), n = 0;

		for (; n < most && nic.next != head; n++) {
			uint64_t w[format::wqe_words];
			uint8_t *at = sq(pe, core) +
				size_t{nic.next & (options_.sq_depth - 1)} *
					format::wqe_bytes;

			w[0] = __atomic_load_n(
				reinterpret_cast<uint64_t *>(at), __ATOMIC_ACQUIRE);
			memcpy(w + 1, at + 8, format::wqe_bytes - 8);
			fault_ = format::check(w, nic.next, options_.sq_depth);
			if (fault_ != format::wqe_fault::none)
				return n;
			last_ = format::decode(w);
			if (move_bytes)
				move(last_);
			if (last_.completion)
				nic_complete(pe, nic.next, 0, core);
			nic.next++;
		}
		return n;
	}

	/* Completes the WQE of @index: with an error if @syndrome is not 0 or @error is
	 * set. */
	void nic_complete(uint32_t pe, uint32_t index, uint8_t syndrome = 0,
		uint32_t core = 0, bool error = false, uint8_t vendor = 0)
	{
		Nic &nic = nic_of(pe, core);
		format::cqe f = {};
		uint64_t w[format::cqe_words];
		uint8_t *at = cq(pe, core) +
			size_t{nic.ci & (options_.cq_depth - 1)} * options_.cqe_stride;

		f.owner = format::owner_bit(nic.ci, options_.cq_depth) ? 1 : 0;
		f.op_type = format::op_write;
		if (error || syndrome)
			f.op_type = format::cqe_op_error;
		f.qpn = queue(pe, core).qpn;
		f.syndrome = syndrome;
		f.vendor = vendor;
		f.wqe_counter = static_cast<uint16_t>(index);
		format::encode(f, w);
		memcpy(at + 8, w + 1, sizeof(w) - 8);
		__atomic_store_n(reinterpret_cast<uint64_t *>(at), w[0], __ATOMIC_RELEASE);
		nic.ci++;
	}

	/* Goes into error at its next WQE: that with @syndrome, the rest that is announced
	 * flushed. */
	void nic_fail(uint32_t pe, uint8_t syndrome, uint32_t core = 0, uint8_t vendor = 0)
	{
		Nic &nic = nic_of(pe, core);
		uint32_t head = sq_record(pe, core);

		for (; nic.next != head; nic.next++) {
			nic_complete(pe, nic.next, syndrome, core, true, vendor);
			syndrome = format::syndrome_flushed;
			vendor = 0;
		}
	}

	uint32_t nic_next(uint32_t pe, uint32_t core = 0) { return nic_of(pe, core).next; }
	format::wqe_fault fault() const { return fault_; }
	const format::wqe &last_wqe() const { return last_; }

	bool move_bytes = false;

private:
	struct Nic {
		uint32_t next = 0; /* WQE */
		uint32_t ci = 0;   /* CQE */
	};
	struct Free {
		void operator()(uint8_t *p) const
		{
			::operator delete[](p, std::align_val_t{64});
		}
	};
	using Block = std::unique_ptr<uint8_t[], Free>;

	static Block allocate(size_t bytes, uint8_t fill = 0)
	{
		Block block(static_cast<uint8_t *>(
			::operator new[](bytes, std::align_val_t{64})));
		memset(block.get(), fill, bytes);
		return block;
	}

	Nic &nic_of(uint32_t pe, uint32_t core)
	{
		return nics_[core * options_.n_pes + pe];
	}

	uint64_t keep(size_t bytes, uint8_t fill)
	{
		blocks_.push_back(allocate(bytes, fill));
		return reinterpret_cast<uint64_t>(blocks_.back().get());
	}

	void make_queue(uint32_t core, uint32_t pe)
	{
		nda_queue &q = queue(pe, core);
		uint64_t words = keep(192, 0);

		q.remote_delta = options_.remote_delta;
		q.rkey = options_.rkey;
		q.lkey = options_.lkey;
		format::key_words(q.rkey, q.lkey, q.key_words);
		q.sq_record = words;
		q.cq_record = words + 64;
		q.sq_doorbell = words + 128;
		q.sq_depth = options_.sq_depth;
		q.cq_depth = options_.cq_depth;
		q.cqe_stride = options_.cqe_stride;
		q.sq_base = keep(size_t{q.sq_depth} * format::wqe_bytes, 0xa5);
		q.cq_base = keep(size_t{q.cq_depth} * q.cqe_stride, format::cqe_ring_fill);
		q.qpn = 0x1000 + pe;
		q.cqn = 0x50 + pe;
		q.doorbell_template = format::doorbell_template(q.qpn, {});
		q.signal_every = options_.signal_every;
		q.scratch_local = options_.heap_base + 64;
		q.scratch_remote = options_.heap_base + options_.remote_delta + 16;
		q.valid = 1;
		q.state = aiv::hns1825::derive_state(
			q, options_.start, options_.start, options_.start);
		*reinterpret_cast<uint32_t *>(q.sq_record) =
			format::sq_record(options_.start);
		nic_of(pe, core).next = options_.start;
		nic_of(pe, core).ci = options_.start;
		age_cq(q);
	}

	/* Leaves in each slot what a NIC that has come to the start index would have. */
	void age_cq(const nda_queue &q)
	{
		for (uint32_t i = 0; i < q.cq_depth && options_.start != 0; i++) {
			uint32_t index = options_.start + i;
			format::cqe f = {};
			uint64_t w[format::cqe_words];

			f.owner = format::owner_bit(index, q.cq_depth) ? 0 : 1;
			f.op_type = format::op_write;
			f.wqe_counter = static_cast<uint16_t>(index - q.cq_depth);
			format::encode(f, w);
			memcpy(reinterpret_cast<uint8_t *>(q.cq_base) +
					size_t{index & (q.cq_depth - 1)} * q.cqe_stride,
				w, sizeof(w));
		}
	}

	static void move(const format::wqe &w)
	{
		void *remote = reinterpret_cast<void *>(w.remote_va);
		void *local = reinterpret_cast<void *>(w.local_va);

		if (w.opcode == format::op_write)
			memcpy(remote, local, w.data_len);
		else
			memcpy(local, remote, w.data_len);
	}

	RigOptions options_;
	Block table_;
	uint64_t bytes_ = 0;
	std::vector<Block> blocks_;
	std::vector<Nic> nics_;
	format::wqe_fault fault_ = format::wqe_fault::none;
	format::wqe last_ = {};
};

} // namespace nda::test

#endif
