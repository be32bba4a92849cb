/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <algorithm>
#include <exception>
#include <fstream>
#include <stdexcept>

#include <tests/unit/golden_files.h>

namespace nda::golden {

namespace {

const Runner *const runners[] = {
	&hns1825_runner,
	&in_die_runner,
	&in_die_verbs_runner,
	&udma_runner,
	&udma_relay_runner,
	&xscale_runner,
};

/* A file that lost cases must not pass with what is left. */
void expect_all_cases(const Json &file)
{
	const Json &cases = file.at("cases");
	std::map<std::string, uint64_t> found;

	if (cases.empty())
		throw std::runtime_error("has no cases");
	if (number(file.at("count")) != cases.size())
		throw std::runtime_error("says that it has " + file["count"].dump() +
			" cases, and has " + std::to_string(cases.size()));
	for (const Json &test : cases)
		found[test.at("group").get<std::string>()]++;
	for (const auto &entry : file.at("groups").items())
		if (found[entry.key()] != number(entry.value()))
			throw std::runtime_error("says that it has " +
				entry.value().dump() + " cases of group " + entry.key() +
				", and has " + std::to_string(found[entry.key()]));
}

} // namespace

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

const Runner *runner_of(const Json &file, std::string *why)
{
	if (!file.is_object() || file.value("schema", Json()) != Json(1)) {
		*why = "schema is not 1";
		return nullptr;
	}
	if (!file.contains("engine") || !file["engine"].is_string()) {
		*why = "names no engine";
		return nullptr;
	}

	std::string engine = file["engine"].get<std::string>();
	for (const Runner *runner : runners)
		if (engine == runner->engine) {
			expect_all_cases(file);
			return runner;
		}
	throw std::runtime_error("nobody runs engine " + engine);
}

std::string run_case(const Runner &runner, const Json &test)
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
			if (!problem.empty())
				return problem +
					(variant.slow ? "\n    (slow way)"
						      : "\n    (fast way)");
		}
	} catch (const std::exception &error) {
		problem = std::string("\n    cannot be run: ") + error.what();
	}
	return problem;
}

std::string run_file(const std::filesystem::path &path, Totals *totals)
{
	std::string report;

	try {
		std::ifstream stream(path);
		std::string why;
		if (!stream)
			throw std::runtime_error("cannot be opened");

		Json file = Json::parse(stream);
		const Runner *runner = runner_of(file, &why);
		if (runner == nullptr)
			return path.string() + ": left out, " + why + "\n";
		Totals before = *totals;
		for (const Json &test : file.at("cases")) {
			std::string problem = run_case(*runner, test);

			totals->cases[runner->engine]++;
			(problem.empty() ? totals->passed : totals->failed)++;
			if (!problem.empty())
				report += "FAILED " +
					test.value("id", std::string("case without id")) +
					problem + "\n";
		}
		report += path.string() + ": " +
			std::to_string(totals->passed - before.passed) + " passed, " +
			std::to_string(totals->failed - before.failed) + " failed\n";
	} catch (const std::exception &error) {
		report += "FAILED " + path.string() + ": " + error.what() + "\n";
		totals->failed++;
	}
	return report;
}

std::vector<std::string> engines_without_cases(const Totals &totals)
{
	std::vector<std::string> engines;

	for (const Runner *runner : runners)
		if (totals.cases.count(runner->engine) == 0)
			engines.push_back(runner->engine);
	return engines;
}

} // namespace nda::golden
