// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Facts from a tree of files as the kernel writes them; expected is what the kernel's
// documentation of sysfs says of them.
#include "lib/tools/info/gather.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "tests/mock/extend_child.h"
#include "tests/mock/nda_kernel.h"

namespace nda::info {
namespace {

namespace fs = std::filesystem;

class InfoGather : public testing::Test {
protected:
	InfoGather()
	{
		machine.root = dir / "root";
		fs::create_directories(machine.root + "/sys");
		fs::create_directories(machine.root + "/dev");
		for (const char *name :
			{"NDA_ASCEND_PATH", "ASCEND_RT_VISIBLE_DEVICES", "container"})
			unsetenv(name);
	}
	void write(const std::string &path, const std::string &text)
	{
		const fs::path file = machine.root + path;
		fs::create_directories(file.parent_path());
		extend_mock::write_file(file, text);
	}
	void link(const std::string &path, const std::string &to)
	{
		const fs::path file = machine.root + path;
		fs::create_directories(file.parent_path());
		fs::create_symlink(to, file);
	}
	// A PCI function, at a path below /sys/devices.
	void pci(const std::string &path, const std::string &vendor, const std::string &id,
		const std::string &numa, const std::string &driver)
	{
		const std::string device = "/sys/devices/" + path;
		write(device + "/vendor", vendor + "\n");
		write(device + "/device", id + "\n");
		write(device + "/numa_node", numa + "\n");
		const std::string name = path.substr(path.rfind('/') + 1);
		link("/sys/bus/pci/devices/" + name, machine.root + device);
		if (driver.empty())
			return;
		fs::create_directories(machine.root + "/sys/bus/pci/drivers/" + driver);
		link(device + "/driver", machine.root + "/sys/bus/pci/drivers/" + driver);
	}
	// A verbs device, of a PCI function or of none.
	void verbs(const std::string &name, const std::string &below)
	{
		const std::string device = "/sys/devices/" +
			(below.empty() ? "virtual" : below) + "/infiniband/" + name;
		write(device + "/node_type", "1: CA\n");
		link("/sys/class/infiniband/" + name, machine.root + device);
		if (!below.empty())
			link(device + "/device", machine.root + "/sys/devices/" + below);
		const std::string port = device + "/ports/1";
		write(port + "/state", "4: ACTIVE\n");
		write(port + "/phys_state", "5: LinkUp\n");
		write(port + "/link_layer", "Ethernet\n");
	}
	void gid(const std::string &name, int index, const std::string &value,
		const std::string &type, const std::string &net)
	{
		const std::string port = "/sys/class/infiniband/" + name + "/ports/1/";
		const std::string number = std::to_string(index);
		write(port + "gids/" + number, value + "\n");
		if (!type.empty())
			write(port + "gid_attrs/types/" + number, type + "\n");
		if (!net.empty())
			write(port + "gid_attrs/ndevs/" + number, net + "\n");
	}

