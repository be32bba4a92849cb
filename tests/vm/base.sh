#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# base.sh DIRECTORY [NAME]: makes what every machine with that kernel starts from, out of the
# distribution's packages: DIRECTORY/kernels/NAME/{kernel,base.cpio,version,lacks}; lacks names the
# modules that tests ask for and the kernel does not have. Without NAME the kernel is that of the
# installed linux-headers-amd64, so that modules built against those headers load, and
# DIRECTORY/base is it; others are fetched by kernel.sh, and 'debug' is built by debug.sh.
# Downloads stay; nothing is done unless a package or a script has changed.

set -eu

fail()
{
	echo "base.sh: $*" >&2
	exit 1
}

here=$(dirname "$0")
dir=$1
name=${2:-}
packages=$dir/packages

# With what they depend on. What rdma_rxe asks for by name at run time, crc32_generic, is not in
# every kernel.
modules='rdma_rxe rdma_ucm dummy virtio_pci virtio_net'
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

fetch_installed_image()
{
	if find_image >/dev/null || fetch_image; then
		return
	fi
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
}

mkdir -p "$packages"
choose_kernel
series=$(echo "$version" | sed 's/^\([0-9]*\.[0-9]*\).*/\1/')
if [ -z "$name" ] || [ "$name" = "$series" ]; then
	fetch_installed_image
	base=$dir/kernels/$series
	mkdir -p "$base"
	echo "/lib/modules/$version/build" >"$base/build"
	rm -f "$base/chroot"
	if [ "$(readlink "$dir/base")" != "kernels/$series" ]; then
		rm -rf "$dir/base"
		ln -s "kernels/$series" "$dir/base"
	fi
	set -- "$(find_image)"
else
	base=$dir/kernels/$name
	case $name in
	debug) "$here/debug.sh" "$dir" ;;
	*) "$here/kernel.sh" "$dir" "$name" ;;
	esac
	version=$(cat "$base/version")
	set -- "$base"/packages/*
fi
if ! one 'busybox-static_*.deb' >/dev/null; then
	echo "  FETCH   busybox-static"
	fetch busybox-static || fail "$(cat "$dir/fetch.log")"
fi
busybox_file=$(one 'busybox-static_*.deb')

key=$(
	for file in "$@" "$busybox_file"; do
		basename "$file"
	done
	# What is packed comes from packages that are installed.
	dpkg-query -W
	echo "$asked"
	cat "$0" "$here/pack.py" "$here/vmlinux.py"
)
key=$(echo "$key" | sha256sum | cut -d ' ' -f 1)
[ "$(cat "$base/base.key" 2>/dev/null)" != "$key" ] || exit 0

echo "  VMBASE  $version"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -f "$base"/base.* "$base/kernel" "$base/lacks"
mkdir -p "$work/image/usr/lib" "$work/tree"

# Where the modules are depends on the release; /lib/modules is one place or the other.
ln -s usr/lib "$work/image/lib"
for file in "$@"; do
	case $file in
	*.deb) dpkg-deb --fsys-tarfile "$file" ;;
	*) cat "$file" ;;
	esac | tar -x --keep-directory-symlink --exclude=./usr/share -C "$work/image"
done
image=$work/image/boot/vmlinuz-$version
[ -f "$image" ] || image=$work/image/lib/modules/$version/vmlinuz
if [ "$name" = debug ]; then
	# KASAN's is not ready for the entry that QEMU takes into an unpacked one.
	cp "$image" "$base/kernel"
else
	"$here/vmlinux.py" "$image" "$base/kernel"
fi

# The modules with those they need; their index is made for these alone.
depmod -b "$work/image" "$version"
: >"$base/lacks"
for module in crc32_generic $asked; do
	if modprobe -d "$work/image" -S "$version" --show-depends "$module" >/dev/null 2>&1; then
		modules="$modules $module"
	else
		echo "$module" >>"$base/lacks"
	fi
done
tree=$work/tree
# It may have all of them built in.
mkdir -p "$tree/usr/lib/modules/$version"
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
echo "$key" >"$base/base.key"
