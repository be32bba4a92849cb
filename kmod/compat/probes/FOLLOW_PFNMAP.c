// SPDX-License-Identifier: GPL-2.0
/* Since 6.12 this is how a page of a device's mapping is found. */
#include <linux/mm.h>
int probe(struct follow_pfnmap_args *args);
int probe(struct follow_pfnmap_args *args)
{
	return follow_pfnmap_start(args);
}
