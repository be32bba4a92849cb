/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include <infiniband/verbs.h>

#include <lib/nda/soft.h>
#include <nda/aiv/hns1825_state.h>
#include <nda/aiv/in_die_state.h>
#include <nda/aiv/udma_state.h>
#include <nda/aiv/xscale_state.h>
#include <nda/hw/hns1825.h>
#include <nda/hw/in_die.h>
#include <nda/hw/udma.h>
#include <nda/table.h>
#include <tests/sim/world.h>

namespace nda::test {

namespace {

constexpr uint32_t generous_ms = 60000;

[[noreturn]] void give_up(const char *what, const char *why)
{
	fprintf(stderr, "World: %s: %s\n", what, why);
	abort();
}

void must(bool ok, const char *what)
{
	if (!ok)
		give_up(what, nda_error_detail());
}

nda_table *header(uint64_t table)
{
	return reinterpret_cast<nda_table *>(table);
}

nda_queue *first_queue(uint64_t table)
{
	return reinterpret_cast<nda_queue *>(table + header(table)->queues_offset);
}

uint32_t n_queues(const nda_table &t)
{
	return t.n_cores * t.queues_per_core * t.n_pes;
}

/* What the CQ's consumer has said last, if it has consumed @ci. */
void set_consumer_record(uint32_t format, const nda_queue &q, uint32_t ci)
{
	uint32_t *record = reinterpret_cast<uint32_t *>(q.cq_record);

	/* A CQ's doorbell register is silent until it is rung. */
	if (record == nullptr)
		return;
	if (format == NDA_FORMAT_HNS1825)
		*record = hw::hns1825::cq_record(ci);
	else if (format == NDA_FORMAT_IN_DIE)
		*record = hw::in_die::cq_record(ci);
	else if (format == NDA_FORMAT_UDMA)
		*record = hw::udma::cq_record(ci, q.udma.ci_mask);
}

nda_queue_state state_at(uint32_t format, const nda_queue &q, uint32_t sq, uint32_t cq)
{
	switch (format) {
	case NDA_FORMAT_HNS1825:
		return aiv::hns1825::derive_state(q, sq, sq, cq);
	case NDA_FORMAT_IN_DIE:
		return aiv::in_die::derive_state(q, sq, sq, cq);
	case NDA_FORMAT_XSCALE:
		return aiv::xscale::derive_state(q, sq, sq, cq);
	case NDA_FORMAT_UDMA:
		return aiv::udma::derive_state(q, sq, sq, cq);
	default:
		give_up("restart", "a queue format that it does not know");
	}
}

void restart_queue(uint32_t format, nda_queue *q, uint32_t sq_index, uint32_t cq_index)
{
	if (q->valid == 0)
		return;
	q->state = state_at(format, *q, sq_index, cq_index);
	set_consumer_record(format, *q, cq_index);
	if (q->scratch_local != 0)
		memset(reinterpret_cast<void *>(q->scratch_local), 0, NDA_SCRATCH_BYTES);
}

} // namespace

/* Between libnda and the software hardware: opens the NPUs the way that a world wants them,
 * and keeps the steps that bring a queue pair up. */
class World::Tap {
public:
	explicit Tap(World *world) : world_(world)
	{
		if (load_soft(real_) != 0)
			give_up("the software NPU", nda_error_detail());
		table_ = *real_;
		table_.npu_open = [](const nda_soft_npu_attr *a) {
			return current_->open(*a);
		};
		table_.modify_qp = [](ibv_qp *qp, ibv_qp_attr *a, int mask) {
			return current_->modify(qp, a, mask);
		};
		table_.jetty_connect = [](nda_soft_jetty *jetty,
					       const nda_soft_jetty_peer *peer,
					       uint32_t *tp_id) {
			return current_->connect(jetty, peer, tp_id);
		};
		current_ = this;
		set_soft_for_test(&table_);
	}
	~Tap() { stop_listening(); }

	/* The world is made: others may be. */
	void stop_listening()
	{
		if (current_ != this)
			return;
		/* NICs of this world go on with its table. */
		set_soft_for_test(nullptr);
	}

	void restart(uint32_t sq_index, uint32_t cq_index)
	{
		for (const Connected &c : jetties_)
			if (real_->jetty_reset(c.jetty) != 0)
				give_up("reset a jetty", real_->error_detail());
		for (const Connected &c : jetties_) {
			uint32_t tp_id = 0;

			if (real_->jetty_seek(c.jetty, sq_index, cq_index) != 0 ||
				real_->jetty_connect(c.jetty, &c.peer, &tp_id) != 0)
				give_up("connect a jetty again", real_->error_detail());
			if (tp_id != c.tp_id)
				give_up("connect a jetty again", "by another transport");
		}
		for (const Lives &q : queues_) {
			ibv_qp_attr reset = {};

			reset.qp_state = IBV_QPS_RESET;
			step(q.qp, reset, IBV_QP_STATE);
		}
		/* Nobody connects to one that is still in its former life. */
		for (const Lives &q : queues_)
			for (const Step &s : q.steps) {
				step(q.qp, s.attr, s.mask);
				if (s.attr.qp_state == IBV_QPS_INIT &&
					real_->qp_seek(q.qp, sq_index, cq_index) != 0)
					give_up("seek", real_->error_detail());
			}
	}

