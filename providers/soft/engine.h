// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The NIC engine of one NPU: serves the send queues that lie in the NPU's memory. It posts,
// protects, moves and completes; formats are behind QueueFormat. It never blocks: what
// cannot go on now is looked at again in the next pass.
#ifndef NDA_SOFT_ENGINE_H
#define NDA_SOFT_ENGINE_H

#include "lib/common/clock.h"
#include "lib/common/poller.h"
#include "providers/soft/event_log.h"
#include "providers/soft/fabric.h"
#include "providers/soft/inject.h"
#include "providers/soft/queue_format.h"

#include <atomic>
#include <infiniband/verbs.h>
#include <memory>
#include <vector>

namespace nda::soft {

// The device's side of a CQ. Pointers are host addresses. Indices are free-running.
struct CompletionQueue {
	uint8_t *ring = nullptr;
	uint32_t depth = 0; // entries, a power of two
	uint32_t stride = 0;
	const uint8_t *record = nullptr; // consumer index, or nullptr
	uint8_t *doorbell = nullptr;     // if there is no record
	uint32_t cqn = 0;
	uint32_t pi = 0;
	uint32_t ci = 0; // as last read
	bool breached = false;
	bool overrun = false; // nothing is written any more
	uint64_t written = 0; // entries, for fault injection

	uint8_t *entry() const { return ring + uint64_t{pi & (depth - 1)} * stride; }
};

// The device's side of an RQ or SRQ. It has one layout on every NIC: entries of
// receive_stride bytes, little-endian { u32 length, u32 key, u64 address }, and records of
// the two indices as u32; the low 16 bits of the producer's are enough.
constexpr uint32_t receive_stride = 16;
struct ReceiveQueue {
	uint32_t depth = 0;
	const uint8_t *producer = nullptr;
	uint8_t *consumer = nullptr;
	uint32_t ci = 0; // free-running

	uint32_t posted() const;
	// The oldest that was posted; its index.
	uint32_t take();
};

enum class SendState : uint8_t {
	reset,   // does not listen
	waiting, // INIT, RTR: may not be posted to
	ready,
	error,
};

// A request between its fetch and its completion.
struct Request {
	uint32_t index = 0; // its first ring unit
	bool ended = false;
	bool reported = false; // though an earlier request has not ended
	uint8_t vendor = 0;
	enum nda_status status = NDA_OK;
	Work work;
	bool dropped = false;    // by fault injection
	uint64_t not_before = 0; // by fault injection
	uint64_t unanswered = 0; // since when; 0: answered

	// It is moved in parts of so many bytes, but for the last one.
	uint64_t part_bytes = 0;
	uint32_t parts = 0;
	uint32_t part = 0;   // the next one
	uint32_t stride = 1; // from a part to the one after it, odd
	uint32_t parts_moved = 0;
	uint64_t offered = 0; // its number, once the peer has to take a receive for it
	uint64_t refused = 0; // since when; 0: it is not

	void end(enum nda_status with, uint8_t vendor_code = 0)
	{
		status = with;
		vendor = vendor_code;
		ended = true;
	}
	void divide(uint64_t bytes);
	// Goes on to the next part, in a walk that meets each one once.
	void step();
};

// The device's side of a QP. Guarded by the engine's lock.
struct SendQueue {
	const QueueFormat *format = nullptr;
	const Faults *faults = nullptr;
	Link *link = nullptr;    // where it may go down
	EventLog *log = nullptr; // where one is kept
	CompletionQueue *cq = nullptr;
	uint8_t *ring = nullptr;
	uint32_t depth = 0;              // units
	const uint8_t *record = nullptr; // producer index, where the format has one
	uint8_t *doorbell = nullptr;     // 64 bytes of its own
	uint32_t qpn = 0;
	uint32_t pd = 0;
	bool signal_all = false;
	// Tells the owner, and which of its two CQs has failed, if one has; must not block.
	void (*on_event)(void *cookie, ibv_event_type event,
		const CompletionQueue *failed) = nullptr;
	void *cookie = nullptr;

