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
constexpr uint32_t hello_version = 2;
constexpr uint64_t heap_bytes_default = 64ull << 20;
constexpr uint64_t page = 4096;
// Of a view's buffer for results of atomics: what kernels of that library expect per peer.
constexpr uint64_t view_amo_bytes = 1024;

constexpr uint32_t group_queues_max = 32; // of a core to each PE
constexpr uint64_t sync_offset = NDA_CACHE_LINE;

uint64_t scratch_offset(uint64_t queue)
{
	return sync_offset + NDA_SYNC_BYTES + queue * NDA_SCRATCH_BYTES;
}

// From the state of a queue that nobody has used.
void share(nda_queue_state &state)
{
	nda_queue_shared shared = {};
	shared.head = shared.limit = shared.turn = state.head;
	shared.tail = state.tail;
	shared.cq_ci = state.cq_ci;
	shared.asked = uint64_t{state.head} << 32 | state.cq_ci;
	shared.fenced = state.tail;
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
	uint32_t format;
	uint32_t n_pes;
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
	for (const std::shared_ptr<Nic> &nic : nics_) {
		if (!rc && nic->format() != nics_[0]->format())
			rc = fail(-EINVAL, "nics %s and %s have different queue formats",
				nics_[0]->name().c_str(), nic->name().c_str());
		if (!rc && exchange_.session())
			rc = nic->join_session(exchange_.session());
	}
	if (!rc)
		rc = create_heap();
	return rc ? rc : create_channels();
}

int Group::read_attr(const nda_group_attr *attr, size_t attr_size)
{
	nda_group_attr a;
	int rc = nda::read_attr(a, attr, attr_size, 0, "attr");
	if (!rc && (a.flags & ~uint32_t{NDA_GROUP_SHARED_QUEUES}))
		rc = fail(-EINVAL, "attr: flags has unknown bits 0x%x",
			a.flags & ~uint32_t{NDA_GROUP_SHARED_QUEUES});
	if (!rc && a.reserved)
		rc = fail(-EINVAL, "attr: reserved is not 0");
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
	if (rc)
		return rc;
	n_cores_ = a.n_cores ? a.n_cores : 1;
	queues_per_core_ = a.queues_per_core ? a.queues_per_core : 1;
	shared_queues_ = (a.flags & NDA_GROUP_SHARED_QUEUES) != 0;
	heap_bytes_ = page_up(a.heap_bytes ? a.heap_bytes : heap_bytes_default);
	return 0;
}

// Before the heap proper: a line that peers may read, the sync area, then lines for each
// queue, so that no two cores share one.
int Group::create_heap()
{
	reserved_bytes_ = page_up(scratch_offset(n_queues()));
	int rc = heap_buffer_.alloc(npu_, reserved_bytes_ + heap_bytes_);
	if (!rc)
		rc = npu_->memset(heap_buffer_.addr(), 0, reserved_bytes_);
	for (size_t i = 0; !rc && i < nics_.size(); i++) {
		std::shared_ptr<Mr> mr;
		rc = Mr::create(nics_[i], npu_, heap_buffer_.addr(),
			reserved_bytes_ + heap_bytes_,
			NDA_ACCESS_LOCAL_WRITE | NDA_ACCESS_REMOTE_WRITE |
				NDA_ACCESS_REMOTE_READ | NDA_ACCESS_REMOTE_ATOMIC,
			mr);
		if (!rc)
			heap_mrs_.push_back(std::move(mr));
	}
	if (rc)
		return fail_in(rc, "heap of %llu bytes",
			static_cast<unsigned long long>(heap_bytes_));
	heap_ = std::make_unique<Heap>(heap_bytes_);
	return 0;
}

