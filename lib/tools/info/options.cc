// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/info/options.h"

#include <CLI/CLI.hpp>

namespace nda::info {

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
	app.add_option("--root", o.root)->group("");
	app.footer("Exit status: 0 all right, 1 --check found problems, 2 wrong usage or a "
		   "failure.\nNothing on the machine is changed. The manual page is "
		   "nda-info(1).");
	try {
		app.parse(argc, argv);
		if (*device && o.device.empty())
			throw CLI::ValidationError("--device", "'': must not be empty");
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
