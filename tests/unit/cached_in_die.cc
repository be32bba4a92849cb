/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Ascend 910's RoCE NIC behind the caches of aiv_cached_test. */
#include <string>
#include <vector>

#include <nda/aiv/in_die_queue.h>
#include <tests/mock/cached_world.h>
#include <tests/mock/in_die_rig.h>

namespace nda::test {
namespace {

/* With and without the records that a NIC may want beside its doorbells. */
class Nic {
public:
	typedef aiv::in_die::Engine Engine;
	static constexpr uint8_t vendor = 0x5c;

	explicit Nic(const Setup &setup)
		: setup_(setup), own_(heap_bytes + 64), peer_(heap_bytes + 64),
		  rig_(options(setup)), completed_(setup.start)
	{
		namespace format = hw::in_die;
		nda_queue &q = queue();

		rig_.real_addresses = true;
		if (q.in_die.cq_doorbell != 0)
			*reinterpret_cast<uint64_t *>(q.in_die.cq_doorbell) =
				format::cq_doorbell_value(
					q.in_die.cq_template, setup.start);
		else
			*reinterpret_cast<uint32_t *>(q.cq_record) =
				format::cq_record(setup.start);
	}

	uint64_t address() { return rig_.address(); }
	nda_table *table() { return rig_.table(); }
	nda_queue &queue() { return rig_.queue(pe); }
	uint8_t *own() { return line_in(own_); }
	uint8_t *peer() { return line_in(peer_); }
	/* The doorbell's register holds what it announces. */
	void on_device_store(uint64_t) {}

	void step(uint32_t most)
	{
		for (; most > 0 && rig_.nic_run(pe, 1) == 1; most--) {
			if (!rig_.last.completion)
				continue;
			if (((completed_ - rig_.consumer(pe)) & 0xffffff) >= setup_.depth)
				rig_.fault = "the CQ is overrun";
			completed_++;
		}
	}

	void fail() { rig_.nic_fail(pe, hw::in_die::syndrome_remote_access, 0, vendor); }
	std::string fault() const { return rig_.fault; }

private:
	static constexpr uint32_t pe = 1;

	InDieOptions options(const Setup &setup)
	{
		InDieOptions o;

		o.sq_depth = o.cq_depth = setup.depth;
		o.signal_every = setup.signal_every;
		o.start = setup.start;
		o.sq_record = setup.records;
		o.cq_register = !setup.records;
		o.heap_base = reinterpret_cast<uint64_t>(own());
		o.heap_bytes = heap_bytes;
		o.remote_delta = static_cast<uint64_t>(peer() - own());
		return o;
	}

	Setup setup_;
	std::vector<uint8_t> own_;
	std::vector<uint8_t> peer_;
	InDieRig rig_;
	uint32_t completed_; /* next CQE */
};

} // namespace

const CachedEngine cached_in_die = {"in_die", run_engine<Nic>};

} // namespace nda::test
