// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/ibv_extend/search.h"

#include "tests/mock/extend_child.h"

#include <climits>
#include <gmock/gmock.h>
#include <sys/stat.h>

namespace {

using namespace nda::extend;
using extend_mock::TempDir;
using extend_mock::write_file;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = SearchStep::Kind;
using Outcome = SearchStep::Outcome;

std::vector<std::string> names(const std::vector<DriverEntry> &entries)
{
	std::vector<std::string> found;
	for (const DriverEntry &entry : entries)
		found.push_back(entry.name);
	return found;
}

std::vector<std::string> problems(const SearchReport &report)
{
	std::vector<std::string> found;
	for (const SearchStep &step : report)
		if (step.is_problem())
			found.push_back(step.message());
	return found;
}

struct Parsed {
	std::vector<DriverEntry> entries;
	SearchReport report;
};

Parsed config(std::string_view text)
{
	Parsed parsed;
	parse_config(text, "file", parsed.entries, parsed.report);
	return parsed;
}

Parsed environment(std::string_view value)
{
	Parsed parsed;
	parse_environment(value, parsed.entries, parsed.report);
	return parsed;
}

TEST(Config, TakesDriverLinesAndSkipsBlanksAndComments)
{
	Parsed parsed = config(
		"driver a\n\n  # comment\n \t \n\tdriver\t b-2_X  rest\n#driver c\n");
	ASSERT_THAT(names(parsed.entries), ElementsAre("a", "b-2_X"));
	EXPECT_EQ(1u, parsed.entries[0].position);
	EXPECT_EQ(5u, parsed.entries[1].position);
	EXPECT_EQ("file", parsed.entries[1].source);
	EXPECT_TRUE(parsed.report.empty());
}

TEST(Config, TakesAnyLineEnding)
{
	Parsed parsed = config("driver a\r\n\r\ndriver b\rdriver c\n\rdriver d");
	ASSERT_THAT(names(parsed.entries), ElementsAre("a", "b", "c", "d"));
	EXPECT_EQ(3u, parsed.entries[1].position);
	EXPECT_TRUE(parsed.report.empty());
}

TEST(Config, ReportsWhatItDoesNotUnderstandByLine)
{
	Parsed parsed = config("load a\ndriver\ndriver ./a\ndriver libb.so\ndriver good\n");
	ASSERT_THAT(names(parsed.entries), ElementsAre("good"));
	EXPECT_THAT(problems(parsed.report),
		ElementsAre("file:1: unknown directive \"load\"",
			"file:2: \"driver\" without a name",
			HasSubstr("file:3: driver ./a: is neither"),
			HasSubstr("file:4: driver libb.so: is neither")));
}

TEST(Config, TakesPathsUpToPathMax)
{
	std::string longest = "/" + std::string(PATH_MAX - 2, 'x');
	EXPECT_THAT(
		names(config("driver " + longest + "\n").entries), ElementsAre(longest));
	Parsed parsed = config("driver " + longest + "x\n");
	EXPECT_TRUE(parsed.entries.empty());
	EXPECT_THAT(problems(parsed.report),
		ElementsAre(HasSubstr("longer than a path may be")));
}

TEST(Config, TakesNamesThatMakeAFileName)
{
	std::string longest(255 - 6, 'x'); // lib and .so
	EXPECT_THAT(names(config("driver " + longest).entries), ElementsAre(longest));
	EXPECT_TRUE(config("driver " + longest + "x").entries.empty());
}

TEST(Config, ReportsAnEndlessLineShortly)
{
	Parsed parsed = config("driver " + std::string(100000, 'x') + "\ndriver b\n");
	ASSERT_THAT(names(parsed.entries), ElementsAre("b"));
	ASSERT_EQ(1u, problems(parsed.report).size());
	EXPECT_LT(problems(parsed.report)[0].size(), 400u);
}

TEST(Config, RefusesParentComponentsButNotDots)
{
	Parsed parsed =
		config("driver /a/../b\ndriver /..\ndriver /a/..\ndriver /a..b/c...so\n");
	ASSERT_THAT(names(parsed.entries), ElementsAre("/a..b/c...so"));
	EXPECT_EQ(3u, problems(parsed.report).size());
}

TEST(Config, RefusesZeroBytesAndPrintsNoControlCharacters)
{
	using namespace std::string_view_literals;
	Parsed parsed = config("driver /a\0b\ndriver \x1b[31m\n"sv);
	EXPECT_TRUE(parsed.entries.empty());
	EXPECT_THAT(problems(parsed.report),
		ElementsAre("file:1: driver /a?b: contains a zero byte",
			HasSubstr("file:2: driver ?[31m: ")));
}

TEST(Environment, IsSplitAtColonsAndSemicolons)
{
	Parsed parsed = environment("a:/b/libc.so;d");
	ASSERT_THAT(names(parsed.entries), ElementsAre("a", "/b/libc.so", "d"));
	EXPECT_EQ(3u, parsed.entries[2].position);
	EXPECT_TRUE(parsed.report.empty());
}

TEST(Environment, ReportsEmptyAndOddEntries)
{
	Parsed parsed = environment(":a;; b:");
	ASSERT_THAT(names(parsed.entries), ElementsAre("a"));
	EXPECT_THAT(problems(parsed.report),
		ElementsAre("IBV_EXTEND_DRIVERS:1: empty entry",
			"IBV_EXTEND_DRIVERS:3: empty entry",
			HasSubstr("IBV_EXTEND_DRIVERS:4: driver  b: is neither"),
			"IBV_EXTEND_DRIVERS:5: empty entry"));
}

TEST(Environment, SetToNothingNamesNothing)
{
	Parsed parsed = environment("");
	EXPECT_TRUE(parsed.entries.empty());
	EXPECT_TRUE(parsed.report.empty());
}

// The whole of it, on directories.
class Directory : public testing::Test {
protected:
	Directory() { unsetenv("IBV_EXTEND_DRIVERS"); }
	~Directory() override { unsetenv("IBV_EXTEND_DRIVERS"); }

