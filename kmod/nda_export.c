// SPDX-License-Identifier: GPL-2.0
#include "nda_internal.h"
u32 nda_export_features(void) { return 0; }
int nda_export_ioctl(struct nda_file *file, struct nda_ioc_export *arg, struct nda_made *made) { return -EOPNOTSUPP; }
