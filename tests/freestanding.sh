#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# freestanding.sh OBJECT SOURCE COMPILER...: compiles the device side as a device compiler would
# and looks at the object: it includes nothing but stdint.h and stddef.h, has no static data, no
# table that the compiler made, and calls nothing that a device lacks.

object=$1
source=$2
shift 2
flags="-std=c++17 -ffreestanding -fno-exceptions -fno-rtti -fno-threadsafe-statics -nostdinc++
	-fno-asynchronous-unwind-tables -mgeneral-regs-only -Iinclude -I. -Wall -Wextra -Wshadow -Werror"
failed=0

fail() # fail WHAT LINES
{
	echo "$source: $1:"
	echo "$2" | sed 's/^/  /'
	failed=1
}

mkdir -p "$(dirname "$object")"
for compiler in "$@"; do
	for level in -O1 -O2 -O3; do
		# shellcheck disable=SC2086
		$compiler $flags $level -c -o "$object" $source || { failed=1; continue; }
		# shellcheck disable=SC2086
		others=$($compiler $flags -M $source | tr -s "\\\\ " "\n" | grep '\.h$' |
			grep -vE '^include/nda/|^tests/mock/ascendc/|/(stdint|stdint-gcc|stddef|__stddef_[a-z_]*)\.h$')
		[ -z "$others" ] || fail "$compiler: includes" "$others"
		# A .LC is a constant that the compiler keeps beside its code: no data of ours.
		data=$(nm "$object" | grep -E ' [bBcCdDgGrRsSvV] ' | grep -v ' \.LC[0-9]*$')
		[ -z "$data" ] || fail "$compiler $level: static data" "$data"
		sections=$(size -A "$object" | awk '/^\.(data|bss|rodata)( |$)/ && $2 > 0')
		[ -z "$sections" ] || fail "$compiler $level: sections with data" "$sections"
		calls=$(nm -u "$object")
		[ -z "$calls" ] || fail "$compiler $level: calls to" "$calls"
	done
done
exit $failed
