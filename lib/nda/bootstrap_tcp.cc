// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The bootstrap over TCP: a star around PE 0, which gathers and hands out. Whoever notices
// that the job cannot go on tells PE 0, by its end if not by words, and PE 0 tells the
// rest.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <poll.h>
#include <string>
#include <vector>

#include "lib/nda/attr.h"
#include "lib/nda/bootstrap.h"
#include "lib/nda/guard.h"
#include "lib/nda/log.h"
#include "lib/nda/tcp_link.h"
#include "lib/nda/tcp_rendezvous.h"

namespace nda {
namespace {

class Tcp {
public:
	Tcp(uint32_t pe, uint32_t n_pes, uint32_t timeout_ms)
		: pe_(pe), n_pes_(n_pes), timeout_ms_(timeout_ms),
		  links_(pe == 0 ? n_pes : 1)
	{}

	int connect(const Rendezvous &r);
	int collective(FrameKind kind, const void *in, void *out, size_t size)
	{
		return collective(kind, in, out, size, Deadline(patience_ms()));
	}
	uint32_t n_pes() const { return n_pes_; }

	nda_bootstrap callbacks = {}; // what the caller sees
	uint8_t session[32] = {};

private:
	// PE 0 decides who is late, so that all hear the same. The others wait a little
	// longer.
	uint64_t patience_ms() const { return timeout_ms_ + (pe_ ? timeout_ms_ / 4 : 0); }

	int collective(FrameKind kind, const void *in, void *out, size_t size,
		const Deadline &deadline);
	int gather(FrameKind kind, uint8_t *out, size_t size, const Deadline &deadline);
	int take_contribution(
		uint32_t pe, FrameKind kind, uint8_t *out, size_t size, bool &done);
	void hand_out(const uint8_t *out, uint64_t size, const Deadline &deadline);
	int take_part(FrameKind kind, const void *in, void *out, size_t size,
		const Deadline &deadline);
	int take_answer(void *out, uint64_t size, bool &done);
	int give_up(int code, const std::string &reason);
	void tell_all();

