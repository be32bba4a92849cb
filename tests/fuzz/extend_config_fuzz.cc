// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Any text as a configuration file and as the environment variable: nothing breaks, what
// comes out may be given to the dynamic loader, and what is reported may be printed.
#include "lib/ibv_extend/search.h"

#include <climits>
#include <cstdint>
#include <cstdlib>

using namespace nda::extend;

namespace {

void require(bool good)
{
	if (!good)
		abort();
}

// Said here in other words than where it is enforced.
void check_entry(const DriverEntry &entry)
{
	static const std::string kAllowed =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
	const std::string &name = entry.name;
	require(entry.position > 0 && !name.empty() && name.size() < PATH_MAX);
	require(name.size() == std::string(name.c_str()).size());
	if (name[0] == '/')
		require((name + "/").find("/../") == name.npos);
	else
		require(name.find_first_not_of(kAllowed) == name.npos &&
			name.size() <= 249);
}

void check(const std::vector<DriverEntry> &entries, const SearchReport &report)
{
	for (const DriverEntry &entry : entries)
		check_entry(entry);
	for (const SearchStep &step : report) {
		require(step.is_problem() && step.position > 0);
		for (char c : step.message())
			require(c >= ' ' && c <= '~');
	}
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	std::string_view text(reinterpret_cast<const char *>(data), size);
	std::vector<DriverEntry> entries;
	SearchReport report;
	parse_config(text, "file", entries, report);
	check(entries, report);
	entries.clear();
	report.clear();
	parse_environment(text, entries, report);
	check(entries, report);
	return 0;
}
