// SPDX-License-Identifier: GPL-2.0
/*
 * NPU memory as dma-buf.
 *
 * The exporter is dynamic: its importers are told to let go when the memory is revoked, and
 * mapping it fails from then on. That helps with importers that do as they are told.
 *
 * Importers that pin a buffer do not. They are refused, unless the backend keeps the memory
 * from being freed, or the export allows them and they can be dealt with (see
 * NDA_EXPORT_ALLOW_PINNED). How they are told from the others:
 *
 *  - One without attach operations cannot be told anything. Memory of a BAR is not for it
 *    anyway, as it does not take peer-to-peer addresses, and no exception is made.
 *  - Kernels that have dma_buf_attach_revocable() say it.
 *  - Older ones, and those with CONFIG_DMABUF_MOVE_NOTIFY off, call pin() for each mapping of
 *    each importer. But an importer that pins calls it on its own before it maps, so when it
 *    maps there is one pin more than mappings. This covers every importer that pins through
 *    ib_umem_dmabuf_get_pinned(): MRs of efa, irdma, bnxt_re, mana and ionic, and mlx5's DEVX
 *    memory.
 *
 * What cannot be told: an importer that first maps and then pins (its next mapping fails), and
 * one that has an operation to be told by and ignores it. With an IOMMU their mappings are
 * taken away under them. Without one nothing stops their devices; they are counted and named in
 * the log.
 *
 * Locks: dmabuf_lock > dma_resv > nda_mem's map_lock. dma_resv guards struct nda_attachment.
 */

#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/moduleparam.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "nda_internal.h"
#include "nda_trace.h"

static bool unsafe_pinned;
module_param(unsafe_pinned, bool, 0444);
MODULE_PARM_DESC(unsafe_pinned,
		 "let CAP_SYS_ADMIN export to importers that pin, though their devices may reach "
		 "the memory after it is freed; its owner is killed then (default off)");

/**
 * struct nda_export - the object; held by its handle and by the dma-buf
 * @object: comes first
 * @mem: the memory
 * @flags: NDA_EXPORT_*
 * @unsafe: importers may pin, whatever comes
 * @owner: the process that owns the memory
 * @attachments: how many importers there are
 * @dmabuf_lock: guards @dmabuf and @made; who holds it may use the dma-buf, whose release waits
 * @dmabuf: NULL once it is released
 * @made: there has been one
 */
struct nda_export {
	struct nda_object object;
	struct nda_mem *mem;
	u32 flags;
	bool unsafe;
	struct pid *owner;
	atomic_t attachments;
	struct mutex dmabuf_lock;
	struct dma_buf *dmabuf;
	bool made;
};

/**
 * struct nda_attachment - an importer's
 * @pins: how often it is pinned, by the core for its mappings and by the importer
 * @maps: how many mappings it has
 * @unbound: its device is losing its driver
 */
struct nda_attachment {
	u32 pins;
	u32 maps;
	bool unbound;
};

static struct nda_export *to_export(struct nda_object *object)
{
	return container_of(object, struct nda_export, object);
}

/* ---- Policy ----------------------------------------------------------------------------- */

/**
 * nda_export_features() - what exports can do here
 *
 * Return: NDA_FEATURE_* bits.
 */
u32 nda_export_features(void)
{
	u32 features = NDA_FEATURE_EXPORT;

	if (NDA_TELLS_REVOCABLE)
		features |= NDA_FEATURE_REVOCABLE_IMPORT;
	if (nda_sink_enabled())
		features |= NDA_FEATURE_SINK_REMAP;
	if (unsafe_pinned)
		features |= NDA_FEATURE_UNSAFE_PINNED;
	return features;
}

/* May those be let in who do not let go? For an export that asks to. */
static int nda_export_allow_pinned(struct nda_export *export)
{
	if (!(export->flags & NDA_EXPORT_ALLOW_PINNED) || nda_mem_pinned(export->mem))
		return 0;
	if (unsafe_pinned && capable(CAP_SYS_ADMIN)) {
		export->unsafe = true;
		return 0;
	}
	return nda_sink_enabled() ? 0 : -EPERM;
}

