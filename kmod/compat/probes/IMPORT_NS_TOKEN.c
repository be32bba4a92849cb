// SPDX-License-Identifier: GPL-2.0
/* Before 6.13 a namespace is named by a token; its text would compile too, and not load. */
#include <linux/module.h>
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS(DMA_BUF);
