// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The data that is moved when it is verified: a function of who sends, which message, and
// where in it. It is made and checked by host code alone, so that it doesn't depend on the
// path it proves.
#ifndef NDA_PERF_PATTERN_H
#define NDA_PERF_PATTERN_H

#include <cstddef>
#include <cstdint>

namespace nda::perf {

constexpr uint8_t pattern_poison = 0xa5; // what memory that nothing may write to holds

uint8_t pattern_byte(uint32_t pe, uint64_t message, uint64_t offset);
void pattern_fill(void *data, size_t size, uint32_t pe, uint64_t message);
void poison_fill(void *data, size_t size);

// The first offset in [0, size) that differs, or size.
size_t pattern_check(const void *data, size_t size, uint32_t pe, uint64_t message);
size_t poison_check(const void *data, size_t size);

} // namespace nda::perf

#endif
