// SPDX-License-Identifier: GPL-2.0
/*
 * nda_peermem.ko: NPU memory for RDMA devices by the RDMA core's peer-memory interface,
 * where no dma-buf is used.
 *
 * The core asks clients about addresses that it could not pin, in the order in which they
 * registered. There are two. The first lets go of its memory when it is told to; the core
 * uses it for MRs of drivers that can do that. The second does not: it is for queues, whose
 * memory may not go, and only knows memory that its backend pins.
 *
 * What the core does with a context, all calls but release() under a lock of the memory's:
 *
 *   acquire() get_pages() dma_map() ... dma_unmap() put_pages() release()
 *
 * The client's call to invalidate takes that lock, has the RDMA device let go, and may drop
 * the last hold of the memory, which calls release(). Cores that do not know
 * PEER_MEM_INVALIDATE_UNMAPS call dma_unmap() and put_pages() from it, too. So none of
 * these may wait for a revocation, which may be what calls it, or what waits for the core's
 * lock; and each may come before, after or during one. The core is told of memory by the
 * number that it gave, which it looks up, as the memory may just have been released.
 *
 * Locks: the core's lock > nda_peer.lock > nda_mem's map_lock.
 */
#include <linux/dma-mapping.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/peer_mem.h>

#include <uapi/nda.h>

#include "nda.h"

/**
 * struct nda_peer_client - one of the two
 * @handle: the core's; NULL until it has registered, and nothing is acquired before
 * @invalidate: tells the core that memory goes; NULL if its memory does not go
 * @ex: what the core knows of it
 */
struct nda_peer_client {
	void *handle;
	invalidate_peer_memory invalidate;
	struct peer_memory_client_ex ex;
};

/**
 * struct nda_peer - a context: memory that is, or may be, registered
 * @refs: the core's, until release(), and the range's, until it has ended
 * @client: whose it is
 * @got: get_pages() was called
 * @core_context: what the core knows the memory by, as get_pages() was told
 * @lock: guards @mem, @maps and @revoked; nothing is allocated under it, for a revocation
 *may wait for it
 * @mem: the range; NULL before get_pages() and after put_pages()
 * @maps: struct nda_peer_map
 * @revoked: the core has been told, or need not be
 */
struct nda_peer {
	refcount_t refs;
	struct nda_peer_client *client;
	bool got;
	u64 core_context;
	struct mutex lock;
	struct nda_mem *mem;
	struct list_head maps;
	bool revoked;
};

/**
 * struct nda_peer_map - its mapping for one device
 * @link: in nda_peer.maps
 * @dev: the device
 * @mapped: by @own
 * @own: what nda_mem_map() filled
 * @given: a copy for the core, which may read it, and change it, until it has unmapped
 */
struct nda_peer_map {
	struct list_head link;
	struct device *dev;
	bool mapped;
	struct sg_table own;
	struct sg_table given;
};

/* ---- Mappings ---------------------------------------------------------------------------
 */

static void nda_peer_unmap(struct nda_peer *peer, struct nda_peer_map *map)
{
	if (map->mapped)
		nda_mem_unmap(peer->mem, map->dev, DMA_BIDIRECTIONAL, &map->own);
	map->mapped = false;
}

/* The core has no more use for it. */
static void nda_peer_end_map(struct nda_peer *peer, struct nda_peer_map *map)
{
	list_del(&map->link);
	nda_peer_unmap(peer, map);
	sg_free_table(&map->given);
	kfree(map);
}

static int nda_peer_copy_table(const struct sg_table *from, struct sg_table *to)
{
	struct scatterlist *source, *target;
	int i, ret;

	ret = sg_alloc_table(to, from->nents, GFP_KERNEL_ACCOUNT);
	if (ret)
		return ret;
	target = to->sgl;
	for_each_sgtable_dma_sg(from, source, i) {
		/* No page, but a length: the core and drivers look at both. */
		sg_set_page(target, NULL, sg_dma_len(source), 0);
		sg_dma_address(target) = sg_dma_address(source);
		sg_dma_len(target) = sg_dma_len(source);
		target = sg_next(target);
	}
	return 0;
}

/* False if the memory was revoked meanwhile; nobody will unmap it then. */
static bool nda_peer_add_map(struct nda_peer *peer, struct nda_peer_map *map)
{
	bool live;

	mutex_lock(&peer->lock);
	live = !peer->revoked;
	if (live)
		list_add(&map->link, &peer->maps);
	mutex_unlock(&peer->lock);
	return live;
}

