// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Makes the mistakes that a debug kernel finds, to show that it does: write a name to
 * 'bug'. */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

static DEFINE_MUTEX(lock_a);
static DEFINE_MUTEX(lock_b);
static DEFINE_SPINLOCK(spin);
static struct platform_device *device;

static int lock_order(void)
{
	mutex_lock(&lock_a);
	mutex_lock(&lock_b);
	mutex_unlock(&lock_b);
	mutex_unlock(&lock_a);
	mutex_lock(&lock_b);
	mutex_lock(&lock_a);
	mutex_unlock(&lock_a);
	mutex_unlock(&lock_b);
	return 0;
}

/* What may sleep, and does not: the kernel would not recover from a sleep. */
static int atomic_sleep(void)
{
	void *buffer;

	spin_lock(&spin);
	buffer = kmalloc(64, GFP_KERNEL);
	spin_unlock(&spin);
	kfree(buffer);
	return 0;
}

static int dma_unmap_size(void)
{
	void *buffer = kmalloc(512, GFP_KERNEL);
	dma_addr_t address;

	if (!buffer)
		return -ENOMEM;
	address = dma_map_single(&device->dev, buffer, 512, DMA_TO_DEVICE);
	if (!dma_mapping_error(&device->dev, address))
		dma_unmap_single(&device->dev, address, 256, DMA_TO_DEVICE);
	kfree(buffer);
	return 0;
}

static int leak(void)
{
	int i;

	/* A stale copy of a pointer may hide one, not all. */
	for (i = 0; i < 16; i++) {
		char *volatile lost = kmalloc(200, GFP_KERNEL);

		if (!lost)
			return -ENOMEM;
		lost = NULL;
	}
	return 0;
}

static int use_after_free(void)
{
	char *volatile buffer = kmalloc(64, GFP_KERNEL);

	if (!buffer)
		return -ENOMEM;
	kfree(buffer);
	buffer[8] = 1;
	return 0;
}

static int out_of_bounds(void)
{
	char *volatile buffer = kmalloc(64, GFP_KERNEL);

	if (!buffer)
		return -ENOMEM;
	buffer[64] = 1;
	kfree(buffer);
	return 0;
}

static const struct {
	const char *name;
	int (*make)(void);
} bugs[] = {
	{ "lock_order", lock_order },	      { "atomic_sleep", atomic_sleep },
	{ "dma_unmap_size", dma_unmap_size }, { "leak", leak },
	{ "use_after_free", use_after_free }, { "out_of_bounds", out_of_bounds },
};

static int set_bug(const char *value, const struct kernel_param *param)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(bugs); i++)
		if (sysfs_streq(value, bugs[i].name))
			return bugs[i].make();
	return -EINVAL;
}

static const struct kernel_param_ops bug_ops = { .set = set_bug };
module_param_cb(bug, &bug_ops, NULL, 0200);
MODULE_PARM_DESC(bug, "the mistake to make");

static int __init nda_test_bugs_init(void)
{
	int error;

	device = platform_device_register_simple("nda_test_bugs", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(device))
		return PTR_ERR(device);
	error = dma_coerce_mask_and_coherent(&device->dev, DMA_BIT_MASK(64));
	if (error)
		platform_device_unregister(device);
	return error;
}
module_init(nda_test_bugs_init);

static void __exit nda_test_bugs_exit(void)
{
	platform_device_unregister(device);
}
module_exit(nda_test_bugs_exit);

MODULE_DESCRIPTION("makes the mistakes that a debug kernel finds");
MODULE_LICENSE("Dual BSD/GPL");
