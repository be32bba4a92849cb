// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_COMMON_LOG_LEVEL_H
#define NDA_COMMON_LOG_LEVEL_H

#include <cstdlib>
#include <cstring>

namespace nda {

enum class LogLevel {
	none,
	err,
	warn,
	info,
	debug
};

constexpr const char *log_level_names[] = {"none", "err", "warn", "info", "debug"};

// What NDA_LOG in the environment asks for; none if it says something else.
inline LogLevel asked_log_level()
{
	const char *value = secure_getenv("NDA_LOG");
	for (int i = 0; value && i <= static_cast<int>(LogLevel::debug); i++)
		if (strcmp(value, log_level_names[i]) == 0)
			return static_cast<LogLevel>(i);
	return LogLevel::none;
}

} // namespace nda

#endif
