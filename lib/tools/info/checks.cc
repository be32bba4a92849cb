// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/info/checks.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cassert>
#include <cerrno>
#include <cstring>

namespace nda::info {

const std::vector<std::string> check_ids = {
	// verbs devices
	"device-absent", "device-crashed", "device-not-opened", "gid-link-local-only",
	"gid-missing-for-address", "gid-none", "link-layer", "mtu-small",
	"net-device-not-visible", "no-verbs-device", "port-down", "uverbs-absent",
	"uverbs-permission", "verbs-driver-missing", "verbs-driver-unknown",
	// extension drivers
	"config-absent", "config-line", "config-refused", "device-no-driver", "driver-abi",
	"driver-crashed", "driver-dependency", "driver-for-libnda-only", "driver-hung",
	"driver-load", "driver-machine", "driver-missing", "driver-name-twice",
	"driver-not-library", "driver-permission", "driver-refuses-device", "driver-silent",
	"driver-symbol", "driver-without-device",
	// libraries
	"library-elsewhere", "library-missing", "library-two-copies", "library-unversioned",
	"library-version",
	// NPUs
	"npu-hccn-conf", "npu-ids-invalid", "npu-ids-permuted", "npu-ids-untranslated",
	"npu-node-absent", "npu-permission", "npu-runtime", "soft-npu",
	// the kernel
	"nda-module", "nda-part", "nda-permission", "nda-version", "no-way-to-npu-memory",
	// the process
	"memlock-small", "ports-list-device"};

namespace {

using Problems = std::vector<Problem>;

constexpr uint32_t least_mtu = 1024; // the communication layer refuses less
constexpr uint64_t least_memlock = uint64_t(64) << 20;

// Verbs drivers that never import a dma-buf.
const std::vector<std::string> no_dma_buf = {"rxe", "siw", "hns", "erdma"};

void add(Problems &out, const char *id, Problem::Weight weight, const std::string &subject,
	const std::string &seen, const std::string &todo)
{
	assert(std::find(check_ids.begin(), check_ids.end(), id) != check_ids.end());
	out.push_back({id, weight, subject, seen, todo});
}

void problem(Problems &out, const char *id, const std::string &subject,
	const std::string &seen, const std::string &todo)
{
	add(out, id, Problem::Weight::problem, subject, seen, todo);
}

void note(Problems &out, const char *id, const std::string &subject,
	const std::string &seen, const std::string &todo)
{
	add(out, id, Problem::Weight::note, subject, seen, todo);
}

bool starts_with(const std::string &text, const std::string &start)
{
	return text.compare(0, start.size(), start) == 0;
}

bool contains(const std::vector<std::string> &all, const std::string &one)
{
	return std::find(all.begin(), all.end(), one) != all.end();
}

std::string joined(const std::vector<std::string> &words, const char *between = ", ")
{
	std::string text;
	for (const std::string &word : words)
		text += (text.empty() ? "" : between) + word;
	return text;
}

std::string one_line(std::string text)
{
	std::replace(text.begin(), text.end(), '\n', ' ');
	return text;
}

bool in_container(const Facts &facts)
{
	return !facts.process.container.empty();
}

// ---- Verbs devices ---------------------------------------------------------------------

// Where a driver was named, for people.
std::string place(const Driver &driver)
{
	if (driver.built_in())
		return driver.name;
	return driver.source +
		(driver.position ? ":" + std::to_string(driver.position) : "") +
		": driver " + driver.name;
}

const Driver *serving(const Facts &facts, const std::string &verbs_driver, bool built_in)
{
	for (const Driver &driver : facts.search.drivers)
		if (driver.built_in() == built_in &&
			contains(driver.registered, verbs_driver))
			return &driver;
	return nullptr;
}

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
			"and "
			"put the user into that group; no other privilege is needed");
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
			"libibverbs "
			"(ibverbs-providers, or the vendor's package), see "
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

// Channels find their GID by the address that it stands for.
void check_addresses(
	const Facts &facts, const std::string &subject, const Port &port, Problems &out)
{
	for (const NetDevice &net : facts.net_devices) {
		if (!contains(port.net_devices, net.name))
			continue;
		for (const std::string &address : net.addresses) {
			const bool found = std::any_of(
				port.gids.begin(), port.gids.end(), [&](const Gid &gid) {
					return gid.type == "RoCEv2" &&
						same_address(gid.address, address);
				});
			if (!found && !is_link_local(address))
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
			"of "
			"4096, alike on all machines: less than 1024 is refused, and peers "
			"do "
			"not negotiate it");
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

void check_device(
	const Facts &facts, const VerbsDevice &device, bool asked_for, Problems &out)
{
	check_uverbs(facts, device, out);
	check_verbs(device, out);
	for (const Port &port : device.ports)
		check_port(facts, device, port, out);
	check_extend(facts, device, asked_for, out);
}

std::string device_list(const Facts &facts)
{
	std::string text;
	for (const VerbsDevice &device : facts.devices) {
		text += (text.empty() ? "" : ", ") + device.name;
		if (!device.location.empty())
			text += " (" + device.location + ")";
	}
	return text.empty() ? "there is none" : "there are " + text;
}

void device_absent(const Facts &facts, const std::string &name, Problems &out)
{
	problem(out, "device-absent", name,
		"there is no verbs device of that name; " + device_list(facts),
		facts.devices.empty() ? "load the driver of its NIC"
				      : "udev may have renamed it (rdma link show; "
					"NAME_KERNEL, NAME_PCI or NAME_FALLBACK in "
					"/lib/udev/rules.d/"
					"60-rdma-persistent-naming.rules): use its name of "
					"now");
}

// ---- Extension drivers -----------------------------------------------------------------

// Of "libx.so.5: cannot open shared object file: ..." the file.
std::string not_opened(const std::string &text)
{
	const size_t end = text.find(": cannot open shared object file");
	if (end == std::string::npos)
		return {};
	const size_t begin = text.rfind(' ', end);
	return text.substr(begin == std::string::npos ? 0 : begin + 1,
		end - (begin == std::string::npos ? 0 : begin + 1));
}

// "34" of "...version `IBVERBS_PRIVATE_34' not found".
std::string private_abi(const std::string &text)
{
	constexpr char word[] = "IBVERBS_PRIVATE_";
	const size_t at = text.find(word);
	if (at == std::string::npos)
		return {};
	const size_t begin = at + sizeof(word) - 1;
	return text.substr(begin, text.find_first_not_of("0123456789", begin) - begin);
}

void driver_not_found(const Driver &driver, Problems &out)
{
	problem(out, "driver-missing", place(driver),
		"there is no such file" +
			(driver.similar.empty() ? "" : ", but " + joined(driver.similar)),
		driver.built_in() ? "install the package of this file"
			: driver.similar.empty()
			? "install the driver's package, or take the line away; a name "
			  "NAME "
			  "stands for libNAME.so in /usr/local/lib64, /usr/lib64, "
			  "/usr/local/lib, /usr/lib, or where the dynamic loader looks"
			: "name the one that is there, or have its maker's package for "
			  "this "
			  "release of libibverbs");
}

void driver_failed(const Facts &facts, const Driver &driver, Problems &out)
{
	const std::string &text = driver.text;
	const std::string missing = not_opened(text);
	const bool itself = missing == driver.name || missing == driver.file.path ||
		missing == "lib" + driver.name + ".so";
	if (!driver.file.exists && (missing.empty() || itself))
		return driver_not_found(driver, out);
	const ElfFile &file = driver.file;
	if (file.exists && (file.error == EACCES || file.error == EPERM))
		return problem(out, "driver-permission", place(driver),
			file.path + ": " + strerror(file.error),
			"let everybody read it, and enter its directories (mode 0755)");
	if (file.exists && file.machine.empty())
		return problem(out, "driver-not-library", place(driver),
			file.path + " is no ELF file",
			"name the shared library itself; install its package again");
	if (file.exists && !file.fits)
		return problem(out, "driver-machine", place(driver),
			file.path + " is for " + file.machine +
				(text.empty() ? "" : " (the dynamic loader: " + text + ")"),
			"install the driver for this machine");
	if (file.exists && !file.is_library)
		return problem(out, "driver-not-library", place(driver),
			file.path + " is an ELF file, but no shared library",
			"name the shared library itself");
	if (const std::string abi = private_abi(text); !abi.empty())
		return problem(out, "driver-abi", place(driver),
			"it is built for the private interface " + abi +
				" of libibverbs, installed is " +
				(facts.search.verbs_abi.empty() ? "another"
								: facts.search.verbs_abi) +
				": " + text,
			"have its maker's package for this release of rdma-core");
	if (starts_with(missing, "libibv_extend.so."))
		return problem(out, "driver-abi", place(driver),
			"it needs " + missing +
				", and this is libibv_extend.so.4, or none: " + text,
			"have its maker's driver for libibv_extend 4; see "
			"library-missing if there is none");
	if (!missing.empty() && !itself)
		return problem(out, "driver-dependency", place(driver),
			"a library that it needs is not found: " + text,
			"install " + missing +
				", or add its directory to "
				"/etc/ld.so.conf.d and run ldconfig");
	if (text.find("undefined symbol") != std::string::npos)
		return problem(out, "driver-symbol", place(driver), text,
			"it is built for other releases of the libraries that it uses; "
			"have "
			"its maker's package for this one");
	problem(out, "driver-load", place(driver), text, "ask its maker");
}

void check_driver(const Facts &facts, const Driver &driver, Problems &out)
{
	switch (driver.result) {
	case Driver::Result::crashed:
		return problem(out, "driver-crashed", place(driver),
			"the process that loaded it " + driver.text,
			"take it out of the configuration, since every program that looks "
			"for "
			"a driver would crash, and report it to its maker");
	case Driver::Result::hung:
		return problem(out, "driver-hung", place(driver),
			"the process that loaded it " + driver.text,
			"take it out of the configuration, since every program that looks "
			"for "
			"a driver would wait, and report it to its maker");
	case Driver::Result::failed:
		return driver_failed(facts, driver, out);
	case Driver::Result::loaded:
		break;
	}
	if (driver.registered.empty())
		problem(out, "driver-silent", place(driver),
			driver.path +
				" was loaded, but registered no driver that has a name and "
				"alloc_context",
			"it is no extension driver; name one");
}

// The library takes the first one.
void check_names(const Facts &facts, Problems &out)
{
	const std::vector<Driver> &drivers = facts.search.drivers;
	for (size_t i = 0; i < drivers.size(); i++)
		for (const std::string &name : drivers[i].registered)
			for (size_t j = 0; j < i; j++)
				if (!drivers[i].built_in() &&
					drivers[i].path != drivers[j].path &&
					contains(drivers[j].registered, name)) {
					problem(out, "driver-name-twice", place(drivers[i]),
						drivers[i].path + " and " +
							drivers[j].path +
							" both register \"" + name +
							"\"; the latter is taken, since it "
							"is named first (" +
							place(drivers[j]) + ")",
						"take one of them away");
					break;
				}
}

void check_unused(const Facts &facts, Problems &out)
{
	for (const Driver &driver : facts.search.drivers)
		for (const std::string &name : driver.registered) {
			const bool used = std::any_of(facts.devices.begin(),
				facts.devices.end(), [&](const VerbsDevice &device) {
					return device.verbs_driver == name;
				});
			if (!used && !driver.built_in())
				note(out, "driver-without-device", place(driver),
					"no verbs device has the verbs driver \"" + name +
						"\"",
					"nothing, unless it is meant for one of the "
					"devices here: then the names do not match, see "
					"device-no-driver");
		}
}

void check_config(const Facts &facts, Problems &out)
{
	for (const Step &step : facts.search.steps) {
		if (!step.problem)
			continue;
		std::string subject = step.source;
		if (step.position)
			subject += ":" + std::to_string(step.position);
		if (step.kind == "line")
			problem(out, "config-line", subject,
				(step.name.empty() ? "" : step.name + " ") + step.text,
				"a line is \"driver NAME\", or \"driver /PATH\"; in the "
				"variable entries are parted by ':' or ';'");
		else
			problem(out, "config-refused", subject, step.text,
				"files and their directory must be readable, belong to "
				"root or "
				"the user, and nobody else may write to them (mode 0644, "
				"0755)");
	}
	const bool wanted = std::any_of(
		facts.devices.begin(), facts.devices.end(), [&](const VerbsDevice &device) {
			return !device.extend.opened && !device.verbs_driver.empty() &&
				!serving(facts, device.verbs_driver, false) &&
				!serving(facts, device.verbs_driver, true);
		});
	if (facts.search.config_exists || facts.search.environment_set)
		return;
	const bool counts = in_container(facts) && wanted;
	add(out, "config-absent", counts ? Problem::Weight::problem : Problem::Weight::note,
		facts.search.config_directory,
		"it is not there, and IBV_EXTEND_DRIVERS is not set: no extension driver "
		"is "
		"looked for",
		in_container(facts)
			? "install the driver's package in the container's image, or mount "
			  "the directory and the driver from the host"
			: "nothing, as long as libnda's own drivers are enough; the "
			  "package of a "
			  "NIC's extension driver puts its file there");
}

void check_search(const Facts &facts, Problems &out)
{
	check_config(facts, out);
	for (const Driver &driver : facts.search.drivers)
		check_driver(facts, driver, out);
	check_names(facts, out);
	check_unused(facts, out);
}

// ---- Libraries -------------------------------------------------------------------------

// False: less than 4.2, or not 4.
bool version_fits(const std::string &version)
{
	int major = 0, minor = 0;
	return sscanf(version.c_str(), "%d.%d", &major, &minor) == 2 && major == 4 &&
		minor >= 2;
}

void check_libraries(const Facts &facts, Problems &out)
{
	const Library &soname = facts.libraries.soname;
	const Library &plain = facts.libraries.unversioned;
	if (soname.path.empty() && plain.path.empty())
		problem(out, "library-missing", "libibv_extend.so.4", soname.error,
			"install libibv-extend4, or add its directory to /etc/ld.so.conf.d "
			"and "
			"run ldconfig (or to LD_LIBRARY_PATH)");
	else if (plain.path.empty())
		problem(out, "library-unversioned", plain.wanted,
			plain.error + "; there is " + soname.file,
			"the communication layer loads this name: make it a link to " +
				soname.path + " beside it");
	else if (soname.path.empty())
		problem(out, "library-missing", soname.wanted,
			soname.error + "; there is " + plain.file,
			"drivers and programs need this name: make it a link to " +
				plain.path + " beside it, and run ldconfig");
	else if (soname.file != plain.file)
		problem(out, "library-two-copies", soname.wanted,
			soname.wanted + " is " + soname.file + " (" + soname.maker + "), " +
				plain.wanted + " is " + plain.file + " (" + plain.maker +
				"): each has its own drivers, and what registers with one "
				"is "
				"unknown to the other",
			"have one installation alone in the library path, see "
			"LD_LIBRARY_PATH and /etc/ld.so.conf.d");
	for (const Library *library : {&soname, &plain}) {
		if (library->path.empty() || version_fits(library->version) ||
			(library == &plain && plain.file == soname.file))
			continue;
		problem(out, "library-version", library->file,
			"it is of version " +
				(library->version.empty() ? "unknown" : library->version),
			"programs and drivers of 4.2 miss functions: install libibv_extend "
			"4.2 "
			"or newer of version 4");
	}
	for (const Library &other : facts.libraries.others)
		note(out, "library-elsewhere", other.file,
			"another copy, of " + other.maker +
				", which programs get if their library path has its "
				"directory "
				"first",
			"see that all programs of a job have the same library path");
}

// ---- NPUs ------------------------------------------------------------------------------

void check_nodes(const Facts &facts, Problems &out)
{
	const Npus &npus = facts.npus;
	if (npus.davinci.empty() && !npus.pci.empty()) {
		std::vector<std::string> where;
		for (const PciNpu &npu : npus.pci)
			where.push_back(npu.location);
		problem(out, "npu-node-absent", "/dev/davinci*",
			"there are NPUs on PCI (" + joined(where) +
				"), but no device nodes",
			in_container(facts)
				? "give them to the container (--device=/dev/davinci0, "
				  "davinci_manager, devmm_svm, hisi_hdc)"
				: "install and load the Ascend driver");
	}
	for (const Node &node : npus.services)
		if (!node.exists && !npus.davinci.empty())
			problem(out, "npu-node-absent", node.path,
				"it is not there, and NPUs are",
				in_container(facts)
					? "give it to the container (--device=" +
						node.path + ")"
					: "load the Ascend driver's modules");
	for (const std::vector<Node> *nodes : {&npus.davinci, &npus.services})
		for (const Node &node : *nodes)
			if (node.exists && !node.allowed)
				problem(out, "npu-permission", node.path,
					"user " + std::to_string(facts.process.uid) +
						" may not read and write it (" + node.mode +
						")",
					"put the user into its group");
}

std::vector<std::string> split_list(const std::string &text)
{
	std::vector<std::string> words;
	for (size_t begin = 0; begin <= text.size();) {
		const size_t end = std::min(text.find(',', begin), text.size());
		words.push_back(text.substr(begin, end - begin));
		begin = end + 1;
	}
	return words;
}

bool is_number(const std::string &text)
{
	return !text.empty() && text.size() <= 4 &&
		text.find_first_not_of("0123456789") == std::string::npos;
}

// The n-th entry is the NPU that programs know as n.
void check_visible(const Facts &facts, Problems &out)
{
	const Npus &npus = facts.npus;
	constexpr char variable[] = "ASCEND_RT_VISIBLE_DEVICES";
	if (!npus.visible_set || !npus.any_ascend())
		return;
	const std::vector<std::string> words = split_list(npus.visible);
	std::vector<std::string> map;
	bool permuted = false;
	for (size_t i = 0; i < words.size(); i++) {
		const bool again = std::find(words.begin(), words.begin() + long(i),
					   words[i]) != words.begin() + long(i);
		if (!is_number(words[i]) || again)
			return problem(out, "npu-ids-invalid", variable,
				"\"" + npus.visible + "\": entry " + std::to_string(i + 1) +
					(again ? " is there before" : " is no number"),
				"it is a list of different NPUs, as 0,1,2: the runtime "
				"refuses "
				"any other");
		permuted = permuted || size_t(std::stoul(words[i])) != i;
		map.push_back(std::to_string(i) + " is NPU " + words[i]);
	}
	if (!permuted)
		return;
	note(out, "npu-ids-permuted", variable,
		"programs number the NPUs anew: " + joined(map),
		"nothing; give aclrtSetDevice and ascend:ID the new number, tools of the "
		"driver (npu-smi, hccn_tool) and /dev/davinci* the old one");
	if (npus.runtime_loads && !npus.translates_ids)
		problem(out, "npu-ids-untranslated", variable,
			"the runtime has no aclrtGetLogicDevIdByUserDevId to tell which "
			"NPU a "
			"number means",
			"unset the variable, or install a newer CANN");
}

void check_npus(const Facts &facts, Problems &out)
{
	const Npus &npus = facts.npus;
	if (!npus.soft_usable)
		note(out, "soft-npu", "soft",
			"it cannot be used: " + one_line(npus.soft_text),
			"install libnda1 with libnda_soft.so beside libnda.so.1 if it is "
			"wanted");
	check_nodes(facts, out);
	check_visible(facts, out);
	if (npus.runtime_tried && !npus.runtime_loads)
		problem(out, "npu-runtime", "Ascend runtime", one_line(npus.runtime_text),
			"install CANN and the Ascend driver, and source set_env.sh, or "
			"name "
			"the directories of libascendcl.so and libascend_hal.so in "
			"NDA_ASCEND_PATH");
	if (!npus.any_ascend() || npus.hccn_addresses > 0)
		return;
	const Node &conf = npus.hccn_conf;
	problem(out, "npu-hccn-conf", conf.path,
		!conf.exists            ? "it is not there"
			: !conf.allowed ? "it may not be read (" + conf.mode + ")"
					: "no line of it gives an NPU's port an address "
					  "(address_0=...)",
		in_container(facts) ? "mount it from the host (-v "
				      "/etc/hccn.conf:/etc/hccn.conf:ro); nda "
				      "does not read it, communication libraries do"
				    : "set the addresses with hccn_tool if the NPUs' own "
				      "ports are used; nda "
				      "does not read it, communication libraries do");
}

// ---- The kernel ------------------------------------------------------------------------

void check_module(const Facts &facts, bool asked_for, Problems &out)
{
	const Kernel &kernel = facts.kernel;
	if (kernel.usable)
		return;
	const std::string &path = kernel.node.path;
	if (kernel.code == -EACCES || kernel.code == -EPERM)
		problem(out, "nda-permission", path,
			"user " + std::to_string(facts.process.uid) + " may not open it (" +
				kernel.node.mode + ")",
			"put the user into its group");
	else if (kernel.code == -EPROTONOSUPPORT)
		problem(out, "nda-version", path, kernel.why,
			"have modules and libraries of one release; after an update load "
			"the "
			"module again");
	else if (kernel.module_loaded && in_container(facts))
		problem(out, "nda-module", path, kernel.why + ", but module nda is loaded",
			"give it to the container (--device=/dev/nda)");
	else
		// Software and NICs with ordinary memory do without.
		add(out, "nda-module",
			asked_for || facts.npus.any_ascend() ? Problem::Weight::problem
							     : Problem::Weight::note,
			path, kernel.why,
			"install nda-dkms and load it (modprobe nda) if NPU memory is to "
			"be "
			"registered as dma-buf, or doorbells kept by the kernel");
}

void check_parts(const Facts &facts, Problems &out)
{
	for (const KernelPart &part : facts.kernel.parts) {
		if (part.usable)
			continue;
		const bool counts = part.name == "ascend" && facts.npus.any_ascend();
		add(out, "nda-part",
			counts ? Problem::Weight::problem : Problem::Weight::note,
			part.name, part.why,
			counts ? "load module nda_ascend after the Ascend driver, of a "
				 "version "
				 "that it knows"
			       : "nothing, unless it is wanted");
	}
}

bool part_usable(const Kernel &kernel, const char *name)
{
	return std::any_of(kernel.parts.begin(), kernel.parts.end(),
		[&](const KernelPart &part) { return part.name == name && part.usable; });
}

// By function, not by a module's name.
void check_memory(const Facts &facts, Problems &out)
{
	const Kernel &kernel = facts.kernel;
	if (!facts.npus.any_ascend() || kernel.peer_api != Answer::no)
		return;
	const bool exported =
		contains(kernel.features, "export") && part_usable(kernel, "ascend");
	for (const VerbsDevice &device : facts.devices) {
		const bool never = contains(no_dma_buf, device.verbs_driver);
		std::string why;
		if (kernel.dma_buf == Answer::no)
			why = "the kernel's RDMA core cannot register a dma-buf";
		else if (!kernel.verbs_dma_buf)
			why = "libibverbs cannot register a dma-buf";
		else if (never)
			why = "its driver never registers a dma-buf";
		else if (!exported)
			why = "/dev/nda makes no dma-buf of NPU memory";
		if (why.empty())
			continue;
		problem(out, "no-way-to-npu-memory", device.name,
			"it cannot register NPU memory: the kernel's RDMA core has no "
			"interface "
			"for peer memory, and " +
				why,
			"install the NIC vendor's OFED (its peer-memory interface) with "
			"nda_peermem or npu_peermem; or take kernel 5.12 or newer, "
			"rdma-core 34 "
			"or newer, and load nda and nda_ascend");
	}
}

// ---- The process -----------------------------------------------------------------------

void check_memlock(const Facts &facts, Problems &out)
{
	const Process &process = facts.process;
	if (facts.devices.empty() || process.memlock_unlimited || process.memlock_ignored ||
		process.memlock_bytes >= least_memlock)
		return;
	problem(out, "memlock-small", "RLIMIT_MEMLOCK",
		"a process may lock " + std::to_string(process.memlock_bytes / 1024) +
			" KiB; registering more memory fails with ENOMEM",
		"ulimit -l unlimited; \"* - memlock unlimited\" in /etc/security/limits.d; "
		"LimitMEMLOCK=infinity in a unit; --ulimit memlock=-1 for a container");
}

// "dev:port,port;dev:port"
void check_ports_list(const Facts &facts, Problems &out)
{
	constexpr char variable[] = "HCCL_HOST_RDMA_UDP_PORTS_LIST";
	for (const auto &[name, value] : facts.process.environment) {
		if (name != variable)
			continue;
		for (size_t begin = 0; begin < value.size();) {
			const size_t end = std::min(value.find(';', begin), value.size());
			const std::string one = value.substr(begin, end - begin);
			const std::string device = one.substr(0, one.find(':'));
			const bool found = std::any_of(facts.devices.begin(),
				facts.devices.end(),
				[&](const VerbsDevice &d) { return d.name == device; });
			if (!device.empty() && !found)
				problem(out, "ports-list-device", variable,
					"it names the device " + device + "; " +
						device_list(facts),
					"udev may have renamed the device: use its name of "
					"now");
			begin = end + 1;
		}
	}
}

void check_one_device(const Facts &facts, const std::string &name, Problems &out)
{
	const auto found = std::find_if(facts.devices.begin(), facts.devices.end(),
		[&](const VerbsDevice &device) { return device.name == name; });
	if (found == facts.devices.end())
		return device_absent(facts, name, out);
	check_device(facts, *found, true, out);
	const Driver *driver = serving(facts, found->verbs_driver, false);
	if (driver)
		return check_driver(facts, *driver, out);
	// Any of those that failed may be the one for it.
	if (serving(facts, found->verbs_driver, true))
		return;
	check_config(facts, out);
	for (const Driver &one : facts.search.drivers)
		if (one.result != Driver::Result::loaded && !one.built_in())
			check_driver(facts, one, out);
}

} // namespace

std::vector<Problem> check(const Facts &facts, const std::string &device)
{
	Problems out;
	if (device == "nda") {
		check_module(facts, true, out);
		check_parts(facts, out);
		return out;
	}
	if (!device.empty()) {
		check_one_device(facts, device, out);
		return out;
	}
	if (facts.devices.empty())
		note(out, "no-verbs-device", "RDMA", "the kernel has no verbs device",
			"load the driver of the NIC; for Soft-RoCE, rdma link add rxe0 "
			"type rxe "
			"netdev NETDEV. The software NICs need none");
	for (const VerbsDevice &one : facts.devices)
		check_device(facts, one, false, out);
	check_search(facts, out);
	check_libraries(facts, out);
	check_npus(facts, out);
	check_module(facts, false, out);
	check_parts(facts, out);
	check_memory(facts, out);
	check_memlock(facts, out);
	check_ports_list(facts, out);
	return out;
}

unsigned count_problems(const std::vector<Problem> &problems)
{
	return unsigned(std::count_if(problems.begin(), problems.end(),
		[](const Problem &p) { return p.weight == Problem::Weight::problem; }));
}

} // namespace nda::info
