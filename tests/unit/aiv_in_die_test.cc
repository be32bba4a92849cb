/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The data plane on queues of Ascend 910's RoCE NIC: what is written, in what order, what
 * is refused, how completions and errors end, and the operations beside put and get. */
#include <stdint.h>
#include <string.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <nda/aiv/device.h>
#include <nda/aiv/host_core.h>
#include <nda/aiv/in_die_queue.h>
#include <tests/mock/in_die_rig.h>
#include <tests/mock/recording_core.h>
#include <tests/mock/sanitizer.h>

namespace {

using namespace nda;
using namespace nda::test;
namespace format = nda::hw::in_die;
using Device = aiv::Device<RecordingCore, aiv::in_die::Engine>;
using Queue = aiv::in_die::Queue<RecordingCore>;

constexpr uint32_t pe = 1;

/* A device of one core whose accesses are recorded, with its queues and the NIC. */
struct Core {
	InDieOptions options;
	InDieRig rig;
	Recorder recorder;
	Device device;
	uint64_t dst;
	uint64_t src;

	explicit Core(const InDieOptions &o = {})
		: options(o), rig(o), dst(o.heap_base + 0x100), src(o.heap_base + 0x8000)
	{
		recorder.add_memory(rig.address(), rig.bytes());
		for (uint32_t core = 0; core < o.n_cores; core++)
			for (uint32_t to = 0; to < o.n_pes; to++)
				if (to != o.my_pe)
					add_queue(rig.queue(to, core));
		EXPECT_EQ(device.open(RecordingCore(&recorder), rig.address(), 0), NDA_OK);
	}

	~Core()
	{
		for (const std::string &violation : recorder.violations)
			ADD_FAILURE() << violation;
		EXPECT_EQ(rig.fault, "");
	}

	void add_queue(const nda_queue &q)
	{
		recorder.add_memory(q.sq_base, uint64_t{q.sq_depth} * format::wqe_bytes);
		recorder.add_memory(q.cq_base, uint64_t{q.cq_depth} * q.cqe_stride);
		recorder.add_memory(q.sq_doorbell, 256);
	}

	nda_queue &queue() { return rig.queue(pe); }
	enum nda_status put(uint64_t n = 8) { return device.put_nbi(pe, dst, src, n); }

	/* @n puts that must work. */
	void put_many(uint32_t n)
	{
		for (uint32_t i = 0; i < n; i++)
			ASSERT_EQ(put(), NDA_OK) << i;
	}
	void run_in_waits()
	{
		recorder.on_relax = [this] { rig.nic_run(pe); };
	}
	enum nda_status poll(uint32_t target)
	{
		return Queue(
			device.core(), device.queue_address(pe), {options.timeout_us, 0})
			.poll_cq(target);
	}

	std::vector<uint64_t> doorbells()
	{
		std::vector<uint64_t> values;

		for (const Store &store : recorder.stores)
			if (store.kind == Store::device &&
				store.addr == queue().sq_doorbell)
				values.push_back(store.value);
		return values;
	}

