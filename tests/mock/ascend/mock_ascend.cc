// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "tests/mock/ascend/mock_ascend.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace nda::test {
namespace {

constexpr uint64_t window_bytes = MockAscend::memory_bytes;
thread_local int32_t current = -1;

} // namespace

MockAscend &MockAscend::get()
{
	static auto *const mock = new MockAscend; // outlives every user
	return *mock;
}

MockAscend::MockAscend()
{
	const int fd = memfd_create("mock-hbm", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, window_bytes))
		abort();
	void *host_window =
		mmap(nullptr, window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	void *device = mmap(nullptr, window_bytes, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	close(fd);
	if (host_window == MAP_FAILED || device == MAP_FAILED)
		abort();
	host_window_ = static_cast<uint8_t *>(host_window);
	device_window_ = reinterpret_cast<uint64_t>(device);
}

void MockAscend::reset()
{
	const std::lock_guard<std::recursive_mutex> lock(mutex);
	const int32_t fresh_version[3] = {1, 17, 0};
	memcpy(version, fresh_version, sizeof(version));
	for (int32_t i = 0; i < 4; i++)
		logic_ids[i] = i;
	connect_type = 0;
	aiv_reaches_host = 1;
	memory_type = 0x10;
	misalign = 0;
	maps_to_nothing = false;
	recent_error.clear();
	kernel_waits = 0;
	kernel_args.clear();
	on_end = nullptr;
	allocations.clear();
	registrations.clear();
	resources.clear();
	segments.clear();
	streams.clear();
	next_npu_addr = 0x100000000000;
	calls_.clear();
	violations_.clear();
	fail_call(0);
	current = 0;
}

void MockAscend::set_current_device(int32_t device)
{
	current = device;
}

int32_t MockAscend::current_device() const
{
	return current;
}

void MockAscend::fail_call(long n, const char *name, int error)
{
	const std::lock_guard<std::recursive_mutex> lock(mutex);
	fail_name_ = name;
	fail_at_ = n;
	fail_error_ = error;
	seen_ = 0;
	fired_ = false;
}

bool MockAscend::fired() const
{
	const std::lock_guard<std::recursive_mutex> lock(mutex);
	return fired_;
}

size_t MockAscend::live() const
{
	const std::lock_guard<std::recursive_mutex> lock(mutex);
	size_t own = 0;
	for (const auto &a : allocations)
		own += !a.second.foreign;
	return own + registrations.size() + resources.size() + segments.size() +
		streams.size();
}

std::string MockAscend::live_text() const
{
	const std::lock_guard<std::recursive_mutex> lock(mutex);
	return std::to_string(allocations.size()) + " allocations, " +
		std::to_string(registrations.size()) + " registrations, " +
		std::to_string(resources.size()) + " resources, " +
		std::to_string(segments.size()) + " segments, " +
		std::to_string(streams.size()) + " streams";
}

std::vector<std::string> MockAscend::calls() const
{
	const std::lock_guard<std::recursive_mutex> lock(mutex);
	return calls_;
}

size_t MockAscend::count(const char *name) const
{
	const std::lock_guard<std::recursive_mutex> lock(mutex);
	const std::string begin = std::string(name) + "(";
	size_t n = 0;
	for (const std::string &call : calls_)
		n += call.compare(0, begin.size(), begin) == 0;
	return n;
}

std::vector<std::string> MockAscend::violations() const
{
	const std::lock_guard<std::recursive_mutex> lock(mutex);
	return violations_;
}

int MockAscend::enter(const char *name, int internal_error, const char *format, ...)
{
	char arguments_text[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(arguments_text, sizeof(arguments_text), format, arguments);
	va_end(arguments);
	const std::lock_guard<std::recursive_mutex> lock(mutex);
	calls_.push_back(std::string(name) + "(" + arguments_text + ")");
	if (!fail_name_.empty() && fail_name_ != name)
		return 0;
	if (fail_at_ == 0 || ++seen_ != fail_at_)
		return 0;
	fired_ = true;
	return fail_error_ ? fail_error_ : internal_error;
}

bool MockAscend::has_context(const char *name)
{
	if (current >= 0)
		return true;
	violate(std::string(name) + " without a context would make one");
	return false;
}

void MockAscend::violate(const std::string &what)
{
	const std::lock_guard<std::recursive_mutex> lock(mutex);
	violations_.push_back(what);
}

bool MockAscend::in_window(uint64_t addr) const
{
	return addr - device_window_ < window_bytes;
}

// Within one allocation; else nullptr.
uint8_t *MockAscend::host(uint64_t addr, uint64_t size)
{
	auto it = allocations.upper_bound(addr);
	if (it == allocations.begin())
		return nullptr;
	--it;
	const uint64_t offset = addr - it->first;
	if (offset > it->second.size || size > it->second.size - offset)
		return nullptr;
	return host_window_ + (addr - device_window_);
}

// First fit, with a page between allocations that nothing belongs to.
uint64_t MockAscend::take(uint64_t size, int32_t device, bool foreign)
{
	if (size > window_bytes)
		return 0;
	const uint64_t shift = foreign ? 0 : misalign;
	uint64_t at = device_window_ + 4096 + shift;
	for (const auto &[addr, a] : allocations) {
		if (at + size + 4096 <= addr)
			break;
		at = (addr + a.size + 2 * 4096 - 1) / 4096 * 4096 + shift;
	}
	if (at + size > device_window_ + window_bytes)
		return 0;
	allocations[at] = {size, device, foreign};
	return at;
}

uint64_t MockAscend::alloc(uint64_t size, int32_t device)
{
	const std::lock_guard<std::recursive_mutex> lock(mutex);
	const uint64_t addr = take(size, device, true);
	if (!addr)
		abort();
	memset(host(addr, size), 0, size);
	return addr;
}

void MockAscend::free(uint64_t addr)
{
	const std::lock_guard<std::recursive_mutex> lock(mutex);
	if (!allocations.erase(addr))
		abort();
}

void MockAscend::write(uint64_t addr, const void *data, uint64_t size)
{
	const std::lock_guard<std::recursive_mutex> lock(mutex);
	uint8_t *at = host(addr, size);
	if (!at)
		abort();
	memcpy(at, data, size);
}

void MockAscend::read(uint64_t addr, void *data, uint64_t size)
{
	const std::lock_guard<std::recursive_mutex> lock(mutex);
	const uint8_t *at = host(addr, size);
	if (!at)
		abort();
	memcpy(data, at, size);
}

void MockAscend::store(uint64_t addr, uint64_t value)
{
	const std::lock_guard<std::recursive_mutex> lock(mutex);
	if (uint8_t *at = host(addr, sizeof(value))) {
		memcpy(at, &value, sizeof(value));
		return;
	}
	for (const auto &[src, r] : registrations) {
		if (addr - r.npu_addr >= r.size)
			continue;
		__atomic_store_n(reinterpret_cast<uint64_t *>(src + (addr - r.npu_addr)),
			value, __ATOMIC_RELEASE);
		return;
	}
	abort();
}

} // namespace nda::test
