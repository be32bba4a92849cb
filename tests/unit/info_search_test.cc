// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The search for extension drivers, with real files: the drivers of tests/mock, and what
// can be made of them by changing bytes.
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sys/ioctl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "lib/tools/info/checks.h"
#include "lib/tools/info/child.h"
#include "lib/tools/info/elf_file.h"
#include "lib/tools/info/gather.h"
#include "lib/tools/info/recorder.h"
#include "tests/mock/extend_child.h"

namespace nda::info {
namespace {

using extend_mock::driver_path;
using extend_mock::read_file;
using extend_mock::write_file;
namespace fs = std::filesystem;

class InfoSearch : public testing::Test {
protected:
	InfoSearch()
	{
		unsetenv("IBV_EXTEND_DRIVERS");
		machine.root = dir / "root";
		fs::create_directories(machine.root + "/etc/libibverbs_extend.d");
		fs::create_directories(machine.root + "/usr/lib64");
	}
	~InfoSearch() override { unsetenv("IBV_EXTEND_DRIVERS"); }

	void configure(const std::string &text)
	{
		write_file(machine.root + "/etc/libibverbs_extend.d/test.conf", text);
	}
	const std::vector<Driver> &search()
	{
		facts.search = gather_search(machine, {});
		return facts.search.drivers;
	}
	// The ids of problems with drivers, of what search() found.
	std::string problems()
	{
		std::string text;
		for (const Problem &p : check(facts, ""))
			if (p.weight == Problem::Weight::problem &&
				p.id.compare(0, 8, "library-") != 0)
				text += (text.empty() ? "" : " ") + p.id;
		return text;
	}
	// A copy of a driver, of which some bytes are others, where the search looks.
	std::string changed_driver(const std::string &driver, const std::string &name,
		const std::string &from, const std::string &to)
	{
		std::string bytes = read_file(driver_path(driver));
		size_t n = 0;
		for (size_t at = 0; (at = bytes.find(from, at)) != bytes.npos; n++)
			bytes.replace(at, to.size(), to);
		EXPECT_GT(n, 0u);
		const std::string path = machine.root + "/usr/lib64/lib" + name + ".so";
		write_file(path, bytes);
		return path;
	}

