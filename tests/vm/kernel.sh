#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# kernel.sh DIRECTORY NAME: fetches another kernel of Debian than the installed one, by its series:
# its image, and what modules for it are built with. Nothing is installed. The packages come from
# the mirror that apt is configured with, their signatures are checked with the archive's keys.
#
# Makes in DIRECTORY/kernels/NAME: version, as uname -r says it; packages/linux-*.deb; root/, the
# unpacked headers; build, the path of the kernel's build files. Where the kernel's compiler is
# not this distribution's, root/ is a system with that compiler too, build is a path in it, and
# there is a file chroot. Once made they stay: remove the folder to get a newer release.

set -eu

fail()
{
	echo "kernel.sh: $*" >&2
	exit 1
}

[ $# -eq 2 ] || fail "needs a directory and a kernel"
mkdir -p "$1"
dir=$(cd "$1" && pwd)
name=$2
kernel=$dir/kernels/$name
root=$kernel/root
here=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)

case $name in
5.10) suite=bullseye ;;
6.1) suite=bookworm ;;
6.12) suite=trixie ;;
7.2) suite=sid ;;
*) fail "there is no kernel '$name': 5.10, 6.1, 6.12 or 7.2" ;;
esac
# By this distribution's compiler, so that none needs to be fetched.
[ "$here" != bookworm ] || [ "$name" != 6.12 ] || suite=bookworm-backports
chroot=yes
[ "${suite%-backports}" != "$here" ] || chroot=no

# Of a directory that has moved, too.
key=$suite:$kernel:$(sha256sum <"$0")
[ "$(cat "$kernel/key" 2>/dev/null)" != "$key" ] || exit 0

# The mirror: where the system's own release comes from.
# shellcheck disable=SC2016
mirror()
{
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' \
		'Component: main' | sort -u | head -n 1
}

state=$dir/apt/$suite
# apt with lists and sources of its own, which takes no package for installed.
apt() # apt PROGRAM ARGUMENT...
{
	program=$1
	shift
	"$program" -qq -o Dir::State="$state" -o Dir::State::Lists="$state/lists" \
		-o Dir::State::status="$state/status" -o Dir::Cache="$state/cache" \
		-o Dir::Etc::SourceList="$state/sources" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null \
		-o Acquire::Languages=none -o APT::Sandbox::User=root \
		-o APT::Install-Recommends=false "$@"
}

prepare_apt()
{
	uri=$(mirror)
	[ -n "$uri" ] || fail "apt has no lists of Debian: run 'apt-get update' as root"
	keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	[ -r $keyring ] || fail "no $keyring: install debian-archive-keyring"
	rm -rf "$state"
	mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
	echo "deb [arch=amd64 signed-by=$keyring] $uri $suite main" >"$state/sources"
	: >"$state/status"
	if ! apt apt-get -o APT::Update::Error-Mode=any update >"$state/log" 2>&1; then
		fail "kernel $name: $suite cannot be had from the configured mirror: $(cat "$state/log")"
	fi
}

depends() # depends PACKAGE: the names of what it depends on
{
	apt apt-cache depends "$1" | sed -n 's/^[ |]*Depends: \([^<]*\)$/\1/p'
}

there_is() # there_is PACKAGE
{
	[ -n "$(apt apt-cache show "$1" 2>/dev/null)" ]
}

# Those that the headers depend on, of the same source, with themselves.
headers()
{
	echo "linux-headers-$version"
	depends "linux-headers-$version" | grep -E '^linux-(headers|kbuild)-'
}

# One package or, of late, a few.
image()
{
	package=linux-image-$version
	there_is "$package" || package=$package-unsigned
	echo "$package"
	depends "$package" | grep -F -- "-$version" || true
}

unpack() # unpack FILE...: into root/; directories that are links there stay links
{
	for file in "$@"; do
		dpkg-deb --fsys-tarfile "$file" | tar -x --keep-directory-symlink -C "$root" \
			--exclude=./usr/share/doc --exclude=./usr/share/man --exclude=./usr/share/locale
	done
}

# A system to change into: the headers, the compiler they depend on, and what a build calls.
make_root()
{
	tools='make sparse dash bash mawk coreutils sed grep findutils diffutils libc-bin tar gzip'
	# Word splitting is meant: package names.
	# shellcheck disable=SC2086
	apt apt-get install -y --download-only "linux-headers-$version" $tools >"$state/log" 2>&1 ||
		fail "kernel $name: $(cat "$state/log")"
	# Debian's directories are merged, or both names mean the same after this.
	for link in bin sbin lib lib64; do
		mkdir -p "$root/usr/$link"
		ln -s "usr/$link" "$root/$link"
	done
	unpack "$state"/cache/archives/*.deb
	mkdir -p "$root/tmp" "$root/dev" "$root/proc" "$root/etc"
	# What the packages' scripts would do.
	[ -e "$root/bin/sh" ] || ln -s dash "$root/usr/bin/sh"
	[ -e "$root/bin/awk" ] || ln -s mawk "$root/usr/bin/awk"
	rm -rf "$state/cache/archives"
}

rm -rf "$kernel"
mkdir -p "$kernel/packages" "$root"
echo "  FETCH   $suite's lists"
prepare_apt
version=$(depends linux-headers-amd64 | sed -n 's/^linux-headers-\(.*-amd64\)$/\1/p')
[ -n "$version" ] || fail "kernel $name: $suite has no linux-headers-amd64"
case $version in
"$name".*) ;;
*) fail "kernel $name: $suite has $version now" ;;
esac

echo "  FETCH   linux-image-$version"
# shellcheck disable=SC2046
(cd "$kernel/packages" && apt apt-get download $(image)) >"$state/log" 2>&1 ||
	fail "kernel $name: $(cat "$state/log")"
echo "  FETCH   linux-headers-$version"
build=/usr/src/linux-headers-$version
if [ $chroot = yes ]; then
	make_root
	: >"$kernel/chroot"
else
	# shellcheck disable=SC2046
	(cd "$state/cache" && apt apt-get download $(headers)) >"$state/log" 2>&1 ||
		fail "kernel $name: $(cat "$state/log")"
	unpack "$state"/cache/*.deb
	rm -f "$state"/cache/*.deb
	# They name each other by where they would be installed.
	sed -i "s| /usr/src/| $root/usr/src/|" "$root$build/Makefile"
	build=$root$build
fi
headers=$root/usr/src/linux-headers-$version
[ -f "$headers/.config" ] || fail "kernel $name: no headers came"
# Type information would be made of it, which nothing here reads.
rm -f "$headers/vmlinux"
# Some releases leave out what make C=1 asks whether the checker works.
valid=$(readlink -f "$headers/scripts")/checker-valid.sh
if [ ! -e "$valid" ]; then
	printf '#!/bin/sh\necho "static int x;" | "$@" - 2>/dev/null && echo 1\n' >"$valid"
	chmod +x "$valid"
fi
echo "$build" >"$kernel/build"
echo "$version" >"$kernel/version"
echo "$key" >"$kernel/key"
