/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The UDMA engine: requests of several blocks, credit, order, completions, atomics, indices
 * over their wraps. */
#include <stdint.h>
#include <string.h>

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <nda/aiv/device.h>
#include <nda/aiv/host_core.h>
#include <nda/aiv/udma_queue.h>
#include <tests/mock/recording_core.h>
#include <tests/mock/udma_rig.h>

namespace {

using namespace nda;
using namespace nda::test;
namespace u = nda::hw::udma;
using Device = aiv::Device<RecordingCore, aiv::udma::Engine>;
using Queue = aiv::udma::Queue<RecordingCore>;

constexpr uint32_t pe = 1;

/* A device of one core over a rig, and the NIC behind it. */
struct OneCore {
	UdmaOptions options;
	UdmaRig rig;
	Recorder recorder;
	Device device;
	uint64_t dst;
	uint64_t src;

	explicit OneCore(const UdmaOptions &o = {})
		: options(o), rig(o), dst(rig.own_base() + 0x100),
		  src(rig.own_base() + 0x8000)
	{
		recorder.add_memory(rig.address(), rig.bytes());
		recorder.add_memory(rig.own_base(), o.heap_bytes);
		for (uint32_t to = 1; to < o.n_pes; to++) {
			const nda_queue &q = rig.queue(to);

			recorder.add_memory(q.sq_base, uint64_t{q.sq_depth} * u::bb_bytes);
			recorder.add_memory(q.cq_base, uint64_t{q.cq_depth} * q.cqe_stride);
			recorder.add_memory(q.sq_doorbell, 128);
		}
		EXPECT_EQ(device.open(RecordingCore(&recorder), rig.address(), 0), NDA_OK);
		for (uint32_t i = 0; i < 0x1000; i++)
			rig.own()[0x8000 + i] = static_cast<uint8_t>(i * 7 + 1);
	}
	~OneCore()
	{
		for (const std::string &violation : recorder.violations)
			ADD_FAILURE() << violation;
		EXPECT_EQ(rig.fault, "");
	}

	nda_queue_state &state() { return rig.queue(pe).state; }
	/* The NIC works whenever the core waits. */
	void run_in_waits()
	{
		recorder.on_relax = [this] { rig.run(pe); };
	}
	enum nda_status put_signal(uint64_t n = 8)
	{
		return device.put_signal_nbi(pe, dst, src, n, dst + 0x2000, 0x5157);
	}
	u::control at(uint32_t index) { return rig.control(pe, index); }
};

UdmaOptions depth(uint32_t blocks)
{
	UdmaOptions o;

	o.sq_depth = o.cq_depth = blocks;
	return o;
}

TEST(AivUdma, APutAndAGetMoveTheirBytes)
{
	OneCore s;

	ASSERT_EQ(s.device.put_nbi(pe, s.dst, s.src, 100), NDA_OK);
	ASSERT_EQ(s.device.get_nbi(pe, s.src + 0x2000, s.dst, 100), NDA_OK);
	EXPECT_EQ(s.rig.run(pe), 2u);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(memcmp(s.rig.peer() + 0x100, s.rig.own() + 0x8000, 100), 0);
	EXPECT_EQ(memcmp(s.rig.own() + 0xa000, s.rig.own() + 0x8000, 100), 0);
}

TEST(AivUdma, ASignalIsPartOfItsPutsRequest)
{
	OneCore s;

	ASSERT_EQ(s.put_signal(), NDA_OK);
	EXPECT_EQ(s.state().head, 2u);
	EXPECT_EQ(s.at(0).opcode, u::op_write_notify);
	EXPECT_EQ(s.rig.run(pe), 1u);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.rig.peer_word<uint64_t>(s.dst + 0x2000), 0x5157u);
	EXPECT_EQ(s.state().tail, 2u);
}

