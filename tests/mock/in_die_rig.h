/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A published table of Ascend 910's RoCE queues in ordinary memory, and a scripted NIC
 * behind it: takes what the doorbell announces, checks doorbell and WQEs as a strict
 * reader, does them if told that addresses are real, completes. Much less than the device
 * model: no keys, no transport.
 */
#ifndef TESTS_MOCK_IN_DIE_RIG_H
#define TESTS_MOCK_IN_DIE_RIG_H

#include <stdint.h>
#include <string.h>

#include <memory>
#include <string>
#include <vector>

#include <nda/aiv/in_die_state.h>
#include <nda/hw/in_die.h>
#include <nda/table.h>

namespace nda::test {

struct InDieOptions {
	uint32_t n_pes = 2;
	uint32_t n_cores = 1;
	uint32_t my_pe = 0;
	uint32_t sq_depth = 64;
	uint32_t cq_depth = 64;
	uint32_t signal_every = 1;
	uint32_t cqe_stride = 32;
	uint32_t start = 0; /* first index of SQ and CQ */
	uint32_t timeout_us = 1000;
	bool sq_record = false;     /* beside the doorbell */
	bool cq_register = true;    /* else the CQ has a record */
	bool index_in_ring = false; /* CQEs name WQEs modulo the depth, not 2^16 */
	uint64_t heap_base = 0x100000000;
	uint64_t heap_bytes = 1 << 20;
	uint64_t remote_delta = 0x7000000000; /* of each peer */
	uint32_t rkey = 0xa1b2c3d4;
	uint32_t lkey = 0xc5263748;
	uint8_t sl = 4;
};

class InDieRig {
public:
	explicit InDieRig(const InDieOptions &options) : options_(options)
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
		t->format = NDA_FORMAT_IN_DIE;
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
	/* SQ doorbell and record, CQ doorbell and record, a line each. */
	uint64_t words(uint32_t pe, uint32_t core = 0)
	{
		return queue(pe, core).sq_doorbell;
	}
	uint8_t *sq(uint32_t pe, uint32_t core = 0)
	{
		return reinterpret_cast<uint8_t *>(queue(pe, core).sq_base);
	}
	uint8_t *cq(uint32_t pe, uint32_t core = 0)
	{
		return reinterpret_cast<uint8_t *>(queue(pe, core).cq_base);
	}
	/* How far the NIC knows of the consumer, modulo 2^24. */
	uint32_t consumer(uint32_t pe, uint32_t core = 0)
	{
		nda_queue &q = queue(pe, core);

		return options_.cq_register ? hw::in_die::decode_cq_doorbell(
						      word<uint64_t>(q.in_die.cq_doorbell))
						      .ci
					    : word<uint32_t>(q.cq_record);
	}
	uint32_t sq_record(uint32_t pe) { return word<uint32_t>(words(pe) + 64); }
	void slot(uint32_t pe, uint32_t index, uint64_t out[hw::in_die::wqe_words])
	{
		memcpy(out, slot_at(pe, 0, index), hw::in_die::wqe_bytes);
	}

	/* ---- The NIC ---- */

	/* Takes up to @most WQEs of what the doorbell announces, completing those that ask
	 * for it. Returns how many; what is not as it should be ends it and sets fault. */
	uint32_t nic_run(uint32_t pe, uint32_t most = UINT32_MAX, uint32_t core = 0)
	{
		Nic &nic = nic_of(pe, core);
		uint32_t head = announced(pe, core), n = 0;

		for (; n < most && nic.next != head && fault.empty(); n++) {
			uint64_t w[hw::in_die::wqe_words];
			uint8_t *at = slot_at(pe, core, nic.next);

			w[0] = word<uint64_t>(reinterpret_cast<uint64_t>(at));
			memcpy(w + 1, at + 8, hw::in_die::wqe_bytes - 8);
			hw::in_die::wqe_fault found =
				hw::in_die::check(w, nic.next, options_.sq_depth);
			if (found != hw::in_die::wqe_fault::none) {
				fault = "WQE of index " + std::to_string(nic.next) +
					": fault " + std::to_string(int(found));
				return n;
			}
			last = hw::in_die::decode(w);
			if (real_addresses)
				execute(last);
			if (last.completion)
				nic_complete(pe, nic.next, 0, core);
			nic.next++;
		}
		return n;
	}

