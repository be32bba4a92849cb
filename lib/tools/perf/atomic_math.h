// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What atomics do to a counter of 4 or 8 bytes, and how it is proved that they did it. By
// host code alone, so that it doesn't depend on the path it proves.
#ifndef NDA_PERF_ATOMIC_MATH_H
#define NDA_PERF_ATOMIC_MATH_H

#include <cstdint>
#include <string>
#include <vector>

#include "lib/tools/perf/options.h"

namespace nda::perf {

// What a counter holds at the beginning.
uint64_t first_value(Atomic operation, uint32_t bytes);

// The operand of a core's i-th change. owner: the core's number among those of all PEs.
// compare_swap, which counts up: what is added.
uint64_t operand_of(Atomic operation, uint32_t bytes, uint32_t owner, uint64_t i);

// What the counter holds after the operation.
uint64_t apply(Atomic operation, uint32_t bytes, uint64_t former, uint64_t operand);

// Two operands of one core, one after the other, as one; from the operand of no change on.
uint64_t no_operand(Atomic operation, uint32_t bytes);
uint64_t fold(Atomic operation, uint32_t bytes, uint64_t operand, uint64_t next);

// Whether the operation tells what was there before.
bool fetches(Atomic operation);

// What all cores did to a counter, each folded, and what it holds in the end. "" or what is
// wrong.
std::string check_final(Atomic operation, uint32_t bytes,
	const std::vector<uint64_t> &folded, uint64_t value);

struct Change {
	uint64_t former;
	uint64_t operand;
};
// Whether the changes, in some order, lead from the first value to this one: each value
// that was there was found by the next, once. "" or what is wrong.
std::string check_chain(Atomic operation, uint32_t bytes,
	const std::vector<Change> &changes, uint64_t value);

} // namespace nda::perf

#endif
