// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// As the one open driver does: version V2 with modify_qp alone, and positive errnos.
#include "ibv_extend.h"

#include <cerrno>
#include <new>

namespace {

int modify_qp(ibv_context *, ibv_qp_attr_extend *attr, int)
{
	return attr->udp_src_port ? 0 : EINVAL;
}

ibv_context_extend *alloc_context(ibv_context *context)
{
	static ibv_context_extend_ops ops;
	ops.version = IBV_EXTEND_DRIVER_VERSION_V2;
	ops.modify_qp = modify_qp;
	return new (std::nothrow) ibv_context_extend{context, &ops};
}

void free_context(ibv_context_extend *context)
{
	delete context;
}

const verbs_device_extend_ops driver = {"extend_modify", alloc_context, free_context};

} // namespace

PROVIDER_EXTEND_DRIVER(driver)
