// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The kernels in which PEs wait for each other, where what one sends fails.
#include "lib/tools/perf/kernels.h"

#include <gtest/gtest.h>

#include "tests/mock/nda_job.h"

namespace nda::perf {
namespace {

// Only PE 0 runs a kernel: nobody answers it.
class AloneTest : public testing::Test {
protected:
	explicit AloneTest(uint32_t timeout_us)
		: job_(options(timeout_us)), kernels_(*kernels_of(NDA_FORMAT_HNS1825))
	{
		test::expect_all_ok(job_.create_groups());
		job_.heap_alloc(4096, addresses_);
		EXPECT_EQ(nda_npu_memset(job_.pes[0].npu, addresses_[0], 0, 4096), 0);
	}

	static test::JobOptions options(uint32_t timeout_us)
	{
		test::JobOptions o;
		o.n_pes = 3;
		o.nic.inject = "remote-access-error:1";
		o.group.channel.device_timeout_us = timeout_us;
		return o;
	}

	void run(nda_kernel_fn kernel, void *work)
	{
		nda_npu *npu = job_.pes[0].npu;
		ASSERT_EQ(nda_npu_launch(npu, kernel, work, 1), 0) << nda_error_detail();
		if (nda_npu_wait(npu, test::generous_ms) == 0)
			return;
		ADD_FAILURE() << nda_error_detail();
		// The kernel uses what the test is about to leave.
		EXPECT_EQ(nda_group_abort(job_.pes[0].group, 1), 0);
		EXPECT_EQ(nda_npu_wait(npu, test::generous_ms), 0) << nda_error_detail();
	}

	test::Job job_;
	const Kernels kernels_;
	std::vector<uint64_t> addresses_;
};

class PerfPingPong : public AloneTest, public testing::WithParamInterface<uint64_t> {
protected:
	PerfPingPong() : AloneTest(UINT32_MAX) {} // longer than the kernel is waited for
};

TEST_P(PerfPingPong, EndsByAMessageThatFailedNotByTheDeadline)
{
	PingPongWork work;
	work.table = nda_group_table(job_.pes[0].group);
	work.source = addresses_[0];
	work.target = addresses_[0] + 1024;
	work.signals = addresses_[0] + 2048;
	work.size = 8;
	work.stride = 64;
	work.slots = 8;
	work.burst = GetParam();
	work.messages = 100;
	work.peer = 2;
	work.begins = true;
	work.wrong.resize(1);
	work.results.resize(1);
	run(kernels_.ping_pong, &work);
	EXPECT_EQ(work.results[0].status, NDA_REMOTE_ACCESS);
	EXPECT_EQ(work.results[0].peer, 2u);
	EXPECT_EQ(work.results[0].messages, 0u);
}

INSTANTIATE_TEST_SUITE_P(Bursts, PerfPingPong, testing::Values(1, 8));

class PerfBarrier : public AloneTest {
protected:
	PerfBarrier() : AloneTest(1000000) {}
};

TEST_F(PerfBarrier, TellsOfTheSignalThatFailedNotOfTheDeadline)
{
	BarrierWork work;
	work.table = nda_group_table(job_.pes[0].group);
	work.messages = 1;
	work.results.resize(1);
	run(kernels_.barrier, &work);
	EXPECT_EQ(work.results[0].status, NDA_REMOTE_ACCESS);
	EXPECT_EQ(work.results[0].peer, 1u) << "the first that it signals to";
}

} // namespace
} // namespace nda::perf
