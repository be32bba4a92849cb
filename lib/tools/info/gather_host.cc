// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The kernel's modules, limits, containers.
#include "lib/tools/info/gather.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/nda/kernel.h"

namespace nda::info {
namespace {

const std::vector<std::string> known_modules = {
	// ours
	"nda", "nda_ascend", "nda_peermem", "nda_soft",
	// the RDMA core and drivers of NICs
	"ib_core", "ib_uverbs", "rdma_cm", "rdma_ucm", "rdma_rxe", "siw", "mlx5_ib",
	"mlx4_ib", "hns_roce_hw_v2", "erdma", "irdma", "bnxt_re", "efa", "hrn5", "xsc_ib",
	// of the Ascend driver
	"asdrv_svm", "asdrv_pbl", "asdrv_dms", "asdrv_ub", "drv_pcie_host",
	"drv_seclib_host", "ascend_kernel_open_adapt", "npu_peermem",
	// other peer-memory clients
	"nvidia_peermem", "nv_peer_mem"};

const struct {
	uint64_t bit;
	const char *name;
} features[] = {{NDA_FEATURE_HOST_PIN, "host-pin"}, {NDA_FEATURE_EXPORT, "export"},
	{NDA_FEATURE_REVOCABLE_IMPORT, "revocable-import"},
	{NDA_FEATURE_SINK_REMAP, "sink-remap"},
	{NDA_FEATURE_UNSAFE_PINNED, "unsafe-pinned"},
	{NDA_FEATURE_DOORBELL_VA, "doorbell-va"},
	{NDA_FEATURE_DOORBELL_DMABUF, "doorbell-dmabuf"}};

const struct {
	uint32_t part;
	const char *name;
} parts[] = {{NDA_PART_ASCEND, "ascend"}, {NDA_PART_SOFT, "soft"},
	{NDA_PART_PEERMEM, "peermem"}, {NDA_PART_PEERMEM_QUEUES, "peermem-queues"}};

const char *const told_variables[] = {"IBV_EXTEND_DRIVERS", "IBV_EXTEND_SHOW_WARNINGS",
	"LD_LIBRARY_PATH", "NDA_LOG", "NDA_MR_WAY", "NDA_ASCEND_PATH", "ASCEND_HOME_PATH",
	"ASCEND_RT_VISIBLE_DEVICES", "HCCL_RDMA_TC", "HCCL_RDMA_SL",
	"HCCL_HOST_RDMA_UDP_PORTS_LIST", "PTO_ROCE_LOCAL_IP"};

// The names of symbols are readable where their addresses are not. What a module that is
// not loaded exports is not known.
void find_symbols(const Machine &machine, bool core_loaded, Kernel &kernel)
{
	std::ifstream symbols(machine.root + "/proc/kallsyms");
	bool any = false, peer = false, dma_buf = false;
	for (std::string line; std::getline(symbols, line);) {
		any = true;
		peer = peer || line.find(" ib_register_peer_memory_client") != line.npos;
		dma_buf = dma_buf || line.find(" ib_umem_dmabuf_get") != line.npos;
	}
	if (!any || !core_loaded)
		return;
	kernel.peer_api = peer ? Answer::yes : Answer::no;
	kernel.dma_buf = dma_buf ? Answer::yes : Answer::no;
}

bool exists(const std::string &path)
{
	return access(path.c_str(), F_OK) == 0;
}

void find_container(const std::string &root, std::vector<std::string> &hints)
{
	for (const char *file : {"/.dockerenv", "/run/.containerenv"})
		if (exists(root + file))
			hints.push_back(std::string(file) + " is there");
	const std::string cgroup = read_text(root + "/proc/1/cgroup");
	for (const char *word : {"docker", "kubepods", "containerd", "libpod", "lxc"})
		if (cgroup.find(word) != std::string::npos) {
			hints.push_back(std::string("/proc/1/cgroup has \"") + word + "\"");
			break;
		}
	if (const char *kind = getenv("container"))
		hints.push_back(std::string("$container is \"") + kind + "\"");
}

// The line "CapEff:\t000001ffffffffff".
bool has_capability(const std::string &root, int capability)
{
	std::ifstream status(root + "/proc/self/status");
	for (std::string line; std::getline(status, line);)
		if (line.compare(0, 7, "CapEff:") == 0)
			return strtoull(line.c_str() + 7, nullptr, 16) >> capability & 1;
	return false;
}

// What capabilities are worth, then: those of another user namespace are not the kernel's.
// Without the file there is no such thing.
bool in_first_user_namespace(const std::string &root)
{
	std::ifstream map(root + "/proc/self/uid_map");
	uint64_t inside = 0, outside = 0, count = 0;
	if (!map)
		return true;
	return map >> inside >> outside >> count && inside == 0 && outside == 0 &&
		count == UINT32_MAX;
}

} // namespace

Kernel gather_kernel(const Machine &machine)
{
	Kernel kernel;
	utsname name;
	if (!uname(&name))
		kernel.release = name.release;
	bool core_loaded = false;
	for (const std::string &module : known_modules)
		if (exists(machine.root + "/sys/module/" + module)) {
			kernel.modules.push_back(module);
			kernel.module_loaded = kernel.module_loaded || module == "nda";
			core_loaded = core_loaded || module == "ib_uverbs";
		}
	find_symbols(machine, core_loaded, kernel);
	kernel.verbs_dma_buf = dlsym(RTLD_DEFAULT, "ibv_reg_dmabuf_mr") != nullptr;
	kernel.node = look_at_node(machine.root, nda::Kernel::path, R_OK | W_OK);

	const std::shared_ptr<nda::Kernel> client = nda::Kernel::open();
	kernel.usable = client->usable();
	kernel.code = client->code();
	kernel.why = client->why();
	for (const auto &[bit, text] : features)
		if (client->has(bit))
			kernel.features.push_back(text);
	if (kernel.usable)
		for (const auto &[number, text] : parts) {
			const nda::Kernel::Part part = client->part(number);
			kernel.parts.push_back({text, part.usable, part.why});
		}
	return kernel;
}

Process gather_process(const Machine &machine)
{
	Process process;
	rlimit limit;
	if (!getrlimit(RLIMIT_MEMLOCK, &limit)) {
		process.memlock_unlimited = limit.rlim_cur == RLIM_INFINITY;
		process.memlock_bytes = limit.rlim_cur;
	}
	process.memlock_ignored = has_capability(machine.root, CAP_IPC_LOCK) &&
		in_first_user_namespace(machine.root);
	process.uid = geteuid();
	find_container(machine.root, process.container);
	for (const char *variable : told_variables)
		if (const char *value = getenv(variable))
			process.environment.emplace_back(variable, value);
	return process;
}

} // namespace nda::info
