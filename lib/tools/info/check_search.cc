// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Extension drivers: why one is not found.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lib/tools/info/check_parts.h"

namespace nda::info {
namespace {

// Of "libx.so.5: cannot open shared object file: ..." the file.
std::string not_opened(const std::string &text)
{
	const size_t end = text.find(": cannot open shared object file");
	if (end == std::string::npos)
		return {};
	const size_t begin = text.rfind(' ', end);
	return text.substr(begin == std::string::npos ? 0 : begin + 1,
		end - (begin == std::string::npos ? 0 : begin + 1));
}

// "34" of "...version `IBVERBS_PRIVATE_34' not found".
std::string private_abi(const std::string &text)
{
	constexpr char word[] = "IBVERBS_PRIVATE_";
	const size_t at = text.find(word);
	if (at == std::string::npos)
		return {};
	const size_t begin = at + sizeof(word) - 1;
	return text.substr(begin, text.find_first_not_of("0123456789", begin) - begin);
}

void driver_not_found(const Driver &driver, Problems &out)
{
	problem(out, "driver-missing", place(driver),
		"there is no such file" +
			(driver.similar.empty() ? "" : ", but " + joined(driver.similar)),
		driver.built_in() ? "install the package of this file"
			: driver.similar.empty()
			? "install the driver's package, or take the line away; a name "
			  "NAME stands for libNAME.so in /usr/local/lib64, /usr/lib64, "
			  "/usr/local/lib, /usr/lib, or where the dynamic loader looks"
			: "name the one that is there, or have its maker's package for "
			  "this release of libibverbs");
}

void driver_failed(const Facts &facts, const Driver &driver, Problems &out)
{
	const std::string &text = driver.text;
	const std::string missing = not_opened(text);
	const bool itself = missing == driver.name || missing == driver.file.path ||
		missing == "lib" + driver.name + ".so";
	if (!driver.file.exists && (missing.empty() || itself))
		return driver_not_found(driver, out);
	const ElfFile &file = driver.file;
	if (file.exists && (file.error == EACCES || file.error == EPERM))
		return problem(out, "driver-permission", place(driver),
			file.path + ": " + strerror(file.error),
			"let everybody read it, and enter its directories (mode 0755)");
	if (file.exists && file.machine.empty())
		return problem(out, "driver-not-library", place(driver),
			file.path + " is no ELF file",
			"name the shared library itself; install its package again");
	if (file.exists && !file.fits)
		return problem(out, "driver-machine", place(driver),
			file.path + " is for " + file.machine +
				(text.empty() ? "" : " (the dynamic loader: " + text + ")"),
			"install the driver for this machine");
	if (file.exists && !file.is_library)
		return problem(out, "driver-not-library", place(driver),
			file.path + " is an ELF file, but no shared library",
			"name the shared library itself");
	if (const std::string abi = private_abi(text); !abi.empty())
		return problem(out, "driver-abi", place(driver),
			"it is built for the private interface " + abi +
				" of libibverbs, installed is " +
				(facts.search.verbs_abi.empty() ? "another"
								: facts.search.verbs_abi) +
				": " + text,
			"have its maker's package for this release of rdma-core");
	if (starts_with(missing, "libibv_extend.so."))
		return problem(out, "driver-abi", place(driver),
			"it needs " + missing +
				", and this is libibv_extend.so.4, or none: " + text,
			"have its maker's driver for libibv_extend 4; see library-missing "
			"if there is none");
	if (!missing.empty() && !itself)
		return problem(out, "driver-dependency", place(driver),
			"a library that it needs is not found: " + text,
			"install " + missing +
				", or add its directory to /etc/ld.so.conf.d and run "
				"ldconfig");
	if (text.find("undefined symbol") != std::string::npos)
		return problem(out, "driver-symbol", place(driver), text,
			"it is built for other releases of the libraries that it uses; "
			"have its maker's package for this one");
	problem(out, "driver-load", place(driver), text, "ask its maker");
}

bool same_file(const Driver &a, const Driver &b)
{
	return a.path == b.path || (!a.real_path.empty() && a.real_path == b.real_path);
}

// The library takes the first one.
void check_names(const Facts &facts, Problems &out)
{
	const std::vector<Driver> &drivers = facts.search.drivers;
	for (size_t i = 0; i < drivers.size(); i++)
		for (const std::string &name : drivers[i].registered)
			for (size_t j = 0; j < i; j++)
				if (!drivers[i].built_in() &&
					!same_file(drivers[i], drivers[j]) &&
					contains(drivers[j].registered, name)) {
					problem(out, "driver-name-twice", place(drivers[i]),
						drivers[i].path + " and " +
							drivers[j].path +
							" both register \"" + name +
							"\"; the latter is taken, since it "
							"is named first (" +
							place(drivers[j]) + ")",
						"take one of them away");
					break;
				}
}

void check_unused(const Facts &facts, Problems &out)
{
	for (const Driver &driver : facts.search.drivers)
		for (const std::string &name : driver.registered) {
			const bool used = std::any_of(facts.devices.begin(),
				facts.devices.end(), [&](const VerbsDevice &device) {
					return device.verbs_driver == name;
				});
			if (!used && !driver.built_in())
				note(out, "driver-without-device", place(driver),
					"no verbs device has the verbs driver \"" + name +
						"\"",
					"nothing, unless it is meant for one of the "
					"devices here: then the names do not match, see "
					"device-no-driver");
		}
}

} // namespace

void check_driver(const Facts &facts, const Driver &driver, Problems &out)
{
	switch (driver.result) {
	case Driver::Result::crashed:
		return problem(out, "driver-crashed", place(driver),
			"the process that loaded it " + driver.text,
			"take it out of the configuration, since every program that looks "
			"for a driver would crash, and report it to its maker");
	case Driver::Result::hung:
		return problem(out, "driver-hung", place(driver),
			"the process that loaded it " + driver.text,
			"take it out of the configuration, since every program that looks "
			"for a driver would wait, and report it to its maker");
	case Driver::Result::failed:
		return driver_failed(facts, driver, out);
	case Driver::Result::loaded:
		break;
	}
	if (driver.registered.empty())
		problem(out, "driver-silent", place(driver),
			driver.path +
				" was loaded, but registered no driver that has a name and "
				"alloc_context",
			"it is no extension driver; name one");
}

void check_config(const Facts &facts, Problems &out)
{
	for (const Step &step : facts.search.steps) {
		if (!step.problem)
			continue;
		std::string subject = step.source;
		if (step.position)
			subject += ":" + std::to_string(step.position);
		if (step.kind == "line")
			problem(out, "config-line", subject,
				(step.name.empty() ? "" : step.name + " ") + step.text,
				"a line is \"driver NAME\", or \"driver /PATH\"; in the "
				"variable entries are parted by ':' or ';'");
		else
			problem(out, "config-refused", subject, step.text,
				"files and their directory must be readable, belong to "
				"root or the user, and nobody else may write to them (mode "
				"0644, 0755)");
	}
	const bool wanted = std::any_of(
		facts.devices.begin(), facts.devices.end(), [&](const VerbsDevice &device) {
			return !device.extend.opened && !device.verbs_driver.empty() &&
				!serving(facts, device.verbs_driver, false) &&
				!serving(facts, device.verbs_driver, true);
		});
	if (facts.search.config_exists || facts.search.environment_set)
		return;
	const bool counts = in_container(facts) && wanted;
	add(out, "config-absent", counts ? Problem::Weight::problem : Problem::Weight::note,
		facts.search.config_directory,
		"it is not there, and IBV_EXTEND_DRIVERS is not set: no extension driver "
		"is looked for",
		in_container(facts)
			? "install the driver's package in the container's image, or mount "
			  "the directory and the driver from the host"
			: "nothing, as long as libnda's own drivers are enough; the "
			  "package of a NIC's extension driver puts its file there");
}

void check_search(const Facts &facts, Problems &out)
{
	check_config(facts, out);
	for (const Driver &driver : facts.search.drivers)
		check_driver(facts, driver, out);
	check_names(facts, out);
	check_unused(facts, out);
}

} // namespace nda::info
