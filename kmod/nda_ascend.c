// SPDX-License-Identifier: GPL-2.0
/*
 * NPU memory by the Ascend driver.
 *
 * Its functions are held by symbol_get() only while there is a table, so that an idle system can
 * unload the driver or reset the NPU. symbol_get() compares no versions: what comes back is
 * looked over.
 *
 * The driver's callback about a free gets the range's number. It may come after the table was
 * put; a pointer could be to anything by then.
 *
 * The older line of the driver reads the addresses before it lists the table for callbacks, and
 * a free in between is lost. So they are read again once the table is listed: a free before
 * that shows in the second table, one after it calls back.
 */
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include <uapi/nda.h>

#include "nda.h"
#include "nda_ascend_hal.h"

/* The driver's functions; they are there while @users is not 0, which @lock guards. */
static struct {
	struct mutex lock;
	u32 users;
	typeof(&hal_kernel_p2p_get_pages) get;
	typeof(&hal_kernel_p2p_put_pages) put;
} hal = { .lock = __MUTEX_INITIALIZER(hal.lock) };

/* The last table was of another version than is known here. */
static bool nda_ascend_mismatch;

/* Callbacks that run. */
static atomic_t nda_ascend_active = ATOMIC_INIT(0);

static bool nda_ascend_find_hal(void)
{
	hal.get = symbol_get(hal_kernel_p2p_get_pages);
	if (!hal.get)
		return false;
	hal.put = symbol_get(hal_kernel_p2p_put_pages);
	if (!hal.put)
		symbol_put(hal_kernel_p2p_get_pages);
	return hal.put;
}

static bool nda_ascend_hold_hal(void)
{
	bool held;

	mutex_lock(&hal.lock);
	held = hal.users || nda_ascend_find_hal();
	hal.users += held;
	mutex_unlock(&hal.lock);
	return held;
}

static void nda_ascend_release_hal(void)
{
	mutex_lock(&hal.lock);
	if (!--hal.users) {
		symbol_put(hal_kernel_p2p_put_pages);
		symbol_put(hal_kernel_p2p_get_pages);
	}
	mutex_unlock(&hal.lock);
}

static u32 nda_ascend_why(void)
{
	if (!nda_ascend_hold_hal())
		return NDA_WHY_NO_DRIVER;
	nda_ascend_release_hal();
	return READ_ONCE(nda_ascend_mismatch) ? NDA_WHY_MISMATCH : NDA_WHY_OK;
}

/*
 * A guess: all memory of the Ascend runtime is mapped like this, and so is other drivers'. The
 * driver itself refuses what is not its own.
 */
static bool nda_ascend_owns(struct mm_struct *mm, u64 va, u64 len)
{
	const unsigned long flags = VM_IO | VM_PFNMAP;
	struct vm_area_struct *vma;
	bool owns;

	mmap_read_lock(mm);
	vma = vma_lookup(mm, va);
	owns = vma && (vma->vm_flags & flags) == flags && vma->vm_file &&
	       S_ISCHR(file_inode(vma->vm_file)->i_mode);
	mmap_read_unlock(mm);
	return owns;
}

static void nda_ascend_freed(void *data)
{
	u32 reason = current->flags & PF_EXITING ? NDA_REASON_MM_EXIT : NDA_REASON_FREED;

	atomic_inc(&nda_ascend_active);
	nda_backend_revoke((unsigned long)data, reason);
	/* The last of it that touches this module's data; its text is left soon after. */
	atomic_dec(&nda_ascend_active);
}

static bool nda_ascend_is_ram(u64 pa, u64 size)
{
	return region_intersects(pa, size, IORESOURCE_SYSTEM_RAM, IORES_DESC_NONE) !=
	       REGION_DISJOINT;
}

/* Whether a table can be of @len bytes of an NPU. It may cover a part of a page more. */
static bool nda_ascend_is_sane(const struct p2p_page_table *from, u64 len)
{
	u64 size = from->page_size, i;

	if (from->version != P2P_GET_PAGE_VERSION) {
		pr_err_once("the driver's interface has version %u, not %u\n", from->version,
			    P2P_GET_PAGE_VERSION);
		WRITE_ONCE(nda_ascend_mismatch, true);
		return false;
	}
	if (!is_power_of_2(size) || size < SZ_4K || size > SZ_1G || !from->pages_info ||
	    from->page_num != (len + size - 1) / size)
		return false;
	for (i = 0; i < from->page_num; i++) {
		u64 pa = from->pages_info[i].pa;

		if (!pa || !IS_ALIGNED(pa, size) || pa > U64_MAX - size ||
		    nda_ascend_is_ram(pa, size))
			return false;
	}
	WRITE_ONCE(nda_ascend_mismatch, false);
	return true;
}

static struct nda_table *nda_ascend_copy(struct p2p_page_table *from, u64 va, u64 len)
{
	struct nda_table *table;
	u64 i;

