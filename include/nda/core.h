/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a kernel on the software NPU is called with. On an Ascend NPU kernels have the
 * compiler's own entry convention and this header is not used.
 */
#ifndef NDA_CORE_H
#define NDA_CORE_H

#include <stdint.h>

/**
 * struct nda_core - one vector core of one launch
 * @index:          this core's index, 0 <= index < count
 * @count:          cores of the launch
 * @address_offset: added to an NPU address to get the address this core can load from and
 * store to; 0 unless the NPU was opened with NDA_NPU_STRICT
 * @nic_asleep:     not 0 while who serves doorbells, the NIC's engine or the doorbell
 *                  proxy, sleeps and needs a kick
 * @nic_kick:       wakes them; any thread may call it
 * @nic_step:       runs them once in the caller's thread if no other thread does;
 *                  returns non-zero if it did work. NULL where assistance is switched off
 * @nic:            cookie of the two functions
 *
 * Owned by the launch; valid until the kernel function returns.
 */
struct nda_core {
	uint32_t index;
	uint32_t count;
	uint64_t address_offset;
	const uint32_t *nic_asleep;
	void (*nic_kick)(void *nic);
	int (*nic_step)(void *nic);
	void *nic;
};

/* A kernel: runs once on each core. It must not throw and must return by itself. */
typedef void (*nda_kernel_fn)(const struct nda_core *core, void *arg);

#endif
