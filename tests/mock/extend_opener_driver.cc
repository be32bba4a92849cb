// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// No driver: something else that an application loads, whose constructor opens a context.
// Nothing pins it, so that each time it is loaded the constructor runs.
#include "ibv_extend.h"

#include "tests/mock/extend_device.h"

namespace {

__attribute__((constructor)) void open_unknown()
{
	extend_mock::Device device("extend_unknown");
	ibv_open_extend(&device.context);
}

} // namespace
