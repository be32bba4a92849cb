/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Posting to a queue: what is written, in what order, and what is refused. */
#include <stdint.h>
#include <string.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tests/mock/aiv_one_core.h>

namespace {

using namespace nda;
using namespace nda::test;

TEST(AivPost, APutIsAWriteOfTheTranslatedAddressWithTheHeapsKeys)
{
	OneCore s;

	ASSERT_EQ(s.put(24), NDA_OK);
	format::wqe w = s.wqe(0);
	EXPECT_EQ(w.opcode, format::op_write);
	EXPECT_EQ(w.remote_va, s.dst + s.options.remote_delta);
	EXPECT_EQ(w.local_va, s.src);
	EXPECT_EQ(w.data_len, 24u);
	EXPECT_EQ(w.rkey, s.options.rkey);
	EXPECT_EQ(w.sge_lkey, s.options.lkey);
	EXPECT_EQ(w.completion, 1);
	EXPECT_EQ(w.fence, 0);
}

TEST(AivPost, AGetIsAReadFromTheTranslatedAddress)
{
	OneCore s;

	ASSERT_EQ(s.device.get_nbi(pe, s.src, s.dst, 4096), NDA_OK);
	format::wqe w = s.wqe(0);
	EXPECT_EQ(w.opcode, format::op_read);
	EXPECT_EQ(w.remote_va, s.dst + s.options.remote_delta);
	EXPECT_EQ(w.local_va, s.src);
	EXPECT_EQ(w.data_len, 4096u);
}

TEST(AivPost, MarkerThenWqeThenFirstWordThenRecordThenDoorbell)
{
	for (bool slow : {false, true}) {
		OneCore s;
		nda_queue &q = s.queue();
		std::vector<std::string> order;

		if (slow)
			q.state.limit = q.state.head;
		ASSERT_EQ(s.put(), NDA_OK);
		for (const Store &store : s.recorder.stores) {
			if (store.addr == q.sq_base + 64 && store.bytes == 1)
				order.push_back("marker");
			else if (store.addr == q.sq_base && store.kind == Store::release)
				order.push_back("valid");
			else if (store.addr > q.sq_base && store.addr < q.sq_base + 64)
				order.push_back("word");
			else if (store.addr == q.sq_record && store.kind == Store::release)
				order.push_back("record");
			else if (store.kind == Store::device)
				order.push_back("doorbell");
		}
		EXPECT_EQ(order,
			(std::vector<std::string>{"marker", "word", "word", "word", "word",
				"word", "word", "word", "valid", "record", "doorbell"}));
	}
}

TEST(AivPost, OnlyTheWqesSlotAndOneByteOfTheNextAreWritten)
{
	OneCore s(with_depth(8));

	s.put_many(7);
	s.rig.nic_run(pe);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	s.recorder.stores.clear();
	memset(s.rig.sq(pe) + 7 * 64, 0x11, 64);
	ASSERT_EQ(s.put(), NDA_OK); /* index 7: the next slot is 0 */
	for (const Store &store : s.recorder.stores) {
		uint64_t offset = store.addr - s.queue().sq_base;

		if (offset < 8 * 64) {
			EXPECT_TRUE(offset >= 7 * 64 || (offset == 0 && store.bytes == 1))
				<< offset;
		}
	}
}

TEST(AivPost, LengthZeroPostsNothing)
{
	OneCore s;

	EXPECT_EQ(s.put(0), NDA_OK);
	EXPECT_EQ(s.device.get_nbi(pe, s.dst, s.src, 0), NDA_OK);
	EXPECT_EQ(s.queue().state.head, 0u);
	EXPECT_TRUE(s.doorbells().empty());
}

TEST(AivPost, TheLargestLengthOfOneWqeIsNotSplit)
{
	OneCore s;

	ASSERT_EQ(s.put(format::max_length), NDA_OK);
	EXPECT_EQ(s.queue().state.head, 1u);
	EXPECT_EQ(s.wqe(0).data_len, format::max_length);
}

TEST(AivPost, LongerTransfersAreSplitWithoutAGap)
{
	OneCore s;
	uint64_t n = 3 * uint64_t{format::max_length} + 5;

	ASSERT_EQ(s.put(n), NDA_OK);
	ASSERT_EQ(s.queue().state.head, 4u);
	uint64_t done = 0;
	for (uint32_t i = 0; i < 4; i++) {
		format::wqe w = s.wqe(i);

		EXPECT_EQ(w.remote_va, s.dst + s.options.remote_delta + done);
		EXPECT_EQ(w.local_va, s.src + done);
		done += w.data_len;
	}
	EXPECT_EQ(done, n);
}

TEST(AivPost, ALengthWhoseLow32BitsAreSmallIsNotTruncated)
{
	OneCore s;

	ASSERT_EQ(s.put((uint64_t{1} << 32) + 8), NDA_OK);
	EXPECT_EQ(s.queue().state.head, 3u);
	EXPECT_EQ(s.wqe(0).data_len, format::max_length);
	EXPECT_EQ(s.wqe(2).data_len, 10u);
}

TEST(AivPost, AnUnknownPeAndTheOwnAreRefused)
{
	OneCore s;

	EXPECT_EQ(s.device.put_nbi(2, s.dst, s.src, 8), NDA_INVALID);
	EXPECT_EQ(s.device.put_nbi(UINT32_MAX, s.dst, s.src, 8), NDA_INVALID);
	EXPECT_EQ(s.device.put_nbi(0, s.dst, s.src, 8), NDA_INVALID);
	EXPECT_EQ(s.device.get_nbi(0, s.dst, s.src, 8), NDA_INVALID);
	EXPECT_EQ(s.device.quiet(0), NDA_INVALID);
	EXPECT_EQ(s.device.fence(7), NDA_INVALID);
	EXPECT_TRUE(s.recorder.stores.empty());
}

TEST(AivPost, TheRingTakesDepthMinusOneWqesAndThenTimesOut)
{
	for (uint32_t depth : {4u, 16u, 64u}) {
		OneCore s(with_depth(depth));

		s.put_many(depth - 1);
		size_t rung = s.doorbells().size();
		uint64_t before = s.recorder.now_ns;
		EXPECT_EQ(s.put(), NDA_TIMEOUT);
		EXPECT_GE(
			s.recorder.now_ns - before, s.options.timeout_us * uint64_t{1000});
		EXPECT_EQ(s.queue().state.head, depth - 1);
		EXPECT_EQ(s.doorbells().size(), rung);

		/* Not sticky: with credit it goes on. */
		ASSERT_EQ(s.rig.nic_run(pe, 1), 1u);
		EXPECT_EQ(s.put(), NDA_OK);
	}
}

TEST(AivPost, AFullRingPollsItsOwnCompletions)
{
	OneCore s(with_depth(16));

	s.put_many(15);
	s.recorder.on_relax = [&] { s.rig.nic_run(pe, 1); };
	s.put_many(100);
	EXPECT_EQ(s.queue().state.head, 115u);
}

TEST(AivPost, NoMoreIsOutstandingThanTheCqHolds)
{
	RigOptions options;
	options.sq_depth = 64;
	options.cq_depth = 8;
	OneCore s(options);

	s.put_many(7);
	EXPECT_EQ(s.put(), NDA_TIMEOUT);
	EXPECT_EQ(s.rig.nic_run(pe), 7u);
	EXPECT_EQ(s.put(), NDA_OK);
}

TEST(AivPost, AnUnconsumedSlotIsNeverTouched)
{
	OneCore s(with_depth(8));

	s.put_many(7);
	uint8_t ring[8 * 64];
	memcpy(ring, s.rig.sq(pe), sizeof(ring));
	EXPECT_EQ(s.put(), NDA_TIMEOUT);
	EXPECT_EQ(memcmp(ring, s.rig.sq(pe), sizeof(ring)), 0);
	/* One done: its slot becomes the marker, the other six stay. */
	ASSERT_EQ(s.rig.nic_run(pe, 1), 1u);
	ASSERT_EQ(s.put(), NDA_OK);
	EXPECT_EQ(memcmp(ring + 64, s.rig.sq(pe) + 64, 6 * 64), 0);
	EXPECT_EQ(s.rig.sq(pe)[0], format::invalid_marker(8, 8));
}

TEST(AivPost, IndicesWrapAt16And24And32Bits)
{
	for (uint32_t start : {0xffffu - 10, 0xffffffu - 10, 0xffffffffu - 10}) {
		RigOptions options = with_depth(16);
		options.start = start;
		OneCore s(options);

		for (uint32_t i = 0; i < 40; i++) {
			ASSERT_EQ(s.put(), NDA_OK);
			ASSERT_EQ(s.rig.nic_run(pe), 1u);
			if (i % 3 == 0) {
				ASSERT_EQ(s.device.quiet(pe), NDA_OK);
			}
		}
		ASSERT_EQ(s.device.quiet(pe), NDA_OK);
		EXPECT_EQ(s.queue().state.head, start + 40);
		EXPECT_EQ(s.queue().state.tail, start + 40);
		EXPECT_EQ(s.rig.cq_record(pe), (start + 40) & 0xffffff);
	}
}

TEST(AivPost, EveryDoorbellCarriesTheHighByteOfItsHead)
{
	RigOptions options = with_depth(1024);
	options.start = 0xfe80;
	OneCore s(options);
	std::vector<uint64_t> expected;

	for (uint32_t i = 1; i <= 600; i++)
		expected.push_back(format::doorbell_value(
			s.queue().doorbell_template, options.start + i));
	s.put_many(600);
	EXPECT_EQ(s.doorbells(), expected);
	EXPECT_EQ(s.rig.nic_run(pe), 600u);
}

TEST(AivPost, EachCoreHasItsOwnQueue)
{
	RigOptions options;
	options.n_cores = 3;
	options.n_pes = 3;
	OneCore s(options);
	Device third;

	ASSERT_EQ(third.open(RecordingCore(&s.recorder), s.rig.address(), 2), NDA_OK);
	ASSERT_EQ(third.put_nbi(2, s.dst, s.src, 8), NDA_OK);
	EXPECT_EQ(s.rig.queue(2, 2).state.head, 1u);
	EXPECT_EQ(s.rig.queue(2, 0).state.head, 0u);
	EXPECT_EQ(s.rig.queue(1, 2).state.head, 0u);
}

TEST(AivPost, MutableStateOfTwoQueuesNeverSharesALine)
{
	OneCore s;

	EXPECT_EQ(offsetof(nda_queue, state) % NDA_CACHE_LINE, 0u);
	EXPECT_EQ(sizeof(nda_queue_state), NDA_CACHE_LINE);
	EXPECT_EQ(s.device.queue_address(1) % NDA_CACHE_LINE, 0u);
}

/* ---- Completion every k-th WQE ---- */

TEST(AivSignal, OnlyEveryKthWqeAsksForACompletion)
{
	OneCore s(with_signal(4));

	s.put_many(12);
	for (uint32_t i = 0; i < 12; i++)
		EXPECT_EQ(s.wqe(i).completion, (i + 1) % 4 == 0) << i;
	EXPECT_EQ(s.rig.nic_run(pe), 12u);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.queue().state.tail, 12u);
	EXPECT_EQ(s.queue().state.cq_ci, 3u);
}

