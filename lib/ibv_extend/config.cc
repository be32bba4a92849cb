// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Where drivers are named: IBV_EXTEND_DRIVERS and the files of the configuration directory.
#include "lib/ibv_extend/search.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>

#include "lib/common/fd.h"

namespace nda::extend {
namespace {

using Kind = SearchStep::Kind;
using Outcome = SearchStep::Outcome;

constexpr char kEnvironment[] = "IBV_EXTEND_DRIVERS";
// A list of drivers is short; what is longer than this is not one.
constexpr off_t kMaxFileSize = 1 << 20;
// lib<name>.so must be a file name.
constexpr size_t kMaxName = NAME_MAX - sizeof("lib.so") + 1;

struct DirClose {
	void operator()(DIR *directory) const { closedir(directory); }
};

bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\v' || c == '\f';
}

bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		c == '_' || c == '-';
}

bool has_parent_component(std::string_view path)
{
	while (!path.empty()) {
		size_t slash = std::min(path.find('/'), path.size());
		if (path.substr(0, slash) == "..")
			return true;
		path.remove_prefix(std::min(slash + 1, path.size()));
	}
	return false;
}

// Why an entry is not acceptable, or null.
const char *refusal(std::string_view name)
{
	if (name.find('\0') != name.npos)
		return "contains a zero byte";
	if (name.front() == '/') {
		if (name.size() >= PATH_MAX)
			return "is longer than a path may be";
		if (has_parent_component(name))
			return "has a \"..\" component";
		return nullptr;
	}
	if (name.size() > kMaxName)
		return "is longer than a file name may be";
	if (!std::all_of(name.begin(), name.end(), is_name_char))
		return "is neither an absolute path nor a name of letters, digits, '_' and "
		       "'-'";
	return nullptr;
}

// Unknown text goes into messages: only what prints, and not all of it.
std::string printable(std::string_view text)
{
	constexpr size_t kShown = 200;
	std::string shown(text.substr(0, kShown));
	for (char &c : shown)
		if (c < ' ' || c > '~')
			c = '?';
	return text.size() > kShown ? shown + "..." : shown;
}

void add_entry(std::string_view name, const std::string &source, unsigned position,
	std::vector<DriverEntry> &entries, SearchReport &report)
{
	if (const char *why = refusal(name))
		report.push_back({Kind::line, Outcome::refused, source, position,
			printable(name), {}, EINVAL, why});
	else
		entries.push_back({source, position, std::string(name)});
}

void parse_line(std::string_view line, const std::string &source, unsigned position,
	std::vector<DriverEntry> &entries, SearchReport &report)
{
	auto next_word = [&line] {
		while (!line.empty() && is_blank(line.front()))
			line.remove_prefix(1);
		size_t length = 0;
		while (length < line.size() && !is_blank(line[length]))
			length++;
		std::string_view word = line.substr(0, length);
		line.remove_prefix(length);
		return word;
	};

	std::string_view directive = next_word();
	if (directive.empty() || directive.front() == '#')
		return;
	if (directive != "driver") {
		report.push_back({Kind::line, Outcome::refused, source, position, {}, {},
			EINVAL, "unknown directive \"" + printable(directive) + "\""});
		return;
	}
	std::string_view name = next_word();
	if (name.empty())
		report.push_back({Kind::line, Outcome::refused, source, position, {}, {},
			EINVAL, "\"driver\" without a name"});
	else
		add_entry(name, source, position, entries, report);
}

