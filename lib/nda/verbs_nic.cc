// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/verbs_nic.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <dlfcn.h>
#include <net/if.h>
#include <sys/utsname.h>

#include "lib/ibv_extend/device_name.h"
#include "lib/nda/error.h"
#include "lib/nda/log.h"
#include "lib/nda/soft.h"
#include "lib/nda/soft_nic.h"

namespace nda {
namespace {

// Verbs drivers whose queues the data plane can drive, and the extension driver that comes
// with this library for them.
struct Known {
	const char *driver;
	nda_format format;
	const char *extension;
};
constexpr Known known[] = {{"rxe", NDA_FORMAT_RXE, "libnda_rxe.so"}};

// ibv_query_port and ibv_reg_mr are macros.
int call_query_port(ibv_context *context, uint8_t port, ibv_port_attr *attr)
{
	return ibv_query_port(context, port, attr);
}

ibv_mr *call_reg_mr(ibv_pd *pd, void *addr, size_t size, uint64_t iova, int access)
{
	return iova == reinterpret_cast<uint64_t>(addr)
		? ibv_reg_mr(pd, addr, size, access)
		: ibv_reg_mr_iova(pd, addr, size, iova, access);
}

// libibverbs has it since version 34 of rdma-core.
ibv_mr *call_reg_dmabuf_mr(
	ibv_pd *pd, uint64_t offset, size_t size, uint64_t iova, int fd, int access)
{
	using Function = ibv_mr *(*)(ibv_pd *, uint64_t, size_t, uint64_t, int, int);
	static const auto function =
		reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, "ibv_reg_dmabuf_mr"));
	if (function)
		return function(pd, offset, size, iova, fd, access);
	errno = ENOSYS;
	return nullptr;
}

ssize_t call_query_gid_table(ibv_context *context, ibv_gid_entry *entries, size_t max)
{
	return ibv_query_gid_table(context, entries, max, 0);
}

constexpr VerbsApi real_api = {rdma_devices, rdma_port, ibv_get_device_list,
	ibv_free_device_list, ibv_get_device_index, ibv_open_device, ibv_close_device,
	ibv_alloc_pd, ibv_dealloc_pd, ibv_query_device, call_query_port,
	call_query_gid_table, ibv_modify_qp, call_reg_mr, call_reg_dmabuf_mr, ibv_dereg_mr,
	uname};
std::atomic<const VerbsApi *> current_api{&real_api};

const VerbsApi &api()
{
	return *current_api.load(std::memory_order_acquire);
}

// libibverbs returns an errno, or -1 with errno set.
int code_of(int rc)
{
	const int error = rc > 0 ? rc : errno;
	return error > 0 ? -error : -EIO;
}

// What a function that returned NULL left.
int code_of_errno()
{
	const int error = errno;
	return error > 0 ? -error : -EIO;
}

// "rxe0" or "rxe0:1".
struct NameAndPort {
	std::string device;
	uint8_t port = 1;
};

int parse_name(const std::string &name, NameAndPort &out)
{
	const size_t colon = name.rfind(':');
	NameAndPort found;
	found.device = name.substr(0, colon);
	if (colon != std::string::npos) {
		const std::string digits = name.substr(colon + 1);
		const bool number = !digits.empty() && digits.size() <= 3 &&
			digits.find_first_not_of("0123456789") == std::string::npos;
		const unsigned long port = number ? std::stoul(digits) : 0;
		if (port < 1 || port > 255)
			return fail(-EINVAL, "nic %s: port \"%s\" is not in 1..255",
				name.c_str(), digits.c_str());
		found.port = static_cast<uint8_t>(port);
	}
	if (found.device.empty())
		return fail(-EINVAL, "nic %s: no device's name", name.c_str());
	out = found;
	return 0;
}

int find_device(const std::string &name, RdmaDevice &out)
{
	std::vector<RdmaDevice> devices;
	const int rc = api().devices(devices);
	if (rc)
		return fail_in(rc, "nic %s", name.c_str());
	std::string there;
	for (const RdmaDevice &device : devices) {
		if (device.name == name) {
			out = device;
			return 0;
		}
		there += (there.empty() ? "" : ", ") + device.name;
	}
	return fail(-ENODEV,
		"nic %s: no such device; the kernel has %s, and software NICs are %s",
		name.c_str(), there.empty() ? "no RDMA device" : there.c_str(),
		soft_models("soft:").c_str());
}

// libibverbs' device list while it is held.
class DeviceList {
public:
	DeviceList() : list_(api().get_device_list(&count_)) {}
	~DeviceList()
	{
		if (list_)
			api().free_device_list(list_);
	}
	DeviceList(const DeviceList &) = delete;
	DeviceList &operator=(const DeviceList &) = delete;

