// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Verbs devices: may they be opened, are their ports fit to connect.
#include <algorithm>
#include <arpa/inet.h>
#include <cstring>

#include "lib/tools/info/check_parts.h"

namespace nda::info {
namespace {

constexpr uint32_t least_mtu = 1024; // the communication layer refuses less

void check_uverbs(const Facts &facts, const VerbsDevice &device, Problems &out)
{
	const Node &node = device.uverbs;
	if (node.path.empty())
		problem(out, "uverbs-absent", device.name,
			"the kernel has made no uverbs device for it",
			"load module ib_uverbs (modprobe ib_uverbs)");
	else if (!node.exists)
		problem(out, "uverbs-absent", device.name, node.path + " is not there",
			in_container(facts)
				? "give the device to the container (--device=" +
					node.path + " --device=/dev/infiniband/rdma_cm)"
				: "let udev make it (udevadm trigger "
				  "--subsystem-match=infiniband_verbs)");
	else if (!node.allowed)
		problem(out, "uverbs-permission", device.name,
			node.path + " (" + node.mode +
				") may not be opened for reading and writing by user " +
				std::to_string(facts.process.uid),
			"have udev give it mode 0666 or a group, as rdma-core's rules do, "
			"and put the user into that group; no other privilege is needed");
}

void check_verbs(const VerbsDevice &device, Problems &out)
{
	const bool reachable = device.uverbs.exists && device.uverbs.allowed;
	if (device.crashed)
		problem(out, "device-crashed", device.name,
			"the process that opened it " + one_line(device.said),
			"report this to the maker of its verbs driver");
	else if (device.listed == Answer::no && reachable)
		problem(out, "verbs-driver-missing", device.name,
			"libibverbs does not list it" +
				(device.said.empty() ? "" : ": " + one_line(device.said)),
			"install the verbs driver of its NIC for this release of "
			"libibverbs (ibverbs-providers, or the vendor's package), see "
			"/etc/libibverbs.d");
	else if (device.open_error && reachable)
		problem(out, "device-not-opened", device.name,
			std::string("ibv_open_device: ") + strerror(device.open_error) +
				(device.said.empty() ? "" : "; " + one_line(device.said)),
			"look at the kernel's log for its driver");
	else if (device.listed == Answer::yes && device.verbs_driver.empty())
		problem(out, "verbs-driver-unknown", device.name,
			"its verbs driver has no name where libibverbs keeps it",
			"no extension driver can be found for it; report the release of "
			"libibverbs");
}

bool same_address(const std::string &a, const std::string &b)
{
	in6_addr left, right;
	if (inet_pton(AF_INET6, a.c_str(), &left) == 1 &&
		inet_pton(AF_INET6, b.c_str(), &right) == 1)
		return memcmp(&left, &right, sizeof(left)) == 0;
	return a == b;
}

bool is_link_local(const std::string &address)
{
	in6_addr six;
	if (inet_pton(AF_INET6, address.c_str(), &six) == 1)
		return IN6_IS_ADDR_LINKLOCAL(&six);
	return starts_with(address, "169.254.");
}

bool stands_for(const Gid &gid, const std::string &address)
{
	return gid.type == "RoCEv2" && same_address(gid.address, address);
}

bool has_gid(const Port &port, const std::string &address)
{
	return std::any_of(port.gids.begin(), port.gids.end(),
		[&](const Gid &gid) { return stands_for(gid, address); });
}

// Channels find their GID by the address that it stands for.
void check_addresses(
	const Facts &facts, const std::string &subject, const Port &port, Problems &out)
{
	for (const NetDevice &net : facts.net_devices) {
		if (!contains(port.net_devices, net.name))
			continue;
		for (const std::string &address : net.addresses) {
			if (!has_gid(port, address) && !is_link_local(address))
				problem(out, "gid-missing-for-address", subject,
					"no RoCEv2 GID stands for " + address + " of " +
						net.name,
					"take the address away and add it again, or take " +
						net.name +
						" down and up; see that the port allows "
						"RoCE v2");
		}
	}
}

void check_gids(
	const Facts &facts, const std::string &subject, const Port &port, Problems &out)
{
	std::vector<const Gid *> v2;
	for (const Gid &gid : port.gids)
		if (gid.type == "RoCEv2")
			v2.push_back(&gid);
	const std::string net =
		port.net_devices.empty() ? "its net device" : port.net_devices.front();
	if (v2.empty()) {
		problem(out, "gid-none", subject, "it has no RoCEv2 GID",
			"bring up " + net + " and give it an address" +
				(in_container(facts) ? "; in a container, share the host's "
						       "network (--net=host)"
						     : ""));
		return;
	}
	if (std::all_of(
		    v2.begin(), v2.end(), [](const Gid *gid) { return gid->link_local; }))
		problem(out, "gid-link-local-only", subject,
			"its only RoCEv2 GIDs are link-local, such as " + v2[0]->address,
			"give " + net +
				" an IPv4 address, or an IPv6 address of wider scope");
	check_addresses(facts, subject, port, out);
}

void check_port(
	const Facts &facts, const VerbsDevice &device, const Port &port, Problems &out)
{
	const std::string subject = device.name + " port " + std::to_string(port.number);
	if (port.link_layer == "InfiniBand") {
		note(out, "link-layer", subject, "it is InfiniBand",
			"only RoCE ports have queues that an NPU drives");
		return;
	}
	if (port.state != "ACTIVE") {
		std::string seen = "its state is " + port.state;
		if (!port.physical_state.empty())
			seen += ", the link is " + port.physical_state;
		for (const NetDevice &net : facts.net_devices)
			if (contains(port.net_devices, net.name))
				seen += ", " + net.name + " is " + net.state;
		problem(out, "port-down", subject, seen,
			"bring the link up (ip link set " +
				(port.net_devices.empty() ? "NETDEV"
							  : port.net_devices.front()) +
				" up), look at cable and switch");
	}
	for (const std::string &name : port.net_devices)
		if (std::none_of(facts.net_devices.begin(), facts.net_devices.end(),
			    [&](const NetDevice &net) { return net.name == name; }))
			problem(out, "net-device-not-visible", subject,
				"its net device " + name +
					" is not in this network namespace",
				in_container(facts)
					? "share the host's network (--net=host), or move "
					  "the net device into the container"
					: "run in the namespace of the net device");
	if (port.active_mtu_bytes && port.active_mtu_bytes < least_mtu)
		problem(out, "mtu-small", subject,
			"its active MTU is " + std::to_string(port.active_mtu_bytes) +
				" bytes",
			"give its net device an MTU of 1500 at least, 4200 for an RDMA MTU "
			"of 4096, alike on all machines: less than 1024 is refused, and "
			"peers do not negotiate it");
	check_gids(facts, subject, port, out);
}

void check_extend(
	const Facts &facts, const VerbsDevice &device, bool asked_for, Problems &out)
{
	if (device.listed != Answer::yes || device.verbs_driver.empty())
		return;
	const Driver *driver = serving(facts, device.verbs_driver, false);
	const Driver *own = serving(facts, device.verbs_driver, true);
	if (driver && device.extend.crashed) {
		problem(out, "driver-crashed", device.name,
			"the process that opened it with " + driver->path + " " +
				one_line(device.extend.said),
			"report this to the maker of the driver");
		return;
	}
	if (driver) {
		if (!device.extend.tried || device.extend.opened)
			return;
		problem(out, "driver-refuses-device", device.name,
			driver->path + " serves \"" + device.verbs_driver +
				"\", but ibv_open_extend gave NULL" +
				(device.extend.error ? std::string(", ") +
							strerror(device.extend.error)
						     : "") +
				(device.extend.said.empty()
						? ""
						: ": " + one_line(device.extend.said)),
			"take a driver of libibv_extend's version (this is 4.2: tables of "
			"functions 1 to 3), and the firmware that its maker asks for");
		return;
	}
	if (device.extend.opened)
		return;
	if (own) {
		note(out, "driver-for-libnda-only", device.name,
			"only libnda's own " + own->path + " serves \"" +
				device.verbs_driver + "\"",
			"programs of libnda find it; for others, as HCOMM, name it in "
			"IBV_EXTEND_DRIVERS or in a file in /etc/libibverbs_extend.d");
		return;
	}
	std::vector<std::string> names;
	bool any_served = false;
	for (const Driver &one : facts.search.drivers)
		for (const std::string &name : one.registered)
			if (!contains(names, name))
				names.push_back(name);
	for (const VerbsDevice &other : facts.devices)
		any_served = any_served ||
			(!other.verbs_driver.empty() &&
				(serving(facts, other.verbs_driver, false) ||
					serving(facts, other.verbs_driver, true)));
	// A NIC for other work needs none, as long as there is one with.
	add(out, "device-no-driver",
		any_served && !asked_for ? Problem::Weight::note : Problem::Weight::problem,
		device.name,
		"no extension driver registers \"" + device.verbs_driver +
			"\", the name of its verbs driver" +
			(names.empty() ? "; none registers any"
				       : "; registered are " + joined(names)),
		"install the extension driver of its maker, and name it in a file in "
		"/etc/libibverbs_extend.d (a line \"driver NAME\") or in "
		"IBV_EXTEND_DRIVERS");
}

} // namespace

void check_device(
	const Facts &facts, const VerbsDevice &device, bool asked_for, Problems &out)
{
	check_uverbs(facts, device, out);
	check_verbs(device, out);
	for (const Port &port : device.ports)
		check_port(facts, device, port, out);
	check_extend(facts, device, asked_for, out);
}

void device_absent(const Facts &facts, const std::string &name, Problems &out)
{
	problem(out, "device-absent", name,
		"there is no verbs device of that name; " + device_list(facts),
		facts.devices.empty()
			? "load the driver of its NIC"
			: "udev may have renamed it (rdma link show; NAME_KERNEL, NAME_PCI "
			  "or NAME_FALLBACK in "
			  "/lib/udev/rules.d/60-rdma-persistent-naming.rules): use its "
			  "name of now");
}

// As the communication layer looks for one, but in every port.
void check_wanted_address(const Facts &facts, const std::string &address, Problems &out)
{
	std::vector<std::string> candidates;
	for (const VerbsDevice &device : facts.devices)
		for (const Port &port : device.ports) {
			if (has_gid(port, address))
				return; // that a port is down is told of the port
			for (const Gid &gid : port.gids)
				if (gid.type == "RoCEv2")
					candidates.push_back(device.name + " port " +
						std::to_string(port.number) + " index " +
						std::to_string(gid.index) + " " +
						gid.address);
		}
	problem(out, "gid-missing-for-address", address,
		"no port has a RoCEv2 GID for it; there " +
			(candidates.empty() ? "is none at all"
					    : "are: " + joined(candidates)),
		"give the address to a NIC's net device, or use one that is there, in the "
		"rank table or rootinfo too");
}

} // namespace nda::info
