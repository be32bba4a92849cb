#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# nda-dkms, in a system with the headers of two kernels, of which none is the running one: the
# modules are built for both, also when the package is upgraded, and go without a trace.

# Functions that check calls; formats of dpkg-query.
# shellcheck disable=SC2317,SC2016
set -u
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source-path=SCRIPTDIR source=../../packaging/META
. "$(dirname "$0")/../../packaging/META"

installed_for() # installed_for VERSION KERNEL
{
	in_root "$root" dkms status >"$work/status" || return 1
	cat "$work/status"
	grep -q "^nda/$1, $2,.*: installed" "$work/status" || return 1
	for module in nda nda_ascend nda_peermem nda_soft; do
		in_root "$root" modinfo -k "$2" -F version "$module" || return 1
	done | sort -u >"$work/versions"
	cat "$work/versions"
}

new_root dev
check 'without headers: what nda-dkms needs can be installed' with_dependencies new nda-dkms
check 'without headers: nda-dkms can be installed' apt_in "$root" install nda-dkms
check 'without headers: it waits for them' says nda/ dkms status
check 'without headers: nda-dkms is purged without a trace' purge nda-dkms

new_root dkms
kernels=$(cd "$root/lib/modules" && echo *)
check 'what nda-dkms needs can be installed' with_dependencies old nda-dkms
# DKMS has depmod write these, for modules of anybody's.
for kernel in $kernels; do
	in_root "$root" depmod "$kernel" 2>/dev/null
done
list_files >"$work/before"
# The second kernel comes after the older package.
first=${kernels%% *} second=${kernels##* }
mv "$root/lib/modules/$second" "$work/"
check 'the older nda-dkms can be installed' apt_in "$root" install nda-dkms
check "the older modules are installed for $first" installed_for 0.0.1 "$first"
mv "$work/$second" "$root/lib/modules/"
check 'the newer packages can be seen' use_repository "$root" "$start/new"
check 'the upgrade works' apt_in "$root" install nda-dkms
for kernel in $first $second; do
	check "the modules are installed for $kernel" installed_for "$NDA_VERSION" "$kernel"
done
check 'the older ones are gone' sh -c "! ls -d $root/usr/src/nda-0.0.1 $root/var/lib/dkms/nda/0.0.1"
check 'nda-dkms is purged without a trace' purge nda-dkms
check 'the group stays' says nda: grep '^nda:' /etc/group

finish
