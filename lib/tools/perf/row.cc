// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/row.h"

#include <nlohmann/json.hpp>

namespace nda::perf {

using nlohmann::json;

namespace {

template <class T>
json or_null(const std::optional<T> &value)
{
	return value ? json(*value) : json();
}

// False, and the value is left alone, where the key is missing or of another type.
template <class T>
bool read(const json &object, const char *key, T &value)
{
	auto it = object.find(key);
	if (it == object.end())
		return false;
	if constexpr (std::is_same_v<T, bool>) {
		if (!it->is_boolean())
			return false;
	} else if constexpr (std::is_arithmetic_v<T>) {
		if (!it->is_number())
			return false;
	} else if constexpr (std::is_same_v<T, std::string>) {
		if (!it->is_string())
			return false;
	}
	value = it->template get<T>();
	return true;
}

template <class T>
bool read(const json &object, const char *key, std::optional<T> &value)
{
	auto it = object.find(key);
	if (it == object.end())
		return false;
	if (it->is_null())
		return true;
	T v;
	if (!read(object, key, v))
		return false;
	value = v;
	return true;
}

bool read_sums(const json &object, std::vector<std::string> &sums)
{
	auto it = object.find("pe_sha256");
	if (it == object.end())
		return true; // not of a copy
	if (!it->is_array())
		return false;
	for (const json &sum : *it) {
		if (!sum.is_string())
			return false;
		sums.push_back(sum.get<std::string>());
	}
	return true;
}

bool from_json(const json &j, Row &row)
{
	std::string mode;
	bool ok = j.is_object() && read(j, "op", row.op) && read(j, "nic", row.nic) &&
		read(j, "pes", row.pes) && read(j, "pe_kind", mode) &&
		read(j, "cores", row.cores) && read(j, "window", row.window) &&
		read(j, "batch", row.batch) && read(j, "signal_every", row.signal_every) &&
		read(j, "one_way", row.one_way) && read(j, "doorbell", row.doorbell) &&
		read(j, "queues_per_core", row.queues_per_core) &&
		read(j, "queues", row.queues) && read(j, "size_bytes", row.size_bytes) &&
		read(j, "messages", row.messages) &&
		read(j, "messages_per_s", row.messages_per_s) &&
		read(j, "bytes_per_s", row.bytes_per_s) &&
		read(j, "latency_p50_ns", row.latency_p50_ns) &&
		read(j, "latency_p99_ns", row.latency_p99_ns) &&
		read(j, "memcpy_bytes_per_s", row.memcpy_bytes_per_s) &&
		read(j, "memcpy_ratio", row.memcpy_ratio) &&
		read(j, "verified", row.verified) && read_sums(j, row.sha256);
	row.threads = mode == "thread";
	if (ok && row.op == "atomic")
		ok = read(j, "atomic", row.atomic) && read(j, "changes", row.changes);
	if (ok && row.op == "barrier")
		ok = read(j, "barrier", row.barrier);
	if (ok && row.op == "copy")
		ok = read(j, "file", row.file) && !row.sha256.empty();
	return ok;
}

bool from_json(const json &j, Failure &failure)
{
	return j.is_object() && read(j, "exit_status", failure.exit_status) &&
		read(j, "message", failure.message) && read(j, "pe", failure.pe) &&
		read(j, "peer", failure.peer) && read(j, "core", failure.core) &&
		read(j, "op", failure.op) && read(j, "size_bytes", failure.size_bytes) &&
		read(j, "status", failure.status) &&
		read(j, "status_text", failure.status_text);
}

// File names are bytes; what is no UTF-8 is replaced rather than refused.
std::string dump(const json &j)
{
	return j.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace

json to_json(const Row &row)
{
	json j = {
		{"op", row.op},
		{"nic", row.nic},
		{"pes", row.pes},
		{"pe_kind", row.threads ? "thread" : "process"},
		{"cores", row.cores},
		{"window", row.window},
		{"batch", row.batch},
		{"signal_every", row.signal_every},
		{"one_way", row.one_way},
		{"doorbell", row.doorbell},
		{"queues_per_core", row.queues_per_core},
		{"queues", row.queues},
		{"size_bytes", row.size_bytes},
		{"messages", row.messages},
		{"messages_per_s", row.messages_per_s},
		{"bytes_per_s", row.bytes_per_s},
		{"latency_p50_ns", row.latency_p50_ns},
		{"latency_p99_ns", row.latency_p99_ns},
		{"memcpy_bytes_per_s", or_null(row.memcpy_bytes_per_s)},
		{"memcpy_ratio", or_null(row.memcpy_ratio)},
		{"verified", or_null(row.verified)},
	};
	if (row.op == "atomic") {
		j["atomic"] = row.atomic;
		j["changes"] = or_null(row.changes);
	}
	if (row.op == "barrier")
		j["barrier"] = row.barrier;
	if (row.op == "copy") {
		j["file"] = row.file;
		j["sha256"] = row.sha256.empty() ? "" : row.sha256[0];
		j["pe_sha256"] = row.sha256;
	}
	return j;
}

json to_json(const Failure &failure)
{
	return {
		{"exit_status", failure.exit_status},
		{"message", failure.message},
		{"pe", or_null(failure.pe)},
		{"peer", or_null(failure.peer)},
		{"core", or_null(failure.core)},
		{"op", failure.op},
		{"size_bytes", failure.size_bytes},
		{"status", failure.status},
		{"status_text", failure.status_text},
	};
}

std::string encode(const Row &row)
{
	return dump({{"row", to_json(row)}});
}

std::string encode(const Failure &failure)
{
	return dump({{"failure", to_json(failure)}});
}

std::string encode_progress(const std::string &text)
{
	return dump({{"progress", text}});
}

Message decode(const std::string &line)
{
	Message m;
	json j = json::parse(line, nullptr, false);
	if (!j.is_object())
		return m;
	if (auto it = j.find("row"); it != j.end() && from_json(*it, m.row))
		m.kind = Message::row_line;
	else if (it = j.find("failure"); it != j.end() && from_json(*it, m.failure))
		m.kind = Message::failure_line;
	else if (read(j, "progress", m.progress))
		m.kind = Message::progress_line;
	return m;
}

} // namespace nda::perf
