// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <climits>
#include <cstring>
#include <nda/nic.h>

#include "lib/nda/attr.h"
#include "lib/nda/handles.h"
#include "lib/nda/search.h"

using namespace nda;

NDA_API nda_nic *nda_nic_open(
	const char *name, const nda_nic_attr *attr, size_t attr_size) noexcept
{
	return guard_pointer<nda_nic>([&](nda_nic *&out) {
		std::shared_ptr<Nic> nic;
		const int rc = Nic::open(name, attr, attr_size, nic);
		if (!rc)
			out = new nda_nic(std::move(nic));
		return rc;
	});
}

NDA_API int nda_nic_close(nda_nic *nic) noexcept
{
	return guard([&] {
		if (!lookup(nic))
			return -EINVAL;
		delete nic;
		return 0;
	});
}

NDA_API int nda_nic_query(nda_nic *nic, nda_nic_info *info, size_t info_size) noexcept
{
	return guard([&] {
		auto object = lookup(nic);
		if (!object)
			return -EINVAL;
		nda_nic_info found;
		const int rc = (*object)->info(found);
		return rc ? rc : write_info(info, info_size, found, "nic: query");
	});
}

NDA_API int nda_nic_gid(nda_nic *nic, uint32_t index, uint8_t gid[16]) noexcept
{
	return guard([&] {
		auto object = lookup(nic);
		if (!object)
			return -EINVAL;
		if (!gid)
			return fail(-EINVAL, "nic: gid is NULL");
		nda_nic_info info;
		int rc = (*object)->info(info);
		if (!rc && index >= info.gid_count)
			rc = fail(-EINVAL, "nic %s: GID index %u: it has %u", info.name,
				index, info.gid_count);
		std::vector<GidEntry> entries;
		if (!rc)
			rc = (*object)->query_gids(entries);
		if (rc)
			return rc;
		memset(gid, 0, sizeof(ibv_gid));
		for (const GidEntry &entry : entries)
			if (entry.index == index)
				memcpy(gid, entry.gid.raw, sizeof(entry.gid.raw));
		return 0;
	});
}

NDA_API nda_mr *nda_mr_register(nda_nic *nic, nda_npu *npu, uint64_t addr,
	uint64_t size_bytes, uint32_t access) noexcept
{
	return guard_pointer<nda_mr>([&](nda_mr *&out) {
		auto nic_object = lookup(nic);
		auto npu_object = nic_object ? lookup(npu) : nullptr;
		if (!npu_object)
			return -EINVAL;
		std::shared_ptr<Mr> mr;
		uint32_t way = NDA_MR_ANY;
		int rc = mr_way_of_environment(way);
		if (!rc)
			rc = Mr::create(*nic_object, *npu_object,
				{addr, size_bytes, 0, nullptr}, access, way, mr);
		if (!rc)
			out = new nda_mr(std::move(mr));
		return rc;
	});
}

NDA_API int nda_mr_deregister(nda_mr *mr) noexcept
{
	return guard([&] {
		if (!lookup(mr))
			return -EINVAL;
		delete mr;
		return 0;
	});
}

NDA_API int nda_mr_query(const nda_mr *mr, nda_mr_info *info, size_t info_size) noexcept
{
	return guard([&] {
		auto object = lookup(mr);
		return object ? write_info(info, info_size, (*object)->info(), "mr: query")
			      : -EINVAL;
	});
}

NDA_API int nda_mr_tried(nda_mr_info *info, size_t info_size) noexcept
{
	return guard([&] { return write_info(info, info_size, mr_tried(), "mr: tried"); });
}

NDA_API int nda_mr_check(const nda_mr *mr) noexcept
{
	return guard([&] {
		auto object = lookup(mr);
		return object ? (*object)->check() : -EINVAL;
	});
}

NDA_API uint32_t nda_mr_lkey(const nda_mr *mr) noexcept
{
	auto object = lookup(mr);
	return object ? (*object)->lkey() : 0;
}

NDA_API uint32_t nda_mr_rkey(const nda_mr *mr) noexcept
{
	auto object = lookup(mr);
	return object ? (*object)->rkey() : 0;
}

NDA_API int nda_mr_token(
	const nda_mr *mr, uint32_t *token_id, uint32_t *token_value) noexcept
{
	return guard([&] {
		auto object = lookup(mr);
		if (!object)
			return -EINVAL;
		if (!token_id || !token_value)
			return fail(-EINVAL, "mr: token_id or token_value is NULL");
		if (!(*object)->is_segment())
			return fail(-EOPNOTSUPP, "mr: it has keys, not a token");
		*token_id = (*object)->rkey_id();
		*token_value = (*object)->rkey();
		return 0;
	});
}

NDA_API int nda_nic_eid(nda_nic *nic, uint8_t eid[16]) noexcept
{
	return guard([&] {
		auto object = lookup(nic);
		if (!object)
			return -EINVAL;
		if (!eid)
			return fail(-EINVAL, "nic: eid is NULL");
		return (*object)->query_eid(eid);
	});
}

NDA_API int nda_search_report(char *text, size_t size_bytes) noexcept
{
	return guard([&] {
		if (!text && size_bytes)
			return fail(-EINVAL, "search report: text is NULL");
		const std::string report = search_report();
		if (size_bytes) {
			const size_t n = report.copy(text, size_bytes - 1);
			text[n] = '\0';
		}
		return report.size() > INT_MAX ? INT_MAX : static_cast<int>(report.size());
	});
}
