/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * The ioctl ABI of /dev/nda: pinned DMA mappings of host memory, NPU memory as dma-buf, doorbell
 * pages for an NPU.
 *
 * Rules of every call
 *  - A structure's size is part of its ioctl number's size bits only: the kernel dispatches on
 *    type and number. It takes any size from that of version 1.0 of the structure on; what the
 *    kernel does not know beyond its own structure must be zero (E2BIG), and what user space
 *    does not know is not written.
 *  - Reserved fields and unknown bits of flags must be zero (EINVAL).
 *  - Layouts are the same for 32-bit and 64-bit callers; every 64-bit field is aligned to 8.
 *  - Objects are named by handles, numbers of the open file that made them. A handle is not
 *    given out again before 2^31 others were; an unknown or destroyed one is ENOENT.
 *  - Calls that take an address need the memory of the process that opened the file: any
 *    other gets EPERM (after fork or exec, or with a passed descriptor). QUERY, DESTROY,
 *    STATUS and EVENT work for every holder of the file.
 *  - Closing the last descriptor destroys the file's objects. A dma-buf lives on while it is
 *    held; its memory is still revoked when the owner frees it.
 *  - Physical, bus and IOVA addresses are never returned.
 *
 * Errors that several calls have; a call's own are named with its structure
 *  EINVAL      a size below the first version's, a flag, an alignment, a length of zero, a
 *              range that wraps, a reserved field that is not zero
 *  E2BIG       bytes that are not zero beyond what this kernel knows
 *  ENOTTY      an ioctl that this kernel does not know
 *  EFAULT      the structure, or the memory that it names, is not mapped
 *  EPERM       another process's memory, or a capability is missing
 *  ENOENT      no such handle in this file
 *  ENODEV      no PCI device of that address, or it has no driver bound
 *  EDQUOT      the file has as many objects as it may (NDA_LIMIT_OBJECTS)
 *  ENOMEM      memory ran out, or RLIMIT_MEMLOCK is reached
 *  EOPNOTSUPP  this kernel, or what is loaded, cannot do it; QUERY tells why
 */
#ifndef UAPI_NDA_H
#define UAPI_NDA_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define NDA_IOC_TYPE 0xEB

/* major << 16 | minor. A new call, flag or field raises the minor number; user space refuses a
 * major number other than its own. */
#define NDA_ABI_MAJOR 1
#define NDA_ABI_MINOR 0
#define NDA_ABI_VERSION (NDA_ABI_MAJOR << 16 | NDA_ABI_MINOR)

/* A PCI function. */
struct nda_ioc_bdf {
	__u32 domain;
	__u8 bus;
	__u8 devfn; /* device << 3 | function */
	__u16 reserved;
};

/* ---- QUERY -----------------------------------------------------------------------------
 * Asks for one number or two. ERANGE: @index is beyond the last; EINVAL: @what is not known.
 */
struct nda_ioc_query {
	__u32 what; /* in: NDA_QUERY_* */
	__u32 index; /* in */
	struct nda_ioc_bdf dev;
	struct nda_ioc_bdf peer;
	__aligned_u64 value; /* out */
	__aligned_u64 value2; /* out */
};

/* value: NDA_ABI_VERSION of the kernel; value2: the highest ioctl number that it knows. */
#define NDA_QUERY_ABI 0
/* value: NDA_FEATURE_* bits. */
#define NDA_QUERY_FEATURES 1
/* index: NDA_PART_*; value: 1 if it can be used now; value2: NDA_WHY_* if not. */
#define NDA_QUERY_PART 2
/* index: NDA_LIMIT_*; value: the limit; value2: how much of it is in use. */
#define NDA_QUERY_LIMIT 3
/* dev: a PCI function; value: NDA_IOMMU_*. ENODEV: there is none, or it has no driver bound.
 * EINTR: a signal came before it was done. */
#define NDA_QUERY_IOMMU 4
/* dev, peer: PCI functions; value: how many links lie between them, NDA_P2P_HOST_BRIDGE if
 * they meet in a host bridge at the earliest. ENODEV. */
#define NDA_QUERY_P2P 5
/* index: NDA_COUNT_*; value: the count, of the whole system. */
#define NDA_QUERY_COUNT 6

#define NDA_FEATURE_HOST_PIN (1 << 0)
#define NDA_FEATURE_EXPORT (1 << 1) /* NPU memory as dma-buf */
#define NDA_FEATURE_REVOCABLE_IMPORT (1 << 2) /* the kernel tells importers that pin apart */
#define NDA_FEATURE_SINK_REMAP (1 << 3) /* parameter sink_remap is set */
#define NDA_FEATURE_UNSAFE_PINNED (1 << 4) /* parameter unsafe_pinned is set */
#define NDA_FEATURE_DOORBELL_VA (1 << 5) /* doorbells by address */
#define NDA_FEATURE_DOORBELL_DMABUF (1 << 6) /* doorbells by dma-buf */

