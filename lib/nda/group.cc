// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/group.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <nda/aiv/hns1825_state.h>

#include "lib/nda/attr.h"
#include "lib/nda/bootstrap.h"
#include "lib/nda/error.h"
#include "lib/nda/guard.h"

namespace nda {
namespace {

constexpr uint32_t hello_magic = 0x4741444e; // "NDAG" in memory
constexpr uint32_t hello_version = 4;
constexpr uint64_t heap_bytes_default = 64ull << 20;
constexpr uint64_t page = 4096;
// Of a view's buffer for results of atomics: what kernels of that library expect per peer.
constexpr uint64_t view_amo_bytes = 1024;

constexpr uint32_t group_queues_max = 32; // of a core to each PE
constexpr uint32_t group_flags = NDA_GROUP_SHARED_QUEUES | NDA_GROUP_RELAYS;

// Before the heap proper: a line that peers may read, a sync area for each engine, then
// lines for each queue, so that no two cores share one.
uint64_t sync_offset(size_t engine)
{
	return NDA_CACHE_LINE + engine * NDA_SYNC_BYTES;
}

uint64_t scratch_offset(size_t n_engines, uint64_t queue)
{
	return sync_offset(n_engines) + queue * NDA_SCRATCH_BYTES;
}

// From the state of a queue that nobody has used.
void share(nda_queue_state &state)
{
	nda_queue_shared shared = {};
	shared.head = shared.limit = shared.turn = state.head;
	shared.tail = state.tail;
	shared.cq_ci = state.cq_ci;
	shared.asked = uint64_t{state.head} << 32 | state.cq_ci;
	shared.flags = NDA_QUEUE_SHARED;
	memcpy(&state, &shared, sizeof(state));
}

uint64_t page_up(uint64_t value)
{
	return (value + page - 1) & ~(page - 1);
}

} // namespace

// What every PE says first: how it fared, and what must be alike.
struct Group::Hello {
	StepReport report;
	uint32_t magic;
	uint32_t version;
	uint64_t heap_bytes;
	uint32_t n_cores;
	uint32_t queues_per_core;
	uint32_t n_nics;
	uint32_t flags;
	uint32_t n_pes;
	uint8_t formats[group_nics_max]; // by NIC
	PeerHeap heap;
};

int Group::create(const nda_bootstrap &bootstrap, int local, std::shared_ptr<Npu> npu,
	Nics nics, const nda_group_attr *attr, size_t attr_size,
	std::shared_ptr<Group> &out)
{
	std::shared_ptr<Group> group(new Group(bootstrap));
	group->npu_ = std::move(npu);
	group->nics_ = std::move(nics);
	group->shape_.n_nics = static_cast<uint32_t>(group->nics_.size());
	if (!local)
		local = guard([&] { return group->create_parts(attr, attr_size); });
	int rc = group->exchange_hellos(local);
	if (!rc)
		rc = group->exchange_channels();
	if (rc)
		return rc;
	out = std::move(group);
	return 0;
}

int Group::create_parts(const nda_group_attr *attr, size_t attr_size)
{
	int rc = read_attr(attr, attr_size);
	if (!rc)
		rc = sort_nics();
	if (!rc)
		rc = count_rows();
	for (const std::shared_ptr<Nic> &nic : nics_)
		if (!rc && exchange_.session())
			rc = nic->join_session(exchange_.session());
	if (!rc)
		rc = create_heap();
	return rc ? rc : create_channels();
}

int Group::read_attr(const nda_group_attr *attr, size_t attr_size)
{
	nda_group_attr a;
	int rc = nda::read_attr(a, attr, attr_size, 0, "attr");
	if (!rc && (a.flags & ~group_flags))
		rc = fail(-EINVAL, "attr: flags has unknown bits 0x%x",
			a.flags & ~group_flags);
	if (!rc && a.heap_way > NDA_MR_HOST)
		rc = fail(
			-EINVAL, "attr: heap_way %u is no way to reach memory", a.heap_way);
	if (!rc && a.n_cores > npu_cores_max)
		rc = fail(-EINVAL, "attr: n_cores %u is not in 1..%u", a.n_cores,
			npu_cores_max);
	if (!rc && a.queues_per_core > group_queues_max)
		rc = fail(-EINVAL, "attr: queues_per_core %u is not in 1..%u",
			a.queues_per_core, group_queues_max);
	if (!rc && a.heap_bytes > UINT64_MAX / 2)
		rc = fail(-EINVAL, "attr: heap_bytes %llu",
			static_cast<unsigned long long>(a.heap_bytes));
	if (!rc)
		rc = read_channel_attr(config_, &a.channel, sizeof(a.channel));
	heap_way_ = a.heap_way;
	if (!rc && heap_way_ == NDA_MR_ANY)
		rc = mr_way_of_environment(heap_way_);
	if (rc)
		return rc;
	n_cores_ = a.n_cores ? a.n_cores : 1;
	queues_per_core_ = a.queues_per_core ? a.queues_per_core : 1;
	flags_ = a.flags;
	heap_bytes_ = page_up(a.heap_bytes ? a.heap_bytes : heap_bytes_default);
	return 0;
}

// NICs of one format make an engine.
int Group::sort_nics()
{
	for (uint32_t i = 0; i < nics_.size(); i++) {
		const nda_format format = nics_[i]->format();
		size_t at = 0;
		while (at < shape_.engines.size() && shape_.engines[at].format != format)
			at++;
		if (at == shape_.engines.size())
			shape_.engines.push_back({format, {}});
		shape_.engines[at].nics.push_back(i);
	}
	shape_.relays = (flags_ & NDA_GROUP_RELAYS) != 0;
	if (!shape_.relays)
		return 0;
	if (!shape_.engine(NDA_FORMAT_UDMA))
		return fail(-EOPNOTSUPP, "attr: flags: relays are of UDMA, and no nic is");
	if (queues_per_core_ != 1)
		return fail(-EINVAL, "attr: queues_per_core %u: with relays it is 1",
			queues_per_core_);
	return 0;
}

int Group::count_rows()
{
	uint64_t rows = 0;
	for (const GroupShape::Engine &engine : shape_.engines) {
		Table table = {};
		table.queues_per_core =
			shape_.relays_of(engine) ? shape_.n_pes : queues_per_core_;
		table.first_row = static_cast<uint32_t>(rows);
		rows += uint64_t{n_cores_} * table.queues_per_core;
		tables_.push_back(std::move(table));
	}
	const unsigned long long queues = rows * shape_.n_pes;
	if (queues <= UINT32_MAX / NDA_QUEUE_STRIDE)
		return 0;
	return fail(-EINVAL, "attr: %llu queues are too many for a table", queues);
}

int Group::register_heap(const nda_mr_info *tried)
{
	const MemoryRange range = {heap_buffer_.addr(), reserved_bytes_ + heap_bytes_,
		heap_buffer_.host(), tried};
	for (const std::shared_ptr<Nic> &nic : nics_) {
		std::shared_ptr<Mr> mr;
		const int rc = Mr::create(nic, npu_, range,
			NDA_ACCESS_LOCAL_WRITE | NDA_ACCESS_REMOTE_WRITE |
				NDA_ACCESS_REMOTE_READ | NDA_ACCESS_REMOTE_ATOMIC,
			heap_way_, mr);
		if (rc)
			return rc;
		heap_mrs_.push_back(std::move(mr));
	}
	return 0;
}

int Group::heap_in_npu_memory()
{
	int rc = heap_buffer_.alloc(npu_, reserved_bytes_ + heap_bytes_);
	if (!rc)
		rc = npu_->memset(heap_buffer_.addr(), 0, reserved_bytes_);
	return rc ? rc : register_heap(nullptr);
}

// tried: what came of the other ways before, or nullptr.
int Group::heap_in_host_memory(const nda_mr_info *tried)
{
	int rc = heap_buffer_.alloc_host(npu_, reserved_bytes_ + heap_bytes_);
	if (rc) {
		mr_tried() = tried ? *tried : nda_mr_info();
		mr_tried().steps[NDA_MR_HOST - 1] = {NDA_MR_NOT_MAPPED, rc};
		return rc;
	}
	rc = npu_->memset(heap_buffer_.addr(), 0, reserved_bytes_);
	return rc ? rc : register_heap(tried);
}

// Where a NIC reaches NPU memory by no way, the whole heap may be host memory: its
// addresses are one range for all NICs. No error of the first attempt that this would not
// mend leads here.
int Group::find_place_for_heap()
{
	if (heap_way_ == NDA_MR_HOST)
		return heap_in_host_memory(nullptr);
	const int rc = heap_in_npu_memory();
	const size_t nic = heap_mrs_.size();
	if (!rc || !heap_buffer_ || nic >= nics_.size() || heap_way_ != NDA_MR_ANY ||
		npu_->has_host_pages() || !nics_[nic]->takes_host_memory())
		return rc;
	const nda_mr_info tried = mr_tried();
	const std::string story = error_detail();
	heap_mrs_.clear();
	heap_buffer_.reset();
	if (heap_in_host_memory(&tried) == 0)
		return 0;
	const std::string last = error_detail();
	return fail(
		rc, "%s; %s: %s", story.c_str(), mr_way_text(NDA_MR_HOST), last.c_str());
}

int Group::create_heap()
{
	int rc = 0;
	reserved_bytes_ = page_up(scratch_offset(tables_.size(), n_queues()));
	for (size_t i = 0; !rc && i < nics_.size(); i++)
		rc = nics_[i]->check_npu(*npu_);
	if (!rc)
		rc = find_place_for_heap();
	if (rc)
		return fail_in(rc, "heap of %llu bytes",
			static_cast<unsigned long long>(heap_bytes_));
	heap_ = std::make_unique<Heap>(heap_bytes_);
	return 0;
}

int Group::check() const
{
	for (const std::shared_ptr<Mr> &mr : heap_mrs_)
		if (const int rc = mr->check())
			return fail_in(rc, "group: PE %u: heap", shape_.pe);
	const int rc = npu_->check_doorbells();
	return rc ? fail_in(rc, "group: PE %u: %s", shape_.pe, npu_->name()) : 0;
}

int Group::heap_info(uint32_t nic, nda_mr_info &info) const
{
	if (nic >= heap_mrs_.size())
		return fail(-EINVAL, "group: heap query: nic %u: there are %zu", nic,
			heap_mrs_.size());
	info = heap_mrs_[nic]->info();
	return 0;
}

Group::Row Group::row_at(uint32_t index) const
{
	size_t engine = tables_.size() - 1;
	while (index < tables_[engine].first_row)
		engine--;
	const uint32_t owner = index - tables_[engine].first_row;
	const bool relays = shape_.relays_of(shape_.engines[engine]);
	return {engine, owner, relays ? owner % shape_.n_pes : shape_.pe};
}

// One to the own PE as well, connected to itself: a kernel need not treat itself apart. A
// jetty does not send to its own PE; there Device goes without.
bool Group::has_queue(const Row &row, uint32_t to) const
{
	if (row.relay != shape_.pe)
		return to != shape_.pe && to != row.relay;
	return to != shape_.pe || shape_.engines[row.engine].format != NDA_FORMAT_UDMA;
}

uint32_t Group::peer_row(uint32_t index, uint32_t to) const
{
	const Row r = row_at(index);
	if (!shape_.relays_of(shape_.engines[r.engine]))
		return index;
	// Its direct way is the row of its own number.
	return index - r.relay + (r.relay == shape_.pe ? to : r.relay);
}

int Group::create_channels()
{
	channels_.resize(n_queues());
	for (uint32_t i = 0; i < n_rows(); i++) {
		const Row r = row_at(i);
		for (uint32_t to = 0; to < shape_.n_pes; to++) {
			std::shared_ptr<Channel> &channel = channels_[index(i, to)];
			if (!has_queue(r, to)) {
				channel = Channel::none();
				continue;
			}
			const GroupShape::Engine &engine = shape_.engines[r.engine];
			// Beside RoCE NICs, what only these can do is meant for them.
			ChannelConfig config = config_;
			if (tables_.size() > 1)
				config.roce_attribute = nullptr;
			const int rc =
				Channel::create(nics_[shape_.own_nic(engine, to, r.relay)],
					npu_, config, channel);
			if (rc)
				return fail_in(rc, "%s", text(i, to).c_str());
		}
	}
	return 0;
}

void Group::fill_hello(Hello &hello) const
{
	hello.magic = hello_magic;
	hello.version = hello_version;
	hello.n_pes = shape_.n_pes;
	hello.n_nics = shape_.n_nics;
	if (hello.report.code)
		return;
	hello.heap_bytes = heap_bytes_;
	hello.n_cores = n_cores_;
	hello.queues_per_core = queues_per_core_;
	hello.flags = flags_;
	for (size_t i = 0; i < nics_.size(); i++)
		hello.formats[i] = static_cast<uint8_t>(nics_[i]->format());
	hello.heap.addr = heap_buffer_.addr();
	for (size_t i = 0; i < heap_mrs_.size(); i++) {
		hello.heap.rkeys[i] = heap_mrs_[i]->rkey();
		hello.heap.rkey_ids[i] = heap_mrs_[i]->rkey_id();
	}
}

int Group::exchange_hellos(int local)
{
	Hello own = {};
	own.report = make_report(local);
	fill_hello(own);
	std::vector<Hello> all(shape_.n_pes);
	int rc = exchange_.allgather(&own, all.data(), sizeof(own));
	for (uint32_t i = 0; !rc && i < shape_.n_pes; i++)
		if (all[i].magic != hello_magic || all[i].version != hello_version)
			rc = fail(-EPROTO, "group: PE %u is of another version", i);
	if (!rc)
		rc = exchange_.verdict(all.data(), sizeof(own));
	if (!rc)
		rc = compare_hellos(all);
	if (rc)
		return rc;
	for (const Hello &hello : all)
		peers_.push_back(hello.heap);
	return 0;
}

// All PEs see the same, so all come to the same result.
int Group::compare_hellos(const std::vector<Hello> &all) const
{
	const auto differ = [](uint32_t pe, const char *what, uint64_t value,
				    uint64_t first) {
		return fail(-EINVAL, "group: PE %u: %s %llu differs from PE 0's %llu", pe,
			what, static_cast<unsigned long long>(value),
			static_cast<unsigned long long>(first));
	};
	const Hello &first = all[0];
	for (uint32_t pe = 1; pe < all.size(); pe++) {
		const Hello &h = all[pe];
		if (h.n_pes != first.n_pes)
			return differ(pe, "n_pes", h.n_pes, first.n_pes);
		if (h.heap_bytes != first.heap_bytes)
			return differ(pe, "heap_bytes", h.heap_bytes, first.heap_bytes);
		if (h.n_cores != first.n_cores)
			return differ(pe, "n_cores", h.n_cores, first.n_cores);
		if (h.queues_per_core != first.queues_per_core)
			return differ(pe, "queues_per_core", h.queues_per_core,
				first.queues_per_core);
		if (h.n_nics != first.n_nics)
			return differ(pe, "n_nics", h.n_nics, first.n_nics);
		if (h.flags != first.flags)
			return differ(pe, "flags", h.flags, first.flags);
		for (uint32_t i = 0; i < first.n_nics; i++)
			if (h.formats[i] != first.formats[i])
				return differ(
					pe, "queue format", h.formats[i], first.formats[i]);
	}
	return 0;
}

int Group::exchange_channels()
{
	std::vector<uint8_t> all;
	const int rc = exchange_descs(all);
	// Nobody goes on before every queue is ready for what may come.
	return rc ? rc : exchange_.agree(guard([&] { return finish(all); }));
}

// Everybody hears everything and takes what is meant for it.
int Group::exchange_descs(std::vector<uint8_t> &all)
{
	const size_t size = size_t(n_queues()) * NDA_CHANNEL_DESC_BYTES;
	std::vector<uint8_t> own;
	// Out of memory here must not leave the others waiting.
	const int room = guard([&] {
		own.resize(size);
		all.resize(size * shape_.n_pes);
		return 0;
	});
	const int rc = exchange_.agree(room);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < n_queues(); i++)
		channels_[i]->export_desc(own.data() + size_t(i) * NDA_CHANNEL_DESC_BYTES);
	return exchange_.allgather(own.data(), all.data(), size);
}

