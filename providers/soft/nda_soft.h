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

#define NDA_SOFT_API_VERSION 4u
#define NDA_SOFT_API_SYMBOL "nda_soft_api"
#define NDA_SOFT_SESSION_BYTES 32

struct nda_soft_npu;

struct nda_soft_npu_attr {
	uint64_t memory_bytes; /* of NPU memory; sparse; 0: 1 GiB */
	uint32_t strict;       /* NPU addresses fault on the host */
	uint32_t assist;       /* waiting cores run the NIC engine */
	uint32_t manual; /* no engine thread: npu_step() is called instead; for tests */
	/* The memory is the caller's: memory_bytes, not 0, of file memory_fd from
	 * memory_offset on. The NPU keeps a descriptor of its own. Peers map it only if the
	 * file lets them. */
	uint32_t has_memory;
	/* For tests that are their own scheduler, with manual: the NIC engine's clock in
	 * nanoseconds, never 0, and its cookie; NULL: CLOCK_MONOTONIC. */
	uint64_t (*clock_ns)(void *cookie);
	void *clock_cookie;
	/* And what it moves of a queue in a pass, in requests or their parts; 0: as much as
	 * suits a NIC. */
	uint32_t pass_requests;
	int32_t memory_fd;
	uint64_t memory_offset; /* a multiple of 4096 */
};

struct nda_soft_nic_attr {
	const char *model; /* "hns1825", "in_die", "xscale", "udma" */
	/*
	 * Faults to make, "NAME:N,..." or NULL, copied:
	 *   remote-access-error, retry-exceeded, rnr  each N-th request of a queue ends so
	 *   drop           each N-th is lost, until the retries are used up
	 *   delay-us       each takes N microseconds at least
	 *   reorder        N (to 64) at a time, overtaking each other where they may
	 *   seed           of reorder's choices; 1 if not given
	 *   cq-overrun     a CQ fails at its N-th entry, and with it the queue
	 *   link-down      the port fails at the NIC's N-th request
	 *   link-down-us   the port fails N microseconds after the NIC was opened, whatever
	 *                  clock an engine has
	 */
	const char *inject;
	uint32_t mtu_bytes; /* 0: 4096 */
	uint32_t reserved;
	/* A file that lines of JSON are appended to, or NULL; see below. */
	const char *events;
};

/*
 * Jetties of URMA, the queues of a NIC of model "udma": they do not come through
 * ibv_extend, which refuses there. A peer is named by its EID and the jetty's id. A region
 * is a segment: its ibv_mr's lkey is the token id, its rkey the token value.
 */
struct nda_soft_jetty;

struct nda_soft_jetty_attr {
	struct ibv_pd *pd;
	struct ibv_extend_ops *ops; /* of the NPU that drives it; kept */
	uint32_t blocks;            /* of 64 bytes, a power of two, 64..32768 */
	uint32_t dma_mode;          /* enum queue_buf_dma_mode */
};

struct nda_soft_jetty_info {
	uint32_t jetty_id; /* 20 bits */
	uint32_t jfc_id;
	uint64_t sq_addr;
	uint32_t sq_blocks;
	uint32_t max_inline;  /* bytes */
	uint64_t sq_doorbell; /* where cores write the head, 4 bytes */
	uint64_t cq_addr;
	uint32_t cq_depth;
	uint32_t cqe_bytes;
	uint64_t cq_record; /* the consumer index, 4 bytes */
};

struct nda_soft_jetty_peer {
	uint8_t eid[16];   /* in network order; requests have the bytes in reverse */
	uint32_t jetty_id; /* 1..0xfffff */
	uint8_t timeout;   /* 0..31, of an acknowledgement: 4.096 us * 2^timeout, 0: none */
	uint8_t retry_count; /* 0..7 */
	uint8_t reserved[2]; /* 0 */
};

/*
 * Receive queues of QPs, on NICs whose format has them, and SRQs have one layout, in the
 * memory that the callbacks gave: entries of 16 bytes, little-endian { u32 length, u32 key,
 * u64 address }, and two records, each a u32 in 64 bytes of its own: dbr_pi_va,
 * free-running or its low 16 bits, written by who posts, and dbr_ci_va, written by the NIC.
 * There is no doorbell. A write with immediate consumes an entry, whose buffer it does not
 * use.
 */

/*
 * The event log. A line is an object; several NICs and processes may share the file. Each
 * has time_ns (CLOCK_MONOTONIC), pid, nic (its device's name), event, qpn, and index (of
 * the request's first ring unit, free-running); and by event:
 *   "wqe"     a request begins: units (of the ring), op ("write", "read",
 *             "compare_swap", "fetch_add"), length in bytes, signalled, fence, order,
 *             remote (an address, as all are a string, "0x..."), rkey, local (an array of
 *             address, length, lkey), inline; where it has them reduce, immediate, notify
 *             (address, rkey, data)
 *   "cqe"     a completion was written: cqn, cq_index, status (enum nda_status), vendor
 *   "receive" a message has consumed a receive, index being that one's: cqn, cq_index,
 *             length, immediate
 *   "breach"  the driver broke a rule of the format: what, and cqn where it is a CQ's
 */

