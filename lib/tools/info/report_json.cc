// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/info/report.h"

#include <nlohmann/json.hpp>

namespace nda::info {
namespace {

using nlohmann::json;

json number_or_null(int value, int none)
{
	return value == none ? json() : json(value);
}

json answer(Answer value)
{
	return value == Answer::unknown ? json() : json(value == Answer::yes);
}

json node(const Node &n)
{
	return {{"path", n.path}, {"exists", n.exists}, {"allowed", n.allowed},
		{"mode", n.mode}};
}

template <class T, class Function>
json all(const std::vector<T> &values, Function encode)
{
	json array = json::array();
	for (const T &value : values)
		array.push_back(encode(value));
	return array;
}

json gid(const Gid &g)
{
	return {{"index", g.index}, {"gid", g.gid}, {"address", g.address},
		{"type", g.type}, {"net_device", g.net_device},
		{"link_local", g.link_local}};
}

json port(const Port &p)
{
	return {{"number", p.number}, {"link_layer", p.link_layer}, {"state", p.state},
		{"physical_state", p.physical_state},
		{"active_mtu_bytes", number_or_null(int(p.active_mtu_bytes), 0)},
		{"net_devices", p.net_devices}, {"gids", all(p.gids, gid)}};
}

json distance(const PciDistance &d)
{
	const char *kind = d.kind == PciDistance::Kind::switched ? "switched"
		: d.kind == PciDistance::Kind::host              ? "host"
								 : "far";
	return {{"npu", d.npu}, {"kind", kind},
		{"links", d.kind == PciDistance::Kind::switched ? json(d.links) : json()},
		{"same_numa_node", d.same_numa}};
}

json extend(const ExtendOpen &e)
{
	return {{"tried", e.tried}, {"opened", e.opened}, {"errno", e.error},
		{"said", e.said}, {"crashed", e.crashed},
		{"driver_version", e.driver_version}, {"capabilities", e.capabilities}};
}

json device(const VerbsDevice &d)
{
	return {{"name", d.name}, {"node_type", d.node_type},
		{"kernel_driver", d.kernel_driver}, {"pci", d.location},
		{"numa_node", number_or_null(d.numa_node, -1)}, {"uverbs", node(d.uverbs)},
		{"listed", answer(d.listed)}, {"verbs_driver", d.verbs_driver},
		{"open_errno", d.open_error}, {"said", d.said}, {"crashed", d.crashed},
		{"ibv_open_extend", extend(d.extend)}, {"npus", all(d.distances, distance)},
		{"ports", all(d.ports, port)}};
}

json net_device(const NetDevice &n)
{
	return {{"name", n.name}, {"mtu", n.mtu}, {"state", n.state},
		{"addresses", n.addresses}};
}

json step(const Step &s)
{
	return {{"kind", s.kind}, {"outcome", s.outcome}, {"source", s.source},
		{"position", s.position}, {"name", s.name}, {"path", s.path},
		{"errno", s.error}, {"text", s.text}, {"problem", s.problem}};
}

const char *result_name(Driver::Result result)
{
	switch (result) {
	case Driver::Result::loaded:
		return "loaded";
	case Driver::Result::failed:
		return "failed";
	case Driver::Result::crashed:
		return "crashed";
	case Driver::Result::hung:
		return "hung";
	}
	return "";
}

json driver(const Driver &d)
{
	json file;
	if (d.file.exists)
		file = {{"path", d.file.path}, {"errno", d.file.error},
			{"machine", d.file.machine}, {"fits", d.file.fits},
			{"is_library", d.file.is_library}};
	return {{"source", d.source}, {"position", d.position}, {"name", d.name},
		{"result", result_name(d.result)}, {"path", d.path},
		{"real_path", d.real_path}, {"text", d.text}, {"registered", d.registered},
		{"candidates", all(d.candidates, step)}, {"file", file},
		{"similar", d.similar}};
}

json search(const Search &s)
{
	return {{"config_directory", s.config_directory},
		{"config_exists", s.config_exists}, {"environment_set", s.environment_set},
		{"steps", all(s.steps, step)}, {"drivers", all(s.drivers, driver)},
		{"libibverbs_private_abi", s.verbs_abi}};
}

json library(const Library &l)
{
	return {{"wanted", l.wanted}, {"path", l.path}, {"file", l.file},
		{"error", l.error}, {"version", l.version}, {"maker", l.maker}};
}

json libraries(const Libraries &l)
{
	json one;
	if (!l.soname.path.empty() && !l.unversioned.path.empty())
		one = l.soname.file == l.unversioned.file;
	return {{"soname", library(l.soname)}, {"unversioned", library(l.unversioned)},
		{"one_file", one}, {"libnda", library(l.nda)},
		{"elsewhere", all(l.others, library)}};
}

json pci_npu(const PciNpu &n)
{
	return {{"pci", n.location}, {"device_id", n.device_id},
		{"kernel_driver", n.kernel_driver},
		{"numa_node", number_or_null(n.numa_node, -1)}};
}

json npus(const Npus &n)
{
	json runtime;
	if (n.runtime_tried)
		runtime = {{"loads", n.runtime_loads}, {"text", n.runtime_text},
			{"translates_ids", n.translates_ids}};
	return {{"soft", {{"usable", n.soft_usable}, {"text", n.soft_text}}},
		{"pci", all(n.pci, pci_npu)}, {"davinci", all(n.davinci, node)},
		{"services", all(n.services, node)}, {"runtime", runtime},
		{"visible_devices", n.visible_set ? json(n.visible) : json()},
		{"hccn_conf", node(n.hccn_conf)}, {"hccn_addresses", n.hccn_addresses}};
}

json kernel(const Kernel &k)
{
	return {{"release", k.release}, {"node", node(k.node)}, {"usable", k.usable},
		{"errno", -k.code}, {"why", k.why}, {"features", k.features},
		{"parts",
			all(k.parts,
				[](const KernelPart &p) {
					return json{{"name", p.name}, {"usable", p.usable},
						{"why", p.why}};
				})},
		{"modules", k.modules}, {"peer_memory", answer(k.peer_api)},
		{"dma_buf", answer(k.dma_buf)}, {"libibverbs_dma_buf", k.verbs_dma_buf}};
}

json process(const Process &p)
{
	return {{"memlock_bytes", p.memlock_unlimited ? json() : json(p.memlock_bytes)},
		{"memlock_ignored", p.memlock_ignored}, {"uid", p.uid},
		{"container", p.container}, {"environment", json(p.environment)}};
}

json problem(const Problem &p)
{
	return {{"id", p.id}, {"subject", p.subject}, {"seen", p.seen}, {"todo", p.todo}};
}

} // namespace

std::string json_text(
	const Facts &facts, const std::string &only, const std::vector<Problem> *problems)
{
	json document = {{"schema", 1}, {"version", NDA_VERSION},
		{"kernel", kernel(facts.kernel)}, {"process", process(facts.process)}};
	if (only != "nda") {
		document["devices"] = json::array();
		for (const VerbsDevice &one : facts.devices)
			if (only.empty() || only == one.name)
				document["devices"].push_back(device(one));
		document["net_devices"] = all(facts.net_devices, net_device);
		document["search"] = search(facts.search);
		document["libraries"] = libraries(facts.libraries);
		document["npus"] = npus(facts.npus);
	}
	if (problems) {
		document["problems"] = json::array();
		document["notes"] = json::array();
		for (const Problem &one : *problems)
			document[one.weight == Problem::Weight::problem ? "problems"
									: "notes"]
				.push_back(problem(one));
	}
	// Names of files may hold any bytes.
	return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace nda::info
