// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The software NPU: memory, doorbell window, kernels.
#include "lib/common/fd.h"
#include "providers/soft/heap.h"
#include "providers/soft/inject.h"
#include "tests/mock/soft_bench.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <random>
#include <sys/mman.h>

namespace nda::soft_test {
namespace {

using soft::Heap;

// ---- Heap ------------------------------------------------------------------------------

TEST(Heap, SmallAllocationsAreAlignedTo64AndLargeOnesToPages)
{
	Heap heap(1 << 20);
	for (uint64_t size : {1u, 63u, 64u, 65u, 4095u, 4096u, 5000u}) {
		uint64_t offset;
		ASSERT_EQ(heap.alloc(size, offset), 0);
		EXPECT_EQ(offset % (size >= 4096 ? 4096 : 64), 0u) << size;
	}
}

TEST(Heap, RefusesWhatItCannotGive)
{
	Heap heap(8192);
	uint64_t offset = 1234;
	EXPECT_EQ(heap.alloc(0, offset), -EINVAL);
	EXPECT_EQ(heap.alloc(8193, offset), -ENOMEM);
	EXPECT_EQ(heap.alloc(UINT64_MAX, offset), -ENOMEM);
	EXPECT_EQ(offset, 1234u);
	EXPECT_EQ(heap.alloc(8192, offset), 0);
	EXPECT_EQ(heap.alloc(1, offset), -ENOMEM);
}

TEST(Heap, RefusesASecondFreeAndForeignOffsets)
{
	Heap heap(8192);
	uint64_t offset;
	ASSERT_EQ(heap.alloc(128, offset), 0);
	EXPECT_EQ(heap.free(offset + 64), -EINVAL);
	EXPECT_EQ(heap.free(4096), -EINVAL);
	EXPECT_EQ(heap.free(offset), 0);
	EXPECT_EQ(heap.free(offset), -EINVAL);
}

TEST(Heap, PinnedAllocationIsNotFreed)
{
	Heap heap(8192);
	uint64_t offset;
	ASSERT_EQ(heap.alloc(1024, offset), 0);
	EXPECT_EQ(heap.pin(offset + 1000, 25), -EINVAL);
	ASSERT_EQ(heap.pin(offset + 1000, 24), 0);
	ASSERT_EQ(heap.pin(offset, 1), 0);
	heap.unpin(offset);
	EXPECT_EQ(heap.free(offset), -EBUSY);
	heap.unpin(offset + 1000);
	EXPECT_EQ(heap.free(offset), 0);
}

TEST(Heap, NeverOverlapsAndGetsEverythingBack)
{
	constexpr uint64_t all = 1 << 18;
	Heap heap(all);
	std::vector<std::pair<uint64_t, uint64_t>> live;
	std::vector<bool> taken(all / 64);
	std::mt19937 random(42);
	for (int i = 0; i < 20000; i++) {
		if (live.empty() || random() % 2) {
			uint64_t size = 1 + random() % (random() % 4 ? 300 : 20000), offset;
			if (heap.alloc(size, offset))
				continue;
			ASSERT_LE(offset + size, all);
			for (uint64_t at = offset; at < offset + size; at += 64) {
				ASSERT_FALSE(taken[at / 64]);
				taken[at / 64] = true;
			}
			live.emplace_back(offset, size);
		} else {
			size_t victim = random() % live.size();
			auto [offset, size] = live[victim];
			ASSERT_EQ(heap.free(offset), 0);
			for (uint64_t at = offset; at < offset + size; at += 64)
				taken[at / 64] = false;
			live[victim] = live.back();
			live.pop_back();
		}
	}
	for (auto [offset, size] : live)
		ASSERT_EQ(heap.free(offset), 0);
	uint64_t offset;
	EXPECT_EQ(heap.alloc(all, offset), 0) << "free ranges were not merged";
}

// ---- Fault injection strings -----------------------------------------------------------

TEST(Faults, EveryKindIsParsed)
{
	soft::Faults f;
	EXPECT_EQ(
		soft::parse_faults(
			"remote-access-error:1000,delay-us:50,drop:3,retry-exceeded:7,"
			"rnr:8,reorder:64,seed:5,cq-overrun:9,link-down:10,link-down-us:11",
			f),
		0);
	EXPECT_EQ(f.remote_access_every, 1000u);
	EXPECT_EQ(f.delay_us, 50u);
	EXPECT_EQ(f.drop_every, 3u);
	EXPECT_EQ(f.retry_exceeded_every, 7u);
	EXPECT_EQ(f.rnr_every, 8u);
	EXPECT_EQ(f.reorder, 64u);
	EXPECT_EQ(f.seed, 5u);
	EXPECT_EQ(f.cq_overrun_at, 9u);
	EXPECT_EQ(f.link_down_at, 10u);
	EXPECT_EQ(f.link_down_us, 11u);
}

TEST(Faults, NothingIsNoFault)
{
	soft::Faults f;
	f.drop_every = 1;
	EXPECT_EQ(soft::parse_faults(nullptr, f), 0);
	EXPECT_EQ(f.drop_every, 0u);
	EXPECT_EQ(soft::parse_faults("", f), 0);
}

TEST(Faults, BadPartIsNamed)
{
	for (const char *bad : {"drop", "drop:", "drop:0", "drop:x", "drop:-1", "drop: 1",
		     "drop:1000000001", "drop:99999999999999999999999", "dorp:1", ":1",
		     "reorder:65"}) {
		soft::Faults f;
		std::string text = std::string("delay-us:5,") + bad;
		EXPECT_EQ(soft::parse_faults(text.c_str(), f), -EINVAL) << bad;
		EXPECT_NE(detail().find(std::string("'") + bad + "'"), std::string::npos)
			<< detail();
		EXPECT_EQ(f.delay_us, 0u) << "half done";
	}
	soft::Faults f;
	EXPECT_EQ(soft::parse_faults("drop:1,", f), -EINVAL);
	EXPECT_EQ(soft::parse_faults(",drop:1", f), -EINVAL);
	nda_soft_nic_attr attr = {"hns1825", "drop:0", 0, 0, nullptr};
	EXPECT_EQ(api().nic_open(&attr), nullptr);
	EXPECT_EQ(errno, EINVAL);
}

// ---- NPU memory ------------------------------------------------------------------------

TEST(Npu, BytesComeBackAsWritten)
{
	TestNpu npu;
	uint64_t address = npu.alloc(4096);
	EXPECT_EQ(npu.read(address, 4096), std::vector<uint8_t>(4096))
		<< "fresh memory is 0";
	npu.write(address + 3, {1, 2, 3});
	EXPECT_EQ(npu.read(address + 2, 5), (std::vector<uint8_t>{0, 1, 2, 3, 0}));
	EXPECT_EQ(api().npu_copy(npu.get(), address + 100, address + 2, 5), 0);
	EXPECT_EQ(npu.read(address + 100, 5), (std::vector<uint8_t>{0, 1, 2, 3, 0}));
	EXPECT_EQ(api().npu_memset(npu.get(), address, 0x1ff, 2), 0);
	EXPECT_EQ(npu.read(address, 4), (std::vector<uint8_t>{0xff, 0xff, 0, 1}));
}

TEST(Npu, AccessOutsideAnAllocationIsRefused)
{
	TestNpu npu, other;
	uint64_t address = npu.alloc(4096), foreign = other.alloc(64);
	uint8_t bytes[8] = {};
	for (uint64_t bad :
		{address + 4089, address - 8, foreign, uint64_t{0}, UINT64_MAX - 3}) {
		EXPECT_EQ(api().npu_write(npu.get(), bad, bytes, 8), -EINVAL);
		EXPECT_EQ(api().npu_read(npu.get(), bytes, bad, 8), -EINVAL);
		EXPECT_EQ(api().npu_memset(npu.get(), bad, 0, 8), -EINVAL);
		EXPECT_EQ(api().npu_copy(npu.get(), bad, address, 8), -EINVAL);
		EXPECT_EQ(api().npu_copy(npu.get(), address, bad, 8), -EINVAL);
		EXPECT_NE(detail(), "");
	}
	EXPECT_EQ(api().npu_write(npu.get(), address, nullptr, 8), -EINVAL);
	EXPECT_EQ(api().npu_write(npu.get(), address, nullptr, 0), 0);
	EXPECT_EQ(api().npu_read(npu.get(), bytes, address, UINT64_MAX), -EINVAL);
}

TEST(Npu, DoubleAndForeignFreesAreRefused)
{
	TestNpu npu, other;
	uint64_t address = npu.alloc(64), foreign = other.alloc(64);
	EXPECT_EQ(api().npu_free(npu.get(), foreign), -EINVAL);
	EXPECT_EQ(api().npu_free(npu.get(), address), 0);
	EXPECT_EQ(api().npu_free(npu.get(), address), -EINVAL);
	EXPECT_NE(detail().find("already freed"), std::string::npos);
}

TEST(Npu, ContainsItsMemoryAndNothingElse)
{
	nda_soft_npu_attr attr = {};
	attr.memory_bytes = 1 << 20;
	TestNpu npu(attr), other;
	uint64_t first = npu.alloc(1 << 20);
	EXPECT_EQ(api().npu_contains(npu.get(), first, 1 << 20), 1);
	EXPECT_EQ(api().npu_contains(npu.get(), first, (1 << 20) + 1), 0);
	EXPECT_EQ(api().npu_contains(npu.get(), first - 1, 1), 0);
	EXPECT_EQ(api().npu_contains(npu.get(), first + 1, UINT64_MAX), 0);
	EXPECT_EQ(api().npu_contains(npu.get(), other.alloc(64), 1), 0);
	EXPECT_EQ(api().npu_contains(nullptr, first, 1), -EINVAL);
}

TEST(Npu, HandleThatIsNoneIsRefused)
{
	nda_soft_npu *stale;
	{
		TestNpu npu;
		stale = npu.get();
	}
	uint64_t address;
	for (nda_soft_npu *bad : {static_cast<nda_soft_npu *>(nullptr), stale}) {
		EXPECT_EQ(api().npu_alloc(bad, 64, &address), -EINVAL);
		EXPECT_EQ(api().npu_close(bad), -EINVAL);
		EXPECT_EQ(api().npu_wait(bad, 0), -EINVAL);
		EXPECT_EQ(api().npu_step(bad), -EINVAL);
	}
	EXPECT_EQ(api().npu_open(nullptr), nullptr);
	EXPECT_EQ(errno, EINVAL);
	nda_soft_npu_attr attr = {};
	attr.memory_bytes = UINT64_MAX;
	EXPECT_EQ(api().npu_open(&attr), nullptr);
	EXPECT_EQ(errno, EINVAL);
}

TEST(Npu, CloseIsBusyWhileARegionUsesIt)
{
	TestNpu npu;
	TestNic nic;
	uint64_t address = npu.alloc(4096);
	ibv_mr *mr = nic.reg(address, 4096);
	EXPECT_EQ(npu.close(), -EBUSY);
	EXPECT_EQ(api().npu_free(npu.get(), address), -EBUSY);
	EXPECT_EQ(api().dereg_mr(mr), 0);
	EXPECT_EQ(api().npu_free(npu.get(), address), 0);
	EXPECT_EQ(npu.close(), 0);
}

TEST(Npu, ClosesWithAllocationsLeft)
{
	TestNpu npu;
	npu.alloc(4096);
	EXPECT_EQ(npu.close(), 0) << detail();
}

// A file of zeroes, and what an NPU in its second and third page is opened with.
struct GivenMemory {
	Fd file{memfd_create("given", MFD_CLOEXEC)};
	nda_soft_npu_attr attr = {};

