// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Whatever fails, and wherever: the call says so and leaves nothing behind.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>

#include <nda/aiv/device.h>
#include <nda/aiv/soft_core.h>

#include "lib/nda/handles.h"
#include "tests/mock/nda_failing_soft.h"
#include "tests/mock/nda_job.h"
#include "tests/mock/sanitizer.h"

// Lets the n-th allocation of a thread fail, among those of libnda and of the test itself.
// The soft libraries have an operator of their own.
static thread_local long allocations_left = -1;

void *operator new(size_t size)
{
	if (allocations_left > 0 && --allocations_left == 0)
		throw std::bad_alloc();
	void *p = malloc(size);
	if (!p)
		throw std::bad_alloc();
	return p;
}
void *operator new(size_t size, const std::nothrow_t &) noexcept
{
	return allocations_left > 0 && --allocations_left == 0 ? nullptr : malloc(size);
}
void operator delete(void *p) noexcept
{
	free(p);
}
void operator delete(void *p, size_t) noexcept
{
	free(p);
}

namespace nda::test {
namespace {

// Fails the first, the second, ... call that can fail until none is left; body() returns
// whether it succeeded.
template <class Body>
void fail_each_call(long at_least, Body body)
{
	long failures = 0;
	for (long k = 1;; k++) {
		ASSERT_LT(k, 10000) << "no end";
		const long before = FailingSoft::live();
		FailingSoft::arm(k);
		const bool succeeded = body();
		const bool fired = FailingSoft::fired();
		FailingSoft::arm(0);
		EXPECT_EQ(FailingSoft::live(), before)
			<< "left behind, call " << k << " failing";
		EXPECT_EQ(succeeded, !fired) << "call " << k << ": " << nda_error_detail();
		failures += !succeeded;
		if (!fired)
			break;
	}
	EXPECT_GE(failures, at_least);
}

template <class Body>
void fail_each_allocation(long at_least, Body body)
{
	long failures = 0;
	for (long k = 1;; k++) {
		ASSERT_LT(k, 100000) << "no end";
		const long before = FailingSoft::live();
		allocations_left = k;
		const bool succeeded = body();
		const bool fired = allocations_left == 0;
		allocations_left = -1;
		EXPECT_EQ(FailingSoft::live(), before)
			<< "left behind, allocation " << k << " failing";
		failures += !succeeded;
		if (!fired) {
			EXPECT_TRUE(succeeded) << nda_error_detail();
			break;
		}
	}
	EXPECT_GE(failures, at_least);
}

// Every failure has a text of its own.
void expect_explained(int error)
{
	EXPECT_NE(error, 0);
	EXPECT_STRNE(nda_error_detail(), "");
}

bool open_and_close()
{
	nda_npu_attr attr = {};
	attr.memory_bytes = 1 << 20;
	errno = 0;
	nda_npu *npu = nda_npu_open("soft", &attr, sizeof(attr));
	if (!npu) {
		expect_explained(errno);
		return false;
	}
	errno = 0;
	nda_nic *nic = nda_nic_open("soft:hns1825", nullptr, 0);
	if (!nic)
		expect_explained(errno);
	const bool succeeded = nic != nullptr;
	EXPECT_EQ(nic ? nda_nic_close(nic) : 0, 0);
	EXPECT_EQ(nda_npu_close(npu), 0);
	return succeeded;
}

TEST(Failure, OfAnyCallWhileOpeningLeavesNothing)
{
	FailingSoft soft;
	fail_each_call(3, open_and_close);
}

// A sanitizer has one operator new for the whole process, so that allocations of the soft
// libraries, which have their own C++ library, would fail with the wrong one's exceptions.
#if NDA_ASAN || NDA_TSAN
#define SKIP_IF_ALLOCATIONS_ARE_SHARED()                                                   \
	GTEST_SKIP() << "the sanitizer shares operator new with libnda_soft.so"
#else
#define SKIP_IF_ALLOCATIONS_ARE_SHARED()
#endif

TEST(Failure, OfAnyAllocationWhileOpeningLeavesNothing)
{
	SKIP_IF_ALLOCATIONS_ARE_SHARED();
	FailingSoft soft;
	fail_each_allocation(5, open_and_close);
}

// One PE alone, in this thread.
class Alone {
public:
	explicit Alone(uint32_t npu_flags = 0)
	{
		nda_npu_attr attr = {};
		attr.memory_bytes = 16 << 20;
		attr.flags = npu_flags;
		npu = nda_npu_open("soft", &attr, sizeof(attr));
		nic = nda_nic_open("soft:hns1825", nullptr, 0);
		EXPECT_TRUE(npu && nic) << nda_error_detail();
		EXPECT_EQ(nda_bootstrap_local_create(1, generous_ms, &bootstrap), 0);
	}
	~Alone()
	{
		EXPECT_EQ(nda_bootstrap_local_destroy(bootstrap), 0);
		EXPECT_EQ(nda_nic_close(nic), 0);
		EXPECT_EQ(nda_npu_close(npu), 0);
	}

