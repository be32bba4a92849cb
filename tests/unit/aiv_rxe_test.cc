/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The data plane on Soft-RoCE's queues, against a kernel played by its public headers. */
#include <stdint.h>
#include <string.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <nda/aiv/device.h>
#include <nda/aiv/rxe_queue.h>
#include <tests/mock/recording_core.h>
#include <tests/mock/rxe_rig.h>

namespace {

using namespace nda;
using namespace nda::test;
using Device = aiv::Device<RecordingCore, aiv::rxe::Engine>;

constexpr uint32_t pe = 1;

struct RxeCore {
	RxeOptions options;
	RxeRig rig;
	Recorder recorder;
	Device device;
	uint64_t dst;
	uint64_t src;

	explicit RxeCore(const RxeOptions &o = {})
		: options(o), rig(o), dst(rig.own_base() + 0x100),
		  src(rig.own_base() + 0x8000)
	{
		recorder.add_memory(rig.address(), rig.bytes());
		recorder.add_memory(rig.own_base(), o.heap_bytes);
		for (uint32_t to = 1; to < o.n_pes; to++) {
			recorder.add_memory(
				reinterpret_cast<uint64_t>(rig.sq(to)), rig.sq_bytes(to));
			recorder.add_memory(
				reinterpret_cast<uint64_t>(rig.cq(to)), rig.cq_bytes(to));
			recorder.add_memory(
				reinterpret_cast<uint64_t>(&rig.doorbell(to)), 8);
		}
		EXPECT_EQ(device.open(RecordingCore(&recorder), rig.address(), 0), NDA_OK);
	}

	~RxeCore()
	{
		for (const std::string &violation : recorder.violations)
			ADD_FAILURE() << violation;
		EXPECT_EQ(rig.fault, "");
	}

	nda_queue &queue() { return rig.queue(pe); }
	/* The kernel works while the core waits. */
	void run_in_waits()
	{
		recorder.on_relax = [this] { rig.run(pe); };
	}
	void put_many(uint32_t n)
	{
		for (uint32_t i = 0; i < n; i++)
			ASSERT_EQ(device.put_nbi(pe, dst, src, 8), NDA_OK) << i;
	}
	std::vector<uint64_t> doorbells() const
	{
		std::vector<uint64_t> values;

		for (const Store &store : recorder.stores)
			if (store.kind == Store::device)
				values.push_back(store.value);
		return values;
	}
	/* Where @addr of the own heap is at the peer. */
	uint8_t *at_peer(uint64_t addr) { return rig.peer() + (addr - rig.own_base()); }
	uint64_t *own_word(uint64_t addr) { return reinterpret_cast<uint64_t *>(addr); }
};

RxeOptions with_slots(uint32_t slots)
{
	RxeOptions options;

	options.sq_slots = options.cq_slots = slots;
	return options;
}

RxeOptions with_signal(uint32_t every)
{
	RxeOptions options;

	options.signal_every = every;
	return options;
}

/* ---- Posting ---- */

TEST(AivRxePost, APutIsTheWqeThatTheKernelTakes)
{
	RxeCore s;

	ASSERT_EQ(s.device.put_nbi(pe, s.dst, s.src, 24), NDA_OK);
	const rxe_send_wqe *w = s.rig.wqe(pe, 0);
	EXPECT_EQ(w->wr.opcode, uint32_t{IBV_WR_RDMA_WRITE});
	EXPECT_EQ(w->wr.send_flags, uint32_t{IBV_SEND_SIGNALED});
	EXPECT_EQ(w->wr.wr.rdma.remote_addr, reinterpret_cast<uint64_t>(s.at_peer(s.dst)));
	EXPECT_EQ(w->wr.wr.rdma.rkey, RxeRig::rkey);
	EXPECT_EQ(w->dma.length, 24u);
	EXPECT_EQ(w->dma.num_sge, 1u);
	EXPECT_EQ(s.rig.run(pe), 1u);
}

TEST(AivRxePost, TheProducerIndexComesAfterTheWqeAndTheDoorbellLast)
{
	RxeCore s;

	ASSERT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_OK);
	ASSERT_GE(s.recorder.stores.size(), 2u);
	const Store &index = s.recorder.stores[s.recorder.stores.size() - 2];
	const Store &bell = s.recorder.stores.back();
	EXPECT_EQ(index.kind, Store::release);
	EXPECT_EQ(index.addr, reinterpret_cast<uint64_t>(&s.rig.sq(pe)->producer_index));
	EXPECT_EQ(index.bytes, 4u);
	EXPECT_EQ(bell.kind, Store::device);
	EXPECT_EQ(bell.addr, reinterpret_cast<uint64_t>(&s.rig.doorbell(pe)));
}

