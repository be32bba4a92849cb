#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Installation to where the Ascend driver's package has its files: what is not ours stays.

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/script.sh
. tests/script.sh

version() # version NUMBER TEXT: a library of that number, with its links, and a header
{
	rm -rf "$dir/built"
	mkdir "$dir/built"
	echo "$2" >"$dir/built/libibv_extend.so.$1"
	ln -s "libibv_extend.so.$1" "$dir/built/libibv_extend.so.4"
	ln -s libibv_extend.so.4 "$dir/built/libibv_extend.so"
	echo "header $2" >"$dir/built/ibv_extend.h"
}

fresh() # fresh [NAME TEXT]...: a driver, with these files of its package
{
	driver=$dir/driver lib=$dir/driver/lib64/driver
	rm -rf "$driver"
	mkdir -p "$lib" "$driver/include"
	while [ $# -gt 0 ]; do
		echo "$2" >"$driver/$1"
		shift 2
	done
}

layout() # layout [FORCE=1]
{
	run env "$@" packaging/driver-layout install "$driver" "$dir/built/libibv_extend.so" \
		"$dir/built/ibv_extend.h"
}

remove()
{
	run packaging/driver-layout uninstall "$driver"
}

version 4.2.0 ours

fresh
layout
check "installs where there is nothing" exits 0
check "the library" holds "$lib/libibv_extend.so.4.2.0" ours
check "its name for programs" [ "$(readlink "$lib/libibv_extend.so.4")" = libibv_extend.so.4.2.0 ]
check "its name for dlopen" holds "$lib/libibv_extend.so" ours
check "the header" holds "$driver/include/ibv_extend.h" 'header ours'
layout
check "installs over its own" exits 0
remove
check "uninstalls" exits 0
check "nothing is left" [ -z "$(find "$driver" ! -type d)" ]
remove
check "has nothing to uninstall twice" exits 1

fresh lib64/driver/libibv_extend.so.4.2.0 theirs lib64/driver/libascend_hal.so hal
layout
check "a file of the driver's stops it" exits 1
check "it is named" says lib64/driver/libibv_extend.so.4.2.0
check "the way on is told" says FORCE=1
check "it is as it was" holds "$lib/libibv_extend.so.4.2.0" theirs
check "nothing else was done" [ "$(find "$driver" ! -type d | wc -l)" -eq 2 ]
layout FORCE=1
check "force replaces it" holds "$lib/libibv_extend.so.4.2.0" ours
check "a copy is kept" holds "$lib/libibv_extend.so.4.2.0.before-nda" theirs
check "and told" prints before-nda
layout
check "what replaced it is ours" exits 0
remove
check "uninstalling brings it back" holds "$lib/libibv_extend.so.4.2.0" theirs
check "the rest is gone" [ "$(find "$driver" ! -type d | wc -l)" -eq 2 ]

fresh
ln -s elsewhere "$lib/libibv_extend.so"
layout
check "a link that leads nowhere is a file of the driver's" exits 1
check "it is as it was" [ "$(readlink "$lib/libibv_extend.so")" = elsewhere ]

fresh lib64/driver/libibv_extend.so.4.2.0 theirs
layout FORCE=1
echo 'theirs, newer' >"$lib/libibv_extend.so.4.2.0"
layout
check "one that the driver's package has replaced is not ours any more" exits 1
layout FORCE=1
check "force keeps it, too" holds "$lib/libibv_extend.so.4.2.0.before-nda" 'theirs, newer'
check "and the older copy" holds "$lib/libibv_extend.so.4.2.0.before-nda.~1~" theirs
remove
check "the newest comes back" holds "$lib/libibv_extend.so.4.2.0" 'theirs, newer'

fresh
layout
echo changed >"$driver/include/ibv_extend.h"
remove
check "uninstalling leaves what was changed" holds "$driver/include/ibv_extend.h" changed
check "and says so" prints "$driver/include/ibv_extend.h"
check "the others go" absent "$lib/libibv_extend.so.4.2.0"

fresh include/ibv_extend.h 'header theirs'
layout FORCE=1
echo changed >"$driver/include/ibv_extend.h"
remove
check "nor does it overwrite it by what was kept" holds "$driver/include/ibv_extend.h" changed
check "which it names" prints "left, of an older driver: $driver/include/ibv_extend.h.before-nda"

fresh
layout
version 4.3.0 newer
layout
check "a newer version takes the place of ours" holds "$lib/libibv_extend.so" newer
check "whose file goes" absent "$lib/libibv_extend.so.4.2.0"

# As above, over a file of the driver's.
version 4.2.0 ours
fresh lib64/driver/libibv_extend.so.4.2.0 theirs
layout FORCE=1
version 4.3.0 newer
layout
check "a newer version brings back what ours stood in for" \
	holds "$lib/libibv_extend.so.4.2.0" theirs
check "and says so" prints "brought back $driver/lib64/driver/libibv_extend.so.4.2.0"
check "it is in place itself" holds "$lib/libibv_extend.so" newer
remove
check "uninstalling leaves the driver's" holds "$lib/libibv_extend.so.4.2.0" theirs
check "and nothing else" [ "$(find "$driver" ! -type d | wc -l)" -eq 1 ]

version 4.2.0 ours
fresh lib64/driver/libibv_extend.so.4.2.0 theirs
layout FORCE=1
version 4.3.0 newer
echo 'theirs, newer' >"$lib/libibv_extend.so.4.2.0"
layout
check "what the driver's package has put there since stays" \
	holds "$lib/libibv_extend.so.4.2.0" 'theirs, newer'
check "the older copy is named" prints "$lib/libibv_extend.so.4.2.0.before-nda"

fresh
layout
# As a run that was interrupted leaves it: some files are of the new version.
version 4.3.0 newest
cp "$driver/nda-installed" "$dir/old"
layout
cp "$dir/old" "$dir/both"
cat "$driver/nda-installed" >>"$dir/both"
cp "$dir/both" "$driver/nda-installed"
layout
check "an interrupted one is taken up again" exits 0

sum_up
