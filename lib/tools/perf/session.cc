// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/session.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lib/tools/perf/memory.h"

namespace nda::perf {
namespace {

constexpr uint64_t default_npu_bytes = uint64_t(1) << 30;
constexpr int kernel_slack_ms = 5000;
constexpr uint64_t launch_ns = 1000000; // until every core of every PE is there
constexpr uint64_t launch_core_ns = 50000;

std::string hex(uint64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
	return text;
}

// The library's text, or what errno says.
std::string cause_of(int error)
{
	const char *detail = nda_error_detail();
	return *detail ? detail : strerror(error < 0 ? -error : error);
}

} // namespace

Session::Session(const Options &options, const nda_bootstrap &bootstrap, const Send &send)
	: options_(options), bootstrap_(bootstrap), send_(send)
{}

Session::~Session()
{
	// A group can't be left without its other PEs: the end of the process does it.
	if (broken_)
		return;
	if (group_)
		nda_group_destroy(group_);
	if (nic_)
		nda_nic_close(nic_);
	if (npu_)
		nda_npu_close(npu_);
}

void Session::progress(const std::string &text)
{
	send_(encode_progress(text));
}

Outcome Session::fail_as(const std::string &message, int exit_status)
{
	Failure f;
	f.exit_status = exit_status;
	f.message = message;
	f.pe = pe();
	f.op = op_name(options_.op);
	exit_status_ = exit_status;
	send_(encode(f));
	return Outcome::failed;
}

Outcome Session::fail(const std::string &object, const std::string &cause)
{
	return fail_as(object + ": " + cause, exit_failure);
}

Outcome Session::fail_call(int error)
{
	return fail("PE " + std::to_string(pe()), cause_of(error));
}

Outcome Session::open_npu(uint64_t heap_bytes)
{
	const uint64_t need = npu_bytes(options_, format_, heap_bytes);
	nda_npu_attr attr = {};
	// The kernel's memory is not sparse.
	if (need > default_npu_bytes || options_.npu != "soft")
		attr.memory_bytes = (need + 4095) & ~uint64_t(4095);
	if (options_.strict)
		attr.flags |= NDA_NPU_STRICT;
	if (options_.no_assist)
		attr.flags |= NDA_NPU_NO_ASSIST;
	if (options_.doorbell == Doorbell::map)
		attr.flags |= NDA_NPU_DOORBELL_MAP;
	if (options_.doorbell == Doorbell::proxy)
		attr.flags |= NDA_NPU_DOORBELL_PROXY;
	if (options_.doorbell == Doorbell::kernel)
		attr.flags |= NDA_NPU_DOORBELL_KERNEL;
	npu_ = nda_npu_open(options_.npu.c_str(), &attr, sizeof(attr));
	if (!npu_)
		return fail_call(errno);
	return Outcome::ok;
}

Outcome Session::open_nic()
{
	nda_nic_attr attr = {};
	attr.inject = options_.inject.empty() ? nullptr : options_.inject.c_str();
	attr.events = options_.events.empty() ? nullptr : options_.events.c_str();
	nic_ = nda_nic_open(options_.nic.c_str(), &attr, sizeof(attr));
	if (nic_)
		return choose_kernels();
	const int error = errno;
	// The text names the NIC, and is the same on every PE.
	if (error == ENODEV || error == ENXIO || (error == ENOENT && !attr.events))
		return fail_as(cause_of(error), exit_no_device);
	const bool may_be_usage = attr.inject || attr.events;
	return fail_as(cause_of(error),
		error == EINVAL && may_be_usage ? exit_usage : exit_failure);
}

Outcome Session::choose_kernels()
{
	nda_nic_info info;
	if (int error = nda_nic_query(nic_, &info, sizeof(info)))
		return fail_call(error);
	format_ = info.format;
	kernels_ = kernels_of(format_);
	if (kernels_)
		return options_.op == Op::atomic ? choose_atomics() : Outcome::ok;
	return fail("nic " + options_.nic,
		"no kernels for its queue format " + std::to_string(info.format));
}

Outcome Session::choose_atomics()
{
	const uint32_t bytes = options_.atomic_bytes;
	const std::string of_bytes = " of " + std::to_string(bytes) + " bytes";
	for (Atomic atomic : options_.atomics) {
		if (kernels_->way_of(atomic, bytes) != Way::none)
			atomics_.push_back(atomic);
		else if (!options_.all_atomics)
			return fail("nic " + options_.nic,
				"its queue format has no " +
					std::string(atomic_name(atomic)) + of_bytes);
	}
	if (atomics_.empty())
		return fail("nic " + options_.nic,
			"its queue format has no atomics" + of_bytes);
	return Outcome::ok;
}

// The halves of a job of two machines were started by two command lines.
Outcome Session::compare_options()
{
	const uint64_t own = options_.fingerprint();
	std::vector<uint64_t> all(n_pes());
	if (Outcome o = allgather(&own, all.data(), sizeof(own)); o != Outcome::ok)
		return o;
	const bool same = std::all_of(
		all.begin(), all.end(), [&](uint64_t v) { return v == all[0]; });
	if (same)
		return Outcome::ok;
	return pe() == 0
		? fail("PE 0",
			  "the other side's command or options differ from this side's")
		: Outcome::stopped;
}

Outcome Session::open_group(uint64_t heap_bytes)
{
	nda_group_attr attr = {};
	attr.heap_bytes = heap_bytes;
	attr.n_cores = options_.cores;
	attr.queues_per_core = options_.queues;
	attr.channel.sq_depth = options_.depth;
	attr.channel.signal_every = options_.signal_every;
	attr.channel.path_mtu_bytes = options_.path_mtu_bytes;
	if (options_.gid_is_index) {
		attr.channel.comp_mask |= NDA_CHANNEL_GID_INDEX;
		attr.channel.gid_index = uint32_t(std::stoul(options_.gid));
	} else if (!options_.gid.empty()) {
		attr.channel.gid_address = options_.gid.c_str();
	}
	attr.channel.device_timeout_us = uint32_t(
		std::min<uint64_t>(uint64_t(options_.timeout_ms) * 1000, UINT32_MAX));
	group_ = nda_group_create(&bootstrap_, npu_, &nic_, 1, &attr, sizeof(attr));
	if (group_)
		return Outcome::ok;
	broken_ = true;
	return fail_call(errno);
}

// Of all PEs that are started here the first one looks: before any of them fills memory
// that the kernel may end others for.
Outcome Session::check_machine(const MemoryPlan &plan)
{
	if (pe() != options_.first_pe())
		return Outcome::ok;
	const std::string wrong = check_memory(options_, format_, plan, available_bytes());
	return wrong.empty() ? Outcome::ok : fail("job", wrong);
}

Outcome Session::open(const MemoryPlan &plan)
{
	Outcome opened = open_nic();
	if (opened == Outcome::ok)
		opened = check_machine(plan);
	if (opened == Outcome::ok)
		opened = open_npu(plan.heap_bytes);
	// Whoever failed must not leave the others waiting in the group's creation.
	opened = agree(opened);
	if (opened == Outcome::ok)
		opened = compare_options();
	return opened == Outcome::ok ? open_group(plan.heap_bytes) : opened;
}

Outcome Session::close()
{
	nda_group *group = group_;
	group_ = nullptr;
	if (int error = nda_group_destroy(group)) {
		broken_ = true;
		return fail_call(error);
	}
	return Outcome::ok;
}

Outcome Session::alloc(uint64_t size, uint64_t *address)
{
	if (int error = nda_group_heap_alloc(group_, size, address))
		return fail_call(error);
	return Outcome::ok;
}

Outcome Session::read(void *data, uint64_t address, uint64_t size)
{
	if (int error = nda_npu_read(npu_, data, address, size))
		return fail_call(error);
	return Outcome::ok;
}

Outcome Session::write(uint64_t address, const void *data, uint64_t size)
{
	if (int error = nda_npu_write(npu_, address, data, size))
		return fail_call(error);
	return Outcome::ok;
}

Outcome Session::fill(uint64_t address, int value, uint64_t size)
{
	if (int error = nda_npu_memset(npu_, address, value, size))
		return fail_call(error);
	return Outcome::ok;
}

Outcome Session::barrier()
{
	if (int error = bootstrap_.barrier(bootstrap_.cookie)) {
		broken_ = true;
		return fail_call(error);
	}
	return Outcome::ok;
}

Outcome Session::allgather(const void *in, void *out, uint64_t size)
{
	if (int error = bootstrap_.allgather(bootstrap_.cookie, in, out, size)) {
		broken_ = true;
		return fail_call(error);
	}
	return Outcome::ok;
}

Outcome Session::common_start(uint64_t *base_ns, uint64_t *start_ns)
{
	const uint64_t ready = now_ns();
	std::vector<uint64_t> all(n_pes());
	Outcome outcome = allgather(&ready, all.data(), sizeof(ready));
	if (outcome != Outcome::ok)
		return outcome;
	// Clocks of different machines have nothing to do with each other: there the start
	// is as good as the allgather brings all PEs to it, and times count from there.
	*base_ns = options_.one_machine() ? *std::max_element(all.begin(), all.end())
					  : now_ns();
	*start_ns = *base_ns + launch_ns + launch_core_ns * options_.cores;
	return Outcome::ok;
}

Outcome Session::agree(Outcome own)
{
	std::vector<Outcome> all(n_pes());
	if (broken_)
		return own;
	if (allgather(&own, all.data(), sizeof(own)) != Outcome::ok)
		return Outcome::failed;
	if (own != Outcome::ok)
		return own;
	bool others = std::all_of(
		all.begin(), all.end(), [](Outcome o) { return o == Outcome::ok; });
	return others ? Outcome::ok : Outcome::stopped;
}

Outcome Session::run(const Launch &launch)
{
	int error = nda_npu_launch(
		npu_, launch.kernel, launch.work.get(), uint32_t(launch.results.size()));
	if (error)
		return fail_call(error);
	uint64_t limit_ms = launch.limit_us / 1000 + options_.timeout_ms + kernel_slack_ms;
	error = nda_npu_wait(npu_, int(std::min<uint64_t>(limit_ms, INT32_MAX)));
	if (error) {
		// It may go on and use its argument.
		broken_ = true;
		new std::shared_ptr<void>(launch.work);
		return fail_call(error);
	}
	Outcome outcome = Outcome::ok;
	for (const CoreResult &result : launch.results)
		if (result.status != NDA_OK)
			outcome = fail_message(launch, result);
	return outcome;
}

std::string Session::doorbell()
{
	nda_channel_info info = {};
	const uint32_t next = (pe() + 1) % n_pes();
	if (nda_group_queue_query(group_, next, 0, &info, sizeof(info)) != 0)
		return "";
	return info.doorbell == NDA_DOORBELL_PROXIED   ? "proxy"
		: info.doorbell == NDA_DOORBELL_KERNEL ? "kernel"
						       : "map";
}

// The first that has an error, of those that the core used; else the first of all.
std::optional<Session::Queue> Session::failed_queue(const CoreResult &result)
{
	const uint32_t first = result.core * options_.queues;
	for (uint32_t peer = 0; peer < n_pes(); peer++) {
		if (result.peer != any_peer && result.peer != peer)
			continue;
		for (uint32_t i = 0; i < options_.queues; i++) {
			nda_queue_error error;
			if (nda_group_queue_error(group_, peer, first + i, &error) == 0 &&
				error.status != NDA_OK)
				return Queue{peer, first + i};
		}
	}
	if (result.peer == any_peer)
		return std::nullopt;
	return Queue{result.peer, first};
}

// The queue's number and what its NIC said, as far as they can be read.
std::string Session::queue_text(const Queue &which)
{
	nda_table table;
	nda_queue queue;
	const uint64_t index = uint64_t(which.owner) * n_pes() + which.peer;
	if (nda_npu_read(npu_, &table, this->table(), sizeof(table)) != 0)
		return "";
	uint64_t address = this->table() + table.queues_offset + index * NDA_QUEUE_STRIDE;
	if (nda_npu_read(npu_, &queue, address, sizeof(queue)) != 0)
		return "";
	std::string text = " (QP " + std::to_string(queue.qpn);
	nda_queue_error error;
	if (nda_group_queue_error(group_, which.peer, which.owner, &error) == 0 &&
		error.status != NDA_OK)
		text += ", WQE " + std::to_string(error.wqe_index) + ", NIC status " +
			hex(error.raw_status) + "/" + hex(error.raw_vendor);
	nda_channel_info info = {};
	if (nda_group_queue_query(group_, which.peer, which.owner, &info, sizeof(info)) ==
			0 &&
		info.doorbell_error)
		text += ", ringing its doorbell: " +
			std::string(strerror(-info.doorbell_error));
	return text + ")";
}

Outcome Session::fail_message(const Launch &launch, const CoreResult &result)
{
	const std::optional<Queue> queue = failed_queue(result);
	Failure f;
	f.exit_status = exit_failure;
	f.pe = pe();
	f.core = result.core;
	f.op = op_name(options_.op);
	f.size_bytes = launch.size;
	f.status = result.status;
	f.status_text = nda_status_string(result.status);
	f.message = "PE " + std::to_string(pe()) + ", core " + std::to_string(result.core);
	if (queue) {
		f.peer = queue->peer;
		f.message +=
			", queue to PE " + std::to_string(queue->peer) + queue_text(*queue);
	}
	f.message += ": " + std::string(launch.what);
	if (launch.size != 0)
		f.message += " of " + std::to_string(launch.size) + " bytes at " +
			hex(launch.address);
	f.message += ": " + f.status_text;
	exit_status_ = exit_failure;
	send_(encode(f));
	return Outcome::failed;
}

} // namespace nda::perf
