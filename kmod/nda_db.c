// SPDX-License-Identifier: GPL-2.0
/*
 * One page of an RDMA device's doorbells, for an NPU to write to.
 *
 * By address: the page is resolved in one section under mmap_lock, with an interval notifier
 * put on it before, so that nothing is made of a page whose mapping changes meanwhile, and what
 * was made ends when the mapping changes later. The mapping's file is held: ib_uverbs keeps a
 * page of doorbells for the context that it was given to. With a proxy it stays held after the
 * loss, since an NPU's driver that mapped the proxy may still reach the page.
 *
 * By dma-buf: the exporter says when the page goes.
 *
 * A doorbell that is lost ends by work, for which the notifier waits by a plain completion: it
 * takes the proxy's mappings away, for which i_mmap_rwsem is needed, and that is never taken
 * inside a notifier. Nobody who holds what the work takes waits for mmap_lock.
 */
#include <linux/capability.h>
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/ioport.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/overflow.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "nda_internal.h"
#include "nda_trace.h"

/* ---- What an administrator allows ------------------------------------------------------- */

enum { NDA_DB_OFF, NDA_DB_UVERBS, NDA_DB_ANY };

static const char *const nda_db_policies[] = {
	[NDA_DB_OFF] = "off",
	[NDA_DB_UVERBS] = "uverbs",
	[NDA_DB_ANY] = "any",
};

static int nda_db_policy = NDA_DB_UVERBS;

static int nda_db_policy_set(const char *value, const struct kernel_param *param)
{
	int policy = sysfs_match_string(nda_db_policies, value);

	if (policy < 0)
		return policy;
	WRITE_ONCE(nda_db_policy, policy);
	return 0;
}

static int nda_db_policy_get(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%s\n", nda_db_policies[READ_ONCE(nda_db_policy)]);
}

static const struct kernel_param_ops nda_db_policy_ops = {
	.set = nda_db_policy_set,
	.get = nda_db_policy_get,
};

module_param_cb(doorbell, &nda_db_policy_ops, NULL, 0644);
MODULE_PARM_DESC(doorbell,
		 "whose doorbell pages NPUs may have: off, uverbs (ib_uverbs' mappings, default), "
		 "any (also others of an RDMA device, for CAP_SYS_RAWIO)");

u32 nda_db_features(void)
{
	if (READ_ONCE(nda_db_policy) == NDA_DB_OFF)
		return 0;
	return NDA_FEATURE_DOORBELL_VA | NDA_FEATURE_DOORBELL_DMABUF;
}

/* ---- The object ------------------------------------------------------------------------- */

enum nda_db_state { NDA_DB_NEW, NDA_DB_LIVE, NDA_DB_LOST };

/**
 * struct nda_db - a doorbell page
 * @object: what all kinds have
 * @npu: for which it is, held
 * @proxy: it is for mmap(), and not mapped for DMA
 * @nic: whose page it is, held; by address only
 * @phys: where the page is; by address only
 * @cached: sets the cache attribute of the mapping that was given; by address only
 * @notifier: on that mapping; its mm is NULL where there is none
 * @dmabuf: what it was imported from, held, or NULL
 * @attach: of @dmabuf
 * @sgt: the importer's mapping; under the dma-buf's reservation lock
 * @work: ends it
 * @ended: done once what there was to end has ended
 * @state_lock: a leaf, taken inside notifiers; guards @state, @reason and @address, and orders
 *	the notifier's sequence number
 * @state: new until all of it is made, live until it is lost
 * @reason: NDA_REASON_*, why it was lost
 * @address: where @npu finds the page
 * @lock: guards what follows. Nests inside mmap_lock; i_mmap_rwsem and allocations of page
 *	tables nest inside it
 * @source: the given mapping's file, held
 * @mapped: @address is a mapping of our own
 * @closing: no more proxies
 * @proxies: VMAs that there are
 * @mapping: where they are, while there are any
 */
struct nda_db {
	struct nda_object object;
	struct pci_dev *npu;
	bool proxy;
	struct pci_dev *nic;
	phys_addr_t phys;
	pgprot_t (*cached)(pgprot_t prot);
	struct mmu_interval_notifier notifier;
	struct dma_buf *dmabuf;
	struct dma_buf_attachment *attach;
	struct sg_table *sgt;
	struct work_struct work;
	struct completion ended;
	spinlock_t state_lock;
	enum nda_db_state state;
	u32 reason;
	dma_addr_t address;
	struct mutex lock;
	struct file *source;
	bool mapped;
	bool closing;
	unsigned int proxies;
	struct address_space *mapping;
};

