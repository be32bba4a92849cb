/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue formats of the 1825 RoCE NIC: work queue entry (WQE), send doorbell and its record,
 * completion queue entry (CQE) and the consumer record. Pure functions on values: no state,
 * no memory access. The data plane encodes with them, the device model decodes.
 *
 * Source: layouts as used by the public collective and shared-memory libraries for Ascend
 * and by the RoCE driver of the NIC's family. None was checked on silicon; what these
 * sources contradict or leave open is marked "unverified" and is a parameter.
 *
 * Byte order: fields of a WQE and both records are big-endian, a CQE is little-endian
 * dwords, the doorbell is one little-endian 64-bit word. A WQE is handled as 8 and a CQE as
 * 4 native 64-bit words in memory order.
 */
#ifndef NDA_HW_HNS1825_H
#define NDA_HW_HNS1825_H

#include <stddef.h>
#include <stdint.h>

#include <nda/hw/defs.h>
#include <nda/hw/hns_status.h>
#include <nda/status.h>

namespace nda::hw::hns1825 {

constexpr uint32_t wqe_bytes = 64; /* also the stride of the ring, whatever is published */
constexpr uint32_t wqe_words = 8;
constexpr uint32_t cqe_bytes = 32;
constexpr uint32_t cqe_words = 4;
constexpr uint32_t default_cqe_stride = 64; /* where the published stride is 0 */
constexpr uint32_t max_length = 0x7fffffff; /* of one WQE: the field has 31 bits */
/* The CQE names a WQE by 16 bits: more outstanding ones would be ambiguous. */
constexpr uint32_t max_depth = 32768;
constexpr uint32_t min_depth = 4;

enum wqe_opcode : uint8_t {
	op_write = 0x04,
	op_read = 0x08,
};

using hw::bits;
using hw::bswap32;
using hw::bswap64;
using hw::place;

/* ---- Indices -------------------------------------------------------------------------
 * Head and consumer index are free-running u32; depths are powers of two. */

/* The owner bit of whatever is written at @index: 0 in the first lap. */
NDA_DEV constexpr bool owner_bit(uint32_t index, uint32_t depth)
{
	return (index & depth) != 0;
}

/* First byte of a slot that does not hold a WQE for @index yet: the other owner and ones,
 * so that a NIC which fetches ahead stops there. */
NDA_DEV constexpr uint8_t invalid_marker(uint32_t index, uint32_t depth)
{
	return owner_bit(index, depth) ? 0x7f : 0xff;
}

/* Whether a slot's first byte says that the WQE of @index is there. */
NDA_DEV constexpr bool wqe_valid(uint8_t first_byte, uint32_t index, uint32_t depth)
{
	return (first_byte >> 7) == (owner_bit(index, depth) ? 1 : 0) &&
		first_byte != invalid_marker(index, depth);
}

/* ---- WQE ------------------------------------------------------------------------------
 * Every field of the 64 bytes, so that decode() loses nothing: encode(decode(w)) == w. */
struct wqe {
	/* Control section, bytes 0 to 15. */
	uint8_t owner;              /* 1 bit */
	uint8_t ctrl_len;           /* 2 bits, of 8 bytes: 2 */
	uint8_t completion_len;     /* 2 bits: 0 */
	uint8_t dif_len;            /* 3 bits: 0 */
	uint8_t completion;         /* 1 bit: wants a CQE */
	uint8_t inline_data;        /* 1 bit: 0 */
	uint8_t va;                 /* 1 bit: 1, addresses are virtual */
	uint8_t task_len;           /* 5 bits, of 8 bytes: 4 */
	uint8_t cf;                 /* 1 bit: 0 */
	uint8_t wf;                 /* 1 bit: 0 */
	uint8_t msn;                /* 2 bits: index modulo 4 */
	uint8_t fde;                /* 1 bit: 0 */
	uint8_t fast;               /* 1 bit: 0 */
	uint8_t driver_len;         /* 2 bits: 0 */
	uint8_t data_sections;      /* 8 bits, of 8 bytes: 2 */
	uint8_t cl;                 /* 4 bits: 1 */
	uint8_t reserved_ctrl;      /* 8 bits: 0; a signature in other headers */
	uint32_t direct_pi;         /* 20 bits, of a direct WQE: 0 */
	uint64_t embedded_doorbell; /* 0 */
	/* Task section, bytes 16 to 47. */
	uint8_t solicited;     /* 1 bit: 0 */
	uint8_t fence;         /* 1 bit: starts after earlier READs are done */
	uint8_t signal;        /* 1 bit: as completion; clear with it, unverified */
	uint8_t opcode;        /* 5 bits, enum wqe_opcode */
	uint8_t strong_order;  /* 1 bit: 0 */
	uint8_t reserved_task; /* 3 bits: 0 */
	uint8_t dif;           /* 1 bit: 0 */
	uint8_t ext;           /* 1 bit: 0 */
	uint32_t xrc_srqn;     /* 18 bits: 0 */
	uint32_t data_len;     /* bytes */
	uint32_t immediate;    /* 0 */
	uint16_t pi;           /* 0 */
	uint8_t cmd_len;       /* 0 */
	uint8_t last_ext_len;  /* READ 4, WRITE 0 */
	uint64_t remote_va;
	uint32_t rkey;
	uint32_t ulp; /* low 16 bits of the lkey */
	/* Data section, bytes 48 to 63: one gather entry. */
	uint64_t local_va;
	uint8_t sge_r;     /* 1 bit: 0 */
	uint32_t sge_len;  /* 31 bits, bytes */
	uint8_t sge_last;  /* 1 bit: 1 */
	uint8_t sge_ext;   /* 1 bit: 0 */
	uint32_t sge_lkey; /* 30 bits */
};

NDA_DEV void encode(const wqe &f, uint64_t out[wqe_words])
{
	uint64_t ctrl = place(f.owner, 63, 1) | place(f.ctrl_len, 61, 2) |
		place(f.completion_len, 59, 2) | place(f.dif_len, 56, 3) |
		place(f.completion, 55, 1) | place(f.inline_data, 54, 1) |
		place(f.va, 53, 1) | place(f.task_len, 48, 5) | place(f.cf, 47, 1) |
		place(f.wf, 46, 1) | place(f.msn, 44, 2) | place(f.fde, 43, 1) |
		place(f.fast, 42, 1) | place(f.driver_len, 40, 2) |
		place(f.data_sections, 32, 8) | place(f.cl, 28, 4) |
		place(f.reserved_ctrl, 20, 8) | place(f.direct_pi, 0, 20);
	uint64_t task = place(f.solicited, 63, 1) | place(f.fence, 62, 1) |
		place(f.signal, 61, 1) | place(f.opcode, 56, 5) |
		place(f.strong_order, 55, 1) | place(f.reserved_task, 52, 3) |
		place(f.dif, 51, 1) | place(f.ext, 50, 1) | place(f.xrc_srqn, 32, 18) |
		f.data_len;
	uint64_t more = place(f.immediate, 32, 32) | place(f.pi, 16, 16) |
		place(f.cmd_len, 8, 8) | f.last_ext_len;
	uint64_t sge = place(f.sge_r, 63, 1) | place(f.sge_len, 32, 31) |
		place(f.sge_last, 31, 1) | place(f.sge_ext, 30, 1) |
		place(f.sge_lkey, 0, 30);

	out[0] = bswap64(ctrl);
	out[1] = bswap64(f.embedded_doorbell);
	out[2] = bswap64(task);
	out[3] = bswap64(more);
	out[4] = bswap64(f.remote_va);
	out[5] = bswap64(place(f.rkey, 32, 32) | f.ulp);
	out[6] = bswap64(f.local_va);
	out[7] = bswap64(sge);
}

NDA_DEV wqe decode(const uint64_t in[wqe_words])
{
	uint64_t ctrl = bswap64(in[0]);
	uint64_t task = bswap64(in[2]);
	uint64_t more = bswap64(in[3]);
	uint64_t keys = bswap64(in[5]);
	uint64_t sge = bswap64(in[7]);
	wqe f;

	f.owner = static_cast<uint8_t>(bits(ctrl, 63, 1));
	f.ctrl_len = static_cast<uint8_t>(bits(ctrl, 61, 2));
	f.completion_len = static_cast<uint8_t>(bits(ctrl, 59, 2));
	f.dif_len = static_cast<uint8_t>(bits(ctrl, 56, 3));
	f.completion = static_cast<uint8_t>(bits(ctrl, 55, 1));
	f.inline_data = static_cast<uint8_t>(bits(ctrl, 54, 1));
	f.va = static_cast<uint8_t>(bits(ctrl, 53, 1));
	f.task_len = static_cast<uint8_t>(bits(ctrl, 48, 5));
	f.cf = static_cast<uint8_t>(bits(ctrl, 47, 1));
	f.wf = static_cast<uint8_t>(bits(ctrl, 46, 1));
	f.msn = static_cast<uint8_t>(bits(ctrl, 44, 2));
	f.fde = static_cast<uint8_t>(bits(ctrl, 43, 1));
	f.fast = static_cast<uint8_t>(bits(ctrl, 42, 1));
	f.driver_len = static_cast<uint8_t>(bits(ctrl, 40, 2));
	f.data_sections = static_cast<uint8_t>(bits(ctrl, 32, 8));
	f.cl = static_cast<uint8_t>(bits(ctrl, 28, 4));
	f.reserved_ctrl = static_cast<uint8_t>(bits(ctrl, 20, 8));
	f.direct_pi = bits(ctrl, 0, 20);
	f.embedded_doorbell = bswap64(in[1]);
	f.solicited = static_cast<uint8_t>(bits(task, 63, 1));
	f.fence = static_cast<uint8_t>(bits(task, 62, 1));
	f.signal = static_cast<uint8_t>(bits(task, 61, 1));
	f.opcode = static_cast<uint8_t>(bits(task, 56, 5));
	f.strong_order = static_cast<uint8_t>(bits(task, 55, 1));
	f.reserved_task = static_cast<uint8_t>(bits(task, 52, 3));
	f.dif = static_cast<uint8_t>(bits(task, 51, 1));
	f.ext = static_cast<uint8_t>(bits(task, 50, 1));
	f.xrc_srqn = bits(task, 32, 18);
	f.data_len = bits(task, 0, 32);
	f.immediate = bits(more, 32, 32);
	f.pi = static_cast<uint16_t>(bits(more, 16, 16));
	f.cmd_len = static_cast<uint8_t>(bits(more, 8, 8));
	f.last_ext_len = static_cast<uint8_t>(bits(more, 0, 8));
	f.remote_va = bswap64(in[4]);
	f.rkey = bits(keys, 32, 32);
	f.ulp = bits(keys, 0, 32);
	f.local_va = bswap64(in[6]);
	f.sge_r = static_cast<uint8_t>(bits(sge, 63, 1));
	f.sge_len = bits(sge, 32, 31);
	f.sge_last = static_cast<uint8_t>(bits(sge, 31, 1));
	f.sge_ext = static_cast<uint8_t>(bits(sge, 30, 1));
	f.sge_lkey = bits(sge, 0, 30);
	return f;
}

/* What a WRITE or READ is made of; the rest of a WQE is constant. */
struct rdma {
	uint8_t opcode;     /* op_write or op_read */
	bool signalled;     /* wants a CQE */
	bool fence;         /* waits for earlier READs */
	uint32_t length;    /* bytes, 1 to max_length */
	uint64_t remote_va; /* WRITE: destination, READ: source */
	uint64_t local_va;
	uint32_t rkey;
	uint32_t lkey; /* see lkey_fits() */
};

/* The WQE of @op at @index of a ring of @depth. */
NDA_DEV wqe rdma_wqe(const rdma &op, uint32_t index, uint32_t depth)
{
	wqe f = {};

	f.owner = owner_bit(index, depth) ? 1 : 0;
	f.ctrl_len = 2;
	f.completion = op.signalled ? 1 : 0;
	f.va = 1;
	f.task_len = 4;
	f.msn = index & 3;
	f.data_sections = 2;
	f.cl = 1;
	f.fence = op.fence ? 1 : 0;
	f.signal = op.signalled ? 1 : 0;
	f.opcode = op.opcode;
	f.data_len = op.length;
	f.last_ext_len = op.opcode == op_read ? 4 : 0;
	f.remote_va = op.remote_va;
	f.rkey = op.rkey;
	f.ulp = op.lkey & 0xffff;
	f.local_va = op.local_va;
	f.sge_len = op.length & max_length;
	f.sge_last = 1;
	f.sge_lkey = op.lkey & 0x3fffffff;
	return f;
}

/* The field of a WQE that a strict reader objects to. */
enum class wqe_fault : uint8_t {
	none,
	not_valid,      /* owner or marker: not posted for this index */
	section_length, /* ctrl_len, task_len, data_sections, completion, dif, driver length
			 */
	flags,          /* inline, va, cf, wf, fde, fast, cl, solicited, order, dif, ext */
	reserved,       /* a reserved bit, or a field that no RC WRITE or READ has */
	msn,            /* not the index modulo 4 */
	completion,     /* completion and signal bits differ */
	opcode,
	command_length, /* last_ext_len not that of the opcode */
	length, /* data_len and the gather entry differ, or 0, or above max_length */
	gather, /* r, last or ext of the gather entry */
	key,    /* ulp is not the low half of the lkey */
};

/* Whether @w is exactly what rdma_wqe() makes for some operation at @index: every
 * constant, reserved bit and repeated field is compared. wqe_fault::none if so. */
NDA_DEV wqe_fault check(const uint64_t w[wqe_words], uint32_t index, uint32_t depth)
{
	if (!wqe_valid(static_cast<uint8_t>(w[0]), index, depth))
		return wqe_fault::not_valid;

	wqe f = decode(w);
	if (f.ctrl_len != 2 || f.task_len != 4 || f.data_sections != 2 ||
		f.completion_len != 0 || f.dif_len != 0 || f.driver_len != 0)
		return wqe_fault::section_length;
	if (f.inline_data || !f.va || f.cf || f.wf || f.fde || f.fast || f.cl != 1 ||
		f.solicited || f.strong_order || f.dif || f.ext)
		return wqe_fault::flags;
	if (f.reserved_ctrl || f.direct_pi || f.embedded_doorbell || f.reserved_task ||
		f.xrc_srqn || f.immediate || f.pi || f.cmd_len)
		return wqe_fault::reserved;
	if (f.msn != (index & 3))
		return wqe_fault::msn;
	if (f.completion != f.signal)
		return wqe_fault::completion;
	if (f.opcode != op_write && f.opcode != op_read)
		return wqe_fault::opcode;
	if (f.last_ext_len != (f.opcode == op_read ? 4 : 0))
		return wqe_fault::command_length;
	if (f.data_len != f.sge_len || f.data_len == 0 || f.data_len > max_length)
		return wqe_fault::length;
	if (f.sge_r || !f.sge_last || f.sge_ext)
		return wqe_fault::gather;
	if (f.ulp != (f.sge_lkey & 0xffff))
		return wqe_fault::key;
	return wqe_fault::none;
}

/* ---- Parts of a WQE for a caller that keeps them prepared ----------------------------
 * w[0] = control_word(index, depth, signalled)
 * w[1] = 0
 * w[2] = task_word(length, task_bits(opcode, signalled, fence))
 * w[3] = command_word(opcode)
 * w[4] = bswap64(remote_va)
 * w[5] = key_words()[0]
 * w[6] = bswap64(local_va)
 * w[7] = gather_word(length, key_words()[1]) */

/* An lkey has 30 bits in the gather entry; a wider one would name another region. Who
 * registers memory must refuse it. */
NDA_DEV constexpr bool lkey_fits(uint32_t lkey)
{
	return (lkey >> 30) == 0;
}

/* @out: what the WQE needs of the two keys. out[1] has its low half free for the length. */
NDA_DEV void key_words(uint32_t rkey, uint32_t lkey, uint64_t out[2])
{
	out[0] = bswap64(place(rkey, 32, 32) | place(lkey, 0, 16));
	out[1] = bswap64(place(1, 31, 1) | place(lkey, 0, 30));
}

constexpr uint64_t control_signalled = uint64_t{0x80} << 8;

NDA_DEV uint64_t control_word(uint32_t index, uint32_t depth, bool signalled)
{
	return (owner_bit(index, depth) ? 0xc0u : 0x40u) | uint64_t{0x24} << 8 |
		(signalled ? control_signalled : 0) | uint64_t{index & 3} << 20 |
		uint64_t{2} << 24 | uint64_t{0x10} << 32;
}

/* The control word of the next index, which must be in the same lap. */
NDA_DEV uint64_t control_word_next(uint64_t word)
{
	return (word + (uint64_t{1} << 20)) & ~(uint64_t{1} << 22);
}

constexpr uint32_t task_signalled = 0x20;
constexpr uint32_t task_fence = 0x40;

NDA_DEV uint32_t task_bits(uint32_t opcode, bool signalled, bool fence)
{
	return opcode | (signalled ? task_signalled : 0) | (fence ? task_fence : 0);
}

/* task_bits() of @opcode from those of a WRITE. */
NDA_DEV constexpr uint64_t task_bits_as(uint8_t opcode, uint64_t of_write)
{
	return of_write ^ (op_write ^ opcode);
}

/* @length_be: bswap64(length), length 1 to max_length, shared by the next two. */
NDA_DEV uint64_t task_word(uint64_t length_be, uint64_t task_bits_)
{
	return length_be | task_bits_;
}

NDA_DEV uint64_t gather_word(uint64_t length_be, uint64_t key_word)
{
	return length_be >> 32 | key_word;
}

NDA_DEV constexpr uint64_t command_word(uint32_t opcode)
{
	return opcode == op_read ? uint64_t{4} << 56 : 0;
}

/* ---- Send doorbell and record ---------------------------------------------------------
 * The record holds the whole head and is written first; the doorbell has bits 15:8 of it.
 * That the NIC takes the low byte from the record is strongly implied, unverified. */
struct doorbell {
	uint32_t qpn;       /* 20 bits */
	uint8_t cntx_size;  /* 2 bits: QP context of 256 B << n; unverified, 1 */
	uint8_t reserved22; /* 1 bit: 0 */
	uint8_t c;          /* 1 bit: 0 */
	uint8_t cos;        /* 3 bits: priority; unverified, 7 */
	uint8_t type;       /* 5 bits: 21, send queue */
	uint8_t pi_high;    /* 8 bits: bits 15:8 of head */
	uint8_t reserved40; /* 8 bits: 0 */
	uint8_t xrc_valid;  /* 1 bit: 0 */
	uint8_t reserved49; /* 1 bit: 0 */
	uint8_t mtu_shift;  /* 3 bits: log2(MTU / 256); unverified, 4 = 4096 */
	uint8_t sgid_index; /* 7 bits; unverified, 1 */
	uint8_t sub_type;   /* 4 bits: 0 */
};

constexpr uint8_t doorbell_type_send = 21;

/* What the sources hard-code or disagree about; see struct doorbell. */
struct doorbell_params {
	uint8_t cntx_size = 1;
	uint8_t cos = 7;
	uint8_t mtu_shift = 4;
	uint8_t sgid_index = 1;
};

NDA_DEV uint64_t encode(const doorbell &f)
{
	return place(f.qpn, 0, 20) | place(f.cntx_size, 20, 2) |
		place(f.reserved22, 22, 1) | place(f.c, 23, 1) | place(f.cos, 24, 3) |
		place(f.type, 27, 5) | place(f.pi_high, 32, 8) |
		place(f.reserved40, 40, 8) | place(f.xrc_valid, 48, 1) |
		place(f.reserved49, 49, 1) | place(f.mtu_shift, 50, 3) |
		place(f.sgid_index, 53, 7) | place(f.sub_type, 60, 4);
}

NDA_DEV doorbell decode_doorbell(uint64_t v)
{
	doorbell f;

	f.qpn = bits(v, 0, 20);
	f.cntx_size = static_cast<uint8_t>(bits(v, 20, 2));
	f.reserved22 = static_cast<uint8_t>(bits(v, 22, 1));
	f.c = static_cast<uint8_t>(bits(v, 23, 1));
	f.cos = static_cast<uint8_t>(bits(v, 24, 3));
	f.type = static_cast<uint8_t>(bits(v, 27, 5));
	f.pi_high = static_cast<uint8_t>(bits(v, 32, 8));
	f.reserved40 = static_cast<uint8_t>(bits(v, 40, 8));
	f.xrc_valid = static_cast<uint8_t>(bits(v, 48, 1));
	f.reserved49 = static_cast<uint8_t>(bits(v, 49, 1));
	f.mtu_shift = static_cast<uint8_t>(bits(v, 50, 3));
	f.sgid_index = static_cast<uint8_t>(bits(v, 53, 7));
	f.sub_type = static_cast<uint8_t>(bits(v, 60, 4));
	return f;
}

/* The doorbell of a queue but for the head's bits, as nda_queue.doorbell_template. */
NDA_DEV uint64_t doorbell_template(uint32_t qpn, const doorbell_params &p)
{
	doorbell f = {};

	f.qpn = qpn;
	f.cntx_size = p.cntx_size;
	f.cos = p.cos;
	f.type = doorbell_type_send;
	f.mtu_shift = p.mtu_shift;
	f.sgid_index = p.sgid_index;
	return encode(f);
}

NDA_DEV uint64_t doorbell_value(uint64_t template_word, uint32_t head)
{
	return template_word | place(head >> 8, 32, 8);
}

/* No 1825 send doorbell has this value (its type would be 0): a model may leave it in a
 * doorbell word that it has consumed. */
constexpr uint64_t doorbell_idle = 0;

/* The record's u32 for @head, and back. */
NDA_DEV uint32_t sq_record(uint32_t head)
{
	return bswap32(head);
}
NDA_DEV uint32_t sq_record_head(uint32_t record)
{
	return bswap32(record);
}

/* ---- Completion -----------------------------------------------------------------------*/

enum cqe_op : uint8_t {
	cqe_op_resize = 0x16,
	cqe_op_error = 0x1e,
	cqe_op_empty = 0x1f,
};

/* Every field of the 32 bytes: encode(decode_cqe(w)) == w. */
struct cqe {
	uint8_t owner;        /* 1 bit */
	uint8_t cqe_size;     /* 2 bits: 1 as recorded */
	uint8_t dif;          /* 1 bit: 0 */
	uint8_t wq_id;        /* 4 bits: 0 */
	uint8_t err_code;     /* 4 bits: 0 */
	uint32_t qpn;         /* 20 bits */
	uint8_t op_type;      /* 5 bits: the WQE's opcode, or enum cqe_op */
	uint8_t receive;      /* 1 bit: 0, of a send queue */
	uint8_t inline_data;  /* 1 bit: 0 */
	uint8_t merge;        /* 1 bit: 0 */
	uint8_t fake;         /* 1 bit: 0 */
	uint8_t reserved4;    /* 3 bits: 0 */
	uint32_t wqebb_count; /* 20 bits: 1 */
	uint32_t byte_count;
	uint32_t immediate;
	uint32_t reserved16;
	uint32_t wqe_num;
	uint32_t srqn;
	uint8_t syndrome;     /* of an error, enum syndrome */
	uint8_t vendor;       /* of an error: the vendor's own code */
	uint16_t wqe_counter; /* index of the WQE modulo 2^16 */
};

NDA_DEV void encode(const cqe &f, uint64_t out[cqe_words])
{
	out[0] = place(f.owner, 31, 1) | place(f.cqe_size, 29, 2) | place(f.dif, 28, 1) |
		place(f.wq_id, 24, 4) | place(f.err_code, 20, 4) | place(f.qpn, 0, 20) |
		place(f.op_type, 59, 5) | place(f.receive, 58, 1) |
		place(f.inline_data, 57, 1) | place(f.merge, 56, 1) | place(f.fake, 55, 1) |
		place(f.reserved4, 52, 3) | place(f.wqebb_count, 32, 20);
	out[1] = f.byte_count | place(f.immediate, 32, 32);
	out[2] = f.reserved16 | place(f.wqe_num, 32, 32);
	out[3] = f.srqn | place(f.syndrome, 32, 8) | place(f.vendor, 40, 8) |
		place(f.wqe_counter, 48, 16);
}

NDA_DEV cqe decode_cqe(const uint64_t in[cqe_words])
{
	cqe f;

	f.owner = static_cast<uint8_t>(bits(in[0], 31, 1));
	f.cqe_size = static_cast<uint8_t>(bits(in[0], 29, 2));
	f.dif = static_cast<uint8_t>(bits(in[0], 28, 1));
	f.wq_id = static_cast<uint8_t>(bits(in[0], 24, 4));
	f.err_code = static_cast<uint8_t>(bits(in[0], 20, 4));
	f.qpn = bits(in[0], 0, 20);
	f.op_type = static_cast<uint8_t>(bits(in[0], 59, 5));
	f.receive = static_cast<uint8_t>(bits(in[0], 58, 1));
	f.inline_data = static_cast<uint8_t>(bits(in[0], 57, 1));
	f.merge = static_cast<uint8_t>(bits(in[0], 56, 1));
	f.fake = static_cast<uint8_t>(bits(in[0], 55, 1));
	f.reserved4 = static_cast<uint8_t>(bits(in[0], 52, 3));
	f.wqebb_count = bits(in[0], 32, 20);
	f.byte_count = bits(in[1], 0, 32);
	f.immediate = bits(in[1], 32, 32);
	f.reserved16 = bits(in[2], 0, 32);
	f.wqe_num = bits(in[2], 32, 32);
	f.srqn = bits(in[3], 0, 32);
	f.syndrome = static_cast<uint8_t>(bits(in[3], 32, 8));
	f.vendor = static_cast<uint8_t>(bits(in[3], 40, 8));
	f.wqe_counter = static_cast<uint16_t>(bits(in[3], 48, 16));
	return f;
}

/* What an empty ring is filled with before its first use: zeros would read as successes
 * of the first lap. */
constexpr uint8_t cqe_ring_fill = 0xff;

enum class cqe_state : uint8_t {
	empty,
	done,
	error
};

/* What a CQE's first word says to a reader at consumer index @ci. Take it from one
 * 64-bit acquire load and decide once: a second look may see another state. */
NDA_DEV cqe_state cqe_look(uint64_t word, uint32_t ci, uint32_t ring)
{
	uint32_t op = bits(word, 59, 5);

	if (op == cqe_op_empty || (bits(word, 31, 1) != 0) != owner_bit(ci, ring))
		return cqe_state::empty;
	return op == cqe_op_error ? cqe_state::error : cqe_state::done;
}

/* For a reader's loop over one lap: a CQE is done exactly if its first word is below
 * cqe_special and the word's bit 31 equals the lap's owner bit. */
constexpr uint64_t cqe_special = uint64_t{cqe_op_error} << 59;

NDA_DEV uint16_t cqe_wqe_counter(uint64_t word3)
{
	return static_cast<uint16_t>(word3 >> 48);
}
NDA_DEV uint8_t cqe_syndrome(uint64_t word3)
{
	return static_cast<uint8_t>(word3 >> 32);
}
NDA_DEV uint8_t cqe_vendor(uint64_t word3)
{
	return static_cast<uint8_t>(word3 >> 40);
}

/* syndrome_... and status_of(): numbers from the RoCE driver of the NIC's family, whose CQE
 * is the same; unverified on this NIC. */
using namespace nda::hw::hns;

constexpr uint32_t cq_index_bits = 24; /* of the record */

/* The consumer record's u32 for @ci, and back. Big-endian in two of three sources,
 * unverified. There is no consumer doorbell. */
NDA_DEV uint32_t cq_record(uint32_t ci)
{
	return bswap32(bits(ci, 0, cq_index_bits));
}
NDA_DEV uint32_t cq_record_ci(uint32_t record)
{
	return bswap32(record);
}

/* Entries of the CQ's ring where @published is the published depth, or 0: refuse. The
 * sources take depth, or depth + 1024: a ring is a power of two, and that decides where
 * only one of them is; unverified where both are, for which depth is taken. */
NDA_DEV constexpr uint32_t cq_ring(uint32_t published)
{
	uint32_t more = published + 1024;

	if (published != 0 && (published & (published - 1)) == 0)
		return published;
	return published != 0 && more > published && (more & (more - 1)) == 0 ? more : 0;
}

} // namespace nda::hw::hns1825

#endif
