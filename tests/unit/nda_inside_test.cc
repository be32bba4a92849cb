// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Small parts of libnda that the map hides: error detail, growing structures, guard, heap,
// callbacks of ibv_extend.
#include <cstring>
#include <gtest/gtest.h>
#include <new>
#include <random>
#include <stdexcept>
#include <thread>

#include <nda/npu.h>

#include "lib/nda/attr.h"
#include "lib/nda/error.h"
#include "lib/nda/guard.h"
#include "lib/nda/heap.h"
#include "lib/nda/log.h"
#include "lib/nda/nic.h"
#include "lib/nda/npu.h"
#include "lib/nda/soft.h"

namespace nda {
namespace {

// ---- Error detail --------------------------------------------------------------------

TEST(ErrorDetail, NamesObjectBeforeCause)
{
	EXPECT_EQ(fail(-EINVAL, "port is %s", "down"), -EINVAL);
	EXPECT_EQ(fail_in(-EINVAL, "QP %d to RTR", 12), -EINVAL);
	EXPECT_EQ(fail_in(-EINVAL, "PE 3"), -EINVAL);
	EXPECT_STREQ(nda_error_detail(), "PE 3: QP 12 to RTR: port is down");
}

TEST(ErrorDetail, TakesTheErrnosTextWhereThereIsNoOther)
{
	clear_error_detail();
	EXPECT_EQ(fail_in(-ENOENT, "thing"), -ENOENT);
	EXPECT_STREQ(nda_error_detail(), "thing: No such file or directory");
	EXPECT_EQ(fail_errno(-EACCES, "open %s", "x"), -EACCES);
	EXPECT_STREQ(nda_error_detail(), "open x: Permission denied");
}

TEST(ErrorDetail, BelongsToItsThread)
{
	fail(-EINVAL, "mine");
	std::thread([] {
		EXPECT_STREQ(nda_error_detail(), "");
		fail(-EINVAL, "theirs");
	}).join();
	EXPECT_STREQ(nda_error_detail(), "mine");
}

TEST(ErrorDetail, IsCutWhereItIsTooLong)
{
	const std::string longer(3000, 'x');
	fail(-EINVAL, "%s", longer.c_str());
	EXPECT_EQ(strlen(nda_error_detail()), error_detail_bytes - 1);
	fail_in(-EINVAL, "head");
	EXPECT_EQ(strlen(nda_error_detail()), error_detail_bytes - 1);
	EXPECT_EQ(strncmp(nda_error_detail(), "head: xxx", 9), 0);
	EXPECT_STREQ(nda_error_detail() + error_detail_bytes - 4, "...");
	fail_in(-EINVAL, "%s", longer.c_str());
	EXPECT_EQ(strlen(nda_error_detail()), error_detail_bytes - 1);
}

// ---- Structures that grow ------------------------------------------------------------

struct Attr {
	uint64_t comp_mask;
	uint32_t a, b;
};

TEST(ReadAttr, GivesDefaultsForNullAndForWhatIsMissing)
{
	Attr out = {9, 9, 9};
	EXPECT_EQ(read_attr<Attr>(out, nullptr, 0, 0, "x"), 0);
	EXPECT_EQ(out.a, 0u);
	const Attr in = {0, 5, 6};
	EXPECT_EQ(read_attr(out, &in, 12, 0, "x"), 0);
	EXPECT_EQ(out.a, 5u);
	EXPECT_EQ(out.b, 0u);
}

TEST(ReadAttr, RefusesUnknownBitsSizesAndTails)
{
	struct {
		Attr attr;
		uint8_t tail[4];
	} in = {{2, 5, 6}, {}};
	Attr out;
	EXPECT_EQ(read_attr(out, &in.attr, sizeof(Attr), 1, "x"), -EINVAL);
	EXPECT_STREQ(nda_error_detail(), "x: comp_mask has unknown bits 0x2");
	EXPECT_EQ(read_attr(out, &in.attr, sizeof(Attr), 2, "x"), 0);
	EXPECT_EQ(read_attr(out, &in.attr, 7, 2, "x"), -EINVAL);
	EXPECT_EQ(read_attr(out, &in.attr, 4097, 2, "x"), -EINVAL);
	EXPECT_EQ(read_attr(out, &in.attr, SIZE_MAX, 2, "x"), -EINVAL);
	EXPECT_EQ(read_attr(out, &in.attr, sizeof(Attr) + 4, 2, "x"), 0);
	in.tail[3] = 1;
	EXPECT_EQ(read_attr(out, &in.attr, sizeof(Attr) + 4, 2, "x"), -EINVAL);
	EXPECT_STREQ(nda_error_detail(),
		"x: attr byte 19 is set, which this version does not know");
}

TEST(WriteInfo, FillsAsFarAsTheCallerHasRoom)
{
	const Attr info = {1, 2, 3};
	uint8_t out[32];
	memset(out, 0xa5, sizeof(out));
	EXPECT_EQ(write_info(reinterpret_cast<Attr *>(out), 12, info, "x"), 0);
	EXPECT_EQ(out[8], 2);
	EXPECT_EQ(out[12], 0xa5);
	EXPECT_EQ(write_info(reinterpret_cast<Attr *>(out), 20, info, "x"), 0);
	EXPECT_EQ(out[12], 3);
	EXPECT_EQ(out[19], 0);
	EXPECT_EQ(out[20], 0xa5);
	EXPECT_EQ(write_info<Attr>(nullptr, 12, info, "x"), -EINVAL);
	EXPECT_EQ(write_info(reinterpret_cast<Attr *>(out), 0, info, "x"), -EINVAL);
	EXPECT_EQ(write_info(reinterpret_cast<Attr *>(out), 4097, info, "x"), -EINVAL);
}

// ---- Guard ---------------------------------------------------------------------------

TEST(Guard, MapsWhatIsThrown)
{
	EXPECT_EQ(guard([]() -> int { throw std::bad_alloc(); }), -ENOMEM);
	EXPECT_STREQ(nda_error_detail(), "out of memory");
	EXPECT_EQ(guard([]() -> int { throw std::runtime_error("odd"); }), -EIO);
	EXPECT_STREQ(nda_error_detail(), "internal error: odd");
	errno = 0;
	EXPECT_EQ(
		guard_pointer<int>([](int *&) -> int { throw std::bad_alloc(); }), nullptr);
	EXPECT_EQ(errno, ENOMEM);
}

// ---- Heap ----------------------------------------------------------------------------

TEST(Heap, FillsToTheLastByteAndUsesGapsAgain)
{
	Heap heap(16384);
	uint64_t a, b, c, d;
	ASSERT_EQ(heap.alloc(8192, a), 0);
	ASSERT_EQ(heap.alloc(4096, b), 0);
	ASSERT_EQ(heap.alloc(4096, c), 0);
	EXPECT_EQ(heap.alloc(1, d), -ENOMEM);
	ASSERT_EQ(heap.free(b), 0);
	ASSERT_EQ(heap.alloc(64, d), 0);
	EXPECT_EQ(d, b);
	ASSERT_EQ(heap.alloc(64, d), 0);
	EXPECT_EQ(d, b + 64);
	EXPECT_EQ(heap.alloc(4096, d), -ENOMEM);
	EXPECT_EQ(heap.free(b + 1), -EINVAL);
}

// Against a model that marks each line of the heap.
TEST(Heap, NeverOverlapsAndIsDeterministic)
{
	constexpr uint64_t size = 1 << 20;
	Heap one(size), two(size);
	std::vector<bool> used(size / 64);
	std::vector<std::pair<uint64_t, uint64_t>> live;
	std::mt19937 random(1);
	for (int i = 0; i < 20000; i++) {
		if (!live.empty() && random() % 5 < 2) {
			const size_t pick = random() % live.size();
			EXPECT_EQ(one.free(live[pick].first), 0);
			EXPECT_EQ(two.free(live[pick].first), 0);
			for (uint64_t at = 0; at < live[pick].second; at += 64)
				used[(live[pick].first + at) / 64] = false;
			live.erase(live.begin() + static_cast<long>(pick));
			continue;
		}
		const uint64_t bytes = 1 + random() % (random() % 8 ? 500 : 20000);
		uint64_t a = 0, b = 0;
		const int rc = one.alloc(bytes, a);
		ASSERT_EQ(two.alloc(bytes, b), rc);
		if (rc) {
			EXPECT_EQ(rc, -ENOMEM);
			continue;
		}
		ASSERT_EQ(a, b);
		ASSERT_EQ(a % (bytes >= 4096 ? 4096 : 64), 0u);
		ASSERT_LE(a + bytes, size);
		for (uint64_t at = 0; at < bytes; at += 64) {
			ASSERT_FALSE(used[(a + at) / 64]);
			used[(a + at) / 64] = true;
		}
		live.emplace_back(a, bytes);
	}
}

// ---- Callbacks -----------------------------------------------------------------------

class Callbacks : public testing::Test {
protected:
	static std::shared_ptr<Npu> open()
	{
		nda_npu_attr attr = {};
		attr.memory_bytes = 1 << 20;
		std::shared_ptr<Npu> npu;
		EXPECT_EQ(Npu::open("soft", &attr, sizeof(attr), npu), 0) << error_detail();
		return npu;
	}
};

TEST_F(Callbacks, OfEachNpuReachThatNpu)
{
	const auto a = open(), b = open();
	ASSERT_NE(a->ops(), b->ops());
	void *in_a = a->ops()->alloc(64), *in_b = b->ops()->alloc(64);
	const auto address = [](void *p) { return reinterpret_cast<uint64_t>(p); };
	EXPECT_TRUE(a->contains(address(in_a), 64));
	EXPECT_FALSE(a->contains(address(in_b), 64));
	EXPECT_TRUE(b->contains(address(in_b), 64));
	a->ops()->free(in_a);
	b->ops()->free(in_b);
}

TEST_F(Callbacks, CopyInAllDirections)
{
	const auto npu = open();
	const ibv_extend_ops *ops = npu->ops();
	char *x = static_cast<char *>(ops->alloc(64)),
	     *y = static_cast<char *>(ops->alloc(64));
	char out[8] = {};
	EXPECT_EQ(ops->memcpy_s(x, 64, "abcdefg", 8, MEMCPY_DIRECTION_HOST_TO_DEVICE), 0);
	EXPECT_EQ(ops->memcpy_s(y, 64, x, 8, MEMCPY_DIRECTION_DEVICE_TO_DEVICE), 0);
	ops->memset_s(y, 'z', 2);
	EXPECT_EQ(ops->memcpy_s(out, 8, y, 8, MEMCPY_DIRECTION_DEVICE_TO_HOST), 0);
	EXPECT_STREQ(out, "zzcdefg");
	char host[8];
	EXPECT_EQ(ops->memcpy_s(host, 8, out, 8, MEMCPY_DIRECTION_HOST_TO_HOST), 0);
	EXPECT_STREQ(host, "zzcdefg");
	EXPECT_EQ(ops->memcpy_s(host, 7, out, 8, MEMCPY_DIRECTION_HOST_TO_HOST), -EINVAL);
	EXPECT_EQ(ops->memcpy_s(host, 8, out, 8, 4), -EINVAL);
	ops->free(x);
	ops->free(y);
	ops->free(nullptr);
}

TEST_F(Callbacks, AreLimitedAndUsedAgain)
{
	std::vector<std::shared_ptr<Npu>> npus;
	for (uint32_t i = 0; i < npus_max; i++)
		npus.push_back(open());
	std::shared_ptr<Npu> more;
	nda_npu_attr attr = {};
	attr.memory_bytes = 1 << 20;
	EXPECT_EQ(Npu::open("soft", &attr, sizeof(attr), more), -ENOSPC);
	EXPECT_NE(std::string(error_detail()).find("16 NPUs are open"), std::string::npos)
		<< error_detail();
	const ibv_extend_ops *const ops = npus[7]->ops();
	npus[7].reset();
	EXPECT_EQ(ops->alloc(64), nullptr); // nobody's
	EXPECT_EQ(ops->memcpy_s(nullptr, 0, nullptr, 0, 0), -ENODEV);
	more = open();
	EXPECT_EQ(more->ops(), ops);
}

// ---- The soft library ----------------------------------------------------------------

TEST(Soft, OfThisVersionIsFoundAndLoadedOnce)
{
	const SoftApi *a = nullptr, *b = nullptr;
	ASSERT_EQ(load_soft(a), 0) << error_detail();
	ASSERT_EQ(load_soft(b), 0);
	EXPECT_EQ(a, b);
	EXPECT_EQ(a->version, NDA_SOFT_API_VERSION);
}

// ---- Log -----------------------------------------------------------------------------

// What this program writes to stderr, running two of its tests with that level: one that
// fails a call, and one that loads the soft library. The level is read once, hence a
// process.
std::string logged_at(const std::string &level)
{
	const std::string command = "NDA_LOG=" + level +
		" /proc/$PPID/exe --gtest_filter='ErrorDetail.Takes*:Soft.*' "
		"2>&1 >/dev/null";
	FILE *out = popen(command.c_str(), "r");
	std::string text;
	char buffer[512];
	size_t n;
	while (out && (n = fread(buffer, 1, sizeof(buffer), out)) > 0)
		text.append(buffer, n);
	EXPECT_EQ(out ? pclose(out) : -1, 0) << text;
	return text;
}

TEST(Log, SaysAsMuchAsItIsAskedFor)
{
	const auto has = [](const std::string &text, const char *what) {
		return text.find(what) != std::string::npos;
	};
	EXPECT_EQ(logged_at("loud"), "");
	const std::string err = logged_at("err"), info = logged_at("info");
	EXPECT_TRUE(has(err, "]: err: open x: Permission denied\n")) << err;
	EXPECT_FALSE(has(err, "]: info: ")) << err;
	EXPECT_TRUE(has(info, "]: err: open x: Permission denied\n")) << info;
	EXPECT_TRUE(has(info, "]: info: soft: loaded ")) << info;
}

TEST(Log, KeepsErrno)
{
	errno = ENOENT;
	log_line(LogLevel::debug, "written whatever the level: the caller asks first");
	EXPECT_EQ(errno, ENOENT);
}

// ---- A NIC that no extension driver serves -------------------------------------------

struct StrangeDevice { // as far as the library looks at it
	ibv_device device;
	const char *const *ops;
};

const char *const strange_name = "strange_nic";
StrangeDevice strange_device = {{}, &strange_name};
ibv_context strange_context = {};
ibv_pd strange_pd = {};
int released = 0;

SoftApi strange_api()
{
	strange_context.device = &strange_device.device;
	SoftApi api = {};
	api.error_detail = [] { return ""; };
	api.nic_open = [](const nda_soft_nic_attr *) { return &strange_context; };
	api.nic_close = [](ibv_context *) { return released++, 0; };
	api.alloc_pd = [](ibv_context *) { return &strange_pd; };
	api.dealloc_pd = [](ibv_pd *) { return released++, 0; };
	return api;
}

TEST(Nic, WithoutADriverTellsWhatTheSearchMet)
{
	const SoftApi api = strange_api();
	set_soft_for_test(&api);
	setenv("IBV_EXTEND_DRIVERS", "nda_no_such_driver", 1);
	released = 0;
	std::shared_ptr<Nic> nic;
	EXPECT_EQ(Nic::open("soft:hns1825", nullptr, 0, nic), -ENODEV);
	const std::string detail = error_detail();
	set_soft_for_test(nullptr);
	unsetenv("IBV_EXTEND_DRIVERS");
	EXPECT_EQ(detail.rfind("nic soft:hns1825: no extension driver for it: ", 0), 0u)
		<< detail;
	EXPECT_NE(detail.find("nda_no_such_driver"), std::string::npos) << detail;
	EXPECT_EQ(nic, nullptr);
	EXPECT_EQ(released, 2);
}

} // namespace
} // namespace nda
