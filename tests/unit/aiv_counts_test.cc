/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What one operation of each engine costs beside instructions, which `make bench` counts:
 * stores to NPU memory, bulk copies, lines cleaned and invalidated, barriers, doorbells.
 * The figures are the engines' design; one that rises is a regression, one that falls is to
 * be written down here.
 */
#include <iostream>

#include <gtest/gtest.h>

#include <nda/aiv/device.h>
#include <nda/aiv/in_die_queue.h>
#include <nda/aiv/rxe_queue.h>
#include <nda/aiv/udma_queue.h>
#include <nda/aiv/xscale_queue.h>
#include <tests/mock/counting_core.h>
#include <tests/mock/hns1825_rig.h>
#include <tests/mock/in_die_rig.h>
#include <tests/mock/rxe_rig.h>
#include <tests/mock/udma_rig.h>
#include <tests/mock/xscale_rig.h>

namespace nda::test {

std::ostream &operator<<(std::ostream &out, const Counts &c)
{
	return out << "{" << c.stores << ", " << c.copies << ", " << c.cleans << ", "
		   << c.invalidates << ", " << c.barriers << ", " << c.device_stores << "}";
}

namespace {

constexpr uint32_t pe = 1;
constexpr uint32_t batch_size = 16;

struct Hns1825 {
	typedef aiv::hns1825::Engine Engine;
	Rig rig{RigOptions()};
	void run() { rig.nic_run(pe); }
};
struct InDie {
	typedef aiv::in_die::Engine Engine;
	InDieRig rig{InDieOptions()};
	void run() { rig.nic_run(pe); }
};
struct Xscale {
	typedef aiv::xscale::Engine Engine;
	XscaleRig rig{XscaleOptions()};
	void run() { rig.run(pe); }
};
struct Udma {
	typedef aiv::udma::Engine Engine;
	UdmaRig rig{UdmaOptions()};
	void run() { rig.run(pe); }
};
struct Rxe {
	typedef aiv::rxe::Engine Engine;
	RxeRig rig{RxeOptions()};
	void run() { rig.run(pe); }
};

struct Cost {
	Counts put;   /* of 8 bytes */
	Counts batch; /* of batch_size of them */
	Counts drain; /* of all that, whose completions are there */
};

template <class Side, bool staged>
Cost cost()
{
	Side side;
	Counts counts;
	aiv::Device<CountingCore<staged>, typename Side::Engine> device;
	Cost found;

	EXPECT_EQ(
		device.open(CountingCore<staged>(&counts), side.rig.address(), 0), NDA_OK);
	uint64_t base = device.heap_base() + 0x1000;

	counts = {};
	EXPECT_EQ(device.put_nbi(pe, base, base, 8), NDA_OK);
	found.put = counts;
	{
		counts = {};
		auto batch = device.batch(pe);
		for (uint32_t i = 0; i < batch_size; i++)
			EXPECT_EQ(batch.put_nbi(base + 8 * i, base, 8), NDA_OK);
		EXPECT_EQ(batch.submit(), NDA_OK);
		found.batch = counts;
	}
	side.run();
	counts = {};
	EXPECT_EQ(device.quiet(pe), NDA_OK);
	found.drain = counts;
	return found;
}

template <class Side, bool staged>
void expect_cost(const Cost &expected)
{
	Cost found = cost<Side, staged>();

	std::cout << (staged ? "WQEs copied: put8 " : "WQEs stored: put8 ") << found.put
		  << " batch16 " << found.batch << " drain17 " << found.drain << "\n";
	EXPECT_EQ(found.put, expected.put);
	EXPECT_EQ(found.batch, expected.batch);
	EXPECT_EQ(found.drain, expected.drain);
}

/*
 * {stores, copies, cleans, invalidates, barriers, doorbells}
 *
 * What they come from, for a put, 16 in a batch, and the drain of these 17. A batch keeps
 * the queue's line in registers: it stores limit, rung and flags when it opens, and all
 * that it keeps, with rung and flags, when it closes. A look at a CQE invalidates its line.
 */

/* put: 64 bytes are 8 words, the next slot's marker 1, of the line head, next_slot and
 * next_word0, the record 1. Cleaned: marker, WQE, line, record; a barrier before the record
 * and one before the doorbell. Copied: the marker goes with the WQE.
 * batch: 9 each, 3 to open, 6 to close, the record.
 * drain: tail, cq_ci, limit, the record; 17 looks and the last CQE's rest. */
TEST(AivCounts, Hns1825)
{
	expect_cost<Hns1825, false>(
		{{13, 0, 4, 0, 2, 1}, {154, 0, 34, 0, 2, 1}, {4, 0, 2, 18, 1, 0}});
	expect_cost<Hns1825, true>(
		{{4, 1, 2, 0, 2, 1}, {10, 16, 2, 0, 2, 1}, {4, 0, 2, 18, 1, 0}});
}

/* put: 8 words, of the line head and next_slot; there is no record. Cleaned: WQE, line.
 * batch: 8 each, 3 to open, 5 to close.
 * drain: tail, cq_ci, limit; 17 looks; the CQ has a doorbell. */
TEST(AivCounts, InDie)
{
	expect_cost<InDie, false>(
		{{10, 0, 2, 0, 1, 1}, {136, 0, 17, 0, 1, 1}, {3, 0, 1, 17, 1, 1}});
	expect_cost<InDie, true>(
		{{2, 1, 1, 0, 1, 1}, {8, 16, 1, 0, 1, 1}, {3, 0, 1, 17, 1, 1}});
}

/* put: 128 bytes are 16 words and two lines, of the queue's line head, next_slot, doorbell
 * and next_word0.
 * batch: 16 each, 3 to open, 7 to close.
 * drain: tail, cq_ci, limit; 17 looks, and each CQE's rest; the CQ has a doorbell. */
TEST(AivCounts, Xscale)
{
	expect_cost<Xscale, false>(
		{{20, 0, 3, 0, 1, 1}, {266, 0, 33, 0, 1, 1}, {3, 0, 1, 34, 1, 1}});
	expect_cost<Xscale, true>(
		{{4, 1, 1, 0, 1, 1}, {10, 16, 1, 0, 1, 1}, {3, 0, 1, 34, 1, 1}});
}

/* put: one block is 8 words, of the line head and next_slot.
 * batch: 8 each, 3 to open, 5 to close.
 * drain: tail, cq_ci, fenced, limit, next_slot, next_word0, the record; 17 looks. */
TEST(AivCounts, Udma)
{
	expect_cost<Udma, false>(
		{{10, 0, 2, 0, 1, 1}, {136, 0, 17, 0, 1, 1}, {7, 0, 2, 17, 1, 0}});
	expect_cost<Udma, true>(
		{{2, 1, 1, 0, 1, 1}, {8, 16, 1, 0, 1, 1}, {7, 0, 2, 17, 1, 0}});
}

/* Has the complete algorithm alone, a store for each member.
 * put: 28 words in four lines, of the queue's line head, signalled, flags, limit and rung,
 * the producer index.
 * batch: 28 and 4 each, rung and flags to open and to close, the producer index.
 * drain: tail, cq_ci, the consumer index; a look at the producer's, and 17 CQEs. */
TEST(AivCounts, Rxe)
{
	expect_cost<Rxe, false>(
		{{34, 0, 6, 0, 2, 1}, {517, 0, 66, 0, 2, 1}, {3, 0, 2, 18, 1, 0}});
}

} // namespace
} // namespace nda::test
