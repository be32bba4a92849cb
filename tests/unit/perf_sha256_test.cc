// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/sha256.h"

#include <gtest/gtest.h>

namespace {

using nda::perf::Sha256;

// The examples of FIPS 180.
TEST(PerfSha256, Finish_GivesTheStandardsSums)
{
	Sha256 empty;
	EXPECT_EQ(empty.finish(),
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	Sha256 abc;
	abc.update("abc", 3);
	EXPECT_EQ(abc.finish(),
		"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(PerfSha256, Update_IsIndependentOfThePieces)
{
	const std::string million(1000000, 'a');
	Sha256 pieces;
	for (size_t at = 0, n = 1; at < million.size(); at += n, n = n * 3 % 4099 + 1) {
		n = std::min(n, million.size() - at);
		pieces.update(million.data() + at, n);
	}
	EXPECT_EQ(pieces.finish(),
		"cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

} // namespace
