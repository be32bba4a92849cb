/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* NPU memory exported through /dev/nda: what importers get, and which are refused. */
#include <sys/resource.h>

#include <memory>

#include <tests/vm/kmod_memory.h>

namespace {

using namespace nda::test;

class KmodExport : public KmodTest {
protected:
	Export make(uint64_t va, uint64_t len, uint32_t flags = 0) const
	{
		Export made = make_export(nda_, va, len, flags);

		EXPECT_EQ(made.error, 0) << strerror(made.error);
		return made;
	}
	Fd nda_ = open_nda();
	Hal hal_;
};

/* ---- Data ---- */

class KmodExportOffset : public KmodExport, public testing::WithParamInterface<size_t> {};

TEST_P(KmodExportOffset, ADeviceWritesTheBytesAndNoneBeside)
{
	const size_t at = GetParam(), len = 1000;
	Memory memory(hal_, 32 * page);
	std::vector<uint8_t> bytes = pattern(len), want(memory.size(), 0x5a);
	memory.fill(0x5a);
	std::copy(bytes.begin(), bytes.end(), want.begin() + static_cast<ptrdiff_t>(at));

	Export made = make(memory.va() + at, len);
	Importer importer;
	ASSERT_EQ(importer.attach(made.fd), 0);
	ASSERT_EQ(importer.map(), 0);
	EXPECT_EQ(importer.write(made.offset, bytes), 0);
	EXPECT_EQ(memory.bytes(), want);
}

TEST_P(KmodExportOffset, ADeviceReadsTheBytes)
{
	const size_t at = GetParam(), len = 1000;
	Memory memory(hal_, 32 * page);
	std::vector<uint8_t> bytes = pattern(len), got(len);
	memory.fill(0x5a);
	std::copy(bytes.begin(), bytes.end(), memory.data() + at);

	Export made = make(memory.va() + at, len);
	Importer importer;
	ASSERT_EQ(importer.attach(made.fd), 0);
	ASSERT_EQ(importer.map(), 0);
	EXPECT_EQ(importer.read(made.offset, &got), 0);
	EXPECT_EQ(got, bytes);
}
INSTANTIATE_TEST_SUITE_P(Offsets, KmodExportOffset,
	testing::Values(size_t{0}, size_t{1}, page - 1, page, size_t{65537}));

TEST_F(KmodExport, PagesThatFollowEachOtherAreOnePiece)
{
	Memory memory(hal_, 16 * page);
	Export made = make(memory.va(), memory.size());
	Importer importer;
	ASSERT_EQ(importer.attach(made.fd), 0);
	ASSERT_EQ(importer.map(), 0);
	EXPECT_EQ(importer.state().pieces, 1u);
	EXPECT_EQ(importer.state().largest, memory.size());
}

TEST_F(KmodExport, PagesApartAreMappedInTheirOrder)
{
	hal_.set(page, NDA_TEST_HAL_SCATTER);
	Memory memory(hal_, 4 * page);
	memory.fill(0);
	Export made = make(memory.va(), memory.size());
	Importer importer;
	ASSERT_EQ(importer.attach(made.fd), 0);
	ASSERT_EQ(importer.map(), 0);
	EXPECT_EQ(importer.state().pieces, 4u);
	std::vector<uint8_t> want(memory.size());
	for (size_t i = 0; i < 4; i++) {
		std::vector<uint8_t> bytes = pattern(64, static_cast<uint8_t>(10 * i));
		EXPECT_EQ(importer.write(i * page + 100, bytes), 0);
		std::copy(bytes.begin(), bytes.end(),
			want.begin() + static_cast<ptrdiff_t>(i * page + 100));
	}
	EXPECT_EQ(memory.bytes(), want);
}

TEST_F(KmodExport, APartOfALargePageIsMappedAndNoMore)
{
	hal_.set(huge, 0);
	Memory memory(hal_, 2 * huge);
	/* 100 bytes over the border of two of the kernel's pages. */
	const uint64_t at = huge + 5 * page - 50;
	memory.fill(0x5a);
	Export made = make(memory.va() + at, 100);
	EXPECT_EQ(made.page_size, huge);
	EXPECT_EQ(made.offset, page - 50);
	Importer importer;
	ASSERT_EQ(importer.attach(made.fd), 0);
	ASSERT_EQ(importer.map(), 0);
	EXPECT_EQ(importer.state().largest, 2 * page);
	std::vector<uint8_t> bytes = pattern(100), want(memory.size(), 0x5a);
	std::copy(bytes.begin(), bytes.end(), want.begin() + static_cast<ptrdiff_t>(at));
	EXPECT_EQ(importer.write(made.offset, bytes), 0);
	EXPECT_EQ(memory.bytes(), want);
	EXPECT_EQ(importer.write(2 * page - 50, bytes), ERANGE);
}

TEST_F(KmodExport, LargePagesOfManySizesAreJoined)
{
	hal_.set(huge, NDA_TEST_HAL_SCATTER);
	Memory memory(hal_, 3 * huge);
	Export made = make(memory.va(), memory.size());
	EXPECT_EQ(made.page_size, huge);
	Importer importer;
	ASSERT_EQ(importer.attach(made.fd), 0);
	ASSERT_EQ(importer.map(), 0);
	EXPECT_EQ(importer.state().pieces, 3u);
	EXPECT_EQ(importer.state().largest, huge);
	memory.fill(0);
	std::vector<uint8_t> bytes = pattern(200), want(memory.size());
	EXPECT_EQ(importer.write(2 * huge + 77, bytes), 0);
	std::copy(bytes.begin(), bytes.end(), want.begin() + 2 * huge + 77);
	EXPECT_EQ(memory.bytes(), want);
}

/* ---- Lives ---- */

TEST_F(KmodExport, StatusTellsOfItsImporters)
{
	Memory memory(hal_, page);
	Export made = make(memory.va(), page);
	Importer one, two("vm_edu1");
	ASSERT_EQ(one.attach(made.fd), 0);
	ASSERT_EQ(two.attach(made.fd), 0);
	ASSERT_EQ(two.map(), 0);
	nda_ioc_status status = status_of(nda_, made.handle);
	EXPECT_EQ(status.kind, uint32_t{NDA_KIND_EXPORT});
	EXPECT_EQ(status.state, uint32_t{NDA_STATE_LIVE});
	EXPECT_EQ(status.reason, uint32_t{NDA_REASON_NONE});
	EXPECT_EQ(status.attachments, 2u);
	EXPECT_EQ(status.mappings, 1u);
	EXPECT_EQ(two.detach(), 0);
	status = status_of(nda_, made.handle);
	EXPECT_EQ(status.attachments, 1u);
	EXPECT_EQ(status.mappings, 0u);
}

TEST_F(KmodExport, TheDmabufOutlivesItsHandleAndItsFile)
{
	Memory memory(hal_, page);
	memory.fill(0);
	Export made = make(memory.va(), page);
	Importer importer;
	ASSERT_EQ(importer.attach(made.fd), 0);
	ASSERT_EQ(importer.map(), 0);
	EXPECT_EQ(destroy(nda_, made.handle), 0);
	nda_.reset();
	made.fd.reset();
	std::vector<uint8_t> bytes = pattern(64);
	EXPECT_EQ(importer.write(0, bytes), 0);
	EXPECT_EQ(memcmp(memory.data(), bytes.data(), bytes.size()), 0);
}

TEST_F(KmodExport, OfTwoExportsInOnePageOneGoesAndTheOtherWorks)
{
	Memory memory(hal_, page);
	memory.fill(0);
	Export one = make(memory.va(), 100), two = make(memory.va() + 200, 100);
	Importer first, second;
	ASSERT_EQ(first.attach(one.fd), 0);
	ASSERT_EQ(first.map(), 0);
	ASSERT_EQ(second.attach(two.fd), 0);
	ASSERT_EQ(second.map(), 0);
	EXPECT_EQ(first.detach(), 0);
	EXPECT_EQ(destroy(nda_, one.handle), 0);
	one.fd.reset();
	std::vector<uint8_t> bytes = pattern(64);
	EXPECT_EQ(second.write(two.offset, bytes), 0);
	EXPECT_EQ(memcmp(memory.data() + 200, bytes.data(), bytes.size()), 0);
}

TEST_F(KmodExport, AnotherProcessMayImportButNotExport)
{
	Memory memory(hal_, page);
	memory.fill(0);
	Export made = make(memory.va(), page);
	EXPECT_EQ(in_child([&] {
		Importer importer;
		if (make_export(nda_, memory.va(), page).error != EPERM)
			return 1;
		if (importer.attach(made.fd) || importer.map())
			return 2;
		return importer.write(0, pattern(64)) ? 3 : 0;
	}),
		0);
	EXPECT_EQ(memcmp(memory.data(), pattern(64).data(), 64), 0);
}

TEST_F(KmodExport, AThousandAtOnce)
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
	EXPECT_EQ(count(nda_, NDA_COUNT_MAPPINGS), 1000u);
	EXPECT_EQ(importers[777]->write(5, pattern(64)), 0);
	EXPECT_EQ(memcmp(memory.data() + 777 * page + 5, pattern(64).data(), 64), 0);
}

