// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <arpa/inet.h>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <future>
#include <gtest/gtest.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <nda/bootstrap.h>
#include <nda/npu.h>

#include "lib/common/fd.h"
#include "lib/nda/bootstrap.h"
#include "lib/nda/tcp_link.h"

namespace nda {
namespace {

constexpr uint32_t generous_ms = 30000; // never waited for where all goes well
constexpr uint32_t short_ms = 300;      // waited for where somebody is missing

const uint8_t secret[32] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
const uint8_t other_secret[32] = {9, 8, 7, 6};

// What a PE's call gave, with the words it left in its thread.
struct Outcome {
	int rc = 0;
	std::string detail;
};

Outcome outcome(int rc)
{
	return {rc, rc ? nda_error_detail() : ""};
}

// Runs body(pe) in a thread for each PE.
std::vector<Outcome> on_each(uint32_t n_pes, const std::function<Outcome(uint32_t)> &body)
{
	std::vector<Outcome> outcomes(n_pes);
	std::vector<std::thread> threads;
	for (uint32_t pe = 0; pe < n_pes; pe++)
		threads.emplace_back([&, pe] { outcomes[pe] = body(pe); });
	for (std::thread &t : threads)
		t.join();
	return outcomes;
}

struct Listener {
	explicit Listener(int send_buffer_bytes = 0)
	{
		fd = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
		if (send_buffer_bytes) { // inherited by what is accepted
			setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &send_buffer_bytes,
				sizeof(send_buffer_bytes));
			setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &send_buffer_bytes,
				sizeof(send_buffer_bytes));
		}
		sockaddr_in address = {};
		address.sin_family = AF_INET;
		address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		socklen_t size = sizeof(address);
		if (bind(fd.get(), reinterpret_cast<sockaddr *>(&address), size) ||
			listen(fd.get(), 64) ||
			getsockname(
				fd.get(), reinterpret_cast<sockaddr *>(&address), &size))
			ADD_FAILURE() << strerror(errno);
		port = ntohs(address.sin_port);
	}
	// The bootstrap has closed it.
	void taken() { new (&fd) Fd(); }

	Fd fd;
	uint16_t port = 0;
};

nda_bootstrap_tcp_attr tcp_attr(uint32_t pe, uint32_t n_pes, const Listener &listener,
	uint32_t timeout_ms = generous_ms)
{
	nda_bootstrap_tcp_attr a = {};
	a.pe = pe;
	a.n_pes = n_pes;
	a.port = listener.port;
	a.listen_fd = pe == 0 ? listener.fd.get() : -1;
	a.secret = secret;
	a.timeout_ms = timeout_ms;
	return a;
}

// The PEs of one bootstrap, made before and released after a test.
class Pes {
public:
	virtual ~Pes() = default;
	std::vector<nda_bootstrap *> pes;
};

class LocalPes : public Pes {
public:
	LocalPes(uint32_t n, uint32_t timeout_ms)
	{
		EXPECT_EQ(nda_bootstrap_local_create(n, timeout_ms, &all_), 0)
			<< nda_error_detail();
		for (uint32_t pe = 0; pe < n; pe++)
			pes.push_back(&all_[pe]);
	}
	~LocalPes() override { EXPECT_EQ(nda_bootstrap_local_destroy(all_), 0); }

private:
	nda_bootstrap *all_ = nullptr;
};

class TcpPes : public Pes {
public:
	TcpPes(uint32_t n, uint32_t timeout_ms, int buffer_bytes = 0)
	{
		Listener listener(buffer_bytes);
		pes.resize(n);
		const auto outcomes = on_each(n, [&](uint32_t pe) {
			const nda_bootstrap_tcp_attr a =
				tcp_attr(pe, n, listener, timeout_ms);
			return outcome(nda_bootstrap_tcp_create(&a, sizeof(a), &pes[pe]));
		});
		for (uint32_t pe = 0; pe < n; pe++)
			EXPECT_EQ(outcomes[pe].rc, 0) << pe << ": " << outcomes[pe].detail;
		listener.taken();
	}
	~TcpPes() override
	{
		for (nda_bootstrap *b : pes)
			EXPECT_EQ(b ? nda_bootstrap_tcp_destroy(b) : 0, 0);
	}
	void kill(uint32_t pe)
	{
		EXPECT_EQ(nda_bootstrap_tcp_destroy(pes[pe]), 0);
		pes[pe] = nullptr;
	}
};

