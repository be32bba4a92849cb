// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Opens a context in a constructor that runs before it registers.
#define EXTEND_DRIVER_NAME "extend_nested"
#define EXTEND_DRIVER_CAP 5
#include "tests/mock/extend_device.h"
#include "tests/mock/extend_driver.h"

#include <cerrno>

namespace {

int g_errno = -1;

__attribute__((constructor(101))) void open_too_early()
{
	extend_mock::Device device("extend_unknown", "mock_nested");
	errno = 0;
	ibv_context_extend *context = ibv_open_extend(&device.context);
	g_errno = context ? 0 : errno;
}

} // namespace

// What the constructor was told; -1: it did not run.
extern "C" __attribute__((visibility("default"))) int extend_nested_errno()
{
	return g_errno;
}
