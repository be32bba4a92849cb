/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Opening a table. */
#include <stdint.h>

#include <functional>

#include <gtest/gtest.h>

#include <nda/aiv/device.h>
#include <nda/aiv/host_core.h>
#include <tests/mock/hns1825_rig.h>

namespace {

using namespace nda;
using Device = aiv::Device<aiv::HostCore>;

enum nda_status open_changed(
	const std::function<void(nda_table *)> &change, uint32_t core = 0)
{
	test::RigOptions options;
	options.n_cores = 2;
	test::Rig rig(options);
	Device device;

	change(rig.table());
	return device.open(aiv::HostCore(), rig.address(), core);
}

TEST(AivDevice, TakesWhatTheHeaderSays)
{
	test::RigOptions options;
	options.n_pes = 3;
	options.n_cores = 2;
	options.my_pe = 1;
	test::Rig rig(options);
	Device device;

	ASSERT_EQ(device.open(aiv::HostCore(), rig.address(), 1), NDA_OK);
	EXPECT_EQ(device.my_pe(), 1u);
	EXPECT_EQ(device.n_pes(), 3u);
	EXPECT_EQ(device.heap_base(), options.heap_base);
	EXPECT_EQ(device.heap_bytes(), options.heap_bytes);
	EXPECT_EQ(device.queue_address(2), reinterpret_cast<uint64_t>(&rig.queue(2, 1)));
}

TEST(AivDevice, RefusesWhatIsNotATableOfThisVersion)
{
	EXPECT_EQ(open_changed([](nda_table *) {}), NDA_OK);
	EXPECT_EQ(open_changed([](nda_table *t) { t->magic ^= 1; }), NDA_BAD_TABLE);
	EXPECT_EQ(open_changed([](nda_table *t) { t->version++; }), NDA_BAD_TABLE);
	EXPECT_EQ(open_changed([](nda_table *t) { t->format = NDA_FORMAT_NONE; }),
		NDA_BAD_TABLE);

	Device device;
	EXPECT_EQ(device.open(aiv::HostCore(), 0, 0), NDA_BAD_TABLE);
}

TEST(AivDevice, RefusesATableThatContradictsItself)
{
	EXPECT_EQ(open_changed([](nda_table *t) { t->n_pes = 0; }), NDA_BAD_TABLE);
	EXPECT_EQ(open_changed([](nda_table *t) { t->n_cores = 0; }), NDA_BAD_TABLE);
	EXPECT_EQ(open_changed([](nda_table *t) { t->my_pe = t->n_pes; }), NDA_BAD_TABLE);
	EXPECT_EQ(open_changed([](nda_table *t) { t->n_pes = 3; }), NDA_BAD_TABLE);
	EXPECT_EQ(open_changed([](nda_table *t) { t->n_pes = UINT32_MAX; }), NDA_BAD_TABLE);
	EXPECT_EQ(
		open_changed([](nda_table *t) { t->n_cores = UINT32_MAX; }), NDA_BAD_TABLE);
	EXPECT_EQ(open_changed([](nda_table *t) { t->size_bytes--; }), NDA_BAD_TABLE);
	EXPECT_EQ(open_changed([](nda_table *t) { t->queues_offset += 4; }), NDA_BAD_TABLE);
	EXPECT_EQ(open_changed([](nda_table *t) { t->queues_offset = 0; }), NDA_BAD_TABLE);
	EXPECT_EQ(open_changed([](nda_table *t) { t->queues_offset = UINT64_MAX - 63; }),
		NDA_BAD_TABLE);
	EXPECT_EQ(open_changed([](nda_table *t) { t->device_timeout_us = 0; }),
		NDA_BAD_TABLE);
}

TEST(AivDevice, RefusesACoreThatHasNoQueues)
{
	EXPECT_EQ(open_changed([](nda_table *) {}, 1), NDA_OK);
	EXPECT_EQ(open_changed([](nda_table *) {}, 2), NDA_INVALID);
	EXPECT_EQ(open_changed([](nda_table *) {}, UINT32_MAX), NDA_INVALID);
}

TEST(AivDevice, ThatIsNotOpenRefusesEverything)
{
	Device device;

	EXPECT_EQ(device.put_nbi(0, 0, 0, 8), NDA_INVALID);
	EXPECT_EQ(device.get_nbi(0, 0, 0, 8), NDA_INVALID);
	EXPECT_EQ(device.quiet(0), NDA_INVALID);
	EXPECT_EQ(device.quiet(), NDA_INVALID);
	EXPECT_EQ(device.fence(0), NDA_INVALID);
	EXPECT_EQ(device.batch(0).put_nbi(0, 0, 8), NDA_INVALID);
}

TEST(AivDevice, NeverReadsTheHeaderAgain)
{
	test::Rig rig(test::RigOptions{});
	Device device;

	ASSERT_EQ(device.open(aiv::HostCore(), rig.address(), 0), NDA_OK);
	memset(rig.table(), 0xff, sizeof(nda_table));
	EXPECT_EQ(device.put_nbi(1, 0, 0, 8), NDA_OK);
	rig.nic_run(1);
	EXPECT_EQ(device.quiet(1), NDA_OK);
}

TEST(AivQueueUsable, WantsPowersOfTwoAndWhatTheFormatCanName)
{
	test::Rig rig(test::RigOptions{});
	const nda_queue good = rig.queue(1);
	nda_queue q = good;

	EXPECT_TRUE(aiv::hns1825::queue_usable(q));
	for (uint32_t depth : {0u, 2u, 48u, 65536u}) {
		q = good;
		q.sq_depth = depth;
		EXPECT_FALSE(aiv::hns1825::queue_usable(q)) << depth;
	}
	q = good;
	q.cq_depth = 48;
	EXPECT_FALSE(aiv::hns1825::queue_usable(q));
	q = good;
	q.signal_every = 33;
	EXPECT_FALSE(aiv::hns1825::queue_usable(q));
	q = good;
	q.signal_every = 2;
	q.scratch_local = 0;
	EXPECT_FALSE(aiv::hns1825::queue_usable(q));
	q = good;
	q.lkey = 0x40000000;
	EXPECT_FALSE(aiv::hns1825::queue_usable(q));
	q = good;
	q.valid = 0;
	EXPECT_FALSE(aiv::hns1825::queue_usable(q));
}

TEST(AivDevice, SaysWhichOperationsTheFormatLacks)
{
	test::Rig rig(test::RigOptions{});
	Device device;
	const nda_piece piece = {8, 8};
	uint64_t former = 5;

	ASSERT_EQ(device.open(aiv::HostCore(), rig.address(), 0), NDA_OK);
	EXPECT_EQ(device.put_immediate_nbi(1, 8, 8, 8, 1), NDA_NOT_SUPPORTED);
	EXPECT_EQ(device.put_inline_nbi(1, 8, 8, 8), NDA_NOT_SUPPORTED);
	EXPECT_EQ(device.put_pieces_nbi(1, 8, &piece, 1), NDA_NOT_SUPPORTED);
	EXPECT_EQ(device.get_pieces_nbi(1, 8, &piece, 1), NDA_NOT_SUPPORTED);
	EXPECT_EQ(device.fetch_add_nbi<uint64_t>(1, 8, 1, 8), NDA_NOT_SUPPORTED);
	EXPECT_EQ(device.compare_swap_nbi<uint64_t>(1, 8, 1, 2, 8), NDA_NOT_SUPPORTED);
	EXPECT_EQ(device.fetch_add<uint64_t>(1, 8, 1, &former), NDA_NOT_SUPPORTED);
	EXPECT_EQ(device.compare_swap<uint64_t>(1, 8, 1, 2, &former), NDA_NOT_SUPPORTED);
	EXPECT_EQ(former, 5u);
	EXPECT_EQ(rig.queue(1).state.head, 0u);
}

} // namespace
