// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/udma_model.h"

#include "providers/soft/engine.h"
#include "providers/soft/words.h"

#include <nda/hw/udma.h>

namespace nda::soft {
namespace {

namespace hw = nda::hw::udma;

static_assert(Work::max_pieces >= hw::max_bbs * hw::bb_bytes / 16 - 3);
static_assert(Work::max_inline >= hw::max_inline_write);

const char *fault_text(hw::sqe_fault fault)
{
	switch (fault) {
	case hw::sqe_fault::none:
		break;
	case hw::sqe_fault::owner:
		return "request fetched that has not the lap's owner bit";
	case hw::sqe_fault::reserved:
		return "request with a reserved field set";
	case hw::sqe_fault::opcode:
		return "request with an unknown opcode";
	case hw::sqe_fault::flags:
		return "request with a wrong flag";
	case hw::sqe_fault::reduce:
		return "request with an unknown reduction";
	case hw::sqe_fault::target:
		return "request to something other than a jetty";
	case hw::sqe_fault::sge_count:
		return "request with a wrong number of entries";
	case hw::sqe_fault::length:
		return "request with a length that cannot be";
	case hw::sqe_fault::stale:
		return "request with leftovers behind its last field";
	}
	return nullptr;
}

Breach breach_of(hw::sqe_fault fault)
{
	return {fault_text(fault),
		fault == hw::sqe_fault::length ? NDA_LOCAL_LENGTH : NDA_LOCAL_QP,
		static_cast<uint8_t>(fault)};
}

// What a token of the peer's stands for; 0, which is no key, if the value is not that id's.
uint32_t remote_key(uint32_t token_id, uint32_t token_value, bool valid)
{
	return valid && udma_token_id(token_value) == token_id ? token_value : 0;
}

// Of an own segment the id alone is given.
uint32_t local_key(uint32_t token_id)
{
	const ControlSegment &own = Fabric::get().self()->control();
	return token_id < mr_count ? own.mrs[token_id].key.load(std::memory_order_relaxed)
				   : 0;
}

Reduce reduction(const hw::control &f)
{
	if (f.reduce_op != hw::reduce_add)
		return Reduce::none;
	switch (f.reduce_type) {
	case 0:
		return Reduce::add_int8;
	case 1:
		return Reduce::add_int16;
	case 2:
		return Reduce::add_int32;
	case hw::reduce_float32:
		return Reduce::add_fp32;
	default:
		return Reduce::none;
	}
}

void decode_atomic(const hw::control &f, const uint64_t *words, Work &work)
{
	Atomic &a = work.atomic;
	a.size = static_cast<uint8_t>(work.length);
	const auto wide = [&](uint32_t at) {
		Atomic::Word v = hw::operand(words, at, a.size);
		if (a.size == 16)
			v |= Atomic::Word{hw::operand(words, at + 8, 8)} << 64;
		return v;
	};
	work.op = f.opcode == hw::op_fetch_add ? Operation::fetch_add
					       : Operation::compare_swap;
	a.swap_or_add = wide(0);
	if (work.op == Operation::compare_swap)
		a.compare = wide(a.size);
}

void decode_data(const hw::control &f, const uint64_t *words, Work &work)
{
	const uint64_t *data = words + hw::data_word(f.opcode);
	if (f.inline_data) {
		work.has_inline = true;
		memcpy(work.inline_data, data, f.inline_length);
		return;
	}
	work.piece_count = f.sge_count;
	for (uint32_t i = 0; i < work.piece_count; i++) {
		hw::sge s = hw::decode_sge(data + i * hw::sge_words);
		work.pieces[i] = {s.va, s.length, local_key(s.token_id)};
	}
}

// What a request of this queue says of its peer.
const char *peer_fault(const SendQueue &q, const hw::control &f)
{
	uint64_t eid[2];
	udma_hardware_eid(q.peer_gid, eid);
	if (f.opcode != hw::op_nop && (f.eid[0] != eid[0] || f.eid[1] != eid[1]))
		return "request to another EID than the jetty is connected to";
	if (f.tp_id != q.peer_qpn)
		return "request by another transport than the jetty has";
	return nullptr;
}

struct Raw {
	uint8_t status, substatus;
};

Raw raw_status(enum nda_status status)
{
	switch (status) {
	case NDA_OK:
		return {hw::status_ok, 0};
	case NDA_LOCAL_LENGTH:
		return {hw::status_local, hw::local_length};
	case NDA_LOCAL_PROTECTION:
		return {hw::status_local, hw::local_access};
	case NDA_REMOTE_INVALID:
		return {hw::status_remote, hw::remote_unsupported};
	case NDA_REMOTE_ACCESS:
		return {hw::status_remote, hw::remote_access};
	case NDA_REMOTE_OPERATION:
		return {hw::status_remote, 0};
	case NDA_RNR_RETRY_EXCEEDED:
		return {hw::status_rnr, 0};
	case NDA_RETRY_EXCEEDED:
		return {hw::status_ack_timeout, 0};
	case NDA_FLUSHED:
		return {hw::status_flushed, 0};
	default:
		return {hw::status_unsupported_opcode, 0};
	}
}

} // namespace

const QueueLayout &UdmaFormat::layout() const
{
	static constexpr QueueLayout layout = [] {
		QueueLayout l = {};
		l.send_stride = hw::bb_bytes;
		l.cqe_stride = hw::cqe_bytes;
		l.min_depth = hw::min_depth;
		l.max_depth = hw::max_depth;
		l.units_per_request = hw::max_bbs;
		l.max_pieces = hw::max_sges(hw::op_write);
		l.max_inline = hw::max_inline_write;
		l.max_message = hw::max_length;
		l.qpn_bits = 20;
		l.consumer_record = true;
		l.atomics = true;
		l.jetties = true;
		return l;
	}();
	return layout;
}

// The doorbell is the head, of which every value is one: it was rung if it is not the last.
void UdmaFormat::silence(SendQueue &q) const
{
	store_relaxed<uint32_t>(q.doorbell, q.rung);
}

bool UdmaFormat::take_doorbell(SendQueue &q, Breach &breach) const
{
	uint32_t head = load_acquire<uint32_t>(q.doorbell);
	if (head == q.rung)
		return false;
	q.rung = head;
	uint32_t posted = head - q.ci;
	if (posted > q.depth || posted < q.pi - q.ci)
		breach.what =
			"doorbell beyond what the ring has room for, or that went back";
	else
		q.pi = head;
	return true;
}

Breach UdmaFormat::fetch(const SendQueue &q, uint32_t index, Work &work) const
{
	uint64_t words[hw::max_words];
	const auto read = [&](uint32_t block) {
		const uint8_t *at = q.slot(index + block, hw::bb_bytes);
		for (uint32_t i = 0; i < hw::bb_words; i++)
			words[block * hw::bb_words + i] =
				load_acquire<uint64_t>(at + 8 * i);
	};
	constexpr hw::sqe_rules rules = {true, hw::max_inline_write};

	read(0);
	hw::control f = hw::decode(words);
	hw::sqe_fault fault = hw::check_control(f, index, q.depth, rules);
	if (fault != hw::sqe_fault::none)
		return breach_of(fault);
	work.units = hw::bbs_of(f);
	if (work.units > q.pi - index)
		return {}; // the engine's to object to
	for (uint32_t block = 1; block < work.units; block++)
		read(block);
	fault = hw::check(words, index, q.depth, rules);
	if (fault != hw::sqe_fault::none)
		return breach_of(fault);
	Breach breach;
	breach.what = peer_fault(q, f);
	if (breach)
		return breach;

	work.signalled = f.completion;
	work.fence = f.fence;
	work.order = f.place_order == hw::place_strong ? Order::strong : Order::relaxed;
	work.ordered_completion = f.comp_order;
	work.length = static_cast<uint32_t>(hw::total_length(f, words));
	work.remote = f.remote_va;
	work.rkey = remote_key(f.token_id, f.token_value, f.token_en);
	work.op = f.opcode == hw::op_read ? Operation::read : Operation::write;
	decode_data(f, words, work);
	if (hw::atomic(f.opcode))
		decode_atomic(f, words, work);
	if (f.udf) {
		work.reduce = reduction(f);
		if (work.reduce == Reduce::none || work.op != Operation::write)
			return {"reduction that is not modelled"};
	}
	if (f.opcode == hw::op_write_notify) {
		hw::notify n = hw::decode_notify(words + hw::control_words);
		work.has_notify = true;
		work.notify_address = n.va;
		work.notify_data = n.data;
		work.notify_key = remote_key(n.token_id, n.token_value, f.token_en);
	}
	if (f.opcode == hw::op_write_immediate) {
		work.has_immediate = true;
		work.immediate = static_cast<uint32_t>(words[hw::control_words]);
	}
	return {};
}

Breach UdmaFormat::read_consumer(CompletionQueue &cq) const
{
	// Of the widths that the sources have, the least is in all of them.
	return consumed(cq, load_acquire<uint32_t>(cq.record), hw::ci_bits_least);
}

void UdmaFormat::complete(const SendQueue &q, const Completion &c) const
{
	const CompletionQueue &cq = *q.cq;
	Raw raw = raw_status(c.status);
	hw::cqe cqe = {};
	cqe.is_jetty = 1;
	cqe.owner = hw::owner_bit(cq.pi, cq.depth);
	cqe.status = raw.status;
	cqe.substatus = raw.substatus;
	// Which of a request's blocks is named no source says: now the first, now the last.
	uint32_t block = cq.pi & 1 ? c.work.units - 1 : 0;
	cqe.entry_index = static_cast<uint16_t>(c.index + block);
	cqe.local_id = q.qpn;
	cqe.remote_id = q.peer_qpn;
	cqe.tp_id = q.peer_qpn;
	cqe.byte_count = c.status == NDA_OK ? c.work.length : 0;
	udma_hardware_eid(q.peer_gid, cqe.eid);
	uint64_t words[hw::cqe_words];
	hw::encode(cqe, words);
	uint8_t *at = cq.entry();
	for (uint32_t i = 1; i < hw::cqe_words; i++)
		store_relaxed(at + 8 * i, words[i]);
	store_release(at, words[0]);
}

} // namespace nda::soft
