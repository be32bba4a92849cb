// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Errors travel as negative errno; whoever first knows the cause sets the text of it, per
// thread. With NDA_LOG=err or more the text goes to stderr too.
#ifndef NDA_SOFT_ERROR_H
#define NDA_SOFT_ERROR_H

#include <cerrno>
#include <new>

#include "lib/common/log_level.h"

namespace nda::soft {

// Sets the calling thread's text and returns code, a negative errno.
int fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *error_detail();
// As strerror, but says of which limit there is no more; of this thread, until its next.
const char *cause(int error);

bool log_enabled(LogLevel level);
// Keeps errno.
void log_line(LogLevel level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#define SOFT_LOG(level, ...)                                                               \
	do {                                                                               \
		if (::nda::soft::log_enabled(::nda::LogLevel::level))                      \
			::nda::soft::log_line(::nda::LogLevel::level, __VA_ARGS__);        \
	} while (0)

// Runs the body of a C function that returns 0 or a negative errno. std::bad_alloc is the
// one exception that can come: this library throws none.
template <class Body>
int guard(Body &&body) noexcept
{
	try {
		return body();
	} catch (const std::bad_alloc &) {
		return fail(-ENOMEM, "out of memory");
	}
}

// The same for one that returns a pointer: body(out) sets it, or returns a negative errno.
template <class T, class Body>
T *guard_pointer(Body &&body) noexcept
{
	T *out = nullptr;
	int rc = guard([&] { return body(out); });
	if (rc == 0)
		return out;
	errno = -rc;
	return nullptr;
}

} // namespace nda::soft

#endif
