// SPDX-License-Identifier: GPL-2.0
/*
 * The soft NPU's memory: pages of RAM, or a piece of a PCI BAR. RAM is put into mappings page by
 * page (no VM_PFNMAP), so that ibv_reg_mr() can pin it; a BAR cannot be.
 *
 * Freed memory goes back once the last mapping, table and doorbell of it has gone.
 */
#include <linux/genalloc.h>
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include <uapi/nda.h>

#include "nda.h"
#include "nda_soft.h"

unsigned long nda_soft_page_size = PAGE_SIZE;
module_param_named(page_size, nda_soft_page_size, ulong, 0444);
MODULE_PARM_DESC(page_size, "bytes of the NPU's pages, a power of two up to 1 GiB");

bool nda_soft_pins;
module_param_named(pins, nda_soft_pins, bool, 0444);
MODULE_PARM_DESC(pins,
		 "memory that importers use outlives its being freed, instead of being revoked");

static unsigned long nda_soft_ram_mib = 1024;
module_param_named(ram_mib, nda_soft_ram_mib, ulong, 0644);
MODULE_PARM_DESC(ram_mib, "MiB of RAM that may be allocated at a time");

/* What RAM can have at once. */
#define NDA_SOFT_RAM_PAGE_MAX SZ_2M

/* Bytes that are not back yet, of all files. */
static atomic64_t nda_soft_live;
static atomic64_t nda_soft_live_ram;

/* struct nda_soft_memory by id, for the ids' sake. */
static DEFINE_XARRAY_ALLOC1(nda_soft_ids);
static u32 nda_soft_next;

u64 nda_soft_bytes(void)
{
	return atomic64_read(&nda_soft_live);
}

/* ---- RAM -------------------------------------------------------------------------------- */

static void nda_soft_free_ram(struct nda_soft_memory *memory)
{
	u64 i;

	for (i = 0; i < memory->size >> PAGE_SHIFT && memory->pages[i]; i++)
		__free_page(memory->pages[i]);
	kvfree(memory->pages);
	atomic64_sub(memory->size, &nda_soft_live_ram);
}

