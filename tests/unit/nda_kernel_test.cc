// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The client of /dev/nda, over a kernel that is all in the mind of tests/mock/nda_kernel.h.
#include "lib/nda/kernel.h"

#include <cstring>
#include <fcntl.h>
#include <sys/wait.h>

#include "lib/nda/error.h"
#include "tests/mock/nda_kernel.h"

namespace nda::test {
namespace {

constexpr uint64_t base = 0x200000000000;
constexpr nda_ioc_bdf nic_device = {0, 0x3b, 0, 0}, npu_device = {0, 0x81, 8, 0};

FakeKernel::State &module()
{
	return FakeKernel::state();
}

class KernelClient : public testing::Test {
protected:
	FakeKernel fake;
};

TEST_F(KernelClient, HasWhatTheModuleOffers)
{
	const auto kernel = Kernel::open();
	ASSERT_TRUE(kernel->usable()) << kernel->why();
	EXPECT_TRUE(kernel->has(NDA_FEATURE_EXPORT));
	EXPECT_TRUE(kernel->has(NDA_FEATURE_EXPORT | NDA_FEATURE_HOST_PIN));
	EXPECT_FALSE(kernel->has(NDA_FEATURE_EXPORT | NDA_FEATURE_SINK_REMAP));
}

struct Absence {
	int open_error;
	uint64_t abi;
	int code;
	const char *why;
};

class AbsentKernel : public testing::TestWithParam<Absence> {
protected:
	FakeKernel fake;
};

TEST_P(AbsentKernel, IsNoErrorAndSaysWhy)
{
	module().open_error = GetParam().open_error;
	module().abi = GetParam().abi;
	clear_error_detail();
	const auto kernel = Kernel::open();
	EXPECT_FALSE(kernel->usable());
	EXPECT_EQ(kernel->code(), GetParam().code);
	EXPECT_EQ(kernel->why(), GetParam().why);
	EXPECT_FALSE(kernel->has(NDA_FEATURE_EXPORT));
	EXPECT_STREQ(error_detail(), "") << "not asked for, so not failed";
	EXPECT_FALSE(kernel->part(NDA_PART_PEERMEM).known);
	EXPECT_EQ(kernel->part(NDA_PART_PEERMEM).why, GetParam().why);
	KernelExport out;
	EXPECT_EQ(kernel->export_memory(base, 4096, 0, out), GetParam().code);
	EXPECT_EQ(error_detail(), std::string("export as dma-buf: ") + GetParam().why);
	EXPECT_FALSE(out.object);
}

INSTANTIATE_TEST_SUITE_P(All, AbsentKernel,
	testing::Values(Absence{ENOENT, NDA_ABI_VERSION, -ENOENT,
				"/dev/nda: No such file or directory (module nda is not "
				"loaded)"},
		Absence{ENXIO, NDA_ABI_VERSION, -ENXIO,
			"/dev/nda: No such device or address (module nda is not loaded)"},
		Absence{EACCES, NDA_ABI_VERSION, -EACCES, "/dev/nda: Permission denied"},
		Absence{EMFILE, NDA_ABI_VERSION, -EMFILE, "/dev/nda: Too many open files"},
		Absence{0, 2u << 16 | 3, -EPROTONOSUPPORT,
			"/dev/nda: module nda has version 2.3 of the interface, this "
			"library 1.0"},
		Absence{0, 7, -EPROTONOSUPPORT,
			"/dev/nda: module nda has version 0.7 of the interface, this "
			"library 1.0"}));

TEST_F(KernelClient, TakesAnotherMinorVersion)
{
	module().abi = 1u << 16 | 9;
	EXPECT_TRUE(Kernel::open()->usable());
}

TEST_F(KernelClient, NamesTheModuleOfAPartThatIsMissing)
{
	const auto kernel = Kernel::open();
	EXPECT_TRUE(kernel->part(NDA_PART_SOFT).usable);
	struct {
		uint32_t part;
		uint64_t why;
		const char *text;
	} const cases[] = {
		{NDA_PART_ASCEND, NDA_WHY_NOT_LOADED, "module nda_ascend is not loaded"},
		{NDA_PART_ASCEND, NDA_WHY_NO_DRIVER,
			"nda_ascend: the NPU's driver is not loaded, or lacks functions "
			"that it "
			"needs"},
		{NDA_PART_ASCEND, NDA_WHY_MISMATCH,
			"nda_ascend: the NPU's driver has another version of its "
			"interface"},
		{NDA_PART_SOFT, NDA_WHY_NOT_LOADED, "module nda_soft is not loaded"},
		{NDA_PART_PEERMEM, NDA_WHY_NOT_LOADED, "module nda_peermem is not loaded"},
		{NDA_PART_PEERMEM, NDA_WHY_NO_PEER_API,
			"nda_peermem: the kernel's RDMA core has no interface for peer "
			"memory"},
		{NDA_PART_PEERMEM_QUEUES, NDA_WHY_NO_PINNING,
			"nda_peermem: the NPU's driver cannot keep memory from being "
			"freed"},
		{NDA_PART_PEERMEM, 99, "nda_peermem: cannot be used, for reason 99"},
	};
	for (const auto &c : cases) {
		module().why[c.part] = c.why;
		const Kernel::Part part = kernel->part(c.part);
		EXPECT_TRUE(part.known);
		EXPECT_FALSE(part.usable);
		EXPECT_EQ(part.reason, c.why);
		EXPECT_EQ(part.why, c.text);
	}
	EXPECT_FALSE(kernel->part(NDA_PARTS).known);
	EXPECT_FALSE(kernel->part(NDA_PARTS).usable);
}

TEST_F(KernelClient, PinsHostMemoryUntilTheObjectGoes)
{
	const auto kernel = Kernel::open();
	{
		KernelObject pin;
		ASSERT_EQ(kernel->pin_host(base, 1, nic_device, NDA_ACCESS_READ, pin), 0);
		EXPECT_EQ(module().objects.size(), 1u);
	}
	EXPECT_TRUE(module().objects.empty());
}

TEST_F(KernelClient, ExportsWithTheOffsetOfAnInteriorAddress)
{
	module().npu_memory = {{base, 1 << 20}};
	const auto kernel = Kernel::open();
	const uint64_t page = host_page_bytes();
	for (const uint64_t offset :
		{uint64_t{0}, uint64_t{1}, page - 1, page, uint64_t{65537}}) {
		KernelExport out;
		ASSERT_EQ(kernel->export_memory(base + offset, 100, 0, out), 0)
			<< error_detail();
		const FakeKernel::Range *range = FakeKernel::dmabuf_of(out.fd.get());
		ASSERT_NE(range, nullptr);
		EXPECT_EQ(range->va + out.offset, base + offset);
		EXPECT_EQ(out.page_size, 2u << 20);
		EXPECT_EQ(module().objects.size(), 1u);
	}
	EXPECT_TRUE(module().objects.empty());
}

TEST_F(KernelClient, SaysWhyMemoryCannotBeExported)
{
	const auto kernel = Kernel::open();
	KernelExport out;
	EXPECT_EQ(kernel->export_memory(base, 4096, 0, out), -EOPNOTSUPP);
	EXPECT_STREQ(error_detail(),
		"/dev/nda: export 0x200000000000, 4096 bytes, as dma-buf: it is no memory "
		"of "
		"an NPU that the kernel knows, or of a kind that cannot be exported "
		"(module "
		"nda_ascend is not loaded)");
	module().npu_memory = {{base, 4096}};
	module().refused[_IOC_NR(NDA_IOC_EXPORT)] = ECANCELED;
	EXPECT_EQ(kernel->export_memory(base, 4096, 0, out), -ECANCELED);
	EXPECT_NE(strstr(error_detail(), "it was freed meanwhile"), nullptr);
	module().refused.clear();
	EXPECT_EQ(kernel->export_memory(base, 4096, 1 << 9, out), -EINVAL);
	EXPECT_FALSE(out.fd);
}

TEST_F(KernelClient, IsToldHowManyObjectsItMayHave)
{
	module().npu_memory = {{base, 4096}};
	module().max_objects = 1;
	const auto kernel = Kernel::open();
	KernelExport first, second;
	EXPECT_EQ(kernel->export_memory(base, 4096, 0, first), 0);
	EXPECT_EQ(kernel->export_memory(base, 4096, 0, second), -EDQUOT);
	EXPECT_NE(strstr(error_detail(), "too many objects of this process"), nullptr)
		<< error_detail();
	first = {};
	EXPECT_EQ(kernel->export_memory(base, 4096, 0, second), 0);
}

TEST_F(KernelClient, SaysWhyHostMemoryCannotBePinned)
{
	const auto kernel = Kernel::open();
	KernelObject pin;
	struct {
		int error;
		const char *text;
	} const cases[] = {{ENOMEM, "RLIMIT_MEMLOCK"}, {EOPNOTSUPP, "Ascend runtime"},
		{EACCES, "Permission denied"}, {EDQUOT, "too many objects"}};
	for (const auto &c : cases) {
		module().refused[_IOC_NR(NDA_IOC_HOST_PIN)] = c.error;
		EXPECT_EQ(kernel->pin_host(base, 1, nic_device, NDA_ACCESS_READ, pin),
			-c.error);
		EXPECT_NE(strstr(error_detail(), c.text), nullptr) << error_detail();
		EXPECT_NE(strstr(error_detail(), "0000:3b:00.0"), nullptr)
			<< error_detail();
	}
	module().refused.clear();
	EXPECT_EQ(kernel->pin_host(base, 1, {}, NDA_ACCESS_READ, pin), -ENODEV);
	EXPECT_EQ(kernel->pin_host(base, 0, nic_device, NDA_ACCESS_READ, pin), -EINVAL);
	EXPECT_FALSE(pin);
}

TEST_F(KernelClient, UnmapsADoorbellBeforeItDestroysIt)
{
	module().doorbell_pages = {base};
	const auto kernel = Kernel::open();
	{
		KernelDoorbell doorbell;
		ASSERT_EQ(kernel->map_doorbell(base, npu_device, doorbell), 0)
			<< error_detail();
		EXPECT_NE(doorbell.addr(), 0u);
		EXPECT_EQ(module().mappings, 1);
		EXPECT_EQ(kernel->destroy(doorbell.object().handle()), -EBUSY);
		KernelDoorbell assigned;
		assigned = std::move(doorbell);
		EXPECT_EQ(doorbell.addr(), 0u);
		const KernelDoorbell constructed(std::move(assigned));
		EXPECT_EQ(assigned.addr(), 0u);
	}
	EXPECT_EQ(module().mappings, 0);
	EXPECT_TRUE(module().objects.empty());
}

TEST_F(KernelClient, SaysWhyADoorbellCannotBeMapped)
{
	const auto kernel = Kernel::open();
	KernelDoorbell doorbell;
	EXPECT_EQ(kernel->map_doorbell(base, npu_device, doorbell), -EOPNOTSUPP);
	EXPECT_STREQ(error_detail(),
		"/dev/nda: doorbell page 0x200000000000 (no page of an RDMA device's BAR, "
		"or "
		"doorbell=off): Operation not supported");
	EXPECT_EQ(kernel->map_doorbell(base + 8, npu_device, doorbell), -EINVAL);
	EXPECT_EQ(doorbell.addr(), 0u);
}

TEST_F(KernelClient, TellsOfRevocation)
{
	module().npu_memory = {{base, 1 << 20}};
	const auto kernel = Kernel::open();
	KernelExport a, b;
	ASSERT_EQ(kernel->export_memory(base, 4096, 0, a), 0);
	ASSERT_EQ(kernel->export_memory(base + 4096, 4096, 0, b), 0);
	uint64_t told = 7;
	EXPECT_TRUE(kernel->revocations(told));
	EXPECT_EQ(told, 0u);
	EXPECT_EQ(a.object.check(), 0);
	struct {
		uint32_t reason;
		const char *text;
	} const cases[] = {{NDA_REASON_FREED, "revoked: its owner freed the memory"},
		{NDA_REASON_UNPLUG,
			"revoked: the device that it belongs to, or its driver, is gone"},
		{NDA_REASON_MM_EXIT, "revoked: the process that owned it ended"},
		{NDA_REASON_UNMAPPED, "revoked: the NIC's doorbells were unmapped"},
		{99, "revoked: the kernel took it away"}};
	uint64_t n = 0;
	for (const auto &c : cases) {
		FakeKernel::revoke(a.object.handle(), c.reason);
		EXPECT_EQ(a.object.check(), -ESTALE);
		EXPECT_STREQ(error_detail(), c.text);
		n++;
		for (int again = 0; again < 2; again++) {
			EXPECT_TRUE(kernel->revocations(told));
			EXPECT_EQ(told, n) << "each counts once";
		}
	}
	EXPECT_EQ(b.object.check(), 0);
	EXPECT_EQ(KernelObject().check(), 0);
	nda_ioc_status status = {};
	EXPECT_EQ(b.object.status(status), 0);
	EXPECT_EQ(status.kind, uint32_t(NDA_KIND_EXPORT));
	EXPECT_EQ(status.attachments, 1u);
	EXPECT_EQ(KernelObject().status(status), -ENOENT);
}

TEST_F(KernelClient, WithoutEventsStillAsks)
{
	module().npu_memory = {{base, 4096}};
	module().refused[_IOC_NR(NDA_IOC_EVENT)] = EINVAL;
	const auto kernel = Kernel::open();
	ASSERT_TRUE(kernel->usable());
	KernelExport a;
	ASSERT_EQ(kernel->export_memory(base, 4096, 0, a), 0);
	FakeKernel::revoke(a.object.handle(), NDA_REASON_FREED);
	uint64_t told = 0;
	EXPECT_FALSE(kernel->revocations(told));
	EXPECT_EQ(a.object.check(), -ESTALE);
}

// The counter is shared with it, and reading takes.
TEST_F(KernelClient, LeavesTheCountOfRevocationsToWhoOpenedIt)
{
	module().npu_memory = {{base, 1 << 20}};
	const auto kernel = Kernel::open();
	KernelExport memory;
	ASSERT_EQ(kernel->export_memory(base, 4096, 0, memory), 0) << error_detail();
	FakeKernel::revoke(memory.object.handle(), NDA_REASON_FREED);
	uint64_t told = 0;
	const pid_t child = fork();
	if (child == 0)
		_exit(kernel->revocations(told) ? 1 : 0);
	int status = -1;
	ASSERT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0) << "a child was told";
	EXPECT_TRUE(kernel->revocations(told));
	EXPECT_EQ(told, 1u);
	EXPECT_EQ(memory.object.check(), -ESTALE);
}

// Whoever holds an object keeps the file.
TEST_F(KernelClient, StaysOpenAsLongAsItsObjects)
{
	module().npu_memory = {{base, 4096}};
	KernelExport a;
	{
		const auto kernel = Kernel::open();
		ASSERT_EQ(kernel->export_memory(base, 4096, 0, a), 0);
	}
	EXPECT_EQ(module().open_files, 1);
	a.object.reset();
	EXPECT_EQ(module().open_files, 0);
	EXPECT_EQ(fcntl(a.fd.get(), F_GETFD), FD_CLOEXEC) << "the dma-buf stays";
}

TEST_F(KernelClient, LeavesNothingWhicheverCallFails)
{
	const auto body = [] {
		const auto kernel = Kernel::open();
		KernelExport out;
		KernelObject pin;
		KernelDoorbell doorbell;
		return kernel->export_memory(base, 4096, 0, out) == 0 &&
			kernel->pin_host(base, 1, nic_device, NDA_ACCESS_READ, pin) == 0 &&
			kernel->map_doorbell(base, npu_device, doorbell) == 0;
	};
	int failures = 0;
	for (long n = 1; n < 100; n++) {
		module().npu_memory = {{base, 4096}};
		module().doorbell_pages = {base};
		module().calls = 0;
		module().fail_at = n;
		failures += !body();
		if (module().calls < n)
			break;
		module().objects
			.clear(); // one that could not be destroyed went with the file
		EXPECT_EQ(module().open_files, 0) << "call " << n;
		EXPECT_EQ(module().mappings, 0) << "call " << n;
	}
	EXPECT_GE(failures, 6);
	module().fail_at = 0;
	EXPECT_TRUE(body());
}

// The mock itself does what uapi/nda.h says of sizes.
TEST_F(KernelClient, MockChecksSizes)
{
	const auto kernel = Kernel::open();
	struct {
		nda_ioc_destroy known;
		uint64_t more;
	} larger = {{77, 0}, 1};
	const auto request = [](size_t bytes) {
		return _IOC(_IOC_WRITE, NDA_IOC_TYPE, 4, bytes);
	};
	EXPECT_EQ(FakeKernel::ioctl(1000000, request(sizeof(larger)), &larger), -1);
	EXPECT_EQ(errno, E2BIG);
	larger.more = 0;
	EXPECT_EQ(FakeKernel::ioctl(1000000, request(sizeof(larger)), &larger), -1);
	EXPECT_EQ(errno, ENOENT);
	EXPECT_EQ(FakeKernel::ioctl(1000000, request(4), &larger), -1);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(FakeKernel::ioctl(1000000, _IO(NDA_IOC_TYPE, 99), &larger), -1);
	EXPECT_EQ(errno, ENOTTY);
}

TEST(Bdf, IsParsedOrRefused)
{
	nda_ioc_bdf bdf = {};
	ASSERT_TRUE(parse_bdf("0000:3b:1f.7", bdf));
	EXPECT_EQ(bdf.domain, 0u);
	EXPECT_EQ(bdf.bus, 0x3b);
	EXPECT_EQ(bdf.devfn, 0xff);
	ASSERT_TRUE(parse_bdf("10000:01:02.3", bdf));
	EXPECT_EQ(bdf.domain, 0x10000u);
	EXPECT_EQ(bdf.bus, 1);
	EXPECT_EQ(bdf.devfn, 2 << 3 | 3);
	for (const char *wrong : {"", "0000:3b:00", "0000:3b:20.0", "0000:3b:00.8",
		     "0000:3b:00.0x", "HISI0C10:00"})
		EXPECT_FALSE(parse_bdf(wrong, bdf)) << wrong;
}

} // namespace
} // namespace nda::test
