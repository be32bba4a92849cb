// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/barrier.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "lib/tools/perf/phase.h"

namespace nda::perf {
namespace {

constexpr uint64_t default_warmup = 16;
constexpr uint64_t verified_barriers = 200;
constexpr uint64_t first_barriers = 64; // by which it is known how long one takes
constexpr double go_ns = 10e9;          // of one launch, about
constexpr uint64_t go_limit_us = 60000000;

class Meeting {
public:
	explicit Meeting(Session &session)
		: session_(session), o_(session.options()), n_(session.n_pes())
	{}

	Outcome prepare();
	Outcome operation(Barrier barrier);

private:
	Outcome phase(uint64_t barriers, bool verify, Totals *totals, Histogram *latencies);
	Outcome repeat(uint64_t most, Totals *totals, Histogram *latencies);
	Outcome measure(Totals *totals, Histogram *latencies);
	uint64_t how_many(uint64_t most, const Totals &totals) const;
	void progress(const char *what);
	void send_row(const Histogram &latencies, const Totals &totals);

	Session &session_;
	const Options &o_;
	const uint32_t n_;
	uint64_t letters_ = 0;
	Barrier barrier_ = Barrier::barrier_all;
	bool good_ = true; // nobody passed before all had come
};

Outcome Meeting::prepare()
{
	return session_.agree(session_.alloc(letters_bytes(n_), &letters_));
}

void Meeting::progress(const char *what)
{
	if (session_.pe() == 0)
		session_.progress(std::string(barrier_name(barrier_)) + ": " + what);
}

// One core of each PE.
Outcome Meeting::phase(uint64_t barriers, bool verify, Totals *totals, Histogram *latencies)
{
	auto work = std::make_shared<BarrierWork>();
	work->table = session_.table();
	work->operation = barrier_;
	work->messages = barriers;
	work->letters = verify ? letters_ : 0;
	work->results.resize(1);
	// A barrier that fails looks at what was sent, which may take as long once more.
	const uint64_t limit_us = go_limit_us + o_.timeout_ms * uint64_t(1000);
	std::vector<Tally> tallies;
	Outcome outcome = session_.agree(session_.fill(letters_, 0, letters_bytes(n_)));
	if (outcome == Outcome::ok)
		outcome = run_phase(session_,
			{session_.kernels().barrier, work, work->results, limit_us,
				barrier_name(barrier_), 0, 0},
			*work, true, &tallies);
	if (outcome == Outcome::ok)
		outcome = add_latencies(session_, work->results, latencies);
	if (outcome == Outcome::ok && verify)
		outcome = note(session_, barrier_name(barrier_), work->wrong, &good_);
	if (outcome == Outcome::ok)
		totals->add(tallies);
	return outcome;
}

// The next of at most so many barriers: those that fit into the time that is left, by what
// the ones before took; the same on all PEs. 0: it is enough.
uint64_t Meeting::how_many(uint64_t most, const Totals &totals) const
{
	const uint64_t done = totals.messages / n_;
	if (done == 0)
		return std::min(most, first_barriers);
	const double limit_ns = double(o_.time_limit_us) * 1e3;
	const double left_ns = limit_ns - double(totals.elapsed_ns);
	if (left_ns <= 0 || totals.elapsed_ns == 0)
		return 0;
	// The first ones may have been fast: no more than ten times as many.
	const double fit =
		std::min(left_ns, go_ns) * double(done) / double(totals.elapsed_ns);
	return std::min({most - done, done * 10, uint64_t(fit) + 1});
}

Outcome Meeting::repeat(uint64_t most, Totals *totals, Histogram *latencies)
{
	Outcome outcome = Outcome::ok;
	while (outcome == Outcome::ok) {
		const uint64_t barriers = how_many(most, *totals);
		if (barriers == 0)
			break;
		outcome = phase(barriers, false, totals, latencies);
	}
	return outcome;
}

Outcome Meeting::measure(Totals *totals, Histogram *latencies)
{
	const uint64_t warmup = o_.warmup < 0 ? default_warmup : uint64_t(o_.warmup);
	Totals unused;
	Histogram unused_latencies;
	progress("latency and rate");
	const Outcome outcome = repeat(warmup, &unused, &unused_latencies);
	return outcome == Outcome::ok
		? repeat(o_.iterations == 0 ? UINT64_MAX : o_.iterations, totals, latencies)
		: outcome;
}

Outcome Meeting::operation(Barrier barrier)
{
	Histogram latencies;
	Histogram unused_latencies;
	Totals totals;
	Totals unused;
	barrier_ = barrier;
	Outcome outcome = measure(&totals, &latencies);
	if (outcome == Outcome::ok && o_.verify) {
		progress("verify");
		outcome = phase(verified_barriers, true, &unused, &unused_latencies);
	}
	if (outcome != Outcome::ok)
		return outcome;
	if (session_.pe() == 0)
		send_row(latencies, totals);
	return good_ ? Outcome::ok : Outcome::stopped;
}

// A barrier of all PEs counts as one. A PE signals to those 1, 2, 4, ... after it.
void Meeting::send_row(const Histogram &latencies, const Totals &totals)
{
	Row row = new_row(session_);
	row.window = 1;
	row.queues = 0;
	for (uint32_t hop = 1; hop < n_; hop *= 2)
		row.queues += n_;
	row.messages = totals.messages / n_;
	row.messages_per_s = totals.messages_per_s() / n_;
	row.latency_p50_ns = latencies.percentile(50);
	row.latency_p99_ns = latencies.percentile(99);
	if (o_.verify)
		row.verified = good_;
	row.barrier = barrier_name(barrier_);
	session_.row(row);
}

} // namespace

Outcome barrier(Session &session)
{
	Meeting meeting(session);
	Outcome outcome = meeting.prepare();
	for (Barrier operation : {Barrier::barrier_all, Barrier::sync_all})
		if (outcome == Outcome::ok)
			outcome = meeting.operation(operation);
	return outcome;
}

} // namespace nda::perf
