# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# Sourced by the tests of packages, which tests/run.sh runs. Each has roots of its own, in a
# directory that goes when it ends.

# shellcheck source-path=SCRIPTDIR source=root.sh
. "$(dirname "$0")/root.sh"

start=$(readlink -f "$NDA_TEST_BUILD/packages")
ours='libibv-extend4 libibv-extend-dev libnda1 libnda-dev nda-extend-drivers nda-utils nda-dkms'
mkdir -p "$start/work"
work=$(mktemp -d -p "$start/work") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
passed=0 failed=0

# check WHAT COMMAND...: its output is shown if it fails.
check()
{
	what=$1
	shift
	"$@" >"$work/output" 2>&1
	status=$?
	if [ $status -eq 0 ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED: $what (exit status $status)"
		cat "$work/output"
	fi
}

finish()
{
	echo "$passed passed, $failed failed, 0 skipped"
	[ "$failed" -eq 0 ]
	exit
}

new_root() # new_root FROM: makes $root, of what prepare.sh made
{
	root=$(mktemp -d -p "$work" root.XXXXXX)
	cp -a "$start/$1/." "$root"
}

# with_dependencies REPOSITORY PACKAGE...: installs what these need, but is not ours, and notes
# what is in the root then.
with_dependencies()
{
	use_repository "$root" "$start/$1" || return 1
	shift
	apt_in "$root" -s install "$@" >"$work/plan" || return 1
	# shellcheck disable=SC2046
	apt_in "$root" install $(awk -v ours=" $ours " '
		$1 == "Inst" && !index(ours, " " $2 " ") { print $2 }' "$work/plan") || return 1
	list_files >"$work/before"
}

# Every name in the root but those of what package managers and the machine keep for themselves:
# lists, caches, logs, the copies of /etc/group that stay beside it, DKMS's own signing key; and
# what with_systemd makes.
list_files()
{
	(cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./srv/nda \
		-o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./var/lib/rpm \
		-o -path ./run/systemd -o -path ./run/systemctl-calls -o -path ./usr/sbin/systemctl \
		-o -path ./var/cache -o -path ./var/log \
		-o -path './etc/*-' -o -path ./etc/.pwd.lock -o -path './var/lib/dkms/mok.*' \) \
		-prune -o -printf '%P %y\n') | sort
}

# purge PACKAGE...: and nothing is there but what was there before.
purge()
{
	apt_in "$root" purge "$@" || return 1
	list_files >"$work/after"
	diff "$work/before" "$work/after"
}

# links PATH...: of programs and libraries in the root; all that they need is there.
links()
{
	for file in "$@"; do
		in_root "$root" ldd -r "$file" >"$work/ldd" 2>&1 || { cat "$work/ldd"; return 1; }
		! grep -E 'not found|undefined symbol' "$work/ldd" || return 1
	done
}

# says TEXT COMMAND...: the command's output in the root has that line or part of one.
says()
{
	text=$1
	shift
	in_root "$root" "$@" >"$work/said" 2>&1 || { cat "$work/said"; return 1; }
	grep -F -e "$text" "$work/said" || { cat "$work/said"; return 1; }
}

installed_for() # installed_for VERSION KERNEL: DKMS has nda's modules there, of that version
{
	in_root "$root" dkms status >"$work/status" || return 1
	cat "$work/status"
	grep -q "^nda/$1, $2,.*: installed" "$work/status" || return 1
	for module in nda nda_ascend nda_peermem nda_soft; do
		in_root "$root" modinfo -k "$2" -F version "$module" || return 1
	done | sort -u >"$work/versions"
	cat "$work/versions"
	[ "$(cat "$work/versions")" = "$1" ]
}

# As far as packages see, systemd runs in the root, and starts two devices when their network
# devices come. What it is asked goes to a file.
with_systemd()
{
	mkdir -p "$root/run/systemd/system"
	# Scripts of rpm look in few places.
	printf '#!/bin/sh\necho "$@" >>/run/systemctl-calls\n' >"$root/usr/sbin/systemctl"
	chmod +x "$root/usr/sbin/systemctl"
	for name in eth0 eth1; do
		wants=$root/etc/systemd/system/sys-subsystem-net-devices-$name.device.wants
		mkdir -p "$wants"
		ln -s /lib/systemd/system/nda-rxe@.service "$wants/nda-rxe@$name.service"
	done
}

# The instances were stopped; see with_systemd.
stopped()
{
	cat "$root/run/systemctl-calls"
	grep -qxF 'stop nda-rxe@*.service' "$root/run/systemctl-calls"
}
