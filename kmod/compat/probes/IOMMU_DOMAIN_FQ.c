// SPDX-License-Identifier: GPL-2.0
/* Since 5.15 a domain tells that it flushes lazily. */
#include <linux/iommu.h>
int probe(void);
int probe(void)
{
	return IOMMU_DOMAIN_DMA_FQ;
}
