// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// nda_program search | NPU: what the search for extension drivers meets; or opens an NPU
// and says how that went.
#include <nda/nic.h>
#include <nda/npu.h>
#include <stdio.h>
#include <string.h>

static char report[1 << 16];

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "soft";
	struct nda_npu *npu;

	if (!strcmp(what, "search")) {
		nda_search_report(report, sizeof(report));
		puts(report);
		return 0;
	}
	npu = nda_npu_open(what, NULL, 0);
	if (!npu) {
		puts(nda_error_detail());
		return 0;
	}
	printf("opened %s\n", what);
	return nda_npu_close(npu) ? 1 : 0;
}
