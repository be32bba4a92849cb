// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Files and directories, of which any may be missing.
#include "lib/tools/info/gather.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <grp.h>
#include <iterator>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace nda::info {
namespace {

namespace fs = std::filesystem;

// "eth2" before "eth10".
bool natural_less(const std::string &a, const std::string &b)
{
	const auto digits = [](const std::string &s) {
		size_t at = s.size();
		while (at > 0 && isdigit(static_cast<unsigned char>(s[at - 1])))
			at--;
		return at;
	};
	const size_t a_at = digits(a), b_at = digits(b);
	const int order = a.compare(0, a_at, b, 0, b_at);
	if (order != 0)
		return order < 0;
	if (a.size() != b.size())
		return a.size() < b.size();
	return a < b;
}

std::string owner_text(const struct stat &status)
{
	const passwd *user = getpwuid(status.st_uid);
	std::string text = user ? user->pw_name : std::to_string(status.st_uid);
	const group *found = getgrgid(status.st_gid);
	text += ":" + (found ? std::string(found->gr_name) : std::to_string(status.st_gid));
	char mode[8];
	snprintf(mode, sizeof(mode), " %04o", unsigned(status.st_mode & 07777));
	return text + mode;
}

} // namespace

std::string read_text(const std::string &path)
{
	std::ifstream file(path, std::ios::binary);
	std::string text{std::istreambuf_iterator<char>(file), {}};
	while (!text.empty() && (text.back() == '\n' || text.back() == '\0'))
		text.pop_back();
	return text;
}

std::vector<std::string> list(const std::string &directory)
{
	std::vector<std::string> names;
	std::error_code error;
	for (fs::directory_iterator at(directory, error), end; !error && at != end;
		at.increment(error))
		names.push_back(at->path().filename());
	std::sort(names.begin(), names.end(), natural_less);
	return names;
}

std::string real_path(const std::string &path)
{
	std::error_code error;
	const fs::path found = fs::canonical(path, error);
	return error ? "" : found.string();
}

std::string system_path(const std::string &root, const std::string &link)
{
	const std::string path = real_path(link);
	const std::string sys = real_path(root + "/sys");
	return path.compare(0, sys.size(), sys) == 0 ? path.substr(sys.size()) : path;
}

Node look_at_node(const std::string &root, const std::string &path, int access_mode)
{
	Node node;
	node.path = path;
	struct stat status;
	if (stat((root + path).c_str(), &status))
		return node;
	node.exists = true;
	node.allowed = euidaccess((root + path).c_str(), access_mode) == 0;
	node.mode = owner_text(status);
	return node;
}

} // namespace nda::info
