// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The one thing in which NICs differ for the engine: how a queue is laid out in memory.
#ifndef NDA_SOFT_QUEUE_FORMAT_H
#define NDA_SOFT_QUEUE_FORMAT_H

#include <cstdint>

#include <nda/status.h>

namespace nda::soft {

struct SendQueue;

enum class Operation : uint8_t {
	write,
	read
};

// A work request, whatever format it came in.
struct Work {
	Operation op = Operation::write;
	bool signalled = false;
	uint32_t length = 0;
	uint64_t local = 0;  // NPU address of the initiator
	uint64_t remote = 0; // NPU address of the target
	uint32_t lkey = 0;
	uint32_t rkey = 0;
};

// A breach of the format's rules by whoever drives the queue: what it is, or nullptr, and
// the status and the vendor's code that its completion carries.
struct Breach {
	const char *what = nullptr;
	enum nda_status status = NDA_LOCAL_QP;
	uint8_t vendor = 0;

	explicit operator bool() const { return what != nullptr; }
};

class QueueFormat {
public:
	virtual ~QueueFormat() = default;

	// Takes the doorbell word, if it was rung, and sets q.pi. True if it was.
	virtual bool take_doorbell(SendQueue &q, Breach &breach) const = 0;
	// Reads the request at q.ci.
	virtual Breach fetch(const SendQueue &q, Work &work) const = 0;
	// Reports q.work at q.ci. False if the completion queue is full.
	virtual bool complete(
		SendQueue &q, enum nda_status status, uint8_t vendor) const = 0;
};

} // namespace nda::soft

#endif
