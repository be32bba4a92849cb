// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/report.h"

#include <sys/wait.h>

#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstring>

#include <nlohmann/json.hpp>

namespace nda::perf {

using nlohmann::json;

namespace {

std::string decimal(double value, int digits)
{
	char text[64];
	snprintf(text, sizeof(text), "%.*f", digits, value);
	return text;
}

// Three significant digits.
std::string scaled(double value, const char *prefix, const char *unit)
{
	int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
	return decimal(value, digits) + " " + prefix + unit;
}

// A file name may hold anything; the terminal gets no control characters.
std::string printable(const std::string &text)
{
	std::string out;
	for (char c : text) {
		if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) {
			out += c;
			continue;
		}
		char hex[8];
		snprintf(hex, sizeof(hex), "\\x%02x", static_cast<unsigned char>(c));
		out += hex;
	}
	return out;
}

const char *yes_no(const std::optional<bool> &value)
{
	return !value ? "-" : *value ? "yes" : "NO";
}

std::string head_text(const Row &row)
{
	std::string text = row.op + " " + row.nic + ": " + std::to_string(row.pes) +
		" PEs (" + (row.threads ? "threads" : "processes") + "), " +
		std::to_string(row.cores) + (row.cores == 1 ? " core" : " cores") +
		" each, window " + std::to_string(row.window) + ", batch " +
		std::to_string(row.batch) + ", " + std::to_string(row.queues) +
		(row.queues == 1 ? " queue" : " queues");
	if (row.one_way)
		text += ", one way";
	if (row.doorbell == "proxy")
		text += ", doorbells by proxy";
	if (row.doorbell == "kernel")
		text += ", doorbells by the kernel";
	if (row.signal_every != 1)
		text += ", a completion every " + std::to_string(row.signal_every);
	return text;
}

void print_measured(FILE *out, const Row &row, bool head)
{
	if (head) {
		fprintf(out, "%s\n", head_text(row).c_str());
		fprintf(out, "%9s  %12s  %12s  %9s  %9s  %9s  %8s\n", "size", "messages",
			"bandwidth", "p50", "p99", "of memcpy", "verified");
	}
	std::string ratio = row.memcpy_ratio ? decimal(*row.memcpy_ratio, 2) : "-";
	fprintf(out, "%9s  %12s  %12s  %9s  %9s  %9s  %8s\n",
		size_text(row.size_bytes).c_str(),
		rate_text(row.messages_per_s, "/s").c_str(),
		rate_text(row.bytes_per_s, "B/s").c_str(),
		time_text(row.latency_p50_ns).c_str(),
		time_text(row.latency_p99_ns).c_str(), ratio.c_str(), yes_no(row.verified));
}

void print_atomic(FILE *out, const Row &row, bool head)
{
	if (head) {
		fprintf(out, "%s\n", head_text(row).c_str());
		fprintf(out, "%12s  %9s  %12s  %9s  %9s  %9s  %8s\n", "operation", "size",
			"messages", "changed", "p50", "p99", "verified");
	}
	std::string changed = row.changes
		? decimal(100 * double(*row.changes) / double(row.messages), 1) + " %"
		: "-";
	fprintf(out, "%12s  %9s  %12s  %9s  %9s  %9s  %8s\n", row.atomic.c_str(),
		size_text(row.size_bytes).c_str(),
		rate_text(row.messages_per_s, "/s").c_str(), changed.c_str(),
		time_text(row.latency_p50_ns).c_str(),
		time_text(row.latency_p99_ns).c_str(), yes_no(row.verified));
}

void print_barrier(FILE *out, const Row &row, bool head)
{
	if (head) {
		fprintf(out, "%s\n", head_text(row).c_str());
		fprintf(out, "%12s  %12s  %9s  %9s  %8s\n", "operation", "barriers", "p50",
			"p99", "verified");
	}
	fprintf(out, "%12s  %12s  %9s  %9s  %8s\n", row.barrier.c_str(),
		rate_text(row.messages_per_s, "/s").c_str(),
		time_text(row.latency_p50_ns).c_str(),
		time_text(row.latency_p99_ns).c_str(), yes_no(row.verified));
}

void print_copied(FILE *out, const Row &row, bool head)
{
	if (head)
		fprintf(out, "%s\n", head_text(row).c_str());
	fprintf(out, "%s: %" PRIu64 " bytes to each PE, %s, verified: %s\n",
		printable(row.file).c_str(), row.size_bytes,
		rate_text(row.bytes_per_s, "B/s").c_str(), yes_no(row.verified));
	for (size_t i = 0; i < row.sha256.size(); i++) {
		const char *verdict = i == 0             ? "from the file"
			: row.sha256[i] == row.sha256[0] ? "matches"
							 : "DIFFERS";
		fprintf(out, "  PE %-3zu %s  %s\n", i, row.sha256[i].c_str(), verdict);
	}
}

std::string end_text(uint32_t pe, int wait_status)
{
	std::string text = "PE " + std::to_string(pe) + ": ";
	if (WIFSIGNALED(wait_status)) {
		int sig = WTERMSIG(wait_status);
		const char *name = sigdescr_np(sig);
		return text + "killed by signal " + std::to_string(sig) + " (" +
			(name ? name : "unknown") + ")";
	}
	if (WEXITSTATUS(wait_status) == 127)
		return text + "could not be started";
	return text + "ended with status " + std::to_string(WEXITSTATUS(wait_status)) +
		" and said no cause";
}

// A failure's text without the PE that says it.
std::string without_speaker(const Failure &failure)
{
	const std::string &text = failure.message;
	if (!failure.pe)
		return text;
	const std::string who = "PE " + std::to_string(*failure.pe) + ": ";
	return text.compare(0, who.size(), who) == 0 ? text.substr(who.size()) : text;
}

} // namespace

