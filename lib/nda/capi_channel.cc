// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <nda/channel.h>

#include "lib/nda/attr.h"
#include "lib/nda/handles.h"

using namespace nda;

NDA_API nda_channel *nda_channel_create(
	nda_nic *nic, nda_npu *npu, const nda_channel_attr *attr, size_t attr_size) noexcept
{
	return guard_pointer<nda_channel>([&](nda_channel *&out) {
		auto nic_object = lookup(nic);
		auto npu_object = nic_object ? lookup(npu) : nullptr;
		if (!npu_object)
			return -EINVAL;
		ChannelConfig config;
		int rc = read_channel_attr(config, attr, attr_size);
		std::shared_ptr<Channel> channel;
		if (!rc)
			rc = Channel::create(*nic_object, *npu_object, config, channel);
		if (!rc)
			out = new nda_channel(std::move(channel));
		return rc;
	});
}

NDA_API int nda_channel_export(
	nda_channel *channel, uint8_t desc[NDA_CHANNEL_DESC_BYTES]) noexcept
{
	return guard([&] {
		auto object = lookup(channel);
		if (!object)
			return -EINVAL;
		if (!desc)
			return fail(-EINVAL, "channel: desc is NULL");
		(*object)->export_desc(desc);
		return 0;
	});
}

NDA_API int nda_channel_connect(
	nda_channel *channel, const uint8_t desc[NDA_CHANNEL_DESC_BYTES]) noexcept
{
	return guard([&] {
		auto object = lookup(channel);
		if (!object)
			return -EINVAL;
		if (!desc)
			return fail(-EINVAL, "channel: desc is NULL");
		return (*object)->connect(desc);
	});
}

NDA_API int nda_channel_describe(nda_channel *channel, uint64_t remote_delta, uint32_t lkey,
	uint32_t rkey, nda_queue *queue) noexcept
{
	return guard([&] {
		auto object = lookup(channel);
		if (!object)
			return -EINVAL;
		if (!queue)
			return fail(-EINVAL, "channel: queue is NULL");
		if ((*object)->has_segments())
			return fail(-EINVAL,
				"channel: a jetty's memory has tokens, not an rkey alone");
		return (*object)->describe(remote_delta, {lkey, rkey, 0}, *queue);
	});
}

NDA_API int nda_channel_describe_segment(nda_channel *channel, uint64_t remote_delta,
	uint32_t token_id, uint32_t remote_token_id, uint32_t remote_token_value,
	nda_queue *queue) noexcept
{
	return guard([&] {
		auto object = lookup(channel);
		if (!object)
			return -EINVAL;
		if (!queue)
			return fail(-EINVAL, "channel: queue is NULL");
		if (!(*object)->has_segments())
			return fail(-EOPNOTSUPP,
				"channel: a queue pair's memory has keys, not tokens");
		return (*object)->describe(remote_delta,
			{token_id, remote_token_value, remote_token_id}, *queue);
	});
}

NDA_API int nda_channel_query(
	nda_channel *channel, nda_channel_info *info, size_t info_size) noexcept
{
	return guard([&] {
		auto object = lookup(channel);
		return object ? write_info(info, info_size, (*object)->info(), "channel")
			      : -EINVAL;
	});
}

NDA_API int nda_channel_destroy(nda_channel *channel) noexcept
{
	return guard([&] {
		if (!lookup(channel))
			return -EINVAL;
		delete channel;
		return 0;
	});
}
