// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/atomic.h"

#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "lib/tools/perf/atomic_math.h"
#include "lib/tools/perf/layout.h"
#include "lib/tools/perf/pattern.h"
#include "lib/tools/perf/phase.h"

namespace nda::perf {
namespace {

constexpr uint64_t guard_bytes = 64;           // on both sides of the counter
constexpr uint64_t verify_limit_us = 60000000; // of many messages, each with its own limit

class Counting {
public:
	explicit Counting(Session &session)
		: session_(session), o_(session.options()), n_(session.n_pes()),
		  pe_(session.pe()), line_bytes_(2 * guard_bytes + o_.atomic_bytes)
	{}

	Outcome prepare();
	Outcome operation(Atomic atomic);

private:
	Outcome waited(Histogram *latencies, Totals *totals);
	Outcome queued(Histogram *latencies, Totals *totals);
	Outcome warm_up(nda_kernel_fn kernel);
	Outcome every_change_once(nda_kernel_fn kernel);
	Outcome phase(nda_kernel_fn kernel, const std::shared_ptr<AtomicWork> &work,
		Totals *totals);
	Outcome count_changes(const AtomicWork &work);
	Outcome set_counter();
	Outcome read_counter(uint64_t *value, bool *alone);
	Outcome check_counter(const AtomicWork &work);
	Outcome check_changes();
	std::shared_ptr<AtomicWork> new_work() const;
	void progress(const char *what);
	void send_row(const Histogram &latencies, const Totals &totals);
	uint64_t verified_of_core() const { return verified_changes(o_) * (n_ - 1); }

