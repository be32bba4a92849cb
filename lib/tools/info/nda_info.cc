// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// nda-info: shows what is there, and what is wrong with it.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <unistd.h>

#include "lib/tools/info/checks.h"
#include "lib/tools/info/gather.h"
#include "lib/tools/info/options.h"
#include "lib/tools/info/report.h"

namespace nda::info {
namespace {

// A standard stream that is closed must not become a pipe to a child.
void fill_closed_streams()
{
	for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int print(const std::string &text, int status)
{
	fputs(text.c_str(), stdout);
	if (fflush(stdout) == 0)
		return status;
	fprintf(stderr, "nda-info: standard output: %s\n", strerror(errno));
	return exit_usage;
}

int show(const Options &o)
{
	Machine machine = this_machine();
	if (!o.root.empty()) {
		machine = {};
		machine.root = o.root;
	}
	const Facts facts = gather(machine, o.device);
	std::vector<Problem> problems;
	if (o.check)
		problems = check(facts, o.device, o.address);
	const int status = count_problems(problems) ? exit_problems : exit_ok;
	if (o.json)
		return print(
			json_text(facts, o.device, o.check ? &problems : nullptr), status);
	std::string text = facts_text(facts, o.device);
	if (o.check)
		text += "\n" + problems_text(problems);
	return print(text, status);
}

int run(int argc, char **argv)
{
	fill_closed_streams();
	const Parsed parsed = parse_options(argc, argv);
	if (parsed.run)
		return show(parsed.options);
	fputs(parsed.err.c_str(), stderr);
	return print(parsed.out, parsed.status);
}

} // namespace
} // namespace nda::info

int main(int argc, char **argv)
{
	try {
		return nda::info::run(argc, argv);
	} catch (const std::exception &e) {
		fprintf(stderr, "nda-info: %s\n", e.what());
		return nda::info::exit_usage;
	}
}
