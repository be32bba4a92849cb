// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/ascend_npu.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <utility>
#include <vector>

#include "lib/nda/error.h"
#include "lib/nda/log.h"

namespace nda {
namespace {

constexpr uint64_t page_bytes = 4096;
constexpr uint64_t alignment = 64; // of what the runtime gives
constexpr uint32_t blocks_max = 65535;
constexpr char host_memory[] = "host memory";
constexpr int32_t look_ms = 1; // 0 is not known to be a time-out that only looks

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

// "0", "15": no sign, no blank, nothing behind.
bool parse_id(const char *text, int32_t &id)
{
	char *end = nullptr;
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	const unsigned long value = strtoul(text, &end, 10);
	if (errno || *end || value > INT32_MAX)
		return false;
	id = static_cast<int32_t>(value);
	return true;
}

// Cores cannot wake a thread of the host; what they ask is the software's.
nda_core silent_nic()
{
	static const uint32_t never_asleep = 0;
	nda_core core = {};
	core.nic_asleep = &never_asleep;
	core.nic_kick = [](void *) {};
	return core;
}

} // namespace

// ---- Opening ---------------------------------------------------------------------------

AscendNpu::AscendNpu(
	const AscendApi &api, int32_t id, uint32_t logic_id, Doorbells doorbells)
	: Npu("npu ascend:" + std::to_string(id), doorbells), api_(api), id_(id),
	  logic_id_(logic_id), doorbells_(api_, name(), logic_id)
{}

int AscendNpu::open(const char *id_text, const nda_npu_attr &a, std::shared_ptr<Npu> &out)
{
	int32_t id = 0;
	if (!parse_id(id_text, id))
		return fail(-EINVAL, "npu ascend:%s: \"%s\" is no number of a device",
			id_text, id_text);
	if (a.flags & ~npu_doorbell_flags)
		return fail(-EINVAL,
			"npu ascend:%d: flags 0x%x are unknown, or the software NPU's", id,
			a.flags & ~npu_doorbell_flags);
	if (a.memory_bytes)
		return fail(-EINVAL,
			"npu ascend:%d: memory_bytes %llu: only the software NPU's can be "
			"chosen",
			id, hex(a.memory_bytes));
	if (a.flags & NDA_NPU_DOORBELL_KERNEL)
		return fail(-EOPNOTSUPP,
			"npu ascend:%d: NDA_NPU_DOORBELL_KERNEL: which PCI function it is "
			"is not known, so that /dev/nda maps no doorbell for it",
			id);
	AscendApi api = {};
	uint32_t logic_id = 0;
	int rc = load_ascend(api);
	if (!rc)
		rc = logic_id_of(api, id, logic_id);
	if (rc)
		return fail_in(rc, "npu ascend:%d", id);
	std::shared_ptr<AscendNpu> npu(
		new AscendNpu(api, id, logic_id, doorbells_of(a.flags)));
	rc = npu->check_caller("open");
	if (rc)
		return rc;
	npu->create_proxy(silent_nic(), Kicks::none);
	rc = npu->take_slot();
	if (!rc)
		out = std::move(npu);
	return rc;
}

// The driver counts devices before ASCEND_RT_VISIBLE_DEVICES has hidden and reordered some.
int AscendNpu::logic_id_of(const AscendApi &api, int32_t id, uint32_t &logic_id)
{
	int32_t found = id;
	if (!api.get_logic_id) {
		// Not secure_getenv: what the runtime went by is asked, and by it nothing
		// is loaded or opened.
		if (getenv("ASCEND_RT_VISIBLE_DEVICES"))
			return fail(-EOPNOTSUPP,
				"ASCEND_RT_VISIBLE_DEVICES is set, and the runtime has no "
				"function aclrtGetLogicDevIdByUserDevId to tell which "
				"device it is");
	} else if (const int error = api.get_logic_id(id, &found)) {
		return fail_acl(api, error, "its logic id");
	}
	if (found < 0)
		return fail(-EPROTO, "the runtime says that its logic id is %d", found);
	logic_id = static_cast<uint32_t>(found);
	return 0;
}

// Asked before anything else: newer runtimes may make a context where one is missing.
int AscendNpu::check_caller(const char *what) const
{
	void *context = nullptr;
	int error = api_.get_current_context(&context);
	if (error == acl::error_no_context || (!error && !context))
		return fail(-ENXIO,
			"%s: %s: this thread has no current context of the Ascend runtime; "
			"aclrtSetDevice(%d) or aclrtSetCurrentContext makes it so",
			name(), what, id_);
	if (error)
		return fail_acl(api_, error, "%s: %s: the current context", name(), what);
	int32_t device = -1;
	error = api_.get_device(&device);
	if (error)
		return fail_acl(api_, error, "%s: %s: the current device", name(), what);
	if (device == id_)
		return 0;
	return fail(-ENXIO, "%s: %s: this thread's current context is of device %d", name(),
		what, device);
}

AscendNpu::~AscendNpu()
{
	retire();
	if (allocations_.empty() && !stream_)
		return;
	if (check_caller("close")) {
		NDA_LOG(LogLevel::err, "%s: %zu allocations%s are left to the runtime",
			name(), allocations_.size(), stream_ ? " and a stream" : "");
		return;
	}
	if (stream_ && api_.destroy_stream)
		if (const int error = api_.destroy_stream(stream_))
			(void)fail_acl(api_, error, "%s: close: its stream", name());
	for (auto &[addr, allocation] : allocations_)
		(void)release(addr, allocation);
}

// ---- Memory ----------------------------------------------------------------------------

// The runtime promises an alignment of 64 bytes; nda_npu_alloc one of 4 KiB from there up.
int AscendNpu::malloc(uint64_t size, Allocation &out, uint64_t &addr)
{
	const uint64_t aligned = size >= page_bytes ? page_bytes : alignment;
	for (uint64_t spare : {uint64_t{0}, aligned}) {
		void *ptr = nullptr;
		const int error =
			api_.malloc(&ptr, size + spare, acl::malloc_high_bandwidth);
		if (error)
			return fail_acl(api_, error, "%s: alloc of %llu bytes", name(),
				hex(size + spare));
		const uint64_t at = (address(ptr) + aligned - 1) / aligned * aligned;
		if (ptr && at - address(ptr) <= spare) {
			out = {address(ptr), size, false, nullptr};
			addr = at;
			return 0;
		}
		if (ptr)
			(void)api_.free(ptr);
	}
	return fail(-EPROTO, "%s: alloc of %llu bytes: the runtime gave no address", name(),
		hex(size));
}

int AscendNpu::keep(uint64_t addr, Allocation &allocation)
{
	try {
		const std::lock_guard<std::mutex> lock(mutex_);
		allocations_.emplace(addr, allocation);
		return 0;
	} catch (const std::bad_alloc &) {
		(void)release(addr, allocation);
		return fail(-ENOMEM, "%s: out of memory", name());
	}
}

int AscendNpu::alloc(uint64_t size, uint64_t &addr)
{
	if (size == 0 || size > UINT64_MAX - page_bytes)
		return fail(-EINVAL, "%s: alloc of %llu bytes", name(), hex(size));
	Allocation allocation = {};
	uint64_t found = 0;
	int rc = check_caller("alloc");
	if (!rc)
		rc = malloc(size, allocation, found);
	if (!rc)
		rc = keep(found, allocation);
	if (!rc)
		addr = found;
	return rc;
}

// Whole pages: a segment's size is counted from the page that holds its first byte.
int AscendNpu::alloc_independent(uint64_t size, uint64_t &addr)
{
	if (size == 0 || size > UINT64_MAX - 2 * page_bytes)
		return fail(-EINVAL, "%s: alloc of %llu bytes", name(), hex(size));
	const uint64_t pages = (size + page_bytes - 1) / page_bytes * page_bytes;
	Allocation allocation = {};
	uint64_t found = 0;
	int rc = check_caller("alloc");
	if (!rc)
		rc = malloc(pages, allocation, found);
	if (rc)
		return rc;
	rc = register_segment(found, allocation);
	if (rc) {
		(void)api_.free(pointer(allocation.base));
		return rc;
	}
	rc = keep(found, allocation);
	if (!rc)
		addr = found;
	return rc;
}

int AscendNpu::alloc_host(uint64_t size, uint64_t &addr, uint64_t &host)
{
	static const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
	if (size == 0 || size > UINT64_MAX - page)
		return fail(-EINVAL, "%s: alloc of %llu bytes", name(), hex(size));
	const uint64_t pages = (size + page - 1) / page * page;
	void *memory = nullptr;
	uint64_t found = 0;
	int rc = check_caller("alloc");
	if (!rc)
		rc = doorbells_.map_memory(host_memory, pages, memory, found);
	if (rc)
		return rc;
	Allocation allocation = {0, pages, false, static_cast<uint8_t *>(memory)};
	rc = keep(found, allocation);
	if (rc)
		return rc;
	addr = found;
	host = address(memory);
	return 0;
}

// As the communication layer does it: memory of this one type wants it, other has it.
int AscendNpu::register_segment(uint64_t addr, Allocation &allocation)
{
	if (!api_.get_memory_attribute || !api_.register_segment ||
		!api_.unregister_segment)
		return fail(-EOPNOTSUPP,
			"%s: memory for a NIC that reaches it over UB: libascend_hal.so "
			"lacks drvMemGetAttribute, halMemRegUbSegment or "
			"halMemUnRegUbSegment",
			name());
	hal::MemoryAttribute attribute = {};
	int error = api_.get_memory_attribute(addr, &attribute);
	if (error)
		return fail_hal(
			error, "%s: the type of memory at 0x%llx", name(), hex(addr));
	if (attribute.memory_type != hal::memory_locked_device)
		return 0;
	error = api_.register_segment(logic_id_, addr, allocation.size);
	if (error)
		return fail_hal(error, "%s: make %llu bytes at 0x%llx a segment of UB",
			name(), hex(allocation.size), hex(addr));
	allocation.segment = true;
	return 0;
}

int AscendNpu::release(uint64_t addr, Allocation &allocation)
{
	if (allocation.host)
		return doorbells_.unmap_memory(
			host_memory, allocation.host, allocation.size);
	if (allocation.segment)
		if (const int error = api_.unregister_segment(logic_id_, addr))
			return fail_hal(error, "%s: free of 0x%llx: its segment of UB",
				name(), hex(addr));
	allocation.segment = false;
	const int error = api_.free(pointer(allocation.base));
	return error ? fail_acl(api_, error, "%s: free of 0x%llx", name(), hex(addr)) : 0;
}

// Taken off the record first, so that of two that free the same one finds nothing; what the
// runtime did not take goes back on it.
int AscendNpu::free(uint64_t addr)
{
	Allocations::node_type node;
	int rc = check_caller("free");
	if (rc)
		return rc;
	{
		const std::lock_guard<std::mutex> lock(mutex_);
		node = allocations_.extract(addr);
	}
	if (node.empty())
		return fail(-EINVAL, "%s: free of 0x%llx: nothing was allocated there",
			name(), hex(addr));
	rc = release(addr, node.mapped());
	if (rc) {
		const std::lock_guard<std::mutex> lock(mutex_);
		allocations_.insert(std::move(node));
	}
	return rc;
}

// -EFAULT: not on this device. -EOPNOTSUPP: the runtime cannot tell.
int AscendNpu::check_attributes(uint64_t addr) const
{
	acl::PointerAttributes attributes = {};
	if (!api_.get_pointer_attributes)
		return fail(-EOPNOTSUPP, "%s: where 0x%llx is: the runtime cannot tell",
			name(), hex(addr));
	const int error = api_.get_pointer_attributes(pointer(addr), &attributes);
	if (error)
		return fail_acl(api_, error, "%s: where 0x%llx is", name(), hex(addr));
	if (attributes.location_type == acl::location_device &&
		attributes.location_id == static_cast<uint32_t>(id_))
		return 0;
	return fail(-EFAULT, "%s: 0x%llx is not memory of this NPU", name(), hex(addr));
}

int AscendNpu::address_range(uint64_t addr, uint64_t &base, uint64_t &size) const
{
	{
		const std::lock_guard<std::mutex> lock(mutex_);
		auto it = allocations_.upper_bound(addr);
		if (it != allocations_.begin()) {
			--it;
			if (addr - it->first < it->second.size) {
				base = it->first;
				size = it->second.size;
				return 0;
			}
		}
	}
	int rc = check_caller("address range");
	if (rc)
		return rc;
	if (!api_.get_address_range)
		return fail(-EOPNOTSUPP,
			"%s: the allocation at 0x%llx: the runtime has no function "
			"aclrtMemGetAddressRange",
			name(), hex(addr));
	rc = check_attributes(addr);
	if (rc && rc != -EOPNOTSUPP)
		return rc;
	void *found = nullptr;
	size_t found_size = 0;
	const int error = api_.get_address_range(pointer(addr), &found, &found_size);
	if (error)
		return fail_acl(
			api_, error, "%s: the allocation at 0x%llx", name(), hex(addr));
	if (addr < address(found) || addr - address(found) >= found_size)
		return fail(-EFAULT, "%s: 0x%llx is not allocated", name(), hex(addr));
	base = address(found);
	size = found_size;
	return 0;
}

bool AscendNpu::contains(uint64_t addr, uint64_t size) const
{
	uint64_t base = 0, bytes = 0;
	const int rc = address_range(addr, base, bytes);
	if (!rc)
		return size <= bytes && addr - base <= bytes - size;
	if (rc != -EOPNOTSUPP || size == 0 || addr + size - 1 < addr)
		return false;
	// An older runtime: the two ends say what can be said.
	return check_attributes(addr) == 0 && check_attributes(addr + size - 1) == 0;
}

bool AscendNpu::may_contain(uint64_t addr, uint64_t size) const
{
	return contains(addr, size) ||
		(!api_.get_address_range && !api_.get_pointer_attributes);
}

// Of host memory. Whether the runtime's copies take the addresses that such memory has for
// the NPU is not known: the host's own are used.
uint8_t *AscendNpu::host_of(uint64_t addr) const
{
	const std::lock_guard<std::mutex> lock(mutex_);
	auto it = allocations_.upper_bound(addr);
	if (it == allocations_.begin())
		return nullptr;
	--it;
	const auto &[begin, allocation] = *it;
	return allocation.host && addr - begin < allocation.size
		? allocation.host + (addr - begin)
		: nullptr;
}

// What the runtime can tell is checked before it copies: it is not known to check.
int AscendNpu::check_range(const char *what, uint64_t addr, uint64_t size) const
{
	const int rc = check_caller(what);
	if (rc || may_contain(addr, size))
		return rc;
	return fail(-EFAULT, "%s: %s: %llu bytes at 0x%llx are not memory of this NPU",
		name(), what, hex(size), hex(addr));
}

int AscendNpu::write(uint64_t dst, const void *src, uint64_t size)
{
	if (size && !src)
		return fail(-EINVAL, "%s: write: src is NULL", name());
	const int rc = size ? check_range("write", dst, size) : 0;
	if (rc || !size)
		return rc;
	if (uint8_t *host = host_of(dst)) {
		::memcpy(host, src, size);
		return 0;
	}
	const int error = api_.memcpy(pointer(dst), size, src, size, acl::host_to_device);
	return error ? fail_acl(api_, error, "%s: write of %llu bytes to 0x%llx", name(),
			       hex(size), hex(dst))
		     : 0;
}

int AscendNpu::read(void *dst, uint64_t src, uint64_t size)
{
	if (size && !dst)
		return fail(-EINVAL, "%s: read: dst is NULL", name());
	const int rc = size ? check_range("read", src, size) : 0;
	if (rc || !size)
		return rc;
	if (const uint8_t *host = host_of(src)) {
		::memcpy(dst, host, size);
		return 0;
	}
	const int error = api_.memcpy(dst, size, pointer(src), size, acl::device_to_host);
	return error ? fail_acl(api_, error, "%s: read of %llu bytes from 0x%llx", name(),
			       hex(size), hex(src))
		     : 0;
}

int AscendNpu::copy(uint64_t dst, uint64_t src, uint64_t size)
{
	int rc = size ? check_range("copy", dst, size) : 0;
	if (!rc && size)
		rc = check_range("copy", src, size);
	if (rc || !size)
		return rc;
	if (const uint8_t *host = host_of(src))
		return write(dst, host, size);
	if (uint8_t *host = host_of(dst))
		return read(host, src, size);
	const int error =
		api_.memcpy(pointer(dst), size, pointer(src), size, acl::device_to_device);
	return error ? fail_acl(api_, error, "%s: copy of %llu bytes from 0x%llx to 0x%llx",
			       name(), hex(size), hex(src), hex(dst))
		     : 0;
}

int AscendNpu::memset(uint64_t dst, int value, uint64_t size)
{
	const int rc = size ? check_range("memset", dst, size) : 0;
	if (rc || !size)
		return rc;
	if (uint8_t *host = host_of(dst)) {
		::memset(host, value, size);
		return 0;
	}
	const int error = api_.memset(pointer(dst), size, value, size);
	return error ? fail_acl(api_, error, "%s: memset of %llu bytes at 0x%llx", name(),
			       hex(size), hex(dst))
		     : 0;
}

// ---- Kernels ---------------------------------------------------------------------------

int AscendNpu::launch(nda_kernel_fn, void *, uint32_t)
{
	return fail(-EOPNOTSUPP,
		"%s: launch: a function of the host does not run on it; "
		"nda_npu_launch_function starts those of device binaries",
		name());
}

// Prototypes alone are known of these functions, of which the arguments' lifetime is
// unverified: they are taken for copied when the call returns.
int AscendNpu::launch_function(
	void *function, const void *args, uint64_t args_bytes, uint32_t n_cores)
{
	if (!function || (args_bytes && !args))
		return fail(-EINVAL, "%s: launch: function or arguments are NULL", name());
	if (n_cores == 0 || n_cores > blocks_max)
		return fail(-EINVAL, "%s: launch: n_cores %u is not in 1..%u", name(),
			n_cores, blocks_max);
	if (!api_.launch_kernel || !api_.create_stream || !api_.destroy_stream ||
		!api_.synchronize_stream_timeout || !api_.synchronize_stream)
		return fail(-EOPNOTSUPP,
			"%s: launch: the runtime lacks aclrtLaunchKernelWithHostArgs or a "
			"function of streams that it takes",
			name());
	const int rc = check_caller("launch");
	if (rc)
		return rc;
	const std::lock_guard<std::mutex> lock(launches_);
	if (launched_)
		return fail(
			-EBUSY, "%s: launch: a kernel runs, or was not waited for", name());
	if (!stream_) {
		void *stream = nullptr;
		if (const int error = api_.create_stream(&stream))
			return fail_acl(api_, error, "%s: launch: a stream", name());
		stream_ = stream;
	}
	std::vector<uint8_t> copied(args_bytes);
	if (args_bytes)
		std::copy_n(static_cast<const uint8_t *>(args), args_bytes, copied.begin());
	const int error = api_.launch_kernel(function, n_cores, stream_, nullptr,
		copied.data(), copied.size(), nullptr, 0);
	if (error)
		return fail_acl(api_, error, "%s: launch on %u cores", name(), n_cores);
	launch_++;
	launched_ = true;
	ended_ = false;
	return 0;
}

// Whether the kernel has ended, with 0 or why; else rc is -ETIMEDOUT, or why nobody knows.
bool AscendNpu::ask_stream(int timeout_ms, int &rc)
{
	const int error = timeout_ms < 0
		? api_.synchronize_stream(stream_)
		: api_.synchronize_stream_timeout(stream_, std::max(timeout_ms, look_ms));
	rc = error ? fail_acl(api_, error, "%s: wait", name()) : 0;
	return error == acl::ok || (acl::is_device_fault(error) && rc != -ETIMEDOUT);
}

// While the runtime is asked, another thread may wait for the same kernel and launch the
// next: the end that was seen is none of that one's.
int AscendNpu::wait(int timeout_ms)
{
	uint64_t asked = 0;
	int rc = check_caller("wait");
	if (rc)
		return rc;
	{
		const std::lock_guard<std::mutex> lock(launches_);
		if (!launched_)
			return fail(-EINVAL, "%s: wait: nothing was launched", name());
		if (ended_) {
			launched_ = false;
			return end_rc_
				? fail(end_rc_, "%s: wait: the kernel failed", name())
				: 0;
		}
		asked = launch_;
	}
	if (!ask_stream(timeout_ms, rc))
		return rc;
	const std::lock_guard<std::mutex> lock(launches_);
	if (launch_ == asked)
		launched_ = false;
	return rc;
}

bool AscendNpu::busy()
{
	uint64_t asked = 0;
	int rc = 0;
	{
		const std::lock_guard<std::mutex> lock(launches_);
		if (!launched_ || ended_)
			return false;
		asked = launch_;
	}
	if (check_caller("is a kernel running") || !ask_stream(0, rc))
		return true;
	const std::lock_guard<std::mutex> lock(launches_);
	if (launch_ == asked && launched_ && !ended_) {
		ended_ = true;
		end_rc_ = rc;
	}
	return launched_ && !ended_;
}

// ---- Doorbells -------------------------------------------------------------------------

int AscendNpu::map_register(const doorbell_map_desc &desc, uint64_t &addr)
{
	return doorbells_.map(desc, addr);
}

int AscendNpu::unmap_register(uint64_t addr, const doorbell_map_desc &desc)
{
	return doorbells_.unmap(addr, desc);
}

int AscendNpu::alloc_doorbell_slot(uint64_t, uint64_t &addr, uint64_t *&host)
{
	return doorbells_.alloc_slot(addr, host);
}

int AscendNpu::free_doorbell_slot(uint64_t addr)
{
	return doorbells_.free_slot(addr);
}

} // namespace nda
