/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The engines that a software NIC serves, for suites that run on each of them. */
#ifndef TESTS_SIM_ENGINES_H
#define TESTS_SIM_ENGINES_H

#include <string>

#include <gtest/gtest.h>

#include <nda/aiv/device.h>
#include <nda/aiv/soft_core.h>
#include <tests/sim/sim.h>

namespace nda::test {

template <class Engine>
struct nic_of;
template <>
struct nic_of<aiv::hns1825::Engine> {
	static constexpr const char *name = "soft:hns1825";
};

/* An engine, on the simulator (SimCore) or on threads (SoftCore). */
template <class E, class C>
struct Setting {
	using Engine = E;
	using Core = C;
};

using Engines = testing::Types<aiv::hns1825::Engine>;
using EnginesAndCores = testing::Types<Setting<aiv::hns1825::Engine, SimCore>,
	Setting<aiv::hns1825::Engine, aiv::SoftCore>>;

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
