/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A stand-in for the Ascend compiler's qualifiers and intrinsics, as far as
 * nda/aiv/ascend_core.h uses them, for clang on the host. Device memory and UB are address
 * spaces of their own: a pointer to one does not become a pointer to another, or to host
 * memory. Not made from any header of that compiler; NDA_ASCEND_ARCH says whose calls there
 * are.
 *
 * What they do, and when it has come to memory, is in ascend_machine.h. Scalar accesses are
 * RecordingAccess's.
 */
#ifndef TESTS_MOCK_ASCEND_INTRINSICS_H
#define TESTS_MOCK_ASCEND_INTRINSICS_H

#include <stdint.h>

#include <type_traits>

#include <tests/mock/ascend_machine.h>

#define __gm__ __attribute__((address_space(1)))
#define __ubuf__ __attribute__((address_space(2)))

static_assert(!std::is_convertible_v<__ubuf__ uint8_t *, __gm__ uint8_t *> &&
		!std::is_convertible_v<__gm__ uint8_t *, __ubuf__ uint8_t *> &&
		!std::is_convertible_v<uint8_t *, __gm__ uint8_t *> &&
		!std::is_convertible_v<__gm__ uint8_t *, uint8_t *> &&
		!std::is_convertible_v<uint8_t *, __ubuf__ uint8_t *> &&
		!std::is_convertible_v<__ubuf__ void *, __gm__ void *>,
	"address spaces do not mix");

enum class cache_line_t : uint64_t {
	SINGLE_CACHE_LINE = 0,
	ENTIRE_DATA_CACHE = 1
};
enum class dcci_dst_t : uint64_t {
	CACHELINE_ALL = 0,
	CACHELINE_UB = 1,
	CACHELINE_OUT = 2,
	CACHELINE_ATOMIC = 3,
};
enum mem_dsb_t : uint8_t {
	DSB_ALL = 0,
	DSB_DDR = 1,
	DSB_UB = 2,
	DSB_SEQ = 3
};
enum event_t {
	EVENT_ID0,
	EVENT_ID1,
	EVENT_ID2,
	EVENT_ID3,
	EVENT_ID4,
	EVENT_ID5
};

inline void dcci(__gm__ void *p, cache_line_t lines, dcci_dst_t)
{
	if (lines != cache_line_t::SINGLE_CACHE_LINE)
		nda::test::ascend.complain(
			"dcci of more than a line", reinterpret_cast<uint64_t>(p));
	nda::test::ascend.dcci(reinterpret_cast<uint64_t>(p));
}

inline void dsb(mem_dsb_t)
{
	nda::test::ascend.dsb();
}

template <class T>
void st_dev(T value, __gm__ T *p, int16_t offset)
{
	if (offset != 0)
		nda::test::ascend.complain(
			"st_dev with an offset", static_cast<uint64_t>(offset));
	nda::test::ascend.st_dev<T>(reinterpret_cast<uint64_t>(p), value);
}

inline void set_flag(pipe_t from, pipe_t to, event_t)
{
	nda::test::ascend.set_flag(from, to);
}
inline void wait_flag(pipe_t from, pipe_t to, event_t)
{
	nda::test::ascend.wait_flag(from, to);
}

namespace nda::test {

inline void ub_to_gm(__gm__ void *gm, __ubuf__ void *ub, uint32_t bytes)
{
	ascend.copy(PIPE_MTE3, reinterpret_cast<uint64_t>(gm),
		reinterpret_cast<uint64_t>(ub), bytes);
}
inline void gm_to_ub(__ubuf__ void *ub, __gm__ void *gm, uint32_t bytes)
{
	ascend.copy(PIPE_MTE2, reinterpret_cast<uint64_t>(gm),
		reinterpret_cast<uint64_t>(ub), bytes);
}

} // namespace nda::test