static struct workqueue_struct *nda_db_queue;

static struct nda_db *to_db(struct nda_object *object)
{
	return container_of(object, struct nda_db, object);
}

/* Returns the state that it had. */
static enum nda_db_state nda_db_mark_lost(struct nda_db *db, u32 reason)
{
	enum nda_db_state was = db->state;

	lockdep_assert_held(&db->state_lock);
	db->state = NDA_DB_LOST;
	if (!db->reason)
		db->reason = reason;
	return was;
}

static void nda_db_tell_lost(struct nda_db *db)
{
	trace_nda_db_lost(db->object.id, db->reason);
	nda_count(NDA_COUNT_DOORBELLS_LOST, 1);
	nda_file_signal(db->object.file);
	complete_all(&db->ended);
}

static void nda_db_unmap_dmabuf(struct nda_db *db)
{
	dma_resv_assert_held(db->dmabuf->resv);
	if (!db->sgt)
		return;
	dma_buf_unmap_attachment(db->attach, db->sgt, DMA_FROM_DEVICE);
	nda_iommu_flush(&db->npu->dev);
	db->sgt = NULL;
	nda_count(NDA_COUNT_MAPPINGS, -1);
}

/* Lets go of the page, as far as it is held. */
static void nda_db_end(struct nda_db *db, bool keep_source)
{
	struct file *source = NULL;

	mutex_lock(&db->lock);
	if (db->proxies)
		unmap_mapping_range(db->mapping, (loff_t)db->object.handle << PAGE_SHIFT, PAGE_SIZE,
				    1);
	if (db->mapped) {
		dma_unmap_resource(&db->npu->dev, db->address, PAGE_SIZE, DMA_FROM_DEVICE,
				   DMA_ATTR_SKIP_CPU_SYNC);
		/* Where unmapping is flushed later, the NPU could still use what it has cached. */
		nda_iommu_flush(&db->npu->dev);
		db->mapped = false;
		nda_count(NDA_COUNT_MAPPINGS, -1);
	}
	if (!keep_source)
		swap(source, db->source);
	mutex_unlock(&db->lock);
	if (source)
		fput(source);
	if (db->attach) {
		dma_resv_lock(db->dmabuf->resv, NULL);
		nda_db_unmap_dmabuf(db);
		dma_resv_unlock(db->dmabuf->resv);
	}
}

static void nda_db_end_work(struct work_struct *work)
{
	struct nda_db *db = container_of(work, struct nda_db, work);

	nda_db_end(db, db->proxy);
	nda_db_tell_lost(db);
}

/*
 * The page is about to go. When this returns neither the NPU nor the proxy reaches it, or, of a
 * doorbell that is still being made, none will: who makes it finds that it is lost.
 */
static void nda_db_lose(struct nda_db *db, u32 reason)
{
	enum nda_db_state was;

	spin_lock(&db->state_lock);
	was = nda_db_mark_lost(db, reason);
	spin_unlock(&db->state_lock);
	if (was == NDA_DB_NEW)
		complete_all(&db->ended);
	else if (was == NDA_DB_LIVE)
		queue_work(nda_db_queue, &db->work);
	wait_for_completion(&db->ended);
}

/* What the object holds besides what it uses of the page. */
static void nda_db_put_all(struct nda_db *db)
{
	if (db->attach)
		dma_buf_detach(db->dmabuf, db->attach);
	if (db->dmabuf)
		dma_buf_put(db->dmabuf);
	pci_dev_put(db->nic);
	pci_dev_put(db->npu);
}

static int nda_db_busy(struct nda_object *object)
{
	struct nda_db *db = to_db(object);
	int ret = 0;

	mutex_lock(&db->lock);
	if (db->proxies)
		ret = -EBUSY;
	else
		db->closing = true;
	mutex_unlock(&db->lock);
	return ret;
}

static void nda_db_detach(struct nda_object *object)
{
	struct nda_db *db = to_db(object);
	enum nda_db_state was;

	spin_lock(&db->state_lock);
	was = db->state;
	db->state = NDA_DB_LOST;
	spin_unlock(&db->state_lock);
	nda_db_end(db, false);
	/* Before the notifier goes, which waits for one that waits for this. */
	if (was == NDA_DB_LOST)
		wait_for_completion(&db->ended);
	else
		complete_all(&db->ended);
	if (db->notifier.mm)
		mmu_interval_notifier_remove(&db->notifier);
}

