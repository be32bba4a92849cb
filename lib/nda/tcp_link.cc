// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/tcp_link.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace nda {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames are little-endian");

int make_nonblocking(int fd)
{
	const int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

void set_no_delay(int fd)
{
	const int on = 1;
	// Only a matter of speed.
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

long try_send(int fd, const void *data, size_t size)
{
	for (;;) {
		const ssize_t n = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0)
			return n;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return 0;
		if (errno != EINTR)
			return -errno;
	}
}

long try_receive(int fd, void *data, size_t size)
{
	for (;;) {
		const ssize_t n = recv(fd, data, size, MSG_DONTWAIT);
		if (n > 0)
			return n;
		if (n == 0)
			return -ECONNRESET;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return 0;
		if (errno != EINTR)
			return -errno;
	}
}

void Link::start_send(const Frame &frame, const void *payload)
{
	out_frame_ = frame;
	out_payload_ = static_cast<const uint8_t *>(payload);
	out_bytes_ = sizeof(frame) + frame.size;
	sent_ = 0;
}

int Link::pump_send()
{
	while (sending()) {
		const bool header = sent_ < sizeof(Frame);
		const uint8_t *from = header
			? reinterpret_cast<const uint8_t *>(&out_frame_) + sent_
			: out_payload_ + (sent_ - sizeof(Frame));
		const uint64_t size = (header ? sizeof(Frame) : out_bytes_) - sent_;
		const long n = try_send(fd(), from, std::min<uint64_t>(size, 1u << 30));
		if (n <= 0)
			return static_cast<int>(n);
		sent_ += static_cast<uint64_t>(n);
	}
	return 0;
}

void Link::start_receive()
{
	received_ = 0;
	in_payload_ = nullptr;
}

void Link::receive_payload(void *payload)
{
	in_payload_ = static_cast<uint8_t *>(payload);
}

int Link::pump_receive(Received &received)
{
	for (;;) {
		const bool header = received_ < sizeof(Frame);
		if (!header && received_ == sizeof(Frame) + in_frame_.size) {
			received = Received::all;
			return 0;
		}
		if (!header && !in_payload_) {
			received = Received::header;
			return 0;
		}
		uint8_t *to = header ? reinterpret_cast<uint8_t *>(&in_frame_) + received_
				     : in_payload_ + (received_ - sizeof(Frame));
		const uint64_t size =
			(header ? sizeof(Frame) : sizeof(Frame) + in_frame_.size) -
			received_;
		const long n = try_receive(fd(), to, std::min<uint64_t>(size, 1u << 30));
		if (n <= 0) {
			received = Received::partly;
			return static_cast<int>(n);
		}
		received_ += static_cast<uint64_t>(n);
	}
}

} // namespace nda
