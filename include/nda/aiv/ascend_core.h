/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * AscendCore: a vector core of an Ascend NPU. For the Ascend compiler, in a kernel's source
 * after kernel_operator.h:
 *
 *	auto *buffer = reinterpret_cast<__ubuf__ uint8_t *>(uint64_t{160 * 1024});
 *	nda::aiv::AscendCore<> core(buffer, event);
 *	nda::aiv::Device<nda::aiv::AscendCore<>> nda;
 *	nda.open(core, table, AscendC::GetBlockIdx());
 *
 * NOT TESTED ON HARDWARE. It has been compiled and run against a stand-in for the
 * compiler's intrinsics only (tests/mock/ascend_intrinsics.h). Names, argument orders and
 * values are those that published kernels use; the compiler's own declarations were not
 * at hand. Unverified, and each in one macro below that may be defined before this header:
 *
 * - that dcci takes these enumerators, and dsb this cast, on every compiler release;
 * - that dsb(ALL) makes a clean visible to a device behind PCIe, not only to other cores;
 * - that a copy out of UB is visible to such a device once MTE3's event has come;
 * - that st_dev of 64 bits reaches a device in one piece;
 * - the rate of the cycle counter, 50 or 1000 per microsecond by architecture.
 *
 * What is known of the cache, and why every access is as it is: docs/device.md.
 */
#ifndef NDA_AIV_ASCEND_CORE_H
#define NDA_AIV_ASCEND_CORE_H

#include <stdint.h>

#include <nda/aiv/core.h>

#if !defined(NDA_ASCEND_ARCH) && defined(__NPU_ARCH__)
#define NDA_ASCEND_ARCH __NPU_ARCH__
#endif
#if !defined(NDA_ASCEND_ARCH)
#error "nda: ascend_core.h is for the Ascend compiler"
#elif NDA_ASCEND_ARCH != 2201 && NDA_ASCEND_ARCH != 3510
#error "nda: ascend_core.h knows 2201 (910B, 910_93) and 3510 (950)"
#endif

/* Cleans and invalidates the scalar cache's line at @p, aligned to it. The compiler is
 * known to move or drop dcci without the barriers around it. */
#ifndef NDA_ASCEND_DCCI
#define NDA_ASCEND_DCCI(p)                                                                 \
	dcci(p, cache_line_t::SINGLE_CACHE_LINE, dcci_dst_t::CACHELINE_OUT)
#endif
/* Waits for every earlier access to GM and UB. */
#ifndef NDA_ASCEND_DSB
#define NDA_ASCEND_DSB() dsb((mem_dsb_t)0)
#endif
/* Bytes between GM and UB, of any number; the UB side is aligned to 32. */
#ifndef NDA_ASCEND_UB_TO_GM
#if NDA_ASCEND_ARCH == 2201
#define NDA_ASCEND_UB_TO_GM(gm, ub, bytes)                                                 \
	copy_ubuf_to_gm_align_b8(gm, ub, 0, uint16_t{1}, bytes, uint8_t{0}, uint8_t{0},    \
		uint32_t{0}, uint32_t{0})
#define NDA_ASCEND_GM_TO_UB(ub, gm, bytes)                                                 \
	copy_gm_to_ubuf_align_b8(ub, gm, 0, uint16_t{1}, bytes, uint8_t{0}, uint8_t{0},    \
		uint32_t{0}, uint32_t{0})
#else
#define NDA_ASCEND_UB_TO_GM(gm, ub, bytes)                                                 \
	copy_ubuf_to_gm_align_v2(gm, ub, 0, 1, bytes, uint8_t{0}, uint64_t{0}, uint32_t{0})
#define NDA_ASCEND_GM_TO_UB(ub, gm, bytes)                                                 \
	copy_gm_to_ubuf_align_v2(ub, gm, 0, 1, bytes, uint8_t{0}, uint8_t{0}, false,       \
		uint8_t{0}, uint64_t{0}, uint32_t{0})
#endif
#endif
#ifndef NDA_ASCEND_CYCLES
#define NDA_ASCEND_CYCLES() static_cast<uint64_t>(AscendC::GetSystemCycle())
#endif

namespace nda::aiv {

/* Out of the class, whose members have the intrinsics' names. */
NDA_DEV void ascend_dsb()
{
	__asm__ __volatile__("" ::: "memory");
	NDA_ASCEND_DSB();
	__asm__ __volatile__("" ::: "memory");
}

template <class T>
NDA_DEV void ascend_st_dev(__gm__ T *p, T value)
{
	__asm__ __volatile__("" ::: "memory");
	st_dev(value, p, int16_t{0});
	__asm__ __volatile__("" ::: "memory");
}

/* Scalar accesses to GM, through the cache. volatile keeps the compiler from moving or
 * merging them; a core keeps its own accesses in order. */
struct AscendAccess {
	template <class T>
	NDA_DEV static T load(__gm__ T *p)
	{
		return *reinterpret_cast<__gm__ volatile T *>(p);
	}
	template <class T>
	NDA_DEV static void store(__gm__ T *p, T value)
	{
		*reinterpret_cast<__gm__ volatile T *>(p) = value;
	}
	/* Later, and earlier, accesses of the core stay on their side. */
	template <class T>
	NDA_DEV static T load_acquire(__gm__ T *p)
	{
		T value = load(p);

		__asm__ __volatile__("" ::: "memory");
		return value;
	}
	template <class T>
	NDA_DEV static void store_release(__gm__ T *p, T value)
	{
		__asm__ __volatile__("" ::: "memory");
		store(p, value);
	}
};

/*
 * @stage: WQEs are put together in UB and copied to the ring by MTE3. Else they are stored
 * through the scalar cache and cleaned.
 */
template <bool stage_wqes = true, class Access = AscendAccess>
class AscendCore {
public:
	static constexpr bool stages_wqes = stage_wqes;
	/* 910 has none that return a value; 950's are not coherent with the scalar cache.
	 */
	static constexpr bool has_atomics = false;
	/* Of the buffer: the staged WQE, and behind it what copy() goes through. */
	static constexpr uint32_t stage_bytes = 256;
	static constexpr uint32_t bounce_bytes = 256;
	static constexpr uint32_t buffer_bytes = stage_bytes + bounce_bytes;

