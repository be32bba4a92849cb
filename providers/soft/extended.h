// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The attributes of a QP that ibv_extend adds to those of verbs, as a software NIC has
// them.
#ifndef NDA_SOFT_EXTENDED_H
#define NDA_SOFT_EXTENDED_H

#include <cstddef>
#include <cstdint>

#include <ibv_extend.h>

namespace nda::soft {

// Kept and given back; LB_MODE and MPATH_CONFIG also mean something: over several paths
// requests overtake each other. Names in texts are those of IBV_QP_ATTR_EXTEND_*.
class ExtendedAttributes {
public:
	ExtendedAttributes();

	// All of those that mask names, or none. before_rtr: whether the feature may be
	// changed.
	int set(uint32_t qpn, const ibv_qp_attr_extend &from, int mask, bool before_rtr);
	void get(ibv_qp_attr_extend &to, int mask) const;

	// How many requests are under way at a time.
	size_t window() const;

	// What this side can do, to be offered to the peer.
	void offer(ibv_hyroce_feature &feature);
	// What both can do. more: the two offers differ, so that the peer has to hear of
	// the choice, and this side of the peer's.
	int negotiate(uint32_t qpn, const ibv_hyroce_feature &peers,
		ibv_hyroce_feature &chosen, uint32_t &more);

private:
	ibv_qp_attr_extend values_ = {};
	ibv_hyroce_feature offered_;
};

} // namespace nda::soft

#endif
