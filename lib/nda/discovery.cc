// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/discovery.h"

#include <atomic>
#include <cerrno>
#include <memory>
#include <sys/socket.h>
#include <sys/time.h>

#include <infiniband/verbs.h>
#include <libudev.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <rdma/rdma_netlink.h>

#include "lib/nda/error.h"
#include "lib/nda/guard.h"

namespace nda {
namespace {

constexpr time_t answer_seconds = 5; // the kernel answers at once or not at all

template <auto release>
struct Release {
	template <class T>
	void operator()(T *object) const
	{
		release(object);
	}
};
using Socket = std::unique_ptr<nl_sock, Release<nl_socket_free>>;
using Message = std::unique_ptr<nl_msg, Release<nlmsg_free>>;
using Udev = std::unique_ptr<udev, Release<udev_unref>>;
using UdevDevice = std::unique_ptr<udev_device, Release<udev_device_unref>>;

constexpr int type_of(int command)
{
	return RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command);
}

// errno of an error code of libnl.
int errno_of(int code)
{
	switch (-code) {
	case NLE_NOMEM:
		return ENOMEM;
	case NLE_AGAIN:
		return ETIMEDOUT;
	case NLE_OBJ_NOTFOUND:
	case NLE_NODEV:
		return ENODEV;
	case NLE_AF_NOSUPPORT:
	case NLE_PROTO_MISMATCH:
		return EPROTONOSUPPORT;
	case NLE_OPNOTSUPP:
		return EOPNOTSUPP;
	case NLE_PERM:
	case NLE_NOACCESS:
		return EACCES;
	case NLE_INVAL:
	case NLE_RANGE:
		return EINVAL;
	default:
		return EIO;
	}
}

// What the callback of a running request needs.
struct Answer {
	int (*reply)(nlmsghdr *, void *);
	void *cookie;
	int code;
};

int take(nl_msg *message, void *arg)
{
	Answer &answer = *static_cast<Answer *>(arg);
	answer.code = answer.reply(nlmsg_hdr(message), answer.cookie);
	return answer.code ? NL_STOP : NL_OK;
}

int ask(nl_msg *request, bool dump, int (*reply)(nlmsghdr *, void *), void *cookie)
{
	const Socket socket(nl_socket_alloc());
	if (!socket)
		return -ENOMEM;
	// Of a request that is no dump the kernel sends the answer alone.
	nl_socket_disable_auto_ack(socket.get());
	const int connected = nl_connect(socket.get(), NETLINK_RDMA);
	if (connected < 0)
		return -errno_of(connected);
	const timeval limit = {answer_seconds, 0};
	if (setsockopt(nl_socket_get_fd(socket.get()), SOL_SOCKET, SO_RCVTIMEO, &limit,
		    sizeof(limit)) != 0)
		return -errno;
	Answer answer = {reply, cookie, 0};
	nl_socket_modify_cb(socket.get(), NL_CB_VALID, NL_CB_CUSTOM, take, &answer);
	if (dump)
		nlmsg_hdr(request)->nlmsg_flags |= NLM_F_DUMP;
	int rc = nl_send_auto(socket.get(), request);
	if (rc >= 0)
		rc = nl_recvmsgs_default(socket.get());
	if (answer.code)
		return answer.code;
	return rc < 0 ? -errno_of(rc) : 0;
}

void locate(RdmaDevice &device)
{
	const Udev udev(udev_new());
	if (!udev)
		return;
	const UdevDevice found(udev_device_new_from_subsystem_sysname(
		udev.get(), "infiniband", device.name.c_str()));
	// The parent belongs to the device.
	udev_device *parent = found ? udev_device_get_parent(found.get()) : nullptr;
	if (!parent)
		return;
	if (const char *name = udev_device_get_sysname(parent))
		device.location = name;
	if (const char *driver = udev_device_get_driver(parent))
		device.kernel_driver = driver;
}

constexpr DiscoveryApi real_api = {ask, locate};
std::atomic<const DiscoveryApi *> current_api{&real_api};

const DiscoveryApi &api()
{
	return *current_api.load(std::memory_order_acquire);
}

// The attributes of one message.
class Attributes {
public:
	explicit Attributes(nlmsghdr *message)
	{
		// Longer strings than a policy allows are no reason to refuse the rest.
		if (nlmsg_parse(message, 0, found_, RDMA_NLDEV_ATTR_MAX - 1, nullptr) < 0)
			for (nlattr *&attribute : found_)
				attribute = nullptr;
	}
	bool has(int attribute) const { return found_[attribute] != nullptr; }
	// 0 and "" if it is missing or too short.
	uint32_t u32(int attribute) const { return number<uint32_t>(attribute); }
	uint8_t u8(int attribute) const { return number<uint8_t>(attribute); }
	std::string text(int attribute) const
	{
		const nlattr *a = found_[attribute];
		if (!a)
			return {};
		const std::string bytes(
			static_cast<const char *>(nla_data(a)), size_t(nla_len(a)));
		return bytes.substr(0, bytes.find('\0'));
	}

private:
	template <class T>
	T number(int attribute) const
	{
		const nlattr *a = found_[attribute];
		T value = 0;
		if (a && size_t(nla_len(a)) >= sizeof(value))
			memcpy(&value, nla_data(a), sizeof(value));
		return value;
	}

