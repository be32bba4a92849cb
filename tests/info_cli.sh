#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# nda-info as its users run it. Needs NDA_TEST_BUILD, or builds in build/.

# shellcheck source=tests/script.sh
. tests/script.sh

build=$(realpath "${NDA_TEST_BUILD:-build}") || exit 1
info=$build/bin/nda-info
mocks=$build/tests/mock
unset LD_LIBRARY_PATH IBV_EXTEND_DRIVERS ASCEND_RT_VISIBLE_DEVICES NDA_ASCEND_PATH ASCEND_HOME_PATH
unset container HCCL_HOST_RDMA_UDP_PORTS_LIST

run() # run ARGUMENT...: of a machine below $root; status, $dir/out, $dir/err
{
	timeout -k 5 120 "$info" --root "$root" "$@" >"$dir/out" 2>"$dir/err"
	status=$?
}

# shellcheck disable=SC2034
json_names='
ids = [p["id"] for p in j.get("problems", [])]
notes = [p["id"] for p in j.get("notes", [])]
driver = lambda name: [d for d in j["search"]["drivers"] if name in d["name"]][0]'

# file PATH TEXT: below the root
file()
{
	mkdir -p "$root/$(dirname "$1")"
	printf '%s\n' "$2" >"$root/$1"
}

# locks_memory CAPABILITIES: with CAP_IPC_LOCK, 4000, the limit does not count
locks_memory() { file proc/self/status "CapEff: $1"; }

# machine: a new root, in which a server has a verbs device without user driver
machine()
{
	root=$dir/root
	rm -rf "$root"
	local port=sys/class/infiniband/mlx5_0/ports/1
	file sys/class/infiniband/mlx5_0/node_type '1: CA'
	file $port/state '4: ACTIVE'
	file $port/phys_state '5: LinkUp'
	file $port/link_layer Ethernet
	file $port/gids/0 fe80:0000:0000:0000:0000:0000:0000:0001
	file $port/gid_attrs/types/0 'RoCE v2'
	file $port/gid_attrs/ndevs/0 eth0
	file $port/gids/1 0000:0000:0000:0000:0000:ffff:0a09:0901
	file $port/gid_attrs/types/1 'RoCE v2'
	file $port/gid_attrs/ndevs/1 eth0
	file sys/class/net/eth0/mtu 4200
	file sys/class/net/eth0/operstate up
	file sys/class/infiniband_verbs/uverbs0/ibdev mlx5_0
	file dev/infiniband/uverbs0 ''
	locks_memory 0000000000004000
	mkdir -p "$root/etc/libibverbs_extend.d"
}

# Command line.
root=$dir/none
run --help
check "--help exits 0" exits 0
check "--help names the options" prints --check
check "--help is on stdout" silent err
run --version
check "--version exits 0" exits 0
check "--version names the program" grep -q '^nda-info [0-9]' "$dir/out"
for wrong in --no-such-option '--device=' word; do
	run "$wrong"
	check "'$wrong' is wrong usage" exits 2
	check "'$wrong': usage is on stderr" silent out
	check "'$wrong' is named" says 'nda-info: '
done
"$info" --root "$dir/none" >/dev/full 2>"$dir/err"
status=$?
check "a full disk exits 2" exits 2
check "a full disk is named" says 'standard output: No space left on device'

# Nothing there. The real loader is asked for libraries; without them that is a problem.
run
check "without --check the status is 0" exits 0
check "without --check there are no problems" \
	bash -c "! grep -q PROBLEM '$dir/out'"
check "the search is shown though there is no device" prints libibverbs_extend.d
run --json
check "--json is a document" json 'j["schema"] == 1 and j["devices"] == [] and "problems" not in j'
check "--json is all there is" silent err

# Libraries. A program gets those of the build.
mkdir "$dir/one" "$dir/two"
cp "$build"/lib/libibv_extend.so.4.* "$dir/one/libibv_extend.so.4"
ln -s libibv_extend.so.4 "$dir/one/libibv_extend.so"
cp "$dir/one/libibv_extend.so.4" "$dir/two/libibv_extend.so"
machine
export LD_LIBRARY_PATH=$dir/one
run --json --check
check "one library under both names" json 'j["libraries"]["one_file"] is True and
j["libraries"]["soname"]["file"].endswith("one/libibv_extend.so.4") and
j["libraries"]["soname"]["maker"] == "nda" and j["libraries"]["soname"]["version"] == "4.2.0"
and not [i for i in ids if i.startswith("library")]'
LD_LIBRARY_PATH=$dir/two:$dir/one run --json --check
check "two copies" json 'j["libraries"]["one_file"] is False and "library-two-copies" in ids'
check "two copies exit 1" exits 1
rm "$dir/one/libibv_extend.so"
run --json --check
check "no unversioned name" json '"library-unversioned" in ids'
LD_LIBRARY_PATH=$dir/none run --json --check
if json 'j["libraries"]["soname"]["path"] == ""'; then
	check "no library" json '"library-missing" in ids and j["libraries"]["one_file"] is None'
else
	skip "no library: libibv_extend is installed here"
fi
ln -s libibv_extend.so.4 "$dir/one/libibv_extend.so"

