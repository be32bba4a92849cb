/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The soft NPU's memory, in RAM and in a PCI BAR: how it is made, mapped, freed and lost.
 */
#include <thread>

#include <tests/vm/kmod_soft_rig.h>

namespace {

using namespace nda::test;

const size_t page = static_cast<size_t>(getpagesize());

class KmodSoft : public SoftTest {
protected:
	int refusal(nda_soft_ioc_alloc request)
	{
		return call(soft_, NDA_SOFT_IOC_ALLOC, &request);
	}

	Fd soft_ = open_soft();
};

class KmodSoftKinds : public KmodSoft, public testing::WithParamInterface<uint32_t> {};

TEST_P(KmodSoftKinds, MemoryIsZeroAndKeepsWhatIsWritten)
{
	for (int round = 0; round < 2; round++) {
		SoftMemory memory(soft_, 3 * page, GetParam());
		for (size_t i = 0; i < 3 * page; i += 8)
			ASSERT_EQ(memory.map.data()[i], 0) << i;
		for (size_t i = 0; i < 3 * page; i++)
			memory.map.data()[i] = static_cast<uint8_t>(i * 5 + 1);
		Mapping again(soft_, memory.request.mmap_off, 3 * page);
		for (size_t i = 0; i < 3 * page; i++)
			ASSERT_EQ(again.data()[i], static_cast<uint8_t>(i * 5 + 1)) << i;
		EXPECT_EQ(soft_free(soft_, memory.request.handle), 0);
	}
}

TEST_P(KmodSoftKinds, APartIsMappedAtItsOffset)
{
	SoftMemory memory(soft_, 3 * page, GetParam());
	memory.map.data()[page] = 0x77;
	Mapping part(soft_, memory.request.mmap_off + page, page);

	EXPECT_EQ(part.data()[0], 0x77);
}

TEST_P(KmodSoftKinds, MemoriesAreApart)
{
	SoftMemory first(soft_, page, GetParam()), second(soft_, page, GetParam());

	first.map.data()[0] = 1;
	EXPECT_EQ(second.map.data()[0], 0);
	EXPECT_NE(first.request.handle, second.request.handle);
}

TEST_P(KmodSoftKinds, FreedMemoryIsNotThereAnyMore)
{
	SoftMemory memory(soft_, 2 * page, GetParam());
	memory.map.data()[0] = 1;

	EXPECT_EQ(soft_free(soft_, memory.request.handle), 0);
	EXPECT_TRUE(bus_error(memory.map.data()));
	EXPECT_TRUE(bus_error(memory.map.data() + page));
	Mapping again(soft_, memory.request.mmap_off, page);
	EXPECT_FALSE(again.good());
	EXPECT_EQ(soft_free(soft_, memory.request.handle), ENOENT);
}

TEST_P(KmodSoftKinds, FreeingOneLeavesTheOthersOfItsFileAndOfOthers)
{
	Fd other = open_soft();
	SoftMemory gone(soft_, page, GetParam()), stays(soft_, page, GetParam()),
		others(other, page, GetParam());
	stays.map.data()[0] = 1;
	others.map.data()[0] = 2;

	EXPECT_EQ(soft_free(soft_, gone.request.handle), 0);
	EXPECT_EQ(stays.map.data()[0], 1);
	EXPECT_EQ(others.map.data()[0], 2);
}

TEST_P(KmodSoftKinds, AMappingThatIsMovedIsTheSameMemory)
{
	SoftMemory memory(soft_, 2 * page, GetParam());
	memory.map.data()[page] = 9;
	Pages target(page);
	void *moved = mremap(const_cast<uint8_t *>(memory.map.data()) + page, page, page,
		MREMAP_MAYMOVE | MREMAP_FIXED, target.data());

	ASSERT_EQ(moved, target.data());
	EXPECT_EQ(target.data()[0], 9);
	EXPECT_EQ(soft_free(soft_, memory.request.handle), 0);
	EXPECT_TRUE(bus_error(target.data()));
}

TEST_P(KmodSoftKinds, AChildHasNoMappingOfIt)
{
	SoftMemory memory(soft_, page, GetParam());
	memory.map.data()[0] = 1;

	EXPECT_EQ(in_child([&] {
		unsigned char resident;
		return mincore(const_cast<uint8_t *>(memory.map.data()), page, &resident) ==
					-1 &&
				errno == ENOMEM
			? 0
			: 1;
	}),
		0);
}

TEST_P(KmodSoftKinds, AKilledProcessLeavesNothing)
{
	for (int step = 0; step < 3; step++)
		EXPECT_EQ(in_child([&] {
			Fd soft = open_soft();
			nda_soft_ioc_alloc request = soft_request(4 * page, GetParam());
			if (step > 0 && call(soft, NDA_SOFT_IOC_ALLOC, &request))
				return 1;
			if (step > 1)
				mmap(nullptr, page, PROT_WRITE, MAP_SHARED, soft,
					static_cast<off_t>(request.mmap_off));
			kill(getpid(), SIGKILL);
			return 2;
		}),
			255);
}

TEST_P(KmodSoftKinds, ClosedFilesMemoryStaysMappedUntilItIsUnmapped)
{
	Fd other = open_soft();
	{
		SoftMemory memory(soft_, page, GetParam());
		memory.map.data()[0] = 3;
		soft_.reset();
		EXPECT_EQ(memory.map.data()[0], 3);
		EXPECT_EQ(soft_query(other, NDA_SOFT_QUERY_BYTES), page);
	}
	EXPECT_EQ(soft_query(other, NDA_SOFT_QUERY_BYTES), 0u);
}

TEST_P(KmodSoftKinds, ThreadsThatTouchWhatAnotherFreesGetTheMemoryOrNone)
{
	for (int i = 0; i < 200; i++) {
		SoftMemory memory(soft_, page, GetParam());
		std::thread freeing([&] { soft_free(soft_, memory.request.handle); });
		bus_error(memory.map.data());
		freeing.join();
		EXPECT_TRUE(bus_error(memory.map.data()));
	}
}

INSTANTIATE_TEST_SUITE_P(Kinds, KmodSoftKinds, testing::Values(NDA_SOFT_RAM, NDA_SOFT_BAR),
	[](const testing::TestParamInfo<uint32_t> &kind) {
		return kind.param == NDA_SOFT_RAM ? "Ram" : "Bar";
	});

/* ---- What is refused ---- */

TEST_F(KmodSoft, SizesMustBeWholePages)
{
	EXPECT_EQ(refusal(soft_request(0, NDA_SOFT_RAM)), EINVAL);
	EXPECT_EQ(refusal(soft_request(page - 1, NDA_SOFT_RAM)), EINVAL);
	EXPECT_EQ(refusal(soft_request(~0ull, NDA_SOFT_RAM)), EINVAL);
	EXPECT_EQ(refusal(soft_request(~0ull - page + 1, NDA_SOFT_RAM)), EINVAL);
	EXPECT_EQ(refusal(soft_request(1ull << 37, NDA_SOFT_RAM)), EINVAL);
}

TEST_F(KmodSoft, MoreThanThereIsIsRefused)
{
	EXPECT_EQ(refusal(soft_request(65ull << 20, NDA_SOFT_BAR)), ENOMEM);
	EXPECT_EQ(refusal(soft_request(1ull << 35, NDA_SOFT_RAM)), ENOMEM);
	EXPECT_EQ(soft_query(soft_, NDA_SOFT_QUERY_BYTES), 0u);
}

TEST_F(KmodSoft, KindsFlagsAndReservedFieldsAreChecked)
{
	nda_soft_ioc_alloc request = soft_request(page, 0);
	EXPECT_EQ(refusal(request), EINVAL);
	request = soft_request(page, 3);
	EXPECT_EQ(refusal(request), EINVAL);
	request = soft_request(page, NDA_SOFT_RAM);
	request.flags = 1;
	EXPECT_EQ(refusal(request), EINVAL);
	request = soft_request(page, NDA_SOFT_RAM);
	request.reserved = 1;
	EXPECT_EQ(refusal(request), EINVAL);

	nda_soft_ioc_free free = {1, 1};
	EXPECT_EQ(call(soft_, NDA_SOFT_IOC_FREE, &free), EINVAL);
	nda_soft_ioc_unbind unbind = {1, 1};
	EXPECT_EQ(call(soft_, NDA_SOFT_IOC_UNBIND, &unbind), EINVAL);
	unbind.flags = 0;
	EXPECT_EQ(call(soft_, NDA_SOFT_IOC_UNBIND, &unbind), ENOENT);
	nda_soft_ioc_query query = {};
	query.reserved = 1;
	EXPECT_EQ(call(soft_, NDA_SOFT_IOC_QUERY, &query), EINVAL);
	query = {};
	query.what = 99;
	EXPECT_EQ(call(soft_, NDA_SOFT_IOC_QUERY, &query), EINVAL);
}

TEST_F(KmodSoft, UnknownCallsAndSizesAreRefused)
{
	uint8_t argument[256] = {};

	EXPECT_EQ(call(soft_, _IOWR(0xEB, 69, uint64_t), argument), ENOTTY);
	EXPECT_EQ(call(soft_, _IOWR(0xEB, 63, uint64_t), argument), ENOTTY);
	EXPECT_EQ(call(soft_, _IOWR(0xEC, 64, nda_soft_ioc_query), argument), ENOTTY);
	EXPECT_EQ(call(soft_, _IOC(_IOC_READ, 0xEB, 64, 8), argument), EINVAL);
	EXPECT_EQ(call(soft_, _IOC(_IOC_READ, 0xEB, 64, 24), argument), 0);
	argument[16] = 1;
	EXPECT_EQ(call(soft_, _IOC(_IOC_READ, 0xEB, 64, 24), argument), E2BIG);
}

TEST_F(KmodSoft, AnAnswerThatCannotBeWrittenLeavesNothing)
{
	Pages argument(page);
	*reinterpret_cast<nda_soft_ioc_alloc *>(argument.data()) =
		soft_request(page, NDA_SOFT_RAM);
	mprotect(argument.data(), page, PROT_READ);

	EXPECT_EQ(call(soft_, NDA_SOFT_IOC_ALLOC, argument.data()), EFAULT);
	EXPECT_EQ(soft_query(soft_, NDA_SOFT_QUERY_BYTES), 0u);
}

TEST_F(KmodSoft, AnotherProcessMayFreeButNeitherAllocateNorMap)
{
	SoftMemory memory(soft_, page);

	EXPECT_EQ(in_child([&] {
		if (refusal(soft_request(page, NDA_SOFT_RAM)) != EPERM)
			return 1;
		Mapping map(soft_, memory.request.mmap_off, page);
		if (map.good() || errno != EPERM)
			return 2;
		return soft_free(soft_, memory.request.handle);
	}),
		0);
	EXPECT_TRUE(bus_error(memory.map.data()));
}

TEST_F(KmodSoft, AnotherFilesMemoryIsNotThere)
{
	Fd other = open_soft();
	SoftMemory memory(soft_, page);
	Mapping map(other, memory.request.mmap_off, page);

	EXPECT_FALSE(map.good());
	EXPECT_EQ(soft_free(other, memory.request.handle), ENOENT);
}

TEST_F(KmodSoft, MappingsAreSharedAndEndWithTheMemory)
{
	SoftMemory memory(soft_, 2 * page);
	off_t at = static_cast<off_t>(memory.request.mmap_off);

	EXPECT_EQ(mmap(nullptr, page, PROT_READ, MAP_PRIVATE, soft_, at), MAP_FAILED);
	EXPECT_EQ(mmap(nullptr, 3 * page, PROT_READ, MAP_SHARED, soft_, at), MAP_FAILED);
	EXPECT_EQ(mmap(nullptr, 2 * page, PROT_READ, MAP_SHARED, soft_,
			  at + static_cast<off_t>(page)),
		MAP_FAILED);
	EXPECT_EQ(mmap(nullptr, page, PROT_READ, MAP_SHARED, soft_, 0), MAP_FAILED);
}

/* ---- The backend ---- */

TEST_F(KmodSoft, ThePartIsThere)
{
	Fd nda = open_nda();
	nda_ioc_query query = {};

	query.what = NDA_QUERY_PART;
	query.index = NDA_PART_SOFT;
	ASSERT_EQ(call(nda, NDA_IOC_QUERY, &query), 0);
	EXPECT_EQ(query.value, 1u);
}

/* ---- The BAR's device ---- */

/* Gives the device back to nda_soft at its end. */
class KmodSoftBar : public KmodSoft {
protected:
	~KmodSoftBar() override { bind_driver("vm_hbm", "nda_soft", "bind"); }
};

TEST_F(KmodSoftBar, UnbindingTheDeviceTakesItsMemoryOnly)
{
	SoftMemory lost(soft_, page, NDA_SOFT_BAR), ram(soft_, page, NDA_SOFT_RAM);
	lost.map.data()[0] = 1;
	ram.map.data()[0] = 2;
	EXPECT_EQ(soft_query(soft_, NDA_SOFT_QUERY_BAR), 64u << 20);

	ASSERT_EQ(bind_driver("vm_hbm", "nda_soft", "unbind"), 0);
	EXPECT_TRUE(bus_error(lost.map.data()));
	EXPECT_EQ(ram.map.data()[0], 2);
	EXPECT_EQ(soft_query(soft_, NDA_SOFT_QUERY_BAR), 0u);
	EXPECT_EQ(refusal(soft_request(page, NDA_SOFT_BAR)), ENODEV);

	ASSERT_EQ(bind_driver("vm_hbm", "nda_soft", "bind"), 0);
	EXPECT_TRUE(bus_error(lost.map.data()));
	SoftMemory again(soft_, page, NDA_SOFT_BAR);
	EXPECT_EQ(again.map.data()[0], 0);
	EXPECT_EQ(soft_free(soft_, lost.request.handle), 0);
}

TEST_F(KmodSoftBar, OneDeviceAtATime)
{
	ASSERT_EQ(override_driver("vm_edu1", "nda_soft"), 0);
	EXPECT_EQ(bind_driver("vm_edu1", "nda_soft", "bind"), EBUSY);
	EXPECT_EQ(soft_query(soft_, NDA_SOFT_QUERY_BAR), 64u << 20);
	EXPECT_EQ(override_driver("vm_edu1", ""), 0);
}

TEST_F(KmodSoftBar, ADeviceThatRootDidNotNameIsNotTaken)
{
	ASSERT_EQ(bind_driver("vm_hbm", "nda_soft", "unbind"), 0);
	EXPECT_EQ(bind_driver("vm_edu1", "nda_soft", "bind"), ENODEV);
}

TEST_F(KmodSoftBar, ADeviceWithADriverIsNotTaken)
{
	ASSERT_EQ(bind_driver("vm_hbm", "nda_soft", "unbind"), 0);
	ASSERT_EQ(override_driver("vm_edu0", "nda_soft"), 0);
	EXPECT_NE(bind_driver("vm_edu0", "nda_soft", "bind"), 0);
	EXPECT_EQ(soft_query(soft_, NDA_SOFT_QUERY_BAR), 0u);
	EXPECT_EQ(override_driver("vm_edu0", ""), 0);
}

TEST_F(KmodSoftBar, UnbindingWhileItIsAllocatedAndTouchedLeavesNothing)
{
	for (int i = 0; i < 20; i++) {
		std::thread using_it([&] {
			for (int k = 0; k < 20; k++) {
				nda_soft_ioc_alloc request =
					soft_request(page, NDA_SOFT_BAR);
				if (call(soft_, NDA_SOFT_IOC_ALLOC, &request))
					continue;
				Mapping map(soft_, request.mmap_off, page);
				bus_error(map.data());
				soft_free(soft_, request.handle);
			}
		});
		bind_driver("vm_hbm", "nda_soft", "unbind");
		bind_driver("vm_hbm", "nda_soft", "bind");
		using_it.join();
	}
	EXPECT_EQ(soft_query(soft_, NDA_SOFT_QUERY_BYTES), 0u);
}

} // namespace
