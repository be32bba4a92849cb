#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The tests of groups, of processes and of nda-perf once more, with doorbells that are host
# addresses: mapped for the cores, and with mapping disabled, so that all of them are proxied.

build=${NDA_TEST_BUILD:-build}
passed=0 failed=0 skipped=0
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

last() { # last PATTERN: the number in the last line of the log that matches
	sed -n "s/$1/\\1/p" "$log" | tail -n 1 | grep . || echo 0
}

# nda-perf's doorbells are mapped unless it is told.
for way in map proxy; do
	for program in "$build"/tests/nda_group_test "$build"/tests/nda_engines_test \
		"$build"/tests/nda_view_test "$build"/tests/nda_process_test \
		tests/perf_jobs.sh; do
		case $way:$build:$program in
		map:*perf_jobs.sh) continue ;;
		*san-*perf_jobs.sh)
			# Its dozens of jobs take minutes there, and the suite runs it once anyway.
			echo "SKIPPED: $program with NDA_TEST_DOORBELL=$way: too slow in this build"
			skipped=$((skipped + 1))
			continue
			;;
		esac
		if [ "$program" = tests/perf_jobs.sh ] && [ ! -x "$build/bin/nda-perf" ]; then
			echo "SKIPPED: $program: nda-perf is not built here"
			skipped=$((skipped + 1))
			continue
		fi
		NDA_TEST_DOORBELL=$way timeout -k 10 400 "$program" >"$log" 2>&1
		status=$?
		p=$(last '^\[  PASSED  \] \([0-9]*\) tests\{0,1\}\..*')
		[ "$p" -gt 0 ] || p=$(last '^\([0-9]*\) passed, [0-9]* failed, [0-9]* skipped$')
		s=$(last '^[0-9]* passed, [0-9]* failed, \([0-9]*\) skipped$')
		passed=$((passed + p)) skipped=$((skipped + s))
		if [ $status -ne 0 ] || [ "$p" -eq 0 ]; then
			failed=$((failed + 1))
			echo "FAILED: $program with NDA_TEST_DOORBELL=$way: status $status"
			grep -v '^\[ *\(RUN\|OK\|---*\|===*\) *\]' "$log" | tail -n 40
		fi
	done
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
