// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/channel_config.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "lib/nda/attr.h"
#include "lib/nda/error.h"

namespace nda {
namespace {

// A field that counts only where comp_mask names it; else the variable of the public
// communication library does, if it is set.
struct ByteField {
	uint64_t bit;
	const char *name;
	uint32_t nda_channel_attr::*given;
	uint8_t ChannelConfig::*out;
	uint32_t high; // of what may be given
	const char *variable;
	uint32_t variable_low;
	uint32_t variable_step; // a multiple of it
};

constexpr ByteField byte_fields[] = {
	{NDA_CHANNEL_TRAFFIC_CLASS, "traffic_class", &nda_channel_attr::traffic_class,
		&ChannelConfig::traffic_class, 255, "HCCL_RDMA_TC", 0, 4},
	{NDA_CHANNEL_SERVICE_LEVEL, "service_level", &nda_channel_attr::service_level,
		&ChannelConfig::service_level, 7, "HCCL_RDMA_SL", 0, 1},
	{NDA_CHANNEL_TIMEOUT, "timeout", &nda_channel_attr::timeout,
		&ChannelConfig::timeout, 31, "HCCL_RDMA_TIMEOUT", 0, 1},
	{NDA_CHANNEL_RETRY_COUNT, "retry_count", &nda_channel_attr::retry_count,
		&ChannelConfig::retry_count, 7, "HCCL_RDMA_RETRY_CNT", 1, 1},
};

bool power_of_two(uint32_t v)
{
	return v && (v & (v - 1)) == 0;
}

int check_field(const char *name, uint32_t value, uint32_t low, uint32_t high)
{
	if (value >= low && value <= high)
		return 0;
	return fail(-EINVAL, "channel: %s %u is not in %u..%u", name, value, low, high);
}

int read_variable(ChannelConfig &c, const ByteField &f)
{
	const char *text = secure_getenv(f.variable);
	if (!text || !*text)
		return 0;
	const size_t length = strlen(text);
	const bool number = length <= 3 && strspn(text, "0123456789") == length;
	const unsigned long value = number ? strtoul(text, nullptr, 10) : UINT32_MAX;
	if (value < f.variable_low || value > f.high || value % f.variable_step != 0)
		return fail(-EINVAL, "channel: %s=%s is not in %u..%u%s", f.variable, text,
			f.variable_low, f.high,
			f.variable_step == 4 ? " and a multiple of 4" : "");
	c.*f.out = static_cast<uint8_t>(value);
	return 0;
}

int read_byte(ChannelConfig &c, const nda_channel_attr &a, const ByteField &f)
{
	if (!(a.comp_mask & f.bit))
		return read_variable(c, f);
	const int rc = check_field(f.name, a.*f.given, 0, f.high);
	if (!rc)
		c.*f.out = static_cast<uint8_t>(a.*f.given);
	return rc;
}

int read_gid(GidChoice &out, const nda_channel_attr &a)
{
	GidChoice gid;
	gid.by_index = (a.comp_mask & NDA_CHANNEL_GID_INDEX) != 0;
	gid.index = gid.by_index ? a.gid_index : 0;
	gid.by_address = a.gid_address != nullptr;
	gid.roce_version = a.roce_version;
	if (gid.by_index && gid.by_address)
		return fail(-EINVAL, "channel: both gid_index %u and gid_address %s",
			a.gid_index, a.gid_address);
	if (gid.by_address && !parse_gid(a.gid_address, gid.address))
		return fail(-EINVAL,
			"channel: gid_address \"%s\" is no address of IPv4 or IPv6",
			a.gid_address);
	int rc = check_field("gid_index", gid.index, 0, 255);
	if (!rc)
		rc = check_field("roce_version", gid.roce_version, 0, 2);
	if (!rc)
		out = gid;
	return rc;
}

int read_path(ChannelConfig &c, const nda_channel_attr &a)
{
	const uint32_t mtu = a.path_mtu_bytes;
	if (mtu && (mtu < 256 || mtu > 4096 || !power_of_two(mtu)))
		return fail(-EINVAL,
			"channel: path_mtu_bytes %u is no power of two in 256..4096", mtu);
	int rc = check_field("hop_limit", a.hop_limit, 0, 255);
	if (!rc)
		rc = check_field("udp_source_port", a.udp_source_port, 0, 65535);
	if (rc)
		return rc;
	c.path_mtu_bytes = mtu;
	c.udp_source_port = static_cast<uint16_t>(a.udp_source_port);
	if (a.hop_limit)
		c.hop_limit = static_cast<uint8_t>(a.hop_limit);
	return 0;
}

int read_queue(ChannelConfig &c, const nda_channel_attr &a)
{
	if (a.sq_depth)
		c.sq_depth = a.sq_depth;
	if (a.signal_every)
		c.signal_every = a.signal_every;
	if (a.device_timeout_us)
		c.device_timeout_us = a.device_timeout_us;
	c.dma_mode = a.dma_mode;
	int rc = check_field("sq_depth", c.sq_depth, 64, 32768);
	if (!rc && !power_of_two(c.sq_depth))
		rc = fail(-EINVAL, "channel: sq_depth %u is no power of two", c.sq_depth);
	if (!rc)
		rc = check_field("signal_every", c.signal_every, 1, c.sq_depth / 2);
	if (!rc)
		rc = check_field("dma_mode", c.dma_mode, NDA_DMA_AUTO, NDA_DMA_INDEPENDENT);
	return rc;
}

const char *roce_attribute(const nda_channel_attr &a)
{
	const struct {
		const char *name;
		bool given;
	} attributes[] = {
		{"gid_index", (a.comp_mask & NDA_CHANNEL_GID_INDEX) != 0},
		{"gid_address", a.gid_address != nullptr},
		{"roce_version", a.roce_version != 0},
		{"traffic_class", (a.comp_mask & NDA_CHANNEL_TRAFFIC_CLASS) != 0},
		{"service_level", (a.comp_mask & NDA_CHANNEL_SERVICE_LEVEL) != 0},
		{"hop_limit", a.hop_limit != 0},
		{"udp_source_port", a.udp_source_port != 0},
		{"path_mtu_bytes", a.path_mtu_bytes != 0},
	};
	for (const auto &attribute : attributes)
		if (attribute.given)
			return attribute.name;
	return nullptr;
}

} // namespace

int read_channel_attr(ChannelConfig &out, const nda_channel_attr *attr, size_t size)
{
	constexpr uint64_t known = NDA_CHANNEL_GID_INDEX | NDA_CHANNEL_TRAFFIC_CLASS |
		NDA_CHANNEL_SERVICE_LEVEL | NDA_CHANNEL_TIMEOUT | NDA_CHANNEL_RETRY_COUNT;
	nda_channel_attr a;
	int rc = read_attr(a, attr, size, known, "channel");
	if (rc)
		return rc;
	if (a.reserved)
		return fail(-EINVAL, "channel: reserved is not 0");
	ChannelConfig c;
	c.roce_attribute = roce_attribute(a);
	rc = read_queue(c, a);
	if (!rc)
		rc = read_gid(c.gid, a);
	if (!rc)
		rc = read_path(c, a);
	for (const ByteField &field : byte_fields)
		if (!rc)
			rc = read_byte(c, a, field);
	if (!rc)
		out = c;
	return rc;
}

} // namespace nda
