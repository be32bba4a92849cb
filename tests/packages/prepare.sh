#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# prepare.sh DEB-DIRECTORY DIRECTORY: what the tests of packages start from, in DIRECTORY:
#
#   new, old        repositories of the packages that were built, and of the same with the version
#                   0.0.1, which it was before
#   run, dev, dkms  roots of the distribution's packages: the least; with a compiler; with the
#                   headers of two kernels. What our packages depend on is downloaded in them, not
#                   installed
#
# Roots are kept until this file changes.

set -eu
deb=$(realpath "$1") out=$(realpath -m "$2")
mkdir -p "$out"
cd "$(dirname "$0")"
# shellcheck source-path=SCRIPTDIR source=root.sh
. ./root.sh

repository() # repository DIRECTORY
{
	(cd "$1" && dpkg-scanpackages --multiversion . 2>/dev/null >Packages)
}

# Versions stand in dependencies, in scripts, in DKMS's configuration and in its tree's name.
lowered() # lowered DEB TO-DIRECTORY
{
	work=$(mktemp -d -p "$out")
	dpkg-deb -R "$1" "$work"
	version=$(sed -n 's/^NDA_VERSION=//p' ../../packaging/META)
	for tree in "$work"/usr/src/nda-*; do
		[ ! -d "$tree" ] || mv "$tree" "${tree%-*}-0.0.1"
	done
	find "$work" -type f \( -path '*/DEBIAN/*' -o -name dkms.conf -o -path '*/modprobe.d/*' \) \
		-exec sed -i -E "s/(^|[^0-9.])$(echo "$version" | sed 's/\./\\./g')([^0-9.]|$)/\10.0.1\2/g" {} +
	(cd "$work" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' |
		xargs -0 md5sum >DEBIAN/md5sums)
	dpkg-deb -Znone -b "$work" "$2" >/dev/null
	rm -rf "$work"
}

# current NAME: whether that root is there, made by this file
current()
{
	[ "$(cat "$out/$1.key" 2>/dev/null)" = "$key" ]
}

make_root() # make_root NAME: calls fill_NAME with the directory
{
	! current "$1" || return 0
	rm -rf "${out:?}/$1" "$out/$1.key"
	"fill_$1" "$out/$1" >"$out/$1.log" 2>&1 || { cat "$out/$1.log"; return 1; }
	echo "$key" >"$out/$1.key"
}

# download ROOT PACKAGE...: what these depend on stays in the root's cache
download()
{
	root=$1
	shift
	use_repository "$root" "$out/new"
	apt_in "$root" install --download-only "$@"
}

fill_run()
{
	# shellcheck disable=SC2016
	sources | mmdebstrap --variant=minbase --mode=root --skip=cleanup/apt \
		--aptopt='Acquire::Languages "none"' --dpkgopt=force-unsafe-io \
		--setup-hook='mkdir -p "$1/etc/apt/apt.conf.d"
			apt-config dump | grep "^Acquire::https\\?::" >"$1/etc/apt/apt.conf.d/50host" || :' \
		"$codename" "$1" -
	cp -L /etc/resolv.conf "$1/etc/resolv.conf"
	apt_in "$1" clean
	download "$1" nda-utils
}

fill_dev()
{
	cp -a "$out/run" "$1"
	apt_in "$1" install g++ pkg-config
	apt_in "$1" clean
	download "$1" libibv-extend-dev libnda-dev nda-utils nda-dkms
}

# The distribution's own kernel, and the one of its backports. Headers may ask for their kernel
# itself, which nothing here needs: an empty package stands in for it.
fill_dkms()
{
	cp -a "$out/run" "$1"
	sources | awk -v codename="$codename" '
		$3 == codename { print $1, $2, codename "-backports", $4 }
		' >"$1/etc/apt/sources.list.d/backports.list"
	apt_in "$1" update
	headers=linux-headers-$(dpkg --print-architecture)
	apt_in "$1" install "$headers"
	apt_in "$1" -s install -t "$codename-backports" "$headers" >"$1.plan"
	sed -n 's/^Inst \(linux-image-[^ ]*\) (\([^ ]*\) .*/\1 \2/p' "$1.plan" | while read -r name version; do
		mkdir -p "$1/tmp/image/DEBIAN"
		printf '%s\n' "Package: $name" "Version: $version" "Maintainer: $name" \
			"Architecture: $(dpkg --print-architecture)" 'Description: stands in for a kernel' \
			>"$1/tmp/image/DEBIAN/control"
		in_root "$1" dpkg-deb -b /tmp/image /tmp/image.deb </dev/null
		in_root "$1" dpkg -i /tmp/image.deb </dev/null
		in_root "$1" apt-mark hold "$name" </dev/null
		rm -r "$1/tmp/image" "$1/tmp/image.deb"
	done
	apt_in "$1" install -t "$codename-backports" "$headers"
	rm "$1.plan"
	apt_in "$1" clean
	download "$1" nda-dkms
}

ls "$deb"/*.deb >/dev/null || { echo "prepare.sh: 'make deb' comes first" >&2; exit 1; }
[ "$(id -u)" -eq 0 ] || { echo 'prepare.sh: making roots needs root' >&2; exit 1; }
# shellcheck source=/dev/null
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
key="$(cat prepare.sh root.sh | cksum) $codename"

rm -rf "$out/new" "$out/old"
mkdir "$out/new" "$out/old"
for file in "$deb"/*.deb; do
	case $file in
	*-dbgsym_*) ;;
	*)
		cp "$file" "$out/new/"
		lowered "$file" "$out/old/"
		;;
	esac
done
repository "$out/new"
repository "$out/old"
make_root run
make_root dev &
dev=$!
make_root dkms
wait $dev
