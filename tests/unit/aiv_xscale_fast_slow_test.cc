/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The fast ways to post on an XSCALE queue against the slow one, as aiv_fast_slow_test does
 * it for the 1825: twins take the same random operations, one of them by the complete
 * algorithm alone, and have to hold the same bytes, doorbells and state after each.
 */
#include <stdint.h>
#include <string.h>

#include <random>

#include <gtest/gtest.h>

#include <nda/aiv/device.h>
#include <nda/aiv/host_core.h>
#include <nda/aiv/xscale_queue.h>
#include <tests/mock/sanitizer.h>
#include <tests/mock/xscale_rig.h>

namespace {

using namespace nda;
namespace x = nda::hw::xscale;
using Device = aiv::Device<aiv::HostCore, aiv::xscale::Engine>;
using Batch = aiv::Batch<aiv::HostCore, aiv::xscale::Engine>;

constexpr uint32_t pe = 1;
/* Of each run. One thread has nothing to hide from the thread sanitizer. */
#if NDA_TSAN
constexpr uint32_t operations = 1000;
#else
constexpr uint32_t operations = 20000;
#endif

struct Side {
	test::XscaleRig rig;
	Device device;

	explicit Side(const test::XscaleOptions &options) : rig(options)
	{
		rig.move_bytes = false;
		EXPECT_EQ(device.open(aiv::HostCore(), rig.address(), 0), NDA_OK);
	}
	nda_queue &queue() { return rig.queue(pe); }
	/* @remote, @local: offsets in the heaps. By the complete algorithm, whatever the
	 * window says. */
	enum nda_status post_slowly(
		aiv::verb what, uint64_t remote, uint64_t local, uint64_t n)
	{
		nda_queue &q = queue();
		aiv::xscale::Queue<aiv::HostCore> slow(device.core(),
			device.queue_address(pe),
			aiv::wait_limits{rig.table()->device_timeout_us, 0});
		aiv::operation op = {};

		op.op = what;
		op.rkey = q.rkey;
		op.lkey = q.lkey;
		op.remote_va = rig.own_base() + remote + q.remote_delta;
		op.local_va = rig.own_base() + local;
		op.length = n;
		op.size = static_cast<uint8_t>(n);
		op.operand = n * 3;
		return slow.post_any(op, false);
	}
};

class Twins {
public:
	Twins(const test::XscaleOptions &options, uint64_t seed)
		: fast_(options), slow_(options), depth_(options.sq_depth),
		  every_(options.signal_every), random_(seed)
	{}

