// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/kernels.h"

#include <sched.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "lib/tools/perf/kernel_parts.h"

namespace nda::perf {
namespace {

// From this size on a message takes longer than looking at the clock.
constexpr uint64_t large_bytes = 65536;

// A core's share of the work.
class Share {
public:
	Share(const Work &work, uint32_t core) : work_(work), first_(core * work.slots) {}
	uint64_t source() const { return work_.source + slot() * work_.stride; }
	uint64_t target() const { return work_.target + slot() * work_.stride; }
	uint64_t signal() const { return work_.signals + slot() * signal_stride; }
	uint64_t number() const { return number_; }
	void next()
	{
		number_++;
		if (++at_ == work_.slots)
			at_ = 0;
	}

private:
	uint64_t slot() const { return first_ + at_; }

	const Work &work_;
	const uint64_t first_;
	uint64_t at_ = 0;
	uint64_t number_ = 1;
};

// A core's queues to a PE, which take turns.
template <class Device>
class Queues {
public:
	nda_status open(const nda_core *core, const Work &work)
	{
		devices_.resize(work.queues);
		for (uint32_t i = 0; i < work.queues; i++) {
			nda_status status = devices_[i].open(
				SoftCore(core), work.table, core->index, i);
			if (status != NDA_OK)
				return status;
		}
		return NDA_OK;
	}
	Device &next()
	{
		Device &device = devices_[at_];
		if (++at_ == devices_.size())
			at_ = 0;
		return device;
	}
	nda_status quiet(uint32_t pe) { return devices_[0].quiet_queues(pe); }
	const SoftCore &core() const { return devices_[0].core(); }

private:
	std::vector<Device> devices_;
	size_t at_ = 0;
};

template <class Device>
nda_status post(Device &device, const Work &work, const Share &share)
{
	if (work.get)
		return device.get_nbi(work.peer, share.target(), share.source(), work.size);
	if (work.signals != 0)
		return device.put_signal_nbi(work.peer, share.target(), share.source(),
			work.size, share.signal(), share.number());
	return device.put_nbi(work.peer, share.target(), share.source(), work.size);
}

// Posts n messages, a doorbell each.
template <class Device>
nda_status post_each(Queues<Device> &queues, const Work &work, Share &share, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++, share.next())
		if (nda_status status = post(queues.next(), work, share); status != NDA_OK)
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
nda_status send_window(Queues<Device> &queues, const Work &work, Share &share, Span &span)
{
	const uint64_t window = span.left(work.window);
	uint64_t posted = 0;
	while (posted < window) {
		uint64_t n = std::min(work.batch, window - posted);
		nda_status status = work.batch == 1
			? post_each(queues, work, share, n)
			: post_batch(queues.next(), work, share, n);
		if (status != NDA_OK)
			return status;
		posted += n;
		if (work.size >= large_bytes && span.time_over(now_ns()))
			break;
	}
	nda_status status = queues.quiet(work.peer);
	if (status == NDA_OK)
		span.done(posted);
	return status;
}

template <class Device>
nda_status run_rate(
	Queues<Device> &queues, const Work &work, Share &share, CoreResult &result)
{
	Span span(work, result);
	nda_status status = NDA_OK;
	while (status == NDA_OK && !span.over())
		status = send_window(queues, work, share, span);
	return status;
}

template <class Device>
nda_status run_latency(
	Queues<Device> &queues, const Work &work, Share &share, CoreResult &result)
{
	Stopwatch watch(queues.core());
	Span span(work, result);
	while (!span.over()) {
		Device &device = queues.next();
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
using Body = nda_status (*)(Queues<Device> &, const Work &, Share &, CoreResult &);

template <class Device>
void run(const nda_core *core, void *arg, Body<Device> body)
{
	Work &work = *static_cast<Work *>(arg);
	CoreResult &result = work.results[core->index];
	result.core = core->index;
	result.peer = work.peer;
	Share share(work, core->index);
	Queues<Device> queues;
	result.status = queues.open(core, work);
	if (result.status == NDA_OK)
		result.status = body(queues, work, share, result);
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
nda_status run_copy(Device &device, CopyWork &work, CoreResult &result)
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

template <class Engine>
void add_kernels(Kernels *kernels)
{
	kernels->latency = [](const nda_core *core, void *work) {
		run<DeviceOf<Engine>>(core, work, run_latency);
	};
	kernels->rate = [](const nda_core *core, void *work) {
		run<DeviceOf<Engine>>(core, work, run_rate);
	};
	kernels->copy = [](const nda_core *core, void *work) {
		run_device<DeviceOf<Engine>, CopyWork>(core, work, run_copy);
	};
}

} // namespace

bool add_message_kernels(uint32_t format, Kernels *kernels)
{
	return with_engine(
		format, [=](auto engine) { add_kernels<decltype(engine)>(kernels); });
}

std::optional<Kernels> kernels_of(uint32_t format)
{
	Kernels kernels = {};
	if (add_message_kernels(format, &kernels) && add_atomic_kernels(format, &kernels) &&
		add_signal_kernels(format, &kernels))
		return kernels;
	return std::nullopt;
}

uint64_t now_ns()
{
	return uint64_t(std::chrono::steady_clock::now().time_since_epoch() /
		std::chrono::nanoseconds(1));
}

// Asleep at first, since cores may outnumber processors.
Span::Span(const Pace &work, CoreResult &result) : work_(work), result_(result)
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
