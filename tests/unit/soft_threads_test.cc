// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Engine threads and cores at the same time, with and without assistance: what the thread
// sanitizer is to see.
#include "providers/soft/fabric.h"
#include "tests/mock/soft_bench.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <sched.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace nda::soft_test {
namespace {

namespace hw = nda::hw::hns1825;

constexpr uint64_t size = 4u << 20;

// What one core needs to write to the other side and to see what comes from there.
struct Side {
	TestNpu *npu;
	TestQueue *queue;
	uint64_t memory, remote;
	uint32_t lkey, rkey;
	uint32_t rounds;
	uint32_t bytes; // of the payload before each signal
	bool first;
	uint64_t wrong = 0; // bytes
	bool failed = false;
};

bool step(const nda_core *core)
{
	if (core->nic_step && core->nic_step(core->nic) > 0)
		return true;
	sched_yield();
	return false;
}

bool complete(const nda_core *core, TestQueue &q, uint64_t end)
{
	while (now_ns() < end) {
		std::optional<Cqe> c = q.poll();
		if (c)
			return !c->error;
		step(core);
	}
	return false;
}

// Ping-pong: one side writes a payload and then a counter; the other waits for the counter,
// looks at the payload that came before it, and answers in the same way. Memory: [0, 64)
// counter from the peer, [64, 128) the own one, then the payload sent, and from 1 MiB the
// payload received.
bool send_round(const nda_core *core, Side &s, uint64_t round, uint64_t end)
{
	memset(s.npu->host<uint8_t>(s.memory + 128), static_cast<int>(round), s.bytes);
	__atomic_store_n(s.npu->host<uint64_t>(s.memory + 64), round, __ATOMIC_RELEASE);
	TestQueue &q = *s.queue;
	q.put_wqe(q.wqe(hw::op_write, s.memory + 128, s.lkey, s.remote + (1u << 20), s.rkey,
		s.bytes, false));
	q.put_wqe(q.wqe(hw::op_write, s.memory + 64, s.lkey, s.remote, s.rkey, 8));
	q.ring();
	return complete(core, q, end);
}

bool receive_round(const nda_core *core, Side &s, uint64_t round, uint64_t end)
{
	auto *incoming = s.npu->host<uint64_t>(s.memory);
	while (__atomic_load_n(incoming, __ATOMIC_ACQUIRE) != round) {
		if (now_ns() > end)
			return false;
		step(core);
	}
	auto *received = s.npu->host<uint8_t>(s.memory + (1u << 20));
	for (uint32_t i = 0; i < s.bytes; i++)
		s.wrong += received[i] != static_cast<uint8_t>(round);
	return true;
}

void ping_pong(const nda_core *core, void *arg)
{
	Side &s = *static_cast<Side *>(arg);
	uint64_t end = now_ns() + uint64_t{deadline_ms} * 1000000u;
	for (uint64_t round = 1; round <= s.rounds && !s.failed; round++) {
		bool ok = s.first ? send_round(core, s, round, end) &&
				receive_round(core, s, round, end)
				  : receive_round(core, s, round, end) &&
				send_round(core, s, round, end);
		s.failed = !ok;
	}
}

class Threads : public testing::TestWithParam<std::pair<bool, bool>> {
protected:
	static nda_soft_npu_attr attr()
	{
		nda_soft_npu_attr a = {};
		a.assist = GetParam().first;
		a.strict = GetParam().second;
		return a;
	}
	Threads()
	{
		a = npu_a.alloc(size);
		b = npu_b.alloc(size);
		mr_a = nic_a.reg(a, size);
		mr_b = nic_b.reg(b, size);
	}
	~Threads() override
	{
		EXPECT_EQ(api().dereg_mr(mr_a), 0);
		EXPECT_EQ(api().dereg_mr(mr_b), 0);
	}

