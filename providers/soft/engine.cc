// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/engine.h"

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
constexpr uint32_t notify_bytes = 8;
constexpr uint64_t rnr_ns_most =
	655360000; // that the timer's codes have; a peer says which
// How long a segment may be on its way that the peer has announced before it gave the key.
constexpr uint64_t announced_ns = 5000 * ns_per_ms;

bool every(uint32_t n, uint64_t count)
{
	return n && count % n == 0;
}

} // namespace

// ---- Requests and queues ---------------------------------------------------------------

void Request::divide(uint64_t bytes)
{
	part_bytes = bytes;
	// A division costs as much as a small transfer.
	parts = work.length <= bytes
		? work.length != 0
		: static_cast<uint32_t>((work.length + bytes - 1) / bytes);
}

void Request::step()
{
	uint32_t mask = 1;
	while (mask < parts)
		mask *= 2;
	mask--;
	do
		part = (part + stride) & mask;
	while (part >= parts);
}

// A linear congruential generator's upper half.
uint32_t SendQueue::next_random()
{
	random = random * 6364136223846793005 + 1442695040888963407;
	return static_cast<uint32_t>(random >> 32);
}

void SendQueue::reset()
{
	state = SendState::reset;
	start_at(0);
	window.clear();
	peer.reset();
	peer_qpn = 0;
	told_of_peer = false;
	started = 0;
	random = faults->seed;
}

void SendQueue::fail_all()
{
	state = SendState::error;
	for (Request &r : window) {
		if (!r.ended)
			r.end(NDA_FLUSHED);
	}
}

uint32_t ReceiveQueue::posted() const
{
	return (load_acquire<uint32_t>(producer) - ci) & 0xffff;
}

uint32_t ReceiveQueue::take()
{
	store_release<uint32_t>(consumer, ci + 1);
	return ci++;
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
	uint64_t mr_address = mr.address.load(std::memory_order_relaxed);
	uint64_t inside = address - mr_address;
	if (inside > mr_size || size > mr_size - inside)
		return Resolved::denied;

	Peer::View view = owner.segment(mr.segment.load(std::memory_order_relaxed));
	if (!view.base)
		return Resolved::not_mapped;
	// What the owner says of itself is checked against what is mapped here.
	uint64_t at = mr.offset.load(std::memory_order_relaxed);
	if (at > view.size || inside > view.size - at || size > view.size - at - inside)
		return Resolved::denied;
	// An NPU's memory begins with a page, so what is aligned there is so here.
	if ((at ^ mr_address) % sizeof(Atomic::Word))
		return Resolved::denied;
	host = view.base + at + inside;
	return Resolved::ok;
}

// ---- A pass ----------------------------------------------------------------------------

void Engine::pace(uint64_t (*clock_ns)(void *cookie), void *cookie, uint32_t requests)
{
	clock_ns_ = clock_ns;
	clock_cookie_ = cookie;
	if (requests)
		max_requests_ = requests;
}

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
	look_at_path(q);
	if (q.ci == q.pi && !q.receive)
		return work;

	// See shared.h. One writer: the holder of the lock.
	uint64_t pass = pass_.load(std::memory_order_relaxed);
	pass_.store(pass + 1, std::memory_order_seq_cst);
	if (q.receive)
		work += receive(q);
	uint64_t bytes = 0;
	for (uint32_t n = 0; n < max_requests_ && bytes < chunk_bytes && q.ci != q.pi;
		n++) {
		bool fetched = take_up(q);
		bool moved = move_some(q, bytes);
		bool over = report_ended(q);
		if (!fetched && !moved && !over)
			break;
		work++;
	}
	pass_.store(pass + 2, std::memory_order_release);
	return work;
}

// What ends a path also where nothing is sent over it.
void Engine::look_at_path(SendQueue &q)
{
	if (q.peer && !q.told_of_peer && q.peer->dead()) {
		q.told_of_peer = true;
		q.tell(IBV_EVENT_QP_FATAL);
	}
	// Peers get no answer either.
	if (q.link && q.link->down()) {
		Fabric::get().qp(q.qpn).life.store(
			QpLife::closed, std::memory_order_seq_cst);
		if (q.link->take_event())
			q.tell(IBV_EVENT_PORT_ERR);
	}
}

void Engine::answer_doorbell(SendQueue &q, const Breach &b)
{
	if (b)
		breach(q, b);
	else if (q.state == SendState::reset || q.state == SendState::waiting)
		breach(q, {"doorbell of a QP that is not ready to send", NDA_LOCAL_QP, 0});
}

