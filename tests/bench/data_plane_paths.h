/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The paths of the data plane that are measured, each an ordinary function that is never
 * inlined: what a kernel that calls them in a loop would run.
 */
#ifndef TESTS_BENCH_DATA_PLANE_PATHS_H
#define TESTS_BENCH_DATA_PLANE_PATHS_H

#include <stdint.h>

#include <nda/aiv/device.h>
#include <nda/aiv/host_core.h>
#include <nda/aiv/in_die_queue.h>
#include <nda/aiv/rxe_queue.h>
#include <nda/aiv/shared.h>
#include <nda/aiv/udma_queue.h>
#include <nda/aiv/xscale_queue.h>

namespace nda::bench {

template <class Engine>
using DeviceOf = aiv::Device<aiv::HostCore, Engine>;

template <class Engine>
using SharedOf = aiv::SharedDevice<aiv::HostCore, Engine>;

constexpr uint32_t batch_size = 16;

/*
 * The paths on one engine's queues:
 *
 *   bench_put8_NAME()          one put of @n bytes with its doorbell
 *   bench_put8_batch16_NAME()  batch_size of them, one behind the other, with one doorbell
 *   bench_drain_NAME()         a quiet that finds everything done
 *   bench_put8_shared_NAME()   one put on a queue that several cores share
 */
#define NDA_BENCH_PATHS(name, engine)                                                      \
	extern "C" enum nda_status bench_put8_##name(DeviceOf<engine> *device,             \
		uint32_t pe, uint64_t dst, uint64_t src, uint64_t n);                      \
	extern "C" enum nda_status bench_put8_batch16_##name(DeviceOf<engine> *device,     \
		uint32_t pe, uint64_t dst, uint64_t src, uint64_t n);                      \
	extern "C" enum nda_status bench_drain_##name(                                     \
		DeviceOf<engine> *device, uint32_t pe);                                    \
	extern "C" enum nda_status bench_put8_shared_##name(SharedOf<engine> *device,      \
		uint32_t pe, uint64_t dst, uint64_t src, uint64_t n)

NDA_BENCH_PATHS(hns1825, aiv::hns1825::Engine);
NDA_BENCH_PATHS(in_die, aiv::in_die::Engine);
NDA_BENCH_PATHS(rxe, aiv::rxe::Engine);
NDA_BENCH_PATHS(udma, aiv::udma::Engine);
NDA_BENCH_PATHS(xscale, aiv::xscale::Engine);

} // namespace nda::bench

#endif
