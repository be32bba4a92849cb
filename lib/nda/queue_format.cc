// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/queue_format.h"

#include <nda/aiv/hns1825_state.h>
#include <nda/aiv/in_die_state.h>
#include <nda/aiv/rxe_queue.h>
#include <nda/aiv/udma_state.h>
#include <nda/aiv/xscale_state.h>

namespace nda {
namespace {

namespace hns1825 = aiv::hns1825;
namespace in_die = aiv::in_die;
namespace rxe = aiv::rxe;
namespace udma = aiv::udma;
namespace xscale = aiv::xscale;

// What is the same in all formats.
nda_queue common(const QueueSource &s)
{
	const queue_info &sq = s.qp->sq_info;
	const queue_info &cq = s.cq->cq_info;
	nda_queue q = {};
	q.remote_delta = s.remote_delta;
	q.sq_record = sq.dbr_pi_va.iov_base;
	q.sq_doorbell = s.doorbell;
	q.sq_base = sq.qbuf.base;
	q.cq_base = cq.qbuf.base;
	q.cq_record = cq.dbr_ci_va.iov_base;
	q.qpn = s.qp->qp->qp_num;
	q.cqn = static_cast<uint32_t>(s.cq->resv[0]);
	q.rkey = s.rkey;
	q.lkey = s.lkey;
	q.signal_every = s.signal_every;
	q.sq_depth = sq.qbuf.entry_cnt;
	q.cq_depth = cq.qbuf.entry_cnt;
	q.cqe_stride = cq.qbuf.entry_size;
	q.valid = 1;
	return q;
}

bool has_addresses(const nda_queue &q)
{
	return q.sq_record && q.sq_doorbell && q.sq_base && q.cq_base && q.cq_record;
}

bool has_addresses_of_jetty(const nda_queue &q)
{
	return q.sq_doorbell && q.sq_base && q.cq_base && q.cq_record;
}

bool describe_hns1825(const QueueSource &s, nda_queue &queue)
{
	namespace format = hw::hns1825;
	format::doorbell_params params;
	params.cos = s.qp->vendor_priv_info.vendor1.db_cos & 7;
	params.mtu_shift = s.mtu_shift;
	params.sgid_index = s.sgid_index;
	nda_queue q = common(s);
	format::key_words(s.rkey, s.lkey, q.key_words);
	q.doorbell_template = format::doorbell_template(q.qpn, params);
	q.cq_depth = format::cq_ring(q.cq_depth);
	if (!q.cqe_stride)
		q.cqe_stride = format::default_cqe_stride;
	queue = q;
	// The scratch words are the caller's to fill in; they do not count here.
	nda_queue complete = q;
	complete.scratch_local = complete.scratch_remote = 8;
	if (!hns1825::queue_usable(complete) || !has_addresses(q))
		return false;
	queue.state = hns1825::derive_state(q, 0, 0, 0);
	return true;
}

// The record of an SQ, and that of a CQ, are there or not; a CQ without one has a register.
bool describe_in_die(const QueueSource &s, nda_queue &queue)
{
	namespace format = hw::in_die;
	nda_queue q = common(s);
	format::key_words(s.rkey, s.lkey, q.key_words);
	q.doorbell_template = format::doorbell_template(q.qpn, s.service_level);
	if (!q.cq_record) {
		q.in_die.cq_doorbell = s.cq->cq_info.db_hw_va.iov_base;
		q.in_die.cq_template = format::cq_doorbell_template(q.cqn, {});
	}
	if (!q.cqe_stride)
		q.cqe_stride = format::cqe_bytes;
	queue = q;
	nda_queue complete = q;
	complete.scratch_local = complete.scratch_remote = 8;
	if (!in_die::queue_usable(complete) || !q.sq_doorbell || !q.sq_base || !q.cq_base)
		return false;
	queue.state = in_die::derive_state(q, 0, 0, 0);
	return true;
}

// The rings' headers are told as records: what the host's side of a ring writes is the
// producer index of an SQ and the consumer index of a CQ.
bool describe_rxe(const QueueSource &s, nda_queue &queue)
{
	nda_queue q = common(s);
	q.rxe.cq_producer = s.cq->cq_info.dbr_pi_va.iov_base;
	q.rxe.sq_slot_bytes = s.qp->sq_info.qbuf.entry_size;
	if (q.rxe.sq_slot_bytes > hw::rxe::wqe_bytes)
		q.rxe.sq_data_bytes = q.rxe.sq_slot_bytes - hw::rxe::wqe_bytes;
	q.state = rxe::derive_state(0, 0, 0);
	queue = q;
	return rxe::queue_usable(q);
}

// What no source settles is chosen as nda/hw/xscale.h says: masked atomics, and KEEP in the
// CQ's doorbell.
bool describe_xscale(const QueueSource &s, nda_queue &queue)
{
	namespace format = hw::xscale;
	nda_queue q = common(s);
	q.key_words[0] = format::segment_word(0, s.rkey);
	q.key_words[1] = format::segment_word(0, s.lkey);
	q.doorbell_template = format::doorbell_template(q.qpn);
	q.xscale.cq_doorbell = s.cq->cq_info.db_hw_va.iov_base;
	q.xscale.cq_doorbell_template =
		format::cq_doorbell_template(q.cqn, format::cq_keep);
	q.xscale.fence_mode = format::default_fence_mode;
	if (!q.cqe_stride)
		q.cqe_stride = format::default_cqe_stride;
	queue = q;
	nda_queue complete = q;
	complete.scratch_local = complete.scratch_remote = 8;
	if (!xscale::queue_usable(complete))
		return false;
	queue.state = xscale::derive_state(q, 0, 0, 0);
	return true;
}

} // namespace

bool describe_queue(nda_format format, const QueueSource &source, nda_queue &queue)
{
	switch (format) {
	case NDA_FORMAT_HNS1825:
		return describe_hns1825(source, queue);
	case NDA_FORMAT_IN_DIE:
		return describe_in_die(source, queue);
	case NDA_FORMAT_RXE:
		return describe_rxe(source, queue);
	case NDA_FORMAT_XSCALE:
		return describe_xscale(source, queue);
	default:
		return false;
	}
}

bool describe_jetty(const JettySource &s, nda_queue &queue)
{
	nda_queue q = {};
	udma::describe_peer(&q, s.tp_id, s.eid, s.keys.rkey_id, s.keys.rkey, true,
		s.keys.lkey, hw::udma::jetty_type_jetty, 0);
	q.remote_delta = s.remote_delta;
	q.sq_doorbell = s.queues.doorbell;
	q.sq_base = s.queues.sq_addr;
	q.cq_base = s.queues.cq_addr;
	q.cq_record = s.queues.cq_record;
	q.qpn = s.queues.id;
	q.cqn = s.queues.jfc_id;
	q.signal_every = s.signal_every;
	q.sq_depth = s.queues.sq_blocks;
	q.cq_depth = s.queues.cq_depth;
	q.cqe_stride = s.queues.cqe_bytes;
	q.valid = 1;
	q.udma.order = udma::default_order;
	q.udma.strong_order = udma::default_strong_order;
	q.udma.owner = 1;
	q.udma.ci_mask = udma::default_ci_mask;
	q.udma.max_inline = static_cast<uint16_t>(s.queues.max_inline);
	queue = q;
	// The scratch words are the caller's to fill in; they do not count here.
	nda_queue complete = q;
	complete.scratch_local = complete.scratch_remote = NDA_CACHE_LINE;
	if (!udma::queue_usable(complete) || !has_addresses_of_jetty(q))
		return false;
	queue.state = udma::derive_state(q, 0, 0, 0);
	return true;
}

namespace {

// What an extension driver would have given, had it made the queue.
bool describe_foreign_qp(const ForeignQueue &foreign, nda_queue &queue)
{
	const QueueFields &f = *foreign.fields;
	ibv_qp qp = {};
	ibv_qp_extend qp_extend = {};
	ibv_cq_extend cq_extend = {};
	qp.qp_num = f.number;
	qp_extend.qp = &qp;
	qp_extend.sq_info.qbuf.base = f.sq_addr;
	qp_extend.sq_info.qbuf.entry_cnt = f.sq_depth;
	qp_extend.sq_info.qbuf.entry_size = f.wqe_bytes;
	qp_extend.sq_info.dbr_pi_va.iov_base = f.sq_record;
	qp_extend.sq_info.db_hw_va.iov_base = f.sq_doorbell;
	qp_extend.vendor_priv_info.vendor1.db_cos = f.cos;
	cq_extend.cq_info.qbuf.base = f.cq_addr;
	cq_extend.cq_info.qbuf.entry_cnt = f.cq_depth;
	cq_extend.cq_info.qbuf.entry_size = f.cqe_bytes;
	cq_extend.cq_info.dbr_ci_va.iov_base = f.cq_record;
	cq_extend.cq_info.db_hw_va.iov_base = f.cq_doorbell;
	cq_extend.resv[0] = f.cq_number;
	QueueSource source = {};
	source.qp = &qp_extend;
	source.cq = &cq_extend;
	source.doorbell = f.sq_doorbell;
	source.mtu_shift = f.mtu_shift;
	source.sgid_index = hw::hns1825::doorbell_params().sgid_index;
	source.service_level = static_cast<uint8_t>(f.service_level);
	source.signal_every = 1;
	source.remote_delta = foreign.remote_delta;
	source.lkey = foreign.lkey;
	source.rkey = foreign.rkey;
	return describe_queue(f.format, source, queue);
}

bool describe_foreign_jetty(const ForeignQueue &foreign, nda_queue &queue)
{
	const QueueFields &f = *foreign.fields;
	JettySource source = {};
	source.queues.id = f.number;
	source.queues.jfc_id = f.cq_number;
	source.queues.sq_addr = f.sq_addr;
	source.queues.sq_blocks = f.sq_depth;
	source.queues.max_inline = foreign.max_inline;
	source.queues.doorbell = f.sq_doorbell;
	source.queues.cq_addr = f.cq_addr;
	source.queues.cq_depth = f.cq_depth;
	source.queues.cqe_bytes = f.cqe_bytes;
	source.queues.cq_record = f.cq_record;
	source.eid[0] = f.eid[0];
	source.eid[1] = f.eid[1];
	source.tp_id = f.tp_id;
	source.signal_every = 1;
	source.remote_delta = foreign.remote_delta;
	source.keys = {foreign.lkey, foreign.rkey, foreign.rkey_id};
	return describe_jetty(source, queue);
}

nda_queue_state state_at(nda_format format, const nda_queue &q, uint32_t index)
{
	switch (format) {
	case NDA_FORMAT_HNS1825:
		return hns1825::derive_state(q, index, index, index);
	case NDA_FORMAT_IN_DIE:
		return in_die::derive_state(q, index, index, index);
	case NDA_FORMAT_XSCALE:
		return xscale::derive_state(q, index, index, index);
	default:
		return udma::derive_state(q, index, index, index);
	}
}

} // namespace

bool describe_foreign_queue(const ForeignQueue &foreign, uint32_t index, nda_queue &queue)
{
	const nda_format format = foreign.fields->format;
	nda_queue q = {};
	const bool usable = format == NDA_FORMAT_UDMA ? describe_foreign_jetty(foreign, q)
						      : describe_foreign_qp(foreign, q);
	if (!usable)
		return false;
	q.scratch_local = foreign.scratch_local;
	q.scratch_remote = foreign.scratch_remote;
	q.state = state_at(format, q, index);
	queue = q;
	return true;
}

// The rings of Soft-RoCE are the kernel's, in host memory, and go on where they were when
// their QP was reset. What the CQ still holds is of the QP's earlier life.
void resume_queue(nda_format format, nda_queue &queue)
{
	if (format != NDA_FORMAT_RXE)
		return;
	const auto index = [](uint64_t addr) { return reinterpret_cast<uint32_t *>(addr); };
	const uint32_t head = __atomic_load_n(index(queue.sq_record), __ATOMIC_ACQUIRE);
	const uint32_t ci = __atomic_load_n(index(queue.rxe.cq_producer), __ATOMIC_ACQUIRE);
	__atomic_store_n(index(queue.cq_record), ci, __ATOMIC_RELEASE);
	queue.state = rxe::derive_state(head, head, ci);
}

int cq_fill(nda_format format)
{
	return format == NDA_FORMAT_XSCALE ? hw::xscale::cqe_ring_fill : -1;
}

} // namespace nda
