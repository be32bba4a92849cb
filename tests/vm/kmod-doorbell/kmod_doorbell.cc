/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Doorbell pages: which are taken, what reaches them, and how they are lost. The RDMA
 * device is a stand-in over one edu device (vm_edu1), the NPU the DMA engine of another
 * (vm_edu0); the doorbell is a register of the former, whose value and the factorial that
 * it makes of it say what was rung. */
#include <sys/eventfd.h>
#include <thread>

#include <tests/vm/kmod_doorbell_rig.h>
#include <tests/vm/modules/nda_test_edu.h>

namespace {

using namespace nda::test;

const size_t page = static_cast<size_t>(getpagesize());
constexpr size_t factorial = 8, busy = 0x20;

int set_policy(const std::string &policy)
{
	return write_sysfs("/sys/module/nda/parameters/doorbell", policy);
}

class KmodDoorbell : public KmodTest {
protected:
	~KmodDoorbell() override { EXPECT_EQ(set_policy("uverbs"), 0); }
	static nda_ioc_db_map request(uint64_t va, uint32_t flags = 0)
	{
		return doorbell_request(va, flags);
	}
	int refusal(nda_ioc_db_map arg) { return call(nda_, NDA_IOC_DB_MAP, &arg); }
	nda_ioc_db_map take(uint64_t va, uint32_t flags = 0)
	{
		nda_ioc_db_map arg = request(va, flags);

		EXPECT_EQ(call(nda_, NDA_IOC_DB_MAP, &arg), 0);
		return arg;
	}
	nda_ioc_status status(uint32_t handle)
	{
		nda_ioc_status arg = {};

		arg.handle = handle;
		EXPECT_EQ(call(nda_, NDA_IOC_STATUS, &arg), 0);
		return arg;
	}
	int destroy(uint32_t handle)
	{
		nda_ioc_destroy arg = {handle, 0};

		return call(nda_, NDA_IOC_DESTROY, &arg);
	}
	/* Has the NPU write a number to the register: 0, or why not. */
	int ring(uint32_t handle, uint32_t number)
	{
		nda_ioc_host_pin pin = {};
		nda_test_copy copy = {};
		Pages value(page);
		memcpy(value.data(), &number, sizeof(number));
		pin.va = value.va();
		pin.len = page;
		pin.dev = bdf_of("vm_edu0");
		pin.access = NDA_ACCESS_READ;
		EXPECT_EQ(call(nda_, NDA_IOC_HOST_PIN, &pin), 0);
		copy.from = {NDA_KIND_PIN, pin.handle, 0};
		copy.to = {NDA_KIND_DOORBELL, handle, factorial};
		copy.nda_fd = nda_;
		copy.len = sizeof(number);
		int error = call(edu_, NDA_TEST_COPY, &copy);
		EXPECT_EQ(destroy(pin.handle), 0);
		return error;
	}
	/* What the register has once the device is done. */
	static uint32_t answer(const Mapping &map)
	{
		auto *at = reinterpret_cast<volatile uint32_t *>(map.data());

		while (at[busy / 4] & 1)
			usleep(100);
		return at[factorial / 4];
	}
	void expect_lost(uint32_t handle, uint32_t reason = NDA_REASON_UNMAPPED)
	{
		EXPECT_EQ(status(handle).state, uint32_t{NDA_STATE_REVOKED});
		EXPECT_EQ(status(handle).reason, reason);
		EXPECT_EQ(status(handle).mappings, 0u);
		EXPECT_EQ(ring(handle, 3), ESTALE);
	}

