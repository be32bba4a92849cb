/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The published table: what a kernel receives, one address in NPU memory. Layouts only.
 *
 *   struct nda_table        header and heap
 *   struct nda_queue[]      NDA_QUEUE_STRIDE apart, index
 *                           (core * queues_per_core + queue) * n_pes + pe
 *
 * A queue has immutable lines, written once by the host, and one cache line of mutable
 * state that only its owning core writes while a kernel runs. All multi-byte fields are in
 * native order.
 */
#ifndef NDA_TABLE_H
#define NDA_TABLE_H

#include <stdint.h>

#define NDA_TABLE_MAGIC 0x3141444eu /* "NDA1" in memory */
#define NDA_TABLE_VERSION 1u
#define NDA_QUEUE_STRIDE 256u
#define NDA_CACHE_LINE 64u

enum nda_format {
	NDA_FORMAT_NONE = 0,
	NDA_FORMAT_HNS1825 = 1,
	NDA_FORMAT_RXE = 2,
	NDA_FORMAT_IN_DIE = 3,
	NDA_FORMAT_XSCALE = 4,
	NDA_FORMAT_UDMA = 5,
};

struct nda_table {
	uint32_t magic;
	uint32_t version;
	uint64_t size_bytes; /* of everything at this address */
	uint32_t my_pe;
	uint32_t n_pes;
	uint32_t n_cores; /* queue owners */
	uint32_t format;  /* enum nda_format */
	uint64_t heap_base;
	uint64_t heap_bytes;
	uint64_t queues_offset;     /* of the first queue, from the table's address; 64-byte
				       aligned */
	uint32_t device_timeout_us; /* deadline of a device call that waits, > 0 */
	uint32_t queues_per_core;   /* to each PE, > 0 */
	/* What no operation needs before it waits. */
	uint64_t sync_area; /* @64 address in the own heap's segment, NDA_SYNC_BYTES, of the
			       team of all PEs; 0: none */
	uint32_t abort;     /* @72 the host ends every wait by a value other than 0 */
	uint32_t reserved[13];
};

/* A team's memory for sync and barrier, symmetric, 64-byte aligned, zeroed before its first
 * use: a line for each round, written by peers, and one for the own epoch. */
#define NDA_SYNC_ROUNDS 15u
#define NDA_SYNC_BYTES ((NDA_SYNC_ROUNDS + 1) * NDA_CACHE_LINE)

/* A queue's scratch, at scratch_local: a line that only the NIC writes, then words that the
 * core writes and the NIC reads, each with the index after the WQE that reads it. */
#define NDA_SCRATCH_BYTES 256u
#define NDA_SCRATCH_RESULT 0u   /* 16 bytes: of an atomic that is waited for */
#define NDA_SCRATCH_DISCARD 16u /* 16 bytes: of atomics whose former value nobody wants */
#define NDA_SCRATCH_FLUSH 32u   /* 8 bytes: of the READ that ends a series */
#define NDA_SCRATCH_WORDS 64u   /* 12 of: the word, 8 bytes; an index, 4; 4 unused */
#define NDA_SCRATCH_N_WORDS 12u

/* What the hardware said when a queue went into error. */
struct nda_queue_error {
	uint32_t status;    /* enum nda_status */
	uint8_t raw_status; /* of the format: hns1825: syndrome; rxe: ibv_wc_status; in_die,
			       udma: status; xscale: error code */
	uint8_t raw_vendor; /* hns1825: the byte beside it; rxe: low bits of vendor_err;
			       in_die: sub_status; udma: substatus */
	uint16_t wqe_index; /* the hardware's counter of the failed WQE, low bits */
};

/* nda_queue_state.flags: none is set while the queue takes posts in the usual way. */
enum nda_queue_flags {
	NDA_QUEUE_IN_BATCH = 1, /* a batch is open: only it may post */
	NDA_QUEUE_IN_FENCE = 2, /* the next WQE waits for earlier READs */
	NDA_QUEUE_IN_VIEW = 4,  /* lent to a compatibility view */
	NDA_QUEUE_SHARED = 8,   /* several cores post, see nda_queue_shared */
};

