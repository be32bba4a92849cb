// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The extension driver that libibv_extend finds: registers as this library is loaded.
#include "providers/soft/error.h"
#include "providers/soft/nic.h"
#include "providers/soft/queues.h"

namespace nda::soft {
namespace {

// Their queues come through the platform's table.
int check_not_jetties(ibv_context *context)
{
	Nic *nic = Nic::find(context);
	if (!nic)
		return -EINVAL;
	return nic->format().layout().jetties
		? fail(-EOPNOTSUPP, "a NIC of jetties has neither QPs nor CQs")
		: 0;
}

ibv_qp_extend *create_qp(ibv_context *context, ibv_qp_init_attr_extend *attr)
{
	return guard_pointer<ibv_qp_extend>([&](ibv_qp_extend *&qp) {
		int rc = check_not_jetties(context);
		return rc ? rc : Qp::create(context, *attr, qp);
	});
}

ibv_cq_extend *create_cq(ibv_context *context, ibv_cq_init_attr_extend *attr)
{
	return guard_pointer<ibv_cq_extend>([&](ibv_cq_extend *&cq) {
		int rc = check_not_jetties(context);
		return rc ? rc : Cq::create(context, *attr, cq);
	});
}

ibv_srq_extend *create_srq(ibv_context *context, ibv_srq_init_attr_extend *attr)
{
	return guard_pointer<ibv_srq_extend>([&](ibv_srq_extend *&srq) {
		int rc = check_not_jetties(context);
		return rc ? rc : Srq::create(context, *attr, srq);
	});
}

int destroy_qp(ibv_qp_extend *qp)
{
	return guard([&] { return Qp::destroy(qp); });
}

int destroy_cq(ibv_cq_extend *cq)
{
	return guard([&] { return Cq::destroy(cq); });
}

int destroy_srq(ibv_srq_extend *srq)
{
	return guard([&] { return Srq::destroy(srq); });
}

// Runs body(qp) with the QP of this NIC behind a pointer.
template <class Body>
int with_qp(ibv_context *context, ibv_qp *qp, Body &&body)
{
	return guard([&] {
		if (!Nic::find(context))
			return -EINVAL;
		if (!qp || qp->context != context)
			return fail(-EINVAL, "QP: %p is none of this NIC's",
				static_cast<void *>(qp));
		return body(Qp::of(qp));
	});
}

int modify_qp(ibv_context *context, ibv_qp_attr_extend *attr, int mask)
{
	return with_qp(
		context, attr->qp, [&](Qp &qp) { return qp.modify_extended(*attr, mask); });
}

int query_qp(ibv_context *context, ibv_qp_attr_extend *attr, int mask)
{
	return with_qp(
		context, attr->qp, [&](Qp &qp) { return qp.query_extended(*attr, mask); });
}

int query_qp_supported_hyroce_feature(ibv_context *context, ibv_qp *qp, uint32_t sl,
	uint32_t tc, ibv_hyroce_feature *feature)
{
	return with_qp(
		context, qp, [&](Qp &own) { return own.offer_feature(sl, tc, *feature); });
}

int nego_qp_hyroce_feature(ibv_context *context, ibv_qp *qp, const ibv_hyroce_feature *in,
	ibv_hyroce_feature *out, uint32_t *need_more_nego)
{
	return with_qp(context, qp,
		[&](Qp &own) { return own.negotiate_feature(*in, *out, *need_more_nego); });
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
	ops.version = IBV_EXTEND_DRIVER_VERSION_V3;
	ops.create_qp = create_qp;
	ops.create_cq = create_cq;
	ops.create_srq = create_srq;
	ops.destroy_qp = destroy_qp;
	ops.destroy_cq = destroy_cq;
	ops.destroy_srq = destroy_srq;
	ops.query_device = query_device;
	ops.modify_qp = modify_qp;
	ops.query_qp = query_qp;
	ops.query_qp_supported_hyroce_feature = query_qp_supported_hyroce_feature;
	ops.nego_qp_hyroce_feature = nego_qp_hyroce_feature;
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
