// SPDX-License-Identifier: GPL-2.0
/*
 * Stands in for the RDMA core's side of the peer-memory interface, and for a driver above it.
 *
 * As in the core: memory is pinned as the process's own first, and clients are asked about
 * what cannot be. A memory's lock is held from before get_pages() until the driver is ready to
 * let go of it, and by every other call but acquire() and release(). Whoever invalidates
 * names memory by a number, takes the lock, has the driver let go, and holds the memory
 * meanwhile: its end may be the last one, and release() be called from there.
 *
 * With the parameter old=1 the core does not know PEER_MEM_INVALIDATE_UNMAPS.
 */
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <linux/xarray.h>
#include <rdma/peer_mem.h>

#include "nda_test_edu.h"
#include "nda_test_peer.h"

static bool old;
module_param(old, bool, 0644);
MODULE_PARM_DESC(old, "unmap and put when memory is invalidated, whatever the client asks for");

/* Outside of all other locks: the list of clients. */
static DEFINE_MUTEX(clients_lock);
static LIST_HEAD(clients);

static atomic_t umems, held, told, revoked, stale, by_client, wrong;
static DECLARE_WAIT_QUEUE_HEAD(go_queue);
static atomic_t go = ATOMIC_INIT(0);

struct client {
	struct list_head link;
	struct kref ref;
	struct completion unused;
	const struct peer_memory_client *ops;
	u32 flags;
	bool invalidates;
	struct xarray umems; /* struct umem by core_context */
	u32 next;
};

enum umem_state { UMEM_UNMAPPED, UMEM_MAPPED, UMEM_INVALIDATED };

struct umem {
	struct kref ref;
	struct client *client; /* NULL: pages of the process */
	void *context;
	u32 id;
	u64 va, len;
	struct pci_dev *pdev, *second; /* either may be NULL */
	struct mutex lock;
	enum umem_state state;
	struct sg_table sgt, second_sgt;
	int nmap;
	struct page **pages;
	u32 count;
};

static struct device *umem_device(struct umem *umem)
{
	return umem->pdev ? &umem->pdev->dev : NULL;
}

/* ---- The interface ---------------------------------------------------------------------- */

static void client_release(struct kref *ref)
{
	complete(&container_of(ref, struct client, ref)->unused);
}

static void umem_release(struct kref *ref)
{
	struct umem *umem = container_of(ref, struct umem, ref);

	if (umem->client) {
		umem->client->ops->release(umem->context);
		kref_put(&umem->client->ref, client_release);
		atomic_dec(&umems);
	}
	pci_dev_put(umem->second);
	pci_dev_put(umem->pdev);
	kfree(umem);
}

static void umem_unmap_dma(struct umem *umem)
{
	const struct peer_memory_client *ops = umem->client->ops;

	if (ops->dma_unmap(&umem->sgt, umem->context, umem_device(umem)))
		atomic_inc(&wrong);
	if (umem->second && ops->dma_unmap(&umem->second_sgt, umem->context, &umem->second->dev))
		atomic_inc(&wrong);
}

static void umem_unmap_client(struct umem *umem)
{
	umem_unmap_dma(umem);
	umem->client->ops->put_pages(&umem->sgt, umem->context);
}

static int invalidate(void *handle, u64 core_context)
{
	struct client *client = handle;
	struct umem *umem;

	atomic_inc(&told);
	xa_lock(&client->umems);
	umem = xa_load(&client->umems, core_context);
	if (umem)
		kref_get(&umem->ref);
	xa_unlock(&client->umems);
	if (!umem) {
		atomic_inc(&stale);
		return 0;
	}
	mutex_lock(&umem->lock);
	if (umem->state == UMEM_MAPPED) {
		umem->state = UMEM_INVALIDATED;
		atomic_inc(&revoked);
		if (old || !(client->flags & PEER_MEM_INVALIDATE_UNMAPS)) {
			umem_unmap_client(umem);
			umem->state = UMEM_UNMAPPED;
		}
	}
	mutex_unlock(&umem->lock);
	kref_put(&umem->ref, umem_release);
	return 0;
}

