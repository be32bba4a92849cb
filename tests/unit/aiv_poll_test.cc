/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Consuming completions: polling, quiet, errors and deadlines. */
#include <tests/mock/aiv_one_core.h>

namespace {

using namespace nda;
using namespace nda::test;
using Queue = aiv::hns1825::Queue<RecordingCore>;

Queue queue_of(OneCore &s)
{
	return Queue(
		s.device.core(), s.device.queue_address(pe), {s.options.timeout_us, 0});
}

TEST(AivQuiet, NothingPostedIsDoneAtOnce)
{
	OneCore s;

	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.device.quiet(), NDA_OK);
	EXPECT_EQ(s.recorder.relaxed, 0u);
	EXPECT_TRUE(s.recorder.stores.empty());
}

TEST(AivQuiet, WaitsForTheLastCompletionAndPublishesTheConsumerIndex)
{
	OneCore s;

	s.put_many(5);
	s.recorder.on_relax = [&] { s.rig.nic_run(pe, 1); };
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.queue().state.tail, 5u);
	EXPECT_EQ(s.queue().state.cq_ci, 5u);
	EXPECT_EQ(s.rig.cq_record(pe), 5u);
}

TEST(AivQuiet, TheTableSetsItsDeadlineByTheClock)
{
	RigOptions options;
	options.timeout_us = 250;
	OneCore s(options);

	s.put_many(1);
	EXPECT_EQ(s.device.quiet(pe), NDA_TIMEOUT);
	EXPECT_GE(s.recorder.now_ns, 250000u);
	EXPECT_LE(s.recorder.now_ns, 260000u);
}

TEST(AivQuiet, ATimeoutIsNotSticky)
{
	OneCore s;

	s.put_many(2);
	EXPECT_EQ(s.device.quiet(pe), NDA_TIMEOUT);
	EXPECT_EQ(s.queue().state.error.status, uint32_t{NDA_OK});
	s.rig.nic_run(pe);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.put(), NDA_OK);
}

TEST(AivQuiet, ATimeoutKeepsWhatWasConsumed)
{
	OneCore s;

	s.put_many(5);
	s.rig.nic_run(pe, 3);
	EXPECT_EQ(s.device.quiet(pe), NDA_TIMEOUT);
	EXPECT_EQ(s.queue().state.tail, 3u);
	EXPECT_EQ(s.rig.cq_record(pe), 3u);
}

