// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/import_layout.h"

#include <cerrno>
#include <cstring>

#include <nda/hw/hns1825.h>
#include <nda/hw/in_die.h>
#include <nda/hw/udma.h>
#include <nda/hw/xscale.h>

#include "lib/nda/error.h"

namespace nda {
namespace {

// What the communication layer's headers call by these names.
constexpr uint32_t header_magic = 0x0fcf0f0f;
constexpr int32_t engine_aiv = 4;
constexpr int32_t protocol_roce = 1, protocol_ub_ctp = 4, protocol_ub_tp = 5;
constexpr int32_t queue_ub = 0, queue_roce = 1;
constexpr int32_t buffer_rma = 1;
constexpr int32_t keys_roce = 0, keys_ub = 1;

// More than any version of it exports; a larger number is none.
constexpr uint32_t buffers_max = 1024;

template <class T>
T at(const uint8_t *bytes, uint32_t offset)
{
	T value;
	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

uint32_t u32(const uint8_t *bytes, uint32_t offset)
{
	return at<uint32_t>(bytes, offset);
}
int32_t i32(const uint8_t *bytes, uint32_t offset)
{
	return at<int32_t>(bytes, offset);
}
uint64_t u64(const uint8_t *bytes, uint32_t offset)
{
	return at<uint64_t>(bytes, offset);
}

unsigned long long hex(uint64_t value)
{
	return value;
}

bool power_of_two(uint32_t v)
{
	return v && (v & (v - 1)) == 0;
}

bool is_wqe_size(uint32_t bytes)
{
	return power_of_two(bytes) && bytes >= 32 && bytes <= 4096;
}

} // namespace

int decode_entity(const uint8_t bytes[entity_bytes], bool check_header, EntityFields &out)
{
	if (check_header && (u32(bytes, 4) != header_magic || u32(bytes, 8) < entity_bytes))
		return fail(-EPROTO,
			"the entity's header has magic 0x%x and size %u, wanted are 0x%x "
			"and %u at least",
			u32(bytes, 4), u32(bytes, 8), header_magic, entity_bytes);
	const int32_t engine = i32(bytes, 16), protocol = i32(bytes, 20);
	const uint32_t sqs = u32(bytes, 40), cqs = u32(bytes, 44);
	EntityFields e = {};
	if (engine != engine_aiv)
		return fail(-EOPNOTSUPP, "the channel is of engine %d, not AIV (%d)",
			engine, engine_aiv);
	e.ub = protocol == protocol_ub_ctp || protocol == protocol_ub_tp;
	if (!e.ub && protocol != protocol_roce)
		return fail(-EOPNOTSUPP,
			"the channel is of protocol %d, known are RoCE (%d), UBC_CTP (%d) "
			"and UBC_TP (%d)",
			protocol, protocol_roce, protocol_ub_ctp, protocol_ub_tp);
	if (sqs != 1 || cqs != 1)
		return fail(-EOPNOTSUPP,
			"the channel has %u send queues and %u completion queues, not one "
			"of "
			"each",
			sqs, cqs);
	e.local_buffers = u32(bytes, 32);
	e.remote_buffers = u32(bytes, 36);
	if (e.local_buffers > buffers_max || e.remote_buffers > buffers_max)
		return fail(-EPROTO, "the channel has %u local and %u remote buffers",
			e.local_buffers, e.remote_buffers);
	e.local_buffer_addr = u64(bytes, 64);
	e.remote_buffer_addr = u64(bytes, 72);
	e.sq_context = u64(bytes, 80);
	e.cq_context = u64(bytes, 88);
	out = e;
	return 0;
}

int decode_buffer(const uint8_t bytes[buffer_bytes], bool ub, BufferFields &out)
{
	const int32_t type = i32(bytes, 0), keys = i32(bytes, 24);
	const BufferFields b = {
		u64(bytes, 8), u64(bytes, 16), {u32(bytes, 28), u32(bytes, 32)}};
	if (type != buffer_rma || keys != (ub ? keys_ub : keys_roce))
		return fail(-EPROTO,
			"it is of type %d with keys of type %d, wanted are %d and %d", type,
			keys, buffer_rma, ub ? keys_ub : keys_roce);
	if (b.addr == 0 || b.size == 0 || b.addr + b.size < b.addr)
		return fail(
			-EPROTO, "it has %llu bytes at 0x%llx", hex(b.size), hex(b.addr));
	out = b;
	return 0;
}

// ---- RoCE ------------------------------------------------------------------------------

namespace {

bool fits_initial(const uint8_t *sq)
{
	const auto mode = at<int8_t>(sq, 52);
	return u32(sq, 40) != 0 && is_wqe_size(u32(sq, 44)) && u32(sq, 48) != 0 &&
		(mode == 0 || mode == 1) && sq[53] <= 7;
}

bool fits_split(const uint8_t *sq)
{
	return u32(sq, 48) != 0 && is_wqe_size(u32(sq, 52)) && u32(sq, 56) != 0 &&
		sq[60] <= 7;
}

constexpr uint64_t vendor_bits = 7ull << 24 | 7ull << 50;

// Of a SPLIT layout that is not VENDOR the word is 0, being no part of it.
int choose_split(const uint8_t *sq, nda_import_layout &layout)
{
	const uint64_t word = u64(sq, 64);
	if (word & ~vendor_bits && word > 7)
		return fail(-EPROTO,
			"the send queue's vendor word is 0x%llx, which no known version "
			"writes",
			hex(word));
	layout = word ? NDA_IMPORT_LAYOUT_VENDOR : NDA_IMPORT_LAYOUT_SPLIT;
	return 0;
}

int choose_layout(const uint8_t *sq, nda_import_layout &layout)
{
	const bool initial = fits_initial(sq), split = fits_split(sq);
	if (initial && split)
		return fail(-EPROTO,
			"the send queue's values fit more than one layout; its maker's "
			"version has to be told by the attribute's layout");
	if (!initial && !split)
		return fail(-EPROTO, "the send queue's values fit no known layout");
	if (split)
		return choose_split(sq, layout);
	layout = NDA_IMPORT_LAYOUT_INITIAL;
	return 0;
}

int check_layout(const uint8_t *sq, nda_import_layout asked, nda_import_layout &layout)
{
	if (asked == NDA_IMPORT_LAYOUT_AUTO)
		return choose_layout(sq, layout);
	const bool fits =
		asked == NDA_IMPORT_LAYOUT_INITIAL ? fits_initial(sq) : fits_split(sq);
	if (!fits)
		return fail(-EPROTO, "the send queue's values do not fit layout %d", asked);
	layout = asked;
	return 0;
}

// Later layouts have a register and a record beside each other; this one has either, and
// all that can be imported in it rings registers.
int check_modes(const uint8_t *sq, const uint8_t *cq)
{
	const struct {
		const char *queue;
		int mode;
	} doorbells[] = {{"send", at<int8_t>(sq, 52)}, {"completion", at<int8_t>(cq, 52)}};
	for (const auto &doorbell : doorbells)
		if (doorbell.mode != 0)
			return fail(-EOPNOTSUPP,
				"the %s queue's doorbell is of mode %d, a record in "
				"memory; the format needs a register, mode 0",
				doorbell.queue, doorbell.mode);
	return 0;
}

void decode_initial(const uint8_t *sq, const uint8_t *cq, QueueFields &q)
{
	q.sq_doorbell = u64(sq, 32);
	q.number = u32(sq, 40);
	q.wqe_bytes = u32(sq, 44);
	q.sq_depth = u32(sq, 48);
	q.service_level = sq[53];
	q.cq_doorbell = u64(cq, 32);
	q.cq_number = u32(cq, 40);
	q.cqe_bytes = u32(cq, 44);
	q.cq_depth = u32(cq, 48);
}

void decode_split(const uint8_t *sq, const uint8_t *cq, QueueFields &q)
{
	q.sq_doorbell = u64(sq, 32);
	q.sq_record = u64(sq, 40);
	q.number = u32(sq, 48);
	q.wqe_bytes = u32(sq, 52);
	q.sq_depth = u32(sq, 56);
	q.service_level = sq[60];
	q.cq_doorbell = u64(cq, 32);
	q.cq_record = u64(cq, 40);
	q.cq_number = u32(cq, 48);
	q.cqe_bytes = u32(cq, 52);
	q.cq_depth = u32(cq, 56);
}

// Where nothing was published, what every public user of the NIC takes.
int decode_doorbell_fields(const uint8_t *sq, QueueFields &q)
{
	const hw::hns1825::doorbell_params usual;
	q.cos = usual.cos;
	q.mtu_shift = usual.mtu_shift;
	if (q.layout == NDA_IMPORT_LAYOUT_SPLIT && sq[61])
		q.mtu_shift = sq[61];
	if (q.layout == NDA_IMPORT_LAYOUT_VENDOR) {
		const uint64_t word = u64(sq, 64);
		const bool intermediate = word != 0 && word <= 7;
		q.mtu_shift = static_cast<uint8_t>(intermediate ? word : word >> 50 & 7);
		if (!intermediate)
			q.cos = static_cast<uint8_t>(word >> 24 & 7);
	}
	return q.mtu_shift <= 4
		? 0
		: fail(-EPROTO, "the send queue's MTU code is %u, above 4", q.mtu_shift);
}

// By what its maker publishes for each NIC.
nda_format format_of(const QueueFields &q)
{
	if (q.wqe_bytes == hw::xscale::wqe_bytes && !q.sq_record)
		return NDA_FORMAT_XSCALE;
	if (q.wqe_bytes == hw::hns1825::wqe_bytes &&
		(q.sq_record || q.layout == NDA_IMPORT_LAYOUT_INITIAL))
		return NDA_FORMAT_HNS1825;
	return NDA_FORMAT_NONE;
}

int check_format(nda_format asked, QueueFields &q)
{
	const nda_format found = format_of(q);
	if (found == NDA_FORMAT_NONE || (asked != NDA_FORMAT_NONE && asked != found))
		return fail(-EPROTO,
			"its WQEs have %u bytes and its doorbell %s record: that is format "
			"%d, asked for is %d",
			q.wqe_bytes, q.sq_record ? "a" : "no", found, asked);
	if (found == NDA_FORMAT_HNS1825 && q.layout == NDA_IMPORT_LAYOUT_INITIAL)
		return fail(-EOPNOTSUPP,
			"the initial layout has one doorbell address, and a 1825 needs a "
			"record and a register");
	q.format = found;
	return 0;
}

void decode_common(const uint8_t *sq, const uint8_t *cq, QueueFields &q)
{
	q.sq_addr = u64(sq, 8);
	q.sq_head_word = u64(sq, 16);
	q.sq_tail_word = u64(sq, 24);
	q.cq_addr = u64(cq, 8);
	q.cq_tail_word = u64(cq, 24);
}

} // namespace

int decode_roce(const uint8_t sq[context_bytes], const uint8_t cq[context_bytes],
	nda_import_layout layout, nda_format format, QueueFields &out)
{
	QueueFields q = {};
	if (i32(sq, 0) != queue_roce)
		return fail(-EPROTO, "the send queue is of type %d, RoCE's is %d",
			i32(sq, 0), queue_roce);
	int rc = check_layout(sq, layout, q.layout);
	if (rc)
		return rc;
	decode_common(sq, cq, q);
	if (q.layout == NDA_IMPORT_LAYOUT_INITIAL)
		decode_initial(sq, cq, q);
	else
		decode_split(sq, cq, q);
	rc = check_format(format, q);
	if (!rc && q.layout == NDA_IMPORT_LAYOUT_INITIAL)
		rc = check_modes(sq, cq);
	if (!rc && q.format == NDA_FORMAT_HNS1825)
		rc = decode_doorbell_fields(sq, q);
	if (!rc)
		out = q;
	return rc;
}

// ---- UB --------------------------------------------------------------------------------

int decode_ub(
	const uint8_t sq[context_bytes], const uint8_t cq[context_bytes], QueueFields &out)
{
	QueueFields q = {};
	if (i32(sq, 0) != queue_ub)
		return fail(-EPROTO, "the send queue is of type %d, a UB jetty's is %d",
			i32(sq, 0), queue_ub);
	q.format = NDA_FORMAT_UDMA;
	decode_common(sq, cq, q);
	q.sq_doorbell = u64(sq, 32);
	q.number = u32(sq, 40);
	q.wqe_bytes = u32(sq, 44);
	q.sq_depth = u32(sq, 48);
	q.tp_id = u32(sq, 52);
	memcpy(q.eid, sq + 56, sizeof(q.eid));
	q.cq_record = u64(cq, 32);
	q.cq_number = u32(cq, 40);
	q.cqe_bytes = u32(cq, 44);
	q.cq_depth = u32(cq, 48);
	if (q.wqe_bytes != hw::udma::bb_bytes || q.tp_id >> 24 ||
		(q.eid[0] == 0 && q.eid[1] == 0))
		return fail(-EPROTO,
			"the jetty has blocks of %u bytes and transport 0x%x, or no EID; "
			"blocks have %u, and the transport 24 bits",
			q.wqe_bytes, q.tp_id, hw::udma::bb_bytes);
	out = q;
	return 0;
}

// ---- AI queue pairs --------------------------------------------------------------------

namespace {

constexpr uint32_t ai_sq = 32, ai_scq = 32 + 176;

} // namespace

// Of an SQ and its CQ the registers count; the records that stand beside them are those
// that the public library leaves alone.
int decode_ai_qp(const uint8_t bytes[ai_qp_bytes], QueueFields &out)
{
	const uint8_t *sq = bytes + ai_sq, *cq = bytes + ai_scq;
	QueueFields q = {};
	q.format = NDA_FORMAT_IN_DIE;
	q.number = u32(sq, 0);
	q.sq_addr = u64(sq, 8);
	q.wqe_bytes = u32(sq, 16);
	q.sq_depth = u32(sq, 20);
	q.sq_head_word = u64(sq, 24);
	q.sq_tail_word = u64(sq, 32);
	q.sq_doorbell = u64(sq, 48);
	q.cq_number = u32(cq, 0);
	q.cq_addr = u64(cq, 8);
	q.cqe_bytes = u32(cq, 16);
	q.cq_depth = u32(cq, 20);
	q.cq_tail_word = u64(cq, 32);
	q.cq_doorbell = u64(cq, 48);
	if (!q.cq_doorbell)
		q.cq_record = u64(cq, 40);
	if (q.wqe_bytes != hw::in_die::wqe_bytes)
		return fail(-EPROTO, "its WQEs have %u bytes, the format's have %u",
			q.wqe_bytes, hw::in_die::wqe_bytes);
	out = q;
	return 0;
}

} // namespace nda
