#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# probe.sh DIRECTORY OUTPUT MODULE.SYMVERS COMPILER FLAG...
#
# Writes OUTPUT, a header with HAVE_NAME defined for each probes/NAME.c of DIRECTORY that compiles
# and for each symbol of its file 'exports' that the kernel exports. The two probes of its
# own, one that must compile and one that must not, tell a probe that says no from a compiler
# that does not work: then it fails.

set -eu

dir=$1 output=$2 symvers=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail()
{
	echo "probe.sh: $*" >&2
	exit 1
}

compiles() # compiles FILE COMPILER FLAG...
{
	file=$1
	shift
	"$@" -Wno-error -Werror=implicit-function-declaration -Werror=incompatible-pointer-types \
		-Werror=int-conversion -c -o "$work/$(basename "$file").o" "$file" \
		2>"$work/$(basename "$file").log"
}

[ -r "$symvers" ] || fail "no $symvers: the kernel's build files are not complete"
cat >"$work/good.c" <<'EOF'
#include <linux/module.h>
MODULE_LICENSE("GPL");
int probe(void);
int probe(void) { return THIS_MODULE != NULL; }
EOF
cat >"$work/bad.c" <<'EOF'
#include <linux/module.h>
int probe(void);
int probe(void) { return nda_there_is_no_such_function(); }
EOF
compiles "$work/good.c" "$@" || fail "a probe that must compile does not:
$(cat "$work/good.c.log")"
! compiles "$work/bad.c" "$@" || fail "a probe that must not compile does"

# As many at a time as there are processors.
jobs=$(nproc)
n=0
for probe in "$dir"/probes/*.c; do
	{ ! compiles "$probe" "$@" || : >"$work/$(basename "$probe" .c).yes"; } &
	n=$((n + 1))
	[ $((n % jobs)) -ne 0 ] || wait
done
wait
for probe in "$dir"/probes/*.c; do
	name=$(basename "$probe" .c)
	if [ -e "$work/$name.yes" ]; then
		echo "#define HAVE_$name 1"
	else
		echo "/* no $name */"
	fi
done >"$work/config.h"
while read -r symbol; do
	case $symbol in '' | '#'*) continue ;; esac
	name=$(echo "$symbol" | tr '[:lower:]' '[:upper:]')
	if awk -v s="$symbol" '$2 == s { found = 1 } END { exit !found }' "$symvers"; then
		echo "#define HAVE_EXPORT_$name 1"
	else
		echo "/* no export $symbol */"
	fi
done <"$dir/exports" >>"$work/config.h"
mv "$work/config.h" "$output"
