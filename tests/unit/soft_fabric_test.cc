// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Software NPUs of several processes.
#include "lib/common/fd.h"
#include "providers/soft/fabric.h"
#include "tests/mock/sanitizer.h"
#include "tests/mock/soft_bench.h"
#include "tests/mock/soft_process.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>

namespace nda::soft_test {
namespace {

namespace hw = nda::hw::hns1825;

constexpr uint64_t size = 4u << 20;

// The session of this test program: a process is in one only.
struct Session {
	uint8_t bytes[NDA_SOFT_SESSION_BYTES];

	Session()
	{
		EXPECT_EQ(getrandom(bytes, sizeof(bytes), 0),
			static_cast<ssize_t>(sizeof(bytes)));
		EXPECT_EQ(api().set_session(bytes), 0) << detail();
	}
};

const Session &session()
{
	static const Session s;
	return s;
}

struct Remote {
	PeerProcess process;
	ibv_gid gid = {};
	uint32_t qpn = 0, rkey = 0;
	uint64_t memory = 0;

	explicit Remote(const uint8_t *with_session = session().bytes)
	{
		if (with_session) {
			EXPECT_EQ(process.ask("session " +
					  hex(with_session, NDA_SOFT_SESSION_BYTES)),
				"ok");
		}
		std::vector<std::string> answer = split(process.ask("open"));
		if (answer.size() != 5) {
			ADD_FAILURE() << "the helper does not answer";
			return;
		}
		for (size_t i = 0; i < sizeof(gid); i++)
			gid.raw[i] = static_cast<uint8_t>(
				std::stoul(answer[1].substr(2 * i, 2), nullptr, 16));
		qpn = static_cast<uint32_t>(std::stoul(answer[2]));
		memory = std::stoull(answer[3]);
		rkey = static_cast<uint32_t>(std::stoul(answer[4]));
	}
	std::string connect(const TestNic &nic, const TestQueue &queue)
	{
		ibv_gid own = nic.gid();
		return process.ask("connect " + hex(&own, sizeof(own)) + " " +
			std::to_string(queue.qpn()));
	}
};

nda_soft_npu_attr assisted()
{
	nda_soft_npu_attr attr = {};
	attr.assist = 1;
	return attr;
}

class Fabric : public testing::Test {
protected:
	Fabric()
	{
		session();
		memory = npu.alloc(size);
		mr = nic.reg(memory, size);
	}
	~Fabric() override { EXPECT_EQ(api().dereg_mr(mr), 0) << detail(); }
	void connect(Remote &r)
	{
		queue.connect(r.gid, r.qpn);
		EXPECT_EQ(r.connect(nic, queue), "ok");
	}
	void expect_both_ways(Remote &r)
	{
		npu.write(memory, pattern(100, 5));
		queue.write(memory, mr->lkey, r.memory, r.rkey, 100);
		std::optional<Cqe> c = queue.wait();
		ASSERT_TRUE(c);
		EXPECT_FALSE(c->error) << int{c->syndrome};
		EXPECT_EQ(r.process.ask("check 0 100 5"), "ok");
		EXPECT_EQ(r.process.ask("fill 0 100 9"), "ok");
		EXPECT_EQ(r.process.ask(line("write", 100)), "ok");
		EXPECT_EQ(npu.read(memory, 100), pattern(100, 9));
	}
	std::vector<uint8_t> pattern(size_t count, unsigned seed) const
	{
		std::vector<uint8_t> bytes(count);
		for (size_t i = 0; i < count; i++)
			bytes[i] = static_cast<uint8_t>(seed + i * 7 + i / 251);
		return bytes;
	}
	std::string line(const char *verb, uint64_t count)
	{
		return std::string(verb) + " 0 " + std::to_string(memory) + " " +
			std::to_string(mr->rkey) + " " + std::to_string(count);
	}