static u32 client_flags(const struct peer_memory_client *ops)
{
	const struct peer_memory_client_ex *ex =
		container_of(ops, struct peer_memory_client_ex, client);

	if (ops->version[IB_PEER_MEMORY_VER_MAX - 1] != 1)
		return 0;
	return ex->ex_size >= sizeof(*ex) ? ex->flags : 0;
}

void *ib_register_peer_memory_client(const struct peer_memory_client *ops,
				     invalidate_peer_memory *callback)
{
	struct client *client;

	if (!ops->acquire || !ops->get_pages || !ops->dma_map || !ops->dma_unmap ||
	    !ops->put_pages || !ops->get_page_size || !ops->release)
		return NULL;
	if (strnlen(ops->name, IB_PEER_MEMORY_NAME_MAX) == IB_PEER_MEMORY_NAME_MAX ||
	    strnlen(ops->version, IB_PEER_MEMORY_VER_MAX - 1) == IB_PEER_MEMORY_VER_MAX - 1)
		return NULL;
	client = kzalloc(sizeof(*client), GFP_KERNEL);
	if (!client)
		return NULL;
	kref_init(&client->ref);
	init_completion(&client->unused);
	xa_init_flags(&client->umems, XA_FLAGS_ALLOC1);
	client->ops = ops;
	client->flags = client_flags(ops);
	client->invalidates = callback;
	if (callback)
		*callback = invalidate;
	mutex_lock(&clients_lock);
	list_add_tail(&client->link, &clients);
	mutex_unlock(&clients_lock);
	return client;
}
EXPORT_SYMBOL(ib_register_peer_memory_client);

void ib_unregister_peer_memory_client(void *handle)
{
	struct client *client = handle;

	mutex_lock(&clients_lock);
	list_del(&client->link);
	mutex_unlock(&clients_lock);
	kref_put(&client->ref, client_release);
	wait_for_completion(&client->unused);
	WARN_ON(!xa_empty(&client->umems));
	kfree(client);
}
EXPORT_SYMBOL(ib_unregister_peer_memory_client);

/* ---- Registering ------------------------------------------------------------------------ */

static int umem_pin(struct umem *umem)
{
	u64 begin = round_down(umem->va, PAGE_SIZE);
	int ret, got;

	umem->count = (PAGE_ALIGN(umem->va + umem->len) - begin) >> PAGE_SHIFT;
	umem->pages = kvcalloc(umem->count, sizeof(*umem->pages), GFP_KERNEL);
	if (!umem->pages)
		return -ENOMEM;
	got = pin_user_pages_fast(begin, umem->count, FOLL_WRITE | FOLL_LONGTERM, umem->pages);
	if (got != umem->count) {
		if (got > 0)
			unpin_user_pages(umem->pages, got);
		ret = got < 0 ? got : -EFAULT;
		goto free;
	}
	ret = sg_alloc_table_from_pages(&umem->sgt, umem->pages, umem->count, 0,
					(u64)umem->count << PAGE_SHIFT, GFP_KERNEL);
	if (ret)
		goto unpin;
	ret = dma_map_sgtable(umem_device(umem), &umem->sgt, DMA_BIDIRECTIONAL, 0);
	if (ret)
		goto free_table;
	umem->nmap = umem->sgt.nents;
	umem->state = UMEM_MAPPED;
	return 0;

free_table:
	sg_free_table(&umem->sgt);
unpin:
	unpin_user_pages(umem->pages, umem->count);
free:
	kvfree(umem->pages);
	umem->pages = NULL;
	return ret;
}

static void umem_unpin(struct umem *umem)
{
	dma_unmap_sgtable(umem_device(umem), &umem->sgt, DMA_BIDIRECTIONAL, 0);
	sg_free_table(&umem->sgt);
	unpin_user_pages_dirty_lock(umem->pages, umem->count, true);
	kvfree(umem->pages);
}

