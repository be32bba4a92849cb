/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What an extension driver can tell libnda beyond the ibv_extend structures. Optional: a
 * driver that fills none of it works as any other.
 *
 * A send queue without a doorbell register: the driver leaves sq_info.db_hw_va zero and
 * puts the address of a struct nda_software_doorbell into sq_info.resv[0]. libnda then
 * gives the device a doorbell slot in NPU memory, and a host thread that calls ring()
 * whenever the device has written to it.
 */
#ifndef NDA_DRIVER_H
#define NDA_DRIVER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NDA_SOFTWARE_DOORBELL_MAGIC 0x6c656265646e6164ull

/**
 * struct nda_software_doorbell - how the host rings for a queue
 * @magic:  NDA_SOFTWARE_DOORBELL_MAGIC
 * @ring:   tells the NIC to look at the queue; any thread, also while the device posts;
 * must not block. 0 or a negative errno
 * @cookie: first argument of ring
 *
 * Owned by the driver; valid until the QP is destroyed, and no call is made after that.
 */
struct nda_software_doorbell {
	uint64_t magic;
	int (*ring)(void *cookie);
	void *cookie;
};

#ifdef __cplusplus
}
#endif
#endif
