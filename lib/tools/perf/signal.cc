// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/signal.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "lib/tools/perf/layout.h"
#include "lib/tools/perf/pairs.h"
#include "lib/tools/perf/pattern.h"
#include "lib/tools/perf/phase.h"
#include "lib/tools/perf/report.h"

namespace nda::perf {
namespace {

constexpr uint64_t default_warmup = 16;        // rounds of a ping-pong
constexpr uint64_t verified_rounds = 64;       // of a ping-pong, where they are small
constexpr uint64_t verified_bytes = 16 << 20;  // of a pair, about
constexpr uint64_t verify_limit_us = 60000000; // of many messages, each with its own limit

class Signalling {
public:
	Signalling(Session &session, uint64_t area_bytes)
		: session_(session), o_(session.options()), area_bytes_(area_bytes),
		  n_(session.n_pes()), pe_(session.pe()), next_((pe_ + 1) % n_),
		  sender_((pe_ + n_ - 1) % n_)
	{}

	Outcome prepare();
	Outcome size(uint64_t size);

private:
	Outcome latency(Histogram *latencies);
	Outcome rate(Totals *totals);
	Outcome verify(uint64_t burst);
	Outcome ping_pong(const PingPongWork &what, Histogram *latencies);
	Outcome stream(const std::shared_ptr<Work> &work, std::vector<Tally> *tallies);
	Outcome clear_signals();
	Outcome set_memory();
	Outcome check_memory(const Tally &sent);
	PingPongWork new_ping_pong() const;
	std::shared_ptr<Work> new_work() const;
	Outcome note_wrong(const std::string &wrong);
	void place(Slots *slots) const;
	void progress(const char *what);
	void send_row(const Histogram &latencies, const Totals &totals);

