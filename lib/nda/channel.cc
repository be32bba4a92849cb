// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/channel.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/random.h>

#include <nda/driver.h>

#include "lib/nda/error.h"
#include "lib/nda/jetty_channel.h"
#include "lib/nda/log.h"
#include "lib/nda/queue_format.h"

namespace nda {
namespace {

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

// What a driver says whose queue has no register to map.
const nda_software_doorbell *software_doorbell(const queue_info &sq)
{
	if (sq.db_hw_va.iov_base || !sq.resv[0] ||
		sq.resv[0] % alignof(nda_software_doorbell))
		return nullptr;
	const auto *d = reinterpret_cast<const nda_software_doorbell *>(sq.resv[0]);
	return d->magic == NDA_SOFTWARE_DOORBELL_MAGIC && d->ring ? d : nullptr;
}

// A doorbell of the independent kind cannot be proxied.
queue_buf_dma_mode dma_mode(nda_format format, uint32_t asked, bool proxied)
{
	const bool independent = asked == NDA_DMA_INDEPENDENT ||
		(asked == NDA_DMA_AUTO && format == NDA_FORMAT_HNS1825 && !proxied);
	return independent ? QUEUE_BUF_DMA_MODE_INDEP_UB : QUEUE_BUF_DMA_MODE_DEFAULT;
}

int check_desc(const Desc &d, nda_format format)
{
	if (d.magic == jetty_desc_magic)
		return fail(-EINVAL,
			"channel: connect: the peer has a jetty, this side a queue pair");
	if (d.magic != qp_desc_magic)
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

int Channel::create(std::shared_ptr<Nic> nic, std::shared_ptr<Npu> npu,
	const ChannelConfig &config, std::shared_ptr<Channel> &out)
{
	const int rc = nic->format() == NDA_FORMAT_UDMA
		? JettyChannel::create(std::move(nic), std::move(npu), config, out)
		: QpChannel::create(std::move(nic), std::move(npu), config, out);
	return rc ? fail_in(rc, "channel") : 0;
}

namespace {

class NoChannel final : public Channel {
public:
	void export_desc(uint8_t desc[NDA_CHANNEL_DESC_BYTES]) const override
	{
		memset(desc, 0, NDA_CHANNEL_DESC_BYTES);
	}
	int connect(const uint8_t[NDA_CHANNEL_DESC_BYTES]) override { return 0; }
	int reset() override { return 0; }
	bool connected() const override { return true; }
	int describe(uint64_t, const Keys &, nda_queue &queue) const override
	{
		queue = {};
		return 0;
	}
	nda_channel_info info() const override { return {}; }
};

} // namespace

std::shared_ptr<Channel> Channel::none()
{
	return std::make_shared<NoChannel>();
}

int QpChannel::create(std::shared_ptr<Nic> nic, std::shared_ptr<Npu> npu,
	const ChannelConfig &config, std::shared_ptr<Channel> &out)
{
	std::shared_ptr<QpChannel> channel(
		new QpChannel(std::move(nic), std::move(npu), config));
	const int rc = channel->init();
	if (!rc)
		out = std::move(channel);
	return rc;
}

int QpChannel::init()
{
	int rc = nic_->check_npu(*npu_);
	if (!rc)
		rc = query_identity();
	return rc ? rc : create_queues();
}

// Takes the port's MTU as far as the caller allows it.
int QpChannel::check_port(const ibv_port_attr &port)
{
	const char *name = nic_->name().c_str();
	const int rc = nic_->check_port(port);
	if (rc)
		return rc;
	if (port.active_mtu < IBV_MTU_256 || port.active_mtu > IBV_MTU_4096)
		return fail(
			-EPROTO, "nic %s: port reports MTU code %d", name, port.active_mtu);
	mtu_bytes_ = 128u << port.active_mtu;
	if (config_.path_mtu_bytes)
		mtu_bytes_ = std::min(mtu_bytes_, config_.path_mtu_bytes);
	if (config_.gid.by_index &&
		config_.gid.index >= static_cast<uint32_t>(port.gid_tbl_len))
		return fail(-EINVAL, "nic %s: gid_index %u: it has %d GIDs", name,
			config_.gid.index, port.gid_tbl_len);
	return 0;
}

int QpChannel::query_identity()
{
	ibv_port_attr port = {};
	int rc = nic_->query_port(port);
	if (!rc)
		rc = check_port(port);
	if (rc)
		return rc;
	GidEntry gid;
	rc = nic_->choose_gid(config_.gid, gid);
	gid_index_ = gid.index;
	gid_ = gid.gid;
	ibv_device_attr device = {};
	if (!rc)
		rc = nic_->query_device(device);
	if (rc)
		return rc;
	rd_atomic_ = static_cast<uint32_t>(std::max(1,
		std::min({static_cast<int>(rd_atomic_max), device.max_qp_rd_atom,
			device.max_qp_init_rd_atom})));
	return choose_psn();
}

int QpChannel::choose_psn()
{
	if (getrandom(&psn_, sizeof(psn_), 0) != sizeof(psn_))
		return fail_errno(-errno, "getrandom");
	psn_ &= 0xffffff;
	return 0;
}

// Every WQE may end in a completion of its own, if only a flushed one: the CQ is as deep as
// the SQ. Nothing is ever received, but some drivers refuse an empty RQ.
int QpChannel::create_queues()
{
	const queue_buf_dma_mode mode =
		dma_mode(nic_->format(), config_.dma_mode, npu_->proxies_all());
	ibv_cq_init_attr_extend cq = {};
	cq.attr.cqe = config_.sq_depth;
	cq.type = mode;
	cq.ops = npu_->ops(mode);
	clear_error_detail();
	Npu::forget_driver_failure();
	cq_ = ibv_create_cq_extend(nic_->extend(), &cq);
	if (!cq_) {
		const int error = errno, rc = error ? -error : -EIO;
		explain_failure(rc, "CQ");
		return rc;
	}
	int rc = fill_cq();
	if (!rc)
		rc = create_qp(mode);
	return rc ? rc : Npu::driver_failure();
}

int QpChannel::fill_cq()
{
	const int byte = cq_fill(nic_->format());
	if (byte < 0)
		return 0;
	const queue_buf &ring = cq_->cq_info.qbuf;
	const int rc =
		npu_->memset(ring.base, byte, uint64_t{ring.entry_cnt} * ring.entry_size);
	return rc ? fail_in(rc, "nic %s: fill a CQ", nic_->name().c_str()) : 0;
}

int QpChannel::create_qp(queue_buf_dma_mode mode)
{
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
	qp.ops = npu_->ops(mode);
	clear_error_detail();
	qp_ = ibv_create_qp_extend(nic_->extend(), &qp);
	if (!qp_) {
		const int error = errno, rc = error ? -error : -EIO;
		explain_failure(rc, "QP");
		return rc;
	}
	const int rc = find_doorbell();
	return rc ? rc : to_init();
}

int QpChannel::find_doorbell()
{
	const std::string name = "nic " + nic_->name() + ": QP " + std::to_string(qpn());
	doorbell_ = qp_->sq_info.db_hw_va.iov_base;
	const nda_software_doorbell *software = software_doorbell(qp_->sq_info);
	if (software) {
		KickTarget target = {0, qpn()};
		const int rc = npu_->add_doorbell(*software, name, doorbell_,
			nic_->kernel_kicks(target.device) ? &target : nullptr);
		if (rc)
			return rc;
		doorbell_is_ours_ = true;
	}
	int error = 0;
	const nda_doorbell way = npu_->doorbell_way(doorbell_, error);
	NDA_LOG(LogLevel::info, "%s: its doorbell is %s", name.c_str(),
		way == NDA_DOORBELL_MAPPED            ? "mapped"
			: way == NDA_DOORBELL_PROXIED ? "proxied"
						      : "watched by the kernel");
	return 0;
}

nda_channel_info QpChannel::info() const
{
	nda_channel_info info = {};
	int error = 0;
	info.qpn = qpn();
	info.doorbell = npu_->doorbell_way(doorbell_, error);
	info.doorbell_error = error;
	return info;
}

// The cause is known to the NPU's callbacks, if they failed, or to the driver.
void QpChannel::explain_failure(int code, const char *object)
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

int QpChannel::to_init()
{
	ibv_qp_attr attr = {};
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = nic_->port();
	attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	const int rc = nic_->modify_qp(qp_->qp, attr,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	return rc ? fail_in(rc, "QP %u to INIT", qpn()) : 0;
}

int QpChannel::to_rtr(uint32_t remote_qpn, uint32_t remote_psn, const ibv_gid &remote_gid,
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
	attr.ah_attr.grh.hop_limit = config_.hop_limit;
	attr.ah_attr.grh.flow_label = flow_label_;
	attr.ah_attr.grh.traffic_class = config_.traffic_class;
	attr.ah_attr.sl = config_.service_level;
	attr.ah_attr.port_num = nic_->port();
	const int rc = nic_->modify_qp(qp_->qp, attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (!rc)
		return 0;
	NDA_LOG(LogLevel::err,
		"QP %u to RTR: path_mtu %u, dest_qp_num %u, rq_psn %u, max_dest_rd_atomic "
		"%u, "
		"sgid_index %u, flow_label 0x%x, traffic_class %u, sl %u",
		qpn(), mtu_bytes_, remote_qpn, remote_psn, rd_atomic, gid_index_,
		flow_label_, config_.traffic_class, config_.service_level);
	return fail_step(rc, "RTR", remote_gid);
}

int QpChannel::to_rts(uint8_t rd_atomic)
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
int QpChannel::fail_step(int code, const char *step, const ibv_gid &remote_gid)
{
	char cause[error_detail_bytes / 2];
	snprintf(cause, sizeof(cause), "%s", error_detail());
	ibv_port_attr port = {};
	const bool down = nic_->query_port(port) == 0 && port.state != IBV_PORT_ACTIVE;
	return fail(down ? -ENETDOWN : code,
		"QP %u to %s: %s%s (from GID %s to GID %s, MTU %u)", qpn(), step,
		down ? "port is down: " : "", cause, address_text(gid_).c_str(),
		address_text(remote_gid).c_str(), mtu_bytes_);
}

QpChannel::~QpChannel()
{
	if (doorbell_is_ours_)
		npu_->remove_doorbell(doorbell_);
	int rc = qp_ ? ibv_destroy_qp_extend(nic_->extend(), qp_) : 0;
	if (rc)
		NDA_LOG(LogLevel::err, "nic %s: destroy QP: %d", nic_->name().c_str(), rc);
	rc = cq_ ? ibv_destroy_cq_extend(nic_->extend(), cq_) : 0;
	if (rc)
		NDA_LOG(LogLevel::err, "nic %s: destroy CQ: %d", nic_->name().c_str(), rc);
}

void QpChannel::export_desc(uint8_t desc[NDA_CHANNEL_DESC_BYTES]) const
{
	Desc d = {};
	d.magic = qp_desc_magic;
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

int QpChannel::connect(const uint8_t desc[NDA_CHANNEL_DESC_BYTES])
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
	if (config_.udp_source_port)
		flow_label_ = nic_->flow_label_of_port(config_.udp_source_port);
	rc = to_rtr(d.qpn, d.psn, remote_gid, rd_atomic);
	if (!rc)
		rc = to_rts(rd_atomic);
	if (rc)
		return fail_in(rc, "connect");
	state_ = State::connected;
	NDA_LOG(LogLevel::debug, "QP %u is connected: QP %u of GID %s, from GID %s, MTU %u",
		qpn(), d.qpn, address_text(remote_gid).c_str(), address_text(gid_).c_str(),
		mtu_bytes_);
	return set_udp_source_port();
}

// A new PSN: what is still on its way belongs to an earlier life. So do doorbells that the
// proxy has not come to; no kernel runs that could write others.
int QpChannel::reset()
{
	ibv_qp_attr attr = {};
	attr.qp_state = IBV_QPS_RESET;
	state_ = State::failed;
	was_reset_ = true;
	npu_->clear_doorbell(doorbell_);
	npu_->clear_doorbell(cq_->cq_info.db_hw_va.iov_base);
	Npu::forget_driver_failure();
	int rc = nic_->modify_qp(qp_->qp, attr, IBV_QP_STATE);
	if (!rc)
		rc = Npu::driver_failure();
	if (rc)
		return fail_in(rc, "QP %u to RESET", qpn());
	rc = fill_cq();
	if (!rc)
		rc = choose_psn();
	if (!rc)
		rc = to_init();
	if (!rc)
		state_ = State::created;
	return rc;
}

// A driver that cannot does not touch the queue pair, so the channel stays of use.
int QpChannel::set_udp_source_port()
{
	if (!config_.udp_source_port || flow_label_)
		return 0;
	ibv_qp_attr_extend attr = {};
	attr.qp = qp_->qp;
	attr.udp_src_port = config_.udp_source_port;
	const int rc = ibv_modify_qp_extend(
		nic_->extend(), &attr, IBV_QP_ATTR_EXTEND_UDP_SRC_PORT);
	if (!rc)
		return 0;
	return fail_errno(rc < 0 ? rc : -rc,
		"channel: nic %s: its extension driver cannot set UDP source port %u of QP "
		"%u, which is connected without",
		nic_->name().c_str(), config_.udp_source_port, qpn());
}

uint8_t QpChannel::mtu_shift() const
{
	return static_cast<uint8_t>(log2_of(mtu_bytes_) - 8);
}

int QpChannel::describe(uint64_t remote_delta, const Keys &keys, nda_queue &queue) const
{
	if (state_ != State::connected)
		return fail(-ENOTCONN, "channel: describe: QP %u is not connected", qpn());
	QueueSource source = {};
	source.qp = qp_;
	source.cq = cq_;
	source.doorbell = doorbell_;
	source.mtu_shift = mtu_shift();
	source.sgid_index = static_cast<uint8_t>(gid_index_);
	source.service_level = config_.service_level;
	source.signal_every = config_.signal_every;
	source.remote_delta = remote_delta;
	source.lkey = keys.lkey;
	source.rkey = keys.rkey;
	nda_queue q = {};
	if (!describe_queue(nic_->format(), source, q))
		return fail(-EPROTO,
			"channel: describe: the extension driver of nic %s gave QP %u "
			"queues that "
			"cannot be used: SQ of %u at 0x%llx, CQ of %u * %u at 0x%llx",
			nic_->name().c_str(), qpn(), q.sq_depth,
			static_cast<unsigned long long>(q.sq_base),
			cq_->cq_info.qbuf.entry_cnt, q.cqe_stride,
			static_cast<unsigned long long>(q.cq_base));
	if (was_reset_)
		resume_queue(nic_->format(), q);
	queue = q;
	return 0;
}

} // namespace nda
