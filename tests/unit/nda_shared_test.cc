// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Groups whose queues several cores share, on every engine.
#include <nda/aiv/hns1825_engine.h>
#include <nda/aiv/shared.h>
#include <nda/aiv/soft_core.h>
#include <nda/aiv/udma_queue.h>
#include <nda/aiv/xscale_queue.h>

#include "tests/mock/nda_job.h"

namespace nda::test {
namespace {

constexpr uint64_t bytes = 8192;
constexpr uint32_t cores = 4;

struct Work {
	uint64_t table;
	uint64_t buffer; // what goes to PE 1 and back: bytes, and then as many
	int status[cores];
};

// Each core takes every fourth word of 8 bytes there and back.
template <class Engine>
void there_and_back(const nda_core *core, void *arg)
{
	Work *work = static_cast<Work *>(arg);
	aiv::SharedDevice<aiv::SoftCore, Engine> device;
	int status = device.open(aiv::SoftCore(core), work->table, 0);

	for (uint64_t at = core->index * 8; !status && at < bytes; at += cores * 8)
		status = device.put_nbi(1, work->buffer + at, work->buffer + at, 8);
	if (!status)
		status = device.quiet(1);
	for (uint64_t at = core->index * 8; !status && at < bytes; at += cores * 8)
		status = device.get_nbi(1, work->buffer + bytes + at, work->buffer + at, 8);
	work->status[core->index] = status ? status : device.quiet(1);
}

template <class Engine>
struct Nic;
template <>
struct Nic<aiv::hns1825::Engine> {
	static constexpr const char *name = "soft:hns1825";
};
template <>
struct Nic<aiv::xscale::Engine> {
	static constexpr const char *name = "soft:xscale";
};
template <>
struct Nic<aiv::udma::Engine> {
	static constexpr const char *name = "soft:udma";
};

template <class Engine>
class SharedGroup : public testing::Test {
protected:
	void put_and_get_back(uint32_t signal_every)
	{
		JobOptions o;
		o.nic_name = Nic<Engine>::name;
		o.group.flags = NDA_GROUP_SHARED_QUEUES;
		o.group.channel.sq_depth = 64;
		o.group.channel.signal_every = signal_every;
		Job job(o);
		expect_all_ok(job.create_groups());
		std::vector<uint64_t> addrs;
		job.heap_alloc(2 * bytes, addrs);
		std::vector<uint8_t> sent(bytes), found(bytes);
		for (size_t i = 0; i < bytes; i++)
			sent[i] = static_cast<uint8_t>(i * 13 + i / 256);
		ASSERT_EQ(nda_npu_write(job.pes[0].npu, addrs[0], sent.data(), bytes), 0);
		Work w = {nda_group_table(job.pes[0].group), addrs[0], {}};
		ASSERT_EQ(nda_npu_launch(job.pes[0].npu, there_and_back<Engine>, &w, cores),
			0);
		ASSERT_EQ(nda_npu_wait(job.pes[0].npu, generous_ms), 0);
		for (int status : w.status)
			EXPECT_EQ(status, NDA_OK);
		ASSERT_EQ(nda_npu_read(job.pes[1].npu, found.data(), addrs[1], bytes), 0);
		EXPECT_EQ(found, sent);
		ASSERT_EQ(
			nda_npu_read(job.pes[0].npu, found.data(), addrs[0] + bytes, bytes),
			0);
		EXPECT_EQ(found, sent);
	}
};

using Engines =
	testing::Types<aiv::hns1825::Engine, aiv::xscale::Engine, aiv::udma::Engine>;
TYPED_TEST_SUITE(SharedGroup, Engines);

TYPED_TEST(SharedGroup, CoresPutAndGetBackThroughOneQueue)
{
	this->put_and_get_back(1);
}

TYPED_TEST(SharedGroup, SoTheyDoWithACompletionForEveryEighth)
{
	this->put_and_get_back(8);
}

} // namespace
} // namespace nda::test
