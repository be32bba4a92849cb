// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "tests/mock/soft_bench.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sched.h>
#include <time.h>
#include <unistd.h>

namespace nda::soft_test {
namespace {

namespace hw = nda::hw::hns1825;

// The callbacks have no cookie: each number has functions of its own.
constexpr int max_npus = 4;
nda_soft_npu *npus[max_npus];

template <int N>
struct Callbacks {
	static void *alloc(size_t size)
	{
		uint64_t address;
		int rc = api().npu_alloc(npus[N], size, &address);
		if (rc) {
			errno = -rc;
			return nullptr;
		}
		return reinterpret_cast<void *>(address);
	}
	static void free(void *p)
	{
		EXPECT_EQ(api().npu_free(npus[N], reinterpret_cast<uint64_t>(p)), 0)
			<< detail();
	}
	static void memset_s(void *to, int value, size_t count)
	{
		EXPECT_EQ(api().npu_memset(
				  npus[N], reinterpret_cast<uint64_t>(to), value, count),
			0)
			<< detail();
	}
	static void *db_mmap(doorbell_map_desc *desc)
	{
		return api().npu_db_mmap(npus[N], desc);
	}
	static int db_unmap(void *p, doorbell_map_desc *desc)
	{
		int rc = api().npu_db_unmap(npus[N], p, desc);
		EXPECT_EQ(rc, 0) << detail();
		return rc;
	}
	static ibv_extend_ops ops()
	{
		ibv_extend_ops o = {};
		o.alloc = alloc;
		o.free = free;
		o.memset_s = memset_s;
		o.db_mmap = db_mmap;
		o.db_unmap = db_unmap;
		return o;
	}
};

ibv_extend_ops ops_of(int n)
{
	switch (n) {
	case 0:
		return Callbacks<0>::ops();
	case 1:
		return Callbacks<1>::ops();
	case 2:
		return Callbacks<2>::ops();
	default:
		return Callbacks<3>::ops();
	}
}

void step_all()
{
	for (nda_soft_npu *npu : npus) {
		if (npu)
			api().npu_step(npu);
	}
}

} // namespace

const struct nda_soft_api &api()
{
	return nda_soft_api;
}

std::string detail()
{
	return api().error_detail();
}

uint64_t now_ns()
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return static_cast<uint64_t>(t.tv_sec) * 1000000000u +
		static_cast<uint64_t>(t.tv_nsec);
}

void DescriptorLimit::set(unsigned more)
{
	std::vector<int> taken;
	for (unsigned i = 0; i <= more; i++)
		taken.push_back(dup(0));
	struct rlimit limit;
	EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = static_cast<rlim_t>(taken.back());
	for (int fd : taken)
		close(fd);
	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

DescriptorLimit::DescriptorLimit(unsigned more)
{
	EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
	set(more);
}

DescriptorLimit::~DescriptorLimit()
{
	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0);
}

