#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The tests of groups and of processes once more, with doorbells that are host addresses: mapped for
# the cores, and with mapping disabled, so that all of them are proxied.

build=${NDA_TEST_BUILD:-build}
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

for way in map proxy; do
	echo "NDA_TEST_DOORBELL=$way"
	NDA_TEST_DOORBELL=$way tests/run.sh "$build" "$build"/tests/nda_group_test \
		"$build"/tests/nda_engines_test "$build"/tests/nda_view_test \
		"$build"/tests/nda_process_test
done >"$log" 2>&1
cat "$log"
awk '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { ways++; p += $1; f += $3; s += $5 }
	END { print p + 0 " passed, " f + 0 " failed, " s + 0 " skipped"; exit f > 0 || ways != 2 }' "$log"