static int nda_soft_alloc_pages(struct nda_soft_memory *memory)
{
	unsigned int order = get_order(nda_soft_page_size);
	struct page *page;
	u64 i, k;

	for (i = 0; i < memory->size >> PAGE_SHIFT; i += 1u << order) {
		page = alloc_pages(GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN, order);
		if (!page)
			return -ENOMEM;
		split_page(page, order);
		for (k = 0; k < 1u << order; k++)
			memory->pages[i + k] = page + k;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

static int nda_soft_alloc_ram(struct nda_soft_memory *memory)
{
	u64 limit = (u64)nda_soft_ram_mib << 20;
	int ret = -ENOMEM;

	if (nda_soft_page_size > NDA_SOFT_RAM_PAGE_MAX)
		return -EOPNOTSUPP;
	if (atomic64_add_return(memory->size, &nda_soft_live_ram) > limit)
		goto uncount;
	memory->pages =
		kvcalloc(memory->size >> PAGE_SHIFT, sizeof(*memory->pages), GFP_KERNEL_ACCOUNT);
	if (!memory->pages)
		goto uncount;
	ret = nda_soft_alloc_pages(memory);
	if (ret)
		nda_soft_free_ram(memory);
	return ret;

uncount:
	atomic64_sub(memory->size, &nda_soft_live_ram);
	return ret;
}

/* ---- A BAR ------------------------------------------------------------------------------ */

static int nda_soft_alloc_bar(struct nda_soft_memory *memory)
{
	struct nda_soft_bar *bar = nda_soft_bar_get();
	int ret = -ENODEV;

	if (!bar)
		return ret;
	mutex_lock(&bar->lock);
	if (bar->gone)
		goto unlock;
	ret = -ENOMEM;
	memory->phys = gen_pool_alloc(bar->pool, memory->size);
	if (!memory->phys)
		goto unlock;
	memset_io(bar->io + (memory->phys - bar->begin), 0, memory->size);
	memory->bar = bar;
	list_add(&memory->piece, &bar->pieces);
	ret = 0;
unlock:
	mutex_unlock(&bar->lock);
	if (ret)
		nda_soft_bar_put(bar);
	return ret;
}

/* ---- Memory ----------------------------------------------------------------------------- */

static void nda_soft_memory_release(struct kref *ref)
{
	struct nda_soft_memory *memory = container_of(ref, struct nda_soft_memory, ref);

	xa_erase(&nda_soft_ids, memory->id);
	atomic64_sub(memory->size, &nda_soft_live);
	if (memory->bar) {
		gen_pool_free(memory->bar->pool, memory->phys, memory->size);
		nda_soft_bar_put(memory->bar);
	} else {
		nda_soft_free_ram(memory);
	}
	kfree(memory);
}

void nda_soft_memory_put(struct nda_soft_memory *memory)
{
	kref_put(&memory->ref, nda_soft_memory_release);
}

/**
 * nda_soft_memory_new() - allocates memory
 * @size: bytes, a multiple of the page size
 * @kind: NDA_SOFT_RAM or NDA_SOFT_BAR
 * @mapping: of the file that it will be mapped by
 *
 * Return: the memory, held, until nda_soft_memory_free(); -EINVAL, -ENOMEM, -ENODEV without a
 * BAR, -EOPNOTSUPP where RAM has no such pages.
 */
struct nda_soft_memory *nda_soft_memory_new(u64 size, u32 kind, struct address_space *mapping)
{
	struct nda_soft_memory *memory;
	int ret = -EINVAL;

	if (size > NDA_SOFT_SPAN || (kind != NDA_SOFT_RAM && kind != NDA_SOFT_BAR))
		return ERR_PTR(-EINVAL);
	memory = kzalloc(sizeof(*memory), GFP_KERNEL_ACCOUNT);
	if (!memory)
		return ERR_PTR(-ENOMEM);
	kref_init(&memory->ref);
	memory->size = size;
	memory->mapping = mapping;
	mutex_init(&memory->lock);
	spin_lock_init(&memory->tables_lock);
	INIT_LIST_HEAD(&memory->tables);
	INIT_LIST_HEAD(&memory->piece);
	ret = xa_alloc_cyclic(&nda_soft_ids, &memory->id, memory, XA_LIMIT(1, NDA_SOFT_ID_MAX),
			      &nda_soft_next, GFP_KERNEL_ACCOUNT);
	if (ret < 0)
		goto free;
	ret = kind == NDA_SOFT_RAM ? nda_soft_alloc_ram(memory) : nda_soft_alloc_bar(memory);
	if (ret)
		goto erase;
	atomic64_add(size, &nda_soft_live);
	return memory;

erase:
	xa_erase(&nda_soft_ids, memory->id);
free:
	kfree(memory);
	return ERR_PTR(ret);
}

/**
 * struct nda_soft_table - what nda.ko holds of some memory
 * @link: in the memory's list, under its tables_lock
 * @id: nda.ko's
 * @told: it has been, or is being, revoked
 * @memory: held
 */
struct nda_soft_table {
	struct list_head link;
	u32 id;
	bool told;
	struct nda_soft_memory *memory;
};

/* The id of a table that has not been told yet, which it is from now on; 0 if there is none. */
static u32 nda_soft_next_table(struct nda_soft_memory *memory)
{
	struct nda_soft_table *table;
	u32 id = 0;

	spin_lock(&memory->tables_lock);
	list_for_each_entry(table, &memory->tables, link) {
		if (!table->told) {
			table->told = true;
			id = table->id;
			break;
		}
	}
	spin_unlock(&memory->tables_lock);
	return id;
}

static void nda_soft_revoke(struct nda_soft_memory *memory, u32 reason)
{
	u32 id;

	mutex_lock(&memory->lock);
	spin_lock(&memory->tables_lock);
	memory->freed = true;
	spin_unlock(&memory->tables_lock);
	mutex_unlock(&memory->lock);
	/* Memory that is pinned stays, unless the device goes. */
	if (!nda_soft_pins || reason == NDA_REASON_UNPLUG) {
		while ((id = nda_soft_next_table(memory)))
			nda_backend_revoke(id, reason);
	}
	unmap_mapping_range(memory->mapping, nda_soft_mmap_off(memory->id), memory->size, 1);
}

/* The BAR goes; its file still has the memory. */
void nda_soft_memory_unplug(struct nda_soft_memory *memory)
{
	nda_soft_revoke(memory, NDA_REASON_UNPLUG);
}

/* Frees it, and drops the hold of nda_soft_memory_new(). */
void nda_soft_memory_free(struct nda_soft_memory *memory)
{
	nda_soft_revoke(memory, NDA_REASON_FREED);
	if (memory->bar) {
		mutex_lock(&memory->bar->lock);
		list_del(&memory->piece);
		mutex_unlock(&memory->bar->lock);
	}
	nda_soft_memory_put(memory);
}

/* ---- Mappings of the CPU ---------------------------------------------------------------- */

static void nda_soft_vm_open(struct vm_area_struct *vma)
{
	struct nda_soft_memory *memory = vma->vm_private_data;

	kref_get(&memory->ref);
}

static void nda_soft_vm_close(struct vm_area_struct *vma)
{
	nda_soft_memory_put(vma->vm_private_data);
}

static u64 nda_soft_offset(const struct vm_area_struct *vma, unsigned long va)
{
	return (((u64)vma->vm_pgoff << PAGE_SHIFT) & (NDA_SOFT_SPAN - 1)) + (va - vma->vm_start);
}

static vm_fault_t nda_soft_insert(struct nda_soft_memory *memory, struct vm_area_struct *vma,
				  unsigned long va)
{
	u64 offset = nda_soft_offset(vma, va);
	int ret;

	if (memory->bar)
		return vmf_insert_pfn(vma, va, PHYS_PFN(memory->phys + offset));
	ret = vm_insert_page(vma, va, memory->pages[offset >> PAGE_SHIFT]);
	/* Another thread was faster. */
	return !ret || ret == -EBUSY ? VM_FAULT_NOPAGE : vmf_error(ret);
}

static vm_fault_t nda_soft_vm_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct nda_soft_memory *memory = vma->vm_private_data;
	vm_fault_t ret = VM_FAULT_SIGBUS;

	mutex_lock(&memory->lock);
	if (!memory->freed)
		ret = nda_soft_insert(memory, vma, vmf->address & PAGE_MASK);
	mutex_unlock(&memory->lock);
	return ret;
}

static const struct vm_operations_struct nda_soft_vm_ops = {
	.open = nda_soft_vm_open,
	.close = nda_soft_vm_close,
	.fault = nda_soft_vm_fault,
};

/**
 * nda_soft_memory_mmap() - maps it into the caller's memory
 * @memory: held
 * @vma: of the file that the memory is of
 *
 * Return: 0; -EINVAL for what is not shared or beyond its end.
 */
int nda_soft_memory_mmap(struct nda_soft_memory *memory, struct vm_area_struct *vma)
{
	u64 begin = nda_soft_offset(vma, vma->vm_start);
	u64 len = vma->vm_end - vma->vm_start;

	if (!(vma->vm_flags & VM_SHARED) || begin > memory->size || len > memory->size - begin)
		return -EINVAL;
	kref_get(&memory->ref);
	vma->vm_private_data = memory;
	vma->vm_ops = &nda_soft_vm_ops;
	vm_flags_set(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP);
	if (memory->bar) {
		vm_flags_set(vma, VM_IO | VM_PFNMAP);
		vma->vm_page_prot = pgprot_writecombine(vma->vm_page_prot);
	} else {
		/* So that pages may be put in with mmap_lock held for reading. */
		vm_flags_set(vma, VM_MIXEDMAP);
	}
	return 0;
}

/**
 * nda_soft_memory_find() - the memory that is mapped at [va, va+len) of current
 * @va: where
 * @len: bytes
 * @offset: is set to where in the memory @va is
 *
 * Return: the memory, held; NULL if there is none, or not by one mapping.
 */
struct nda_soft_memory *nda_soft_memory_find(u64 va, u64 len, u64 *offset)
{
	struct nda_soft_memory *memory = NULL;
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;

	mmap_read_lock(mm);
	vma = vma_lookup(mm, va);
	if (vma && vma->vm_ops == &nda_soft_vm_ops && vma->vm_end - va >= len) {
		memory = vma->vm_private_data;
		kref_get(&memory->ref);
		*offset = nda_soft_offset(vma, va);
	}
	mmap_read_unlock(mm);
	return memory;
}

/* ---- The backend ------------------------------------------------------------------------ */

static u32 nda_soft_why(void)
{
	return NDA_WHY_OK;
}

static bool nda_soft_owns(struct mm_struct *mm, u64 va, u64 len)
{
	struct nda_soft_memory *memory;
	u64 offset;

	if (mm != current->mm)
		return false;
	memory = nda_soft_memory_find(va, len, &offset);
	if (memory)
		nda_soft_memory_put(memory);
	return memory;
}

static u64 nda_soft_address(const struct nda_soft_memory *memory, u64 offset)
{
	if (memory->bar)
		return memory->phys + offset;
	return page_to_phys(memory->pages[offset >> PAGE_SHIFT]);
}

/* From now on the table is told of the memory's being freed. */
static int nda_soft_list_table(struct nda_soft_memory *memory, struct nda_soft_table *held)
{
	int ret = 0;

	spin_lock(&memory->tables_lock);
	if (memory->freed)
		ret = -ECANCELED;
	else
		list_add(&held->link, &memory->tables);
	spin_unlock(&memory->tables_lock);
	return ret;
}

static struct nda_table *nda_soft_make_table(struct nda_soft_memory *memory, u64 va, u64 offset,
					     u64 len)
{
	u64 begin = round_down(offset, (u64)nda_soft_page_size);
	u64 count = (round_up(offset + len, (u64)nda_soft_page_size) - begin) / nda_soft_page_size;
	struct nda_table *table;
	u64 i;

	table = kvmalloc(struct_size(table, pa, count), GFP_KERNEL_ACCOUNT);
	if (!table)
		return NULL;
	table->va = va - (offset - begin);
	table->page_size = nda_soft_page_size;
	table->count = count;
	for (i = 0; i < count; i++)
		table->pa[i] = nda_soft_address(memory, begin + i * nda_soft_page_size);
	return table;
}

static struct nda_table *nda_soft_get(u64 va, u64 len, u32 id)
{
	struct nda_soft_memory *memory;
	struct nda_soft_table *held;
	struct nda_table *table;
	int ret = -ENOMEM;
	u64 offset;

	memory = nda_soft_memory_find(va, len, &offset);
	if (!memory)
		return ERR_PTR(-ECANCELED);
	if (!memory->bar && !nda_dma_maps_ram()) {
		ret = -EOPNOTSUPP;
		goto put;
	}
	held = kzalloc(sizeof(*held), GFP_KERNEL_ACCOUNT);
	if (!held)
		goto put;
	held->id = id;
	held->memory = memory;
	table = nda_soft_make_table(memory, va, offset, len);
	if (!table)
		goto free;
	table->priv = held;
	ret = nda_soft_list_table(memory, held);
	if (ret)
		goto free_table;
	return table;

free_table:
	kvfree(table);
free:
	kfree(held);
put:
	nda_soft_memory_put(memory);
	return ERR_PTR(ret);
}

static void nda_soft_put(struct nda_table *table)
{
	struct nda_soft_table *held = table->priv;

	spin_lock(&held->memory->tables_lock);
	list_del(&held->link);
	spin_unlock(&held->memory->tables_lock);
	nda_soft_memory_put(held->memory);
	kfree(held);
	kvfree(table);
}

static struct nda_backend nda_soft_backend = {
	.name = "soft",
	.owner = THIS_MODULE,
	.part = NDA_PART_SOFT,
	.why = nda_soft_why,
	.owns = nda_soft_owns,
	.get = nda_soft_get,
	.put = nda_soft_put,
};

int nda_soft_mem_init(void)
{
	if (!is_power_of_2(nda_soft_page_size) || nda_soft_page_size < PAGE_SIZE ||
	    nda_soft_page_size > SZ_1G) {
		pr_err("page_size=%lu is not a power of two from %lu to 1 GiB\n",
		       nda_soft_page_size, PAGE_SIZE);
		return -EINVAL;
	}
	if (nda_soft_pins)
		nda_soft_backend.caps |= NDA_BACKEND_PINS;
	return nda_backend_register(&nda_soft_backend);
}

void nda_soft_mem_exit(void)
{
	nda_backend_unregister(&nda_soft_backend);
}
