// SPDX-License-Identifier: GPL-2.0
/*
 * What is asked of the IOMMU beneath the DMA API.
 *
 * The sink. An importer that has not let go of revoked memory still has bus addresses of it. If
 * they are just unmapped, its device faults, until the DMA API gives one of them to another
 * mapping of that device, and then the device writes there. With sink_remap=1 they lead to a
 * page of no use instead, until the importer unmaps them. This changes a domain that the DMA
 * API owns, behind its back: hence the parameter. What the DMA API finds when it unmaps must be
 * mapped in full: if the sink could not be put in everywhere, the addresses are never unmapped,
 * and lost to the device.
 */
#include <linux/iommu.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>

#include "nda_internal.h"

static bool sink_remap;
module_param(sink_remap, bool, 0444);
MODULE_PARM_DESC(sink_remap,
		 "redirect importers that keep revoked memory to a page of no use (default off)");

/**
 * nda_iommu_translates() - whether a device's DMA addresses go through page tables
 * @dev: with a driver bound
 */
bool nda_iommu_translates(struct device *dev)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev);

	return domain && domain->type & __IOMMU_DOMAIN_PAGING;
}

/**
 * nda_iommu_flush() - makes sure that what was unmapped is, where that is done later
 * @dev: the device
 */
void nda_iommu_flush(struct device *dev)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev);

	if (domain && domain->type & __IOMMU_DOMAIN_PAGING && nda_iommu_domain_is_lazy(domain))
		iommu_flush_iotlb_all(domain);
}

bool nda_sink_enabled(void)
{
	return sink_remap;
}

/**
 * nda_sink_wanted() - whether mappings of a device shall have a sink page
 * @dev: the device
 */
bool nda_sink_wanted(struct device *dev)
{
	return sink_remap && nda_iommu_translates(dev);
}

/**
 * nda_sink_remap() - leads a mapping of the DMA API to the sink
 * @dev: the device
 * @iova: the mapping's address, a multiple of PAGE_SIZE
 * @len: bytes, a multiple of PAGE_SIZE
 * @sink: the page
 *
 * Memory may be freed behind a caller who waits for this, so it allocates without reclaiming.
 *
 * Return: 0; a negative errno: a part of it is not mapped at all now.
 */
int nda_sink_remap(struct device *dev, dma_addr_t iova, size_t len, struct page *sink)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev);
	size_t done;
	int ret;

	if (iommu_unmap(domain, iova, len) != len)
		return -EIO;
	for (done = 0; done < len; done += PAGE_SIZE) {
		ret = iommu_map(domain, iova + done, page_to_phys(sink), PAGE_SIZE,
				IOMMU_READ | IOMMU_WRITE, GFP_ATOMIC | __GFP_NOWARN);
		if (ret)
			return ret;
		cond_resched();
	}
	return 0;
}
