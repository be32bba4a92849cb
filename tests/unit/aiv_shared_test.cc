// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Cores that post to one queue.
#include <string.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <nda/aiv/shared.h>
#include <nda/aiv/udma_queue.h>
#include <tests/mock/hns1825_rig.h>
#include <tests/mock/udma_rig.h>
#include <tests/sim/sim.h>

using namespace nda;
using namespace nda::test;

namespace {

constexpr uint32_t pe = 1;
constexpr uint64_t heap_bytes = 1 << 20;

// The line of a queue whose cores share it, at index @start.
void share(nda_queue &q, uint32_t start)
{
	nda_queue_shared s = {};

	s.head = s.limit = s.turn = s.tail = s.cq_ci = start;
	s.asked = uint64_t{start} << 32 | start;
	s.flags = NDA_QUEUE_SHARED;
	memcpy(&q.state, &s, sizeof(s));
}

// A place for the core's i-th put; the first 64 KiB of a heap are not used.
uint64_t place(uint32_t core, uint32_t i)
{
	return 0x10000 + (uint64_t{core} * 512 + i) * 64;
}

// Two PEs of one process: the cores are PE 0's, the NIC moves bytes to PE 1's heap.
struct Pair {
	typedef aiv::hns1825::Engine Engine;

	std::vector<uint8_t> here, there;
	std::unique_ptr<Rig> rig;

	Pair(uint32_t depth, uint32_t signal_every, uint32_t start,
		uint32_t timeout_us = 1000)
		: here(heap_bytes + 64), there(heap_bytes + 64)
	{
		RigOptions options;
		options.sq_depth = options.cq_depth = depth;
		options.signal_every = signal_every;
		options.start = start;
		options.timeout_us = timeout_us;
		options.heap_base = base(here);
		options.heap_bytes = heap_bytes;
		options.remote_delta = base(there) - base(here);
		rig = std::make_unique<Rig>(options);
		rig->move_bytes = true;
		nda_queue &q = rig->queue(pe);
		q.scratch_local = base(here) + heap_bytes - NDA_SCRATCH_BYTES;
		q.scratch_remote = base(there);
		share(q, start);
	}

	uint64_t own() { return base(here); }
	uint64_t peer() { return base(there); }
	void step() { rig->nic_run(pe, 1); }
	bool good() const { return rig->fault() == format::wqe_fault::none; }

	static uint64_t base(std::vector<uint8_t> &heap)
	{
		return (reinterpret_cast<uint64_t>(heap.data()) + 63) & ~uint64_t{63};
	}
};

// The same with UDMA.
struct UdmaPair {
	typedef aiv::udma::Engine Engine;

	std::unique_ptr<UdmaRig> rig;

	UdmaPair(uint32_t depth, uint32_t signal_every, uint32_t start)
	{
		UdmaOptions options;
		options.sq_depth = options.cq_depth = depth;
		options.signal_every = signal_every;
		options.start = start;
		options.heap_bytes = heap_bytes;
		rig = std::make_unique<UdmaRig>(options);
		share(rig->queue(pe), start);
	}

	uint64_t own() { return rig->own_base(); }
	uint64_t peer() { return reinterpret_cast<uint64_t>(rig->peer()); }
	void step() { rig->run(pe, 1); }
	bool good() const { return rig->fault.empty(); }
};

template <class APair, class Core>
void put_many(APair *pair, Core core, uint32_t index, uint32_t n)
{
	aiv::SharedDevice<Core, typename APair::Engine> device;
	const uint64_t base = pair->own();

	ASSERT_EQ(device.open(core, pair->rig->address(), 0), NDA_OK);
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t at = base + place(index, i);

		for (uint32_t b = 0; b < 40; b++)
			core.template store<uint8_t>(
				at + b, static_cast<uint8_t>(index * 31 + i * 7 + b));
		ASSERT_EQ(device.put_nbi(pe, at, at, 40), NDA_OK) << i;
	}
	ASSERT_EQ(device.quiet(pe), NDA_OK);
	// What this core has waited for is there.
	for (uint32_t i = 0; i < n; i++)
		ASSERT_EQ(memcmp(reinterpret_cast<void *>(pair->peer() + place(index, i)),
				  reinterpret_cast<void *>(base + place(index, i)), 40),
			0)
			<< "core " << index << " put " << i;
}

