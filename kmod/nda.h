/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What nda.ko offers to its sister modules: backends that know an NPU's memory, users of ranges
 * of that memory (the dma-buf exporter, the peer-memory clients), and in-kernel users of pins
 * and doorbells.
 *
 * Revocation in one paragraph. A backend calls nda_backend_revoke() from wherever the NPU's
 * driver frees memory, possibly inside an MMU notifier with mmap_lock held. That call only
 * marks the range, queues the work on nda's own queue and waits for it by a plain completion.
 * The work, which holds no lock of the freeing path, asks the range's user to let go, drops
 * what is left of its DMA mappings, and completes; then it returns the table to the backend.
 * A range whose get() is still running is marked and not waited for: the get fails.
 */
#ifndef NDA_KMOD_H
#define NDA_KMOD_H

#include <linux/device.h>
#include <linux/mm_types.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/types.h>

struct nda_mem;

/* ---- Backends ------------------------------------------------------------------------- */

/**
 * struct nda_table - physical pages of a range of NPU memory, as a backend gives them
 * @va: where the first page begins in the owner's address space
 * @page_size: bytes, a power of two of at least PAGE_SIZE's divisor 4096
 * @count: pages
 * @priv: the backend's
 * @pa: physical addresses of the pages, where the CPU and devices without an IOMMU see them
 */
struct nda_table {
	u64 va;
	u64 page_size;
	u64 count;
	void *priv;
	u64 pa[];
};

/* The memory stays while a table is held: it is never revoked but by unplugging. */
#define NDA_BACKEND_PINS BIT(0)
/* owns() guesses: the backend is asked after those that know. */
#define NDA_BACKEND_GUESSES BIT(1)

/**
 * struct nda_backend - one source of NPU memory; static in its module
 * @name: for messages and debugfs
 * @owner: THIS_MODULE; each table holds a reference of it
 * @part: NDA_PART_* that QUERY reports
 * @caps: NDA_BACKEND_*; may depend on what the NPU's driver offers, and is read under a table
 * @why: NDA_WHY_*, whether it can be used now; cheap, may sleep
 * @owns: whether [va, va+len) of @mm, which is current's, looks like its memory; cheap, takes
 *	mmap_lock for read, no call of the NPU's driver
 * @get: in the owner's process, may sleep, no lock of nda is held: the pages that cover
 *	[va, va+len). From before it returns until put() returns, nda_backend_revoke(@id) tells
 *	of a free. -EOPNOTSUPP, -EINVAL for memory that cannot be had, -ECANCELED, -ENOMEM
 * @put: in any process, may sleep: returns a table and frees it
 */
struct nda_backend {
	const char *name;
	struct module *owner;
	u32 part;
	u32 caps;
	u32 (*why)(void);
	bool (*owns)(struct mm_struct *mm, u64 va, u64 len);
	struct nda_table *(*get)(u64 va, u64 len, u32 id);
	void (*put)(struct nda_table *table);
	/* nda.ko's: the list of all. */
	struct list_head link;
};

/**
 * nda_backend_register() - makes a backend known
 *
 * Return: 0; -EEXIST if there is one for its part.
 */
int nda_backend_register(struct nda_backend *backend);

/* nda_backend_unregister() - no table of it is left then: each holds its module */
void nda_backend_unregister(struct nda_backend *backend);

/**
 * nda_backend_revoke() - the range's memory is about to be freed or unplugged
 * @id: as get() was called with; one that is gone is counted and ignored
 * @reason: NDA_REASON_*
 *
 * May sleep; may be called with mmap_lock or a notifier's locks held, and before get()
 * returns. When it returns no device reaches the memory, but for the cases that an
 * administrator allowed (unsafe_pinned). put() may run later.
 */
void nda_backend_revoke(u32 id, u32 reason);

/* ---- Other parts ------------------------------------------------------------------------ */

/**
 * nda_part_register() - makes QUERY tell of a part that is no backend
 * @part: NDA_PART_*
 * @why: NDA_WHY_*, whether it can be used now; cheap, may sleep
 *
 * Return: 0; -EEXIST if it is registered.
 */
int nda_part_register(u32 part, u32 (*why)(void));

