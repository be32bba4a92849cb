// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The kernels in which PEs wait for each other: ping-pongs of put_signal, and barriers.
#include <chrono>
#include <thread>

#include "lib/tools/perf/kernel_parts.h"
#include "lib/tools/perf/pattern.h"

namespace nda::perf {
namespace {

using aiv::cmp;

// Waits for words of the own memory, all within one deadline. Who waits in vain may have
// sent something that failed: nothing more is sent meanwhile, so one look at that is
// enough, and it comes long before the deadline.
template <class Device>
class Wait {
public:
	Wait(Device &device, uint64_t table, uint32_t peer)
		: device_(device), peer_(peer), watch_(device.core()),
		  deadline_(device.core(),
			  {device.core().template load<uint32_t>(
				   table + offsetof(nda_table, device_timeout_us)),
				  table + offsetof(nda_table, abort)})
	{}

	nda_status until(uint64_t address, uint64_t at_least);

private:
	static constexpr uint64_t patience_ns = 1000000;

	Device &device_;
	const uint32_t peer_;
	const Stopwatch watch_;
	aiv::Deadline<SoftCore> deadline_;
	bool sent_all_ = false;
};

template <class Device>
nda_status Wait<Device>::until(uint64_t address, uint64_t at_least)
{
	bool expired = false;
	while (!device_.template test<uint64_t>(address, cmp::ge, at_least)) {
		if (expired)
			return deadline_.status();
		if (!sent_all_ && watch_.ns() > patience_ns) {
			nda_status status = device_.quiet(peer_);
			if (status != NDA_OK)
				return status;
			sent_all_ = true;
		}
		expired = deadline_.passed();
		device_.core().relax();
	}
	return NDA_OK;
}

// One core's side of a ping-pong. In round r, from 1 on, every message of a burst carries
// the signal 2 * r, plus 1 in the last round. Each slot has a signal of its own, so that
// nothing depends on the order of signals.
template <class Device>
class PingPong {
public:
	PingPong(Device &device, PingPongWork &work, const nda_core *core)
		: device_(device), work_(work), core_(core),
		  first_(core->index * work.slots)
	{}

	nda_status send(uint64_t round, bool last);
	nda_status receive(uint64_t round, bool *last);

private:
	uint64_t offset(uint64_t slot) const { return (first_ + slot) * work_.stride; }
	uint64_t signal(uint64_t slot) const
	{
		return work_.signals + (first_ + slot) * signal_stride;
	}
	// Of all messages of all rounds and cores.
	uint64_t number(uint64_t round, uint64_t slot) const
	{
		return round * work_.results.size() * work_.slots + first_ + slot;
	}
	uint8_t *memory(uint64_t address) const
	{
		return reinterpret_cast<uint8_t *>(address + core_->address_offset);
	}
	void check(uint64_t round, uint64_t slot);

	Device &device_;
	PingPongWork &work_;
	const nda_core *const core_;
	const uint64_t first_;
};

// The peer has answered the burst before, so the data of that may be overwritten; but that
// came through the peer, and this core has not seen it itself.
template <class Device>
nda_status PingPong<Device>::send(uint64_t round, bool last)
{
	if (work_.verify) {
		nda_status status = device_.quiet(work_.peer);
		if (status != NDA_OK)
			return status;
	}
	for (uint64_t i = 0; i < work_.burst; i++) {
		const uint64_t source = work_.source + offset(i);
		if (work_.verify)
			pattern_fill(memory(source), work_.size, device_.my_pe(),
				number(round, i));
		nda_status status =
			device_.put_signal_nbi(work_.peer, work_.target + offset(i), source,
				work_.size, signal(i), 2 * round + last);
		if (status != NDA_OK)
			return status;
	}
	return NDA_OK;
}

template <class Device>
nda_status PingPong<Device>::receive(uint64_t round, bool *last)
{
	Wait<Device> wait(device_, work_.table, work_.peer);
	for (uint64_t i = 0; i < work_.burst; i++) {
		nda_status status = wait.until(signal(i), 2 * round);
		if (status != NDA_OK)
			return status;
		if (work_.verify)
			check(round, i);
	}
	*last = device_.template test<uint64_t>(signal(0), cmp::eq, 2 * round + 1);
	return NDA_OK;
}

// Notes the first message that is not what the peer had.
template <class Device>
void PingPong<Device>::check(uint64_t round, uint64_t slot)
{
	const uint8_t *data = memory(work_.target + offset(slot));
	const size_t good =
		pattern_check(data, work_.size, work_.peer, number(round, slot));
	std::string &wrong = work_.wrong[core_->index];
	if (good != work_.size && wrong.empty())
		wrong = "message " + std::to_string(slot) + " of round " +
			std::to_string(round) + ": its signal was seen before its byte " +
			std::to_string(good);
}

template <class Device>
nda_status begin(
	Device &device, PingPongWork &work, PingPong<Device> &side, CoreResult &result)
{
	Stopwatch watch(device.core());
	Span span(work, result);
	bool last = false;
	for (uint64_t round = 1; !last; round++) {
		last = span.left(2) < 2 || span.time_over(result.end_ns);
		bool unused;
		watch.restart();
		nda_status status = side.send(round, last);
		if (status == NDA_OK)
			status = side.receive(round, &unused);
		const uint64_t ns = watch.ns();
		if (status != NDA_OK)
			return status;
		result.latency.add(ns / 2);
		span.done(1);
	}
	return device.quiet(work.peer);
}

template <class Device>
nda_status answer(
	Device &device, PingPongWork &work, PingPong<Device> &side, CoreResult &result)
{
	Span span(work, result);
	bool last = false;
	for (uint64_t round = 1; !last; round++) {
		nda_status status = side.receive(round, &last);
		if (status == NDA_OK)
			status = side.send(round, last);
		if (status != NDA_OK)
			return status;
		span.done(1);
	}
	return device.quiet(work.peer);
}

template <class Device>
void ping_pong(const nda_core *core, void *arg)
{
	PingPongWork &work = *static_cast<PingPongWork *>(arg);
	CoreResult &result = work.results[core->index];
	result.core = core->index;
	result.peer = work.peer;
	Device device;
	result.status = device.open(SoftCore(core), work.table, core->index);
	if (result.status != NDA_OK)
		return;
	PingPong<Device> side(device, work, core);
	result.status = work.begins ? begin(device, work, side, result)
				    : answer(device, work, side, result);
}

// The letters that PEs leave at each other before every barrier. There are two sets: who
// has passed a barrier may write for the next one before others have read.
template <class Device>
class Letters {
public:
	Letters(Device &device, BarrierWork &work) : device_(device), work_(work) {}

