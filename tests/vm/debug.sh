#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# debug.sh DIRECTORY: makes the kernel 'debug' in DIRECTORY/kernels/debug as kernel.sh makes others:
# the distribution's source of the installed headers' release, with the checkers of debug.config.
# The build takes two processors 6 to 10 minutes. What it made is kept as debug-KEY.tar.xz in the
# folder named by NDA_VM_CACHE, by default DIRECTORY/cache, and is good for any folder.

set -eu

fail()
{
	echo "debug.sh: $*" >&2
	exit 1
}

here=$(cd "$(dirname "$0")" && pwd)
dir=$(cd "$1" && pwd)
kernel=$dir/kernels/debug
compiler=${NDA_VM_CC:-gcc}
mkdir -p "${NDA_VM_CACHE:-$dir/cache}"
cache=$(cd "${NDA_VM_CACHE:-$dir/cache}" && pwd)

depends=$(dpkg-query -W -f '${Depends}' linux-headers-amd64) || fail "no linux-headers-amd64"
release=$(echo "$depends" | sed -n 's/.*(= \([^)]*\)).*/\1/p')
series=$(echo "$release" | sed 's/^\([0-9]*\.[0-9]*\).*/\1/')
source=linux-source-$series
key=$(
	echo "$release"
	# Word splitting is meant: it may be called by way of ccache.
	# shellcheck disable=SC2086
	$compiler --version | head -n 1
	cat "$here/debug.config"
)
key=$(echo "$key" | sha256sum | cut -c 1-16)
archive=$cache/debug-$key.tar.xz

apt_get()
{
	apt-get -qq -o DPkg::Lock::Timeout=600 -o APT::Sandbox::User=root "$@"
}

# fetch_source: linux-source-*.deb into the working folder
fetch_source()
{
	apt_get download "$source=$release" >log 2>&1 && return
	[ "$(id -u)" -ne 0 ] || apt_get update
	apt_get download "$source=$release" >log 2>&1 || fail "$(cat log)"
}

# Every option that debug.config asks for must be in effect: a checker that is silently off finds
# nothing.
check_config()
{
	grep -E '^CONFIG_' "$here/debug.config" | while read -r line; do
		option=${line%%=*}
		case $line in
		*=n) ! grep -q "^$option=" .config || echo "$option is on" ;;
		*) grep -qxF "$line" .config || echo "$line is not in effect" ;;
		esac
	done
}

build_kernel()
{
	dpkg-deb --fsys-tarfile "$source"_*.deb | tar -x -O "./usr/src/$source.tar.xz" | tar -x -J
	cd "$source"
	{
		make -s tinyconfig &&
			scripts/kconfig/merge_config.sh -m .config "$here/debug.config" &&
			make -s olddefconfig
	} >../log 2>&1 || fail "$(cat ../log)"
	wrong=$(check_config)
	[ -z "$wrong" ] || fail "$wrong"
	# So that a compiler cache works.
	export KBUILD_BUILD_TIMESTAMP=@0 KBUILD_BUILD_USER=nda KBUILD_BUILD_HOST=nda
	nice -n 19 make -j"$(nproc)" CC="$compiler" HOSTCC="$compiler" bzImage modules_prepare \
		>../log 2>&1 || fail "$(tail -n 30 ../log)"
	cd ..
}

# pack: what the machine starts and what modules are built with
pack()
{
	version=$(make -s -C "$source" kernelrelease)
	modules=image/lib/modules/$version
	mkdir -p image/boot "$modules"
	cp "$source/arch/x86/boot/bzImage" "image/boot/vmlinuz-$version"
	cp "$source"/modules.builtin "$source"/modules.builtin.modinfo "$modules"
	: >"$modules/modules.order"
	echo "$version" >version
	mv "$source/vmlinux.symvers" "$source/Module.symvers"
	(
		cd "$source"
		find Makefile .config Module.symvers include arch/x86/include arch/x86/Makefile* \
			scripts tools/objtool/objtool -type f -not -name '*.o' \
			-not -name '.*.cmd' -o -type l
	) >files
	mkdir build
	tar -c -C "$source" -T files | tar -x -C build
	tar -c -J -f "$archive.new" version image build
	mv "$archive.new" "$archive"
}

if [ ! -f "$archive" ]; then
	echo "  BUILD   $source $release with debug.config (minutes)"
	work=$(mktemp -d -p "$dir")
	trap 'rm -rf "$work"' EXIT
	(
		cd "$work"
		fetch_source
		build_kernel
		pack
	)
fi
[ "$(cat "$kernel/key" 2>/dev/null)" != "$key:$kernel" ] || exit 0
rm -rf "$kernel"
mkdir -p "$kernel/packages"
tar -x -J -f "$archive" -C "$kernel"
tar -c -C "$kernel/image" -f "$kernel/packages/image.tar" .
rm -rf "$kernel/image"
mv "$kernel/build" "$kernel/tree"
echo "$kernel/tree" >"$kernel/build"
echo "$key:$kernel" >"$kernel/key"
