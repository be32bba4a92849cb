// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_LIB_REGION_H
#define NDA_LIB_REGION_H

#include <memory>
#include <vector>

#include <nda/group.h>

#include "lib/nda/nic.h"

namespace nda {

constexpr uint32_t group_nics_max = 32;

// Who is who in a group; a region outlives the group it was made of.
struct GroupShape {
	// NICs of one queue format, by their index among all; they have a table of their
	// own.
	struct Engine {
		nda_format format;
		std::vector<uint32_t> nics;
	};

	// NDA_FORMAT_NONE: that of the first NIC. nullptr if there is none.
	const Engine *engine(nda_format format) const;

	// Whether it has queues through other PEs.
	bool relays_of(const Engine &engine) const
	{
		return relays && engine.format == NDA_FORMAT_UDMA;
	}

	// Which NIC serves the queue between two PEs on `owner`'s side, `other` being the
	// peer or the relay on the way there. Both sides count alike.
	static uint32_t nic(const Engine &engine, uint32_t owner, uint32_t other)
	{
		return engine.nics[(owner + other) % engine.nics.size()];
	}
	// ... of the own queue to `to`, through `relay` unless that is this PE itself.
	uint32_t own_nic(const Engine &engine, uint32_t to, uint32_t relay) const
	{
		return nic(engine, pe, relay == pe ? to : relay);
	}
	uint32_t peer_nic(const Engine &engine, uint32_t to, uint32_t relay) const
	{
		return nic(engine, to, relay);
	}

	uint32_t pe;
	uint32_t n_pes;
	uint32_t n_nics;
	bool relays;
	std::vector<Engine> engines; // by their first NIC
};

// The way to a PE: by which of the group's engines, and through which PE.
struct Way {
	nda_format format;
	uint32_t relay;
};

// Memory outside the heap, registered with every NIC of a group.
class Region {
public:
	static constexpr uint64_t magic = 0x31676572; // "reg1" in memory

	static int create(const GroupShape &shape,
		const std::vector<std::shared_ptr<Nic>> &nics,
		const std::shared_ptr<Npu> &npu, uint64_t addr, uint64_t size,
		uint32_t access, std::shared_ptr<Region> &out);

	// By the group's first engine, without a relay.
	Way usual_way() const { return {NDA_FORMAT_NONE, shape_.pe}; }
	void export_desc(uint8_t desc[NDA_REGION_DESC_BYTES]) const;
	int local(const Way &way, uint32_t pe, nda_region &out) const;
	int query(uint32_t nic, nda_mr_info &info) const;
	int check() const;

private:
	Region(const GroupShape &shape, uint64_t addr, uint64_t size)
		: shape_(shape), addr_(addr), size_(size)
	{}

	const GroupShape shape_;
	const uint64_t addr_;
	const uint64_t size_;
	std::vector<std::shared_ptr<Mr>> mrs_; // one for each NIC
};

int import_region(const GroupShape &shape, const Way &way,
	const uint8_t desc[NDA_REGION_DESC_BYTES], nda_region &out);

} // namespace nda

#endif
