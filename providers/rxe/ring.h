// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_RXE_RING_H
#define NDA_RXE_RING_H

#include <cstdint>

#include "ibv_extend.h"
#include "providers/rxe/uapi.h"

namespace nda::rxe {

// A queue of the kernel's, mapped. Its header says how it is laid out; whoever uses it
// keeps the indices there masked.
class Ring {
public:
	Ring() = default;
	~Ring() { unmap(); }
	Ring(const Ring &) = delete;
	Ring &operator=(const Ring &) = delete;

	// what: for the text of an error. slot_bytes: what an entry needs at least.
	int map(int fd, const mminfo &where, uint32_t slot_bytes, const char *what);
	void unmap();

	// Addresses of its entries and indices, for a device that shares the host's memory.
	queue_info describe() const;

private:
	const rxe_queue_buf *header() const
	{
		return static_cast<const rxe_queue_buf *>(base_);
	}
	uint64_t slots() const { return uint64_t{header()->index_mask} + 1; }
	uint64_t slot_bytes() const { return uint64_t{1} << header()->log2_elem_size; }
	bool sound(uint32_t least) const;

	void *base_ = nullptr;
	uint64_t bytes_ = 0;
};

} // namespace nda::rxe

#endif
