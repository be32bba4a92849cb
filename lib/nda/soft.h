// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// libnda_soft.so: the software NPU and NICs, loaded when first asked for.
#ifndef NDA_LIB_SOFT_H
#define NDA_LIB_SOFT_H

#include <string>

#include <providers/soft/nda_soft.h>

namespace nda {

// The table's type has the name of the table, which hides it.
using SoftApi = struct nda_soft_api;

// Loads libnda_soft.so, from this library's own directory or else from where the dynamic
// loader looks, and checks that it belongs to this version. It stays loaded.
// 0, or -ENODEV with the loader's words, or -EPROTONOSUPPORT.
int load_soft(const SoftApi *&api);

// Loads a library from this one's own directory or else from where the dynamic loader
// looks; nullptr, with the loader's words added to reasons.
void *load_beside(const char *file, std::string &reasons);

// Sets the detail to "message: " and what the software says of its last failure.
int fail_soft(const SoftApi &api, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

// For tests: what load_soft gives instead; nullptr restores it.
void set_soft_for_test(const SoftApi *api);

} // namespace nda

#endif
