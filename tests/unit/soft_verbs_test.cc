// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The software 1825 NIC as its users meet it, in one process, stepped by hand.
#include "providers/soft/fabric.h"
#include "tests/mock/soft_bench.h"

#include <atomic>
#include <numeric>

namespace nda::soft_test {
namespace {

namespace hw = nda::hw::hns1825;

nda_soft_npu_attr manual()
{
	nda_soft_npu_attr attr = {};
	attr.manual = 1;
	attr.assist = 1;
	return attr;
}

std::vector<uint8_t> pattern(size_t size, uint8_t seed)
{
	std::vector<uint8_t> bytes(size);
	for (size_t i = 0; i < size; i++)
		bytes[i] = static_cast<uint8_t>(seed + i * 7 + i / 251);
	return bytes;
}

// Two NPUs, two NICs, a region on each and a pair of QPs.
class Pair : public testing::Test {
protected:
	static constexpr uint64_t size = 1u << 20;

	explicit Pair(const char *inject = nullptr) : nic_a(inject)
	{
		a = npu_a.alloc(size);
		b = npu_b.alloc(size);
		mr_a = nic_a.reg(a, size);
		mr_b = nic_b.reg(b, size);
	}
	~Pair() override
	{
		EXPECT_EQ(api().dereg_mr(mr_a), 0);
		EXPECT_EQ(api().dereg_mr(mr_b), 0);
	}
	void connect(TestQueue &x, TestQueue &y, uint8_t timeout = 10, uint8_t retries = 7)
	{
		x.connect(nic_b.gid(), y.qpn(), timeout, retries);
		y.connect(nic_a.gid(), x.qpn(), timeout, retries);
	}
	void expect_error(TestQueue &q, uint8_t syndrome)
	{
		std::optional<Cqe> c = q.wait();
		ASSERT_TRUE(c);
		EXPECT_TRUE(c->error);
		EXPECT_EQ(c->syndrome, syndrome);
		EXPECT_EQ(q.state(), IBV_QPS_ERR);
	}
	void expect_ok(TestQueue &q)
	{
		std::optional<Cqe> c = q.wait();
		ASSERT_TRUE(c);
		EXPECT_FALSE(c->error) << "syndrome " << int{c->syndrome};
	}

	TestNpu npu_a{manual()}, npu_b{manual()};
	TestNic nic_a, nic_b;
	uint64_t a, b;
	ibv_mr *mr_a, *mr_b;
};

TEST_F(Pair, WriteMovesBytesToThePeerAndCompletes)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	npu_a.write(a, pattern(1000, 1));
	x.write(a, mr_a->lkey, b + 64, mr_b->rkey, 1000);
	std::optional<Cqe> c = x.wait();
	ASSERT_TRUE(c);
	EXPECT_FALSE(c->error);
	EXPECT_EQ(c->op, hw::op_write);
	EXPECT_EQ(c->wqe, 0);
	EXPECT_EQ(c->bytes, 1000u);
	EXPECT_EQ(c->qpn, x.qpn());
	EXPECT_EQ(npu_b.read(b + 64, 1000), pattern(1000, 1));
	EXPECT_EQ(npu_b.read(b, 64), std::vector<uint8_t>(64));
	EXPECT_FALSE(x.poll());
	EXPECT_EQ(npu_a.violations() + npu_b.violations(), 0u);
}

TEST_F(Pair, ReadMovesBytesFromThePeer)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	npu_b.write(b, pattern(5000, 9));
	x.read(a, mr_a->lkey, b, mr_b->rkey, 5000);
	std::optional<Cqe> c = x.wait();
	ASSERT_TRUE(c);
	EXPECT_FALSE(c->error);
	EXPECT_EQ(c->op, hw::op_read);
	EXPECT_EQ(npu_a.read(a, 5000), pattern(5000, 9));
}

TEST_F(Pair, BothDirectionsAtOnceInOneProcess)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	npu_a.write(a, pattern(4096, 1));
	npu_b.write(b, pattern(4096, 2));
	x.write(a, mr_a->lkey, b + 8192, mr_b->rkey, 4096);
	y.write(b, mr_b->lkey, a + 8192, mr_a->rkey, 4096);
	expect_ok(x);
	expect_ok(y);
	EXPECT_EQ(npu_b.read(b + 8192, 4096), pattern(4096, 1));
	EXPECT_EQ(npu_a.read(a + 8192, 4096), pattern(4096, 2));
}

TEST_F(Pair, DefaultModeMapsTheDoorbellByHostAddress)
{
	QueueOptions o;
	o.mode = QUEUE_BUF_DMA_MODE_DEFAULT;
	TestQueue x(npu_a, nic_a, o), y(npu_b, nic_b, o);
	connect(x, y);
	npu_a.write(a, pattern(100, 1));
	x.write(a, mr_a->lkey, b, mr_b->rkey, 100);
	expect_ok(x);
	EXPECT_EQ(npu_b.read(b, 100), pattern(100, 1));
}

// What a host does that cannot map the register for its cores: it has them write to NPU
// memory.
doorbell_map_desc not_mapped;
uint64_t instead;

void *do_not_map(doorbell_map_desc *desc)
{
	not_mapped = *desc;
	return reinterpret_cast<void *>(instead);
}

int nothing_to_unmap(void *, doorbell_map_desc *)
{
	return 0;
}

