/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* NPU memory that is freed while importers have it. Each suite is run by a test of its own,
 * with its devices and parameters. */
#include <linux/netlink.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>

#include <tests/vm/kmod_memory.h>

namespace {

using namespace nda::test;

constexpr uint32_t revoked = NDA_STATE_REVOKED;

class KmodRevoke : public KmodTest {
protected:
	KmodRevoke() : leftovers_(count(nda_, NDA_COUNT_LEFTOVERS)) {}
	Export make(uint64_t va, uint64_t len, uint32_t flags = 0) const
	{
		Export made = make_export(nda_, va, len, flags);

		EXPECT_EQ(made.error, 0) << strerror(made.error);
		return made;
	}
	/* Exported, attached and mapped. */
	Export import(const Memory &memory, const Importer &importer, uint32_t kind = 0,
		uint32_t flags = 0) const
	{
		Export made = make(memory.va(), memory.size(), flags);

		EXPECT_EQ(importer.attach(made.fd, kind), 0);
		EXPECT_EQ(importer.map(), 0);
		return made;
	}
	uint64_t leftovers() const { return count(nda_, NDA_COUNT_LEFTOVERS) - leftovers_; }
	uint64_t mappings() const { return count(nda_, NDA_COUNT_MAPPINGS); }
	/* Of the importer's NIC, which had the only mapping. */
	void unbind_before_unmapping(const Importer &importer) const;

	Fd nda_ = open_nda();
	Hal hal_;

private:
	uint64_t leftovers_;
};

/* Whether it does within 5 seconds. */
bool soon(const std::function<bool()> &happens)
{
	for (int i = 0; i < 500 && !happens(); i++)
		usleep(10000);
	return happens();
}

bool has(const std::string &words, const std::string &word)
{
	return words.find(" " + word + " ") != std::string::npos;
}

/* The kernel's events from now on. */
class Uevents {
public:
	Uevents()
		: fd_(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT))
	{
		sockaddr_nl address = {};

		address.nl_family = AF_NETLINK;
		address.nl_groups = 1;
		EXPECT_EQ(
			bind(fd_, reinterpret_cast<sockaddr *>(&address), sizeof(address)),
			0);
	}
	/* The variables of the next one that has @word among them, each between blanks. */
	std::string next(const std::string &word) const
	{
		pollfd wait = {fd_, POLLIN, 0};
		char text[4096];

		while (poll(&wait, 1, 10000) == 1) {
			ssize_t len = recv(fd_, text, sizeof(text), 0);
			std::string words(text, static_cast<size_t>(len > 0 ? len : 0));

			std::replace(words.begin(), words.end(), '\0', ' ');
			if (has(words, word))
				return words;
		}
		return "none";
	}

private:
	Fd fd_;
};

using KmodFault = KmodRevoke;
using KmodSink = KmodRevoke;
using KmodPinned = KmodRevoke;
using KmodRace = KmodRevoke;

/* ---- One free ---- */

TEST_F(KmodRevoke, WhatNobodyHasImportedIsRevoked)
{
	Memory memory(hal_, page);
	Export made = make(memory.va(), page);
	EXPECT_EQ(memory.free(), 0);
	nda_ioc_status status = status_of(nda_, made.handle);
	EXPECT_EQ(status.state, revoked);
	EXPECT_EQ(status.reason, uint32_t{NDA_REASON_FREED});
	Importer importer;
	EXPECT_EQ(importer.attach(made.fd), ENODEV);
}

TEST_F(KmodRevoke, ItCannotBeMappedAfterwards)
{
	Memory memory(hal_, page);
	Export made = make(memory.va(), page);
	Importer importer;
	ASSERT_EQ(importer.attach(made.fd), 0);
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(importer.map(), ENODEV);
	EXPECT_EQ(importer.map(), ENODEV);
}

TEST_F(KmodRevoke, AnImporterHasLetGoWhenTheFreeReturns)
{
	Memory memory(hal_, page);
	Importer importer;
	Export made = import(memory, importer);
	ASSERT_EQ(mappings(), 1u);
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(mappings(), 0u);
	EXPECT_EQ(importer.state().told, 1u);
	EXPECT_EQ(importer.state().mapped, 0u);
	EXPECT_EQ(leftovers(), 0u);
}

