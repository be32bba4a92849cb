// SPDX-License-Identifier: GPL-2.0
/*
 * Drives the DMA engine of QEMU's edu device: bytes from one pin or doorbell of /dev/nda to
 * another by way of the device's buffer. An in-kernel user of pins, as a soft NPU is.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/io.h>
#include <linux/iopoll.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <uapi/nda.h>

#include "nda.h"
#include "nda_test_edu.h"

#define EDU_DMA_SRC 0x80
#define EDU_DMA_DST 0x88
#define EDU_DMA_COUNT 0x90
#define EDU_DMA_CMD 0x98
#define EDU_DMA_START 1
#define EDU_DMA_TO_MEMORY 2
#define EDU_BUFFER 0x40000
/* A transfer to the very end of the buffer of 4096 bytes ends QEMU. */
#define EDU_MAX 2048

struct edu {
	struct pci_dev *pdev;
	void __iomem *regs;
	struct mutex lock; /* one transfer at a time */
	struct miscdevice misc;
	char name[40];
};

/* Between memory and the device's buffer at @at. */
static int edu_transfer(struct edu *edu, dma_addr_t address, u32 at, u32 len, u32 direction)
{
	u64 buffer = EDU_BUFFER + at, command;

	writeq(direction ? buffer : address, edu->regs + EDU_DMA_SRC);
	writeq(direction ? address : buffer, edu->regs + EDU_DMA_DST);
	writeq(len, edu->regs + EDU_DMA_COUNT);
	writeq(EDU_DMA_START | direction, edu->regs + EDU_DMA_CMD);
	return readq_poll_timeout(edu->regs + EDU_DMA_CMD, command, !(command & EDU_DMA_START),
				  1000, 10 * USEC_PER_SEC);
}

/* As many transfers as @len bytes from @offset on have pieces. */
static int edu_transfer_table(struct edu *edu, const struct sg_table *table, u64 offset, u32 len,
			      u32 direction)
{
	struct scatterlist *sg;
	u32 done = 0, piece;
	int i, ret;

	for_each_sgtable_dma_sg(table, sg, i) {
		if (offset >= sg_dma_len(sg)) {
			offset -= sg_dma_len(sg);
			continue;
		}
		piece = min_t(u64, len - done, sg_dma_len(sg) - offset);
		ret = edu_transfer(edu, sg_dma_address(sg) + offset, done, piece, direction);
		if (ret)
			return ret;
		done += piece;
		offset = 0;
		if (done == len)
			return 0;
	}
	return -ERANGE;
}

/* One end of a copy; nothing holds the object afterwards. */
static int edu_end(struct edu *edu, const struct nda_test_copy *copy,
		   const struct nda_test_end *end, u32 direction)
{
	struct nda_object *object = nda_object_get(copy->nda_fd, end->handle, end->kind);
	const struct sg_table *table;
	dma_addr_t address;
	int ret;

	if (IS_ERR(object))
		return PTR_ERR(object);
	if (end->kind == NDA_KIND_PIN) {
		table = nda_pin_table(object, &edu->pdev->dev);
		ret = PTR_ERR_OR_ZERO(table);
		if (!ret)
			ret = edu_transfer_table(edu, table, end->offset, copy->len, direction);
	} else {
		ret = nda_db_address(object, &edu->pdev->dev, &address);
		if (!ret)
			ret = edu_transfer(edu, address + end->offset, 0, copy->len, direction);
	}
	nda_object_put(object);
	return ret;
}

static int edu_copy(struct edu *edu, const struct nda_test_copy *copy)
{
	int ret;

	if (!copy->len || copy->len > EDU_MAX)
		return -EINVAL;
	mutex_lock(&edu->lock);
	ret = edu_end(edu, copy, &copy->from, 0);
	if (!ret)
		ret = edu_end(edu, copy, &copy->to, EDU_DMA_TO_MEMORY);
	mutex_unlock(&edu->lock);
	return ret;
}

