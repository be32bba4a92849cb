// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/soft_npu.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <utility>

#include <uapi/nda_soft.h>

#include "lib/common/fd.h"
#include "lib/nda/error.h"
#include "lib/nda/log.h"

namespace nda {
namespace {

constexpr uint32_t known_flags = NDA_NPU_STRICT | NDA_NPU_NO_ASSIST | npu_doorbell_flags;

unsigned long long hex(uint64_t value)
{
	return value;
}

// Memory of the kernel's software NPU, and where it is mapped from.
int take_kernel_memory(uint64_t size, Fd &file, uint64_t &offset)
{
	constexpr char path[] = "/dev/nda_soft";
	file = Fd(::open(path, O_RDWR | O_CLOEXEC));
	if (!file) {
		const int rc = -errno;
		return fail(rc, "npu soft:kernel: %s: %s%s", path, errno_text(rc),
			rc == -ENOENT ? ": module nda_soft is not loaded" : "");
	}
	nda_soft_ioc_alloc alloc = {};
	alloc.size = size;
	alloc.kind = NDA_SOFT_RAM;
	if (ioctl(file.get(), NDA_SOFT_IOC_ALLOC, &alloc)) {
		const int rc = -errno;
		return fail(rc, "npu soft:kernel: %s: memory of %llu bytes: %s", path,
			hex(size), errno_text(rc));
	}
	offset = alloc.mmap_off;
	return 0;
}

} // namespace

int SoftNpu::open(const nda_npu_attr &a, bool of_kernel, std::shared_ptr<Npu> &out)
{
	if (a.flags & ~known_flags)
		return fail(-EINVAL, "npu soft: unknown flags 0x%x", a.flags);
	const SoftApi *api = nullptr;
	int rc = load_soft(api);
	if (rc)
		return fail_in(rc, "npu");
	nda_soft_npu_attr soft = {};
	soft.memory_bytes = a.memory_bytes ? a.memory_bytes : 1ull << 30;
	soft.strict = (a.flags & NDA_NPU_STRICT) != 0;
	soft.assist = (a.flags & NDA_NPU_NO_ASSIST) == 0;
	Fd kernel_memory; // the driver keeps it
	if (of_kernel) {
		rc = take_kernel_memory(
			soft.memory_bytes, kernel_memory, soft.memory_offset);
		if (rc)
			return rc;
		soft.has_memory = 1;
		soft.memory_fd = kernel_memory.get();
	}
	nda_soft_npu *npu = api->npu_open(&soft);
	if (!npu)
		return fail_soft(*api, -errno, "npu soft: open, memory of %llu bytes",
			hex(soft.memory_bytes));
	auto *object = new (std::nothrow)
		SoftNpu(*api, npu, soft.strict != 0, doorbells_of(a.flags));
	if (!object) {
		api->npu_close(npu);
		return fail(-ENOMEM, "npu soft: out of memory");
	}
	std::shared_ptr<SoftNpu> shared(object);
	rc = shared->init();
	if (!rc)
		out = std::move(shared);
	return rc;
}

int SoftNpu::init()
{
	nda_core core = {};
	const int rc = api_.npu_core(npu_, &core);
	if (rc)
		return fail_soft(api_, rc, "npu soft: its cores");
	address_offset_ = core.address_offset;
	create_proxy(core, Kicks::of_cores);
	return take_slot();
}

SoftNpu::~SoftNpu()
{
	retire();
	const int rc = api_.npu_close(npu_);
	if (rc)
		NDA_LOG(LogLevel::err, "npu soft: close: %s", errno_text(rc));
}

int SoftNpu::alloc(uint64_t size, uint64_t &addr)
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

// All that it has is host memory.
int SoftNpu::alloc_host(uint64_t size, uint64_t &addr, uint64_t &host)
{
	const int rc = alloc(size, addr);
	if (!rc)
		host = addr + address_offset_;
	return rc;
}

int SoftNpu::free(uint64_t addr)
{
	const int rc = api_.npu_free(npu_, addr);
	return rc ? fail_soft(api_, rc, "npu soft: free of 0x%llx", hex(addr)) : 0;
}

int SoftNpu::write(uint64_t dst, const void *src, uint64_t size)
{
	if (size && !src)
		return fail(-EINVAL, "npu soft: write: src is NULL");
	const int rc = size ? api_.npu_write(npu_, dst, src, size) : 0;
	return rc ? fail_soft(api_, rc, "npu soft: write of %llu bytes to 0x%llx",
			    hex(size), hex(dst))
		  : 0;
}

int SoftNpu::read(void *dst, uint64_t src, uint64_t size)
{
	if (size && !dst)
		return fail(-EINVAL, "npu soft: read: dst is NULL");
	const int rc = size ? api_.npu_read(npu_, dst, src, size) : 0;
	return rc ? fail_soft(api_, rc, "npu soft: read of %llu bytes from 0x%llx",
			    hex(size), hex(src))
		  : 0;
}

int SoftNpu::memset(uint64_t dst, int value, uint64_t size)
{
	const int rc = size ? api_.npu_memset(npu_, dst, value, size) : 0;
	return rc ? fail_soft(api_, rc, "npu soft: memset of %llu bytes at 0x%llx",
			    hex(size), hex(dst))
		  : 0;
}

void SoftNpu::Launch::run(const nda_core *core, void *launch)
{
	const auto *l = static_cast<const Launch *>(launch);
	nda_core with_proxy = *core;
	l->proxy->attach(with_proxy);
	l->fn(&with_proxy, l->arg);
}

int SoftNpu::launch(nda_kernel_fn fn, void *arg, uint32_t n_cores)
{
	if (!fn)
		return fail(-EINVAL, "npu soft: launch: fn is NULL");
	if (n_cores == 0 || n_cores > npu_cores_max)
		return fail(-EINVAL, "npu soft: launch: n_cores %u is not in 1..%u",
			n_cores, npu_cores_max);
	const std::lock_guard<std::mutex> lock(launches_);
	if (end_seen_)
		return fail(-EBUSY, "npu soft: launch: the one before was not waited for");
	std::unique_ptr<Launch> launch;
	if (proxy().in_use()) {
		launch.reset(new Launch{fn, arg, &proxy()});
		fn = Launch::run;
		arg = launch.get();
	}
	const int rc = api_.npu_launch(npu_, fn, arg, n_cores);
	if (rc)
		return fail_soft(api_, rc, "npu soft: launch on %u cores", n_cores);
	launch_ = std::move(launch); // the one before has ended
	launched_++;
	return 0;
}

int SoftNpu::launch_function(void *, const void *, uint64_t, uint32_t)
{
	return fail(-EOPNOTSUPP,
		"npu soft: launch: a function of a device binary does not run on it; "
		"nda_npu_launch starts those of the host");
}

int SoftNpu::wait(int timeout_ms)
{
	uint64_t asked = 0;
	{
		const std::lock_guard<std::mutex> lock(launches_);
		if (std::exchange(end_seen_, false))
			return 0;
		asked = launched_;
	}
	const int rc = api_.npu_wait(npu_, timeout_ms);
	{
		// busy() may have seen the same end, then it is this call's.
		const std::lock_guard<std::mutex> lock(launches_);
		if (launched_ == asked && std::exchange(end_seen_, false))
			return 0;
	}
	return rc ? fail_soft(api_, rc, "npu soft: wait") : 0;
}

// Nobody may launch between what the NPU says, which says it once, and its being noted.
bool SoftNpu::busy()
{
	const std::lock_guard<std::mutex> lock(launches_);
	const int rc = api_.npu_wait(npu_, 0);
	if (rc == 0)
		end_seen_ = true;
	return rc == -ETIMEDOUT;
}

bool SoftNpu::contains(uint64_t addr, uint64_t size) const
{
	return api_.npu_contains(npu_, addr, size) > 0;
}

int SoftNpu::copy(uint64_t dst, uint64_t src, uint64_t size)
{
	const int rc = size ? api_.npu_copy(npu_, dst, src, size) : 0;
	return rc ? fail_soft(api_, rc, "npu soft: copy of %llu bytes", hex(size)) : 0;
}

int SoftNpu::alloc_doorbell_slot(uint64_t size, uint64_t &addr, uint64_t *&host)
{
	uint64_t slot = 0;
	int rc = alloc(size, slot);
	if (rc)
		return rc;
	rc = memset(slot, 0, size);
	if (rc) {
		(void)free(slot);
		return rc;
	}
	addr = slot;
	host = reinterpret_cast<uint64_t *>(slot + address_offset_);
	return 0;
}

int SoftNpu::map_register(const doorbell_map_desc &desc, uint64_t &addr)
{
	void *mapped = api_.npu_db_mmap(npu_, &desc);
	if (!mapped)
		return fail_soft(api_, -errno, "npu soft: map a doorbell");
	addr = reinterpret_cast<uint64_t>(mapped);
	return 0;
}

int SoftNpu::unmap_register(uint64_t addr, const doorbell_map_desc &desc)
{
	const int rc = api_.npu_db_unmap(npu_, reinterpret_cast<void *>(addr), &desc);
	return rc ? fail_soft(api_, rc, "npu soft: unmap a doorbell") : 0;
}

} // namespace nda
