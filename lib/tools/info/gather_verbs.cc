// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What libibverbs and libibv_extend say of a device. Both load code of vendors.
#include "lib/tools/info/gather.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <ibv_extend.h>
#include <nlohmann/json.hpp>

#include "lib/ibv_extend/device_name.h"
#include "lib/tools/info/child.h"
#include "lib/tools/info/recorder.h"

namespace nda::info {
namespace {

using nlohmann::json;

// On standard error, between what libibverbs said and what libibv_extend did.
constexpr char parting = '\x1e';

ibv_device *find(ibv_device **devices, const std::string &name)
{
	for (; devices && *devices; devices++)
		if (name == ibv_get_device_name(*devices))
			return *devices;
	return nullptr;
}

json port_mtus(ibv_context *context, const VerbsDevice &device)
{
	json mtus = json::object();
	for (const Port &port : device.ports) {
		ibv_port_attr attr = {};
		if (!ibv_query_port(context, static_cast<uint8_t>(port.number), &attr))
			mtus[std::to_string(port.number)] = 128u << attr.active_mtu;
	}
	return mtus;
}

template <class Function>
Function *symbol(void *library, const char *name)
{
	return reinterpret_cast<Function *>(dlsym(library, name));
}

// As the communication layer does it, but that it falls back on the other name.
void open_extend(ibv_context *context, const Tell &tell)
{
	void *library = dlopen("libibv_extend.so.4", RTLD_NOW | RTLD_GLOBAL);
	if (!library)
		library = dlopen("libibv_extend.so", RTLD_NOW | RTLD_GLOBAL);
	if (!library)
		return; // which is told where libraries are
	const auto open = symbol<decltype(ibv_open_extend)>(library, "ibv_open_extend");
	const auto close = symbol<decltype(ibv_close_extend)>(library, "ibv_close_extend");
	const auto query = symbol<decltype(ibv_query_device_extend)>(
		library, "ibv_query_device_extend");
	if (!open || !close || !query)
		return;
	forward_registrations(symbol<decltype(verbs_register_driver_extend)>(
		library, "verbs_register_driver_extend"));
	tell(json{{"extend_tried", true}}.dump());
	errno = 0;
	ibv_context_extend *extended = open(context);
	json answer = {{"extend_opened", extended != nullptr}, {"extend_error", errno}};
	if (extended) {
		ibv_device_attr_extend attr = {};
		answer["extend_version"] = extended->ops ? extended->ops->version : 0;
		if (!query(extended, &attr))
			answer["extend_capabilities"] = attr.ext_cap;
		close(extended);
	}
	tell(answer.dump());
}

void ask(const VerbsDevice &device, const Tell &tell)
{
	setenv("IBV_EXTEND_SHOW_WARNINGS", "1", 1);
	ibv_device **devices = ibv_get_device_list(nullptr);
	ibv_device *found = find(devices, device.name);
	if (!found)
		return tell(json{{"listed", false}}.dump());
	tell(json{{"listed", true}, {"driver", extend::verbs_driver_name(found)}}.dump());
	errno = 0;
	ibv_context *context = ibv_open_device(found);
	if (!context)
		return tell(json{{"open_error", errno ? errno : EIO}}.dump());
	tell(json{{"mtus", port_mtus(context, device)}}.dump());
	if (write(STDERR_FILENO, &parting, 1) == 1)
		open_extend(context, tell);
	ibv_close_device(context);
	ibv_free_device_list(devices);
}

void take(const json &answer, VerbsDevice &device)
{
	if (answer.contains("listed"))
		device.listed = answer["listed"] ? Answer::yes : Answer::no;
	device.verbs_driver = answer.value("driver", device.verbs_driver);
	device.open_error = answer.value("open_error", device.open_error);
	device.extend.tried = answer.value("extend_tried", device.extend.tried);
	device.extend.opened = answer.value("extend_opened", device.extend.opened);
	device.extend.error = answer.value("extend_error", device.extend.error);
	device.extend.driver_version =
		answer.value("extend_version", device.extend.driver_version);
	device.extend.capabilities =
		answer.value("extend_capabilities", device.extend.capabilities);
	if (answer.contains("mtus"))
		for (Port &port : device.ports)
			port.active_mtu_bytes =
				answer["mtus"].value(std::to_string(port.number), 0u);
}

// That nda-info takes registrations itself is not worth a word.
std::string without_own_doing(const std::string &said)
{
	std::string text;
	for (size_t begin = 0; begin < said.size();) {
		const size_t end = std::min(said.find('\n', begin), said.size());
		const std::string line = said.substr(begin, end - begin);
		if (!line.empty() && line.find("another copy of the library") == line.npos)
			text += (text.empty() ? "" : "\n") + line;
		begin = end + 1;
	}
	return text;
}

} // namespace

void ask_verbs(VerbsDevice &device)
{
	const ChildResult result = in_child([&](const Tell &tell) { ask(device, tell); });
	for (const std::string &line : result.lines)
		if (const json answer = json::parse(line, nullptr, false);
			answer.is_object())
			take(answer, device);
	const size_t part = std::min(result.said.find(parting), result.said.size());
	device.said = without_own_doing(result.said.substr(0, part));
	if (part < result.said.size())
		device.extend.said = without_own_doing(result.said.substr(part + 1));
	if (result.done)
		return;
	bool &crashed = device.extend.tried ? device.extend.crashed : device.crashed;
	std::string &said = device.extend.tried ? device.extend.said : device.said;
	crashed = true;
	said += (said.empty() ? "" : "\n") + result.end;
}

} // namespace nda::info
