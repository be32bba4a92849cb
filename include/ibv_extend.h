/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * ibv_extend: verbs objects whose queues live in accelerator (NPU) memory.
 *
 * An application opens an extension context over an ordinary ibv_context and creates QPs,
 * CQs and SRQs through it. A NIC's extension driver places the queues in memory that the
 * application's callbacks provide (struct ibv_extend_ops) and says where they are (struct
 * queue_info), so that a kernel on the NPU can drive them. Binary interface 4.2.0: sizes,
 * offsets, values and return codes are fixed; the tests assert them.
 *
 * Conventions of the whole interface
 *
 * Errors. An int function returns 0 or a negative errno of its own; a pointer function
 * returns NULL with errno set. What a driver returns is handed on unchanged, whatever its
 * sign: test for != 0, never for < 0. A driver that returns NULL and leaves errno 0 gives
 * EIO.
 *
 * Checks are made in the order in which each function lists its errors. "context" below, as
 * an argument, is refused as NULL also when its ibv_context is NULL.
 *
 * Names. Structures, members, functions and values are those of 4.2.0. Not every
 * enumerator's spelling is on record: QUEUE_BUF_DMA_MODE_*, DOORBELL_MAP_MODE_*,
 * MEMCPY_DIRECTION_*, IBV_LB_MODE_*, IBV_HYPER_FEAT_V* and IBV_QP_ATTR_EXTEND_* follow
 * their enum's tag, unverified.
 *
 * Threads. Every function may be called from any thread at any time, with one rule of the
 * caller's: an object is not used while, or after, it is closed or destroyed. No lock is
 * held while a driver's function runs, nor while a driver is loaded.
 *
 * Lifetime. An object created here must be destroyed here: ibv_destroy_qp(ext->qp), and the
 * like, would release the verbs object behind the driver's back, and nothing can prevent
 * it, since libibverbs knows nothing of this library. Close a context after its objects.
 *
 * How a driver is found. By name: the name member of the verbs_device_ops of the device's
 * verbs driver ("mlx5", "hns", ...) equals that of a registered extension driver. The first
 * to register a name keeps it. If the name is not registered, the drivers that the
 * environment and the configuration name are loaded, in this order, and asked again:
 *
 *  1. IBV_EXTEND_DRIVERS: entries separated by ':' or ';', in their order. Not read in a
 * program that runs with more privilege than its caller (secure_getenv).
 *  2. /etc/libibverbs_extend.d: every regular file, sorted by name (by bytes), but for dot
 * files and leftovers (*~ .dpkg-* .rpmnew .rpmsave .rpmorig). The directory and each file
 * must belong to root or to the effective user, and be writable by no one else. Lines end
 * with LF, CR LF or CR; '#' begins a comment line; "driver ENTRY" names a driver.
 *
 * An entry is an absolute path without a ".." component, used as it is, or a name of
 * [A-Za-z0-9_-], sought as lib<name>.so in /usr/local/lib64, /usr/lib64, /usr/local/lib,
 * /usr/lib and then where the dynamic loader looks. All entries are loaded, also those of
 * other devices, because a file's name does not say which device it serves. A driver is
 * loaded once in a process and stays. The search is repeated only when the variable, the
 * directory or one of its files has changed.
 *
 * A driver need not be linked to this library: before it loads the first, the library makes
 * its own symbols global, so it may itself have been loaded with RTLD_LOCAL. A driver's
 * file that was mapped before this library was (libibverbs may load such a one as its own)
 * has run its constructor already and will not register when it is loaded again: load this
 * library first, or with RTLD_GLOBAL. A warning names such a file, and one names the other
 * copy of this library that took a registration.
 *
 * IBV_EXTEND_SHOW_WARNINGS, by its mere presence when the first warning arises, has every
 * problem printed on stderr, each one once. Refused versions are always printed.
 */
#ifndef IBV_EXTEND_H
#define IBV_EXTEND_H

#include <infiniband/verbs.h>
#include <stdint.h>

