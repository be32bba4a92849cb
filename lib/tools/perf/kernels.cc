// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/kernels.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include <nda/aiv/device.h>
#include <nda/aiv/in_die_queue.h>
#include <nda/aiv/rxe_queue.h>
#include <nda/aiv/soft_core.h>
#include <nda/aiv/udma_queue.h>
#include <nda/aiv/xscale_queue.h>
#include <nda/table.h>

namespace nda::perf {
namespace {

using nda::aiv::SoftCore;
template <class Engine>
using DeviceOf = nda::aiv::Device<SoftCore, Engine>;

// From this size on a message takes longer than looking at the clock.
constexpr uint64_t large_bytes = 65536;

class Stopwatch {
public:
	explicit Stopwatch(const SoftCore &core)
		: core_(core), ns_per_cycle_(1000.0 / double(core.cycles_per_us())),
		  start_(core.cycles())
	{}
	void restart() { start_ = core_.cycles(); }
	uint64_t ns() const
	{
		return uint64_t(double(core_.cycles() - start_) * ns_per_cycle_);
	}

private:
	const SoftCore &core_;
	const double ns_per_cycle_;
	uint64_t start_;
};

// When a core's work begins, and when it is enough.
class Span {
public:
	// Waits for the start: asleep at first, since cores may outnumber processors.
	Span(const Pace &work, CoreResult &result) : work_(work), result_(result)
	{
		constexpr uint64_t spin_ns = 100000;
		uint64_t now = now_ns();
		if (now + spin_ns < work.start_ns)
			std::this_thread::sleep_for(
				std::chrono::nanoseconds(work.start_ns - spin_ns - now));
		while ((now = now_ns()) < work.start_ns)
			sched_yield();
		result.start_ns = result.end_ns = now;
	}
	void done(uint64_t messages)
	{
		result_.messages += messages;
		result_.end_ns = now_ns();
	}
	uint64_t left(uint64_t at_most) const
	{
		if (work_.messages == 0)
			return at_most;
		return std::min(at_most, work_.messages - result_.messages);
	}
	bool time_over(uint64_t now) const
	{
		return work_.time_us != 0 && now - result_.start_ns >= work_.time_us * 1000;
	}
	bool over() const { return left(1) == 0 || time_over(result_.end_ns); }

private:
	const Pace &work_;
	CoreResult &result_;
};

// A core's share of the work.
class Share {
public:
	Share(const Work &work, uint32_t core)
		: work_(work), base_(core * work.slots * work.stride)
	{}
	uint64_t source() const { return work_.source + base_ + at_; }
	uint64_t target() const { return work_.target + base_ + at_; }
	void next()
	{
		at_ += work_.stride;
		if (at_ == work_.slots * work_.stride)
			at_ = 0;
	}

private:
	const Work &work_;
	const uint64_t base_;
	uint64_t at_ = 0;
};

template <class Device>
nda_status post(Device &device, const Work &work, const Share &share)
{
	if (work.get)
		return device.get_nbi(work.peer, share.target(), share.source(), work.size);
	return device.put_nbi(work.peer, share.target(), share.source(), work.size);
}

// Posts n messages, a doorbell each.
template <class Device>
nda_status post_each(Device &device, const Work &work, Share &share, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++, share.next())
		if (nda_status status = post(device, work, share); status != NDA_OK)
			return status;
	return NDA_OK;
}

// Posts n messages with one doorbell.
template <class Device>
nda_status post_batch(Device &device, const Work &work, Share &share, uint64_t n)
{
	auto batch = device.batch(work.peer);
	for (uint64_t i = 0; i < n; i++, share.next()) {
		nda_status status = work.get
			? batch.get_nbi(share.target(), share.source(), work.size)
			: batch.put_nbi(share.target(), share.source(), work.size);
		if (status != NDA_OK)
			return status;
	}
	return batch.submit();
}

// Posts a window, less of it if the time is over first, and waits for it.
template <class Device>
nda_status send_window(Device &device, const Work &work, Share &share, Span &span)
{
	const uint64_t window = span.left(work.window);
	uint64_t posted = 0;
	while (posted < window) {
		uint64_t n = std::min(work.batch, window - posted);
		nda_status status = work.batch == 1 ? post_each(device, work, share, n)
						    : post_batch(device, work, share, n);
		if (status != NDA_OK)
			return status;
		posted += n;
		if (work.size >= large_bytes && span.time_over(now_ns()))
			break;
	}
	nda_status status = device.quiet(work.peer);
	if (status == NDA_OK)
		span.done(posted);
	return status;
}

template <class Device>
nda_status run_rate(Device &device, const Work &work, Share &share, CoreResult &result)
{
	Span span(work, result);
	nda_status status = NDA_OK;
	while (status == NDA_OK && !span.over())
		status = send_window(device, work, share, span);
	return status;
}

template <class Device>
nda_status run_latency(Device &device, const Work &work, Share &share, CoreResult &result)
{
	Stopwatch watch(device.core());
	Span span(work, result);
	while (!span.over()) {
		watch.restart();
		nda_status status = post(device, work, share);
		if (status == NDA_OK)
			status = device.quiet(work.peer);
		const uint64_t ns = watch.ns();
		if (status != NDA_OK)
			return status;
		share.next();
		result.latency.add(ns);
		span.done(1);
	}
	return NDA_OK;
}

template <class Device>
using Body = nda_status (*)(Device &, const Work &, Share &, CoreResult &);

template <class Device>
void run(const nda_core *core, void *arg, Body<Device> body)
{
	Work &work = *static_cast<Work *>(arg);
	CoreResult &result = work.results[core->index];
	result.core = core->index;
	result.peer = work.peer;
	Share share(work, core->index);
	Device device;
	result.status = device.open(SoftCore(core), work.table, core->index);
	if (result.status == NDA_OK)
		result.status = body(device, work, share, result);
}

// A core's chunks of a piece: every n-th one of n cores, beginning with its index.
class Chunks {
public:
	Chunks(const CopyWork &work, uint32_t core)
		: work_(work), step_(work.chunk * work.results.size()),
		  at_(work.chunk * core)
	{}
	bool more() const { return at_ < work_.size; }
	uint64_t address() const { return work_.address + at_; }
	uint64_t size() const { return std::min(work_.chunk, work_.size - at_); }
	void next() { at_ += step_; }

private:
	const CopyWork &work_;
	const uint64_t step_;
	uint64_t at_;
};

// Posts the next window of chunks to one PE.
template <class Device>
nda_status post_chunks(
	Device &device, const CopyWork &work, uint32_t pe, Chunks &chunks, uint64_t *posted)
{
	for (uint64_t done = 0; done < work.window && chunks.more();) {
		auto batch = device.batch(pe);
		const uint64_t end = std::min(done + work.batch, work.window);
		for (; done < end && chunks.more(); done++, chunks.next()) {
			nda_status status = batch.put_nbi(
				chunks.address(), chunks.address(), chunks.size());
			if (status != NDA_OK)
				return status;
			++*posted;
		}
		if (nda_status status = batch.submit(); status != NDA_OK)
			return status;
	}
	return NDA_OK;
}

template <class Device>
nda_status quiet_all(Device &device, CoreResult &result)
{
	for (uint32_t pe = 0; pe < device.n_pes(); pe++) {
		if (pe == device.my_pe())
			continue;
		result.peer = pe;
		if (nda_status status = device.quiet(pe); status != NDA_OK)
			return status;
	}
	return NDA_OK;
}

// The same window of chunks to each PE in turn, then one wait for all of them.
template <class Device>
nda_status send_chunks(
	Device &device, const CopyWork &work, Chunks &chunks, CoreResult &result)
{
	const Chunks first = chunks;
	for (uint32_t pe = 0; pe < device.n_pes(); pe++) {
		if (pe == device.my_pe())
			continue;
		result.peer = pe;
		Chunks own = first;
		nda_status status = post_chunks(device, work, pe, own, &result.messages);
		if (status != NDA_OK)
			return status;
	}
	for (uint64_t i = 0; i < work.window && chunks.more(); i++)
		chunks.next();
	return quiet_all(device, result);
}

template <class Device>
nda_status run_copy(Device &device, const CopyWork &work, CoreResult &result)
{
	Stopwatch watch(device.core());
	Chunks chunks(work, result.core);
	result.start_ns = result.end_ns = now_ns();
	while (chunks.more()) {
		watch.restart();
		nda_status status = send_chunks(device, work, chunks, result);
		if (status != NDA_OK)
			return status;
		result.latency.add(watch.ns());
		result.end_ns = now_ns();
	}
	return NDA_OK;
}

template <class Device>
void copy(const nda_core *core, void *arg)
{
	CopyWork &work = *static_cast<CopyWork *>(arg);
	CoreResult &result = work.results[core->index];
	result.core = core->index;
	Device device;
	result.status = device.open(SoftCore(core), work.table, core->index);
	if (result.status == NDA_OK)
		result.status = run_copy(device, work, result);
}

// The other PEs, one after the other, and a core's messages to them.
template <class Device>
class Turns {
public:
	Turns(const Device &device, AtomicWork &work, uint32_t core)
		: device_(device), work_(work), core_(core), peer_(device.my_pe())
	{
		next();
	}
	uint32_t peer() const { return peer_; }
	// Where the former value that message i found goes.
	uint64_t former(uint64_t i) const
	{
		return work_.formers + (core_ * work_.slots + i % work_.slots) * 8;
	}
	uint64_t changes() const { return count_; }
	void changed()
	{
		work_.changes[core_ * device_.n_pes() + peer_]++;
		count_++;
		next();
	}

private:
	void next()
	{
		peer_ = (peer_ + 1) % device_.n_pes();
		if (peer_ == device_.my_pe())
			peer_ = (peer_ + 1) % device_.n_pes();
	}

