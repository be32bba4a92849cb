#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# run.sh BUILD-DIRECTORY PROGRAM...: runs each test program, as many at a time as there are cores,
# and sums up. A program is a GoogleTest binary, or a script that ends with
# 'N passed, N failed, N skipped'.
# Each has TEST_TIMEOUT seconds (default 900): a hang is a failure, not a stuck run.

count() # count PATTERN: the number in the last line of the log that matches
{
	sed -n "s/$1/\\1/p" "$log" | tail -n 1 | grep . || echo 0
}

run_one() # run_one DIRECTORY PROGRAM: prints how it went; adds 'passed failed skipped' to counts
{
	dir=$1 program=$2
	log=$(mktemp -p "$dir") || exit 1
	begin=$(date +%s)
	timeout -k 10 "${TEST_TIMEOUT:-900}" "$program" >"$log" 2>&1
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
		[ "$status" -ne 124 ] || echo "$program: ran into its time limit" >>"$log"
	fi
	{
		flock 9
		echo "== $program"
		if [ "$f" -ne 0 ] || [ "${TEST_VERBOSE:-0}" = 1 ]; then
			cat "$log"
			echo "$program: exit status $status"
		else
			# Why each was skipped: GoogleTest tells it in the line before the test's
			# end, scripts in one of their own.
			grep -B1 '^\[  SKIPPED \].*ms)' "$log" | grep -v '^--'
			grep '^SKIPPED' "$log"
		fi
		echo "   $p passed, $f failed, $s skipped ($(($(date +%s) - begin)) s)"
		echo "$p $f $s" >&9
	} 9>>"$dir/counts"
	rm -f "$log"
}

if [ "$1" = --one ]; then
	run_one "$2" "$3"
	exit
fi

NDA_TEST_BUILD=$1
export NDA_TEST_BUILD
shift
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
: >"$dir/counts"
printf '%s\0' "$@" | xargs -0 -n 1 -P "$(nproc)" "$0" --one "$dir"
# Whatever did not come to its end is missing there.
awk -v expected=$# '
	{ passed += $1; failed += $2; skipped += $3 }
	END {
		if (NR < expected) {
			print expected - NR " programs did not report"
			failed += expected - NR
		}
		print passed + 0 " passed, " failed + 0 " failed, " skipped + 0 " skipped"
		exit failed > 0 || passed == 0
	}' "$dir/counts"
