// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbells for Soft-RoCE. Its queues are a process's memory, to which a device may write as to
 * any; but it looks at a send queue only when it is asked to. Here a thread per file reads the
 * words that are doorbells, and where one has changed, asks: ib_post_send() of nothing, on the
 * QP that belongs to the process that bound it.
 *
 * A QP is looked up for each ring, and held for the call only. The RDMA core waits for holders
 * of a QP before the driver destroys it; not all kernels do, and on those that do not nothing can
 * be bound.
 */
#include <linux/io.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>
#include <rdma/restrack.h>

#include "nda_soft.h"

/* Each doorbell has this much to itself. */
#define NDA_KICK_STRIDE 64

/* Of one file. */
#define NDA_KICK_MAX 1024

/* The thread keeps looking for so long after the last ring, and sleeps after so long anyway. */
#define NDA_KICK_IDLE_US 50
#define NDA_KICK_BUSY_US 2000
/* Then it sleeps from the one to the other, longer each time that nothing had rung. */
#define NDA_KICK_SLEEP_MIN_US 20
#define NDA_KICK_SLEEP_MAX_US 1000

/**
 * struct nda_kick - a doorbell
 * @link: in the kicker's list
 * @handle: its name
 * @device: index of the RDMA device
 * @qpn: of the QP
 * @owner: process whose QP it is, held
 * @memory: a BAR's, held, or NULL
 * @page: pinned, where @memory is NULL
 * @offset: of the word in @memory or @page
 * @place: of its bytes, as the owner has them: two doorbells' may not be the same
 * @last: what the word was
 */
struct nda_kick {
	struct list_head link;
	u32 handle;
	u32 device;
	u32 qpn;
	struct pid *owner;
	struct nda_soft_memory *memory;
	struct page *page;
	u64 offset;
	u64 place;
	u32 last;
};

/**
 * struct nda_kicker - the doorbells of a file
 * @lock: guards @kicks, and is held while they are polled
 * @kicks: struct nda_kick
 * @count: how many
 * @last: handle given out
 * @thread: polls; there is one while there are doorbells. Under the file's lock
 */
struct nda_kicker {
	struct mutex lock;
	struct list_head kicks;
	u32 count;
	u32 last;
	struct task_struct *thread;
};

/* Soft-RoCE devices by index. */
static DEFINE_XARRAY(nda_kick_devices);
/* Guards nda_kick_devices; held while a device is used. */
static DECLARE_RWSEM(nda_kick_devices_lock);

static atomic64_t nda_kick_bindings;
static atomic64_t nda_kick_kicks;
static atomic64_t nda_kick_misses;

u64 nda_kick_count(u32 what)
{
	switch (what) {
	case NDA_SOFT_QUERY_BINDINGS:
		return atomic64_read(&nda_kick_bindings);
	case NDA_SOFT_QUERY_KICKS:
		return atomic64_read(&nda_kick_kicks);
	default:
		return atomic64_read(&nda_kick_misses);
	}
}

bool nda_kick_possible(void)
{
	return nda_restrack_waits();
}

/* ---- Devices ---------------------------------------------------------------------------- */

static int nda_kick_add(struct ib_device *device)
{
	int ret;

	if (device->ops.driver_id != RDMA_DRIVER_RXE)
		return -EOPNOTSUPP;
	down_write(&nda_kick_devices_lock);
	ret = xa_err(xa_store(&nda_kick_devices, device->index, device, GFP_KERNEL));
	up_write(&nda_kick_devices_lock);
	return ret;
}

/* Nobody uses it when this returns. */
static void nda_kick_remove(struct ib_device *device, void *data)
{
	down_write(&nda_kick_devices_lock);
	if (xa_load(&nda_kick_devices, device->index) == device)
		xa_erase(&nda_kick_devices, device->index);
	up_write(&nda_kick_devices_lock);
}

static struct ib_client nda_kick_client = {
	.name = "nda_soft",
	.add = nda_kick_add,
	.remove = nda_kick_remove,
	.no_kverbs_req = 1,
};

/* ---- QPs -------------------------------------------------------------------------------- */

/* Whether it is a process's QP, of that process, and of a type that has a send queue of its own. */
static int nda_kick_check(struct ib_qp *qp, struct pid *owner)
{
	if (rdma_is_kernel_res(&qp->res) || !qp->res.task || task_tgid(qp->res.task) != owner)
		return -EPERM;
	if (qp->qp_type != IB_QPT_RC && qp->qp_type != IB_QPT_UC && qp->qp_type != IB_QPT_UD)
		return -EOPNOTSUPP;
	return 0;
}