	nlattr *found_[RDMA_NLDEV_ATTR_MAX] = {};
};

// Called from C code: nothing is thrown.
int take_device(nlmsghdr *message, void *cookie)
{
	return guard([&] {
		const Attributes attributes(message);
		RdmaDevice device;
		device.index = attributes.u32(RDMA_NLDEV_ATTR_DEV_INDEX);
		device.name = attributes.text(RDMA_NLDEV_ATTR_DEV_NAME);
		device.node_type = attributes.u8(RDMA_NLDEV_ATTR_DEV_NODE_TYPE);
		device.n_ports = attributes.u32(RDMA_NLDEV_ATTR_PORT_INDEX);
		if (!attributes.has(RDMA_NLDEV_ATTR_DEV_INDEX) || device.name.empty())
			return -EPROTO;
		static_cast<std::vector<RdmaDevice> *>(cookie)->push_back(device);
		return 0;
	});
}

int take_port(nlmsghdr *message, void *cookie)
{
	return guard([&] {
		const Attributes attributes(message);
		RdmaPort port;
		port.state = attributes.u8(RDMA_NLDEV_ATTR_PORT_STATE);
		port.net_device = attributes.text(RDMA_NLDEV_ATTR_NDEV_NAME);
		*static_cast<RdmaPort *>(cookie) = port;
		return 0;
	});
}

} // namespace

int rdma_devices(std::vector<RdmaDevice> &out)
{
	const Message request(
		nlmsg_alloc_simple(type_of(RDMA_NLDEV_CMD_GET), NLM_F_REQUEST));
	if (!request)
		return fail(-ENOMEM, "RDMA netlink: out of memory");
	std::vector<RdmaDevice> found;
	const int rc = api().ask(request.get(), true, take_device, &found);
	if (rc && rc != -EPROTONOSUPPORT)
		return fail_errno(rc, "RDMA netlink: list of devices");
	for (RdmaDevice &device : found)
		api().locate(device);
	out = std::move(found);
	return 0;
}

int rdma_port(const RdmaDevice &device, uint32_t port, RdmaPort &out)
{
	const Message request(
		nlmsg_alloc_simple(type_of(RDMA_NLDEV_CMD_PORT_GET), NLM_F_REQUEST));
	if (!request ||
		nla_put_u32(request.get(), RDMA_NLDEV_ATTR_DEV_INDEX, device.index) < 0 ||
		nla_put_u32(request.get(), RDMA_NLDEV_ATTR_PORT_INDEX, port) < 0)
		return fail(-ENOMEM, "RDMA netlink: out of memory");
	RdmaPort found;
	const int rc = api().ask(request.get(), false, take_port, &found);
	if (rc)
		return fail_errno(rc, "RDMA netlink: port %u of device %s", port,
			device.name.c_str());
	out = found;
	return 0;
}

void set_discovery_for_test(const DiscoveryApi *replacement)
{
	current_api.store(replacement ? replacement : &real_api, std::memory_order_release);
}

} // namespace nda