TEST_F(KmodExport, ModulesInUseStay)
{
	Memory memory(hal_, page);
	Export made = make(memory.va(), page);
	Importer importer;
	ASSERT_EQ(importer.attach(made.fd), 0);
	ASSERT_EQ(importer.map(), 0);
	destroy(nda_, made.handle);
	nda_.reset();
	made.fd.reset();
	EXPECT_EQ(remove_module("nda"), EWOULDBLOCK);
	EXPECT_EQ(remove_module("nda_ascend"), EWOULDBLOCK);
	EXPECT_EQ(remove_module("nda_test_hal"), EWOULDBLOCK);
}

/* ---- What is refused ---- */

TEST_F(KmodExport, AStaticImporterIsRefused)
{
	Memory memory(hal_, page);
	Export made = make(memory.va(), page);
	Importer importer;
	EXPECT_EQ(importer.attach(made.fd, NDA_TEST_STATIC), EOPNOTSUPP);
}

TEST_F(KmodExport, AnImporterWithoutPeerToPeerIsRefused)
{
	Memory memory(hal_, page);
	Export made = make(memory.va(), page);
	Importer importer;
	EXPECT_EQ(importer.attach(made.fd, NDA_TEST_NO_P2P), EOPNOTSUPP);
}

TEST_F(KmodExport, AnImporterThatPinsIsRefused)
{
	Memory memory(hal_, page);
	Export made = make(memory.va(), page);
	Importer importer;
	ASSERT_EQ(importer.attach(made.fd, NDA_TEST_PIN), 0);
	EXPECT_EQ(importer.map(), EOPNOTSUPP);
	EXPECT_EQ(importer.state().mapped, 0u);
	EXPECT_EQ(count(nda_, NDA_COUNT_MAPPINGS), 0u);
}

