// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Which of a port's GIDs a channel uses. Pure functions.
#ifndef NDA_LIB_GID_H
#define NDA_LIB_GID_H

#include <cstdint>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

namespace nda {

// An entry of a port's table that holds a GID.
struct GidEntry {
	uint32_t index = 0;
	ibv_gid gid = {};
	uint32_t type = IBV_GID_TYPE_ROCE_V2; // enum ibv_gid_type
	std::string net_device;               // "" if there is none, or it is not known
};

// What the caller wants; nothing of it by default.
struct GidChoice {
	bool by_index = false;
	uint32_t index = 0;
	bool by_address = false;
	ibv_gid address = {};
	uint32_t roce_version = 0; // 1 or 2; 0: 2, and with an index any
};

// Reads an IPv4 address as the GID that stands for it (::ffff:a.b.c.d), or an IPv6 address.
bool parse_gid(const char *text, ibv_gid &gid);

// An IPv4 address in dotted form, else as IPv6.
std::string address_text(const ibv_gid &gid);

bool empty(const ibv_gid &gid);
bool link_local(const ibv_gid &gid); // fe80::/10, and 169.254.0.0/16

// Without an index or address, of the entries of the right version: the one at preferred,
// if it is not link-local; then the first with an IPv4 address, then the first with an IPv6
// one, link-local ones last. 0, or -EINVAL or -EADDRNOTAVAIL with the candidates in the
// detail, of which "nic NAME" is the object.
int choose_gid(const char *name, const std::vector<GidEntry> &entries,
	const GidChoice &choice, uint32_t preferred, GidEntry &out);

constexpr uint32_t no_preferred_gid = UINT32_MAX;

} // namespace nda

#endif
