// SPDX-License-Identifier: GPL-2.0
/*
 * nda.ko: the character device, its sysfs files, and what happens when devices go.
 */
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/ratelimit.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "nda_internal.h"

atomic_long_t nda_counts[NDA_COUNTS];

static dev_t nda_devt;
static struct cdev nda_cdev;
static struct class *nda_class;
static struct device *nda_device;

static ssize_t abi_version_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d.%d\n", NDA_ABI_MAJOR, NDA_ABI_MINOR);
}
static DEVICE_ATTR_RO(abi_version);

static ssize_t features_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%#x\n",
			  NDA_FEATURE_HOST_PIN | nda_export_features() | nda_db_features());
}
static DEVICE_ATTR_RO(features);

static ssize_t count_show(char *buf, u32 which)
{
	return sysfs_emit(buf, "%ld\n", atomic_long_read(&nda_counts[which]));
}

#define NDA_COUNT_ATTR(name, which)                                                              \
	static ssize_t name##_show(struct device *dev, struct device_attribute *attr, char *buf) \
	{                                                                                        \
		return count_show(buf, which);                                                   \
	}                                                                                        \
	static DEVICE_ATTR_RO(name)

NDA_COUNT_ATTR(live_objects, NDA_COUNT_OBJECTS);
NDA_COUNT_ATTR(revoked_total, NDA_COUNT_REVOKED);
NDA_COUNT_ATTR(leftovers_total, NDA_COUNT_LEFTOVERS);

static struct attribute *nda_attrs[] = {
	&dev_attr_abi_version.attr,   &dev_attr_features.attr,	      &dev_attr_live_objects.attr,
	&dev_attr_revoked_total.attr, &dev_attr_leftovers_total.attr, NULL,
};
ATTRIBUTE_GROUPS(nda);

/* ---- Events ----------------------------------------------------------------------------- */

/* What is to be told; @event is a string of the module's, @dev is held. */
struct nda_notice {
	struct list_head link;
	const char *event;
	struct device *dev;
	pid_t pid;
};

static LIST_HEAD(nda_notices);
/* Guards nda_notices; a leaf. */
static DEFINE_SPINLOCK(nda_notices_lock);

static struct nda_notice *nda_next_notice(void)
{
	struct nda_notice *notice;

	spin_lock(&nda_notices_lock);
	notice = list_first_entry_or_null(&nda_notices, struct nda_notice, link);
	if (notice)
		list_del(&notice->link);
	spin_unlock(&nda_notices_lock);
	return notice;
}

static void nda_send_notice(const struct nda_notice *notice)
{
	char event[40], dev[40], pid[20];
	char *variables[] = { event, dev, notice->pid ? pid : NULL, NULL };

	snprintf(event, sizeof(event), "NDA_EVENT=%s", notice->event);
	snprintf(dev, sizeof(dev), "NDA_DEVICE=%s", dev_name(notice->dev));
	snprintf(pid, sizeof(pid), "NDA_PID=%d", notice->pid);
	kobject_uevent_env(&nda_device->kobj, KOBJ_CHANGE, variables);
}

static void nda_tell_work(struct work_struct *work)
{
	struct nda_notice *notice;

	while ((notice = nda_next_notice())) {
		nda_send_notice(notice);
		put_device(notice->dev);
		kfree(notice);
	}
}

static DECLARE_WORK(nda_notices_work, nda_tell_work);

void nda_tell(const char *event, struct device *dev, pid_t pid)
{
	static DEFINE_RATELIMIT_STATE(limit, DEFAULT_RATELIMIT_INTERVAL, DEFAULT_RATELIMIT_BURST);
	struct nda_notice *notice;

	if (!__ratelimit(&limit))
		return;
	notice = kzalloc(sizeof(*notice), GFP_NOWAIT | __GFP_NOWARN);
	if (!notice)
		return;
	notice->event = event;
	notice->dev = get_device(dev);
	notice->pid = pid;
	spin_lock(&nda_notices_lock);
	list_add_tail(&notice->link, &nda_notices);
	spin_unlock(&nda_notices_lock);
	schedule_work(&nda_notices_work);
}