	Fd nda_ = open_nda();
	Fd uverbs_ = open_uverbs();
	Fd edu_{open(
		(std::string("/dev/nda_test_edu-") + getenv("vm_edu0")).c_str(), O_RDWR)};
	Mapping bell_{uverbs_, NDA_TEST_IB_BAR *page, page};
};

/* ---- What works ---- */

TEST_F(KmodDoorbell, TheNpuRingsIt)
{
	nda_ioc_db_map db = take(bell_.va());

	EXPECT_EQ(status(db.handle).kind, uint32_t{NDA_KIND_DOORBELL});
	EXPECT_EQ(status(db.handle).state, uint32_t{NDA_STATE_LIVE});
	EXPECT_EQ(status(db.handle).mappings, 1u);
	EXPECT_EQ(ring(db.handle, 5), 0);
	EXPECT_EQ(answer(bell_), 120u);
	EXPECT_EQ(ring(db.handle, 6), 0);
	EXPECT_EQ(answer(bell_), 720u);
	EXPECT_EQ(destroy(db.handle), 0);
	EXPECT_EQ(ring(db.handle, 3), ENOENT);
	EXPECT_EQ(answer(bell_), 720u);
}

TEST_F(KmodDoorbell, OnePageMayBeTakenMoreThanOnce)
{
	nda_ioc_db_map first = take(bell_.va()), second = take(bell_.va());

	EXPECT_EQ(destroy(first.handle), 0);
	EXPECT_EQ(ring(second.handle, 4), 0);
	EXPECT_EQ(answer(bell_), 24u);
}

TEST_F(KmodDoorbell, AProxyIsTheSamePage)
{
	nda_ioc_db_map db = take(bell_.va(), NDA_DB_PROXY);
	EXPECT_EQ(status(db.handle).mappings, 0u);
	Mapping proxy(nda_, db.mmap_off, page);
	ASSERT_TRUE(proxy.good()) << strerror(errno);

	reinterpret_cast<volatile uint32_t *>(proxy.data())[factorial / 4] = 7;
	EXPECT_EQ(answer(bell_), 5040u);
	EXPECT_EQ(ring(db.handle, 3), ENODEV);
}

TEST_F(KmodDoorbell, AProxyIsMappedOnceAndKeepsTheHandle)
{
	nda_ioc_db_map db = take(bell_.va(), NDA_DB_PROXY);
	{
		Mapping proxy(nda_, db.mmap_off, page);
		ASSERT_TRUE(proxy.good());
		Mapping second(nda_, db.mmap_off, page);
		EXPECT_FALSE(second.good());
		EXPECT_EQ(destroy(db.handle), EBUSY);
	}
	{
		Mapping again(nda_, db.mmap_off, page);
		EXPECT_TRUE(again.good());
	}
	EXPECT_EQ(destroy(db.handle), 0);
	Mapping late(nda_, db.mmap_off, page);
	EXPECT_FALSE(late.good());
}

TEST_F(KmodDoorbell, AProxyIsOneSharedPageOfADoorbellThatHasOne)
{
	nda_ioc_db_map db = take(bell_.va(), NDA_DB_PROXY), other = take(bell_.va());
	Mapping two(nda_, db.mmap_off, 2 * page), none(nda_, other.mmap_off, page);

	EXPECT_FALSE(two.good());
	EXPECT_FALSE(none.good());
	EXPECT_EQ(mmap(nullptr, page, PROT_READ, MAP_PRIVATE, nda_,
			  static_cast<off_t>(db.mmap_off)),
		MAP_FAILED);
}

TEST_F(KmodDoorbell, AChildHasNeitherTheProxyNorTakesItFromItsParent)
{
	nda_ioc_db_map db = take(bell_.va(), NDA_DB_PROXY);
	Mapping proxy(nda_, db.mmap_off, page);

	EXPECT_EQ(in_child([&] {
		unsigned char resident;
		auto *at = const_cast<uint8_t *>(proxy.data());
		if (mincore(at, page, &resident) != -1 || errno != ENOMEM)
			return 1;
		return refusal(request(bell_.va())) == EPERM ? 0 : 2;
	}),
		0);
	EXPECT_EQ(status(db.handle).state, uint32_t{NDA_STATE_LIVE});
	reinterpret_cast<volatile uint32_t *>(proxy.data())[factorial / 4] = 3;
	EXPECT_EQ(answer(bell_), 6u);
}

/* ---- How it is lost ---- */

TEST_F(KmodDoorbell, UnmappingLosesIt)
{
	Mapping source(uverbs_, NDA_TEST_IB_BAR * page, page);
	nda_ioc_db_map db = take(source.va());
	EXPECT_EQ(ring(db.handle, 5), 0);
	Fd signal(eventfd(0, EFD_NONBLOCK));
	nda_ioc_event event = {signal, 0};
	ASSERT_EQ(call(nda_, NDA_IOC_EVENT, &event), 0);
	uint64_t lost = count(nda_, NDA_COUNT_DOORBELLS_LOST), signals = 0;

	source.unmap();
	expect_lost(db.handle);
	EXPECT_EQ(answer(bell_), 120u);
	EXPECT_EQ(read(signal, &signals, sizeof(signals)), 8);
	EXPECT_EQ(signals, 1u);
	EXPECT_EQ(count(nda_, NDA_COUNT_DOORBELLS_LOST), lost + 1);
	EXPECT_EQ(destroy(db.handle), 0);
}

TEST_F(KmodDoorbell, UnmappingTakesTheProxyAway)
{
	Mapping source(uverbs_, NDA_TEST_IB_BAR * page, page);
	nda_ioc_db_map db = take(source.va(), NDA_DB_PROXY);
	Mapping proxy(nda_, db.mmap_off, page);
	EXPECT_FALSE(bus_error(proxy.data()));

	source.unmap();
	EXPECT_TRUE(bus_error(proxy.data()));
	EXPECT_EQ(destroy(db.handle), EBUSY);
	proxy.unmap();
	Mapping late(nda_, db.mmap_off, page);
	EXPECT_FALSE(late.good());
	EXPECT_EQ(destroy(db.handle), 0);
}

TEST_F(KmodDoorbell, AProxyAndItsSourceMayGoAtOnce)
{
	/* Side by side, so that one munmap() takes both. */
	Pages place(2 * page);
	off_t bar = static_cast<off_t>(NDA_TEST_IB_BAR * page);
	ASSERT_EQ(mmap(place.data(), page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			  uverbs_, bar),
		place.data());
	nda_ioc_db_map db = take(place.va(), NDA_DB_PROXY);
	ASSERT_EQ(mmap(place.data() + page, page, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_FIXED, nda_, static_cast<off_t>(db.mmap_off)),
		place.data() + page);
	EXPECT_FALSE(bus_error(place.data() + page));

	ASSERT_EQ(munmap(place.data(), 2 * page), 0);
	EXPECT_EQ(status(db.handle).state, uint32_t{NDA_STATE_REVOKED});
	EXPECT_EQ(destroy(db.handle), 0);
}

TEST_F(KmodDoorbell, MovingTheMappingLosesIt)
{
	void *source = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, uverbs_, 0);
	nda_ioc_db_map db = take(reinterpret_cast<uintptr_t>(source));
	Pages target(page);

