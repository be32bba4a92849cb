#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# run.sh BUILD-DIRECTORY PROGRAM...: runs each test program and sums up.
# A program is a GoogleTest binary, or a script that ends with 'N passed, N failed, N skipped'.
# Each has TEST_TIMEOUT seconds (default 300): a hang is a failure, not a stuck run.

build=$1
shift
export NDA_TEST_BUILD="$build"
passed=0 failed=0 skipped=0
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

count() { # count PATTERN: the number in the last line that matches
	sed -n "s/$1/\\1/p" "$log" | tail -n 1 | grep . || echo 0
}

for program in "$@"; do
	echo "== $program"
	begin=$(date +%s)
	timeout -k 10 "${TEST_TIMEOUT:-300}" "$program" >"$log" 2>&1
	status=$?
	if grep -q '^\[==========\].* ran\.' "$log"; then
		p=$(count '^\[  PASSED  \] \([0-9]*\) tests\{0,1\}\..*')
		f=$(count '^\[  FAILED  \] \([0-9]*\) tests\{0,1\}, listed below:.*')
		s=$(count '^\[  SKIPPED \] \([0-9]*\) tests\{0,1\}, listed below:.*')
	else
		p=$(count '^\([0-9]*\) passed, [0-9]* failed, [0-9]* skipped$')
		f=$(count '^[0-9]* passed, \([0-9]*\) failed, [0-9]* skipped$')
		s=$(count '^[0-9]* passed, [0-9]* failed, \([0-9]*\) skipped$')
	fi
	if [ "$status" -eq 0 ] && [ $((p + f + s)) -eq 0 ]; then
		echo "$program: ended well, but tells of no test" >>"$log"
		f=1
	fi
	# A crash or a time-out may leave no count, or a good one: it fails all the same.
	if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then
		f=1
		[ "$status" -eq 124 ] && echo "$program: ran into its time limit"
	fi
	if [ "$f" -ne 0 ] || [ "${TEST_VERBOSE:-0}" = 1 ]; then
		cat "$log"
		echo "$program: exit status $status"
	else
		# Why each was skipped: GoogleTest tells it in the line before the test's end.
		grep -B1 '^\[  SKIPPED \].*ms)' "$log" | grep -v '^--'
	fi
	echo "   $p passed, $f failed, $s skipped ($(($(date +%s) - begin)) s)"
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
