// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// How drivers are found and loaded, by ibv_open_extend and by a replay. Each scenario has a
// process, with the library's test copy linked to it.
#include "lib/ibv_extend/search.h"

#include "ibv_extend.h"
#include "tests/mock/extend_child.h"
#include "tests/mock/extend_device.h"

#include <atomic>
#include <cerrno>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <thread>
#include <vector>

namespace {

using namespace nda::extend;
using extend_mock::count_of;
using extend_mock::Device;
using extend_mock::driver_path;
using extend_mock::in_child;
using extend_mock::TempDir;
using extend_mock::write_file;
using testing::HasSubstr;
using Kind = SearchStep::Kind;
using Outcome = SearchStep::Outcome;

void set_drivers(const std::string &value)
{
	setenv("IBV_EXTEND_DRIVERS", value.c_str(), 1);
}

void show_warnings()
{
	setenv("IBV_EXTEND_SHOW_WARNINGS", "1", 1);
}

// What query_device of the device's driver says, by which mock drivers differ; 0: no
// driver.
uint32_t capability(const char *driver_name)
{
	Device device(driver_name);
	errno = 0;
	ibv_context_extend *context = ibv_open_extend(&device.context);
	if (!context)
		return 0;
	EXPECT_EQ(0, errno) << "success must keep it, also over a search";
	ibv_device_attr_extend attr = {};
	EXPECT_EQ(0, ibv_query_device_extend(context, &attr));
	EXPECT_EQ(0, ibv_close_extend(context));
	return attr.ext_cap;
}

class Search : public testing::Test {
protected:
	Search()
	{
		setenv("EXTEND_TEST_CONFIG", config_.path().c_str(), 1);
		std::string drivers = extend_mock::build_dir() + "/tests/mock";
		setenv("EXTEND_TEST_DRIVERS", drivers.c_str(), 1);
		unsetenv("IBV_EXTEND_DRIVERS");
		unsetenv("IBV_EXTEND_SHOW_WARNINGS");
		paths_ = {config_.path(), {"/nonexistent", drivers}};
	}