int Group::finish(const std::vector<uint8_t> &descs)
{
	const int rc = connect_channels(descs);
	return rc ? rc : publish();
}

int Group::connect_channels(const std::vector<uint8_t> &descs)
{
	for (uint32_t i = 0; i < n_rows(); i++) {
		for (uint32_t to = 0; to < shape_.n_pes; to++) {
			if (channels_[index(i, to)]->connected())
				continue;
			const size_t theirs =
				size_t(to) * n_queues() + index(peer_row(i, to), shape_.pe);
			const int rc = channels_[index(i, to)]->connect(
				descs.data() + theirs * NDA_CHANNEL_DESC_BYTES);
			if (rc)
				return fail_in(rc, "%s", text(i, to).c_str());
		}
	}
	return 0;
}

int Group::describe_queue(uint32_t i, uint32_t to, nda_queue &queue) const
{
	const Row r = row_at(i);
	const GroupShape::Engine &engine = shape_.engines[r.engine];
	const PeerHeap &peer = peers_[to];
	const uint32_t theirs = shape_.peer_nic(engine, to, r.relay);
	const Keys keys = {heap_mrs_[shape_.own_nic(engine, to, r.relay)]->lkey(),
		peer.rkeys[theirs], peer.rkey_ids[theirs]};
	const int rc = channels_[index(i, to)]->describe(
		peer.addr - heap_buffer_.addr(), keys, queue);
	if (rc)
		return fail_in(rc, "%s", text(i, to).c_str());
	queue.scratch_remote = peer.addr;
	queue.scratch_local =
		heap_buffer_.addr() + scratch_offset(tables_.size(), index(i, to));
	if (flags_ & NDA_GROUP_SHARED_QUEUES)
		share(queue.state);
	return 0;
}

