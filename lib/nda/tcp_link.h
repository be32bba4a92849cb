// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A connected, non-blocking TCP socket that carries frames; short reads and writes are its
// business. Nothing here waits: whoever owns links polls them.
#ifndef NDA_LIB_TCP_LINK_H
#define NDA_LIB_TCP_LINK_H

#include <cstddef>
#include <cstdint>

#include "lib/common/fd.h"

namespace nda {

constexpr uint32_t frame_magic = 0x4641444e; // "NDAF" in memory

enum class FrameKind : uint32_t {
	allgather = 1, // to PE 0: a contribution
	barrier = 2,   // to PE 0
	result = 3,    // from PE 0: all contributions, or none for a barrier
	abort = 4,     // from PE 0: struct AbortBody
};

// On the wire as it is: little-endian hosts, which all hosts of this kind of NPU are.
struct Frame {
	uint32_t magic;
	FrameKind kind;
	uint32_t sequence; // of the collective call, the same on every PE
	uint32_t pe;       // of the sender
	uint64_t size;     // bytes that follow
};

// Why the job cannot go on, told to every PE that is left.
struct AbortBody {
	int32_t code; // negative errno
	char text[252];
};

class Link {
public:
	Link() = default;
	explicit Link(Fd fd) : fd_(static_cast<Fd &&>(fd)) {}

	int fd() const { return fd_.get(); }
	bool open() const { return static_cast<bool>(fd_); }
	void close() { fd_.reset(); }

	// Sets what pump_send sends; payload must stay.
	void start_send(const Frame &frame, const void *payload);
	bool sending() const { return sent_ < out_bytes_; }
	// Sends what goes without waiting. 0, or the negative errno that ended the
	// connection.
	int pump_send();

	enum class Received {
		partly,
		header,
		all
	};
	// Begins a frame: its header is next.
	void start_receive();
	// After Received::header: where frame().size bytes go.
	void receive_payload(void *payload);
	// Takes what is there, but stops after the header. 0, or the negative errno that
	// ended the connection: -ECONNRESET for its regular end, too.
	int pump_receive(Received &received);
	const Frame &frame() const { return in_frame_; }

private:
	Fd fd_;
	Frame out_frame_ = {};
	const uint8_t *out_payload_ = nullptr;
	uint64_t out_bytes_ = 0; // header included
	uint64_t sent_ = 0;
	Frame in_frame_ = {};
	uint8_t *in_payload_ = nullptr;
	uint64_t received_ = 0; // header included
};

// What the sockets of links and of the handshake have in common.
int make_nonblocking(int fd);
void set_no_delay(int fd);
// Sends or receives without waiting and without SIGPIPE. Bytes, 0 if nothing goes now, or a
// negative errno; the other side's regular end is -ECONNRESET.
long try_send(int fd, const void *data, size_t size);
long try_receive(int fd, void *data, size_t size);

} // namespace nda

#endif