	/* For a handle that is not open yet; no member may be called. */
	AscendCore() = default;

	/*
	 * @buffer: buffer_bytes of this core's UB, aligned to 32, that nothing else uses.
	 * @event: an event id, 0 to 5, that nothing else uses between calls.
	 * @cycles_per_us: of GetSystemCycle(); 0: the architecture's.
	 */
	NDA_DEV AscendCore(
		__ubuf__ uint8_t *buffer, int32_t event, uint32_t cycles_per_us = 0)
		: buffer_(buffer), event_(event),
		  cycles_per_us_(cycles_per_us != 0         ? cycles_per_us
				  : NDA_ASCEND_ARCH == 2201 ? 50
							    : 1000)
	{}

	template <class T>
	NDA_DEV T load(uint64_t addr) const
	{
		return Access::load(gm<T>(addr));
	}
	template <class T>
	NDA_DEV void store(uint64_t addr, T value) const
	{
		Access::store(gm<T>(addr), value);
	}
	template <class T>
	NDA_DEV T load_acquire(uint64_t addr) const
	{
		return Access::load_acquire(gm<T>(addr));
	}
	template <class T>
	NDA_DEV void store_release(uint64_t addr, T value) const
	{
		Access::store_release(gm<T>(addr), value);
	}

	template <class T>
	NDA_DEV void st_dev(uint64_t addr, T value) const
	{
		ascend_st_dev(gm<T>(addr), value);
	}

	NDA_DEV void clean(site, uint64_t addr, uint64_t bytes) const
	{
		flush(addr, bytes);
	}
	NDA_DEV void invalidate(site, uint64_t addr, uint64_t bytes) const
	{
		flush(addr, bytes);
	}
	NDA_DEV void dsb(site) const { ascend_dsb(); }

	/* Past the cache, by MTE2 and MTE3 through the buffer: whole lines of neither side
	 * may be dirty in it. */
	NDA_DEV void copy(uint64_t dst, uint64_t src, uint64_t bytes) const
	{
		__ubuf__ uint8_t *bounce = buffer_ + stage_bytes;

		while (bytes != 0) {
			uint32_t n = bytes < bounce_bytes ? static_cast<uint32_t>(bytes)
							  : bounce_bytes;

			order(PIPE_S, PIPE_MTE2);
			NDA_ASCEND_GM_TO_UB(bounce, gm<uint8_t>(src), n);
			order(PIPE_MTE2, PIPE_MTE3);
			NDA_ASCEND_UB_TO_GM(gm<uint8_t>(dst), bounce, n);
			order(PIPE_MTE3, PIPE_S);
			dst += n;
			src += n;
			bytes -= n;
		}
	}

	/* @offset: from the buffer's start, aligned to T. */
	template <class T>
	NDA_DEV void stage(uint32_t offset, T value) const
	{
		*reinterpret_cast<__ubuf__ volatile T *>(buffer_ + offset) = value;
	}

	/* @offset: a multiple of 32. */
	NDA_DEV void unstage(uint64_t addr, uint32_t offset, uint32_t bytes) const
	{
		order(PIPE_S, PIPE_MTE3);
		NDA_ASCEND_UB_TO_GM(gm<uint8_t>(addr), buffer_ + offset, bytes);
		order(PIPE_MTE3, PIPE_S);
	}

	NDA_DEV uint64_t cycles() const { return NDA_ASCEND_CYCLES(); }
	NDA_DEV uint64_t cycles_per_us() const { return cycles_per_us_; }
	NDA_DEV void relax() const {}

private:
	template <class T>
	NDA_DEV static __gm__ T *gm(uint64_t addr)
	{
		return reinterpret_cast<__gm__ T *>(addr);
	}

	/* What @to does from here on comes after what @from has been told. */
	NDA_DEV void order(pipe_t from, pipe_t to) const
	{
		set_flag(from, to, static_cast<event_t>(event_));
		wait_flag(from, to, static_cast<event_t>(event_));
	}

	/* Exactly the lines of that range. Of an address inside a line dcci would take the
	 * rest alone. */
	NDA_DEV static void flush(uint64_t addr, uint64_t bytes)
	{
		uint64_t end = addr + bytes;

		__asm__ __volatile__("" ::: "memory");
		for (uint64_t line = addr & ~uint64_t{NDA_CACHE_LINE - 1}; line < end;
			line += NDA_CACHE_LINE)
			NDA_ASCEND_DCCI(gm<void>(line));
		__asm__ __volatile__("" ::: "memory");
	}

	__ubuf__ uint8_t *buffer_ = nullptr;
	int32_t event_ = 0;
	uint32_t cycles_per_us_ = 0;
};

} // namespace nda::aiv

#endif
