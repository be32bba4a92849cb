/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * SoftCore: a core of the software NPU. A HostCore whose addresses may be shifted, whose
 * device stores wake a sleeping NIC engine and whose waits run it. Host only.
 */
#ifndef NDA_AIV_SOFT_CORE_H
#define NDA_AIV_SOFT_CORE_H

#include <stdint.h>

#include <nda/aiv/host_core.h>
#include <nda/core.h>

namespace nda::aiv {

class SoftCore {
public:
	static constexpr bool stages_wqes = false;
	static constexpr bool has_atomics = true;

	/* For a handle that is not open yet; no member may be called. */
	SoftCore() = default;

	/* @core: what the kernel was called with; must outlive this. */
	explicit SoftCore(const struct nda_core *core)
		: core_(core), offset_(core->address_offset), asleep_(core->nic_asleep)
	{}

	template <class T>
	T load(uint64_t addr) const
	{
		return host_.load<T>(addr + offset_);
	}
	template <class T>
	void store(uint64_t addr, T value) const
	{
		host_.store<T>(addr + offset_, value);
	}
	template <class T>
	T load_acquire(uint64_t addr) const
	{
		return host_.load_acquire<T>(addr + offset_);
	}
	template <class T>
	void store_release(uint64_t addr, T value) const
	{
		host_.store_release<T>(addr + offset_, value);
	}

	/* The engine sets its flag, then makes every thread's earlier stores visible, then
	 * looks at the doorbells once more: so a relaxed load is enough here. */
	template <class T>
	void st_dev(uint64_t addr, T value) const
	{
		host_.st_dev(addr + offset_, value);
		if (__builtin_expect(__atomic_load_n(asleep_, __ATOMIC_RELAXED) != 0, 0))
			core_->nic_kick(core_->nic);
	}

	template <class T>
	T compare_swap(uint64_t addr, T compare, T swap) const
	{
		return host_.compare_swap<T>(addr + offset_, compare, swap);
	}
	void clean(site, uint64_t, uint64_t) const {}
	void invalidate(site, uint64_t, uint64_t) const {}
	void dsb(site) const {}

	void copy(uint64_t dst, uint64_t src, uint64_t bytes) const
	{
		host_.copy(dst + offset_, src + offset_, bytes);
	}

	uint64_t cycles() const { return host_.cycles(); }
	uint64_t cycles_per_us() const { return host_.cycles_per_us(); }

	void relax() const
	{
		if (!core_->nic_step || core_->nic_step(core_->nic) == 0)
			host_.relax();
	}

private:
	const struct nda_core *core_ = nullptr;
	uint64_t offset_ = 0;
	const uint32_t *asleep_ = nullptr;
	HostCore host_;
};

} // namespace nda::aiv

#endif
