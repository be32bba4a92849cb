#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What DKMS does with what install-dkms installs, for each kernel with headers:
# those of the system, and those that tests/vm/kernel.sh fetched to build/vm/kernels. Needs root:
# DKMS works on /usr/src, /lib/modules and /var/lib/dkms, which here are layers over the system's, in
# a mount namespace. Leaves the modules in build/dkms/KERNEL, for the virtual machine.

cd "$(dirname "$0")/../.." || exit 1
build=build
# shellcheck source=packaging/META
. packaging/META
# shellcheck source=tests/script.sh
. tests/script.sh

# no REASON: nothing can be tested.
no() { skip "$*"; sum_up; exit; }
[ "$(id -u)" -eq 0 ] || no "needs root"
command -v dkms >/dev/null || no "there is no dkms"
if [ -z "${NDA_DKMS_NAMESPACE:-}" ]; then
	unshare -m true 2>/dev/null || no "there are no mount namespaces"
	# What is mounted below $dir is gone when it is removed here.
	NDA_DKMS_NAMESPACE=yes TMPDIR=$dir unshare -m "$0"
	exit
fi
trap - EXIT

layers=$dir/layers root=$dir/root tree=/usr/src/nda-$NDA_VERSION
make -s install-dkms DESTDIR="$root" MODPROBEDIR=/modprobe.d || exit 1
mkdir "$layers"
mount -t tmpfs layers "$layers" || no "no tmpfs can be mounted"

