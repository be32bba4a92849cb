// SPDX-License-Identifier: GPL-2.0
/* Since 5.19 fences have a use. */
#include <linux/dma-resv.h>
long probe(struct dma_resv *resv);
long probe(struct dma_resv *resv)
{
	return dma_resv_wait_timeout(resv, DMA_RESV_USAGE_BOOKKEEP, false, 1);
}