	Session &session_;
	const Options &o_;
	const uint64_t area_bytes_;
	const uint32_t n_;
	const uint32_t pe_;
	const uint32_t next_;
	const uint32_t sender_; // whose stream arrives here
	uint64_t source_ = 0;
	uint64_t target_ = 0;
	uint64_t signals_ = 0;
	Layout layout_ = {};
	uint64_t round_ = 0;
	bool good_ = true; // all data of this size was seen with its signal, at every PE
	std::vector<uint8_t> image_;
};

Outcome Signalling::prepare()
{
	Outcome outcome = session_.alloc(area_bytes_, &source_);
	if (outcome == Outcome::ok)
		outcome = session_.alloc(area_bytes_, &target_);
	if (outcome == Outcome::ok)
		outcome = session_.alloc(area_bytes_, &signals_);
	return session_.agree(outcome);
}

void Signalling::progress(const char *what)
{
	if (pe_ == 0)
		session_.progress("signal " + size_text(layout_.size) + ": " + what);
}

void Signalling::place(Slots *slots) const
{
	slots->source = source_;
	slots->target = target_;
	slots->size = layout_.size;
	slots->stride = layout_.stride;
	slots->slots = layout_.slots;
}

PingPongWork Signalling::new_ping_pong() const
{
	PingPongWork work;
	place(&work);
	work.table = session_.table();
	work.signals = signals_;
	work.burst = 1;
	work.messages = o_.iterations;
	work.time_us = o_.time_limit_us;
	work.wrong.resize(o_.cores);
	work.results.resize(o_.cores);
	return work;
}

std::shared_ptr<Work> Signalling::new_work() const
{
	auto work = std::make_shared<Work>();
	place(work.get());
	work->table = session_.table();
	work->peer = next_;
	work->signals = signals_;
	work->window = o_.window;
	work->batch = 1;
	work->messages = o_.iterations;
	work->time_us = o_.time_limit_us;
	work->results.resize(o_.cores);
	return work;
}

Outcome Signalling::clear_signals()
{
	return session_.fill(signals_, 0, layout_.slots * o_.cores * signal_stride);
}

// Before a stream: its messages carry what is set here.
Outcome Signalling::set_memory()
{
	round_++;
	fill_area(image_.data(), layout_, o_.cores, pe_, round_);
	Outcome outcome = session_.write(source_, image_.data(), layout_.area_bytes);
	if (outcome == Outcome::ok)
		outcome = session_.fill(target_, pattern_poison, layout_.area_bytes);
	if (outcome == Outcome::ok)
		outcome = clear_signals();
	return session_.agree(outcome);
}

Outcome Signalling::note_wrong(const std::string &wrong)
{
	return note(session_, "put_signal of " + std::to_string(layout_.size) + " bytes",
		wrong, &good_);
}

// Each PE with each other, as many pairs at a time as there are; the time is that of all.
Outcome Signalling::ping_pong(const PingPongWork &what, Histogram *latencies)
{
	const uint32_t turns = pair_turns(n_);
	const uint64_t time_us = std::max<uint64_t>(what.time_us / turns, 1);
	for (uint32_t turn = 0; turn < turns; turn++) {
		auto work = std::make_shared<PingPongWork>(what);
		const uint32_t peer = pair_peer(n_, turn, pe_);
		const bool paired = peer != pe_;
		work->peer = peer;
		work->begins = pe_ < peer;
		work->time_us = what.time_us == 0 ? 0 : time_us;
		const uint64_t limit_us = what.time_us == 0 ? verify_limit_us : time_us;
		std::vector<Tally> tallies;
		Outcome outcome = clear_signals();
		// What is there must not pass for what is to come.
		if (outcome == Outcome::ok && what.verify)
			outcome =
				session_.fill(target_, pattern_poison, layout_.area_bytes);
		outcome = session_.agree(outcome);
		if (outcome == Outcome::ok)
			outcome = run_phase(session_,
				{session_.kernels().ping_pong, work, work->results,
					limit_us, "put_signal", layout_.size, target_},
				*work, paired, &tallies);
		if (outcome == Outcome::ok)
			outcome = add_latencies(session_, work->results, latencies);
		std::string wrong;
		for (const std::string &one : work->wrong)
			wrong = wrong.empty() ? one : wrong;
		if (!wrong.empty())
			wrong = "from PE " + std::to_string(peer) + ": " + wrong;
		if (outcome == Outcome::ok && what.verify)
			outcome = note_wrong(wrong);
		if (outcome != Outcome::ok)
			return outcome;
	}
	return Outcome::ok;
}

Outcome Signalling::latency(Histogram *latencies)
{
	progress("latency");
	PingPongWork work = new_ping_pong();
	work.messages = o_.warmup < 0 ? default_warmup : uint64_t(o_.warmup);
	Histogram unused;
	Outcome outcome = Outcome::ok;
	if (work.messages != 0)
		outcome = ping_pong(work, &unused);
	return outcome == Outcome::ok ? ping_pong(new_ping_pong(), latencies) : outcome;
}

Outcome Signalling::verify(uint64_t burst)
{
	progress("verify");
	PingPongWork work = new_ping_pong();
	Histogram unused;
	work.verify = true;
	work.burst = burst;
	work.time_us = 0;
	work.messages = std::clamp<uint64_t>(
		verified_bytes / (burst * layout_.stride * o_.cores), 2, verified_rounds);
	return ping_pong(work, &unused);
}

Outcome Signalling::stream(const std::shared_ptr<Work> &work, std::vector<Tally> *tallies)
{
	Outcome outcome = set_memory();
	if (outcome == Outcome::ok)
		outcome = run_phase(session_,
			{session_.kernels().rate, work, work->results, work->time_us,
				"put_signal", layout_.size, target_},
			*work, true, tallies);
	return outcome == Outcome::ok && o_.verify ? check_memory((*tallies)[sender_])
						   : outcome;
}

// After a stream: data and signals are those of the last messages.
Outcome Signalling::check_memory(const Tally &sent)
{
	Outcome outcome = session_.read(image_.data(), target_, layout_.area_bytes);
	std::vector<uint64_t> words(layout_.slots * o_.cores * signal_stride / 8);
	if (outcome == Outcome::ok)
		outcome = session_.read(
			words.data(), signals_, words.size() * sizeof(uint64_t));
	if (outcome = session_.agree(outcome); outcome != Outcome::ok)
		return outcome;
	std::vector<uint64_t> signals;
	for (size_t i = 0; i < words.size(); i += signal_stride / 8)
		signals.push_back(words[i]);
	std::string wrong = check_area(image_.data(), layout_, o_.cores, sender_, round_,
		std::min(sent.least, layout_.slots));
	if (wrong.empty())
		wrong = check_signals(signals, layout_.slots, sent.messages);
	return note_wrong(wrong);
}

Outcome Signalling::rate(Totals *totals)
{
	progress("rate");
	std::vector<Tally> tallies;
	std::shared_ptr<Work> work = new_work();
	work->messages = o_.warmup < 0 ? 2 * layout_.slots : uint64_t(o_.warmup);
	Outcome outcome = Outcome::ok;
	if (work->messages != 0)
		outcome = stream(work, &tallies);
	if (outcome == Outcome::ok)
		outcome = stream(new_work(), &tallies);
	if (outcome == Outcome::ok)
		totals->add(tallies);
	return outcome;
}

Outcome Signalling::size(uint64_t size)
{
	layout_ = layout_of(size, o_.cores, o_.window, area_bytes_);
	image_.resize(layout_.area_bytes);
	Histogram latencies;
	Totals totals;
	Outcome outcome = latency(&latencies);
	if (outcome == Outcome::ok)
		outcome = rate(&totals);
	for (uint64_t burst : {uint64_t(1), layout_.slots})
		if (outcome == Outcome::ok && o_.verify && good_)
			outcome = verify(burst);
	if (outcome != Outcome::ok)
		return outcome;
	if (pe_ == 0)
		send_row(latencies, totals);
	return good_ ? Outcome::ok : Outcome::stopped;
}

void Signalling::send_row(const Histogram &latencies, const Totals &totals)
{
	Row row = new_row(session_);
	row.queues = n_ * o_.cores;
	row.size_bytes = layout_.size;
	row.messages = totals.messages;
	row.messages_per_s = totals.messages_per_s();
	row.bytes_per_s = row.messages_per_s * double(layout_.size);
	row.latency_p50_ns = latencies.percentile(50);
	row.latency_p99_ns = latencies.percentile(99);
	if (o_.verify)
		row.verified = good_;
	session_.row(row);
}

} // namespace

Outcome signal(Session &session, uint64_t area_bytes)
{
	Signalling signalling(session, area_bytes);
	Outcome outcome = signalling.prepare();
	for (uint64_t size : session.options().sizes)
		if (outcome == Outcome::ok)
			outcome = signalling.size(size);
	return outcome;
}

} // namespace nda::perf
