// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The search for extension drivers, by the library's own code, with each driver loaded in a
// child.
#include "lib/tools/info/gather.h"

#include <cstdlib>
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <link.h>

#include <nlohmann/json.hpp>

#include "lib/ibv_extend/search.h"
#include "lib/tools/info/child.h"
#include "lib/tools/info/elf_file.h"
#include "lib/tools/info/recorder.h"

namespace nda::info {
namespace {

using extend::SearchStep;
using nlohmann::json;

constexpr char built_in[] = "libnda";

Step plain(const SearchStep &step)
{
	return {extend::to_string(step.kind), extend::to_string(step.outcome), step.source,
		step.position, step.name, step.path, step.error, step.text,
		step.is_problem()};
}

json encode(const SearchStep &step)
{
	return {{"kind", extend::to_string(step.kind)},
		{"outcome", extend::to_string(step.outcome)}, {"path", step.path},
		{"error", step.error}, {"text", step.text}};
}

// The dynamic loader's own search tells no path, and a link has another name.
std::string file_of(void *handle)
{
	link_map *map = nullptr;
	if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
		return {};
	return real_path(map->l_name);
}

void load(const extend::DriverEntry &entry, const extend::SearchPaths &paths,
	const Tell &tell)
{
	const auto dump = [](const json &j) {
		// What the dynamic loader says may hold any bytes of a path.
		return j.dump(-1, ' ', false, json::error_handler_t::replace);
	};
	extend::SearchReport report;
	const extend::LoadedDriver loaded = extend::load_driver(entry, paths, report);
	for (const SearchStep &step : report)
		if (step.kind == SearchStep::Kind::candidate)
			tell(dump(encode(step)));
	tell(dump({{"kind", "driver"}, {"loaded", loaded.handle != nullptr},
		{"path", loaded.path}, {"real_path", file_of(loaded.handle)},
		{"text", report.back().text}, {"registered", recorded_registrations()}}));
}

void take(const json &told, Driver &driver)
{
	if (told.value("kind", "") != "driver") {
		Step step;
		step.kind = told.value("kind", "");
		step.outcome = told.value("outcome", "");
		step.path = told.value("path", "");
		step.error = told.value("error", 0);
		step.text = told.value("text", "");
		driver.candidates.push_back(step);
		return;
	}
	driver.result = told.value("loaded", false) ? Driver::Result::loaded
						    : Driver::Result::failed;
	driver.path = told.value("path", "");
	driver.real_path = told.value("real_path", "");
	driver.text = told.value("text", "");
	driver.registered = told.value("registered", std::vector<std::string>());
}

void append_path_list(const char *value, std::vector<std::string> &out)
{
	std::string rest = value ? value : "";
	while (!rest.empty()) {
		const size_t end = std::min(rest.find_first_of(":;"), rest.size());
		if (end > 0)
			out.push_back(rest.substr(0, end));
		rest.erase(0, end + 1);
	}
}

// Where a driver's file may lie; the last of them is what the dynamic loader takes on most
// machines.
std::vector<std::string> directories(const extend::SearchPaths &paths)
{
	std::vector<std::string> found = paths.driver_directories;
	append_path_list(secure_getenv("LD_LIBRARY_PATH"), found);
	const std::string verbs =
		extend::object_path(reinterpret_cast<const void *>(&ibv_get_device_list));
	if (const size_t slash = verbs.rfind('/'); slash != std::string::npos)
		found.push_back(verbs.substr(0, slash));
	return found;
}

ElfFile find_file(const std::string &name, const std::vector<std::string> &where)
{
	if (name.front() == '/')
		return inspect_elf(name);
	for (const std::string &directory : where) {
		ElfFile file = inspect_elf(directory + "/lib" + name + ".so");
		if (file.exists)
			return file;
	}
	return {};
}

// Of a vendor's "hrn5-rdmav34" the same for another release of libibverbs.
std::vector<std::string> find_similar(
	const std::string &name, const std::vector<std::string> &where)
{
	std::vector<std::string> found;
	const size_t suffix = name.find("-rdmav");
	if (suffix == std::string::npos || name.front() == '/')
		return found;
	const std::string start = "lib" + name.substr(0, suffix) + "-rdmav";
	for (const std::string &directory : where)
		for (const std::string &file : list(directory))
			if (file.compare(0, start.size(), start) == 0)
				found.push_back(directory + "/" + file);
	return found;
}

Driver try_driver(const extend::DriverEntry &entry, const extend::SearchPaths &paths)
{
	Driver driver;
	driver.source = entry.source;
	driver.position = entry.position;
	driver.name = entry.name;
	const std::vector<std::string> where = directories(paths);
	driver.file = find_file(entry.name, where);
	const ChildResult result =
		in_child([&](const Tell &tell) { load(entry, paths, tell); });
	for (const std::string &line : result.lines)
		if (const json told = json::parse(line, nullptr, false); told.is_object())
			take(told, driver);
	if (!result.done) {
		driver.result =
			result.timed_out ? Driver::Result::hung : Driver::Result::crashed;
		driver.text = result.end;
	}
	if (driver.result == Driver::Result::failed && !driver.file.exists)
		driver.similar = find_similar(entry.name, where);
	return driver;
}

} // namespace

Search gather_search(const Machine &machine, const Libraries &libraries)
{
	extend::SearchPaths paths = extend::system_paths();
	paths.config_directory = machine.root + paths.config_directory;
	for (std::string &directory : paths.driver_directories)
		directory = machine.root + directory;

	Search search;
	search.config_directory = paths.config_directory;
	extend::SearchReport report;
	const std::vector<extend::DriverEntry> entries =
		extend::collect_entries(paths, report);
	for (const SearchStep &step : report) {
		search.steps.push_back(plain(step));
		if (step.kind == SearchStep::Kind::directory)
			search.config_exists = step.outcome != SearchStep::Outcome::absent;
		if (step.kind == SearchStep::Kind::environment)
			search.environment_set =
				step.outcome != SearchStep::Outcome::absent;
	}
	for (const extend::DriverEntry &entry : entries)
		search.drivers.push_back(try_driver(entry, paths));
	if (const size_t slash = libraries.nda.file.rfind('/'); slash != std::string::npos)
		for (const char *file : {"libnda_rxe.so", "libnda_soft.so"})
			search.drivers.push_back(try_driver(
				{built_in, 0,
					libraries.nda.file.substr(0, slash + 1) + file},
				paths));
	search.verbs_abi = number_after(
		extend::object_path(reinterpret_cast<const void *>(&ibv_get_device_list)),
		"IBVERBS_PRIVATE_");
	return search;
}

} // namespace nda::info
