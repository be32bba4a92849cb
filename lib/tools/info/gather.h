// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Looks at the machine. Nothing is changed: what belongs to others (verbs drivers,
// extension drivers, the Ascend runtime) is loaded in processes of its own.
#ifndef NDA_INFO_GATHER_H
#define NDA_INFO_GATHER_H

#include <functional>
#include <string>
#include <vector>

#include "lib/tools/info/facts.h"

namespace nda::info {

// What is looked at; tests put in their own.
struct Machine {
	// Before /sys, /dev, /etc and /proc, and the directories of drivers.
	std::string root;
	// Fills in what libibverbs and the extension driver say of the device; null: nobody
	// is asked.
	std::function<void(VerbsDevice &)> ask_verbs;
	// The addresses of a network device; null: none.
	std::function<std::vector<std::string>(const std::string &net_device)> addresses;
};

// The one that this program runs on.
Machine this_machine();

// device: only what it takes to check that one, "" for everything; "nda": only /dev/nda.
Facts gather(const Machine &machine, const std::string &device);

// Its parts.
std::vector<VerbsDevice> gather_devices(const Machine &machine, const std::string &device);
std::vector<NetDevice> gather_net_devices(const Machine &machine);
Npus gather_npus(const Machine &machine);
// After NPUs and devices.
void gather_distances(const Npus &npus, std::vector<VerbsDevice> &devices);
Kernel gather_kernel(const Machine &machine);
Process gather_process(const Machine &machine);
Libraries gather_libraries(const Machine &machine);
// libraries: names the files beside libnda that it loads by itself.
Search gather_search(const Machine &machine, const Libraries &libraries);

// From the paths below /sys of two PCI devices, without /sys; see PciDistance.
PciDistance pci_distance(const std::string &a, const std::string &b);

// What libibverbs and ibv_open_extend say of a device, asked in a child.
void ask_verbs(VerbsDevice &device);

// Helpers.

// A file's text without the newline at its end; "" if it cannot be read.
std::string read_text(const std::string &path);
// Names in a directory, numbers in the order of numbers; none if it is not there.
std::vector<std::string> list(const std::string &directory);
// The path without links, or "".
std::string real_path(const std::string &path);
// Where the kernel has what the link leads to, without the root and /sys; "" if it is gone.
std::string system_path(const std::string &root, const std::string &link);
Node look_at_node(const std::string &root, const std::string &path, int access_mode);

} // namespace nda::info

#endif
