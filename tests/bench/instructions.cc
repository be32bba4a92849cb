/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * instructions PATH ENGINE, the path being put8, put8_every16, put8_batch16,
 * put8_batch16_every16, drain, put8_shared or put8_shared_every16: runs one path of
 * data_plane_paths.h many times for instructions.sh, which counts what callgrind sees
 * inside it. every16: of 16 WQEs one asks for a completion. shared: two cores take turns on
 * one queue. The NIC is played between the calls and not counted. Prints the number of
 * operations.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <tests/bench/data_plane_paths.h>
#include <tests/mock/hns1825_rig.h>
#include <tests/mock/in_die_rig.h>
#include <tests/mock/rxe_rig.h>
#include <tests/mock/udma_rig.h>
#include <tests/mock/xscale_rig.h>

namespace {

using namespace nda;

constexpr uint32_t pe = 1;
/* Between two drains; a window's end is part of what is counted. */
constexpr uint32_t burst = 96;
constexpr uint32_t drained = 100;
constexpr uint32_t rounds = 512;
constexpr uint32_t depth = 1024;

/* What of an engine is needed here: its paths, and its queues with a NIC behind them. */
struct Hns1825 {
	typedef bench::DeviceOf<aiv::hns1825::Engine> Device;
	typedef bench::SharedOf<aiv::hns1825::Engine> Shared;
	static constexpr auto put8 = bench::bench_put8_hns1825;
	static constexpr auto batch16 = bench::bench_put8_batch16_hns1825;
	static constexpr auto drain = bench::bench_drain_hns1825;
	static constexpr auto put8_shared = bench::bench_put8_shared_hns1825;

	explicit Hns1825(uint32_t every)
		: rig([every] {
			  test::RigOptions options;
			  options.sq_depth = options.cq_depth = depth;
			  options.signal_every = every;
			  return options;
		  }())
	{}
	uint32_t run() { return rig.nic_run(pe); }
	bool good() const { return rig.fault() == hw::hns1825::wqe_fault::none; }

	test::Rig rig;
};

struct InDie {
	typedef bench::DeviceOf<aiv::in_die::Engine> Device;
	typedef bench::SharedOf<aiv::in_die::Engine> Shared;
	static constexpr auto put8 = bench::bench_put8_in_die;
	static constexpr auto batch16 = bench::bench_put8_batch16_in_die;
	static constexpr auto drain = bench::bench_drain_in_die;
	static constexpr auto put8_shared = bench::bench_put8_shared_in_die;

	explicit InDie(uint32_t every)
		: rig([every] {
			  test::InDieOptions options;
			  options.sq_depth = options.cq_depth = depth;
			  options.signal_every = every;
			  return options;
		  }())
	{}
	uint32_t run() { return rig.nic_run(pe); }
	bool good() const { return rig.fault.empty(); }

	test::InDieRig rig;
};

struct Rxe {
	typedef bench::DeviceOf<aiv::rxe::Engine> Device;
	typedef bench::SharedOf<aiv::rxe::Engine> Shared;
	static constexpr auto put8 = bench::bench_put8_rxe;
	static constexpr auto batch16 = bench::bench_put8_batch16_rxe;
	static constexpr auto drain = bench::bench_drain_rxe;
	static constexpr auto put8_shared = bench::bench_put8_shared_rxe;

	explicit Rxe(uint32_t every)
		: rig([every] {
			  test::RxeOptions options;
			  options.sq_slots = options.cq_slots = depth;
			  options.signal_every = every;
			  return options;
		  }())
	{}
	uint32_t run() { return rig.run(pe); }
	bool good() const { return rig.fault.empty(); }

	test::RxeRig rig;
};

struct Udma {
	typedef bench::DeviceOf<aiv::udma::Engine> Device;
	typedef bench::SharedOf<aiv::udma::Engine> Shared;
	static constexpr auto put8 = bench::bench_put8_udma;
	static constexpr auto batch16 = bench::bench_put8_batch16_udma;
	static constexpr auto drain = bench::bench_drain_udma;
	static constexpr auto put8_shared = bench::bench_put8_shared_udma;

	explicit Udma(uint32_t every)
		: rig([every] {
			  test::UdmaOptions options;
			  options.sq_depth = options.cq_depth = depth;
			  options.signal_every = every;
			  return options;
		  }())
	{}
	uint32_t run() { return rig.run(pe); }
	bool good() const { return rig.fault.empty(); }

