/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Programs of the data plane on two cores with caches of their own, which take turns as
 * kernels on one table do, over a NIC that sees memory alone. What is compared: the peer's
 * memory, what came back, statuses, and what the host reads in the table.
 *
 * Nic, one per queue format, is a rig and its trigger:
 *
 *   Engine, and a constructor from Setup
 *   address(), table(), queue()      the table and the queue to PE 1
 *   own(), peer()                    heaps of heap_bytes; the program stays in
 *                                    [program_begin, program_end) of them
 *   on_device_store(addr)            a doorbell may have been rung
 *   step(most)                       takes up to so many WQEs of what was rung for
 *   fail()                           fails the next of them, at its next step
 *   vendor                           what its completion says beside the status
 *   fault()                          what the driver did wrong, or nothing
 */
#ifndef TESTS_MOCK_CACHED_WORLD_H
#define TESTS_MOCK_CACHED_WORLD_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <deque>
#include <random>
#include <string>
#include <vector>

#include <nda/aiv/device.h>
#include <nda/table.h>
#include <tests/mock/cached_core.h>

namespace nda::test {

struct Setup {
	uint32_t depth;
	uint32_t signal_every;
	uint32_t start; /* first index */
	bool records;   /* in memory, where a format can do without */
};

constexpr uint64_t heap_bytes = 65536;
constexpr uint64_t program_begin = 0x1000;
constexpr uint64_t program_end = 0xc000;

/* The first whole line in @bytes, of which one is spare. */
inline uint8_t *line_in(std::vector<uint8_t> &bytes)
{
	return reinterpret_cast<uint8_t *>(
		(reinterpret_cast<uintptr_t>(bytes.data()) + 63) & ~uintptr_t{63});
}

/* What a run is told, and what it found. */
struct CachedOptions {
	uint64_t seed = 1;
	uint32_t suppressed = aiv::n_sites;
	/* After each call nothing of the data plane may be dirty or on its way. */
	bool check_unwritten = false;
};

struct CachedOutcome {
	std::vector<std::string> problems; /* the first ends the run */
	uint64_t met = 0;                  /* a bit per site */
};

template <class Nic, class Core>
class World {
	typedef typename Nic::Engine Engine;
	typedef aiv::Device<Core, Engine> Device;

public:
	explicit World(const CachedOptions &options)
		: options_(options), random_(options.seed), nic_(setup())
	{
		caches_.emplace_back(random_());
		caches_.emplace_back(random_());
		static const uint32_t evictions[] = {0, 4, 32, 256};
		static const uint32_t arrivals[] = {0, 3, 16};
		static const uint32_t paces[] = {2, 2, 8, 32};

		nic_pace_ = paces[pick(4)];
		for (Cache &cache : caches_) {
			cache.suppressed = options.suppressed;
			cache.eviction = evictions[pick(4)];
			cache.arrival = arrivals[pick(3)];
			cache.others = [this] { others(); };
			cache.on_device_store = [this](uint64_t addr) {
				nic_.on_device_store(addr);
				if (pick(nic_pace_) == 0)
					step_nic();
			};
		}
		for (uint64_t i = program_begin; i < program_end; i++)
			nic_.peer()[i] = static_cast<uint8_t>(random_());
		memset(nic_.peer() + sync_area, 0, NDA_SYNC_BYTES);
		memset(nic_.own() + sync_area, 0, NDA_SYNC_BYTES);
		expected_.assign(nic_.peer(), nic_.peer() + heap_bytes);
		nic_.table()->sync_area = own(sync_area);
	}

	void traffic()
	{
		start_kernel(0);
		for (uint32_t i = 0; i < 60 && good(); i++) {
			operate();
			settled();
		}
		if (good())
			quiet();
	}