	TestNpu npu{assisted()};
	TestNic nic;
	TestQueue queue{npu, nic};
	uint64_t memory;
	ibv_mr *mr;
};

TEST_F(Fabric, TwoProcessesWriteAndReadEachOthersMemory)
{
	Remote r;
	connect(r);
	npu.write(memory, pattern(1000000, 5));
	queue.write(memory, mr->lkey, r.memory, r.rkey, 1000000);
	std::optional<Cqe> c = queue.wait();
	ASSERT_TRUE(c);
	ASSERT_FALSE(c->error) << int{c->syndrome};
	EXPECT_EQ(r.process.ask("check 0 1000000 5"), "ok");

	EXPECT_EQ(r.process.ask("fill 0 300000 77"), "ok");
	queue.read(memory, mr->lkey, r.memory, r.rkey, 300000);
	c = queue.wait();
	ASSERT_TRUE(c);
	ASSERT_FALSE(c->error);
	EXPECT_EQ(npu.read(memory, 300000), pattern(300000, 77));

	EXPECT_EQ(r.process.ask("fill 0 5000 99"), "ok");
	EXPECT_EQ(r.process.ask(line("write", 5000)), "ok");
	EXPECT_EQ(npu.read(memory, 5000), pattern(5000, 99));
	npu.write(memory, pattern(5000, 111));
	EXPECT_EQ(r.process.ask(line("read", 5000)), "ok");
	EXPECT_EQ(r.process.ask("check 0 5000 111"), "ok");
	EXPECT_EQ(npu.violations(), 0u);
}

TEST_F(Fabric, PeersAccessRulesHoldAcrossProcesses)
{
	Remote r;
	connect(r);
	queue.write(memory, mr->lkey, r.memory + size - 4, r.rkey, 8);
	std::optional<Cqe> c = queue.wait();
	ASSERT_TRUE(c);
	EXPECT_EQ(c->syndrome, hw::syndrome_remote_access);
}

TEST_F(Fabric, ThreeProcessesConnectInEveryDirection)
{
	Remote r1, r2;
	TestQueue second(npu, nic);
	queue.connect(r1.gid, r1.qpn);
	second.connect(r2.gid, r2.qpn);
	EXPECT_EQ(r1.connect(nic, queue), "ok");
	EXPECT_EQ(r2.connect(nic, second), "ok");
	EXPECT_EQ(r1.process.ask("fill 0 100 1"), "ok");
	EXPECT_EQ(r2.process.ask("fill 0 100 2"), "ok");
	EXPECT_EQ(r1.process.ask(line("write", 100)), "ok");
	EXPECT_EQ(npu.read(memory, 100), pattern(100, 1));
	EXPECT_EQ(r2.process.ask(line("write", 100)), "ok");
	EXPECT_EQ(npu.read(memory, 100), pattern(100, 2));
}

TEST_F(Fabric, NpuThatAPeerOpensLaterIsReached)
{
	Remote r;
	connect(r);
	queue.write(memory, mr->lkey, r.memory, r.rkey, 8);
	ASSERT_TRUE(queue.wait());
	std::vector<std::string> second = split(r.process.ask("second"));
	ASSERT_EQ(second.size(), 3u);
	npu.write(memory, {1, 2, 3, 4, 5, 6, 7, 8});
	queue.write(memory, mr->lkey, std::stoull(second[1]),
		static_cast<uint32_t>(std::stoul(second[2])), 8);
	std::optional<Cqe> c = queue.wait();
	ASSERT_TRUE(c);
	EXPECT_FALSE(c->error) << int{c->syndrome};
	EXPECT_EQ(r.process.ask("peek " + second[1]), "ok 0102030405060708");
}

TEST_F(Fabric, NpuThatThisProcessOpensAndClosesLaterIsReachedMeanwhile)
{
	Remote r;
	connect(r);
	for (int round = 0; round < 3; round++) {
		TestNpu later;
		uint64_t address = later.alloc(4096);
		ibv_mr *late = nic.reg(address, 4096);
		EXPECT_EQ(r.process.ask("fill 0 100 4"), "ok");
		EXPECT_EQ(r.process.ask("write 0 " + std::to_string(address) + " " +
				  std::to_string(late->rkey) + " 100"),
			"ok");
		EXPECT_EQ(later.read(address, 100), pattern(100, 4));
		EXPECT_EQ(api().dereg_mr(late), 0);
	}
}

// ---- Death -----------------------------------------------------------------------------

// Writes until the peer's end is seen; how long after begin that was.
uint64_t write_until_error(TestQueue &q, uint64_t from, uint32_t lkey, const Remote &r,
	uint64_t begin, uint8_t &syndrome)
{
	for (uint64_t end = now_ns() + uint64_t{deadline_ms} * 1000000u; now_ns() < end;) {
		q.write(from, lkey, r.memory, r.rkey, 8);
		std::optional<Cqe> c = q.wait();
		if (!c)
			return ~uint64_t{0};
		if (c->error) {
			syndrome = c->syndrome;
			return now_ns() - begin;
		}
	}
	return ~uint64_t{0};
}

TEST_F(Fabric, KilledPeerIsNoticedWhileItsMemoryIsStillBeingTornDown)
{
	Remote r;
	connect(r);
	EXPECT_EQ(r.process.ask("touch 268435456"), "ok");
	queue.write(memory, mr->lkey, r.memory, r.rkey, 8);
	ASSERT_TRUE(queue.wait());
	uint64_t begin = now_ns();
	r.process.kill(SIGKILL);
	uint8_t syndrome = 0;
	uint64_t took = write_until_error(queue, memory, mr->lkey, r, begin, syndrome);
	EXPECT_EQ(syndrome, hw::syndrome_retry_exceeded);
	EXPECT_EQ(queue.state(), IBV_QPS_ERR);
	printf("noticed %.3f ms after the kill, aim 10 ms\n",
		static_cast<double>(took) / 1e6);
	RecordProperty("noticed_us", std::to_string(took / 1000));
	EXPECT_LT(took, 1000000000u);
	queue.write(memory, mr->lkey, r.memory, r.rkey, 8);
	std::optional<Cqe> c = queue.wait();
	ASSERT_TRUE(c);
	EXPECT_EQ(c->syndrome, hw::syndrome_flushed);
}

TEST_F(Fabric, TransfersUnderWayAreCutOffByThePeersDeath)
{
	Remote r;
	connect(r);
	for (int i = 0; i < 63; i++)
		queue.put_wqe(
			queue.wqe(hw::op_write, memory, mr->lkey, r.memory, r.rkey, size));
	queue.ring();
	r.process.kill(SIGKILL);
	bool failed = false;
	for (int i = 0; i < 63; i++) {
		std::optional<Cqe> c = queue.wait();
		ASSERT_TRUE(c);
		if (failed) {
			EXPECT_EQ(c->syndrome, hw::syndrome_flushed);
		} else if (c->error) {
			EXPECT_EQ(c->syndrome, hw::syndrome_retry_exceeded);
			failed = true;
		}
	}
	EXPECT_TRUE(failed) << "252 MiB went to a process that was being killed";
}

TEST_F(Fabric, PeerThatExitsIsNoticedToo)
{
	Remote r;
	connect(r);
	EXPECT_EQ(r.process.ask("quit"), "");
	uint8_t syndrome = 0;
	EXPECT_NE(write_until_error(queue, memory, mr->lkey, r, now_ns(), syndrome),
		~uint64_t{0});
	EXPECT_EQ(syndrome, hw::syndrome_retry_exceeded);
}

TEST_F(Fabric, DeathOfAPeerIsToldOfWhereNothingIsSent)
{
	Remote r;
	connect(r);
	queue.write(memory, mr->lkey, r.memory, r.rkey, 8);
	ASSERT_TRUE(queue.wait());
	ibv_async_event event;
	EXPECT_EQ(api().get_async_event(nic.context(), &event), -EAGAIN);
	r.process.kill(SIGKILL);
	uint64_t end = now_ns() + uint64_t{deadline_ms} * 1000000;
	int rc;
	while ((rc = api().get_async_event(nic.context(), &event)) && now_ns() < end)
		usleep(1000);
	ASSERT_EQ(rc, 0);
	EXPECT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
	EXPECT_EQ(event.element.qp, queue.qp());
	EXPECT_EQ(queue.state(), IBV_QPS_RTS) << "what is posted still tells of it";
	EXPECT_EQ(api().get_async_event(nic.context(), &event), -EAGAIN) << "told twice";
}

TEST_F(Fabric, NothingIsLeftOfAKilledProcess)
{
	std::string name;
	{
		Remote r;
		connect(r);
		uint8_t id[8];
		memcpy(id, r.gid.raw + 8, 8);
		name = "/" + hex(id, 8);
		r.process.kill(SIGKILL);
		EXPECT_TRUE(r.process.reap());
	}
	std::ifstream sockets("/proc/net/unix");
	std::string all((std::istreambuf_iterator<char>(sockets)), {});
	EXPECT_EQ(all.find(name), all.npos);
	EXPECT_NE(all.find("nda-soft/"), all.npos) << "this process listens";
}

TEST_F(Fabric, DeadInitiatorDoesNotHoldUpDeregistration)
{
	Remote r;
	connect(r);
	EXPECT_EQ(r.process.ask("stick"), "ok");
	EXPECT_EQ(soft::Fabric::get().quiesce(20), -ETIMEDOUT);
	r.process.kill(SIGKILL);
	ibv_mr *region = nic.reg(memory, 4096);
	EXPECT_EQ(api().dereg_mr(region), 0) << detail();
}

TEST_F(Fabric, NothingIsWrittenAfterDeregistrationHasReturned)
{
	for (int round = 0; round < 20; round++) {
		Remote r;
		TestQueue q(npu, nic);
		q.connect(r.gid, r.qpn);
		EXPECT_EQ(r.connect(nic, q), "ok");
		EXPECT_EQ(api().npu_memset(npu.get(), memory, 0xaa, size), 0);
		for (int i = 0; i < 60; i++)
			q.put_wqe(q.wqe(
				hw::op_write, memory, mr->lkey, r.memory, r.rkey, size));
		q.ring();
		EXPECT_EQ(r.process.ask("dereg"), "ok");
		// What is filled in now must stay.
		EXPECT_EQ(r.process.ask("fill 0 4194304 3"), "ok");
		bool failed = false;
		for (int i = 0; i < 60; i++) {
			std::optional<Cqe> c = q.wait();
			ASSERT_TRUE(c);
			if (c->error && !failed) {
				EXPECT_EQ(c->syndrome, hw::syndrome_remote_access);
			}
			failed |= c->error;
		}
		EXPECT_EQ(r.process.ask("check 0 4194304 3"), "ok");
	}
}

// ---- Who may connect -------------------------------------------------------------------

TEST_F(Fabric, ProcessOfAnotherSessionIsNotFound)
{
	uint8_t other[NDA_SOFT_SESSION_BYTES];
	memcpy(other, session().bytes, sizeof(other));
	other[0] ^= 1;
	Remote r(other);
	EXPECT_EQ(queue.to_init(), 0);
	EXPECT_EQ(queue.to_rtr(r.gid, r.qpn), -ECONNREFUSED);
	EXPECT_NE(detail().find("of this session"), std::string::npos) << detail();
	EXPECT_EQ(queue.state(), IBV_QPS_INIT);
}

TEST_F(Fabric, WrongSecretIsRefusedByEitherSide)
{
	uint8_t other[NDA_SOFT_SESSION_BYTES];
	memcpy(other, session().bytes, sizeof(other));
	other[31] ^= 1;
	Remote r(other);
	EXPECT_EQ(queue.to_init(), 0);
	EXPECT_EQ(queue.to_rtr(r.gid, r.qpn), -EACCES);
	EXPECT_NE(detail().find("not the same session"), std::string::npos) << detail();
	std::string answer = r.connect(nic, queue);
	EXPECT_EQ(answer.rfind("error " + std::to_string(-EACCES), 0), 0u) << answer;
}

TEST_F(Fabric, ProcessWithoutASessionReachesOnlyItself)
{
	Remote r(nullptr);
	std::string answer = r.connect(nic, queue);
	EXPECT_EQ(answer.rfind("error " + std::to_string(-ENOTCONN), 0), 0u) << answer;
}

TEST_F(Fabric, GidOfNoProcessIsRefused)
{
	ibv_gid gid = nic.gid();
	gid.raw[15] ^= 1;
	EXPECT_EQ(queue.to_init(), 0);
	EXPECT_EQ(queue.to_rtr(gid, 1), -ECONNREFUSED);
}

TEST_F(Fabric, WantOfDescriptorsHereIsNamed)
{
	Remote r;
	EXPECT_EQ(queue.to_init(), 0);
	for (unsigned more : {0, 1}) {
		DescriptorLimit limit(more);
		EXPECT_EQ(queue.to_rtr(r.gid, r.qpn), -EMFILE);
		EXPECT_NE(detail().find("this process may have no more than"),
			std::string::npos)
			<< detail();
		EXPECT_NE(detail().find("ulimit -n"), std::string::npos) << detail();
	}
	EXPECT_EQ(queue.to_rtr(r.gid, r.qpn), 0) << detail();
}

TEST_F(Fabric, WantOfDescriptorsAtThePeerIsNamed)
{
	EXPECT_EQ(queue.to_init(), 0);
	for (unsigned more : {0, 1}) {
		Remote r;
		EXPECT_EQ(r.process.ask("descriptors " + std::to_string(more)), "ok");
		uint64_t begin = now_ns();
		EXPECT_EQ(queue.to_rtr(r.gid, r.qpn), -EMFILE);
		EXPECT_LT(now_ns() - begin, 2000000000u) << "it was waited for";
		EXPECT_NE(detail().find("its ulimit -n"), std::string::npos) << detail();
	}
	Remote other;
	EXPECT_EQ(queue.to_rtr(other.gid, other.qpn), 0) << detail();
}

#if NDA_ASAN || NDA_TSAN
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif
TEST_F(Fabric, WantOfAddressSpaceHereIsNamed)
{
	if (sanitized)
		GTEST_SKIP() << "a sanitizer needs address space of its own";
	Remote r;
	EXPECT_EQ(queue.to_init(), 0);
	{
		// For the peer's control segment, but not for the memory of its NPU.
		AddressLimit limit(sizeof(soft::ControlSegment) + (24u << 20));
		EXPECT_EQ(queue.to_rtr(r.gid, r.qpn), -ENOMEM);
		EXPECT_NE(detail().find("this process may map no more than"),
			std::string::npos)
			<< detail();
		EXPECT_NE(detail().find("ulimit -v"), std::string::npos) << detail();
	}
	EXPECT_EQ(queue.to_rtr(r.gid, r.qpn), 0) << detail();
}

TEST_F(Fabric, WantOfAddressSpaceAtThePeerIsNamed)
{
	if (sanitized)
		GTEST_SKIP() << "a sanitizer needs address space of its own";
	EXPECT_EQ(queue.to_init(), 0);
	{
		Remote r;
		EXPECT_EQ(r.process.ask("addresses 0"), "ok");
		EXPECT_EQ(queue.to_rtr(r.gid, r.qpn), -ENOMEM);
		EXPECT_NE(detail().find("its ulimit -v"), std::string::npos) << detail();
	}
	Remote other;
	EXPECT_EQ(queue.to_rtr(other.gid, other.qpn), 0) << detail();
}

TEST_F(Fabric, PeerThatLackedDescriptorsIsReachedOnceItHasThem)
{
	for (unsigned more : {0, 1}) {
		Remote r;
		EXPECT_EQ(queue.to_init(), 0);
		EXPECT_EQ(r.process.ask("descriptors " + std::to_string(more)), "ok");
		for (int i = 0; i < 3; i++)
			EXPECT_EQ(queue.to_rtr(r.gid, r.qpn), -EMFILE) << detail();
		EXPECT_EQ(r.process.ask("unlimited"), "ok");
		EXPECT_EQ(queue.to_rtr(r.gid, r.qpn), 0) << detail();
		EXPECT_EQ(queue.to_rts(), 0) << detail();
		EXPECT_EQ(r.connect(nic, queue), "ok");
		expect_both_ways(r);
		EXPECT_EQ(queue.to(IBV_QPS_RESET), 0) << detail();
		queue.restart();
	}
}

TEST_F(Fabric, PeerThatWasDroppedForWantOfDescriptorsConnectsAnew)
{
	Remote r;
	connect(r);
	expect_both_ways(r);
	{
		DescriptorLimit limit(0);
		EXPECT_EQ(split(r.process.ask("second")).size(), 3u);
		ibv_async_event event;
		uint64_t end = now_ns() + uint64_t{deadline_ms} * 1000000;
		int rc;
		while ((rc = api().get_async_event(nic.context(), &event)) &&
			now_ns() < end)
			usleep(1000);
		ASSERT_EQ(rc, 0);
		EXPECT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
	}
	EXPECT_EQ(r.process.ask("reset"), "ok");
	EXPECT_EQ(queue.to(IBV_QPS_RESET), 0) << detail();
	queue.restart();
	connect(r);
	expect_both_ways(r);
}

TEST(Session, SecondDifferentSessionIsBusy)
{
	uint8_t other[NDA_SOFT_SESSION_BYTES];
	memcpy(other, session().bytes, sizeof(other));
	EXPECT_EQ(api().set_session(other), 0);
	other[20] ^= 1;
	EXPECT_EQ(api().set_session(other), -EBUSY);
	EXPECT_EQ(api().set_session(nullptr), -EINVAL);
}

// ---- Peers that do not keep to the protocol --------------------------------------------

class Stranger : public Fabric {
protected:
	Stranger() : socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0))
	{
		EXPECT_EQ(connect_socket(socket.get()), 0) << strerror(errno);
	}
	int connect_socket(int fd)
	{
		struct sockaddr_un address;
		socklen_t length = soft::socket_address(
			session().bytes, soft::Fabric::get().process(), address);
		return ::connect(fd, reinterpret_cast<sockaddr *>(&address), length);
	}
	soft::Message message(soft::MessageType type) const
	{
		soft::Message m = {};
		m.magic = soft::wire_magic;
		m.type = type;
		m.process = 0x1234567890;
		return m;
	}
	void send_hello()
	{
		soft::Message m = message(soft::MessageType::hello);
		memcpy(m.secret, session().bytes + 16, 16);
		EXPECT_EQ(soft::send_message(socket.get(), m), 0);
		soft::Message reply;
		Fd control;
		EXPECT_EQ(soft::receive_message(socket.get(), reply, control, deadline_ms),
			0);
		EXPECT_EQ(reply.type, soft::MessageType::welcome);
		EXPECT_EQ(memcmp(reply.secret, m.secret, 16), 0);
	}
	void expect_dropped()
	{
		soft::Message reply;
		Fd fd;
		EXPECT_EQ(soft::receive_message(socket.get(), reply, fd, deadline_ms),
			-ECONNRESET);
		// And everyone else is served.
		Remote r;
		connect(r);
		queue.write(memory, mr->lkey, r.memory, r.rkey, 8);
		std::optional<Cqe> c = queue.wait();
		ASSERT_TRUE(c);
		EXPECT_FALSE(c->error);
	}

