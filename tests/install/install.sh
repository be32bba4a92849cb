#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make install and uninstall: what goes where, and that nothing of it stays.

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/script.sh
. tests/script.sh
root=$dir/root

elsewhere() { (cd "$root" && find . ! -type d ! -path './opt/*' | grep .); }
files() { (cd "$root" && find . ! -type d | grep .); }
# Directories that no system has by itself.
own_directories()
{
	(cd "$root" && find . -depth -type d | grep -E '/(nda[^/]*|uapi|libibverbs_extend\.d)$')
}

run make -s install DESTDIR="$root" PREFIX=/opt
check "it installs" exits 0
for name in bin/nda-perf bin/nda-info lib/libibv_extend.so lib/libibv_extend.so.4 lib/libnda.so.1 \
	lib/libnda_rxe.so lib/libnda_soft.so lib/pkgconfig/libnda.pc include/ibv_extend.h \
	include/nda/aiv/device.h share/man/man1/nda-info.1 share/man/man3/ibv_open_extend.3; do
	check "$name is there" there_is "$root/opt/$name"
done
check "all of it is below the prefix" [ -z "$(elsewhere)" ]
run "$root/opt/bin/nda-perf" put --pes 2 --sizes 8 --iterations 10 --verify
check "what is installed runs" exits 0

run make -s install-config DESTDIR="$root" PREFIX=/opt
check "Soft-RoCE's driver is named to all programs" \
	grep -qx 'driver nda_rxe' "$root/etc/libibverbs_extend.d/nda_rxe.driver"

echo mine >"$root/opt/include/nda/mine.h"
run make -s uninstall uninstall-config DESTDIR="$root" PREFIX=/opt
check "it uninstalls" exits 0
check "what is somebody else's is all that stays" [ "$(files)" = ./opt/include/nda/mine.h ]
rm "$root/opt/include/nda/mine.h"
run make -s install DESTDIR="$root" PREFIX=/opt
run make -s uninstall DESTDIR="$root" PREFIX=/opt
check "no file stays" [ -z "$(files)" ]
check "nor a directory that only nda has" [ -z "$(own_directories)" ]

# Where make was called, not where it keeps what it has installed for comparison.
relative=$(realpath --relative-to=. "$dir")/relative
run make -s install-config DESTDIR="$relative" PREFIX=/opt
check "a relative DESTDIR is taken" there_is "$dir/relative/etc/libibverbs_extend.d/nda_rxe.driver"
run make -s uninstall-config DESTDIR="$relative" PREFIX=/opt
check "there, too, no file stays" [ -z "$(find "$dir/relative" ! -type d)" ]

# Each compares with its own.
run make -s install install-config install-udev DESTDIR="$root" PREFIX=/opt
run make -s -j3 uninstall uninstall-config uninstall-udev DESTDIR="$root" PREFIX=/opt
check "several at a time uninstall" exits 0
check "all of theirs" [ -z "$(files)" ]

sum_up
