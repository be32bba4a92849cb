// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Which drivers there are, what was loaded to get them, and which contexts are open.
#ifndef NDA_LIB_IBV_EXTEND_REGISTRY_H
#define NDA_LIB_IBV_EXTEND_REGISTRY_H

#include "ibv_extend.h"
#include "lib/ibv_extend/search.h"

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace nda::extend {

using Driver = verbs_device_extend_ops;

// The one registry of a process's copy of the library. Safe from any thread, and from the
// constructors and functions of drivers: its lock is held only over its own data, never
// while the dynamic loader or a driver runs.
//
// No lock at all orders searches. Were one held across dlopen, a constructor that opens a
// context while its thread holds the dynamic loader's own lock would wait for a search
// that waits for that lock. Threads that search at the same time therefore each go through
// all entries; the dynamic loader lets one in at a time, and loads and initialises a file
// once.
class Registry {
public:
	static Registry &get();

	// Takes a driver, or warns why not. Pins the shared object that it lies in.
	void add(const Driver *driver);

	// The driver registered under the name, or null.
	const Driver *find(std::string_view name);

	enum class Search {
		done,
		unchanged,
		nested
	};
	// Loads what the environment and the configuration name, unless that was done and
	// neither has changed since. Nested: this thread is within a search, whose driver's
	// constructor called; nothing is done.
	Search load_drivers(const SearchPaths &paths);

	// Remembers by whom a context was opened; one more each time for the same pointer.
	void context_opened(const ibv_context_extend *context, const Driver *driver);
	// Takes one such memory away. 0, -ENOENT for a pointer that is not open, -EINVAL
	// for one whose verbs context is null, which stays open.
	int context_closed(const ibv_context_extend *context, const Driver *&driver);

private:
	// A file that an entry led to. Kept loaded for ever.
	struct Loaded {
		std::string entry;
		LoadedDriver driver;
	};

	Registry() = default;
	void load(const DriverEntry &entry, const SearchPaths &paths, SearchReport &report);
	bool is_loaded(const std::string &entry);
	bool serves(const LoadedDriver &loaded, size_t before);
	size_t count();

	std::mutex mutex_;                    // protects all that follows
	std::vector<const Driver *> drivers_; // in the order of their registration
	std::vector<Loaded> loaded_;          // in the order of loading
	std::string searched_;                // fingerprint of the last search that ended
	// A pointer is in it once for each time it was opened and not closed.
	std::multimap<const ibv_context_extend *, const Driver *> contexts_;
};

} // namespace nda::extend

#endif
