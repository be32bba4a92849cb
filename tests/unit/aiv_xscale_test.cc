/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The XSCALE engine: posts, completions, errors, atomics, indices over their wraps. */
#include <stdint.h>
#include <string.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <nda/aiv/device.h>
#include <nda/aiv/xscale_queue.h>
#include <tests/mock/recording_core.h>
#include <tests/mock/xscale_rig.h>

namespace {

using namespace nda;
using namespace nda::test;
namespace x = nda::hw::xscale;
using Device = aiv::Device<RecordingCore, aiv::xscale::Engine>;
using Queue = aiv::xscale::Queue<RecordingCore>;

constexpr uint32_t pe = 1;

/* A device of one core over a rig, and the NIC behind it. */
struct OneCore {
	XscaleOptions options;
	XscaleRig rig;
	Recorder recorder;
	Device device;
	uint64_t dst;
	uint64_t src;

	explicit OneCore(const XscaleOptions &o = {})
		: options(o), rig(o), dst(rig.own_base() + 0x100),
		  src(rig.own_base() + 0x8000)
	{
		recorder.add_memory(rig.address(), rig.bytes());
		recorder.add_memory(rig.own_base(), o.heap_bytes);
		for (uint32_t to = 1; to < o.n_pes; to++) {
			const nda_queue &q = rig.queue(to);

			recorder.add_memory(q.sq_base, uint64_t{q.sq_depth} * x::wqe_bytes);
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

	enum nda_status put(uint64_t n = 8) { return device.put_nbi(pe, dst, src, n); }
	nda_queue &queue() { return rig.queue(pe); }
	nda_queue_state &state() { return queue().state; }
	Queue complete_queue()
	{
		return Queue(
			device.core(), device.queue_address(pe), {options.timeout_us, 0});
	}

	/* @n puts that must work. */
	void put_many(uint32_t n)
	{
		for (uint32_t i = 0; i < n; i++)
			ASSERT_EQ(put(), NDA_OK) << i;
	}

	std::vector<uint64_t> doorbells() const
	{
		std::vector<uint64_t> values;

		for (const Store &store : recorder.stores)
			if (store.addr == sq_doorbell())
				values.push_back(store.value);
		return values;
	}
	uint64_t sq_doorbell() const
	{
		return const_cast<OneCore *>(this)->queue().sq_doorbell;
	}
	uint32_t published() { return x::decode_cq_doorbell(rig.cq_doorbell(pe)).next_cid; }
};

XscaleOptions with_depth(uint32_t depth)
{
	XscaleOptions options;

	options.sq_depth = options.cq_depth = depth;
	return options;
}

XscaleOptions with_start(uint32_t start, uint32_t depth = 8)
{
	XscaleOptions options = with_depth(depth);

	options.start = start;
	return options;
}

XscaleOptions with_signal(uint32_t every, uint32_t depth = 64)
{
	XscaleOptions options = with_depth(depth);

	options.signal_every = every;
	return options;
}

/* Where an index or a field of it wraps. */
const uint32_t wraps[] = {1u << 16, 1u << 17, 1u << 18, 1u << 23, 1u << 24, 0};

/* ---- Posting ---- */

TEST(AivXscale, PutAndGetMoveBytes)
{
	OneCore s;

	ASSERT_EQ(s.put(0x1000), NDA_OK);
	s.rig.run(pe);
	EXPECT_EQ(memcmp(s.rig.peer() + 0x100, s.rig.own() + 0x8000, 0x1000), 0);
	memset(s.rig.peer() + 0x200, 0x3c, 64);
	ASSERT_EQ(s.device.get_nbi(pe, s.src, s.rig.own_base() + 0x200, 64), NDA_OK);
	s.rig.run(pe);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(memcmp(s.rig.own() + 0x8000, s.rig.peer() + 0x200, 64), 0);
}

TEST(AivXscale, APutIsTheWholeWqeItsIndexLastThenTheDoorbell)
{
	OneCore s;
	nda_queue &q = s.queue();
	bool written[x::wqe_bytes] = {}, rung = false, valid = false;
	uint32_t bytes = 0;

	ASSERT_EQ(s.put(), NDA_OK);
	for (const Store &store : s.recorder.stores) {
		if (store.addr >= q.sq_base && store.addr < q.sq_base + x::wqe_bytes) {
			ASSERT_FALSE(rung);
			ASSERT_FALSE(valid);
			for (uint32_t i = 0; i < store.bytes; i++, bytes++)
				written[store.addr - q.sq_base + i] = true;
			valid = store.addr == q.sq_base + 8;
			EXPECT_EQ(store.kind, valid ? Store::release : Store::plain);
		} else if (store.kind == Store::device) {
			EXPECT_TRUE(valid);
			EXPECT_EQ(store.addr, q.sq_doorbell);
			rung = true;
		}
	}
	EXPECT_TRUE(rung);
	EXPECT_EQ(bytes, x::wqe_bytes);
	for (bool byte : written)
		EXPECT_TRUE(byte);
}

TEST(AivXscale, AWqeHasTheBytesOfItsOperation)
{
	OneCore s(with_start(5));
	x::request r = {};
	uint64_t expected[x::wqe_words], found[x::wqe_words];

	ASSERT_EQ(s.put(24), NDA_OK);
	r.opcode = x::op_write;
	r.signalled = true;
	r.length = 24;
	r.remote_va = s.dst + s.queue().remote_delta;
	r.local_va = s.src;
	r.rkey = XscaleRig::rkey;
	r.lkey = XscaleRig::lkey;
	x::encode(x::rdma_wqe(r, 5), expected);
	s.rig.words(pe, 5, found);
	EXPECT_EQ(memcmp(expected, found, sizeof(found)), 0);
	EXPECT_EQ(s.doorbells(),
		std::vector<uint64_t>{x::doorbell_value(x::doorbell_template(0x9001), 6)});
}

TEST(AivXscale, RegionsGoByTheirOwnKeys)
{
	OneCore s;
	nda_region remote = {0x5000000000000000, 4096, 0xdeadbeef, pe, 0, 0};
	nda_region local = {s.src, 4096, 0xcafef00d, 0, 0, 0};

	ASSERT_EQ(s.device.put_nbi(pe, remote, 16, local, 8, 100), NDA_OK);
	x::wqe w = s.rig.wqe(pe, 0);
	EXPECT_EQ(w.remote.va, remote.addr + 16);
	EXPECT_EQ(w.remote.key, remote.key);
	EXPECT_EQ(w.local.va, local.addr + 8);
	EXPECT_EQ(w.local.key, local.key);
	EXPECT_EQ(w.length, 100u);
	EXPECT_EQ(s.device.put_nbi(pe, remote, 4090, local, 0, 100), NDA_INVALID);
}

TEST(AivXscale, LengthZeroPostsNothing)
{
	OneCore s;

	EXPECT_EQ(s.put(0), NDA_OK);
	EXPECT_EQ(s.device.get_nbi(pe, s.src, s.dst, 0), NDA_OK);
	EXPECT_TRUE(s.doorbells().empty());
	EXPECT_EQ(s.state().head, 0u);
}

TEST(AivXscale, AnEmptyReadIsNeverPosted)
{
	OneCore s;
	aiv::operation op = {};

	op.op = aiv::verb::read;
	op.even_empty = true;
	EXPECT_EQ(s.complete_queue().post(op, false), NDA_INVALID);
	EXPECT_EQ(s.state().head, 0u);
}

TEST(AivXscale, ALongTransferIsSplitAtTheLimit)
{
	OneCore s;
	uint64_t n = 2 * uint64_t{x::max_length} + 5;

	s.rig.move_bytes = false;
	ASSERT_EQ(s.put(n), NDA_OK);
	ASSERT_EQ(s.state().head, 3u);
	EXPECT_EQ(s.rig.wqe(pe, 0).length, x::max_length);
	EXPECT_EQ(s.rig.wqe(pe, 1).length, x::max_length);
	EXPECT_EQ(s.rig.wqe(pe, 2).length, 5u);
	EXPECT_EQ(s.rig.wqe(pe, 2).remote.va,
		s.dst + s.queue().remote_delta + 2 * uint64_t{x::max_length});
	EXPECT_EQ(s.rig.wqe(pe, 2).local.va, s.src + 2 * uint64_t{x::max_length});
	s.rig.run(pe);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

TEST(AivXscale, AnImmediateComesAfterTheBytesAlsoWithNone)
{
	OneCore s;

	ASSERT_EQ(s.device.put_immediate_nbi(pe, s.dst, s.src, 16, 0x11223344), NDA_OK);
	ASSERT_EQ(s.device.put_immediate_nbi(pe, s.dst, s.src, 0, 7), NDA_OK);
	s.rig.run(pe);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.rig.received, (std::vector<uint32_t>{0x11223344, 7}));
	EXPECT_EQ(memcmp(s.rig.peer() + 0x100, s.rig.own() + 0x8000, 16), 0);
}

TEST(AivXscale, OfASplitPutTheLastPartHasTheImmediate)
{
	OneCore s;

	s.rig.move_bytes = false;
	ASSERT_EQ(s.device.put_immediate_nbi(
			  pe, s.dst, s.src, uint64_t{x::max_length} + 1, 7),
		NDA_OK);
	EXPECT_FALSE(s.rig.wqe(pe, 0).immediate);
	EXPECT_TRUE(s.rig.wqe(pe, 1).immediate);
	EXPECT_EQ(s.rig.wqe(pe, 1).data, 7u);
}

TEST(AivXscale, SixPiecesGoInOneWqe)
{
	OneCore s;
	nda_piece pieces[7];
	std::string expected;

	for (uint32_t i = 0; i < 7; i++)
		pieces[i] = {s.src + i * 100, i + uint64_t{1}};
	for (uint32_t i = 0; i < 6; i++)
		expected.append(reinterpret_cast<char *>(pieces[i].addr), pieces[i].length);
	ASSERT_EQ(s.device.put_pieces_nbi(pe, s.dst, pieces, 6), NDA_OK);
	EXPECT_EQ(s.state().head, 1u);
	s.rig.run(pe);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(std::string(
			  reinterpret_cast<char *>(s.rig.peer() + 0x100), expected.size()),
		expected);
	EXPECT_EQ(s.device.put_pieces_nbi(pe, s.dst, pieces, 7), NDA_INVALID);
}

TEST(AivXscale, AReadHasOnePiece)
{
	OneCore s;
	nda_piece pieces[2] = {{s.src, 8}, {s.src + 16, 8}};

	EXPECT_EQ(s.device.get_pieces_nbi(pe, s.dst, pieces, 1), NDA_OK);
	EXPECT_EQ(s.device.get_pieces_nbi(pe, s.dst, pieces, 2), NDA_INVALID);
	s.rig.run(pe);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

TEST(AivXscale, PiecesThatAreTooLongInAllAreInvalid)
{
	OneCore s;
	nda_piece pieces[2] = {{s.src, x::max_length}, {s.src, 1}};

	EXPECT_EQ(s.device.put_pieces_nbi(pe, s.dst, pieces, 2), NDA_INVALID);
	EXPECT_EQ(s.state().head, 0u);
}

TEST(AivXscale, WhatTheFormatDoesNotHaveIsNotSupported)
{
	OneCore s;

	EXPECT_EQ(s.device.put_inline_nbi(pe, s.dst, s.src, 8), NDA_NOT_SUPPORTED);
	EXPECT_EQ(s.device.add_f32_nbi(pe, s.dst, 1.0f), NDA_NOT_SUPPORTED);
	EXPECT_EQ(s.state().head, 0u);
}

TEST(AivXscale, AFenceIsInTheNextWqeAlone)
{
	OneCore s;

	ASSERT_EQ(s.device.get_nbi(pe, s.src, s.dst, 8), NDA_OK);
	ASSERT_EQ(s.device.fence(pe), NDA_OK);
	s.put_many(2);
	EXPECT_EQ(s.rig.wqe(pe, 0).fence_mode, 0);
	EXPECT_EQ(s.rig.wqe(pe, 1).fence_mode, XscaleRig::fence_mode);
	EXPECT_EQ(s.rig.wqe(pe, 2).fence_mode, 0);
	s.rig.run(pe);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

TEST(AivXscale, ASignalIsAWriteBehindTheData)
{
	OneCore s;
	uint64_t signal = s.rig.own_base() + 0x40;

	ASSERT_EQ(s.device.put_signal_nbi(pe, s.dst, s.src, 32, signal, 0x123456789a),
		NDA_OK);
	EXPECT_EQ(s.rig.run(pe, 1), 1u);
	EXPECT_EQ(s.rig.peer_word<uint64_t>(signal), 0u);
	s.rig.run(pe);
	EXPECT_EQ(s.rig.peer_word<uint64_t>(signal), 0x123456789au);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

TEST(AivXscale, APeThatIsNotThereIsInvalid)
{
	OneCore s;

	EXPECT_EQ(s.device.put_nbi(2, s.dst, s.src, 8), NDA_INVALID);
	EXPECT_EQ(s.device.put_nbi(0, s.dst, s.src, 8), NDA_INVALID); /* no queue */
	EXPECT_EQ(s.device.quiet(2), NDA_INVALID);
}

TEST(AivXscale, ATableOfAnotherFormatDoesNotOpen)
{
	OneCore s;
	Device other;

	s.rig.table()->format = NDA_FORMAT_HNS1825;
	EXPECT_EQ(
		other.open(RecordingCore(&s.recorder), s.rig.address(), 0), NDA_BAD_TABLE);
}

/* ---- Completions ---- */

TEST(AivXscale, QuietConsumesAndRingsTheCompletionDoorbell)
{
	OneCore s;

	s.put_many(5);
	s.recorder.on_relax = [&] { s.rig.run(pe, 1); };
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.state().tail, 5u);
	EXPECT_EQ(s.state().cq_ci, 5u);
	EXPECT_EQ(s.rig.cq_doorbell(pe),
		x::cq_doorbell_value(x::cq_doorbell_template(0x8051, x::cq_keep), 5));
}

TEST(AivXscale, TheOwnerBitTurnsEachLap)
{
	OneCore s(with_depth(4));

	for (uint32_t i = 0; i < 100; i++) {
		ASSERT_EQ(s.put(), NDA_OK) << i;
		ASSERT_EQ(s.complete_queue().poll_cq(s.state().cq_ci), NDA_OK);
		/* Nothing is taken for done before it is. */
		ASSERT_EQ(s.device.quiet(pe), NDA_TIMEOUT) << i;
		s.rig.run(pe);
		ASSERT_EQ(s.device.quiet(pe), NDA_OK) << i;
		ASSERT_EQ(s.published(), i + 1);
	}
}

TEST(AivXscale, IndicesGoOverEveryWrap)
{
	for (uint32_t wrap : wraps) {
		OneCore s(with_start(wrap - 3));
		uint64_t *local = reinterpret_cast<uint64_t *>(s.src);

		for (uint32_t i = 0; i < 30; i++) {
			*local = i;
			ASSERT_EQ(s.put(), NDA_OK) << wrap << " + " << i;
			if (i % 3 == 0) {
				ASSERT_EQ(s.put(), NDA_OK);
			}
			s.rig.run(pe);
			ASSERT_EQ(s.rig.peer_word<uint64_t>(s.dst), i);
			ASSERT_EQ(s.device.quiet(pe), NDA_OK);
			ASSERT_EQ(s.state().head, s.state().tail);
		}
		EXPECT_EQ(s.state().head, wrap - 3 + 40);
		EXPECT_EQ(s.published(), (wrap - 3 + 40) & 0x7fffff);
	}
}

TEST(AivXscale, TheSlowWayGoesOverEveryWrap)
{
	for (uint32_t wrap : wraps) {
		OneCore s(with_start(wrap - 3));
		aiv::operation op = {};

		op.op = aiv::verb::write;
		op.rkey = XscaleRig::rkey;
		op.lkey = XscaleRig::lkey;
		op.remote_va = s.dst + s.queue().remote_delta;
		op.local_va = s.src;
		op.length = 8;
		for (uint32_t i = 0; i < 20; i++) {
			ASSERT_EQ(s.complete_queue().post_any(op, false), NDA_OK);
			s.rig.run(pe);
			ASSERT_EQ(s.device.quiet(pe), NDA_OK);
		}
		EXPECT_EQ(s.state().tail, wrap - 3 + 20);
	}
}

TEST(AivXscale, PollingForIndexZeroAfterAWrapWaits)
{
	OneCore s(with_start(0xfffffffd));

	s.put_many(3);
	EXPECT_EQ(s.complete_queue().poll_cq(0), NDA_TIMEOUT);
	s.rig.run(pe);
	EXPECT_EQ(s.complete_queue().poll_cq(0), NDA_OK);
	EXPECT_EQ(s.state().cq_ci, 0u);
}

TEST(AivXscale, AFullRingWaitsForCreditUpToTheDeadline)
{
	OneCore s(with_depth(8));

	s.put_many(7);
	EXPECT_EQ(s.put(), NDA_TIMEOUT);
	EXPECT_EQ(s.state().head, 7u);
	EXPECT_GE(s.recorder.now_ns, 1000000u);
	s.recorder.on_relax = [&] { s.rig.run(pe, 1); };
	EXPECT_EQ(s.put(), NDA_OK);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

TEST(AivXscale, ASmallCompletionQueueLimitsWhatIsOutstanding)
{
	XscaleOptions options = with_depth(32);
	options.cq_depth = 8;
	OneCore s(options);

	s.put_many(7);
	EXPECT_EQ(s.put(), NDA_TIMEOUT);
	s.recorder.on_relax = [&] { s.rig.run(pe); };
	for (uint32_t i = 0; i < 100; i++)
		ASSERT_EQ(s.put(), NDA_OK);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

TEST(AivXscale, ARingThatWasNotPresetYieldsNoSuccess)
{
	XscaleOptions options;
	options.preset = false;

	OneCore one(options);
	ASSERT_EQ(one.put(), NDA_OK);
	EXPECT_EQ(one.device.quiet(pe), NDA_BAD_RESPONSE);
	EXPECT_EQ(one.put(), NDA_BAD_RESPONSE);

	OneCore more(options);
	more.put_many(5);
	EXPECT_EQ(more.device.quiet(pe), NDA_BAD_RESPONSE);
}

/* ---- Errors ---- */

TEST(AivXscale, AnErrorIsConsumedPublishedLatchedAndSticky)
{
	OneCore s(with_start((1u << 17) - 2));

	s.put_many(4);
	s.rig.run(pe, 1);
	s.rig.fail(pe, x::error_nak_access);
	EXPECT_EQ(s.device.quiet(pe), NDA_REMOTE_ACCESS);
	EXPECT_EQ(s.state().error.status, uint32_t{NDA_REMOTE_ACCESS});
	EXPECT_EQ(s.state().error.raw_status, x::error_nak_access);
	EXPECT_EQ(s.state().error.wqe_index, 0xffff);
	EXPECT_EQ(s.state().tail, s.state().head);
	EXPECT_EQ(s.published(), (1u << 17) + 2);
	size_t rung = s.doorbells().size();
	EXPECT_EQ(s.put(), NDA_REMOTE_ACCESS);
	EXPECT_EQ(s.doorbells().size(), rung);
	EXPECT_EQ(s.device.quiet(pe), NDA_REMOTE_ACCESS);
	EXPECT_EQ(s.device.fence(pe), NDA_REMOTE_ACCESS);
}

TEST(AivXscale, PollingStopsBehindTheErrorAndPublishesIt)
{
	OneCore s;

	s.put_many(4);
	s.rig.run(pe, 2);
	s.rig.fail(pe, x::error_retransmit);
	EXPECT_EQ(s.complete_queue().poll_cq(4), NDA_RETRY_EXCEEDED);
	EXPECT_EQ(s.state().cq_ci, 3u);
	EXPECT_EQ(s.published(), 3u);
	EXPECT_EQ(s.device.quiet(pe), NDA_RETRY_EXCEEDED);
	EXPECT_EQ(s.published(), 4u);
}

TEST(AivXscale, AnErrorWhileWaitingForCreditEndsThePost)
{
	OneCore s(with_depth(8));

	s.put_many(7);
	s.recorder.on_relax = [&] {
		if (s.rig.completions(pe) == 0)
			s.rig.fail(pe, x::error_rnr);
	};
	EXPECT_EQ(s.put(), NDA_RNR_RETRY_EXCEEDED);
	EXPECT_EQ(s.state().head, 7u);
}

TEST(AivXscale, ACompletionOfAnotherQpOrOfNoWqeEndsTheQueue)
{
	for (int other_qp = 0; other_qp < 2; other_qp++) {
		OneCore s;
		x::cqe f = {};

		s.put_many(2);
		f.qp_id = static_cast<uint16_t>((s.queue().qpn & 0x7fff) + other_qp);
		f.opcode = x::op_write;
		f.wqe_id = x::wqe_id_of(other_qp ? 0 : 2);
		s.rig.complete(pe, f);
		EXPECT_EQ(s.device.quiet(pe), NDA_BAD_RESPONSE);
	}
}

TEST(AivXscale, MoreCompletionsThanWqesEndTheQueue)
{
	OneCore s;

	s.put_many(3);
	s.rig.complete(pe, 0);
	s.rig.complete(pe, 0);
	EXPECT_EQ(s.device.quiet(pe), NDA_BAD_RESPONSE);
}

/* ---- Completions every k-th ---- */

TEST(AivXscale, EveryKthWqeHasACompletionAndQuietEndsTheSeries)
{
	for (uint32_t posts : {3u, 4u, 7u, 8u, 9u}) {
		OneCore s(with_signal(4));

		s.put_many(posts);
		for (uint32_t i = 0; i < posts; i++)
			EXPECT_EQ(s.rig.wqe(pe, i).completion, i % 4 == 3) << i;
		s.recorder.on_relax = [&] { s.rig.run(pe); };
		EXPECT_EQ(s.device.quiet(pe), NDA_OK);
		EXPECT_EQ(s.rig.completions(pe), (posts + 3) / 4);
		EXPECT_EQ(s.state().tail, s.state().head);
	}
}

TEST(AivXscale, CreditComesFromEveryKthCompletion)
{
	OneCore s(with_signal(4, 8));

	s.recorder.on_relax = [&] { s.rig.run(pe); };
	for (uint32_t i = 0; i < 200; i++)
		ASSERT_EQ(s.put(), NDA_OK) << i;
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
}

/* ---- Batches ---- */

TEST(AivXscale, ABatchRingsOnce)
{
	for (uint32_t size : {1u, 2u, 16u, 63u}) {
		OneCore s;

		auto batch = s.device.batch(pe);
		for (uint32_t i = 0; i < size; i++)
			ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK);
		EXPECT_TRUE(s.doorbells().empty());
		EXPECT_EQ(batch.submit(), NDA_OK);
		EXPECT_EQ(s.doorbells().size(), 1u);
		EXPECT_EQ(s.rig.run(pe), size);
		EXPECT_EQ(s.device.quiet(pe), NDA_OK);
		ASSERT_EQ(s.put(), NDA_OK);
		EXPECT_EQ(s.rig.run(pe), 1u);
	}
}

TEST(AivXscale, ABatchDeeperThanTheRingRingsWhereItIsFull)
{
	OneCore s(with_depth(8));

	s.recorder.on_relax = [&] { s.rig.run(pe); };
	{
		auto batch = s.device.batch(pe);
		for (uint32_t i = 0; i < 100; i++)
			ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK) << i;
	}
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.state().tail, 100u);
	EXPECT_EQ(s.doorbells().size(), 15u);
}

TEST(AivXscale, ABatchSharesOneCompletion)
{
	OneCore s(with_signal(32));

	auto batch = s.device.batch(pe);
	for (uint32_t i = 0; i < 15; i++)
		ASSERT_EQ(batch.put_nbi(s.dst, s.src, 8), NDA_OK);
	ASSERT_EQ(batch.put_submit(s.dst, s.src, 8), NDA_OK);
	s.rig.run(pe);
	EXPECT_EQ(s.rig.completions(pe), 1u);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.state().tail, 16u);
}

/* ---- Atomics ---- */

/* What an atomic does, on plain numbers. */
template <class T>
struct Reference {
	T value;

	T fetch_add(T v) { return change(static_cast<T>(value + v)); }
	T swap(T v) { return change(v); }
	T fetch_and(T v) { return change(value & v); }
	T fetch_or(T v) { return change(value | v); }
	T fetch_xor(T v) { return change(value ^ v); }
	T compare_swap(T compare, T v) { return change(value == compare ? v : value); }
	T change(T to)
	{
		T former = value;

		value = to;
		return former;
	}
};

template <class T>
void atomics_are_those_of_the_host(uint8_t forms)
{
	XscaleOptions options = with_start(0u - 1000);
	options.atomics = forms;
	OneCore s(options);
	std::mt19937_64 random(sizeof(T) + forms);
	/* The neighbours of a 4-byte word stay as they are. */
	uint64_t target = s.rig.own_base() + 0x1000 + sizeof(T);
	uint64_t &below = s.rig.peer_word<uint64_t>(s.rig.own_base() + 0x0ff8);
	uint64_t &above = s.rig.peer_word<uint64_t>(s.rig.own_base() + 0x1010);
	Reference<T> host = {static_cast<T>(random())};

	below = above = 0x5a5a5a5a5a5a5a5a;
	s.rig.peer_word<T>(target) = host.value;
	s.recorder.on_relax = [&] { s.rig.run(pe); };
	for (int i = 0; i < 2000; i++) {
		T v = static_cast<T>(random() & random()), former = 0, expected = 0;
		T compare = random() % 2 ? host.value : static_cast<T>(random());
		enum nda_status status = NDA_INVALID;

		switch (random() % 7) {
		case 0:
			status = s.device.fetch_add<T>(pe, target, v, &former);
			expected = host.fetch_add(v);
			break;
		case 1:
			status = s.device.swap<T>(pe, target, v, &former);
			expected = host.swap(v);
			break;
		case 2:
			status = s.device.fetch_and<T>(pe, target, v, &former);
			expected = host.fetch_and(v);
			break;
		case 3:
			status = s.device.fetch_or<T>(pe, target, v, &former);
			expected = host.fetch_or(v);
			break;
		case 4:
			status = s.device.fetch_xor<T>(pe, target, v, &former);
			expected = host.fetch_xor(v);
			break;
		case 5:
			status = s.device.compare_swap<T>(pe, target, compare, v, &former);
			expected = host.compare_swap(compare, v);
			break;
		case 6:
			status = s.device.fetch<T>(pe, target, &former);
			expected = host.value;
			break;
		}
		ASSERT_EQ(status, NDA_OK);
		ASSERT_EQ(former, expected);
		ASSERT_EQ(s.rig.peer_word<T>(target), host.value);
	}
	EXPECT_EQ(below, 0x5a5a5a5a5a5a5a5au);
	EXPECT_EQ(above, 0x5a5a5a5a5a5a5a5au);
}

TEST(AivXscale, AtomicsOf4BytesAreThoseOfTheHost)
{
	atomics_are_those_of_the_host<uint32_t>(0);
}

TEST(AivXscale, AtomicsOf8BytesAreThoseOfTheHost)
{
	atomics_are_those_of_the_host<uint64_t>(0);
}

TEST(AivXscale, PlainFormsDoTheSameInBothOrders)
{
	atomics_are_those_of_the_host<uint64_t>(NDA_XSCALE_PLAIN_ATOMICS);
	atomics_are_those_of_the_host<uint64_t>(
		NDA_XSCALE_PLAIN_ATOMICS | NDA_XSCALE_LITTLE_ENDIAN);
}

TEST(AivXscale, OnlyMaskedFormsArePostedUnlessAskedFor)
{
	for (bool plain : {false, true}) {
		XscaleOptions options;
		options.atomics = plain ? NDA_XSCALE_PLAIN_ATOMICS : 0;
		OneCore s(options);
		uint64_t result = s.src;

		ASSERT_EQ(s.device.fetch_add_nbi<uint64_t>(pe, s.dst, 1, result), NDA_OK);
		ASSERT_EQ(s.device.compare_swap_nbi<uint64_t>(pe, s.dst, 1, 2, result),
			NDA_OK);
		ASSERT_EQ(s.device.swap_nbi<uint64_t>(pe, s.dst, 1, result), NDA_OK);
		ASSERT_EQ(s.device.fetch_xor_nbi<uint64_t>(pe, s.dst, 1, result), NDA_OK);
		ASSERT_EQ(s.device.fetch_add_nbi<uint32_t>(pe, s.dst, 1, result), NDA_OK);
		EXPECT_EQ(s.rig.wqe(pe, 0).opcode,
			plain ? x::op_fetch_add : x::op_masked_fetch_add);
		EXPECT_EQ(s.rig.wqe(pe, 1).opcode,
			plain ? x::op_compare_swap : x::op_masked_compare_swap);
		EXPECT_EQ(s.rig.wqe(pe, 2).opcode, x::op_masked_compare_swap);
		EXPECT_EQ(s.rig.wqe(pe, 3).opcode, x::op_masked_fetch_add);
		EXPECT_EQ(s.rig.wqe(pe, 4).opcode, x::op_masked_fetch_add4);
	}
}

TEST(AivXscale, EachOutstandingAtomicHasAResultOfItsOwn)
{
	OneCore s;

	s.rig.peer_word<uint64_t>(s.dst) = 100;
	for (uint32_t i = 0; i < 10; i++)
		ASSERT_EQ(s.device.fetch_add_nbi<uint64_t>(
				  pe, s.dst, 1, s.src + uint64_t{i} * 8),
			NDA_OK);
	s.rig.run(pe);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	for (uint32_t i = 0; i < 10; i++)
		EXPECT_EQ(
			s.device.read_result<uint64_t>(s.src + uint64_t{i} * 8), 100u + i);
}

TEST(AivXscale, AtomicsThatFetchNothingDoTheirWork)
{
	OneCore s;
	uint32_t &there = s.rig.peer_word<uint32_t>(s.dst);

	s.recorder.on_relax = [&] { s.rig.run(pe); };
	ASSERT_EQ(s.device.set_nbi<uint32_t>(pe, s.dst, 0xf0), NDA_OK);
	ASSERT_EQ(s.device.add_nbi<uint32_t>(pe, s.dst, 0x0f), NDA_OK);
	ASSERT_EQ(s.device.or_nbi<uint32_t>(pe, s.dst, 0xf00), NDA_OK);
	ASSERT_EQ(s.device.xor_nbi<uint32_t>(pe, s.dst, 0x001), NDA_OK);
	ASSERT_EQ(s.device.and_nbi<uint32_t>(pe, s.dst, 0xff0), NDA_OK);
	ASSERT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(there, 0xff0u);
}

TEST(AivXscale, AnAtomicThatIsNotAlignedIsInvalid)
{
	OneCore s;
	uint64_t former;
	uint32_t former4;

	EXPECT_EQ(s.device.fetch_add<uint64_t>(pe, s.dst + 4, 1, &former), NDA_INVALID);
	EXPECT_EQ(s.device.fetch_add<uint32_t>(pe, s.dst + 2, 1, &former4), NDA_INVALID);
	EXPECT_EQ(s.state().head, 0u);
}

TEST(AivXscale, AtomicsAreSignalledAsOtherWqes)
{
	OneCore s(with_signal(4));

	for (uint32_t i = 0; i < 4; i++)
		ASSERT_EQ(s.device.add_nbi<uint64_t>(pe, s.dst, 1), NDA_OK);
	for (uint32_t i = 0; i < 4; i++)
		EXPECT_EQ(s.rig.wqe(pe, i).completion, i == 3);
	s.rig.run(pe);
	EXPECT_EQ(s.device.quiet(pe), NDA_OK);
	EXPECT_EQ(s.rig.peer_word<uint64_t>(s.dst), 4u);
}

} // namespace