struct Shape {
	uint32_t cores;
	uint32_t depth;
	uint32_t signal_every;
	uint32_t start;
};

class SharedQueue : public testing::TestWithParam<Shape> {};

} // namespace

template <class APair>
void expect_all_puts(const Shape &shape)
{
	for (uint64_t seed = 1; seed <= 8; seed++) {
		SCOPED_TRACE(seed);
		Sim sim(seed);
		APair pair(shape.depth, shape.signal_every, shape.start);
		for (uint32_t i = 0; i < shape.cores; i++)
			sim.add_core(
				[&, i](SimCore core) { put_many(&pair, core, i, 60); });
		sim.add_model([&] { pair.step(); });
		ASSERT_TRUE(sim.run());
		EXPECT_TRUE(pair.good());
		EXPECT_GE(pair.rig->queue(pe).state.head - shape.start, 60 * shape.cores);
	}
}

TEST_P(SharedQueue, TakesThePutsOfAllCoresInEveryOrder)
{
	expect_all_puts<Pair>(GetParam());
}

TEST_P(SharedQueue, OfUdmaDoesSoToo)
{
	expect_all_puts<UdmaPair>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Shapes, SharedQueue,
	testing::Values(Shape{1, 16, 1, 0}, Shape{2, 16, 1, 0}, Shape{4, 4, 1, 0},
		Shape{4, 64, 8, 0}, Shape{3, 16, 16, 0}, Shape{4, 16, 1, 0xfffd},
		Shape{4, 16, 4, 0xfffffd}, Shape{4, 16, 2, 0xfffffffd}));

TEST(SharedQueueThreads, LoseNoPut)
{
	Pair pair(64, 4, 0, 60000000);
	std::atomic<bool> stop{false};
	std::thread nic([&] {
		while (!stop.load())
			if (pair.rig->nic_run(pe) == 0)
				std::this_thread::yield();
	});
	std::vector<std::thread> cores;
	for (uint32_t i = 0; i < 3; i++)
		cores.emplace_back([&, i] { put_many(&pair, aiv::HostCore(), i, 500); });
	for (std::thread &core : cores)
		core.join();
	stop = true;
	nic.join();
	EXPECT_EQ(pair.rig->fault(), format::wqe_fault::none);
}

TEST(SharedQueueErrors, AreSeenByEveryCoreAndEndEveryWait)
{
	Pair pair(16, 1, 0);
	Sim sim(3);
	std::vector<enum nda_status> quiet(3), later(3);
	for (uint32_t i = 0; i < 3; i++)
		sim.add_core([&, i](SimCore core) {
			aiv::SharedDevice<SimCore> device;
			const uint64_t at = Pair::base(pair.here) + 0x10000;
			ASSERT_EQ(device.open(core, pair.rig->address(), 0), NDA_OK);
			for (uint32_t n = 0; n < 20; n++)
				if (device.put_nbi(pe, at, at, 8) != NDA_OK)
					break;
			quiet[i] = device.quiet(pe);
			later[i] = device.put_nbi(pe, at, at, 8);
		});
	// The eleventh fails; what is posted later is flushed.
	sim.add_model([&] {
		if (pair.rig->nic_next(pe) < 10)
			pair.rig->nic_run(pe, 1);
		else
			pair.rig->nic_fail(pe,
				pair.rig->nic_next(pe) == 10
					? format::syndrome_remote_access
					: format::syndrome_flushed);
	});
	EXPECT_TRUE(sim.run());
	for (uint32_t i = 0; i < 3; i++) {
		EXPECT_EQ(quiet[i], NDA_REMOTE_ACCESS) << i;
		EXPECT_EQ(later[i], NDA_REMOTE_ACCESS) << i;
	}
	EXPECT_EQ(pair.rig->queue(pe).state.error.wqe_index, 10);
}

