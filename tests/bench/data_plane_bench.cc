/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Times of the data plane on HostCore. The NIC is played between timed parts: what is
 * measured is the core's work alone, without contention for the lines that a NIC reads.
 */
#include <stdint.h>

#include <benchmark/benchmark.h>

#include <tests/bench/data_plane_paths.h>
#include <tests/mock/hns1825_rig.h>

namespace {

using namespace nda;

constexpr uint32_t pe = 1;
constexpr uint32_t burst = 960; /* below the ring's depth, a multiple of the batch */

class DataPlane : public benchmark::Fixture {
public:
	void SetUp(benchmark::State &state) override
	{
		test::RigOptions options;

		options.sq_depth = options.cq_depth = 1024;
		rig_ = std::make_unique<test::Rig>(options);
		dst_ = options.heap_base;
		src_ = options.heap_base + 4096;
		if (device_.open(aiv::HostCore(), rig_->address(), 0) != NDA_OK)
			state.SkipWithError("the table does not open");
	}

protected:
	/* Everything posted is done and consumed; outside the timing. */
	void drain(benchmark::State &state, bool consume)
	{
		state.PauseTiming();
		if (rig_->nic_run(pe) != burst)
			state.SkipWithError("the NIC did not find what was posted");
		if (consume && device_.quiet(pe) != NDA_OK)
			state.SkipWithError("quiet failed");
		state.ResumeTiming();
	}

	std::unique_ptr<test::Rig> rig_;
	bench::DeviceOf<aiv::hns1825::Engine> device_;
	uint64_t dst_ = 0;
	uint64_t src_ = 0;
};

BENCHMARK_F(DataPlane, put8)(benchmark::State &state)
{
	for (auto _ : state) {
		for (uint32_t i = 0; i < burst; i++)
			bench::bench_put8_hns1825(&device_, pe, dst_, src_, 8);
		drain(state, true);
	}
	state.SetItemsProcessed(state.iterations() * burst);
}

BENCHMARK_F(DataPlane, put8_batch16)(benchmark::State &state)
{
	for (auto _ : state) {
		for (uint32_t i = 0; i < burst / bench::batch_size; i++)
			bench::bench_put8_batch16_hns1825(&device_, pe, dst_, src_, 8);
		drain(state, true);
	}
	state.SetItemsProcessed(state.iterations() * burst);
}

BENCHMARK_F(DataPlane, drain)(benchmark::State &state)
{
	for (auto _ : state) {
		state.PauseTiming();
		for (uint32_t i = 0; i < burst; i++)
			device_.put_nbi(pe, dst_, src_, 8);
		state.ResumeTiming();
		drain(state, false);
		bench::bench_drain_hns1825(&device_, pe);
	}
	state.SetItemsProcessed(state.iterations() * burst);
}

} // namespace

BENCHMARK_MAIN();