	Session &session_;
	const Options &o_;
	const uint32_t n_;
	const uint32_t pe_;
	const uint64_t line_bytes_;
	uint64_t line_ = 0; // the counter between its guards
	uint64_t formers_ = 0;
	Atomic atomic_ = Atomic::fetch_add;
	Way way_ = Way::none;
	uint64_t changes_ = 0; // of all counters, by all PEs, in the measurement
	bool good_ = true;     // all counters and former values were right, at every PE
};

Outcome Counting::prepare()
{
	Outcome outcome = session_.alloc(line_bytes_, &line_);
	if (outcome == Outcome::ok)
		outcome = session_.alloc(o_.cores * former_slots(o_) * 8, &formers_);
	return session_.agree(outcome);
}

void Counting::progress(const char *what)
{
	if (pe_ == 0)
		session_.progress(std::string(atomic_name(atomic_)) + ": " + what);
}

std::shared_ptr<AtomicWork> Counting::new_work() const
{
	auto work = std::make_shared<AtomicWork>();
	work->table = session_.table();
	work->operation = atomic_;
	work->bytes = o_.atomic_bytes;
	work->counter = line_ + guard_bytes;
	work->formers = formers_;
	work->slots = former_slots(o_);
	work->window = o_.window;
	work->messages = o_.iterations;
	work->time_us = o_.time_limit_us;
	work->folded.resize(uint64_t(o_.cores) * n_, no_operand(atomic_, o_.atomic_bytes));
	work->changes.resize(o_.cores);
	work->results.resize(o_.cores);
	return work;
}

Outcome Counting::set_counter()
{
	const uint64_t first = first_value(atomic_, o_.atomic_bytes);
	std::vector<uint8_t> line(line_bytes_);
	poison_fill(line.data(), line.size());
	memcpy(&line[guard_bytes], &first, o_.atomic_bytes); // low bytes first
	Outcome outcome = session_.write(line_, line.data(), line.size());
	if (outcome == Outcome::ok)
		outcome = session_.fill(
			formers_, pattern_poison, o_.cores * former_slots(o_) * 8);
	return session_.agree(outcome);
}

// alone: nothing beside it was written to.
Outcome Counting::read_counter(uint64_t *value, bool *alone)
{
	std::vector<uint8_t> line(line_bytes_);
	Outcome outcome = session_.read(line.data(), line_, line.size());
	*value = 0;
	memcpy(value, &line[guard_bytes], o_.atomic_bytes);
	*alone = poison_check(line.data(), guard_bytes) == guard_bytes &&
		poison_check(&line[guard_bytes + o_.atomic_bytes], guard_bytes) ==
			guard_bytes;
	return session_.agree(outcome);
}

// Every change that some core was told of is in the counter, and nothing else.
Outcome Counting::check_counter(const AtomicWork &work)
{
	if (!o_.verify)
		return Outcome::ok;
	const std::vector<uint64_t> &own = work.folded;
	std::vector<uint64_t> all(n_ * own.size());
	Outcome outcome =
		session_.allgather(own.data(), all.data(), own.size() * sizeof(uint64_t));
	uint64_t value = 0;
	bool alone = false;
	if (outcome == Outcome::ok)
		outcome = read_counter(&value, &alone);
	if (outcome != Outcome::ok)
		return outcome;
	std::vector<uint64_t> here;
	for (uint64_t i = pe_; i < all.size(); i += n_)
		here.push_back(all[i]);
	std::string wrong = check_final(atomic_, o_.atomic_bytes, here, value);
	if (wrong.empty() && !alone)
		wrong = "bytes beside the counter were written to";
	return note(session_, atomic_name(atomic_), wrong, &good_);
}

// What was changed here, and the former values, are known to those who did it.
Outcome Counting::check_changes()
{
	const uint64_t n = verified_of_core();
	const uint64_t slots = former_slots(o_);
	std::vector<uint64_t> own(o_.cores * n);
	Outcome outcome = Outcome::ok;
	for (uint32_t core = 0; core < o_.cores && outcome == Outcome::ok; core++)
		outcome = session_.read(
			&own[core * n], formers_ + core * slots * 8, n * sizeof(uint64_t));
	outcome = session_.agree(outcome);
	std::vector<uint64_t> all(n_ * own.size());
	if (outcome == Outcome::ok)
		outcome = session_.allgather(
			own.data(), all.data(), own.size() * sizeof(uint64_t));
	uint64_t value = 0;
	bool alone = false;
	if (outcome == Outcome::ok)
		outcome = read_counter(&value, &alone);
	if (outcome != Outcome::ok)
		return outcome;
	std::vector<Change> changes;
	for (uint64_t i = 0; i < all.size(); i++) {
		const uint64_t from = i / own.size();
		if ((from + 1 + i % n % (n_ - 1)) % n_ == pe_)
			changes.push_back({all[i],
				operand_of(
					atomic_, o_.atomic_bytes, uint32_t(i / n), i % n)});
	}
	return note(session_, atomic_name(atomic_),
		check_chain(atomic_, o_.atomic_bytes, changes, value), &good_);
}

Outcome Counting::count_changes(const AtomicWork &work)
{
	const uint64_t own =
		std::accumulate(work.changes.begin(), work.changes.end(), uint64_t(0));
	std::vector<uint64_t> all(n_);
	Outcome outcome = session_.allgather(&own, all.data(), sizeof(own));
	changes_ = std::accumulate(all.begin(), all.end(), uint64_t(0));
	return outcome;
}

// Runs a kernel on all PEs with fresh counters, and checks these.
Outcome Counting::phase(
	nda_kernel_fn kernel, const std::shared_ptr<AtomicWork> &work, Totals *totals)
{
	const uint64_t limit_us = work->time_us ? work->time_us : verify_limit_us;
	std::vector<Tally> tallies;
	Outcome outcome = set_counter();
	if (outcome == Outcome::ok)
		outcome = run_phase(session_,
			{kernel, work, work->results, limit_us, atomic_name(atomic_),
				o_.atomic_bytes, work->counter},
			*work, true, &tallies);
	if (outcome != Outcome::ok)
		return outcome;
	totals->add(tallies);
	return check_counter(*work);
}

Outcome Counting::warm_up(nda_kernel_fn kernel)
{
	Totals unused;
	std::shared_ptr<AtomicWork> work = new_work();
	work->messages = o_.warmup < 0 ? 2 * uint64_t(o_.window) : uint64_t(o_.warmup);
	return work->messages == 0 ? Outcome::ok : phase(kernel, work, &unused);
}

// A known number of changes, each of which must have found what another one left.
Outcome Counting::every_change_once(nda_kernel_fn kernel)
{
	if (!o_.verify || !good_ || !fetches(atomic_))
		return Outcome::ok;
	progress("verify");
	Totals unused;
	std::shared_ptr<AtomicWork> work = new_work();
	work->messages = atomic_ == Atomic::compare_swap ? 0 : verified_of_core();
	work->changes_limit = verified_of_core();
	work->time_us = 0;
	Outcome outcome = phase(kernel, work, &unused);
	return outcome == Outcome::ok ? check_changes() : outcome;
}

Outcome Counting::queued(Histogram *latencies, Totals *totals)
{
	const Kernels &kernels = session_.kernels();
	Totals unused;
	std::shared_ptr<AtomicWork> work = new_work();
	progress("latency");
	Outcome outcome = warm_up(kernels.atomic_latency);
	if (outcome == Outcome::ok)
		outcome = phase(kernels.atomic_latency, work, &unused);
	if (outcome == Outcome::ok)
		outcome = add_latencies(session_, work->results, latencies);
	progress("rate");
	if (outcome == Outcome::ok)
		outcome = warm_up(kernels.atomic_rate);
	if (outcome == Outcome::ok)
		outcome = phase(kernels.atomic_rate, new_work(), totals);
	return outcome == Outcome::ok ? every_change_once(kernels.atomic_rate) : outcome;
}

Outcome Counting::waited(Histogram *latencies, Totals *totals)
{
	const Kernels &kernels = session_.kernels();
	const nda_kernel_fn kernel = atomic_ == Atomic::compare_swap
		? kernels.compare_swap
		: kernels.atomic_latency;
	std::shared_ptr<AtomicWork> work = new_work();
	progress("latency and rate");
	Outcome outcome = warm_up(kernel);
	if (outcome == Outcome::ok)
		outcome = phase(kernel, work, totals);
	if (outcome == Outcome::ok)
		outcome = add_latencies(session_, work->results, latencies);
	if (outcome == Outcome::ok)
		outcome = count_changes(*work);
	return outcome == Outcome::ok ? every_change_once(kernel) : outcome;
}

Outcome Counting::operation(Atomic atomic)
{
	Histogram latencies;
	Totals totals;
	atomic_ = atomic;
	way_ = session_.kernels().way_of(atomic, o_.atomic_bytes);
	Outcome outcome = way_ == Way::queued ? queued(&latencies, &totals)
					      : waited(&latencies, &totals);
	if (outcome != Outcome::ok)
		return outcome;
	if (pe_ == 0)
		send_row(latencies, totals);
	return good_ ? Outcome::ok : Outcome::stopped;
}

void Counting::send_row(const Histogram &latencies, const Totals &totals)
{
	Row row = new_row(session_);
	row.window = way_ == Way::queued ? o_.window : 1;
	row.queues = n_ * (n_ - 1) * o_.cores;
	row.size_bytes = o_.atomic_bytes;
	row.messages = totals.messages;
	row.messages_per_s = totals.messages_per_s();
	row.bytes_per_s = row.messages_per_s * o_.atomic_bytes;
	row.latency_p50_ns = latencies.percentile(50);
	row.latency_p99_ns = latencies.percentile(99);
	if (o_.verify)
		row.verified = good_;
	row.atomic = atomic_name(atomic_);
	if (atomic_ == Atomic::compare_swap)
		row.changes = changes_;
	session_.row(row);
}

} // namespace

Outcome atomic(Session &session)
{
	Counting counting(session);
	Outcome outcome = counting.prepare();
	for (Atomic operation : session.atomics())
		if (outcome == Outcome::ok)
			outcome = counting.operation(operation);
	return outcome;
}

} // namespace nda::perf