	extend_mock::TempDir dir;
	Machine machine;
	Facts facts;
};

TEST_F(InfoSearch, FindsNothingWhereNothingIsNamed)
{
	fs::remove_all(machine.root + "/etc");
	EXPECT_TRUE(search().empty());
	EXPECT_FALSE(facts.search.config_exists);
	EXPECT_FALSE(facts.search.environment_set);
	EXPECT_EQ("", problems());
}

TEST_F(InfoSearch, TellsUnderWhichNameADriverRegisters)
{
	configure("driver " + driver_path("unlinked") + "\n");
	ASSERT_EQ(1u, search().size());
	const Driver &driver = facts.search.drivers[0];
	EXPECT_EQ(Driver::Result::loaded, driver.result);
	EXPECT_EQ(driver_path("unlinked"), driver.path);
	EXPECT_EQ(std::vector<std::string>{"extend_unlinked"}, driver.registered);
	EXPECT_EQ(machine.root + "/etc/libibverbs_extend.d/test.conf", driver.source);
	EXPECT_EQ(1u, driver.position);
	EXPECT_TRUE(driver.file.fits);
	// It was another process that loaded it.
	EXPECT_TRUE(recorded_registrations().empty());
	EXPECT_EQ("", problems());
}

TEST_F(InfoSearch, TheEnvironmentComesFirst)
{
	configure("driver " + driver_path("unlinked") + "\n");
	setenv("IBV_EXTEND_DRIVERS", driver_path("silent").c_str(), 1);
	ASSERT_EQ(2u, search().size());
	EXPECT_EQ("IBV_EXTEND_DRIVERS", facts.search.drivers[0].source);
	EXPECT_TRUE(facts.search.environment_set);
}

TEST_F(InfoSearch, AGoodDriverIsFoundBesideBadOnes)
{
	write_file(machine.root + "/usr/lib64/libempty.so", "");
	configure("driver none\ndriver empty\ndriver " + driver_path("crash") +
		"\ndriver " + driver_path("unlinked") + "\ndriver " +
		driver_path("lacking") + "\n");
	ASSERT_EQ(5u, search().size());
	EXPECT_EQ(std::vector<std::string>{"extend_unlinked"},
		facts.search.drivers[3].registered);
	EXPECT_EQ("driver-missing driver-not-library driver-crashed driver-symbol",
		problems());
}

TEST_F(InfoSearch, ADriverThatIsNotInstalled)
{
	configure("driver none\ndriver /none/libnone.so\n");
	ASSERT_EQ(2u, search().size());
	for (const Driver &driver : facts.search.drivers)
		EXPECT_EQ(Driver::Result::failed, driver.result);
	// The four directories, and where the dynamic loader looks.
	EXPECT_EQ(5u, facts.search.drivers[0].candidates.size());
	EXPECT_EQ("driver-missing driver-missing", problems());
}

TEST_F(InfoSearch, ADriverThatCrashesTakesNobodyAlong)
{
	configure("driver " + driver_path("crash") + "\n");
	ASSERT_EQ(1u, search().size());
	EXPECT_EQ(Driver::Result::crashed, facts.search.drivers[0].result);
	EXPECT_EQ("was killed by signal 6 (Aborted)", facts.search.drivers[0].text);
	EXPECT_EQ("driver-crashed", problems());
}

TEST_F(InfoSearch, ADriverForAnotherMachine)
{
	// e_machine, in the header's third word, as little-endian machines write it.
	std::string bytes = read_file(driver_path("unlinked"));
	ASSERT_GT(bytes.size(), 20u);
	bytes[18] = bytes[18] == char(183) ? 62 : char(183);
	const std::string path = machine.root + "/usr/lib64/libother.so";
	write_file(path, bytes);
	configure("driver other\n");
	ASSERT_EQ(1u, search().size());
	const ElfFile &file = facts.search.drivers[0].file;
	EXPECT_EQ(path, file.path);
	EXPECT_TRUE(file.is_library);
	EXPECT_FALSE(file.fits);
	EXPECT_EQ(bytes[18] == 62 ? "x86-64, 64 bits" : "arm64, 64 bits", file.machine);
	EXPECT_EQ("driver-machine", problems());
}

TEST_F(InfoSearch, ADriverForAnotherLibibvExtend)
{
	changed_driver("linked", "newer", "libibv_extend.so.4", "libibv_extend.so.9");
	configure("driver newer\n");
	ASSERT_EQ(1u, search().size());
	EXPECT_EQ("driver-abi", problems());
	EXPECT_NE(
		std::string::npos, facts.search.drivers[0].text.find("libibv_extend.so.9"));
}

TEST_F(InfoSearch, TwoDriversOfOneName)
{
	configure("driver " + driver_path("unlinked") + "\ndriver " + driver_path("rival") +
		"\n");
	search();
	EXPECT_EQ("driver-name-twice", problems());
}

TEST_F(InfoSearch, OneDriverByItsNameAndByALinkToIt)
{
	const std::string path = machine.root + "/usr/lib64/libtwice.so";
	const std::string link = machine.root + "/twice.so";
	write_file(path, read_file(driver_path("unlinked")));
	ASSERT_EQ(0, symlink(path.c_str(), link.c_str()));
	configure("driver twice\ndriver " + link + "\n");
	ASSERT_EQ(2u, search().size());
	EXPECT_EQ(link, facts.search.drivers[1].path);
	EXPECT_EQ(facts.search.drivers[0].real_path, facts.search.drivers[1].real_path);
	EXPECT_EQ("", problems());
}

TEST_F(InfoSearch, DriversThatRegisterNothingOfUse)
{
	configure("driver " + driver_path("silent") + "\ndriver " +
		driver_path("nameless") + "\n");
	search();
	EXPECT_EQ("driver-silent driver-silent", problems());
}

TEST_F(InfoSearch, AnotherReleaseOfAVendorsDriver)
{
	const std::string there = machine.root + "/usr/lib64/libhrn5-rdmav57.so";
	write_file(there, "");
	configure("driver hrn5-rdmav34\n");
	ASSERT_EQ(1u, search().size());
	EXPECT_EQ(std::vector<std::string>{there}, facts.search.drivers[0].similar);
	EXPECT_EQ("driver-missing", problems());
}

TEST_F(InfoSearch, LinesAndFilesThatAreRefused)
{
	configure("drivr x\ndriver libx.so\n");
	const std::string open = machine.root + "/etc/libibverbs_extend.d/open.conf";
	write_file(open, "driver none\n");
	fs::permissions(open, fs::perms(0666));
	EXPECT_TRUE(search().empty());
	EXPECT_EQ("config-refused config-line config-line", problems());
}

// What comes with libnda, which looks for it beside itself.
TEST_F(InfoSearch, DriversThatComeWithLibnda)
{
	Libraries libraries;
	libraries.nda.file = machine.root + "/usr/lib64/libnda.so.1.0.0";
	fs::copy_file(driver_path("unlinked"), machine.root + "/usr/lib64/libnda_rxe.so");
	facts.search = gather_search(machine, libraries);
	ASSERT_EQ(2u, facts.search.drivers.size());
	EXPECT_TRUE(facts.search.drivers[0].built_in());
	EXPECT_EQ(std::vector<std::string>{"extend_unlinked"},
		facts.search.drivers[0].registered);
	EXPECT_EQ("driver-missing", problems());
}

// The distribution's verbs drivers carry the number in their names.
TEST_F(InfoSearch, TheNumberOfLibibverbsPrivateInterface)
{
	search();
	ASSERT_FALSE(facts.search.verbs_abi.empty());
	unsigned seen = 0;
	for (const char *directory :
		{"/usr/lib64/libibverbs", "/usr/lib/x86_64-linux-gnu/libibverbs",
			"/usr/lib/aarch64-linux-gnu/libibverbs"})
		for (const std::string &name : list(directory)) {
			std::smatch number;
			if (!std::regex_search(
				    name, number, std::regex("-rdmav([0-9]+)\\.so$")))
				continue;
			seen++;
			EXPECT_EQ(number[1], facts.search.verbs_abi) << name;
		}
	if (seen == 0)
		GTEST_SKIP() << "no verbs driver is installed to compare with";
}

TEST(InfoElf, WhatIsNoElfFile)
{
	const extend_mock::TempDir dir;
	EXPECT_FALSE(inspect_elf(dir / "none").exists);
	const ElfFile text =
		inspect_elf(dir.write("text", "INPUT(libx.so.1) and so on, really"));
	EXPECT_TRUE(text.exists);
	EXPECT_EQ("", text.machine);
	EXPECT_FALSE(text.fits);
	EXPECT_EQ(EINVAL, inspect_elf(dir.path()).error);
	const ElfFile own = inspect_elf("/proc/self/exe");
	EXPECT_TRUE(own.fits);
}

TEST(InfoElf, FindsTextInAFile)
{
	const extend_mock::TempDir dir;
	const std::string path =
		dir.write("f", std::string("a\0NAME_\0NAME_x NAME_57\0NAME_9", 30));
	EXPECT_TRUE(file_contains(path, "NAME_x"));
	EXPECT_FALSE(file_contains(path, "name"));
	EXPECT_EQ("57", number_after(path, "NAME_"));
	EXPECT_EQ("", number_after(path, "OTHER_"));
	EXPECT_EQ("", number_after(dir / "none", "NAME_"));
}

TEST(InfoChild, TellsLinesAndWhatWasSaid)
{
	const ChildResult result = in_child([](const Tell &tell) {
		tell("one");
		fputs("aside", stderr);
		puts("not heard");
		tell("two");
	});
	EXPECT_TRUE(result.done);
	EXPECT_EQ((std::vector<std::string>{"one", "two"}), result.lines);
	EXPECT_EQ("aside", result.said);
}

TEST(InfoChild, KeepsWhatWasToldBeforeACrash)
{
	const ChildResult result = in_child([](const Tell &tell) {
		tell("one");
		raise(SIGKILL);
	});
	EXPECT_FALSE(result.done);
	EXPECT_EQ(std::vector<std::string>{"one"}, result.lines);
	EXPECT_EQ("was killed by signal 9 (Killed)", result.end);
}

TEST(InfoChild, EndsOneThatHangs)
{
	const ChildResult result = in_child(
		[](const Tell &tell) {
			tell("one");
			for (;;)
				pause();
		},
		500);
	EXPECT_TRUE(result.timed_out);
	EXPECT_FALSE(result.done);
}

// It is not of the process group that goes with the child.
TEST(InfoChild, WhoseOwnChildGoesOnWritingIsNotWaitedFor)
{
	const ChildResult result = in_child([](const Tell &tell) {
		if (fork() == 0) {
			static const char bytes[1 << 16] = {};
			setsid();
			while (write(STDERR_FILENO, bytes, sizeof(bytes)) > 0) {}
			_exit(0);
		}
		// The pipe is full: it writes.
		int used = 0;
		while (ioctl(STDERR_FILENO, FIONREAD, &used) == 0 && used == 0) {}
		tell("done");
	});
	EXPECT_TRUE(result.done);
	EXPECT_EQ(std::vector<std::string>{"done"}, result.lines);
}

TEST(InfoChild, OneThatEndsByItselfIsNotDone)
{
	const ChildResult result = in_child([](const Tell &) { _exit(7); });
	EXPECT_FALSE(result.done);
	EXPECT_EQ("ended by itself with status 7", result.end);
}

TEST(InfoChild, DoesNotWaitForWhatItLeftBehind)
{
	const ChildResult result = in_child([](const Tell &tell) {
		tell("one");
		if (fork() == 0)
			for (;;)
				pause();
	});
	EXPECT_TRUE(result.done);
	EXPECT_FALSE(result.timed_out);
}

TEST(InfoChild, TellsMoreThanAPipeHolds)
{
	const ChildResult result = in_child([](const Tell &tell) {
		for (int i = 0; i < 5000; i++)
			tell(std::string(100, 'x'));
	});
	EXPECT_TRUE(result.done);
	EXPECT_EQ(5000u, result.lines.size());
}

} // namespace
} // namespace nda::info
