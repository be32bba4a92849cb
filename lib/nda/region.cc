// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/region.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lib/nda/error.h"

namespace nda {
namespace {

constexpr uint32_t desc_magic = 0x5241444e; // "NDAR" in memory
constexpr uint16_t desc_version = 3;

// What is exported, little-endian.
struct Desc {
	uint32_t magic;
	uint16_t version;
	uint16_t size;
	uint64_t addr;
	uint64_t size_bytes;
	uint32_t pe;
	uint32_t n_pes;
	uint32_t n_nics;
	uint32_t reserved0;
	uint32_t rkeys[group_nics_max];
	uint32_t rkey_ids[group_nics_max]; // of URMA: token ids
	uint8_t formats[group_nics_max];   // enum nda_format
	uint8_t reserved[56];
};
static_assert(sizeof(Desc) == NDA_REGION_DESC_BYTES, "no padding");

int find_way(const GroupShape &shape, const Way &way, uint32_t to,
	const GroupShape::Engine *&engine)
{
	engine = shape.engine(way.format);
	if (!engine)
		return fail(-EINVAL, "region: the group has no NIC of format %u",
			unsigned(way.format));
	if (way.relay >= shape.n_pes)
		return fail(-EINVAL, "region: relay PE %u: the group has %u", way.relay,
			shape.n_pes);
	if (way.relay == shape.pe)
		return 0;
	if (!shape.relays_of(*engine) || way.relay == to || to == shape.pe)
		return fail(-EINVAL, "region: no way leads to PE %u through PE %u", to,
			way.relay);
	return 0;
}

} // namespace

const GroupShape::Engine *GroupShape::engine(nda_format format) const
{
	for (const Engine &engine : engines)
		if (format == NDA_FORMAT_NONE || engine.format == format)
			return &engine;
	return nullptr;
}

int Region::create(const GroupShape &shape, const std::vector<std::shared_ptr<Nic>> &nics,
	const std::shared_ptr<Npu> &npu, uint64_t addr, uint64_t size, uint32_t access,
	std::shared_ptr<Region> &out)
{
	std::shared_ptr<Region> region(new Region(shape, addr, size));
	uint32_t asked = NDA_MR_ANY;
	int rc = mr_way_of_environment(asked);
	if (rc)
		return fail_in(rc, "region");
	for (const std::shared_ptr<Nic> &nic : nics) {
		std::shared_ptr<Mr> mr;
		rc = Mr::create(nic, npu, {addr, size, 0, nullptr}, access, asked, mr);
		if (rc)
			return fail_in(rc, "region");
		region->mrs_.push_back(std::move(mr));
	}
	out = std::move(region);
	return 0;
}

int Region::query(uint32_t nic, nda_mr_info &info) const
{
	if (nic >= mrs_.size())
		return fail(
			-EINVAL, "region: query: nic %u: there are %zu", nic, mrs_.size());
	info = mrs_[nic]->info();
	return 0;
}

int Region::check() const
{
	for (const std::shared_ptr<Mr> &mr : mrs_)
		if (const int rc = mr->check())
			return fail_in(rc, "region");
	return 0;
}

void Region::export_desc(uint8_t desc[NDA_REGION_DESC_BYTES]) const
{
	Desc d = {};
	d.magic = desc_magic;
	d.version = desc_version;
	d.size = sizeof(d);
	d.addr = addr_;
	d.size_bytes = size_;
	d.pe = shape_.pe;
	d.n_pes = shape_.n_pes;
	d.n_nics = shape_.n_nics;
	for (size_t i = 0; i < mrs_.size(); i++) {
		d.rkeys[i] = mrs_[i]->rkey();
		d.rkey_ids[i] = mrs_[i]->rkey_id();
	}
	for (const GroupShape::Engine &engine : shape_.engines)
		for (uint32_t nic : engine.nics)
			d.formats[nic] = static_cast<uint8_t>(engine.format);
	memcpy(desc, &d, sizeof(d));
}

int Region::local(const Way &way, uint32_t pe, nda_region &out) const
{
	if (pe >= shape_.n_pes)
		return fail(-EINVAL, "region: PE %u: the group has %u", pe, shape_.n_pes);
	const GroupShape::Engine *engine = nullptr;
	const int rc = find_way(shape_, way, pe, engine);
	if (rc)
		return rc;
	out = {addr_, size_, mrs_[shape_.own_nic(*engine, pe, way.relay)]->lkey(),
		shape_.pe, 0, 0};
	return 0;
}

int import_region(const GroupShape &shape, const Way &way,
	const uint8_t desc[NDA_REGION_DESC_BYTES], nda_region &out)
{
	Desc d;
	memcpy(&d, desc, sizeof(d));
	if (d.magic != desc_magic)
		return fail(-EPROTO, "region: import: what it was given is no descriptor");
	if (d.version != desc_version || d.size != sizeof(d))
		return fail(-EPROTONOSUPPORT,
			"region: import: the descriptor has version %u, this side %u",
			d.version, desc_version);
	const bool reserved = d.reserved0 ||
		std::any_of(d.reserved, d.reserved + sizeof(d.reserved),
			[](uint8_t b) { return b != 0; });
	if (reserved || d.size_bytes == 0 || d.addr + d.size_bytes < d.addr)
		return fail(-EPROTO, "region: import: the descriptor is damaged");
	if (d.n_pes != shape.n_pes || d.n_nics != shape.n_nics || d.pe >= shape.n_pes)
		return fail(-EINVAL,
			"region: import: it belongs to PE %u of %u with %u NICs, this "
			"group has %u PEs "
			"with %u NICs",
			d.pe, d.n_pes, d.n_nics, shape.n_pes, shape.n_nics);
	const GroupShape::Engine *engine = nullptr;
	const int rc = find_way(shape, way, d.pe, engine);
	if (rc)
		return rc;
	for (uint32_t nic : engine->nics)
		if (d.formats[nic] != engine->format)
			return fail(-EINVAL,
				"region: import: its NIC %u is of format %u, this group's "
				"of %u",
				nic, d.formats[nic], unsigned(engine->format));
	const uint32_t nic = shape.peer_nic(*engine, d.pe, way.relay);
	out = {d.addr, d.size_bytes, d.rkeys[nic], d.pe, d.rkey_ids[nic], 0};
	return 0;
}

} // namespace nda