TEST_F(KmodRevoke, ASlowImporterIsWaitedFor)
{
	Memory memory(hal_, page);
	Importer importer;
	Export made = import(memory, importer, NDA_TEST_SLOW);
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(mappings(), 0u);
	EXPECT_EQ(importer.state().mapped, 0u);
	EXPECT_EQ(leftovers(), 0u);
}

TEST_F(KmodRevoke, WhatADeviceHasBegunIsWaitedFor)
{
	Memory memory(hal_, page);
	Importer importer;
	Export made = import(memory, importer);
	std::atomic<bool> freed{false};
	ASSERT_EQ(importer.begin(), 0);
	std::thread freeing([&] {
		EXPECT_EQ(memory.free(), 0);
		freed = true;
	});
	while (importer.state().told == 0)
		usleep(1000);
	/* It has let go of its mapping, but only its fence says that it is done. */
	for (int i = 0; i < 100; i++) {
		usleep(1000);
		EXPECT_FALSE(freed);
	}
	EXPECT_EQ(status_of(nda_, made.handle).state, uint32_t{NDA_STATE_REVOKING});
	EXPECT_EQ(importer.end(), 0);
	freeing.join();
	EXPECT_EQ(status_of(nda_, made.handle).state, revoked);
}

TEST_F(KmodRevoke, TwoImportersLetGo)
{
	Memory memory(hal_, page);
	Importer one, two("vm_edu1");
	Export made = import(memory, one);
	ASSERT_EQ(two.attach(made.fd), 0);
	ASSERT_EQ(two.map(), 0);
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(mappings(), 0u);
	EXPECT_EQ(one.state().mapped + two.state().mapped, 0u);
	EXPECT_EQ(one.state().told, 1u);
	EXPECT_EQ(two.state().told, 1u);
}

TEST_F(KmodRevoke, ARunningTransferEndsBeforeTheFreeReturns)
{
	Memory memory(hal_, page);
	memory.fill(0);
	Importer importer;
	Export made = import(memory, importer);
	int result = -1;
	std::thread device([&] { result = importer.write(0, pattern(2048)); });
	/* It fills the device's buffer, then empties it into the memory, 100 ms each. */
	usleep(150000);
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(mappings(), 0u);
	std::vector<uint8_t> freed = memory.bytes();
	device.join();
	EXPECT_TRUE(result == 0 || result == ENODEV) << result;
	EXPECT_EQ(memory.bytes(), freed);
	if (result == 0) {
		EXPECT_EQ(memcmp(freed.data(), pattern(2048).data(), 2048), 0);
	}
}

TEST_F(KmodRevoke, AllExportsOfTheMemoryAreRevoked)
{
	Memory memory(hal_, 4 * page);
	Importer one, two;
	Export whole = import(memory, one), part = make(memory.va() + page + 7, 100);
	ASSERT_EQ(two.attach(part.fd), 0);
	ASSERT_EQ(two.map(), 0);
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(status_of(nda_, whole.handle).state, revoked);
	EXPECT_EQ(status_of(nda_, part.handle).state, revoked);
	EXPECT_EQ(mappings(), 0u);
}

TEST_F(KmodRevoke, OtherMemoryIsNotRevoked)
{
	Memory memory(hal_, page), other(hal_, page);
	Importer importer;
	Export gone = make(memory.va(), page), made = import(other, importer);
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(status_of(nda_, made.handle).state, uint32_t{NDA_STATE_LIVE});
	EXPECT_EQ(importer.write(0, pattern(64)), 0);
	EXPECT_EQ(memcmp(other.data(), pattern(64).data(), 64), 0);
}

TEST_F(KmodRevoke, TheEventIsSignalledOnce)
{
	Memory memory(hal_, page);
	Fd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	nda_ioc_event arg = {event, 0};
	ASSERT_EQ(call(nda_, NDA_IOC_EVENT, &arg), 0);
	Export made = make(memory.va(), page);
	EXPECT_EQ(memory.free(), 0);
	uint64_t value = 0;
	EXPECT_EQ(read(event, &value, sizeof(value)), ssize_t{sizeof(value)});
	EXPECT_EQ(value, 1u);
}

