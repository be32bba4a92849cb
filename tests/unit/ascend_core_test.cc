/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * AscendCore on the stand-ins of the intrinsics: its copy, and that the recorded cases do
 * not pass with one of the engines' cleans, invalidates and barriers taken away. Compiled
 * by clang, once for each way to publish WQEs, see golden_common.h.
 */
#include <malloc.h>
#include <string.h>

#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include <tests/unit/golden_files.h>

namespace {

using namespace nda;
using namespace nda::golden;
using nda::aiv::site;
using nda::test::ascend;
using nda::test::Recorder;

constexpr bool staged = Core::stages_wqes;

/* ---- The core alone ---- */

class AscendCore : public testing::Test {
protected:
	AscendCore()
	{
		for (uint32_t i = 0; i < bytes; i++)
			from_.data()[i] = static_cast<uint8_t>(i * 7 + 1);
		recorder_.add_memory(from_.addr(), bytes);
		recorder_.add_memory(to_.addr(), bytes);
	}
	~AscendCore() override
	{
		ascend.without_from = ascend.without_to = PIPE_ALL;
		ascend.without_site = aiv::n_sites;
	}

	bool same(uint32_t at, uint32_t n)
	{
		return memcmp(from_.data() + at, to_.data() + at, n) == 0;
	}

