// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/info/options.h"

#include <CLI/CLI.hpp>

#include "lib/nda/gid.h"

namespace nda::info {
namespace {

void check_address(const std::string &text)
{
	ibv_gid gid;
	if (!text.empty() && !parse_gid(text.c_str(), gid))
		throw CLI::ValidationError(
			"--address", "'" + text + "': is no IPv4 or IPv6 address");
}

} // namespace

Parsed parse_options(int argc, const char *const *argv)
{
	Parsed parsed;
	Options &o = parsed.options;
	CLI::App app("Shows NPUs, verbs devices, extension drivers and kernel modules, and "
		     "what is wrong with them.",
		"nda-info");
	app.set_version_flag("--version", "nda-info " NDA_VERSION);
	app.add_flag("--json", o.json, "print one JSON document");
	app.add_flag("--check", o.check, "end with a list of problems, and what to do");
	CLI::Option *device = app.add_option("--device", o.device,
		"only this verbs device, or \"nda\", the kernel module");
	device->type_name("NAME");
	CLI::Option *address = app.add_option("--address", o.address,
		"check that a GID stands for this IP address; implies --check");
	address->type_name("IP");
	app.add_option("--root", o.root)->group("");
	app.footer("Exit status: 0 all right, 1 --check found problems, 2 wrong usage or a "
		   "failure.\nNothing on the machine is changed. The manual page is "
		   "nda-info(1).");
	try {
		app.parse(argc, argv);
		if (*device && o.device.empty())
			throw CLI::ValidationError("--device", "'': must not be empty");
		check_address(o.address);
		if (*address && o.device == "nda")
			throw CLI::ValidationError(
				"--address", "has no meaning with --device nda");
		o.check = o.check || *address;
		parsed.run = true;
	} catch (const CLI::CallForHelp &) {
		parsed.out = app.help();
	} catch (const CLI::CallForVersion &e) {
		parsed.out = std::string(e.what()) + "\n";
	} catch (const CLI::ParseError &e) {
		parsed.status = exit_usage;
		parsed.err = "nda-info: " + std::string(e.what()) +
			"\nTry 'nda-info --help' for more information.\n";
	}
	return parsed;
}

} // namespace nda::info
