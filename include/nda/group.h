/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Groups of PEs: a symmetric heap, a channel from every core's queue to every PE, and the
 * tables that kernels receive. To the own PE there is a channel too, but for NICs of URMA
 * jetties (UDMA), which do not send to themselves: there the device calls do the work. The
 * rules of nda/npu.h apply.
 *
 * A group may have NICs of several queue formats. Each format has queues to every PE and a
 * table of its own, all over the same heap; kernels choose by the table that they open. The
 * functions that end in _of name a format by enum nda_format, NDA_FORMAT_NONE being that of
 * nics[0]; those without are the same for nics[0]'s.
 *
 * Functions marked collective are called by every PE of the group in the same order. When
 * one PE fails in such a call it fails on all, with that PE's reason.
 */
#ifndef NDA_GROUP_H
#define NDA_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include <nda/bootstrap.h>
#include <nda/channel.h>
#include <nda/decl.h>
#include <nda/nic.h>
#include <nda/npu.h>
#include <nda/table.h>

#ifdef __cplusplus
extern "C" {
#endif

struct nda_group;
struct nda_group_region;

enum nda_group_flags {
	/* Several cores post to one queue, see nda/aiv/shared.h. */
	NDA_GROUP_SHARED_QUEUES = 1 << 0,
	/* UDMA: a core has queues to each PE through each other PE as well, see
	 * nda/aiv/udma_relay.h: its port towards the relay leads to the peer's port towards
	 * the relay. For each core, the square of the number of PEs. */
	NDA_GROUP_RELAYS = 1 << 1,
};

/**
 * struct nda_group_attr - how a group is made
 * @comp_mask: must be 0
 * @heap_bytes: size of the symmetric heap, the same on every PE; rounded up to 4 KiB, 0
 *   means 64 MiB
 * @n_cores: queue owners: cores that may use the table at a time, 1..48, the same on every
 *   PE; 0 means 1
 * @queues_per_core: of each core to each PE, 1..32, the same on every PE; 0 means 1, and
 *   with NDA_GROUP_RELAYS it is 1
 * @channel: of all queues; its comp_mask counts. In a group of several formats, what
 *   jetties cannot do (nda/channel.h) is for the others alone
 * @flags: enum nda_group_flags, the same on every PE
 * @heap_way: enum nda_mr_way, how RDMA devices reach the heap of this PE: NDA_MR_PAGES to
 *   NDA_MR_HOST demand that way; NDA_MR_ANY tries them in order, or takes that of
 * NDA_MR_WAY in the environment. With NDA_MR_HOST the heap is host memory that is mapped to
 * the NPU; queues and tables stay in NPU memory. Software NICs have their own way in any
 * case
 */
struct nda_group_attr {
	uint64_t comp_mask;
	uint64_t heap_bytes;
	uint32_t n_cores;
	uint32_t queues_per_core;
	struct nda_channel_attr channel;
	uint32_t flags;
	uint32_t heap_way;
};

/**
 * nda_group_create - joins the PEs of a bootstrap to a group; collective
 * @bootstrap: read during the call; its callbacks and cookie must outlive the group
 * @npu: kept by the group; where heap, queues and tables are
 * @nics: kept by the group, their formats in the same order on every PE. Of the n NICs of
 *   one format, the queues between PEs p and q are those of number (p + q) % n on both
 *   sides; those through relay r, of (p + r) % n at p and (q + r) % n at q
 * @n_nics: 1..32, the same on every PE
 * @attr: may be NULL
 * @attr_size: sizeof(*attr)
 *
 * Wrong arguments of one PE reach the others as well, if only its bootstrap is usable.
 *
 * Returns the group, to be destroyed by nda_group_destroy, or NULL with errno, the same on
 * every PE
 *   EINVAL      an argument, or PEs disagree about one
 *   EOPNOTSUPP  relays, and no NIC is UDMA; no way for a NIC to reach the heap; or as of
 *               nda_channel_create
 *   EBUSY       soft: this process belongs to another job's session
 *   ENETDOWN    a NIC's port is down
 *   ENOMEM      no memory, or none in the NPU
 *   ECONNRESET  of the bootstrap: a PE is gone
 *   ETIMEDOUT   of the bootstrap: a PE is late
 *   EPROTO      a PE has another version of this library, or an extension driver gave
 *               queues of no use
 *   other       of the bootstrap, the NIC or its extension driver
 */
struct nda_group *nda_group_create(const struct nda_bootstrap *bootstrap,
	struct nda_npu *npu, struct nda_nic *const *nics, uint32_t n_nics,
	const struct nda_group_attr *attr, size_t attr_size) NDA_NOEXCEPT;

/**
 * nda_group_destroy - leaves and releases the group; collective
 *
 * Waits for all PEs, so that nobody reaches into a heap that is gone; with a dead or late
 * peer no longer than the bootstrap lets it. The group is destroyed in any case but those
 * of -EINVAL and -EBUSY. Regions may outlive it.
 *
 * Returns 0, -EINVAL, -EBUSY (a kernel runs on the NPU: wait for it, then destroy again),
 * or what the bootstrap's barrier gave, the group being destroyed all the same.
 */
int nda_group_destroy(struct nda_group *group) NDA_NOEXCEPT;

/* This process's PE, and the number of PEs; 0 with the error detail set if @group is no
 * group. */
uint32_t nda_group_pe(const struct nda_group *group) NDA_NOEXCEPT;
uint32_t nda_group_n_pes(const struct nda_group *group) NDA_NOEXCEPT;

/**
 * nda_group_barrier - waits for all PEs; collective
 *
 * Of the hosts: it says nothing about what kernels have posted.
 *
 * Returns 0, -EINVAL, or what the bootstrap gave.
 */
int nda_group_barrier(struct nda_group *group) NDA_NOEXCEPT;

/**
 * nda_group_heap_alloc - allocates from the symmetric heap
 * @size_bytes: above 0
 * @addr: out: an own NPU address, aligned to 64 bytes, from 4 KiB upwards to 4 KiB
 *
 * Exchanges nothing, but is collective in effect: the same calls of alloc and free in the
 * same order on every PE give addresses at the same offset. The contents are undefined.
 *
 * Returns 0, -EINVAL, or -ENOMEM: not so much is left in one piece.
 */
int nda_group_heap_alloc(
	struct nda_group *group, uint64_t size_bytes, uint64_t *addr) NDA_NOEXCEPT;

/**
 * nda_group_heap_free - frees what was allocated
 * @addr: from nda_group_heap_alloc; nobody transfers to or from it any more
 *
 * Returns 0, or -EINVAL: NULL, or nothing was allocated there.
 */
int nda_group_heap_free(struct nda_group *group, uint64_t addr) NDA_NOEXCEPT;

/**
 * nda_group_heap_query - how a NIC reaches the own heap
 * @nic: of the group, below n_nics
 * @info: out
 * @info_size: sizeof(*info)
 *
 * Returns 0 or -EINVAL.
 */
int nda_group_heap_query(const struct nda_group *group, uint32_t nic,
	struct nda_mr_info *info, size_t info_size) NDA_NOEXCEPT;

/**
 * nda_group_check - whether the own heap and the doorbells are still there
 *
 * Not collective; may be called while a kernel runs, at any rate: it asks the kernel only
 * when that has said that something of this NPU's was revoked.
 *
 * Returns 0; -ESTALE: the kernel took the heap away from a NIC, since its memory was freed
 * or its device is gone, or a page of doorbells from the NPU, and nda_error_detail() says
 * which and why: transfers to it end in errors, and the group is of no more use; -EINVAL;
 * or what /dev/nda gave.
 */
int nda_group_check(const struct nda_group *group) NDA_NOEXCEPT;

/* First address of the own heap, an NPU address; 0 with the error detail set if @group is
 * no group. */
uint64_t nda_group_heap_base(const struct nda_group *group) NDA_NOEXCEPT;

/* The address that a kernel receives: a struct nda_table in NPU memory. Valid until the
 * group is destroyed; 0 with the error detail set if @group is no group, or has no NIC of
 * @format. */
uint64_t nda_group_table(const struct nda_group *group) NDA_NOEXCEPT;
uint64_t nda_group_table_of(
	const struct nda_group *group, enum nda_format format) NDA_NOEXCEPT;

/**
 * nda_group_abort - ends the waits of kernels
 * @value: not 0: every device call of this group's kernels on this PE that waits, now or
 *   later, returns NDA_ABORTED, once it has found nothing to do; 0: they wait again
 *
 * What was posted is still under way. May be called while a kernel runs. A repair leaves
 * the word as it is.
 *
 * Returns 0, -EINVAL, or as nda_npu_write.
 */
int nda_group_abort(struct nda_group *group, uint32_t value) NDA_NOEXCEPT;

/**
 * nda_group_repair - takes queues out of error; collective
 *
 * Queue pairs of which either end has an error that a kernel has met, or work that no
 * kernel has seen the end of, are reset and connected again, in their old memory and at the
 * same place of the table; the others go on as they are. What was under way on the broken
 * ones is lost: how much of it has reached the peer's memory is not known. The sync area of
 * the team of all PEs starts anew, so that barriers work again whose rounds not all PEs had
 * come to; zero those of other teams yourself. No kernel may run on any PE: wait for them
 * first.
 *
 * Returns 0, the same on every PE, or
 *   -EINVAL      @group is no group
 *   -EBUSY       a kernel runs, or queues are lent to a view; nothing was done
 *   -ENETDOWN    a NIC's port is down
 *   -ESTALE      a PE's heap is gone, see nda_group_check; nothing was done
 *   other        of the bootstrap, the NIC or its extension driver. Queue pairs that are
 *                not repaired are in error on at least one end, with NDA_FLUSHED where
 *                there was none; the call may be tried again
 */
int nda_group_repair(struct nda_group *group) NDA_NOEXCEPT;

/* Regions outside the heap: NPU memory registered with every NIC of the group. */

#define NDA_REGION_DESC_BYTES 384

/**
 * nda_group_region_register - registers memory outside the heap
 * @addr, @size_bytes, @access: as of nda_mr_register
 * @region: out; to be released by nda_group_region_deregister. It may outlive the group
 *
 * Not collective.
 *
 * Returns 0, or the errors of nda_mr_register, negative.
 */
int nda_group_region_register(struct nda_group *group, uint64_t addr, uint64_t size_bytes,
	uint32_t access, struct nda_group_region **region) NDA_NOEXCEPT;

/**
 * nda_group_region_deregister - ends the registrations
 *
 * When it returns nobody reaches the memory by its keys any more.
 *
 * Returns 0 or -EINVAL.
 */
int nda_group_region_deregister(struct nda_group_region *region) NDA_NOEXCEPT;

/**
 * nda_group_region_query - how a NIC reaches the region
 * @nic: of the group, below n_nics
 * @info: out
 * @info_size: sizeof(*info)
 *
 * Returns 0 or -EINVAL.
 */
int nda_group_region_query(const struct nda_group_region *region, uint32_t nic,
	struct nda_mr_info *info, size_t info_size) NDA_NOEXCEPT;

/**
 * nda_group_region_check - whether the region's memory is still there
 *
 * Returns as nda_mr_check, of the first NIC that reaches it no more.
 */
int nda_group_region_check(const struct nda_group_region *region) NDA_NOEXCEPT;

/**
 * nda_group_region_export - what a peer needs to import the region
 * @desc: out; opaque, versioned. Who has it may reach the region as its access allows
 *
 * Returns 0, -EINVAL, or -ESTALE: its memory is gone, see nda_group_region_check.
 */
int nda_group_region_export(
	struct nda_group_region *region, uint8_t desc[NDA_REGION_DESC_BYTES]) NDA_NOEXCEPT;

/**
 * nda_group_region_local - what device calls take of an own region
 * @format: of the engine that does the transfer
 * @relay: the PE that it goes through, the own one: none
 * @pe: the PE that the transfer goes to or comes from
 * @out: out
 *
 * Returns 0 or -EINVAL: an argument, or the group has no such format, or no such way.
 */
int nda_group_region_local(
	struct nda_group_region *region, uint32_t pe, struct nda_region *out) NDA_NOEXCEPT;
int nda_group_region_local_of(struct nda_group_region *region, enum nda_format format,
	uint32_t relay, uint32_t pe, struct nda_region *out) NDA_NOEXCEPT;

/**
 * nda_group_region_import - what device calls take of a peer's region
 * @format: of the engine that reaches it
 * @relay: the PE that transfers go through, the own one: none
 * @desc: exported by a PE of this group
 * @out: out; its pe is the owner
 *
 * Takes no resources: there is nothing to release.
 *
 * Returns 0, or
 *   -EINVAL           NULL, or the descriptor is of a group of another shape, or this
 *                     group has no such format, or no such way
 *   -EPROTO           @desc is no descriptor, or damaged
 *   -EPROTONOSUPPORT  @desc is of another version
 */
int nda_group_region_import(struct nda_group *group,
	const uint8_t desc[NDA_REGION_DESC_BYTES], struct nda_region *out) NDA_NOEXCEPT;
int nda_group_region_import_of(struct nda_group *group, enum nda_format format,
	uint32_t relay, const uint8_t desc[NDA_REGION_DESC_BYTES],
	struct nda_region *out) NDA_NOEXCEPT;

/**
 * nda_group_view_lend - lends the first queues of a core to the layout of the public
 * library
 * @core: below n_cores
 * @addr: out: the address of an aclshmemi_rdma_info in NPU memory, which kernels of the
 *   public collective library for Ascend read; valid until the view is returned
 *
 * Its head and tail addresses point at the native counters. While it is lent, native posts
 * on these queues return NDA_QUEUE_LENT; the queue to the own PE is not part of the view.
 * Layout as recorded from that library's device code, byte for byte.
 *
 * Returns 0, or
 *   -EINVAL      NULL, or no such core
 *   -EALREADY    they are lent
 *   -EBUSY       a kernel runs, or a queue is not quiet
 *   -EIO         a queue is in error
 *   -EOPNOTSUPP  the group has no 1825, whose queues alone these kernels know; or more
 *                than one, since they use one local key; or its queues are shared; or not
 *                every WQE had a completion, which they count on
 *   -ENOMEM      no memory in the NPU
 */
int nda_group_view_lend(
	struct nda_group *group, uint32_t core, uint64_t *addr) NDA_NOEXCEPT;

/**
 * nda_group_view_return - takes a core's queues back
 * @core: below n_cores
 *
 * The native state is worked out anew from the counters that the kernels left; what they
 * posted and did not wait for may still be under way. An error completion that they
 * consumed is not known here: later posts then meet the queue's flushed completions.
 *
 * Returns 0, -EINVAL (NULL, no such core, or not lent), -EBUSY: a kernel runs, or -EPROTO:
 * somebody else has taken a queue back, and they stay lent.
 */
int nda_group_view_return(struct nda_group *group, uint32_t core) NDA_NOEXCEPT;

/**
 * nda_group_queue_error - reads the sticky error of a queue
 * @format: of the queue
 * @pe: the PE that the queue leads to
 * @owner: whose queue it is: core * queues_per_core + queue; with relays
 *   core * n_pes + relay
 * @error: out; status is NDA_OK if there is none
 *
 * Of what a core has consumed: an error completion still in its ring is not seen. May be
 * called while a kernel runs, and may then read a value that is being written.
 *
 * Returns 0; -EINVAL: an argument, or the group has no such format or queue; or as
 * nda_npu_read.
 */
int nda_group_queue_error(struct nda_group *group, uint32_t pe, uint32_t owner,
	struct nda_queue_error *error) NDA_NOEXCEPT;
int nda_group_queue_error_of(struct nda_group *group, enum nda_format format, uint32_t pe,
	uint32_t owner, struct nda_queue_error *error) NDA_NOEXCEPT;

/**
 * nda_group_queue_query - what the channel of a queue is
 * @format: of the queue
 * @pe: the PE that the queue leads to
 * @owner: whose queue it is: core * queues_per_core + queue; with relays
 *   core * n_pes + relay
 * @info: out
 * @info_size: sizeof(*info)
 *
 * May be called while a kernel runs.
 *
 * Returns 0 or -EINVAL.
 */
int nda_group_queue_query(struct nda_group *group, uint32_t pe, uint32_t owner,
	struct nda_channel_info *info, size_t info_size) NDA_NOEXCEPT;
int nda_group_queue_query_of(struct nda_group *group, enum nda_format format, uint32_t pe,
	uint32_t owner, struct nda_channel_info *info, size_t info_size) NDA_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
