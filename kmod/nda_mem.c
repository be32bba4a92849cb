// SPDX-License-Identifier: GPL-2.0
/*
 * Ranges of NPU memory: which backend has them, their DMA mappings, and their revocation.
 *
 * A range is made by nda_mem_get() and ends with nda_mem_put(). Backends know it by a number
 * only, which is looked up for each of their calls: the NPU's driver may call about a range
 * that is long gone. A number is given out again after 2^32 others.
 *
 *   GETTING --> LIVE --> REVOKING --> REVOKED
 *      |          |                      |
 *      +----------+------> GONE <--------+
 *
 * GETTING: the backend is asked for the pages. A revocation leaves its reason and goes, since
 *	the NPU's driver may have it wait for the very call that is running; no device has
 *	anything yet, and nda_mem_get() fails.
 * LIVE: may be mapped. The revocation that finds it so queues the work; later ones wait too.
 * REVOKING: the work asks the user to let go and drops what is left. No new mapping.
 * REVOKED: no device reaches the memory; the table goes back, or has.
 * GONE: nothing was mapped when its user gave it back; the table goes back.
 */

#include <linux/completion.h>
#include <linux/dma-mapping.h>
#include <linux/overflow.h>
#include <linux/refcount.h>
#include <linux/rwsem.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "nda_internal.h"

#define CREATE_TRACE_POINTS
#include "nda_trace.h"

/* Of one entry of a table for DMA: keeps what follows aligned to the largest page of an NPU. */
#define NDA_PIECE_MAX SZ_2G

enum nda_mem_state {
	NDA_MEM_GETTING,
	NDA_MEM_LIVE,
	NDA_MEM_REVOKING,
	NDA_MEM_REVOKED,
	NDA_MEM_GONE,
};

/* Pages that follow each other. */
struct nda_segment {
	phys_addr_t pa;
	u64 len;
};

/**
 * struct nda_mem - a range
 * @refs: its user's, the work's, and those of who looks at it; it says nothing about the table
 * @id: what backends know it by
 * @lock: guards @state, @reason, @orphan and @over; a leaf
 * @state: see above
 * @reason: NDA_REASON_* of the revocation, NDA_REASON_NONE if there was none
 * @orphan: its user has given it back and waits for nothing: the work ends it
 * @over: the work has nothing more to do with it
 * @user: who is asked to let go
 * @priv: the user's
 * @backend: held by a reference of its module while there is @table
 * @table: the backend's; NULL before it is got and once it is back
 * @pinned: the backend keeps the memory from being freed
 * @npu: the function in whose BARs the memory is, held; NULL if it is in none's
 * @page_size: of the NPU
 * @size: of all segments
 * @offset: of the range asked for in the first segment
 * @count: of segments
 * @segments: what may be mapped
 * @map_lock: guards @maps and their mapping and unmapping. No allocation that may reclaim
 *	memory under it, for that may wait for a revocation
 * @maps: struct nda_map
 * @work: revokes
 * @done: no device reaches the memory any more
 * @returned: the table is back
 */
struct nda_mem {
	refcount_t refs;
	u32 id;
	spinlock_t lock;
	enum nda_mem_state state;
	u32 reason;
	bool orphan;
	bool over;
	const struct nda_mem_user *user;
	void *priv;
	struct nda_backend *backend;
	struct nda_table *table;
	bool pinned;
	struct pci_dev *npu;
	u64 page_size;
	u64 size;
	u64 offset;
	u32 count;
	struct nda_segment *segments;
	struct mutex map_lock;
	struct list_head maps;
	struct work_struct work;
	struct completion done;
	struct completion returned;
};

enum nda_map_state {
	NDA_MAP_LIVE,
	NDA_MAP_SUNK, /* leads to the sink page */
	NDA_MAP_GONE, /* undone by the revocation */
	NDA_MAP_LOST, /* must not be undone: see nda_sink.c */
};

/**
 * struct nda_map - one mapping of a part of a range; nda_mem.map_lock guards it
 * @link: in nda_mem.maps
 * @sgt: what the importer got; it may change the addresses in it, so they are kept here too
 * @dev: held
 * @dir: of the mapping
 * @state: whether it is in place
 * @sink: where a device is led that does not let go, or NULL
 * @count: of pieces
 * @pieces: what was mapped at once
 */
