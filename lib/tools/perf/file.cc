// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "lib/common/fd.h"

namespace nda::perf {

std::string check_file(const std::string &path)
{
	// A file that only blocks or never ends, as a FIFO or a device, is none to copy.
	Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
	struct stat st;
	if (!fd || fstat(fd.get(), &st) != 0)
		return path + ": " + strerror(errno);
	if (S_ISDIR(st.st_mode))
		return path + ": " + strerror(EISDIR);
	if (!S_ISREG(st.st_mode))
		return path + ": not a regular file";
	return "";
}

int64_t read_full(int fd, void *data, uint64_t size)
{
	auto *bytes = static_cast<uint8_t *>(data);
	uint64_t done = 0;
	while (done < size) {
		ssize_t n = ::read(fd, bytes + done, size - done);
		if (n == 0)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += uint64_t(n);
	}
	return int64_t(done);
}

} // namespace nda::perf