	const SoftApi &real() const { return *real_; }
	nda_soft_npu *opened() const { return opened_; }

private:
	struct Step {
		ibv_qp_attr attr;
		int mask;
	};
	struct Lives {
		ibv_qp *qp;
		std::vector<Step> steps;
	};

	struct Connected {
		nda_soft_jetty *jetty;
		nda_soft_jetty_peer peer;
		uint32_t tp_id;
	};

	nda_soft_npu *open(nda_soft_npu_attr attr)
	{
		if (world_->options_.manual) {
			attr.manual = 1;
			attr.pass_requests = 1;
			attr.clock_cookie = world_;
			attr.clock_ns = [](void *world) {
				World *w = static_cast<World *>(world);

				return w->sim_ != nullptr ? w->last_ns_ + w->sim_->now_ns()
							  : w->last_ns_;
			};
		}
		opened_ = real_->npu_open(&attr);
		return opened_;
	}

	int modify(ibv_qp *qp, ibv_qp_attr *attr, int mask)
	{
		std::lock_guard<std::mutex> lock(mutex_);
		auto known = std::find_if(queues_.begin(), queues_.end(),
			[&](const Lives &q) { return q.qp == qp; });

		if (known == queues_.end())
			known = queues_.insert(known, {qp, {}});
		known->steps.push_back({*attr, mask});
		return real_->modify_qp(qp, attr, mask);
	}

	int connect(nda_soft_jetty *jetty, const nda_soft_jetty_peer *peer, uint32_t *tp_id)
	{
		int rc = real_->jetty_connect(jetty, peer, tp_id);
		std::lock_guard<std::mutex> lock(mutex_);

		if (rc == 0)
			jetties_.push_back({jetty, *peer, *tp_id});
		return rc;
	}

	void step(ibv_qp *qp, ibv_qp_attr attr, int mask)
	{
		if (real_->modify_qp(qp, &attr, mask) != 0)
			give_up("modify_qp", real_->error_detail());
	}

