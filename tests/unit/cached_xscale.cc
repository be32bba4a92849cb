/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* XSCALE behind the caches of aiv_cached_test. */
#include <string>

#include <nda/aiv/xscale_queue.h>
#include <tests/mock/cached_world.h>
#include <tests/mock/xscale_rig.h>

namespace nda::test {
namespace {

class Nic {
public:
	typedef aiv::xscale::Engine Engine;
	static constexpr uint8_t vendor = 0;

	explicit Nic(const Setup &setup) : rig_(options(setup)) {}

	uint64_t address() { return rig_.address(); }
	nda_table *table() { return rig_.table(); }
	nda_queue &queue() { return rig_.queue(pe); }
	uint8_t *own() { return rig_.own(); }
	uint8_t *peer() { return rig_.peer(); }
	/* The doorbells' registers hold what they announce. */
	void on_device_store(uint64_t) {}
	void step(uint32_t most) { rig_.run(pe, most); }
	void fail() { rig_.fail(pe, hw::xscale::error_nak_access); }
	std::string fault() const { return rig_.fault; }

private:
	static constexpr uint32_t pe = 1;

	static XscaleOptions options(const Setup &setup)
	{
		XscaleOptions o;

		o.sq_depth = o.cq_depth = setup.depth;
		o.signal_every = setup.signal_every;
		o.start = setup.start;
		o.heap_bytes = heap_bytes;
		return o;
	}

	XscaleRig rig_;
};

} // namespace

const CachedEngine cached_xscale = {"xscale", run_engine<Nic>};

} // namespace nda::test
