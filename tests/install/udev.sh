#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What install-udev and install-dkms put where, and what udev and systemd say of it. Needs root and
# a mount namespace for udev's part. What they do with a device is shown in a virtual machine,
# tests/vm/udev.

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=packaging/META
. packaging/META
# shellcheck source=tests/script.sh
. tests/script.sh
root=$dir/root

files() { (cd "$root" && find . ! -type d | sort); }
there() { [ -f "$root/$1" ]; }

where="UDEVDIR=/u/udev UNITDIR=/u/units SYSUSERSDIR=/u/sysusers.d MODULESLOADDIR=/u/load.d
	MODPROBEDIR=/u/modprobe.d"
# shellcheck disable=SC2086
run make -s install-udev install-dkms DESTDIR="$root" $where
check "they install" exits 0
for name in udev/rules.d/60-nda.rules udev/rules.d/70-nda-access.rules udev/rules.d/90-nda.rules \
	units/nda-setup@.service units/nda-rxe@.service sysusers.d/nda.conf load.d/nda.conf \
	modprobe.d/nda-dkms.conf; do
	check "$name is where it was told" there "u/$name"
done
check "DKMS's configuration is filled" \
	grep -qx "PACKAGE_VERSION=\"$NDA_VERSION\"" "$root/usr/src/nda-$NDA_VERSION/dkms.conf"
check "no place is left to fill" [ -z "$(grep -rlE '@[A-Z_]+@' "$root")" ]
# shellcheck disable=SC2086
run make -s uninstall-udev uninstall-dkms DESTDIR="$root" $where
check "uninstalling leaves nothing" [ -z "$(files)" ]
check "not even a directory" absent "$root/usr/src/nda-$NDA_VERSION"

mkdir "$dir/bin"
printf '#!/bin/sh\n' >"$dir/bin/nda-info"
chmod +x "$dir/bin/nda-info"
make -s install-udev DESTDIR="$root" PREFIX=/usr BINDIR="$dir/bin"
modules=$(grep -v '^#' "$root/usr/lib/modules-load.d/nda.conf")
for module in $modules; do
	check "$module is one of the modules" grep -q "^obj-m .*\<$module\.o" kmod/Kbuild
done

verify() # verify UNIT
{
	run systemd-analyze verify --man=no "$1"
	[ "$status" -eq 0 ] && silent
}

units=$root/usr/lib/systemd/system
if ! command -v systemd-analyze >/dev/null; then
	skip "the units: there is no systemd-analyze"
else
	check "systemd has nothing to say of nda-setup@" verify "$units/nda-setup@nda.service"
	check "systemd has nothing to say of nda-rxe@" verify "$units/nda-rxe@eth0.service"
	sed 's/^Type=/Typ=/' "$units/nda-setup@.service" >"$dir/bad@.service"
	verify "$dir/bad@nda.service"
	check "it would of a bad one" says Typ
fi

members() { grep -c "^$1:" "$root/etc/group"; }
if ! command -v systemd-sysusers >/dev/null; then
	skip "the group: there is no systemd-sysusers"
else
	mkdir "$root/etc"
	run systemd-sysusers --root="$root"
	check "the group is made" [ "$(members nda)" -eq 1 ]
	run systemd-sysusers --root="$root"
	check "once" [ "$(members nda)" -eq 1 ]
fi

# The rules are looked for in fixed places, of which /run is one.
rules_test() # rules_test DIRECTORY: what udev says of the rules there
{
	# shellcheck disable=SC2016
	unshare -m sh -c 'mount -t tmpfs rules /run && mkdir -p /run/udev/rules.d &&
		cp "$1"/* /run/udev/rules.d && echo nda:x:999: >"$2/group" && cat /etc/group >>"$2/group" &&
		mount --bind "$2/group" /etc/group && udevadm test /sys/class/net/lo 2>&1' \
		rules "$1" "$dir" | grep -E '/run/udev/rules\.d/.*nda.*:[0-9]+'
}
rules=$root/usr/lib/udev/rules.d
if [ "$(id -u)" -ne 0 ] || ! unshare -m true 2>/dev/null; then
	skip "the rules: needs root and a mount namespace"
elif ! command -v udevadm >/dev/null; then
	skip "the rules: there is no udevadm"
else
	check "udev has nothing to say of the rules" [ -z "$(rules_test "$rules")" ]
	mkdir "$dir/rules"
	sed 's/^GROUP=/GRUPPE=/' "$rules/70-nda-access.rules" >"$dir/rules/70-nda-access.rules"
	check "it would of a bad one" grep -q GRUPPE <(rules_test "$dir/rules")
fi

sum_up
