// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What the kernels of nda-perf have in common.
#ifndef NDA_PERF_KERNEL_PARTS_H
#define NDA_PERF_KERNEL_PARTS_H

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <nda/aiv/device.h>
#include <nda/aiv/in_die_queue.h>
#include <nda/aiv/rxe_queue.h>
#include <nda/aiv/soft_core.h>
#include <nda/aiv/udma_queue.h>
#include <nda/aiv/xscale_queue.h>
#include <nda/table.h>

#include "lib/tools/perf/kernels.h"

namespace nda::perf {

using nda::aiv::SoftCore;
template <class Engine>
using DeviceOf = nda::aiv::Device<SoftCore, Engine>;

// Calls f with the engine of a queue format; false: there is none.
template <class F>
bool with_engine(uint32_t format, const F &f)
{
	switch (format) {
	case NDA_FORMAT_HNS1825:
		f(aiv::hns1825::Engine());
		return true;
	case NDA_FORMAT_RXE:
		f(aiv::rxe::Engine());
		return true;
	case NDA_FORMAT_IN_DIE:
		f(aiv::in_die::Engine());
		return true;
	case NDA_FORMAT_XSCALE:
		f(aiv::xscale::Engine());
		return true;
	case NDA_FORMAT_UDMA:
		f(aiv::udma::Engine());
		return true;
	default:
		return false;
	}
}

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
	// Waits for the start.
	Span(const Pace &work, CoreResult &result);
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

// What is known of a queue, of which the device has read all completions that are there.
struct QueueEnd {
	nda_status error; // NDA_OK: none
	bool done;        // all that was posted
};
template <class Device>
QueueEnd queue_end(const Device &device, uint32_t pe)
{
	const uint64_t state = device.queue_address(pe) + offsetof(nda_queue, state);
	const auto word = [&](size_t offset) {
		return device.core().template load<uint32_t>(state + offset);
	};
	return {nda_status(word(offsetof(nda_queue_state, error.status))),
		word(offsetof(nda_queue_state, head)) ==
			word(offsetof(nda_queue_state, tail))};
}

// Waits for all PEs, within one deadline. Of several that fail an error tells more than a
// timeout.
template <class Device>
nda_status quiet_all(Device &device, CoreResult &result)
{
	const nda_status status = device.quiet();
	if (status == NDA_OK)
		return NDA_OK;
	for (uint32_t pe = device.n_pes(); pe-- > 0;)
		if (pe != device.my_pe() && !queue_end(device, pe).done)
			result.peer = pe;
	for (uint32_t pe = 0; pe < device.n_pes(); pe++) {
		const nda_status error = queue_end(device, pe).error;
		if (pe == device.my_pe() || error == NDA_OK)
			continue;
		result.peer = pe;
		return error;
	}
	return status;
}

// A kernel that uses the first queue of each core to each PE.
template <class Device, class W>
void run_device(const nda_core *core, void *arg,
	nda_status (*body)(Device &, W &work, CoreResult &result))
{
	W &work = *static_cast<W *>(arg);
	CoreResult &result = work.results[core->index];
	result.core = core->index;
	Device device;
	result.status = device.open(SoftCore(core), work.table, core->index);
	if (result.status == NDA_OK)
		result.status = body(device, work, result);
}

// The kernels of one file, of an engine; by with_engine().
bool add_message_kernels(uint32_t format, Kernels *kernels);
bool add_atomic_kernels(uint32_t format, Kernels *kernels);
bool add_signal_kernels(uint32_t format, Kernels *kernels);

} // namespace nda::perf

#endif
