/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * PEs of one process over the real libnda and the real software NPU and NIC, whose engines
 * are models of a Sim: control path, tables and NIC are what everybody uses, but the order
 *of everything and the clock follow from a seed.
 *
 *	World world(options);
 *	Sim sim(seed);
 *	EXPECT_TRUE(world.run(&sim, [&](uint32_t pe, uint32_t core, SimCore c) { ... }));
 *
 * Without options.manual the NPUs' engines and cores are threads, see run_threads().
 * What goes wrong in the control path ends the process with the reason.
 */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include <stdint.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nda/aiv/soft_core.h>
#include <nda/group.h>
#include <tests/sim/sim.h>

struct nda_soft_npu;
struct ibv_qp;

namespace nda::test {

struct WorldOptions {
	const char *nic = "soft:hns1825";
	uint32_t n_pes = 2;
	uint32_t n_cores = 1;
	uint32_t queues_per_core = 1;
	uint32_t sq_depth = 64;
	uint32_t signal_every = 1;
	uint64_t heap_bytes = 1 << 16; /* a multiple of 4 KiB */
	uint64_t region_bytes = 0;     /* of one more region on each PE; 0: none */
	uint32_t timeout_us = 100000;  /* of device calls; virtual where manual */
	uint32_t mtu_bytes = 0;
	std::string inject;
	bool manual = true;
};

class World {
public:
	explicit World(const WorldOptions &options);
	~World();

	World(const World &) = delete;
	World &operator=(const World &) = delete;

	/* All queues anew, as if so much had gone over them before; heaps stay as they are,
	 * no core may run. */
	void restart(uint32_t sq_index, uint32_t cq_index);

	/* On every core of every PE. As Sim::run(). */
	bool run(Sim *sim,
		const std::function<void(uint32_t pe, uint32_t core, SimCore)> &body);
	/* The same on threads of the software NPUs. */
	void run_threads(
		const std::function<void(uint32_t pe, uint32_t core, aiv::SoftCore)> &body);

	const WorldOptions &options() const { return options_; }
	nda_group *group(uint32_t pe) const { return pes_[pe].group; }
	uint64_t table(uint32_t pe) const { return nda_group_table(pes_[pe].group); }
	/* Addresses of NPU memory, which are the host's as well. */
	uint64_t heap(uint32_t pe) const { return nda_group_heap_base(pes_[pe].group); }
	uint64_t region_addr(uint32_t pe) const { return pes_[pe].region_addr; }
	/* Of @owner, as a transfer between it and @pe names it. */
	nda_region own_region(uint32_t owner, uint32_t pe) const;
	nda_region peer_region(uint32_t owner, uint32_t pe) const;
	/* That the NIC models have met since the world was made. */
	uint64_t violations() const;

private:
	struct Pe {
		nda_npu *npu = nullptr;
		nda_nic *nic = nullptr;
		nda_group *group = nullptr;
		nda_soft_npu *soft = nullptr;
		uint64_t region_addr = 0;
		nda_group_region *region = nullptr;
		std::vector<nda_region> peer_regions; /* of each PE, for this one */
		std::vector<uint8_t> fresh;           /* the table as it was published */
	};
	class Tap;

	void open(Pe *pe);
	void create_groups();
	void create_regions();

	WorldOptions options_;
	nda_bootstrap *bootstraps_ = nullptr;
	std::vector<Pe> pes_;
	std::unique_ptr<Tap> tap_;
	Sim *sim_ = nullptr;
	uint64_t last_ns_ = 1; /* of the clock, where no Sim runs */
};

} // namespace nda::test

#endif
