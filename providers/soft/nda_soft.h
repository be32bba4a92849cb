/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The table of functions that libnda_soft.so exports as one data symbol, nda_soft_api, for
 * what ibv_extend does not cover: the software NPU, and the verbs of the software NICs.
 * libibverbs must never be called on the objects made here; the functions below mirror its
 * calls instead, with the library's sign rule (0 or a negative errno; NULL with errno set).
 * Private to nda: both sides are released together, and the version is checked all the
 * same.
 */
#ifndef NDA_SOFT_H
#define NDA_SOFT_H

#include <stdint.h>

#include <ibv_extend.h>
#include <nda/core.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NDA_SOFT_API_VERSION 1u
#define NDA_SOFT_API_SYMBOL "nda_soft_api"
#define NDA_SOFT_SESSION_BYTES 32

struct nda_soft_npu;

struct nda_soft_npu_attr {
	uint64_t memory_bytes; /* of NPU memory; sparse */
	uint32_t strict;       /* NPU addresses fault on the host */
	uint32_t assist;       /* waiting cores run the NIC engine */
	uint32_t manual; /* no engine thread: npu_step() is called instead; for tests */
	uint32_t reserved;
};

struct nda_soft_nic_attr {
	const char *model;  /* "hns1825" */
	const char *inject; /* faults or NULL */
	uint32_t mtu_bytes; /* 0: 4096 */
	uint32_t reserved;
};

struct nda_soft_api {
	uint32_t version; /* NDA_SOFT_API_VERSION */
	uint32_t size;    /* sizeof(struct nda_soft_api) */

	/* Text of the calling thread's last failure. */
	const char *(*error_detail)(void);
	/* Which other processes may reach this one: those of the same session and user.
	 * Before the first connection; a second, different session is -EBUSY. */
	int (*set_session)(const uint8_t session[NDA_SOFT_SESSION_BYTES]);

	struct nda_soft_npu *(*npu_open)(const struct nda_soft_npu_attr *attr);
	int (*npu_close)(struct nda_soft_npu *npu); /* -EBUSY while a queue, an MR or a
						     * doorbell uses it, or a kernel runs */
	int (*npu_alloc)(struct nda_soft_npu *npu, uint64_t size, uint64_t *addr);
	int (*npu_free)(struct nda_soft_npu *npu, uint64_t addr);
	int (*npu_write)(
		struct nda_soft_npu *npu, uint64_t dst, const void *src, uint64_t size);
	int (*npu_read)(struct nda_soft_npu *npu, void *dst, uint64_t src, uint64_t size);
	int (*npu_copy)(
		struct nda_soft_npu *npu, uint64_t dst, uint64_t src, uint64_t size);
	int (*npu_memset)(struct nda_soft_npu *npu, uint64_t dst, int value, uint64_t size);
	int (*npu_contains)(struct nda_soft_npu *npu, uint64_t addr, uint64_t size);
	void *(*npu_db_mmap)(
		struct nda_soft_npu *npu, const struct doorbell_map_desc *desc);
	int (*npu_db_unmap)(
		struct nda_soft_npu *npu, void *ptr, const struct doorbell_map_desc *desc);
	int (*npu_launch)(
		struct nda_soft_npu *npu, nda_kernel_fn fn, void *arg, uint32_t n_cores);
	int (*npu_wait)(struct nda_soft_npu *npu, int timeout_ms);
	/* Fills what a core of this NPU is called with; for tests that are their own
	 * scheduler. */
	int (*npu_core)(struct nda_soft_npu *npu, struct nda_core *core);
	/* One pass of the NIC engine; > 0 if it did work, 0 if idle or another thread is in
	 * it. */
	int (*npu_step)(struct nda_soft_npu *npu);
	/* Breaches of the queue format's rules that the NIC models of this NPU have met (a
	 * WQE not yet valid at fetch, a doorbell that contradicts its record, ...), since
	 * it was opened. 0 is what a correct data plane leaves. */
	int (*npu_violations)(struct nda_soft_npu *npu, uint64_t *count);

	struct ibv_context *(*nic_open)(const struct nda_soft_nic_attr *attr);
	int (*nic_close)(
		struct ibv_context *ctx); /* -EBUSY while PDs or extended objects exist */
	int (*query_device)(struct ibv_context *ctx, struct ibv_device_attr *attr);
	int (*query_port)(
		struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr);
	int (*query_gid)(
		struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *ctx);
	int (*dealloc_pd)(struct ibv_pd *pd);
	/* NPU memory only: addr is an NPU address. */
	struct ibv_mr *(*reg_mr)(
		struct ibv_pd *pd, uint64_t addr, uint64_t size, int access);
	int (*dereg_mr)(struct ibv_mr *mr);
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		struct ibv_qp_init_attr *init_attr);
	/* For tests of index wrap: where the free-running indices of the QP's SQ and send
	 * CQ start. -EBUSY unless the QP is in RESET or INIT and the CQ has never been
	 * used. */
	int (*qp_seek)(struct ibv_qp *qp, uint32_t sq_index, uint32_t cq_index);
	/* -EAGAIN when none is pending. */
	int (*get_async_event)(struct ibv_context *ctx, struct ibv_async_event *event);
};

extern __attribute__((visibility("default"))) const struct nda_soft_api nda_soft_api;

#ifdef __cplusplus
}
#endif
#endif