	Fd socket;
};

std::atomic<int> handled{0};

TEST(Message, SignalsDoNotEndTheWaitForIt)
{
	int pair[2];
	ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	Fd receiving(pair[0]), sending(pair[1]);
	struct sigaction action = {}, before;
	action.sa_handler = [](int) { handled++; };
	sigaction(SIGPROF, &action, &before);
	handled = 0;
	// The handler has run so often before there is a message that it cannot have been
	// outside the wait each time.
	std::thread sender([&sending, target = pthread_self()] {
		for (int n = 1; n <= 1000; n++) {
			pthread_kill(target, SIGPROF);
			while (handled < n)
				sched_yield();
		}
		soft::Message m = {};
		m.magic = soft::wire_magic;
		EXPECT_EQ(soft::send_message(sending.get(), m), 0);
	});
	soft::Message m;
	Fd fd;
	EXPECT_EQ(soft::receive_message(receiving.get(), m, fd, deadline_ms), 0);
	sender.join();
	sigaction(SIGPROF, &before, nullptr);
}

TEST(Message, WaitForItEndsAtItsDeadline)
{
	int pair[2];
	ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	Fd receiving(pair[0]), silent(pair[1]);
	soft::Message m;
	Fd fd;
	EXPECT_EQ(soft::receive_message(receiving.get(), m, fd, 20), -ETIMEDOUT);
}

