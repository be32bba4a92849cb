/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The fast ways to post against the slow one, which is the reference: two queues take the
 * same random operations, one of them by the complete algorithm alone, and have to hold the
 * same bytes, records, doorbells and state after each. The NIC checks every WQE meanwhile.
 */
#include <stdint.h>
#include <string.h>

#include <random>

#include <gtest/gtest.h>

#include <nda/aiv/device.h>
#include <nda/aiv/host_core.h>
#include <tests/mock/hns1825_rig.h>
#include <tests/mock/sanitizer.h>

namespace {

using namespace nda;
using Device = aiv::Device<aiv::HostCore>;
using Batch = aiv::Batch<aiv::HostCore>;
namespace format = nda::hw::hns1825;

constexpr uint32_t pe = 1;
/* Of each run; there are 33. One thread has nothing to hide from the thread sanitizer. */
#if NDA_TSAN
constexpr uint32_t operations = 1000;
#else
constexpr uint32_t operations = 20000;
#endif

struct Side {
	test::Rig rig;
	Device device;

	explicit Side(const test::RigOptions &options) : rig(options)
	{
		EXPECT_EQ(device.open(aiv::HostCore(), rig.address(), 0), NDA_OK);
	}
	nda_queue &queue() { return rig.queue(pe); }
	/* By the complete algorithm, whatever the window says. */
	enum nda_status post_slowly(const aiv::operation &op)
	{
		aiv::hns1825::Queue<aiv::HostCore> slow(device.core(),
			device.queue_address(pe),
			aiv::wait_limits{rig.table()->device_timeout_us, 0});

		return slow.post_any(op, false);
	}
	enum nda_status post_slowly(
		aiv::verb what, uint64_t remote, uint64_t local, uint64_t n)
	{
		nda_queue &q = queue();
		aiv::operation op = {};

		op.op = what;
		op.rkey = q.rkey;
		op.lkey = q.lkey;
		op.remote_va = remote + q.remote_delta;
		op.local_va = local;
		op.length = n;
		return post_slowly(op);
	}
	uint64_t doorbell() { return *reinterpret_cast<uint64_t *>(queue().sq_doorbell); }
};

class Twins {
public:
	Twins(const test::RigOptions &options, uint64_t seed)
		: fast_(options), slow_(options), depth_(options.sq_depth),
		  every_(options.signal_every), base_(options.heap_base), random_(seed)
	{}