	ASSERT_EQ(mremap(source, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, target.data()),
		target.data());
	expect_lost(db.handle);
	EXPECT_EQ(destroy(db.handle), 0);
}

TEST_F(KmodDoorbell, MappingSomethingOverItLosesIt)
{
	void *source = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, uverbs_, 0);
	nda_ioc_db_map db = take(reinterpret_cast<uintptr_t>(source));

	ASSERT_EQ(mmap(source, page, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		source);
	expect_lost(db.handle);
	munmap(source, page);
}

TEST_F(KmodDoorbell, MakingItReadOnlyLosesIt)
{
	Mapping source(uverbs_, NDA_TEST_IB_BAR * page, page);
	nda_ioc_db_map db = take(source.va());

	ASSERT_EQ(mprotect(const_cast<uint8_t *>(source.data()), page, PROT_READ), 0);
	expect_lost(db.handle);
}

TEST_F(KmodDoorbell, LookingForWrittenPagesDoesNotLoseIt)
{
	nda_ioc_db_map db = take(bell_.va());

	/* Refused where the kernel keeps no such bits. */
	write_sysfs("/proc/self/clear_refs", "4");
	EXPECT_EQ(ring(db.handle, 4), 0);
	EXPECT_EQ(answer(bell_), 24u);
}

