// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/row.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace {

using namespace nda::perf;
using nlohmann::json;

Row put_row()
{
	Row row;
	row.op = "put";
	row.nic = "soft:hns1825";
	row.pes = 4;
	row.cores = 2;
	row.window = 64;
	row.batch = 16;
	row.signal_every = 8;
	row.doorbell = "proxy";
	row.queues_per_core = 3;
	row.queues = 24;
	row.size_bytes = 65536;
	row.messages = 123456;
	row.messages_per_s = 2.5e6;
	row.bytes_per_s = 1.6384e11;
	row.latency_p50_ns = 150;
	row.latency_p99_ns = 900;
	row.memcpy_bytes_per_s = 2e11;
	row.memcpy_ratio = 0.8192;
	row.verified = true;
	return row;
}

TEST(PerfRow, ToJson_HasEveryKeyWithItsType)
{
	json j = to_json(put_row());
	EXPECT_EQ(j["op"], "put");
	EXPECT_EQ(j["nic"], "soft:hns1825");
	EXPECT_EQ(j["pe_kind"], "process");
	EXPECT_EQ(j["doorbell"], "proxy");
	for (const char *key : {"pes", "cores", "window", "batch", "signal_every", "queues",
		     "queues_per_core", "size_bytes", "messages", "latency_p50_ns",
		     "latency_p99_ns"})
		EXPECT_TRUE(j[key].is_number_unsigned()) << key;
	for (const char *key :
		{"messages_per_s", "bytes_per_s", "memcpy_bytes_per_s", "memcpy_ratio"})
		EXPECT_TRUE(j[key].is_number_float()) << key;
	EXPECT_EQ(j["verified"], true);
	EXPECT_FALSE(j.contains("file"));
}

TEST(PerfRow, ToJson_SaysNullForWhatWasNotMeasured)
{
	Row row = put_row();
	row.memcpy_bytes_per_s.reset();
	row.memcpy_ratio.reset();
	row.verified.reset();
	json j = to_json(row);
	EXPECT_TRUE(j["memcpy_bytes_per_s"].is_null());
	EXPECT_TRUE(j["memcpy_ratio"].is_null());
	EXPECT_TRUE(j["verified"].is_null());
}

TEST(PerfRow, Decode_GivesBackTheRow)
{
	Row row = put_row();
	row.threads = true;
	row.verified.reset();
	Message m = decode(encode(row));
	ASSERT_EQ(m.kind, Message::row_line);
	EXPECT_EQ(to_json(m.row), to_json(row));
}

TEST(PerfRow, Decode_GivesBackTheRowOfACopyWhateverTheFilesName)
{
	Row row = put_row();
	row.op = "copy";
	row.file = "/tmp/a \"b\"\\\n\t\x01\xc3\xa9";
	row.sha256 = {"aa", "bb"};
	std::string line = encode(row);
	EXPECT_EQ(line.find('\n'), std::string::npos);
	Message m = decode(line);
	ASSERT_EQ(m.kind, Message::row_line);
	EXPECT_EQ(m.row.file, row.file);
	EXPECT_EQ(m.row.sha256, row.sha256);
}

TEST(PerfRow, Encode_ReplacesWhatIsNotUtf8)
{
	Row row = put_row();
	row.op = "copy";
	row.file = "a\xff"
		   "b";
	row.sha256 = {"aa"};
	Message m = decode(encode(row));
	ASSERT_EQ(m.kind, Message::row_line);
	EXPECT_EQ(m.row.file,
		"a\xef\xbf\xbd"
		"b"); // U+FFFD
}

TEST(PerfRow, Decode_GivesBackTheFailure)
{
	Failure f;
	f.exit_status = 3;
	f.message = "PE 1: went \"away\"";
	f.pe = 1;
	f.peer = 0;
	f.op = "put";
	f.size_bytes = 8;
	f.status = 10;
	f.status_text = "retry exceeded";
	Message m = decode(encode(f));
	ASSERT_EQ(m.kind, Message::failure_line);
	EXPECT_EQ(to_json(m.failure), to_json(f));
	EXPECT_TRUE(to_json(f)["core"].is_null());
}

TEST(PerfRow, Decode_GivesBackTheProgress)
{
	Message m = decode(encode_progress("put 8 B: rate"));
	EXPECT_EQ(m.kind, Message::progress_line);
	EXPECT_EQ(m.progress, "put 8 B: rate");
}

TEST(PerfRow, Decode_RefusesWhatIsNoReport)
{
	std::string half = encode(put_row());
	half.resize(half.size() / 2);
	json without = json::parse(encode(put_row()));
	without["row"].erase("size_bytes");
	json mistyped = json::parse(encode(put_row()));
	mistyped["row"]["pes"] = "four";
	for (const std::string &line : {std::string(), std::string("nonsense"),
		     std::string("[]"), std::string("{}"), std::string("{\"row\":1}"),
		     std::string("{\"failure\":null}"), std::string("{\"progress\":2}"),
		     half, without.dump(), mistyped.dump()})
		EXPECT_EQ(decode(line).kind, Message::bad_line) << line;
}

TEST(PerfRow, OneWay_IsTold)
{
	Row row = put_row();
	EXPECT_EQ(to_json(row)["one_way"], false);
	row.one_way = true;
	EXPECT_EQ(to_json(row)["one_way"], true);
	EXPECT_EQ(to_json(decode(encode(row)).row), to_json(row));
}

TEST(PerfRow, Barrier_IsNamed)
{
	Row row = put_row();
	EXPECT_FALSE(to_json(row).contains("barrier"));
	row.op = "barrier";
	row.barrier = "sync-all";
	json j = to_json(row);
	EXPECT_EQ(j["barrier"], "sync-all");
	Message m = decode(encode(row));
	ASSERT_EQ(m.kind, Message::row_line);
	EXPECT_EQ(to_json(m.row), j);
	j = json::parse(encode(row));
	j["row"].erase("barrier");
	EXPECT_EQ(decode(j.dump()).kind, Message::bad_line);
}

TEST(PerfRow, Atomic_IsNamedAndCountsItsChanges)
{
	Row row = put_row();
	EXPECT_FALSE(to_json(row).contains("atomic"));
	row.op = "atomic";
	row.atomic = "compare-swap";
	row.changes = 77;
	json j = to_json(row);
	EXPECT_EQ(j["atomic"], "compare-swap");
	EXPECT_EQ(j["changes"], 77);
	Message m = decode(encode(row));
	ASSERT_EQ(m.kind, Message::row_line);
	EXPECT_EQ(to_json(m.row), j);
	row.changes.reset();
	EXPECT_TRUE(to_json(row)["changes"].is_null());
	j = json::parse(encode(row));
	j["row"].erase("atomic");
	EXPECT_EQ(decode(j.dump()).kind, Message::bad_line);
}

} // namespace