TEST_F(Pair, ARegisterThatIsNotMappedIsRungByItsHostAddress)
{
	instead = npu_a.alloc(64);
	npu_a.write(instead, std::vector<uint8_t>(64, 0));
	npu_a.ops()->db_mmap = do_not_map;
	npu_a.ops()->db_unmap = nothing_to_unmap;
	QueueOptions o;
	o.mode = QUEUE_BUF_DMA_MODE_DEFAULT;
	TestQueue x(npu_a, nic_a, o), y(npu_b, nic_b);
	EXPECT_EQ(not_mapped.type, static_cast<uint32_t>(DOORBELL_MAP_MODE_HOST_VA));
	connect(x, y);
	npu_a.write(a, pattern(100, 1));
	x.write(a, mr_a->lkey, b, mr_b->rkey, 100);
	EXPECT_EQ(api().npu_step(npu_a.get()), 0) << "the NIC has looked into NPU memory";
	const auto value = *npu_a.host<uint64_t>(instead);
	EXPECT_NE(value, 0u);
	__atomic_store_n(
		reinterpret_cast<uint64_t *>(not_mapped.hva), value, __ATOMIC_RELEASE);
	expect_ok(x);
	EXPECT_EQ(npu_b.read(b, 100), pattern(100, 1));
}

TEST_F(Pair, AResourceThatIsNotMappedIsRefused)
{
	instead = npu_a.alloc(64);
	npu_a.ops()->db_mmap = do_not_map;
	npu_a.ops()->db_unmap = nothing_to_unmap;
	ibv_cq_init_attr_extend cq_attr = {};
	cq_attr.attr.cqe = 64;
	cq_attr.type = QUEUE_BUF_DMA_MODE_INDEP_UB;
	cq_attr.ops = npu_a.ops();
	ibv_cq_extend *cq = ibv_create_cq_extend(nic_a.extend(), &cq_attr);
	ASSERT_TRUE(cq) << detail();
	ibv_qp_init_attr_extend attr = {};
	attr.pd = nic_a.pd();
	attr.attr.send_cq = attr.attr.recv_cq = cq->cq;
	attr.attr.qp_type = IBV_QPT_RC;
	attr.attr.cap.max_send_wr = 64;
	attr.type = QUEUE_BUF_DMA_MODE_INDEP_UB;
	attr.ops = npu_a.ops();
	EXPECT_EQ(ibv_create_qp_extend(nic_a.extend(), &attr), nullptr);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(ibv_destroy_cq_extend(nic_a.extend(), cq), 0);
}

TEST_F(Pair, QueuesOfOneNpuAndNicCanBeConnectedToEachOther)
{
	TestQueue x(npu_a, nic_a), y(npu_a, nic_a);
	x.connect(nic_a.gid(), y.qpn());
	y.connect(nic_a.gid(), x.qpn());
	npu_a.write(a, pattern(100, 1));
	x.write(a, mr_a->lkey, a + 4096, mr_a->rkey, 100);
	expect_ok(x);
	EXPECT_EQ(npu_a.read(a + 4096, 100), pattern(100, 1));
}

TEST_F(Pair, SizesAndAlignmentsArriveExactly)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	npu_a.write(a, pattern(600000, 3));
	for (uint32_t length :
		{1u, 2u, 3u, 4u, 7u, 8u, 9u, 63u, 64u, 4096u, 262144u, 262145u, 600000u}) {
		for (uint64_t shift : {0u, 1u, 4u}) {
			EXPECT_EQ(api().npu_memset(npu_b.get(), b, 0xee, size), 0);
			x.write(a, mr_a->lkey, b + 64 + shift, mr_b->rkey, length);
			expect_ok(x);
			std::vector<uint8_t> want(64 + shift, 0xee);
			std::vector<uint8_t> body = pattern(length, 3);
			want.insert(want.end(), body.begin(), body.end());
			want.insert(want.end(), 64, 0xee);
			ASSERT_EQ(npu_b.read(b, want.size()), want)
				<< length << " at " << shift;
		}
	}
}

TEST_F(Pair, UnsignalledRequestsLeaveNoCompletion)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	for (int i = 0; i < 3; i++)
		x.write(a, mr_a->lkey, b, mr_b->rkey, 8, false);
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	std::optional<Cqe> c = x.wait();
	ASSERT_TRUE(c);
	EXPECT_EQ(c->wqe, 3);
	EXPECT_FALSE(x.poll());
}

// ---- Protection ------------------------------------------------------------------------

TEST_F(Pair, LocalKeyThatNamesNothingIsALocalProtectionError)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	x.write(a, (mr_a->lkey + 1) & 0x3fffffff, b, mr_b->rkey, 8);
	expect_error(x, hw::syndrome_local_protection);
}

TEST_F(Pair, LocalRangeBeyondTheRegionIsALocalProtectionError)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	x.write(a + size - 4, mr_a->lkey, b, mr_b->rkey, 8);
	expect_error(x, hw::syndrome_local_protection);
}

TEST_F(Pair, ReadIntoARegionWithoutLocalWriteIsALocalProtectionError)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	ibv_mr *mr = nic_a.reg(a, size, 0);
	x.read(a, mr->lkey, b, mr_b->rkey, 8);
	expect_error(x, hw::syndrome_local_protection);
	EXPECT_EQ(api().dereg_mr(mr), 0);
}

TEST_F(Pair, WriteFromARegionWithoutLocalWriteIsAllowed)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	ibv_mr *mr = nic_a.reg(a, size, 0);
	x.write(a, mr->lkey, b, mr_b->rkey, 8);
	expect_ok(x);
	EXPECT_EQ(api().dereg_mr(mr), 0);
}

TEST_F(Pair, RemoteKeyThatNamesNothingIsARemoteAccessError)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	x.write(a, mr_a->lkey, b, mr_b->rkey ^ 0x80000000, 8);
	expect_error(x, hw::syndrome_remote_access);
}