/* Of the mutable line, see nda/aiv/udma_state.h. */
struct nda_queue_state_udma {
	uint32_t cqes;   /* completions to come, less an index */
	uint32_t fenced; /* head at the last fence */
};

/*
 * The mutable line. Indices are free-running u32. head, tail, cq_ci, signalled, rung, flags
 * and error are the state; the rest follows from them and the immutable lines, so that the
 * usual post has nothing to work out: see nda/aiv/hns1825_state.h. rxe has no use for it.
 */
struct nda_queue_state {
	uint32_t head; /* @0 next WQE to post; compatibility views point here */
	/* @4 the usual post needs head < limit, and else asks the slow path. One compare
	 * stands for: credit, no sticky error, no flag, the WQE needs no completion of its
	 * own, neither the ring nor the doorbell's part of the index wraps. */
	uint32_t limit;
	uint64_t next_slot; /* @8 address of the slot of head */
	union {
		uint64_t doorbell; /* @16 value to ring with for a head up to limit */
		struct nda_queue_state_udma udma; /* state, not derived */
	};
	uint64_t next_word0; /* @24 first word of the WQE at head */
	uint32_t tail;       /* @32 WQEs below are known to be done; views point here */
	uint32_t cq_ci;      /* @36 CQEs consumed; views point here */
	uint32_t signalled;  /* @40 index after the last WQE with a completion; not kept up
				where all have one */
	uint16_t rung;       /* @44 head at the last doorbell, low bits, while in a batch */
	uint8_t next_marker; /* @46 hns1825: first byte that the slot after head gets */
	uint8_t flags;       /* @47 enum nda_queue_flags */
	struct nda_queue_error error; /* @48 sticky */
	uint64_t next_task;           /* @56 hns1825: task_bits() of a WRITE below limit */
};

/* The same line while cores share the queue: they change head, turn and lock by atomics,
 * asked while it is their turn, and the rest with the lock. */
struct nda_queue_shared {
	uint32_t head;  /* @0 next ring unit to reserve */
	uint32_t limit; /* @4 keeps the usual post away */
	uint32_t turn;  /* @8 whose WQE is written next: the index it reserved */
	uint32_t lock;  /* @12 1: a core reads completions */
	/* @16 udma: completions asked for, as a consumer index; in the upper half the index
	 * after the last request that asked */
	uint64_t asked;
	uint64_t unused0;
	uint32_t tail;  /* @32 */
	uint32_t cq_ci; /* @36 */
	uint32_t unused1;
	uint16_t unused2;
	uint8_t unused3;
	uint8_t flags; /* @47 */
	struct nda_queue_error error;
	uint64_t unused4;
};

struct nda_queue_rxe {
	uint64_t cq_producer;   /* @0 address of the CQ's producer index */
	uint32_t sq_slot_bytes; /* @8 power of two */
	uint32_t sq_data_bytes; /* @12 SGEs or inline data that a WQE has room for */
};

struct nda_queue_in_die {
	uint64_t cq_doorbell; /* @0 address of the CQ's doorbell register; 0: cq_record */
	uint64_t cq_template; /* @8 what to ring it with, but for the index */
};

struct nda_queue_udma {
	uint64_t words[3];   /* @0 second to fourth word of a request with one entry */
	uint32_t ci_mask;    /* @24 bits of the CQ's consumer record */
	uint16_t max_inline; /* @28 bytes, of a WRITE without anything else */
	/* How requests are ordered, see nda/hw/udma.h, order_bits(). */
	uint8_t order;        /* @30 in general */
	uint8_t strong_order; /* @31 after a fence, and of a signal */
	uint8_t owner;        /* @32 1: requests have the lap's owner bit, 0: none has */
};