	std::vector<std::string> collect()
	{
		report_.clear();
		return names(collect_entries(paths_, report_));
	}
	const SearchStep *step(const std::string &source)
	{
		for (const SearchStep &step : report_)
			if (step.source == source)
				return &step;
		return nullptr;
	}

	TempDir dir_;
	SearchPaths paths_{dir_.path(), {}};
	SearchReport report_;
};

TEST_F(Directory, IsReadInOrderOfNamesAfterTheEnvironment)
{
	write_file(dir_ / "b", "driver third\n");
	write_file(dir_ / "a.conf", "driver first\r\ndriver second\r\n");
	write_file(dir_ / "B", "driver capital\n");
	setenv("IBV_EXTEND_DRIVERS", "env2:env1", 1);
	EXPECT_THAT(collect(),
		ElementsAre("env2", "env1", "capital", "first", "second", "third"));
}

TEST_F(Directory, LeavesOutDotFilesAndLeftovers)
{
	for (const char *name : {".hidden", "a~", "a.dpkg-old", "a.dpkg-new", "a.rpmnew",
		     "a.rpmsave", "a.rpmorig"})
		write_file(dir_ / name, "driver leftover\n");
	write_file(dir_ / "a..conf", "driver good\n");
	EXPECT_THAT(collect(), ElementsAre("good"));
	EXPECT_EQ(Outcome::ignored, step(dir_ / "a.rpmsave")->outcome);
	EXPECT_TRUE(problems(report_).empty());
}

TEST_F(Directory, LeavesOutWhatIsNotARegularFile)
{
	write_file(dir_ / "real", "driver good\n");
	ASSERT_EQ(0, symlink("real", (dir_ / "link").c_str()));
	ASSERT_EQ(
		0, mkfifo((dir_ / "pipe").c_str(), 0644)); // to open it would wait for ever
	ASSERT_EQ(0, mkdir((dir_ / "sub").c_str(), 0755));
	EXPECT_THAT(collect(), ElementsAre("good"));
	EXPECT_EQ(Outcome::ignored, step(dir_ / "pipe")->outcome);
}

TEST_F(Directory, RefusesFilesThatOthersMayWrite)
{
	write_file(dir_ / "all", "driver evil\n");
	write_file(dir_ / "group", "driver evil\n");
	write_file(dir_ / "own", "driver good\n");
	ASSERT_EQ(0, chmod((dir_ / "all").c_str(), 0646));
	ASSERT_EQ(0, chmod((dir_ / "group").c_str(), 0664));
	ASSERT_EQ(0, chmod((dir_ / "own").c_str(), 0600));
	EXPECT_THAT(collect(), ElementsAre("good"));
	EXPECT_THAT(problems(report_),
		ElementsAre(dir_ / "all: is writable by others than its owner",
			dir_ / "group: is writable by others than its owner"));
}

TEST_F(Directory, IsRefusedIfOthersMayWriteIt)
{
	write_file(dir_ / "a", "driver evil\n");
	ASSERT_EQ(0, chmod(dir_.path().c_str(), 0777));
	EXPECT_TRUE(collect().empty());
	EXPECT_EQ(EPERM, step(dir_.path())->error);
	EXPECT_THAT(problems(report_), ElementsAre(HasSubstr("writable by others")));
}

TEST_F(Directory, RefusesForeignOwners)
{
	if (geteuid() != 0)
		GTEST_SKIP() << "only root can give files away";
	write_file(dir_ / "a", "driver evil\n");
	write_file(dir_ / "b", "driver good\n");
	ASSERT_EQ(0, chown((dir_ / "a").c_str(), 65534, 65534));
	EXPECT_THAT(collect(), ElementsAre("good"));
	EXPECT_THAT(problems(report_), ElementsAre(HasSubstr("belongs neither")));
	ASSERT_EQ(0, chown(dir_.path().c_str(), 65534, 65534));
	EXPECT_TRUE(collect().empty());
}

TEST_F(Directory, RefusesAHugeFile)
{
	write_file(dir_ / "a", std::string((1 << 20) + 1, '\n'));
	write_file(dir_ / "b", std::string(1 << 20, '\n'));
	collect();
	EXPECT_EQ(EFBIG, step(dir_ / "a")->error);
	EXPECT_EQ(Outcome::ok, step(dir_ / "b")->outcome);
}

TEST_F(Directory, ThatIsMissingIsNoProblem)
{
	paths_.config_directory = dir_ / "none";
	EXPECT_TRUE(collect().empty());
	EXPECT_EQ(Outcome::absent, step(dir_ / "none")->outcome);
	EXPECT_EQ(ENOENT, step(dir_ / "none")->error);
	EXPECT_TRUE(problems(report_).empty());
}

TEST_F(Directory, ThatIsAFileIsAProblem)
{
	write_file(dir_ / "file", "driver a\n");
	paths_.config_directory = dir_ / "file";
	EXPECT_TRUE(collect().empty());
	EXPECT_EQ(ENOTDIR, step(dir_ / "file")->error);
	EXPECT_EQ(1u, problems(report_).size());
}

TEST_F(Directory, FingerprintFollowsEnvironmentFilesAndNames)
{
	write_file(dir_ / "a", "driver a\n");
	std::string before = search_fingerprint(paths_);
	EXPECT_EQ(before, search_fingerprint(paths_));

	setenv("IBV_EXTEND_DRIVERS", "", 1);
	EXPECT_NE(before, search_fingerprint(paths_));
	unsetenv("IBV_EXTEND_DRIVERS");
	EXPECT_EQ(before, search_fingerprint(paths_));

	write_file(dir_ / "a", "driver bb\n");
	std::string changed = search_fingerprint(paths_);
	EXPECT_NE(before, changed);

	write_file(dir_ / "b", "");
	EXPECT_NE(changed, search_fingerprint(paths_));
}

TEST_F(Directory, FingerprintFollowsAChangeThatKeepsSizeAndTime)
{
	write_file(dir_ / "a", "driver a\n");
	std::string before = search_fingerprint(paths_);
	// As an editor does that writes anew and renames, with the old time put back.
	struct stat status;
	ASSERT_EQ(0, stat((dir_ / "a").c_str(), &status));
	write_file(dir_ / "new", "driver b\n");
	struct timespec times[2] = {status.st_atim, status.st_mtim};
	ASSERT_EQ(0, utimensat(AT_FDCWD, (dir_ / "new").c_str(), times, 0));
	ASSERT_EQ(0, rename((dir_ / "new").c_str(), (dir_ / "a").c_str()));
	EXPECT_NE(before, search_fingerprint(paths_));
}

TEST(Privilege, KeepsTheEnvironmentOut)
{
	if (geteuid() != 0)
		GTEST_SKIP() << "only root can make a set-user-id program of another user";
	TempDir dir;
	ASSERT_EQ(0, chmod(dir.path().c_str(), 0755));
	std::string program = dir / "program";
	std::filesystem::copy_file(
		extend_mock::build_dir() + "/tests/extend_privileged", program);
	auto run = [&] {
		std::string command =
			"IBV_EXTEND_DRIVERS=a:b " + program + " > " + (dir / "out");
		EXPECT_EQ(0, system(command.c_str()));
		return extend_mock::read_file(dir / "out");
	};
	EXPECT_EQ("plain entries 2: IBV_EXTEND_DRIVERS: read\n", run());
	ASSERT_EQ(0, chown(program.c_str(), 65534, 65534));
	ASSERT_EQ(0, chmod(program.c_str(), 04755));
	std::string raised = run();
	if (raised.substr(0, 5) == "plain")
		GTEST_SKIP() << "/tmp is mounted nosuid";
	EXPECT_THAT(raised, HasSubstr("raised entries 0: IBV_EXTEND_DRIVERS: not read"));
}

// Where drivers are sought must not depend on the machine that built the library.
TEST(SystemPaths, AreUpstreamsAllOfThem)
{
	SearchPaths paths = system_paths();
	EXPECT_EQ("/etc/libibverbs_extend.d", paths.config_directory);
	EXPECT_THAT(paths.driver_directories,
		ElementsAre(
			"/usr/local/lib64", "/usr/lib64", "/usr/local/lib", "/usr/lib"));
}

} // namespace
