// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/engine.h"

#include "lib/common/clock.h"
#include "providers/soft/error.h"
#include "providers/soft/words.h"

#include <algorithm>
#include <cstring>
#include <infiniband/verbs.h>

namespace nda::soft {
namespace {

// A large transfer goes in pieces: between two the engine looks at other queues, and
// whether both ends are still there.
constexpr uint64_t chunk_bytes = 256 * 1024;
constexpr int max_requests = 64; // of a queue in a pass
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
	phase = Phase::fetch;
	started = 0;
}

void SendQueue::fail_all()
{
	state = SendState::error;
	if (phase == Phase::move) {
		status = NDA_FLUSHED;
		vendor = 0;
		phase = Phase::complete;
	}
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

// The queue stops with an error completion for the request at ci.
void Engine::breach(SendQueue &q, const Breach &b)
{
	violations_.fetch_add(1, std::memory_order_relaxed);
	SOFT_LOG(err, "QP %u: index %u: %s", q.qpn, q.ci, b.what);
	if (q.state == SendState::reset) {
		q.pi = q.ci;
		return;
	}
	if (q.state == SendState::error)
		return;
	q.state = SendState::error;
	if (q.on_breach)
		q.on_breach(q.cookie);
	if (q.phase == SendQueue::Phase::complete)
		return; // this one had ended before
	if (q.ci == q.pi)
		q.pi++;
	q.work.signalled = true;
	q.status = b.status;
	q.vendor = b.vendor;
	q.phase = SendQueue::Phase::complete;
}

// One step of the request at q.ci, false if it cannot go on now or is done for this pass.
bool Engine::advance(SendQueue &q, uint64_t &bytes)
{
	switch (q.phase) {
	case SendQueue::Phase::fetch:
		begin(q);
		return true;
	case SendQueue::Phase::move:
		switch (move(q, bytes)) {
		case Progress::done:
			q.phase = SendQueue::Phase::complete;
			return true;
		case Progress::more:
			return false;
		case Progress::wait:
			timed_ = true;
			return false;
		}
		return false;
	case SendQueue::Phase::complete:
		if (q.status != NDA_OK || q.work.signalled || q.signal_all) {
			if (!q.format->complete(q, q.status, q.vendor)) {
				timed_ = true; // until the consumer index moves on
				return false;
			}
		}
		if (q.status != NDA_OK)
			q.state = SendState::error;
		q.phase = SendQueue::Phase::fetch;
		q.ci++;
		return false;
	}
	return false;
}

void Engine::begin(SendQueue &q)
{
	q.status = NDA_OK;
	q.vendor = 0;
	q.moved = 0;
	q.dropped = false;
	q.not_before = 0;
	q.unanswered = 0;
	q.phase = SendQueue::Phase::move;
	if (q.state == SendState::error) {
		q.fail_all();
		return;
	}
	Breach b = q.format->fetch(q, q.work);
	if (b) {
		breach(q, b);
		return;
	}
	q.started++;
	if (q.faults->delay_us)
		q.not_before = now_ns() + uint64_t{q.faults->delay_us} * 1000;
	q.dropped = every(q.faults->drop_every, q.started);
	if (every(q.faults->remote_access_every, q.started))
		q.status = NDA_REMOTE_ACCESS;
	else if (every(q.faults->retry_exceeded_every, q.started))
		q.status = NDA_RETRY_EXCEEDED;
}

Engine::Progress Engine::unanswered(SendQueue &q, uint64_t give_up_ns)
{
	uint64_t now = now_ns();
	if (!q.unanswered)
		q.unanswered = now;
	if (!give_up_ns || now - q.unanswered < give_up_ns)
		return Progress::wait;
	q.status = NDA_RETRY_EXCEEDED;
	return Progress::done;
}

Engine::Progress Engine::move(SendQueue &q, uint64_t &bytes)
{
	auto end = [&q](enum nda_status status) {
		q.status = status;
		return Progress::done;
	};
	if (q.not_before && now_ns() < q.not_before)
		return Progress::wait;
	if (q.status != NDA_OK)
		return Progress::done;
	if (q.peer->dead())
		return end(NDA_RETRY_EXCEEDED);
	if (q.dropped)
		return unanswered(q, q.give_up_ns);

	bool write = q.work.op == Operation::write;
	uint8_t *local, *remote;
	Resolved r = resolve(*Fabric::get().self(), q.work.lkey, q.work.local,
		q.work.length, q.pd, write ? 0 : IBV_ACCESS_LOCAL_WRITE, local);
	if (r != Resolved::ok)
		return end(NDA_LOCAL_PROTECTION);

	if (q.peer_qpn >= qp_count)
		return unanswered(q, q.give_up_ns);
	const SharedQp &target = q.peer->control().qps[q.peer_qpn];
	QpLife life = target.life.load(std::memory_order_seq_cst);
	if (life == QpLife::error)
		return end(NDA_RETRY_EXCEEDED);
	// Whoever is not connected to this QP does not answer.
	if (life != QpLife::receiving ||
		target.peer_qpn.load(std::memory_order_relaxed) != q.qpn ||
		target.gid[0].load(std::memory_order_relaxed) != q.peer_gid[0] ||
		target.gid[1].load(std::memory_order_relaxed) != q.peer_gid[1] ||
		target.peer_gid[0].load(std::memory_order_relaxed) != q.gid[0] ||
		target.peer_gid[1].load(std::memory_order_relaxed) != q.gid[1])
		return unanswered(q, q.give_up_ns);
	uint32_t access = write ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ;
	if (!(target.access.load(std::memory_order_relaxed) & access) ||
		(!write && target.reads.load(std::memory_order_relaxed) == 0))
		return end(NDA_REMOTE_INVALID);
	r = resolve(*q.peer, q.work.rkey, q.work.remote, q.work.length,
		target.pd.load(std::memory_order_relaxed), access, remote);
	if (r == Resolved::denied)
		return end(NDA_REMOTE_ACCESS);
	if (r == Resolved::not_mapped)
		return unanswered(q, announced_ns);

	q.unanswered = 0;
	uint64_t size = std::min(q.work.length - q.moved, chunk_bytes);
	if (write)
		dma_move(remote + q.moved, local + q.moved, size);
	else
		dma_move(local + q.moved, remote + q.moved, size);
	q.moved += size;
	bytes += size;
	return q.moved == q.work.length ? Progress::done : Progress::more;
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
