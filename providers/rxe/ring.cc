// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/rxe/ring.h"

#include <sys/mman.h>

#include <nda/hw/rxe.h>

#include "providers/rxe/command.h"
#include "providers/rxe/error.h"

namespace nda::rxe {

int Ring::map(int fd, const mminfo &where, uint32_t slot_bytes, const char *what)
{
	if (where.size < hw::rxe::ring_header_bytes)
		return fail(-EPROTO, "%s: the kernel gave a queue of %u bytes", what,
			where.size);
	void *base = kernel->mmap(nullptr, where.size, PROT_READ | PROT_WRITE, MAP_SHARED,
		fd, static_cast<off_t>(where.offset));
	if (base == MAP_FAILED) {
		const int error = errno;
		return fail(-error, "%s: map %u bytes at 0x%llx of the device: errno %d",
			what, where.size, static_cast<unsigned long long>(where.offset),
			error);
	}
	base_ = base;
	bytes_ = where.size;
	if (sound(slot_bytes))
		return 0;
	const rxe_queue_buf h = {
		header()->log2_elem_size, header()->index_mask, {}, 0, {}, 0, {}};
	unmap();
	return fail(-EPROTO,
		"%s: the kernel's queue of %u bytes has slots of 2^%u bytes, the last is "
		"%u",
		what, where.size, h.log2_elem_size, h.index_mask);
}

void Ring::unmap()
{
	if (base_)
		kernel->munmap(base_, bytes_);
	base_ = nullptr;
}

bool Ring::sound(uint32_t least) const
{
	return header()->log2_elem_size < 20 && slot_bytes() >= least &&
		(slots() & header()->index_mask) == 0 &&
		slots() * slot_bytes() <= bytes_ - hw::rxe::ring_header_bytes;
}

queue_info Ring::describe() const
{
	const uint64_t base = reinterpret_cast<uint64_t>(base_);
	queue_info info = {};
	info.qbuf.base = base + hw::rxe::ring_header_bytes;
	info.qbuf.entry_cnt = static_cast<uint32_t>(slots());
	info.qbuf.entry_size = static_cast<uint32_t>(slot_bytes());
	info.dbr_pi_va = {base + hw::rxe::ring_producer_at, 4};
	info.dbr_ci_va = {base + hw::rxe::ring_consumer_at, 4};
	return info;
}

} // namespace nda::rxe
