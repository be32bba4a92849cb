// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// From facts to what is wrong. Pure functions.
#ifndef NDA_INFO_CHECKS_H
#define NDA_INFO_CHECKS_H

#include <string>
#include <vector>

#include "lib/tools/info/facts.h"

namespace nda::info {

struct Problem {
	enum class Weight {
		problem, // something that was meant to work does not; counts for the status
		note,    // worth knowing when something does not work
	};
	std::string id; // of check_ids
	Weight weight = Weight::problem;
	std::string subject; // the device, file, library, ...
	std::string seen;    // what was seen
	std::string todo;    // what to do about it
};

// Every id that there is; docs/troubleshooting.md explains each.
extern const std::vector<std::string> check_ids;

// device: "" for everything, the name of a verbs device, or "nda".
// address: an IP address that a GID is wanted for, or "".
std::vector<Problem> check(
	const Facts &facts, const std::string &device, const std::string &address = {});

// How many of them count.
unsigned count_problems(const std::vector<Problem> &problems);

} // namespace nda::info

#endif
