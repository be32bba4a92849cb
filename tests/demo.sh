#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# demo.sh BUILD-DIRECTORY: the main job on software hardware. Vector cores of 2 and of 4 NPUs, each
# in a process of its own, put, get and copy files between their memories; all of it is verified.

build=${1:-build}
perf=$build/bin/nda-perf
failed=0

step() # step ARGUMENT...: runs nda-perf and remembers a failure
{
	echo
	echo "\$ nda-perf $*"
	timeout -k 5 60 "$perf" "$@" && return
	echo "demo: nda-perf $1: failed with status $?" >&2
	failed=1
}

for pes in 2 4; do
	for op in put get; do
		step $op --pes $pes --sizes 8,4096,64K,1M --seconds 0.1 --batch 8 --verify
	done
done
set -- "$build"/lib/lib*.so /bin/sh
[ ! -f /usr/bin/perl ] || set -- "$@" /usr/bin/perl
step copy --pes 2 "$@"
step copy --pes 4 "$@"

echo
if [ $failed -ne 0 ]; then
	echo "demo: failed"
	exit 1
fi
echo "demo: every message was verified, every SHA-256 sum matches"