struct nda_map {
	struct list_head link;
	struct sg_table *sgt;
	struct device *dev;
	enum dma_data_direction dir;
	enum nda_map_state state;
	struct page *sink;
	u32 count;
	struct nda_map_piece {
		dma_addr_t addr;
		size_t len;
	} pieces[];
};

static LIST_HEAD(nda_backends);
/* Guards nda_backends. Outside of mmap_lock. */
static DECLARE_RWSEM(nda_backends_lock);

/* struct nda_mem by id. Its xa_lock makes looking one up and holding it one thing. */
static DEFINE_XARRAY_ALLOC1(nda_mems);
static u32 nda_mem_next;

static struct workqueue_struct *nda_mem_wq;

/* ---- Backends --------------------------------------------------------------------------- */

static struct nda_backend *nda_backend_of(u32 part)
{
	struct nda_backend *backend;

	list_for_each_entry(backend, &nda_backends, link) {
		if (backend->part == part)
			return backend;
	}
	return NULL;
}

int nda_backend_register(struct nda_backend *backend)
{
	int ret = 0;

	down_write(&nda_backends_lock);
	if (nda_backend_of(backend->part))
		ret = -EEXIST;
	else if (backend->caps & NDA_BACKEND_GUESSES)
		list_add_tail(&backend->link, &nda_backends);
	else
		list_add(&backend->link, &nda_backends);
	up_write(&nda_backends_lock);
	return ret;
}
EXPORT_SYMBOL_GPL(nda_backend_register);

void nda_backend_unregister(struct nda_backend *backend)
{
	down_write(&nda_backends_lock);
	list_del(&backend->link);
	up_write(&nda_backends_lock);
}
EXPORT_SYMBOL_GPL(nda_backend_unregister);

/**
 * nda_backend_why() - whether a part that is a backend can be used
 * @part: NDA_PART_*
 *
 * Return: NDA_WHY_*.
 */
u32 nda_backend_why(u32 part)
{
	struct nda_backend *backend;
	u32 why = NDA_WHY_NOT_LOADED;

	down_read(&nda_backends_lock);
	backend = nda_backend_of(part);
	if (backend)
		why = backend->why();
	up_read(&nda_backends_lock);
	return why;
}

/* The backend that owns [va, va+len) of current, with a reference of its module; NULL. */
static struct nda_backend *nda_backend_find(u64 va, u64 len)
{
	struct nda_backend *backend, *found = NULL;

	if (!current->mm)
		return NULL;
	down_read(&nda_backends_lock);
	list_for_each_entry(backend, &nda_backends, link) {
		if (backend->owns(current->mm, va, len) && try_module_get(backend->owner)) {
			found = backend;
			break;
		}
	}
	up_read(&nda_backends_lock);
	return found;
}

bool nda_mem_covers(u64 va, u64 len, u32 caps)
{
	struct nda_backend *backend = nda_backend_find(va, len);
	bool covers;

	if (!backend)
		return false;
	covers = (backend->caps & caps) == caps;
	module_put(backend->owner);
	return covers;
}
EXPORT_SYMBOL_GPL(nda_mem_covers);

bool nda_mem_can_pin(void)
{
	struct nda_backend *backend;
	bool pins = false;

	down_read(&nda_backends_lock);
	list_for_each_entry(backend, &nda_backends, link)
		pins |= backend->caps & NDA_BACKEND_PINS && backend->why() == NDA_WHY_OK;
	up_read(&nda_backends_lock);
	return pins;
}
EXPORT_SYMBOL_GPL(nda_mem_can_pin);

/* ---- Mappings --------------------------------------------------------------------------- */

static void nda_map_undo(struct nda_map *map, u32 count)
{
	while (count--) {
		dma_unmap_resource(map->dev, map->pieces[count].addr, map->pieces[count].len,
				   map->dir, DMA_ATTR_SKIP_CPU_SYNC);
		cond_resched();
	}
	/* Where unmapping is flushed later, the device could still use what it has cached. */
	nda_iommu_flush(map->dev);
}

/**
 * nda_device_reaches() - whether a device can be given an address that nothing translates
 * @dev: of it
 * @pa: the address
 * @len: of what is there; not 0
 *
 * Return: true if it can.
 */