TEST_F(KmodRevoke, TheEventIsSignalledThoughTheDmabufIsClosed)
{
	Memory memory(hal_, page);
	Fd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	nda_ioc_event arg = {event, 0};
	ASSERT_EQ(call(nda_, NDA_IOC_EVENT, &arg), 0);
	Export made = make(memory.va(), page);
	made.fd.reset();
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(status_of(nda_, made.handle).state, revoked);
	uint64_t value = 0;
	EXPECT_EQ(read(event, &value, sizeof(value)), ssize_t{sizeof(value)});
	EXPECT_EQ(value, 1u);
}

TEST_F(KmodRevoke, AFreeThatFailsAfterItsCallRevokesToo)
{
	Memory memory(hal_, page);
	Importer importer;
	Export made = import(memory, importer);
	hal_.set(page, NDA_TEST_HAL_BUSY);
	EXPECT_EQ(memory.free(), EBUSY);
	EXPECT_EQ(status_of(nda_, made.handle).state, revoked);
	EXPECT_EQ(mappings(), 0u);
}

TEST_F(KmodRevoke, TheYoungerDriverFreesUnderItsLock)
{
	hal_.set(page, NDA_TEST_HAL_V3);
	Memory memory(hal_, page);
	Importer importer;
	Export made = import(memory, importer);
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(status_of(nda_, made.handle).state, revoked);
	EXPECT_EQ(mappings(), 0u);
}

TEST_F(KmodRevoke, UnmappingFreesInsideANotifier)
{
	Memory memory(hal_, page);
	Importer importer;
	Export made = import(memory, importer);
	uint32_t before = hal_.counts().notified;
	memory.unmap();
	/* A table is got twice, and put once. */
	EXPECT_EQ(hal_.counts().notified, before + 1);
	EXPECT_EQ(status_of(nda_, made.handle).state, revoked);
	EXPECT_EQ(mappings(), 0u);
}

TEST_F(KmodRevoke, TheTableIsBackBeforeTheFileIsClosed)
{
	Memory memory(hal_, page);
	Export made = make(memory.va(), page);
	ASSERT_EQ(count(nda_, NDA_COUNT_TABLES), 1u);
	EXPECT_EQ(memory.free(), 0);
	/* The work puts it after it has let the free go on. */
	for (int i = 0; i < 500 && count(nda_, NDA_COUNT_TABLES); i++)
		usleep(10000);
	EXPECT_EQ(count(nda_, NDA_COUNT_TABLES), 0u);
	EXPECT_EQ(hal_.counts().tables, 0u);
}

TEST_F(KmodRevoke, AnImporterThatIgnoresItIsCountedAndUnmapped)
{
	Memory memory(hal_, page);
	Importer importer;
	Export made = import(memory, importer, NDA_TEST_IGNORE);
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(leftovers(), 1u);
	EXPECT_EQ(mappings(), 0u);
	EXPECT_EQ(importer.state().told, 1u);
	EXPECT_EQ(importer.state().mapped, 1u);
	/* What it undoes later is undone already. */
	EXPECT_EQ(importer.unmap(), 0);
	EXPECT_EQ(importer.map(), ENODEV);
}

TEST_F(KmodRevoke, AnImporterThatIgnoresItIsToldOfByAnEvent)
{
	Memory memory(hal_, page);
	Importer importer;
	Export made = import(memory, importer, NDA_TEST_IGNORE);
	Uevents events;
	EXPECT_EQ(memory.free(), 0);
	std::string words = events.next("NDA_EVENT=LEFTOVER_IMPORTER");
	EXPECT_TRUE(has(words, "ACTION=change")) << words;
	EXPECT_TRUE(has(words, std::string("NDA_DEVICE=") + getenv("vm_edu0"))) << words;
}

TEST_F(KmodRevoke, AThousandAtOnce)
{
	Memory memory(hal_, 1000 * page);
	std::vector<Export> made;
	std::vector<std::unique_ptr<Importer>> importers;
	rlimit limit = {4096, 4096};
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (size_t i = 0; i < 1000; i++) {
		made.push_back(make(memory.va() + i * page, page));
		importers.push_back(std::make_unique<Importer>());
		ASSERT_EQ(importers.back()->attach(made.back().fd), 0);
		ASSERT_EQ(importers.back()->map(), 0);
	}
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(mappings(), 0u);
	for (const Export &one : made)
		EXPECT_EQ(status_of(nda_, one.handle).state, revoked);
}

