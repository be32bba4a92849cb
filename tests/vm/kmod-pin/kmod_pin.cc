/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Host memory pinned through /dev/nda, and read and written by the DMA engine of a PCI
 * device. */
#include <linux/capability.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <fstream>
#include <numeric>
#include <thread>

#include <tests/vm/kmod_rig.h>
#include <tests/vm/modules/nda_test_edu.h>

namespace {

using namespace nda::test;

const size_t page = static_cast<size_t>(getpagesize());

nda_ioc_host_pin request(uint64_t va, uint64_t len, uint32_t access)
{
	nda_ioc_host_pin pin = {};

	pin.va = va;
	pin.len = len;
	pin.dev = bdf_of("vm_edu0");
	pin.access = access;
	return pin;
}

Fd open_edu(const char *variable)
{
	Fd fd(open((std::string("/dev/nda_test_edu-") + getenv(variable)).c_str(),
		O_RDWR | O_CLOEXEC));
	EXPECT_GE(fd, 0) << strerror(errno);
	return fd;
}

const uint32_t both = NDA_ACCESS_READ | NDA_ACCESS_WRITE;

class KmodPin : public KmodTest {
protected:
	/* Pins and gives the handle, 0 if it fails. */
	uint32_t pin(uint64_t va, uint64_t len, uint32_t access = both)
	{
		nda_ioc_host_pin arg = request(va, len, access);

		EXPECT_EQ(call(nda_, NDA_IOC_HOST_PIN, &arg), 0);
		return arg.handle;
	}
	int refusal(uint64_t va, uint64_t len, uint32_t access = both)
	{
		nda_ioc_host_pin arg = request(va, len, access);

		return call(nda_, NDA_IOC_HOST_PIN, &arg);
	}
	int destroy(uint32_t handle)
	{
		nda_ioc_destroy arg = {handle, 0};

		return call(nda_, NDA_IOC_DESTROY, &arg);
	}
	int copy(uint32_t from, uint64_t from_at, uint32_t to, uint64_t to_at, uint32_t len)
	{
		nda_test_copy arg = {};

		arg.from = {NDA_KIND_PIN, from, from_at};
		arg.to = {NDA_KIND_PIN, to, to_at};
		arg.nda_fd = nda_;
		arg.len = len;
		return call(edu_, NDA_TEST_COPY, &arg);
	}
	nda_ioc_status status(uint32_t handle)
	{
		nda_ioc_status arg = {};

		arg.handle = handle;
		EXPECT_EQ(call(nda_, NDA_IOC_STATUS, &arg), 0);
		return arg;
	}

