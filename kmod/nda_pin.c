// SPDX-License-Identifier: GPL-2.0
/*
 * Host memory, pinned for good and mapped for DMA by one PCI function.
 *
 * A pin ends with its handle, or when the function loses its driver, whichever is first; its
 * pages and their accounting go then too. A pin's lock nests inside the function's device
 * lock, which unbinding holds.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "nda_internal.h"
#include "nda_trace.h"

/**
 * struct nda_pin - the object
 * @object: what all kinds have
 * @dev: the function, held
 * @mm: the owner's, held by the file
 * @dir: as the function sees it
 * @lock: guards what follows it
 * @charged: pages counted in @mm
 * @pages: those that are pinned; NULL once the pin has ended
 * @count: how many
 * @sgt: the mapping
 * @mapped: there is one
 * @reason: why it ended without its owner's asking
 */
struct nda_pin {
	struct nda_object object;
	struct device *dev;
	struct mm_struct *mm;
	enum dma_data_direction dir;
	struct mutex lock;
	unsigned long charged;
	struct page **pages;
	unsigned long count;
	struct sg_table sgt;
	bool mapped;
	u32 reason;
};

static struct nda_pin *to_pin(struct nda_object *object)
{
	return container_of(object, struct nda_pin, object);
}

static bool nda_pin_writes(const struct nda_pin *pin)
{
	return pin->dir != DMA_TO_DEVICE;
}

/* ---- Accounting ------------------------------------------------------------------------- */

/* As the RDMA core counts: an MR of the same pages counts them again. */
static int nda_pin_charge(struct nda_pin *pin, unsigned long pages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;

	if (pages > totalram_pages())
		return -ENOMEM;
	if (atomic64_add_return(pages, &pin->mm->pinned_vm) > limit && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(pages, &pin->mm->pinned_vm);
		return -ENOMEM;
	}
	pin->charged = pages;
	return 0;
}

/* ---- Pages ------------------------------------------------------------------------------ */

/* Why pages of current could not be pinned, which the kernel answers with -EFAULT alone. */
static int nda_pin_refusal(u64 start, unsigned long count, bool write)
{
	struct mm_struct *mm = current->mm;
	u64 end = start + ((u64)count << PAGE_SHIFT);
	struct vm_area_struct *vma;
	int ret = -EFAULT;

	mmap_read_lock(mm);
	for (vma = find_vma(mm, start); vma && vma->vm_start < end;
	     vma = find_vma(mm, vma->vm_end)) {
		if (vma->vm_flags & (VM_IO | VM_PFNMAP)) {
			ret = -EOPNOTSUPP;
			break;
		}
		if (write && !(vma->vm_flags & VM_WRITE)) {
			ret = -EACCES;
			break;
		}
	}
	mmap_read_unlock(mm);
	return ret;
}

/* Pins pages from @start on, as many as one call of the kernel's does. */
static long nda_pin_some(u64 start, unsigned long count, bool write, struct page **pages)
{
	unsigned int flags = FOLL_LONGTERM | (write ? FOLL_WRITE : NDA_FOLL_READ);
	int nr = min_t(unsigned long, count, PAGE_SIZE / sizeof(struct page *));
	long got;

	got = pin_user_pages_fast(start, nr, flags, pages);
	/* What cannot be written at all, a shared mapping to read, can have no copy made. */
	if (got == -EFAULT && !write && NDA_FOLL_READ)
		got = pin_user_pages_fast(start, nr, FOLL_LONGTERM, pages);
	return got ? got : -EFAULT;
}

