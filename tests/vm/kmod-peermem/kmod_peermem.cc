/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* NPU memory registered by the peer-memory interface: what a device gets, and what becomes
 * of it when it is freed while it is registered, or being registered, or let go. */
#include <pthread.h>

#include <atomic>
#include <thread>

#include <tests/vm/kmod_peer_rig.h>
#include <tests/vm/kmod_soft_rig.h>

namespace {

using namespace nda::test;

std::pair<uint64_t, uint64_t> part(int nda, uint32_t which)
{
	nda_ioc_query query = {};

	query.what = NDA_QUERY_PART;
	query.index = which;
	EXPECT_EQ(call(nda, NDA_IOC_QUERY, &query), 0);
	return {query.value, query.value2};
}

uint64_t number(const char *variable)
{
	const char *text = getenv(variable);

	EXPECT_NE(text, nullptr) << variable;
	return text ? strtoull(text, nullptr, 0) : ~0ull;
}

/* Some microseconds of a race's two sides. */
void linger(int steps)
{
	for (volatile int i = 0; i < steps; i = i + 1)
		;
}

/* ---- What QUERY says, as the script expects it ---- */

TEST(KmodPeermemParts, AreAsTheScriptSays)
{
	Fd nda = open_nda();
	const uint64_t mrs = number("want_peermem"), queues = number("want_queues");

	EXPECT_EQ(part(nda, NDA_PART_PEERMEM),
		std::make_pair(uint64_t{mrs == NDA_WHY_OK}, mrs));
	EXPECT_EQ(part(nda, NDA_PART_PEERMEM_QUEUES),
		std::make_pair(uint64_t{queues == NDA_WHY_OK}, queues));
}

/* ---- With a driver that frees at will ---- */

class KmodPeermem : public KmodTest {
protected:
	KmodPeermem() { before_ = peer_.state(); }
	~KmodPeermem() override
	{
		Peer other;

		peer_.close();
		/* Another process's end is not waited for by those that wait for the
		 * process. */
		for (int i = 0; i < 500 && other.state().umems; i++)
			usleep(10000);
		EXPECT_EQ(other.state().umems, 0u);
		EXPECT_EQ(other.state().wrong, 0u);
		EXPECT_EQ(count(nda_, NDA_COUNT_LEFTOVERS), leftovers_);
	}
	uint32_t told() const { return peer_.state().told - before_.told; }
	uint32_t revoked() const { return peer_.state().revoked - before_.revoked; }