	Fd nda_ = open_nda();
	Fd edu_ = open_edu("vm_edu0");
};

std::vector<uint8_t> pattern(size_t size)
{
	std::vector<uint8_t> bytes(size);

	for (size_t i = 0; i < size; i++)
		bytes[i] = static_cast<uint8_t>(i * 7 + i / 251 + 1);
	return bytes;
}

/* ---- Data ---- */

class KmodPinOffset : public KmodPin, public testing::WithParamInterface<size_t> {};

TEST_P(KmodPinOffset, ADeviceReadsAndWritesTheBytesAndNoneBeside)
{
	const size_t at = GetParam(), len = 1000;
	Pages source(at + len + page), target(at + len + page);
	std::vector<uint8_t> bytes = pattern(len), want(target.size(), 0x5a);
	memset(target.data(), 0x5a, target.size());
	memcpy(source.data() + at, bytes.data(), len);
	std::copy(bytes.begin(), bytes.end(), want.begin() + static_cast<ptrdiff_t>(at));

	uint32_t from = pin(source.va() + at, len, NDA_ACCESS_READ);
	uint32_t to = pin(target.va() + at, len, NDA_ACCESS_WRITE);
	EXPECT_EQ(copy(from, 0, to, 0, len), 0);
	EXPECT_EQ(destroy(from), 0);
	EXPECT_EQ(destroy(to), 0);
	EXPECT_EQ(memcmp(target.data(), want.data(), want.size()), 0);
}
INSTANTIATE_TEST_SUITE_P(Offsets, KmodPinOffset,
	testing::Values(size_t{0}, size_t{1}, page - 1, page, size_t{65537}));

TEST_F(KmodPin, TwoPinsOfOnePageAreIndependent)
{
	Pages memory(page);
	memcpy(memory.data(), pattern(64).data(), 64);
	uint32_t first = pin(memory.va(), 64), second = pin(memory.va() + 2048, 64);

	EXPECT_EQ(destroy(first), 0);
	uint32_t again = pin(memory.va(), 64);
	EXPECT_EQ(copy(again, 0, second, 0, 64), 0);
	EXPECT_EQ(memcmp(memory.data() + 2048, pattern(64).data(), 64), 0);
}

TEST_F(KmodPin, PagesThatWereNeverTouchedAreThere)
{
	Pages source(page), target(page);
	memset(target.data(), 1, page);
	uint32_t from = pin(source.va(), 16, NDA_ACCESS_READ), to = pin(target.va(), 16);

	EXPECT_EQ(copy(from, 0, to, 0, 16), 0);
	EXPECT_EQ(memcmp(target.data(), std::vector<uint8_t>(16).data(), 16), 0);
}

TEST_F(KmodPin, WhatIsWrittenAfterAPinForReadingIsWhatTheDeviceReads)
{
	Pages source(page), target(page);
	uint32_t from = pin(source.va(), 16, NDA_ACCESS_READ), to = pin(target.va(), 16);

	memcpy(source.data(), pattern(16).data(), 16);
	EXPECT_EQ(copy(from, 0, to, 0, 16), 0);
	EXPECT_EQ(memcmp(target.data(), pattern(16).data(), 16), 0);
}

TEST_F(KmodPin, MemoryUnmappedByItsOwnerStaysTheDevices)
{
	Pages target(page);
	uint32_t from, to = pin(target.va(), 16);
	{
		Pages source(page);
		memcpy(source.data(), pattern(16).data(), 16);
		from = pin(source.va(), 16, NDA_ACCESS_READ);
	}
	EXPECT_EQ(copy(from, 0, to, 0, 16), 0);
	EXPECT_EQ(memcmp(target.data(), pattern(16).data(), 16), 0);
}

TEST_F(KmodPin, AThousandAtATime)
{
	/* A kernel that checks DMA counts no more than seven writers of a page. */
	Pages memory(200 * page);
	std::vector<uint32_t> handles;

	for (uint32_t i = 0; i < 1000; i++)
		handles.push_back(pin(memory.va() + i % 200 * page, page));
	EXPECT_EQ(count(nda_, NDA_COUNT_PINNED_PAGES), 1000u);
	EXPECT_EQ(copy(handles[0], 0, handles[999], 0, 16), 0);
	for (size_t i = 0; i < handles.size(); i += 2)
		EXPECT_EQ(destroy(handles[i]), 0);
	EXPECT_EQ(count(nda_, NDA_COUNT_PINNED_PAGES), 500u);
	EXPECT_EQ(count(nda_, NDA_COUNT_MAPPINGS), 500u);
}

TEST_F(KmodPin, AnotherDeviceCannotUseIt)
{
	Pages memory(page);
	uint32_t handle = pin(memory.va(), page);
	Fd other = open_edu("vm_edu1");
	nda_test_copy arg = {};

	arg.from = arg.to = {NDA_KIND_PIN, handle, 0};
	arg.nda_fd = nda_;
	arg.len = 16;
	EXPECT_EQ(call(other, NDA_TEST_COPY, &arg), ENODEV);
}

TEST_F(KmodPin, WhoHoldsItInTheKernelKeepsItPastItsHandle)
{
	Pages memory(page);
	uint32_t handle = pin(memory.va(), page);
	nda_test_copy arg = {};

	arg.from = {NDA_KIND_PIN, handle, 0};
	arg.nda_fd = nda_;
	EXPECT_EQ(call(edu_, NDA_TEST_HOLD, &arg), 0);
	EXPECT_EQ(destroy(handle), 0);
	EXPECT_EQ(count(nda_, NDA_COUNT_PINNED_PAGES), 1u);
	edu_.reset();
	EXPECT_EQ(count(nda_, NDA_COUNT_PINNED_PAGES), 0u);
}

/* ---- What is refused ---- */

TEST_F(KmodPin, LengthsOfZeroAndRangesThatWrapAreInvalid)
{
	Pages memory(page);

	EXPECT_EQ(refusal(memory.va(), 0), EINVAL);
	EXPECT_EQ(refusal(memory.va(), ~0ull), EINVAL);
	EXPECT_EQ(refusal(~0ull, 1), EINVAL);
	EXPECT_EQ(refusal(~0ull - page, page), EINVAL);
}

TEST_F(KmodPin, HugeLengthsFindNoMemory)
{
	Pages memory(page);

	EXPECT_EQ(refusal(memory.va(), 1ull << 46), ENOMEM);
	EXPECT_EQ(refusal(1, 1ull << 62), ENOMEM);
}

TEST_F(KmodPin, MemoryThatIsNotMappedIsAFault)
{
	Pages memory(3 * page);
	munmap(memory.data() + page, page);

	EXPECT_EQ(refusal(memory.va() + page, page), EFAULT);
	EXPECT_EQ(refusal(memory.va(), 3 * page), EFAULT);
	EXPECT_EQ(refusal(0, page), EFAULT);
	EXPECT_EQ(refusal(1ull << 63, page), EFAULT);
}

TEST_F(KmodPin, AccessMustBeGivenAndBeAllowed)
{
	Pages read_only(page, PROT_READ);

	EXPECT_EQ(refusal(read_only.va(), page, 0), EINVAL);
	EXPECT_EQ(refusal(read_only.va(), page, 4), EINVAL);
	EXPECT_EQ(refusal(read_only.va(), page, NDA_ACCESS_WRITE), EACCES);
}

TEST_F(KmodPin, ADeviceThatIsNotThereOrHasNoDriverIsRefused)
{
	Pages memory(page);
	nda_ioc_host_pin arg = request(memory.va(), page, both);

	arg.dev = bdf_of("vm_hbm");
	EXPECT_EQ(call(nda_, NDA_IOC_HOST_PIN, &arg), ENODEV);
	arg.dev.bus = 0xee;
	EXPECT_EQ(call(nda_, NDA_IOC_HOST_PIN, &arg), ENODEV);
	arg.dev.domain = ~0u;
	EXPECT_EQ(call(nda_, NDA_IOC_HOST_PIN, &arg), ENODEV);
}

TEST_F(KmodPin, AMappingOfDeviceMemoryIsNotSupported)
{
	Fd bar(open((std::string("/sys/bus/pci/devices/") + getenv("vm_hbm") + "/resource2")
			    .c_str(),
		O_RDWR));
	void *at = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, bar, 0);
	ASSERT_NE(at, MAP_FAILED);

