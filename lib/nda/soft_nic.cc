// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/soft_nic.h"

#include <cerrno>
#include <cstring>

#include "lib/nda/error.h"
#include "lib/nda/log.h"

namespace nda {
namespace {

struct Model {
	const char *name;
	nda_format format;
};
constexpr Model models[] = {
	{"hns1825", NDA_FORMAT_HNS1825},
	{"in_die", NDA_FORMAT_IN_DIE},
	{"xscale", NDA_FORMAT_XSCALE},
	{"udma", NDA_FORMAT_UDMA},
};

} // namespace

std::string soft_models(const char *prefix)
{
	std::string known;
	for (const Model &m : models)
		known += (known.empty() ? "" : ", ") + std::string(prefix) + m.name;
	return known;
}

int SoftNic::open(
	const std::string &model, const nda_nic_attr &attr, std::shared_ptr<Nic> &out)
{
	for (const Model &m : models) {
		if (model != m.name)
			continue;
		const SoftApi *api = nullptr;
		const std::string name = "soft:" + model;
		int rc = load_soft(api);
		if (rc)
			return fail_in(rc, "nic %s", name.c_str());
		std::shared_ptr<SoftNic> nic(new SoftNic(name, m.format, *api));
		rc = nic->init(m.name, attr);
		if (!rc)
			out = std::move(nic);
		return rc;
	}
	return fail(-ENODEV, "nic soft:%s: no such model; known: %s", model.c_str(),
		soft_models("").c_str());
}

int SoftNic::init(const char *model, const nda_nic_attr &attr)
{
	nda_soft_nic_attr soft = {};
	soft.model = model;
	soft.inject = attr.inject;
	soft.mtu_bytes = attr.mtu_bytes;
	soft.events = attr.events;
	context_ = api_.nic_open(&soft);
	if (!context_)
		return fail_soft(api_, -errno, "nic %s: open", name_.c_str());
	pd_ = api_.alloc_pd(context_);
	if (!pd_)
		return fail_soft(api_, -errno, "nic %s: protection domain", name_.c_str());
	return open_extend(context_);
}

SoftNic::~SoftNic()
{
	int rc = extend_ ? ibv_close_extend(extend_) : 0;
	if (rc)
		NDA_LOG(LogLevel::err, "nic %s: close extension: %d", name_.c_str(), rc);
	rc = pd_ ? api_.dealloc_pd(pd_) : 0;
	if (rc)
		NDA_LOG(LogLevel::err, "nic %s: dealloc_pd: %d", name_.c_str(), rc);
	rc = context_ ? api_.nic_close(context_) : 0;
	if (rc)
		NDA_LOG(LogLevel::err, "nic %s: close: %d", name_.c_str(), rc);
}

int SoftNic::query_device(ibv_device_attr &attr)
{
	const int rc = api_.query_device(context_, &attr);
	return rc ? fail_soft(api_, rc, "nic %s: query_device", name_.c_str()) : 0;
}

int SoftNic::query_port(ibv_port_attr &attr)
{
	const int rc = api_.query_port(context_, port_, &attr);
	return rc ? fail_soft(api_, rc, "nic %s: query_port", name_.c_str()) : 0;
}

int SoftNic::query_gids(std::vector<GidEntry> &entries)
{
	ibv_port_attr port = {};
	int rc = query_port(port);
	for (int i = 0; !rc && i < port.gid_tbl_len; i++) {
		GidEntry entry;
		entry.index = static_cast<uint32_t>(i);
		rc = api_.query_gid(context_, port_, i, &entry.gid);
		if (rc)
			return fail_soft(
				api_, rc, "nic %s: query_gid %d", name_.c_str(), i);
		if (!empty(entry.gid))
			entries.push_back(entry);
	}
	return rc;
}

int SoftNic::modify_qp(ibv_qp *qp, ibv_qp_attr &attr, int mask)
{
	const int rc = api_.modify_qp(qp, &attr, mask);
	return rc ? fail_soft(api_, rc, "nic %s: modify_qp", name_.c_str()) : 0;
}

// The fabric finds the memory by its address, whatever way is asked for.
int SoftNic::register_memory(
	Npu &npu, const MemoryRange &range, int access, uint32_t, Registration &out)
{
	const int rc = check_npu(npu);
	if (rc)
		return rc;
	ibv_mr *made = api_.reg_mr(pd_, range.addr, range.size, access);
	if (!made)
		return fail_soft(api_, -errno, "nic %s: register 0x%llx, %llu bytes",
			name_.c_str(), static_cast<unsigned long long>(range.addr),
			static_cast<unsigned long long>(range.size));
	out.mr = made;
	out.info.way = NDA_MR_SOFT;
	return 0;
}

int SoftNic::deregister_memory(ibv_mr *mr)
{
	const int rc = api_.dereg_mr(mr);
	return rc ? fail_soft(api_, rc, "nic %s: deregister", name_.c_str()) : 0;
}

namespace {

class SoftJetty final : public Jetty {
public:
	SoftJetty(const SoftApi &api, nda_soft_jetty *jetty) : api_(api), jetty_(jetty) {}
	~SoftJetty() override
	{
		const int rc = api_.jetty_destroy(jetty_);
		if (rc)
			NDA_LOG(LogLevel::err, "destroy jetty: %d", rc);
	}

