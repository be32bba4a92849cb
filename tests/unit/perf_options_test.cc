// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/options.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace nda::perf;
using testing::ElementsAre;
using testing::HasSubstr;

Parsed parse(const std::vector<std::string> &words)
{
	std::vector<const char *> argv = {"nda-perf"};
	for (const std::string &word : words)
		argv.push_back(word.c_str());
	return parse_options(int(argv.size()), argv.data());
}

void expect_usage(const std::vector<std::string> &words, const std::string &text)
{
	Parsed p = parse(words);
	EXPECT_FALSE(p.run);
	EXPECT_EQ(p.status, 2);
	EXPECT_EQ(p.out, "");
	EXPECT_THAT(p.err, HasSubstr(text));
	EXPECT_EQ(p.err.substr(0, 10), "nda-perf: ");
	EXPECT_EQ(std::count(p.err.begin(), p.err.end(), '\n'), 2) << p.err;
	EXPECT_THAT(p.err, HasSubstr("Try 'nda-perf --help'"));
}

TEST(PerfOptions, Put_HasBoundedDefaults)
{
	Parsed p = parse({"put"});
	ASSERT_TRUE(p.run) << p.err;
	EXPECT_EQ(p.options.op, Op::put);
	EXPECT_EQ(p.options.nic, "soft:hns1825");
	EXPECT_EQ(p.options.pes, 2u);
	EXPECT_EQ(p.options.time_limit_us, 200000u);
	EXPECT_FALSE(p.options.sizes.empty());
	EXPECT_FALSE(p.options.verify);
}

TEST(PerfOptions, Iterations_AreBoundedByALongerTime)
{
	EXPECT_EQ(parse({"put", "--iterations", "5"}).options.time_limit_us, 30000000u);
	EXPECT_EQ(
		parse({"put", "--iterations", "5", "--seconds", "1"}).options.time_limit_us,
		1000000u);
}

TEST(PerfOptions, AllOptions_HaveTheSameMeaningInEveryOrder)
{
	std::vector<std::vector<std::string>> parts = {{"--nic", "soft:x"}, {"--pes", "4"},
		{"--sizes=8,1M"}, {"--verify"}, {"--json"}, {"--seconds", "0.5"}};
	std::sort(parts.begin(), parts.end());
	int orders = 0;
	do {
		std::vector<std::string> words = {"get"};
		for (const auto &part : parts)
			words.insert(words.end(), part.begin(), part.end());
		Parsed p = parse(words);
		ASSERT_TRUE(p.run) << p.err;
		EXPECT_EQ(p.options.op, Op::get);
		EXPECT_EQ(p.options.nic, "soft:x");
		EXPECT_EQ(p.options.pes, 4u);
		EXPECT_THAT(p.options.sizes, ElementsAre(8, 1048576));
		EXPECT_TRUE(p.options.verify);
		EXPECT_TRUE(p.options.json);
		EXPECT_EQ(p.options.time_limit_us, 500000u);
		orders++;
	} while (std::next_permutation(parts.begin(), parts.end()));
	EXPECT_EQ(orders, 720);
}

TEST(PerfOptions, CommonOptions_MayStandBeforeTheCommand)
{
	Parsed p = parse({"--json", "--pes", "3", "put", "--verify", "--cores=2"});
	ASSERT_TRUE(p.run) << p.err;
	EXPECT_TRUE(p.options.json);
	EXPECT_EQ(p.options.pes, 3u);
	EXPECT_EQ(p.options.cores, 2u);
}

TEST(PerfOptions, DependentOptions_MayComeInEitherOrder)
{
	for (auto words :
		{std::vector<std::string>{"put", "--signal-every", "32", "--depth", "64"},
			std::vector<std::string>{
				"put", "--depth", "64", "--signal-every", "32"}}) {
		Parsed p = parse(words);
		ASSERT_TRUE(p.run) << p.err;
		EXPECT_EQ(p.options.depth, 64u);
		EXPECT_EQ(p.options.signal_every, 32u);
	}
}

