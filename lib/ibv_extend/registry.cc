// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/ibv_extend/registry.h"

#include "lib/ibv_extend/log.h"

#include <algorithm>
#include <cerrno>
#include <dlfcn.h>
#include <link.h>

namespace nda::extend {
namespace {

// Set while this thread searches: a driver's constructor may come back here.
thread_local bool searching;

class Searching {
public:
	Searching() { searching = true; }
	~Searching() { searching = false; }
	Searching(const Searching &) = delete;
	Searching &operator=(const Searching &) = delete;
};

const void *code_address(void (*function)())
{
	return reinterpret_cast<const void *>(function);
}

// An address within this library. Not that of an exported function: another copy of the
// library may have taken its name.
const void *own_address()
{
	return code_address([] {});
}

// Keeps the object that holds an address mapped, whoever closes it. The main program needs
// no pin. The handle is kept.
bool pin(const void *address)
{
	Dl_info info;
	struct link_map *map;
	if (!dladdr1(address, &info, reinterpret_cast<void **>(&map), RTLD_DL_LINKMAP))
		return false;
	return !*map->l_name ||
		dlopen(map->l_name, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE) != nullptr;
}

// A driver's description may lie elsewhere than its code; both are needed.
void pin_driver(const Driver *driver)
{
	auto alloc_context = reinterpret_cast<void (*)()>(driver->alloc_context);
	bool code_pinned = pin(code_address(alloc_context));
	if (!pin(driver) || !code_pinned)
		warn(std::string("driver ") + driver->name +
			" is not part of a loaded object: nothing keeps it mapped");
}

} // namespace

Registry &Registry::get()
{
	// Never destroyed: drivers and applications may call from their own destructors.
	static Registry &registry = *new Registry;
	return registry;
}

void Registry::add(const Driver *driver)
{
	if (!driver || !driver->name || !*driver->name) {
		warn("a driver without a name was not registered");
		return;
	}
	std::string label =
		std::string("driver ") + driver->name + " of " + object_path(driver);
	if (!driver->alloc_context) {
		warn(label + " was not registered: it has no alloc_context");
		return;
	}
	// Before it can be found, and without the lock: this enters the dynamic loader.
	pin_driver(driver);
	const Driver *holder = nullptr;
	{
		std::lock_guard<std::mutex> lock(mutex_);
		auto found = std::find_if(
			drivers_.begin(), drivers_.end(), [&](const Driver *d) {
				return std::string_view(d->name) == driver->name;
			});
		if (found == drivers_.end())
			drivers_.push_back(driver);
		else
			holder = *found;
	}
	if (holder && holder != driver)
		warn(label + " was not registered: " + object_path(holder) +
			" has registered that name first");
}

const Driver *Registry::find(std::string_view name)
{
	std::lock_guard<std::mutex> lock(mutex_);
	for (const Driver *driver : drivers_)
		if (driver->name == name)
			return driver;
	return nullptr;
}

size_t Registry::count()
{
	std::lock_guard<std::mutex> lock(mutex_);
	return drivers_.size();
}

bool Registry::is_loaded(const std::string &entry)
{
	std::lock_guard<std::mutex> lock(mutex_);
	return std::any_of(loaded_.begin(), loaded_.end(),
		[&](const Loaded &loaded) { return loaded.entry == entry; });
}

// Whether a file that was loaded has registered here: itself, before or now, or something
// that it brought along, when more are registered now than before.
bool Registry::serves(const LoadedDriver &loaded, size_t before)
{
	std::vector<const Driver *> drivers;
	{
		std::lock_guard<std::mutex> lock(mutex_);
		drivers = drivers_;
	}
	return drivers.size() > before ||
		std::any_of(drivers.begin(), drivers.end(), [&](const Driver *driver) {
			return object_of(driver) == loaded.object;
		});
}

void Registry::load(
	const DriverEntry &entry, const SearchPaths &paths, SearchReport &report)
{
	size_t before = count();
	LoadedDriver loaded = load_driver(entry, paths, report);
	if (!loaded.handle)
		return;
	{
		std::lock_guard<std::mutex> lock(mutex_);
		// Another thread's search may have been here; the file is the same.
		if (std::none_of(loaded_.begin(), loaded_.end(),
			    [&](const Loaded &other) { return other.entry == entry.name; }))
			loaded_.push_back({entry.name, loaded});
	}
	if (serves(loaded, before))
		return;
	SearchStep silent = report.back();
	silent.outcome = SearchStep::Outcome::failed;
	std::string owner = foreign_registrar(own_address());
	if (!owner.empty())
		silent.text = loaded.path +
			" did not register here: another copy of the library, " + owner +
			", is global and takes registrations";
	else if (loaded.was_resident)
		silent.text = loaded.path +
			" did not register: it was loaded before, when this library was "
			"not there or not global";
	else
		silent.text = loaded.path + " did not register a driver under a new name";
	report.push_back(std::move(silent));
}

Registry::Search Registry::load_drivers(const SearchPaths &paths)
{
	if (searching)
		return Search::nested;
	Searching mark;

	// Taken before the files are read: a change after that makes the next one differ.
	std::string fingerprint = search_fingerprint(paths);
	{
		std::lock_guard<std::mutex> lock(mutex_);
		if (searched_ == fingerprint)
			return Search::unchanged;
	}
	SearchReport report;
	std::vector<DriverEntry> entries = collect_entries(paths, report);
	std::string text;
	if (!entries.empty() && !make_global(own_address(), text))
		warn("drivers that are not linked to the library cannot register, since it "
		     "cannot be made global: " +
			text);
	for (const DriverEntry &entry : entries)
		if (!is_loaded(entry.name))
			load(entry, paths, report);
	{
		std::lock_guard<std::mutex> lock(mutex_);
		searched_ = std::move(fingerprint);
	}
	for (const SearchStep &step : report)
		if (step.is_problem())
			warn(step.message());
	return Search::done;
}

void Registry::context_opened(const ibv_context_extend *context, const Driver *driver)
{
	std::lock_guard<std::mutex> lock(mutex_);
	contexts_.emplace(context, driver);
}

int Registry::context_closed(const ibv_context_extend *context, const Driver *&driver)
{
	std::lock_guard<std::mutex> lock(mutex_);
	auto last = contexts_.upper_bound(context);
	if (last == contexts_.begin() || (--last)->first != context)
		return -ENOENT;
	// Known, hence not released: releasing starts after it is taken out.
	if (!context->context)
		return -EINVAL;
	driver = last->second;
	contexts_.erase(last);
	return 0;
}

} // namespace nda::extend
