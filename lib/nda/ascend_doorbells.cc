// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/ascend_doorbells.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/nda/error.h"
#include "lib/nda/log.h"

namespace nda {
namespace {

constexpr uint64_t ub_page_bytes = 4096;
constexpr uint32_t ub_pages = 1u << 12;     // what a resource id has room for
constexpr uint32_t guid_index_max = 0xffff; // likewise
constexpr uint64_t slot_bytes = 64;

// What names a UB doorbell page to the driver, as the communication layer's public source
// has it. The driver's side of it is not public: where the halves of the id lie, and the
// widths of the private data's numbers, are unverified.
constexpr uint32_t ub_resource_id(uint32_t page, uint32_t guid_index)
{
	return page | guid_index << 12;
}

struct UbPrivate {
	uint64_t guid_low;
	uint64_t guid_high;
	uint32_t page;
	uint32_t pages;
	uint32_t reserved[8];
};
static_assert(sizeof(UbPrivate) <= 128, "the most that the driver takes");

unsigned long long hex(uint64_t value)
{
	return value;
}

uint64_t host_page()
{
	static const auto bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
	return bytes;
}

void *pointer(uint64_t addr)
{
	return reinterpret_cast<void *>(addr);
}

uint64_t ub_offset(const doorbell_map_desc &desc)
{
	return desc.ub_res.bits.offset;
}

bool is_ub(const doorbell_map_desc &desc)
{
	return desc.type == DOORBELL_MAP_MODE_UB_RES;
}

bool same(const doorbell_map_desc &a, const doorbell_map_desc &b)
{
	if (a.type != b.type || a.size != b.size)
		return false;
	return is_ub(a) ? a.ub_res.guid_l == b.ub_res.guid_l &&
			a.ub_res.guid_h == b.ub_res.guid_h &&
			a.ub_res.bits.resource_id == b.ub_res.bits.resource_id &&
			ub_offset(a) == ub_offset(b)
			: a.hva == b.hva;
}

} // namespace

// ---- What can be mapped ----------------------------------------------------------------

// What the driver would refuse in its own words, or accept and not be able to do.
int AscendDoorbells::check_reach(const char *what) const
{
	uint32_t capable = 1;
	if (!api_.host_capabilities)
		return 0;
	const int error = api_.host_capabilities(device_, hal::engine_aiv, &capable);
	if (error == hal::error_not_support) // an older NPU, which has no such choice
		return 0;
	if (error)
		return fail_hal(error, "%s: what its vector cores reach", name_.c_str());
	if (capable)
		return 0;
	return fail(
		-EOPNOTSUPP, "%s: its vector cores do not reach %s", name_.c_str(), what);
}

int AscendDoorbells::check_host(const doorbell_map_desc &desc) const
{
	const uint64_t end = desc.hva + desc.size;
	if (desc.hva == 0 || desc.size == 0 || end < desc.hva ||
		end > UINT64_MAX - host_page())
		return fail(-EINVAL, "%s: map a doorbell: %llu bytes at 0x%llx",
			name_.c_str(), hex(desc.size), hex(desc.hva));
	int64_t connect = hal::connect_pcie;
	const int error = api_.get_device_info(
		device_, hal::module_system, hal::info_connect_type, &connect);
	if (error && error != hal::error_not_support)
		return fail_hal(error, "%s: how it is attached", name_.c_str());
	if (error || connect == hal::connect_pcie)
		return 0;
	return fail(-EOPNOTSUPP,
		"%s: it is attached by %s; the driver maps a NIC's registers only for NPUs "
		"attached by PCIe",
		name_.c_str(),
		connect == hal::connect_hccs         ? "HCCS"
			: connect == hal::connect_ub ? "UB"
						     : "an unknown bus");
}

int AscendDoorbells::check_ub(const doorbell_map_desc &desc) const
{
	const uint64_t offset = ub_offset(desc);
	if (!api_.map_resource || !api_.unmap_resource)
		return fail(-EOPNOTSUPP,
			"%s: map a UB doorbell: libascend_hal.so has no function %s",
			name_.c_str(),
			api_.map_resource ? "halResAddrUnmapV2" : "halResAddrMapV2");
	if (offset / ub_page_bytes >= ub_pages)
		return fail(-EINVAL,
			"%s: map a UB doorbell: offset 0x%llx is beyond page %u, the last "
			"that can be named",
			name_.c_str(), hex(offset), ub_pages - 1);
	if (desc.size == 0 || desc.size > ub_page_bytes - offset % ub_page_bytes)
		return fail(-EINVAL,
			"%s: map a UB doorbell: %llu bytes at offset 0x%llx do not lie in "
			"one page",
			name_.c_str(), hex(desc.size), hex(offset));
	return 0;
}

// ---- Ranges ----------------------------------------------------------------------------

// One that holds all that is wanted: the driver maps no page twice.
AscendDoorbells::Range *AscendDoorbells::find_range(const Range &wanted)
{
	for (Range &r : ranges_) {
		if (r.ub != wanted.ub || r.guid_low != wanted.guid_low ||
			r.guid_high != wanted.guid_high)
			continue;
		if (r.begin <= wanted.begin &&
			r.begin + r.size >= wanted.begin + wanted.size)
			return &r;
	}
	return nullptr;
}

int AscendDoorbells::map_host_range(Range &range)
{
	int rc = check_reach("host memory, and so no register of a NIC");
	if (rc)
		return rc;
	void *mapped = nullptr;
	const int error = api_.host_register(
		pointer(range.begin), range.size, hal::map_host_io, device_, &mapped);
	if (error)
		return fail_hal(error, "%s: map %llu bytes of registers at 0x%llx",
			name_.c_str(), hex(range.size), hex(range.begin));
	range.npu_addr = reinterpret_cast<uint64_t>(mapped);
	if (mapped)
		return 0;
	rc = fail(-EPROTO, "%s: the driver mapped registers at 0x%llx to address 0",
		name_.c_str(), hex(range.begin));
	(void)api_.host_unregister(pointer(range.begin), device_, hal::map_host_io);
	return rc;
}

// Of those in use the first that is free: the communication layer never gives one back.
uint32_t AscendDoorbells::free_guid_index(const Range &wanted) const
{
	uint32_t index = 0;
	for (bool again = true; again;) {
		again = false;
		for (const Range &r : ranges_) {
			if (!r.ub)
				continue;
			if (r.guid_low == wanted.guid_low &&
				r.guid_high == wanted.guid_high)
				return r.guid_index;
			if (r.guid_index == index) {
				index++;
				again = true;
			}
		}
	}
	return index;
}

namespace {

struct UbRequest {
	UbPrivate private_data;
	hal::ResourceIn in;

