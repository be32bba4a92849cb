/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Channels: a connected pair of queues in NPU memory, for callers that do their own
 * exchange. Groups (nda/group.h) are made of them. The rules of nda/npu.h apply.
 *
 * A channel is created, exported and connected; then it can be described. One whose connect
 * failed can only be destroyed.
 */
#ifndef NDA_CHANNEL_H
#define NDA_CHANNEL_H

#include <stddef.h>
#include <stdint.h>

#include <nda/decl.h>

#ifdef __cplusplus
extern "C" {
#endif

struct nda_channel;
struct nda_nic;
struct nda_npu;
struct nda_queue;

/* How the NIC reaches the queues in NPU memory. */
enum nda_dma_mode {
	NDA_DMA_AUTO = 0,        /* what the NIC's format wants: hns1825: INDEP_UB, but PCIE
				    on an NPU opened with NDA_NPU_DOORBELL_PROXY */
	NDA_DMA_PCIE = 1,        /* QUEUE_BUF_DMA_MODE_DEFAULT; doorbell: a host address */
	NDA_DMA_INDEPENDENT = 2, /* QUEUE_BUF_DMA_MODE_INDEP_UB; doorbell: a UB resource */
};

/* Fields where 0 is a value of its own are read only where comp_mask names them. */
enum nda_channel_attr_mask {
	NDA_CHANNEL_GID_INDEX = 1 << 0,
	NDA_CHANNEL_TRAFFIC_CLASS = 1 << 1,
	NDA_CHANNEL_SERVICE_LEVEL = 1 << 2,
	NDA_CHANNEL_TIMEOUT = 1 << 3,
	NDA_CHANNEL_RETRY_COUNT = 1 << 4,
};

/**
 * struct nda_channel_attr - how a channel is made
 * @comp_mask: enum nda_channel_attr_mask
 * @sq_depth: WQEs of the send queue, a power of two 64..32768; 0 means 1024. UDMA: of up
 *   to four blocks each, more than 8192 being as many as 32768 blocks hold
 * @signal_every: a completion for each so many WQEs, UDMA: blocks, 1..sq_depth/2; 0 means
 *   1
 * @dma_mode: enum nda_dma_mode
 * @device_timeout_us: deadline of device calls that wait; 0 means 10 s. Of a group; a
 *   channel on its own does not use it
 * @gid_index: 0..255, where named
 * @traffic_class: 0..255, where named; else HCCL_RDMA_TC (0..255, a multiple of 4), or 132
 * @service_level: 0..7, where named; else HCCL_RDMA_SL (0..7), or 4
 * @timeout: of an acknowledgement, 0..31, where named: 4.096 us * 2^timeout, 0 is none;
 * else HCCL_RDMA_TIMEOUT (0..31), or 20
 * @retry_count: 0..7, where named; else HCCL_RDMA_RETRY_CNT (1..7), or 7, which Soft-RoCE
 *   takes for retries without end: a device call then ends by device_timeout_us
 * @reserved: must be 0
 * @gid_address: "10.9.9.1" or "fd77::1": the GID of that address; NULL: none. Not together
 *   with a gid_index. Read during the call
 * @roce_version: 1 or 2: of the GID; 0 means 2, or with a gid_index what is there
 * @hop_limit: 1..255; 0 means 64
 * @udp_source_port: 1..65535; 0 leaves it to the NIC's driver. Soft-RoCE has 49152..65535,
 *   by the flow label, from Linux 5.18 on
 * @path_mtu_bytes: most that the path may use, a power of two 256..4096; 0 means what the
 *   port can
 *
 * A NIC of URMA jetties (UDMA) chooses the path by the two EIDs: with it, to give
 * gid_index, gid_address, roce_version, traffic_class, service_level, hop_limit,
 * udp_source_port or path_mtu_bytes is an error. The environment is no part of that.
 *
 * Where neither gid_index nor gid_address is given, the GID is, of those of the RoCE
 * version: that at index 1 with the 1825, as all its public users have it; then the first
 * that stands for an IPv4 address; then the first of IPv6; in this order without the
 * link-local ones, which come last.
 *
 * Ranges and defaults are those of the public communication library, whose environment
 * variables count where the caller leaves the default; a value that is out of range is an
 * error, an empty one is none. They are not read in a program that runs with more privilege
 * than its caller.
 */
struct nda_channel_attr {
	uint64_t comp_mask;
	uint32_t sq_depth;
	uint32_t signal_every;
	uint32_t dma_mode;
	uint32_t device_timeout_us;
	uint32_t gid_index;
	uint32_t traffic_class;
	uint32_t service_level;
	uint32_t timeout;
	uint32_t retry_count;
	uint32_t reserved;
	const char *gid_address;
	uint32_t roce_version;
	uint32_t hop_limit;
	uint32_t udp_source_port;
	uint32_t path_mtu_bytes;
};

/* What the two sides exchange; fixed size, opaque, versioned, no secrets. */
#define NDA_CHANNEL_DESC_BYTES 128

/**
 * nda_channel_create - creates a queue pair and its completion queue in NPU memory
 * @nic, @npu: kept by the channel
 * @attr: may be NULL
 * @attr_size: sizeof(*attr)
 *
 * Returns the channel, to be destroyed by nda_channel_destroy, or NULL with errno
 *   EINVAL         an argument, or one of the environment variables
 *   ENETDOWN       the NIC's port is down
 *   EADDRNOTAVAIL  the NIC has no GID to use, or none as asked for; the text lists those
 *                  that it has
 *   EOPNOTSUPP     the NIC does not work with this kind of NPU, or its jetties do not take
 *                  an attribute, or the doorbell cannot be mapped, or not be proxied, as
 *                  nda/npu.h has it
 *   EPROTO         the port reports an MTU that is none
 *   ENXIO          ascend: no current context of the device
 *   ENOMEM         no memory, or none in the NPU
 *   other          of the extension driver
 */
struct nda_channel *nda_channel_create(struct nda_nic *nic, struct nda_npu *npu,
	const struct nda_channel_attr *attr, size_t attr_size) NDA_NOEXCEPT;

/**
 * nda_channel_export - what the other side needs to connect
 * @desc: out
 *
 * Returns 0 or -EINVAL.
 */
int nda_channel_export(
	struct nda_channel *ch, uint8_t desc[NDA_CHANNEL_DESC_BYTES]) NDA_NOEXCEPT;

/**
 * nda_channel_connect - connects to the channel that @desc was exported from
 * @desc: of the peer's channel; of the own one to connect it to itself
 *
 * Does not wait for the peer. Both sides use the smaller of the two ports' MTUs, and of
 * what path_mtu_bytes allows. Before a kernel posts, the other side must have connected,
 * too.
 *
 * Returns 0, or
 *   -EINVAL           NULL, or the peer's queue format differs
 *   -EISCONN          it is connected
 *   -ECONNABORTED     its connect failed before
 *   -EPROTO           @desc is no descriptor, or damaged
 *   -EPROTONOSUPPORT  @desc is of another version
 *   -ENETDOWN         the port is down
 *   -EOPNOTSUPP       the NIC's driver cannot set udp_source_port; the channel is connected
 *                     all the same
 *   other             of the NIC; the text names both GIDs. The channel has failed
 */
int nda_channel_connect(
	struct nda_channel *ch, const uint8_t desc[NDA_CHANNEL_DESC_BYTES]) NDA_NOEXCEPT;

/**
 * nda_channel_describe - what a published table holds of this channel's queue
 * @remote_delta: peer's address minus own address of symmetric memory, modulo 2^64
 * @lkey: of the own memory
 * @rkey: of the peer's memory
 * @queue: out; all but scratch_local and scratch_remote, which are 0 and needed only if
 *   signal_every is not 1. Its mutable line is that of a queue that was never used
 *
 * Returns 0, -EINVAL (also: the NIC has jetties), -ENOTCONN, or -EPROTO: what the extension
 * driver gave is unusable.
 */
int nda_channel_describe(struct nda_channel *ch, uint64_t remote_delta, uint32_t lkey,
	uint32_t rkey, struct nda_queue *queue) NDA_NOEXCEPT;

/**
 * nda_channel_describe_segment - the same for a NIC of URMA jetties
 * @token_id: of the own memory, see nda_mr_token
 * @remote_token_id, @remote_token_value: of the peer's memory
 *
 * Returns as nda_channel_describe, or -EOPNOTSUPP: the NIC has keys.
 */
int nda_channel_describe_segment(struct nda_channel *ch, uint64_t remote_delta,
	uint32_t token_id, uint32_t remote_token_id, uint32_t remote_token_value,
	struct nda_queue *queue) NDA_NOEXCEPT;

/* How cores ring, see enum nda_npu_flags. */
enum nda_doorbell {
	NDA_DOORBELL_MAPPED = 1,
	NDA_DOORBELL_PROXIED = 2,
	NDA_DOORBELL_KERNEL = 3, /* the kernel watches the memory that they write to */
};

/**
 * struct nda_channel_info - what a channel is
 * @qpn: of its queue pair, or the id of its jetty
 * @doorbell: enum nda_doorbell
 * @doorbell_error: the first negative errno that ringing a proxied doorbell gave since the
 *   queue was made or repaired, else 0: what the device posted may then never be done, and
 *   device calls time out
 * @reserved: 0
 */
struct nda_channel_info {
	uint32_t qpn;
	uint32_t doorbell;
	int32_t doorbell_error;
	uint32_t reserved;
};

/**
 * nda_channel_query - what the channel is
 * @info: out
 * @info_size: sizeof(*info)
 *
 * May be called while a kernel runs.
 *
 * Returns 0 or -EINVAL.
 */
int nda_channel_query(struct nda_channel *ch, struct nda_channel_info *info,
	size_t info_size) NDA_NOEXCEPT;

/**
 * nda_channel_destroy - destroys the queues
 *
 * No kernel uses them any more.
 *
 * Returns 0 or -EINVAL.
 */
int nda_channel_destroy(struct nda_channel *ch) NDA_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
