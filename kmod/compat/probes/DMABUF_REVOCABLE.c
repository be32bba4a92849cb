// SPDX-License-Identifier: GPL-2.0
/* Since 7.0 the kernel tells which importers let go. */
#include <linux/dma-buf.h>
bool probe(struct dma_buf_attachment *attach);
bool probe(struct dma_buf_attachment *attach)
{
	return dma_buf_attach_revocable(attach);
}