TEST_F(KmodDoorbell, ClosingTheRdmaDevicesFileDoesNotLoseIt)
{
	nda_ioc_db_map db = take(bell_.va());

	uverbs_.reset();
	EXPECT_EQ(ring(db.handle, 5), 0);
	EXPECT_EQ(answer(bell_), 120u);
}

TEST_F(KmodDoorbell, AForkDoesNotLoseIt)
{
	nda_ioc_db_map db = take(bell_.va());

	EXPECT_EQ(in_child([] { return 0; }), 0);
	EXPECT_EQ(ring(db.handle, 4), 0);
	EXPECT_EQ(answer(bell_), 24u);
}

TEST_F(KmodDoorbell, AKilledProcessLeavesNothing)
{
	for (int step = 0; step < 4; step++)
		EXPECT_EQ(in_child([&] {
			Fd nda = open_nda();
			Fd uverbs = open_uverbs();
			Mapping bell(uverbs, 0, page);
			nda_ioc_db_map arg =
				request(bell.va(), step > 1 ? NDA_DB_PROXY : 0);
			if (step > 0 && call(nda, NDA_IOC_DB_MAP, &arg))
				return 1;
			Mapping proxy(nda, arg.mmap_off, page);
			if (step > 2)
				bus_error(proxy.data());
			kill(getpid(), SIGKILL);
			return 2;
		}),
			255);
}

TEST_F(KmodDoorbell, AnotherProcessHoldsTheFileWhenItsOwnerGoes)
{
	int ends[2];
	ASSERT_EQ(pipe(ends), 0);
	/* The opener is a child; a child of its own keeps the descriptor. */
	EXPECT_EQ(in_child([&] {
		Fd nda = open_nda();
		nda_ioc_db_map arg = request(bell_.va());
		Fd uverbs = open_uverbs();
		Mapping bell(uverbs, 0, page);
		arg.va = bell.va();
		if (call(nda, NDA_IOC_DB_MAP, &arg))
			return 1;
		pid_t parent = getpid();
		if (fork() == 0) {
			nda_ioc_status status = {};
			while (getppid() == parent)
				usleep(1000);
			/* The parent's memory goes before it is no parent any more. */
			status.handle = arg.handle;
			int error = call(nda, NDA_IOC_STATUS, &status);
			char seen = error ? 99 : static_cast<char>(status.reason);
			_exit(write(ends[1], &seen, 1) == 1 ? 0 : 1);
		}
		_exit(0);
	}),
		0);
	char seen = 0;
	EXPECT_EQ(read(ends[0], &seen, 1), 1);
	EXPECT_EQ(seen, NDA_REASON_MM_EXIT);
	close(ends[0]);
	close(ends[1]);
}

TEST_F(KmodDoorbell, MappingAndTakingAtOnceNeverKeepsWhatIsUnmapped)
{
	for (int i = 0; i < 300; i++) {
		void *source =
			mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, uverbs_, 0);
		nda_ioc_db_map arg = request(reinterpret_cast<uintptr_t>(source));
		std::thread unmapping([&] { munmap(source, page); });
		int error = call(nda_, NDA_IOC_DB_MAP, &arg);
		unmapping.join();
		if (error == 0) {
			EXPECT_EQ(status(arg.handle).state, uint32_t{NDA_STATE_REVOKED});
			EXPECT_EQ(destroy(arg.handle), 0);
		} else {
			EXPECT_TRUE(error == ECANCELED || error == EFAULT)
				<< strerror(error);
		}
	}
}

/* ---- What is refused ---- */

TEST_F(KmodDoorbell, WhatIsNotAPageOfADeviceIsRefused)
{
	Pages anonymous(page);
	Mapping ram(uverbs_, NDA_TEST_IB_RAM * page, page),
		nowhere(uverbs_, NDA_TEST_IB_NOWHERE * page, page),
		cached(uverbs_, NDA_TEST_IB_CACHED * page, page);
	ASSERT_TRUE(ram.good() && nowhere.good() && cached.good());

	EXPECT_EQ(refusal(request(anonymous.va())), EOPNOTSUPP);
	EXPECT_EQ(refusal(request(ram.va())), EOPNOTSUPP);
	EXPECT_EQ(refusal(request(nowhere.va())), EOPNOTSUPP);
	anonymous.data()[0] = 1;
	EXPECT_EQ(refusal(request(anonymous.va())), EOPNOTSUPP);
	munmap(anonymous.data(), page);
	EXPECT_EQ(refusal(request(anonymous.va())), EFAULT);
}

