// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Doorbells of NICs in the address space of an Ascend NPU, and host memory there, lines of
// which take the place of those that cannot be.
#ifndef NDA_LIB_ASCEND_DOORBELLS_H
#define NDA_LIB_ASCEND_DOORBELLS_H

#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <vector>

#include <ibv_extend.h>

#include "lib/nda/ascend_api.h"

namespace nda {

// Any thread may use it, of any context: the driver names the device by its number.
class AscendDoorbells {
public:
	// name: goes before errors' texts; device: the logic id.
	AscendDoorbells(const AscendApi &api, const char *name, uint32_t device)
		: api_(api), name_(name), device_(device)
	{}
	AscendDoorbells(const AscendDoorbells &) = delete;
	AscendDoorbells &operator=(const AscendDoorbells &) = delete;
	~AscendDoorbells();

	// The same descriptor has the same address, and is unmapped as often as it was
	// mapped. -EOPNOTSUPP for a host address where the NPU is not attached by PCIe, or
	// its vector cores do not reach host memory, or for a UB resource where the driver
	// has no function for it.
	int map(const doorbell_map_desc &desc, uint64_t &addr);
	// -EINVAL unless desc is mapped to addr.
	int unmap(uint64_t addr, const doorbell_map_desc &desc);

	// A line of host memory that cores write to at addr, zeroed.
	int alloc_slot(uint64_t &addr, uint64_t *&host);
	int free_slot(uint64_t addr);

	// Host memory that cores reach at addr: whole pages, zeroed. what: its name in
	// texts. -EOPNOTSUPP where vector cores do not reach any.
	int map_memory(const char *what, uint64_t size, void *&host, uint64_t &addr) const;
	// What the driver does not give back stays mapped.
	int unmap_memory(const char *what, void *host, uint64_t size) const;

private:
	// What the driver maps: pages of the host, or a doorbell page of a UB controller.
	struct Range {
		bool ub;
		uint64_t begin; // host address; UB: of the page's first byte
		uint64_t size;  // bytes
		uint64_t guid_low, guid_high;
		uint32_t guid_index;
		uint64_t npu_addr; // of begin
		uint32_t users;
	};
	struct Mapping {
		doorbell_map_desc desc;
		uint64_t addr;
		Range *range;
		uint32_t users;
	};
	struct SlotPage {
		void *host;
		uint64_t npu_addr;
		std::vector<bool> taken;
	};

	int check_reach(const char *what) const;
	int check_host(const doorbell_map_desc &desc) const;
	int check_ub(const doorbell_map_desc &desc) const;
	Range *find_range(const Range &wanted);
	int create_range(Range &range);
	int map_host_range(Range &range);
	int map_ub_range(Range &range);
	int remove_range(const Range &range);
	uint32_t free_guid_index(const Range &wanted) const;
	int create_slot_page();

	const AscendApi &api_;
	const std::string name_;
	const uint32_t device_;
	std::mutex mutex_; // of all that follows
	std::list<Range> ranges_;
	std::list<Mapping> mappings_;
	std::list<SlotPage> slot_pages_;
};

} // namespace nda

#endif