/* ---- A free while the memory is got ---- */

class KmodRevokeGetting : public KmodRevoke,
			  public testing::WithParamInterface<uint32_t> {};

TEST_P(KmodRevokeGetting, TheExportFailsOrIsRevoked)
{
	Memory memory(hal_, page);
	Export made;
	hal_.set(page, GetParam(), 300);
	std::thread exporter([&] { made = make_export(nda_, memory.va(), page); });
	while (!hal_.counts().getting)
		usleep(1000);
	EXPECT_EQ(memory.free(), 0);
	exporter.join();
	if (made.error == 0) {
		EXPECT_EQ(status_of(nda_, made.handle).state, revoked);
	} else {
		EXPECT_EQ(made.error, ECANCELED);
	}
	EXPECT_EQ(mappings(), 0u);
}
INSTANTIATE_TEST_SUITE_P(Drivers, KmodRevokeGetting,
	testing::Values(uint32_t{0}, uint32_t{NDA_TEST_HAL_V3}));

/* ---- The owner's end ---- */

/* What a child has, for its parent. */
struct Left {
	int nda;
	uint32_t handle;
};

class KmodRevokeEnd : public KmodRevoke,
		      public testing::WithParamInterface<const char *> {};

TEST_P(KmodRevokeEnd, RevokesWhatItsProcessOwned)
{
	const std::string how = GetParam();
	Importer importer;
	int to_parent[2], to_child[2];
	ASSERT_EQ(pipe2(to_parent, O_CLOEXEC), 0);
	ASSERT_EQ(pipe2(to_child, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		Fd nda(open("/dev/nda", O_RDWR));
		Hal hal;
		Memory memory(hal, page);
		Export made = make_export(nda, memory.va(), page);
		Left left = {nda, made.handle};
		char go = 0;
		if (made.error || importer.attach(made.fd) || importer.map())
			_exit(1);
		if (write(to_parent[1], &left, sizeof(left)) != sizeof(left))
			_exit(2);
		if (read(to_child[0], &go, 1) != 1)
			_exit(3);
		if (how == "exec")
			execl("/usr/bin/sleep", "sleep", "1000", nullptr);
		_exit(0);
	}
	Left left = {};
	ASSERT_EQ(read(to_parent[0], &left, sizeof(left)), ssize_t{sizeof(left)});
	Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
	Fd nda(static_cast<int>(
		syscall(SYS_pidfd_getfd, static_cast<int>(pidfd), left.nda, 0)));
	ASSERT_GE(nda, 0) << strerror(errno);
	EXPECT_EQ(status_of(nda, left.handle).state, uint32_t{NDA_STATE_LIVE});
	if (how == "kill")
		kill(pid, SIGKILL);
	else
		EXPECT_EQ(write(to_child[1], "", 1), 1);
	for (int i = 0; i < 500 && status_of(nda, left.handle).state != revoked; i++)
		usleep(10000);
	EXPECT_EQ(status_of(nda, left.handle).state, revoked);
	EXPECT_EQ(importer.state().told, 1u);
	EXPECT_EQ(importer.state().mapped, 0u);
	kill(pid, SIGKILL);
	EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
	for (int fd : {to_parent[0], to_parent[1], to_child[0], to_child[1]})
		close(fd);
}
INSTANTIATE_TEST_SUITE_P(Ends, KmodRevokeEnd, testing::Values("exit", "kill", "exec"));

TEST_F(KmodRevoke, AProcessKilledAnywhereLeavesNothing)
{
	std::minstd_rand random(5);
	for (int i = 0; i < 60; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			for (;;) {
				Fd nda = open_nda();
				Hal hal;
				Memory memory(hal, 4 * page);
				Export made = make_export(nda, memory.va(), 100);
				Importer importer;
				importer.attach(made.fd);
				importer.map();
				memory.free();
			}
		}
		usleep(1000 + random() % 20000);
		kill(pid, SIGKILL);
		EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
	}
	for (int i = 0; i < 500 && hal_.counts().tables; i++)
		usleep(10000);
	EXPECT_EQ(hal_.counts().tables, 0u);
}

