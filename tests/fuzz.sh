#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# fuzz.sh SECONDS PROGRAM...: runs each libFuzzer program for so long. New inputs and what
# crashed are kept beside the program, in PROGRAM.corpus/ and PROGRAM.crash-*.

seconds=$1
shift
[ $# -gt 0 ] || { echo "fuzz.sh: no program to run"; exit 1; }
failed=0

run() # run PROGRAM
{
	name=$(basename "$1")
	seeds=tests/data/fuzz/$name
	[ -d "$seeds" ] || seeds=
	mkdir -p "$1.corpus"
	log=$1.log
	if timeout -k 10 $((seconds + 60)) "$1" -max_total_time="$seconds" -timeout=5 \
		-rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$1." \
		"$1.corpus" ${seeds:+"$seeds"} >"$log" 2>&1; then
		echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
			"inputs in $seconds s, nothing found"
	else
		tail -n 60 "$log"
		echo "$name: FAILED, see $log"
		return 1
	fi
}

# All at a time: each takes a core where there is one.
running=
for program in "$@"; do
	run "$program" &
	running="$running $!"
done
for job in $running; do wait "$job" || failed=1; done
exit $failed