/* nda_part_unregister() - @why is not called any more when it returns */
void nda_part_unregister(u32 part);

/* ---- Ranges and their users ------------------------------------------------------------ */

/**
 * struct nda_mem_user - who made the range
 * @owner: THIS_MODULE, which each range holds until it has ended; NULL within nda.ko
 * @revoke: called once, by the work, no lock held: no device may use the range when it
 *	returns, so every nda_mem_map() of it is undone or about to fail. What it leaves mapped
 *	counts as left over
 * @ended: of use with nda_mem_put_async(): the range is no more, and this the last call about
 *	it; no lock held
 */
struct nda_mem_user {
	struct module *owner;
	void (*revoke)(void *priv, u32 reason);
	void (*ended)(void *priv);
};

/**
 * nda_mem_get() - takes a range of the calling process's NPU memory
 *
 * Return: the range; -EOPNOTSUPP if no backend owns it; -EINVAL; what get() returned; -ECANCELED
 * if it was freed meanwhile, or an NPU lost its driver; -EIO for a table that cannot be right.
 */
struct nda_mem *nda_mem_get(u64 va, u64 len, const struct nda_mem_user *user, void *priv);

/*
 * nda_mem_put() - ends a range, which must not be mapped: its table is back, and its user not
 * called any more, when this returns. Waits for a revocation that runs.
 */
void nda_mem_put(struct nda_mem *mem);

/*
 * nda_mem_put_async() - the same for who may not wait for a revocation, as its own revoke() may
 * wait for the caller, or be it: if one runs, the range ends after it. Calls ended() then.
 */
void nda_mem_put_async(struct nda_mem *mem);

/*
 * nda_mem_covers() - whether a backend that has all of @caps looks likely to own [va, va+len) of
 * current
 */
bool nda_mem_covers(u64 va, u64 len, u32 caps);

/* nda_mem_can_pin() - whether there is a backend with NDA_BACKEND_PINS that can be used */
bool nda_mem_can_pin(void);

u64 nda_mem_page_size(const struct nda_mem *mem);
/*
 * Bytes of the whole pages of the kernel's that the range touches, which is what may be mapped,
 * and where in them the range asked for begins.
 */
u64 nda_mem_size(const struct nda_mem *mem);
u64 nda_mem_offset(const struct nda_mem *mem);
bool nda_mem_pinned(const struct nda_mem *mem);
bool nda_mem_revoked(const struct nda_mem *mem);
u32 nda_mem_id(const struct nda_mem *mem);

/**
 * nda_mem_map() - maps bytes of the range for DMA by a device
 * @offset: of the first byte in the pages, a multiple of PAGE_SIZE
 * @len: bytes, a multiple of PAGE_SIZE
 * @sgt: is filled: no pages (orig_nents is 0), length and DMA length of each entry set,
 *	neighbours joined, none above 2 GiB
 *
 * Return: 0; -ENODEV if the range is revoked; -ENOMEM, -EIO.
 */
int nda_mem_map(struct nda_mem *mem, struct device *dev, u64 offset, u64 len,
		enum dma_data_direction dir, struct sg_table *sgt);

/* nda_mem_unmap() - undoes it, once or after the revocation has; frees @sgt */
void nda_mem_unmap(struct nda_mem *mem, struct device *dev, enum dma_data_direction dir,
		   struct sg_table *sgt);

/* ---- In-kernel users of pins and doorbells ------------------------------------------------ */

struct nda_object;

/**
 * nda_object_get() - an object of an open /dev/nda
 * @fd: a descriptor of current
 * @kind: NDA_KIND_*
 *
 * Return: the object, held; -EBADF, -ENOENT.
 */
struct nda_object *nda_object_get(int fd, u32 handle, u32 kind);
void nda_object_put(struct nda_object *object);

/**
 * nda_pin_table() - a pin's DMA addresses; @dev must be what it was pinned for
 *
 * Valid while the object is held and the device has its driver. -ENODEV; -ESTALE.
 */
const struct sg_table *nda_pin_table(struct nda_object *object, struct device *dev);

/* nda_db_address() - a doorbell page's DMA address for the NPU it was mapped for: 0; -ESTALE */
int nda_db_address(struct nda_object *object, struct device *dev, dma_addr_t *address);

#endif