int Group::publish()
{
	queues_.resize(n_queues());
	for (uint32_t i = 0; i < n_rows(); i++) {
		for (uint32_t to = 0; to < shape_.n_pes; to++) {
			const int rc = describe_queue(i, to, queues_[index(i, to)]);
			if (rc)
				return rc;
		}
	}
	for (size_t engine = 0; engine < tables_.size(); engine++) {
		const int rc = publish_table(engine);
		if (rc)
			return fail_in(rc, "publish");
	}
	views_.resize(n_cores_);
	return 0;
}

int Group::publish_table(size_t engine)
{
	Table &table = tables_[engine];
	nda_table header = {};
	header.my_pe = shape_.pe;
	header.n_pes = shape_.n_pes;
	header.n_cores = n_cores_;
	header.queues_per_core = table.queues_per_core;
	header.sync_area = heap_buffer_.addr() + sync_offset(engine);
	header.format = shape_.engines[engine].format;
	header.heap_base = heap_base();
	header.heap_bytes = heap_bytes_;
	header.device_timeout_us = config_.device_timeout_us;
	const auto first = queues_.begin() + index(table.first_row, 0);
	const Image image =
		table_image(header, {first, first + n_owners(engine) * shape_.n_pes});
	const int rc = table.memory.alloc(npu_, page_up(image.size()));
	return rc ? rc : npu_->write(table.memory.addr(), image.data(), image.size());
}