	static constexpr uint32_t bytes = 4096;
	Memory from_{bytes};
	Memory to_{bytes, 0x55};
	Recorder recorder_;
	Core core_{&recorder_};
};

TEST_F(AscendCore, CopiesLessThanItsBufferAndMore)
{
	uint32_t at = 0;

	for (uint32_t n : {1u, 7u, 8u, 31u, 255u, 256u, 257u, 513u, 1000u}) {
		core_.copy(to_.addr() + at, from_.addr() + at, n);
		EXPECT_TRUE(same(at, n)) << n;
		EXPECT_EQ(to_.data()[at + n], 0x55) << n;
		at += n + 1;
	}
	recorder_.end();
	EXPECT_TRUE(recorder_.violations.empty()) << recorder_.violations[0];
}

TEST_F(AscendCore, CopiesNothing)
{
	core_.copy(to_.addr(), from_.addr(), 0);
	EXPECT_EQ(to_.data()[0], 0x55);
}

/* The pipes run at their own pace: UB has what MTE2 brought only behind its flag. */
TEST_F(AscendCore, CopiesWhatHasCome)
{
	ascend.without_from = PIPE_MTE2;
	ascend.without_to = PIPE_MTE3;
	core_.copy(to_.addr(), from_.addr(), 256);
	EXPECT_FALSE(same(0, 256));
}

TEST_F(AscendCore, WaitsUntilItsCopyIsInMemory)
{
	ascend.without_from = PIPE_MTE3;
	ascend.without_to = PIPE_S;
	core_.copy(to_.addr(), from_.addr(), 256);
	EXPECT_EQ(to_.data()[0], 0x55);
	recorder_.end();
	EXPECT_FALSE(recorder_.violations.empty());
}

TEST_F(AscendCore, CopiesWhatIsInMemoryAndNotInItsCache)
{
	core_.store<uint64_t>(from_.addr(), 0x1111111111111111);
	core_.copy(to_.addr(), from_.addr(), 8);
	EXPECT_NE(to_.data()[0], 0x11);

	core_.clean(site::caller, from_.addr(), 8);
	core_.dsb(site::caller);
	core_.copy(to_.addr(), from_.addr(), 8);
	EXPECT_EQ(to_.data()[0], 0x11);
}

TEST_F(AscendCore, StoresToMemoryWithACleanAndABarrierOnly)
{
	core_.store<uint64_t>(to_.addr(), 0x1111111111111111);
	EXPECT_EQ(to_.data()[0], 0x55);
	core_.clean(site::caller, to_.addr(), 8);
	EXPECT_EQ(to_.data()[0], 0x55);
	core_.dsb(site::caller);
	EXPECT_EQ(to_.data()[0], 0x11);
}

TEST_F(AscendCore, CleansEveryLineOfARange)
{
	for (uint32_t i = 0; i < 256; i += 8)
		core_.store<uint64_t>(to_.addr() + i, 0x1111111111111111);
	/* Two whole lines, and a byte of either neighbour. */
	core_.clean(site::caller, to_.addr() + 63, 130);
	core_.dsb(site::caller);
	recorder_.end();
	EXPECT_TRUE(recorder_.violations.empty()) << recorder_.violations[0];
	EXPECT_EQ(to_.data()[0], 0x11);
	EXPECT_EQ(to_.data()[255], 0x11);
}

TEST_F(AscendCore, LoadsWhatItCachedUntilItIsInvalidated)
{
	uint8_t old = static_cast<uint8_t>(core_.load<uint64_t>(to_.addr()));

	memset(to_.data(), 0x22, 8);
	EXPECT_EQ(static_cast<uint8_t>(core_.load<uint64_t>(to_.addr())), old);
	core_.invalidate(site::caller, to_.addr(), 8);
	EXPECT_EQ(static_cast<uint8_t>(core_.load<uint64_t>(to_.addr())), 0x22);
}

/* What the stand-in objects to: the NIC would read a request that is not there. */
TEST_F(AscendCore, RingsAfterWhatTheNicReads)
{
	recorder_.add_nic_memory(to_.addr(), 64, Recorder::requests);
	recorder_.add_memory(from_.addr(), 8);

	core_.store<uint64_t>(to_.addr(), 1);
	core_.clean(site::caller, to_.addr(), 8);
	core_.st_dev<uint64_t>(from_.addr(), 1);
	EXPECT_EQ(recorder_.violations.size(), 1u);
	core_.dsb(site::caller);
	core_.st_dev<uint64_t>(from_.addr(), 1);
	EXPECT_EQ(recorder_.violations.size(), 1u);
}

TEST_F(AscendCore, SendsTheRecordAfterTheRequest)
{
	recorder_.add_nic_memory(to_.addr(), 64, Recorder::requests);
	recorder_.add_nic_memory(to_.addr() + 64, 64, Recorder::record);

	for (bool waits : {true, false}) {
		core_.store<uint64_t>(to_.addr(), 1);
		core_.clean(site::caller, to_.addr(), 8);
		if (waits)
			core_.dsb(site::caller);
		core_.store<uint64_t>(to_.addr() + 64, 1);
		core_.clean(site::caller, to_.addr() + 64, 8);
		EXPECT_EQ(recorder_.violations.size(), waits ? 0u : 1u);
		core_.dsb(site::caller);
	}
}

/* ---- The engines on it ---- */

const char *const site_names[] = {"table_header", "table_queues", "wqe_marker", "wqe",
	"queue_line", "idle_line", "after_idle", "before_record", "sq_record",
	"before_doorbell", "cq_look", "cq_entry", "cq_line", "cq_record", "after_poll",
	"abort_word", "result", "waited_word", "staged_look", "staged_word", "sync_look",
	"sync_counter", "caller"};
static_assert(sizeof(site_names) / sizeof(site_names[0]) == aiv::n_sites, "all of them");

/* The sites that a recorded case cannot see, and why. tests/unit/aiv_cached_test.cc sees
 * them. */
const std::map<site, const char *> unseen = {
	{site::cq_entry, "a line comes at once, with the CQE's rest"},
	{site::idle_line, "no case rings without a post or a poll"},
	{site::after_idle, "no case rings without a post or a poll"},
	{site::abort_word, "no case is aborted"},
	{site::waited_word, "no case waits for a word"},
	{site::staged_look, "each case uses a word of the scratch once"},
	{site::sync_look, "no case has a barrier"},
	{site::sync_counter, "no case has a barrier"},
	{site::caller, "the engines have none"},
};

struct Case {
	const Runner *runner;
	Json test;
};

const std::vector<Case> &recorded_cases()
{
	static std::vector<Case> cases;

	if (!cases.empty())
		return cases;
	/* Rings come and go by the thousand: keep their pages. */
	mallopt(M_TRIM_THRESHOLD, 1 << 28);
	mallopt(M_MMAP_THRESHOLD, 1 << 25);
	for (const auto &path : files_of("tests/data/golden")) {
		Json file = Json::parse(std::ifstream(path));
		std::string why;
		const Runner *runner = runner_of(file, &why);

		if (runner == nullptr)
			continue;
		for (const Json &test : file.at("cases"))
			cases.push_back({runner, test});
	}
	return cases;
}

class Without : public testing::TestWithParam<uint32_t> {
protected:
	~Without() override
	{
		ascend.without_site = aiv::n_sites;
		ascend.without_from = ascend.without_to = PIPE_ALL;
	}
	static bool all_pass()
	{
		for (const Case &each : recorded_cases())
			if (!run_case(*each.runner, each.test).empty())
				return false;
		return true;
	}
};

TEST_P(Without, ASiteSomeRecordedCaseFails)
{
	site at = static_cast<site>(GetParam());

	ascend.without_site = GetParam();
	/* There is nothing to clean of WQEs that are copied. */
	bool is_unseen = unseen.count(at) != 0 ||
		(staged && (at == site::wqe || at == site::wqe_marker));
	EXPECT_EQ(all_pass(), is_unseen);
}

INSTANTIATE_TEST_SUITE_P(Each, Without, testing::Range(0u, aiv::n_sites),
	[](const testing::TestParamInfo<uint32_t> &info) {
		return std::string(site_names[info.param]);
	});

/* Of stored WQEs, none is copied. */
TEST_F(Without, TheFlagsOfACopySomeRecordedCaseFails)
{
	ascend.without_from = PIPE_S;
	ascend.without_to = PIPE_MTE3;
	EXPECT_EQ(all_pass(), !staged);
	ascend.without_from = PIPE_MTE3;
	ascend.without_to = PIPE_S;
	EXPECT_EQ(all_pass(), !staged);
}

} // namespace
