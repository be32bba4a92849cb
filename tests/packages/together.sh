#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# All packages of user space: what of them is whose, and an upgrade from an older version.

# Functions that check calls; formats of dpkg-query.
# shellcheck disable=SC2317,SC2016
set -u
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
userspace=$(echo "$ours" | sed 's/ *nda-dkms//')

no_file_twice()
{
	for deb in "$start"/new/*.deb; do
		dpkg-deb -c "$deb" | awk '$1 !~ /^d/ { print $6 }'
	done | sort | uniq -d | grep . && return 1
	return 0
}

# A library's file is of a package that says which versions of its symbols there are.
versions_are() # versions_are VERSION
{
	# shellcheck disable=SC2086
	in_root "$root" dpkg-query -W -f '${Package} ${Version}\n' $userspace >"$work/versions" &&
		awk -v want="$1" '
			{ print }
			$2 != want && $2 !~ "nda" want "$" { wrong = 1 }
			END { exit wrong || NR == 0 }' "$work/versions"
}

check 'no two packages have a file of one name' no_file_twice

new_root dev
# shellcheck disable=SC2086
{
	check 'the older packages: what they need can be installed' with_dependencies old $userspace
	check 'the older packages can be installed' apt_in "$root" install $userspace
}
check 'they are the older ones' versions_are 0.0.1
conf=/etc/libibverbs_extend.d/nda_rxe.driver
echo '# changed by an administrator' >>"$root$conf"
check 'the newer packages can be seen' use_repository "$root" "$start/new"
would_install() # would_install PACKAGE ANOTHER: to upgrade the first takes the other along
{
	says "Inst $2 [0.0.1]" apt-get -s -q --no-install-recommends install "$1"
}
check 'libnda1 comes with the drivers of its release' would_install libnda1 nda-extend-drivers
check 'the drivers come with their libnda1' would_install nda-extend-drivers libnda1
check 'the upgrade works' apt_in "$root" dist-upgrade
# shellcheck source-path=SCRIPTDIR source=../../packaging/META
. "$(dirname "$0")/../../packaging/META"
check 'all are upgraded' versions_are "$NDA_VERSION"
check 'the administrator'"'"'s change is still there' says 'changed by an administrator' cat $conf
check 'nda-perf runs' in_root "$root" nda-perf put --nic soft:hns1825 --pes 2 --sizes 8 --verify
# shellcheck disable=SC2086
check 'all are purged without a trace' purge $userspace

finish
