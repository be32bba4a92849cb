// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/measure.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "lib/tools/perf/layout.h"
#include "lib/tools/perf/pattern.h"
#include "lib/tools/perf/phase.h"
#include "lib/tools/perf/report.h"

namespace nda::perf {
namespace {

constexpr uint64_t large_bytes = 64 << 10; // from here on memcpy is what bounds the rate
constexpr uint64_t memcpy_turns = 4;
constexpr uint64_t fresh_rounds = 8;       // of messages with data of their own
constexpr uint64_t fresh_bytes = 64 << 20; // of a PE, bounds the rounds of large messages

class Measurement {
public:
	Measurement(Session &session, uint64_t area_bytes)
		: session_(session), o_(session.options()), area_bytes_(area_bytes),
		  n_(session.n_pes()), pe_(session.pe()), peer_((pe_ + 1) % n_),
		  sender_(o_.op == Op::get ? peer_ : (pe_ + n_ - 1) % n_)
	{}

	Outcome prepare();
	Outcome size(uint64_t size);

private:
	Outcome latency(Histogram *latencies);
	Outcome rates(Totals *messages, Totals *copies);
	Outcome fresh_data();
	Outcome phase(
		nda_kernel_fn kernel, const std::shared_ptr<Work> &work, Totals *totals);
	Outcome warm_up(nda_kernel_fn kernel);
	std::shared_ptr<Work> new_work() const;
	std::shared_ptr<Work> memcpy_work() const;
	Outcome set_memory();
	Outcome check_memory();
	void progress(const char *what);
	void send_row(
		const Histogram &latencies, const Totals &messages, const Totals &copies);
	bool large() const { return layout_.size >= large_bytes; }
	bool posts() const { return pe_ < o_.posting_pes(); }

