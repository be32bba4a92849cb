// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/info/checks.h"

#include <algorithm>
#include <cassert>

#include "lib/tools/info/check_parts.h"

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

std::string joined(const std::vector<std::string> &words)
{
	std::string text;
	for (const std::string &word : words)
		text += (text.empty() ? "" : ", ") + word;
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

namespace {

void check_one_device(const Facts &facts, const std::string &name, Problems &out)
{
	const auto found = std::find_if(facts.devices.begin(), facts.devices.end(),
		[&](const VerbsDevice &device) { return device.name == name; });
	if (found == facts.devices.end())
		return device_absent(facts, name, out);
	check_device(facts, *found, true, out);
	if (found->listed == Answer::yes && !found->open_error && !found->extend.tried)
		check_libraries(facts, out);
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

std::vector<Problem> check(
	const Facts &facts, const std::string &device, const std::string &address)
{
	Problems out;
	if (device == "nda") {
		check_module(facts, true, out);
		check_parts(facts, out);
		return out;
	}
	if (!address.empty())
		check_wanted_address(facts, address, out);
	if (!device.empty()) {
		check_one_device(facts, device, out);
		return out;
	}
	if (facts.devices.empty())
		note(out, "no-verbs-device", "RDMA", "the kernel has no verbs device",
			"load the driver of the NIC; for Soft-RoCE, rdma link add rxe0 "
			"type rxe netdev NETDEV. The software NICs need none");
	for (const VerbsDevice &one : facts.devices)
		check_device(facts, one, false, out);
	check_search(facts, out);
	check_libraries(facts, out);
	check_npus(facts, out);
	check_module(facts, false, out);
	check_parts(facts, out);
	check_memory(facts, out);
	check_process(facts, out);
	return out;
}

unsigned count_problems(const std::vector<Problem> &problems)
{
	return unsigned(std::count_if(problems.begin(), problems.end(),
		[](const Problem &p) { return p.weight == Problem::Weight::problem; }));
}

} // namespace nda::info