static bool nda_export_may_pin(const struct nda_export *export, struct device *dev)
{
	if (nda_mem_pinned(export->mem))
		return true;
	if (!(export->flags & NDA_EXPORT_ALLOW_PINNED))
		return false;
	return export->unsafe || nda_sink_wanted(dev);
}

/* Whether the importer has pinned by itself, with @maps mappings that the core may pin for. */
static bool nda_attachment_pins(const struct nda_attachment *att, u32 maps)
{
	return att->pins > NDA_CORE_PINS * maps;
}

/* ---- Operations of the dma-buf ---------------------------------------------------------- */

static int nda_export_check_importer(struct nda_export *export, struct dma_buf_attachment *attach)
{
	if (!dev_is_pci(attach->dev) || !attach->dev->dma_mask)
		return -ENODEV;
	if (!attach->peer2peer || !attach->importer_ops)
		return -EOPNOTSUPP;
	return nda_mem_revoked(export->mem) ? -ENODEV : 0;
}

static int nda_export_attach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	struct nda_export *export = dmabuf->priv;
	struct nda_attachment *att = NULL;
	int ret;

	ret = nda_export_check_importer(export, attach);
	if (!ret) {
		att = kzalloc(sizeof(*att), GFP_KERNEL_ACCOUNT);
		ret = att ? 0 : -ENOMEM;
	}
	trace_nda_attach(export->object.id, attach->dev, ret);
	if (ret)
		return ret;
	attach->priv = att;
	atomic_inc(&export->attachments);
	return 0;
}

static void nda_export_detach_importer(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	struct nda_export *export = dmabuf->priv;
	struct nda_attachment *att = attach->priv;

	WARN_ON(att->maps);
	kfree(att);
	atomic_dec(&export->attachments);
}

static int nda_export_pin(struct dma_buf_attachment *attach)
{
	struct nda_export *export = attach->dmabuf->priv;
	struct nda_attachment *att = attach->priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	if (nda_mem_revoked(export->mem))
		return -ENODEV;
	/* Where the core never pins, it is the importer who does. */
	if (!NDA_CORE_PINS && !nda_attach_revocable(attach) &&
	    !nda_export_may_pin(export, attach->dev))
		return -EOPNOTSUPP;
	att->pins++;
	return 0;
}

static void nda_export_unpin(struct dma_buf_attachment *attach)
{
	struct nda_attachment *att = attach->priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	att->pins--;
}

static int nda_export_check_map(struct nda_export *export, struct dma_buf_attachment *attach,
				enum dma_data_direction dir)
{
	struct nda_attachment *att = attach->priv;

	if (att->unbound)
		return -ENODEV;
	if (export->flags & NDA_EXPORT_READONLY && dir != DMA_TO_DEVICE)
		return -EACCES;
	if (nda_attachment_pins(att, att->maps + 1) && !nda_attach_revocable(attach) &&
	    !nda_export_may_pin(export, attach->dev))
		return -EOPNOTSUPP;
	return 0;
}

static struct sg_table *nda_export_map(struct dma_buf_attachment *attach,
				       enum dma_data_direction dir)
{
	struct nda_export *export = attach->dmabuf->priv;
	struct nda_attachment *att = attach->priv;
	struct sg_table *sgt;
	int ret;

	dma_resv_assert_held(attach->dmabuf->resv);
	ret = nda_export_check_map(export, attach, dir);
	if (ret)
		return ERR_PTR(ret);
	sgt = kzalloc(sizeof(*sgt), GFP_KERNEL_ACCOUNT);
	if (!sgt)
		return ERR_PTR(-ENOMEM);
	ret = nda_mem_map(export->mem, attach->dev, 0, nda_mem_size(export->mem), dir, sgt);
	if (ret) {
		kfree(sgt);
		return ERR_PTR(ret);
	}
	att->maps++;
	return sgt;
}

static void nda_export_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
			     enum dma_data_direction dir)
{
	struct nda_export *export = attach->dmabuf->priv;
	struct nda_attachment *att = attach->priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	att->maps--;
	nda_mem_unmap(export->mem, attach->dev, dir, sgt);
	kfree(sgt);
}

