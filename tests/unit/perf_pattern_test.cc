// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/pattern.h"

#include <vector>

#include <gtest/gtest.h>

namespace {

using namespace nda::perf;

TEST(PerfPattern, Fill_IsWhatCheckExpects)
{
	for (size_t size : {0, 1, 7, 8, 9, 63, 64, 65, 4096, 4099}) {
		std::vector<uint8_t> data(size);
		pattern_fill(data.data(), size, 3, 17);
		EXPECT_EQ(pattern_check(data.data(), size, 3, 17), size);
		for (size_t i = 0; i < size; i++)
			ASSERT_EQ(data[i], pattern_byte(3, 17, i));
	}
}

TEST(PerfPattern, Check_FindsEveryFlippedBit)
{
	std::vector<uint8_t> data(67);
	pattern_fill(data.data(), data.size(), 1, 2);
	for (size_t bit = 0; bit < data.size() * 8; bit++) {
		data[bit / 8] ^= uint8_t(1 << bit % 8);
		EXPECT_EQ(pattern_check(data.data(), data.size(), 1, 2), bit / 8);
		data[bit / 8] ^= uint8_t(1 << bit % 8);
	}
}

TEST(PerfPattern, Check_TellsSendersMessagesAndOffsetsApart)
{
	std::vector<uint8_t> data(64);
	pattern_fill(data.data(), data.size(), 1, 2);
	EXPECT_LT(pattern_check(data.data(), 64, 2, 1), 8u);
	EXPECT_LT(pattern_check(data.data(), 64, 1, 3), 8u);
	EXPECT_LT(pattern_check(data.data(), 64, 0, 2), 8u);
	EXPECT_LT(pattern_check(data.data() + 8, 56, 1, 2), 8u);
	EXPECT_LT(pattern_check(data.data() + 1, 56, 1, 2), 8u);
}

TEST(PerfPattern, PoisonCheck_FindsTheFirstByteThatWasWritten)
{
	std::vector<uint8_t> data(100);
	poison_fill(data.data(), data.size());
	EXPECT_EQ(poison_check(data.data(), data.size()), 100u);
	data[99] = 0;
	EXPECT_EQ(poison_check(data.data(), data.size()), 99u);
	data[0] ^= 1;
	EXPECT_EQ(poison_check(data.data(), data.size()), 0u);
}

} // namespace
