// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/npu.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/nda/attr.h"
#include "lib/nda/error.h"
#include "lib/nda/guard.h"
#include "lib/nda/log.h"

namespace nda {
namespace {

// Whose turn it is in the functions of each slot. A slot is freed when its NPU goes, which
// is after the last object that a driver made with its callbacks.
std::array<std::atomic<Npu *>, npus_max> slots;

// What drivers cannot be told: their memset returns nothing.
thread_local int driver_memset_rc;

constexpr uint32_t one_way = NDA_NPU_DOORBELL_MAP | NDA_NPU_DOORBELL_PROXY;
constexpr uint32_t known_flags = NDA_NPU_STRICT | NDA_NPU_NO_ASSIST | one_way;

unsigned long long hex(uint64_t value)
{
	return value;
}

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

	static void *alloc(size_t size) { return npu() ? npu()->ops_alloc(size) : nullptr; }
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
	static inline ibv_extend_ops ops = {
		alloc, free, memset_s, memcpy_s, db_mmap, db_unmap};
};

namespace {

template <size_t... slot>
ibv_extend_ops *ops_of(uint32_t index, std::index_sequence<slot...>)
{
	static ibv_extend_ops *const all[] = {&Trampolines<slot>::ops...};
	return all[index];
}

} // namespace

int Npu::open(const char *name, const nda_npu_attr *attr, size_t attr_size,
	std::shared_ptr<Npu> &out)
{
	if (!name)
		return fail(-EINVAL, "npu: name is NULL");
	if (strcmp(name, "soft") != 0) {
		const bool ascend = strncmp(name, "ascend", 6) == 0;
		return fail(-ENODEV, "npu %s: %s; known is \"soft\"", name,
			ascend ? "the Ascend runtime is not supported by this version"
			       : "unknown kind of NPU");
	}
	nda_npu_attr a;
	int rc = read_attr(a, attr, attr_size, 0, "npu soft");
	if (rc)
		return rc;
	if (a.flags & ~known_flags || a.reserved)
		return fail(-EINVAL,
			"npu soft: unknown flags 0x%x, or reserved %u is not 0", a.flags,
			a.reserved);
	if ((a.flags & one_way) == one_way)
		return fail(-EINVAL,
			"npu soft: doorbells cannot all be mapped and all be proxied");
	const SoftApi *api = nullptr;
	rc = load_soft(api);
	if (rc)
		return fail_in(rc, "npu");
	nda_soft_npu_attr soft = {};
	soft.memory_bytes = a.memory_bytes ? a.memory_bytes : 1ull << 30;
	soft.strict = (a.flags & NDA_NPU_STRICT) != 0;
	soft.assist = (a.flags & NDA_NPU_NO_ASSIST) == 0;
	nda_soft_npu *npu = api->npu_open(&soft);
	if (!npu)
		return fail_soft(*api, -errno, "npu soft: open, memory of %llu bytes",
			hex(soft.memory_bytes));
	const Doorbells doorbells = a.flags & NDA_NPU_DOORBELL_MAP ? Doorbells::map
		: a.flags & NDA_NPU_DOORBELL_PROXY                 ? Doorbells::proxy
								   : Doorbells::any;
	Npu *object = new (std::nothrow) Npu(*api, npu, soft.strict != 0, doorbells);
	if (!object) {
		api->npu_close(npu);
		return fail(-ENOMEM, "npu soft: out of memory");
	}
	std::shared_ptr<Npu> shared(object);
	rc = shared->create_proxy();
	if (!rc)
		rc = shared->take_slot();
	if (!rc)
		out = std::move(shared);
	return rc;
}

Npu::~Npu()
{
	if (slot_ < npus_max)
		slots[slot_].store(nullptr, std::memory_order_release);
	proxy_.reset();
	const int rc = api_.npu_close(npu_);
	if (rc)
		NDA_LOG(LogLevel::err, "npu soft: close: %s", errno_text(rc));
}

int Npu::create_proxy()
{
	nda_core core = {};
	const int rc = api_.npu_core(npu_, &core);
	if (rc)
		return fail_soft(api_, rc, "npu soft: its cores");
	proxy_ = std::make_unique<Proxy>(*this, core, mapped_);
	return 0;
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
		return 0;
	}
	return fail(-ENOSPC,
		"npu soft: %u NPUs are open in this process, the most that can be",
		npus_max);
}