TEST(AivRxePost, PutMovesTheBytesToThePeerAndGetBack)
{
	RxeCore s;

	s.run_in_waits();
	memcpy(s.own_word(s.src), "to be put", 9);
	ASSERT_EQ(s.device.put(pe, s.dst, s.src, 9), NDA_OK);
	EXPECT_EQ(memcmp(s.at_peer(s.dst), "to be put", 9), 0);
	ASSERT_EQ(s.device.get(pe, s.src + 64, s.dst, 9), NDA_OK);
	EXPECT_EQ(memcmp(s.own_word(s.src + 64), "to be put", 9), 0);
}

TEST(AivRxePost, IndicesInTheRingsAreMaskedOverManyLapsAndTheEndOfU32)
{
	RxeOptions options = with_slots(8);
	options.start = 0xffffffe0;
	RxeCore s(options);

	s.run_in_waits();
	for (uint32_t i = 0; i < 20; i++) {
		s.put_many(5);
		ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	}
	EXPECT_EQ(s.queue().state.head, 0xffffffe0u + 100);
	EXPECT_EQ(s.queue().state.cq_ci, 0xffffffe0u + 100);
	EXPECT_EQ(s.rig.cq(pe)->consumer_index, 4u);
}

TEST(AivRxePost, TheDoorbellIsNeverZero)
{
	RxeOptions options;
	options.start = 0xffffffff;
	RxeCore s(options);

	s.put_many(1);
	ASSERT_EQ(s.queue().state.head, 0u);
	ASSERT_EQ(s.doorbells().size(), 1u);
	EXPECT_NE(s.doorbells()[0], 0u);
	EXPECT_EQ(s.rig.run(pe), 1u);
}

TEST(AivRxePost, OneSlotStaysFreeAndAFullRingTimesOut)
{
	RxeCore s(with_slots(8));

	s.put_many(7);
	EXPECT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_TIMEOUT);
	EXPECT_EQ(s.queue().state.head, 7u);
	EXPECT_EQ(s.rig.run(pe), 7u);
	EXPECT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_OK);
	EXPECT_EQ(s.rig.run(pe), 1u);
}

TEST(AivRxePost, ASmallerCqLimitsWhatIsOutstanding)
{
	RxeOptions options = with_slots(16);
	options.cq_slots = 4;
	RxeCore s(options);

	s.put_many(3);
	EXPECT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_TIMEOUT);
	s.run_in_waits();
	s.put_many(40);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

TEST(AivRxePost, LongerThanAMessageIsSplitWithoutAGap)
{
	constexpr uint64_t message = 0x800000;
	RxeOptions options;
	options.heap_bytes = 4 * message;
	RxeCore s(options);
	const uint64_t n = message + 5, from = s.rig.own_base() + 2 * message;

	memset(s.own_word(from), 0x5a, n);
	s.run_in_waits();
	ASSERT_EQ(s.device.put(pe, s.dst, from, n), NDA_OK);
	EXPECT_EQ(s.queue().state.head, 2u);
	EXPECT_EQ(memcmp(s.at_peer(s.dst), s.own_word(from), n), 0);
	EXPECT_EQ(s.at_peer(s.dst)[n], 0);
}

TEST(AivRxePost, LengthZeroPostsNothing)
{
	RxeCore s;

	EXPECT_EQ(s.device.put(pe, s.dst, s.src, 0), NDA_OK);
	EXPECT_TRUE(s.recorder.stores.empty());
}