bool nda_device_reaches(struct device *dev, phys_addr_t pa, u64 len)
{
	u64 limit = min_not_zero(dma_get_mask(dev), dev->bus_dma_limit);

	return pa + len - 1 <= limit;
}

/* Maps each piece. The kernel warns of addresses beyond the device's reach: users may try. */
static int nda_map_pieces(struct nda_mem *mem, struct nda_map *map, u64 offset)
{
	bool translated = nda_iommu_translates(map->dev);
	struct nda_segment *segment = mem->segments;
	struct scatterlist *sg = map->sgt->sgl;
	phys_addr_t pa;
	dma_addr_t addr;
	u64 len;
	u32 i;

	for (i = 0; i < map->count; i++, sg = sg_next(sg)) {
		while (offset >= segment->len)
			offset -= segment++->len;
		pa = segment->pa + offset;
		len = map->pieces[i].len;
		addr = DMA_MAPPING_ERROR;
		if (translated || nda_device_reaches(map->dev, pa, len))
			addr = dma_map_resource(map->dev, pa, len, map->dir,
						DMA_ATTR_SKIP_CPU_SYNC);
		if (dma_mapping_error(map->dev, addr)) {
			nda_map_undo(map, i);
			return -EIO;
		}
		map->pieces[i].addr = addr;
		sg_set_page(sg, NULL, len, 0);
		sg_dma_address(sg) = addr;
		sg_dma_len(sg) = len;
		offset += len;
		cond_resched();
	}
	return 0;
}

/* How [offset, offset+len) of the range is cut; only counts if @pieces is NULL. */
static u64 nda_mem_cut(const struct nda_mem *mem, u64 offset, u64 len, struct nda_map_piece *pieces)
{
	const struct nda_segment *segment = mem->segments;
	u64 count = 0, part;

	while (offset >= segment->len)
		offset -= segment++->len;
	for (; len; len -= part) {
		part = min3(segment->len - offset, len, (u64)NDA_PIECE_MAX);
		if (pieces)
			pieces[count].len = part;
		count++;
		offset += part;
		if (offset == segment->len) {
			segment++;
			offset = 0;
		}
		cond_resched();
	}
	return count;
}

static void nda_map_free(struct nda_map *map)
{
	/* Lost addresses may lead a device there for good. */
	if (map->sink && map->state != NDA_MAP_LOST)
		__free_page(map->sink);
	put_device(map->dev);
	kvfree(map);
}

static struct nda_map *nda_map_alloc(struct nda_mem *mem, struct device *dev, u64 offset, u64 len,
				     enum dma_data_direction dir)
{
	u64 count = nda_mem_cut(mem, offset, len, NULL);
	struct nda_map *map;

	if (count > INT_MAX)
		return NULL;
	map = kvzalloc(struct_size(map, pieces, count), GFP_KERNEL_ACCOUNT);
	if (!map)
		return NULL;
	map->dev = get_device(dev);
	map->dir = dir;
	map->count = count;
	nda_mem_cut(mem, offset, len, map->pieces);
	if (nda_sink_wanted(dev)) {
		map->sink = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!map->sink) {
			nda_map_free(map);
			return NULL;
		}
	}
	return map;
}

static bool nda_mem_is_live(struct nda_mem *mem)
{
	return READ_ONCE(mem->state) == NDA_MEM_LIVE;
}

int nda_mem_map(struct nda_mem *mem, struct device *dev, u64 offset, u64 len,
		enum dma_data_direction dir, struct sg_table *sgt)
{
	struct nda_map *map;
	int ret;

	if (!dev->dma_mask || !valid_dma_direction(dir) || dir == DMA_NONE)
		return -EINVAL;
	if (!len || !PAGE_ALIGNED(offset | len) || offset > mem->size || len > mem->size - offset)
		return -EINVAL;
	map = nda_map_alloc(mem, dev, offset, len, dir);
	if (!map)
		return -ENOMEM;
	ret = sg_alloc_table(sgt, map->count, GFP_KERNEL_ACCOUNT);
	if (ret)
		goto free_map;
	map->sgt = sgt;

