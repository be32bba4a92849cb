/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Times of the data plane on HostCore. The NIC is played between timed parts: what is
 * measured is the core's work alone, without contention for the lines that a NIC reads.
 * The last line is a ratio of this run: what two cores with a queue each post while one
 * posts 1, each by its CPU's time, which other work on the machine does not change.
 */
#include <stdint.h>
#include <stdio.h>

#include <map>
#include <memory>
#include <string>

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

/* Each thread is a core with a queue of its own in one table. */
std::unique_ptr<test::Rig> owners_rig;

void make_owners(const benchmark::State &)
{
	test::RigOptions options;

	options.sq_depth = options.cq_depth = 1024;
	options.n_cores = 2;
	owners_rig = std::make_unique<test::Rig>(options);
}

void owners(benchmark::State &state)
{
	const uint32_t core = static_cast<uint32_t>(state.thread_index());
	bench::DeviceOf<aiv::hns1825::Engine> device;

	if (device.open(aiv::HostCore(), owners_rig->address(), core) != NDA_OK)
		state.SkipWithError("the table does not open");
	const uint64_t dst = device.heap_base(), src = dst + 4096;
	for (auto _ : state) {
		for (uint32_t i = 0; i < burst; i++)
			bench::bench_put8_hns1825(&device, pe, dst, src, 8);
		state.PauseTiming();
		if (owners_rig->nic_run(pe, UINT32_MAX, core) != burst ||
			device.quiet(pe) != NDA_OK)
			state.SkipWithError("not all that was posted is done");
		state.ResumeTiming();
	}
	state.SetItemsProcessed(state.iterations() * burst);
}
BENCHMARK(owners)->Setup(make_owners)->Threads(1)->Threads(2);

class Reporter : public benchmark::ConsoleReporter {
public:
	void ReportRuns(const std::vector<Run> &runs) override
	{
		ConsoleReporter::ReportRuns(runs);
		for (const Run &run : runs)
			costs_[run.benchmark_name()] = run.GetAdjustedCPUTime();
	}
	void Finalize() override
	{
		printf("two owners to one: %.2f\n",
			2 * costs_["owners/threads:1"] / costs_["owners/threads:2"]);
	}

private:
	std::map<std::string, double> costs_; /* CPU time of an iteration */
};

} // namespace

int main(int argc, char **argv)
{
	benchmark::Initialize(&argc, argv);
	if (benchmark::ReportUnrecognizedArguments(argc, argv))
		return 1;
	Reporter reporter;
	benchmark::RunSpecifiedBenchmarks(&reporter);
	return 0;
}