/*
 * Rules for all functions: any thread may call them; none is async-signal-safe; a child of
 * fork() must not call them. int functions return 0 or a negative errno unless said
 * otherwise, pointer functions NULL with errno set; error_detail() then tells the object
 * and the cause. EINVAL for a NULL argument, or an NPU or a NIC that is not open (other
 * objects have to exist); ENOMEM. Outputs are written only on success.
 */
struct nda_soft_api {
	uint32_t version; /* NDA_SOFT_API_VERSION */
	uint32_t size;    /* sizeof(struct nda_soft_api) */

	/* Text of the calling thread's last failure, "" if there was none; until its next.
	 */
	const char *(*error_detail)(void);
	/*
	 * Which other processes may reach this one and be reached: those of the same user
	 * that know the same session. The first half names it and is no secret, the second
	 * half is one. Without a session a process reaches only itself. -EBUSY if it has
	 * another session already; or why it cannot listen for the others.
	 */
	int (*set_session)(const uint8_t session[NDA_SOFT_SESSION_BYTES]);

	/* EINVAL for more than 16 TiB, or a clock or a pace for an NPU that is not manual;
	 * ENOSPC if 64 are open in this process; or why there is no memory or thread. */
	struct nda_soft_npu *(*npu_open)(const struct nda_soft_npu_attr *attr);
	/* Allocations go with it. -EBUSY while a queue, a region or a doorbell uses it, or
	 * a launch was not waited for. */
	int (*npu_close)(struct nda_soft_npu *npu);
	/* size in bytes. At least 64-byte aligned, 4 KiB from 4 KiB upwards; memory that
	 * was never in use is 0. -EINVAL for size 0, -ENOMEM. */
	int (*npu_alloc)(struct nda_soft_npu *npu, uint64_t size, uint64_t *addr);
	/* -EINVAL if addr is not the start of an allocation, -EBUSY while a region covers
	 * it. */
	int (*npu_free)(struct nda_soft_npu *npu, uint64_t addr);
	/* Between host and NPU memory. The NPU's range must lie within one allocation,
	 * else -EINVAL. A word of 1, 2, 4 or 8 bytes that is aligned at both ends is moved
	 * as one; npu_memset sets bytes. */
	int (*npu_write)(
		struct nda_soft_npu *npu, uint64_t dst, const void *src, uint64_t size);
	int (*npu_read)(struct nda_soft_npu *npu, void *dst, uint64_t src, uint64_t size);
	int (*npu_copy)(
		struct nda_soft_npu *npu, uint64_t dst, uint64_t src, uint64_t size);
	int (*npu_memset)(struct nda_soft_npu *npu, uint64_t dst, int value, uint64_t size);
	/* 1 if [addr, addr + size) is in this NPU's memory, allocated or not; else 0. */
	int (*npu_contains)(struct nda_soft_npu *npu, uint64_t addr, uint64_t size);
	/*
	 * The address at which cores reach a doorbell of a software NIC. Equal descriptors
	 * give the same address; each mapping is undone by an unmapping with an equal
	 * descriptor. EOPNOTSUPP for a host address of no open software NIC; EINVAL for
	 * another descriptor of none, or of what does not lie in a page; ENOSPC. Whoever
	 * cannot map a host address may give the driver an address in NPU memory instead,
	 * and store to the register what cores write there.
	 */
	void *(*npu_db_mmap)(
		struct nda_soft_npu *npu, const struct doorbell_map_desc *desc);
	int (*npu_db_unmap)(
		struct nda_soft_npu *npu, void *ptr, const struct doorbell_map_desc *desc);
	/* Starts fn(core, arg) on 1 to 48 cores, each a thread, at the same time. -EBUSY
	 * while an earlier launch was not waited for, -EAGAIN if threads run out. */
	int (*npu_launch)(
		struct nda_soft_npu *npu, nda_kernel_fn fn, void *arg, uint32_t n_cores);
	/* timeout_ms < 0: no limit. -ETIMEDOUT: it still runs; -EINVAL: nothing was
	 * launched. */
	int (*npu_wait)(struct nda_soft_npu *npu, int timeout_ms);
	/* Fills what a core of this NPU is called with, as core 0 of 1, valid until the NPU
	 * is closed; for whoever acts in the place of cores, address_offset being where
	 * the NPU's memory is for DMA, and for tests that are their own scheduler. */
	int (*npu_core)(struct nda_soft_npu *npu, struct nda_core *core);
	/* One pass of the NIC engine; > 0 if it did work, 0 if idle or another thread is in
	 * it. */
	int (*npu_step)(struct nda_soft_npu *npu);
	/* Breaches of the queue format's rules that the NIC models of this NPU have met (a
	 * WQE not yet valid at fetch, a doorbell that contradicts its record, ...), since
	 * it was opened. 0 is what a correct data plane leaves. */
	int (*npu_violations)(struct nda_soft_npu *npu, uint64_t *count);

