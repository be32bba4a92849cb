/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The engines that a software NIC serves, for suites that run on each of them. */
#ifndef TESTS_SIM_ENGINES_H
#define TESTS_SIM_ENGINES_H

#include <string>

#include <gtest/gtest.h>

#include <nda/aiv/device.h>
#include <nda/aiv/in_die_queue.h>
#include <nda/aiv/soft_core.h>
#include <nda/aiv/udma_queue.h>
#include <nda/aiv/xscale_queue.h>
#include <tests/sim/sim.h>

namespace nda::test {

template <class Engine>
struct nic_of;
template <>
struct nic_of<aiv::hns1825::Engine> {
	static constexpr const char *name = "soft:hns1825";
};
template <>
struct nic_of<aiv::in_die::Engine> {
	static constexpr const char *name = "soft:in_die";
};
template <>
struct nic_of<aiv::xscale::Engine> {
	static constexpr const char *name = "soft:xscale";
};
template <>
struct nic_of<aiv::udma::Engine> {
	static constexpr const char *name = "soft:udma";
};

/* An engine, on the simulator (SimCore) or on threads (SoftCore). */
template <class E, class C>
struct Setting {
	using Engine = E;
	using Core = C;
};

template <class... All>
struct on_both_cores {
	using type =
		testing::Types<Setting<All, SimCore>..., Setting<All, aiv::SoftCore>...>;
};
template <class... All>
on_both_cores<All...> both(testing::Types<All...>);

using Engines = testing::Types<aiv::hns1825::Engine, aiv::in_die::Engine,
	aiv::xscale::Engine, aiv::udma::Engine>;
using EnginesAndCores = decltype(both(Engines()))::type;

template <class... All>
struct index_in {
	template <class Engine>
	static constexpr uint64_t find()
	{
		uint64_t at = 0;

		(void)((std::is_same<Engine, All>::value ? true : (at++, false)) || ...);
		return at;
	}
	static constexpr uint64_t count = sizeof...(All);
};
template <class... All>
index_in<All...> as_index(testing::Types<All...>);

constexpr uint64_t n_engines = decltype(as_index(Engines()))::count;
template <class Engine>
constexpr uint64_t engine_index()
{
	return decltype(as_index(Engines()))::template find<Engine>();
}

/* For the names of tests. */
struct EngineName {
	template <class Engine>
	static std::string GetName(int)
	{
		return nic_of<Engine>::name + 5;
	}
};

struct SettingName {
	template <class S>
	static std::string GetName(int)
	{
		return std::string(nic_of<typename S::Engine>::name + 5) +
			(std::is_same<typename S::Core, SimCore>::value ? "_simulated"
									: "_threads");
	}
};

} // namespace nda::test

#endif
