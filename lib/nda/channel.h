// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_LIB_CHANNEL_H
#define NDA_LIB_CHANNEL_H

#include <memory>

#include <nda/channel.h>
#include <nda/table.h>

#include "lib/nda/channel_config.h"
#include "lib/nda/nic.h"
#include "lib/nda/npu.h"

namespace nda {

// The first word of what is exchanged says of what kind the sender's queues are.
constexpr uint32_t qp_desc_magic = 0x4341444e;    // "NDAC" in memory
constexpr uint32_t jetty_desc_magic = 0x4a41444e; // "NDAJ" in memory

// A connected pair of queues of a NIC's, of which this side posts to one.
class Channel {
public:
	static constexpr uint64_t magic = 0x316e616863; // "chan1" in memory

	// A QP or a jetty, as the NIC has them.
	static int create(std::shared_ptr<Nic> nic, std::shared_ptr<Npu> npu,
		const ChannelConfig &config, std::shared_ptr<Channel> &out);
	// For a PE that its NIC does not reach: nothing, which is described as no queue.
	static std::shared_ptr<Channel> none();
	virtual ~Channel() = default;
	Channel(const Channel &) = delete;
	Channel &operator=(const Channel &) = delete;

	virtual void export_desc(uint8_t desc[NDA_CHANNEL_DESC_BYTES]) const = 0;
	virtual int connect(const uint8_t desc[NDA_CHANNEL_DESC_BYTES]) = 0;
	// Back to where it may be exported and connected again, with the same queues.
	virtual int reset() = 0;
	virtual bool connected() const = 0;
	virtual int describe(
		uint64_t remote_delta, const Keys &keys, nda_queue &queue) const = 0;
	virtual nda_channel_info info() const = 0;
	// Whether the memory that it reaches has tokens.
	virtual bool has_segments() const { return false; }
	virtual uint8_t service_level() const { return 0; }
	// log2(path MTU / 256), as the doorbell has it; once connected.
	virtual uint8_t mtu_shift() const { return 0; }

protected:
	Channel() = default;
};

// A queue pair and its completion queue in NPU memory.
class QpChannel final : public Channel {
public:
	static int create(std::shared_ptr<Nic> nic, std::shared_ptr<Npu> npu,
		const ChannelConfig &config, std::shared_ptr<Channel> &out);
	~QpChannel() override;

	void export_desc(uint8_t desc[NDA_CHANNEL_DESC_BYTES]) const override;
	int connect(const uint8_t desc[NDA_CHANNEL_DESC_BYTES]) override;
	int reset() override;
	bool connected() const override { return state_ == State::connected; }
	int describe(
		uint64_t remote_delta, const Keys &keys, nda_queue &queue) const override;
	nda_channel_info info() const override;
	uint32_t qpn() const { return qp_->qp->qp_num; }
	uint8_t service_level() const override { return config_.service_level; }
	uint8_t mtu_shift() const override;

private:
	enum class State {
		created,
		connected,
		failed
	};

	QpChannel(std::shared_ptr<Nic> nic, std::shared_ptr<Npu> npu,
		const ChannelConfig &config)
		: nic_(std::move(nic)), npu_(std::move(npu)), config_(config)
	{}
	int init();
	int check_port(const ibv_port_attr &port);
	int query_identity();
	int choose_psn();
	int create_queues();
	int fill_cq();
	int create_qp(queue_buf_dma_mode mode);
	int find_doorbell();
	void explain_failure(int code, const char *object);
	int to_init();
	int to_rtr(uint32_t remote_qpn, uint32_t remote_psn, const ibv_gid &remote_gid,
		uint8_t rd_atomic);
	int to_rts(uint8_t rd_atomic);
	int set_udp_source_port();
	int fail_step(int code, const char *step, const ibv_gid &remote_gid);

	const std::shared_ptr<Nic> nic_;
	const std::shared_ptr<Npu> npu_;
	const ChannelConfig config_;
	ibv_cq_extend *cq_ = nullptr;
	ibv_qp_extend *qp_ = nullptr;
	uint64_t doorbell_ = 0;         // where cores ring
	bool doorbell_is_ours_ = false; // not the driver's
	State state_ = State::created;
	bool was_reset_ = false;
	uint32_t gid_index_ = 0;
	ibv_gid gid_ = {};
	uint32_t psn_ = 0;
	uint32_t mtu_bytes_ = 0; // of the port, then of the path
	uint32_t rd_atomic_ = 1;
	uint32_t flow_label_ = 0; // gives the wished UDP source port, or 0
};

} // namespace nda

#endif
