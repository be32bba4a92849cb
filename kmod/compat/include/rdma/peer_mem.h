/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The RDMA core's interface for memory that is not the kernel's, where the core exports it but
 * its header is not at hand: on the include path after all others. What is declared is what
 * MLNX_OFED since 5.1, and the kernels of Ubuntu and openEuler that took it from there, agree
 * on: the members, their order and types, and the values.
 */
#ifndef PEER_MEM_H
#define PEER_MEM_H

#include <linux/device.h>
#include <linux/scatterlist.h>
#include <linux/types.h>

#define IB_PEER_MEMORY_NAME_MAX 64
#define IB_PEER_MEMORY_VER_MAX 16

/* A client; those that core and client call a context is what acquire() gave. */
struct peer_memory_client {
	char name[IB_PEER_MEMORY_NAME_MAX];
	/* Its last byte is 1 if a struct peer_memory_client_ex is around this. */
	char version[IB_PEER_MEMORY_VER_MAX];
	/* 1 if the memory is the client's. Both void * arguments before the last are NULL. */
	int (*acquire)(unsigned long addr, size_t size, void *peer_mem_private_data,
		       char *peer_mem_name, void **client_context);
	int (*get_pages)(unsigned long addr, size_t size, int write, int force,
			 struct sg_table *sg_head, void *client_context, u64 core_context);
	int (*dma_map)(struct sg_table *sg_head, void *client_context, struct device *dma_device,
		       int dmasync, int *nmap);
	int (*dma_unmap)(struct sg_table *sg_head, void *client_context, struct device *dma_device);
	void (*put_pages)(struct sg_table *sg_head, void *client_context);
	unsigned long (*get_page_size)(void *client_context);
	void (*release)(void *client_context);
};

/* After invalidation the client unmaps and puts by itself, not the core. */
enum {
	PEER_MEM_INVALIDATE_UNMAPS = 1 << 0,
};

struct peer_memory_client_ex {
	struct peer_memory_client client;
	size_t ex_size; /* of this structure */
	u32 flags;
};

/* The memory goes; for what @core_context was get_pages()'s. One that is gone is ignored. */
typedef int (*invalidate_peer_memory)(void *reg_handle, u64 core_context);

/*
 * Without @invalidate_callback the client's memory stays until it is put. NULL on failure; else
 * to be unregistered, which waits for all of the client's memory.
 */
void *ib_register_peer_memory_client(const struct peer_memory_client *peer_client,
				     invalidate_peer_memory *invalidate_callback);
void ib_unregister_peer_memory_client(void *reg_handle);

#endif
