/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue formats of the RoCE NIC inside Ascend 910: send work queue entry (WQE), doorbells
 * and their records, completion queue entry (CQE). Pure functions on values: no state, no
 * memory access. The data plane encodes with them, the device model decodes.
 *
 * Source: the public user-space driver of the NIC's family, and layouts as used by the
 * public shared-memory library for Ascend. None was checked on silicon; what these sources
 * contradict or leave open is marked "unverified" and is a parameter.
 *
 * Everything is little-endian. A WQE is handled as 8 and a CQE as 4 native 64-bit words in
 * memory order:
 *
 *   word 0  flags and opcode, of which the owner bit says that the WQE is there; length
 *   word 1  immediate; number of data segments
 *   word 2  extended segments (not used here); rkey
 *   word 3  remote address
 *   4 to 7  two data segments, or one and the operands of an atomic, or inline data
 */
#ifndef NDA_HW_IN_DIE_H
#define NDA_HW_IN_DIE_H

#include <stddef.h>
#include <stdint.h>

#include <nda/hw/defs.h>
#include <nda/hw/hns_status.h>
#include <nda/status.h>

namespace nda::hw::in_die {

constexpr uint32_t wqe_bytes = 64; /* also the stride of the ring */
constexpr uint32_t wqe_words = 8;
constexpr uint32_t data_offset = 32; /* of segments or inline data in a WQE */
constexpr uint32_t data_words = 4;
constexpr uint32_t cqe_bytes = 32;
constexpr uint32_t cqe_words = 4;
constexpr uint32_t max_sges = 2;    /* in the WQE; more would be in a buffer beside it */
constexpr uint32_t max_inline = 32; /* likewise, bytes */
constexpr uint32_t atomic_bytes = 8;
/* Of one WQE: what InfiniBand allows. The device's own limit is unverified. */
constexpr uint32_t max_length = 1u << 31;
/* A CQE and a doorbell name a WQE by 16 bits: more outstanding ones would be ambiguous. */
constexpr uint32_t max_depth = 32768;
constexpr uint32_t min_depth = 4;
constexpr uint32_t max_number = 0xffffff; /* of a QP or CQ, in a doorbell */

/* syndrome_... and status_of(), the CQE's status numbers. */
using namespace nda::hw::hns;

enum wqe_opcode : uint8_t {
	op_send = 0x0,
	op_send_invalidate = 0x1,
	op_send_immediate = 0x2,
	op_write = 0x3,
	op_write_immediate = 0x4,
	op_read = 0x5,
	op_compare_swap = 0x6,
	op_fetch_add = 0x7,
	op_masked_compare_swap = 0x8,
	op_masked_fetch_add = 0x9,
	op_register = 0xa,
};

NDA_DEV constexpr bool is_send(uint8_t opcode)
{
	return opcode <= op_send_immediate;
}
NDA_DEV constexpr bool is_atomic(uint8_t opcode)
{
	return opcode == op_compare_swap || opcode == op_fetch_add;
}
NDA_DEV constexpr bool has_immediate(uint8_t opcode)
{
	return opcode == op_send_immediate || opcode == op_write_immediate;
}

/* ---- Indices -------------------------------------------------------------------------
 * Head and consumer index are free-running u32; depths are powers of two. */

/* The owner bit of a WQE or CQE written at @index: 1 in the first lap, so that a ring of
 * zeros is empty. */
NDA_DEV constexpr bool owner_bit(uint32_t index, uint32_t depth)
{
	return (index & depth) == 0;
}

/* ---- WQE ------------------------------------------------------------------------------
 * Every field of the 64 bytes, so that decode() loses nothing: encode(decode(w)) == w. */
struct wqe {
	uint8_t opcode;        /* 5 bits, enum wqe_opcode */
	uint8_t direct_sl_low; /* 2 bits: 0; this and the next three of a direct WQE */
	uint8_t owner;         /* 1 bit */
	uint8_t completion;    /* 1 bit: wants a CQE */
	uint8_t fence;        /* 1 bit: 0, the family's driver leaves it for strong_order */
	uint8_t strong_order; /* 1 bit: starts after earlier READs and atomics are done */
	uint8_t solicited;    /* 1 bit */
	uint8_t inline_data;  /* 1 bit: payload instead of segments */
	uint8_t direct_sl_high; /* 2 bits: 0 */
	uint16_t direct_index;  /* 16 bits: 0 */
	uint8_t direct;         /* 1 bit: 0 */
	uint32_t length;        /* bytes in all */
	uint32_t immediate;     /* or the key to invalidate */
	uint32_t xrc_srqn;      /* 24 bits: 0 */
	uint8_t sges;           /* data segments; 1 with inline data */
	uint32_t extended_sge;  /* 24 bits: 0 */
	uint8_t reduce;         /* 7 bits: 0 */
	uint8_t inline_type;    /* 1 bit: 0, in the WQE */
	uint32_t rkey;
	uint64_t remote_va;
	uint64_t data[data_words];
};

NDA_DEV void encode(const wqe &f, uint64_t out[wqe_words])
{
	out[0] = place(f.opcode, 0, 5) | place(f.direct_sl_low, 5, 2) |
		place(f.owner, 7, 1) | place(f.completion, 8, 1) | place(f.fence, 9, 1) |
		place(f.strong_order, 10, 1) | place(f.solicited, 11, 1) |
		place(f.inline_data, 12, 1) | place(f.direct_sl_high, 13, 2) |
		place(f.direct_index, 15, 16) | place(f.direct, 31, 1) |
		place(f.length, 32, 32);
	out[1] = f.immediate | place(f.xrc_srqn, 32, 24) | place(f.sges, 56, 8);
	out[2] = place(f.extended_sge, 0, 24) | place(f.reduce, 24, 7) |
		place(f.inline_type, 31, 1) | place(f.rkey, 32, 32);
	out[3] = f.remote_va;
	for (uint32_t i = 0; i < data_words; i++)
		out[4 + i] = f.data[i];
}

/* The opcode alone, of the first word. */
NDA_DEV uint8_t wqe_opcode_of(uint64_t word)
{
	return static_cast<uint8_t>(bits(word, 0, 5));
}

NDA_DEV wqe decode(const uint64_t in[wqe_words])
{
	wqe f;

	f.opcode = wqe_opcode_of(in[0]);
	f.direct_sl_low = static_cast<uint8_t>(bits(in[0], 5, 2));
	f.owner = static_cast<uint8_t>(bits(in[0], 7, 1));
	f.completion = static_cast<uint8_t>(bits(in[0], 8, 1));
	f.fence = static_cast<uint8_t>(bits(in[0], 9, 1));
	f.strong_order = static_cast<uint8_t>(bits(in[0], 10, 1));
	f.solicited = static_cast<uint8_t>(bits(in[0], 11, 1));
	f.inline_data = static_cast<uint8_t>(bits(in[0], 12, 1));
	f.direct_sl_high = static_cast<uint8_t>(bits(in[0], 13, 2));
	f.direct_index = static_cast<uint16_t>(bits(in[0], 15, 16));
	f.direct = static_cast<uint8_t>(bits(in[0], 31, 1));
	f.length = bits(in[0], 32, 32);
	f.immediate = bits(in[1], 0, 32);
	f.xrc_srqn = bits(in[1], 32, 24);
	f.sges = static_cast<uint8_t>(bits(in[1], 56, 8));
	f.extended_sge = bits(in[2], 0, 24);
	f.reduce = static_cast<uint8_t>(bits(in[2], 24, 7));
	f.inline_type = static_cast<uint8_t>(bits(in[2], 31, 1));
	f.rkey = bits(in[2], 32, 32);
	f.remote_va = in[3];
	for (uint32_t i = 0; i < data_words; i++)
		f.data[i] = in[4 + i];
	return f;
}

/* The first word of a data segment; the second is its address. */
NDA_DEV constexpr uint64_t sge_word(uint32_t length, uint32_t lkey)
{
	return length | uint64_t{lkey} << 32;
}
NDA_DEV constexpr uint32_t sge_length(uint64_t word)
{
	return bits(word, 0, 32);
}
NDA_DEV constexpr uint32_t sge_lkey(uint64_t word)
{
	return bits(word, 32, 32);
}

/* What a request is made of; the rest of a WQE is constant. */
struct request {
	uint8_t opcode; /* enum wqe_opcode, not a masked one or op_register */
	bool signalled; /* wants a CQE */
	bool fence;     /* waits for earlier READs and atomics */
	bool solicited;
	bool inline_data;   /* WRITE or SEND, of up to max_inline bytes */
	uint32_t length;    /* bytes in all, up to max_length; atomics: atomic_bytes */
	uint32_t immediate; /* of an opcode that has one */
	uint32_t rkey;
	uint64_t remote_va;
	uint32_t sges; /* without inline data: segments, up to max_sges */
	/* Segments, see sge_word(); of an atomic one and then what is stored or added and
	 * what is compared; or the inline data. What is not used is 0. */
	uint64_t data[data_words];
};

/* The WQE of @r at @index of a ring of @depth. */
NDA_DEV wqe request_wqe(const request &r, uint32_t index, uint32_t depth)
{
	wqe f = {};

	f.opcode = r.opcode;
	f.owner = owner_bit(index, depth) ? 1 : 0;
	f.completion = r.signalled ? 1 : 0;
	f.strong_order = r.fence ? 1 : 0;
	f.solicited = r.solicited ? 1 : 0;
	f.inline_data = r.inline_data ? 1 : 0;
	f.length = r.length;
	f.immediate = r.immediate;
	f.sges = r.inline_data ? 1 : static_cast<uint8_t>(r.sges);
	f.rkey = r.rkey;
	f.remote_va = r.remote_va;
	for (uint32_t i = 0; i < data_words; i++)
		f.data[i] = r.data[i];
	return f;
}

/* What of a WQE a reader objects to. */
enum class wqe_fault : uint8_t {
	none,
	not_valid,   /* owner: not posted for this index */
	direct,      /* what only a direct WQE has */
	opcode,      /* not one of those above, or masked, or op_register */
	sge_count,   /* more than fit */
	inline_data, /* of an opcode that has none, too long, or beside the WQE */
	length,      /* not that of the segments, or above max_length */
	atomic,      /* not one segment of atomic_bytes */
};

/*
 * What a NIC that takes request_wqe()s can object to in @w at @index. Fields that the
 * sources' senders leave to chance are not looked at: xrc_srqn, reduce, inline_type without
 * inline data, segments that are not counted.
 */
NDA_DEV wqe_fault check(const uint64_t w[wqe_words], uint32_t index, uint32_t depth)
{
	wqe f = decode(w);
	uint64_t sum = 0;

	if ((f.owner != 0) != owner_bit(index, depth))
		return wqe_fault::not_valid;
	if (f.direct || f.direct_sl_low || f.direct_sl_high || f.direct_index)
		return wqe_fault::direct;
	if (f.opcode > op_fetch_add)
		return wqe_fault::opcode;
	if (f.inline_data) {
		bool may = f.opcode == op_write || f.opcode == op_write_immediate ||
			is_send(f.opcode);

		return may && f.inline_type == 0 && f.length <= max_inline
			? wqe_fault::none
			: wqe_fault::inline_data;
	}
	if (f.sges > max_sges)
		return wqe_fault::sge_count;
	for (uint32_t i = 0; i < f.sges; i++)
		sum += sge_length(f.data[2 * i]);
	if (is_atomic(f.opcode))
		return f.sges == 1 && f.length == atomic_bytes && sum == atomic_bytes
			? wqe_fault::none
			: wqe_fault::atomic;
	return sum == f.length && sum <= max_length ? wqe_fault::none : wqe_fault::length;
}

/* ---- Parts of a WQE for a caller that keeps them prepared ----------------------------
 * A WRITE or READ with one segment:
 *
 * w[0] = control_word(...) | length << 32
 * w[1] = one_sge
 * w[2] = key_words()[0]
 * w[3] = remote_va
 * w[4] = key_words()[1] | length
 * w[5] = local_va
 * w[6] = w[7] = 0 */

constexpr uint64_t one_sge = uint64_t{1} << 56;
constexpr uint64_t control_signalled = uint64_t{1} << 8;

NDA_DEV void key_words(uint32_t rkey, uint32_t lkey, uint64_t out[2])
{
	out[0] = place(rkey, 32, 32);
	out[1] = sge_word(0, lkey);
}

NDA_DEV uint64_t control_word(
	uint8_t opcode, uint32_t index, uint32_t depth, bool signalled)
{
	return opcode | (owner_bit(index, depth) ? 0x80u : 0) |
		(signalled ? control_signalled : 0);
}

/* ---- Doorbells ------------------------------------------------------------------------
 * Each kind is 64 bits to one register; what the bits from 32 on mean depends on it. */

enum doorbell_command : uint8_t {
	command_sq = 0,
	command_rq = 1,
	command_srq = 2,
	command_cq = 3,        /* the consumer index went on */
	command_cq_notify = 4, /* ... and an event is wanted */
};

/* Every field: encode(decode_doorbell(v)) == v. */
struct doorbell {
	uint32_t tag;        /* 24 bits: QPN, SRQN or CQN */
	uint8_t command;     /* 4 bits, enum doorbell_command */
	uint8_t reserved28;  /* 3 bits: 0 */
	uint8_t direct;      /* 1 bit: 0, of a direct WQE */
	uint16_t pi;         /* 16 bits: head modulo 2^16 */
	uint8_t sl;          /* 3 bits */
	uint16_t reserved51; /* 13 bits: 0 */
};

NDA_DEV uint64_t encode(const doorbell &f)
{
	return place(f.tag, 0, 24) | place(f.command, 24, 4) | place(f.reserved28, 28, 3) |
		place(f.direct, 31, 1) | place(f.pi, 32, 16) | place(f.sl, 48, 3) |
		place(f.reserved51, 51, 13);
}

NDA_DEV doorbell decode_doorbell(uint64_t v)
{
	doorbell f;

	f.tag = bits(v, 0, 24);
	f.command = static_cast<uint8_t>(bits(v, 24, 4));
	f.reserved28 = static_cast<uint8_t>(bits(v, 28, 3));
	f.direct = static_cast<uint8_t>(bits(v, 31, 1));
	f.pi = static_cast<uint16_t>(bits(v, 32, 16));
	f.sl = static_cast<uint8_t>(bits(v, 48, 3));
	f.reserved51 = static_cast<uint16_t>(bits(v, 51, 13));
	return f;
}

/* The SQ doorbell of a queue but for the head's bits, as nda_queue.doorbell_template. */
NDA_DEV uint64_t doorbell_template(uint32_t qpn, uint8_t sl)
{
	return place(qpn, 0, 24) | place(command_sq, 24, 4) | place(sl, 48, 3);
}

NDA_DEV uint64_t doorbell_value(uint64_t template_word, uint32_t head)
{
	return template_word | place(head, 32, 16);
}

/* No doorbell has this value, a direct one without an index: a model may leave it in a
 * doorbell word that it has consumed. */
constexpr uint64_t doorbell_idle = uint64_t{1} << 31;

/* The SQ record's u32 for @head, of queues that have one. */
NDA_DEV uint32_t sq_record(uint32_t head)
{
	return head & 0xffff;
}

/* The same of a CQ's consumer index. Every field. */
struct cq_doorbell {
	uint32_t cqn;       /* 24 bits */
	uint8_t command;    /* 4 bits: command_cq */
	uint8_t reserved28; /* 4 bits: 0 */
	uint32_t ci;        /* 24 bits */
	uint8_t notify;     /* 1 bit: the kind of event wanted; of command_cq_notify */
	uint8_t cmd_sn;     /* 2 bits */
	uint8_t reserved59; /* 5 bits: 0 */
};

/* The driver of the family sets cmd_sn to 1 where only the index goes on; the shared-memory
 * library sets the bit below it, notify, by what it takes for cmd_sn. Whether the NIC looks
 * at either is unverified. */
struct cq_doorbell_params {
	uint8_t notify = 0;
	uint8_t cmd_sn = 1;
};

NDA_DEV uint64_t encode(const cq_doorbell &f)
{
	return place(f.cqn, 0, 24) | place(f.command, 24, 4) | place(f.reserved28, 28, 4) |
		place(f.ci, 32, 24) | place(f.notify, 56, 1) | place(f.cmd_sn, 57, 2) |
		place(f.reserved59, 59, 5);
}

NDA_DEV cq_doorbell decode_cq_doorbell(uint64_t v)
{
	cq_doorbell f;

	f.cqn = bits(v, 0, 24);
	f.command = static_cast<uint8_t>(bits(v, 24, 4));
	f.reserved28 = static_cast<uint8_t>(bits(v, 28, 4));
	f.ci = bits(v, 32, 24);
	f.notify = static_cast<uint8_t>(bits(v, 56, 1));
	f.cmd_sn = static_cast<uint8_t>(bits(v, 57, 2));
	f.reserved59 = static_cast<uint8_t>(bits(v, 59, 5));
	return f;
}

/* A CQ's doorbell but for the index. */
NDA_DEV uint64_t cq_doorbell_template(uint32_t cqn, const cq_doorbell_params &p)
{
	cq_doorbell f = {};

	f.cqn = cqn;
	f.command = command_cq;
	f.notify = p.notify;
	f.cmd_sn = p.cmd_sn;
	return encode(f);
}

constexpr uint32_t cq_index_bits = 24; /* of doorbell and record */

NDA_DEV uint64_t cq_doorbell_value(uint64_t template_word, uint32_t ci)
{
	return template_word | place(ci, 32, cq_index_bits);
}

/* The CQ record's u32 for @ci. */
NDA_DEV uint32_t cq_record(uint32_t ci)
{
	return ci & 0xffffff;
}

/* ---- Completion -----------------------------------------------------------------------*/

/* The opcode of a receive's CQE; from the family's driver, unverified. */
enum cqe_receive_opcode : uint8_t {
	received_write_immediate = 0x0,
	received_send = 0x1,
	received_send_immediate = 0x2,
	received_send_invalidate = 0x3,
};

/* Every field of the 32 bytes: encode(decode_cqe(w)) == w. */
struct cqe {
	uint8_t opcode;     /* 5 bits, of a send queue enum wqe_opcode */
	uint8_t rq_inline;  /* 1 bit */
	uint8_t receive;    /* 1 bit: 0, of a send queue */
	uint8_t owner;      /* 1 bit */
	uint8_t status;     /* 0, or enum syndrome */
	uint16_t wqe_index; /* of the WQE; modulo 2^16 or the depth, see wqes_done() */
	uint32_t immediate; /* or the key invalidated */
	uint32_t xrc_srqn;  /* 24 bits */
	uint8_t cqe_inline; /* 2 bits */
	uint8_t reserved90; /* 6 bits */
	uint32_t qpn;       /* 24 bits */
	uint8_t sub_status; /* of an error: the vendor's own code */
	uint32_t byte_count;
	uint64_t source_mac; /* 48 bits */
	uint8_t port_type;   /* 2 bits */
	uint16_t vlan;       /* 12 bits */
	uint8_t vlan_valid;  /* 1 bit */
	uint8_t reserved223; /* 1 bit */
	uint32_t remote_qpn; /* 24 bits */
	uint8_t sl;          /* 3 bits */
	uint8_t port;        /* 3 bits */
	uint8_t grh;         /* 1 bit */
	uint8_t loopback;    /* 1 bit */
};

NDA_DEV void encode(const cqe &f, uint64_t out[cqe_words])
{
	out[0] = place(f.opcode, 0, 5) | place(f.rq_inline, 5, 1) | place(f.receive, 6, 1) |
		place(f.owner, 7, 1) | place(f.status, 8, 8) | place(f.wqe_index, 16, 16) |
		place(f.immediate, 32, 32);
	out[1] = place(f.xrc_srqn, 0, 24) | place(f.cqe_inline, 24, 2) |
		place(f.reserved90, 26, 6) | place(f.qpn, 32, 24) |
		place(f.sub_status, 56, 8);
	out[2] = f.byte_count | place(f.source_mac, 32, 32);
	out[3] = place(f.source_mac >> 32, 0, 16) | place(f.port_type, 16, 2) |
		place(f.vlan, 18, 12) | place(f.vlan_valid, 30, 1) |
		place(f.reserved223, 31, 1) | place(f.remote_qpn, 32, 24) |
		place(f.sl, 56, 3) | place(f.port, 59, 3) | place(f.grh, 62, 1) |
		place(f.loopback, 63, 1);
}

NDA_DEV cqe decode_cqe(const uint64_t in[cqe_words])
{
	cqe f;

	f.opcode = static_cast<uint8_t>(bits(in[0], 0, 5));
	f.rq_inline = static_cast<uint8_t>(bits(in[0], 5, 1));
	f.receive = static_cast<uint8_t>(bits(in[0], 6, 1));
	f.owner = static_cast<uint8_t>(bits(in[0], 7, 1));
	f.status = static_cast<uint8_t>(bits(in[0], 8, 8));
	f.wqe_index = static_cast<uint16_t>(bits(in[0], 16, 16));
	f.immediate = bits(in[0], 32, 32);
	f.xrc_srqn = bits(in[1], 0, 24);
	f.cqe_inline = static_cast<uint8_t>(bits(in[1], 24, 2));
	f.reserved90 = static_cast<uint8_t>(bits(in[1], 26, 6));
	f.qpn = bits(in[1], 32, 24);
	f.sub_status = static_cast<uint8_t>(bits(in[1], 56, 8));
	f.byte_count = bits(in[2], 0, 32);
	f.source_mac = bits(in[2], 32, 32) | place(in[3], 32, 16);
	f.port_type = static_cast<uint8_t>(bits(in[3], 16, 2));
	f.vlan = static_cast<uint16_t>(bits(in[3], 18, 12));
	f.vlan_valid = static_cast<uint8_t>(bits(in[3], 30, 1));
	f.reserved223 = static_cast<uint8_t>(bits(in[3], 31, 1));
	f.remote_qpn = bits(in[3], 32, 24);
	f.sl = static_cast<uint8_t>(bits(in[3], 56, 3));
	f.port = static_cast<uint8_t>(bits(in[3], 59, 3));
	f.grh = static_cast<uint8_t>(bits(in[3], 62, 1));
	f.loopback = static_cast<uint8_t>(bits(in[3], 63, 1));
	return f;
}

enum class cqe_state : uint8_t {
	empty,
	done,
	error
};

constexpr uint32_t cqe_receive = 0x40;
constexpr uint32_t cqe_owner = 0x80;
/* Of a send queue's success, owner alone may be set of these: of owner, status, receive. */
constexpr uint32_t cqe_decisive = 0xffc0;

/* What a CQE's first 32 bits say to a reader at consumer index @ci. That of a receive is an
 * error: none belongs into the CQ of a send queue. Take them from one
 * acquire load and decide once: a second look may see another state. */
NDA_DEV cqe_state cqe_look(uint32_t word, uint32_t ci, uint32_t depth)
{
	if (((word & cqe_owner) != 0) != owner_bit(ci, depth))
		return cqe_state::empty;
	return (word & cqe_decisive & ~cqe_owner) != 0 ? cqe_state::error : cqe_state::done;
}

/* Of a CQE's first 32 bits. */
NDA_DEV uint16_t cqe_wqe_index(uint32_t word)
{
	return static_cast<uint16_t>(word >> 16);
}
NDA_DEV uint8_t cqe_status(uint32_t word)
{
	return static_cast<uint8_t>(word >> 8);
}

/* Of its 32 bits from @cqe_sub_status_offset on. */
constexpr uint32_t cqe_sub_status_offset = 12;
NDA_DEV uint8_t cqe_sub_status(uint32_t word)
{
	return static_cast<uint8_t>(word >> 24);
}

/* How many WQEs from @tail on are done when a CQE names @wqe_index, which counts in a ring
 * of @depth or goes on: 1 to @depth. */
NDA_DEV uint32_t wqes_done(uint16_t wqe_index, uint32_t tail, uint32_t depth)
{
	return ((wqe_index - tail) & (depth - 1)) + 1;
}

} // namespace nda::hw::in_die

#endif
