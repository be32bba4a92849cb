// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What a published table says of an XSCALE queue, from what its extension driver gives: no
// records, doorbells for SQ and CQ, the CQ's number in its first reserved word.
#include <gtest/gtest.h>

#include "lib/nda/queue_format.h"

#include <nda/aiv/xscale_state.h>

namespace nda {
namespace {

namespace format = hw::xscale;

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

} // namespace
} // namespace nda
