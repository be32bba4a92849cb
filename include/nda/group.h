/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Groups of PEs: a symmetric heap, a channel from every core's queue to every peer, and the
 * tables that kernels receive. The rules of nda/npu.h apply. Functions marked collective
 * are called by every PE of the group in the same order.
 */
#ifndef NDA_GROUP_H
#define NDA_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include <nda/bootstrap.h>
#include <nda/channel.h>
#include <nda/nic.h>
#include <nda/npu.h>
#include <nda/table.h>

#ifdef __cplusplus
extern "C" {
#endif

struct nda_group;
struct nda_group_region;

struct nda_group_attr {
	uint64_t comp_mask;  /* must be 0 */
	uint64_t heap_bytes; /* the same on every PE; default 64 MiB */
	uint32_t n_cores; /* queue owners: cores that may use the table at a time; default 1
			   */
	uint32_t reserved;
	struct nda_channel_attr channel;
};

/* Collective. Holds references to npu and nics; bootstrap must outlive the group. */
struct nda_group *nda_group_create(const struct nda_bootstrap *bootstrap,
	struct nda_npu *npu, struct nda_nic *const *nics, uint32_t n_nics,
	const struct nda_group_attr *attr, size_t attr_size);
/* Collective while all peers live; with a dead peer it ends by the bootstrap's deadline. */
int nda_group_destroy(struct nda_group *group);

uint32_t nda_group_pe(const struct nda_group *group);
uint32_t nda_group_n_pes(const struct nda_group *group);
int nda_group_barrier(struct nda_group *group);

/* Symmetric heap. alloc is collective in effect: the same calls in the same order on every
 * PE give addresses at the same offset. */
int nda_group_heap_alloc(struct nda_group *group, uint64_t size_bytes, uint64_t *addr);
int nda_group_heap_free(struct nda_group *group, uint64_t addr);
uint64_t nda_group_heap_base(const struct nda_group *group);

/* The address that a kernel receives: an nda_table in NPU memory. */
uint64_t nda_group_table(const struct nda_group *group);

/* Regions outside the heap: NPU memory registered with every NIC of the group. */
#define NDA_REGION_DESC_BYTES 256
int nda_group_region_register(struct nda_group *group, uint64_t addr, uint64_t size_bytes,
	uint32_t access, struct nda_group_region **region);
int nda_group_region_deregister(struct nda_group_region *region);
int nda_group_region_export(
	struct nda_group_region *region, uint8_t desc[NDA_REGION_DESC_BYTES]);
/* What device calls take: the local form of an own region, the remote form of a peer's. */
int nda_group_region_local(
	struct nda_group_region *region, uint32_t pe, struct nda_region *out);
int nda_group_region_import(struct nda_group *group,
	const uint8_t desc[NDA_REGION_DESC_BYTES], struct nda_region *out);

/*
 * The view that kernels of the public collective library read (aclshmemi_rdma_info), over
 * the queues of core `core`. While it is lent, native posts on these queues return
 * NDA_QUEUE_LENT.
 */
int nda_group_view_lend(struct nda_group *group, uint32_t core, uint64_t *addr);
int nda_group_view_return(struct nda_group *group, uint32_t core);

/* Reads the sticky error of the queue that core `core` has to `pe`; status NDA_OK if none.
 */
int nda_group_queue_error(
	struct nda_group *group, uint32_t pe, uint32_t core, struct nda_queue_error *error);

#ifdef __cplusplus
}
#endif
#endif