TEST(AivSignal, QuietEndsAnUnsignalledSeriesWithAReadOfScratch)
{
	OneCore s(with_signal(8));

	s.put_many(3);
	s.recorder.on_relax = [&] { s.rig.nic_run(pe); };
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	format::wqe w = s.wqe(3);
	EXPECT_EQ(w.opcode, format::op_read);
	EXPECT_EQ(w.completion, 1);
	EXPECT_EQ(w.data_len, 8u);
	EXPECT_EQ(w.remote_va, s.queue().scratch_remote);
	EXPECT_EQ(w.local_va, s.queue().scratch_local + NDA_SCRATCH_FLUSH);
	EXPECT_EQ(s.queue().state.tail, 4u);
	/* The next quiet has nothing to do. */
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.queue().state.head, 4u);
}

TEST(AivSignal, QuietPostsNothingAfterASignalledTail)
{
	OneCore s(with_signal(4));

	s.put_many(4);
	s.rig.nic_run(pe);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.queue().state.head, 4u);
}

TEST(AivSignal, CreditsComeBackWhateverTheInterval)
{
	for (uint32_t depth : {4u, 8u, 64u})
		for (uint32_t every = 1; every <= depth / 2; every++) {
			OneCore s(with_signal(every, depth));

			s.recorder.on_relax = [&] { s.rig.nic_run(pe); };
			s.put_many(5 * depth);
			EXPECT_EQ(s.device.quiet(pe), NDA_OK) << depth << " " << every;
			EXPECT_EQ(s.queue().state.tail, s.queue().state.head);
		}
}

