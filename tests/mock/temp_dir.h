/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A directory of a test's own, gone with all that is in it when the test ends. */
#ifndef TESTS_MOCK_TEMP_DIR_H
#define TESTS_MOCK_TEMP_DIR_H

#include <stdio.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace nda::test {

class TempDir {
public:
	TempDir()
	{
		char name[] = "/tmp/nda-test-XXXXXX";

		if (mkdtemp(name) == nullptr) {
			perror("TempDir: mkdtemp");
			abort();
		}
		path_ = name;
	}
	~TempDir()
	{
		std::error_code error;

		std::filesystem::remove_all(path_, error);
	}
	TempDir(const TempDir &) = delete;
	TempDir &operator=(const TempDir &) = delete;

	const std::string &path() const { return path_; }
	std::string operator/(const std::string &name) const { return path_ + "/" + name; }
	/* The path of a new file. */
	std::string write(const std::string &name, const std::string &text) const
	{
		std::ofstream file(*this / name);

		file << text;
		file.close();
		if (!file) {
			perror("TempDir: write");
			abort();
		}
		return *this / name;
	}

private:
	std::string path_;
};

} // namespace nda::test

#endif
