// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/phase.h"

#include <algorithm>

namespace nda::perf {
namespace {

// Runs a kernel on the cores of this PE; its times count from base.
Tally run_here(Session &session, const Session::Launch &launch, uint64_t base)
{
	Tally own;
	own.outcome = session.run(launch);
	if (session.broken())
		return own;
	own.least = UINT64_MAX;
	for (const CoreResult &result : launch.results) {
		own.messages += result.messages;
		own.least = std::min(own.least, result.messages);
		own.start_ns = std::min(own.start_ns, result.start_ns - base);
		own.end_ns = std::max(own.end_ns, result.end_ns - base);
	}
	return own;
}

} // namespace

void Totals::add(const std::vector<Tally> &tallies)
{
	uint64_t start_ns = UINT64_MAX;
	uint64_t end_ns = 0;
	for (const Tally &tally : tallies) {
		messages += tally.messages;
		start_ns = std::min(start_ns, tally.start_ns);
		end_ns = std::max(end_ns, tally.end_ns);
	}
	if (end_ns > start_ns)
		elapsed_ns += end_ns - start_ns;
}

Outcome run_phase(Session &session, const Session::Launch &launch, Pace &pace,
	bool takes_part, std::vector<Tally> *tallies)
{
	uint64_t base;
	Outcome outcome = session.common_start(&base, &pace.start_ns);
	if (outcome != Outcome::ok)
		return outcome;
	Tally own;
	if (takes_part)
		own = run_here(session, launch, base);
	if (session.broken())
		return own.outcome;
	tallies->resize(session.n_pes());
	outcome = session.allgather(&own, tallies->data(), sizeof(own));
	if (outcome != Outcome::ok || own.outcome != Outcome::ok)
		return outcome != Outcome::ok ? outcome : own.outcome;
	const bool all_ok = std::all_of(tallies->begin(), tallies->end(),
		[](const Tally &tally) { return tally.outcome == Outcome::ok; });
	return all_ok ? Outcome::ok : Outcome::stopped;
}

Outcome add_latencies(Session &session, const Results &results, Histogram *latencies)
{
	Histogram own;
	for (const CoreResult &result : results)
		own.merge(result.latency);
	std::vector<Histogram> all(session.n_pes());
	Outcome outcome = session.allgather(&own, all.data(), sizeof(own));
	for (const Histogram &one : all)
		latencies->merge(one);
	return outcome;
}

Outcome note(
	Session &session, const std::string &object, const std::string &wrong, bool *good)
{
	if (!wrong.empty() && *good)
		session.fail("PE " + std::to_string(session.pe()) + ": " + object, wrong);
	const uint8_t own = wrong.empty();
	std::vector<uint8_t> all(session.n_pes());
	Outcome outcome = session.allgather(&own, all.data(), sizeof(own));
	if (outcome == Outcome::ok)
		*good = *good &&
			std::all_of(all.begin(), all.end(), [](bool g) { return g; });
	return outcome;
}

Row new_row(Session &session)
{
	const Options &o = session.options();
	Row row;
	row.op = op_name(o.op);
	row.nic = o.nic;
	row.pes = o.pes;
	row.threads = o.threads;
	row.cores = o.cores;
	row.window = o.window;
	row.batch = o.batch;
	row.signal_every = o.signal_every;
	row.doorbell = session.doorbell();
	row.queues_per_core = o.queues;
	return row;
}

} // namespace nda::perf