# A machine where all is well but for what the host itself lacks.
run --check
check "a machine where all is well exits 0" exits 0
check "and says so" prints 'No problem found.'
check "the port is shown" prints 'port 1: ACTIVE (LinkUp), Ethernet'
check "the GID is shown" prints 'GID 1: RoCEv2 10.9.9.1 (eth0)'

# Drivers: bad ones beside a good one.
echo "text" >"$dir/text.so"
printf '%s\n' "driver missing" "driver $mocks/libextend_crash.so" "driver $dir/text.so" \
	"driver $mocks/libextend_unlinked.so" "driver $mocks/libextend_rival.so" "drivr x" \
	>"$root/etc/libibverbs_extend.d/a.conf"
run --json --check
check "bad drivers exit 1" exits 1
check "each bad driver is a problem" json 'sorted(ids) == ["config-line", "driver-crashed",
"driver-missing", "driver-name-twice", "driver-not-library"]'
check "the good one is loaded" json 'driver("unlinked")["result"] == "loaded" and
driver("unlinked")["registered"] == ["extend_unlinked"]'
check "where each was named" json 'driver("missing")["source"].endswith("/a.conf") and
driver("unlinked")["position"] == 4'
run --check
check "people are told what to do" prints '-> take it out of the configuration'
check "and how many there are" prints '5 problems.'

# The library agrees: the names that it finds by the same search are those.
IBV_EXTEND_DRIVERS=$mocks/libextend_unlinked.so:$mocks/libextend_lacking.so run --json --check
check "the variable comes before the files" json 'j["search"]["drivers"][0]["source"] ==
"IBV_EXTEND_DRIVERS" and "driver-symbol" in ids'
rm "$root/etc/libibverbs_extend.d/a.conf"

# The state of a device, one thing at a time.
broken() # broken ID PATH TEXT
{
	machine
	file "$2" "$3"
	run --json --check
	check "$1 is found" json "ids == ['$1']"
	run --json --check --device mlx5_0
	check "$1 is found for the device alone" json "ids == ['$1']"
	check "$1 exits 1" exits 1
}
broken port-down sys/class/infiniband/mlx5_0/ports/1/state '1: DOWN'
broken gid-link-local-only sys/class/infiniband/mlx5_0/ports/1/gids/1 \
	fe80:0000:0000:0000:0000:0000:0000:0002
broken net-device-not-visible sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/1 eth7
machine
rm "$root/dev/infiniband/uverbs0"
run --json --check
check "a missing uverbs node is found" json 'ids == ["uverbs-absent"]'
machine
run --json --address 10.9.9.1
check "an address with a GID" json 'ids == []'
run --json --address 10.9.9.2
check "an address without GID" json 'ids == ["gid-missing-for-address"]'
run --address here
check "an address that is none is wrong usage" exits 2
check "and is named" says "--address: 'here': is no IPv4 or IPv6 address"
run --json --check --device other
check "a device that is not there is a problem" json 'ids == ["device-absent"]'
check "and exits 1" exits 1
run --json --check --device mlx5_0
check "a device that is well exits 0" exits 0
check "and is the only one" json '[d["name"] for d in j["devices"]] == ["mlx5_0"]'
run --json --check --device nda
check "/dev/nda alone" json '"devices" not in j and all(i.startswith("nda-") for i in ids)'

# NPUs.
machine
file dev/davinci0 ''
file dev/davinci1 ''
file dev/davinci_manager ''
file dev/devmm_svm ''
file dev/hisi_hdc ''
export NDA_ASCEND_PATH=$build/tests/ascend
ASCEND_RT_VISIBLE_DEVICES=1,0 run --json --check
check "permuted ids are a note" json '"npu-ids-permuted" in notes'
check "no hccn.conf is a problem" json '"npu-hccn-conf" in ids and "npu-runtime" not in ids'
file etc/hccn.conf 'address_0=192.168.100.101'
ASCEND_RT_VISIBLE_DEVICES=1,1 run --json --check
check "an id twice is a problem" json '"npu-ids-invalid" in ids and "npu-hccn-conf" not in ids'
NDA_ASCEND_PATH=$build/tests/ascend-bare ASCEND_RT_VISIBLE_DEVICES=1,0 run --json --check
check "a runtime that cannot translate is a problem" json '"npu-ids-untranslated" in ids'
unset NDA_ASCEND_PATH

# As somebody who may do nothing.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	machine
	locks_memory 0
	chmod 0600 "$root/dev/infiniband/uverbs0"
	chmod 0755 "$dir"
	(
		ulimit -l 64
		timeout 120 setpriv --reuid 65533 --regid 65533 --clear-groups --bounding-set=-all \
			--inh-caps=-all "$info" --root "$root" --json --check
	) >"$dir/out" 2>"$dir/err"
	status=$?
	check "no permission on uverbs, and little memory to lock" json \
		'"uverbs-permission" in ids and "memlock-small" in ids'
	check "a user who may do nothing: exits 1" exits 1
else
	skip "no permission: not root, or no setpriv"
fi

machine
locks_memory 0
(
	ulimit -l 64
	timeout 120 "$info" --root "$root" --json --check
) >"$dir/out" 2>"$dir/err"
check "64 KiB to lock is a problem" json '"memlock-small" in ids'

sum_up
