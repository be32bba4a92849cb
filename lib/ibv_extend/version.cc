// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "ibv_extend.h"

#include <cstdio>
#include <string_view>

// The header carries its version for those who compile with it, the build that of the
// package.
static_assert(IBV_EXTEND_VERSION_MAJOR == NDA_EXTEND_MAJOR &&
	IBV_EXTEND_VERSION_MINOR == NDA_EXTEND_MINOR &&
	IBV_EXTEND_VERSION_PATCH == NDA_EXTEND_PATCH &&
	std::string_view(IBV_EXTEND_VERSION_STRING) == NDA_EXTEND_VERSION);

namespace {

// Tells this build from others of the same interface: nda-info looks for it in the file.
[[gnu::used]] const char kMark[] = "nda libibv_extend " NDA_EXTEND_VERSION;

} // namespace

extern "C" {

const char *ibv_extend_get_version(
	uint32_t *major, uint32_t *minor, uint32_t *patch) noexcept
{
	if (major)
		*major = IBV_EXTEND_VERSION_MAJOR;
	if (minor)
		*minor = IBV_EXTEND_VERSION_MINOR;
	if (patch)
		*patch = IBV_EXTEND_VERSION_PATCH;
	return IBV_EXTEND_VERSION_STRING;
}

int ibv_extend_check_version(uint32_t major, uint32_t minor, uint32_t patch) noexcept
{
	constexpr uint32_t kMinor = IBV_EXTEND_VERSION_MINOR;
	constexpr uint32_t kPatch = IBV_EXTEND_VERSION_PATCH;
	if (major == IBV_EXTEND_VERSION_MAJOR &&
		(minor < kMinor || (minor == kMinor && patch <= kPatch)))
		return 0;
	fprintf(stderr,
		"libibv_extend: error: version %u.%u.%u was asked for, this library is of "
		"version " IBV_EXTEND_VERSION_STRING "\n",
		major, minor, patch);
	return -1;
}
}
