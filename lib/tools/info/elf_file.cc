// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/info/elf_file.h"

#include <cerrno>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/common/fd.h"

namespace nda::info {
namespace {

constexpr off_t max_bytes = 64 << 20; // no library that is meant here is larger

// Of this program; its class and byte order are those of the compiler's target.
#if defined(__x86_64__)
constexpr uint16_t own_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t own_machine = EM_AARCH64;
#elif defined(__riscv)
constexpr uint16_t own_machine = EM_RISCV;
#elif defined(__loongarch__)
constexpr uint16_t own_machine = 258; // EM_LOONGARCH, which older headers lack
#elif defined(__powerpc64__)
constexpr uint16_t own_machine = EM_PPC64;
#else
constexpr uint16_t own_machine = EM_NONE; // any
#endif
constexpr unsigned char own_class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
constexpr unsigned char own_order =
	__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;

std::string machine_name(uint16_t machine)
{
	switch (machine) {
	case EM_X86_64:
		return "x86-64";
	case EM_386:
		return "x86";
	case EM_AARCH64:
		return "arm64";
	case EM_ARM:
		return "arm";
	case EM_RISCV:
		return "riscv";
	case EM_PPC64:
		return "ppc64";
	case 258:
		return "loongarch";
	default:
		return "machine " + std::to_string(machine);
	}
}

// The start of a header, which is alike for both classes.
struct Start {
	unsigned char ident[EI_NIDENT];
	uint16_t type;
	uint16_t machine;
};

uint16_t in_order(uint16_t value, unsigned char order)
{
	return order == own_order ? value : __builtin_bswap16(value);
}

void take_header(const Start &start, ElfFile &file)
{
	if (memcmp(start.ident, ELFMAG, SELFMAG) != 0)
		return;
	const unsigned char order = start.ident[EI_DATA];
	const uint16_t machine = in_order(start.machine, order);
	file.is_library = in_order(start.type, order) == ET_DYN;
	file.machine = machine_name(machine) +
		(start.ident[EI_CLASS] == ELFCLASS64 ? ", 64 bits" : ", 32 bits") +
		(order == own_order ? "" : ", other byte order");
	file.fits = start.ident[EI_CLASS] == own_class && order == own_order &&
		(own_machine == EM_NONE || machine == own_machine);
}

std::string bytes_of(const std::string &path)
{
	struct stat status;
	if (stat(path.c_str(), &status) || !S_ISREG(status.st_mode) ||
		status.st_size > max_bytes)
		return {};
	std::string bytes(size_t(status.st_size), '\0');
	std::ifstream file(path, std::ios::binary);
	file.read(bytes.data(), std::streamsize(bytes.size()));
	bytes.resize(size_t(file.gcount()));
	return bytes;
}

} // namespace

ElfFile inspect_elf(const std::string &path)
{
	ElfFile file;
	file.path = path;
	struct stat status;
	if (stat(path.c_str(), &status)) {
		file.error = errno;
		// That it may not be looked at does not make it absent.
		file.exists = errno != ENOENT && errno != ENOTDIR;
		return file;
	}
	file.exists = true;
	if (!S_ISREG(status.st_mode)) {
		file.error = EINVAL;
		return file;
	}
	const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
	if (!fd) {
		file.error = errno;
		return file;
	}
	Start start = {};
	const ssize_t n = read(fd.get(), &start, sizeof(start));
	if (n < 0)
		file.error = errno;
	else if (size_t(n) == sizeof(start))
		take_header(start, file);
	return file;
}

std::string number_after(const std::string &path, const std::string &text)
{
	const std::string bytes = bytes_of(path);
	for (size_t at = bytes.find(text); at != std::string::npos;
		at = bytes.find(text, at + 1)) {
		const size_t begin = at + text.size();
		size_t end = begin;
		while (end < bytes.size() && bytes[end] >= '0' && bytes[end] <= '9')
			end++;
		if (end > begin)
			return bytes.substr(begin, end - begin);
	}
	return {};
}

bool file_contains(const std::string &path, const std::string &text)
{
	return bytes_of(path).find(text) != std::string::npos;
}

} // namespace nda::info
