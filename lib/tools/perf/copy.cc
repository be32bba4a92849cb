// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/copy.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "lib/common/fd.h"
#include "lib/tools/perf/file.h"
#include "lib/tools/perf/pattern.h"
#include "lib/tools/perf/phase.h"
#include "lib/tools/perf/sha256.h"

namespace nda::perf {
namespace {

constexpr size_t hash_text_bytes = 64;

// What PE 0 tells the others about the piece that comes next.
struct Piece {
	Outcome outcome = Outcome::ok;
	uint64_t bytes = 0; // 0: the file is done
};

struct Sum {
	char text[hash_text_bytes];
};

class Copy {
public:
	Copy(Session &session, uint64_t piece_bytes)
		: session_(session), o_(session.options()), piece_bytes_(piece_bytes),
		  pe_(session.pe()), n_(session.n_pes()), buffer_(piece_bytes)
	{}

	Outcome prepare();
	Outcome file(const std::string &path);

private:
	Outcome open_and_hash();
	Outcome load(Piece *piece);
	Outcome send(uint64_t bytes);
	Outcome receive(uint64_t bytes);
	Outcome pieces();
	Outcome exchange_sums();
	Outcome finish();
	Outcome fail_file(int64_t error)
	{
		return session_.fail(path_, strerror(int(-error)));
	}

	Session &session_;
	const Options &o_;
	const uint64_t piece_bytes_;
	const uint32_t pe_;
	const uint32_t n_;
	uint64_t address_ = 0;
	std::vector<uint8_t> buffer_;