	/* Completes the WQE of @index: with an error if @status is not 0. */
	void nic_complete(uint32_t pe, uint32_t index, uint8_t status = 0,
		uint32_t core = 0, uint8_t sub_status = 0)
	{
		Nic &nic = nic_of(pe, core);
		hw::in_die::cqe f = {};

		f.opcode = hw::in_die::op_write;
		f.owner = hw::in_die::owner_bit(nic.ci, options_.cq_depth) ? 1 : 0;
		f.status = status;
		f.sub_status = sub_status;
		f.wqe_index = static_cast<uint16_t>(
			options_.index_in_ring ? index & (options_.sq_depth - 1) : index);
		f.qpn = queue(pe, core).qpn;
		put_cqe(f, cqe_at(queue(pe, core), nic.ci));
		nic.ci++;
	}

	/* Goes into error at its next WQE: that with @status, the rest that is announced
	 * flushed. */
	void nic_fail(
		uint32_t pe, uint8_t status, uint32_t core = 0, uint8_t sub_status = 0)
	{
		Nic &nic = nic_of(pe, core);
		uint32_t head = announced(pe, core);

		for (; nic.next != head; nic.next++) {
			nic_complete(pe, nic.next, status, core, sub_status);
			status = hw::in_die::syndrome_flushed;
			sub_status = 0;
		}
	}

	uint32_t nic_next(uint32_t pe, uint32_t core = 0) { return nic_of(pe, core).next; }

	std::string fault;           /* what the driver did wrong */
	hw::in_die::wqe last = {};   /* the last WQE taken */
	bool real_addresses = false; /* to memory of this process */

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

	template <class T>
	static T word(uint64_t address)
	{
		return __atomic_load_n(reinterpret_cast<T *>(address), __ATOMIC_ACQUIRE);
	}

	Nic &nic_of(uint32_t pe, uint32_t core)
	{
		return nics_[core * options_.n_pes + pe];
	}

	uint8_t *slot_at(uint32_t pe, uint32_t core, uint32_t index)
	{
		return sq(pe, core) +
			size_t{index & (options_.sq_depth - 1)} * hw::in_die::wqe_bytes;
	}

	uint8_t *cqe_at(const nda_queue &q, uint32_t index)
	{
		return reinterpret_cast<uint8_t *>(q.cq_base) +
			size_t{index & (q.cq_depth - 1)} * q.cqe_stride;
	}

	static void put_cqe(const hw::in_die::cqe &f, uint8_t *at)
	{
		uint64_t w[hw::in_die::cqe_words];

		hw::in_die::encode(f, w);
		memcpy(at + 8, w + 1, sizeof(w) - 8);
		__atomic_store_n(reinterpret_cast<uint64_t *>(at), w[0], __ATOMIC_RELEASE);
	}

	/* The head that the doorbell names; a wrong one announces nothing. */
	uint32_t announced(uint32_t pe, uint32_t core)
	{
		nda_queue &q = queue(pe, core);
		uint64_t value = word<uint64_t>(q.sq_doorbell);
		hw::in_die::doorbell d = hw::in_die::decode_doorbell(value);
		uint32_t next = nic_of(pe, core).next;
		uint32_t posted = static_cast<uint16_t>(d.pi - next);

		if (d.tag != q.qpn || d.command != hw::in_die::command_sq || d.reserved28 ||
			d.direct || d.sl != options_.sl || d.reserved51)
			fault = "doorbell with a wrong field";
		else if (posted > options_.sq_depth)
			fault = "doorbell that names more than the ring has";
		else if (options_.sq_record && /* it may be the next doorbell's */
			static_cast<uint16_t>(word<uint32_t>(q.sq_record) - d.pi) >
				options_.sq_depth)
			fault = "record behind the doorbell";
		return fault.empty() ? next + posted : next;
	}

	uint64_t keep(size_t bytes, uint8_t fill)
	{
		blocks_.push_back(allocate(bytes, fill));
		return reinterpret_cast<uint64_t>(blocks_.back().get());
	}