TEST(AivQuiet, WhoeverWasKeptOffTheProcessorGetsALastLook)
{
	OneCore s;

	s.put_many(1);
	/* One round takes longer than the deadline, and the completion comes in it. */
	s.recorder.on_relax = [&] {
		s.recorder.now_ns += 10000000;
		if (s.recorder.relaxed == 2)
			s.rig.nic_run(pe);
	};
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

TEST(AivQuiet, AllPesShareOneDeadline)
{
	RigOptions options;
	options.n_pes = 5;
	OneCore s(options);

	for (uint32_t to = 1; to < 5; to++)
		ASSERT_EQ(s.device.put_nbi(to, s.dst, s.src, 8), NDA_OK);
	EXPECT_EQ(s.device.quiet(), NDA_TIMEOUT);
	EXPECT_LE(s.recorder.now_ns, 1100000u);
}

TEST(AivQuiet, AllPesShareOneDeadlineWhereTheRingHasNoPlaceForTheLastRead)
{
	RigOptions options;
	options.n_pes = 5;
	options.signal_every = 2;
	OneCore s(options);

	for (uint32_t to = 1; to < 5; to++)
		for (uint32_t i = 0; i < options.sq_depth - 1; i++)
			ASSERT_EQ(s.device.put_nbi(to, s.dst, s.src, 8), NDA_OK);
	EXPECT_EQ(s.device.quiet(), NDA_TIMEOUT);
	EXPECT_LE(s.recorder.now_ns, 1100000u);
}

TEST(AivQuiet, AllPesAreDrainedBehindOneThatFails)
{
	RigOptions options;
	options.n_pes = 4;
	OneCore s(options);

	for (uint32_t to = 1; to < 4; to++)
		ASSERT_EQ(s.device.put_nbi(to, s.dst, s.src, 8), NDA_OK);
	s.rig.nic_fail(1, format::syndrome_remote_access);
	s.rig.nic_fail(2, format::syndrome_retry_exceeded);
	s.rig.nic_run(3);
	EXPECT_EQ(s.device.quiet(), NDA_REMOTE_ACCESS);
	EXPECT_EQ(s.rig.queue(3).state.tail, 1u);
	EXPECT_EQ(s.device.quiet(3), NDA_OK);
	EXPECT_EQ(s.device.quiet(2), NDA_RETRY_EXCEEDED);
}

TEST(AivPoll, TargetZeroAfterAWrapIsWaitedFor)
{
	RigOptions options;
	options.start = 0xfffffffd;
	OneCore s(options);

	s.put_many(3);
	s.rig.nic_run(pe);
	EXPECT_EQ(queue_of(s).poll_cq(0), NDA_OK);
	EXPECT_EQ(s.queue().state.cq_ci, 0u);
}

TEST(AivPoll, ATargetThatIsBehindReturnsAtOnce)
{
	OneCore s;

	s.put_many(4);
	s.rig.nic_run(pe);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(queue_of(s).poll_cq(2), NDA_OK);
	EXPECT_EQ(s.recorder.relaxed, 0u);
}

TEST(AivPoll, ConsumesNoMoreThanItsTarget)
{
	OneCore s;

	s.put_many(4);
	s.rig.nic_run(pe);
	EXPECT_EQ(queue_of(s).poll_cq(2), NDA_OK);
	EXPECT_EQ(s.queue().state.cq_ci, 2u);
	EXPECT_EQ(s.queue().state.tail, 2u);
	EXPECT_EQ(s.rig.cq_record(pe), 2u);
}

TEST(AivPoll, TimesOutByTheClock)
{
	OneCore s;

	s.put_many(1);
	EXPECT_EQ(queue_of(s).poll_cq(1), NDA_TIMEOUT);
	EXPECT_GE(s.recorder.now_ns, s.options.timeout_us * uint64_t{1000});
}

TEST(AivPoll, GoesOverTheEndOfTheRingManyTimes)
{
	RigOptions options = with_depth(8);
	options.cqe_stride = 32;
	OneCore s(options);

	for (uint32_t i = 0; i < 50; i++) {
		s.put_many(5);
		ASSERT_EQ(s.rig.nic_run(pe), 5u);
		ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	}
	EXPECT_EQ(s.queue().state.cq_ci, 250u);
}

/* A NIC that writes the completion between two looks: whoever decides by two loads may see
 * an old owner and a new operation, or the reverse. */
TEST(AivPoll, ACompletionThatArrivesDuringALookIsSeenWholeOrNotAtAll)
{
	RigOptions options = with_depth(8);
	options.start = 8;
	OneCore s(options);
	uint64_t first = s.queue().cq_base;
	unsigned looks = 0;

	s.put_many(1);
	s.recorder.before_look = [&](uint64_t addr) {
		if (addr != first)
			return; /* the word that ends waits */
		if (looks++ == 3)
			s.rig.nic_run(pe);
	};
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(looks, 4u);
}

/* ---- Errors ---- */

TEST(AivError, IsConsumedPublishedAndLatched)
{
	OneCore s;

	s.put_many(3);
	ASSERT_EQ(s.rig.nic_run(pe, 1), 1u);
	s.rig.nic_complete(pe, 1, format::syndrome_remote_access, 0, true, 0x77);
	s.rig.nic_complete(pe, 2, format::syndrome_flushed);
	EXPECT_EQ(s.device.quiet(pe), NDA_REMOTE_ACCESS);
	const nda_queue_state &state = s.queue().state;
	EXPECT_EQ(state.error.status, uint32_t{NDA_REMOTE_ACCESS});
	EXPECT_EQ(state.error.raw_status, format::syndrome_remote_access);
	EXPECT_EQ(state.error.raw_vendor, 0x77);
	EXPECT_EQ(state.error.wqe_index, 1);
	EXPECT_EQ(state.tail, 3u);
	EXPECT_EQ(state.cq_ci, 3u);
	EXPECT_EQ(s.rig.cq_record(pe), 3u);
}

TEST(AivError, PollStopsAfterTheFirstAndHasPublishedIt)
{
	OneCore s;

	s.put_many(4);
	s.rig.nic_run(pe, 1);
	s.rig.nic_fail(pe, format::syndrome_local_protection);
	EXPECT_EQ(queue_of(s).poll_cq(4), NDA_LOCAL_PROTECTION);
	EXPECT_EQ(s.queue().state.cq_ci, 2u);
	EXPECT_EQ(s.rig.cq_record(pe), 2u);
	/* The next poll goes on with the flushed ones. */
	EXPECT_EQ(queue_of(s).poll_cq(4), NDA_FLUSHED);
	EXPECT_EQ(s.queue().state.cq_ci, 3u);
	EXPECT_EQ(s.queue().state.error.status, uint32_t{NDA_LOCAL_PROTECTION});
}

TEST(AivError, SyndromeZeroIsAnError)
{
	OneCore s;

	s.put_many(1);
	s.rig.nic_complete(pe, 0, 0, 0, true);
	EXPECT_EQ(s.device.quiet(pe), NDA_GENERAL_ERROR);
	EXPECT_EQ(s.queue().state.error.raw_status, 0);
}

TEST(AivError, LaterPostsFailFastWithItsStatus)
{
	OneCore s;

	s.put_many(2);
	s.rig.nic_fail(pe, format::syndrome_retry_exceeded);
	ASSERT_EQ(s.device.quiet(pe), NDA_RETRY_EXCEEDED);
	s.recorder.stores.clear();
	for (int i = 0; i < 300; i++)
		ASSERT_EQ(s.put(), NDA_RETRY_EXCEEDED);
	EXPECT_EQ(s.device.get_nbi(pe, s.dst, s.src, 8), NDA_RETRY_EXCEEDED);
	EXPECT_EQ(s.device.put(pe, s.dst, s.src, 8), NDA_RETRY_EXCEEDED);
	EXPECT_EQ(s.device.fence(pe), NDA_RETRY_EXCEEDED);
	auto batch = s.device.batch(pe);
	EXPECT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_RETRY_EXCEEDED);
	EXPECT_EQ(batch.submit(), NDA_OK);
	EXPECT_TRUE(s.doorbells().empty());
	EXPECT_EQ(s.queue().state.head, 2u);
	EXPECT_EQ(s.recorder.relaxed, 0u);
}

