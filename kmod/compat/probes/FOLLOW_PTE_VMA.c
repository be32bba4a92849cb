// SPDX-License-Identifier: GPL-2.0
/* In 6.10 and 6.11 it takes the mapping, before the address space. */
#include <linux/mm.h>
int probe(struct vm_area_struct *vma, pte_t **pte, spinlock_t **lock);
int probe(struct vm_area_struct *vma, pte_t **pte, spinlock_t **lock)
{
	return follow_pte(vma, 0, pte, lock);
}
