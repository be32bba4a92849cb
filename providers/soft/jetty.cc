// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/jetty.h"

#include "providers/soft/error.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace nda::soft {
namespace {

constexpr int eid_index = 1; // of the GIDs

} // namespace

int Jetty::create(const nda_soft_jetty_attr &attr, Jetty *&jetty)
{
	auto fresh = std::make_unique<Jetty>();
	int rc = fresh->init(attr);
	if (rc == 0)
		jetty = fresh.release();
	return rc;
}

// A completion for each block that there is, as each may be a request of its own.
int Jetty::init(const nda_soft_jetty_attr &attr)
{
	if (!attr.pd)
		return fail(-EINVAL, "jetty: pd is NULL");
	ibv_context *context = attr.pd->context;
	Nic *nic = Nic::find(context);
	if (!nic)
		return -EINVAL;
	const QueueLayout &layout = nic->format().layout();
	if (!layout.jetties)
		return fail(-EOPNOTSUPP, "jetty: this NIC has QPs");
	if (attr.blocks < layout.min_depth || attr.blocks > layout.max_depth ||
		attr.blocks & (attr.blocks - 1))
		return fail(-EINVAL, "jetty: %u blocks are no power of two from %u to %u",
			attr.blocks, layout.min_depth, layout.max_depth);

	ibv_cq_init_attr_extend cq = {};
	cq.attr.cqe = attr.blocks;
	cq.type = static_cast<queue_buf_dma_mode>(attr.dma_mode);
	cq.ops = attr.ops;
	int rc = Cq::create(context, cq, cq_);
	if (rc)
		return rc;
	ibv_qp_init_attr_extend qp = {};
	qp.pd = attr.pd;
	qp.attr.send_cq = cq_->cq;
	qp.attr.recv_cq = cq_->cq;
	qp.attr.cap.max_send_wr = attr.blocks / layout.units_per_request;
	qp.attr.cap.max_send_sge = 1;
	qp.attr.qp_type = IBV_QPT_RC;
	qp.type = cq.type;
	qp.ops = cq.ops;
	return Qp::create(context, qp, qp_);
}

// Undoes as much as was done.
Jetty::~Jetty()
{
	if (qp_)
		Qp::destroy(qp_);
	if (cq_)
		Cq::destroy(cq_);
}

int Jetty::destroy(Jetty *jetty)
{
	int rc = Qp::destroy(jetty->qp_);
	if (rc)
		return rc;
	jetty->qp_ = nullptr;
	delete jetty;
	return 0;
}

void Jetty::query(nda_soft_jetty_info &info) const
{
	const queue_info &sq = qp_->sq_info, &cq = cq_->cq_info;
	info = {};
	info.jetty_id = qp_->qp->qp_num;
	info.jfc_id = static_cast<uint32_t>(cq_->resv[0]);
	info.sq_addr = sq.qbuf.base;
	info.sq_blocks = sq.qbuf.entry_cnt;
	info.max_inline = Nic::find(qp_->qp->context)->format().layout().max_inline;
	info.sq_doorbell = sq.db_hw_va.iov_base;
	info.cq_addr = cq.qbuf.base;
	info.cq_depth = cq.qbuf.entry_cnt;
	info.cqe_bytes = cq.qbuf.entry_size;
	info.cq_record = cq.dbr_ci_va.iov_base;
}

// Before the first step: what a later one refused would leave the jetty on the way.
int Jetty::check(const nda_soft_jetty_peer &peer) const
{
	if (peer.jetty_id == 0 || peer.jetty_id >> 20)
		return fail(-EINVAL,
			"jetty %u: the peer's jetty 0x%x is 0 or has more than 20 bits",
			id(), peer.jetty_id);
	if (peer.timeout > 31 || peer.retry_count > 7)
		return fail(-EINVAL,
			"jetty %u: timeout %u is more than 31, or retry count %u more than "
			"7",
			id(), peer.timeout, peer.retry_count);
	if (peer.reserved[0] || peer.reserved[1])
		return fail(-EINVAL, "jetty %u: reserved attribute is not 0", id());
	return 0;
}

int Jetty::step(const ibv_qp_attr &attr, int mask)
{
	int rc = qp().modify(attr, mask | IBV_QP_STATE);
	ibv_qp_attr now;
	ibv_qp_init_attr init;
	if (rc && qp().query(now, IBV_QP_STATE, init) == 0 && now.qp_state == IBV_QPS_ERR)
		return fail(-EIO,
			"jetty %u: a doorbell before it was connected has put it into the "
			"error state, it must be reset",
			id());
	return rc;
}

int Jetty::connect(const nda_soft_jetty_peer &peer, uint32_t &tp_id)
{
	ibv_qp_attr attr = {};
	const unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	Nic *nic = Nic::find(qp_->qp->context);
	if (!nic)
		return -EINVAL;
	std::lock_guard<std::mutex> lock(mutex_);
	if (connected_)
		return fail(-EISCONN, "jetty %u: it is connected", id());
	int rc = check(peer);
	if (rc)
		return rc;
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 1;
	attr.qp_access_flags = access;
	rc = step(attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (rc)
		return rc;
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu =
		static_cast<ibv_mtu>(IBV_MTU_256 + __builtin_ctz(nic->mtu_bytes() / 256));
	attr.dest_qp_num = peer.jetty_id;
	attr.max_dest_rd_atomic = 16;
	attr.ah_attr.is_global = 1;
	memcpy(attr.ah_attr.grh.dgid.raw, peer.eid, sizeof(peer.eid));
	attr.ah_attr.grh.sgid_index = eid_index;
	attr.ah_attr.port_num = 1;
	rc = step(attr,
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (rc)
		return rc;
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = peer.timeout;
	attr.retry_cnt = peer.retry_count;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 16;
	rc = step(attr,
		IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC);
	if (rc)
		return rc;
	connected_ = true;
	tp_id = peer.jetty_id;
	return 0;
}

int Jetty::reset()
{
	ibv_qp_attr attr = {};
	attr.qp_state = IBV_QPS_RESET;
	std::lock_guard<std::mutex> lock(mutex_);
	int rc = qp().modify(attr, IBV_QP_STATE);
	if (rc == 0)
		connected_ = false;
	return rc;
}

} // namespace nda::soft
