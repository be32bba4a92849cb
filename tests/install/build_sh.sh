#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# packaging/build.sh: its options, with a stand-in for make, and what a real run leaves.

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/script.sh
. tests/script.sh

# The script makes output/ beside packaging/: it works in a tree of links.
tree=$dir/tree
mkdir "$tree"
for name in *; do
	[ "$name" = build ] || [ "$name" = output ] || ln -s "$PWD/$name" "$tree/$name"
done
rm "$tree/packaging"
cp -r packaging "$tree/packaging"

cat >"$dir/make" <<'TEXT'
#!/bin/sh
printf '%s\n' "$@"
TEXT
chmod +x "$dir/make"

build_sh() # build_sh ARGUMENT...
{
	run env -u CXXFLAGS MAKE="$dir/make" "$tree/packaging/build.sh" "$@"
}
gives_make() { grep -qxF -- "$1" "$dir/out"; }

for option in -h --help; do
	build_sh $option
	check "$option exits 0" exits 0
	for word in -t -b -s -x -e -h; do
		check "$option tells of $word" grep -q -e "^  $word, --" "$dir/out"
	done
done

build_sh
check "no option is needed" exits 0
check "without options it is a release" gives_make 'CXXFLAGS=-O2 -g'
check "it builds the library" gives_make "PREFIX=$tree/output"
for option in '-t Debug' '-tDebug' '--build-type Debug' '--build-type=debug'; do
	# shellcheck disable=SC2086
	build_sh $option
	check "$option is understood" gives_make 'CXXFLAGS=-O0 -g'
done
build_sh -t Fast
check "an unknown type is wrong usage" exits 2
check "and is named" says "'Fast'"
build_sh -t
check "a type is needed" exits 2

for option in '-b' '-b v58.1' '--rdma-core-branch=v58.1' '-s /src' '--rdma-core-source /src' \
	'-x' '-x v1.1.16' '--boundscheck-branch v1.1.16' '-e /src' '--boundscheck-source=/src'; do
	# shellcheck disable=SC2086
	build_sh $option -t Debug
	check "$option builds" gives_make 'CXXFLAGS=-O0 -g'
	check "$option says that it changes nothing" says "change nothing"
done
for options in '-b v58.1 -s /src' '-s /src -b v58.1' '-s -b' '-x v1 -e /src' '-e /src -x v1' \
	'--rdma-core-branch=a --rdma-core-source=b' '--boundscheck-source=a --boundscheck-branch=b'; do
	# shellcheck disable=SC2086
	build_sh $options
	check "$options is wrong usage" exits 2
	check "$options: says why" says "exclude each other"
done
build_sh -b v58.1 -x v1.1.16
check "of the two pairs, one each may be given" exits 0
for options in -q --no-such-option word '-t Debug word'; do
	# shellcheck disable=SC2086
	build_sh $options
	check "$options is wrong usage" exits 2
done

# For real.
export CXX=${CXX:-g++}
[ -z "$(command -v ccache)" ] || export CXX="ccache g++"
run "$tree/packaging/build.sh" -t Debug
check "it builds" exits 0
library=$tree/output/lib/libibv_extend.so
check "the library is there" [ -f "$library" ]
check "the header is there" cmp "$tree/output/include/ibv_extend.h" include/ibv_extend.h
check "it has all 16 symbols" [ "$(nm -D --defined-only "$library" | wc -l)" -eq 16 ]
check "libboundscheck is not needed" [ -z "$(ldd "$library" | grep -E 'boundscheck|c_sec')" ]

sum_up
