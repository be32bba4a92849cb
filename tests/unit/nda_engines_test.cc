// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Groups on every engine, on several at once, and through relays.
#include <algorithm>
#include <array>

#include <nda/aiv/shared.h>
#include <nda/aiv/udma_relay.h>

#include "tests/mock/nda_job.h"
#include "tests/sim/engines.h"

namespace nda::test {
namespace {

constexpr uint32_t queues_max = 4, pes_max = 4;
constexpr uint32_t all_pes = UINT32_MAX;

// What a kernel is told, and the first status that was not NDA_OK, by queue and PE.
struct Task {
	uint64_t table;
	uint64_t from, to; // own heap, a word for each PE
	uint32_t n_queues;
	uint32_t relay; // all_pes: none
	int opened;
	int status[queues_max][pes_max];
};

// Word p of `from` goes to word `me` of `to` on PE p, over each queue.
template <class Device>
void put_words(Device &device, Task &task, uint32_t queue)
{
	for (uint32_t pe = 0; pe < device.n_pes(); pe++)
		task.status[queue][pe] =
			device.put(pe, task.to + device.my_pe() * 8, task.from + pe * 8, 8);
}

template <class Engine>
void put_kernel(const nda_core *core, void *arg)
{
	Task &task = *static_cast<Task *>(arg);
	for (uint32_t queue = 0; queue < task.n_queues; queue++) {
		aiv::Device<aiv::SoftCore, Engine> device;
		task.opened = device.open(aiv::SoftCore(core), task.table, 0, queue);
		if (task.opened == NDA_OK)
			put_words(device, task, queue);
	}
}

void relay_kernel(const nda_core *core, void *arg)
{
	Task &task = *static_cast<Task *>(arg);
	aiv::Device<aiv::SoftCore, aiv::udma::Engine> device;
	task.opened = aiv::udma::open_relay(
		&device, aiv::SoftCore(core), task.table, 0, task.relay);
	if (task.opened == NDA_OK)
		put_words(device, task, 0);
}

uint64_t word_of(uint32_t from, uint32_t to, uint32_t round)
{
	return uint64_t{from + 1} << 40 | uint64_t{to + 1} << 20 | round;
}

class Words {
public:
	explicit Words(Job &job) : job_(job)
	{
		job.heap_alloc(8 * pes_max, from_);
		job.heap_alloc(8 * pes_max, to_);
	}

