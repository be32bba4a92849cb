/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The scheduler itself, then the data plane end to end on it. */
#include <stdint.h>
#include <string.h>

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <nda/aiv/device.h>
#include <tests/mock/hns1825_rig.h>
#include <tests/sim/sim.h>

namespace {

using namespace nda;
using namespace nda::test;
using Device = aiv::Device<SimCore>;

uint64_t trace_of(uint64_t seed)
{
	Sim sim(seed);
	int turns = 0;

	for (int i = 0; i < 3; i++)
		sim.add_core([](SimCore core) {
			for (int round = 0; round < 50; round++)
				core.relax();
		});
	sim.add_model([&] { turns++; });
	EXPECT_TRUE(sim.run());
	EXPECT_GT(turns, 0);
	return sim.trace();
}

TEST(SimCore, OneSeedIsOneExecution)
{
	EXPECT_EQ(trace_of(1), trace_of(1));
	EXPECT_NE(trace_of(1), trace_of(2));
}

TEST(SimCore, TheClockIsVirtualAndEndsAWaitWithADeadline)
{
	Sim sim(3);
	uint64_t waited = 0;

	sim.add_core([&](SimCore core) {
		uint64_t start = core.cycles();

		while (core.cycles() - start < 100 * core.cycles_per_us())
			core.relax();
		waited = core.cycles() - start;
	});
	EXPECT_TRUE(sim.run());
	EXPECT_GE(waited, 100000u);
	EXPECT_LT(waited, 101000u);
}

TEST(SimCore, TheLimitEndsARunAndSaysSo)
{
	Sim sim(4, 10);

	sim.add_core([&](SimCore core) {
		uint64_t start = core.cycles();

		while (core.cycles() - start < 5000000 * core.cycles_per_us())
			core.relax();
	});
	EXPECT_FALSE(sim.run());
}

/* PEs of one process, each with a heap, a table, and a NIC that moves bytes. */
struct Job {
	static constexpr uint64_t heap_bytes = 1 << 16;
	uint32_t n_pes;
	std::vector<std::vector<uint8_t>> heaps;
	std::vector<std::unique_ptr<Rig>> rigs;

	Job(uint32_t n, uint32_t signal_every, uint32_t depth) : n_pes(n)
	{
		for (uint32_t pe = 0; pe < n; pe++)
			heaps.emplace_back(heap_bytes, static_cast<uint8_t>(0));
		for (uint32_t pe = 0; pe < n; pe++) {
			RigOptions options;

			options.n_pes = n;
			options.my_pe = pe;
			options.sq_depth = options.cq_depth = depth;
			options.signal_every = signal_every;
			options.heap_base = base(pe);
			options.heap_bytes = heap_bytes;
			rigs.push_back(std::make_unique<Rig>(options));
			rigs.back()->move_bytes = true;
			for (uint32_t to = 0; to < n; to++) {
				nda_queue &q = rigs.back()->queue(to);

				q.remote_delta = base(to) - base(pe);
				q.scratch_local = base(pe) + heap_bytes - 256;
				q.scratch_remote = base(to) + heap_bytes - 264;
			}
		}
	}

	uint64_t base(uint32_t pe) { return reinterpret_cast<uint64_t>(heaps[pe].data()); }

	void add_models(Sim *sim)
	{
		for (uint32_t pe = 0; pe < n_pes; pe++)
			for (uint32_t to = 0; to < n_pes; to++)
				if (to != pe)
					sim->add_model([this, pe, to] {
						rigs[pe]->nic_run(to, 1);
					});
	}
};

/* Each PE writes its pattern to every other one, reads it back and compares. */
void put_and_get_back(Job *job, uint32_t me, SimCore core)
{
	Device device;
	const uint64_t n = 3000, mine = job->base(me) + 0x8000,
		       back = job->base(me) + 0xa000;

	ASSERT_EQ(device.open(core, job->rigs[me]->address(), 0), NDA_OK);
	for (uint64_t i = 0; i < n; i++)
		core.store<uint8_t>(mine + i, static_cast<uint8_t>(i * 7 + me));
	for (uint32_t to = 0; to < job->n_pes; to++) {
		uint64_t dst = job->base(me) + me * 0x1000;

		if (to == me)
			continue;
		for (uint64_t at = 0; at < n; at += 100)
			ASSERT_EQ(device.put_nbi(to, dst + at, mine + at, 100), NDA_OK);
		ASSERT_EQ(device.fence(to), NDA_OK);
		ASSERT_EQ(device.get(to, back, dst, n), NDA_OK);
		for (uint64_t i = 0; i < n; i++)
			ASSERT_EQ(core.load<uint8_t>(back + i),
				static_cast<uint8_t>(i * 7 + me));
	}
	ASSERT_EQ(device.quiet(), NDA_OK);
}

TEST(SimHns1825, PesMoveDataThroughTheirQueuesInEveryOrder)
{
	for (uint64_t seed = 1; seed <= 12; seed++) {
		Sim sim(seed);
		Job job(3, seed % 2 ? 1 : 4, seed % 3 ? 16 : 64);

		for (uint32_t me = 0; me < job.n_pes; me++)
			sim.add_core([&job, me](SimCore core) {
				put_and_get_back(&job, me, core);
			});
		job.add_models(&sim);
		ASSERT_TRUE(sim.run()) << "seed " << seed;
		for (auto &rig : job.rigs)
			ASSERT_EQ(rig->fault(), format::wqe_fault::none);
	}
}

TEST(SimHns1825, ANicThatStopsEndsTheWaitAtItsDeadline)
{
	Sim sim(7);
	Job job(2, 1, 16);
	enum nda_status status = NDA_OK;

	sim.add_core([&](SimCore core) {
		Device device;

		ASSERT_EQ(device.open(core, job.rigs[0]->address(), 0), NDA_OK);
		ASSERT_EQ(device.put_nbi(1, job.base(0), job.base(0), 8), NDA_OK);
		status = device.quiet(1);
	});
	EXPECT_TRUE(sim.run());
	EXPECT_EQ(status, NDA_TIMEOUT);
	EXPECT_GE(sim.now_ns(), 1000000u);
}

} // namespace
