// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// libascendcl.so as the tests have it. NDA_MOCK_BARE: of a version without the functions
// that libnda can do without; NDA_MOCK_BROKEN: without one that it cannot.
#include "tests/mock/ascend/mock_ascend.h"

#include <cstring>
#include <utility>

using nda::test::MockAscend;

#define EXPORT extern "C" NDA_MOCK

namespace {

constexpr int invalid = 107000, no_context = 107002, out_of_memory = 207001,
	      internal = 500000;
[[maybe_unused]] constexpr int timeout = 507046; // old runtimes have none

MockAscend &mock()
{
	return MockAscend::get();
}

uint64_t address(const void *p)
{
	return reinterpret_cast<uint64_t>(p);
}

unsigned long long hex(uint64_t v)
{
	return v;
}

// What only the application may call.
int forbidden(const char *name)
{
	mock().violate(std::string(name) + " was called");
	return internal;
}

} // namespace

EXPORT int aclInit(const char *)
{
	return forbidden("aclInit");
}
EXPORT int aclFinalize()
{
	return forbidden("aclFinalize");
}
EXPORT int aclrtSetDevice(int32_t)
{
	return forbidden("aclrtSetDevice");
}
EXPORT int aclrtResetDevice(int32_t)
{
	return forbidden("aclrtResetDevice");
}
EXPORT int aclrtResetDeviceForce(int32_t)
{
	return forbidden("aclrtResetDeviceForce");
}
EXPORT int aclrtCreateContext(void **, int32_t)
{
	return forbidden("aclrtCreateContext");
}
EXPORT int aclrtDestroyContext(void *)
{
	return forbidden("aclrtDestroyContext");
}
EXPORT int aclrtSetCurrentContext(void *)
{
	return forbidden("aclrtSetCurrentContext");
}

EXPORT int aclrtGetCurrentContext(void **context)
{
	if (const int error = mock().enter("aclrtGetCurrentContext", internal, "%s", ""))
		return error;
	if (mock().current_device() < 0)
		return no_context;
	static int some_context;
	*context = &some_context;
	return 0;
}

EXPORT int aclrtGetDevice(int32_t *device)
{
	if (const int error = mock().enter("aclrtGetDevice", internal, "%s", ""))
		return error;
	if (!mock().has_context("aclrtGetDevice"))
		return no_context;
	*device = mock().current_device();
	return 0;
}

EXPORT int aclrtMalloc(void **ptr, size_t size, int policy)
{
	if (const int error = mock().enter(
		    "aclrtMalloc", out_of_memory, "%zu, 0x%x", size, policy))
		return error;
	if (!mock().has_context("aclrtMalloc"))
		return no_context;
	const std::lock_guard<std::recursive_mutex> lock(mock().mutex);
	const uint64_t addr = mock().take(size, mock().current_device(), false);
	if (!addr)
		return out_of_memory;
	memset(mock().host(addr, size), 0xa5, size); // undefined contents
	*ptr = reinterpret_cast<void *>(addr);
	return 0;
}

EXPORT int aclrtFree(void *ptr)
{
	if (const int error =
			mock().enter("aclrtFree", internal, "0x%llx", hex(address(ptr))))
		return error;
	if (!mock().has_context("aclrtFree"))
		return no_context;
	const std::lock_guard<std::recursive_mutex> lock(mock().mutex);
	const auto it = mock().allocations.find(address(ptr));
	if (it == mock().allocations.end() || it->second.foreign) {
		mock().violate("aclrtFree of what libnda has not allocated");
		return invalid;
	}
	for (const auto &segment : mock().segments)
		if (segment.first >= it->first &&
			segment.first < it->first + it->second.size)
			mock().violate("aclrtFree of memory that is a UB segment");
	mock().allocations.erase(it);
	return 0;
}

EXPORT int aclrtMemcpy(void *dst, size_t dst_max, const void *src, size_t count, int kind)
{
	if (const int error = mock().enter(
		    "aclrtMemcpy", internal, "%zu, %zu, %d", dst_max, count, kind))
		return error;
	if (!mock().has_context("aclrtMemcpy"))
		return no_context;
	const std::lock_guard<std::recursive_mutex> lock(mock().mutex);
	const bool to_device = kind == 1 || kind == 3, from_device = kind == 2 || kind == 3;
	if (dst_max < count || kind < 1 || kind > 3)
		return invalid;
	auto *to =
		to_device ? mock().host(address(dst), count) : static_cast<uint8_t *>(dst);
	const auto *from = from_device ? mock().host(address(src), count)
				       : static_cast<const uint8_t *>(src);
	if (!to || !from)
		return invalid;
	memmove(to, from, count);
	return 0;
}

#ifndef NDA_MOCK_BROKEN
EXPORT int aclrtMemset(void *ptr, size_t max, int32_t value, size_t count)
{
	if (const int error = mock().enter(
		    "aclrtMemset", internal, "%zu, %d, %zu", max, value, count))
		return error;
	if (!mock().has_context("aclrtMemset"))
		return no_context;
	const std::lock_guard<std::recursive_mutex> lock(mock().mutex);
	uint8_t *at = mock().host(address(ptr), count);
	if (!at || max < count)
		return invalid;
	memset(at, value, count);
	return 0;
}
#endif

#ifndef NDA_MOCK_BARE
EXPORT int aclrtGetVersion(int32_t *major, int32_t *minor, int32_t *patch)
{
	if (const int error = mock().enter("aclrtGetVersion", internal, "%s", ""))
		return error;
	*major = mock().version[0];
	*minor = mock().version[1];
	*patch = mock().version[2];
	return 0;
}

