// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The kernel's RDMA netlink, played by messages as the kernel's public header lays them
// out.
#include "lib/nda/discovery.h"

#include <cerrno>
#include <functional>
#include <memory>

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <rdma/rdma_netlink.h>

#include "lib/nda/error.h"

namespace nda {
namespace {

struct Message {
	nl_msg *msg = nlmsg_alloc();
	Message() { nlmsg_put(msg, 0, 0, 0, 0, 0); }
	~Message() { nlmsg_free(msg); }
	Message(const Message &) = delete;
	Message &operator=(const Message &) = delete;
};
using Reply = int (*)(nlmsghdr *, void *);

// What the kernel does with a request.
std::function<int(nl_msg *, bool, Reply, void *)> kernel;

class Discovery : public testing::Test {
protected:
	void SetUp() override
	{
		static const DiscoveryApi api = {
			[](nl_msg *request, bool dump, Reply reply, void *cookie) {
				return kernel(request, dump, reply, cookie);
			},
			[](RdmaDevice &device) { device.location = "at " + device.name; }};
		set_discovery_for_test(&api);
	}
	void TearDown() override
	{
		set_discovery_for_test(nullptr);
		kernel = nullptr;
	}
};

int say_device(Reply reply, void *cookie, uint32_t index, const char *name, uint32_t ports)
{
	Message m;
	nla_put_u32(m.msg, RDMA_NLDEV_ATTR_DEV_INDEX, index);
	nla_put_string(m.msg, RDMA_NLDEV_ATTR_DEV_NAME, name);
	nla_put_u32(m.msg, RDMA_NLDEV_ATTR_PORT_INDEX, ports);
	nla_put_u8(m.msg, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, IBV_NODE_CA);
	// One that this side does not know is passed over.
	nla_put_u32(m.msg, RDMA_NLDEV_ATTR_MAX + 3, 1);
	return reply(nlmsg_hdr(m.msg), cookie);
}

TEST_F(Discovery, ListsTheKernelsDevices)
{
	kernel = [](nl_msg *request, bool dump, Reply reply, void *cookie) {
		EXPECT_EQ(nlmsg_hdr(request)->nlmsg_type,
			RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET));
		EXPECT_TRUE(dump);
		const int rc = say_device(reply, cookie, 0, "ibp0s12f4", 2);
		return rc ? rc : say_device(reply, cookie, 9, "rxe0", 1);
	};
	std::vector<RdmaDevice> found;
	ASSERT_EQ(rdma_devices(found), 0) << error_detail();
	ASSERT_EQ(found.size(), 2u);
	EXPECT_EQ(found[0].name, "ibp0s12f4");
	EXPECT_EQ(found[0].n_ports, 2u);
	EXPECT_EQ(found[0].location, "at ibp0s12f4");
	EXPECT_EQ(found[1].name, "rxe0");
	EXPECT_EQ(found[1].index, 9u);
	EXPECT_EQ(found[1].node_type, uint32_t(IBV_NODE_CA));
}

TEST_F(Discovery, FindsNoneWhereTheKernelKnowsNoRdma)
{
	kernel = [](nl_msg *, bool, Reply, void *) { return -EPROTONOSUPPORT; };
	std::vector<RdmaDevice> found(1);
	EXPECT_EQ(rdma_devices(found), 0);
	EXPECT_TRUE(found.empty());
}

TEST_F(Discovery, HandsOnTheKernelsError)
{
	kernel = [](nl_msg *, bool, Reply, void *) { return -EACCES; };
	std::vector<RdmaDevice> found;
	EXPECT_EQ(rdma_devices(found), -EACCES);
	EXPECT_STREQ(error_detail(), "RDMA netlink: list of devices: Permission denied");
}

TEST_F(Discovery, RefusesADeviceWithoutAName)
{
	kernel = [](nl_msg *, bool, Reply reply, void *cookie) {
		return say_device(reply, cookie, 1, "", 1);
	};
	std::vector<RdmaDevice> found;
	EXPECT_EQ(rdma_devices(found), -EPROTO);
	EXPECT_TRUE(found.empty());
}

TEST_F(Discovery, ReadsAPort)
{
	kernel = [](nl_msg *request, bool dump, Reply reply, void *cookie) {
		EXPECT_EQ(nlmsg_hdr(request)->nlmsg_type,
			RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_PORT_GET));
		EXPECT_FALSE(dump);
		nlattr *index =
			nlmsg_find_attr(nlmsg_hdr(request), 0, RDMA_NLDEV_ATTR_DEV_INDEX);
		nlattr *port =
			nlmsg_find_attr(nlmsg_hdr(request), 0, RDMA_NLDEV_ATTR_PORT_INDEX);
		EXPECT_TRUE(index && nla_get_u32(index) == 9);
		EXPECT_TRUE(port && nla_get_u32(port) == 2);
		Message m;
		nla_put_u8(m.msg, RDMA_NLDEV_ATTR_PORT_STATE, IBV_PORT_ACTIVE);
		nla_put_string(m.msg, RDMA_NLDEV_ATTR_NDEV_NAME, "eth0");
		return reply(nlmsg_hdr(m.msg), cookie);
	};
	RdmaDevice device;
	device.index = 9;
	RdmaPort port;
	ASSERT_EQ(rdma_port(device, 2, port), 0) << error_detail();
	EXPECT_EQ(port.state, uint32_t(IBV_PORT_ACTIVE));
	EXPECT_EQ(port.net_device, "eth0");
}

TEST_F(Discovery, KnowsNoNetDeviceOfAnotherNamespace)
{
	kernel = [](nl_msg *, bool, Reply reply, void *cookie) {
		Message m;
		nla_put_u8(m.msg, RDMA_NLDEV_ATTR_PORT_STATE, IBV_PORT_ACTIVE);
		return reply(nlmsg_hdr(m.msg), cookie);
	};
	RdmaPort port;
	ASSERT_EQ(rdma_port(RdmaDevice(), 1, port), 0) << error_detail();
	EXPECT_EQ(port.net_device, "");
}

TEST_F(Discovery, NamesDeviceAndPortThatAreGone)
{
	kernel = [](nl_msg *, bool, Reply, void *) { return -ENODEV; };
	RdmaDevice device;
	device.name = "rxe0";
	RdmaPort port;
	EXPECT_EQ(rdma_port(device, 3, port), -ENODEV);
	EXPECT_STREQ(error_detail(), "RDMA netlink: port 3 of device rxe0: No such device");
}

} // namespace
} // namespace nda
