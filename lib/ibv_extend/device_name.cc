// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/ibv_extend/device_name.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sys/uio.h>
#include <unistd.h>

namespace nda::extend {
namespace {

constexpr size_t kNameSize = 64; // with its zero byte

// The start of rdma-core's struct verbs_device, which is private to it but has begun so in
// every release: the device, then the operations, whose first member is the driver's name.
struct VerbsDevicePrefix {
	ibv_device device;
	const char *const *ops;
};
#if defined(__LP64__)
static_assert(offsetof(VerbsDevicePrefix, ops) == 664);
#endif

bool is_driver_name(const char *name, size_t length)
{
	return length > 0 && std::all_of(name, name + length, [](char c) {
		return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			(c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
	});
}

template <class T>
bool read_pointer(uintptr_t from, T &value)
{
	return from % alignof(T) == 0 &&
		read_memory(reinterpret_cast<const void *>(from), &value, sizeof(value));
}

// A string of less than size bytes: what follows it may be unmapped, so not more than the
// rest of its page is read at first.
bool read_string(const char *from, char *to, size_t size)
{
	size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
	size_t first = std::min(size, page - reinterpret_cast<uintptr_t>(from) % page);
	if (!read_memory(from, to, first))
		return false;
	if (memchr(to, 0, first))
		return true;
	return first < size && read_memory(from + first, to + first, size - first) &&
		memchr(to + first, 0, size - first);
}

} // namespace

bool read_memory_by_call(const void *from, void *to, size_t size, bool &permitted)
{
	struct iovec local = {to, size};
	struct iovec remote = {const_cast<void *>(from), size};
	ssize_t n = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
	permitted = n >= 0 || errno == EFAULT;
	return n == static_cast<ssize_t>(size);
}

bool read_memory_by_pipe(const void *from, void *to, size_t size)
{
	int pipe_fds[2];
	// What is asked for here is smaller than any pipe.
	if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK))
		return false;
	bool done = write(pipe_fds[1], from, size) == static_cast<ssize_t>(size) &&
		read(pipe_fds[0], to, size) == static_cast<ssize_t>(size);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	return done;
}

bool read_memory(const void *from, void *to, size_t size)
{
	bool permitted;
	return read_memory_by_call(from, to, size, permitted) ||
		(!permitted && read_memory_by_pipe(from, to, size));
}

std::string verbs_driver_name(const ibv_device *device)
{
	uintptr_t address = reinterpret_cast<uintptr_t>(device);
	const char *const *ops;
	const char *name;
	char text[kNameSize];
	if (address % alignof(ibv_device) ||
		!read_pointer(address + offsetof(VerbsDevicePrefix, ops), ops) ||
		!read_pointer(reinterpret_cast<uintptr_t>(ops), name) ||
		!read_string(name, text, sizeof(text)) ||
		!is_driver_name(text, strlen(text)))
		return {};
	return text;
}

std::string device_label(const ibv_device *device)
{
	char text[IBV_SYSFS_NAME_MAX];
	const char *name = reinterpret_cast<const char *>(
		reinterpret_cast<uintptr_t>(device) + offsetof(ibv_device, name));
	if (!read_string(name, text, sizeof(text)) || !is_driver_name(text, strlen(text)))
		return "?";
	return text;
}

} // namespace nda::extend
