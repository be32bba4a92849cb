// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The compatibility view in use: a kernel that knows nothing but the view's layout, written
// anew after the algorithm of the public library's 1825 kernels.
#include <cstring>

#include <nda/aiv/device.h>
#include <nda/aiv/soft_core.h>

#include "tests/mock/nda_job.h"

namespace nda::test {
namespace {

using Core = aiv::SoftCore;
using Device = aiv::Device<Core>;

uint32_t big32(uint32_t v)
{
	return __builtin_bswap32(v);
}
uint64_t big64(uint64_t v)
{
	return __builtin_bswap64(v);
}

struct ForeignWork {
	uint64_t info; // the view
	uint32_t me, peer;
	uint64_t src, dst; // own address and the peer's
	uint32_t bytes;
	uint32_t count; // WQEs, each waited for if wait is set
	bool wait;
	uint32_t syndrome;
	bool timed_out;
};

// One queue as such a kernel finds it.
struct ForeignQueue {
	ForeignQueue(const Core &core_, const ForeignWork &w_) : core(core_), w(w_)
	{
		sq = core.load<uint64_t>(w.info + 8) + w.peer * 96;
		cq = core.load<uint64_t>(w.info + 24) + w.peer * 64;
		mem = core.load<uint64_t>(w.info + 40);
	}

	uint32_t head() { return core.load<uint32_t>(core.load<uint64_t>(sq + 24)); }

	void write()
	{
		const uint64_t buf = core.load<uint64_t>(sq + 8);
		const uint32_t depth = core.load<uint32_t>(sq + 20);
		const uint32_t at = head();
		const uint32_t rkey = core.load<uint32_t>(mem + w.peer * 24 + 20);
		const uint32_t lkey = core.load<uint32_t>(mem + w.me * 24 + 16);
		const uint64_t slot = buf + 64 * (at & (depth - 1));
		core.store<uint8_t>(buf + 64 * ((at + 1) & (depth - 1)),
			((at + 1) & depth) == 0 ? 0xff : 0x7f);
		// owner, lengths, completion wanted; WRITE, signalled
		const uint32_t word0 =
			(at & depth ? 0xc0a40002u : 0x40a40002u) | (at & 3) << 12;
		core.store<uint64_t>(slot + 8, 0);
		core.store<uint64_t>(
			slot + 16, big64(uint64_t(0x24000000) << 32 | w.bytes));
		core.store<uint64_t>(slot + 24, 0);
		core.store<uint64_t>(slot + 32, big64(w.dst));
		core.store<uint64_t>(
			slot + 40, big64(uint64_t(rkey) << 32 | (lkey & 0xffff)));
		core.store<uint64_t>(slot + 48, big64(w.src));
		core.store<uint64_t>(
			slot + 56, big64(uint64_t(w.bytes) << 32 | 0x80000000 | lkey));
		core.store_release<uint64_t>(
			slot, uint64_t(big32(0x10000000)) << 32 | big32(word0));
		const uint32_t next = at + 1;
		core.store<uint32_t>(core.load<uint64_t>(sq + 24), next);
		core.store_release<uint32_t>(core.load<uint64_t>(sq + 80), big32(next));
		// qpn, context size 1, cos 7, type 21; PI high; MTU shift, SGID index 1
		const uint64_t doorbell = core.load<uint32_t>(sq) | 1u << 20 | 7u << 24 |
			21u << 27 | uint64_t(next >> 8 & 0xff) << 32 |
			uint64_t(core.load<uint8_t>(sq + 88) & 7) << 50 | 1ull << 53;
		core.st_dev<uint64_t>(core.load<uint64_t>(sq + 48), doorbell);
	}