	explicit operator bool() const { return list_ != nullptr; }
	// By the kernel's index; by name only where libibverbs does not know indices.
	ibv_device *find(const RdmaDevice &wanted) const
	{
		for (int i = 0; i < count_; i++) {
			const int index = api().get_device_index(list_[i]);
			if (index >= 0 ? static_cast<uint32_t>(index) == wanted.index
				       : wanted.name == list_[i]->name)
				return list_[i];
		}
		return nullptr;
	}

private:
	int count_ = 0;
	ibv_device **const list_;
};

// " (mlx5_core at 0000:3b:00.0)" or "".
std::string part_text(const RdmaDevice &device)
{
	if (device.location.empty())
		return {};
	return " (" + (device.kernel_driver.empty() ? "" : device.kernel_driver + " at ") +
		device.location + ")";
}

const Known *known_driver(const std::string &driver)
{
	const auto *found = std::find_if(std::begin(known), std::end(known),
		[&](const Known &k) { return driver == k.driver; });
	return found == std::end(known) ? nullptr : found;
}

int check_attr(const std::string &name, const nda_nic_attr &attr)
{
	if (attr.inject)
		return fail(-EINVAL, "nic %s: inject is for software NICs", name.c_str());
	if (attr.events)
		return fail(-EINVAL, "nic %s: events is for software NICs", name.c_str());
	if (attr.mtu_bytes)
		return fail(-EINVAL,
			"nic %s: mtu_bytes is for software NICs; a channel has "
			"path_mtu_bytes",
			name.c_str());
	return 0;
}

} // namespace

int VerbsNic::open(
	const std::string &name, const nda_nic_attr &attr, std::shared_ptr<Nic> &out)
{
	NameAndPort wanted;
	RdmaDevice device;
	int rc = parse_name(name, wanted);
	if (!rc)
		rc = find_device(wanted.device, device);
	if (!rc)
		rc = check_attr(name, attr);
	if (rc)
		return rc;
	if (device.n_ports && wanted.port > device.n_ports)
		return fail(-EINVAL, "nic %s: the device has %u ports", name.c_str(),
			device.n_ports);
	const DeviceList list;
	if (!list)
		return fail_errno(
			code_of_errno(), "nic %s: libibverbs' device list", name.c_str());
	ibv_device *verbs_device = list.find(device);
	if (!verbs_device)
		return fail(-ENODEV,
			"nic %s%s: libibverbs has no driver for it; is the provider of "
			"rdma-core installed?",
			name.c_str(), part_text(device).c_str());
	const std::string driver = extend::verbs_driver_name(verbs_device);
	const Known *driver_known = known_driver(driver);
	if (!driver_known)
		return fail(-EOPNOTSUPP,
			"nic %s%s: the queue format of verbs driver \"%s\" is not known",
			name.c_str(), part_text(device).c_str(), driver.c_str());
	std::shared_ptr<VerbsNic> nic(
		new VerbsNic(name, driver_known->format, wanted.port, device));
	rc = nic->init(verbs_device);
	if (!rc)
		out = std::move(nic);
	return rc;
}

int VerbsNic::init(ibv_device *verbs_device)
{
	errno = 0;
	context_ = api().open_device(verbs_device);
	if (!context_)
		return fail_errno(
			code_of_errno(), "nic %s: ibv_open_device", name_.c_str());
	errno = 0;
	pd_ = api().alloc_pd(context_);
	if (!pd_)
		return fail_errno(code_of_errno(), "nic %s: ibv_alloc_pd", name_.c_str());
	ibv_port_attr port = {};
	const int rc = query_port(port);
	if (rc)
		return rc;
	if (port.link_layer != IBV_LINK_LAYER_ETHERNET)
		return fail(-EOPNOTSUPP, "nic %s: port %u is not of Ethernet (RoCE)",
			name_.c_str(), port_);
	return open_extension();
}

// Drivers that the user configured come first; then the one that belongs to this library.
int VerbsNic::open_extension()
{
	const int rc = open_extend(context_);
	if (rc != -ENODEV)
		return rc;
	const std::string first = error_detail();
	std::string reasons;
	const Known *own = known_driver(extend::verbs_driver_name(context_->device));
	if (!own || !load_beside(own->extension, reasons))
		return fail(rc, "%s; %s", first.c_str(), reasons.c_str());
	NDA_LOG(LogLevel::info, "nic %s: loaded %s", name_.c_str(), own->extension);
	return open_extend(context_);
}

