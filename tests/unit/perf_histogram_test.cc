// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/histogram.h"

#include <gtest/gtest.h>

namespace {

using nda::perf::Histogram;

TEST(PerfHistogram, Percentile_IsZeroWithoutValues)
{
	Histogram h;
	EXPECT_EQ(h.percentile(50), 0u);
	EXPECT_EQ(h.percentile(99), 0u);
}

TEST(PerfHistogram, Percentile_OfOneValueIsThatValue)
{
	Histogram h;
	h.add(7);
	EXPECT_EQ(h.percentile(1), 7u);
	EXPECT_EQ(h.percentile(50), 7u);
	EXPECT_EQ(h.percentile(100), 7u);
}

// Nearest rank: rank = ceil(percent / 100 * count), counted from 1 in sorted order.
TEST(PerfHistogram, Percentile_IsTheNearestRank)
{
	Histogram h;
	for (int value : {50, 15, 40, 20, 35})
		h.add(value);
	EXPECT_EQ(h.percentile(5), 15u);
	EXPECT_EQ(h.percentile(30), 20u);
	EXPECT_EQ(h.percentile(40), 20u);
	EXPECT_EQ(h.percentile(50), 35u);
	EXPECT_EQ(h.percentile(99), 50u);
	EXPECT_EQ(h.percentile(100), 50u);
}

TEST(PerfHistogram, Percentile_OfOneToHundredIsItsNumber)
{
	Histogram h;
	for (int value = 100; value >= 1; value--)
		h.add(value);
	for (uint32_t percent = 1; percent <= 100; percent++)
		EXPECT_EQ(h.percentile(percent), percent);
}

TEST(PerfHistogram, Percentile_IsNeverBelowTheValueAndAtMostOnePartIn128Above)
{
	for (uint64_t value = 1; value < uint64_t(1) << 40; value = value * 9 / 8 + 1) {
		Histogram h;
		h.add(value);
		EXPECT_GE(h.percentile(50), value);
		EXPECT_LE(h.percentile(50), value + value / 128) << value;
	}
}

TEST(PerfHistogram, Percentile_OfBucketsBoundsIsExactUpTo255)
{
	for (uint64_t value : {0, 1, 127, 128, 129, 254, 255}) {
		Histogram h;
		h.add(value);
		EXPECT_EQ(h.percentile(99), value);
	}
}

TEST(PerfHistogram, Add_TakesValuesBeyondItsRangeAsTheLargest)
{
	Histogram h;
	h.add(UINT64_MAX);
	h.add(uint64_t(1) << 40);
	EXPECT_EQ(h.percentile(50), (uint64_t(1) << 40) - 1);
	EXPECT_EQ(h.total(), 2u);
}

TEST(PerfHistogram, Merge_AddsTheCountsOfBoth)
{
	Histogram a;
	Histogram b;
	for (int i = 0; i < 99; i++)
		a.add(10);
	b.add(200);
	a.merge(b);
	EXPECT_EQ(a.total(), 100u);
	EXPECT_EQ(a.percentile(99), 10u);
	EXPECT_EQ(a.percentile(100), 200u);
}

} // namespace
