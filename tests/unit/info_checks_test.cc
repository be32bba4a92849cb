// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// From facts to problems. The facts are those of a server where all is well, with one thing
// changed in each test.
#include "lib/tools/info/checks.h"

#include <cerrno>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

namespace nda::info {
namespace {

using Weight = Problem::Weight;

Driver driver_of(const std::string &name, const std::vector<std::string> &registers)
{
	Driver driver;
	driver.source = "/etc/libibverbs_extend.d/" + name + ".conf";
	driver.position = 1;
	driver.name = name;
	driver.result = Driver::Result::loaded;
	driver.path = "/usr/lib64/lib" + name + ".so";
	driver.registered = registers;
	driver.file.path = driver.path;
	driver.file.exists = driver.file.is_library = driver.file.fits = true;
	driver.file.machine = "x86-64, 64 bits";
	return driver;
}

// One that the dynamic loader refuses with these words.
Driver failed_driver(const std::string &name, const std::string &text)
{
	Driver driver = driver_of(name, {});
	driver.result = Driver::Result::failed;
	driver.path.clear();
	driver.text = "cannot be loaded: " + text;
	return driver;
}

VerbsDevice device_of(const std::string &name, const std::string &verbs_driver)
{
	VerbsDevice device;
	device.name = name;
	device.node_type = "CA";
	device.location = "0000:3b:00.0";
	device.uverbs = {"/dev/infiniband/uverbs0", true, true, "root:root 0666"};
	device.listed = Answer::yes;
	device.verbs_driver = verbs_driver;
	device.extend.tried = device.extend.opened = true;
	Port port;
	port.number = 1;
	port.link_layer = "Ethernet";
	port.state = "ACTIVE";
	port.physical_state = "LinkUp";
	port.active_mtu_bytes = 4096;
	port.net_devices = {"eth0"};
	port.gids = {{0, "fe80:0000:0000:0000:0000:0000:0000:0001", "fe80::1", "RoCEv2",
			     "eth0", true},
		{3, "0000:0000:0000:0000:0000:ffff:0a09:0901", "10.9.9.1", "RoCEv2", "eth0",
			false}};
	device.ports = {port};
	return device;
}

Facts healthy()
{
	Facts facts;
	facts.devices = {device_of("hrn5_0", "hrn5")};
	facts.net_devices = {{"eth0", 4200, "up", {"10.9.9.1", "fe80::1"}}};
	facts.search.config_directory = "/etc/libibverbs_extend.d";
	facts.search.config_exists = true;
	facts.search.verbs_abi = "57";
	facts.search.drivers = {driver_of("hrn5", {"hrn5"})};
	facts.libraries.soname = {"libibv_extend.so.4", "/usr/lib64/libibv_extend.so.4",
		"/usr/lib64/libibv_extend.so.4.2.0", "", "4.2.0", "nda"};
	facts.libraries.unversioned = facts.libraries.soname;
	facts.libraries.unversioned.wanted = "libibv_extend.so";
	facts.libraries.unversioned.path = "/usr/lib64/libibv_extend.so";
	facts.npus.soft_usable = true;
	facts.npus.davinci = {{"/dev/davinci0", true, true, "root:HwHiAiUser 0660"},
		{"/dev/davinci1", true, true, "root:HwHiAiUser 0660"}};
	facts.npus.services = {
		{"/dev/davinci_manager", true, true, "root:HwHiAiUser 0660"}};
	facts.npus.runtime_tried = facts.npus.runtime_loads = true;
	facts.npus.translates_ids = true;
	facts.npus.hccn_conf = {"/etc/hccn.conf", true, true, "root:root 0644"};
	facts.npus.hccn_addresses = 2;
	facts.kernel.node = {"/dev/nda", true, true, "root:HwHiAiUser 0660"};
	facts.kernel.module_loaded = facts.kernel.usable = true;
	facts.kernel.features = {"host-pin", "export"};
	facts.kernel.parts = {{"ascend", true, ""}};
	facts.kernel.peer_api = Answer::yes;
	facts.kernel.dma_buf = Answer::yes;
	facts.kernel.verbs_dma_buf = true;
	facts.process.memlock_unlimited = true;
	facts.process.uid = 1000;
	return facts;
}

std::string ids(const std::vector<Problem> &problems, Weight weight)
{
	std::string text;
	for (const Problem &p : problems)
		if (p.weight == weight)
			text += (text.empty() ? "" : " ") + p.id;
	return text;
}

// The ids of what counts, and of notes behind a bar.
std::string found(const Facts &facts, const std::string &device = "")
{
	const std::vector<Problem> all = check(facts, device);
	const std::string notes = ids(all, Weight::note);
	return ids(all, Weight::problem) + (notes.empty() ? "" : "|" + notes);
}

// The only problem, all of it in one line.
std::string told(const Facts &facts, const std::string &device = "")
{
	std::string text;
	for (const Problem &p : check(facts, device))
		if (p.weight == Weight::problem)
			text += p.id + ": " + p.subject + ": " + p.seen + " -> " + p.todo;
	return text;
}

void expect_has(const std::string &text, const std::string &part)
{
	EXPECT_NE(text.npos, text.find(part)) << "no \"" << part << "\" in: " << text;
}

TEST(InfoChecks, FindNothingWhereAllIsWell)
{
	EXPECT_EQ("", found(healthy()));
	EXPECT_EQ("", found(healthy(), "hrn5_0"));
	EXPECT_EQ("", found(healthy(), "nda"));
	EXPECT_EQ(0u, count_problems(check(healthy(), "")));
}

TEST(InfoChecks, EveryIdIsInTheManual)
{
	std::ifstream file("docs/troubleshooting.md");
	const std::string text{std::istreambuf_iterator<char>(file), {}};
	ASSERT_FALSE(text.empty()) << "run this in the top directory";
	for (const std::string &id : check_ids)
		EXPECT_NE(text.npos, text.find("`" + id + "`")) << id;
}

TEST(InfoChecks, EveryProblemSaysWhatWasSeenAndWhatToDo)
{
	Facts facts = healthy();
	facts.devices[0].ports[0].gids.clear();
	facts.devices[0].uverbs.allowed = false;
	facts.search.drivers = {failed_driver("x", "y")};
	facts.libraries = {};
	facts.libraries.soname.error = "cannot open";
	facts.npus.hccn_conf.exists = false;
	facts.npus.hccn_addresses = 0;
	facts.kernel.usable = false;
	facts.kernel.code = -EACCES;
	for (const Problem &p : check(facts, "")) {
		EXPECT_FALSE(p.subject.empty()) << p.id;
		EXPECT_FALSE(p.seen.empty()) << p.id;
		EXPECT_FALSE(p.todo.empty()) << p.id;
	}
}

// ---- Verbs devices ---------------------------------------------------------------------

TEST(InfoChecks, NoDeviceAtAllIsANote)
{
	Facts facts = healthy();
	facts.devices.clear();
	facts.search.drivers.clear();
	EXPECT_EQ("|no-verbs-device", found(facts));
}

TEST(InfoChecks, ADeviceThatWasRenamedIsListedWithItsPlace)
{
	EXPECT_EQ("device-absent", found(healthy(), "mlx5_0"));
	expect_has(told(healthy(), "mlx5_0"), "hrn5_0 (0000:3b:00.0)");
	expect_has(told(healthy(), "mlx5_0"), "udev may have renamed it");
}

TEST(InfoChecks, ADeviceNamedForPortsThatIsNotThere)
{
	Facts facts = healthy();
	facts.process.environment = {
		{"HCCL_HOST_RDMA_UDP_PORTS_LIST", "hrn5_0:100,101;old_0:102"}};
	EXPECT_EQ("ports-list-device", found(facts));
	expect_has(told(facts), "names the device old_0");
}

TEST(InfoChecks, NoUverbsDevice)
{
	Facts facts = healthy();
	facts.devices[0].uverbs = {};
	expect_has(told(facts), "uverbs-absent: hrn5_0");
	expect_has(told(facts), "modprobe ib_uverbs");
}

TEST(InfoChecks, AUverbsNodeThatAContainerWasNotGiven)
{
	Facts facts = healthy();
	facts.devices[0].uverbs.exists = false;
	facts.process.container = {"/.dockerenv is there"};
	expect_has(told(facts), "--device=/dev/infiniband/uverbs0");
}

TEST(InfoChecks, NoPermissionOnUverbs)
{
	Facts facts = healthy();
	facts.devices[0].uverbs.allowed = false;
	facts.devices[0].uverbs.mode = "root:rdma 0660";
	EXPECT_EQ("uverbs-permission", found(facts));
	expect_has(told(facts), "/dev/infiniband/uverbs0 (root:rdma 0660)");
	expect_has(told(facts), "user 1000");
}

TEST(InfoChecks, NoVerbsDriverForADevice)
{
	Facts facts = healthy();
	facts.devices[0].listed = Answer::no;
	facts.devices[0].verbs_driver.clear();
	facts.search.drivers.clear();
	facts.devices[0].said =
		"libibverbs: Warning: couldn't load driver 'libhrn5-rdmav34.so'";
	EXPECT_EQ("verbs-driver-missing", found(facts));
	expect_has(told(facts), "libhrn5-rdmav34.so");
}

TEST(InfoChecks, ADeviceThatDoesNotOpen)
{
	Facts facts = healthy();
	facts.devices[0].open_error = EINVAL;
	EXPECT_EQ("device-not-opened", found(facts));
	facts.devices[0].crashed = true;
	EXPECT_EQ("device-crashed", found(facts));
}

TEST(InfoChecks, AVerbsDriverWithoutAName)
{
	Facts facts = healthy();
	facts.devices[0].verbs_driver.clear();
	facts.search.drivers.clear();
	EXPECT_EQ("verbs-driver-unknown", found(facts));
}

TEST(InfoChecks, APortThatIsDown)
{
	Facts facts = healthy();
	facts.devices[0].ports[0].state = "DOWN";
	facts.devices[0].ports[0].physical_state = "Disabled";
	facts.net_devices[0].state = "down";
	EXPECT_EQ("port-down", found(facts));
	expect_has(told(facts),
		"hrn5_0 port 1: its state is DOWN, the link is Disabled, "
		"eth0 is down");
	expect_has(told(facts), "ip link set eth0 up");
}

TEST(InfoChecks, AnInfiniBandPortIsANoteAlone)
{
	Facts facts = healthy();
	facts.devices[0].ports[0].link_layer = "InfiniBand";
	facts.devices[0].ports[0].gids.clear();
	EXPECT_EQ("|link-layer", found(facts));
}

TEST(InfoChecks, MtuFrom1024Up)
{
	Facts facts = healthy();
	for (const uint32_t mtu : {1024u, 2048u, 0u}) {
		facts.devices[0].ports[0].active_mtu_bytes = mtu;
		EXPECT_EQ("", found(facts)) << mtu;
	}
	for (const uint32_t mtu : {256u, 512u}) {
		facts.devices[0].ports[0].active_mtu_bytes = mtu;
		EXPECT_EQ("mtu-small", found(facts)) << mtu;
	}
}

TEST(InfoChecks, NoGid)
{
	Facts facts = healthy();
	facts.devices[0].ports[0].gids.clear();
	EXPECT_EQ("gid-none", found(facts));
}

TEST(InfoChecks, OnlyGidsOfRoCEv1AreNone)
{
	Facts facts = healthy();
	for (Gid &gid : facts.devices[0].ports[0].gids)
		gid.type = "RoCEv1";
	EXPECT_EQ("gid-none", found(facts));
}

TEST(InfoChecks, OnlyLinkLocalGids)
{
	Facts facts = healthy();
	facts.devices[0].ports[0].gids.pop_back();
	facts.net_devices[0].addresses = {"fe80::1"};
	EXPECT_EQ("gid-link-local-only", found(facts));
	expect_has(told(facts), "give eth0 an IPv4 address");
}

TEST(InfoChecks, AnAddressWithoutGid)
{
	Facts facts = healthy();
	facts.net_devices[0].addresses.push_back("10.9.9.2");
	EXPECT_EQ("gid-missing-for-address", found(facts));
	expect_has(told(facts), "no RoCEv2 GID stands for 10.9.9.2 of eth0");
}

TEST(InfoChecks, AnAddressThatIsAskedFor)
{
	EXPECT_TRUE(check(healthy(), "", "10.9.9.1").empty());
	const std::vector<Problem> all = check(healthy(), "", "10.9.9.7");
	ASSERT_EQ(1u, all.size());
	EXPECT_EQ("gid-missing-for-address", all[0].id);
	EXPECT_EQ("10.9.9.7", all[0].subject);
	expect_has(all[0].seen, "hrn5_0 port 1 index 3 10.9.9.1");
	Facts facts = healthy();
	facts.devices[0].ports[0].gids[1].type = "RoCEv1";
	expect_has(check(facts, "", "10.9.9.1")[0].seen, "index 0 fe80::1");
}

TEST(InfoChecks, AnAddressInAnotherSpellingHasItsGid)
{
	Facts facts = healthy();
	facts.devices[0].ports[0].gids[1].address = "fd00::9";
	facts.net_devices[0].addresses = {"fd00:0:0::0009"};
	EXPECT_EQ("", found(facts));
}

TEST(InfoChecks, AnAddressOfAnotherNetDeviceNeedsNoGid)
{
	Facts facts = healthy();
	facts.net_devices.push_back({"eth1", 1500, "up", {"10.1.1.1"}});
	EXPECT_EQ("", found(facts));
}

// The GID at index 0 went with the IPv6 address: the others are as good.
TEST(InfoChecks, AVanishedLinkLocalGidIsNoProblem)
{
	Facts facts = healthy();
	facts.devices[0].ports[0].gids.erase(facts.devices[0].ports[0].gids.begin());
	facts.net_devices[0].addresses = {"10.9.9.1"};
	EXPECT_EQ("", found(facts));
}

TEST(InfoChecks, ANetDeviceOfAnotherNamespace)
{
	Facts facts = healthy();
	facts.net_devices[0].name = "lo";
	EXPECT_EQ("net-device-not-visible", found(facts));
	facts.process.container = {"/.dockerenv is there"};
	expect_has(told(facts), "--net=host");
}

// ---- Extension drivers -----------------------------------------------------------------

TEST(InfoChecks, ADriverThatIsNotInstalled)
{
	Facts facts = healthy();
	Driver driver = failed_driver("other",
		"libother.so: cannot open shared object file: No such file or directory");
	driver.file = {};
	facts.search.drivers.push_back(driver);
	EXPECT_EQ("driver-missing", found(facts));
	expect_has(told(facts),
		"/etc/libibverbs_extend.d/other.conf:1: driver other: there is "
		"no such file");
}

TEST(InfoChecks, APathThatIsNotThere)
{
	Facts facts = healthy();
	Driver driver =
		failed_driver("/opt/libx.so", "/opt/libx.so: No such file or directory");
	driver.file = {};
	driver.file.path = "/opt/libx.so";
	facts.search.drivers.push_back(driver);
	EXPECT_EQ("driver-missing", found(facts));
}

TEST(InfoChecks, AnotherReleaseOfTheDriverIsThere)
{
	Facts facts = healthy();
	Driver driver = failed_driver("hrn5-rdmav34",
		"libhrn5-rdmav34.so: cannot open shared object file: No such file or "
		"directory");
	driver.file = {};
	driver.similar = {"/usr/lib64/libhrn5-rdmav57.so"};
	facts.search.drivers.push_back(driver);
	expect_has(told(facts), "there is no such file, but /usr/lib64/libhrn5-rdmav57.so");
}

// What glibc says of a library of another machine is that it is not there.
TEST(InfoChecks, ADriverForAnotherMachine)
{
	Facts facts = healthy();
	Driver driver = failed_driver("other",
		"/usr/lib64/libother.so: cannot open shared "
		"object file: No such file or directory");
	driver.file.machine = "arm64, 64 bits";
	driver.file.fits = false;
	facts.search.drivers.push_back(driver);
	EXPECT_EQ("driver-machine", found(facts));
	expect_has(told(facts), "/usr/lib64/libother.so is for arm64, 64 bits");
}

TEST(InfoChecks, AFileThatIsNoLibrary)
{
	Facts facts = healthy();
	facts.search.drivers.push_back(
		failed_driver("other", "/usr/lib64/libother.so: file too short"));
	facts.search.drivers.back().file.machine.clear();
	facts.search.drivers.back().file.fits = false;
	EXPECT_EQ("driver-not-library", found(facts));
}

TEST(InfoChecks, ADriverThatMayNotBeRead)
{
	Facts facts = healthy();
	facts.search.drivers.push_back(failed_driver("other",
		"/usr/lib64/libother.so: cannot open shared object file: Permission "
		"denied"));
	facts.search.drivers.back().file.error = EACCES;
	facts.search.drivers.back().file.machine.clear();
	EXPECT_EQ("driver-permission", found(facts));
}

TEST(InfoChecks, ADriverForAnotherLibibverbs)
{
	Facts facts = healthy();
	facts.search.drivers.push_back(failed_driver("other",
		"/usr/lib64/libibverbs.so.1: version `IBVERBS_PRIVATE_34' not found "
		"(required "
		"by /usr/lib64/libother.so)"));
	EXPECT_EQ("driver-abi", found(facts));
	expect_has(told(facts), "private interface 34 of libibverbs, installed is 57");
}

TEST(InfoChecks, ADriverForAnotherLibibvExtend)
{
	Facts facts = healthy();
	facts.search.drivers.push_back(failed_driver("other",
		"libibv_extend.so.5: cannot open shared object file: No such file or "
		"directory"));
	EXPECT_EQ("driver-abi", found(facts));
	expect_has(told(facts), "it needs libibv_extend.so.5");
}

TEST(InfoChecks, ADriverThatLacksALibraryOrASymbol)
{
	Facts facts = healthy();
	facts.search.drivers.push_back(failed_driver("other",
		"libvendor.so.2: cannot open shared object file: No such file or "
		"directory"));
	EXPECT_EQ("driver-dependency", found(facts));
	expect_has(told(facts), "install libvendor.so.2");
	facts.search.drivers.back().text =
		"cannot be loaded: /usr/lib64/libother.so: undefined symbol: vendor_init";
	EXPECT_EQ("driver-symbol", found(facts));
	facts.search.drivers.back().text = "cannot be loaded: something else";
	EXPECT_EQ("driver-load", found(facts));
}

TEST(InfoChecks, ADriverThatCrashesOrHangs)
{
	Facts facts = healthy();
	facts.search.drivers.push_back(driver_of("other", {}));
	facts.search.drivers.back().result = Driver::Result::crashed;
	EXPECT_EQ("driver-crashed", found(facts));
	facts.search.drivers.back().result = Driver::Result::hung;
	EXPECT_EQ("driver-hung", found(facts));
}

TEST(InfoChecks, ADriverThatRegistersNothing)
{
	Facts facts = healthy();
	facts.search.drivers.push_back(driver_of("other", {}));
	EXPECT_EQ("driver-silent", found(facts));
}

TEST(InfoChecks, TwoDriversOfOneName)
{
	Facts facts = healthy();
	facts.search.drivers.push_back(driver_of("rival", {"hrn5"}));
	EXPECT_EQ("driver-name-twice", found(facts));
	expect_has(told(facts),
		"/usr/lib64/librival.so and /usr/lib64/libhrn5.so both register "
		"\"hrn5\"; the latter is taken");
}

TEST(InfoChecks, OneFileNamedTwiceIsNoRival)
{
	Facts facts = healthy();
	facts.search.drivers.push_back(driver_of("hrn5", {"hrn5"}));
	EXPECT_EQ("", found(facts));
}

TEST(InfoChecks, ADriverWhoseNameIsNoDevices)
{
	Facts facts = healthy();
	facts.search.drivers = {driver_of("hrn5", {"hrn"})};
	facts.devices[0].extend.opened = false;
	EXPECT_EQ("device-no-driver|driver-without-device", found(facts));
	expect_has(told(facts),
		"no extension driver registers \"hrn5\", the name of its verbs "
		"driver; registered are hrn");
}

TEST(InfoChecks, ADeviceWithoutDriverBesideOneWithIsANote)
{
	Facts facts = healthy();
	facts.devices.push_back(device_of("mlx5_0", "mlx5"));
	facts.devices[1].extend.opened = false;
	EXPECT_EQ("|device-no-driver", found(facts));
	EXPECT_EQ("device-no-driver", found(facts, "mlx5_0"));
	EXPECT_EQ("", found(facts, "hrn5_0"));
}

TEST(InfoChecks, ADriverThatOnlyLibndaFinds)
{
	Facts facts = healthy();
	Driver driver = driver_of("libnda_rxe", {"hrn5"});
	driver.source = "libnda";
	facts.search.drivers = {driver};
	facts.devices[0].extend.opened = false;
	EXPECT_EQ("|driver-for-libnda-only", found(facts));
}

TEST(InfoChecks, ADriverThatRefusesTheDevice)
{
	Facts facts = healthy();
	facts.devices[0].extend.opened = false;
	facts.devices[0].extend.error = EPROTONOSUPPORT;
	facts.devices[0].extend.said = "libibv_extend: error: driver hrn5 has version 7";
	EXPECT_EQ("driver-refuses-device", found(facts));
	expect_has(told(facts), "has version 7");
	facts.devices[0].extend.crashed = true;
	EXPECT_EQ("driver-crashed", found(facts));
}

TEST(InfoChecks, ABadDriverBesideAGoodOneIsOneProblem)
{
	Facts facts = healthy();
	facts.search.drivers.insert(
		facts.search.drivers.begin(), failed_driver("bad", "file too short"));
	facts.search.drivers.front().file.machine.clear();
	EXPECT_EQ("driver-not-library", found(facts));
	EXPECT_EQ("", found(facts, "hrn5_0"));
}

TEST(InfoChecks, OneDeviceIsToldOfDriversThatMightBeItsOwn)
{
	Facts facts = healthy();
	facts.search.drivers = {failed_driver("hrn5", "it does not load")};
	facts.devices[0].extend.opened = false;
	EXPECT_EQ("device-no-driver driver-load", found(facts, "hrn5_0"));
}

TEST(InfoChecks, NoConfigurationIsANote)
{
	Facts facts = healthy();
	facts.search.config_exists = false;
	facts.search.drivers.clear();
	facts.devices.clear();
	EXPECT_EQ("|no-verbs-device config-absent", found(facts));
}

TEST(InfoChecks, NoConfigurationInAContainerWithADeviceToServe)
{
	Facts facts = healthy();
	facts.search.config_exists = false;
	facts.search.drivers.clear();
	facts.devices[0].extend.opened = false;
	facts.process.container = {"$container is \"podman\""};
	EXPECT_EQ("device-no-driver config-absent", found(facts));
	expect_has(told(facts), "mount the directory and the driver from the host");
	facts.search.environment_set = true;
	EXPECT_EQ("device-no-driver", found(facts));
}

TEST(InfoChecks, WhatTheSearchRefused)
{
	Facts facts = healthy();
	Step step;
	step.kind = "line";
	step.source = "/etc/libibverbs_extend.d/a.conf";
	step.position = 3;
	step.text = "unknown directive \"drivr\"";
	step.problem = true;
	facts.search.steps = {step};
	EXPECT_EQ("config-line", found(facts));
	expect_has(told(facts), "/etc/libibverbs_extend.d/a.conf:3");
	facts.search.steps[0].kind = "file";
	facts.search.steps[0].text = "is writable by others than its owner";
	EXPECT_EQ("config-refused", found(facts));
	facts.search.steps[0].problem = false;
	EXPECT_EQ("", found(facts));
}

// ---- Libraries -------------------------------------------------------------------------

TEST(InfoChecks, TwoCopiesAreTwoRegistries)
{
	Facts facts = healthy();
	facts.libraries.unversioned.path = facts.libraries.unversioned.file =
		"/usr/local/Ascend/driver/lib64/driver/libibv_extend.so";
	facts.libraries.unversioned.maker = "Ascend driver package";
	EXPECT_EQ("library-two-copies", found(facts));
	expect_has(told(facts),
		"libibv_extend.so.4 is /usr/lib64/libibv_extend.so.4.2.0 (nda)");
	expect_has(told(facts), "(Ascend driver package)");
}

TEST(InfoChecks, ALibraryThatIsMissing)
{
	Facts facts = healthy();
	facts.libraries.unversioned.path = facts.libraries.unversioned.file = "";
	EXPECT_EQ("library-unversioned", found(facts));
	facts.libraries.soname.path = facts.libraries.soname.file = "";
	facts.libraries.soname.error = "cannot open";
	EXPECT_EQ("library-missing", found(facts));
	facts.libraries.unversioned = healthy().libraries.unversioned;
	EXPECT_EQ("library-missing", found(facts));
}

TEST(InfoChecks, ALibraryOfAnOlderVersion)
{
	Facts facts = healthy();
	for (const char *version : {"4.1.0", "5.0.0", "", "x"}) {
		facts.libraries.soname.version = version;
		EXPECT_EQ("library-version", found(facts)) << version;
	}
	facts.libraries.soname.version = "4.3.1";
	EXPECT_EQ("", found(facts));
}

TEST(InfoChecks, OneDeviceIsToldWhereThereIsNoLibraryToAsk)
{
	Facts facts = healthy();
	facts.devices[0].extend.tried = facts.devices[0].extend.opened = false;
	facts.libraries = {};
	facts.libraries.soname.error = "cannot open";
	EXPECT_EQ("library-missing", found(facts, "hrn5_0"));
}

TEST(InfoChecks, ACopyElsewhereIsANote)
{
	Facts facts = healthy();
	Library other;
	other.file = "/usr/local/lib/libibv_extend.so.4";
	other.maker = "other";
	facts.libraries.others = {other};
	EXPECT_EQ("|library-elsewhere", found(facts));
}

// ---- NPUs ------------------------------------------------------------------------------

TEST(InfoChecks, IdsThatASCEND_RT_VISIBLE_DEVICESPermutes)
{
	Facts facts = healthy();
	facts.npus.visible_set = true;
	facts.npus.visible = "0,1";
	EXPECT_EQ("", found(facts));
	facts.npus.visible = "1,0";
	EXPECT_EQ("|npu-ids-permuted", found(facts));
	const std::vector<Problem> all = check(facts, "");
	expect_has(all[0].seen, "0 is NPU 1, 1 is NPU 0");
	facts.npus.translates_ids = false;
	EXPECT_EQ("npu-ids-untranslated|npu-ids-permuted", found(facts));
}

TEST(InfoChecks, IdsThatTheRuntimeRefuses)
{
	Facts facts = healthy();
	facts.npus.visible_set = true;
	for (const char *list : {"", "0,0", "0,,1", "a", "0,1,", "-1"}) {
		facts.npus.visible = list;
		EXPECT_EQ("npu-ids-invalid", found(facts)) << list;
	}
}

TEST(InfoChecks, AnNpuOnPciWithoutNodes)
{
	Facts facts = healthy();
	facts.npus.davinci.clear();
	facts.npus.pci = {{"0000:c1:00.0", "", "0xd802", "", 1}};
	EXPECT_EQ("npu-node-absent", found(facts));
}

TEST(InfoChecks, AServiceNodeThatAContainerWasNotGiven)
{
	Facts facts = healthy();
	facts.npus.services[0].exists = false;
	facts.process.container = {"/.dockerenv is there"};
	EXPECT_EQ("npu-node-absent", found(facts));
	expect_has(told(facts), "--device=/dev/davinci_manager");
}

TEST(InfoChecks, NoPermissionOnAnNpu)
{
	Facts facts = healthy();
	facts.npus.davinci[1].allowed = false;
	EXPECT_EQ("npu-permission", found(facts));
	expect_has(told(facts), "/dev/davinci1: user 1000");
}

TEST(InfoChecks, NoRuntime)
{
	Facts facts = healthy();
	facts.npus.runtime_loads = false;
	facts.npus.runtime_text = "Ascend runtime: libascendcl.so: cannot open";
	EXPECT_EQ("npu-runtime", found(facts));
}

TEST(InfoChecks, HccnConfAbsentUnreadableOrWithoutAddresses)
{
	Facts facts = healthy();
	facts.npus.hccn_addresses = 0;
	expect_has(told(facts), "npu-hccn-conf: /etc/hccn.conf: no line of it");
	facts.npus.hccn_conf.allowed = false;
	expect_has(told(facts), "npu-hccn-conf: /etc/hccn.conf: it may not be read");
	facts.npus.hccn_conf.exists = false;
	expect_has(told(facts), "npu-hccn-conf: /etc/hccn.conf: it is not there");
	facts.npus.davinci.clear();
	facts.npus.runtime_tried = false;
	EXPECT_EQ("", found(facts));
}

TEST(InfoChecks, NoSoftNpuIsANote)
{
	Facts facts = healthy();
	facts.npus.soft_usable = false;
	EXPECT_EQ("|soft-npu", found(facts));
}

// ---- The kernel ------------------------------------------------------------------------

TEST(InfoChecks, NoModuleIsAProblemWhereThereIsAnNpu)
{
	Facts facts = healthy();
	facts.kernel.usable = facts.kernel.module_loaded = false;
	facts.kernel.code = -ENOENT;
	facts.kernel.why = "/dev/nda: No such file or directory (module nda is not loaded)";
	facts.kernel.parts.clear();
	EXPECT_EQ("nda-module", found(facts));
	facts.npus.davinci.clear();
	facts.npus.runtime_tried = false;
	EXPECT_EQ("|nda-module", found(facts));
	EXPECT_EQ("nda-module", found(facts, "nda"));
}

TEST(InfoChecks, ANodeThatAContainerWasNotGiven)
{
	Facts facts = healthy();
	facts.kernel.usable = false;
	facts.kernel.code = -ENOENT;
	facts.process.container = {"/.dockerenv is there"};
	expect_has(told(facts), "--device=/dev/nda");
}

TEST(InfoChecks, NoPermissionOnDevNda)
{
	Facts facts = healthy();
	facts.kernel.usable = false;
	facts.kernel.code = -EACCES;
	EXPECT_EQ("nda-permission", found(facts, "nda"));
	expect_has(told(facts), "root:HwHiAiUser 0660");
}

TEST(InfoChecks, AModuleOfAnotherRelease)
{
	Facts facts = healthy();
	facts.kernel.usable = false;
	facts.kernel.code = -EPROTONOSUPPORT;
	EXPECT_EQ("nda-version", found(facts, "nda"));
}

TEST(InfoChecks, APartThatCannotBeUsed)
{
	Facts facts = healthy();
	facts.kernel.parts = {{"ascend", false, "module nda_ascend is not loaded"},
		{"soft", false, "module nda_soft is not loaded"}};
	EXPECT_EQ("nda-part|nda-part", found(facts));
	expect_has(told(facts), "nda-part: ascend: module nda_ascend is not loaded");
}

TEST(InfoChecks, NeitherPeerMemoryNorDmaBuf)
{
	Facts facts = healthy();
	facts.kernel.peer_api = Answer::no;
	EXPECT_EQ("", found(facts));
	facts.kernel.dma_buf = Answer::no;
	EXPECT_EQ("no-way-to-npu-memory", found(facts));
	facts.kernel.peer_api = Answer::yes;
	EXPECT_EQ("", found(facts));
	// What is not known is no problem.
	facts.kernel.peer_api = facts.kernel.dma_buf = Answer::unknown;
	EXPECT_EQ("", found(facts));
}

TEST(InfoChecks, NoPeerMemoryAndADriverThatImportsNoDmaBuf)
{
	Facts facts = healthy();
	facts.kernel.peer_api = Answer::no;
	facts.devices[0].verbs_driver = "rxe";
	facts.search.drivers = {driver_of("nda_rxe", {"rxe"})};
	EXPECT_EQ("no-way-to-npu-memory", found(facts));
	expect_has(told(facts), "its driver never registers a dma-buf");
}

TEST(InfoChecks, NoPeerMemoryAndNobodyWhoExports)
{
	Facts facts = healthy();
	facts.kernel.peer_api = Answer::no;
	facts.kernel.features.clear();
	EXPECT_EQ("no-way-to-npu-memory", found(facts));
	expect_has(told(facts), "/dev/nda makes no dma-buf");
	facts.kernel.verbs_dma_buf = false;
	expect_has(told(facts), "libibverbs cannot register a dma-buf");
}

// ---- The process -----------------------------------------------------------------------

TEST(InfoChecks, TooLittleMemoryMayBeLocked)
{
	Facts facts = healthy();
	facts.process.memlock_unlimited = false;
	facts.process.memlock_bytes = 64 << 10;
	EXPECT_EQ("memlock-small", found(facts));
	expect_has(told(facts), "64 KiB");
	facts.process.memlock_ignored = true;
	EXPECT_EQ("", found(facts));
	facts.process.memlock_ignored = false;
	facts.process.memlock_bytes = uint64_t(64) << 20;
	EXPECT_EQ("", found(facts));
}

} // namespace
} // namespace nda::info
