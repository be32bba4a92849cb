// SPDX-License-Identifier: GPL-2.0
/* Since 6.3 a mapping's flags are set by a function. */
#include <linux/mm.h>
#include <linux/module.h>
MODULE_LICENSE("GPL");
void probe(struct vm_area_struct *vma);
void probe(struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_IO);
}