	/*
	 * A revocation that begins after this look at the state takes the lock later, and finds
	 * the mapping.
	 */
	mutex_lock(&mem->map_lock);
	ret = nda_mem_is_live(mem) ? nda_map_pieces(mem, map, offset) : -ENODEV;
	if (!ret) {
		list_add(&map->link, &mem->maps);
		nda_count(NDA_COUNT_MAPPINGS, 1);
	}
	mutex_unlock(&mem->map_lock);
	trace_nda_map(mem->id, dev, len, map->count, ret);
	if (ret)
		goto free_table;
	/* There are no pages to be walked, only addresses. */
	sgt->orig_nents = 0;
	return 0;

free_table:
	sg_free_table(sgt);
free_map:
	nda_map_free(map);
	return ret;
}
EXPORT_SYMBOL_GPL(nda_mem_map);

static struct nda_map *nda_mem_find_map(struct nda_mem *mem, const struct sg_table *sgt)
{
	struct nda_map *map;

	list_for_each_entry(map, &mem->maps, link) {
		if (map->sgt == sgt)
			return map;
	}
	return NULL;
}

void nda_mem_unmap(struct nda_mem *mem, struct device *dev, enum dma_data_direction dir,
		   struct sg_table *sgt)
{
	struct nda_map *map;
	bool mapped;

	mutex_lock(&mem->map_lock);
	map = nda_mem_find_map(mem, sgt);
	if (WARN_ON(!map || map->dev != dev || map->dir != dir)) {
		mutex_unlock(&mem->map_lock);
		return;
	}
	list_del(&map->link);
	mapped = map->state == NDA_MAP_LIVE || map->state == NDA_MAP_SUNK;
	if (mapped) {
		nda_map_undo(map, map->count);
		nda_count(NDA_COUNT_MAPPINGS, -1);
	}
	mutex_unlock(&mem->map_lock);
	trace_nda_unmap(mem->id, dev, mapped);
	sgt->orig_nents = map->count;
	sg_free_table(sgt);
	nda_map_free(map);
}
EXPORT_SYMBOL_GPL(nda_mem_unmap);

/* Leads the mapping to the sink page; false if it is still as it was. */
static bool nda_map_sink(struct nda_map *map)
{
	u32 i;

	if (!map->sink)
		return false;
	map->state = NDA_MAP_SUNK;
	for (i = 0; i < map->count; i++) {
		if (nda_sink_remap(map->dev, map->pieces[i].addr, map->pieces[i].len, map->sink))
			map->state = NDA_MAP_LOST;
	}
	if (map->state == NDA_MAP_LOST)
		nda_count(NDA_COUNT_MAPPINGS, -1);
	return true;
}

/* Undoes it; its importer has yet to give it back. */
static void nda_map_end(struct nda_map *map)
{
	nda_map_undo(map, map->count);
	map->state = NDA_MAP_GONE;
	nda_count(NDA_COUNT_MAPPINGS, -1);
}

/**
 * nda_mem_drop() - ends mappings that importers have kept
 * @mem: the range
 * @dev: whose mappings; NULL for all
 *
 * Return: how many there were.
 */
u32 nda_mem_drop(struct nda_mem *mem, struct device *dev)
{
	struct nda_map *map;
	u32 left = 0;

	mutex_lock(&mem->map_lock);
	list_for_each_entry(map, &mem->maps, link) {
		if (dev && map->dev != dev)
			continue;
		/* A device's DMA operations go with its driver: what is sunk ends now, too. */
		if (dev && map->state == NDA_MAP_SUNK)
			nda_map_end(map);
		if (map->state != NDA_MAP_LIVE)
			continue;
		left++;
		dev_warn_ratelimited(map->dev, "nda: still has NPU memory mapped %s\n",
				     dev ? "as it loses its driver" : "that is revoked");
		if (dev || !nda_map_sink(map))
			nda_map_end(map);
		nda_tell("LEFTOVER_IMPORTER", map->dev, 0);
	}
	mutex_unlock(&mem->map_lock);
	nda_count(NDA_COUNT_LEFTOVERS, left);
	return left;
}

u32 nda_mem_mappings(struct nda_mem *mem)
{
	struct nda_map *map;
	u32 count = 0;

	mutex_lock(&mem->map_lock);
	list_for_each_entry(map, &mem->maps, link)
		count += map->state == NDA_MAP_LIVE || map->state == NDA_MAP_SUNK;
	mutex_unlock(&mem->map_lock);
	return count;
}

