// SPDX-License-Identifier: GPL-2.0
/* Since 5.15 by this name. */
#include <linux/scatterlist.h>
int probe(struct sg_table *t, struct page **p);
int probe(struct sg_table *t, struct page **p)
{
	return sg_alloc_table_from_pages_segment(t, p, 1, 0, 1, 4096, GFP_KERNEL);
}
