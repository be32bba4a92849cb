// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Registration, open and close, through the exported functions. Each scenario has a
// process.
#include "ibv_extend.h"

#include "tests/mock/extend_child.h"
#include "tests/mock/extend_device.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <memory>
#include <thread>
#include <vector>

namespace {

using extend_mock::count_of;
using extend_mock::Device;
using extend_mock::driver_path;
using extend_mock::in_child;
using testing::HasSubstr;

// Drivers of this file. Their functions have no cookie: what they do is set here.
std::atomic<int> g_allocated;
std::atomic<int> g_freed;
std::atomic<int> g_freed_by_other;
int g_alloc_errno = -1; // -1: succeed

ibv_context_extend_ops ops_of(int version)
{
	ibv_context_extend_ops ops = {};
	ops.version = version;
	return ops;
}

const ibv_context_extend_ops g_ops = ops_of(IBV_EXTEND_DRIVER_VERSION_V3);
ibv_context_extend_ops g_odd_ops = {};

ibv_context_extend *allocate(ibv_context *context)
{
	if (g_alloc_errno >= 0) {
		errno = g_alloc_errno;
		return nullptr;
	}
	g_allocated++;
	return new ibv_context_extend{context, &g_ops};
}

ibv_context_extend *allocate_odd(ibv_context *context)
{
	g_allocated++;
	return new ibv_context_extend{context, &g_odd_ops};
}

ibv_context_extend *allocate_without_ops(ibv_context *context)
{
	g_allocated++;
	return new ibv_context_extend{context, nullptr};
}

ibv_context_extend *allocate_without_context(ibv_context *)
{
	g_allocated++;
	return new ibv_context_extend{nullptr, &g_ops};
}

ibv_context g_elsewhere;
ibv_context_extend *allocate_elsewhere(ibv_context *)
{
	g_allocated++;
	return new ibv_context_extend{&g_elsewhere, &g_ops};
}

ibv_context_extend g_shared;
ibv_context_extend *allocate_shared(ibv_context *context)
{
	g_allocated++;
	g_shared = {context, &g_ops};
	return &g_shared;
}

void release(ibv_context_extend *context)
{
	g_freed++;
	delete context;
}

void release_by_other(ibv_context_extend *context)
{
	g_freed_by_other++;
	delete context;
}

void release_shared(ibv_context_extend *)
{
	g_freed++;
}

const verbs_device_extend_ops g_driver = {"extend_test", allocate, release};
const verbs_device_extend_ops g_driver_again = {"extend_test", allocate, release_by_other};

struct Opened {
	explicit Opened(const verbs_device_extend_ops *driver) : device(driver->name)
	{
		verbs_register_driver_extend(driver);
		errno = 0;
		context = ibv_open_extend(&device.context);
		error = errno;
	}
	Device device;
	ibv_context_extend *context;
	int error;
};

TEST(Open, GivesTheContextOfTheDriverByName)
{
	in_child([] {
		verbs_register_driver_extend(&g_driver);
		Device other("extend_other");
		EXPECT_EQ(nullptr, ibv_open_extend(&other.context));
		EXPECT_EQ(ENODEV, errno);
		Device device("extend_test");
		errno = ENXIO;
		ibv_context_extend *context = ibv_open_extend(&device.context);
		ASSERT_NE(nullptr, context);
		EXPECT_EQ(ENXIO, errno);
		EXPECT_EQ(&device.context, context->context);
		EXPECT_EQ(0, ibv_close_extend(context));
		EXPECT_EQ(1, g_freed);
	});
}

TEST(Open, RefusesNullWithErrno)
{
	in_child([] {
		errno = 0;
		EXPECT_EQ(nullptr, ibv_open_extend(nullptr));
		EXPECT_EQ(EINVAL, errno);
		ibv_context bare = {};
		errno = 0;
		EXPECT_EQ(nullptr, ibv_open_extend(&bare));
		EXPECT_EQ(EINVAL, errno);
	});
}

TEST(Open, OfGarbageIsAnUnknownDevice)
{
	in_child([] {
		ibv_context context = {};
		for (uintptr_t address : {uintptr_t{8}, uintptr_t{0x1001}, ~uintptr_t{7}}) {
			context.device = reinterpret_cast<ibv_device *>(address);
			errno = 0;
			EXPECT_EQ(nullptr, ibv_open_extend(&context));
			EXPECT_EQ(ENODEV, errno);
		}
	});
}

TEST(Open, HandsTheDriversErrnoOnOrGivesEio)
{
	in_child([] {
		g_alloc_errno = ENOSPC;
		EXPECT_EQ(ENOSPC, Opened(&g_driver).error);
		g_alloc_errno = 0;
		EXPECT_EQ(EIO, Opened(&g_driver).error);
		g_alloc_errno = -1;
		EXPECT_NE(nullptr, Opened(&g_driver).context);
	});
}

TEST(Open, RefusesOddVersionsSaysSoAndReleases)
{
	for (int version : {0, -1, IBV_EXTEND_DRIVER_VERSION_MAX + 1, INT_MIN, INT_MAX}) {
		std::string printed = in_child([version] {
			unsetenv("IBV_EXTEND_SHOW_WARNINGS");
			static const verbs_device_extend_ops driver = {
				"extend_odd", allocate_odd, release};
			g_odd_ops.version = version;
			Opened opened(&driver);
			EXPECT_EQ(nullptr, opened.context);
			EXPECT_EQ(EPROTONOSUPPORT, opened.error);
			EXPECT_EQ(1, g_allocated);
			EXPECT_EQ(1, g_freed);
		});
		EXPECT_THAT(printed, HasSubstr("driver extend_odd")) << version;
		EXPECT_THAT(printed, HasSubstr("version")) << version;
	}
}

TEST(Open, AcceptsEveryKnownVersionWithPointersMissing)
{
	for (int version : {1, 2, 3})
		EXPECT_EQ("", in_child([version] {
			static const verbs_device_extend_ops driver = {
				"extend_odd", allocate_odd, release};
			g_odd_ops.version = version;
			EXPECT_NE(nullptr, Opened(&driver).context);
		}));
}

TEST(Open, RefusesAContextWithoutOperations)
{
	std::string printed = in_child([] {
		static const verbs_device_extend_ops driver = {
			"extend_odd", allocate_without_ops, release};
		Opened opened(&driver);
		EXPECT_EQ(nullptr, opened.context);
		EXPECT_EQ(EPROTONOSUPPORT, opened.error);
		EXPECT_EQ(1, g_freed);
	});
	EXPECT_THAT(printed,
		HasSubstr("driver extend_odd opened a context without operations"));
}

TEST(Open, RefusesTheContextOfAnotherDevice)
{
	in_child([] {
		static const verbs_device_extend_ops driver = {
			"extend_odd", allocate_elsewhere, release};
		Opened opened(&driver);
		EXPECT_EQ(nullptr, opened.context);
		EXPECT_EQ(EPROTO, opened.error);
		EXPECT_EQ(1, g_freed);
	});
}

TEST(Open, ThatIsRefusedNeedsNoFreeContext)
{
	in_child([] {
		static ibv_context_extend bare;
		static const verbs_device_extend_ops driver = {"extend_odd",
			[](ibv_context *context) {
				bare = {context, nullptr};
				return &bare;
			},
			nullptr};
		EXPECT_EQ(EPROTONOSUPPORT, Opened(&driver).error);
	});
}

// Its functions run without any lock of the library's.
TEST(Open, LetsTheDriverCallBack)
{
	in_child([] {
		static const verbs_device_extend_ops driver = {"extend_caller",
			[](ibv_context *context) {
				Opened other(&g_driver);
				EXPECT_EQ(0, ibv_close_extend(other.context));
				return new ibv_context_extend{context, &g_ops};
			},
			[](ibv_context_extend *context) {
				EXPECT_EQ(-ENOENT, ibv_close_extend(context));
				delete context;
			}};
		Opened opened(&driver);
		ASSERT_NE(nullptr, opened.context);
		EXPECT_EQ(0, ibv_close_extend(opened.context));
	});
}

TEST(Close, OfNullIsInvalid)
{
	EXPECT_EQ("", in_child([] { EXPECT_EQ(-EINVAL, ibv_close_extend(nullptr)); }));
}

TEST(Close, OfWhatIsNotOpenIsNotFoundAndNotTouched)
{
	in_child([] {
		// No address that could be read without a fault.
		EXPECT_EQ(-ENOENT,
			ibv_close_extend(reinterpret_cast<ibv_context_extend *>(8)));
		Opened opened(&g_driver);
		EXPECT_EQ(0, ibv_close_extend(opened.context));
		EXPECT_EQ(-ENOENT,
			ibv_close_extend(opened.context)); // freed: a read would be caught
		EXPECT_EQ(1, g_freed);
	});
}

TEST(Close, OfAnOpenOneWithoutVerbsContextIsInvalidAndKeepsIt)
{
	in_child([] {
		Opened opened(&g_driver);
		opened.context->context = nullptr;
		EXPECT_EQ(-EINVAL, ibv_close_extend(opened.context));
		EXPECT_EQ(0, g_freed);
		opened.context->context = &opened.device.context;
		EXPECT_EQ(0, ibv_close_extend(opened.context));
		EXPECT_EQ(1, g_freed);
	});
	in_child([] {
		static const verbs_device_extend_ops driver = {
			"extend_odd", allocate_without_context, release};
		Opened opened(&driver);
		ASSERT_NE(nullptr, opened.context);
		EXPECT_EQ(-EINVAL, ibv_close_extend(opened.context));
	});
}

TEST(Close, WithoutFreeContextSucceeds)
{
	in_child([] {
		static const verbs_device_extend_ops driver = {
			"extend_odd", allocate_shared, nullptr};
		Opened opened(&driver);
		EXPECT_EQ(0, ibv_close_extend(opened.context));
		EXPECT_EQ(-ENOENT, ibv_close_extend(opened.context));
	});
}

TEST(Close, IsCountedPerPointer)
{
	in_child([] {
		static const verbs_device_extend_ops driver = {
			"extend_shared", allocate_shared, release_shared};
		Opened first(&driver), second(&driver);
		ASSERT_EQ(&g_shared, first.context);
		ASSERT_EQ(&g_shared, second.context);
		EXPECT_EQ(0, ibv_close_extend(&g_shared));
		EXPECT_EQ(0, ibv_close_extend(&g_shared));
		EXPECT_EQ(2, g_freed);
		EXPECT_EQ(-ENOENT, ibv_close_extend(&g_shared));
	});
}

TEST(Close, GoesToTheDriverThatOpened)
{
	in_child([] {
		Opened opened(&g_driver);
		static const verbs_device_extend_ops other = {
			"extend_other", allocate, release_by_other};
		verbs_register_driver_extend(&other);
		// As if the device had changed its driver: asked by name, the other would
		// free it.
		opened.device.ops.name = "extend_other";
		EXPECT_EQ(0, ibv_close_extend(opened.context));
		EXPECT_EQ(1, g_freed);
		EXPECT_EQ(0, g_freed_by_other);
	});
}

TEST(Register, KeepsTheFirstOfANameAndReportsTheSecond)
{
	std::string printed = in_child([] {
		setenv("IBV_EXTEND_SHOW_WARNINGS", "1", 1);
		verbs_register_driver_extend(&g_driver);
		verbs_register_driver_extend(&g_driver_again);
		verbs_register_driver_extend(&g_driver_again);
		verbs_register_driver_extend(&g_driver); // the same again: no second
		Device device("extend_test");
		EXPECT_EQ(0, ibv_close_extend(ibv_open_extend(&device.context)));
		EXPECT_EQ(1, g_freed);
		EXPECT_EQ(0, g_freed_by_other);
	});
	EXPECT_EQ(1u, count_of(printed, "\n")) << printed;
	EXPECT_THAT(printed, HasSubstr("driver extend_test of "));
	EXPECT_THAT(printed,
		HasSubstr("ibv_extend_registry_test has registered that name first"));
}

TEST(Register, RefusesWhatCannotServe)
{
	std::string printed = in_child([] {
		setenv("IBV_EXTEND_SHOW_WARNINGS", "0", 1);
		static const verbs_device_extend_ops nameless = {
			nullptr, allocate, release};
		static const verbs_device_extend_ops unable = {
			"extend_test", nullptr, release};
		verbs_register_driver_extend(nullptr);
		verbs_register_driver_extend(&nameless);
		EXPECT_EQ(ENODEV, Opened(&unable).error);
		// It does not hold the name against one that can.
		EXPECT_NE(nullptr, Opened(&g_driver).context);
	});
	EXPECT_EQ(1u, count_of(printed, "a driver without a name was not registered"));
	EXPECT_EQ(1u, count_of(printed, "was not registered: it has no alloc_context"));
}

TEST(Register, PinsTheDriversFile)
{
	in_child([] {
		std::string path = driver_path("linked");
		void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
		ASSERT_NE(nullptr, handle) << dlerror();
		EXPECT_EQ(0, dlclose(handle));
		EXPECT_NE(nullptr, dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD));
		Device device("extend_linked");
		ibv_context_extend *context = ibv_open_extend(&device.context);
		ASSERT_NE(nullptr, context);
		EXPECT_EQ(0, ibv_close_extend(context));
	});
}