/* nda_queue_xscale.atomics; 0: masked forms alone, whose byte order is settled. */
enum nda_xscale_atomics {
	/* fetch_add and compare_swap of 8 bytes use the forms without masks ... */
	NDA_XSCALE_PLAIN_ATOMICS = 1,
	/* ... with operands in native order. */
	NDA_XSCALE_LITTLE_ENDIAN = 2,
};

struct nda_queue_xscale {
	uint64_t cq_doorbell;          /* @0 address of the CQ's doorbell register */
	uint64_t cq_doorbell_template; /* @8 its value but for the index */
	uint8_t fence_mode; /* @16 of a WQE that waits for READs: 1 to 3, unverified */
	uint8_t atomics;    /* @17 enum nda_xscale_atomics */
};

struct nda_queue {
	/* Immutable, used by every operation. */
	uint64_t remote_delta; /* @0 peer's heap base - own heap base, mod 2^64 */
	uint64_t key_words[2]; /* @8 keys in the format's own order, see nda/hw */
	uint64_t sq_record; /* @24 address of the SQ doorbell record; rxe: producer index */
	uint64_t sq_doorbell; /* @32 address of the doorbell register */
	uint64_t sq_base;     /* @40 */
	uint64_t cq_base;     /* @48 */
	uint64_t cq_record;   /* @56 address of the CQ consumer record, or index */
	/* Immutable, used when something has to be worked out. */
	uint64_t doorbell_template; /* @64 */
	uint32_t qpn;               /* @72 */
	uint32_t cqn;               /* @76 */
	uint32_t rkey;              /* @80 of the peer's heap; udma: token value */
	uint32_t lkey;              /* @84 of the own heap; udma: token id */
	uint32_t signal_every; /* @88 a completion each so many WQEs, 1 to sq_depth / 2 */
	uint32_t sq_depth;     /* @92 power of two */
	uint32_t cq_depth;     /* @96 entries of the ring, power of two */
	uint32_t cqe_stride;   /* @100 bytes */
	/* NDA_SCRATCH_BYTES of own heap, a cache line's multiple, that only this queue
	 * uses; 0: no atomics that are waited for, signals only where they fit into a WQE.
	 */
	uint64_t scratch_local;       /* @104 */
	uint64_t scratch_remote;      /* @112 8 bytes of the peer's heap that may be read */
	uint32_t valid;               /* @120 0: no such queue (own PE) */
	uint32_t rkey_id;             /* @124 udma: token id of the peer's heap */
	struct nda_queue_state state; /* @128 */
	/* Immutable, of the format. */
	union {
		struct nda_queue_rxe rxe; /* @192 */
		struct nda_queue_in_die in_die;
		struct nda_queue_udma udma;
		struct nda_queue_xscale xscale;
		uint8_t reserved[64];
	};
};

/* A piece of the own heap, where a device call takes several. */
struct nda_piece {
	uint64_t addr;
	uint64_t length; /* bytes */
};

/* A registered range as device calls take it: local or remote, for one PE's NIC. */
struct nda_region {
	uint64_t addr;
	uint64_t size_bytes;
	uint32_t key; /* lkey of an own region, rkey of a peer's; udma: token id of an own
			 region, token value of a peer's */
	uint32_t pe;  /* owner */
	uint32_t key_id; /* udma: token id of a peer's region */
	uint32_t reserved;
};

#ifdef __cplusplus
#define NDA_TABLE_ASSERT static_assert
#else
#define NDA_TABLE_ASSERT _Static_assert
#endif
NDA_TABLE_ASSERT(sizeof(struct nda_table) == 128, "layout of nda_table");
NDA_TABLE_ASSERT(sizeof(struct nda_queue_state) == NDA_CACHE_LINE, "one line of state");
NDA_TABLE_ASSERT(sizeof(struct nda_queue_shared) == NDA_CACHE_LINE, "one line of state");
NDA_TABLE_ASSERT(sizeof(struct nda_queue) == NDA_QUEUE_STRIDE, "layout of nda_queue");
#undef NDA_TABLE_ASSERT

#endif
