/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue formats of Soft-RoCE (rdma_rxe): send WQE, CQE and the header that every ring has.
 * Pure functions on values: no state, no memory access.
 *
 * Source: the kernel's public interface, rdma/rdma_user_rxe.h and rdma/ib_user_verbs.h,
 * whose sizes and offsets a test compares; what the headers do not say (which members the
 * kernel expects zero, that indices in a ring's header are masked) follows
 * linux-rdma/rdma-core, and the tests on a real device show it.
 *
 * All fields are native, but for immediate data. A WQE is handled as native 64-bit words in
 * memory order: wqe_words of it and, behind them, two for each SGE, or inline data.
 */
#ifndef NDA_HW_RXE_H
#define NDA_HW_RXE_H

#include <stddef.h>
#include <stdint.h>

#include <nda/hw/defs.h>
#include <nda/status.h>

namespace nda::hw::rxe {

constexpr uint32_t wqe_bytes = 208; /* without SGEs and inline data */
constexpr uint32_t wqe_words = 26;
constexpr uint32_t sge_bytes = 16;
constexpr uint32_t cqe_bytes = 48; /* at the start of a slot */
constexpr uint32_t cqe_words = 6;
constexpr uint32_t max_length = 0x800000; /* of a message: the port's max_msg_sz */

enum wqe_opcode : uint8_t {
	op_write = 0,
	op_write_immediate = 1,
	op_read = 4,
	op_compare_swap = 5,
	op_fetch_add = 6,
};

/* Bits of a WQE's flags. */
constexpr uint32_t send_fence = 1 << 0;
constexpr uint32_t send_signalled = 1 << 1;
constexpr uint32_t send_inline = 1 << 3;

NDA_DEV constexpr bool atomic(uint32_t opcode)
{
	return opcode == op_compare_swap || opcode == op_fetch_add;
}

/* ---- The ring -------------------------------------------------------------------------
 * A header, then slots, as many and as large as it says. The indices in it go round the
 * ring, that is, they are masked; producer == consumer is empty, so one slot stays free. */
constexpr uint32_t ring_log2_slot_at = 0;  /* u32: log2 of a slot's bytes */
constexpr uint32_t ring_index_mask_at = 4; /* u32: slots - 1 */
constexpr uint32_t ring_producer_at = 128; /* u32: whoever fills the ring writes it */
constexpr uint32_t ring_consumer_at = 256; /* u32: whoever empties it */
constexpr uint32_t ring_header_bytes = 384;

/* ---- WQE ---------------------------------------------------------------------------- */

/* What is not here is the kernel's own while it works on the WQE, and zero before. */
struct wqe {
	uint64_t wr_id; /* comes back in the CQE */
	uint32_t opcode;
	uint32_t flags;     /* send_... */
	uint32_t immediate; /* as the receiver's program reads it, native */
	uint64_t remote_va;
	uint32_t rkey;
	uint64_t compare_add; /* of an atomic */
	uint64_t swap;
	uint32_t status; /* ibv_wc_status, the kernel's */
	uint32_t state;  /* 0: posted; the kernel's */
	uint64_t iova;   /* remote_va once more: the kernel counts on in it */
	uint32_t ssn;
	uint32_t length; /* bytes */
	uint32_t resid;  /* of them still to do: length */
	uint32_t cur_sge;
	uint32_t num_sge;
	uint32_t sge_offset;
};

NDA_DEV constexpr uint64_t pair(uint32_t low, uint32_t high)
{
	return low | uint64_t{high} << 32;
}
NDA_DEV constexpr uint32_t low(uint64_t word)
{
	return static_cast<uint32_t>(word);
}
NDA_DEV constexpr uint32_t high(uint64_t word)
{
	return static_cast<uint32_t>(word >> 32);
}

NDA_DEV void encode(const wqe &f, uint64_t out[wqe_words])
{
	bool is_atomic = atomic(f.opcode);

	out[0] = f.wr_id;
	out[1] = pair(0, f.opcode);
	out[2] = pair(f.flags, __builtin_bswap32(f.immediate));
	out[3] = f.remote_va;
	out[4] = is_atomic ? f.compare_add : f.rkey;
	out[5] = is_atomic ? f.swap : 0;
	out[6] = is_atomic ? f.rkey : 0;
	for (uint32_t i = 7; i < 18; i++)
		out[i] = 0;
	out[18] = pair(f.status, f.state);
	out[19] = f.iova;
	out[20] = 0;
	out[21] = 0;
	out[22] = pair(f.ssn, 0);
	out[23] = pair(f.length, f.resid);
	out[24] = pair(f.cur_sge, f.num_sge);
	out[25] = f.sge_offset;
}

NDA_DEV wqe decode(const uint64_t w[wqe_words])
{
	wqe f;

	f.wr_id = w[0];
	f.opcode = high(w[1]);
	f.flags = low(w[2]);
	f.immediate = __builtin_bswap32(high(w[2]));
	f.remote_va = w[3];
	f.rkey = low(atomic(f.opcode) ? w[6] : w[4]);
	f.compare_add = atomic(f.opcode) ? w[4] : 0;
	f.swap = atomic(f.opcode) ? w[5] : 0;
	f.status = low(w[18]);
	f.state = high(w[18]);
	f.iova = w[19];
	f.ssn = low(w[22]);
	f.length = low(w[23]);
	f.resid = high(w[23]);
	f.cur_sge = low(w[24]);
	f.num_sge = high(w[24]);
	f.sge_offset = low(w[25]);
	return f;
}

/* The second of an SGE's two words; the first is the address. */
NDA_DEV constexpr uint64_t sge_word(uint32_t length, uint32_t lkey)
{
	return pair(length, lkey);
}

/* ---- CQE ---------------------------------------------------------------------------- */

struct cqe {
	uint64_t wr_id;
	uint32_t status; /* ibv_wc_status */
	uint32_t opcode; /* ibv_wc_opcode; means nothing in an error */
	uint32_t vendor_err;
	uint32_t byte_len;
	uint32_t immediate; /* native */
	uint32_t qpn;
	uint32_t src_qp;
	uint32_t wc_flags;
};

NDA_DEV cqe decode_cqe(const uint64_t w[cqe_words])
{
	cqe f;

	f.wr_id = w[0];
	f.status = low(w[1]);
	f.opcode = high(w[1]);
	f.vendor_err = low(w[2]);
	f.byte_len = high(w[2]);
	f.immediate = __builtin_bswap32(low(w[3]));
	f.qpn = high(w[3]);
	f.src_qp = low(w[4]);
	f.wc_flags = high(w[4]);
	return f;
}

NDA_DEV void encode(const cqe &f, uint64_t out[cqe_words])
{
	out[0] = f.wr_id;
	out[1] = pair(f.status, f.opcode);
	out[2] = pair(f.vendor_err, f.byte_len);
	out[3] = pair(__builtin_bswap32(f.immediate), f.qpn);
	out[4] = pair(f.src_qp, f.wc_flags);
	out[5] = 0;
}

/* Whether word 1 of a CQE says that a WQE of a send queue was done; the opcodes of a
 * receive queue have bit 7. */
NDA_DEV constexpr bool sent(uint64_t word1)
{
	return low(word1) == 0 && (high(word1) & 0x80) == 0;
}

/* The status of an error CQE, by ibv_wc_status: never NDA_OK; 0, unknown ones and those of
 * transports that RoCE does not have are NDA_GENERAL_ERROR. A table would be static data:
 * the first 16 are the digits of one number. */
NDA_DEV enum nda_status status_of(uint32_t wc_status)
{
	constexpr uint64_t general = NDA_GENERAL_ERROR;
	constexpr uint64_t first = general | uint64_t{NDA_LOCAL_LENGTH} << 4 |
		uint64_t{NDA_LOCAL_QP} << 8 | general << 12 |
		uint64_t{NDA_LOCAL_PROTECTION} << 16 | uint64_t{NDA_FLUSHED} << 20 |
		general << 24 | uint64_t{NDA_BAD_RESPONSE} << 28 |
		uint64_t{NDA_LOCAL_ACCESS} << 32 | uint64_t{NDA_REMOTE_INVALID} << 36 |
		uint64_t{NDA_REMOTE_ACCESS} << 40 | uint64_t{NDA_REMOTE_OPERATION} << 44 |
		uint64_t{NDA_RETRY_EXCEEDED} << 48 |
		uint64_t{NDA_RNR_RETRY_EXCEEDED} << 52 | general << 56 | general << 60;

	if (wc_status < 16)
		return static_cast<enum nda_status>(first >> (wc_status * 4) & 15);
	return wc_status == 16 ? NDA_REMOTE_ABORTED : NDA_GENERAL_ERROR;
}

} // namespace nda::hw::rxe

#endif
