// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/error.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <sys/resource.h>

namespace nda::soft {
namespace {

thread_local char detail[512];

void print(const char *text)
{
	fprintf(stderr, "nda_soft: %s\n", text);
}

} // namespace

const char *error_detail()
{
	return detail;
}

const char *cause(int error)
{
	static thread_local char text[128];
	struct rlimit limit;
	if (error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
		snprintf(text, sizeof(text),
			"this process may have no more than %llu descriptors (ulimit -n)",
			static_cast<unsigned long long>(limit.rlim_cur));
	else if (error == ENFILE)
		snprintf(text, sizeof(text),
			"the system has no more descriptors (sysctl fs.file-max)");
	else if (error == ENOMEM && getrlimit(RLIMIT_AS, &limit) == 0 &&
		limit.rlim_cur != RLIM_INFINITY)
		snprintf(text, sizeof(text),
			"no memory; this process may map no more than %llu KiB (ulimit -v)",
			static_cast<unsigned long long>(limit.rlim_cur / 1024));
	else
		snprintf(text, sizeof(text), "%s", strerror(error));
	return text;
}

int fail(int code, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(detail, sizeof(detail), format, args);
	va_end(args);
	if (log_enabled(LogLevel::err))
		print(detail);
	return code;
}

bool log_enabled(LogLevel level)
{
	static const LogLevel enabled = asked_log_level();
	return level <= enabled;
}

void log_line(LogLevel, const char *format, ...)
{
	int saved = errno;
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	print(text);
	errno = saved;
}

} // namespace nda::soft
