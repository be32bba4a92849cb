// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// SipHash-2-4 with 128 bits of output, a keyed hash for short inputs, and what the
// bootstrap makes of it. No cryptographic library is linked for the few hundred bytes of a
// handshake.
#ifndef NDA_LIB_SIPHASH_H
#define NDA_LIB_SIPHASH_H

#include <array>
#include <cstddef>
#include <cstdint>

namespace nda {

using Mac = std::array<uint8_t, 16>;

constexpr size_t secret_bytes = 32;

// key: 16 bytes.
Mac siphash128(const uint8_t *key, const void *data, size_t size);

// Authenticates data under a 32-byte secret: two nested keyed hashes, one per half of it,
// so that all of the secret counts. data is at most 128 bytes.
Mac secret_mac(const uint8_t *secret, const void *data, size_t size);

// In time that does not depend on the contents.
bool mac_equal(const Mac &a, const Mac &b);

} // namespace nda

#endif