	GivenMemory()
	{
		EXPECT_EQ(ftruncate(file.get(), 3 * 4096), 0);
		attr.has_memory = 1;
		attr.memory_fd = file.get();
		attr.memory_bytes = 2 * 4096;
		attr.memory_offset = 4096;
	}
};

TEST(Npu, MemoryMayBeTheCallers)
{
	GivenMemory given;
	TestNpu npu(given.attr);
	uint64_t address = npu.alloc(2 * 4096);
	npu.write(address + 2 * 4096 - 3, {1, 2, 3});
	uint8_t end[3] = {};
	EXPECT_EQ(pread(given.file.get(), end, 3, 3 * 4096 - 3), 3);
	EXPECT_EQ(std::vector<uint8_t>(end, end + 3), (std::vector<uint8_t>{1, 2, 3}));
}

TEST(Npu, MemoryOfTheCallersStaysAfterItsDescriptorIsClosed)
{
	GivenMemory given;
	TestNpu npu(given.attr);
	given.file.reset();
	uint64_t address = npu.alloc(64);
	npu.write(address, {7});
	EXPECT_EQ(npu.read(address, 1), std::vector<uint8_t>{7});
}

TEST(Npu, BadMemoryOfTheCallersIsRefused)
{
	const auto refused = [](void (*spoil)(nda_soft_npu_attr &), int error) {
		GivenMemory given;
		spoil(given.attr);
		EXPECT_EQ(api().npu_open(&given.attr), nullptr);
		EXPECT_EQ(errno, error);
	};
	refused([](nda_soft_npu_attr &a) { a.memory_offset = 100; }, EINVAL);
	refused([](nda_soft_npu_attr &a) { a.memory_bytes = 0; }, EINVAL);
	refused([](nda_soft_npu_attr &a) { a.memory_bytes = 100; }, EINVAL);
	refused([](nda_soft_npu_attr &a) { a.memory_fd = -1; }, EBADF);
	refused([](nda_soft_npu_attr &a) { a.has_memory = 0; }, EINVAL);
}

// ---- Strict mode -----------------------------------------------------------------------

nda_soft_npu_attr strict()
{
	nda_soft_npu_attr attr = {};
	attr.strict = 1;
	attr.assist = 1;
	return attr;
}

TEST(StrictNpuDeathTest, AddressesFaultOnTheHost)
{
	testing::GTEST_FLAG(death_test_style) = "threadsafe";
	EXPECT_DEATH(
		{
			TestNpu npu(strict());
			*reinterpret_cast<volatile uint8_t *>(npu.alloc(64)) = 1;
		},
		"");
}

TEST(StrictNpu, TransfersWorkThroughTheConstantOffset)
{
	TestNpu npu(strict());
	TestNic nic;
	ASSERT_NE(npu.core().address_offset, 0u);
	uint64_t memory = npu.alloc(8192);
	ibv_mr *mr = nic.reg(memory, 8192);
	{
		TestQueue x(npu, nic), y(npu, nic);
		x.connect(nic.gid(), y.qpn());
		y.connect(nic.gid(), x.qpn());
		npu.write(memory, {1, 2, 3, 4, 5, 6, 7, 8, 9});
		x.write(memory, mr->lkey, memory + 4096, mr->rkey, 9);
		std::optional<Cqe> c = x.wait();
		ASSERT_TRUE(c);
		EXPECT_FALSE(c->error);
		EXPECT_EQ(npu.read(memory + 4096, 9),
			(std::vector<uint8_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
	}
	EXPECT_EQ(api().dereg_mr(mr), 0);
}

// ---- Doorbell window -------------------------------------------------------------------

class Doorbell : public testing::TestWithParam<queue_buf_dma_mode> {
protected:
	TestNpu npu;
	TestNic nic;
};

TEST_P(Doorbell, EveryQueueHasALineOfItsOwn)
{
	QueueOptions o;
	o.mode = GetParam();
	std::vector<std::unique_ptr<TestQueue>> queues;
	std::vector<uint64_t> seen;
	for (int i = 0; i < 100; i++) {
		queues.push_back(std::make_unique<TestQueue>(npu, nic, o));
		uint64_t at = queues.back()->extend()->sq_info.db_hw_va.iov_base;
		EXPECT_EQ(at % 64, 0u);
		for (uint64_t other : seen)
			EXPECT_NE(at, other);
		seen.push_back(at);
	}
	EXPECT_EQ(npu.close(), -EBUSY);
}

INSTANTIATE_TEST_SUITE_P(Modes, Doorbell,
	testing::Values(QUEUE_BUF_DMA_MODE_DEFAULT, QUEUE_BUF_DMA_MODE_INDEP_UB),
	[](const auto &p) { return p.param ? "UbRes" : "HostVa"; });

// The descriptor that a driver gave to db_mmap.
doorbell_map_desc last_desc;

TEST(DoorbellMap, EqualDescriptorsGiveTheSameAddressUntilAllAreUnmapped)
{
	TestNpu npu;
	TestNic nic;
	static ibv_extend_ops *inner;
	inner = npu.ops();
	ibv_extend_ops spy = *inner;
	spy.db_mmap = [](doorbell_map_desc *desc) {
		last_desc = *desc;
		return inner->db_mmap(desc);
	};
	for (queue_buf_dma_mode mode :
		{QUEUE_BUF_DMA_MODE_DEFAULT, QUEUE_BUF_DMA_MODE_INDEP_UB}) {
		ibv_cq_init_attr_extend cq_attr = {};
		cq_attr.attr.cqe = 64;
		cq_attr.type = mode;
		cq_attr.ops = &spy;
		ibv_cq_extend *cq = ibv_create_cq_extend(nic.extend(), &cq_attr);
		ibv_qp_init_attr_extend attr = {};
		attr.pd = nic.pd();
		attr.attr.send_cq = attr.attr.recv_cq = cq->cq;
		attr.attr.qp_type = IBV_QPT_RC;
		attr.attr.cap.max_send_wr = 64;
		attr.type = mode;
		attr.ops = &spy;
		ibv_qp_extend *qp = ibv_create_qp_extend(nic.extend(), &attr);
		ASSERT_TRUE(qp) << detail();
		EXPECT_EQ(last_desc.type,
			static_cast<uint32_t>(mode == QUEUE_BUF_DMA_MODE_DEFAULT
					? DOORBELL_MAP_MODE_HOST_VA
					: DOORBELL_MAP_MODE_UB_RES));
		auto *first = reinterpret_cast<void *>(qp->sq_info.db_hw_va.iov_base);
		void *again = api().npu_db_mmap(npu.get(), &last_desc);
		EXPECT_EQ(again, first);
		doorbell_map_desc next_page = last_desc;
		if (mode == QUEUE_BUF_DMA_MODE_DEFAULT)
			next_page.hva += 4096;
		else
			next_page.ub_res.bits.offset += 4096;
		EXPECT_EQ(api().npu_db_unmap(npu.get(), again, &next_page), -EINVAL)
			<< "the descriptor of another page";
		EXPECT_EQ(api().npu_db_unmap(npu.get(), again, &last_desc), 0);
		EXPECT_EQ(ibv_destroy_qp_extend(nic.extend(), qp), 0);
		EXPECT_EQ(api().npu_db_unmap(npu.get(), first, &last_desc), -EINVAL)
			<< "one unmap too many";
		EXPECT_EQ(ibv_destroy_cq_extend(nic.extend(), cq), 0);
	}
}

TEST(DoorbellMap, DescriptorOfNothingIsRefused)
{
	TestNpu npu;
	TestNic nic;
	doorbell_map_desc desc = {};
	desc.size = 64;
	desc.type = DOORBELL_MAP_MODE_HOST_VA;
	desc.hva = reinterpret_cast<uint64_t>(&desc);
	EXPECT_EQ(api().npu_db_mmap(npu.get(), &desc), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	desc = {};
	desc.size = 64;
	desc.type = DOORBELL_MAP_MODE_UB_RES;
	desc.ub_res.guid_l = 1;
	EXPECT_EQ(api().npu_db_mmap(npu.get(), &desc), nullptr);
	desc.type = 7;
	EXPECT_EQ(api().npu_db_mmap(npu.get(), &desc), nullptr);
	EXPECT_EQ(api().npu_db_mmap(npu.get(), nullptr), nullptr);
}

// ---- Kernels ---------------------------------------------------------------------------

struct Shared {
	std::atomic<uint32_t> arrived{0};
	std::atomic<uint64_t> seen{0};
	std::atomic<bool> go{false};
};

void arrive(const nda_core *core, void *arg)
{
	auto *shared = static_cast<Shared *>(arg);
	shared->arrived.fetch_add(1);
	shared->seen.fetch_or(uint64_t{1} << core->index);
	// All cores run at the same time.
	while (shared->arrived.load() < core->count)
		sched_yield();
}

void hold(const nda_core *, void *arg)
{
	while (!static_cast<Shared *>(arg)->go.load())
		sched_yield();
}

TEST(Launch, EveryCoreRunsOnceAndAllRunTogether)
{
	TestNpu npu;
	for (uint32_t cores : {1u, 3u, 48u}) {
		Shared shared;
		ASSERT_EQ(api().npu_launch(npu.get(), arrive, &shared, cores), 0)
			<< detail();
		ASSERT_EQ(api().npu_wait(npu.get(), deadline_ms), 0) << detail();
		EXPECT_EQ(shared.seen.load(), (uint64_t{1} << cores) - 1);
		EXPECT_EQ(shared.arrived.load(), cores);
	}
}

TEST(Launch, OneAtATimeAndWaitHasADeadline)
{
	TestNpu npu;
	Shared shared;
	EXPECT_EQ(api().npu_wait(npu.get(), 0), -EINVAL);
	ASSERT_EQ(api().npu_launch(npu.get(), hold, &shared, 2), 0);
	EXPECT_EQ(api().npu_launch(npu.get(), hold, &shared, 1), -EBUSY);
	EXPECT_EQ(api().npu_wait(npu.get(), 20), -ETIMEDOUT);
	EXPECT_EQ(api().npu_wait(npu.get(), 0), -ETIMEDOUT);
	EXPECT_EQ(npu.close(), -EBUSY);
	shared.go = true;
	EXPECT_EQ(api().npu_wait(npu.get(), -1), 0);
	EXPECT_EQ(api().npu_wait(npu.get(), 0), -EINVAL);
}

TEST(Launch, BadArgumentsAreRefused)
{
	TestNpu npu;
	EXPECT_EQ(api().npu_launch(npu.get(), nullptr, nullptr, 1), -EINVAL);
	EXPECT_EQ(api().npu_launch(npu.get(), hold, nullptr, 0), -EINVAL);
	EXPECT_EQ(api().npu_launch(npu.get(), hold, nullptr, 49), -EINVAL);
}

TEST(Npu, OnlyAManualOneHasAnotherClockOrPace)
{
	nda_soft_npu_attr attr = {};
	attr.pass_requests = 1;
	EXPECT_EQ(api().npu_open(&attr), nullptr);
	EXPECT_EQ(errno, EINVAL);
	attr.pass_requests = 0;
	attr.clock_ns = [](void *) { return uint64_t{1}; };
	EXPECT_EQ(api().npu_open(&attr), nullptr);
	EXPECT_EQ(errno, EINVAL);
	attr.manual = 1;
	TestNpu npu(attr);
}

TEST(Core, AssistanceCanBeSwitchedOff)
{
	nda_soft_npu_attr attr = {};
	TestNpu without(attr);
	EXPECT_EQ(without.core().nic_step, nullptr);
	EXPECT_EQ(without.core().address_offset, 0u);
	attr.assist = 1;
	TestNpu with(attr);
	EXPECT_NE(with.core().nic_step, nullptr);
	EXPECT_EQ(with.core().nic_step(with.core().nic), 0);
}

} // namespace
} // namespace nda::soft_test
