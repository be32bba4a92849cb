// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/options.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include <CLI/CLI.hpp>

namespace nda::perf {
namespace {

constexpr uint64_t default_time_us = 200000;
constexpr uint64_t longest_time_us = 30000000; // where only iterations were given
constexpr uint64_t max_bytes = uint64_t(1) << 30;
constexpr size_t max_sizes = 64;

bool parse_decimal(const std::string &text, uint64_t *value)
{
	uint64_t v = 0;
	if (text.empty())
		return false;
	for (char c : text) {
		if (c < '0' || c > '9')
			return false;
		if (__builtin_mul_overflow(v, 10, &v) ||
			__builtin_add_overflow(v, uint64_t(c - '0'), &v))
			return false;
	}
	*value = v;
	return true;
}

std::string range_text(uint64_t low, uint64_t high)
{
	return "must be " + std::to_string(low) + " to " + std::to_string(high);
}

[[noreturn]] void reject(
	const std::string &name, const std::string &text, const std::string &cause)
{
	throw CLI::ValidationError(name, "'" + text + "': " + cause);
}

using Parse = bool (*)(const std::string &text, uint64_t *value);

template <class T>
CLI::Option *add_number(CLI::App &app, const std::string &name, T &value, uint64_t low,
	uint64_t high, Parse parse, const std::string &help)
{
	auto set = [=, &value](const std::string &text) {
		uint64_t v;
		if (!parse(text, &v) || v < low || v > high)
			reject(name, text, range_text(low, high));
		value = T(v);
	};
	return app.add_option_function<std::string>(name, set, help)
		->type_name(parse == parse_size ? "BYTES" : "N");
}

bool power_of_two(uint64_t v)
{
	return v != 0 && (v & (v - 1)) == 0;
}

void parse_gid(Options &o, const std::string &text)
{
	uint64_t index;
	in6_addr address;
	o.gid_is_index = parse_decimal(text, &index);
	if (o.gid_is_index ? index > 255
			   : inet_pton(AF_INET, text.c_str(), &address) != 1 &&
				inet_pton(AF_INET6, text.c_str(), &address) != 1)
		reject("--gid", text, "must be an address of IPv4 or IPv6, or 0 to 255");
	o.gid = text;
}

void add_machines(CLI::App &app, Options &o)
{
	app.add_flag("--listen{0.0.0.0}", o.listen,
		"half of the PEs are here, the others come from another machine; "
		"--listen=ADDRESS listens there only");
	app.add_option("--connect", o.connect,
		   "half of the PEs are here, the others are where nda-perf listens")
		->type_name("HOST");
	add_number(app, "--port", o.port, 1, 65535, parse_decimal,
		"the TCP port where they meet; 18720 by default");
	app.add_option("--secret-file", o.secret_file,
		   "the secret of a job of two machines, a file of mode 0600; --listen "
		   "makes it if it does not exist")
		->type_name("FILE");
}

void parse_doorbell(Options &o, const std::string &text)
{
	if (text == "auto")
		o.doorbell = Doorbell::automatic;
	else if (text == "map")
		o.doorbell = Doorbell::map;
	else if (text == "proxy")
		o.doorbell = Doorbell::proxy;
	else if (text == "kernel")
		o.doorbell = Doorbell::kernel;
	else
		reject("--doorbell", text, "must be auto, map, proxy or kernel");
}

void add_common(CLI::App &app, Options &o)
{
	app.option_defaults()->take_last();
	app.add_option("--nic", o.nic,
		   "the NIC, e.g. rxe0, mlx5_0:2 or soft:udma; soft:hns1825 by default")
		->type_name("NAME");
	app.add_option_function<std::string>(
		   "--gid", [&o](const std::string &text) { parse_gid(o, text); },
		   "the NIC's GID, by its address or index")
		->type_name("ADDRESS");
	add_number(app, "--path-mtu", o.path_mtu_bytes, 256, 4096, parse_size,
		"most bytes of a packet, a power of two; by default what the ports can");
	add_machines(app, o);
	add_number(app, "--pes", o.pes, 2, 128, parse_decimal,
		"PEs, each a process with an NPU of its own; 2 by default");
	app.add_flag("--threads", o.threads, "PEs are threads of this process instead");
	add_number(app, "--cores", o.cores, 1, 48, parse_decimal,
		"cores of each PE, each with its own queues; 1 by default");
	add_number(app, "--window", o.window, 1, 65536, parse_decimal,
		"messages a core posts before it waits for all; 64 by default");
	add_number(app, "--batch", o.batch, 1, 32768, parse_decimal,
		"messages per doorbell; 1 by default");
	add_number(app, "--signal-every", o.signal_every, 1, 16384, parse_decimal,
		"ask for the completion of every N-th message; 1 by default");
	add_number(app, "--depth", o.depth, 64, 32768, parse_decimal,
		"messages a send queue holds, a power of two; 1024 by default");
	add_number(app, "--heap", o.heap_bytes, 65536, uint64_t(1) << 40, parse_size,
		"each PE's symmetric heap; by default what the job needs");
	app.add_option("--npu", o.npu,
		   "soft, the default, or soft:kernel, whose memory is module nda_soft's")
		->check(CLI::IsMember({"soft", "soft:kernel"}))
		->type_name("NPU");
	app.add_flag("--strict", o.strict, "fault on any access of the host to NPU memory");
	app.add_flag(
		"--no-assist", o.no_assist, "waiting cores don't run the NIC's engine");
	app.add_option_function<std::string>(
		   "--doorbell", [&o](const std::string &text) { parse_doorbell(o, text); },
		   "cores ring themselves (map), or the host for them (proxy); by default "
		   "proxy where map is not supported (auto)")
		->type_name("WAY");
	app.add_option("--inject", o.inject,
		   "faults for a software NIC to make, e.g. remote-access-error:1000")
		->type_name("TEXT");
	app.add_option("--events", o.events,
		   "a file to which a software NIC appends a line of JSON for each request "
		   "and completion")
		->type_name("FILE");
	add_number(app, "--timeout-ms", o.timeout_ms, 1, 3600000, parse_decimal,
		"limit of each wait for a message or a PE; 10000 by default");
	app.add_flag("--json", o.json, "print one JSON document");
	app.add_flag("-q,--quiet", o.quiet, "no progress line");
}

// Also the empty parts.
std::vector<std::string> split(const std::string &text, char at)
{
	std::vector<std::string> parts(1);
	for (char c : text) {
		if (c == at)
			parts.emplace_back();
		else
			parts.back() += c;
	}
	return parts;
}

void parse_sizes(Options &o, const std::string &text)
{
	std::vector<uint64_t> sizes;
	for (const std::string &part : split(text, ',')) {
		uint64_t v;
		if (!parse_size(part, &v) || v < 1 || v > max_bytes)
			reject("--sizes", part, "must be a size from 1 to 1G");
		sizes.push_back(v);
	}
	if (sizes.size() > max_sizes)
		reject("--sizes", text,
			"must be at most " + std::to_string(max_sizes) + " sizes");
	o.sizes = sizes;
}

void add_sizes(CLI::App &app, Options &o)
{
	app.add_option_function<std::string>(
		   "--sizes", [&o](const std::string &text) { parse_sizes(o, text); },
		   "message sizes, e.g. 8,4096,1M; 8 to 1M by default")
		->type_name("BYTES,...");
}

void add_messages(CLI::App &app, Options &o)
{
	add_sizes(app, o);
	app.add_flag("--one-way", o.one_way,
		"only PE 0 posts, and PE 1 is its target; for 2 PEs");
	add_number(app, "--queues", o.queues, 1, 32, parse_decimal,
		"queues of each core to a PE, which take turns; 1 by default");
}

void parse_atomics(Options &o, const std::string &text)
{
	const std::vector<Atomic> all = Options().atomics;
	if (o.all_atomics = text == "all"; o.all_atomics) {
		o.atomics = all;
		return;
	}
	o.atomics.clear();
	for (const std::string &part : split(text, ',')) {
		const auto it = std::find_if(all.begin(), all.end(),
			[&](Atomic a) { return part == atomic_name(a); });
		if (it == all.end())
			reject("--op", part,
				"must be fetch-add, compare-swap, add, swap, set, "
				"fetch-and, fetch-or, fetch-xor or all");
		o.atomics.push_back(*it);
	}
}

void add_atomics(CLI::App &app, Options &o)
{
	app.add_option_function<std::string>(
		   "--op", [&o](const std::string &text) { parse_atomics(o, text); },
		   "what to measure, of fetch-add, compare-swap, add, swap, set, "
		   "fetch-and, fetch-or and fetch-xor; by default all, those of them that "
		   "the NIC has")
		->type_name("NAME,...");
	add_number(app, "--bytes", o.atomic_bytes, 4, 8, parse_decimal,
		"bytes of a counter, 4 or 8; 8 by default");
}

void add_measuring(CLI::App &app, Options &o)
{
	add_number(app, "--iterations", o.iterations, 1, uint64_t(1) << 40, parse_decimal,
		"messages of a core in each measurement");
	auto set_time = [&o](const std::string &text) {
		uint64_t us;
		if (!parse_seconds(text, &us) || us < 1000 || us > 3600000000)
			reject("--seconds", text, "must be 0.001 to 3600");
		o.time_limit_us = us;
	};
	app.add_option_function<std::string>("--seconds", set_time,
		   "time of each measurement; 0.2 by default, 30 with --iterations")
		->type_name("S");
	add_number(app, "--warmup", o.warmup, 0, uint64_t(1) << 40, parse_decimal,
		"messages of a core before each measurement, for at most its time");
	app.add_flag("--verify", o.verify,
		"the target checks its memory, and extra messages with fresh data");
}

void check_files(const Options &o)
{
	if (o.op == Op::copy && !o.connect.empty()) {
		if (!o.files.empty())
			reject("copy", o.files[0],
				"with --connect, files are the other side's");
		return;
	}
	if (o.op == Op::copy && o.files.empty())
		throw CLI::ParseError("copy: at least one FILE is required", exit_usage);
	if (o.op != Op::copy && !o.files.empty())
		reject(op_name(o.op), o.files[0], "takes no files");
}

void check_machines(const Options &o)
{
	if (!o.listen.empty() && !o.connect.empty())
		reject("--connect", o.connect, "excludes --listen");
	if (o.one_machine()) {
		if (!o.secret_file.empty())
			reject("--secret-file", o.secret_file,
				"needs --listen or --connect");
		return;
	}
	if (o.secret_file.empty())
		throw CLI::ParseError(
			"--listen and --connect need a --secret-file", exit_usage);
	if (o.threads)
		throw CLI::ParseError(
			"--threads: PEs of two machines are no threads of one process",
			exit_usage);
	if (o.pes % 2 != 0)
		reject("--pes", std::to_string(o.pes),
			"must be even, half on each machine");
}

constexpr uint32_t threads_pes_max = 16; // NPUs of a process

void check_together(const Options &o)
{
	check_machines(o);
	if (o.path_mtu_bytes && !power_of_two(o.path_mtu_bytes))
		reject("--path-mtu", std::to_string(o.path_mtu_bytes),
			"must be a power of two");
	if (!power_of_two(o.depth))
		reject("--depth", std::to_string(o.depth), "must be a power of two");
	if (o.threads && o.pes > threads_pes_max)
		reject("--pes", std::to_string(o.pes), "must be at most 16 with --threads");
	if (o.one_way && o.pes != 2)
		reject("--pes", std::to_string(o.pes), "must be 2 with --one-way");
	if ((o.op == Op::atomic || o.op == Op::signal || o.op == Op::barrier) &&
		o.batch != 1)
		reject("--batch", std::to_string(o.batch),
			"must be 1: each " + std::string(op_name(o.op)) +
				" has a doorbell of its own");
	if (o.op == Op::barrier && o.cores != 1)
		reject("--cores", std::to_string(o.cores),
			"must be 1: one core of each PE takes part in a barrier");
	if (o.atomic_bytes != 4 && o.atomic_bytes != 8)
		reject("--bytes", std::to_string(o.atomic_bytes), "must be 4 or 8");
	if (o.signal_every > o.depth / 2)
		reject("--signal-every", std::to_string(o.signal_every),
			"must be at most half of --depth, " + std::to_string(o.depth / 2));
	if ((o.job_pe < 0) != (o.job_fd < 0) || o.job_pe >= int(o.pes))
		reject("--job-pe", std::to_string(o.job_pe), "is for nda-perf's own use");
}

void set_time_limit(Options &o)
{
	if (o.time_limit_us == 0)
		o.time_limit_us = o.iterations == 0 ? default_time_us : longest_time_us;
}

// The options that every command has may also stand before the command.
void add_before_command(CLI::App &app, Options &o)
{
	add_common(app, o);
	for (CLI::Option *option :
		app.get_options([](const CLI::Option *) { return true; }))
		if (option->get_name() != "--help" && option->get_name() != "--version")
			option->group("");
	app.add_option("--job-pe", o.job_pe)->group("");
	app.add_option("--job-fd", o.job_fd)->group("");
}

} // namespace

// FNV-1a, of the values as text.
uint64_t Options::fingerprint() const
{
	std::string text;
	const auto add = [&](uint64_t v) { text += std::to_string(v) + ","; };
	for (uint64_t v : {uint64_t(op), uint64_t(pes), uint64_t(cores), uint64_t(window),
		     uint64_t(batch), uint64_t(signal_every), uint64_t(depth), heap_bytes,
		     iterations, time_limit_us, uint64_t(warmup), uint64_t(verify),
		     chunk_bytes, uint64_t(timeout_ms), uint64_t(one_way), uint64_t(queues),
		     uint64_t(all_atomics), uint64_t(atomic_bytes)})
		add(v);
	for (uint64_t size : sizes)
		add(size);
	for (Atomic atomic : atomics)
		add(uint64_t(atomic));
	uint64_t hash = 0xcbf29ce484222325;
	for (char c : text)
		hash = (hash ^ uint8_t(c)) * 0x100000001b3;
	return hash;
}

const char *op_name(Op op)
{
	switch (op) {
	case Op::put:
		return "put";
	case Op::get:
		return "get";
	case Op::copy:
		return "copy";
	case Op::atomic:
		return "atomic";
	case Op::signal:
		return "signal";
	case Op::barrier:
		return "barrier";
	}
	return "";
}

const char *atomic_name(Atomic atomic)
{
	switch (atomic) {
	case Atomic::fetch_add:
		return "fetch-add";
	case Atomic::compare_swap:
		return "compare-swap";
	case Atomic::add:
		return "add";
	case Atomic::swap:
		return "swap";
	case Atomic::set:
		return "set";
	case Atomic::fetch_and:
		return "fetch-and";
	case Atomic::fetch_or:
		return "fetch-or";
	case Atomic::fetch_xor:
		return "fetch-xor";
	}
	return "";
}

const char *barrier_name(Barrier barrier)
{
	return barrier == Barrier::barrier_all ? "barrier-all" : "sync-all";
}

bool parse_size(const std::string &text, uint64_t *bytes)
{
	if (text.empty())
		return false;
	unsigned shift = 0;
	switch (text.back()) {
	case 'k':
	case 'K':
		shift = 10;
		break;
	case 'm':
	case 'M':
		shift = 20;
		break;
	case 'g':
	case 'G':
		shift = 30;
		break;
	}
	uint64_t v;
	if (!parse_decimal(shift ? text.substr(0, text.size() - 1) : text, &v))
		return false;
	if (v > std::numeric_limits<uint64_t>::max() >> shift)
		return false;
	*bytes = v << shift;
	return true;
}

bool parse_seconds(const std::string &text, uint64_t *us)
{
	size_t dot = text.find('.');
	std::string fraction = dot == std::string::npos ? "0" : text.substr(dot + 1);
	uint64_t whole;
	uint64_t part;
	if (fraction.empty() || fraction.size() > 6 ||
		!parse_decimal(text.substr(0, dot), &whole) ||
		!parse_decimal(fraction + std::string(6 - fraction.size(), '0'), &part))
		return false;
	if (__builtin_mul_overflow(whole, 1000000, &whole) ||
		__builtin_add_overflow(whole, part, &whole))
		return false;
	*us = whole;
	return true;
}

Parsed parse_options(int argc, const char *const *argv)
{
	Parsed parsed;
	Options &o = parsed.options;
	CLI::App app("Moves data between the memories of NPUs, driven by their own cores, "
		     "and measures it.",
		"nda-perf");
	app.set_version_flag("--version", "nda-perf " NDA_VERSION);
	app.require_subcommand(0, 1);
	add_before_command(app, o);
	CLI::App *put = app.add_subcommand("put", "each PE writes to the next PE's memory");
	CLI::App *get =
		app.add_subcommand("get", "each PE reads from the next PE's memory");
	CLI::App *signal = app.add_subcommand("signal",
		"pairs of PEs write to each other in turn, each message with a signal");
	CLI::App *atomic = app.add_subcommand(
		"atomic", "each PE counts in the memories of all others");
	CLI::App *barrier = app.add_subcommand(
		"barrier", "all PEs wait for each other, again and again");
	CLI::App *copy = app.add_subcommand(
		"copy", "files from PE 0's memory to every PE's, proved by SHA-256");
	for (CLI::App *command : {put, get, signal, atomic, barrier}) {
		add_common(*command, o);
		add_measuring(*command, o);
	}
	add_messages(*put, o);
	add_messages(*get, o);
	add_sizes(*signal, o);
	add_atomics(*atomic, o);
	add_common(*copy, o);
	add_number(*copy, "--chunk", o.chunk_bytes, 1, max_bytes, parse_size,
		"bytes of a message; 256K by default");
	copy->add_option("FILE", o.files, "files to copy")->take_all();
	app.footer("Exit status: 0 all right, 1 a failure, 2 wrong usage, 3 no such NIC.\n"
		   "nda-perf COMMAND --help lists a command's options.");
	// What follows "--" are files, even if they look like options.
	const char *const *end = std::find_if(argv + std::min(argc, 1), argv + argc,
		[](const char *w) { return !strcmp(w, "--"); });
	try {
		app.parse(int(end - argv), argv);
		if (app.get_subcommands().empty())
			throw CLI::ParseError(
				"a command is required: put, get, signal, atomic, barrier "
				"or copy",
				exit_usage);
		o.op = *put        ? Op::put
			: *get     ? Op::get
			: *signal  ? Op::signal
			: *atomic  ? Op::atomic
			: *barrier ? Op::barrier
				   : Op::copy;
		if (end != argv + argc)
			o.files.insert(o.files.end(), end + 1, argv + argc);
		check_files(o);
		check_together(o);
		set_time_limit(o);
		parsed.run = true;
	} catch (const CLI::CallForHelp &) {
		parsed.out = app.help();
	} catch (const CLI::CallForVersion &e) {
		parsed.out = std::string(e.what()) + "\n";
	} catch (const CLI::ParseError &e) {
		parsed.status = exit_usage;
		parsed.err = "nda-perf: " + std::string(e.what()) +
			"\nTry 'nda-perf --help' for more information.\n";
	}
	return parsed;
}

} // namespace nda::perf