	Peer peer_;
	Fd nda_ = open_nda();
	Hal hal_;
	nda_test_peer_state before_;
	uint64_t leftovers_ = count(nda_, NDA_COUNT_LEFTOVERS);
};

class KmodPeermemOffset : public KmodPeermem, public testing::WithParamInterface<size_t> {};

TEST_P(KmodPeermemOffset, ADeviceWritesTheBytesAndNoneBeside)
{
	const size_t at = GetParam(), len = 1000;
	hal_.set(page, NDA_TEST_HAL_SCATTER);
	Memory memory(hal_, 32 * page);
	std::vector<uint8_t> bytes = pattern(len), want(memory.size(), 0x5a);
	memory.fill(0x5a);
	std::copy(bytes.begin(), bytes.end(), want.begin() + static_cast<ptrdiff_t>(at));

	Reg reg = peer_.reg(memory.va() + at, len);
	ASSERT_EQ(reg.error, 0) << strerror(reg.error);
	EXPECT_EQ(reg.client, uint32_t{NDA_TEST_PEER_BY_MRS});
	EXPECT_EQ(peer_.write(reg.handle, 0, bytes), 0);
	EXPECT_EQ(peer_.dereg(reg.handle), 0);
	EXPECT_EQ(memory.bytes(), want);
}

TEST_P(KmodPeermemOffset, ADeviceReadsTheBytes)
{
	const size_t at = GetParam(), len = 1000;
	Memory memory(hal_, 32 * page);
	std::vector<uint8_t> bytes = pattern(len), got(len);
	memory.fill(0x5a);
	std::copy(bytes.begin(), bytes.end(), memory.data() + at);

	Reg reg = peer_.reg(memory.va() + at, len);
	ASSERT_EQ(reg.error, 0) << strerror(reg.error);
	EXPECT_EQ(peer_.read(reg.handle, 0, &got), 0);
	EXPECT_EQ(peer_.dereg(reg.handle), 0);
	EXPECT_EQ(got, bytes);
}
INSTANTIATE_TEST_SUITE_P(Offsets, KmodPeermemOffset,
	testing::Values(size_t{0}, size_t{1}, page - 1, page, size_t{65537}));

TEST_F(KmodPeermem, APartOfLargePagesIsMappedAsOnePieceOfTheKernelsPages)
{
	hal_.set(huge, 0);
	Memory memory(hal_, 2 * huge);
	memory.fill(0x5a);

	Reg reg = peer_.reg(memory.va() + huge - 12345, 54321);
	ASSERT_EQ(reg.error, 0) << strerror(reg.error);
	EXPECT_EQ(reg.pieces, 1u);
	EXPECT_EQ(peer_.write(reg.handle, 54321 - 100, pattern(100)), 0);
	EXPECT_EQ(peer_.dereg(reg.handle), 0);
	EXPECT_EQ(memcmp(memory.data() + huge - 12345 + 54321 - 100, pattern(100).data(),
			  100),
		0);
}

TEST_F(KmodPeermem, PagesApartAreAsManyPieces)
{
	hal_.set(page, NDA_TEST_HAL_SCATTER);
	Memory memory(hal_, 8 * page);

	Reg reg = peer_.reg(memory.va() + 1, 4 * page);
	ASSERT_EQ(reg.error, 0) << strerror(reg.error);
	EXPECT_EQ(reg.pieces, 5u);
}

TEST_F(KmodPeermem, OrdinaryMemoryIsLeftToTheCore)
{
	Pages memory(4 * page);
	memset(memory.data(), 0x5a, memory.size());

	Reg reg = peer_.reg(memory.va() + 1, 3 * page);
	ASSERT_EQ(reg.error, 0) << strerror(reg.error);
	EXPECT_EQ(reg.client, uint32_t{NDA_TEST_PEER_BY_CORE});
	EXPECT_EQ(peer_.write(reg.handle, 0, pattern(100)), 0);
	EXPECT_EQ(peer_.dereg(reg.handle), 0);
	EXPECT_EQ(memcmp(memory.data() + 1, pattern(100).data(), 100), 0);
	EXPECT_EQ(peer_.state().by_client, before_.by_client);
}

TEST_F(KmodPeermem, MemoryOfNoNpuIsRefused)
{
	Bar bar;
	uint64_t va = reinterpret_cast<uintptr_t>(bar.data());

	EXPECT_EQ(peer_.reg(va, page).error, EFAULT);
	EXPECT_EQ(peer_.reg(0x1000, page).error, EFAULT);
}

TEST_F(KmodPeermem, MemoryBeyondTheNpusIsRefused)
{
	Memory memory(hal_, 4 * page);

	EXPECT_EQ(peer_.reg(memory.va(), 5 * page).error, EINVAL);
}

TEST_F(KmodPeermem, ADeviceThatIsSoftwareIsRefused)
{
	Memory memory(hal_, page);

	EXPECT_EQ(peer_.reg(memory.va(), page, 0, no_device).error, EINVAL);
}

TEST_F(KmodPeermem, AQueueIsRefusedAsTheDriverDoesNotPin)
{
	Memory memory(hal_, page);

	EXPECT_EQ(peer_.reg(memory.va(), page, NDA_TEST_PEER_QUEUE).error, EFAULT);
	EXPECT_EQ(part(nda_, NDA_PART_PEERMEM_QUEUES),
		std::make_pair(uint64_t{0}, uint64_t{NDA_WHY_NO_PINNING}));
}

TEST_F(KmodPeermem, OneRangeCanBeRegisteredOften)
{
	/* A kernel that checks DMA counts no more than seven writers of a page. */
	const uint32_t times = access("/sys/kernel/debug/dma-api", F_OK) == 0 ? 7 : 1000;
	Memory memory(hal_, 4 * page);
	std::vector<Reg> regs;

	for (uint32_t i = 0; i < times; i++) {
		regs.push_back(peer_.reg(memory.va() + 1, page));
		ASSERT_EQ(regs.back().error, 0) << i;
	}
	EXPECT_EQ(count(nda_, NDA_COUNT_TABLES), times);
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(revoked(), times);
	EXPECT_EQ(count(nda_, NDA_COUNT_MAPPINGS), 0u);
	for (const Reg &reg : regs)
		EXPECT_EQ(peer_.dereg(reg.handle), 0);
}

/* ---- Freed at each stage, under a core that leaves unmapping to the client, and an old
 * one ---- */

class KmodPeermemFree : public KmodPeermem, public testing::WithParamInterface<bool> {
protected:
	KmodPeermemFree() { set_old(GetParam()); }
	~KmodPeermemFree() override { set_old(false); }