int gather(nda_bootstrap *b, const void *in, void *out, size_t size)
{
	return b->allgather(b->cookie, in, out, size);
}

// What both kinds promise.
enum class Kind {
	local,
	tcp
};

class AnyBootstrap : public testing::TestWithParam<Kind> {
protected:
	std::unique_ptr<Pes> make(uint32_t n, uint32_t timeout_ms = generous_ms)
	{
		if (GetParam() == Kind::local)
			return std::make_unique<LocalPes>(n, timeout_ms);
		return std::make_unique<TcpPes>(n, timeout_ms);
	}
};

INSTANTIATE_TEST_SUITE_P(Kinds, AnyBootstrap, testing::Values(Kind::local, Kind::tcp),
	[](const auto &kind) { return kind.param == Kind::local ? "Local" : "Tcp"; });

TEST_P(AnyBootstrap, KnowsItsPeAndTheNumberOfPes)
{
	auto made = make(3);
	for (uint32_t pe = 0; pe < 3; pe++) {
		EXPECT_EQ(made->pes[pe]->pe, pe);
		EXPECT_EQ(made->pes[pe]->n_pes, 3u);
	}
}

TEST_P(AnyBootstrap, AllgatherGivesAllContributionsInPeOrder)
{
	auto made = make(4);
	const auto outcomes = on_each(4, [&](uint32_t pe) {
		for (uint32_t round = 0; round < 50; round++) {
			const uint32_t in = round * 100 + pe;
			uint32_t out[4] = {};
			const int rc = gather(made->pes[pe], &in, out, sizeof(in));
			if (rc)
				return outcome(rc);
			for (uint32_t i = 0; i < 4; i++)
				EXPECT_EQ(out[i], round * 100 + i);
		}
		return Outcome();
	});
	for (const Outcome &o : outcomes)
		EXPECT_EQ(o.rc, 0) << o.detail;
}

TEST_P(AnyBootstrap, WorksForOnePe)
{
	auto made = make(1);
	const int in = 7;
	int out = 0;
	EXPECT_EQ(gather(made->pes[0], &in, &out, sizeof(in)), 0);
	EXPECT_EQ(out, 7);
	EXPECT_EQ(made->pes[0]->barrier(made->pes[0]->cookie), 0);
}

TEST_P(AnyBootstrap, BarrierHoldsEverybodyUntilTheLast)
{
	auto made = make(3);
	std::atomic<int> arrived{0};
	const auto outcomes = on_each(3, [&](uint32_t pe) {
		for (int round = 1; round <= 20; round++) {
			arrived.fetch_add(1);
			const int rc = made->pes[pe]->barrier(made->pes[pe]->cookie);
			if (rc)
				return outcome(rc);
			EXPECT_GE(arrived.load(), 3 * round);
		}
		return Outcome();
	});
	for (const Outcome &o : outcomes)
		EXPECT_EQ(o.rc, 0) << o.detail;
}

TEST_P(AnyBootstrap, NamesWhoIsLateOnEveryPe)
{
	auto made = make(4, short_ms);
	const auto outcomes = on_each(4, [&](uint32_t pe) {
		if (pe == 2)
			return Outcome();
		return outcome(made->pes[pe]->barrier(made->pes[pe]->cookie));
	});
	for (uint32_t pe : {0, 1, 3}) {
		EXPECT_EQ(outcomes[pe].rc, -ETIMEDOUT);
		EXPECT_NE(outcomes[pe].detail.find("PE 2 did not arrive within 300 ms"),
			std::string::npos)
			<< outcomes[pe].detail;
	}
}

TEST_P(AnyBootstrap, StaysFailedOnceItHasFailed)
{
	auto made = make(2, short_ms);
	EXPECT_EQ(made->pes[0]->barrier(made->pes[0]->cookie), -ETIMEDOUT);
	EXPECT_EQ(made->pes[0]->barrier(made->pes[0]->cookie), -ETIMEDOUT);
	EXPECT_EQ(made->pes[1]->barrier(made->pes[1]->cookie), -ETIMEDOUT);
}