	void run()
	{
		for (uint32_t i = 0; i < operations && !testing::Test::HasFailure(); i++) {
			step();
			compare();
		}
	}

private:
	uint32_t pick(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

	uint64_t length()
	{
		switch (pick(16)) {
		case 0:
			return 0;
		case 1:
			return x::max_length;
		case 2:
			return pick(100) == 0 ? uint64_t{x::max_length} + 1 + pick(9) : 1;
		default:
			return 1 + pick(4096);
		}
	}

	void step()
	{
		uint32_t what = pick(64);

		if (what < 42)
			post();
		else if (what < 46)
			batch();
		else if (what < 48)
			atomic();
		else if (what < 50)
			ASSERT_EQ(fast_.device.fence(pe), slow_.device.fence(pe));
		else if (what < 52)
			ASSERT_EQ(fast_.device.quiet(pe), slow_.device.quiet(pe));
		else
			nic();
	}

	void post()
	{
		uint64_t remote = pick(4096), local = pick(4096), n = length();
		uint64_t base = fast_.rig.own_base();

		if (pick(3) == 0)
			ASSERT_EQ(fast_.device.get_nbi(pe, base + local, base + remote, n),
				slow_.post_slowly(aiv::verb::read, remote, local, n));
		else
			ASSERT_EQ(fast_.device.put_nbi(pe, base + remote, base + local, n),
				slow_.post_slowly(aiv::verb::write, remote, local, n));
	}

	/* The slow side posts one by one, and rings at the end as a batch does. */
	void batch()
	{
		Batch fast = fast_.device.batch(pe);
		uint32_t n = pick(depth_ / 2 + 1);
		uint64_t base = fast_.rig.own_base();

		for (uint32_t i = 0; i < n; i++) {
			uint64_t remote = pick(4096), size = length();

			ASSERT_EQ(fast.put_nbi(base + remote, base, size),
				slow_.post_slowly(aiv::verb::write, remote, 0, size));
		}
		fast.submit();
	}

	/* What it leaves behind its slot's segments has to be gone in the next lap. */
	void atomic()
	{
		uint64_t base = fast_.rig.own_base();

		ASSERT_EQ(fast_.device.swap_nbi<uint64_t>(pe, base + 64, 24, base + 128),
			slow_.post_slowly(aiv::verb::swap, 64, 128, 8));
	}

	void nic()
	{
		uint32_t most = pick(depth_) + 1;

		ASSERT_EQ(fast_.rig.run(pe, most), slow_.rig.run(pe, most));
		ASSERT_EQ(fast_.rig.fault, "");
		ASSERT_EQ(slow_.rig.fault, "");
	}

	void compare()
	{
		const nda_queue_state &f = fast_.queue().state, &s = slow_.queue().state;

		ASSERT_EQ(f.head, s.head);
		ASSERT_EQ(f.tail, s.tail);
		ASSERT_EQ(f.cq_ci, s.cq_ci);
		ASSERT_EQ(f.flags, s.flags);
		ASSERT_EQ(f.error.status, s.error.status);
		ASSERT_EQ(fast_.rig.doorbell(pe), slow_.rig.doorbell(pe));
		ASSERT_EQ(fast_.rig.cq_doorbell(pe), slow_.rig.cq_doorbell(pe));
		compare_slot(f.head - 1);
		compare_slot(f.head);
		/* What the slow way would work out for this state. */
		const nda_queue &q = fast_.queue();
		aiv::xscale::window w = aiv::xscale::make_window(
			aiv::xscale::make_geometry(q.sq_base, q.doorbell_template,
				q.sq_depth, q.cq_depth, q.signal_every),
			f.head, f.tail, f.signalled);
		ASSERT_EQ(f.limit, f.flags != 0 ? f.head : w.limit) << "head " << f.head;
		ASSERT_EQ(f.next_slot, w.next_slot);
		if (f.head == f.limit)
			return; /* the slow way is next and uses nothing more */
		ASSERT_EQ(f.next_word0, w.next_word0);
		ASSERT_EQ(f.doorbell, w.doorbell);
		if (every_ != 1) {
			ASSERT_EQ(f.signalled, s.signalled);
		}
	}

	/* The same but for where the heaps are. */
	void compare_slot(uint32_t index)
	{
		uint64_t f[x::wqe_words], s[x::wqe_words];
		uint64_t own = fast_.rig.own_base() - slow_.rig.own_base();
		uint64_t peer =
			own + fast_.queue().remote_delta - slow_.queue().remote_delta;

		fast_.rig.words(pe, index, f);
		slow_.rig.words(pe, index, s);
		if (f[3] != s[3] || f[5] != s[5]) { /* not what the ring was filled with */
			s[3] += peer;
			s[5] += own;
		}
		ASSERT_EQ(memcmp(f, s, sizeof(f)), 0) << "slot of index " << index;
	}

	Side fast_;
	Side slow_;
	uint32_t depth_;
	uint32_t every_;
	std::mt19937_64 random_;
};

TEST(AivXscaleFastSlow, TheFastWayLeavesTheQueueThatTheSlowOneDoes)
{
	uint64_t seed = 1;

	for (uint32_t depth = 4; depth <= 1024; depth *= 4)
		for (uint32_t wrap : {1u << 16, 1u << 17, 1u << 18, 1u << 24, 0u}) {
			test::XscaleOptions options;
			const uint32_t half = depth / 2;
			const uint32_t intervals[] = {1, 2, half < 16 ? half : 16,
				static_cast<uint32_t>(1 + (seed * 7) % half)};

			options.sq_depth = options.cq_depth = depth;
			options.start = wrap - 3000;
			options.timeout_us = 1;
			options.signal_every = intervals[seed % 4];
			SCOPED_TRACE(testing::Message()
				<< "depth " << depth << " start " << options.start
				<< " every " << options.signal_every);
			Twins(options, seed++).run();
			if (HasFailure())
				return;
		}
}

} // namespace
