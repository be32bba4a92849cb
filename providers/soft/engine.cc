// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/engine.h"

#include "lib/common/clock.h"
#include "providers/soft/error.h"
#include "providers/soft/transfer.h"
#include "providers/soft/words.h"

#include <algorithm>
#include <cstring>
#include <infiniband/verbs.h>
#include <new>

namespace nda::soft {
namespace {

// A large transfer goes in pieces: between two the engine looks at other queues, and
// whether both ends are still there.
constexpr uint64_t chunk_bytes = 256 * 1024;
constexpr int max_requests = 64; // of a queue in a pass
constexpr uint32_t notify_bytes = 8;
// How long a segment may be on its way that the peer has announced before it gave the key.
constexpr uint64_t announced_ns = 5000 * ns_per_ms;

bool every(uint32_t n, uint64_t count)
{
	return n && count % n == 0;
}

} // namespace

// ---- SendQueue -------------------------------------------------------------------------

void SendQueue::reset(uint32_t index)
{
	state = SendState::reset;
	ci = pi = rung = index;
	peer.reset();
	peer_qpn = 0;
	request.phase = Request::Phase::fetch;
	started = 0;
}

void SendQueue::fail_all()
{
	state = SendState::error;
	if (request.phase == Request::Phase::move)
		request.end(NDA_FLUSHED);
}

// ---- Keys ------------------------------------------------------------------------------

Resolved resolve(const Peer &owner, uint32_t key, uint64_t address, uint64_t size,
	uint32_t pd, uint32_t access, uint8_t *&host)
{
	const SharedMr &mr = owner.control().mrs[mr_index(key)];
	if (key == 0 || mr.key.load(std::memory_order_seq_cst) != key)
		return Resolved::denied;
	if (mr.pd.load(std::memory_order_relaxed) != pd ||
		(mr.access.load(std::memory_order_relaxed) & access) != access)
		return Resolved::denied;
	uint64_t mr_size = mr.size.load(std::memory_order_relaxed);
	uint64_t inside = address - mr.address.load(std::memory_order_relaxed);
	if (inside > mr_size || size > mr_size - inside)
		return Resolved::denied;

	Peer::View view = owner.segment(mr.segment.load(std::memory_order_relaxed));
	if (!view.base)
		return Resolved::not_mapped;
	// What the owner says of itself is checked against what is mapped here.
	uint64_t at = mr.offset.load(std::memory_order_relaxed);
	if (at > view.size || inside > view.size - at || size > view.size - at - inside)
		return Resolved::denied;
	host = view.base + at + inside;
	return Resolved::ok;
}

// ---- A pass ----------------------------------------------------------------------------

void Engine::detach(SendQueue &q)
{
	queues_.erase(std::remove(queues_.begin(), queues_.end(), &q), queues_.end());
}

int Engine::pass()
{
	int work = 0;
	timed_ = false;
	for (SendQueue *q : queues_)
		work += serve(*q);
	return work;
}

int Engine::serve(SendQueue &q)
{
	int work = 0;
	Breach breach;
	if (q.format->take_doorbell(q, breach)) {
		answer_doorbell(q, breach);
		work++;
	}
	if (q.ci == q.pi)
		return work;

	// See shared.h. One writer: the holder of the lock.
	uint64_t pass = pass_.load(std::memory_order_relaxed);
	pass_.store(pass + 1, std::memory_order_seq_cst);
	uint64_t bytes = 0;
	for (int n = 0; n < max_requests && bytes < chunk_bytes && q.ci != q.pi; n++) {
		uint32_t ci = q.ci;
		uint64_t before = bytes;
		// A request goes as far as it can; the next one after it is done.
		while (advance(q, bytes))
			;
		if (q.ci == ci) {
			work += bytes != before;
			break;
		}
		work++;
	}
	pass_.store(pass + 2, std::memory_order_release);
	return work;
}

void Engine::answer_doorbell(SendQueue &q, const Breach &b)
{
	if (b)
		breach(q, b);
	else if (q.state == SendState::reset || q.state == SendState::waiting)
		breach(q, {"doorbell of a QP that is not ready to send", NDA_LOCAL_QP, 0});
}

void Engine::count(const SendQueue &q, const Breach &b)
{
	violations_.fetch_add(1, std::memory_order_relaxed);
	SOFT_LOG(err, "QP %u: index %u: %s", q.qpn, q.ci, b.what);
	if (q.log)
		q.log->breach(q, b);
}

// The queue stops with an error completion for the request at ci.
void Engine::breach(SendQueue &q, const Breach &b)
{
	count(q, b);
	if (q.state == SendState::reset) {
		q.pi = q.ci;
		return;
	}
	if (q.state == SendState::error)
		return;
	q.state = SendState::error;
	if (q.on_breach)
		q.on_breach(q.cookie);
	if (q.request.phase == Request::Phase::complete)
		return; // this one had ended before
	if (q.ci == q.pi)
		q.pi++;
	q.request.work.signalled = true;
	q.request.end(b.status, b.vendor);
}

// One step of the request at q.ci, false if it cannot go on now or is done for this pass.
bool Engine::advance(SendQueue &q, uint64_t &bytes)
{
	Request &r = q.request;
	switch (r.phase) {
	case Request::Phase::fetch:
		begin(q, r);
		return true;
	case Request::Phase::move:
		switch (move(q, r, bytes)) {
		case Progress::done:
			r.phase = Request::Phase::complete;
			return true;
		case Progress::more:
			return false;
		case Progress::wait:
			timed_ = true;
			return false;
		}
		return false;
	case Request::Phase::complete:
		if (!complete(q, r)) {
			timed_ = true; // until the consumer index moves on
			return false;
		}
		if (r.status != NDA_OK)
			q.state = SendState::error;
		r.phase = Request::Phase::fetch;
		q.ci += r.work.units;
		return false;
	}
	return false;
}

void Engine::begin(SendQueue &q, Request &r)
{
	r.status = NDA_OK;
	r.vendor = 0;
	r.moved = 0;
	r.dropped = false;
	r.not_before = 0;
	r.unanswered = 0;
	r.phase = Request::Phase::move;
	new (&r.work) Work;
	Breach b = q.format->fetch(q, q.ci, r.work);
	uint32_t &units = r.work.units;
	if (!b && (units == 0 || units > q.pi - q.ci))
		b.what = "request that ends beyond what was posted";
	else if (!b && is_atomic(r.work.op) &&
		(r.work.piece_count != 1 || r.work.pieces[0].length != r.work.atomic.size))
		b = {"atomic whose result has another size", NDA_LOCAL_LENGTH};
	if (b)
		units = std::min(std::max(units, 1u), q.pi - q.ci);
	if (q.state == SendState::error) {
		r.end(NDA_FLUSHED);
		return;
	}
	if (b) {
		breach(q, b);
		return;
	}
	if (q.log)
		q.log->request(q, q.ci, r.work);
	q.started++;
	if (q.faults->delay_us)
		r.not_before = now_ns() + uint64_t{q.faults->delay_us} * 1000;
	r.dropped = every(q.faults->drop_every, q.started);
	if (every(q.faults->remote_access_every, q.started))
		r.status = NDA_REMOTE_ACCESS;
	else if (every(q.faults->retry_exceeded_every, q.started))
		r.status = NDA_RETRY_EXCEEDED;
}

// False if the completion queue is full.
bool Engine::complete(SendQueue &q, const Request &r)
{
	if (r.status == NDA_OK && !r.work.signalled && !q.signal_all)
		return true;
	CompletionQueue &cq = *q.cq;
	Breach b = q.format->read_consumer(cq);
	if (b && !cq.breached) {
		cq.breached = true; // to be told of once
		breach(q, b);
	}
	if (cq.pi - cq.ci >= cq.depth)
		return false;
	const Completion c = {q.ci, r.work, r.status, r.vendor};
	q.format->complete(q, c);
	if (q.log)
		q.log->completion(q, c);
	cq.pi++;
	return true;
}

Engine::Progress Engine::unanswered(Request &r, uint64_t give_up_ns)
{
	uint64_t now = now_ns();
	if (!r.unanswered)
		r.unanswered = now;
	if (!give_up_ns || now - r.unanswered < give_up_ns)
		return Progress::wait;
	r.status = NDA_RETRY_EXCEEDED;
	return Progress::done;
}

namespace {

int remote_access(Operation op)
{
	switch (op) {
	case Operation::write:
		return IBV_ACCESS_REMOTE_WRITE;
	case Operation::read:
		return IBV_ACCESS_REMOTE_READ;
	default:
		return IBV_ACCESS_REMOTE_ATOMIC;
	}
}

// Where the pieces are, in local; false if this QP may not use one of them so.
bool resolve_pieces(const SendQueue &q, Work &w, uint8_t *local[])
{
	if (w.has_inline)
		local[0] = w.inline_data;
	for (uint32_t i = 0; i < w.piece_count; i++) {
		const Piece &p = w.pieces[i];
		Resolved r = resolve(*Fabric::get().self(), p.key, p.address, p.length,
			q.pd, w.op == Operation::write ? 0 : IBV_ACCESS_LOCAL_WRITE,
			local[i]);
		if (p.length && r != Resolved::ok)
			return false;
	}
	return true;
}

// Whether the QP that q is connected to is connected to q. Whoever is not does not answer.
bool points_back(const SharedQp &target, const SendQueue &q)
{
	return target.peer_qpn.load(std::memory_order_relaxed) == q.qpn &&
		target.gid[0].load(std::memory_order_relaxed) == q.peer_gid[0] &&
		target.gid[1].load(std::memory_order_relaxed) == q.peer_gid[1] &&
		target.peer_gid[0].load(std::memory_order_relaxed) == q.gid[0] &&
		target.peer_gid[1].load(std::memory_order_relaxed) == q.gid[1];
}

// Whether the target can take an operation of elements at this address.
bool aligned(const Work &w)
{
	uint32_t element = is_atomic(w.op) ? w.atomic.size
		: w.reduce != Reduce::none ? element_size(w.reduce)
					   : 1;
	return w.remote % element == 0 && w.length % element == 0;
}

// Moves the payload from r.moved on, a chunk at most.
void copy(Request &r, uint8_t *const local[], uint8_t *remote)
{
	const Work &w = r.work;
	uint64_t left = chunk_bytes;
	uint64_t start = 0; // of the piece
	uint32_t count = w.has_inline ? 1 : w.piece_count;
	for (uint32_t i = 0; i < count && left; i++) {
		uint64_t length = w.has_inline ? w.length : w.pieces[i].length;
		if (r.moved < start + length) {
			uint64_t inside = r.moved - start;
			uint64_t size = std::min(length - inside, left);
			if (w.op == Operation::read)
				dma_move(local[i] + inside, remote + r.moved, size);
			else if (w.reduce == Reduce::none)
				dma_move(remote + r.moved, local[i] + inside, size);
			else
				reduce_into(w.reduce, remote + r.moved, local[i] + inside,
					size);
			r.moved += size;
			left -= size;
		}
		start += length;
	}
}

} // namespace

Engine::Progress Engine::move(SendQueue &q, Request &r, uint64_t &bytes)
{
	auto end = [&r](enum nda_status status) {
		r.status = status;
		return Progress::done;
	};
	if (r.not_before && now_ns() < r.not_before)
		return Progress::wait;
	if (r.status != NDA_OK)
		return Progress::done;
	if (q.peer->dead())
		return end(NDA_RETRY_EXCEEDED);
	if (r.dropped)
		return unanswered(r, q.give_up_ns);

	Work &w = r.work;
	uint8_t *local[Work::max_pieces];
	if (!resolve_pieces(q, w, local))
		return end(NDA_LOCAL_PROTECTION);

	if (q.peer_qpn >= qp_count)
		return unanswered(r, q.give_up_ns);
	const SharedQp &target = q.peer->control().qps[q.peer_qpn];
	QpLife life = target.life.load(std::memory_order_seq_cst);
	if (life == QpLife::error)
		return end(NDA_RETRY_EXCEEDED);
	if (life != QpLife::receiving || !points_back(target, q))
		return unanswered(r, q.give_up_ns);
	uint32_t access = static_cast<uint32_t>(remote_access(w.op));
	if (!(target.access.load(std::memory_order_relaxed) & access) ||
		(w.op != Operation::write &&
			target.reads.load(std::memory_order_relaxed) == 0) ||
		!aligned(w))
		return end(NDA_REMOTE_INVALID);

	uint32_t pd = target.pd.load(std::memory_order_relaxed);
	uint8_t *remote = nullptr, *notify = nullptr;
	Resolved found = Resolved::ok;
	if (w.length)
		found = resolve(*q.peer, w.rkey, w.remote, w.length, pd, access, remote);
	if (w.has_notify && found == Resolved::ok)
		found = resolve(*q.peer, w.notify_key, w.notify_address, notify_bytes, pd,
			access, notify);
	if (found == Resolved::denied)
		return end(NDA_REMOTE_ACCESS);
	if (found == Resolved::not_mapped)
		return unanswered(r, announced_ns);
	// Nobody has receives.
	if (w.has_immediate)
		return end(NDA_RNR_RETRY_EXCEEDED);

	r.unanswered = 0;
	if (is_atomic(w.op)) {
		execute_atomic(w.op, w.atomic, remote, local[0]);
		bytes += w.length;
		return Progress::done;
	}
	uint64_t before = r.moved;
	copy(r, local, remote);
	bytes += r.moved - before;
	if (r.moved < w.length)
		return Progress::more;
	if (w.has_notify)
		dma_move(notify, &w.notify_data, notify_bytes);
	return Progress::done;
}

// ---- The thread ------------------------------------------------------------------------

int Engine::start()
{
	int rc = Poller::start("nda-nic");
	if (rc)
		return fail(rc, "NIC engine: starting its thread: %s", strerror(-rc));
	return 0;
}

} // namespace nda::soft