// One to the own PE as well, connected to itself: a kernel need not treat itself apart. A
// jetty does not send to its own PE; there Device goes without.
int Group::create_channels()
{
	channels_.resize(n_queues());
	for (uint32_t owner = 0; owner < n_owners(); owner++) {
		for (uint32_t to = 0; to < shape_.n_pes; to++) {
			const std::shared_ptr<Nic> &nic = nics_[nic_to(to)];
			std::shared_ptr<Channel> &channel = channels_[index(owner, to)];
			if (to == shape_.pe && nic->format() == NDA_FORMAT_UDMA) {
				channel = Channel::none();
				continue;
			}
			const int rc = Channel::create(nic, npu_, config_, channel);
			if (rc)
				return fail_in(rc, "%s to PE %u", text(owner).c_str(), to);
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
	hello.format = nics_[0]->format();
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
		if (h.format != first.format)
			return differ(pe, "queue format", h.format, first.format);
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
	for (uint32_t owner = 0; owner < n_owners(); owner++) {
		for (uint32_t to = 0; to < shape_.n_pes; to++) {
			const size_t theirs =
				size_t(to) * n_queues() + index(owner, shape_.pe);
			if (channels_[index(owner, to)]->connected())
				continue;
			const int rc = channels_[index(owner, to)]->connect(
				descs.data() + theirs * NDA_CHANNEL_DESC_BYTES);
			if (rc)
				return fail_in(rc, "%s to PE %u", text(owner).c_str(), to);
		}
	}
	return 0;
}

int Group::describe_queue(uint32_t owner, uint32_t to, nda_queue &queue) const
{
	const PeerHeap &peer = peers_[to];
	const uint32_t nic = nic_to(to);
	const Keys keys = {heap_mrs_[nic]->lkey(), peer.rkeys[nic], peer.rkey_ids[nic]};
	const int rc = channels_[index(owner, to)]->describe(
		peer.addr - heap_buffer_.addr(), keys, queue);
	if (rc)
		return fail_in(rc, "%s to PE %u", text(owner).c_str(), to);
	queue.scratch_remote = peer.addr;
	queue.scratch_local = heap_buffer_.addr() + scratch_offset(index(owner, to));
	if (shared_queues_)
		share(queue.state);
	return 0;
}

int Group::publish()
{
	std::vector<nda_queue> queues(n_queues());
	for (uint32_t owner = 0; owner < n_owners(); owner++) {
		for (uint32_t to = 0; to < shape_.n_pes; to++) {
			const int rc = describe_queue(owner, to, queues[index(owner, to)]);
			if (rc)
				return rc;
		}
	}
	nda_table header = {};
	header.my_pe = shape_.pe;
	header.n_pes = shape_.n_pes;
	header.n_cores = n_cores_;
	header.queues_per_core = queues_per_core_;
	header.sync_area = heap_buffer_.addr() + sync_offset;
	header.format = nics_[0]->format();
	header.heap_base = heap_base();
	header.heap_bytes = heap_bytes_;
	header.device_timeout_us = config_.device_timeout_us;
	const Image image = table_image(header, queues);
	int rc = table_.alloc(npu_, page_up(image.size()));
	if (!rc)
		rc = npu_->write(table_.addr(), image.data(), image.size());
	if (rc)
		return fail_in(rc, "publish");
	queues_ = std::move(queues);
	views_.resize(n_cores_);
	return 0;
}

// A queue is broken if either end says so: then both start anew.
int Group::find_broken(std::vector<uint8_t> &broken)
{
	std::vector<uint8_t> own, all;
	const int local = guard([&] {
		if (npu_->busy())
			return fail(-EBUSY, "group: repair: a kernel runs");
		for (uint32_t core = 0; core < n_cores_; core++)
			if (views_[core])
				return fail(-EBUSY,
					"group: repair: the queues of core %u are lent",
					core);
		own.resize(n_queues());
		all.resize(size_t(n_queues()) * shape_.n_pes);
		broken.resize(n_queues());
		for (uint32_t i = 0; i < n_queues(); i++) {
			nda_queue_error error = {};
			const int rc = npu_->read(&error,
				table_.addr() + state_offset(i) +
					offsetof(nda_queue_state, error),
				sizeof(error));
			if (rc)
				return rc;
			own[i] = error.status != NDA_OK || !channels_[i]->connected();
		}
		return 0;
	});
	int rc = exchange_.agree(local);
	if (!rc)
		rc = exchange_.allgather(own.data(), all.data(), own.size());
	if (rc)
		return rc;
	for (uint32_t owner = 0; owner < n_owners(); owner++)
		for (uint32_t to = 0; to < shape_.n_pes; to++)
			broken[index(owner, to)] = own[index(owner, to)] ||
				all[size_t(to) * n_queues() + index(owner, shape_.pe)];
	return 0;
}

int Group::reset_broken(const std::vector<uint8_t> &broken)
{
	for (uint32_t i = 0; i < n_queues(); i++) {
		const int rc = broken[i] ? channels_[i]->reset() : 0;
		if (rc)
			return fail_in(rc, "group: repair: %s to PE %u",
				text(i / shape_.n_pes).c_str(), i % shape_.n_pes);
	}
	return 0;
}

int Group::publish_again(const std::vector<uint8_t> &broken)
{
	for (uint32_t i = 0; i < n_queues(); i++) {
		if (!broken[i])
			continue;
		nda_queue queue = {};
		int rc = describe_queue(i / shape_.n_pes, i % shape_.n_pes, queue);
		if (!rc)
			rc = npu_->write(
				table_.addr() + queue_offset(i), &queue, sizeof(queue));
		if (rc)
			return fail_in(rc, "group: repair");
		queues_[i] = queue;
	}
	return 0;
}

int Group::repair()
{
	std::vector<uint8_t> broken, descs;
	int rc = find_broken(broken);
	if (!rc) // nobody connects before both ends are reset
		rc = exchange_.agree(guard([&] { return reset_broken(broken); }));
	if (!rc)
		rc = exchange_descs(descs);
	if (rc)
		return rc;
	return exchange_.agree(guard([&] {
		const int local = connect_channels(descs);
		return local ? local : publish_again(broken);
	}));
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

// Reads the mutable lines of a core's queues to its peers, lets change(state, pe) return 0
// or a negative errno, and writes them back only if all of them agreed.
template <class Change>
int Group::change_states(uint32_t core, Change change)
{
	const uint32_t owner = core * queues_per_core_;
	std::vector<nda_queue_state> states(shape_.n_pes);
	for (uint32_t to = 0; to < shape_.n_pes; to++) {
		if (to == shape_.pe)
			continue;
		int rc = npu_->read(&states[to], state_addr(owner, to), sizeof(states[to]));
		if (!rc)
			rc = change(states[to], to);
		if (rc)
			return rc;
	}
	for (uint32_t to = 0; to < shape_.n_pes; to++) {
		const int rc = to == shape_.pe ? 0
					       : npu_->write(state_addr(owner, to),
							 &states[to], sizeof(states[to]));
		if (rc)
			return rc;
	}
	return 0;
}

int Group::create_view(uint32_t core, View &view)
{
	const uint32_t n = shape_.n_pes, owner = core * queues_per_core_;
	int rc = view.blob.alloc(npu_, page_up(view_bytes(n)));
	if (!rc)
		rc = view.amo.alloc(npu_, page_up(n * view_amo_bytes));
	if (!rc)
		rc = npu_->memset(view.amo.addr(), 0, n * view_amo_bytes);
	if (!rc)
		rc = Mr::create(nics_[0], npu_, view.amo.addr(),
			page_up(n * view_amo_bytes), NDA_ACCESS_LOCAL_WRITE, view.amo_mr);
	if (rc)
		return rc;
	std::vector<ViewPeer> peers(n);
	for (uint32_t to = 0; to < n; to++) {
		const Channel &channel = *channels_[index(owner, to)];
		ViewPeer &p = peers[to];
		p.self = to == shape_.pe;
		p.queue = queues_[index(owner, to)];
		p.state_addr = state_addr(owner, to);
		p.service_level = channel.service_level();
		p.mtu_shift = channel.mtu_shift();
		p.heap_addr = peers_[to].addr + reserved_bytes_;
		p.heap_bytes = heap_bytes_;
		p.heap_rkey = peers_[to].rkeys[0];
		p.amo_addr = view.amo.addr() + to * view_amo_bytes;
		p.amo_lkey = view.amo_mr->lkey();
	}
	const Image image = view_image(view.blob.addr(), peers, heap_mrs_[0]->lkey());
	return npu_->write(view.blob.addr(), image.data(), image.size());
}

int Group::view_lend(uint32_t core, uint64_t &addr)
{
	int rc = check_view(core, "lend");
	if (rc)
		return rc;
	if (views_[core])
		return fail(-EALREADY, "group: view: the queues of core %u are lent", core);
	if (nics_[0]->format() != NDA_FORMAT_HNS1825)
		return fail(-EOPNOTSUPP,
			"group: view: its kernels know the 1825's queue format only, nic "
			"%s has another",
			nics_[0]->name().c_str());
	// Its kernels use one lkey for whatever is theirs.
	if (shape_.n_nics != 1)
		return fail(-EOPNOTSUPP,
			"group: view: needs a group of one NIC, this has %u",
			shape_.n_nics);
	auto view = std::make_unique<View>();
	rc = create_view(core, *view);
	if (rc)
		return fail_in(rc, "group: view");
	rc = change_states(core, [&](nda_queue_state &s, uint32_t to) {
		if (s.error.status != NDA_OK)
			return fail(-EIO,
				"group: view: the queue of core %u to PE %u is in error",
				core, to);
		if (s.flags || s.head != s.tail)
			return fail(-EBUSY,
				"group: view: the queue of core %u to PE %u is not quiet: "
				"%u posted, %u "
				"done",
				core, to, s.head, s.tail);
		if (!aiv::lend(&s))
			return fail(-EOPNOTSUPP,
				"group: view: the queue of core %u to PE %u had WQEs "
				"without a completion "
				"(signal_every is not 1)",
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
	rc = change_states(core, [&](nda_queue_state &s, uint32_t to) {
		if (!aiv::hns1825::take_back(
			    queues_[index(core * queues_per_core_, to)], &s))
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

std::string Group::text(uint32_t owner) const
{
	std::string text = "queue of core " + std::to_string(owner / queues_per_core_);
	if (queues_per_core_ > 1)
		text = "queue " + std::to_string(owner % queues_per_core_) + text.substr(5);
	return text;
}

int Group::abort(uint32_t value)
{
	return npu_->write(
		table_.addr() + offsetof(nda_table, abort), &value, sizeof(value));
}

int Group::check_queue(uint32_t to, uint32_t owner, const char *verb) const
{
	if (to < shape_.n_pes && owner < n_owners())
		return 0;
	return fail(-EINVAL,
		"group: queue %s: owner %u to PE %u: there are %u owners and %u PEs", verb,
		owner, to, n_owners(), shape_.n_pes);
}

int Group::queue_info(uint32_t to, uint32_t owner, nda_channel_info &info)
{
	const int rc = check_queue(to, owner, "query");
	if (!rc)
		info = channels_[index(owner, to)]->info();
	return rc;
}

int Group::queue_error(uint32_t to, uint32_t owner, nda_queue_error &error)
{
	int rc = check_queue(to, owner, "error");
	if (rc)
		return rc;
	nda_queue_error found = {};
	rc = npu_->read(&found, state_addr(owner, to) + offsetof(nda_queue_state, error),
		sizeof(found));
	if (!rc)
		error = found;
	return rc;
}

} // namespace nda