int Group::find_engine(nda_format format, size_t &engine) const
{
	const GroupShape::Engine *found = shape_.engine(format);
	if (!found)
		return fail(-EINVAL, "group: it has no NIC of format %u", unsigned(format));
	engine = static_cast<size_t>(found - shape_.engines.data());
	return 0;
}

int Group::table(nda_format format, uint64_t &addr) const
{
	size_t engine = 0;
	const int rc = find_engine(format, engine);
	if (!rc)
		addr = tables_[engine].memory.addr();
	return rc;
}

uint64_t Group::queue_addr(uint32_t i, uint32_t pe) const
{
	const Row r = row_at(i);
	return tables_[r.engine].memory.addr() + queue_offset(index(r.owner, pe));
}

// ---- Repair --------------------------------------------------------------------------

int Group::repair()
{
	Marks broken;
	bool any = false;
	int rc = find_broken(broken, any);
	// Nobody resets one end while cores would still use the other, and nobody connects
	// before both are reset.
	if (!rc)
		rc = exchange_.agree(guard([&] { return take_away(broken); }));
	if (!rc)
		rc = exchange_.agree(guard([&] { return reset_broken(broken); }));
	std::vector<uint8_t> descs;
	if (!rc && any)
		rc = exchange_descs(descs);
	if (rc)
		return rc;
	return exchange_.agree(guard([&] {
		int local = clear_sync();
		if (!local && any)
			local = connect_channels(descs);
		return local ? local : publish_again(broken);
	}));
}

