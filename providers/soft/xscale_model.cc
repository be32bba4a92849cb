// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/xscale_model.h"

#include "providers/soft/engine.h"
#include "providers/soft/words.h"

#include <nda/hw/xscale.h>

namespace nda::soft {
namespace {

namespace hw = nda::hw::xscale;

// Of the units in which a doorbell counts, as WQEs.
constexpr uint32_t index_mask = (1u << hw::pid_bits) / hw::units_per_wqe - 1;

const char *doorbell_fault(const hw::doorbell &d, const SendQueue &q)
{
	if (d.qp_id != q.qpn)
		return "doorbell of another QP in this QP's slot";
	if (d.reserved)
		return "doorbell with a reserved bit set";
	if (d.next_pid % hw::units_per_wqe)
		return "doorbell in the middle of a WQE";
	return nullptr;
}

const char *fault_text(hw::wqe_fault fault)
{
	switch (fault) {
	case hw::wqe_fault::none:
		break;
	case hw::wqe_fault::not_valid:
		return "WQE fetched that is not the index's";
	case hw::wqe_fault::opcode:
		return "WQE with an unknown opcode";
	case hw::wqe_fault::flags:
		return "WQE with a wrong flag";
	case hw::wqe_fault::reserved:
		return "WQE with something where nothing may be";
	case hw::wqe_fault::segments:
		return "WQE with a wrong number of segments";
	case hw::wqe_fault::length:
		return "WQE with a length of 0, or lengths that differ";
	}
	return nullptr;
}

uint8_t error_code(enum nda_status status)
{
	switch (status) {
	case NDA_OK:
		return hw::error_none;
	case NDA_LOCAL_LENGTH:
		return hw::error_wqe_length;
	case NDA_LOCAL_PROTECTION:
		return hw::error_local_mr;
	case NDA_FLUSHED:
		return hw::error_flushed;
	case NDA_REMOTE_INVALID:
		return hw::error_nak_invalid;
	case NDA_REMOTE_ACCESS:
		return hw::error_nak_access;
	case NDA_REMOTE_OPERATION:
		return hw::error_nak_operation;
	case NDA_RETRY_EXCEEDED:
		return hw::error_retransmit;
	case NDA_RNR_RETRY_EXCEEDED:
		return hw::error_rnr;
	default:
		return hw::error_wqe_format;
	}
}

void decode_rdma(const hw::wqe &wqe, Work &work)
{
	work.op = wqe.opcode == hw::op_read ? Operation::read : Operation::write;
	work.length = wqe.length;
	work.has_immediate = wqe.immediate;
	work.immediate = wqe.data;
	work.piece_count = hw::pieces_of(wqe);
	for (uint32_t i = 0; i < work.piece_count; i++) {
		hw::segment s = hw::piece(wqe, i);
		work.pieces[i] = {s.va, s.length, s.key};
	}
}

void decode_atomic(const hw::wqe &wqe, Work &work)
{
	// The engine posts masked forms alone, or plain ones big-endian.
	hw::atomic a = hw::decode_atomic(wqe.opcode, wqe.more, false);
	uint32_t size = hw::atomic_bytes(wqe.opcode);
	work.op = hw::is_add(wqe.opcode) ? Operation::fetch_add : Operation::compare_swap;
	work.length = size;
	work.piece_count = 1;
	work.pieces[0] = {wqe.local.va, wqe.local.length, wqe.local.key};
	work.atomic.size = static_cast<uint8_t>(size);
	work.atomic.swap_result = size == 4;
	work.atomic.swap_or_add = a.value;
	work.atomic.boundary = a.boundary;
	work.atomic.compare = a.compare;
	work.atomic.compare_mask = a.compare_mask;
	work.atomic.swap_mask = a.swap_mask;
}

} // namespace

const QueueLayout &XscaleFormat::layout() const
{
	static constexpr QueueLayout layout = [] {
		QueueLayout l = {};
		l.send_stride = hw::wqe_bytes;
		l.cqe_stride = hw::default_cqe_stride;
		l.cqe_fill = hw::cqe_ring_fill;
		l.min_depth = hw::min_depth;
		l.max_depth = hw::max_depth;
		l.units_per_request = 1;
		l.max_pieces = hw::max_pieces;
		l.max_message = hw::max_length;
		l.qpn_bits = 16;
		l.atomics = true;
		return l;
	}();
	return layout;
}

void XscaleFormat::silence(SendQueue &q) const
{
	store_relaxed<uint64_t>(q.doorbell, hw::doorbell_idle);
}

bool XscaleFormat::take_doorbell(SendQueue &q, Breach &breach) const
{
	if (load_relaxed<uint64_t>(q.doorbell) == hw::doorbell_idle)
		return false;
	uint64_t value = __atomic_exchange_n(reinterpret_cast<uint64_t *>(q.doorbell),
		hw::doorbell_idle, __ATOMIC_ACQ_REL);
	hw::doorbell d = hw::decode_doorbell(value);
	breach.what = doorbell_fault(d, q);
	if (breach)
		return true;
	uint32_t posted = (d.next_pid / hw::units_per_wqe - q.ci) & index_mask;
	if (posted > q.depth || posted < q.pi - q.ci)
		breach.what =
			"doorbell that names more WQEs than the ring has, or went back";
	else
		q.pi = q.ci + posted;
	return true;
}

Breach XscaleFormat::fetch(const SendQueue &q, uint32_t index, Work &work) const
{
	const uint8_t *at = q.slot(index, hw::wqe_bytes);
	uint64_t words[hw::wqe_words];
	for (uint32_t i = 0; i < hw::wqe_words; i++)
		words[i] = load_acquire<uint64_t>(at + 8 * i);

	hw::wqe_fault fault = hw::check(words, index);
	if (fault != hw::wqe_fault::none)
		return {fault_text(fault),
			fault == hw::wqe_fault::length ? NDA_LOCAL_LENGTH : NDA_LOCAL_QP,
			static_cast<uint8_t>(fault)};
	hw::wqe wqe = hw::decode(words);
	work.signalled = wqe.completion;
	work.fence = wqe.fence_mode != 0;
	work.remote = wqe.remote.va;
	work.rkey = wqe.remote.key;
	if (hw::atomic_bytes(wqe.opcode))
		decode_atomic(wqe, work);
	else
		decode_rdma(wqe, work);
	return {};
}

void XscaleFormat::silence(CompletionQueue &cq) const
{
	store_relaxed<uint64_t>(cq.doorbell, hw::cq_doorbell_idle);
}

// Stays in the register until the next one: what counts is the newest index.
Breach XscaleFormat::read_consumer(CompletionQueue &cq) const
{
	uint64_t value = load_acquire<uint64_t>(cq.doorbell);
	if (value == hw::cq_doorbell_idle)
		return {};
	hw::cq_doorbell d = hw::decode_cq_doorbell(value);
	if (d.cq_id != cq.cqn)
		return {"doorbell of another CQ in this CQ's slot"};
	if (d.reserved)
		return {"CQ doorbell with a reserved bit set"};
	return consumed(cq, d.next_cid, hw::cq_index_bits);
}

void XscaleFormat::complete(const SendQueue &q, const Completion &c) const
{
	const CompletionQueue &cq = *q.cq;
	uint8_t *at = cq.entry();
	hw::cqe cqe = {};
	cqe.error = error_code(c.status);
	cqe.qp_id = static_cast<uint16_t>(q.qpn);
	cqe.length = c.status == NDA_OK ? c.work.length : 0;
	// What was posted, not what became of it.
	cqe.opcode = load_relaxed<uint8_t>(q.slot(c.index, hw::wqe_bytes));
	cqe.wqe_id = hw::wqe_id_of(c.index);
	cqe.owner = hw::owner_bit(cq.pi, cq.depth);
	uint64_t words[hw::cqe_words];
	hw::encode(cqe, words);
	for (uint32_t i = 0; i < hw::cqe_words - 1; i++)
		store_relaxed(at + 8 * i, words[i]);
	store_release(at + 8 * (hw::cqe_words - 1), words[hw::cqe_words - 1]);
}

} // namespace nda::soft
