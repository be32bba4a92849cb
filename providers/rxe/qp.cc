// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/rxe/qp.h"

#include <nda/hw/rxe.h>

#include "providers/rxe/command.h"
#include "providers/rxe/error.h"
#include "providers/rxe/memory.h"

namespace nda::rxe {
namespace {

constexpr uint32_t recv_wqe_bytes = 40; // without SGEs

int check(const ibv_context *context, const ibv_qp_init_attr_extend &attr)
{
	const ibv_qp_init_attr &a = attr.attr;
	if (!attr.pd || attr.pd->context != context)
		return fail(-EINVAL, "QP: no PD of this context");
	if (!a.send_cq || a.send_cq->context != context || !a.recv_cq ||
		a.recv_cq->context != context)
		return fail(-EINVAL, "QP: not two CQs of this context");
	if (a.srq && a.srq->context != context)
		return fail(-EINVAL, "QP: an SRQ of another context");
	if (a.cap.max_send_wr == 0 || a.cap.max_send_sge == 0)
		return fail(-EINVAL, "QP: max_send_wr %u, max_send_sge %u",
			a.cap.max_send_wr, a.cap.max_send_sge);
	if (a.qp_type != IBV_QPT_RC)
		return fail(-EOPNOTSUPP, "QP: qp_type %u: only RC",
			static_cast<unsigned>(a.qp_type));
	if (attr.qp_cap_flag)
		return fail(-EOPNOTSUPP,
			"QP: qp_cap_flag 0x%x: a WQE is not written to Soft-RoCE directly",
			attr.qp_cap_flag);
	if (attr.type != QUEUE_BUF_DMA_MODE_DEFAULT)
		return fail(-EOPNOTSUPP, "QP: type %u: Soft-RoCE is not on UB",
			static_cast<unsigned>(attr.type));
	return 0;
}

int ring(void *cookie)
{
	const Qp *qp = static_cast<const Qp *>(cookie);
	return kick_send_queue(qp->verbs.context->cmd_fd, qp->verbs.handle);
}

} // namespace

int Qp::create(ibv_context *context, ibv_qp_init_attr_extend &attr, ibv_qp_extend *&out)
{
	int rc = check(context, attr);
	if (!rc)
		rc = require_shared_memory(attr.ops, "QP");
	if (rc)
		return rc;
	std::unique_ptr<Qp> made(new Qp);
	rc = made->init(context, attr);
	if (!rc)
		out = made.release();
	return rc;
}

int Qp::init(ibv_context *context, ibv_qp_init_attr_extend &attr)
{
	ibv_qp_init_attr &a = attr.attr;
	verbs.context = context;
	verbs.qp_context = a.qp_context;
	verbs.pd = attr.pd;
	verbs.send_cq = a.send_cq;
	verbs.recv_cq = a.recv_cq;
	verbs.srq = a.srq;
	verbs.qp_type = a.qp_type;
	verbs.state = IBV_QPS_RESET;
	QpAnswer answer;
	int rc = create_qp(context->cmd_fd, reinterpret_cast<uint64_t>(&verbs),
		attr.pd->handle, a, answer);
	if (rc)
		return fail(rc, "QP of %u and %u WQEs with %u and %u SGEs: errno %d",
			a.cap.max_send_wr, a.cap.max_recv_wr, a.cap.max_send_sge,
			a.cap.max_recv_sge, -rc);
	alive = true;
	verbs.handle = answer.verbs().qp_handle;
	verbs.qp_num = answer.verbs().qpn;
	rc = map_rings(answer.rxe());
	if (rc)
		return rc;
	doorbell = {NDA_SOFTWARE_DOORBELL_MAGIC, ring, this};
	qp = &verbs;
	sq_info.resv[0] = reinterpret_cast<uint64_t>(&doorbell);
	a.cap.max_send_wr = answer.verbs().max_send_wr;
	a.cap.max_recv_wr = answer.verbs().max_recv_wr;
	a.cap.max_send_sge = answer.verbs().max_send_sge;
	a.cap.max_recv_sge = answer.verbs().max_recv_sge;
	a.cap.max_inline_data = answer.verbs().max_inline_data;
	return 0;
}

int Qp::map_rings(const rxe_create_qp_resp &where)
{
	const int fd = verbs.context->cmd_fd;
	int rc = sq.map(fd, where.sq_mi, hw::rxe::wqe_bytes + hw::rxe::sge_bytes, "QP: SQ");
	if (rc)
		return rc;
	sq_info = sq.describe();
	if (verbs.srq)
		return 0;
	rc = rq.map(fd, where.rq_mi, recv_wqe_bytes, "QP: RQ");
	if (!rc)
		rq_info = rq.describe();
	return rc;
}

int Qp::destroy(ibv_qp_extend *extend)
{
	Qp *object = static_cast<Qp *>(extend);
	return destroy_object(
		object, object->verbs.events_completed, [object](uint32_t &reported) {
			return destroy_qp(object->verbs.context->cmd_fd,
				object->verbs.handle, reported);
		});
}

// Of one that was not made to the end: nobody knows it yet, no event names it.
Qp::~Qp()
{
	uint32_t reported;
	if (alive)
		destroy_qp(verbs.context->cmd_fd, verbs.handle, reported);
}

} // namespace nda::rxe
