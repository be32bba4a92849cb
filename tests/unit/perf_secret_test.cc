// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/secret.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include <gtest/gtest.h>

namespace {

using namespace nda::perf;

const std::string digits = "000102030405060708090a0b0c0d0e0f"
			   "101112131415161718191a1b1c1d1eff";

class PerfSecret : public testing::Test {
protected:
	PerfSecret()
	{
		char name[] = "/tmp/perf_secret.XXXXXX";
		dir_ = mkdtemp(name);
		path_ = dir_ + "/secret";
	}
	~PerfSecret() override
	{
		unlink(path_.c_str());
		EXPECT_EQ(rmdir(dir_.c_str()), 0);
	}
	void write(const std::string &text, mode_t mode = 0600)
	{
		std::ofstream(path_) << text;
		ASSERT_EQ(chmod(path_.c_str(), mode), 0);
	}

	std::string dir_;
	std::string path_;
	uint8_t secret_[secret_bytes] = {};
};

TEST_F(PerfSecret, IsReadFromItsDigits)
{
	for (const char *end : {"", "\n"}) {
		write(digits + end);
		memset(secret_, 0, sizeof(secret_));
		ASSERT_EQ(read_secret(path_, false, secret_), "");
		for (int i = 0; i < 31; i++)
			EXPECT_EQ(secret_[i], i);
		EXPECT_EQ(secret_[31], 0xff);
	}
}

TEST_F(PerfSecret, IsMadeOnceForItsOwnerAlone)
{
	ASSERT_EQ(read_secret(path_, true, secret_), "");
	struct stat s;
	ASSERT_EQ(stat(path_.c_str(), &s), 0);
	EXPECT_EQ(s.st_mode & 07777, 0600u);
	uint8_t again[secret_bytes];
	ASSERT_EQ(read_secret(path_, true, again), "");
	EXPECT_EQ(memcmp(secret_, again, secret_bytes), 0);
	const uint8_t zero[secret_bytes] = {};
	EXPECT_NE(memcmp(secret_, zero, secret_bytes), 0);
}

TEST_F(PerfSecret, IsNotMadeWhereItMustExist)
{
	EXPECT_EQ(
		read_secret(path_, false, secret_), path_ + ": No such file or directory");
}

TEST_F(PerfSecret, ThatOthersMayReadIsRefused)
{
	for (mode_t mode : {0640, 0604, 0620, 0610}) {
		write(digits, mode);
		EXPECT_NE(read_secret(path_, true, secret_).find("its mode must be 0600"),
			std::string::npos);
	}
}

TEST_F(PerfSecret, OfAnotherFormIsRefused)
{
	for (const std::string &text : {std::string(), digits.substr(1), digits + "0",
		     digits + "\n\n", "x" + digits.substr(1), "A" + digits.substr(1)}) {
		write(text);
		EXPECT_EQ(read_secret(path_, true, secret_),
			path_ + ": holds no secret: 64 digits 0-9a-f");
	}
}

TEST_F(PerfSecret, IsNoLinkAndNoFifo)
{
	ASSERT_EQ(symlink("/dev/null", path_.c_str()), 0);
	EXPECT_NE(read_secret(path_, true, secret_), "");
	unlink(path_.c_str());
	ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
	EXPECT_EQ(read_secret(path_, true, secret_), path_ + ": is no regular file");
}

} // namespace