/* Maps the range's whole pages; the core's lock keeps the range there. */
static int nda_peer_dma_map(struct sg_table *sgt, void *context, struct device *dev, int dmasync,
			    int *nmap)
{
	struct nda_peer *peer = context;
	struct nda_peer_map *map;
	int ret;

	/* Devices that are software have none. */
	if (!peer->mem || !dev)
		return -EINVAL;
	map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);
	if (!map)
		return -ENOMEM;
	map->dev = dev;
	ret = nda_mem_map(peer->mem, dev, 0, nda_mem_size(peer->mem), DMA_BIDIRECTIONAL, &map->own);
	if (ret)
		goto free;
	map->mapped = true;
	ret = nda_peer_copy_table(&map->own, &map->given);
	if (ret)
		goto unmap;
	if (!nda_peer_add_map(peer, map)) {
		ret = -ENODEV;
		goto free_given;
	}
	*sgt = map->given;
	*nmap = map->given.nents;
	return 0;

free_given:
	sg_free_table(&map->given);
unmap:
	nda_peer_unmap(peer, map);
free:
	kfree(map);
	return ret;
}

static int nda_peer_dma_unmap(struct sg_table *sgt, void *context, struct device *dev)
{
	struct nda_peer *peer = context;
	struct nda_peer_map *map;

	mutex_lock(&peer->lock);
	list_for_each_entry(map, &peer->maps, link) {
		if (map->given.sgl != sgt->sgl || map->dev != dev)
			continue;
		nda_peer_end_map(peer, map);
		memset(sgt, 0, sizeof(*sgt));
		break;
	}
	mutex_unlock(&peer->lock);
	return 0;
}

/* What is mapped is cut to whole pages of the kernel's: there is nothing for the core to
 * trim. */
static unsigned long nda_peer_get_page_size(void *context)
{
	return PAGE_SIZE;
}

/* ---- The range --------------------------------------------------------------------------
 */

static void nda_peer_unref(struct nda_peer *peer)
{
	if (refcount_dec_and_test(&peer->refs))
		kfree(peer);
}

/* A range of the second client's is revoked only with its NPU: its queues are not asked. */
static void nda_peer_revoke(void *priv, u32 reason)
{
	struct nda_peer *peer = priv;
	struct nda_peer_map *map;

	if (!peer->client->invalidate)
		return;
	peer->client->invalidate(peer->client->handle, peer->core_context);
	mutex_lock(&peer->lock);
	peer->revoked = true;
	list_for_each_entry(map, &peer->maps, link)
		nda_peer_unmap(peer, map);
	mutex_unlock(&peer->lock);
}

static void nda_peer_ended(void *priv)
{
	nda_peer_unref(priv);
}

static const struct nda_mem_user nda_peer_user = {
	.owner = THIS_MODULE,
	.revoke = nda_peer_revoke,
	.ended = nda_peer_ended,
};

/* Whether a range can be registered as the core would. */
static int nda_peer_check(const struct nda_peer *peer, unsigned long addr)
{
	/* The core takes the first page to begin at the kernel's page boundary before addr.
	 */
	if (nda_mem_offset(peer->mem) != offset_in_page(addr))
		return -EINVAL;
	return peer->client->invalidate || nda_mem_pinned(peer->mem) ? 0 : -EOPNOTSUPP;
}

static void nda_peer_put_mem(struct nda_peer *peer)
{
	struct nda_peer_map *map, *next;
	struct nda_mem *mem;

	mutex_lock(&peer->lock);
	list_for_each_entry_safe(map, next, &peer->maps, link)
		nda_peer_end_map(peer, map);
	mem = peer->mem;
	peer->mem = NULL;
	mutex_unlock(&peer->lock);
	if (mem)
		nda_mem_put_async(mem);
}

/*
 * In the process that registers. From here on it may be revoked. The core's lock, which it
 * holds until the device is ready to let go, has a revocation wait until then.
 */
static int nda_peer_get_pages(unsigned long addr, size_t size, int write, int force,
			      struct sg_table *sgt, void *context, u64 core_context)
{
	struct nda_peer *peer = context;
	struct nda_mem *mem;
	int ret;

	/* Once: a revocation of an earlier range might take the number for its own. */
	if (peer->got)
		return -EBUSY;
	peer->got = true;
	peer->core_context = core_context;
	mem = nda_mem_get(addr, size, &nda_peer_user, peer);
	if (IS_ERR(mem))
		return PTR_ERR(mem);
	refcount_inc(&peer->refs);
	mutex_lock(&peer->lock);
	peer->mem = mem;
	mutex_unlock(&peer->lock);
	ret = nda_peer_check(peer, addr);
	if (ret)
		nda_peer_put_mem(peer);
	return ret;
}

static void nda_peer_put_pages(struct sg_table *sgt, void *context)
{
	nda_peer_put_mem(context);
}

/* ---- Contexts ---------------------------------------------------------------------------
 */

/*
 * Whether the memory is an NPU's, by a look at it: the core has all registrations of the
 * system wait for this.
 */