int Npu::alloc(uint64_t size, uint64_t &addr)
{
	if (size == 0)
		return fail(-EINVAL, "npu soft: alloc of 0 bytes");
	uint64_t found = 0;
	const int rc = api_.npu_alloc(npu_, size, &found);
	if (rc)
		return fail_soft(api_, rc, "npu soft: alloc of %llu bytes", hex(size));
	addr = found;
	return 0;
}

int Npu::free(uint64_t addr)
{
	const int rc = api_.npu_free(npu_, addr);
	return rc ? fail_soft(api_, rc, "npu soft: free of 0x%llx", hex(addr)) : 0;
}

int Npu::write(uint64_t dst, const void *src, uint64_t size)
{
	if (size && !src)
		return fail(-EINVAL, "npu soft: write: src is NULL");
	const int rc = size ? api_.npu_write(npu_, dst, src, size) : 0;
	return rc ? fail_soft(api_, rc, "npu soft: write of %llu bytes to 0x%llx",
			    hex(size), hex(dst))
		  : 0;
}

int Npu::read(void *dst, uint64_t src, uint64_t size)
{
	if (size && !dst)
		return fail(-EINVAL, "npu soft: read: dst is NULL");
	const int rc = size ? api_.npu_read(npu_, dst, src, size) : 0;
	return rc ? fail_soft(api_, rc, "npu soft: read of %llu bytes from 0x%llx",
			    hex(size), hex(src))
		  : 0;
}

int Npu::memset(uint64_t dst, int value, uint64_t size)
{
	const int rc = size ? api_.npu_memset(npu_, dst, value, size) : 0;
	return rc ? fail_soft(api_, rc, "npu soft: memset of %llu bytes at 0x%llx",
			    hex(size), hex(dst))
		  : 0;
}

void Npu::Launch::run(const nda_core *core, void *launch)
{
	const auto *l = static_cast<const Launch *>(launch);
	nda_core with_proxy = *core;
	l->proxy->attach(with_proxy);
	l->fn(&with_proxy, l->arg);
}

int Npu::launch(nda_kernel_fn fn, void *arg, uint32_t n_cores)
{
	if (!fn)
		return fail(-EINVAL, "npu soft: launch: fn is NULL");
	if (n_cores == 0 || n_cores > npu_cores_max)
		return fail(-EINVAL, "npu soft: launch: n_cores %u is not in 1..%u",
			n_cores, npu_cores_max);
	const std::lock_guard<std::mutex> lock(launches_);
	std::unique_ptr<Launch> launch;
	if (proxy_->in_use()) {
		launch.reset(new Launch{fn, arg, proxy_.get()});
		fn = Launch::run;
		arg = launch.get();
	}
	const int rc = api_.npu_launch(npu_, fn, arg, n_cores);
	if (rc)
		return fail_soft(api_, rc, "npu soft: launch on %u cores", n_cores);
	launch_ = std::move(launch); // the one before has ended
	end_seen_.store(false, std::memory_order_relaxed);
	return 0;
}

int Npu::wait(int timeout_ms)
{
	if (end_seen_.exchange(false, std::memory_order_acquire))
		return 0;
	const int rc = api_.npu_wait(npu_, timeout_ms);
	return rc ? fail_soft(api_, rc, "npu soft: wait") : 0;
}

bool Npu::busy()
{
	const int rc = api_.npu_wait(npu_, 0);
	if (rc == 0)
		end_seen_.store(true, std::memory_order_release);
	return rc == -ETIMEDOUT;
}

bool Npu::contains(uint64_t addr, uint64_t size) const
{
	return api_.npu_contains(npu_, addr, size) > 0;
}

void *Npu::ops_alloc(size_t size)
{
	uint64_t addr = 0;
	const int rc = alloc(size, addr);
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
		? fail(driver_memset_rc, "npu soft: a driver could not set its memory")
		: 0;
}

