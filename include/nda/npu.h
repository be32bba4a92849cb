/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * NPUs: memory, kernels, and the callbacks that an extension driver needs.
 *
 * Rules for all of libnda's C API: int functions return 0 or a negative errno; functions
 * that return a pointer return NULL with errno set. Outputs come last and are written only
 * on success. nda_error_detail() then names the object and the cause. NULL where a handle
 * is wanted is -EINVAL. A handle may be closed or destroyed while objects made from it
 * exist: they keep what they need alive, and it goes with the last of them.
 */
#ifndef NDA_NPU_H
#define NDA_NPU_H

#include <stddef.h>
#include <stdint.h>

#include <nda/core.h>
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
};

/* Zero means the default. Unknown bits of comp_mask, flags, and non-zero tails: -EINVAL. */
struct nda_npu_attr {
	uint64_t comp_mask;    /* must be 0 */
	uint64_t memory_bytes; /* soft: size of the NPU's memory; default 1 GiB, sparse */
	uint32_t flags;        /* enum nda_npu_flags */
	uint32_t reserved;     /* must be 0 */
};

/* "soft" (one more software NPU with each call); attr may be NULL. */
struct nda_npu *nda_npu_open(
	const char *name, const struct nda_npu_attr *attr, size_t attr_size);
int nda_npu_close(struct nda_npu *npu);

/* Memory. Addresses are NPU addresses; at least 64-byte aligned, 4 KiB from 4 KiB upwards.
 */
int nda_npu_alloc(struct nda_npu *npu, uint64_t size_bytes, uint64_t *addr);
int nda_npu_free(struct nda_npu *npu, uint64_t addr);
int nda_npu_write(struct nda_npu *npu, uint64_t dst, const void *src, uint64_t size_bytes);
int nda_npu_read(struct nda_npu *npu, void *dst, uint64_t src, uint64_t size_bytes);
int nda_npu_memset(struct nda_npu *npu, uint64_t dst, int value, uint64_t size_bytes);

/* The callbacks for ibv_create_qp_extend() and its kin; valid until the NPU is gone. */
const struct ibv_extend_ops *nda_npu_ops(struct nda_npu *npu);

/*
 * Kernels. A launch starts fn on n_cores cores (1..48) and returns; one launch at a time
 * (-EBUSY). wait returns 0 when all cores have returned, -ETIMEDOUT after timeout_ms (then
 * the launch still runs), -EINVAL without a launch. timeout_ms < 0 waits without a limit.
 */
int nda_npu_launch(struct nda_npu *npu, nda_kernel_fn fn, void *arg, uint32_t n_cores);
int nda_npu_wait(struct nda_npu *npu, int timeout_ms);

/* Text of the calling thread's last failed call; "" if there was none. Valid until the
 * next. */
const char *nda_error_detail(void);
const char *nda_status_string(int status);
/* 0 for NDA_OK, else a negative errno; -EIO for a value that is no status. */
int nda_status_to_errno(int status);
const char *nda_version(void);

#ifdef __cplusplus
}
#endif
#endif