	nda_status leave(uint64_t number);
	void check(uint64_t number);

private:
	uint64_t set(uint64_t number) const
	{
		return work_.letters + number % 2 * device_.n_pes() * 8;
	}

	Device &device_;
	BarrierWork &work_;
};

// sync_all() says nothing about what was posted, so that is waited for.
template <class Device>
nda_status Letters<Device>::leave(uint64_t number)
{
	const uint64_t source =
		work_.letters + (2 * uint64_t(device_.n_pes()) + number % 2) * 8;
	device_.core().store(source, number);
	for (uint32_t pe = 0; pe < device_.n_pes(); pe++) {
		if (pe == device_.my_pe())
			continue;
		const uint64_t target = set(number) + device_.my_pe() * uint64_t(8);
		nda_status status = device_.put_nbi(pe, target, source, 8);
		if (status != NDA_OK)
			return status;
	}
	return work_.operation == Barrier::sync_all ? device_.quiet() : NDA_OK;
}

template <class Device>
void Letters<Device>::check(uint64_t number)
{
	for (uint32_t pe = 0; pe < device_.n_pes() && work_.wrong.empty(); pe++) {
		const uint64_t letter = set(number) + pe * uint64_t(8);
		if (pe == device_.my_pe() ||
			device_.template test<uint64_t>(letter, cmp::eq, number))
			continue;
		work_.wrong = "number " + std::to_string(number) +
			" was passed with the letter of PE " + std::to_string(pe) +
			" being " +
			std::to_string(device_.core().template load<uint64_t>(letter));
	}
}

template <class Device>
nda_status meet(Device &device, BarrierWork &work, CoreResult &result)
{
	constexpr std::chrono::microseconds late(50);
	Stopwatch watch(device.core());
	Letters<Device> letters(device, work);
	Span span(work, result);
	uint32_t late_pe = 0;
	for (uint64_t i = 1; i <= work.messages; i++) {
		nda_status status = NDA_OK;
		if (work.letters != 0) {
			// One PE after the other lets the others wait.
			if (++late_pe == device.n_pes())
				late_pe = 0;
			if (late_pe == device.my_pe())
				std::this_thread::sleep_for(late);
			status = letters.leave(i);
		}
		watch.restart();
		if (status == NDA_OK)
			status = work.operation == Barrier::barrier_all
				? device.barrier_all()
				: device.sync_all();
		const uint64_t ns = watch.ns();
		if (status != NDA_OK)
			return status;
		if (work.letters != 0)
			letters.check(i);
		result.latency.add(ns);
		span.done(1);
	}
	return device.quiet();
}

template <class Device>
nda_status barrier(Device &device, BarrierWork &work, CoreResult &result)
{
	nda_status status = meet(device, work, result);
	result.peer = any_peer;
	if (status != NDA_TIMEOUT)
		return status;
	// What was sent and failed tells more.
	const nda_status sent = quiet_all(device, result);
	return sent == NDA_OK ? status : sent;
}

template <class Engine>
void add_kernels(Kernels *kernels)
{
	kernels->ping_pong = ping_pong<DeviceOf<Engine>>;
	kernels->barrier = [](const nda_core *core, void *work) {
		run_device<DeviceOf<Engine>, BarrierWork>(core, work, barrier);
	};
}

} // namespace

bool add_signal_kernels(uint32_t format, Kernels *kernels)
{
	return with_engine(
		format, [=](auto engine) { add_kernels<decltype(engine)>(kernels); });
}

} // namespace nda::perf