	TestNpu npu_a{attr()}, npu_b{attr()};
	TestNic nic_a, nic_b;
	uint64_t a, b;
	ibv_mr *mr_a, *mr_b;
};

TEST_P(Threads, KernelsOfTwoNpusExchangePayloadsInOrder)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	x.connect(nic_b.gid(), y.qpn());
	y.connect(nic_a.gid(), x.qpn());
	for (uint32_t bytes : {8u, 100u, 300000u}) {
		EXPECT_EQ(api().npu_memset(npu_a.get(), a, 0, 128), 0);
		EXPECT_EQ(api().npu_memset(npu_b.get(), b, 0, 128), 0);
		uint32_t rounds = bytes > 1000 ? 20 : 500;
		Side sa = {&npu_a, &x, a, b, mr_a->lkey, mr_b->rkey, rounds, bytes, true};
		Side sb = {&npu_b, &y, b, a, mr_b->lkey, mr_a->rkey, rounds, bytes, false};
		ASSERT_EQ(api().npu_launch(npu_a.get(), ping_pong, &sa, 1), 0);
		ASSERT_EQ(api().npu_launch(npu_b.get(), ping_pong, &sb, 1), 0);
		ASSERT_EQ(api().npu_wait(npu_a.get(), 2 * deadline_ms), 0);
		ASSERT_EQ(api().npu_wait(npu_b.get(), 2 * deadline_ms), 0);
		EXPECT_FALSE(sa.failed || sb.failed);
		EXPECT_EQ(sa.wrong + sb.wrong, 0u) << "bytes that came after their signal";
	}
	EXPECT_EQ(npu_a.violations() + npu_b.violations(), 0u);
}

TEST_P(Threads, EngineThreadAloneServesAPutThatNobodyWaitsFor)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	x.connect(nic_b.gid(), y.qpn());
	y.connect(nic_a.gid(), x.qpn());
	auto *word = npu_b.host<uint64_t>(b);
	for (uint64_t round = 1; round <= 20; round++) {
		// So that the engine is asleep at times, and at others is not.
		if (round % 4 == 0) {
			uint64_t until = now_ns() + 5000000u;
			while (now_ns() < until &&
				!__atomic_load_n(npu_a.core().nic_asleep, __ATOMIC_RELAXED))
				sched_yield();
		}
		__atomic_store_n(npu_a.host<uint64_t>(a), round, __ATOMIC_RELEASE);
		x.write(a, mr_a->lkey, b, mr_b->rkey, 8);
		uint64_t end = now_ns() + uint64_t{deadline_ms} * 1000000u;
		while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != round && now_ns() < end)
			sched_yield();
		ASSERT_EQ(__atomic_load_n(word, __ATOMIC_ACQUIRE), round);
		ASSERT_TRUE(x.wait());
	}
}

// A queue per core, all on one NPU and engine.
struct Cores {
	TestNpu *npu;
	std::vector<TestQueue *> queues;
	uint64_t memory, remote;
	uint32_t lkey, rkey;
	std::atomic<uint32_t> failed{0};
};

void each_core_writes(const nda_core *core, void *arg)
{
	Cores &c = *static_cast<Cores *>(arg);
	TestQueue &q = *c.queues[core->index];
	uint64_t end = now_ns() + uint64_t{deadline_ms} * 1000000u;
	uint64_t at = uint64_t{core->index} * 4096;
	for (uint64_t i = 1; i <= 300; i++) {
		__atomic_store_n(c.npu->host<uint64_t>(c.memory + at), i, __ATOMIC_RELEASE);
		q.write(c.memory + at, c.lkey, c.remote + at, c.rkey, 8);
		if (!complete(core, q, end)) {
			c.failed++;
			return;
		}
	}
}

TEST_P(Threads, CoresDriveTheirOwnQueues)
{
	constexpr uint32_t cores = 4;
	std::vector<std::unique_ptr<TestQueue>> xs, ys;
	Cores c = {&npu_a, {}, a, b, mr_a->lkey, mr_b->rkey, {0}};
	for (uint32_t i = 0; i < cores; i++) {
		xs.push_back(std::make_unique<TestQueue>(npu_a, nic_a));
		ys.push_back(std::make_unique<TestQueue>(npu_b, nic_b));
		xs[i]->connect(nic_b.gid(), ys[i]->qpn());
		ys[i]->connect(nic_a.gid(), xs[i]->qpn());
		c.queues.push_back(xs[i].get());
	}
	ASSERT_EQ(api().npu_launch(npu_a.get(), each_core_writes, &c, cores), 0);
	ASSERT_EQ(api().npu_wait(npu_a.get(), 2 * deadline_ms), 0);
	EXPECT_EQ(c.failed, 0u);
	for (uint32_t i = 0; i < cores; i++) {
		uint64_t got;
		EXPECT_EQ(api().npu_read(npu_b.get(), &got, b + i * 4096, 8), 0);
		EXPECT_EQ(got, 300u);
	}
}

