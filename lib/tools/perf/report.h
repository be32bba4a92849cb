// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Prints what PEs report: a table for people or one JSON document.
#ifndef NDA_PERF_REPORT_H
#define NDA_PERF_REPORT_H

#include <cstdint>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "lib/tools/perf/row.h"

namespace nda::perf {

// Thread-safe: with PEs as threads, all of them call it.
class Report {
public:
	struct Style {
		bool json = false;
		bool progress = false; // err is a terminal, and nobody asked for quiet
	};

	// Rows go to out, everything else to err; both stay the caller's.
	Report(FILE *out, FILE *err, const Style &style)
		: out_(out), err_(err), style_(style)
	{}

	// A line that a PE sent.
	void take(uint32_t pe, const std::string &line);
	void row(const Row &row);
	void failure(const Failure &failure);
	// A PE's process ended with this status of wait(); names a death nobody explained.
	void pe_ended(uint32_t pe, int wait_status);

	// The job was asked to end; nothing more is said about it.
	void interrupted();

	// Prints what is left to print; returns the exit status of the job.
	int finish();

private:
	void row_locked(const Row &row);
	// Prints it unless this cause was printed before.
	void failure_locked(const Failure &failure, const std::string &cause);
	void show_progress(const std::string &text);
	void clear_progress();
	void flush();

	std::mutex mutex_;
	FILE *const out_;
	FILE *const err_;
	const Style style_;
	bool progress_shown_ = false;
	int out_error_ = 0;    // errno of the first failure to write to out
	std::string table_of_; // op and NIC of the table whose head was printed last
	std::vector<Row> rows_;
	std::vector<Failure> failures_;
	std::set<std::string> printed_; // PEs often fail alike; it is said once
	std::set<uint32_t> explained_;  // PEs that have said why they end
};

// 8 -> "8 B", 65536 -> "64 KiB"; what is no whole number of a unit stays in the smaller.
std::string size_text(uint64_t bytes);
// 1234567.0, "B/s" -> "1.23 MB/s"
std::string rate_text(double per_second, const char *unit);
// 950 -> "950 ns", 12345 -> "12.3 us"
std::string time_text(uint64_t ns);

} // namespace nda::perf

#endif