	SendState state = SendState::reset;
	// Free-running indices, in units of the ring.
	uint32_t ci = 0;   // the oldest request that is not over
	uint32_t next = 0; // the one that is fetched next
	uint32_t pi = 0;   // the end of what was posted
	uint32_t rung = 0; // the end that the last doorbell stood for

	// The path, fixed while ready.
	std::shared_ptr<Peer> peer;
	uint32_t peer_qpn = 0;
	uint64_t gid[2] = {};
	uint64_t peer_gid[2] = {};
	uint8_t sgid_index = 0;
	uint64_t give_up_ns = 0;  // after so long without an answer; 0: never
	uint32_t rnr_retries = 0; // times that a receive is waited for; forever: no end
	static constexpr uint32_t forever = 7;
	uint32_t mtu_bytes = 4096;
	bool told_of_peer = false; // that it is gone

	ReceiveQueue *receive = nullptr; // its own or an SRQ
	CompletionQueue *receive_cq = nullptr;

	// What was fetched, in the order of posting. With more than one at a time, and
	// parts of a packet, they overtake each other where the transport lets them.
	std::vector<Request> window;
	size_t window_size = 1;
	uint64_t random = 0;  // state
	uint64_t started = 0; // requests, for fault injection

	uint8_t *slot(uint32_t index, uint32_t stride) const
	{
		return ring + uint64_t{index & (depth - 1)} * stride;
	}
	bool reorders() const { return window_size > 1; }
	uint32_t next_random();
	void tell(ibv_event_type event, const CompletionQueue *failed = nullptr) const
	{
		if (on_event)
			on_event(cookie, event, failed);
	}
	void start_at(uint32_t index) { ci = next = pi = rung = index; }
	// Forgets requests and path.
	void reset();
	// Requests are flushed from now on.
	void fail_all();
};

// A pass goes over all queues; queues and completion queues are changed while held.
class Engine final : public Poller {
public:
	explicit Engine(SharedEngine &shared)
		: Poller(Helped::works, &shared.asleep), pass_(shared.pass)
	{}
	~Engine() { stop(); }

	int start();
	// Before the first pass: another clock than the system's, and how many requests of
	// a queue a pass moves on; nullptr and 0 change nothing.
	void pace(uint64_t (*clock_ns)(void *cookie), void *cookie, uint32_t requests);
	uint64_t violations() const { return violations_.load(std::memory_order_relaxed); }

	// While held.
	void attach(SendQueue &q) { queues_.push_back(&q); }
	void detach(SendQueue &q);

private:
	enum class Progress {
		done,
		more,
		wait
	};

	int pass() override;
	int serve(SendQueue &q);
	void look_at_path(SendQueue &q);
	void answer_doorbell(SendQueue &q, const Breach &breach);
	bool take_up(SendQueue &q);
	void fetch(SendQueue &q);
	void inject(SendQueue &q, Request &r);
	bool move_some(SendQueue &q, uint64_t &bytes);
	Progress move(SendQueue &q, Request &r, uint64_t &bytes);
	Progress deliver(SendQueue &q, Request &r, const SharedQp &target);
	Progress unanswered(Request &r, uint64_t give_up_ns) const;
	bool receive(SendQueue &q);
	bool report_ended(SendQueue &q);
	bool make_room(SendQueue &q, CompletionQueue &cq);
	bool report(SendQueue &q, const Request &r);
	void stop_behind(SendQueue &q, const Request &failed);
	void count(const SendQueue &q, uint32_t index, const Breach &breach);
	void breach(SendQueue &q, const Breach &breach);

	uint64_t now() const { return clock_ns_ ? clock_ns_(clock_cookie_) : now_ns(); }

	std::atomic<uint64_t> &pass_;
	uint64_t (*clock_ns_)(void *cookie) = nullptr;
	void *clock_cookie_ = nullptr;
	uint32_t max_requests_ = 64; // of a queue in a pass
	std::vector<SendQueue *> queues_;
	std::atomic<uint64_t> violations_{0};
};

// What a key stands for, where this process may read or write it.
enum class Resolved {
	ok,
	denied,
	not_mapped
};
Resolved resolve(const Peer &owner, uint32_t key, uint64_t address, uint64_t size,
	uint32_t pd, uint32_t access, uint8_t *&host);

} // namespace nda::soft

#endif