TEST_F(Stranger, GarbageIsDropped)
{
	char garbage[100] = "GET / HTTP/1.0\r\n\r\n";
	EXPECT_EQ(send(socket.get(), garbage, sizeof(garbage), 0),
		static_cast<ssize_t>(sizeof(garbage)));
	expect_dropped();
}

TEST_F(Stranger, ShortMessageIsDropped)
{
	EXPECT_EQ(send(socket.get(), "abc", 3, 0), 3);
	expect_dropped();
}

TEST_F(Stranger, SilentOneIsDroppedAfterADeadline)
{
	expect_dropped();
}

TEST_F(Stranger, WrongSecretIsDroppedWithoutAnAnswer)
{
	EXPECT_EQ(soft::send_message(socket.get(), message(soft::MessageType::hello)), 0);
	expect_dropped();
}

TEST_F(Stranger, MessageOutOfOrderIsDropped)
{
	EXPECT_EQ(soft::send_message(socket.get(), message(soft::MessageType::segment)), 0);
	expect_dropped();
}

TEST_F(Stranger, ControlSegmentThatIsNotSealedIsDropped)
{
	send_hello();
	Fd open(memfd_create("test", MFD_CLOEXEC));
	ASSERT_EQ(ftruncate(open.get(), sizeof(soft::ControlSegment)), 0);
	EXPECT_EQ(soft::send_message(
			  socket.get(), message(soft::MessageType::ready), open.get()),
		0);
	expect_dropped();
}