TEST(AivRxePost, RegionsHaveTheirOwnKeys)
{
	RxeCore s;
	nda_region remote = {
		reinterpret_cast<uint64_t>(s.at_peer(s.dst)), 64, RxeRig::rkey, pe, 0, 0};
	nda_region local = {s.src, 64, RxeRig::lkey, 0, 0, 0};

	s.run_in_waits();
	s.queue().rkey = s.queue().lkey = 1;
	memcpy(s.own_word(s.src + 8), "regional", 8);
	ASSERT_EQ(s.device.put_nbi(pe, remote, 16, local, 8, 8), NDA_OK);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(memcmp(s.at_peer(s.dst + 16), "regional", 8), 0);
	EXPECT_EQ(s.device.put_nbi(pe, remote, 60, local, 0, 8), NDA_INVALID);
}

TEST(AivRxePost, NoSuchPeAndTheOwnPeAreRefused)
{
	RxeCore s;

	EXPECT_EQ(s.device.put_nbi(0, s.dst, s.src, 8), NDA_INVALID);
	EXPECT_EQ(s.device.put_nbi(2, s.dst, s.src, 8), NDA_INVALID);
	EXPECT_EQ(s.device.fetch_add_nbi<uint64_t>(2, s.dst, 1, s.src), NDA_INVALID);
	EXPECT_EQ(s.device.put_inline_nbi(UINT32_MAX, s.dst, s.src, 8), NDA_INVALID);
	EXPECT_EQ(s.device.put_immediate_nbi(2, s.dst, s.src, 8, 1), NDA_INVALID);
}

TEST(AivRxePost, AFenceIsOfTheNextWqeOnly)
{
	RxeCore s;

	ASSERT_EQ(s.device.fence(pe), NDA_OK);
	s.put_many(1);
	EXPECT_EQ(s.rig.wqe(pe, 0)->wr.send_flags & IBV_SEND_FENCE, 0u)
		<< "nothing to wait for";
	ASSERT_EQ(s.device.fence(pe), NDA_OK);
	s.put_many(2);
	EXPECT_NE(s.rig.wqe(pe, 1)->wr.send_flags & IBV_SEND_FENCE, 0u);
	EXPECT_EQ(s.rig.wqe(pe, 2)->wr.send_flags & IBV_SEND_FENCE, 0u);
	EXPECT_EQ(s.rig.run(pe), 3u);
}

/* ---- Completions ---- */

TEST(AivRxeQuiet, NothingPostedIsDoneAtOnce)
{
	RxeCore s;

	EXPECT_EQ(s.device.quiet(), NDA_OK);
	EXPECT_EQ(s.recorder.relaxed, 0u);
	EXPECT_TRUE(s.recorder.stores.empty());
}

TEST(AivRxeQuiet, ConsumesWhatIsThereAndPublishesIt)
{
	RxeCore s;

	s.put_many(5);
	s.rig.run(pe, 3);
	EXPECT_EQ(s.device.quiet(pe), NDA_TIMEOUT);
	EXPECT_EQ(s.queue().state.tail, 3u);
	EXPECT_EQ(s.rig.cq(pe)->consumer_index, 3u);
	s.rig.run(pe);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.rig.cq(pe)->consumer_index, 5u);
}

TEST(AivRxeQuiet, TimesOutByTheTablesDeadline)
{
	RxeOptions options;
	options.timeout_us = 250;
	RxeCore s(options);

	s.put_many(1);
	EXPECT_EQ(s.device.quiet(pe), NDA_TIMEOUT);
	EXPECT_GE(s.recorder.now_ns, 250000u);
	EXPECT_LE(s.recorder.now_ns, 260000u);
}

TEST(AivRxeSignal, OnlyEveryKthWqeAsksForACompletion)
{
	RxeCore s(with_signal(4));

	s.put_many(12);
	EXPECT_EQ(s.rig.run(pe), 12u);
	EXPECT_EQ(s.rig.completions(pe), 3u);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.queue().state.head, 12u) << "the last had one: no more is needed";
}

TEST(AivRxeSignal, QuietEndsASeriesWithAWriteOfNothing)
{
	RxeCore s(with_signal(4));

	s.put_many(2);
	s.run_in_waits();
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	const rxe_send_wqe *w = s.rig.wqe(pe, 2);
	EXPECT_EQ(w->wr.opcode, uint32_t{IBV_WR_RDMA_WRITE});
	EXPECT_EQ(w->dma.length, 0u);
	EXPECT_EQ(w->dma.num_sge, 0u);
	EXPECT_EQ(s.queue().state.tail, 3u);
}

