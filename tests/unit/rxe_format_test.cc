/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The queue format of Soft-RoCE, against the kernel's public headers. */
#include <arpa/inet.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#include <nda/hw/rxe.h>
#include <providers/rxe/uapi.h>

namespace {

using namespace nda::hw::rxe;

/* SGEs follow the last member. The header's flexible arrays cannot be asked in C++, where
 * the empty structs that it has before them take room. */
static_assert(
	offsetof(rxe_send_wqe, dma.reserved) + sizeof(rxe_dma_info::reserved) == wqe_bytes);
static_assert(wqe_bytes % alignof(rxe_sge) == 0);
static_assert(wqe_words * 8 == wqe_bytes);
static_assert(sizeof(rxe_sge) == sge_bytes);
static_assert(sizeof(ib_uverbs_wc) == cqe_bytes);
static_assert(cqe_words * 8 == cqe_bytes);

static_assert(offsetof(rxe_queue_buf, log2_elem_size) == ring_log2_slot_at);
static_assert(offsetof(rxe_queue_buf, index_mask) == ring_index_mask_at);
static_assert(offsetof(rxe_queue_buf, producer_index) == ring_producer_at);
static_assert(offsetof(rxe_queue_buf, consumer_index) == ring_consumer_at);
static_assert(offsetof(rxe_queue_buf, data) == ring_header_bytes);

static_assert(uint32_t{op_write} == uint32_t{IBV_WR_RDMA_WRITE});
static_assert(uint32_t{op_write_immediate} == uint32_t{IBV_WR_RDMA_WRITE_WITH_IMM});
static_assert(uint32_t{op_read} == uint32_t{IBV_WR_RDMA_READ});
static_assert(uint32_t{op_compare_swap} == uint32_t{IBV_WR_ATOMIC_CMP_AND_SWP});
static_assert(uint32_t{op_fetch_add} == uint32_t{IBV_WR_ATOMIC_FETCH_AND_ADD});
static_assert(uint32_t{send_fence} == uint32_t{IBV_SEND_FENCE});
static_assert(uint32_t{send_signalled} == uint32_t{IBV_SEND_SIGNALED});
static_assert(uint32_t{send_inline} == uint32_t{IBV_SEND_INLINE});

/* Each field another value, so that one in another's place is seen. */
wqe example(uint32_t opcode)
{
	wqe f = {};

	f.wr_id = 0x0102030405060708;
	f.opcode = opcode;
	f.flags = send_signalled | send_fence;
	f.immediate = 0xcafe1234;
	f.remote_va = 0x1122334455667788;
	f.rkey = 0xa1b2c3d4;
	if (atomic(opcode)) {
		f.compare_add = 0x3132333435363738;
		f.swap = 0x4142434445464748;
	}
	f.status = 11;
	f.state = 12;
	f.iova = 0x5152535455565758;
	f.ssn = 13;
	f.length = 0x1000;
	f.resid = 0x800;
	f.cur_sge = 1;
	f.num_sge = 2;
	f.sge_offset = 14;
	return f;
}

/* The kernel's view of what was encoded, over a slot that held something else. */
struct Slot {
	rxe_send_wqe wqe = {};

