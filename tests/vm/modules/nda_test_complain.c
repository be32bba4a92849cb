// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Provokes a kernel warning, to show that the tests' runner notices. */
#include <linux/module.h>

static int __init nda_test_complain_init(void)
{
	WARN(1, "nda_test_complain: on purpose\n");
	return 0;
}
module_init(nda_test_complain_init);

static void __exit nda_test_complain_exit(void)
{
}
module_exit(nda_test_complain_exit);

MODULE_DESCRIPTION("provokes a kernel warning");
MODULE_LICENSE("Dual BSD/GPL");
