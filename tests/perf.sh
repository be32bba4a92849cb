# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What tests of nda-perf have in common: read by them. Needs NDA_TEST_BUILD, or builds in build/.

# shellcheck source=tests/script.sh
. tests/script.sh

perf=${NDA_TEST_BUILD:-build}/bin/nda-perf

run() # run ARGUMENT...: status, $dir/out, $dir/err
{
	timeout -k 5 120 "$perf" "$@" >"$dir/out" 2>"$dir/err"
	status=$?
}

# What every row has.
# shellcheck disable=SC2034
row_keys='all(k in r for r in j["rows"] for k in ("op", "nic", "pes", "size_bytes",
	"messages_per_s", "bytes_per_s", "latency_p50_ns", "latency_p99_ns", "verified"))'