	// Polls one CQE after another until the head is reached.
	bool poll(uint32_t &syndrome)
	{
		const uint64_t buf = core.load<uint64_t>(cq + 8);
		const uint32_t stride = core.load<uint32_t>(cq + 16);
		const uint32_t depth = core.load<uint32_t>(cq + 20);
		uint32_t ci = core.load<uint32_t>(core.load<uint64_t>(cq + 32));
		const uint64_t begin = core.cycles();
		while (ci != head()) {
			const uint64_t cqe = buf + uint64_t(stride) * (ci & (depth - 1));
			const uint64_t word = core.load_acquire<uint64_t>(cqe);
			const uint32_t op = word >> 59;
			if (op == 0x1f || (word >> 31 & 1) != ((ci & depth) != 0)) {
				if (core.cycles() - begin >
					core.cycles_per_us() * 30 * 1000 * 1000)
					return false;
				core.relax();
				continue;
			}
			if (op == 0x1e)
				syndrome = core.load<uint64_t>(cqe + 24) >> 32 & 0xff;
			ci++;
		}
		core.store<uint32_t>(core.load<uint64_t>(cq + 32), ci);
		core.store<uint32_t>(core.load<uint64_t>(sq + 32), ci);
		core.store_release<uint32_t>(
			core.load<uint64_t>(cq + 56), big32(ci & 0xffffff));
		return true;
	}

	const Core &core;
	const ForeignWork &w;
	uint64_t sq, cq, mem;
};

void foreign_kernel(const nda_core *c, void *arg)
{
	ForeignWork *w = static_cast<ForeignWork *>(arg);
	const Core core(c);
	ForeignQueue queue(core, *w);
	for (uint32_t i = 0; i < w->count; i++) {
		queue.write();
		if (w->wait && !queue.poll(w->syndrome))
			w->timed_out = true;
	}
}

struct NativeWork {
	uint64_t table;
	uint32_t peer;
	uint64_t src, dst; // symmetric
	uint32_t bytes;
	uint32_t count;
	int posted, done;
};

void native_kernel(const nda_core *core, void *arg)
{
	NativeWork *w = static_cast<NativeWork *>(arg);
	Device device;
	w->posted = device.open(Core(core), w->table, core->index);
	for (uint32_t i = 0; i < w->count && w->posted == NDA_OK; i++)
		w->posted = device.put_nbi(w->peer, w->dst, w->src, w->bytes);
	w->done = device.quiet(w->peer);
}

class View : public testing::Test {
protected:
	static JobOptions options()
	{
		JobOptions o;
		o.group.channel.sq_depth = 64; // so that laps are short
		return o;
	}

	void start(Job &job)
	{
		expect_all_ok(job.create_groups());
		job.heap_alloc(4096, src);
		job.heap_alloc(4096, dst);
		for (uint32_t pe = 0; pe < 2; pe++) {
			ASSERT_EQ(nda_npu_memset(job.pes[pe].npu, dst[pe], 0, 4096), 0);
			ASSERT_EQ(nda_npu_memset(job.pes[pe].npu, src[pe], 0x5a + pe, 4096),
				0);
		}
	}

	NativeWork native(Job &job, uint32_t bytes, uint32_t count)
	{
		NativeWork w = {nda_group_table(job.pes[0].group), 1, src[0], dst[0], bytes,
			count, 0, 0};
		EXPECT_EQ(nda_npu_launch(job.pes[0].npu, native_kernel, &w, 1), 0);
		EXPECT_EQ(nda_npu_wait(job.pes[0].npu, generous_ms), 0);
		return w;
	}

	ForeignWork foreign(
		Job &job, uint64_t info, uint32_t bytes, uint32_t count, bool wait = true)
	{
		ForeignWork w = {info, 0, 1, src[0], dst[1], bytes, count, wait, 0, false};
		EXPECT_EQ(nda_npu_launch(job.pes[0].npu, foreign_kernel, &w, 1), 0);
		EXPECT_EQ(nda_npu_wait(job.pes[0].npu, generous_ms), 0);
		return w;
	}

	uint8_t byte(Job &job, uint64_t offset)
	{
		uint8_t b = 0;
		EXPECT_EQ(nda_npu_read(job.pes[1].npu, &b, dst[1] + offset, 1), 0);
		return b;
	}

