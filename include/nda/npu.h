/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * NPUs: memory, kernels, and the callbacks that an extension driver needs.
 *
 * Rules for all of libnda's C API
 *
 * Errors. An int function returns 0 or a negative errno; a function that returns a pointer
 * returns NULL with errno set. nda_error_detail() then names the object and the cause.
 * Outputs come last and are written only on success. NULL where a handle, a name or an
 * output is wanted is -EINVAL, as is a handle of another kind; a handle that was closed is
 * not to be used, as with free(). Every function may also fail with -ENOMEM.
 *
 * Structures that may grow begin with comp_mask or are followed by their size: pass sizeof.
 * What a caller built with an older header does not have takes its default. Zero means the
 * default, reserved fields must be 0; unknown bits of comp_mask or flags, a size below
 * comp_mask's or above 4096, and non-zero bytes beyond what this version knows are -EINVAL.
 *
 * Lifetime. A handle may be closed or destroyed while objects made from it exist: they keep
 * what they need alive, and it goes with the last of them.
 *
 * Threads. NPUs, NICs and memory regions may be used by any number of threads. A channel, a
 * group, and what is made of a group are used by one thread at a time; different ones by
 * different threads at will. A handle is closed by one thread after the others are done.
 *
 * Blocking. Functions that exchange something with other PEs say "collective"; their
 * deadline is the bootstrap's. nda_npu_wait waits as long as it is told. The first open of
 * a NIC loads drivers. Nothing else waits for anything but locks.
 *
 * Environment. NDA_LOG=err|warn|info|debug writes to stderr what happens; silent otherwise.
 * NDA_ASCEND_PATH names directories, parted by colons, where the libraries of an Ascend NPU
 * are looked for first; then come what the process has loaded, where the dynamic loader
 * looks, ASCEND_HOME_PATH and the usual places. None is read in a program that runs with
 * more privilege than its caller.
 *
 * Ascend NPUs. Their runtime is the application's: it has called aclInit() and
 * aclrtSetDevice(), or made a context, and ends both itself after it has closed the NPU.
 * Each function works in the calling thread's current context, which must be one of the
 * NPU's device, and leaves it as it is; without one it fails with ENXIO. Extension drivers
 * call back in the threads that create and destroy channels: the same holds for those.
 * Tested against mocks of the libraries only, never on hardware; the files docs/ascend.md
 * and docs/testing.md say what that leaves open.
 */
#ifndef NDA_NPU_H
#define NDA_NPU_H

#include <stddef.h>
#include <stdint.h>

#include <nda/core.h>
#include <nda/decl.h>
#include <nda/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_extend_ops;
struct nda_npu;

enum nda_npu_flags {
	/* NPU addresses are windows that the host cannot touch: every stray host access
	 * faults. */
	NDA_NPU_STRICT = 1 << 0,
	/* Cores do not run the NIC's engine while they wait. */
	NDA_NPU_NO_ASSIST = 1 << 1,
	/* Every doorbell is mapped for the cores; a queue whose doorbell cannot be is
	 * refused. */
	NDA_NPU_DOORBELL_MAP = 1 << 2,
	/* Every doorbell is proxied; a queue whose doorbell cannot be is refused. */
	NDA_NPU_DOORBELL_PROXY = 1 << 3,
	/* Every doorbell goes through the kernel's modules; a queue whose doorbell cannot
	 * is refused. */
	NDA_NPU_DOORBELL_KERNEL = 1 << 4,
};

/*
 * How cores ring. With none of the three flags a doorbell is mapped, so that cores reach
 * the NIC's register by themselves; where the NPU does not support that (an Ascend NPU that
 * is not attached by PCIe), it is proxied: cores write to NPU memory, or host memory that
 * the NPU reaches, and a thread of the host, or a core that waits, rings the register or
 * has the NIC's driver ring. That takes a host address or a driver that rings:
 * doorbells given as a UB resource cannot be proxied. A channel tells which it is.
 *
 * Where the kernel's modules are loaded they have a part in it. A register of a NIC in the
 * host's address space is mapped by way of a second mapping, which /dev/nda makes, if the
 * NPU is a PCI device known to it: the page then stays the NIC's for as long, and the
 * mapping goes when the NIC does. No NPU that can be opened is one today: the software's
 * has no PCI function, and an Ascend NPU's is not asked for, since its driver would not
 * find the page. For a queue of Soft-RoCE /dev/nda_soft watches the memory that cores write
 * to, and has the device look at the queue: no thread of this process is needed. Where that
 * is not possible it goes without.
 *
 * The thread is started with the first such doorbell of an NPU. It sleeps when there is
 * nothing to do; a kernel wakes it if such a doorbell existed when it was launched, else
 * it may see to what the kernel rings as late as 100 ms. An Ascend NPU's kernels cannot
 * wake it: there it looks ten times a millisecond as long as there is such a doorbell.
 */