	const uint32_t pe_;
	const uint32_t n_pes_;
	const uint32_t timeout_ms_;
	std::vector<Link> links_; // PE 0: by PE, its own unused; others: the one to PE 0
	uint32_t sequence_ = 0;
	int broken_ = 0; // why no call can succeed any more
	std::string reason_;
	AbortBody abort_ = {};
};

int Tcp::connect(const Rendezvous &r)
{
	if (n_pes_ == 1)
		return 0;
	const Deadline deadline(patience_ms());
	int rc = pe_ == 0 ? accept_peers(r, deadline, links_)
			  : connect_to_root(r, deadline, links_[0]);
	if (rc) {
		reason_ = error_detail();
		broken_ = rc;
		if (pe_ == 0)
			tell_all();
		return rc;
	}
	// So that nobody goes on before all are there.
	return collective(FrameKind::barrier, nullptr, nullptr, 0, deadline);
}

int Tcp::collective(
	FrameKind kind, const void *in, void *out, size_t size, const Deadline &deadline)
{
	if (broken_)
		return fail(broken_, "%s", reason_.c_str());
	sequence_++;
	if (pe_ != 0)
		return take_part(kind, in, out, size, deadline);
	if (size)
		memcpy(out, in, size);
	const int rc = gather(kind, static_cast<uint8_t *>(out), size, deadline);
	if (rc == 0)
		hand_out(static_cast<uint8_t *>(out), uint64_t(size) * n_pes_, deadline);
	return rc;
}

int Tcp::gather(FrameKind kind, uint8_t *out, size_t size, const Deadline &deadline)
{
	std::vector<bool> done(n_pes_);
	done[0] = true;
	uint32_t n_done = 1;
	std::vector<pollfd> fds;
	std::vector<uint32_t> who;
	for (uint32_t pe = 1; pe < n_pes_; pe++) {
		if (!links_[pe].open())
			return give_up(-ECONNRESET,
				"bootstrap: PE " + std::to_string(pe) +
					" is gone: it did not take the last result");
		links_[pe].start_receive();
	}
	while (n_done < n_pes_) {
		fds.clear();
		who.clear();
		for (uint32_t pe = 1; pe < n_pes_; pe++) {
			if (done[pe])
				continue;
			fds.push_back({links_[pe].fd(), POLLIN, 0});
			who.push_back(pe);
		}
		const int n = poll(fds.data(), fds.size(), deadline.remaining_ms());
		if (n < 0 && errno != EINTR)
			return give_up(-errno, "bootstrap: PE 0: poll failed");
		if (n <= 0 && deadline.passed())
			return give_up(-ETIMEDOUT,
				"bootstrap: PE " +
					list_pes(n_pes_,
						[&](uint32_t pe) { return !done[pe]; }) +
					" did not arrive within " +
					std::to_string(timeout_ms_) + " ms");
		for (size_t i = 0; i < fds.size(); i++) {
			bool complete = false;
			const int rc = fds[i].revents
				? take_contribution(who[i], kind, out, size, complete)
				: 0;
			if (rc)
				return rc;
			done[who[i]] = complete;
			n_done += complete;
		}
	}
	return 0;
}

int Tcp::take_contribution(
	uint32_t pe, FrameKind kind, uint8_t *out, size_t size, bool &done)
{
	Link &link = links_[pe];
	const std::string name = "bootstrap: PE " + std::to_string(pe);
	for (;;) {
		Link::Received received;
		const int rc = link.pump_receive(received);
		if (rc) {
			link.close();
			return give_up(
				-ECONNRESET, name + " is gone: its connection was closed");
		}
		if (received == Link::Received::partly)
			return 0;
		const Frame &f = link.frame();
		if (f.magic != frame_magic || f.pe != pe || f.sequence != sequence_)
			return give_up(-EPROTO,
				name + " sent something that is no frame of this call");
		if (f.kind != kind || f.size != size)
			return give_up(-EINVAL,
				name +
					" makes another call, or with another size, than "
					"PE 0");
		if (received == Link::Received::all) {
			done = true;
			return 0;
		}
		link.receive_payload(out + uint64_t(pe) * size);
	}
}

// Every contribution is in, so the call has succeeded: who cannot take the result any more
// is left behind and found missing by the next call.
void Tcp::hand_out(const uint8_t *out, uint64_t size, const Deadline &deadline)
{
	for (uint32_t pe = 1; pe < n_pes_; pe++)
		links_[pe].start_send(
			{frame_magic, FrameKind::result, sequence_, 0, size}, out);
	std::vector<pollfd> fds;
	std::vector<uint32_t> who;
	for (;;) {
		fds.clear();
		who.clear();
		for (uint32_t pe = 1; pe < n_pes_; pe++) {
			Link &link = links_[pe];
			if (link.open() && link.pump_send() != 0)
				link.close();
			if (!link.open() || !link.sending())
				continue;
			fds.push_back({link.fd(), POLLOUT, 0});
			who.push_back(pe);
		}
		if (fds.empty())
			return;
		if (poll(fds.data(), fds.size(), deadline.remaining_ms()) <= 0 &&
			deadline.passed())
			break;
	}
	for (uint32_t pe : who)
		links_[pe].close();
}

int Tcp::take_part(
	FrameKind kind, const void *in, void *out, size_t size, const Deadline &deadline)
{
	Link &link = links_[0];
	link.start_send({frame_magic, kind, sequence_, pe_, size}, in);
	link.start_receive();
	bool can_send = true;
	for (;;) {
		// A failed send is no verdict: PE 0 may have said why before it closed.
		if (can_send && link.pump_send() != 0)
			can_send = false;
		bool done = false;
		int rc = take_answer(out, uint64_t(size) * n_pes_, done);
		if (rc || done)
			return rc;
		pollfd p = {link.fd(), POLLIN, 0};
		if (can_send && link.sending())
			p.events |= POLLOUT;
		rc = poll(&p, 1, deadline.remaining_ms());
		if (rc < 0 && errno != EINTR)
			return give_up(-errno,
				"bootstrap: PE " + std::to_string(pe_) + ": poll failed");
		if (rc <= 0 && deadline.passed())
			return give_up(-ETIMEDOUT,
				"bootstrap: PE 0 gave no answer within " +
					std::to_string(patience_ms()) + " ms");
	}
}

int Tcp::take_answer(void *out, uint64_t size, bool &done)
{
	Link &link = links_[0];
	for (;;) {
		Link::Received received;
		if (link.pump_receive(received) != 0)
			return give_up(-ECONNRESET,
				"bootstrap: PE 0 is gone: its connection was closed");
		if (received == Link::Received::partly)
			return 0;
		const Frame &f = link.frame();
		const bool result = f.kind == FrameKind::result &&
			f.sequence == sequence_ && f.size == size && !link.sending();
		const bool aborted = f.kind == FrameKind::abort && f.size == sizeof(abort_);
		if (f.magic != frame_magic || f.pe != 0 || !(result || aborted))
			return give_up(-EPROTO,
				"bootstrap: PE 0 sent something that is no answer");
		if (received == Link::Received::header) {
			link.receive_payload(result ? out : &abort_);
			continue;
		}
		if (aborted) {
			abort_.text[sizeof(abort_.text) - 1] = '\0';
			return give_up(
				abort_.code < 0 ? abort_.code : -EPROTO, abort_.text);
		}
		done = true;
		return 0;
	}
}

int Tcp::give_up(int code, const std::string &reason)
{
	broken_ = code;
	reason_ = reason;
	if (pe_ == 0)
		tell_all();
	else
		links_[0].close(); // tells PE 0
	return fail(code, "%s", reason.c_str());
}

void Tcp::tell_all()
{
	AbortBody body = {};
	body.code = broken_;
	snprintf(body.text, sizeof(body.text), "%s", reason_.c_str());
	const Frame frame = {frame_magic, FrameKind::abort, sequence_, 0, sizeof(body)};
	// Results have been handed out whole, so the connections are between frames. A few
	// hundred bytes fit into any socket's buffer; who has no room for them will see the
	// end instead.
	for (uint32_t pe = 1; pe < n_pes_; pe++) {
		Link &link = links_[pe];
		if (!link.open())
			continue;
		link.start_send(frame, &body);
		if (link.pump_send() != 0 || link.sending())
			link.close();
	}
}

int tcp_allgather(void *cookie, const void *in, void *out, size_t size)
{
	Tcp *tcp = static_cast<Tcp *>(cookie);
	return guard([&] {
		const int rc = check_gather(tcp->n_pes(), in, out, size);
		return rc ? rc : tcp->collective(FrameKind::allgather, in, out, size);
	});
}

int tcp_barrier(void *cookie)
{
	Tcp *tcp = static_cast<Tcp *>(cookie);
	return guard(
		[&] { return tcp->collective(FrameKind::barrier, nullptr, nullptr, 0); });
}

int check_attr(const nda_bootstrap_tcp_attr &a)
{
	if (a.reserved || a.reserved16)
		return fail(-EINVAL, "bootstrap: reserved fields must be 0");
	if (a.n_pes == 0 || a.n_pes > pes_max)
		return fail(
			-EINVAL, "bootstrap: n_pes %u is not in 1..%u", a.n_pes, pes_max);
	if (a.pe >= a.n_pes)
		return fail(
			-EINVAL, "bootstrap: pe %u is not below n_pes %u", a.pe, a.n_pes);
	if (!a.secret)
		return fail(-EINVAL, "bootstrap: PE %u: secret is NULL", a.pe);
	if (a.pe != 0 && a.listen_fd > 0)
		return fail(-EINVAL, "bootstrap: PE %u: listen_fd is for PE 0 alone", a.pe);
	if (a.port == 0 && a.n_pes > 1 && a.listen_fd <= 0)
		return fail(-EINVAL, "bootstrap: PE %u: port is 0", a.pe);
	return 0;
}

} // namespace

int bootstrap_tcp_create(
	const nda_bootstrap_tcp_attr *attr, size_t attr_size, nda_bootstrap *&bootstrap)
{
	nda_bootstrap_tcp_attr a;
	if (!attr)
		return fail(-EINVAL, "bootstrap: attr is NULL");
	int rc = read_attr(a, attr, attr_size, 0, "bootstrap");
	if (!rc)
		rc = check_attr(a);
	if (rc)
		return rc;
	const uint32_t timeout_ms =
		a.timeout_ms ? a.timeout_ms : bootstrap_timeout_ms_default;
	const char *address = a.address ? a.address : "127.0.0.1";
	auto tcp = std::make_unique<Tcp>(a.pe, a.n_pes, timeout_ms);
	rc = tcp->connect({a.pe, a.n_pes, address, a.port, a.listen_fd, a.secret});
	if (rc)
		return rc;
	if (a.listen_fd > 0)
		close(a.listen_fd);
	derive_session(a.secret, tcp->session);
	nda_bootstrap &b = tcp->callbacks;
	b.pe = a.pe;
	b.n_pes = a.n_pes;
	b.allgather = tcp_allgather;
	b.barrier = tcp_barrier;
	b.cookie = tcp.get();
	b.session = tcp->session;
	bootstrap = &tcp.release()->callbacks;
	return 0;
}

int bootstrap_tcp_destroy(nda_bootstrap *bootstrap)
{
	if (!bootstrap)
		return fail(-EINVAL, "bootstrap is NULL");
	if (bootstrap->allgather != tcp_allgather)
		return fail(-EINVAL, "%p is no bootstrap of nda_bootstrap_tcp_create",
			static_cast<void *>(bootstrap));
	delete static_cast<Tcp *>(bootstrap->cookie);
	return 0;
}

void derive_session(const uint8_t secret[secret_bytes], uint8_t session[32])
{
	const Mac low = secret_mac(secret, "nda session 0", 13);
	const Mac high = secret_mac(secret, "nda session 1", 13);
	memcpy(session, low.data(), low.size());
	memcpy(session + low.size(), high.data(), high.size());
}

} // namespace nda
