// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_PERF_FILE_H
#define NDA_PERF_FILE_H

#include <cstdint>
#include <string>

namespace nda::perf {

// "" or why the file can't be copied: "PATH: cause".
std::string check_file(const std::string &path);

// Reads until the buffer is full or the file ends. Bytes, or a negative errno.
int64_t read_full(int fd, void *data, uint64_t size);

} // namespace nda::perf

#endif
