#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The interface of libnda: what it exports, its map and its headers agree, and each public C
# header compiles alone, as C11 and as C++17.

build=${NDA_TEST_BUILD:-build}
library=$build/lib/libnda.so
passed=0 failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

check() { # check NAME COMMAND...: counts, and says what failed
	name=$1
	shift
	if "$@" >"$work/out" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED: $name"
		cat "$work/out"
	fi
}

nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sort >"$work/exported"
sed 's/@@.*//' "$work/exported" >"$work/names"
sed -n 's/^\t\(nda_[a-z0-9_]*\);$/\1/p' lib/nda/libnda.map | sort >"$work/mapped"
# Without comments: a name in one is no declaration.
for header in include/nda/*.h; do
	cpp -fpreprocessed -P "$header" 2>/dev/null
done | tr '\n' ' ' | grep -o 'nda_[a-z0-9_]*([^()]*)* *NDA_NOEXCEPT' |
	sed 's/(.*//' | sort -u >"$work/declared"

check 'something is exported' test -s "$work/names"
check 'every symbol has the version of the map' \
	sh -c "! grep -v '@@NDA_1\.[0-9]*\$' '$work/exported'"
check 'only nda_ symbols are exported' sh -c "! grep -v '^nda_' '$work/names'"
check 'exported and mapped symbols are the same' diff "$work/names" "$work/mapped"
check 'each exported symbol is declared in a header' diff "$work/names" "$work/declared"
check 'the soname has the major version' \
	sh -c "readelf -d '$library' | grep -q 'SONAME.*\[libnda\.so\.1\]'"
check 'no C++ library is needed' sh -c "! readelf -d '$library' | grep NEEDED | grep stdc"

# hw and aiv are C++ for the device; the rest is the C API.
for header in include/nda/*.h; do
	name=${header#include/}
	printf "#include <%s>\ntypedef int used;\n" "$name" >"$work/alone.c"
	check "$name compiles alone as C11" "${CC:-cc}" -std=c11 -pedantic -Wall -Wextra -Werror \
		-Iinclude -fsyntax-only "$work/alone.c"
	check "$name compiles alone as C++17" "${CXX:-c++}" -std=c++17 -pedantic -Wall -Wextra \
		-Werror -Iinclude -fsyntax-only -x c++ "$work/alone.c"
done

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