TEST_F(KmodExport, PinningIsNotAllowedWithoutWhatItNeeds)
{
	Memory memory(hal_, page);
	EXPECT_EQ(
		make_export(nda_, memory.va(), page, NDA_EXPORT_ALLOW_PINNED).error, EPERM);
}

TEST_F(KmodExport, AReadOnlyOneIsMappedToReadOnly)
{
	Memory memory(hal_, page);
	std::vector<uint8_t> got(64);
	std::copy_n(pattern(64).begin(), 64, memory.data());
	Export made = make(memory.va(), page, NDA_EXPORT_READONLY);
	Importer writer, reader;
	ASSERT_EQ(writer.attach(made.fd), 0);
	EXPECT_EQ(writer.map(), EACCES);
	ASSERT_EQ(reader.attach(made.fd, NDA_TEST_READ), 0);
	ASSERT_EQ(reader.map(), 0);
	EXPECT_EQ(reader.read(0, &got), 0);
	EXPECT_EQ(got, pattern(64));
}

TEST_F(KmodExport, OrdinaryMemoryIsNobodys)
{
	Pages pages(page);
	EXPECT_EQ(make_export(nda_, pages.va(), page).error, EOPNOTSUPP);
}

TEST_F(KmodExport, UnmappedMemoryIsNobodys)
{
	EXPECT_EQ(make_export(nda_, 0x1000, page).error, EOPNOTSUPP);
}