TEST_F(Pair, RemoteRangeOutsideTheRegionIsARemoteAccessErrorAndWritesNothing)
{
	ibv_mr *inner = nic_b.reg(b + 4096, 4096);
	for (uint64_t at : {b + 4095, b + 8192 - 15, b + 4096 - 16, b + 8192, uint64_t{0},
		     ~uint64_t{0} - 7}) {
		TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
		connect(x, y);
		npu_a.write(a, pattern(16, 1));
		x.write(a, mr_a->lkey, at, inner->rkey, 16);
		expect_error(x, hw::syndrome_remote_access);
	}
	EXPECT_EQ(npu_b.read(b, 16384), std::vector<uint8_t>(16384));
	EXPECT_EQ(api().dereg_mr(inner), 0);
}

TEST_F(Pair, KeyOfADeregisteredRegionIsStaleEvenAfterItsIndexIsReused)
{
	ibv_mr *old = nic_b.reg(b, size);
	uint32_t stale = old->rkey;
	EXPECT_EQ(api().dereg_mr(old), 0);
	{
		TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
		connect(x, y);
		x.write(a, mr_a->lkey, b, stale, 8);
		expect_error(x, hw::syndrome_remote_access);
	}
	// Once around the table: the same index, another generation.
	ibv_mr *next = nullptr;
	for (int i = 0; i < 70000 && !(next && (next->rkey & 0xffff) == (stale & 0xffff));
		i++) {
		if (next) {
			EXPECT_EQ(api().dereg_mr(next), 0);
		}
		next = nic_b.reg(b, size);
	}
	ASSERT_EQ(next->rkey & 0xffff, stale & 0xffff);
	EXPECT_NE(next->rkey, stale);
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	x.write(a, mr_a->lkey, b, stale, 8);
	expect_error(x, hw::syndrome_remote_access);
	EXPECT_EQ(api().dereg_mr(next), 0);
}

TEST_F(Pair, KeysFitThirtyBitsAndDifferInTheirLowHalf)
{
	std::vector<ibv_mr *> mrs;
	std::vector<bool> seen(65536);
	for (int i = 0; i < 1000; i++) {
		mrs.push_back(nic_a.reg(a + i * 64, 64));
		EXPECT_TRUE(hw::lkey_fits(mrs.back()->lkey));
		EXPECT_FALSE(seen[mrs.back()->lkey & 0xffff]);
		seen[mrs.back()->lkey & 0xffff] = true;
	}
	for (ibv_mr *mr : mrs)
		EXPECT_EQ(api().dereg_mr(mr), 0);
}

TEST_F(Pair, RegionWithoutRemoteWriteRefusesWritesAndAllowsReads)
{
	ibv_mr *mr = nic_b.reg(b, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	x.read(a, mr_a->lkey, b, mr->rkey, 8);
	expect_ok(x);
	x.write(a, mr_a->lkey, b, mr->rkey, 8);
	expect_error(x, hw::syndrome_remote_access);
	EXPECT_EQ(api().dereg_mr(mr), 0);
}

TEST_F(Pair, RegionWithoutRemoteReadRefusesReads)
{
	ibv_mr *mr = nic_b.reg(b, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	x.read(a, mr_a->lkey, b, mr->rkey, 8);
	expect_error(x, hw::syndrome_remote_access);
	EXPECT_EQ(api().dereg_mr(mr), 0);
}

TEST_F(Pair, QpWithoutRemoteAccessIsARemoteInvalidRequest)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	x.connect(nic_b.gid(), y.qpn());
	EXPECT_EQ(y.to_init(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ), 0);
	EXPECT_EQ(y.to_rtr(nic_a.gid(), x.qpn()), 0);
	x.read(a, mr_a->lkey, b, mr_b->rkey, 8);
	expect_ok(x);
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	expect_error(x, hw::syndrome_remote_invalid);
}

TEST_F(Pair, RegionOfAnotherProtectionDomainIsDeniedOnEitherSide)
{
	ibv_pd *pd_a = api().alloc_pd(nic_a.context()),
	       *pd_b = api().alloc_pd(nic_b.context());
	ibv_mr *other_a = nic_a.reg(a, size, all_access, pd_a);
	ibv_mr *other_b = nic_b.reg(b, size, all_access, pd_b);
	{
		TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
		connect(x, y);
		x.write(a, other_a->lkey, b, mr_b->rkey, 8);
		expect_error(x, hw::syndrome_local_protection);
	}
	{
		TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
		connect(x, y);
		x.write(a, mr_a->lkey, b, other_b->rkey, 8);
		expect_error(x, hw::syndrome_remote_access);
	}
	EXPECT_EQ(api().dealloc_pd(pd_a), -EBUSY);
	EXPECT_EQ(api().dereg_mr(other_a), 0);
	EXPECT_EQ(api().dereg_mr(other_b), 0);
	EXPECT_EQ(api().dealloc_pd(pd_a), 0);
	EXPECT_EQ(api().dealloc_pd(pd_b), 0);
}

// ---- Connection ------------------------------------------------------------------------

TEST_F(Pair, TargetThatDoesNotPointBackExceedsTheRetries)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b), z(npu_a, nic_a);
	x.connect(nic_b.gid(), y.qpn(), 1, 1);
	y.connect(nic_a.gid(), z.qpn()); // another QP of the right NIC
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	expect_error(x, hw::syndrome_retry_exceeded);
}

TEST_F(Pair, TargetReachedByAnotherGidThanItsOwnExceedsTheRetries)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	x.connect(nic_a.gid(), y.qpn(), 1, 1); // y's number, but not y's NIC
	y.connect(nic_a.gid(), x.qpn());
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	expect_error(x, hw::syndrome_retry_exceeded);
}

TEST_F(Pair, QpThatDoesNotExistExceedsTheRetries)
{
	for (uint32_t qpn : {65535u, (1u << 20) - 1}) {
		TestQueue x(npu_a, nic_a);
		x.connect(nic_b.gid(), qpn, 1, 1);
		x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
		expect_error(x, hw::syndrome_retry_exceeded);
	}
}

