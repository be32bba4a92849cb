// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/siphash.h"

#include <cstdio>
#include <gtest/gtest.h>
#include <string>

namespace nda {
namespace {

std::string hex(const Mac &mac)
{
	std::string text;
	char digits[3];
	for (const uint8_t byte : mac) {
		snprintf(digits, sizeof(digits), "%02X", byte);
		text += digits;
	}
	return text;
}

// Key 00 01 .. 0f, message 00 01 .. n-1. Made by
//   openssl mac -macopt hexkey:000102030405060708090a0b0c0d0e0f -macopt size:16 -in M
//   SIPHASH
// and for lengths 0 to 3 also the first lines of the reference implementation's table.
struct Vector {
	size_t length;
	const char *mac;
};

class SipHash128 : public testing::TestWithParam<Vector> {};

TEST_P(SipHash128, GivesTheReferenceValue)
{
	uint8_t key[16], message[64];
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = static_cast<uint8_t>(i);
	for (size_t i = 0; i < sizeof(message); i++)
		message[i] = static_cast<uint8_t>(i);
	EXPECT_EQ(hex(siphash128(key, message, GetParam().length)), GetParam().mac);
}

INSTANTIATE_TEST_SUITE_P(Reference, SipHash128,
	testing::Values(Vector{0, "A3817F04BA25A8E66DF67214C7550293"},
		Vector{1, "DA87C1D86B99AF44347659119B22FC45"},
		Vector{2, "8177228DA4A45DC7FCA38BDEF60AFFE4"},
		Vector{3, "9C70B60C5267A94E5F33B6B02985ED51"},
		Vector{7, "A1F1EBBED8DBC153C0B84AA61FF08239"},
		Vector{8, "3B62A9BA6258F5610F83E264F31497B4"},
		Vector{15, "5493E99933B0A8117E08EC0F97CFC3D9"},
		Vector{63, "5150D1772F50834A503E069A973FBD7C"}));

TEST(SecretMac, DependsOnEveryByteOfTheSecret)
{
	uint8_t secret[secret_bytes] = {};
	const Mac plain = secret_mac(secret, "message", 7);
	for (size_t i = 0; i < sizeof(secret); i++) {
		secret[i] = 1;
		EXPECT_FALSE(mac_equal(plain, secret_mac(secret, "message", 7))) << i;
		secret[i] = 0;
	}
}

TEST(SecretMac, DependsOnTheMessageAndItsLength)
{
	const uint8_t secret[secret_bytes] = {};
	const Mac plain = secret_mac(secret, "message\0", 7);
	EXPECT_FALSE(mac_equal(plain, secret_mac(secret, "messagE\0", 7)));
	EXPECT_FALSE(mac_equal(plain, secret_mac(secret, "message\0", 8)));
	EXPECT_TRUE(mac_equal(plain, secret_mac(secret, "message\0", 7)));
}

TEST(MacEqual, SeesADifferenceInAnyByte)
{
	const Mac a = {};
	for (size_t i = 0; i < a.size(); i++) {
		Mac b = a;
		b[i] = 0x80;
		EXPECT_FALSE(mac_equal(a, b)) << i;
	}
}

} // namespace
} // namespace nda