static void nda_db_free(struct nda_object *object)
{
	struct nda_db *db = to_db(object);

	nda_db_put_all(db);
	kfree(db);
}

static void nda_db_status(struct nda_object *object, struct nda_ioc_status *status)
{
	struct nda_db *db = to_db(object);

	mutex_lock(&db->lock);
	spin_lock(&db->state_lock);
	status->reason = db->reason;
	status->state = NDA_STATE_REVOKED;
	if (db->state == NDA_DB_LIVE) {
		status->state = NDA_STATE_LIVE;
		status->mappings = db->mapped || db->dmabuf;
	}
	spin_unlock(&db->state_lock);
	mutex_unlock(&db->lock);
}

static void nda_db_unbind(struct nda_object *object, struct device *dev)
{
	struct nda_db *db = to_db(object);

	if (dev == &db->npu->dev || (db->nic && dev == &db->nic->dev))
		nda_db_lose(db, NDA_REASON_UNPLUG);
}

/* ---- The proxy -------------------------------------------------------------------------- */

static void nda_db_vm_open(struct vm_area_struct *vma)
{
	struct nda_db *db = vma->vm_private_data;

	mutex_lock(&db->lock);
	db->proxies++;
	mutex_unlock(&db->lock);
}

static void nda_db_vm_close(struct vm_area_struct *vma)
{
	struct nda_db *db = vma->vm_private_data;

	mutex_lock(&db->lock);
	db->proxies--;
	mutex_unlock(&db->lock);
}

static vm_fault_t nda_db_vm_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct nda_db *db = vma->vm_private_data;
	vm_fault_t ret = VM_FAULT_SIGBUS;

	/* Whoever marks it lost takes away what is put in before the lock is let go. */
	mutex_lock(&db->lock);
	if (READ_ONCE(db->state) == NDA_DB_LIVE)
		ret = vmf_insert_pfn(vma, vma->vm_start, PHYS_PFN(db->phys));
	mutex_unlock(&db->lock);
	return ret;
}

static const struct vm_operations_struct nda_db_vm_ops = {
	.open = nda_db_vm_open,
	.close = nda_db_vm_close,
	.fault = nda_db_vm_fault,
};

