// SPDX-License-Identifier: GPL-2.0
/*
 * A PCI BAR as the soft NPU's memory. Root names the device, as for any driver that matches
 * nothing by itself:
 *
 *   echo nda_soft >/sys/bus/pci/devices/ADDRESS/driver_override
 *   echo ADDRESS >/sys/bus/pci/drivers/nda_soft/bind
 *
 * So the driver core keeps a device with another driver from being taken, and one that was
 * taken from getting another; unbinding it, or its being unplugged, revokes its memory.
 */
#include <linux/genalloc.h>
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/security.h>
#include <linux/slab.h>

#include <uapi/nda.h>

#include "nda.h"
#include "nda_soft.h"

static int nda_soft_bar_number = -1;
module_param_named(bar, nda_soft_bar_number, int, 0644);
MODULE_PARM_DESC(bar, "number of the BAR to take of a device that is bound, default the largest");

/* Guards nda_soft_bar. */
static DEFINE_MUTEX(nda_soft_bar_lock);
static struct nda_soft_bar *nda_soft_bar;

static void nda_soft_bar_release(struct kref *ref)
{
	struct nda_soft_bar *bar = container_of(ref, struct nda_soft_bar, ref);

	gen_pool_destroy(bar->pool);
	kfree(bar);
}

void nda_soft_bar_put(struct nda_soft_bar *bar)
{
	kref_put(&bar->ref, nda_soft_bar_release);
}

/**
 * nda_soft_bar_get() - the BAR that is the NPU's memory
 *
 * Return: it, held; NULL if no device is bound.
 */
struct nda_soft_bar *nda_soft_bar_get(void)
{
	struct nda_soft_bar *bar;

	mutex_lock(&nda_soft_bar_lock);
	bar = nda_soft_bar;
	if (bar)
		kref_get(&bar->ref);
	mutex_unlock(&nda_soft_bar_lock);
	return bar;
}

/* Its number, or -ENODEV. */
static int nda_soft_bar_choose(struct pci_dev *pdev)
{
	int wanted = READ_ONCE(nda_soft_bar_number), best = -ENODEV, i;

	for (i = 0; i < PCI_STD_NUM_BARS; i++) {
		if (!(pci_resource_flags(pdev, i) & IORESOURCE_MEM) ||
		    pci_resource_len(pdev, i) < nda_soft_page_size || (wanted >= 0 && i != wanted))
			continue;
		if (best < 0 || pci_resource_len(pdev, i) > pci_resource_len(pdev, best))
			best = i;
	}
	return best;
}

static struct nda_soft_bar *nda_soft_bar_new(struct pci_dev *pdev, int number)
{
	struct nda_soft_bar *bar = kzalloc(sizeof(*bar), GFP_KERNEL);
	int ret = -ENOMEM;

	if (!bar)
		return ERR_PTR(ret);
	kref_init(&bar->ref);
	mutex_init(&bar->lock);
	INIT_LIST_HEAD(&bar->pieces);
	bar->number = number;
	bar->begin = pci_resource_start(pdev, number);
	bar->size = round_down(pci_resource_len(pdev, number), nda_soft_page_size);
	bar->pool = gen_pool_create(ilog2(nda_soft_page_size), dev_to_node(&pdev->dev));
	if (!bar->pool)
		goto free;
	ret = gen_pool_add(bar->pool, bar->begin, bar->size, dev_to_node(&pdev->dev));
	if (ret)
		goto destroy;
	ret = -ENOMEM;
	bar->io = ioremap_wc(bar->begin, bar->size);
	if (!bar->io)
		goto destroy;
	return bar;

destroy:
	gen_pool_destroy(bar->pool);
free:
	kfree(bar);
	return ERR_PTR(ret);
}

static int nda_soft_bar_publish(struct nda_soft_bar *bar)
{
	int ret = -EBUSY;

	mutex_lock(&nda_soft_bar_lock);
	if (!nda_soft_bar) {
		nda_soft_bar = bar;
		ret = 0;
	}
	mutex_unlock(&nda_soft_bar_lock);
	return ret;
}

static int nda_soft_bar_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct nda_soft_bar *bar;
	int number, ret;

	ret = security_locked_down(LOCKDOWN_PCI_ACCESS);
	if (ret) {
		pci_err(pdev,
			"the kernel is locked down: the device's memory is not given to users\n");
		return ret;
	}
	number = nda_soft_bar_choose(pdev);
	if (number < 0) {
		pci_err(pdev, "has no BAR of memory with a page of %lu bytes, or not that number\n",
			nda_soft_page_size);
		return number;
	}
	ret = pci_enable_device_mem(pdev);
	if (ret)
		return ret;
	ret = pci_request_region(pdev, number, KBUILD_MODNAME);
	if (ret)
		goto disable;
	bar = nda_soft_bar_new(pdev, number);
	if (IS_ERR(bar)) {
		ret = PTR_ERR(bar);
		goto release;
	}
	ret = nda_soft_bar_publish(bar);
	if (ret) {
		pci_err(pdev, "another device is bound\n");
		goto unmap;
	}
	pci_set_drvdata(pdev, bar);
	return 0;

unmap:
	iounmap(bar->io);
	nda_soft_bar_put(bar);
release:
	pci_release_region(pdev, number);
disable:
	pci_disable_device(pdev);
	return ret;
}

/* Nothing of it is in use when this returns. */
static void nda_soft_bar_end(struct nda_soft_bar *bar)
{
	struct nda_soft_memory *memory;

	mutex_lock(&bar->lock);
	bar->gone = true;
	list_for_each_entry(memory, &bar->pieces, piece)
		nda_soft_memory_unplug(memory);
	mutex_unlock(&bar->lock);
}

static void nda_soft_bar_remove(struct pci_dev *pdev)
{
	struct nda_soft_bar *bar = pci_get_drvdata(pdev);

	mutex_lock(&nda_soft_bar_lock);
	nda_soft_bar = NULL;
	mutex_unlock(&nda_soft_bar_lock);
	nda_soft_bar_end(bar);
	iounmap(bar->io);
	pci_release_region(pdev, bar->number);
	pci_disable_device(pdev);
	nda_soft_bar_put(bar);
}

static struct pci_driver nda_soft_bar_driver = {
	.name = "nda_soft",
	.probe = nda_soft_bar_probe,
	.remove = nda_soft_bar_remove,
};

int nda_soft_bar_init(void)
{
	return pci_register_driver(&nda_soft_bar_driver);
}

void nda_soft_bar_exit(void)
{
	pci_unregister_driver(&nda_soft_bar_driver);
}
