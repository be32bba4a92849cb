// SPDX-License-Identifier: GPL-2.0
/* The QUERY ioctl: what is there, and the paths between devices. */
#include <linux/iommu.h>
#include <linux/nospec.h>
#include <linux/pci.h>
#include <linux/rwsem.h>

#include "nda_internal.h"

struct pci_dev *nda_pci_get(const struct nda_ioc_bdf *bdf)
{
	if (bdf->domain > INT_MAX)
		return NULL;
	return pci_get_domain_bus_and_slot(bdf->domain, bdf->bus, bdf->devfn);
}

static u32 nda_iommu_mode(struct device *dev)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev);

	if (!domain)
		return NDA_IOMMU_NONE;
	if (domain->type == IOMMU_DOMAIN_IDENTITY)
		return NDA_IOMMU_IDENTITY;
	return nda_iommu_domain_is_lazy(domain) ? NDA_IOMMU_LAZY : NDA_IOMMU_STRICT;
}

static u32 nda_depth(struct pci_dev *pdev)
{
	u32 depth = 0;

	while ((pdev = pci_upstream_bridge(pdev)))
		depth++;
	return depth;
}

/* Links between two functions by way of the nearest bridge that both are below. */
static u64 nda_p2p_distance(struct pci_dev *a, struct pci_dev *b)
{
	u32 depth_a = nda_depth(a), depth_b = nda_depth(b);
	u64 links = 0;

	while (a != b) {
		if (depth_a >= depth_b) {
			a = pci_upstream_bridge(a);
			links++;
			if (!depth_a--)
				return NDA_P2P_HOST_BRIDGE;
		} else {
			b = pci_upstream_bridge(b);
			links++;
			depth_b--;
		}
	}
	return links;
}

static int nda_query_iommu(struct nda_ioc_query *arg)
{
	struct pci_dev *pdev = nda_pci_get(&arg->dev);
	int ret;

	if (!pdev)
		return -ENODEV;
	/* Its domain stays as long as it keeps its driver. */
	ret = device_lock_interruptible(&pdev->dev);
	if (!ret) {
		if (pdev->dev.driver)
			arg->value = nda_iommu_mode(&pdev->dev);
		else
			ret = -ENODEV;
		device_unlock(&pdev->dev);
	}
	pci_dev_put(pdev);
	return ret;
}

static int nda_query_p2p(struct nda_ioc_query *arg)
{
	struct pci_dev *dev = nda_pci_get(&arg->dev);
	struct pci_dev *peer = nda_pci_get(&arg->peer);
	int ret = -ENODEV;

	if (dev && peer) {
		arg->value = nda_p2p_distance(dev, peer);
		ret = 0;
	}
	pci_dev_put(peer);
	pci_dev_put(dev);
	return ret;
}

/* How the parts that are no backends are, by part. */
static u32 (*nda_parts[NDA_PARTS])(void);
/* Guards nda_parts. Outside of what the parts' functions take. */
static DECLARE_RWSEM(nda_parts_lock);

int nda_part_register(u32 part, u32 (*why)(void))
{
	int ret = 0;

	down_write(&nda_parts_lock);
	if (nda_parts[part])
		ret = -EEXIST;
	else
		nda_parts[part] = why;
	up_write(&nda_parts_lock);
	return ret;
}
EXPORT_SYMBOL_GPL(nda_part_register);

void nda_part_unregister(u32 part)
{
	down_write(&nda_parts_lock);
	nda_parts[part] = NULL;
	up_write(&nda_parts_lock);
}
EXPORT_SYMBOL_GPL(nda_part_unregister);

/* Of a part that has not registered. Without the interface, nda_peermem.ko would be a stub. */
static u32 nda_part_why_not(u32 part)
{
	if (part == NDA_PART_PEERMEM || part == NDA_PART_PEERMEM_QUEUES)
		return NDA_PEER_API ? NDA_WHY_NOT_LOADED : NDA_WHY_NO_PEER_API;
	return nda_backend_why(part);
}

static int nda_query_part(struct nda_ioc_query *arg)
{
	u32 part;

	if (arg->index >= NDA_PARTS)
		return -ERANGE;
	part = array_index_nospec(arg->index, NDA_PARTS);
	down_read(&nda_parts_lock);
	arg->value2 = nda_parts[part] ? nda_parts[part]() : nda_part_why_not(part);
	up_read(&nda_parts_lock);
	arg->value = arg->value2 == NDA_WHY_OK;
	return 0;
}

static int nda_query_limit(struct nda_file *file, struct nda_ioc_query *arg)
{
	if (arg->index >= NDA_LIMITS)
		return -ERANGE;
	arg->value = NDA_MAX_OBJECTS;
	arg->value2 = atomic_read(&file->count);
	return 0;
}

static int nda_query_count(struct nda_ioc_query *arg)
{
	if (arg->index >= NDA_COUNTS)
		return -ERANGE;
	arg->value = atomic_long_read(&nda_counts[array_index_nospec(arg->index, NDA_COUNTS)]);
	return 0;
}

static bool nda_bdf_given(const struct nda_ioc_bdf *bdf)
{
	return bdf->domain || bdf->bus || bdf->devfn || bdf->reserved;
}

int nda_query_ioctl(struct nda_file *file, struct nda_ioc_query *arg)
{
	bool dev = arg->what == NDA_QUERY_IOMMU || arg->what == NDA_QUERY_P2P;
	bool peer = arg->what == NDA_QUERY_P2P;
	bool index = arg->what == NDA_QUERY_PART || arg->what == NDA_QUERY_LIMIT ||
		     arg->what == NDA_QUERY_COUNT;

	if (arg->dev.reserved || arg->peer.reserved || (!dev && nda_bdf_given(&arg->dev)) ||
	    (!peer && nda_bdf_given(&arg->peer)) || (!index && arg->index))
		return -EINVAL;
	arg->value = 0;
	arg->value2 = 0;
	switch (arg->what) {
	case NDA_QUERY_ABI:
		arg->value = NDA_ABI_VERSION;
		arg->value2 = NDA_IOC_LAST;
		return 0;
	case NDA_QUERY_FEATURES:
		arg->value = NDA_FEATURE_HOST_PIN | nda_export_features() | nda_db_features();
		return 0;
	case NDA_QUERY_PART:
		return nda_query_part(arg);
	case NDA_QUERY_LIMIT:
		return nda_query_limit(file, arg);
	case NDA_QUERY_IOMMU:
		return nda_query_iommu(arg);
	case NDA_QUERY_P2P:
		return nda_query_p2p(arg);
	case NDA_QUERY_COUNT:
		return nda_query_count(arg);
	default:
		return -EINVAL;
	}
}
