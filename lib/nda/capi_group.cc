// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <nda/group.h>

#include "lib/nda/attr.h"
#include "lib/nda/bootstrap.h"
#include "lib/nda/handles.h"

using namespace nda;

namespace {

int check_bootstrap(const nda_bootstrap *b)
{
	if (!b)
		return fail(-EINVAL, "group: bootstrap is NULL");
	if (!b->allgather || !b->barrier)
		return fail(-EINVAL, "group: a callback of the bootstrap is NULL");
	if (b->n_pes == 0 || b->n_pes > pes_max || b->pe >= b->n_pes)
		return fail(
			-EINVAL, "group: the bootstrap says PE %u of %u", b->pe, b->n_pes);
	return 0;
}

int collect_nics(nda_nic *const *handles, uint32_t n, Group::Nics &out)
{
	if (!handles || n == 0 || n > group_nics_max)
		return fail(-EINVAL, "nics is %s, n_nics is %u: 1..%u are possible",
			handles ? "given" : "NULL", n, group_nics_max);
	for (uint32_t i = 0; i < n; i++) {
		auto nic = lookup(handles[i]);
		if (!nic)
			return fail_in(-EINVAL, "nics[%u]", i);
		out.push_back(*nic);
	}
	return 0;
}

int region_local(const Region &region, const Way &way, uint32_t pe, nda_region *out)
{
	return out ? region.local(way, pe, *out) : fail(-EINVAL, "region: out is NULL");
}

int region_import(const Group &group, const Way &way,
	const uint8_t desc[NDA_REGION_DESC_BYTES], nda_region *out)
{
	if (!desc || !out)
		return fail(-EINVAL, "region: %s is NULL", desc ? "out" : "desc");
	return import_region(group.shape(), way, desc, *out);
}

} // namespace

NDA_API nda_group *nda_group_create(const nda_bootstrap *bootstrap, nda_npu *npu,
	nda_nic *const *nics, uint32_t n_nics, const nda_group_attr *attr,
	size_t attr_size) noexcept
{
	return guard_pointer<nda_group>([&](nda_group *&out) {
		int rc = check_bootstrap(bootstrap);
		if (rc)
			return rc;
		// Wrong arguments of one PE are told to all.
		Group::Nics objects;
		auto npu_object = lookup(npu);
		const int local = npu_object
			? guard([&] { return collect_nics(nics, n_nics, objects); })
			: -EINVAL;
		std::shared_ptr<Group> group;
		rc = Group::create(*bootstrap, local, npu_object ? *npu_object : nullptr,
			std::move(objects), attr, attr_size, group);
		if (!rc)
			out = new nda_group(std::move(group));
		return rc;
	});
}

NDA_API int nda_group_destroy(nda_group *group) noexcept
{
	return guard([&] {
		auto object = lookup(group);
		if (!object)
			return -EINVAL;
		if ((*object)->npu().busy())
			return fail(-EBUSY, "group: destroy: a kernel runs");
		// Until every PE is here, somebody may still reach into this heap.
		const int rc = (*object)->barrier();
		delete group;
		return rc;
	});
}

NDA_API uint32_t nda_group_pe(const nda_group *group) noexcept
{
	auto object = lookup(group);
	return object ? (*object)->pe() : 0;
}

NDA_API uint32_t nda_group_n_pes(const nda_group *group) noexcept
{
	auto object = lookup(group);
	return object ? (*object)->n_pes() : 0;
}

NDA_API int nda_group_barrier(nda_group *group) noexcept
{
	return guard([&] {
		auto object = lookup(group);
		return object ? (*object)->barrier() : -EINVAL;
	});
}

NDA_API int nda_group_abort(nda_group *group, uint32_t value) noexcept
{
	return guard([&] {
		auto object = lookup(group);
		return object ? (*object)->abort(value) : -EINVAL;
	});
}

NDA_API int nda_group_repair(nda_group *group) noexcept
{
	return guard([&] {
		auto object = lookup(group);
		return object ? (*object)->repair() : -EINVAL;
	});
}

NDA_API int nda_group_heap_alloc(
	nda_group *group, uint64_t size_bytes, uint64_t *addr) noexcept
{
	return guard([&] {
		auto object = lookup(group);
		if (!object)
			return -EINVAL;
		if (!addr)
			return fail(-EINVAL, "group: heap alloc: addr is NULL");
		return (*object)->heap_alloc(size_bytes, *addr);
	});
}

NDA_API int nda_group_heap_free(nda_group *group, uint64_t addr) noexcept
{
	return guard([&] {
		auto object = lookup(group);
		return object ? (*object)->heap_free(addr) : -EINVAL;
	});
}

NDA_API int nda_group_heap_query(
	const nda_group *group, uint32_t nic, nda_mr_info *info, size_t info_size) noexcept
{
	return guard([&] {
		auto object = lookup(group);
		if (!object)
			return -EINVAL;
		nda_mr_info found = {};
		const int rc = (*object)->heap_info(nic, found);
		return rc ? rc : write_info(info, info_size, found, "group: heap query");
	});
}

NDA_API int nda_group_check(const nda_group *group) noexcept
{
	return guard([&] {
		auto object = lookup(group);
		return object ? (*object)->check() : -EINVAL;
	});
}

NDA_API uint64_t nda_group_heap_base(const nda_group *group) noexcept
{
	auto object = lookup(group);
	return object ? (*object)->heap_base() : 0;
}

