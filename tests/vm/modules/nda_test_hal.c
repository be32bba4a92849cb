// SPDX-License-Identifier: GPL-2.0
/*
 * Stands in for the Ascend driver's functions for peer devices, with the habits of both of its
 * lines: what is freed is called back about, from an ioctl, from inside an MMU notifier, or when
 * the process ends; a table leaves the list first, and is called back about after that with
 * no lock of the list held, so that putting it does not wait for the call.
 *
 * The older line reads the addresses first and lists the table later: a free in between is
 * lost. The younger one has a lock around both, which freeing takes to write.
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>

#include "nda_ascend_hal.h"
#include "nda_test_hal.h"

#define UNIT SZ_4K

/* The device and what of its memory is in use, in units. */
static struct {
	struct pci_dev *pdev;
	phys_addr_t base;
	u64 units;
	unsigned long *used;
} hbm;

/* Guards hbm.used and all lists. Notifiers take it, so nothing is allocated under it. */
static DEFINE_SPINLOCK(lock);
static LIST_HEAD(owners);
static LIST_HEAD(nodes);
static atomic_t tables, gets, callbacks, notified, getting, calling;

/* A process with NPU memory: an open file. */
struct owner {
	struct kref ref;
	struct list_head link;
	pid_t tgid;
	struct mm_struct *mm;
	struct mmu_notifier notifier;
	struct rw_semaphore ioctl; /* the older line's */
	struct rw_semaphore pipeline; /* the younger line's */
	struct nda_test_hal_set set;
	struct list_head ranges;
};

struct area {
	struct list_head link;
	u64 va, len, page_size;
	u32 count;
	u32 pages[]; /* units */
};

/* A table that was given out. */
struct listed {
	struct kref ref;
	struct list_head link; /* in nodes, while a free has to be told of */
	pid_t tgid;
	u64 va, len;
	void (*callback)(void *data);
	void *data;
	bool put;
	bool kept; /* whoever puts it is refused */
	struct p2p_page_info *pages;
	struct p2p_page_table table;
};

static void owner_release(struct kref *ref)
{
	kfree(container_of(ref, struct owner, ref));
}

static void node_release(struct kref *ref)
{
	struct listed *node = container_of(ref, struct listed, ref);

	kvfree(node->pages);
	kfree(node);
}

/* ---- The functions ---------------------------------------------------------------------- */

static struct owner *find_owner(pid_t tgid)
{
	struct owner *owner, *found = NULL;

	spin_lock(&lock);
	list_for_each_entry(owner, &owners, link) {
		if (owner->tgid == tgid) {
			kref_get(&owner->ref);
			found = owner;
			break;
		}
	}
	spin_unlock(&lock);
	return found;
}

static struct area *find_range(struct owner *owner, u64 va, u64 len)
{
	struct area *range;

	list_for_each_entry(range, &owner->ranges, link) {
		if (va >= range->va && len <= range->len && va - range->va <= range->len - len)
			return range;
	}
	return NULL;
}

static void spoil(struct p2p_page_table *table, u32 flags)
{
	if (flags & NDA_TEST_HAL_BAD_VERSION)
		table->version = 2;
	if (flags & NDA_TEST_HAL_BAD_SIZE)
		table->page_size += 512;
	if (flags & NDA_TEST_HAL_BAD_COUNT)
		table->page_num--;
	if (flags & NDA_TEST_HAL_BAD_RAM)
		table->pages_info[0].pa = SZ_16M;
	if (flags & NDA_TEST_HAL_BAD_ALIGN)
		table->pages_info[0].pa += 64;
}

