/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A device of one core whose accesses are recorded, with its queues and the NIC. */
#ifndef TESTS_MOCK_AIV_ONE_CORE_H
#define TESTS_MOCK_AIV_ONE_CORE_H

#include <stdint.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <nda/aiv/device.h>
#include <tests/mock/hns1825_rig.h>
#include <tests/mock/recording_core.h>

namespace nda::test {

using Device = aiv::Device<RecordingCore>;

/* The peer that the tests talk to. */
constexpr uint32_t pe = 1;

/* A device of one core over a rig, and the NIC behind it. */
struct OneCore {
	RigOptions options;
	Rig rig;
	Recorder recorder;
	Device device;
	uint64_t dst;
	uint64_t src;

	explicit OneCore(const RigOptions &o = {})
		: options(o), rig(o), dst(o.heap_base + 0x100), src(o.heap_base + 0x8000)
	{
		recorder.add_memory(rig.address(), rig.bytes());
		for (uint32_t core = 0; core < o.n_cores; core++)
			for (uint32_t to = 0; to < o.n_pes; to++)
				if (to != o.my_pe)
					add_queue(rig.queue(to, core));
		EXPECT_EQ(device.open(RecordingCore(&recorder), rig.address(), 0), NDA_OK);
	}

	~OneCore()
	{
		for (const std::string &violation : recorder.violations)
			ADD_FAILURE() << violation;
		EXPECT_EQ(rig.fault(), format::wqe_fault::none);
	}

	void add_queue(const nda_queue &q)
	{
		recorder.add_memory(q.sq_base, uint64_t{q.sq_depth} * format::wqe_bytes);
		recorder.add_memory(q.cq_base, uint64_t{q.cq_depth} * q.cqe_stride);
		recorder.add_memory(q.sq_record, 192);
	}

	enum nda_status put(uint64_t n = 8) { return device.put_nbi(pe, dst, src, n); }
	nda_queue &queue() { return rig.queue(pe); }

	/* @n puts that must work. */
	void put_many(uint32_t n)
	{
		for (uint32_t i = 0; i < n; i++)
			ASSERT_EQ(put(), NDA_OK) << i;
	}

	std::vector<uint64_t> doorbells() const
	{
		std::vector<uint64_t> values;

		for (const Store &store : recorder.stores)
			if (store.kind == Store::device)
				values.push_back(store.value);
		return values;
	}

	format::wqe wqe(uint32_t index, uint32_t to = pe)
	{
		uint64_t words[format::wqe_words];

		rig.slot(to, index, words);
		EXPECT_EQ(format::check(words, index, options.sq_depth),
			format::wqe_fault::none);
		return format::decode(words);
	}
};

inline RigOptions with_depth(uint32_t depth)
{
	RigOptions options;

	options.sq_depth = options.cq_depth = depth;
	return options;
}

inline RigOptions with_signal(uint32_t every, uint32_t depth = 64)
{
	RigOptions options = with_depth(depth);

	options.signal_every = every;
	return options;
}

} // namespace nda::test

#endif