static bool umem_acquire(struct umem *umem, bool queue)
{
	struct client *client;

	mutex_lock(&clients_lock);
	list_for_each_entry(client, &clients, link) {
		if (client->invalidates && queue)
			continue;
		if (client->ops->acquire(umem->va, umem->len, NULL, NULL, &umem->context) == 1) {
			kref_get(&client->ref);
			umem->client = client;
			break;
		}
	}
	mutex_unlock(&clients_lock);
	return umem->client;
}

/* Whole pages around what was asked for, with both lengths, and nothing to be trimmed. */
static bool umem_is_right(struct umem *umem)
{
	u64 bytes = PAGE_ALIGN(umem->va + umem->len) - round_down(umem->va, PAGE_SIZE);
	struct scatterlist *sg;
	int i;

	if (umem->client->ops->get_page_size(umem->context) != PAGE_SIZE ||
	    umem->nmap != umem->sgt.nents)
		return false;
	for_each_sgtable_dma_sg(&umem->sgt, sg, i) {
		if (!sg_dma_len(sg) || sg->length != sg_dma_len(sg) || sg->offset ||
		    !PAGE_ALIGNED(sg_dma_address(sg) | sg_dma_len(sg)))
			return false;
		bytes -= sg_dma_len(sg);
	}
	return !bytes;
}

static int umem_map_second(struct umem *umem)
{
	int nmap;

	if (!umem->second)
		return 0;
	return umem->client->ops->dma_map(&umem->second_sgt, umem->context, &umem->second->dev, 0,
					  &nmap);
}

static int umem_hold(void)
{
	int begin = atomic_read(&go), ret;

	atomic_inc(&held);
	ret = wait_event_killable(go_queue, atomic_read(&go) != begin);
	atomic_dec(&held);
	return ret;
}

/* With the lock held. */
static int umem_map_client(struct umem *umem, u32 flags)
{
	const struct peer_memory_client *ops = umem->client->ops;
	u64 core_context = umem->client->invalidates ? umem->id : U32_MAX;
	int ret;

	ret = ops->get_pages(umem->va, umem->len, 1, 0, NULL, umem->context, core_context);
	if (ret)
		return ret;
	if (flags & NDA_TEST_PEER_HOLD_MAP)
		ret = umem_hold();
	if (!ret)
		ret = ops->dma_map(&umem->sgt, umem->context, umem_device(umem), 0, &umem->nmap);
	if (ret) {
		ops->put_pages(&umem->sgt, umem->context);
		return ret;
	}
	umem->state = UMEM_MAPPED;
	ret = umem_map_second(umem);
	if (!umem_is_right(umem)) {
		pr_err("wrong mapping of [%#llx, +%#llx)\n", umem->va, umem->len);
		atomic_inc(&wrong);
		ret = -EPROTO;
	}
	if (!ret && flags & NDA_TEST_PEER_HOLD_READY)
		ret = umem_hold();
	if (ret) {
		umem_unmap_client(umem);
		umem->state = UMEM_UNMAPPED;
	}
	return ret;
}

static int umem_from_client(struct umem *umem, u32 flags)
{
	int ret = 0;

	atomic_inc(&umems);
	mutex_lock(&umem->lock);
	if (umem->client->invalidates)
		ret = xa_alloc_cyclic(&umem->client->umems, &umem->id, umem, xa_limit_32b,
				      &umem->client->next, GFP_KERNEL);
	if (ret >= 0)
		ret = umem_map_client(umem, flags);
	if (ret && umem->id)
		xa_erase(&umem->client->umems, umem->id);
	mutex_unlock(&umem->lock);
	if (!ret)
		atomic_inc(&by_client);
	return ret;
}

static struct pci_dev *umem_find_device(u32 devfn)
{
	struct pci_dev *pdev = pci_get_domain_bus_and_slot(0, 0, devfn);

	if (pdev && (pdev->vendor != 0x1234 || pdev->device != 0x11e8)) {
		pci_dev_put(pdev);
		pdev = NULL;
	}
	return pdev;
}

static struct umem *umem_register(const struct nda_test_peer_reg *arg)
{
	struct umem *umem = kzalloc(sizeof(*umem), GFP_KERNEL);
	int ret = -ENODEV;