#if NDA_ASCEND_ARCH == 2201
inline void copy_ubuf_to_gm_align_b8(__gm__ void *gm, __ubuf__ void *ub, uint8_t,
	uint16_t bursts, uint32_t bytes, uint8_t, uint8_t, uint32_t, uint32_t)
{
	nda::test::ub_to_gm(gm, ub, bursts * bytes);
}
inline void copy_gm_to_ubuf_align_b8(__ubuf__ void *ub, __gm__ void *gm, uint8_t,
	uint16_t bursts, uint32_t bytes, uint8_t, uint8_t, uint32_t, uint32_t)
{
	nda::test::gm_to_ub(ub, gm, bursts * bytes);
}
#else
inline void copy_ubuf_to_gm_align_v2(__gm__ void *gm, __ubuf__ void *ub, uint8_t,
	uint32_t bursts, uint32_t bytes, uint8_t, uint64_t, uint32_t)
{
	nda::test::ub_to_gm(gm, ub, bursts * bytes);
}
inline void copy_gm_to_ubuf_align_v2(__ubuf__ void *ub, __gm__ void *gm, uint8_t,
	uint32_t bursts, uint32_t bytes, uint8_t, uint8_t, bool, uint8_t, uint64_t,
	uint32_t)
{
	nda::test::gm_to_ub(ub, gm, bursts * bytes);
}
#endif

namespace AscendC {

/* Virtual: a microsecond each look. */
inline int64_t GetSystemCycle()
{
	nda::test::Recorder *recorder = nda::test::ascend.recorder;

	recorder->now_ns += 1000;
	recorder->relaxed++;
	if (recorder->on_relax)
		recorder->on_relax();
	return static_cast<int64_t>(
		recorder->now_ns * (NDA_ASCEND_ARCH == 2201 ? 50 : 1000) / 1000);
}

} // namespace AscendC

#include <nda/aiv/ascend_core.h>

namespace nda::test {

/* Scalar accesses, told to the recorder and made through the machine's cache. */
struct RecordingAccess {
	template <class T>
	static T load(__gm__ T *p)
	{
		return allowed<T>(p, "load") ? ascend.load<T>(address(p)) : T{};
	}
	template <class T>
	static void store(__gm__ T *p, T value)
	{
		if (told(p, value, Store::plain))
			ascend.store<T>(address(p), value);
	}
	template <class T>
	static T load_acquire(__gm__ T *p)
	{
		if (!allowed<T>(p, "load"))
			return T{};
		/* What comes now is seen if the line was not there before. */
		if (ascend.recorder->before_look)
			ascend.recorder->before_look(address(p));
		return ascend.load<T>(address(p));
	}
	template <class T>
	static void store_release(__gm__ T *p, T value)
	{
		if (told(p, value, Store::release))
			ascend.store<T>(address(p), value);
	}

private:
	template <class T>
	static uint64_t address(__gm__ T *p)
	{
		return reinterpret_cast<uint64_t>(p);
	}
	template <class T>
	static bool allowed(__gm__ T *p, const char *what)
	{
		return ascend.recorder->allowed(address(p), sizeof(T), what);
	}
	template <class T>
	static bool told(__gm__ T *p, T value, Store::Kind kind)
	{
		if (!allowed<T>(p, "store"))
			return false;
		ascend.recorder->stores.push_back({kind, address(p), sizeof(T), value});
		return true;
	}
};

/* An AscendCore in a test's hands, which may lack a clean, invalidate or dsb. */
template <bool staged>
class AscendTestCore : public aiv::AscendCore<staged, RecordingAccess> {
	typedef aiv::AscendCore<staged, RecordingAccess> Base;

public:
	AscendTestCore() = default;
	explicit AscendTestCore(Recorder *recorder)
		: Base(reinterpret_cast<__ubuf__ uint8_t *>(
			       reinterpret_cast<uint64_t>(ascend.ub)),
			  EVENT_ID3)
	{
		static_assert(Base::buffer_bytes == AscendMachine::ub_bytes, "its buffer");
		ascend.begin(recorder);
	}

	void clean(aiv::site at, uint64_t addr, uint64_t bytes) const
	{
		if (has(at))
			Base::clean(at, addr, bytes);
	}
	void invalidate(aiv::site at, uint64_t addr, uint64_t bytes) const
	{
		if (has(at))
			Base::invalidate(at, addr, bytes);
	}
	void dsb(aiv::site at) const
	{
		if (has(at))
			Base::dsb(at);
	}

private:
	static bool has(aiv::site at)
	{
		return static_cast<uint32_t>(at) != ascend.without_site;
	}
};

} // namespace nda::test

#endif