/* ---- Devices that go ---- */

/* The device without its driver while it lives. */
class Unbound {
public:
	Unbound(const char *driver, const char *variable)
		: driver_(std::string("/sys/bus/pci/drivers/") + driver),
		  device_(getenv(variable))
	{
		EXPECT_EQ(put(driver_ + "/unbind", device_), 0);
	}
	~Unbound() { EXPECT_EQ(put(driver_ + "/bind", device_), 0); }

private:
	std::string driver_, device_;
};

void KmodRevoke::unbind_before_unmapping(const Importer &importer) const
{
	Unbound nic("nda_test_importer", "vm_edu0");

	EXPECT_EQ(mappings(), 0u);
	EXPECT_EQ(importer.unmap(), 0);
}

TEST_F(KmodRevoke, ANicThatIsUnboundLosesItsMappingsAndNoOtherDoes)
{
	Memory memory(hal_, page);
	Importer gone, stays("vm_edu1");
	Export made = import(memory, gone);
	ASSERT_EQ(stays.attach(made.fd), 0);
	ASSERT_EQ(stays.map(), 0);
	{
		Unbound nic("nda_test_importer", "vm_edu0");
		EXPECT_EQ(mappings(), 1u);
		EXPECT_EQ(gone.state().told, 1u);
		EXPECT_EQ(stays.state().told, 0u);
		EXPECT_EQ(status_of(nda_, made.handle).state, uint32_t{NDA_STATE_LIVE});
		EXPECT_EQ(status_of(nda_, made.handle).attachments, 1u);
		EXPECT_EQ(stays.write(0, pattern(64)), 0);
		EXPECT_EQ(memcmp(memory.data(), pattern(64).data(), 64), 0);
	}
	EXPECT_EQ(leftovers(), 0u);
	Importer back;
	EXPECT_EQ(back.attach(made.fd), 0);
	EXPECT_EQ(back.map(), 0);
}

TEST_F(KmodRevoke, ANicWhoseDriverLeavesItsMappingLosesItToo)
{
	Memory memory(hal_, page);
	Importer importer;
	Export made = import(memory, importer, NDA_TEST_IGNORE);
	{
		Unbound nic("nda_test_importer", "vm_edu0");
		EXPECT_EQ(mappings(), 0u);
		EXPECT_EQ(leftovers(), 1u);
		EXPECT_EQ(importer.map(), EBUSY);
		EXPECT_EQ(importer.unmap(), 0);
		EXPECT_EQ(importer.map(), ENODEV);
	}
}

TEST_F(KmodRevoke, MemoryOfAnNpuThatIsUnboundIsRevoked)
{
	Memory memory(hal_, page);
	Importer importer;
	Export made = import(memory, importer);
	{
		Unbound npu("nda_test_hal", "vm_hbm");
		nda_ioc_status status = status_of(nda_, made.handle);
		EXPECT_EQ(status.state, revoked);
		EXPECT_EQ(status.reason, uint32_t{NDA_REASON_UNPLUG});
		EXPECT_EQ(mappings(), 0u);
		EXPECT_EQ(importer.state().mapped, 0u);
		EXPECT_EQ(make_export(nda_, memory.va(), page).error, EINVAL);
	}
}

/* Who unbinds waits for a device, and the NPU's driver has not been told yet. */
TEST_F(KmodRevoke, MemoryOfAnNpuThatIsBeingUnboundIsNotToBeHad)
{
	Memory memory(hal_, page), other(hal_, page);
	Importer importer;
	Export made = import(memory, importer);
	ASSERT_EQ(importer.begin(), 0);
	std::atomic<bool> tried{false};
	std::thread unbinds([&tried] {
		Unbound npu("nda_test_hal", "vm_hbm");

		while (!tried)
			usleep(1000);
	});
	EXPECT_TRUE(soon([&] { return importer.state().told != 0; }));
	uint32_t gets = hal_.counts().gets;
	std::thread exports([&] {
		EXPECT_EQ(make_export(nda_, other.va(), page).error, ECANCELED);
		tried = true;
	});
	/* It has its table. */
	EXPECT_TRUE(soon([&] { return hal_.counts().gets == gets + 2; }));
	EXPECT_EQ(importer.end(), 0);
	exports.join();
	unbinds.join();
}

