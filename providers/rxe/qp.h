// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_RXE_QP_H
#define NDA_RXE_QP_H

#include <nda/driver.h>

#include "ibv_extend.h"
#include "providers/rxe/object.h"
#include "providers/rxe/ring.h"

namespace nda::rxe {

struct Qp : ibv_qp_extend {
	// Sets attr.attr.cap to what there is, as ibv_create_qp does.
	static int create(
		ibv_context *context, ibv_qp_init_attr_extend &attr, ibv_qp_extend *&out);
	static int destroy(ibv_qp_extend *extend);
	~Qp();

	// libibverbs' own QPs are at least as large.
	union {
		ibv_qp verbs;
		ibv_qp_ex verbs_ex;
	};
	// What it has behind them says, as zeros, that there is nothing (ibv_qp_to_qp_ex).
	uint64_t nothing_more[8] = {};
	EventLock lock{verbs.mutex, verbs.cond};
	Ring sq;
	Ring rq;
	nda_software_doorbell doorbell = {};
	bool alive = false;
	uint32_t events = 0;

private:
	Qp() : ibv_qp_extend{}, verbs_ex{} {}
	int init(ibv_context *context, ibv_qp_init_attr_extend &attr);
	int map_rings(const rxe_create_qp_resp &where);
};

} // namespace nda::rxe

#endif
