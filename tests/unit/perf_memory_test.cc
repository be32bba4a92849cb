// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nda/table.h>

namespace {

using namespace nda::perf;
using testing::HasSubstr;

constexpr uint64_t mib = 1 << 20;
constexpr uint64_t gib = 1024 * mib;

MemoryPlan plan_of(const Options &o)
{
	MemoryPlan plan;
	EXPECT_EQ(plan_memory(o, &plan), "");
	return plan;
}

TEST(PerfMemory, CheckMemory_RefusesRingsThatAreMoreThanThereIs)
{
	Options o;
	o.pes = 128;
	o.cores = 48;
	const std::string wrong = check_memory(o, NDA_FORMAT_HNS1825, plan_of(o), 24 * gib);
	EXPECT_THAT(wrong, HasSubstr("128 PEs here with 6144 queues each, of depth 1024"));
	EXPECT_THAT(wrong, HasSubstr("the machine has 24576 MiB (MemAvailable"));
	// 786432 queues with rings of 64 + 64 bytes for each of 1024 messages.
	EXPECT_EQ(check_memory(o, NDA_FORMAT_HNS1825, plan_of(o), 160 * gib), "");
	EXPECT_NE(check_memory(o, NDA_FORMAT_HNS1825, plan_of(o), 96 * gib), "");
}

TEST(PerfMemory, CheckMemory_CountsTheAreasOfAllPes)
{
	Options o;
	o.pes = 16;
	o.sizes = {64 * mib};
	// Sources, targets, targets of memcpy and a copy: 64 MiB each, of each PE.
	EXPECT_NE(check_memory(o, NDA_FORMAT_HNS1825, plan_of(o), 4 * gib), "");
	EXPECT_EQ(check_memory(o, NDA_FORMAT_HNS1825, plan_of(o), 5 * gib), "");
}

TEST(PerfMemory, CheckMemory_LeavesOutWhatOfTheHeapIsNotUsed)
{
	Options o;
	o.sizes = {8};
	o.heap_bytes = 512 * gib;
	EXPECT_EQ(check_memory(o, NDA_FORMAT_HNS1825, plan_of(o), gib), "");
}

TEST(PerfMemory, CheckMemory_CountsThePesOfThisMachine)
{
	Options o;
	o.pes = 16;
	o.sizes = {64 * mib};
	o.connect = "other";
	EXPECT_EQ(check_memory(o, NDA_FORMAT_HNS1825, plan_of(o), 3 * gib), "");
}

TEST(PerfMemory, CheckMemory_RefusesNothingWhereNothingIsKnown)
{
	Options o;
	o.pes = 128;
	o.cores = 48;
	EXPECT_EQ(check_memory(o, NDA_FORMAT_HNS1825, plan_of(o), 0), "");
}

// A message takes up to four blocks of 64 bytes, each with a completion of 64 bytes.
TEST(PerfMemory, NpuBytes_HasRoomForRingsOfSeveralBlocksPerMessage)
{
	Options o;
	o.cores = 16;
	o.queues = 8;
	o.pes = 4;
	o.depth = 8192;
	const uint64_t queues = 16 * 8 * 3; // to the other PEs
	EXPECT_GE(npu_bytes(o, NDA_FORMAT_UDMA, gib), gib + queues * 8192 * 4 * (64 + 64));
	// There are no rings of more blocks.
	const uint64_t most = queue_bytes(NDA_FORMAT_UDMA, 8192);
	EXPECT_EQ(queue_bytes(NDA_FORMAT_UDMA, 32768), most);
}

TEST(PerfMemory, AvailableBytes_AreSomeOfTheMachines)
{
	EXPECT_GT(available_bytes(), 0u);
	EXPECT_LT(available_bytes(), uint64_t(1) << 50);
}

} // namespace
