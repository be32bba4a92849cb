/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue formats of UDMA, the URMA engine of Ascend 950: send queue entry (SQE) of a jetty,
 * its doorbell, the completion (JFC) entry and the consumer record. Pure functions on
 * values: no state, no memory access. The data plane encodes with them, the device model
 * decodes.
 *
 * Source: layouts as used by the public collective and shared-memory libraries for Ascend
 * and by the user-space UDMA provider of UMDK. None was checked on silicon; what these
 * sources contradict or leave open is marked "unverified" and is a parameter.
 *
 * Everything is little-endian. The ring consists of basic blocks (BBs) of 64 bytes; an SQE
 * takes one to four, which go on at the ring's start behind its end. Indices count BBs. An
 * SQE is handled as native 64-bit words in memory order, eight to the BB:
 *
 *   words 0 to 5   control; its word 0 has the owner bit
 *   then           by opcode: notify context (4 words), immediate (2 words), or nothing
 *   then           scatter/gather entries of 2 words, or inline data
 *   words 8 ff.    of an atomic: the operands
 *   the rest       of the last BB: 0
 */
#ifndef NDA_HW_UDMA_H
#define NDA_HW_UDMA_H

#include <stddef.h>
#include <stdint.h>

#include <nda/hw/defs.h>
#include <nda/status.h>

