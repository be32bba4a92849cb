/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>

#include <tests/sim/sim.h>

namespace nda::test {

namespace {
/* A turn takes 1 to this many virtual nanoseconds. */
constexpr uint64_t turn_ns = 200;
/* After the limit, a turn takes an hour: no deadline outlives it. */
constexpr uint64_t runaway_ns = 3600u * 1000000000u;
constexpr uint64_t runaway_turns = 100000;
constexpr uint64_t one_access_in = 8;
} // namespace

void Sim::add_core(std::function<void(SimCore)> body)
{
	size_t index = cores_.size();

	cores_.push_back(std::make_unique<Fiber>([this, index, body = std::move(body)] {
		body(SimCore(this, cores_[index].get()));
	}));
}

void Sim::maybe_give_up_turn(Fiber *core)
{
	if (random_() % one_access_in == 0)
		core->yield();
}

bool Sim::run()
{
	uint64_t turns_over = 0;
	std::vector<Fiber *> waiting;

	for (auto &core : cores_)
		waiting.push_back(core.get());
	while (!waiting.empty()) {
		size_t next = random_() % (waiting.size() + models_.size());

		now_ns_ += 1 + random_() % turn_ns;
		trace_ = (trace_ ^ next ^ now_ns_) * 0x100000001b3;
		if (now_ns_ > limit_ns_) {
			now_ns_ += runaway_ns;
			if (++turns_over > runaway_turns) {
				fprintf(stderr, "Sim: a core waits without a deadline\n");
				abort();
			}
		}
		if (next >= waiting.size()) {
			models_[next - waiting.size()]();
			continue;
		}
		waiting[next]->resume();
		if (waiting[next]->done())
			waiting.erase(waiting.begin() + static_cast<ptrdiff_t>(next));
	}
	return turns_over == 0;
}

} // namespace nda::test