/* ---- Two things at once ---- */

/* Runs both at the same time, a thread for each, as often as asked. */
class Race {
public:
	explicit Race(std::function<void()> other)
		: other_(std::move(other)), thread_([this] {
			  for (uint32_t seen = 0;; seen++) {
				  while (turn_ == seen)
					  ;
				  if (ends_)
					  return;
				  other_();
				  done_++;
			  }
		  })
	{}
	~Race()
	{
		ends_ = true;
		turn_++;
		thread_.join();
	}
	void run(const std::function<void()> &one)
	{
		uint32_t want = ++turn_;

		one();
		while (done_ != want)
			;
	}

private:
	std::function<void()> other_;
	std::atomic<uint32_t> turn_{0}, done_{0};
	std::atomic<bool> ends_{false};
	std::thread thread_;
};

TEST_F(KmodRevoke, AgainstDetaching)
{
	Importer importer;
	Race race([&] { EXPECT_EQ(importer.detach(), 0); });
	for (int i = 0; i < 300; i++) {
		Memory memory(hal_, page);
		Export made = import(memory, importer);
		race.run([&] { EXPECT_EQ(memory.free(), 0); });
		EXPECT_EQ(destroy(nda_, made.handle), 0);
	}
	EXPECT_EQ(leftovers(), 0u);
}

TEST_F(KmodRevoke, AgainstMapping)
{
	Importer importer;
	int mapped = 0;
	Race race([&] { mapped = importer.map(); });
	for (int i = 0; i < 300; i++) {
		Memory memory(hal_, page);
		Export made = make(memory.va(), page);
		ASSERT_EQ(importer.attach(made.fd), 0);
		race.run([&] { EXPECT_EQ(memory.free(), 0); });
		EXPECT_TRUE(mapped == 0 || mapped == ENODEV) << mapped;
		EXPECT_EQ(mappings(), 0u);
		EXPECT_EQ(importer.detach(), 0);
		EXPECT_EQ(destroy(nda_, made.handle), 0);
	}
	EXPECT_EQ(leftovers(), 0u);
}

TEST_F(KmodRevoke, AgainstTheLastCloseOfTheDmabuf)
{
	Export made;
	Race race([&] { made.fd.reset(); });
	for (int i = 0; i < 300; i++) {
		Memory memory(hal_, page);
		made = make(memory.va(), page);
		ASSERT_EQ(destroy(nda_, made.handle), 0);
		race.run([&] { EXPECT_EQ(memory.free(), 0); });
	}
}

TEST_F(KmodRevoke, AgainstClosingTheFile)
{
	Fd nda;
	Race race([&] { nda.reset(); });
	for (int i = 0; i < 300; i++) {
		Memory memory(hal_, page);
		nda = open_nda();
		Export made = make_export(nda, memory.va(), page);
		ASSERT_EQ(made.error, 0);
		made.fd.reset();
		race.run([&] { EXPECT_EQ(memory.free(), 0); });
	}
}

TEST_F(KmodRace, FreeAgainstRelease)
{
	const char *loops = getenv("NDA_LOOPS");
	Export made;
	Importer importer;
	bool attached = false;
	Race race([&] {
		if (attached)
			importer.detach();
		destroy(nda_, made.handle);
		made.fd.reset();
	});
	ASSERT_NE(loops, nullptr);
	for (int i = 0; i < atoi(loops); i++) {
		if (i % 10000 == 0)
			printf("%d of %s\n", i, loops);
		/* The callback comes late, now and then: after the table is put. */
		if (i % 1000 == 0)
			hal_.set(
				page, i % 2000 ? NDA_TEST_HAL_V3 : 0, 0, i / 1000 % 4 * 10);
		Memory memory(hal_, page);
		made = make(memory.va(), page);
		attached = i % 4 == 0;
		if (attached) {
			ASSERT_EQ(importer.attach(made.fd), 0);
			ASSERT_EQ(importer.map(), 0);
		}
		/* From an ioctl, or from a notifier of the address space. */
		race.run([&] {
			if (i % 3)
				EXPECT_EQ(memory.free(), 0);
			else
				memory.unmap();
		});
		ASSERT_FALSE(HasFailure()) << "after " << i;
	}
	EXPECT_EQ(leftovers(), 0u);
	EXPECT_EQ(mappings(), 0u);
}