// A core that has taken a place and then went for good.
void leave_a_place(Pair *pair, uint32_t lock)
{
	nda_queue_shared *s =
		reinterpret_cast<nda_queue_shared *>(&pair->rig->queue(pe).state);

	s->head++;
	s->lock = lock;
}

// Whoever reads the completion may be the other core.
TEST(SharedQueueErrors, NoCoreTakesItsFailedPutForDone)
{
	for (uint64_t seed = 1; seed <= 500; seed++) {
		SCOPED_TRACE(seed);
		Pair pair(16, 1, 0);
		Sim sim(seed);
		enum nda_status posted[2], quiet[2];
		for (uint32_t i = 0; i < 2; i++)
			sim.add_core([&, i](SimCore core) {
				aiv::SharedDevice<SimCore> device;
				const uint64_t at = Pair::base(pair.here) + 0x10000;
				ASSERT_EQ(
					device.open(core, pair.rig->address(), 0), NDA_OK);
				posted[i] = device.put_nbi(pe, at, at, 8);
				quiet[i] = device.quiet(pe);
			});
		sim.add_model([&] {
			pair.rig->nic_fail(pe,
				pair.rig->nic_next(pe) == 0 ? format::syndrome_remote_access
							    : format::syndrome_flushed);
		});
		ASSERT_TRUE(sim.run());
		for (uint32_t i = 0; i < 2; i++)
			ASSERT_TRUE(posted[i] != NDA_OK || quiet[i] != NDA_OK) << i;
	}
}

TEST(SharedQueueErrors, OfUdmaAreSeenByEveryCore)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		SCOPED_TRACE(seed);
		UdmaPair pair(16, 4, 0xfffffffb);
		Sim sim(seed);
		enum nda_status quiet[3];
		for (uint32_t i = 0; i < 3; i++)
			sim.add_core([&, i](SimCore core) {
				aiv::SharedDevice<SimCore, aiv::udma::Engine> device;
				const uint64_t at = pair.own() + 0x10000;
				ASSERT_EQ(
					device.open(core, pair.rig->address(), 0), NDA_OK);
				for (uint32_t n = 0; n < 20; n++)
					if (device.put_nbi(pe, at, at, 8) != NDA_OK)
						break;
				quiet[i] = device.quiet(pe);
			});
		// The eleventh fails; what is posted later is flushed.
		sim.add_model([&] {
			if (pair.rig->next(pe) == 0xfffffffb + 10)
				pair.rig->fail_next(pe,
					hw::udma::status_remote << 8 |
						hw::udma::remote_access);
			pair.step();
		});
		ASSERT_TRUE(sim.run());
		for (uint32_t i = 0; i < 3; i++)
			ASSERT_EQ(quiet[i], NDA_REMOTE_ACCESS) << i;
	}
}

TEST(SharedQueueErrors, OfTheOwnPeOnUdmaAreNone)
{
	UdmaPair pair(16, 1, 0);
	aiv::SharedDevice<aiv::HostCore, aiv::udma::Engine> device;
	const uint64_t from = pair.own() + 0x10000, to = from + 4096;
	ASSERT_EQ(device.open(aiv::HostCore(), pair.rig->address(), 0), NDA_OK);
	aiv::HostCore().store<uint64_t>(from, 0x1122334455667788);
	EXPECT_EQ(device.put_nbi(0, to, from, 8), NDA_OK);
	EXPECT_EQ(device.quiet(0), NDA_OK);
	EXPECT_EQ(aiv::HostCore().load<uint64_t>(to), 0x1122334455667788u);
}

