// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_LIB_CHANNEL_CONFIG_H
#define NDA_LIB_CHANNEL_CONFIG_H

#include <cstddef>
#include <cstdint>

#include <nda/channel.h>

#include "lib/nda/gid.h"

namespace nda {

// A channel's attributes, checked, with the defaults filled in.
struct ChannelConfig {
	uint32_t sq_depth = 1024;
	uint32_t signal_every = 1;
	uint32_t dma_mode = NDA_DMA_AUTO;
	uint32_t device_timeout_us = 10 * 1000 * 1000;
	GidChoice gid;
	uint8_t traffic_class = 132;
	uint8_t service_level = 4;
	uint8_t timeout = 20;
	uint8_t retry_count = 7;
	uint8_t hop_limit = 64;
	uint16_t udp_source_port = 0; // 0: the driver's
	uint32_t path_mtu_bytes = 0;  // 0: the port's
	// Of the attributes that only a path of RoCE has: one that the caller gave, or
	// nullptr.
	const char *roce_attribute = nullptr;
};

// Where the caller leaves a default, the environment is asked.
int read_channel_attr(ChannelConfig &out, const nda_channel_attr *attr, size_t size);

} // namespace nda

#endif
