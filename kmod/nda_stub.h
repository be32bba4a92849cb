/* SPDX-License-Identifier: GPL-2.0 */
/* What all of a module is that cannot be built for a kernel. */
#ifndef NDA_STUB_H
#define NDA_STUB_H

#include <linux/module.h>

static int __init nda_stub_init(void)
{
	pr_err("not loaded: it could not be built for this kernel or its RDMA core; the log of the "
	       "build says why\n");
	return -EOPNOTSUPP;
}
module_init(nda_stub_init);

MODULE_LICENSE("GPL");
MODULE_VERSION(NDA_VERSION);

#endif
