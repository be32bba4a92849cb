// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Messages between the fabrics of two processes: fixed size, at most one descriptor with
// each, over a SOCK_SEQPACKET unix socket in the abstract namespace (no file is left).
//
//   connecting side             accepting side
//   hello (secret)        ->
//                         <-    welcome (secret; control segment)
//   ready (control segment),
//   segment..., end       ->
//                         <-    segment..., end
//
// The accepting side answers refused instead where it lacks what it takes.
//
// Each verifies the other's user before it sends the secret, and the secret before it
// sends memory; each has the other's control segment, and waits for it in
// Fabric::quiesce(), before it gives memory away. After that each side may send segment and
// gone at any time.
#ifndef NDA_SOFT_WIRE_H
#define NDA_SOFT_WIRE_H

#include "providers/soft/resource.h"

#include <cstdint>
#include <string>
#include <sys/un.h>

namespace nda::soft {

constexpr uint32_t wire_magic = 0x77616e01;
constexpr size_t secret_bytes = 16;

enum class MessageType : uint32_t {
	hello = 1,
	welcome = 2,
	ready = 3,
	segment = 4,
	end = 5,
	gone = 6,
	refused = 7, // size: why, an errno
};

struct Message {
	uint32_t magic;
	MessageType type;
	uint64_t process; // the sender's
	uint64_t size;    // of the segment, in bytes
	uint32_t segment;
	uint32_t reserved;
	uint8_t secret[secret_bytes];
};
static_assert(sizeof(Message) == 48);

// Sends without waiting, fd < 0 for none. -EAGAIN if the peer does not read.
int send_message(int socket, const Message &message, int fd = -1);

// Receives without waiting: 0, -EAGAIN, -ECONNRESET at the end, -EPROTO for what is no
// message, or -EMFILE or -ENFILE where there was no room for its descriptor.
int receive_message(int socket, Message &message, Fd &fd);

// The same, waiting for at most timeout_ms: -ETIMEDOUT.
int receive_message(int socket, Message &message, Fd &fd, int timeout_ms);

// The abstract address of a process in a session.
socklen_t socket_address(
	const uint8_t session_id[16], uint64_t process, struct sockaddr_un &address);

// Whether the socket's other end belongs to this user.
bool same_user(int socket);

// Takes as long for any two inputs.
bool equal_secrets(const uint8_t *a, const uint8_t *b);

// Whether fd is memory that no one can resize, of exactly size bytes: what is mapped from
// it cannot be cut off later.
bool sealed_memory(int fd, uint64_t size);

// Memory of size bytes that no one can resize. 0 or a negative errno.
int make_sealed_memory(const char *name, uint64_t size, Fd &fd);

} // namespace nda::soft

#endif