int Group::check_idle() const
{
	if (npu_->busy())
		return fail(-EBUSY, "group: repair: a kernel runs");
	for (uint32_t core = 0; core < n_cores_; core++)
		if (views_[core])
			return fail(-EBUSY, "group: repair: the queues of core %u are lent",
				core);
	return 0;
}

// Also one with work that has not come to its end, whatever the reason: it may never do so.
int Group::mark_own_broken(Marks &own) const
{
	for (uint32_t i = 0; i < n_rows(); i++) {
		for (uint32_t to = 0; to < shape_.n_pes; to++) {
			// Of a shared queue these members are at the same place.
			nda_queue_state state = {};
			const int rc = npu_->read(&state, state_addr(i, to), sizeof(state));
			if (rc)
				return rc;
			own[index(i, to)] = state.error.status != NDA_OK ||
				state.head != state.tail ||
				!channels_[index(i, to)]->connected();
		}
	}
	return 0;
}

// A queue is broken if either end says so: then both start anew. @any: on any PE.
int Group::find_broken(Marks &broken, bool &any)
{
	Marks own, all;
	const int local = guard([&] {
		own.resize(n_queues());
		all.resize(size_t(n_queues()) * shape_.n_pes);
		broken.resize(n_queues());
		int rc = check_idle();
		if (!rc)
			rc = check();
		return rc ? rc : mark_own_broken(own);
	});
	int rc = exchange_.agree(local);
	if (!rc)
		rc = exchange_.allgather(own.data(), all.data(), own.size());
	if (rc)
		return rc;
	any = std::find(all.begin(), all.end(), 1) != all.end();
	for (uint32_t i = 0; i < n_rows(); i++)
		for (uint32_t to = 0; to < shape_.n_pes; to++)
			broken[index(i, to)] = own[index(i, to)] ||
				all[size_t(to) * n_queues() +
					index(peer_row(i, to), shape_.pe)];
	return 0;
}