TEST_F(Pair, RequestWaitsForATargetThatIsReadyLater)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	x.connect(nic_b.gid(), y.qpn(), 0, 7); // no timeout
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	for (int i = 0; i < 100; i++)
		api().npu_step(npu_a.get());
	EXPECT_FALSE(x.poll());
	y.connect(nic_a.gid(), x.qpn());
	expect_ok(x);
}

TEST_F(Pair, TargetInErrorStateExceedsTheRetriesAtOnce)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	x.connect(nic_b.gid(), y.qpn(), 0, 7); // no timeout
	y.connect(nic_a.gid(), x.qpn());
	EXPECT_EQ(y.to(IBV_QPS_ERR), 0);
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	expect_error(x, hw::syndrome_retry_exceeded);
}

TEST_F(Pair, TargetThatWasDestroyedExceedsTheRetries)
{
	TestQueue x(npu_a, nic_a);
	{
		TestQueue y(npu_b, nic_b);
		x.connect(nic_b.gid(), y.qpn(), 1, 1);
		y.connect(nic_a.gid(), x.qpn());
		x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
		expect_ok(x);
	}
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	expect_error(x, hw::syndrome_retry_exceeded);
}

TEST_F(Pair, LinkLocalGidConnectsToo)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	EXPECT_EQ(x.to_init(), 0);
	EXPECT_EQ(x.to_rtr(nic_b.gid(0), y.qpn(), 0), 0) << detail();
	EXPECT_EQ(x.to_rts(), 0);
	EXPECT_EQ(y.to_init(), 0);
	EXPECT_EQ(y.to_rtr(nic_a.gid(0), x.qpn(), 0), 0);
	x.put_wqe(x.wqe(hw::op_write, a, mr_a->lkey, b, mr_b->rkey, 8));
	x.set_record(x.head());
	hw::doorbell_params p;
	p.sgid_index = 0;
	x.ring_value(hw::doorbell_value(hw::doorbell_template(x.qpn(), p), x.head()));
	expect_ok(x);
}

// ---- Errors ----------------------------------------------------------------------------

TEST_F(Pair, AfterAnErrorEverythingIsFlushedWhetherSignalledOrNot)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	npu_a.write(a, pattern(8, 1));
	x.put_wqe(x.wqe(hw::op_write, a, mr_a->lkey, b, 0x12345, 8, false));
	x.put_wqe(x.wqe(hw::op_write, a, mr_a->lkey, b, mr_b->rkey, 8, false));
	x.put_wqe(x.wqe(hw::op_read, a, mr_a->lkey, b, mr_b->rkey, 8, true));
	x.ring();
	std::optional<Cqe> c = x.wait();
	ASSERT_TRUE(c);
	EXPECT_EQ(c->syndrome, hw::syndrome_remote_access);
	EXPECT_EQ(c->wqe, 0);
	for (uint16_t i = 1; i < 3; i++) {
		c = x.wait();
		ASSERT_TRUE(c);
		EXPECT_TRUE(c->error);
		EXPECT_EQ(c->syndrome, hw::syndrome_flushed);
		EXPECT_EQ(c->wqe, i);
	}
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	c = x.wait();
	ASSERT_TRUE(c);
	EXPECT_EQ(c->syndrome, hw::syndrome_flushed);
	EXPECT_EQ(npu_b.read(b, 8), std::vector<uint8_t>(8));
	EXPECT_EQ(npu_a.violations(), 0u);
}

TEST_F(Pair, ModifyToErrorFlushesWhatIsOutstanding)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	x.connect(nic_b.gid(), y.qpn(), 0, 7);
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8, false);
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	api().npu_step(npu_a.get());
	EXPECT_EQ(x.to(IBV_QPS_ERR), 0) << detail();
	for (uint16_t i = 0; i < 2; i++) {
		std::optional<Cqe> c = x.wait();
		ASSERT_TRUE(c);
		EXPECT_EQ(c->syndrome, hw::syndrome_flushed);
		EXPECT_EQ(c->wqe, i);
	}
}