#define NDA_PART_ASCEND 0 /* NPU memory by the Ascend driver */
#define NDA_PART_SOFT 1 /* NPU memory that is RAM or a PCI BAR */
#define NDA_PART_PEERMEM 2 /* the peer-memory client for MRs */
#define NDA_PART_PEERMEM_QUEUES 3 /* the one for queues in NPU memory */
#define NDA_PARTS 4

#define NDA_WHY_OK 0
#define NDA_WHY_NOT_LOADED 1 /* the module is not loaded */
#define NDA_WHY_NO_DRIVER 2 /* the NPU's driver is not loaded, or lacks the functions */
#define NDA_WHY_NO_PEER_API 3 /* the RDMA core has no peer-memory interface */
#define NDA_WHY_NO_PINNING 4 /* the backend cannot keep its memory from being freed */
#define NDA_WHY_MISMATCH 5 /* the NPU's driver has another version of the interface */

#define NDA_LIMIT_OBJECTS 0 /* objects of this file */
#define NDA_LIMITS 1

#define NDA_IOMMU_NONE 0 /* devices use physical addresses */
#define NDA_IOMMU_IDENTITY 1 /* there is one, and it passes this device through */
#define NDA_IOMMU_STRICT 2 /* translates; unmapping is at once */
#define NDA_IOMMU_LAZY 3 /* translates; unmapping is flushed later */

#define NDA_P2P_HOST_BRIDGE (~0ull)

#define NDA_COUNT_FILES 0 /* open files */
#define NDA_COUNT_OBJECTS 1 /* objects, of all kinds, that hold anything */
#define NDA_COUNT_PINNED_PAGES 2 /* of host memory */
#define NDA_COUNT_TABLES 3 /* page tables held of backends */
#define NDA_COUNT_MAPPINGS 4 /* DMA mappings of NPU memory, pins and doorbells */
#define NDA_COUNT_REVOKED 5 /* ranges of NPU memory revoked so far */
#define NDA_COUNT_LEFTOVERS 6 /* mappings taken from importers that did not let go, so far */
#define NDA_COUNT_STALE 7 /* backends' calls about ranges that were gone, so far */
#define NDA_COUNT_DOORBELLS_LOST 8 /* doorbells whose source went away, so far */
#define NDA_COUNTS 9

/* ---- HOST_PIN ----------------------------------------------------------------------------
 * Pins ordinary memory for good (FOLL_LONGTERM) and maps it for DMA by one device, for
 * in-kernel users of that device. Counted against RLIMIT_MEMLOCK unless CAP_IPC_LOCK.
 * EOPNOTSUPP: the memory is device memory or a mapping of another driver (VM_PFNMAP, VM_IO), as
 * host memory of the Ascend runtime is. EACCES: NDA_ACCESS_WRITE, and it may not be written.
 * EIO: the device cannot reach it, without an IOMMU that translates, or the DMA API refuses.
 * EINTR: a signal came before it was done.
 */
struct nda_ioc_host_pin {
	__aligned_u64 va; /* in; any alignment */
	__aligned_u64 len; /* in: bytes */
	struct nda_ioc_bdf dev;
	__u32 access; /* in: NDA_ACCESS_*, as the device sees it */
	__u32 flags; /* in: 0 */
	__u32 handle; /* out */
	__u32 reserved;
};

#define NDA_ACCESS_READ 1
#define NDA_ACCESS_WRITE 2

/* ---- EXPORT ------------------------------------------------------------------------------
 * Makes a dma-buf of NPU memory. It covers the whole pages of the host's CPU that [va, va+len)
 * touches, which begins @offset bytes into it. When the owner frees the memory, importers must
 * have let go before the free returns; from then on mapping it gives them ENODEV.
 *
 * EOPNOTSUPP: the memory is no NPU's that is known here, or of a kind that cannot be exported.
 * ECANCELED: the memory was freed meanwhile, or the NPU's driver went. EINVAL: alignment that
 * the NPU's driver asks for. EPERM: NDA_EXPORT_ALLOW_PINNED without what it needs. EIO: the NPU's
 * driver tells of pages that cannot be right. EMFILE: no more files. EINTR: a signal came before
 * it was done.
 */
struct nda_ioc_export {
	__aligned_u64 va; /* in */
	__aligned_u64 len; /* in: bytes */
	__u32 flags; /* in: NDA_EXPORT_* */
	__u32 handle; /* out */
	__s32 fd; /* out: the dma-buf, O_CLOEXEC; the caller's */
	__u32 reserved;
	__aligned_u64 page_size; /* out: of the NPU, bytes */
	__aligned_u64 offset; /* out: of va in the dma-buf, bytes */
};