TEST(PerfOptions, Doorbell_IsOneOfThreeWays)
{
	EXPECT_EQ(parse({"put"}).options.doorbell, Doorbell::automatic);
	EXPECT_EQ(
		parse({"put", "--doorbell", "auto"}).options.doorbell, Doorbell::automatic);
	EXPECT_EQ(parse({"put", "--doorbell", "map"}).options.doorbell, Doorbell::map);
	EXPECT_EQ(parse({"--doorbell=proxy", "get"}).options.doorbell, Doorbell::proxy);
	expect_usage({"put", "--doorbell", "host"},
		"--doorbell: 'host': must be auto, map, proxy or kernel");
}

TEST(PerfOptions, RepeatedOption_LastOneCounts)
{
	Parsed p =
		parse({"put", "--pes", "3", "--pes", "5", "--sizes", "8", "--sizes", "16"});
	ASSERT_TRUE(p.run) << p.err;
	EXPECT_EQ(p.options.pes, 5u);
	EXPECT_THAT(p.options.sizes, ElementsAre(16));
}

TEST(PerfOptions, Copy_TakesFilesBetweenOptions)
{
	Parsed p = parse({"copy", "a", "--pes", "3", "b c", "--", "--json"});
	ASSERT_TRUE(p.run) << p.err;
	EXPECT_EQ(p.options.op, Op::copy);
	EXPECT_THAT(p.options.files, ElementsAre("a", "b c", "--json"));
	EXPECT_FALSE(p.options.json);
	EXPECT_THAT(parse({"copy", "--", "-x"}).options.files, ElementsAre("-x"));
}

TEST(PerfOptions, Help_GoesToStandardOutputWithStatus0)
{
	for (auto words : {std::vector<std::string>{"--help"}, {"-h"}, {"put", "--help"},
		     {"copy", "--help"}}) {
		Parsed p = parse(words);
		EXPECT_FALSE(p.run);
		EXPECT_EQ(p.status, 0);
		EXPECT_THAT(p.out, testing::ContainsRegex("nda-perf( [a-z]+)? .OPTIONS"));
		EXPECT_EQ(p.err, "");
	}
	EXPECT_THAT(parse({"put", "--help"}).out, HasSubstr("--signal-every"));
	EXPECT_THAT(parse({"--help"}).out, testing::Not(HasSubstr("--job-")));
}