	static inline Tap *current_ = nullptr;
	/* One for all: NICs keep its address. */
	static inline SoftApi table_ = {};
	World *world_;
	const SoftApi *real_ = nullptr;
	nda_soft_npu *opened_ = nullptr;
	std::mutex mutex_;
	std::vector<Lives> queues_;
	std::vector<Connected> jetties_;
};

World::World(const WorldOptions &options) : options_(options), pes_(options.n_pes)
{
	tap_ = std::make_unique<Tap>(this);
	must(nda_bootstrap_local_create(options_.n_pes, generous_ms, &bootstraps_) == 0,
		"bootstrap");
	for (Pe &pe : pes_)
		open(&pe);
	create_groups();
	create_regions();
	tap_->stop_listening();
	for (Pe &pe : pes_) {
		const nda_table *table = header(nda_group_table(pe.group));
		const uint8_t *bytes = reinterpret_cast<const uint8_t *>(table);

		pe.fresh.assign(bytes, bytes + table->size_bytes);
	}
}

void World::open(Pe *pe)
{
	nda_npu_attr npu = {};
	nda_nic_attr nic = {};

	npu.memory_bytes = 64 << 20;
	pe->npu = nda_npu_open("soft", &npu, sizeof(npu));
	must(pe->npu != nullptr, "NPU");
	pe->soft = tap_->opened();
	nic.inject = options_.inject.empty() ? nullptr : options_.inject.c_str();
	nic.mtu_bytes = options_.mtu_bytes;
	pe->nic = nda_nic_open(options_.nic, &nic, sizeof(nic));
	must(pe->nic != nullptr, options_.nic);
}

void World::create_groups()
{
	std::vector<std::thread> threads;

	for (uint32_t pe = 0; pe < options_.n_pes; pe++)
		threads.emplace_back([this, pe] {
			nda_group_attr attr = {};

			attr.heap_bytes = options_.heap_bytes;
			attr.n_cores = options_.n_cores;
			attr.queues_per_core = options_.queues_per_core;
			attr.channel.sq_depth = options_.sq_depth;
			attr.channel.signal_every = options_.signal_every;
			attr.channel.device_timeout_us = options_.timeout_us;
			pes_[pe].group = nda_group_create(&bootstraps_[pe], pes_[pe].npu,
				&pes_[pe].nic, 1, &attr, sizeof(attr));
			must(pes_[pe].group != nullptr, "group");
		});
	for (std::thread &t : threads)
		t.join();
}

void World::create_regions()
{
	if (options_.region_bytes == 0)
		return;
	for (Pe &pe : pes_) {
		must(nda_npu_alloc(pe.npu, options_.region_bytes, &pe.region_addr) == 0,
			"region's memory");
		must(nda_group_region_register(pe.group, pe.region_addr,
			     options_.region_bytes,
			     NDA_ACCESS_LOCAL_WRITE | NDA_ACCESS_REMOTE_WRITE |
				     NDA_ACCESS_REMOTE_READ,
			     &pe.region) == 0,
			"region");
	}
	for (Pe &pe : pes_) {
		pe.peer_regions.resize(options_.n_pes);
		for (uint32_t owner = 0; owner < options_.n_pes; owner++) {
			uint8_t desc[NDA_REGION_DESC_BYTES];

			must(nda_group_region_export(pes_[owner].region, desc) == 0 &&
					nda_group_region_import(pe.group, desc,
						&pe.peer_regions[owner]) == 0,
				"region's descriptor");
		}
	}
}

World::~World()
{
	std::vector<std::thread> threads;

	for (Pe &pe : pes_)
		if (pe.region != nullptr)
			must(nda_group_region_deregister(pe.region) == 0, "deregister");
	for (Pe &pe : pes_)
		threads.emplace_back([&pe] {
			must(nda_group_destroy(pe.group) == 0, "destroy the group");
		});
	for (std::thread &t : threads)
		t.join();
	for (Pe &pe : pes_) {
		must(nda_nic_close(pe.nic) == 0, "close the NIC");
		must(nda_npu_close(pe.npu) == 0, "close the NPU");
	}
	must(nda_bootstrap_local_destroy(bootstraps_) == 0, "destroy the bootstrap");
}

void World::restart(uint32_t sq_index, uint32_t cq_index)
{
	tap_->restart(sq_index, cq_index);
	for (uint32_t pe = 0; pe < options_.n_pes; pe++) {
		nda_table *t = header(table(pe));

		memcpy(t, pes_[pe].fresh.data(), pes_[pe].fresh.size());
		memset(reinterpret_cast<void *>(t->sync_area), 0, NDA_SYNC_BYTES);
		for (uint32_t i = 0; i < n_queues(*t); i++)
			restart_queue(
				t->format, &first_queue(table(pe))[i], sq_index, cq_index);
	}
}

bool World::run(
	Sim *sim, const std::function<void(uint32_t pe, uint32_t core, SimCore)> &body)
{
	for (uint32_t pe = 0; pe < options_.n_pes; pe++)
		for (uint32_t core = 0; core < options_.n_cores; core++)
			sim->add_core([&body, pe, core](SimCore c) { body(pe, core, c); });
	for (Pe &pe : pes_)
		sim->add_model([this, &pe] { tap_->real().npu_step(pe.soft); });
	sim_ = sim;
	bool in_time = sim->run();
	/* The clock does not go back. */
	last_ns_ += sim->now_ns();
	sim_ = nullptr;
	return in_time;
}

void World::run_threads(
	const std::function<void(uint32_t pe, uint32_t core, aiv::SoftCore)> &body)
{
	struct Launch {
		const std::function<void(uint32_t, uint32_t, aiv::SoftCore)> *body;
		uint32_t pe;
	};
	std::vector<Launch> launches;

	for (uint32_t pe = 0; pe < options_.n_pes; pe++)
		launches.push_back({&body, pe});
	for (Launch &l : launches)
		must(nda_npu_launch(
			     pes_[l.pe].npu,
			     [](const nda_core *core, void *arg) {
				     const Launch *launch = static_cast<Launch *>(arg);

				     (*launch->body)(
					     launch->pe, core->index, aiv::SoftCore(core));
			     },
			     &l, options_.n_cores) == 0,
			"launch");
	for (Pe &pe : pes_)
		must(nda_npu_wait(pe.npu, generous_ms) == 0, "wait for the kernels");
}

nda_region World::own_region(uint32_t owner, uint32_t pe) const
{
	nda_region region;

	must(nda_group_region_local(pes_[owner].region, pe, &region) == 0, "region");
	return region;
}

nda_region World::peer_region(uint32_t owner, uint32_t pe) const
{
	return pes_[pe].peer_regions[owner];
}

uint64_t World::violations() const
{
	uint64_t sum = 0;

	for (const Pe &pe : pes_) {
		uint64_t count = 0;

		if (tap_->real().npu_violations(pe.soft, &count) != 0)
			give_up("violations", tap_->real().error_detail());
		sum += count;
	}
	return sum;
}

} // namespace nda::test
