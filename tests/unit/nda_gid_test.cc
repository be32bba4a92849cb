// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/gid.h"

#include <cerrno>
#include <cstring>

#include <gtest/gtest.h>

#include "lib/nda/error.h"

namespace nda {
namespace {

constexpr uint32_t v1 = IBV_GID_TYPE_ROCE_V1, v2 = IBV_GID_TYPE_ROCE_V2;

GidEntry entry(uint32_t index, const char *address, uint32_t type = v2)
{
	GidEntry e;
	e.index = index;
	e.type = type;
	e.net_device = "eth0";
	EXPECT_TRUE(parse_gid(address, e.gid)) << address;
	return e;
}

GidChoice by_address(const char *address, uint32_t version = 0)
{
	GidChoice c;
	c.by_address = true;
	c.roce_version = version;
	EXPECT_TRUE(parse_gid(address, c.address)) << address;
	return c;
}

GidChoice by_index(uint32_t index, uint32_t version = 0)
{
	GidChoice c;
	c.by_index = true;
	c.index = index;
	c.roce_version = version;
	return c;
}

GidChoice by_version(uint32_t version)
{
	GidChoice c;
	c.roce_version = version;
	return c;
}

struct Case {
	const char *name;
	std::vector<GidEntry> entries;
	GidChoice choice;
	int expected; // index, or a negative errno
	uint32_t preferred = no_preferred_gid;
};

class Choice : public testing::TestWithParam<Case> {};

TEST_P(Choice, Is)
{
	const Case &c = GetParam();
	GidEntry out;
	const int rc = choose_gid("rxe0", c.entries, c.choice, c.preferred, out);
	if (c.expected < 0) {
		EXPECT_EQ(rc, c.expected);
		return;
	}
	ASSERT_EQ(rc, 0) << error_detail();
	EXPECT_EQ(int(out.index), c.expected);
}

// What a dual-stack RoCE NIC has: each address as RoCEv1 and RoCEv2.
std::vector<GidEntry> dual()
{
	return {entry(0, "fe80::1", v1), entry(1, "fe80::1"), entry(2, "fd77::1", v1),
		entry(3, "fd77::1"), entry(4, "10.9.9.1", v1), entry(5, "10.9.9.1"),
		entry(6, "192.168.3.1", v1), entry(7, "192.168.3.1")};
}

INSTANTIATE_TEST_SUITE_P(Gids, Choice,
	testing::Values(Case{"Ipv4BeforeIpv6", dual(), {}, 5},
		Case{"Ipv6WhereThereIsNoIpv4", {entry(0, "fe80::1"), entry(1, "fd77::1")},
			{}, 1},
		Case{"LinkLocalLast",
			{entry(0, "fe80::1"), entry(1, "169.254.3.4"), entry(2, "fd77::1")},
			{}, 2},
		Case{"OnlyLinkLocal", {entry(0, "fe80::1")}, {}, 0},
		Case{"IndexZeroVanished", {entry(1, "10.9.9.1")}, {}, 1},
		Case{"NoneOfVersionTwo", {entry(0, "10.9.9.1", v1)}, {}, -EADDRNOTAVAIL},
		Case{"None", {}, {}, -EADDRNOTAVAIL},
		Case{"VersionOne", dual(), by_version(1), 4},
		Case{"Preferred", {entry(0, "10.9.9.1"), entry(1, "fd77::1")}, {}, 1, 1},
		Case{"PreferredIsLinkLocal", {entry(0, "10.9.9.1"), entry(1, "fe80::1")},
			{}, 0, 1},
		Case{"SecondSubnetByAddress", dual(), by_address("192.168.3.1"), 7},
		Case{"Ipv6ByAddress", dual(), by_address("fd77::1"), 3},
		Case{"LinkLocalByAddress", dual(), by_address("fe80::1"), 1},
		Case{"AddressAndVersionOne", dual(), by_address("10.9.9.1", 1), 4},
		Case{"AddressIsMissing", dual(), by_address("10.9.9.2"), -EADDRNOTAVAIL},
		Case{"Index", dual(), by_index(6), 6},
		Case{"IndexAndVersion", dual(), by_index(7, 2), 7},
		Case{"IndexOfAnotherVersion", dual(), by_index(6, 2), -EADDRNOTAVAIL},
		Case{"IndexIsEmpty", dual(), by_index(8), -EADDRNOTAVAIL}),
	[](const auto &p) { return std::string(p.param.name); });

TEST(ChooseGid, ListsTheCandidates)
{
	GidEntry out;
	const std::vector<GidEntry> entries = {
		entry(0, "fe80::1", v1), entry(3, "10.9.9.1")};
	EXPECT_EQ(
		choose_gid("rxe0", entries, by_address("10.9.9.2"), no_preferred_gid, out),
		-EADDRNOTAVAIL);
	EXPECT_STREQ(error_detail(),
		"nic rxe0: no RoCEv2 GID 10.9.9.2; it has 0 RoCEv1 fe80::1 (eth0), 3 "
		"RoCEv2 "
		"10.9.9.1 (eth0)");
}

TEST(ChooseGid, CutsALongListOfCandidates)
{
	std::vector<GidEntry> entries;
	for (uint32_t i = 0; i < 200; i++)
		entries.push_back(entry(i, "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
	GidEntry out;
	EXPECT_EQ(choose_gid("rxe0", entries, by_index(200), no_preferred_gid, out),
		-EADDRNOTAVAIL);
	const std::string text = error_detail();
	EXPECT_EQ(text.find("nic rxe0: no GID at index 200; it has 0 RoCEv2"), 0u) << text;
	EXPECT_NE(text.find(", and 192 more"), std::string::npos) << text;
}

TEST(ParseGid, TakesIpv4AsMappedAddress)
{
	ibv_gid gid;
	ASSERT_TRUE(parse_gid("10.9.8.7", gid));
	const uint8_t expected[16] = {
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 8, 7};
	EXPECT_EQ(memcmp(gid.raw, expected, 16), 0);
	EXPECT_EQ(address_text(gid), "10.9.8.7");
}

TEST(ParseGid, RefusesWhatIsNoAddress)
{
	ibv_gid gid;
	for (const char *text :
		{"", "10.9.8", "10.9.8.256", "eth0", "fe80::1%eth0", "1::2::3"})
		EXPECT_FALSE(parse_gid(text, gid)) << text;
}

} // namespace
} // namespace nda
