// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Loads drivers, and says what is known when that does not work.
#include "lib/ibv_extend/search.h"

#include <cerrno>
#include <climits>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

namespace nda::extend {
namespace {

using Kind = SearchStep::Kind;
using Outcome = SearchStep::Outcome;

std::string last_dl_error()
{
	const char *text = dlerror();
	return text ? text : "the dynamic loader gave no reason";
}

std::vector<std::string> candidates(const DriverEntry &entry, const SearchPaths &paths)
{
	if (entry.name.front() == '/')
		return {entry.name};
	std::string file = "lib" + entry.name + ".so";
	std::vector<std::string> found;
	for (const std::string &directory : paths.driver_directories)
		found.push_back(directory + "/" + file);
	found.push_back(file); // without a slash: where the dynamic loader looks
	return found;
}

// What can be said of a file before the dynamic loader sees it. False: do not try it.
bool worth_loading(SearchStep &step)
{
	if (step.path.front() != '/')
		return true;
	struct stat status;
	if (stat(step.path.c_str(), &status)) {
		step.error = errno;
		step.outcome = step.error == ENOENT || step.error == ENOTDIR
			? Outcome::absent
			: Outcome::failed;
		step.text = step.path + ": " + strerror(step.error);
		return false;
	}
	// The loader would wait for a pipe's writer for ever.
	if (!S_ISREG(status.st_mode)) {
		step.error = EINVAL;
		step.outcome = Outcome::refused;
		step.text = step.path + ": is not a regular file";
		return false;
	}
	return true;
}

bool load_candidate(SearchStep &step, LoadedDriver &driver)
{
	if (!worth_loading(step))
		return false;
	void *resident = dlopen(step.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
	// Never lazily: to call a symbol that a driver lacks would end the process.
	driver.handle = dlopen(step.path.c_str(), RTLD_NOW | RTLD_LOCAL);
	if (!driver.handle) {
		step.outcome = Outcome::failed;
		step.error = ELIBBAD;
		step.text = last_dl_error();
		return false;
	}
	driver.was_resident = resident != nullptr;
	if (resident)
		dlclose(resident);
	driver.path = step.path;
	struct link_map *map;
	if (!dlinfo(driver.handle, RTLD_DI_LINKMAP, &map))
		driver.object = map;
	step.outcome = Outcome::ok;
	step.text = driver.was_resident ? "was loaded before" : "loaded";
	return true;
}

// Of the candidates' troubles one is told: that of the first file that is there, or the
// last.
const SearchStep &telling(const SearchReport &report, size_t first)
{
	for (size_t i = first; i < report.size(); i++)
		if (report[i].outcome != Outcome::absent)
			return report[i];
	return report.back();
}

void probe(const DriverEntry &entry, const SearchPaths &paths, SearchReport &report)
{
	LoadedDriver driver = load_driver(entry, paths, report);
	if (!driver.handle)
		return;
	dlclose(driver.handle);
	if (driver.was_resident)
		return;
	void *kept = dlopen(driver.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
	if (kept)
		dlclose(kept);
	else
		report.back().text +=
			", but nothing pinned it: it registered no driver here";
}

} // namespace

LoadedDriver load_driver(
	const DriverEntry &entry, const SearchPaths &paths, SearchReport &report)
{
	LoadedDriver driver;
	size_t first = report.size();
	for (std::string &path : candidates(entry, paths)) {
		report.push_back({Kind::candidate, Outcome::failed, entry.source,
			entry.position, entry.name, std::move(path), 0, {}});
		if (load_candidate(report.back(), driver))
			break;
	}
	SearchStep whole = driver.handle ? report.back() : telling(report, first);
	whole.kind = Kind::driver;
	if (!driver.handle) {
		whole.outcome = Outcome::failed;
		whole.text = "cannot be loaded: " + whole.text;
	}
	report.push_back(std::move(whole));
	return driver;
}

bool make_global(const void *address, std::string &text)
{
	Dl_info info;
	struct link_map *map;
	if (!dladdr1(address, &info, reinterpret_cast<void **>(&map), RTLD_DL_LINKMAP)) {
		text = "the library does not find itself";
		return false;
	}
	// The handle is kept: drivers that bound to the library must not lose it.
	if (*map->l_name && !dlopen(map->l_name, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL)) {
		text = last_dl_error();
		return false;
	}
	return true;
}

const void *object_of(const void *address)
{
	Dl_info info;
	void *map;
	return dladdr1(address, &info, &map, RTLD_DL_LINKMAP) ? map : nullptr;
}

std::string object_path(const void *address)
{
	Dl_info info;
	return dladdr(address, &info) && info.dli_fname ? info.dli_fname : "?";
}

std::string foreign_registrar(const void *address)
{
	void *owner = dlsym(RTLD_DEFAULT, "verbs_register_driver_extend");
	Dl_info ours, theirs;
	if (!owner || !dladdr(owner, &theirs) || !dladdr(address, &ours) ||
		theirs.dli_fbase == ours.dli_fbase)
		return {};
	return theirs.dli_fname;
}

SearchReport replay_search(const SearchPaths &paths, const void *library)
{
	SearchReport report;
	std::string text;
	if (!make_global(library, text))
		report.push_back({Kind::driver, Outcome::failed, object_path(library), 0,
			{}, {}, 0, "cannot be made global: " + text});
	std::string foreign = foreign_registrar(library);
	if (!foreign.empty())
		report.push_back({Kind::driver, Outcome::failed, object_path(library), 0,
			{}, {}, 0,
			"drivers register with another copy of the library, " + foreign});
	for (const DriverEntry &entry : collect_entries(paths, report))
		probe(entry, paths, report);
	return report;
}

} // namespace nda::extend
