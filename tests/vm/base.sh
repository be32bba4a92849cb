#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# base.sh DIRECTORY: makes what every machine starts from, out of the distribution's packages:
# DIRECTORY/base/{vmlinux,base.cpio,version,lacks}; lacks names the modules that tests ask for and
# the kernel does not have. The kernel is that of the installed
# linux-headers-amd64, so that modules built against those headers load. Downloads stay in
# DIRECTORY/packages; nothing is done unless a package or a script has changed.

set -eu

fail()
{
	echo "base.sh: $*" >&2
	exit 1
}

here=$(dirname "$0")
dir=$1
packages=$dir/packages
base=$dir/base

# With what they depend on, and what they ask for by name at run time.
modules='rdma_rxe rdma_ucm crc32_generic dummy virtio_pci virtio_net'
# What tests ask for besides.
asked=$(sed -n 's/^# vm-modules: *//p' "$here"/*/run | tr ' ' '\n' | sort -u)
programs='dash ip rdma kmod ibv_devices ibv_devinfo ibv_rc_pingpong ib_write_bw ib_write_lat
	ib_read_bw ib_read_lat ib_send_bw ib_atomic_bw'

[ "$(uname -m)" = x86_64 ] || fail "the machine is an x86-64 one and so must this one be"
command -v apt-get >/dev/null || fail "needs the packages of Debian 12 or later"

apt_get()
{
	apt-get -qq -o DPkg::Lock::Timeout=600 "$@"
}

# Sets version, as in linux-headers-VERSION, and image, the package of that kernel.
choose_kernel()
{
	depends=$(dpkg-query -W -f '${Depends}' linux-headers-amd64) || fail "no linux-headers-amd64"
	version=$(echo "$depends" | sed -n 's/.*linux-headers-\([^ ]*-amd64\) .*/\1/p')
	release=$(echo "$depends" | sed -n 's/.*(= \([^)]*\)).*/\1/p')
	if [ -z "$version" ] || [ -z "$release" ]; then
		fail "linux-headers-amd64 depends on '$depends'"
	fi
	image=linux-image-$version
}

fetch() # fetch PACKAGE...: the first of them that there is, into packages/
{
	for package in "$@"; do
		if (cd "$packages" && apt_get -o APT::Sandbox::User=root download "$package") \
			2>"$dir/fetch.log"; then
			return
		fi
	done
	return 1
}

one() # one PATTERN...: the file in packages/ that matches
{
	for pattern in "$@"; do
		for file in "$packages"/$pattern; do
			[ ! -f "$file" ] || { echo "$file"; return; }
		done
	done
	return 1
}

find_image()
{
	one "${image}_${release}_*.deb" "$image-unsigned_${release}_*.deb"
}

fetch_image()
{
	echo "  FETCH   $image $release"
	rm -f "$packages"/linux-image-*
	fetch "$image=$release" "$image-unsigned=$release"
}

mkdir -p "$packages"
choose_kernel
if ! find_image >/dev/null && ! fetch_image; then
	# The lists are old, or the archive has a newer kernel only.
	apt_get update
	if ! fetch_image; then
		[ "$(id -u)" -eq 0 ] || fail "$(cat "$dir/fetch.log"); run as root:" \
			"apt-get update && apt-get install linux-headers-amd64"
		echo "deps: upgrades linux-headers-amd64"
		DEBIAN_FRONTEND=noninteractive apt_get install -y linux-headers-amd64
		choose_kernel
		fetch_image || fail "$(cat "$dir/fetch.log")"
	fi
fi
if ! one 'busybox-static_*.deb' >/dev/null; then
	echo "  FETCH   busybox-static"
	fetch busybox-static || fail "$(cat "$dir/fetch.log")"
fi
image_file=$(find_image)
busybox_file=$(one 'busybox-static_*.deb')

key=$(
	basename "$image_file" "$busybox_file"
	# What is packed comes from packages that are installed.
	dpkg-query -W
	echo "$asked"
	cat "$0" "$here/pack.py" "$here/vmlinux.py"
)
key=$(echo "$key" | sha256sum | cut -d ' ' -f 1)
[ "$(cat "$base/key" 2>/dev/null)" != "$key" ] || exit 0

echo "  VMBASE  $version"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$base"
mkdir -p "$base" "$work/image" "$work/tree"

dpkg-deb --fsys-tarfile "$image_file" | tar -x -C "$work/image" ./boot ./lib/modules
"$here/vmlinux.py" "$work/image/boot/vmlinuz-$version" "$base/vmlinux"

# The modules with those they need; their index is made for these alone.
depmod -b "$work/image" "$version"
: >"$base/lacks"
for module in $asked; do
	if modprobe -d "$work/image" -S "$version" --show-depends "$module" >/dev/null 2>&1; then
		modules="$modules $module"
	else
		echo "$module" >>"$base/lacks"
	fi
done
tree=$work/tree
for module in $modules; do
	modprobe -d "$work/image" -S "$version" --show-depends "$module" |
		sed -n "s|^insmod $work/image/\([^ ]*\).*|\1|p"
done | sort -u | while read -r file; do
	mkdir -p "$tree/usr/$(dirname "$file")"
	cp "$work/image/$file" "$tree/usr/$file"
done
(
	cd "$work/image/lib/modules/$version"
	cp modules.builtin* modules.order "$tree/usr/lib/modules/$version/"
)
for name in bin sbin lib lib64; do
	mkdir -p "$tree/usr/$name"
	ln -s "usr/$name" "$tree/$name"
done
depmod -b "$tree" "$version"
for module in $modules; do
	modprobe -d "$tree" -S "$version" --show-depends "$module" >/dev/null ||
		fail "$module did not get into the machine"
done

# dash is the shell: busybox's would run its own ip whatever PATH says.
dpkg-deb --fsys-tarfile "$busybox_file" | tar -x -C "$work" ./bin/busybox
cp "$work/bin/busybox" "$tree/usr/bin/"
kmod='modprobe|insmod|rmmod|lsmod|modinfo|depmod'
"$work/bin/busybox" --list | grep -vxE "busybox|sh|ash|ip|$kmod" |
	while read -r name; do ln -s busybox "$tree/usr/bin/$name"; done
ln -s dash "$tree/usr/bin/sh"
for name in $(echo "$kmod" | tr '|' ' '); do
	ln -s ../bin/kmod "$tree/usr/sbin/$name"
done
for name in dev proc sys tmp run vm; do
	mkdir "$tree/$name"
done

set --
for name in $programs; do
	set -- "$@" "$(command -v "$name")=/usr/bin/$name"
done
provider=$(dpkg-query -L ibverbs-providers | grep '/librxe-rdmav[0-9]*\.so$')
libc=$(ldd "$(command -v dash)" | sed -n 's|.*=> \(/.*/libc\.so\.6\) .*|\1|p')
# The C library loads libgcc_s by itself, when a thread ends.
"$here/pack.py" "$base/base.cpio" "$tree=/" "$@" "$provider" \
	/etc/libibverbs.d/rxe.driver "$(dirname "$libc")/libgcc_s.so.1"
echo "$version" >"$base/version"
echo "$key" >"$base/key"