/* The addresses of the pages around [va, va+len), under the lock. */
static int fill(struct owner *owner, struct listed *node, u64 max, u64 va, u64 len)
{
	struct area *range = find_range(owner, va, len);
	struct p2p_page_table *table = &node->table;
	u64 i, size, at;

	if (!range || !hbm.pdev)
		return -EINVAL;
	size = range->page_size;
	if (!(owner->set.flags & NDA_TEST_HAL_V3) && !IS_ALIGNED(va, size))
		return -EOPNOTSUPP;
	/* The younger line cuts pages down to what the range is a multiple of. */
	if (owner->set.flags & NDA_TEST_HAL_V3 && !IS_ALIGNED(va | len, size))
		size = UNIT;
	table->version = P2P_GET_PAGE_VERSION;
	table->page_size = size;
	table->page_num = DIV_ROUND_UP(len, size);
	if (table->page_num > max)
		return -EINVAL;
	for (i = 0; i < table->page_num; i++) {
		at = va - range->va + i * size;
		table->pages_info[i].pa = hbm.base +
					  (u64)range->pages[at / range->page_size] * UNIT +
					  at % range->page_size;
	}
	spoil(table, owner->set.flags);
	return 0;
}

static struct listed *get(struct owner *owner, u64 va, u64 len)
{
	struct listed *node = kzalloc(sizeof(*node), GFP_KERNEL);
	u64 max = DIV_ROUND_UP(len, UNIT);
	int ret = -ENOMEM;

	if (!node)
		return ERR_PTR(-ENOMEM);
	kref_init(&node->ref);
	node->tgid = owner->tgid;
	node->va = va;
	node->pages = kvcalloc(max, sizeof(*node->pages), GFP_KERNEL);
	node->table.pages_info = node->pages;
	if (node->pages) {
		spin_lock(&lock);
		ret = fill(owner, node, max, va, len);
		spin_unlock(&lock);
	}
	if (ret) {
		kref_put(&node->ref, node_release);
		return ERR_PTR(ret);
	}
	node->len = node->table.page_num * node->table.page_size;
	return node;
}

/* Whether a table of what begins there has been given out, under the lock. */
static bool is_second(const struct listed *node)
{
	struct listed *other;

	list_for_each_entry(other, &nodes, link) {
		if (other->tgid == node->tgid && other->va == node->va)
			return true;
	}
	return false;
}

int hal_kernel_p2p_get_pages(u64 va, u64 len, void (*free_callback)(void *data), void *data,
			     struct p2p_page_table **page_table)
{
	struct owner *owner = find_owner(current->tgid);
	bool v3 = owner && owner->set.flags & NDA_TEST_HAL_V3;
	struct listed *node;
	bool second;
	int ret = 0;

	if (!owner)
		return -ESRCH;
	if (v3)
		down_read(&owner->pipeline);
	node = !len || (v3 && !IS_ALIGNED(va | len, UNIT)) ? ERR_PTR(-EINVAL) : get(owner, va, len);
	if (IS_ERR(node)) {
		ret = PTR_ERR(node);
		goto out;
	}
	node->callback = free_callback;
	node->data = data;
	atomic_inc(&getting);
	if (owner->set.get_ms)
		msleep(owner->set.get_ms);
	atomic_dec(&getting);
	spin_lock(&lock);
	second = is_second(node);
	node->kept = !second && owner->set.flags & NDA_TEST_HAL_KEEPS;
	list_add(&node->link, &nodes);
	spin_unlock(&lock);
	atomic_inc(&tables);
	atomic_inc(&gets);
	*page_table = &node->table;
	if (second && owner->set.flags & NDA_TEST_HAL_BAD_SECOND)
		node->table.pages_info = NULL;
	if (second && owner->set.flags & NDA_TEST_HAL_NO_SECOND) {
		hal_kernel_p2p_put_pages(&node->table);
		*page_table = NULL;
	}
out:
	if (v3)
		up_read(&owner->pipeline);
	kref_put(&owner->ref, owner_release);
	return ret;
}
EXPORT_SYMBOL_GPL(hal_kernel_p2p_get_pages);

