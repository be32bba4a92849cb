// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_RXE_SRQ_H
#define NDA_RXE_SRQ_H

#include "ibv_extend.h"
#include "providers/rxe/object.h"
#include "providers/rxe/ring.h"

namespace nda::rxe {

struct Srq : ibv_srq_extend {
	static int create(ibv_context *context, const ibv_srq_init_attr_extend &attr,
		ibv_srq_extend *&out);
	static int destroy(ibv_srq_extend *extend);
	~Srq();

	ibv_srq verbs = {};
	// What libibverbs has behind its own SRQs says, as zeros, that there is nothing.
	uint64_t nothing_more[8] = {};
	EventLock lock{verbs.mutex, verbs.cond};
	Ring ring;
	bool alive = false;
	uint32_t events = 0;

private:
	Srq() : ibv_srq_extend{} {}
	int init(ibv_context *context, const ibv_srq_init_attr_extend &attr);
};

} // namespace nda::rxe

#endif
