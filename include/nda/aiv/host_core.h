/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * HostCore: a CPU of the host as core. NPU addresses are its own addresses, its caches are
 * coherent. Host only.
 */
#ifndef NDA_AIV_HOST_CORE_H
#define NDA_AIV_HOST_CORE_H

#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <nda/aiv/core.h>

namespace nda::aiv {

class HostCore {
public:
	static constexpr bool stages_wqes = false;
	static constexpr bool has_atomics = true;

	template <class T>
	T load(uint64_t addr) const
	{
		return *at<T>(addr);
	}
	template <class T>
	void store(uint64_t addr, T value) const
	{
		*at<T>(addr) = value;
	}

	template <class T>
	T load_acquire(uint64_t addr) const
	{
		return __atomic_load_n(at<T>(addr), __ATOMIC_ACQUIRE);
	}

	template <class T>
	void store_release(uint64_t addr, T value) const
	{
		__atomic_store_n(at<T>(addr), value, __ATOMIC_RELEASE);
	}

	template <class T>
	void st_dev(uint64_t addr, T value) const
	{
		store_release(addr, value);
	}

	template <class T>
	T compare_swap(uint64_t addr, T compare, T swap) const
	{
		__atomic_compare_exchange_n(at<T>(addr), &compare, swap, false,
			__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
		return compare;
	}
	void clean(site, uint64_t, uint64_t) const {}
	void invalidate(site, uint64_t, uint64_t) const {}
	void dsb(site) const {}

	void copy(uint64_t dst, uint64_t src, uint64_t bytes) const
	{
		memmove(reinterpret_cast<void *>(dst), reinterpret_cast<const void *>(src),
			bytes);
	}

	/* Nanoseconds. */
	uint64_t cycles() const
	{
		struct timespec t;

		clock_gettime(CLOCK_MONOTONIC, &t);
		return static_cast<uint64_t>(t.tv_sec) * 1000000000u +
			static_cast<uint64_t>(t.tv_nsec);
	}

	uint64_t cycles_per_us() const { return 1000; }

	/* Mostly a pause; now and then the processor goes to whoever is waited for. */
	void relax() const
	{
		if (++rounds_ % yield_every_ == 0)
			sched_yield();
		else
			pause();
	}

private:
	static constexpr uint32_t yield_every_ = 32;

	/* Queues and rings are also seen as structs and words of other sizes. */
	template <class T>
	struct word {
		typedef T __attribute__((may_alias)) type;
	};

	template <class T>
	static typename word<T>::type *at(uint64_t addr)
	{
		return reinterpret_cast<typename word<T>::type *>(addr);
	}

	static void pause()
	{
#if defined(__x86_64__)
		__builtin_ia32_pause();
#elif defined(__aarch64__)
		asm volatile("yield");
#endif
	}

	mutable uint32_t rounds_ = 0;
};

} // namespace nda::aiv

#endif
