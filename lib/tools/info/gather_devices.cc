// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Verbs devices, by sysfs: it has all of them, also those that libibverbs does not list,
// and asks no permission.
#include "lib/tools/info/gather.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <ifaddrs.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <unistd.h>

#include "lib/nda/gid.h"

namespace nda::info {
namespace {

constexpr char zero_gid[] = "0000:0000:0000:0000:0000:0000:0000:0000";

// "4: ACTIVE" is "ACTIVE".
std::string after_number(const std::string &text)
{
	const size_t colon = text.find(": ");
	return colon == std::string::npos ? text : text.substr(colon + 2);
}

std::string base_name(const std::string &path)
{
	return path.substr(path.rfind('/') + 1);
}

void add_once(std::vector<std::string> &names, const std::string &name)
{
	if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
		names.push_back(name);
}

std::string gid_type(const std::string &text, const std::string &link_layer)
{
	if (text == "RoCE v2")
		return "RoCEv2";
	return link_layer == "Ethernet" ? "RoCEv1" : "IB";
}

void read_gids(const std::string &directory, Port &port)
{
	for (const std::string &index : list(directory + "/gids")) {
		Gid gid;
		gid.gid = read_text(directory + "/gids/" + index);
		ibv_gid raw;
		if (gid.gid.empty() || gid.gid == zero_gid ||
			!parse_gid(gid.gid.c_str(), raw))
			continue;
		gid.index = uint32_t(strtoul(index.c_str(), nullptr, 10));
		gid.address = address_text(raw);
		gid.link_local = link_local(raw);
		gid.type = gid_type(read_text(directory + "/gid_attrs/types/" + index),
			port.link_layer);
		gid.net_device = read_text(directory + "/gid_attrs/ndevs/" + index);
		add_once(port.net_devices, gid.net_device);
		port.gids.push_back(gid);
	}
}

Port read_port(const std::string &directory, const std::string &number)
{
	Port port;
	port.number = uint32_t(strtoul(number.c_str(), nullptr, 10));
	port.link_layer = read_text(directory + "/link_layer");
	port.state = after_number(read_text(directory + "/state"));
	port.physical_state = after_number(read_text(directory + "/phys_state"));
	read_gids(directory, port);
	return port;
}

Node find_uverbs(const std::string &root, const std::string &name)
{
	const std::string directory = root + "/sys/class/infiniband_verbs";
	for (const std::string &uverbs : list(directory))
		if (read_text(directory + "/" + uverbs + "/ibdev") == name)
			return look_at_node(root, "/dev/infiniband/" + uverbs, R_OK | W_OK);
	return {};
}

VerbsDevice read_device(const std::string &root, const std::string &name)
{
	const std::string directory = root + "/sys/class/infiniband/" + name;
	VerbsDevice device;
	device.name = name;
	device.node_type = after_number(read_text(directory + "/node_type"));
	device.system_path = system_path(root, directory + "/device");
	if (device.system_path.find("/pci") != std::string::npos)
		device.location = base_name(device.system_path);
	device.kernel_driver = base_name(real_path(directory + "/device/driver"));
	const std::string numa = read_text(directory + "/device/numa_node");
	device.numa_node = numa.empty() ? -1 : atoi(numa.c_str());
	device.uverbs = find_uverbs(root, name);
	for (const std::string &number : list(directory + "/ports")) {
		device.ports.push_back(read_port(directory + "/ports/" + number, number));
		// Soft-RoCE and siw name theirs here.
		add_once(device.ports.back().net_devices, read_text(directory + "/parent"));
	}
	return device;
}

std::vector<std::string> addresses_of(const std::string &net_device)
{
	std::vector<std::string> found;
	ifaddrs *all;
	if (getifaddrs(&all))
		return found;
	for (const ifaddrs *one = all; one; one = one->ifa_next) {
		char text[INET6_ADDRSTRLEN];
		if (!one->ifa_addr || net_device != one->ifa_name)
			continue;
		const void *address = nullptr;
		if (one->ifa_addr->sa_family == AF_INET)
			address = &reinterpret_cast<const sockaddr_in *>(one->ifa_addr)
					   ->sin_addr;
		else if (one->ifa_addr->sa_family == AF_INET6)
			address = &reinterpret_cast<const sockaddr_in6 *>(one->ifa_addr)
					   ->sin6_addr;
		if (address &&
			inet_ntop(one->ifa_addr->sa_family, address, text, sizeof(text)))
			found.push_back(text);
	}
	freeifaddrs(all);
	return found;
}

std::vector<std::string> components(const std::string &path)
{
	std::vector<std::string> found;
	for (size_t begin = 0; begin < path.size();) {
		const size_t end = std::min(path.find('/', begin), path.size());
		if (end > begin)
			found.push_back(path.substr(begin, end - begin));
		begin = end + 1;
	}
	return found;
}

} // namespace

Machine this_machine()
{
	Machine machine;
	machine.ask_verbs = ask_verbs;
	machine.addresses = addresses_of;
	return machine;
}

std::vector<VerbsDevice> gather_devices(const Machine &machine, const std::string &device)
{
	std::vector<VerbsDevice> devices;
	for (const std::string &name : list(machine.root + "/sys/class/infiniband")) {
		devices.push_back(read_device(machine.root, name));
		if (machine.ask_verbs && (device.empty() || device == name))
			machine.ask_verbs(devices.back());
	}
	return devices;
}

std::vector<NetDevice> gather_net_devices(const Machine &machine)
{
	const std::string directory = machine.root + "/sys/class/net/";
	std::vector<NetDevice> found;
	for (const std::string &name : list(directory)) {
		NetDevice net;
		net.name = name;
		net.mtu = uint32_t(
			strtoul(read_text(directory + name + "/mtu").c_str(), nullptr, 10));
		net.state = read_text(directory + name + "/operstate");
		if (machine.addresses)
			net.addresses = machine.addresses(name);
		found.push_back(net);
	}
	return found;
}

// Each component below "pci0000:00" is a bridge's or the device's own address.
PciDistance pci_distance(const std::string &a, const std::string &b)
{
	const std::vector<std::string> left = components(a), right = components(b);
	size_t common = 0;
	bool host_bridge = false;
	while (common < left.size() && common < right.size() &&
		left[common] == right[common]) {
		host_bridge = host_bridge || left[common].compare(0, 3, "pci") == 0;
		common++;
	}
	PciDistance distance;
	if (!host_bridge)
		return distance;
	if (left[common - 1].compare(0, 3, "pci") == 0) {
		distance.kind = PciDistance::Kind::host;
		return distance;
	}
	distance.kind = PciDistance::Kind::switched;
	distance.links = uint32_t(left.size() - common + right.size() - common);
	return distance;
}

void gather_distances(const Npus &npus, std::vector<VerbsDevice> &devices)
{
	for (VerbsDevice &device : devices)
		for (const PciNpu &npu : npus.pci) {
			if (device.location.empty())
				continue;
			PciDistance distance =
				pci_distance(device.system_path, npu.system_path);
			distance.npu = npu.location;
			distance.same_numa =
				device.numa_node >= 0 && device.numa_node == npu.numa_node;
			device.distances.push_back(distance);
		}
}

} // namespace nda::info