VerbsNic::~VerbsNic()
{
	int rc = extend_ ? ibv_close_extend(extend_) : 0;
	if (rc)
		NDA_LOG(LogLevel::err, "nic %s: close extension: %d", name_.c_str(), rc);
	rc = pd_ ? api().dealloc_pd(pd_) : 0;
	if (rc)
		NDA_LOG(LogLevel::err, "nic %s: ibv_dealloc_pd: %d", name_.c_str(), rc);
	rc = context_ ? api().close_device(context_) : 0;
	if (rc)
		NDA_LOG(LogLevel::err, "nic %s: ibv_close_device: %d", name_.c_str(), rc);
}

int VerbsNic::query_device(ibv_device_attr &attr)
{
	const int rc = api().query_device(context_, &attr);
	return rc ? fail_errno(code_of(rc), "nic %s: ibv_query_device", name_.c_str()) : 0;
}

int VerbsNic::query_port(ibv_port_attr &attr)
{
	const int rc = api().query_port(context_, port_, &attr);
	return rc
		? fail_errno(code_of(rc), "nic %s: ibv_query_port %u", name_.c_str(), port_)
		: 0;
}

int VerbsNic::query_gids(std::vector<GidEntry> &entries)
{
	ibv_port_attr port = {};
	const int rc = query_port(port);
	if (rc)
		return rc;
	ibv_device_attr device = {};
	if (const int error = query_device(device))
		return error;
	// The table is that of all ports.
	const size_t ports = std::max<size_t>(device.phys_port_cnt, 1);
	std::vector<ibv_gid_entry> table(ports * size_t(std::max(port.gid_tbl_len, 1)));
	errno = 0;
	const ssize_t n = api().query_gid_table(context_, table.data(), table.size());
	if (n < 0)
		return fail_errno(n < -1 ? int(n) : code_of_errno(),
			"nic %s: ibv_query_gid_table", name_.c_str());
	for (size_t i = 0; i < size_t(n); i++) {
		const ibv_gid_entry &found = table[i];
		if (found.port_num != port_ || empty(found.gid))
			continue;
		GidEntry entry;
		entry.index = found.gid_index;
		entry.gid = found.gid;
		entry.type = found.gid_type;
		char device_name[IF_NAMESIZE];
		if (found.ndev_ifindex && if_indextoname(found.ndev_ifindex, device_name))
			entry.net_device = device_name;
		entries.push_back(entry);
	}
	std::sort(entries.begin(), entries.end(),
		[](const GidEntry &a, const GidEntry &b) { return a.index < b.index; });
	return 0;
}

int VerbsNic::modify_qp(ibv_qp *qp, ibv_qp_attr &attr, int mask)
{
	const int rc = api().modify_qp(qp, &attr, mask);
	return rc ? fail_errno(code_of(rc), "nic %s: ibv_modify_qp", name_.c_str()) : 0;
}

int VerbsNic::check_npu(const Npu &npu) const
{
	if (npu.shares_host_addresses())
		return 0;
	return fail(-EOPNOTSUPP,
		"nic %s: reaches host memory only, and %s does not share the host's "
		"address space%s",
		name_.c_str(), npu.name(), npu.software() ? " (strict mode)" : "");
}

// Soft-RoCE sends from port 0xc000 | ((L ^ L >> 14) & 0x3fff) for label L, as the kernel's
// rdma_flow_label_to_udp_sport() has it; label 0 is none, but 0x4001 gives 0xc000. Kernels
// before 5.18 are said to look at the QP number alone (unverified; 6.1 is what is tested).
uint32_t VerbsNic::flow_label_of_port(uint16_t udp_source_port) const
{
	constexpr uint32_t first = 0xc000, bits = 0x3fff, label_of_first = 0x4001;
	utsname name = {};
	unsigned major = 0, minor = 0;
	if (format() != NDA_FORMAT_RXE || udp_source_port < first)
		return 0;
	if (api().uname(&name) != 0 || sscanf(name.release, "%u.%u", &major, &minor) != 2 ||
		major < 5 || (major == 5 && minor < 18))
		return 0;
	return udp_source_port == first ? label_of_first : udp_source_port & bits;
}

int VerbsNic::deregister_memory(ibv_mr *mr)
{
	const int rc = api().dereg_mr(mr);
	return rc ? fail_errno(code_of(rc), "nic %s: ibv_dereg_mr", name_.c_str()) : 0;
}

// Only for texts of errors: one more failure is none to report.
std::string VerbsNic::net_device_text() const
{
	RdmaPort port;
	if (api().port(device_, port_, port) != 0 || port.net_device.empty())
		return {};
	return " (net device " + port.net_device + ")";
}

const VerbsApi &verbs_api()
{
	return api();
}

void set_verbs_for_test(const VerbsApi *replacement)
{
	current_api.store(replacement ? replacement : &real_api, std::memory_order_release);
}

} // namespace nda
