// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/nda/tcp_rendezvous.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <sys/random.h>
#include <sys/socket.h>

#include "lib/nda/bootstrap.h"
#include "lib/nda/error.h"
#include "lib/nda/log.h"
#include "lib/nda/siphash.h"

namespace nda {
namespace {

// The handshake: Hello up, Challenge down, Proof up, Verdict down.
constexpr char hello_magic[8] = {'N', 'D', 'A', 'B', 'O', 'O', 'T', '\0'};
constexpr uint32_t hello_version = 1;

struct Hello {
	char magic[8];
	uint32_t version;
	uint32_t pe;
	uint32_t n_pes;
	uint32_t reserved;
	uint8_t nonce[16];
};

struct Challenge {
	uint8_t nonce[16];
	Mac mac; // PE 0 knows the secret
};

struct Proof {
	Mac mac; // and so does the other
};

struct Verdict {
	int32_t code;
	char text[124];
};

// What the two MACs cover: both nonces, and who says it, so that neither can be played
// back.
Mac handshake_mac(const uint8_t *secret, const char (&label)[8], const Hello &hello,
	const uint8_t (&root_nonce)[16])
{
	struct {
		char label[8];
		Hello hello;
		uint8_t root_nonce[16];
	} input;
	static_assert(sizeof(input) == 64, "no padding");
	memcpy(input.label, label, sizeof(label));
	input.hello = hello;
	memcpy(input.root_nonce, root_nonce, sizeof(root_nonce));
	return secret_mac(secret, &input, sizeof(input));
}

constexpr char root_label[8] = {'r', 'o', 'o', 't'};
constexpr char member_label[8] = {'m', 'e', 'm', 'b', 'e', 'r'};

int random_bytes(uint8_t (&out)[16])
{
	size_t have = 0;
	while (have < sizeof(out)) {
		const ssize_t n = getrandom(out + have, sizeof(out) - have, 0);
		if (n > 0)
			have += static_cast<size_t>(n);
		else if (errno != EINTR)
			return fail_errno(-errno, "bootstrap: getrandom");
	}
	return 0;
}

struct AddrinfoDeleter {
	void operator()(addrinfo *list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, AddrinfoDeleter>;

int resolve(const Rendezvous &r, Addresses &out)
{
	addrinfo hints = {};
	hints.ai_family = AF_UNSPEC;
	hints.ai_socktype = SOCK_STREAM;
	hints.ai_flags = AI_NUMERICSERV | (r.pe == 0 ? AI_PASSIVE : 0);
	addrinfo *list = nullptr;
	const int rc =
		getaddrinfo(r.address, std::to_string(r.port).c_str(), &hints, &list);
	if (rc)
		return fail(-EADDRNOTAVAIL, "bootstrap: PE %u: address %s: %s", r.pe,
			r.address, rc == EAI_SYSTEM ? errno_text(errno) : gai_strerror(rc));
	out.reset(list);
	return 0;
}

int open_listener(const Rendezvous &r, Fd &out)
{
	if (r.listen_fd > 0) {
		int listening = 0;
		socklen_t size = sizeof(listening);
		if (getsockopt(r.listen_fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) <
				0 ||
			!listening)
			return fail(-EINVAL,
				"bootstrap: PE 0: listen_fd %d is no listening socket",
				r.listen_fd);
		out = Fd(fcntl(r.listen_fd, F_DUPFD_CLOEXEC, 0));
		if (!out)
			return fail_errno(
				-errno, "bootstrap: PE 0: listen_fd %d", r.listen_fd);
		return make_nonblocking(out.get());
	}
	Addresses addresses;
	int rc = resolve(r, addresses);
	if (rc)
		return rc;
	const addrinfo *a = addresses.get();
	Fd fd(socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (!fd)
		return fail_errno(-errno, "bootstrap: PE 0: socket");
	const int on = 1;
	// So that a job can follow another on the same port at once.
	(void)setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd.get(), a->ai_addr, a->ai_addrlen) < 0 || listen(fd.get(), 1024) < 0)
		return fail_errno(
			-errno, "bootstrap: PE 0: listen on %s port %u", r.address, r.port);
	out = std::move(fd);
	return 0;
}

// A connection that has not shown yet whose it is.
struct Pending {
	Fd fd;
	Deadline deadline;
	bool greeted;   // Hello is in, Proof is next
	uint8_t in[40]; // what has come of either
	size_t have;
	Hello hello;
	uint8_t nonce[16];
};
static_assert(sizeof(Hello) == 40, "Pending::in");

class Acceptor {
public:
	Acceptor(const Rendezvous &r, const Deadline &deadline, std::vector<Link> &links)
		: r_(r), deadline_(deadline), links_(links)
	{}

