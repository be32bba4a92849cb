/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Compiled by `make lint-freestanding` with clang, never run: AscendCore as a device
 * compiler would see it, with intrinsics that are nothing but opaque instructions.
 */
#include <stdint.h>

#define __gm__ __attribute__((address_space(1)))
#define __ubuf__ __attribute__((address_space(2)))
#define NDA_ASCEND_ARCH 3510
#define NDA_ASCEND_DCCI(p) __asm__ __volatile__("" ::"r"(p))
#define NDA_ASCEND_DSB() __asm__ __volatile__("")
#define NDA_ASCEND_UB_TO_GM(gm, ub, bytes)                                                 \
	__asm__ __volatile__("" ::"r"(gm), "r"(ub), "r"(bytes))
#define NDA_ASCEND_GM_TO_UB(ub, gm, bytes) NDA_ASCEND_UB_TO_GM(gm, ub, bytes)
#define NDA_ASCEND_CYCLES() (*reinterpret_cast<volatile uint64_t *>(0x100000))

enum pipe_t {
	PIPE_S,
	PIPE_MTE2,
	PIPE_MTE3
};
enum event_t {
	EVENT_ID0
};

static inline void set_flag(pipe_t, pipe_t, event_t)
{
	__asm__ __volatile__("");
}
static inline void wait_flag(pipe_t, pipe_t, event_t)
{
	__asm__ __volatile__("");
}
template <class T>
static inline void st_dev(T value, __gm__ T *p, int16_t)
{
	*reinterpret_cast<__gm__ volatile T *>(p) = value;
}

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
