#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# build.sh [OPTION...]: builds libibv_extend as the script of that name beside the original does,
# for those who know that one. See --help; docs/install.md says what differs.

set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
output=$root/output

usage()
{
	cat <<'TEXT'
Usage: build.sh [OPTION...]

Builds libibv_extend.so and leaves it, with its header, in output/lib and output/include.
Nothing is downloaded: rdma-core's development files are taken from the system, and
libboundscheck is not needed. Options that say where these come from are understood, so that
command lines stay as they are, and change nothing.

  -t, --build-type TYPE            Release (the default) or Debug
  -b, --rdma-core-branch [NAME]    which rdma-core to download: none is
  -s, --rdma-core-source [DIR]     where its sources are; not with -b
  -x, --boundscheck-branch [NAME]  which libboundscheck to download: none is
  -e, --boundscheck-source [DIR]   where its sources are; not with -x
  -h, --help                       this text

The environment's MAKE, CXX, CXXFLAGS and JOBS are heeded.
TEXT
}

usage_error()
{
	echo "build.sh: $*" >&2
	echo "Try 'build.sh --help'." >&2
	exit 2
}

exclude() # exclude OPTION OTHER WHETHER-OTHER-WAS-GIVEN
{
	[ -z "$3" ] || usage_error "$1 and $2 exclude each other"
}

type=Release
branch='' source='' check_branch='' check_source=''
while [ $# -gt 0 ]; do
	option=$1
	shift
	case $option in
	-h | --help)
		usage
		exit 0
		;;
	--*=*)
		value=${option#*=}
		option=${option%%=*}
		;;
	-[tbsxe] | --*)
		value=
		# The next word, unless that is an option.
		case ${1:--} in
		-*) ;;
		*)
			value=$1
			shift
			;;
		esac
		;;
	-[tbsxe]*)
		value=${option#-?}
		option=${option%"$value"}
		;;
	*) usage_error "unknown argument '$option'" ;;
	esac
	case $option in
	-t | --build-type) type=$value ;;
	-b | --rdma-core-branch) branch=given ;;
	-s | --rdma-core-source) source=given ;;
	-x | --boundscheck-branch) check_branch=given ;;
	-e | --boundscheck-source) check_source=given ;;
	*) usage_error "unknown option '$option'" ;;
	esac
done
[ -z "$branch" ] || exclude -b -s "$source"
[ -z "$check_branch" ] || exclude -x -e "$check_source"
for given in "$branch" "$source"; do
	[ -z "$given" ] || echo "build.sh: rdma-core is the system's, -b and -s change nothing" >&2
done
for given in "$check_branch" "$check_source"; do
	[ -z "$given" ] || echo "build.sh: libboundscheck is not needed, -x and -e change nothing" >&2
done

case $type in
[Rr]elease) flags='-O2 -g' ;;
[Dd]ebug) flags='-O0 -g' ;;
*) usage_error "unknown build type '$type': Release or Debug" ;;
esac

# In a folder of its own, since objects do not remember their flags.
build=build/build.sh-$(echo "$type" | tr '[:upper:]' '[:lower:]')
rm -rf "$output"
${MAKE:-make} -C "$root" -j"${JOBS:-$(nproc)}" B="$build" CXXFLAGS="${CXXFLAGS:-$flags}" \
	LIBS="$build/lib/libibv_extend.so" HEADERS=ibv_extend.h PCFILES=lib/ibv_extend/libibv_extend.pc.in \
	PREFIX="$output" install-lib install-headers
echo "$output/lib/libibv_extend.so"
echo "$output/include/ibv_extend.h"
