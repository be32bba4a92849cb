// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What the checks share; each file of them has one area.
#ifndef NDA_INFO_CHECK_PARTS_H
#define NDA_INFO_CHECK_PARTS_H

#include <string>
#include <vector>

#include "lib/tools/info/checks.h"

namespace nda::info {

using Problems = std::vector<Problem>;

void add(Problems &out, const char *id, Problem::Weight weight, const std::string &subject,
	const std::string &seen, const std::string &todo);
void problem(Problems &out, const char *id, const std::string &subject,
	const std::string &seen, const std::string &todo);
void note(Problems &out, const char *id, const std::string &subject,
	const std::string &seen, const std::string &todo);

bool starts_with(const std::string &text, const std::string &start);
bool contains(const std::vector<std::string> &all, const std::string &one);
std::string joined(const std::vector<std::string> &words);
std::string one_line(std::string text);
bool in_container(const Facts &facts);
// "there are rxe0, mlx5_0 (0000:3b:00.0)"
std::string device_list(const Facts &facts);
// Where a driver was named, for people.
std::string place(const Driver &driver);
// The driver that serves a verbs driver of that name, among libnda's own or the others.
const Driver *serving(const Facts &facts, const std::string &verbs_driver, bool built_in);

// check_devices
void check_device(
	const Facts &facts, const VerbsDevice &device, bool asked_for, Problems &out);
void device_absent(const Facts &facts, const std::string &name, Problems &out);
void check_wanted_address(const Facts &facts, const std::string &address, Problems &out);

// check_search
void check_config(const Facts &facts, Problems &out);
void check_driver(const Facts &facts, const Driver &driver, Problems &out);
void check_search(const Facts &facts, Problems &out);

// check_machine
void check_libraries(const Facts &facts, Problems &out);
void check_npus(const Facts &facts, Problems &out);
void check_module(const Facts &facts, bool asked_for, Problems &out);
void check_parts(const Facts &facts, Problems &out);
void check_memory(const Facts &facts, Problems &out);
void check_process(const Facts &facts, Problems &out);

} // namespace nda::info

#endif