// A core that was stopped between its place and its WQE comes back after an abort.
TEST(SharedQueueErrors, AnAbortLeavesTheQueueInOrder)
{
	Pair pair(16, 1, 0, 60000000);
	leave_a_place(&pair, 0);
	pair.rig->table()->abort = 1;
	Sim sim(13);
	enum nda_status status = NDA_GENERAL_ERROR;
	sim.add_core([&](SimCore core) {
		aiv::SharedDevice<SimCore> device;
		const uint64_t at = Pair::base(pair.here) + 0x10000;
		ASSERT_EQ(device.open(core, pair.rig->address(), 0), NDA_OK);
		status = device.put_nbi(pe, at, at, 8);
	});
	bool came_back = false;
	sim.add_model([&] {
		if (came_back || sim.now_ns() < 50000)
			return;
		came_back = true;
		const nda_queue &q = pair.rig->queue(pe);
		nda_queue_shared *s =
			reinterpret_cast<nda_queue_shared *>(&pair.rig->queue(pe).state);
		EXPECT_EQ(q.state.error.status, uint32_t{NDA_OK});
		__atomic_store_n(&s->turn, 1, __ATOMIC_RELEASE);
	});
	EXPECT_TRUE(sim.run());
	EXPECT_EQ(status, NDA_OK);
	EXPECT_EQ(pair.rig->queue(pe).state.error.status, uint32_t{NDA_OK});
}

// What a core gets that posts so many puts and then waits, with no NIC.
std::vector<enum nda_status> statuses_of(Pair &pair, uint32_t puts)
{
	Sim sim(5);
	std::vector<enum nda_status> status;
	sim.add_core([&](SimCore core) {
		aiv::SharedDevice<SimCore> device;
		const uint64_t at = pair.own() + 0x10000;
		ASSERT_EQ(device.open(core, pair.rig->address(), 0), NDA_OK);
		for (uint32_t i = 0; i < puts; i++)
			status.push_back(device.put_nbi(pe, at, at, 8));
		status.push_back(device.quiet(pe));
	});
	EXPECT_TRUE(sim.run());
	return status;
}

using Statuses = std::vector<enum nda_status>;

TEST(SharedQueueErrors, ANicThatStopsEndsTheWaitAtItsDeadline)
{
	Pair pair(4, 1, 0);
	// Of four slots one stays free.
	EXPECT_EQ(statuses_of(pair, 4),
		(Statuses{NDA_OK, NDA_OK, NDA_OK, NDA_TIMEOUT, NDA_TIMEOUT}));
}

TEST(SharedQueueErrors, APlaceThatNobodyFillsEndsTheQueueAtTheDeadline)
{
	Pair pair(16, 1, 0);
	leave_a_place(&pair, 0);
	EXPECT_EQ(
		statuses_of(pair, 2), (Statuses{NDA_LOCAL_QP, NDA_LOCAL_QP, NDA_LOCAL_QP}));
	EXPECT_EQ(pair.rig->queue(pe).state.error.status, uint32_t{NDA_LOCAL_QP});
}

TEST(SharedQueueErrors, ACoreThatWentWithTheLockHoldsNobodyForGood)
{
	Pair pair(16, 1, 0);
	leave_a_place(&pair, 1);
	EXPECT_EQ(statuses_of(pair, 1), (Statuses{NDA_LOCAL_QP, NDA_TIMEOUT}));
}

TEST(SharedQueueErrors, TheUsualDeviceAndTheSharedOneRefuseEachOthersQueues)
{
	Pair pair(16, 1, 0);
	const uint64_t at = Pair::base(pair.here) + 0x10000;
	aiv::Device<aiv::HostCore> usual;
	ASSERT_EQ(usual.open(aiv::HostCore(), pair.rig->address(), 0), NDA_OK);
	EXPECT_EQ(usual.put_nbi(pe, at, at, 8), NDA_INVALID);
	EXPECT_EQ(usual.quiet(pe), NDA_INVALID);
	EXPECT_EQ(usual.batch(pe).put_nbi(at, at, 8), NDA_INVALID);

	pair.rig->queue(pe).state =
		aiv::hns1825::derive_state(pair.rig->queue(pe), 0, 0, 0);
	aiv::SharedDevice<aiv::HostCore> shared;
	ASSERT_EQ(shared.open(aiv::HostCore(), pair.rig->address(), 0), NDA_OK);
	EXPECT_EQ(shared.put_nbi(pe, at, at, 8), NDA_INVALID);
	EXPECT_EQ(shared.quiet(pe), NDA_INVALID);
	EXPECT_EQ(shared.put_nbi(2, at, at, 8), NDA_INVALID);
}
