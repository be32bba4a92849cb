// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/ibv_extend/log.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>

namespace nda::extend {
namespace {

void print(const char *level, const std::string &text)
{
	std::string line = std::string("libibv_extend: ") + level + ": " + text + "\n";
	fputs(line.c_str(), stderr);
}

// Whether the text is new. What was said is kept for the life of the process.
bool is_news(const std::string &text)
{
	static std::mutex mutex;
	static std::set<std::string> &said = *new std::set<std::string>;
	std::lock_guard<std::mutex> lock(mutex);
	return said.insert(text).second;
}

} // namespace

void warn(const std::string &text)
{
	static const bool wanted = secure_getenv("IBV_EXTEND_SHOW_WARNINGS");
	int saved = errno;
	if (wanted && is_news(text))
		print("warning", text);
	errno = saved;
}

void complain(const std::string &text)
{
	int saved = errno;
	print("error", text);
	errno = saved;
}

} // namespace nda::extend
