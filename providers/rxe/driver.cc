// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The extension driver of the kernel's rdma_rxe, which libibv_extend finds by the name of
// the verbs driver. It makes QPs, CQs and SRQs by the kernel's public interface, whose
// rings are the kernel's memory, mapped: an NPU drives them if it shares the host's address
// space. There is no doorbell register; nda/driver.h says how a QP's send queue is rung
// instead.
//
// A QP made here can be modified and queried by ibv_modify_qp and ibv_query_qp. Its queues
// must not be used, and no object destroyed, by libibverbs, whose rxe driver takes what it
// is given for its own.
//
// The UDP source port is no attribute of its own here: the kernel works it out when the
// address vector is set, on the way to RTR, from ah_attr.grh.flow_label. Label L gives port
// 0xc000 | ((L ^ L >> 14) & 0x3fff), and 0 one that depends on both QP numbers: to have
// port P of 0xc001 to 0xffff, set the label to P & 0x3fff. Older kernels are said to take
// one by the QP number alone, unverified.
#include "providers/rxe/cq.h"
#include "providers/rxe/error.h"
#include "providers/rxe/qp.h"
#include "providers/rxe/srq.h"

namespace nda::rxe {
namespace {

ibv_qp_extend *create_qp_extend(ibv_context *context, ibv_qp_init_attr_extend *attr)
{
	return guard_pointer<ibv_qp_extend>(
		[&](ibv_qp_extend *&qp) { return Qp::create(context, *attr, qp); });
}

ibv_cq_extend *create_cq_extend(ibv_context *context, ibv_cq_init_attr_extend *attr)
{
	return guard_pointer<ibv_cq_extend>(
		[&](ibv_cq_extend *&cq) { return Cq::create(context, *attr, cq); });
}

ibv_srq_extend *create_srq_extend(ibv_context *context, ibv_srq_init_attr_extend *attr)
{
	return guard_pointer<ibv_srq_extend>(
		[&](ibv_srq_extend *&srq) { return Srq::create(context, *attr, srq); });
}

int query_device(ibv_context *, ibv_device_attr_extend *attr)
{
	*attr = {};
	attr->ext_cap = IBV_EXTEND_DEV_NDR | IBV_EXTEND_DEV_NDA;
	return 0;
}

int modify_qp(ibv_context *, ibv_qp_attr_extend *, int mask)
{
	return fail(-EOPNOTSUPP,
		"modify QP: mask 0x%x: Soft-RoCE has no such attribute; the flow label "
		"sets "
		"the UDP source port",
		static_cast<unsigned>(mask));
}

int query_qp(ibv_context *, ibv_qp_attr_extend *, int mask)
{
	return fail(-EOPNOTSUPP, "query QP: mask 0x%x: Soft-RoCE has no such attribute",
		static_cast<unsigned>(mask));
}

constexpr ibv_context_extend_ops make_ops()
{
	ibv_context_extend_ops ops = {};
	ops.version = IBV_EXTEND_DRIVER_VERSION_V2;
	ops.create_qp = create_qp_extend;
	ops.create_cq = create_cq_extend;
	ops.create_srq = create_srq_extend;
	ops.destroy_qp = Qp::destroy;
	ops.destroy_cq = Cq::destroy;
	ops.destroy_srq = Srq::destroy;
	ops.query_device = query_device;
	ops.modify_qp = modify_qp;
	ops.query_qp = query_qp;
	return ops;
}

constexpr ibv_context_extend_ops context_ops = make_ops();

ibv_context_extend *alloc_context(ibv_context *context)
{
	return guard_pointer<ibv_context_extend>([&](ibv_context_extend *&extend) {
		extend = new ibv_context_extend{context, &context_ops};
		return 0;
	});
}

void free_context(ibv_context_extend *extend)
{
	delete extend;
}

constexpr verbs_device_extend_ops driver = {"rxe", alloc_context, free_context};

PROVIDER_EXTEND_DRIVER(driver)

} // namespace
} // namespace nda::rxe