int Npu::ops_memcpy(
	void *dst, size_t dst_max, const void *src, size_t size, uint32_t direction)
{
	if (size > dst_max)
		return fail(-EINVAL, "npu soft: driver copies %zu bytes into %zu", size,
			dst_max);
	switch (direction) {
	case MEMCPY_DIRECTION_HOST_TO_HOST:
		memcpy(dst, src, size);
		return 0;
	case MEMCPY_DIRECTION_HOST_TO_DEVICE:
		return write(address(dst), src, size);
	case MEMCPY_DIRECTION_DEVICE_TO_HOST:
		return read(dst, address(src), size);
	case MEMCPY_DIRECTION_DEVICE_TO_DEVICE: {
		const int rc = api_.npu_copy(npu_, address(dst), address(src), size);
		return rc
			? fail_soft(api_, rc, "npu soft: driver's copy of %zu bytes", size)
			: 0;
	}
	default:
		return fail(-EINVAL, "npu soft: driver's copy has unknown direction %u",
			direction);
	}
}

void *Npu::ops_db_mmap(const doorbell_map_desc *desc)
{
	uint64_t addr = 0;
	const int rc = guard([&] {
		return desc ? map_doorbell(*desc, addr)
			    : fail(-EINVAL, "npu soft: map a doorbell: no descriptor");
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
			    : fail(-EINVAL, "npu soft: unmap a doorbell: no descriptor");
	});
}

int Npu::map_doorbell(const doorbell_map_desc &desc, uint64_t &addr)
{
	if (doorbells_ != Doorbells::proxy) {
		void *mapped = api_.npu_db_mmap(npu_, &desc);
		if (mapped) {
			mapped_.fetch_add(1, std::memory_order_relaxed);
			addr = address(mapped);
			return 0;
		}
		const int rc = fail_soft(api_, -errno, "npu soft: map a doorbell");
		if (rc != -EOPNOTSUPP)
			return rc;
		if (doorbells_ == Doorbells::map)
			return fail_in(rc, "npu soft: opened with NDA_NPU_DOORBELL_MAP");
		NDA_LOG(LogLevel::info, "%s; it is proxied", error_detail());
	}
	const int rc = proxy_->map(desc, addr);
	return rc ? fail_in(rc, "npu soft") : 0;
}

int Npu::unmap_doorbell(uint64_t addr, const doorbell_map_desc &desc)
{
	int error = 0;
	if (proxy_->find(addr, error))
		return proxy_->unmap(addr, desc);
	const int rc = api_.npu_db_unmap(npu_, pointer(addr), &desc);
	if (rc)
		return fail_soft(api_, rc, "npu soft: unmap a doorbell");
	mapped_.fetch_sub(1, std::memory_order_relaxed);
	return 0;
}

int Npu::add_doorbell(
	const nda_software_doorbell &doorbell, const std::string &name, uint64_t &addr)
{
	if (doorbells_ == Doorbells::map)
		return fail(-EOPNOTSUPP,
			"npu soft: opened with NDA_NPU_DOORBELL_MAP: %s has no doorbell "
			"register to map, its driver rings",
			name.c_str());
	return proxy_->add(doorbell, name, addr);
}

void Npu::remove_doorbell(uint64_t addr)
{
	if (proxy_->remove(addr))
		NDA_LOG(LogLevel::err, "%s", error_detail());
}

bool Npu::doorbell_proxied(uint64_t addr, int &error)
{
	return proxy_->find(addr, error);
}

void Npu::clear_doorbell(uint64_t addr)
{
	proxy_->clear(addr);
}

void Npu::count_doorbells(uint64_t addr)
{
	proxy_->count(addr);
}

NpuBuffer::NpuBuffer(NpuBuffer &&other) noexcept
	: npu_(std::move(other.npu_)), addr_(std::exchange(other.addr_, 0))
{}

NpuBuffer &NpuBuffer::operator=(NpuBuffer &&other) noexcept
{
	if (this != &other) {
		reset();
		npu_ = std::move(other.npu_);
		addr_ = std::exchange(other.addr_, 0);
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

void NpuBuffer::reset()
{
	if (npu_)
		(void)npu_->free(addr_);
	npu_.reset();
	addr_ = 0;
}

} // namespace nda