TEST(Register, TakesADriverOnTheHeapWithAWarning)
{
	std::string printed = in_child([] {
		setenv("IBV_EXTEND_SHOW_WARNINGS", "", 1);
		static auto &driver = *new verbs_device_extend_ops(g_driver);
		EXPECT_NE(nullptr, Opened(&driver).context);
	});
	EXPECT_THAT(
		printed, HasSubstr("driver extend_test is not part of a loaded object"));
}

TEST(Warnings, AreSilentUnlessTheVariableIsThere)
{
	EXPECT_EQ("", in_child([] {
		unsetenv("IBV_EXTEND_SHOW_WARNINGS");
		Device device("extend_unknown");
		EXPECT_EQ(nullptr, ibv_open_extend(&device.context));
		// Too late: it is asked for once.
		setenv("IBV_EXTEND_SHOW_WARNINGS", "1", 1);
		EXPECT_EQ(nullptr, ibv_open_extend(&device.context));
	}));
}

TEST(Warnings, SayEachProblemOnceInTheWordsThatUsersKnow)
{
	std::string printed = in_child([] {
		setenv("IBV_EXTEND_SHOW_WARNINGS", "", 1); // its presence counts
		Device device("extend_unknown", "mock7");
		for (int i = 0; i < 10; i++)
			EXPECT_EQ(nullptr, ibv_open_extend(&device.context));
		Device another("extend_unknown", "mock8");
		EXPECT_EQ(nullptr, ibv_open_extend(&another.context));
	});
	EXPECT_EQ(2u, count_of(printed, "no available ops for open extend context"));
	EXPECT_EQ(2u, count_of(printed, "\n"));
	EXPECT_THAT(printed, HasSubstr("device mock7, verbs driver extend_unknown"));
	EXPECT_THAT(printed, HasSubstr("IBV_EXTEND_DRIVERS"));
}