/* The strict reader behind the rig objects to each bit that is not written. */
TEST(AivUdma, NothingOfARingsEarlierLapsStays)
{
	for (uint8_t fill : {0x00, 0xff, 0xa5, 0x3c})
		for (uint64_t n = 1; n <= 208; n++) {
			UdmaOptions o;
			o.fill = fill;
			OneCore s(o);
			uint64_t swap[2] = {1, 2};
			nda_piece pieces[6];

			for (nda_piece &p : pieces)
				p = {s.src, 1 + n % 9};
			s.run_in_waits();
			ASSERT_EQ(s.device.put_inline_nbi(pe, s.dst, s.src, n), NDA_OK);
			ASSERT_EQ(s.put_signal(n), NDA_OK);
			ASSERT_EQ(s.device.put_pieces_nbi(
					  pe, s.dst + 0x400, pieces, 1 + n % 6),
				NDA_OK);
			ASSERT_EQ(s.device.put_immediate_nbi(pe, s.dst, s.src, n - 1, 7),
				NDA_OK);
			ASSERT_EQ(
				s.device.add_nbi<uint32_t>(pe, s.dst + 0x3000, 1), NDA_OK);
			ASSERT_EQ(s.device.add_f32_nbi(pe, s.dst + 0x3000, 1), NDA_OK);
			ASSERT_EQ(s.device.compare_swap16(
					  pe, s.dst + 0x3000, swap, swap, swap),
				NDA_OK);
			ASSERT_EQ(memcmp(s.rig.peer() + 0x100, s.rig.own() + 0x8000, n - 1),
				0);
			ASSERT_EQ(s.rig.fault, "");
		}
}

TEST(AivUdma, ARequestGoesOnAtTheRingsStart)
{
	for (bool last : {false, true})
		for (uint32_t before = 61; before < 64; before++) {
			UdmaOptions o;
			o.names_last_block = last;
			OneCore s(o);
			uint8_t big[200];

			s.run_in_waits();
			for (uint32_t i = 0; i < before; i++)
				ASSERT_EQ(s.device.put(pe, s.dst, s.src, 8), NDA_OK);
			/* Four blocks, of which one to three are before the end. */
			ASSERT_EQ(s.device.put_inline_nbi(pe, s.dst, s.src, 200), NDA_OK);
			ASSERT_EQ(s.device.quiet(pe), NDA_OK);
			memcpy(big, s.rig.own() + 0x8000, sizeof(big));
			EXPECT_EQ(memcmp(s.rig.peer() + 0x100, big, sizeof(big)), 0);
			EXPECT_EQ(s.state().head, before + 4);
			EXPECT_EQ(s.state().tail, before + 4);
		}
}

TEST(AivUdma, TheRingIsFilledToItsLastBlock)
{
	OneCore s;

	for (uint32_t i = 0; i < 31; i++)
		ASSERT_EQ(s.put_signal(), NDA_OK);
	ASSERT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_OK);
	ASSERT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_OK);
	EXPECT_EQ(s.state().head - s.state().tail, 64u);
	EXPECT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_TIMEOUT);
	EXPECT_EQ(s.rig.run(pe), 33u);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.state().tail, 64u);
}

TEST(AivUdma, ARequestOfTwoBlocksWaitsForBoth)
{
	OneCore s;

	for (uint32_t i = 0; i < 63; i++)
		ASSERT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_OK);
	EXPECT_EQ(s.put_signal(), NDA_TIMEOUT);
	EXPECT_EQ(s.state().head, 63u);
	EXPECT_EQ(s.rig.run(pe, 1), 1u);
	EXPECT_EQ(s.put_signal(), NDA_OK);
	EXPECT_EQ(s.state().head, 65u);
	s.rig.run(pe);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

/* Random requests of one to four blocks, ring and CQ small, from indices that wrap; which
 * block a completion names changes with the run. */
TEST(AivUdma, CreditIsRightOverMixedRequestsAndWraps)
{
	const uint32_t starts[] = {
		0, (1u << 16) - 3, (1u << 22) - 3, (1u << 24) - 3, (1u << 31) - 3, ~0u - 2};

	for (uint32_t start : starts)
		for (uint32_t every : {1u, 4u, 31u})
			for (bool last : {false, true}) {
				UdmaOptions o = depth(64);
				o.start = start;
				o.signal_every = every;
				o.names_last_block = last;
				OneCore s(o);
				std::mt19937 random(start + every);

				s.recorder.on_relax = [&] { s.rig.run(pe, 1); };
				for (uint32_t i = 0; i < 600; i++) {
					uint32_t n = 1 + random() % 200;
					switch (random() % 4) {
					case 0:
						ASSERT_EQ(s.put_signal(n), NDA_OK);
						break;
					case 1:
						ASSERT_EQ(s.device.put_inline_nbi(
								  pe, s.dst, s.src, n),
							NDA_OK);
						break;
					case 2:
						ASSERT_EQ(s.device.quiet(pe), NDA_OK);
						ASSERT_EQ(s.state().tail, s.state().head);
						break;
					default:
						ASSERT_EQ(s.device.put_nbi(
								  pe, s.dst, s.src, n),
							NDA_OK);
					}
					ASSERT_EQ(s.rig.fault, "");
					ASSERT_LE(s.state().head - s.state().tail, 64u);
				}
				ASSERT_EQ(s.device.quiet(pe), NDA_OK);
				ASSERT_EQ(s.rig.next(pe), s.state().head);
				ASSERT_EQ(s.state().cq_ci - start, s.rig.completions(pe));
			}
}

