// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/report.h"

#include <csignal>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace {

using namespace nda::perf;
using nlohmann::json;
using testing::HasSubstr;

// What is written to a stream.
class Sink {
public:
	Sink() : file_(open_memstream(&text_, &size_)) {}
	~Sink()
	{
		fclose(file_);
		free(text_);
	}
	FILE *file() { return file_; }
	std::string text()
	{
		fflush(file_);
		return std::string(text_, size_);
	}

private:
	char *text_ = nullptr;
	size_t size_ = 0;
	FILE *file_;
};

Row row_of(uint64_t size)
{
	Row row;
	row.op = "put";
	row.nic = "soft:hns1825";
	row.pes = 2;
	row.cores = 1;
	row.window = 64;
	row.batch = 1;
	row.signal_every = 1;
	row.queues = 2;
	row.size_bytes = size;
	row.messages_per_s = 1234567;
	row.bytes_per_s = 9876543210;
	row.latency_p50_ns = 150;
	row.latency_p99_ns = 12345;
	return row;
}

Failure failure_of(const std::string &message)
{
	Failure f;
	f.message = message;
	return f;
}

TEST(PerfReport, Units_HaveThreeDigits)
{
	EXPECT_EQ(size_text(8), "8 B");
	EXPECT_EQ(size_text(4096), "4 KiB");
	EXPECT_EQ(size_text(1048576), "1 MiB");
	EXPECT_EQ(size_text(1000), "1000 B");
	EXPECT_EQ(size_text(1536), "1536 B");
	EXPECT_EQ(rate_text(0, "B/s"), "0.00 B/s");
	EXPECT_EQ(rate_text(999.4, "B/s"), "999 B/s");
	EXPECT_EQ(rate_text(999.6, "B/s"), "1.00 kB/s");
	EXPECT_EQ(rate_text(1234567, "/s"), "1.23 M/s");
	EXPECT_EQ(rate_text(98765432100, "B/s"), "98.8 GB/s");
	EXPECT_EQ(time_text(999), "999 ns");
	EXPECT_EQ(time_text(1000), "1.00 us");
	EXPECT_EQ(time_text(12345), "12.3 us");
	EXPECT_EQ(time_text(999600), "1.00 ms");
	EXPECT_EQ(time_text(2500000000), "2.50 s");
}

TEST(PerfReport, Json_IsOneDocumentWithRowsAndErrors)
{
	Sink out;
	Sink err;
	Report report(out.file(), err.file(), {true, false});
	report.row(row_of(8));
	report.take(1, encode(row_of(4096)));
	report.take(0, encode_progress("working"));
	EXPECT_EQ(out.text(), "");
	EXPECT_EQ(report.finish(), 0);
	json j = json::parse(out.text());
	EXPECT_EQ(j["schema"], 1);
	EXPECT_EQ(j["tool"], "nda-perf");
	EXPECT_TRUE(j["version"].is_string());
	ASSERT_EQ(j["rows"].size(), 2u);
	EXPECT_EQ(j["rows"][1]["size_bytes"], 4096);
	EXPECT_EQ(j["errors"], json::array());
	EXPECT_EQ(err.text(), "");
}

