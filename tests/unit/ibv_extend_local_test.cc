// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The library, loaded by dlopen into a program that is not linked to it.
#include "ibv_extend.h"

#include "tests/mock/extend_child.h"
#include "tests/mock/extend_device.h"

#include <cerrno>
#include <dlfcn.h>
#include <gmock/gmock.h>

namespace {

using extend_mock::Device;
using extend_mock::driver_path;
using extend_mock::in_child;
using testing::HasSubstr;

struct Library {
	Library(const std::string &path, int scope)
		: handle(dlopen(path.c_str(), RTLD_NOW | scope))
	{
		EXPECT_NE(nullptr, handle) << dlerror();
		open = reinterpret_cast<decltype(open)>(dlsym(handle, "ibv_open_extend"));
		close = reinterpret_cast<decltype(close)>(
			dlsym(handle, "ibv_close_extend"));
	}
	void *handle;
	decltype(&ibv_open_extend) open;
	decltype(&ibv_close_extend) close;
};

std::string test_copy()
{
	return extend_mock::build_dir() + "/tests/extend/libibv_extend.so.4";
}

std::string real_library()
{
	return extend_mock::build_dir() + "/lib/libibv_extend.so.4";
}

TEST(LocalLibrary, ServesDriversThatAreNotLinkedToIt)
{
	EXPECT_EQ("", in_child([] {
		setenv("IBV_EXTEND_SHOW_WARNINGS", "", 1);
		setenv("IBV_EXTEND_DRIVERS", driver_path("unlinked").c_str(), 1);
		Library library(test_copy(), RTLD_LOCAL);
		// That it could not be loaded without help is what makes this a test.
		ASSERT_EQ(nullptr, dlsym(RTLD_DEFAULT, "verbs_register_driver_extend"));
		ASSERT_EQ(nullptr, dlopen(driver_path("unlinked").c_str(), RTLD_NOW));
		Device device("extend_unlinked");
		ibv_context_extend *context = library.open(&device.context);
		ASSERT_NE(nullptr, context) << errno;
		EXPECT_EQ(0, library.close(context));
	}));
}

TEST(LocalLibrary, StaysUsableForItsDriversWhenItIsClosed)
{
	in_child([] {
		setenv("IBV_EXTEND_DRIVERS", driver_path("unlinked").c_str(), 1);
		Library library(test_copy(), RTLD_LOCAL);
		Device device("extend_unlinked");
		ibv_context_extend *context = library.open(&device.context);
		ASSERT_NE(nullptr, context);
		EXPECT_EQ(0, dlclose(library.handle));
		EXPECT_EQ(0, library.close(context));
		context = library.open(&device.context);
		EXPECT_NE(nullptr, context);
		EXPECT_EQ(0, library.close(context));
	});
}

TEST(LocalLibrary, NamesTheOtherCopyThatTookTheRegistration)
{
	std::string printed = in_child([] {
		setenv("IBV_EXTEND_SHOW_WARNINGS", "", 1);
		setenv("IBV_EXTEND_DRIVERS", driver_path("unlinked").c_str(), 1);
		Library other(real_library(), RTLD_GLOBAL);
		Library library(test_copy(), RTLD_LOCAL);
		Device device("extend_unlinked");
		errno = 0;
		EXPECT_EQ(nullptr, library.open(&device.context));
		EXPECT_EQ(ENODEV, errno);
		ibv_context_extend *context = other.open(&device.context);
		EXPECT_NE(nullptr, context);
		EXPECT_EQ(0, other.close(context));
	});
	EXPECT_THAT(printed, HasSubstr("libextend_unlinked.so did not register here"));
	EXPECT_THAT(printed, HasSubstr(real_library()));
}

} // namespace