TEST(AivUdma, ACompletionThatNamesTheFirstBlockDoesNotLeaveTheQueueBusy)
{
	OneCore s;

	ASSERT_EQ(s.put_signal(), NDA_OK);
	s.rig.run(pe);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.state().tail, s.state().head);
	uint32_t head = s.state().head;
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.state().head, head);
}

TEST(AivUdma, OnlyEveryKthBlockHasACompletion)
{
	UdmaOptions o;
	o.signal_every = 8;
	OneCore s(o);

	for (uint32_t i = 0; i < 16; i++)
		ASSERT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_OK);
	s.rig.run(pe);
	EXPECT_EQ(s.rig.completions(pe), 2u);
	for (uint32_t i = 0; i < 16; i++)
		EXPECT_EQ(s.at(i).completion, i % 8 == 7) << i;
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

TEST(AivUdma, ABatchHasOneDoorbellAndMayBeDeeperThanTheRing)
{
	UdmaOptions o;
	o.signal_every = 16;
	OneCore s(o);
	uint32_t rung = 0;

	s.run_in_waits();
	{
		auto batch = s.device.batch(pe);
		for (uint32_t i = 0; i < 16; i++)
			ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK);
		EXPECT_EQ(s.rig.doorbell(pe), 0u);
		ASSERT_EQ(batch.submit(), NDA_OK);
	}
	for (const Store &store : s.recorder.stores)
		rung += store.kind == Store::device;
	EXPECT_EQ(rung, 1u);
	EXPECT_EQ(s.rig.doorbell(pe), 16u);
	{
		auto batch = s.device.batch(pe);
		for (uint32_t i = 0; i < 200; i++)
			ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK);
		ASSERT_EQ(batch.submit(), NDA_OK);
	}
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

/* ---- Order ---- */

TEST(AivUdma, RequestsAreRelaxedAndTheirCompletionsInOrder)
{
	OneCore s;

	ASSERT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_OK);
	EXPECT_EQ(s.at(0).place_order, u::place_relaxed);
	EXPECT_EQ(s.at(0).comp_order, 1);
	EXPECT_EQ(s.at(0).fence, 0);
}

TEST(AivUdma, AllThatFollowsAFenceIsStrongUntilWhatWasBeforeIsDone)
{
	OneCore s;

	ASSERT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_OK);
	ASSERT_EQ(s.device.fence(pe), NDA_OK);
	for (uint32_t i = 1; i < 4; i++) {
		ASSERT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_OK);
		EXPECT_EQ(s.at(i).place_order, u::place_strong) << i;
		EXPECT_EQ(s.at(i).fence, 1) << i;
	}
	s.rig.run(pe);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	ASSERT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_OK);
	EXPECT_EQ(s.at(4).place_order, u::place_relaxed);
	EXPECT_EQ(s.at(4).fence, 0);
}

TEST(AivUdma, AFenceOnAnIdleQueueChangesNothing)
{
	OneCore s;

	ASSERT_EQ(s.device.fence(pe), NDA_OK);
	ASSERT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_OK);
	EXPECT_EQ(s.at(0).place_order, u::place_relaxed);
}

TEST(AivUdma, ASignalIsStrong)
{
	OneCore s;

	ASSERT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_OK);
	ASSERT_EQ(s.put_signal(), NDA_OK);
	ASSERT_EQ(s.device.signal_nbi(pe, s.dst, 1), NDA_OK);
	EXPECT_EQ(s.at(1).place_order, u::place_strong);
	EXPECT_EQ(s.at(3).place_order, u::place_strong);
	s.rig.run(pe);
}

