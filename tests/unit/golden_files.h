/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Files of recorded cases: who runs them, and what in a file is not as it says. */
#ifndef TESTS_UNIT_GOLDEN_FILES_H
#define TESTS_UNIT_GOLDEN_FILES_H

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <tests/unit/golden_common.h>

namespace nda::golden {

struct Totals {
	unsigned passed = 0;
	unsigned failed = 0;
	std::map<std::string, unsigned> cases; /* by engine */
};

/* The file, or the directory's JSON files by name. */
std::vector<std::filesystem::path> files_of(const std::filesystem::path &path);

/*
 * Who runs @file: null, and @why, where it is of another schema or names none. Throws where
 * it is of the schema and cannot be run: its engine is not known, it has no cases, or not
 * as many as it says, in all and of each group.
 */
const Runner *runner_of(const Json &file, std::string *why);

/* What differs in any of its variants, "" if nothing does. */
std::string run_case(const Runner &runner, const Json &test);

/* Adds to the totals; the text to print. What is no JSON, or cannot be opened, fails. */
std::string run_file(const std::filesystem::path &path, Totals *totals);

/* The engines of which nothing was run. */
std::vector<std::string> engines_without_cases(const Totals &totals);

} // namespace nda::golden

#endif