int hal_kernel_p2p_put_pages(struct p2p_page_table *page_table)
{
	struct listed *node = container_of(page_table, struct listed, table);

	if (node->kept)
		return -EBUSY;
	spin_lock(&lock);
	list_del_init(&node->link);
	spin_unlock(&lock);
	WRITE_ONCE(node->put, true);
	atomic_dec(&tables);
	kref_put(&node->ref, node_release);
	return 0;
}
EXPORT_SYMBOL_GPL(hal_kernel_p2p_put_pages);

/* ---- Memory ----------------------------------------------------------------------------- */

/* Takes a table of [va, va+len) off the list, held. */
static struct listed *unlist(struct owner *owner, u64 va, u64 len)
{
	struct listed *node, *found = NULL;

	spin_lock(&lock);
	list_for_each_entry(node, &nodes, link) {
		if (node->tgid == owner->tgid && node->va < va + len && va < node->va + node->len) {
			found = node;
			kref_get(&node->ref);
			list_del_init(&node->link);
			break;
		}
	}
	spin_unlock(&lock);
	return found;
}

static void call_back(struct owner *owner, u64 va, u64 len)
{
	struct listed *node;

	while ((node = unlist(owner, va, len))) {
		/* It does not sleep here: the barrier for the end of a client depends on it. */
		atomic_inc(&calling);
		while (owner->set.flags & NDA_TEST_HAL_LATE && !READ_ONCE(node->put))
			cpu_relax();
		mdelay(owner->set.free_us / 1000);
		udelay(owner->set.free_us % 1000);
		atomic_dec(&calling);
		atomic_inc(&callbacks);
		node->callback(node->data);
		kref_put(&node->ref, node_release);
	}
}

static void give_back(struct area *range)
{
	u32 i;

	for (i = 0; i < range->count; i++)
		bitmap_clear(hbm.used, range->pages[i], range->page_size / UNIT);
}

/* Frees what of the owner's ranges begins in [va, va+len), and tells of all that touches it. */
static int free_ranges(struct owner *owner, u64 va, u64 len, bool busy)
{
	struct area *range, *next;
	LIST_HEAD(gone);

	call_back(owner, va, len);
	if (busy)
		return -EBUSY;
	spin_lock(&lock);
	list_for_each_entry_safe(range, next, &owner->ranges, link) {
		if (range->va >= va && range->va - va < len) {
			list_move(&range->link, &gone);
			give_back(range);
		}
	}
	spin_unlock(&lock);
	list_for_each_entry_safe(range, next, &gone, link)
		kvfree(range);
	return list_empty(&gone) ? -EINVAL : 0;
}

static int owner_notified(struct mmu_notifier *notifier, const struct mmu_notifier_range *range)
{
	struct owner *owner = container_of(notifier, struct owner, notifier);
	u32 before;

	if (range->event != MMU_NOTIFY_UNMAP)
		return 0;
	if (!mmu_notifier_range_blockable(range))
		return -EAGAIN;
	before = atomic_read(&callbacks);
	free_ranges(owner, range->start, range->end - range->start, false);
	atomic_add(atomic_read(&callbacks) - before, &notified);
	return 0;
}

/* The address space goes. */
static void owner_exits(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	struct owner *owner = container_of(notifier, struct owner, notifier);

	free_ranges(owner, 0, U64_MAX, false);
}

static const struct mmu_notifier_ops owner_notifier_ops = {
	.invalidate_range_start = owner_notified,
	.release = owner_exits,
};

/* Units for one page; every second one if pages may not follow each other. */
static int allocate_page(struct area *range, u32 *page, bool scatter)
{
	u64 units = range->page_size / UNIT, at, want = scatter ? 2 * units : units;

	at = bitmap_find_next_zero_area(hbm.used, hbm.units, 0, want, units - 1);
	if (at >= hbm.units)
		return -ENOMEM;
	/* What is skipped is free for the next one, before which it lies. */
	*page = scatter ? at + units : at;
	bitmap_set(hbm.used, *page, units);
	return 0;
}

