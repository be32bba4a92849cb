/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* HostCore and SoftCore, and the data plane on them against a NIC in another thread. */
#include <stdint.h>
#include <string.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <nda/aiv/device.h>
#include <nda/aiv/host_core.h>
#include <nda/aiv/soft_core.h>
#include <tests/mock/hns1825_rig.h>

namespace {

using namespace nda;
using aiv::HostCore;
using aiv::SoftCore;

constexpr uint32_t pe = 1;

/* What SoftCore is given, counting the calls. */
struct Nic {
	struct nda_core core = {};
	uint32_t asleep = 0;
	int kicks = 0;
	int steps = 0;
	int work = 0; /* what step returns */

	Nic()
	{
		core.count = 1;
		core.nic_asleep = &asleep;
		core.nic_kick = [](void *nic) { static_cast<Nic *>(nic)->kicks++; };
		core.nic_step = [](void *nic) {
			static_cast<Nic *>(nic)->steps++;
			return static_cast<Nic *>(nic)->work;
		};
		core.nic = this;
	}
};

uint64_t address(void *p)
{
	return reinterpret_cast<uint64_t>(p);
}

TEST(HostCore, AccessesAreOfTheSizeOfTheirType)
{
	HostCore core;
	uint64_t words[2] = {0x1122334455667788, 0};

	EXPECT_EQ(core.load<uint8_t>(address(words)), 0x88);
	EXPECT_EQ(core.load<uint16_t>(address(words) + 6), 0x1122);
	core.store<uint8_t>(address(words) + 1, 0);
	EXPECT_EQ(words[0], 0x1122334455660088u);
	core.store_release<uint32_t>(address(words) + 8, 7);
	EXPECT_EQ(core.load_acquire<uint64_t>(address(words) + 8), 7u);
	core.st_dev<uint64_t>(address(words), 9);
	EXPECT_EQ(words[0], 9u);
}

TEST(HostCore, CopiesOverlappingRanges)
{
	HostCore core;
	char text[] = "abcdef";

	core.copy(address(text) + 1, address(text), 4);
	EXPECT_STREQ(text, "aabcdf");
}

TEST(HostCore, TheClockRunsInNanoseconds)
{
	HostCore core;
	uint64_t before = core.cycles();

	std::this_thread::sleep_for(std::chrono::milliseconds(2));
	EXPECT_GE(core.cycles() - before, 2000 * core.cycles_per_us());
}

TEST(SoftCore, EveryAddressIsShifted)
{
	Nic nic;
	uint64_t words[4] = {1, 2, 3, 4};

	nic.core.address_offset = address(words) - 0x5000;
	SoftCore core(&nic.core);
	EXPECT_EQ(core.load<uint64_t>(0x5008), 2u);
	EXPECT_EQ(core.load_acquire<uint64_t>(0x5010), 3u);
	core.store<uint64_t>(0x5000, 10);
	core.store_release<uint64_t>(0x5008, 11);
	core.st_dev<uint64_t>(0x5010, 12);
	core.copy(0x5018, 0x5000, 8);
	EXPECT_EQ(words[0], 10u);
	EXPECT_EQ(words[1], 11u);
	EXPECT_EQ(words[2], 12u);
	EXPECT_EQ(words[3], 10u);
}

TEST(SoftCore, ADeviceStoreWakesOnlyASleepingNic)
{
	Nic nic;
	uint64_t doorbell = 0;
	SoftCore core(&nic.core);

	core.st_dev<uint64_t>(address(&doorbell), 1);
	EXPECT_EQ(nic.kicks, 0);
	nic.asleep = 1;
	core.st_dev<uint64_t>(address(&doorbell), 2);
	EXPECT_EQ(nic.kicks, 1);
	EXPECT_EQ(doorbell, 2u);
}

TEST(SoftCore, AWaitRunsTheNicAndWorksWithoutIt)
{
	Nic nic;
	SoftCore core(&nic.core);

	core.relax();
	nic.work = 1;
	core.relax();
	EXPECT_EQ(nic.steps, 2);
	nic.core.nic_step = nullptr;
	SoftCore alone(&nic.core);
	for (int i = 0; i < 100; i++)
		alone.relax();
	EXPECT_EQ(nic.steps, 2);
}

TEST(SoftCore, RunsTheDataPlaneWithItsTableShifted)
{
	Nic nic;
	test::Rig rig(test::RigOptions{});
	aiv::Device<SoftCore> device;
	const uint64_t shift = 0x100000000;
	nda_queue &q = rig.queue(pe);

	for (uint64_t *addr : {&q.sq_base, &q.cq_base, &q.sq_record, &q.cq_record,
		     &q.sq_doorbell, &q.state.next_slot})
		*addr -= shift;
	nic.core.address_offset = shift;
	ASSERT_EQ(device.open(SoftCore(&nic.core), rig.address() - shift, 0), NDA_OK);
	for (int i = 0; i < 100; i++) {
		ASSERT_EQ(device.put_nbi(pe, 0, 0, 8), NDA_OK);
		for (uint64_t *addr : {&q.sq_base, &q.cq_base, &q.sq_record})
			*addr += shift;
		ASSERT_EQ(rig.nic_run(pe), 1u);
		for (uint64_t *addr : {&q.sq_base, &q.cq_base, &q.sq_record})
			*addr -= shift;
		ASSERT_EQ(device.quiet(pe), NDA_OK);
	}
}

/* Two PEs in one process: each core in its thread, the NIC in another. */
struct Threads {
	test::Rig rig;
	std::vector<uint8_t> here;
	std::vector<uint8_t> there;
	std::atomic<bool> stop{false};
	std::thread nic;

