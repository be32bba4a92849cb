/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * The ioctl ABI of /dev/nda_soft: the memory of an NPU that is software, in RAM or in the BAR of
 * a PCI device, and its doorbells for Soft-RoCE. For development and tests: the node is root's.
 *
 * The memory is known to /dev/nda, which exports it as that of any NPU. Rules and common errors
 * are those of uapi/nda.h. A handle is a number of the open file that made it; closing the file
 * frees its memory and unbinds its doorbells.
 */
#ifndef UAPI_NDA_SOFT_H
#define UAPI_NDA_SOFT_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define NDA_SOFT_IOC_TYPE 0xEB

#define NDA_SOFT_ABI_MAJOR 1
#define NDA_SOFT_ABI_MINOR 0
#define NDA_SOFT_ABI_VERSION (NDA_SOFT_ABI_MAJOR << 16 | NDA_SOFT_ABI_MINOR)

/* ---- QUERY -----------------------------------------------------------------------------
 * Asks for a number. EINVAL: @what is not known.
 */
struct nda_soft_ioc_query {
	__u32 what; /* in: NDA_SOFT_QUERY_* */
	__u32 reserved;
	__aligned_u64 value; /* out */
};

#define NDA_SOFT_QUERY_ABI 0 /* NDA_SOFT_ABI_VERSION of the kernel */
#define NDA_SOFT_QUERY_BAR 1 /* bytes of the BAR, 0 if no device is bound */
#define NDA_SOFT_QUERY_PAGE_SIZE 2 /* bytes of the NPU's pages */
#define NDA_SOFT_QUERY_KICK 3 /* 1 if Soft-RoCE can be kicked on this kernel */
#define NDA_SOFT_QUERY_BYTES 4 /* allocated, or held by importers, now, of all files */
#define NDA_SOFT_QUERY_BINDINGS 5 /* doorbells bound now, of all files */
#define NDA_SOFT_QUERY_KICKS 6 /* QPs kicked so far */
#define NDA_SOFT_QUERY_MISSES \
	7 /* doorbells rung so far whose QP was not there, or not its owner's */

/* ---- ALLOC -----------------------------------------------------------------------------
 * Takes zeroed memory. It is mapped with mmap() at @mmap_off of the file, whole or in part,
 * shared, by the process that opened the file; munmap() does not free it. RAM may be registered
 * with ibv_reg_mr(), a BAR may not.
 *
 * ENODEV: NDA_SOFT_BAR, and no device is bound to nda_soft. EPERM: another process's file.
 */
struct nda_soft_ioc_alloc {
	__aligned_u64 size; /* in: bytes, a multiple of the NPU's pages */
	__u32 kind; /* in: NDA_SOFT_RAM or NDA_SOFT_BAR */
	__u32 flags; /* in: 0 */
	__u32 handle; /* out */
	__u32 reserved;
	__aligned_u64 mmap_off; /* out */
};

#define NDA_SOFT_RAM 1
#define NDA_SOFT_BAR 2

/* ---- FREE ------------------------------------------------------------------------------
 * Frees memory: importers have let go and mappings give SIGBUS when it returns. Where the module
 * pins (parameter pins=1), importers keep it until they let go.
 */
struct nda_soft_ioc_free {
	__u32 handle; /* in: of ALLOC */
	__u32 flags; /* in: 0 */
};

/* ---- BIND ------------------------------------------------------------------------------
 * Makes a word the doorbell of a QP of a Soft-RoCE device: when its value changes, the kernel
 * lets the device look at the QP's send queue, as an ibv_post_send() that posts nothing would.
 * The word is the caller's, in memory of this file or any other that can be pinned; 64 bytes
 * are set aside for it, so that no other doorbell may be in them. The QP must be a user's RC, UC or
 * UD one that this process made. When it is destroyed, or its device is, rings go unheard.
 *
 * ENODEV: no Soft-RoCE device of that index. ENOENT: it has no such QP. EPERM: the QP is not this
 * process's. EOPNOTSUPP: it is of another type, or this kernel does not keep a QP from being
 * destroyed while it is kicked. EFAULT: the word is not in memory that can be pinned.
 * EBUSY: another doorbell of this file is in those 64 bytes.
 */
struct nda_soft_ioc_bind {
	__aligned_u64 va; /* in: of the word, a multiple of 64 */
	__u32 device; /* in: index of the RDMA device, as ibv_get_device_index() has it */
	__u32 qpn; /* in */
	__u32 flags; /* in: 0 */
	__u32 handle; /* out */
};

/* ---- UNBIND ----------------------------------------------------------------------------
 * The word is a doorbell no more when it returns, and its memory is let go.
 */
struct nda_soft_ioc_unbind {
	__u32 handle; /* in: of BIND */
	__u32 flags; /* in: 0 */
};

#define NDA_SOFT_IOC_QUERY _IOWR(NDA_SOFT_IOC_TYPE, 64, struct nda_soft_ioc_query)
#define NDA_SOFT_IOC_ALLOC _IOWR(NDA_SOFT_IOC_TYPE, 65, struct nda_soft_ioc_alloc)
#define NDA_SOFT_IOC_FREE _IOW(NDA_SOFT_IOC_TYPE, 66, struct nda_soft_ioc_free)
#define NDA_SOFT_IOC_BIND _IOWR(NDA_SOFT_IOC_TYPE, 67, struct nda_soft_ioc_bind)
#define NDA_SOFT_IOC_UNBIND _IOW(NDA_SOFT_IOC_TYPE, 68, struct nda_soft_ioc_unbind)

#endif
