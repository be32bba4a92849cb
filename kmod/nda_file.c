// SPDX-License-Identifier: GPL-2.0
/*
 * An open /dev/nda: handles and the ioctls' common part.
 *
 * An ioctl that makes an object first books a place, so that no file has more than it may,
 * then makes the object, gives it a handle, and writes the answer. Only then is a file
 * descriptor installed: what the caller was not told of is undone.
 */
#include <linux/eventfd.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "nda_internal.h"

static LIST_HEAD(nda_objects);
/* Guards nda_objects and the ids. */
static DEFINE_MUTEX(nda_objects_lock);
static u32 nda_last_id;

/* ---- Files ------------------------------------------------------------------------------ */

static void nda_file_release(struct kref *ref)
{
	struct nda_file *file = container_of(ref, struct nda_file, ref);

	xa_destroy(&file->objects);
	mmdrop(file->mm);
	kfree(file);
}

void nda_file_put(struct nda_file *file)
{
	kref_put(&file->ref, nda_file_release);
}

void nda_file_signal(struct nda_file *file)
{
	unsigned long flags;

	spin_lock_irqsave(&file->event_lock, flags);
	if (file->event)
		eventfd_signal(file->event);
	spin_unlock_irqrestore(&file->event_lock, flags);
}

/* @event is the file's from now on; the former one is let go. */
static void nda_file_set_event(struct nda_file *file, struct eventfd_ctx *event)
{
	spin_lock_irq(&file->event_lock);
	swap(file->event, event);
	spin_unlock_irq(&file->event_lock);
	if (event)
		eventfd_ctx_put(event);
}

static int nda_open(struct inode *inode, struct file *filp)
{
	struct nda_file *file;

	if (!current->mm)
		return -EINVAL;
	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		return -ENOMEM;
	kref_init(&file->ref);
	mutex_init(&file->lock);
	spin_lock_init(&file->event_lock);
	xa_init_flags(&file->objects, XA_FLAGS_ALLOC1);
	mmgrab(current->mm);
	file->mm = current->mm;
	filp->private_data = file;
	nda_count(NDA_COUNT_FILES, 1);
	return nonseekable_open(inode, filp);
}

/* ---- Objects ---------------------------------------------------------------------------- */

void nda_object_init(struct nda_object *object, const struct nda_object_ops *ops,
		     struct nda_file *file)
{
	kref_init(&object->ref);
	object->ops = ops;
	object->handle = 0;
	object->file = file;
	kref_get(&file->ref);
	nda_count(NDA_COUNT_OBJECTS, 1);
	mutex_lock(&nda_objects_lock);
	object->id = ++nda_last_id;
	list_add_tail(&object->link, &nda_objects);
	mutex_unlock(&nda_objects_lock);
}

static void nda_object_release(struct kref *ref)
{
	struct nda_object *object = container_of(ref, struct nda_object, ref);
	struct nda_file *file = object->file;

	mutex_lock(&nda_objects_lock);
	list_del(&object->link);
	mutex_unlock(&nda_objects_lock);
	object->ops->free(object);
	nda_count(NDA_COUNT_OBJECTS, -1);
	nda_file_put(file);
}

void nda_object_put(struct nda_object *object)
{
	kref_put(&object->ref, nda_object_release);
}
EXPORT_SYMBOL_GPL(nda_object_put);

void nda_objects_visit(void (*visit)(struct nda_object *object, void *arg), void *arg)
{
	struct nda_object *object, *last = NULL;
	u32 newest;

	mutex_lock(&nda_objects_lock);
	/* Not those that are added meanwhile: there may be no end of them. Numbers wrap. */
	newest = nda_last_id;
	list_for_each_entry(object, &nda_objects, link) {
		if ((s32)(object->id - newest) > 0)
			break;
		/* One whose last hold is going waits for the lock to leave the list. */
		if (!kref_get_unless_zero(&object->ref))
			continue;
		mutex_unlock(&nda_objects_lock);
		if (last)
			nda_object_put(last);
		last = object;
		visit(object, arg);
		mutex_lock(&nda_objects_lock);
	}
	mutex_unlock(&nda_objects_lock);
	if (last)
		nda_object_put(last);
}

static struct nda_object *nda_file_object(struct nda_file *file, u32 handle)
{
	struct nda_object *object;

	xa_lock(&file->objects);
	object = xa_load(&file->objects, handle);
	if (object)
		kref_get(&object->ref);
	xa_unlock(&file->objects);
	return object;
}

struct nda_object *nda_object_get(int fd, u32 handle, u32 kind)
{
	struct nda_object *object = ERR_PTR(-EBADF);
	struct file *filp = fget(fd);

