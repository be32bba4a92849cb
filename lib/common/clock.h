// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_COMMON_CLOCK_H
#define NDA_COMMON_CLOCK_H

#include <cstdint>
#include <time.h>

namespace nda {

constexpr uint64_t ns_per_ms = 1000 * 1000;

inline uint64_t now_ns()
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return static_cast<uint64_t>(t.tv_sec) * 1000 * ns_per_ms +
		static_cast<uint64_t>(t.tv_nsec);
}

inline void relax()
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

} // namespace nda

#endif
