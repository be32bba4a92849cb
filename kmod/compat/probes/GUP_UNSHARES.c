// SPDX-License-Identifier: GPL-2.0
/* Since 6.2 a long-term pin for reading makes a private copy where one is due. */
#include <linux/mm.h>
bool probe(struct vm_area_struct *vma, struct page *page);
bool probe(struct vm_area_struct *vma, struct page *page)
{
	return gup_must_unshare(vma, 0, page);
}
