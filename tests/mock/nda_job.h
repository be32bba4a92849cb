// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A job of PEs that are threads of the test: each with a software NPU and NICs, joined to a
// group through the C API alone.
#ifndef NDA_TESTS_MOCK_NDA_JOB_H
#define NDA_TESTS_MOCK_NDA_JOB_H

#include <cerrno>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include <nda/group.h>

#include "tests/mock/nda_doorbell.h"

namespace nda::test {

constexpr uint32_t generous_ms = 60000; // a deadline, never waited for where all goes well

// What a call gave, with the words it left in its thread.
struct Outcome {
	int rc = 0;
	std::string detail;
};

inline Outcome outcome(int rc)
{
	return {rc, rc ? nda_error_detail() : ""};
}

inline Outcome outcome(const void *made)
{
	return made ? Outcome() : Outcome{-errno, nda_error_detail()};
}

// Runs body(pe) in a thread for each PE.
inline std::vector<Outcome> on_each(
	uint32_t n_pes, const std::function<Outcome(uint32_t)> &body)
{
	std::vector<Outcome> outcomes(n_pes);
	std::vector<std::thread> threads;
	for (uint32_t pe = 0; pe < n_pes; pe++)
		threads.emplace_back([&, pe] { outcomes[pe] = body(pe); });
	for (std::thread &t : threads)
		t.join();
	return outcomes;
}

inline void expect_all_ok(const std::vector<Outcome> &outcomes)
{
	for (size_t pe = 0; pe < outcomes.size(); pe++)
		EXPECT_EQ(outcomes[pe].rc, 0) << "PE " << pe << ": " << outcomes[pe].detail;
}

struct JobOptions {
	uint32_t n_pes = 2;
	uint32_t n_nics = 1;
	const char *nic_name = "soft:hns1825";
	uint32_t timeout_ms = generous_ms;
	nda_npu_attr npu = {};
	nda_nic_attr nic = {};
	nda_group_attr group = {};
};

class Job {
public:
	explicit Job(const JobOptions &options) : o(options), pes(options.n_pes)
	{
		if (!o.npu.memory_bytes)
			o.npu.memory_bytes = 256 << 20;
		if (!o.group.heap_bytes)
			o.group.heap_bytes = 4 << 20;
		o.npu.flags |= doorbell_way().npu_flags;
		if (o.group.channel.dma_mode == NDA_DMA_AUTO)
			o.group.channel.dma_mode = doorbell_way().dma_mode;
		EXPECT_EQ(
			nda_bootstrap_local_create(o.n_pes, o.timeout_ms, &bootstraps), 0);
		for (Pe &pe : pes) {
			pe.npu = nda_npu_open("soft", &o.npu, sizeof(o.npu));
			EXPECT_NE(pe.npu, nullptr) << nda_error_detail();
			for (uint32_t i = 0; i < o.n_nics; i++) {
				pe.nics.push_back(
					nda_nic_open(o.nic_name, &o.nic, sizeof(o.nic)));
				EXPECT_NE(pe.nics.back(), nullptr) << nda_error_detail();
			}
		}
	}

	~Job()
	{
		destroy_groups();
		for (Pe &pe : pes) {
			for (nda_nic *nic : pe.nics)
				EXPECT_EQ(nic ? nda_nic_close(nic) : 0, 0)
					<< nda_error_detail();
			EXPECT_EQ(pe.npu ? nda_npu_close(pe.npu) : 0, 0)
				<< nda_error_detail();
		}
		EXPECT_EQ(nda_bootstrap_local_destroy(bootstraps), 0);
	}

	// attr(pe) may differ from the options'.
	std::vector<Outcome> create_groups(
		const std::function<nda_group_attr(uint32_t)> &attr = nullptr)
	{
		return on_each(o.n_pes, [&](uint32_t pe) {
			const nda_group_attr a = attr ? attr(pe) : o.group;
			Pe &p = pes[pe];
			p.group = nda_group_create(&bootstraps[pe], p.npu, p.nics.data(),
				static_cast<uint32_t>(p.nics.size()), &a, sizeof(a));
			return outcome(p.group);
		});
	}

	void destroy_groups()
	{
		expect_all_ok(on_each(o.n_pes, [&](uint32_t pe) {
			nda_group *group = pes[pe].group;
			pes[pe].group = nullptr;
			return group ? outcome(nda_group_destroy(group)) : Outcome();
		}));
	}

	// Runs a kernel on every PE, and waits for all.
	void launch(nda_kernel_fn fn, const std::function<void *(uint32_t)> &arg,
		uint32_t n_cores)
	{
		for (uint32_t pe = 0; pe < o.n_pes; pe++)
			EXPECT_EQ(nda_npu_launch(pes[pe].npu, fn, arg(pe), n_cores), 0)
				<< nda_error_detail();
		for (Pe &pe : pes)
			EXPECT_EQ(nda_npu_wait(pe.npu, generous_ms), 0)
				<< nda_error_detail();
	}

	// The same allocation on every PE.
	void heap_alloc(uint64_t bytes, std::vector<uint64_t> &addrs)
	{
		addrs.resize(o.n_pes);
		for (uint32_t pe = 0; pe < o.n_pes; pe++)
			EXPECT_EQ(nda_group_heap_alloc(pes[pe].group, bytes, &addrs[pe]), 0)
				<< nda_error_detail();
	}

	struct Pe {
		nda_npu *npu = nullptr;
		std::vector<nda_nic *> nics;
		nda_group *group = nullptr;
	};

	JobOptions o;
	nda_bootstrap *bootstraps = nullptr;
	std::vector<Pe> pes;
};

} // namespace nda::test

#endif