	test::UdmaRig rig;
};

struct Xscale {
	typedef bench::DeviceOf<aiv::xscale::Engine> Device;
	typedef bench::SharedOf<aiv::xscale::Engine> Shared;
	static constexpr auto put8 = bench::bench_put8_xscale;
	static constexpr auto batch16 = bench::bench_put8_batch16_xscale;
	static constexpr auto drain = bench::bench_drain_xscale;
	static constexpr auto put8_shared = bench::bench_put8_shared_xscale;

	explicit Xscale(uint32_t every)
		: rig([every] {
			  test::XscaleOptions options;
			  options.sq_depth = options.cq_depth = depth;
			  options.signal_every = every;
			  return options;
		  }())
	{}
	uint32_t run() { return rig.run(pe); }
	bool good() const { return rig.fault.empty(); }

	test::XscaleRig rig;
};

enum class Path {
	put8,
	batch16,
	drain,
	shared
};

template <class Side>
bool run_round(Side &side, typename Side::Device &device, Path path)
{
	uint64_t dst = side.rig.table()->heap_base, src = dst + 4096;
	uint32_t n = path == Path::drain ? drained : burst;

	for (uint32_t i = 0; i < n;) {
		enum nda_status status;

		if (path == Path::batch16) {
			status = Side::batch16(&device, pe, dst, src, 8);
			i += bench::batch_size;
		} else {
			status = path == Path::put8 ? Side::put8(&device, pe, dst, src, 8)
						    : device.put_nbi(pe, dst, src, 8);
			i++;
		}
		if (status != NDA_OK)
			return false;
	}
	if (side.run() != n || !side.good())
		return false;
	return (path == Path::drain ? Side::drain(&device, pe) : device.quiet(pe)) ==
		NDA_OK;
}

/* Cores share the queue from now on. */
template <class Side>
void share(Side &side)
{
	nda_queue_shared shared = {};

	shared.flags = NDA_QUEUE_SHARED;
	memcpy(&side.rig.queue(pe).state, &shared, sizeof(shared));
}

template <class Side>
bool run_shared(uint32_t every)
{
	Side side(every);
	typename Side::Shared cores[2];

	share(side);
	for (auto &core : cores)
		if (core.open(aiv::HostCore(), side.rig.address(), 0) != NDA_OK)
			return false;
	uint64_t dst = side.rig.table()->heap_base, src = dst + 4096;
	for (uint32_t round = 0; round < rounds; round++) {
		for (uint32_t i = 0; i < burst; i++)
			if (Side::put8_shared(&cores[i % 2], pe, dst, src, 8) != NDA_OK)
				return false;
		if (side.run() != burst || !side.good() || cores[0].quiet(pe) != NDA_OK)
			return false;
	}
	return true;
}

template <class Side>
bool run_all(Path path, uint32_t every)
{
	if (path == Path::shared)
		return run_shared<Side>(every);

	Side side(every);
	typename Side::Device device;

	if (device.open(aiv::HostCore(), side.rig.address(), 0) != NDA_OK) {
		fprintf(stderr, "instructions: the table does not open\n");
		return false;
	}
	for (uint32_t i = 0; i < rounds; i++)
		if (!run_round(side, device, path)) {
			fprintf(stderr, "instructions: failed in round %u\n", i);
			return false;
		}
	return true;
}

const struct {
	const char *name;
	Path path;
	uint32_t every;
} paths[] = {
	{"put8", Path::put8, 1},
	{"put8_every16", Path::put8, 16},
	{"put8_batch16", Path::batch16, 1},
	{"put8_batch16_every16", Path::batch16, 16},
	{"drain", Path::drain, 1},
	{"put8_shared", Path::shared, 1},
	{"put8_shared_every16", Path::shared, 16},
};

const struct {
	const char *name;
	bool (*run)(Path path, uint32_t every);
} engines[] = {
	{"hns1825", run_all<Hns1825>},
	{"in_die", run_all<InDie>},
	{"rxe", run_all<Rxe>},
	{"udma", run_all<Udma>},
	{"xscale", run_all<Xscale>},
};

} // namespace

int main(int argc, char **argv)
{
	for (const auto &path : paths)
		for (const auto &engine : engines) {
			if (argc != 3 || strcmp(argv[1], path.name) != 0 ||
				strcmp(argv[2], engine.name) != 0)
				continue;
			if (!engine.run(path.path, path.every))
				return 1;
			printf("%u\n",
				rounds * (path.path == Path::drain ? drained : burst));
			return 0;
		}
	fprintf(stderr, "usage: instructions PATH ENGINE\n");
	return 2;
}
