#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# distros.sh BUILD-DIRECTORY RELEASE...: in a small system of each of these releases of Debian,
# builds everything, runs `make check`, installs and uninstalls. As root. The systems come from the
# mirror that apt is configured with, their packages are checked with the archive's keys; each is
# kept in BUILD-DIRECTORY/distros, with what building needs, until its folder is removed.

set -u

here=$(dirname "$0")
# shellcheck source-path=SCRIPTDIR source=../packages/root.sh
. "$here/../packages/root.sh"
mkdir -p "$1/distros"
keep=$(cd "$1/distros" && pwd)
shift
passed=0 failed=0 skipped=0
report=
# What optimizing costs would double the time, and is not what releases differ in.
flags='CXXFLAGS=-O0 -g1'

[ "$(id -u)" -eq 0 ] || { echo 'distros.sh: making systems needs root' >&2; exit 1; }

# Where this system's own release comes from.
# shellcheck disable=SC2016
mirror()
{
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' \
		'Component: main' | sort -u | head -n 1
}

# make_system RELEASE: $keep/RELEASE/root, with what building and testing need
make_system()
{
	[ ! -f "$keep/$1/made" ] || return 0
	rm -rf "${keep:?}/$1"
	mkdir -p "$keep/$1/root"
	echo "  FETCH   a system of $1"
	# shellcheck disable=SC2016
	mmdebstrap --variant=minbase --include=make --dpkgopt=force-unsafe-io \
		--aptopt='Acquire::Languages "none"' \
		--setup-hook='mkdir -p "$1/etc/apt/apt.conf.d"
			apt-config dump | grep -E "^Acquire::(https?|Check)" >"$1/etc/apt/apt.conf.d/50host" || :' \
		"$1" "$keep/$1/root" "$(mirror)" >"$keep/$1/log" 2>&1 || return 1
	cp -L /etc/resolv.conf "$keep/$1/root/etc/resolv.conf"
	tree_into "$1" && in_root "$keep/$1/root" /nda/packaging/deps build check >>"$keep/$1/log" 2>&1 &&
		: >"$keep/$1/made"
}

# tree_into RELEASE: /nda there is this tree, without what was built
tree_into()
{
	rm -rf "$keep/$1/root/nda"
	mkdir "$keep/$1/root/nda" &&
		tar -c -C "$here/../.." --exclude=./build --exclude=./.git . |
		tar -x -C "$keep/$1/root/nda"
}

say() # say RELEASE TEXT
{
	report="$report  $1: $2
"
}

fail() # fail RELEASE TEXT
{
	say "$1" "$2, see $keep/$1/log"
	tail -n 20 "$keep/$1/log"
	failed=$((failed + 1))
}

one() # one RELEASE
{
	root=$keep/$1/root log=$keep/$1/log
	if ! make_system "$1"; then
		fail "$1" "NO SYSTEM"
		return
	fi
	tree_into "$1"
	# shellcheck disable=SC2016
	verbs=$(in_root "$root" dpkg-query -W -f '${Version}' libibverbs-dev)
	if ! in_root "$root" make -C /nda -j"$(nproc)" "$flags" all tests >"$log" 2>&1; then
		fail "$1" "rdma-core $verbs, NOT BUILT"
		return
	fi
	in_root "$root" make -C /nda "$flags" check CHECK="${CHECK:-}" >>"$log" 2>&1
	status=$?
	counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
	case $status:$counts in
	0:*' 0 failed, '*) say "$1" "rdma-core $verbs, built, tests: $counts" ;;
	*:?*)
		say "$1" "rdma-core $verbs, built, TESTS FAILED: $counts, see $log"
		cat "$log"
		;;
	*)
		fail "$1" "rdma-core $verbs, built, NOT TESTED"
		return
		;;
	esac
	# Word splitting is meant.
	# shellcheck disable=SC2086
	set -- "$1" $counts
	passed=$((passed + $2)) failed=$((failed + $4)) skipped=$((skipped + $6))
	# make may fail though no test did.
	[ $status -eq 0 ] || [ "$4" -gt 0 ] || failed=$((failed + 1))
	if in_root "$root" /nda/tests/distros/install.sh >>"$log" 2>&1; then
		say "$1" "installed, used, uninstalled"
		passed=$((passed + 1))
	else
		fail "$1" "NOT INSTALLED"
	fi
}

for release in "$@"; do
	one "$release"
done
printf '%s' "$report"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$passed" -gt 0 ] && [ "$failed" -eq 0 ]
