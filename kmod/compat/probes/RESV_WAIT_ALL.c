// SPDX-License-Identifier: GPL-2.0
/* Since 5.14 by this name, whatever the second argument is. */
#include <linux/dma-resv.h>
long probe(struct dma_resv *resv);
long probe(struct dma_resv *resv)
{
	return dma_resv_wait_timeout(resv, 1, false, 1);
}