void AddressLimit::set(uint64_t more)
{
	uint64_t pages = 0;
	std::ifstream("/proc/self/statm") >> pages;
	struct rlimit limit;
	EXPECT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
	limit.rlim_cur = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + more;
	EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

AddressLimit::AddressLimit(uint64_t more)
{
	EXPECT_EQ(getrlimit(RLIMIT_AS, &before_), 0);
	set(more);
}

AddressLimit::~AddressLimit()
{
	EXPECT_EQ(setrlimit(RLIMIT_AS, &before_), 0);
}

// ---- NPU -------------------------------------------------------------------------------

TestNpu::TestNpu(nda_soft_npu_attr attr)
{
	if (!attr.memory_bytes)
		attr.memory_bytes = 64u << 20;
	npu_ = api().npu_open(&attr);
	EXPECT_NE(npu_, nullptr) << detail();
	while (slot_ < max_npus - 1 && npus[slot_])
		slot_++;
	EXPECT_EQ(npus[slot_], nullptr) << "too many NPUs";
	npus[slot_] = npu_;
	ops_ = ops_of(slot_);
}

TestNpu::~TestNpu()
{
	if (npu_) {
		EXPECT_EQ(close(), 0) << detail();
	}
}

int TestNpu::close()
{
	int rc = api().npu_close(npu_);
	if (rc == 0)
		npu_ = npus[slot_] = nullptr;
	return rc;
}

nda_core TestNpu::core() const
{
	nda_core core;
	EXPECT_EQ(api().npu_core(npu_, &core), 0);
	return core;
}

uint64_t TestNpu::alloc(uint64_t size)
{
	uint64_t address = 0;
	EXPECT_EQ(api().npu_alloc(npu_, size, &address), 0) << detail();
	return address;
}

void TestNpu::write(uint64_t to, const std::vector<uint8_t> &bytes)
{
	EXPECT_EQ(api().npu_write(npu_, to, bytes.data(), bytes.size()), 0) << detail();
}

std::vector<uint8_t> TestNpu::read(uint64_t from, uint64_t size) const
{
	std::vector<uint8_t> bytes(size);
	EXPECT_EQ(api().npu_read(npu_, bytes.data(), from, size), 0) << detail();
	return bytes;
}

uint64_t TestNpu::violations() const
{
	uint64_t count = ~uint64_t{0};
	EXPECT_EQ(api().npu_violations(npu_, &count), 0);
	return count;
}

// ---- NIC -------------------------------------------------------------------------------

namespace {

ibv_context *open_nic(const char *inject, uint32_t mtu, const char *events)
{
	nda_soft_nic_attr attr = {"hns1825", inject, mtu, 0, events};
	ibv_context *context = api().nic_open(&attr);
	EXPECT_NE(context, nullptr) << detail();
	return context;
}

} // namespace

TestNic::TestNic(const char *inject, uint32_t mtu, const char *events)
	: TestNic(open_nic(inject, mtu, events))
{
	own_ = true;
}

TestNic::TestNic(ibv_context *context) : context_(context)
{
	extend_ = ibv_open_extend(context_);
	EXPECT_NE(extend_, nullptr) << detail();
	pd_ = api().alloc_pd(context_);
	EXPECT_NE(pd_, nullptr) << detail();
}

TestNic::~TestNic()
{
	EXPECT_EQ(api().dealloc_pd(pd_), 0) << detail();
	EXPECT_EQ(ibv_close_extend(extend_), 0);
	if (own_) {
		EXPECT_EQ(api().nic_close(context_), 0) << detail();
	}
}

ibv_gid TestNic::gid(int index) const
{
	ibv_gid gid = {};
	EXPECT_EQ(api().query_gid(context_, 1, index, &gid), 0) << detail();
	return gid;
}

ibv_mr *TestNic::reg(uint64_t address, uint64_t size, int access, ibv_pd *pd)
{
	ibv_mr *mr = api().reg_mr(pd ? pd : pd_, address, size, access);
	EXPECT_NE(mr, nullptr) << detail();
	return mr;
}

// ---- Queue -----------------------------------------------------------------------------

TestQueue::TestQueue(TestNpu &npu, TestNic &nic, const QueueOptions &o)
	: npu_(npu), context_(nic.extend()), cq_(o.cq), own_cq_(!o.cq), head_(o.sq_start),
	  ci_(o.cq_start)
{
	if (own_cq_) {
		ibv_cq_init_attr_extend attr = {};
		attr.attr.cqe = o.cq_depth;
		attr.type = o.mode;
		attr.ops = npu.ops();
		cq_ = ibv_create_cq_extend(context_, &attr);
		EXPECT_NE(cq_, nullptr) << detail();
	}
	cq_ring_ = hw::cq_ring(cq_->cq_info.qbuf.entry_cnt);
	ibv_qp_init_attr_extend attr = {};
	attr.pd = o.pd ? o.pd : nic.pd();
	attr.attr.send_cq = cq_->cq;
	attr.attr.recv_cq = o.recv_cq ? o.recv_cq->cq : cq_->cq;
	attr.attr.qp_type = IBV_QPT_RC;
	attr.attr.cap.max_send_wr = o.depth;
	attr.attr.cap.max_send_sge = 1;
	attr.attr.cap.max_recv_wr = o.recv_depth;
	attr.attr.cap.max_recv_sge = 1;
	attr.type = o.mode;
	attr.ops = npu.ops();
	qp_ = ibv_create_qp_extend(context_, &attr);
	EXPECT_NE(qp_, nullptr) << detail();
	if (o.sq_start || o.cq_start) {
		EXPECT_EQ(api().qp_seek(qp(), o.sq_start, o.cq_start), 0) << detail();
		publish();
	}
}

TestQueue::~TestQueue()
{
	EXPECT_EQ(ibv_destroy_qp_extend(context_, qp_), 0) << detail();
	if (own_cq_) {
		EXPECT_EQ(ibv_destroy_cq_extend(context_, cq_), 0) << detail();
	}
}

int TestQueue::to_init(unsigned access)
{
	ibv_qp_attr attr = {};
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 1;
	attr.qp_access_flags = access;
	return api().modify_qp(qp(), &attr,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int TestQueue::to_rtr(const ibv_gid &gid, uint32_t qpn, int sgid_index)
{
	ibv_qp_attr attr = {};
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_4096;
	attr.dest_qp_num = qpn;
	attr.max_dest_rd_atomic = 16;
	attr.min_rnr_timer = 12;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = gid;
	attr.ah_attr.grh.sgid_index = static_cast<uint8_t>(sgid_index);
	attr.ah_attr.grh.hop_limit = 1;
	return api().modify_qp(qp(), &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int TestQueue::to_rts(uint8_t timeout, uint8_t retries)
{
	ibv_qp_attr attr = {};
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = timeout;
	attr.retry_cnt = retries;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 16;
	return api().modify_qp(qp(), &attr,
		IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

void TestQueue::connect(const ibv_gid &gid, uint32_t qpn_, uint8_t timeout, uint8_t retries)
{
	EXPECT_EQ(to_init(), 0) << detail();
	EXPECT_EQ(to_rtr(gid, qpn_), 0) << detail();
	EXPECT_EQ(to_rts(timeout, retries), 0) << detail();
}

int TestQueue::to(ibv_qp_state state)
{
	ibv_qp_attr attr = {};
	attr.qp_state = state;
	return api().modify_qp(qp(), &attr, IBV_QP_STATE);
}

ibv_qp_state TestQueue::state() const
{
	ibv_qp_attr attr;
	ibv_qp_init_attr init;
	EXPECT_EQ(api().query_qp(qp(), &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

hw::wqe TestQueue::wqe(uint8_t opcode, uint64_t local, uint32_t lkey, uint64_t remote,
	uint32_t rkey, uint32_t length, bool signalled) const
{
	hw::rdma op = {opcode, signalled, false, length, remote, local, rkey, lkey};
	return hw::rdma_wqe(op, head_, depth());
}

void TestQueue::put_wqe(const hw::wqe &w, bool mark_next)
{
	uint64_t base = qp_->sq_info.qbuf.base;
	if (mark_next)
		__atomic_store_n(npu_.host<uint8_t>(base +
					 ((head_ + 1) & (depth() - 1)) * hw::wqe_bytes),
			hw::invalid_marker(head_ + 1, depth()), __ATOMIC_RELEASE);
	uint64_t words[hw::wqe_words];
	hw::encode(w, words);
	auto *slot = npu_.host<uint64_t>(base + (head_ & (depth() - 1)) * hw::wqe_bytes);
	for (uint32_t i = 1; i < hw::wqe_words; i++)
		__atomic_store_n(slot + i, words[i], __ATOMIC_RELAXED);
	__atomic_store_n(slot, words[0], __ATOMIC_RELEASE);
	head_++;
}

void TestQueue::set_record(uint32_t head)
{
	__atomic_store_n(npu_.host<uint32_t>(qp_->sq_info.dbr_pi_va.iov_base),
		hw::sq_record(head), __ATOMIC_RELEASE);
}

void TestQueue::ring_value(uint64_t value)
{
	__atomic_store_n(npu_.host<uint64_t>(qp_->sq_info.db_hw_va.iov_base), value,
		__ATOMIC_RELEASE);
	nda_core core = npu_.core();
	if (__atomic_load_n(core.nic_asleep, __ATOMIC_RELAXED))
		core.nic_kick(core.nic);
}

uint64_t TestQueue::doorbell() const
{
	return hw::doorbell_value(
		hw::doorbell_template(qp_->qp->qp_num, hw::doorbell_params()), head_);
}

void TestQueue::ring()
{
	set_record(head_);
	ring_value(doorbell());
}

void TestQueue::write(uint64_t local, uint32_t lkey, uint64_t remote, uint32_t rkey,
	uint32_t length, bool signalled)
{
	put_wqe(wqe(hw::op_write, local, lkey, remote, rkey, length, signalled));
	ring();
}

void TestQueue::read(uint64_t local, uint32_t lkey, uint64_t remote, uint32_t rkey,
	uint32_t length, bool signalled)
{
	put_wqe(wqe(hw::op_read, local, lkey, remote, rkey, length, signalled));
	ring();
}

std::optional<Cqe> TestQueue::poll(bool publish_)
{
	const queue_buf &ring = cq_->cq_info.qbuf;
	auto *slot =
		npu_.host<uint64_t>(ring.base + (ci_ & (cq_ring_ - 1)) * ring.entry_size);
	uint64_t words[hw::cqe_words];
	words[0] = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
	if (hw::cqe_look(words[0], ci_, cq_ring_) == hw::cqe_state::empty)
		return std::nullopt;
	for (uint32_t i = 1; i < hw::cqe_words; i++)
		words[i] = __atomic_load_n(slot + i, __ATOMIC_RELAXED);
	hw::cqe c = hw::decode_cqe(words);
	ci_++;
	if (publish_)
		publish();
	return Cqe{c.op_type == hw::cqe_op_error, c.op_type, c.syndrome, c.vendor,
		c.wqe_counter, c.byte_count, c.qpn};
}

void TestQueue::publish()
{
	__atomic_store_n(npu_.host<uint32_t>(cq_->cq_info.dbr_ci_va.iov_base),
		hw::cq_record(ci_), __ATOMIC_RELEASE);
}

std::optional<Cqe> TestQueue::wait(int timeout_ms)
{
	uint64_t end = now_ns() + static_cast<uint64_t>(timeout_ms) * 1000000u;
	do {
		std::optional<Cqe> cqe = poll();
		if (cqe)
			return cqe;
		step_all();
		sched_yield();
	} while (now_ns() < end);
	return std::nullopt;
}

void TestQueue::restart()
{
	head_ = 0;
	ci_ = 0;
}

} // namespace nda::soft_test
