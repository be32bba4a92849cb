// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/nic.h"

#include <cerrno>
#include <cstring>
#include <nda/hw/hns1825.h>

#include "lib/nda/attr.h"
#include "lib/nda/error.h"
#include "lib/nda/log.h"
#include "lib/nda/search.h"
#include "lib/nda/soft_nic.h"
#include "lib/nda/verbs_nic.h"

namespace nda {
namespace {

int check_attr(const nda_nic_attr &a, const char *name)
{
	if (a.reserved)
		return fail(-EINVAL, "nic %s: reserved is not 0", name);
	const uint32_t mtu = a.mtu_bytes;
	if (mtu && (mtu < 256 || mtu > 4096 || (mtu & (mtu - 1)) != 0))
		return fail(-EINVAL, "nic %s: mtu_bytes %u is no power of two in 256..4096",
			name, mtu);
	return 0;
}

int to_verbs(uint32_t access)
{
	int flags = 0;
	if (access & NDA_ACCESS_LOCAL_WRITE)
		flags |= IBV_ACCESS_LOCAL_WRITE;
	if (access & NDA_ACCESS_REMOTE_WRITE)
		flags |= IBV_ACCESS_REMOTE_WRITE;
	if (access & NDA_ACCESS_REMOTE_READ)
		flags |= IBV_ACCESS_REMOTE_READ;
	if (access & NDA_ACCESS_REMOTE_ATOMIC)
		flags |= IBV_ACCESS_REMOTE_ATOMIC;
	return flags;
}

constexpr uint32_t access_all = NDA_ACCESS_LOCAL_WRITE | NDA_ACCESS_REMOTE_WRITE |
	NDA_ACCESS_REMOTE_READ | NDA_ACCESS_REMOTE_ATOMIC;

} // namespace

int Nic::open(const char *name, const nda_nic_attr *attr, size_t attr_size,
	std::shared_ptr<Nic> &out)
{
	if (!name)
		return fail(-EINVAL, "nic: name is NULL");
	nda_nic_attr a;
	int rc = read_attr(a, attr, attr_size, 0, "nic");
	if (!rc)
		rc = check_attr(a, name);
	if (rc)
		return rc;
	if (strncmp(name, "soft:", 5) == 0)
		return SoftNic::open(name + 5, a, out);
	return VerbsNic::open(name, a, out);
}

int Nic::info(nda_nic_info &out)
{
	ibv_port_attr port = {};
	const int rc = query_port(port);
	if (rc)
		return rc;
	out = {};
	strncpy(out.name, name_.c_str(), sizeof(out.name) - 1);
	out.format = format_;
	out.port_active = port.state == IBV_PORT_ACTIVE;
	out.active_mtu_bytes = port.active_mtu ? 128u << port.active_mtu : 0;
	out.gid_count = static_cast<uint32_t>(port.gid_tbl_len);
	out.max_message_bytes = port.max_msg_sz;
	return 0;
}

// Index 1 is what every public user of the 1825 puts into its doorbell.
int Nic::choose_gid(const GidChoice &choice, GidEntry &out)
{
	std::vector<GidEntry> entries;
	const int rc = query_gids(entries);
	return rc ? rc
		  : nda::choose_gid(name_.c_str(), entries, choice,
			    format_ == NDA_FORMAT_HNS1825 ? 1 : no_preferred_gid, out);
}

int Nic::check_port(const ibv_port_attr &port) const
{
	if (port.state == IBV_PORT_ACTIVE)
		return 0;
	return fail(-ENETDOWN, "nic %s: port is down%s", name_.c_str(),
		net_device_text().c_str());
}

int Nic::open_extend(ibv_context *context)
{
	errno = 0;
	extend_ = ibv_open_extend(context);
	if (!extend_) {
		const int rc = errno ? -errno : -ENODEV;
		const std::string problems = search_problems();
		return fail(rc, "nic %s: no extension driver for it: %s%s%s", name_.c_str(),
			errno_text(rc), problems.empty() ? "" : "; ", problems.c_str());
	}
	ibv_device_attr_extend caps = {};
	const int rc = ibv_query_device_extend(extend_, &caps);
	if (rc)
		return fail(rc < 0 ? rc : -rc, "nic %s: query its extension driver: %s",
			name_.c_str(), *driver_detail() ? driver_detail() : errno_text(rc));
	if (!(caps.ext_cap & IBV_EXTEND_DEV_NDA))
		return fail(-EOPNOTSUPP,
			"nic %s: its extension driver cannot place queues in NPU "
			"memory (capabilities 0x%x)",
			name_.c_str(), caps.ext_cap);
	return 0;
}

int Nic::query_eid(uint8_t[16])
{
	return fail(-EOPNOTSUPP, "nic %s: it has no EID, but GIDs", name_.c_str());
}

int Nic::create_jetty(const Npu &, uint32_t, queue_buf_dma_mode, std::unique_ptr<Jetty> &)
{
	return fail(-EOPNOTSUPP, "nic %s: it has no jetties, but QPs", name_.c_str());
}

int Mr::create(const std::shared_ptr<Nic> &nic, const std::shared_ptr<Npu> &npu,
	const MemoryRange &range, uint32_t access, uint32_t way, std::shared_ptr<Mr> &out)
{
	const auto a = static_cast<unsigned long long>(range.addr);
	const auto s = static_cast<unsigned long long>(range.size);
	if (access & ~access_all)
		return fail(-EINVAL, "mr: unknown access flags 0x%x", access & ~access_all);
	if (access & (NDA_ACCESS_REMOTE_WRITE | NDA_ACCESS_REMOTE_ATOMIC) &&
		!(access & NDA_ACCESS_LOCAL_WRITE))
		return fail(
			-EINVAL, "mr: remote write or atomic needs NDA_ACCESS_LOCAL_WRITE");
	if (range.size == 0 || range.addr + range.size < range.addr)
		return fail(-EINVAL, "mr: range 0x%llx, %llu bytes", a, s);
	int rc = npu->check_caller("register memory");
	if (rc)
		return rc;
	if (!npu->contains(range.addr, range.size))
		return fail(
			-EFAULT, "mr: 0x%llx, %llu bytes is not memory of the NPU", a, s);
	std::shared_ptr<Mr> mr(new Mr(nic, npu));
	rc = nic->register_memory(*npu, range, to_verbs(access), way, mr->made_);
	mr_tried() = mr->made_.info;
	if (rc)
		return rc;
	NDA_LOG(LogLevel::info, "nic %s: reaches 0x%llx, %llu bytes, by %s",
		nic->name().c_str(), a, s, mr_way_text(mr->made_.info.way));
	if (nic->format() == NDA_FORMAT_HNS1825 && !hw::hns1825::lkey_fits(mr->lkey()))
		return fail(-ERANGE,
			"nic %s: lkey 0x%x has more than the 30 bits that its queue "
			"format can carry",
			nic->name().c_str(), mr->lkey());
	out = std::move(mr);
	return 0;
}

int Mr::check() const
{
	const int rc = made_.memory.check();
	return rc ? fail_in(rc, "nic %s: memory", nic_->name().c_str()) : 0;
}

Mr::~Mr()
{
	const int rc = made_.mr ? nic_->deregister_memory(made_.mr) : 0;
	if (rc)
		NDA_LOG(LogLevel::err, "%s", error_detail());
}

} // namespace nda
