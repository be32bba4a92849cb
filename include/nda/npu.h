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
 * It is not read in a program that runs with more privilege than its caller.
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
};

/*
 * How cores ring. With neither of the two flags a doorbell is mapped, so that cores reach
 * the NIC's register by themselves; where the NPU does not support that, it is proxied:
 * cores write to NPU memory, and a thread of the host, or a core that waits, rings the
 * register or has the NIC's driver ring. That takes a host address or a driver that rings:
 * doorbells given as a UB resource cannot be proxied. A channel tells which it is.
 *
 * The thread is started with the first such doorbell of an NPU. It sleeps when there is
 * nothing to do; a kernel wakes it if such a doorbell existed when it was launched, else
 * it may see to what the kernel rings as late as 100 ms.
 */

/**
 * struct nda_npu_attr - how an NPU is opened
 * @comp_mask: must be 0
 * @memory_bytes: soft: size of the NPU's memory; 0 means 1 GiB. It is sparse: what is never
 *   written takes no host memory
 * @flags: enum nda_npu_flags
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
 *   "ascend:ID" is reserved and not yet supported
 * @attr: may be NULL
 * @attr_size: sizeof(*attr)
 *
 * Returns the NPU, to be closed by nda_npu_close, or NULL with errno
 *   EINVAL           an argument
 *   ENODEV           no such NPU, or libnda_soft.so cannot be loaded
 *   EPROTONOSUPPORT  libnda_soft.so is of another version
 *   ENOSPC           16 NPUs are open in this process, the most that can be, since the
 *                    callbacks of struct ibv_extend_ops have no cookie
 *   ENOMEM           no memory, or none of the size asked for
 */
struct nda_npu *nda_npu_open(
	const char *name, const struct nda_npu_attr *attr, size_t attr_size) NDA_NOEXCEPT;

/**
 * nda_npu_close - closes an NPU's handle
 *
 * Its memory, and the NPU itself, last as long as a group, channel or region uses it.
 *
 * Returns 0, -EINVAL, or -EBUSY: a kernel runs. Wait for it, then close again.
 */
int nda_npu_close(struct nda_npu *npu) NDA_NOEXCEPT;

/**
 * nda_npu_alloc - allocates NPU memory
 * @size_bytes: above 0
 * @addr: out: an NPU address, aligned to 64 bytes, from 4 KiB upwards to 4 KiB
 *
 * The contents are undefined. Memory that is not freed goes with the NPU.
 *
 * Returns 0, -EINVAL, or -ENOMEM: not so much is left in one piece.
 */
int nda_npu_alloc(struct nda_npu *npu, uint64_t size_bytes, uint64_t *addr) NDA_NOEXCEPT;

/**
 * nda_npu_free - frees NPU memory
 * @addr: from nda_npu_alloc of the same NPU; not registered any more
 *
 * Returns 0, or -EINVAL: NULL, or not the address of an allocation.
 */
int nda_npu_free(struct nda_npu *npu, uint64_t addr) NDA_NOEXCEPT;

/**
 * nda_npu_write, nda_npu_read, nda_npu_memset - move bytes between host and NPU memory
 * @size_bytes: 0 does nothing
 *
 * The range may span no more than one allocation. Not ordered against kernels and NICs that
 * work on it at the same time.
 *
 * Return 0, or -EINVAL or -EFAULT: NULL, or the range is not allocated NPU memory.
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
 * Channels use them by themselves; this is for callers that create queues on their own.
 *
 * Returns the callbacks, valid until the NPU is gone, or NULL with errno EINVAL.
 */
const struct ibv_extend_ops *nda_npu_ops(struct nda_npu *npu) NDA_NOEXCEPT;

/**
 * nda_npu_launch - starts a kernel
 * @fn: runs once on each core, see nda/core.h; it must return by itself
 * @arg: given to fn; must stay valid until the kernel has ended
 * @n_cores: 1..48
 *
 * Returns as soon as the cores have started. One kernel at a time.
 *
 * Returns 0, -EINVAL, -EBUSY (a kernel runs), or -EAGAIN (no threads for the cores).
 */
int nda_npu_launch(
	struct nda_npu *npu, nda_kernel_fn fn, void *arg, uint32_t n_cores) NDA_NOEXCEPT;

/**
 * nda_npu_wait - waits for the end of a kernel
 * @timeout_ms: 0 only looks; below 0 waits without a limit
 *
 * Returns 0 when all cores have returned, -ETIMEDOUT (the kernel still runs), or -EINVAL:
 * NULL, or no kernel was launched since the last successful wait.
 */
int nda_npu_wait(struct nda_npu *npu, int timeout_ms) NDA_NOEXCEPT;

/**
 * nda_error_detail - what went wrong
 *
 * Returns the text of the calling thread's last failed call of libnda, "" if there was
 * none. Valid until the thread's next call.
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
