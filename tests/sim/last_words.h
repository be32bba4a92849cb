/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a process says when it dies of a signal, or of what a sanitizer has found. */
#ifndef TESTS_SIM_LAST_WORDS_H
#define TESTS_SIM_LAST_WORDS_H

#include <string>

namespace nda::test {

/* From now on, to stderr; "": nothing. What was going to be done about the signal still is.
 * By the main thread, while no other changes them. */
void set_last_words(const std::string &words);

} // namespace nda::test

#endif