	TempDir config_;
	TempDir files_;
	SearchPaths paths_;
};

TEST_F(Search, LoadsADriverByPathLinkedOrNot)
{
	EXPECT_EQ("", in_child([] {
		show_warnings();
		set_drivers(driver_path("unlinked") + ":" + driver_path("linked"));
		EXPECT_EQ(1u, capability("extend_unlinked"));
		EXPECT_EQ(3u, capability("extend_linked"));
	}));
}

TEST_F(Search, LoadsADriverByNameFromTheEnvironmentAndTheDirectory)
{
	write_file(config_ / "a.conf", "# a comment\r\ndriver extend_linked\r\n");
	EXPECT_EQ("", in_child([] {
		show_warnings();
		set_drivers("extend_unlinked");
		EXPECT_EQ(1u, capability("extend_unlinked"));
		EXPECT_EQ(3u, capability("extend_linked"));
	}));
}

TEST_F(Search, LoadsADriverByAPathLongerThan128)
{
	TempDir dir;
	std::string deep = dir / std::string(200, 'd');
	ASSERT_EQ(0, mkdir(deep.c_str(), 0755));
	std::filesystem::copy_file(driver_path("unlinked"), deep + "/driver");
	in_child([&] {
		set_drivers(deep + "/driver");
		EXPECT_EQ(1u, capability("extend_unlinked"));
	});
}

// Which of two drivers of a name wins shows the order.
TEST_F(Search, KeepsTheOrderOfTheEnvironment)
{
	in_child([] {
		set_drivers("extend_unlinked:extend_rival");
		EXPECT_EQ(1u, capability("extend_unlinked"));
	});
	in_child([] {
		set_drivers("extend_rival;extend_unlinked");
		EXPECT_EQ(2u, capability("extend_unlinked"));
	});
}

TEST_F(Search, LoadsTheEnvironmentsDriversBeforeTheDirectorys)
{
	write_file(config_ / "a", "driver extend_unlinked\n");
	in_child([] {
		set_drivers("extend_rival");
		EXPECT_EQ(2u, capability("extend_unlinked"));
	});
}

TEST_F(Search, LoadsTheDirectorysDriversInOrderOfNamesAndLines)
{
	// Written in the other order, so that neither creation nor a push at the head will
	// do.
	write_file(config_ / "20", "driver extend_unlinked\n");
	write_file(config_ / "10", "driver extend_rival\n");
	in_child([] { EXPECT_EQ(2u, capability("extend_unlinked")); });
	write_file(config_ / "05", "driver extend_unlinked\ndriver extend_rival\n");
	in_child([] { EXPECT_EQ(1u, capability("extend_unlinked")); });
}

TEST_F(Search, AcceptsAV2DriverWithModifyQpAlone)
{
	EXPECT_EQ("", in_child([] {
		set_drivers("extend_modify");
		Device device("extend_modify");
		ibv_context_extend *context = ibv_open_extend(&device.context);
		ASSERT_NE(nullptr, context);
		ibv_qp_attr_extend attr = {};
		EXPECT_EQ(EINVAL, ibv_modify_qp_extend(context, &attr, 1)); // its own sign
		attr.udp_src_port = 49152;
		EXPECT_EQ(0, ibv_modify_qp_extend(context, &attr, 1));
		EXPECT_EQ(-EOPNOTSUPP, ibv_query_qp_extend(context, &attr, 1));
		ibv_device_attr_extend device_attr = {};
		EXPECT_EQ(-EOPNOTSUPP, ibv_query_device_extend(context, &device_attr));
		ibv_qp_init_attr_extend init = {};
		errno = 0;
		EXPECT_EQ(nullptr, ibv_create_qp_extend(context, &init));
		EXPECT_EQ(EOPNOTSUPP, errno);
		EXPECT_EQ(0, ibv_close_extend(context));
	}));
}

TEST_F(Search, WarnsInOneLineOfADriverThatIsNotThere)
{
	write_file(config_ / "a", "driver extend_missing\ndriver extend_unlinked\n");
	auto scenario = [] {
		EXPECT_EQ(1u, capability("extend_unlinked"));
		EXPECT_EQ(0u, capability("extend_unknown"));
		EXPECT_EQ(0u, capability("extend_unknown"));
	};
	EXPECT_EQ("", in_child(scenario));
	std::string printed = in_child([&] {
		show_warnings();
		scenario();
	});
	EXPECT_EQ(1u, count_of(printed, "driver extend_missing")) << printed;
	EXPECT_THAT(printed, HasSubstr("/a:1: driver extend_missing: cannot be loaded: "));
	EXPECT_EQ(2u, count_of(printed, "\n")); // and that there is no driver
}

TEST_F(Search, SurvivesADriverThatLacksASymbolAndNamesIt)
{
	std::string printed = in_child([] {
		show_warnings();
		set_drivers("extend_lacking:extend_unlinked");
		EXPECT_EQ(1u, capability("extend_unlinked"));
		EXPECT_EQ(0u, capability("extend_lacking"));
		EXPECT_EQ(ENODEV, errno);
	});
	EXPECT_THAT(printed,
		HasSubstr(
			"IBV_EXTEND_DRIVERS:1: driver extend_lacking: cannot be loaded: "));
	EXPECT_THAT(printed, HasSubstr("extend_function_that_nobody_has"));
}

TEST_F(Search, SurvivesPathsThatAreNoLibraries)
{
	std::string pipe = files_ / "pipe";
	ASSERT_EQ(0, mkfifo(pipe.c_str(), 0600));
	write_file(files_ / "text", "not a library");
	std::string printed = in_child([&] {
		show_warnings();
		set_drivers(pipe + ":" + files_.path() + ":" + (files_ / "text") +
			":extend_unlinked");
		EXPECT_EQ(1u, capability("extend_unlinked"));
	});
	EXPECT_THAT(printed, HasSubstr("DRIVERS:1: driver " + pipe));
	EXPECT_EQ(2u, count_of(printed, "is not a regular file"));
	EXPECT_EQ(3u, count_of(printed, "cannot be loaded"));
}

TEST_F(Search, WarnsOfAFileThatRegistersNothing)
{
	std::string printed = in_child([] {
		show_warnings();
		set_drivers("extend_silent");
		EXPECT_EQ(0u, capability("extend_unknown"));
	});
	EXPECT_THAT(printed, HasSubstr("libextend_silent.so did not register a driver"));
}

TEST_F(Search, SaysThatAFileWhichDidNotRegisterWasThereBefore)
{
	std::string printed = in_child([] {
		show_warnings();
		ASSERT_NE(nullptr, dlopen(driver_path("silent").c_str(), RTLD_NOW));
		set_drivers(driver_path("silent"));
		EXPECT_EQ(0u, capability("extend_unknown"));
	});
	EXPECT_THAT(printed, HasSubstr("did not register: it was loaded before"));
}

TEST_F(Search, DoesNotBlameADriverThatHadRegisteredBefore)
{
	EXPECT_EQ("", in_child([] {
		show_warnings();
		ASSERT_NE(nullptr, dlopen(driver_path("linked").c_str(), RTLD_NOW));
		set_drivers("extend_linked:extend_unlinked");
		EXPECT_EQ(1u, capability("extend_unlinked"));
		EXPECT_EQ(3u, capability("extend_linked"));
	}));
}

// The file appears without a change of what names it: found only if searched for again.
TEST_F(Search, IsNotRepeatedWhileNothingChanged)
{
	in_child([&] {
		std::string path = files_ / "late";
		set_drivers(path);
		EXPECT_EQ(0u, capability("extend_unlinked"));
		std::filesystem::copy_file(driver_path("unlinked"), path);
		EXPECT_EQ(0u, capability("extend_unlinked"));
		EXPECT_EQ(ENODEV, errno);
		EXPECT_EQ(nullptr, dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD));
	});
}

