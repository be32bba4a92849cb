// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_LIB_HEAP_H
#define NDA_LIB_HEAP_H

#include <cstdint>
#include <map>

namespace nda {

// Hands out offsets in [0, size). The same calls in the same order give the same offsets on
// every PE, since nothing but them decides: first fit.
class Heap {
public:
	explicit Heap(uint64_t size) : size_(size) {}

	int alloc(uint64_t bytes, uint64_t &offset);
	int free(uint64_t offset);

private:
	uint64_t largest_gap() const;

	const uint64_t size_;
	std::map<uint64_t, uint64_t> used_; // offset to size
};

} // namespace nda

#endif