bool ends_with(std::string_view text, std::string_view end)
{
	return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// Left behind by editors and package managers.
bool is_leftover(std::string_view name)
{
	return name.front() == '.' || name.back() == '~' ||
		name.find(".dpkg-") != name.npos || ends_with(name, ".rpmnew") ||
		ends_with(name, ".rpmsave") || ends_with(name, ".rpmorig");
}

// Whoever may write here chooses what code this process runs.
const char *distrust(const struct stat &status)
{
	if (status.st_uid != 0 && status.st_uid != geteuid())
		return "belongs neither to root nor to the effective user";
	if (status.st_mode & (S_IWGRP | S_IWOTH))
		return "is writable by others than its owner";
	return nullptr;
}

// Reads the whole file; 0 or a positive errno.
int read_all(int fd, std::string &text)
{
	char buffer[4096];
	for (;;) {
		ssize_t n = read(fd, buffer, sizeof(buffer));
		if (n == 0)
			return 0;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (text.size() + static_cast<size_t>(n) > kMaxFileSize)
			return EFBIG;
		text.append(buffer, static_cast<size_t>(n));
	}
}

void read_file(int directory, const std::string &path, const char *name,
	std::vector<DriverEntry> &entries, SearchReport &report)
{
	auto note = [&](Outcome outcome, int error, std::string text) {
		report.push_back(
			{Kind::file, outcome, path, 0, {}, {}, error, std::move(text)});
	};

	// Asked before it is opened: to open a device or a pipe may have effects.
	struct stat status;
	if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW)) {
		int error = errno;
		// Removed since the directory was read.
		note(error == ENOENT ? Outcome::absent : Outcome::failed, error,
			strerror(error));
		return;
	}
	if (!S_ISREG(status.st_mode)) {
		note(Outcome::ignored, 0, "is not a regular file");
		return;
	}
	Fd fd(openat(directory, name,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
	if (fd.get() < 0 || fstat(fd.get(), &status)) {
		int error = errno;
		note(Outcome::failed, error, strerror(error));
		return;
	}
	if (!S_ISREG(status.st_mode)) {
		note(Outcome::ignored, 0, "is not a regular file");
		return;
	}
	if (const char *why = distrust(status)) {
		note(Outcome::refused, EPERM, why);
		return;
	}
	std::string text;
	if (int error = read_all(fd.get(), text)) {
		note(Outcome::failed, error, strerror(error));
		return;
	}
	note(Outcome::ok, 0, "read");
	parse_config(text, path, entries, report);
}

// The names in a directory, sorted by bytes; 0 or a positive errno.
int list_directory(DIR *directory, std::vector<std::string> &names)
{
	errno = 0;
	while (struct dirent *entry = readdir(directory)) {
		std::string name = entry->d_name;
		if (name != "." && name != "..")
			names.push_back(std::move(name));
		errno = 0;
	}
	if (errno)
		return errno;
	std::sort(names.begin(), names.end());
	return 0;
}

void read_directory(
	const std::string &path, std::vector<DriverEntry> &entries, SearchReport &report)
{
	auto note = [&](Outcome outcome, int error, std::string text) {
		report.push_back({Kind::directory, outcome, path, 0, {}, {}, error,
			std::move(text)});
	};

	std::unique_ptr<DIR, DirClose> directory(opendir(path.c_str()));
	if (!directory) {
		int error = errno;
		// Most machines have none; that is no problem.
		note(error == ENOENT ? Outcome::absent : Outcome::failed, error,
			strerror(error));
		return;
	}
	struct stat status;
	if (fstat(dirfd(directory.get()), &status)) {
		int error = errno;
		note(Outcome::failed, error, strerror(error));
		return;
	}
	if (const char *why = distrust(status)) {
		note(Outcome::refused, EPERM, why);
		return;
	}
	std::vector<std::string> names;
	if (int error = list_directory(directory.get(), names)) {
		note(Outcome::failed, error, strerror(error));
		return;
	}
	note(Outcome::ok, 0, "read");
	for (const std::string &name : names) {
		std::string file = path + "/" + name;
		if (is_leftover(name))
			report.push_back({Kind::file, Outcome::ignored, file, 0, {}, {}, 0,
				"is hidden or a leftover"});
		else
			read_file(dirfd(directory.get()), file, name.c_str(), entries,
				report);
	}
}

void read_environment(std::vector<DriverEntry> &entries, SearchReport &report)
{
	if (const char *value = secure_getenv(kEnvironment)) {
		report.push_back({Kind::environment, Outcome::ok, kEnvironment, 0, {}, {},
			0, "read"});
		parse_environment(value, entries, report);
	} else if (getenv(kEnvironment)) {
		report.push_back({Kind::environment, Outcome::refused, kEnvironment, 0, {},
			{}, EPERM,
			"not read, since the program runs with raised privilege"});
	} else {
		report.push_back({Kind::environment, Outcome::absent, kEnvironment, 0, {},
			{}, 0, "not set"});
	}
}

void append_status(std::string &print, const struct stat &status)
{
	for (auto number : {static_cast<unsigned long long>(status.st_dev),
		     static_cast<unsigned long long>(status.st_ino),
		     static_cast<unsigned long long>(status.st_mode),
		     static_cast<unsigned long long>(status.st_uid),
		     static_cast<unsigned long long>(status.st_size),
		     static_cast<unsigned long long>(status.st_mtim.tv_sec),
		     static_cast<unsigned long long>(status.st_mtim.tv_nsec),
		     static_cast<unsigned long long>(status.st_ctim.tv_sec),
		     static_cast<unsigned long long>(status.st_ctim.tv_nsec)})
		print += ' ' + std::to_string(number);
}

} // namespace

