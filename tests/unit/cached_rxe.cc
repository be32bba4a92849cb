/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Soft-RoCE behind the caches of aiv_cached_test. */
#include <string>

#include <nda/aiv/rxe_queue.h>
#include <tests/mock/cached_world.h>
#include <tests/mock/rxe_rig.h>

namespace nda::test {
namespace {

class Nic {
public:
	typedef aiv::rxe::Engine Engine;
	static constexpr uint8_t vendor = 7;

	explicit Nic(const Setup &setup) : rig_(options(setup)) {}

	uint64_t address() { return rig_.address(); }
	nda_table *table() { return rig_.table(); }
	nda_queue &queue() { return rig_.queue(pe); }
	uint8_t *own() { return rig_.own(); }
	uint8_t *peer() { return rig_.peer(); }
	/* The kernel takes the doorbell's word itself. */
	void on_device_store(uint64_t) {}
	void step(uint32_t most) { rig_.run(pe, most); }
	void fail()
	{
		rig_.fail_next(pe);
		rig_.run(pe);
	}
	std::string fault() const { return rig_.fault; }

private:
	static constexpr uint32_t pe = 1;

	static RxeOptions options(const Setup &setup)
	{
		RxeOptions o;

		o.sq_slots = o.cq_slots = setup.depth;
		o.signal_every = setup.signal_every;
		o.start = setup.start;
		o.heap_bytes = heap_bytes;
		return o;
	}

	RxeRig rig_;
};

} // namespace

const CachedEngine cached_rxe = {"rxe", run_engine<Nic>};

} // namespace nda::test
