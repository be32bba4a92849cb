/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * The calls of /dev/nda_test_peer, which registers memory for an edu device of QEMU as the RDMA
 * core does for a NIC. What a file registered ends with it.
 */
#ifndef NDA_TEST_PEER_H
#define NDA_TEST_PEER_H

#include <linux/ioctl.h>
#include <linux/types.h>

struct nda_test_peer_reg {
	__aligned_u64 va;
	__aligned_u64 len;
	__u32 devfn; /* of the edu device, on bus 0; 255: a device that is software */
	__u32 flags;
	__u32 handle; /* out */
	__u32 client; /* out: NDA_TEST_PEER_BY_* */
	__u32 pieces; /* out: of the mapping */
	__u32 reserved;
};

#define NDA_TEST_PEER_QUEUE (1 << 0) /* cannot be invalidated */
#define NDA_TEST_PEER_HOLD_MAP (1 << 1) /* waits for GO before it maps */
#define NDA_TEST_PEER_HOLD_READY (1 << 2) /* waits for GO when it has mapped */
#define NDA_TEST_PEER_TWO (1 << 3) /* maps for the next edu device, too */

#define NDA_TEST_PEER_BY_CORE 0
#define NDA_TEST_PEER_BY_MRS 1 /* the client that is told to invalidate */
#define NDA_TEST_PEER_BY_QUEUES 2 /* the other one */

struct nda_test_peer_dereg {
	__u32 handle;
	__u32 flags;
};

#define NDA_TEST_PEER_NO_UNMAP (1 << 0) /* forgets dma_unmap() */
#define NDA_TEST_PEER_NO_PUT (1 << 1) /* forgets put_pages() */
#define NDA_TEST_PEER_TWICE (1 << 2) /* calls both twice */

struct nda_test_peer_dma {
	__u32 handle;
	__u32 len; /* to 2048 */
	__aligned_u64 offset; /* of the address that was registered */
	__aligned_u64 data; /* where the bytes are, or go */
	__u32 flags;
	__u32 reserved;
};

#define NDA_TEST_PEER_WRITE (1 << 0) /* writes the memory, else reads it */

/* Of the whole system, so far if nothing else is said. */
struct nda_test_peer_state {
	__u32 clients; /* now */
	__u32 umems; /* of clients, now */
	__u32 held; /* registrations that wait for GO, now */
	__u32 told; /* calls of invalidate() that have begun */
	__u32 revoked; /* memory whose device let go because of one */
	__u32 stale; /* calls about memory that was gone */
	__u32 by_client; /* memory got from clients */
	__u32 wrong; /* clients' doings against the interface */
};

#define NDA_TEST_PEER_REG _IOWR(0xEF, 48, struct nda_test_peer_reg)
#define NDA_TEST_PEER_DEREG _IOW(0xEF, 49, struct nda_test_peer_dereg)
#define NDA_TEST_PEER_DMA _IOW(0xEF, 50, struct nda_test_peer_dma)
#define NDA_TEST_PEER_STATE _IOR(0xEF, 51, struct nda_test_peer_state)
#define NDA_TEST_PEER_GO _IO(0xEF, 52)

#endif
