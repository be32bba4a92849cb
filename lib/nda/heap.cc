// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/heap.h"

#include <algorithm>
#include <cerrno>

#include "lib/nda/error.h"

namespace nda {
namespace {

// As NPU memory itself: a cache line, or a page from a page upwards.
constexpr uint64_t line = 64, page = 4096;

uint64_t align_up(uint64_t value, uint64_t alignment)
{
	return (value + alignment - 1) & ~(alignment - 1);
}

} // namespace

int Heap::alloc(uint64_t bytes, uint64_t &offset)
{
	if (bytes == 0)
		return fail(-EINVAL, "heap: alloc of 0 bytes");
	const uint64_t alignment = bytes >= page ? page : line;
	uint64_t at = 0;
	auto next = used_.begin();
	if (bytes <= size_) {
		for (; next != used_.end(); ++next) {
			if (at + bytes <= next->first)
				break;
			at = align_up(next->first + next->second, alignment);
		}
	}
	if (bytes > size_ || at > size_ - bytes)
		return fail(-ENOMEM,
			"heap: alloc of %llu bytes: the largest free piece of %llu has "
			"%llu",
			static_cast<unsigned long long>(bytes),
			static_cast<unsigned long long>(size_),
			static_cast<unsigned long long>(largest_gap()));
	// Whole lines, so that no two allocations share one.
	used_.emplace_hint(next, at, align_up(bytes, line));
	offset = at;
	return 0;
}

int Heap::free(uint64_t offset)
{
	if (used_.erase(offset) == 0)
		return fail(-EINVAL, "heap: free: nothing was allocated at offset 0x%llx",
			static_cast<unsigned long long>(offset));
	return 0;
}

uint64_t Heap::largest_gap() const
{
	uint64_t largest = 0, at = 0;
	for (const auto &[offset, bytes] : used_) {
		largest = std::max(largest, offset - at);
		at = offset + bytes;
	}
	return std::max(largest, at < size_ ? size_ - at : 0);
}

} // namespace nda