	if (!filp)
		return object;
	if (filp->f_op == &nda_fops) {
		object = nda_file_object(filp->private_data, handle);
		if (!object) {
			object = ERR_PTR(-ENOENT);
		} else if (object->ops->kind != kind) {
			nda_object_put(object);
			object = ERR_PTR(-ENOENT);
		}
	}
	fput(filp);
	return object;
}
EXPORT_SYMBOL_GPL(nda_object_get);

/* Takes the handle away and ends the object; -ENOENT if somebody else just did. */
static int nda_object_destroy(struct nda_file *file, struct nda_object *object)
{
	/* The handle is not another's: it is given out anew only after all others. */
	if (xa_cmpxchg(&file->objects, object->handle, object, NULL, 0) != object)
		return -ENOENT;
	object->ops->detach(object);
	atomic_dec(&file->count);
	nda_object_put(object);
	return 0;
}

static int nda_release(struct inode *inode, struct file *filp)
{
	struct nda_file *file = filp->private_data;
	struct nda_object *object;
	unsigned long handle;

	nda_file_set_event(file, NULL);
	xa_for_each(&file->objects, handle, object)
		nda_object_destroy(file, object);
	nda_count(NDA_COUNT_FILES, -1);
	nda_file_put(file);
	return 0;
}

static int nda_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct nda_file *file = filp->private_data;
	struct nda_object *object;
	int ret = -ENODEV;

	if (current->mm != file->mm)
		return -EPERM;
	if (vma->vm_pgoff > U32_MAX)
		return -EINVAL;
	object = nda_file_object(file, vma->vm_pgoff);
	if (!object)
		return -EINVAL;
	if (object->ops->mmap)
		ret = object->ops->mmap(object, vma);
	nda_object_put(object);
	return ret;
}

/* ---- ioctls ----------------------------------------------------------------------------- */

union nda_arg {
	struct nda_ioc_query query;
	struct nda_ioc_host_pin pin;
	struct nda_ioc_export export;
	struct nda_ioc_db_map db;
	struct nda_ioc_destroy destroy;
	struct nda_ioc_status status;
	struct nda_ioc_event event;
};

static int nda_query(struct nda_file *file, union nda_arg *arg, struct nda_made *made)
{
	return nda_query_ioctl(file, &arg->query);
}

static int nda_pin(struct nda_file *file, union nda_arg *arg, struct nda_made *made)
{
	if (arg->pin.dev.reserved || arg->pin.reserved || arg->pin.flags)
		return -EINVAL;
	return nda_pin_ioctl(file, &arg->pin, made);
}

static int nda_export(struct nda_file *file, union nda_arg *arg, struct nda_made *made)
{
	if (arg->export.reserved)
		return -EINVAL;
	return nda_export_ioctl(file, &arg->export, made);
}

static int nda_db(struct nda_file *file, union nda_arg *arg, struct nda_made *made)
{
	if (arg->db.npu.reserved || arg->db.reserved)
		return -EINVAL;
	return nda_db_ioctl(file, &arg->db, made);
}

static int nda_destroy(struct nda_file *file, union nda_arg *arg, struct nda_made *made)
{
	struct nda_object *object;
	int ret = 0;

	if (arg->destroy.flags)
		return -EINVAL;
	object = nda_file_object(file, arg->destroy.handle);
	if (!object)
		return -ENOENT;
	mutex_lock(&file->lock);
	if (object->ops->busy)
		ret = object->ops->busy(object);
	mutex_unlock(&file->lock);
	if (!ret)
		ret = nda_object_destroy(file, object);
	nda_object_put(object);
	return ret;
}

static int nda_status(struct nda_file *file, union nda_arg *arg, struct nda_made *made)
{
	struct nda_object *object = nda_file_object(file, arg->status.handle);

	if (!object)
		return -ENOENT;
	arg->status = (struct nda_ioc_status){
		.handle = arg->status.handle,
		.kind = object->ops->kind,
	};
	object->ops->status(object, &arg->status);
	nda_object_put(object);
	return 0;
}

static int nda_event(struct nda_file *file, union nda_arg *arg, struct nda_made *made)
{
	struct eventfd_ctx *event = NULL;

	if (arg->event.flags || arg->event.eventfd < -1)
		return -EINVAL;
	if (arg->event.eventfd >= 0) {
		event = eventfd_ctx_fdget(arg->event.eventfd);
		/* -EINVAL would say that the structure is wrong. */
		if (IS_ERR(event))
			return -EBADF;
	}
	nda_file_set_event(file, event);
	return 0;
}

/**
 * struct nda_call - one ioctl
 * @run: fills *@made if it makes an object
 * @v1_size: of the structure's first version: the least that a caller may have
 * @size: of the structure as it is here
 * @makes: it makes an object of the opener's memory
 * @handle: where in the structure its handle goes
 * @mmap_off: where in the structure goes at which offset of the file it may be mapped, or 0
 * @writes: the structure goes back to the caller
 */
