// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What nda-info finds: plain values, so that checks and printing need no machine.
#ifndef NDA_INFO_FACTS_H
#define NDA_INFO_FACTS_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace nda::info {

// What is not known is no answer.
enum class Answer {
	unknown,
	no,
	yes
};

// A device node, or a configuration file.
struct Node {
	std::string path;
	bool exists = false;
	bool allowed = false; // this process may read it, a device node also write
	std::string mode;     // "root:rdma 0660"
};

// ---- Verbs devices ---------------------------------------------------------------------

struct Gid {
	uint32_t index = 0;
	std::string gid;     // as the kernel writes it
	std::string address; // in the usual form, IPv4 dotted
	std::string type;    // "RoCEv2", "RoCEv1", "IB"
	std::string net_device;
	bool link_local = false;
};

struct Port {
	uint32_t number = 0;
	std::string link_layer;        // "Ethernet", "InfiniBand"
	std::string state;             // "ACTIVE", "DOWN", ...
	std::string physical_state;    // "LinkUp", "Disabled", ...
	uint32_t active_mtu_bytes = 0; // 0: not known, the device could not be opened
	std::vector<std::string> net_devices; // of its GIDs, or of the device
	std::vector<Gid> gids;
};

// How far an NPU is.
struct PciDistance {
	enum class Kind {
		switched, // below one bridge or switch
		host,     // they meet in a host bridge
		far,      // they have different host bridges
	};
	std::string npu; // its PCI address
	Kind kind = Kind::far;
	uint32_t links = 0; // switched: PCI links between them
	bool same_numa = false;
};

// What ibv_open_extend said, in a process made for the question.
struct ExtendOpen {
	bool tried = false;
	bool opened = false;
	int error = 0;    // positive errno if it gave NULL
	std::string said; // what the library printed, or how the process ended
	bool crashed = false;
	int driver_version = 0;    // of its table of functions
	uint32_t capabilities = 0; // IBV_EXTEND_DEV_*
};

struct VerbsDevice {
	std::string name;
	std::string node_type;     // "CA", "RNIC", ...
	std::string kernel_driver; // "mlx5_core"; of Soft-RoCE "rdma_rxe"
	std::string location;      // PCI address, "" if it has none
	std::string system_path;   // below /sys, of the device that it is part of
	int numa_node = -1;
	Node uverbs;                     // path "" if the kernel made none
	Answer listed = Answer::unknown; // by libibverbs
	std::string verbs_driver;        // the name that extension drivers go by
	int open_error = 0;              // positive errno of ibv_open_device
	std::string said;     // what libibverbs printed, or how its process ended
	bool crashed = false; // that process
	ExtendOpen extend;
	std::vector<Port> ports;
	std::vector<PciDistance> distances;
};

struct NetDevice {
	std::string name;
	uint32_t mtu = 0;
	std::string state; // "up", "down", ...
	std::vector<std::string> addresses;
};

// ---- Extension drivers -----------------------------------------------------------------

struct ElfFile {
	std::string path;
	bool exists = false;
	int error = 0; // positive errno of reading it
	bool is_library = false;
	std::string machine; // "x86-64, 64 bits"
	bool fits = false;   // this program's machine
};

// A thing that the search looked at; see lib/ibv_extend/search.h.
struct Step {
	std::string kind;
	std::string outcome;
	std::string source;
	unsigned position = 0;
	std::string name;
	std::string path;
	int error = 0;
	std::string text;
	bool problem = false;
};

struct Driver {
	enum class Result {
		loaded,
		failed,  // the dynamic loader said no
		crashed, // the process that loaded it
		hung,
	};
	std::string source; // a file, the environment variable, "libnda"
	unsigned position = 0;
	std::string name; // as written there
	Result result = Result::failed;
	std::string path;      // what was loaded
	std::string real_path; // likewise, as its file is called without links; or empty
	std::string text; // why it was not: the dynamic loader, or how the process ended
	std::vector<Step> candidates;
	std::vector<std::string> registered; // verbs drivers' names
	ElfFile file;                        // the first that is there
	std::vector<std::string> similar;    // files that might be meant
	bool built_in() const { return source == "libnda"; }
};

struct Search {
	std::string config_directory;
	bool config_exists = false;
	bool environment_set = false;
	std::vector<Step> steps; // all but those of drivers
	std::vector<Driver> drivers;
	std::string verbs_abi; // of libibverbs to its drivers: "34"
};

// A library as the dynamic loader finds it for a program without a run path.
struct Library {
	std::string wanted; // "libibv_extend.so.4"
	std::string path;   // "" if it is not found
	std::string file;   // path without links
	std::string error;  // the dynamic loader's words
	std::string version;
	std::string maker; // "nda", "Ascend driver package", "other"
};

struct Libraries {
	Library soname;      // libibv_extend.so.4
	Library unversioned; // libibv_extend.so
	Library nda;         // libnda.so.1
	// Files of libibv_extend elsewhere, which a library path would choose.
	std::vector<Library> others;
};

// ---- NPUs ------------------------------------------------------------------------------

struct PciNpu {
	std::string location;
	std::string system_path;
	std::string device_id;
	std::string kernel_driver;
	int numa_node = -1;
};

struct Npus {
	std::vector<PciNpu> pci;
	std::vector<Node> davinci;  // one for each NPU
	std::vector<Node> services; // davinci_manager and what else a program opens
	bool runtime_tried = false;
	bool runtime_loads = false;
	std::string runtime_text;
	bool translates_ids = false; // the runtime has the function for it
	bool visible_set = false;
	std::string visible; // ASCEND_RT_VISIBLE_DEVICES
	bool soft_usable = false;
	std::string soft_text;
	Node hccn_conf;
	uint32_t hccn_addresses = 0; // lines that give an NPU's port an address
	bool any_ascend() const { return !davinci.empty() || !pci.empty(); }
};

// ---- Kernel and process ----------------------------------------------------------------

struct KernelPart {
	std::string name;
	bool usable = false;
	std::string why;
};

struct Kernel {
	std::string release;
	Node node; // /dev/nda
	bool module_loaded = false;
	bool usable = false;
	int code = 0; // negative errno
	std::string why;
	std::vector<std::string> features;
	std::vector<KernelPart> parts;
	std::vector<std::string> modules; // loaded ones that matter here
	Answer peer_api = Answer::unknown;
	Answer dma_buf = Answer::unknown; // the RDMA core can register one
	bool verbs_dma_buf = false;       // libibverbs can
};

struct Process {
	bool memlock_unlimited = false;
	uint64_t memlock_bytes = 0;
	bool memlock_ignored = false; // CAP_IPC_LOCK
	uint32_t uid = 0;
	std::vector<std::string> container; // hints; empty: none
	std::vector<std::pair<std::string, std::string>> environment;
};

struct Facts {
	Npus npus;
	std::vector<VerbsDevice> devices;
	std::vector<NetDevice> net_devices;
	Search search;
	Libraries libraries;
	Kernel kernel;
	Process process;
};

} // namespace nda::info

#endif