/* ---- With an IOMMU ---- */

TEST_F(KmodFault, AnImporterThatLetGoDoesNotReachIt)
{
	Memory memory(hal_, page);
	memory.fill(0x5a);
	Importer importer;
	Export made = import(memory, importer);
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(importer.write(0, pattern(64), NDA_TEST_STALE), 0);
	EXPECT_EQ(memory.bytes(), std::vector<uint8_t>(page, 0x5a));
}

TEST_F(KmodFault, AnImporterThatIgnoresItDoesNotReachIt)
{
	Memory memory(hal_, page);
	memory.fill(0x5a);
	Importer importer;
	Export made = import(memory, importer, NDA_TEST_IGNORE);
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(leftovers(), 1u);
	EXPECT_EQ(importer.write(0, pattern(64), NDA_TEST_STALE), 0);
	EXPECT_EQ(memory.bytes(), std::vector<uint8_t>(page, 0x5a));
}

TEST_F(KmodFault, AnImporterThatUnmapsDoesNotReachItAfterwards)
{
	Memory memory(hal_, page);
	memory.fill(0x5a);
	Importer importer;
	Export made = import(memory, importer);
	EXPECT_EQ(importer.unmap(), 0);
	EXPECT_EQ(importer.write(0, pattern(64), NDA_TEST_STALE), 0);
	EXPECT_EQ(memory.bytes(), std::vector<uint8_t>(page, 0x5a));
}

/* ---- sink_remap=1 ---- */

uint64_t features(int nda)
{
	nda_ioc_query query = {};

	query.what = NDA_QUERY_FEATURES;
	EXPECT_EQ(call(nda, NDA_IOC_QUERY, &query), 0);
	return query.value;
}

TEST_F(KmodSink, IsReported)
{
	EXPECT_TRUE(features(nda_) & NDA_FEATURE_SINK_REMAP);
	EXPECT_FALSE(features(nda_) & NDA_FEATURE_UNSAFE_PINNED);
}

TEST_F(KmodSink, AnImporterThatPinsWritesToTheSink)
{
	hal_.set(page, NDA_TEST_HAL_SCATTER);
	Memory memory(hal_, 4 * page);
	memory.fill(0x5a);
	Importer importer;
	Export made = import(memory, importer, NDA_TEST_PIN, NDA_EXPORT_ALLOW_PINNED);
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(leftovers(), 1u);
	EXPECT_EQ(mappings(), 1u);
	EXPECT_EQ(importer.write(page + 8, pattern(64), NDA_TEST_STALE), 0);
	EXPECT_EQ(memory.bytes(), std::vector<uint8_t>(memory.size(), 0x5a));
	/* All of its pages are one. */
	std::vector<uint8_t> got(64);
	EXPECT_EQ(importer.read(3 * page + 8, &got, NDA_TEST_STALE), 0);
	EXPECT_EQ(got, pattern(64));
	EXPECT_EQ(importer.detach(), 0);
	EXPECT_EQ(mappings(), 0u);
}

TEST_F(KmodSink, AnImporterThatIgnoresItWritesToTheSink)
{
	hal_.set(huge, 0);
	Memory memory(hal_, huge);
	memory.fill(0x5a);
	Importer importer;
	Export made = import(memory, importer, NDA_TEST_IGNORE);
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(importer.write(100 * page, pattern(64), NDA_TEST_STALE), 0);
	EXPECT_EQ(memory.bytes(), std::vector<uint8_t>(memory.size(), 0x5a));
	EXPECT_EQ(importer.unmap(), 0);
	EXPECT_EQ(importer.map(), ENODEV);
}

TEST_F(KmodSink, ANicThatIsUnboundLosesTheSinkToo)
{
	Memory memory(hal_, page);
	Importer importer;
	Export made = import(memory, importer, NDA_TEST_IGNORE);
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(mappings(), 1u);
	unbind_before_unmapping(importer);
}

