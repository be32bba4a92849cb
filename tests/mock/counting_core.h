/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* CountingCore: a HostCore that counts what costs a vector core more than an instruction.
 */
#ifndef TESTS_MOCK_COUNTING_CORE_H
#define TESTS_MOCK_COUNTING_CORE_H

#include <stdint.h>
#include <string.h>

#include <nda/aiv/host_core.h>

namespace nda::test {

struct Counts {
	uint32_t stores = 0; /* to NPU memory, through the cache */
	uint32_t copies = 0; /* by the bulk engine, staged WQEs among them */
	uint32_t cleans = 0; /* lines */
	uint32_t invalidates = 0;
	uint32_t barriers = 0;
	uint32_t device_stores = 0; /* doorbells */

	bool operator==(const Counts &o) const
	{
		return stores == o.stores && copies == o.copies && cleans == o.cleans &&
			invalidates == o.invalidates && barriers == o.barriers &&
			device_stores == o.device_stores;
	}
};

/* @staged: WQEs are put together in a buffer of the core and copied. */
template <bool staged>
class CountingCore : public aiv::HostCore {
public:
	static constexpr bool stages_wqes = staged;

	CountingCore() = default;
	explicit CountingCore(Counts *counts) : counts_(counts) {}

	template <class T>
	void store(uint64_t addr, T value) const
	{
		counts_->stores++;
		HostCore::store<T>(addr, value);
	}
	template <class T>
	void store_release(uint64_t addr, T value) const
	{
		counts_->stores++;
		HostCore::store_release<T>(addr, value);
	}
	template <class T>
	void st_dev(uint64_t addr, T value) const
	{
		counts_->device_stores++;
		HostCore::st_dev<T>(addr, value);
	}
	void clean(aiv::site, uint64_t addr, uint64_t bytes) const
	{
		counts_->cleans += lines(addr, bytes);
	}
	void invalidate(aiv::site, uint64_t addr, uint64_t bytes) const
	{
		counts_->invalidates += lines(addr, bytes);
	}
	void dsb(aiv::site) const { counts_->barriers++; }
	void copy(uint64_t dst, uint64_t src, uint64_t bytes) const
	{
		counts_->copies++;
		HostCore::copy(dst, src, bytes);
	}
	template <class T>
	void stage(uint32_t offset, T value) const
	{
		memcpy(staging_ + offset, &value, sizeof(T));
	}
	void unstage(uint64_t addr, uint32_t offset, uint32_t bytes) const
	{
		copy(addr, reinterpret_cast<uint64_t>(staging_) + offset, bytes);
	}

private:
	static uint32_t lines(uint64_t addr, uint64_t bytes)
	{
		return static_cast<uint32_t>((addr + bytes - 1) / 64 - addr / 64 + 1);
	}

	Counts *counts_ = nullptr;
	mutable uint8_t staging_[256] = {};
};

} // namespace nda::test

#endif
