/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* nda_ascend.ko on a driver that stands in for Ascend's, which each test loads. */
#include <memory>
#include <thread>

#include <tests/vm/kmod_memory.h>

namespace {

using namespace nda::test;

uint64_t why(int nda)
{
	nda_ioc_query query = {};

	query.what = NDA_QUERY_PART;
	query.index = NDA_PART_ASCEND;
	EXPECT_EQ(call(nda, NDA_IOC_QUERY, &query), 0);
	EXPECT_EQ(query.value, query.value2 == NDA_WHY_OK);
	return query.value2;
}

class KmodAscendAlone : public KmodTest {
protected:
	Fd nda_ = open_nda();
};

TEST_F(KmodAscendAlone, SaysThatTheDriverIsMissing)
{
	EXPECT_EQ(why(nda_), uint64_t{NDA_WHY_NO_DRIVER});
}

TEST_F(KmodAscendAlone, SaysThatItIsNotLoadedItself)
{
	ASSERT_EQ(remove_idle_module("nda_ascend"), 0);
	EXPECT_EQ(why(nda_), uint64_t{NDA_WHY_NOT_LOADED});
	EXPECT_EQ(load_module("nda_ascend"), 0);
}

/* With the driver, which has to be idle in the end, so that it can be taken away. */
class KmodAscend : public KmodTest {
protected:
	KmodAscend()
	{
		EXPECT_EQ(load_module("nda_test_hal"), 0);
		/* Its file appears a little later. */
		for (int i = 0; i < 500 && access("/dev/nda_test_hal", F_OK); i++)
			usleep(10000);
		hal_ = std::make_unique<Hal>();
	}
	~KmodAscend() override
	{
		hal_.reset();
		EXPECT_EQ(remove_idle_module("nda_test_hal"), 0);
	}
	Export make(uint64_t va, uint64_t len) const
	{
		Export made = make_export(nda_, va, len);

		EXPECT_EQ(made.error, 0) << strerror(made.error);
		return made;
	}
	void drop(Export *made) const
	{
		EXPECT_EQ(destroy(nda_, made->handle), 0);
		made->fd.reset();
	}

