// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Names read from an ibv_device whose maker is not known: no memory it points to is
// trusted.
#ifndef NDA_LIB_IBV_EXTEND_DEVICE_NAME_H
#define NDA_LIB_IBV_EXTEND_DEVICE_NAME_H

#include <cstddef>
#include <string>

struct ibv_device;

namespace nda::extend {

// Copies memory of this process that may not be mapped. The system call that is meant for
// it may be forbidden (seccomp); then a pipe does it. True if all bytes could be read.
bool read_memory(const void *from, void *to, size_t size);
bool read_memory_by_call(const void *from, void *to, size_t size, bool &permitted);
bool read_memory_by_pipe(const void *from, void *to, size_t size);

// The name of the device's verbs driver: 1 to 63 characters of [A-Za-z0-9_.-]. Empty if
// what is found where a verbs driver keeps it does not look so.
std::string verbs_driver_name(const ibv_device *device);

// The device's own name for messages, or "?".
std::string device_label(const ibv_device *device);

} // namespace nda::extend

#endif
