/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Within nda.ko.
 *
 * Locks, outer to inner; each says at its field what it guards.
 *
 *   nda_file.lock         one ioctl of a file at a time that makes or destroys a handle
 *   mmap_lock             taken by pin and doorbell look-ups; a revocation's caller may hold it
 *   nda_objects_lock      the list of all objects, for unbinding devices and debugfs; no
 *                         callback of an object is called with it held
 *   export's dmabuf lock  > dma_resv > nda_mem.map_lock > IOMMU
 *   nda_mem.lock          spinlock, a leaf: a range's state
 *   nda_file.event_lock   spinlock, a leaf
 *
 * nda_file.lock and dma_resv are never taken where a revocation may be waited for with
 * mmap_lock held: the work of revoking takes neither the former nor mmap_lock.
 */
#ifndef NDA_INTERNAL_H
#define NDA_INTERNAL_H

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

#include <uapi/nda.h>

#include "nda.h"

struct eventfd_ctx;
struct vm_area_struct;

/**
 * struct nda_file - an open /dev/nda; objects hold it, so it may outlive its descriptor
 * @mm: the opener's, held by mmgrab(): compared, never used
 * @objects: struct nda_object by handle
 * @lock: makes making and destroying handles one thing each
 * @event_lock: guards @event
 */
struct nda_file {
	struct kref ref;
	struct mm_struct *mm;
	struct xarray objects;
	u32 next;
	u32 count;
	struct mutex lock;
	spinlock_t event_lock;
	struct eventfd_ctx *event;
};

void nda_file_put(struct nda_file *file);
/* Signals the file's eventfd if there is one; any context. */
void nda_file_signal(struct nda_file *file);

/**
 * struct nda_object_ops - what an object's kind does
 * @kind: NDA_KIND_*
 * @busy: optional; -EBUSY if it must not be destroyed now; under nda_file.lock
 * @detach: the handle goes: ends what holds on to hardware or memory, as far as no one else
 *	does; sleeps; called once, no lock held but nda_file.lock
 * @free: the last hold went; frees the object's memory, not the object's struct nda_object
 *	apart from it; sleeps
 * @status: fills state, reason, attachments, mappings
 * @unbind: a device loses its driver: its mappings must be gone when this returns; sleeps
 * @mmap: optional
 * @show: optional: a line for debugfs after the common part, no addresses
 */
struct nda_object_ops {
	u32 kind;
	int (*busy)(struct nda_object *object);
	void (*detach)(struct nda_object *object);
	void (*free)(struct nda_object *object);
	void (*status)(struct nda_object *object, struct nda_ioc_status *status);
	void (*unbind)(struct nda_object *object, struct device *dev);
	int (*mmap)(struct nda_object *object, struct vm_area_struct *vma);
	void (*show)(struct nda_object *object, struct seq_file *seq);
};

/* Embedded first in each kind's own structure. */
struct nda_object {
	struct kref ref;
	const struct nda_object_ops *ops;
	struct nda_file *file;
	u32 handle;
	u32 id; /* of the whole system, for traces */
	struct list_head link; /* nda_objects, under nda_objects_lock */
};

/* nda_object_init() - a new object, held once; counts and lists it; holds @file */
void nda_object_init(struct nda_object *object, const struct nda_object_ops *ops,
		     struct nda_file *file);
/**
 * nda_object_publish() - gives it a handle, which holds it too
 *
 * The caller holds nda_file.lock. Nothing that user space must learn may come after it but
 * nda_object_retract(). Return: 0; -EDQUOT; -ENOMEM.
 */
int nda_object_publish(struct nda_object *object);
/* nda_object_retract() - takes the handle away again; nobody has used it: lock is held */
void nda_object_retract(struct nda_object *object);

/* ioctls; @file.lock is held, the argument is checked for reserved fields but not flags. */
int nda_pin_ioctl(struct nda_file *file, struct nda_ioc_host_pin *arg);
int nda_export_ioctl(struct nda_file *file, struct nda_ioc_export *arg);
int nda_db_ioctl(struct nda_file *file, struct nda_ioc_db_map *arg);
int nda_query_ioctl(struct nda_file *file, struct nda_ioc_query *arg);

/* A PCI function by its address, held; NULL if there is none. */
struct pci_dev *nda_pci_get(const struct nda_ioc_bdf *bdf);

/* nda_mem.c */
int nda_mem_init(void);
void nda_mem_exit(void);
u32 nda_part_why(u32 part);

/* nda_export.c, nda_db.c: what the kernel and the parameters allow: NDA_FEATURE_* */
u32 nda_export_features(void);
u32 nda_db_features(void);

/* Of the whole system: enum is NDA_COUNT_*. */
extern atomic_long_t nda_counts[NDA_COUNTS];

static inline void nda_count(u32 which, long n)
{
	atomic_long_add(n, &nda_counts[which]);
}

int nda_debugfs_init(void);
void nda_debugfs_exit(void);

#endif
