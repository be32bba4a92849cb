/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Included before every source of nda.ko in a build for tests: what can fail in the kernel fails
 * when it is told to, once. The kernel's own fault injection is in few distributions' kernels.
 */
#ifndef NDA_FAULTS_H
#define NDA_FAULTS_H

#include "compat/compat.h"

#include <linux/cdev.h>
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/file.h>
#include <linux/iommu.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

/* Whether this one fails. */
bool nda_fault(void);

void nda_count_freed(void);

/* The kernel's are macros or functions, as its version has it: each gets a name of ours. */
#define NDA_FAULTY(type, name, failure, parameters, arguments)   \
	static inline type nda_faulty_##name parameters          \
	{                                                        \
		return nda_fault() ? (failure) : name arguments; \
	}

NDA_FAULTY(void *, kzalloc, NULL, (size_t size, gfp_t gfp), (size, gfp))
NDA_FAULTY(void *, kvzalloc, NULL, (size_t size, gfp_t gfp), (size, gfp))
NDA_FAULTY(void *, kvcalloc, NULL, (size_t n, size_t size, gfp_t gfp), (n, size, gfp))
NDA_FAULTY(void *, kvmalloc_array, NULL, (size_t n, size_t size, gfp_t gfp), (n, size, gfp))
NDA_FAULTY(struct page *, alloc_page, NULL, (gfp_t gfp), (gfp))
NDA_FAULTY(int, sg_alloc_table, -ENOMEM, (struct sg_table * sgt, unsigned int n, gfp_t gfp),
	   (sgt, n, gfp))
NDA_FAULTY(int, sg_alloc_table_from_pages_segment, -ENOMEM,
	   (struct sg_table * sgt, struct page **pages, unsigned int n, unsigned int offset,
	    unsigned long size, unsigned int max, gfp_t gfp),
	   (sgt, pages, n, offset, size, max, gfp))
NDA_FAULTY(int, xa_alloc_cyclic, -ENOMEM,
	   (struct xarray * xa, u32 *id, void *entry, struct xa_limit limit, u32 *next, gfp_t gfp),
	   (xa, id, entry, limit, next, gfp))
NDA_FAULTY(dma_addr_t, dma_map_resource, DMA_MAPPING_ERROR,
	   (struct device * dev, phys_addr_t at, size_t size, enum dma_data_direction dir,
	    unsigned long attrs),
	   (dev, at, size, dir, attrs))
NDA_FAULTY(int, dma_map_sgtable, -EIO,
	   (struct device * dev, struct sg_table *sgt, enum dma_data_direction dir,
	    unsigned long attrs),
	   (dev, sgt, dir, attrs))
NDA_FAULTY(int, iommu_map, -ENOMEM,
	   (struct iommu_domain * domain, unsigned long iova, phys_addr_t at, size_t size, int prot,
	    gfp_t gfp),
	   (domain, iova, at, size, prot, gfp))
NDA_FAULTY(int, get_unused_fd_flags, -EMFILE, (unsigned int flags), (flags))
NDA_FAULTY(struct dma_buf *, dma_buf_export, ERR_PTR(-ENOMEM),
	   (const struct dma_buf_export_info *info), (info))
NDA_FAULTY(int, pin_user_pages_fast, -ENOMEM,
	   (unsigned long start, int n, unsigned int flags, struct page **pages),
	   (start, n, flags, pages))
NDA_FAULTY(int, mmu_interval_notifier_insert, -ENOMEM,
	   (struct mmu_interval_notifier * notifier, struct mm_struct *mm, unsigned long start,
	    unsigned long length, const struct mmu_interval_notifier_ops *ops),
	   (notifier, mm, start, length, ops))
NDA_FAULTY(struct workqueue_struct *, alloc_workqueue, NULL,
	   (const char *name, unsigned int flags, int max), ("%s", flags, max, name))
NDA_FAULTY(struct class *, class_create, ERR_PTR(-ENOMEM), (const char *name), (name))
NDA_FAULTY(struct device *, device_create_with_groups, ERR_PTR(-ENOMEM),
	   (struct class * class, struct device *parent, dev_t dev, void *data,
	    const struct attribute_group **groups, const char *name),
	   (class, parent, dev, data, groups, "%s", name))
NDA_FAULTY(int, alloc_chrdev_region, -EBUSY,
	   (dev_t * dev, unsigned int base, unsigned int count, const char *name),
	   (dev, base, count, name))
NDA_FAULTY(int, cdev_add, -ENOMEM, (struct cdev * cdev, dev_t dev, unsigned int count),
	   (cdev, dev, count))
NDA_FAULTY(int, bus_register_notifier, -ENOMEM,
	   (const struct bus_type *bus, struct notifier_block *nb), ((struct bus_type *)bus, nb))

#undef __free_page
#define __free_page(page) (nda_count_freed(), __free_pages(page, 0))
#undef kzalloc
#define kzalloc nda_faulty_kzalloc
#undef kvzalloc
#define kvzalloc nda_faulty_kvzalloc
#undef kvcalloc
#define kvcalloc nda_faulty_kvcalloc
#undef kvmalloc_array
#define kvmalloc_array nda_faulty_kvmalloc_array
#undef alloc_page
#define alloc_page nda_faulty_alloc_page
#undef sg_alloc_table
#define sg_alloc_table nda_faulty_sg_alloc_table
#undef sg_alloc_table_from_pages_segment
#define sg_alloc_table_from_pages_segment nda_faulty_sg_alloc_table_from_pages_segment
#undef xa_alloc_cyclic
#define xa_alloc_cyclic nda_faulty_xa_alloc_cyclic
#undef dma_map_resource
#define dma_map_resource nda_faulty_dma_map_resource
#undef dma_map_sgtable
#define dma_map_sgtable nda_faulty_dma_map_sgtable
#undef iommu_map
#define iommu_map nda_faulty_iommu_map
#undef get_unused_fd_flags
#define get_unused_fd_flags nda_faulty_get_unused_fd_flags
#undef dma_buf_export
#define dma_buf_export nda_faulty_dma_buf_export
#undef pin_user_pages_fast
#define pin_user_pages_fast nda_faulty_pin_user_pages_fast
#undef mmu_interval_notifier_insert
#define mmu_interval_notifier_insert nda_faulty_mmu_interval_notifier_insert
#undef alloc_workqueue
#define alloc_workqueue nda_faulty_alloc_workqueue
#undef class_create
#define class_create nda_faulty_class_create
#undef device_create_with_groups
#define device_create_with_groups nda_faulty_device_create_with_groups
#undef alloc_chrdev_region
#define alloc_chrdev_region nda_faulty_alloc_chrdev_region
#undef cdev_add
#define cdev_add nda_faulty_cdev_add
#undef bus_register_notifier
#define bus_register_notifier nda_faulty_bus_register_notifier

#endif
