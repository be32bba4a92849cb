// SPDX-License-Identifier: GPL-2.0
/* /dev/nda_soft: the node of an NPU that is software. */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <uapi/nda.h>

#include "nda.h"
#include "nda_soft.h"

static int nda_soft_open(struct inode *inode, struct file *filp)
{
	struct nda_soft_file *file;

	if (!current->mm)
		return -EINVAL;
	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		return -ENOMEM;
	mutex_init(&file->lock);
	xa_init(&file->memory);
	mmgrab(current->mm);
	file->mm = current->mm;
	file->mapping = filp->f_mapping;
	filp->private_data = file;
	return nonseekable_open(inode, filp);
}

static int nda_soft_release(struct inode *inode, struct file *filp)
{
	struct nda_soft_file *file = filp->private_data;
	struct nda_soft_memory *memory;
	unsigned long id;

	nda_kick_close(file);
	xa_for_each(&file->memory, id, memory)
		nda_soft_memory_free(memory);
	xa_destroy(&file->memory);
	mmdrop(file->mm);
	kfree(file);
	return 0;
}

static int nda_soft_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct nda_soft_file *file = filp->private_data;
	struct nda_soft_memory *memory;
	int ret = -EINVAL;

	if (current->mm != file->mm)
		return -EPERM;
	xa_lock(&file->memory);
	memory = xa_load(&file->memory, nda_soft_mmap_id((u64)vma->vm_pgoff << PAGE_SHIFT));
	if (memory)
		kref_get(&memory->ref);
	xa_unlock(&file->memory);
	if (!memory)
		return ret;
	ret = nda_soft_memory_mmap(memory, vma);
	nda_soft_memory_put(memory);
	return ret;
}

/* ---- ioctls ----------------------------------------------------------------------------- */

union nda_soft_arg {
	struct nda_soft_ioc_query query;
	struct nda_soft_ioc_alloc alloc;
	struct nda_soft_ioc_free free;
	struct nda_soft_ioc_bind bind;
	struct nda_soft_ioc_unbind unbind;
};

static u64 nda_soft_bar_size(void)
{
	struct nda_soft_bar *bar = nda_soft_bar_get();
	u64 size = 0;

	if (bar) {
		size = bar->size;
		nda_soft_bar_put(bar);
	}
	return size;
}

static int nda_soft_query(struct nda_soft_file *file, union nda_soft_arg *arg)
{
	if (arg->query.reserved)
		return -EINVAL;
	switch (arg->query.what) {
	case NDA_SOFT_QUERY_ABI:
		arg->query.value = NDA_SOFT_ABI_VERSION;
		return 0;
	case NDA_SOFT_QUERY_BAR:
		arg->query.value = nda_soft_bar_size();
		return 0;
	case NDA_SOFT_QUERY_PAGE_SIZE:
		arg->query.value = nda_soft_page_size;
		return 0;
	case NDA_SOFT_QUERY_KICK:
		arg->query.value = nda_kick_possible();
		return 0;
	case NDA_SOFT_QUERY_BYTES:
		arg->query.value = nda_soft_bytes();
		return 0;
	case NDA_SOFT_QUERY_BINDINGS:
	case NDA_SOFT_QUERY_KICKS:
	case NDA_SOFT_QUERY_MISSES:
		arg->query.value = nda_kick_count(arg->query.what);
		return 0;
	default:
		return -EINVAL;
	}
}

static int nda_soft_alloc(struct nda_soft_file *file, union nda_soft_arg *arg)
{
	struct nda_soft_memory *memory;
	int ret;

	if (arg->alloc.flags || arg->alloc.reserved || !arg->alloc.size ||
	    arg->alloc.size % nda_soft_page_size)
		return -EINVAL;
	memory = nda_soft_memory_new(arg->alloc.size, arg->alloc.kind, file->mapping);
	if (IS_ERR(memory))
		return PTR_ERR(memory);
	ret = xa_err(xa_store(&file->memory, memory->id, memory, GFP_KERNEL_ACCOUNT));
	if (ret) {
		nda_soft_memory_free(memory);
		return ret;
	}
	arg->alloc.handle = memory->id;
	arg->alloc.mmap_off = nda_soft_mmap_off(memory->id);
	return 0;
}

static int nda_soft_free(struct nda_soft_file *file, union nda_soft_arg *arg)
{
	struct nda_soft_memory *memory;

	if (arg->free.flags)
		return -EINVAL;
	memory = xa_erase(&file->memory, arg->free.handle);
	if (!memory)
		return -ENOENT;
	nda_soft_memory_free(memory);
	return 0;
}

static void nda_soft_undo_alloc(struct nda_soft_file *file, union nda_soft_arg *arg)
{
	nda_soft_memory_free(xa_erase(&file->memory, arg->alloc.handle));
}

