// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/layout.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/tools/perf/kernels.h"

namespace {

using namespace nda::perf;
using testing::HasSubstr;

TEST(PerfLayout, LayoutOf_KeepsMessagesApart)
{
	for (uint64_t size : {1, 8, 63, 64, 65, 4096}) {
		Layout l = layout_of(size, 2, 16, 1 << 20);
		EXPECT_EQ(l.size, size);
		EXPECT_GE(l.stride, size + 64);
		EXPECT_EQ(l.stride % 64, 0u);
		EXPECT_EQ(l.slots, 16u);
		EXPECT_EQ(l.area_bytes, l.stride * 16 * 2);
	}
}

TEST(PerfLayout, LayoutOf_HasNoMoreSlotsThanFit)
{
	Layout l = layout_of(1 << 20, 2, 64, 8 << 20);
	EXPECT_EQ(l.slots, 3u); // 4 would need 8 MiB and the gaps
	EXPECT_LE(l.area_bytes, uint64_t(8) << 20);
	EXPECT_EQ(layout_of(1 << 20, 1, 64, 1 << 20).slots, 0u);
}

TEST(PerfLayout, PlanMemory_GivesEverySizeASlotPerCore)
{
	Options o;
	o.cores = 48;
	o.sizes = {8, uint64_t(32) << 20};
	MemoryPlan plan;
	ASSERT_EQ(plan_memory(o, &plan), "");
	EXPECT_LT(3 * plan.part_bytes, plan.heap_bytes);
	for (uint64_t size : o.sizes)
		EXPECT_GE(layout_of(size, o.cores, o.window, plan.part_bytes).slots, 1u);
}

TEST(PerfLayout, PlanMemory_StaysWithinAGivenHeap)
{
	Options o;
	o.sizes = {1 << 20};
	o.heap_bytes = 8 << 20;
	MemoryPlan plan;
	ASSERT_EQ(plan_memory(o, &plan), "");
	EXPECT_EQ(plan.heap_bytes, o.heap_bytes);
	EXPECT_LT(3 * plan.part_bytes, o.heap_bytes);
	EXPECT_EQ(layout_of(o.sizes[0], 1, 64, plan.part_bytes).slots, 2u);
	o.op = Op::copy;
	ASSERT_EQ(plan_memory(o, &plan), "");
	EXPECT_LT(plan.part_bytes, o.heap_bytes);
	EXPECT_GT(plan.part_bytes, 0u);
}

TEST(PerfLayout, PlanMemory_RefusesAHeapThatIsTooSmall)
{
	Options o;
	o.sizes = {1 << 20};
	o.heap_bytes = 2 << 20;
	MemoryPlan plan;
	EXPECT_THAT(plan_memory(o, &plan), HasSubstr("--heap: 2097152 bytes"));
	o.op = Op::copy;
	o.heap_bytes = 65536;
	EXPECT_THAT(plan_memory(o, &plan), HasSubstr("--heap: 65536 bytes"));
}

class PerfArea : public testing::Test {
protected:
	static constexpr uint32_t cores = 2;
	static constexpr uint32_t sender = 3;
	static constexpr uint64_t round = 5;
	const Layout layout = layout_of(72, cores, 4, 1 << 20);
	std::vector<uint8_t> data = std::vector<uint8_t>(layout.area_bytes);

