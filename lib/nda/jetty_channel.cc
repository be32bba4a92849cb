// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/jetty_channel.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <nda/hw/udma.h>

#include "lib/nda/error.h"
#include "lib/nda/log.h"
#include "lib/nda/queue_format.h"

namespace nda {
namespace {

constexpr uint16_t desc_version = 1;

// What the two sides exchange, little-endian.
struct Desc {
	uint32_t magic;
	uint16_t version;
	uint16_t size;
	uint32_t jetty_id;
	uint8_t eid[16];
	uint8_t reserved[100];
};
static_assert(sizeof(Desc) == NDA_CHANNEL_DESC_BYTES, "no padding");

std::string eid_text(const uint8_t eid[16])
{
	std::string text;
	char digits[8];
	for (int i = 0; i < 16; i++) {
		snprintf(digits, sizeof(digits), i % 4 == 3 && i < 15 ? "%02x:" : "%02x",
			eid[i]);
		text += digits;
	}
	return text;
}

int check_desc(const Desc &d)
{
	if (d.magic == qp_desc_magic)
		return fail(-EINVAL,
			"channel: connect: the peer has a queue pair, this side a jetty");
	if (d.magic != jetty_desc_magic)
		return fail(-EPROTO,
			"channel: connect: what it was given is no descriptor of a jetty");
	if (d.version != desc_version || d.size != sizeof(d))
		return fail(-EPROTONOSUPPORT,
			"channel: connect: the peer's descriptor has version %u, this side "
			"%u",
			d.version, desc_version);
	const auto set = [](uint8_t b) { return b != 0; };
	if (std::any_of(d.reserved, d.reserved + sizeof(d.reserved), set) ||
		!std::any_of(d.eid, d.eid + 16, set) || d.jetty_id >> 20)
		return fail(-EPROTO,
			"channel: connect: the peer's descriptor is damaged (jetty %u)",
			d.jetty_id);
	return 0;
}

// In requests an EID has its bytes in reverse.
void hardware_eid(const uint8_t eid[16], uint64_t words[2])
{
	uint8_t reversed[16];
	std::reverse_copy(eid, eid + 16, reversed);
	memcpy(words, reversed, sizeof(reversed));
}

} // namespace

int JettyChannel::create(std::shared_ptr<Nic> nic, std::shared_ptr<Npu> npu,
	const ChannelConfig &config, std::shared_ptr<Channel> &out)
{
	std::shared_ptr<JettyChannel> channel(
		new JettyChannel(std::move(nic), std::move(npu), config));
	const int rc = channel->init();
	if (!rc)
		out = std::move(channel);
	return rc;
}

int JettyChannel::init()
{
	int rc = check_config();
	if (!rc)
		rc = nic_->check_npu(*npu_);
	if (!rc)
		rc = check_port();
	if (!rc)
		rc = nic_->query_eid(eid_);
	return rc ? rc : create_queues();
}

// The NIC chooses the path by the two EIDs.
int JettyChannel::check_config() const
{
	if (!config_.roce_attribute)
		return 0;
	return fail(-EOPNOTSUPP, "nic %s: its jetties take no %s", nic_->name().c_str(),
		config_.roce_attribute);
}

int JettyChannel::check_port() const
{
	ibv_port_attr port = {};
	const int rc = nic_->query_port(port);
	return rc ? rc : nic_->check_port(port);
}

// Room for as many requests as asked for, as far as a ring can be.
int JettyChannel::create_queues()
{
	const uint32_t blocks = std::min(
		config_.sq_depth * hw::udma::max_bbs, uint32_t{hw::udma::max_depth});
	const queue_buf_dma_mode mode = config_.dma_mode == NDA_DMA_INDEPENDENT
		? QUEUE_BUF_DMA_MODE_INDEP_UB
		: QUEUE_BUF_DMA_MODE_DEFAULT;
	Npu::forget_driver_failure();
	int rc = nic_->create_jetty(*npu_, blocks, mode, jetty_);
	if (!rc)
		rc = Npu::driver_failure();
	if (!rc)
		rc = jetty_->query(queues_);
	if (!rc)
		npu_->count_doorbells(queues_.doorbell);
	return rc;
}

void JettyChannel::export_desc(uint8_t desc[NDA_CHANNEL_DESC_BYTES]) const
{
	Desc d = {};
	d.magic = jetty_desc_magic;
	d.version = desc_version;
	d.size = sizeof(d);
	d.jetty_id = queues_.id;
	memcpy(d.eid, eid_, sizeof(d.eid));
	memcpy(desc, &d, sizeof(d));
}

int JettyChannel::connect(const uint8_t desc[NDA_CHANNEL_DESC_BYTES])
{
	if (state_ == State::connected)
		return fail(
			-EISCONN, "channel: connect: jetty %u is connected", queues_.id);
	if (state_ == State::failed)
		return fail(-ECONNABORTED,
			"channel: connect: jetty %u failed to connect before", queues_.id);
	Desc d;
	memcpy(&d, desc, sizeof(d));
	int rc = check_desc(d);
	if (rc)
		return rc;
	memcpy(peer_.eid, d.eid, sizeof(peer_.eid));
	peer_.id = d.jetty_id;
	peer_.timeout = config_.timeout;
	peer_.retry_count = config_.retry_count;
	state_ = State::failed;
	rc = jetty_->connect(peer_, tp_id_);
	if (rc)
		return fail_in(rc, "connect: jetty %u to jetty %u of EID %s", queues_.id,
			peer_.id, eid_text(peer_.eid).c_str());
	state_ = State::connected;
	NDA_LOG(LogLevel::debug, "jetty %u is connected to jetty %u of EID %s, TP %u",
		queues_.id, peer_.id, eid_text(peer_.eid).c_str(), tp_id_);
	return 0;
}

int JettyChannel::reset()
{
	state_ = State::failed;
	npu_->clear_doorbell(queues_.doorbell); // as in QpChannel::reset()
	Npu::forget_driver_failure();
	int rc = jetty_->reset();
	if (!rc)
		rc = Npu::driver_failure();
	if (!rc)
		state_ = State::created;
	return rc;
}

int JettyChannel::describe(uint64_t remote_delta, const Keys &keys, nda_queue &queue) const
{
	if (state_ != State::connected)
		return fail(-ENOTCONN, "channel: describe: jetty %u is not connected",
			queues_.id);
	JettySource source = {};
	source.queues = queues_;
	hardware_eid(peer_.eid, source.eid);
	source.tp_id = tp_id_;
	source.signal_every = config_.signal_every;
	source.remote_delta = remote_delta;
	source.keys = keys;
	nda_queue q = {};
	if (!describe_jetty(source, q))
		return fail(-EPROTO,
			"channel: describe: nic %s gave jetty %u queues that cannot be "
			"used: SQ of %u at 0x%llx, CQ of %u * %u at 0x%llx",
			nic_->name().c_str(), queues_.id, q.sq_depth,
			static_cast<unsigned long long>(q.sq_base), q.cq_depth,
			q.cqe_stride, static_cast<unsigned long long>(q.cq_base));
	queue = q;
	return 0;
}

nda_channel_info JettyChannel::info() const
{
	nda_channel_info info = {};
	int error = 0;
	info.qpn = queues_.id;
	info.doorbell = npu_->doorbell_proxied(queues_.doorbell, error)
		? NDA_DOORBELL_PROXIED
		: NDA_DOORBELL_MAPPED;
	info.doorbell_error = error;
	return info;
}

} // namespace nda