	int run()
	{
		int rc = open_listener(r_, listener_);
		while (!rc && missing())
			rc = wait_and_serve();
		return rc;
	}

private:
	// Somebody who connects and says nothing must not hold anybody up; honest PEs need
	// milliseconds, and try again when they are dropped.
	static constexpr size_t pending_max = 128;
	static constexpr uint64_t pending_ms = 5000;

	uint32_t missing() const
	{
		uint32_t n = 0;
		for (uint32_t pe = 1; pe < r_.n_pes; pe++)
			n += !links_[pe].open();
		return n;
	}

	int wait_and_serve()
	{
		std::vector<pollfd> fds;
		fds.push_back({listener_.get(), POLLIN, 0});
		const size_t n_pending = pending_.size();
		for (const Pending &p : pending_)
			fds.push_back({p.fd.get(), POLLIN, 0});
		std::vector<uint32_t> joined;
		for (uint32_t pe = 1; pe < r_.n_pes; pe++) {
			if (!links_[pe].open())
				continue;
			fds.push_back({links_[pe].fd(), POLLRDHUP, 0});
			joined.push_back(pe);
		}
		int wait_ms = deadline_.remaining_ms();
		for (const Pending &p : pending_)
			wait_ms = std::min(wait_ms, p.deadline.remaining_ms());
		if (poll(fds.data(), fds.size(), wait_ms) < 0 && errno != EINTR)
			return fail_errno(-errno, "bootstrap: PE 0: poll");
		if (deadline_.passed())
			return fail(-ETIMEDOUT,
				"bootstrap: PE %s did not connect to PE 0 in time%s%s",
				list_pes(r_.n_pes,
					[&](uint32_t pe) {
						return pe && !links_[pe].open();
					})
					.c_str(),
				last_drop_.empty() ? "" : "; ", last_drop_.c_str());
		for (size_t i = 0; i < joined.size(); i++)
			if (fds[1 + n_pending + i].revents)
				return fail(-ECONNRESET,
					"bootstrap: PE %u is gone: it closed its "
					"connection before all "
					"had arrived",
					joined[i]);
		for (size_t i = 0; i < n_pending; i++)
			if (fds[1 + i].revents)
				serve(pending_[i]);
			else if (pending_[i].deadline.passed())
				drop(pending_[i], "it said nothing");
		pending_.erase(std::remove_if(pending_.begin(), pending_.end(),
				       [](const Pending &p) { return !p.fd; }),
			pending_.end());
		return fds[0].revents ? accept_one() : 0;
	}

	int accept_one()
	{
		Fd fd(accept4(
			listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
		if (!fd) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
				errno == ENOMEM || errno == EINVAL || errno == EBADF)
				return fail_errno(-errno, "bootstrap: PE 0: accept");
			return 0; // the other side changed its mind
		}
		if (pending_.size() == pending_max) {
			drop(pending_.front(), "too many that say nothing");
			pending_.erase(pending_.begin());
		}
		set_no_delay(fd.get());
		pending_.push_back(
			{std::move(fd), Deadline(pending_ms), false, {}, 0, {}, {}});
		return 0;
	}

	void serve(Pending &p)
	{
		const size_t want = p.greeted ? sizeof(Proof) : sizeof(Hello);
		const long n = try_receive(p.fd.get(), p.in + p.have, want - p.have);
		if (n < 0)
			return drop(p,
				p.greeted ? "it gave up: its secret differs"
					  : "it gave up");
		p.have += static_cast<size_t>(n);
		if (p.have < want)
			return;
		p.have = 0;
		if (p.greeted)
			admit(p);
		else
			challenge(p);
	}

