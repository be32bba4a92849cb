// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/pairs.h"

#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace {

using namespace nda::perf;

TEST(PerfPairs, Pairs_AreMutual)
{
	for (uint32_t n = 2; n <= 128; n++)
		for (uint32_t turn = 0; turn < pair_turns(n); turn++)
			for (uint32_t pe = 0; pe < n; pe++) {
				const uint32_t peer = pair_peer(n, turn, pe);
				ASSERT_LT(peer, n);
				ASSERT_EQ(pair_peer(n, turn, peer), pe)
					<< n << " PEs, turn " << turn;
			}
}

TEST(PerfPairs, Pairs_AreAllThereOnce)
{
	for (uint32_t n = 2; n <= 128; n++) {
		std::set<std::pair<uint32_t, uint32_t>> pairs;
		uint32_t alone = 0;
		for (uint32_t turn = 0; turn < pair_turns(n); turn++)
			for (uint32_t pe = 0; pe < n; pe++) {
				const uint32_t peer = pair_peer(n, turn, pe);
				EXPECT_TRUE(pe >= peer || pairs.emplace(pe, peer).second);
				alone += pe == peer;
			}
		EXPECT_EQ(pairs.size(), n * (n - 1) / 2);
		EXPECT_EQ(alone, n % 2 == 0 ? 0u : n);
	}
}

} // namespace
