# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What a test's run script may use: '. /vm/lib.sh'.

# a or b where two machines run the test, else empty.
vm_role=$(sed -n 's/.*vm\.role=\([ab]\).*/\1/p' /proc/cmdline)
# The set of PCI devices (run.py), and the devices' names.
# shellcheck disable=SC2034
vm_devices=$(sed -n 's/.*vm\.devices=\([^ ]*\).*/\1/p' /proc/cmdline)
# shellcheck disable=SC2034
vm_edu0=0000:00:04.0 vm_edu1=0000:00:05.0 vm_hbm=0000:00:06.0 vm_msix=0000:00:07.0
# This machine's addresses on the link of two machines, and the other's.
case $vm_role in
a) vm_ip4=10.77.0.1 vm_ip6=fd77::1 vm_peer_ip4=10.77.0.2 ;;
b) vm_ip4=10.77.0.2 vm_ip6=fd77::2 vm_peer_ip4=10.77.0.1 ;;
esac

vm_fail() # vm_fail MESSAGE: ends the test
{
	echo "FAIL: $*"
	exit 1
}

vm_skip() # vm_skip REASON: ends the test, which counts as skipped
{
	echo "$*" >/run/vm/skip
	exit 77
}

# vm_until SECONDS COMMAND...: until the command succeeds; fails when the time is up.
vm_until()
{
	vm_until_end=$(($(date +%s) + $1))
	shift
	until "$@"; do
		[ "$(date +%s)" -lt $vm_until_end ] || return 1
		sleep 0.05
	done
}

# vm_bind DEVICE DRIVER: gives a PCI device that driver, whichever it had.
vm_bind()
{
	vm_device=/sys/bus/pci/devices/$1
	[ ! -e "$vm_device/driver" ] || echo "$1" >"$vm_device/driver/unbind" || return 1
	echo "$2" >"$vm_device/driver_override" && echo "$1" >"/sys/bus/pci/drivers/$2/bind"
}

vm_is_listening() # vm_is_listening PORT: a TCP socket of this machine is
{
	grep -qhiE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [0-9A-F:]+ 0A" \
		/proc/net/tcp /proc/net/tcp6
}

# vm_nobody COMMAND...: as a user who owns nothing.
vm_nobody()
{
	grep -qs '^nobody:' /etc/passwd || echo 'nobody:x:65534:65534::/:/usr/bin/sh' >>/etc/passwd
	su -s /usr/bin/sh nobody -c "$*"
}

# Two machines: each serves the marks it sets to the other by HTTP over the link.

vm_link_up()
{
	modprobe virtio_pci && modprobe virtio_net || return 1
	vm_until 10 test -e /sys/class/net/eth0 || return 1
	ip link set eth0 name wire mtu 4200 up &&
		ip addr add "$vm_ip4/24" dev wire &&
		ip addr add "$vm_ip6/64" dev wire nodad &&
		httpd -p 80 -h /run/vm/marks
}

vm_mark() # vm_mark NAME [TEXT]: the other machine may go on
{
	echo "${2:-}" >"/run/vm/.$1" && mv "/run/vm/.$1" "/run/vm/marks/$1"
}

vm_peer_mark() # vm_peer_mark NAME: prints its text; fails if the other has not set it
{
	timeout 5 wget -q -O - "http://$vm_peer_ip4/$1" 2>/dev/null
}

vm_peer_marked_or_ended()
{
	vm_peer_mark "$1" >/run/vm/peer || vm_peer_mark end >/dev/null
}

# vm_wait NAME SECONDS: until the other has set that mark, whose text it prints. Fails when
# the time is up, or when the other has ended its test without it.
vm_wait()
{
	if vm_until "$2" vm_peer_marked_or_ended "$1" && vm_peer_mark "$1"; then
		return 0
	fi
	echo "the other machine did not come to '$1' within $2 s, or ended before" >&2
	return 1
}

vm_say_goodbye()
{
	timeout 5 nc "$vm_peer_ip4" 81 </dev/null >/dev/null 2>&1
}

# vm_meet_end STATUS SECONDS: called by init. Neither machine goes while the other may still
# need it: a goes once b has called it, b once a has answered, and a answers when it has seen
# b's end.
vm_meet_end()
{
	vm_mark end "$1"
	if ! vm_until "$2" vm_peer_mark end >/dev/null; then
		echo "vm: the other machine does not end its test"
	elif [ "$vm_role" = a ]; then
		timeout 30 nc -l -p 81 -e true
	else
		vm_until 30 vm_say_goodbye
	fi
}

# Soft-RoCE.

# vm_rxe_up NETDEV: device rxe0 over it. NETDEV is 'wire' with two machines, else 'dummy0',
# which is made, with the address 10.9.9.1.
vm_rxe_up()
{
	[ ! -e /sys/class/infiniband/rxe0 ] || return 0
	vm_netdev=$1
	if [ "$vm_netdev" = dummy0 ]; then
		modprobe dummy numdummies=0 &&
			ip link add dummy0 mtu 4200 type dummy &&
			ip addr add 10.9.9.1/24 dev dummy0 &&
			ip link set dummy0 up || return 1
	fi
	modprobe rdma_rxe && modprobe rdma_ucm &&
		rdma link add rxe0 type rxe netdev "$vm_netdev" &&
		vm_until 10 test -c /dev/infiniband/uverbs0
}

# vm_gid_index GID: the index of rxe0's GID, written as the kernel does: eight groups of four
# digits. An IPv4 address may be given as such.
vm_gid_index()
{
	vm_gid=$1
	case $1 in
	*.*)
		# Word splitting is meant: the address's four numbers.
		# shellcheck disable=SC2046,SC2183
		vm_gid=$(printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' \
			$(echo "$1" | tr . ' '))
		;;
	esac
	for vm_gid_file in /sys/class/infiniband/rxe0/ports/1/gids/*; do
		if [ "$(cat "$vm_gid_file")" = "$vm_gid" ]; then
			basename "$vm_gid_file"
			return
		fi
	done
	echo "rxe0 has no GID $vm_gid" >&2
	return 1
}