/* ---- Revocation ------------------------------------------------------------------------- */

static void nda_mem_unref(struct nda_mem *mem)
{
	if (!refcount_dec_and_test(&mem->refs))
		return;
	pci_dev_put(mem->npu);
	kvfree(mem->segments);
	kfree(mem);
}

static void nda_mem_return_table(struct nda_mem *mem)
{
	struct nda_backend *backend = mem->backend;

	backend->put(mem->table);
	mem->table = NULL;
	nda_count(NDA_COUNT_TABLES, -1);
	trace_nda_put(mem->id);
	module_put(backend->owner);
}

/* Nobody is called about it any more, and its number is free. */
static void nda_mem_end(struct nda_mem *mem)
{
	struct module *owner = mem->user->owner;

	xa_erase(&nda_mems, mem->id);
	nda_mem_unref(mem);
	module_put(owner);
}

/* The same, where its user is to hear of it. */
static void nda_mem_end_async(struct nda_mem *mem)
{
	mem->user->ended(mem->priv);
	nda_mem_end(mem);
}

static void nda_mem_set_state(struct nda_mem *mem, enum nda_mem_state state)
{
	spin_lock(&mem->lock);
	WRITE_ONCE(mem->state, state);
	spin_unlock(&mem->lock);
}

static void nda_mem_revoke_work(struct work_struct *work)
{
	struct nda_mem *mem = container_of(work, struct nda_mem, work);
	u64 begin = ktime_get_ns();
	bool orphan;
	u32 left;

	trace_nda_revoke_begin(mem->id, mem->reason);
	mem->user->revoke(mem->priv, mem->reason);
	left = nda_mem_drop(mem, NULL);
	nda_count(NDA_COUNT_REVOKED, 1);
	trace_nda_revoke_end(mem->id, ktime_get_ns() - begin, left);
	nda_mem_set_state(mem, NDA_MEM_REVOKED);
	/* The NPU's driver must not be made to wait for its own put(): it may be what waits. */
	complete_all(&mem->done);
	nda_mem_return_table(mem);
	spin_lock(&mem->lock);
	mem->over = true;
	orphan = mem->orphan;
	spin_unlock(&mem->lock);
	if (orphan)
		nda_mem_end_async(mem);
	else
		complete_all(&mem->returned);
	nda_mem_unref(mem);
}

/*
 * A plain completion: flush_work() would have lockdep see the caller's locks, a notifier's
 * among them, outside of those that the work takes, which the caller never waits for.
 */
static void nda_mem_wait(struct nda_mem *mem)
{
	while (!wait_for_completion_timeout(&mem->done, 10 * HZ))
		pr_warn_ratelimited("range %u: importers have not let go yet\n", mem->id);
}

static struct nda_mem *nda_mem_find(u32 id)
{
	struct nda_mem *mem;

	xa_lock(&nda_mems);
	mem = xa_load(&nda_mems, id);
	if (mem)
		refcount_inc(&mem->refs);
	xa_unlock(&nda_mems);
	return mem;
}

/* Whether it is to be waited for. */
static bool nda_mem_begin_revoke(struct nda_mem *mem, u32 reason)
{
	bool wait = false;

	spin_lock(&mem->lock);
	switch (mem->state) {
	case NDA_MEM_GETTING:
		mem->reason = reason;
		break;
	case NDA_MEM_LIVE:
		mem->reason = reason;
		WRITE_ONCE(mem->state, NDA_MEM_REVOKING);
		refcount_inc(&mem->refs);
		queue_work(nda_mem_wq, &mem->work);
		wait = true;
		break;
	case NDA_MEM_REVOKING:
		wait = true;
		break;
	case NDA_MEM_REVOKED:
	case NDA_MEM_GONE:
		nda_count(NDA_COUNT_STALE, 1);
		break;
	}
	spin_unlock(&mem->lock);
	return wait;
}

void nda_backend_revoke(u32 id, u32 reason)
{
	struct nda_mem *mem;

	might_sleep();
	mem = nda_mem_find(id);
	if (!mem) {
		nda_count(NDA_COUNT_STALE, 1);
		return;
	}
	if (nda_mem_begin_revoke(mem, reason))
		nda_mem_wait(mem);
	nda_mem_unref(mem);
}
EXPORT_SYMBOL_GPL(nda_backend_revoke);