static int nda_db_mmap(struct nda_object *object, struct vm_area_struct *vma)
{
	struct nda_db *db = to_db(object);
	int ret = 0;

	if (!db->proxy)
		return -ENODEV;
	if (vma->vm_end - vma->vm_start != PAGE_SIZE || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	mutex_lock(&db->lock);
	if (READ_ONCE(db->state) != NDA_DB_LIVE || db->closing)
		ret = -ESTALE;
	else if (db->proxies)
		ret = -EBUSY;
	if (!ret) {
		db->proxies = 1;
		db->mapping = vma->vm_file->f_mapping;
	}
	mutex_unlock(&db->lock);
	if (ret)
		return ret;
	vma->vm_private_data = db;
	vma->vm_ops = &nda_db_vm_ops;
	vma->vm_page_prot = db->cached(vma->vm_page_prot);
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	return 0;
}

static const struct nda_object_ops nda_db_ops = {
	.kind = NDA_KIND_DOORBELL,
	.busy = nda_db_busy,
	.detach = nda_db_detach,
	.free = nda_db_free,
	.status = nda_db_status,
	.unbind = nda_db_unbind,
	.mmap = nda_db_mmap,
};

int nda_db_address(struct nda_object *object, struct device *dev, dma_addr_t *address)
{
	struct nda_db *db = to_db(object);
	int ret = -ESTALE;

	if (dev != &db->npu->dev || db->proxy)
		return -ENODEV;
	spin_lock(&db->state_lock);
	if (db->state == NDA_DB_LIVE) {
		*address = db->address;
		ret = 0;
	}
	spin_unlock(&db->state_lock);
	return ret;
}
EXPORT_SYMBOL_GPL(nda_db_address);

/* ---- Which page ------------------------------------------------------------------------- */

/* Looks below a PCI function for the devices that ib_core and ib_uverbs make of it. */
struct nda_db_search {
	dev_t uverbs;
	bool has_rdma;
	bool has_uverbs;
};

static int nda_db_search_child(struct device *dev, void *arg)
{
	struct nda_db_search *search = arg;

	if (dev->class && !strcmp(dev->class->name, "infiniband"))
		search->has_rdma = true;
	if (dev->class && !strcmp(dev->class->name, "infiniband_verbs") &&
	    dev->devt == search->uverbs)
		search->has_uverbs = true;
	return device_for_each_child(dev, arg, nda_db_search_child);
}

/* Whether the mapping's file lets NPUs have pages of that function. */
static int nda_db_check_owner(struct pci_dev *nic, struct file *file)
{
	struct inode *inode = file_inode(file);
	struct nda_db_search search = {
		.uverbs = S_ISCHR(inode->i_mode) ? inode->i_rdev : 0,
	};

	device_for_each_child(&nic->dev, &search, nda_db_search_child);
	if (!search.has_rdma)
		return -EOPNOTSUPP;
	if (search.has_uverbs && search.uverbs)
		return 0;
	return READ_ONCE(nda_db_policy) == NDA_DB_ANY && capable(CAP_SYS_RAWIO) ? 0 : -EPERM;
}

/* Whether [offset, offset + PAGE_SIZE) of a BAR has interrupt vectors in it. */
static bool nda_db_has_msix(struct pci_dev *pdev, int bar, resource_size_t offset)
{
	static const u8 where[] = { PCI_MSIX_TABLE, PCI_MSIX_PBA };
	unsigned int i;
	u64 size, begin;
	u16 control;
	u32 word;

	if (!pdev->msix_cap)
		return false;
	pci_read_config_word(pdev, pdev->msix_cap + PCI_MSIX_FLAGS, &control);
	for (i = 0; i < ARRAY_SIZE(where); i++) {
		size = (control & PCI_MSIX_FLAGS_QSIZE) + 1;
		size = i ? DIV_ROUND_UP(size, 64) * 8 : size * PCI_MSIX_ENTRY_SIZE;
		pci_read_config_dword(pdev, pdev->msix_cap + where[i], &word);
		/* It does not answer: what is in the page cannot be told. */
		if (word == ~0u)
			return true;
		begin = word & PCI_MSIX_TABLE_OFFSET;
		if ((word & PCI_MSIX_TABLE_BIR) == bar && begin < offset + PAGE_SIZE &&
		    offset < begin + size)
			return true;
	}
	return false;
}

/* The BAR of a function in which the page is, or -1. */
static int nda_db_find_bar(struct pci_dev *pdev, phys_addr_t phys)
{
	struct resource page = { .start = phys,
				 .end = phys + PAGE_SIZE - 1,
				 .flags = IORESOURCE_MEM };
	int bar;

	for (bar = 0; bar < PCI_STD_NUM_BARS; bar++) {
		if ((pci_resource_flags(pdev, bar) & IORESOURCE_MEM) &&
		    resource_contains(&pdev->resource[bar], &page))
			return bar;
	}
	return -1;
}

/* The function whose BAR the page is in, held, or NULL. */
static struct pci_dev *nda_db_find_function(phys_addr_t phys, int *bar)
{
	struct pci_dev *pdev = NULL;

	for_each_pci_dev(pdev) {
		*bar = nda_db_find_bar(pdev, phys);
		if (*bar >= 0)
			return pdev;
	}
	return NULL;
}

static int nda_db_check_page(struct nda_db *db, unsigned long pfn, struct file *file)
{
	phys_addr_t phys = PFN_PHYS(pfn);
	struct pci_dev *nic;
	int bar, ret;

	if (page_is_ram(pfn) || (pfn_valid(pfn) && !is_zone_device_page(pfn_to_page(pfn))))
		return -EOPNOTSUPP;
	nic = nda_db_find_function(phys, &bar);
	if (!nic)
		return -EOPNOTSUPP;
	ret = -EOPNOTSUPP;
	if (nic == db->npu || nic->class >> 16 == PCI_BASE_CLASS_ACCELERATOR ||
	    nda_db_has_msix(nic, bar, phys - pci_resource_start(nic, bar)))
		goto put;
	ret = nda_db_check_owner(nic, file);
	if (ret)
		goto put;
	db->nic = nic;
	db->phys = phys;
	return 0;

put:
	pci_dev_put(nic);
	return ret;
}

static pgprot_t nda_db_prot_noncached(pgprot_t prot)
{
	return pgprot_noncached(prot);
}

static pgprot_t nda_db_prot_device(pgprot_t prot)
{
	return pgprot_device(prot);
}

static pgprot_t nda_db_prot_writecombine(pgprot_t prot)
{
	return pgprot_writecombine(prot);
}

/* The cache attribute of a mapping, as what sets it; NULL if it is another. */
static pgprot_t (*nda_db_find_cached(pgprot_t prot))(pgprot_t)
{
	static pgprot_t (*const set[])(pgprot_t) = {
		/* x86's uncached is both's bits together, so this one is before the last. */
		nda_db_prot_noncached,
		nda_db_prot_device,
		nda_db_prot_writecombine,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(set); i++) {
		if (pgprot_val(set[i](prot)) == pgprot_val(prot))
			return set[i];
	}
	return NULL;
}

/* Finds the page at @va, checks that an NPU may have it, and holds what it belongs to. */
static int nda_db_resolve(struct nda_db *db, unsigned long va)
{
	struct follow_pfnmap_args page = { .address = va };
	struct vm_area_struct *vma;
	unsigned long pfn;
	bool writable;
	int ret;

	lockdep_assert_held(&current->mm->mmap_lock);
	vma = vma_lookup(current->mm, va);
	if (!vma || vma->vm_end - va < PAGE_SIZE)
		return -EFAULT;
	if (!(vma->vm_flags & VM_IO) || !(vma->vm_flags & VM_PFNMAP) ||
	    !(vma->vm_flags & VM_SHARED) || (vma->vm_flags & VM_MIXEDMAP) || !vma->vm_file ||
	    vma->vm_ops == &nda_db_vm_ops)
		return -EOPNOTSUPP;
	if (!(vma->vm_flags & VM_WRITE))
		return -EACCES;
	page.vma = vma;
	if (follow_pfnmap_start(&page))
		return -EFAULT;
	pfn = page.pfn;
	writable = page.writable;
	follow_pfnmap_end(&page);
	if (!writable)
		return -EACCES;
	db->cached = nda_db_find_cached(vma->vm_page_prot);
	if (!db->cached)
		return -EOPNOTSUPP;
	ret = nda_db_check_page(db, pfn, vma->vm_file);
	if (!ret)
		db->source = get_file(vma->vm_file);
	return ret;
}

/* ---- By address ------------------------------------------------------------------------- */

static bool nda_db_invalidate_range(struct mmu_interval_notifier *notifier,
				    const struct mmu_notifier_range *range, unsigned long seq)
{
	struct nda_db *db = container_of(notifier, struct nda_db, notifier);

	if (!mmu_notifier_range_blockable(range))
		return false;
	spin_lock(&db->state_lock);
	mmu_interval_set_seq(notifier, seq);
	spin_unlock(&db->state_lock);
	/* Looking for written pages leaves mappings of devices alone. */
	if (range->event != MMU_NOTIFY_SOFT_DIRTY)
		nda_db_lose(db, range->event == MMU_NOTIFY_RELEASE ? NDA_REASON_MM_EXIT :
								     NDA_REASON_UNMAPPED);
	return true;
}

static const struct mmu_interval_notifier_ops nda_db_notifier_ops = {
	.invalidate = nda_db_invalidate_range,
};

static int nda_db_map_page(struct nda_db *db)
{
	struct device *dev = &db->npu->dev;

	/* The DMA API would warn. */
	if (!nda_iommu_translates(dev) && !nda_device_reaches(dev, db->phys, PAGE_SIZE))
		return -EIO;
	/* More than one may have the page: no CPU's cache has it. */
	db->address =
		dma_map_resource(dev, db->phys, PAGE_SIZE, DMA_FROM_DEVICE, DMA_ATTR_SKIP_CPU_SYNC);
	if (dma_mapping_error(dev, db->address))
		return -EIO;
	db->mapped = true;
	nda_count(NDA_COUNT_MAPPINGS, 1);
	return 0;
}

/* From now on a change of the mapping at @va is noticed. *@seq is for nda_db_commit(). */
static int nda_db_watch(struct nda_db *db, u64 va, unsigned long *seq)
{
	int ret;

	ret = mmu_interval_notifier_insert(&db->notifier, current->mm, va, PAGE_SIZE,
					   &nda_db_notifier_ops);
	if (ret) {
		db->notifier.mm = NULL;
		return ret;
	}
	*seq = mmu_interval_read_begin(&db->notifier);
	mmap_read_lock(current->mm);
	ret = nda_db_resolve(db, va);
	mmap_read_unlock(current->mm);
	return ret;
}

/* ---- By dma-buf ------------------------------------------------------------------------- */

/* The exporter takes the page back, with the reservation lock held. */
static void nda_db_invalidate(struct dma_buf_attachment *attach)
{
	struct nda_db *db = attach->importer_priv;
	enum nda_db_state was;

	spin_lock(&db->state_lock);
	was = nda_db_mark_lost(db, NDA_REASON_FREED);
	spin_unlock(&db->state_lock);
	nda_db_unmap_dmabuf(db);
	if (was == NDA_DB_NEW)
		complete_all(&db->ended);
	else if (was == NDA_DB_LIVE)
		nda_db_tell_lost(db);
}

static const struct dma_buf_attach_ops nda_db_attach_ops = {
	.allow_peer2peer = true,
	.invalidate_mappings = nda_db_invalidate,
};

static int nda_db_check_exporter(struct dma_buf *dmabuf)
{
	if (dmabuf->size != PAGE_SIZE)
		return -EINVAL;
	/* Without these it cannot take the page back from one who has mapped it. */
	if (!dmabuf->ops->pin)
		return -EOPNOTSUPP;
	if (!strcmp(dmabuf->exp_name, "ib_uverbs"))
		return 0;
	return READ_ONCE(nda_db_policy) == NDA_DB_ANY && capable(CAP_SYS_RAWIO) ? 0 : -EPERM;
}

static int nda_db_import(struct nda_db *db, int fd)
{
	struct dma_buf_attachment *attach;
	struct dma_buf *dmabuf = dma_buf_get(fd);
	int ret;

	if (IS_ERR(dmabuf))
		return -EBADF;
	ret = nda_db_check_exporter(dmabuf);
	if (ret) {
		dma_buf_put(dmabuf);
		return ret;
	}
	/* Before the exporter can call. */
	db->dmabuf = dmabuf;
	attach = dma_buf_dynamic_attach(dmabuf, &db->npu->dev, &nda_db_attach_ops, db);
	if (IS_ERR(attach))
		return PTR_ERR(attach);
	dma_resv_lock(dmabuf->resv, NULL);
	db->attach = attach;
	dma_resv_unlock(dmabuf->resv);
	return 0;
}

static int nda_db_map_dmabuf(struct nda_db *db)
{
	struct sg_table *sgt;
	int ret = -ENODEV;

	dma_resv_lock(db->dmabuf->resv, NULL);
	sgt = dma_buf_map_attachment(db->attach, DMA_FROM_DEVICE);
	if (IS_ERR(sgt)) {
		ret = PTR_ERR(sgt);
		goto unlock;
	}
	if (sg_dma_len(sgt->sgl) < PAGE_SIZE) {
		dma_buf_unmap_attachment(db->attach, sgt, DMA_FROM_DEVICE);
		goto unlock;
	}
	db->sgt = sgt;
	db->address = sg_dma_address(sgt->sgl);
	nda_count(NDA_COUNT_MAPPINGS, 1);
	ret = 0;
unlock:
	dma_resv_unlock(db->dmabuf->resv);
	return ret;
}

/* ---- The ioctl -------------------------------------------------------------------------- */

/* Makes it live, unless the page has gone meanwhile. */
static int nda_db_commit(struct nda_db *db, unsigned long seq)
{
	int ret = -ECANCELED;

	spin_lock(&db->state_lock);
	if (db->state == NDA_DB_NEW &&
	    !(db->notifier.mm && mmu_interval_read_retry(&db->notifier, seq))) {
		db->state = NDA_DB_LIVE;
		ret = 0;
	}
	spin_unlock(&db->state_lock);
	trace_nda_db_map(db->object.id, &db->npu->dev, ret);
	return ret;
}

/* The rest of it, where its function keeps its driver meanwhile. On failure it is not known. */
static int nda_db_publish(struct nda_db *db, struct nda_file *file, unsigned long seq)
{
	struct device *dev = &db->npu->dev;
	int ret;

	/* Whoever waits for the owner to close its files holds it: it may be given up. */
	ret = device_lock_interruptible(dev);
	if (ret)
		return ret;
	ret = -ENODEV;
	if (!dev->driver)
		goto unlock;
	ret = 0;
	if (db->attach)
		ret = nda_db_map_dmabuf(db);
	else if (!db->proxy)
		ret = nda_db_map_page(db);
	if (ret)
		goto unlock;
	/* From now on unbinding finds it. */
	nda_object_init(&db->object, &nda_db_ops, file);
	ret = nda_db_commit(db, seq);
unlock:
	device_unlock(dev);
	return ret;
}

/*
 * Whether the page's function has its driver, now that losing it would be noticed. A driver that
 * went before has taken ib_uverbs' mapping away, but not another's.
 */
static int nda_db_check_bound(struct nda_db *db)
{
	struct device *dev;
	int ret;

	if (!db->nic)
		return 0;
	dev = &db->nic->dev;
	ret = device_lock_interruptible(dev);
	if (ret)
		return ret;
	ret = dev->driver ? 0 : -ENODEV;
	device_unlock(dev);
	return ret;
}

static int nda_db_fill(struct nda_db *db, struct nda_file *file, struct nda_ioc_db_map *arg)
{
	unsigned long seq = 0;
	int ret;

	if (arg->flags & NDA_DB_FROM_DMABUF)
		ret = nda_db_import(db, arg->src_fd);
	else
		ret = nda_db_watch(db, arg->va, &seq);
	if (ret)
		return ret;
	ret = nda_db_publish(db, file, seq);
	return ret ? ret : nda_db_check_bound(db);
}

static void nda_db_undo(struct nda_db *db)
{
	nda_db_detach(&db->object);
	if (db->object.file)
		nda_object_put(&db->object);
	else
		nda_db_free(&db->object);
}

static struct nda_db *nda_db_new(const struct nda_ioc_db_map *arg)
{
	struct nda_db *db = kzalloc(sizeof(*db), GFP_KERNEL_ACCOUNT);

	if (!db)
		return ERR_PTR(-ENOMEM);
	db->npu = nda_pci_get(&arg->npu);
	if (!db->npu) {
		kfree(db);
		return ERR_PTR(-ENODEV);
	}
	db->proxy = arg->flags & NDA_DB_PROXY;
	INIT_WORK(&db->work, nda_db_end_work);
	init_completion(&db->ended);
	spin_lock_init(&db->state_lock);
	mutex_init(&db->lock);
	return db;
}

static int nda_db_check_arg(const struct nda_ioc_db_map *arg)
{
	u64 end;

	if ((arg->flags & ~(NDA_DB_FROM_DMABUF | NDA_DB_PROXY)) || arg->len != PAGE_SIZE)
		return -EINVAL;
	if (READ_ONCE(nda_db_policy) == NDA_DB_OFF)
		return -EOPNOTSUPP;
	if (arg->flags & NDA_DB_FROM_DMABUF) {
		if (arg->va)
			return -EINVAL;
		return arg->flags & NDA_DB_PROXY ? -EOPNOTSUPP : 0;
	}
	if (arg->src_fd != -1 || !PAGE_ALIGNED(arg->va) ||
	    check_add_overflow(arg->va, arg->len, &end) || end > ULONG_MAX)
		return -EINVAL;
	return 0;
}

/**
 * nda_db_ioctl() - takes a doorbell page for an NPU
 * @file: of the caller, whose memory current has
 * @arg: reserved fields are 0
 * @made: filled with the object
 *
 * Return: 0; the errors of the ABI.
 */
int nda_db_ioctl(struct nda_file *file, struct nda_ioc_db_map *arg, struct nda_made *made)
{
	struct nda_db *db;
	int ret;

	ret = nda_db_check_arg(arg);
	if (ret)
		return ret;
	db = nda_db_new(arg);
	if (IS_ERR(db))
		return PTR_ERR(db);
	ret = nda_db_fill(db, file, arg);
	if (ret) {
		nda_db_undo(db);
		return ret;
	}
	made->object = &db->object;
	return 0;
}

/**
 * nda_db_init() - before the device is there
 *
 * Return: 0; -ENOMEM.
 */
int nda_db_init(void)
{
	/* Memory may be waiting for what waits for a doorbell to end. */
	nda_db_queue = alloc_workqueue("nda_db", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return nda_db_queue ? 0 : -ENOMEM;
}

/**
 * nda_db_exit() - after the last file has been closed
 */
void nda_db_exit(void)
{
	destroy_workqueue(nda_db_queue);
}
