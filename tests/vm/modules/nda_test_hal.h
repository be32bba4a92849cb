/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * The calls of /dev/nda_test_hal: a process's NPU memory, in the BAR of QEMU's ivshmem device.
 * mmap() of the device allocates; munmap() and NDA_TEST_HAL_FREE free.
 */
#ifndef NDA_TEST_HAL_H
#define NDA_TEST_HAL_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* How the process's driver behaves from now on. */
struct nda_test_hal_set {
	__aligned_u64 page_size; /* of what is allocated: 4 KiB, 2 MiB */
	__u32 flags;
	__u32 get_ms; /* between reading a table's addresses and listing it */
	__u32 free_us; /* between taking a table off the list and calling back */
	__u32 reserved;
};

#define NDA_TEST_HAL_V3 (1 << 0) /* the younger driver, else the older one */
#define NDA_TEST_HAL_SCATTER (1 << 1) /* no page follows another */
#define NDA_TEST_HAL_BUSY (1 << 2) /* NDA_TEST_HAL_FREE fails once it has called back */
#define NDA_TEST_HAL_BAD_VERSION (1 << 3)
#define NDA_TEST_HAL_BAD_SIZE (1 << 4) /* a page size that is no power of two */
#define NDA_TEST_HAL_BAD_COUNT (1 << 5) /* fewer pages than were asked for */
#define NDA_TEST_HAL_BAD_RAM (1 << 6) /* the host's own memory */
#define NDA_TEST_HAL_BAD_ALIGN (1 << 7)
#define NDA_TEST_HAL_LATE (1 << 8) /* calls back once the table is put, not before */
#define NDA_TEST_HAL_BAD_SECOND (1 << 9) /* a table that is got again has no pages */
#define NDA_TEST_HAL_NO_SECOND (1 << 10) /* nor is there one, though the call succeeds */
#define NDA_TEST_HAL_KEEPS (1 << 11) /* a table that is put stays, and the call fails */

struct nda_test_hal_range {
	__aligned_u64 va;
	__aligned_u64 len;
	__aligned_u64 offset; /* out, of WHERE: in the BAR */
};

struct nda_test_hal_counts {
	__u32 tables; /* not put yet, of the whole system */
	__u32 gets; /* so far */
	__u32 callbacks; /* so far */
	__u32 notified; /* of these, from an MMU notifier */
	__u32 getting; /* that have read a table's addresses and not listed it */
	__u32 calling; /* that are off the list and not called back about yet */
};

#define NDA_TEST_HAL_SET _IOW(0xEF, 32, struct nda_test_hal_set)
#define NDA_TEST_HAL_FREE _IOW(0xEF, 33, struct nda_test_hal_range)
#define NDA_TEST_HAL_WHERE _IOWR(0xEF, 34, struct nda_test_hal_range)
#define NDA_TEST_HAL_COUNTS _IOR(0xEF, 35, struct nda_test_hal_counts)

#endif
