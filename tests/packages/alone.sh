#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Each package of user space, alone in a system of the distribution's packages: it brings what it
# needs, it works, and it goes without a trace.

# Functions that check calls; formats of dpkg-query.
# shellcheck disable=SC2317,SC2016
set -u
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source-path=SCRIPTDIR source=../../packaging/META
. "$(dirname "$0")/../../packaging/META"

# alone FROM PACKAGE: installs it in a root of its own
alone()
{
	new_root "$1"
	package=$2
	check "$package: its dependencies can be installed" with_dependencies new "$package"
	check "$package: can be installed" apt_in "$root" install "$package"
	libdir=$(in_root "$root" sh -c 'echo /usr/lib/*-linux-gnu*')
}

gone()
{
	# shellcheck disable=SC2046
	check "$package: is purged without a trace" purge $(in_root "$root" dpkg-query -W -f \
		'${binary:Package}\n' | sed 's/:.*//' | grep -xF "$(echo "$ours" | tr ' ' '\n')")
}

# What nda-info would say of a library that is missing, of another version or elsewhere, or of a
# software NPU that cannot be opened.
finds_its_own()
{
	in_root "$root" nda-info --check --json >"$work/info"
	[ $? -le 1 ] && grep '"schema": ' "$work/info" && ! grep -E '"id": "(library|soft-npu)' "$work/info"
}

# compiles PKG-CONFIG-NAME FILE: into /tmp/program, with what pkg-config says
compiles()
{
	cp "$(dirname "$0")/$2" "$root/tmp/"
	in_root "$root" sh -ec "
		case $2 in
		*.c) gcc -std=c11 -Wall -Wextra -Werror -o /tmp/program /tmp/$2 \$(pkg-config --cflags --libs $1) ;;
		*) g++ -std=c++17 -Wall -Wextra -Werror -o /tmp/program /tmp/$2 \$(pkg-config --cflags --libs $1) ;;
		esac"
}

alone run libibv-extend4
check 'libibv-extend4: links' links "$libdir/libibv_extend.so"
# The communication layer opens it by this name.
check 'libibv-extend4: the loader finds the name without a version' \
	says "libibv_extend.so (" ldconfig -p
gone

alone run libnda1
check 'libnda1: links' links "$libdir/libnda.so.$NDA_ABI"
gone

alone run nda-extend-drivers
check 'nda-extend-drivers: links' links "$libdir/libnda_rxe.so" "$libdir/libnda_soft.so"
check 'nda-extend-drivers: only rxe is configured' says "driver nda_rxe" \
	sh -c 'cat /etc/libibverbs_extend.d/*'
gone

alone run nda-utils
for program in "$root"/usr/bin/nda-*; do
	program=${program#"$root"}
	check "nda-utils: $program links" links "$program"
	check "nda-utils: $program tells its version" says "$NDA_VERSION" "$program" --version
done
check 'nda-utils: nda-info finds what it came with' finds_its_own
for nic in hns1825 xscale in_die udma; do
	check "nda-utils: nda-perf moves data over $nic" in_root "$root" \
		nda-perf put --nic "soft:$nic" --pes 2 --sizes 8,64K --verify
done
with_systemd
gone
check 'nda-utils: its Soft-RoCE devices are stopped' stopped

alone dev libibv-extend-dev
check 'libibv-extend-dev: a program compiles' compiles libibv_extend extend_program.c
check 'libibv-extend-dev: it runs' says "$IBV_EXTEND_VERSION" /tmp/program
rm -f "$root/tmp/program" "$root/tmp/extend_program.c"
gone

alone dev libnda-dev
check 'libnda-dev: a kernel for the software NPU compiles' compiles libnda kernel_program.cc
check 'libnda-dev: a program compiles' compiles libnda nda_program.c
check 'libnda-dev: without drivers it names the one that is missing' \
	says "libnda_soft.so" /tmp/program soft
check 'nda-extend-drivers: can be installed beside' apt_in "$root" install nda-extend-drivers
check 'libnda-dev: with drivers it has an NPU' says 'opened soft' /tmp/program soft
check 'nda-extend-drivers: the search loads rxe, by its bare name' \
	says 'driver nda_rxe: loaded' /tmp/program search
rm -f "$root/tmp/program" "$root"/tmp/*.c "$root"/tmp/*.cc
gone

finish
