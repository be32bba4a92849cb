/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CachedCore: a core whose memory is behind a private write-back cache of 64-byte lines
 * that knows nothing of other cores and of NICs, as unkind as a vector core's may be:
 *
 * - a line is written back whole, whether or not all of its bytes were stored;
 * - at any access any line may be evicted;
 * - what is written back is in memory at the next dsb, or any time before;
 * - a device store goes straight to memory, past all that is still on its way;
 * - a bulk copy, and the copy of a staged WQE, see and change memory alone;
 * - loads hit what was cached until it is invalidated;
 * - a line's words may be fetched at different times, with others acting in between;
 * - clean and invalidate are one operation, as dcci is: a dirty line is written back, and
 *   gone. After a clean it may be fetched again at once.
 *
 * All of it by a seed. Each clean, invalidate and dsb has a site, and one of them can be
 * suppressed.
 */
#ifndef TESTS_MOCK_CACHED_CORE_H
#define TESTS_MOCK_CACHED_CORE_H

#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include <nda/aiv/core.h>

namespace nda::test {

class Cache {
public:
	explicit Cache(uint64_t seed) : random_(seed) {}
	Cache(const Cache &) = delete;
	Cache &operator=(const Cache &) = delete;

	/* Others act: at accesses, between the fetches of a line's words, in waits. */
	std::function<void()> others;
	/* A device store to @addr has come to memory. */
	std::function<void(uint64_t addr)> on_device_store;
	/* The clean, invalidate or dsb that does nothing; n_sites: none. */
	uint32_t suppressed = aiv::n_sites;
	/* One of so many accesses evicts a line, lets a write-back arrive; 0: none does. */
	uint32_t eviction = 32;
	uint32_t arrival = 16;
	uint64_t now_ns = 0;

	/* Whether a clean, invalidate or dsb of that site was asked for. */
	bool met(uint32_t at) const { return (met_ >> at & 1) != 0; }

	template <class T>
	T load(uint64_t addr)
	{
		step();
		T value;
		memcpy(&value, bytes_of(line(addr), addr), sizeof(T));
		return value;
	}

	template <class T>
	void store(uint64_t addr, T value)
	{
		step();
		Line &l = line(addr);
		memcpy(bytes_of(l, addr), &value, sizeof(T));
		l.dirty = true;
	}

	template <class T>
	void st_dev(uint64_t addr, T value)
	{
		step();
		__atomic_store_n(reinterpret_cast<T *>(addr), value, __ATOMIC_RELEASE);
		if (on_device_store)
			on_device_store(addr);
	}

	void clean(uint32_t at, uint64_t addr, uint64_t bytes)
	{
		flush(at, addr, bytes, random_() % 2 == 0);
	}
	void invalidate(uint32_t at, uint64_t addr, uint64_t bytes)
	{
		flush(at, addr, bytes, false);
	}

	/* It takes its time. */
	void dsb(uint32_t at)
	{
		met_ |= uint64_t{1} << at;
		if (at == suppressed)
			return;
		for (uint32_t i = 0; i < 8; i++)
			step();
		land_all();
	}

	void copy(uint64_t dst, uint64_t src, uint64_t bytes)
	{
		step();
		memmove(reinterpret_cast<void *>(dst), reinterpret_cast<const void *>(src),
			bytes);
	}

	void relax()
	{
		now_ns += 1000;
		if (others)
			others();
		step();
	}

	/* What chance does, also while the core runs nothing: a later kernel may be another
	 * core's, and this one's lines are still written back some time. */
	void drift()
	{
		if (!on_its_way_.empty() && chance(arrival))
			land(random_() % on_its_way_.size());
		if (!lines_.empty() && chance(eviction)) {
			drop(lines_.find(order_[random_() % order_.size()]));
		}
	}

	/* Lines that differ, or may, from memory, or are on their way to it. */
	std::vector<uint64_t> unwritten() const
	{
		std::vector<uint64_t> found;

		for (const auto &entry : lines_)
			if (entry.second.dirty)
				found.push_back(entry.first);
		for (const Flight &flight : on_its_way_)
			found.push_back(flight.addr);
		return found;
	}

	uint8_t staging[256];

private:
	static constexpr uint64_t line_bytes = 64;

	struct Line {
		uint64_t words[line_bytes / 8];
		bool dirty;
	};
	struct Flight {
		uint64_t addr;
		uint64_t words[line_bytes / 8];
	};
	typedef std::map<uint64_t, Line> Lines;

	bool chance(uint32_t one_of) { return one_of != 0 && random_() % one_of == 0; }

	static uint8_t *bytes_of(Line &l, uint64_t addr)
	{
		return reinterpret_cast<uint8_t *>(l.words) + addr % line_bytes;
	}

	void step()
	{
		if (acting_)
			return;
		now_ns += 10;
		drift();
		act();
	}

	void act()
	{
		if (!others || acting_ || !chance(4))
			return;
		acting_ = true;
		others();
		acting_ = false;
	}

