/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* NICs and registered memory. The rules of nda/npu.h apply. */
#ifndef NDA_NIC_H
#define NDA_NIC_H

#include <stddef.h>
#include <stdint.h>

#include <nda/decl.h>

#ifdef __cplusplus
extern "C" {
#endif

struct nda_mr;
struct nda_nic;
struct nda_npu;

/**
 * struct nda_nic_attr - how a NIC is opened
 * @comp_mask: must be 0
 * @inject: soft: faults to inject, "remote-access-error:1000,delay-us:50"; NULL means none.
 *   Read during the call; NULL for other NICs. Those that there are:
 *     remote-access-error:N, retry-exceeded:N, rnr:N  each N-th request of a queue ends so
 *     drop:N          each N-th is lost, until the retries are used up
 *     delay-us:N      each takes N microseconds at least
 *     reorder:N       N requests of a queue at a time (1..64), overtaking each other where
 *                     the transport lets them
 *     seed:N          of the choice of the one that goes on; 1 if not given
 *     cq-overrun:N    a completion queue fails at its N-th entry, and with it the queue
 *     link-down:N     the port goes down at the NIC's N-th request
 *     link-down-us:N  the port goes down N microseconds after the NIC was opened
 * @mtu_bytes: soft: active MTU, a power of two 256..4096; 0 means 4096; 0 for other NICs
 * @reserved: must be 0
 * @events: soft: file to which a line of JSON is appended for each request that the NIC
 *   takes up and each completion that it writes; made if it does not exist. Several NICs
 *   and processes may name the same. Read during the call; NULL means none; NULL for other
 *   NICs
 */
struct nda_nic_attr {
	uint64_t comp_mask;
	const char *inject;
	uint32_t mtu_bytes;
	uint32_t reserved;
	const char *events;
};

/**
 * struct nda_nic_info - what a NIC is and can do
 * @name: as opened, "soft:hns1825" or "rxe0:1"
 * @format: of its queues, enum nda_format of nda/table.h
 * @port_active: 1 if its port is up
 * @active_mtu_bytes: of its port
 * @gid_count: GIDs in its table
 * @max_message_bytes: longest transfer of one WQE
 */
struct nda_nic_info {
	char name[64];
	uint32_t format;
	uint32_t port_active;
	uint32_t active_mtu_bytes;
	uint32_t gid_count;
	uint64_t max_message_bytes;
};

/**
 * nda_nic_open - opens a NIC and its extension driver
 * @name: "soft:hns1825", "soft:in_die", "soft:xscale", "soft:udma": one more software NIC,
 *   a model of that one, with each call. Else an RDMA device by the name that the kernel
 * has for it now ("rxe0", "mlx5_0"), with a port where it is not 1 ("mlx5_0:2")
 * @attr: may be NULL
 * @attr_size: sizeof(*attr)
 *
 * May load drivers, hence block as long as the dynamic loader does. A device's extension
 * driver is one that is configured for it (ibv_extend.h), or else the one that comes with
 * this library.
 *
 * Returns the NIC, to be closed by nda_nic_close, or NULL with errno
 *   EINVAL           an argument
 *   ENODEV           no such NIC (the text lists those that there are), libnda_soft.so
 *                    cannot be loaded, or no extension driver serves it;
 *                    nda_error_detail() then says what the search for one met
 *   EOPNOTSUPP       the queue format of its verbs driver is not known, its extension
 *                    driver cannot place queues in NPU memory, or it is no RoCE device
 *   EPROTONOSUPPORT  libnda_soft.so is of another version
 *   other            of libibverbs or the extension driver; of opening @events (ENOENT,
 *                    EISDIR, EACCES, ...)
 */
struct nda_nic *nda_nic_open(
	const char *name, const struct nda_nic_attr *attr, size_t attr_size) NDA_NOEXCEPT;

/**
 * nda_nic_close - closes a NIC's handle
 *
 * The NIC lasts as long as a group, channel or memory region uses it.
 *
 * Returns 0 or -EINVAL.
 */
int nda_nic_close(struct nda_nic *nic) NDA_NOEXCEPT;

/**
 * nda_nic_query - reads what a NIC is, and the state of its port
 * @info: out
 * @info_size: sizeof(*info), 1..4096; a smaller one is filled as far as it goes, the tail
 * of a larger one is cleared
 *
 * Returns 0, -EINVAL, or as the NIC's query does.
 */
int nda_nic_query(
	struct nda_nic *nic, struct nda_nic_info *info, size_t info_size) NDA_NOEXCEPT;

/**
 * nda_nic_gid - reads an entry of the GID table
 * @index: below gid_count
 * @gid: out; 16 bytes in network order, all zero if the entry is empty
 *
 * Returns 0, -EINVAL, or as the NIC's query does.
 */
int nda_nic_gid(struct nda_nic *nic, uint32_t index, uint8_t gid[16]) NDA_NOEXCEPT;

/**
 * nda_nic_eid - the name of a NIC's endpoint where its queues are URMA jetties
 * @eid: out: 16 bytes in network order; in requests they are in reverse
 *
 * Returns 0, -EINVAL, or -EOPNOTSUPP: the NIC is named by GIDs.
 */
int nda_nic_eid(struct nda_nic *nic, uint8_t eid[16]) NDA_NOEXCEPT;

enum nda_access {
	NDA_ACCESS_LOCAL_WRITE = 1 << 0,
	NDA_ACCESS_REMOTE_WRITE = 1 << 1,
	NDA_ACCESS_REMOTE_READ = 1 << 2,
	NDA_ACCESS_REMOTE_ATOMIC = 1 << 3,
};

/*
 * How a NIC of the kernel's comes to reach NPU memory. The ways are tried in this order;
 * the first that works is taken. NDA_MR_WAY=pages|dmabuf|peer|host in the environment
 * allows one alone (host: for groups' heaps; other memory goes by the order). It is for
 * tests, and is not read in a program that runs with more privilege than its caller.
 */
enum nda_mr_way {
	/* In this order. */
	NDA_MR_ANY = 0,
	/* ibv_reg_mr(): the memory is ordinary pages of the host, at the same address. */
	NDA_MR_PAGES = 1,
	/* A dma-buf, which /dev/nda makes of NPU memory. */
	NDA_MR_DMABUF = 2,
	/* ibv_reg_mr(), by a peer-memory client in the kernel: nda_peermem, or that of the
	 * NPU's vendor. */
	NDA_MR_PEER = 3,
	/* A group's heap alone: all of it is host memory that is mapped to the NPU. */
	NDA_MR_HOST = 4,
	/* A software NIC's own: the kernel has no part in it. */
	NDA_MR_SOFT = 5,
};
#define NDA_MR_STEPS 4 /* the ways that are tried: PAGES, DMABUF, PEER, HOST */

/* What came of a way. */
enum nda_mr_reason {
	NDA_MR_TAKEN = 0,
	NDA_MR_NOT_NEEDED = 1,      /* an earlier one was taken */
	NDA_MR_EXCLUDED = 2,        /* another one was asked for */
	NDA_MR_NOT_PAGES = 3,       /* the memory is not ordinary pages of the host */
	NDA_MR_IS_PAGES = 4,        /* it is, and so this way would be PAGES once more */
	NDA_MR_OTHER_ADDRESSES = 5, /* the NPU's addresses are not the host's */
	NDA_MR_NO_DEVICE = 6,       /* module nda is not loaded: there is no /dev/nda */
	NDA_MR_DEVICE_DENIED = 7,   /* no permission to open /dev/nda */
	NDA_MR_DEVICE_FAILED = 8,   /* /dev/nda cannot be used, or is of another version */
	NDA_MR_NO_EXPORT = 9,       /* /dev/nda makes no dma-bufs on this kernel */
	NDA_MR_UNKNOWN_MEMORY = 10, /* it knows no NPU whose memory this is: the text names
				     * the module that is missing */
	NDA_MR_EXPORT_FAILED = 11,  /* it could not make a dma-buf of it */
	NDA_MR_FREED = 12,          /* the memory was freed meanwhile */
	NDA_MR_NO_DMABUF = 13,    /* libibverbs, or the NIC's driver, takes no dma-bufs, or
				   * none that may be taken away */
	NDA_MR_NO_PEER_API = 14,  /* the kernel's RDMA core knows no peer memory */
	NDA_MR_NO_PEERMEM = 15,   /* refused, and no peer-memory client is known of */
	NDA_MR_NIC_REFUSED = 16,  /* the NIC, or its driver */
	NDA_MR_LOCKED_LIMIT = 17, /* no memory, or RLIMIT_MEMLOCK */
	NDA_MR_HEAPS_ONLY = 18,   /* the memory is no group's heap */
	NDA_MR_NOT_MAPPED = 19,   /* the NPU could not be given host memory */
};

/**
 * struct nda_mr_step - what came of one way
 * @reason: enum nda_mr_reason
 * @error: the negative errno that was met, or 0
 */
struct nda_mr_step {
	uint32_t reason;
	int32_t error;
};

/**
 * struct nda_mr_info - how a NIC reaches memory
 * @way: enum nda_mr_way, NDA_MR_ANY if none worked
 * @reserved: 0
 * @steps: of the ways PAGES, DMABUF, PEER, HOST; all 0 if @way is NDA_MR_SOFT
 */
struct nda_mr_info {
	uint32_t way;
	uint32_t reserved;
	struct nda_mr_step steps[NDA_MR_STEPS];
};

/**
 * nda_mr_register - registers NPU memory with a NIC
 * @addr, @size_bytes: NPU memory; its own allocation or a part of one
 * @access: enum nda_access; remote write and atomic need local write
 *
 * The memory must stay allocated until the region is deregistered. If it is freed all the
 * same, by its owner, by the end of a process, or with its device, the NIC reaches it no
 * more where /dev/nda watches over it: nda_mr_check() then says so.
 *
 * Returns the region, to be released by nda_mr_deregister, or NULL with errno
 *   EINVAL      an argument, or NDA_MR_WAY
 *   EFAULT      the range is not memory of @npu; or the NIC gave it
 *   EOPNOTSUPP  the NIC cannot reach the memory of this kind of NPU
 *   ENXIO       ascend: no current context of the device
 *   ERANGE      the NIC gave a key that its queue format cannot carry
 *   other       of the first way that could be tried. nda_error_detail() tells of all, and
 *               nda_mr_tried() by numbers
 */
struct nda_mr *nda_mr_register(struct nda_nic *nic, struct nda_npu *npu, uint64_t addr,
	uint64_t size_bytes, uint32_t access) NDA_NOEXCEPT;

/**
 * nda_mr_deregister - ends a registration
 *
 * When it returns nobody reaches the memory by its keys any more.
 *
 * Returns 0 or -EINVAL.
 */
int nda_mr_deregister(struct nda_mr *mr) NDA_NOEXCEPT;

/**
 * nda_mr_query - how the NIC reaches the memory
 * @info: out
 * @info_size: sizeof(*info)
 *
 * Returns 0 or -EINVAL.
 */
int nda_mr_query(
	const struct nda_mr *mr, struct nda_mr_info *info, size_t info_size) NDA_NOEXCEPT;

/**
 * nda_mr_tried - what came of each way in the calling thread's last registration
 * @info: out; all 0 if there was none
 * @info_size: sizeof(*info)
 *
 * Of the one that failed, or the last one made; of a group's heap or region, the last
 * NIC's.
 *
 * Returns 0 or -EINVAL.
 */
int nda_mr_tried(struct nda_mr_info *info, size_t info_size) NDA_NOEXCEPT;

/**
 * nda_mr_check - whether the memory is still there
 *
 * Returns 0; -ESTALE: the kernel took it away from the NIC, and nda_error_detail() says
 * why; -EINVAL; or what /dev/nda gave. Other memory than that of way DMABUF is not watched.
 */
int nda_mr_check(const struct nda_mr *mr) NDA_NOEXCEPT;

/* The key for local use, and the one that a peer needs; 0 with the error detail set if @mr
 * is no region. */
uint32_t nda_mr_lkey(const struct nda_mr *mr) NDA_NOEXCEPT;
uint32_t nda_mr_rkey(const struct nda_mr *mr) NDA_NOEXCEPT;

/**
 * nda_mr_token - what a peer needs of a region that is a URMA segment
 * @token_id: out: of 20 bits; also what the own side's requests name it by
 * @token_value: out
 *
 * Returns 0, -EINVAL, or -EOPNOTSUPP: the NIC has no segments, but keys.
 */
int nda_mr_token(
	const struct nda_mr *mr, uint32_t *token_id, uint32_t *token_value) NDA_NOEXCEPT;

/**
 * nda_search_report - what the search for extension drivers meets, for people
 * @text: out: lines, one for each thing that was looked at; cut to fit, always ended by a
 * NUL. May be NULL if @size_bytes is 0
 * @size_bytes: room in @text
 *
 * Repeats the search that ibv_open_extend makes for an unknown device: reads
 * IBV_EXTEND_DRIVERS and the configuration directory, and loads and releases each driver
 * that they name. May block as long as the dynamic loader and the drivers' constructors do.
 *
 * Returns the length of the whole report without its NUL, or -EINVAL.
 */
int nda_search_report(char *text, size_t size_bytes) NDA_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
