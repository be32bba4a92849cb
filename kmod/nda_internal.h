/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Within nda.ko.
 *
 * Locks, outer to inner; each says at its field what it guards.
 *
 *   nda_file.lock         destroying a handle; no callback of an object but busy() under it
 *   device_lock           of the device or the NPU, while what is made of it goes live; who unbinds
 *                         holds it and takes all of the below but mmap_lock
 *   mmap_lock             taken by pin and doorbell look-ups; a revocation's caller may hold it
 *   nda_objects_lock      the list of all objects, for unbinding devices and debugfs; no
 *                         callback of an object is called with it held
 *   export's dmabuf lock  > dma_resv > nda_mem.map_lock > IOMMU
 *   nda_db.lock, nda_pin.lock  leaves but for the IOMMU's: what of the page is held
 *   nda_mem.lock          spinlock, a leaf: a range's state
 *   nda_file.event_lock   spinlock, a leaf
 *
 * The work of revoking takes neither nda_file.lock nor mmap_lock: a revocation may be waited
 * for with the latter held.
 */
#ifndef NDA_INTERNAL_H
#define NDA_INTERNAL_H

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

#include <uapi/nda.h>

#include "nda.h"

struct dentry;
struct eventfd_ctx;
struct vm_area_struct;

/**
 * struct nda_file - an open /dev/nda; objects hold it, so it may outlive its descriptor
 * @ref: the descriptor's and each object's
 * @mm: the opener's, held by mmgrab(): compared, and its pinned_vm counted
 * @objects: struct nda_object by handle, each held; its xa_lock makes looking up and holding one
 * @next: the handle to try next, under xa_lock
 * @count: objects and those about to be; may not exceed NDA_MAX_OBJECTS
 * @lock: lets one at a time destroy a handle
 * @event_lock: guards @event
 * @event: the eventfd to signal, or NULL
 */
struct nda_file {
	struct kref ref;
	struct mm_struct *mm;
	struct xarray objects;
	u32 next;
	atomic_t count;
	struct mutex lock;
	spinlock_t event_lock;
	struct eventfd_ctx *event;
};

#define NDA_MAX_OBJECTS 4096

extern const struct file_operations nda_fops;

void nda_file_put(struct nda_file *file);
/* Signals the file's eventfd if there is one; any context. */
void nda_file_signal(struct nda_file *file);

/**
 * struct nda_object_ops - what an object's kind does
 * @kind: NDA_KIND_*
 * @busy: optional; -EBUSY if it must not be destroyed now, else mmap() of it fails from now
 *	on; under nda_file.lock
 * @detach: the handle goes: ends what holds on to hardware or memory, as far as no one else
 *	does; sleeps; called once, no lock held
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
/* What an ioctl made and its caller has not been told of yet. */
struct nda_made {
	struct nda_object *object; /* held once, for its handle */
	struct file *file; /* to be installed at @fd, or NULL */
	int fd; /* reserved */
};

/*
 * ioctls that make an object. The caller has checked that current has the file's mm and that
 * reserved fields are 0; no lock is held. On success *@made is filled; handing it out, or
 * undoing it where the answer cannot be written, is the caller's.
 */
int nda_pin_ioctl(struct nda_file *file, struct nda_ioc_host_pin *arg, struct nda_made *made);
int nda_export_ioctl(struct nda_file *file, struct nda_ioc_export *arg, struct nda_made *made);
int nda_db_ioctl(struct nda_file *file, struct nda_ioc_db_map *arg, struct nda_made *made);

int nda_query_ioctl(struct nda_file *file, struct nda_ioc_query *arg);

/* A PCI function by its address, held; NULL if there is none. */
struct pci_dev *nda_pci_get(const struct nda_ioc_bdf *bdf);

/* nda_mem.c */
int nda_mem_init(void);
void nda_mem_exit(void);
u32 nda_backend_why(u32 part);
/* A device loses its driver, or goes: revokes ranges whose memory is in its BARs. */
void nda_mem_unbind(struct device *dev);
u32 nda_mem_drop(struct nda_mem *mem, struct device *dev);
u32 nda_mem_status(struct nda_mem *mem, u32 *reason);
u32 nda_mem_mappings(struct nda_mem *mem);
bool nda_device_reaches(struct device *dev, phys_addr_t pa, u64 len);

/* nda_sink.c: what is asked of the IOMMU beneath the DMA API */
bool nda_iommu_translates(struct device *dev);
void nda_iommu_flush(struct device *dev);
bool nda_sink_enabled(void);
bool nda_sink_wanted(struct device *dev);
int nda_sink_remap(struct device *dev, dma_addr_t iova, size_t len, struct page *sink);

/* nda_db.c */
int nda_db_init(void);
void nda_db_exit(void);

/* nda_export.c, nda_db.c: what the kernel and the parameters allow: NDA_FEATURE_* */
u32 nda_export_features(void);
u32 nda_db_features(void);

/* Of the whole system: enum is NDA_COUNT_*. */
extern atomic_long_t nda_counts[NDA_COUNTS];

static inline void nda_count(u32 which, long n)
{
	atomic_long_add(n, &nda_counts[which]);
}

/*
 * Tells user space by a uevent of /dev/nda, unless it was told of too much lately:
 * NDA_EVENT=@event, a string that stays, NDA_DEVICE, and NDA_PID where @pid is not 0. It is sent
 * later, since a revocation must not wait for what that takes. Does not sleep; not in interrupts.
 */
void nda_tell(const char *event, struct device *dev, pid_t pid);

/* Calls @visit with each object held, no lock held. */
void nda_objects_visit(void (*visit)(struct nda_object *object, void *arg), void *arg);

void nda_debugfs_init(void);
void nda_debugfs_exit(void);
extern struct dentry *nda_debugfs; /* the directory, for further files */

#endif