/**
 * struct nda_npu_attr - how an NPU is opened
 * @comp_mask: must be 0
 * @memory_bytes: soft: size of the NPU's memory; 0 means 1 GiB. It is sparse: what is never
 *   written takes no host memory. soft:kernel: a multiple of the module's pages, all of
 *   them taken. ascend: must be 0
 * @flags: enum nda_npu_flags; ascend: of those only the ones of doorbells
 * @reserved: must be 0
 */
struct nda_npu_attr {
	uint64_t comp_mask;
	uint64_t memory_bytes;
	uint32_t flags;
	uint32_t reserved;
};

/**
 * nda_npu_open - opens an NPU
 * @name: "soft": one more software NPU with each call, in this process's memory.
 *   "soft:kernel": likewise, but in memory of /dev/nda_soft, which the kernel knows as an
 *   NPU's, so that /dev/nda exports it as dma-buf. It is not sparse, and software NICs of
 *   other processes do not reach it: it is for verbs devices, and for development.
 *   "ascend:ID": the Ascend NPU that aclrtSetDevice(ID) makes current, which it must be in
 *   the calling thread. Several may be opened for one device
 * @attr: may be NULL
 * @attr_size: sizeof(*attr)
 *
 * Returns the NPU, to be closed by nda_npu_close, or NULL with errno
 *   EINVAL           an argument
 *   ENODEV           no such NPU, or libnda_soft.so, the Ascend runtime (libascendcl.so,
 *                    libacl_rt.so) or driver (libascend_hal.so) cannot be loaded
 *   EPROTONOSUPPORT  libnda_soft.so, or the Ascend runtime, is of another version, or
 *                    one of Ascend's libraries lacks a function
 *   ENOENT           soft:kernel: the module nda_soft is not loaded
 *   EACCES           soft:kernel: /dev/nda_soft is not the caller's to open
 *   ENXIO            ascend: no current context, or one of another device
 *   EOPNOTSUPP       ascend: ASCEND_RT_VISIBLE_DEVICES is set, and the runtime cannot
 *                    tell which device it means; or a stub library; or
 *                    NDA_NPU_DOORBELL_KERNEL, which no Ascend NPU has
 *   ENOSPC           16 NPUs are open in this process, the most that can be, since the
 *                    callbacks of struct ibv_extend_ops have no cookie
 *   ENOMEM           no memory, or none of the size asked for
 *   EIO, other       of the Ascend runtime, whose number is in the text; soft:kernel: what
 *                    /dev/nda_soft says
 */
struct nda_npu *nda_npu_open(
	const char *name, const struct nda_npu_attr *attr, size_t attr_size) NDA_NOEXCEPT;

/**
 * nda_npu_close - closes an NPU's handle
 *
 * Its memory, and the NPU itself, last as long as a group, channel or region uses it.
 * ascend: the last of them goes in a thread with a current context of the device; memory is
 * left to the runtime otherwise.
 *
 * Returns 0, -EINVAL, or -EBUSY: a kernel that libnda launched runs. Wait for it, then
 * close again.
 */
int nda_npu_close(struct nda_npu *npu) NDA_NOEXCEPT;

/**
 * nda_npu_alloc - allocates NPU memory
 * @size_bytes: above 0
 * @addr: out: an NPU address, aligned to 64 bytes, from 4 KiB upwards to 4 KiB
 *
 * The contents are undefined. Memory that is not freed goes with the NPU.
 *
 * Returns 0, -EINVAL, or -ENOMEM: not so much is left in one piece. ascend: or -ENXIO, no
 * current context of the device; -EPROTO, the runtime gave no address; -EIO or another of
 * the runtime, whose number is in the text.
 */
int nda_npu_alloc(struct nda_npu *npu, uint64_t size_bytes, uint64_t *addr) NDA_NOEXCEPT;

/**
 * nda_npu_free - frees NPU memory
 * @addr: from nda_npu_alloc of the same NPU; not registered any more
 *
 * Returns 0; -EINVAL: NULL, or not the address of an allocation; -EBUSY: soft: a region or
 * a queue uses it. ascend: or as nda_npu_alloc, the memory being allocated still.
 */
int nda_npu_free(struct nda_npu *npu, uint64_t addr) NDA_NOEXCEPT;

/**
 * nda_npu_write, nda_npu_read, nda_npu_memset - move bytes between host and NPU memory
 * @size_bytes: 0 does nothing
 *
 * The range may span no more than one allocation. Not ordered against kernels and NICs that
 * work on it at the same time.
 *
 * Return 0, or -EINVAL or -EFAULT: NULL, or the range is not allocated NPU memory. ascend:
 * also memory of this device that others have allocated; or -ENXIO, or of the runtime, as
 * nda_npu_alloc.
 */
int nda_npu_write(struct nda_npu *npu, uint64_t dst, const void *src,
	uint64_t size_bytes) NDA_NOEXCEPT;
int nda_npu_read(
	struct nda_npu *npu, void *dst, uint64_t src, uint64_t size_bytes) NDA_NOEXCEPT;
