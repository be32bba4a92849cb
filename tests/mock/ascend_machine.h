/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What stands behind the stand-ins of the Ascend intrinsics: one core's scalar cache, its
 * UB, and the copies on their way between UB and memory. The memory that tests and their
 * NIC look at has only what the core made sure of:
 *
 * - a store stays in its line until that is cleaned, and what is cleaned is on its way
 *   until the next dsb;
 * - a load hits what was cached, of every line an old state at first (@starts_stale of the
 *   recorder), until it is invalidated;
 * - a copy is carried out when a flag that was set behind it is waited for, not before, and
 *   takes from UB what the core had stored there by the flag that it was told to wait for.
 *
 * Of memory that the NIC reads (Recorder::add_nic_memory()), what is of a higher rank must
 * not be sent on its way before all of the lower ones has come: requests, then the record,
 * then the doorbell.
 */
#ifndef TESTS_MOCK_ASCEND_MACHINE_H
#define TESTS_MOCK_ASCEND_MACHINE_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <map>
#include <set>
#include <vector>

#include <nda/aiv/core.h>
#include <tests/mock/recording_core.h>

enum pipe_t {
	PIPE_S,
	PIPE_V,
	PIPE_M,
	PIPE_MTE1,
	PIPE_MTE2,
	PIPE_MTE3,
	PIPE_ALL
};

namespace nda::test {

class AscendMachine {
public:
	static constexpr uint32_t line_bytes = 64;
	static constexpr uint32_t ub_bytes = 512;

	alignas(32) uint8_t ub[ub_bytes];
	/* The clean, invalidate or dsb that does nothing; n_sites: none. */
	uint32_t without_site = aiv::n_sites;
	/* The flag that is neither set nor waited for; PIPE_ALL: none. */
	pipe_t without_from = PIPE_ALL, without_to = PIPE_ALL;
	/* Of a copied WQE, the word that says that all is there. */
	uint32_t last_word = 0;

	/* A core whose cache and pipes hold nothing of the last one's. */
	void begin(Recorder *told)
	{
		recorder = told;
		lines_.clear();
		fetched_.clear();
		on_its_way_.clear();
		copies_.clear();
		memset(flags_, 0, sizeof(flags_));
		memset(ub, 0xee, sizeof(ub));
		memset(seen_, 0xdd, sizeof(seen_));
		last_word = 0;
		recorder->at_end = [this] { end(); };
		recorder->on_change = [this](uint64_t addr, uint64_t bytes) {
			forget(addr, bytes);
		};
	}

	template <class T>
	T load(uint64_t addr)
	{
		T value;

		memcpy(&value, line(addr).bytes + addr % line_bytes, sizeof(T));
		return value;
	}
	template <class T>
	void store(uint64_t addr, T value)
	{
		Line &l = line(addr);

		memcpy(l.bytes + addr % line_bytes, &value, sizeof(T));
		l.dirty = true;
	}

	void dcci(uint64_t addr)
	{
		auto found = lines_.find(addr);

		if (addr % line_bytes != 0)
			complain("dcci of something else than a line", addr);
		fetched_.insert(addr);
		if (found == lines_.end())
			return;
		Line line = found->second;
		lines_.erase(found);
		if (!line.dirty)
			return;
		expect_in_memory(recorder->nic_rank(addr, line_bytes), "what comes later");
		on_its_way_[addr] = line;
	}

	void dsb()
	{
		for (const auto &entry : on_its_way_)
			memcpy(reinterpret_cast<void *>(entry.first), entry.second.bytes,
				line_bytes);
		on_its_way_.clear();
	}

	template <class T>
	void st_dev(uint64_t addr, T value)
	{
		expect_in_memory(Recorder::beyond_nic_memory, "a device store");
		RecordingCore(recorder).st_dev<T>(addr, value);
	}

	void set_flag(pipe_t from, pipe_t to)
	{
		if (from == without_from && to == without_to)
			return;
		flags_[from][to]++;
		if (from == PIPE_S)
			memcpy(seen_, ub, sizeof(seen_));
		for (Copy &copy : copies_)
			if (copy.pipe == from)
				copy.flagged |= 1u << to;
	}

	void wait_flag(pipe_t from, pipe_t to)
	{
		if (from == without_from && to == without_to)
			return;
		if (flags_[from][to] == 0) {
			complain("a wait for a flag that nobody set", from);
			return;
		}
		flags_[from][to]--;
		for (size_t i = 0; i < copies_.size();)
			if (copies_[i].pipe == from &&
				(copies_[i].flagged >> to & 1) != 0) {
				Copy copy = copies_[i];

				copies_.erase(copies_.begin() + static_cast<ptrdiff_t>(i));
				carry_out(copy);
			} else {
				i++;
			}
	}

