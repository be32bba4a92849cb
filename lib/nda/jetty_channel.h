// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_LIB_JETTY_CHANNEL_H
#define NDA_LIB_JETTY_CHANNEL_H

#include <memory>

#include "lib/nda/channel.h"

namespace nda {

// A URMA jetty, which posts to the memory of the endpoint that it is connected to.
class JettyChannel final : public Channel {
public:
	static int create(std::shared_ptr<Nic> nic, std::shared_ptr<Npu> npu,
		const ChannelConfig &config, std::shared_ptr<Channel> &out);

	void export_desc(uint8_t desc[NDA_CHANNEL_DESC_BYTES]) const override;
	int connect(const uint8_t desc[NDA_CHANNEL_DESC_BYTES]) override;
	int reset() override;
	bool connected() const override { return state_ == State::connected; }
	int describe(
		uint64_t remote_delta, const Keys &keys, nda_queue &queue) const override;
	nda_channel_info info() const override;
	bool has_segments() const override { return true; }

private:
	enum class State {
		created,
		connected,
		failed
	};

	JettyChannel(std::shared_ptr<Nic> nic, std::shared_ptr<Npu> npu,
		const ChannelConfig &config)
		: nic_(std::move(nic)), npu_(std::move(npu)), config_(config)
	{}
	int init();
	int check_config() const;
	int check_port() const;
	int create_queues();

	const std::shared_ptr<Nic> nic_;
	const std::shared_ptr<Npu> npu_;
	const ChannelConfig config_;
	std::unique_ptr<Jetty> jetty_;
	Jetty::Queues queues_ = {};
	State state_ = State::created;
	uint8_t eid_[16] = {};
	Jetty::Peer peer_ = {};
	uint32_t tp_id_ = 0;
};

} // namespace nda

#endif
