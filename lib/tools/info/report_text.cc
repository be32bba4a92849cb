// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/info/report.h"

#include <algorithm>
#include <cstring>

#include <ibv_extend.h>

namespace nda::info {
namespace {

// Lines with indentation, of any length.
class Text {
public:
	void head(const std::string &line)
	{
		text_ += (text_.empty() ? "" : "\n") + line + "\n";
	}
	void line(int depth, const std::string &line)
	{
		const std::string indent(size_t(depth) * 2, ' ');
		text_ += indent;
		for (const char c : line) {
			text_ += c;
			if (c == '\n')
				text_ += indent + "  ";
		}
		text_ += "\n";
	}
	const std::string &text() const { return text_; }

private:
	std::string text_;
};

std::string joined(const std::vector<std::string> &words, const char *none)
{
	std::string text;
	for (const std::string &word : words)
		text += (text.empty() ? "" : ", ") + word;
	return text.empty() ? none : text;
}

std::string node_text(const Node &node)
{
	if (!node.exists)
		return node.path + " is not there";
	return node.path + " (" + node.mode + ")" + (node.allowed ? "" : ", no permission");
}

std::string numa_text(int node)
{
	return node < 0 ? "" : ", NUMA node " + std::to_string(node);
}

std::string distance_text(const PciDistance &distance)
{
	std::string text = distance.npu + ": ";
	switch (distance.kind) {
	case PciDistance::Kind::switched:
		text += std::to_string(distance.links) + " PCI links";
		break;
	case PciDistance::Kind::host:
		text += "through the host bridge";
		break;
	case PciDistance::Kind::far:
		text += "through two host bridges";
		break;
	}
	return text + (distance.same_numa ? ", same NUMA node" : "");
}

const char *answer_text(Answer answer)
{
	switch (answer) {
	case Answer::unknown:
		return "not known";
	case Answer::no:
		return "no";
	case Answer::yes:
		return "yes";
	}
	return "";
}

void add_npus(const Npus &npus, Text &out)
{
	out.head("NPUs");
	out.line(1,
		std::string("soft: ") + (npus.soft_usable ? "" : "cannot be used: ") +
			npus.soft_text);
	for (const PciNpu &npu : npus.pci)
		out.line(1,
			npu.location + ": Ascend, PCI device " + npu.device_id +
				", driver " +
				(npu.kernel_driver.empty() ? "none" : npu.kernel_driver) +
				numa_text(npu.numa_node));
	for (const Node &node : npus.davinci)
		out.line(1, node_text(node));
	for (const Node &node : npus.services)
		out.line(1, node_text(node));
	if (!npus.any_ascend())
		out.line(1, "Ascend: none");
	if (npus.runtime_tried)
		out.line(1,
			"Ascend runtime and driver library: " +
				(npus.runtime_loads ? "load" : npus.runtime_text));
	if (npus.visible_set)
		out.line(1, "ASCEND_RT_VISIBLE_DEVICES: " + npus.visible);
	if (npus.any_ascend())
		out.line(1,
			node_text(npus.hccn_conf) +
				", addresses: " + std::to_string(npus.hccn_addresses));
}

void add_port(const Port &port, Text &out)
{
	out.line(2,
		"port " + std::to_string(port.number) + ": " + port.state +
			(port.physical_state.empty() ? ""
						     : " (" + port.physical_state + ")") +
			", " + port.link_layer + ", MTU " +
			(port.active_mtu_bytes ? std::to_string(port.active_mtu_bytes)
					       : "not known") +
			", net device " + joined(port.net_devices, "none"));
	for (const Gid &gid : port.gids)
		out.line(3,
			"GID " + std::to_string(gid.index) + ": " + gid.type + " " +
				gid.address +
				(gid.net_device.empty() ? ""
							: " (" + gid.net_device + ")") +
				(gid.link_local ? ", link-local" : ""));
	if (port.gids.empty())
		out.line(3, "no GID");
}

std::string extend_text(const ExtendOpen &extend)
{
	if (!extend.tried)
		return "not tried";
	if (extend.crashed)
		return "the process that opened it " + extend.said;
	if (!extend.opened)
		return std::string("NULL") +
			(extend.error ? std::string(", ") + strerror(extend.error) : "") +
			(extend.said.empty() ? "" : "\n" + extend.said);
	std::string text =
		"opened, driver of version " + std::to_string(extend.driver_version);
	if (extend.capabilities & IBV_EXTEND_DEV_NDR)
		text += ", NDR";
	if (extend.capabilities & IBV_EXTEND_DEV_NDA)
		text += ", NDA";
	return text;
}

void add_device(const VerbsDevice &device, Text &out)
{
	out.line(1,
		device.name + ": " + device.node_type + ", verbs driver " +
			(device.verbs_driver.empty() ? "not known" : device.verbs_driver) +
			(device.kernel_driver.empty()
					? ""
					: ", kernel driver " + device.kernel_driver) +
			(device.location.empty() ? "" : ", PCI " + device.location) +
			numa_text(device.numa_node));
	out.line(2,
		device.uverbs.path.empty() ? "no uverbs device" : node_text(device.uverbs));
	if (device.listed == Answer::no)
		out.line(2, "libibverbs does not list it");
	if (device.open_error)
		out.line(2, std::string("ibv_open_device: ") + strerror(device.open_error));
	if (!device.said.empty())
		out.line(2, device.said);
	if (device.listed == Answer::yes)
		out.line(2, "ibv_open_extend: " + extend_text(device.extend));
	for (const PciDistance &distance : device.distances)
		out.line(2, "NPU " + distance_text(distance));
	for (const Port &port : device.ports)
		add_port(port, out);
}

// Where the dynamic loader found what has no directory.
std::string origin(const Driver &driver)
{
	const bool bare = driver.path.find('/') == std::string::npos;
	return bare && !driver.real_path.empty() ? " (" + driver.real_path + ")" : "";
}

std::string result_text(const Driver &driver)
{
	switch (driver.result) {
	case Driver::Result::loaded:
		return driver.path + origin(driver) + " loads, registers " +
			joined(driver.registered, "nothing");
	case Driver::Result::failed:
		return driver.text;
	case Driver::Result::crashed:
	case Driver::Result::hung:
		return "the process that loaded it " + driver.text;
	}
	return "";
}

void add_search(const Search &search, Text &out)
{
	out.head("Extension drivers");
	for (const Step &step : search.steps) {
		std::string where = step.source;
		if (step.position)
			where += ":" + std::to_string(step.position);
		out.line(1,
			where + ": " + (step.name.empty() ? "" : step.name + " ") +
				step.text);
	}
	for (const Driver &driver : search.drivers) {
		out.line(1,
			(driver.built_in() ? "comes with libnda"
					   : driver.source + ":" +
						std::to_string(driver.position)) +
				": driver " + driver.name);
		for (const Step &step : driver.candidates)
			if (step.path != driver.path)
				out.line(2,
					"tried: " +
						(step.text.find(step.path) == step.text.npos
								? step.path + ": "
								: "") +
						step.text);
		out.line(2, result_text(driver));
	}
	out.line(1,
		"libibverbs: private interface " +
			(search.verbs_abi.empty() ? "not known" : search.verbs_abi));
}

void add_library(const Library &library, Text &out)
{
	if (library.path.empty())
		out.line(1, library.wanted + ": " + library.error);
	else
		out.line(1,
			library.wanted + ": " + library.file + ", version " +
				(library.version.empty() ? "not known" : library.version) +
				", of " + library.maker);
}

void add_libraries(const Libraries &libraries, Text &out)
{
	out.head("Libraries that a program gets");
	add_library(libraries.soname, out);
	add_library(libraries.unversioned, out);
	if (!libraries.soname.path.empty() && !libraries.unversioned.path.empty())
		out.line(2,
			libraries.soname.file == libraries.unversioned.file
				? "both are one file"
				: "these are two copies");
	add_library(libraries.nda, out);
	for (const Library &other : libraries.others)
		out.line(1, "elsewhere: " + other.file + ", of " + other.maker);
}

void add_kernel(const Kernel &kernel, Text &out)
{
	out.head("Kernel " + kernel.release);
	if (kernel.usable)
		out.line(1,
			node_text(kernel.node) +
				", features: " + joined(kernel.features, "none"));
	else
		out.line(1, kernel.why);
	for (const KernelPart &part : kernel.parts)
		out.line(2, part.name + ": " + (part.usable ? "usable" : part.why));
	out.line(1, "modules: " + joined(kernel.modules, "none that matter here"));
	out.line(1, std::string("peer-memory interface: ") + answer_text(kernel.peer_api));
	out.line(1,
		std::string("the RDMA core registers dma-bufs: ") +
			answer_text(kernel.dma_buf) +
			", libibverbs: " + (kernel.verbs_dma_buf ? "yes" : "no"));
}

void add_process(const Process &process, Text &out)
{
	out.head("Process");
	out.line(1,
		"memory that may be locked: " +
			(process.memlock_unlimited
					? std::string("unlimited")
					: std::to_string(process.memlock_bytes / 1024) +
						" KiB") +
			(process.memlock_ignored ? ", does not apply (CAP_IPC_LOCK)" : ""));
	out.line(1, "container: " + joined(process.container, "no sign of one"));
	for (const auto &[name, value] : process.environment)
		out.line(1, name + "=" + value);
}

} // namespace

std::string facts_text(const Facts &facts, const std::string &device)
{
	Text out;
	if (device == "nda") {
		add_kernel(facts.kernel, out);
		return out.text();
	}
	if (device.empty())
		add_npus(facts.npus, out);
	out.head("Verbs devices");
	for (const VerbsDevice &one : facts.devices)
		if (device.empty() || device == one.name)
			add_device(one, out);
	if (facts.devices.empty())
		out.line(1, "none");
	add_search(facts.search, out);
	if (!device.empty())
		return out.text();
	add_libraries(facts.libraries, out);
	add_kernel(facts.kernel, out);
	add_process(facts.process, out);
	return out.text();
}

std::string problems_text(const std::vector<Problem> &problems)
{
	Text out;
	for (const auto weight : {Problem::Weight::note, Problem::Weight::problem})
		for (const Problem &one : problems) {
			if (one.weight != weight)
				continue;
			out.head((weight == Problem::Weight::note ? "note " : "PROBLEM ") +
				one.id + ": " + one.subject);
			out.line(1, one.seen);
			out.line(1, "-> " + one.todo);
		}
	const unsigned count = count_problems(problems);
	out.head(count == 0 ? "No problem found."
			    : std::to_string(count) +
				(count == 1 ? " problem." : " problems."));
	return out.text();
}

} // namespace nda::info
