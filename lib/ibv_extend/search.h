// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The search for extension drivers: where they are named (configuration), how one is loaded
// (loader), and a replay of both that reports every step. A static archive, linked into
// libibv_extend and into whatever explains to people why a driver was not found. It keeps
// no state and prints nothing; ibv_extend.h has the rules that it follows.
#ifndef NDA_LIB_IBV_EXTEND_SEARCH_H
#define NDA_LIB_IBV_EXTEND_SEARCH_H

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nda::extend {

// Where to look; the environment variable is not among them, its name is fixed.
struct SearchPaths {
	std::string config_directory;
	std::vector<std::string>
		driver_directories; // for names, before the loader's own search
};

// The paths of an installed library.
SearchPaths system_paths();

// One thing that the search looked at, and what became of it.
struct SearchStep {
	enum class Kind {
		environment, // the variable as a whole
		directory,   // the configuration directory
		file,        // a configuration file
		line, // a line of a file, or an entry of the variable, that names no driver
		candidate, // a file that was tried for a driver
		driver,    // a driver as a whole, after its candidates
	};
	enum class Outcome {
		ok,      // read, or loaded
		absent,  // not there
		ignored, // left out by rule
		refused, // not acceptable: its owner, permissions or spelling
		failed,  // the system or the dynamic loader said no
	};
	Kind kind;
	Outcome outcome;
	std::string source; // the variable's name, the directory's or the file's path
	unsigned position =
		0;        // line in the file or entry in the variable, from 1; 0: the whole
	std::string name; // the entry as written; empty above entries
	std::string path; // candidate: what the dynamic loader was given
	int error = 0;    // positive errno, where there is one
	std::string text; // what happened, fit for printing, without source and name

	// Deserves a warning: something that was meant to work did not.
	bool is_problem() const;
	// "SOURCE:POSITION: driver NAME: TEXT", with what there is.
	std::string message() const;
};

using SearchReport = std::vector<SearchStep>;

const char *to_string(SearchStep::Kind kind);
const char *to_string(SearchStep::Outcome outcome);

// A driver that the environment or a file names, in an acceptable spelling.
struct DriverEntry {
	std::string source;
	unsigned position;
	std::string name;
};

// config

// Splits the text of a configuration file, or the value of the variable, into entries. Any
// text is safe; what is not understood becomes a step.
void parse_config(std::string_view text, const std::string &source,
	std::vector<DriverEntry> &entries, SearchReport &report);
void parse_environment(
	std::string_view value, std::vector<DriverEntry> &entries, SearchReport &report);

// All entries, in the order in which they are to be loaded.
std::vector<DriverEntry> collect_entries(const SearchPaths &paths, SearchReport &report);

// Changes whenever collect_entries might give something else: the variable's value, and of
// the directory and each of its files name, identity, size and times.
std::string search_fingerprint(const SearchPaths &paths);

// loader

struct LoadedDriver {
	void *handle = nullptr;       // from dlopen; null if no candidate could be loaded
	std::string path;             // the candidate
	bool was_resident = false;    // mapped before: its constructors did not run now
	const void *object = nullptr; // as object_of gives it
};

// Loads a driver (RTLD_NOW, RTLD_LOCAL) and appends its candidates and itself to the
// report. Its constructors run. The caller must hold no lock that a constructor may need.
LoadedDriver load_driver(
	const DriverEntry &entry, const SearchPaths &paths, SearchReport &report);

// Makes the symbols of the shared object that holds the address global, for drivers that
// are not linked to it. False with the loader's words in text if that failed.
bool make_global(const void *address, std::string &text);

// The file of the other copy of the library that owns the name under which drivers that are
// not linked to one register, or an empty string if that is the copy which holds the
// address.
std::string foreign_registrar(const void *address);

// Identity of the shared object or program that holds the address, or null. Only to be
// compared.
const void *object_of(const void *address);

// Path of the shared object or program that holds the address, or "?".
std::string object_path(const void *address);

// replay

// Repeats the search as ibv_open_extend would do it for an unknown device, and reports each
// step. library: any address within libibv_extend, such as &verbs_register_driver_extend.
//
// What it does to the process: the library becomes global, as in a real search; each driver
// named is loaded and released again. A driver that registers while it is loaded is pinned
// by the registry and stays, just as after ibv_open_extend, and is then found without a
// search. The registry does not count a replay as a search. From any thread; runs drivers'
// constructors.
SearchReport replay_search(const SearchPaths &paths, const void *library);

} // namespace nda::extend

#endif
