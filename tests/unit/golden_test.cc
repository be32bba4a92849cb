/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * golden_test [--vectors FILE|DIRECTORY]: replays recorded cases through the data plane and
 * compares bytes, doorbells, counters and results. Every case runs with four fills of the
 * ring and with the fast and the slow way to post. Who runs a file is found by its
 * "engine"; files of another schema are named and left out. Of the tree's own vectors every
 * engine has to have some. See tests/data/golden/README.md.
 */
#include <stdio.h>
#include <string.h>

#include <tests/unit/golden_files.h>

int main(int argc, char **argv)
{
	std::filesystem::path vectors = "tests/data/golden";
	nda::golden::Totals totals;

	if (argc == 3 && strcmp(argv[1], "--vectors") == 0) {
		vectors = argv[2];
	} else if (argc != 1) {
		fprintf(stderr, "usage: golden_test [--vectors FILE|DIRECTORY]\n");
		return 2;
	}
	for (const std::filesystem::path &file : nda::golden::files_of(vectors))
		printf("%s", nda::golden::run_file(file, &totals).c_str());
	if (argc == 1)
		for (const std::string &engine : engines_without_cases(totals)) {
			printf("FAILED %s: no cases of %s\n", vectors.c_str(),
				engine.c_str());
			totals.failed++;
		}
	if (totals.passed + totals.failed == 0)
		printf("%s: no case to run\n", vectors.c_str());
	printf("%u passed, %u failed, 0 skipped\n", totals.passed, totals.failed);
	return totals.failed == 0 && totals.passed > 0 ? 0 : 1;
}