namespace nda::hw::udma {

constexpr uint32_t bb_bytes = 64;
constexpr uint32_t bb_words = 8;
constexpr uint32_t max_bbs = 4;
constexpr uint32_t max_words = max_bbs * bb_words;
constexpr uint32_t control_words = 6;
constexpr uint32_t control_bytes = 48;
constexpr uint32_t notify_words = 4;
constexpr uint32_t immediate_words = 2;
constexpr uint32_t sge_words = 2;
constexpr uint32_t operand_word = 8; /* of an atomic: first word of its second BB */
constexpr uint32_t cqe_bytes = 64;
constexpr uint32_t cqe_words = 8;
/* Of one SQE. Documented, and split above by every sender, though the length field of an
 * entry has 32 bits. */
constexpr uint32_t max_length = 1u << 28;
constexpr uint32_t max_read_sges = 6;
constexpr uint32_t max_inline_write = 208; /* if the device allows as much */
constexpr uint32_t min_depth = 64;         /* BBs */
constexpr uint32_t max_depth = 32768;      /* BBs; a completion names one by 16 bits */
constexpr uint32_t token_id_bits = 20;

enum opcode : uint8_t {
	op_send = 0x00,
	op_send_immediate = 0x01,
	op_send_invalidate = 0x02,
	op_write = 0x03,
	op_write_immediate = 0x04,
	op_write_notify = 0x05,
	op_read = 0x06,
	op_compare_swap = 0x07,
	op_fetch_add = 0x0b,
	op_nop = 0x11,
};

/* What an SQE may overtake. "A strong SQE does not overtake earlier relaxed ones; relaxed
 * is ordered against a later strong one"; none is ordered against nothing. */
enum place_order : uint8_t {
	place_none = 0,
	place_relaxed = 1,
	place_strong = 2,
};

enum jetty_type : uint8_t {
	jetty_type_jetty = 1, /* what every table publishes; 2 bits */
};

enum reduce_op : uint8_t {
	reduce_max = 0x8,
	reduce_min = 0x9,
	reduce_add = 0xa,
	reduce_equal = 0xb,
};

enum reduce_type : uint8_t {
	reduce_float32 = 0x7,
	reduce_last = 0x9,
};

/* ---- Indices -------------------------------------------------------------------------
 * Free-running u32; head and tail count BBs, the consumer index counts completions. Depths
 * are powers of two. */

/* The owner bit of what is written at @index: 1 in the first lap. Of an SQE unverified:
 * senders that leave it 0 are known, so that where a doorbell is rung the hardware does not
 * seem to look at it. */
NDA_DEV constexpr bool owner_bit(uint32_t index, uint32_t depth)
{
	return (index & depth) == 0;
}

/* ---- SQE control ----------------------------------------------------------------------
 * Every field of the 48 bytes, so that decode() loses nothing: encode(decode(w)) == w. */
struct control {
	uint16_t bb_index;   /* 0: only of a direct WQE */
	uint8_t place_order; /* 2 bits, enum place_order */
	uint8_t comp_order;  /* 1 bit: its completion comes after those of earlier SQEs */
	uint8_t fence;       /* 1 bit: starts after earlier READs and atomics are done */
	uint8_t solicited;   /* 1 bit: 0 */
	uint8_t completion;  /* 1 bit: wants a CQE */
	uint8_t inline_data; /* 1 bit */
	uint8_t udf;         /* 1 bit: word 4's upper half says how to reduce */
	uint8_t reserved24;  /* 3 bits: 0 */
	uint8_t nf;          /* 1 bit: 0 */
	uint8_t token_en;    /* 1 bit: token values are checked */
	uint8_t jetty_type;  /* 2 bits, enum jetty_type */
	uint8_t owner;       /* 1 bit */
	uint8_t target_hint;
	uint8_t opcode;
	uint8_t reserved48;     /* 6 bits: 0 */
	uint16_t inline_length; /* 10 bits, bytes */
	uint32_t tp_id;         /* 24 bits: the transport to the peer */
	uint8_t sge_count;
	uint32_t token_id;   /* 20 bits: the segment's, or the peer's jetty */
	uint16_t write_len;  /* 10 bits: 0 */
	uint8_t reserved126; /* 2 bits: 0 */
	uint64_t eid[2];     /* the peer's EID, in the hardware's byte order */
	uint32_t token_value;
	uint8_t udf_type;     /* 8 bits: 0, reduce */
	uint8_t reduce_type;  /* 4 bits, enum reduce_type */
	uint8_t reduce_op;    /* 4 bits, enum reduce_op */
	uint16_t reserved304; /* 0 */
	uint64_t remote_va;
};

NDA_DEV void encode(const control &f, uint64_t out[control_words])
{
	out[0] = place(f.bb_index, 0, 16) | place(f.place_order, 16, 2) |
		place(f.comp_order, 18, 1) | place(f.fence, 19, 1) |
		place(f.solicited, 20, 1) | place(f.completion, 21, 1) |
		place(f.inline_data, 22, 1) | place(f.udf, 23, 1) |
		place(f.reserved24, 24, 3) | place(f.nf, 27, 1) | place(f.token_en, 28, 1) |
		place(f.jetty_type, 29, 2) | place(f.owner, 31, 1) |
		place(f.target_hint, 32, 8) | place(f.opcode, 40, 8) |
		place(f.reserved48, 48, 6) | place(f.inline_length, 54, 10);
	out[1] = place(f.tp_id, 0, 24) | place(f.sge_count, 24, 8) |
		place(f.token_id, 32, 20) | place(f.write_len, 52, 10) |
		place(f.reserved126, 62, 2);
	out[2] = f.eid[0];
	out[3] = f.eid[1];
	out[4] = place(f.token_value, 0, 32) | place(f.udf_type, 32, 8) |
		place(f.reduce_type, 40, 4) | place(f.reduce_op, 44, 4) |
		place(f.reserved304, 48, 16);
	out[5] = f.remote_va;
}

NDA_DEV control decode(const uint64_t in[control_words])
{
	control f;

	f.bb_index = static_cast<uint16_t>(bits(in[0], 0, 16));
	f.place_order = static_cast<uint8_t>(bits(in[0], 16, 2));
	f.comp_order = static_cast<uint8_t>(bits(in[0], 18, 1));
	f.fence = static_cast<uint8_t>(bits(in[0], 19, 1));
	f.solicited = static_cast<uint8_t>(bits(in[0], 20, 1));
	f.completion = static_cast<uint8_t>(bits(in[0], 21, 1));
	f.inline_data = static_cast<uint8_t>(bits(in[0], 22, 1));
	f.udf = static_cast<uint8_t>(bits(in[0], 23, 1));
	f.reserved24 = static_cast<uint8_t>(bits(in[0], 24, 3));
	f.nf = static_cast<uint8_t>(bits(in[0], 27, 1));
	f.token_en = static_cast<uint8_t>(bits(in[0], 28, 1));
	f.jetty_type = static_cast<uint8_t>(bits(in[0], 29, 2));
	f.owner = static_cast<uint8_t>(bits(in[0], 31, 1));
	f.target_hint = static_cast<uint8_t>(bits(in[0], 32, 8));
	f.opcode = static_cast<uint8_t>(bits(in[0], 40, 8));
	f.reserved48 = static_cast<uint8_t>(bits(in[0], 48, 6));
	f.inline_length = static_cast<uint16_t>(bits(in[0], 54, 10));
	f.tp_id = bits(in[1], 0, 24);
	f.sge_count = static_cast<uint8_t>(bits(in[1], 24, 8));
	f.token_id = bits(in[1], 32, 20);
	f.write_len = static_cast<uint16_t>(bits(in[1], 52, 10));
	f.reserved126 = static_cast<uint8_t>(bits(in[1], 62, 2));
	f.eid[0] = in[2];
	f.eid[1] = in[3];
	f.token_value = bits(in[4], 0, 32);
	f.udf_type = static_cast<uint8_t>(bits(in[4], 32, 8));
	f.reduce_type = static_cast<uint8_t>(bits(in[4], 40, 4));
	f.reduce_op = static_cast<uint8_t>(bits(in[4], 44, 4));
	f.reserved304 = static_cast<uint16_t>(bits(in[4], 48, 16));
	f.remote_va = in[5];
	return f;
}

/* ---- Parts of an SQE for a caller that puts one together word by word -----------------
 * w[0] = template_word() | order_bits() | flags below | opcode_bits() | inline_bits()
 * w[1] = target_word()
 * w[2], w[3] = EID as published
 * w[4] = token value | reduce_bits()
 * w[5] = remote_va */

constexpr uint64_t word0_fence = uint64_t{1} << 19;
constexpr uint64_t word0_completion = uint64_t{1} << 21;
constexpr uint64_t word0_inline = uint64_t{1} << 22;
constexpr uint64_t word0_udf = uint64_t{1} << 23;
constexpr uint64_t word0_owner = uint64_t{1} << 31;

/* What the first word has of the peer. */
NDA_DEV constexpr uint64_t template_word(
	bool token_en, uint8_t jetty_type_, uint8_t target_hint)
{
	return place(token_en ? 1 : 0, 28, 1) | place(jetty_type_, 29, 2) |
		place(target_hint, 32, 8);
}

/* How an SQE is ordered, as a queue's parameter: bits 1:0 enum place_order, bit 2
 * comp_order, bit 3 fence. */
constexpr uint8_t order_completions = 4;
constexpr uint8_t order_fence = 8;

NDA_DEV constexpr uint64_t order_bits(uint8_t order)
{
	return place(order, 16, 4);
}

NDA_DEV constexpr uint64_t opcode_bits(uint8_t op)
{
	return place(op, 40, 8);
}

/* The first word of another opcode from that of a WRITE. */
NDA_DEV constexpr uint64_t word0_as(uint8_t op, uint64_t of_write)
{
	return of_write ^ opcode_bits(static_cast<uint8_t>(op_write ^ op));
}

/* @bytes of inline data, at most max_inline_write. */
NDA_DEV constexpr uint64_t inline_bits(uint32_t bytes)
{
	return word0_inline | place(bytes, 54, 10);
}

NDA_DEV constexpr uint64_t target_word(
	uint32_t tp_id, uint32_t token_id, uint32_t sge_count)
{
	return place(tp_id, 0, 24) | place(sge_count, 24, 8) | place(token_id, 32, 20);
}

/* @word with another token id and number of entries. */
NDA_DEV constexpr uint64_t target_word_as(
	uint64_t word, uint32_t token_id, uint32_t sge_count)
{
	return (word & 0xffffff) | place(sge_count, 24, 8) | place(token_id, 32, 20);
}

NDA_DEV constexpr uint64_t reduce_bits(uint8_t op, uint8_t type)
{
	return place(type, 40, 4) | place(op, 44, 4);
}

/* The first of an entry's two words; the second is the address. The token id is that of an
 * own segment: unverified, known senders write 0. */
NDA_DEV constexpr uint64_t sge_word(uint32_t length, uint32_t token_id)
{
	return place(length, 0, 32) | place(token_id, 32, 20);
}

/* The first of a notify context's four words; then the address, the 8 bytes written there
 * after the payload, and 0. */
NDA_DEV constexpr uint64_t notify_word(uint32_t token_id, uint32_t token_value)
{
	return place(token_id, 0, 20) | place(token_value, 32, 32);
}

/* Whether token ids fit; a wider one would name another segment. */
NDA_DEV constexpr bool token_id_fits(uint32_t id)
{
	return id >> token_id_bits == 0;
}

/* Bytes before the first entry or inline byte. A sum, for a chain of conditions may become
 * a table, which would be static data. */
NDA_DEV constexpr uint32_t header_bytes(uint8_t op)
{
	return control_bytes + (op == op_write_immediate ? immediate_words * 8 : 0) +
		(op == op_write_notify ? notify_words * 8 : 0);
}

NDA_DEV constexpr uint32_t bbs_of_bytes(uint32_t bytes)
{
	return (bytes + bb_bytes - 1) / bb_bytes;
}

/* BBs of an SQE that is no atomic. */
NDA_DEV constexpr uint32_t bbs_of_sges(uint8_t op, uint32_t sge_count)
{
	return bbs_of_bytes(header_bytes(op) + sge_count * sge_words * 8);
}
NDA_DEV constexpr uint32_t bbs_of_inline(uint8_t op, uint32_t bytes)
{
	return bbs_of_bytes(header_bytes(op) + bytes);
}

constexpr uint32_t atomic_bbs = 2; /* control and entry, operands */

NDA_DEV constexpr bool atomic(uint8_t op)
{
	return op == op_compare_swap || op == op_fetch_add;
}

/* What four BBs have room for, less for a READ. */
NDA_DEV constexpr uint32_t max_sges(uint8_t op)
{
	return op == op_read ? max_read_sges
			     : (max_bbs * bb_bytes - header_bytes(op)) / (sge_words * 8);
}

/* Most inline bytes of an SQE where the queue's limit is @queue_limit: the device's own is
 * not known here. */
NDA_DEV constexpr uint32_t max_inline(uint8_t op, uint32_t queue_limit)
{
	uint32_t limit = max_bbs * bb_bytes - header_bytes(op);

	return limit < queue_limit ? limit : queue_limit;
}

/* BBs of the SQE whose control @f is; meant for one that check() takes. */
NDA_DEV uint32_t bbs_of(const control &f)
{
	if (atomic(f.opcode))
		return atomic_bbs;
	return f.inline_data ? bbs_of_inline(f.opcode, f.inline_length)
			     : bbs_of_sges(f.opcode, f.sge_count);
}

/* ---- What a strict reader makes of an SQE ---------------------------------------------
 */

struct sge {
	uint32_t length;   /* bytes */
	uint32_t token_id; /* 20 bits */
	uint64_t va;
};

NDA_DEV sge decode_sge(const uint64_t in[sge_words])
{
	sge f;

	f.length = bits(in[0], 0, 32);
	f.token_id = bits(in[0], 32, 20);
	f.va = in[1];
	return f;
}

struct notify {
	uint32_t token_id; /* 20 bits */
	uint32_t token_value;
	uint64_t va;
	uint64_t data;
};

NDA_DEV notify decode_notify(const uint64_t in[notify_words])
{
	notify f;

	f.token_id = bits(in[0], 0, 20);
	f.token_value = bits(in[0], 32, 32);
	f.va = in[1];
	f.data = in[2];
	return f;
}

/* Where the entries or the inline data begin, in words. */
NDA_DEV constexpr uint32_t data_word(uint8_t op)
{
	return header_bytes(op) / 8;
}

/* What an atomic of @size bytes has at byte @at of its operands. */
NDA_DEV uint64_t operand(const uint64_t w[max_words], uint32_t at, uint32_t size)
{
	uint64_t word = w[operand_word + at / 8] >> at % 8 * 8;

	return size == 4 ? bits(word, 0, 32) : word;
}

/* The field of an SQE that a strict reader objects to. */
enum class sqe_fault : uint8_t {
	none,
	owner,     /* not what the queue's rule says for this index */
	reserved,  /* a reserved bit, or a field that no such SQE has */
	opcode,    /* one that is not read here */
	flags,     /* solicited, nf, place order 3, udf or inline where it cannot be */
	reduce,    /* unknown operation or type */
	target,    /* jetty type */
	sge_count, /* none, or more than the opcode takes */
	length,    /* 0, above max_length, not an atomic's, more inline than there may be */
	stale,     /* bytes behind the last field are not 0 */
};

/* How SQEs of a queue look, beyond what all have in common. */
struct sqe_rules {
	bool owner;           /* owner_bit() is set; else always 0 */
	uint32_t inline_most; /* bytes */
};

/* Whether w[from] to w[to - 1] are 0. */
NDA_DEV bool all_zero(const uint64_t w[max_words], uint32_t from, uint32_t to)
{
	uint64_t any = 0;

	for (uint32_t i = from; i < to; i++)
		any |= w[i];
	return any == 0;
}

/* check() of the control alone, by which bbs_of() then says how much more there is. */
NDA_DEV sqe_fault check_control(
	const control &f, uint32_t index, uint32_t depth, const sqe_rules &rules)
{
	bool write = f.opcode == op_write || f.opcode == op_write_immediate ||
		f.opcode == op_write_notify;
	bool moves = write || f.opcode == op_read;

	if (f.owner != (rules.owner && owner_bit(index, depth) ? 1 : 0))
		return sqe_fault::owner;
	if (!moves && !atomic(f.opcode) && f.opcode != op_nop)
		return sqe_fault::opcode;
	if (f.bb_index || f.reserved24 || f.reserved48 || f.write_len || f.reserved126 ||
		f.reserved304 || f.udf_type || (!f.inline_data && f.inline_length) ||
		(!f.udf && (f.reduce_op || f.reduce_type)))
		return sqe_fault::reserved;
	if (f.solicited || f.nf || f.place_order > place_strong ||
		(f.udf && (!moves || f.opcode == op_write_immediate)) ||
		(f.inline_data && (!write || f.udf)))
		return sqe_fault::flags;
	if (f.udf &&
		(f.reduce_op < reduce_max || f.reduce_op > reduce_equal ||
			f.reduce_type > reduce_last))
		return sqe_fault::reduce;
	if (f.jetty_type != jetty_type_jetty)
		return sqe_fault::target;
	if (f.opcode == op_nop || f.inline_data) {
		if (f.sge_count != 0)
			return sqe_fault::sge_count;
		return f.inline_data &&
				(f.inline_length == 0 ||
					f.inline_length >
						max_inline(f.opcode, rules.inline_most))
			? sqe_fault::length
			: sqe_fault::none;
	}
	/* A WRITE with an immediate may carry no bytes. */
	if (f.sge_count > (moves ? max_sges(f.opcode) : 1) ||
		(f.sge_count == 0 && f.opcode != op_write_immediate))
		return sqe_fault::sge_count;
	return sqe_fault::none;
}

/* The bytes of all entries of an SQE whose control passed check_control(). */
NDA_DEV uint64_t total_length(const control &f, const uint64_t w[max_words])
{
	uint64_t length = f.inline_length;

	for (uint32_t i = 0; i < f.sge_count; i++)
		length += bits(w[data_word(f.opcode) + i * sge_words], 0, 32);
	return length;
}

/* Whether the SQE in w[0] on, of bbs_of() blocks, is one that a sender of nda makes at
 * @index: every constant and reserved bit is compared. sqe_fault::none if so. */
NDA_DEV sqe_fault check(
	const uint64_t w[max_words], uint32_t index, uint32_t depth, const sqe_rules &rules)
{
	control f = decode(w);
	sqe_fault fault = check_control(f, index, depth, rules);

	if (fault != sqe_fault::none)
		return fault;

	uint32_t at = data_word(f.opcode);
	uint64_t length = total_length(f, w);
	uint32_t end = at + f.sge_count * sge_words;
	/* A notification alone, or an immediate, may come with no bytes. */
	bool may_be_empty = f.opcode == op_write_notify || f.opcode == op_write_immediate ||
		f.opcode == op_nop;

	for (uint32_t i = at; i < end; i += sge_words)
		if (w[i] >> 52 != 0)
			return sqe_fault::reserved;
	if (f.opcode == op_write_notify && (bits(w[control_words], 20, 12) || w[9] != 0))
		return sqe_fault::reserved;
	if (f.opcode == op_write_immediate &&
		(bits(w[control_words], 32, 32) || bits(w[7], 20, 12)))
		return sqe_fault::reserved;
	if (length > max_length || (length == 0 && !may_be_empty))
		return sqe_fault::length;
	if (f.inline_data) {
		uint32_t bytes = at * 8 + f.inline_length;

		end = (bytes + 7) / 8;
		if (bytes % 8 != 0 && w[end - 1] >> bytes % 8 * 8 != 0)
			return sqe_fault::stale;
	}
	if (atomic(f.opcode)) {
		bool swap = f.opcode == op_compare_swap;
		uint32_t bytes = static_cast<uint32_t>(length) * (swap ? 2 : 1);

		if (length != 4 && length != 8 && !(swap && length == 16))
			return sqe_fault::length;
		end = operand_word + (bytes + 7) / 8;
		if (bytes == 4 && w[operand_word] >> 32 != 0)
			return sqe_fault::stale;
	}
	return all_zero(w, end, bbs_of(f) * bb_words) ? sqe_fault::none : sqe_fault::stale;
}

/* ---- Doorbells ------------------------------------------------------------------------
 * The send doorbell is the head, 32 bits, written to the register. */

/* The consumer record's u32 for @ci. @mask: how many bits of it are the index; 22 bits in
 * one source, 24 in others, the same for a CQ of up to 2^21 entries; unverified. */
constexpr uint32_t ci_bits_least = 22;
constexpr uint32_t ci_mask_22 = 0x3fffff;
constexpr uint32_t ci_mask_24 = 0xffffff;

NDA_DEV constexpr uint32_t cq_record(uint32_t ci, uint32_t mask)
{
	return ci & mask;
}

/* ---- Completion -----------------------------------------------------------------------
 */

/* Every field of the 64 bytes: encode(decode_cqe(w)) == w. */
struct cqe {
	uint8_t receive;     /* 1 bit: 0, of the send side */
	uint8_t is_jetty;    /* 1 bit: 1 */
	uint8_t owner;       /* 1 bit */
	uint8_t inline_data; /* 1 bit: 0 */
	uint8_t opcode;      /* 3 bits: of a receive */
	uint8_t flush_done;  /* 1 bit: with status flushed, the end of what is flushed */
	uint8_t reserved8;   /* 0 */
	uint8_t substatus;
	uint8_t status;       /* enum status */
	uint16_t entry_index; /* of a BB of the SQE that is done, low bits */
	uint32_t local_id;    /* 20 bits: the own jetty */
	uint32_t remote_id;   /* 20 bits: the peer's */
	uint8_t reserved88;   /* 0 */
	uint32_t tp_id;       /* 24 bits */
	uint8_t reserved120;  /* 0 */
	uint32_t byte_count;
	uint64_t user_data; /* as given when the queue was made */
	uint64_t eid[2];    /* the peer's */
	uint64_t data;
	uint32_t inline_bytes[3];
};

NDA_DEV void encode(const cqe &f, uint64_t out[cqe_words])
{
	out[0] = place(f.receive, 0, 1) | place(f.is_jetty, 1, 1) | place(f.owner, 2, 1) |
		place(f.inline_data, 3, 1) | place(f.opcode, 4, 3) |
		place(f.flush_done, 7, 1) | place(f.reserved8, 8, 8) |
		place(f.substatus, 16, 8) | place(f.status, 24, 8) |
		place(f.entry_index, 32, 16) | place(f.local_id, 48, 16);
	out[1] = place(f.local_id >> 16, 0, 4) | place(f.remote_id, 4, 20) |
		place(f.reserved88, 24, 8) | place(f.tp_id, 32, 24) |
		place(f.reserved120, 56, 8);
	out[2] = place(f.byte_count, 0, 32) | place(f.user_data, 32, 32);
	out[3] = place(f.user_data >> 32, 0, 32) | place(f.eid[0], 32, 32);
	out[4] = place(f.eid[0] >> 32, 0, 32) | place(f.eid[1], 32, 32);
	out[5] = place(f.eid[1] >> 32, 0, 32) | place(f.data, 32, 32);
	out[6] = place(f.data >> 32, 0, 32) | place(f.inline_bytes[0], 32, 32);
	out[7] = place(f.inline_bytes[1], 0, 32) | place(f.inline_bytes[2], 32, 32);
}

NDA_DEV cqe decode_cqe(const uint64_t in[cqe_words])
{
	cqe f;

	f.receive = static_cast<uint8_t>(bits(in[0], 0, 1));
	f.is_jetty = static_cast<uint8_t>(bits(in[0], 1, 1));
	f.owner = static_cast<uint8_t>(bits(in[0], 2, 1));
	f.inline_data = static_cast<uint8_t>(bits(in[0], 3, 1));
	f.opcode = static_cast<uint8_t>(bits(in[0], 4, 3));
	f.flush_done = static_cast<uint8_t>(bits(in[0], 7, 1));
	f.reserved8 = static_cast<uint8_t>(bits(in[0], 8, 8));
	f.substatus = static_cast<uint8_t>(bits(in[0], 16, 8));
	f.status = static_cast<uint8_t>(bits(in[0], 24, 8));
	f.entry_index = static_cast<uint16_t>(bits(in[0], 32, 16));
	f.local_id = bits(in[0], 48, 16) | bits(in[1], 0, 4) << 16;
	f.remote_id = bits(in[1], 4, 20);
	f.reserved88 = static_cast<uint8_t>(bits(in[1], 24, 8));
	f.tp_id = bits(in[1], 32, 24);
	f.reserved120 = static_cast<uint8_t>(bits(in[1], 56, 8));
	f.byte_count = bits(in[2], 0, 32);
	f.user_data = in[2] >> 32 | in[3] << 32;
	f.eid[0] = in[3] >> 32 | in[4] << 32;
	f.eid[1] = in[4] >> 32 | in[5] << 32;
	f.data = in[5] >> 32 | in[6] << 32;
	f.inline_bytes[0] = bits(in[6], 32, 32);
	f.inline_bytes[1] = bits(in[7], 0, 32);
	f.inline_bytes[2] = bits(in[7], 32, 32);
	return f;
}

/* What a reader needs is in the first word; take it from one 64-bit acquire load and decide
 * once. In a reader's loop over one lap a completion is a success exactly if the bits of
 * cqe_look_mask are the lap's owner bit, cqe_owner or 0. */
constexpr uint64_t cqe_owner = 1u << 2;
constexpr uint64_t cqe_receive = 1u << 0;
constexpr uint64_t cqe_look_mask = 0xffff0000u | 1u << 7 | cqe_owner | cqe_receive;

/* Whether there is a completion at consumer index @ci. */
NDA_DEV constexpr bool cqe_ready(uint64_t word, uint32_t ci, uint32_t depth)
{
	return ((word & cqe_owner) != 0) == owner_bit(ci, depth);
}
NDA_DEV constexpr bool cqe_good(uint64_t word)
{
	return (word & cqe_look_mask & ~cqe_owner) == 0;
}
/* Not of one SQE: all that is posted is over, and no other completion follows. */
NDA_DEV constexpr bool cqe_flush_done(uint64_t word)
{
	return (word >> 7 & 1) != 0;
}
NDA_DEV constexpr uint16_t cqe_entry_index(uint64_t word)
{
	return static_cast<uint16_t>(word >> 32);
}
NDA_DEV constexpr uint8_t cqe_status(uint64_t word)
{
	return static_cast<uint8_t>(word >> 24);
}
NDA_DEV constexpr uint8_t cqe_substatus(uint64_t word)
{
	return static_cast<uint8_t>(word >> 16);
}

/* How many BBs from @tail on are done once the SQE is that @entry_index names; it lies
 * within that SQE, on which of its BBs is unverified. */
NDA_DEV constexpr uint32_t bbs_done(uint16_t entry_index, uint32_t tail, uint32_t depth)
{
	return ((entry_index - tail) & (depth - 1)) + 1;
}

enum status : uint8_t {
	status_ok = 0,
	status_unsupported_opcode = 1,
	status_local = 2,
	status_remote = 3,
	status_rnr = 4, /* receiver not ready, or retries of a transaction exceeded */
	status_ack_timeout = 5,
	status_flushed = 6,
};

enum substatus : uint8_t {
	local_length = 1,
	local_access = 2,
	local_response_length = 3,
	local_poison = 4,
	remote_unsupported = 1,
	remote_access = 2,
	remote_poison = 4,
};

/* The status of an error completion: never NDA_OK, whatever the numbers. A table would be
 * static data: the statuses of substatus 0 to 4 are the digits of one number. */
NDA_DEV enum nda_status status_of(uint8_t s, uint8_t sub)
{
	constexpr uint32_t of_local = NDA_LOCAL_QP << 0 | NDA_LOCAL_LENGTH << 4 |
		NDA_LOCAL_PROTECTION << 8 | NDA_BAD_RESPONSE << 12 | NDA_LOCAL_QP << 16;
	constexpr uint32_t of_remote = NDA_REMOTE_OPERATION << 0 | NDA_REMOTE_INVALID << 4 |
		NDA_REMOTE_ACCESS << 8 | NDA_REMOTE_OPERATION << 12 |
		NDA_REMOTE_OPERATION << 16;
	constexpr uint32_t by_status = NDA_GENERAL_ERROR << 0 | NDA_LOCAL_QP << 4 |
		NDA_LOCAL_QP << 8 | NDA_REMOTE_OPERATION << 12 |
		NDA_RNR_RETRY_EXCEEDED << 16 | NDA_RETRY_EXCEEDED << 20 | NDA_FLUSHED << 24;

	if (s > status_flushed)
		return NDA_GENERAL_ERROR;
	if (sub <= local_poison && (s == status_local || s == status_remote))
		return static_cast<enum nda_status>(
			(s == status_local ? of_local : of_remote) >> (sub * 4) & 15);
	return static_cast<enum nda_status>(by_status >> (s * 4) & 15);
}

} // namespace nda::hw::udma

#endif