/* Calls @use with the QP held. */
static int nda_kick_with_qp(const struct nda_kick *kick, void (*use)(struct ib_qp *qp))
{
	struct rdma_restrack_entry *res;
	struct ib_device *device;
	struct ib_qp *qp;
	int ret = -ENODEV;

	down_read(&nda_kick_devices_lock);
	device = xa_load(&nda_kick_devices, kick->device);
	if (!device)
		goto unlock;
	ret = -ENOENT;
	res = rdma_restrack_get_byid(device, RDMA_RESTRACK_QP, kick->qpn);
	if (IS_ERR(res))
		goto unlock;
	qp = container_of(res, struct ib_qp, res);
	ret = nda_kick_check(qp, kick->owner);
	if (!ret)
		use(qp);
	rdma_restrack_put(res);
unlock:
	up_read(&nda_kick_devices_lock);
	return ret;
}

static void nda_kick_nothing(struct ib_qp *qp)
{
}

static void nda_kick_send(struct ib_qp *qp)
{
	/* A QP that cannot send now says so; it looks at its queue once it can. */
	ib_post_send(qp, NULL, NULL);
}

/* ---- Polling ---------------------------------------------------------------------------- */

/* The doorbell's word, or what it was last where it is gone. */
static u32 nda_kick_read(struct nda_kick *kick)
{
	struct nda_soft_bar *bar;
	u32 value = kick->last;

	if (!kick->memory)
		return READ_ONCE(*(u32 *)(page_address(kick->page) + kick->offset));
	bar = kick->memory->bar;
	mutex_lock(&kick->memory->lock);
	if (!kick->memory->freed)
		value = ioread32(bar->io + (kick->memory->phys - bar->begin) + kick->offset);
	mutex_unlock(&kick->memory->lock);
	return value;
}

/* Returns whether one had rung. */
static bool nda_kick_poll(struct nda_kicker *kicker)
{
	struct nda_kick *kick;
	bool rang = false;
	u32 value;

	mutex_lock(&kicker->lock);
	list_for_each_entry(kick, &kicker->kicks, link) {
		value = nda_kick_read(kick);
		if (value == kick->last)
			continue;
		kick->last = value;
		rang = true;
		/* The queue, which was written before the doorbell, is read after it. */
		smp_rmb();
		if (nda_kick_with_qp(kick, nda_kick_send))
			atomic64_inc(&nda_kick_misses);
		else
			atomic64_inc(&nda_kick_kicks);
	}
	mutex_unlock(&kicker->lock);
	return rang;
}

static int nda_kick_thread(void *arg)
{
	struct nda_kicker *kicker = arg;
	ktime_t now, rang, woke;
	u32 sleep = NDA_KICK_SLEEP_MIN_US;

	rang = woke = ktime_get();
	while (!kthread_should_stop()) {
		now = ktime_get();
		if (nda_kick_poll(kicker)) {
			rang = now;
			sleep = NDA_KICK_SLEEP_MIN_US;
		}
		cond_resched();
		if (ktime_us_delta(now, rang) < NDA_KICK_IDLE_US &&
		    ktime_us_delta(now, woke) < NDA_KICK_BUSY_US)
			continue;
		usleep_range(sleep, sleep * 2);
		sleep = min_t(u32, sleep * 2, NDA_KICK_SLEEP_MAX_US);
		woke = ktime_get();
	}
	return 0;
}

/* ---- Binding ---------------------------------------------------------------------------- */

static void nda_kick_release_word(struct nda_kick *kick)
{
	if (kick->memory)
		nda_soft_memory_put(kick->memory);
	else
		unpin_user_page(kick->page);
}

/* Holds the memory that the word is in. */
static int nda_kick_hold_word(struct nda_kick *kick, u64 va)
{
	struct nda_soft_memory *memory;
	long got;

	memory = nda_soft_memory_find(va, NDA_KICK_STRIDE, &kick->offset);
	if (memory && memory->bar) {
		kick->memory = memory;
		return 0;
	}
	if (memory)
		nda_soft_memory_put(memory);
	kick->offset = offset_in_page(va);
	got = pin_user_pages_fast(va & PAGE_MASK, 1, FOLL_LONGTERM | FOLL_WRITE, &kick->page);
	if (got == 1)
		return 0;
	return got < 0 ? got : -EFAULT;
}

static void nda_kick_destroy(struct nda_kick *kick)
{
	nda_kick_release_word(kick);
	put_pid(kick->owner);
	kfree(kick);
	atomic64_dec(&nda_kick_bindings);
}

static struct nda_kick *nda_kick_new(const struct nda_soft_ioc_bind *arg)
{
	struct nda_kick *kick = kzalloc(sizeof(*kick), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!kick)
		return ERR_PTR(-ENOMEM);
	kick->device = arg->device;
	kick->qpn = arg->qpn;
	kick->place = arg->va;
	kick->owner = get_task_pid(current, PIDTYPE_TGID);
	ret = nda_kick_with_qp(kick, nda_kick_nothing);
	if (ret)
		goto free;
	ret = nda_kick_hold_word(kick, arg->va);
	if (ret)
		goto free;
	kick->last = nda_kick_read(kick);
	atomic64_inc(&nda_kick_bindings);
	return kick;

free:
	put_pid(kick->owner);
	kfree(kick);
	return ERR_PTR(ret);
}