static int nda_peer_acquire(struct nda_peer_client *client, u64 addr, u64 size, void **context)
{
	struct nda_peer *peer;

	/* Pairs with the release in nda_peer_register(). */
	if (!smp_load_acquire(&client->handle) || !try_module_get(THIS_MODULE))
		return 0;
	peer = kzalloc(sizeof(*peer), GFP_KERNEL_ACCOUNT);
	if (!peer) {
		module_put(THIS_MODULE);
		return 0;
	}
	refcount_set(&peer->refs, 1);
	peer->client = client;
	mutex_init(&peer->lock);
	INIT_LIST_HEAD(&peer->maps);
	*context = peer;
	return 1;
}

/* The core holds its client until this has returned, and unregistering waits for that. */
static void nda_peer_release(void *context)
{
	nda_peer_put_mem(context);
	nda_peer_unref(context);
	module_put(THIS_MODULE);
}

static struct nda_peer_client nda_peer_mrs, nda_peer_queues;

static int nda_peer_acquire_mr(unsigned long addr, size_t size, void *priv, char *name,
			       void **context)
{
	if (!nda_mem_covers(addr, size, 0))
		return 0;
	return nda_peer_acquire(&nda_peer_mrs, addr, size, context);
}

static int nda_peer_acquire_queue(unsigned long addr, size_t size, void *priv, char *name,
				  void **context)
{
	if (nda_mem_covers(addr, size, NDA_BACKEND_PINS))
		return nda_peer_acquire(&nda_peer_queues, addr, size, context);
	if (nda_mem_covers(addr, size, 0))
		pr_notice_ratelimited(
			"process %d: no queue in NPU memory that its driver does not pin\n",
			current->tgid);
	return 0;
}

static struct nda_peer_client nda_peer_mrs = {
	.ex.client = { .name = "nda", .acquire = nda_peer_acquire_mr },
};

static struct nda_peer_client nda_peer_queues = {
	.ex.client = { .name = "nda_queues", .acquire = nda_peer_acquire_queue },
};

static int nda_peer_register(struct nda_peer_client *peer_client,
			     invalidate_peer_memory *invalidate)
{
	struct peer_memory_client *client = &peer_client->ex.client;
	void *handle;

	client->get_pages = nda_peer_get_pages;
	client->dma_map = nda_peer_dma_map;
	client->dma_unmap = nda_peer_dma_unmap;
	client->put_pages = nda_peer_put_pages;
	client->get_page_size = nda_peer_get_page_size;
	client->release = nda_peer_release;
	strscpy(client->version, NDA_VERSION, IB_PEER_MEMORY_VER_MAX - 1);
	client->version[IB_PEER_MEMORY_VER_MAX - 1] = 1;
	peer_client->ex.ex_size = sizeof(peer_client->ex);
	peer_client->ex.flags = PEER_MEM_INVALIDATE_UNMAPS;
	handle = ib_register_peer_memory_client(client, invalidate);
	if (IS_ERR_OR_NULL(handle)) {
		pr_err("the RDMA core does not take the client %s\n", client->name);
		return -EINVAL;
	}
	/* Pairs with the acquire in nda_peer_acquire(): by then @invalidate is there, too.
	 */
	smp_store_release(&peer_client->handle, handle);
	return 0;
}

/* ---- The module -------------------------------------------------------------------------
 */

static u32 nda_peer_why(void)
{
	return NDA_WHY_OK;
}

static u32 nda_peer_why_queues(void)
{
	return nda_mem_can_pin() ? NDA_WHY_OK : NDA_WHY_NO_PINNING;
}

static int __init nda_peer_init(void)
{
	int ret;

	/* In this order: whichever memory may go is to be the first client's. */
	ret = nda_peer_register(&nda_peer_mrs, &nda_peer_mrs.invalidate);
	if (ret)
		return ret;
	ret = nda_peer_register(&nda_peer_queues, NULL);
	if (ret)
		goto unregister_mrs;
	ret = nda_part_register(NDA_PART_PEERMEM, nda_peer_why);
	if (ret)
		goto unregister_queues;
	ret = nda_part_register(NDA_PART_PEERMEM_QUEUES, nda_peer_why_queues);
	if (ret)
		goto unregister_part;
	return 0;

unregister_part:
	nda_part_unregister(NDA_PART_PEERMEM);
unregister_queues:
	ib_unregister_peer_memory_client(nda_peer_queues.handle);
unregister_mrs:
	ib_unregister_peer_memory_client(nda_peer_mrs.handle);
	return ret;
}
module_init(nda_peer_init);

static void __exit nda_peer_exit(void)
{
	nda_part_unregister(NDA_PART_PEERMEM_QUEUES);
	nda_part_unregister(NDA_PART_PEERMEM);
	ib_unregister_peer_memory_client(nda_peer_queues.handle);
	ib_unregister_peer_memory_client(nda_peer_mrs.handle);
}
module_exit(nda_peer_exit);

MODULE_DESCRIPTION("NPU Direct Async: NPU memory by the RDMA core's peer-memory interface");
MODULE_LICENSE("GPL");
MODULE_VERSION(NDA_VERSION);