	void make_queue(uint32_t core, uint32_t pe)
	{
		namespace format = hw::in_die;
		nda_queue &q = queue(pe, core);
		uint64_t words = keep(256, 0);

		q.remote_delta = options_.remote_delta;
		q.rkey = options_.rkey;
		q.lkey = options_.lkey;
		format::key_words(q.rkey, q.lkey, q.key_words);
		q.qpn = 0x1000 + pe;
		q.cqn = 0x50 + pe;
		q.sq_doorbell = words;
		q.sq_record = options_.sq_record ? words + 64 : 0;
		if (options_.cq_register) {
			q.in_die.cq_doorbell = words + 128;
			q.in_die.cq_template = format::cq_doorbell_template(q.cqn, {});
		} else {
			q.cq_record = words + 192;
		}
		q.sq_depth = options_.sq_depth;
		q.cq_depth = options_.cq_depth;
		q.cqe_stride = options_.cqe_stride;
		q.sq_base = keep(size_t{q.sq_depth} * format::wqe_bytes, 0);
		q.cq_base = keep(size_t{q.cq_depth} * q.cqe_stride, 0);
		q.doorbell_template = format::doorbell_template(q.qpn, options_.sl);
		q.signal_every = options_.signal_every;
		q.scratch_local = options_.heap_base + 64;
		q.scratch_remote = options_.heap_base + options_.remote_delta + 16;
		q.valid = 1;
		q.state = aiv::in_die::derive_state(
			q, options_.start, options_.start, options_.start);
		*reinterpret_cast<uint64_t *>(q.sq_doorbell) =
			format::doorbell_value(q.doorbell_template, options_.start);
		if (options_.sq_record)
			*reinterpret_cast<uint32_t *>(q.sq_record) =
				format::sq_record(options_.start);
		nic_of(pe, core).next = options_.start;
		nic_of(pe, core).ci = options_.start;
		age(pe, core);
	}

	/* Leaves in each slot what a NIC and a driver that have come to the start index
	 * would have. */
	void age(uint32_t pe, uint32_t core)
	{
		namespace format = hw::in_die;
		const nda_queue &q = queue(pe, core);

		for (uint32_t i = 0; i < q.cq_depth && options_.start != 0; i++) {
			uint32_t index = options_.start + i;
			format::cqe f = {};

			f.opcode = format::op_write;
			f.owner = format::owner_bit(index, q.cq_depth) ? 0 : 1;
			f.wqe_index = static_cast<uint16_t>(index - q.cq_depth);
			put_cqe(f, cqe_at(q, index));
		}
		for (uint32_t i = 0; i < q.sq_depth && options_.start != 0; i++) {
			uint32_t index = options_.start + i;
			format::request r = {};
			uint64_t w[format::wqe_words];

			r.opcode = format::op_write;
			r.sges = 2;
			r.length = 16;
			r.data[0] = r.data[2] = format::sge_word(8, 0x5a5a5a5a);
			r.data[1] = r.data[3] = 0x5a5a5a5a5a5a5a5a;
			format::encode(
				format::request_wqe(r, index - q.sq_depth, q.sq_depth), w);
			memcpy(slot_at(pe, core, index), w, sizeof(w));
		}
	}

	static void execute(const hw::in_die::wqe &w)
	{
		namespace format = hw::in_die;
		uint8_t *remote = reinterpret_cast<uint8_t *>(w.remote_va);

		if (format::is_atomic(w.opcode)) {
			uint64_t former;

			memcpy(&former, remote, sizeof(former));
			uint64_t result = w.opcode == format::op_fetch_add
				? former + w.data[2]
				: former == w.data[3] ? w.data[2]
						      : former;
			memcpy(remote, &result, sizeof(result));
			memcpy(reinterpret_cast<void *>(w.data[1]), &former,
				sizeof(former));
			return;
		}
		if (w.inline_data) {
			memcpy(remote, w.data, w.length);
			return;
		}
		for (uint32_t i = 0; i < w.sges; i++) {
			void *local = reinterpret_cast<void *>(w.data[2 * i + 1]);
			uint32_t length = format::sge_length(w.data[2 * i]);

			if (w.opcode == format::op_read)
				memcpy(local, remote, length);
			else
				memcpy(remote, local, length);
			remote += length;
		}
	}

	InDieOptions options_;
	Block table_;
	uint64_t bytes_ = 0;
	std::vector<Block> blocks_;
	std::vector<Nic> nics_;
};

} // namespace nda::test

#endif
