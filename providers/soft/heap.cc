// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/heap.h"

#include "providers/soft/error.h"

#include <cinttypes>

namespace nda::soft {
namespace {

uint64_t round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

} // namespace

int Heap::alloc(uint64_t size, uint64_t &offset)
{
	if (size == 0)
		return fail(-EINVAL, "NPU memory: a size of 0 bytes");
	uint64_t unit = size >= page ? page : alignment;
	uint64_t want = size > UINT64_MAX - page ? UINT64_MAX : round_up(size, unit);
	for (auto [start, length] : free_) {
		uint64_t at = round_up(start, unit);
		uint64_t lead = at - start;
		if (length < lead || length - lead < want)
			continue;
		uint64_t rest = length - lead - want;
		// What can run out of memory comes first: nothing is left half done.
		std::map<uint64_t, uint64_t> tail;
		if (rest)
			tail[at + want] = rest;
		used_[at] = Block{want, 0};
		if (lead)
			free_[start] = lead;
		else
			free_.erase(start);
		free_.merge(tail);
		offset = at;
		return 0;
	}
	return fail(-ENOMEM, "NPU memory: no free range of %" PRIu64 " bytes", size);
}

int Heap::free(uint64_t offset)
{
	auto used = used_.find(offset);
	if (used == used_.end())
		return fail(-EINVAL,
			"NPU memory: offset 0x%" PRIx64
			" is not an allocation, or already freed",
			offset);
	if (used->second.pins)
		return fail(-EBUSY,
			"NPU memory: the allocation at offset 0x%" PRIx64
			" is in use by %u regions or queues",
			offset, used->second.pins);
	uint64_t size = used->second.size;
	auto next = free_.lower_bound(offset);
	if (next != free_.begin()) {
		auto before = std::prev(next);
		if (before->first + before->second == offset) {
			before->second += size;
			if (next != free_.end() && next->first == offset + size) {
				before->second += next->second;
				free_.erase(next);
			}
			used_.erase(used);
			return 0;
		}
	}
	uint64_t after = 0;
	if (next != free_.end() && next->first == offset + size)
		after = next->second;
	free_[offset] = size + after;
	if (after)
		free_.erase(offset + size);
	used_.erase(used);
	return 0;
}

std::map<uint64_t, Heap::Block>::const_iterator Heap::find(
	uint64_t offset, uint64_t size) const
{
	auto block = used_.upper_bound(offset);
	if (block == used_.begin())
		return used_.end();
	--block;
	uint64_t inside = offset - block->first;
	if (inside > block->second.size || size > block->second.size - inside)
		return used_.end();
	return block;
}

bool Heap::contains(uint64_t offset, uint64_t size) const
{
	return find(offset, size) != used_.end();
}

int Heap::pin(uint64_t offset, uint64_t size)
{
	auto block = find(offset, size);
	if (block == used_.end())
		return fail(-EINVAL,
			"NPU memory: %" PRIu64 " bytes at offset 0x%" PRIx64
			" do not lie within one allocation",
			size, offset);
	used_[block->first].pins++;
	return 0;
}

void Heap::unpin(uint64_t offset)
{
	auto block = find(offset, 1);
	if (block != used_.end() && block->second.pins)
		used_[block->first].pins--;
}

} // namespace nda::soft