TEST_F(Stranger, ControlSegmentOfAnotherSizeIsDropped)
{
	send_hello();
	Fd fd;
	ASSERT_EQ(soft::make_sealed_memory("test", 4096, fd), 0);
	EXPECT_EQ(soft::send_message(
			  socket.get(), message(soft::MessageType::ready), fd.get()),
		0);
	expect_dropped();
}

TEST_F(Stranger, ControlSegmentThatIsNoneIsDropped)
{
	send_hello();
	Fd fd;
	ASSERT_EQ(soft::make_sealed_memory("test", sizeof(soft::ControlSegment), fd), 0);
	EXPECT_EQ(soft::send_message(
			  socket.get(), message(soft::MessageType::ready), fd.get()),
		0);
	expect_dropped();
}

TEST_F(Stranger, MessageWithoutItsDescriptorIsDropped)
{
	send_hello();
	EXPECT_EQ(soft::send_message(socket.get(), message(soft::MessageType::ready)), 0);
	expect_dropped();
}

// A control segment of this test's own making.
struct FakeProcess {
	Fd fd;
	soft::Mapping mapping;

	explicit FakeProcess(uint64_t process)
	{
		EXPECT_EQ(
			soft::make_sealed_memory("test", sizeof(soft::ControlSegment), fd),
			0);
		EXPECT_EQ(mapping.map(sizeof(soft::ControlSegment), PROT_READ | PROT_WRITE,
				  MAP_SHARED, fd.get()),
			0);
		control()->magic = soft::control_magic;
		control()->process = process;
		set_alive(1);
	}
	soft::ControlSegment *control() const
	{
		return reinterpret_cast<soft::ControlSegment *>(mapping.data());
	}
	void set_alive(uint32_t thread) const
	{
		__atomic_store_n(reinterpret_cast<uint32_t *>(&control()->life), thread,
			__ATOMIC_RELEASE);
	}
};