TEST(PerfReport, Json_EscapesNames)
{
	Sink out;
	Sink err;
	Report report(out.file(), err.file(), {true, false});
	Row row = row_of(0);
	row.op = "copy";
	row.file = "a\"b\\c\nd\x01";
	row.sha256 = {"s"};
	report.row(row);
	report.finish();
	EXPECT_THAT(out.text(), HasSubstr(R"("a\"b\\c\nd\u0001")"));
}

TEST(PerfReport, Failure_IsPrintedOnceAndMakesTheStatus)
{
	Sink out;
	Sink err;
	Report report(out.file(), err.file(), {true, false});
	Failure f = failure_of("NIC soft:none: no such NIC");
	f.exit_status = 3;
	report.take(0, encode(f));
	report.take(1, encode(f));
	report.failure(failure_of("later"));
	EXPECT_EQ(report.finish(), 3);
	EXPECT_EQ(err.text(), "nda-perf: NIC soft:none: no such NIC\nnda-perf: later\n");
	EXPECT_EQ(json::parse(out.text())["errors"].size(), 3u);
}

TEST(PerfReport, PeEnded_NamesADeathByASignal)
{
	Sink out;
	Sink err;
	Report report(out.file(), err.file(), {});
	report.pe_ended(2, SIGKILL); // a status of wait(): the signal's number
	EXPECT_EQ(report.finish(), 1);
	EXPECT_EQ(err.text(), "nda-perf: PE 2: killed by signal 9 (Killed)\n");
}

TEST(PerfReport, PeEnded_NamesAnExitNobodyExplained)
{
	Sink out;
	Sink err;
	Report report(out.file(), err.file(), {});
	report.pe_ended(0, 0);
	EXPECT_EQ(err.text(), "");
	report.pe_ended(1, 5 << 8);
	EXPECT_EQ(report.finish(), 1);
	EXPECT_EQ(err.text(), "nda-perf: PE 1: ended with status 5 and said no cause\n");
}

TEST(PerfReport, PeEnded_AddsNothingToAnExplainedExit)
{
	Sink out;
	Sink err;
	Report report(out.file(), err.file(), {});
	report.take(1, encode(failure_of("PE 1: heap: no memory")));
	report.pe_ended(1, 1 << 8);
	EXPECT_EQ(err.text(), "nda-perf: PE 1: heap: no memory\n");
}

TEST(PerfReport, Failure_ThatSeveralPesSayIsPrintedOnceAndCountedForEach)
{
	Sink out;
	Sink err;
	Report report(out.file(), err.file(), {true, false});
	for (uint32_t pe : {2, 0, 1}) {
		Failure f =
			failure_of("PE " + std::to_string(pe) + ": group: PE 0: no memory");
		f.pe = pe;
		report.take(pe, encode(f));
	}
	EXPECT_EQ(report.finish(), 1);
	EXPECT_EQ(err.text(), "nda-perf: PE 2: group: PE 0: no memory\n");
	EXPECT_EQ(nlohmann::json::parse(out.text())["errors"].size(), 3u);
}

TEST(PerfReport, PeEnded_NamesEachPeThatWasKilled)
{
	Sink out;
	Sink err;
	Report report(out.file(), err.file(), {});
	report.pe_ended(0, 9);
	report.pe_ended(1, 9);
	EXPECT_EQ(err.text(),
		"nda-perf: PE 0: killed by signal 9 (Killed)\n"
		"nda-perf: PE 1: killed by signal 9 (Killed)\n");
}

TEST(PerfReport, BadLine_IsAFailureThatNamesThePe)
{
	Sink out;
	Sink err;
	Report report(out.file(), err.file(), {});
	report.take(3, "{\"row\":");
	EXPECT_EQ(report.finish(), 1);
	EXPECT_THAT(err.text(), HasSubstr("PE 3"));
}

TEST(PerfReport, Text_HasOneHeadAndAlignedColumns)
{
	Sink out;
	Sink err;
	Report report(out.file(), err.file(), {});
	report.row(row_of(8));
	Row large = row_of(1048576);
	large.memcpy_ratio = 0.876;
	large.verified = false;
	report.row(large);
	EXPECT_EQ(report.finish(), 0);
	EXPECT_EQ(out.text(),
		"put soft:hns1825: 2 PEs (processes), 1 core each, window 64, batch 1, 2 "
		"queues\n"
		"     size      messages     bandwidth        p50        p99  of memcpy  "
		"verified\n"
		"      8 B      1.23 M/s     9.88 GB/s     150 ns    12.3 us          -    "
		"     -\n"
		"    1 MiB      1.23 M/s     9.88 GB/s     150 ns    12.3 us       0.88    "
		"    NO\n");
}

TEST(PerfReport, Text_ShowsTheSumsOfACopy)
{
	Sink out;
	Sink err;
	Report report(out.file(), err.file(), {});
	Row row = row_of(5);
	row.op = "copy";
	row.file = "/bin/a\033[2J";
	row.sha256 = {"aaa", "aaa", "bbb"};
	row.verified = false;
	report.row(row);
	EXPECT_THAT(out.text(), HasSubstr("/bin/a\\x1b[2J: 5 bytes"));
	EXPECT_THAT(out.text(), HasSubstr("PE 0   aaa  from the file\n"));
	EXPECT_THAT(out.text(), HasSubstr("PE 1   aaa  matches\n"));
	EXPECT_THAT(out.text(), HasSubstr("PE 2   bbb  DIFFERS\n"));
}

TEST(PerfReport, Progress_IsShownOnlyWhereAskedAndClearedBeforeOtherOutput)
{
	Sink out;
	Sink err;
	Report silent(out.file(), err.file(), {});
	silent.take(0, encode_progress("step"));
	EXPECT_EQ(err.text(), "");
	Report shown(out.file(), err.file(), {false, true});
	shown.take(0, encode_progress("step"));
	EXPECT_EQ(err.text(), "\r\033[Kstep");
	shown.finish();
	EXPECT_EQ(err.text(), "\r\033[Kstep\r\033[K");
}

TEST(PerfReport, Finish_FailsWhenStandardOutputCannotBeWritten)
{
	Sink err;
	FILE *full = fopen("/dev/full", "w");
	ASSERT_NE(full, nullptr);
	Report report(full, err.file(), {true, false});
	EXPECT_EQ(report.finish(), 1);
	EXPECT_THAT(err.text(), HasSubstr("standard output: No space left"));
	fclose(full);
}

TEST(PerfReport, Finish_NamesWhyAnEarlierRowCouldNotBeWritten)
{
	Sink err;
	FILE *full = fopen("/dev/full", "w");
	ASSERT_NE(full, nullptr);
	Report report(full, err.file(), {});
	report.row(row_of(8));
	errno = EAGAIN;
	EXPECT_EQ(report.finish(), 1);
	EXPECT_THAT(err.text(), HasSubstr("standard output: No space left"));
	fclose(full);
}

TEST(PerfReport, Text_HasAnAtomicsNameAndHowManyChangedSomething)
{
	Sink out;
	Sink err;
	Report report(out.file(), err.file(), {false, false});
	Row row = row_of(8);
	row.op = "atomic";
	row.atomic = "fetch-add";
	row.verified = true;
	report.row(row);
	row.atomic = "compare-swap";
	row.messages = 400;
	row.changes = 300;
	report.row(row);
	EXPECT_EQ(report.finish(), 0);
	EXPECT_THAT(
		out.text(), HasSubstr("   fetch-add        8 B      1.23 M/s          -"));
	EXPECT_THAT(
		out.text(), HasSubstr("compare-swap        8 B      1.23 M/s     75.0 %"));
	EXPECT_THAT(out.text(), HasSubstr("yes"));
}

TEST(PerfReport, Text_HasABarriersNameAndHowManyThereWere)
{
	Sink out;
	Sink err;
	Report report(out.file(), err.file(), {false, false});
	Row row = row_of(0);
	row.op = "barrier";
	row.barrier = "barrier-all";
	row.verified = true;
	report.row(row);
	row.barrier = "sync-all";
	row.verified.reset();
	report.row(row);
	EXPECT_EQ(report.finish(), 0);
	EXPECT_THAT(out.text(),
		HasSubstr("   operation      barriers        p50        p99  verified\n"
			  " barrier-all      1.23 M/s     150 ns    12.3 us       yes\n"
			  "    sync-all      1.23 M/s     150 ns    12.3 us         -\n"));
}

TEST(PerfReport, Text_TellsOneWay)
{
	Sink out;
	Sink err;
	Report report(out.file(), err.file(), {false, false});
	Row row = row_of(8);
	row.one_way = true;
	report.row(row);
	EXPECT_THAT(out.text(), HasSubstr("one way"));
}

} // namespace