// As peers read it; the times of the codes are the InfiniBand specification's.
TEST_F(Pair, RnrTimerMayBeSetAtEveryStepFromReadyToReceiveOn)
{
	TestQueue x(npu_a, nic_a);
	const std::atomic<uint64_t> &told = soft::Fabric::get().qp(x.qpn()).rnr_ns;
	ASSERT_EQ(x.to_init(), 0);
	ASSERT_EQ(x.to_rtr(nic_b.gid(), 1), 0) << detail();
	EXPECT_EQ(told, 640'000u); // code 12

	ibv_qp_attr attr = {};
	attr.qp_state = IBV_QPS_RTS;
	attr.min_rnr_timer = 1;
	ASSERT_EQ(api().modify_qp(x.qp(), &attr,
			  IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER),
		0)
		<< detail();
	EXPECT_EQ(told, 10'000u);

	attr.min_rnr_timer = 31;
	ASSERT_EQ(api().modify_qp(x.qp(), &attr, IBV_QP_MIN_RNR_TIMER), 0) << detail();
	EXPECT_EQ(told, 491'520'000u);
	ibv_qp_init_attr init;
	ASSERT_EQ(api().query_qp(x.qp(), &attr, IBV_QP_MIN_RNR_TIMER, &init), 0);
	EXPECT_EQ(attr.min_rnr_timer, 31);
}

TEST_F(Pair, ResetMakesAFailedQpUsableAgain)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	x.write(a, mr_a->lkey, b, 0x12345, 8);
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	expect_error(x, hw::syndrome_remote_access);
	EXPECT_EQ(x.to(IBV_QPS_RESET), 0) << detail();
	EXPECT_EQ(y.to(IBV_QPS_RESET), 0) << detail();
	EXPECT_EQ(x.state(), IBV_QPS_RESET);
	x.restart();
	EXPECT_FALSE(x.poll()) << "a completion of the QP's earlier life";
	connect(x, y);
	npu_a.write(a, pattern(8, 1));
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	std::optional<Cqe> c = x.wait();
	ASSERT_TRUE(c);
	EXPECT_FALSE(c->error);
	EXPECT_EQ(c->wqe, 0);
	EXPECT_EQ(npu_b.read(b, 8), pattern(8, 1));
}

// ---- Completion queue ------------------------------------------------------------------

TEST_F(Pair, FullCompletionQueueParksTheQueueUntilItIsConsumed)
{
	QueueOptions o;
	o.depth = 64;
	o.cq_depth = 4;
	TestQueue x(npu_a, nic_a, o), y(npu_b, nic_b);
	connect(x, y);
	for (int i = 0; i < 20; i++)
		x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	for (int i = 0; i < 100; i++)
		api().npu_step(npu_a.get());
	for (uint16_t i = 0; i < 4; i++) {
		std::optional<Cqe> c = x.poll(false);
		ASSERT_TRUE(c);
		EXPECT_EQ(c->wqe, i);
	}
	for (int i = 0; i < 100; i++)
		api().npu_step(npu_a.get());
	EXPECT_FALSE(x.poll(false)) << "overrun";
	x.publish();
	for (uint16_t i = 4; i < 20; i++) {
		std::optional<Cqe> c = x.wait();
		ASSERT_TRUE(c);
		EXPECT_FALSE(c->error);
		EXPECT_EQ(c->wqe, i);
	}
	EXPECT_EQ(npu_a.violations(), 0u);
}

TEST_F(Pair, QueuesMayShareACompletionQueue)
{
	TestQueue x(npu_a, nic_a);
	QueueOptions o;
	o.cq = x.cq();
	TestQueue x2(npu_a, nic_a, o), y(npu_b, nic_b), y2(npu_b, nic_b);
	connect(x, y);
	connect(x2, y2);
	x2.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	std::optional<Cqe> c = x.wait();
	ASSERT_TRUE(c);
	EXPECT_EQ(c->qpn, x2.qpn());
	EXPECT_EQ(ibv_destroy_cq_extend(nic_a.extend(), x.cq()), -EBUSY);
}

TEST_F(Pair, ResetKeepsTheCompletionsOfAnotherQueue)
{
	TestQueue for_receives(npu_a, nic_a), y(npu_b, nic_b), y2(npu_b, nic_b);
	QueueOptions o;
	o.recv_cq = for_receives.cq();
	TestQueue x(npu_a, nic_a, o);
	o.cq = x.cq();
	TestQueue x2(npu_a, nic_a, o);
	connect(x, y);
	connect(x2, y2);
	x2.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	while (api().npu_step(npu_a.get()) > 0)
		;
	EXPECT_EQ(x.to(IBV_QPS_RESET), 0) << detail();
	std::optional<Cqe> c = x.poll();
	ASSERT_TRUE(c);
	EXPECT_FALSE(c->error);
	EXPECT_EQ(c->qpn, x2.qpn());
}

TEST_F(Pair, PublishedDepthMeansTheRingToEveryReader)
{
	// The two conventions of the field: the depth, or the depth and 1024.
	for (auto [asked, published] : {std::pair{31744u, 31744u}, {32768u, 32768u},
		     {1024u, 1024u}, {100u, 128u}, {1u, 4u}}) {
		ibv_cq_init_attr_extend attr = {};
		attr.attr.cqe = asked;
		attr.ops = npu_a.ops();
		ibv_cq_extend *cq = ibv_create_cq_extend(nic_a.extend(), &attr);
		ASSERT_TRUE(cq) << detail();
		EXPECT_EQ(cq->cq_info.qbuf.entry_cnt, published);
		EXPECT_EQ(cq->cq->cqe, static_cast<int>(published));
		EXPECT_EQ(ibv_destroy_cq_extend(nic_a.extend(), cq), 0);
	}
}

// ---- Index wrap ------------------------------------------------------------------------

class Wrap : public Pair, public testing::WithParamInterface<uint32_t> {};

TEST_P(Wrap, IndicesGoOnAcrossEveryBoundary)
{
	for (uint32_t depth : {4u, 64u, 32768u}) {
		QueueOptions o;
		o.depth = depth;
		o.sq_start = GetParam();
		o.cq_start = GetParam() - 3;
		TestQueue x(npu_a, nic_a, o), y(npu_b, nic_b);
		connect(x, y);
		for (uint32_t i = 0; i < 600; i++) {
			uint16_t wqe = static_cast<uint16_t>(x.head());
			npu_a.write(a, pattern(8, static_cast<uint8_t>(i)));
			x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
			std::optional<Cqe> c = x.wait();
			ASSERT_TRUE(c) << i;
			ASSERT_FALSE(c->error) << i << " syndrome " << int{c->syndrome};
			ASSERT_EQ(c->wqe, wqe);
			ASSERT_EQ(npu_b.read(b, 8), pattern(8, static_cast<uint8_t>(i)));
		}
	}
	EXPECT_EQ(npu_a.violations(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Starts, Wrap,
	testing::Values(0u, 65536u - 300, 0x1000000u - 300, 0u - 300),
	[](const auto &p) { return "From" + std::to_string(p.param); });

TEST_F(Pair, OneDoorbellForAFullRing)
{
	QueueOptions o;
	o.depth = 1024;
	o.cq_depth = 1024;
	o.sq_start = 0u - 512;
	o.cq_start = 0u - 512;
	TestQueue x(npu_a, nic_a, o), y(npu_b, nic_b);
	connect(x, y);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 1023; i++)
			x.put_wqe(x.wqe(hw::op_write, a, mr_a->lkey, b, mr_b->rkey, 8));
		x.ring();
		for (int i = 0; i < 1023; i++)
			expect_ok(x);
	}
	EXPECT_EQ(npu_a.violations(), 0u);
}

TEST_F(Pair, RecordAheadOfTheDoorbellIsNoBreach)
{
	QueueOptions o;
	o.sq_start = 254;
	o.cq_start = 1;
	TestQueue x(npu_a, nic_a, o), y(npu_b, nic_b);
	connect(x, y);
	x.put_wqe(x.wqe(hw::op_write, a, mr_a->lkey, b, mr_b->rkey, 8));
	uint64_t first = x.doorbell(); // of index 255
	x.put_wqe(x.wqe(hw::op_write, a, mr_a->lkey, b, mr_b->rkey, 8));
	x.put_wqe(x.wqe(hw::op_write, a, mr_a->lkey, b, mr_b->rkey, 8));
	x.set_record(x.head()); // 257
	x.ring_value(first);
	for (int i = 0; i < 3; i++)
		expect_ok(x);
	x.ring_value(x.doorbell()); // nothing new
	api().npu_step(npu_a.get());
	EXPECT_EQ(npu_a.violations(), 0u);
	EXPECT_EQ(x.state(), IBV_QPS_RTS);
}

// ---- Breaches of the format's rules ----------------------------------------------------

class Breach : public Pair {
protected:
	Breach() { connect(x, y); }
	hw::wqe good() const
	{
		return x.wqe(hw::op_write, a, mr_a->lkey, b, mr_b->rkey, 8);
	}
	// The queue stops with an error completion, and the breach is counted.
	void expect_breach(uint8_t syndrome = hw::syndrome_local_qp)
	{
		expect_error(x, syndrome);
		EXPECT_EQ(npu_a.violations(), 1u);
		ibv_async_event event = {};
		EXPECT_EQ(api().get_async_event(nic_a.context(), &event), 0);
		EXPECT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
		EXPECT_EQ(event.element.qp, x.qp());
		EXPECT_EQ(api().get_async_event(nic_a.context(), &event), -EAGAIN);
	}

	TestQueue x{npu_a, nic_a}, y{npu_b, nic_b};
};

TEST_F(Breach, WqeOfTheWrongOwner)
{
	hw::wqe w = good();
	w.owner = 1;
	x.put_wqe(w);
	x.ring();
	expect_breach();
}

TEST_F(Breach, DoorbellForAWqeThatIsStillMarkedInvalid)
{
	x.put_wqe(good()); // marks the slot after it
	x.set_record(2);
	x.ring_value(x.doorbell());
	expect_ok(x);
	expect_breach();
}

TEST_F(Breach, NextSlotWithoutMarker)
{
	x.put_wqe(good(), false);
	x.ring();
	expect_breach();
}

TEST_F(Breach, RecordBeyondTheRing)
{
	x.put_wqe(good());
	x.set_record(x.depth() + 1);
	x.ring_value(x.doorbell());
	expect_breach();
}

TEST_F(Breach, RecordThatWentBack)
{
	for (int i = 0; i < 3; i++) {
		x.put_wqe(good());
		x.ring();
		expect_ok(x);
	}
	x.set_record(2);
	x.ring_value(x.doorbell());
	expect_breach();
}

TEST_F(Breach, RecordInTheHostsByteOrder)
{
	x.put_wqe(good());
	x.set_record(__builtin_bswap32(x.head()));
	x.ring_value(x.doorbell());
	expect_breach();
}

TEST_F(Breach, DoorbellsWithAWrongField)
{
	auto field = [this](void (*set)(hw::doorbell &)) {
		hw::doorbell d = hw::decode_doorbell(x.doorbell());
		set(d);
		return hw::encode(d);
	};
	uint64_t wrong[] = {
		field([](hw::doorbell &d) { d.qpn ^= 1; }),
		field([](hw::doorbell &d) { d.type = 20; }),
		field([](hw::doorbell &d) { d.sub_type = 1; }),
		field([](hw::doorbell &d) { d.sgid_index = 0; }),
		field([](hw::doorbell &d) { d.pi_high = 1; }),
		field([](hw::doorbell &d) { d.reserved22 = 1; }),
		field([](hw::doorbell &d) { d.c = 1; }),
		field([](hw::doorbell &d) { d.reserved40 = 1; }),
		field([](hw::doorbell &d) { d.xrc_valid = 1; }),
		field([](hw::doorbell &d) { d.reserved49 = 1; }),
	};
	uint64_t count = 0;
	for (uint64_t value : wrong) {
		x.put_wqe(good());
		x.set_record(x.head());
		x.ring_value(value);
		expect_error(x, hw::syndrome_local_qp);
		EXPECT_EQ(npu_a.violations(), ++count) << std::hex << value;
		EXPECT_EQ(x.to(IBV_QPS_RESET), 0);
		EXPECT_EQ(y.to(IBV_QPS_RESET), 0);
		x.restart();
		connect(x, y);
	}
}

TEST_F(Breach, WqesWithAWrongField)
{
	struct {
		void (*set)(hw::wqe &);
		uint8_t syndrome;
	} const wrong[] = {
		{[](hw::wqe &w) { w.msn ^= 1; }, hw::syndrome_local_qp},
		{[](hw::wqe &w) { w.opcode = 0; }, hw::syndrome_local_qp},
		{[](hw::wqe &w) { w.signal = 0; }, hw::syndrome_local_qp},
		{[](hw::wqe &w) { w.last_ext_len = 4; }, hw::syndrome_local_qp},
		{[](hw::wqe &w) { w.va = 0; }, hw::syndrome_local_qp},
		{[](hw::wqe &w) { w.direct_pi = 1; }, hw::syndrome_local_qp},
		{[](hw::wqe &w) { w.data_sections = 3; }, hw::syndrome_local_qp},
		{[](hw::wqe &w) { w.sge_last = 0; }, hw::syndrome_local_qp},
		{[](hw::wqe &w) { w.ulp ^= 1; }, hw::syndrome_local_qp},
		{[](hw::wqe &w) { w.sge_len = 16; }, hw::syndrome_local_length},
		{[](hw::wqe &w) { w.sge_len = w.data_len = 0; }, hw::syndrome_local_length},
	};
	uint64_t count = 0;
	for (const auto &one : wrong) {
		hw::wqe w = good();
		one.set(w);
		x.put_wqe(w);
		x.ring();
		std::optional<Cqe> c = x.wait();
		ASSERT_TRUE(c);
		EXPECT_TRUE(c->error);
		EXPECT_EQ(c->syndrome, one.syndrome) << count;
		EXPECT_NE(c->vendor, 0) << "which rule it was";
		EXPECT_EQ(npu_a.violations(), ++count);
		EXPECT_EQ(x.to(IBV_QPS_RESET), 0);
		EXPECT_EQ(y.to(IBV_QPS_RESET), 0);
		x.restart();
		connect(x, y);
	}
}

TEST_F(Breach, DoorbellBeforeReadyToSend)
{
	TestQueue z(npu_a, nic_a);
	EXPECT_EQ(z.to_init(), 0);
	z.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	std::optional<Cqe> c = z.wait();
	ASSERT_TRUE(c);
	EXPECT_EQ(c->syndrome, hw::syndrome_local_qp);
	EXPECT_EQ(npu_a.violations(), 1u);
	EXPECT_EQ(z.state(), IBV_QPS_ERR);
}

TEST_F(Breach, DoorbellOfAResetQpIsCountedAndForgotten)
{
	TestQueue z(npu_a, nic_a), w(npu_b, nic_b);
	z.ring_value(z.doorbell());
	api().npu_step(npu_a.get());
	EXPECT_EQ(npu_a.violations(), 1u);
	EXPECT_EQ(z.state(), IBV_QPS_RESET);
	connect(z, w);
	z.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	expect_ok(z);
}

TEST_F(Breach, RecordAloneStartsNothing)
{
	x.put_wqe(good());
	x.set_record(x.head());
	for (int i = 0; i < 10; i++)
		api().npu_step(npu_a.get());
	EXPECT_FALSE(x.poll());
	x.ring_value(x.doorbell());
	expect_ok(x);
	EXPECT_EQ(npu_a.violations(), 0u);
}

// ---- Faults by configuration -----------------------------------------------------------

struct RemoteAccessFault : Pair {
	RemoteAccessFault() : Pair("remote-access-error:3") {}
};

TEST_F(RemoteAccessFault, EveryNthRequestOfAQueueFails)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	for (int i = 0; i < 2; i++) {
		x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
		expect_ok(x);
	}
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	expect_error(x, hw::syndrome_remote_access);
}

