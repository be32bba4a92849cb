/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Within nda_soft.ko.
 *
 * Locks, outer to inner:
 *
 *   nda_soft_file.lock     one ioctl of a file at a time that makes or ends something
 *   nda_soft_bar.lock      the list of what is allocated in the BAR
 *   mmap_lock
 *   nda_kicker.lock        the bindings; held while the doorbells are polled
 *   nda_soft_memory.lock   whether the CPU may use it; page tables are allocated with it
 *   nda_soft_memory.tables_lock  spinlock, a leaf: the tables that nda.ko holds
 *   nda_kick_devices_lock  rwsem: the RDMA devices; held while a QP is kicked
 *
 * nda_backend_revoke() is called with the first two at most: the work that it waits for takes
 * none of these but, in the backend's put(), tables_lock.
 */
#ifndef NDA_SOFT_KMOD_H
#define NDA_SOFT_KMOD_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

#include <uapi/nda_soft.h>

struct gen_pool;
struct nda_kicker;
struct vm_area_struct;

/**
 * struct nda_soft_bar - the BAR that is the NPU's memory
 * @ref: the driver's and one of each piece allocated
 * @lock: guards @pieces and @gone
 * @pieces: struct nda_soft_memory
 * @gone: the device has no driver any more
 * @number: of the BAR
 * @begin: bus address as the CPU has it
 * @size: bytes
 * @io: the CPU's mapping, valid until @gone
 * @pool: what is free
 */
struct nda_soft_bar {
	struct kref ref;
	struct mutex lock;
	struct list_head pieces;
	bool gone;
	int number;
	phys_addr_t begin;
	resource_size_t size;
	void __iomem *io;
	struct gen_pool *pool;
};

/**
 * struct nda_soft_memory - allocated memory
 * @ref: the file's, until it is freed; each VMA's, each table's and each doorbell's
 * @id: of all files; the handle, and where it is in a file that is mapped
 * @size: bytes
 * @bar: where it is, held; NULL for RAM
 * @phys: where it begins in the BAR
 * @pages: RAM's
 * @mapping: of the file that it is mapped by; valid until it is freed
 * @piece: in @bar's list
 * @lock: guards @freed against faults and polling
 * @freed: no more may be made of it; also under @tables_lock
 * @tables_lock: guards @tables
 * @tables: struct nda_soft_table
 */
struct nda_soft_memory {
	struct kref ref;
	u32 id;
	u64 size;
	struct nda_soft_bar *bar;
	phys_addr_t phys;
	struct page **pages;
	struct address_space *mapping;
	struct list_head piece;
	struct mutex lock;
	bool freed;
	spinlock_t tables_lock;
	struct list_head tables;
};

/**
 * struct nda_soft_file - an open /dev/nda_soft
 * @mm: the opener's, held by mmgrab(): compared, never used
 * @mapping: where its memory is mapped
 * @lock: one ioctl at a time that makes or ends something
 * @memory: struct nda_soft_memory by id, under @lock and its own
 * @kicker: doorbells, or NULL as long as there was none
 */
struct nda_soft_file {
	struct mm_struct *mm;
	struct address_space *mapping;
	struct mutex lock;
	struct xarray memory;
	struct nda_kicker *kicker;
};

/* Where each memory has its place in the files' offsets. */
#define NDA_SOFT_SPAN_SHIFT 36
#define NDA_SOFT_SPAN (1ull << NDA_SOFT_SPAN_SHIFT)
#define NDA_SOFT_ID_MAX ((1u << (62 - NDA_SOFT_SPAN_SHIFT)) - 1)

static inline u64 nda_soft_mmap_off(u32 id)
{
	return (u64)id << NDA_SOFT_SPAN_SHIFT;
}

static inline u32 nda_soft_mmap_id(u64 offset)
{
	return offset >> NDA_SOFT_SPAN_SHIFT;
}

extern unsigned long nda_soft_page_size;
extern bool nda_soft_pins;

/* nda_soft_mem.c */
int nda_soft_mem_init(void);
void nda_soft_mem_exit(void);
u64 nda_soft_bytes(void);
struct nda_soft_memory *nda_soft_memory_new(u64 size, u32 kind, struct address_space *mapping);
void nda_soft_memory_free(struct nda_soft_memory *memory);
void nda_soft_memory_put(struct nda_soft_memory *memory);
int nda_soft_memory_mmap(struct nda_soft_memory *memory, struct vm_area_struct *vma);
void nda_soft_memory_unplug(struct nda_soft_memory *memory);
struct nda_soft_memory *nda_soft_memory_find(u64 va, u64 len, u64 *offset);

/* nda_soft_bar.c */
int nda_soft_bar_init(void);
void nda_soft_bar_exit(void);
struct nda_soft_bar *nda_soft_bar_get(void);
void nda_soft_bar_put(struct nda_soft_bar *bar);

/* nda_soft_kick.c */
int nda_kick_init(void);
void nda_kick_exit(void);
int nda_kick_bind(struct nda_soft_file *file, struct nda_soft_ioc_bind *arg);
int nda_kick_unbind(struct nda_soft_file *file, u32 handle);
void nda_kick_close(struct nda_soft_file *file);
bool nda_kick_possible(void);
u64 nda_kick_count(u32 what);

#endif
