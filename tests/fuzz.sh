#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# fuzz.sh SECONDS PROGRAM...: runs each libFuzzer program for so long. New inputs and what
# crashed are kept beside the program, in PROGRAM.corpus/ and PROGRAM.crash-*.

seconds=$1
shift
[ $# -gt 0 ] || { echo "fuzz.sh: no program to run"; exit 1; }
failed=0
for program in "$@"; do
	name=$(basename "$program")
	seeds=tests/data/fuzz/$name
	[ -d "$seeds" ] || seeds=
	mkdir -p "$program.corpus"
	log=$program.log
	if timeout -k 10 $((seconds + 60)) "$program" -max_total_time="$seconds" -timeout=5 \
		-rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$program." \
		"$program.corpus" ${seeds:+"$seeds"} >"$log" 2>&1; then
		echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs in $seconds s, nothing found"
	else
		tail -n 60 "$log"
		echo "$name: FAILED, see $log"
		failed=1
	fi
done
exit $failed
