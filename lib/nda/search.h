// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Why an extension driver was not found: ibv_open_extend has no room to say it.
#ifndef NDA_LIB_SEARCH_H
#define NDA_LIB_SEARCH_H

#include <string>

namespace nda {

// A line for each step of the search for extension drivers, repeated for the purpose.
std::string search_report();

// What went wrong in it, in one line, for an error detail; empty if nothing did.
std::string search_problems();

} // namespace nda

#endif
