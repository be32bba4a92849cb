/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The soft NPU's memory as dma-buf, for modules with other parameters than the usual ones.
 */
#include <tests/vm/kmod_memory.h>
#include <tests/vm/kmod_soft_rig.h>

namespace {

using namespace nda::test;

class KmodSoftExport : public SoftTest {
protected:
	Export make(uint64_t va, uint64_t len, uint32_t flags = 0) const
	{
		Export made = make_export(nda_, va, len, flags);

		EXPECT_EQ(made.error, 0) << strerror(made.error);
		return made;
	}

	Fd nda_ = open_nda();
	Fd soft_ = open_soft();
	const uint64_t npu_page_ = soft_query(soft_, NDA_SOFT_QUERY_PAGE_SIZE);
	uint64_t leftovers_ = count(nda_, NDA_COUNT_LEFTOVERS);
};

/* ---- Whatever the size of the NPU's pages ---- */

class KmodSoftPages : public KmodSoftExport, public testing::WithParamInterface<uint32_t> {
protected:
	KmodSoftPages() : size_(3 * npu_page_) {}

	const uint64_t size_;
};

TEST_P(KmodSoftPages, ADeviceWritesWithinThemAndNotBeside)
{
	SoftMemory memory(soft_, size_, GetParam());
	if (make_export(nda_, memory.map.va(), page).error == EOPNOTSUPP)
		GTEST_SKIP() << "this kernel maps no RAM like a device's memory";
	const uint64_t at = 2 * npu_page_ - 1500, len = 1000;
	auto *data = const_cast<uint8_t *>(memory.map.data());
	std::vector<uint8_t> bytes = pattern(len);
	memset(data, 0x5a, size_);

	Importer importer;
	Export made = make(memory.map.va() + at, len);
	EXPECT_EQ(made.page_size, npu_page_);
	EXPECT_EQ(made.offset, at % page);
	ASSERT_EQ(importer.attach(made.fd), 0);
	ASSERT_EQ(importer.map(), 0);
	EXPECT_EQ(importer.write(made.offset, bytes), 0);
	EXPECT_EQ(memcmp(data + at, bytes.data(), len), 0);
	EXPECT_EQ(std::count(data, data + at, 0x5a), static_cast<ptrdiff_t>(at));
	EXPECT_EQ(std::count(data + at + len, data + size_, 0x5a),
		static_cast<ptrdiff_t>(size_ - at - len));
}

TEST_P(KmodSoftPages, SizesAreWholePages)
{
	nda_soft_ioc_alloc request = soft_request(npu_page_ + page / 2, GetParam());

	EXPECT_EQ(call(soft_, NDA_SOFT_IOC_ALLOC, &request), EINVAL);
}
INSTANTIATE_TEST_SUITE_P(Kinds, KmodSoftPages,
	testing::Values(uint32_t{NDA_SOFT_RAM}, uint32_t{NDA_SOFT_BAR}));

using KmodSoftPagesOfABar = KmodSoftExport;

TEST_F(KmodSoftPagesOfABar, ThoseThatFollowEachOtherAreOnePiece)
{
	const uint64_t size = 3 * npu_page_;
	SoftMemory memory(soft_, size, NDA_SOFT_BAR);
	Importer importer;
	Export made = make(memory.map.va(), size);
	ASSERT_EQ(importer.attach(made.fd), 0);
	ASSERT_EQ(importer.map(), 0);
	EXPECT_EQ(importer.state().pieces, 1u);
	EXPECT_EQ(importer.state().largest, size);
}

class KmodSoftHuge : public KmodSoftExport {};

TEST_F(KmodSoftHuge, RamHasNoSuchPages)
{
	nda_soft_ioc_alloc request = soft_request(npu_page_, NDA_SOFT_RAM);

	EXPECT_EQ(npu_page_, uint64_t{1} << 30);
	EXPECT_EQ(call(soft_, NDA_SOFT_IOC_ALLOC, &request), EOPNOTSUPP);
}

/* ---- With pins=1 ---- */

class KmodSoftPins : public KmodSoftExport {};

TEST_F(KmodSoftPins, AnImporterThatPinsKeepsMemoryThatIsFreed)
{
	SoftMemory memory(soft_, 4 * page, NDA_SOFT_BAR);
	std::vector<uint8_t> bytes = pattern(100), got(100);
	Export made = make(memory.map.va(), 4 * page, NDA_EXPORT_ALLOW_PINNED);
	{
		Importer importer;
		ASSERT_EQ(importer.attach(made.fd, NDA_TEST_PIN), 0);
		ASSERT_EQ(importer.map(), 0);
		EXPECT_EQ(importer.write(page, bytes), 0);

		EXPECT_EQ(soft_free(soft_, memory.request.handle), 0);
		EXPECT_EQ(importer.state().told, 0u);
		EXPECT_EQ(status_of(nda_, made.handle).state, uint32_t{NDA_STATE_LIVE});
		EXPECT_EQ(importer.read(page, &got), 0);
		EXPECT_EQ(got, bytes);
	}
	memory.map.unmap();
	EXPECT_EQ(soft_query(soft_, NDA_SOFT_QUERY_BYTES), 4 * page);
	EXPECT_EQ(destroy(nda_, made.handle), 0);
	made.fd.reset();
	EXPECT_EQ(soft_query(soft_, NDA_SOFT_QUERY_BYTES), 0u);
}

TEST_F(KmodSoftPins, FreedMemoryIsNobodyElses)
{
	SoftMemory memory(soft_, 4 * page, NDA_SOFT_BAR);
	Export made = make(memory.map.va(), 4 * page);
	Importer importer;
	ASSERT_EQ(importer.attach(made.fd), 0);
	ASSERT_EQ(importer.map(), 0);
	EXPECT_EQ(soft_free(soft_, memory.request.handle), 0);

	SoftMemory next(soft_, 4 * page, NDA_SOFT_BAR);
	EXPECT_EQ(importer.write(0, pattern(4)), 0);
	EXPECT_EQ(next.map.data()[0], 0);
}

TEST_F(KmodSoftPins, ADeviceThatGoesTakesItNevertheless)
{
	SoftMemory memory(soft_, 4 * page, NDA_SOFT_BAR);
	Export made = make(memory.map.va(), 4 * page, NDA_EXPORT_ALLOW_PINNED);
	Importer importer;
	ASSERT_EQ(importer.attach(made.fd, NDA_TEST_PIN), 0);
	ASSERT_EQ(importer.map(), 0);

	ASSERT_EQ(bind_driver("vm_hbm", "nda_soft", "unbind"), 0);
	EXPECT_EQ(status_of(nda_, made.handle).reason, uint32_t{NDA_REASON_UNPLUG});
	EXPECT_EQ(status_of(nda_, made.handle).mappings, 0u);
	EXPECT_EQ(count(nda_, NDA_COUNT_LEFTOVERS), leftovers_ + 1);
	EXPECT_EQ(importer.detach(), 0);
	EXPECT_EQ(bind_driver("vm_hbm", "nda_soft", "bind"), 0);
}

} // namespace
