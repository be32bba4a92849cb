/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A whole job on the simulator: one seed is one execution, wherever its queues begin. */
#include <stdint.h>
#include <string.h>

#include <gtest/gtest.h>

#include <tests/sim/engines.h>
#include <tests/sim/world.h>

namespace {

using namespace nda;
using namespace nda::test;

template <class Engine>
class SimWorld : public testing::Test {
protected:
	using Device = aiv::Device<SimCore, Engine>;

	static WorldOptions options()
	{
		WorldOptions o;

		o.nic = nic_of<Engine>::name;
		o.n_pes = 3;
		return o;
	}

	/* Each PE writes to all and waits; the order of everything. */
	static uint64_t put_to_all(World *world, uint64_t seed)
	{
		Sim sim(seed);

		EXPECT_TRUE(world->run(&sim, [&](uint32_t pe, uint32_t, SimCore core) {
			Device device;
			uint64_t heap = world->heap(pe);

			ASSERT_EQ(device.open(core, world->table(pe), 0), NDA_OK);
			for (uint64_t i = 0; i < 100; i++)
				core.store<uint8_t>(
					heap + i, static_cast<uint8_t>(seed + pe * 7 + i));
			for (uint32_t to = 0; to < device.n_pes(); to++)
				for (uint64_t i = 0; i < 100; i += 4)
					ASSERT_EQ(device.put_nbi(to,
							  heap + 0x1000 + pe * 100 + i,
							  heap + i, 4),
						NDA_OK);
			ASSERT_EQ(device.quiet(), NDA_OK);
			ASSERT_EQ(device.barrier_all(), NDA_OK);
		}));
		for (uint32_t pe = 0; pe < world->options().n_pes; pe++)
			for (uint32_t from = 0; from < world->options().n_pes; from++)
				EXPECT_EQ(
					memcmp(reinterpret_cast<void *>(world->heap(pe) +
						       0x1000 + from * 100),
						reinterpret_cast<void *>(world->heap(from)),
						100),
					0)
					<< "seed " << seed << ", PE " << from << " to "
					<< pe;
		EXPECT_EQ(world->violations(), 0u);
		return sim.trace();
	}
};
TYPED_TEST_SUITE(SimWorld, Engines, EngineName);

TYPED_TEST(SimWorld, OneSeedIsOneExecution)
{
	World one(this->options()), other(this->options());
	uint64_t first = this->put_to_all(&one, 1);

	EXPECT_EQ(this->put_to_all(&other, 1), first);
	EXPECT_NE(this->put_to_all(&other, 2), first);
	other.restart(0, 0);
	EXPECT_EQ(this->put_to_all(&other, 1), first);
}

TYPED_TEST(SimWorld, TheNicsClockIsTheSimulators)
{
	WorldOptions options = this->options();
	options.inject = "delay-us:700";
	World world(options);
	Sim sim(3);

	EXPECT_TRUE(world.run(&sim, [&](uint32_t pe, uint32_t, SimCore core) {
		typename TestFixture::Device device;
		uint64_t begin = core.cycles();

		ASSERT_EQ(device.open(core, world.table(pe), 0), NDA_OK);
		ASSERT_EQ(device.put((pe + 1) % 3, world.heap(pe), world.heap(pe), 8),
			NDA_OK);
		EXPECT_GE(core.cycles() - begin, 700 * core.cycles_per_us());
		EXPECT_LT(core.cycles() - begin, 710 * core.cycles_per_us());
	}));
}

TYPED_TEST(SimWorld, QueuesBeginAnywhere)
{
	World world(this->options());

	for (uint32_t start : {0xffffu, 0xfff0u, 0x10000u, 0xfffffcu, 0xfffff0u,
		     0x7fffffffu, 0xfffffff0u, 0xffffffffu, 1u, 70u})
		for (uint32_t apart : {0u, 1u, 77u}) {
			world.restart(start, start - apart);
			this->put_to_all(&world, start);
			if (this->HasFailure()) {
				ADD_FAILURE() << "from " << start << ", " << apart;
				return;
			}
		}
}

} // namespace
