// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Groups whose queues several cores share, on every engine.
#include <algorithm>

#include <nda/aiv/shared.h>

#include "tests/mock/nda_job.h"
#include "tests/sim/engines.h"

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

constexpr uint32_t each = 100; // atomics of a core

// Each core adds 1 so often; the values it found are at its place behind the word.
template <class Engine>
void count_up(const nda_core *core, void *arg)
{
	Work *work = static_cast<Work *>(arg);
	aiv::SharedDevice<aiv::SoftCore, Engine> device;
	const uint64_t found = work->buffer + 64 + core->index * each * 8;
	int status = device.open(aiv::SoftCore(core), work->table, 0);

	for (uint32_t i = 0; !status && i < each; i++)
		status = device.template fetch_add_nbi<uint64_t>(
			1, work->buffer, 1, found + i * 8);
	work->status[core->index] = status ? status : device.quiet(1);
}

template <class Engine>
class SharedGroup : public testing::Test {
protected:
	void put_and_get_back(uint32_t signal_every)
	{
		JobOptions o;
		o.nic_name = nic_of<Engine>::name;
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

TYPED_TEST_SUITE(SharedGroup, Engines);

TYPED_TEST(SharedGroup, CoresPutAndGetBackThroughOneQueue)
{
	this->put_and_get_back(1);
}

TYPED_TEST(SharedGroup, SoTheyDoWithACompletionForEveryEighth)
{
	this->put_and_get_back(8);
}

TYPED_TEST(SharedGroup, EveryCoreFindsValuesOfItsOwn)
{
	JobOptions o;
	o.nic_name = nic_of<TypeParam>::name;
	o.group.flags = NDA_GROUP_SHARED_QUEUES;
	Job job(o);
	expect_all_ok(job.create_groups());
	std::vector<uint64_t> addrs;
	job.heap_alloc(64 + cores * each * 8, addrs);
	for (uint32_t pe = 0; pe < 2; pe++)
		ASSERT_EQ(nda_npu_memset(job.pes[pe].npu, addrs[pe], 0, 64), 0);
	Work w = {nda_group_table(job.pes[0].group), addrs[0], {}};
	ASSERT_EQ(nda_npu_launch(job.pes[0].npu, count_up<TypeParam>, &w, cores), 0);
	ASSERT_EQ(nda_npu_wait(job.pes[0].npu, generous_ms), 0);
	if (!TypeParam::supports(aiv::verb::fetch_add, 8)) {
		for (int status : w.status)
			EXPECT_EQ(status, NDA_NOT_SUPPORTED);
		return;
	}
	for (int status : w.status)
		EXPECT_EQ(status, NDA_OK);
	uint64_t sum = 0;
	std::vector<uint64_t> found(cores * each);
	ASSERT_EQ(nda_npu_read(job.pes[1].npu, &sum, addrs[1], 8), 0);
	EXPECT_EQ(sum, cores * each);
	ASSERT_EQ(
		nda_npu_read(job.pes[0].npu, found.data(), addrs[0] + 64, found.size() * 8),
		0);
	std::sort(found.begin(), found.end());
	for (uint64_t i = 0; i < found.size(); i++)
		EXPECT_EQ(found[i], i);
}

} // namespace
} // namespace nda::test