TEST_P(Threads, QueuesAndRegionsComeAndGoWhileOthersTransfer)
{
	TestQueue x(npu_a, nic_a), y(npu_b, nic_b);
	x.connect(nic_b.gid(), y.qpn());
	y.connect(nic_a.gid(), x.qpn());
	std::atomic<bool> stop{false};
	std::atomic<uint32_t> done{0}, failed{0};
	std::thread traffic([&] {
		while (!stop) {
			x.write(a, mr_a->lkey, b, mr_b->rkey, 300000);
			std::optional<Cqe> c = x.wait();
			failed += !c || c->error;
			done++;
		}
	});
	uint64_t end = now_ns() + uint64_t{deadline_ms} * 1000000u;
	for (int i = 0; (i < 30 || done == 0) && now_ns() < end; i++) {
		ibv_mr *mr = nic_b.reg(b, size);
		TestQueue x2(npu_a, nic_a), y2(npu_b, nic_b);
		x2.connect(nic_b.gid(), y2.qpn());
		y2.connect(nic_a.gid(), x2.qpn());
		x2.write(a + (2u << 20), mr_a->lkey, b + (2u << 20), mr->rkey, 1000);
		std::optional<Cqe> c = x2.wait();
		ASSERT_TRUE(c);
		EXPECT_FALSE(c->error);
		EXPECT_EQ(x2.to(IBV_QPS_ERR), 0);
		EXPECT_EQ(x2.to(IBV_QPS_RESET), 0);
		EXPECT_EQ(api().dereg_mr(mr), 0);
	}
	stop = true;
	traffic.join();
	EXPECT_EQ(failed, 0u);
	EXPECT_GT(done, 0u);
}

INSTANTIATE_TEST_SUITE_P(Ways, Threads,
	testing::Values(
		std::pair{true, false}, std::pair{false, false}, std::pair{true, true}),
	[](const auto &p) {
		return std::string(p.param.first ? "Assisted" : "EngineAlone") +
			(p.param.second ? "Strict" : "");
	});

TEST(Idle, EngineThatHasNothingToDoUsesNoCpu)
{
	TestNpu npu;
	TestNic nic;
	TestQueue x(npu, nic);
	x.connect(nic.gid(), x.qpn());
	auto cpu_ns = [] {
		struct rusage usage;
		getrusage(RUSAGE_SELF, &usage);
		return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000ull +
			(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000ull;
	};
	uint64_t begin_cpu = cpu_ns(), begin = now_ns();
	while (now_ns() - begin < 500000000u) {
		struct timespec rest = {0, 100000000};
		nanosleep(&rest, nullptr);
	}
	double share = static_cast<double>(cpu_ns() - begin_cpu) /
		static_cast<double>(now_ns() - begin);
	printf("idle: %.3f %% of a CPU, aim 0.2 %%\n", share * 100);
	EXPECT_LT(share, 0.05);
}

// Two passes a millisecond are what an engine makes where the kernel cannot tell it of all
// doorbells; there are far less where it can, and thousands in an engine that is awake.
TEST(Idle, EngineWithPostedReceivesSleepsUntilSomethingComes)
{
	nda_soft_nic_attr attr = {};
	attr.model = "in_die";
	ibv_context *context = api().nic_open(&attr);
	ASSERT_NE(context, nullptr) << detail();
	{
		TestNpu npu;
		TestNic nic(context);
		QueueOptions o;
		o.recv_depth = 8;
		TestQueue x(npu, nic, o);
		x.connect(nic.gid(), x.qpn());
		__atomic_store_n(npu.host<uint32_t>(x.extend()->rq_info.dbr_pi_va.iov_base),
			8u, __ATOMIC_RELEASE);
		uint64_t memory = npu.alloc(64);
		ibv_mr *mr = nic.reg(memory, 64);
		auto &fabric = soft::Fabric::get();
		const std::atomic<uint64_t> &passes =
			fabric.engine(fabric.self()
					      ->control()
					      .mrs[soft::mr_index(mr->rkey)]
					      .segment)
				.pass;
		for (int i = 0; i < 20000 &&
			!__atomic_load_n(npu.core().nic_asleep, __ATOMIC_RELAXED);
			i++)
			usleep(1000);
		ASSERT_TRUE(__atomic_load_n(npu.core().nic_asleep, __ATOMIC_RELAXED));
		uint64_t before = passes, begin = now_ns();
		usleep(300000);
		uint64_t made = (passes - before) / 2; // it counts begins and ends
		EXPECT_LE(made, 2 * ((now_ns() - begin) / 1000000 + 1));
		printf("idle: %llu passes in 300 ms\n",
			static_cast<unsigned long long>(made));
		EXPECT_EQ(api().dereg_mr(mr), 0);
	}
	EXPECT_EQ(api().nic_close(context), 0) << detail();
}

} // namespace
} // namespace nda::soft_test
