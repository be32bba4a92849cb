/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* NICs and registered memory. The rules of nda/npu.h apply. */
#ifndef NDA_NIC_H
#define NDA_NIC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_context;
struct nda_mr;
struct nda_nic;
struct nda_npu;

struct nda_nic_attr {
	uint64_t comp_mask; /* must be 0 */
	const char *inject; /* soft: faults, "remote-access-error:1000,delay-us:50"; NULL =
			       none */
	uint32_t mtu_bytes; /* soft: active MTU, a power of two 256..4096; default 4096 */
	uint32_t reserved;  /* must be 0 */
};

struct nda_nic_info {
	char name[64];        /* "soft:hns1825" */
	uint32_t format;      /* enum nda_format of nda/table.h */
	uint32_t port_active; /* 1 if the port is up */
	uint32_t active_mtu_bytes;
	uint32_t gid_count;
	uint64_t max_message_bytes;
};

/* "soft:hns1825". attr may be NULL. */
struct nda_nic *nda_nic_open(
	const char *name, const struct nda_nic_attr *attr, size_t attr_size);
int nda_nic_close(struct nda_nic *nic);
int nda_nic_query(struct nda_nic *nic, struct nda_nic_info *info, size_t info_size);
int nda_nic_gid(struct nda_nic *nic, uint32_t index, uint8_t gid[16]);

enum nda_access {
	NDA_ACCESS_LOCAL_WRITE = 1 << 0,
	NDA_ACCESS_REMOTE_WRITE = 1 << 1,
	NDA_ACCESS_REMOTE_READ = 1 << 2,
	NDA_ACCESS_REMOTE_ATOMIC = 1 << 3,
};

/* Registers NPU memory [addr, addr + size) of npu with nic. */
struct nda_mr *nda_mr_register(struct nda_nic *nic, struct nda_npu *npu, uint64_t addr,
	uint64_t size_bytes, uint32_t access);
int nda_mr_deregister(struct nda_mr *mr);
uint32_t nda_mr_lkey(const struct nda_mr *mr);
uint32_t nda_mr_rkey(const struct nda_mr *mr);

#ifdef __cplusplus
}
#endif
#endif
