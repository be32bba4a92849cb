// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Groups over the real software NPU and NIC, PEs being threads.
#include <atomic>
#include <cstring>

#include <nda/aiv/device.h>
#include <nda/aiv/soft_core.h>

#include "tests/mock/nda_job.h"

namespace nda::test {
namespace {

using Device = aiv::Device<aiv::SoftCore>;

// A byte that depends on who wrote it to whom, and where.
uint8_t pattern(uint32_t from, uint32_t to, uint32_t core, size_t i)
{
	return static_cast<uint8_t>(from * 67 + to * 31 + core * 11 + i * 7 + 1);
}

// What a kernel is told; each core works on its own slice of both buffers.
struct Work {
	uint64_t table;
	uint64_t source; // n_cores * n_pes blocks
	uint64_t target; // as many
	uint64_t block;
	int status[8]; // by core: the first that was not NDA_OK
};

void note(Work *w, const nda_core *core, int status)
{
	if (w->status[core->index] == NDA_OK)
		w->status[core->index] = status;
}

// Block [core][to] of the source goes to block [core][me] of the target on `to`.
void put_kernel(const nda_core *core, void *arg)
{
	Work *w = static_cast<Work *>(arg);
	Device device;
	note(w, core, device.open(aiv::SoftCore(core), w->table, core->index));
	const uint32_t n = device.n_pes(), row = core->index * n;
	for (uint32_t to = 0; to < n; to++)
		note(w, core,
			device.put_nbi(to, w->target + (row + device.my_pe()) * w->block,
				w->source + (row + to) * w->block, w->block));
	note(w, core, device.quiet());
}

// Block [core][me] of the source on `from` comes to block [core][from] of the target.
void get_kernel(const nda_core *core, void *arg)
{
	Work *w = static_cast<Work *>(arg);
	Device device;
	note(w, core, device.open(aiv::SoftCore(core), w->table, core->index));
	const uint32_t n = device.n_pes(), row = core->index * n;
	for (uint32_t from = 0; from < n; from++)
		note(w, core,
			device.get(from, w->target + (row + from) * w->block,
				w->source + (row + device.my_pe()) * w->block, w->block));
}

// All PEs exchange blocks with each other and with themselves, and look at every byte.
void exchange_and_verify(Job &job, nda_kernel_fn kernel, uint64_t block)
{
	const uint32_t n = job.o.n_pes, n_cores = std::max(1u, job.o.group.n_cores);
	std::vector<uint64_t> sources, targets;
	job.heap_alloc(n_cores * n * block, sources);
	job.heap_alloc(n_cores * n * block, targets);
	std::vector<Work> work(n);
	std::vector<uint8_t> bytes(n_cores * n * block);
	for (uint32_t pe = 0; pe < n; pe++) {
		work[pe] = {nda_group_table(job.pes[pe].group), sources[pe], targets[pe],
			block, {}};
		for (size_t at = 0; at < bytes.size(); at++)
			bytes[at] = pattern(pe, at / block % n, at / block / n, at % block);
		ASSERT_EQ(nda_npu_write(
				  job.pes[pe].npu, sources[pe], bytes.data(), bytes.size()),
			0);
		ASSERT_EQ(nda_npu_memset(job.pes[pe].npu, targets[pe], 0, bytes.size()), 0);
	}
	job.launch(
		kernel, [&](uint32_t pe) { return &work[pe]; }, n_cores);
	for (uint32_t pe = 0; pe < n; pe++) {
		for (uint32_t core = 0; core < n_cores; core++)
			EXPECT_EQ(work[pe].status[core], NDA_OK)
				<< "PE " << pe << " core " << core << ": "
				<< nda_status_string(work[pe].status[core]);
		ASSERT_EQ(nda_npu_read(
				  job.pes[pe].npu, bytes.data(), targets[pe], bytes.size()),
			0);
		for (size_t at = 0; at < bytes.size(); at++)
			ASSERT_EQ(bytes[at],
				pattern(at / block % n, pe, at / block / n, at % block))
				<< "PE " << pe << " byte " << at;
	}
}

struct Setup {
	const char *name;
	std::function<void(JobOptions &)> change;
};

class GroupOf : public testing::TestWithParam<Setup> {
protected:
	JobOptions options()
	{
		JobOptions o;
		GetParam().change(o);
		return o;
	}
};

TEST_P(GroupOf, PutReachesEveryPe)
{
	Job job(options());
	expect_all_ok(job.create_groups());
	exchange_and_verify(job, put_kernel, 1000);
}

TEST_P(GroupOf, GetReadsFromEveryPe)
{
	Job job(options());
	expect_all_ok(job.create_groups());
	exchange_and_verify(job, get_kernel, 1000);
}

INSTANTIATE_TEST_SUITE_P(Setups, GroupOf,
	testing::Values(Setup{"OnePe", [](JobOptions &o) { o.n_pes = 1; }},
		Setup{"TwoPes", [](JobOptions &) {}},
		Setup{"FourPes", [](JobOptions &o) { o.n_pes = 4; }},
		Setup{"ThreeCores", [](JobOptions &o) { o.group.n_cores = 3; }},
		Setup{"ThreeNicsFourPes",
			[](JobOptions &o) {
				o.n_nics = 3;
				o.n_pes = 4;
			}},
		Setup{"CompletionEveryFourth",
			[](JobOptions &o) { o.group.channel.signal_every = 4; }},
		Setup{"PcieDma",
			[](JobOptions &o) { o.group.channel.dma_mode = NDA_DMA_PCIE; }},
		Setup{"Strict", [](JobOptions &o) { o.npu.flags = NDA_NPU_STRICT; }},
		Setup{"SmallMtu", [](JobOptions &o) { o.nic.mtu_bytes = 1024; }},
		Setup{"OtherAttributes",
			[](JobOptions &o) {
				o.group.channel.comp_mask = NDA_CHANNEL_GID_INDEX |
					NDA_CHANNEL_TRAFFIC_CLASS |
					NDA_CHANNEL_SERVICE_LEVEL | NDA_CHANNEL_TIMEOUT |
					NDA_CHANNEL_RETRY_COUNT;
				o.group.channel.sq_depth = 64;
				o.group.channel.timeout = 14;
				o.group.channel.retry_count = 3;
			}}),
	[](const auto &p) { return std::string(p.param.name); });

TEST(Group, ShorterAttributesOfAnOlderCallerTakeTheDefaults)
{
	Job job({});
	expect_all_ok(on_each(2, [&](uint32_t pe) {
		nda_group_attr a = {};
		a.heap_bytes = 1 << 20;
		a.n_cores = 99; // beyond what is passed
		Job::Pe &p = job.pes[pe];
		p.group = nda_group_create(&job.bootstraps[pe], p.npu, p.nics.data(), 1, &a,
			offsetof(nda_group_attr, n_cores));
		return outcome(p.group);
	}));
	exchange_and_verify(job, put_kernel, 64);
}

TEST(Group, TellsHowItsCoresRing)
{
	JobOptions o;
	o.group.n_cores = 2;
	Job job(o);
	expect_all_ok(job.create_groups());
	nda_channel_info info = {};
	for (uint32_t core = 0; core < 2; core++) {
		for (uint32_t to = 0; to < 2; to++) {
			ASSERT_EQ(nda_group_queue_query(
					  job.pes[1].group, to, core, &info, sizeof(info)),
				0)
				<< nda_error_detail();
			EXPECT_EQ(info.doorbell, doorbell_way().doorbell);
			EXPECT_EQ(info.doorbell_error, 0);
			EXPECT_NE(info.qpn, 0u);
		}
	}
	EXPECT_EQ(nda_group_queue_query(job.pes[1].group, 2, 0, &info, sizeof(info)),
		-EINVAL);
	EXPECT_EQ(nda_group_queue_query(job.pes[1].group, 0, 2, &info, sizeof(info)),
		-EINVAL);
	EXPECT_EQ(nda_group_queue_query(job.pes[1].group, 0, 0, nullptr, sizeof(info)),
		-EINVAL);
	EXPECT_EQ(nda_group_queue_query(nullptr, 0, 0, &info, sizeof(info)), -EINVAL);
}

TEST(Group, AnswersWhoItIs)
{
	Job job({});
	expect_all_ok(job.create_groups());
	for (uint32_t pe = 0; pe < 2; pe++) {
		EXPECT_EQ(nda_group_pe(job.pes[pe].group), pe);
		EXPECT_EQ(nda_group_n_pes(job.pes[pe].group), 2u);
		EXPECT_NE(nda_group_table(job.pes[pe].group), 0u);
	}
}

TEST(Group, PublishesATableThatDescribesIt)
{
	JobOptions o;
	o.group.n_cores = 2;
	o.group.channel.device_timeout_us = 1234567;
	Job job(o);
	expect_all_ok(job.create_groups());
	nda_table t = {};
	const Job::Pe &pe = job.pes[1];
	ASSERT_EQ(nda_npu_read(pe.npu, &t, nda_group_table(pe.group), sizeof(t)), 0);
	EXPECT_EQ(memcmp(&t, "NDA1", 4), 0);
	EXPECT_EQ(t.version, 1u);
	EXPECT_EQ(t.my_pe, 1u);
	EXPECT_EQ(t.n_pes, 2u);
	EXPECT_EQ(t.n_cores, 2u);
	EXPECT_EQ(t.format, uint32_t(NDA_FORMAT_HNS1825));
	EXPECT_EQ(t.heap_base, nda_group_heap_base(pe.group));
	EXPECT_EQ(t.heap_bytes, 4u << 20);
	EXPECT_EQ(t.device_timeout_us, 1234567u);
	EXPECT_EQ(t.size_bytes, t.queues_offset + 4 * NDA_QUEUE_STRIDE);
}

// Two queues never share a line of scratch, and none lies in the heap proper.
TEST(Group, GivesEachQueueItsOwnScratchOutsideTheHeap)
{
	JobOptions o;
	o.group.n_cores = 3;
	Job job(o);
	expect_all_ok(job.create_groups());
	std::vector<uint64_t> lines;
	const Job::Pe &pe = job.pes[0];
	const uint64_t heap = nda_group_heap_base(pe.group);
	nda_table t = {};
	ASSERT_EQ(nda_npu_read(pe.npu, &t, nda_group_table(pe.group), sizeof(t)), 0);
	for (uint32_t i = 0; i < 6; i++) {
		nda_queue q = {};
		ASSERT_EQ(nda_npu_read(pe.npu, &q,
				  nda_group_table(pe.group) + t.queues_offset +
					  i * NDA_QUEUE_STRIDE,
				  sizeof(q)),
			0);
		EXPECT_LE(q.scratch_local + NDA_SCRATCH_BYTES, heap);
		for (const uint64_t line : lines)
			EXPECT_NE(line, q.scratch_local / 64);
		lines.push_back(q.scratch_local / 64);
	}
}

// ---- Failing together ----------------------------------------------------------------

TEST(Group, ThatOnePeCannotJoinFailsOnAllWithItsReason)
{
	JobOptions o;
	o.n_pes = 3;
	Job job(o);
	const auto outcomes = job.create_groups([&](uint32_t pe) {
		nda_group_attr a = job.o.group;
		if (pe == 1)
			a.heap_bytes = 1ull << 40; // more than its NPU has
		return a;
	});
	for (const Outcome &out : outcomes) {
		EXPECT_EQ(out.rc, -ENOMEM);
		EXPECT_NE(out.detail.find("group: PE 1: heap of 1099511627776 bytes: "),
			std::string::npos)
			<< out.detail;
	}
}

TEST(Group, WrongHandlesOfOnePeAreToldToAll)
{
	Job job({});
	const auto outcomes = on_each(2, [&](uint32_t pe) {
		Job::Pe &p = job.pes[pe];
		return outcome(nda_group_create(&job.bootstraps[pe], pe ? p.npu : nullptr,
			p.nics.data(), 1, nullptr, 0));
	});
	for (const Outcome &out : outcomes) {
		EXPECT_EQ(out.rc, -EINVAL);
		EXPECT_EQ(out.detail, "group: PE 0: npu is NULL");
	}
}

TEST(Group, CountsThePesThatFailed)
{
	Job job({});
	const auto outcomes = on_each(2, [&](uint32_t pe) {
		return outcome(nda_group_create(
			&job.bootstraps[pe], job.pes[pe].npu, nullptr, 1, nullptr, 0));
	});
	for (const Outcome &out : outcomes) {
		EXPECT_EQ(out.rc, -EINVAL);
		EXPECT_NE(out.detail.find("(and 1 more PEs failed)"), std::string::npos)
			<< out.detail;
	}
}

struct Mismatch {
	const char *name;
	std::function<void(nda_group_attr &)> change;
	const char *detail;
};

class GroupMismatch : public testing::TestWithParam<Mismatch> {};

TEST_P(GroupMismatch, IsNamedOnAllPes)
{
	Job job({});
	const auto outcomes = job.create_groups([&](uint32_t pe) {
		nda_group_attr a = job.o.group;
		if (pe == 1)
			GetParam().change(a);
		return a;
	});
	for (const Outcome &out : outcomes) {
		EXPECT_EQ(out.rc, -EINVAL);
		EXPECT_EQ(out.detail, GetParam().detail);
	}
}

INSTANTIATE_TEST_SUITE_P(Fields, GroupMismatch,
	testing::Values(Mismatch{"HeapBytes", [](auto &a) { a.heap_bytes = 8192; },
				"group: PE 1: heap_bytes 8192 differs from PE 0's 4194304"},
		Mismatch{"Cores", [](auto &a) { a.n_cores = 2; },
			"group: PE 1: n_cores 2 differs from PE 0's 1"},
		Mismatch{"CompMask", [](auto &a) { a.comp_mask = 8; },
			"group: PE 1: attr: comp_mask has unknown bits 0x8"},
		Mismatch{"Queues", [](auto &a) { a.queues_per_core = 2; },
			"group: PE 1: queues_per_core 2 differs from PE 0's 1"},
		Mismatch{"TooManyQueues", [](auto &a) { a.queues_per_core = 33; },
			"group: PE 1: attr: queues_per_core 33 is not in 1..32"},
		Mismatch{"TooManyCores", [](auto &a) { a.n_cores = 49; },
			"group: PE 1: attr: n_cores 49 is not in 1..48"},
		Mismatch{"ChannelMask", [](auto &a) { a.channel.comp_mask = 1 << 20; },
			"group: PE 1: channel: comp_mask has unknown bits 0x100000"},
		Mismatch{"Depth", [](auto &a) { a.channel.sq_depth = 100; },
			"group: PE 1: channel: sq_depth 100 is no power of two"},
		Mismatch{"SignalEvery", [](auto &a) { a.channel.signal_every = 513; },
			"group: PE 1: channel: signal_every 513 is not in 1..512"}),
	[](const auto &p) { return std::string(p.param.name); });

TEST(Group, WithADifferentNumberOfNicsIsRefusedOnAllPes)
{
	JobOptions o;
	o.n_nics = 2;
	Job job(o);
	const auto outcomes = on_each(2, [&](uint32_t pe) {
		Job::Pe &p = job.pes[pe];
		return outcome(nda_group_create(
			&job.bootstraps[pe], p.npu, p.nics.data(), 1 + pe, nullptr, 0));
	});
	for (const Outcome &out : outcomes)
		EXPECT_EQ(out.detail, "group: PE 1: n_nics 2 differs from PE 0's 1");
}

TEST(Group, ThatWaitsForAPeInVainNamesIt)
{
	JobOptions o;
	o.n_pes = 3;
	o.timeout_ms = 300;
	Job job(o);
	const auto outcomes = on_each(3, [&](uint32_t pe) {
		Job::Pe &p = job.pes[pe];
		return pe == 2 ? Outcome()
			       : outcome(nda_group_create(&job.bootstraps[pe], p.npu,
					 p.nics.data(), 1, nullptr, 0));
	});
	for (uint32_t pe : {0, 1}) {
		EXPECT_EQ(outcomes[pe].rc, -ETIMEDOUT);
		EXPECT_NE(
			outcomes[pe].detail.find("PE 2 did not arrive"), std::string::npos)
			<< outcomes[pe].detail;
	}
}

int failing_allgather(void *, const void *, void *, size_t)
{
	return -ENOTCONN;
}
int failing_barrier(void *)
{
	return 3;
}

TEST(Group, ReportsAForeignBootstrapsCode)
{
	Job job({});
	nda_bootstrap b = {};
	b.n_pes = 1;
	b.allgather = failing_allgather;
	b.barrier = failing_barrier;
	EXPECT_EQ(
		nda_group_create(&b, job.pes[0].npu, job.pes[0].nics.data(), 1, nullptr, 0),
		nullptr);
	EXPECT_EQ(errno, ENOTCONN);
	EXPECT_NE(
		std::string(nda_error_detail()).find("the bootstrap's allgather returned"),
		std::string::npos)
		<< nda_error_detail();
}

TEST(Group, RefusesABootstrapItCannotUse)
{
	Job job({});
	nda_nic *const *nics = job.pes[0].nics.data();
	const auto refused = [&](const nda_bootstrap *b) {
		errno = 0;
		return nda_group_create(b, job.pes[0].npu, nics, 1, nullptr, 0) ==
			nullptr &&
			errno == EINVAL;
	};
	EXPECT_TRUE(refused(nullptr));
	nda_bootstrap b = job.bootstraps[0];
	b.allgather = nullptr;
	EXPECT_TRUE(refused(&b));
	b = job.bootstraps[0];
	b.barrier = nullptr;
	EXPECT_TRUE(refused(&b));
	b = job.bootstraps[0];
	b.pe = 2;
	EXPECT_TRUE(refused(&b));
	b.n_pes = 0;
	EXPECT_TRUE(refused(&b));
}

// ---- The heap ------------------------------------------------------------------------

TEST(GroupHeap, GivesTheSameOffsetsOnEveryPe)
{
	Job job({});
	expect_all_ok(job.create_groups());
	std::vector<uint64_t> a, b, c;
	job.heap_alloc(100, a);
	job.heap_alloc(5000, b);
	for (uint32_t pe = 0; pe < 2; pe++)
		EXPECT_EQ(nda_group_heap_free(job.pes[pe].group, a[pe]), 0);
	job.heap_alloc(40, c);
	const uint64_t base[2] = {nda_group_heap_base(job.pes[0].group),
		nda_group_heap_base(job.pes[1].group)};
	EXPECT_EQ(a[0] - base[0], a[1] - base[1]);
	EXPECT_EQ(b[0] - base[0], b[1] - base[1]);
	EXPECT_EQ(c[0] - base[0], c[1] - base[1]);
	EXPECT_EQ(c[0], a[0]);
	EXPECT_EQ(b[0] % 4096, 0u);
}

TEST(GroupHeap, SaysWhatIsLeft)
{
	Job job({});
	expect_all_ok(job.create_groups());
	uint64_t addr = 7;
	EXPECT_EQ(nda_group_heap_alloc(job.pes[0].group, (4 << 20) + 1, &addr), -ENOMEM);
	EXPECT_NE(std::string(nda_error_detail())
			  .find("largest free piece of 4194304 has 4194304"),
		std::string::npos)
		<< nda_error_detail();
	EXPECT_EQ(nda_group_heap_alloc(job.pes[0].group, 0, &addr), -EINVAL);
	EXPECT_EQ(nda_group_heap_alloc(job.pes[0].group, UINT64_MAX, &addr), -ENOMEM);
	EXPECT_EQ(nda_group_heap_free(job.pes[0].group, 12345), -EINVAL);
	EXPECT_EQ(addr, 7u);
	EXPECT_EQ(nda_group_heap_alloc(job.pes[0].group, 4 << 20, &addr), 0);
}

// ---- Regions -------------------------------------------------------------------------

struct RegionWork {
	uint64_t table;
	uint32_t peer;
	nda_region remote, local;
	int put, get;
};

// Puts bytes [0, 512) of the local region to offset 256 of the remote one, and gets the
// remote's first 256 bytes to offset 1024.
void region_kernel(const nda_core *core, void *arg)
{
	RegionWork *w = static_cast<RegionWork *>(arg);
	Device device;
	w->put = device.open(aiv::SoftCore(core), w->table, core->index);
	if (w->put == NDA_OK)
		w->put = device.put_nbi(w->peer, w->remote, 256, w->local, 0, 512);
	w->get = device.get_nbi(w->peer, w->local, 1024, w->remote, 0, 256);
	const int quiet = device.quiet(w->peer);
	if (w->get == NDA_OK)
		w->get = quiet;
}

TEST(GroupRegion, MovesDataOutsideTheHeap)
{
	JobOptions o;
	o.n_nics = 2;
	Job job(o);
	expect_all_ok(job.create_groups());
	uint64_t mem[2];
	nda_group_region *regions[2];
	uint8_t descs[2][NDA_REGION_DESC_BYTES];
	for (uint32_t pe = 0; pe < 2; pe++) {
		ASSERT_EQ(nda_npu_alloc(job.pes[pe].npu, 8192, &mem[pe]), 0);
		ASSERT_EQ(nda_npu_memset(job.pes[pe].npu, mem[pe], pe ? 0x22 : 0x11, 8192),
			0);
		ASSERT_EQ(nda_group_region_register(job.pes[pe].group, mem[pe], 4096,
				  NDA_ACCESS_LOCAL_WRITE | NDA_ACCESS_REMOTE_WRITE |
					  NDA_ACCESS_REMOTE_READ,
				  &regions[pe]),
			0)
			<< nda_error_detail();
		ASSERT_EQ(nda_group_region_export(regions[pe], descs[pe]), 0);
	}
	RegionWork w = {nda_group_table(job.pes[0].group), 1, {}, {}, 0, 0};
	ASSERT_EQ(nda_group_region_local(regions[0], 1, &w.local), 0);
	ASSERT_EQ(nda_group_region_import(job.pes[0].group, descs[1], &w.remote), 0);
	EXPECT_EQ(w.local.pe, 0u);
	EXPECT_EQ(w.remote.pe, 1u);
	EXPECT_EQ(w.remote.addr, mem[1]);
	EXPECT_EQ(w.remote.size_bytes, 4096u);
	ASSERT_EQ(nda_npu_launch(job.pes[0].npu, region_kernel, &w, 1), 0);
	ASSERT_EQ(nda_npu_wait(job.pes[0].npu, generous_ms), 0);
	EXPECT_EQ(w.put, NDA_OK) << nda_status_string(w.put);
	EXPECT_EQ(w.get, NDA_OK) << nda_status_string(w.get);
	std::vector<uint8_t> remote(4096), local(4096);
	ASSERT_EQ(nda_npu_read(job.pes[1].npu, remote.data(), mem[1], 4096), 0);
	ASSERT_EQ(nda_npu_read(job.pes[0].npu, local.data(), mem[0], 4096), 0);
	for (size_t i = 0; i < 4096; i++) {
		EXPECT_EQ(remote[i], i >= 256 && i < 768 ? 0x11 : 0x22) << i;
		EXPECT_EQ(local[i], i >= 1024 && i < 1280 ? 0x22 : 0x11) << i;
	}
	for (nda_group_region *region : regions)
		EXPECT_EQ(nda_group_region_deregister(region), 0);
}

TEST(GroupRegion, RefusesWhatIsNoDescriptor)
{
	Job job({});
	expect_all_ok(job.create_groups());
	uint64_t mem;
	nda_group_region *region = nullptr;
	ASSERT_EQ(nda_npu_alloc(job.pes[0].npu, 4096, &mem), 0);
	ASSERT_EQ(nda_group_region_register(
			  job.pes[0].group, mem, 4096, NDA_ACCESS_LOCAL_WRITE, &region),
		0);
	uint8_t desc[NDA_REGION_DESC_BYTES] = {};
	nda_region out = {};
	EXPECT_EQ(nda_group_region_import(job.pes[0].group, desc, &out), -EPROTO);
	ASSERT_EQ(nda_group_region_export(region, desc), 0);
	desc[4] = 9; // its version
	EXPECT_EQ(nda_group_region_import(job.pes[0].group, desc, &out), -EPROTONOSUPPORT);
	ASSERT_EQ(nda_group_region_export(region, desc), 0);
	desc[NDA_REGION_DESC_BYTES - 1] = 1;
	EXPECT_EQ(nda_group_region_import(job.pes[0].group, desc, &out), -EPROTO);
	EXPECT_EQ(nda_group_region_import(job.pes[0].group, nullptr, &out), -EINVAL);
	EXPECT_EQ(nda_group_region_local(region, 2, &out), -EINVAL);
	EXPECT_EQ(nda_group_region_local(region, 0, nullptr), -EINVAL);
	EXPECT_EQ(nda_group_region_deregister(region), 0);
}

TEST(GroupRegion, RefusesMemoryThatIsNotTheNpus)
{
	Job job({});
	expect_all_ok(job.create_groups());
	nda_group_region *region = nullptr;
	char host[64];
	EXPECT_EQ(nda_group_region_register(job.pes[0].group,
			  reinterpret_cast<uint64_t>(host), sizeof(host),
			  NDA_ACCESS_LOCAL_WRITE, &region),
		-EFAULT);
	EXPECT_EQ(nda_group_region_register(job.pes[0].group, UINT64_MAX - 10, 100,
			  NDA_ACCESS_LOCAL_WRITE, &region),
		-EINVAL);
	EXPECT_EQ(region, nullptr);
}

// ---- Errors of queues ----------------------------------------------------------------

TEST(GroupError, OfAQueueIsReadOnTheHost)
{
	JobOptions o;
	o.nic.inject = "remote-access-error:1";
	Job job(o);
	expect_all_ok(job.create_groups());
	std::vector<uint64_t> addrs;
	job.heap_alloc(4096, addrs);
	nda_queue_error error = {};
	EXPECT_EQ(nda_group_queue_error(job.pes[0].group, 1, 0, &error), 0);
	EXPECT_EQ(error.status, uint32_t(NDA_OK));
	Work w = {nda_group_table(job.pes[0].group), addrs[0], addrs[0] + 2048, 8, {}};
	ASSERT_EQ(nda_npu_launch(job.pes[0].npu, put_kernel, &w, 1), 0);
	ASSERT_EQ(nda_npu_wait(job.pes[0].npu, generous_ms), 0);
	EXPECT_EQ(w.status[0], NDA_REMOTE_ACCESS) << nda_status_string(w.status[0]);
	EXPECT_EQ(nda_group_queue_error(job.pes[0].group, 1, 0, &error), 0);
	EXPECT_EQ(error.status, uint32_t(NDA_REMOTE_ACCESS));
	EXPECT_EQ(error.raw_status, 0x13);
	EXPECT_EQ(nda_group_queue_error(job.pes[0].group, 2, 0, &error), -EINVAL);
	EXPECT_EQ(nda_group_queue_error(job.pes[0].group, 1, 1, &error), -EINVAL);
	EXPECT_EQ(nda_group_queue_error(job.pes[0].group, 1, 0, nullptr), -EINVAL);
}

// What is published of a PE's first queue to another.
nda_queue published(const Job::Pe &pe, uint32_t to)
{
	nda_table t = {};
	nda_queue q = {};
	const uint64_t table = nda_group_table(pe.group);
	EXPECT_EQ(nda_npu_read(pe.npu, &t, table, sizeof(t)), 0);
	EXPECT_EQ(nda_npu_read(pe.npu, &q, table + t.queues_offset + to * NDA_QUEUE_STRIDE,
			  sizeof(q)),
		0);
	return q;
}

// Every third request of a queue fails: the third put does, and after the repair the count
// starts anew.
TEST(GroupRepair, TakesAQueueOutOfErrorInItsOldPlace)
{
	JobOptions o;
	o.nic.inject = "remote-access-error:3";
	Job job(o);
	expect_all_ok(job.create_groups());
	std::vector<uint64_t> addrs;
	job.heap_alloc(4096, addrs);
	nda_group *group = job.pes[0].group;
	const auto put = [&] {
		Work w = {nda_group_table(group), addrs[0], addrs[0] + 2048, 8, {}};
		EXPECT_EQ(nda_npu_launch(job.pes[0].npu, put_kernel, &w, 1), 0);
		EXPECT_EQ(nda_npu_wait(job.pes[0].npu, generous_ms), 0);
		return w.status[0];
	};
	const nda_queue before = published(job.pes[0], 1);
	for (int life = 0; life < 3; life++) {
		SCOPED_TRACE(life);
		EXPECT_EQ(put(), NDA_OK);
		EXPECT_EQ(put(), NDA_OK);
		EXPECT_EQ(put(), NDA_REMOTE_ACCESS);
		EXPECT_EQ(put(), NDA_REMOTE_ACCESS);
		expect_all_ok(on_each(2, [&](uint32_t pe) {
			return outcome(nda_group_repair(job.pes[pe].group));
		}));
		nda_queue_error error = {};
		EXPECT_EQ(nda_group_queue_error(group, 1, 0, &error), 0);
		EXPECT_EQ(error.status, uint32_t(NDA_OK));
	}
	const nda_queue after = published(job.pes[0], 1);
	EXPECT_EQ(after.sq_base, before.sq_base);
	EXPECT_EQ(after.cq_base, before.cq_base);
	EXPECT_EQ(after.sq_doorbell, before.sq_doorbell);
	EXPECT_EQ(after.qpn, before.qpn);
	EXPECT_EQ(after.scratch_local, before.scratch_local);
}

TEST(GroupRepair, LeavesQueuesAloneThatAreInOrder)
{
	Job job({});
	expect_all_ok(job.create_groups());
	std::vector<uint64_t> addrs;
	job.heap_alloc(4096, addrs);
	Work w = {nda_group_table(job.pes[0].group), addrs[0], addrs[0] + 2048, 8, {}};
	ASSERT_EQ(nda_npu_launch(job.pes[0].npu, put_kernel, &w, 1), 0);
	ASSERT_EQ(nda_npu_wait(job.pes[0].npu, generous_ms), 0);
	ASSERT_EQ(w.status[0], NDA_OK);
	expect_all_ok(on_each(2,
		[&](uint32_t pe) { return outcome(nda_group_repair(job.pes[pe].group)); }));
	const nda_queue q = published(job.pes[0], 1);
	EXPECT_EQ(q.state.head, 1u);
	EXPECT_EQ(q.state.tail, 1u);
}

TEST(GroupRepair, IsRefusedOnAllPesWhileAKernelRunsOnOne)
{
	Job job({});
	expect_all_ok(job.create_groups());
	std::atomic<bool> go{false};
	const nda_kernel_fn wait = [](const nda_core *, void *arg) {
		while (!static_cast<std::atomic<bool> *>(arg)->load())
			std::this_thread::yield();
	};
	ASSERT_EQ(nda_npu_launch(job.pes[1].npu, wait, &go, 1), 0);
	const std::vector<Outcome> outcomes = on_each(2,
		[&](uint32_t pe) { return outcome(nda_group_repair(job.pes[pe].group)); });
	go = true;
	EXPECT_EQ(nda_npu_wait(job.pes[1].npu, generous_ms), 0);
	for (const Outcome &o : outcomes) {
		EXPECT_EQ(o.rc, -EBUSY);
		EXPECT_NE(o.detail.find("repair: a kernel runs"), std::string::npos)
			<< o.detail;
	}
}

TEST(GroupAbort, EndsAWaitThatNobodyElseEnds)
{
	Job job({});
	expect_all_ok(job.create_groups());
	std::vector<uint64_t> addrs;
	job.heap_alloc(64, addrs);
	Work w = {nda_group_table(job.pes[0].group), 0, addrs[0], 0, {}};
	const nda_kernel_fn wait = [](const nda_core *core, void *arg) {
		Work *work = static_cast<Work *>(arg);
		aiv::Device<aiv::SoftCore> device;
		work->status[0] = device.open(aiv::SoftCore(core), work->table, 0);
		if (work->status[0] == NDA_OK)
			work->status[0] =
				device.wait_until<uint64_t>(work->target, aiv::cmp::eq, 1);
	};
	ASSERT_EQ(nda_npu_launch(job.pes[0].npu, wait, &w, 1), 0);
	EXPECT_EQ(nda_group_abort(job.pes[0].group, 1), 0);
	ASSERT_EQ(nda_npu_wait(job.pes[0].npu, generous_ms), 0);
	EXPECT_EQ(w.status[0], NDA_ABORTED);
	EXPECT_EQ(nda_group_abort(nullptr, 1), -EINVAL);
}

// ---- Teardown ------------------------------------------------------------------------

TEST(GroupTeardown, WorksOnAfterItsNpuAndNicsWereClosed)
{
	Job job({});
	expect_all_ok(job.create_groups());
	std::vector<uint64_t> a;
	job.heap_alloc(64, a);
	for (Job::Pe &pe : job.pes) {
		EXPECT_EQ(nda_nic_close(pe.nics[0]), 0);
		pe.nics[0] = nullptr;
		EXPECT_EQ(nda_npu_close(pe.npu), 0);
		pe.npu = nullptr;
	}
	for (Job::Pe &pe : job.pes)
		EXPECT_EQ(nda_group_heap_free(pe.group, a[&pe - job.pes.data()]), 0);
}

TEST(GroupTeardown, RegionsOutliveTheirGroup)
{
	Job job({});
	expect_all_ok(job.create_groups());
	uint64_t mem;
	nda_group_region *region = nullptr;
	ASSERT_EQ(nda_npu_alloc(job.pes[0].npu, 4096, &mem), 0);
	ASSERT_EQ(nda_group_region_register(
			  job.pes[0].group, mem, 4096, NDA_ACCESS_LOCAL_WRITE, &region),
		0);
	job.destroy_groups();
	nda_region out = {};
	EXPECT_EQ(nda_group_region_local(region, 0, &out), 0);
	EXPECT_EQ(nda_group_region_deregister(region), 0);
}

TEST(GroupTeardown, EndsWithoutAPeThatNeverComes)
{
	JobOptions o;
	o.timeout_ms = 500;
	Job job(o);
	expect_all_ok(job.create_groups());
	EXPECT_EQ(nda_group_destroy(job.pes[0].group), -ETIMEDOUT);
	EXPECT_NE(std::string(nda_error_detail()).find("PE 1 did not arrive"),
		std::string::npos)
		<< nda_error_detail();
	job.pes[0].group = nullptr;
	EXPECT_EQ(nda_group_destroy(job.pes[1].group), -ETIMEDOUT);
	job.pes[1].group = nullptr;
}

struct Gate {
	uint32_t open;
};

void waiting_kernel(const nda_core *core, void *arg)
{
	while (!__atomic_load_n(&static_cast<Gate *>(arg)->open, __ATOMIC_ACQUIRE))
		if (core->nic_step)
			core->nic_step(core->nic);
}

TEST(GroupTeardown, IsRefusedWhileAKernelRuns)
{
	JobOptions o;
	o.n_pes = 1;
	Job job(o);
	expect_all_ok(job.create_groups());
	Gate gate = {};
	ASSERT_EQ(nda_npu_launch(job.pes[0].npu, waiting_kernel, &gate, 1), 0);
	uint64_t addr = 0;
	EXPECT_EQ(nda_group_destroy(job.pes[0].group), -EBUSY);
	EXPECT_EQ(nda_group_view_lend(job.pes[0].group, 0, &addr), -EBUSY);
	EXPECT_EQ(nda_npu_close(job.pes[0].npu), -EBUSY);
	__atomic_store_n(&gate.open, 1, __ATOMIC_RELEASE);
	EXPECT_EQ(nda_npu_wait(job.pes[0].npu, generous_ms), 0);
}

TEST(GroupTeardown, ManyGroupsCanFollowEachOther)
{
	Job job({});
	for (int i = 0; i < 20; i++) {
		expect_all_ok(job.create_groups());
		job.destroy_groups();
	}
	expect_all_ok(job.create_groups());
	exchange_and_verify(job, put_kernel, 128);
}

} // namespace
} // namespace nda::test
