/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A published table with Soft-RoCE rings in ordinary memory, and a scripted kernel behind
 * them, which reads and writes them by the kernel's public headers: looks only when the
 * doorbell was rung, checks what it takes, moves the bytes, completes. PE 0 is the own one;
 * all peers' heaps are one.
 */
#ifndef TESTS_MOCK_RXE_RIG_H
#define TESTS_MOCK_RXE_RIG_H

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

#include <string>
#include <vector>

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#include <nda/aiv/rxe_queue.h>
#include <nda/table.h>
#include <providers/rxe/uapi.h>

namespace nda::test {

struct RxeOptions {
	uint32_t n_pes = 2;
	uint32_t sq_slots = 64;
	uint32_t cq_slots = 64;
	uint32_t slot_bytes = 256;
	uint32_t data_bytes = 48;
	uint32_t signal_every = 1;
	uint32_t start = 0; /* first index of SQ and CQ */
	uint32_t timeout_us = 1000;
	uint64_t heap_bytes = 65536;
};

class RxeRig {
public:
	static constexpr uint32_t lkey = 0x15263748;
	static constexpr uint32_t rkey = 0xa1b2c3d4;
	static constexpr uint32_t cqe_slot = 128;

	explicit RxeRig(const RxeOptions &options)
		: options_(options),
		  table_(sizeof(nda_table) + uint64_t{options.n_pes} * NDA_QUEUE_STRIDE),
		  own_(options.heap_bytes), peer_(options.heap_bytes)
	{
		nda_table *t = table();

		t->magic = NDA_TABLE_MAGIC;
		t->version = NDA_TABLE_VERSION;
		t->size_bytes = table_.bytes;
		t->n_pes = options.n_pes;
		t->n_cores = 1;
		t->queues_per_core = 1;
		t->format = NDA_FORMAT_RXE;
		t->heap_base = own_.address();
		t->heap_bytes = options.heap_bytes;
		t->queues_offset = sizeof(nda_table);
		t->device_timeout_us = options.timeout_us;
		kernels_.resize(options.n_pes);
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

	rxe_queue_buf *sq(uint32_t pe) { return kernels_[pe].sq.header(); }
	rxe_queue_buf *cq(uint32_t pe) { return kernels_[pe].cq.header(); }
	uint64_t sq_bytes(uint32_t pe) const { return kernels_[pe].sq.bytes; }
	uint64_t cq_bytes(uint32_t pe) const { return kernels_[pe].cq.bytes; }
	const rxe_send_wqe *wqe(uint32_t pe, uint32_t index)
	{
		return reinterpret_cast<const rxe_send_wqe *>(sq_slot(pe, index));
	}

	/* ---- The kernel ---- */

	/* Why the first WQE that was not as it should be was not; empty: all were. */
	std::string fault;
	/* Immediate values that the peers have received. */
	std::vector<uint32_t> received;

	uint64_t &doorbell(uint32_t pe) { return kernels_[pe].doorbell; }

	/* Takes up to @most WQEs of what the last doorbell announced. Returns how many. */
	uint32_t run(uint32_t pe, uint32_t most = UINT32_MAX)
	{
		Kernel &k = kernels_[pe];
		uint32_t n = 0;

		if (__atomic_exchange_n(&k.doorbell, 0, __ATOMIC_ACQUIRE) != 0)
			k.known =
				__atomic_load_n(&sq(pe)->producer_index, __ATOMIC_ACQUIRE);
		if (k.known > sq(pe)->index_mask)
			return complain("the producer index is not masked");
		for (; n < most && k.next != k.known; n++) {
			rxe_send_wqe *w =
				reinterpret_cast<rxe_send_wqe *>(sq_slot(pe, k.next));
			if (!check(*w))
				return n;
			uint32_t status = k.failed ? uint32_t{IBV_WC_WR_FLUSH_ERR}
				: k.fails          ? uint32_t{IBV_WC_REM_ACCESS_ERR}
						   : execute(w);
			k.next = (k.next + 1) & sq(pe)->index_mask;
			__atomic_store_n(&sq(pe)->consumer_index, k.next, __ATOMIC_RELEASE);
			if (status != 0 || (w->wr.send_flags & IBV_SEND_SIGNALED) != 0)
				complete(pe, w->wr.wr_id, status, IBV_WC_RDMA_WRITE, 7);
			k.failed = k.failed || status != 0;
		}
		return n;
	}

	/* Writes a CQE, whatever was posted. */
	void complete(uint32_t pe, uint64_t wr_id, uint32_t status, uint32_t opcode,
		uint32_t vendor_err)
	{
		rxe_queue_buf *ring = cq(pe);
		uint32_t at = ring->producer_index, next = (at + 1) & ring->index_mask;
		ib_uverbs_wc wc = {};

		if (next == __atomic_load_n(&ring->consumer_index, __ATOMIC_ACQUIRE)) {
			complain("the CQ is overrun");
			return;
		}
		wc.wr_id = wr_id;
		wc.status = status;
		wc.opcode = opcode;
		wc.vendor_err = status != 0 ? vendor_err : 0;
		memcpy(ring->data + size_t{at} * cqe_slot, &wc, sizeof(wc));
		kernels_[pe].completions++;
		__atomic_store_n(&ring->producer_index, next, __ATOMIC_RELEASE);
	}

	/* The next WQE ends in a remote access error, the rest flushed. */
	void fail_next(uint32_t pe) { kernels_[pe].fails = true; }

	uint32_t completions(uint32_t pe) const { return kernels_[pe].completions; }

private:
	/* Whole zeroed pages. */
	struct Memory {
		uint64_t bytes;
		std::vector<uint64_t> words;

		explicit Memory(uint64_t n = 0) : bytes(n), words(n / 8 + 8) {}
		/* On a cache line. */
		uint64_t address() const
		{
			return (reinterpret_cast<uint64_t>(words.data()) + 63) &
				~uint64_t{63};
		}
		uint8_t *at(uint64_t offset) const
		{
			return reinterpret_cast<uint8_t *>(address() + offset);
		}
		rxe_queue_buf *header() const
		{
			return reinterpret_cast<rxe_queue_buf *>(address());
		}
	};

	struct Kernel {
		Memory sq;
		Memory cq;
		uint64_t doorbell = 0;
		uint32_t known = 0; /* producer index at the last doorbell */
		uint32_t next = 0;
		uint32_t completions = 0;
		bool fails = false;
		bool failed = false;
	};

	uint32_t complain(const char *what)
	{
		if (fault.empty())
			fault = what;
		return 0;
	}

	uint8_t *sq_slot(uint32_t pe, uint32_t index)
	{
		rxe_queue_buf *ring = sq(pe);

		return ring->data +
			(size_t{index & ring->index_mask} << ring->log2_elem_size);
	}

	void make_queue(uint32_t pe)
	{
		Kernel &k = kernels_[pe];
		nda_queue &q = queue(pe);

		make_ring(&k.sq, options_.sq_slots, options_.slot_bytes);
		make_ring(&k.cq, options_.cq_slots, cqe_slot);
		k.known = k.next = k.sq.header()->producer_index;
		/* What an earlier lap left. */
		memset(k.sq.header()->data, 0xee,
			size_t{options_.sq_slots} * options_.slot_bytes);
		q.remote_delta = peer_.address() - own_.address();
		q.sq_record = member(k.sq, offsetof(rxe_queue_buf, producer_index));
		q.sq_doorbell = reinterpret_cast<uint64_t>(&k.doorbell);
		q.sq_base = member(k.sq, offsetof(rxe_queue_buf, data));
		q.cq_base = member(k.cq, offsetof(rxe_queue_buf, data));
		q.cq_record = member(k.cq, offsetof(rxe_queue_buf, consumer_index));
		q.rxe.cq_producer = member(k.cq, offsetof(rxe_queue_buf, producer_index));
		q.rkey = rkey;
		q.lkey = lkey;
		q.signal_every = options_.signal_every;
		q.sq_depth = options_.sq_slots;
		q.cq_depth = options_.cq_slots;
		q.cqe_stride = cqe_slot;
		q.rxe.sq_slot_bytes = options_.slot_bytes;
		q.rxe.sq_data_bytes = options_.data_bytes;
		q.scratch_local = own_.address() + options_.heap_bytes - 256;
		q.valid = 1;
		q.state = aiv::rxe::derive_state(
			options_.start, options_.start, options_.start);
	}

	void make_ring(Memory *ring, uint32_t slots, uint32_t slot_bytes)
	{
		*ring = Memory(sizeof(rxe_queue_buf) + uint64_t{slots} * slot_bytes);
		ring->header()->log2_elem_size =
			static_cast<uint32_t>(__builtin_ctz(slot_bytes));
		ring->header()->index_mask = slots - 1;
		ring->header()->producer_index = options_.start & (slots - 1);
		ring->header()->consumer_index = options_.start & (slots - 1);
	}

	static uint64_t member(const Memory &ring, size_t offset)
	{
		return ring.address() + offset;
	}

	bool check(const rxe_send_wqe &w)
	{
		uint64_t sum = 0;
		bool in_line = (w.wr.send_flags & IBV_SEND_INLINE) != 0;

		if (!in_line && w.dma.num_sge > options_.data_bytes / sizeof(rxe_sge))
			return complain("more SGEs than the WQE has room for") != 0;
		for (uint32_t i = 0; !in_line && i < w.dma.num_sge; i++)
			sum += sge(w, i).length;
		if (w.state != 0 || w.status != 0 || w.mask != 0 || w.has_rd_atomic != 0)
			complain("the kernel's part of a WQE is not zero");
		else if (w.iova != w.wr.wr.rdma.remote_addr)
			complain("iova is not the remote address");
		else if (w.dma.resid != w.dma.length || w.dma.cur_sge != 0 ||
			w.dma.sge_offset != 0)
			complain("the progress of a WQE is not at its start");
		else if (!in_line && sum != w.dma.length)
			complain("the SGEs are not as long as the WQE");
		else if (in_line && w.dma.length > options_.data_bytes)
			complain("more data than the WQE has room for");
		else if (w.dma.length > 0x800000)
			complain("longer than a message may be");
		return fault.empty();
	}

	/* What follows the fixed part. */
	static const uint8_t *data(const rxe_send_wqe &w)
	{
		return reinterpret_cast<const uint8_t *>(&w) + 208;
	}
	static rxe_sge sge(const rxe_send_wqe &w, uint32_t i)
	{
		rxe_sge s;

		memcpy(&s, data(w) + i * sizeof(s), sizeof(s));
		return s;
	}

	static bool inside(const Memory &m, uint64_t addr, uint64_t n)
	{
		return addr >= m.address() && addr - m.address() <= m.bytes &&
			n <= m.bytes - (addr - m.address());
	}

	/* The ibv_wc_status. */
	uint32_t execute(rxe_send_wqe *w)
	{
		bool is_atomic = w->wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
			w->wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
		uint32_t key = is_atomic ? w->wr.wr.atomic.rkey : w->wr.wr.rdma.rkey;
		bool in_line = (w->wr.send_flags & IBV_SEND_INLINE) != 0;
		uint8_t *remote = reinterpret_cast<uint8_t *>(w->iova);

		if (w->dma.length != 0 &&
			(key != rkey || !inside(peer_, w->iova, w->dma.length)))
			return IBV_WC_REM_ACCESS_ERR;
		if (is_atomic)
			return execute_atomic(*w, remote);
		for (uint32_t i = 0; !in_line && i < w->dma.num_sge; i++) {
			rxe_sge s = sge(*w, i);
			uint8_t *local = reinterpret_cast<uint8_t *>(s.addr);

			if (s.lkey != lkey || !inside(own_, s.addr, s.length))
				return IBV_WC_LOC_PROT_ERR;
			if (w->wr.opcode == IBV_WR_RDMA_READ)
				memcpy(local, remote, s.length);
			else
				memcpy(remote, local, s.length);
			remote += s.length;
		}
		if (in_line)
			memcpy(remote, data(*w), w->dma.length);
		if (w->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
			received.push_back(ntohl(w->wr.ex.imm_data));
		return IBV_WC_SUCCESS;
	}

	uint32_t execute_atomic(const rxe_send_wqe &w, uint8_t *remote)
	{
		rxe_sge s = sge(w, 0);
		uint64_t former, next;

		if (w.dma.num_sge != 1 || s.length != 8 || s.lkey != lkey ||
			!inside(own_, s.addr, 8))
			return IBV_WC_LOC_PROT_ERR;
		memcpy(&former, remote, 8);
		if (w.wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
			next = former + w.wr.wr.atomic.compare_add;
		else
			next = former == w.wr.wr.atomic.compare_add ? w.wr.wr.atomic.swap
								    : former;
		memcpy(remote, &next, 8);
		memcpy(reinterpret_cast<void *>(s.addr), &former, 8);
		return IBV_WC_SUCCESS;
	}

	RxeOptions options_;
	Memory table_;
	Memory own_;
	Memory peer_;
	std::vector<Kernel> kernels_;
};

} // namespace nda::test

#endif