TEST_P(AnyBootstrap, RefusesDifferentSizesOnEveryPe)
{
	auto made = make(3);
	const auto outcomes = on_each(3, [&](uint32_t pe) {
		const uint64_t in = pe;
		uint64_t out[3];
		return outcome(gather(made->pes[pe], &in, out, pe == 1 ? 4 : 8));
	});
	for (const Outcome &o : outcomes)
		EXPECT_EQ(o.rc, -EINVAL) << o.detail;
}

TEST_P(AnyBootstrap, RefusesABarrierAgainstAnAllgather)
{
	auto made = make(2);
	const auto outcomes = on_each(2, [&](uint32_t pe) {
		char out[2];
		return outcome(pe ? gather(made->pes[pe], "x", out, 1)
				  : made->pes[pe]->barrier(made->pes[pe]->cookie));
	});
	for (const Outcome &o : outcomes)
		EXPECT_EQ(o.rc, -EINVAL) << o.detail;
}

TEST_P(AnyBootstrap, RefusesTooMuchAndNullAndStaysUsable)
{
	auto made = make(1);
	nda_bootstrap *b = made->pes[0];
	char byte = 1, out = 0;
	EXPECT_EQ(gather(b, &byte, &out, (size_t(1) << 30) + 1), -EMSGSIZE);
	EXPECT_EQ(gather(b, nullptr, &out, 1), -EINVAL);
	EXPECT_EQ(gather(b, &byte, nullptr, 1), -EINVAL);
	EXPECT_EQ(gather(b, &byte, &out, SIZE_MAX), -EMSGSIZE);
	EXPECT_EQ(gather(b, &byte, &out, 1), 0);
}

TEST(LocalBootstrap, RefusesBadArguments)
{
	nda_bootstrap *b = nullptr;
	EXPECT_EQ(nda_bootstrap_local_create(0, 0, &b), -EINVAL);
	EXPECT_EQ(nda_bootstrap_local_create(4097, 0, &b), -EINVAL);
	EXPECT_EQ(nda_bootstrap_local_create(1, 0, nullptr), -EINVAL);
	EXPECT_EQ(nda_bootstrap_local_destroy(nullptr), -EINVAL);
	nda_bootstrap foreign = {};
	EXPECT_EQ(nda_bootstrap_local_destroy(&foreign), -EINVAL);
	EXPECT_EQ(b, nullptr);
}

// Shorter than any message: every send and receive is cut in pieces.
TEST(TcpBootstrap, MovesLargeContributionsThroughTinyBuffers)
{
	TcpPes made(3, generous_ms, 4096);
	constexpr size_t size = 300 * 1000 + 7;
	const auto outcomes = on_each(3, [&](uint32_t pe) {
		std::vector<uint8_t> in(size, static_cast<uint8_t>(pe + 1)), out(3 * size);
		in.back() = static_cast<uint8_t>(0x80 + pe);
		const int rc = gather(made.pes[pe], in.data(), out.data(), size);
		for (size_t i = 0; !rc && i < 3; i++) {
			EXPECT_EQ(out[i * size], i + 1);
			EXPECT_EQ(out[i * size + size / 2], i + 1);
			EXPECT_EQ(out[i * size + size - 1], 0x80 + i);
		}
		return outcome(rc);
	});
	for (const Outcome &o : outcomes)
		EXPECT_EQ(o.rc, 0) << o.detail;
}

TEST(TcpBootstrap, NamesADeadPeOnEveryPe)
{
	TcpPes made(4, generous_ms);
	made.kill(2);
	const auto outcomes = on_each(4, [&](uint32_t pe) {
		const int in = 0;
		int out[4];
		return pe == 2 ? Outcome()
			       : outcome(gather(made.pes[pe], &in, out, sizeof(in)));
	});
	for (uint32_t pe : {0, 1, 3}) {
		EXPECT_EQ(outcomes[pe].rc, -ECONNRESET);
		EXPECT_NE(outcomes[pe].detail.find("PE 2 is gone"), std::string::npos)
			<< outcomes[pe].detail;
	}
}