	if (!nda_ascend_is_sane(from, len)) {
		pr_err_ratelimited("the driver gave a table that cannot be right\n");
		return ERR_PTR(-EIO);
	}
	table = kvmalloc(struct_size(table, pa, from->page_num), GFP_KERNEL_ACCOUNT);
	if (!table)
		return ERR_PTR(-ENOMEM);
	table->va = va;
	table->page_size = from->page_size;
	table->count = from->page_num;
	table->priv = from;
	for (i = 0; i < from->page_num; i++)
		table->pa[i] = from->pages_info[i].pa;
	return table;
}

static void nda_ascend_return(struct p2p_page_table *from)
{
	int ret = hal.put(from);

	if (!ret)
		return;
	pr_err_ratelimited("the driver does not take a table back: %d\n", ret);
	/* It may still call back: this module stays. */
	__module_get(THIS_MODULE);
}

/* Whether the pages of [va, va+len) are still those of @table, whose callback is in place. */
static bool nda_ascend_is_still(const struct nda_table *table, u64 len, u32 id)
{
	struct p2p_page_table *again = NULL;
	bool same;
	u64 i;

	if (hal.get(table->va, len, nda_ascend_freed, (void *)(unsigned long)id, &again) || !again)
		return false;
	same = again->version == P2P_GET_PAGE_VERSION && again->page_size == table->page_size &&
	       again->page_num == table->count && again->pages_info;
	for (i = 0; same && i < table->count; i++)
		same = again->pages_info[i].pa == table->pa[i];
	nda_ascend_return(again);
	return same;
}

static struct nda_table *nda_ascend_take(u64 va, u64 len, u32 id)
{
	struct p2p_page_table *from = NULL;
	struct nda_table *table;
	int ret;

	ret = hal.get(va, len, nda_ascend_freed, (void *)(unsigned long)id, &from);
	if (ret)
		return ERR_PTR(ret);
	if (!from)
		return ERR_PTR(-EIO);
	table = nda_ascend_copy(from, va, len);
	if (!IS_ERR(table) && !nda_ascend_is_still(table, len, id)) {
		kvfree(table);
		table = ERR_PTR(-ECANCELED);
	}
	if (IS_ERR(table))
		nda_ascend_return(from);
	return table;
}

/* From where on pages may begin: the older line wants a heap's page size, which it hides. */
static const u64 nda_ascend_aligns[] = { SZ_4K, SZ_2M, SZ_1G };

static struct nda_table *nda_ascend_try(u64 va, u64 len, u32 id)
{
	struct nda_table *table = ERR_PTR(-EOPNOTSUPP);
	u64 end = round_up(va + len, SZ_4K), begin, last = U64_MAX;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(nda_ascend_aligns); i++) {
		begin = round_down(va, nda_ascend_aligns[i]);
		if (begin == last)
			continue;
		last = begin;
		table = nda_ascend_take(begin, end - begin, id);
		if (table != ERR_PTR(-EOPNOTSUPP))
			break;
	}
	return table;
}

static int nda_ascend_error(int ret)
{
	switch (ret) {
	case -ESRCH: /* no NPU is in use by this process */
	case -EPERM: /* the driver is being unloaded */
	case -EOPNOTSUPP:
		return -EOPNOTSUPP;
	case -ECANCELED:
	case -EIO:
	case -ENOMEM:
		return ret;
	default:
		return -EINVAL;
	}
}

static struct nda_table *nda_ascend_get(u64 va, u64 len, u32 id)
{
	struct nda_table *table;

	if (!nda_ascend_hold_hal())
		return ERR_PTR(-EOPNOTSUPP);
	table = nda_ascend_try(va, len, id);
	if (!IS_ERR(table))
		return table;
	nda_ascend_release_hal();
	/* The driver writes to the log each time: who asks for it in a loop is slowed down. */
	schedule_timeout_interruptible(HZ / 100 + 1);
	return ERR_PTR(nda_ascend_error(PTR_ERR(table)));
}

static void nda_ascend_put(struct nda_table *table)
{
	nda_ascend_return(table->priv);
	kvfree(table);
	nda_ascend_release_hal();
}

static struct nda_backend nda_ascend_backend = {
	.name = "ascend",
	.owner = THIS_MODULE,
	.part = NDA_PART_ASCEND,
	.caps = NDA_BACKEND_GUESSES,
	.why = nda_ascend_why,
	.owns = nda_ascend_owns,
	.get = nda_ascend_get,
	.put = nda_ascend_put,
};

static int __init nda_ascend_init(void)
{
	return nda_backend_register(&nda_ascend_backend);
}
module_init(nda_ascend_init);

/*
 * All tables are back, but the driver may have taken one off its list to call back about. It does
 * not sleep between that and the call, so after a grace period of tasks each such call has come
 * to the counter; after the second, each that left it has left this module.
 */
static void __exit nda_ascend_exit(void)
{
	nda_backend_unregister(&nda_ascend_backend);
	synchronize_rcu_tasks();
	while (atomic_read(&nda_ascend_active))
		schedule_timeout_uninterruptible(1);
	synchronize_rcu_tasks();
}
module_exit(nda_ascend_exit);

MODULE_DESCRIPTION("NPU Direct Async: NPU memory by the Ascend driver");
MODULE_LICENSE("GPL");
MODULE_VERSION(NDA_VERSION);
