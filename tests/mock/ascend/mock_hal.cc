// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// libascend_hal.so as the tests have it; NDA_MOCK_BARE and NDA_MOCK_BROKEN as in
// mock_acl.cc.
#include "tests/mock/ascend/mock_ascend.h"

#include <cstring>
#include <unistd.h>

using nda::test::MockAscend;

#define EXPORT extern "C" NDA_MOCK

namespace {

constexpr int no_device = 1, invalid = 3, internal = 7, not_exist = 11, repeated = 12,
	      not_support = 0xfffe;

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

uint64_t page()
{
	return static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

bool known(uint32_t logic_id)
{
	for (const int32_t id : mock().logic_ids)
		if (static_cast<uint32_t>(id) == logic_id)
			return true;
	return false;
}

} // namespace

EXPORT int halHostRegister(
	void *src, uint64_t size, uint32_t flag, uint32_t device, void **dst)
{
	// The address is told by its place in the page: where it lies differs from run to
	// run.
	if (const int error =
			mock().enter("halHostRegister", internal, "+%llu, %llu, 0x%x, %u",
				hex(address(src) % page()), hex(size), flag, device))
		return error;
	const std::lock_guard<std::recursive_mutex> lock(mock().mutex);
	if (!known(device))
		return no_device;
	if (address(src) % page() || size == 0 || size % page())
		return invalid;
	if (mock().in_window(address(src)) || (flag != 0 && flag != 6))
		return not_support;
	if (flag == 6 && mock().connect_type != 0)
		return not_support;
	for (const auto &[begin, r] : mock().registrations)
		if (address(src) < begin + r.size && begin < address(src) + size)
			return repeated;
	const uint64_t npu_addr = mock().maps_to_nothing ? 0 : mock().next_npu_addr;
	mock().next_npu_addr += size + page();
	mock().registrations[address(src)] = {size, flag, device, npu_addr};
	*dst = reinterpret_cast<void *>(npu_addr);
	return 0;
}

EXPORT int halHostUnregisterEx(void *src, uint32_t device, uint32_t flag)
{
	if (const int error = mock().enter("halHostUnregisterEx", internal,
		    "+%llu, %u, 0x%x", hex(address(src) % page()), device, flag))
		return error;
	const std::lock_guard<std::recursive_mutex> lock(mock().mutex);
	const auto it = mock().registrations.find(address(src));
	if (it == mock().registrations.end() || it->second.device != device ||
		it->second.flag != flag) {
		mock().violate("halHostUnregisterEx of what is not registered so");
		return not_exist;
	}
	(void)*static_cast<volatile uint8_t *>(src); // faults if it was unmapped before
	mock().registrations.erase(it);
	return 0;
}

#ifndef NDA_MOCK_BROKEN
EXPORT int halGetDeviceInfo(uint32_t device, int32_t module, int32_t info, int64_t *value)
{
	if (const int error = mock().enter(
		    "halGetDeviceInfo", internal, "%u, %d, %d", device, module, info))
		return error;
	if (!known(device))
		return no_device;
	if (module != 0 || info != 40)
		return not_support;
	*value = mock().connect_type;
	return 0;
}
#endif

#ifndef NDA_MOCK_BARE
EXPORT int halHostRegisterCapabilities(uint32_t device, uint32_t module, uint32_t *capable)
{
	if (const int error = mock().enter(
		    "halHostRegisterCapabilities", internal, "%u, %u", device, module))
		return error;
	if (module != 3)
		return invalid;
	*capable = mock().aiv_reaches_host;
	return 0;
}

struct ResourceIn {
	uint32_t id, process, type, resource, flag, private_bytes;
	void *private_data;
	uint32_t reserved[8];
};
struct ResourceOut {
	unsigned long va;
	uint32_t length;
	uint32_t reserved[8];
};

// What the public source of the communication layer puts there.
struct Private {
	uint64_t guid_low, guid_high;
	uint32_t page, pages;
	uint32_t reserved[8];
};

static int check(const ResourceIn *in, Private &priv)
{
	for (const uint32_t r : in->reserved)
		if (r)
			return not_support;
	if (in->process != 0 || in->type != 12 || !in->private_data ||
		in->private_bytes != sizeof(priv))
		return invalid;
	memcpy(&priv, in->private_data, sizeof(priv));
	for (const uint32_t r : priv.reserved)
		if (r)
			return not_support;
	return priv.pages == 1 && (in->resource & 0xfff) == priv.page ? 0 : invalid;
}

EXPORT int halResAddrMapV2(unsigned device, ResourceIn *in, ResourceOut *out)
{
	if (const int error = mock().enter(
		    "halResAddrMapV2", internal, "%u, 0x%x", device, in->resource))
		return error;
	const std::lock_guard<std::recursive_mutex> lock(mock().mutex);
	Private priv;
	const int rc = check(in, priv);
	for (const uint32_t r : out->reserved)
		if (r)
			return not_support;
	if (rc)
		return rc;
	if (mock().resources.count(in->resource))
		return repeated;
	const uint64_t npu_addr = mock().maps_to_nothing ? 0 : mock().next_npu_addr;
	mock().next_npu_addr += 2 * 4096;
	mock().resources[in->resource] = {
		priv.guid_low, priv.guid_high, priv.page, npu_addr};
	out->va = npu_addr;
	out->length = 4096;
	return 0;
}

EXPORT int halResAddrUnmapV2(unsigned device, ResourceIn *in)
{
	if (const int error = mock().enter(
		    "halResAddrUnmapV2", internal, "%u, 0x%x", device, in->resource))
		return error;
	const std::lock_guard<std::recursive_mutex> lock(mock().mutex);
	Private priv;
	if (const int rc = check(in, priv))
		return rc;
	const auto it = mock().resources.find(in->resource);
	if (it == mock().resources.end() || it->second.guid_low != priv.guid_low ||
		it->second.guid_high != priv.guid_high || it->second.page != priv.page) {
		mock().violate("halResAddrUnmapV2 of what is not mapped so");
		return not_exist;
	}
	mock().resources.erase(it);
	return 0;
}

EXPORT int halMemRegUbSegment(uint32_t device, uint64_t va, uint64_t size)
{
	if (const int error = mock().enter(
		    "halMemRegUbSegment", internal, "%u, %llu", device, hex(size)))
		return error;
	const std::lock_guard<std::recursive_mutex> lock(mock().mutex);
	if (!mock().host(va, size))
		return not_support;
	if (va % 4096 || size % 4096)
		mock().violate("halMemRegUbSegment of a range that is not aligned");
	return mock().segments.emplace(va, size).second ? 0 : repeated;
}

EXPORT int halMemUnRegUbSegment(uint32_t device, uint64_t va)
{
	if (const int error = mock().enter("halMemUnRegUbSegment", internal, "%u", device))
		return error;
	const std::lock_guard<std::recursive_mutex> lock(mock().mutex);
	return mock().segments.erase(va) ? 0 : not_exist;
}

struct Attribute {
	uint32_t memory_type, reserved0[2], device, page_size, reserved1[8];
};

EXPORT int drvMemGetAttribute(uint64_t va, Attribute *attribute)
{
	if (const int error = mock().enter("drvMemGetAttribute", internal, "%s", ""))
		return error;
	const std::lock_guard<std::recursive_mutex> lock(mock().mutex);
	if (!mock().host(va, 1))
		return invalid;
	*attribute = {};
	attribute->memory_type = mock().memory_type;
	return 0;
}
#endif
