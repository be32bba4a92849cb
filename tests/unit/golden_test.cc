/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * golden_test [--vectors FILE|DIRECTORY]: replays recorded cases through the data plane and
 * compares bytes, doorbells, counters and results. Every case runs with four fills of the
 * ring and with the fast and the slow way to post. Who runs a file is found by its
 * "engine"; files of no known engine, or of another schema, are named and left out. See
 * tests/data/golden/README.md.
 */
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <tests/unit/golden_common.h>

namespace {

using nda::golden::Json;
using nda::golden::Runner;
using nda::golden::Variant;

const Runner *const runners[] = {
	&nda::golden::hns1825_runner,
	&nda::golden::in_die_runner,
	&nda::golden::in_die_verbs_runner,
	&nda::golden::udma_runner,
	&nda::golden::udma_relay_runner,
	&nda::golden::xscale_runner,
};

struct Totals {
	unsigned passed = 0;
	unsigned failed = 0;
};

bool run_case(const Runner &runner, const std::string &id, const Json &test)
{
	static const Variant variants[] = {
		{0x00, false}, {0xff, false}, {0xa5, true}, {0x3c, true}};
	std::string problem;

	try {
		std::string group = test.at("group").get<std::string>();
		if (runner.groups.count(group) == 0)
			throw std::runtime_error("unknown group " + group);
		for (const Variant &variant : variants) {
			for (const std::string &text : runner.run(test, variant))
				problem += "\n    " + text;
			if (!problem.empty()) {
				problem += variant.slow ? "\n    (slow way)"
							: "\n    (fast way)";
				break;
			}
		}
	} catch (const std::exception &error) {
		problem = std::string("\n    cannot be run: ") + error.what();
	}
	if (!problem.empty())
		printf("FAILED %s%s\n", id.c_str(), problem.c_str());
	return problem.empty();
}

/* Who runs @file; null, and @why: nobody. */
const Runner *runner_of(const Json &file, std::string *why)
{
	if (!file.is_object() || !file.contains("engine") || !file["engine"].is_string()) {
		*why = "names no engine";
		return nullptr;
	}

	std::string engine = file["engine"].get<std::string>();
	for (const Runner *runner : runners) {
		if (engine != runner->engine)
			continue;
		if (file.value("schema", Json()) == Json(1))
			return runner;
		*why = "schema is not 1";
		return nullptr;
	}
	*why = "no such engine: " + engine;
	return nullptr;
}

void run_file(const std::filesystem::path &path, Totals *totals)
{
	try {
		std::ifstream stream(path);
		std::string why;
		if (!stream)
			throw std::runtime_error("cannot be opened");

		Json file = Json::parse(stream);
		const Runner *runner = runner_of(file, &why);
		if (runner == nullptr) {
			printf("%s: left out, %s\n", path.c_str(), why.c_str());
			return;
		}
		Totals before = *totals;
		for (const Json &test : file.at("cases")) {
			std::string id = test.value("id", std::string("case without id"));

			if (run_case(*runner, id, test))
				totals->passed++;
			else
				totals->failed++;
		}
		printf("%s: %u passed, %u failed\n", path.c_str(),
			totals->passed - before.passed, totals->failed - before.failed);
	} catch (const std::exception &error) {
		printf("FAILED %s: %s\n", path.c_str(), error.what());
		totals->failed++;
	}
}

/* The file, or the directory's JSON files by name. */
std::vector<std::filesystem::path> files_of(const std::filesystem::path &path)
{
	std::vector<std::filesystem::path> files;
	std::error_code error;

	if (!std::filesystem::is_directory(path, error))
		return {path};
	for (const auto &entry : std::filesystem::directory_iterator(path, error))
		if (entry.path().extension() == ".json")
			files.push_back(entry.path());
	std::sort(files.begin(), files.end());
	return files;
}

} // namespace

int main(int argc, char **argv)
{
	std::filesystem::path vectors = "tests/data/golden";
	Totals totals;

	if (argc == 3 && strcmp(argv[1], "--vectors") == 0) {
		vectors = argv[2];
	} else if (argc != 1) {
		fprintf(stderr, "usage: golden_test [--vectors FILE|DIRECTORY]\n");
		return 2;
	}
	for (const std::filesystem::path &file : files_of(vectors))
		run_file(file, &totals);
	if (totals.passed + totals.failed == 0)
		printf("%s: no case to run\n", vectors.c_str());
	printf("%u passed, %u failed, 0 skipped\n", totals.passed, totals.failed);
	return totals.failed == 0 && totals.passed > 0 ? 0 : 1;
}
