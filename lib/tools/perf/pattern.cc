// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/pattern.h"

#include <cstring>

namespace nda::perf {
namespace {

// A bijection of 64-bit words that spreads each input bit over the output.
uint64_t mix(uint64_t v)
{
	v = (v ^ (v >> 32)) * 0x9fb21c651e98df25u;
	v = (v ^ (v >> 29)) * 0xd6e8feb86659fd93u;
	return v ^ (v >> 32);
}

class Words {
public:
	Words(uint32_t pe, uint64_t message) : seed_(mix(mix(pe + 1u) + message)) {}
	uint64_t operator[](uint64_t index) const { return mix(seed_ + index); }

private:
	const uint64_t seed_;
};

} // namespace

uint8_t pattern_byte(uint32_t pe, uint64_t message, uint64_t offset)
{
	return uint8_t(Words(pe, message)[offset / 8] >> offset % 8 * 8);
}

void pattern_fill(void *data, size_t size, uint32_t pe, uint64_t message)
{
	const Words words(pe, message);
	auto *bytes = static_cast<uint8_t *>(data);
	for (size_t at = 0; at < size; at += 8) {
		uint64_t word = words[at / 8];
		memcpy(bytes + at, &word, size - at < 8 ? size - at : 8);
	}
}

void poison_fill(void *data, size_t size)
{
	memset(data, pattern_poison, size);
}

size_t pattern_check(const void *data, size_t size, uint32_t pe, uint64_t message)
{
	const Words words(pe, message);
	auto *bytes = static_cast<const uint8_t *>(data);
	for (size_t at = 0; at < size; at += 8) {
		uint64_t word = words[at / 8];
		size_t n = size - at < 8 ? size - at : 8;
		if (memcmp(bytes + at, &word, n) == 0)
			continue;
		while (bytes[at] == pattern_byte(pe, message, at))
			at++;
		return at;
	}
	return size;
}

size_t poison_check(const void *data, size_t size)
{
	auto *bytes = static_cast<const uint8_t *>(data);
	for (size_t at = 0; at < size; at++)
		if (bytes[at] != pattern_poison)
			return at;
	return size;
}

} // namespace nda::perf
