/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Batches: many WQEs, one doorbell. */
#include <string.h>

#include <tests/mock/aiv_one_core.h>

namespace {

using namespace nda;
using namespace nda::test;

TEST(AivBatch, RingsOnceForAll)
{
	OneCore s;
	auto batch = s.device.batch(pe);

	for (uint32_t i = 0; i < 16; i++)
		ASSERT_EQ(batch.put_nbi(s.dst + 8 * i, s.src + 8 * i, 8), NDA_OK);
	EXPECT_TRUE(s.doorbells().empty());
	EXPECT_EQ(s.rig.sq_record(pe), 0u);
	ASSERT_EQ(batch.submit(), NDA_OK);
	EXPECT_EQ(s.doorbells().size(), 1u);
	EXPECT_EQ(s.rig.sq_record(pe), 16u);
	EXPECT_EQ(s.rig.nic_run(pe), 16u);
	for (uint32_t i = 0; i < 16; i++)
		EXPECT_EQ(s.wqe(i).remote_va, s.dst + 8 * i + s.options.remote_delta);
}

TEST(AivBatch, PostsTheBytesThatSinglePutsDo)
{
	OneCore one, many;
	auto batch = many.device.batch(pe);

	for (uint64_t n : {8u, 4096u, 1u}) {
		ASSERT_EQ(one.device.put_nbi(pe, one.dst, one.src, n), NDA_OK);
		ASSERT_EQ(one.device.get_nbi(pe, one.dst, one.src, n), NDA_OK);
		ASSERT_EQ(batch.put_nbi(many.dst, many.src, n), NDA_OK);
		ASSERT_EQ(batch.get_nbi(many.dst, many.src, n), NDA_OK);
	}
	batch.submit();
	EXPECT_EQ(memcmp(one.rig.sq(pe), many.rig.sq(pe), 6 * 64 + 1), 0);
	EXPECT_EQ(one.queue().state.next_slot - one.queue().sq_base,
		many.queue().state.next_slot - many.queue().sq_base);
	EXPECT_EQ(one.queue().state.head, many.queue().state.head);
	EXPECT_EQ(one.queue().state.limit, many.queue().state.limit);
	EXPECT_EQ(one.queue().state.next_word0, many.queue().state.next_word0);
	EXPECT_EQ(one.doorbells().back(), many.doorbells().back());
}

TEST(AivBatch, OneDoorbellAcrossTheEndOfTheRingAndOfADoorbellByte)
{
	RigOptions options = with_depth(64);
	options.start = 250;
	OneCore s(options);

	for (int round = 0; round < 10; round++) {
		auto batch = s.device.batch(pe);

		for (uint32_t i = 0; i < 16; i++)
			ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK);
		ASSERT_EQ(batch.submit(), NDA_OK);
		ASSERT_EQ(s.rig.nic_run(pe), 16u);
		ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	}
	EXPECT_EQ(s.doorbells().size(), 10u);
}

TEST(AivBatch, OneDoorbellWithACompletionEveryKth)
{
	OneCore s(with_signal(4));

	auto batch = s.device.batch(pe);
	for (uint32_t i = 0; i < 16; i++)
		ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK);
	ASSERT_EQ(batch.submit(), NDA_OK);
	EXPECT_EQ(s.doorbells().size(), 1u);
	for (uint32_t i = 0; i < 16; i++)
		EXPECT_EQ(s.wqe(i).completion, (i + 1) % 4 == 0);
}

TEST(AivBatch, NothingPostedRingsNothing)
{
	OneCore s;

	auto batch = s.device.batch(pe);
	EXPECT_EQ(batch.put_nbi(s.dst, s.src, 0), NDA_OK);
	EXPECT_EQ(batch.submit(), NDA_OK);
	EXPECT_TRUE(s.doorbells().empty());
	EXPECT_EQ(s.put(), NDA_OK);
}

TEST(AivBatch, AnOperationThatPostsNothingLeavesItsPlace)
{
	OneCore s;
	auto batch = s.device.batch(pe);

	for (uint32_t i = 0; i < 5; i++) {
		ASSERT_EQ(batch.put_nbi(s.dst + i, s.src, 8), NDA_OK);
		ASSERT_EQ(batch.put_nbi(s.dst, s.src, 0), NDA_OK);
	}
	ASSERT_EQ(batch.submit(), NDA_OK);
	ASSERT_EQ(s.rig.nic_run(pe), 5u);
	for (uint32_t i = 0; i < 5; i++)
		EXPECT_EQ(s.wqe(i).remote_va, s.dst + i + s.options.remote_delta);
}

TEST(AivBatch, AFullRingIsRungForBeforeWaiting)
{
	OneCore s(with_depth(8));

	s.recorder.on_relax = [&] { s.rig.nic_run(pe); };
	auto batch = s.device.batch(pe);
	for (uint32_t i = 0; i < 50; i++)
		ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK) << i;
	ASSERT_EQ(batch.submit(), NDA_OK);
	s.rig.nic_run(pe);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.queue().state.tail, 50u);
}