static int nda_soft_bind(struct nda_soft_file *file, union nda_soft_arg *arg)
{
	if (arg->bind.flags)
		return -EINVAL;
	return nda_kick_bind(file, &arg->bind);
}

static void nda_soft_undo_bind(struct nda_soft_file *file, union nda_soft_arg *arg)
{
	nda_kick_unbind(file, arg->bind.handle);
}

static int nda_soft_unbind(struct nda_soft_file *file, union nda_soft_arg *arg)
{
	if (arg->unbind.flags)
		return -EINVAL;
	return nda_kick_unbind(file, arg->unbind.handle);
}

/**
 * struct nda_soft_call - one ioctl
 * @run: with the file's lock held
 * @undo: what @run made, where the caller cannot be told of it; with the lock still held
 * @v1_size: of the structure's first version: the least that a caller may have
 * @size: of the structure as it is here
 * @makes: it makes something of the opener's memory
 * @writes: the structure goes back to the caller
 */
struct nda_soft_call {
	int (*run)(struct nda_soft_file *file, union nda_soft_arg *arg);
	void (*undo)(struct nda_soft_file *file, union nda_soft_arg *arg);
	u16 v1_size;
	u16 size;
	bool makes;
	bool writes;
};

#define NDA_SOFT_CALL(function, member, v1) \
	.run = function, .v1_size = v1, .size = sizeof_field(union nda_soft_arg, member)

/* By number, from the first ioctl's on. */
static const struct nda_soft_call nda_soft_calls[] = {
	{ NDA_SOFT_CALL(nda_soft_query, query, 16), .writes = true },
	{ NDA_SOFT_CALL(nda_soft_alloc, alloc, 32), .undo = nda_soft_undo_alloc, .makes = true,
	  .writes = true },
	{ NDA_SOFT_CALL(nda_soft_free, free, 8) },
	{ NDA_SOFT_CALL(nda_soft_bind, bind, 24), .undo = nda_soft_undo_bind, .makes = true,
	  .writes = true },
	{ NDA_SOFT_CALL(nda_soft_unbind, unbind, 8) },
};

static long nda_soft_ioctl(struct file *filp, unsigned int cmd, unsigned long user)
{
	u32 nr = _IOC_NR(cmd) - _IOC_NR(NDA_SOFT_IOC_QUERY);
	struct nda_soft_file *file = filp->private_data;
	void __user *from = (void __user *)user;
	size_t size = _IOC_SIZE(cmd);
	const struct nda_soft_call *call;
	union nda_soft_arg arg;
	int ret;

	if (_IOC_TYPE(cmd) != NDA_SOFT_IOC_TYPE || nr >= ARRAY_SIZE(nda_soft_calls))
		return -ENOTTY;
	call = &nda_soft_calls[array_index_nospec(nr, ARRAY_SIZE(nda_soft_calls))];
	if (size < call->v1_size)
		return -EINVAL;
	if (call->makes && current->mm != file->mm)
		return -EPERM;
	memset(&arg, 0, sizeof(arg));
	ret = copy_struct_from_user(&arg, call->size, from, size);
	if (ret)
		return ret;
	mutex_lock(&file->lock);
	ret = call->run(file, &arg);
	if (!ret && call->writes && copy_to_user(from, &arg, min_t(size_t, size, call->size))) {
		ret = -EFAULT;
		if (call->undo)
			call->undo(file, &arg);
	}
	mutex_unlock(&file->lock);
	return ret;
}

static const struct file_operations nda_soft_fops = {
	.owner = THIS_MODULE,
	.open = nda_soft_open,
	.release = nda_soft_release,
	.mmap = nda_soft_mmap,
	.unlocked_ioctl = nda_soft_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

/* Without an alias: opening the node does not load the module. */
static struct miscdevice nda_soft_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "nda_soft",
	.mode = 0600,
	.fops = &nda_soft_fops,
};

static int __init nda_soft_init(void)
{
	int ret;

	ret = nda_soft_mem_init();
	if (ret)
		return ret;
	ret = nda_soft_bar_init();
	if (ret)
		goto exit_mem;
	ret = nda_kick_init();
	if (ret)
		goto exit_bar;
	ret = misc_register(&nda_soft_misc);
	if (ret)
		goto exit_kick;
	return 0;

exit_kick:
	nda_kick_exit();
exit_bar:
	nda_soft_bar_exit();
exit_mem:
	nda_soft_mem_exit();
	return ret;
}
module_init(nda_soft_init);

static void __exit nda_soft_exit(void)
{
	misc_deregister(&nda_soft_misc);
	nda_kick_exit();
	nda_soft_bar_exit();
	nda_soft_mem_exit();
}
module_exit(nda_soft_exit);

MODULE_DESCRIPTION("NPU Direct Async: the memory and doorbells of an NPU that is software");
MODULE_LICENSE("GPL");
MODULE_VERSION(NDA_VERSION);
