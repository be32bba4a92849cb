#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The RPM packages and what they run, by rpm on Debian, which knows nothing of what they depend on.

# Functions that check calls.
# shellcheck disable=SC2317
set -u
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source-path=SCRIPTDIR source=../../packaging/META
. "$(dirname "$0")/../../packaging/META"
rpms=$(readlink -f "$NDA_TEST_BUILD/rpm")

start_rpm() # in a new root: what systems with rpm have, and this has not
{
	mkdir -p "$root/usr/share/licenses" "$root/usr/src/kernels" && rpm_in --initdb
}

rpm_in() # rpm_in ARGUMENT...: of rpm, about the root
{
	# shellcheck disable=SC2016
	unshare --mount --pid --fork --kill-child sh -c '
		root=$1
		shift
		mount -t proc proc "$root/proc" &&
			exec rpm --root "$root" --dbpath /var/lib/rpm "$@"' rpm "$root" "$@"
}

erased() # erased PACKAGE...: and nothing is there but what was there before
{
	rpm_in -e --nodeps "$@" || return 1
	list_files >"$work/after"
	diff "$work/before" "$work/after"
}

built_since() # built_since FILE KERNEL
{
	find "$root/var/lib/dkms/nda/$NDA_VERSION/$2" -name make.log -newer "$1" | grep .
}

# A newer release of the same version.
rebuilt()
{
	rpmbuild --rebuild --nodeps --define "_topdir $work/rpm" --define 'dist .2' \
		"$rpms/SRPMS/nda-dkms-$NDA_VERSION"-*.src.rpm
}

# Stands in for kernel-devel.
headers_package()
{
	cat >"$work/headers.spec" <<-'TEXT'
		Name: kernel-devel
		Version: 1
		Release: 1
		Summary: Headers
		License: None
		BuildArch: noarch
		%description
		Headers.
		%install
		mkdir -p %{buildroot}/usr/src/kernels/1
		touch %{buildroot}/usr/src/kernels/1/Makefile
		%files
		/usr/src/kernels/1
	TEXT
	rpmbuild -bb --define "_topdir $work/rpm" "$work/headers.spec"
}

new_root run
check 'user space: the package manager starts' start_rpm
list_files >"$work/before"
check 'user space: can be installed' rpm_in -U --nodeps "$rpms"/RPMS/*/libibv_extend-[0-9]*.rpm \
	"$rpms"/RPMS/*/libnda-[0-9]*.rpm "$rpms"/RPMS/*/nda-extend-drivers-[0-9]*.rpm \
	"$rpms"/RPMS/*/nda-utils-[0-9]*.rpm
with_systemd
check 'user space: goes without a trace' erased nda-utils nda-extend-drivers libnda libibv_extend
check 'nda-utils: its Soft-RoCE devices are stopped' stopped

new_root dkms
check 'nda-dkms: what it needs can be installed' with_dependencies new nda-dkms
check 'nda-dkms: what dkms --rpm_safe_upgrade needs can be installed' apt_in "$root" install procps
kernels=$(cd "$root/lib/modules" && echo *)
first=${kernels%% *} second=${kernels##* }
for kernel in $first $second; do
	in_root "$root" depmod "$kernel" 2>/dev/null
done
check 'nda-dkms: the package manager starts' start_rpm
list_files >"$work/before"
mv "$root/lib/modules/$second" "$work/"
check 'nda-dkms: can be installed' rpm_in -U --nodeps \
	"$rpms/RPMS/noarch/nda-dkms-$NDA_VERSION"-*.rpm
check "nda-dkms: the modules are installed for $first" installed_for "$NDA_VERSION" "$first"
touch "$work/then"
check 'nda-dkms: a newer release can be built' rebuilt
check 'nda-dkms: the upgrade works' rpm_in -U --nodeps \
	"$work/rpm/RPMS/noarch/nda-dkms-$NDA_VERSION"-*.rpm
check 'nda-dkms: the newer release is built anew' built_since "$work/then" "$first"
check "nda-dkms: it is installed for $first" installed_for "$NDA_VERSION" "$first"
mv "$work/$second" "$root/lib/modules/"
check 'headers can be packed' headers_package
check 'headers can be installed' rpm_in -U --nodeps "$work"/rpm/RPMS/noarch/kernel-devel-*.rpm
check "nda-dkms: with its headers comes $second" installed_for "$NDA_VERSION" "$second"
check 'nda-dkms: goes without a trace' erased kernel-devel nda-dkms

finish
