// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/channel.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/random.h>

#include <nda/aiv/hns1825_state.h>

#include "lib/nda/attr.h"
#include "lib/nda/error.h"
#include "lib/nda/log.h"

namespace nda {
namespace {

namespace hns1825 = aiv::hns1825;

constexpr uint32_t desc_magic = 0x4341444e; // "NDAC" in memory
constexpr uint16_t desc_version = 1;
constexpr uint32_t rd_atomic_max = 16;

// What the two sides exchange, little-endian.
struct Desc {
	uint32_t magic;
	uint16_t version;
	uint16_t size;
	uint32_t format; // enum nda_format
	uint32_t qpn;
	uint32_t psn;
	uint32_t mtu_bytes;
	uint8_t gid[16];
	uint32_t rd_atomic; // outstanding READs that this side answers
	uint8_t reserved[84];
};
static_assert(sizeof(Desc) == NDA_CHANNEL_DESC_BYTES, "no padding");

bool power_of_two(uint32_t v)
{
	return v && (v & (v - 1)) == 0;
}

uint32_t log2_of(uint32_t v)
{
	return 31 - static_cast<uint32_t>(__builtin_clz(v));
}

ibv_mtu mtu_enum(uint32_t bytes)
{
	return static_cast<ibv_mtu>(log2_of(bytes) - 7);
}

struct GidText {
	explicit GidText(const ibv_gid &gid)
	{
		inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
	}
	char text[INET6_ADDRSTRLEN];
};

int check_field(const char *name, uint32_t value, uint32_t low, uint32_t high)
{
	if (value >= low && value <= high)
		return 0;
	return fail(-EINVAL, "channel: %s %u is not in %u..%u", name, value, low, high);
}

// A field that counts only where comp_mask names it.
int read_byte(uint8_t &out, const nda_channel_attr &a, uint64_t bit, const char *name,
	uint32_t value, uint32_t high)
{
	if (!(a.comp_mask & bit))
		return 0;
	const int rc = check_field(name, value, 0, high);
	if (!rc)
		out = static_cast<uint8_t>(value);
	return rc;
}

int check_desc(const Desc &d, nda_format format)
{
	if (d.magic != desc_magic)
		return fail(
			-EPROTO, "channel: connect: what it was given is no descriptor");
	if (d.version != desc_version || d.size != sizeof(d))
		return fail(-EPROTONOSUPPORT,
			"channel: connect: the peer's descriptor has version %u, this side "
			"%u",
			d.version, desc_version);
	if (d.format != static_cast<uint32_t>(format))
		return fail(-EINVAL,
			"channel: connect: the peer's queue format is %u, this side's %u",
			d.format, static_cast<uint32_t>(format));
	const bool reserved = std::any_of(d.reserved, d.reserved + sizeof(d.reserved),
		[](uint8_t b) { return b != 0; });
	const bool gid = std::any_of(d.gid, d.gid + 16, [](uint8_t b) { return b != 0; });
	if (reserved || !gid || d.qpn >> 24 || d.psn >> 24 || !power_of_two(d.mtu_bytes) ||
		d.mtu_bytes < 256 || d.mtu_bytes > 4096 || d.rd_atomic == 0)
		return fail(-EPROTO,
			"channel: connect: the peer's descriptor is damaged (QP %u, PSN "
			"%u, MTU %u)",
			d.qpn, d.psn, d.mtu_bytes);
	return 0;
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
	if (a.sq_depth)
		c.sq_depth = a.sq_depth;
	if (a.signal_every)
		c.signal_every = a.signal_every;
	if (a.device_timeout_us)
		c.device_timeout_us = a.device_timeout_us;
	c.dma_mode = a.dma_mode;
	c.gid_index_given = (a.comp_mask & NDA_CHANNEL_GID_INDEX) != 0;
	c.gid_index = c.gid_index_given ? a.gid_index : 0;
	rc = check_field("sq_depth", c.sq_depth, 64, 32768);
	if (!rc && !power_of_two(c.sq_depth))
		rc = fail(-EINVAL, "channel: sq_depth %u is no power of two", c.sq_depth);
	if (!rc)
		rc = check_field("signal_every", c.signal_every, 1, c.sq_depth / 2);
	if (!rc)
		rc = check_field("dma_mode", c.dma_mode, NDA_DMA_AUTO, NDA_DMA_INDEPENDENT);
	if (!rc)
		rc = check_field("gid_index", c.gid_index, 0, 127);
	if (!rc)
		rc = read_byte(c.traffic_class, a, NDA_CHANNEL_TRAFFIC_CLASS,
			"traffic_class", a.traffic_class, 255);
	if (!rc)
		rc = read_byte(c.service_level, a, NDA_CHANNEL_SERVICE_LEVEL,
			"service_level", a.service_level, 7);
	if (!rc)
		rc = read_byte(c.timeout, a, NDA_CHANNEL_TIMEOUT, "timeout", a.timeout, 31);
	if (!rc)
		rc = read_byte(c.retry_count, a, NDA_CHANNEL_RETRY_COUNT, "retry_count",
			a.retry_count, 7);
	if (!rc)
		out = c;
	return rc;
}

int Channel::create(std::shared_ptr<Nic> nic, std::shared_ptr<Npu> npu,
	const ChannelConfig &config, std::shared_ptr<Channel> &out)
{
	std::shared_ptr<Channel> channel(
		new Channel(std::move(nic), std::move(npu), config));
	const int rc = channel->init();
	if (rc)
		return fail_in(rc, "channel");
	out = std::move(channel);
	return 0;
}

int Channel::init()
{
	const int rc = query_identity();
	return rc ? rc : create_queues();
}

int Channel::query_identity()
{
	const char *name = nic_->name().c_str();
	ibv_port_attr port = {};
	int rc = nic_->query_port(port);
	if (rc)
		return rc;
	if (port.state != IBV_PORT_ACTIVE)
		return fail(-ENETDOWN, "nic %s: port is down", name);
	if (port.active_mtu < IBV_MTU_256 || port.active_mtu > IBV_MTU_4096)
		return fail(
			-EPROTO, "nic %s: port reports MTU code %d", name, port.active_mtu);
	mtu_bytes_ = 128u << port.active_mtu;
	if (config_.gid_index_given)
		gid_index_ = config_.gid_index;
	else
		rc = nic_->default_gid(gid_index_);
	if (!rc && gid_index_ >= static_cast<uint32_t>(port.gid_tbl_len))
		rc = fail(-EINVAL, "nic %s: gid_index %u: it has %d GIDs", name, gid_index_,
			port.gid_tbl_len);
	if (!rc)
		rc = nic_->query_gid(gid_index_, gid_);
	ibv_device_attr device = {};
	if (!rc)
		rc = nic_->query_device(device);
	if (rc)
		return rc;
	rd_atomic_ = static_cast<uint32_t>(std::max(1,
		std::min({static_cast<int>(rd_atomic_max), device.max_qp_rd_atom,
			device.max_qp_init_rd_atom})));
	if (getrandom(&psn_, sizeof(psn_), 0) != sizeof(psn_))
		return fail_errno(-errno, "getrandom");
	psn_ &= 0xffffff;
	return 0;
}

// Every WQE may end in a completion of its own, if only a flushed one: the CQ is as deep as
// the SQ. Nothing is ever received, but some drivers refuse an empty RQ.
int Channel::create_queues()
{
	const queue_buf_dma_mode mode = config_.dma_mode == NDA_DMA_PCIE
		? QUEUE_BUF_DMA_MODE_DEFAULT
		: QUEUE_BUF_DMA_MODE_INDEP_UB;
	ibv_cq_init_attr_extend cq = {};
	cq.attr.cqe = config_.sq_depth;
	cq.type = mode;
	cq.ops = npu_->ops();
	clear_error_detail();
	cq_ = ibv_create_cq_extend(nic_->extend(), &cq);
	if (!cq_) {
		const int error = errno, rc = error ? -error : -EIO;
		explain_failure(rc, "CQ");
		return rc;
	}
	ibv_qp_init_attr_extend qp = {};
	qp.pd = nic_->pd();
	qp.attr.send_cq = cq_->cq;
	qp.attr.recv_cq = cq_->cq;
	qp.attr.cap.max_send_wr = config_.sq_depth;
	qp.attr.cap.max_recv_wr = 1;
	qp.attr.cap.max_send_sge = 1;
	qp.attr.cap.max_recv_sge = 1;
	qp.attr.qp_type = IBV_QPT_RC;
	qp.type = mode;
	qp.ops = npu_->ops();
	clear_error_detail();
	qp_ = ibv_create_qp_extend(nic_->extend(), &qp);
	if (!qp_) {
		const int error = errno, rc = error ? -error : -EIO;
		explain_failure(rc, "QP");
		return rc;
	}
	return to_init();
}

// The cause is known to the NPU's callbacks, if they failed, or to the driver.
void Channel::explain_failure(int code, const char *object)
{
	const char *name = nic_->name().c_str();
	const char *why = nic_->driver_detail();
	if (!error_detail()[0] && *why)
		fail(code, "nic %s: create a %s of %u entries in NPU memory: %s", name,
			object, config_.sq_depth, why);
	else
		fail_in(code, "nic %s: create a %s of %u entries in NPU memory", name,
			object, config_.sq_depth);
}

int Channel::to_init()
{
	ibv_qp_attr attr = {};
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = nic_port;
	attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	const int rc = nic_->modify_qp(qp_->qp, attr,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	return rc ? fail_in(rc, "QP %u to INIT", qpn()) : 0;
}

int Channel::to_rtr(uint32_t remote_qpn, uint32_t remote_psn, const ibv_gid &remote_gid,
	uint8_t rd_atomic)
{
	ibv_qp_attr attr = {};
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = mtu_enum(mtu_bytes_);
	attr.dest_qp_num = remote_qpn;
	attr.rq_psn = remote_psn;
	attr.max_dest_rd_atomic = rd_atomic;
	attr.min_rnr_timer = 12;    // 0.64 ms
	attr.ah_attr.is_global = 1; // RoCE has no other addresses
	attr.ah_attr.grh.dgid = remote_gid;
	attr.ah_attr.grh.sgid_index = static_cast<uint8_t>(gid_index_);
	attr.ah_attr.grh.hop_limit = 64;
	attr.ah_attr.grh.traffic_class = config_.traffic_class;
	attr.ah_attr.sl = config_.service_level;
	attr.ah_attr.port_num = nic_port;
	const int rc = nic_->modify_qp(qp_->qp, attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (!rc)
		return 0;
	NDA_LOG(LogLevel::err,
		"QP %u to RTR: path_mtu %u, dest_qp_num %u, rq_psn %u, max_dest_rd_atomic "
		"%u, "
		"sgid_index %u, traffic_class %u, sl %u",
		qpn(), mtu_bytes_, remote_qpn, remote_psn, rd_atomic, gid_index_,
		config_.traffic_class, config_.service_level);
	return fail_step(rc, "RTR", remote_gid);
}

int Channel::to_rts(uint8_t rd_atomic)
{
	ibv_qp_attr attr = {};
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = psn_;
	attr.timeout = config_.timeout;
	attr.retry_cnt = config_.retry_count;
	attr.rnr_retry = 7; // without end, but the device waits by its own clock
	attr.max_rd_atomic = rd_atomic;
	const int rc = nic_->modify_qp(qp_->qp, attr,
		IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
	if (!rc)
		return 0;
	NDA_LOG(LogLevel::err,
		"QP %u to RTS: sq_psn %u, timeout %u, retry_cnt %u, rnr_retry 7, "
		"max_rd_atomic %u",
		qpn(), psn_, config_.timeout, config_.retry_count, rd_atomic);
	return fail_in(rc, "QP %u to RTS", qpn());
}

// Most often the cause is not in the attributes: say first if the port went down, and name
// both ends.
int Channel::fail_step(int code, const char *step, const ibv_gid &remote_gid)
{
	char cause[error_detail_bytes / 2];
	snprintf(cause, sizeof(cause), "%s", error_detail());
	ibv_port_attr port = {};
	const bool down = nic_->query_port(port) == 0 && port.state != IBV_PORT_ACTIVE;
	return fail(down ? -ENETDOWN : code,
		"QP %u to %s: %s%s (from GID %s to GID %s, MTU %u)", qpn(), step,
		down ? "port is down: " : "", cause, GidText(gid_).text,
		GidText(remote_gid).text, mtu_bytes_);
}

Channel::~Channel()
{
	int rc = qp_ ? ibv_destroy_qp_extend(nic_->extend(), qp_) : 0;
	if (rc)
		NDA_LOG(LogLevel::err, "nic %s: destroy QP: %d", nic_->name().c_str(), rc);
	rc = cq_ ? ibv_destroy_cq_extend(nic_->extend(), cq_) : 0;
	if (rc)
		NDA_LOG(LogLevel::err, "nic %s: destroy CQ: %d", nic_->name().c_str(), rc);
}

void Channel::export_desc(uint8_t desc[NDA_CHANNEL_DESC_BYTES]) const
{
	Desc d = {};
	d.magic = desc_magic;
	d.version = desc_version;
	d.size = sizeof(d);
	d.format = nic_->format();
	d.qpn = qpn();
	d.psn = psn_;
	d.mtu_bytes = mtu_bytes_;
	memcpy(d.gid, gid_.raw, sizeof(d.gid));
	d.rd_atomic = rd_atomic_;
	memcpy(desc, &d, sizeof(d));
}

int Channel::connect(const uint8_t desc[NDA_CHANNEL_DESC_BYTES])
{
	if (state_ == State::connected)
		return fail(-EISCONN, "channel: connect: QP %u is connected", qpn());
	if (state_ == State::failed)
		return fail(-ECONNABORTED,
			"channel: connect: QP %u failed to connect before", qpn());
	Desc d;
	memcpy(&d, desc, sizeof(d));
	int rc = check_desc(d, nic_->format());
	if (rc)
		return rc;
	ibv_gid remote_gid;
	memcpy(remote_gid.raw, d.gid, sizeof(d.gid));
	const uint8_t rd_atomic = static_cast<uint8_t>(std::min(rd_atomic_, d.rd_atomic));
	mtu_bytes_ = std::min(mtu_bytes_, d.mtu_bytes);
	state_ = State::failed;
	rc = to_rtr(d.qpn, d.psn, remote_gid, rd_atomic);
	if (!rc)
		rc = to_rts(rd_atomic);
	if (rc)
		return fail_in(rc, "connect");
	state_ = State::connected;
	NDA_LOG(LogLevel::debug, "QP %u is connected: QP %u of GID %s, from GID %s, MTU %u",
		qpn(), d.qpn, GidText(remote_gid).text, GidText(gid_).text, mtu_bytes_);
	return 0;
}

uint8_t Channel::mtu_shift() const
{
	return static_cast<uint8_t>(log2_of(mtu_bytes_) - 8);
}

int Channel::describe(
	uint64_t remote_delta, uint32_t lkey, uint32_t rkey, nda_queue &queue) const
{
	if (state_ != State::connected)
		return fail(-ENOTCONN, "channel: describe: QP %u is not connected", qpn());
	const queue_info &sq = qp_->sq_info;
	const queue_info &cq = cq_->cq_info;
	hw::hns1825::doorbell_params params;
	params.cos = qp_->vendor_priv_info.vendor1.db_cos & 7;
	params.mtu_shift = mtu_shift();
	params.sgid_index = static_cast<uint8_t>(gid_index_);
	nda_queue q = {};
	q.remote_delta = remote_delta;
	hw::hns1825::key_words(rkey, lkey, q.key_words);
	q.sq_record = sq.dbr_pi_va.iov_base;
	q.sq_doorbell = sq.db_hw_va.iov_base;
	q.sq_base = sq.qbuf.base;
	q.cq_base = cq.qbuf.base;
	q.cq_record = cq.dbr_ci_va.iov_base;
	q.doorbell_template = hw::hns1825::doorbell_template(qpn(), params);
	q.qpn = qpn();
	q.cqn = static_cast<uint32_t>(cq_->resv[0]);
	q.rkey = rkey;
	q.lkey = lkey;
	q.signal_every = config_.signal_every;
	q.sq_depth = sq.qbuf.entry_cnt;
	q.cq_depth = hw::hns1825::cq_ring(cq.qbuf.entry_cnt);
	q.cqe_stride =
		cq.qbuf.entry_size ? cq.qbuf.entry_size : hw::hns1825::default_cqe_stride;
	q.valid = 1;
	// The scratch words are the caller's to fill in; they do not count here.
	nda_queue complete = q;
	complete.scratch_local = complete.scratch_remote = 8;
	if (!hns1825::queue_usable(complete) || !q.sq_record || !q.sq_doorbell ||
		!q.sq_base || !q.cq_base || !q.cq_record)
		return fail(-EPROTO,
			"channel: describe: the extension driver of nic %s gave QP %u "
			"queues that "
			"cannot be used: SQ of %u at 0x%llx, CQ of %u * %u at 0x%llx",
			nic_->name().c_str(), qpn(), q.sq_depth,
			static_cast<unsigned long long>(q.sq_base), cq.qbuf.entry_cnt,
			q.cqe_stride, static_cast<unsigned long long>(q.cq_base));
	q.state = hns1825::derive_state(q, 0, 0, 0);
	queue = q;
	return 0;
}

} // namespace nda
