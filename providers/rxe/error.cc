// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/rxe/error.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace nda::rxe {

int fail(int code, const char *format, ...)
{
	if (!secure_getenv("IBV_EXTEND_SHOW_WARNINGS"))
		return code;
	char text[512] = "libnda_rxe: ";
	const size_t prefix = strlen(text);
	va_list args;
	va_start(args, format);
	const int n = vsnprintf(text + prefix, sizeof(text) - prefix - 1, format, args);
	va_end(args);
	const size_t end =
		std::min(prefix + static_cast<size_t>(std::max(n, 0)), sizeof(text) - 2);
	text[end] = '\n';
	if (write(STDERR_FILENO, text, end + 1) < 0)
		return code; // nobody to tell
	return code;
}

} // namespace nda::rxe