// Calls visit(row, to) for each broken queue until one does not return 0.
template <class Visit>
int Group::for_broken(const Marks &broken, Visit visit)
{
	for (uint32_t i = 0; i < n_rows(); i++) {
		for (uint32_t to = 0; to < shape_.n_pes; to++) {
			const int rc = broken[index(i, to)] ? visit(i, to) : 0;
			if (rc)
				return fail_in(
					rc, "group: repair: %s", text(i, to).c_str());
		}
	}
	return 0;
}

// Whatever comes of the repair, cores find these in error until they are published again.
int Group::take_away(const Marks &broken)
{
	return for_broken(broken, [&](uint32_t i, uint32_t to) {
		nda_queue_state state = {};
		int rc = npu_->read(&state, state_addr(i, to), sizeof(state));
		if (rc)
			return rc;
		if (state.error.status == NDA_OK)
			state.error.status = NDA_FLUSHED;
		state.limit = state.tail = state.head;
		return npu_->write(state_addr(i, to), &state, sizeof(state));
	});
}

int Group::reset_broken(const Marks &broken)
{
	return for_broken(broken,
		[&](uint32_t i, uint32_t to) { return channels_[index(i, to)]->reset(); });
}

// Cores that left in the middle of a barrier have epochs that differ, whatever queues did.
// Once no signal is under way any more.
int Group::clear_sync()
{
	const int rc = npu_->memset(
		heap_buffer_.addr() + sync_offset(0), 0, tables_.size() * NDA_SYNC_BYTES);
	return rc ? fail_in(rc, "group: repair") : 0;
}

int Group::publish_again(const Marks &broken)
{
	return for_broken(broken, [&](uint32_t i, uint32_t to) {
		nda_queue queue = {};
		int rc = describe_queue(i, to, queue);
		if (!rc)
			rc = npu_->write(queue_addr(i, to), &queue, sizeof(queue));
		if (!rc)
			queues_[index(i, to)] = queue;
		return rc;
	});
}

int Group::heap_alloc(uint64_t size, uint64_t &addr)
{
	uint64_t offset = 0;
	const int rc = heap_->alloc(size, offset);
	if (rc)
		return fail_in(rc, "group: PE %u", shape_.pe);
	addr = heap_base() + offset;
	return 0;
}

int Group::heap_free(uint64_t addr)
{
	const int rc = heap_->free(addr - heap_base());
	return rc ? fail_in(rc, "group: PE %u", shape_.pe) : 0;
}

