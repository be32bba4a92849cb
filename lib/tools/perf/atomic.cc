// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/atomic.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "lib/tools/perf/layout.h"
#include "lib/tools/perf/pattern.h"

namespace nda::perf {
namespace {

constexpr uint64_t counter_bytes = 8;
constexpr uint64_t guard_bytes = 64; // on both sides of the counter
// Not far from where a carry to the upper half is due.
constexpr uint64_t first_value = 0xffffffc0;
constexpr uint64_t verify_limit_us = 60000000; // of many messages, each with its own limit

// What a PE tells the others after it ran a kernel.
struct Tally {
	Outcome outcome = Outcome::ok;
	uint64_t messages = 0;
	uint64_t start_ns = UINT64_MAX; // of the first of its cores, after the common base
	uint64_t end_ns = 0;            // of the last one
	uint64_t changes = 0;           // of all counters
};

struct Totals {
	uint64_t messages = 0;
	uint64_t changes = 0;
	uint64_t elapsed_ns = 0;
};

class Counting {
public:
	explicit Counting(Session &session)
		: session_(session), o_(session.options()), n_(session.n_pes()),
		  pe_(session.pe())
	{}

	Outcome prepare();
	Outcome operation(Atomic atomic);

private:
	Outcome fetch_add(Histogram *latencies, Totals *totals);
	Outcome compare_swap(Histogram *latencies, Totals *totals);
	Outcome warm_up(nda_kernel_fn kernel);
	Outcome every_change_once(
		nda_kernel_fn kernel, const std::shared_ptr<AtomicWork> &work);
	Outcome phase(nda_kernel_fn kernel, const std::shared_ptr<AtomicWork> &work,
		Totals *totals);
	Outcome tally_up(const Tally &own, Totals *totals);
	Outcome set_counter();
	Outcome check_counter(const AtomicWork &work);
	Outcome check_formers_here();
	Outcome note(const std::string &wrong);
	Outcome merge(const AtomicWork &work, Histogram *latencies);
	std::shared_ptr<AtomicWork> new_work() const;
	void progress(const char *what);
	void send_row(const Histogram &latencies, const Totals &totals);

