// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/siphash.h"

#include <cassert>
#include <cstring>

namespace nda {
namespace {

uint64_t load64(const uint8_t *bytes)
{
	uint64_t value = 0;
	for (int i = 7; i >= 0; i--)
		value = value << 8 | bytes[i];
	return value;
}

void store64(uint8_t *bytes, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		bytes[i] = static_cast<uint8_t>(value >> 8 * i);
}

struct State {
	uint64_t v0, v1, v2, v3;

	static uint64_t rotate(uint64_t x, int bits)
	{
		return x << bits | x >> (64 - bits);
	}

	void round()
	{
		v0 += v1;
		v1 = rotate(v1, 13) ^ v0;
		v0 = rotate(v0, 32);
		v2 += v3;
		v3 = rotate(v3, 16) ^ v2;
		v0 += v3;
		v3 = rotate(v3, 21) ^ v0;
		v2 += v1;
		v1 = rotate(v1, 17) ^ v2;
		v2 = rotate(v2, 32);
	}
	void absorb(uint64_t word)
	{
		v3 ^= word;
		round();
		round();
		v0 ^= word;
	}
	uint64_t finish()
	{
		for (int i = 0; i < 4; i++)
			round();
		return v0 ^ v1 ^ v2 ^ v3;
	}
};

} // namespace

Mac siphash128(const uint8_t *key, const void *data, size_t size)
{
	const uint64_t k0 = load64(key), k1 = load64(key + 8);
	// The constants spell "somepseudorandomlygeneratedbytes"; 0xee marks 128 bits of
	// output.
	State s = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du ^ 0xee,
		k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u};
	const uint8_t *bytes = static_cast<const uint8_t *>(data);
	size_t left = size;
	for (; left >= 8; left -= 8, bytes += 8)
		s.absorb(load64(bytes));
	uint8_t last[8] = {};
	if (left)
		memcpy(last, bytes, left);
	last[7] = static_cast<uint8_t>(size);
	s.absorb(load64(last));

	Mac out;
	s.v2 ^= 0xee;
	store64(out.data(), s.finish());
	s.v1 ^= 0xdd;
	store64(out.data() + 8, s.finish());
	return out;
}

Mac secret_mac(const uint8_t *secret, const void *data, size_t size)
{
	uint8_t outer[16 + 128];
	assert(size <= 128);
	const Mac inner = siphash128(secret, data, size);
	memcpy(outer, inner.data(), inner.size());
	memcpy(outer + inner.size(), data, size);
	return siphash128(secret + 16, outer, inner.size() + size);
}

bool mac_equal(const Mac &a, const Mac &b)
{
	volatile uint8_t difference = 0;
	for (size_t i = 0; i < a.size(); i++)
		difference = difference | (a[i] ^ b[i]);
	return difference == 0;
}

} // namespace nda