	Session &session_;
	const Options &o_;
	const uint64_t area_bytes_;
	const uint32_t n_;
	const uint32_t pe_;
	const uint32_t peer_;   // whom this PE puts to or gets from
	const uint32_t sender_; // whose data arrives here
	uint64_t source_ = 0;
	uint64_t target_ = 0;
	uint64_t scratch_ = 0; // where memcpy goes
	Layout layout_ = {};
	uint64_t round_ = 0;
	bool good_ = true; // all data of this size arrived, at every PE
	// Slots that all cores of each PE have used since set_memory().
	std::vector<uint64_t> written_;
	std::vector<uint8_t> image_;
};

Outcome Measurement::prepare()
{
	Outcome outcome = session_.alloc(area_bytes_, &source_);
	if (outcome == Outcome::ok)
		outcome = session_.alloc(area_bytes_, &target_);
	if (outcome == Outcome::ok)
		outcome = session_.alloc(area_bytes_, &scratch_);
	return session_.agree(outcome);
}

void Measurement::progress(const char *what)
{
	if (pe_ == 0)
		session_.progress(std::string(op_name(o_.op)) + " " +
			size_text(layout_.size) + ": " + what);
}

std::shared_ptr<Work> Measurement::new_work() const
{
	auto work = std::make_shared<Work>();
	work->table = session_.table();
	work->peer = peer_;
	work->get = o_.op == Op::get;
	work->source = source_;
	work->target = target_;
	work->size = layout_.size;
	work->stride = layout_.stride;
	work->slots = layout_.slots;
	work->window = o_.window;
	work->batch = o_.batch;
	work->queues = o_.queues;
	work->messages = o_.iterations;
	work->time_us = o_.time_limit_us;
	work->results.resize(o_.cores);
	return work;
}

std::shared_ptr<Work> Measurement::memcpy_work() const
{
	std::shared_ptr<Work> work = new_work();
	work->target = scratch_;
	return work;
}

Outcome Measurement::phase(
	nda_kernel_fn kernel, const std::shared_ptr<Work> &work, Totals *totals)
{
	std::vector<Tally> tallies;
	Outcome outcome = run_phase(session_,
		{kernel, work, work->results, work->time_us, op_name(o_.op), layout_.size,
			o_.op == Op::put ? target_ : source_},
		*work, posts(), &tallies);
	if (outcome != Outcome::ok)
		return outcome;
	totals->add(tallies);
	for (uint32_t pe = 0; pe < n_ && kernel != memcpy_kernel; pe++)
		written_[pe] =
			std::max(written_[pe], std::min(tallies[pe].least, layout_.slots));
	return Outcome::ok;
}

Outcome Measurement::warm_up(nda_kernel_fn kernel)
{
	Totals unused;
	std::shared_ptr<Work> work = new_work();
	work->messages = o_.warmup < 0 ? 2 * layout_.slots : uint64_t(o_.warmup);
	return work->messages == 0 ? Outcome::ok : phase(kernel, work, &unused);
}

Outcome Measurement::set_memory()
{
	round_++;
	written_.assign(n_, 0);
	fill_area(image_.data(), layout_, o_.cores, pe_, round_);
	Outcome outcome = session_.write(source_, image_.data(), layout_.area_bytes);
	if (outcome == Outcome::ok)
		outcome = session_.fill(target_, pattern_poison, layout_.area_bytes);
	return session_.agree(outcome);
}

// After a phase: its end was the last message's. Data that differ are reported, and noted
// by all PEs, but don't end the measurement of this size: it still gets its row.
Outcome Measurement::check_memory()
{
	if (!o_.verify)
		return Outcome::ok;
	Outcome outcome = session_.read(image_.data(), target_, layout_.area_bytes);
	if (outcome = session_.agree(outcome); outcome != Outcome::ok)
		return outcome;
	const uint64_t written = written_[o_.op == Op::get ? pe_ : sender_];
	const std::string wrong =
		check_area(image_.data(), layout_, o_.cores, sender_, round_, written);
	return note(session_,
		std::string(op_name(o_.op)) + " of " + std::to_string(layout_.size) +
			" bytes from PE " + std::to_string(sender_),
		wrong, &good_);
}

Outcome Measurement::latency(Histogram *latencies)
{
	progress("latency");
	Totals unused;
	std::shared_ptr<Work> work = new_work();
	Outcome outcome = set_memory();
	if (outcome == Outcome::ok)
		outcome = warm_up(session_.kernels().latency);
	if (outcome == Outcome::ok)
		outcome = phase(session_.kernels().latency, work, &unused);
	if (outcome == Outcome::ok)
		outcome = check_memory();
	return outcome == Outcome::ok ? add_latencies(session_, work->results, latencies)
				      : outcome;
}

// Messages and memcpy take turns, so that whatever else the machine does hits both alike.
// For memcpy, as many copiers as there are cores in the job move the same bytes in the same
// memory.
Outcome Measurement::rates(Totals *messages, Totals *copies)
{
	progress("rate");
	Outcome outcome = set_memory();
	if (outcome == Outcome::ok)
		outcome = warm_up(session_.kernels().rate);
	if (outcome == Outcome::ok && large()) {
		Totals unused;
		std::shared_ptr<Work> work = memcpy_work();
		work->messages = layout_.slots; // a page's first touch is not measured
		work->time_us = 0;
		outcome = phase(memcpy_kernel, work, &unused);
	}
	const uint64_t turns = large() && o_.iterations == 0 ? memcpy_turns : 1;
	for (uint64_t i = 0; i < turns && outcome == Outcome::ok; i++) {
		std::shared_ptr<Work> work = memcpy_work();
		work->time_us = std::max<uint64_t>(work->time_us / turns, 1);
		if (large())
			outcome = phase(memcpy_kernel, work, copies);
		work = new_work();
		work->time_us = std::max<uint64_t>(work->time_us / turns, 1);
		if (outcome == Outcome::ok)
			outcome = phase(session_.kernels().rate, work, messages);
	}
	return outcome == Outcome::ok ? check_memory() : outcome;
}

// Every slot once per round, each message with data that was never sent before.
Outcome Measurement::fresh_data()
{
	progress("verify");
	uint64_t round_bytes = layout_.size * layout_.slots * o_.cores;
	uint64_t rounds = std::clamp<uint64_t>(fresh_bytes / round_bytes, 1, fresh_rounds);
	for (uint64_t i = 0; i < rounds && good_; i++) {
		Outcome outcome = set_memory();
		std::shared_ptr<Work> work = new_work();
		work->messages = layout_.slots;
		work->time_us = 0;
		Totals unused;
		if (outcome == Outcome::ok)
			outcome = phase(session_.kernels().rate, work, &unused);
		if (outcome == Outcome::ok)
			outcome = check_memory();
		if (outcome != Outcome::ok)
			return outcome;
	}
	return Outcome::ok;
}

Outcome Measurement::size(uint64_t size)
{
	layout_ = layout_of(size, o_.cores, o_.window, area_bytes_);
	image_.resize(layout_.area_bytes);
	Histogram latencies;
	Totals messages;
	Totals copies;
	Outcome outcome = latency(&latencies);
	if (outcome == Outcome::ok)
		outcome = rates(&messages, &copies);
	if (outcome == Outcome::ok && o_.verify)
		outcome = fresh_data();
	if (outcome != Outcome::ok)
		return outcome;
	if (pe_ == 0)
		send_row(latencies, messages, copies);
	return good_ ? Outcome::ok : Outcome::stopped;
}

void Measurement::send_row(
	const Histogram &latencies, const Totals &messages, const Totals &copies)
{
	Row row = new_row(session_);
	row.one_way = o_.one_way;
	row.queues = o_.posting_pes() * o_.cores * o_.queues;
	row.size_bytes = layout_.size;
	row.messages = messages.messages;
	row.messages_per_s = messages.messages_per_s();
	row.bytes_per_s = row.messages_per_s * double(layout_.size);
	row.latency_p50_ns = latencies.percentile(50);
	row.latency_p99_ns = latencies.percentile(99);
	if (large()) {
		row.memcpy_bytes_per_s = copies.messages_per_s() * double(layout_.size);
		row.memcpy_ratio = row.bytes_per_s / *row.memcpy_bytes_per_s;
	}
	if (o_.verify)
		row.verified = good_;
	session_.row(row);
}

} // namespace

Outcome measure(Session &session, uint64_t area_bytes)
{
	Measurement measurement(session, area_bytes);
	Outcome outcome = measurement.prepare();
	for (uint64_t size : session.options().sizes)
		if (outcome == Outcome::ok)
			outcome = measurement.size(size);
	return outcome;
}

} // namespace nda::perf
