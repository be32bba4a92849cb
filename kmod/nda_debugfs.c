// SPDX-License-Identifier: GPL-2.0
/* nda/{objects,stats} in debugfs, for root: what there is, without addresses. */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "nda_internal.h"

struct dentry *nda_debugfs;

static const char *const nda_kinds[] = {
	[NDA_KIND_PIN] = "pin",
	[NDA_KIND_EXPORT] = "export",
	[NDA_KIND_DOORBELL] = "doorbell",
};

static const char *const nda_count_names[NDA_COUNTS] = {
	[NDA_COUNT_FILES] = "files",
	[NDA_COUNT_OBJECTS] = "objects",
	[NDA_COUNT_PINNED_PAGES] = "pinned_pages",
	[NDA_COUNT_TABLES] = "tables",
	[NDA_COUNT_MAPPINGS] = "mappings",
	[NDA_COUNT_REVOKED] = "revoked",
	[NDA_COUNT_LEFTOVERS] = "leftovers",
	[NDA_COUNT_STALE] = "stale",
	[NDA_COUNT_DOORBELLS_LOST] = "doorbells_lost",
};

static void nda_object_show(struct nda_object *object, void *seq)
{
	struct nda_ioc_status status = {};

	object->ops->status(object, &status);
	seq_printf(seq, "%u %s handle %u state %u reason %u attachments %u mappings %u", object->id,
		   nda_kinds[object->ops->kind], object->handle, status.state, status.reason,
		   status.attachments, status.mappings);
	if (object->ops->show)
		object->ops->show(object, seq);
	seq_putc(seq, '\n');
}

static int objects_show(struct seq_file *seq, void *unused)
{
	nda_objects_visit(nda_object_show, seq);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(objects);

static int stats_show(struct seq_file *seq, void *unused)
{
	u32 i;

	for (i = 0; i < NDA_COUNTS; i++)
		seq_printf(seq, "%s %ld\n", nda_count_names[i], atomic_long_read(&nda_counts[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

void nda_debugfs_init(void)
{
	nda_debugfs = debugfs_create_dir("nda", NULL);
	debugfs_create_file("objects", 0400, nda_debugfs, NULL, &objects_fops);
	debugfs_create_file("stats", 0400, nda_debugfs, NULL, &stats_fops);
}

void nda_debugfs_exit(void)
{
	debugfs_remove_recursive(nda_debugfs);
}