	extend_mock::TempDir dir;
	Machine machine;
};

TEST_F(InfoGather, AMachineWithNothing)
{
	EXPECT_TRUE(gather_devices(machine, "").empty());
	EXPECT_TRUE(gather_net_devices(machine).empty());
	const Npus npus = gather_npus(machine);
	EXPECT_FALSE(npus.any_ascend());
	EXPECT_FALSE(npus.runtime_tried);
	EXPECT_FALSE(npus.hccn_conf.exists);
}

TEST_F(InfoGather, AVerbsDeviceOfAPciFunction)
{
	pci("pci0000:3a/0000:3a:00.0/0000:3b:00.0", "0x15b3", "0x1021", "1", "mlx5_core");
	verbs("mlx5_0", "pci0000:3a/0000:3a:00.0/0000:3b:00.0");
	write("/sys/class/infiniband_verbs/uverbs3/ibdev", "mlx5_0\n");
	write("/dev/infiniband/uverbs3", "");
	const std::vector<VerbsDevice> devices = gather_devices(machine, "");
	ASSERT_EQ(1u, devices.size());
	const VerbsDevice &device = devices[0];
	EXPECT_EQ("mlx5_0", device.name);
	EXPECT_EQ("CA", device.node_type);
	EXPECT_EQ("mlx5_core", device.kernel_driver);
	EXPECT_EQ("0000:3b:00.0", device.location);
	EXPECT_EQ("/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0", device.system_path);
	EXPECT_EQ(1, device.numa_node);
	EXPECT_EQ("/dev/infiniband/uverbs3", device.uverbs.path);
	EXPECT_TRUE(device.uverbs.exists);
	EXPECT_TRUE(device.uverbs.allowed);
	// Nobody was asked.
	EXPECT_EQ(Answer::unknown, device.listed);
	ASSERT_EQ(1u, device.ports.size());
	EXPECT_EQ("ACTIVE", device.ports[0].state);
	EXPECT_EQ("LinkUp", device.ports[0].physical_state);
	EXPECT_EQ("Ethernet", device.ports[0].link_layer);
}

TEST_F(InfoGather, SoftRoCEBelongsToNoPciFunction)
{
	verbs("rxe0", "");
	write("/sys/class/infiniband/rxe0/parent", "eth0\n");
	const std::vector<VerbsDevice> devices = gather_devices(machine, "");
	ASSERT_EQ(1u, devices.size());
	EXPECT_EQ("", devices[0].location);
	EXPECT_EQ("", devices[0].kernel_driver);
	EXPECT_EQ(-1, devices[0].numa_node);
	EXPECT_EQ("", devices[0].uverbs.path);
	EXPECT_EQ(std::vector<std::string>{"eth0"}, devices[0].ports[0].net_devices);
}

TEST_F(InfoGather, GidsWithTypeAddressAndNetDevice)
{
	verbs("rxe0", "");
	gid("rxe0", 0, "fe80:0000:0000:0000:5054:00ff:fe12:3456", "IB/RoCE v1", "eth0");
	gid("rxe0", 1, "fe80:0000:0000:0000:5054:00ff:fe12:3456", "RoCE v2", "eth0");
	gid("rxe0", 2, "0000:0000:0000:0000:0000:0000:0000:0000", "", "");
	gid("rxe0", 10, "0000:0000:0000:0000:0000:ffff:0a09:0901", "RoCE v2", "eth0.7");
	const Port port = gather_devices(machine, "")[0].ports[0];
	ASSERT_EQ(3u, port.gids.size());
	EXPECT_EQ("RoCEv1", port.gids[0].type);
	EXPECT_EQ("fe80::5054:ff:fe12:3456", port.gids[1].address);
	EXPECT_EQ("RoCEv2", port.gids[1].type);
	EXPECT_TRUE(port.gids[1].link_local);
	EXPECT_EQ(10u, port.gids[2].index);
	EXPECT_EQ("10.9.9.1", port.gids[2].address);
	EXPECT_EQ("eth0.7", port.gids[2].net_device);
	EXPECT_FALSE(port.gids[2].link_local);
	EXPECT_EQ((std::vector<std::string>{"eth0", "eth0.7"}), port.net_devices);
}

TEST_F(InfoGather, OnlyTheDeviceThatIsAskedForIsOpened)
{
	verbs("rxe0", "");
	verbs("rxe1", "");
	std::vector<std::string> asked;
	machine.ask_verbs = [&](VerbsDevice &device) { asked.push_back(device.name); };
	EXPECT_EQ(2u, gather_devices(machine, "rxe1").size());
	EXPECT_EQ(std::vector<std::string>{"rxe1"}, asked);
	gather_devices(machine, "");
	EXPECT_EQ((std::vector<std::string>{"rxe1", "rxe0", "rxe1"}), asked);
}

TEST_F(InfoGather, AUverbsNodeThatIsMissing)
{
	verbs("rxe0", "");
	write("/sys/class/infiniband_verbs/uverbs0/ibdev", "rxe0\n");
	const VerbsDevice device = gather_devices(machine, "")[0];
	EXPECT_EQ("/dev/infiniband/uverbs0", device.uverbs.path);
	EXPECT_FALSE(device.uverbs.exists);
}

TEST_F(InfoGather, NetDevicesWithTheirAddresses)
{
	write("/sys/class/net/eth0/mtu", "4200\n");
	write("/sys/class/net/eth0/operstate", "up\n");
	machine.addresses = [](const std::string &name) {
		return std::vector<std::string>{name == "eth0" ? "10.9.9.1" : "?"};
	};
	const std::vector<NetDevice> found = gather_net_devices(machine);
	ASSERT_EQ(1u, found.size());
	EXPECT_EQ("eth0", found[0].name);
	EXPECT_EQ(4200u, found[0].mtu);
	EXPECT_EQ("up", found[0].state);
	EXPECT_EQ(std::vector<std::string>{"10.9.9.1"}, found[0].addresses);
}

TEST_F(InfoGather, ThisMachinesLoopbackHasItsAddress)
{
	const Machine real = this_machine();
	const std::vector<std::string> found = real.addresses("lo");
	if (found.empty())
		GTEST_SKIP() << "the loopback device has no address here";
	EXPECT_NE(found.end(), std::find(found.begin(), found.end(), "127.0.0.1"));
}

TEST_F(InfoGather, NpusAreKnownByTheirPciIds)
{
	pci("pci0000:c0/0000:c0:01.0/0000:c1:00.0", "0x19e5", "0xd802", "1",
		"devdrv_device_driver");
	pci("pci0000:c0/0000:c0:02.0", "0x19e5", "0x0230", "1", "hinic5");
	pci("pci0000:c0/0000:c0:03.0", "0x15b3", "0xd802", "1", "");
	const Npus npus = gather_npus(machine);
	ASSERT_EQ(1u, npus.pci.size());
	EXPECT_EQ("0000:c1:00.0", npus.pci[0].location);
	EXPECT_EQ("0xd802", npus.pci[0].device_id);
	EXPECT_EQ("devdrv_device_driver", npus.pci[0].kernel_driver);
	EXPECT_EQ(1, npus.pci[0].numa_node);
	EXPECT_TRUE(npus.any_ascend());
	EXPECT_TRUE(npus.runtime_tried);
}

TEST_F(InfoGather, NodesOfNpusInTheOrderOfTheirNumbers)
{
	for (const char *name :
		{"davinci0", "davinci10", "davinci2", "davinci_manager", "davincix"})
		write(std::string("/dev/") + name, "");
	const Npus npus = gather_npus(machine);
	ASSERT_EQ(3u, npus.davinci.size());
	EXPECT_EQ("/dev/davinci0", npus.davinci[0].path);
	EXPECT_EQ("/dev/davinci2", npus.davinci[1].path);
	EXPECT_EQ("/dev/davinci10", npus.davinci[2].path);
	ASSERT_EQ(3u, npus.services.size());
	EXPECT_TRUE(npus.services[0].exists);
	EXPECT_FALSE(npus.services[1].exists);
}

TEST_F(InfoGather, VisibleDevicesAsTheEnvironmentHasThem)
{
	EXPECT_FALSE(gather_npus(machine).visible_set);
	setenv("ASCEND_RT_VISIBLE_DEVICES", "", 1);
	EXPECT_TRUE(gather_npus(machine).visible_set);
	setenv("ASCEND_RT_VISIBLE_DEVICES", "3,1", 1);
	EXPECT_EQ("3,1", gather_npus(machine).visible);
	unsetenv("ASCEND_RT_VISIBLE_DEVICES");
}

TEST_F(InfoGather, AddressesInHccnConf)
{
	write("/etc/hccn.conf", "");
	EXPECT_TRUE(gather_npus(machine).hccn_conf.exists);
	EXPECT_EQ(0u, gather_npus(machine).hccn_addresses);
	write("/etc/hccn.conf", "\xff\xfe not a = configuration\naddress_0\naddress_1=\n");
	EXPECT_EQ(0u, gather_npus(machine).hccn_addresses);
	write("/etc/hccn.conf",
		"address_0=192.168.100.101\nnetmask_0=255.255.255.0\naddress_1=192.168.100."
		"102");
	EXPECT_EQ(2u, gather_npus(machine).hccn_addresses);
}

TEST_F(InfoGather, TheRuntimeIsBoundInAnotherProcess)
{
	const std::string beside = extend_mock::build_dir() + "/tests/";
	setenv("NDA_ASCEND_PATH", (beside + "ascend").c_str(), 1);
	Npus npus = gather_npus(machine);
	EXPECT_TRUE(npus.runtime_loads) << npus.runtime_text;
	EXPECT_TRUE(npus.translates_ids);
	// Not one mapping of it is here.
	EXPECT_EQ(std::string::npos,
		extend_mock::read_file("/proc/self/maps").find("libascendcl.so"));
	setenv("NDA_ASCEND_PATH", (beside + "ascend-bare").c_str(), 1);
	npus = gather_npus(machine);
	EXPECT_TRUE(npus.runtime_loads) << npus.runtime_text;
	EXPECT_FALSE(npus.translates_ids);
	setenv("NDA_ASCEND_PATH",
		(beside + "ascend-broken-acl:" + beside + "ascend").c_str(), 1);
	npus = gather_npus(machine);
	EXPECT_FALSE(npus.runtime_loads);
	EXPECT_NE(std::string::npos, npus.runtime_text.find("has no function"))
		<< npus.runtime_text;
	unsetenv("NDA_ASCEND_PATH");
}

TEST_F(InfoGather, DistancesOnPci)
{
	const std::string root = "/devices/pci0000:00/";
	// NIC and NPU below one switch, whose ports are 02:00.0 and 02:01.0.
	const PciDistance near =
		pci_distance(root + "0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0",
			root + "0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:04:00.0");
	EXPECT_EQ(PciDistance::Kind::switched, near.kind);
	EXPECT_EQ(4u, near.links);
	// Two functions of one card.
	const PciDistance same = pci_distance(
		root + "0000:00:01.0/0000:01:00.0", root + "0000:00:01.0/0000:01:00.1");
	EXPECT_EQ(PciDistance::Kind::switched, same.kind);
	EXPECT_EQ(2u, same.links);
	EXPECT_EQ(PciDistance::Kind::host,
		pci_distance(root + "0000:00:01.0/0000:01:00.0",
			root + "0000:00:02.0/0000:02:00.0")
			.kind);
	EXPECT_EQ(PciDistance::Kind::far,
		pci_distance(root + "0000:00:01.0/0000:01:00.0",
			"/devices/pci0000:80/0000:80:01.0/0000:81:00.0")
			.kind);
}

TEST_F(InfoGather, TwoNicsAndTheirDistancesToAnNpu)
{
	pci("pci0000:c0/0000:c0:01.0/0000:c1:00.0", "0x19e5", "0xd802", "1", "");
	pci("pci0000:c0/0000:c0:01.0/0000:c2:00.0", "0x19e5", "0x0230", "1", "hinic5");
	pci("pci0000:00/0000:00:01.0/0000:01:00.0", "0x15b3", "0x1021", "0", "mlx5_core");
	verbs("hrn5_0", "pci0000:c0/0000:c0:01.0/0000:c2:00.0");
	verbs("mlx5_0", "pci0000:00/0000:00:01.0/0000:01:00.0");
	verbs("rxe0", "");
	std::vector<VerbsDevice> devices = gather_devices(machine, "");
	gather_distances(gather_npus(machine), devices);
	ASSERT_EQ(3u, devices.size());
	ASSERT_EQ(1u, devices[0].distances.size());
	EXPECT_EQ("0000:c1:00.0", devices[0].distances[0].npu);
	EXPECT_EQ(PciDistance::Kind::switched, devices[0].distances[0].kind);
	EXPECT_TRUE(devices[0].distances[0].same_numa);
	EXPECT_EQ(PciDistance::Kind::far, devices[1].distances[0].kind);
	EXPECT_FALSE(devices[1].distances[0].same_numa);
	EXPECT_TRUE(devices[2].distances.empty());
}

TEST_F(InfoGather, TheKernelsModuleAndItsParts)
{
	const test::FakeKernel fake;
	write("/sys/module/nda/initstate", "live\n");
	write("/sys/module/ib_uverbs/initstate", "live\n");
	const Kernel kernel = gather_kernel(machine);
	EXPECT_TRUE(kernel.usable);
	EXPECT_TRUE(kernel.module_loaded);
	EXPECT_EQ((std::vector<std::string>{"nda", "ib_uverbs"}), kernel.modules);
	EXPECT_EQ((std::vector<std::string>{"host-pin", "export", "doorbell-va"}),
		kernel.features);
	ASSERT_EQ(4u, kernel.parts.size());
	EXPECT_EQ("ascend", kernel.parts[0].name);
	EXPECT_FALSE(kernel.parts[0].usable);
	EXPECT_EQ("module nda_ascend is not loaded", kernel.parts[0].why);
	EXPECT_TRUE(kernel.parts[1].usable);
}

TEST_F(InfoGather, AKernelThatLetsNobodyIn)
{
	const test::FakeKernel fake;
	test::FakeKernel::state().open_error = EACCES;
	const Kernel kernel = gather_kernel(machine);
	EXPECT_FALSE(kernel.usable);
	EXPECT_EQ(-EACCES, kernel.code);
	EXPECT_TRUE(kernel.features.empty());
}

TEST_F(InfoGather, AModuleOfAnotherRelease)
{
	const test::FakeKernel fake;
	test::FakeKernel::state().abi = 2 << 16;
	EXPECT_EQ(-EPROTONOSUPPORT, gather_kernel(machine).code);
}

TEST_F(InfoGather, PeerMemoryAndDmaBufByFunction)
{
	const test::FakeKernel fake;
	EXPECT_EQ(Answer::unknown, gather_kernel(machine).peer_api);
	write("/proc/kallsyms",
		"0000000000000000 T _text\n"
		"0000000000000000 T ib_umem_dmabuf_get\t[ib_uverbs]\n");
	// The module that would have them is not loaded.
	EXPECT_EQ(Answer::unknown, gather_kernel(machine).peer_api);
	write("/sys/module/ib_uverbs/initstate", "live\n");
	EXPECT_EQ(Answer::no, gather_kernel(machine).peer_api);
	EXPECT_EQ(Answer::yes, gather_kernel(machine).dma_buf);
	write("/proc/kallsyms",
		"0000000000000000 T ib_register_peer_memory_client\t[ib_core]\n");
	EXPECT_EQ(Answer::yes, gather_kernel(machine).peer_api);
	EXPECT_EQ(Answer::no, gather_kernel(machine).dma_buf);
}

TEST_F(InfoGather, SignsOfAContainer)
{
	EXPECT_TRUE(gather_process(machine).container.empty());
	write("/.dockerenv", "");
	write("/proc/1/cgroup", "0::/kubepods/besteffort/pod1\n");
	setenv("container", "podman", 1);
	EXPECT_EQ((std::vector<std::string>{"/.dockerenv is there",
			  "/proc/1/cgroup has \"kubepods\"", "$container is \"podman\""}),
		gather_process(machine).container);
	unsetenv("container");
}

TEST_F(InfoGather, TheCapabilityToLockMemory)
{
	write("/proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\n");
	EXPECT_FALSE(gather_process(machine).memlock_ignored);
	write("/proc/self/status", "Name:\tx\nCapEff:\t0000000000004000\n");
	EXPECT_TRUE(gather_process(machine).memlock_ignored);
	write("/proc/self/uid_map", "         0          0 4294967295\n");
	EXPECT_TRUE(gather_process(machine).memlock_ignored);
	write("/proc/self/uid_map", "         0       1000          1\n");
	EXPECT_FALSE(gather_process(machine).memlock_ignored) << "of a user namespace";
	write("/proc/self/uid_map", "         0     100000      65536\n");
	EXPECT_FALSE(gather_process(machine).memlock_ignored);
}

} // namespace
} // namespace nda::info
