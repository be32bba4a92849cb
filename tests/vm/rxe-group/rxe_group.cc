// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Groups over rxe0, PEs being threads.
#include <nda/aiv/device.h>
#include <nda/aiv/rxe_queue.h>
#include <nda/aiv/soft_core.h>

#include "tests/mock/nda_job.h"

namespace nda::test {
namespace {

using Device = aiv::Device<aiv::SoftCore, aiv::rxe::Engine>;

struct Work {
	uint64_t table;
	uint64_t heap;     // 3 words: to send, received, fetched
	nda_region remote; // of PE 1
	nda_region local;
	int put, get, add;
};

// A put by a region's key, a get and an atomic of the heap, all with PE 1.
void kernel(const nda_core *core, void *arg)
{
	Work &w = *static_cast<Work *>(arg);
	Device device;
	w.put = device.open(aiv::SoftCore(core), w.table, 0);
	if (w.put == NDA_OK)
		w.put = device.put_nbi(1, w.remote, 0, w.local, 0, 8);
	if (w.put == NDA_OK)
		w.put = device.quiet(1);
	w.get = device.get(1, w.heap + 8, w.heap, 8);
	uint64_t former = 0;
	w.add = device.fetch_add<uint64_t>(1, w.heap, 1, &former);
}

class RxeGroup : public testing::Test {
protected:
	RxeGroup() : job(options())
	{
		expect_all_ok(job.create_groups());
		job.heap_alloc(24, heap);
		for (uint32_t pe = 0; pe < 2; pe++) {
			const uint64_t words[3] = {100 + pe, 0, 0};
			EXPECT_EQ(nda_npu_write(
					  job.pes[pe].npu, heap[pe], words, sizeof(words)),
				0);
			EXPECT_EQ(nda_npu_alloc(job.pes[pe].npu, 4096, &memory[pe]), 0);
			EXPECT_EQ(nda_group_region_register(job.pes[pe].group, memory[pe],
					  4096,
					  NDA_ACCESS_LOCAL_WRITE | NDA_ACCESS_REMOTE_WRITE,
					  &regions[pe]),
				0)
				<< nda_error_detail();
		}
	}
	~RxeGroup() override
	{
		for (nda_group_region *region : regions)
			EXPECT_EQ(nda_group_region_deregister(region), 0);
	}
	static JobOptions options()
	{
		JobOptions o;
		o.nic_name = "rxe0";
		return o;
	}

	Work run(uint32_t key_error)
	{
		uint8_t desc[NDA_REGION_DESC_BYTES];
		Work w = {nda_group_table(job.pes[0].group), heap[0], {}, {}, -1, -1, -1};
		EXPECT_EQ(nda_group_region_export(regions[1], desc), 0);
		EXPECT_EQ(nda_group_region_import(job.pes[0].group, desc, &w.remote), 0);
		EXPECT_EQ(nda_group_region_local(regions[0], 1, &w.local), 0);
		w.remote.key ^= key_error;
		EXPECT_EQ(nda_npu_launch(job.pes[0].npu, kernel, &w, 1), 0);
		EXPECT_EQ(nda_npu_wait(job.pes[0].npu, generous_ms), 0);
		return w;
	}
	uint64_t word(uint32_t pe, uint64_t addr)
	{
		uint64_t value = 0;
		EXPECT_EQ(nda_npu_read(job.pes[pe].npu, &value, addr, 8), 0);
		return value;
	}

	Job job;
	std::vector<uint64_t> heap;
	uint64_t memory[2] = {};
	nda_group_region *regions[2] = {};
};

TEST_F(RxeGroup, ComesBackFromAWrongKeyByARepair)
{
	for (uint64_t life = 0; life < 3; life++) {
		SCOPED_TRACE(life);
		const uint64_t sent = 1000 + life;
		ASSERT_EQ(nda_npu_write(job.pes[0].npu, memory[0], &sent, 8), 0);
		const Work good = run(0);
		EXPECT_EQ(good.put, NDA_OK);
		EXPECT_EQ(good.get, NDA_OK);
		EXPECT_EQ(good.add, NDA_OK);
		EXPECT_EQ(word(1, memory[1]), sent);
		EXPECT_EQ(word(0, heap[0] + 8), 101 + life);
		EXPECT_EQ(word(1, heap[1]), 102 + life);

		const Work bad = run(0x100);
		EXPECT_EQ(bad.put, NDA_REMOTE_ACCESS);
		EXPECT_EQ(bad.get, NDA_REMOTE_ACCESS) << "the queue's error is sticky";
		EXPECT_EQ(bad.add, NDA_REMOTE_ACCESS);
		expect_all_ok(on_each(2, [&](uint32_t pe) {
			return outcome(nda_group_repair(job.pes[pe].group));
		}));
	}
	EXPECT_EQ(run(0).put, NDA_OK);
}

} // namespace
} // namespace nda::test

int main(int argc, char **argv)
{
	testing::InitGoogleTest(&argc, argv);
	return RUN_ALL_TESTS();
}