	PerfArea() { fill_area(data.data(), layout, cores, sender, round); }
	std::string check(uint64_t written = 4)
	{
		return check_area(data.data(), layout, cores, sender, round, written);
	}
	uint8_t *slot(uint64_t i) { return data.data() + i * layout.stride; }
};

TEST_F(PerfArea, Check_AcceptsWhatTheSenderHad)
{
	EXPECT_EQ(check(), "");
}

TEST_F(PerfArea, Check_CatchesAnyFlippedByte)
{
	for (size_t i = 0; i < data.size(); i++) {
		data[i] ^= 0x40;
		EXPECT_NE(check(), "") << i;
		data[i] ^= 0x40;
	}
}

TEST_F(PerfArea, Check_NamesSlotAndByte)
{
	slot(6)[70]++;
	EXPECT_THAT(check(), HasSubstr("slot 6 of round 5: byte 70 is "));
}

TEST_F(PerfArea, Check_CatchesWritesBeyondTheEnd)
{
	slot(1)[72] = 0;
	EXPECT_THAT(check(), HasSubstr("slot 1 of round 5: byte 72, beyond its end"));
}

TEST_F(PerfArea, Check_CatchesSwappedMessages)
{
	std::swap_ranges(slot(0), slot(0) + 72, slot(1));
	EXPECT_NE(check(), "");
}

TEST_F(PerfArea, Check_CatchesDataOfAnotherRoundOrSender)
{
	EXPECT_NE(check_area(data.data(), layout, cores, sender, round + 1, 4), "");
	EXPECT_NE(check_area(data.data(), layout, cores, sender + 1, round, 4), "");
}

TEST_F(PerfArea, Check_AcceptsUntouchedSlotsOnlyWhereNothingWasWritten)
{
	std::fill(slot(3), slot(3) + 72, 0xa5);
	std::fill(slot(7), slot(7) + 72, 0xa5);
	EXPECT_EQ(check(3), "");
	EXPECT_NE(check(4), "");
	slot(3)[0] = 0; // half a message
	EXPECT_NE(check(3), "");
}

TEST(PerfLayout, CheckSignals_WantsTheLastOfEverySlot)
{
	EXPECT_EQ(check_signals({0, 0, 0}, 3, 0), "");
	EXPECT_EQ(check_signals({1, 2, 0}, 3, 2), "");
	EXPECT_EQ(check_signals({4, 5, 3}, 3, 5), "");
	EXPECT_EQ(check_signals({4, 2, 3, 1, 0, 0}, 3, 5), ""); // of two cores
	EXPECT_EQ(check_signals({7}, 1, 7), "");
}

TEST(PerfLayout, CheckSignals_NamesWhatIsMissing)
{
	EXPECT_THAT(check_signals({4, 2, 3}, 3, 5), HasSubstr("4 messages were signalled"));
	EXPECT_THAT(check_signals({1, 5, 3}, 3, 5), HasSubstr("signal 0 is 1, not 4"));
	EXPECT_THAT(check_signals({1, 0, 3}, 3, 3), HasSubstr("signal 1 is 0, not 2"));
	EXPECT_THAT(check_signals({1, 0, 2}, 3, 2), HasSubstr("signal 1 is 0, not 2"));
	EXPECT_THAT(check_signals({1, 2, 1, 3}, 2, 5), HasSubstr("signal 2 is 1, not 3"));
	EXPECT_NE(check_signals({1, 0xa5a5a5a5a5a5a5a5}, 2, 2), "");
}

TEST(PerfLayout, PlanMemory_OfABarrierIsTheSameForAllPesThereMayBe)
{
	Options o;
	o.op = Op::barrier;
	MemoryPlan plan;
	ASSERT_EQ(plan_memory(o, &plan), "");
	EXPECT_GE(plan.part_bytes, letters_bytes(128));
	EXPECT_LT(plan.part_bytes, plan.heap_bytes);
	o.heap_bytes = 65536;
	EXPECT_THAT(plan_memory(o, &plan), HasSubstr("--heap: 65536 bytes: this needs"));
}

TEST(PerfLayout, PlanMemory_OfSignalsIsThatOfPut)
{
	Options o;
	MemoryPlan put;
	ASSERT_EQ(plan_memory(o, &put), "");
	o.op = Op::signal;
	MemoryPlan plan;
	ASSERT_EQ(plan_memory(o, &plan), "");
	EXPECT_EQ(plan.heap_bytes, put.heap_bytes);
	// An area has a signal for each slot, too.
	for (uint64_t size : {1, 8, 4096}) {
		Layout l = layout_of(size, 3, 64, plan.part_bytes);
		EXPECT_GE(plan.part_bytes, l.slots * 3 * signal_stride);
	}
}

TEST(PerfLayout, PlanMemory_HasAWordForEveryFormerValue)
{
	Options o;
	o.op = Op::atomic;
	for (uint32_t pes : {2u, 3u, 128u}) {
		o.pes = pes;
		o.cores = 48;
		MemoryPlan plan;
		ASSERT_EQ(plan_memory(o, &plan), "");
		EXPECT_GE(verified_changes(o), 1u);
		EXPECT_GE(former_slots(o), o.window);
		EXPECT_GE(former_slots(o), verified_changes(o) * (pes - 1));
		EXPECT_GE(plan.part_bytes, o.cores * former_slots(o) * 8);
		EXPECT_LT(plan.part_bytes, plan.heap_bytes);
	}
	MemoryPlan plan;
	o.heap_bytes = 65536;
	EXPECT_THAT(plan_memory(o, &plan), HasSubstr("--heap: 65536 bytes: this needs"));
}

} // namespace