TEST(AivSignal, AnIntervalAboveTheRingStillLeavesACompletion)
{
	OneCore s(with_signal(1000, 8));

	s.recorder.on_relax = [&] { s.rig.nic_run(pe); };
	s.put_many(50);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

/* ---- Fence ---- */

TEST(AivFence, TheNextWqeAndOnlyThatCarriesTheBit)
{
	OneCore s;

	ASSERT_EQ(s.device.get_nbi(pe, s.dst, s.src, 8), NDA_OK);
	ASSERT_EQ(s.device.fence(pe), NDA_OK);
	s.put_many(2);
	EXPECT_EQ(s.wqe(0).fence, 0);
	EXPECT_EQ(s.wqe(1).fence, 1);
	EXPECT_EQ(s.wqe(2).fence, 0);
}

TEST(AivFence, OfAllPesIsOneForEach)
{
	RigOptions options;
	options.n_pes = 3;
	OneCore s(options);

	for (uint32_t to = 1; to < 3; to++)
		ASSERT_EQ(s.device.get_nbi(to, s.dst, s.src, 8), NDA_OK);
	ASSERT_EQ(s.device.fence(), NDA_OK);
	for (uint32_t to = 1; to < 3; to++) {
		ASSERT_EQ(s.device.put_nbi(to, s.dst, s.src, 8), NDA_OK);
		EXPECT_EQ(s.wqe(1, to).fence, 1) << to;
	}
	s.device.close();
	EXPECT_EQ(s.device.fence(), NDA_INVALID);
}

TEST(AivFence, NothingOutstandingNeedsNone)
{
	OneCore s;

	ASSERT_EQ(s.device.fence(pe), NDA_OK);
	ASSERT_EQ(s.put(), NDA_OK);
	EXPECT_EQ(s.wqe(0).fence, 0);
}

TEST(AivFence, ItSurvivesAQuietThatPublishes)
{
	OneCore s;

	ASSERT_EQ(s.device.get_nbi(pe, s.dst, s.src, 8), NDA_OK);
	ASSERT_EQ(s.put(), NDA_OK);
	ASSERT_EQ(s.device.fence(pe), NDA_OK);
	s.rig.nic_run(pe);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	ASSERT_EQ(s.put(), NDA_OK);
	EXPECT_EQ(s.wqe(2).fence, 1);
}

/* ---- Regions ---- */

struct Regions : OneCore {
	nda_region remote = {0x9000000000, 4096, 0xdeadbeef, pe, 0, 0};
	nda_region local = {0x8000000000, 8192, 0x12345678, 0, 0, 0};
};

TEST(AivRegion, PutAndGetTakeTheRegionsAddressesAndKeys)
{
	Regions s;

	ASSERT_EQ(s.device.put_nbi(pe, s.remote, 16, s.local, 32, 64), NDA_OK);
	ASSERT_EQ(
		s.device.get_nbi(pe, s.local, 8192 - 64, s.remote, 4096 - 64, 64), NDA_OK);
	format::wqe put = s.wqe(0), get = s.wqe(1);
	EXPECT_EQ(put.opcode, format::op_write);
	EXPECT_EQ(put.remote_va, s.remote.addr + 16);
	EXPECT_EQ(put.local_va, s.local.addr + 32);
	EXPECT_EQ(put.rkey, s.remote.key);
	EXPECT_EQ(put.sge_lkey, s.local.key);
	EXPECT_EQ(get.opcode, format::op_read);
	EXPECT_EQ(get.remote_va, s.remote.addr + 4096 - 64);
	EXPECT_EQ(get.local_va, s.local.addr + 8192 - 64);
	EXPECT_EQ(get.rkey, s.remote.key);
}

TEST(AivRegion, TheSlowWayPostsTheSame)
{
	Regions fast, slow;

	slow.queue().state.limit = slow.queue().state.head;
	ASSERT_EQ(fast.device.put_nbi(pe, fast.remote, 1, fast.local, 2, 3), NDA_OK);
	ASSERT_EQ(slow.device.put_nbi(pe, slow.remote, 1, slow.local, 2, 3), NDA_OK);
	EXPECT_EQ(memcmp(fast.rig.sq(pe), slow.rig.sq(pe), 65), 0);
}

TEST(AivRegion, RangesOutsideARegionAreRefused)
{
	Regions s;

	EXPECT_EQ(s.device.put_nbi(pe, s.remote, 0, s.local, 0, 4097), NDA_INVALID);
	EXPECT_EQ(s.device.put_nbi(pe, s.remote, 4097, s.local, 0, 0), NDA_INVALID);
	EXPECT_EQ(s.device.put_nbi(pe, s.remote, 0, s.local, 8190, 4), NDA_INVALID);
	EXPECT_EQ(s.device.get_nbi(pe, s.local, UINT64_MAX, s.remote, 0, 2), NDA_INVALID);
	EXPECT_EQ(s.device.get_nbi(pe, s.local, 0, s.remote, 8, UINT64_MAX), NDA_INVALID);
	EXPECT_EQ(
		s.device.put_nbi(pe, s.remote, 8, s.local, 8, UINT64_MAX - 7), NDA_INVALID);
	EXPECT_EQ(s.queue().state.head, 0u);
}

TEST(AivRegion, RegionsOfTheWrongOwnerAreRefused)
{
	Regions s;

	EXPECT_EQ(s.device.put_nbi(pe, s.local, 0, s.local, 0, 8), NDA_INVALID);
	EXPECT_EQ(s.device.put_nbi(pe, s.remote, 0, s.remote, 0, 8), NDA_INVALID);
	EXPECT_EQ(s.device.put_nbi(5, s.remote, 0, s.local, 0, 8), NDA_INVALID);
}

TEST(AivRegion, AnLkeyThatTheFormatWouldCutIsRefused)
{
	Regions s;

	s.local.key = 0x40000000;
	EXPECT_EQ(s.device.put_nbi(pe, s.remote, 0, s.local, 0, 8), NDA_INVALID);
}

/* ---- Lending ---- */

TEST(AivLend, ALentQueueRefusesEverythingHoweverItsHeadMoves)
{
	OneCore s;

	s.put_many(3);
	s.rig.nic_run(pe);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	ASSERT_TRUE(aiv::lend(&s.queue().state));
	s.recorder.stores.clear();
	for (uint32_t moved : {0u, 1u, 100u, 0x10000u, 0x40000000u}) {
		s.queue().state.head = 3 + moved;
		EXPECT_EQ(s.put(), NDA_QUEUE_LENT);
		EXPECT_EQ(s.device.get_nbi(pe, s.dst, s.src, 8), NDA_QUEUE_LENT);
		EXPECT_EQ(s.device.quiet(pe), NDA_QUEUE_LENT);
		EXPECT_EQ(s.device.quiet(), NDA_QUEUE_LENT);
		EXPECT_EQ(s.device.fence(pe), NDA_QUEUE_LENT);
		auto batch = s.device.batch(pe);
		EXPECT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_QUEUE_LENT);
		EXPECT_EQ(batch.submit(), NDA_INVALID);
	}
	EXPECT_TRUE(s.recorder.stores.empty());
}