	explicit Slot(const nda::hw::rxe::wqe &f)
	{
		uint64_t words[wqe_words];

		memset(words, 0xee, sizeof(words));
		encode(f, words);
		memcpy(&wqe, words, sizeof(words));
	}
};

TEST(RxeFormat, AWriteIsWhatTheKernelsHeaderDescribes)
{
	Slot slot(example(op_write_immediate));
	const rxe_send_wqe &k = slot.wqe;

	EXPECT_EQ(k.wr.wr_id, 0x0102030405060708u);
	EXPECT_EQ(k.wr.opcode, 1u);
	EXPECT_EQ(k.wr.send_flags, 3u);
	EXPECT_EQ(ntohl(k.wr.ex.imm_data), 0xcafe1234u);
	EXPECT_EQ(k.wr.wr.rdma.remote_addr, 0x1122334455667788u);
	EXPECT_EQ(k.wr.wr.rdma.rkey, 0xa1b2c3d4u);
	EXPECT_EQ(k.status, 11u);
	EXPECT_EQ(k.state, 12u);
	EXPECT_EQ(k.iova, 0x5152535455565758u);
	EXPECT_EQ(k.ssn, 13u);
	EXPECT_EQ(k.dma.length, 0x1000u);
	EXPECT_EQ(k.dma.resid, 0x800u);
	EXPECT_EQ(k.dma.cur_sge, 1u);
	EXPECT_EQ(k.dma.num_sge, 2u);
	EXPECT_EQ(k.dma.sge_offset, 14u);
}

TEST(RxeFormat, AnAtomicHasItsOperandsAndKeyElsewhere)
{
	Slot slot(example(op_compare_swap));
	const rxe_send_wqe &k = slot.wqe;

	EXPECT_EQ(k.wr.opcode, 5u);
	EXPECT_EQ(k.wr.wr.atomic.remote_addr, 0x1122334455667788u);
	EXPECT_EQ(k.wr.wr.atomic.compare_add, 0x3132333435363738u);
	EXPECT_EQ(k.wr.wr.atomic.swap, 0x4142434445464748u);
	EXPECT_EQ(k.wr.wr.atomic.rkey, 0xa1b2c3d4u);
}

TEST(RxeFormat, WhatTheKernelKeepsInAWqeStartsAsZero)
{
	Slot slot(example(op_write));
	const rxe_send_wqe &k = slot.wqe;
	const uint8_t zero[sizeof(k.wr)] = {};
	const size_t tail = offsetof(rxe_send_wr, wr.rdma.reserved);

	const auto *wr = reinterpret_cast<const uint8_t *>(&k.wr);
	const size_t second = sizeof(k.wr.wr_id); // its name depends on the headers' age

	EXPECT_EQ(memcmp(wr + second, zero, offsetof(rxe_send_wr, opcode) - second), 0);
	EXPECT_EQ(memcmp(wr + tail, zero, sizeof(k.wr) - tail), 0);
	EXPECT_EQ(k.mask, 0u);
	EXPECT_EQ(k.first_psn, 0u);
	EXPECT_EQ(k.last_psn, 0u);
	EXPECT_EQ(k.ack_length, 0u);
	EXPECT_EQ(k.has_rd_atomic, 0u);
	EXPECT_EQ(k.dma.reserved, 0u);
}

TEST(RxeFormat, DecodingLosesNothing)
{
	for (uint32_t opcode :
		{op_write, op_write_immediate, op_read, op_compare_swap, op_fetch_add}) {
		uint64_t words[wqe_words], again[wqe_words];

		encode(example(opcode), words);
		encode(decode(words), again);
		EXPECT_EQ(memcmp(words, again, sizeof(words)), 0) << opcode;
	}
}

TEST(RxeFormat, AnSgeIsWhatTheKernelsHeaderDescribes)
{
	uint64_t words[2] = {0x1122334455667788, sge_word(0x1000, 0x15263748)};
	rxe_sge k;

	memcpy(&k, words, sizeof(k));
	EXPECT_EQ(k.addr, 0x1122334455667788u);
	EXPECT_EQ(k.length, 0x1000u);
	EXPECT_EQ(k.lkey, 0x15263748u);
}

TEST(RxeFormat, ACqeIsReadAsTheKernelsHeaderDescribes)
{
	ib_uverbs_wc k = {};
	uint64_t words[cqe_words], again[cqe_words];

	k.wr_id = 0x0102030405060708;
	k.status = IBV_WC_REM_ACCESS_ERR;
	k.opcode = IBV_WC_RDMA_READ;
	k.vendor_err = 3;
	k.byte_len = 0x1000;
	k.ex.imm_data = htonl(0xcafe1234);
	k.qp_num = 17;
	k.src_qp = 18;
	k.wc_flags = IBV_WC_WITH_IMM;
	memcpy(words, &k, sizeof(words));

	cqe f = decode_cqe(words);
	EXPECT_EQ(f.wr_id, k.wr_id);
	EXPECT_EQ(f.status, k.status);
	EXPECT_EQ(f.opcode, k.opcode);
	EXPECT_EQ(f.vendor_err, k.vendor_err);
	EXPECT_EQ(f.byte_len, k.byte_len);
	EXPECT_EQ(f.immediate, 0xcafe1234u);
	EXPECT_EQ(f.qpn, k.qp_num);
	EXPECT_EQ(f.src_qp, k.src_qp);
	EXPECT_EQ(f.wc_flags, k.wc_flags);
	encode(f, again);
	EXPECT_EQ(memcmp(words, again, sizeof(words)), 0);
}

TEST(RxeFormat, OnlyASuccessOfASendQueueCountsAsSent)
{
	// IBV_WC_ATOMIC_WRITE, which older headers have not.
	constexpr auto atomic_write = static_cast<ibv_wc_opcode>(9);

	EXPECT_TRUE(sent(pair(IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE)));
	EXPECT_TRUE(sent(pair(IBV_WC_SUCCESS, atomic_write)));
	EXPECT_FALSE(sent(pair(IBV_WC_SUCCESS, IBV_WC_RECV)));
	EXPECT_FALSE(sent(pair(IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM)));
	EXPECT_FALSE(sent(pair(IBV_WC_WR_FLUSH_ERR, IBV_WC_RDMA_WRITE)));
}

TEST(RxeFormat, EveryStatusOfVerbsHasOneOfOurs)
{
	EXPECT_EQ(status_of(IBV_WC_LOC_LEN_ERR), NDA_LOCAL_LENGTH);
	EXPECT_EQ(status_of(IBV_WC_LOC_QP_OP_ERR), NDA_LOCAL_QP);
	EXPECT_EQ(status_of(IBV_WC_LOC_PROT_ERR), NDA_LOCAL_PROTECTION);
	EXPECT_EQ(status_of(IBV_WC_WR_FLUSH_ERR), NDA_FLUSHED);
	EXPECT_EQ(status_of(IBV_WC_BAD_RESP_ERR), NDA_BAD_RESPONSE);
	EXPECT_EQ(status_of(IBV_WC_LOC_ACCESS_ERR), NDA_LOCAL_ACCESS);
	EXPECT_EQ(status_of(IBV_WC_REM_INV_REQ_ERR), NDA_REMOTE_INVALID);
	EXPECT_EQ(status_of(IBV_WC_REM_ACCESS_ERR), NDA_REMOTE_ACCESS);
	EXPECT_EQ(status_of(IBV_WC_REM_OP_ERR), NDA_REMOTE_OPERATION);
	EXPECT_EQ(status_of(IBV_WC_RETRY_EXC_ERR), NDA_RETRY_EXCEEDED);
	EXPECT_EQ(status_of(IBV_WC_RNR_RETRY_EXC_ERR), NDA_RNR_RETRY_EXCEEDED);
	EXPECT_EQ(status_of(IBV_WC_REM_ABORT_ERR), NDA_REMOTE_ABORTED);
	EXPECT_EQ(status_of(IBV_WC_MW_BIND_ERR), NDA_GENERAL_ERROR);
	EXPECT_EQ(status_of(IBV_WC_GENERAL_ERR), NDA_GENERAL_ERROR);
}

TEST(RxeFormat, NoNumberOfAnErrorIsTakenForSuccess)
{
	for (uint32_t status = 0; status < 300; status++)
		EXPECT_NE(status_of(status), NDA_OK) << status;
	EXPECT_EQ(status_of(UINT32_MAX), NDA_GENERAL_ERROR);
}

} // namespace
