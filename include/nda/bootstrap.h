/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How the PEs of a group find each other. Collective libraries bring their own bootstrap:
 * they fill a struct nda_bootstrap. TCP is the built-in one. The rules of nda/npu.h apply.
 */
#ifndef NDA_BOOTSTRAP_H
#define NDA_BOOTSTRAP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct nda_bootstrap - the callbacks of a group
 * @pe:        this process's (or thread's) PE, 0 <= pe < n_pes
 * @n_pes:     PEs of the group
 * @allgather: every PE calls it with the same size; out receives n_pes * size bytes in PE
 * order. Returns 0 or a negative errno; must end by itself when a peer is gone
 * @barrier:   returns 0 when every PE has called it, or a negative errno
 * @cookie:    first argument of both
 * @session:   32 bytes known to the PEs of this job alone; NULL: PEs of one process only
 *
 * libnda calls the callbacks from the thread that calls libnda, never two at a time per
 * group.
 */
struct nda_bootstrap {
	uint32_t pe;
	uint32_t n_pes;
	int (*allgather)(void *cookie, const void *in, void *out, size_t size_bytes);
	int (*barrier)(void *cookie);
	void *cookie;
	const uint8_t *session;
};

struct nda_bootstrap_tcp_attr {
	uint64_t comp_mask; /* must be 0 */
	uint32_t pe;
	uint32_t n_pes;
	const char *address; /* where PE 0 listens; default "127.0.0.1" */
	uint16_t port;       /* its port; 0 only for PE 0 and with listen_fd */
	uint16_t reserved16;
	int32_t listen_fd; /* PE 0: a listening socket to take over instead of binding; else
			      -1 */
	const uint8_t *secret; /* 32 bytes shared by the PEs of the job; required */
	uint32_t timeout_ms;   /* for each call; default 60000 */
	uint32_t reserved;
};

/* Connects all PEs, and fills *bootstrap; it stays valid until destroy. */
int nda_bootstrap_tcp_create(const struct nda_bootstrap_tcp_attr *attr, size_t attr_size,
	struct nda_bootstrap **bootstrap);
int nda_bootstrap_tcp_destroy(struct nda_bootstrap *bootstrap);

/* PEs as threads of one process: n_pes bootstraps that meet in memory. */
int nda_bootstrap_local_create(
	uint32_t n_pes, uint32_t timeout_ms, struct nda_bootstrap **bootstraps);
int nda_bootstrap_local_destroy(struct nda_bootstrap *bootstraps);

#ifdef __cplusplus
}
#endif
#endif