	int query(Queues &queues) const override
	{
		nda_soft_jetty_info info = {};
		const int rc = api_.jetty_query(jetty_, &info);
		if (rc)
			return fail_soft(api_, rc, "query jetty");
		queues = {info.jetty_id, info.jfc_id, info.sq_addr, info.sq_blocks,
			info.max_inline, info.sq_doorbell, info.cq_addr, info.cq_depth,
			info.cqe_bytes, info.cq_record};
		return 0;
	}

	int connect(const Peer &peer, uint32_t &tp_id) override
	{
		nda_soft_jetty_peer soft = {};
		memcpy(soft.eid, peer.eid, sizeof(soft.eid));
		soft.jetty_id = peer.id;
		soft.timeout = peer.timeout;
		soft.retry_count = peer.retry_count;
		const int rc = api_.jetty_connect(jetty_, &soft, &tp_id);
		return rc ? fail_soft(api_, rc, "connect jetty") : 0;
	}

	int reset() override
	{
		const int rc = api_.jetty_reset(jetty_);
		return rc ? fail_soft(api_, rc, "reset jetty") : 0;
	}

private:
	const SoftApi &api_;
	nda_soft_jetty *const jetty_;
};

} // namespace

int SoftNic::check_npu(const Npu &npu) const
{
	if (npu.software())
		return 0;
	return fail(-EOPNOTSUPP,
		"nic %s: reaches the software NPU's memory only, not that of %s",
		name_.c_str(), npu.name());
}

int SoftNic::query_eid(uint8_t eid[16])
{
	if (format_ != NDA_FORMAT_UDMA)
		return Nic::query_eid(eid);
	const int rc = api_.query_eid(context_, eid);
	return rc ? fail_soft(api_, rc, "nic %s: query_eid", name_.c_str()) : 0;
}

int SoftNic::create_jetty(const Npu &npu, uint32_t blocks, queue_buf_dma_mode mode,
	std::unique_ptr<Jetty> &out)
{
	if (format_ != NDA_FORMAT_UDMA)
		return Nic::create_jetty(npu, blocks, mode, out);
	nda_soft_jetty_attr attr = {};
	attr.pd = pd_;
	attr.ops = npu.ops();
	attr.blocks = blocks;
	attr.dma_mode = mode;
	nda_soft_jetty *jetty = api_.jetty_create(&attr);
	if (!jetty)
		return fail_soft(api_, errno ? -errno : -EIO, "nic %s: create a jetty",
			name_.c_str());
	out = std::make_unique<SoftJetty>(api_, jetty);
	return 0;
}

int SoftNic::join_session(const uint8_t *session)
{
	const int rc = api_.set_session(session);
	return rc ? fail_soft(api_, rc, "nic %s: join the job's session", name_.c_str())
		  : 0;
}

} // namespace nda