/* Annex K headers may define these members of ibv_extend_ops as function-like macros. */
#if defined(memset_s) || defined(memcpy_s)
#warning "memset_s or memcpy_s is a macro: call the members as (ops->memset_s)(...)"
#endif

#define IBV_EXTEND_VERSION_MAJOR 4
#define IBV_EXTEND_VERSION_MINOR 2
#define IBV_EXTEND_VERSION_PATCH 0
#define IBV_EXTEND_VERSION_STRING "4.2.0"

#ifdef __cplusplus
#define IBV_EXTEND_NOEXCEPT noexcept
extern "C" {
#else
#define IBV_EXTEND_NOEXCEPT
#endif

#pragma GCC visibility push(default)

/* What a driver's operations cover; struct ibv_context_extend_ops says which belong to
 * which. */
enum IBV_EXTEND_DRIVER_VERSION {
	IBV_EXTEND_DRIVER_VERSION_UNUSED = 0,
	IBV_EXTEND_DRIVER_VERSION_V1 = 1, /* create, destroy, query_device */
	IBV_EXTEND_DRIVER_VERSION_V2 = 2, /* and modify_qp, query_qp */
	IBV_EXTEND_DRIVER_VERSION_V3 = 3, /* and LAG port, feature negotiation */
	IBV_EXTEND_DRIVER_VERSION_MAX = IBV_EXTEND_DRIVER_VERSION_V3,
};

/* How the NIC reaches queue memory. */
enum queue_buf_dma_mode {
	QUEUE_BUF_DMA_MODE_DEFAULT = 0,  /* over PCIe, by peer memory */
	QUEUE_BUF_DMA_MODE_INDEP_UB = 1, /* over UB, by a UB segment */
};

/* Which member of struct doorbell_map_desc is valid. */
enum doorbell_map_mode {
	DOORBELL_MAP_MODE_HOST_VA = 0, /* hva */
	DOORBELL_MAP_MODE_UB_RES = 1,  /* ub_res */
};

enum memcpy_direction {
	MEMCPY_DIRECTION_HOST_TO_HOST = 0,
	MEMCPY_DIRECTION_HOST_TO_DEVICE = 1,
	MEMCPY_DIRECTION_DEVICE_TO_HOST = 2,
	MEMCPY_DIRECTION_DEVICE_TO_DEVICE = 3,
};

/* Bits of qp_cap_flag. */
enum ibv_qp_init_cap {
	QP_ENABLE_DIRECT_WQE = 1 << 0,
};

/* Bits of ibv_device_attr_extend.ext_cap. */
enum ibv_extend_device_cap {
	IBV_EXTEND_DEV_NDR = 1 << 0, /* the NIC reads and writes NPU memory */
	IBV_EXTEND_DEV_NDA = 1 << 1, /* the NPU drives the NIC's queues */
};

enum ibv_hyroce_feature_type {
	IBV_HYPER_FEAT_RoCEv2 = 0,
	IBV_HYPER_FEAT_VEROCE = 1,
	IBV_HYPER_FEAT_HYPER_ROCE = 2,
};

enum ibv_hyroce_feature_version {
	IBV_HYPER_FEAT_V0 = 0, /* plain RoCEv2 */
	IBV_HYPER_FEAT_V1 = 1,
	IBV_HYPER_FEAT_V2 = 2,
	IBV_HYPER_FEAT_V3 = 3,
};

enum ibv_lb_mode {
	IBV_LB_MODE_DEFAULT = 0,
	IBV_LB_MODE_MPATH = 1, /* multi-path; struct ibv_mpath_config */
	IBV_LB_MODE_AR = 2,    /* adaptive routing; struct ibv_ar_config */
};

/* Which members of struct ibv_qp_attr_extend are meant. */
enum ibv_qp_attr_extend_mask {
	IBV_QP_ATTR_EXTEND_UDP_SRC_PORT = 1 << 0,
	IBV_QP_ATTR_EXTEND_HYROCE_FEATURE = 1 << 1,
	IBV_QP_ATTR_EXTEND_LB_MODE = 1 << 2,
	IBV_QP_ATTR_EXTEND_MPATH_CONFIG = 1 << 3,
	IBV_QP_ATTR_EXTEND_AR_CONFIG = 1 << 4,
	IBV_QP_ATTR_EXTEND_SACK_CONFIG = 1 << 5,
	IBV_QP_ATTR_EXTEND_LAG_PORT = 1 << 6,
	IBV_QP_ATTR_EXTEND_MAX = 1 << 7, /* this bit and those above it are unknown */
};

/*
 * Doorbell that a driver asks to have mapped for the NPU. Queues may share a page of
 * doorbells: unmap with the descriptor that was mapped.
 */
struct doorbell_map_desc {
	union {
		uint64_t hva; /* host address of the doorbell */
		struct {
			uint64_t guid_l;
			uint64_t guid_h;
			struct {
				uint64_t resource_id : 4;
				uint64_t offset : 32; /* bytes */
				uint64_t resv : 28;
			} bits;
		} ub_res;
	};
	uint64_t size; /* bytes */
	uint32_t type; /* enum doorbell_map_mode */
	uint32_t resv;
};

/*
 * The application's callbacks, by which a driver obtains NPU memory and doorbell mappings.
 * They have no cookie. The structure must stay valid and unchanged for the life of each
 * object that it was given to; the driver keeps the pointer. Drivers call them from the
 * thread that creates or destroys the object.
 */
struct ibv_extend_ops {
	/* size in bytes. Memory of the NPU, or of the host; NULL on failure. */
	void *(*alloc)(size_t size);
	void (*free)(void *ptr);
	/* dst: from alloc. count in bytes. */
	void (*memset_s)(void *dst, int value, size_t count);
	/*
	 * dst, src: from alloc or host memory, as direction (enum memcpy_direction) says.
	 * dst_max, size in bytes. 0 or a negative code.
	 */
	int (*memcpy_s)(void *dst, size_t dst_max, const void *src, size_t size,
		uint32_t direction);
	/*
	 * The address at which the NPU reaches the doorbell, NULL on failure. Equal
	 * descriptors give the same address, and are counted.
	 */
	void *(*db_mmap)(struct doorbell_map_desc *desc);
	/* ptr, desc: as mapped. 0 or a negative code. */
	int (*db_unmap)(void *ptr, struct doorbell_map_desc *desc);
};

/* A range that the NPU can address. */
struct iov_addr_desc {
	uint64_t iov_base;
	uint64_t iov_len; /* bytes */
};

struct queue_buf {
	uint64_t base;       /* NPU address of entry 0 */
	uint32_t entry_cnt;  /* entries */
	uint32_t entry_size; /* bytes */
	uint64_t resv[4];
};

/* Where a queue is, in addresses that the NPU can use. */
struct queue_info {
	struct queue_buf qbuf;
	/* Producer index record: the hardware reads an SQ's or RQ's, software a CQ's. */
	struct iov_addr_desc dbr_pi_va;
	/* Consumer index record: software reads an SQ's or RQ's, the hardware a CQ's. */
	struct iov_addr_desc dbr_ci_va;
	/* Doorbell register, as db_mmap mapped it. */
	struct iov_addr_desc db_hw_va;
	uint64_t resv[4];
};

struct ibv_qp_extend {
	struct ibv_qp *qp;
	struct queue_info sq_info;
	struct queue_info rq_info;
	uint64_t resv[31];
	/* Valid once the QP is ready to send; read it again after ibv_modify_qp. */
	union {
		struct {
			uint8_t db_cos; /* class of service that the doorbell carries */
			uint8_t resv[7];
		} vendor1;
		uint64_t value;
	} vendor_priv_info;
};

struct ibv_cq_extend {
	struct ibv_cq *cq;
	struct queue_info cq_info;
	uint64_t resv[32]; /* some drivers give the CQ number in resv[0] */
};

struct ibv_srq_extend {
	struct ibv_srq *srq;
	struct queue_info srq_info;
	uint64_t resv[32];
};

struct ibv_qp_init_attr_extend {
	struct ibv_pd *pd;
	struct ibv_qp_init_attr attr;
	uint32_t qp_cap_flag; /* enum ibv_qp_init_cap */
	enum queue_buf_dma_mode type;
	struct ibv_extend_ops *ops;
	uint64_t resv[8];
};

/*
 * Embeds ibv_cq_init_attr_ex by value, which grew from 48 to 56 bytes with rdma-core 29 or
 * later (parent_domain): library, drivers and applications must all be built with such
 * headers.
 */
struct ibv_cq_init_attr_extend {
	struct ibv_cq_init_attr_ex attr;
	uint32_t cq_cap_flag; /* no flag is defined */
	enum queue_buf_dma_mode type;
	struct ibv_extend_ops *ops;
	uint64_t resv[8];
};

struct ibv_srq_init_attr_extend {
	struct ibv_pd *pd;
	struct ibv_srq_init_attr attr;
	uint32_t comp_mask;
	uint32_t srq_cap_flag; /* no flag is defined */
	enum queue_buf_dma_mode type;
	struct ibv_extend_ops *ops;
	uint64_t resv[8];
};

struct ibv_device_attr_extend {
	uint32_t ext_cap; /* enum ibv_extend_device_cap */
	uint32_t resv[32];
};

struct ibv_hyroce_feature {
	uint8_t type;        /* enum ibv_hyroce_feature_type */
	uint8_t version;     /* enum ibv_hyroce_feature_version */
	uint8_t sack_enable; /* 0 or 1 */
	uint8_t resv[61];
};

struct ibv_mpath_config {
	uint32_t flowlet_pkg_num;
	uint32_t path_num;
	uint32_t interval;
	uint32_t path_rr_enable;
	uint32_t resv[32];
};

struct ibv_ar_config {
	uint32_t port_rr_enable;
	uint32_t resv[32];
};

struct ibv_sack_config {
	uint32_t srp_range;
	uint32_t oor_range;
	uint32_t resv[32];
};

struct ibv_qp_attr_extend {
	struct ibv_qp *qp;
	uint32_t udp_src_port;
	struct ibv_hyroce_feature feature;
	enum ibv_lb_mode lb_mode;
	struct ibv_mpath_config mpath;
	struct ibv_ar_config ar;
	struct ibv_sack_config sack;
	uint32_t resv[47];
	uint32_t lag_port;
};

/*
 * A driver's operations on an open context. A version promises the pointers up to its mark,
 * but a missing one is tolerated: the call that needs it gives EOPNOTSUPP. Int operations
 * should return 0 or a negative errno, pointer ones NULL with errno set.
 */
struct ibv_context_extend_ops {
	int version; /* enum IBV_EXTEND_DRIVER_VERSION, V1 to MAX */
	struct ibv_qp_extend *(*create_qp)(
		struct ibv_context *context, struct ibv_qp_init_attr_extend *init_attr);
	struct ibv_cq_extend *(*create_cq)(
		struct ibv_context *context, struct ibv_cq_init_attr_extend *init_attr);
	struct ibv_srq_extend *(*create_srq)(
		struct ibv_context *context, struct ibv_srq_init_attr_extend *init_attr);
	int (*destroy_qp)(struct ibv_qp_extend *qp);
	int (*destroy_cq)(struct ibv_cq_extend *cq);
	int (*destroy_srq)(struct ibv_srq_extend *srq);
	int (*query_device)(
		struct ibv_context *context, struct ibv_device_attr_extend *attr);
	/* V1 ends here. */
	int (*modify_qp)(struct ibv_context *context, struct ibv_qp_attr_extend *attr,
		int attr_mask);
	int (*query_qp)(struct ibv_context *context, struct ibv_qp_attr_extend *attr,
		int attr_mask);
	/* V2 ends here. */
	int (*query_qp_supported_hyroce_feature)(struct ibv_context *context,
		struct ibv_qp *qp, uint32_t sl, uint32_t tc,
		struct ibv_hyroce_feature *feature);
	int (*nego_qp_hyroce_feature)(struct ibv_context *context, struct ibv_qp *qp,
		const struct ibv_hyroce_feature *in, struct ibv_hyroce_feature *out,
		uint32_t *need_more_nego);
	/* V3 ends here. */
};

struct ibv_context_extend {
	struct ibv_context *context;
	const struct ibv_context_extend_ops *ops;
};

/* What a driver registers: a static object of the driver's, as is what it points to. */
struct verbs_device_extend_ops {
	const char *name; /* of the verbs driver whose devices it serves */
	/*
	 * Returns a context over the given one, its members filled in, or NULL with errno
	 * set. It may return one pointer several times; each is then released as often.
	 */
	struct ibv_context_extend *(*alloc_context)(struct ibv_context *context);
	/* May be NULL: contexts are then never released. */
	void (*free_context)(struct ibv_context_extend *context);
};

/* Registers a driver, from a constructor of its shared object. */
#define PROVIDER_EXTEND_DRIVER(drv)                                                        \
	static __attribute__((constructor)) void drv##_register_extend_driver(void)        \
	{                                                                                  \
		verbs_register_driver_extend(&drv);                                        \
	}

/**
 * ibv_extend_get_version - the library's version
 * @major, @minor, @patch: out; each may be NULL
 *
 * Returns the version as text, a static string. Does not block.
 */
const char *ibv_extend_get_version(
	uint32_t *major, uint32_t *minor, uint32_t *patch) IBV_EXTEND_NOEXCEPT;

/**
 * ibv_extend_check_version - whether a program built for a version may use this library
 * @major, @minor, @patch: of the header that the program was built with
 *
 * Compatible are equal majors when minor and patch are not newer than the library's.
 * Advisory: nothing else depends on it.
 *
 * Returns 0, or -1 (not an errno), having said why on stderr.
 */
int ibv_extend_check_version(
	uint32_t major, uint32_t minor, uint32_t patch) IBV_EXTEND_NOEXCEPT;

/**
 * ibv_open_extend - opens an extension context
 * @context: an open verbs context; it must outlive the extension context
 *
 * May load drivers (see the top of this file), hence block for as long as the dynamic
 * loader and drivers' constructors do.
 *
 * Returns the context, to be given to ibv_close_extend once for each open, or NULL. Then
 * errno is
 *   EINVAL           @context or its device is NULL
 *   ENODEV           no driver registered for the device's verbs driver; with warnings on,
 *                    "no available ops for open extend context" and the reasons were
 *                    printed
 *   EBUSY            as ENODEV, but called by a driver's constructor during the search for
 *                    drivers: not all were loaded yet
 *   EPROTONOSUPPORT  the driver gave no operations, or of a version outside V1 to MAX (also
 *                    printed); its context was released
 *   EPROTO           the driver gave the context of another device; it was released
 *   ENOMEM           no memory
 *   other            as set by the driver; EIO if it set none
 */
struct ibv_context_extend *ibv_open_extend(struct ibv_context *context) IBV_EXTEND_NOEXCEPT;

/**
 * ibv_close_extend - closes an extension context through the driver that opened it
 * @context: from ibv_open_extend
 *
 * Returns 0, or
 *   -EINVAL  @context is NULL, or is open and its ibv_context is NULL; it stays open
 *   -ENOENT  @context is not open: never opened or closed already. It is not dereferenced
 */
int ibv_close_extend(struct ibv_context_extend *context) IBV_EXTEND_NOEXCEPT;

/**
 * ibv_query_device_extend - what the device can do
 * @attr: out; ext_cap is cleared before the driver fills it, resv is not
 *
 * Returns 0, a driver's value, or
 *   -EINVAL      an argument is NULL
 *   -EOPNOTSUPP  the driver lacks the operation
 */
int ibv_query_device_extend(struct ibv_context_extend *context,
	struct ibv_device_attr_extend *attr) IBV_EXTEND_NOEXCEPT;

/**
 * ibv_create_qp_extend, _cq_, _srq_ - creates an object with its queues in ops' memory
 * @init_attr: read during the call, but for what ops points to, which the driver keeps
 *
 * Returns the object, to be destroyed by the function of its kind, or NULL with errno
 *   EINVAL      an argument is NULL
 *   EOPNOTSUPP  the driver lacks the operation
 *   other       as set by the driver; EIO if it set none
 */
struct ibv_qp_extend *ibv_create_qp_extend(struct ibv_context_extend *context,
	struct ibv_qp_init_attr_extend *init_attr) IBV_EXTEND_NOEXCEPT;
struct ibv_cq_extend *ibv_create_cq_extend(struct ibv_context_extend *context,
	struct ibv_cq_init_attr_extend *init_attr) IBV_EXTEND_NOEXCEPT;
struct ibv_srq_extend *ibv_create_srq_extend(struct ibv_context_extend *context,
	struct ibv_srq_init_attr_extend *init_attr) IBV_EXTEND_NOEXCEPT;

/**
 * ibv_destroy_qp_extend, _cq_, _srq_ - destroys an object and its verbs object
 *
 * Returns 0, a driver's value, or
 *   -EINVAL      an argument is NULL
 *   -EOPNOTSUPP  the driver lacks the operation
 */
int ibv_destroy_qp_extend(
	struct ibv_context_extend *context, struct ibv_qp_extend *qp) IBV_EXTEND_NOEXCEPT;
int ibv_destroy_cq_extend(
	struct ibv_context_extend *context, struct ibv_cq_extend *cq) IBV_EXTEND_NOEXCEPT;
int ibv_destroy_srq_extend(
	struct ibv_context_extend *context, struct ibv_srq_extend *srq) IBV_EXTEND_NOEXCEPT;

/**
 * ibv_modify_qp_extend, ibv_query_qp_extend - sets or reads extended attributes of a QP
 * @attr: qp names the QP; the members that @attr_mask names are read, or filled in
 * @attr_mask: of enum ibv_qp_attr_extend_mask; one category in a call
 *
 * Returns 0, a driver's value, or
 *   -EINVAL      an argument is NULL
 *   -EOPNOTSUPP  the driver is older than V2, a bit of @attr_mask is unknown, or the driver
 *                lacks the operation
 */
int ibv_modify_qp_extend(struct ibv_context_extend *context,
	struct ibv_qp_attr_extend *attr, int attr_mask) IBV_EXTEND_NOEXCEPT;
int ibv_query_qp_extend(struct ibv_context_extend *context, struct ibv_qp_attr_extend *attr,
	int attr_mask) IBV_EXTEND_NOEXCEPT;

/**
 * ibv_query_qp_supported_hyroce_feature - what the local side can do on a QP
 * @qp: before it is ready to receive
 * @sl, @tc: service level and traffic class that it will use
 * @feature: out; to be sent to the peer
 *
 * Returns 0, a driver's value, or
 *   -EINVAL      an argument is NULL
 *   -EOPNOTSUPP  the driver is older than V3 or lacks the operation
 */
int ibv_query_qp_supported_hyroce_feature(struct ibv_context_extend *context,
	struct ibv_qp *qp, uint32_t sl, uint32_t tc,
	struct ibv_hyroce_feature *feature) IBV_EXTEND_NOEXCEPT;

/**
 * ibv_nego_qp_hyroce_feature - one step of agreeing on a feature with the peer
 * @qp: before it is ready to receive
 * @in: what the peer sent
 * @out: out; what was chosen, to be set by ibv_modify_qp_extend
 * @need_more_nego: out; not 0 asks for another exchange and call
 *
 * Returns as ibv_query_qp_supported_hyroce_feature.
 */
int ibv_nego_qp_hyroce_feature(struct ibv_context_extend *context, struct ibv_qp *qp,
	const struct ibv_hyroce_feature *in, struct ibv_hyroce_feature *out,
	uint32_t *need_more_nego) IBV_EXTEND_NOEXCEPT;

/**
 * verbs_register_driver_extend - registers a driver, usually by PROVIDER_EXTEND_DRIVER
 * @ops: static; the library keeps the pointer, and pins the shared object that it lies in,
 * so that dlclose does not unmap it
 *
 * A driver without name or alloc_context is refused, as is the second of a name; both are
 * reported as warnings. To register the same object again changes nothing.
 */
void verbs_register_driver_extend(
	const struct verbs_device_extend_ops *ops) IBV_EXTEND_NOEXCEPT;

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
