// SPDX-License-Identifier: GPL-2.0
#include "nda_internal.h"
int nda_mem_init(void) { return 0; }
void nda_mem_exit(void) {}
u32 nda_part_why(u32 part) { return NDA_WHY_NOT_LOADED; }
void nda_mem_unbind(struct device *dev) {}