	/* The device lets go before the free returns. */
	void expect_revoked(const Reg &reg)
	{
		EXPECT_EQ(told(), 1u);
		EXPECT_EQ(revoked(), 1u);
		EXPECT_EQ(count(nda_, NDA_COUNT_MAPPINGS), 0u);
		EXPECT_EQ(peer_.write(reg.handle, 0, {1}), EKEYREVOKED);
		EXPECT_EQ(peer_.dereg(reg.handle), 0);
	}
	/* Frees while a registration waits. What the registration answers. */
	Reg free_while_held(const Memory &memory, uint32_t hold)
	{
		Reg reg = {};
		std::thread registers(
			[&] { reg = peer_.reg(memory.va() + 1, page, hold); });
		peer_.wait_held();
		std::thread frees([&] { EXPECT_EQ(memory.free(), 0); });
		peer_.wait_told(before_.told + 1);
		peer_.go();
		registers.join();
		frees.join();
		return reg;
	}

private:
	static void set_old(bool old)
	{
		EXPECT_EQ(put("/sys/module/nda_test_peer/parameters/old", old ? "1" : "0"),
			0);
	}
};

TEST_P(KmodPeermemFree, WhileRegistered)
{
	Memory memory(hal_, 4 * page);
	Reg reg = peer_.reg(memory.va() + 1, 2 * page);
	ASSERT_EQ(reg.error, 0) << strerror(reg.error);
	EXPECT_EQ(count(nda_, NDA_COUNT_MAPPINGS), 1u);

	EXPECT_EQ(memory.free(), 0);
	expect_revoked(reg);
}

TEST_P(KmodPeermemFree, WhileTheDeviceWrites)
{
	Memory memory(hal_, page);
	Reg reg = peer_.reg(memory.va(), page);
	ASSERT_EQ(reg.error, 0) << strerror(reg.error);
	std::atomic<int> writes{0};
	std::thread writer([&] {
		while (peer_.write(reg.handle, 0, {1, 2, 3}) == 0)
			writes++;
	});

	while (!writes)
		usleep(1000);
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(count(nda_, NDA_COUNT_MAPPINGS), 0u);
	writer.join();
	expect_revoked(reg);
}

TEST_P(KmodPeermemFree, FromANotifier)
{
	Memory memory(hal_, page);
	Reg reg = peer_.reg(memory.va(), page);
	ASSERT_EQ(reg.error, 0) << strerror(reg.error);
	const uint32_t notified = hal_.counts().notified;

	memory.unmap();
	EXPECT_GT(hal_.counts().notified, notified);
	expect_revoked(reg);
}

TEST_P(KmodPeermemFree, BetweenGettingPagesAndMappingThem)
{
	Memory memory(hal_, 4 * page);
	Reg reg = free_while_held(memory, NDA_TEST_PEER_HOLD_MAP);

	EXPECT_EQ(reg.error, ENODEV);
	EXPECT_EQ(told(), 1u);
	EXPECT_EQ(count(nda_, NDA_COUNT_MAPPINGS), 0u);
}

TEST_P(KmodPeermemFree, BeforeTheDeviceIsReadyToLetGo)
{
	Memory memory(hal_, 4 * page);
	Reg reg = free_while_held(memory, NDA_TEST_PEER_HOLD_READY);

	ASSERT_EQ(reg.error, 0) << strerror(reg.error);
	expect_revoked(reg);
}

/* Wherever the free falls, nothing is left mapped. */
TEST_P(KmodPeermemFree, WhilePagesAreBeingGot)
{
	for (uint32_t flags : {0u, uint32_t{NDA_TEST_HAL_V3}}) {
		hal_.set(page, flags, 200);
		Memory memory(hal_, page);
		std::thread frees([&] {
			usleep(100000);
			EXPECT_EQ(memory.free(), 0);
		});
		Reg reg = peer_.reg(memory.va(), page);
		frees.join();
		EXPECT_EQ(count(nda_, NDA_COUNT_MAPPINGS), 0u);
		if (reg.error == 0) {
			EXPECT_EQ(peer_.write(reg.handle, 0, {1}), EKEYREVOKED);
			EXPECT_EQ(peer_.dereg(reg.handle), 0);
		}
	}
}

TEST_P(KmodPeermemFree, OfMemoryOfTwoDevices)
{
	Memory memory(hal_, page);
	Reg first = peer_.reg(memory.va(), page);
	Reg second = peer_.reg(memory.va(), page, 0, devfn_of("vm_edu1"));
	ASSERT_EQ(first.error, 0) << strerror(first.error);
	ASSERT_EQ(second.error, 0) << strerror(second.error);
	EXPECT_EQ(peer_.write(second.handle, 8, pattern(16)), 0);
	EXPECT_EQ(memcmp(memory.data() + 8, pattern(16).data(), 16), 0);

	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(revoked(), 2u);
	EXPECT_EQ(count(nda_, NDA_COUNT_MAPPINGS), 0u);
}

TEST_P(KmodPeermemFree, OfAContextThatIsMappedForTwoDevices)
{
	Memory memory(hal_, page);
	Reg reg = peer_.reg(memory.va(), page, NDA_TEST_PEER_TWO);
	ASSERT_EQ(reg.error, 0) << strerror(reg.error);
	EXPECT_EQ(count(nda_, NDA_COUNT_MAPPINGS), 2u);

	EXPECT_EQ(memory.free(), 0);
	expect_revoked(reg);
}

TEST_P(KmodPeermemFree, HoweverItIsDeregistered)
{
	/* Each set of what is left out or done twice, of a live and a freed range, of one
	 * device and of two. */
	for (uint32_t i = 0; i < 32; i++) {
		const uint32_t flags = i & 7, two = i & 8 ? NDA_TEST_PEER_TWO : 0;
		Memory memory(hal_, page);
		Reg reg = peer_.reg(memory.va(), page, two);

		ASSERT_EQ(reg.error, 0) << strerror(reg.error);
		if (i & 16) {
			EXPECT_EQ(memory.free(), 0);
		}
		EXPECT_EQ(peer_.dereg(reg.handle, flags), 0);
		EXPECT_EQ(count(nda_, NDA_COUNT_MAPPINGS), 0u) << i;
	}
}

TEST_P(KmodPeermemFree, WithTheNpusDriver)
{
	const std::string driver = "/sys/bus/pci/drivers/nda_test_hal/";
	Memory memory(hal_, page);
	Reg reg = peer_.reg(memory.va(), page);
	ASSERT_EQ(reg.error, 0) << strerror(reg.error);

	EXPECT_EQ(put(driver + "unbind", getenv("vm_hbm")), 0);
	expect_revoked(reg);
	EXPECT_EQ(put(driver + "bind", getenv("vm_hbm")), 0);
}

/* A callback may be late by more than the time that deregistering takes. */
TEST_P(KmodPeermemFree, AgainstDeregistering)
{
	/* Kernels for debugging are slow. */
	const bool debug = access("/sys/kernel/debug/kmemleak", F_OK) == 0;
	const int rounds = debug ? 500 : 5000;
	pthread_barrier_t barrier;
	std::atomic<uint32_t> handle{0};
	ASSERT_EQ(pthread_barrier_init(&barrier, nullptr, 2), 0);
	std::thread deregisters([&] {
		for (int i = 0; i < rounds; i++) {
			pthread_barrier_wait(&barrier);
			linger(i % 5 * 40);
			EXPECT_EQ(peer_.dereg(handle.load(std::memory_order_relaxed)), 0);
			pthread_barrier_wait(&barrier);
		}
	});

	for (int i = 0; i < rounds; i++) {
		hal_.set(page, i & 1 ? uint32_t{NDA_TEST_HAL_V3} : 0, 0,
			static_cast<uint32_t>(i % 7) * 20);
		Memory memory(hal_, page);
		Reg reg = peer_.reg(memory.va(), page);
		EXPECT_EQ(reg.error, 0) << strerror(reg.error);
		handle.store(reg.handle, std::memory_order_relaxed);
		pthread_barrier_wait(&barrier);
		linger(i % 11 * 20);
		EXPECT_EQ(memory.free(), 0);
		pthread_barrier_wait(&barrier);
	}
	deregisters.join();
	pthread_barrier_destroy(&barrier);
	printf("of %d, %u were revoked, %u called about too late\n", rounds, revoked(),
		peer_.state().stale - before_.stale);
	EXPECT_GT(revoked(), 0u);
	EXPECT_LT(revoked(), static_cast<uint32_t>(rounds));
}
INSTANTIATE_TEST_SUITE_P(Cores, KmodPeermemFree, testing::Values(false, true),
	[](const testing::TestParamInfo<bool> &core) {
		return core.param ? "Old" : "New";
	});

/* ---- Ends ---- */

struct Stage {
	uint32_t hold; /* of what is registered last */
	bool freed;    /* what was registered first */
};

class KmodPeermemKill : public KmodPeermem, public testing::WithParamInterface<Stage> {
protected:
	/* Registers in a process of its own, that says when, and never ends. */
	[[noreturn]] static void child(int ready, const Stage &stage)
	{
		Peer peer;
		Hal hal;
		Memory memory(hal, 4 * page);

		if (peer.reg(memory.va(), 2 * page).error ||
			(stage.freed && memory.free()) || ::write(ready, "", 1) != 1)
			_exit(1);
		peer.reg(memory.va(), page, stage.hold);
		pause();
		_exit(1);
	}
};

TEST_P(KmodPeermemKill, LeavesNothing)
{
	int ready[2], status = 0;
	char byte;

	ASSERT_EQ(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0)
		child(ready[1], GetParam());
	close(ready[1]);
	EXPECT_EQ(::read(ready[0], &byte, 1), 1);
	if (GetParam().hold)
		peer_.wait_held();
	kill(pid, SIGKILL);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_TRUE(WIFSIGNALED(status));
	close(ready[0]);
}
INSTANTIATE_TEST_SUITE_P(Stages, KmodPeermemKill,
	testing::Values(Stage{0, false}, Stage{0, true},
		Stage{NDA_TEST_PEER_HOLD_MAP, false},
		Stage{NDA_TEST_PEER_HOLD_READY, false}));

TEST_F(KmodPeermem, TheModuleStaysWhileMemoryIsRegistered)
{
	Memory memory(hal_, page);
	Reg reg = peer_.reg(memory.va(), page);
	ASSERT_EQ(reg.error, 0) << strerror(reg.error);
	EXPECT_EQ(remove_module("nda_peermem"), EAGAIN);
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(remove_module("nda_peermem"), EAGAIN);
	EXPECT_EQ(peer_.dereg(reg.handle), 0);

	EXPECT_EQ(remove_module("nda_peermem"), 0);
	EXPECT_EQ(peer_.state().clients, 0u);
	EXPECT_EQ(part(nda_, NDA_PART_PEERMEM).second, uint64_t{NDA_WHY_NOT_LOADED});
	EXPECT_EQ(part(nda_, NDA_PART_PEERMEM_QUEUES).second, uint64_t{NDA_WHY_NOT_LOADED});
	Memory other(hal_, page);
	EXPECT_EQ(peer_.reg(other.va(), page).error, EFAULT);
	EXPECT_EQ(load_module("peer/nda_peermem"), 0);
	EXPECT_EQ(peer_.state().clients, 2u);
}

/* ---- With memory that its driver pins ---- */

class KmodPeermemPinned : public KmodTest {
protected:
	~KmodPeermemPinned() override
	{
		EXPECT_EQ(peer_.state().umems, 0u);
		EXPECT_EQ(peer_.state().wrong, 0u);
	}
	Peer peer_;
	Fd nda_ = open_nda();
	Fd soft_ = open_soft();
};

TEST_F(KmodPeermemPinned, AQueueKeepsItsMemoryThoughItIsFreed)
{
	SoftMemory memory(soft_, 4 * page, NDA_SOFT_BAR);
	const uint32_t told = peer_.state().told;
	std::vector<uint8_t> bytes = pattern(100), got(100);

	Reg queue = peer_.reg(memory.map.va() + 1, page, NDA_TEST_PEER_QUEUE);
	ASSERT_EQ(queue.error, 0) << strerror(queue.error);
	EXPECT_EQ(queue.client, uint32_t{NDA_TEST_PEER_BY_QUEUES});
	EXPECT_EQ(peer_.write(queue.handle, 7, bytes), 0);
	for (size_t i = 0; i < bytes.size(); i++)
		EXPECT_EQ(memory.map.data()[8 + i], bytes[i]);

	EXPECT_EQ(soft_free(soft_, memory.request.handle), 0);
	EXPECT_EQ(peer_.state().told, told);
	EXPECT_EQ(soft_query(soft_, NDA_SOFT_QUERY_BYTES), 4 * page);
	EXPECT_EQ(peer_.read(queue.handle, 7, &got), 0);
	EXPECT_EQ(got, bytes);
	memory.map.unmap();
	EXPECT_EQ(peer_.dereg(queue.handle), 0);
	EXPECT_EQ(soft_query(soft_, NDA_SOFT_QUERY_BYTES), 0u);
}

TEST_F(KmodPeermemPinned, AnMrIsTheFirstClients)
{
	SoftMemory memory(soft_, page, NDA_SOFT_BAR);

	Reg reg = peer_.reg(memory.map.va(), page);
	ASSERT_EQ(reg.error, 0) << strerror(reg.error);
	EXPECT_EQ(reg.client, uint32_t{NDA_TEST_PEER_BY_MRS});
	EXPECT_EQ(peer_.dereg(reg.handle), 0);
}

TEST_F(KmodPeermemPinned, MemoryThatIsRamIsLeftToTheCore)
{
	SoftMemory memory(soft_, page, NDA_SOFT_RAM);

	Reg reg = peer_.reg(memory.map.va(), page, NDA_TEST_PEER_QUEUE);
	ASSERT_EQ(reg.error, 0) << strerror(reg.error);
	EXPECT_EQ(reg.client, uint32_t{NDA_TEST_PEER_BY_CORE});
	EXPECT_EQ(peer_.dereg(reg.handle), 0);
}

} // namespace
