/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Compiled by `make lint-freestanding` with clang, never run: AscendCore as a device
 * compiler would see it, with intrinsics that are nothing but opaque instructions.
 */
#define NDA_ASCEND_ARCH 3510
#include "tests/mock/ascendc/kernel_operator.h"

#include <nda/aiv/ascend_core.h>
#include <nda/aiv/device.h>
#include <nda/aiv/in_die_queue.h>
#include <nda/aiv/udma_queue.h>
#include <nda/aiv/xscale_queue.h>

using namespace nda::aiv;

template <class Core, class Engine>
static int kernel(uint64_t ub, uint64_t table, uint32_t pe, uint64_t a, uint64_t n)
{
	Device<Core, Engine> device;
	int status = device.open(
		Core(reinterpret_cast<__ubuf__ uint8_t *>(ub), EVENT_ID0), table, 0);

	status |= device.put_nbi(pe, a, a, n) | device.get(pe, a, a, n);
	status |= device.put_signal_nbi(pe, a, a, n, a, n) | device.barrier_all();
	auto batch = device.batch(pe);
	status |= batch.put_nbi(a, a, n) | batch.submit();
	return status | device.fence(pe) | device.quiet();
}

extern "C" int nda_ascend(uint64_t ub, uint64_t table, uint32_t pe, uint64_t a, uint64_t n)
{
	int status = kernel<AscendCore<true>, hns1825::Engine>(ub, table, pe, a, n);

	status |= kernel<AscendCore<false>, hns1825::Engine>(ub, table, pe, a, n);
	status |= kernel<AscendCore<true>, in_die::Engine>(ub, table, pe, a, n);
	status |= kernel<AscendCore<true>, xscale::Engine>(ub, table, pe, a, n);
	status |= kernel<AscendCore<true>, udma::Engine>(ub, table, pe, a, n);
	return status;
}
