/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * The calls of /dev/nda_test_importer-ADDRESS, of an edu device of QEMU: importers of dma-bufs,
 * good and bad ones. An open file is one importer.
 */
#ifndef NDA_TEST_IMPORTER_H
#define NDA_TEST_IMPORTER_H

#include <linux/ioctl.h>
#include <linux/types.h>

struct nda_test_attach {
	__s32 fd;
	__u32 flags;
};

#define NDA_TEST_STATIC (1 << 0) /* attaches without operations */
#define NDA_TEST_NO_P2P (1 << 1) /* takes no peer-to-peer addresses */
#define NDA_TEST_IGNORE (1 << 2) /* does nothing when it is told to let go */
#define NDA_TEST_PIN (1 << 3) /* pins before it maps, and so cannot let go */
#define NDA_TEST_READ (1 << 4) /* maps to read only */
#define NDA_TEST_SLOW (1 << 5) /* takes 300 ms to let go */

struct nda_test_dma {
	__aligned_u64 offset; /* in the dma-buf */
	__aligned_u64 data; /* where the bytes are, or go */
	__u32 len; /* to 2048, in one piece of the mapping */
	__u32 flags;
};

#define NDA_TEST_WRITE (1 << 0) /* writes the dma-buf's memory, else reads it */
#define NDA_TEST_STALE (1 << 1) /* with the addresses of the last mapping, though it be gone */

struct nda_test_state {
	__u32 told; /* how often it was told to let go */
	__u32 mapped; /* 0 or 1 */
	__u32 pieces; /* of the last mapping */
	__u32 reserved;
	__aligned_u64 largest; /* of these pieces, bytes */
};

#define NDA_TEST_ATTACH _IOW(0xEF, 16, struct nda_test_attach)
#define NDA_TEST_DETACH _IO(0xEF, 17)
#define NDA_TEST_MAP _IO(0xEF, 18)
#define NDA_TEST_UNMAP _IO(0xEF, 19)
#define NDA_TEST_DMA _IOW(0xEF, 20, struct nda_test_dma)
#define NDA_TEST_STATE _IOR(0xEF, 21, struct nda_test_state)
/* The device begins, or ends, something that only a fence of the dma-buf's tells of. */
#define NDA_TEST_BEGIN _IO(0xEF, 22)
#define NDA_TEST_END _IO(0xEF, 23)

#endif
