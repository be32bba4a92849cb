// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/gid.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>

#include "lib/nda/error.h"

namespace nda {
namespace {

constexpr uint8_t ipv4_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool is_ipv4(const ibv_gid &gid)
{
	return memcmp(gid.raw, ipv4_prefix, sizeof(ipv4_prefix)) == 0;
}

const char *type_text(uint32_t type)
{
	switch (type) {
	case IBV_GID_TYPE_IB:
		return "IB";
	case IBV_GID_TYPE_ROCE_V1:
		return "RoCEv1";
	case IBV_GID_TYPE_ROCE_V2:
		return "RoCEv2";
	default:
		return "unknown type";
	}
}

bool same(const ibv_gid &a, const ibv_gid &b)
{
	return memcmp(a.raw, b.raw, sizeof(a.raw)) == 0;
}

bool of_version(const GidEntry &entry, uint32_t version)
{
	return entry.type ==
		(version == 1 ? uint32_t(IBV_GID_TYPE_ROCE_V1)
			      : uint32_t(IBV_GID_TYPE_ROCE_V2));
}

// "0 RoCEv2 fe80::1 (eth0), 1 RoCEv2 10.9.9.1 (eth0)"
std::string candidates(const std::vector<GidEntry> &entries)
{
	// The error detail has room for a few.
	constexpr size_t shown_max = 8;
	if (entries.empty())
		return "it has none";
	std::string text = "it has ";
	for (size_t i = 0; i < entries.size() && i < shown_max; i++) {
		const GidEntry &e = entries[i];
		text += (i ? ", " : "") + std::to_string(e.index) + " " +
			type_text(e.type) + " " + address_text(e.gid);
		if (!e.net_device.empty())
			text += " (" + e.net_device + ")";
	}
	if (entries.size() > shown_max)
		text += ", and " + std::to_string(entries.size() - shown_max) + " more";
	return text;
}

// The lower, the better.
int rank_of(const GidEntry &entry, uint32_t preferred)
{
	if (link_local(entry.gid))
		return 3;
	if (entry.index == preferred)
		return 0;
	return is_ipv4(entry.gid) ? 1 : 2;
}

bool matches(const GidEntry &entry, const GidChoice &choice)
{
	if (choice.by_index && entry.index != choice.index)
		return false;
	if (choice.by_address && !same(entry.gid, choice.address))
		return false;
	return (choice.by_index && !choice.roce_version) ||
		of_version(entry, choice.roce_version);
}

std::string wanted_text(const GidChoice &choice)
{
	std::string text = choice.by_index && !choice.roce_version ? "GID"
		: choice.roce_version == 1                         ? "RoCEv1 GID"
								   : "RoCEv2 GID";
	if (choice.by_index)
		text += " at index " + std::to_string(choice.index);
	if (choice.by_address)
		text += " " + address_text(choice.address);
	return text;
}

} // namespace

bool parse_gid(const char *text, ibv_gid &gid)
{
	ibv_gid found = {};
	if (inet_pton(AF_INET, text, found.raw + sizeof(ipv4_prefix)) == 1)
		memcpy(found.raw, ipv4_prefix, sizeof(ipv4_prefix));
	else if (inet_pton(AF_INET6, text, found.raw) != 1)
		return false;
	gid = found;
	return true;
}

std::string address_text(const ibv_gid &gid)
{
	char text[INET6_ADDRSTRLEN];
	if (is_ipv4(gid))
		inet_ntop(AF_INET, gid.raw + sizeof(ipv4_prefix), text, sizeof(text));
	else
		inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
	return text;
}

bool empty(const ibv_gid &gid)
{
	return same(gid, ibv_gid{});
}

bool link_local(const ibv_gid &gid)
{
	if (is_ipv4(gid))
		return gid.raw[12] == 169 && gid.raw[13] == 254;
	return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80;
}

int choose_gid(const char *name, const std::vector<GidEntry> &entries,
	const GidChoice &choice, uint32_t preferred, GidEntry &out)
{
	const GidEntry *best = nullptr;
	for (const GidEntry &entry : entries)
		if (matches(entry, choice) &&
			(!best || rank_of(entry, preferred) < rank_of(*best, preferred)))
			best = &entry;
	if (!best)
		return fail(-EADDRNOTAVAIL, "nic %s: no %s; %s", name,
			wanted_text(choice).c_str(), candidates(entries).c_str());
	out = *best;
	return 0;
}

} // namespace nda
