/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queues that another library has made and connected, taken over by the device data plane:
 * RoCE and UB channels of the communication layer for Ascend 950 (HCOMM), read from the
 * ChannelEntity in NPU memory that its ChannelHandle names, and AI queue pairs of the RoCE
 * NIC inside Ascend 910, as RaAiQpCreate() describes them. The rules of nda/npu.h apply.
 *
 * Layouts are those that public sources of the communication layer and of the shared-memory
 * library for Ascend show; what they leave open is said at the attribute that settles it.
 * Tested against bytes made after these layouts, and with software NICs behind them, never
 * on hardware.
 *
 * The queues stay the property of who made them, and must outlive the import. While they
 * are imported nobody else posts to them or reads their completions.
 */
#ifndef NDA_IMPORT_H
#define NDA_IMPORT_H

#include <stddef.h>
#include <stdint.h>

#include <nda/decl.h>

#ifdef __cplusplus
extern "C" {
#endif

struct nda_import;
struct nda_npu;

enum nda_import_source {
	NDA_IMPORT_NONE = 0,    /* no queue leads to this PE; the own one is such */
	NDA_IMPORT_CHANNEL = 1, /* a ChannelEntity: an AIV channel, RoCE or UB */
	NDA_IMPORT_AI_QP = 2,   /* an AiQpInfo, 368 bytes */
};

/**
 * struct nda_import_peer - where the queue to one PE is described
 * @source: enum nda_import_source
 * @service_level: AI_QP: 0..7, of the queue pair; CHANNEL: must be 0, the entity tells
 * @address: CHANNEL: the entity's NPU address, which is the ChannelHandle's value; AI_QP: a
 *   host address, read during the call
 * @remote_addr, @remote_bytes: AI_QP: the peer's heap; CHANNEL: must be 0
 * @lkey: AI_QP: of the own heap; CHANNEL: must be 0
 * @rkey: AI_QP: of the peer's heap; CHANNEL: must be 0
 */
struct nda_import_peer {
	uint32_t source;
	uint32_t service_level;
	uint64_t address;
	uint64_t remote_addr;
	uint64_t remote_bytes;
	uint32_t lkey;
	uint32_t rkey;
};

/*
 * The layouts of a RoCE channel's queues. They carry no version: AUTO takes the one that
 * their values fit, and refuses where none or more than one does.
 *
 *   INITIAL  one doorbell address and a mode; known by a mode of 0 or 1, a service level to
 *            7, a WQE of 32..4096 bytes, and a number and a depth at their places
 *   SPLIT    a doorbell register and a record; by the same at its places
 *   VENDOR   as SPLIT, with a word of the NIC's vendor; by its bits 24..26 and 50..52, or a
 *            value to 7, which an intermediate version has: taken for the MTU's code, which
 *            is unverified
 */
enum nda_import_layout {
	NDA_IMPORT_LAYOUT_AUTO = 0,
	NDA_IMPORT_LAYOUT_INITIAL = 1,
	NDA_IMPORT_LAYOUT_SPLIT = 2,
	NDA_IMPORT_LAYOUT_VENDOR = 3,
};

enum nda_import_flags {
	/* The entity's header is not looked at. Without this it must have its magic number
	 * and size; that every version of the communication layer fills them in is
	 * unverified. */
	NDA_IMPORT_NO_HEADER = 1 << 0,
};

/**
 * struct nda_import_attr - how queues are taken over
 * @comp_mask: must be 0
 * @my_pe: the own PE, whose source is NDA_IMPORT_NONE
 * @format: enum nda_format of the NICs, the same for all peers. NDA_FORMAT_NONE: what the
 *   sources show: IN_DIE, UDMA, and of RoCE channels XSCALE by WQEs of 128 bytes and
 *   HNS1825 by those of 64 with a doorbell record
 * @layout: enum nda_import_layout
 * @flags: enum nda_import_flags
 * @heap_buffer: CHANNEL: which of the channel's buffers, of both sides, is the heap
 * @device_timeout_us: deadline of device calls that wait; 0 means 10 s
 * @heap_addr, @heap_bytes: AI_QP: the own heap; else must be 0, the entities tell
 * @scratch_addr: NDA_SCRATCH_BYTES (nda/table.h) for each PE, in the own heap, a multiple
 * of 64: for atomics that are waited for; set to 0 by the call. 0: none
 * @sync_addr: NDA_SYNC_BYTES at the same offset of every PE's heap, a multiple of 64,
 * zeroed on all PEs before any of them uses it: for sync and barrier of all PEs. 0: none
 * @max_inline_bytes: UDMA: 0..65535, what a request may carry of its data, which no source
 *   tells
 * @reserved: must be 0
 */
struct nda_import_attr {
	uint64_t comp_mask;
	uint32_t my_pe;
	uint32_t format;
	uint32_t layout;
	uint32_t flags;
	uint32_t heap_buffer;
	uint32_t device_timeout_us;
	uint64_t heap_addr;
	uint64_t heap_bytes;
	uint64_t scratch_addr;
	uint64_t sync_addr;
	uint32_t max_inline_bytes;
	uint32_t reserved;
};

/**
 * nda_channel_import - takes over one queue to each peer and publishes a table of them
 * @npu: kept by the import; where entities, queues and heap are
 * @peers: one for each PE, read during the call
 * @n_pes: 2..65536
 * @attr: must not be NULL: which PE is the own one has no default
 * @attr_size: sizeof(*attr)
 *
 * Not collective. The heap is as large as the smallest of the own one and the peers'. A
 * queue goes on at the indices that its words in NPU memory hold: all that was posted must
 * have completed, each WQE with a completion of its own. A UDMA queue must never have been
 * used, since public sources disagree about its words. The completion ring of an XSCALE
 * queue that was never used is set to what cannot be taken for completions.
 *
 * Each address that the sources name must be memory of @npu where it can tell, but for
 * doorbells, and for rings of AI queue pairs and UDMA, which belong to another process.
 *
 * Returns the import, to be released by nda_import_release, or NULL with errno; nothing was
 * changed then
 *   EINVAL      an argument
 *   EFAULT      an entity, or what it points to, is not memory of the NPU
 *   EPROTO      what was read is none of the known layouts, or more than one, or has values
 *               that no queue has; the text says which
 *   EOPNOTSUPP  an engine, protocol or number of queues other than those of AIV channels; a
 *               1825 in the INITIAL layout, which has no room for its record; another in
 *               it whose SQ or CQ has a record instead of a register; sources of different
 *               formats; a UDMA queue that was used
 *   EBUSY       a queue has requests under way, or is imported already
 *   ENXIO       ascend: no current context of the device
 *   ENOMEM      no memory, or none in the NPU
 *   other       of the NPU, as nda_npu_read
 */
struct nda_import *nda_channel_import(struct nda_npu *npu,
	const struct nda_import_peer *peers, uint32_t n_pes,
	const struct nda_import_attr *attr, size_t attr_size) NDA_NOEXCEPT;

/* The address that a kernel receives: a struct nda_table in NPU memory, for one core, valid
 * until the import is released; 0 with the error detail set if @import is none. */
uint64_t nda_import_table(const struct nda_import *import) NDA_NOEXCEPT;

/**
 * struct nda_import_info - what was found
 * @format: enum nda_format
 * @layout: enum nda_import_layout of a RoCE channel, else 0
 * @qpn: of the queue pair, or the id of the jetty
 * @sq_depth: of the ring, in its own unit
 * @remote_addr: the peer's heap
 * @remote_bytes: its size
 */
struct nda_import_info {
	uint32_t format;
	uint32_t layout;
	uint32_t qpn;
	uint32_t sq_depth;
	uint64_t remote_addr;
	uint64_t remote_bytes;
};

/**
 * nda_import_query - what the queue to a PE is
 * @pe: the PE that it leads to
 * @info: out
 * @info_size: sizeof(*info)
 *
 * Returns 0, or -EINVAL: an argument, or no queue leads there.
 */
int nda_import_query(const struct nda_import *import, uint32_t pe,
	struct nda_import_info *info, size_t info_size) NDA_NOEXCEPT;

/**
 * nda_import_release - gives the queues back
 *
 * The indices to which kernels have come are written to the queues' words, but for UDMA,
 * whose queues nobody else can go on with. No kernel may use the table any more: only one
 * that nda_npu_launch or nda_npu_launch_function started is noticed.
 *
 * Returns 0, -EINVAL, or -EBUSY: a kernel runs, and nothing was done; else the queues are
 * released, but some of the words may be old: -EIO, a queue is in error or has requests
 * under way; other, of the NPU, as nda_npu_read and nda_npu_write.
 */
int nda_import_release(struct nda_import *import) NDA_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
