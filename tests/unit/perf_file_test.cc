// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "lib/common/fd.h"

namespace {

using namespace nda::perf;

TEST(PerfFile, CheckFile_AcceptsARegularFile)
{
	EXPECT_EQ(check_file("/proc/self/exe"), "");
}

TEST(PerfFile, CheckFile_NamesTheFileAndTheCause)
{
	EXPECT_EQ(check_file("/no/such"), "/no/such: No such file or directory");
	EXPECT_EQ(check_file("/"), "/: Is a directory");
	EXPECT_EQ(check_file("/dev/null"), "/dev/null: not a regular file");
	EXPECT_EQ(check_file(""), ": No such file or directory");
}

TEST(PerfFile, CheckFile_DoesNotWaitForAFifo)
{
	char dir[] = "/tmp/perf_file.XXXXXX";
	ASSERT_NE(mkdtemp(dir), nullptr);
	std::string fifo = std::string(dir) + "/fifo";
	ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
	EXPECT_EQ(check_file(fifo), fifo + ": not a regular file");
	unlink(fifo.c_str());
	rmdir(dir);
}

TEST(PerfFile, ReadFull_FillsTheBufferFromShortReads)
{
	int ends[2];
	ASSERT_EQ(pipe(ends), 0);
	nda::Fd in(ends[0]);
	std::thread writer([&] {
		nda::Fd out(ends[1]);
		for (char c = 'a'; c <= 'j'; c++)
			if (write(out.get(), &c, 1) != 1)
				return;
	});
	std::vector<char> buffer(7);
	EXPECT_EQ(read_full(in.get(), buffer.data(), 7), 7);
	EXPECT_EQ(std::string(buffer.data(), 7), "abcdefg");
	EXPECT_EQ(read_full(in.get(), buffer.data(), 7), 3);
	EXPECT_EQ(read_full(in.get(), buffer.data(), 7), 0);
	writer.join();
}

TEST(PerfFile, ReadFull_ReportsErrors)
{
	char c;
	EXPECT_EQ(read_full(-1, &c, 1), -EBADF);
	nda::Fd dir(open("/", O_RDONLY));
	EXPECT_EQ(read_full(dir.get(), &c, 1), -EISDIR);
}

} // namespace