	// New words to send, and none received.
	void fill(uint32_t round)
	{
		round_ = round;
		for (uint32_t pe = 0; pe < job_.o.n_pes; pe++) {
			std::array<uint64_t, pes_max> words = {};
			for (uint32_t to = 0; to < job_.o.n_pes; to++)
				words[to] = word_of(pe, to, round);
			ASSERT_EQ(nda_npu_write(job_.pes[pe].npu, from_[pe], words.data(),
					  sizeof(words)),
				0);
			ASSERT_EQ(
				nda_npu_memset(job_.pes[pe].npu, to_[pe], 0, sizeof(words)),
				0);
		}
	}
	Task task(uint32_t pe, nda_format format, uint32_t n_queues, uint32_t relay) const
	{
		Task t = {nda_group_table_of(job_.pes[pe].group, format), from_[pe],
			to_[pe], n_queues, relay, -1, {}};
		EXPECT_NE(t.table, 0u) << nda_error_detail();
		return t;
	}
	uint64_t received(uint32_t pe, uint32_t from) const
	{
		uint64_t word = 0;
		EXPECT_EQ(nda_npu_read(job_.pes[pe].npu, &word, to_[pe] + from * 8, 8), 0);
		return word;
	}
	bool has_word(uint32_t pe, uint32_t from) const
	{
		return received(pe, from) == word_of(from, pe, round_);
	}

private:
	Job &job_;
	std::vector<uint64_t> from_, to_;
	uint32_t round_ = 0;
};

void run(Job &job, uint32_t pe, nda_kernel_fn kernel, Task &task)
{
	ASSERT_EQ(nda_npu_launch(job.pes[pe].npu, kernel, &task, 1), 0);
	ASSERT_EQ(nda_npu_wait(job.pes[pe].npu, generous_ms), 0);
	EXPECT_EQ(task.opened, NDA_OK);
}

void repair_all(Job &job)
{
	expect_all_ok(on_each(job.o.n_pes,
		[&](uint32_t pe) { return outcome(nda_group_repair(job.pes[pe].group)); }));
}

// ---- Repair, on every engine ---------------------------------------------------------

template <class Engine>
class Repair : public testing::Test {};
TYPED_TEST_SUITE(Repair, Engines, EngineName);

// Every third request of a queue fails; the count starts anew with the queue.
TYPED_TEST(Repair, BringsBackEveryQueueThatFailed)
{
	JobOptions o;
	o.n_pes = 3;
	o.nic_name = nic_of<TypeParam>::name;
	o.nic.inject = "remote-access-error:3";
	o.group.queues_per_core = 2;
	Job job(o);
	expect_all_ok(job.create_groups());
	Words words(job);
	for (uint32_t life = 0; life < 3; life++) {
		for (uint32_t put = 0; put < 3; put++) {
			SCOPED_TRACE(life * 3 + put);
			words.fill(life * 3 + put);
			Task task = words.task(0, NDA_FORMAT_NONE, 2, all_pes);
			run(job, 0, put_kernel<TypeParam>, task);
			for (uint32_t queue = 0; queue < 2; queue++) {
				for (uint32_t pe = 1; pe < 3; pe++) {
					EXPECT_EQ(task.status[queue][pe],
						put < 2 ? NDA_OK : NDA_REMOTE_ACCESS);
					EXPECT_EQ(words.has_word(pe, 0), put < 2);
				}
			}
		}
		repair_all(job);
	}
}

template <class Engine>
void posting_kernel(const nda_core *core, void *arg)
{
	Task &task = *static_cast<Task *>(arg);
	aiv::Device<aiv::SoftCore, Engine> device;
	task.opened = device.open(aiv::SoftCore(core), task.table, 0);
	if (task.opened == NDA_OK)
		task.status[0][1] = device.put_nbi(1, task.to, task.from + 8, 8);
}

// Nobody has seen the end of what was posted, and perhaps there is none.
TYPED_TEST(Repair, StartsAQueueAnewWhoseWorkIsNotOver)
{
	JobOptions o;
	o.nic_name = nic_of<TypeParam>::name;
	Job job(o);
	expect_all_ok(job.create_groups());
	Words words(job);
	words.fill(1);
	Task task = words.task(0, NDA_FORMAT_NONE, 1, all_pes);
	run(job, 0, posting_kernel<TypeParam>, task);
	ASSERT_EQ(task.status[0][1], NDA_OK);
	repair_all(job);
	nda_queue_error error = {};
	EXPECT_EQ(nda_group_queue_error(job.pes[0].group, 1, 0, &error), 0);
	EXPECT_EQ(error.status, uint32_t{NDA_OK});
	words.fill(2);
	run(job, 0, put_kernel<TypeParam>, task);
	EXPECT_EQ(task.status[0][1], NDA_OK);
	EXPECT_TRUE(words.has_word(1, 0));
}

struct BarrierTask {
	uint64_t table;
	int status;
};

template <class Engine>
void barrier_kernel(const nda_core *core, void *arg)
{
	BarrierTask &task = *static_cast<BarrierTask *>(arg);
	aiv::Device<aiv::SoftCore, Engine> device;
	task.status = device.open(aiv::SoftCore(core), task.table, 0);
	if (task.status == NDA_OK)
		task.status = device.barrier(device.all());
}

// PE 0 was in a barrier that PE 1 never came to: their epochs differ.
TYPED_TEST(Repair, LetsBarriersBeginAnew)
{
	JobOptions o;
	o.nic_name = nic_of<TypeParam>::name;
	Job job(o);
	expect_all_ok(job.create_groups());
	BarrierTask alone = {nda_group_table(job.pes[0].group), -1};
	ASSERT_EQ(nda_group_abort(job.pes[0].group, 1), 0);
	ASSERT_EQ(nda_npu_launch(job.pes[0].npu, barrier_kernel<TypeParam>, &alone, 1), 0);
	ASSERT_EQ(nda_npu_wait(job.pes[0].npu, generous_ms), 0);
	ASSERT_EQ(alone.status, NDA_ABORTED);
	ASSERT_EQ(nda_group_abort(job.pes[0].group, 0), 0);
	repair_all(job);
	for (int round = 0; round < 3; round++) {
		BarrierTask tasks[2];
		for (uint32_t pe = 0; pe < 2; pe++)
			tasks[pe] = {nda_group_table(job.pes[pe].group), -1};
		job.launch(
			barrier_kernel<TypeParam>, [&](uint32_t pe) { return &tasks[pe]; },
			1);
		EXPECT_EQ(tasks[0].status, NDA_OK);
		EXPECT_EQ(tasks[1].status, NDA_OK);
	}
}

template <class Engine>
void shared_kernel(const nda_core *core, void *arg)
{
	Task &task = *static_cast<Task *>(arg);
	aiv::SharedDevice<aiv::SoftCore, Engine> device;
	task.opened = device.open(aiv::SoftCore(core), task.table, 0);
	if (task.opened != NDA_OK)
		return;
	task.status[0][1] = device.put_nbi(1, task.to, task.from + 8, 8);
	if (task.status[0][1] == NDA_OK)
		task.status[0][1] = device.quiet(1);
}

TYPED_TEST(Repair, BringsBackASharedQueue)
{
	JobOptions o;
	o.nic_name = nic_of<TypeParam>::name;
	o.nic.inject = "remote-access-error:2";
	o.group.flags = NDA_GROUP_SHARED_QUEUES;
	Job job(o);
	expect_all_ok(job.create_groups());
	Words words(job);
	for (uint32_t put = 0; put < 4; put++) {
		SCOPED_TRACE(put);
		words.fill(put);
		Task task = words.task(0, NDA_FORMAT_NONE, 1, all_pes);
		run(job, 0, shared_kernel<TypeParam>, task);
		EXPECT_EQ(task.status[0][1], put % 2 ? NDA_REMOTE_ACCESS : NDA_OK);
		EXPECT_EQ(words.has_word(1, 0), put % 2 == 0);
		if (put % 2)
			repair_all(job);
	}
}

// ---- Several engines -----------------------------------------------------------------

// A job whose PEs have two NICs of the 1825, and one of each of the others.
class AllEngines : public testing::Test {
protected:
	AllEngines() : job(options())
	{
		for (Job::Pe &pe : job.pes)
			for (const char *name :
				{"soft:udma", "soft:hns1825", "soft:in_die", "soft:xscale"})
				pe.nics.push_back(nda_nic_open(name, nullptr, 0));
		expect_all_ok(job.create_groups());
	}
	static JobOptions options()
	{
		JobOptions o;
		o.n_pes = 3;
		return o;
	}