	const Device &device_;
	AtomicWork &work_;
	const uint64_t core_;
	uint32_t peer_;
	uint64_t count_ = 0;
};

// A window of fetch_adds over all peers, then one wait for all of them.
template <class Device>
nda_status fetch_add_rate(Device &device, AtomicWork &work, CoreResult &result)
{
	Turns<Device> turns(device, work, result.core);
	Span span(work, result);
	while (!span.over()) {
		const uint64_t n = span.left(work.window);
		const uint64_t first = turns.changes();
		for (uint64_t i = first; i < first + n; i++, turns.changed()) {
			result.peer = turns.peer();
			nda_status status = device.fetch_add_nbi(
				turns.peer(), work.counter, uint64_t(1), turns.former(i));
			if (status != NDA_OK)
				return status;
		}
		if (nda_status status = quiet_all(device, result); status != NDA_OK)
			return status;
		for (uint64_t i = first; i < first + n; i++)
			device.core().store(turns.former(i),
				device.template read_result<uint64_t>(turns.former(i)));
		span.done(n);
	}
	return NDA_OK;
}

template <class Device>
nda_status fetch_add_latency(Device &device, AtomicWork &work, CoreResult &result)
{
	Stopwatch watch(device.core());
	Turns<Device> turns(device, work, result.core);
	Span span(work, result);
	while (!span.over()) {
		uint64_t former;
		result.peer = turns.peer();
		watch.restart();
		nda_status status =
			device.fetch_add(turns.peer(), work.counter, uint64_t(1), &former);
		const uint64_t ns = watch.ns();
		if (status != NDA_OK)
			return status;
		turns.changed();
		result.latency.add(ns);
		span.done(1);
	}
	return NDA_OK;
}

// Counts up by compare_swap: again with the value that was there, until nobody came
// between.
template <class Device>
nda_status compare_swap(Device &device, AtomicWork &work, CoreResult &result)
{
	Stopwatch watch(device.core());
	Turns<Device> turns(device, work, result.core);
	std::vector<uint64_t> expected(device.n_pes(), work.first);
	Span span(work, result);
	while (!span.over() &&
		(work.changes_limit == 0 || turns.changes() < work.changes_limit)) {
		const uint32_t peer = turns.peer();
		uint64_t former = 0;
		result.peer = peer;
		watch.restart();
		nda_status status = device.compare_swap(
			peer, work.counter, expected[peer], expected[peer] + 1, &former);
		const uint64_t ns = watch.ns();
		if (status != NDA_OK)
			return status;
		result.latency.add(ns);
		span.done(1);
		if (former != expected[peer]) {
			expected[peer] = former;
			continue;
		}
		expected[peer]++;
		device.core().store(turns.former(turns.changes()), former);
		turns.changed();
	}
	return NDA_OK;
}

template <class Device>
void run_atomic(const nda_core *core, void *arg,
	nda_status (*body)(Device &, AtomicWork &, CoreResult &))
{
	AtomicWork &work = *static_cast<AtomicWork *>(arg);
	CoreResult &result = work.results[core->index];
	result.core = core->index;
	Device device;
	result.status = device.open(SoftCore(core), work.table, core->index);
	if (result.status == NDA_OK)
		result.status = body(device, work, result);
}

template <class Engine>
using AtomicBody = nda_status (*)(DeviceOf<Engine> &, AtomicWork &, CoreResult &);
// nullptr: the engine has no such operation.
template <class Engine, aiv::verb operation, AtomicBody<Engine> body>
constexpr nda_kernel_fn atomic_kernel()
{
	if constexpr (Engine::supports(operation, 8))
		return [](const nda_core *core, void *work) {
			run_atomic<DeviceOf<Engine>>(core, work, body);
		};
	else
		return nullptr;
}

// Of the queue format of one engine.
template <class Engine>
constexpr Kernels kernels = {[](const nda_core *core, void *work) {
				     run<DeviceOf<Engine>>(core, work, run_latency);
			     },
	[](const nda_core *core, void *work) {
		run<DeviceOf<Engine>>(core, work, run_rate);
	},
	copy<DeviceOf<Engine>>,
	atomic_kernel<Engine, aiv::verb::fetch_add, fetch_add_latency<DeviceOf<Engine>>>(),
	atomic_kernel<Engine, aiv::verb::fetch_add, fetch_add_rate<DeviceOf<Engine>>>(),
	atomic_kernel<Engine, aiv::verb::compare_swap, compare_swap<DeviceOf<Engine>>>()};

} // namespace

uint64_t now_ns()
{
	return uint64_t(std::chrono::steady_clock::now().time_since_epoch() /
		std::chrono::nanoseconds(1));
}

const Kernels *kernels_of(uint32_t format)
{
	switch (format) {
	case NDA_FORMAT_HNS1825:
		return &kernels<aiv::hns1825::Engine>;
	case NDA_FORMAT_IN_DIE:
		return &kernels<aiv::in_die::Engine>;
	case NDA_FORMAT_RXE:
		return &kernels<aiv::rxe::Engine>;
	case NDA_FORMAT_XSCALE:
		return &kernels<aiv::xscale::Engine>;
	case NDA_FORMAT_UDMA:
		return &kernels<aiv::udma::Engine>;
	default:
		return nullptr;
	}
}

void memcpy_kernel(const nda_core *core, void *arg)
{
	Work &work = *static_cast<Work *>(arg);
	Share share(work, core->index);
	Span span(work, work.results[core->index]);
	while (!span.over()) {
		memcpy(reinterpret_cast<void *>(share.target() + core->address_offset),
			reinterpret_cast<void *>(share.source() + core->address_offset),
			work.size);
		share.next();
		span.done(1);
	}
}

} // namespace nda::perf