/* The next live range after *id whose memory is @npu's, held. */
static struct nda_mem *nda_mem_next_of(unsigned long *id, struct device *npu)
{
	struct nda_mem *mem, *found = NULL;
	unsigned long index;

	xa_lock(&nda_mems);
	xa_for_each_start(&nda_mems, index, mem, *id + 1) {
		spin_lock(&mem->lock);
		if (mem->state == NDA_MEM_LIVE && mem->npu && &mem->npu->dev == npu)
			found = mem;
		spin_unlock(&mem->lock);
		if (found) {
			refcount_inc(&found->refs);
			*id = index;
			break;
		}
	}
	xa_unlock(&nda_mems);
	return found;
}

/**
 * nda_mem_unbind() - a device is about to lose its driver
 * @dev: if memory is in its BARs, that is revoked. Its lock is held: no other becomes live
 */
void nda_mem_unbind(struct device *dev)
{
	struct nda_mem *mem;
	unsigned long id = 0;

	while ((mem = nda_mem_next_of(&id, dev))) {
		if (nda_mem_begin_revoke(mem, NDA_REASON_UNPLUG))
			nda_mem_wait(mem);
		nda_mem_unref(mem);
	}
}

/* ---- Ranges ----------------------------------------------------------------------------- */

/* What a backend may not give, whatever its NPU's driver told it. */
static bool nda_table_is_sane(const struct nda_table *table, u64 va, u64 len)
{
	u64 bytes, end, i;

	if (!is_power_of_2(table->page_size) || table->page_size < SZ_4K || !table->count ||
	    check_mul_overflow(table->page_size, table->count, &bytes) ||
	    check_add_overflow(table->va, bytes, &end))
		return false;
	if (table->va > va || end < va + len)
		return false;
	for (i = 0; i < table->count; i++) {
		if (!IS_ALIGNED(table->pa[i], min_t(u64, table->page_size, PAGE_SIZE)) ||
		    table->pa[i] > U64_MAX - table->page_size)
			return false;
		cond_resched();
	}
	return true;
}

/*
 * Joins the pages that [begin, end) touches, which the table covers, to segments; only counts
 * them if @segments is NULL.
 */
static u64 nda_table_join(const struct nda_table *table, u64 begin, u64 end,
			  struct nda_segment *segments)
{
	u64 size = table->page_size, count = 0, next = 0, pa, va, part;

	for (va = begin; va < end; va += part) {
		pa = table->pa[(va - table->va) / size] + ((va - table->va) & (size - 1));
		part = min(size - ((va - table->va) & (size - 1)), end - va);
		if (!count || pa != next) {
			count++;
			if (segments)
				segments[count - 1] = (struct nda_segment){ .pa = pa };
		}
		if (segments)
			segments[count - 1].len += part;
		next = pa + part;
		cond_resched();
	}
	return count;
}

/*
 * The table may cover more than was asked for, up to a page of the NPU at each end. Devices get
 * whole pages of the kernel's around the range, not more.
 */
static int nda_mem_set_segments(struct nda_mem *mem, u64 va, u64 len)
{
	const struct nda_table *table = mem->table;
	u64 begin = max(round_down(va, PAGE_SIZE), table->va);
	u64 last = min((va + len - 1) | (PAGE_SIZE - 1),
		       table->va + table->count * table->page_size - 1);
	u64 count, i;

	count = nda_table_join(table, begin, last + 1, NULL);
	mem->segments = kvcalloc(count, sizeof(*mem->segments), GFP_KERNEL_ACCOUNT);
	if (!mem->segments)
		return -ENOMEM;
	nda_table_join(table, begin, last + 1, mem->segments);
	for (i = 0; i < count; i++) {
		/* Smaller pages of the NPU than the kernel's, apart. */
		if (!PAGE_ALIGNED(mem->segments[i].pa | mem->segments[i].len))
			return -EINVAL;
	}
	mem->count = count;
	mem->size = last + 1 - begin;
	mem->offset = va - begin;
	mem->page_size = table->page_size;
	return 0;
}

