// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What nda-info was asked to do.
#ifndef NDA_INFO_OPTIONS_H
#define NDA_INFO_OPTIONS_H

#include <string>

namespace nda::info {

enum ExitStatus {
	exit_ok = 0,
	exit_problems = 1,
	exit_usage = 2, // or nda-info itself failed
};

struct Options {
	bool json = false;
	bool check = false;
	std::string device;  // "": everything
	std::string address; // that a GID is wanted for; "": none
	std::string root;    // tests: before the paths that are looked at
};

// What came of the command line.
struct Parsed {
	bool run = false; // false: print the texts and exit with the status
	int status = exit_ok;
	std::string out;
	std::string err;
	Options options;
};

Parsed parse_options(int argc, const char *const *argv);

} // namespace nda::info

#endif