	if (!umem)
		return ERR_PTR(-ENOMEM);
	kref_init(&umem->ref);
	mutex_init(&umem->lock);
	umem->va = arg->va;
	umem->len = arg->len;
	umem->pdev = umem_find_device(arg->devfn);
	if (!umem->pdev && arg->devfn != 255)
		goto put;
	if (arg->flags & NDA_TEST_PEER_TWO) {
		umem->second = umem_find_device(arg->devfn + PCI_DEVFN(1, 0));
		if (!umem->second)
			goto put;
	}
	ret = umem->pdev ? umem_pin(umem) : -EFAULT;
	if (ret && umem_acquire(umem, arg->flags & NDA_TEST_PEER_QUEUE))
		ret = umem_from_client(umem, arg->flags);
	if (!ret)
		return umem;
put:
	kref_put(&umem->ref, umem_release);
	return ERR_PTR(ret);
}

static void umem_deregister(struct umem *umem, u32 flags)
{
	const struct peer_memory_client *ops;

	if (!umem->client) {
		umem_unpin(umem);
		kref_put(&umem->ref, umem_release);
		return;
	}
	ops = umem->client->ops;
	mutex_lock(&umem->lock);
	if (umem->state != UMEM_UNMAPPED || flags & NDA_TEST_PEER_TWICE) {
		if (!(flags & NDA_TEST_PEER_NO_UNMAP))
			umem_unmap_dma(umem);
		if (!(flags & NDA_TEST_PEER_NO_PUT))
			ops->put_pages(&umem->sgt, umem->context);
		if (flags & NDA_TEST_PEER_TWICE)
			umem_unmap_client(umem);
	}
	umem->state = UMEM_UNMAPPED;
	mutex_unlock(&umem->lock);
	if (umem->id)
		xa_erase(&umem->client->umems, umem->id);
	kref_put(&umem->ref, umem_release);
}

/* ---- The device ------------------------------------------------------------------------- */

static int peer_reg(struct xarray *files_umems, struct nda_test_peer_reg *arg)
{
	struct umem *umem = umem_register(arg);
	int ret;

	if (IS_ERR(umem))
		return PTR_ERR(umem);
	ret = xa_alloc(files_umems, &arg->handle, umem, xa_limit_32b, GFP_KERNEL);
	if (ret) {
		umem_deregister(umem, 0);
		return ret;
	}
	arg->client = NDA_TEST_PEER_BY_CORE;
	if (umem->client)
		arg->client =
			umem->client->invalidates ? NDA_TEST_PEER_BY_MRS : NDA_TEST_PEER_BY_QUEUES;
	arg->pieces = umem->nmap;
	return 0;
}

static int peer_dereg(struct xarray *files_umems, const struct nda_test_peer_dereg *arg)
{
	struct umem *umem = xa_erase(files_umems, arg->handle);

	if (!umem)
		return -ENOENT;
	umem_deregister(umem, arg->flags);
	return 0;
}

/* As a NIC would with the memory's key: none is left once it was invalidated. */
static int umem_dma(struct umem *umem, const struct nda_test_peer_dma *arg, void *buffer)
{
	int ret = -EKEYREVOKED;

	mutex_lock(&umem->lock);
	if (arg->offset > umem->len || arg->len > umem->len - arg->offset)
		ret = -ERANGE;
	else if (umem->state == UMEM_MAPPED)
		ret = nda_test_edu_dma(umem_device(umem), &umem->sgt,
				       offset_in_page(umem->va) + arg->offset, buffer, arg->len,
				       arg->flags & NDA_TEST_PEER_WRITE);
	mutex_unlock(&umem->lock);
	return ret;
}

static struct umem *umem_find(struct xarray *files_umems, u32 handle)
{
	struct umem *umem;

	xa_lock(files_umems);
	umem = xa_load(files_umems, handle);
	if (umem)
		kref_get(&umem->ref);
	xa_unlock(files_umems);
	return umem;
}