	/* @pipe: MTE2 copies to UB, MTE3 from there. */
	void copy(pipe_t pipe, uint64_t gm, uint64_t at, uint32_t bytes)
	{
		uint64_t offset = at - reinterpret_cast<uint64_t>(ub);

		if (offset % 32 != 0)
			complain("a copy whose UB side is not aligned to 32", at);
		if (offset > ub_bytes || bytes > ub_bytes - offset)
			complain("a copy outside the core's buffer", at);
		else
			copies_.push_back({pipe, gm, offset, bytes, 0});
	}

	void forget(uint64_t addr, uint64_t bytes)
	{
		auto first = lines_.lower_bound(addr / line_bytes * line_bytes);

		for (auto each = first;
			each != lines_.end() && each->first < addr + bytes;) {
			if (each->second.dirty)
				complain("a store stays in the cache", each->first);
			each = lines_.erase(each);
		}
	}

	/* Nothing of a call may be left where nobody sees it. */
	void end()
	{
		for (const auto &entry : lines_)
			if (entry.second.dirty)
				complain("a store stays in the cache", entry.first);
		for (const auto &entry : on_its_way_)
			complain("a line is on its way to memory", entry.first);
		for (const Copy &copy : copies_)
			complain("a copy is not waited for", copy.gm);
		recorder->on_change = nullptr;
	}

	void complain(const char *what, uint64_t where)
	{
		char text[128];

		snprintf(text, sizeof(text), "%s: 0x%llx", what,
			static_cast<unsigned long long>(where));
		recorder->violations.push_back(text);
	}

	Recorder *recorder = nullptr;

private:
	struct Line {
		uint8_t bytes[line_bytes];
		bool dirty;
	};
	struct Copy {
		pipe_t pipe;
		uint64_t gm;
		uint64_t offset; /* in UB */
		uint32_t bytes;
		uint32_t flagged; /* by whom it may be waited for */
	};

	Line &line(uint64_t addr)
	{
		uint64_t start = addr / line_bytes * line_bytes;
		auto found = lines_.find(start);

		if (found != lines_.end())
			return found->second;
		Line &fresh = lines_[start];
		auto written = on_its_way_.find(start);

		fresh.dirty = false;
		if (written != on_its_way_.end())
			memcpy(fresh.bytes, written->second.bytes, line_bytes);
		else if (recorder->starts_stale && fetched_.count(start) == 0)
			memset(fresh.bytes, 0xcc, line_bytes);
		else
			memcpy(fresh.bytes, reinterpret_cast<const void *>(start),
				line_bytes);
		fetched_.insert(start);
		return fresh;
	}

	/* All that the NIC reads before something of @rank. */
	void expect_in_memory(uint32_t rank, const char *before)
	{
		auto early = [&](uint64_t addr, uint32_t bytes) {
			uint32_t its = recorder->nic_rank(addr, bytes);

			if (its != 0 && its < rank)
				recorder->violations.push_back(std::string(before) +
					" precedes a line that the NIC reads");
		};

		if (rank == 0)
			return;
		for (const auto &entry : lines_)
			if (entry.second.dirty)
				early(entry.first, line_bytes);
		for (const auto &entry : on_its_way_)
			early(entry.first, line_bytes);
		for (const Copy &copy : copies_)
			early(copy.gm, copy.bytes);
	}

	void carry_out(const Copy &copy)
	{
		if (copy.pipe == PIPE_MTE2) {
			memcpy(ub + copy.offset, reinterpret_cast<const void *>(copy.gm),
				copy.bytes);
			memcpy(seen_ + copy.offset, ub + copy.offset, copy.bytes);
		} else {
			copied(copy.gm, seen_ + copy.offset, copy.bytes);
		}
	}

	/* A copy has no order inside. It is told as a WQE's stores are: word by word, the
	 * one that says that all is there last. */
	void copied(uint64_t addr, const uint8_t *from, uint32_t bytes)
	{
		RecordingCore core(recorder);
		uint64_t word;
		uint32_t words = bytes < last_word + 8 || addr % 8 != 0 ? 0 : bytes & ~7u;

		for (uint32_t i = words; i < bytes; i++)
			core.store<uint8_t>(addr + i, from[i]);
		if (words == 0)
			return;
		for (uint32_t i = 0; i < words; i += 8) {
			memcpy(&word, from + i, 8);
			if (i != last_word)
				core.store<uint64_t>(addr + i, word);
		}
		memcpy(&word, from + last_word, 8);
		core.store_release<uint64_t>(addr + last_word, word);
	}

	std::map<uint64_t, Line> lines_;
	/* Lines that are no longer what an earlier kernel left of them. */
	std::set<uint64_t> fetched_;
	std::map<uint64_t, Line> on_its_way_;
	std::vector<Copy> copies_;
	uint32_t flags_[PIPE_ALL][PIPE_ALL] = {};
	uint8_t seen_[ub_bytes]; /* of UB, by the pipes */
};

/* The one core there is. */
inline AscendMachine ascend;

} // namespace nda::test

#endif
