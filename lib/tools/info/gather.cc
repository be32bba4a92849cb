// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/info/gather.h"

namespace nda::info {
namespace {

// The software NPU is a driver that comes with libnda.
void take_soft(const Facts &facts, Npus &npus)
{
	npus.soft_text = facts.libraries.nda.path.empty() ? facts.libraries.nda.error : "";
	for (const Driver &driver : facts.search.drivers) {
		if (!driver.built_in() ||
			driver.name.find("libnda_soft.so") == std::string::npos)
			continue;
		npus.soft_usable = driver.result == Driver::Result::loaded;
		npus.soft_text = npus.soft_usable ? driver.path : driver.text;
	}
}

} // namespace

Facts gather(const Machine &machine, const std::string &device)
{
	Facts facts;
	facts.kernel = gather_kernel(machine);
	facts.process = gather_process(machine);
	facts.npus = gather_npus(machine);
	if (device == "nda")
		return facts;
	facts.devices = gather_devices(machine, device);
	gather_distances(facts.npus, facts.devices);
	facts.net_devices = gather_net_devices(machine);
	facts.libraries = gather_libraries(machine);
	facts.search = gather_search(machine, facts.libraries);
	take_soft(facts, facts.npus);
	return facts;
}

} // namespace nda::info