	/* Signals from both cores, whose words lie side by side until the NIC has read
	 * them. */
	void signals()
	{
		start_kernel(0);
		for (uint32_t i = 0; i < 60 && good(); i++) {
			signal();
			settled();
			if (pick(3) == 0)
				start_kernel(pick(2));
		}
		quiet();
	}

	void meetings()
	{
		peer_answers_ = true;
		start_kernel(0);
		for (uint32_t i = 0; i < 12 && good(); i++) {
			uint64_t value = i + 1;

			expect_ok("sync", device_.sync_all());
			put_some(8);
			expect_ok("barrier", device_.barrier_all());
			compare_peer();
			waited_value_ = value;
			if (device_.template test<uint64_t>(
				    own(waited_word), aiv::cmp::eq, value))
				problem("a word had its value before it was written");
			waited_in_ = 1 + pick(50);
			expect_ok("wait",
				device_.template wait_until<uint64_t>(
					own(waited_word), aiv::cmp::eq, value));
			settled();
			if (pick(2) == 0)
				start_kernel(pick(2));
		}
	}

	void failure()
	{
		start_kernel(0);
		put_some(1 + pick(3));
		expect_ok("quiet", device_.quiet(pe));
		nic_stopped_ = true;
		put_some(2);
		fails_in_ = 1 + pick(100);
		enum nda_status status = device_.quiet(pe);
		if (status == NDA_OK || status == NDA_TIMEOUT)
			problem("a failure ends in status %d", status);
		settled();
		const nda_queue_error &error = nic_.queue().state.error;
		if (good() && error.status != status)
			problem("the host reads status %u, the core %d", error.status,
				status);
		if (good() && error.raw_vendor != nic_.vendor)
			problem("the vendor's code is 0x%x", error.raw_vendor);
		for (uint32_t i = 0; i < 3 && good(); i++) {
			start_kernel(pick(2));
			enum nda_status again =
				device_.put_nbi(pe, own(put_area), own(source_area), 8);
			if (again != status)
				problem("after status %d a put returns %d", status, again);
		}
	}

	void abortion()
	{
		start_kernel(0);
		put_some(1);
		expect_ok("quiet", device_.quiet(pe));
		nic_stopped_ = true;
		put_some(1);
		abort_in_ = 1 + pick(300);
		enum nda_status status = device_.quiet(pe);
		if (status != NDA_ABORTED)
			problem("an aborted wait ends in status %d", status);
	}

	/* The host changes the table between kernels. */
	void publication()
	{
		nda_table whole = *nic_.table();

		memset(static_cast<void *>(nic_.table()), 0, sizeof(whole));
		if (open(0) != NDA_BAD_TABLE)
			problem("a table that is not there is opened");
		*nic_.table() = whole;
		start_kernel(0);
		put_some(2);
		quiet();
		for (uint32_t i = 0; i < 4 && good(); i++) {
			nda_queue_state &state = nic_.queue().state;
			nda_queue_state before = state;

			state.flags = NDA_QUEUE_IN_VIEW;
			state.limit = state.head;
			start_kernel(pick(2));
			enum nda_status status =
				device_.put_nbi(pe, own(put_area), own(source_area), 8);
			if (status != NDA_QUEUE_LENT)
				problem("a put on a lent queue returns %d", status);
			state = before;
			start_kernel(pick(2));
			put_some(1);
			quiet();
		}
	}

	/* Operations on the own PE, where there is no queue to it. */
	void alone()
	{
		if constexpr (!Engine::reaches_itself)
			operate_alone();
	}

	bool good() { return problems_.empty() && no_fault(); }

