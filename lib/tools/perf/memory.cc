// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/memory.h"

#include <algorithm>
#include <fstream>

#include <nda/channel.h>
#include <nda/hw/hns1825.h>
#include <nda/hw/in_die.h>
#include <nda/hw/udma.h>
#include <nda/hw/xscale.h>
#include <nda/table.h>

namespace nda::perf {
namespace {

// Records, scratch, the pages that rings fill up, and what the host keeps of a queue.
constexpr uint64_t queue_extra_bytes = 24 << 10;
constexpr uint64_t npu_spare_bytes = 64 << 20;

// A slot of Soft-RoCE's rings, of which the kernel makes twice as many as were asked for.
constexpr uint64_t rxe_wqe_slot_bytes = 256;
constexpr uint64_t rxe_cqe_slot_bytes = 64;

uint64_t ring_bytes(uint32_t format, uint64_t depth)
{
	switch (format) {
	case NDA_FORMAT_HNS1825:
		return depth * (hw::hns1825::wqe_bytes + hw::hns1825::default_cqe_stride);
	case NDA_FORMAT_IN_DIE:
		return depth * (hw::in_die::wqe_bytes + hw::in_die::cqe_bytes);
	case NDA_FORMAT_XSCALE:
		return depth * (hw::xscale::wqe_bytes + hw::xscale::default_cqe_stride);
	case NDA_FORMAT_UDMA:
		// Each message may take several blocks, and each block a completion.
		return std::min<uint64_t>(depth * hw::udma::max_bbs, hw::udma::max_depth) *
			(hw::udma::bb_bytes + hw::udma::cqe_bytes);
	default:
		return 2 * depth * (rxe_wqe_slot_bytes + rxe_cqe_slot_bytes);
	}
}

// Of one PE. A jetty does not send to its own PE.
uint64_t queues_of(const Options &o, uint32_t format)
{
	return uint64_t(o.cores) * o.queues * (o.pes - (format == NDA_FORMAT_UDMA));
}

// What of its heap a PE writes to, and its copy of a part.
uint64_t used_bytes(const Options &o, const MemoryPlan &plan)
{
	if (o.op != Op::put && o.op != Op::get && o.op != Op::signal)
		return 2 * plan.part_bytes;
	uint64_t area = 0;
	for (uint64_t size : o.sizes)
		area = std::max(area,
			layout_of(size, o.cores, o.window, plan.part_bytes).area_bytes);
	return 4 * area;
}

std::string mib(uint64_t bytes)
{
	return std::to_string(bytes >> 20) + " MiB";
}

} // namespace

uint64_t queue_bytes(uint32_t format, uint32_t depth)
{
	return ring_bytes(format, depth) + queue_extra_bytes;
}

uint64_t npu_bytes(const Options &o, uint32_t format, uint64_t heap_bytes)
{
	return heap_bytes + queues_of(o, format) * queue_bytes(format, o.depth) +
		npu_spare_bytes;
}

std::string check_memory(
	const Options &o, uint32_t format, const MemoryPlan &plan, uint64_t available)
{
	// While a group is made each PE hears of every queue of all, and keeps its own.
	const uint64_t descriptors =
		queues_of(o, format) * (o.pes + 1) * NDA_CHANNEL_DESC_BYTES;
	const uint64_t need = o.local_pes() *
		(queues_of(o, format) * queue_bytes(format, o.depth) + descriptors +
			used_bytes(o, plan));
	if (available == 0 || need <= available)
		return "";
	return std::to_string(o.local_pes()) + " PEs here with " +
		std::to_string(queues_of(o, format)) + " queues each, of depth " +
		std::to_string(o.depth) + ", need about " + mib(need) +
		" of memory, and the machine has " + mib(available) +
		" (MemAvailable of /proc/meminfo)";
}

uint64_t available_bytes()
{
	std::ifstream file("/proc/meminfo");
	std::string name;
	uint64_t kib;
	std::string unit;
	while (file >> name >> kib && std::getline(file, unit))
		if (name == "MemAvailable:")
			return kib << 10;
	return 0;
}

} // namespace nda::perf
