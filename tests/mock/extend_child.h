// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Runs a scenario in a child process, since what the library registers, loads and reads of
// the environment lasts as long as its process; and helpers to set such a scenario up.
#ifndef NDA_TESTS_MOCK_EXTEND_CHILD_H
#define NDA_TESTS_MOCK_EXTEND_CHILD_H

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include <tests/mock/temp_dir.h>

// The address sanitizer's, if it is there.
extern "C" __attribute__((weak)) int __lsan_do_recoverable_leak_check();

namespace extend_mock {

inline std::string read_file(const std::string &path)
{
	std::ifstream file(path, std::ios::binary);
	return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const std::string &path, const std::string &text)
{
	std::ofstream file(path, std::ios::binary);
	file << text;
	ASSERT_TRUE(file.flush()) << path;
}

using nda::test::TempDir;

// The directory that the tests were built in.
inline std::string build_dir()
{
	return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
}

inline std::string driver_path(const std::string &name)
{
	return build_dir() + "/tests/mock/libextend_" + name + ".so";
}

// What the child printed on stderr; failed expectations in it fail the test.
template <class Scenario>
std::string in_child(Scenario scenario)
{
	TempDir dir;
	std::string path = dir / "stderr";
	fflush(nullptr);
	pid_t child = fork();
	if (child == 0) {
		int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
			_exit(2);
		alarm(120); // a deadlock must not hold up the others
		scenario();
		if (__lsan_do_recoverable_leak_check) {
			EXPECT_EQ(0, __lsan_do_recoverable_leak_check());
		}
		fflush(nullptr);
		_exit(testing::Test::HasFailure() ? 1 : 0);
	}
	int status = -1;
	EXPECT_EQ(child, waitpid(child, &status, 0));
	std::string text = read_file(path);
	EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
		<< "wait status " << status << ", stderr:\n"
		<< text;
	return text;
}

inline size_t count_of(const std::string &text, const std::string &part)
{
	size_t n = 0;
	for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1))
		n++;
	return n;
}

} // namespace extend_mock

#endif