	void report(CachedOutcome *outcome)
	{
		good();
		outcome->problems = problems_;
		for (Cache &cache : caches_)
			for (uint32_t at = 0; at < aiv::n_sites; at++)
				outcome->met |= uint64_t{cache.met(at)} << at;
	}

private:
	static constexpr uint32_t pe = 1;
	static constexpr uint64_t slot_bytes = 256;
	static constexpr uint32_t n_slots = 16;
	static constexpr uint32_t n_words = 8;
	/* Offsets in the heaps. */
	static constexpr uint64_t source_area = 0x1000;
	static constexpr uint64_t put_area = 0x2000;
	static constexpr uint64_t get_area = 0x4000;
	static constexpr uint64_t got_area = 0x5000;
	static constexpr uint64_t signal_area = 0x6000;
	static constexpr uint64_t atomic_area = 0x7000;
	static constexpr uint64_t result_area = 0x8000;
	static constexpr uint64_t sync_area = 0x9000;
	static constexpr uint64_t waited_word = 0xa000;

	struct Got {
		uint64_t offset;
		std::vector<uint8_t> bytes;
	};
	struct Result {
		uint32_t index;
		uint64_t former;
	};

	__attribute__((format(printf, 2, 3))) void problem(const char *text, ...)
	{
		char line[256];
		va_list args;

		va_start(args, text);
		vsnprintf(line, sizeof(line), text, args);
		va_end(args);
		problems_.push_back(line);
	}
	bool no_fault()
	{
		if (!nic_.fault().empty())
			problem("the NIC: %s", nic_.fault().c_str());
		return problems_.empty();
	}
	void expect_ok(const char *what, enum nda_status status)
	{
		if (status != NDA_OK)
			problem("%s returns status %d", what, status);
	}