	/* ENODEV for an unknown model; EINVAL for an MTU or a fault that is none, or an
	 * event log that is no regular file; or why it cannot be opened; ENOSPC for more
	 * than 65535 in the life of the process. */
	struct ibv_context *(*nic_open)(const struct nda_soft_nic_attr *attr);
	/* -EBUSY while PDs, extended contexts, CQs, SRQs, QPs or jetties exist. Another
	 * code but -EINVAL: the NIC is closed, but its event log could not be written to
	 * the end. */
	int (*nic_close)(struct ibv_context *ctx);
	int (*query_device)(struct ibv_context *ctx, struct ibv_device_attr *attr);
	/* The one port is 1. */
	int (*query_port)(
		struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr);
	/* index 0: link-local, 1: what to connect with. */
	int (*query_gid)(
		struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *ctx);
	/* -EBUSY while regions, SRQs, QPs or jetties use it. */
	int (*dealloc_pd)(struct ibv_pd *pd);
	/*
	 * addr is an NPU address, [addr, addr + size) within one allocation, which then
	 * cannot be freed. EINVAL for another range, or remote write or atomic access
	 * without local write; EOPNOTSUPP for other access flags than local write, remote
	 * write, read and atomic, and those that a device may ignore; ENOSPC.
	 */
	struct ibv_mr *(*reg_mr)(
		struct ibv_pd *pd, uint64_t addr, uint64_t size, int access);
	/* When it returns 0 no NIC of any process touches the range any more. -ETIMEDOUT: a
	 * peer is stopped in the middle of a transfer; the key is void, to be called again.
	 */
	int (*dereg_mr)(struct ibv_mr *mr);
	/*
	 * RC: RESET, INIT, RTR, RTS, and from any to ERR or RESET. The step to RTR connects
	 * to the peer's process and may take seconds. A reset QP starts at index 0, and its
	 * CQ too unless another QP uses it. -EINVAL for a step, an attribute or a value
	 * that is not allowed; to RTR: -ECONNREFUSED no such process in this session,
	 * -EACCES it belongs to another user or session, -ENOTCONN this process has no
	 * session, -EMFILE, -ENFILE here or at the peer, as the text says, -ECONNRESET it
	 * hung up, -EPROTO it says what it should not, -ETIMEDOUT; to INIT, RTR or RTS:
	 * -EIO if the QP went into ERR meanwhile; to ERR or RESET: -ETIMEDOUT as dereg_mr.
	 */
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
	/* All attributes, whatever mask says. */
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		struct ibv_qp_init_attr *init_attr);
	/* For tests of index wrap: where the free-running indices of the QP's SQ and send
	 * CQ start. -EBUSY unless the QP is in RESET or INIT and the CQ is as it was made,
	 * or reset. */
	int (*qp_seek)(struct ibv_qp *qp, uint32_t sq_index, uint32_t cq_index);
	int (*query_eid)(struct ibv_context *ctx, uint8_t eid[16]);
	/* EOPNOTSUPP for a NIC of QPs; EINVAL for another number of blocks; else as for a
	 * QP and its CQ through ibv_extend. */
	struct nda_soft_jetty *(*jetty_create)(const struct nda_soft_jetty_attr *attr);
	int (*jetty_query)(struct nda_soft_jetty *jetty, struct nda_soft_jetty_info *info);
	/* tp_id: out, of 24 bits: the transport by which requests reach the peer. Errors as
	 * modify_qp to RTR, after which it may be called again; -EISCONN if it is
	 * connected; -EIO where a doorbell has come before it was: it must be reset. */
	int (*jetty_connect)(struct nda_soft_jetty *jetty,
		const struct nda_soft_jetty_peer *peer, uint32_t *tp_id);
	/* Back to where it may be connected, with the same queues and indices 0. -ETIMEDOUT
	 * as modify_qp to RESET. */
	int (*jetty_reset)(struct nda_soft_jetty *jetty);
	/* As qp_seek, before connect. */
	int (*jetty_seek)(
		struct nda_soft_jetty *jetty, uint32_t sq_index, uint32_t cq_index);
	/* -ETIMEDOUT as modify_qp to RESET. */
	int (*jetty_destroy)(struct nda_soft_jetty *jetty);
	/*
	 * IBV_EVENT_QP_FATAL: the QP's driver broke the rules of the queue format, or its
	 * CQ failed, or the process that it is connected to is gone; IBV_EVENT_CQ_ERR: the
	 * CQ overran, nothing is written to it until its only QP is reset;
	 * IBV_EVENT_PORT_ERR. A jetty is told of as a QP whose qp_num is its id, its JFC as
	 * a CQ whose handle is the jfc_id. -EAGAIN when none is pending. Nothing has to be
	 * acknowledged; beyond 1024 that nobody asks for, new ones are lost.
	 */
	int (*get_async_event)(struct ibv_context *ctx, struct ibv_async_event *event);
};

extern __attribute__((visibility("default"))) const struct nda_soft_api nda_soft_api;

#ifdef __cplusplus
}
#endif
#endif
