/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/* The calls of /dev/nda_test_edu-BDF: one transfer by the DMA engine of QEMU's edu device. */
#ifndef NDA_TEST_EDU_H
#define NDA_TEST_EDU_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Where a transfer begins or ends: bytes of a pin or doorbell of an open /dev/nda. */
struct nda_test_end {
	__u32 kind; /* NDA_KIND_PIN, NDA_KIND_DOORBELL */
	__u32 handle; /* of nda_fd */
	__aligned_u64 offset;
};

struct nda_test_copy {
	struct nda_test_end from;
	struct nda_test_end to;
	__s32 nda_fd;
	__u32 len; /* bytes, to 2048 */
};

#define NDA_TEST_COPY _IOW(0xEF, 0, struct nda_test_copy)
/* Holds the object until the file is closed, as an in-kernel user does. */
#define NDA_TEST_HOLD _IOW(0xEF, 1, struct nda_test_copy)

#ifdef __KERNEL__
struct device;
struct sg_table;

/* For other modules: from or to @bytes, at @offset in a table that is mapped for the device. */
int nda_test_edu_dma(struct device *dev, const struct sg_table *table, u64 offset, void *bytes,
		     u32 len, bool write);
#endif

#endif