EXPORT int aclrtGetLogicDevIdByUserDevId(int32_t user, int32_t *logic)
{
	if (const int error =
			mock().enter("aclrtGetLogicDevIdByUserDevId", internal, "%d", user))
		return error;
	if (user < 0 || user >= 4)
		return 107001;
	*logic = mock().logic_ids[user];
	return 0;
}

EXPORT int aclrtMemGetAddressRange(void *ptr, void **base, size_t *size)
{
	if (const int error = mock().enter(
		    "aclrtMemGetAddressRange", internal, "0x%llx", hex(address(ptr))))
		return error;
	if (!mock().has_context("aclrtMemGetAddressRange"))
		return no_context;
	const std::lock_guard<std::recursive_mutex> lock(mock().mutex);
	auto it = mock().allocations.upper_bound(address(ptr));
	if (it == mock().allocations.begin())
		return invalid;
	--it;
	if (address(ptr) - it->first >= it->second.size)
		return invalid;
	*base = reinterpret_cast<void *>(it->first);
	*size = it->second.size;
	return 0;
}

struct PointerAttributes {
	uint32_t id;
	int type;
	uint32_t page_size;
	uint32_t reserved[4];
};

EXPORT int aclrtPointerGetAttributes(const void *ptr, PointerAttributes *attributes)
{
	if (const int error = mock().enter(
		    "aclrtPointerGetAttributes", internal, "0x%llx", hex(address(ptr))))
		return error;
	if (!mock().has_context("aclrtPointerGetAttributes"))
		return no_context;
	const std::lock_guard<std::recursive_mutex> lock(mock().mutex);
	*attributes = {};
	attributes->type = 2; // unregistered
	auto it = mock().allocations.upper_bound(address(ptr));
	if (it == mock().allocations.begin())
		return 0;
	--it;
	if (address(ptr) - it->first >= it->second.size)
		return 0;
	attributes->type = 1; // device
	attributes->id = static_cast<uint32_t>(it->second.device);
	attributes->page_size = 4096;
	return 0;
}

EXPORT const char *aclGetRecentErrMsg()
{
	return mock().recent_error.empty() ? nullptr : mock().recent_error.c_str();
}

EXPORT int aclrtCreateStream(void **stream)
{
	if (const int error = mock().enter("aclrtCreateStream", internal, "%s", ""))
		return error;
	if (!mock().has_context("aclrtCreateStream"))
		return no_context;
	const std::lock_guard<std::recursive_mutex> lock(mock().mutex);
	*stream = reinterpret_cast<void *>(0x5000 + mock().streams.size());
	mock().streams[*stream] = 0;
	return 0;
}

EXPORT int aclrtDestroyStream(void *stream)
{
	if (const int error = mock().enter("aclrtDestroyStream", internal, "%s", ""))
		return error;
	if (!mock().has_context("aclrtDestroyStream"))
		return no_context;
	const std::lock_guard<std::recursive_mutex> lock(mock().mutex);
	return mock().streams.erase(stream) ? 0 : 107017;
}

// What is left of the stream's kernel, counted in waits.
static int count_wait(void *stream)
{
	const std::lock_guard<std::recursive_mutex> lock(mock().mutex);
	const auto it = mock().streams.find(stream);
	if (it == mock().streams.end())
		return 107017;
	if (it->second < 0)
		return -it->second;
	return it->second && it->second-- ? timeout : 0;
}

static int look(void *stream)
{
	const int error = count_wait(stream);
	std::function<void()> on_end;
	if (error == 0) {
		const std::lock_guard<std::recursive_mutex> lock(mock().mutex);
		on_end = std::exchange(mock().on_end, nullptr);
	}
	if (on_end)
		on_end();
	return error;
}

EXPORT int aclrtSynchronizeStreamWithTimeout(void *stream, int32_t ms)
{
	if (const int error = mock().enter(
		    "aclrtSynchronizeStreamWithTimeout", internal, "%d", ms))
		return error;
	if (ms <= 0)
		mock().violate("a time-out that is not known to be allowed");
	return mock().has_context("aclrtSynchronizeStreamWithTimeout") ? look(stream)
								       : no_context;
}

EXPORT int aclrtSynchronizeStream(void *stream)
{
	if (const int error = mock().enter("aclrtSynchronizeStream", internal, "%s", ""))
		return error;
	if (!mock().has_context("aclrtSynchronizeStream"))
		return no_context;
	int error = timeout;
	while (error == timeout)
		error = look(stream);
	return error;
}

EXPORT int aclrtLaunchKernelWithHostArgs(void *function, uint32_t blocks, void *stream,
	void *config, void *args, size_t args_bytes, void *placeholders, size_t n)
{
	if (const int error = mock().enter("aclrtLaunchKernelWithHostArgs", internal,
		    "0x%llx, %u, %zu, %zu", hex(address(function)), blocks, args_bytes, n))
		return error;
	if (!mock().has_context("aclrtLaunchKernelWithHostArgs"))
		return no_context;
	const std::lock_guard<std::recursive_mutex> lock(mock().mutex);
	if (config || placeholders || !mock().streams.count(stream))
		return invalid;
	const auto *bytes = static_cast<const uint8_t *>(args);
	mock().kernel_args.assign(bytes, bytes + args_bytes);
	mock().streams[stream] = mock().kernel_waits;
	return 0;
}
#endif
