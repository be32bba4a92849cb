/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Random programs on every engine, see tests/sim/program.h.
 *
 *	random_programs_test [--engine=hns1825] [--seed=N] [--count=N] [--threads]
 *
 * --count is of each engine. A program is named by its seed alone: one that fails prints
 *the command that runs it again.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <tests/sim/engines.h>
#include <tests/sim/player.h>

namespace {

using namespace nda;
using namespace nda::test;

/* Seeds of a block share a world. */
constexpr uint64_t block = 64;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t all_programs = 2000;
#else
constexpr uint64_t all_programs = 20000;
#endif
constexpr uint64_t all_threaded_programs = 200;

struct {
	const char *engine = nullptr;
	uint64_t seed = 0;
	uint64_t count = 0; /* 0: of the check */
	bool threads = false;
} options;

uint64_t share(uint64_t all, uint64_t part, uint64_t parts)
{
	return all / parts + (part < all % parts);
}

template <class Engine, class Core>
class Programs {
public:
	static constexpr bool simulated = std::is_same<Core, SimCore>::value;

	/* False, and told, if one fails. */
	static bool run(uint64_t first, uint64_t count)
	{
		std::unique_ptr<World> world;
		const Abilities abilities = abilities_of<Engine>();
		uint64_t of_world = UINT64_MAX;
		Shape shape = {};

		for (uint64_t seed = first; seed < first + count; seed++) {
			if (seed / block != of_world) {
				of_world = seed / block;
				world.reset();
				world = std::make_unique<World>(world_of_block(
					of_world, nic_of<Engine>::name, simulated, &shape));
			}
			Program program = make_program(seed, shape, abilities);
			std::string why = run_one(program, world.get(), nullptr);
			if (why.empty())
				continue;
			ADD_FAILURE()
				<< why << "\nworld: " << world->options().n_pes
				<< " PEs, signal_every " << world->options().signal_every
				<< ", inject \"" << world->options().inject << "\"\n"
				<< program.text()
				<< "again: build/tests/random_programs_test --engine="
				<< nic_of<Engine>::name + 5 << " --seed=" << seed
				<< " --count=1" << (simulated ? "" : " --threads");
			return false;
		}
		return true;
	}

	/* What went wrong. @trace: of the order of everything, where simulated. */
	static std::string run_one(const Program &program, World *world, uint64_t *trace)
	{
		world->restart(program.sq_index, program.cq_index);
		Run run(program, world);
		Gates gates(program.shape.n_pes);
		uint64_t violations = world->violations();

		if constexpr (simulated) {
			Sim sim(program.seed);
			bool in_time = world->run(
				&sim, [&](uint32_t pe, uint32_t index, SimCore core) {
					Player<Core, Engine>(&run, &gates, core, pe, index)
						.play();
				});

			if (!in_time)
				run.fail("a wait did not end in time");
			if (trace != nullptr)
				*trace = sim.trace();
		} else {
			world->run_threads([&](uint32_t pe, uint32_t index,
						   aiv::SoftCore core) {
				Player<Core, Engine>(&run, &gates, core, pe, index).play();
			});
		}
		if (world->violations() != violations)
			run.fail("the NIC met a request against the rules");
		return run.failure();
	}
};

template <class S>
class RandomPrograms : public testing::Test {};
TYPED_TEST_SUITE(RandomPrograms, EnginesAndCores, SettingName);

TYPED_TEST(RandomPrograms, LeaveMemoryAsTheReferenceHasIt)
{
	using Engine = typename TypeParam::Engine;
	constexpr bool threads = !std::is_same<typename TypeParam::Core, SimCore>::value;
	const char *name = nic_of<Engine>::name + 5;
	uint64_t index = engine_index<Engine>();
	uint64_t count =
		share(threads ? all_threaded_programs : all_programs, index, n_engines);

	if (options.count != 0) {
		if (options.threads != threads ||
			(options.engine != nullptr && strcmp(options.engine, name) != 0))
			GTEST_SKIP() << "not asked for";
		count = options.count;
	}
	EXPECT_TRUE((Programs<Engine, typename TypeParam::Core>::run(options.seed, count)));
}

template <class E>
class ProgramsOf : public testing::Test {};
TYPED_TEST_SUITE(ProgramsOf, Engines, EngineName);

/* Else a failure could not be found again by its seed. */
TYPED_TEST(ProgramsOf, ASeedIsOneExecutionWhateverRanBefore)
{
	using P = Programs<TypeParam, SimCore>;
	Shape shape = {};
	WorldOptions o = world_of_block(1, nic_of<TypeParam>::name, true, &shape);
	const Abilities abilities = abilities_of<TypeParam>();
	uint64_t traces[2] = {};
	World fresh(o), used(o);

	for (uint64_t seed = 5; seed < 12; seed++)
		EXPECT_EQ(P::run_one(make_program(seed, shape, abilities), &used, nullptr),
			"");
	for (World *world : {&fresh, &used})
		EXPECT_EQ(P::run_one(make_program(77, shape, abilities), world,
				  &traces[world == &used]),
			"");
	EXPECT_EQ(traces[0], traces[1]);
}

} // namespace

int main(int argc, char **argv)
{
	testing::InitGoogleTest(&argc, argv);
	for (int i = 1; i < argc; i++) {
		std::string arg = argv[i];

		if (arg.rfind("--engine=", 0) == 0)
			options.engine = argv[i] + 9;
		else if (arg.rfind("--seed=", 0) == 0)
			options.seed = strtoull(argv[i] + 7, nullptr, 0);
		else if (arg.rfind("--count=", 0) == 0)
			options.count = strtoull(argv[i] + 8, nullptr, 0);
		else if (arg == "--threads")
			options.threads = true;
		else {
			fprintf(stderr, "unknown argument: %s\n", argv[i]);
			return 2;
		}
	}
	return RUN_ALL_TESTS();
}
