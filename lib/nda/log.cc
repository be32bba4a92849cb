// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/log.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <unistd.h>

namespace nda {

bool log_enabled(LogLevel level)
{
	static const LogLevel limit = asked_log_level();
	return level <= limit;
}

void log_line(LogLevel level, const char *format, ...)
{
	const int saved = errno;
	char line[1200];
	int length =
		snprintf(line, sizeof(line), "nda[%d]: %s: ", static_cast<int>(getpid()),
			log_level_names[static_cast<int>(level)]);
	va_list arguments;
	va_start(arguments, format);
	const int more =
		vsnprintf(line + length, sizeof(line) - 1 - length, format, arguments);
	va_end(arguments);
	length += more < 0 ? 0 : more;
	if (length > static_cast<int>(sizeof(line)) - 2)
		length = static_cast<int>(sizeof(line)) - 2;
	line[length++] = '\n';
	// One write per line, so that the lines of several processes stay whole. Where
	// stderr is closed there is nobody to tell.
	if (write(STDERR_FILENO, line, static_cast<size_t>(length)) < 0) {}
	errno = saved;
}

} // namespace nda