// As many as there may be at a time have said nothing yet; the next one waits for its turn.
TEST_F(Stranger, OneTooManyWaitsUntilOthersAreThrough)
{
	constexpr size_t most = 64;
	std::vector<Fd> silent;
	for (size_t i = 1; i < most; i++) {
		silent.emplace_back(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
		ASSERT_EQ(connect_socket(silent.back().get()), 0) << strerror(errno);
	}
	Fd late(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	ASSERT_EQ(connect_socket(late.get()), 0) << strerror(errno);
	silent.clear();
	std::swap(socket, late);
	send_hello();
}

TEST_F(Stranger, DroppedPeerThatStillRunsIsWaitedFor)
{
	FakeProcess fake(message(soft::MessageType::hello).process);
	send_hello();
	EXPECT_EQ(soft::send_message(
			  socket.get(), message(soft::MessageType::ready), fake.fd.get()),
		0);
	soft::Message reply;
	Fd fd;
	do
		ASSERT_EQ(soft::receive_message(socket.get(), reply, fd, deadline_ms), 0);
	while (reply.type != soft::MessageType::end);
	fake.control()->engines[3].pass.store(7);
	EXPECT_EQ(soft::Fabric::get().quiesce(20), -ETIMEDOUT);
	EXPECT_EQ(send(socket.get(), "x", 1, 0), 1);
	expect_dropped();
	EXPECT_EQ(soft::Fabric::get().quiesce(20), -ETIMEDOUT);
	fake.set_alive(0);
	EXPECT_EQ(soft::Fabric::get().quiesce(20), 0);
}

TEST_F(Stranger, SleepingEngineOfAnotherProcessIsWoken)
{
	FakeProcess fake(message(soft::MessageType::hello).process);
	send_hello();
	EXPECT_EQ(soft::send_message(
			  socket.get(), message(soft::MessageType::ready), fake.fd.get()),
		0);
	EXPECT_EQ(soft::send_message(socket.get(), message(soft::MessageType::end)), 0);
	std::shared_ptr<soft::Peer> peer;
	const uint64_t end = now_ns() + uint64_t{deadline_ms} * 1000000;
	int rc;
	do
		rc = soft::Fabric::get().connect(
			message(soft::MessageType::end).process, 1, peer);
	while (rc != 0 && now_ns() < end);
	ASSERT_EQ(rc, 0) << detail();
	std::atomic<uint32_t> &asleep = fake.control()->engines[3].asleep;
	asleep = 1;
	std::atomic<bool> woken{false};
	std::thread sleeper([&] {
		struct timespec limit = {deadline_ms / 1000, 0};
		EXPECT_EQ(syscall(SYS_futex, &asleep, FUTEX_WAIT, 1, &limit, nullptr, 0), 0)
			<< strerror(errno);
		woken = true;
	});
	while (!woken)
		peer->wake(3);
	sleeper.join();
	fake.set_alive(0);
}

TEST_F(Stranger, SegmentThatIsNotSealedIsDropped)
{
	FakeProcess fake(message(soft::MessageType::hello).process);
	send_hello();
	EXPECT_EQ(soft::send_message(
			  socket.get(), message(soft::MessageType::ready), fake.fd.get()),
		0);
	soft::Message m = message(soft::MessageType::segment), reply;
	m.segment = 64;
	m.size = 4096;
	Fd open(memfd_create("test", MFD_CLOEXEC)), fd;
	ASSERT_EQ(ftruncate(open.get(), 4096), 0);
	EXPECT_EQ(soft::send_message(socket.get(), m, open.get()), 0);
	int rc;
	do
		rc = soft::receive_message(socket.get(), reply, fd, deadline_ms);
	while (rc == 0);
	EXPECT_EQ(rc, -ECONNRESET);
	fake.set_alive(0);
}

TEST_F(Fabric, RegionThatLiesAboutItsPlaceIsDenied)
{
	// What a peer says of its regions, as far as the engine could believe it.
	const soft::ControlSegment &control = soft::Fabric::get().self()->control();
	auto &entry = const_cast<soft::SharedMr &>(control.mrs[soft::mr_index(mr->rkey)]);
	uint64_t offset = entry.offset, bytes = entry.size;
	struct {
		uint64_t offset, size;
	} const lies[] = {{64u << 20, 4096}, {(64u << 20) - 4, 4096}, {UINT64_MAX, 4096},
		{UINT64_MAX - 4095, UINT64_MAX}, {1u << 30, UINT64_MAX}};
	ibv_mr *own = nic.reg(memory, 4096);
	for (const auto &lie : lies) {
		TestQueue x(npu, nic), y(npu, nic);
		x.connect(nic.gid(), y.qpn());
		y.connect(nic.gid(), x.qpn());
		entry.offset = lie.offset;
		entry.size = lie.size;
		x.write(memory, own->lkey, memory, mr->rkey, 8);
		std::optional<Cqe> c = x.wait();
		ASSERT_TRUE(c);
		EXPECT_EQ(c->syndrome, hw::syndrome_remote_access);
	}
	entry.offset = offset;
	entry.size = bytes;
	EXPECT_EQ(api().dereg_mr(own), 0);
}

TEST_F(Stranger, AnotherUserIsDroppedAtOnce)
{
	if (geteuid() != 0)
		GTEST_SKIP() << "needs root, to become another user";
	pid_t child = fork();
	if (child == 0) {
		// Only system calls: the parent has threads.
		if (setresuid(65534, 65534, 65534))
			_exit(1);
		int fd = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
		if (connect_socket(fd))
			_exit(2);
		char byte;
		struct pollfd wait = {fd, POLLIN, 0};
		if (poll(&wait, 1, 1000) != 1) // well before the deadline for silent ones
			_exit(3);
		_exit(recv(fd, &byte, 1, 0) == 0 ? 0 : 4);
	}
	int status = -1;
	ASSERT_EQ(waitpid(child, &status, 0), child);
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(WEXITSTATUS(status), 0);
}

} // namespace
} // namespace nda::soft_test
