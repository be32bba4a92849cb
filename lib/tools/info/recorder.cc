// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/info/recorder.h"

#include <ibv_extend.h>

namespace nda::info {
namespace {

void (*forward)(const verbs_device_extend_ops *);

// Drivers' constructors call, maybe before any of this program's has run.
std::vector<std::string> &names()
{
	static std::vector<std::string> &all = *new std::vector<std::string>;
	return all;
}

} // namespace

const std::vector<std::string> &recorded_registrations()
{
	return names();
}

void forward_registrations(void (*function)(const verbs_device_extend_ops *))
{
	forward = function;
}

} // namespace nda::info

extern "C" __attribute__((visibility("default"))) void verbs_register_driver_extend(
	const verbs_device_extend_ops *driver) noexcept
{
	// The library takes no other.
	if (driver && driver->name && *driver->name && driver->alloc_context)
		nda::info::names().push_back(driver->name);
	if (nda::info::forward)
		nda::info::forward(driver);
}
