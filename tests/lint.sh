#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# lint.sh [CHECK...]: the style and static checks, all of them by default. Each prints what
# it found; the exit status is 1 if any found something. What needs a source's own compiler
# flags is in build.mk. Only files that git knows, or would add, count.

cpp=${LINT_CPPFLAGS:--Iinclude -I. -D_GNU_SOURCE}
jobs=$(nproc)

files() # files PATTERN...: names, one a line, of what is in the tree now
{
	git ls-files --cached --others --exclude-standard -- "$@" | while read -r file; do
		[ ! -f "$file" ] || echo "$file"
	done | sort -u
}

each() # each PROGRAM...: runs it once per name on stdin, in parallel
{
	xargs -r -n 1 -P "$jobs" "$@"
}

check_format()
{
	files '*.c' '*.cc' '*.h' | xargs -n 50 -P "$jobs" clang-format --dry-run -Werror
}

# Each public header by itself; those of the device side are C++ alone, and the Ascend compiler's
# is left to freestanding.sh.
check_headers()
{
	flags="$cpp -Wall -Wextra -Werror -pedantic -fsyntax-only"
	# shellcheck disable=SC2016
	files 'include/*.h' ':!include/nda/aiv' ':!include/nda/hw' | FLAGS=$flags each sh -c \
		'echo "typedef int unit;" | gcc -std=c11 $FLAGS -include "$1" -x c -' c &&
	files 'include/*.h' ':!include/nda/aiv/ascend_core.h' | FLAGS=$flags each sh -c \
		'echo "typedef int unit;" | g++ -std=c++17 $FLAGS -include "$1" -x c++ -' c++
}

check_shell()
{
	# Scripts have a shebang; the .sh files among them may be sourced.
	{
		files '*.sh'
		files | xargs -r grep -lE '^#!.*[/ ](ba)?sh( |$)'
	} | sort -u | xargs -r shellcheck -x
}

# Pages have no date: the packages have. Those that are links are the pages that they lead to.
check_man()
{
	pages=$(files 'docs/man/*' | while read -r page; do [ -L "$page" ] || echo "$page"; done)
	# shellcheck disable=SC2086
	! mandoc -T lint -W warning $pages | grep -v 'WARNING: missing date'
}

check_python()
{
	files '*.py' | xargs -r -n 1 python3 -c 'import ast, sys
name = sys.argv[1]
ast.parse(open(name).read(), name)'
}

# The licence is in the first two lines (a script has its interpreter first). Data and
# files of a foreign format cannot hold it.
check_spdx()
{
	files ':!COPYING.*' ':!*.json' ':!*.md' ':!packaging/debian' ':!tests/data' ':!.gitignore' |
		xargs awk '
			function judge() {
				if (name == "" || found)
					return
				print name ": no SPDX-License-Identifier in its first two lines"
				failed = 1
			}
			FNR == 1 { judge(); name = FILENAME; found = 0 }
			FNR <= 2 && /SPDX-License-Identifier: \(?GPL-2\.0/ { found = 1 }
			END { judge(); exit failed }'
}

check_whitespace()
{
	found=0
	if files ':!COPYING.*' ':!tests/data' | xargs grep -nHE '[[:blank:]]+$' | grep .; then found=1; fi
	files ':!COPYING.*' ':!tests/data' | xargs python3 -c 'import sys
open_ended = [name for name in sys.argv[1:] if open(name, "rb").read()[-1:] not in (b"", b"\n")]
for name in open_ended:
	print(name + ": no newline at its end")
sys.exit(open_ended != [])' || found=1
	return $found
}

# Nothing may depend on, or tell of, the machine it was written on.
check_paths()
{
	! files ':!tests/lint.sh' | xargs grep -nHE '(^|[^[:alnum:]_.-])/(home|root|work|Users)/[[:alnum:]]'
}

# The versions in packaging/META are those of the headers.
check_versions()
{
	# shellcheck source=packaging/META
	. ./packaging/META
	want=$(echo "$IBV_EXTEND_VERSION" | tr . ' ')
	# shellcheck disable=SC2086
	have=$(echo MAJOR MINOR PATCH | sed 's/[A-Z]*/IBV_EXTEND_VERSION_&/g' |
		g++ $cpp -E -P -include ibv_extend.h -x c++ - 2>/dev/null | tail -n 1)
	[ "$want" = "$have" ] && return
	echo "ibv_extend.h has version '$have', packaging/META '$want'"
	return 1
}

[ $# -gt 0 ] || set -- format headers spdx whitespace paths versions shell python man
failed=
for check in "$@"; do
	begin=$(date +%s)
	"check_$check"
	status=$?
	[ $status -eq 0 ] || failed="$failed $check"
	printf '  %-8s%s: %s (%d s)\n' LINT "$check" \
		"$([ $status -eq 0 ] && echo clean || echo FAILED)" $(($(date +%s) - begin))
done
[ -z "$failed" ] || { echo "lint: failed:$failed"; exit 1; }
