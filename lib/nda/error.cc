// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/error.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "lib/nda/log.h"

namespace nda {
namespace {

// Plain memory: reporting "out of memory" must not need any.
thread_local char detail[error_detail_bytes];

} // namespace

const char *error_detail()
{
	return detail;
}

void clear_error_detail()
{
	detail[0] = '\0';
}

const char *errno_text(int error)
{
	static thread_local char buffer[64];
	return strerror_r(abs(error), buffer, sizeof(buffer));
}

int fail(int code, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(detail, sizeof(detail), format, arguments);
	va_end(arguments);
	NDA_LOG(LogLevel::err, "%s", detail);
	return code;
}

int fail_errno(int code, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	const int length = vsnprintf(detail, sizeof(detail), format, arguments);
	va_end(arguments);
	if (length >= 0 && static_cast<size_t>(length) < sizeof(detail))
		snprintf(detail + length, sizeof(detail) - static_cast<size_t>(length),
			": %s", errno_text(code));
	NDA_LOG(LogLevel::err, "%s", detail);
	return code;
}

int fail_in(int code, const char *format, ...)
{
	char rest[error_detail_bytes];
	snprintf(rest, sizeof(rest), "%s", detail[0] ? detail : errno_text(code));
	va_list arguments;
	va_start(arguments, format);
	const int length = vsnprintf(detail, sizeof(detail), format, arguments);
	va_end(arguments);
	if (length < 0 || static_cast<size_t>(length) >= sizeof(detail))
		return code;
	const size_t room = sizeof(detail) - static_cast<size_t>(length);
	if (snprintf(detail + length, room, ": %s", rest) >= static_cast<int>(room))
		memcpy(detail + sizeof(detail) - 4, "...", 4);
	return code;
}

} // namespace nda