static void nda_export_release(struct dma_buf *dmabuf)
{
	struct nda_export *export = dmabuf->priv;

	mutex_lock(&export->dmabuf_lock);
	export->dmabuf = NULL;
	mutex_unlock(&export->dmabuf_lock);
	nda_object_put(&export->object);
}

static const struct dma_buf_ops nda_export_dmabuf_ops = {
	.attach = nda_export_attach,
	.detach = nda_export_detach_importer,
	.pin = nda_export_pin,
	.unpin = nda_export_unpin,
	.map_dma_buf = nda_export_map,
	.unmap_dma_buf = nda_export_unmap,
	.release = nda_export_release,
};

/* ---- Revocation ------------------------------------------------------------------------- */

/*
 * Its owner is killed if a device may still reach what is about to be another's. That closes
 * the owner's queues, soon, not at once.
 */
static void nda_export_end_owner(struct nda_export *export, struct dma_buf_attachment *attach)
{
	struct nda_attachment *att = attach->priv;

	if (!att->maps || !nda_attachment_pins(att, att->maps) || nda_attach_revocable(attach) ||
	    !export->unsafe || nda_sink_wanted(attach->dev))
		return;
	dev_warn(attach->dev, "nda: has memory pinned that its owner frees: killing process %d\n",
		 pid_nr(export->owner));
	nda_tell("UNSAFE_PINNED", attach->dev, pid_nr(export->owner));
	kill_pid(export->owner, SIGKILL, 1);
}

static void nda_export_revoke(void *priv, u32 reason)
{
	struct nda_export *export = priv;
	struct dma_buf_attachment *attach;
	struct dma_buf *dmabuf;

	mutex_lock(&export->dmabuf_lock);
	dmabuf = export->dmabuf;
	if (dmabuf) {
		dma_resv_lock(dmabuf->resv, NULL);
		dma_buf_invalidate_mappings(dmabuf);
		dma_resv_wait_timeout(dmabuf->resv, DMA_RESV_USAGE_BOOKKEEP, false,
				      MAX_SCHEDULE_TIMEOUT);
		list_for_each_entry(attach, &dmabuf->attachments, node)
			nda_export_end_owner(export, attach);
		dma_resv_unlock(dmabuf->resv);
	}
	if (export->made)
		nda_file_signal(export->object.file);
	mutex_unlock(&export->dmabuf_lock);
}

static const struct nda_mem_user nda_export_user = { .revoke = nda_export_revoke };

/* ---- The object ------------------------------------------------------------------------- */

/* The memory stays with the dma-buf. */
static void nda_export_detach(struct nda_object *object)
{
}

static void nda_export_destroy(struct nda_export *export)
{
	nda_mem_put(export->mem);
	put_pid(export->owner);
	kfree(export);
}

static void nda_export_free(struct nda_object *object)
{
	nda_export_destroy(to_export(object));
}

static void nda_export_status(struct nda_object *object, struct nda_ioc_status *status)
{
	struct nda_export *export = to_export(object);

	status->state = nda_mem_status(export->mem, &status->reason);
	status->attachments = atomic_read(&export->attachments);
	status->mappings = nda_mem_mappings(export->mem);
}

/* True if the device had any. */
static bool nda_export_unbind_importers(struct dma_buf *dmabuf, struct device *dev)
{
	struct dma_buf_attachment *attach;
	struct nda_attachment *att;
	bool found = false;

	dma_resv_lock(dmabuf->resv, NULL);
	list_for_each_entry(attach, &dmabuf->attachments, node) {
		if (attach->dev != dev)
			continue;
		found = true;
		att = attach->priv;
		att->unbound = true;
		nda_attach_invalidate(attach);
	}
	if (found)
		dma_resv_wait_timeout(dmabuf->resv, DMA_RESV_USAGE_BOOKKEEP, false,
				      MAX_SCHEDULE_TIMEOUT);
	dma_resv_unlock(dmabuf->resv);
	return found;
}

