// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_LIB_REGION_H
#define NDA_LIB_REGION_H

#include <memory>
#include <vector>

#include <nda/group.h>

#include "lib/nda/nic.h"

namespace nda {

constexpr uint32_t group_nics_max = 32;

// Which of the group's NICs serves the queues between two PEs; both sides count alike.
constexpr uint32_t nic_between(uint32_t pe, uint32_t other, uint32_t n_nics)
{
	return (pe + other) % n_nics;
}

// Who is who in a group; a region outlives the group it was made of.
struct GroupShape {
	uint32_t pe;
	uint32_t n_pes;
	uint32_t n_nics;
};

// Memory outside the heap, registered with every NIC of a group.
class Region {
public:
	static constexpr uint64_t magic = 0x31676572; // "reg1" in memory

	static int create(const GroupShape &shape,
		const std::vector<std::shared_ptr<Nic>> &nics,
		const std::shared_ptr<Npu> &npu, uint64_t addr, uint64_t size,
		uint32_t access, std::shared_ptr<Region> &out);

	void export_desc(uint8_t desc[NDA_REGION_DESC_BYTES]) const;
	int local(uint32_t pe, nda_region &out) const;

private:
	Region(const GroupShape &shape, uint64_t addr, uint64_t size)
		: shape_(shape), addr_(addr), size_(size)
	{}

	const GroupShape shape_;
	const uint64_t addr_;
	const uint64_t size_;
	std::vector<std::shared_ptr<Mr>> mrs_; // one for each NIC
};

int import_region(const GroupShape &shape, const uint8_t desc[NDA_REGION_DESC_BYTES],
	nda_region &out);

} // namespace nda

#endif