TEST_F(KmodDoorbell, WhatCannotBeWrittenIsRefused)
{
	Mapping read_only(uverbs_, NDA_TEST_IB_BAR * page, page, PROT_READ);

	EXPECT_EQ(refusal(request(read_only.va())), EACCES);
}

TEST_F(KmodDoorbell, AnythingButOneAlignedPageIsInvalid)
{
	nda_ioc_db_map arg = request(bell_.va());

	arg.len = 2 * page;
	EXPECT_EQ(refusal(arg), EINVAL);
	arg.len = page / 2;
	EXPECT_EQ(refusal(arg), EINVAL);
	arg.len = 0;
	EXPECT_EQ(refusal(arg), EINVAL);
	EXPECT_EQ(refusal(request(bell_.va() + 8)), EINVAL);
	EXPECT_EQ(refusal(request(~0ull - page + 1)), EINVAL);
	EXPECT_EQ(refusal(request(bell_.va(), 4)), EINVAL);
	arg = request(bell_.va());
	arg.src_fd = 0;
	EXPECT_EQ(refusal(arg), EINVAL);
	arg = request(bell_.va());
	arg.reserved = 1;
	EXPECT_EQ(refusal(arg), EINVAL);
}

TEST_F(KmodDoorbell, ANpuThatIsNotThereOrHasNoDriverIsRefused)
{
	nda_ioc_db_map arg = request(bell_.va());

	arg.npu.bus = 0xee;
	EXPECT_EQ(refusal(arg), ENODEV);
	arg.npu = bdf_of("vm_hbm");
	EXPECT_EQ(refusal(arg), ENODEV);
}

TEST_F(KmodDoorbell, TheNpusOwnPageIsRefused)
{
	nda_ioc_db_map arg = request(bell_.va());

	arg.npu = bdf_of("vm_edu1");
	EXPECT_EQ(refusal(arg), EOPNOTSUPP);
}

TEST_F(KmodDoorbell, AProxyIsNoSource)
{
	nda_ioc_db_map db = take(bell_.va(), NDA_DB_PROXY);
	Mapping proxy(nda_, db.mmap_off, page);
	ASSERT_FALSE(bus_error(proxy.data()));

	EXPECT_EQ(refusal(request(proxy.va())), EOPNOTSUPP);
}

class KmodDoorbellForeign : public KmodDoorbell {
protected:
	Fd file_{open(
		(std::string("/sys/bus/pci/devices/") + getenv("vm_edu1") + "/resource0")
			.c_str(),
		O_RDWR)};
	Mapping foreign_{file_, 0, page};
	Fd other_file_{open(
		(std::string("/sys/bus/pci/devices/") + getenv("vm_hbm") + "/resource2")
			.c_str(),
		O_RDWR)};
	Mapping other_{other_file_, 0, page};
};

TEST_F(KmodDoorbellForeign, AnotherFilesMappingOfThePageNeedsThePolicyAndTheCapability)
{
	ASSERT_TRUE(foreign_.good());
	EXPECT_EQ(refusal(request(foreign_.va())), EPERM);
	EXPECT_EQ(set_policy("any"), 0);
	nda_ioc_db_map db = take(foreign_.va());
	EXPECT_EQ(ring(db.handle, 5), 0);
	EXPECT_EQ(answer(bell_), 120u);
	foreign_.unmap();
	expect_lost(db.handle);
}

TEST_F(KmodDoorbellForeign, AnotherDevicesPageIsRefusedWhoeverAsks)
{
	ASSERT_TRUE(other_.good());
	EXPECT_EQ(refusal(request(other_.va())), EOPNOTSUPP);
	EXPECT_EQ(set_policy("any"), 0);
	EXPECT_EQ(refusal(request(other_.va())), EOPNOTSUPP);
}

