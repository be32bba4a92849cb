#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# modules.sh DIRECTORY VERSION OUTPUT: builds the modules and those of tests for that kernel, whose
# headers are installed, in DIRECTORY/modules/VERSION, and puts them into OUTPUT.

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
mkdir -p "$work/kmod/include" "$work/test" "$output"
cp -r kmod/. "$work/kmod"
cp -r include/uapi "$work/kmod/include"
cp tests/vm/modules/* "$work/test"
# shellcheck source=packaging/META
. packaging/META
build kmod NDA_VERSION="$NDA_VERSION"
build test KBUILD_EXTRA_SYMBOLS="$(realpath "$work/kmod")/Module.symvers"
rm -f "$output"/*.ko
cp "$work"/kmod/*.ko "$work"/test/*.ko "$output"
