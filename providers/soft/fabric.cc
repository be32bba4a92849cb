// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/fabric.h"

#include "lib/common/clock.h"
#include "lib/common/thread.h"
#include "providers/soft/error.h"

#include <chrono>
#include <cinttypes>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>

namespace nda::soft {
namespace {

constexpr int handshake_ms = 2000;
constexpr uint64_t own_engines_ms = 1000; // a pass takes less than one
constexpr uint64_t accept_pause_ms = 100;
constexpr size_t max_strangers = 64; // connections that have not shown the secret yet

int random_bytes(void *to, size_t size)
{
	ssize_t n;
	do
		n = getrandom(to, size, 0);
	while (n < 0 && errno == EINTR);
	return n == static_cast<ssize_t>(size) ? 0 : -EIO;
}

int fail_refused(uint64_t process, int error)
{
	if (error == EMFILE)
		return fail(-error,
			"fabric: process %016" PRIx64
			" may have no more descriptors: its ulimit -n is reached",
			process);
	if (error == ENOMEM)
		return fail(-error,
			"fabric: process %016" PRIx64
			" cannot map this one's memory: its ulimit -v may be reached",
			process);
	// No peer of ours sends another but ENFILE.
	return fail(error == ENFILE ? -ENFILE : -EPROTO,
		"fabric: process %016" PRIx64 " could not take this one: %s", process,
		cause(error));
}

// Why a peer hung up, as far as it has said so; an errno. It may say more than this side
// waits for.
int last_words(int socket)
{
	for (uint32_t n = 0; n < max_npus + 2; n++) {
		Message m;
		Fd fd;
		if (receive_message(socket, m, fd))
			return 0;
		if (m.type == MessageType::refused)
			return static_cast<int>(m.size);
	}
	return 0;
}

std::chrono::milliseconds left(uint64_t deadline)
{
	uint64_t now = now_ns();
	return std::chrono::milliseconds(
		now < deadline ? (deadline - now) / ns_per_ms + 1 : 0);
}

} // namespace

struct Fabric::Connection {
	enum class State {
		hello,
		ready,
		member
	};

