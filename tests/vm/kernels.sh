#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# kernels.sh BUILD-DIRECTORY NAME...: for each kernel, builds the modules with the compiler's extra
# warnings and sparse, boots it, runs the suite of the modules, and says so in one line. A warning
# about a file of ours fails the kernel.

set -u

here=$(dirname "$0")
build=$1
shift
vm=$build/vm
passed=0 failed=0 skipped=0
report=

say() # say KERNEL TEXT
{
	report="$report  $1: $2
"
}

fail() # fail KERNEL TEXT
{
	say "$1" "$2"
	failed=$((failed + 1))
}

warnings() # warnings LOG: those about files that are not the kernel's
{
	grep -E '(warning|error):|^WARNING:|^ERROR:' "$1" |
		grep -vE '^(/[^:]*/usr/src/|/usr/src/|\./|include/|arch/)'
}

# one NAME: the folder of the kernel holds what was said.
one()
{
	name=$1 kernel=$vm/kernels/$1
	if ! "$here/base.sh" "$vm" "$name"; then
		fail "$name" "not fetched"
		return
	fi
	version=$(cat "$kernel/version")
	# Only what is compiled is checked.
	rm -rf "$kernel/modules"
	if ! "$here/modules.sh" "$vm" "$name" W=1 C=1 CHECK=sparse; then
		fail "$name" "$version, NOT BUILT, see $kernel/kmod/log"
		return
	fi
	built=built
	if warnings "$kernel/kmod/log"; then
		built="built WITH WARNINGS"
		failed=$((failed + 1))
	fi
	"$here/run.py" --kernel "$name" --suite kmod "$build" | tee "$kernel/suite"
	counts=$(tail -n 1 "$kernel/suite")
	booted=booted
	grep -q '^  PASS  boot ' "$kernel/suite" || booted="NOT BOOTED"
	say "$name" "$version, $built, $booted, suite $counts"
	case $counts in
	*' passed, '*' failed, '*' skipped')
		# Word splitting is meant.
		# shellcheck disable=SC2086
		set -- $counts
		passed=$((passed + $1)) failed=$((failed + $3)) skipped=$((skipped + $5))
		[ "$booted" = booted ] || [ "$3" -gt 0 ] || failed=$((failed + 1))
		;;
	*) failed=$((failed + 1)) ;;
	esac
}

for name in "$@"; do
	one "$name"
done
printf '%s' "$report"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$passed" -gt 0 ] && [ "$failed" -eq 0 ]