TEST(TcpBootstrap, NamesPe0WhereItDied)
{
	TcpPes made(3, generous_ms);
	made.kill(0);
	const auto outcomes = on_each(3, [&](uint32_t pe) {
		return pe == 0 ? Outcome()
			       : outcome(made.pes[pe]->barrier(made.pes[pe]->cookie));
	});
	for (uint32_t pe : {1, 2}) {
		EXPECT_EQ(outcomes[pe].rc, -ECONNRESET);
		EXPECT_NE(outcomes[pe].detail.find("PE 0 is gone"), std::string::npos)
			<< outcomes[pe].detail;
	}
}

// Dies in the middle of what it sends, while PE 0 and the rest wait.
TEST(TcpBootstrap, NoticesAProcessThatIsKilled)
{
	Listener listener;
	int ready[2];
	ASSERT_EQ(pipe(ready), 0);
	const pid_t child = fork();
	ASSERT_GE(child, 0);
	if (child == 0) {
		nda_bootstrap *b = nullptr;
		const nda_bootstrap_tcp_attr a = tcp_attr(2, 3, listener);
		const int rc = nda_bootstrap_tcp_create(&a, sizeof(a), &b);
		if (write(ready[1], &rc, sizeof(rc)) != sizeof(rc))
			_exit(1);
		pause();
		_exit(1);
	}
	std::vector<nda_bootstrap *> pes(2);
	const auto outcomes = on_each(2, [&](uint32_t pe) {
		const nda_bootstrap_tcp_attr a = tcp_attr(pe, 3, listener);
		const int rc = nda_bootstrap_tcp_create(&a, sizeof(a), &pes[pe]);
		if (rc)
			return outcome(rc);
		if (pe == 0) {
			int child_rc = -1;
			EXPECT_EQ(read(ready[0], &child_rc, sizeof(child_rc)),
				long(sizeof(child_rc)));
			EXPECT_EQ(child_rc, 0);
			EXPECT_EQ(kill(child, SIGKILL), 0);
		}
		return outcome(pes[pe]->barrier(pes[pe]->cookie));
	});
	for (const Outcome &o : outcomes) {
		EXPECT_EQ(o.rc, -ECONNRESET);
		EXPECT_NE(o.detail.find("PE 2 is gone"), std::string::npos) << o.detail;
	}
	for (nda_bootstrap *b : pes)
		EXPECT_EQ(nda_bootstrap_tcp_destroy(b), 0);
	EXPECT_EQ(waitpid(child, nullptr, 0), child);
	close(ready[0]);
	close(ready[1]);
	listener.taken();
}

TEST(TcpBootstrap, ConnectsProcessesInAnyOrder)
{
	Listener listener;
	std::vector<pid_t> children;
	for (uint32_t pe : {3, 1, 2}) {
		const pid_t child = fork();
		ASSERT_GE(child, 0);
		if (child == 0) {
			nda_bootstrap *b = nullptr;
			const nda_bootstrap_tcp_attr a = tcp_attr(pe, 4, listener);
			uint32_t all[4] = {};
			if (nda_bootstrap_tcp_create(&a, sizeof(a), &b) ||
				gather(b, &pe, all, sizeof(pe)))
				_exit(2);
			_exit(all[0] == 0 && all[1] == 1 && all[2] == 2 && all[3] == 3 ? 0
										       : 3);
		}
		children.push_back(child);
	}
	nda_bootstrap *b = nullptr;
	const nda_bootstrap_tcp_attr a = tcp_attr(0, 4, listener);
	ASSERT_EQ(nda_bootstrap_tcp_create(&a, sizeof(a), &b), 0) << nda_error_detail();
	listener.taken();
	const uint32_t own = 0;
	uint32_t all[4] = {};
	EXPECT_EQ(gather(b, &own, all, sizeof(own)), 0) << nda_error_detail();
	EXPECT_EQ(all[3], 3u);
	for (const pid_t child : children) {
		int status = 0;
		EXPECT_EQ(waitpid(child, &status, 0), child);
		EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
	}
	EXPECT_EQ(nda_bootstrap_tcp_destroy(b), 0);
}