	format::wqe wqe(uint32_t index)
	{
		uint64_t words[format::wqe_words];

		rig.slot(pe, index, words);
		EXPECT_EQ(format::check(words, index, options.sq_depth),
			format::wqe_fault::none);
		return format::decode(words);
	}
};

InDieOptions with_depth(uint32_t depth)
{
	InDieOptions options;

	options.sq_depth = options.cq_depth = depth;
	return options;
}

InDieOptions with_signal(uint32_t every, uint32_t depth = 64)
{
	InDieOptions options = with_depth(depth);

	options.signal_every = every;
	return options;
}

/* ---- Posting ---- */

TEST(AivInDiePost, APutIsAWriteOfTheTranslatedAddressWithTheHeapsKeys)
{
	Core s;

	ASSERT_EQ(s.put(24), NDA_OK);
	format::wqe w = s.wqe(0);
	EXPECT_EQ(w.opcode, format::op_write);
	EXPECT_EQ(w.remote_va, s.dst + s.options.remote_delta);
	EXPECT_EQ(w.rkey, s.options.rkey);
	EXPECT_EQ(w.length, 24u);
	EXPECT_EQ(w.sges, 1);
	EXPECT_EQ(w.data[0], format::sge_word(24, s.options.lkey));
	EXPECT_EQ(w.data[1], s.src);
	EXPECT_EQ(w.completion, 1);
	EXPECT_EQ(w.strong_order, 0);
}

TEST(AivInDiePost, AGetIsAReadFromTheTranslatedAddress)
{
	Core s;

	ASSERT_EQ(s.device.get_nbi(pe, s.src, s.dst, 4096), NDA_OK);
	format::wqe w = s.wqe(0);
	EXPECT_EQ(w.opcode, format::op_read);
	EXPECT_EQ(w.remote_va, s.dst + s.options.remote_delta);
	EXPECT_EQ(w.data[0], format::sge_word(4096, s.options.lkey));
	EXPECT_EQ(w.data[1], s.src);
}

/* The bytes of the worked example, by both ways to post. */
TEST(AivInDiePost, ThePostedBytesAreThoseOfTheWorkedExample)
{
	const uint64_t expected[8] = {0x0000100000000103, 0x0100000000000000,
		0xa1b2c3d400000000, 0x1122334455667788, 0x1526374800001000,
		0x99aabbccddeeff00, 0, 0};

	for (bool slow : {false, true}) {
		InDieOptions options = with_depth(8192);
		options.start = 8195;
		options.lkey = 0x15263748;
		Core s(options);
		uint64_t words[8];

		if (slow)
			s.queue().state.limit = s.queue().state.head;
		ASSERT_EQ(s.device.put_nbi(pe, 0x1122334455667788 - options.remote_delta,
				  0x99aabbccddeeff00, 0x1000),
			NDA_OK);
		s.rig.slot(pe, 8195, words);
		EXPECT_EQ(memcmp(words, expected, sizeof(words)), 0) << slow;
	}
}

std::vector<std::string> order_of_a_post(Core &s, bool slow)
{
	nda_queue &q = s.queue();
	std::vector<std::string> order;

	if (slow)
		q.state.limit = q.state.head;
	EXPECT_EQ(s.put(), NDA_OK);
	for (const Store &store : s.recorder.stores) {
		if (store.addr == q.sq_base && store.kind == Store::release)
			order.push_back("valid");
		else if (store.addr >= q.sq_base && store.addr < q.sq_base + 64)
			order.push_back("word");
		else if (q.sq_record != 0 && store.addr == q.sq_record &&
			store.kind == Store::release)
			order.push_back("record");
		else if (store.kind == Store::device)
			order.push_back("doorbell");
	}
	return order;
}

TEST(AivInDiePost, TheWordWithTheOwnerBitIsLastAndThenTheDoorbell)
{
	for (bool slow : {false, true}) {
		Core s;

		EXPECT_EQ(order_of_a_post(s, slow),
			(std::vector<std::string>{"word", "word", "word", "word", "word",
				"word", "word", "valid", "doorbell"}));
	}
}

TEST(AivInDiePost, ARecordComesBetweenTheWqeAndTheDoorbell)
{
	for (bool slow : {false, true}) {
		InDieOptions options;
		options.sq_record = true;
		options.start = 0x1fff0;
		Core s(options);

		s.put_many(16);
		s.rig.nic_run(pe);
		ASSERT_EQ(s.device.quiet(pe), NDA_OK);
		s.recorder.stores.clear();
		EXPECT_EQ(order_of_a_post(s, slow),
			(std::vector<std::string>{"word", "word", "word", "word", "word",
				"word", "word", "valid", "record", "doorbell"}));
		EXPECT_EQ(s.rig.sq_record(pe), 1u) << "16 bits of the head";
	}
}

TEST(AivInDiePost, OnlyTheWqesSlotIsWritten)
{
	Core s(with_depth(8));

	s.put_many(7);
	s.rig.nic_run(pe);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	s.recorder.stores.clear();
	ASSERT_EQ(s.put(), NDA_OK); /* index 7: behind it the ring ends */
	for (const Store &store : s.recorder.stores) {
		uint64_t offset = store.addr - s.queue().sq_base;

		if (offset < 8 * 64) {
			EXPECT_GE(offset, 7u * 64);
		}
	}
}

/* What an earlier lap left in the slot: a WQE with two segments. */
TEST(AivInDiePost, NothingOfAnEarlierWqeStaysInTheSlot)
{
	InDieOptions options = with_depth(8);
	options.start = 8;
	Core s(options);

	s.put_many(3);
	for (uint32_t i = 8; i < 11; i++) {
		format::wqe w = s.wqe(i);

		EXPECT_EQ(w.data[2], 0u);
		EXPECT_EQ(w.data[3], 0u);
	}
}

TEST(AivInDiePost, LengthZeroPostsNothing)
{
	Core s;

	EXPECT_EQ(s.put(0), NDA_OK);
	EXPECT_EQ(s.device.get_nbi(pe, s.dst, s.src, 0), NDA_OK);
	EXPECT_EQ(s.queue().state.head, 0u);
	EXPECT_TRUE(s.doorbells().empty());
}

TEST(AivInDiePost, TheLargestLengthOfOneWqeIsNotSplit)
{
	Core s;

	ASSERT_EQ(s.put(uint64_t{1} << 31), NDA_OK);
	EXPECT_EQ(s.queue().state.head, 1u);
	EXPECT_EQ(s.wqe(0).length, 0x80000000u);
}

TEST(AivInDiePost, LongerTransfersAreSplitWithoutAGap)
{
	Core s;
	uint64_t n = 3 * (uint64_t{1} << 31) + 5, done = 0;

	ASSERT_EQ(s.put(n), NDA_OK);
	ASSERT_EQ(s.queue().state.head, 4u);
	for (uint32_t i = 0; i < 4; i++) {
		format::wqe w = s.wqe(i);

		EXPECT_EQ(w.remote_va, s.dst + s.options.remote_delta + done);
		EXPECT_EQ(w.data[1], s.src + done);
		done += w.length;
	}
	EXPECT_EQ(done, n);
}

TEST(AivInDiePost, ALengthWhoseLow32BitsAreSmallIsNotTruncated)
{
	Core s;

	ASSERT_EQ(s.put((uint64_t{1} << 32) + 8), NDA_OK);
	EXPECT_EQ(s.queue().state.head, 3u);
	EXPECT_EQ(s.wqe(2).length, 8u);
}

TEST(AivInDiePost, AnUnknownPeAndTheOwnAreRefused)
{
	Core s;

	EXPECT_EQ(s.device.put_nbi(2, s.dst, s.src, 8), NDA_INVALID);
	EXPECT_EQ(s.device.put_nbi(UINT32_MAX, s.dst, s.src, 8), NDA_INVALID);
	EXPECT_EQ(s.device.put_nbi(0, s.dst, s.src, 8), NDA_INVALID);
	EXPECT_EQ(s.device.put_inline_nbi(2, s.dst, s.src, 8), NDA_INVALID);
	EXPECT_EQ(s.device.put_immediate_nbi(2, s.dst, s.src, 8, 1), NDA_INVALID);
	EXPECT_EQ(s.device.fetch_add_nbi<uint64_t>(2, s.dst, 1, s.src), NDA_INVALID);
	EXPECT_EQ(s.device.quiet(0), NDA_INVALID);
	EXPECT_TRUE(s.recorder.stores.empty());
}

TEST(AivInDiePost, TheRingTakesDepthMinusOneWqesAndThenTimesOut)
{
	for (uint32_t depth : {4u, 16u, 64u}) {
		Core s(with_depth(depth));

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

TEST(AivInDiePost, AFullRingPollsItsOwnCompletions)
{
	Core s(with_depth(16));

	s.put_many(15);
	s.recorder.on_relax = [&] { s.rig.nic_run(pe, 1); };
	s.put_many(100);
	EXPECT_EQ(s.queue().state.head, 115u);
}

TEST(AivInDiePost, NoMoreIsOutstandingThanTheCqHolds)
{
	InDieOptions options;
	options.cq_depth = 8;
	Core s(options);

	s.put_many(7);
	EXPECT_EQ(s.put(), NDA_TIMEOUT);
	EXPECT_EQ(s.rig.nic_run(pe), 7u);
	EXPECT_EQ(s.put(), NDA_OK);
}

TEST(AivInDiePost, AnUnconsumedSlotIsNeverTouched)
{
	Core s(with_depth(8));
	uint8_t ring[8 * 64];

	s.put_many(7);
	memcpy(ring, s.rig.sq(pe), sizeof(ring));
	EXPECT_EQ(s.put(), NDA_TIMEOUT);
	EXPECT_EQ(memcmp(ring, s.rig.sq(pe), sizeof(ring)), 0);
	ASSERT_EQ(s.rig.nic_run(pe, 1), 1u);
	ASSERT_EQ(s.put(), NDA_OK);
	EXPECT_EQ(memcmp(ring, s.rig.sq(pe), 7 * 64), 0);
}

/* Ring of four, so that owner bits of WQEs and CQEs change every fourth time. */
TEST(AivInDiePost, OwnerBitsAreThoseOfTheLapOver100Completions)
{
	Core s(with_depth(4));

	for (uint32_t i = 0; i < 100; i++) {
		ASSERT_EQ(s.put(), NDA_OK);
		EXPECT_EQ(s.wqe(i).owner, (i / 4) % 2 == 0) << i;
		ASSERT_EQ(s.rig.nic_run(pe), 1u);
		ASSERT_EQ(s.device.quiet(pe), NDA_OK) << i;
	}
}

TEST(AivInDiePost, IndicesWrapAt16And24And32Bits)
{
	for (bool index_in_ring : {false, true})
		for (bool cq_register : {false, true})
			for (uint32_t start :
				{0xffffu - 2, 0xffffffu - 2, 0xffffffffu - 2}) {
				InDieOptions options = with_depth(16);
				options.start = start;
				options.cq_register = cq_register;
				options.index_in_ring = index_in_ring;
				options.sq_record = cq_register;
				Core s(options);

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
				EXPECT_EQ(s.rig.consumer(pe), (start + 40) & 0xffffff);
			}
}

TEST(AivInDiePost, EveryDoorbellCarries16BitsOfItsHead)
{
	InDieOptions options = with_depth(1024);
	options.start = 0xfe80;
	Core s(options);
	std::vector<uint64_t> expected;

	for (uint32_t i = 1; i <= 600; i++)
		expected.push_back(
			0x0004000000001001u | uint64_t{(options.start + i) & 0xffff} << 32);
	s.put_many(600);
	EXPECT_EQ(s.doorbells(), expected);
	EXPECT_EQ(s.rig.nic_run(pe), 600u);
}

/* ---- Completion every k-th WQE ---- */

TEST(AivInDieSignal, OnlyEveryKthWqeAsksForACompletion)
{
	Core s(with_signal(4));

	s.put_many(12);
	for (uint32_t i = 0; i < 12; i++)
		EXPECT_EQ(s.wqe(i).completion, (i + 1) % 4 == 0) << i;
	EXPECT_EQ(s.rig.nic_run(pe), 12u);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.queue().state.tail, 12u);
	EXPECT_EQ(s.queue().state.cq_ci, 3u);
}

TEST(AivInDieSignal, QuietEndsAnUnsignalledSeriesWithAReadOfScratch)
{
	Core s(with_signal(8));

	s.put_many(3);
	s.run_in_waits();
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	format::wqe w = s.wqe(3);
	EXPECT_EQ(w.opcode, format::op_read);
	EXPECT_EQ(w.completion, 1);
	EXPECT_EQ(w.length, 8u);
	EXPECT_EQ(w.remote_va, s.queue().scratch_remote);
	EXPECT_EQ(w.data[1], s.queue().scratch_local + NDA_SCRATCH_FLUSH);
	EXPECT_EQ(s.queue().state.tail, 4u);
}

TEST(AivInDieSignal, CreditsComeBackWhateverTheInterval)
{
	for (uint32_t depth : {4u, 8u, 64u})
		for (uint32_t every = 1; every <= depth / 2; every++) {
			Core s(with_signal(every, depth));

			s.run_in_waits();
			s.put_many(5 * depth);
			EXPECT_EQ(s.device.quiet(pe), NDA_OK) << depth << " " << every;
			EXPECT_EQ(s.queue().state.tail, s.queue().state.head);
		}
}

TEST(AivInDieSignal, AnIntervalAboveTheRingStillLeavesACompletion)
{
	Core s(with_signal(1000, 8));

	s.run_in_waits();
	s.put_many(50);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

/* ---- Fence ---- */

TEST(AivInDieFence, IsTheStrongOrderBitOfTheNextWqeOnly)
{
	Core s;

	ASSERT_EQ(s.device.fence(pe), NDA_OK);
	s.put_many(1);
	EXPECT_EQ(s.wqe(0).strong_order, 0) << "nothing to wait for";
	ASSERT_EQ(s.device.fence(pe), NDA_OK);
	s.put_many(2);
	EXPECT_EQ(s.wqe(1).strong_order, 1);
	EXPECT_EQ(s.wqe(1).fence, 0);
	EXPECT_EQ(s.wqe(2).strong_order, 0);
}

/* ---- Completions ---- */

TEST(AivInDieQuiet, NothingPostedIsDoneAtOnce)
{
	Core s;

	EXPECT_EQ(s.device.quiet(), NDA_OK);
	EXPECT_EQ(s.recorder.relaxed, 0u);
	EXPECT_TRUE(s.recorder.stores.empty());
}

TEST(AivInDieQuiet, TheConsumerIndexGoesToTheDoorbellRegister)
{
	Core s;

	s.put_many(5);
	s.rig.nic_run(pe);
	s.recorder.stores.clear();
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	unsigned rung = 0;
	for (const Store &store : s.recorder.stores) {
		if (store.addr != s.queue().in_die.cq_doorbell)
			continue;
		rung++;
		EXPECT_EQ(store.kind, Store::device);
		/* CQN 0x51, command 3, index 5, cmd_sn 1 */
		EXPECT_EQ(store.value, 0x0200000503000051u);
	}
	EXPECT_EQ(rung, 1u);
}

TEST(AivInDieQuiet, OrToTheRecord)
{
	InDieOptions options;
	options.cq_register = false;
	options.cqe_stride = 64;
	Core s(options);

	s.put_many(5);
	s.rig.nic_run(pe);
	s.recorder.stores.clear();
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	unsigned written = 0;
	for (const Store &store : s.recorder.stores) {
		EXPECT_NE(store.kind, Store::device);
		if (store.addr != s.queue().cq_record)
			continue;
		written++;
		EXPECT_EQ(store.bytes, 4u);
		EXPECT_EQ(store.value, 5u);
	}
	EXPECT_EQ(written, 1u);
}

TEST(AivInDieQuiet, TheTableSetsItsDeadlineByTheClock)
{
	InDieOptions options;
	options.timeout_us = 250;
	Core s(options);

	s.put_many(1);
	EXPECT_EQ(s.device.quiet(pe), NDA_TIMEOUT);
	EXPECT_GE(s.recorder.now_ns, 250000u);
	EXPECT_LE(s.recorder.now_ns, 260000u);
	s.rig.nic_run(pe);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK) << "a timeout is not sticky";
}

TEST(AivInDieQuiet, ATimeoutKeepsWhatWasConsumed)
{
	Core s;

	s.put_many(5);
	s.rig.nic_run(pe, 3);
	EXPECT_EQ(s.device.quiet(pe), NDA_TIMEOUT);
	EXPECT_EQ(s.queue().state.tail, 3u);
	EXPECT_EQ(s.rig.consumer(pe), 3u);
}

TEST(AivInDiePoll, TargetZeroAfterAWrapIsWaitedFor)
{
	InDieOptions options;
	options.start = 0xfffffffd;
	Core s(options);

	s.put_many(3);
	s.rig.nic_run(pe);
	EXPECT_EQ(s.poll(0), NDA_OK);
	EXPECT_EQ(s.queue().state.cq_ci, 0u);
}

TEST(AivInDiePoll, ConsumesNoMoreThanItsTargetAndATargetBehindIsDone)
{
	Core s;

	s.put_many(4);
	s.rig.nic_run(pe);
	EXPECT_EQ(s.poll(2), NDA_OK);
	EXPECT_EQ(s.queue().state.cq_ci, 2u);
	EXPECT_EQ(s.queue().state.tail, 2u);
	EXPECT_EQ(s.poll(1), NDA_OK);
	EXPECT_EQ(s.queue().state.cq_ci, 2u);
	EXPECT_EQ(s.recorder.relaxed, 0u);
}

TEST(AivInDiePoll, ACompletionThatArrivesDuringALookIsSeenWholeOrNotAtAll)
{
	InDieOptions options = with_depth(8);
	options.start = 8;
	Core s(options);
	uint64_t first = s.queue().cq_base;
	unsigned looks = 0;

	s.put_many(1);
	s.recorder.before_look = [&](uint64_t addr) {
		if (addr == first && looks++ == 3)
			s.rig.nic_run(pe);
	};
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(looks, 4u);
}

/* ---- Errors ---- */

TEST(AivInDieError, IsConsumedPublishedAndLatched)
{
	Core s;

	s.put_many(3);
	ASSERT_EQ(s.rig.nic_run(pe, 1), 1u);
	s.rig.nic_complete(pe, 1, format::syndrome_remote_access, 0, 0x77);
	s.rig.nic_complete(pe, 2, format::syndrome_flushed);
	EXPECT_EQ(s.device.quiet(pe), NDA_REMOTE_ACCESS);
	const nda_queue_state &state = s.queue().state;
	EXPECT_EQ(state.error.status, uint32_t{NDA_REMOTE_ACCESS});
	EXPECT_EQ(state.error.raw_status, format::syndrome_remote_access);
	EXPECT_EQ(state.error.raw_vendor, 0x77);
	EXPECT_EQ(state.error.wqe_index, 1);
	EXPECT_EQ(state.tail, 3u);
	EXPECT_EQ(state.cq_ci, 3u);
	EXPECT_EQ(s.rig.consumer(pe), 3u);
}

TEST(AivInDieError, PollStopsAfterTheFirstAndHasPublishedIt)
{
	Core s;

	s.put_many(4);
	s.rig.nic_run(pe, 1);
	s.rig.nic_fail(pe, format::syndrome_local_protection);
	EXPECT_EQ(s.poll(4), NDA_LOCAL_PROTECTION);
	EXPECT_EQ(s.queue().state.cq_ci, 2u);
	EXPECT_EQ(s.rig.consumer(pe), 2u);
	EXPECT_EQ(s.poll(4), NDA_FLUSHED);
	EXPECT_EQ(s.queue().state.cq_ci, 3u);
	EXPECT_EQ(s.queue().state.error.status, uint32_t{NDA_LOCAL_PROTECTION});
}

TEST(AivInDieError, LaterOperationsFailFastWithItsStatus)
{
	Core s;
	uint64_t former = 7;

	s.put_many(2);
	s.rig.nic_fail(pe, format::syndrome_retry_exceeded);
	ASSERT_EQ(s.device.quiet(pe), NDA_RETRY_EXCEEDED);
	s.recorder.stores.clear();
	for (int i = 0; i < 100; i++)
		ASSERT_EQ(s.put(), NDA_RETRY_EXCEEDED);
	EXPECT_EQ(s.device.fence(pe), NDA_RETRY_EXCEEDED);
	EXPECT_EQ(s.device.fetch_add<uint64_t>(pe, s.dst, 1, &former), NDA_RETRY_EXCEEDED);
	EXPECT_EQ(former, 7u);
	{
		auto batch = s.device.batch(pe);
		EXPECT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_RETRY_EXCEEDED);
		EXPECT_EQ(batch.submit(), NDA_OK);
	}
	EXPECT_TRUE(s.doorbells().empty());
	EXPECT_EQ(s.queue().state.head, 2u);
	EXPECT_EQ(s.recorder.relaxed, 0u);
}

TEST(AivInDieError, FoundWhileWaitingForCreditIsThePostsStatus)
{
	Core s(with_depth(8));

	s.put_many(7);
	s.rig.nic_fail(pe, format::syndrome_remote_invalid);
	EXPECT_EQ(s.put(), NDA_REMOTE_INVALID);
	EXPECT_EQ(s.queue().state.head, 7u);
	EXPECT_EQ(s.device.quiet(pe), NDA_REMOTE_INVALID);
	EXPECT_EQ(s.queue().state.tail, 7u);
}

TEST(AivInDieError, AnUnsignalledWqeThatFailsIsSeen)
{
	Core s(with_signal(8));

	s.put_many(3);
	s.rig.nic_run(pe, 1);
	s.recorder.on_relax = [&] {
		if (s.rig.nic_next(pe) == 1)
			s.rig.nic_fail(pe, format::syndrome_local_length);
	};
	EXPECT_EQ(s.device.quiet(pe), NDA_LOCAL_LENGTH);
	EXPECT_EQ(s.queue().state.error.wqe_index, 1);
}

TEST(AivInDieError, ACompletionOfAWqeThatIsNotOutstandingIsNotBelieved)
{
	Core s;

	s.put_many(2);
	s.rig.nic_complete(pe, 7);
	s.recorder.on_relax = [&] { ADD_FAILURE() << "waits"; };
	EXPECT_EQ(s.device.quiet(pe), NDA_BAD_RESPONSE);
	EXPECT_EQ(s.queue().state.tail, 0u);
	EXPECT_EQ(s.queue().state.error.wqe_index, 7);
	EXPECT_EQ(s.put(), NDA_BAD_RESPONSE);
}

TEST(AivInDieError, ACompletionOfAReceiveIsNotTakenForAWqe)
{
	Core s;
	uint32_t word;

	s.put_many(2);
	s.rig.nic_complete(pe, 0);
	memcpy(&word, s.rig.cq(pe), 4);
	word |= 0x40;
	memcpy(s.rig.cq(pe), &word, 4);
	EXPECT_EQ(s.device.quiet(pe), NDA_BAD_RESPONSE);
	EXPECT_EQ(s.queue().state.tail, 0u);
	EXPECT_EQ(s.put(), NDA_BAD_RESPONSE);
}

TEST(AivInDieError, MoreCompletionsThanWqesAreNotBelieved)
{
	Core s;

	s.put_many(4);
	for (int i = 0; i < 3; i++)
		s.rig.nic_complete(pe, 0);
	EXPECT_EQ(s.device.quiet(pe), NDA_BAD_RESPONSE);
	EXPECT_EQ(s.queue().state.tail, 0u);
}

/* ---- Batches ---- */

TEST(AivInDieBatch, RingsOnceForEachBatch)
{
	for (uint32_t size : {1u, 2u, 7u, 16u, 40u}) {
		Core s(with_depth(256));

		for (uint32_t i = 0; i < 40;) {
			auto batch = s.device.batch(pe);

			for (uint32_t j = 0; j < size && i < 40; j++, i++)
				ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK);
			EXPECT_EQ(batch.submit(), NDA_OK);
		}
		EXPECT_EQ(s.doorbells().size(), (40 + size - 1) / size);
		EXPECT_EQ(s.rig.nic_run(pe), 40u);
		EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	}
}