TEST_F(KmodSink, ANicThatIsUnboundIsNotLedThere)
{
	Memory memory(hal_, page);
	Importer importer;
	Export made = import(memory, importer, NDA_TEST_IGNORE);
	unbind_before_unmapping(importer);
}

TEST_F(KmodSink, AnImporterThatPinsHasToBeAllowed)
{
	Memory memory(hal_, page);
	Export made = make(memory.va(), page);
	Importer importer;
	ASSERT_EQ(importer.attach(made.fd, NDA_TEST_PIN), 0);
	EXPECT_EQ(importer.map(), EOPNOTSUPP);
}

TEST_F(KmodSink, TheAddressesServeAgainOnceTheyAreUnmapped)
{
	for (int i = 0; i < 3; i++) {
		Memory memory(hal_, page);
		memory.fill(0);
		Importer importer;
		Export made =
			import(memory, importer, NDA_TEST_PIN, NDA_EXPORT_ALLOW_PINNED);
		EXPECT_EQ(importer.write(0, pattern(64)), 0);
		EXPECT_EQ(memcmp(memory.data(), pattern(64).data(), 64), 0);
		EXPECT_EQ(memory.free(), 0);
		EXPECT_EQ(importer.detach(), 0);
	}
}

/* ---- unsafe_pinned=1 ---- */

TEST_F(KmodPinned, TheOwnerThatFreesIsKilled)
{
	Importer importer;
	pid_t pid = fork();
	if (pid == 0) {
		Fd nda = open_nda();
		Hal hal;
		Memory memory(hal, page);
		Export made = make_export(nda, memory.va(), page, NDA_EXPORT_ALLOW_PINNED);
		if (made.error || importer.attach(made.fd, NDA_TEST_PIN) || importer.map())
			_exit(1);
		memory.free();
		_exit(2);
	}
	int status = 0;
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
	EXPECT_EQ(WTERMSIG(status), SIGKILL);
	EXPECT_EQ(leftovers(), 1u);
	EXPECT_EQ(importer.state().mapped, 1u);
}

TEST_F(KmodPinned, AnEventNamesTheOwnerAndTheDevice)
{
	Importer importer;
	Uevents events;
	pid_t pid = fork();
	if (pid == 0) {
		Fd nda = open_nda();
		Hal hal;
		Memory memory(hal, page);
		Export made = make_export(nda, memory.va(), page, NDA_EXPORT_ALLOW_PINNED);
		if (made.error || importer.attach(made.fd, NDA_TEST_PIN) || importer.map())
			_exit(1);
		memory.free();
		_exit(2);
	}
	EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
	/* Others may still be told of. */
	std::string words = events.next("NDA_PID=" + std::to_string(pid));
	EXPECT_TRUE(has(words, "NDA_EVENT=UNSAFE_PINNED")) << words;
	EXPECT_TRUE(has(words, std::string("NDA_DEVICE=") + getenv("vm_edu0"))) << words;
}

TEST_F(KmodPinned, AnOwnerWhoseImporterHasUnmappedLives)
{
	Memory memory(hal_, page);
	Importer importer;
	Export made = import(memory, importer, NDA_TEST_PIN, NDA_EXPORT_ALLOW_PINNED);
	EXPECT_EQ(importer.unmap(), 0);
	EXPECT_EQ(memory.free(), 0);
}

TEST_F(KmodPinned, AnImporterThatLetsGoCostsNobodysLife)
{
	Memory memory(hal_, page);
	Importer importer;
	Export made = import(memory, importer, 0, NDA_EXPORT_ALLOW_PINNED);
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(importer.state().mapped, 0u);
}

TEST_F(KmodPinned, ItTakesTheCapability)
{
	EXPECT_EQ(in_child([] {
		Fd nda = open_nda();
		Hal hal;
		Memory memory(hal, page);
		if (setuid(65534))
			return 1;
		return make_export(nda, memory.va(), page, NDA_EXPORT_ALLOW_PINNED).error;
	}),
		EPERM);
}

TEST_F(KmodPinned, ItHasToBeAsked)
{
	Memory memory(hal_, page);
	Export made = make(memory.va(), page);
	Importer importer;
	ASSERT_EQ(importer.attach(made.fd, NDA_TEST_PIN), 0);
	EXPECT_EQ(importer.map(), EOPNOTSUPP);
}

} // namespace