// PE 0 comes last: the others must keep trying.
TEST(TcpBootstrap, WaitsForPe0ToListen)
{
	uint16_t port;
	{
		Listener listener;
		port = listener.port;
	}
	std::promise<void> trying;
	const auto outcomes = on_each(2, [&](uint32_t pe) {
		nda_bootstrap_tcp_attr a = tcp_attr(pe, 2, Listener());
		a.listen_fd = -1;
		a.port = port;
		if (pe == 0)
			trying.get_future().wait();
		else
			trying.set_value();
		nda_bootstrap *b = nullptr;
		const int rc = nda_bootstrap_tcp_create(&a, sizeof(a), &b);
		const Outcome o = outcome(rc);
		EXPECT_EQ(b ? nda_bootstrap_tcp_destroy(b) : 0, 0);
		return o;
	});
	for (const Outcome &o : outcomes)
		EXPECT_EQ(o.rc, 0) << o.detail;
}

Fd connect_to(uint16_t port)
{
	Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	sockaddr_in address = {};
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address.sin_port = htons(port);
	EXPECT_EQ(
		connect(fd.get(), reinterpret_cast<sockaddr *>(&address), sizeof(address)),
		0);
	return fd;
}

// One says nothing, one talks rubbish, one hangs up at once: the job does not notice.
TEST(TcpBootstrap, DropsForeignConnections)
{
	Listener listener;
	const Fd silent = connect_to(listener.port);
	const Fd rubbish = connect_to(listener.port);
	const std::string request(500, 'G');
	EXPECT_EQ(send(rubbish.get(), request.data(), request.size(), MSG_NOSIGNAL),
		long(request.size()));
	connect_to(listener.port).reset();
	const auto outcomes = on_each(3, [&](uint32_t pe) {
		const nda_bootstrap_tcp_attr a = tcp_attr(pe, 3, listener);
		nda_bootstrap *b = nullptr;
		int rc = nda_bootstrap_tcp_create(&a, sizeof(a), &b);
		if (rc)
			return outcome(rc);
		rc = b->barrier(b->cookie);
		const Outcome o = outcome(rc);
		EXPECT_EQ(nda_bootstrap_tcp_destroy(b), 0);
		return o;
	});
	for (const Outcome &o : outcomes)
		EXPECT_EQ(o.rc, 0) << o.detail;
	listener.taken();
}

TEST(TcpBootstrap, RefusesAPeWithAnotherSecretAndSaysSoOnBothSides)
{
	Listener listener;
	const auto outcomes = on_each(2, [&](uint32_t pe) {
		nda_bootstrap_tcp_attr a =
			tcp_attr(pe, 2, listener, pe ? generous_ms : short_ms);
		if (pe)
			a.secret = other_secret;
		nda_bootstrap *b = nullptr;
		return outcome(nda_bootstrap_tcp_create(&a, sizeof(a), &b));
	});
	EXPECT_EQ(outcomes[0].rc, -ETIMEDOUT);
	EXPECT_NE(outcomes[0].detail.find("PE 1 did not connect"), std::string::npos)
		<< outcomes[0].detail;
	EXPECT_NE(outcomes[0].detail.find("secret differs"), std::string::npos)
		<< outcomes[0].detail;
	EXPECT_EQ(outcomes[1].rc, -EACCES);
	EXPECT_NE(outcomes[1].detail.find("does not know this job's secret"),
		std::string::npos)
		<< outcomes[1].detail;
}

// An impostor repeats what PE 0 says instead of knowing the secret.
TEST(TcpBootstrap, DoesNotTakeItsOwnWordsForAProof)
{
	Listener listener;
	auto root = std::async(std::launch::async, [&] {
		const nda_bootstrap_tcp_attr a = tcp_attr(0, 2, listener, short_ms);
		nda_bootstrap *b = nullptr;
		return outcome(nda_bootstrap_tcp_create(&a, sizeof(a), &b));
	});
	const Fd fd = connect_to(listener.port);
	uint8_t hello[40] = {
		'N', 'D', 'A', 'B', 'O', 'O', 'T', 0, 1, 0, 0, 0, 1, 0, 0, 0, 2};
	uint8_t challenge[32];
	EXPECT_EQ(send(fd.get(), hello, sizeof(hello), MSG_NOSIGNAL), 40);
	EXPECT_EQ(recv(fd.get(), challenge, sizeof(challenge), MSG_WAITALL), 32);
	EXPECT_EQ(send(fd.get(), challenge + 16, 16, MSG_NOSIGNAL), 16);
	uint8_t answer;
	EXPECT_LE(recv(fd.get(), &answer, 1, 0), 0) << "it was let in";
	EXPECT_EQ(root.get().rc, -ETIMEDOUT);
}

