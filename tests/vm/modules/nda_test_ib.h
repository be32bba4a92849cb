/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/* What the RDMA device of nda_test_ib.ko maps, by the page offset of the mapping. */
#ifndef NDA_TEST_IB_H
#define NDA_TEST_IB_H

#define NDA_TEST_IB_BAR 0 /* its function's first BAR, from its beginning */
#define NDA_TEST_IB_CACHED 1 /* the same, as memory that may be cached */
#define NDA_TEST_IB_RAM 2 /* a page of RAM, as if it were a device's */
#define NDA_TEST_IB_NOWHERE 3 /* a page of no device */

#endif
