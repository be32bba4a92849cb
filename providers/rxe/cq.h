// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_RXE_CQ_H
#define NDA_RXE_CQ_H

#include "ibv_extend.h"
#include "providers/rxe/object.h"
#include "providers/rxe/ring.h"

namespace nda::rxe {

struct Cq : ibv_cq_extend {
	static int create(ibv_context *context, const ibv_cq_init_attr_extend &attr,
		ibv_cq_extend *&out);
	static int destroy(ibv_cq_extend *extend);
	~Cq();

	// libibverbs' own CQs are at least as large.
	union {
		ibv_cq verbs;
		ibv_cq_ex verbs_ex;
	};
	EventLock lock{verbs.mutex, verbs.cond};
	Ring ring;
	bool alive = false;
	uint32_t events = 0;

private:
	Cq() : ibv_cq_extend{}, verbs_ex{} {}
	int init(ibv_context *context, const ibv_cq_init_attr_extend &attr);
};

} // namespace nda::rxe

#endif
