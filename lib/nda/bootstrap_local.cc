// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The bootstrap of PEs that are threads of one process: they meet in memory.
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "lib/nda/bootstrap.h"
#include "lib/nda/deadline.h"
#include "lib/nda/guard.h"

namespace nda {
namespace {

enum class Kind {
	none,
	allgather,
	barrier
};

// One collective call: the contributions. Kept alive by whoever still copies out of it.
struct Round {
	explicit Round(uint32_t n_pes, Kind kind_, size_t size_)
		: kind(kind_), size(size_), data(n_pes * size_), arrived(n_pes)
	{}
	const Kind kind;
	const size_t size;
	std::vector<uint8_t> data;
	std::vector<bool> arrived;
	uint32_t n_arrived = 0;
};

class Meeting {
public:
	Meeting(uint32_t n_pes, uint32_t timeout_ms)
		: n_pes_(n_pes), timeout_ms_(timeout_ms)
	{}

	int run(uint32_t pe, Kind kind, const void *in, void *out, size_t size)
	{
		const Deadline deadline(timeout_ms_);
		std::unique_lock<std::mutex> lock(mutex_);
		if (broken_)
			return fail(broken_, "%s", reason_.c_str());
		if (!round_)
			round_ = std::make_shared<Round>(n_pes_, kind, size);
		const std::shared_ptr<Round> round = round_;
		if (round->arrived[pe])
			return fail(-EINVAL, "bootstrap: PE %u: two calls at a time", pe);
		if (round->kind != kind || round->size != size)
			return break_up(-EINVAL,
				"bootstrap: PE " + std::to_string(pe) +
					" makes another call, or with another size, than "
					"the rest");
		if (size)
			memcpy(round->data.data() + pe * size, in, size);
		round->arrived[pe] = true;
		if (++round->n_arrived == n_pes_) {
			round_.reset();
			changed_.notify_all();
		}
		while (round->n_arrived < n_pes_ && !broken_) {
			if (changed_.wait_until(lock, deadline.at()) ==
					std::cv_status::timeout &&
				round->n_arrived < n_pes_ && !broken_)
				return break_up(-ETIMEDOUT,
					"bootstrap: PE " +
						list_pes(n_pes_,
							[&](uint32_t i) {
								return !round->arrived[i];
							}) +
						" did not arrive within " +
						std::to_string(timeout_ms_) + " ms");
		}
		if (round->n_arrived < n_pes_)
			return fail(broken_, "%s", reason_.c_str());
		lock.unlock();
		// Nobody writes to a full round.
		if (size)
			memcpy(out, round->data.data(), round->data.size());
		return 0;
	}

private:
	int break_up(int code, std::string reason)
	{
		broken_ = code;
		reason_ = std::move(reason);
		round_.reset();
		changed_.notify_all();
		return fail(code, "%s", reason_.c_str());
	}

	const uint32_t n_pes_;
	const uint32_t timeout_ms_;
	std::mutex mutex_; // guards all below
	std::condition_variable changed_;
	std::shared_ptr<Round> round_; // that PEs are arriving at; none between rounds
	int broken_ = 0;               // why no call can succeed any more
	std::string reason_;
};

struct LocalBootstraps;

struct Seat {
	LocalBootstraps *owner;
	uint32_t pe;
};

struct LocalBootstraps {
	LocalBootstraps(uint32_t n_pes, uint32_t timeout_ms)
		: meeting(n_pes, timeout_ms), seats(n_pes), callbacks(n_pes)
	{}
	Meeting meeting;
	std::vector<Seat> seats;
	std::vector<nda_bootstrap> callbacks; // what the caller sees: an array
};

int local_allgather(void *cookie, const void *in, void *out, size_t size)
{
	const Seat *seat = static_cast<const Seat *>(cookie);
	return guard([&] {
		const int rc = check_gather(seat->owner->callbacks.size(), in, out, size);
		return rc ? rc
			  : seat->owner->meeting.run(
				    seat->pe, Kind::allgather, in, out, size);
	});
}

int local_barrier(void *cookie)
{
	const Seat *seat = static_cast<const Seat *>(cookie);
	return guard([&] {
		return seat->owner->meeting.run(
			seat->pe, Kind::barrier, nullptr, nullptr, 0);
	});
}

} // namespace

int check_gather(uint32_t n_pes, const void *in, const void *out, size_t size)
{
	if (size > gather_bytes_max / n_pes)
		return fail(-EMSGSIZE,
			"bootstrap: %zu bytes from each of %u PEs are more than %llu", size,
			n_pes, static_cast<unsigned long long>(gather_bytes_max));
	if (size && (!in || !out))
		return fail(-EINVAL, "bootstrap: allgather: a buffer is NULL");
	return 0;
}

int bootstrap_local_create(uint32_t n_pes, uint32_t timeout_ms, nda_bootstrap *&bootstraps)
{
	if (n_pes == 0 || n_pes > pes_max)
		return fail(-EINVAL, "bootstrap: n_pes %u is not in 1..%u", n_pes, pes_max);
	if (timeout_ms == 0)
		timeout_ms = bootstrap_timeout_ms_default;
	auto local = std::make_unique<LocalBootstraps>(n_pes, timeout_ms);
	for (uint32_t pe = 0; pe < n_pes; pe++) {
		local->seats[pe] = {local.get(), pe};
		nda_bootstrap &b = local->callbacks[pe];
		b = {};
		b.pe = pe;
		b.n_pes = n_pes;
		b.allgather = local_allgather;
		b.barrier = local_barrier;
		b.cookie = &local->seats[pe];
	}
	bootstraps = local.release()->callbacks.data();
	return 0;
}

int bootstrap_local_destroy(nda_bootstrap *bootstraps)
{
	if (!bootstraps)
		return fail(-EINVAL, "bootstraps is NULL");
	if (bootstraps->allgather != local_allgather || bootstraps->pe != 0)
		return fail(-EINVAL, "%p is no array of nda_bootstrap_local_create",
			static_cast<void *>(bootstraps));
	delete static_cast<Seat *>(bootstraps->cookie)->owner;
	return 0;
}

} // namespace nda
