/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Random programs on every engine, see tests/sim/program.h.
 *
 *	random_programs_test [--engine=hns1825] [--seed=N] [--count=N] [--threads]
 *
 * --count is of each engine. --seed without it is that program alone; --threads runs only
 * those on threads. A program is named by its seed alone: one that fails, or dies, prints
 * the command that runs it again.
 */
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tests/mock/sanitizer.h>
#include <tests/sim/engines.h>
#include <tests/sim/last_words.h>
#include <tests/sim/player.h>

namespace {

using namespace nda;
using namespace nda::test;

/* Seeds of a block share a world. */
constexpr uint64_t block = 64;

#if NDA_ASAN || NDA_TSAN
constexpr uint64_t all_programs = 2000;
#else
constexpr uint64_t all_programs = 20000;
#endif
constexpr uint64_t all_threaded_programs = 200;

struct Options {
	std::string engine; /* "": all */
	uint64_t seed = 0;
	uint64_t count = 0; /* 0: of the check */
	bool threads = false;
} options;

template <class... All>
std::vector<std::string> names_of(testing::Types<All...>)
{
	return {nic_of<All>::name + 5 ...};
}

bool number_of(const std::string &text, uint64_t *value)
{
	char *end = nullptr;

	errno = 0;
	*value = strtoull(text.c_str(), &end, 0);
	return !text.empty() && isdigit(static_cast<unsigned char>(text[0])) &&
		*end == '\0' && errno == 0;
}

/* What is wrong with the arguments, "" if nothing is. */
std::string parse(const std::vector<std::string> &arguments, Options *o)
{
	bool one = false;

	for (const std::string &arg : arguments) {
		std::string value = arg.substr(std::min(arg.find('=') + 1, arg.size()));

		if (arg.rfind("--engine=", 0) == 0) {
			std::vector<std::string> names = names_of(Engines());

			o->engine = value;
			if (std::find(names.begin(), names.end(), value) == names.end())
				return "no such engine: " + value;
		} else if (arg.rfind("--seed=", 0) == 0) {
			one = true;
			if (!number_of(value, &o->seed))
				return "not a seed: " + value;
		} else if (arg.rfind("--count=", 0) == 0) {
			if (!number_of(value, &o->count) || o->count == 0)
				return "not a count: " + value;
		} else if (arg == "--threads") {
			o->threads = true;
		} else {
			return "unknown argument: " + arg;
		}
	}
	if (o->count == 0 && one)
		o->count = 1;
	if (o->count != 0 && o->seed > UINT64_MAX - o->count)
		return "seeds end at 2^64 - 1";
	return "";
}

/* The command that runs a program again. */
std::string again(const char *engine, uint64_t seed, bool simulated)
{
	return "again: build/tests/random_programs_test --engine=" + std::string(engine) +
		" --seed=" + std::to_string(seed) + (simulated ? "" : " --threads");
}

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
			set_last_words(
				again(nic_of<Engine>::name + 5, seed, simulated) + "\n");
			Program program = make_program(seed, shape, abilities);
			std::string why = run_one(program, world.get(), nullptr);
			if (why.empty())
				continue;
			ADD_FAILURE()
				<< why << "\nworld: " << world->options().n_pes
				<< " PEs, signal_every " << world->options().signal_every
				<< ", inject \"" << world->options().inject << "\"\n"
				<< program.text()
				<< again(nic_of<Engine>::name + 5, seed, simulated);
			set_last_words("");
			return false;
		}
		set_last_words("");
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

	if ((options.threads && !threads) ||
		(options.count != 0 && options.threads != threads) ||
		(!options.engine.empty() && options.engine != name))
		GTEST_SKIP() << "not asked for";
	if (options.count != 0)
		count = options.count;
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

TEST(ProgramOptions, OfAProgramAloneAreItsSeed)
{
	Options o;

	EXPECT_EQ(parse({"--engine=udma", "--seed=0x10"}, &o), "");
	EXPECT_EQ(o.engine, "udma");
	EXPECT_EQ(o.seed, 16u);
	EXPECT_EQ(o.count, 1u);
	EXPECT_FALSE(o.threads);
}

TEST(ProgramOptions, ThatMeanNothingAreRefused)
{
	for (const char *bad : {"--engine=pigeon", "--engine=", "--seed=", "--seed=abc",
		     "--seed=12x", "--seed=-1", "--seed=99999999999999999999", "--count=0",
		     "--count=", "--count=1e6", "--thread", "seed=1", "--seed"}) {
		Options o;

		EXPECT_NE(parse({bad}, &o), "") << bad;
	}
}

/* Or nobody could find it again. */
TEST(ProgramDeathTest, SaysHowToRunItAgain)
{
	for (int signal : {SIGSEGV, SIGABRT})
		EXPECT_DEATH(
			{
				set_last_words(again("in_die", 7, true) + "\n");
				raise(signal);
			},
			"again: build/tests/random_programs_test --engine=in_die --seed=7");
}

} // namespace

int main(int argc, char **argv)
{
	testing::InitGoogleTest(&argc, argv);
	std::string wrong =
		parse(std::vector<std::string>(argv + 1, argv + argc), &options);
	if (!wrong.empty()) {
		fprintf(stderr, "random_programs_test: %s\n", wrong.c_str());
		return 2;
	}
	return RUN_ALL_TESTS();
}
