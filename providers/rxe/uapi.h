// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What Soft-RoCE and its users have in common, as the kernel's headers have it.
#ifndef NDA_RXE_UAPI_H
#define NDA_RXE_UAPI_H

#include <linux/version.h>
#include <rdma/rdma_user_rxe.h>

// Those of the 5.10 series, Debian 11's, leave this to the kernel. It had the same layout
// there.
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 11, 0)
struct rxe_queue_buf {
	__u32 log2_elem_size;
	__u32 index_mask;
	__u32 pad_1[30];
	__u32 producer_index;
	__u32 pad_2[31];
	__u32 consumer_index;
	__u32 pad_3[31];
	__u8 data[];
};
#endif

#endif
