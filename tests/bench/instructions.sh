#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# instructions.sh PROGRAM OUTPUT: counts the instructions per operation of each path of the
# data plane with callgrind, writes them as JSON and fails where one is above its limit.

program=$1
output=$2
failed=0
json=

count() # count PATH LIMIT FUNCTION NAME: the path's instructions per operation into $json
{
	profile=$output.$1.callgrind
	operations=$(timeout 300 valgrind --tool=callgrind --toggle-collect="bench_$3" \
		--callgrind-out-file="$profile" "$program" "$1" 2>"$profile.log") || {
		cat "$profile.log"
		return 1
	}
	total=$(sed -n 's/^\(totals\|summary\): \([0-9]*\).*/\2/p' "$profile" | tail -n 1)
	if [ "${operations:-0}" -lt 20000 ] || [ "${total:-0}" -eq 0 ]; then
		echo "$1: nothing counted (${operations:-no} operations, ${total:-no} instructions)"
		return 1
	fi
	per=$(echo "$total $operations" | awk '{ printf "%.1f", $1 / $2 }')
	echo "$1: $per instructions per operation ($operations operations, limit $2)"
	json="$json${json:+, }\"$4\": $per"
	echo "$per $2" | awk '{ exit !($1 <= $2) }' || {
		echo "$1: above its limit of $2"
		return 1
	}
}

count put8 55 put8 put8_hns1825 || failed=1
count put8_every16 55 put8 put8_every16_hns1825 || failed=1
count put8_batch16 40 put8_batch16 put8_batch16_hns1825 || failed=1
count drain 12 drain drain_hns1825 || failed=1
count put8_xscale 72 put8_xscale put8_xscale || failed=1
count put8_every16_xscale 72 put8_xscale put8_every16_xscale || failed=1
count put8_batch16_xscale 55 put8_batch16_xscale put8_batch16_xscale || failed=1
count drain_xscale 12 drain_xscale drain_xscale || failed=1
# Counted, not limited: the kernel's part costs far more.
count put8_rxe 1000 put8_rxe put8_rxe || failed=1
echo "{$json}" >"$output"
exit $failed
