/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The engines that a software NIC serves, for suites that run on each of them. */
#ifndef TESTS_SIM_ENGINES_H
#define TESTS_SIM_ENGINES_H

#include <string>

#include <gtest/gtest.h>

#include <nda/aiv/device.h>

namespace nda::test {

template <class Engine>
struct nic_of;
template <>
struct nic_of<aiv::hns1825::Engine> {
	static constexpr const char *name = "soft:hns1825";
};

using Engines = testing::Types<aiv::hns1825::Engine>;

/* For the names of tests. */
struct EngineName {
	template <class Engine>
	static std::string GetName(int)
	{
		return nic_of<Engine>::name + 5;
	}
};

} // namespace nda::test

#endif
