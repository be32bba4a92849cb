/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue formats of the Yunsilicon XSCALE NIC ("Diamond"): work queue entry (WQE), send and
 * completion doorbells, completion queue entry (CQE). Pure functions on values: no state,
 * no memory access. The data plane encodes with them, the device model decodes.
 *
 * Source: layouts as used by the public shared-memory library for Ascend and by
 * linux-rdma/rdma-core. None was checked on silicon; what these sources contradict or leave
 * open is marked "unverified" and is a parameter. This is version 2 of the NIC's interface:
 * version 1, whose index fields are shorter, is not spoken.
 *
 * Byte order: everything is little-endian but the operands of atomics and the 4-byte
 * results of these. A WQE is handled as 16 and a CQE as 4 native 64-bit words in memory
 * order.
 */
#ifndef NDA_HW_XSCALE_H
#define NDA_HW_XSCALE_H

#include <stddef.h>
#include <stdint.h>

#include <nda/hw/defs.h>
#include <nda/status.h>

namespace nda::hw::xscale {

using hw::bits;
using hw::bswap32;
using hw::bswap64;
using hw::place;

constexpr uint32_t wqe_bytes = 128; /* also the stride of the ring */
constexpr uint32_t wqe_words = 16;
constexpr uint32_t units_per_wqe = 8; /* in which doorbells and wqe_id count: 16 bytes */
constexpr uint32_t cqe_bytes = 32;
constexpr uint32_t cqe_words = 4;
constexpr uint32_t default_cqe_stride = 64;
constexpr uint32_t max_length = 0x7fffffff; /* of one WQE: the field has 31 bits */
constexpr uint32_t max_pieces = 6;          /* local segments that a WQE has room for */
/* A CQE names a WQE by 17 bits, the queue's line a doorbell's index by 16. */
constexpr uint32_t max_depth = 32768;
constexpr uint32_t min_depth = 4;
constexpr uint32_t max_number = 0xffff; /* of a QP or CQ, as doorbells have it */
/* Of a WQE that waits for earlier READs; unverified, the field has 2 bits and 0 is none. */
constexpr uint8_t default_fence_mode = 1;

enum wqe_opcode : uint8_t {
	op_send = 0, /* never posted here: a CQE that says so is not of this data plane */
	op_write = 1,
	op_read = 2,
	op_compare_swap = 26, /* 8 bytes */
	op_fetch_add = 27,    /* 8 bytes */
	op_masked_compare_swap = 31,
	op_masked_fetch_add = 32,
	op_masked_compare_swap4 = 33,
	op_masked_fetch_add4 = 34,
};

/* Bytes that an atomic works on; 0: not an atomic. */
NDA_DEV constexpr uint32_t atomic_bytes(uint32_t opcode)
{
	if (opcode == op_masked_compare_swap4 || opcode == op_masked_fetch_add4)
		return 4;
	return opcode == op_compare_swap || opcode == op_fetch_add ||
			opcode == op_masked_compare_swap || opcode == op_masked_fetch_add
		? 8
		: 0;
}

/* ---- WQE ------------------------------------------------------------------------------
 * Every field of the 128 bytes, so that decode() loses nothing: encode(decode(w)) == w. */
struct segment {
	uint32_t length; /* bytes, 31 bits and a reserved one */
	uint32_t key;
	uint64_t va;
};

struct wqe {
	/* Control segment, bytes 0 to 15. */
	uint8_t opcode;      /* enum wqe_opcode */
	uint8_t immediate;   /* 1 bit: with an immediate value */
	uint8_t checksum;    /* 2 bits: 0 */
	uint8_t segments;    /* 5 bits: those of 16 bytes after this one */
	uint16_t reserved2;  /* 0 */
	uint32_t length;     /* bytes; of an atomic: see atomic_length() */
	uint32_t data;       /* the immediate value; native order, unverified */
	uint8_t solicited;   /* 1 bit: 0 */
	uint8_t completion;  /* 1 bit: wants a CQE */
	uint8_t inline_data; /* 1 bit: 1 in atomics, whose operands are inline */
	uint8_t fence_mode;  /* 2 bits: 0 none; what the others mean is unverified */
	uint8_t mask;        /* 2 bits: 0 */
	uint8_t reserved12;  /* 5 bits: 0 */
	uint32_t wqe_id;     /* 20 bits: wqe_id_of(index) */
	/* Remote and local data segment, bytes 16 to 47. */
	segment remote;
	segment local; /* of an atomic: where the former value goes */
	/* Bytes 48 to 127: further local segments, or operands, or 0. */
	uint64_t more[10];
};

NDA_DEV constexpr uint32_t wqe_id_of(uint32_t index)
{
	return index * units_per_wqe & 0xfffff;
}

NDA_DEV uint64_t segment_word(uint32_t length, uint32_t key)
{
	return length | place(key, 32, 32);
}

NDA_DEV void encode(const wqe &f, uint64_t out[wqe_words])
{
	out[0] = place(f.opcode, 0, 8) | place(f.immediate, 8, 1) |
		place(f.checksum, 9, 2) | place(f.segments, 11, 5) |
		place(f.reserved2, 16, 16) | place(f.length, 32, 32);
	out[1] = f.data | place(f.solicited, 32, 1) | place(f.completion, 33, 1) |
		place(f.inline_data, 34, 1) | place(f.fence_mode, 35, 2) |
		place(f.mask, 37, 2) | place(f.reserved12, 39, 5) | place(f.wqe_id, 44, 20);
	out[2] = segment_word(f.remote.length, f.remote.key);
	out[3] = f.remote.va;
	out[4] = segment_word(f.local.length, f.local.key);
	out[5] = f.local.va;
	for (uint32_t i = 6; i < wqe_words; i++)
		out[i] = f.more[i - 6];
}

NDA_DEV segment decode_segment(const uint64_t in[2])
{
	segment s;

	s.length = bits(in[0], 0, 32);
	s.key = bits(in[0], 32, 32);
	s.va = in[1];
	return s;
}

NDA_DEV wqe decode(const uint64_t in[wqe_words])
{
	wqe f;

	f.opcode = static_cast<uint8_t>(bits(in[0], 0, 8));
	f.immediate = static_cast<uint8_t>(bits(in[0], 8, 1));
	f.checksum = static_cast<uint8_t>(bits(in[0], 9, 2));
	f.segments = static_cast<uint8_t>(bits(in[0], 11, 5));
	f.reserved2 = static_cast<uint16_t>(bits(in[0], 16, 16));
	f.length = bits(in[0], 32, 32);
	f.data = bits(in[1], 0, 32);
	f.solicited = static_cast<uint8_t>(bits(in[1], 32, 1));
	f.completion = static_cast<uint8_t>(bits(in[1], 33, 1));
	f.inline_data = static_cast<uint8_t>(bits(in[1], 34, 1));
	f.fence_mode = static_cast<uint8_t>(bits(in[1], 35, 2));
	f.mask = static_cast<uint8_t>(bits(in[1], 37, 2));
	f.reserved12 = static_cast<uint8_t>(bits(in[1], 39, 5));
	f.wqe_id = bits(in[1], 44, 20);
	f.remote = decode_segment(in + 2);
	f.local = decode_segment(in + 4);
	for (uint32_t i = 6; i < wqe_words; i++)
		f.more[i - 6] = in[i];
	return f;
}

/* How many local segments a WRITE or READ has. */
NDA_DEV uint32_t pieces_of(const wqe &f)
{
	return f.segments == 0 ? 0 : f.segments - uint32_t{1};
}

/* Local segment @i < max_pieces of a WRITE or READ. */
NDA_DEV segment piece(const wqe &f, uint32_t i)
{
	return i == 0 ? f.local : decode_segment(f.more + size_t{i - 1} * 2);
}

NDA_DEV void set_piece(wqe *f, uint32_t i, const segment &s)
{
	if (i == 0) {
		f->local = s;
		return;
	}
	f->more[size_t{i - 1} * 2] = segment_word(s.length, s.key);
	f->more[size_t{i - 1} * 2 + 1] = s.va;
}

/* ---- Atomics --------------------------------------------------------------------------
 * Operands are big-endian in every masked form. For the plain forms the sources disagree;
 * the masked ones can do all that they can. */
struct atomic {
	uint64_t value; /* added, or stored */
	/* Of an add: bits that no carry leaves. 0: an ordinary sum, all ones: XOR. The
	 * plain form ignores it. */
	uint64_t boundary;
	/* Of a compare and swap: the value's bits under swap_mask are stored if the former
	 * value equals compare under compare_mask. The plain form has no masks. */
	uint64_t compare;
	uint64_t swap_mask;
	uint64_t compare_mask;
};

NDA_DEV constexpr bool is_add(uint32_t opcode)
{
	return opcode == op_fetch_add || opcode == op_masked_fetch_add ||
		opcode == op_masked_fetch_add4;
}

NDA_DEV constexpr bool is_plain(uint32_t opcode)
{
	return opcode == op_fetch_add || opcode == op_compare_swap;
}

/* Segments after the control segment, and the control segment's length. */
NDA_DEV constexpr uint8_t atomic_segments(uint32_t opcode)
{
	return opcode == op_masked_compare_swap ? 4 : 3;
}
NDA_DEV constexpr uint32_t atomic_length(uint32_t opcode)
{
	return opcode == op_masked_compare_swap  ? 32
		: opcode == op_masked_fetch_add4 ? 8
						 : 16;
}

/* An 8-byte operand in its place; the plain forms' order is unverified. */
NDA_DEV uint64_t operand8(uint64_t v, bool little_endian)
{
	return little_endian ? v : bswap64(v);
}

/* Two 4-byte operands in their places. */
NDA_DEV uint64_t operands4(uint64_t first, uint64_t second)
{
	return bswap32(static_cast<uint32_t>(first)) |
		place(bswap32(static_cast<uint32_t>(second)), 32, 32);
}

/* @out: the words at 48 and up. @plain_little_endian: for the plain forms only. */
NDA_DEV void encode_atomic(
	uint32_t opcode, const atomic &a, bool plain_little_endian, uint64_t out[4])
{
	bool little = is_plain(opcode) && plain_little_endian;

	out[1] = out[2] = out[3] = 0;
	if (opcode == op_masked_fetch_add4) {
		out[0] = operands4(a.value, a.boundary);
	} else if (opcode == op_masked_compare_swap4) {
		out[0] = operands4(a.value, a.compare);
		out[1] = operands4(a.swap_mask, a.compare_mask);
	} else {
		out[0] = operand8(a.value, little);
		if (opcode == op_masked_fetch_add)
			out[1] = operand8(a.boundary, little);
		if (!is_add(opcode))
			out[1] = operand8(a.compare, little);
		if (opcode == op_masked_compare_swap) {
			out[2] = operand8(a.swap_mask, little);
			out[3] = operand8(a.compare_mask, little);
		}
	}
}

/* The plain forms as what they do: no boundary, full masks. */
NDA_DEV atomic decode_atomic(
	uint32_t opcode, const uint64_t in[4], bool plain_little_endian)
{
	bool little = is_plain(opcode) && plain_little_endian;
	atomic a = {};

	if (atomic_bytes(opcode) == 4) {
		a.value = bswap32(bits(in[0], 0, 32));
		a.boundary = a.compare = bswap32(bits(in[0], 32, 32));
		a.swap_mask = bswap32(bits(in[1], 0, 32));
		a.compare_mask = bswap32(bits(in[1], 32, 32));
	} else {
		a.value = operand8(in[0], little);
		a.boundary = a.compare = operand8(in[1], little);
		a.swap_mask = operand8(in[2], little);
		a.compare_mask = operand8(in[3], little);
	}
	if (is_add(opcode))
		a.compare = a.swap_mask = a.compare_mask = 0;
	else
		a.boundary = 0;
	if (opcode == op_fetch_add)
		a.boundary = 0;
	if (opcode == op_compare_swap)
		a.swap_mask = a.compare_mask = ~uint64_t{0};
	return a;
}

/* What the atomic leaves where @former was; of a 4-byte one the low half counts. */
NDA_DEV uint64_t atomic_outcome(uint32_t opcode, const atomic &a, uint64_t former)
{
	/* Without the boundary bits no field can carry into the next; they are added by
	 * themselves, where their carry is lost. */
	if (is_add(opcode))
		return ((former & ~a.boundary) + (a.value & ~a.boundary)) ^
			((former ^ a.value) & a.boundary);
	if (((former ^ a.compare) & a.compare_mask) != 0)
		return former;
	return (former & ~a.swap_mask) | (a.value & a.swap_mask);
}

/* A 4-byte result is big-endian where the NIC leaves it, an 8-byte one native: to and from
 * what lies there. */
NDA_DEV uint32_t result4(uint32_t raw)
{
	return bswap32(raw);
}

/* ---- Making a WQE ---------------------------------------------------------------------*/

/* What a WRITE, READ or atomic is made of; the rest of a WQE is constant. */
struct request {
	uint8_t opcode;
	bool signalled;     /* wants a CQE */
	uint8_t fence_mode; /* 0: none */
	bool with_immediate;
	uint32_t immediate;
	uint32_t length; /* bytes, to max_length; of an atomic: atomic_bytes() */
	uint64_t remote_va;
	uint64_t local_va;
	uint32_t rkey;
	uint32_t lkey;
};

/* The WQE of a WRITE or READ with one local segment, or none if it is empty: that an empty
 * WRITE, which only an immediate value makes useful, has none is unverified. */
NDA_DEV wqe rdma_wqe(const request &r, uint32_t index)
{
	wqe f = {};

	f.opcode = r.opcode;
	f.immediate = r.with_immediate ? 1 : 0;
	f.segments = r.length == 0 ? 1 : 2;
	f.length = r.length;
	f.data = r.with_immediate ? r.immediate : 0;
	f.completion = r.signalled ? 1 : 0;
	f.fence_mode = r.fence_mode & 3;
	f.wqe_id = wqe_id_of(index);
	f.remote = {r.length, r.rkey, r.remote_va};
	if (r.length != 0)
		f.local = {r.length, r.lkey, r.local_va};
	return f;
}

NDA_DEV wqe atomic_wqe(
	const request &r, const atomic &a, bool plain_little_endian, uint32_t index)
{
	wqe f = rdma_wqe(r, index);

	f.inline_data = 1;
	f.segments = atomic_segments(r.opcode);
	f.length = atomic_length(r.opcode);
	encode_atomic(r.opcode, a, plain_little_endian, f.more);
	return f;
}

/* The field of a WQE that a strict reader objects to. */
enum class wqe_fault : uint8_t {
	none,
	not_valid, /* wqe_id is not the index's */
	opcode,
	flags,    /* checksum, solicited, inline, mask; an immediate that is no WRITE's */
	reserved, /* a reserved bit, the value of no immediate, or what follows the last
		     segment */
	segments, /* not as many as the opcode has */
	length,   /* segments and WQE differ, too long, or empty where it may not be */
};

NDA_DEV bool zero_from(const wqe &f, uint32_t first)
{
	uint64_t any = 0;

	for (uint32_t i = first; i < 10; i++)
		any |= f.more[i];
	return any == 0;
}

NDA_DEV wqe_fault check_atomic(const wqe &f)
{
	uint32_t size = atomic_bytes(f.opcode);
	/* Operands fill segments, but the add of 4 bytes and the plain one half of one. */
	uint32_t used = f.opcode == op_masked_compare_swap                     ? 4
		: f.opcode == op_masked_fetch_add4 || f.opcode == op_fetch_add ? 1
									       : 2;

	if (f.segments != atomic_segments(f.opcode))
		return wqe_fault::segments;
	if (f.length != atomic_length(f.opcode) || f.remote.length != size ||
		f.local.length != size)
		return wqe_fault::length;
	return zero_from(f, used) ? wqe_fault::none : wqe_fault::reserved;
}

NDA_DEV wqe_fault check_rdma(const wqe &f)
{
	uint32_t pieces = pieces_of(f);
	uint64_t total = 0;

	if (f.segments == 0 || pieces > max_pieces || (f.opcode == op_read && pieces != 1))
		return wqe_fault::segments;
	for (uint32_t i = 0; i < pieces; i++) {
		uint32_t length = piece(f, i).length;

		if (length == 0 || length > max_length)
			return wqe_fault::length;
		total += length;
	}
	if (total != f.length || f.remote.length != f.length || f.length > max_length ||
		(f.length == 0 && !f.immediate))
		return wqe_fault::length;
	if (pieces == 0 && (f.local.length | f.local.key | f.local.va) != 0)
		return wqe_fault::reserved;
	return zero_from(f, pieces < 1 ? 0 : (pieces - 1) * 2) ? wqe_fault::none
							       : wqe_fault::reserved;
}

/* Whether @w is exactly what is made here for some operation at @index: every constant,
 * reserved bit and repeated field is compared. wqe_fault::none if so. */
NDA_DEV wqe_fault check(const uint64_t w[wqe_words], uint32_t index)
{
	wqe f = decode(w);
	bool is_atomic = atomic_bytes(f.opcode) != 0;

	if (f.wqe_id != wqe_id_of(index))
		return wqe_fault::not_valid;
	if (f.opcode != op_write && f.opcode != op_read && !is_atomic)
		return wqe_fault::opcode;
	if (f.checksum || f.solicited || f.mask || (f.inline_data != 0) != is_atomic ||
		(f.immediate && f.opcode != op_write))
		return wqe_fault::flags;
	if (f.reserved2 || f.reserved12 || (f.data != 0 && !f.immediate))
		return wqe_fault::reserved;
	return is_atomic ? check_atomic(f) : check_rdma(f);
}

/* ---- Parts of a WQE for a caller that keeps them prepared ----------------------------
 * w[0] = control_word(opcode, segments, length), | control_immediate
 * w[1] = id_word(index, signalled, fence_mode), | id_inline, | immediate value
 * w[2] = segment_word(length, rkey)
 * w[3] = remote_va
 * w[4] = segment_word(length, lkey)
 * w[5] = local_va
 * further segments or operands; the rest 0 */
constexpr uint64_t control_immediate = uint64_t{1} << 8;

NDA_DEV uint64_t control_word(uint32_t opcode, uint32_t segments, uint64_t length)
{
	return opcode | uint64_t{segments} << 11 | length << 32;
}

constexpr uint64_t id_signalled = uint64_t{1} << 33;
constexpr uint64_t id_inline = uint64_t{1} << 34;

NDA_DEV uint64_t id_word(uint32_t index, bool signalled, uint32_t fence_mode)
{
	return (signalled ? id_signalled : 0) | place(fence_mode, 35, 2) |
		place(wqe_id_of(index), 44, 20);
}

/* The word of the next index: the field is the uppermost, so what it carries is lost. */
NDA_DEV uint64_t id_word_next(uint64_t word)
{
	return word + (uint64_t{units_per_wqe} << 44);
}

/* ---- Doorbells ------------------------------------------------------------------------*/

constexpr uint32_t pid_bits = 21;

struct doorbell {
	uint32_t next_pid; /* pid_bits: units up to head */
	uint16_t qp_id;
	uint32_t reserved; /* 27 bits: 0 */
};

NDA_DEV uint64_t encode(const doorbell &f)
{
	return place(f.next_pid, 0, pid_bits) | place(f.qp_id, 21, 16) |
		place(f.reserved, 37, 27);
}

NDA_DEV doorbell decode_doorbell(uint64_t v)
{
	doorbell f;

	f.next_pid = bits(v, 0, pid_bits);
	f.qp_id = static_cast<uint16_t>(bits(v, 21, 16));
	f.reserved = bits(v, 37, 27);
	return f;
}

/* The doorbell of a queue but for the head, as nda_queue.doorbell_template. */
NDA_DEV uint64_t doorbell_template(uint32_t qpn)
{
	return place(qpn, 21, 16);
}

NDA_DEV uint64_t doorbell_value(uint64_t template_word, uint32_t head)
{
	return template_word | place(uint64_t{head} * units_per_wqe, 0, pid_bits);
}

/* No send doorbell has this value, for WQEs are whole: a model may leave it in a doorbell
 * word that it has consumed. */
constexpr uint64_t doorbell_idle = 1;

/* What the NIC is to do besides taking the consumer index. The sources disagree: KEEP is
 * what the Linux driver writes for this NIC, FIRED what the shared-memory library does. */
enum cq_state : uint8_t {
	cq_fired = 0,
	cq_keep = 1,
	cq_arm_next = 2,
	cq_arm_solicited = 3,
};

constexpr uint32_t cq_index_bits = 23;

struct cq_doorbell {
	uint32_t next_cid; /* cq_index_bits: CQEs consumed */
	uint16_t cq_id;
	uint8_t state;     /* 2 bits, enum cq_state */
	uint32_t reserved; /* 23 bits: 0 */
};

NDA_DEV uint64_t encode(const cq_doorbell &f)
{
	return place(f.next_cid, 0, cq_index_bits) | place(f.cq_id, 23, 16) |
		place(f.state, 39, 2) | place(f.reserved, 41, 23);
}

NDA_DEV cq_doorbell decode_cq_doorbell(uint64_t v)
{
	cq_doorbell f;

	f.next_cid = bits(v, 0, cq_index_bits);
	f.cq_id = static_cast<uint16_t>(bits(v, 23, 16));
	f.state = static_cast<uint8_t>(bits(v, 39, 2));
	f.reserved = bits(v, 41, 23);
	return f;
}

NDA_DEV uint64_t cq_doorbell_template(uint32_t cqn, uint32_t state)
{
	return place(cqn, 23, 16) | place(state, 39, 2);
}

NDA_DEV uint64_t cq_doorbell_value(uint64_t template_word, uint32_t ci)
{
	return template_word | place(ci, 0, cq_index_bits);
}

/* No CQ doorbell has this value, which has reserved bits: a model may leave it in the
 * register of a CQ that was never used. */
constexpr uint64_t cq_doorbell_idle = ~uint64_t{0};

/* ---- Completion -----------------------------------------------------------------------*/

/* Every field of the 32 bytes: encode(decode_cqe(w)) == w. */
struct cqe {
	uint8_t error;          /* enum error_code */
	uint16_t qp_id;         /* 15 bits */
	uint8_t reserved2;      /* 1 bit: 0 */
	uint8_t solicited;      /* 1 bit: 0 */
	uint8_t has_pph;        /* 1 bit: 0 */
	uint8_t type;           /* 1 bit: 0 */
	uint8_t with_immediate; /* 1 bit: 0, of a send queue */
	uint8_t checksum_error; /* 4 bits: 0 */
	uint32_t immediate;
	uint32_t length; /* bytes */
	uint32_t vni;
	uint64_t timestamp;
	uint8_t opcode;      /* the WQE's */
	uint8_t reserved25;  /* 4 bits: 0 */
	uint32_t wqe_id;     /* 20 bits: the WQE's */
	uint32_t reserved28; /* 31 bits: 0 */
	uint8_t owner;       /* 1 bit */
};

NDA_DEV void encode(const cqe &f, uint64_t out[cqe_words])
{
	out[0] = place(f.error, 0, 8) | place(f.qp_id, 8, 15) | place(f.reserved2, 23, 1) |
		place(f.solicited, 24, 1) | place(f.has_pph, 25, 1) | place(f.type, 26, 1) |
		place(f.with_immediate, 27, 1) | place(f.checksum_error, 28, 4) |
		place(f.immediate, 32, 32);
	out[1] = f.length | place(f.vni, 32, 32);
	out[2] = f.timestamp;
	out[3] = place(f.opcode, 0, 8) | place(f.reserved25, 8, 4) |
		place(f.wqe_id, 12, 20) | place(f.reserved28, 32, 31) |
		place(f.owner, 63, 1);
}

NDA_DEV cqe decode_cqe(const uint64_t in[cqe_words])
{
	cqe f;

	f.error = static_cast<uint8_t>(bits(in[0], 0, 8));
	f.qp_id = static_cast<uint16_t>(bits(in[0], 8, 15));
	f.reserved2 = static_cast<uint8_t>(bits(in[0], 23, 1));
	f.solicited = static_cast<uint8_t>(bits(in[0], 24, 1));
	f.has_pph = static_cast<uint8_t>(bits(in[0], 25, 1));
	f.type = static_cast<uint8_t>(bits(in[0], 26, 1));
	f.with_immediate = static_cast<uint8_t>(bits(in[0], 27, 1));
	f.checksum_error = static_cast<uint8_t>(bits(in[0], 28, 4));
	f.immediate = bits(in[0], 32, 32);
	f.length = bits(in[1], 0, 32);
	f.vni = bits(in[1], 32, 32);
	f.timestamp = in[2];
	f.opcode = static_cast<uint8_t>(bits(in[3], 0, 8));
	f.reserved25 = static_cast<uint8_t>(bits(in[3], 8, 4));
	f.wqe_id = bits(in[3], 12, 20);
	f.reserved28 = bits(in[3], 32, 31);
	f.owner = static_cast<uint8_t>(bits(in[3], 63, 1));
	return f;
}

/* The owner bit of the CQE of @index: 0 in the first lap, so that a ring of zeros would
 * read as successes. */
NDA_DEV constexpr bool owner_bit(uint32_t index, uint32_t depth)
{
	return (index & depth) != 0;
}

/* What an empty ring is filled with before its first use: whoever gives the memory does it,
 * for the NIC's software leaves rings in accelerator memory alone. */
constexpr uint8_t cqe_ring_fill = 0xff;

/* Whether a CQE is there, by its last word at consumer index @ci. */
NDA_DEV bool cqe_ready(uint64_t word3, uint32_t ci, uint32_t depth)
{
	return (word3 >> 63 != 0) == owner_bit(ci, depth);
}

/* Whether the QP that a CQE names is @qpn. Of an untouched ring of zeros it is not, unless
 * the low 15 bits of @qpn are 0. */
NDA_DEV bool cqe_of_qp(uint64_t word0, uint32_t qpn)
{
	return bits(word0, 8, 15) == (qpn & 0x7fff);
}

NDA_DEV uint8_t cqe_error(uint64_t word0)
{
	return static_cast<uint8_t>(word0);
}

/* The index of a CQE's WQE, modulo wqe_index_span. */
constexpr uint32_t wqe_index_span = 1 << 17;
NDA_DEV uint32_t cqe_wqe_index(uint64_t word3)
{
	return bits(word3, 15, 17);
}

enum error_code : uint8_t {
	error_none = 0x00,
	error_flushed_in_queue = 0x1f,
	error_configuration = 0x80, /* to 0x84 */
	error_atomic_va = 0x89,
	error_wqe_length = 0x9f,
	error_nak_sequence = 0xa0,
	error_retransmit = 0xa2,
	error_rnr = 0xa3,
	error_nak_invalid = 0xa4,
	error_nak_access = 0xa5,
	error_nak_operation = 0xa6,
	error_local_mr = 0xa7,
	error_read_length = 0xa8,
	error_response_opcode = 0xaa,
	error_wqe_format = 0xab,
	error_wqe_dma = 0xac,
	error_wqe_status = 0xad,
	error_response_timeout = 0xae,
	error_mtt_dma = 0xbf,
	error_remote_mr = 0xd4, /* to 0xd5 */
	error_local_mr_response = 0xd6,
	error_access_type = 0xd7, /* to 0xd8 */
	error_flushed = 0xff,
};

/* The status that an error code stands for; NDA_OK for error_none alone. A table would be
 * static data: the codes from error_wqe_length to error_response_timeout are the digits of
 * one number. */
NDA_DEV enum nda_status status_of(uint8_t error)
{
	constexpr uint64_t middle = uint64_t{NDA_LOCAL_LENGTH} << 0 |
		uint64_t{NDA_BAD_RESPONSE} << 4 | uint64_t{NDA_GENERAL_ERROR} << 8 |
		uint64_t{NDA_RETRY_EXCEEDED} << 12 |
		uint64_t{NDA_RNR_RETRY_EXCEEDED} << 16 |
		uint64_t{NDA_REMOTE_INVALID} << 20 | uint64_t{NDA_REMOTE_ACCESS} << 24 |
		uint64_t{NDA_REMOTE_OPERATION} << 28 |
		uint64_t{NDA_LOCAL_PROTECTION} << 32 | uint64_t{NDA_BAD_RESPONSE} << 36 |
		uint64_t{NDA_GENERAL_ERROR} << 40 | uint64_t{NDA_BAD_RESPONSE} << 44 |
		uint64_t{NDA_LOCAL_QP} << 48 | uint64_t{NDA_LOCAL_QP} << 52 |
		uint64_t{NDA_LOCAL_QP} << 56 | uint64_t{NDA_RETRY_EXCEEDED} << 60;

	if (error >= error_wqe_length && error <= error_response_timeout)
		return static_cast<enum nda_status>(
			middle >> ((error - error_wqe_length) * 4) & 15);
	if (error == error_none)
		return NDA_OK;
	if (error == error_flushed_in_queue || error == error_flushed)
		return NDA_FLUSHED;
	if ((error >= error_configuration && error <= error_configuration + 4) ||
		error == error_mtt_dma)
		return NDA_LOCAL_QP;
	if (error == error_atomic_va)
		return NDA_REMOTE_INVALID;
	if (error == error_local_mr_response)
		return NDA_LOCAL_PROTECTION;
	return error >= error_remote_mr && error <= error_access_type + 1
		? NDA_REMOTE_ACCESS
		: NDA_GENERAL_ERROR;
}

} // namespace nda::hw::xscale

#endif
