#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# instructions.sh PROGRAM OUTPUT: counts the instructions per operation of each path of the
# data plane with callgrind, writes them as JSON and fails where one is above its limit.

program=$1
output=$2
failed=0
json=

count() # count PATH ENGINE LIMIT [NAME]: the path's instructions per operation into $json
{
	profile=$output.$1.$2.callgrind
	operations=$(timeout 300 valgrind --tool=callgrind \
		--toggle-collect="bench_${1%_every16}_$2" --callgrind-out-file="$profile" \
		"$program" "$1" "$2" 2>"$profile.log") || {
		cat "$profile.log"
		return 1
	}
	total=$(sed -n 's/^\(totals\|summary\): \([0-9]*\).*/\2/p' "$profile" | tail -n 1)
	if [ "${operations:-0}" -lt 20000 ] || [ "${total:-0}" -eq 0 ]; then
		echo "$1 $2: nothing counted (${operations:-no} operations, ${total:-no}" \
			"instructions)"
		return 1
	fi
	per=$(echo "$total $operations" | awk '{ printf "%.1f", $1 / $2 }')
	echo "$1 $2: $per instructions per operation ($operations operations, limit $3)"
	json="$json${json:+, }\"${4:-$1}_$2\": $per"
	echo "$per $3" | awk '{ exit !($1 <= $2) }' || {
		echo "$1 $2: above its limit of $3"
		return 1
	}
}

count put8 hns1825 55 || failed=1
count put8_every16 hns1825 55 || failed=1
count put8_batch16 hns1825 40 || failed=1
count drain hns1825 12 || failed=1
count put8_shared hns1825 150 || failed=1
count put8_shared_every16 hns1825 150 || failed=1
# Where 16 share a doorbell they share a completion, too.
count put8 in_die 52 || failed=1
count put8_every16 in_die 52 || failed=1
count put8_batch16_every16 in_die 40 put8_batch16 || failed=1
count drain in_die 12 || failed=1
count put8_shared in_die 150 || failed=1
count put8_shared_every16 in_die 150 || failed=1
count put8 udma 52 || failed=1
count put8_every16 udma 52 || failed=1
count put8_batch16_every16 udma 40 put8_batch16 || failed=1
count drain udma 12 || failed=1
count put8_shared udma 150 || failed=1
count put8_shared_every16 udma 150 || failed=1
count put8 xscale 72 || failed=1
count put8_every16 xscale 72 || failed=1
count put8_batch16_every16 xscale 55 put8_batch16 || failed=1
count drain xscale 12 || failed=1
count put8_shared xscale 150 || failed=1
count put8_shared_every16 xscale 150 || failed=1
# Counted, not limited: the kernel's part costs far more.
count put8 rxe 1000 || failed=1
echo "{$json}" >"$output"
exit $failed
