# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What tests that are scripts share: '. tests/script.sh' gives $dir, a directory of the test's own.

passed=0 failed=0 skipped=0
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
# The make that runs this has its own.
unset MAKEFLAGS MFLAGS MAKELEVEL

run() # run COMMAND...: $status, $dir/out and $dir/err of it
{
	"$@" >"$dir/out" 2>"$dir/err"
	status=$?
}

check() # check NAME COMMAND...: passes if the command does
{
	local name=$1
	shift
	if "$@"; then
		passed=$((passed + 1))
		return
	fi
	failed=$((failed + 1))
	echo "FAILED: $name"
	sed 's/^/  stdout: /' "$dir/out" | tail -n 20
	sed 's/^/  stderr: /' "$dir/err" | tail -n 20
}

skip() # skip REASON: of one test
{
	echo "SKIPPED: $*"
	skipped=$((skipped + 1))
}

sum_up() # the last line; the script's status is this one's
{
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
}

exits() { [ "$status" -eq "$1" ]; }
prints() { grep -qF -- "$1" "$dir/out"; }
says() { grep -qF -- "$1" "$dir/err"; }
silent() # silent [STREAM]: out or err, or both
{
	[ $# -gt 0 ] || set -- out err
	while [ $# -gt 0 ]; do
		[ ! -s "$dir/$1" ] || return 1
		shift
	done
}
there_is() { [ -e "$1" ] || [ -L "$1" ]; }
absent() { ! there_is "$1"; }
holds() { [ "$(cat "$1")" = "$2" ]; } # holds FILE TEXT

# Python that gives parts of the document j names.
json_names=
json() # json EXPRESSION: of the document j on standard output
{
	python3 -c 'import json, sys
j = json.load(open(sys.argv[1]))
exec(sys.argv[2])
sys.exit(0 if eval("(" + sys.argv[3] + ")") else 1)' "$dir/out" "$json_names" "$1"
}