/* The first page of a device's BAR, by the file that the kernel has for it. */
class BarPage {
public:
	BarPage(const char *variable, const char *bar)
		: file_(open((std::string("/sys/bus/pci/devices/") + getenv(variable) +
				     "/" + bar)
				     .c_str(),
			  O_RDWR))
	{
		EXPECT_TRUE(map_.good()) << variable << " " << bar;
	}
	uint64_t va() const { return map_.va(); }

private:
	Fd file_;
	Mapping map_{file_, 0, page};
};

/* Gives a device to nda_test_ib for as long as it lives. */
class RdmaDevice {
public:
	explicit RdmaDevice(const char *variable) : variable_(variable)
	{
		std::string driver =
			std::string("/sys/bus/pci/devices/") + getenv(variable) + "/driver";

		/* Where it has one it is virtio's. */
		write_sysfs(driver + "/unbind", getenv(variable));
		EXPECT_EQ(override_driver(variable, "nda_test_ib"), 0);
		EXPECT_EQ(bind_driver(variable, "nda_test_ib", "bind"), 0);
	}
	RdmaDevice(const RdmaDevice &) = delete;
	RdmaDevice &operator=(const RdmaDevice &) = delete;
	/* The kernel may have a driver of its own for it. */
	~RdmaDevice()
	{
		EXPECT_EQ(bind_driver(variable_, "nda_test_ib", "unbind"), 0);
		EXPECT_EQ(override_driver(variable_, ""), 0);
		write_sysfs("/sys/bus/pci/drivers_probe", getenv(variable_));
	}

private:
	const char *variable_;
};

TEST_F(KmodDoorbellForeign, APageWithInterruptVectorsIsRefusedWhoeverAsks)
{
	RdmaDevice device("vm_msix");
	BarPage vectors("vm_msix", "resource1"), registers("vm_msix", "resource4");

	EXPECT_EQ(set_policy("any"), 0);
	EXPECT_EQ(refusal(request(vectors.va())), EOPNOTSUPP);
	nda_ioc_db_map db = take(registers.va());
	EXPECT_EQ(destroy(db.handle), 0);
}

TEST_F(KmodDoorbellForeign, AnAcceleratorsPageIsRefusedWhoeverAsks)
{
	const std::string parameter = "/sys/module/nda_test_ib/parameters/accelerator";

	ASSERT_EQ(write_sysfs(parameter, "1"), 0);
	{
		RdmaDevice device("vm_msix");
		BarPage registers("vm_msix", "resource4");

		EXPECT_EQ(set_policy("any"), 0);
		EXPECT_EQ(refusal(request(registers.va())), EOPNOTSUPP);
	}
	EXPECT_EQ(write_sysfs(parameter, "0"), 0);
}

TEST_F(KmodDoorbellForeign, WithoutTheCapabilityItIsRefusedUnderAnyPolicy)
{
	EXPECT_EQ(set_policy("any"), 0);
	EXPECT_EQ(in_child([&] {
		Fd nda = open_nda();
		Fd file(open((std::string("/sys/bus/pci/devices/") + getenv("vm_edu1") +
				     "/resource0")
				     .c_str(),
			O_RDWR));
		Mapping foreign(file, 0, page);
		nda_ioc_db_map arg = request(foreign.va());
		if (setuid(1234))
			return 1;
		return call(nda, NDA_IOC_DB_MAP, &arg) == EPERM ? 0 : 2;
	}),
		0);
}

TEST_F(KmodDoorbell, ThePolicyOffRefusesAll)
{
	nda_ioc_query query = {};
	query.what = NDA_QUERY_FEATURES;
	ASSERT_EQ(call(nda_, NDA_IOC_QUERY, &query), 0);
	EXPECT_NE(query.value & NDA_FEATURE_DOORBELL_VA, 0u);

	EXPECT_EQ(set_policy("off"), 0);
	EXPECT_EQ(refusal(request(bell_.va())), EOPNOTSUPP);
	ASSERT_EQ(call(nda_, NDA_IOC_QUERY, &query), 0);
	EXPECT_EQ(query.value & NDA_FEATURE_DOORBELL_VA, 0u);
	EXPECT_EQ(set_policy("everything"), EINVAL);
}

