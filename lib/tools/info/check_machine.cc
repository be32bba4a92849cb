// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Libraries, NPUs, the kernel's modules, limits.
#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "lib/tools/info/check_parts.h"

namespace nda::info {

// ---- Libraries -------------------------------------------------------------------------

namespace {

// False: less than 4.2, or not 4.
bool version_fits(const std::string &version)
{
	int major = 0, minor = 0;
	return sscanf(version.c_str(), "%d.%d", &major, &minor) == 2 && major == 4 &&
		minor >= 2;
}

} // namespace

void check_libraries(const Facts &facts, Problems &out)
{
	const Library &soname = facts.libraries.soname;
	const Library &plain = facts.libraries.unversioned;
	if (soname.path.empty() && plain.path.empty())
		problem(out, "library-missing", "libibv_extend.so.4", soname.error,
			"install libibv-extend4, or add its directory to /etc/ld.so.conf.d "
			"and run ldconfig (or to LD_LIBRARY_PATH)");
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
				"is unknown to the other",
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
			"4.2 or newer of version 4");
	}
	for (const Library &other : facts.libraries.others)
		note(out, "library-elsewhere", other.file,
			"another copy, of " + other.maker +
				", which programs get if their library path has its "
				"directory first",
			"see that all programs of a job have the same library path");
}

// ---- NPUs ------------------------------------------------------------------------------

namespace {

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
				"refuses any other");
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
			"NPU a number means",
			"unset the variable, or install a newer CANN");
}

} // namespace

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
			"name the directories of libascendcl.so and libascend_hal.so in "
			"NDA_ASCEND_PATH");
	if (!npus.any_ascend() || npus.hccn_addresses > 0)
		return;
	const Node &conf = npus.hccn_conf;
	problem(out, "npu-hccn-conf", conf.path,
		!conf.exists ? "it is not there"
			: !conf.allowed
			? "it may not be read (" + conf.mode + ")"
			: "no line of it gives an NPU's port an address (address_0=...)",
		in_container(facts)
			? "mount it from the host (-v /etc/hccn.conf:/etc/hccn.conf:ro); "
			  "nda does not read it, communication libraries do"
			: "set the addresses with hccn_tool if the NPUs' own ports are "
			  "used; nda does not read it, communication libraries do");
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
			"the module again");
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
			"be registered as dma-buf, or doorbells kept by the kernel");
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
				 "version that it knows"
			       : "nothing, unless it is wanted");
	}
}

namespace {

// Verbs drivers that never import a dma-buf.
const std::vector<std::string> no_dma_buf = {"rxe", "siw", "hns", "erdma"};

bool part_usable(const Kernel &kernel, const char *name)
{
	return std::any_of(kernel.parts.begin(), kernel.parts.end(),
		[&](const KernelPart &part) { return part.name == name && part.usable; });
}

} // namespace

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
			"interface for peer memory, and " +
				why,
			"install the NIC vendor's OFED (its peer-memory interface) with "
			"nda_peermem or npu_peermem; or take kernel 5.12 or newer, "
			"rdma-core 34 or newer, and load nda and nda_ascend");
	}
}

// ---- The process -----------------------------------------------------------------------

namespace {

constexpr uint64_t least_memlock = uint64_t(64) << 20;

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

} // namespace

void check_process(const Facts &facts, Problems &out)
{
	check_memlock(facts, out);
	check_ports_list(facts, out);
}

} // namespace nda::info
