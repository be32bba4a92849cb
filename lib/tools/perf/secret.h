// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The secret of a job of two machines, in a file that only its owner can read: 64 digits of
// base 16.
#ifndef NDA_PERF_SECRET_H
#define NDA_PERF_SECRET_H

#include <cstdint>
#include <string>

namespace nda::perf {

constexpr size_t secret_bytes = 32;

// Empty, or why not: "PATH: cause". create: makes the file if it does not exist.
std::string read_secret(
	const std::string &path, bool create, uint8_t (&secret)[secret_bytes]);

} // namespace nda::perf

#endif