	EXPECT_EQ(refusal(reinterpret_cast<uintptr_t>(at), page), EOPNOTSUPP);
	munmap(at, page);
}

TEST_F(KmodPin, AnAnswerThatCannotBeWrittenLeavesNothing)
{
	Pages memory(page), argument(page);
	*reinterpret_cast<nda_ioc_host_pin *>(argument.data()) =
		request(memory.va(), page, both);
	mprotect(argument.data(), page, PROT_READ);

	EXPECT_EQ(call(nda_, NDA_IOC_HOST_PIN, argument.data()), EFAULT);
	EXPECT_EQ(count(nda_, NDA_COUNT_PINNED_PAGES), 0u);
	EXPECT_EQ(count(nda_, NDA_COUNT_OBJECTS), 0u);
}

/* ---- RLIMIT_MEMLOCK ---- */

/* In a child: without CAP_IPC_LOCK, under a limit of @pages pages. */
int limited(size_t pages, const std::function<int()> &body)
{
	return in_child([&] {
		rlimit limit = {pages * page, pages * page};
		__user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
		__user_cap_data_struct data[2] = {};

		if (setrlimit(RLIMIT_MEMLOCK, &limit) || syscall(SYS_capset, &header, data))
			return 200;
		return body();
	});
}

TEST_F(KmodPin, TheLimitOfLockedMemoryHolds)
{
	Pages memory(8 * page);

	EXPECT_EQ(limited(4,
			  [&] {
				  Fd nda = open_nda();
				  nda_ioc_host_pin four = request(
							   memory.va(), 4 * page, both),
						   one = four, more = four;
				  one.len = 1;
				  more.len = 4 * page + 1;
				  nda_ioc_destroy gone = {};

				  if (call(nda, NDA_IOC_HOST_PIN, &more) != ENOMEM)
					  return 1;
				  if (call(nda, NDA_IOC_HOST_PIN, &four) != 0)
					  return 2;
				  if (call(nda, NDA_IOC_HOST_PIN, &one) != ENOMEM)
					  return 3;
				  gone.handle = four.handle;
				  if (call(nda, NDA_IOC_DESTROY, &gone) != 0)
					  return 4;
				  return call(nda, NDA_IOC_HOST_PIN, &one);
			  }),
		0);
}

/* ---- Ends ---- */