TEST(PerfOptions, Version_GoesToStandardOutputWithStatus0)
{
	Parsed p = parse({"--version"});
	EXPECT_FALSE(p.run);
	EXPECT_EQ(p.status, 0);
	EXPECT_THAT(p.out, testing::MatchesRegex("nda-perf [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(PerfOptions, TwoMachines_HaveHalfOfThePesEach)
{
	Parsed p = parse({"put", "--listen", "--secret-file", "s", "--pes", "6"});
	ASSERT_TRUE(p.run) << p.err;
	EXPECT_EQ(p.options.listen, "0.0.0.0");
	EXPECT_FALSE(p.options.one_machine());
	EXPECT_EQ(p.options.first_pe(), 0u);
	EXPECT_EQ(p.options.local_pes(), 3u);
	p = parse({"put", "--connect", "node1", "--secret-file", "s", "--pes", "6"});
	ASSERT_TRUE(p.run) << p.err;
	EXPECT_EQ(p.options.first_pe(), 3u);
	EXPECT_EQ(p.options.local_pes(), 3u);
	p = parse({"put", "--pes", "6"});
	EXPECT_EQ(p.options.first_pe(), 0u);
	EXPECT_EQ(p.options.local_pes(), 6u);
}

TEST(PerfOptions, Listen_TakesAnAddressAndLeavesFilesAlone)
{
	Parsed p = parse({"copy", "--listen", "file", "--secret-file", "s"});
	ASSERT_TRUE(p.run) << p.err;
	EXPECT_EQ(p.options.listen, "0.0.0.0");
	EXPECT_EQ(p.options.files, std::vector<std::string>{"file"});
	p = parse({"copy", "--listen=::", "file", "--secret-file", "s"});
	ASSERT_TRUE(p.run) << p.err;
	EXPECT_EQ(p.options.listen, "::");
}

TEST(PerfOptions, Connect_TakesTheFilesOfTheOtherSide)
{
	EXPECT_TRUE(parse({"copy", "--connect", "node1", "--secret-file", "s"}).run);
	expect_usage({"copy", "--connect", "node1", "--secret-file", "s", "file"},
		"copy: 'file': with --connect");
}

TEST(PerfOptions, Gid_IsAnAddressOrAnIndex)
{
	Parsed p = parse({"put", "--gid", "10.9.9.1"});
	ASSERT_TRUE(p.run) << p.err;
	EXPECT_EQ(p.options.gid, "10.9.9.1");
	EXPECT_FALSE(p.options.gid_is_index);
	p = parse({"put", "--gid", "3"});
	ASSERT_TRUE(p.run) << p.err;
	EXPECT_TRUE(p.options.gid_is_index);
	EXPECT_TRUE(parse({"put", "--gid", "fd77::1"}).run);
}

TEST(PerfOptions, Fingerprint_TellsWhatBothSidesMustAgreeOn)
{
	const uint64_t own = parse({"put"}).options.fingerprint();
	EXPECT_EQ(parse({"put", "--nic", "rxe0", "--json", "--gid", "3"})
			  .options.fingerprint(),
		own);
	for (const auto &words : {std::vector<std::string>{"get"}, {"put", "--sizes", "8"},
		     {"put", "--window", "3"}, {"put", "--verify"}, {"put", "--pes", "4"}})
		EXPECT_NE(parse(words).options.fingerprint(), own) << words.back();
}

TEST(PerfOptions, WrongUsage_NamesTheOptionAndTheCause)
{
	expect_usage({"put", "--gid", "1.2.3"}, "--gid: '1.2.3'");
	expect_usage({"put", "--gid", "256"}, "--gid: '256'");
	expect_usage({"put", "--path-mtu", "1500"}, "--path-mtu: '1500': must be a power");
	expect_usage({"put", "--path-mtu", "8192"}, "--path-mtu: '8192'");
	expect_usage({"put", "--listen"}, "--secret-file");
	expect_usage({"put", "--secret-file", "s"}, "--secret-file: 's': needs --listen");
	expect_usage({"put", "--listen", "--connect", "h", "--secret-file", "s"},
		"--connect: 'h': excludes --listen");
	expect_usage({"put", "--listen", "--secret-file", "s", "--pes", "3"},
		"--pes: '3': must be even");
	expect_usage({"put", "--listen", "--secret-file", "s", "--threads"}, "--threads");
	expect_usage({"put", "--port", "0"}, "--port: '0'");
	expect_usage({}, "command");
	expect_usage({"fly"}, "fly");
	expect_usage({"put", "--no-such"}, "--no-such");
	expect_usage({"put", "--pes"}, "--pes");
	expect_usage({"put", "--pes", "1"}, "--pes: '1': must be 2 to 128");
	expect_usage({"put", "--pes", "4x"}, "--pes: '4x'");
	expect_usage({"put", "--pes", "-2"}, "--pes");
	expect_usage({"put", "--pes", ""}, "--pes");
	expect_usage({"put", "--pes", "18446744073709551618"}, "--pes");
	expect_usage({"put", "--depth", "100"}, "--depth: '100': must be a power of two");
	expect_usage(
		{"put", "--depth", "64", "--signal-every", "33"}, "--signal-every: '33'");
	expect_usage({"put", "--sizes", "8,,16"}, "--sizes");
	expect_usage({"put", "--sizes", "8,"}, "--sizes");
	expect_usage({"put", "--sizes", "0"}, "--sizes: '0'");
	expect_usage({"put", "--sizes", "2G"}, "--sizes: '2G'");
	expect_usage({"put", "--seconds", "-1"}, "--seconds");
	expect_usage({"put", "--seconds", "0"}, "--seconds: '0'");
	expect_usage({"put", "--seconds", "1e3"}, "--seconds: '1e3'");
	expect_usage({"put", "file"}, "file");
	expect_usage({"put", "--", "file"}, "put: 'file': takes no files");
	expect_usage({"put", "get"}, "get");
	expect_usage({"copy"}, "FILE");
	expect_usage({"copy", "--verify", "file"}, "--verify");
	expect_usage({"put", "--job-pe=0"}, "--job-pe");
}

TEST(PerfOptions, ParseSize_TakesPowersOf1024)
{
	uint64_t v;
	ASSERT_TRUE(parse_size("8", &v));
	EXPECT_EQ(v, 8u);
	ASSERT_TRUE(parse_size("3K", &v));
	EXPECT_EQ(v, 3072u);
	ASSERT_TRUE(parse_size("1m", &v));
	EXPECT_EQ(v, 1048576u);
	ASSERT_TRUE(parse_size("2G", &v));
	EXPECT_EQ(v, 2147483648u);
}

TEST(PerfOptions, ParseSize_RefusesWhatIsNoSize)
{
	uint64_t v = 77;
	for (const char *text :
		{"", "K", "-1", "+1", " 1", "1 ", "1.5K", "1KK", "1KB", "0x10", "1T"})
		EXPECT_FALSE(parse_size(text, &v)) << text;
	EXPECT_EQ(v, 77u);
}

TEST(PerfOptions, ParseSize_RefusesOverflow)
{
	uint64_t v;
	EXPECT_TRUE(parse_size("18446744073709551615", &v));
	EXPECT_FALSE(parse_size("18446744073709551616", &v));
	EXPECT_TRUE(parse_size("17179869183G", &v)); // 2^34 - 1
	EXPECT_FALSE(parse_size("17179869184G", &v));
	EXPECT_FALSE(parse_size("18014398509481984K", &v)); // 2^54
}

TEST(PerfOptions, ParseSeconds_CountsMicroseconds)
{
	uint64_t us;
	ASSERT_TRUE(parse_seconds("2", &us));
	EXPECT_EQ(us, 2000000u);
	ASSERT_TRUE(parse_seconds("0.25", &us));
	EXPECT_EQ(us, 250000u);
	ASSERT_TRUE(parse_seconds("1.000001", &us));
	EXPECT_EQ(us, 1000001u);
	for (const char *text : {"", ".", ".5", "1.", "1.0000001", "1,5", "inf", "nan",
		     "18446744073709551615"})
		EXPECT_FALSE(parse_seconds(text, &us)) << text;
}

TEST(PerfOptions, OneWay_IsForTwoPes)
{
	Parsed p = parse({"get", "--one-way"});
	ASSERT_TRUE(p.run) << p.err;
	EXPECT_TRUE(p.options.one_way);
	EXPECT_EQ(p.options.posting_pes(), 1u);
	EXPECT_EQ(parse({"get", "--pes", "5"}).options.posting_pes(), 5u);
	expect_usage(
		{"put", "--one-way", "--pes", "3"}, "--pes: '3': must be 2 with --one-way");
	expect_usage({"copy", "--one-way", "file"}, "--one-way");
}

TEST(PerfOptions, Atomic_TakesAllThatTheNicHasByDefault)
{
	for (const auto &words : {std::vector<std::string>{"atomic"},
		     {"atomic", "--op=swap", "--op", "all"}}) {
		Parsed p = parse(words);
		ASSERT_TRUE(p.run) << p.err;
		EXPECT_EQ(p.options.op, Op::atomic);
		EXPECT_THAT(p.options.atomics,
			ElementsAre(Atomic::fetch_add, Atomic::compare_swap, Atomic::add,
				Atomic::swap, Atomic::set, Atomic::fetch_and,
				Atomic::fetch_or, Atomic::fetch_xor));
		EXPECT_TRUE(p.options.all_atomics);
		EXPECT_EQ(p.options.atomic_bytes, 8u);
		EXPECT_EQ(p.options.time_limit_us, 200000u);
	}
}

TEST(PerfOptions, Atomic_TakesTheNamesOfOperations)
{
	for (Atomic atomic : Options().atomics) {
		Parsed p = parse({"atomic", "--op", atomic_name(atomic)});
		ASSERT_TRUE(p.run) << p.err;
		EXPECT_THAT(p.options.atomics, ElementsAre(atomic));
		EXPECT_FALSE(p.options.all_atomics);
	}
	EXPECT_THAT(parse({"atomic", "--op", "set,fetch-xor"}).options.atomics,
		ElementsAre(Atomic::set, Atomic::fetch_xor));
	EXPECT_STREQ(atomic_name(Atomic::fetch_add), "fetch-add");
	EXPECT_STREQ(atomic_name(Atomic::compare_swap), "compare-swap");
	for (const char *text : {"nand", "fetch-add,", "", "all,swap"})
		expect_usage({"atomic", "--op", text}, "must be fetch-add, compare-swap, ");
}

TEST(PerfOptions, Atomic_CountersHave4Or8Bytes)
{
	EXPECT_EQ(parse({"atomic", "--bytes", "4"}).options.atomic_bytes, 4u);
	EXPECT_EQ(parse({"atomic", "--bytes", "8"}).options.atomic_bytes, 8u);
	for (const char *text : {"0", "5", "16"})
		expect_usage({"atomic", "--bytes", text}, "--bytes: '" + std::string(text));
	expect_usage({"put", "--bytes", "4"}, "--bytes");
}

TEST(PerfOptions, Atomic_RefusesWhatItDoesNotHave)
{
	expect_usage({"atomic", "--sizes", "8"}, "--sizes");
	expect_usage({"atomic", "--batch", "2"}, "--batch: '2': must be 1");
	expect_usage({"put", "--op", "fetch-add"}, "--op");
	expect_usage({"atomic", "file"}, "file");
}

TEST(PerfOptions, Signal_HasSizesButNoBatches)
{
	Parsed p = parse({"signal", "--sizes", "8,1M", "--pes", "5", "--cores", "2",
		"--verify", "--iterations", "9"});
	ASSERT_TRUE(p.run) << p.err;
	EXPECT_EQ(p.options.op, Op::signal);
	EXPECT_STREQ(op_name(p.options.op), "signal");
	EXPECT_THAT(p.options.sizes, ElementsAre(8, 1048576));
	EXPECT_EQ(p.options.iterations, 9u);
	expect_usage({"signal", "--batch", "2"}, "--batch: '2': must be 1");
	expect_usage({"signal", "--one-way"}, "--one-way");
	expect_usage({"signal", "--queues", "2"}, "--queues");
}

TEST(PerfOptions, Barrier_IsOfOneCoreOfEachPe)
{
	Parsed p = parse({"barrier", "--pes", "5", "--verify", "--seconds", "1"});
	ASSERT_TRUE(p.run) << p.err;
	EXPECT_EQ(p.options.op, Op::barrier);
	EXPECT_STREQ(op_name(p.options.op), "barrier");
	EXPECT_STREQ(barrier_name(Barrier::barrier_all), "barrier-all");
	EXPECT_STREQ(barrier_name(Barrier::sync_all), "sync-all");
	expect_usage({"barrier", "--cores", "2"}, "--cores: '2': must be 1");
	expect_usage({"barrier", "--batch", "2"}, "--batch: '2': must be 1");
	expect_usage({"barrier", "--sizes", "8"}, "--sizes");
}

TEST(PerfOptions, Queues_AreOfPutAndGet)
{
	EXPECT_EQ(parse({"put"}).options.queues, 1u);
	EXPECT_EQ(parse({"put", "--queues", "32"}).options.queues, 32u);
	EXPECT_EQ(parse({"get", "--queues", "4"}).options.queues, 4u);
	expect_usage({"put", "--queues", "0"}, "--queues: '0': must be 1 to 32");
	expect_usage({"put", "--queues", "33"}, "--queues: '33': must be 1 to 32");
	expect_usage({"copy", "--queues", "2", "file"}, "--queues");
}

TEST(PerfOptions, Events_NamesAFile)
{
	EXPECT_EQ(parse({"put"}).options.events, "");
	EXPECT_EQ(parse({"put", "--events", "a b"}).options.events, "a b");
	EXPECT_EQ(parse({"--events=x", "barrier"}).options.events, "x");
}

TEST(PerfOptions, Fingerprint_IsThatOfTheWork)
{
	const auto of = [](const std::vector<std::string> &words) {
		return parse(words).options.fingerprint();
	};
	EXPECT_EQ(of({"atomic"}), of({"atomic", "--op", "all"}));
	EXPECT_NE(of({"atomic"}), of({"atomic", "--op", "fetch-add"}));
	EXPECT_NE(of({"atomic"}), of({"put"}));
	EXPECT_NE(of({"put"}), of({"put", "--one-way"}));
	EXPECT_NE(of({"put"}), of({"put", "--queues", "2"}));
	EXPECT_NE(of({"atomic"}), of({"atomic", "--bytes", "4"}));
	EXPECT_NE(of({"signal"}), of({"put"}));
	EXPECT_NE(of({"barrier"}), of({"signal"}));
	// Each side has its own.
	EXPECT_EQ(of({"put"}), of({"put", "--events", "e"}));
}

} // namespace