int nda_npu_memset(
	struct nda_npu *npu, uint64_t dst, int value, uint64_t size_bytes) NDA_NOEXCEPT;

/**
 * nda_npu_ops - the callbacks for ibv_create_qp_extend() and its kin
 *
 * @dma_mode: NDA_DMA_PCIE or NDA_DMA_INDEPENDENT of nda/channel.h, how the NIC is to reach
 *   the memory that they give; nda_npu_ops() gives those for PCIE
 *
 * Channels use them by themselves; this is for callers that create queues on their own.
 * Memory for INDEPENDENT is a segment of the UB controller where an Ascend NPU's driver
 * wants that.
 *
 * Returns the callbacks, valid until the NPU is gone, or NULL with errno EINVAL.
 *
 * The callbacks may be called by any thread. Where they fail they set the error detail:
 * alloc and db_mmap give NULL with errno, memcpy_s and db_unmap a negative errno. Beside
 * those of nda_npu_alloc and nda_npu_write:
 *   EINVAL      a descriptor of a doorbell that is none, or unmapping what it did not map
 *   EOPNOTSUPP  the doorbell can be neither mapped nor proxied, or not as the NPU was
 *               opened; memory for INDEPENDENT, or a UB resource: the driver lacks a
 *               function for it
 *   EEXIST      ascend: another user of this process has the register mapped
 *   ENOSPC      too many doorbells
 *   EPERM, ESRCH, EIO, other
 *               of the Ascend driver, whose number is in the text
 */
const struct ibv_extend_ops *nda_npu_ops(struct nda_npu *npu) NDA_NOEXCEPT;
const struct ibv_extend_ops *nda_npu_ops_of(
	struct nda_npu *npu, uint32_t dma_mode) NDA_NOEXCEPT;

/**
 * nda_npu_launch - starts a kernel
 * @fn: runs once on each core, see nda/core.h; it must return by itself
 * @arg: given to fn; must stay valid until the kernel has ended
 * @n_cores: 1..48
 *
 * Returns as soon as the cores have started. One kernel at a time.
 *
 * Returns 0, -EINVAL, -EBUSY (a kernel runs, or was not waited for), -EAGAIN (no threads
 * for the cores), or -EOPNOTSUPP: ascend, see nda_npu_launch_function.
 */
int nda_npu_launch(
	struct nda_npu *npu, nda_kernel_fn fn, void *arg, uint32_t n_cores) NDA_NOEXCEPT;

/**
 * nda_npu_launch_function - starts a kernel of a device binary
 * @function: ascend: an aclrtFuncHandle, as aclrtBinaryGetFunction gives it
 * @args: the kernel's arguments as they lie in memory; copied. NULL: none
 * @args_bytes: size of @args
 * @n_cores: blocks, 1..65535
 *
 * It runs on a stream of the NPU's own, which the first launch makes. One kernel at a time;
 * kernels that the application launches by itself are not counted, and nothing waits for
 * them. Argument passing (aclrtLaunchKernelWithHostArgs without a configuration) is
 * unverified.
 *
 * Returns 0, -EINVAL, -EBUSY (a kernel runs, or was not waited for), -ENXIO (no current
 * context of the device), -EOPNOTSUPP (soft; or the runtime lacks a function that it
 * takes), -EIO or another of the runtime, whose number is in the text.
 */
int nda_npu_launch_function(struct nda_npu *npu, void *function, const void *args,
	uint64_t args_bytes, uint32_t n_cores) NDA_NOEXCEPT;

/**
 * nda_npu_wait - waits for the end of a kernel
 * @timeout_ms: 0 only looks, ascend: for 1 ms; below 0 waits without a limit
 *
 * Returns 0 when all cores have returned, -ETIMEDOUT (the kernel still runs), or -EINVAL:
 * NULL, or no kernel was launched since the last wait that saw an end. ascend: or -ENXIO
 * (no current context of the device), or -EIO or another of the runtime, whose number is in
 * the text: the kernel has ended if that is a fault of the device (507xxx), else it counts
 * as running.
 */
int nda_npu_wait(struct nda_npu *npu, int timeout_ms) NDA_NOEXCEPT;

/**
 * nda_error_detail - what went wrong
 *
 * Returns the text of the calling thread's last failed call of libnda, "" if there was
 * none. Ask right after it: a call that succeeds may change the text, too. Valid until the
 * thread's next call.
 */
const char *nda_error_detail(void) NDA_NOEXCEPT;

/**
 * nda_status_string - a short English text for a device call's outcome
 * @status: enum nda_status
 *
 * Returns a static string, "unknown status" for a value that is none.
 */
const char *nda_status_string(int status) NDA_NOEXCEPT;

/**
 * nda_status_to_errno - an errno for a device call's outcome
 * @status: enum nda_status
 *
 * Returns 0 for NDA_OK, else a negative errno; -EIO for a value that is no status.
 */
int nda_status_to_errno(int status) NDA_NOEXCEPT;

/* The library's version, "MAJOR.MINOR.PATCH", a static string. */
const char *nda_version(void) NDA_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
