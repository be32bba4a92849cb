#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# kbuild.sh DIRECTORY NAME MODULES [ARGUMENT...]: make of the modules in the folder MODULES, for the
# kernel NAME that kernel.sh or base.sh fetched into DIRECTORY, by that kernel's compiler. The
# build may see nothing but MODULES and its neighbours.

set -eu

kernel=$1/kernels/$2
build=$(cat "$kernel/build")
modules=$(cd "$3" && pwd)
shift 3
jobs=-j$(nproc)
# The make that calls this has flags and jobs of its own.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

if [ ! -e "$kernel/chroot" ]; then
	exec make "$jobs" -C "$build" M="$modules" "$@"
fi

[ "$(id -u)" -eq 0 ] || {
	echo "kbuild.sh: needs root: kernel $(basename "$kernel") is built in a root of its own" >&2
	exit 1
}
# Mounts of this process alone: they end with it. The modules have the same path inside.
# shellcheck disable=SC2016
exec unshare -m sh -eu -c '
	root=$1 folder=$2
	shift 2
	mkdir -p "$root$folder"
	mount --bind "$folder" "$root$folder"
	mount --bind /dev "$root/dev"
	mount -t proc proc "$root/proc"
	exec chroot "$root" /usr/bin/env -i PATH=/usr/bin:/usr/sbin HOME=/tmp LC_ALL=C make "$@"
' sh "$(cd "$kernel/root" && pwd)" "$(dirname "$modules")" "$jobs" -C "$build" M="$modules" "$@"
