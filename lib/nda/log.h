// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Lines on stderr for whoever asks: NDA_LOG=err|warn|info|debug in the environment (not
// read in a program that runs with more privilege than its caller). Silent otherwise.
#ifndef NDA_LIB_LOG_H
#define NDA_LIB_LOG_H

#include "lib/common/log_level.h"

namespace nda {

bool log_enabled(LogLevel level);
// Keeps errno.
void log_line(LogLevel level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

// Evaluates its arguments only if the line is wanted.
#define NDA_LOG(level, ...)                                                                \
	do {                                                                               \
		if (::nda::log_enabled(level))                                             \
			::nda::log_line(level, __VA_ARGS__);                               \
	} while (0)

} // namespace nda

#endif
