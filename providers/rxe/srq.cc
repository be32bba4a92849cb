// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/rxe/srq.h"

#include "providers/rxe/command.h"
#include "providers/rxe/error.h"
#include "providers/rxe/memory.h"

namespace nda::rxe {
namespace {

constexpr uint32_t recv_wqe_bytes = 40; // without SGEs, of which there is one at least
constexpr uint32_t sge_bytes = 16;

int check(const ibv_context *context, const ibv_srq_init_attr_extend &attr)
{
	if (!attr.pd || attr.pd->context != context)
		return fail(-EINVAL, "SRQ: no PD of this context");
	if (attr.attr.attr.max_wr == 0 || attr.attr.attr.max_sge == 0)
		return fail(-EINVAL, "SRQ: max_wr %u, max_sge %u", attr.attr.attr.max_wr,
			attr.attr.attr.max_sge);
	if (attr.srq_cap_flag || attr.comp_mask)
		return fail(-EOPNOTSUPP, "SRQ: srq_cap_flag 0x%x, comp_mask 0x%x",
			attr.srq_cap_flag, attr.comp_mask);
	if (attr.type != QUEUE_BUF_DMA_MODE_DEFAULT)
		return fail(-EOPNOTSUPP, "SRQ: type %u: Soft-RoCE is not on UB",
			static_cast<unsigned>(attr.type));
	return 0;
}

} // namespace

int Srq::create(
	ibv_context *context, const ibv_srq_init_attr_extend &attr, ibv_srq_extend *&out)
{
	int rc = check(context, attr);
	if (!rc)
		rc = require_shared_memory(attr.ops, "SRQ");
	if (rc)
		return rc;
	std::unique_ptr<Srq> made(new Srq);
	rc = made->init(context, attr);
	if (!rc)
		out = made.release();
	return rc;
}

int Srq::init(ibv_context *context, const ibv_srq_init_attr_extend &attr)
{
	SrqAnswer answer;
	verbs.context = context;
	verbs.srq_context = attr.attr.srq_context;
	verbs.pd = attr.pd;
	int rc = create_srq(context->cmd_fd, reinterpret_cast<uint64_t>(&verbs),
		attr.pd->handle, attr.attr.attr, answer);
	if (rc)
		return fail(rc, "SRQ of %u entries with %u SGEs: errno %d",
			attr.attr.attr.max_wr, attr.attr.attr.max_sge, -rc);
	alive = true;
	verbs.handle = answer.verbs().srq_handle;
	rc = ring.map(context->cmd_fd, answer.rxe().mi, recv_wqe_bytes + sge_bytes, "SRQ");
	if (rc)
		return rc;
	srq = &verbs;
	srq_info = ring.describe();
	return 0;
}

int Srq::destroy(ibv_srq_extend *extend)
{
	Srq *object = static_cast<Srq *>(extend);
	return destroy_object(
		object, object->verbs.events_completed, [object](uint32_t &reported) {
			return destroy_srq(object->verbs.context->cmd_fd,
				object->verbs.handle, reported);
		});
}

// Of one that was not made to the end: nobody knows it yet, no event names it.
Srq::~Srq()
{
	uint32_t reported;
	if (alive)
		destroy_srq(verbs.context->cmd_fd, verbs.handle, reported);
}

} // namespace nda::rxe