static int nda_pin_pages(struct nda_pin *pin, u64 start, unsigned long count)
{
	bool write = nda_pin_writes(pin);
	long got;

	while (pin->count < count) {
		got = nda_pin_some(start + ((u64)pin->count << PAGE_SHIFT), count - pin->count,
				   write, pin->pages + pin->count);
		if (got == -EFAULT)
			return nda_pin_refusal(start, count, write);
		if (got < 0)
			return got;
		pin->count += got;
		nda_count(NDA_COUNT_PINNED_PAGES, got);
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/* ---- Mapping ---------------------------------------------------------------------------- */

/*
 * Whether the device can have these pages and not copies of them: copies would be of no use, and
 * room for them is scarce and everybody's.
 */
static bool nda_pin_reached(struct nda_pin *pin)
{
	struct scatterlist *sg;
	unsigned int i;

	if (nda_iommu_translates(pin->dev))
		return true;
	for_each_sgtable_sg(&pin->sgt, sg, i) {
		if (!nda_device_reaches(pin->dev, sg_phys(sg), sg->length))
			return false;
		cond_resched();
	}
	return true;
}

/*
 * The same page may be pinned more than once, also for other devices: it is handed over for each
 * mapping apart, as the DMA API has it for such.
 */
static int nda_pin_map(struct nda_pin *pin, unsigned int offset, u64 len)
{
	unsigned int segment =
		max_t(unsigned int, PAGE_SIZE, dma_get_max_seg_size(pin->dev) & PAGE_MASK);
	int ret;

	ret = sg_alloc_table_from_pages_segment(&pin->sgt, pin->pages, pin->count, offset, len,
						segment, GFP_KERNEL_ACCOUNT);
	if (ret)
		return ret;
	ret = nda_pin_reached(pin) ?
		      dma_map_sgtable(pin->dev, &pin->sgt, pin->dir, DMA_ATTR_SKIP_CPU_SYNC) :
		      -EIO;
	if (ret) {
		sg_free_table(&pin->sgt);
		return ret;
	}
	dma_sync_sgtable_for_device(pin->dev, &pin->sgt, pin->dir);
	pin->mapped = true;
	nda_count(NDA_COUNT_MAPPINGS, 1);
	return 0;
}

/* Undoes as much as there is. */
static void nda_pin_end(struct nda_pin *pin)
{
	if (pin->mapped) {
		dma_sync_sgtable_for_cpu(pin->dev, &pin->sgt, pin->dir);
		dma_unmap_sgtable(pin->dev, &pin->sgt, pin->dir, DMA_ATTR_SKIP_CPU_SYNC);
		sg_free_table(&pin->sgt);
		pin->mapped = false;
		nda_count(NDA_COUNT_MAPPINGS, -1);
	}
	if (pin->pages) {
		unpin_user_pages_dirty_lock(pin->pages, pin->count, nda_pin_writes(pin));
		nda_count(NDA_COUNT_PINNED_PAGES, -(long)pin->count);
		kvfree(pin->pages);
		pin->pages = NULL;
	}
	atomic64_sub(pin->charged, &pin->mm->pinned_vm);
	pin->charged = 0;
}

/* ---- The object ------------------------------------------------------------------------- */

/* In-kernel users of the mapping hold the object, so it stays until the last of them goes. */
static void nda_pin_detach(struct nda_object *object)
{
}

static void nda_pin_free(struct nda_object *object)
{
	struct nda_pin *pin = to_pin(object);

	nda_pin_end(pin);
	put_device(pin->dev);
	kfree(pin);
}

static void nda_pin_status(struct nda_object *object, struct nda_ioc_status *status)
{
	struct nda_pin *pin = to_pin(object);

	mutex_lock(&pin->lock);
	status->state = pin->pages ? NDA_STATE_LIVE : NDA_STATE_REVOKED;
	status->reason = pin->reason;
	status->mappings = pin->mapped;
	mutex_unlock(&pin->lock);
}

static void nda_pin_unbind(struct nda_object *object, struct device *dev)
{
	struct nda_pin *pin = to_pin(object);

	if (pin->dev != dev)
		return;
	mutex_lock(&pin->lock);
	nda_pin_end(pin);
	pin->reason = NDA_REASON_UNPLUG;
	mutex_unlock(&pin->lock);
	nda_file_signal(object->file);
}

static const struct nda_object_ops nda_pin_ops = {
	.kind = NDA_KIND_PIN,
	.detach = nda_pin_detach,
	.free = nda_pin_free,
	.status = nda_pin_status,
	.unbind = nda_pin_unbind,
};

const struct sg_table *nda_pin_table(struct nda_object *object, struct device *dev)
{
	struct nda_pin *pin = to_pin(object);
	const struct sg_table *table;

	if (pin->dev != dev)
		return ERR_PTR(-ENODEV);
	mutex_lock(&pin->lock);
	table = pin->mapped ? &pin->sgt : ERR_PTR(-ESTALE);
	mutex_unlock(&pin->lock);
	return table;
}
EXPORT_SYMBOL_GPL(nda_pin_table);

/* ---- The ioctl -------------------------------------------------------------------------- */

/* Maps it and makes the object known, or finds that the function has no driver. */
static int nda_pin_attach(struct nda_pin *pin, struct nda_file *file, unsigned int offset, u64 len)
{
	int ret;

	/*
	 * Held by whoever binds or unbinds: a later unbinding finds the object in the list. One
	 * that waits for the caller to go must be able to end it.
	 */
	ret = device_lock_interruptible(pin->dev);
	if (ret)
		return ret;
	ret = -ENODEV;
	if (pin->dev->driver)
		ret = nda_pin_map(pin, offset, len);
	if (!ret)
		nda_object_init(&pin->object, &nda_pin_ops, file);
	device_unlock(pin->dev);
	return ret;
}

static int nda_pin_fill(struct nda_pin *pin, struct nda_file *file, u64 va, u64 len)
{
	unsigned int offset = va & ~PAGE_MASK;
	unsigned long count = ((offset + len - 1) >> PAGE_SHIFT) + 1;
	int ret;

	ret = nda_pin_charge(pin, count);
	if (ret)
		return ret;
	pin->pages = kvmalloc_array(count, sizeof(*pin->pages), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!pin->pages)
		return -ENOMEM;
	ret = nda_pin_pages(pin, va & PAGE_MASK, count);
	if (ret)
		return ret;
	return nda_pin_attach(pin, file, offset, len);
}

static const enum dma_data_direction nda_pin_directions[] = {
	[NDA_ACCESS_READ] = DMA_TO_DEVICE,
	[NDA_ACCESS_WRITE] = DMA_FROM_DEVICE,
	[NDA_ACCESS_READ | NDA_ACCESS_WRITE] = DMA_BIDIRECTIONAL,
};

int nda_pin_ioctl(struct nda_file *file, struct nda_ioc_host_pin *arg, struct nda_made *made)
{
	struct pci_dev *pdev;
	struct nda_pin *pin;
	u64 end;
	int ret;

	if (!arg->access || arg->access >= ARRAY_SIZE(nda_pin_directions) || !arg->len ||
	    check_add_overflow(arg->va, arg->len, &end) || end > ULONG_MAX - PAGE_SIZE)
		return -EINVAL;
	pdev = nda_pci_get(&arg->dev);
	if (!pdev)
		return -ENODEV;
	pin = kzalloc(sizeof(*pin), GFP_KERNEL_ACCOUNT);
	if (!pin) {
		pci_dev_put(pdev);
		return -ENOMEM;
	}
	mutex_init(&pin->lock);
	pin->dev = &pdev->dev;
	pin->mm = file->mm;
	pin->dir =
		nda_pin_directions[array_index_nospec(arg->access, ARRAY_SIZE(nda_pin_directions))];
	ret = nda_pin_fill(pin, file, arg->va, arg->len);
	if (ret) {
		nda_pin_end(pin);
		pci_dev_put(pdev);
		kfree(pin);
		return ret;
	}
	trace_nda_pin(pin->object.id, pin->count);
	made->object = &pin->object;
	return 0;
}
