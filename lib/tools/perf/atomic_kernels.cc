// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/atomic_math.h"
#include "lib/tools/perf/kernel_parts.h"

namespace nda::perf {
namespace {

constexpr aiv::verb verb_of(Atomic operation)
{
	switch (operation) {
	case Atomic::fetch_add:
	case Atomic::add:
		return aiv::verb::fetch_add;
	case Atomic::compare_swap:
		return aiv::verb::compare_swap;
	case Atomic::swap:
	case Atomic::set:
		return aiv::verb::swap;
	case Atomic::fetch_and:
		return aiv::verb::fetch_and;
	case Atomic::fetch_or:
		return aiv::verb::fetch_or;
	case Atomic::fetch_xor:
		return aiv::verb::fetch_xor;
	}
	return aiv::verb::write;
}

template <class Engine>
Way way_of(Atomic operation, uint32_t bytes)
{
	const aiv::verb verb = verb_of(operation);
	if (Engine::supports(verb, bytes))
		return operation == Atomic::compare_swap ? Way::waited : Way::queued;
	return Engine::emulates(verb, bytes) ? Way::waited : Way::none;
}

// The other PEs, one after the other, and a core's changes of their counters.
template <class Device>
class Turns {
public:
	Turns(const Device &device, AtomicWork &work, uint32_t core)
		: device_(device), work_(work), core_(core),
		  owner_(device.my_pe() * uint32_t(work.results.size()) + core),
		  peer_(device.my_pe())
	{
		next();
	}
	uint32_t peer() const { return peer_; }
	uint64_t changes() const { return work_.changes[core_]; }
	uint64_t operand() const
	{
		return operand_of(work_.operation, work_.bytes, owner_, changes());
	}
	// Where the former value that message i found goes.
	uint64_t former(uint64_t i) const
	{
		return work_.formers + (core_ * work_.slots + i % work_.slots) * 8;
	}
	// The counter of peer() was changed by operand().
	void changed()
	{
		uint64_t &folded = work_.folded[core_ * device_.n_pes() + peer_];
		folded = fold(work_.operation, work_.bytes, folded, operand());
		work_.changes[core_]++;
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
	const uint32_t owner_;
	uint32_t peer_;
};

// Starts one.
template <class T, class Device>
nda_status start(
	Device &device, const AtomicWork &work, uint32_t peer, T operand, uint64_t former)
{
	switch (work.operation) {
	case Atomic::fetch_add:
		return device.fetch_add_nbi(peer, work.counter, operand, former);
	case Atomic::add:
		return device.add_nbi(peer, work.counter, operand);
	case Atomic::swap:
		return device.swap_nbi(peer, work.counter, operand, former);
	case Atomic::set:
		return device.set_nbi(peer, work.counter, operand);
	case Atomic::fetch_and:
		return device.fetch_and_nbi(peer, work.counter, operand, former);
	case Atomic::fetch_or:
		return device.fetch_or_nbi(peer, work.counter, operand, former);
	case Atomic::fetch_xor:
		return device.fetch_xor_nbi(peer, work.counter, operand, former);
	case Atomic::compare_swap: // has a kernel of its own
		break;
	}
	return NDA_NOT_SUPPORTED;
}

// Does one and waits for it. *former stays what it is where none is told.
template <class T, class Device>
nda_status finish(
	Device &device, const AtomicWork &work, uint32_t peer, T operand, T *former)
{
	nda_status status = NDA_NOT_SUPPORTED;
	switch (work.operation) {
	case Atomic::fetch_add:
		return device.fetch_add(peer, work.counter, operand, former);
	case Atomic::swap:
		return device.swap(peer, work.counter, operand, former);
	case Atomic::fetch_and:
		return device.fetch_and(peer, work.counter, operand, former);
	case Atomic::fetch_or:
		return device.fetch_or(peer, work.counter, operand, former);
	case Atomic::fetch_xor:
		return device.fetch_xor(peer, work.counter, operand, former);
	case Atomic::add:
		status = device.add_nbi(peer, work.counter, operand);
		break;
	case Atomic::set:
		// Where there is no swap, there is one that is waited for.
		status = device.set_nbi(peer, work.counter, operand);
		if (status == NDA_NOT_SUPPORTED)
			return device.swap(peer, work.counter, operand, former);
		break;
	case Atomic::compare_swap:
		break;
	}
	return status == NDA_OK ? device.quiet(peer) : status;
}

// A window of atomics over all peers, then one wait for all of them.
template <class T, class Device>
nda_status rate(Device &device, AtomicWork &work, CoreResult &result)
{
	Turns<Device> turns(device, work, result.core);
	Span span(work, result);
	while (!span.over()) {
		const uint64_t n = span.left(work.window);
		const uint64_t first = turns.changes();
		for (uint64_t i = first; i < first + n; i++, turns.changed()) {
			result.peer = turns.peer();
			nda_status status = start<T>(device, work, turns.peer(),
				T(turns.operand()), turns.former(i));
			if (status != NDA_OK)
				return status;
		}
		if (nda_status status = quiet_all(device, result); status != NDA_OK)
			return status;
		for (uint64_t i = first; fetches(work.operation) && i < first + n; i++)
			device.core().store(turns.former(i),
				uint64_t(device.template read_result<T>(turns.former(i))));
		span.done(n);
	}
	return NDA_OK;
}

template <class T, class Device>
nda_status latency(Device &device, AtomicWork &work, CoreResult &result)
{
	Stopwatch watch(device.core());
	Turns<Device> turns(device, work, result.core);
	Span span(work, result);
	while (!span.over()) {
		T former = 0;
		const T operand = T(turns.operand());
		result.peer = turns.peer();
		watch.restart();
		nda_status status = finish<T>(device, work, turns.peer(), operand, &former);
		const uint64_t ns = watch.ns();
		if (status != NDA_OK)
			return status;
		device.core().store(turns.former(turns.changes()), uint64_t(former));
		turns.changed();
		result.latency.add(ns);
		span.done(1);
	}
	return NDA_OK;
}

// Counts up by compare_swap: again with the value that was there, until nobody came
// between.
template <class T, class Device>
nda_status compare_swap(Device &device, AtomicWork &work, CoreResult &result)
{
	Stopwatch watch(device.core());
	Turns<Device> turns(device, work, result.core);
	std::vector<T> expected(device.n_pes(), T(first_value(work.operation, work.bytes)));
	Span span(work, result);
	while (!span.over() &&
		(work.changes_limit == 0 || turns.changes() < work.changes_limit)) {
		T &there = expected[turns.peer()];
		const T wanted = T(there + turns.operand());
		T former = 0;
		result.peer = turns.peer();
		watch.restart();
		nda_status status = device.compare_swap(
			turns.peer(), work.counter, there, wanted, &former);
		const uint64_t ns = watch.ns();
		if (status != NDA_OK)
			return status;
		result.latency.add(ns);
		span.done(1);
		if (former != there) {
			there = former;
			continue;
		}
		there = wanted;
		device.core().store(turns.former(turns.changes()), uint64_t(former));
		turns.changed();
	}
	return NDA_OK;
}

template <class Device>
using Body = nda_status (*)(Device &, AtomicWork &, CoreResult &);

// Of the counter's width.
template <class Device, Body<Device> narrow, Body<Device> wide>
void run(const nda_core *core, void *work)
{
	run_device<Device, AtomicWork>(
		core, work, static_cast<AtomicWork *>(work)->bytes == 4 ? narrow : wide);
}

template <class Engine>
void add_kernels(Kernels *kernels)
{
	using Device = DeviceOf<Engine>;
	kernels->atomic_latency =
		run<Device, latency<uint32_t, Device>, latency<uint64_t, Device>>;
	kernels->atomic_rate = run<Device, rate<uint32_t, Device>, rate<uint64_t, Device>>;
	kernels->compare_swap =
		run<Device, compare_swap<uint32_t, Device>, compare_swap<uint64_t, Device>>;
	kernels->way_of = way_of<Engine>;
}

} // namespace

bool add_atomic_kernels(uint32_t format, Kernels *kernels)
{
	return with_engine(
		format, [=](auto engine) { add_kernels<decltype(engine)>(kernels); });
}

} // namespace nda::perf
