// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/search.h"

#include <ibv_extend.h>

#include "lib/ibv_extend/search.h"

namespace nda {
namespace {

const void *library_address()
{
	return reinterpret_cast<const void *>(&verbs_register_driver_extend);
}

extend::SearchReport replay()
{
	return extend::replay_search(extend::system_paths(), library_address());
}

} // namespace

std::string search_report()
{
	std::string text = "libibv_extend ";
	text += ibv_extend_get_version(nullptr, nullptr, nullptr);
	text += ": " + extend::object_path(library_address()) + "\n";
	const std::string rival = extend::foreign_registrar(library_address());
	if (!rival.empty())
		text += "drivers that are not linked to it register with another copy: " +
			rival + "\n";
	for (const extend::SearchStep &step : replay())
		text += std::string(extend::to_string(step.kind)) + " " +
			extend::to_string(step.outcome) + ": " + step.message() + "\n";
	return text;
}

std::string search_problems()
{
	// The error detail has room for a few; the report has all.
	constexpr unsigned shown_max = 3;
	std::string text;
	unsigned found = 0;
	for (const extend::SearchStep &step : replay()) {
		if (!step.is_problem())
			continue;
		if (++found <= shown_max)
			text += (found > 1 ? "; " : "") + step.message();
	}
	if (found > shown_max)
		text += "; and " + std::to_string(found - shown_max) + " more";
	const std::string rival = extend::foreign_registrar(library_address());
	if (!rival.empty())
		text += (text.empty() ? "" : "; ") +
			std::string("another copy of the library takes registrations: ") +
			rival;
	return text;
}

} // namespace nda
