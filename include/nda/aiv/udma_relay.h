/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The way to a PE through a third one. In a table with relays a core has as many queues to
 * each PE as there are PEs: queue R leads through PE R, the own PE's is the direct one. A
 * queue through the PE that it leads to does not exist.
 */
#ifndef NDA_AIV_UDMA_RELAY_H
#define NDA_AIV_UDMA_RELAY_H

#include <stddef.h>
#include <stdint.h>

#include <nda/aiv/device.h>
#include <nda/aiv/udma_queue.h>
#include <nda/table.h>

namespace nda::aiv::udma {

/* As Device::open(), for a handle whose operations go through @relay. NDA_INVALID also:
 * @relay is the own PE, whose way is the direct one, or no PE. */
template <class Core>
NDA_DEV enum nda_status open_relay(Device<Core, Engine> *device, const Core &core,
	uint64_t table, uint32_t core_index, uint32_t relay)
{
	enum nda_status status = device->open(core, table, core_index, relay);

	if (status != NDA_OK || relay != device->my_pe())
		return status;
	device->close();
	return NDA_INVALID;
}

} // namespace nda::aiv::udma

#endif