void parse_config(std::string_view text, const std::string &source,
	std::vector<DriverEntry> &entries, SearchReport &report)
{
	for (unsigned position = 1; !text.empty(); position++) {
		size_t end = std::min(text.find_first_of("\r\n"), text.size());
		parse_line(text.substr(0, end), source, position, entries, report);
		// CR LF is one line's end.
		size_t length = text.substr(end, 2) == "\r\n" ? 2 : 1;
		text.remove_prefix(std::min(end + length, text.size()));
	}
}

void parse_environment(
	std::string_view value, std::vector<DriverEntry> &entries, SearchReport &report)
{
	if (value.empty())
		return;
	for (unsigned position = 1;; position++) {
		size_t end = std::min(value.find_first_of(":;"), value.size());
		std::string_view name = value.substr(0, end);
		if (name.empty())
			report.push_back({Kind::line, Outcome::refused, kEnvironment,
				position, {}, {}, EINVAL, "empty entry"});
		else
			add_entry(name, kEnvironment, position, entries, report);
		if (end == value.size())
			return;
		value.remove_prefix(end + 1);
	}
}

std::vector<DriverEntry> collect_entries(const SearchPaths &paths, SearchReport &report)
{
	std::vector<DriverEntry> entries;
	read_environment(entries, report);
	read_directory(paths.config_directory, entries, report);
	return entries;
}

std::string search_fingerprint(const SearchPaths &paths)
{
	std::string print;
	if (const char *value = secure_getenv(kEnvironment))
		print = std::string("=") + value;
	print += '\0';

	std::unique_ptr<DIR, DirClose> directory(opendir(paths.config_directory.c_str()));
	if (!directory)
		return print + std::to_string(errno);
	struct stat status;
	if (!fstat(dirfd(directory.get()), &status))
		append_status(print, status);
	std::vector<std::string> names;
	list_directory(directory.get(), names);
	for (const std::string &name : names) {
		if (is_leftover(name))
			continue;
		print += '\0' + name;
		if (!fstatat(dirfd(directory.get()), name.c_str(), &status,
			    AT_SYMLINK_NOFOLLOW))
			append_status(print, status);
	}
	return print;
}

bool SearchStep::is_problem() const
{
	return kind != Kind::candidate &&
		(outcome == Outcome::refused || outcome == Outcome::failed);
}

std::string SearchStep::message() const
{
	std::string said = source;
	if (position)
		said += ':' + std::to_string(position);
	if (!name.empty())
		said += ": driver " + name;
	return said + ": " + text;
}

const char *to_string(SearchStep::Kind kind)
{
	switch (kind) {
	case Kind::environment:
		return "environment";
	case Kind::directory:
		return "directory";
	case Kind::file:
		return "file";
	case Kind::line:
		return "line";
	case Kind::candidate:
		return "candidate";
	case Kind::driver:
		return "driver";
	}
	return "?";
}

const char *to_string(SearchStep::Outcome outcome)
{
	switch (outcome) {
	case Outcome::ok:
		return "ok";
	case Outcome::absent:
		return "absent";
	case Outcome::ignored:
		return "ignored";
	case Outcome::refused:
		return "refused";
	case Outcome::failed:
		return "failed";
	}
	return "?";
}

} // namespace nda::extend
