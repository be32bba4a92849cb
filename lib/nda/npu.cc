// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/npu.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include <nda/table.h>

#include "lib/nda/ascend_npu.h"
#include "lib/nda/attr.h"
#include "lib/nda/error.h"
#include "lib/nda/guard.h"
#include "lib/nda/log.h"
#include "lib/nda/soft_npu.h"

namespace nda {
namespace {

// Whose turn it is in the functions of each slot. A slot is freed when its NPU goes, which
// is after the last object that a driver made with its callbacks.
std::array<std::atomic<Npu *>, npus_max> slots;

// What drivers cannot be told: their memset returns nothing.
thread_local int driver_memset_rc;

void *pointer(uint64_t addr)
{
	return reinterpret_cast<void *>(addr);
}

uint64_t address(const void *ptr)
{
	return reinterpret_cast<uint64_t>(ptr);
}

} // namespace

// What drivers call. They come from C code: nothing may be thrown, which nothing here does.
template <size_t slot>
struct Trampolines {
	static Npu *npu() { return slots[slot].load(std::memory_order_acquire); }

	template <queue_buf_dma_mode mode>
	static void *alloc(size_t size)
	{
		return npu() ? npu()->ops_alloc(size, mode) : nullptr;
	}
	static void free(void *ptr)
	{
		if (npu())
			npu()->ops_free(ptr);
	}
	static void memset_s(void *dst, int value, size_t count)
	{
		if (npu())
			npu()->ops_memset(dst, value, count);
	}
	static int memcpy_s(
		void *dst, size_t dst_max, const void *src, size_t size, uint32_t direction)
	{
		return npu() ? npu()->ops_memcpy(dst, dst_max, src, size, direction)
			     : -ENODEV;
	}
	static void *db_mmap(doorbell_map_desc *desc)
	{
		return npu() ? npu()->ops_db_mmap(desc) : nullptr;
	}
	static int db_unmap(void *ptr, doorbell_map_desc *desc)
	{
		return npu() ? npu()->ops_db_unmap(ptr, desc) : -ENODEV;
	}
	static inline ibv_extend_ops ops = {alloc<QUEUE_BUF_DMA_MODE_DEFAULT>, free,
		memset_s, memcpy_s, db_mmap, db_unmap};
	static inline ibv_extend_ops independent = {alloc<QUEUE_BUF_DMA_MODE_INDEP_UB>,
		free, memset_s, memcpy_s, db_mmap, db_unmap};
};

namespace {

template <size_t... slot>
ibv_extend_ops *ops_of(uint32_t index, std::index_sequence<slot...>)
{
	static ibv_extend_ops *const all[] = {&Trampolines<slot>::ops...};
	return all[index];
}

template <size_t... slot>
ibv_extend_ops *independent_ops_of(uint32_t index, std::index_sequence<slot...>)
{
	static ibv_extend_ops *const all[] = {&Trampolines<slot>::independent...};
	return all[index];
}

} // namespace

Npu::Doorbells Npu::doorbells_of(uint32_t flags)
{
	return flags & NDA_NPU_DOORBELL_MAP       ? Doorbells::map
		: flags & NDA_NPU_DOORBELL_PROXY  ? Doorbells::proxy
		: flags & NDA_NPU_DOORBELL_KERNEL ? Doorbells::kernel
						  : Doorbells::any;
}

int Npu::open(const char *name, const nda_npu_attr *attr, size_t attr_size,
	std::shared_ptr<Npu> &out)
{
	if (!name)
		return fail(-EINVAL, "npu: name is NULL");
	constexpr char ascend_prefix[] = "ascend:";
	const bool of_kernel = strcmp(name, "soft:kernel") == 0;
	const bool soft = of_kernel || strcmp(name, "soft") == 0;
	const bool ascend = strncmp(name, ascend_prefix, strlen(ascend_prefix)) == 0;
	if (!soft && !ascend)
		return fail(-ENODEV,
			"npu %s: unknown kind of NPU; known are \"soft\", \"soft:kernel\" "
			"and \"ascend:ID\"",
			name);
	nda_npu_attr a;
	const std::string object = std::string("npu ") + name;
	const int rc = read_attr(a, attr, attr_size, 0, object.c_str());
	if (rc)
		return rc;
	if (a.reserved)
		return fail(-EINVAL, "npu %s: reserved %u is not 0", name, a.reserved);
	const uint32_t doorbells = a.flags & npu_doorbell_flags;
	if (doorbells & (doorbells - 1))
		return fail(-EINVAL,
			"npu %s: doorbells cannot all be mapped and all be proxied, or all "
			"be the kernel's",
			name);
	return soft ? SoftNpu::open(a, of_kernel, out)
		    : AscendNpu::open(name + strlen(ascend_prefix), a, out);
}

void Npu::retire()
{
	if (slot_ < npus_max)
		slots[slot_].store(nullptr, std::memory_order_release);
	slot_ = npus_max;
	proxy_.reset();
}

void Npu::create_proxy(const nda_core &nic, Kicks kicks)
{
	proxy_ = std::make_unique<Proxy>(*this, nic, kicks, mapped_);
}

int Npu::take_slot()
{
	for (uint32_t i = 0; i < npus_max; i++) {
		Npu *expected = nullptr;
		if (!slots[i].compare_exchange_strong(
			    expected, this, std::memory_order_acq_rel))
			continue;
		slot_ = i;
		ops_ = ops_of(i, std::make_index_sequence<npus_max>());
		ops_independent_ =
			independent_ops_of(i, std::make_index_sequence<npus_max>());
		return 0;
	}
	return fail(-ENOSPC, "%s: %u NPUs are open in this process, the most that can be",
		name(), npus_max);
}

void *Npu::ops_alloc(size_t size, queue_buf_dma_mode mode)
{
	uint64_t addr = 0;
	const int rc = guard([&] {
		return mode == QUEUE_BUF_DMA_MODE_INDEP_UB ? alloc_independent(size, addr)
							   : alloc(size, addr);
	});
	if (!rc)
		return pointer(addr);
	errno = -rc;
	return nullptr;
}

void Npu::ops_free(void *ptr)
{
	if (ptr)
		(void)free(address(ptr));
}

void Npu::ops_memset(void *dst, int value, size_t count)
{
	const int rc = memset(address(dst), value, count);
	if (rc)
		driver_memset_rc = rc;
}

void Npu::forget_driver_failure()
{
	driver_memset_rc = 0;
}

int Npu::driver_failure()
{
	return driver_memset_rc
		? fail(driver_memset_rc, "npu: a driver could not set its memory")
		: 0;
}

int Npu::ops_memcpy(
	void *dst, size_t dst_max, const void *src, size_t size, uint32_t direction)
{
	if (size > dst_max)
		return fail(-EINVAL, "%s: driver copies %zu bytes into %zu", name(), size,
			dst_max);
	switch (direction) {
	case MEMCPY_DIRECTION_HOST_TO_HOST:
		memcpy(dst, src, size);
		return 0;
	case MEMCPY_DIRECTION_HOST_TO_DEVICE:
		return write(address(dst), src, size);
	case MEMCPY_DIRECTION_DEVICE_TO_HOST:
		return read(dst, address(src), size);
	case MEMCPY_DIRECTION_DEVICE_TO_DEVICE:
		return copy(address(dst), address(src), size);
	default:
		return fail(-EINVAL, "%s: driver's copy has unknown direction %u", name(),
			direction);
	}
}

void *Npu::ops_db_mmap(const doorbell_map_desc *desc)
{
	uint64_t addr = 0;
	const int rc = guard([&] {
		return desc ? map_doorbell(*desc, addr)
			    : fail(-EINVAL, "%s: map a doorbell: no descriptor", name());
	});
	if (!rc)
		return pointer(addr);
	errno = -rc;
	return nullptr;
}

int Npu::ops_db_unmap(void *ptr, const doorbell_map_desc *desc)
{
	return guard([&] {
		return desc ? unmap_doorbell(address(ptr), *desc)
			    : fail(-EINVAL, "%s: unmap a doorbell: no descriptor", name());
	});
}

int Npu::map_doorbell(const doorbell_map_desc &desc, uint64_t &addr)
{
	if (doorbells_ != Doorbells::proxy) {
		const int rc = map_watched(desc, addr);
		if (!rc)
			mapped_.fetch_add(1, std::memory_order_relaxed);
		if (doorbells_ == Doorbells::kernel && rc)
			return fail_in(
				rc, "%s: opened with NDA_NPU_DOORBELL_KERNEL", name());
		if (rc != -EOPNOTSUPP)
			return rc;
		if (doorbells_ == Doorbells::map)
			return fail_in(rc, "%s: opened with NDA_NPU_DOORBELL_MAP", name());
		NDA_LOG(LogLevel::info, "%s; it is proxied", error_detail());
	}
	const int rc = proxy_->map(desc, addr);
	return rc ? fail_in(rc, "%s", name()) : 0;
}

// By the kernel's mapping of the register's page, or without where it has none.
int Npu::map_watched(const doorbell_map_desc &desc, uint64_t &addr)
{
	doorbell_map_desc through = desc;
	nda_ioc_bdf function = {};
	int rc = -EOPNOTSUPP;
	const bool known = pci_function(function);
	if (known)
		rc = watched_registers_.enter(kernel(), function, through);
	else if (doorbells_ == Doorbells::kernel)
		rc = fail(rc, "%s is no PCI device that is known", name());
	if (!rc || doorbells_ != Doorbells::kernel)
		rc = map_register(through, addr);
	if (rc && known)
		watched_registers_.leave(desc);
	return rc;
}

int Npu::unmap_doorbell(uint64_t addr, const doorbell_map_desc &desc)
{
	int error = 0;
	if (proxy_->find(addr, error))
		return proxy_->unmap(addr, desc);
	doorbell_map_desc through = desc;
	watched_registers_.find(through);
	const int rc = unmap_register(addr, through);
	if (rc)
		return rc;
	watched_registers_.leave(desc);
	mapped_.fetch_sub(1, std::memory_order_relaxed);
	return 0;
}

// A slot that the kernel watches.
int Npu::watch_doorbell(const KickTarget *target, uint64_t &addr, std::string &why)
{
	uint64_t slot = 0, *word = nullptr;
	if (!target) {
		why = "the kernel can ring for Soft-RoCE only";
		return -EOPNOTSUPP;
	}
	int rc = alloc_doorbell_slot(NDA_CACHE_LINE, slot, word);
	if (rc) {
		why = error_detail();
		return rc;
	}
	rc = watched_words_.add(slot, word, *target, why);
	if (rc)
		(void)free_doorbell_slot(slot);
	else
		addr = slot;
	return rc;
}

int Npu::add_doorbell(const nda_software_doorbell &doorbell, const std::string &name,
	uint64_t &addr, const KickTarget *target)
{
	if (doorbells_ == Doorbells::map)
		return fail(-EOPNOTSUPP,
			"%s: opened with NDA_NPU_DOORBELL_MAP: %s has no doorbell "
			"register to map, its driver rings",
			this->name(), name.c_str());
	if (doorbells_ == Doorbells::kernel || (target && doorbells_ == Doorbells::any)) {
		std::string why;
		const int rc = watch_doorbell(target, addr, why);
		if (!rc)
			return 0;
		if (doorbells_ == Doorbells::kernel)
			return fail(rc, "%s: opened with NDA_NPU_DOORBELL_KERNEL: %s: %s",
				this->name(), name.c_str(), why.c_str());
		NDA_LOG(LogLevel::info, "%s: %s; its doorbell is proxied", name.c_str(),
			why.c_str());
	}
	return proxy_->add(doorbell, name, addr);
}

void Npu::remove_doorbell(uint64_t addr)
{
	const bool watched = watched_words_.find(addr) != nullptr;
	int rc = watched ? watched_words_.remove(addr) : proxy_->remove(addr);
	if (watched && !rc)
		rc = free_doorbell_slot(addr);
	if (rc)
		NDA_LOG(LogLevel::err, "%s", error_detail());
}

nda_doorbell Npu::doorbell_way(uint64_t addr, int &error)
{
	error = 0;
	if (watched_words_.find(addr))
		return NDA_DOORBELL_KERNEL;
	return proxy_->find(addr, error) ? NDA_DOORBELL_PROXIED : NDA_DOORBELL_MAPPED;
}

bool Npu::doorbell_proxied(uint64_t addr, int &error)
{
	return proxy_->find(addr, error);
}

void Npu::clear_doorbell(uint64_t addr)
{
	if (uint64_t *word = watched_words_.find(addr))
		__atomic_store_n(word, 0, __ATOMIC_RELEASE);
	else
		proxy_->clear(addr);
}

void Npu::count_doorbells(uint64_t addr)
{
	proxy_->count(addr);
}

// ---- Memory ----------------------------------------------------------------------------

int Npu::alloc_host(uint64_t, uint64_t &, uint64_t &)
{
	return fail(-EOPNOTSUPP, "%s: host memory cannot be mapped to it", name());
}

// A module may be loaded at any time.
std::shared_ptr<Kernel> Npu::kernel()
{
	const std::lock_guard<std::mutex> lock(kernel_mutex_);
	if (!kernel_ || !kernel_->usable())
		kernel_ = Kernel::open();
	return kernel_;
}

NpuBuffer::NpuBuffer(NpuBuffer &&other) noexcept
	: npu_(std::move(other.npu_)), addr_(std::exchange(other.addr_, 0)),
	  host_(std::exchange(other.host_, 0))
{}

NpuBuffer &NpuBuffer::operator=(NpuBuffer &&other) noexcept
{
	if (this != &other) {
		reset();
		npu_ = std::move(other.npu_);
		addr_ = std::exchange(other.addr_, 0);
		host_ = std::exchange(other.host_, 0);
	}
	return *this;
}

int NpuBuffer::alloc(const std::shared_ptr<Npu> &npu, uint64_t size)
{
	reset();
	const int rc = npu->alloc(size, addr_);
	if (!rc)
		npu_ = npu;
	return rc;
}

int NpuBuffer::alloc_host(const std::shared_ptr<Npu> &npu, uint64_t size)
{
	reset();
	const int rc = npu->alloc_host(size, addr_, host_);
	if (!rc)
		npu_ = npu;
	return rc;
}

void NpuBuffer::reset()
{
	if (npu_)
		(void)npu_->free(addr_);
	npu_.reset();
	addr_ = 0;
	host_ = 0;
}

} // namespace nda