over() # over DIRECTORY [LOWER]: whatever is written there from now on goes nowhere
{
	local name=${1//\//_}
	mkdir -p "$layers/$name" "$layers/$name.work"
	mount -t overlay layers "$1" \
		-o "lowerdir=${2:+$2:}$1,upperdir=$layers/$name,workdir=$layers/$name.work"
}
over /usr/src "$root/usr/src" || no "no overlay can be mounted"
over /lib/modules || no "no overlay can be mounted"
over /etc/dkms || no "no overlay can be mounted"
mount -t tmpfs dkms /var/lib/dkms || exit 1
# Whatever of nda's the system has.
find /lib/modules -name 'nda*.ko*' -delete

# Another kernel's headers, as if they were installed.
for other in "$build"/vm/kernels/*; do
	[ -f "$other/version" ] || continue
	# Its compiler is not the system's.
	[ ! -e "$other/chroot" ] || continue
	modules=/lib/modules/$(cat "$other/version")
	[ ! -e "$modules/build/Makefile" ] || continue
	mkdir -p "$modules"
	ln -sfn "$(realpath "$(cat "$other/build")")" "$modules/build"
done
kernels=()
for makefile in /lib/modules/*/build/Makefile; do
	[ ! -e "$makefile" ] || kernels+=("$(basename "${makefile%/build/Makefile}")")
done
[ ${#kernels[@]} -gt 0 ] || no "no kernel's headers are installed"
[ ${#kernels[@]} -gt 1 ] || skip "a second kernel: only ${kernels[0]} has headers here"

# One that nda.ko cannot work with: to be passed over.
mkdir -p /lib/modules/0.0.0-tiny/build/include
echo CONFIG_MODULES=y >/lib/modules/0.0.0-tiny/build/.config
: >/lib/modules/0.0.0-tiny/build/Makefile

refresh() { run nice "$tree/refresh" "$@"; }
module() { find "/lib/modules/$1/updates" -name "$2.ko*" 2>/dev/null | grep -q .; }
field() { modinfo -k "$1" -F "$3" "$2" 2>/dev/null; } # field KERNEL MODULE FIELD
status() { dkms status -m nda -v "$NDA_VERSION" -k "$1" | grep -q installed; }

refresh
check "refresh builds" exits 0
check "a kernel without what nda.ko needs is passed over" prints '0.0.0-tiny: lacks'
for kernel in "${kernels[@]}"; do
	check "$kernel: DKMS has installed it" status "$kernel"
	for name in nda nda_ascend nda_peermem nda_soft; do
		check "$kernel: $name.ko is there" module "$kernel" $name
		check "$kernel: $name.ko has nda's version" \
			[ "$(field "$kernel" $name version)" = "$NDA_VERSION" ]
		check "$kernel: $name.ko is that kernel's" \
			[ "$(field "$kernel" $name vermagic | cut -d ' ' -f 1)" = "$kernel" ]
		check "$kernel: $name.ko is signed" [ -n "$(field "$kernel" $name signer)" ]
	done
	check "$kernel: nda.ko brings nda_ascend.ko" \
		grep -qx 'softdep:  *post: nda_ascend' <(modinfo -k "$kernel" nda)
	check "$kernel: modprobe knows what nda_ascend.ko needs" \
		grep -q '/nda\.ko' <(modprobe -S "$kernel" --show-depends nda_ascend)
	check "$kernel: nothing but nda's was installed" \
		[ "$(find "/lib/modules/$kernel/updates" -type f | wc -l)" -eq 4 ]
	rm -rf "$build/dkms/$kernel"
	mkdir -p "$build/dkms/$kernel"
	cp "/lib/modules/$kernel/updates"/*/nda*.ko* "$build/dkms/$kernel"
	tests/install/dkms_sources.sh "$root$tree" >"$build/dkms/$kernel/sources"
done
rm -rf /lib/modules/0.0.0-tiny

refresh
check "a second refresh has nothing to do" exits 0
check "and says nothing" silent

# An OFED for one kernel comes, and nda_soft.c does not compile any more.
kernel=${kernels[0]} machine=$(uname -m)
ofed=/usr/src/ofa_kernel/$machine/$kernel
mkdir -p "$ofed/include/rdma"
cp kmod/compat/include/rdma/peer_mem.h "$ofed/include/rdma"
symvers() # symvers VERSION
{
	for name in ib_register_peer_memory_client ib_unregister_peer_memory_client; do
		printf '%s\t%s\tib_core\tEXPORT_SYMBOL\t\n' "$1" $name
	done >"$ofed/Module.symvers"
}
symvers 0x12345678
echo '#error "not with this kernel"' >>"$tree/kmod/nda_soft_kick.c"
refresh
check "a change of OFED's builds again" prints "$kernel: the RDMA core's peer-memory interface has changed"
check "a module that cannot be built does no harm" exits 0
check "DKMS has installed it" status "$kernel"
check "nda_peermem.ko is a real one" [ -n "$(field "$kernel" nda_peermem depends)" ]
check "for that OFED" grep -q '0x12345678.*ib_register_peer_memory_client' \
	<(modprobe --dump-modversions "$(modinfo -k "$kernel" -n nda_peermem)")
check "nda.ko brings it" grep -q 'post: nda_peermem' <(modinfo -k "$kernel" nda)
check "nda_soft.ko is a stub" [ -z "$(field "$kernel" nda_soft depends)" ]
check "and refresh tells of it" prints "a stub there: nda_soft"
check "nda_ascend.ko is a real one" [ "$(field "$kernel" nda_ascend depends)" = nda ]
for other in "${kernels[@]:1}"; do
	check "$other: its nda_peermem.ko stays" [ -z "$(field "$other" nda_peermem depends)" ]
done

# With the next OFED not even nda.c compiles.
symvers 0x87654321
cp "$tree/kmod/nda_main.c" "$dir"
echo '#error "not with this kernel"' >>"$tree/kmod/nda_main.c"
refresh
check "it is a failure if nda.ko cannot be built anew" exits 1
check "nda.ko that was there stays" module "$kernel" nda
check "that is told" prints "$kernel: what it has stays"
check "DKMS still has it installed" status "$kernel"
cp "$dir/nda_main.c" "$tree/kmod"
symvers 0x12345678

# What refresh would do: with a DKMS that only says that all is installed.
mkdir "$dir/bin"
cat >"$dir/bin/dkms" <<'TEXT'
#!/bin/sh
[ "$1" = status ] && echo installed || echo "$@" >>"$DKMS_CALLS"
TEXT
chmod +x "$dir/bin/dkms"
asked() # asked [--auto]: what it is asked
{
	: >"$dir/calls"
	DKMS_CALLS=$dir/calls PATH=$dir/bin:$PATH refresh "$@"
	cat "$dir/calls"
}
check "all is well" [ -z "$(asked)" ]
symvers 0x87654321
check "another OFED builds again" grep -q "^build .*-k $kernel" <(asked)
touch /etc/dkms/no-autoinstall
check "a package's call does not, where root wants no such builds" [ -z "$(asked --auto)" ]
check "root's does" grep -q "^build .*-k $kernel" <(asked)
rm /etc/dkms/no-autoinstall
check "a package's call does elsewhere" grep -q "^build .*-k $kernel" <(asked --auto)
rm -rf /usr/src/ofa_kernel
check "an OFED that is gone builds again" grep -q "^build .*-k $kernel" <(asked)

run dkms remove "nda/$NDA_VERSION" --all
check "DKMS removes it" exits 0
check "no module is left" [ -z "$(find /lib/modules -name 'nda*')" ]
check "nothing is left in DKMS's tree" absent /var/lib/dkms/nda

mount -t tmpfs modules /lib/modules || exit 1
refresh
check "without headers it is no failure" exits 0
check "and the reason is told" prints "no kernel's headers are installed"

sum_up
