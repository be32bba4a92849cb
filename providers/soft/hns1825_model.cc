// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/hns1825_model.h"

#include "providers/soft/engine.h"
#include "providers/soft/words.h"

#include <nda/hw/hns1825.h>

namespace nda::soft {
namespace {

namespace hw = nda::hw::hns1825;

const char *doorbell_fault(const hw::doorbell &d, const SendQueue &q)
{
	if (d.type != hw::doorbell_type_send || d.sub_type)
		return "doorbell of another type than send";
	if (d.qpn != q.qpn)
		return "doorbell of another QP in this QP's slot";
	if (d.sgid_index != q.sgid_index)
		return "doorbell with another GID index than the QP's";
	if (d.reserved22 || d.c || d.reserved40 || d.xrc_valid || d.reserved49)
		return "doorbell with a reserved bit set";
	return nullptr;
}

// The doorbell carries bits 15:8 of the producer index of its own time; the record may have
// gone on since. So they must name an index from the last doorbell's up to the record's.
bool page_is_between(uint8_t page, uint32_t rung, uint32_t pi, uint32_t &new_rung)
{
	uint32_t from = rung >> 8;
	uint32_t span = ((pi >> 8) - from) & 0xffffff;
	uint32_t step = (page - from) & 0xff;
	if (step > span)
		return false;
	new_rung = step ? (from + step) << 8 : rung;
	return true;
}

const char *fault_text(hw::wqe_fault fault)
{
	switch (fault) {
	case hw::wqe_fault::none:
		break;
	case hw::wqe_fault::not_valid:
		return "WQE fetched that is not valid yet";
	case hw::wqe_fault::section_length:
		return "WQE with a wrong section length";
	case hw::wqe_fault::flags:
		return "WQE with a wrong flag";
	case hw::wqe_fault::reserved:
		return "WQE with a reserved field set";
	case hw::wqe_fault::msn:
		return "WQE whose sequence number is not its index";
	case hw::wqe_fault::completion:
		return "WQE whose two completion bits differ";
	case hw::wqe_fault::opcode:
		return "WQE with an unknown opcode";
	case hw::wqe_fault::command_length:
		return "WQE with a wrong command length";
	case hw::wqe_fault::length:
		return "WQE with a length of 0, or two lengths";
	case hw::wqe_fault::gather:
		return "WQE with a wrong gather entry";
	case hw::wqe_fault::key:
		return "WQE with two lkeys";
	}
	return nullptr;
}

} // namespace

const QueueLayout &Hns1825Format::layout() const
{
	static constexpr QueueLayout layout = [] {
		QueueLayout l = {};
		l.send_stride = hw::wqe_bytes;
		l.cqe_stride = hw::default_cqe_stride;
		l.cqe_fill = hw::cqe_ring_fill;
		l.min_depth = hw::min_depth;
		l.max_depth = hw::max_depth;
		l.units_per_request = 1;
		l.max_pieces = 1;
		l.max_message = hw::max_length;
		l.qpn_bits = 20;
		l.producer_record = true;
		l.consumer_record = true;
		l.doorbell_cos = hw::doorbell_params().cos;
		return l;
	}();
	return layout;
}

uint32_t Hns1825Format::cq_ring(uint32_t depth) const
{
	return hw::cq_ring(depth);
}

bool Hns1825Format::take_doorbell(SendQueue &q, Breach &breach) const
{
	if (load_relaxed<uint64_t>(q.doorbell) == hw::doorbell_idle)
		return false;
	uint64_t value = __atomic_exchange_n(reinterpret_cast<uint64_t *>(q.doorbell),
		hw::doorbell_idle, __ATOMIC_ACQ_REL);
	hw::doorbell d = hw::decode_doorbell(value);
	breach.what = doorbell_fault(d, q);
	if (breach)
		return true;
	uint32_t head = hw::sq_record_head(load_acquire<uint32_t>(q.record));
	uint32_t posted = head - q.ci;
	// Only 16 bits of the record count for the NIC; that all of them must be right
	// finds a record in the host's byte order.
	if (posted > q.depth || posted < q.pi - q.ci)
		breach.what = "record that names more WQEs than the ring has, or went back";
	else if (!page_is_between(d.pi_high, q.rung, q.ci + posted, q.rung))
		breach.what = "doorbell whose high byte contradicts the record";
	else
		q.pi = q.ci + posted;
	return true;
}

Breach Hns1825Format::fetch(const SendQueue &q, uint32_t index, Work &work) const
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
	// A NIC that fetches ahead must not take what the next slot holds from earlier
	// laps: it is marked, or is the next WQE already.
	uint8_t next = load_acquire<uint8_t>(q.slot(index + 1, hw::wqe_bytes));
	uint8_t posted = static_cast<uint8_t>(hw::control_word(index + 1, q.depth, false));
	if (next != hw::invalid_marker(index + 1, q.depth) && next != posted)
		return {"WQE whose next slot is not marked", NDA_LOCAL_QP, 0xff};

	hw::wqe wqe = hw::decode(words);
	work.op = wqe.opcode == hw::op_read ? Operation::read : Operation::write;
	work.signalled = wqe.completion;
	work.fence = wqe.fence;
	work.length = wqe.data_len;
	work.remote = wqe.remote_va;
	work.rkey = wqe.rkey;
	work.piece_count = 1;
	work.pieces[0] = {wqe.local_va, wqe.data_len, wqe.sge_lkey};
	return {};
}

Breach Hns1825Format::read_consumer(CompletionQueue &cq) const
{
	return consumed(
		cq, hw::cq_record_ci(load_acquire<uint32_t>(cq.record)), hw::cq_index_bits);
}

void Hns1825Format::complete(const SendQueue &q, const Completion &c) const
{
	const CompletionQueue &cq = *q.cq;
	hw::cqe cqe = {};
	cqe.owner = hw::owner_bit(cq.pi, cq.depth);
	cqe.cqe_size = 1;
	cqe.qpn = q.qpn;
	cqe.op_type = c.work.op == Operation::read ? hw::op_read : hw::op_write;
	cqe.wqebb_count = 1;
	cqe.byte_count = c.work.length;
	cqe.wqe_counter = static_cast<uint16_t>(c.index);
	if (c.status != NDA_OK) {
		cqe.op_type = hw::cqe_op_error;
		cqe.byte_count = 0;
		cqe.syndrome = hw::syndrome_of(c.status);
		cqe.vendor = c.vendor;
	}
	uint64_t words[hw::cqe_words];
	hw::encode(cqe, words);
	uint8_t *at = cq.entry();
	for (uint32_t i = 1; i < hw::cqe_words; i++)
		store_relaxed(at + 8 * i, words[i]);
	store_release(at, words[0]);
}

} // namespace nda::soft
