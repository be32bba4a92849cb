// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/layout.h"

#include <algorithm>

#include "lib/tools/perf/pattern.h"

namespace nda::perf {
namespace {

constexpr uint64_t guard_bytes = 64; // at least, between two slots
constexpr uint64_t areas = 3;        // sources, targets, targets of memcpy
constexpr uint64_t default_area_bytes = 16 << 20;
constexpr uint64_t max_piece_bytes = 32 << 20; // bounds the time of a step
constexpr uint64_t spare_bytes = 1 << 20; // what the group keeps in its heap, and alignment
constexpr uint64_t page_bytes = 4096;
constexpr uint64_t verified_messages = 240; // of a core, about

uint64_t align_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

uint64_t align_down(uint64_t value, uint64_t to)
{
	return value / to * to;
}

// Each core's slot in each round is a message of its own.
uint64_t message_number(const Layout &layout, uint32_t cores, uint64_t round, uint64_t slot)
{
	return round * cores * layout.slots + slot;
}

std::string too_small(const Options &o, uint64_t need)
{
	return "--heap: " + std::to_string(o.heap_bytes) + " bytes: this needs " +
		std::to_string(need);
}

std::string plan_areas(const Options &o, MemoryPlan *plan)
{
	uint64_t least = 0;
	uint64_t wanted = 0;
	for (uint64_t size : o.sizes) {
		least = std::max(least, layout_of(size, o.cores, 1, UINT64_MAX).area_bytes);
		wanted = std::max(
			wanted, layout_of(size, o.cores, o.window, UINT64_MAX).area_bytes);
	}
	if (o.heap_bytes == 0) {
		uint64_t area = std::max(least, std::min(wanted, default_area_bytes));
		plan->part_bytes = align_up(area, page_bytes);
		plan->heap_bytes = areas * plan->part_bytes + spare_bytes;
		return "";
	}
	const uint64_t need = areas * align_up(least, page_bytes) + spare_bytes;
	if (o.heap_bytes < need)
		return too_small(o, need);
	plan->heap_bytes = o.heap_bytes;
	plan->part_bytes = align_down((o.heap_bytes - spare_bytes) / areas, page_bytes);
	return "";
}

std::string plan_formers(const Options &o, MemoryPlan *plan)
{
	plan->part_bytes = align_up(o.cores * former_slots(o) * 8, page_bytes);
	const uint64_t need = plan->part_bytes + page_bytes + spare_bytes;
	if (o.heap_bytes != 0 && o.heap_bytes < need)
		return too_small(o, need);
	plan->heap_bytes = o.heap_bytes != 0 ? o.heap_bytes : need;
	return "";
}

// What a barrier needs is little, whatever it is.
std::string plan_page(const Options &o, MemoryPlan *plan)
{
	plan->part_bytes = page_bytes;
	const uint64_t need = plan->part_bytes + spare_bytes;
	if (o.heap_bytes != 0 && o.heap_bytes < need)
		return too_small(o, need);
	plan->heap_bytes = o.heap_bytes != 0 ? o.heap_bytes : need;
	return "";
}

std::string plan_piece(const Options &o, MemoryPlan *plan)
{
	const uint64_t need = spare_bytes + page_bytes;
	if (o.heap_bytes != 0 && o.heap_bytes < need)
		return too_small(o, need);
	plan->heap_bytes = o.heap_bytes != 0 ? o.heap_bytes : max_piece_bytes + spare_bytes;
	plan->part_bytes = std::min(
		align_down(plan->heap_bytes - spare_bytes, page_bytes), max_piece_bytes);
	return "";
}

} // namespace

std::string plan_memory(const Options &o, MemoryPlan *plan)
{
	switch (o.op) {
	case Op::copy:
		return plan_piece(o, plan);
	case Op::atomic:
		return plan_formers(o, plan);
	case Op::barrier:
		return plan_page(o, plan);
	case Op::put:
	case Op::get:
	case Op::signal:
		break;
	}
	return plan_areas(o, plan);
}

// A core with many peers has few messages for each.
uint64_t verified_changes(const Options &o)
{
	return std::max<uint64_t>(2, verified_messages / (o.pes - 1));
}

uint64_t former_slots(const Options &o)
{
	return std::max<uint64_t>(o.window, verified_changes(o) * (o.pes - 1));
}

Layout layout_of(uint64_t size, uint32_t cores, uint32_t window, uint64_t area_bytes)
{
	Layout layout;
	layout.size = size;
	layout.stride = align_up(size, guard_bytes) + guard_bytes;
	layout.slots = std::min<uint64_t>(window, area_bytes / (layout.stride * cores));
	layout.area_bytes = layout.stride * layout.slots * cores;
	return layout;
}

void fill_area(uint8_t *data, const Layout &layout, uint32_t cores, uint32_t sender,
	uint64_t round)
{
	for (uint64_t slot = 0; slot < layout.slots * cores; slot++) {
		uint8_t *at = data + slot * layout.stride;
		pattern_fill(at, layout.size, sender,
			message_number(layout, cores, round, slot));
		poison_fill(at + layout.size, layout.stride - layout.size);
	}
}

std::string check_area(const uint8_t *data, const Layout &layout, uint32_t cores,
	uint32_t sender, uint64_t round, uint64_t written)
{
	for (uint64_t slot = 0; slot < layout.slots * cores; slot++) {
		const uint8_t *at = data + slot * layout.stride;
		const uint64_t number = message_number(layout, cores, round, slot);
		std::string name = "slot " + std::to_string(slot) + " of round " +
			std::to_string(round);
		size_t good = pattern_check(at, layout.size, sender, number);
		bool may_be_old = slot % layout.slots >= written;
		if (good != layout.size &&
			!(may_be_old && poison_check(at, layout.size) == layout.size))
			return name + ": byte " + std::to_string(good) + " is " +
				std::to_string(at[good]) + ", not " +
				std::to_string(pattern_byte(sender, number, good));
		const uint64_t gap = layout.stride - layout.size;
		size_t clean = poison_check(at + layout.size, gap);
		if (clean != gap)
			return name + ": byte " + std::to_string(layout.size + clean) +
				", beyond its end, was written to";
	}
	return "";
}

std::string check_signals(
	const std::vector<uint64_t> &signals, uint64_t slots, uint64_t messages)
{
	uint64_t seen = 0;
	for (size_t first = 0; first < signals.size(); first += slots) {
		const uint64_t last = *std::max_element(
			signals.begin() + first, signals.begin() + first + slots);
		for (uint64_t i = 0; i < slots; i++) {
			// The last message up to that one that used the slot, if any did.
			const uint64_t expected =
				last > i ? last - (last - 1 - i) % slots : 0;
			const uint64_t there = signals[first + i];
			if (there != expected)
				return "signal " + std::to_string(first + i) + " is " +
					std::to_string(there) + ", not " +
					std::to_string(expected);
		}
		seen += last;
	}
	if (seen != messages)
		return std::to_string(seen) + " messages were signalled, not " +
			std::to_string(messages);
	return "";
}

} // namespace nda::perf