/* ---- By dma-buf ---- */

class KmodDoorbellDmabuf : public KmodDoorbell {
protected:
	int import(int fd, uint32_t *handle = nullptr)
	{
		nda_ioc_db_map arg = request(0, NDA_DB_FROM_DMABUF);

		arg.src_fd = fd;
		int error = call(nda_, NDA_IOC_DB_MAP, &arg);
		if (handle)
			*handle = arg.handle;
		return error;
	}
};

TEST_F(KmodDoorbellDmabuf, WhatIsNoDmabufIsRefused)
{
	EXPECT_EQ(import(-1), EBADF);
	EXPECT_EQ(import(9999), EBADF);
	EXPECT_EQ(import(nda_), EBADF);
	nda_ioc_db_map arg = request(bell_.va(), NDA_DB_FROM_DMABUF);
	EXPECT_EQ(refusal(arg), EINVAL);
}

TEST_F(KmodDoorbellDmabuf, AnothersNeedsThePolicyAndIsLostWhenItIsFreed)
{
	Fd soft = open_soft();
	SoftMemory memory(soft, page, NDA_SOFT_RAM);
	nda_ioc_export arg = {};
	arg.va = memory.map.va();
	arg.len = page;
	int error = call(nda_, NDA_IOC_EXPORT, &arg);
	if (error == EOPNOTSUPP)
		GTEST_SKIP() << "this kernel maps no RAM like a device's memory";
	ASSERT_EQ(error, 0);
	Fd dmabuf(arg.fd);
	uint32_t handle = 0;

	EXPECT_EQ(import(dmabuf), EPERM);
	EXPECT_EQ(set_policy("any"), 0);
	ASSERT_EQ(import(dmabuf, &handle), 0);
	EXPECT_EQ(status(handle).mappings, 1u);
	EXPECT_EQ(ring(handle, 77), 0);
	EXPECT_EQ(memory.map.data()[factorial], 77);

	EXPECT_EQ(soft_free(soft, memory.request.handle), 0);
	expect_lost(handle, NDA_REASON_FREED);
	EXPECT_EQ(import(dmabuf), ENODEV);
	EXPECT_EQ(destroy(handle), 0);
}

/* ---- Devices that go ---- */

/* Gives both devices their drivers back. */
class KmodDoorbellUnbind : public KmodDoorbell {
protected:
	~KmodDoorbellUnbind() override
	{
		bind_driver("vm_edu1", "nda_test_ib", "bind");
		bind_driver("vm_edu0", "nda_test_edu", "bind");
	}
};

TEST_F(KmodDoorbellUnbind, UnbindingTheRdmaDeviceLosesIt)
{
	nda_ioc_db_map db = take(bell_.va()), proxied = take(bell_.va(), NDA_DB_PROXY);
	Mapping proxy(nda_, proxied.mmap_off, page);
	EXPECT_FALSE(bus_error(proxy.data()));

	ASSERT_EQ(bind_driver("vm_edu1", "nda_test_ib", "unbind"), 0);
	expect_lost(db.handle, NDA_REASON_UNPLUG);
	EXPECT_EQ(status(proxied.handle).reason, uint32_t{NDA_REASON_UNPLUG});
	EXPECT_TRUE(bus_error(proxy.data()));
	EXPECT_NE(refusal(request(bell_.va())), 0);
}

TEST_F(KmodDoorbellUnbind, UnbindingTheNpuLosesIt)
{
	nda_ioc_db_map db = take(bell_.va());

	edu_.reset();
	ASSERT_EQ(bind_driver("vm_edu0", "nda_test_edu", "unbind"), 0);
	EXPECT_EQ(status(db.handle).state, uint32_t{NDA_STATE_REVOKED});
	EXPECT_EQ(status(db.handle).reason, uint32_t{NDA_REASON_UNPLUG});
	EXPECT_EQ(count(nda_, NDA_COUNT_MAPPINGS), 0u);
	EXPECT_EQ(refusal(request(bell_.va())), ENODEV);
}

} // namespace
