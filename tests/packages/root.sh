# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# Sourced. Roots: directories with a system of the distribution's packages, in which ours are
# installed. Needs to be root.

# in_root ROOT COMMAND...: in mount and process namespaces of its own, which end with it.
in_root()
{
	# shellcheck disable=SC2016
	unshare --mount --pid --fork --kill-child sh -c '
		root=$1
		shift
		mount -t proc proc "$root/proc" && mount -t tmpfs tmpfs "$root/dev/shm" &&
			exec chroot "$root" "$@"' in_root "$@"
}

apt_in() # apt_in ROOT ARGUMENT...: of apt-get
{
	root=$1
	shift
	in_root "$root" env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 \
		apt-get -q -y --no-install-recommends "$@"
}

# use_repository ROOT DIRECTORY: has the root know the packages of that repository, and those of
# the distribution that it knew before.
use_repository()
{
	rm -rf "$1/srv/nda"
	cp -r "$2" "$1/srv/nda"
	echo 'deb [trusted=yes] file:/srv/nda ./' >"$1/etc/apt/sources.list.d/nda.list"
	apt_in "$1" update -o Dir::Etc::SourceList=sources.list.d/nda.list \
		-o Dir::Etc::SourceParts=- -o APT::Get::List-Cleanup=0
}

# The distribution's lines for sources.list, as apt is configured here.
sources()
{
	# shellcheck source=/dev/null
	. /etc/os-release
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(CREATED_BY) $(ORIGIN) $(REPO_URI) $(CODENAME) $(COMPONENT)' |
		awk -v codename="$VERSION_CODENAME" '
			$1 == "Packages" && $2 == "Debian" && $4 ~ "^" codename {
				print "deb", $3, $4, $5
			}' | sort -u
}
