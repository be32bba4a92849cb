/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Included before every source: what the newest kernel has, for those that lack it. What a
 * kernel has was found by the probes beside this file, never by its version.
 */
#ifndef NDA_COMPAT_H
#define NDA_COMPAT_H

#include "config.h"

/* Before any header gives it another meaning. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/device.h>
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/eventfd.h>
#include <linux/iommu.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>

/* Up to 6.12 it takes the name itself, from then on its text. */
#ifdef HAVE_IMPORT_NS_TOKEN
#define NDA_IMPORT_NS_DMA_BUF MODULE_IMPORT_NS(DMA_BUF)
#else
#define NDA_IMPORT_NS_DMA_BUF MODULE_IMPORT_NS("DMA_BUF")
#endif

#ifndef HAVE_CLASS_CREATE_NAME
static inline struct class *nda_class_create(const char *name)
{
	return class_create(THIS_MODULE, name);
}
#undef class_create
#define class_create(name) nda_class_create(name)
#endif

#ifndef HAVE_EVENTFD_SIGNAL_ONE
#define eventfd_signal(ctx) eventfd_signal(ctx, 1)
#endif

/*
 * Flags of a long-term pin for reading. Where the kernel makes no copy then, the next write by
 * the process would: asking to write, by force where it may not, makes it at once.
 */
#ifdef HAVE_GUP_UNSHARES
#define NDA_FOLL_READ 0
#else
#define NDA_FOLL_READ (FOLL_WRITE | FOLL_FORCE)
#endif

#ifndef HAVE_SG_FROM_PAGES_SEGMENT
static inline int sg_alloc_table_from_pages_segment(struct sg_table *sgt, struct page **pages,
						    unsigned int n_pages, unsigned int offset,
						    unsigned long size, unsigned int max_segment,
						    gfp_t gfp)
{
	return PTR_ERR_OR_ZERO(__sg_alloc_table_from_pages(sgt, pages, n_pages, offset, size,
							   max_segment, NULL, 0, gfp));
}
#endif

/* Until 6.3 it is a function of its own that does not sleep. */
#ifndef HAVE_IOMMU_MAP_GFP
static inline int nda_iommu_map(struct iommu_domain *domain, unsigned long iova, phys_addr_t pa,
				size_t size, int prot, gfp_t gfp)
{
	return iommu_map_atomic(domain, iova, pa, size, prot);
}
#define iommu_map nda_iommu_map
#endif

/*
 * Importers of dma-bufs. Newer kernels tell those that let go when they are told to from those
 * that do not, and renamed the call that tells them. Older ones may pin for each mapping.
 */
#ifdef HAVE_DMABUF_INVALIDATE
static inline void nda_attach_invalidate(struct dma_buf_attachment *attach)
{
	if (attach->importer_ops->invalidate_mappings)
		attach->importer_ops->invalidate_mappings(attach);
}
#define NDA_INVALIDATE invalidate_mappings
#define NDA_CORE_PINS 0
#else
static inline void nda_attach_invalidate(struct dma_buf_attachment *attach)
{
	attach->importer_ops->move_notify(attach);
}
#define NDA_INVALIDATE move_notify
#define dma_buf_invalidate_mappings dma_buf_move_notify
#define NDA_CORE_PINS (IS_ENABLED(CONFIG_DMABUF_MOVE_NOTIFY) ? 0 : 1)
#endif

#ifdef HAVE_DMABUF_REVOCABLE
#define NDA_TELLS_REVOCABLE true
#define nda_attach_revocable(attach) dma_buf_attach_revocable(attach)
#else
#define NDA_TELLS_REVOCABLE false
static inline bool nda_attach_revocable(struct dma_buf_attachment *attach)
{
	return false;
}
#endif

/* Which fences to wait for: all of them, by each of its names. */
#ifndef HAVE_RESV_WAIT_USAGE
#define DMA_RESV_USAGE_BOOKKEEP true
#ifndef HAVE_RESV_WAIT_ALL
#define dma_resv_wait_timeout dma_resv_wait_timeout_rcu
#endif
#endif

static inline bool nda_iommu_domain_is_lazy(const struct iommu_domain *domain)
{
#ifdef HAVE_IOMMU_DOMAIN_FQ
	return domain->type == IOMMU_DOMAIN_DMA_FQ;
#else
	/* It cannot be told: lazy is the usual setting. */
	return true;
#endif
}

#ifndef HAVE_VMA_LOOKUP
static inline struct vm_area_struct *vma_lookup(struct mm_struct *mm, unsigned long addr)
{
	struct vm_area_struct *vma = find_vma(mm, addr);

	return vma && vma->vm_start <= addr ? vma : NULL;
}
#endif

#ifndef HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}
#endif

#ifndef HAVE_FOLLOW_PFNMAP
struct follow_pfnmap_args {
	struct vm_area_struct *vma;
	unsigned long address;
	pte_t *ptep;
	spinlock_t *lock;
	unsigned long pfn;
	bool writable;
};

static inline int follow_pfnmap_start(struct follow_pfnmap_args *args)
{
	int ret;

#ifdef HAVE_FOLLOW_PTE_VMA
	ret = follow_pte(args->vma, args->address, &args->ptep, &args->lock);
#else
	ret = follow_pte(args->vma->vm_mm, args->address, &args->ptep, &args->lock);
#endif
	if (ret)
		return ret;
	args->pfn = pte_pfn(*args->ptep);
	args->writable = pte_write(*args->ptep);
	return 0;
}

static inline void follow_pfnmap_end(struct follow_pfnmap_args *args)
{
	/* That follow_pte() locks is not known to sparse. */
	__acquire(args->lock);
	pte_unmap_unlock(args->ptep, args->lock);
}
#endif

/* What an importer is told when an exporter takes memory back. */
#ifndef HAVE_DMABUF_INVALIDATE
#define invalidate_mappings move_notify
#endif

/* Processing accelerators, as PCI's class codes have them; not in every kernel's pci_ids.h. */
#ifndef PCI_BASE_CLASS_ACCELERATOR
#define PCI_BASE_CLASS_ACCELERATOR 0x12
#endif

/* Whether dma_map_resource() takes memory that has struct pages: since 5.15, as this export. */
static inline bool nda_dma_maps_ram(void)
{
#ifdef HAVE_EXPORT_DMA_MAP_SGTABLE
	return true;
#else
	return false;
#endif
}

/*
 * Whether a QP that is held by its restrack entry is not destroyed by its driver meanwhile: where
 * the RDMA core first ends the tracking. It did while drivers made the QP's structure, and does
 * again since it has a function of its own for that.
 */
static inline bool nda_restrack_waits(void)
{
#if defined(HAVE_EXPORT_RDMA_RESTRACK_BEGIN_DEL) || defined(HAVE_DRIVERS_MAKE_QPS)
	return true;
#else
	return false;
#endif
}

#endif
