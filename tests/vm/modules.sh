#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# modules.sh DIRECTORY VERSION OUTPUT: builds the modules and those of tests for that kernel, whose
# headers are installed, in DIRECTORY/modules/VERSION, and puts them into OUTPUT; into
# OUTPUT/faults go nda.ko with faults/ and the tests' modules built against it.

set -eu

work=$1/modules/$2 output=$3
kdir=/lib/modules/$2/build

build() # build FOLDER ARGUMENT...
{
	folder=$work/$1
	shift
	if ! make -s -C "$kdir" M="$(realpath "$folder")" "$@" modules >"$folder/log" 2>&1; then
		cat "$folder/log"
		exit 1
	fi
}

echo "  KBUILD  $output"
mkdir -p "$work/kmod/include" "$work/faults/include" "$work/test" "$work/test-faults" \
	"$output/faults"
# With their times, so that only what has changed is built.
for copy in kmod faults; do
	cp -a kmod/. "$work/$copy"
	cp -a include/uapi "$work/$copy/include"
done
cp -a tests/vm/faults/faults.* "$work/faults"
cat tests/vm/faults/Kbuild.more >>"$work/faults/Kbuild"
for copy in test test-faults; do
	cp -a tests/vm/modules/* "$work/$copy"
done
# shellcheck source=packaging/META
. packaging/META
build kmod NDA_VERSION="$NDA_VERSION"
# The probes' answers are the same.
cp "$work/kmod/compat/config.h" "$work/faults/compat"
build faults NDA_VERSION="$NDA_VERSION"
build test KBUILD_EXTRA_SYMBOLS="$(realpath "$work/kmod")/Module.symvers"
build test-faults KBUILD_EXTRA_SYMBOLS="$(realpath "$work/faults")/Module.symvers"
rm -f "$output"/*.ko "$output"/faults/*.ko
cp "$work"/kmod/*.ko "$work"/test/*.ko "$output"
cp "$work"/faults/*.ko "$work"/test-faults/*.ko "$output/faults"