TEST(AivUdma, TheFlagsAreTheQueues)
{
	UdmaOptions o;
	o.order = 0;
	o.strong_order = u::place_strong;
	o.owner = false;
	OneCore s(o);

	ASSERT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_OK);
	ASSERT_EQ(s.put_signal(), NDA_OK);
	EXPECT_EQ(s.at(0).place_order, u::place_none);
	EXPECT_EQ(s.at(0).comp_order, 0);
	EXPECT_EQ(s.at(0).owner, 0);
	EXPECT_EQ(s.at(1).place_order, u::place_strong);
	s.rig.run(pe);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

/* Without an order of completions one says nothing of the requests before it. */
TEST(AivUdma, CompletionsOutOfOrderFreeNothingBeforeTheLast)
{
	UdmaOptions o;
	o.order = u::place_relaxed;
	OneCore s(o);

	for (uint32_t i = 0; i < 3; i++)
		ASSERT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_OK);
	s.rig.complete(pe, 2, 1);
	s.rig.complete(pe, 0, 1);
	EXPECT_EQ(s.device.quiet(pe), NDA_TIMEOUT);
	EXPECT_EQ(s.state().tail, 0u);
	s.rig.complete(pe, 1, 1);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.state().tail, 3u);
}

/* ---- Errors ---- */

TEST(AivUdma, AnErrorIsConsumedPublishedAndSticky)
{
	OneCore s;

	s.rig.queue(pe).key_words[0] ^= 1;
	ASSERT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_OK);
	s.rig.queue(pe).key_words[0] ^= 1;
	ASSERT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_OK);
	EXPECT_EQ(s.rig.run(pe), 2u);
	EXPECT_EQ(s.device.quiet(pe), NDA_REMOTE_ACCESS);
	EXPECT_EQ(s.state().error.status, uint32_t{NDA_REMOTE_ACCESS});
	EXPECT_EQ(s.state().error.raw_status, u::status_remote);
	EXPECT_EQ(s.state().error.raw_vendor, u::remote_access);
	EXPECT_EQ(s.state().error.wqe_index, 0);
	EXPECT_EQ(s.rig.cq_record(pe), 2u);
	uint32_t head = s.state().head;
	EXPECT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_REMOTE_ACCESS);
	EXPECT_EQ(s.put_signal(), NDA_REMOTE_ACCESS);
	EXPECT_EQ(s.state().head, head);
	EXPECT_EQ(s.device.quiet(pe), NDA_REMOTE_ACCESS);
}

TEST(AivUdma, TheEndOfAFlushIsTheEndOfAllThatIsPosted)
{
	OneCore s;
	u::cqe done = {};

	for (uint32_t i = 0; i < 5; i++)
		ASSERT_EQ(s.put_signal(), NDA_OK);
	done.status = u::status_flushed;
	done.flush_done = 1;
	done.entry_index = 0x7777;
	s.rig.complete(pe, 0, 2, u::status_ack_timeout << 8);
	s.rig.complete(pe, done);
	EXPECT_EQ(s.device.quiet(pe), NDA_RETRY_EXCEEDED);
	EXPECT_EQ(s.state().tail, s.state().head);
	EXPECT_EQ(s.rig.cq_record(pe), 2u);
}

TEST(AivUdma, ACompletionOfNothingOutstandingIsNotBelieved)
{
	OneCore s;

	ASSERT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_OK);
	s.rig.complete(pe, 9, 1);
	EXPECT_EQ(s.device.quiet(pe), NDA_BAD_RESPONSE);
	EXPECT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_BAD_RESPONSE);
}

TEST(AivUdma, ACompletionOfAReceiveIsNotBelieved)
{
	OneCore s;
	u::cqe received = {};

	received.receive = 1;
	ASSERT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_OK);
	s.rig.complete(pe, received);
	EXPECT_EQ(s.device.quiet(pe), NDA_BAD_RESPONSE);
	EXPECT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_BAD_RESPONSE);
}

