// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/import.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "lib/nda/error.h"
#include "lib/nda/log.h"
#include "lib/nda/publish.h"
#include "lib/nda/queue_format.h"

namespace nda {
namespace {

constexpr uint32_t pes_max = 65536;
constexpr uint32_t default_timeout_us = 10 * 1000 * 1000;
constexpr uint32_t number_max = 0xffffff; // of a QP, CQ or jetty
constexpr uint32_t hns1825_number_max = 0xfffff;

// Who posts to a ring by one table must not do so by another.
struct Claims {
	std::mutex mutex;
	std::set<std::pair<uint64_t, uint64_t>> rings; // NPU's own part, address
};

Claims &claims()
{
	static Claims all;
	return all;
}

unsigned long long hex(uint64_t value)
{
	return value;
}

bool overflows(uint64_t addr, uint64_t size)
{
	return addr + size < addr;
}

int check_attr(const nda_import_attr &a, uint32_t n_pes)
{
	if (n_pes < 2 || n_pes > pes_max)
		return fail(-EINVAL, "n_pes %u is not in 2..%u", n_pes, pes_max);
	if (a.my_pe >= n_pes)
		return fail(-EINVAL, "my_pe %u: there are %u PEs", a.my_pe, n_pes);
	if (a.format > NDA_FORMAT_UDMA || a.format == NDA_FORMAT_RXE)
		return fail(-EINVAL, "format %u: no such queues can be imported", a.format);
	if (a.layout > NDA_IMPORT_LAYOUT_VENDOR)
		return fail(-EINVAL, "layout %u is unknown", a.layout);
	if (a.flags & ~NDA_IMPORT_NO_HEADER || a.reserved)
		return fail(-EINVAL, "unknown flags 0x%x, or reserved %u is not 0", a.flags,
			a.reserved);
	if (a.max_inline_bytes > UINT16_MAX)
		return fail(-EINVAL, "max_inline_bytes %u is not in 0..%u",
			a.max_inline_bytes, UINT16_MAX);
	return 0;
}

int check_source(const nda_import_peer &p)
{
	if (p.source == NDA_IMPORT_CHANNEL) {
		if (p.service_level || p.remote_addr || p.remote_bytes || p.lkey || p.rkey)
			return fail(-EINVAL,
				"what the channel tells by itself is given besides");
		return 0;
	}
	if (p.service_level > 7)
		return fail(-EINVAL, "service_level %u is not in 0..7", p.service_level);
	if (!p.address)
		return fail(-EINVAL, "address is NULL");
	if (!p.remote_addr || !p.remote_bytes || overflows(p.remote_addr, p.remote_bytes))
		return fail(-EINVAL, "its heap has %llu bytes at 0x%llx",
			hex(p.remote_bytes), hex(p.remote_addr));
	return 0;
}

} // namespace

int Import::create(std::shared_ptr<Npu> npu, const nda_import_peer *peers, uint32_t n_pes,
	const nda_import_attr &attr, std::shared_ptr<Import> &out)
{
	int rc = check_attr(attr, n_pes);
	if (!rc)
		rc = npu->check_caller("import");
	if (rc)
		return rc;
	std::shared_ptr<Import> import(new Import(std::move(npu), attr));
	import->peers_.resize(n_pes);
	for (uint32_t pe = 0; pe < n_pes; pe++) {
		rc = import->read_peer(pe, peers[pe]);
		if (rc)
			return fail_in(rc, "PE %u", pe);
	}
	rc = import->agree();
	if (!rc)
		rc = import->check_areas();
	for (uint32_t pe = 0; !rc && pe < n_pes; pe++) {
		rc = import->describe(pe);
		if (rc)
			return fail_in(rc, "PE %u", pe);
	}
	if (!rc)
		rc = import->claim();
	if (!rc)
		rc = import->publish();
	if (!rc)
		out = std::move(import);
	return rc;
}

Import::~Import()
{
	const std::lock_guard<std::mutex> lock(claims().mutex);
	for (const uint64_t ring : claimed_)
		claims().rings.erase({npu_->memory_space(), ring});
}

// ---- Reading ---------------------------------------------------------------------------

int Import::read_npu(const char *what, uint64_t addr, void *out, uint64_t size)
{
	if (addr == 0 || addr % sizeof(uint32_t) || overflows(addr, size) ||
		!npu_->may_contain(addr, size))
		return fail(-EFAULT, "%s: %llu bytes at 0x%llx are not memory of %s", what,
			hex(size), hex(addr), npu_->name());
	const int rc = npu_->read(out, addr, size);
	return rc ? fail_in(rc, "%s", what) : 0;
}

int Import::read_peer(uint32_t pe, const nda_import_peer &source)
{
	Peer &peer = peers_[pe];
	if (source.source == NDA_IMPORT_NONE)
		return 0;
	if (source.source > NDA_IMPORT_AI_QP)
		return fail(-EINVAL, "source %u is unknown", source.source);
	if (pe == attr_.my_pe)
		return fail(-EINVAL, "it is the own PE, to which no queue leads");
	int rc = check_source(source);
	if (!rc)
		rc = source.source == NDA_IMPORT_CHANNEL ? read_channel(source, peer)
							 : read_ai_qp(source, peer);
	if (!rc)
		rc = read_indices(peer);
	if (!rc)
		peer.valid = true;
	return rc;
}

int Import::read_buffer(const char *what, uint64_t addr, bool ub, BufferFields &out)
{
	uint8_t bytes[buffer_bytes];
	int rc = overflows(addr, uint64_t{attr_.heap_buffer} * buffer_bytes)
		? fail(-EFAULT, "%s: 0x%llx is no address", what, hex(addr))
		: read_npu(what,
			  addr ? addr + uint64_t{attr_.heap_buffer} * buffer_bytes : 0,
			  bytes, sizeof(bytes));
	if (rc)
		return rc;
	rc = decode_buffer(bytes, ub, out);
	return rc ? fail_in(rc, "%s", what) : 0;
}

int Import::read_channel(const nda_import_peer &source, Peer &peer)
{
	uint8_t bytes[entity_bytes], sq[context_bytes], cq[context_bytes];
	EntityFields entity = {};
	int rc = read_npu("entity", source.address, bytes, sizeof(bytes));
	if (!rc)
		rc = decode_entity(
			bytes, (attr_.flags & NDA_IMPORT_NO_HEADER) == 0, entity);
	if (rc)
		return rc;
	if (attr_.heap_buffer >= entity.local_buffers ||
		attr_.heap_buffer >= entity.remote_buffers)
		return fail(-EPROTO,
			"heap_buffer %u: the channel has %u local and %u remote buffers",
			attr_.heap_buffer, entity.local_buffers, entity.remote_buffers);
	rc = read_npu("SQ context", entity.sq_context, sq, sizeof(sq));
	if (!rc)
		rc = read_npu("CQ context", entity.cq_context, cq, sizeof(cq));
	if (!rc)
		rc = read_buffer(
			"local buffer", entity.local_buffer_addr, entity.ub, peer.local);
	if (!rc)
		rc = read_buffer(
			"remote buffer", entity.remote_buffer_addr, entity.ub, peer.remote);
	if (!rc && !npu_->may_contain(peer.local.addr, peer.local.size))
		rc = fail(-EFAULT,
			"local buffer: %llu bytes at 0x%llx are not memory of %s",
			hex(peer.local.size), hex(peer.local.addr), npu_->name());
	const auto layout = static_cast<nda_import_layout>(attr_.layout);
	const auto format = static_cast<nda_format>(attr_.format);
	if (!rc)
		rc = entity.ub ? decode_ub(sq, cq, peer.fields)
			       : decode_roce(sq, cq, layout, format, peer.fields);
	if (rc)
		return rc;
	peer.lkey = peer.local.keys[0];
	peer.rkey = peer.remote.keys[1];
	peer.rkey_id = entity.ub ? peer.remote.keys[0] : 0;
	peer.own_rings = !entity.ub;
	return check_queue(peer);
}

int Import::read_ai_qp(const nda_import_peer &source, Peer &peer)
{
	uint8_t bytes[ai_qp_bytes];
	memcpy(bytes, reinterpret_cast<const void *>(source.address), sizeof(bytes));
	const int rc = decode_ai_qp(bytes, peer.fields);
	if (rc)
		return rc;
	peer.fields.service_level = source.service_level;
	peer.local = {attr_.heap_addr, attr_.heap_bytes, {0, 0}};
	peer.remote = {source.remote_addr, source.remote_bytes, {0, 0}};
	peer.lkey = source.lkey;
	peer.rkey = source.rkey;
	if (!attr_.heap_bytes || overflows(attr_.heap_addr, attr_.heap_bytes) ||
		!npu_->may_contain(attr_.heap_addr, attr_.heap_bytes))
		return fail(-EINVAL,
			"the own heap, %llu bytes at 0x%llx, is not memory of %s",
			hex(attr_.heap_bytes), hex(attr_.heap_addr), npu_->name());
	return check_queue(peer);
}

// What all formats have in common; their own conditions are checked when it is described.
int Import::check_queue(const Peer &peer) const
{
	const QueueFields &q = peer.fields;
	const uint64_t sq_bytes = uint64_t{q.sq_depth} * q.wqe_bytes;
	const uint32_t most =
		q.format == NDA_FORMAT_HNS1825 ? hns1825_number_max : number_max;
	if (q.number > most || q.cq_number > number_max)
		return fail(-EPROTO, "its number 0x%x, or its CQ's 0x%x, is too large",
			q.number, q.cq_number);
	if (!q.sq_addr || !q.cq_addr || overflows(q.sq_addr, sq_bytes))
		return fail(-EPROTO,
			"SQ of %u * %u at 0x%llx, CQ of %u * %u at 0x%llx: these are no "
			"rings",
			q.sq_depth, q.wqe_bytes, hex(q.sq_addr), q.cq_depth, q.cqe_bytes,
			hex(q.cq_addr));
	if (peer.own_rings && !npu_->may_contain(q.sq_addr, sq_bytes))
		return fail(-EFAULT, "SQ of %llu bytes at 0x%llx: not memory of %s",
			hex(sq_bytes), hex(q.sq_addr), npu_->name());
	return 0;
}

// As long as the data plane takes it to be, which is for the format to say.
int Import::check_cq(const Peer &p) const
{
	const uint64_t bytes = uint64_t{p.queue.cq_depth} * p.queue.cqe_stride;
	if (overflows(p.queue.cq_base, bytes))
		return fail(-EPROTO, "CQ of %llu bytes at 0x%llx: it is no ring",
			hex(bytes), hex(p.queue.cq_base));
	if (p.own_rings && !npu_->may_contain(p.queue.cq_base, bytes))
		return fail(-EFAULT, "CQ of %llu bytes at 0x%llx: not memory of %s",
			hex(bytes), hex(p.queue.cq_base), npu_->name());
	return 0;
}

// Of the two words of a pair of rings that count what is done only the CQ's is one that
// every reader keeps up to date.
int Import::read_indices(Peer &peer)
{
	const QueueFields &q = peer.fields;
	uint32_t head = 0, done = 0;
	int rc = read_npu("SQ head word", q.sq_head_word, &head, sizeof(head));
	if (!rc)
		rc = read_npu("CQ tail word", q.cq_tail_word, &done, sizeof(done));
	if (rc)
		return rc;
	if (q.format == NDA_FORMAT_UDMA && (head || done))
		return fail(-EOPNOTSUPP,
			"the jetty was used (head %u, CQ tail %u), and what its words "
			"count "
			"is not settled",
			head, done);
	if (head != done)
		return fail(-EBUSY,
			"the queue has %u requests under way (head %u, CQ tail "
			"%u)",
			head - done, head, done);
	peer.index = head;
	return 0;
}

// ---- Checking --------------------------------------------------------------------------

int Import::agree()
{
	const Peer *first = nullptr;
	for (uint32_t pe = 0; pe < peers_.size(); pe++) {
		const Peer &p = peers_[pe];
		if (!p.valid)
			continue;
		if (!first) {
			first = &p;
			heap_bytes_ = p.local.size;
		}
		if (p.fields.format != first->fields.format)
			return fail(-EOPNOTSUPP,
				"PE %u has a queue of format %d, another of %d", pe,
				p.fields.format, first->fields.format);
		if (p.local.addr != first->local.addr)
			return fail(-EPROTO,
				"PE %u: the own heap is at 0x%llx, for another PE at "
				"0x%llx",
				pe, hex(p.local.addr), hex(first->local.addr));
		heap_bytes_ = std::min({heap_bytes_, p.local.size, p.remote.size});
	}
	if (!first)
		return fail(-EINVAL, "no queue leads to any PE");
	format_ = first->fields.format;
	heap_addr_ = first->local.addr;
	if (attr_.format != NDA_FORMAT_NONE && attr_.format != uint32_t(format_))
		return fail(-EPROTO, "the queues are of format %d, asked for is %u",
			format_, attr_.format);
	if (format_ != NDA_FORMAT_IN_DIE && (attr_.heap_addr || attr_.heap_bytes))
		return fail(-EINVAL, "heap_addr and heap_bytes are given besides channels");
	return 0;
}

int Import::check_areas() const
{
	const auto inside = [&](uint64_t addr, uint64_t size) {
		return addr % NDA_CACHE_LINE == 0 && addr >= heap_addr_ &&
			size <= heap_bytes_ && addr - heap_addr_ <= heap_bytes_ - size;
	};
	const uint64_t scratch = uint64_t{NDA_SCRATCH_BYTES} * peers_.size();
	if (attr_.scratch_addr && !inside(attr_.scratch_addr, scratch))
		return fail(-EINVAL,
			"scratch_addr 0x%llx: %llu bytes there are not in the heap, %llu "
			"at "
			"0x%llx, or it is no multiple of 64",
			hex(attr_.scratch_addr), hex(scratch), hex(heap_bytes_),
			hex(heap_addr_));
	if (attr_.sync_addr && !inside(attr_.sync_addr, NDA_SYNC_BYTES))
		return fail(-EINVAL,
			"sync_addr 0x%llx: %u bytes there are not in the heap, %llu at "
			"0x%llx, or it is no multiple of 64",
			hex(attr_.sync_addr), NDA_SYNC_BYTES, hex(heap_bytes_),
			hex(heap_addr_));
	return 0;
}

int Import::describe(uint32_t pe)
{
	Peer &p = peers_[pe];
	if (!p.valid)
		return 0;
	ForeignQueue foreign = {};
	foreign.fields = &p.fields;
	foreign.remote_delta = p.remote.addr - p.local.addr;
	foreign.lkey = p.lkey;
	foreign.rkey = p.rkey;
	foreign.rkey_id = p.rkey_id;
	foreign.max_inline = static_cast<uint16_t>(attr_.max_inline_bytes);
	if (attr_.scratch_addr) {
		foreign.scratch_local =
			attr_.scratch_addr + pe * uint64_t{NDA_SCRATCH_BYTES};
		foreign.scratch_remote = p.remote.addr;
	}
	if (describe_foreign_queue(foreign, p.index, p.queue))
		return check_cq(p);
	return fail(-EPROTO,
		"queue 0x%x of format %d cannot be used: SQ of %u at 0x%llx, CQ of %u * %u "
		"at "
		"0x%llx, doorbells at 0x%llx and 0x%llx, records at 0x%llx and 0x%llx, "
		"lkey "
		"0x%x",
		p.fields.number, format_, p.fields.sq_depth, hex(p.fields.sq_addr),
		p.fields.cq_depth, p.fields.cqe_bytes, hex(p.fields.cq_addr),
		hex(p.fields.sq_doorbell), hex(p.fields.cq_doorbell),
		hex(p.fields.sq_record), hex(p.fields.cq_record), p.lkey);
}

int Import::claim()
{
	const std::lock_guard<std::mutex> lock(claims().mutex);
	claimed_.reserve(peers_.size());
	for (uint32_t pe = 0; pe < peers_.size(); pe++) {
		if (!peers_[pe].valid)
			continue;
		const uint64_t ring = peers_[pe].fields.sq_addr;
		if (!claims().rings.insert({npu_->memory_space(), ring}).second)
			return fail(-EBUSY,
				"PE %u: queue 0x%x, with its ring at 0x%llx, is imported "
				"already",
				pe, peers_[pe].fields.number, hex(ring));
		claimed_.push_back(ring);
	}
	return 0;
}

// ---- Publishing ------------------------------------------------------------------------

int Import::prepare_memory()
{
	if (attr_.scratch_addr) {
		const int rc = npu_->memset(
			attr_.scratch_addr, 0, uint64_t{NDA_SCRATCH_BYTES} * peers_.size());
		if (rc)
			return fail_in(rc, "scratch");
	}
	const int fill = cq_fill(format_);
	for (const Peer &p : peers_) {
		if (!p.valid || fill < 0 || p.index)
			continue;
		const int rc = npu_->memset(p.queue.cq_base, fill,
			uint64_t{p.queue.cq_depth} * p.queue.cqe_stride);
		if (rc)
			return fail_in(rc, "CQ of queue 0x%x", p.fields.number);
	}
	return 0;
}

// The rings are touched last, when nothing but they can fail.
int Import::publish()
{
	nda_table header = {};
	header.my_pe = attr_.my_pe;
	header.n_pes = static_cast<uint32_t>(peers_.size());
	header.n_cores = 1;
	header.queues_per_core = 1;
	header.sync_area = attr_.sync_addr;
	header.format = format_;
	header.heap_base = heap_addr_;
	header.heap_bytes = heap_bytes_;
	header.device_timeout_us =
		attr_.device_timeout_us ? attr_.device_timeout_us : default_timeout_us;
	std::vector<nda_queue> queues;
	queues.reserve(peers_.size());
	for (const Peer &p : peers_)
		queues.push_back(p.queue);
	const Image image = table_image(header, queues);
	int rc = table_.alloc(npu_, image.size());
	if (!rc)
		rc = npu_->write(table_.addr(), image.data(), image.size());
	if (rc)
		return fail_in(rc, "publish");
	return prepare_memory();
}

int Import::query(uint32_t pe, nda_import_info &out) const
{
	if (pe >= peers_.size() || !peers_[pe].valid)
		return fail(-EINVAL, "import: no queue leads to PE %u of %zu", pe,
			peers_.size());
	const Peer &p = peers_[pe];
	out = {};
	out.format = p.fields.format;
	out.layout = p.fields.layout;
	out.qpn = p.fields.number;
	out.sq_depth = p.fields.sq_depth;
	out.remote_addr = p.remote.addr;
	out.remote_bytes = p.remote.size;
	return 0;
}

// ---- Giving back -----------------------------------------------------------------------

int Import::give_back(const Peer &peer, uint32_t pe)
{
	nda_queue_state state = {};
	int rc = npu_->read(&state, table_.addr() + state_offset(pe), sizeof(state));
	if (rc)
		return fail_in(rc, "import: release: PE %u", pe);
	const std::pair<uint64_t, uint32_t> words[] = {
		{peer.fields.sq_head_word, state.head},
		{peer.fields.sq_tail_word, state.tail},
		{peer.fields.cq_tail_word, state.cq_ci},
	};
	for (const auto &[addr, value] : words) {
		const int failed = addr ? npu_->write(addr, &value, sizeof(value)) : 0;
		if (failed)
			rc = fail_in(failed, "import: release: PE %u", pe);
	}
	if (rc)
		return rc;
	if (state.error.status == NDA_OK && state.head == state.cq_ci)
		return 0;
	return fail(-EIO,
		"import: release: the queue to PE %u has %u requests under way, and error "
		"%u",
		pe, state.head - state.cq_ci, state.error.status);
}

int Import::give_back()
{
	if (npu_->busy())
		return fail(-EBUSY, "import: release: a kernel runs on %s", npu_->name());
	int rc = 0;
	for (uint32_t pe = 0; pe < peers_.size(); pe++) {
		if (!peers_[pe].valid || format_ == NDA_FORMAT_UDMA)
			continue;
		const int failed = give_back(peers_[pe], pe);
		if (failed && !rc)
			rc = failed;
	}
	return rc;
}

} // namespace nda