struct nda_call {
	int (*run)(struct nda_file *file, union nda_arg *arg, struct nda_made *made);
	u16 v1_size;
	u16 size;
	u16 handle;
	u16 mmap_off;
	bool makes;
	bool writes;
};

#define NDA_CALL(function, member, v1) \
	.run = function, .v1_size = v1, .size = sizeof_field(union nda_arg, member)

static const struct nda_call nda_calls[] = {
	[_IOC_NR(NDA_IOC_QUERY)] = { NDA_CALL(nda_query, query, 40), .writes = true },
	[_IOC_NR(NDA_IOC_HOST_PIN)] = { NDA_CALL(nda_pin, pin, 40), .makes = true, .writes = true,
					.handle = offsetof(union nda_arg, pin.handle) },
	[_IOC_NR(NDA_IOC_EXPORT)] = { NDA_CALL(nda_export, export, 48), .makes = true,
				      .writes = true,
				      .handle = offsetof(union nda_arg, export.handle) },
	[_IOC_NR(NDA_IOC_DB_MAP)] = { NDA_CALL(nda_db, db, 48), .makes = true, .writes = true,
				      .handle = offsetof(union nda_arg, db.handle),
				      .mmap_off = offsetof(union nda_arg, db.mmap_off) },
	[_IOC_NR(NDA_IOC_DESTROY)] = { NDA_CALL(nda_destroy, destroy, 8) },
	[_IOC_NR(NDA_IOC_STATUS)] = { NDA_CALL(nda_status, status, 24), .writes = true },
	[_IOC_NR(NDA_IOC_EVENT)] = { NDA_CALL(nda_event, event, 8) },
};

/* Gives what was made a handle, writes the answer, installs the descriptor; or undoes all. */
static int nda_hand_out(struct nda_file *file, const struct nda_call *call, union nda_arg *arg,
			void __user *to, size_t size, struct nda_made *made)
{
	struct nda_object *object = made->object;
	int ret;

	/* For use after the handle is there: whoever guesses it may destroy the object. */
	kref_get(&object->ref);
	ret = xa_alloc_cyclic(&file->objects, &object->handle, object, XA_LIMIT(1, INT_MAX),
			      &file->next, GFP_KERNEL_ACCOUNT);
	if (ret < 0) {
		object->ops->detach(object);
		atomic_dec(&file->count);
		nda_object_put(object);
		goto close;
	}
	*(u32 *)((char *)arg + call->handle) = object->handle;
	if (call->mmap_off)
		*(u64 *)((char *)arg + call->mmap_off) = (u64)object->handle << PAGE_SHIFT;
	ret = 0;
	if (copy_to_user(to, arg, size)) {
		nda_object_destroy(file, object);
		ret = -EFAULT;
	}
close:
	if (made->file && ret) {
		put_unused_fd(made->fd);
		fput(made->file);
	} else if (made->file) {
		fd_install(made->fd, made->file);
	}
	nda_object_put(object);
	return ret;
}

static int nda_make(struct nda_file *file, const struct nda_call *call, union nda_arg *arg,
		    void __user *to, size_t size)
{
	struct nda_made made = {};
	int ret;

	if (current->mm != file->mm)
		return -EPERM;
	if (atomic_inc_return(&file->count) > NDA_MAX_OBJECTS) {
		atomic_dec(&file->count);
		return -EDQUOT;
	}
	ret = call->run(file, arg, &made);
	if (ret) {
		atomic_dec(&file->count);
		return ret;
	}
	return nda_hand_out(file, call, arg, to, size, &made);
}

static long nda_ioctl(struct file *filp, unsigned int cmd, unsigned long user)
{
	void __user *from = (void __user *)user;
	size_t size = _IOC_SIZE(cmd);
	const struct nda_call *call;
	union nda_arg arg;
	u32 nr = _IOC_NR(cmd);
	int ret;

	if (_IOC_TYPE(cmd) != NDA_IOC_TYPE || nr >= ARRAY_SIZE(nda_calls))
		return -ENOTTY;
	call = &nda_calls[array_index_nospec(nr, ARRAY_SIZE(nda_calls))];
	if (size < call->v1_size)
		return -EINVAL;
	/* No byte of the stack may get out that the structure does not cover. */
	memset(&arg, 0, sizeof(arg));
	ret = copy_struct_from_user(&arg, call->size, from, size);
	if (ret)
		return ret;
	size = min_t(size_t, size, call->size);
	if (call->makes)
		return nda_make(filp->private_data, call, &arg, from, size);
	ret = call->run(filp->private_data, &arg, NULL);
	if (!ret && call->writes && copy_to_user(from, &arg, size))
		ret = -EFAULT;
	return ret;
}

const struct file_operations nda_fops = {
	.owner = THIS_MODULE,
	.open = nda_open,
	.release = nda_release,
	.unlocked_ioctl = nda_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = nda_mmap,
};