/* The device's importers let go; those of other devices are left alone. */
static void nda_export_unbind(struct nda_object *object, struct device *dev)
{
	struct nda_export *export = to_export(object);
	bool found;

	mutex_lock(&export->dmabuf_lock);
	found = export->dmabuf && nda_export_unbind_importers(export->dmabuf, dev);
	mutex_unlock(&export->dmabuf_lock);
	if (found)
		nda_mem_drop(export->mem, dev);
}

static void nda_export_show(struct nda_object *object, struct seq_file *seq)
{
	struct nda_export *export = to_export(object);

	seq_printf(seq, " mem %u size %llu attachments %d mappings %u", nda_mem_id(export->mem),
		   nda_mem_size(export->mem), atomic_read(&export->attachments),
		   nda_mem_mappings(export->mem));
}

static const struct nda_object_ops nda_export_ops = {
	.kind = NDA_KIND_EXPORT,
	.detach = nda_export_detach,
	.free = nda_export_free,
	.status = nda_export_status,
	.unbind = nda_export_unbind,
	.show = nda_export_show,
};

/* ---- The ioctl -------------------------------------------------------------------------- */

/* Makes the dma-buf; once it is there, putting it is the only way to undo it. */
static struct dma_buf *nda_export_make_dmabuf(struct nda_export *export)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *dmabuf;

	info.ops = &nda_export_dmabuf_ops;
	info.size = nda_mem_size(export->mem);
	info.flags = O_CLOEXEC | (export->flags & NDA_EXPORT_READONLY ? O_RDONLY : O_RDWR);
	info.priv = export;
	kref_get(&export->object.ref);
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf)) {
		nda_object_put(&export->object);
		return dmabuf;
	}
	mutex_lock(&export->dmabuf_lock);
	export->dmabuf = dmabuf;
	export->made = true;
	mutex_unlock(&export->dmabuf_lock);
	/* A revocation until here did not see it, and nobody hears of it. */
	if (nda_mem_revoked(export->mem)) {
		dma_buf_put(dmabuf);
		return ERR_PTR(-ECANCELED);
	}
	return dmabuf;
}

static struct nda_export *nda_export_create(const struct nda_ioc_export *arg)
{
	struct nda_export *export = kzalloc(sizeof(*export), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!export)
		return ERR_PTR(-ENOMEM);
	mutex_init(&export->dmabuf_lock);
	export->flags = arg->flags;
	export->mem = nda_mem_get(arg->va, arg->len, &nda_export_user, export);
	if (IS_ERR(export->mem)) {
		ret = PTR_ERR(export->mem);
		kfree(export);
		return ERR_PTR(ret);
	}
	export->owner = get_task_pid(current, PIDTYPE_TGID);
	ret = nda_export_allow_pinned(export);
	if (ret) {
		nda_export_destroy(export);
		return ERR_PTR(ret);
	}
	return export;
}

int nda_export_ioctl(struct nda_file *file, struct nda_ioc_export *arg, struct nda_made *made)
{
	struct nda_export *export;
	struct dma_buf *dmabuf;
	int ret;

	if (arg->flags & ~(NDA_EXPORT_READONLY | NDA_EXPORT_ALLOW_PINNED))
		return -EINVAL;
	made->fd = get_unused_fd_flags(O_CLOEXEC);
	if (made->fd < 0)
		return made->fd;
	export = nda_export_create(arg);
	if (IS_ERR(export)) {
		ret = PTR_ERR(export);
		goto put_fd;
	}
	nda_object_init(&export->object, &nda_export_ops, file);
	dmabuf = nda_export_make_dmabuf(export);
	if (IS_ERR(dmabuf)) {
		ret = PTR_ERR(dmabuf);
		goto put_object;
	}
	trace_nda_export(export->object.id, nda_mem_id(export->mem), nda_mem_size(export->mem),
			 arg->flags);
	arg->fd = made->fd;
	arg->page_size = nda_mem_page_size(export->mem);
	arg->offset = nda_mem_offset(export->mem);
	made->file = dmabuf->file;
	made->object = &export->object;
	return 0;

put_object:
	nda_object_put(&export->object);
put_fd:
	put_unused_fd(made->fd);
	return ret;
}
