// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// NPUs. Of an Ascend NPU the kernel's device nodes and PCI functions are looked at, and
// whether its libraries can be bound; none of their functions that touches a device is
// called.
#include "lib/tools/info/gather.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>

#include "lib/nda/ascend_api.h"
#include "lib/nda/error.h"
#include "lib/tools/info/child.h"

namespace nda::info {
namespace {

constexpr char vendor[] = "0x19e5";
const std::vector<std::string> device_ids = {"0xd105", "0xd500", "0xd501", "0xd801",
	"0xd802", "0xd803", "0xd804", "0xd805", "0xd806", "0xd807", "0xd808"};
const std::vector<std::string> service_nodes = {
	"/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"};

std::vector<PciNpu> pci_npus(const std::string &root)
{
	const std::string directory = root + "/sys/bus/pci/devices/";
	std::vector<PciNpu> found;
	for (const std::string &location : list(directory)) {
		const std::string device = directory + location;
		PciNpu npu;
		npu.device_id = read_text(device + "/device");
		if (read_text(device + "/vendor") != vendor ||
			std::find(device_ids.begin(), device_ids.end(), npu.device_id) ==
				device_ids.end())
			continue;
		npu.location = location;
		npu.system_path = system_path(root, device);
		const std::string driver = real_path(device + "/driver");
		npu.kernel_driver = driver.substr(driver.rfind('/') + 1);
		const std::string numa = read_text(device + "/numa_node");
		npu.numa_node = numa.empty() ? -1 : atoi(numa.c_str());
		found.push_back(npu);
	}
	return found;
}

bool is_npu_node(const std::string &name)
{
	constexpr size_t prefix = sizeof("davinci") - 1;
	return name.compare(0, prefix, "davinci") == 0 && name.size() > prefix &&
		std::all_of(name.begin() + prefix, name.end(),
			[](unsigned char c) { return isdigit(c); });
}

void try_runtime(Npus &npus)
{
	npus.runtime_tried = true;
	const ChildResult result = in_child([](const Tell &tell) {
		AscendApi api = {};
		if (load_ascend(api)) {
			fputs(error_detail(), stderr);
			return;
		}
		tell("loads");
		if (api.get_logic_id)
			tell("translates");
	});
	const auto told = [&](const char *word) {
		return std::find(result.lines.begin(), result.lines.end(), word) !=
			result.lines.end();
	};
	npus.runtime_loads = result.done && told("loads");
	npus.translates_ids = told("translates");
	if (!npus.runtime_loads)
		npus.runtime_text = result.done
			? result.said
			: "the process that loaded it " + result.end;
}

// Lines "address_0=192.168.100.101".
uint32_t count_addresses(const std::string &text)
{
	constexpr char key[] = "address_";
	uint32_t n = 0;
	for (size_t begin = 0; begin < text.size();) {
		const size_t end = std::min(text.find('\n', begin), text.size());
		const std::string line = text.substr(begin, end - begin);
		const size_t equals = line.find('=');
		if (line.compare(0, sizeof(key) - 1, key) == 0 && equals != line.npos &&
			equals + 1 < line.size())
			n++;
		begin = end + 1;
	}
	return n;
}

} // namespace

Npus gather_npus(const Machine &machine)
{
	Npus npus;
	npus.pci = pci_npus(machine.root);
	for (const std::string &name : list(machine.root + "/dev"))
		if (is_npu_node(name))
			npus.davinci.push_back(
				look_at_node(machine.root, "/dev/" + name, R_OK | W_OK));
	if (npus.any_ascend())
		for (const std::string &path : service_nodes)
			npus.services.push_back(
				look_at_node(machine.root, path, R_OK | W_OK));
	if (npus.any_ascend() || secure_getenv("NDA_ASCEND_PATH"))
		try_runtime(npus);
	if (const char *visible = getenv("ASCEND_RT_VISIBLE_DEVICES")) {
		npus.visible_set = true;
		npus.visible = visible;
	}
	npus.hccn_conf = look_at_node(machine.root, "/etc/hccn.conf", R_OK);
	npus.hccn_addresses = count_addresses(read_text(machine.root + "/etc/hccn.conf"));
	return npus;
}

} // namespace nda::info
