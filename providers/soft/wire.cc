// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/wire.h"

#include "lib/common/clock.h"

#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace nda::soft {
namespace {

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// The descriptors that came along; more than one is not of this protocol, and closed.
bool take_descriptors(struct msghdr &header, Fd &fd)
{
	bool one = true;
	for (cmsghdr *c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0);
			at += sizeof(int)) {
			int raw;
			memcpy(&raw, CMSG_DATA(c) + at, sizeof(raw));
			Fd taken(raw);
			if (fd)
				one = false;
			else
				fd = std::move(taken);
		}
	}
	return one;
}

// Why a descriptor that came was lost: the kernel does not say. 0: it was not for want of
// a number.
int want_of_descriptors(int socket)
{
	Fd probe(fcntl(socket, F_DUPFD_CLOEXEC, 0));
	return !probe && (errno == EMFILE || errno == ENFILE) ? -errno : 0;
}

} // namespace

int send_message(int socket, const Message &message, int fd)
{
	struct iovec data = {const_cast<Message *>(&message), sizeof(message)};
	struct msghdr header = {};
	alignas(cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))] = {};
	header.msg_iov = &data;
	header.msg_iovlen = 1;
	if (fd >= 0) {
		header.msg_control = control;
		header.msg_controllen = sizeof(control);
		cmsghdr *c = CMSG_FIRSTHDR(&header);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	ssize_t n;
	do
		n = sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int receive_message(int socket, Message &message, Fd &fd)
{
	struct iovec data = {&message, sizeof(message)};
	struct msghdr header = {};
	alignas(cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))];
	header.msg_iov = &data;
	header.msg_iovlen = 1;
	header.msg_control = control;
	header.msg_controllen = sizeof(control);
	fd = Fd();
	ssize_t n;
	// A reset is told of once, before what the peer has said, and then as the end.
	do
		n = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0)
		return -errno;
	bool descriptors_fit = take_descriptors(header, fd);
	if (n == 0)
		return -ECONNRESET;
	if ((header.msg_flags & MSG_CTRUNC) && !fd) {
		int rc = want_of_descriptors(socket);
		if (rc)
			return rc;
	}
	if (n != sizeof(message) || (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
		!descriptors_fit || message.magic != wire_magic)
		return -EPROTO;
	return 0;
}

int receive_message(int socket, Message &message, Fd &fd, int timeout_ms)
{
	struct pollfd wait = {socket, POLLIN, 0};
	uint64_t deadline = now_ns() +
		static_cast<uint64_t>(timeout_ms < 0 ? 0 : timeout_ms) * ns_per_ms;
	int n;
	do {
		uint64_t now = now_ns();
		uint64_t left = now < deadline ? (deadline - now) / ns_per_ms + 1 : 0;
		n = poll(&wait, 1, static_cast<int>(left));
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n == 0)
		return -ETIMEDOUT;
	return receive_message(socket, message, fd);
}

socklen_t socket_address(
	const uint8_t session_id[16], uint64_t process, struct sockaddr_un &address)
{
	memset(&address, 0, sizeof(address));
	address.sun_family = AF_UNIX;
	// The first byte stays 0: an abstract name.
	char *name = address.sun_path + 1;
	size_t room = sizeof(address.sun_path) - 1;
	int n = snprintf(name, room, "nda-soft/");
	for (int i = 0; i < 16; i++)
		n += snprintf(name + n, room - n, "%02x", session_id[i]);
	n += snprintf(name + n, room - n, "/%016" PRIx64, process);
	return static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

bool same_user(int socket)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
		peer.uid == geteuid();
}

bool equal_secrets(const uint8_t *a, const uint8_t *b)
{
	volatile uint8_t different = 0;
	for (size_t i = 0; i < secret_bytes; i++)
		different = different | (a[i] ^ b[i]);
	return different == 0;
}

bool sealed_memory(int fd, uint64_t size)
{
	struct stat st;
	int have = fcntl(fd, F_GET_SEALS);
	return have >= 0 && (have & seals) == seals && fstat(fd, &st) == 0 &&
		S_ISREG(st.st_mode) && static_cast<uint64_t>(st.st_size) == size;
}

int make_sealed_memory(const char *name, uint64_t size, Fd &fd)
{
	Fd fresh(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
	if (!fresh || ftruncate(fresh.get(), static_cast<off_t>(size)) ||
		fcntl(fresh.get(), F_ADD_SEALS, seals))
		return -errno;
	fd = std::move(fresh);
	return 0;
}

} // namespace nda::soft