TEST(TcpBootstrap, RefusesTheSecondOfAPe)
{
	Listener listener;
	std::promise<void> second_refused;
	const std::shared_future<void> go = second_refused.get_future().share();
	const auto outcomes = on_each(4, [&](uint32_t i) {
		// 0, 1, 1, 2 of three PEs; the last comes when one of the twins was
		// refused.
		const uint32_t pe = i < 2 ? i : i - 1;
		const nda_bootstrap_tcp_attr a = tcp_attr(pe, 3, listener);
		if (i == 3)
			go.wait();
		nda_bootstrap *b = nullptr;
		const Outcome o = outcome(nda_bootstrap_tcp_create(&a, sizeof(a), &b));
		if (o.rc)
			second_refused.set_value();
		EXPECT_EQ(b ? nda_bootstrap_tcp_destroy(b) : 0, 0);
		return o;
	});
	EXPECT_EQ(outcomes[0].rc, 0) << outcomes[0].detail;
	EXPECT_EQ(outcomes[3].rc, 0) << outcomes[3].detail;
	const Outcome &refused = outcomes[1].rc ? outcomes[1] : outcomes[2];
	EXPECT_EQ(outcomes[1].rc + outcomes[2].rc, -EEXIST);
	EXPECT_NE(refused.detail.find("another process is this PE already"),
		std::string::npos)
		<< refused.detail;
	listener.taken();
}

TEST(TcpBootstrap, TellsAPeThatCountsOtherwise)
{
	Listener listener;
	const auto outcomes = on_each(2, [&](uint32_t pe) {
		const nda_bootstrap_tcp_attr a =
			tcp_attr(pe, pe ? 5 : 2, listener, pe ? generous_ms : short_ms);
		nda_bootstrap *b = nullptr;
		return outcome(nda_bootstrap_tcp_create(&a, sizeof(a), &b));
	});
	EXPECT_EQ(outcomes[0].rc, -ETIMEDOUT);
	EXPECT_EQ(outcomes[1].rc, -EINVAL);
	EXPECT_NE(outcomes[1].detail.find("its n_pes is 5, that of PE 0 is 2"),
		std::string::npos)
		<< outcomes[1].detail;
}

TEST(TcpBootstrap, TellsThoseWhoCameThatOneDidNot)
{
	Listener listener;
	const auto outcomes = on_each(2, [&](uint32_t pe) {
		const nda_bootstrap_tcp_attr a =
			tcp_attr(pe, 3, listener, pe ? generous_ms : short_ms);
		nda_bootstrap *b = nullptr;
		return outcome(nda_bootstrap_tcp_create(&a, sizeof(a), &b));
	});
	for (const Outcome &o : outcomes) {
		EXPECT_EQ(o.rc, -ETIMEDOUT);
		EXPECT_NE(o.detail.find("PE 2 did not connect"), std::string::npos)
			<< o.detail;
	}
}

TEST(TcpBootstrap, DerivesOneSessionThatIsNotTheSecret)
{
	TcpPes made(2, generous_ms);
	ASSERT_NE(made.pes[0]->session, nullptr);
	EXPECT_EQ(memcmp(made.pes[0]->session, made.pes[1]->session, 32), 0);
	EXPECT_NE(memcmp(made.pes[0]->session, secret, 32), 0);
	uint8_t other[32];
	derive_session(other_secret, other);
	EXPECT_NE(memcmp(made.pes[0]->session, other, 32), 0);
}

struct BadTcpAttr {
	const char *name;
	std::function<void(nda_bootstrap_tcp_attr &)> spoil;
	const char *detail;
};

class TcpBootstrapAttr : public testing::TestWithParam<BadTcpAttr> {};