	void challenge(Pending &p)
	{
		memcpy(&p.hello, p.in, sizeof(p.hello));
		if (memcmp(p.hello.magic, hello_magic, sizeof(hello_magic)) != 0 ||
			p.hello.version != hello_version)
			return drop(p, "it is no PE of this version");
		p.greeted = true;
		Challenge c;
		if (random_bytes(c.nonce) != 0)
			return drop(p, "no random numbers");
		memcpy(p.nonce, c.nonce, sizeof(p.nonce));
		c.mac = handshake_mac(r_.secret, root_label, p.hello, p.nonce);
		if (try_send(p.fd.get(), &c, sizeof(c)) != sizeof(c))
			drop(p, "it takes no answer");
	}

	void admit(Pending &p)
	{
		Mac mac;
		memcpy(mac.data(), p.in, mac.size());
		if (!mac_equal(
			    mac, handshake_mac(r_.secret, member_label, p.hello, p.nonce)))
			return drop(p, "its secret differs");
		Verdict v = {};
		if (p.hello.n_pes != r_.n_pes) {
			v.code = -EINVAL;
			snprintf(v.text, sizeof(v.text),
				"its n_pes is %u, that of PE 0 is %u", p.hello.n_pes,
				r_.n_pes);
		} else if (p.hello.pe == 0 || p.hello.pe >= r_.n_pes) {
			v.code = -EINVAL;
			snprintf(v.text, sizeof(v.text), "there is no such PE among %u",
				r_.n_pes);
		} else if (links_[p.hello.pe].open()) {
			v.code = -EEXIST;
			snprintf(v.text, sizeof(v.text),
				"another process is this PE already");
		}
		if (try_send(p.fd.get(), &v, sizeof(v)) != sizeof(v))
			return drop(p, "it takes no answer");
		if (v.code)
			return drop(p, v.text);
		links_[p.hello.pe] = Link(std::move(p.fd));
	}

	void drop(Pending &p, const char *why)
	{
		last_drop_ = p.greeted ? "a connection that says it is PE " +
				std::to_string(p.hello.pe) + " was dropped: "
				       : std::string("a connection was dropped: ");
		last_drop_ += why;
		NDA_LOG(LogLevel::info, "bootstrap: PE 0: %s", last_drop_.c_str());
		p.fd.reset();
	}