	Fd socket;
	State state;
	uint64_t deadline = 0; // until it is a member
	std::shared_ptr<Peer> peer;
	bool over = false;
};

// ---- Start -----------------------------------------------------------------------------

Fabric &Fabric::get()
{
	// Threads that use it run until the process ends.
	static Fabric *fabric = new Fabric;
	return *fabric;
}

int Fabric::create_control()
{
	int rc;
	Fd fd(memfd_create("nda-control", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	if (!fd || ftruncate(fd.get(), sizeof(ControlSegment)))
		return fail(-errno, "fabric: making the control segment: %s", cause(errno));
	Mapping mapping;
	rc = mapping.map(
		sizeof(ControlSegment), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get());
	if (rc)
		return fail(rc, "fabric: mapping the control segment: %s", cause(-rc));
	madvise(mapping.data(), mapping.size(), MADV_DONTDUMP);
	// No one else may map it for writing, where the kernel can enforce that.
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	if (fcntl(fd.get(), F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE) &&
		fcntl(fd.get(), F_ADD_SEALS, seals))
		return fail(
			-errno, "fabric: sealing the control segment: %s", cause(errno));

	rc = random_bytes(&process_, sizeof(process_));
	if (rc || process_ == 0)
		return fail(-EIO, "fabric: no random number for this process");
	control_ = new (mapping.data()) ControlSegment;
	control_->magic = control_magic;
	control_->process = process_;
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&control_->life, &attr);
	pthread_mutexattr_destroy(&attr);

	control_mapping_ = std::move(mapping);
	control_fd_ = std::move(fd);
	return 0;
}

int Fabric::start()
{
	std::unique_lock<std::mutex> lock(mutex_);
	if (started_)
		return has_session_ && !listener_ ? listen() : 0;
	if (!control_) {
		int rc = create_control();
		if (rc)
			return rc;
	}
	if (!self_)
		self_ = std::make_shared<Peer>(process_, control_, Mapping());
	mr_generations_.resize(mr_count);
	mr_used_.resize(mr_count);
	qp_used_.resize(qp_count);
	if (!wake_fd_)
		wake_fd_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (!wake_fd_)
		return fail(-errno, "fabric: eventfd: %s", cause(errno));
	if (!spare_)
		spare_ = Fd(eventfd(0, EFD_CLOEXEC));

	pthread_t thread;
	auto body = [](void *self) -> void * {
		static_cast<Fabric *>(self)->serve();
		return nullptr;
	};
	int rc = start_thread(thread, "nda-fabric", body, this);
	if (rc)
		return fail(rc, "fabric: starting the service thread: %s", cause(-rc));
	pthread_detach(thread);
	// It takes the life word first; until then this process would look dead.
	changed_.wait(lock, [this] { return started_; });
	return has_session_ ? listen() : 0;
}

int Fabric::set_session(const uint8_t *session)
{
	std::lock_guard<std::mutex> lock(mutex_);
	if (has_session_) {
		if (memcmp(session_id_, session, sizeof(session_id_)) == 0 &&
			equal_secrets(secret_, session + sizeof(session_id_)))
			return 0;
		return fail(
			-EBUSY, "fabric: this process belongs to another session already");
	}
	memcpy(session_id_, session, sizeof(session_id_));
	memcpy(secret_, session + sizeof(session_id_), sizeof(secret_));
	has_session_ = true;
	int rc = started_ ? listen() : 0;
	if (rc)
		has_session_ = false;
	return rc;
}

// Under mutex_.
int Fabric::listen()
{
	Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	struct sockaddr_un address;
	socklen_t size = socket_address(session_id_, process_, address);
	if (!socket || bind(socket.get(), reinterpret_cast<sockaddr *>(&address), size) ||
		::listen(socket.get(), 128))
		return fail(-errno, "fabric: listening for peers: %s", cause(errno));
	listener_ = std::move(socket);
	wake();
	return 0;
}

void Fabric::wake()
{
	uint64_t one = 1;
	// Full means that a wake-up is on its way.
	(void)!write(wake_fd_.get(), &one, sizeof(one));
}

Message Fabric::message(MessageType type) const
{
	Message m = {};
	m.magic = wire_magic;
	m.type = type;
	m.process = process_;
	return m;
}

// ---- The service thread ----------------------------------------------------------------

void Fabric::serve()
{
	pthread_mutex_lock(&control_->life);
	{
		std::lock_guard<std::mutex> lock(mutex_);
		started_ = true;
		changed_.notify_all();
	}
	for (;;) {
		// Out of memory: what was not done is seen again.
		if (guard([this] { return serve_once(); }))
			poll(nullptr, 0, 10);
	}
}

int Fabric::serve_once()
{
	std::vector<struct pollfd> polled;
	std::vector<Connection *> owners;
	int timeout = -1;
	{
		std::lock_guard<std::mutex> lock(mutex_);
		// Those beyond the most strangers wait in the backlog.
		bool accepting = now_ns() >= accept_after_ && strangers() < max_strangers;
		polled.push_back({wake_fd_.get(), POLLIN, 0});
		polled.push_back({accepting ? listener_.get() : -1, POLLIN, 0});
		if (!accepting || strangers() > 0)
			timeout = 100;
		for (auto &c : connections_) {
			polled.push_back({c->socket.get(), POLLIN, 0});
			owners.push_back(c.get());
		}
	}
	if (poll(polled.data(), polled.size(), timeout) < 0)
		return errno == EINTR ? 0 : -errno;

	std::lock_guard<std::mutex> lock(mutex_);
	uint64_t count;
	if (polled[0].revents)
		(void)!read(wake_fd_.get(), &count, sizeof(count));
	uint64_t now = now_ns();
	for (size_t i = 0; i < owners.size(); i++) {
		Connection &c = *owners[i];
		if (polled[i + 2].revents)
			handle(c);
		if (c.state != Connection::State::member && now > c.deadline)
			c.over = true;
	}
	end_connections();
	if (polled[1].revents)
		accept_all();
	return 0;
}

// Connections end here and nowhere else.
void Fabric::end_connections()
{
	for (size_t i = 0; i < connections_.size();) {
		if (!connections_[i]->over) {
			i++;
			continue;
		}
		if (connections_[i]->peer)
			drop_peer(*connections_[i]->peer);
		connections_.erase(connections_.begin() + static_cast<ptrdiff_t>(i));
	}
}

void Fabric::refuse(int socket, int error)
{
	Message m = message(MessageType::refused);
	m.size = static_cast<uint64_t>(error);
	// It learns of the end all the same.
	(void)!send_message(socket, m);
}

// With the descriptor that was kept for this. True if someone was told.
bool Fabric::refuse_one()
{
	int error = errno;
	if (!spare_)
		return false;
	spare_ = Fd();
	{
		Fd socket(accept4(
			listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
		if (socket && same_user(socket.get()))
			refuse(socket.get(), error);
		error = socket ? 0 : errno;
	}
	spare_ = Fd(eventfd(0, EFD_CLOEXEC));
	errno = error;
	return error == 0;
}

size_t Fabric::strangers() const
{
	size_t n = 0;
	for (auto &c : connections_)
		n += c->state != Connection::State::member;
	return n;
}

void Fabric::accept_all()
{
	if (!spare_)
		spare_ = Fd(eventfd(0, EFD_CLOEXEC)); // someone else took its place
	for (size_t n = strangers(); n < max_strangers; n++) {
		Fd socket(accept4(
			listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
		if (!socket) {
			if ((errno == EMFILE || errno == ENFILE) && refuse_one())
				continue;
			// Without descriptors the same one would be waiting at once again.
			if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
				accept_after_ = now_ns() + accept_pause_ms * ns_per_ms;
			return;
		}
		if (!same_user(socket.get())) {
			SOFT_LOG(warn, "fabric: refused a connection: another user");
			continue;
		}
		auto c = std::make_unique<Connection>();
		c->socket = std::move(socket);
		c->state = Connection::State::hello;
		c->deadline = now_ns() + handshake_ms * ns_per_ms;
		connections_.push_back(std::move(c));
	}
}

void Fabric::handle(Connection &connection)
{
	for (;;) {
		Message m;
		Fd fd;
		int rc = receive_message(connection.socket.get(), m, fd);
		if (rc == -EAGAIN)
			return;
		if (rc == 0)
			rc = handle_message(connection, m, std::move(fd));
		if (rc) {
			if (rc != -ECONNRESET) {
				SOFT_LOG(warn, "fabric: dropped a peer: %s", cause(-rc));
				if (connection.peer)
					connection.peer->failure_ = -rc;
			}
			// Not to who has not shown the secret, nor breaks the protocol.
			if ((rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM) &&
				connection.state != Connection::State::hello)
				refuse(connection.socket.get(), -rc);
			connection.over = true;
			// At once: it may be here anew by another connection.
			if (connection.peer)
				connection.peer->lost_.store(
					true, std::memory_order_release);
			return;
		}
	}
}

// Under mutex_, as all that follows but connect().
int Fabric::handle_message(Connection &connection, const Message &m, Fd fd)
{
	int socket = connection.socket.get();
	switch (connection.state) {
	case Connection::State::hello: {
		if (m.type != MessageType::hello || fd || m.process == process_)
			return -EPROTO;
		if (!equal_secrets(m.secret, secret_))
			return -EACCES;
		Message reply = message(MessageType::welcome);
		memcpy(reply.secret, secret_, sizeof(secret_));
		connection.state = Connection::State::ready;
		return send_message(socket, reply, control_fd_.get());
	}
	case Connection::State::ready: {
		if (m.type != MessageType::ready)
			return -EPROTO;
		int rc = map_control(m.process, fd, connection.peer);
		if (rc)
			return rc;
		connection.state = Connection::State::member;
		return send_segments(socket);
	}
	case Connection::State::member:
		break;
	}
	switch (m.type) {
	case MessageType::segment:
		return map_segment(*connection.peer, m, fd);
	case MessageType::end:
		connection.peer->complete_ = true;
		changed_.notify_all();
		return 0;
	case MessageType::refused:
		connection.peer->refused_ = static_cast<int>(m.size);
		changed_.notify_all();
		return 0;
	case MessageType::gone:
		return unmap_segment(*connection.peer, m.segment);
	default:
		return -EPROTO;
	}
}

int Fabric::map_control(uint64_t process, const Fd &fd, std::shared_ptr<Peer> &peer)
{
	auto known = peers_.find(process);
	// One that was dropped, as where descriptors had run out, may come anew. Queues
	// keep the old one as long as they need it; its engines are in the new one's
	// segment too, for quiesce() to wait for.
	if (known != peers_.end() && !known->second->dead() && !known->second->refused_) {
		peer = known->second;
		return 0;
	}
	if (!fd || process == process_ || !sealed_memory(fd.get(), sizeof(ControlSegment)))
		return -EPROTO;
	Mapping mapping;
	int rc = mapping.map(sizeof(ControlSegment), PROT_READ, MAP_SHARED, fd.get());
	if (rc)
		return rc;
	madvise(mapping.data(), mapping.size(), MADV_DONTDUMP);
	auto *control = reinterpret_cast<const ControlSegment *>(mapping.data());
	if (control->magic != control_magic || control->process != process)
		return -EPROTO;
	peer = std::make_shared<Peer>(process, control, std::move(mapping));
	peers_[process] = peer;
	return 0;
}

int Fabric::map_segment(Peer &peer, const Message &m, const Fd &fd)
{
	// It comes twice where two processes connected to each other at the same time.
	if (m.segment == 0 || peer.segment(m.segment).base)
		return m.segment ? 0 : -EPROTO;
	if (!fd || m.size == 0 || !sealed_memory(fd.get(), m.size))
		return -EPROTO;
	Mapping mapping;
	int rc = mapping.map(m.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get());
	if (rc == 0)
		rc = unmap_segment(peer, m.segment);
	if (rc)
		return rc;
	madvise(mapping.data(), mapping.size(), MADV_DONTDUMP);
	Peer::View view = {mapping.data(), m.size};
	peer.add(m.segment, view, std::move(mapping));
	return 0;
}

// Empties the slot that id has. The owner has taken back every region in it before it says
// so, but that is not relied on: what an engine here may be using stays mapped.
int Fabric::unmap_segment(Peer &peer, uint32_t id)
{
	Peer::Segment &s = peer.segments_[segment_slot(id)];
	if (s.id.load(std::memory_order_relaxed) == 0)
		return 0;
	s.id.store(0, std::memory_order_seq_cst);
	int rc = wait_for_engines(*self_, now_ns() + own_engines_ms * ns_per_ms);
	if (rc)
		return rc;
	s.mapping = Mapping();
	return 0;
}

int Fabric::send_segments(int socket)
{
	for (uint32_t slot = 0; slot < max_npus; slot++) {
		if (segment_ids_[slot] == 0)
			continue;
		Message m = message(MessageType::segment);
		m.segment = segment_ids_[slot];
		m.size = self_->segment(m.segment).size;
		int rc = send_message(socket, m, segment_fds_[slot].get());
		if (rc)
			return rc;
	}
	return send_message(socket, message(MessageType::end));
}

// One that still runs stays known: quiesce() must wait for it.
void Fabric::drop_peer(Peer &peer)
{
	SOFT_LOG(info, "fabric: process %016" PRIx64 " is gone", peer.process());
	for (auto p = peers_.begin(); p != peers_.end();)
		p = p->second->alive() ? std::next(p) : peers_.erase(p);
	changed_.notify_all();
}

// ---- Connecting ------------------------------------------------------------------------

std::shared_ptr<Peer> Fabric::find_complete(uint64_t process)
{
	auto known = peers_.find(process);
	bool usable =
		known != peers_.end() && known->second->complete_ && !known->second->dead();
	return usable ? known->second : nullptr;
}

int Fabric::connect(uint64_t process, int timeout_ms, std::shared_ptr<Peer> &peer)
{
	if (process == process_) {
		peer = self_;
		return 0;
	}
	uint64_t deadline = now_ns() + static_cast<uint64_t>(timeout_ms) * ns_per_ms;
	std::unique_lock<std::mutex> lock(mutex_);
	// One thread connects, others wait for it.
	if (!changed_.wait_for(
		    lock, left(deadline), [&] { return connecting_.count(process) == 0; }))
		return fail(-ETIMEDOUT, "fabric: process %016" PRIx64 " does not answer",
			process);
	peer = find_complete(process);
	if (peer)
		return 0;
	if (!has_session_)
		return fail(-ENOTCONN,
			"fabric: GID of process %016" PRIx64
			", but this process has no session",
			process);
	connecting_.insert(process);
	lock.unlock();
	int rc = guard([&] { return connect_to(process, deadline, peer); });
	lock.lock();
	connecting_.erase(process);
	changed_.notify_all();
	return rc;
}

int Fabric::connect_to(uint64_t process, uint64_t deadline, std::shared_ptr<Peer> &peer)
{
	struct sockaddr_un address;
	socklen_t size = socket_address(session_id_, process, address);
	Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (!socket)
		return fail(-errno, "fabric: socket: %s", cause(errno));
	while (::connect(socket.get(), reinterpret_cast<sockaddr *>(&address), size)) {
		// The queue of a busy listener is full for a moment.
		if (errno != EAGAIN && errno != EINTR)
			return fail(errno == ECONNREFUSED ? -ECONNREFUSED : -errno,
				"fabric: process %016" PRIx64 " of this session: %s",
				process,
				errno == ECONNREFUSED ? "no such process" : cause(errno));
		if (now_ns() > deadline)
			return fail(-ETIMEDOUT,
				"fabric: process %016" PRIx64 " does not accept", process);
		poll(nullptr, 0, 1);
	}
	int rc = handshake(
		socket.get(), process, static_cast<int>(left(deadline).count()), peer);
	if (rc)
		return rc;

	std::unique_lock<std::mutex> lock(mutex_);
	// From here on the peer may write to this process's memory.
	rc = send_message(socket.get(), message(MessageType::ready), control_fd_.get());
	if (rc == 0)
		rc = send_segments(socket.get());
	if (rc) {
		const int why = last_words(socket.get());
		if (why)
			return fail_refused(process, why);
		return fail(-ECONNRESET, "fabric: process %016" PRIx64 " hung up: %s",
			process, cause(-rc));
	}
	auto c = std::make_unique<Connection>();
	c->socket = std::move(socket);
	c->state = Connection::State::member;
	c->peer = peer;
	connections_.push_back(std::move(c));
	wake();
	changed_.wait_for(lock, left(deadline),
		[&] { return peer->complete_ || peer->refused_ || peer->dead(); });
	if (peer->refused_)
		return fail_refused(process, peer->refused_);
	if (peer->failure_)
		return fail(-peer->failure_,
			"fabric: taking what process %016" PRIx64 " shares: %s", process,
			cause(peer->failure_));
	if (peer->dead())
		return fail(-ECONNRESET, "fabric: process %016" PRIx64 " hung up or died",
			process);
	if (!peer->complete_)
		return fail(-ETIMEDOUT, "fabric: process %016" PRIx64 " does not answer",
			process);
	return 0;
}

// Without mutex_: nothing of this fabric has changed until the peer has proved itself.
int Fabric::handshake(
	int socket, uint64_t process, int timeout_ms, std::shared_ptr<Peer> &peer)
{
	if (!same_user(socket))
		return fail(-EACCES,
			"fabric: process %016" PRIx64 " belongs to another user", process);
	Message m = message(MessageType::hello);
	{
		std::lock_guard<std::mutex> lock(mutex_);
		memcpy(m.secret, secret_, sizeof(secret_));
	}
	int rc = send_message(socket, m);
	Message reply;
	Fd control;
	if (rc == 0 || rc == -EPIPE) // it may have said why it hung up
		rc = receive_message(socket, reply, control, timeout_ms);
	if (rc == -ECONNRESET)
		return fail(-EACCES,
			"fabric: process %016" PRIx64 " refused: not the same session",
			process);
	if (rc)
		return fail(rc, "fabric: process %016" PRIx64 ": %s", process, cause(-rc));
	if (reply.type == MessageType::refused && reply.process == process)
		return fail_refused(process, static_cast<int>(reply.size));
	std::lock_guard<std::mutex> lock(mutex_);
	if (reply.type != MessageType::welcome || reply.process != process ||
		!equal_secrets(reply.secret, secret_))
		return fail(-EACCES,
			"fabric: process %016" PRIx64 " is not what it claims to be",
			process);
	rc = map_control(process, control, peer);
	if (rc)
		return fail(rc, "fabric: control segment of process %016" PRIx64 ": %s",
			process, cause(-rc));
	return 0;
}

// ---- This process's tables -------------------------------------------------------------

int Fabric::add_npu(int fd, uint8_t *base, uint64_t size, uint32_t &segment)
{
	Fd own(fcntl(fd, F_DUPFD_CLOEXEC, 0));
	if (!own)
		return fail(-errno, "fabric: %s", cause(errno));
	std::lock_guard<std::mutex> lock(mutex_);
	for (uint32_t slot = 0; slot < max_npus; slot++) {
		if (segment_ids_[slot])
			continue;
		uint32_t id = segment_generation_++ * max_npus + slot;
		segment_ids_[slot] = id;
		segment_fds_[slot] = std::move(own);
		self_->add(id, {base, size}, Mapping());
		Message m = message(MessageType::segment);
		m.segment = id;
		m.size = size;
		for (auto &c : connections_) {
			if (c->state == Connection::State::member &&
				send_message(c->socket.get(), m, segment_fds_[slot].get()))
				shutdown(c->socket.get(), SHUT_RDWR);
		}
		segment = id;
		return 0;
	}
	return fail(-ENOSPC,
		"fabric: %u NPUs are open in this process, more are not supported",
		max_npus);
}

void Fabric::remove_npu(uint32_t segment)
{
	std::lock_guard<std::mutex> lock(mutex_);
	uint32_t slot = segment_slot(segment);
	unmap_segment(*self_, segment);
	segment_ids_[slot] = 0;
	segment_fds_[slot] = Fd();
	Message m = message(MessageType::gone);
	m.segment = segment;
	for (auto &c : connections_) {
		if (c->state == Connection::State::member &&
			send_message(c->socket.get(), m))
			shutdown(c->socket.get(), SHUT_RDWR);
	}
}

int Fabric::add_mr(const MrFields &mr, uint32_t &key)
{
	std::lock_guard<std::mutex> lock(mutex_);
	for (uint32_t tried = 1; tried < mr_count; tried++) {
		uint32_t index = mr_next_;
		mr_next_ = mr_next_ + 1 == mr_count ? 1 : mr_next_ + 1;
		if (mr_used_[index])
			continue;
		mr_used_[index] = true;
		// Generations of two processes start at different numbers: a key that went
		// to the wrong one is more likely to be noticed.
		uint32_t generation =
			(++mr_generations_[index] + process_) & generation_mask;
		SharedMr &entry = control_->mrs[index];
		entry.access.store(mr.access, std::memory_order_relaxed);
		entry.pd.store(mr.pd, std::memory_order_relaxed);
		entry.segment.store(mr.segment, std::memory_order_relaxed);
		entry.address.store(mr.address, std::memory_order_relaxed);
		entry.offset.store(mr.offset, std::memory_order_relaxed);
		entry.size.store(mr.size, std::memory_order_relaxed);
		key = generation << 16 | index;
		entry.key.store(key, std::memory_order_seq_cst);
		return 0;
	}
	return fail(
		-ENOSPC, "fabric: all %u regions of this process are in use", mr_count - 1);
}

int Fabric::remove_mr(uint32_t key)
{
	control_->mrs[mr_index(key)].key.store(0, std::memory_order_seq_cst);
	int rc = quiesce();
	if (rc)
		return rc;
	std::lock_guard<std::mutex> lock(mutex_);
	mr_used_[mr_index(key)] = false;
	return 0;
}

int Fabric::add_qp(uint32_t &qpn)
{
	std::lock_guard<std::mutex> lock(mutex_);
	// Round and round: a number is reused as late as can be.
	for (uint32_t tried = 1; tried < qp_count; tried++) {
		uint32_t candidate = qp_next_;
		qp_next_ = qp_next_ + 1 == qp_count ? 1 : qp_next_ + 1;
		if (qp_used_[candidate])
			continue;
		qp_used_[candidate] = true;
		qpn = candidate;
		return 0;
	}
	return fail(-ENOSPC, "fabric: all %u QPs of this process are in use", qp_count - 1);
}

void Fabric::remove_qp(uint32_t qpn)
{
	std::lock_guard<std::mutex> lock(mutex_);
	qp_used_[qpn] = false;
}

int Fabric::quiesce(int timeout_ms)
{
	std::vector<std::shared_ptr<Peer>> peers = {self_};
	{
		std::lock_guard<std::mutex> lock(mutex_);
		for (auto &p : peers_)
			peers.push_back(p.second);
	}
	uint64_t deadline = now_ns() + static_cast<uint64_t>(timeout_ms) * ns_per_ms;
	for (auto &peer : peers) {
		int rc = wait_for_engines(*peer, deadline);
		if (rc)
			return rc;
	}
	return 0;
}

// Until each engine that is in a pass now has left it.
int Fabric::wait_for_engines(const Peer &peer, uint64_t deadline)
{
	for (const SharedEngine &engine : peer.control().engines) {
		uint64_t seen = engine.pass.load(std::memory_order_seq_cst);
		if (seen % 2 == 0)
			continue;
		while (engine.pass.load(std::memory_order_acquire) == seen &&
			peer.alive()) {
			if (now_ns() > deadline)
				return fail(-ETIMEDOUT,
					"fabric: an engine of process %016" PRIx64
					" is still in a transfer",
					peer.process());
			sched_yield();
		}
	}
	return 0;
}

} // namespace nda::soft
