// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What the tests over the mocks of Ascend's libraries have in common.
#ifndef NDA_TESTS_ASCEND_TEST_H
#define NDA_TESTS_ASCEND_TEST_H

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

#include <nda/npu.h>

#include "tests/mock/ascend/mock_ascend.h"

namespace nda::test {

// Beside the test's program.
inline std::string mock_directory(const char *name)
{
	char path[4096];
	const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	EXPECT_GT(n, 0);
	std::string text(path, n > 0 ? static_cast<size_t>(n) : 0);
	return text.substr(0, text.rfind('/') + 1) + name;
}

inline void use_mocks(const std::string &path)
{
	setenv("NDA_ASCEND_PATH", path.c_str(), 1);
}

inline bool detail_has(const std::string &text)
{
	return std::string(nda_error_detail()).find(text) != std::string::npos;
}

// Checks that the library kept the rules and left nothing, at each test's end.
class AscendTest : public testing::Test {
protected:
	AscendTest() : mock(MockAscend::get())
	{
		mock.reset();
		use_mocks(mock_directory("ascend"));
	}
	~AscendTest() override
	{
		mock.fail_call(0);
		EXPECT_EQ(mock.live(), 0u) << mock.live_text();
		for (const std::string &violation : mock.violations())
			ADD_FAILURE() << violation;
	}

	nda_npu *open(uint32_t flags = 0, const char *name = "ascend:0")
	{
		nda_npu_attr attr = {};
		attr.flags = flags;
		nda_npu *npu = nda_npu_open(name, &attr, sizeof(attr));
		EXPECT_NE(npu, nullptr) << nda_error_detail();
		return npu;
	}
	// The errno that opening gives.
	int open_error(const char *name = "ascend:0", const nda_npu_attr *attr = nullptr)
	{
		errno = 0;
		EXPECT_EQ(nda_npu_open(name, attr, sizeof(*attr)), nullptr);
		return errno;
	}

	MockAscend &mock;
};

} // namespace nda::test

#endif