static int nda_kick_list(struct nda_kicker *kicker, struct nda_kick *kick)
{
	struct nda_kick *other;
	int ret = -EBUSY;

	mutex_lock(&kicker->lock);
	list_for_each_entry(other, &kicker->kicks, link) {
		if (other->place == kick->place)
			goto unlock;
	}
	ret = -EDQUOT;
	if (kicker->count >= NDA_KICK_MAX)
		goto unlock;
	kick->handle = ++kicker->last;
	list_add_tail(&kick->link, &kicker->kicks);
	kicker->count++;
	ret = 0;
unlock:
	mutex_unlock(&kicker->lock);
	return ret;
}

static struct nda_kicker *nda_kicker_get(struct nda_soft_file *file)
{
	struct nda_kicker *kicker = file->kicker;

	if (kicker)
		return kicker;
	kicker = kzalloc(sizeof(*kicker), GFP_KERNEL_ACCOUNT);
	if (!kicker)
		return NULL;
	mutex_init(&kicker->lock);
	INIT_LIST_HEAD(&kicker->kicks);
	file->kicker = kicker;
	return kicker;
}

static int nda_kicker_start(struct nda_kicker *kicker)
{
	struct task_struct *thread;

	if (kicker->thread)
		return 0;
	thread = kthread_run(nda_kick_thread, kicker, "nda_kick/%d", task_tgid_nr(current));
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	kicker->thread = thread;
	return 0;
}

static void nda_kicker_stop(struct nda_kicker *kicker)
{
	if (kicker->thread)
		kthread_stop(kicker->thread);
	kicker->thread = NULL;
}

/**
 * nda_kick_bind() - makes a word the doorbell of a QP
 * @file: of current; its lock is held
 * @arg: @arg->handle is filled
 *
 * Return: 0; the errors of the ABI.
 */
int nda_kick_bind(struct nda_soft_file *file, struct nda_soft_ioc_bind *arg)
{
	struct nda_kicker *kicker;
	struct nda_kick *kick;
	int ret;

	if (!arg->va || arg->va % NDA_KICK_STRIDE || arg->va > ULONG_MAX)
		return -EINVAL;
	if (!nda_kick_possible())
		return -EOPNOTSUPP;
	kicker = nda_kicker_get(file);
	if (!kicker)
		return -ENOMEM;
	kick = nda_kick_new(arg);
	if (IS_ERR(kick))
		return PTR_ERR(kick);
	ret = nda_kick_list(kicker, kick);
	if (ret) {
		nda_kick_destroy(kick);
		return ret;
	}
	arg->handle = kick->handle;
	ret = nda_kicker_start(kicker);
	if (ret)
		nda_kick_unbind(file, kick->handle);
	return ret;
}

static struct nda_kick *nda_kick_unlist(struct nda_kicker *kicker, u32 handle)
{
	struct nda_kick *kick, *found = NULL;

	mutex_lock(&kicker->lock);
	list_for_each_entry(kick, &kicker->kicks, link) {
		if (kick->handle == handle) {
			list_del(&kick->link);
			kicker->count--;
			found = kick;
			break;
		}
	}
	mutex_unlock(&kicker->lock);
	return found;
}

/**
 * nda_kick_unbind() - undoes nda_kick_bind()
 * @file: its lock is held
 * @handle: of the doorbell
 *
 * Return: 0; -ENOENT.
 */
int nda_kick_unbind(struct nda_soft_file *file, u32 handle)
{
	struct nda_kick *kick;

	if (!file->kicker)
		return -ENOENT;
	kick = nda_kick_unlist(file->kicker, handle);
	if (!kick)
		return -ENOENT;
	nda_kick_destroy(kick);
	if (!file->kicker->count)
		nda_kicker_stop(file->kicker);
	return 0;
}

/* The file goes. */
void nda_kick_close(struct nda_soft_file *file)
{
	struct nda_kicker *kicker = file->kicker;
	struct nda_kick *kick, *next;

	if (!kicker)
		return;
	nda_kicker_stop(kicker);
	list_for_each_entry_safe(kick, next, &kicker->kicks, link)
		nda_kick_destroy(kick);
	kfree(kicker);
	file->kicker = NULL;
}

int nda_kick_init(void)
{
	return ib_register_client(&nda_kick_client);
}

void nda_kick_exit(void)
{
	ib_unregister_client(&nda_kick_client);
	xa_destroy(&nda_kick_devices);
}
