// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The error detail: per thread, the text of the last failed call. Errors travel as negative
// errno; whoever knows the cause sets the text, callers above put their object before it.
#ifndef NDA_LIB_ERROR_H
#define NDA_LIB_ERROR_H

#include <cstddef>

namespace nda {

constexpr size_t error_detail_bytes = 1024;

const char *error_detail();
void clear_error_detail();

// Sets the text and returns code, a negative errno.
int fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

// As fail, with ": " and the text of code after the message.
int fail_errno(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Puts "message: " before the text (or before the text of code if there is none yet).
int fail_in(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Text of a positive or negative errno; valid until the thread's next call.
const char *errno_text(int error);

} // namespace nda

#endif
