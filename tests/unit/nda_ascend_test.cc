// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The Ascend NPU, over mocks of its runtime and driver.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <sys/mman.h>
#include <thread>
#include <vector>

#include <ibv_extend.h>
#include <nda/channel.h>
#include <nda/nic.h>

#include "lib/nda/handles.h"
#include "tests/mock/ascend/ascend_test.h"
#include "tests/mock/nda_verbs.h"

namespace nda::test {
namespace {

uint64_t address(const void *p)
{
	return reinterpret_cast<uint64_t>(p);
}

void *pointer(uint64_t addr)
{
	return reinterpret_cast<void *>(addr);
}

// Until it is so, or for a time that is long enough for anybody.
bool eventually(const std::function<bool()> &so)
{
	const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
	while (!so())
		if (std::chrono::steady_clock::now() > end)
			return false;
		else
			std::this_thread::yield();
	return true;
}

class Ascend : public AscendTest {
protected:
	void open_npu(uint32_t flags = 0, const char *name = "ascend:0")
	{
		npu = open(flags, name);
		ops = npu ? nda_npu_ops(npu) : nullptr;
	}
	~Ascend() override
	{
		mock.fail_call(0);
		if (npu) {
			EXPECT_EQ(nda_npu_close(npu), 0) << nda_error_detail();
		}
	}
	uint64_t alloc(uint64_t size)
	{
		uint64_t addr = 0;
		EXPECT_EQ(nda_npu_alloc(npu, size, &addr), 0) << nda_error_detail();
		return addr;
	}

