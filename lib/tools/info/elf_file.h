// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What a file says of itself before the dynamic loader sees it. The loader passes over a
// library of another machine as if it were not there.
#ifndef NDA_INFO_ELF_FILE_H
#define NDA_INFO_ELF_FILE_H

#include <string>

#include "lib/tools/info/facts.h"

namespace nda::info {

ElfFile inspect_elf(const std::string &path);

// The digits that follow the first place in the file where they follow the text, or "".
std::string number_after(const std::string &path, const std::string &text);

// Whether the bytes of the text are in the file.
bool file_contains(const std::string &path, const std::string &text);

} // namespace nda::info

#endif