void Engine::count(const SendQueue &q, uint32_t index, const Breach &b)
{
	violations_.fetch_add(1, std::memory_order_relaxed);
	if (b.cqn)
		SOFT_LOG(err, "QP %u: CQ %u: %s", q.qpn, b.cqn, b.what);
	else
		SOFT_LOG(err, "QP %u: index %u: %s", q.qpn, index, b.what);
	if (q.log)
		q.log->breach(q, index, b);
}

// The queue stops with an error completion for the oldest request that has not ended, or
// for the one that would be next.
void Engine::breach(SendQueue &q, const Breach &b)
{
	count(q, q.ci, b);
	if (q.state == SendState::reset) {
		q.start_at(q.ci);
		q.format->silence(q); // a register that keeps its value rings for ever
		return;
	}
	if (q.state == SendState::error)
		return;
	q.state = SendState::error;
	q.tell(IBV_EVENT_QP_FATAL);
	auto r = std::find_if(q.window.begin(), q.window.end(),
		[](const Request &each) { return !each.ended; });
	if (r == q.window.end()) {
		if (!q.window.empty())
			return; // they had ended before
		if (q.next == q.pi)
			q.pi++;
		r = q.window.emplace(r);
		r->index = q.next++;
	}
	r->work.signalled = true;
	r->end(b.status, b.vendor);
	q.fail_all();
}

// Fetches what there is room for. Nothing is fetched behind a request that has failed,
// until its completion has stopped the queue. True if anything was.
bool Engine::take_up(SendQueue &q)
{
	bool fetched = false;
	while (q.next != q.pi && q.window.size() < q.window_size) {
		if (q.state != SendState::error && !q.window.empty() &&
			q.window.back().status != NDA_OK)
			break;
		fetch(q);
		fetched = true;
	}
	return fetched;
}

namespace {

// Sizes that do not fit each other, whatever the format.
Breach size_fault(const Work &w)
{
	if (is_atomic(w.op) && (w.piece_count != 1 || w.pieces[0].length != w.atomic.size))
		return {"atomic whose result has another size", NDA_LOCAL_LENGTH};
	for (uint32_t i = 0; w.reduce != Reduce::none && i < w.piece_count; i++) {
		if (w.pieces[i].length % element_size(w.reduce))
			return {"reduction of a piece that is not whole elements",
				NDA_LOCAL_LENGTH};
	}
	return {};
}

} // namespace

void Engine::fetch(SendQueue &q)
{
	Request &r = q.window.emplace_back();
	r.index = q.next;
	Breach b = q.format->fetch(q, r.index, r.work);
	uint32_t &units = r.work.units;
	if (!b && (units == 0 || units > q.pi - q.next))
		b.what = "request that ends beyond what was posted";
	else if (!b)
		b = size_fault(r.work);
	if (b)
		units = std::min(std::max(units, 1u), q.pi - q.next);
	q.next += units;
	if (q.state == SendState::error) {
		r.end(NDA_FLUSHED);
		return;
	}
	if (b) {
		// Those before it are not touched by it.
		count(q, r.index, b);
		q.state = SendState::error;
		q.tell(IBV_EVENT_QP_FATAL);
		r.work.signalled = true;
		r.end(b.status, b.vendor);
		return;
	}
	if (q.log)
		q.log->request(q, r.index, r.work);
	if (q.reorders()) {
		r.divide(q.mtu_bytes);
		r.stride = q.next_random() | 1;
		r.part = r.parts ? q.next_random() % r.parts : 0;
	} else {
		r.divide(chunk_bytes);
	}
	inject(q, r);
}

void Engine::inject(SendQueue &q, Request &r)
{
	const Faults &f = *q.faults;
	q.started++;
	if (q.link)
		q.link->count_request();
	if (f.delay_us)
		r.not_before = now() + uint64_t{f.delay_us} * 1000;
	r.dropped = every(f.drop_every, q.started);
	if (every(f.remote_access_every, q.started))
		r.status = NDA_REMOTE_ACCESS;
	else if (every(f.retry_exceeded_every, q.started))
		r.status = NDA_RETRY_EXCEEDED;
	else if (every(f.rnr_every, q.started))
		r.status = NDA_RNR_RETRY_EXCEEDED;
}

namespace {

bool is_read(const Work &w)
{
	return w.op == Operation::read || is_atomic(w.op);
}

// Whether a request may take effect before an earlier one has.
bool may_overtake(const Work &later, const Work &earlier)
{
	if (later.order == Order::strong || (later.fence && is_read(earlier)))
		return false;
	if (later.order == Order::relaxed)
		return true;
	return is_read(earlier) && !is_read(later);
}

bool may_go_on(const std::vector<Request> &window, size_t i)
{
	for (size_t earlier = 0; earlier < i; earlier++) {
		const Request &e = window[earlier];
		if (e.status != NDA_OK ||
			(!e.ended && !may_overtake(window[i].work, e.work)))
			return false;
	}
	return true;
}

} // namespace

