// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The extension driver that libibv_extend finds: registers as this library is loaded.
#include "providers/soft/error.h"
#include "providers/soft/nic.h"
#include "providers/soft/queues.h"

namespace nda::soft {
namespace {

ibv_qp_extend *create_qp(ibv_context *context, ibv_qp_init_attr_extend *attr)
{
	return guard_pointer<ibv_qp_extend>(
		[&](ibv_qp_extend *&qp) { return Qp::create(context, *attr, qp); });
}

ibv_cq_extend *create_cq(ibv_context *context, ibv_cq_init_attr_extend *attr)
{
	return guard_pointer<ibv_cq_extend>(
		[&](ibv_cq_extend *&cq) { return Cq::create(context, *attr, cq); });
}

int destroy_qp(ibv_qp_extend *qp)
{
	return guard([&] { return Qp::destroy(qp); });
}

int destroy_cq(ibv_cq_extend *cq)
{
	return guard([&] { return Cq::destroy(cq); });
}

int query_device(ibv_context *context, ibv_device_attr_extend *attr)
{
	if (!Nic::find(context))
		return -EINVAL;
	*attr = {};
	attr->ext_cap = IBV_EXTEND_DEV_NDR | IBV_EXTEND_DEV_NDA;
	return 0;
}

constexpr ibv_context_extend_ops make_ops()
{
	ibv_context_extend_ops ops = {};
	ops.version = IBV_EXTEND_DRIVER_VERSION_V1;
	ops.create_qp = create_qp;
	ops.create_cq = create_cq;
	ops.destroy_qp = destroy_qp;
	ops.destroy_cq = destroy_cq;
	ops.query_device = query_device;
	return ops;
}

constexpr ibv_context_extend_ops context_ops = make_ops();

ibv_context_extend *alloc_context(ibv_context *context)
{
	return guard_pointer<ibv_context_extend>([&](ibv_context_extend *&extend) {
		Nic *nic = Nic::find(context);
		if (!nic)
			return -EINVAL;
		extend = new ibv_context_extend{context, &context_ops};
		nic->hold();
		return 0;
	});
}

void free_context(ibv_context_extend *extend)
{
	Nic *nic = Nic::find(extend->context);
	if (nic)
		nic->drop();
	delete extend;
}

constexpr verbs_device_extend_ops driver = {"nda_soft", alloc_context, free_context};

PROVIDER_EXTEND_DRIVER(driver)

} // namespace
} // namespace nda::soft