	std::vector<uint64_t> src, dst;
};

TEST_F(View, CarriesAForeignKernelsWritesOverSeveralLaps)
{
	Job job(options());
	start(job);
	uint64_t info = 0;
	ASSERT_EQ(nda_group_view_lend(job.pes[0].group, 0, &info), 0) << nda_error_detail();
	const ForeignWork w = foreign(job, info, 100, 150);
	EXPECT_FALSE(w.timed_out);
	EXPECT_EQ(w.syndrome, 0u);
	EXPECT_EQ(byte(job, 0), 0x5a);
	EXPECT_EQ(byte(job, 99), 0x5a);
	EXPECT_EQ(byte(job, 100), 0);
	EXPECT_EQ(nda_group_view_return(job.pes[0].group, 0), 0) << nda_error_detail();
}

TEST_F(View, RefusesNativePostsWhileItIsLent)
{
	Job job(options());
	start(job);
	uint64_t info = 0;
	ASSERT_EQ(nda_group_view_lend(job.pes[0].group, 0, &info), 0);
	EXPECT_EQ(native(job, 8, 1).posted, NDA_QUEUE_LENT);
	foreign(job, info, 8, 3); // moves the head: still lent
	EXPECT_EQ(native(job, 8, 1).posted, NDA_QUEUE_LENT);
	ASSERT_EQ(nda_group_view_return(job.pes[0].group, 0), 0);
	const NativeWork w = native(job, 8, 1);
	EXPECT_EQ(w.posted, NDA_OK);
	EXPECT_EQ(w.done, NDA_OK);
}

// Native, foreign and native posts follow each other on one ring, across its end.
TEST_F(View, HandsTheCountersOverBothWays)
{
	Job job(options());
	start(job);
	for (uint32_t round = 0; round < 10; round++) {
		const NativeWork n = native(job, 64 + round, 7);
		EXPECT_EQ(n.posted, NDA_OK);
		ASSERT_EQ(n.done, NDA_OK) << nda_status_string(n.done);
		EXPECT_EQ(byte(job, 63 + round), 0x5a);
		uint64_t info = 0;
		ASSERT_EQ(nda_group_view_lend(job.pes[0].group, 0, &info), 0)
			<< nda_error_detail();
		const ForeignWork f = foreign(job, info, 1000 + round, 11);
		ASSERT_FALSE(f.timed_out);
		EXPECT_EQ(f.syndrome, 0u);
		EXPECT_EQ(byte(job, 999 + round), 0x5a);
		ASSERT_EQ(nda_group_view_return(job.pes[0].group, 0), 0)
			<< nda_error_detail();
	}
}

// The kernel that posts does not wait; native code finds the completions.
TEST_F(View, LeavesWhatIsUnderWayToTheNativeQueue)
{
	Job job(options());
	start(job);
	uint64_t info = 0;
	ASSERT_EQ(nda_group_view_lend(job.pes[0].group, 0, &info), 0);
	foreign(job, info, 77, 20, false);
	ASSERT_EQ(nda_group_view_return(job.pes[0].group, 0), 0);
	const NativeWork w = native(job, 8, 0);
	EXPECT_EQ(w.done, NDA_OK) << nda_status_string(w.done);
	EXPECT_EQ(byte(job, 76), 0x5a);
}

TEST_F(View, CannotBeLentTwiceNorReturnedTwice)
{
	Job job(options());
	start(job);
	uint64_t info = 0, again = 7;
	EXPECT_EQ(nda_group_view_return(job.pes[0].group, 0), -EINVAL);
	ASSERT_EQ(nda_group_view_lend(job.pes[0].group, 0, &info), 0);
	EXPECT_EQ(nda_group_view_lend(job.pes[0].group, 0, &again), -EALREADY);
	EXPECT_EQ(again, 7u);
	EXPECT_EQ(nda_group_view_lend(job.pes[0].group, 1, &again), -EINVAL);
	EXPECT_EQ(nda_group_view_lend(job.pes[0].group, 0, nullptr), -EINVAL);
	EXPECT_EQ(nda_group_view_return(job.pes[0].group, 0), 0);
	EXPECT_EQ(nda_group_view_return(job.pes[0].group, 0), -EINVAL);
}

TEST_F(View, IsOfOneCoreOnly)
{
	JobOptions o = options();
	o.group.n_cores = 2;
	Job job(o);
	start(job);
	uint64_t info = 0;
	ASSERT_EQ(nda_group_view_lend(job.pes[0].group, 1, &info), 0);
	EXPECT_EQ(native(job, 8, 1).posted, NDA_OK); // by core 0
	EXPECT_EQ(nda_group_view_return(job.pes[0].group, 1), 0);
}

TEST_F(View, MayStillBeLentWhenTheGroupGoes)
{
	Job job(options());
	start(job);
	uint64_t info = 0;
	EXPECT_EQ(nda_group_view_lend(job.pes[0].group, 0, &info), 0);
}

void posting_kernel(const nda_core *core, void *arg)
{
	NativeWork *w = static_cast<NativeWork *>(arg);
	Device device;
	w->posted = device.open(Core(core), w->table, core->index);
	w->posted = device.put_nbi(w->peer, w->dst, w->src, w->bytes);
}

TEST_F(View, IsNotLentWhileAQueueIsNotQuiet)
{
	Job job(options());
	start(job);
	NativeWork w = {nda_group_table(job.pes[0].group), 1, src[0], dst[0], 8, 1, 0, 0};
	ASSERT_EQ(nda_npu_launch(job.pes[0].npu, posting_kernel, &w, 1), 0);
	ASSERT_EQ(nda_npu_wait(job.pes[0].npu, generous_ms), 0);
	EXPECT_EQ(w.posted, NDA_OK);
	uint64_t info = 0;
	EXPECT_EQ(nda_group_view_lend(job.pes[0].group, 0, &info), -EBUSY);
	EXPECT_NE(std::string(nda_error_detail())
			  .find("core 0 to PE 1 is not quiet: 1 posted, 0"),
		std::string::npos)
		<< nda_error_detail();
	EXPECT_EQ(native(job, 8, 1).done, NDA_OK);
	EXPECT_EQ(nda_group_view_lend(job.pes[0].group, 0, &info), 0);
}

TEST_F(View, IsNotLentWhereItsKernelsCouldNotCount)
{
	JobOptions o = options();
	o.group.channel.signal_every = 4;
	Job job(o);
	start(job);
	EXPECT_EQ(native(job, 8, 5).done, NDA_OK);
	uint64_t info = 0;
	EXPECT_EQ(nda_group_view_lend(job.pes[0].group, 0, &info), -EOPNOTSUPP);
}

TEST_F(View, NeedsAGroupOfOneNic)
{
	JobOptions o = options();
	o.n_nics = 2;
	Job job(o);
	start(job);
	uint64_t info = 0;
	EXPECT_EQ(nda_group_view_lend(job.pes[0].group, 0, &info), -EOPNOTSUPP);
	EXPECT_NE(std::string(nda_error_detail()).find("one NIC"), std::string::npos);
}

TEST_F(View, NeedsAnEighteenTwentyFive)
{
	JobOptions o = options();
	o.nic_name = "soft:udma";
	Job job(o);
	start(job);
	uint64_t info = 0;
	EXPECT_EQ(nda_group_view_lend(job.pes[0].group, 0, &info), -EOPNOTSUPP);
	EXPECT_STREQ(nda_error_detail(),
		"group: view: its kernels know the 1825's queue format only, nic soft:udma "
		"has another");
}

TEST_F(View, IsOfQueuesThatAreNotShared)
{
	JobOptions o = options();
	o.group.flags = NDA_GROUP_SHARED_QUEUES;
	Job job(o);
	start(job);
	uint64_t info = 0;
	EXPECT_EQ(nda_group_view_lend(job.pes[0].group, 0, &info), -EOPNOTSUPP);
	EXPECT_STREQ(
		nda_error_detail(), "group: view: several cores share this group's queues");
}

TEST_F(View, IsOfTheOne1825AmongOtherNics)
{
	JobOptions o = options();
	o.nic_name = "soft:udma";
	Job job(o);
	for (Job::Pe &pe : job.pes)
		pe.nics.push_back(nda_nic_open("soft:hns1825", nullptr, 0));
	start(job);
	uint64_t info = 0;
	ASSERT_EQ(nda_group_view_lend(job.pes[0].group, 0, &info), 0) << nda_error_detail();
	const ForeignWork w = foreign(job, info, 100, 3);
	EXPECT_FALSE(w.timed_out);
	EXPECT_EQ(w.syndrome, 0u);
	EXPECT_EQ(byte(job, 99), 0x5a);
	EXPECT_EQ(nda_group_view_return(job.pes[0].group, 0), 0) << nda_error_detail();
}

TEST_F(View, IsNotLentOfAQueueInError)
{
	JobOptions o = options();
	o.nic.inject = "remote-access-error:1";
	Job job(o);
	start(job);
	EXPECT_EQ(native(job, 8, 1).done, NDA_REMOTE_ACCESS);
	uint64_t info = 0;
	EXPECT_EQ(nda_group_view_lend(job.pes[0].group, 0, &info), -EIO);
}

} // namespace
} // namespace nda::test
