#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# modules.sh DIRECTORY NAME [ARGUMENT...]: builds the modules and those of tests for the kernel NAME
# that base.sh made in DIRECTORY, with the arguments for make, in DIRECTORY/kernels/NAME/modules,
# and puts them into DIRECTORY/kernels/NAME/kmod; into kmod/faults go nda.ko, nda_soft.ko and
# nda_peermem.ko with faults/, and what asks that nda.ko for symbols; into kmod/peer nda.ko and
# nda_peermem.ko built where the RDMA core that stands in has the peer-memory interface, as for
# kmod/faults, into kmod/peer-other the latter built where its symbols have other versions.
# What the compiler and the checkers said is in kmod/log.

set -eu

here=$(dirname "$0")
dir=$1 name=$2
shift 2
work=$dir/kernels/$name/modules output=$dir/kernels/$name/kmod

build() # build FOLDER ARGUMENT...
{
	folder=$work/$1
	shift
	# Nobody debugs in the machine, and it unpacks and loads less so.
	if ! "$here/kbuild.sh" "$dir" "$name" "$folder" -s KCFLAGS=-g0 "$@" modules \
		>>"$output/log" 2>&1; then
		cat "$output/log"
		exit 1
	fi
}

echo "  KBUILD  $output"
mkdir -p "$work/kmod/include" "$work/faults/include" "$work/test" "$work/test-faults" \
	"$work/ofed/include/rdma" "$output/faults" "$output/peer" "$output/peer-other"
: >"$output/log"
# With their times, so that only what has changed is built.
for copy in kmod faults; do
	cp -a kmod/. "$work/$copy"
	cp -a include/uapi "$work/$copy/include"
done
cp -a tests/vm/faults/faults.* "$work/faults"
cat tests/vm/faults/Kbuild.more >>"$work/faults/Kbuild"
cp -a tests/vm/modules/* "$work/test"
# shellcheck source=packaging/META
. packaging/META
symbols=$(realpath "$work")
build kmod NDA_VERSION="$NDA_VERSION" "$@"
build test KBUILD_EXTRA_SYMBOLS="$symbols/kmod/Module.symvers" "$@"
rm -f "$output"/*.ko "$output"/faults/*.ko
cp "$work"/kmod/*.ko "$work"/test/*.ko "$output"

# An RDMA core beside the kernel's: its header, and its symbols' versions.
cp kmod/compat/include/rdma/peer_mem.h "$work/ofed/include/rdma"
cp "$work/test/Module.symvers" "$work/ofed/Module.symvers"
# The probes' answers are the same.
cp "$work/kmod/compat/config.h" "$work/faults/compat"
build faults NDA_VERSION="$NDA_VERSION" NDA_OFED="$symbols/ofed"
# What it includes besides gives nda.ko's symbols other versions.
cp -a tests/vm/modules/Kbuild tests/vm/modules/nda_test_edu.? "$work/test-faults"
build test-faults KBUILD_EXTRA_SYMBOLS="$symbols/faults/Module.symvers"
cp "$work"/faults/*.ko "$work"/test-faults/*.ko "$output/faults"

build kmod NDA_VERSION="$NDA_VERSION" NDA_OFED="$symbols/ofed" "$@"
cp "$work/kmod/nda.ko" "$work/kmod/nda_peermem.ko" "$output/peer"
sed -i 's/^0x.......\(.\)\(.*\tib_.*register_peer_memory_client\t\)/0x1234567\1\2/' \
	"$work/ofed/Module.symvers"
build kmod NDA_VERSION="$NDA_VERSION" NDA_OFED="$symbols/ofed" "$@"
cp "$work/kmod/nda_peermem.ko" "$output/peer-other"
