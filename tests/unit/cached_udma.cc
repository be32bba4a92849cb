/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* UDMA behind the caches of aiv_cached_test. */
#include <string>

#include <nda/aiv/udma_queue.h>
#include <tests/mock/cached_world.h>
#include <tests/mock/udma_rig.h>

namespace nda::test {
namespace {

class Nic {
public:
	typedef aiv::udma::Engine Engine;
	static constexpr uint8_t vendor = 2;

	explicit Nic(const Setup &setup) : rig_(options(setup)) {}

	uint64_t address() { return rig_.address(); }
	nda_table *table() { return rig_.table(); }
	nda_queue &queue() { return rig_.queue(pe); }
	uint8_t *own() { return rig_.own(); }
	uint8_t *peer() { return rig_.peer(); }
	/* The doorbell's register holds what it announces. */
	void on_device_store(uint64_t) {}
	void step(uint32_t most) { rig_.run(pe, most); }
	void fail()
	{
		rig_.fail_next(pe, uint32_t{hw::udma::status_remote} << 8 | vendor);
		rig_.run(pe);
	}
	std::string fault() const { return rig_.fault; }

private:
	static constexpr uint32_t pe = 1;

	/* Depths are in blocks, of which a request takes several. */
	static UdmaOptions options(const Setup &setup)
	{
		UdmaOptions o;

		o.sq_depth = o.cq_depth = 4 * setup.depth;
		o.signal_every = setup.signal_every;
		o.start = setup.start;
		o.heap_bytes = heap_bytes;
		return o;
	}

	UdmaRig rig_;
};

} // namespace

const CachedEngine cached_udma = {"udma", run_engine<Nic>};

} // namespace nda::test