TEST(AivBatch, AFullRingThatStaysFullTimesOutAndCanStillBeSubmitted)
{
	OneCore s(with_depth(8));

	auto batch = s.device.batch(pe);
	for (uint32_t i = 0; i < 7; i++)
		ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK);
	EXPECT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_TIMEOUT);
	EXPECT_EQ(batch.submit(), NDA_OK);
	EXPECT_EQ(s.doorbells().size(), 1u);
	EXPECT_EQ(s.rig.nic_run(pe), 7u);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

TEST(AivBatch, WhileOpenTheQueueTakesNothingElse)
{
	OneCore s;
	auto batch = s.device.batch(pe);

	ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK);
	EXPECT_EQ(s.put(), NDA_INVALID);
	EXPECT_EQ(s.device.get_nbi(pe, s.dst, s.src, 8), NDA_INVALID);
	EXPECT_EQ(s.device.quiet(pe), NDA_INVALID);
	EXPECT_EQ(s.device.fence(pe), NDA_INVALID);
	{
		auto second = s.device.batch(pe);
		EXPECT_EQ(second.put_nbi(s.dst, s.src, 8), NDA_INVALID);
		EXPECT_EQ(second.submit(), NDA_INVALID);
	}
	ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK);
	ASSERT_EQ(batch.submit(), NDA_OK);
	EXPECT_EQ(s.queue().state.head, 2u);
	EXPECT_EQ(s.put(), NDA_OK);
	EXPECT_EQ(s.rig.nic_run(pe), 3u);
}

TEST(AivBatch, IsSubmittedAtTheEndOfItsLife)
{
	OneCore s;

	{
		auto batch = s.device.batch(pe);
		ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK);
	}
	EXPECT_EQ(s.doorbells().size(), 1u);
	EXPECT_EQ(s.rig.nic_run(pe), 1u);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

TEST(AivBatch, GoesOnAfterASubmit)
{
	OneCore s;
	auto batch = s.device.batch(pe);

	for (uint32_t i = 1; i <= 20; i++) {
		ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK);
		ASSERT_EQ(batch.get_nbi(s.dst, s.src, 8), NDA_OK);
		ASSERT_EQ(batch.submit(), NDA_OK);
		EXPECT_EQ(batch.submit(), NDA_INVALID) << "nothing open";
		ASSERT_EQ(s.rig.nic_run(pe), 2u);
		ASSERT_EQ(s.device.quiet(pe), NDA_OK);
		EXPECT_EQ(s.doorbells().size(), i);
	}
}

TEST(AivBatch, SeesWhatHappenedToTheQueueBetweenSubmits)
{
	OneCore s;
	auto batch = s.device.batch(pe);

	ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK);
	ASSERT_EQ(batch.submit(), NDA_OK);
	s.put_many(3);
	ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK);
	ASSERT_EQ(batch.submit(), NDA_OK);
	EXPECT_EQ(s.rig.nic_run(pe), 5u);
	s.put_many(1);
	s.rig.nic_fail(pe, format::syndrome_remote_access);
	ASSERT_EQ(s.device.quiet(pe), NDA_REMOTE_ACCESS);
	EXPECT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_REMOTE_ACCESS);
}

TEST(AivBatch, ItsFirstWqeCarriesAFenceThatIsPending)
{
	OneCore s;

	ASSERT_EQ(s.device.get_nbi(pe, s.dst, s.src, 8), NDA_OK);
	ASSERT_EQ(s.device.fence(pe), NDA_OK);
	auto batch = s.device.batch(pe);
	ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK);
	ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK);
	ASSERT_EQ(batch.submit(), NDA_OK);
	EXPECT_EQ(s.wqe(1).fence, 1);
	EXPECT_EQ(s.wqe(2).fence, 0);
	EXPECT_EQ(s.rig.nic_run(pe), 3u);
}

TEST(AivBatch, PutSubmitAsksForACompletionAndRings)
{
	OneCore s(with_signal(32));
	auto batch = s.device.batch(pe);

	ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK);
	ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK);
	ASSERT_EQ(batch.put_submit(s.dst, s.src, 8), NDA_OK);
	EXPECT_EQ(s.doorbells().size(), 1u);
	EXPECT_EQ(s.wqe(1).completion, 0);
	EXPECT_EQ(s.wqe(2).completion, 1);
	ASSERT_EQ(batch.get_submit(s.dst, s.src, 8), NDA_OK);
	EXPECT_EQ(s.wqe(3).completion, 1);
	EXPECT_EQ(s.rig.nic_run(pe), 4u);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.queue().state.head, 4u) << "quiet had nothing to post";
}

TEST(AivBatch, SplitsAndRefusesAsThePlainCallsDo)
{
	OneCore s;

	{
		auto batch = s.device.batch(pe);
		ASSERT_EQ(batch.put_nbi(s.dst, s.src, 2 * uint64_t{format::max_length}),
			NDA_OK);
		ASSERT_EQ(batch.submit(), NDA_OK);
		EXPECT_EQ(s.queue().state.head, 2u);
	}
	auto nobody = s.device.batch(9);
	EXPECT_EQ(nobody.put_nbi(s.dst, s.src, 8), NDA_INVALID);
	EXPECT_EQ(nobody.submit(), NDA_INVALID);
	auto self = s.device.batch(0);
	EXPECT_EQ(self.put_nbi(s.dst, s.src, 8), NDA_INVALID);
}

} // namespace
