// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/publish.h"

#include <cstring>

namespace nda {
namespace {

// Layouts as recorded from the public collective library's device code; the tests assert
// each offset on its own.
struct RdmaInfo {
	uint32_t qp_num; // queues to each peer
	uint64_t sq_ptr;
	uint64_t rq_ptr;
	uint64_t scq_ptr;
	uint64_t rcq_ptr;
	uint64_t mem_ptr;
};

struct RdmaMem {
	uint64_t size;
	uint64_t addr;
	uint32_t lkey;
	uint32_t rkey;
};

struct RdmaSq {
	uint32_t wqn;
	uint64_t buf_addr;
	uint32_t wqe_size;
	uint32_t depth;
	uint64_t head_addr;
	uint64_t tail_addr;
	int32_t db_mode;
	uint64_t db_addr;
	uint32_t sl;
	uint64_t amo_addr;
	uint32_t amo_lkey;
	uint64_t db_sw_addr;
	uint8_t mtu_shift;
	uint8_t reserved[7];
};

struct RdmaCq {
	uint32_t cqn;
	uint64_t buf_addr;
	uint32_t cqe_size;
	uint32_t depth;
	uint64_t head_addr;
	uint64_t tail_addr;
	int32_t db_mode;
	uint64_t db_addr;
	uint64_t db_sw_addr;
};

static_assert(sizeof(RdmaInfo) == view_info_bytes && sizeof(RdmaMem) == view_mem_bytes &&
		sizeof(RdmaSq) == view_sq_bytes && sizeof(RdmaCq) == view_cq_bytes,
	"layouts of the view");

constexpr int32_t sw_db = 1;       // by record; what these NICs' kernels do in any case
constexpr uint32_t wqe_bytes = 64; // the stride of the ring

template <class T>
void put(Image &image, uint64_t offset, const T &value)
{
	memcpy(image.data() + offset, &value, sizeof(value));
}

// The counters are the native ones, so there is one truth.
RdmaSq sq_of(const ViewPeer &p)
{
	RdmaSq sq;
	memset(&sq, 0, sizeof(sq)); // the gaps between the fields, too
	sq.wqn = p.queue.qpn;
	sq.buf_addr = p.queue.sq_base;
	sq.wqe_size = wqe_bytes;
	sq.depth = p.queue.sq_depth;
	sq.head_addr = p.state_addr + offsetof(nda_queue_state, head);
	sq.tail_addr = p.state_addr + offsetof(nda_queue_state, tail);
	sq.db_mode = sw_db;
	sq.db_addr = p.queue.sq_doorbell;
	sq.sl = p.service_level;
	sq.amo_addr = p.amo_addr;
	sq.amo_lkey = p.amo_lkey;
	sq.db_sw_addr = p.queue.sq_record;
	sq.mtu_shift = static_cast<uint8_t>(p.mtu_shift);
	return sq;
}

// Nothing is received; the atomics' fields are there all the same.
RdmaSq rq_of(const ViewPeer &p)
{
	RdmaSq rq;
	memset(&rq, 0, sizeof(rq));
	rq.amo_addr = p.amo_addr;
	rq.amo_lkey = p.amo_lkey;
	return rq;
}

RdmaCq cq_of(const ViewPeer &p)
{
	RdmaCq cq;
	memset(&cq, 0, sizeof(cq));
	cq.cqn = p.queue.cqn;
	cq.buf_addr = p.queue.cq_base;
	cq.cqe_size = p.queue.cqe_stride;
	cq.depth = p.queue.cq_depth;
	cq.head_addr = p.state_addr + offsetof(nda_queue_state, head);
	cq.tail_addr = p.state_addr + offsetof(nda_queue_state, cq_ci);
	cq.db_mode = sw_db;
	cq.db_sw_addr = p.queue.cq_record;
	return cq;
}

} // namespace

Image table_image(const nda_table &header, const std::vector<nda_queue> &queues)
{
	Image image(queue_offset(queues.size()));
	nda_table h = header;
	h.magic = NDA_TABLE_MAGIC;
	h.version = NDA_TABLE_VERSION;
	h.size_bytes = image.size();
	h.queues_offset = queues_offset;
	put(image, 0, h);
	for (size_t i = 0; i < queues.size(); i++)
		put(image, queue_offset(i), queues[i]);
	return image;
}

Image view_image(uint64_t addr, const std::vector<ViewPeer> &peers, uint32_t own_lkey)
{
	const uint64_t n = peers.size();
	const uint64_t sq = view_info_bytes, rq = sq + n * view_sq_bytes,
		       scq = rq + n * view_sq_bytes, rcq = scq + n * view_cq_bytes,
		       mem = rcq + n * view_cq_bytes;
	Image image(view_bytes(n));
	RdmaInfo info;
	memset(&info, 0, sizeof(info));
	info.qp_num = 1;
	info.sq_ptr = addr + sq;
	info.rq_ptr = addr + rq;
	info.scq_ptr = addr + scq;
	info.rcq_ptr = addr + rcq;
	info.mem_ptr = addr + mem;
	put(image, 0, info);
	for (uint64_t pe = 0; pe < n; pe++) {
		const ViewPeer &p = peers[pe];
		// lkeys are the peers' own affair; only that of this PE is ever read.
		put(image, mem + pe * view_mem_bytes,
			RdmaMem{p.heap_bytes, p.heap_addr, p.self ? own_lkey : 0,
				p.heap_rkey});
		if (p.self) // a kernel of that library never posts to its own PE
			continue;
		put(image, sq + pe * view_sq_bytes, sq_of(p));
		put(image, rq + pe * view_sq_bytes, rq_of(p));
		put(image, scq + pe * view_cq_bytes, cq_of(p));
	}
	return image;
}

} // namespace nda
