/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The binary interface of ibv_extend 4.2.0 on LP64, as recorded from compiling upstream's
 * header. Included by a C and by a C++ test.
 */
#ifndef NDA_TESTS_IBV_EXTEND_LAYOUT_H
#define NDA_TESTS_IBV_EXTEND_LAYOUT_H

#include "ibv_extend.h"

#include <assert.h>
#include <stddef.h>

#define SIZE(type, size) static_assert(sizeof(struct type) == (size), #type)
#define AT(type, member, offset)                                                           \
	static_assert(offsetof(struct type, member) == (offset), #type "." #member)
#define VALUE(name, value) static_assert((int)(name) == (value), #name)

/* What the structures embed; a change of these headers changes the interface. */
SIZE(ibv_device, 664);
SIZE(ibv_context, 328);
SIZE(ibv_qp_init_attr, 64);
SIZE(ibv_srq_init_attr, 24);
SIZE(ibv_cq_init_attr_ex, 56);

SIZE(ibv_context_extend, 16);
AT(ibv_context_extend, context, 0);
AT(ibv_context_extend, ops, 8);

SIZE(doorbell_map_desc, 40);
AT(doorbell_map_desc, hva, 0);
AT(doorbell_map_desc, ub_res.guid_l, 0);
AT(doorbell_map_desc, ub_res.guid_h, 8);
AT(doorbell_map_desc, ub_res.bits, 16);
AT(doorbell_map_desc, size, 24);
AT(doorbell_map_desc, type, 32);
AT(doorbell_map_desc, resv, 36);

SIZE(ibv_extend_ops, 48);
AT(ibv_extend_ops, alloc, 0);
AT(ibv_extend_ops, free, 8);
AT(ibv_extend_ops, memset_s, 16);
AT(ibv_extend_ops, memcpy_s, 24);
AT(ibv_extend_ops, db_mmap, 32);
AT(ibv_extend_ops, db_unmap, 40);

SIZE(iov_addr_desc, 16);
AT(iov_addr_desc, iov_base, 0);
AT(iov_addr_desc, iov_len, 8);

SIZE(queue_buf, 48);
AT(queue_buf, base, 0);
AT(queue_buf, entry_cnt, 8);
AT(queue_buf, entry_size, 12);
AT(queue_buf, resv, 16);

SIZE(queue_info, 128);
AT(queue_info, qbuf, 0);
AT(queue_info, dbr_pi_va, 48);
AT(queue_info, dbr_ci_va, 64);
AT(queue_info, db_hw_va, 80);
AT(queue_info, resv, 96);

SIZE(ibv_qp_extend, 520);
AT(ibv_qp_extend, qp, 0);
AT(ibv_qp_extend, sq_info, 8);
AT(ibv_qp_extend, rq_info, 136);
AT(ibv_qp_extend, resv, 264);
AT(ibv_qp_extend, vendor_priv_info, 512);
AT(ibv_qp_extend, vendor_priv_info.vendor1.db_cos, 512);
AT(ibv_qp_extend, vendor_priv_info.vendor1.resv, 513);
AT(ibv_qp_extend, vendor_priv_info.value, 512);

SIZE(ibv_cq_extend, 392);
AT(ibv_cq_extend, cq, 0);
AT(ibv_cq_extend, cq_info, 8);
AT(ibv_cq_extend, resv, 136);

SIZE(ibv_srq_extend, 392);
AT(ibv_srq_extend, srq, 0);
AT(ibv_srq_extend, srq_info, 8);
AT(ibv_srq_extend, resv, 136);

SIZE(ibv_qp_init_attr_extend, 152);
AT(ibv_qp_init_attr_extend, pd, 0);
AT(ibv_qp_init_attr_extend, attr, 8);
AT(ibv_qp_init_attr_extend, qp_cap_flag, 72);
AT(ibv_qp_init_attr_extend, type, 76);
AT(ibv_qp_init_attr_extend, ops, 80);
AT(ibv_qp_init_attr_extend, resv, 88);

SIZE(ibv_cq_init_attr_extend, 136);
AT(ibv_cq_init_attr_extend, attr, 0);
AT(ibv_cq_init_attr_extend, cq_cap_flag, 56);
AT(ibv_cq_init_attr_extend, type, 60);
AT(ibv_cq_init_attr_extend, ops, 64);
AT(ibv_cq_init_attr_extend, resv, 72);

SIZE(ibv_srq_init_attr_extend, 120);
AT(ibv_srq_init_attr_extend, pd, 0);
AT(ibv_srq_init_attr_extend, attr, 8);
AT(ibv_srq_init_attr_extend, comp_mask, 32);
AT(ibv_srq_init_attr_extend, srq_cap_flag, 36);
AT(ibv_srq_init_attr_extend, type, 40);
AT(ibv_srq_init_attr_extend, ops, 48);
AT(ibv_srq_init_attr_extend, resv, 56);

SIZE(ibv_device_attr_extend, 132);
AT(ibv_device_attr_extend, ext_cap, 0);
AT(ibv_device_attr_extend, resv, 4);

SIZE(ibv_hyroce_feature, 64);
AT(ibv_hyroce_feature, type, 0);
AT(ibv_hyroce_feature, version, 1);
AT(ibv_hyroce_feature, sack_enable, 2);
AT(ibv_hyroce_feature, resv, 3);

SIZE(ibv_mpath_config, 144);
AT(ibv_mpath_config, flowlet_pkg_num, 0);
AT(ibv_mpath_config, path_num, 4);
AT(ibv_mpath_config, interval, 8);
AT(ibv_mpath_config, path_rr_enable, 12);
AT(ibv_mpath_config, resv, 16);

SIZE(ibv_ar_config, 132);
AT(ibv_ar_config, port_rr_enable, 0);
AT(ibv_ar_config, resv, 4);

SIZE(ibv_sack_config, 136);
AT(ibv_sack_config, srp_range, 0);
AT(ibv_sack_config, oor_range, 4);
AT(ibv_sack_config, resv, 8);

SIZE(ibv_qp_attr_extend, 688);
AT(ibv_qp_attr_extend, qp, 0);
AT(ibv_qp_attr_extend, udp_src_port, 8);
AT(ibv_qp_attr_extend, feature, 12);
AT(ibv_qp_attr_extend, lb_mode, 76);
AT(ibv_qp_attr_extend, mpath, 80);
AT(ibv_qp_attr_extend, ar, 224);
AT(ibv_qp_attr_extend, sack, 356);
AT(ibv_qp_attr_extend, resv, 492);
AT(ibv_qp_attr_extend, lag_port, 680);

SIZE(ibv_context_extend_ops, 96);
AT(ibv_context_extend_ops, version, 0);
AT(ibv_context_extend_ops, create_qp, 8);
AT(ibv_context_extend_ops, create_cq, 16);
AT(ibv_context_extend_ops, create_srq, 24);
AT(ibv_context_extend_ops, destroy_qp, 32);
AT(ibv_context_extend_ops, destroy_cq, 40);
AT(ibv_context_extend_ops, destroy_srq, 48);
AT(ibv_context_extend_ops, query_device, 56);
AT(ibv_context_extend_ops, modify_qp, 64);
AT(ibv_context_extend_ops, query_qp, 72);
AT(ibv_context_extend_ops, query_qp_supported_hyroce_feature, 80);
AT(ibv_context_extend_ops, nego_qp_hyroce_feature, 88);

SIZE(verbs_device_extend_ops, 24);
AT(verbs_device_extend_ops, name, 0);
AT(verbs_device_extend_ops, alloc_context, 8);
AT(verbs_device_extend_ops, free_context, 16);

VALUE(IBV_EXTEND_VERSION_MAJOR, 4);
VALUE(IBV_EXTEND_VERSION_MINOR, 2);
VALUE(IBV_EXTEND_VERSION_PATCH, 0);
VALUE(IBV_EXTEND_DRIVER_VERSION_UNUSED, 0);
VALUE(IBV_EXTEND_DRIVER_VERSION_V1, 1);
VALUE(IBV_EXTEND_DRIVER_VERSION_V2, 2);
VALUE(IBV_EXTEND_DRIVER_VERSION_V3, 3);
VALUE(IBV_EXTEND_DRIVER_VERSION_MAX, 3);
VALUE(QUEUE_BUF_DMA_MODE_DEFAULT, 0);
VALUE(QUEUE_BUF_DMA_MODE_INDEP_UB, 1);
VALUE(DOORBELL_MAP_MODE_HOST_VA, 0);
VALUE(DOORBELL_MAP_MODE_UB_RES, 1);
VALUE(MEMCPY_DIRECTION_HOST_TO_HOST, 0);
VALUE(MEMCPY_DIRECTION_HOST_TO_DEVICE, 1);
VALUE(MEMCPY_DIRECTION_DEVICE_TO_HOST, 2);
VALUE(MEMCPY_DIRECTION_DEVICE_TO_DEVICE, 3);
VALUE(QP_ENABLE_DIRECT_WQE, 1);
VALUE(IBV_EXTEND_DEV_NDR, 1);
VALUE(IBV_EXTEND_DEV_NDA, 2);
VALUE(IBV_HYPER_FEAT_RoCEv2, 0);
VALUE(IBV_HYPER_FEAT_VEROCE, 1);
VALUE(IBV_HYPER_FEAT_HYPER_ROCE, 2);
VALUE(IBV_HYPER_FEAT_V0, 0);
VALUE(IBV_HYPER_FEAT_V3, 3);
VALUE(IBV_LB_MODE_DEFAULT, 0);
VALUE(IBV_LB_MODE_MPATH, 1);
VALUE(IBV_LB_MODE_AR, 2);
VALUE(IBV_QP_ATTR_EXTEND_UDP_SRC_PORT, 0x1);
VALUE(IBV_QP_ATTR_EXTEND_HYROCE_FEATURE, 0x2);
VALUE(IBV_QP_ATTR_EXTEND_LB_MODE, 0x4);
VALUE(IBV_QP_ATTR_EXTEND_MPATH_CONFIG, 0x8);
VALUE(IBV_QP_ATTR_EXTEND_AR_CONFIG, 0x10);
VALUE(IBV_QP_ATTR_EXTEND_SACK_CONFIG, 0x20);
VALUE(IBV_QP_ATTR_EXTEND_LAG_PORT, 0x40);
VALUE(IBV_QP_ATTR_EXTEND_MAX, 0x80);

#undef SIZE
#undef AT
#undef VALUE

#endif