/* The importers' devices may read only: mapping it in any other way gives EACCES. The RDMA core
 * maps for both directions whatever a region's access is, so no region can be made of it. */
#define NDA_EXPORT_READONLY (1 << 0)
/* Importers that cannot let go may map it too. Needs a backend that pins its memory, or a
 * translating IOMMU with the parameter sink_remap=1, or unsafe_pinned=1 and CAP_SYS_ADMIN. */
#define NDA_EXPORT_ALLOW_PINNED (1 << 1)

/* ---- DB_MAP ------------------------------------------------------------------------------
 * Takes one page of an RDMA device's doorbells for an NPU: by its address in this process, or
 * by a dma-buf of it. With NDA_DB_PROXY it may be mapped again, once, with mmap() at @mmap_off
 * of this file; without, it is mapped for DMA by @npu, for in-kernel users.
 *
 * EACCES: the mapping or its page cannot be written. EFAULT: it is not one mapping.
 * EOPNOTSUPP: it is not a page of an RDMA device's BAR, or parameter doorbell=off.
 * EPERM: it is not a mapping of ib_uverbs; needs doorbell=any and CAP_SYS_RAWIO.
 * EBADF: src_fd is no dma-buf. ECANCELED: the mapping was changed meanwhile. EIO: @npu cannot
 * reach the page. EINTR: a signal came before it was done.
 */
struct nda_ioc_db_map {
	__aligned_u64 va; /* in: page aligned; 0 with NDA_DB_FROM_DMABUF */
	__aligned_u64 len; /* in: bytes, one page */
	struct nda_ioc_bdf npu;
	__s32 src_fd; /* in: a dma-buf; -1 without NDA_DB_FROM_DMABUF */
	__u32 flags; /* in: NDA_DB_* */
	__u32 handle; /* out */
	__u32 reserved;
	__aligned_u64 mmap_off; /* out, of use with NDA_DB_PROXY */
};

#define NDA_DB_FROM_DMABUF (1 << 0)
#define NDA_DB_PROXY (1 << 1)

/* ---- DESTROY -----------------------------------------------------------------------------
 * EBUSY: a doorbell whose proxy is mapped. Of an exported range the handle goes; the dma-buf
 * stays until it is closed.
 */
struct nda_ioc_destroy {
	__u32 handle;
	__u32 flags; /* 0 */
};

/* ---- STATUS ------------------------------------------------------------------------------*/
struct nda_ioc_status {
	__u32 handle; /* in */
	__u32 kind; /* out: NDA_KIND_* */
	__u32 state; /* out: NDA_STATE_* */
	__u32 reason; /* out: NDA_REASON_*, of a state other than live */
	__u32 attachments; /* out: importers of an export */
	__u32 mappings; /* out: DMA mappings there are */
};

#define NDA_KIND_PIN 1
#define NDA_KIND_EXPORT 2
#define NDA_KIND_DOORBELL 3

#define NDA_STATE_LIVE 1
#define NDA_STATE_REVOKING 2
#define NDA_STATE_REVOKED 3

#define NDA_REASON_NONE 0
#define NDA_REASON_FREED 1 /* the owner freed the memory */
#define NDA_REASON_UNPLUG 2 /* the device or its driver went */
#define NDA_REASON_MM_EXIT 3 /* the owner's address space went */
#define NDA_REASON_UNMAPPED 4 /* the doorbell's mapping was changed */

/* ---- EVENT -------------------------------------------------------------------------------
 * Signals @eventfd, by one each time, when an object of this file is revoked. One per file; a
 * new one takes the old one's place, -1 takes it away. EBADF: not an eventfd.
 */
struct nda_ioc_event {
	__s32 eventfd;
	__u32 flags; /* 0 */
};

#define NDA_IOC_QUERY _IOWR(NDA_IOC_TYPE, 0, struct nda_ioc_query)
#define NDA_IOC_HOST_PIN _IOWR(NDA_IOC_TYPE, 1, struct nda_ioc_host_pin)
#define NDA_IOC_EXPORT _IOWR(NDA_IOC_TYPE, 2, struct nda_ioc_export)
#define NDA_IOC_DB_MAP _IOWR(NDA_IOC_TYPE, 3, struct nda_ioc_db_map)
#define NDA_IOC_DESTROY _IOW(NDA_IOC_TYPE, 4, struct nda_ioc_destroy)
#define NDA_IOC_STATUS _IOWR(NDA_IOC_TYPE, 5, struct nda_ioc_status)
#define NDA_IOC_EVENT _IOW(NDA_IOC_TYPE, 6, struct nda_ioc_event)
#define NDA_IOC_LAST 6

#endif
