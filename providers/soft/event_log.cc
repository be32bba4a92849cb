// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/event_log.h"

#include "lib/common/clock.h"
#include "providers/soft/engine.h"
#include "providers/soft/error.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>

namespace nda::soft {
namespace {

const char *name_of(Operation op)
{
	switch (op) {
	case Operation::write:
		return "write";
	case Operation::read:
		return "read";
	case Operation::compare_swap:
		return "compare_swap";
	case Operation::fetch_add:
		return "fetch_add";
	}
	return "?";
}

const char *name_of(Reduce reduce)
{
	switch (reduce) {
	case Reduce::none:
		break;
	case Reduce::add_int8:
		return "add_int8";
	case Reduce::add_int16:
		return "add_int16";
	case Reduce::add_int32:
		return "add_int32";
	case Reduce::add_fp32:
		return "add_fp32";
	}
	return "none";
}

const char *name_of(Order order)
{
	switch (order) {
	case Order::transport:
		break;
	case Order::relaxed:
		return "relaxed";
	case Order::strong:
		return "strong";
	}
	return "transport";
}

const char *text(bool value)
{
	return value ? "true" : "false";
}

} // namespace

// Has room for a request with all its pieces.
class EventLog::Line {
public:
	Line(const EventLog &log, const char *event, uint32_t qpn, uint32_t index)
	{
		add("{\"time_ns\": %" PRIu64 ", \"pid\": %d, \"nic\": \"%s\", "
		    "\"event\": \"%s\", \"qpn\": %u, \"index\": %u",
			now_ns(), getpid(), log.nic_.c_str(), event, qpn, index);
	}
	void add(const char *format, ...) __attribute__((format(printf, 2, 3)))
	{
		va_list arguments;
		va_start(arguments, format);
		int n = vsnprintf(text_ + size_, sizeof(text_) - size_, format, arguments);
		va_end(arguments);
		size_ = std::min(size_ + static_cast<size_t>(n), sizeof(text_) - 1);
	}
	const char *text() const { return text_; }
	size_t size() const { return size_; }

private:
	char text_[4096];
	size_t size_ = 0;
};

int EventLog::open(const char *path, std::unique_ptr<EventLog> &log)
{
	auto fresh = std::make_unique<EventLog>();
	fresh->path_ = path;
	// What is no regular file might block, now or later.
	fresh->fd_ = Fd(::open(path,
		O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666));
	if (!fresh->fd_)
		return fail(-errno, "event log '%s': %s", path, strerror(errno));
	struct stat about;
	if (fstat(fresh->fd_.get(), &about))
		return fail(-errno, "event log '%s': %s", path, strerror(errno));
	if (!S_ISREG(about.st_mode))
		return fail(-EINVAL, "event log '%s': not a regular file", path);
	log = std::move(fresh);
	return 0;
}

void EventLog::write(Line &line)
{
	line.add("}\n");
	if (error_.load(std::memory_order_relaxed))
		return;
	ssize_t n;
	do
		n = ::write(fd_.get(), line.text(), line.size());
	while (n < 0 && errno == EINTR);
	if (n == static_cast<ssize_t>(line.size()))
		return;
	int error = n < 0 ? errno : ENOSPC; // the file system's last bytes
	error_.store(error, std::memory_order_relaxed);
	SOFT_LOG(err, "event log '%s': %s; no more is written", path_.c_str(),
		strerror(error));
}

int EventLog::result() const
{
	int error = error_.load(std::memory_order_relaxed);
	if (!error)
		return 0;
	return fail(-error, "event log '%s' is not complete: %s", path_.c_str(),
		strerror(error));
}

void EventLog::request(const SendQueue &q, uint32_t index, const Work &w)
{
	Line line(*this, "wqe", q.qpn, index);
	line.add(", \"units\": %u, \"op\": \"%s\", \"length\": %u, \"signalled\": %s, "
		 "\"fence\": %s, \"order\": \"%s\", \"remote\": \"0x%" PRIx64
		 "\", \"rkey\": %u, \"local\": [",
		w.units, name_of(w.op), w.length, text(w.signalled || q.signal_all),
		text(w.fence), name_of(w.order), w.remote, w.rkey);
	for (uint32_t i = 0; i < w.piece_count; i++)
		line.add("%s{\"address\": \"0x%" PRIx64 "\", \"length\": %u, \"lkey\": %u}",
			i ? ", " : "", w.pieces[i].address, w.pieces[i].length,
			w.pieces[i].key);
	line.add("], \"inline\": %s", text(w.has_inline));
	if (w.reduce != Reduce::none)
		line.add(", \"reduce\": \"%s\"", name_of(w.reduce));
	if (w.has_immediate)
		line.add(", \"immediate\": %u", w.immediate);
	if (w.has_notify)
		line.add(", \"notify\": {\"address\": \"0x%" PRIx64
			 "\", \"rkey\": %u, \"data\": \"0x%" PRIx64 "\"}",
			w.notify_address, w.notify_key, w.notify_data);
	write(line);
}

void EventLog::completion(const SendQueue &q, const Completion &c)
{
	Line line(*this, "cqe", q.qpn, c.index);
	line.add(", \"cqn\": %u, \"cq_index\": %u, \"status\": %d, \"vendor\": %u",
		q.cq->cqn, q.cq->pi, c.status, c.vendor);
	write(line);
}

void EventLog::received(const SendQueue &q, const Received &r)
{
	Line line(*this, "receive", q.qpn, r.index);
	line.add(", \"cqn\": %u, \"cq_index\": %u, \"length\": %u, \"immediate\": %u",
		q.receive_cq->cqn, q.receive_cq->pi, r.bytes, r.immediate);
	write(line);
}

void EventLog::breach(const SendQueue &q, uint32_t index, const Breach &b)
{
	Line line(*this, "breach", q.qpn, index);
	line.add(", \"what\": \"%s\"", b.what);
	if (b.cqn)
		line.add(", \"cqn\": %u", b.cqn);
	write(line);
}

} // namespace nda::soft
