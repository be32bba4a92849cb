// SPDX-License-Identifier: GPL-2.0
/* Since 7.0 importers invalidate; before, they were notified of a move. */
#include <linux/dma-buf.h>
void probe(struct dma_buf *dmabuf);
void probe(struct dma_buf *dmabuf)
{
	dma_buf_invalidate_mappings(dmabuf);
}