TEST_F(KmodPin, ClosingTheFileEndsItsPins)
{
	Pages memory(4 * page);
	pin(memory.va(), 4 * page);
	EXPECT_EQ(count(nda_, NDA_COUNT_PINNED_PAGES), 4u);
	Fd other = open_nda();

	nda_.reset();
	EXPECT_EQ(count(other, NDA_COUNT_PINNED_PAGES), 0u);
	EXPECT_EQ(count(other, NDA_COUNT_MAPPINGS), 0u);
}

TEST_F(KmodPin, AProcessThatIsKilledLeavesNothing)
{
	for (int pins = 0; pins < 4; pins++) {
		EXPECT_EQ(in_child([&] {
			Fd nda = open_nda();
			Pages memory(4 * page);
			for (int i = 0; i < pins; i++) {
				nda_ioc_host_pin arg = request(memory.va(), 4 * page, both);
				if (call(nda, NDA_IOC_HOST_PIN, &arg))
					return 1;
			}
			kill(getpid(), SIGKILL);
			return 2;
		}),
			255);
	}
}

TEST_F(KmodPin, AChildMayDestroyWhatItsParentPinnedButPinNothing)
{
	Pages memory(page);
	uint32_t handle = pin(memory.va(), page);

	EXPECT_EQ(in_child([&] {
		if (refusal(memory.va(), page) != EPERM)
			return 1;
		return destroy(handle);
	}),
		0);
	EXPECT_EQ(destroy(handle), ENOENT);
}

TEST_F(KmodPin, ThreadsThatPinAndDestroyTheSameLeaveNothing)
{
	Pages memory(page);
	std::vector<std::thread> threads;

	for (int t = 0; t < 4; t++)
		threads.emplace_back([&, t] {
			for (uint32_t i = 0; i < 500; i++) {
				nda_ioc_host_pin arg = request(memory.va(), page, both);
				nda_ioc_destroy gone = {};

				EXPECT_EQ(call(nda_, NDA_IOC_HOST_PIN, &arg), 0);
				/* Its own, then one that another thread may have made. */
				gone.handle = arg.handle;
				destroy(arg.handle + static_cast<uint32_t>(t) - 1);
				call(nda_, NDA_IOC_DESTROY, &gone);
			}
		});
	for (std::thread &thread : threads)
		thread.join();
	nda_.reset();
}

void drive(const char *action)
{
	std::ofstream file(std::string("/sys/bus/pci/drivers/nda_test_edu/") + action);

	file << getenv("vm_edu0") << std::flush;
	EXPECT_TRUE(file.good()) << action;
}

TEST_F(KmodPin, UnbindingTheDriverEndsThePinAndSignals)
{
	Pages memory(page);
	uint32_t handle = pin(memory.va(), page);
	Fd signal(eventfd(0, EFD_NONBLOCK));
	nda_ioc_event event = {signal, 0};
	uint64_t signals = 0;
	ASSERT_EQ(call(nda_, NDA_IOC_EVENT, &event), 0);
	EXPECT_EQ(status(handle).state, uint32_t{NDA_STATE_LIVE});
	EXPECT_EQ(status(handle).mappings, 1u);
	edu_.reset();

	drive("unbind");
	EXPECT_EQ(status(handle).state, uint32_t{NDA_STATE_REVOKED});
	EXPECT_EQ(status(handle).reason, uint32_t{NDA_REASON_UNPLUG});
	EXPECT_EQ(status(handle).mappings, 0u);
	EXPECT_EQ(count(nda_, NDA_COUNT_PINNED_PAGES), 0u);
	EXPECT_EQ(read(signal, &signals, sizeof(signals)),
		static_cast<ssize_t>(sizeof(signals)));
	EXPECT_EQ(signals, 1u);
	EXPECT_EQ(refusal(memory.va(), page), ENODEV);
	drive("bind");
	EXPECT_EQ(destroy(handle), 0);
}

/* ---- A device that does not reach the memory ---- */

class KmodPinReach : public KmodPin {};

TEST_F(KmodPinReach, ItTakesAnIommuThatTranslates)
{
	Pages memory(page);
	const bool translated = strcmp(getenv("vm_devices"), "pci") != 0;

	EXPECT_EQ(refusal(memory.va(), page), translated ? 0 : EIO);
	EXPECT_EQ(count(nda_, NDA_COUNT_PINNED_PAGES), translated ? 1u : 0u);
}

} // namespace
