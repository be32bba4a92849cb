// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Images of what kernels receive, made on the host: the native table, and the view in the
// layout that kernels of the public collective library read. Pure functions.
#ifndef NDA_LIB_PUBLISH_H
#define NDA_LIB_PUBLISH_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include <nda/table.h>

namespace nda {

using Image = std::vector<uint8_t>;

constexpr uint64_t queues_offset = 256;
static_assert(
	queues_offset >= sizeof(nda_table) && queues_offset % NDA_CACHE_LINE == 0, "");

// Where the queue `index` (core * n_pes + pe) and its mutable line are, from the table.
constexpr uint64_t queue_offset(uint64_t index)
{
	return queues_offset + index * NDA_QUEUE_STRIDE;
}
constexpr uint64_t state_offset(uint64_t index)
{
	return queue_offset(index) + offsetof(nda_queue, state);
}

// header: all but magic, version, size and queues_offset, which are filled in here.
Image table_image(const nda_table &header, const std::vector<nda_queue> &queues);

// What a view says of one peer.
struct ViewPeer {
	bool self;
	nda_queue queue;
	uint64_t state_addr; // of the queue's mutable line in NPU memory
	uint32_t service_level;
	uint32_t mtu_shift;
	uint64_t heap_addr; // of that PE
	uint64_t heap_bytes;
	uint32_t heap_rkey; // what the peer registered; lkey: see view_image
	uint64_t amo_addr;
	uint32_t amo_lkey;
};

constexpr uint64_t view_info_bytes = 48, view_sq_bytes = 96, view_cq_bytes = 64,
		   view_mem_bytes = 24;

constexpr uint64_t view_bytes(uint64_t n_pes)
{
	return view_info_bytes +
		n_pes * (2 * view_sq_bytes + 2 * view_cq_bytes + view_mem_bytes);
}

// The blob as it must lie at addr: info, sq[N], rq[N], scq[N], rcq[N], mem[N]. own_lkey
// goes with every local address.
Image view_image(uint64_t addr, const std::vector<ViewPeer> &peers, uint32_t own_lkey);

} // namespace nda

#endif
