// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// How a job's memory is laid out, and what verified memory must hold.
#ifndef NDA_PERF_LAYOUT_H
#define NDA_PERF_LAYOUT_H

#include <cstdint>
#include <string>
#include <vector>

#include "lib/tools/perf/options.h"

namespace nda::perf {

// The same on every PE.
struct MemoryPlan {
	uint64_t heap_bytes;
	// Each of the three areas of put, get and signal; a piece of copy.
	uint64_t part_bytes;
};

// "" or what of the options can't be done.
std::string plan_memory(const Options &options, MemoryPlan *plan);

// Of atomic: words for former values, of each core.
uint64_t former_slots(const Options &options);
// How often each core changes each counter where it is verified that all of it was done.
uint64_t verified_changes(const Options &options);

// Where the messages of one size lie in the heap: a slot per outstanding message and core,
// `stride` apart, the bytes between two slots being nobody's.
struct Layout {
	uint64_t size;
	uint64_t stride;
	uint64_t slots; // of each core
	uint64_t area_bytes;
};

// The slots for messages of this size within area_bytes; slots is 0 if not even one fits.
Layout layout_of(uint64_t size, uint32_t cores, uint32_t window, uint64_t area_bytes);

// The area of sources that PE `sender` has in that round.
void fill_area(uint8_t *data, const Layout &layout, uint32_t cores, uint32_t sender,
	uint64_t round);

// Compares an area of targets with what `sender` sent in that round: the first `written`
// slots of each core are its messages, the others are so or untouched, and nothing else was
// touched.
// "" or what is wrong.
std::string check_area(const uint8_t *data, const Layout &layout, uint32_t cores,
	uint32_t sender, uint64_t round, uint64_t written);

// The signals of an area, one for each slot, after every core's messages carried the
// numbers from 1 on, `messages` of all cores. "" or what is wrong.
std::string check_signals(
	const std::vector<uint64_t> &signals, uint64_t slots, uint64_t messages);

} // namespace nda::perf

#endif