TEST(Warnings, AreNotCutShort)
{
	std::string name(100000, 'n');
	std::string printed = in_child([&] {
		setenv("IBV_EXTEND_SHOW_WARNINGS", "", 1);
		static verbs_device_extend_ops driver;
		driver.name = name.c_str();
		verbs_register_driver_extend(&driver);
	});
	EXPECT_THAT(printed, HasSubstr(name));
	EXPECT_THAT(printed, HasSubstr("it has no alloc_context\n"));
}

TEST(Warnings, TellWhyAnObjectWasNotCreated)
{
	std::string printed = in_child([] {
		setenv("IBV_EXTEND_SHOW_WARNINGS", "", 1);
		static ibv_context_extend_ops ops = ops_of(1);
		ops.create_qp = [](ibv_context *, ibv_qp_init_attr_extend *) {
			errno = ENOSPC;
			return static_cast<ibv_qp_extend *>(nullptr);
		};
		Device device("extend_test", "mock3");
		ibv_context_extend context = {&device.context, &ops};
		ibv_qp_init_attr_extend attr = {};
		EXPECT_EQ(nullptr, ibv_create_qp_extend(&context, &attr));
		EXPECT_EQ(ENOSPC, errno);
	});
	EXPECT_THAT(printed, HasSubstr("ibv_create_qp_extend: device mock3: "));
	EXPECT_THAT(printed, HasSubstr(strerror(ENOSPC)));
}

