// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/rxe/cq.h"

#include <climits>

#include <nda/hw/rxe.h>

#include "providers/rxe/command.h"
#include "providers/rxe/error.h"
#include "providers/rxe/memory.h"

namespace nda::rxe {
namespace {

int check(const ibv_cq_init_attr_extend &attr)
{
	const ibv_cq_init_attr_ex &a = attr.attr;
	if (a.cqe == 0 || a.cqe > INT_MAX)
		return fail(-EINVAL, "CQ: cqe %u", a.cqe);
	if (attr.cq_cap_flag)
		return fail(-EOPNOTSUPP, "CQ: cq_cap_flag 0x%x", attr.cq_cap_flag);
	if (attr.type != QUEUE_BUF_DMA_MODE_DEFAULT)
		return fail(-EOPNOTSUPP, "CQ: type %u: Soft-RoCE is not on UB",
			static_cast<unsigned>(attr.type));
	if (a.channel)
		return fail(-EOPNOTSUPP, "CQ: a completion channel, which no NPU arms");
	if (a.wc_flags & ~uint64_t{IBV_WC_STANDARD_FLAGS})
		return fail(-EOPNOTSUPP, "CQ: wc_flags 0x%llx",
			static_cast<unsigned long long>(a.wc_flags));
	const uint32_t flags = a.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? a.flags : 0;
	if ((a.comp_mask & ~uint32_t{IBV_CQ_INIT_ATTR_MASK_FLAGS}) ||
		(flags & ~uint32_t{IBV_CREATE_CQ_ATTR_SINGLE_THREADED}))
		return fail(
			-EOPNOTSUPP, "CQ: comp_mask 0x%x, flags 0x%x", a.comp_mask, flags);
	return 0;
}

} // namespace

int Cq::create(
	ibv_context *context, const ibv_cq_init_attr_extend &attr, ibv_cq_extend *&out)
{
	int rc = check(attr);
	if (!rc)
		rc = require_shared_memory(attr.ops, "CQ");
	if (rc)
		return rc;
	std::unique_ptr<Cq> made(new Cq);
	rc = made->init(context, attr);
	if (!rc)
		out = made.release();
	return rc;
}

int Cq::init(ibv_context *context, const ibv_cq_init_attr_extend &attr)
{
	CqAnswer answer;
	verbs.context = context;
	verbs.cq_context = attr.attr.cq_context;
	int rc = create_cq(context->cmd_fd, reinterpret_cast<uint64_t>(&verbs),
		attr.attr.cqe, attr.attr.comp_vector, answer);
	if (rc)
		return fail(rc, "CQ of %u entries: errno %d", attr.attr.cqe, -rc);
	alive = true;
	verbs.handle = answer.verbs().cq_handle;
	verbs.cqe = static_cast<int>(answer.verbs().cqe);
	rc = ring.map(context->cmd_fd, answer.rxe().mi, hw::rxe::cqe_bytes, "CQ");
	if (rc)
		return rc;
	cq = &verbs;
	cq_info = ring.describe();
	return 0;
}

int Cq::destroy(ibv_cq_extend *extend)
{
	Cq *object = static_cast<Cq *>(extend);
	return destroy_object(
		object, object->verbs.async_events_completed, [object](uint32_t &reported) {
			return destroy_cq(object->verbs.context->cmd_fd,
				object->verbs.handle, reported);
		});
}

// Of one that was not made to the end: nobody knows it yet, no event names it.
Cq::~Cq()
{
	uint32_t reported;
	if (alive)
		destroy_cq(verbs.context->cmd_fd, verbs.handle, reported);
}

} // namespace nda::rxe