	Session &session_;
	const Options &o_;
	const uint32_t n_;
	const uint32_t pe_;
	uint64_t line_ = 0; // the counter between its guards
	uint64_t formers_ = 0;
	Atomic atomic_ = Atomic::fetch_add;
	bool good_ = true; // all counters and former values were right, at every PE
};

Outcome Counting::prepare()
{
	Outcome outcome = session_.alloc(2 * guard_bytes + counter_bytes, &line_);
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
	work->counter = line_ + guard_bytes;
	work->first = first_value;
	work->formers = formers_;
	work->slots = former_slots(o_);
	work->window = o_.window;
	work->messages = o_.iterations;
	work->time_us = o_.time_limit_us;
	work->changes.resize(uint64_t(o_.cores) * n_);
	work->results.resize(o_.cores);
	return work;
}

Outcome Counting::set_counter()
{
	uint8_t line[2 * guard_bytes + counter_bytes];
	poison_fill(line, sizeof(line));
	memcpy(line + guard_bytes, &first_value, counter_bytes);
	Outcome outcome = session_.write(line_, line, sizeof(line));
	if (outcome == Outcome::ok)
		outcome = session_.fill(
			formers_, pattern_poison, o_.cores * former_slots(o_) * 8);
	return session_.agree(outcome);
}

// What is wrong is reported, and noted by all PEs, but the operation still gets its row.
Outcome Counting::note(const std::string &wrong)
{
	if (!wrong.empty() && good_)
		session_.fail(
			"PE " + std::to_string(pe_) + ": " + atomic_name(atomic_), wrong);
	const uint8_t own = wrong.empty();
	std::vector<uint8_t> all(n_);
	Outcome outcome = session_.allgather(&own, all.data(), sizeof(own));
	if (outcome == Outcome::ok)
		good_ = good_ &&
			std::all_of(all.begin(), all.end(), [](bool g) { return g; });
	return outcome;
}

// Every change that some PE was told of is in the counter, and nothing else.
Outcome Counting::check_counter(const AtomicWork &work)
{
	if (!o_.verify)
		return Outcome::ok;
	std::vector<uint64_t> own(n_);
	for (uint64_t i = 0; i < work.changes.size(); i++)
		own[i % n_] += work.changes[i];
	std::vector<uint64_t> all(uint64_t(n_) * n_);
	Outcome outcome = session_.allgather(own.data(), all.data(), n_ * sizeof(uint64_t));
	uint8_t line[2 * guard_bytes + counter_bytes];
	if (outcome == Outcome::ok)
		outcome = session_.agree(session_.read(line, line_, sizeof(line)));
	if (outcome != Outcome::ok)
		return outcome;
	uint64_t expected = first_value;
	for (uint32_t from = 0; from < n_; from++)
		expected += all[uint64_t(from) * n_ + pe_];
	uint64_t value;
	memcpy(&value, line + guard_bytes, sizeof(value));
	std::string wrong;
	if (value != expected)
		wrong = "the counter is " + std::to_string(value) + ", not " +
			std::to_string(expected);
	else if (poison_check(line, guard_bytes) != guard_bytes ||
		poison_check(line + guard_bytes + counter_bytes, guard_bytes) !=
			guard_bytes)
		wrong = "bytes beside the counter were written to";
	return note(wrong);
}

// The former values of this PE's counter are at whoever changed it.
Outcome Counting::check_formers_here()
{
	const uint64_t n = verified_changes(o_) * (n_ - 1); // of a core
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
	if (outcome != Outcome::ok)
		return outcome;
	std::vector<uint64_t> formers;
	for (uint64_t i = 0; i < all.size(); i++) {
		const uint64_t from = i / own.size();
		if ((from + 1 + i % n % (n_ - 1)) % n_ == pe_)
			formers.push_back(all[i]);
	}
	return note(check_formers(std::move(formers), first_value));
}

Outcome Counting::tally_up(const Tally &own, Totals *totals)
{
	std::vector<Tally> tallies(n_);
	Outcome outcome = session_.allgather(&own, tallies.data(), sizeof(own));
	if (outcome != Outcome::ok || own.outcome != Outcome::ok)
		return outcome != Outcome::ok ? outcome : own.outcome;
	uint64_t start_ns = UINT64_MAX;
	uint64_t end_ns = 0;
	for (const Tally &tally : tallies) {
		if (tally.outcome != Outcome::ok)
			return Outcome::stopped;
		totals->messages += tally.messages;
		totals->changes += tally.changes;
		start_ns = std::min(start_ns, tally.start_ns);
		end_ns = std::max(end_ns, tally.end_ns);
	}
	totals->elapsed_ns += end_ns - start_ns;
	return Outcome::ok;
}

// Runs a kernel on all PEs with fresh counters, and checks these.
Outcome Counting::phase(
	nda_kernel_fn kernel, const std::shared_ptr<AtomicWork> &work, Totals *totals)
{
	uint64_t base;
	Outcome outcome = set_counter();
	if (outcome == Outcome::ok)
		outcome = session_.common_start(&base, &work->start_ns);
	if (outcome != Outcome::ok)
		return outcome;
	const uint64_t limit_us = work->time_us ? work->time_us : verify_limit_us;
	Tally own;
	own.outcome = session_.run({kernel, work, work->results, limit_us,
		atomic_name(atomic_), counter_bytes, work->counter});
	if (session_.broken())
		return own.outcome;
	for (const CoreResult &result : work->results) {
		own.messages += result.messages;
		own.start_ns = std::min(own.start_ns, result.start_ns - base);
		own.end_ns = std::max(own.end_ns, result.end_ns - base);
	}
	for (uint64_t changes : work->changes)
		own.changes += changes;
	outcome = tally_up(own, totals);
	return outcome == Outcome::ok ? check_counter(*work) : outcome;
}

Outcome Counting::warm_up(nda_kernel_fn kernel)
{
	Totals unused;
	std::shared_ptr<AtomicWork> work = new_work();
	work->messages = o_.warmup < 0 ? 2 * uint64_t(o_.window) : uint64_t(o_.warmup);
	return work->messages == 0 ? Outcome::ok : phase(kernel, work, &unused);
}

// A known number of changes, each of which must have found a value of its own.
Outcome Counting::every_change_once(
	nda_kernel_fn kernel, const std::shared_ptr<AtomicWork> &work)
{
	if (!o_.verify || !good_)
		return Outcome::ok;
	progress("verify");
	Totals unused;
	work->time_us = 0;
	Outcome outcome = phase(kernel, work, &unused);
	return outcome == Outcome::ok ? check_formers_here() : outcome;
}

Outcome Counting::merge(const AtomicWork &work, Histogram *latencies)
{
	Histogram own;
	for (const CoreResult &result : work.results)
		own.merge(result.latency);
	std::vector<Histogram> all(n_);
	Outcome outcome = session_.allgather(&own, all.data(), sizeof(own));
	for (const Histogram &one : all)
		latencies->merge(one);
	return outcome;
}

Outcome Counting::fetch_add(Histogram *latencies, Totals *totals)
{
	const Kernels &kernels = session_.kernels();
	Totals unused;
	std::shared_ptr<AtomicWork> work = new_work();
	progress("latency");
	Outcome outcome = warm_up(kernels.fetch_add_latency);
	if (outcome == Outcome::ok)
		outcome = phase(kernels.fetch_add_latency, work, &unused);
	if (outcome == Outcome::ok)
		outcome = merge(*work, latencies);
	progress("rate");
	if (outcome == Outcome::ok)
		outcome = warm_up(kernels.fetch_add_rate);
	if (outcome == Outcome::ok)
		outcome = phase(kernels.fetch_add_rate, new_work(), totals);
	if (outcome != Outcome::ok)
		return outcome;
	work = new_work();
	work->messages = verified_changes(o_) * (n_ - 1);
	return every_change_once(kernels.fetch_add_rate, work);
}

Outcome Counting::compare_swap(Histogram *latencies, Totals *totals)
{
	const nda_kernel_fn kernel = session_.kernels().compare_swap;
	std::shared_ptr<AtomicWork> work = new_work();
	progress("latency and rate");
	Outcome outcome = warm_up(kernel);
	if (outcome == Outcome::ok)
		outcome = phase(kernel, work, totals);
	if (outcome == Outcome::ok)
		outcome = merge(*work, latencies);
	if (outcome != Outcome::ok)
		return outcome;
	work = new_work();
	work->messages = 0;
	work->changes_limit = verified_changes(o_) * (n_ - 1);
	return every_change_once(kernel, work);
}

Outcome Counting::operation(Atomic atomic)
{
	Histogram latencies;
	Totals totals;
	atomic_ = atomic;
	Outcome outcome = atomic == Atomic::fetch_add ? fetch_add(&latencies, &totals)
						      : compare_swap(&latencies, &totals);
	if (outcome != Outcome::ok)
		return outcome;
	if (pe_ == 0)
		send_row(latencies, totals);
	return good_ ? Outcome::ok : Outcome::stopped;
}

void Counting::send_row(const Histogram &latencies, const Totals &totals)
{
	Row row;
	row.op = op_name(Op::atomic);
	row.nic = o_.nic;
	row.pes = n_;
	row.threads = o_.threads;
	row.cores = o_.cores;
	row.window = atomic_ == Atomic::fetch_add ? o_.window : 1;
	row.batch = 1;
	row.signal_every = o_.signal_every;
	row.doorbell = session_.doorbell();
	row.queues = n_ * (n_ - 1) * o_.cores;
	row.size_bytes = counter_bytes;
	row.messages = totals.messages;
	if (totals.elapsed_ns != 0)
		row.messages_per_s =
			double(totals.messages) * 1e9 / double(totals.elapsed_ns);
	row.bytes_per_s = row.messages_per_s * counter_bytes;
	row.latency_p50_ns = latencies.percentile(50);
	row.latency_p99_ns = latencies.percentile(99);
	if (o_.verify)
		row.verified = good_;
	row.atomic = atomic_name(atomic_);
	if (atomic_ == Atomic::compare_swap)
		row.changes = totals.changes;
	session_.row(row);
}

} // namespace

Outcome atomic(Session &session)
{
	Counting counting(session);
	Outcome outcome = counting.prepare();
	for (Atomic operation : session.options().atomics)
		if (outcome == Outcome::ok)
			outcome = counting.operation(operation);
	return outcome;
}

} // namespace nda::perf
