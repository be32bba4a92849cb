// SPDX-License-Identifier: GPL-2.0
/* Tells what is to fail: nda.ko's parameter fail_at, by the numbers. */
#include <linux/export.h>
#include <linux/moduleparam.h>

static DEFINE_SPINLOCK(nda_fault_lock);
/* The how-manieth from now on fails; 0: none does. It is 0 again once one has. */
static int nda_fail_at;
module_param_named(fail_at, nda_fail_at, int, 0600);

/* Single pages freed so far. */
static int nda_freed;
module_param_named(freed, nda_freed, int, 0400);

void nda_count_freed(void)
{
	spin_lock(&nda_fault_lock);
	nda_freed++;
	spin_unlock(&nda_fault_lock);
}
EXPORT_SYMBOL_GPL(nda_count_freed);

bool nda_fault(void)
{
	unsigned long flags;
	bool fails;

	spin_lock_irqsave(&nda_fault_lock, flags);
	fails = nda_fail_at > 0 && --nda_fail_at == 0;
	spin_unlock_irqrestore(&nda_fault_lock, flags);
	return fails;
}
EXPORT_SYMBOL_GPL(nda_fault);