static int allocate(struct owner *owner, struct area *range)
{
	int ret = 0;

	spin_lock(&lock);
	while (!ret && range->count < range->len / range->page_size) {
		ret = allocate_page(range, &range->pages[range->count],
				    owner->set.flags & NDA_TEST_HAL_SCATTER);
		range->count += !ret;
	}
	if (ret)
		give_back(range);
	else
		list_add(&range->link, &owner->ranges);
	spin_unlock(&lock);
	return ret;
}

static int hal_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct owner *owner = filp->private_data;
	u64 size = owner->set.page_size, len = vma->vm_end - vma->vm_start;
	struct area *range;
	int ret;
	u32 i;

	if (current->mm != owner->mm || !hbm.pdev)
		return -EPERM;
	if (!IS_ALIGNED(vma->vm_start | len, size))
		return -EINVAL;
	range = kvzalloc(struct_size(range, pages, len / size), GFP_KERNEL);
	if (!range)
		return -ENOMEM;
	range->va = vma->vm_start;
	range->len = len;
	range->page_size = size;
	ret = allocate(owner, range);
	if (ret) {
		kvfree(range);
		return ret;
	}
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	for (i = 0; i < range->count && !ret; i++)
		ret = remap_pfn_range(vma, vma->vm_start + i * size,
				      PHYS_PFN(hbm.base + (u64)range->pages[i] * UNIT), size,
				      pgprot_noncached(vma->vm_page_prot));
	if (ret)
		free_ranges(owner, vma->vm_start, len, false);
	return ret;
}

static int hal_where(struct owner *owner, struct nda_test_hal_range *arg)
{
	struct area *range;
	u64 at;

	spin_lock(&lock);
	range = find_range(owner, arg->va, 1);
	if (range) {
		at = arg->va - range->va;
		arg->offset =
			(u64)range->pages[at / range->page_size] * UNIT + at % range->page_size;
	}
	spin_unlock(&lock);
	return range ? 0 : -EINVAL;
}

static int hal_free(struct owner *owner, const struct nda_test_hal_range *arg)
{
	bool v3 = owner->set.flags & NDA_TEST_HAL_V3;
	int ret;

	if (v3)
		down_write(&owner->pipeline);
	else
		down_read(&owner->ioctl);
	ret = free_ranges(owner, arg->va, arg->len, owner->set.flags & NDA_TEST_HAL_BUSY);
	if (v3)
		up_write(&owner->pipeline);
	else
		up_read(&owner->ioctl);
	return ret;
}

static long hal_ioctl(struct file *filp, unsigned int cmd, unsigned long user)
{
	struct owner *owner = filp->private_data;
	void __user *at = (void __user *)user;
	union {
		struct nda_test_hal_set set;
		struct nda_test_hal_range range;
		struct nda_test_hal_counts counts;
	} arg;
	int ret = 0;

	if (_IOC_SIZE(cmd) > sizeof(arg))
		return -ENOTTY;
	if (_IOC_DIR(cmd) & _IOC_WRITE && copy_from_user(&arg, at, _IOC_SIZE(cmd)))
		return -EFAULT;
	switch (cmd) {
	case NDA_TEST_HAL_SET:
		if (!is_power_of_2(arg.set.page_size) || arg.set.page_size < UNIT)
			return -EINVAL;
		owner->set = arg.set;
		break;
	case NDA_TEST_HAL_FREE:
		ret = hal_free(owner, &arg.range);
		break;
	case NDA_TEST_HAL_WHERE:
		ret = hal_where(owner, &arg.range);
		break;
	case NDA_TEST_HAL_COUNTS:
		arg.counts = (struct nda_test_hal_counts){
			.tables = atomic_read(&tables),
			.gets = atomic_read(&gets),
			.callbacks = atomic_read(&callbacks),
			.notified = atomic_read(&notified),
			.getting = atomic_read(&getting),
			.calling = atomic_read(&calling),
		};
		break;
	default:
		return -ENOTTY;
	}
	if (!ret && _IOC_DIR(cmd) & _IOC_READ && copy_to_user(at, &arg, _IOC_SIZE(cmd)))
		ret = -EFAULT;
	return ret;
}