// Contexts are opened, used and closed while drivers register: nothing is lost, freed
// twice, or, under the thread sanitizer, raced for.
TEST(Threads, RegisterOpenAndCloseAtTheSameTime)
{
	in_child([] {
		constexpr int kThreads = 8;
		constexpr int kNames = 64;
		static std::string names[kNames];
		static verbs_device_extend_ops drivers[kNames];
		for (int i = 0; i < kNames; i++) {
			names[i] = "extend_thread_" + std::to_string(i);
			drivers[i] = {names[i].c_str(), allocate, release};
		}
		std::atomic<int> waiting{kThreads};
		std::vector<std::thread> threads;
		for (int t = 0; t < kThreads; t++)
			threads.emplace_back([&, t] {
				waiting--;
				while (waiting)
					std::this_thread::yield();
				for (int i = 0; i < kNames; i++) {
					// Each name is registered by all threads, one of
					// which wins.
					int n = (i + t) % kNames;
					verbs_register_driver_extend(&drivers[n]);
					Device device(names[n].c_str());
					ibv_context_extend *context =
						ibv_open_extend(&device.context);
					ASSERT_NE(nullptr, context);
					EXPECT_EQ(0, ibv_close_extend(context));
					Device unknown("extend_unknown");
					EXPECT_EQ(
						nullptr, ibv_open_extend(&unknown.context));
				}
			});
		for (std::thread &thread : threads)
			thread.join();
		EXPECT_EQ(kThreads * kNames, g_allocated);
		EXPECT_EQ(kThreads * kNames, g_freed);
	});
}

TEST(Threads, CloseAContextOnceBetweenThem)
{
	in_child([] {
		Opened opened(&g_driver);
		std::atomic<int> closed{0}, unknown{0};
		std::vector<std::thread> threads;
		for (int t = 0; t < 8; t++)
			threads.emplace_back([&] {
				int result = ibv_close_extend(opened.context);
				(result == 0 ? closed : unknown) +=
					result == 0 || result == -ENOENT;
			});
		for (std::thread &thread : threads)
			thread.join();
		EXPECT_EQ(1, closed);
		EXPECT_EQ(7, unknown);
		EXPECT_EQ(1, g_freed);
	});
}

} // namespace
