#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# find-peer.sh OUTPUT MODULE.SYMVERS RELEASE MACHINE [OFED]
#
# Finds the RDMA core with the peer-memory interface that modules of this kernel will meet, and
# prints the directory of its headers, nothing if there is none. If it is not the kernel's own,
# OUTPUT has the versions of the interface's two symbols: of no others, since all other modules
# are built with the kernel's headers and must not load on another core.
#
# An OFED that was built for this very release replaces the kernel's core, whatever that has.
# One that is only lying around comes after it. OFED names a directory to be looked at in place
# of all these.

set -eu

output=$1 symvers=$2 release=$3 machine=$4 ofed=${5:-}

has_interface() # has_interface MODULE.SYMVERS
{
	[ -r "$1" ] && awk '$2 ~ /^ib_(un)?register_peer_memory_client$/ { n++ } END { exit n < 2 }' "$1"
}

try() # try DIRECTORY: ends the search if it is there
{
	has_interface "$1/Module.symvers" || return 0
	mkdir -p "$(dirname "$output")"
	awk '$2 ~ /^ib_(un)?register_peer_memory_client$/' "$1/Module.symvers" >"$output.new"
	if cmp -s "$output.new" "$output"; then rm "$output.new"; else mv "$output.new" "$output"; fi
	echo "$1/include"
	exit 0
}

[ "$machine" != arm64 ] || machine=aarch64
if [ -n "$ofed" ]; then
	try "$ofed"
else
	try "/usr/src/ofa_kernel/$machine/$release"
	try "/usr/src/ofa_kernel/$release"
fi
rm -f "$output"
if [ -z "$ofed" ]; then
	if has_interface "$symvers"; then
		echo include
		exit 0
	fi
	try /usr/src/ofa_kernel/default
	for dkms in /var/lib/dkms/mlnx-ofed-kernel/*/build; do
		try "$dkms"
	done
fi