struct RetryFault : Pair {
	RetryFault() : Pair("retry-exceeded:2") {}
};

TEST_F(RetryFault, EveryNthRequestOfAQueueFails)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	expect_ok(x);
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	expect_error(x, hw::syndrome_retry_exceeded);
}

struct DropFault : Pair {
	DropFault() : Pair("drop:1") {}
};

TEST_F(DropFault, DroppedRequestMovesNothingAndExceedsTheRetriesInTime)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y, 8, 3); // 4.096 us * 2^8 * 4 = 4.2 ms
	npu_a.write(a, pattern(8, 1));
	uint64_t begin = now_ns();
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	expect_error(x, hw::syndrome_retry_exceeded);
	EXPECT_GE(now_ns() - begin, 4000000u);
	EXPECT_EQ(npu_b.read(b, 8), std::vector<uint8_t>(8));
}

struct DelayFault : Pair {
	DelayFault() : Pair("delay-us:3000") {}
};

TEST_F(DelayFault, RequestTakesAtLeastThatLong)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	uint64_t begin = now_ns();
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	expect_ok(x);
	EXPECT_GE(now_ns() - begin, 3000000u);
}

struct RnrFault : Pair {
	RnrFault() : Pair("rnr:2") {}
};

TEST_F(RnrFault, EveryNthRequestOfAQueueFails)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	expect_ok(x);
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	expect_error(x, hw::syndrome_rnr_retry_exceeded);
}