TEST_F(Search, IsRepeatedWhenTheEnvironmentChanged)
{
	in_child([] {
		set_drivers("extend_linked");
		EXPECT_EQ(0u, capability("extend_unlinked"));
		set_drivers("extend_linked:extend_unlinked");
		EXPECT_EQ(1u, capability("extend_unlinked"));
		EXPECT_EQ(3u, capability("extend_linked"));
	});
}

TEST_F(Search, IsRepeatedWhenTheDirectoryOrAFileChanged)
{
	in_child([&] {
		EXPECT_EQ(0u, capability("extend_unlinked"));
		write_file(config_ / "a", "# nothing yet\n");
		EXPECT_EQ(0u, capability("extend_unlinked"));
		write_file(config_ / "a", "driver extend_unlinked\n");
		EXPECT_EQ(1u, capability("extend_unlinked"));
	});
}

TEST_F(Search, WithinADriversConstructorIsBusyAndDoesNotHang)
{
	in_child([] {
		set_drivers("extend_nested:extend_unlinked");
		EXPECT_EQ(5u, capability("extend_nested"));
		EXPECT_EQ(1u, capability("extend_unlinked"));
		void *driver =
			dlopen(driver_path("nested").c_str(), RTLD_NOW | RTLD_NOLOAD);
		ASSERT_NE(nullptr, driver);
		auto seen =
			reinterpret_cast<int (*)()>(dlsym(driver, "extend_nested_errno"));
		EXPECT_EQ(EBUSY, seen());
	});
}

TEST_F(Search, ByManyThreadsAtOnceFindsTheDriverForEach)
{
	in_child([] {
		set_drivers("extend_missing:extend_nested:extend_rival:extend_unlinked");
		std::atomic<int> waiting{8};
		std::vector<std::thread> threads;
		for (int t = 0; t < 8; t++)
			threads.emplace_back([&, t] {
				waiting--;
				while (waiting)
					std::this_thread::yield();
				if (t % 2)
					EXPECT_EQ(2u, capability("extend_unlinked"));
				else
					EXPECT_EQ(5u, capability("extend_nested"));
			});
		for (std::thread &thread : threads)
			thread.join();
	});
}

