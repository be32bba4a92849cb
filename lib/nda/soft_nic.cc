// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/soft_nic.h"

#include <cerrno>

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
	{"xscale", NDA_FORMAT_XSCALE},
};

} // namespace

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
	std::string known;
	for (const Model &m : models)
		known += (known.empty() ? "" : ", ") + std::string(m.name);
	return fail(-ENODEV, "nic soft:%s: no such model; known: %s", model.c_str(),
		known.c_str());
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

int SoftNic::register_memory(uint64_t addr, uint64_t size, int access, ibv_mr *&mr)
{
	ibv_mr *made = api_.reg_mr(pd_, addr, size, access);
	if (!made)
		return fail_soft(api_, -errno, "nic %s: register 0x%llx, %llu bytes",
			name_.c_str(), static_cast<unsigned long long>(addr),
			static_cast<unsigned long long>(size));
	mr = made;
	return 0;
}

int SoftNic::deregister_memory(ibv_mr *mr)
{
	const int rc = api_.dereg_mr(mr);
	return rc ? fail_soft(api_, rc, "nic %s: deregister", name_.c_str()) : 0;
}

int SoftNic::join_session(const uint8_t *session)
{
	const int rc = api_.set_session(session);
	return rc ? fail_soft(api_, rc, "nic %s: join the job's session", name_.c_str())
		  : 0;
}

} // namespace nda