/* Between memory that the device has mapped and the kernel's. */
int nda_test_edu_dma(struct device *dev, const struct sg_table *table, u64 offset, void *bytes,
		     u32 len, bool write)
{
	struct edu *edu = dev_get_drvdata(dev);
	dma_addr_t address;
	void *buffer;
	int ret;

	if (!edu || !len || len > EDU_MAX)
		return -EINVAL;
	buffer = dma_alloc_coherent(dev, EDU_MAX, &address, GFP_KERNEL);
	if (!buffer)
		return -ENOMEM;
	mutex_lock(&edu->lock);
	if (write) {
		memcpy(buffer, bytes, len);
		ret = edu_transfer(edu, address, 0, len, 0);
		if (!ret)
			ret = edu_transfer_table(edu, table, offset, len, EDU_DMA_TO_MEMORY);
	} else {
		ret = edu_transfer_table(edu, table, offset, len, 0);
		if (!ret)
			ret = edu_transfer(edu, address, 0, len, EDU_DMA_TO_MEMORY);
		memcpy(bytes, buffer, len);
	}
	mutex_unlock(&edu->lock);
	dma_free_coherent(dev, EDU_MAX, buffer, address);
	return ret;
}
EXPORT_SYMBOL_GPL(nda_test_edu_dma);

/* The file keeps what it holds where misc_open() put the device. */
struct edu_file {
	struct edu *edu;
	struct nda_object *held;
};

static int edu_open(struct inode *inode, struct file *filp)
{
	struct edu_file *file = kzalloc(sizeof(*file), GFP_KERNEL);

	if (!file)
		return -ENOMEM;
	file->edu = container_of(filp->private_data, struct edu, misc);
	filp->private_data = file;
	return 0;
}

static int edu_release(struct inode *inode, struct file *filp)
{
	struct edu_file *file = filp->private_data;

	if (file->held)
		nda_object_put(file->held);
	kfree(file);
	return 0;
}

static long edu_ioctl(struct file *filp, unsigned int cmd, unsigned long user)
{
	struct edu_file *file = filp->private_data;
	struct nda_test_copy copy;
	struct nda_object *object;

	if (copy_from_user(&copy, (void __user *)user, sizeof(copy)))
		return -EFAULT;
	if (cmd == NDA_TEST_COPY)
		return edu_copy(file->edu, &copy);
	if (cmd != NDA_TEST_HOLD)
		return -ENOTTY;
	if (file->held)
		return -EBUSY;
	object = nda_object_get(copy.nda_fd, copy.from.handle, copy.from.kind);
	if (IS_ERR(object))
		return PTR_ERR(object);
	file->held = object;
	return 0;
}

static const struct file_operations edu_fops = {
	.owner = THIS_MODULE,
	.open = edu_open,
	.release = edu_release,
	.unlocked_ioctl = edu_ioctl,
};

static int mask_bits = 64;
module_param(mask_bits, int, 0444);
MODULE_PARM_DESC(mask_bits, "of the addresses that it says it reaches");

static int edu_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct edu *edu = devm_kzalloc(&pdev->dev, sizeof(*edu), GFP_KERNEL);
	int ret;

	if (!edu)
		return -ENOMEM;
	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;
	ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(mask_bits));
	if (ret)
		return ret;
	edu->regs = pcim_iomap(pdev, 0, 0);
	if (!edu->regs)
		return -ENOMEM;
	pci_set_master(pdev);
	mutex_init(&edu->lock);
	edu->pdev = pdev;
	snprintf(edu->name, sizeof(edu->name), "nda_test_edu-%s", pci_name(pdev));
	edu->misc.minor = MISC_DYNAMIC_MINOR;
	edu->misc.name = edu->name;
	edu->misc.fops = &edu_fops;
	pci_set_drvdata(pdev, edu);
	return misc_register(&edu->misc);
}

static void edu_remove(struct pci_dev *pdev)
{
	struct edu *edu = pci_get_drvdata(pdev);

	misc_deregister(&edu->misc);
}

static const struct pci_device_id edu_ids[] = { { PCI_DEVICE(0x1234, 0x11e8) }, {} };
MODULE_DEVICE_TABLE(pci, edu_ids);

static struct pci_driver edu_driver = {
	.name = "nda_test_edu",
	.id_table = edu_ids,
	.probe = edu_probe,
	.remove = edu_remove,
};
module_pci_driver(edu_driver);

MODULE_DESCRIPTION("drives QEMU's edu device for tests");
MODULE_LICENSE("GPL");
