// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A driver of libibv_extend for tests, one per shared object. The source that includes this
// says what it is called (EXTEND_DRIVER_NAME) and how to tell it from others of that name
// (EXTEND_DRIVER_CAP, which query_device reports).
#ifndef NDA_TESTS_MOCK_EXTEND_DRIVER_H
#define NDA_TESTS_MOCK_EXTEND_DRIVER_H

#include "ibv_extend.h"

#include <new>

namespace extend_mock {

inline int query_device(ibv_context *, ibv_device_attr_extend *attr)
{
	attr->ext_cap = EXTEND_DRIVER_CAP;
	return 0;
}

inline ibv_qp_extend *create_qp(ibv_context *, ibv_qp_init_attr_extend *)
{
	return new (std::nothrow) ibv_qp_extend();
}

inline int destroy_qp(ibv_qp_extend *qp)
{
	delete qp;
	return 0;
}

inline ibv_context_extend_ops make_ops()
{
	ibv_context_extend_ops ops = {};
	ops.version = IBV_EXTEND_DRIVER_VERSION_V3;
	ops.query_device = query_device;
	ops.create_qp = create_qp;
	ops.destroy_qp = destroy_qp;
	return ops;
}

inline ibv_context_extend *alloc_context(ibv_context *context)
{
	static const ibv_context_extend_ops ops = make_ops();
	return new (std::nothrow) ibv_context_extend{context, &ops};
}

inline void free_context(ibv_context_extend *context)
{
	delete context;
}

static const verbs_device_extend_ops driver = {
	EXTEND_DRIVER_NAME, alloc_context, free_context};
PROVIDER_EXTEND_DRIVER(driver)

} // namespace extend_mock

#endif
