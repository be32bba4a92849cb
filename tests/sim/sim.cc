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
	auto actor = std::make_unique<Actor>();

	actor->body = std::move(body);
	actors_.push_back(std::move(actor));
}

Sim::~Sim()
{
	for (auto &actor : actors_)
		if (actor->thread.joinable())
			actor->thread.join();
}

void Sim::actor_main(Actor *actor)
{
	{
		std::unique_lock<std::mutex> lock(mutex_);
		actor->turn.wait(lock, [&] { return actor->has_turn; });
	}
	actor->body(SimCore(this, actor));
	std::unique_lock<std::mutex> lock(mutex_);
	actor->done = true;
	actor->has_turn = false;
	scheduler_.notify_one();
}

void Sim::give_turn(Actor *actor)
{
	std::unique_lock<std::mutex> lock(mutex_);

	actor->has_turn = true;
	actor->turn.notify_one();
	scheduler_.wait(lock, [&] { return !actor->has_turn; });
}

void Sim::give_up_turn(Actor *actor)
{
	std::unique_lock<std::mutex> lock(mutex_);

	actor->has_turn = false;
	scheduler_.notify_one();
	actor->turn.wait(lock, [&] { return actor->has_turn; });
}

/* Only the holder of the turn comes here, so the generator needs no lock. */
void Sim::maybe_give_up_turn(Actor *actor)
{
	if (random_() % one_access_in == 0)
		give_up_turn(actor);
}

bool Sim::run()
{
	uint64_t turns_over = 0;
	std::vector<Actor *> waiting;

	for (auto &actor : actors_) {
		actor->thread = std::thread(&Sim::actor_main, this, actor.get());
		waiting.push_back(actor.get());
	}
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
		give_turn(waiting[next]);
		if (waiting[next]->done) {
			waiting[next]->thread.join();
			waiting.erase(waiting.begin() + static_cast<ptrdiff_t>(next));
		}
	}
	return turns_over == 0;
}

} // namespace nda::test