// Moves a part of one request, any that may go on. False if none can.
bool Engine::move_some(SendQueue &q, uint64_t &bytes)
{
	size_t count = q.window.size();
	size_t first = count > 1 ? q.next_random() % count : 0;
	for (size_t i = 0; i < count; i++) {
		size_t at = (first + i) % count;
		Request &r = q.window[at];
		if (r.ended || !may_go_on(q.window, at))
			continue;
		switch (move(q, r, bytes)) {
		case Progress::done:
			r.ended = true;
			return true;
		case Progress::more:
			return true;
		case Progress::wait:
			timed_ = true;
			break;
		}
	}
	return false;
}

// What follows a request that failed is flushed, also where it had ended unseen.
void Engine::stop_behind(SendQueue &q, const Request &failed)
{
	q.state = SendState::error;
	for (Request &r : q.window) {
		bool unseen = r.ended && !r.reported && r.work.ordered_completion;
		if (&r != &failed && (!r.ended || (unseen && &r > &failed)))
			r.end(NDA_FLUSHED);
	}
}

// True if anything was.
bool Engine::report_ended(SendQueue &q)
{
	bool any = false;
	for (Request &r : q.window) {
		if (!r.ended || r.reported || r.work.ordered_completion)
			continue;
		if (!report(q, r))
			return any;
		r.reported = any = true;
	}
	while (!q.window.empty() && q.window.front().ended) {
		Request &r = q.window.front();
		if (!r.reported && !report(q, r))
			return any;
		q.ci += r.work.units;
		q.window.erase(q.window.begin());
		any = true;
	}
	return any;
}

// Room for an entry. False if it is full; true as well if it has overrun.
bool Engine::make_room(SendQueue &q, CompletionQueue &cq)
{
	if (cq.overrun)
		return true;
	Breach b = q.format->read_consumer(cq);
	if (b && !cq.breached) {
		cq.breached = true; // to be told of once
		b.cqn = cq.cqn;
		breach(q, b);
	}
	if (cq.pi - cq.ci >= cq.depth) {
		timed_ = true; // until the consumer index moves on
		return false;
	}
	if (++cq.written == q.faults->cq_overrun_at) {
		cq.overrun = true;
		q.tell(IBV_EVENT_CQ_ERR, &cq);
	}
	return true;
}

// False if the completion queue is full.
bool Engine::report(SendQueue &q, const Request &r)
{
	CompletionQueue &cq = *q.cq;
	bool wanted = r.status != NDA_OK || r.work.signalled || q.signal_all;
	if (wanted && !make_room(q, cq))
		return false;
	if (wanted && cq.overrun) {
		if (q.state != SendState::error)
			q.tell(IBV_EVENT_QP_FATAL);
		stop_behind(q, r);
		return true;
	}
	if (wanted) {
		const Completion c = {r.index, r.work, r.status, r.vendor};
		q.format->complete(q, c);
		if (q.log)
			q.log->completion(q, c);
		cq.pi++;
	}
	if (r.status != NDA_OK)
		stop_behind(q, r);
	return true;
}

Engine::Progress Engine::unanswered(Request &r, uint64_t give_up_ns) const
{
	uint64_t at = now();
	if (!r.unanswered)
		r.unanswered = at;
	if (!give_up_ns || at - r.unanswered < give_up_ns)
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
	return ((w.remote | w.length) & (element - 1)) == 0; // a power of two
}

