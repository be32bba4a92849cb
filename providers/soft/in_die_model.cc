// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/in_die_model.h"

#include "providers/soft/engine.h"
#include "providers/soft/words.h"

#include <cstring>

#include <nda/hw/in_die.h>

namespace nda::soft {
namespace {

namespace hw = nda::hw::in_die;

// What a CQ's register holds until it is rung: no CQ doorbell, whose command is never 0.
constexpr uint64_t cq_idle = 0;

const char *doorbell_fault(const hw::doorbell &d, const SendQueue &q)
{
	if (d.command != hw::command_sq || d.direct)
		return "doorbell of another kind than a send queue's";
	if (d.tag != q.qpn)
		return "doorbell of another QP in this QP's slot";
	if (d.reserved28 || d.reserved51)
		return "doorbell with a reserved bit set";
	return nullptr;
}

const char *cq_doorbell_fault(const hw::cq_doorbell &d, const CompletionQueue &cq)
{
	if (d.command != hw::command_cq)
		return "CQ doorbell with another command than a consumer index";
	if (d.cqn != cq.cqn)
		return "doorbell of another CQ in this CQ's slot";
	if (d.reserved28 || d.reserved59)
		return "CQ doorbell with a reserved bit set";
	return nullptr;
}

const char *fault_text(hw::wqe_fault fault)
{
	switch (fault) {
	case hw::wqe_fault::none:
		break;
	case hw::wqe_fault::not_valid:
		return "WQE fetched that is not valid yet";
	case hw::wqe_fault::direct:
		return "WQE with fields of a direct one";
	case hw::wqe_fault::opcode:
		return "WQE with an unknown opcode";
	case hw::wqe_fault::sge_count:
		return "WQE with more segments than it has room for";
	case hw::wqe_fault::inline_data:
		return "WQE with inline data that it cannot have";
	case hw::wqe_fault::length:
		return "WQE whose length is not its segments'";
	case hw::wqe_fault::atomic:
		return "atomic of another size, or of more than one segment";
	}
	return nullptr;
}

void decode_atomic(const hw::wqe &wqe, Work &work)
{
	work.op = wqe.opcode == hw::op_fetch_add ? Operation::fetch_add
						 : Operation::compare_swap;
	work.atomic.size = hw::atomic_bytes;
	work.atomic.swap_or_add = wqe.data[2];
	work.atomic.compare = wqe.data[3];
}

void decode_rdma(const hw::wqe &wqe, Work &work)
{
	work.op = wqe.opcode == hw::op_read ? Operation::read : Operation::write;
	work.has_immediate = hw::has_immediate(wqe.opcode);
	work.immediate = wqe.immediate;
	work.has_inline = wqe.inline_data;
	if (work.has_inline)
		memcpy(work.inline_data, wqe.data, sizeof(wqe.data));
}

// The next entry of the ring, its owner bit and with it the rest at last.
void put(const CompletionQueue &cq, hw::cqe cqe)
{
	cqe.owner = hw::owner_bit(cq.pi, cq.depth);
	uint64_t words[hw::cqe_words];
	hw::encode(cqe, words);
	uint8_t *at = cq.entry();
	for (uint32_t i = 1; i < hw::cqe_words; i++)
		store_relaxed(at + 8 * i, words[i]);
	store_release(at, words[0]);
}

} // namespace

const QueueLayout &InDieFormat::layout() const
{
	static constexpr QueueLayout layout = [] {
		QueueLayout l = {};
		l.send_stride = hw::wqe_bytes;
		l.cqe_stride = hw::cqe_bytes;
		l.min_depth = hw::min_depth;
		l.max_depth = hw::max_depth;
		l.units_per_request = 1;
		l.max_pieces = hw::max_sges;
		l.max_inline = hw::max_inline;
		l.max_message = hw::max_length;
		l.qpn_bits = 24;
		l.atomics = true;
		l.receives = true;
		return l;
	}();
	return layout;
}

void InDieFormat::silence(SendQueue &q) const
{
	store_relaxed<uint64_t>(q.doorbell, hw::doorbell_idle);
}

bool InDieFormat::take_doorbell(SendQueue &q, Breach &breach) const
{
	if (load_relaxed<uint64_t>(q.doorbell) == hw::doorbell_idle)
		return false;
	uint64_t value = __atomic_exchange_n(reinterpret_cast<uint64_t *>(q.doorbell),
		hw::doorbell_idle, __ATOMIC_ACQ_REL);
	hw::doorbell d = hw::decode_doorbell(value);
	breach.what = doorbell_fault(d, q);
	if (breach)
		return true;
	uint32_t posted = static_cast<uint16_t>(d.pi - q.ci);
	if (posted > q.depth || posted < q.pi - q.ci)
		breach.what =
			"doorbell that names more WQEs than the ring has, or went back";
	else
		q.pi = q.ci + posted;
	return true;
}

Breach InDieFormat::fetch(const SendQueue &q, uint32_t index, Work &work) const
{
	const uint8_t *at = q.slot(index, hw::wqe_bytes);
	uint64_t words[hw::wqe_words];
	words[0] = load_acquire<uint64_t>(at);
	for (uint32_t i = 1; i < hw::wqe_words; i++)
		words[i] = load_relaxed<uint64_t>(at + 8 * i);

	hw::wqe_fault fault = hw::check(words, index, q.depth);
	if (fault != hw::wqe_fault::none)
		return {fault_text(fault),
			fault == hw::wqe_fault::length ? NDA_LOCAL_LENGTH : NDA_LOCAL_QP,
			static_cast<uint8_t>(fault)};
	hw::wqe wqe = hw::decode(words);
	if (hw::is_send(wqe.opcode))
		return {"SEND, which this model does not have"};
	work.signalled = wqe.completion;
	work.fence = wqe.strong_order || wqe.fence;
	work.length = wqe.length;
	work.remote = wqe.remote_va;
	work.rkey = wqe.rkey;
	if (hw::is_atomic(wqe.opcode))
		decode_atomic(wqe, work);
	else
		decode_rdma(wqe, work);
	work.piece_count = work.has_inline ? 0 : wqe.sges;
	for (uint32_t i = 0; i < work.piece_count; i++)
		work.pieces[i] = {wqe.data[2 * i + 1], hw::sge_length(wqe.data[2 * i]),
			hw::sge_lkey(wqe.data[2 * i])};
	return {};
}

void InDieFormat::silence(CompletionQueue &cq) const
{
	store_relaxed<uint64_t>(cq.doorbell, cq_idle);
}

// Stays in the register until the next one: what counts is the newest index.
Breach InDieFormat::read_consumer(CompletionQueue &cq) const
{
	uint64_t value = load_acquire<uint64_t>(cq.doorbell);
	if (value == cq_idle)
		return {};
	hw::cq_doorbell d = hw::decode_cq_doorbell(value);
	if (const char *what = cq_doorbell_fault(d, cq))
		return {what};
	return consumed(cq, d.ci, hw::cq_index_bits);
}

void InDieFormat::complete(const SendQueue &q, const Completion &c) const
{
	hw::cqe cqe = {};
	// What was posted, not what became of it.
	cqe.opcode =
		hw::wqe_opcode_of(load_relaxed<uint64_t>(q.slot(c.index, hw::wqe_bytes)));
	cqe.wqe_index = static_cast<uint16_t>(c.index);
	cqe.qpn = q.qpn;
	cqe.remote_qpn = q.peer_qpn;
	if (c.status == NDA_OK) {
		cqe.byte_count = c.work.length;
	} else {
		cqe.status = hw::syndrome_of(c.status);
		cqe.sub_status = c.vendor;
	}
	put(*q.cq, cqe);
}

void InDieFormat::complete_receive(const CompletionQueue &cq, const Received &r) const
{
	hw::cqe cqe = {};
	cqe.opcode = hw::received_write_immediate;
	cqe.receive = 1;
	cqe.wqe_index = static_cast<uint16_t>(r.index);
	cqe.immediate = r.immediate;
	cqe.qpn = r.qpn;
	cqe.byte_count = r.bytes;
	put(cq, cqe);
}

} // namespace nda::soft
