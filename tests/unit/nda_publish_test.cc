// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/publish.h"

#include <cstring>
#include <gtest/gtest.h>
#include <set>

namespace nda {
namespace {

template <class T>
T at(const Image &image, uint64_t offset)
{
	T value;
	EXPECT_LE(offset + sizeof(value), image.size());
	memcpy(&value, image.data() + offset, sizeof(value));
	return value;
}
uint64_t u64(const Image &image, uint64_t offset)
{
	return at<uint64_t>(image, offset);
}
uint32_t u32(const Image &image, uint64_t offset)
{
	return at<uint32_t>(image, offset);
}

// Three PEs, this one being PE 1. Every field has a value of its own.
constexpr uint64_t addr = 0x7000000;

ViewPeer peer(uint32_t pe)
{
	const uint64_t k = pe + 1;
	ViewPeer p = {};
	p.self = pe == 1;
	p.queue.qpn = 0x100 * pe + 1;
	p.queue.cqn = 0x100 * pe + 2;
	p.queue.sq_base = 0x10000 * k;
	p.queue.sq_depth = 1024 * static_cast<uint32_t>(k);
	p.queue.sq_doorbell = 0x30000 * k;
	p.queue.sq_record = 0x40000 * k;
	p.queue.cq_base = 0x50000 * k;
	p.queue.cq_depth = 2048 * static_cast<uint32_t>(k);
	p.queue.cqe_stride = 64;
	p.queue.cq_record = 0x60000 * k;
	p.state_addr = 0x70000 * k;
	p.service_level = 4;
	p.mtu_shift = 3;
	p.heap_addr = 0x80000000 * k;
	p.heap_bytes = 0x100000;
	p.heap_rkey = 0xa0 + pe;
	p.amo_addr = 0x90000 + 1024 * pe;
	p.amo_lkey = 0xb0;
	return p;
}

Image view()
{
	return view_image(addr, {peer(0), peer(1), peer(2)}, 0xc1);
}

// Offsets of the blob for three PEs, from the sizes 48, 96, 96, 64, 64, 24.
constexpr uint64_t sq = 48, rq = 336, scq = 624, rcq = 816, mem = 1008, end = 1080;

TEST(View, BeginsWithPointersToItsArrays)
{
	const Image v = view();
	EXPECT_EQ(v.size(), end);
	EXPECT_EQ(view_bytes(3), end);
	EXPECT_EQ(u32(v, 0), 1u); // queues to each peer
	EXPECT_EQ(u32(v, 4), 0u);
	EXPECT_EQ(u64(v, 8), addr + sq);
	EXPECT_EQ(u64(v, 16), addr + rq);
	EXPECT_EQ(u64(v, 24), addr + scq);
	EXPECT_EQ(u64(v, 32), addr + rcq);
	EXPECT_EQ(u64(v, 40), addr + mem);
}

TEST(View, DescribesASendQueueFieldByField)
{
	const Image v = view();
	const uint64_t q = sq + 2 * 96; // to PE 2
	EXPECT_EQ(u32(v, q + 0), 0x201u);
	EXPECT_EQ(u64(v, q + 8), 0x30000u);
	EXPECT_EQ(u32(v, q + 16), 64u); // WQE size
	EXPECT_EQ(u32(v, q + 20), 3072u);
	EXPECT_EQ(u64(v, q + 24), 0x150000u + 0);  // head of the native line
	EXPECT_EQ(u64(v, q + 32), 0x150000u + 32); // and its tail
	EXPECT_EQ(at<int32_t>(v, q + 40), 1);      // by record
	EXPECT_EQ(u64(v, q + 48), 0x90000u);
	EXPECT_EQ(u32(v, q + 56), 4u);
	EXPECT_EQ(u64(v, q + 64), 0x90000u + 2048);
	EXPECT_EQ(u32(v, q + 72), 0xb0u);
	EXPECT_EQ(u64(v, q + 80), 0xc0000u);
	EXPECT_EQ(at<uint8_t>(v, q + 88), 3);
}

TEST(View, DescribesACompletionQueueFieldByField)
{
	const Image v = view();
	const uint64_t q = scq + 2 * 64;
	EXPECT_EQ(u32(v, q + 0), 0x202u);
	EXPECT_EQ(u64(v, q + 8), 0xf0000u);
	EXPECT_EQ(u32(v, q + 16), 64u);
	EXPECT_EQ(u32(v, q + 20), 6144u);
	EXPECT_EQ(u64(v, q + 32), 0x150000u + 36); // CQEs consumed
	EXPECT_EQ(at<int32_t>(v, q + 40), 1);
	EXPECT_EQ(u64(v, q + 48), 0u); // there is no doorbell register
	EXPECT_EQ(u64(v, q + 56), 0x120000u);
}

TEST(View, HasOnlyTheAtomicsFieldsOfAReceiveQueue)
{
	const Image v = view();
	for (uint32_t pe : {0, 2}) {
		const uint64_t q = rq + pe * 96;
		EXPECT_EQ(u64(v, q + 64), 0x90000u + 1024 * pe);
		EXPECT_EQ(u32(v, q + 72), 0xb0u);
		for (uint64_t i = 0; i < 96; i++)
			EXPECT_TRUE(v[q + i] == 0 || (i >= 64 && i < 76))
				<< "PE " << pe << " byte " << i;
	}
	for (uint64_t i = rcq; i < mem; i++)
		EXPECT_EQ(v[i], 0) << "receive completion queues, byte " << i - rcq;
}

TEST(View, GivesEveryHeapAndTheOwnKeys)
{
	const Image v = view();
	for (uint32_t pe = 0; pe < 3; pe++) {
		const uint64_t m = mem + pe * 24;
		EXPECT_EQ(u64(v, m + 0), 0x100000u);
		EXPECT_EQ(u64(v, m + 8), 0x80000000ull * (pe + 1));
		EXPECT_EQ(u32(v, m + 16), pe == 1 ? 0xc1u : 0u);
		EXPECT_EQ(u32(v, m + 20), 0xa0u + pe);
	}
}

TEST(View, LeavesTheOwnPesQueuesZero)
{
	const Image v = view();
	for (uint64_t i = 0; i < 96; i++) {
		EXPECT_EQ(v[sq + 96 + i], 0);
		EXPECT_EQ(v[rq + 96 + i], 0);
	}
	for (uint64_t i = 0; i < 64; i++)
		EXPECT_EQ(v[scq + 64 + i], 0);
}

// Every byte that no field covers is zero: gaps after 4-byte fields and reserved bytes.
TEST(View, LeavesGapsZero)
{
	const Image v = view();
	const std::set<uint64_t> sq_gaps = {4, 44, 60, 76}, cq_gaps = {4, 44};
	for (const uint64_t gap : sq_gaps)
		EXPECT_EQ(u32(v, sq + gap), 0u) << gap;
	for (uint64_t i = 89; i < 96; i++)
		EXPECT_EQ(v[sq + i], 0) << i;
	for (const uint64_t gap : cq_gaps)
		EXPECT_EQ(u32(v, scq + gap), 0u) << gap;
}

TEST(Table, HoldsItsHeaderAndItsQueues)
{
	nda_table header = {};
	header.n_pes = 2;
	header.heap_base = 0x1234;
	std::vector<nda_queue> queues(2);
	queues[0].qpn = 11;
	queues[1].qpn = 22;
	queues[1].state.head = 33;
	const Image t = table_image(header, queues);
	EXPECT_EQ(memcmp(t.data(), "NDA1", 4), 0);
	EXPECT_EQ(u32(t, 4), NDA_TABLE_VERSION);
	EXPECT_EQ(u64(t, 8), t.size());
	EXPECT_EQ(u32(t, 20), 2u);
	EXPECT_EQ(u64(t, 32), 0x1234u);
	const uint64_t first = u64(t, 48);
	EXPECT_EQ(first % NDA_CACHE_LINE, 0u);
	EXPECT_EQ(t.size(), first + 512);
	EXPECT_EQ(u32(t, first + 72), 11u);
	EXPECT_EQ(u32(t, first + 256 + 72), 22u);
	EXPECT_EQ(u32(t, first + 256 + 128), 33u);
}

TEST(Table, PutsEachMutableLineOnALineOfItsOwn)
{
	EXPECT_EQ(state_offset(0) % NDA_CACHE_LINE, 0u);
	EXPECT_EQ(state_offset(1) - state_offset(0), 256u);
}

} // namespace
} // namespace nda
