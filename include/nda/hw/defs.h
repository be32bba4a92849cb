/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What every function of nda/hw and nda/aiv carries, and what all formats are made of. The
 * headers compile for the host and, from the same source, for an Ascend vector core, whose
 * compiler needs an attribute on each function that may be called there. They are
 * freestanding: stdint.h and stddef.h, no static data, virtual functions, exceptions,
 * run-time types or recursion.
 */
#ifndef NDA_HW_DEFS_H
#define NDA_HW_DEFS_H

#include <stdint.h>

#if defined(__NPU_ARCH__)
/* The Ascend compiler: written out, as the spelling __aicore__ comes from a header of its
 * own. Never compiled here: the compiler is not at hand where nda is tested. */
#define NDA_DEV __attribute__((always_inline)) inline[aicore]
#define NDA_DEV_SLOW inline[aicore]
#else
/* Inlined whatever the compiler thinks of its size, but not where it does not optimize:
 * there each copy would only cost time to compile, most of all with sanitizers. */
#if defined(__OPTIMIZE__)
#define NDA_DEV __attribute__((always_inline)) inline
#else
#define NDA_DEV inline
#endif
/* Out of line, and an ordinary call to the caller: what a slow path does must not cost the
 * fast path a register. */
#if defined(__clang__)
#define NDA_DEV_SLOW __attribute__((noinline)) inline
#else
#define NDA_DEV_SLOW __attribute__((noinline, noipa)) inline
#endif
#endif

/* A condition for which nothing in the usual path is to be held ready. */
#define NDA_DEV_RARE(condition) __builtin_expect_with_probability(!!(condition), 0, 1.0)

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "nda: NPU, NIC and host are little-endian"
#endif

namespace nda::hw {

NDA_DEV uint32_t bswap32(uint32_t v)
{
	return __builtin_bswap32(v);
}
NDA_DEV uint64_t bswap64(uint64_t v)
{
	return __builtin_bswap64(v);
}

/* @v's bits [low + width - 1 : low]. */
NDA_DEV constexpr uint32_t bits(uint64_t v, uint32_t low, uint32_t width)
{
	return static_cast<uint32_t>((v >> low) & ((uint64_t{1} << width) - 1));
}

/* @v cut to @width bits and moved to bit @low. */
NDA_DEV constexpr uint64_t place(uint64_t v, uint32_t low, uint32_t width)
{
	return (v & ((uint64_t{1} << width) - 1)) << low;
}

} // namespace nda::hw

#endif
