// SPDX-License-Identifier: GPL-2.0
/*
 * Imports dma-bufs for QEMU's edu device and moves their bytes by its DMA engine, which takes
 * 100 ms for each transfer. It lets go when it is told to, once a transfer has ended, as
 * importers should; or it does not, or cannot.
 */
#include <linux/delay.h>
#include <linux/dma-buf.h>
#include <linux/dma-fence.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/io.h>
#include <linux/iopoll.h>
#include <linux/kref.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "nda_test_importer.h"

#define EDU_DMA_SRC 0x80
#define EDU_DMA_DST 0x88
#define EDU_DMA_COUNT 0x90
#define EDU_DMA_CMD 0x98
#define EDU_DMA_START 1
#define EDU_DMA_TO_MEMORY 2
#define EDU_BUFFER 0x40000
/* A transfer to the very end of the buffer of 4096 bytes ends QEMU. */
#define EDU_MAX 2048

/* A device; open files hold it beyond its driver. */
struct edu {
	struct kref ref;
	struct pci_dev *pdev;
	void __iomem *regs;
	struct mutex lock; /* one transfer at a time; guards regs, gone once it is NULL */
	struct miscdevice misc;
	char name[40];
	struct list_head files;
};

/* Outside of all other locks: what is open and attached. */
static DEFINE_MUTEX(files_lock);

struct importer {
	struct edu *edu;
	struct list_head link;
	struct dma_buf *dmabuf;
	struct dma_buf_attachment *attach; /* with it, under files_lock */
	struct dma_fence *fence; /* of what the device does, under files_lock */
	u32 flags;
	/* Under the dma-buf's lock. */
	bool pinned;
	bool busy;
	struct sg_table *sgt;
	u32 told;
	u32 count;
	struct piece {
		dma_addr_t addr;
		u64 len;
	} * pieces; /* of the last mapping */
	wait_queue_head_t idle;
};

static void edu_release(struct kref *ref)
{
	struct edu *edu = container_of(ref, struct edu, ref);

	pci_dev_put(edu->pdev);
	kfree(edu);
}

static int edu_transfer(struct edu *edu, dma_addr_t address, u32 len, u32 direction)
{
	u64 command;

	writeq(direction ? EDU_BUFFER : address, edu->regs + EDU_DMA_SRC);
	writeq(direction ? address : EDU_BUFFER, edu->regs + EDU_DMA_DST);
	writeq(len, edu->regs + EDU_DMA_COUNT);
	writeq(EDU_DMA_START | direction, edu->regs + EDU_DMA_CMD);
	return readq_poll_timeout(edu->regs + EDU_DMA_CMD, command, !(command & EDU_DMA_START),
				  1000, 10 * USEC_PER_SEC);
}

static enum dma_data_direction importer_dir(const struct importer *importer)
{
	return importer->flags & NDA_TEST_READ ? DMA_TO_DEVICE : DMA_BIDIRECTIONAL;
}

static void importer_unmap(struct importer *importer)
{
	if (importer->sgt)
		dma_buf_unmap_attachment(importer->attach, importer->sgt, importer_dir(importer));
	importer->sgt = NULL;
	if (importer->pinned)
		dma_buf_unpin(importer->attach);
	importer->pinned = false;
}

/* The dma-buf's lock is held. */
static void importer_told(struct dma_buf_attachment *attach)
{
	struct importer *importer = attach->importer_priv;

	importer->told++;
	if (importer->flags & (NDA_TEST_IGNORE | NDA_TEST_PIN))
		return;
	if (importer->flags & NDA_TEST_SLOW)
		msleep(300);
	wait_event(importer->idle, !READ_ONCE(importer->busy));
	importer_unmap(importer);
}

static const struct dma_buf_attach_ops p2p_ops = {
	.allow_peer2peer = true,
	.NDA_INVALIDATE = importer_told,
};

static const struct dma_buf_attach_ops no_p2p_ops = {
	.NDA_INVALIDATE = importer_told,
};

/* One that pins: newer kernels tell it by what it lacks, older ones insist that it has it. */
static const struct dma_buf_attach_ops pin_ops = {
	.allow_peer2peer = true,
#ifndef HAVE_DMABUF_REVOCABLE
	.NDA_INVALIDATE = importer_told,
#endif
};