TEST(AivError, TheFirstOneStays)
{
	OneCore s;

	s.put_many(3);
	s.rig.nic_fail(pe, format::syndrome_rnr_retry_exceeded);
	EXPECT_EQ(s.device.quiet(pe), NDA_RNR_RETRY_EXCEEDED);
	EXPECT_EQ(s.device.quiet(pe), NDA_RNR_RETRY_EXCEEDED);
	EXPECT_EQ(s.queue().state.error.wqe_index, 0);
}

TEST(AivError, FoundWhileWaitingForCreditIsThePostsStatus)
{
	OneCore s(with_depth(8));

	s.put_many(7);
	s.rig.nic_fail(pe, format::syndrome_remote_invalid);
	EXPECT_EQ(s.put(), NDA_REMOTE_INVALID);
	EXPECT_EQ(s.queue().state.head, 7u);
	EXPECT_EQ(s.device.quiet(pe), NDA_REMOTE_INVALID);
	EXPECT_EQ(s.queue().state.tail, 7u);
}

TEST(AivError, QuietDoesNotWaitForFlushesOfWhatAskedForNoCompletion)
{
	OneCore s(with_signal(4));

	s.put_many(6);
	/* The fourth fails; this NIC says nothing of the two after it. */
	s.rig.nic_run(pe, 3);
	s.rig.nic_complete(pe, 3, format::syndrome_remote_access);
	s.recorder.on_relax = [&] { ADD_FAILURE() << "waits"; };
	EXPECT_EQ(queue_of(s).poll_cq(1), NDA_REMOTE_ACCESS);
	EXPECT_EQ(s.device.quiet(pe), NDA_REMOTE_ACCESS);
}

TEST(AivError, AnUnsignalledWqeThatFailsIsSeen)
{
	OneCore s(with_signal(8));

	s.put_many(3);
	s.rig.nic_run(pe, 1);
	s.recorder.on_relax = [&] {
		if (s.rig.nic_next(pe) == 1)
			s.rig.nic_fail(pe, format::syndrome_local_length);
	};
	EXPECT_EQ(s.device.quiet(pe), NDA_LOCAL_LENGTH);
	EXPECT_EQ(s.queue().state.error.wqe_index, 1);
}

TEST(AivError, ACompletionOfAWqeThatIsNotOutstandingIsNotBelieved)
{
	OneCore s;

	s.put_many(2);
	s.rig.nic_complete(pe, 7);
	s.recorder.on_relax = [&] { ADD_FAILURE() << "waits"; };
	EXPECT_EQ(s.device.quiet(pe), NDA_BAD_RESPONSE);
	EXPECT_EQ(s.queue().state.tail, 0u);
	EXPECT_EQ(s.queue().state.error.wqe_index, 7);
	EXPECT_EQ(s.put(), NDA_BAD_RESPONSE);
}

TEST(AivError, MoreCompletionsThanWqesAreNotBelieved)
{
	OneCore s;

	s.put_many(4);
	for (int i = 0; i < 3; i++)
		s.rig.nic_complete(pe, 0);
	s.recorder.on_relax = [&] { ADD_FAILURE() << "waits"; };
	EXPECT_EQ(s.device.quiet(pe), NDA_BAD_RESPONSE);
	EXPECT_EQ(s.queue().state.tail, 0u);
}

TEST(AivError, OfOnePeLeavesTheOthersAlone)
{
	RigOptions options;
	options.n_pes = 3;
	OneCore s(options);

	s.put_many(1);
	s.rig.nic_fail(pe, format::syndrome_remote_aborted);
	ASSERT_EQ(s.device.quiet(pe), NDA_REMOTE_ABORTED);
	ASSERT_EQ(s.device.put_nbi(2, s.dst, s.src, 8), NDA_OK);
	s.rig.nic_run(2);
	EXPECT_EQ(s.device.quiet(2), NDA_OK);
}

TEST(AivPut, PutAndGetWaitForTheirCompletion)
{
	OneCore s;

	s.recorder.on_relax = [&] { s.rig.nic_run(pe); };
	EXPECT_EQ(s.device.put(pe, s.dst, s.src, 8), NDA_OK);
	EXPECT_EQ(s.device.get(pe, s.dst, s.src, 8), NDA_OK);
	EXPECT_EQ(s.queue().state.tail, 2u);
}

} // namespace
