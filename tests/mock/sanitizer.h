/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which sanitizer this is built with: NDA_ASAN and NDA_TSAN are 1 or 0. */
#ifndef NDA_TESTS_MOCK_SANITIZER_H
#define NDA_TESTS_MOCK_SANITIZER_H

#ifdef __has_feature /* clang */
#define NDA_ASAN __has_feature(address_sanitizer)
#define NDA_TSAN __has_feature(thread_sanitizer)
#else
#ifdef __SANITIZE_ADDRESS__
#define NDA_ASAN 1
#else
#define NDA_ASAN 0
#endif
#ifdef __SANITIZE_THREAD__
#define NDA_TSAN 1
#else
#define NDA_TSAN 0
#endif
#endif

#endif