TEST(AivRxeSignal, AFullRingFreesItselfHoweverFewAreSignalled)
{
	RxeOptions options = with_slots(16);
	options.signal_every = 8;
	RxeCore s(options);

	s.run_in_waits();
	s.put_many(200);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

/* ---- Errors ---- */

TEST(AivRxeError, IsLatchedWithWhatTheKernelSaid)
{
	RxeCore s;

	s.put_many(2);
	s.queue().rkey = 1;
	s.put_many(1);
	s.run_in_waits();
	EXPECT_EQ(s.device.quiet(pe), NDA_REMOTE_ACCESS);
	EXPECT_EQ(s.queue().state.error.status, uint32_t{NDA_REMOTE_ACCESS});
	EXPECT_EQ(s.queue().state.error.raw_status, uint32_t{IBV_WC_REM_ACCESS_ERR});
	EXPECT_EQ(s.queue().state.error.raw_vendor, 7u);
	EXPECT_EQ(s.queue().state.error.wqe_index, 2u);
}

TEST(AivRxeError, TheFirstStaysOverTheFlushedOnesAndNothingMoreIsPosted)
{
	RxeCore s;

	s.queue().rkey = 1;
	s.put_many(6);
	s.run_in_waits();
	EXPECT_EQ(s.device.quiet(pe), NDA_REMOTE_ACCESS);
	EXPECT_EQ(s.queue().state.tail, 6u);
	EXPECT_EQ(s.rig.completions(pe), 6u);
	EXPECT_EQ(s.rig.cq(pe)->consumer_index, 6u);
	EXPECT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_REMOTE_ACCESS);
	EXPECT_EQ(s.device.fetch_add_nbi<uint64_t>(pe, s.dst, 1, s.src), NDA_REMOTE_ACCESS);
	EXPECT_EQ(s.device.fence(pe), NDA_REMOTE_ACCESS);
	EXPECT_EQ(s.queue().state.head, 6u);
	EXPECT_EQ(s.device.quiet(pe), NDA_REMOTE_ACCESS);
}

TEST(AivRxeError, OfAnUnsignalledWqeIsSeen)
{
	RxeCore s(with_signal(8));

	s.put_many(1);
	s.queue().lkey = 1;
	s.put_many(3);
	s.run_in_waits();
	EXPECT_EQ(s.device.quiet(pe), NDA_LOCAL_PROTECTION);
	EXPECT_EQ(s.queue().state.error.wqe_index, 1u);
}

TEST(AivRxeError, IsMetWhileWaitingForCredit)
{
	RxeCore s(with_slots(8));

	s.queue().rkey = 1;
	s.put_many(7);
	s.run_in_waits();
	EXPECT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_REMOTE_ACCESS);
	EXPECT_EQ(s.queue().state.head, 7u);
}

TEST(AivRxeError, ACompletionOfNoOutstandingWqeIsABadResponse)
{
	for (uint64_t wr_id : {uint64_t{2}, uint64_t{UINT32_MAX}, uint64_t{1} << 32}) {
		RxeCore s;

		s.put_many(2);
		s.rig.complete(pe, wr_id, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE, 0);
		EXPECT_EQ(s.device.quiet(pe), NDA_BAD_RESPONSE) << wr_id;
		EXPECT_EQ(s.queue().state.tail, 0u);
		EXPECT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_BAD_RESPONSE);
	}
}

TEST(AivRxeError, MoreCompletionsThanWqesAreABadResponse)
{
	RxeCore s;

	s.put_many(3);
	for (int i = 0; i < 3; i++)
		s.rig.complete(pe, 1, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE, 0);
	EXPECT_EQ(s.device.quiet(pe), NDA_BAD_RESPONSE);
}

TEST(AivRxeError, ACompletionOfAReceiveQueueIsNotTakenForAWqe)
{
	RxeCore s;

	s.put_many(1);
	s.rig.complete(pe, 0, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM, 0);
	EXPECT_EQ(s.device.quiet(pe), NDA_BAD_RESPONSE);
}

/* ---- Batches ---- */