	Line &line(uint64_t addr)
	{
		uint64_t start = addr - addr % line_bytes;
		auto found = lines_.find(start);

		if (found != lines_.end())
			return found->second;
		land_line(start);
		/* The word that is asked for may be newer than its neighbours, or older. */
		Line fetched = {};
		uint32_t asked = static_cast<uint32_t>(addr % line_bytes / 8);
		bool asked_first = random_() % 2 == 0;
		for (uint32_t i = 0; i < line_bytes / 8; i++)
			if ((i == asked) == asked_first)
				fetch_word(&fetched, start, i);
		act();
		for (uint32_t i = 0; i < line_bytes / 8; i++)
			if ((i == asked) != asked_first)
				fetch_word(&fetched, start, i);
		order_.push_back(start);
		return lines_.emplace(start, fetched).first->second;
	}

	static void fetch_word(Line *l, uint64_t start, uint32_t i)
	{
		l->words[i] = __atomic_load_n(
			reinterpret_cast<const uint64_t *>(start) + i, __ATOMIC_ACQUIRE);
	}

	void flush(uint32_t at, uint64_t addr, uint64_t bytes, bool keep)
	{
		step();
		met_ |= uint64_t{1} << at;
		if (at == suppressed || bytes == 0)
			return;
		for (uint64_t start = addr - addr % line_bytes; start < addr + bytes;
			start += line_bytes) {
			auto found = lines_.find(start);

			if (found == lines_.end())
				continue;
			if (keep)
				write_back(start, &found->second);
			else
				drop(found);
		}
	}

	void drop(Lines::iterator at)
	{
		write_back(at->first, &at->second);
		order_.erase(std::find(order_.begin(), order_.end(), at->first));
		lines_.erase(at);
	}

	void write_back(uint64_t start, Line *l)
	{
		if (!l->dirty)
			return;
		l->dirty = false;
		land_line(start); /* one line's write-backs keep their order */
		Flight flight = {};
		flight.addr = start;
		memcpy(flight.words, l->words, sizeof(flight.words));
		on_its_way_.push_back(flight);
	}

	void land(size_t which)
	{
		const Flight flight = on_its_way_[which];

		on_its_way_.erase(on_its_way_.begin() + static_cast<ptrdiff_t>(which));
		for (uint32_t i = 0; i < line_bytes / 8; i++)
			__atomic_store_n(reinterpret_cast<uint64_t *>(flight.addr) + i,
				flight.words[i], __ATOMIC_RELEASE);
	}
	void land_line(uint64_t start)
	{
		for (size_t i = 0; i < on_its_way_.size(); i++)
			if (on_its_way_[i].addr == start)
				land(i--);
	}
	void land_all()
	{
		while (!on_its_way_.empty())
			land(random_() % on_its_way_.size());
	}

	std::mt19937_64 random_;
	Lines lines_;
	/* Their addresses as they came: a seed's victims are the same wherever memory is.
	 */
	std::vector<uint64_t> order_;
	std::vector<Flight> on_its_way_;
	bool acting_ = false;
	uint64_t met_ = 0;
};

/* @staged: WQEs are put together in a buffer of the core and copied. */
template <bool staged>
class BasicCachedCore {
public:
	static constexpr bool stages_wqes = staged;
	static constexpr bool has_atomics = true;

	BasicCachedCore() = default;
	explicit BasicCachedCore(Cache *cache) : cache_(cache) {}

	template <class T>
	T load(uint64_t addr) const
	{
		return cache_->load<T>(addr);
	}
	template <class T>
	void store(uint64_t addr, T value) const
	{
		cache_->store<T>(addr, value);
	}
	template <class T>
	T load_acquire(uint64_t addr) const
	{
		return cache_->load<T>(addr);
	}
	template <class T>
	void store_release(uint64_t addr, T value) const
	{
		cache_->store<T>(addr, value);
	}
	template <class T>
	void st_dev(uint64_t addr, T value) const
	{
		cache_->st_dev<T>(addr, value);
	}
	template <class T>
	T compare_swap(uint64_t addr, T compare, T swap) const
	{
		__atomic_compare_exchange_n(reinterpret_cast<T *>(addr), &compare, swap,
			false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
		return compare;
	}
	void clean(aiv::site at, uint64_t addr, uint64_t bytes) const
	{
		cache_->clean(static_cast<uint32_t>(at), addr, bytes);
	}
	void invalidate(aiv::site at, uint64_t addr, uint64_t bytes) const
	{
		cache_->invalidate(static_cast<uint32_t>(at), addr, bytes);
	}
	void dsb(aiv::site at) const { cache_->dsb(static_cast<uint32_t>(at)); }
	void copy(uint64_t dst, uint64_t src, uint64_t bytes) const
	{
		cache_->copy(dst, src, bytes);
	}
	template <class T>
	void stage(uint32_t offset, T value) const
	{
		memcpy(cache_->staging + offset, &value, sizeof(T));
	}
	void unstage(uint64_t addr, uint32_t offset, uint32_t bytes) const
	{
		cache_->copy(
			addr, reinterpret_cast<uint64_t>(cache_->staging) + offset, bytes);
	}
	uint64_t cycles() const { return cache_->now_ns; }
	uint64_t cycles_per_us() const { return 1000; }
	void relax() const { cache_->relax(); }

private:
	Cache *cache_ = nullptr;
};

typedef BasicCachedCore<false> CachedCore;
typedef BasicCachedCore<true> StagingCachedCore;

} // namespace nda::test

#endif
