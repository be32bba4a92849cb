/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RecordingCore: a core that keeps every store in program order, refuses accesses outside
 * the memory it was given, has a virtual clock, and lets a test act before each look at a
 * word.
 */
#ifndef TESTS_MOCK_RECORDING_CORE_H
#define TESTS_MOCK_RECORDING_CORE_H

#include <stdint.h>
#include <stdio.h>

#include <functional>
#include <string>
#include <vector>

#include <nda/aiv/host_core.h>

namespace nda::test {

struct Store {
	enum Kind {
		plain,
		release,
		device,
		copied, /* by a bulk copy */
	} kind;
	uint64_t addr;
	uint32_t bytes;
	uint64_t value;
};

class Recorder {
public:
	std::vector<Store> stores;
	std::vector<std::string> violations;
	std::function<void(uint64_t)> before_look;
	std::function<void()> on_relax;
	/* For a core with a cache: says what of its stores has not come to memory. */
	std::function<void()> at_end;
	/* ... drops what it has of memory that the test changes between calls. */
	std::function<void(uint64_t addr, uint64_t bytes)> on_change;
	/* ... and that its cache holds an old state of everything. */
	bool starts_stale = false;
	uint64_t now_ns = 0;
	uint64_t relaxed = 0;

	/* Allows accesses to @bytes at @addr. */
	void add_memory(uint64_t addr, uint64_t bytes) { memory_.push_back({addr, bytes}); }

	/* ... that the NIC reads as well: what has a higher @rank only after all that has a
	 * lower one; from 1 on, below beyond_nic_memory. */
	static constexpr uint32_t requests = 1, record = 2, beyond_nic_memory = 3;
	void add_nic_memory(uint64_t addr, uint64_t bytes, uint32_t rank)
	{
		add_memory(addr, bytes);
		nic_memory_.push_back({{addr, bytes}, rank});
	}
	/* Of memory that overlaps @bytes at @addr; 0: the NIC reads nothing there. */
	uint32_t nic_rank(uint64_t addr, uint64_t bytes) const
	{
		for (const NicRange &range : nic_memory_)
			if (addr < range.at.addr + range.at.bytes &&
				range.at.addr < addr + bytes)
				return range.rank;
		return 0;
	}

	/* After the test has changed memory that a core may have looked at. */
	void changed(uint64_t addr, uint64_t bytes)
	{
		if (on_change)
			on_change(addr, bytes);
	}

	/* After the last call of a core. */
	void end()
	{
		/* It may end itself. */
		if (auto end = std::exchange(at_end, nullptr))
			end();
	}

	bool allowed(uint64_t addr, uint64_t bytes, const char *what)
	{
		for (const Range &range : memory_)
			if (addr >= range.addr && addr - range.addr <= range.bytes &&
				bytes <= range.bytes - (addr - range.addr))
				return addr % bytes == 0 ||
					complain(what, addr, bytes, "misaligned");
		return complain(what, addr, bytes, "outside the queue's memory");
	}

private:
	struct Range {
		uint64_t addr;
		uint64_t bytes;
	};

	struct NicRange {
		Range at;
		uint32_t rank;
	};

	bool complain(const char *what, uint64_t addr, uint64_t bytes, const char *why)
	{
		char text[128];

		snprintf(text, sizeof(text), "%s of %llu bytes at 0x%llx is %s", what,
			static_cast<unsigned long long>(bytes),
			static_cast<unsigned long long>(addr), why);
		violations.push_back(text);
		return false;
	}

	std::vector<Range> memory_;
	std::vector<NicRange> nic_memory_;
};

class RecordingCore {
public:
	static constexpr bool stages_wqes = false;
	static constexpr bool has_atomics = true;

	RecordingCore() = default;
	explicit RecordingCore(Recorder *recorder) : recorder_(recorder) {}

	template <class T>
	T load(uint64_t addr) const
	{
		return recorder_->allowed(addr, sizeof(T), "load") ? host_.load<T>(addr)
								   : T{};
	}

	template <class T>
	void store(uint64_t addr, T value) const
	{
		if (!recorder_->allowed(addr, sizeof(T), "store"))
			return;
		recorder_->stores.push_back({Store::plain, addr, sizeof(T), value});
		host_.store<T>(addr, value);
	}

	template <class T>
	T load_acquire(uint64_t addr) const
	{
		if (!recorder_->allowed(addr, sizeof(T), "load"))
			return T{};
		if (recorder_->before_look)
			recorder_->before_look(addr);
		return host_.load_acquire<T>(addr);
	}

	template <class T>
	void store_release(uint64_t addr, T value) const
	{
		if (!recorder_->allowed(addr, sizeof(T), "store"))
			return;
		recorder_->stores.push_back({Store::release, addr, sizeof(T), value});
		host_.store_release<T>(addr, value);
	}

	template <class T>
	void st_dev(uint64_t addr, T value) const
	{
		if (!recorder_->allowed(addr, sizeof(T), "device store"))
			return;
		recorder_->stores.push_back({Store::device, addr, sizeof(T), value});
		host_.store_release<T>(addr, value);
	}

	template <class T>
	T compare_swap(uint64_t addr, T compare, T swap) const
	{
		return host_.compare_swap<T>(addr, compare, swap);
	}
	void clean(aiv::site, uint64_t, uint64_t) const {}
	void invalidate(aiv::site, uint64_t, uint64_t) const {}
	void dsb(aiv::site) const {}

	/* A store of each byte. */
	void copy(uint64_t dst, uint64_t src, uint64_t bytes) const
	{
		for (uint64_t i = 0; i < bytes; i++) {
			uint8_t byte = load<uint8_t>(src + i);

			if (!recorder_->allowed(dst + i, 1, "copy"))
				return;
			recorder_->stores.push_back({Store::copied, dst + i, 1, byte});
			host_.store<uint8_t>(dst + i, byte);
		}
	}

	uint64_t cycles() const { return recorder_->now_ns; }
	uint64_t cycles_per_us() const { return 1000; }

	void relax() const
	{
		recorder_->now_ns += 1000;
		recorder_->relaxed++;
		if (recorder_->on_relax)
			recorder_->on_relax();
	}

private:
	Recorder *recorder_ = nullptr;
	aiv::HostCore host_;
};

} // namespace nda::test

#endif
