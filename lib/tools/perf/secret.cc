// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/secret.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "lib/common/fd.h"
#include "lib/tools/perf/file.h"

namespace nda::perf {
namespace {

constexpr size_t text_bytes = 2 * secret_bytes;

// Whoever can read the file can join the job.
std::string check_owner(int fd)
{
	struct stat s;
	if (fstat(fd, &s) != 0)
		return strerror(errno);
	if (!S_ISREG(s.st_mode))
		return "is no regular file";
	if (s.st_uid != geteuid())
		return "belongs to another user";
	if ((s.st_mode & 077) != 0)
		return "others than its owner have rights to it; its mode must be 0600";
	return "";
}

int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool decode(const char *text, uint8_t (&secret)[secret_bytes])
{
	for (size_t i = 0; i < secret_bytes; i++) {
		const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		secret[i] = uint8_t(high << 4 | low);
	}
	return true;
}

// Never follows a link that somebody else may have put there, nor overwrites.
std::string create_file(const std::string &path)
{
	uint8_t secret[secret_bytes];
	if (getrandom(secret, sizeof(secret), 0) != ssize_t(sizeof(secret)))
		return strerror(errno);
	std::string text;
	for (uint8_t byte : secret)
		for (int nibble : {byte >> 4, byte & 15})
			text += "0123456789abcdef"[nibble];
	text += '\n';
	const Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
	if (!fd)
		return strerror(errno);
	if (write(fd.get(), text.data(), text.size()) == ssize_t(text.size()))
		return "";
	std::string cause = strerror(errno);
	unlink(path.c_str());
	return cause;
}

std::string read_file(int fd, uint8_t (&secret)[secret_bytes])
{
	if (std::string wrong = check_owner(fd); !wrong.empty())
		return wrong;
	char text[text_bytes + 2];
	const int64_t n = read_full(fd, reinterpret_cast<uint8_t *>(text), sizeof(text));
	if (n < 0)
		return strerror(int(-n));
	const bool whole = n == int64_t(text_bytes) ||
		(n == int64_t(text_bytes) + 1 && text[text_bytes] == '\n');
	return whole && decode(text, secret) ? "" : "holds no secret: 64 digits 0-9a-f";
}

} // namespace

std::string read_secret(
	const std::string &path, bool create, uint8_t (&secret)[secret_bytes])
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	Fd fd(open(path.c_str(), flags));
	std::string wrong;
	if (!fd && errno == ENOENT && create) {
		wrong = create_file(path);
		fd = Fd(wrong.empty() ? open(path.c_str(), flags) : -1);
	}
	if (wrong.empty())
		wrong = fd ? read_file(fd.get(), secret) : strerror(errno);
	return wrong.empty() ? "" : path + ": " + wrong;
}

} // namespace nda::perf
