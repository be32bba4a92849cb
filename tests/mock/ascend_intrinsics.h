/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A stand-in for the Ascend compiler's qualifiers and intrinsics, as far as
 * nda/aiv/ascend_core.h uses them, for clang on the host. Device memory and UB are address
 * spaces of their own: a pointer to one does not become a pointer to another, or to host
 * memory. Not made from any header of that compiler; NDA_ASCEND_ARCH says whose calls there
 * are.
 *
 * What the intrinsics do is told to a test::Recorder; scalar accesses are
 * RecordingAccess's.
 */
#ifndef TESTS_MOCK_ASCEND_INTRINSICS_H
#define TESTS_MOCK_ASCEND_INTRINSICS_H

#include <stdint.h>
#include <string.h>

#include <type_traits>

#include <tests/mock/recording_core.h>

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
enum pipe_t {
	PIPE_S,
	PIPE_V,
	PIPE_M,
	PIPE_MTE1,
	PIPE_MTE2,
	PIPE_MTE3,
	PIPE_ALL
};
enum event_t {
	EVENT_ID0,
	EVENT_ID1,
	EVENT_ID2,
	EVENT_ID3,
	EVENT_ID4,
	EVENT_ID5
};

namespace nda::test {

/* The one core there is. */
struct AscendMachine {
	Recorder *recorder = nullptr;
	alignas(32) uint8_t ub[512];
	uint64_t cleaned = 0; /* lines */
	uint64_t barriers = 0;
	/* Flags set and not yet waited for, by their pipes; the event is one. */
	uint32_t flags[PIPE_ALL][PIPE_ALL] = {};
	/* Of a copied WQE, the word that says that all is there. */
	uint32_t last_word = 0;

	void complain(const char *what) { recorder->violations.push_back(what); }

	/* A copy has no order inside. It is told as a WQE's stores are: word by word, the
	 * one that says that all is there last. */
	void copied(uint64_t addr, const uint8_t *from, uint32_t bytes)
	{
		RecordingCore core(recorder);
		uint64_t word;
		uint32_t words = bytes < last_word + 8 ? 0 : bytes & ~7u;

		for (uint32_t i = words; i < bytes; i++)
			core.store<uint8_t>(addr + i, from[i]);
		if (words == 0)
			return;
		for (uint32_t i = 0; i < words; i += 8) {
			memcpy(&word, from + i, 8);
			if (i != last_word)
				core.store<uint64_t>(addr + i, word);
		}
		memcpy(&word, from + last_word, 8);
		core.store_release<uint64_t>(addr + last_word, word);
	}
};

inline AscendMachine ascend;

} // namespace nda::test

inline void dcci(__gm__ void *p, cache_line_t lines, dcci_dst_t)
{
	if (lines != cache_line_t::SINGLE_CACHE_LINE ||
		reinterpret_cast<uint64_t>(p) % 64 != 0)
		nda::test::ascend.complain("dcci of something else than a line");
	nda::test::ascend.cleaned++;
}

inline void dsb(mem_dsb_t)
{
	nda::test::ascend.barriers++;
}

template <class T>
void st_dev(T value, __gm__ T *p, int16_t offset)
{
	if (offset != 0)
		nda::test::ascend.complain("st_dev with an offset");
	nda::test::RecordingCore(nda::test::ascend.recorder)
		.st_dev<T>(reinterpret_cast<uint64_t>(p), value);
}

inline void set_flag(pipe_t from, pipe_t to, event_t)
{
	nda::test::ascend.flags[from][to]++;
}
inline void wait_flag(pipe_t from, pipe_t to, event_t)
{
	if (nda::test::ascend.flags[from][to] == 0)
		nda::test::ascend.complain("a wait for a flag that nobody set");
	else
		nda::test::ascend.flags[from][to]--;
}

namespace nda::test {

inline void ub_to_gm(__gm__ void *gm, __ubuf__ void *ub, uint32_t bytes)
{
	if (reinterpret_cast<uint64_t>(ub) % 32 != 0)
		ascend.complain("a copy from UB that is not aligned to 32");
	ascend.copied(reinterpret_cast<uint64_t>(gm),
		reinterpret_cast<const uint8_t *>(reinterpret_cast<uint64_t>(ub)), bytes);
}
inline void gm_to_ub(__ubuf__ void *ub, __gm__ void *gm, uint32_t bytes)
{
	if (reinterpret_cast<uint64_t>(ub) % 32 != 0)
		ascend.complain("a copy to UB that is not aligned to 32");
	memcpy(reinterpret_cast<void *>(reinterpret_cast<uint64_t>(ub)),
		reinterpret_cast<const void *>(reinterpret_cast<uint64_t>(gm)), bytes);
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

/* AscendAccess's accesses, told to the recorder before they are made. */
struct RecordingAccess {
	template <class T>
	static T load(__gm__ T *p)
	{
		return allowed<T>(p, "load") ? aiv::AscendAccess::load(p) : T{};
	}
	template <class T>
	static void store(__gm__ T *p, T value)
	{
		if (told(p, value, Store::plain))
			aiv::AscendAccess::store(p, value);
	}
	template <class T>
	static T load_acquire(__gm__ T *p)
	{
		if (!allowed<T>(p, "load"))
			return T{};
		if (ascend.recorder->before_look)
			ascend.recorder->before_look(reinterpret_cast<uint64_t>(p));
		return aiv::AscendAccess::load_acquire(p);
	}
	template <class T>
	static void store_release(__gm__ T *p, T value)
	{
		if (told(p, value, Store::release))
			aiv::AscendAccess::store_release(p, value);
	}

private:
	template <class T>
	static bool allowed(__gm__ T *p, const char *what)
	{
		return ascend.recorder->allowed(
			reinterpret_cast<uint64_t>(p), sizeof(T), what);
	}
	template <class T>
	static bool told(__gm__ T *p, T value, Store::Kind kind)
	{
		if (!allowed<T>(p, "store"))
			return false;
		ascend.recorder->stores.push_back(
			{kind, reinterpret_cast<uint64_t>(p), sizeof(T), value});
		return true;
	}
};

/* An AscendCore in a test's hands. */
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
		ascend.recorder = recorder;
		ascend.last_word = 0;
	}
};

} // namespace nda::test

#endif
