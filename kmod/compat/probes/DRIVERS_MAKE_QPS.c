// SPDX-License-Identifier: GPL-2.0
/* Before 5.15 a QP's structure is made by the driver, not by the RDMA core. */
#include <rdma/ib_verbs.h>
void probe(struct ib_device_ops *ops,
	   struct ib_qp *(*create)(struct ib_pd *pd, struct ib_qp_init_attr *attr,
				   struct ib_udata *udata));
void probe(struct ib_device_ops *ops,
	   struct ib_qp *(*create)(struct ib_pd *pd, struct ib_qp_init_attr *attr,
				   struct ib_udata *udata))
{
	ops->create_qp = create;
}