// Moves a part of the payload.
void copy(const Work &w, uint64_t offset, uint64_t size, uint8_t *const local[],
	uint8_t *remote)
{
	uint32_t count = w.has_inline ? 1 : w.piece_count;
	if (count == 1 && w.op == Operation::write && w.reduce == Reduce::none) {
		dma_move(remote + offset, local[0] + offset, size); // most are so
		return;
	}
	uint64_t end = offset + size;
	uint64_t start = 0; // of the piece
	for (uint32_t i = 0; i < count && start < end; i++) {
		uint64_t length = w.has_inline ? w.length : w.pieces[i].length;
		uint64_t from = std::max(start, offset);
		uint64_t to = std::min(start + length, end);
		if (from < to) {
			uint8_t *here = local[i] + (from - start);
			if (w.op == Operation::read)
				dma_move(here, remote + from, to - from);
			else if (w.reduce == Reduce::none)
				dma_move(remote + from, here, to - from);
			else
				reduce_into(w.reduce, remote + from, here, to - from);
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
	if (r.not_before && now() < r.not_before)
		return Progress::wait;
	if (r.status != NDA_OK)
		return Progress::done;
	if (q.peer->dead())
		return end(NDA_RETRY_EXCEEDED);
	if (r.dropped || (q.link && q.link->down()))
		return unanswered(r, q.give_up_ns);

	Work &w = r.work;
	uint8_t *local[Work::max_pieces];
	local[0] = nullptr; // there may be none
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
	if (w.has_immediate && !target.receives.load(std::memory_order_relaxed))
		return end(NDA_RNR_RETRY_EXCEEDED);
	if (r.offered)
		return deliver(q, r, target);

	r.unanswered = 0;
	if (is_atomic(w.op)) {
		execute_atomic(w.op, w.atomic, remote, local[0]);
		bytes += w.length;
		return Progress::done;
	}
	if (r.parts) {
		uint64_t offset = r.part * r.part_bytes;
		uint64_t size = std::min(w.length - offset, r.part_bytes);
		copy(w, offset, size, local, remote);
		bytes += size;
		if (++r.parts_moved < r.parts) {
			r.step();
			return Progress::more;
		}
	}
	if (w.has_notify)
		dma_move(notify, &w.notify_data, notify_bytes);
	return w.has_immediate ? deliver(q, r, target) : Progress::done;
}

// After all of the payload: the peer's engine takes a receive.
Engine::Progress Engine::deliver(SendQueue &q, Request &r, const SharedQp &target)
{
	SharedQp &own = Fabric::get().qp(q.qpn);
	bool first = !r.offered;
	if (first) {
		for (const Request &other : q.window) {
			if (other.offered && !other.ended)
				return Progress::wait;
		}
		r.offered = own.offered.load(std::memory_order_relaxed) + 1;
		own.immediate.store(r.work.immediate, std::memory_order_relaxed);
		own.bytes.store(r.work.length, std::memory_order_relaxed);
		own.offered.store(r.offered, std::memory_order_seq_cst);
	}
	if (target.taken.load(std::memory_order_acquire) == r.offered)
		return Progress::done;
	if (target.refused.load(std::memory_order_relaxed) != r.offered) {
		if (!first) // one that is awake would have looked by now
			q.peer->wake(target.engine.load(std::memory_order_relaxed));
		return unanswered(r, q.give_up_ns);
	}
	uint64_t at = now();
	r.unanswered = 0; // that was an answer
	if (!r.refused)
		r.refused = at;
	uint64_t limit = q.rnr_retries *
		std::min(target.rnr_ns.load(std::memory_order_relaxed), rnr_ns_most);
	if (q.rnr_retries == SendQueue::forever || at - r.refused < limit)
		return Progress::wait;
	r.status = NDA_RNR_RETRY_EXCEEDED;
	return Progress::done;
}

// Takes a receive for what the peer offers. True if it did.
bool Engine::receive(SendQueue &q)
{
	SharedQp &own = Fabric::get().qp(q.qpn);
	if (q.state == SendState::error || !q.peer ||
		own.life.load(std::memory_order_relaxed) != QpLife::receiving ||
		q.peer_qpn >= qp_count || q.peer->dead())
		return false;
	const SharedQp &from = q.peer->control().qps[q.peer_qpn];
	uint64_t offered = from.offered.load(std::memory_order_seq_cst);
	if (offered == own.taken.load(std::memory_order_relaxed) ||
		from.life.load(std::memory_order_seq_cst) != QpLife::receiving ||
		!points_back(from, q))
		return false;
	Received r = {};
	r.qpn = q.qpn;
	r.immediate = from.immediate.load(std::memory_order_acquire);
	r.bytes = from.bytes.load(std::memory_order_acquire);
	if (from.offered.load(std::memory_order_relaxed) != offered)
		return false; // a later life of the peer's
	uint32_t posted = q.receive->posted();
	if (posted > q.receive->depth) {
		breach(q,
			{"receive record that names more than the ring has, or went back"});
		return false;
	}
	if (posted == 0) {
		own.refused.store(offered, std::memory_order_relaxed);
		timed_ = true; // one comes without a doorbell
		return false;
	}
	CompletionQueue &cq = *q.receive_cq;
	if (!make_room(q, cq))
		return false;
	if (cq.overrun) {
		q.tell(IBV_EVENT_QP_FATAL);
		q.fail_all();
		return false;
	}
	r.index = q.receive->take();
	q.format->complete_receive(cq, r);
	if (q.log)
		q.log->received(q, r);
	cq.pi++;
	own.taken.store(offered, std::memory_order_release);
	return true;
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