	const Rendezvous &r_;
	const Deadline &deadline_;
	std::vector<Link> &links_;
	Fd listener_;
	std::vector<Pending> pending_;
	std::string last_drop_;
};

int transfer(int fd, void *data, size_t size, short events, const Deadline &deadline)
{
	uint8_t *bytes = static_cast<uint8_t *>(data);
	while (size) {
		const long n = events == POLLIN ? try_receive(fd, bytes, size)
						: try_send(fd, bytes, size);
		if (n < 0)
			return static_cast<int>(n);
		bytes += n;
		size -= static_cast<size_t>(n);
		const int rc = n ? 0 : poll_fd(fd, events, deadline);
		if (rc)
			return rc;
	}
	return 0;
}

// A connection to a free port of the own host may meet itself: the port it was given as its
// own is the one it seeks.
bool connected_to_itself(int fd)
{
	sockaddr_storage own = {}, peer = {};
	socklen_t own_size = sizeof(own), peer_size = sizeof(peer);
	return getsockname(fd, reinterpret_cast<sockaddr *>(&own), &own_size) == 0 &&
		getpeername(fd, reinterpret_cast<sockaddr *>(&peer), &peer_size) == 0 &&
		own_size == peer_size && memcmp(&own, &peer, own_size) == 0;
}

int connect_once(const addrinfo &address, const Deadline &deadline, Fd &out)
{
	Fd fd(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (!fd)
		return -errno;
	if (connect(fd.get(), address.ai_addr, address.ai_addrlen) < 0) {
		if (errno != EINPROGRESS && errno != EINTR)
			return -errno;
		const int rc = poll_fd(fd.get(), POLLOUT, deadline);
		if (rc)
			return rc;
		int error = 0;
		socklen_t size = sizeof(error);
		if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) < 0)
			error = errno;
		if (error)
			return -error;
	}
	if (connected_to_itself(fd.get()))
		return -ECONNREFUSED;
	set_no_delay(fd.get());
	out = std::move(fd);
	return 0;
}

// -ECONNRESET: PE 0 is not ready, or had no room; the other errors are final.
int shake_hands(const Rendezvous &r, const Deadline &deadline, int fd)
{
	Hello hello = {};
	memcpy(hello.magic, hello_magic, sizeof(hello_magic));
	hello.version = hello_version;
	hello.pe = r.pe;
	hello.n_pes = r.n_pes;
	int rc = random_bytes(hello.nonce);
	if (rc)
		return rc;
	Challenge challenge;
	rc = transfer(fd, &hello, sizeof(hello), POLLOUT, deadline);
	if (!rc)
		rc = transfer(fd, &challenge, sizeof(challenge), POLLIN, deadline);
	if (rc)
		return rc == -ETIMEDOUT ? rc : -ECONNRESET;
	if (!mac_equal(challenge.mac,
		    handshake_mac(r.secret, root_label, hello, challenge.nonce)))
		return fail(-EACCES,
			"bootstrap: PE %u: who listens at %s port %u does not know this "
			"job's secret",
			r.pe, r.address, r.port);
	Proof proof = {handshake_mac(r.secret, member_label, hello, challenge.nonce)};
	Verdict verdict;
	rc = transfer(fd, &proof, sizeof(proof), POLLOUT, deadline);
	if (!rc)
		rc = transfer(fd, &verdict, sizeof(verdict), POLLIN, deadline);
	if (rc)
		return rc == -ETIMEDOUT ? rc : -ECONNRESET;
	verdict.text[sizeof(verdict.text) - 1] = '\0';
	if (verdict.code)
		return fail(verdict.code < 0 ? verdict.code : -EPROTO,
			"bootstrap: PE %u: PE 0 refused it: %s", r.pe, verdict.text);
	return 0;
}

bool worth_another_try(int rc)
{
	switch (-rc) {
	case ECONNREFUSED:
	case ECONNRESET:
	case ECONNABORTED:
	case EPIPE:
	case ENETUNREACH:
	case EHOSTUNREACH:
	case EADDRNOTAVAIL:
	case EAGAIN:
	case ETIMEDOUT: // of the network; the caller looks at its own deadline
		return true;
	default:
		return false;
	}
}

} // namespace

int poll_fd(int fd, short events, const Deadline &deadline)
{
	for (;;) {
		pollfd p = {fd, events, 0};
		const int n = poll(&p, 1, deadline.remaining_ms());
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (deadline.passed())
			return -ETIMEDOUT;
	}
}

int accept_peers(const Rendezvous &r, const Deadline &deadline, std::vector<Link> &links)
{
	return Acceptor(r, deadline, links).run();
}

int connect_to_root(const Rendezvous &r, const Deadline &deadline, Link &link)
{
	Addresses addresses;
	int rc = resolve(r, addresses);
	if (rc)
		return rc;
	const addrinfo *address = addresses.get();
	for (;;) {
		Fd fd;
		clear_error_detail();
		rc = connect_once(*address, deadline, fd);
		if (!rc)
			rc = shake_hands(r, deadline, fd.get());
		if (!rc) {
			link = Link(std::move(fd));
			return 0;
		}
		if (!worth_another_try(rc) && error_detail()[0])
			return rc;
		if (!worth_another_try(rc) || deadline.passed())
			return fail(deadline.passed() ? -ETIMEDOUT : rc,
				"bootstrap: PE %u: connect to PE 0 at %s port %u: %s", r.pe,
				r.address, r.port, errno_text(rc));
		address = address->ai_next ? address->ai_next : addresses.get();
		// Short enough to go unnoticed, long enough not to burn the core PE 0
		// needs.
		poll(nullptr, 0, std::min(20, deadline.remaining_ms()));
	}
}

} // namespace nda
