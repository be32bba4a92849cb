// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What tests of the software NIC are built from: NPUs with their callbacks, NICs, connected
// QPs, and the plainest possible driver of an 1825 queue.
#ifndef NDA_TESTS_SOFT_BENCH_H
#define NDA_TESTS_SOFT_BENCH_H

#include "providers/soft/nda_soft.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <vector>

#include <nda/hw/hns1825.h>

namespace nda::soft_test {

constexpr int all_access =
	IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
constexpr int deadline_ms = 20000;

uint64_t now_ns();

// An NPU and the callbacks that reach it, for one of four numbers at a time.
class TestNpu {
public:
	explicit TestNpu(nda_soft_npu_attr attr = {});
	~TestNpu();
	TestNpu(const TestNpu &) = delete;

	nda_soft_npu *get() const { return npu_; }
	ibv_extend_ops *ops() { return &ops_; }
	nda_core core() const;
	uint64_t alloc(uint64_t size);
	void write(uint64_t to, const std::vector<uint8_t> &bytes);
	std::vector<uint8_t> read(uint64_t from, uint64_t size) const;
	uint64_t violations() const;
	// The address at which this process may touch an NPU address.
	template <class T>
	T *host(uint64_t address) const
	{
		return reinterpret_cast<T *>(address + core().address_offset);
	}
	// Closes it by hand, for tests of order.
	int close();

private:
	nda_soft_npu *npu_ = nullptr;
	ibv_extend_ops ops_ = {};
	int slot_ = 0;
};

// A NIC with one protection domain and its extension context.
class TestNic {
public:
	explicit TestNic(const char *inject = nullptr, uint32_t mtu = 0,
		const char *events = nullptr);
	// Over a NIC that the test closes.
	explicit TestNic(ibv_context *context);
	~TestNic();
	TestNic(const TestNic &) = delete;

	ibv_context *context() const { return context_; }
	ibv_context_extend *extend() const { return extend_; }
	ibv_pd *pd() const { return pd_; }
	ibv_gid gid(int index = 1) const;
	ibv_mr *reg(uint64_t address, uint64_t size, int access = all_access,
		ibv_pd *pd = nullptr);

private:
	ibv_context *context_ = nullptr;
	bool own_ = false;
	ibv_context_extend *extend_ = nullptr;
	ibv_pd *pd_ = nullptr;
};

// Lets this process have only so many more descriptors than it has.
class DescriptorLimit {
public:
	explicit DescriptorLimit(unsigned more);
	~DescriptorLimit();
	DescriptorLimit(const DescriptorLimit &) = delete;
	static void set(unsigned more); // for good

private:
	struct rlimit before_;
};

// Lets this process map only so many more bytes than it has.
class AddressLimit {
public:
	explicit AddressLimit(uint64_t more);
	~AddressLimit();
	AddressLimit(const AddressLimit &) = delete;
	static void set(uint64_t more); // for good

private:
	struct rlimit before_;
};

struct QueueOptions {
	uint32_t depth = 64;
	uint32_t cq_depth = 128;
	queue_buf_dma_mode mode = QUEUE_BUF_DMA_MODE_INDEP_UB;
	uint32_t sq_start = 0;
	uint32_t cq_start = 0;
	ibv_cq_extend *cq = nullptr;      // another queue's
	ibv_cq_extend *recv_cq = nullptr; // nullptr: the send CQ
	uint32_t recv_depth = 0;
	ibv_pd *pd = nullptr;
};

struct Cqe {
	bool error;
	uint8_t op;
	uint8_t syndrome;
	uint8_t vendor;
	uint16_t wqe;
	uint32_t bytes;
	uint32_t qpn;
};

// A QP and what drives it: follows the rules of the format one by one.
class TestQueue {
public:
	TestQueue(TestNpu &npu, TestNic &nic, const QueueOptions &options = {});
	~TestQueue();
	TestQueue(const TestQueue &) = delete;

	ibv_qp *qp() const { return qp_->qp; }
	ibv_qp_extend *extend() const { return qp_; }
	ibv_cq_extend *cq() const { return cq_; }
	uint32_t qpn() const { return qp_->qp->qp_num; }
	uint32_t head() const { return head_; }
	uint32_t depth() const { return qp_->sq_info.qbuf.entry_cnt; }

	int to_init(unsigned access = all_access);
	int to_rtr(const ibv_gid &gid, uint32_t qpn, int sgid_index = 1);
	int to_rts(uint8_t timeout = 10, uint8_t retries = 7);
	void connect(const ibv_gid &gid, uint32_t qpn, uint8_t timeout = 10,
		uint8_t retries = 7);
	int to(ibv_qp_state state);
	ibv_qp_state state() const;

	// Posting: a WQE at head, then the record and the doorbell.
	hw::hns1825::wqe wqe(uint8_t opcode, uint64_t local, uint32_t lkey, uint64_t remote,
		uint32_t rkey, uint32_t length, bool signalled = true) const;
	void put_wqe(const hw::hns1825::wqe &wqe, bool mark_next = true);
	void ring();
	void set_record(uint32_t head);
	void ring_value(uint64_t doorbell);
	uint64_t doorbell() const;
	void write(uint64_t local, uint32_t lkey, uint64_t remote, uint32_t rkey,
		uint32_t length, bool signalled = true);
	void read(uint64_t local, uint32_t lkey, uint64_t remote, uint32_t rkey,
		uint32_t length, bool signalled = true);

	// The next completion if it is there; consumed, and the consumer record written
	// unless publish is false.
	std::optional<Cqe> poll(bool publish = true);
	// The same, stepping manual engines and waiting for the others.
	std::optional<Cqe> wait(int timeout_ms = deadline_ms);
	void publish();
	void restart(); // after a QP's reset

private:
	TestNpu &npu_;
	ibv_context_extend *context_;
	ibv_cq_extend *cq_ = nullptr;
	ibv_qp_extend *qp_ = nullptr;
	bool own_cq_;
	uint32_t cq_ring_;
	uint32_t head_;
	uint32_t ci_;
};

const struct nda_soft_api &api();
std::string detail();

} // namespace nda::soft_test

#endif
