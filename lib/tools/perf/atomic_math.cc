// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/atomic_math.h"

#include <algorithm>

namespace nda::perf {
namespace {

uint64_t all_ones(uint32_t bytes)
{
	return bytes == 4 ? UINT32_MAX : UINT64_MAX;
}

bool keeps_last(Atomic operation)
{
	return operation == Atomic::swap || operation == Atomic::set;
}

std::string not_expected(uint64_t value, const std::string &expected)
{
	return "the counter is " + std::to_string(value) + ", not " + expected;
}

} // namespace

// Where counts are added, not far from where a carry to the upper half is due.
uint64_t first_value(Atomic operation, uint32_t bytes)
{
	if (operation == Atomic::fetch_and)
		return all_ones(bytes);
	return operation == Atomic::fetch_or ? 0 : 0xffffffc0;
}

uint64_t operand_of(Atomic operation, uint32_t bytes, uint32_t owner, uint64_t i)
{
	const uint64_t bit = uint64_t(1) << owner % (bytes * 8);
	switch (operation) {
	case Atomic::fetch_add:
	case Atomic::add:
	case Atomic::compare_swap:
		return 1;
	case Atomic::swap:
	case Atomic::set:
		// Nobody else's, and not the first value: there are fewer than 2^13 owners.
		return ((uint64_t(owner) + 1) << (bytes == 4 ? 19 : 40) |
			(i & (bytes == 4 ? 0x7ffff : 0xffffffffff)));
	case Atomic::fetch_and:
		return all_ones(bytes) & ~bit;
	case Atomic::fetch_or:
		return bit;
	case Atomic::fetch_xor:
		// Odd factors: all bits take part, and neighbours differ.
		return all_ones(bytes) &
			((owner + 1) * 0x9fb21c651e98df25u ^ (i + 1) * 0xd6e8feb86659fd93u);
	}
	return 0;
}

uint64_t apply(Atomic operation, uint32_t bytes, uint64_t former, uint64_t operand)
{
	switch (operation) {
	case Atomic::fetch_add:
	case Atomic::add:
	case Atomic::compare_swap:
		return (former + operand) & all_ones(bytes);
	case Atomic::swap:
	case Atomic::set:
		return operand;
	case Atomic::fetch_and:
		return former & operand;
	case Atomic::fetch_or:
		return former | operand;
	case Atomic::fetch_xor:
		return former ^ operand;
	}
	return former;
}

uint64_t no_operand(Atomic operation, uint32_t bytes)
{
	if (keeps_last(operation))
		return first_value(operation, bytes);
	return operation == Atomic::fetch_and ? all_ones(bytes) : 0;
}

uint64_t fold(Atomic operation, uint32_t bytes, uint64_t operand, uint64_t next)
{
	return apply(operation, bytes, operand, next);
}

bool fetches(Atomic operation)
{
	return operation != Atomic::add && operation != Atomic::set;
}

std::string check_final(Atomic operation, uint32_t bytes,
	const std::vector<uint64_t> &folded, uint64_t value)
{
	const uint64_t first = first_value(operation, bytes);
	if (keeps_last(operation)) {
		const auto count = [&](uint64_t v) {
			return uint64_t(std::count(folded.begin(), folded.end(), v));
		};
		const bool untouched = count(first) == folded.size();
		if (value == first ? untouched : count(value) != 0)
			return "";
		return not_expected(value, "what somebody stored there last");
	}
	uint64_t expected = first;
	for (uint64_t operand : folded)
		expected = apply(operation, bytes, expected, operand);
	return value == expected ? "" : not_expected(value, std::to_string(expected));
}

std::string check_chain(Atomic operation, uint32_t bytes,
	const std::vector<Change> &changes, uint64_t value)
{
	std::vector<uint64_t> there = {first_value(operation, bytes)};
	std::vector<uint64_t> found = {value};
	for (const Change &change : changes) {
		there.push_back(apply(operation, bytes, change.former, change.operand));
		found.push_back(change.former);
	}
	std::sort(there.begin(), there.end());
	std::sort(found.begin(), found.end());
	for (size_t i = 0; i < there.size(); i++) {
		if (there[i] < found[i])
			return "nobody found the value " + std::to_string(there[i]) +
				" that was there";
		if (there[i] > found[i])
			return "the value " + std::to_string(found[i]) +
				" was found more often than it was there";
	}
	return "";
}

} // namespace nda::perf