int Group::register_region(
	uint64_t addr, uint64_t size, uint32_t access, std::shared_ptr<Region> &out)
{
	const int rc = Region::create(shape_, nics_, npu_, addr, size, access, out);
	return rc ? fail_in(rc, "group: PE %u", shape_.pe) : 0;
}

int Group::check_view(uint32_t core, const char *verb)
{
	if (core >= n_cores_)
		return fail(
			-EINVAL, "group: view: core %u: the group has %u", core, n_cores_);
	if (npu_->busy())
		return fail(-EBUSY, "group: view: %s: a kernel runs", verb);
	return 0;
}

// Reads the mutable lines of a row's queues to the peers, lets change(state, pe) return 0
// or a negative errno, and writes them back only if all of them agreed.
template <class Change>
int Group::change_states(uint32_t row, Change change)
{
	std::vector<nda_queue_state> states(shape_.n_pes);
	for (uint32_t to = 0; to < shape_.n_pes; to++) {
		if (to == shape_.pe)
			continue;
		int rc = npu_->read(&states[to], state_addr(row, to), sizeof(states[to]));
		if (!rc)
			rc = change(states[to], to);
		if (rc)
			return rc;
	}
	for (uint32_t to = 0; to < shape_.n_pes; to++) {
		const int rc = to == shape_.pe
			? 0
			: npu_->write(state_addr(row, to), &states[to], sizeof(states[to]));
		if (rc)
			return rc;
	}
	return 0;
}

int Group::create_view(View &view)
{
	const uint32_t n = shape_.n_pes, row = view.row;
	const uint32_t nic = shape_.engines[row_at(row).engine].nics[0];
	const uint64_t amo_bytes = page_up(n * view_amo_bytes);
	int rc = view.blob.alloc(npu_, page_up(view_bytes(n)));
	if (!rc)
		rc = heap_buffer_.host() ? view.amo.alloc_host(npu_, amo_bytes)
					 : view.amo.alloc(npu_, amo_bytes);
	if (!rc)
		rc = npu_->memset(view.amo.addr(), 0, amo_bytes);
	if (!rc)
		rc = Mr::create(nics_[nic], npu_,
			{view.amo.addr(), amo_bytes, view.amo.host(), nullptr},
			NDA_ACCESS_LOCAL_WRITE, heap_way_, view.amo_mr);
	if (rc)
		return rc;
	std::vector<ViewPeer> peers(n);
	for (uint32_t to = 0; to < n; to++) {
		const Channel &channel = *channels_[index(row, to)];
		ViewPeer &p = peers[to];
		p.self = to == shape_.pe;
		p.queue = queues_[index(row, to)];
		p.state_addr = state_addr(row, to);
		p.service_level = channel.service_level();
		p.mtu_shift = channel.mtu_shift();
		p.heap_addr = peers_[to].addr + reserved_bytes_;
		p.heap_bytes = heap_bytes_;
		p.heap_rkey = peers_[to].rkeys[nic];
		p.amo_addr = view.amo.addr() + to * view_amo_bytes;
		p.amo_lkey = view.amo_mr->lkey();
	}
	const Image image = view_image(view.blob.addr(), peers, heap_mrs_[nic]->lkey());
	return npu_->write(view.blob.addr(), image.data(), image.size());
}

// Its kernels know one format, and use one lkey for whatever is theirs.
int Group::find_lendable(uint32_t core, uint32_t &row) const
{
	size_t engine = 0;
	if (!shape_.engine(NDA_FORMAT_HNS1825))
		return fail(-EOPNOTSUPP,
			"group: view: its kernels know the 1825's queue format only, nic "
			"%s has another",
			nics_[0]->name().c_str());
	const int rc = find_engine(NDA_FORMAT_HNS1825, engine);
	if (rc)
		return rc;
	if (shape_.engines[engine].nics.size() != 1)
		return fail(-EOPNOTSUPP,
			"group: view: needs a group of one NIC of the 1825's, this has %zu",
			shape_.engines[engine].nics.size());
	if (flags_ & NDA_GROUP_SHARED_QUEUES)
		return fail(-EOPNOTSUPP,
			"group: view: several cores share this group's queues");
	row = tables_[engine].first_row + core * tables_[engine].queues_per_core;
	return 0;
}