TEST(AivUdma, AWaitEndsByTheClock)
{
	OneCore s;

	ASSERT_EQ(s.device.put_nbi(pe, s.dst, s.src, 8), NDA_OK);
	EXPECT_EQ(s.device.quiet(pe), NDA_TIMEOUT);
	EXPECT_GE(s.recorder.now_ns, 1000000u);
	EXPECT_EQ(s.rig.run(pe), 1u);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

TEST(AivUdma, RefusesWhatIsNoRequest)
{
	OneCore s;
	nda_piece pieces[13];
	uint32_t former;
	aiv::operation op = {};

	for (nda_piece &p : pieces)
		p = {s.src, 1};
	EXPECT_EQ(s.device.put_nbi(2, s.dst, s.src, 8), NDA_INVALID);
	EXPECT_EQ(s.device.put_inline_nbi(pe, s.dst, s.src, 209), NDA_INVALID);
	EXPECT_EQ(s.device.get_pieces_nbi(pe, s.dst, pieces, 7), NDA_INVALID);
	EXPECT_EQ(s.device.add_nbi<uint64_t>(pe, s.dst + 4, 1), NDA_INVALID);
	EXPECT_EQ(s.device.swap<uint32_t>(pe, s.dst + 2, 1, &former), NDA_INVALID);
	EXPECT_EQ(s.device.swap_nbi<uint32_t>(pe, s.dst, 1, s.src), NDA_NOT_SUPPORTED);
	op.op = aiv::verb::write;
	op.length = 8;
	op.rkey_id = 1 << 20;
	EXPECT_EQ(Queue(s.device.core(), s.device.queue_address(pe), {100, 0})
			  .post(op, false),
		NDA_INVALID);
	EXPECT_EQ(s.state().head, 0u);
	EXPECT_EQ(s.device.put_pieces_nbi(pe, s.dst, pieces, 13), NDA_OK);
	s.rig.run(pe);
}

TEST(AivUdma, LongTransfersAreSplitAndTheSignalIsInTheLast)
{
	UdmaOptions o;
	OneCore s(o);

	s.rig.move_bytes = false;
	ASSERT_EQ(s.put_signal(uint64_t{u::max_length} * 2 + 5), NDA_OK);
	EXPECT_EQ(s.rig.run(pe), 3u);
	EXPECT_EQ(s.at(0).opcode, u::op_write);
	EXPECT_EQ(s.at(1).opcode, u::op_write);
	EXPECT_EQ(s.at(2).opcode, u::op_write_notify);
	EXPECT_EQ(s.at(2).place_order, u::place_strong);
	EXPECT_EQ(s.at(1).remote_va - s.at(0).remote_va, u::max_length);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

/* ---- Atomics ---- */

template <class T>
void check_atomics()
{
	OneCore s;
	T &there = s.rig.peer_word<T>(s.dst);
	T former = 0;
	std::mt19937_64 random(sizeof(T));

	s.run_in_waits();
	for (int i = 0; i < 200; i++) {
		T operand = static_cast<T>(random());
		T before = there;

		switch (random() % 7) {
		case 0:
			ASSERT_EQ(
				s.device.fetch_add<T>(pe, s.dst, operand, &former), NDA_OK);
			ASSERT_EQ(there, static_cast<T>(before + operand));
			break;
		case 1:
			ASSERT_EQ(s.device.swap<T>(pe, s.dst, operand, &former), NDA_OK);
			ASSERT_EQ(there, operand);
			break;
		case 2:
			ASSERT_EQ(
				s.device.fetch_and<T>(pe, s.dst, operand, &former), NDA_OK);
			ASSERT_EQ(there, before & operand);
			break;
		case 3:
			ASSERT_EQ(
				s.device.fetch_or<T>(pe, s.dst, operand, &former), NDA_OK);
			ASSERT_EQ(there, before | operand);
			break;
		case 4:
			ASSERT_EQ(
				s.device.fetch_xor<T>(pe, s.dst, operand, &former), NDA_OK);
			ASSERT_EQ(there, before ^ operand);
			break;
		case 5:
			ASSERT_EQ(s.device.compare_swap<T>(
					  pe, s.dst, before, operand, &former),
				NDA_OK);
			ASSERT_EQ(there, operand);
			break;
		default:
			ASSERT_EQ(s.device.compare_swap<T>(pe, s.dst,
					  static_cast<T>(before + 1), operand, &former),
				NDA_OK);
			ASSERT_EQ(there, before);
		}
		ASSERT_EQ(former, before);
	}
}

TEST(AivUdma, AtomicsOf4BytesDoWhatAHostWould)
{
	check_atomics<uint32_t>();
}

TEST(AivUdma, AtomicsOf8BytesDoWhatAHostWould)
{
	check_atomics<uint64_t>();
}

TEST(AivUdma, SixteenBytesAreComparedAndSwappedAsOne)
{
	OneCore s;
	uint64_t *there = &s.rig.peer_word<uint64_t>(s.dst);
	uint64_t wrong[2] = {1, 3}, right[2] = {1, 2}, swap[2] = {7, 8}, former[2] = {};

	s.run_in_waits();
	there[0] = 1;
	there[1] = 2;
	ASSERT_EQ(s.device.compare_swap16(pe, s.dst, wrong, swap, former), NDA_OK);
	EXPECT_EQ(there[1], 2u);
	EXPECT_EQ(former[0], 1u);
	EXPECT_EQ(former[1], 2u);
	ASSERT_EQ(s.device.compare_swap16(pe, s.dst, right, swap, former), NDA_OK);
	EXPECT_EQ(there[0], 7u);
	EXPECT_EQ(there[1], 8u);
	EXPECT_EQ(s.device.compare_swap16(pe, s.dst + 8, right, swap, former), NDA_INVALID);
}

/* Somebody changes the word between the READ and the compare-and-swap: it is tried again,
 * to the deadline. */
TEST(AivUdma, AnEmulatedAtomicTriesAgainUntilItsDeadline)
{
	OneCore s;
	uint32_t former = 0, disturbed = 0;

	s.recorder.on_relax = [&] {
		if (disturbed < 5) {
			s.rig.peer_word<uint32_t>(s.dst)++;
			disturbed++;
		}
		s.rig.run(pe);
	};
	ASSERT_EQ(s.device.fetch_or<uint32_t>(pe, s.dst, 0x100, &former), NDA_OK);
	EXPECT_EQ(s.rig.peer_word<uint32_t>(s.dst), former | 0x100);
	s.recorder.on_relax = [&] {
		s.rig.run(pe);
		s.rig.peer_word<uint32_t>(s.dst)++;
	};
	EXPECT_EQ(s.device.fetch_or<uint32_t>(pe, s.dst, 0x100, &former), NDA_TIMEOUT);
}

/* More than there are words in the scratch: each stays until the NIC has read it. */
TEST(AivUdma, FloatsAreAddedFromWordsThatNobodyChanges)
{
	for (uint32_t every : {1u, 16u}) {
		UdmaOptions o;
		o.signal_every = every;
		OneCore s(o);
		float sum = 0;

		s.run_in_waits();
		for (int i = 1; i <= 60; i++) {
			ASSERT_EQ(s.device.add_f32_nbi(pe, s.dst, static_cast<float>(i)),
				NDA_OK);
			sum += static_cast<float>(i);
		}
		ASSERT_EQ(s.device.quiet(pe), NDA_OK);
		EXPECT_EQ(s.rig.peer_word<float>(s.dst), sum);
	}
}

TEST(AivUdma, TheOwnPeIsServedWithoutAQueue)
{
	OneCore s;

	EXPECT_EQ(s.device.put(0, s.rig.own_base(), s.src, 32), NDA_OK);
	EXPECT_EQ(memcmp(s.rig.own(), s.rig.own() + 0x8000, 32), 0);
	EXPECT_EQ(s.device.quiet(), NDA_OK);
}

/* Also what a peer's word would need a READ and a compare-and-swap for. */
TEST(AivUdma, AtomicsOnTheOwnPeAreTheCores)
{
	UdmaRig rig;
	aiv::Device<aiv::HostCore, aiv::udma::Engine> device;
	uint64_t there = 5, former = 0;

	rig.queue(0).scratch_local = rig.queue(pe).scratch_local;
	memcpy(rig.own(), &there, 8);
	ASSERT_EQ(device.open(aiv::HostCore(), rig.address(), 0), NDA_OK);
	EXPECT_EQ(device.fetch_xor<uint64_t>(0, rig.own_base(), 1, &former), NDA_OK);
	EXPECT_EQ(former, 5u);
	EXPECT_EQ(device.fetch_add<uint64_t>(0, rig.own_base(), 3, &former), NDA_OK);
	EXPECT_EQ(former, 4u);
	memcpy(&there, rig.own(), 8);
	EXPECT_EQ(there, 7u);
}

TEST(AivUdma, AnImmediateArrives)
{
	OneCore s;

	ASSERT_EQ(s.device.put_immediate_nbi(pe, s.dst, s.src, 0, 0x11223344), NDA_OK);
	ASSERT_EQ(s.device.put_immediate_nbi(pe, s.dst, s.src, 9, 0x55667788), NDA_OK);
	EXPECT_EQ(s.rig.run(pe), 2u);
	EXPECT_EQ(s.rig.received, (std::vector<uint32_t>{0x11223344, 0x55667788}));
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

TEST(AivUdma, AQueueThatContradictsItselfIsNotUsable)
{
	UdmaRig rig;
	nda_queue q = rig.queue(pe);

	EXPECT_TRUE(aiv::udma::queue_usable(q));
	q.signal_every = 2;
	q.udma.order = u::place_relaxed;
	EXPECT_FALSE(aiv::udma::queue_usable(q));
	q = rig.queue(pe);
	q.sq_depth = 48;
	EXPECT_FALSE(aiv::udma::queue_usable(q));
	q = rig.queue(pe);
	q.rkey_id = 1 << 20;
	EXPECT_FALSE(aiv::udma::queue_usable(q));
	q = rig.queue(pe);
	q.sq_base += 8;
	EXPECT_FALSE(aiv::udma::queue_usable(q));
}

/* ---- The fast way ---- */

/* Twins take the same operations, one of them by the complete algorithm alone. What a
 * request says is the same, with their own addresses told from each other's. */
uint64_t without_twin(uint64_t word, OneCore *s)
{
	uint64_t bytes = UdmaOptions().heap_bytes;
	const uint64_t own = s->rig.own_base();
	const uint64_t peer = reinterpret_cast<uint64_t>(s->rig.peer());

	if (word >= own && word - own <= bytes)
		return uint64_t{1} << 63 | (word - own);
	return word >= peer && word - peer <= bytes ? uint64_t{1} << 62 | (word - peer)
						    : word;
}

void expect_same_blocks(OneCore *fast, OneCore *slow, uint32_t from)
{
	for (uint32_t index = from; index != fast->state().head; index++) {
		uint64_t a[u::max_words], b[u::max_words];

		fast->rig.words(pe, index, a);
		slow->rig.words(pe, index, b);
		for (uint32_t i = 0; i < u::bb_bytes / 8; i++)
			ASSERT_EQ(without_twin(a[i], fast), without_twin(b[i], slow))
				<< "word " << i << " of block " << index - from;
	}
}

TEST(AivUdma, TheFastWayLeavesTheSameQueue)
{
	for (uint32_t every : {1u, 5u}) {
		UdmaOptions o = depth(16);
		o.signal_every = every;
		o.start = ~0u - 100;
		OneCore fast(o), slow(o);
		std::mt19937 random(every);

		fast.rig.move_bytes = slow.rig.move_bytes = false;
		fast.run_in_waits();
		slow.run_in_waits();
		for (uint32_t i = 0; i < 3000; i++) {
			uint32_t n = 1 + random() % 5000, at = random() % 64;
			uint32_t what = random() % 8, before = fast.state().head;

			for (OneCore *s : {&fast, &slow}) {
				if (s == &slow)
					s->state().limit = s->state().head;
				if (what < 4)
					ASSERT_EQ(s->device.put_nbi(
							  pe, s->dst + at, s->src, n),
						NDA_OK);
				else if (what == 4)
					ASSERT_EQ(s->device.get_nbi(
							  pe, s->src + at, s->dst, n),
						NDA_OK);
				else if (what == 5)
					ASSERT_EQ(s->put_signal(n), NDA_OK);
				else if (what == 6)
					ASSERT_EQ(s->device.fence(pe), NDA_OK);
				else
					s->rig.run(pe, 2);
			}
			ASSERT_EQ(fast.state().head, slow.state().head);
			ASSERT_NO_FATAL_FAILURE(expect_same_blocks(&fast, &slow, before))
				<< i;
			ASSERT_EQ(fast.state().tail, slow.state().tail);
			ASSERT_EQ(fast.state().udma.cqes +
					(every == 1 ? fast.state().head
						    : fast.state().signalled),
				slow.state().udma.cqes +
					(every == 1 ? slow.state().head
						    : slow.state().signalled));
			ASSERT_EQ(fast.rig.doorbell(pe), slow.rig.doorbell(pe));
			ASSERT_EQ(fast.rig.fault, "");
		}
	}
}

} // namespace