TEST(AivRxeBatch, SharesOneDoorbell)
{
	RxeCore s;

	{
		auto batch = s.device.batch(pe);
		for (uint32_t i = 0; i < 16; i++)
			ASSERT_EQ(batch.put_nbi(s.dst + i * 8, s.src + i * 8, 8), NDA_OK);
		EXPECT_TRUE(s.doorbells().empty());
		EXPECT_EQ(s.rig.run(pe), 0u);
		EXPECT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_INVALID);
		EXPECT_EQ(batch.submit(), NDA_OK);
	}
	EXPECT_EQ(s.doorbells().size(), 1u);
	EXPECT_EQ(s.rig.run(pe), 16u);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

TEST(AivRxeBatch, RingsEarlyWhereTheRingIsFull)
{
	RxeCore s(with_slots(8));

	s.run_in_waits();
	auto batch = s.device.batch(pe);
	for (uint32_t i = 0; i < 30; i++)
		ASSERT_EQ(batch.get_nbi(s.src, s.dst, 8), NDA_OK) << i;
	EXPECT_EQ(batch.submit(), NDA_OK);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.queue().state.tail, 30u);
}

TEST(AivRxeBatch, ItsLastMayAskForACompletion)
{
	RxeCore s(with_signal(16));

	auto batch = s.device.batch(pe);
	ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK);
	ASSERT_EQ(batch.put_submit(s.dst, s.src, 8), NDA_OK);
	EXPECT_EQ(s.rig.run(pe), 2u);
	EXPECT_EQ(s.rig.completions(pe), 1u);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.queue().state.head, 2u);
}

/* ---- Other operations ---- */

TEST(AivRxeImmediate, ArrivesWithTheBytes)
{
	RxeCore s;

	s.run_in_waits();
	memcpy(s.own_word(s.src), "with", 4);
	ASSERT_EQ(s.device.put_immediate_nbi(pe, s.dst, s.src, 4, 0xcafe1234), NDA_OK);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(memcmp(s.at_peer(s.dst), "with", 4), 0);
	EXPECT_EQ(s.rig.received, std::vector<uint32_t>{0xcafe1234});
}

TEST(AivRxeImmediate, ArrivesWithoutAny)
{
	RxeCore s;

	s.run_in_waits();
	ASSERT_EQ(s.device.put_immediate_nbi(pe, s.dst, s.src, 0, 5), NDA_OK);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.rig.received, std::vector<uint32_t>{5});
}

TEST(AivRxeImmediate, OfASplitPutIsSaidOnce)
{
	constexpr uint64_t message = 0x800000;
	RxeOptions options;
	options.heap_bytes = 4 * message;
	RxeCore s(options);

	s.run_in_waits();
	ASSERT_EQ(s.device.put_immediate_nbi(pe, s.dst, s.src, message + 1, 6), NDA_OK);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.queue().state.head, 2u);
	EXPECT_EQ(s.rig.wqe(pe, 0)->wr.opcode, uint32_t{IBV_WR_RDMA_WRITE});
	EXPECT_EQ(s.rig.received, std::vector<uint32_t>{6});
}

TEST(AivRxeInline, ReadsItsSourceAtOnce)
{
	RxeCore s;

	memcpy(reinterpret_cast<void *>(s.src + 3), "inline data", 11);
	ASSERT_EQ(s.device.put_inline_nbi(pe, s.dst, s.src + 3, 11), NDA_OK);
	memset(reinterpret_cast<void *>(s.src), 0, 64);
	EXPECT_EQ(s.rig.run(pe), 1u);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(memcmp(s.at_peer(s.dst), "inline data", 11), 0);
	EXPECT_EQ(s.at_peer(s.dst)[11], 0);
}

TEST(AivRxeInline, TakesAsMuchAsAWqeHasRoomForAndNoMore)
{
	RxeCore s;

	EXPECT_EQ(s.device.put_inline_nbi(pe, s.dst, s.src, 48), NDA_OK);
	EXPECT_EQ(s.device.put_inline_nbi(pe, s.dst, s.src, 49), NDA_INVALID);
	EXPECT_EQ(s.device.put_inline_nbi(pe, s.dst, s.src, UINT64_MAX), NDA_INVALID);
	EXPECT_EQ(s.rig.run(pe), 1u);
}