	static test::RigOptions options(uint32_t signal_every)
	{
		test::RigOptions o;
		o.sq_depth = o.cq_depth = 32;
		o.signal_every = signal_every;
		o.timeout_us = 20000000;
		return o;
	}

	explicit Threads(uint32_t signal_every)
		: rig(options(signal_every)), here(65536), there(65536)
	{
		nda_queue &q = rig.queue(pe);

		rig.table()->heap_base = address(here.data());
		q.remote_delta = address(there.data()) - address(here.data());
		q.scratch_local = address(here.data()) + 65280;
		q.scratch_remote = address(there.data()) + 65528;
		rig.move_bytes = true;
		nic = std::thread([this] {
			while (!stop.load())
				if (rig.nic_run(pe) == 0)
					std::this_thread::yield();
		});
	}

	~Threads()
	{
		stop = true;
		nic.join();
	}

	/* Puts a pattern, gets it back, many times; the ring and its words are reused. */
	template <class Core>
	void exchange(const Core &core)
	{
		aiv::Device<Core> device;
		uint64_t base = address(here.data());

		ASSERT_EQ(device.open(core, rig.address(), 0), NDA_OK);
		for (uint32_t round = 0; round < 200; round++) {
			for (uint32_t i = 0; i < 8; i++) {
				memset(here.data() + i * 64, static_cast<int>(round + i),
					64);
				ASSERT_EQ(device.put_nbi(pe, base + 4096 + i * 64,
						  base + i * 64, 64),
					NDA_OK);
			}
			ASSERT_EQ(device.fence(pe), NDA_OK);
			ASSERT_EQ(device.get(pe, base + 8192, base + 4096, 512), NDA_OK);
			ASSERT_EQ(memcmp(here.data() + 8192, here.data(), 512), 0);
			auto batch = device.batch(pe);
			for (uint32_t i = 0; i < 20; i++)
				ASSERT_EQ(batch.put_nbi(base + i * 8, base + 16384, 8),
					NDA_OK);
			ASSERT_EQ(batch.submit(), NDA_OK);
		}
		ASSERT_EQ(device.quiet(), NDA_OK);
	}
};

TEST(AivThreads, HostCoreAndANicInAnotherThreadAgree)
{
	for (uint32_t every : {1u, 5u}) {
		Threads job(every);

		job.exchange(HostCore());
		EXPECT_EQ(job.rig.fault(), test::format::wqe_fault::none);
	}
}

TEST(AivThreads, SoftCoreAndANicInAnotherThreadAgree)
{
	Nic nic;
	Threads job(1);

	job.exchange(SoftCore(&nic.core));
	EXPECT_EQ(job.rig.fault(), test::format::wqe_fault::none);
}

} // namespace
