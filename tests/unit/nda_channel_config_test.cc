// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/channel_config.h"

#include <cerrno>
#include <cstdlib>

#include <gtest/gtest.h>

#include "lib/nda/error.h"

namespace nda {
namespace {

constexpr const char *variables[] = {
	"HCCL_RDMA_TC", "HCCL_RDMA_SL", "HCCL_RDMA_TIMEOUT", "HCCL_RDMA_RETRY_CNT"};

class Environment : public testing::Test {
protected:
	void SetUp() override { clear(); }
	void TearDown() override { clear(); }
	static void clear()
	{
		for (const char *name : variables)
			unsetenv(name);
	}
	static int read(ChannelConfig &out, const nda_channel_attr &attr = {})
	{
		return read_channel_attr(out, &attr, sizeof(attr));
	}
};

TEST_F(Environment, UnsetLeavesThePublicLibrarysDefaults)
{
	ChannelConfig c;
	ASSERT_EQ(read(c), 0);
	EXPECT_EQ(c.traffic_class, 132);
	EXPECT_EQ(c.service_level, 4);
	EXPECT_EQ(c.timeout, 20);
	EXPECT_EQ(c.retry_count, 7);
	EXPECT_EQ(c.hop_limit, 64);
}

TEST_F(Environment, CountsWhereTheCallerLeavesTheDefault)
{
	setenv("HCCL_RDMA_TC", "96", 1);
	setenv("HCCL_RDMA_SL", "0", 1);
	setenv("HCCL_RDMA_TIMEOUT", "14", 1);
	setenv("HCCL_RDMA_RETRY_CNT", "3", 1);
	ChannelConfig c;
	ASSERT_EQ(read(c), 0) << error_detail();
	EXPECT_EQ(c.traffic_class, 96);
	EXPECT_EQ(c.service_level, 0);
	EXPECT_EQ(c.timeout, 14);
	EXPECT_EQ(c.retry_count, 3);
}

TEST_F(Environment, YieldsToTheCaller)
{
	setenv("HCCL_RDMA_TC", "96", 1);
	setenv("HCCL_RDMA_SL", "no number, and not looked at", 1);
	nda_channel_attr attr = {};
	attr.comp_mask = NDA_CHANNEL_TRAFFIC_CLASS | NDA_CHANNEL_SERVICE_LEVEL;
	attr.traffic_class = 8;
	attr.service_level = 2;
	ChannelConfig c;
	ASSERT_EQ(read(c, attr), 0) << error_detail();
	EXPECT_EQ(c.traffic_class, 8);
	EXPECT_EQ(c.service_level, 2);
}

TEST_F(Environment, EmptyIsUnset)
{
	setenv("HCCL_RDMA_TC", "", 1);
	ChannelConfig c;
	ASSERT_EQ(read(c), 0);
	EXPECT_EQ(c.traffic_class, 132);
}

struct Bad {
	const char *name;
	const char *variable;
	const char *value;
	const char *text;
};

class BadVariable : public Environment, public testing::WithParamInterface<Bad> {};

TEST_P(BadVariable, IsAnErrorThatNamesIt)
{
	setenv(GetParam().variable, GetParam().value, 1);
	ChannelConfig c;
	EXPECT_EQ(read(c), -EINVAL);
	EXPECT_STREQ(error_detail(), GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(Values, BadVariable,
	testing::Values(
		Bad{"TcTooLarge", "HCCL_RDMA_TC", "256",
			"channel: HCCL_RDMA_TC=256 is not in 0..255 and a multiple of 4"},
		Bad{"TcNoMultiple", "HCCL_RDMA_TC", "130",
			"channel: HCCL_RDMA_TC=130 is not in 0..255 and a multiple of 4"},
		Bad{"TcNoNumber", "HCCL_RDMA_TC", "0x84",
			"channel: HCCL_RDMA_TC=0x84 is not in 0..255 and a multiple of 4"},
		Bad{"SlTooLarge", "HCCL_RDMA_SL", "8",
			"channel: HCCL_RDMA_SL=8 is not in 0..7"},
		Bad{"SlNegative", "HCCL_RDMA_SL", "-1",
			"channel: HCCL_RDMA_SL=-1 is not in 0..7"},
		Bad{"TimeoutTooLarge", "HCCL_RDMA_TIMEOUT", "32",
			"channel: HCCL_RDMA_TIMEOUT=32 is not in 0..31"},
		Bad{"RetryZero", "HCCL_RDMA_RETRY_CNT", "0",
			"channel: HCCL_RDMA_RETRY_CNT=0 is not in 1..7"},
		Bad{"RetryWithBlank", "HCCL_RDMA_RETRY_CNT", " 3",
			"channel: HCCL_RDMA_RETRY_CNT= 3 is not in 1..7"},
		Bad{"RetryBeyond64Bits", "HCCL_RDMA_RETRY_CNT", "18446744073709551619",
			"channel: HCCL_RDMA_RETRY_CNT=18446744073709551619 is not in "
			"1..7"}),
	[](const auto &p) { return std::string(p.param.name); });

} // namespace
} // namespace nda