NDA_API uint64_t nda_group_table(const nda_group *group) noexcept
{
	return nda_group_table_of(group, NDA_FORMAT_NONE);
}

NDA_API uint64_t nda_group_table_of(const nda_group *group, nda_format format) noexcept
{
	auto object = lookup(group);
	uint64_t addr = 0;
	return object && !(*object)->table(format, addr) ? addr : 0;
}

NDA_API int nda_group_region_register(nda_group *group, uint64_t addr, uint64_t size_bytes,
	uint32_t access, nda_group_region **region) noexcept
{
	return guard([&] {
		auto object = lookup(group);
		if (!object)
			return -EINVAL;
		if (!region)
			return fail(-EINVAL, "group: region is NULL");
		std::shared_ptr<Region> made;
		const int rc = (*object)->register_region(addr, size_bytes, access, made);
		if (!rc)
			*region = new nda_group_region(std::move(made));
		return rc;
	});
}

NDA_API int nda_group_region_deregister(nda_group_region *region) noexcept
{
	return guard([&] {
		if (!lookup(region))
			return -EINVAL;
		delete region;
		return 0;
	});
}

NDA_API int nda_group_region_query(const nda_group_region *region, uint32_t nic,
	nda_mr_info *info, size_t info_size) noexcept
{
	return guard([&] {
		auto object = lookup(region);
		if (!object)
			return -EINVAL;
		nda_mr_info found = {};
		const int rc = (*object)->query(nic, found);
		return rc ? rc : write_info(info, info_size, found, "region: query");
	});
}

NDA_API int nda_group_region_check(const nda_group_region *region) noexcept
{
	return guard([&] {
		auto object = lookup(region);
		return object ? (*object)->check() : -EINVAL;
	});
}

NDA_API int nda_group_region_export(
	nda_group_region *region, uint8_t desc[NDA_REGION_DESC_BYTES]) noexcept
{
	return guard([&] {
		auto object = lookup(region);
		if (!object)
			return -EINVAL;
		if (!desc)
			return fail(-EINVAL, "region: desc is NULL");
		const int rc = (*object)->check();
		if (!rc)
			(*object)->export_desc(desc);
		return rc;
	});
}

NDA_API int nda_group_region_local(
	nda_group_region *region, uint32_t pe, nda_region *out) noexcept
{
	return guard([&] {
		auto object = lookup(region);
		return object ? region_local(**object, (*object)->usual_way(), pe, out)
			      : -EINVAL;
	});
}

NDA_API int nda_group_region_local_of(nda_group_region *region, nda_format format,
	uint32_t relay, uint32_t pe, nda_region *out) noexcept
{
	return guard([&] {
		auto object = lookup(region);
		return object ? region_local(**object, {format, relay}, pe, out) : -EINVAL;
	});
}

NDA_API int nda_group_region_import(nda_group *group,
	const uint8_t desc[NDA_REGION_DESC_BYTES], nda_region *out) noexcept
{
	return guard([&] {
		auto object = lookup(group);
		return object ? region_import(**object, {NDA_FORMAT_NONE, (*object)->pe()},
					desc, out)
			      : -EINVAL;
	});
}

NDA_API int nda_group_region_import_of(nda_group *group, nda_format format, uint32_t relay,
	const uint8_t desc[NDA_REGION_DESC_BYTES], nda_region *out) noexcept
{
	return guard([&] {
		auto object = lookup(group);
		return object ? region_import(**object, {format, relay}, desc, out)
			      : -EINVAL;
	});
}

NDA_API int nda_group_view_lend(nda_group *group, uint32_t core, uint64_t *addr) noexcept
{
	return guard([&] {
		auto object = lookup(group);
		if (!object)
			return -EINVAL;
		if (!addr)
			return fail(-EINVAL, "group: view: addr is NULL");
		return (*object)->view_lend(core, *addr);
	});
}

NDA_API int nda_group_view_return(nda_group *group, uint32_t core) noexcept
{
	return guard([&] {
		auto object = lookup(group);
		return object ? (*object)->view_return(core) : -EINVAL;
	});
}

NDA_API int nda_group_queue_error(
	nda_group *group, uint32_t pe, uint32_t owner, nda_queue_error *error) noexcept
{
	return nda_group_queue_error_of(group, NDA_FORMAT_NONE, pe, owner, error);
}

NDA_API int nda_group_queue_error_of(nda_group *group, nda_format format, uint32_t pe,
	uint32_t owner, nda_queue_error *error) noexcept
{
	return guard([&] {
		auto object = lookup(group);
		if (!object)
			return -EINVAL;
		if (!error)
			return fail(-EINVAL, "group: queue error: error is NULL");
		return (*object)->queue_error(format, pe, owner, *error);
	});
}

NDA_API int nda_group_queue_query(nda_group *group, uint32_t pe, uint32_t owner,
	nda_channel_info *info, size_t info_size) noexcept
{
	return nda_group_queue_query_of(group, NDA_FORMAT_NONE, pe, owner, info, info_size);
}

NDA_API int nda_group_queue_query_of(nda_group *group, nda_format format, uint32_t pe,
	uint32_t owner, nda_channel_info *info, size_t info_size) noexcept
{
	return guard([&] {
		auto object = lookup(group);
		if (!object)
			return -EINVAL;
		nda_channel_info found = {};
		const int rc = (*object)->queue_info(format, pe, owner, found);
		return rc ? rc : write_info(info, info_size, found, "group: queue query");
	});
}