TEST(AivRxePieces, AreGatheredAndScattered)
{
	RxeCore s;
	nda_piece from[3] = {{s.src, 3}, {s.src + 0x100, 4}, {s.src + 0x200, 5}};
	nda_piece to[2] = {{s.src + 0x300, 7}, {s.src + 0x400, 5}};

	s.run_in_waits();
	memcpy(reinterpret_cast<void *>(from[0].addr), "abc", 3);
	memcpy(reinterpret_cast<void *>(from[1].addr), "defg", 4);
	memcpy(reinterpret_cast<void *>(from[2].addr), "hijkl", 5);
	ASSERT_EQ(s.device.put_pieces_nbi(pe, s.dst, from, 3), NDA_OK);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(memcmp(s.at_peer(s.dst), "abcdefghijkl", 12), 0);
	EXPECT_EQ(s.queue().state.head, 1u);

	ASSERT_EQ(s.device.get_pieces_nbi(pe, s.dst, to, 2), NDA_OK);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(memcmp(s.own_word(to[0].addr), "abcdefg", 7), 0);
	EXPECT_EQ(s.queue().state.head, 2u);
}

TEST(AivRxePieces, ThatDoNotFitOneWqeAreRefused)
{
	RxeCore s;
	nda_piece many[4] = {{s.src, 8}, {s.src, 8}, {s.src, 8}, {s.src, 8}};
	nda_piece long_one = {s.src, 0x800001};
	nda_piece empty[2] = {{s.src, 8}, {s.src, 0}};
	nda_piece wrapping[2] = {{s.src, UINT64_MAX}, {s.src, 2}};

	EXPECT_EQ(s.device.put_pieces_nbi(pe, s.dst, many, 4), NDA_INVALID);
	EXPECT_EQ(s.device.put_pieces_nbi(pe, s.dst, &long_one, 1), NDA_INVALID);
	EXPECT_EQ(s.device.put_pieces_nbi(pe, s.dst, empty, 2), NDA_INVALID);
	EXPECT_EQ(s.device.put_pieces_nbi(pe, s.dst, wrapping, 2), NDA_INVALID);
	EXPECT_EQ(s.device.get_pieces_nbi(pe, s.dst, many, 0), NDA_INVALID);
	EXPECT_TRUE(s.recorder.stores.empty());
}

TEST(AivRxeAtomic, FetchAddReturnsTheFormerValue)
{
	RxeCore s;
	uint64_t value = 40, former = 0;

	s.run_in_waits();
	memcpy(s.at_peer(s.dst), &value, 8);
	ASSERT_EQ(s.device.fetch_add<uint64_t>(pe, s.dst, 2, &former), NDA_OK);
	EXPECT_EQ(former, 40u);
	memcpy(&value, s.at_peer(s.dst), 8);
	EXPECT_EQ(value, 42u);
}

TEST(AivRxeAtomic, CompareSwapStoresOnlyWhereItMatches)
{
	RxeCore s;
	uint64_t value = 40, former = 0;

	s.run_in_waits();
	memcpy(s.at_peer(s.dst), &value, 8);
	ASSERT_EQ(s.device.compare_swap<uint64_t>(pe, s.dst, 41, 7, &former), NDA_OK);
	EXPECT_EQ(former, 40u);
	ASSERT_EQ(s.device.compare_swap<uint64_t>(pe, s.dst, 40, 7, &former), NDA_OK);
	EXPECT_EQ(former, 40u);
	memcpy(&value, s.at_peer(s.dst), 8);
	EXPECT_EQ(value, 7u);
}

TEST(AivRxeAtomic, EachOutstandingOneHasItsOwnResult)
{
	RxeCore s;

	for (uint64_t i = 0; i < 8; i++)
		ASSERT_EQ(s.device.fetch_add_nbi<uint64_t>(pe, s.dst, 10, s.src + i * 8),
			NDA_OK);
	EXPECT_EQ(s.rig.run(pe), 8u);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	for (uint64_t i = 0; i < 8; i++)
		EXPECT_EQ(*s.own_word(s.src + i * 8), i * 10);
}