int Group::view_lend(uint32_t core, uint64_t &addr)
{
	int rc = check_view(core, "lend");
	if (rc)
		return rc;
	if (views_[core])
		return fail(-EALREADY, "group: view: the queues of core %u are lent", core);
	auto view = std::make_unique<View>();
	rc = find_lendable(core, view->row);
	if (rc)
		return rc;
	rc = create_view(*view);
	if (rc)
		return fail_in(rc, "group: view");
	rc = change_states(view->row, [&](nda_queue_state &s, uint32_t to) {
		if (s.error.status != NDA_OK)
			return fail(-EIO,
				"group: view: the queue of core %u to PE %u is in error",
				core, to);
		if (s.flags || s.head != s.tail)
			return fail(-EBUSY,
				"group: view: the queue of core %u to PE %u is not quiet: "
				"%u posted, %u done",
				core, to, s.head, s.tail);
		if (!aiv::lend(&s))
			return fail(-EOPNOTSUPP,
				"group: view: the queue of core %u to PE %u had WQEs "
				"without a completion (signal_every is not 1)",
				core, to);
		return 0;
	});
	if (rc)
		return rc;
	views_[core] = std::move(view);
	addr = views_[core]->blob.addr();
	return 0;
}

int Group::view_return(uint32_t core)
{
	int rc = check_view(core, "return");
	if (rc)
		return rc;
	if (!views_[core])
		return fail(
			-EINVAL, "group: view: the queues of core %u are not lent", core);
	const uint32_t row = views_[core]->row;
	rc = change_states(row, [&](nda_queue_state &s, uint32_t to) {
		if (!aiv::hns1825::take_back(queues_[index(row, to)], &s))
			return fail(-EPROTO,
				"group: view: somebody else took back the queue of core %u "
				"to PE %u",
				core, to);
		return 0;
	});
	if (!rc)
		views_[core].reset();
	return rc;
}

std::string Group::text(uint32_t i, uint32_t to) const
{
	const Row r = row_at(i);
	const uint32_t per_core = tables_[r.engine].queues_per_core;
	std::string text = "queue ";
	if (r.relay != shape_.pe)
		text += "through PE " + std::to_string(r.relay) + " ";
	else if (per_core == queues_per_core_ && per_core > 1)
		text += std::to_string(r.owner % per_core) + " ";
	text += "of core " + std::to_string(r.owner / per_core) + " to PE " +
		std::to_string(to);
	if (tables_.size() > 1)
		text += " by nic " + nics_[shape_.engines[r.engine].nics[0]]->name();
	return text;
}

int Group::abort(uint32_t value)
{
	for (const Table &table : tables_) {
		const int rc = npu_->write(table.memory.addr() + offsetof(nda_table, abort),
			&value, sizeof(value));
		if (rc)
			return rc;
	}
	return 0;
}

int Group::find_row(nda_format format, uint32_t to, uint32_t owner, const char *verb,
	uint32_t &row) const
{
	size_t engine = 0;
	const int rc = find_engine(format, engine);
	if (rc)
		return rc;
	if (to >= shape_.n_pes || owner >= n_owners(engine))
		return fail(-EINVAL,
			"group: queue %s: owner %u to PE %u: there are %u owners and %u "
			"PEs",
			verb, owner, to, n_owners(engine), shape_.n_pes);
	row = tables_[engine].first_row + owner;
	if (!has_queue(row_at(row), to))
		return fail(-EINVAL, "group: queue %s: owner %u has none to PE %u", verb,
			owner, to);
	return 0;
}

int Group::queue_info(
	nda_format format, uint32_t to, uint32_t owner, nda_channel_info &info)
{
	uint32_t row = 0;
	const int rc = find_row(format, to, owner, "query", row);
	if (!rc)
		info = channels_[index(row, to)]->info();
	return rc;
}

int Group::queue_error(
	nda_format format, uint32_t to, uint32_t owner, nda_queue_error &error)
{
	uint32_t row = 0;
	int rc = find_row(format, to, owner, "error", row);
	if (rc)
		return rc;
	nda_queue_error found = {};
	rc = npu_->read(&found, state_addr(row, to) + offsetof(nda_queue_state, error),
		sizeof(found));
	if (!rc)
		error = found;
	return rc;
}

} // namespace nda
