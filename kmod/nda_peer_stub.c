// SPDX-License-Identifier: GPL-2.0
/* nda_peermem.ko where the RDMA core has no peer-memory interface. */
#include <linux/module.h>

static int __init nda_peer_init(void)
{
	pr_err("not loaded: it was built for an RDMA core without peer-memory interface "
	       "(ib_register_peer_memory_client); use dma-bufs, or build it again where "
	       "that is\n");
	return -EOPNOTSUPP;
}
module_init(nda_peer_init);

MODULE_DESCRIPTION(
	"NPU Direct Async: NPU memory by the RDMA core's peer-memory interface (missing)");
MODULE_LICENSE("GPL");
MODULE_VERSION(NDA_VERSION);