	nda_npu *npu = nullptr;
	const ibv_extend_ops *ops = nullptr;
};

// ---- Loading -------------------------------------------------------------------------

using Loading = AscendTest;

// In a process that has not loaded them yet: what is loaded is found anywhere.
[[noreturn]] void open_and_tell(const char *path)
{
	use_mocks(path);
	errno = 0;
	const nda_npu *npu = nda_npu_open("ascend:0", nullptr, 0);
	fprintf(stderr, "%s\n", nda_error_detail());
	_exit(npu ? 0 : errno);
}

class FreshProcess : public AscendTest {
protected:
	FreshProcess() { testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
};

TEST_F(FreshProcess, SaysWhichLibraryIsMissingAndWhereItLooked)
{
	const std::string path = mock_directory("no-such-directory");
	EXPECT_EXIT(open_and_tell(path.c_str()), testing::ExitedWithCode(ENODEV),
		"npu ascend:0: Ascend runtime: .*no-such-directory/libascendcl.so.*"
		"no-such-directory/libacl_rt.so");
}

TEST_F(FreshProcess, SaysThatTheDriverIsMissing)
{
	const std::string path = mock_directory("ascend-runtime");
	EXPECT_EXIT(open_and_tell(path.c_str()), testing::ExitedWithCode(ENODEV),
		"npu ascend:0: Ascend driver: .*libascend_hal.so");
}

TEST_F(FreshProcess, FindsTheLibrariesWhereTheDynamicLoaderLooks)
{
	setenv("LD_LIBRARY_PATH", mock_directory("ascend").c_str(), 1);
	EXPECT_EXIT(open_and_tell(""), testing::ExitedWithCode(0), "");
	unsetenv("LD_LIBRARY_PATH");
}

TEST_F(Loading, SaysWhichFunctionTheRuntimeLacks)
{
	use_mocks(mock_directory("ascend-broken-acl") + ":" + mock_directory("ascend"));
	EXPECT_EQ(open_error(), EPROTONOSUPPORT);
	EXPECT_TRUE(detail_has("libascendcl.so: it has no function aclrtMemset"))
		<< nda_error_detail();
}

TEST_F(Loading, SaysWhichFunctionTheDriverLacks)
{
	use_mocks(mock_directory("ascend-broken-hal") + ":" + mock_directory("ascend"));
	EXPECT_EQ(open_error(), EPROTONOSUPPORT);
	EXPECT_TRUE(detail_has("libascend_hal.so: it has no function halGetDeviceInfo"))
		<< nda_error_detail();
}

TEST_F(Loading, RefusesARuntimeOfAnotherMajorVersion)
{
	mock.version[0] = 2;
	EXPECT_EQ(open_error(), EPROTONOSUPPORT);
	EXPECT_TRUE(detail_has("of version 2.17.0, known is 1.x")) << nda_error_detail();
}

TEST_F(Loading, TakesARuntimeUnderItsNewNameWithoutWhatIsOptional)
{
	use_mocks(mock_directory("ascend-bare"));
	nda_npu *npu = open();
	ASSERT_NE(npu, nullptr);
	uint64_t addr = 0;
	EXPECT_EQ(nda_npu_alloc(npu, 4096, &addr), 0) << nda_error_detail();
	EXPECT_EQ(nda_npu_memset(npu, addr, 7, 4096), 0) << nda_error_detail();
	EXPECT_EQ(nda_npu_free(npu, addr), 0);
	EXPECT_EQ(nda_npu_close(npu), 0);
}

TEST_F(Loading, TellsAStubLibrary)
{
	mock.fail_call(1, "aclrtGetLogicDevIdByUserDevId", 100039);
	EXPECT_EQ(open_error(), EOPNOTSUPP);
	EXPECT_TRUE(detail_has("ACL error 100039, a stub library")) << nda_error_detail();
}

// ---- Opening -------------------------------------------------------------------------

using Opening = AscendTest;

TEST_F(Opening, WantsANumber)
{
	for (const char *name : {"ascend:", "ascend:x", "ascend:-1", "ascend: 1",
		     "ascend:0x1", "ascend:1 ", "ascend:99999999999"})
		EXPECT_EQ(open_error(name), EINVAL) << name;
}

TEST_F(Opening, RefusesWhatIsTheSoftwaresAlone)
{
	nda_npu_attr attr = {};
	attr.flags = NDA_NPU_STRICT;
	EXPECT_EQ(open_error("ascend:0", &attr), EINVAL);
	attr.flags = NDA_NPU_NO_ASSIST;
	EXPECT_EQ(open_error("ascend:0", &attr), EINVAL);
	attr.flags = 0;
	attr.memory_bytes = 4096;
	EXPECT_EQ(open_error("ascend:0", &attr), EINVAL);
	EXPECT_TRUE(detail_has("memory_bytes 4096")) << nda_error_detail();
	EXPECT_TRUE(mock.calls().empty());
}

TEST_F(Opening, WithDoorbellsOfTheKernelIsRefused)
{
	nda_npu_attr attr = {};
	attr.flags = NDA_NPU_DOORBELL_KERNEL;
	EXPECT_EQ(open_error("ascend:0", &attr), EOPNOTSUPP);
	EXPECT_TRUE(detail_has("npu ascend:0: NDA_NPU_DOORBELL_KERNEL: "))
		<< nda_error_detail();
	EXPECT_TRUE(detail_has("PCI function")) << nda_error_detail();
	EXPECT_TRUE(mock.calls().empty());
}

TEST_F(Opening, WithoutAContextIsRefusedWithWhatToDo)
{
	mock.set_current_device(-1);
	EXPECT_EQ(open_error(), ENXIO);
	EXPECT_TRUE(detail_has("npu ascend:0: open: this thread has no current context"))
		<< nda_error_detail();
	EXPECT_TRUE(detail_has("aclrtSetDevice(0)")) << nda_error_detail();
}

TEST_F(Opening, InTheContextOfAnotherDeviceIsRefused)
{
	mock.set_current_device(1);
	EXPECT_EQ(open_error(), ENXIO);
	EXPECT_TRUE(detail_has("context is of device 1")) << nda_error_detail();
}

TEST_F(Opening, OfADeviceThatIsNotThereIsRefused)
{
	EXPECT_EQ(open_error("ascend:7"), ENODEV);
	EXPECT_TRUE(detail_has("npu ascend:7: its logic id: ACL error 107001"))
		<< nda_error_detail();
}

TEST_F(Opening, WithHiddenDevicesNeedsTheRuntimeToTellWhichItIs)
{
	use_mocks(mock_directory("ascend-bare"));
	setenv("ASCEND_RT_VISIBLE_DEVICES", "3,2", 1);
	EXPECT_EQ(open_error(), EOPNOTSUPP);
	unsetenv("ASCEND_RT_VISIBLE_DEVICES");
	EXPECT_TRUE(detail_has("ASCEND_RT_VISIBLE_DEVICES")) << nda_error_detail();
}

TEST_F(Opening, AddsWhatTheRuntimeSaysOfItsError)
{
	mock.recent_error = "EE1001: the argument is invalid";
	mock.fail_call(1, "aclrtGetLogicDevIdByUserDevId", 107000);
	EXPECT_EQ(open_error(), EINVAL);
	EXPECT_TRUE(detail_has("EE1001: the argument is invalid")) << nda_error_detail();
}

TEST_F(Opening, FailsWithEachCallAndLeavesNothing)
{
	for (long n = 1;; n++) {
		mock.fail_call(n);
		nda_npu *npu = nda_npu_open("ascend:0", nullptr, 0);
		if (!mock.fired()) {
			ASSERT_NE(npu, nullptr) << nda_error_detail();
			EXPECT_EQ(nda_npu_close(npu), 0);
			EXPECT_EQ(n, 5) << "calls that opening makes, plus one";
			return;
		}
		EXPECT_EQ(npu, nullptr) << n;
		EXPECT_TRUE(detail_has("npu ascend:0: "))
			<< n << ": " << nda_error_detail();
		EXPECT_TRUE(detail_has("ACL error 500000"))
			<< n << ": " << nda_error_detail();
	}
}

TEST_F(Opening, TwiceGivesTwoNpusWithCallbacksOfTheirOwn)
{
	nda_npu *a = open(), *b = open();
	EXPECT_NE(nda_npu_ops(a), nda_npu_ops(b));
	void *mine = nda_npu_ops(a)->alloc(64);
	ASSERT_NE(mine, nullptr);
	EXPECT_EQ(nda_npu_free(b, address(mine)), -EINVAL) << "it is the other's";
	EXPECT_EQ(nda_npu_free(a, address(mine)), 0);
	EXPECT_EQ(nda_npu_close(a), 0);
	EXPECT_EQ(nda_npu_close(b), 0);
}

// ---- Memory --------------------------------------------------------------------------

TEST_F(Ascend, AllocatesHighBandwidthMemory)
{
	open_npu();
	const uint64_t addr = alloc(100);
	EXPECT_EQ(addr % 64, 0u);
	EXPECT_EQ(mock.calls().back(), "aclrtMalloc(100, 0x1000)");
	EXPECT_EQ(nda_npu_free(npu, addr), 0);
}

TEST_F(Ascend, AlignsToAPageWhatTheRuntimeAlignsTo64Bytes)
{
	open_npu();
	mock.misalign = 64;
	const uint64_t addr = alloc(4096);
	EXPECT_EQ(addr % 4096, 0u);
	EXPECT_EQ(nda_npu_memset(npu, addr, 1, 4096), 0) << nda_error_detail();
	EXPECT_EQ(nda_npu_free(npu, addr), 0);
}

TEST_F(Ascend, AllocatesNothingOfNoBytesOrOfTooMany)
{
	open_npu();
	uint64_t addr = 0;
	EXPECT_EQ(nda_npu_alloc(npu, 0, &addr), -EINVAL);
	EXPECT_EQ(nda_npu_alloc(npu, UINT64_MAX, &addr), -EINVAL);
	EXPECT_EQ(nda_npu_alloc(npu, 1ull << 40, &addr), -ENOMEM);
	EXPECT_TRUE(detail_has("alloc of 1099511627776 bytes: ACL error 207001"))
		<< nda_error_detail();
	EXPECT_EQ(addr, 0u);
}

TEST_F(Ascend, WritesAndReadsBytes)
{
	open_npu();
	const uint64_t addr = alloc(4096);
	char in[16] = "written by host", out[16] = {};
	EXPECT_EQ(nda_npu_write(npu, addr + 100, in, sizeof(in)), 0) << nda_error_detail();
	EXPECT_EQ(nda_npu_read(npu, out, addr + 100, sizeof(out)), 0) << nda_error_detail();
	EXPECT_STREQ(out, in);
	EXPECT_EQ(nda_npu_free(npu, addr), 0);
}

TEST_F(Ascend, SetsBytes)
{
	open_npu();
	const uint64_t addr = alloc(64);
	uint8_t out[64];
	EXPECT_EQ(nda_npu_memset(npu, addr, 0x5a, 64), 0) << nda_error_detail();
	mock.read(addr, out, sizeof(out));
	EXPECT_EQ(out[0], 0x5a);
	EXPECT_EQ(out[63], 0x5a);
	EXPECT_EQ(nda_npu_free(npu, addr), 0);
}

TEST_F(Ascend, MovesNothingWithoutACall)
{
	open_npu();
	const size_t before = mock.calls().size();
	EXPECT_EQ(nda_npu_write(npu, 0, nullptr, 0), 0);
	EXPECT_EQ(nda_npu_read(npu, nullptr, 0, 0), 0);
	EXPECT_EQ(nda_npu_memset(npu, 0, 0, 0), 0);
	EXPECT_EQ(mock.calls().size(), before);
}

TEST_F(Ascend, RefusesRangesThatLeaveTheirAllocation)
{
	open_npu();
	const uint64_t addr = alloc(4096);
	char bytes[64] = {};
	EXPECT_EQ(nda_npu_write(npu, addr + 4096 - 8, bytes, 16), -EFAULT);
	EXPECT_EQ(nda_npu_read(npu, bytes, addr - 8, 16), -EFAULT);
	EXPECT_EQ(nda_npu_memset(npu, addr, 0, UINT64_MAX), -EFAULT);
	EXPECT_EQ(nda_npu_write(npu, address(bytes), bytes, 1), -EFAULT) << "the host's";
	EXPECT_EQ(mock.count("aclrtMemcpy"), 0u);
	EXPECT_EQ(nda_npu_free(npu, addr), 0);
}

TEST_F(Ascend, ReachesMemoryThatOthersHaveAllocatedOnThisDevice)
{
	open_npu();
	const uint64_t addr = mock.alloc(8192);
	uint32_t in = 0x12345678, out = 0;
	EXPECT_EQ(nda_npu_write(npu, addr + 8188, &in, 4), 0) << nda_error_detail();
	EXPECT_EQ(nda_npu_read(npu, &out, addr + 8188, 4), 0) << nda_error_detail();
	EXPECT_EQ(out, in);
	EXPECT_EQ(nda_npu_write(npu, addr + 8189, &in, 4), -EFAULT);
	EXPECT_EQ(nda_npu_free(npu, addr), -EINVAL) << "but frees it not";
	mock.free(addr);
}

TEST_F(Ascend, RefusesMemoryOfAnotherDevice)
{
	open_npu();
	const uint64_t addr = mock.alloc(4096, 1);
	char byte = 0;
	EXPECT_EQ(nda_npu_write(npu, addr, &byte, 1), -EFAULT);
	EXPECT_TRUE(detail_has("not memory of this NPU")) << nda_error_detail();
	mock.free(addr);
}

TEST_F(Ascend, FreesOnce)
{
	open_npu();
	const uint64_t addr = alloc(64);
	EXPECT_EQ(nda_npu_free(npu, addr + 8), -EINVAL);
	EXPECT_EQ(nda_npu_free(npu, addr), 0);
	EXPECT_EQ(nda_npu_free(npu, addr), -EINVAL);
	EXPECT_TRUE(detail_has("nothing was allocated there")) << nda_error_detail();
	EXPECT_EQ(mock.count("aclrtFree"), 1u);
}

TEST_F(Ascend, FreesAgainWhatTheRuntimeRefusedToFree)
{
	open_npu();
	const uint64_t addr = alloc(64);
	mock.fail_call(1, "aclrtFree");
	EXPECT_EQ(nda_npu_free(npu, addr), -EIO);
	EXPECT_EQ(nda_npu_free(npu, addr), 0) << nda_error_detail();
}

TEST_F(Ascend, FreesWhatIsLeftWhenItIsClosed)
{
	open_npu();
	alloc(64);
	alloc(8192);
	EXPECT_EQ(nda_npu_close(npu), 0);
	npu = nullptr;
	EXPECT_EQ(mock.live(), 0u);
}

TEST_F(Ascend, ClosedWithoutAContextLeavesMemoryToTheRuntime)
{
	open_npu();
	const uint64_t addr = alloc(64);
	mock.set_current_device(-1);
	EXPECT_EQ(nda_npu_close(npu), 0);
	npu = nullptr;
	EXPECT_EQ(mock.count("aclrtFree"), 0u);
	EXPECT_EQ(mock.allocations.erase(addr), 1u);
}

TEST_F(Ascend, EveryCallWantsACurrentContextOfTheDevice)
{
	open_npu();
	const uint64_t addr = alloc(64);
	uint64_t more = 0;
	char bytes[8] = {};
	for (const int32_t device : {-1, 1}) {
		mock.set_current_device(device);
		EXPECT_EQ(nda_npu_alloc(npu, 64, &more), -ENXIO) << device;
		EXPECT_EQ(nda_npu_free(npu, addr), -ENXIO) << device;
		EXPECT_EQ(nda_npu_write(npu, addr, bytes, 8), -ENXIO) << device;
		EXPECT_EQ(nda_npu_read(npu, bytes, addr, 8), -ENXIO) << device;
		EXPECT_EQ(nda_npu_memset(npu, addr, 0, 8), -ENXIO) << device;
		EXPECT_EQ(nda_npu_launch_function(npu, bytes, nullptr, 0, 1), -ENXIO)
			<< device;
		EXPECT_EQ(nda_npu_wait(npu, 0), -ENXIO) << device;
		EXPECT_TRUE(detail_has("npu ascend:0: wait: ")) << nda_error_detail();
	}
	mock.set_current_device(0);
	EXPECT_EQ(nda_npu_free(npu, addr), 0);
}

TEST_F(Ascend, WorksInEachThreadThatHasAContext)
{
	open_npu();
	std::vector<std::thread> threads;
	std::atomic<int> failed{0};
	for (int t = 0; t < 4; t++)
		threads.emplace_back([&, t] {
			mock.set_current_device(0);
			for (int i = 0; i < 200; i++) {
				uint64_t addr = 0;
				uint32_t in = static_cast<uint32_t>(t * 1000 + i), out = 0;
				failed += nda_npu_alloc(npu, 4096, &addr) != 0;
				failed += nda_npu_write(npu, addr, &in, 4) != 0;
				failed += nda_npu_read(npu, &out, addr, 4) != 0;
				failed += out != in;
				failed += nda_npu_free(npu, addr) != 0;
			}
		});
	for (std::thread &thread : threads)
		thread.join();
	EXPECT_EQ(failed, 0);
}

TEST_F(Ascend, OfTwoThreadsThatFreeTheSameOneDoes)
{
	open_npu();
	for (int i = 0; i < 200; i++) {
		const uint64_t addr = alloc(64);
		std::atomic<int> freed{0}, refused{0};
		const auto free_it = [&] {
			mock.set_current_device(0);
			const int rc = nda_npu_free(npu, addr);
			freed += rc == 0;
			refused += rc == -EINVAL;
		};
		std::thread other(free_it);
		free_it();
		other.join();
		EXPECT_EQ(freed, 1);
		EXPECT_EQ(refused, 1);
	}
}

// ---- Host memory that is mapped to it -------------------------------------------------

class HostMemory : public Ascend {
protected:
	HostMemory() { open_npu(); }
	int alloc_host(uint64_t size)
	{
		return (*lookup(npu))->alloc_host(size, addr, host);
	}
	uint64_t page() const { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

	uint64_t addr = 0, host = 0;
};

TEST_F(HostMemory, IsWholePagesThatTheDriverMaps)
{
	ASSERT_EQ(alloc_host(page() + 1), 0) << nda_error_detail();
	const std::string size = std::to_string(2 * page());
	const std::vector<std::string> calls = mock.calls();
	EXPECT_EQ(calls[calls.size() - 2], "halHostRegisterCapabilities(0, 3)");
	EXPECT_EQ(calls.back(), "halHostRegister(+0, " + size + ", 0x0, 0)");
	EXPECT_EQ(host % page(), 0u);
	EXPECT_EQ(nda_npu_free(npu, addr), 0) << nda_error_detail();
	EXPECT_EQ(mock.calls().back(), "halHostUnregisterEx(+0, 0, 0x0)");
	EXPECT_EQ(mock.count("aclrtFree"), 0u);
	EXPECT_EQ(nda_npu_free(npu, addr), -EINVAL);
}

TEST_F(HostMemory, IsSeenByCoresAndTheHostAlike)
{
	ASSERT_EQ(alloc_host(page()), 0) << nda_error_detail();
	const auto *words = reinterpret_cast<const uint64_t *>(host);
	EXPECT_EQ(words[0], 0u) << "it begins as zeroes";
	mock.store(addr + 8, 0x1234);
	EXPECT_EQ(words[1], 0x1234u);
	uint64_t out = 0, in = 0x5678;
	EXPECT_EQ(nda_npu_read(npu, &out, addr + 8, 8), 0) << nda_error_detail();
	EXPECT_EQ(out, 0x1234u);
	EXPECT_EQ(nda_npu_write(npu, addr + 16, &in, 8), 0) << nda_error_detail();
	EXPECT_EQ(words[2], 0x5678u);
	EXPECT_EQ(nda_npu_memset(npu, addr + 16, 0xff, 4), 0) << nda_error_detail();
	EXPECT_EQ(words[2], 0xffffffffu);
	EXPECT_EQ(nda_npu_write(npu, addr + page() - 4, &in, 8), -EFAULT);
	EXPECT_EQ(nda_npu_read(npu, &out, addr - 4, 8), -EFAULT);
	EXPECT_EQ(nda_npu_free(npu, addr), 0);
}

TEST_F(HostMemory, IsCopiedFromAndTo)
{
	ASSERT_EQ(alloc_host(page()), 0) << nda_error_detail();
	const uint64_t device = alloc(64);
	const std::shared_ptr<Npu> &object = *lookup(npu);
	const auto *words = reinterpret_cast<const uint64_t *>(host);
	uint64_t value = 0x1234, out = 0;
	mock.write(device, &value, 8);
	EXPECT_EQ(object->copy(addr, device, 8), 0) << nda_error_detail();
	EXPECT_EQ(words[0], 0x1234u);
	EXPECT_EQ(object->copy(addr + 8, addr, 8), 0) << nda_error_detail();
	EXPECT_EQ(words[1], 0x1234u);
	EXPECT_EQ(object->copy(device + 8, addr + 8, 8), 0) << nda_error_detail();
	mock.read(device + 8, &out, 8);
	EXPECT_EQ(out, 0x1234u);
	EXPECT_EQ(nda_npu_free(npu, device), 0);
	EXPECT_EQ(nda_npu_free(npu, addr), 0);
}

TEST_F(HostMemory, ThatIsLeftGoesWithTheNpu)
{
	ASSERT_EQ(alloc_host(page()), 0) << nda_error_detail();
	EXPECT_EQ(nda_npu_close(npu), 0);
	npu = nullptr;
	EXPECT_EQ(mock.live(), 0u) << mock.live_text();
}

TEST_F(HostMemory, ThatTheDriverKeepsIsFreedAgain)
{
	ASSERT_EQ(alloc_host(page()), 0) << nda_error_detail();
	mock.fail_call(1, "halHostUnregisterEx", 13);
	EXPECT_EQ(nda_npu_free(npu, addr), -EBUSY);
	mock.store(addr, 1); // still there
	EXPECT_EQ(nda_npu_free(npu, addr), 0) << nda_error_detail();
}

TEST_F(HostMemory, ThatCannotBeHadIsRefusedWithTheCause)
{
	EXPECT_EQ(alloc_host(0), -EINVAL);
	EXPECT_EQ(alloc_host(UINT64_MAX), -EINVAL);
	EXPECT_EQ(alloc_host(1ull << 60), -ENOMEM);
	EXPECT_TRUE(detail_has("1152921504606846976 bytes of host memory"))
		<< nda_error_detail();
	mock.fail_call(1, "halHostRegister", 6);
	EXPECT_EQ(alloc_host(page()), -ENOMEM);
	EXPECT_TRUE(detail_has("of host memory: HAL error 6")) << nda_error_detail();
	mock.fail_call(0);
	mock.maps_to_nothing = true;
	EXPECT_EQ(alloc_host(page()), -EPROTO);
	mock.maps_to_nothing = false;
	mock.aiv_reaches_host = 0;
	EXPECT_EQ(alloc_host(page()), -EOPNOTSUPP);
	EXPECT_TRUE(detail_has("its vector cores do not reach host memory"))
		<< nda_error_detail();
	mock.set_current_device(-1);
	EXPECT_EQ(alloc_host(page()), -ENXIO);
	mock.set_current_device(0);
	EXPECT_EQ(addr, 0u);
	EXPECT_EQ(mock.live(), 0u) << mock.live_text();
}

// As a group registers its heap, of which cores and peers know the NPU's address.
TEST_F(HostMemory, IsRegisteredAsHostPagesUnderTheNpusAddress)
{
	const FakeVerbs verbs;
	const FakeKernel kernel;
	nda_nic *nic = nda_nic_open("rxe0", nullptr, 0);
	ASSERT_NE(nic, nullptr) << nda_error_detail();
	// What is at the NPU's own addresses no NIC takes.
	FakeVerbs::state().device_memory = {
		{mock.memory(), mock.memory_bytes}, {mock.next_npu_addr, 1 << 20}};
	NpuBuffer heap;
	ASSERT_EQ(heap.alloc_host(*lookup(npu), 2 * page()), 0) << nda_error_detail();
	std::shared_ptr<Mr> mr;
	EXPECT_EQ(Mr::create(*lookup(nic), *lookup(npu),
			  {heap.addr(), 2 * page(), heap.host(), nullptr},
			  NDA_ACCESS_LOCAL_WRITE, NDA_MR_ANY, mr),
		0)
		<< nda_error_detail();
	ASSERT_NE(mr, nullptr);
	EXPECT_EQ(mr->info().way, uint32_t(NDA_MR_HOST));
	const auto &mrs = FakeVerbs::state().plain_mrs;
	ASSERT_EQ(mrs.size(), 1u);
	EXPECT_EQ(mrs[0].addr, heap.host());
	EXPECT_EQ(mrs[0].iova, heap.addr());
	mr.reset();
	heap.reset();
	EXPECT_EQ(nda_nic_close(nic), 0);
}

// ---- Without what is optional --------------------------------------------------------

class BareAscend : public Ascend {
protected:
	BareAscend()
	{
		use_mocks(mock_directory("ascend-bare"));
		open_npu();
	}
};

TEST_F(BareAscend, TriesForeignMemoryThatNobodyCanTellOf)
{
	const uint64_t addr = mock.alloc(64);
	char byte = 1;
	EXPECT_EQ(nda_npu_write(npu, addr, &byte, 1), 0) << nda_error_detail();
	EXPECT_EQ(nda_npu_write(npu, addr + 64, &byte, 1), -EINVAL);
	EXPECT_TRUE(detail_has("ACL error 107000")) << nda_error_detail();
	mock.free(addr);
}

TEST_F(BareAscend, LaunchesNothingAndSaysWhatIsMissing)
{
	char function = 0;
	EXPECT_EQ(nda_npu_launch_function(npu, &function, nullptr, 0, 1), -EOPNOTSUPP);
	EXPECT_TRUE(detail_has("lacks aclrtLaunchKernelWithHostArgs"))
		<< nda_error_detail();
}

TEST_F(BareAscend, MapsNoUbDoorbell)
{
	doorbell_map_desc desc = {};
	desc.type = DOORBELL_MAP_MODE_UB_RES;
	desc.size = 8;
	errno = 0;
	EXPECT_EQ(ops->db_mmap(&desc), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT_TRUE(detail_has("a UB resource has no host address")) << nda_error_detail();
}

TEST_F(BareAscend, HasNoMemoryForANicOfItsOwnUb)
{
	errno = 0;
	EXPECT_EQ(nda_npu_ops_of(npu, NDA_DMA_INDEPENDENT)->alloc(64), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT_TRUE(detail_has("lacks drvMemGetAttribute")) << nda_error_detail();
}

// ---- Callbacks -----------------------------------------------------------------------

TEST_F(Ascend, CallbacksAllocateFillAndCopy)
{
	open_npu();
	void *a = ops->alloc(4096), *b = ops->alloc(4096);
	ASSERT_TRUE(a && b);
	char in[8] = "payload", out[8] = {};
	ops->memset_s(a, 0, 4096);
	EXPECT_EQ(ops->memcpy_s(a, 4096, in, 8, MEMCPY_DIRECTION_HOST_TO_DEVICE), 0);
	EXPECT_EQ(ops->memcpy_s(b, 4096, a, 4096, MEMCPY_DIRECTION_DEVICE_TO_DEVICE), 0);
	EXPECT_EQ(ops->memcpy_s(out, 8, b, 8, MEMCPY_DIRECTION_DEVICE_TO_HOST), 0);
	EXPECT_STREQ(out, "payload");
	memset(out, 0, sizeof(out));
	EXPECT_EQ(ops->memcpy_s(out, 8, in, 8, MEMCPY_DIRECTION_HOST_TO_HOST), 0);
	EXPECT_STREQ(out, "payload");
	EXPECT_EQ(ops->memcpy_s(out, 4, in, 8, MEMCPY_DIRECTION_HOST_TO_HOST), -EINVAL);
	EXPECT_EQ(ops->memcpy_s(out, 8, in, 8, 4), -EINVAL) << "a direction that is none";
	ops->free(a);
	ops->free(b);
	EXPECT_EQ(mock.live(), 0u);
}

TEST_F(Ascend, MemoryForANicOfItsOwnUbIsASegmentUntilItIsFreed)
{
	open_npu();
	const ibv_extend_ops *independent = nda_npu_ops_of(npu, NDA_DMA_INDEPENDENT);
	void *a = independent->alloc(100);
	ASSERT_NE(a, nullptr) << nda_error_detail();
	EXPECT_EQ(address(a) % 4096, 0u);
	EXPECT_EQ(mock.calls().back(), "halMemRegUbSegment(0, 4096)") << "whole pages";
	EXPECT_EQ(mock.segments.count(address(a)), 1u);
	independent->free(a);
	EXPECT_EQ(mock.live(), 0u) << mock.live_text();
}

TEST_F(Ascend, MemoryOfAnotherTypeNeedsToBeNoSegment)
{
	open_npu();
	mock.memory_type = 0x4;
	void *a = nda_npu_ops_of(npu, NDA_DMA_INDEPENDENT)->alloc(100);
	ASSERT_NE(a, nullptr) << nda_error_detail();
	EXPECT_EQ(mock.count("halMemRegUbSegment"), 0u);
	ops->free(a);
}

TEST_F(Ascend, SegmentThatCannotBeMadeLeavesNoMemory)
{
	open_npu();
	for (const char *name :
		{"aclrtMalloc", "drvMemGetAttribute", "halMemRegUbSegment"}) {
		mock.fail_call(1, name);
		errno = 0;
		EXPECT_EQ(nda_npu_ops_of(npu, NDA_DMA_INDEPENDENT)->alloc(100), nullptr);
		EXPECT_NE(errno, 0) << name;
		EXPECT_EQ(mock.live(), 0u) << name << ": " << mock.live_text();
	}
}

TEST_F(Ascend, SegmentIsEndedOnceThoughItsMemoryIsFreedTwice)
{
	open_npu();
	void *a = nda_npu_ops_of(npu, NDA_DMA_INDEPENDENT)->alloc(100);
	ASSERT_NE(a, nullptr) << nda_error_detail();
	mock.fail_call(1, "halMemUnRegUbSegment");
	EXPECT_EQ(nda_npu_free(npu, address(a)), -EIO);
	mock.fail_call(1, "aclrtFree");
	EXPECT_EQ(nda_npu_free(npu, address(a)), -EIO);
	EXPECT_EQ(nda_npu_free(npu, address(a)), 0) << nda_error_detail();
	EXPECT_EQ(mock.count("halMemUnRegUbSegment"), 2u);
}

TEST_F(Ascend, HasNoCallbacksForAModeThatIsNone)
{
	open_npu();
	EXPECT_EQ(nda_npu_ops_of(npu, NDA_DMA_PCIE), ops);
	EXPECT_NE(nda_npu_ops_of(npu, NDA_DMA_INDEPENDENT), ops);
	for (const uint32_t mode : {0u, 3u}) {
		errno = 0;
		EXPECT_EQ(nda_npu_ops_of(npu, mode), nullptr);
		EXPECT_EQ(errno, EINVAL);
	}
}

TEST_F(Ascend, IsRefusedByNicsOfTheSoftware)
{
	open_npu();
	nda_nic *nic = nda_nic_open("soft:hns1825", nullptr, 0);
	ASSERT_NE(nic, nullptr) << nda_error_detail();
	errno = 0;
	EXPECT_EQ(nda_channel_create(nic, npu, nullptr, 0), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT_TRUE(detail_has(
		"reaches the software NPU's memory only, not that of npu ascend:0"))
		<< nda_error_detail();
	EXPECT_EQ(nda_nic_close(nic), 0);
}

// ---- Kernels -------------------------------------------------------------------------

TEST_F(Ascend, RunsNoFunctionOfTheHost)
{
	open_npu();
	EXPECT_EQ(nda_npu_launch(
			  npu, [](const nda_core *, void *) {}, nullptr, 1),
		-EOPNOTSUPP);
	EXPECT_TRUE(detail_has("nda_npu_launch_function")) << nda_error_detail();
}

TEST_F(Ascend, LaunchesAFunctionWithItsArguments)
{
	open_npu();
	const uint64_t args[2] = {0x1111, 0x2222};
	EXPECT_EQ(nda_npu_launch_function(npu, pointer(0x7000), args, sizeof(args), 8), 0)
		<< nda_error_detail();
	EXPECT_EQ(mock.calls().back(), "aclrtLaunchKernelWithHostArgs(0x7000, 8, 16, 0)");
	EXPECT_EQ(memcmp(mock.kernel_args.data(), args, sizeof(args)), 0);
	EXPECT_EQ(nda_npu_wait(npu, -1), 0) << nda_error_detail();
}

TEST_F(Ascend, RunsOneKernelAtATime)
{
	open_npu();
	mock.kernel_waits = 2;
	EXPECT_EQ(nda_npu_launch_function(npu, pointer(0x7000), nullptr, 0, 1), 0);
	EXPECT_EQ(nda_npu_launch_function(npu, pointer(0x7000), nullptr, 0, 1), -EBUSY);
	EXPECT_EQ(nda_npu_wait(npu, 0), -ETIMEDOUT);
	EXPECT_EQ(nda_npu_close(npu), -EBUSY);
	EXPECT_EQ(nda_npu_wait(npu, 5), 0) << nda_error_detail();
	EXPECT_EQ(nda_npu_wait(npu, 5), -EINVAL) << "nothing is left to wait for";
}

TEST_F(Ascend, EndThatALookHasSeenIsStillThereToBeWaitedFor)
{
	open_npu();
	EXPECT_EQ(nda_npu_launch_function(npu, pointer(0x7000), nullptr, 0, 1), 0);
	mock.set_current_device(-1);
	EXPECT_EQ(nda_npu_close(npu), -EBUSY) << "nobody can look";
	mock.set_current_device(0);
	EXPECT_EQ(nda_npu_wait(npu, 0), 0);
}

TEST_F(Ascend, KernelThatFailedHasEnded)
{
	open_npu();
	mock.kernel_waits = -507035;
	EXPECT_EQ(nda_npu_launch_function(npu, pointer(0x7000), nullptr, 0, 1), 0);
	EXPECT_EQ(nda_npu_wait(npu, -1), -EIO);
	EXPECT_TRUE(detail_has("ACL error 507035, exception of a vector core"))
		<< nda_error_detail();
	mock.kernel_waits = 0;
	EXPECT_EQ(nda_npu_launch_function(npu, pointer(0x7000), nullptr, 0, 1), 0);
	EXPECT_EQ(nda_npu_wait(npu, -1), 0);
}

TEST_F(Ascend, KernelWhoseWaitFailedCountsAsRunning)
{
	open_npu();
	EXPECT_EQ(nda_npu_launch_function(npu, pointer(0x7000), nullptr, 0, 1), 0);
	mock.fail_call(1, "aclrtSynchronizeStreamWithTimeout");
	EXPECT_EQ(nda_npu_wait(npu, 5), -EIO);
	mock.fail_call(1, "aclrtSynchronizeStreamWithTimeout");
	EXPECT_EQ(nda_npu_close(npu), -EBUSY);
	EXPECT_EQ(nda_npu_wait(npu, 5), 0) << nda_error_detail();
}

// Another thread waits for the kernel and launches the next, while this one is about to
// learn of the first one's end.
class NextLaunch : public Ascend {
protected:
	NextLaunch()
	{
		open_npu();
		EXPECT_EQ(launch(), 0) << nda_error_detail();
		mock.on_end = [this] {
			std::thread([this] {
				mock.set_current_device(0);
				EXPECT_EQ(nda_npu_wait(npu, -1), 0) << nda_error_detail();
				mock.kernel_waits = 3;
				EXPECT_EQ(launch(), 0) << nda_error_detail();
			}).join();
		};
	}
	int launch()
	{
		return nda_npu_launch_function(npu, pointer(0x7000), nullptr, 0, 1);
	}
};

TEST_F(NextLaunch, IsNotTakenForOverByAWaitForTheOneBefore)
{
	EXPECT_EQ(nda_npu_wait(npu, -1), 0) << nda_error_detail();
	EXPECT_EQ(nda_npu_wait(npu, 0), -ETIMEDOUT);
	EXPECT_EQ(launch(), -EBUSY);
	EXPECT_EQ(nda_npu_wait(npu, -1), 0) << nda_error_detail();
}

TEST_F(NextLaunch, IsNotTakenForOverByALookAtTheOneBefore)
{
	const int rc = nda_npu_close(npu);
	EXPECT_EQ(rc, -EBUSY);
	if (!rc)
		npu = nullptr;
	ASSERT_NE(npu, nullptr);
	EXPECT_EQ(nda_npu_wait(npu, 0), -ETIMEDOUT);
	EXPECT_EQ(nda_npu_wait(npu, -1), 0) << nda_error_detail();
}

TEST_F(Ascend, LaunchFailsWithEachCallAndIsNoLaunch)
{
	open_npu();
	for (const char *name : {"aclrtCreateStream", "aclrtLaunchKernelWithHostArgs"}) {
		mock.fail_call(1, name);
		EXPECT_EQ(
			nda_npu_launch_function(npu, pointer(0x7000), nullptr, 0, 1), -EIO);
		EXPECT_EQ(nda_npu_wait(npu, 0), -EINVAL) << name;
	}
}

TEST_F(Ascend, LaunchRefusesWrongArguments)
{
	open_npu();
	EXPECT_EQ(nda_npu_launch_function(npu, nullptr, nullptr, 0, 1), -EINVAL);
	EXPECT_EQ(nda_npu_launch_function(npu, pointer(0x7000), nullptr, 8, 1), -EINVAL);
	EXPECT_EQ(nda_npu_launch_function(npu, pointer(0x7000), nullptr, 0, 0), -EINVAL);
	EXPECT_EQ(
		nda_npu_launch_function(npu, pointer(0x7000), nullptr, 0, 65536), -EINVAL);
}

// ---- Doorbells: host addresses -------------------------------------------------------

uint64_t page_size()
{
	return static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Pages that stand for a BAR's.
class Bar {
public:
	explicit Bar(uint64_t pages)
		: size_(pages * page_size()),
		  at_(mmap(nullptr, size_, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0))
	{
		EXPECT_NE(at_, MAP_FAILED);
	}
	~Bar() { munmap(at_, size_); }
	doorbell_map_desc desc(uint64_t offset, uint64_t size = 8) const
	{
		doorbell_map_desc d = {};
		d.type = DOORBELL_MAP_MODE_HOST_VA;
		d.hva = address(at_) + offset;
		d.size = size;
		return d;
	}
	uint64_t word(uint64_t offset) const
	{
		return __atomic_load_n(reinterpret_cast<uint64_t *>(address(at_) + offset),
			__ATOMIC_ACQUIRE);
	}

private:
	const uint64_t size_;
	void *const at_;
};

class Doorbells : public Ascend {
protected:
	uint64_t map(doorbell_map_desc desc)
	{
		void *mapped = ops->db_mmap(&desc);
		EXPECT_NE(mapped, nullptr) << nda_error_detail();
		return address(mapped);
	}
	int map_error(doorbell_map_desc desc)
	{
		errno = 0;
		EXPECT_EQ(ops->db_mmap(&desc), nullptr);
		return errno;
	}
	int unmap(uint64_t addr, doorbell_map_desc desc)
	{
		return ops->db_unmap(pointer(addr), &desc);
	}
};

TEST_F(Doorbells, AreMappedByThePageWithTheirOffset)
{
	open_npu();
	const Bar bar(1);
	const uint64_t addr = map(bar.desc(0x808));
	EXPECT_EQ(addr % page_size(), 0x808u);
	const std::vector<std::string> calls = mock.calls();
	ASSERT_GE(calls.size(), 3u);
	EXPECT_EQ(calls[calls.size() - 3], "halGetDeviceInfo(0, 0, 40)");
	EXPECT_EQ(calls[calls.size() - 2], "halHostRegisterCapabilities(0, 3)");
	EXPECT_EQ(calls[calls.size() - 1],
		"halHostRegister(+0, " + std::to_string(page_size()) + ", 0x6, 0)");
	mock.store(addr, 77);
	EXPECT_EQ(bar.word(0x808), 77u);
	EXPECT_EQ(unmap(addr, bar.desc(0x808)), 0);
	EXPECT_EQ(mock.calls().back(), "halHostUnregisterEx(+0, 0, 0x6)");
}

TEST_F(Doorbells, AreTheDriversByTheLogicId)
{
	mock.logic_ids[0] = 3;
	open_npu();
	const Bar bar(1);
	const uint64_t addr = map(bar.desc(0));
	EXPECT_EQ(mock.calls().back(),
		"halHostRegister(+0, " + std::to_string(page_size()) + ", 0x6, 3)");
	EXPECT_EQ(unmap(addr, bar.desc(0)), 0);
}

TEST_F(Doorbells, SameDescriptorHasTheSameAddressAndIsCounted)
{
	open_npu();
	const Bar bar(1);
	const uint64_t addr = map(bar.desc(8));
	EXPECT_EQ(map(bar.desc(8)), addr);
	EXPECT_EQ(mock.count("halHostRegister"), 1u);
	EXPECT_EQ(unmap(addr, bar.desc(8)), 0);
	EXPECT_EQ(mock.registrations.size(), 1u);
	EXPECT_EQ(unmap(addr, bar.desc(8)), 0);
	EXPECT_EQ(mock.registrations.size(), 0u);
	EXPECT_EQ(unmap(addr, bar.desc(8)), -EINVAL);
}

TEST_F(Doorbells, OfOnePageAreMappedOnce)
{
	open_npu();
	const Bar bar(1);
	const uint64_t a = map(bar.desc(0)), b = map(bar.desc(0x100));
	EXPECT_EQ(b - a, 0x100u);
	EXPECT_EQ(mock.count("halHostRegister"), 1u);
	EXPECT_EQ(unmap(a, bar.desc(0)), 0);
	EXPECT_EQ(mock.registrations.size(), 1u);
	EXPECT_EQ(unmap(b, bar.desc(0x100)), 0);
}

TEST_F(Doorbells, ThatCrossAPageTakeBothPages)
{
	open_npu();
	const Bar bar(2);
	const doorbell_map_desc desc = bar.desc(page_size() - 8, 16);
	const uint64_t addr = map(desc);
	EXPECT_EQ(mock.calls().back(),
		"halHostRegister(+0, " + std::to_string(2 * page_size()) + ", 0x6, 0)");
	EXPECT_EQ(unmap(addr, desc), 0);
}

TEST_F(Doorbells, AreUnmappedByTheirOwnDescriptorAlone)
{
	open_npu();
	const Bar bar(1);
	const uint64_t addr = map(bar.desc(8));
	EXPECT_EQ(unmap(addr, bar.desc(16)), -EINVAL);
	EXPECT_EQ(unmap(addr, bar.desc(8, 16)), -EINVAL);
	EXPECT_EQ(unmap(addr + 8, bar.desc(8)), -EINVAL);
	EXPECT_TRUE(detail_has("is not mapped by this descriptor")) << nda_error_detail();
	EXPECT_EQ(ops->db_unmap(pointer(addr), nullptr), -EINVAL);
	EXPECT_EQ(unmap(addr, bar.desc(8)), 0);
}

TEST_F(Doorbells, ThatAreNoneAreRefused)
{
	open_npu();
	const Bar bar(1);
	EXPECT_EQ(map_error(bar.desc(0, 0)), EINVAL);
	doorbell_map_desc desc = bar.desc(0);
	desc.hva = 0;
	EXPECT_EQ(map_error(desc), EINVAL);
	desc.hva = UINT64_MAX - 4;
	EXPECT_EQ(map_error(desc), EINVAL);
	desc = bar.desc(0);
	desc.type = 2;
	EXPECT_EQ(map_error(desc), EINVAL);
	errno = 0;
	EXPECT_EQ(ops->db_mmap(nullptr), nullptr);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(mock.count("halHostRegister"), 0u);
}

TEST_F(Doorbells, FailWithEachCallAndLeaveNothing)
{
	open_npu(NDA_NPU_DOORBELL_MAP);
	const Bar bar(1);
	for (const char *name :
		{"halGetDeviceInfo", "halHostRegisterCapabilities", "halHostRegister"}) {
		mock.fail_call(1, name, 14);
		EXPECT_EQ(map_error(bar.desc(0)), ENOSPC) << name;
		EXPECT_TRUE(detail_has("HAL error 14, out of resources"))
			<< nda_error_detail();
		EXPECT_EQ(mock.live(), 0u) << name;
	}
}

TEST_F(Doorbells, MappedToAddress0AreTakenBack)
{
	open_npu();
	const Bar bar(1);
	mock.maps_to_nothing = true;
	EXPECT_EQ(map_error(bar.desc(0)), EPROTO);
	EXPECT_EQ(mock.live(), 0u);
}

TEST_F(Doorbells, ThatAnotherUserHasMappedSayWhy)
{
	open_npu();
	const Bar bar(1);
	nda_npu *other = open();
	doorbell_map_desc desc = bar.desc(0);
	void *theirs = nda_npu_ops(other)->db_mmap(&desc);
	ASSERT_NE(theirs, nullptr);
	EXPECT_EQ(map_error(bar.desc(8)), EEXIST);
	EXPECT_TRUE(detail_has("HAL error 12, it is registered already"))
		<< nda_error_detail();
	EXPECT_EQ(nda_npu_ops(other)->db_unmap(theirs, &desc), 0);
	EXPECT_EQ(nda_npu_close(other), 0);
}

TEST_F(Doorbells, ThatTheDriverDidNotUnmapAreUnmappedAgain)
{
	open_npu();
	const Bar bar(1);
	const uint64_t addr = map(bar.desc(0));
	mock.fail_call(1, "halHostUnregisterEx", 13);
	EXPECT_EQ(unmap(addr, bar.desc(0)), -EBUSY);
	EXPECT_EQ(map(bar.desc(0)), addr) << "it is mapped still";
	EXPECT_EQ(unmap(addr, bar.desc(0)), 0);
	EXPECT_EQ(unmap(addr, bar.desc(0)), 0) << nda_error_detail();
}

TEST_F(Doorbells, LeftBehindGoWithTheNpu)
{
	open_npu();
	const Bar bar(1);
	map(bar.desc(0));
	EXPECT_EQ(nda_npu_close(npu), 0);
	npu = nullptr;
	EXPECT_EQ(mock.live(), 0u);
}

TEST_F(Doorbells, NeedNoContext)
{
	open_npu();
	const Bar bar(1);
	mock.set_current_device(-1);
	const uint64_t addr = map(bar.desc(0));
	EXPECT_EQ(unmap(addr, bar.desc(0)), 0);
	mock.set_current_device(0);
}

TEST_F(Doorbells, OfThreadsAreCountedTogether)
{
	open_npu();
	const Bar bar(4);
	std::vector<std::thread> threads;
	std::atomic<int> failed{0};
	for (int t = 0; t < 4; t++)
		threads.emplace_back([&, t] {
			for (uint64_t i = 0; i < 200; i++) {
				doorbell_map_desc desc = bar.desc(
					(i + static_cast<uint64_t>(t)) % 4 * page_size());
				void *mapped = ops->db_mmap(&desc);
				failed += mapped == nullptr;
				failed += ops->db_unmap(mapped, &desc) != 0;
			}
		});
	for (std::thread &thread : threads)
		thread.join();
	EXPECT_EQ(failed, 0);
	EXPECT_EQ(mock.live(), 0u);
}

// ---- Doorbells: proxied --------------------------------------------------------------

TEST_F(Doorbells, OfAnNpuOnHccsAreProxiedThroughHostMemory)
{
	mock.connect_type = 1;
	open_npu();
	const Bar bar(1);
	const uint64_t slot = map(bar.desc(0x40));
	EXPECT_EQ(slot % 64, 0u);
	EXPECT_EQ(mock.calls().back(),
		"halHostRegister(+0, " + std::to_string(page_size()) + ", 0x0, 0)");
	mock.store(slot, 0x1234567890abcdef);
	EXPECT_TRUE(eventually([&] { return bar.word(0x40) == 0x1234567890abcdef; }));
	EXPECT_EQ(unmap(slot, bar.desc(0x40)), 0);
	EXPECT_EQ(nda_npu_close(npu), 0);
	npu = nullptr;
	EXPECT_EQ(mock.live(), 0u) << mock.live_text();
}

// Nothing kicks it: long after it last had work it must still look.
TEST_F(Doorbells, AreSeenAfterTheProxyHasGoneToSleep)
{
	open_npu(NDA_NPU_DOORBELL_PROXY);
	const Bar bar(1);
	const uint64_t slot = map(bar.desc(0));
	for (uint64_t v = 1; v <= 5; v++) {
		std::this_thread::sleep_for(std::chrono::milliseconds(2));
		mock.store(slot, v);
		EXPECT_TRUE(eventually([&] { return bar.word(0) == v; }));
	}
	EXPECT_EQ(unmap(slot, bar.desc(0)), 0);
}

TEST_F(Doorbells, SlotsOfOnePageAreApart)
{
	open_npu(NDA_NPU_DOORBELL_PROXY);
	const Bar bar(1);
	uint64_t slots[3];
	for (uint64_t i = 0; i < 3; i++)
		slots[i] = map(bar.desc(i * 8));
	EXPECT_EQ(mock.count("halHostRegister"), 1u);
	for (uint64_t i = 0; i < 3; i++)
		mock.store(slots[i], 100 + i);
	for (uint64_t i = 0; i < 3; i++)
		EXPECT_TRUE(eventually([&] { return bar.word(i * 8) == 100 + i; }));
	for (uint64_t i = 0; i < 3; i++)
		EXPECT_EQ(unmap(slots[i], bar.desc(i * 8)), 0);
}

TEST_F(Doorbells, OfAnNpuOnHccsAreRefusedWhereTheyMustBeMapped)
{
	mock.connect_type = 1;
	open_npu(NDA_NPU_DOORBELL_MAP);
	const Bar bar(1);
	EXPECT_EQ(map_error(bar.desc(0)), EOPNOTSUPP);
	EXPECT_TRUE(detail_has("attached by HCCS")) << nda_error_detail();
	EXPECT_EQ(mock.count("halHostRegister"), 0u) << "refused before the driver does";
}

TEST_F(Doorbells, ThatVectorCoresDoNotReachAreNeitherMappedNorProxied)
{
	mock.aiv_reaches_host = 0;
	open_npu();
	const Bar bar(1);
	EXPECT_EQ(map_error(bar.desc(0)), EOPNOTSUPP);
	EXPECT_TRUE(detail_has("its vector cores do not reach host memory"))
		<< nda_error_detail();
	EXPECT_EQ(mock.live(), 0u);
}

TEST_F(Doorbells, ProxiedFailWithEachCallAndLeaveNothing)
{
	open_npu(NDA_NPU_DOORBELL_PROXY);
	const Bar bar(1);
	for (const char *name : {"halHostRegisterCapabilities", "halHostRegister"}) {
		mock.fail_call(1, name, 6);
		EXPECT_EQ(map_error(bar.desc(0)), ENOMEM) << name;
		EXPECT_EQ(mock.live(), 0u) << name;
	}
	mock.maps_to_nothing = true;
	EXPECT_EQ(map_error(bar.desc(0)), EPROTO);
}

// ---- Doorbells: UB resources ---------------------------------------------------------

doorbell_map_desc ub_desc(uint64_t guid, uint64_t offset, uint64_t size = 8)
{
	doorbell_map_desc d = {};
	d.type = DOORBELL_MAP_MODE_UB_RES;
	d.ub_res.guid_l = guid;
	d.ub_res.guid_h = 0xabc;
	d.ub_res.bits.offset = static_cast<uint32_t>(offset);
	d.size = size;
	return d;
}

TEST_F(Doorbells, OfUbAreNamedByPageAndController)
{
	open_npu();
	const uint64_t addr = map(ub_desc(0x1001, 0x3018));
	EXPECT_EQ(mock.calls().back(), "halResAddrMapV2(0, 0x3)");
	EXPECT_EQ(addr % 4096, 0x18u);
	ASSERT_EQ(mock.resources.size(), 1u);
	const MockAscend::Resource r = mock.resources.begin()->second;
	EXPECT_EQ(r.guid_low, 0x1001u);
	EXPECT_EQ(r.guid_high, 0xabcu);
	EXPECT_EQ(r.page, 3u);
	EXPECT_EQ(addr, r.npu_addr + 0x18);
	EXPECT_EQ(unmap(addr, ub_desc(0x1001, 0x3018)), 0);
	EXPECT_EQ(mock.live(), 0u);
}

TEST_F(Doorbells, OfUbArePartedByController)
{
	open_npu();
	const uint64_t a = map(ub_desc(1, 0x3000)), b = map(ub_desc(2, 0x3000));
	EXPECT_EQ(mock.calls().back(), "halResAddrMapV2(0, 0x1003)");
	EXPECT_NE(a, b);
	EXPECT_EQ(unmap(a, ub_desc(1, 0x3000)), 0);
	const uint64_t c = map(ub_desc(3, 0x3000));
	EXPECT_EQ(mock.calls().back(), "halResAddrMapV2(0, 0x3)")
		<< "an index is used again";
	EXPECT_EQ(unmap(b, ub_desc(2, 0x3000)), 0);
	EXPECT_EQ(unmap(c, ub_desc(3, 0x3000)), 0);
}

TEST_F(Doorbells, OfUbInOnePageAreMappedOnce)
{
	open_npu();
	const uint64_t a = map(ub_desc(1, 0x3000)), b = map(ub_desc(1, 0x3040));
	EXPECT_EQ(b - a, 0x40u);
	EXPECT_EQ(map(ub_desc(1, 0x3040)), b);
	EXPECT_EQ(mock.count("halResAddrMapV2"), 1u);
	EXPECT_EQ(unmap(b, ub_desc(1, 0x3040)), 0);
	EXPECT_EQ(unmap(b, ub_desc(1, 0x3040)), 0);
	EXPECT_EQ(unmap(a, ub_desc(1, 0x3000)), 0);
	EXPECT_EQ(mock.count("halResAddrUnmapV2"), 1u);
}

TEST_F(Doorbells, OfUbThatCannotBeNamedAreRefused)
{
	open_npu();
	EXPECT_EQ(map_error(ub_desc(1, 0x1000000)), EINVAL);
	EXPECT_TRUE(detail_has("beyond page 4095")) << nda_error_detail();
	EXPECT_EQ(map_error(ub_desc(1, 0x3ffc)), EINVAL);
	EXPECT_EQ(map_error(ub_desc(1, 0x3000, 0)), EINVAL);
	EXPECT_EQ(mock.count("halResAddrMapV2"), 0u);
}

TEST_F(Doorbells, OfUbThatTheDriverRefusesLeaveNothing)
{
	open_npu();
	mock.fail_call(1, "halResAddrMapV2", 46);
	EXPECT_EQ(map_error(ub_desc(1, 0x3000)), EPERM);
	mock.fail_call(1, "halResAddrMapV2", 44);
	EXPECT_EQ(map_error(ub_desc(1, 0x3000)), ESRCH);
	mock.fail_call(0);
	mock.maps_to_nothing = true;
	EXPECT_EQ(map_error(ub_desc(1, 0x3000)), EPROTO);
	EXPECT_EQ(mock.live(), 0u);
}

TEST_F(Doorbells, OfUbAreNotProxied)
{
	open_npu(NDA_NPU_DOORBELL_PROXY);
	EXPECT_EQ(map_error(ub_desc(1, 0x3000)), EOPNOTSUPP);
	EXPECT_TRUE(detail_has("a UB resource has no host address")) << nda_error_detail();
}

} // namespace
} // namespace nda::test