static int hal_open(struct inode *inode, struct file *filp)
{
	struct owner *owner = kzalloc(sizeof(*owner), GFP_KERNEL);
	int ret;

	if (!owner)
		return -ENOMEM;
	kref_init(&owner->ref);
	init_rwsem(&owner->ioctl);
	init_rwsem(&owner->pipeline);
	INIT_LIST_HEAD(&owner->ranges);
	owner->set.page_size = UNIT;
	owner->tgid = current->tgid;
	owner->mm = current->mm;
	owner->notifier.ops = &owner_notifier_ops;
	ret = mmu_notifier_register(&owner->notifier, current->mm);
	if (ret) {
		kfree(owner);
		return ret;
	}
	spin_lock(&lock);
	list_add(&owner->link, &owners);
	spin_unlock(&lock);
	filp->private_data = owner;
	return 0;
}

static int hal_release(struct inode *inode, struct file *filp)
{
	struct owner *owner = filp->private_data;

	mmu_notifier_unregister(&owner->notifier, owner->mm);
	spin_lock(&lock);
	list_del(&owner->link);
	spin_unlock(&lock);
	free_ranges(owner, 0, U64_MAX, false);
	kref_put(&owner->ref, owner_release);
	return 0;
}

static const struct file_operations hal_fops = {
	.owner = THIS_MODULE,
	.open = hal_open,
	.release = hal_release,
	.mmap = hal_mmap,
	.unlocked_ioctl = hal_ioctl,
};

static struct miscdevice hal_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "nda_test_hal",
	.fops = &hal_fops,
};

/* ---- The device ------------------------------------------------------------------------- */

static int hal_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	int ret;

	if (hbm.pdev)
		return -EBUSY;
	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;
	spin_lock(&lock);
	hbm.base = pci_resource_start(pdev, 2);
	hbm.pdev = pdev;
	spin_unlock(&lock);
	return 0;
}

static void hal_remove(struct pci_dev *pdev)
{
	spin_lock(&lock);
	hbm.pdev = NULL;
	spin_unlock(&lock);
}

static const struct pci_device_id hal_ids[] = { { PCI_DEVICE(0x1af4, 0x1110) }, {} };
MODULE_DEVICE_TABLE(pci, hal_ids);

static struct pci_driver hal_driver = {
	.name = "nda_test_hal",
	.id_table = hal_ids,
	.probe = hal_probe,
	.remove = hal_remove,
};

static int __init hal_init(void)
{
	struct pci_dev *pdev = pci_get_device(0x1af4, 0x1110, NULL);
	int ret;

	if (!pdev)
		return -ENODEV;
	hbm.units = pci_resource_len(pdev, 2) / UNIT;
	pci_dev_put(pdev);
	hbm.used = bitmap_zalloc(hbm.units, GFP_KERNEL);
	if (!hbm.used)
		return -ENOMEM;
	ret = pci_register_driver(&hal_driver);
	if (ret)
		goto free;
	ret = misc_register(&hal_misc);
	if (ret)
		goto unregister;
	return 0;

unregister:
	pci_unregister_driver(&hal_driver);
free:
	bitmap_free(hbm.used);
	return ret;
}
module_init(hal_init);

static void __exit hal_exit(void)
{
	misc_deregister(&hal_misc);
	pci_unregister_driver(&hal_driver);
	/* Notifiers are freed later. */
	mmu_notifier_synchronize();
	WARN_ON(!list_empty(&nodes) || !bitmap_empty(hbm.used, hbm.units));
	bitmap_free(hbm.used);
}
module_exit(hal_exit);

MODULE_DESCRIPTION("stands in for the Ascend driver");
MODULE_LICENSE("GPL");