TEST_F(KmodExport, ARangeBeyondTheMemoryIsRefused)
{
	Memory memory(hal_, page);
	EXPECT_EQ(make_export(nda_, memory.va(), page + 1).error, EINVAL);
}

TEST_F(KmodExport, LengthsAreChecked)
{
	Memory memory(hal_, page);
	EXPECT_EQ(make_export(nda_, memory.va(), 0).error, EINVAL);
	EXPECT_EQ(make_export(nda_, memory.va(), ~0ull).error, EINVAL);
	EXPECT_EQ(make_export(nda_, memory.va(), ~0ull - memory.va() - 100).error, EINVAL);
	EXPECT_EQ(make_export(nda_, ~0ull - 100, 50).error, EINVAL);
}

TEST_F(KmodExport, UnknownFlagsAreRefused)
{
	Memory memory(hal_, page);
	for (uint32_t flag = NDA_EXPORT_ALLOW_PINNED << 1; flag; flag <<= 1)
		EXPECT_EQ(make_export(nda_, memory.va(), page, flag).error, EINVAL);
}

TEST_F(KmodExport, WithoutADescriptorLeftNothingIsKept)
{
	Memory memory(hal_, page);
	rlimit before = {};
	ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
	rlimit none = {3, before.rlim_max};
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	EXPECT_EQ(make_export(nda_, memory.va(), page).error, EMFILE);
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	EXPECT_EQ(count(nda_, NDA_COUNT_TABLES), 0u);
}

/* ---- Pages of 1 GiB, for which a machine of its own has the memory ---- */

using KmodExportGib = KmodExport;
constexpr size_t gib = size_t{1} << 30;

TEST_F(KmodExportGib, ADeviceWritesFarIntoTheSecond)
{
	const uint64_t at = gib + gib / 2 + 12345;
	hal_.set(gib, 0);
	Memory memory(hal_, 2 * gib);
	Importer importer;
	Export made = make(memory.va() + at, 100);
	EXPECT_EQ(made.page_size, gib);
	EXPECT_EQ(made.offset, at % page);
	ASSERT_EQ(importer.attach(made.fd), 0);
	ASSERT_EQ(importer.map(), 0);
	EXPECT_EQ(importer.write(made.offset, pattern(100)), 0);
	EXPECT_EQ(memcmp(memory.data() + at, pattern(100).data(), 100), 0);
}

TEST_F(KmodExportGib, TwoThatFollowEachOtherAreMappedWhole)
{
	hal_.set(gib, 0);
	Memory memory(hal_, 2 * gib);
	Importer importer;
	Export made = make(memory.va(), 2 * gib);
	ASSERT_EQ(importer.attach(made.fd), 0);
	ASSERT_EQ(importer.map(), 0);
	EXPECT_EQ(importer.state().pieces, 1u);
	EXPECT_EQ(importer.state().largest, 2 * gib);
	EXPECT_EQ(importer.write(2 * gib - 100, pattern(100)), 0);
	EXPECT_EQ(memcmp(memory.data() + 2 * gib - 100, pattern(100).data(), 100), 0);
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(importer.state().mapped, 0u);
}

} // namespace
