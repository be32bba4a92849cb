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

fails() { ! "$@"; }
not_added() { in_root "$root" dkms status >"$work/status" && ! grep nda "$work/status"; }

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
touch "$root/etc/dkms/no-autoinstall"
check 'without automatic builds: nda-dkms can be installed' apt_in "$root" install nda-dkms
check 'without automatic builds: nothing is built' not_added
rm "$root/etc/dkms/no-autoinstall"
check 'without automatic builds: nda-dkms is purged without a trace' purge nda-dkms
# The second kernel comes after the older package.
first=${kernels%% *} second=${kernels##* }
mv "$root/lib/modules/$second" "$work/"
check 'the older nda-dkms can be installed' apt_in "$root" install nda-dkms
check "the older modules are installed for $first" installed_for 0.0.1 "$first"
mv "$work/$second" "$root/lib/modules/"
check 'the newer packages can be seen' use_repository "$root" "$start/new"
# One that nothing can be built for, which DKMS comes to first.
broken=$root/lib/modules/0.0.0-broken
mkdir -p "$broken/build/include"
echo '$(error broken)' >"$broken/build/Makefile"
printf 'CONFIG_%s=y\n' MODULES PCI DMA_SHARED_BUFFER MMU_NOTIFIER IOMMU_API >"$broken/build/.config"
check 'the upgrade fails where a kernel is broken' fails apt_in "$root" install nda-dkms
for kernel in $first $second; do
	check "the modules are installed for $kernel" installed_for "$NDA_VERSION" "$kernel"
done
rm -r "$broken"
check 'without that kernel it can be configured' in_root "$root" dpkg --configure nda-dkms
check 'the older ones are gone' sh -c "! ls -d $root/usr/src/nda-0.0.1 $root/var/lib/dkms/nda/0.0.1"
check 'nda-dkms is purged without a trace' purge nda-dkms
check 'the group stays' says nda: grep '^nda:' /etc/group

finish