static bool nda_pci_has(struct pci_dev *pdev, const struct nda_segment *segment)
{
	struct resource res = {
		.start = segment->pa,
		.end = segment->pa + segment->len - 1,
		.flags = IORESOURCE_MEM,
	};

	return pci_find_resource(pdev, &res);
}

/* Finds the function whose memory it is. Memory that is partly one's is not to be had. */
static int nda_mem_set_npu(struct nda_mem *mem)
{
	struct pci_dev *pdev = NULL;
	u32 i;

	for_each_pci_dev(pdev) {
		if (nda_pci_has(pdev, &mem->segments[0]))
			break;
	}
	mem->npu = pdev;
	for (i = 1; pdev && i < mem->count; i++) {
		if (!nda_pci_has(pdev, &mem->segments[i]))
			return -EIO;
	}
	return 0;
}

static int nda_mem_take_table(struct nda_mem *mem, u64 va, u64 len)
{
	struct nda_table *table = mem->backend->get(va, len, mem->id);
	int ret;

	if (IS_ERR(table))
		return PTR_ERR(table);
	mem->table = table;
	mem->pinned = mem->backend->caps & NDA_BACKEND_PINS;
	nda_count(NDA_COUNT_TABLES, 1);
	if (!nda_table_is_sane(table, va, len)) {
		pr_err_ratelimited("backend %s: implausible table\n", mem->backend->name);
		return -EIO;
	}
	ret = nda_mem_set_segments(mem, va, len);
	return ret ? ret : nda_mem_set_npu(mem);
}

/* From GETTING to LIVE, unless the memory was freed meanwhile. */
static int nda_mem_set_live(struct nda_mem *mem)
{
	int ret = 0;

	spin_lock(&mem->lock);
	if (mem->reason != NDA_REASON_NONE)
		ret = -ECANCELED;
	else
		WRITE_ONCE(mem->state, NDA_MEM_LIVE);
	spin_unlock(&mem->lock);
	return ret;
}

/*
 * The same where the NPU keeps its driver meanwhile: who unbinds finds what is live, or there is
 * no driver any more. It is never given up once it is live: a revocation could wait for the
 * caller then.
 */
static int nda_mem_go_live(struct nda_mem *mem)
{
	struct device *npu;
	int ret;

	if (!mem->npu)
		return nda_mem_set_live(mem);
	npu = &mem->npu->dev;
	/* Whoever holds it may wait for the caller to end. */
	ret = device_lock_interruptible(npu);
	if (ret)
		return ret;
	ret = npu->driver ? nda_mem_set_live(mem) : -ECANCELED;
	device_unlock(npu);
	return ret;
}

static struct nda_mem *nda_mem_alloc(const struct nda_mem_user *user, void *priv)
{
	struct nda_mem *mem = kzalloc(sizeof(*mem), GFP_KERNEL_ACCOUNT);

	if (!mem)
		return NULL;
	refcount_set(&mem->refs, 1);
	spin_lock_init(&mem->lock);
	mutex_init(&mem->map_lock);
	INIT_LIST_HEAD(&mem->maps);
	INIT_WORK(&mem->work, nda_mem_revoke_work);
	init_completion(&mem->done);
	init_completion(&mem->returned);
	__module_get(user->owner);
	mem->user = user;
	mem->priv = priv;
	return mem;
}

struct nda_mem *nda_mem_get(u64 va, u64 len, const struct nda_mem_user *user, void *priv)
{
	struct nda_backend *backend;
	struct nda_mem *mem;
	int ret;
	u64 end;

	/* Rounding up the end must not wrap either. */
	if (!len || check_add_overflow(va, len, &end) || end > U64_MAX - PAGE_SIZE)
		return ERR_PTR(-EINVAL);
	backend = nda_backend_find(va, len);
	if (!backend)
		return ERR_PTR(-EOPNOTSUPP);
	mem = nda_mem_alloc(user, priv);
	if (!mem) {
		module_put(backend->owner);
		return ERR_PTR(-ENOMEM);
	}
	mem->backend = backend;
	ret = xa_alloc_cyclic(&nda_mems, &mem->id, mem, xa_limit_32b, &nda_mem_next,
			      GFP_KERNEL_ACCOUNT);
	if (ret < 0) {
		module_put(backend->owner);
		nda_mem_unref(mem);
		module_put(user->owner);
		return ERR_PTR(ret);
	}
	ret = nda_mem_take_table(mem, va, len);
	if (!ret)
		ret = nda_mem_go_live(mem);
	trace_nda_get(mem->id, backend->name, mem->size, mem->page_size, ret);
	if (ret) {
		nda_mem_put(mem);
		return ERR_PTR(ret);
	}
	return mem;
}
EXPORT_SYMBOL_GPL(nda_mem_get);

