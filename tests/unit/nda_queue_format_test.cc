// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What a published table says of a queue, from what its extension driver gives.
#include <gtest/gtest.h>

#include "lib/nda/queue_format.h"

#include <nda/aiv/xscale_state.h>

namespace nda {
namespace {

namespace format = hw::xscale;

// An XSCALE queue: no records, doorbells for SQ and CQ, the CQ's number in its first
// reserved word.
class XscaleQueue : public ::testing::Test {
protected:
	XscaleQueue()
	{
		base_qp_.qp_num = 0x9001;
		qp_.qp = &base_qp_;
		qp_.sq_info.qbuf = {0x100000, 1024, 128, {}};
		qp_.sq_info.db_hw_va = {0x200000, 8};
		cq_.cq_info.qbuf = {0x300000, 2048, 64, {}};
		cq_.cq_info.db_hw_va = {0x400000, 8};
		cq_.resv[0] = 0x8050;
		source_.qp = &qp_;
		source_.cq = &cq_;
		source_.doorbell = 0x500000;
		source_.signal_every = 1;
		source_.remote_delta = 0x7000;
		source_.lkey = 0x95263748;
		source_.rkey = 0xa1b2c3d4;
	}

	bool describe() { return describe_queue(NDA_FORMAT_XSCALE, source_, queue_); }

	ibv_qp base_qp_ = {};
	ibv_qp_extend qp_ = {};
	ibv_cq_extend cq_ = {};
	QueueSource source_ = {};
	nda_queue queue_ = {};
};

TEST_F(XscaleQueue, HasItsDoorbellsAndTheChoicesThatNoSourceSettles)
{
	ASSERT_TRUE(describe());
	EXPECT_EQ(queue_.sq_base, 0x100000u);
	EXPECT_EQ(queue_.sq_doorbell, 0x500000u);
	EXPECT_EQ(queue_.doorbell_template, format::doorbell_template(0x9001));
	EXPECT_EQ(queue_.cq_base, 0x300000u);
	EXPECT_EQ(queue_.xscale.cq_doorbell, 0x400000u);
	EXPECT_EQ(queue_.xscale.cq_doorbell_template,
		format::cq_doorbell_template(0x8050, format::cq_keep));
	EXPECT_EQ(queue_.xscale.atomics, 0); // masked forms
	EXPECT_EQ(queue_.key_words[0], uint64_t{0xa1b2c3d4} << 32);
	EXPECT_EQ(queue_.key_words[1], uint64_t{0x95263748} << 32);
	EXPECT_EQ(queue_.state.head, 0u);
	EXPECT_EQ(queue_.state.next_slot, 0x100000u);
	EXPECT_EQ(queue_.state.limit, 1023u);
}

TEST_F(XscaleQueue, IsRefusedWithoutARegisterForItsCq)
{
	cq_.cq_info.db_hw_va = {0, 0};
	EXPECT_FALSE(describe());
}

TEST_F(XscaleQueue, IsRefusedWithADepthThatIsNoPowerOfTwo)
{
	cq_.cq_info.qbuf.entry_cnt = 31 * 1024;
	EXPECT_FALSE(describe());
	EXPECT_EQ(queue_.cq_depth, 31u * 1024);
}

TEST_F(XscaleQueue, IsRefusedWithANumberThatDoorbellsHaveNoRoomFor)
{
	base_qp_.qp_num = 0x10001;
	EXPECT_FALSE(describe());
	base_qp_.qp_num = 0xffff;
	EXPECT_TRUE(describe());
	cq_.resv[0] = 0x10000;
	EXPECT_FALSE(describe());
}

// A ring of zeros would read as successes, and its driver does not touch it in NPU memory.
TEST_F(XscaleQueue, NeedsACompletionRingThatIsPreset)
{
	const int byte = cq_fill(NDA_FORMAT_XSCALE);
	ASSERT_GE(byte, 0);
	const uint64_t word = static_cast<uint64_t>(byte) * 0x0101010101010101u;
	EXPECT_FALSE(format::cqe_ready(word, 0, 1024));
	EXPECT_LT(cq_fill(NDA_FORMAT_HNS1825), 0);
}

// An IN_DIE queue: a doorbell and perhaps a record for the SQ; for the CQ a record or a
// doorbell. Doorbells are literal: QP 0x1234 at service level 4 rings
// 0x0004200400001234 for the index 8196, and the Linux driver's CQ 0x4c9e6d
// 0x02ffffff034c9e6d for 0xffffff.
class InDieQueue : public ::testing::Test {
protected:
	InDieQueue()
	{
		base_qp_.qp_num = 0x1234;
		qp_.qp = &base_qp_;
		qp_.sq_info.qbuf = {0x100000, 8192, 64, {}};
		qp_.sq_info.dbr_pi_va = {0x180000, 4};
		cq_.cq_info.qbuf = {0x300000, 8192, 32, {}};
		cq_.cq_info.dbr_ci_va = {0x380000, 4};
		cq_.cq_info.db_hw_va = {0x400000, 8};
		cq_.resv[0] = 0x4c9e6d;
		source_.qp = &qp_;
		source_.cq = &cq_;
		source_.doorbell = 0x500000;
		source_.signal_every = 1;
		source_.service_level = 4;
		source_.remote_delta = 0x7000;
		source_.lkey = 0x15263748;
		source_.rkey = 0xa1b2c3d4;
	}