struct ReorderFault : Pair {
	ReorderFault() : Pair("reorder:8,seed:3") {}
};

TEST_F(ReorderFault, ReadsAreOvertakenUnlessAFenceIsThere)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	npu_a.write(a, std::vector<uint8_t>(8, 2));
	for (bool fence : {false, true}) {
		int overtaken = 0;
		for (int i = 0; i < 50; i++) {
			npu_b.write(b, std::vector<uint8_t>(8, 1));
			x.put_wqe(x.wqe(
				hw::op_read, a + 64, mr_a->lkey, b, mr_b->rkey, 8, false));
			hw::wqe write =
				x.wqe(hw::op_write, a, mr_a->lkey, b, mr_b->rkey, 8);
			write.fence = fence;
			x.put_wqe(write);
			x.ring();
			expect_ok(x);
			overtaken += npu_a.read(a + 64, 1)[0] == 2;
		}
		if (fence) {
			EXPECT_EQ(overtaken, 0);
		} else {
			EXPECT_GT(overtaken, 0);
			EXPECT_LT(overtaken, 50);
		}
	}
	EXPECT_EQ(npu_a.violations(), 0u);
}

// The mode is switched on and off with work under way.
TEST_F(Pair, MultipathReordersAsFarAsTheTransportLets)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	npu_a.write(a, std::vector<uint8_t>(8, 2));
	auto set_mode = [&](ibv_lb_mode mode, uint32_t paths) {
		ibv_qp_attr_extend attr = {};
		attr.qp = x.qp();
		attr.lb_mode = mode;
		attr.mpath.path_num = paths;
		EXPECT_EQ(ibv_modify_qp_extend(nic_a.extend(), &attr,
				  IBV_QP_ATTR_EXTEND_LB_MODE |
					  IBV_QP_ATTR_EXTEND_MPATH_CONFIG),
			0)
			<< detail();
	};
	auto overtaken = [&] {
		int count = 0;
		for (int i = 0; i < 50; i++) {
			npu_b.write(b, std::vector<uint8_t>(8, 1));
			x.read(a + 64, mr_a->lkey, b, mr_b->rkey, 8, false);
			x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
			expect_ok(x);
			count += npu_a.read(a + 64, 1)[0] == 2;
		}
		return count;
	};
	EXPECT_EQ(overtaken(), 0);
	set_mode(IBV_LB_MODE_MPATH, 4);
	EXPECT_GT(overtaken(), 0);
	set_mode(IBV_LB_MODE_MPATH, 1);
	EXPECT_EQ(overtaken(), 0);
	set_mode(IBV_LB_MODE_AR, 0);
	EXPECT_GT(overtaken(), 0);
	set_mode(IBV_LB_MODE_MPATH, 0);
	x.write(a, mr_a->lkey, b, mr_b->rkey, size);
	api().npu_step(npu_a.get());
	set_mode(IBV_LB_MODE_DEFAULT, 0);
	expect_ok(x);
	EXPECT_EQ(npu_b.read(b, size), npu_a.read(a, size));
	EXPECT_EQ(overtaken(), 0);
}