	UbRequest(
		uint64_t guid_low, uint64_t guid_high, uint32_t guid_index, uint64_t begin)
		: private_data{}, in{} // the driver refuses reserved fields that are not 0
	{
		const auto page = static_cast<uint32_t>(begin / ub_page_bytes);
		private_data.guid_low = guid_low;
		private_data.guid_high = guid_high;
		private_data.page = page;
		private_data.pages = 1;
		in.process_type = hal::process_cp1;
		in.resource_type = hal::resource_nda_doorbell;
		in.resource_id = ub_resource_id(page, guid_index);
		in.private_bytes = sizeof(private_data);
		in.private_data = &private_data;
	}
	UbRequest(const UbRequest &) = delete;
	UbRequest &operator=(const UbRequest &) = delete;
};

} // namespace

int AscendDoorbells::map_ub_range(Range &range)
{
	range.guid_index = free_guid_index(range);
	if (range.guid_index > guid_index_max)
		return fail(-ENOSPC, "%s: map a UB doorbell: %u UB controllers are in use",
			name_.c_str(), guid_index_max);
	UbRequest request(range.guid_low, range.guid_high, range.guid_index, range.begin);
	hal::ResourceOut out = {};
	const int error = api_.map_resource(device_, &request.in, &out);
	if (error)
		return fail_hal(error,
			"%s: map page 0x%llx of the doorbells of UB controller "
			"0x%llx%016llx",
			name_.c_str(), hex(range.begin), hex(range.guid_high),
			hex(range.guid_low));
	range.npu_addr = out.va;
	if (out.va)
		return 0;
	const int rc = fail(
		-EPROTO, "%s: the driver mapped a UB doorbell to address 0", name_.c_str());
	(void)api_.unmap_resource(device_, &request.in);
	return rc;
}

int AscendDoorbells::create_range(Range &range)
{
	return range.ub ? map_ub_range(range) : map_host_range(range);
}

int AscendDoorbells::remove_range(const Range &range)
{
	if (range.ub) {
		UbRequest request(
			range.guid_low, range.guid_high, range.guid_index, range.begin);
		const int error = api_.unmap_resource(device_, &request.in);
		return error ? fail_hal(error, "%s: unmap a UB doorbell", name_.c_str())
			     : 0;
	}
	const int error =
		api_.host_unregister(pointer(range.begin), device_, hal::map_host_io);
	return error ? fail_hal(error, "%s: unmap registers at 0x%llx", name_.c_str(),
			       hex(range.begin))
		     : 0;
}

// ---- Mappings --------------------------------------------------------------------------

int AscendDoorbells::map(const doorbell_map_desc &desc, uint64_t &addr)
{
	if (desc.type != DOORBELL_MAP_MODE_HOST_VA && !is_ub(desc))
		return fail(-EINVAL, "%s: map a doorbell: unknown descriptor type %u",
			name_.c_str(), desc.type);
	const std::lock_guard<std::mutex> lock(mutex_);
	for (Mapping &m : mappings_) {
		if (!same(m.desc, desc))
			continue;
		m.users++;
		addr = m.addr;
		return 0;
	}
	int rc = is_ub(desc) ? check_ub(desc) : check_host(desc);
	if (rc)
		return rc;
	Range wanted = {};
	const uint64_t page = is_ub(desc) ? ub_page_bytes : host_page();
	const uint64_t first = is_ub(desc) ? ub_offset(desc) : desc.hva;
	wanted.ub = is_ub(desc);
	wanted.begin = first / page * page;
	wanted.size = (first + desc.size + page - 1) / page * page - wanted.begin;
	wanted.guid_low = wanted.ub ? desc.ub_res.guid_l : 0;
	wanted.guid_high = wanted.ub ? desc.ub_res.guid_h : 0;
	// Room first: what the driver has mapped must not be forgotten.
	std::list<Mapping> mapping(1, Mapping{desc, 0, nullptr, 1});
	Range *range = find_range(wanted);
	if (!range) {
		std::list<Range> fresh(1, wanted);
		rc = create_range(fresh.front());
		if (rc)
			return rc;
		range = &fresh.front();
		ranges_.splice(ranges_.end(), fresh);
	}
	range->users++;
	mapping.front().range = range;
	mapping.front().addr = range->npu_addr + (first - range->begin);
	addr = mapping.front().addr;
	mappings_.splice(mappings_.end(), mapping);
	return 0;
}

int AscendDoorbells::unmap(uint64_t addr, const doorbell_map_desc &desc)
{
	const std::lock_guard<std::mutex> lock(mutex_);
	auto m = mappings_.begin();
	while (m != mappings_.end() && !(m->addr == addr && same(m->desc, desc)))
		++m;
	if (m == mappings_.end())
		return fail(-EINVAL,
			"%s: unmap a doorbell: 0x%llx is not mapped by this descriptor",
			name_.c_str(), hex(addr));
	if (m->users > 1) {
		m->users--;
		return 0;
	}
	// What the driver keeps stays on record, so that it may be tried again.
	if (m->range->users == 1) {
		const int rc = remove_range(*m->range);
		if (rc)
			return rc;
	}
	if (--m->range->users == 0)
		ranges_.remove_if([&](const Range &r) { return &r == m->range; });
	mappings_.erase(m);
	return 0;
}

// ---- Host memory -----------------------------------------------------------------------

int AscendDoorbells::map_memory(
	const char *what, uint64_t size, void *&host, uint64_t &addr) const
{
	int rc = check_reach(what);
	if (rc)
		return rc;
	void *memory = mmap(
		nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return fail_errno(
			-errno, "%s: %llu bytes of %s", name_.c_str(), hex(size), what);
	// A child would get a copy that nobody serves, and take the pages away from here.
	rc = madvise(memory, size, MADV_DONTFORK) ? -errno : 0;
	if (rc) {
		munmap(memory, size);
		return fail_errno(rc, "%s: keep %s from children", name_.c_str(), what);
	}
	void *mapped = nullptr;
	const int error =
		api_.host_register(memory, size, hal::map_host_memory, device_, &mapped);
	if (error) {
		munmap(memory, size);
		return fail_hal(
			error, "%s: map %llu bytes of %s", name_.c_str(), hex(size), what);
	}
	if (!mapped) {
		rc = fail(-EPROTO, "%s: the driver mapped %s to address 0", name_.c_str(),
			what);
		(void)unmap_memory(what, memory, size);
		return rc;
	}
	host = memory;
	addr = reinterpret_cast<uint64_t>(mapped);
	return 0;
}

// Memory that the NPU may still write to stays.
int AscendDoorbells::unmap_memory(const char *what, void *host, uint64_t size) const
{
	const int error = api_.host_unregister(host, device_, hal::map_host_memory);
	if (error)
		return fail_hal(error, "%s: unmap %llu bytes of %s", name_.c_str(),
			hex(size), what);
	munmap(host, size);
	return 0;
}

// ---- Slots -----------------------------------------------------------------------------

namespace {

constexpr char slot_memory[] = "host memory for proxied doorbells";

} // namespace

int AscendDoorbells::create_slot_page()
{
	std::list<SlotPage> page(
		1, SlotPage{nullptr, 0, std::vector<bool>(host_page() / slot_bytes)});
	const int rc = map_memory(
		slot_memory, host_page(), page.front().host, page.front().npu_addr);
	if (!rc)
		slot_pages_.splice(slot_pages_.end(), page);
	return rc;
}

int AscendDoorbells::alloc_slot(uint64_t &addr, uint64_t *&host)
{
	const std::lock_guard<std::mutex> lock(mutex_);
	for (int attempt = 0; attempt < 2; attempt++) {
		for (SlotPage &page : slot_pages_) {
			for (size_t i = 0; i < page.taken.size(); i++) {
				if (page.taken[i])
					continue;
				page.taken[i] = true;
				host = static_cast<uint64_t *>(page.host) +
					i * slot_bytes / sizeof(*host);
				memset(host, 0, slot_bytes);
				addr = page.npu_addr + i * slot_bytes;
				return 0;
			}
		}
		const int rc = create_slot_page();
		if (rc)
			return rc;
	}
	return -ENOMEM; // not reached: a new page has room
}

// Pages stay until the NPU goes: few are ever needed.
int AscendDoorbells::free_slot(uint64_t addr)
{
	const std::lock_guard<std::mutex> lock(mutex_);
	for (SlotPage &page : slot_pages_) {
		const uint64_t offset = addr - page.npu_addr;
		if (offset / slot_bytes >= page.taken.size() || offset % slot_bytes ||
			!page.taken[offset / slot_bytes])
			continue;
		page.taken[offset / slot_bytes] = false;
		return 0;
	}
	return fail(
		-EINVAL, "%s: 0x%llx is no slot of a doorbell", name_.c_str(), hex(addr));
}

AscendDoorbells::~AscendDoorbells()
{
	for (const Range &range : ranges_) {
		NDA_LOG(LogLevel::warn, "%s: a doorbell was not unmapped", name_.c_str());
		(void)remove_range(range);
	}
	for (const SlotPage &page : slot_pages_)
		(void)unmap_memory(slot_memory, page.host, host_page());
}

} // namespace nda
