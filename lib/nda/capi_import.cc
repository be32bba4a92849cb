// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <nda/import.h>

#include "lib/nda/attr.h"
#include "lib/nda/handles.h"

using namespace nda;

NDA_API nda_import *nda_channel_import(nda_npu *npu, const nda_import_peer *peers,
	uint32_t n_pes, const nda_import_attr *attr, size_t attr_size) noexcept
{
	return guard_pointer<nda_import>([&](nda_import *&out) {
		auto object = lookup(npu);
		if (!object)
			return -EINVAL;
		if (!peers || !attr)
			return fail(
				-EINVAL, "import: %s is NULL", peers ? "attr" : "peers");
		nda_import_attr a;
		int rc = read_attr(a, attr, attr_size, 0, "import");
		std::shared_ptr<Import> import;
		if (!rc) {
			rc = Import::create(*object, peers, n_pes, a, import);
			if (rc)
				return fail_in(rc, "import");
			out = new nda_import(std::move(import));
		}
		return rc;
	});
}

NDA_API uint64_t nda_import_table(const nda_import *import) noexcept
{
	auto object = lookup(import);
	return object ? (*object)->table() : 0;
}

NDA_API int nda_import_query(const nda_import *import, uint32_t pe, nda_import_info *info,
	size_t info_size) noexcept
{
	return guard([&] {
		auto object = lookup(import);
		if (!object)
			return -EINVAL;
		nda_import_info found = {};
		const int rc = (*object)->query(pe, found);
		return rc ? rc : write_info(info, info_size, found, "import");
	});
}

NDA_API int nda_import_release(nda_import *import) noexcept
{
	return guard([&] {
		auto object = lookup(import);
		if (!object)
			return -EINVAL;
		const int rc = (*object)->give_back();
		if (rc != -EBUSY)
			delete import;
		return rc;
	});
}
