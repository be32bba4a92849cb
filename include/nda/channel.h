/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Channels: a connected pair of queues in NPU memory, for callers that do their own
 * exchange. Groups (nda/group.h) are made of them. The rules of nda/npu.h apply.
 */
#ifndef NDA_CHANNEL_H
#define NDA_CHANNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct nda_channel;
struct nda_nic;
struct nda_npu;
struct nda_queue;

enum nda_dma_mode {
	NDA_DMA_AUTO = 0,        /* what the NIC's format wants; hns1825: INDEP_UB */
	NDA_DMA_PCIE = 1,        /* QUEUE_BUF_DMA_MODE_DEFAULT */
	NDA_DMA_INDEPENDENT = 2, /* QUEUE_BUF_DMA_MODE_INDEP_UB */
};

/* Fields where 0 is a value of its own are read only where comp_mask names them. */
enum nda_channel_attr_mask {
	NDA_CHANNEL_GID_INDEX = 1 << 0,
	NDA_CHANNEL_TRAFFIC_CLASS = 1 << 1,
	NDA_CHANNEL_SERVICE_LEVEL = 1 << 2,
	NDA_CHANNEL_TIMEOUT = 1 << 3,
	NDA_CHANNEL_RETRY_COUNT = 1 << 4,
};

struct nda_channel_attr {
	uint64_t comp_mask;    /* enum nda_channel_attr_mask */
	uint32_t sq_depth;     /* WQEs, a power of two 64..32768; 0 = 1024 */
	uint32_t signal_every; /* a completion for each k-th WQE, 1..sq_depth/2; 0 = 1 */
	uint32_t dma_mode;     /* enum nda_dma_mode */
	uint32_t device_timeout_us; /* deadline of device waits; 0 = 10 s */
	uint32_t gid_index;         /* default: the RoCEv2 GID that the NIC prefers */
	uint32_t traffic_class;     /* 0..255, default 132 */
	uint32_t service_level;     /* 0..7, default 4 */
	uint32_t timeout;           /* 0..31, exponent of 4.096 us * 2^n, default 20 */
	uint32_t retry_count;       /* 0..7, default 7 */
	uint32_t reserved;          /* must be 0 */
};

/* What the two sides exchange; fixed size, opaque, no secrets. */
#define NDA_CHANNEL_DESC_BYTES 128

struct nda_channel *nda_channel_create(struct nda_nic *nic, struct nda_npu *npu,
	const struct nda_channel_attr *attr, size_t attr_size);
int nda_channel_export(struct nda_channel *ch, uint8_t desc[NDA_CHANNEL_DESC_BYTES]);
int nda_channel_connect(struct nda_channel *ch, const uint8_t desc[NDA_CHANNEL_DESC_BYTES]);
/* Fills what a published table holds of this channel's queue, for one with the two keys. */
int nda_channel_describe(struct nda_channel *ch, uint64_t remote_delta, uint32_t lkey,
	uint32_t rkey, struct nda_queue *queue);
int nda_channel_destroy(struct nda_channel *ch);

#ifdef __cplusplus
}
#endif
#endif