	// Of the file that is being copied.
	std::string path_;
	Fd fd_;
	uint64_t file_bytes_ = 0; // PE 0: as hashed
	uint64_t moved_ = 0;
	uint64_t messages_ = 0;
	uint64_t elapsed_ns_ = 0;
	Histogram latency_;
	std::unique_ptr<Sha256> hash_;
	std::string own_sum_;
	std::vector<std::string> sums_;
};

Outcome Copy::prepare()
{
	return session_.agree(session_.alloc(piece_bytes_, &address_));
}

// PE 0: the file's own sum, before any of it moves.
Outcome Copy::open_and_hash()
{
	fd_ = Fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
	if (!fd_)
		return fail_file(-errno);
	Sha256 hash;
	for (;;) {
		int64_t n = read_full(fd_.get(), buffer_.data(), buffer_.size());
		if (n < 0)
			return fail_file(n);
		hash.update(buffer_.data(), size_t(n));
		file_bytes_ += uint64_t(n);
		session_.progress(path_ + ": hashing");
		if (uint64_t(n) < buffer_.size())
			break;
	}
	own_sum_ = hash.finish();
	if (own_sum_.empty())
		return session_.fail(path_, "SHA-256 failed in libcrypto");
	return lseek(fd_.get(), 0, SEEK_SET) == 0 ? Outcome::ok : fail_file(-errno);
}

// PE 0: the next piece from the file into its NPU's memory.
Outcome Copy::load(Piece *piece)
{
	int64_t n = read_full(fd_.get(), buffer_.data(), buffer_.size());
	if (n < 0)
		return fail_file(n);
	piece->bytes = uint64_t(n);
	uint64_t seen = moved_ + piece->bytes;
	if (seen > file_bytes_ || (n == 0 && seen != file_bytes_))
		return session_.fail(path_, "changed while it was read");
	session_.progress(path_ + ": copying");
	return n == 0 ? Outcome::ok
		      : session_.write(address_, buffer_.data(), piece->bytes);
}

// PE 0: the piece to the memory of every other PE.
Outcome Copy::send(uint64_t bytes)
{
	auto work = std::make_shared<CopyWork>();
	work->table = session_.table();
	work->address = address_;
	work->size = bytes;
	work->chunk = o_.chunk_bytes;
	work->window = o_.window;
	work->batch = o_.batch;
	work->results.resize(o_.cores);
	// Each wait in it has the time of its own; this is for the sum of many.
	constexpr uint64_t piece_limit_us = 60000000;
	Outcome outcome =
		session_.run({session_.kernels().copy, work, work->results, piece_limit_us,
			op_name(Op::copy), std::min(bytes, o_.chunk_bytes), address_});
	uint64_t start_ns = UINT64_MAX;
	uint64_t end_ns = 0;
	for (const CoreResult &result : work->results) {
		messages_ += result.messages;
		start_ns = std::min(start_ns, result.start_ns);
		end_ns = std::max(end_ns, result.end_ns);
		latency_.merge(result.latency);
	}
	if (outcome == Outcome::ok)
		elapsed_ns_ += end_ns - start_ns;
	return outcome;
}

// Other PEs: what has come, out of the NPU's memory into the sum.
Outcome Copy::receive(uint64_t bytes)
{
	Outcome outcome = session_.read(buffer_.data(), address_, bytes);
	hash_->update(buffer_.data(), bytes);
	return outcome;
}

Outcome Copy::pieces()
{
	for (;;) {
		Piece own;
		std::vector<Piece> all(n_);
		if (pe_ == 0)
			own.outcome = load(&own);
		if (Outcome o = session_.allgather(&own, all.data(), sizeof(own));
			o != Outcome::ok)
			return o;
		if (all[0].outcome != Outcome::ok)
			return pe_ == 0 ? own.outcome : Outcome::stopped;
		const uint64_t bytes = all[0].bytes;
		if (bytes == 0)
			return Outcome::ok;
		// What an earlier piece left must not pass for this one.
		auto ready = [&] { return session_.fill(address_, pattern_poison, bytes); };
		Outcome o = session_.agree(pe_ == 0 ? Outcome::ok : ready());
		if (o == Outcome::ok)
			o = session_.agree(pe_ == 0 ? send(bytes) : Outcome::ok);
		if (o == Outcome::ok)
			o = session_.agree(pe_ == 0 ? Outcome::ok : receive(bytes));
		if (o != Outcome::ok)
			return o;
		moved_ += bytes;
	}
}

Outcome Copy::exchange_sums()
{
	Outcome outcome = Outcome::ok;
	if (pe_ != 0) {
		own_sum_ = hash_->finish();
		if (own_sum_.empty())
			outcome = session_.fail(path_, "SHA-256 failed in libcrypto");
	}
	if (outcome = session_.agree(outcome); outcome != Outcome::ok)
		return outcome;
	Sum own;
	std::vector<Sum> all(n_);
	memcpy(own.text, own_sum_.data(), sizeof(own.text));
	if (outcome = session_.allgather(&own, all.data(), sizeof(own));
		outcome != Outcome::ok)
		return outcome;
	sums_.clear();
	for (const Sum &sum : all)
		sums_.emplace_back(sum.text, sizeof(sum.text));
	return Outcome::ok;
}

Outcome Copy::finish()
{
	bool same = std::all_of(sums_.begin(), sums_.end(),
		[&](const std::string &s) { return s == sums_[0]; });
	if (pe_ != 0)
		return same ? Outcome::ok : Outcome::stopped;
	Row row = new_row(session_);
	row.queues = (n_ - 1) * o_.cores;
	row.size_bytes = moved_;
	row.messages = messages_;
	if (elapsed_ns_ != 0) {
		double s = double(elapsed_ns_) / 1e9;
		row.messages_per_s = double(messages_) / s;
		row.bytes_per_s = double(moved_) * (n_ - 1) / s;
	}
	row.latency_p50_ns = latency_.percentile(50);
	row.latency_p99_ns = latency_.percentile(99);
	row.verified = same;
	row.file = path_;
	row.sha256 = sums_;
	session_.row(row);
	for (uint32_t pe = 1; pe < n_; pe++)
		if (sums_[pe] != sums_[0])
			session_.fail(path_,
				"PE " + std::to_string(pe) +
					"'s memory holds other data than the file");
	return same ? Outcome::ok : Outcome::failed;
}

Outcome Copy::file(const std::string &path)
{
	path_ = path;
	file_bytes_ = moved_ = messages_ = elapsed_ns_ = 0;
	latency_ = Histogram();
	hash_ = std::make_unique<Sha256>();
	Outcome outcome = session_.agree(pe_ == 0 ? open_and_hash() : Outcome::ok);
	if (outcome == Outcome::ok)
		outcome = pieces();
	if (outcome == Outcome::ok)
		outcome = exchange_sums();
	return outcome == Outcome::ok ? finish() : outcome;
}

} // namespace

Outcome copy(Session &session, uint64_t piece_bytes)
{
	Copy job(session, piece_bytes);
	Outcome outcome = job.prepare();
	// Only PE 0's machine needs to have been told the files.
	const std::vector<std::string> &files = session.options().files;
	const uint64_t own = files.size();
	std::vector<uint64_t> counts(session.n_pes());
	if (outcome == Outcome::ok)
		outcome = session.allgather(&own, counts.data(), sizeof(own));
	for (uint64_t i = 0; i < counts[0] && outcome == Outcome::ok; i++)
		outcome = job.file(
			i < own ? files[i] : "file " + std::to_string(i + 1) + " of PE 0");
	return outcome;
}

} // namespace nda::perf
