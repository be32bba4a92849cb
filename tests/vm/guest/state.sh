# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# For init: what a test can change in the machine, and how it is put back before the next one.

vm_pci_state() # vm_pci_state DEVICE
{
	read -r vm_override <"$1/driver_override"
	read -r vm_enabled <"$1/enable"
	vm_driver=$(readlink "$1/driver") || vm_driver=none
	echo "device ${1##*/}: driver ${vm_driver##*/}, override $vm_override, enabled $vm_enabled"
}

# One thing a line.
vm_state()
{
	sed 's/^\([^ ]*\) .*/module \1/' /proc/modules
	sed 's/^[^ ]* \([^ ]*\) .*/mount \1/' /proc/mounts
	for vm_thing in /sys/class/* /sys/class/net/* /sys/class/infiniband/* \
		/sys/kernel/debug/* /dev/* /dev/shm/* /tmp/* /run/*; do
		[ ! -e "$vm_thing" ] || echo "file $vm_thing"
	done
	for vm_thing in /sys/bus/pci/devices/*; do
		vm_pci_state "$vm_thing"
	done
	# That modules from elsewhere were loaded (12, 13) is known.
	echo "taint $(($(cat /proc/sys/kernel/tainted) & ~0x3000))"
	for vm_thing in /proc/[0-9]*; do
		# Kernel threads have none, nor do those that have ended; init's own have init's.
		vm_command=
		read -r vm_command 2>/dev/null <"$vm_thing/cmdline"
		case $vm_command in
		'' | */init) ;;
		*) echo "process $vm_command" ;;
		esac
	done
}

# What is of the distribution's goes; what is ours the test has to remove itself.
vm_unload()
{
	# The newest come first, so none is needed by a later one.
	vm_extra=$(sed 's/ .*//' /proc/modules | grep -v '^nda' | grep -vxFf /run/vm/modules)
	# shellcheck disable=SC2086
	[ -z "$vm_extra" ] || { rmmod $vm_extra 2>/dev/null && false; }
}

# vm_restore: prints what of a test remains in spite of it.
vm_restore()
{
	for vm_thing in /sys/class/infiniband/*; do
		[ ! -e "$vm_thing" ] || rdma link delete "${vm_thing##*/}" 2>/dev/null
	done
	for vm_thing in /sys/class/net/*; do
		grep -qxF "file $vm_thing" /run/vm/state || ip link delete "${vm_thing##*/}"
	done
	for vm_thing in /sys/bus/pci/devices/*/driver_override; do
		read -r vm_override <"$vm_thing"
		[ "$vm_override" = '(null)' ] || echo >"$vm_thing"
	done
	vm_mounts=$(sed 's/^[^ ]* \([^ ]*\) .*/mount \1/' /proc/mounts | grep -vxFf /run/vm/state)
	for vm_thing in $(echo "$vm_mounts" | sed 's/^mount //' | sort -r); do
		umount "$vm_thing"
	done
	# shellcheck disable=SC2044
	for vm_thing in $(find /tmp /dev/shm /run -mindepth 1 -maxdepth 1); do
		[ "$vm_thing" = /run/vm ] || rm -rf "$vm_thing"
	done
	vm_until 10 vm_unload
	# Processes that were killed may take a while to be gone, and files of modules too.
	vm_until 10 vm_is_restored || cat /run/vm/differs
}

vm_is_restored()
{
	vm_state >/run/vm/now
	! grep -vxFf /run/vm/state /run/vm/now >/run/vm/differs
}

vm_remember()
{
	{ echo 'module' && sed 's/ .*//' /proc/modules; } >/run/vm/modules
	vm_state >/run/vm/state
}
