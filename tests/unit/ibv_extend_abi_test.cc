// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "tests/mock/extend_child.h"
#include "tests/unit/ibv_extend_layout.h"

#include <gmock/gmock.h>
#include <memory>
#include <sstream>

extern "C" const char *extend_version_from_c(void);
extern "C" uint64_t extend_bits_from_c(unsigned resource_id, unsigned offset);

namespace {

using extend_mock::in_child;

std::vector<std::string> output_lines(const std::string &command)
{
	std::unique_ptr<FILE, int (*)(FILE *)> pipe(popen(command.c_str(), "r"), pclose);
	std::vector<std::string> lines;
	char line[1024];
	while (pipe && fgets(line, sizeof(line), pipe.get()))
		lines.emplace_back(line, strcspn(line, "\n"));
	return lines;
}

std::string library()
{
	return extend_mock::build_dir() + "/lib/libibv_extend.so";
}

TEST(IbvExtendAbi, ExportsTheSixteenSymbolsAndNoOther)
{
	std::vector<std::string> names;
	for (const std::string &line : output_lines("nm -D --defined-only " + library()))
		names.push_back(line.substr(line.rfind(' ') + 1));
	EXPECT_THAT(names,
		testing::UnorderedElementsAre("ibv_extend_get_version",
			"ibv_extend_check_version", "ibv_open_extend", "ibv_close_extend",
			"ibv_query_device_extend", "ibv_create_qp_extend",
			"ibv_create_cq_extend", "ibv_create_srq_extend",
			"ibv_destroy_qp_extend", "ibv_destroy_cq_extend",
			"ibv_destroy_srq_extend", "ibv_modify_qp_extend",
			"ibv_query_qp_extend", "ibv_query_qp_supported_hyroce_feature",
			"ibv_nego_qp_hyroce_feature", "verbs_register_driver_extend"));
}

TEST(IbvExtendAbi, HasUpstreamsFileNames)
{
	std::vector<std::string> soname = output_lines(
		"readelf -d " + library() + " | sed -n 's/.*SONAME.*\\[\\(.*\\)\\]/\\1/p'");
	EXPECT_THAT(soname, testing::ElementsAre("libibv_extend.so.4"));
	EXPECT_EQ("libibv_extend.so.4", std::filesystem::read_symlink(library()));
	EXPECT_EQ(
		"libibv_extend.so.4.2.0", std::filesystem::read_symlink(library() + ".4"));
}

TEST(IbvExtendAbi, HasItsVersionForCAndCpp)
{
	uint32_t major = 0, minor = 0, patch = 9;
	EXPECT_STREQ("4.2.0", ibv_extend_get_version(&major, &minor, &patch));
	EXPECT_EQ(4u, major);
	EXPECT_EQ(2u, minor);
	EXPECT_EQ(0u, patch);
	EXPECT_STREQ("4.2.0", extend_version_from_c());
	EXPECT_STREQ("4.2.0", IBV_EXTEND_VERSION_STRING);
}

TEST(IbvExtendAbi, PacksTheBitsOfAUbDoorbell)
{
	EXPECT_EQ(0x0000000fu, extend_bits_from_c(0xf, 0));
	EXPECT_EQ(0x0000000ffffffff0u, extend_bits_from_c(0, 0xffffffff));
	EXPECT_EQ(0x0000000123456783u, extend_bits_from_c(3, 0x12345678));
}

TEST(IbvExtendVersion, AcceptsItselfAndOlder)
{
	std::string printed = in_child([] {
		EXPECT_EQ(0, ibv_extend_check_version(4, 2, 0));
		EXPECT_EQ(0, ibv_extend_check_version(4, 1, 0));
		EXPECT_EQ(0, ibv_extend_check_version(4, 1, 99));
		EXPECT_EQ(0, ibv_extend_check_version(4, 0, 0));
	});
	EXPECT_EQ("", printed);
}

TEST(IbvExtendVersion, RefusesOthersAndAlwaysSaysSo)
{
	std::string printed = in_child([] {
		unsetenv("IBV_EXTEND_SHOW_WARNINGS");
		EXPECT_EQ(-1, ibv_extend_check_version(4, 2, 1));
		EXPECT_EQ(-1, ibv_extend_check_version(4, 3, 0));
		EXPECT_EQ(-1, ibv_extend_check_version(5, 0, 0));
		EXPECT_EQ(-1, ibv_extend_check_version(3, 2, 0));
		EXPECT_EQ(-1, ibv_extend_check_version(3, 2, 0));
	});
	EXPECT_EQ(5u, extend_mock::count_of(printed, "\n"));
	EXPECT_EQ(2u, extend_mock::count_of(printed, "version 3.2.0 was asked for"));
	EXPECT_EQ(5u, extend_mock::count_of(printed, "4.2.0\n"));
}

} // namespace