	bool describe() { return describe_queue(NDA_FORMAT_IN_DIE, source_, queue_); }

	ibv_qp base_qp_ = {};
	ibv_qp_extend qp_ = {};
	ibv_cq_extend cq_ = {};
	QueueSource source_ = {};
	nda_queue queue_ = {};
};

TEST_F(InDieQueue, WithRecordsHasThem)
{
	ASSERT_TRUE(describe());
	EXPECT_EQ(queue_.qpn, 0x1234u);
	EXPECT_EQ(queue_.sq_base, 0x100000u);
	EXPECT_EQ(queue_.sq_depth, 8192u);
	EXPECT_EQ(queue_.sq_record, 0x180000u);
	EXPECT_EQ(queue_.sq_doorbell, 0x500000u);
	EXPECT_EQ(queue_.doorbell_template | uint64_t{0x2004} << 32, 0x0004200400001234u);
	EXPECT_EQ(queue_.cq_base, 0x300000u);
	EXPECT_EQ(queue_.cq_depth, 8192u);
	EXPECT_EQ(queue_.cqe_stride, 32u);
	EXPECT_EQ(queue_.cq_record, 0x380000u);
	EXPECT_EQ(queue_.in_die.cq_doorbell, 0u);
	EXPECT_EQ(queue_.remote_delta, 0x7000u);
	// The WQE's words from 16 on: rkey above, lkey above the length.
	EXPECT_EQ(queue_.key_words[0], 0xa1b2c3d400000000u);
	EXPECT_EQ(queue_.key_words[1], 0x1526374800000000u);
	EXPECT_EQ(queue_.state.head, 0u);
	EXPECT_EQ(queue_.state.cq_ci, 0u);
}

TEST_F(InDieQueue, WithoutARecordForItsCqRingsIt)
{
	cq_.cq_info.dbr_ci_va = {0, 0};
	ASSERT_TRUE(describe());
	EXPECT_EQ(queue_.cq_record, 0u);
	EXPECT_EQ(queue_.in_die.cq_doorbell, 0x400000u);
	EXPECT_EQ(
		queue_.in_die.cq_template | uint64_t{0xffffff} << 32, 0x02ffffff034c9e6du);
}

TEST_F(InDieQueue, WithNeitherIsRefused)
{
	cq_.cq_info.dbr_ci_va = {0, 0};
	cq_.cq_info.db_hw_va = {0, 0};
	EXPECT_FALSE(describe());
}

TEST_F(InDieQueue, NeedsNoRecordForItsSq)
{
	qp_.sq_info.dbr_pi_va = {0, 0};
	ASSERT_TRUE(describe());
	EXPECT_EQ(queue_.sq_record, 0u);
}

TEST_F(InDieQueue, WithoutADoorbellIsRefused)
{
	source_.doorbell = 0;
	EXPECT_FALSE(describe());
}

TEST_F(InDieQueue, WithADepthThatIsNoPowerOfTwoIsRefused)
{
	qp_.sq_info.qbuf.entry_cnt = 8191;
	EXPECT_FALSE(describe());
}

TEST_F(InDieQueue, WhoseDriverDoesNotSayHasTheStandardCqe)
{
	cq_.cq_info.qbuf.entry_size = 0;
	ASSERT_TRUE(describe());
	EXPECT_EQ(queue_.cqe_stride, 32u);
}

} // namespace
} // namespace nda
