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
#include <nda/aiv/rxe_queue.h>
#include <nda/aiv/xscale_queue.h>

namespace nda::bench {

using Device = aiv::Device<aiv::HostCore>;
using RxeDevice = aiv::Device<aiv::HostCore, aiv::rxe::Engine>;
using XscaleDevice = aiv::Device<aiv::HostCore, aiv::xscale::Engine>;

constexpr uint32_t batch_size = 16;

/* One put of @n bytes with its doorbell. */
extern "C" enum nda_status bench_put8(
	Device *device, uint32_t pe, uint64_t dst, uint64_t src, uint64_t n);

/* The same on Soft-RoCE's queue. */
extern "C" enum nda_status bench_put8_rxe(
	RxeDevice *device, uint32_t pe, uint64_t dst, uint64_t src, uint64_t n);

/* batch_size puts of @n bytes, one behind the other, with one doorbell. */
extern "C" enum nda_status bench_put8_batch16(
	Device *device, uint32_t pe, uint64_t dst, uint64_t src, uint64_t n);

/* A quiet that finds everything done. */
extern "C" enum nda_status bench_drain(Device *device, uint32_t pe);

/* The same three on the XSCALE queue. */
extern "C" enum nda_status bench_put8_xscale(
	XscaleDevice *device, uint32_t pe, uint64_t dst, uint64_t src, uint64_t n);
extern "C" enum nda_status bench_put8_batch16_xscale(
	XscaleDevice *device, uint32_t pe, uint64_t dst, uint64_t src, uint64_t n);
extern "C" enum nda_status bench_drain_xscale(XscaleDevice *device, uint32_t pe);

} // namespace nda::bench

#endif
