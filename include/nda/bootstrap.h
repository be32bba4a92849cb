/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How the PEs of a group find each other. Collective libraries bring their own bootstrap:
 * they fill a struct nda_bootstrap. TCP is the built-in one. The rules of nda/npu.h apply.
 */
#ifndef NDA_BOOTSTRAP_H
#define NDA_BOOTSTRAP_H

#include <stddef.h>
#include <stdint.h>

#include <nda/decl.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct nda_bootstrap - the callbacks of a group
 * @pe: this process's (or thread's) PE, 0 <= pe < n_pes
 * @n_pes: PEs of the group
 * @allgather: every PE calls it with the same size_bytes; @out receives n_pes * size_bytes
 *   bytes in PE order. @in and @out do not overlap. Returns 0 or a negative errno; must end
 *   by itself when a peer is gone or late
 * @barrier: returns 0 when every PE has called it, or a negative errno; ends as @allgather
 * @cookie: first argument of both
 * @session: 32 bytes known to the PEs of this job alone, by which the fabric of the soft
 *   NICs tells its processes from others; NULL: PEs of one process only
 *
 * libnda calls the callbacks from the thread that calls libnda, never two at a time per
 * group. One bootstrap may serve several groups, one after the other or interleaved in the
 * same order on every PE.
 */
struct nda_bootstrap {
	uint32_t pe;
	uint32_t n_pes;
	int (*allgather)(void *cookie, const void *in, void *out, size_t size_bytes);
	int (*barrier)(void *cookie);
	void *cookie;
	const uint8_t *session;
};

/**
 * struct nda_bootstrap_tcp_attr - where the PEs of a job meet
 * @comp_mask: must be 0
 * @pe: this process's PE
 * @n_pes: PEs of the job, 1..4096, the same on every PE
 * @address: where PE 0 listens, a name or number of IPv4 or IPv6; NULL means "127.0.0.1".
 *   Any other address opens the job to the network that it is on
 * @port: its port; may be 0 only for PE 0 with a listen_fd
 * @reserved16, @reserved: must be 0
 * @listen_fd: PE 0: a listening TCP socket to take over instead of binding one; 0 or
 *   negative: none. Closed by a create that succeeds, the caller's otherwise
 * @secret: 32 bytes that only the PEs of the job know; required. Both sides prove that they
 *   know it, without sending it; connections that cannot are dropped and do not disturb the
 *   job. What follows is neither encrypted nor signed: this protects against other users of
 *   the machine, on loopback, not against whoever controls the network, nor against who
 *   took @port before PE 0 did, and passes on what both sides say. A @listen_fd that is
 *   there before any PE starts leaves no such gap
 * @timeout_ms: limit of each call, create included, but for resolving @address; 0 means
 *   60000. PE 0 keeps time, so that all PEs hear which one was late; the others wait up to
 *   a quarter longer for its verdict
 */
struct nda_bootstrap_tcp_attr {
	uint64_t comp_mask;
	uint32_t pe;
	uint32_t n_pes;
	const char *address;
	uint16_t port;
	uint16_t reserved16;
	int32_t listen_fd;
	const uint8_t *secret;
	uint32_t timeout_ms;
	uint32_t reserved;
};

/**
 * nda_bootstrap_tcp_create - connects all PEs
 * @attr: read during the call
 * @attr_size: sizeof(*attr)
 * @bootstrap: out; to be destroyed by nda_bootstrap_tcp_destroy
 *
 * Collective: returns when all n_pes PEs are there. PEs may start in any order.
 *
 * The callbacks of *bootstrap return, on every PE that is left and with the same text, also
 * at each later call (a bootstrap that has failed once stays failed):
 *   -ECONNRESET  a PE is gone: its process ended, or it destroyed its bootstrap; the text
 *                names it
 *   -ETIMEDOUT   a PE did not arrive in time; the text names it
 *   -EINVAL      PEs made different calls, or with different sizes
 *   -EMSGSIZE    n_pes * size_bytes is more than 1 GiB (this call only)
 *   -EPROTO      a PE sent what is no answer
 * A process's end is noticed at the next call, at once.
 *
 * Returns 0, or
 *   -EINVAL         an argument (the text says which), n_pes differs from PE 0's, or
 *                   listen_fd is no listening socket
 *   -EADDRNOTAVAIL  the address cannot be resolved
 *   -EACCES         who listens there does not know the secret; or no right to the port
 *   -EADDRINUSE     PE 0: the port is taken
 *   -EEXIST         another process is this PE already
 *   -ECONNRESET     a PE was gone before all had arrived
 *   -ETIMEDOUT      not all arrived in time; the text names who is missing
 *   -ENOMEM         no memory
 *   other           of the socket calls
 */
int nda_bootstrap_tcp_create(const struct nda_bootstrap_tcp_attr *attr, size_t attr_size,
	struct nda_bootstrap **bootstrap) NDA_NOEXCEPT;

/**
 * nda_bootstrap_tcp_destroy - closes this PE's connections
 * @bootstrap: from nda_bootstrap_tcp_create; no group uses it any more
 *
 * Not collective; but a peer that still makes a call gets -ECONNRESET.
 *
 * Returns 0, or -EINVAL: NULL or not from nda_bootstrap_tcp_create.
 */
int nda_bootstrap_tcp_destroy(struct nda_bootstrap *bootstrap) NDA_NOEXCEPT;

/**
 * nda_bootstrap_local_create - for PEs that are threads of one process
 * @n_pes: 1..4096
 * @timeout_ms: limit of each call; 0 means 60000
 * @bootstraps: out; an array of @n_pes, one for each PE in order
 *
 * The callbacks fail as those of nda_bootstrap_tcp_create do, but for -ECONNRESET and
 * -EPROTO: a thread that is gone is late.
 *
 * Returns 0, or -EINVAL (an argument) or -ENOMEM.
 */
int nda_bootstrap_local_create(uint32_t n_pes, uint32_t timeout_ms,
	struct nda_bootstrap **bootstraps) NDA_NOEXCEPT;

/**
 * nda_bootstrap_local_destroy - releases the array
 * @bootstraps: as created; no thread is in a call
 *
 * Returns 0, or -EINVAL: NULL or not from nda_bootstrap_local_create.
 */
int nda_bootstrap_local_destroy(struct nda_bootstrap *bootstraps) NDA_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