/* A view posts with its own code, here the encoder; native posts go on after it. */
TEST(AivLend, TakenBackTheQueueGoesOnWhereTheViewStopped)
{
	OneCore s(with_depth(16));
	nda_queue &q = s.queue();

	s.put_many(5);
	s.rig.nic_run(pe);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	ASSERT_TRUE(aiv::lend(&q.state));
	for (uint32_t i = 5; i < 19; i++) {
		format::rdma op = {format::op_write, true, false, 8, 1, 2, 3, 4};
		uint64_t w[8];

		format::encode(format::rdma_wqe(op, i, 16), w);
		memcpy(s.rig.sq(pe) + (i & 15) * 64, w, 64);
		*reinterpret_cast<uint32_t *>(q.sq_record) = format::sq_record(i + 1);
		ASSERT_EQ(s.rig.nic_run(pe), 1u);
		q.state.head = q.state.tail = q.state.cq_ci = i + 1;
	}
	ASSERT_TRUE(aiv::hns1825::take_back(q, &q.state));
	s.recorder.on_relax = [&] { s.rig.nic_run(pe); };
	s.put_many(40);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(q.state.tail, 59u);
}

TEST(AivLend, OnlyAnIdleQueueInStepIsLent)
{
	OneCore s(with_signal(2));
	nda_queue_state &state = s.queue().state;

	ASSERT_EQ(s.put(), NDA_OK);
	EXPECT_FALSE(aiv::lend(&state)) << "a WQE is outstanding";
	ASSERT_EQ(s.put(), NDA_OK);
	s.rig.nic_run(pe);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_FALSE(aiv::lend(&state)) << "CQEs are fewer than WQEs";
	EXPECT_FALSE(aiv::hns1825::take_back(s.queue(), &state)) << "not lent";
	EXPECT_EQ(s.put(), NDA_OK) << "and nothing changed";
}

TEST(AivLend, DerivedStateEqualsTheOneThatPostingLeft)
{
	OneCore s(with_depth(32));

	for (uint32_t i = 0; i < 100; i++) {
		ASSERT_EQ(s.put(), NDA_OK);
		s.rig.nic_run(pe);
		if (i % 7 == 0) {
			ASSERT_EQ(s.device.quiet(pe), NDA_OK);
		}
		const nda_queue_state &is = s.queue().state;
		nda_queue_state want =
			aiv::hns1825::derive_state(s.queue(), is.head, is.tail, is.cq_ci);
		EXPECT_EQ(is.next_slot, want.next_slot);
		EXPECT_EQ(is.flags, want.flags);
		if (is.head != is.limit) { /* else the line is due for the slow way */
			EXPECT_EQ(is.next_word0, want.next_word0);
			EXPECT_EQ(is.doorbell, want.doorbell);
			EXPECT_EQ(is.next_marker, want.next_marker);
			EXPECT_EQ(is.next_task, want.next_task);
		}
	}
}

} // namespace
