// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// RDMA devices as the kernel has them now. Names are never guessed: udev renames devices,
// also while programs run, so what counts between two looks is the kernel's index.
#ifndef NDA_LIB_DISCOVERY_H
#define NDA_LIB_DISCOVERY_H

#include <cstdint>
#include <string>
#include <vector>

struct nl_msg;
struct nlmsghdr;

namespace nda {

struct RdmaDevice {
	uint32_t index = 0;
	std::string name;
	uint32_t node_type = 0; // enum ibv_node_type
	uint32_t n_ports = 0;
	// Of the device that it is part of: "0000:3b:00.0" and "mlx5_core". Empty if it is
	// part of none, as Soft-RoCE.
	std::string location;
	std::string kernel_driver;
};

struct RdmaPort {
	uint32_t state = 0;     // enum ibv_port_state
	std::string net_device; // as named in this network namespace, "" if not seen in it
};

// 0, or a negative errno with the detail set. Without RDMA in the kernel there is no
// device.
int rdma_devices(std::vector<RdmaDevice> &out);
int rdma_port(const RdmaDevice &device, uint32_t port, RdmaPort &out);

// How the kernel is asked; tests put in their own.
struct DiscoveryApi {
	// Sends a request to the kernel's RDMA netlink and calls reply(message, cookie) for
	// each message of its answer, until one returns a negative errno. dump: the answer
	// is a list. -EPROTONOSUPPORT: the kernel knows no RDMA.
	int (*ask)(
		nl_msg *request, bool dump, int (*reply)(nlmsghdr *, void *), void *cookie);
	// Fills in location and kernel_driver from udev, if it knows them.
	void (*locate)(RdmaDevice &device);
};
// nullptr restores the real one.
void set_discovery_for_test(const DiscoveryApi *api);

} // namespace nda

#endif
