/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * instructions PATH: runs one path of data_plane_paths.h many times for instructions.sh,
 * which counts what callgrind sees inside it. The NIC is played between the calls and not
 * counted. Prints the number of operations.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <tests/bench/data_plane_paths.h>
#include <tests/mock/hns1825_rig.h>
#include <tests/mock/rxe_rig.h>
#include <tests/mock/xscale_rig.h>

namespace {

using namespace nda;

constexpr uint32_t pe = 1;
/* Between two drains; a window's end, once in 256 WQEs, is part of what is counted. */
constexpr uint32_t burst = 96;
constexpr uint32_t drained = 100;
constexpr uint32_t rounds = 512;

struct Bench {
	test::Rig rig;
	bench::Device device;
	uint64_t dst = 0;
	uint64_t src = 0;

	explicit Bench(uint32_t signal_every)
		: rig([signal_every] {
			  test::RigOptions options;
			  options.sq_depth = options.cq_depth = 1024;
			  options.signal_every = signal_every;
			  return options;
		  }())
	{}

	bool open()
	{
		dst = rig.table()->heap_base;
		src = dst + 4096;
		return device.open(aiv::HostCore(), rig.address(), 0) == NDA_OK;
	}

	/* The NIC does everything posted; true if it found nothing wrong and @n WQEs. */
	bool consume(uint32_t n)
	{
		return rig.nic_run(pe) == n && rig.fault() == test::format::wqe_fault::none;
	}
};

bool put8(Bench *b)
{
	for (uint32_t i = 0; i < burst; i++)
		if (bench::bench_put8(&b->device, pe, b->dst, b->src, 8) != NDA_OK)
			return false;
	return b->consume(burst) && b->device.quiet(pe) == NDA_OK;
}

bool put8_batch16(Bench *b)
{
	for (uint32_t i = 0; i < burst / bench::batch_size; i++)
		if (bench::bench_put8_batch16(&b->device, pe, b->dst, b->src, 8) != NDA_OK)
			return false;
	return b->consume(burst) && b->device.quiet(pe) == NDA_OK;
}

bool drain(Bench *b)
{
	for (uint32_t i = 0; i < drained; i++)
		if (b->device.put_nbi(pe, b->dst, b->src, 8) != NDA_OK)
			return false;
	return b->consume(drained) && bench::bench_drain(&b->device, pe) == NDA_OK;
}

struct RxeBench {
	test::RxeRig rig{[] {
		test::RxeOptions options;
		options.sq_slots = options.cq_slots = 1024;
		return options;
	}()};
	bench::RxeDevice device;
};

/* All of the rounds. */
bool put8_rxe()
{
	RxeBench b;
	uint64_t dst = b.rig.own_base();

	if (b.device.open(aiv::HostCore(), b.rig.address(), 0) != NDA_OK)
		return false;
	for (uint32_t i = 0; i < rounds; i++) {
		for (uint32_t j = 0; j < burst; j++)
			if (bench::bench_put8_rxe(&b.device, pe, dst, dst + 4096, 8) !=
				NDA_OK)
				return false;
		if (b.rig.run(pe) != burst || b.device.quiet(pe) != NDA_OK)
			return false;
	}
	return b.rig.fault.empty();
}

struct XscaleBench {
	test::XscaleRig rig;
	bench::XscaleDevice device;
	uint64_t dst = rig.own_base();
	uint64_t src = dst + 4096;

	explicit XscaleBench(uint32_t signal_every)
		: rig([signal_every] {
			  test::XscaleOptions options;
			  options.sq_depth = options.cq_depth = 1024;
			  options.signal_every = signal_every;
			  return options;
		  }())
	{}

	bool consume(uint32_t n) { return rig.run(pe) == n && rig.fault.empty(); }
};

bool put8_xscale(XscaleBench *b)
{
	for (uint32_t i = 0; i < burst; i++)
		if (bench::bench_put8_xscale(&b->device, pe, b->dst, b->src, 8) != NDA_OK)
			return false;
	return b->consume(burst) && b->device.quiet(pe) == NDA_OK;
}

bool put8_batch16_xscale(XscaleBench *b)
{
	for (uint32_t i = 0; i < burst / bench::batch_size; i++)
		if (bench::bench_put8_batch16_xscale(&b->device, pe, b->dst, b->src, 8) !=
			NDA_OK)
			return false;
	return b->consume(burst) && b->device.quiet(pe) == NDA_OK;
}

bool drain_xscale(XscaleBench *b)
{
	for (uint32_t i = 0; i < drained; i++)
		if (b->device.put_nbi(pe, b->dst, b->src, 8) != NDA_OK)
			return false;
	return b->consume(drained) && bench::bench_drain_xscale(&b->device, pe) == NDA_OK;
}

/* All of the rounds of @round, with a completion every so many WQEs; how many operations
 * these are, 0: it failed. */
uint32_t run_xscale(bool (*round)(XscaleBench *), uint32_t signal_every)
{
	XscaleBench b(signal_every);

	if (b.device.open(aiv::HostCore(), b.rig.address(), 0) != NDA_OK)
		return 0;
	for (uint32_t i = 0; i < rounds; i++)
		if (!round(&b))
			return 0;
	return rounds * (round == drain_xscale ? drained : burst);
}

/* Those of a path of XSCALE; 0: it failed, or is none. */
uint32_t xscale_operations(const char *path)
{
	if (strcmp(path, "put8_xscale") == 0)
		return run_xscale(put8_xscale, 1);
	if (strcmp(path, "put8_every16_xscale") == 0)
		return run_xscale(put8_xscale, bench::batch_size);
	/* A doorbell and a completion for each batch. */
	if (strcmp(path, "put8_batch16_xscale") == 0)
		return run_xscale(put8_batch16_xscale, bench::batch_size);
	return strcmp(path, "drain_xscale") == 0 ? run_xscale(drain_xscale, 1) : 0;
}

} // namespace

int main(int argc, char **argv)
{
	const char *path = argc == 2 ? argv[1] : "";
	bool every16 = strcmp(path, "put8_every16") == 0;
	bool (*round)(Bench *) = every16 || strcmp(path, "put8") == 0 ? put8
		: strcmp(path, "put8_batch16") == 0                   ? put8_batch16
		: strcmp(path, "drain") == 0                          ? drain
								      : nullptr;
	Bench b(every16 ? 16 : 1);

	if (strcmp(path, "put8_rxe") == 0) {
		if (!put8_rxe())
			return 1;
		printf("%u\n", rounds * burst);
		return 0;
	}
	if (uint32_t operations = xscale_operations(path)) {
		printf("%u\n", operations);
		return 0;
	}
	if (!round) {
		fprintf(stderr, "usage: instructions PATH, of data_plane_paths.h\n");
		return 2;
	}
	if (!b.open()) {
		fprintf(stderr, "instructions: the table does not open\n");
		return 1;
	}
	for (uint32_t i = 0; i < rounds; i++)
		if (!round(&b)) {
			fprintf(stderr, "instructions: %s failed in round %u\n", path, i);
			return 1;
		}
	printf("%u\n", rounds * (round == drain ? drained : burst));
	return 0;
}