	Fd nda_ = open_nda();
	std::unique_ptr<Hal> hal_;
};

class KmodAscendKept : public KmodAscend {};

TEST_F(KmodAscend, FindsTheDriverWhenItComes)
{
	EXPECT_EQ(why(nda_), uint64_t{NDA_WHY_OK});
}

TEST_F(KmodAscend, LetsTheDriverGoOnceNothingIsHeld)
{
	{
		Memory memory(*hal_, page);
		Export made = make(memory.va(), page);
		EXPECT_EQ(remove_module("nda_test_hal"), EWOULDBLOCK);
		drop(&made);
	}
	hal_.reset();
	EXPECT_EQ(remove_idle_module("nda_test_hal"), 0);
	EXPECT_EQ(why(nda_), uint64_t{NDA_WHY_NO_DRIVER});
	EXPECT_EQ(load_module("nda_test_hal"), 0);
}

TEST_F(KmodAscend, ReadsATableTwiceAndHoldsItOnce)
{
	Memory memory(*hal_, page);
	nda_test_hal_counts before = hal_->counts();
	Export made = make(memory.va(), page);
	EXPECT_EQ(hal_->counts().gets, before.gets + 2);
	EXPECT_EQ(hal_->counts().tables, 1u);
	drop(&made);
	EXPECT_EQ(hal_->counts().tables, 0u);
}

TEST_F(KmodAscend, TheYoungerDriverCutsItsPagesAsTheRangeIs)
{
	hal_->set(huge, NDA_TEST_HAL_V3);
	Memory memory(*hal_, 2 * huge);
	Export whole = make(memory.va(), 2 * huge), part = make(memory.va() + 100, 100);
	EXPECT_EQ(whole.page_size, huge);
	EXPECT_EQ(part.page_size, page);
	EXPECT_EQ(part.offset, 100u);
}

TEST_F(KmodAscend, TheOlderDriverIsAskedFromWhereItsPageBegins)
{
	hal_->set(huge, 0);
	Memory memory(*hal_, 2 * huge);
	Export made = make(memory.va() + huge + 3 * page + 5, page);
	EXPECT_EQ(made.page_size, huge);
	EXPECT_EQ(made.offset, 5u);
	drop(&made);
	EXPECT_EQ(hal_->counts().tables, 0u);
}

TEST_F(KmodAscend, FreedMemoryIsRefused)
{
	Memory memory(*hal_, page);
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(make_export(nda_, memory.va(), page).error, EINVAL);
}

TEST_F(KmodAscend, AnyThreadOfTheProcessMayExport)
{
	Memory memory(*hal_, page);
	std::thread([&] { make(memory.va(), page); }).join();
}

TEST_F(KmodAscend, AProcessWithoutTheNpuIsRefused)
{
	EXPECT_EQ(in_child([&] {
		/* The driver knows the parent's file, not the child's memory. */
		Fd nda = open_nda();
		void *at = mmap(nullptr, page, PROT_READ, MAP_SHARED, hal_->fd(), 0);
		return at == MAP_FAILED ? errno : 0;
	}),
		EPERM);
}

/* ---- Tables that cannot be right ---- */

class KmodAscendBad : public KmodAscend, public testing::WithParamInterface<uint32_t> {};

TEST_P(KmodAscendBad, ATableIsRefusedAndPutBack)
{
	Memory memory(*hal_, 2 * page);
	hal_->set(page, GetParam());
	EXPECT_EQ(make_export(nda_, memory.va(), 2 * page).error, EIO);
	EXPECT_EQ(hal_->counts().tables, 0u);
	EXPECT_EQ(count(nda_, NDA_COUNT_TABLES), 0u);
	bool version = GetParam() == NDA_TEST_HAL_BAD_VERSION;
	EXPECT_EQ(why(nda_), version ? uint64_t{NDA_WHY_MISMATCH} : uint64_t{NDA_WHY_OK});
	hal_->set(page, 0);
	Export made = make(memory.va(), 2 * page);
	EXPECT_EQ(why(nda_), uint64_t{NDA_WHY_OK});
}
INSTANTIATE_TEST_SUITE_P(Tables, KmodAscendBad,
	testing::Values(uint32_t{NDA_TEST_HAL_BAD_VERSION}, uint32_t{NDA_TEST_HAL_BAD_SIZE},
		uint32_t{NDA_TEST_HAL_BAD_COUNT}, uint32_t{NDA_TEST_HAL_BAD_RAM},
		uint32_t{NDA_TEST_HAL_BAD_ALIGN}));

/* The second look at a table finds nothing, which is no proof that it still holds. */
class KmodAscendBadSecond : public KmodAscend,
			    public testing::WithParamInterface<uint32_t> {};

TEST_P(KmodAscendBadSecond, TheRangeCountsAsFreed)
{
	Memory memory(*hal_, 2 * page);
	hal_->set(page, GetParam());
	EXPECT_EQ(make_export(nda_, memory.va(), 2 * page).error, ECANCELED);
	EXPECT_EQ(hal_->counts().tables, 0u);
	EXPECT_EQ(count(nda_, NDA_COUNT_TABLES), 0u);
}
INSTANTIATE_TEST_SUITE_P(Tables, KmodAscendBadSecond,
	testing::Values(
		uint32_t{NDA_TEST_HAL_BAD_SECOND}, uint32_t{NDA_TEST_HAL_NO_SECOND}));

/* ---- Calls that come late ---- */

/* Frees: the table has left the driver's list, and is called back about once it is put. */
class LateFree {
public:
	LateFree(const Hal &hal, const Memory &memory)
		: thread_([&memory] { EXPECT_EQ(memory.free(), 0); })
	{
		while (!hal.counts().calling)
			;
	}
	~LateFree() { thread_.join(); }

private:
	std::thread thread_;
};

TEST_F(KmodAscend, ACallAboutATableThatIsBackIsCounted)
{
	hal_->set(page, NDA_TEST_HAL_LATE);
	Memory memory(*hal_, page);
	Export made = make(memory.va(), page);
	uint64_t before = count(nda_, NDA_COUNT_STALE);
	{
		LateFree late(*hal_, memory);
		drop(&made);
	}
	EXPECT_EQ(count(nda_, NDA_COUNT_STALE), before + 1);
}

TEST_F(KmodAscend, UnloadingWaitsForSuchACall)
{
	for (uint32_t us = 0; us < 2000; us += 100) {
		/* So much later than the table is put. */
		hal_->set(page, NDA_TEST_HAL_LATE, 0, us);
		Memory memory(*hal_, page);
		Export made = make(memory.va(), page);
		{
			LateFree late(*hal_, memory);
			drop(&made);
			EXPECT_EQ(remove_idle_module("nda_ascend"), 0);
		}
		EXPECT_EQ(load_module("nda_ascend"), 0);
	}
}

/* ---- A table that the driver does not take back ---- */

/* Alone: the module stays. */
TEST_F(KmodAscendKept, TheModuleStaysForTheDriverToCall)
{
	hal_->set(page, NDA_TEST_HAL_KEEPS);
	Memory memory(*hal_, page);
	Export made = make(memory.va(), page);
	uint64_t before = count(nda_, NDA_COUNT_STALE);
	drop(&made);
	EXPECT_EQ(remove_module("nda_ascend"), EWOULDBLOCK);
	EXPECT_EQ(memory.free(), 0);
	EXPECT_EQ(count(nda_, NDA_COUNT_STALE), before + 1);
}

} // namespace
