# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What tests of nda-perf have in common: read by them. Needs NDA_TEST_BUILD, or builds in build/.

perf=${NDA_TEST_BUILD:-build}/bin/nda-perf
# NDA_TEST_DOORBELL=map|proxy: cores ring in this way; the words go before the command.
way=${NDA_TEST_DOORBELL:+--doorbell=$NDA_TEST_DOORBELL}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0 skipped=0

pass() { passed=$((passed + 1)); }
fail()
{
	failed=$((failed + 1))
	echo "FAILED: $1"
	sed 's/^/  stdout: /' "$dir/out" | head -n 20
	sed 's/^/  stderr: /' "$dir/err" | head -n 20
}

run() # run ARGUMENT...: status, $dir/out, $dir/err
{
	# shellcheck disable=SC2086
	timeout -k 5 120 "$perf" $way "$@" >"$dir/out" 2>"$dir/err"
	status=$?
}

check() # check NAME CONDITION...
{
	local name=$1
	shift
	if "$@"; then pass; else fail "$name"; fi
}

exits() { [ "$status" -eq "$1" ]; }
says() { grep -qF -- "$1" "$dir/err"; }
silent() { [ ! -s "$dir/$1" ]; }
json() # json EXPRESSION: of the document j on standard output
{
	python3 -c 'import json, sys
j = json.load(open(sys.argv[1]))
sys.exit(0 if eval("(" + sys.argv[2] + ")") else 1)' "$dir/out" "$1"
}

# What every row has.
# shellcheck disable=SC2034
row_keys='all(k in r for r in j["rows"] for k in ("op", "nic", "pes", "size_bytes",
	"messages_per_s", "bytes_per_s", "latency_p50_ns", "latency_p99_ns", "verified"))'

finish() # the last line of a test
{
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
}