static int peer_dma(struct xarray *files_umems, const struct nda_test_peer_dma *arg)
{
	void __user *data = (void __user *)arg->data;
	bool write = arg->flags & NDA_TEST_PEER_WRITE;
	struct umem *umem;
	void *buffer;
	int ret = 0;

	if (!arg->len || arg->len > 2048)
		return -EINVAL;
	buffer = kzalloc(arg->len, GFP_KERNEL);
	if (!buffer)
		return -ENOMEM;
	umem = umem_find(files_umems, arg->handle);
	if (!umem)
		ret = -ENOENT;
	if (!ret && write && copy_from_user(buffer, data, arg->len))
		ret = -EFAULT;
	if (!ret)
		ret = umem_dma(umem, arg, buffer);
	if (!ret && !write && copy_to_user(data, buffer, arg->len))
		ret = -EFAULT;
	if (umem)
		kref_put(&umem->ref, umem_release);
	kfree(buffer);
	return ret;
}

static void peer_state(struct nda_test_peer_state *state)
{
	struct client *client;

	*state = (struct nda_test_peer_state){
		.umems = atomic_read(&umems),
		.held = atomic_read(&held),
		.told = atomic_read(&told),
		.revoked = atomic_read(&revoked),
		.stale = atomic_read(&stale),
		.by_client = atomic_read(&by_client),
		.wrong = atomic_read(&wrong),
	};
	mutex_lock(&clients_lock);
	list_for_each_entry(client, &clients, link)
		state->clients++;
	mutex_unlock(&clients_lock);
}

static long peer_ioctl(struct file *filp, unsigned int cmd, unsigned long user)
{
	struct xarray *files_umems = filp->private_data;
	void __user *at = (void __user *)user;
	union {
		struct nda_test_peer_reg reg;
		struct nda_test_peer_dereg dereg;
		struct nda_test_peer_dma dma;
		struct nda_test_peer_state state;
	} arg;
	int ret = 0;

	if (_IOC_SIZE(cmd) > sizeof(arg))
		return -ENOTTY;
	if (_IOC_DIR(cmd) & _IOC_WRITE && copy_from_user(&arg, at, _IOC_SIZE(cmd)))
		return -EFAULT;
	switch (cmd) {
	case NDA_TEST_PEER_REG:
		ret = peer_reg(files_umems, &arg.reg);
		break;
	case NDA_TEST_PEER_DEREG:
		ret = peer_dereg(files_umems, &arg.dereg);
		break;
	case NDA_TEST_PEER_DMA:
		ret = peer_dma(files_umems, &arg.dma);
		break;
	case NDA_TEST_PEER_STATE:
		peer_state(&arg.state);
		break;
	case NDA_TEST_PEER_GO:
		atomic_inc(&go);
		wake_up_all(&go_queue);
		break;
	default:
		return -ENOTTY;
	}
	if (!ret && _IOC_DIR(cmd) & _IOC_READ && copy_to_user(at, &arg, _IOC_SIZE(cmd)))
		ret = -EFAULT;
	return ret;
}

static int peer_open(struct inode *inode, struct file *filp)
{
	struct xarray *files_umems = kzalloc(sizeof(*files_umems), GFP_KERNEL);

	if (!files_umems)
		return -ENOMEM;
	xa_init_flags(files_umems, XA_FLAGS_ALLOC1);
	filp->private_data = files_umems;
	return 0;
}

static int peer_release(struct inode *inode, struct file *filp)
{
	struct xarray *files_umems = filp->private_data;
	struct umem *umem;
	unsigned long handle;

	xa_for_each(files_umems, handle, umem)
		umem_deregister(umem, 0);
	xa_destroy(files_umems);
	kfree(files_umems);
	return 0;
}

static const struct file_operations peer_fops = {
	.owner = THIS_MODULE,
	.open = peer_open,
	.release = peer_release,
	.unlocked_ioctl = peer_ioctl,
};

static struct miscdevice peer_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "nda_test_peer",
	.fops = &peer_fops,
};
module_misc_device(peer_misc);

MODULE_DESCRIPTION("stands in for an RDMA core with peer-memory interface");
MODULE_LICENSE("GPL");