TEST(AivRxeAtomic, MisalignedWordsAreRefused)
{
	RxeCore s;
	uint64_t former = 5;

	EXPECT_EQ(s.device.fetch_add_nbi<uint64_t>(pe, s.dst + 4, 1, s.src), NDA_INVALID);
	EXPECT_EQ(s.device.compare_swap_nbi<uint64_t>(pe, s.dst, 1, 2, s.src + 1),
		NDA_INVALID);
	s.queue().scratch_local = 0;
	EXPECT_EQ(s.device.fetch_add<uint64_t>(pe, s.dst, 1, &former), NDA_INVALID);
	EXPECT_EQ(former, 5u);
	EXPECT_TRUE(s.recorder.stores.empty());
}

TEST(AivRxeAtomic, ThatFailsLeavesTheCallersWordAlone)
{
	RxeCore s;
	uint64_t former = 5;

	s.run_in_waits();
	s.queue().rkey = 1;
	EXPECT_EQ(s.device.fetch_add<uint64_t>(pe, s.dst, 1, &former), NDA_REMOTE_ACCESS);
	EXPECT_EQ(former, 5u);
}

/* ---- The table ---- */

TEST(AivRxeTable, OfAnotherFormatIsRefused)
{
	RxeCore s;
	aiv::Device<RecordingCore> other;
	Device own;

	EXPECT_EQ(
		other.open(RecordingCore(&s.recorder), s.rig.address(), 0), NDA_BAD_TABLE);
	s.rig.table()->format = NDA_FORMAT_HNS1825;
	EXPECT_EQ(own.open(RecordingCore(&s.recorder), s.rig.address(), 0), NDA_BAD_TABLE);
}

TEST(AivRxeTable, AQueueThatCannotWorkIsNotUsable)
{
	RxeCore s;
	const nda_queue good = s.queue();
	auto usable = [&](auto change) {
		nda_queue q = good;

		change(&q);
		return aiv::rxe::queue_usable(q);
	};

	EXPECT_TRUE(usable([](nda_queue *) {}));
	EXPECT_FALSE(usable([](nda_queue *q) { q->valid = 0; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->sq_depth = 48; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->sq_depth = 65536; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->cq_depth = 1; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->signal_every = 0; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->signal_every = 33; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->rxe.sq_slot_bytes = 208; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->rxe.sq_slot_bytes = 128; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->rxe.sq_data_bytes = 64; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->rxe.sq_data_bytes = 8; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->cqe_stride = 40; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->rxe.cq_producer = 0; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->sq_doorbell = 0; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->sq_base += 4; }));
}

/* The kernel in a thread of its own: what it reads of a WQE was written before the index.
 */
TEST(AivRxeThreads, TheKernelSeesEachWqeWhole)
{
	RxeOptions options = with_slots(16);
	options.signal_every = 4;
	options.timeout_us = 60 * 1000 * 1000;
	RxeRig rig(options);
	aiv::Device<aiv::HostCore, aiv::rxe::Engine> device;
	std::atomic<bool> stop{false};
	uint64_t dst = rig.own_base();

	ASSERT_EQ(device.open(aiv::HostCore(), rig.address(), 0), NDA_OK);
	std::thread kernel([&] {
		while (!stop.load(std::memory_order_acquire))
			if (rig.run(pe) == 0)
				std::this_thread::yield();
	});
	enum nda_status status = NDA_OK;
	for (uint64_t i = 0; i < 2000 && status == NDA_OK; i++) {
		status = device.put_inline_nbi(
			pe, dst + i % 64 * 8, reinterpret_cast<uint64_t>(&i), 8);
		if (i % 7 == 0 && status == NDA_OK)
			status = device.quiet(pe);
	}
	uint64_t former = 0;
	if (status == NDA_OK)
		status = device.fetch_add<uint64_t>(pe, dst + 0x4000, 1, &former);
	stop.store(true, std::memory_order_release);
	kernel.join();
	EXPECT_EQ(status, NDA_OK);
	EXPECT_EQ(rig.fault, "");
	for (uint64_t i = 2000 - 64; i < 2000; i++)
		EXPECT_EQ(reinterpret_cast<uint64_t *>(rig.peer())[i % 64], i);
}

} // namespace
