// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Errors travel as negative errno. Whoever first knows the cause says it on stderr if
// IBV_EXTEND_SHOW_WARNINGS is in the environment, as libibv_extend does.
#ifndef NDA_RXE_ERROR_H
#define NDA_RXE_ERROR_H

#include <cerrno>
#include <new>

namespace nda::rxe {

// Returns code, a negative errno.
int fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Runs the body of a C function that returns 0 or a negative errno. std::bad_alloc is the
// one exception that can come.
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
	const int rc = guard([&] { return body(out); });
	if (rc == 0)
		return out;
	errno = -rc;
	return nullptr;
}

} // namespace nda::rxe

#endif