TEST_F(ReorderFault, CompletionsKeepTheOrderAcrossTheRing)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	for (uint16_t i = 0; i < 200;) {
		for (int k = 0; k < 8; k++)
			x.put_wqe(x.wqe(k % 2 ? hw::op_read : hw::op_write, a, mr_a->lkey,
				b, mr_b->rkey, 5000));
		x.ring();
		for (int k = 0; k < 8; k++, i++) {
			std::optional<Cqe> c = x.wait();
			ASSERT_TRUE(c);
			EXPECT_FALSE(c->error);
			EXPECT_EQ(c->wqe, i);
		}
	}
}

// The next event of a NIC, or -1.
int next_event(TestNic &nic, ibv_async_event &event)
{
	return api().get_async_event(nic.context(), &event) ? -1 : event.event_type;
}

struct OverrunFault : Pair {
	OverrunFault() : Pair("cq-overrun:3") {}
};

TEST_F(OverrunFault, CompletionQueueAndQueueFailUntilTheyAreReset)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y);
	ibv_async_event event;
	for (int i = 0; i < 2; i++) {
		x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
		expect_ok(x);
	}
	EXPECT_EQ(next_event(nic_a, event), -1);
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	for (int i = 0; i < 10; i++)
		EXPECT_FALSE(x.wait(0)) << "an entry was written to a queue that overran";
	EXPECT_EQ(x.state(), IBV_QPS_ERR);
	EXPECT_EQ(next_event(nic_a, event), IBV_EVENT_CQ_ERR);
	EXPECT_EQ(event.element.cq, x.cq()->cq);
	EXPECT_EQ(next_event(nic_a, event), IBV_EVENT_QP_FATAL);
	EXPECT_EQ(event.element.qp, x.qp());
	EXPECT_EQ(next_event(nic_a, event), -1);

	ASSERT_EQ(x.to(IBV_QPS_RESET), 0) << detail();
	x.restart();
	x.connect(nic_b.gid(), y.qpn());
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	expect_ok(x);
}

struct LinkFault : Pair {
	LinkFault() : Pair("link-down:3") {}
};

TEST_F(LinkFault, PortGoesDownAndNothingIsAnsweredInEitherDirection)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	connect(x, y, 8, 3);
	ibv_port_attr port;
	ibv_async_event event;
	for (int i = 0; i < 2; i++) {
		x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
		expect_ok(x);
	}
	ASSERT_EQ(api().query_port(nic_a.context(), 1, &port), 0);
	EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
	npu_a.write(a, pattern(8, 1));
	npu_b.write(b, std::vector<uint8_t>(8));
	x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
	expect_error(x, hw::syndrome_retry_exceeded);
	EXPECT_EQ(npu_b.read(b, 8), std::vector<uint8_t>(8));
	ASSERT_EQ(api().query_port(nic_a.context(), 1, &port), 0);
	EXPECT_EQ(port.state, IBV_PORT_DOWN);
	EXPECT_EQ(next_event(nic_a, event), IBV_EVENT_PORT_ERR);
	EXPECT_EQ(event.element.port_num, 1);
	EXPECT_EQ(next_event(nic_a, event), -1);
	y.write(b, mr_b->lkey, a, mr_a->rkey, 8);
	expect_error(y, hw::syndrome_retry_exceeded);
	ASSERT_EQ(api().query_port(nic_b.context(), 1, &port), 0);
	EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
}

TEST(LinkFaults, PortGoesDownByTimeWhereNobodyIsLooking)
{
	TestNic nic("link-down-us:1");
	uint64_t end = now_ns() + 1000;
	while (now_ns() < end)
		;
	ibv_async_event event;
	EXPECT_EQ(next_event(nic, event), IBV_EVENT_PORT_ERR);
	ibv_port_attr port;
	ASSERT_EQ(api().query_port(nic.context(), 1, &port), 0);
	EXPECT_EQ(port.state, IBV_PORT_DOWN);
	EXPECT_EQ(next_event(nic, event), -1);
}

} // namespace
} // namespace nda::soft_test