	void run()
	{
		for (uint32_t i = 0; i < operations && !testing::Test::HasFailure(); i++) {
			step();
			compare();
			if (i % 2048 == 0)
				compare_rings();
		}
		compare_rings();
	}

private:
	uint32_t pick(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

	uint64_t length()
	{
		switch (pick(16)) {
		case 0:
			return 0;
		case 1:
			return format::max_length;
		case 2:
			return pick(100) == 0 ? uint64_t{format::max_length} + 1 + pick(9)
					      : 1;
		case 3:
			return 1 + pick(format::max_length);
		default:
			return 1 + pick(4096);
		}
	}

	void step()
	{
		uint32_t what = pick(64);

		if (what < 44)
			post();
		else if (what < 48)
			batch();
		else if (what < 50)
			expect_same(fast_.device.fence(pe), slow_.device.fence(pe));
		else if (what < 52)
			expect_same(fast_.device.quiet(pe), slow_.device.quiet(pe));
		else if (what < 54)
			region();
		else
			nic();
	}

	void expect_same(enum nda_status fast, enum nda_status slow)
	{
		ASSERT_EQ(fast, slow);
	}

	void post()
	{
		uint64_t remote = base_ + random_() % 65536,
			 local = base_ + random_() % 65536;
		uint64_t n = length();

		if (pick(3) == 0)
			expect_same(fast_.device.get_nbi(pe, local, remote, n),
				slow_.post_slowly(aiv::verb::read, remote, local, n));
		else
			expect_same(fast_.device.put_nbi(pe, remote, local, n),
				slow_.post_slowly(aiv::verb::write, remote, local, n));
	}

	/* The slow side posts one by one, and rings at the end as a batch does. */
	void batch()
	{
		Batch fast = fast_.device.batch(pe);
		uint32_t n = pick(depth_ / 2 + 1);

		for (uint32_t i = 0; i < n; i++) {
			uint64_t remote = base_ + random_() % 65536, size = length();
			enum nda_status status = fast.put_nbi(remote, base_, size);

			expect_same(status,
				slow_.post_slowly(aiv::verb::write, remote, base_, size));
		}
		fast.submit();
	}

	void region()
	{
		nda_region remote = {
			random_(), 1 << 20, static_cast<uint32_t>(random_()), pe, 0, 0};
		nda_region local = {random_(), 1 << 20,
			static_cast<uint32_t>(random_()) & 0x3fffffff, 0, 0, 0};
		uint64_t n = pick(1 << 19);
		aiv::operation op = {};

		op.op = aiv::verb::write;
		op.rkey = remote.key;
		op.lkey = local.key;
		op.remote_va = remote.addr + n;
		op.local_va = local.addr + n / 2;
		op.length = n;
		expect_same(fast_.device.put_nbi(pe, remote, n, local, n / 2, n),
			slow_.post_slowly(op));
	}

	void nic()
	{
		uint32_t most = pick(depth_) + 1;

		ASSERT_EQ(fast_.rig.nic_run(pe, most), slow_.rig.nic_run(pe, most));
		ASSERT_EQ(fast_.rig.fault(), format::wqe_fault::none);
		ASSERT_EQ(slow_.rig.fault(), format::wqe_fault::none);
	}

	void compare()
	{
		const nda_queue_state &f = fast_.queue().state, &s = slow_.queue().state;

		ASSERT_EQ(f.head, s.head);
		ASSERT_EQ(f.tail, s.tail);
		ASSERT_EQ(f.cq_ci, s.cq_ci);
		ASSERT_EQ(f.flags, s.flags);
		ASSERT_EQ(f.error.status, s.error.status);
		ASSERT_EQ(fast_.rig.sq_record(pe), slow_.rig.sq_record(pe));
		ASSERT_EQ(fast_.rig.cq_record(pe), slow_.rig.cq_record(pe));
		ASSERT_EQ(fast_.doorbell(), slow_.doorbell());
		compare_slot(f.head - 1);
		compare_slot(f.head);
		/* What the slow way would work out for this state. */
		nda_queue_state derived = f;
		aiv::hns1825::derive_window(fast_.queue(), &derived);
		ASSERT_EQ(f.limit, derived.limit)
			<< "head " << f.head << " tail " << f.tail << " signalled "
			<< f.signalled << " flags " << unsigned{f.flags};
		ASSERT_EQ(f.next_slot, derived.next_slot);
		if (f.head == f.limit)
			return; /* the slow way is next and uses nothing more */
		ASSERT_EQ(f.next_word0, derived.next_word0);
		ASSERT_EQ(f.doorbell, derived.doorbell);
		ASSERT_EQ(f.next_marker, derived.next_marker);
		ASSERT_EQ(f.next_task, derived.next_task);
		if (every_ != 1) {
			ASSERT_EQ(f.signalled, s.signalled);
		}
	}

	void compare_slot(uint32_t index)
	{
		uint64_t f[format::wqe_words], s[format::wqe_words];

		fast_.rig.slot(pe, index, f);
		slow_.rig.slot(pe, index, s);
		ASSERT_EQ(memcmp(f, s, sizeof(f)), 0) << "slot of index " << index;
	}

	void compare_rings()
	{
		ASSERT_EQ(memcmp(fast_.rig.sq(pe), slow_.rig.sq(pe),
				  size_t{depth_} * format::wqe_bytes),
			0);
	}

	Side fast_;
	Side slow_;
	uint32_t depth_;
	uint32_t every_;
	uint64_t base_;
	std::mt19937_64 random_;
};

TEST(AivFastSlow, TheFastWayLeavesTheQueueThatTheSlowOneDoes)
{
	uint64_t seed = 1;

	for (uint32_t depth = 4; depth <= 4096; depth *= 2)
		for (uint32_t start :
			{0xffffu - 3000, 0xffffffu - 3000, 0xffffffffu - 3000}) {
			test::RigOptions options;
			options.sq_depth = options.cq_depth = depth;
			options.start = start;
			options.timeout_us = 1;
			const uint32_t half = depth / 2;
			const uint32_t intervals[] = {1, 2, half < 16 ? half : 16,
				static_cast<uint32_t>(1 + (seed * 7) % half)};
			options.signal_every = intervals[seed % 4];
			SCOPED_TRACE(testing::Message()
				<< "depth " << depth << " start " << start << " every "
				<< options.signal_every);
			Twins(options, seed++).run();
			if (HasFailure())
				return;
		}
}

} // namespace
