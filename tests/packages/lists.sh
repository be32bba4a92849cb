#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The RPM packages in build/rpm have the files of the Debian packages, each of its counterpart.

set -u
passed=0 failed=0
build=$NDA_TEST_BUILD
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# Where distributions differ: the libraries' directory, what lies beside documents, compressed
# pages, and what only one package manager knows of.
common_names()
{
	sed -E -e 's|^\./|/|' -e 's|^/lib/|/usr/lib/|' -e 's|/lib/[a-z0-9_]+-linux-gnu[a-z0-9_]*/|/lib64/|' \
		-e 's|(/man/.*)\.gz$|\1|' |
		grep -vE '^/usr/share/(doc|licenses|lintian)/|^/usr/lib/\.build-id' | sort
}

compare() # compare DEB RPM: names without versions
{
	deb=$(echo "$build/deb/$1"_*.deb) rpm=$(echo "$build"/rpm/RPMS/*/"$2"-[0-9]*.rpm)
	if ! dpkg-deb --fsys-tarfile "$deb" | tar -t | grep -v '/$' | common_names >"$work/deb" ||
		! rpm -qp --qf '[%{FILEMODES:perms} %{FILENAMES}\n]' "$rpm" |
			sed -n '/^d/!s/^[^ ]* //p' | common_names >"$work/rpm" ||
		! [ -s "$work/deb" ] || ! diff "$work/deb" "$work/rpm"; then
		echo "FAILED: $1 and $2 differ"
		failed=$((failed + 1))
	else
		passed=$((passed + 1))
	fi
}

compare libibv-extend4 libibv_extend
compare libibv-extend-dev libibv_extend-devel
compare libnda1 libnda
compare libnda-dev libnda-devel
compare nda-extend-drivers nda-extend-drivers
compare nda-utils nda-utils
compare nda-dkms nda-dkms

echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