	uint32_t pick(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
	uint64_t own(uint64_t offset)
	{
		return reinterpret_cast<uint64_t>(nic_.own()) + offset;
	}
	Cache &cache() { return caches_[running_]; }
	Core core() { return Core(&cache()); }

	Setup setup()
	{
		static const uint32_t depths[] = {4, 8, 16};
		static const uint32_t starts[] = {0, 0, 0xfffdu, 0xfffffdu, 0xfffffffdu};
		Setup s;

		s.depth = depths[pick(3)];
		s.signal_every = 1 + pick(s.depth / 2);
		s.start = starts[pick(5)];
		s.records = pick(2) == 0;
		return s;
	}

	/* ---- Whoever acts beside the running core ---- */

	void others()
	{
		if (pick(nic_pace_) == 0)
			step_nic();
		caches_[1 - running_].drift();
		if (peer_answers_)
			answer();
		if (waited_in_ != 0 && --waited_in_ == 0)
			word(nic_.own(), waited_word, waited_value_);
		if (fails_in_ != 0 && --fails_in_ == 0)
			nic_.fail();
		if (abort_in_ != 0 && --abort_in_ == 0)
			__atomic_store_n(&nic_.table()->abort, 1u, __ATOMIC_RELEASE);
	}

	void step_nic()
	{
		if (!nic_stopped_ && nic_.fault().empty())
			nic_.step(pick(2) == 0 ? 1 + pick(3) : UINT32_MAX);
	}

	static void word(uint8_t *heap, uint64_t offset, uint64_t value)
	{
		__atomic_store_n(reinterpret_cast<uint64_t *>(heap + offset), value,
			__ATOMIC_RELEASE);
	}
	static uint64_t word(const uint8_t *heap, uint64_t offset)
	{
		return __atomic_load_n(reinterpret_cast<const uint64_t *>(heap + offset),
			__ATOMIC_ACQUIRE);
	}

	/* The peer's part of a sync: to each epoch, one after the other, its own. */
	void answer()
	{
		uint64_t epoch = word(nic_.peer(), sync_area);

		if (epoch == answered_)
			return;
		if (epoch != answered_ + 1)
			problem("epoch %llu follows %llu",
				static_cast<unsigned long long>(epoch),
				static_cast<unsigned long long>(answered_));
		answered_ = epoch;
		word(expected_.data(), sync_area, epoch);
		word(nic_.own(), sync_area, epoch);
	}

	/* ---- The program ---- */

	enum nda_status open(uint32_t which)
	{
		running_ = which;
		device_ = Device();
		return device_.open(core(), nic_.address(), 0);
	}
	void start_kernel(uint32_t which) { expect_ok("open", open(which)); }

	/* Nothing of a call may be left in the cache: its core may be the next kernel's or
	 * not. What the caller wrote is cleaned by it. */
	void settled()
	{
		if (!options_.check_unwritten || !good())
			return;
		for (uint64_t line : cache().unwritten())
			problem("0x%llx is left unwritten (table 0x%llx, heap 0x%llx)",
				static_cast<unsigned long long>(line),
				static_cast<unsigned long long>(nic_.address()),
				static_cast<unsigned long long>(own(0)));
	}

	void operate()
	{
		switch (pick(16)) {
		case 0:
		case 1:
		case 2:
			put();
			break;
		case 3:
		case 4:
			get();
			break;
		case 5:
		case 6:
			signal();
			break;
		case 7:
			atomic();
			break;
		case 8:
			fetch();
			break;
		case 9:
			batch();
			break;
		case 10:
			expect_ok("fence", device_.fence(pe));
			break;
		case 11:
			put_inline();
			break;
		case 12:
			put_signal();
			break;
		case 13:
			start_kernel(pick(2));
			break;
		case 14:
			start_kernel(1 - running_);
			break;
		default:
			quiet();
			break;
		}
	}

	/* A slot of the sources with @n new bytes at @at in it; waits where it may still be
	 * read. Offset in the own heap. */
	uint64_t source(uint64_t at, uint64_t n)
	{
		if (next_source_ == n_slots)
			quiet();
		uint64_t offset = source_area + slot_bytes * next_source_++ + at;
		Core c = core();

		for (uint64_t i = 0; i < n; i++)
			c.template store<uint8_t>(
				own(offset + i), static_cast<uint8_t>(random_()));
		c.clean(aiv::site::caller, own(offset), n);
		c.dsb(aiv::site::caller);
		return offset;
	}

	/* What a put of those bytes makes of the peer. */
	void expect_put(uint64_t dst, uint64_t src, uint64_t n)
	{
		memcpy(expected_.data() + dst, nic_.own() + src, n);
	}

	void put(bool may_wait = true)
	{
		uint64_t n = 1 + pick(200), at = pick(40);
		uint64_t src = source(at, n);
		uint64_t dst = put_area + slot_bytes * pick(n_slots) + at;

		expect_put(dst, src, n);
		if (may_wait && pick(8) == 0) {
			expect_ok("put", device_.put(pe, own(dst), own(src), n));
			done();
		} else {
			expect_ok("put_nbi", device_.put_nbi(pe, own(dst), own(src), n));
		}
	}

	void put_some(uint32_t n)
	{
		for (uint32_t i = 0; i < n && good(); i++)
			put(false);
	}

	void put_inline()
	{
		if constexpr (Engine::has_inline) {
			uint64_t n = 1 + pick(16);
			uint64_t src = source(0, n), dst = put_area + slot_bytes * pick(16);

			expect_put(dst, src, n);
			expect_ok("put_inline",
				device_.put_inline_nbi(pe, own(dst), own(src), n));
		} else {
			put();
		}
	}

	void get()
	{
		if (gets_.size() == n_slots)
			quiet();
		uint64_t n = 1 + pick(200), at = pick(40);
		uint64_t src = get_area + slot_bytes * pick(n_slots) + at;
		uint64_t dst = got_area + slot_bytes * gets_.size() + at;

		gets_.push_back({dst,
			{expected_.begin() + static_cast<ptrdiff_t>(src),
				expected_.begin() + static_cast<ptrdiff_t>(src + n)}});
		expect_ok("get_nbi", device_.get_nbi(pe, own(dst), own(src), n));
	}

	void signal()
	{
		uint64_t dst = signal_area + 8 * pick(n_words), value = random_();

		word(expected_.data(), dst, value);
		expect_ok("signal", device_.signal_nbi(pe, own(dst), value));
	}

	void put_signal()
	{
		uint64_t n = 1 + pick(200);
		uint64_t src = source(0, n), dst = put_area + slot_bytes * pick(n_slots);
		uint64_t sig = signal_area + 8 * pick(n_words), value = random_();

		expect_put(dst, src, n);
		word(expected_.data(), sig, value);
		expect_ok("put_signal",
			device_.put_signal_nbi(pe, own(dst), own(src), n, own(sig), value));
	}

	void atomic()
	{
		if constexpr (!Engine::supports(aiv::verb::fetch_add, 8))
			return put();
		if (results_.size() == n_words)
			quiet();
		uint32_t index = static_cast<uint32_t>(results_.size());
		uint64_t dst = atomic_area + 8 * pick(n_words), value = random_();
		uint64_t former = word(expected_.data(), dst);
		uint64_t result = own(result_area + 8 * index);

		results_.push_back({index, former});
		if (pick(2) == 0) {
			word(expected_.data(), dst, former + value);
			expect_ok("fetch_add",
				device_.template fetch_add_nbi<uint64_t>(
					pe, own(dst), value, result));
		} else {
			word(expected_.data(), dst, value);
			expect_ok("compare_swap",
				device_.template compare_swap_nbi<uint64_t>(
					pe, own(dst), former, value, result));
		}
	}

	/* The same, waited for. */
	void fetch()
	{
		if constexpr (!Engine::supports(aiv::verb::fetch_add, 8))
			return get();
		uint64_t dst = atomic_area + 8 * pick(n_words), value = random_(), former;
		uint64_t expected = word(expected_.data(), dst);

		word(expected_.data(), dst, expected + value);
		enum nda_status status =
			device_.template fetch_add<uint64_t>(pe, own(dst), value, &former);
		expect_ok("fetch_add", status);
		if (status != NDA_OK)
			return;
		if (former != expected)
			problem("an atomic returns 0x%llx, not 0x%llx",
				static_cast<unsigned long long>(former),
				static_cast<unsigned long long>(expected));
		done();
	}

	void batch()
	{
		uint32_t n = pick(6);
		uint64_t src[6];

		if (next_source_ + n > n_slots)
			quiet();
		for (uint32_t i = 0; i < n; i++)
			src[i] = source(0, 64);
		auto b = device_.batch(pe);
		for (uint32_t i = 0; i < n; i++) {
			uint64_t dst = put_area + slot_bytes * pick(n_slots);

			expect_put(dst, src[i], 64);
			expect_ok("batch", b.put_nbi(own(dst), own(src[i]), 64));
			expect_ok("batch of nothing", b.put_nbi(own(dst), own(src[i]), 0));
		}
		if (n == 0)
			expect_ok("batch of nothing", b.put_nbi(own(0), own(0), 0));
		expect_ok("submit", b.submit());
	}

	void quiet()
	{
		if (!good())
			return;
		expect_ok("quiet", device_.quiet(pe));
		done();
	}

	/* Everything posted is done: what was it? */
	void done()
	{
		if (!good())
			return;
		compare_peer();
		for (const Got &got : gets_) {
			core().invalidate(
				aiv::site::caller, own(got.offset), got.bytes.size());
			for (uint64_t i = 0; i < got.bytes.size() && good(); i++)
				if (core().template load<uint8_t>(own(got.offset + i)) !=
					got.bytes[i])
					problem("a get leaves a wrong byte at 0x%llx",
						static_cast<unsigned long long>(
							got.offset + i));
		}
		for (const Result &r : results_) {
			uint64_t former = device_.template read_result<uint64_t>(
				own(result_area + 8 * r.index));

			if (former != r.former)
				problem("an atomic leaves 0x%llx, not 0x%llx",
					static_cast<unsigned long long>(former),
					static_cast<unsigned long long>(r.former));
		}
		gets_.clear();
		results_.clear();
		next_source_ = 0;
	}

	void compare_peer()
	{
		if (memcmp(nic_.peer() + program_begin, expected_.data() + program_begin,
			    program_end - program_begin) == 0)
			return;
		for (uint64_t i = program_begin; i < program_end && good(); i++)
			if (nic_.peer()[i] != expected_[i])
				problem("the peer has a wrong byte at 0x%llx",
					static_cast<unsigned long long>(i));
	}

	void operate_alone()
	{
		start_kernel(0);
		for (uint32_t i = 0; i < 20 && good(); i++) {
			uint64_t n = 1 + pick(200);
			uint64_t src = source(0, n), dst = put_area + slot_bytes * pick(16);
			uint64_t sig = signal_area + 8 * pick(n_words), value = random_();

			expect_ok("put",
				device_.put_signal_nbi(
					0, own(dst), own(src), n, own(sig), value));
			expect_ok("quiet", device_.quiet(0));
			if (memcmp(nic_.own() + dst, nic_.own() + src, n) != 0)
				problem("a put to the own PE is not done");
			if (word(nic_.own(), sig) != value)
				problem("a signal to the own PE is not done");
			uint64_t at = own(atomic_area + 8 * pick(n_words));
			uint64_t result = own(result_area + 8 * pick(n_words));
			uint64_t former = word(nic_.own(), at - own(0));
			expect_ok("fetch_add",
				device_.template fetch_add_nbi<uint64_t>(
					0, at, value, result));
			expect_ok("quiet", device_.quiet(0));
			if (word(nic_.own(), at - own(0)) != former + value)
				problem("an atomic on the own PE is not done");
			if (device_.template read_result<uint64_t>(result) != former ||
				word(nic_.own(), result - own(0)) != former)
				problem("an atomic on the own PE leaves a wrong value");
			settled();
			start_kernel(pick(2));
			next_source_ = 0;
		}
	}

	CachedOptions options_;
	std::mt19937_64 random_;
	Nic nic_;
	std::deque<Cache> caches_; /* two */
	uint32_t running_ = 0;
	Device device_;
	std::vector<uint8_t> expected_; /* of the peer */
	std::vector<std::string> problems_;
	std::vector<Got> gets_;
	std::vector<Result> results_;
	uint32_t next_source_ = 0;
	uint32_t nic_pace_ = 1; /* it steps in one of so many turns */
	bool nic_stopped_ = false;
	bool peer_answers_ = false;
	uint64_t answered_ = 0;
	uint64_t waited_value_ = 0;
	uint32_t waited_in_ = 0; /* turns */
	uint32_t fails_in_ = 0;
	uint32_t abort_in_ = 0;
};

/* All programs, each in a world of its own, until one has a problem. */
template <class Nic, class Core>
CachedOutcome run_programs(const CachedOptions &options)
{
	typedef World<Nic, Core> W;
	void (W::*const programs[])() = {&W::traffic, &W::signals, &W::meetings,
		&W::failure, &W::abortion, &W::publication, &W::alone};
	CachedOutcome outcome;

	for (auto program : programs) {
		W world(options);

		(world.*program)();
		world.report(&outcome);
		if (!outcome.problems.empty())
			break;
	}
	return outcome;
}

/* The programs over one engine. */
struct CachedEngine {
	const char *name;
	CachedOutcome (*run)(const CachedOptions &options, bool staged);
};

template <class Nic>
CachedOutcome run_engine(const CachedOptions &options, bool staged)
{
	return staged ? run_programs<Nic, StagingCachedCore>(options)
		      : run_programs<Nic, CachedCore>(options);
}

extern const CachedEngine cached_hns1825;
extern const CachedEngine cached_in_die;
extern const CachedEngine cached_rxe;
extern const CachedEngine cached_udma;
extern const CachedEngine cached_xscale;

} // namespace nda::test

#endif