	bool group_with_view_and_region()
	{
		nda_group_attr attr = {};
		attr.heap_bytes = 1 << 20;
		attr.n_cores = 2;
		uint64_t addr = 0;
		errno = 0;
		nda_group *group =
			nda_group_create(bootstrap, npu, &nic, 1, &attr, sizeof(attr));
		if (!group) {
			expect_explained(errno);
			return false;
		}
		int rc = nda_group_heap_alloc(group, 100, &addr);
		if (!rc)
			rc = nda_group_view_lend(group, 1, &addr);
		nda_group_region *region = nullptr;
		if (!rc)
			rc = nda_group_region_register(group, nda_group_heap_base(group),
				64, NDA_ACCESS_LOCAL_WRITE, &region);
		if (rc)
			expect_explained(rc);
		EXPECT_EQ(region ? nda_group_region_deregister(region) : 0, 0);
		const int destroyed = nda_group_destroy(group);
		return rc == 0 && destroyed == 0;
	}

	nda_npu *npu;
	nda_nic *nic;
	nda_bootstrap *bootstrap = nullptr;
};

void gated_kernel(const nda_core *, void *gate)
{
	while (!__atomic_load_n(static_cast<uint32_t *>(gate), __ATOMIC_ACQUIRE))
		std::this_thread::yield();
}

// Another thread waits and launches the next kernel while this one learns of the end of
// the first. It is given time to do so where it can; where it must wait for this thread,
// that time passes.
TEST(SoftLaunch, IsNotTakenForOverByALookAtTheOneBefore)
{
	FailingSoft soft;
	const Alone alone;
	uint32_t first = 1, second = 0;
	std::atomic<bool> launched{false};
	std::thread other;
	FailingSoft::on_end = [&] {
		other = std::thread([&] {
			EXPECT_EQ(nda_npu_wait(alone.npu, -1), 0) << nda_error_detail();
			EXPECT_EQ(nda_npu_launch(alone.npu, gated_kernel, &second, 1), 0);
			launched = true;
		});
		for (int i = 0; i < 100 && !launched; i++)
			std::this_thread::sleep_for(std::chrono::milliseconds(1));
	};
	ASSERT_EQ(nda_npu_launch(alone.npu, gated_kernel, &first, 1), 0);
	while (FailingSoft::on_end)
		(void)(*lookup(alone.npu))->busy();
	other.join();
	EXPECT_EQ(nda_npu_wait(alone.npu, 0), -ETIMEDOUT);
	__atomic_store_n(&second, 1, __ATOMIC_RELEASE);
	EXPECT_EQ(nda_npu_wait(alone.npu, -1), 0);
}

TEST(SoftLaunch, WhoseEndALookHasSeenIsStillThereToBeWaitedFor)
{
	const Alone alone;
	uint32_t gate = 1;
	ASSERT_EQ(nda_npu_launch(alone.npu, gated_kernel, &gate, 1), 0);
	while ((*lookup(alone.npu))->busy()) {}
	EXPECT_EQ(nda_npu_launch(alone.npu, gated_kernel, &gate, 1), -EBUSY);
	EXPECT_EQ(nda_npu_wait(alone.npu, 0), 0);
	EXPECT_EQ(nda_npu_wait(alone.npu, 0), -EINVAL);
}

TEST(Failure, OfAnyCallOfAGroupLeavesNothing)
{
	FailingSoft soft;
	Alone alone;
	fail_each_call(30, [&] { return alone.group_with_view_and_region(); });
}

// Some are those of a doorbell's slot.
TEST(Failure, OfAnyCallOfAGroupWithProxiedDoorbellsLeavesNothing)
{
	FailingSoft soft;
	Alone alone(NDA_NPU_DOORBELL_PROXY);
	fail_each_call(34, [&] { return alone.group_with_view_and_region(); });
}

TEST(Failure, OfAnyAllocationOfAGroupLeavesNothing)
{
	SKIP_IF_ALLOCATIONS_ARE_SHARED();
	FailingSoft soft;
	Alone alone;
	fail_each_allocation(40, [&] { return alone.group_with_view_and_region(); });
}

TEST(Failure, OfAnyAllocationOfAGroupWithProxiedDoorbellsLeavesNothing)
{
	SKIP_IF_ALLOCATIONS_ARE_SHARED();
	FailingSoft soft;
	Alone alone(NDA_NPU_DOORBELL_PROXY);
	fail_each_allocation(44, [&] { return alone.group_with_view_and_region(); });
}

TEST(Failure, OfAnyCallOnOnePeFailsBothWithOneText)
{
	FailingSoft soft;
	JobOptions o;
	Job job(o);
	fail_each_call(50, [&] {
		const std::vector<Outcome> outcomes = job.create_groups();
		EXPECT_EQ(outcomes[0].rc, outcomes[1].rc);
		EXPECT_EQ(outcomes[0].detail, outcomes[1].detail);
		EXPECT_EQ(
			outcomes[0].rc != 0, outcomes[0].detail.rfind("group: PE ", 0) == 0)
			<< outcomes[0].detail;
		job.destroy_groups();
		return outcomes[0].rc == 0;
	});
}

bool channel_alone(nda_npu *npu, nda_nic *nic)
{
	errno = 0;
	nda_channel *channel = nda_channel_create(nic, npu, nullptr, 0);
	if (!channel) {
		expect_explained(errno);
		return false;
	}
	uint8_t desc[NDA_CHANNEL_DESC_BYTES];
	EXPECT_EQ(nda_channel_export(channel, desc), 0);
	const int rc = nda_channel_connect(channel, desc);
	if (rc) {
		expect_explained(rc);
		nda_queue queue;
		EXPECT_EQ(nda_channel_connect(channel, desc), -ECONNABORTED);
		EXPECT_EQ(nda_channel_describe(channel, 0, 1, 1, &queue), -ENOTCONN);
	}
	EXPECT_EQ(nda_channel_destroy(channel), 0);
	return rc == 0;
}

TEST(Failure, OfAnyCallOfAChannelLeavesNothing)
{
	FailingSoft soft;
	Alone alone;
	fail_each_call(10, [&] { return channel_alone(alone.npu, alone.nic); });
}

// ---- What a NIC may be like ----------------------------------------------------------

TEST(FailingNic, ThatIsDownIsNamedFirst)
{
	FailingSoft soft;
	Alone alone;
	FailingSoft::port_down = true;
	errno = 0;
	EXPECT_EQ(nda_channel_create(alone.nic, alone.npu, nullptr, 0), nullptr);
	FailingSoft::port_down = false;
	EXPECT_EQ(errno, ENETDOWN);
	EXPECT_STREQ(nda_error_detail(), "channel: nic soft:hns1825: port is down");
}

TEST(FailingNic, ThatGoesDownWhileConnectingIsSaidToBeDown)
{
	FailingSoft soft;
	Alone alone;
	nda_channel *channel = nda_channel_create(alone.nic, alone.npu, nullptr, 0);
	ASSERT_NE(channel, nullptr);
	uint8_t desc[NDA_CHANNEL_DESC_BYTES];
	ASSERT_EQ(nda_channel_export(channel, desc), 0);
	FailingSoft::port_down = true;
	FailingSoft::refused_state = IBV_QPS_RTR;
	EXPECT_EQ(nda_channel_connect(channel, desc), -ENETDOWN);
	FailingSoft::port_down = false;
	FailingSoft::refused_state = -1;
	EXPECT_NE(std::string(nda_error_detail()).find("to RTR: port is down: "),
		std::string::npos)
		<< nda_error_detail();
	EXPECT_EQ(nda_channel_destroy(channel), 0);
}

TEST(FailingNic, ThatCannotConnectNamesBothGids)
{
	FailingSoft soft;
	Alone alone;
	nda_channel *channel = nda_channel_create(alone.nic, alone.npu, nullptr, 0);
	ASSERT_NE(channel, nullptr);
	uint8_t desc[NDA_CHANNEL_DESC_BYTES];
	ASSERT_EQ(nda_channel_export(channel, desc), 0);
	FailingSoft::refused_state = IBV_QPS_RTR;
	EXPECT_EQ(nda_channel_connect(channel, desc), -EINVAL);
	FailingSoft::refused_state = -1;
	const std::string detail = nda_error_detail();
	EXPECT_NE(detail.find("connect: QP "), std::string::npos) << detail;
	EXPECT_NE(detail.find("from GID fd6e:6461:736f:"), std::string::npos) << detail;
	EXPECT_NE(detail.find("to GID fd6e:6461:736f:"), std::string::npos) << detail;
	EXPECT_EQ(nda_channel_destroy(channel), 0);
}

TEST(FailingNic, WithLinkLocalGidsAloneUsesThem)
{
	FailingSoft soft;
	Alone alone;
	FailingSoft::gids = 1; // the first is link-local
	const bool connected = channel_alone(alone.npu, alone.nic);
	FailingSoft::gids = -1;
	ASSERT_TRUE(connected) << nda_error_detail();
	EXPECT_EQ(FailingSoft::last_rtr.ah_attr.grh.sgid_index, 0);
}

TEST(FailingNic, WithoutGidsIsRefused)
{
	FailingSoft soft;
	Alone alone;
	FailingSoft::gids = 0;
	errno = 0;
	EXPECT_EQ(nda_channel_create(alone.nic, alone.npu, nullptr, 0), nullptr);
	FailingSoft::gids = -1;
	EXPECT_EQ(errno, EADDRNOTAVAIL);
}

TEST(FailingNic, WhoseKeysAreTooWideForItsFormatIsRefused)
{
	FailingSoft soft;
	Alone alone;
	uint64_t mem;
	ASSERT_EQ(nda_npu_alloc(alone.npu, 4096, &mem), 0);
	FailingSoft::wide_lkey = true;
	errno = 0;
	EXPECT_EQ(nda_mr_register(alone.nic, alone.npu, mem, 4096, NDA_ACCESS_LOCAL_WRITE),
		nullptr);
	FailingSoft::wide_lkey = false;
	EXPECT_EQ(errno, ERANGE);
	EXPECT_EQ(nda_npu_free(alone.npu, mem), 0);
}

TEST(ChannelAttributes, ReachTheNic)
{
	FailingSoft soft;
	Alone alone;
	nda_channel_attr attr = {};
	attr.comp_mask = NDA_CHANNEL_TRAFFIC_CLASS | NDA_CHANNEL_SERVICE_LEVEL |
		NDA_CHANNEL_GID_INDEX;
	attr.traffic_class = 96;
	attr.service_level = 0;
	attr.gid_index = 0;
	nda_channel *channel =
		nda_channel_create(alone.nic, alone.npu, &attr, sizeof(attr));
	ASSERT_NE(channel, nullptr) << nda_error_detail();
	uint8_t desc[NDA_CHANNEL_DESC_BYTES];
	ASSERT_EQ(nda_channel_export(channel, desc), 0);
	EXPECT_EQ(nda_channel_connect(channel, desc), 0) << nda_error_detail();
	const ibv_ah_attr &ah = FailingSoft::last_rtr.ah_attr;
	EXPECT_EQ(ah.grh.traffic_class, 96);
	EXPECT_EQ(ah.sl, 0);
	EXPECT_EQ(ah.grh.sgid_index, 0);
	EXPECT_EQ(ah.is_global, 1);
	EXPECT_EQ(ah.static_rate, 0);
	EXPECT_EQ(nda_channel_destroy(channel), 0);
}

TEST(ChannelAttributes, HaveThePublicLibrarysDefaults)
{
	FailingSoft soft;
	Alone alone;
	ASSERT_TRUE(channel_alone(alone.npu, alone.nic));
	const ibv_qp_attr &rtr = FailingSoft::last_rtr;
	EXPECT_EQ(rtr.ah_attr.grh.traffic_class, 132);
	EXPECT_EQ(rtr.ah_attr.sl, 4);
	EXPECT_EQ(rtr.ah_attr.grh.sgid_index, 1);
	EXPECT_EQ(rtr.path_mtu, IBV_MTU_4096);
}

// ---- Repair --------------------------------------------------------------------------

struct Words {
	uint64_t table;
	uint64_t from, to;
	int status;
};

// What a core leaves in a queue's line that has met an error completion.
void break_queue(const Job::Pe &pe, uint32_t to)
{
	nda_table t = {};
	const uint64_t table = nda_group_table(pe.group);
	const nda_queue_error error = {NDA_REMOTE_ACCESS, 0x13, 0, 0};
	EXPECT_EQ(nda_npu_read(pe.npu, &t, table, sizeof(t)), 0);
	const uint64_t line = table + t.queues_offset + to * NDA_QUEUE_STRIDE +
		offsetof(nda_queue, state);
	EXPECT_EQ(nda_npu_write(pe.npu, line + offsetof(nda_queue_state, error), &error,
			  sizeof(error)),
		0);
}

uint32_t status_of_queue(const Job::Pe &pe, uint32_t to)
{
	nda_queue_error error = {};
	EXPECT_EQ(nda_group_queue_error(pe.group, to, 0, &error), 0);
	return error.status;
}

std::vector<Outcome> repair(Job &job)
{
	return on_each(job.o.n_pes,
		[&](uint32_t pe) { return outcome(nda_group_repair(job.pes[pe].group)); });
}

void expect_puts_both_ways(Job &job, const std::vector<uint64_t> &heap)
{
	for (uint32_t pe = 0; pe < 2; pe++) {
		Words w = {nda_group_table(job.pes[pe].group), heap[pe], heap[pe], -1};
		ASSERT_EQ(nda_npu_launch(
				  job.pes[pe].npu,
				  [](const nda_core *core, void *arg) {
					  Words *words = static_cast<Words *>(arg);
					  aiv::Device<aiv::SoftCore> device;
					  words->status = device.open(
						  aiv::SoftCore(core), words->table, 0);
					  if (words->status == NDA_OK)
						  words->status = device.put(
							  1 - device.my_pe(), words->to,
							  words->from, 8);
				  },
				  &w, 1),
			0);
		ASSERT_EQ(nda_npu_wait(job.pes[pe].npu, generous_ms), 0);
		EXPECT_EQ(w.status, NDA_OK) << "PE " << pe;
	}
}

TEST(Failure, OfAConnectionInARepairLeavesBothEndsInErrorAndCanBeMended)
{
	FailingSoft soft;
	Job job({});
	expect_all_ok(job.create_groups());
	std::vector<uint64_t> heap;
	job.heap_alloc(64, heap);
	break_queue(job.pes[0], 1);
	FailingSoft::refused_state = IBV_QPS_RTR;
	for (const Outcome &o : repair(job))
		EXPECT_EQ(o.rc, -EINVAL) << o.detail;
	FailingSoft::refused_state = -1;
	EXPECT_EQ(status_of_queue(job.pes[0], 1), uint32_t(NDA_REMOTE_ACCESS));
	EXPECT_EQ(status_of_queue(job.pes[1], 0), uint32_t(NDA_FLUSHED));
	EXPECT_EQ(status_of_queue(job.pes[0], 0), uint32_t(NDA_OK)) << "it was in order";
	expect_all_ok(repair(job));
	EXPECT_EQ(status_of_queue(job.pes[0], 1), uint32_t(NDA_OK));
	EXPECT_EQ(status_of_queue(job.pes[1], 0), uint32_t(NDA_OK));
	expect_puts_both_ways(job, heap);
}

TEST(Failure, OfAnyCallInARepairIsToldToAllAndCanBeMended)
{
	FailingSoft soft;
	Job job({});
	expect_all_ok(job.create_groups());
	std::vector<uint64_t> heap;
	job.heap_alloc(64, heap);
	long failures = 0;
	for (bool fired = true; fired; failures += fired) {
		SCOPED_TRACE(failures);
		ASSERT_LT(failures, 1000) << "no end";
		break_queue(job.pes[1], 0);
		FailingSoft::arm(failures + 1);
		const std::vector<Outcome> outcomes = repair(job);
		fired = FailingSoft::fired();
		FailingSoft::arm(0);
		for (const Outcome &o : outcomes)
			EXPECT_EQ(o.rc != 0, fired) << o.detail;
		if (fired)
			expect_all_ok(repair(job));
		expect_puts_both_ways(job, heap);
	}
	// At least the line, the sync area, four states of the QP and the row of each end.
	EXPECT_GE(failures, 14);
}

} // namespace
} // namespace nda::test