/* ---- Devices that go -------------------------------------------------------------------- */

static void nda_object_unbind(struct nda_object *object, void *dev)
{
	if (object->ops->unbind)
		object->ops->unbind(object, dev);
}

/*
 * Before a driver is taken off its device, so before the device's DMA operations may go. The
 * device's lock is held.
 */
static int nda_pci_notify(struct notifier_block *nb, unsigned long action, void *dev)
{
	/* A device that goes loses its driver after this. */
	if (action == BUS_NOTIFY_UNBIND_DRIVER)
		nda_mem_unbind(dev);
	if (action == BUS_NOTIFY_UNBIND_DRIVER || action == BUS_NOTIFY_DEL_DEVICE)
		nda_objects_visit(nda_object_unbind, dev);
	return NOTIFY_DONE;
}

static struct notifier_block nda_pci_nb = { .notifier_call = nda_pci_notify };

/* ---- The module ------------------------------------------------------------------------- */

static int __init nda_chrdev_init(void)
{
	int ret;

	ret = alloc_chrdev_region(&nda_devt, 0, 1, "nda");
	if (ret)
		return ret;
	nda_class = class_create("nda");
	if (IS_ERR(nda_class)) {
		ret = PTR_ERR(nda_class);
		goto unregister_region;
	}
	cdev_init(&nda_cdev, &nda_fops);
	nda_cdev.owner = THIS_MODULE;
	ret = cdev_add(&nda_cdev, nda_devt, 1);
	if (ret)
		goto destroy_class;
	nda_device = device_create_with_groups(nda_class, NULL, nda_devt, NULL, nda_groups, "nda");
	if (IS_ERR(nda_device)) {
		ret = PTR_ERR(nda_device);
		goto del_cdev;
	}
	return 0;

del_cdev:
	cdev_del(&nda_cdev);
destroy_class:
	class_destroy(nda_class);
unregister_region:
	unregister_chrdev_region(nda_devt, 1);
	return ret;
}

static void nda_chrdev_exit(void)
{
	device_destroy(nda_class, nda_devt);
	cdev_del(&nda_cdev);
	class_destroy(nda_class);
	unregister_chrdev_region(nda_devt, 1);
}

static int __init nda_init(void)
{
	int ret;

	ret = nda_mem_init();
	if (ret)
		return ret;
	ret = nda_db_init();
	if (ret)
		goto exit_mem;
	nda_debugfs_init();
	ret = bus_register_notifier(&pci_bus_type, &nda_pci_nb);
	if (ret)
		goto exit_debugfs;
	ret = nda_chrdev_init();
	if (ret)
		goto unregister_notifier;
	return 0;

unregister_notifier:
	bus_unregister_notifier(&pci_bus_type, &nda_pci_nb);
exit_debugfs:
	nda_debugfs_exit();
	nda_db_exit();
exit_mem:
	nda_mem_exit();
	return ret;
}
module_init(nda_init);

static void __exit nda_exit(void)
{
	bus_unregister_notifier(&pci_bus_type, &nda_pci_nb);
	nda_debugfs_exit();
	nda_db_exit();
	nda_mem_exit();
	/* There is nobody left who tells, and the device still for what was told. */
	flush_work(&nda_notices_work);
	nda_chrdev_exit();
}
module_exit(nda_exit);

MODULE_DESCRIPTION(
	"NPU Direct Async: pinned DMA mappings, NPU memory for NICs, doorbells for NPUs");
MODULE_LICENSE("GPL");
MODULE_VERSION(NDA_VERSION);
/* Whoever loads this by name gets what there is; modprobe overlooks it if they do not load. */
MODULE_SOFTDEP("post: nda_ascend");
#if NDA_PEER_API
MODULE_SOFTDEP("post: nda_peermem");
#endif
NDA_IMPORT_NS_DMA_BUF;