TEST(AivInDieBatch, DeeperThanTheRingRingsEarly)
{
	for (uint32_t every : {1u, 3u, 4u}) {
		Core s(with_signal(every, 8));

		s.run_in_waits();
		auto batch = s.device.batch(pe);
		for (uint32_t i = 0; i < 100; i++)
			ASSERT_EQ(batch.get_nbi(s.src, s.dst, 8), NDA_OK) << i;
		EXPECT_EQ(batch.submit(), NDA_OK);
		EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	}
}

TEST(AivInDieBatch, OneWhoseCompletionsAreFewKeepsTheInterval)
{
	Core s(with_signal(16, 256));

	for (uint32_t i = 0; i < 4; i++) {
		auto batch = s.device.batch(pe);

		for (uint32_t j = 0; j < 16; j++)
			ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK);
		ASSERT_EQ(batch.submit(), NDA_OK);
	}
	for (uint32_t i = 0; i < 64; i++)
		EXPECT_EQ(s.wqe(i).completion, i % 16 == 15) << i;
	EXPECT_EQ(s.doorbells().size(), 4u);
	EXPECT_EQ(s.rig.nic_run(pe), 64u);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.queue().state.cq_ci, 4u);
	EXPECT_EQ(s.queue().state.head, 64u);
}

/* One that is over must not post into another's, whatever its line still holds. */
TEST(AivInDieBatch, OneThatIsOverDoesNotPostIntoAnother)
{
	Core s(with_signal(4));
	auto first = s.device.batch(pe);

	for (uint32_t i = 0; i < 3; i++)
		ASSERT_EQ(first.put_nbi(s.dst, s.src, 8), NDA_OK);
	ASSERT_EQ(first.submit(), NDA_OK);
	auto second = s.device.batch(pe);
	EXPECT_EQ(first.put_nbi(s.dst, s.src, 8), NDA_INVALID);
	EXPECT_EQ(second.put_nbi(s.dst, s.src, 8), NDA_OK);
	EXPECT_EQ(second.submit(), NDA_OK);
	EXPECT_EQ(s.queue().state.head, 4u);
	EXPECT_EQ(s.rig.nic_run(pe), 4u);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

/* ---- Other operations, on memory that is there ---- */

struct Real : Core {
	alignas(64) uint8_t own[4096] = {};
	alignas(64) uint8_t peer[4096] = {};

	static InDieOptions with_memory(InDieOptions options)
	{
		options.heap_base = 0;
		options.remote_delta = 0;
		return options;
	}
	explicit Real(const InDieOptions &o = {}) : Core(with_memory(o))
	{
		rig.real_addresses = true;
		queue().remote_delta = addr(peer) - addr(own);
		queue().scratch_local = addr(own) + 2048;
		queue().scratch_remote = addr(peer);
		recorder.add_memory(addr(own), sizeof(own));
		run_in_waits();
	}
	static uint64_t addr(const void *p) { return reinterpret_cast<uint64_t>(p); }
	/* Where @at of the own memory is at the peer, as a device call takes it. */
	uint64_t there(uint32_t offset) { return addr(own) + offset; }
	uint64_t &peer_word(uint32_t offset)
	{
		return *reinterpret_cast<uint64_t *>(peer + offset);
	}
};

TEST(AivInDieData, PutMovesTheBytesToThePeerAndGetBack)
{
	Real s;

	memcpy(s.own, "to be put", 9);
	ASSERT_EQ(s.device.put(pe, s.there(256), s.there(0), 9), NDA_OK);
	EXPECT_EQ(memcmp(s.peer + 256, "to be put", 9), 0);
	ASSERT_EQ(s.device.get(pe, s.there(512), s.there(256), 9), NDA_OK);
	EXPECT_EQ(memcmp(s.own + 512, "to be put", 9), 0);
}

TEST(AivInDieImmediate, IsInTheWqeWithAndWithoutBytes)
{
	Core s;

	ASSERT_EQ(s.device.put_immediate_nbi(pe, s.dst, s.src, 4, 0xcafe1234), NDA_OK);
	ASSERT_EQ(s.device.put_immediate_nbi(pe, s.dst, s.src, 0, 5), NDA_OK);
	format::wqe w = s.wqe(0);
	EXPECT_EQ(w.opcode, format::op_write_immediate);
	EXPECT_EQ(w.immediate, 0xcafe1234u);
	EXPECT_EQ(w.length, 4u);
	w = s.wqe(1);
	EXPECT_EQ(w.opcode, format::op_write_immediate);
	EXPECT_EQ(w.immediate, 5u);
	EXPECT_EQ(w.length, 0u);
	EXPECT_EQ(w.sges, 0);
}

TEST(AivInDieImmediate, OfASplitPutIsSaidOnce)
{
	Core s;

	ASSERT_EQ(s.device.put_immediate_nbi(pe, s.dst, s.src, (uint64_t{1} << 31) + 1, 6),
		NDA_OK);
	ASSERT_EQ(s.queue().state.head, 2u);
	EXPECT_EQ(s.wqe(0).opcode, format::op_write);
	EXPECT_EQ(s.wqe(1).opcode, format::op_write_immediate);
	EXPECT_EQ(s.wqe(1).immediate, 6u);
}

TEST(AivInDieInline, ReadsItsSourceAtOnce)
{
	Real s;

	memcpy(s.own + 3, "inline data", 11);
	ASSERT_EQ(s.device.put_inline_nbi(pe, s.there(64), s.there(3), 11), NDA_OK);
	memset(s.own, 0, 64);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(memcmp(s.peer + 64, "inline data", 12), 0);
	EXPECT_EQ(s.rig.last.inline_data, 1);
}

TEST(AivInDieInline, TakesUpTo32Bytes)
{
	Real s;

	EXPECT_EQ(s.device.put_inline_nbi(pe, s.there(64), s.there(0), 32), NDA_OK);
	EXPECT_EQ(s.device.put_inline_nbi(pe, s.there(64), s.there(0), 33), NDA_INVALID);
	EXPECT_EQ(s.device.put_inline_nbi(pe, s.there(64), s.there(0), UINT64_MAX),
		NDA_INVALID);
	EXPECT_EQ(s.rig.nic_run(pe), 1u);
}

TEST(AivInDiePieces, AreGatheredAndScattered)
{
	Real s;
	nda_piece from[2] = {{s.there(0), 3}, {s.there(256), 4}};
	nda_piece to[2] = {{s.there(512), 5}, {s.there(768), 2}};

	memcpy(s.own, "abc", 3);
	memcpy(s.own + 256, "defg", 4);
	ASSERT_EQ(s.device.put_pieces_nbi(pe, s.there(1024), from, 2), NDA_OK);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(memcmp(s.peer + 1024, "abcdefg", 8), 0);
	ASSERT_EQ(s.device.get_pieces_nbi(pe, s.there(1024), to, 2), NDA_OK);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(memcmp(s.own + 512, "abcde", 6), 0);
	EXPECT_EQ(memcmp(s.own + 768, "fg", 3), 0);
	EXPECT_EQ(s.queue().state.head, 2u);
}

TEST(AivInDiePieces, ThatDoNotFitOneWqeAreRefused)
{
	Core s;
	nda_piece three[3] = {{s.src, 8}, {s.src, 8}, {s.src, 8}};
	nda_piece too_long[2] = {{s.src, 0x80000000}, {s.src, 1}};
	nda_piece empty[2] = {{s.src, 8}, {s.src, 0}};
	nda_piece wrapping[2] = {{s.src, UINT64_MAX}, {s.src, 2}};

	EXPECT_EQ(s.device.put_pieces_nbi(pe, s.dst, three, 3), NDA_INVALID);
	EXPECT_EQ(s.device.put_pieces_nbi(pe, s.dst, too_long, 2), NDA_INVALID);
	EXPECT_EQ(s.device.put_pieces_nbi(pe, s.dst, empty, 2), NDA_INVALID);
	EXPECT_EQ(s.device.put_pieces_nbi(pe, s.dst, wrapping, 2), NDA_INVALID);
	EXPECT_EQ(s.device.get_pieces_nbi(pe, s.dst, three, 0), NDA_INVALID);
	EXPECT_TRUE(s.recorder.stores.empty());
}

TEST(AivInDieSignalTo, APutWithASignalIsAWriteAndAnInlineWriteBehindIt)
{
	Real s;

	memcpy(s.own, "data", 4);
	ASSERT_EQ(s.device.put_signal_nbi(
			  pe, s.there(64), s.there(0), 4, s.there(128), 0x1122334455667788),
		NDA_OK);
	EXPECT_EQ(s.queue().state.head, 2u);
	EXPECT_EQ(s.rig.nic_run(pe, 1), 1u);
	EXPECT_EQ(memcmp(s.peer + 64, "data", 4), 0);
	EXPECT_EQ(s.peer_word(128), 0u);
	EXPECT_EQ(s.rig.nic_run(pe, 1), 1u);
	EXPECT_EQ(s.rig.last.inline_data, 1);
	EXPECT_EQ(s.rig.last.data[1], 0u);
	EXPECT_EQ(s.peer_word(128), 0x1122334455667788u);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

TEST(AivInDieAtomic, FetchAddReturnsTheFormerValue)
{
	Real s;
	uint64_t former = 0;

	s.peer_word(64) = 40;
	ASSERT_EQ(s.device.fetch_add<uint64_t>(pe, s.there(64), 2, &former), NDA_OK);
	EXPECT_EQ(former, 40u);
	EXPECT_EQ(s.peer_word(64), 42u);
	EXPECT_EQ(s.rig.last.opcode, format::op_fetch_add);
	EXPECT_EQ(s.rig.last.data[3], 0u);
}

TEST(AivInDieAtomic, CompareSwapStoresOnlyWhereItMatches)
{
	Real s;
	uint64_t former = 0;

	s.peer_word(64) = 40;
	ASSERT_EQ(s.device.compare_swap<uint64_t>(pe, s.there(64), 41, 7, &former), NDA_OK);
	EXPECT_EQ(former, 40u);
	EXPECT_EQ(s.peer_word(64), 40u);
	ASSERT_EQ(s.device.compare_swap<uint64_t>(pe, s.there(64), 40, 7, &former), NDA_OK);
	EXPECT_EQ(former, 40u);
	EXPECT_EQ(s.peer_word(64), 7u);
}

TEST(AivInDieAtomic, WithoutFetchingItStillCounts)
{
	Real s;

	for (int i = 0; i < 5; i++)
		ASSERT_EQ(s.device.add_nbi<uint64_t>(pe, s.there(64), 3), NDA_OK);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.peer_word(64), 15u);
}

TEST(AivInDieAtomic, EachOutstandingOneHasItsOwnResult)
{
	Real s;

	for (uint32_t i = 0; i < 8; i++)
		ASSERT_EQ(s.device.fetch_add_nbi<uint64_t>(
				  pe, s.there(64), 10, s.there(512 + i * 8)),
			NDA_OK);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	for (uint32_t i = 0; i < 8; i++)
		EXPECT_EQ(s.device.read_result<uint64_t>(s.there(512 + i * 8)), i * 10);
}

TEST(AivInDieAtomic, WhatTheFormatLacksIsNotSupportedAndPostsNothing)
{
	Real s;
	uint64_t former = 5;
	uint32_t former32 = 5;

	EXPECT_EQ(s.device.fetch_add<uint32_t>(pe, s.there(64), 1, &former32),
		NDA_NOT_SUPPORTED);
	EXPECT_EQ(s.device.compare_swap<uint32_t>(pe, s.there(64), 1, 2, &former32),
		NDA_NOT_SUPPORTED);
	EXPECT_EQ(s.device.swap<uint64_t>(pe, s.there(64), 1, &former), NDA_NOT_SUPPORTED);
	EXPECT_EQ(s.device.fetch_and<uint64_t>(pe, s.there(64), 1, &former),
		NDA_NOT_SUPPORTED);
	EXPECT_EQ(s.device.set_nbi<uint64_t>(pe, s.there(64), 1), NDA_NOT_SUPPORTED);
	EXPECT_EQ(s.device.or_nbi<uint64_t>(pe, s.there(64), 1), NDA_NOT_SUPPORTED);
	EXPECT_EQ(s.device.xor_nbi<uint64_t>(pe, s.there(64), 1), NDA_NOT_SUPPORTED);
	EXPECT_EQ(s.device.add_f32_nbi(pe, s.there(64), 1), NDA_NOT_SUPPORTED);
	EXPECT_EQ(former, 5u);
	EXPECT_EQ(former32, 5u);
	EXPECT_TRUE(s.recorder.stores.empty());
}

TEST(AivInDieAtomic, MisalignedWordsAreRefused)
{
	Real s;
	uint64_t former = 5;

	EXPECT_EQ(s.device.fetch_add_nbi<uint64_t>(pe, s.there(68), 1, s.there(0)),
		NDA_INVALID);
	EXPECT_EQ(s.device.compare_swap_nbi<uint64_t>(pe, s.there(64), 1, 2, s.there(1)),
		NDA_INVALID);
	s.queue().scratch_local = 0;
	EXPECT_EQ(s.device.fetch_add<uint64_t>(pe, s.there(64), 1, &former), NDA_INVALID);
	EXPECT_EQ(former, 5u);
	EXPECT_TRUE(s.recorder.stores.empty());
}

/* ---- The table and the line ---- */

TEST(AivInDieTable, OfAnotherFormatIsRefused)
{
	Core s;
	aiv::Device<RecordingCore> other;
	Device own;

	EXPECT_EQ(
		other.open(RecordingCore(&s.recorder), s.rig.address(), 0), NDA_BAD_TABLE);
	s.rig.table()->format = NDA_FORMAT_HNS1825;
	EXPECT_EQ(own.open(RecordingCore(&s.recorder), s.rig.address(), 0), NDA_BAD_TABLE);
}

TEST(AivInDieTable, AQueueThatCannotWorkIsNotUsable)
{
	Core s;
	const nda_queue good = s.queue();
	auto usable = [&](auto change) {
		nda_queue q = good;

		change(&q);
		return aiv::in_die::queue_usable(q);
	};

	EXPECT_TRUE(usable([](nda_queue *) {}));
	EXPECT_TRUE(usable([](nda_queue *q) { q->sq_depth = 32768; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->valid = 0; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->sq_depth = 48; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->sq_depth = 65536; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->cq_depth = 2; }));
	EXPECT_TRUE(usable([](nda_queue *q) { q->qpn = q->cqn = 0xffffff; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->qpn = 0x1000000; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->cqn = 0x1000000; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->signal_every = 0; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->signal_every = 33; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->cqe_stride = 16; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->sq_base += 8; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->sq_record = 2; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->sq_doorbell += 4; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->in_die.cq_doorbell += 4; }));
	EXPECT_FALSE(usable([](nda_queue *q) { q->in_die.cq_doorbell = 0; }));
	EXPECT_TRUE(usable([](nda_queue *q) {
		q->in_die.cq_doorbell = 0;
		q->cq_record = 64;
	}));
	EXPECT_FALSE(usable([](nda_queue *q) {
		q->signal_every = 2;
		q->scratch_local = 0;
	}));
}

TEST(AivInDieLend, OnlyAnIdleQueueIsLentAndRefusesPostsUntilTakenBack)
{
	Core s(with_depth(16));
	nda_queue_state &state = s.queue().state;

	s.put_many(1);
	EXPECT_FALSE(aiv::lend(&state)) << "a WQE is outstanding";
	s.rig.nic_run(pe);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	ASSERT_TRUE(aiv::lend(&state));
	EXPECT_EQ(s.put(), NDA_QUEUE_LENT);
	/* The view posts and polls with its own code, three WQEs. */
	state.head = 4;
	for (uint32_t i = 1; i < 4; i++) {
		format::request r = {};
		uint64_t w[8];

		r.opcode = format::op_write;
		r.sges = 1;
		format::encode(format::request_wqe(r, i, 16), w);
		memcpy(s.rig.sq(pe) + i * 64, w, 64);
		s.rig.nic_complete(pe, i);
	}
	state.tail = state.cq_ci = 4;
	ASSERT_TRUE(aiv::in_die::take_back(s.queue(), &state));
	EXPECT_FALSE(aiv::in_die::take_back(s.queue(), &state)) << "not lent";
	*reinterpret_cast<uint64_t *>(s.queue().sq_doorbell) =
		format::doorbell_value(s.queue().doorbell_template, 4);
	EXPECT_EQ(s.rig.nic_run(pe), 3u);
	s.run_in_waits();
	s.put_many(40);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(state.tail, 44u);
}

/* ---- The usual way against the complete one ---- */

constexpr uint32_t random_operations =
#if NDA_TSAN
	1000;
#else
	20000;
#endif

struct Side {
	InDieRig rig;
	aiv::Device<aiv::HostCore, aiv::in_die::Engine> device;

	explicit Side(const InDieOptions &options) : rig(options)
	{
		EXPECT_EQ(device.open(aiv::HostCore(), rig.address(), 0), NDA_OK);
	}
	nda_queue &queue() { return rig.queue(pe); }
	enum nda_status post_completely(
		aiv::verb what, uint64_t remote, uint64_t local, uint64_t n)
	{
		aiv::operation op = {};

		op.op = what;
		op.rkey = queue().rkey;
		op.lkey = queue().lkey;
		op.remote_va = remote + queue().remote_delta;
		op.local_va = local;
		op.length = n;
		return aiv::in_die::Queue<aiv::HostCore>(device.core(),
			device.queue_address(pe),
			aiv::wait_limits{rig.table()->device_timeout_us, 0})
			.post_any(op, false);
	}
};

/* Two queues take the same random operations, one of them by the complete algorithm alone,
 * and have to hold the same bytes and state after each. */
class Twins {
public:
	Twins(const InDieOptions &options, uint64_t seed)
		: usual_(options), complete_(options), options_(options), random_(seed)
	{}

	void run()
	{
		for (uint32_t i = 0; i < random_operations && !testing::Test::HasFailure();
			i++) {
			step();
			compare();
		}
	}

private:
	uint32_t pick(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

	uint64_t length()
	{
		switch (pick(16)) {
		case 0:
			return 0;
		case 1:
			return format::max_length;
		case 2:
			return pick(50) == 0 ? uint64_t{format::max_length} + 1 : 1;
		default:
			return 1 + pick(4096);
		}
	}

	void step()
	{
		uint32_t what = pick(64);

		if (what < 44)
			post();
		else if (what < 50)
			batch();
		else if (what < 52)
			ASSERT_EQ(usual_.device.fence(pe), complete_.device.fence(pe));
		else if (what < 54)
			ASSERT_EQ(usual_.device.quiet(pe), complete_.device.quiet(pe));
		else
			nic();
	}

	void post()
	{
		uint64_t remote = random_() % 65536, local = random_() % 65536;
		uint64_t n = length();

		if (pick(3) == 0)
			ASSERT_EQ(usual_.device.get_nbi(pe, local, remote, n),
				complete_.post_completely(
					aiv::verb::read, remote, local, n));
		else
			ASSERT_EQ(usual_.device.put_nbi(pe, remote, local, n),
				complete_.post_completely(
					aiv::verb::write, remote, local, n));
	}

	/* The complete side posts one by one, and rings at the end as a batch does. */
	void batch()
	{
		auto usual = usual_.device.batch(pe);
		uint32_t n = pick(options_.sq_depth / 2 + 1);

		for (uint32_t i = 0; i < n; i++) {
			uint64_t remote = random_() % 65536, size = length();

			ASSERT_EQ(usual.put_nbi(remote, 0, size),
				complete_.post_completely(
					aiv::verb::write, remote, 0, size));
		}
		usual.submit();
	}

	void nic()
	{
		uint32_t most = pick(options_.sq_depth) + 1;

		ASSERT_EQ(usual_.rig.nic_run(pe, most), complete_.rig.nic_run(pe, most));
		ASSERT_EQ(usual_.rig.fault, "");
		ASSERT_EQ(complete_.rig.fault, "");
	}

	void compare()
	{
		const nda_queue_state &u = usual_.queue().state,
				      &c = complete_.queue().state;

		ASSERT_EQ(u.head, c.head);
		ASSERT_EQ(u.tail, c.tail);
		ASSERT_EQ(u.cq_ci, c.cq_ci);
		ASSERT_EQ(u.flags, c.flags);
		ASSERT_EQ(u.error.status, c.error.status);
		ASSERT_EQ(memcmp(reinterpret_cast<void *>(usual_.queue().sq_doorbell),
				  reinterpret_cast<void *>(complete_.queue().sq_doorbell),
				  256),
			0);
		ASSERT_EQ(memcmp(usual_.rig.sq(pe), complete_.rig.sq(pe),
				  size_t{options_.sq_depth} * format::wqe_bytes),
			0);
		/* What the complete way would work out for this state. */
		aiv::in_die::window want =
			aiv::in_die::make_window(aiv::in_die::geometry_of(usual_.queue()),
				u.head, u.tail, u.signalled);
		ASSERT_EQ(u.limit, aiv::window_shut(u) ? u.head : want.limit);
		ASSERT_EQ(u.next_slot, want.next_slot);
		if (u.head == u.limit)
			return; /* the complete way is next and uses nothing more */
		ASSERT_EQ(u.next_word0, want.next_word0);
		if (options_.signal_every != 1) {
			ASSERT_EQ(u.signalled, c.signalled);
		}
	}

	Side usual_;
	Side complete_;
	InDieOptions options_;
	std::mt19937_64 random_;
};

TEST(AivInDieTwins, TheUsualWayLeavesTheQueueThatTheCompleteOneDoes)
{
	uint64_t seed = 1;

	for (uint32_t depth : {4u, 8u, 64u, 256u})
		for (uint32_t start :
			{0xffffu - 3000, 0xffffffu - 3000, 0xffffffffu - 3000})
			for (uint32_t every : {1u, 2u, depth / 2}) {
				InDieOptions options = with_signal(every, depth);
				options.start = start;
				options.timeout_us = 1;
				options.sq_record = seed % 2 != 0;
				options.cq_register = seed % 3 != 0;
				options.index_in_ring = seed % 5 == 0;
				SCOPED_TRACE(testing::Message()
					<< "depth " << depth << " start " << start
					<< " every " << every);
				Twins(options, seed++).run();
				if (HasFailure())
					return;
			}
}

/* The NIC in a thread of its own: what it reads of a WQE was written before the doorbell,
 * and what the core reads of a CQE before its owner bit. */
TEST(AivInDieThreads, TheNicSeesEachWqeWhole)
{
	InDieOptions options = with_signal(4, 16);
	options.timeout_us = 60 * 1000 * 1000;
	InDieRig rig(options);
	aiv::Device<aiv::HostCore, aiv::in_die::Engine> device;
	std::atomic<bool> stop{false};

	ASSERT_EQ(device.open(aiv::HostCore(), rig.address(), 0), NDA_OK);
	std::thread nic([&] {
		while (!stop.load(std::memory_order_acquire))
			if (rig.nic_run(pe) == 0)
				std::this_thread::yield();
	});
	enum nda_status status = NDA_OK;
	for (uint64_t i = 0; i < 5000 && status == NDA_OK; i++) {
		status = device.put_nbi(pe, i * 8, 0, 8);
		if (i % 7 == 0 && status == NDA_OK)
			status = device.quiet(pe);
	}
	if (status == NDA_OK)
		status = device.quiet(pe);
	stop.store(true, std::memory_order_release);
	nic.join();
	EXPECT_EQ(status, NDA_OK);
	EXPECT_EQ(rig.fault, "");
}

} // namespace
