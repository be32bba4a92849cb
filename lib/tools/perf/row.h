// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What PEs report: one Row per measurement or file, one Failure per thing gone wrong.
#ifndef NDA_PERF_ROW_H
#define NDA_PERF_ROW_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace nda::perf {

struct Row {
	std::string op;
	std::string nic;
	uint32_t pes = 0;
	bool threads = false;
	uint32_t cores = 0;
	uint32_t window = 0;
	uint32_t batch = 0;
	uint32_t signal_every = 0;
	bool one_way = false;         // put, get: only PE 0 posts
	std::string doorbell;         // "map", "proxy" or "kernel"
	uint32_t queues_per_core = 1; // to each PE
	uint32_t queues = 0;          // in use, of all PEs
	uint64_t size_bytes = 0;
	uint64_t messages = 0; // of all PEs, in the measurement of the rate
	double messages_per_s = 0;
	double bytes_per_s = 0;
	uint64_t latency_p50_ns = 0;
	uint64_t latency_p99_ns = 0;
	std::optional<double> memcpy_bytes_per_s;
	std::optional<double> memcpy_ratio;
	std::optional<bool> verified; // unset: not asked for
	// atomic
	std::string atomic;              // its name
	std::optional<uint64_t> changes; // compare-swaps that found what they expected
	// barrier
	std::string barrier; // its name
	// copy
	std::string file;
	std::vector<std::string>
		sha256; // of the file, then of each PE's memory from PE 1 on
};

struct Failure {
	int exit_status = 1;
	std::string message; // "object: cause"
	// Of a failed message:
	std::optional<uint32_t> pe;
	std::optional<uint32_t> peer;
	std::optional<uint32_t> core;
	std::string op;
	uint64_t size_bytes = 0;
	int status = 0; // enum nda_status
	std::string status_text;
};

nlohmann::json to_json(const Row &row);
nlohmann::json to_json(const Failure &failure);

// One line of a PE's report, without its end.
std::string encode(const Row &row);
std::string encode(const Failure &failure);
std::string encode_progress(const std::string &text);

struct Message {
	enum {
		row_line,
		failure_line,
		progress_line,
		bad_line
	} kind = bad_line;
	Row row;
	Failure failure;
	std::string progress;
};
Message decode(const std::string &line);

} // namespace nda::perf

#endif
