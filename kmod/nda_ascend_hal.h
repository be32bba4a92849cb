/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The Ascend driver's functions for peer devices, as its kernel modules export them: the layout
 * that its version 1 has. They are looked up when they are needed, for the driver comes without
 * what linking against it takes.
 */
#ifndef NDA_ASCEND_HAL_H
#define NDA_ASCEND_HAL_H

#include <linux/types.h>

#define P2P_GET_PAGE_VERSION 1

struct p2p_page_info {
	u64 pa;
	u64 reserved[4];
};

struct p2p_page_table {
	u32 version;
	u64 page_size;
	struct p2p_page_info *pages_info;
	u64 page_num;
	u64 reserved[4];
};

/*
 * hal_kernel_p2p_get_pages() - the pages of [va, va+len) of the calling process's NPU memory
 *
 * @free_callback is called once when some of it is freed, in the freeing process, possibly inside
 * an MMU notifier, and possibly after the table was put. It may not put the table.
 */
int hal_kernel_p2p_get_pages(u64 va, u64 len, void (*free_callback)(void *data), void *data,
			     struct p2p_page_table **page_table);
/* hal_kernel_p2p_put_pages() - does not wait for a callback that is about to run */
int hal_kernel_p2p_put_pages(struct p2p_page_table *page_table);

#endif
