/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A stand-in for the header of that name which comes with the Ascend compiler, as far as
 * kernels that use nda/aiv/ascend_core.h need it: for code that clang compiles and nobody
 * runs. The intrinsics are nothing but opaque instructions. Not made from any header of
 * that compiler.
 */
#ifndef TESTS_MOCK_ASCENDC_KERNEL_OPERATOR_H
#define TESTS_MOCK_ASCENDC_KERNEL_OPERATOR_H

#include <stdint.h>

#define __gm__ __attribute__((address_space(1)))
#define __ubuf__ __attribute__((address_space(2)))
#define __aicore__
#define __global__
#define __vector__

#define NDA_ASCEND_DCCI(p) __asm__ __volatile__("" ::"r"(p))
#define NDA_ASCEND_DSB() __asm__ __volatile__("")
#define NDA_ASCEND_UB_TO_GM(gm, ub, bytes)                                                 \
	__asm__ __volatile__("" ::"r"(gm), "r"(ub), "r"(bytes))
#define NDA_ASCEND_GM_TO_UB(ub, gm, bytes) NDA_ASCEND_UB_TO_GM(gm, ub, bytes)

enum pipe_t {
	PIPE_S,
	PIPE_MTE2,
	PIPE_MTE3,
	PIPE_ALL
};
enum event_t {
	EVENT_ID0,
	EVENT_ID3 = 3
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

namespace AscendC {

static inline int64_t GetSystemCycle()
{
	int64_t cycles;

	__asm__ __volatile__("" : "=r"(cycles));
	return cycles;
}
static inline int64_t GetBlockIdx()
{
	return GetSystemCycle();
}
static inline void InitSocState()
{
	__asm__ __volatile__("");
}
template <pipe_t pipe>
static inline void PipeBarrier()
{
	__asm__ __volatile__("");
}

} // namespace AscendC

#endif