void nda_mem_put(struct nda_mem *mem)
{
	bool revoked;

	WARN_ON(!list_empty(&mem->maps));
	spin_lock(&mem->lock);
	revoked = mem->state == NDA_MEM_REVOKING || mem->state == NDA_MEM_REVOKED;
	if (!revoked)
		WRITE_ONCE(mem->state, NDA_MEM_GONE);
	spin_unlock(&mem->lock);
	/* Its user must not be called any more, and the table be back, when this returns. */
	if (revoked)
		wait_for_completion(&mem->returned);
	else if (mem->table)
		nda_mem_return_table(mem);
	else
		module_put(mem->backend->owner);
	nda_mem_end(mem);
}
EXPORT_SYMBOL_GPL(nda_mem_put);

void nda_mem_put_async(struct nda_mem *mem)
{
	bool wait, live;

	WARN_ON(!list_empty(&mem->maps));
	spin_lock(&mem->lock);
	live = mem->state == NDA_MEM_LIVE;
	if (live)
		WRITE_ONCE(mem->state, NDA_MEM_GONE);
	wait = !live && !mem->over;
	mem->orphan = wait;
	spin_unlock(&mem->lock);
	if (live)
		nda_mem_return_table(mem);
	if (!wait)
		nda_mem_end_async(mem);
}
EXPORT_SYMBOL_GPL(nda_mem_put_async);

u64 nda_mem_page_size(const struct nda_mem *mem)
{
	return mem->page_size;
}
EXPORT_SYMBOL_GPL(nda_mem_page_size);

u64 nda_mem_size(const struct nda_mem *mem)
{
	return mem->size;
}
EXPORT_SYMBOL_GPL(nda_mem_size);

u64 nda_mem_offset(const struct nda_mem *mem)
{
	return mem->offset;
}
EXPORT_SYMBOL_GPL(nda_mem_offset);

bool nda_mem_pinned(const struct nda_mem *mem)
{
	return mem->pinned;
}
EXPORT_SYMBOL_GPL(nda_mem_pinned);

bool nda_mem_revoked(const struct nda_mem *mem)
{
	return READ_ONCE(mem->state) != NDA_MEM_LIVE;
}
EXPORT_SYMBOL_GPL(nda_mem_revoked);

u32 nda_mem_id(const struct nda_mem *mem)
{
	return mem->id;
}
EXPORT_SYMBOL_GPL(nda_mem_id);

/**
 * nda_mem_status() - how a range is
 * @mem: the range
 * @reason: NDA_REASON_*
 *
 * Return: NDA_STATE_*.
 */
u32 nda_mem_status(struct nda_mem *mem, u32 *reason)
{
	u32 state = NDA_STATE_LIVE;

	spin_lock(&mem->lock);
	*reason = mem->reason;
	if (mem->state == NDA_MEM_REVOKING)
		state = NDA_STATE_REVOKING;
	else if (mem->state == NDA_MEM_REVOKED)
		state = NDA_STATE_REVOKED;
	spin_unlock(&mem->lock);
	return state;
}

/**
 * nda_mem_init() - makes what revocation needs
 *
 * Return: 0; -ENOMEM.
 */
int nda_mem_init(void)
{
	/* The memory may be freed to get some: revocation may not wait for any. */
	nda_mem_wq = alloc_workqueue("nda", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	return nda_mem_wq ? 0 : -ENOMEM;
}

/**
 * nda_mem_exit() - undoes it
 *
 * Whoever has a range holds this module, but the work may still be about to let one go.
 */
void nda_mem_exit(void)
{
	destroy_workqueue(nda_mem_wq);
	WARN_ON(!xa_empty(&nda_mems));
	xa_destroy(&nda_mems);
}
