// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The one thing in which NICs differ for the engine: how a queue is laid out in memory. A
// format reads requests and doorbells and writes completions; what a request does is the
// engine's part.
#ifndef NDA_SOFT_QUEUE_FORMAT_H
#define NDA_SOFT_QUEUE_FORMAT_H

#include <cstdint>

#include <nda/status.h>

namespace nda::soft {

struct CompletionQueue;
struct SendQueue;

enum class Operation : uint8_t {
	write,
	read,
	compare_swap,
	fetch_add,
};

constexpr bool is_atomic(Operation op)
{
	return op == Operation::compare_swap || op == Operation::fetch_add;
}

// A gather entry, or a scatter entry of a READ or atomic.
struct Piece {
	uint64_t address; // NPU address of the initiator
	uint32_t length;  // bytes
	uint32_t key;
};

// Operands as numbers of the target's byte order, which is this machine's, whatever order
// the format has them in.
struct Atomic {
	__extension__ using Word = unsigned __int128;

	// Of 4, 8 or 16 bytes; the target's address is a multiple of it, else the request
	// ends in a remote invalid request.
	uint8_t size = 0;
	// The result is put with its bytes in the opposite order.
	bool swap_result = false;
	Word swap_or_add = 0;
	// compare_swap: bits that are compared, and bits that are replaced.
	Word compare = 0;
	Word compare_mask = ~Word{0};
	Word swap_mask = ~Word{0};
	// fetch_add: no carry leaves a bit that is set here. 0: an ordinary addition, all
	// ones: exclusive or.
	Word boundary = 0;
};

// A write that adds to what the target has instead of replacing it, element by element,
// each an atomic one. The target's address is a multiple of the element, else it is a
// remote invalid request.
enum class Reduce : uint8_t {
	none,
	add_int8,
	add_int16,
	add_int32,
	add_fp32,
};

// When a request may take effect against others of its queue. Those of a RoCE RC queue are
// all ordered but for READs and atomics, which later requests may overtake; see fence.
enum class Order : uint8_t {
	transport, // RoCE RC's rules
	relaxed,   // in any order with its neighbours
	strong,    // after all earlier ones
};

// A work request, whatever format it came in.
struct Work {
	static constexpr uint32_t max_pieces = 13;
	static constexpr uint32_t max_inline = 208;

	Work() {} // leaves the two arrays alone

	Operation op = Operation::write;
	bool signalled = false;
	bool fence = false; // starts when earlier READs and atomics are done
	Order order = Order::transport;
	// Whether its completion keeps the order of posting; always, but where a format
	// lets go of it.
	bool ordered_completion = true;
	// How much of the ring it takes, in the unit of SendQueue's indices. To be set even
	// where fetch() finds a breach.
	uint32_t units = 1;

	uint32_t length = 0; // bytes: the sum of the pieces or of what is inline
	uint64_t remote = 0; // NPU address of the target
	uint32_t rkey = 0;
	uint32_t piece_count = 0; // 0 with inline data
	bool has_inline = false;
	bool has_immediate = false; // of a write: consumes a receive of the target's
	bool has_notify = false;    // of a write: 8 bytes follow, after all of the payload
	Reduce reduce = Reduce::none;
	uint32_t immediate = 0;
	uint64_t notify_address = 0; // of the target
	uint64_t notify_data = 0;
	uint32_t notify_key = 0;
	Atomic atomic;
	Piece pieces[max_pieces];
	uint8_t inline_data[max_inline];
};

// A breach of the format's rules by whoever drives the queue: what it is, or nullptr, and
// the status and the vendor's code that its completion carries.
struct Breach {
	const char *what = nullptr;
	enum nda_status status = NDA_LOCAL_QP;
	uint8_t vendor = 0;
	uint32_t cqn = 0; // of the completion queue that it is of; 0: the send queue's

	explicit operator bool() const { return what != nullptr; }
};

// A request that has ended.
struct Completion {
	uint32_t index; // its first ring unit
	const Work &work;
	enum nda_status status;
	uint8_t vendor; // a breach's
};

// A receive that a message has consumed.
struct Received {
	uint32_t index; // of the receive queue's entry, free-running
	uint32_t qpn;
	uint32_t immediate;
	uint32_t bytes; // of the message
};

// What makes a queue of the format.
struct QueueLayout {
	uint32_t send_stride; // bytes of a unit of the send ring
	uint32_t cqe_stride;  // bytes
	// The byte that fills a ring which was never used.
	uint8_t send_fill;
	uint8_t cqe_fill;
	uint32_t min_depth; // of a ring, in its units; a power of two, as is max_depth
	uint32_t max_depth;
	uint32_t
		units_per_request; // what the send ring has room for is counted in requests
	uint32_t max_pieces;       // gather entries of a request
	uint32_t max_inline;       // bytes
	uint32_t max_message;      // bytes of a request
	uint32_t qpn_bits;         // of the target's
	// Where the NIC finds the indices beside the doorbell. Without a consumer record
	// the CQ has a doorbell register.
	bool producer_record;
	bool consumer_record;
	bool atomics;
	bool receives;        // complete_receive() is there
	bool jetties;         // of URMA, see nda_soft.h: there are no QPs and CQs of verbs
	uint8_t doorbell_cos; // what the driver is told to put into its doorbells
};

// Threads: engines call it for different queues at a time; it has no state of its own.
class QueueFormat {
public:
	virtual ~QueueFormat() = default;

	virtual const QueueLayout &layout() const = 0;
	// The CQ ring that a published depth means to every reader, 0 if none.
	virtual uint32_t cq_ring(uint32_t depth) const
	{
		return depth & (depth - 1) ? 0 : depth;
	}

	// Puts into the doorbell what says that it was not rung since q.rung, of 8 bytes.
	virtual void silence(SendQueue &q) const;
	// Takes the doorbell word, if it was rung, and sets q.pi, and q.rung if the format
	// needs it. True if it was.
	virtual bool take_doorbell(SendQueue &q, Breach &breach) const = 0;
	// Reads the request at index, which is within [q.ci, q.pi).
	virtual Breach fetch(const SendQueue &q, uint32_t index, Work &work) const = 0;

	// Puts into the CQ's doorbell what says that it was not rung; not called without
	// one.
	virtual void silence(CompletionQueue &) const {}
	// Reads how far the driver has consumed, and sets cq.ci by consumed().
	virtual Breach read_consumer(CompletionQueue &cq) const = 0;
	// Writes the entry at q.cq->pi, for which there is room.
	virtual void complete(const SendQueue &q, const Completion &c) const = 0;
	// The same for a receive, at cq.pi.
	virtual void complete_receive(const CompletionQueue &, const Received &) const {}
};

// For read_consumer: the driver's index, of which its word carries the low bits.
Breach consumed(CompletionQueue &cq, uint32_t index, uint32_t bits);

} // namespace nda::soft

#endif