	template <class Engine>
	void expect_puts(Words &words, uint32_t round)
	{
		const auto format = static_cast<nda_format>(Engine::table_format);
		SCOPED_TRACE(nic_of<Engine>::name);
		words.fill(round);
		for (uint32_t pe = 0; pe < 3; pe++) {
			Task task = words.task(pe, format, 1, all_pes);
			run(job, pe, put_kernel<Engine>, task);
			for (uint32_t to = 0; to < 3; to++)
				EXPECT_EQ(task.status[0][to], NDA_OK);
		}
		for (uint32_t pe = 0; pe < 3; pe++)
			for (uint32_t from = 0; from < 3; from++)
				EXPECT_TRUE(words.has_word(pe, from))
					<< "PE " << pe << " from " << from;
	}

	Job job;
};

TEST_F(AllEngines, ReachEveryPeOverOneHeap)
{
	Words words(job);
	expect_puts<aiv::hns1825::Engine>(words, 1);
	expect_puts<aiv::udma::Engine>(words, 2);
	expect_puts<aiv::in_die::Engine>(words, 3);
	expect_puts<aiv::xscale::Engine>(words, 4);
}

TEST_F(AllEngines, HaveTheirTablesByFormat)
{
	const nda_group *group = job.pes[1].group;
	EXPECT_EQ(nda_group_table(group), nda_group_table_of(group, NDA_FORMAT_HNS1825));
	for (nda_format format : {NDA_FORMAT_HNS1825, NDA_FORMAT_UDMA, NDA_FORMAT_IN_DIE,
		     NDA_FORMAT_XSCALE}) {
		nda_table table = {};
		ASSERT_EQ(nda_npu_read(job.pes[1].npu, &table,
				  nda_group_table_of(group, format), sizeof(table)),
			0);
		EXPECT_EQ(table.format, uint32_t{format});
		EXPECT_EQ(table.my_pe, 1u);
		EXPECT_EQ(table.heap_base, nda_group_heap_base(group));
	}
	EXPECT_EQ(nda_group_table_of(group, NDA_FORMAT_RXE), 0u);
	EXPECT_STREQ(nda_error_detail(), "group: it has no NIC of format 2");
	EXPECT_EQ(nda_group_table_of(nullptr, NDA_FORMAT_NONE), 0u);
}

TEST_F(AllEngines, BarriersOfOneDoNotCountForAnother)
{
	BarrierTask tasks[3];
	const auto barriers = [&](nda_format format, nda_kernel_fn kernel, int n) {
		for (int i = 0; i < n; i++) {
			for (uint32_t pe = 0; pe < 3; pe++)
				tasks[pe] = {
					nda_group_table_of(job.pes[pe].group, format), -1};
			job.launch(
				kernel, [&](uint32_t pe) { return &tasks[pe]; }, 1);
			for (const BarrierTask &task : tasks)
				EXPECT_EQ(task.status, NDA_OK);
		}
	};
	barriers(NDA_FORMAT_UDMA, barrier_kernel<aiv::udma::Engine>, 3);
	barriers(NDA_FORMAT_IN_DIE, barrier_kernel<aiv::in_die::Engine>, 2);
	barriers(NDA_FORMAT_UDMA, barrier_kernel<aiv::udma::Engine>, 1);
}

TEST_F(AllEngines, EndTheirWaitsTogether)
{
	EXPECT_EQ(nda_group_abort(job.pes[0].group, 1), 0);
	const auto status = [&](nda_format format, nda_kernel_fn kernel) {
		BarrierTask task = {nda_group_table_of(job.pes[0].group, format), -1};
		EXPECT_EQ(nda_npu_launch(job.pes[0].npu, kernel, &task, 1), 0);
		EXPECT_EQ(nda_npu_wait(job.pes[0].npu, generous_ms), 0);
		return task.status;
	};
	EXPECT_EQ(status(NDA_FORMAT_HNS1825, barrier_kernel<aiv::hns1825::Engine>),
		NDA_ABORTED);
	EXPECT_EQ(status(NDA_FORMAT_UDMA, barrier_kernel<aiv::udma::Engine>), NDA_ABORTED);
}

TEST_F(AllEngines, TellTheirQueuesAndErrorsByFormat)
{
	nda_group *group = job.pes[0].group;
	nda_channel_info info = {};
	nda_queue_error error = {};
	EXPECT_EQ(nda_group_queue_query_of(
			  group, NDA_FORMAT_IN_DIE, 1, 0, &info, sizeof(info)),
		0);
	EXPECT_NE(info.qpn, 0u);
	EXPECT_EQ(
		nda_group_queue_query_of(group, NDA_FORMAT_RXE, 1, 0, &info, sizeof(info)),
		-EINVAL);
	EXPECT_EQ(nda_group_queue_query_of(
			  group, NDA_FORMAT_IN_DIE, 1, 1, &info, sizeof(info)),
		-EINVAL);
	EXPECT_EQ(nda_group_queue_error_of(group, NDA_FORMAT_XSCALE, 2, 0, &error), 0);
	EXPECT_EQ(
		nda_group_queue_error_of(group, NDA_FORMAT_XSCALE, 3, 0, &error), -EINVAL);
	EXPECT_EQ(nda_group_queue_error_of(group, NDA_FORMAT_RXE, 1, 0, &error), -EINVAL);
	EXPECT_EQ(nda_group_queue_error_of(group, NDA_FORMAT_XSCALE, 0, 0, &error), 0);
	EXPECT_EQ(nda_group_queue_error_of(group, NDA_FORMAT_UDMA, 0, 0, &error), -EINVAL)
		<< "a jetty does not send to its own PE";
	EXPECT_STREQ(nda_error_detail(), "group: queue error: owner 0 has none to PE 0");
}

struct RegionTask {
	uint64_t table;
	nda_region remote, local;
	uint32_t relay;
	int status;
};

template <class Engine>
void region_kernel(const nda_core *core, void *arg)
{
	RegionTask &task = *static_cast<RegionTask *>(arg);
	aiv::Device<aiv::SoftCore, Engine> device;
	task.status = device.open(aiv::SoftCore(core), task.table, 0);
	if (task.status == NDA_OK)
		task.status = device.put_nbi(1, task.remote, 0, task.local, 0, 8);
	if (task.status == NDA_OK)
		task.status = device.quiet(1);
}

TEST_F(AllEngines, ReachRegionsByKeysOfTheirOwn)
{
	constexpr uint32_t access = NDA_ACCESS_LOCAL_WRITE | NDA_ACCESS_REMOTE_WRITE;
	nda_group_region *regions[2];
	uint64_t memory[2];
	for (uint32_t pe = 0; pe < 2; pe++) {
		ASSERT_EQ(nda_npu_alloc(job.pes[pe].npu, 4096, &memory[pe]), 0);
		ASSERT_EQ(nda_group_region_register(job.pes[pe].group, memory[pe], 4096,
				  access, &regions[pe]),
			0);
	}
	uint8_t desc[NDA_REGION_DESC_BYTES];
	ASSERT_EQ(nda_group_region_export(regions[1], desc), 0);
	const auto expect_put = [&](nda_format format, nda_kernel_fn kernel,
					uint64_t word) {
		RegionTask task = {
			nda_group_table_of(job.pes[0].group, format), {}, {}, 0, -1};
		ASSERT_EQ(nda_group_region_import_of(
				  job.pes[0].group, format, 0, desc, &task.remote),
			0);
		ASSERT_EQ(nda_group_region_local_of(regions[0], format, 0, 1, &task.local),
			0);
		ASSERT_EQ(nda_npu_write(job.pes[0].npu, memory[0], &word, 8), 0);
		ASSERT_EQ(nda_npu_launch(job.pes[0].npu, kernel, &task, 1), 0);
		ASSERT_EQ(nda_npu_wait(job.pes[0].npu, generous_ms), 0);
		EXPECT_EQ(task.status, NDA_OK);
		uint64_t found = 0;
		ASSERT_EQ(nda_npu_read(job.pes[1].npu, &found, memory[1], 8), 0);
		EXPECT_EQ(found, word);
	};
	expect_put(NDA_FORMAT_HNS1825, region_kernel<aiv::hns1825::Engine>, 11);
	expect_put(NDA_FORMAT_UDMA, region_kernel<aiv::udma::Engine>, 12);
	expect_put(NDA_FORMAT_XSCALE, region_kernel<aiv::xscale::Engine>, 13);
	nda_region out;
	EXPECT_EQ(
		nda_group_region_import_of(job.pes[0].group, NDA_FORMAT_RXE, 0, desc, &out),
		-EINVAL);
	EXPECT_EQ(nda_group_region_import_of(
			  job.pes[0].group, NDA_FORMAT_UDMA, 2, desc, &out),
		-EINVAL)
		<< "the group has no relays";
	for (uint32_t pe = 0; pe < 2; pe++)
		EXPECT_EQ(nda_group_region_deregister(regions[pe]), 0);
}

TEST_F(AllEngines, RefuseRegionsOfAGroupWithFormatsInAnotherOrder)
{
	JobOptions o = options();
	o.n_nics = 5;
	o.nic_name = "soft:udma";
	Job other(o);
	expect_all_ok(other.create_groups());
	nda_group_region *region = nullptr;
	uint64_t memory = 0;
	ASSERT_EQ(nda_npu_alloc(other.pes[0].npu, 4096, &memory), 0);
	ASSERT_EQ(nda_group_region_register(other.pes[0].group, memory, 4096,
			  NDA_ACCESS_LOCAL_WRITE, &region),
		0);
	uint8_t desc[NDA_REGION_DESC_BYTES];
	ASSERT_EQ(nda_group_region_export(region, desc), 0);
	nda_region out;
	EXPECT_EQ(nda_group_region_import(job.pes[1].group, desc, &out), -EINVAL);
	EXPECT_STREQ(nda_error_detail(),
		"region: import: its NIC 0 is of format 5, this group's of 1");
	EXPECT_EQ(nda_group_region_deregister(region), 0);
}

TEST_F(AllEngines, TakeWhatOnlySomeCanDo)
{
	job.destroy_groups();
	job.o.group.channel.path_mtu_bytes = 1024;
	expect_all_ok(job.create_groups());
}

TEST(Engines, MustBeAlikeOnAllPes)
{
	Job job({});
	for (uint32_t pe = 0; pe < 2; pe++)
		job.pes[pe].nics.push_back(
			nda_nic_open(pe ? "soft:xscale" : "soft:udma", nullptr, 0));
	for (const Outcome &o : job.create_groups()) {
		EXPECT_EQ(o.rc, -EINVAL);
		EXPECT_EQ(o.detail, "group: PE 1: queue format 4 differs from PE 0's 5");
	}
}

// ---- Relays --------------------------------------------------------------------------

class Relays : public testing::Test {
protected:
	// Three NICs for four PEs: to each PE another port.
	static JobOptions options()
	{
		JobOptions o;
		o.n_pes = 4;
		o.n_nics = 3;
		o.nic_name = "soft:udma";
		o.group.flags = NDA_GROUP_RELAYS;
		return o;
	}
};

TEST_F(Relays, LeadToEveryPeThroughEveryOther)
{
	Job job(options());
	expect_all_ok(job.create_groups());
	Words words(job);
	for (uint32_t pe = 0; pe < 4; pe++) {
		for (uint32_t relay = 0; relay < 4; relay++) {
			if (relay == pe)
				continue;
			SCOPED_TRACE(pe * 10 + relay);
			words.fill(pe * 10 + relay);
			Task task = words.task(pe, NDA_FORMAT_NONE, 1, relay);
			run(job, pe, relay_kernel, task);
			for (uint32_t to = 0; to < 4; to++) {
				const bool leads = to != pe && to != relay;
				if (to == pe)
					continue;
				EXPECT_EQ(task.status[0][to], leads ? NDA_OK : NDA_INVALID);
				EXPECT_EQ(words.has_word(to, pe), leads);
			}
		}
	}
}

struct SyncTask {
	uint64_t table;
	uint32_t relay;
	int status;
};

// A handle that goes through a relay has no queue to the relay: no round is begun.
TEST_F(Relays, DoNotSpoilABarrierThatTheyCannotDo)
{
	Job job(options());
	expect_all_ok(job.create_groups());
	SyncTask sync = {nda_group_table(job.pes[0].group), 1, -1};
	ASSERT_EQ(nda_npu_launch(
			  job.pes[0].npu,
			  [](const nda_core *core, void *arg) {
				  SyncTask &t = *static_cast<SyncTask *>(arg);
				  aiv::Device<aiv::SoftCore, aiv::udma::Engine> d;
				  t.status = aiv::udma::open_relay(
					  &d, aiv::SoftCore(core), t.table, 0, t.relay);
				  if (t.status == NDA_OK)
					  t.status = d.sync_all();
			  },
			  &sync, 1),
		0);
	ASSERT_EQ(nda_npu_wait(job.pes[0].npu, generous_ms), 0);
	EXPECT_EQ(sync.status, NDA_INVALID);
	SyncTask tasks[4];
	for (uint32_t pe = 0; pe < 4; pe++)
		tasks[pe] = {nda_group_table(job.pes[pe].group), pe, -1};
	job.launch(
		[](const nda_core *core, void *arg) {
			SyncTask &t = *static_cast<SyncTask *>(arg);
			aiv::Device<aiv::SoftCore, aiv::udma::Engine> d;
			t.status = d.open(aiv::SoftCore(core), t.table, 0, t.relay);
			if (t.status == NDA_OK)
				t.status = d.sync_all();
		},
		[&](uint32_t pe) { return &tasks[pe]; }, 1);
	for (const SyncTask &task : tasks)
		EXPECT_EQ(task.status, NDA_OK);
}

TEST_F(Relays, LeaveTheDirectWay)
{
	Job job(options());
	expect_all_ok(job.create_groups());
	Words words(job);
	words.fill(1);
	for (uint32_t pe = 0; pe < 4; pe++) {
		Task task = words.task(pe, NDA_FORMAT_NONE, 1, all_pes);
		ASSERT_EQ(nda_npu_launch(
				  job.pes[pe].npu,
				  [](const nda_core *core, void *arg) {
					  Task &t = *static_cast<Task *>(arg);
					  aiv::Device<aiv::SoftCore, aiv::udma::Engine> d;
					  nda_table header;
					  memcpy(&header, reinterpret_cast<void *>(t.table),
						  sizeof(header));
					  t.opened = d.open(aiv::SoftCore(core), t.table, 0,
						  header.my_pe);
					  if (t.opened == NDA_OK)
						  put_words(d, t, 0);
				  },
				  &task, 1),
			0);
		ASSERT_EQ(nda_npu_wait(job.pes[pe].npu, generous_ms), 0);
		EXPECT_EQ(task.opened, NDA_OK);
		for (uint32_t to = 0; to < 4; to++) {
			EXPECT_EQ(task.status[0][to], NDA_OK);
			EXPECT_TRUE(words.has_word(to, pe));
		}
	}
}

// The port towards the relay, on both sides: PE 0's queue to 2 through 1 goes from NIC
// (0 + 1) % 3 to NIC (2 + 1) % 3.
TEST_F(Relays, LeaveByThePortTowardsTheRelay)
{
	Job job(options());
	expect_all_ok(job.create_groups());
	const auto expect_remote_eid = [&](uint32_t pe, uint32_t to, nda_nic *nic) {
		nda_table table = {};
		nda_queue queue = {};
		uint8_t eid[16];
		const uint64_t addr = nda_group_table(job.pes[pe].group);
		ASSERT_EQ(nda_npu_read(job.pes[pe].npu, &table, addr, sizeof(table)), 0);
		ASSERT_EQ(table.queues_per_core, 4u);
		ASSERT_EQ(nda_npu_read(job.pes[pe].npu, &queue,
				  addr + table.queues_offset +
					  (1 * 4 + to) * NDA_QUEUE_STRIDE,
				  sizeof(queue)),
			0);
		ASSERT_EQ(nda_nic_eid(nic, eid), 0);
		std::reverse(eid, eid + 16); // as requests have it
		EXPECT_EQ(memcmp(&queue.udma.words[1], eid, 16), 0);
	};
	expect_remote_eid(0, 2, job.pes[2].nics[0]);
	expect_remote_eid(2, 0, job.pes[0].nics[1]);
}

TEST_F(Relays, ReachRegionsByKeysOfTheirOwn)
{
	Job job(options());
	expect_all_ok(job.create_groups());
	nda_group_region *region = nullptr, *own = nullptr;
	uint64_t memory = 0, from = 0;
	ASSERT_EQ(nda_npu_alloc(job.pes[2].npu, 4096, &memory), 0);
	ASSERT_EQ(nda_npu_alloc(job.pes[0].npu, 4096, &from), 0);
	ASSERT_EQ(nda_group_region_register(job.pes[2].group, memory, 4096,
			  NDA_ACCESS_LOCAL_WRITE | NDA_ACCESS_REMOTE_WRITE, &region),
		0);
	ASSERT_EQ(nda_group_region_register(
			  job.pes[0].group, from, 4096, NDA_ACCESS_LOCAL_WRITE, &own),
		0);
	uint8_t desc[NDA_REGION_DESC_BYTES];
	ASSERT_EQ(nda_group_region_export(region, desc), 0);
	for (uint32_t relay : {1u, 3u}) {
		RegionTask task = {nda_group_table(job.pes[0].group), {}, {}, relay, -1};
		ASSERT_EQ(nda_group_region_import_of(job.pes[0].group, NDA_FORMAT_UDMA,
				  relay, desc, &task.remote),
			0);
		ASSERT_EQ(nda_group_region_local_of(
				  own, NDA_FORMAT_UDMA, relay, 2, &task.local),
			0);
		const uint64_t word = 100 + relay;
		ASSERT_EQ(nda_npu_write(job.pes[0].npu, from, &word, 8), 0);
		ASSERT_EQ(nda_npu_launch(
				  job.pes[0].npu,
				  [](const nda_core *core, void *arg) {
					  RegionTask &t = *static_cast<RegionTask *>(arg);
					  aiv::Device<aiv::SoftCore, aiv::udma::Engine> d;
					  t.status = aiv::udma::open_relay(&d,
						  aiv::SoftCore(core), t.table, 0, t.relay);
					  if (t.status == NDA_OK)
						  t.status = d.put_nbi(
							  2, t.remote, 0, t.local, 0, 8);
					  if (t.status == NDA_OK)
						  t.status = d.quiet(2);
				  },
				  &task, 1),
			0);
		ASSERT_EQ(nda_npu_wait(job.pes[0].npu, generous_ms), 0);
		EXPECT_EQ(task.status, NDA_OK);
		uint64_t found = 0;
		ASSERT_EQ(nda_npu_read(job.pes[2].npu, &found, memory, 8), 0);
		EXPECT_EQ(found, word);
	}
	nda_region out;
	EXPECT_EQ(nda_group_region_import_of(
			  job.pes[0].group, NDA_FORMAT_UDMA, 2, desc, &out),
		-EINVAL);
	EXPECT_EQ(std::string(nda_error_detail()),
		"region: no way leads to PE 2 through PE 2");
	EXPECT_EQ(nda_group_region_import_of(
			  job.pes[0].group, NDA_FORMAT_UDMA, 4, desc, &out),
		-EINVAL);
	EXPECT_EQ(nda_group_region_local_of(own, NDA_FORMAT_UDMA, 2, 2, &out), -EINVAL);
	EXPECT_EQ(nda_group_region_deregister(region), 0);
	EXPECT_EQ(nda_group_region_deregister(own), 0);
}

TEST_F(Relays, ComeBackAfterAnError)
{
	JobOptions o = options();
	o.n_pes = 3;
	o.nic.inject = "remote-access-error:2";
	Job job(o);
	expect_all_ok(job.create_groups());
	Words words(job);
	for (uint32_t put = 0; put < 4; put++) {
		SCOPED_TRACE(put);
		words.fill(put);
		Task task = words.task(0, NDA_FORMAT_NONE, 1, 1);
		run(job, 0, relay_kernel, task);
		EXPECT_EQ(task.status[0][2], put % 2 ? NDA_REMOTE_ACCESS : NDA_OK);
		EXPECT_EQ(words.has_word(2, 0), put % 2 == 0);
		if (put % 2)
			repair_all(job);
	}
}

TEST_F(Relays, NeedJettiesAndOneQueueForEach)
{
	JobOptions o = options();
	o.nic_name = "soft:hns1825";
	{
		Job job(o);
		for (const Outcome &outcome : job.create_groups())
			EXPECT_EQ(outcome.rc, -EOPNOTSUPP) << outcome.detail;
	}
	o = options();
	o.group.queues_per_core = 2;
	Job job(o);
	for (const Outcome &outcome : job.create_groups())
		EXPECT_EQ(outcome.rc, -EINVAL) << outcome.detail;
}

} // namespace
} // namespace nda::test