TEST_P(TcpBootstrapAttr, IsRefused)
{
	nda_bootstrap_tcp_attr a = {};
	a.n_pes = 2;
	a.port = 1;
	a.listen_fd = -1;
	a.secret = secret;
	GetParam().spoil(a);
	nda_bootstrap *b = nullptr;
	EXPECT_EQ(nda_bootstrap_tcp_create(&a, sizeof(a), &b), -EINVAL);
	EXPECT_NE(
		std::string(nda_error_detail()).find(GetParam().detail), std::string::npos)
		<< nda_error_detail();
	EXPECT_EQ(b, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Fields, TcpBootstrapAttr,
	testing::Values(
		BadTcpAttr{"CompMask", [](auto &a) { a.comp_mask = 1; }, "comp_mask"},
		BadTcpAttr{"Reserved", [](auto &a) { a.reserved = 1; }, "reserved"},
		BadTcpAttr{"Reserved16", [](auto &a) { a.reserved16 = 1; }, "reserved"},
		BadTcpAttr{"NoPes", [](auto &a) { a.n_pes = 0; }, "n_pes 0"},
		BadTcpAttr{"TooManyPes", [](auto &a) { a.n_pes = 4097; }, "n_pes 4097"},
		BadTcpAttr{"PeTooHigh", [](auto &a) { a.pe = 2; }, "pe 2"},
		BadTcpAttr{
			"NoSecret", [](auto &a) { a.secret = nullptr; }, "secret is NULL"},
		BadTcpAttr{"NoPort", [](auto &a) { a.port = 0; }, "port is 0"},
		BadTcpAttr{"ListenFdOfAnotherPe",
			[](auto &a) {
				a.pe = 1;
				a.listen_fd = 5;
			},
			"listen_fd"},
		BadTcpAttr{"ListenFdThatDoesNotListen", [](auto &a) { a.listen_fd = 1; },
			"no listening socket"}),
	[](const auto &p) { return std::string(p.param.name); });

TEST(TcpBootstrap, RefusesNullAndSizes)
{
	nda_bootstrap *b = nullptr;
	nda_bootstrap_tcp_attr a = {};
	a.n_pes = 1;
	a.secret = secret;
	EXPECT_EQ(nda_bootstrap_tcp_create(nullptr, sizeof(a), &b), -EINVAL);
	EXPECT_EQ(nda_bootstrap_tcp_create(&a, sizeof(a), nullptr), -EINVAL);
	EXPECT_EQ(nda_bootstrap_tcp_create(&a, 0, &b), -EINVAL);
	EXPECT_EQ(nda_bootstrap_tcp_create(&a, 1 << 20, &b), -EINVAL);
	EXPECT_EQ(nda_bootstrap_tcp_destroy(nullptr), -EINVAL);
	nda_bootstrap foreign = {};
	EXPECT_EQ(nda_bootstrap_tcp_destroy(&foreign), -EINVAL);
}

TEST(TcpBootstrap, TakesALargerStructureIfItsTailIsZero)
{
	struct {
		nda_bootstrap_tcp_attr attr;
		uint64_t newer;
	} a = {};
	a.attr.n_pes = 1;
	a.attr.secret = secret;
	nda_bootstrap *b = nullptr;
	a.newer = 1;
	EXPECT_EQ(nda_bootstrap_tcp_create(&a.attr, sizeof(a), &b), -EINVAL);
	a.newer = 0;
	ASSERT_EQ(nda_bootstrap_tcp_create(&a.attr, sizeof(a), &b), 0)
		<< nda_error_detail();
	EXPECT_EQ(nda_bootstrap_tcp_destroy(b), 0);
}

TEST(TcpBootstrap, SaysWhatAddressItCannotResolve)
{
	nda_bootstrap_tcp_attr a = {};
	a.n_pes = 2;
	a.pe = 1;
	a.port = 1;
	a.address = "300.1.2.3";
	a.secret = secret;
	a.timeout_ms = short_ms;
	nda_bootstrap *b = nullptr;
	EXPECT_EQ(nda_bootstrap_tcp_create(&a, sizeof(a), &b), -EADDRNOTAVAIL);
	EXPECT_NE(std::string(nda_error_detail()).find("300.1.2.3"), std::string::npos);
}

} // namespace
} // namespace nda
