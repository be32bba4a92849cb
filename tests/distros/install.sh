#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# install.sh: installs what is built into this system, uses it as programs do, and uninstalls it.
# For a system that was made to be tested in.

set -eux
cd "$(dirname "$0")/../.."

files()
{
	find / -xdev \( -path /nda -o -path /proc -o -path /tmp -o -path /var -o -path /etc/ld.so.cache \
		\) -prune -o ! -type d -print | sort
}

work=$(mktemp -d)
ldconfig
files >"$work/before"
where="PREFIX=/usr LIBDIR=/usr/lib/$(gcc -print-multiarch) RPATH="
# Word splitting is meant.
# shellcheck disable=SC2086
make install install-config $where
ldconfig
[ ! -x build/bin/nda-perf ] || nda-perf put --nic soft:hns1825 --pes 2 --sizes 8,64K --verify
program() # program NAME LIBRARY
{
	# shellcheck disable=SC2046
	gcc -std=c11 -Wall -Wextra -Werror -o "$work/$1" "tests/packages/$1_program.c" \
		$(pkg-config --cflags --libs "$2")
}
program extend libibv_extend
program nda libnda
"$work/extend"
"$work/nda" soft | grep -x "opened soft"
# The communication layer opens it by this name.
python3 -c 'import ctypes; ctypes.CDLL("libibv_extend.so").ibv_open_extend'
# shellcheck disable=SC2086
make uninstall uninstall-config $where
files >"$work/after"
diff "$work/before" "$work/after"
