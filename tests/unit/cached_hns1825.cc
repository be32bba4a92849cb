/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The 1825 behind the caches of aiv_cached_test. */
#include <algorithm>
#include <string>
#include <vector>

#include <nda/aiv/hns1825_engine.h>
#include <tests/mock/cached_world.h>
#include <tests/mock/hns1825_rig.h>

namespace nda::test {
namespace {

/* A doorbell makes the NIC look at the record, then or later; it fetches ahead. */
class Nic {
public:
	typedef aiv::hns1825::Engine Engine;
	static constexpr uint8_t vendor = 0x5c;

	explicit Nic(const Setup &setup)
		: setup_(setup), own_(heap_bytes + 64), peer_(heap_bytes + 64),
		  rig_(options(setup)), known_(setup.start), completed_(setup.start)
	{
		rig_.move_bytes = true;
		*reinterpret_cast<uint32_t *>(queue().cq_record) =
			format::cq_record(setup.start);
	}

	uint64_t address() { return rig_.address(); }
	nda_table *table() { return rig_.table(); }
	nda_queue &queue() { return rig_.queue(pe); }
	uint8_t *own() { return line_in(own_); }
	uint8_t *peer() { return line_in(peer_); }

	void on_device_store(uint64_t addr)
	{
		rung_ = rung_ || addr == queue().sq_doorbell;
	}

	void step(uint32_t most)
	{
		look();
		for (; most > 0 && known_ != rig_.nic_next(pe) && fault_.empty(); most--)
			take();
	}

	void fail()
	{
		look();
		if (fault_.empty() &&
			rig_.sq_record(pe) - rig_.nic_next(pe) <= setup_.depth)
			rig_.nic_fail(pe, format::syndrome_remote_access, 0, vendor);
	}

	std::string fault() const
	{
		if (rig_.fault() == format::wqe_fault::none)
			return fault_;
		return "WQE fault " + std::to_string(static_cast<int>(rig_.fault()));
	}

private:
	static constexpr uint32_t pe = 1;

	RigOptions options(const Setup &setup)
	{
		RigOptions o;

		o.sq_depth = o.cq_depth = setup.depth;
		o.signal_every = setup.signal_every;
		o.start = setup.start;
		o.heap_base = reinterpret_cast<uint64_t>(own());
		o.heap_bytes = heap_bytes;
		o.remote_delta = static_cast<uint64_t>(peer() - own());
		return o;
	}

	void look()
	{
		if (!rung_)
			return;
		rung_ = false;
		known_ = rig_.sq_record(pe);
		if (known_ - rig_.nic_next(pe) > setup_.depth)
			fault_ = "a record that goes back";
	}

	void take()
	{
		uint32_t index = rig_.nic_next(pe);
		uint8_t next =
			rig_.sq(pe)[((index + 1) & (setup_.depth - 1)) * format::wqe_bytes];

		if (next != format::invalid_marker(index + 1, setup_.depth) &&
			!format::wqe_valid(next, index + 1, setup_.depth))
			fault_ = "the slot after a WQE is not marked";
		if (rig_.nic_run(pe, 1) != 1)
			fault_ = "a record that goes back";
		if (!fault_.empty() || !rig_.last_wqe().completion)
			return;
		if (((completed_ - rig_.cq_record(pe)) & 0xffffff) >= setup_.depth)
			fault_ = "the CQ is overrun";
		completed_++;
	}

	Setup setup_;
	std::vector<uint8_t> own_;
	std::vector<uint8_t> peer_;
	Rig rig_;
	bool rung_ = false;
	uint32_t known_;     /* head, by the record at the last doorbell */
	uint32_t completed_; /* next CQE */
	std::string fault_;
};

} // namespace

const CachedEngine cached_hns1825 = {"hns1825", run_engine<Nic>};

} // namespace nda::test
