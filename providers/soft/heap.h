// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_SOFT_HEAP_H
#define NDA_SOFT_HEAP_H

#include <cstdint>
#include <map>

namespace nda::soft {

// Divides a range of offsets, first fit. It never touches what it divides. Not safe for
// concurrent use.
class Heap {
public:
	static constexpr uint64_t alignment = 64;
	static constexpr uint64_t page = 4096; // alignment of what is at least that large

	explicit Heap(uint64_t size) { free_[0] = size; }

	// -EINVAL for size 0, -ENOMEM.
	int alloc(uint64_t size, uint64_t &offset);
	// -EINVAL if offset is not the start of an allocation, -EBUSY while it is pinned.
	int free(uint64_t offset);
	// Whether [offset, offset + size) lies within one allocation.
	bool contains(uint64_t offset, uint64_t size) const;
	// The allocation that holds the range stays until as many unpins. -EINVAL if none.
	int pin(uint64_t offset, uint64_t size);
	void unpin(uint64_t offset);

private:
	struct Block {
		uint64_t size;
		uint32_t pins;
	};
	// The allocation that offset lies in, or end().
	std::map<uint64_t, Block>::const_iterator find(
		uint64_t offset, uint64_t size) const;

	std::map<uint64_t, uint64_t> free_; // offset to size; neighbours are merged
	std::map<uint64_t, Block> used_;
};

} // namespace nda::soft

#endif