static int importer_attach(struct importer *importer, const struct nda_test_attach *arg)
{
	const struct dma_buf_attach_ops *ops = &p2p_ops;
	struct dma_buf *dmabuf;

	if (importer->attach)
		return -EBUSY;
	dmabuf = dma_buf_get(arg->fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	importer->flags = arg->flags;
	if (arg->flags & NDA_TEST_NO_P2P)
		ops = &no_p2p_ops;
	if (arg->flags & NDA_TEST_PIN)
		ops = &pin_ops;
	if (arg->flags & NDA_TEST_STATIC)
		ops = NULL;
	importer->attach = dma_buf_dynamic_attach(dmabuf, &importer->edu->pdev->dev, ops, importer);
	if (IS_ERR(importer->attach)) {
		int ret = PTR_ERR(importer->attach);

		importer->attach = NULL;
		dma_buf_put(dmabuf);
		return ret;
	}
	importer->dmabuf = dmabuf;
	return 0;
}

static int importer_remember(struct importer *importer)
{
	struct scatterlist *sg;
	int i;

	kvfree(importer->pieces);
	importer->count = importer->sgt->nents;
	importer->pieces = kvcalloc(importer->count, sizeof(*importer->pieces), GFP_KERNEL);
	if (!importer->pieces) {
		importer->count = 0;
		return -ENOMEM;
	}
	for_each_sgtable_dma_sg(importer->sgt, sg, i)
		importer->pieces[i] = (struct piece){ sg_dma_address(sg), sg_dma_len(sg) };
	return 0;
}

static int importer_map_locked(struct importer *importer)
{
	struct sg_table *sgt;
	int ret;

	if (importer->sgt)
		return -EBUSY;
	if (importer->flags & NDA_TEST_PIN) {
		ret = dma_buf_pin(importer->attach);
		if (ret)
			return ret;
		importer->pinned = true;
	}
	sgt = dma_buf_map_attachment(importer->attach, importer_dir(importer));
	ret = PTR_ERR_OR_ZERO(sgt);
	if (!ret) {
		importer->sgt = sgt;
		ret = importer_remember(importer);
	}
	if (ret)
		importer_unmap(importer);
	return ret;
}

static int importer_map(struct importer *importer)
{
	int ret;

	if (!importer->attach)
		return -EINVAL;
	dma_resv_lock(importer->dmabuf->resv, NULL);
	ret = importer_map_locked(importer);
	dma_resv_unlock(importer->dmabuf->resv);
	return ret;
}

static int importer_let_go(struct importer *importer)
{
	if (!importer->attach)
		return -EINVAL;
	dma_resv_lock(importer->dmabuf->resv, NULL);
	importer_unmap(importer);
	dma_resv_unlock(importer->dmabuf->resv);
	return 0;
}

static const char *fence_name(struct dma_fence *fence)
{
	return "nda_test_importer";
}

static const struct dma_fence_ops fence_ops = {
	.get_driver_name = fence_name,
	.get_timeline_name = fence_name,
};

/* Up to 5.18 fences of the dma-buf have no use but reading and writing. */
static int importer_add_fence(struct dma_resv *resv, struct dma_fence *fence)
{
#ifdef HAVE_RESV_WAIT_USAGE
	int ret = dma_resv_reserve_fences(resv, 1);

	if (!ret)
		dma_resv_add_fence(resv, fence, DMA_RESV_USAGE_BOOKKEEP);
#else
	int ret = dma_resv_reserve_shared(resv, 1);

	if (!ret)
		dma_resv_add_shared_fence(resv, fence);
#endif
	return ret;
}

static int importer_begin(struct importer *importer)
{
	static DEFINE_SPINLOCK(lock);
	struct dma_fence *fence;
	int ret;

	if (!importer->attach || importer->fence)
		return -EINVAL;
	fence = kzalloc(sizeof(*fence), GFP_KERNEL);
	if (!fence)
		return -ENOMEM;
	dma_fence_init(fence, &fence_ops, &lock, dma_fence_context_alloc(1), 1);
	dma_resv_lock(importer->dmabuf->resv, NULL);
	ret = importer_add_fence(importer->dmabuf->resv, fence);
	dma_resv_unlock(importer->dmabuf->resv);
	if (ret)
		dma_fence_put(fence);
	else
		importer->fence = fence;
	return ret;
}

static int importer_end(struct importer *importer)
{
	if (!importer->fence)
		return -EINVAL;
	dma_fence_signal(importer->fence);
	dma_fence_put(importer->fence);
	importer->fence = NULL;
	return 0;
}

static int importer_detach(struct importer *importer)
{
	int ret;

	importer_end(importer);
	ret = importer_let_go(importer);
	if (ret)
		return ret;
	dma_buf_detach(importer->dmabuf, importer->attach);
	dma_buf_put(importer->dmabuf);
	importer->attach = NULL;
	importer->dmabuf = NULL;
	return 0;
}

static int importer_find(const struct importer *importer, u64 offset, u32 len, dma_addr_t *addr)
{
	u32 i;

	for (i = 0; i < importer->count; i++) {
		const struct piece *piece = &importer->pieces[i];

		if (offset < piece->len) {
			*addr = piece->addr + offset;
			return len <= piece->len - offset ? 0 : -ERANGE;
		}
		offset -= piece->len;
	}
	return -ERANGE;
}

/* Between the device's buffer and the dma-buf's memory. */
static int importer_transfer(struct importer *importer, const struct nda_test_dma *arg)
{
	u32 direction = arg->flags & NDA_TEST_WRITE ? EDU_DMA_TO_MEMORY : 0;
	struct dma_resv *resv = importer->dmabuf->resv;
	dma_addr_t addr;
	int ret;

	dma_resv_lock(resv, NULL);
	ret = importer->sgt || arg->flags & NDA_TEST_STALE ? 0 : -ENODEV;
	if (!ret)
		ret = importer_find(importer, arg->offset, arg->len, &addr);
	if (!ret)
		WRITE_ONCE(importer->busy, true);
	dma_resv_unlock(resv);
	if (ret)
		return ret;
	ret = edu_transfer(importer->edu, addr, arg->len, direction);
	WRITE_ONCE(importer->busy, false);
	wake_up(&importer->idle);
	return ret;
}

static int importer_dma(struct importer *importer, const struct nda_test_dma *arg)
{
	struct edu *edu = importer->edu;
	void __user *data = (void __user *)arg->data;
	dma_addr_t addr;
	void *buffer;
	int ret = 0;

	if (!importer->dmabuf || !arg->len || arg->len > EDU_MAX)
		return -EINVAL;
	mutex_lock(&edu->lock);
	if (!edu->regs) {
		ret = -ENODEV;
		goto unlock;
	}
	buffer = dma_alloc_coherent(&edu->pdev->dev, EDU_MAX, &addr, GFP_KERNEL);
	if (!buffer) {
		ret = -ENOMEM;
		goto unlock;
	}
	if (arg->flags & NDA_TEST_WRITE) {
		if (copy_from_user(buffer, data, arg->len))
			ret = -EFAULT;
		if (!ret)
			ret = edu_transfer(edu, addr, arg->len, 0);
		if (!ret)
			ret = importer_transfer(importer, arg);
	} else {
		ret = importer_transfer(importer, arg);
		if (!ret)
			ret = edu_transfer(edu, addr, arg->len, EDU_DMA_TO_MEMORY);
		if (!ret && copy_to_user(data, buffer, arg->len))
			ret = -EFAULT;
	}
	dma_free_coherent(&edu->pdev->dev, EDU_MAX, buffer, addr);
unlock:
	mutex_unlock(&edu->lock);
	return ret;
}

static int importer_state(struct importer *importer, struct nda_test_state *state)
{
	u32 i;

	*state = (struct nda_test_state){
		.told = importer->told,
		.mapped = !!importer->sgt,
		.pieces = importer->count,
	};
	for (i = 0; i < importer->count; i++)
		state->largest = max(state->largest, importer->pieces[i].len);
	return 0;
}

static long importer_ioctl(struct file *filp, unsigned int cmd, unsigned long user)
{
	struct importer *importer = filp->private_data;
	void __user *at = (void __user *)user;
	union {
		struct nda_test_attach attach;
		struct nda_test_dma dma;
		struct nda_test_state state;
	} arg;
	int ret = -ENOTTY;

	if (_IOC_SIZE(cmd) > sizeof(arg))
		return -ENOTTY;
	if (_IOC_DIR(cmd) & _IOC_WRITE && copy_from_user(&arg, at, _IOC_SIZE(cmd)))
		return -EFAULT;
	/* Not under files_lock: it takes long, and a file is closed when nobody is in a call. */
	if (cmd == NDA_TEST_DMA)
		return importer_dma(importer, &arg.dma);
	mutex_lock(&files_lock);
	switch (cmd) {
	case NDA_TEST_ATTACH:
		ret = importer->edu->regs ? importer_attach(importer, &arg.attach) : -ENODEV;
		break;
	case NDA_TEST_DETACH:
		ret = importer_detach(importer);
		break;
	case NDA_TEST_MAP:
		ret = importer_map(importer);
		break;
	case NDA_TEST_UNMAP:
		ret = importer_let_go(importer);
		break;
	case NDA_TEST_BEGIN:
		ret = importer_begin(importer);
		break;
	case NDA_TEST_END:
		ret = importer_end(importer);
		break;
	case NDA_TEST_STATE:
		ret = importer_state(importer, &arg.state);
		break;
	}
	mutex_unlock(&files_lock);
	if (!ret && _IOC_DIR(cmd) & _IOC_READ && copy_to_user(at, &arg, _IOC_SIZE(cmd)))
		ret = -EFAULT;
	return ret;
}

static int importer_open(struct inode *inode, struct file *filp)
{
	struct edu *edu = container_of(filp->private_data, struct edu, misc);
	struct importer *importer = kzalloc(sizeof(*importer), GFP_KERNEL);

	if (!importer)
		return -ENOMEM;
	init_waitqueue_head(&importer->idle);
	kref_get(&edu->ref);
	importer->edu = edu;
	mutex_lock(&files_lock);
	list_add(&importer->link, &edu->files);
	mutex_unlock(&files_lock);
	filp->private_data = importer;
	return 0;
}

static int importer_release(struct inode *inode, struct file *filp)
{
	struct importer *importer = filp->private_data;

	mutex_lock(&files_lock);
	list_del(&importer->link);
	importer_detach(importer);
	mutex_unlock(&files_lock);
	kvfree(importer->pieces);
	kref_put(&importer->edu->ref, edu_release);
	kfree(importer);
	return 0;
}

static const struct file_operations importer_fops = {
	.owner = THIS_MODULE,
	.open = importer_open,
	.release = importer_release,
	.unlocked_ioctl = importer_ioctl,
};

static int edu_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct edu *edu;
	int ret;

	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;
	ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (ret)
		return ret;
	edu = kzalloc(sizeof(*edu), GFP_KERNEL);
	if (!edu)
		return -ENOMEM;
	kref_init(&edu->ref);
	mutex_init(&edu->lock);
	INIT_LIST_HEAD(&edu->files);
	edu->pdev = pci_dev_get(pdev);
	edu->regs = pcim_iomap(pdev, 0, 0);
	if (!edu->regs) {
		kref_put(&edu->ref, edu_release);
		return -ENOMEM;
	}
	pci_set_master(pdev);
	snprintf(edu->name, sizeof(edu->name), "nda_test_importer-%s", pci_name(pdev));
	edu->misc.minor = MISC_DYNAMIC_MINOR;
	edu->misc.name = edu->name;
	edu->misc.fops = &importer_fops;
	ret = misc_register(&edu->misc);
	if (ret) {
		kref_put(&edu->ref, edu_release);
		return ret;
	}
	pci_set_drvdata(pdev, edu);
	return 0;
}

/* Good importers end with their device; bad ones keep what they have until they are closed. */
static void edu_remove(struct pci_dev *pdev)
{
	struct edu *edu = pci_get_drvdata(pdev);
	struct importer *importer;

	misc_deregister(&edu->misc);
	mutex_lock(&edu->lock);
	edu->regs = NULL;
	mutex_unlock(&edu->lock);
	mutex_lock(&files_lock);
	list_for_each_entry(importer, &edu->files, link) {
		if (!(importer->flags & NDA_TEST_IGNORE))
			importer_detach(importer);
	}
	mutex_unlock(&files_lock);
	kref_put(&edu->ref, edu_release);
}

static const struct pci_device_id edu_ids[] = { { PCI_DEVICE(0x1234, 0x11e8) }, {} };
MODULE_DEVICE_TABLE(pci, edu_ids);

static struct pci_driver edu_driver = {
	.name = "nda_test_importer",
	.id_table = edu_ids,
	.probe = edu_probe,
	.remove = edu_remove,
};
module_pci_driver(edu_driver);

MODULE_DESCRIPTION("imports dma-bufs for QEMU's edu device");
MODULE_LICENSE("GPL");
NDA_IMPORT_NS_DMA_BUF;
