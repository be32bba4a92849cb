// SPDX-License-Identifier: GPL-2.0
#include "nda_internal.h"
u32 nda_db_features(void) { return 0; }
int nda_db_ioctl(struct nda_file *file, struct nda_ioc_db_map *arg, struct nda_made *made) { return -EOPNOTSUPP; }
int nda_db_address(struct nda_object *object, struct device *dev, dma_addr_t *address) { return -ESTALE; }
EXPORT_SYMBOL_GPL(nda_db_address);