// A constructor that opens a context searches under the dynamic loader's lock; a search
// loads under it. Were there a lock of searches as well, two threads would take the two in
// different order and, sooner or later, wait for each other: in_child's alarm would tell.
TEST_F(Search, AndLoadingElsewhereDoNotWaitForEachOther)
{
	in_child([&] {
		std::atomic<bool> done{false};
		std::thread loader([&] {
			while (!done) {
				void *opener =
					dlopen(driver_path("opener").c_str(), RTLD_NOW);
				ASSERT_NE(nullptr, opener);
				EXPECT_EQ(0, dlclose(opener));
			}
		});
		for (int i = 0; i < 300; i++) {
			// Another file each time makes each open search.
			write_file(config_ / std::to_string(i), "driver extend_missing\n");
			EXPECT_EQ(0u, capability("extend_unknown"));
			unlink((config_ / std::to_string(i)).c_str());
		}
		done = true;
		loader.join();
		write_file(config_ / "a", "driver extend_unlinked\n");
		EXPECT_EQ(1u, capability("extend_unlinked"));
	});
}

TEST_F(Search, ReplayReportsEveryStep)
{
	write_file(config_ / "10-one", "driver extend_linked\nbogus\n");
	write_file(config_ / "20-old~", "driver extend_rival\n");
	in_child([&] {
		set_drivers("extend_unlinked:../x:extend_lacking:/nonexistent/driver");
		SearchReport report = replay_search(
			paths_, reinterpret_cast<void *>(&verbs_register_driver_extend));
		std::vector<std::string> seen;
		for (const SearchStep &step : report)
			seen.push_back(std::string(to_string(step.kind)) + " " +
				to_string(step.outcome) + " " + step.source + ":" +
				std::to_string(step.position) + " " + step.name + " " +
				step.path);
		std::string env = "IBV_EXTEND_DRIVERS:", one = config_ / "10-one";
		std::string dir = paths_.driver_directories[1] + "/";
		EXPECT_THAT(seen,
			testing::ElementsAre("environment ok " + env + "0  ",
				"line refused " + env + "2 ../x ",
				"directory ok " + config_.path() + ":0  ",
				"file ok " + one + ":0  ", "line refused " + one + ":2  ",
				"file ignored " + (config_ / "20-old~:0  "),
				"candidate absent " + env +
					"1 extend_unlinked "
					"/nonexistent/libextend_unlinked.so",
				"candidate ok " + env + "1 extend_unlinked " + dir +
					"libextend_unlinked.so",
				"driver ok " + env + "1 extend_unlinked " + dir +
					"libextend_unlinked.so",
				"candidate absent " + env +
					"3 extend_lacking "
					"/nonexistent/libextend_lacking.so",
				"candidate failed " + env + "3 extend_lacking " + dir +
					"libextend_lacking.so",
				"candidate failed " + env +
					"3 extend_lacking libextend_lacking.so",
				"driver failed " + env + "3 extend_lacking " + dir +
					"libextend_lacking.so",
				"candidate absent " + env +
					"4 /nonexistent/driver /nonexistent/driver",
				"driver failed " + env +
					"4 /nonexistent/driver /nonexistent/driver",
				"candidate absent " + one +
					":1 extend_linked /nonexistent/libextend_linked.so",
				"candidate ok " + one + ":1 extend_linked " + dir +
					"libextend_linked.so",
				"driver ok " + one + ":1 extend_linked " + dir +
					"libextend_linked.so"));
		EXPECT_THAT(report[10].text, HasSubstr("extend_function_that_nobody_has"));
		EXPECT_EQ(ELIBBAD, report[10].error);
		EXPECT_THAT(report[12].message(),
			HasSubstr(env + "3: driver extend_lacking: cannot be loaded: "));
		EXPECT_EQ(ENOENT, report[14].error);
	});
}

TEST_F(Search, ReplayTellsWhichFilesRegisterAndLeavesThose)
{
	in_child([&] {
		set_drivers("extend_silent:extend_unlinked");
		SearchReport report = replay_search(
			paths_, reinterpret_cast<void *>(&verbs_register_driver_extend));
		std::vector<std::string> texts;
		for (const SearchStep &step : report)
			if (step.kind == Kind::driver)
				texts.push_back(step.text);
		EXPECT_THAT(texts,
			testing::ElementsAre("loaded, but nothing pinned it: it registered "
					     "no driver here",
				"loaded"));
		EXPECT_EQ(nullptr,
			dlopen(driver_path("silent").c_str(), RTLD_NOW | RTLD_NOLOAD));
		unsetenv("IBV_EXTEND_DRIVERS");
		EXPECT_EQ(1u, capability("extend_unlinked"));
	});
}

} // namespace
