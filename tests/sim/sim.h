/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Runs cores and device models one at a time, in an order and by a clock that follow from a
 * seed alone: one seed, one execution.
 *
 *	Sim sim(seed);
 *	sim.add_core([&](SimCore core) { ... });
 *	sim.add_model([&] { model.step(); });
 *	EXPECT_TRUE(sim.run());
 *
 * A core is a fiber of the calling thread. It gives up its turn in relax() and, now and
 * then, at an access that others may see. A model is a function, called in between.
 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include <stdint.h>

#include <functional>
#include <memory>
#include <random>
#include <vector>

#include <nda/aiv/host_core.h>
#include <tests/sim/fiber.h>

namespace nda::test {

class SimCore;

class Sim {
public:
	/* @limit_us: of virtual time; what has not ended by then has failed. */
	explicit Sim(uint64_t seed, uint64_t limit_us = 1000000)
		: random_(seed), limit_ns_(limit_us * 1000)
	{}

	Sim(const Sim &) = delete;
	Sim &operator=(const Sim &) = delete;

	void add_core(std::function<void(SimCore)> body);
	void add_model(std::function<void()> step) { models_.push_back(std::move(step)); }

	/* Until every core has returned. False if the limit came first: the clock then runs
	 * away, so that every wait with a deadline ends. */
	bool run();

	uint64_t now_ns() const { return now_ns_; }
	/* Of the order in which everything ran. */
	uint64_t trace() const { return trace_; }

private:
	friend class SimCore;

	void maybe_give_up_turn(Fiber *core);

	std::vector<std::unique_ptr<Fiber>> cores_;
	std::vector<std::function<void()>> models_;
	std::mt19937_64 random_;
	uint64_t limit_ns_;
	uint64_t now_ns_ = 0;
	uint64_t trace_ = 0;
};

/* A core of Sim. */
class SimCore {
public:
	static constexpr bool stages_wqes = false;
	static constexpr bool has_atomics = true;

	SimCore() = default;
	SimCore(Sim *sim, Fiber *fiber) : sim_(sim), fiber_(fiber) {}

	template <class T>
	T load(uint64_t addr) const
	{
		return host_.load<T>(addr);
	}
	template <class T>
	void store(uint64_t addr, T value) const
	{
		host_.store<T>(addr, value);
	}
	template <class T>
	T load_acquire(uint64_t addr) const
	{
		sim_->maybe_give_up_turn(fiber_);
		return host_.load_acquire<T>(addr);
	}
	template <class T>
	void store_release(uint64_t addr, T value) const
	{
		sim_->maybe_give_up_turn(fiber_);
		host_.store_release<T>(addr, value);
	}
	template <class T>
	void st_dev(uint64_t addr, T value) const
	{
		sim_->maybe_give_up_turn(fiber_);
		host_.st_dev(addr, value);
	}
	template <class T>
	T compare_swap(uint64_t addr, T compare, T swap) const
	{
		sim_->maybe_give_up_turn(fiber_);
		return host_.compare_swap<T>(addr, compare, swap);
	}
	void clean(aiv::site, uint64_t, uint64_t) const {}
	void invalidate(aiv::site, uint64_t, uint64_t) const {}
	void dsb(aiv::site) const {}
	void copy(uint64_t dst, uint64_t src, uint64_t bytes) const
	{
		host_.copy(dst, src, bytes);
	}
	uint64_t cycles() const { return sim_->now_ns(); }
	uint64_t cycles_per_us() const { return 1000; }
	void relax() const { fiber_->yield(); }

private:
	Sim *sim_ = nullptr;
	Fiber *fiber_ = nullptr;
	aiv::HostCore host_;
};

} // namespace nda::test

#endif
