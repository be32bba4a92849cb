// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What the library says on stderr. Each message is one write, of any length; errno is kept.
#ifndef NDA_LIB_IBV_EXTEND_LOG_H
#define NDA_LIB_IBV_EXTEND_LOG_H

#include <string>

namespace nda::extend {

// Printed if IBV_EXTEND_SHOW_WARNINGS was in the environment when this was first called,
// and each text once in a process. Text must therefore name objects, not addresses.
void warn(const std::string &text);

// Always printed.
void complain(const std::string &text);

} // namespace nda::extend

#endif
