// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/extended.h"

#include "providers/soft/error.h"

#include <algorithm>
#include <cstring>

namespace nda::soft {
namespace {

constexpr uint32_t max_paths = 64;
constexpr uint32_t default_paths = 8; // where the configuration leaves it open
constexpr uint32_t max_lag_port = 1;  // a port for each port of the device

constexpr ibv_hyroce_feature best()
{
	ibv_hyroce_feature f = {};
	f.type = IBV_HYPER_FEAT_HYPER_ROCE;
	f.version = IBV_HYPER_FEAT_V3;
	f.sack_enable = 1;
	return f;
}

// Plain RoCEv2 has version 0 and no selective acknowledgement, the others one from 1 on.
int check_feature(uint32_t qpn, const ibv_hyroce_feature &f)
{
	bool plain = f.type == IBV_HYPER_FEAT_RoCEv2;
	if (f.type > IBV_HYPER_FEAT_HYPER_ROCE || f.version > IBV_HYPER_FEAT_V3 ||
		f.sack_enable > 1 || plain != (f.version == IBV_HYPER_FEAT_V0) ||
		(plain && f.sack_enable))
		return fail(-EINVAL,
			"QP %u: HYROCE_FEATURE: type %u, version %u, sack_enable %u", qpn,
			f.type, f.version, f.sack_enable);
	return 0;
}

int check_flag(uint32_t qpn, const char *name, uint32_t value)
{
	return value > 1 ? fail(-EINVAL, "QP %u: %s %u is not 0 or 1", qpn, name, value)
			 : 0;
}

int raw(const ibv_lb_mode &mode)
{
	int number;
	memcpy(&number, &mode, sizeof(number));
	return number;
}

int check(uint32_t qpn, const ibv_qp_attr_extend &a, int mask, bool before_rtr)
{
	if ((mask & IBV_QP_ATTR_EXTEND_UDP_SRC_PORT) && a.udp_src_port > UINT16_MAX)
		return fail(-EINVAL, "QP %u: UDP_SRC_PORT %u is more than 65535", qpn,
			a.udp_src_port);
	if (mask & IBV_QP_ATTR_EXTEND_HYROCE_FEATURE) {
		if (!before_rtr)
			return fail(-EINVAL,
				"QP %u: HYROCE_FEATURE is fixed once it is ready to "
				"receive",
				qpn);
		int rc = check_feature(qpn, a.feature);
		if (rc)
			return rc;
	}
	int mode = raw(a.lb_mode);
	if ((mask & IBV_QP_ATTR_EXTEND_LB_MODE) &&
		(mode < IBV_LB_MODE_DEFAULT || mode > IBV_LB_MODE_AR))
		return fail(-EINVAL, "QP %u: LB_MODE %d is not 0 to 2", qpn, mode);
	if (mask & IBV_QP_ATTR_EXTEND_MPATH_CONFIG) {
		if (a.mpath.path_num > max_paths)
			return fail(-EINVAL,
				"QP %u: MPATH_CONFIG: path_num %u is more than %u", qpn,
				a.mpath.path_num, max_paths);
		int rc = check_flag(
			qpn, "MPATH_CONFIG: path_rr_enable", a.mpath.path_rr_enable);
		if (rc)
			return rc;
	}
	if (mask & IBV_QP_ATTR_EXTEND_AR_CONFIG) {
		int rc = check_flag(qpn, "AR_CONFIG: port_rr_enable", a.ar.port_rr_enable);
		if (rc)
			return rc;
	}
	if ((mask & IBV_QP_ATTR_EXTEND_LAG_PORT) && a.lag_port > max_lag_port)
		return fail(-EINVAL, "QP %u: LAG_PORT %u is more than %u", qpn, a.lag_port,
			max_lag_port);
	return 0;
}

// The members that mask names.
void copy(ibv_qp_attr_extend &to, const ibv_qp_attr_extend &from, int mask)
{
	if (mask & IBV_QP_ATTR_EXTEND_UDP_SRC_PORT)
		to.udp_src_port = from.udp_src_port;
	if (mask & IBV_QP_ATTR_EXTEND_HYROCE_FEATURE)
		to.feature = from.feature;
	if (mask & IBV_QP_ATTR_EXTEND_LB_MODE)
		to.lb_mode = from.lb_mode;
	if (mask & IBV_QP_ATTR_EXTEND_MPATH_CONFIG)
		to.mpath = from.mpath;
	if (mask & IBV_QP_ATTR_EXTEND_AR_CONFIG)
		to.ar = from.ar;
	if (mask & IBV_QP_ATTR_EXTEND_SACK_CONFIG)
		to.sack = from.sack;
	if (mask & IBV_QP_ATTR_EXTEND_LAG_PORT)
		to.lag_port = from.lag_port;
}

bool equal(const ibv_hyroce_feature &a, const ibv_hyroce_feature &b)
{
	return a.type == b.type && a.version == b.version && a.sack_enable == b.sack_enable;
}

} // namespace

ExtendedAttributes::ExtendedAttributes() : offered_(best()) {}

int ExtendedAttributes::set(
	uint32_t qpn, const ibv_qp_attr_extend &from, int mask, bool before_rtr)
{
	int rc = check(qpn, from, mask, before_rtr);
	if (rc == 0)
		copy(values_, from, mask);
	return rc;
}

void ExtendedAttributes::get(ibv_qp_attr_extend &to, int mask) const
{
	copy(to, values_, mask);
}

size_t ExtendedAttributes::window() const
{
	switch (values_.lb_mode) {
	case IBV_LB_MODE_MPATH:
		return values_.mpath.path_num ? values_.mpath.path_num : default_paths;
	case IBV_LB_MODE_AR:
		return default_paths;
	default:
		return 1;
	}
}

void ExtendedAttributes::offer(ibv_hyroce_feature &feature)
{
	feature = offered_ = best();
}

int ExtendedAttributes::negotiate(uint32_t qpn, const ibv_hyroce_feature &peers,
	ibv_hyroce_feature &chosen, uint32_t &more)
{
	int rc = check_feature(qpn, peers);
	if (rc)
		return rc;
	const ibv_hyroce_feature offered = offered_;
	ibv_hyroce_feature common = {};
	if (peers.type == offered.type) {
		common.type = offered.type;
		common.version = std::min(peers.version, offered.version);
		common.sack_enable = peers.sack_enable & offered.sack_enable;
	}
	more = !equal(peers, offered);
	chosen = offered_ = common;
	return 0;
}

} // namespace nda::soft