std::string size_text(uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
	size_t unit = 0;
	while (unit < 3 && bytes >= 1024 && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	return std::to_string(bytes) + " " + units[unit];
}

std::string rate_text(double per_second, const char *unit)
{
	static const char *const prefixes[] = {"", "k", "M", "G", "T"};
	size_t i = 0;
	while (i < 4 && per_second >= 999.5) {
		per_second /= 1000;
		i++;
	}
	return scaled(per_second, prefixes[i], unit);
}

std::string time_text(uint64_t ns)
{
	if (ns < 1000)
		return std::to_string(ns) + " ns";
	if (ns < 999500)
		return scaled(double(ns) / 1e3, "", "us");
	if (ns < 999500000)
		return scaled(double(ns) / 1e6, "", "ms");
	return scaled(double(ns) / 1e9, "", "s");
}

void Report::take(uint32_t pe, const std::string &line)
{
	std::lock_guard<std::mutex> lock(mutex_);
	Message m = decode(line);
	switch (m.kind) {
	case Message::row_line:
		row_locked(m.row);
		break;
	case Message::failure_line:
		explained_.insert(pe);
		failure_locked(m.failure, without_speaker(m.failure));
		break;
	case Message::progress_line:
		show_progress(m.progress);
		break;
	case Message::bad_line: {
		Failure f;
		f.message =
			"PE " + std::to_string(pe) + ": sent a line that makes no sense";
		f.pe = pe;
		failure_locked(f, f.message);
		break;
	}
	}
}

void Report::row(const Row &row)
{
	std::lock_guard<std::mutex> lock(mutex_);
	row_locked(row);
}

void Report::failure(const Failure &failure)
{
	std::lock_guard<std::mutex> lock(mutex_);
	failure_locked(failure, failure.message);
}

void Report::row_locked(const Row &row)
{
	rows_.push_back(row);
	if (style_.json)
		return;
	clear_progress();
	std::string table = row.op + row.nic;
	const auto print = row.op == "copy" ? print_copied
		: row.op == "atomic"        ? print_atomic
		: row.op == "barrier"       ? print_barrier
					    : print_measured;
	print(out_, row, table != table_of_);
	table_of_ = table;
	flush();
}

void Report::failure_locked(const Failure &failure, const std::string &cause)
{
	failures_.push_back(failure);
	if (!printed_.insert(cause).second)
		return;
	clear_progress();
	fprintf(err_, "nda-perf: %s\n", printable(failure.message).c_str());
	fflush(err_);
}

void Report::pe_ended(uint32_t pe, int wait_status)
{
	std::lock_guard<std::mutex> lock(mutex_);
	bool clean = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
	bool said = WIFEXITED(wait_status) && explained_.count(pe) != 0;
	if (clean || said)
		return;
	Failure f;
	f.message = end_text(pe, wait_status);
	f.pe = pe;
	failure_locked(f, f.message);
}

void Report::show_progress(const std::string &text)
{
	if (!style_.progress)
		return;
	fprintf(err_, "\r\033[K%s", printable(text).c_str());
	fflush(err_);
	progress_shown_ = true;
}

void Report::clear_progress()
{
	if (!progress_shown_)
		return;
	fputs("\r\033[K", err_);
	fflush(err_);
	progress_shown_ = false;
}

void Report::interrupted()
{
	std::lock_guard<std::mutex> lock(mutex_);
	clear_progress();
}

// The first cause counts: later calls may find nothing more to write.
void Report::flush()
{
	if ((fflush(out_) != 0 || ferror(out_)) && out_error_ == 0)
		out_error_ = errno;
}

int Report::finish()
{
	std::lock_guard<std::mutex> lock(mutex_);
	clear_progress();
	if (style_.json) {
		json document = {{"schema", 1}, {"tool", "nda-perf"},
			{"version", NDA_VERSION}, {"rows", json::array()},
			{"errors", json::array()}};
		for (const Row &row : rows_)
			document["rows"].push_back(to_json(row));
		for (const Failure &failure : failures_)
			document["errors"].push_back(to_json(failure));
		std::string text =
			document.dump(2, ' ', false, json::error_handler_t::replace);
		fprintf(out_, "%s\n", text.c_str());
	}
	flush();
	if (out_error_ != 0) {
		fprintf(err_, "nda-perf: standard output: %s\n", strerror(out_error_));
		return 1;
	}
	return failures_.empty() ? 0 : failures_[0].exit_status;
}

} // namespace nda::perf
