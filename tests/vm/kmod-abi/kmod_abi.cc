/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The ioctls of /dev/nda as a careless or hostile program calls them. */
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <random>

#include <tests/vm/kmod_rig.h>

namespace {

using namespace nda::test;

const size_t page = static_cast<size_t>(getpagesize());

/* Each call with a structure that is good but for what a test spoils. */
struct Call {
	const char *name;
	unsigned long request;
	size_t size;
	/* Bytes, from and to, that must be zero. */
	std::vector<std::pair<size_t, size_t>> reserved;
	/* Where its flags are, and how many of the low bits are known. */
	size_t flags;
	unsigned int known;
};

const Call calls[] = {
	{"QUERY", NDA_IOC_QUERY, 40, {{14, 16}, {22, 24}}, 0, 0},
	{"HOST_PIN", NDA_IOC_HOST_PIN, 40, {{22, 24}, {36, 40}}, 28, 0},
	{"EXPORT", NDA_IOC_EXPORT, 48, {{28, 32}}, 16, 2},
	{"DB_MAP", NDA_IOC_DB_MAP, 48, {{22, 24}, {36, 40}}, 28, 2},
	{"DESTROY", NDA_IOC_DESTROY, 8, {}, 4, 0},
	{"STATUS", NDA_IOC_STATUS, 24, {}, 0, 0},
	{"EVENT", NDA_IOC_EVENT, 8, {}, 4, 0},
};

std::string name_of(const testing::TestParamInfo<Call> &info)
{
	return info.param.name;
}

class KmodAbi : public KmodTest {
protected:
	/* The structure of @of, with room behind it. */
	std::vector<uint8_t> good(const Call &of) const { return good(of, memory_.va()); }
	static std::vector<uint8_t> good(const Call &of, uint64_t va)
	{
		std::vector<uint8_t> bytes(of.size + 64);
		nda_ioc_host_pin pin = {};
		nda_ioc_export range = {};
		nda_ioc_db_map doorbell = {};
		nda_ioc_event event = {-1, 0};

		pin.va = range.va = doorbell.va = va;
		pin.len = range.len = doorbell.len = page;
		pin.dev = doorbell.npu = bdf_of("vm_edu0");
		pin.access = NDA_ACCESS_READ;
		doorbell.src_fd = -1;
		if (of.request == NDA_IOC_HOST_PIN)
			memcpy(bytes.data(), &pin, sizeof(pin));
		if (of.request == NDA_IOC_EXPORT)
			memcpy(bytes.data(), &range, sizeof(range));
		if (of.request == NDA_IOC_DB_MAP)
			memcpy(bytes.data(), &doorbell, sizeof(doorbell));
		if (of.request == NDA_IOC_EVENT)
			memcpy(bytes.data(), &event, sizeof(event));
		return bytes;
	}
	static unsigned long sized(unsigned long request, size_t size)
	{
		return (request & ~(0x3ffful << 16)) | size << 16;
	}
	/* What the kernel says of a good structure: memory that is no NPU's, or no handle.
	 */
	int usual(const Call &of) const
	{
		std::vector<uint8_t> bytes = good(of);

		return call(nda_, of.request, bytes.data());
	}

	Pages memory_{page};
	Fd nda_ = open_nda();
};

class KmodAbiCall : public KmodAbi, public testing::WithParamInterface<Call> {};
INSTANTIATE_TEST_SUITE_P(Calls, KmodAbiCall, testing::ValuesIn(calls), name_of);

TEST_P(KmodAbiCall, AGoodOneIsNotInvalid)
{
	int error = usual(GetParam());

	EXPECT_TRUE(error == 0 || error == EOPNOTSUPP || error == ENOENT)
		<< strerror(error);
}

TEST_P(KmodAbiCall, ASizeBelowTheFirstVersionsIsInvalid)
{
	const Call &of = GetParam();

	for (size_t size = 0; size < of.size; size++) {
		std::vector<uint8_t> bytes = good(of);
		EXPECT_EQ(call(nda_, sized(of.request, size), bytes.data()), EINVAL)
			<< size;
	}
}

TEST_P(KmodAbiCall, ALongerOneWithZerosIsTaken)
{
	const Call &of = GetParam();
	std::vector<uint8_t> bytes = good(of);
	int want = usual(of);

	EXPECT_EQ(call(nda_, sized(of.request, of.size + 64), bytes.data()), want);
	EXPECT_TRUE(std::all_of(bytes.begin() + static_cast<ptrdiff_t>(of.size),
		bytes.end(), [](uint8_t byte) { return byte == 0; }));
}

TEST_P(KmodAbiCall, ALongerOneWithAnythingElseIsTooBig)
{
	const Call &of = GetParam();

	for (size_t at = of.size; at < of.size + 64; at++) {
		std::vector<uint8_t> bytes = good(of);
		bytes[at] = 1;
		EXPECT_EQ(call(nda_, sized(of.request, of.size + 64), bytes.data()), E2BIG)
			<< at;
	}
}

TEST_P(KmodAbiCall, EveryReservedByteMustBeZero)
{
	const Call &of = GetParam();

	for (auto [from, to] : of.reserved)
		for (size_t at = from; at < to; at++) {
			std::vector<uint8_t> bytes = good(of);
			bytes[at] = 0x80;
			EXPECT_EQ(call(nda_, of.request, bytes.data()), EINVAL) << at;
		}
}

TEST_P(KmodAbiCall, UnknownFlagsAreInvalid)
{
	const Call &of = GetParam();

	for (unsigned int bit = of.known; of.flags && bit < 32; bit++) {
		std::vector<uint8_t> bytes = good(of);
		uint32_t flags = 1u << bit;
		memcpy(bytes.data() + of.flags, &flags, sizeof(flags));
		EXPECT_EQ(call(nda_, of.request, bytes.data()), EINVAL) << bit;
	}
}

TEST_P(KmodAbiCall, AStructureThatIsNotMappedIsAFault)
{
	const Call &of = GetParam();
	Pages two(2 * page);
	munmap(two.data() + page, page);

	EXPECT_EQ(call(nda_, of.request, static_cast<void *>(nullptr)), EFAULT);
	EXPECT_EQ(call(nda_, of.request, reinterpret_cast<void *>(1ull << 63)), EFAULT);
	EXPECT_EQ(call(nda_, of.request, two.data() + page - of.size + 1), EFAULT);
}

TEST_F(KmodAbi, OtherNumbersAndTypesAreNotIoctls)
{
	uint8_t bytes[64] = {};

	for (unsigned int number = NDA_IOC_LAST + 1; number < 256; number++)
		EXPECT_EQ(call(nda_, _IOC(3u, NDA_IOC_TYPE, number, 8u), bytes), ENOTTY)
			<< number;
	EXPECT_EQ(call(nda_, _IOWR(0xEA, 0, nda_ioc_query), bytes), ENOTTY);
}

/* ---- QUERY ---- */

class KmodQuery : public KmodAbi {
protected:
	int query(uint32_t what, uint32_t index = 0, const char *dev = nullptr,
		const char *peer = nullptr)
	{
		answer_ = {};
		answer_.what = what;
		answer_.index = index;
		if (dev)
			answer_.dev = bdf_of(dev);
		if (peer)
			answer_.peer = bdf_of(peer);
		return call(nda_, NDA_IOC_QUERY, &answer_);
	}
	nda_ioc_query answer_ = {};
};

TEST_F(KmodQuery, TellsTheVersionAndTheLastCall)
{
	EXPECT_EQ(query(NDA_QUERY_ABI), 0);
	EXPECT_EQ(answer_.value, 0x10000u);
	EXPECT_EQ(answer_.value2, 6u);
}

TEST_F(KmodQuery, PinningIsAlwaysThere)
{
	EXPECT_EQ(query(NDA_QUERY_FEATURES), 0);
	EXPECT_NE(answer_.value & NDA_FEATURE_HOST_PIN, 0u);
}

TEST_F(KmodQuery, EveryPartIsThereOrSaysWhyNot)
{
	for (uint32_t part = 0; part < NDA_PARTS; part++) {
		EXPECT_EQ(query(NDA_QUERY_PART, part), 0);
		EXPECT_EQ(answer_.value == 1, answer_.value2 == NDA_WHY_OK) << part;
		EXPECT_LE(answer_.value, 1u);
	}
	EXPECT_EQ(query(NDA_QUERY_PART, NDA_PARTS), ERANGE);
}

TEST_F(KmodQuery, CountsAndLimitsEndSomewhere)
{
	EXPECT_EQ(query(NDA_QUERY_LIMIT, NDA_LIMIT_OBJECTS), 0);
	EXPECT_EQ(answer_.value, 4096u);
	EXPECT_EQ(answer_.value2, 0u);
	EXPECT_EQ(query(NDA_QUERY_LIMIT, NDA_LIMITS), ERANGE);
	EXPECT_EQ(query(NDA_QUERY_COUNT, NDA_COUNTS), ERANGE);
	EXPECT_EQ(query(NDA_QUERY_COUNT, ~0u), ERANGE);
	EXPECT_EQ(query(~0u), EINVAL);
}

TEST_F(KmodQuery, TellsWhetherADeviceIsBehindAnIommu)
{
	const char *devices = getenv("vm_devices");
	uint64_t want = strcmp(devices, "pci") == 0 ? NDA_IOMMU_NONE : NDA_IOMMU_STRICT;
	/* Its domains do not say which they are: they are taken to be the worse. */
	if (want == NDA_IOMMU_STRICT && kernel_is("5.10"))
		want = NDA_IOMMU_LAZY;
	EXPECT_EQ(query(NDA_QUERY_IOMMU, 0, "vm_edu0"), 0);
	EXPECT_EQ(answer_.value, want);
	answer_.dev.bus = 0xee;
	EXPECT_EQ(call(nda_, NDA_IOC_QUERY, &answer_), ENODEV);
}

TEST_F(KmodQuery, WithoutADriverADeviceIsBehindNothing)
{
	EXPECT_EQ(query(NDA_QUERY_IOMMU, 0, "vm_hbm"), ENODEV);
}

TEST_F(KmodQuery, FunctionsOfTheRootBusMeetInTheHostBridge)
{
	EXPECT_EQ(query(NDA_QUERY_P2P, 0, "vm_edu0", "vm_hbm"), 0);
	EXPECT_EQ(answer_.value, ~0ull);
	EXPECT_EQ(query(NDA_QUERY_P2P, 0, "vm_edu0", "vm_edu0"), 0);
	EXPECT_EQ(answer_.value, 0u);
}

TEST_F(KmodQuery, FieldsThatAQuestionDoesNotHaveMustBeZero)
{
	EXPECT_EQ(query(NDA_QUERY_ABI, 1), EINVAL);
	EXPECT_EQ(query(NDA_QUERY_ABI, 0, "vm_edu0"), EINVAL);
	EXPECT_EQ(query(NDA_QUERY_IOMMU, 0, "vm_edu0", "vm_edu1"), EINVAL);
	EXPECT_EQ(query(NDA_QUERY_IOMMU, 1, "vm_edu0"), EINVAL);
}

/* ---- Handles ---- */

class KmodHandle : public KmodAbi {
protected:
	uint32_t pin() { return pin(memory_.va()); }
	uint32_t pin(uint64_t va)
	{
		nda_ioc_host_pin arg = {};

		arg.va = va;
		arg.len = 1;
		arg.dev = bdf_of("vm_edu0");
		arg.access = NDA_ACCESS_READ;
		error_ = call(nda_, NDA_IOC_HOST_PIN, &arg);
		return arg.handle;
	}
	static int destroy(int fd, uint32_t handle)
	{
		nda_ioc_destroy arg = {handle, 0};

		return call(fd, NDA_IOC_DESTROY, &arg);
	}
	static int status(int fd, uint32_t handle)
	{
		nda_ioc_status arg = {};

		arg.handle = handle;
		return call(fd, NDA_IOC_STATUS, &arg);
	}
	int error_ = 0;
};

TEST_F(KmodHandle, UnknownOnesAreNoEntries)
{
	for (uint32_t handle : {0u, 1u, 0x7fffffffu, 0x80000000u, ~0u}) {
		EXPECT_EQ(destroy(nda_, handle), ENOENT);
		EXPECT_EQ(status(nda_, handle), ENOENT);
	}
}

TEST_F(KmodHandle, ADestroyedOneIsGoneAndNotGivenOutNext)
{
	uint32_t first = pin();

	EXPECT_EQ(destroy(nda_, first), 0);
	EXPECT_EQ(destroy(nda_, first), ENOENT);
	EXPECT_EQ(status(nda_, first), ENOENT);
	EXPECT_NE(pin(), first);
	EXPECT_EQ(error_, 0);
}

TEST_F(KmodHandle, AnotherFilesAreNotOurs)
{
	Fd other = open_nda();
	uint32_t handle = pin();

	EXPECT_EQ(status(other, handle), ENOENT);
	EXPECT_EQ(destroy(other, handle), ENOENT);
	EXPECT_EQ(status(nda_, handle), 0);
}

TEST_F(KmodHandle, AFileHasAsManyAsItMayAndThenNoMore)
{
	/* A kernel that checks DMA counts no more than seven mappings of a page. */
	constexpr size_t most = 4096;
	Pages memory(most * page);
	uint32_t last = 0;

	for (size_t i = 0; i < most; i++)
		last = pin(memory.va() + i * page);
	EXPECT_EQ(error_, 0);
	pin();
	EXPECT_EQ(error_, EDQUOT);
	EXPECT_EQ(destroy(nda_, last), 0);
	pin();
	EXPECT_EQ(error_, 0);
}

TEST_F(KmodHandle, AnObjectCannotBeMappedWhereItsKindHasNoMapping)
{
	uint32_t handle = pin();
	off_t at = static_cast<off_t>(handle * page);

	EXPECT_EQ(mmap(nullptr, page, PROT_READ, MAP_SHARED, nda_, at), MAP_FAILED);
	EXPECT_EQ(errno, ENODEV);
	EXPECT_EQ(mmap(nullptr, page, PROT_READ, MAP_SHARED, nda_,
			  at + static_cast<off_t>(page)),
		MAP_FAILED);
	EXPECT_EQ(errno, EINVAL);
}

/* Sends @fd to another process, which asks for @handle and pins through it. */
TEST_F(KmodHandle, APassedDescriptorDestroysButMakesNothing)
{
	int pair[2];
	uint32_t handle = pin();
	ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	Fd ours(pair[0]), theirs(pair[1]);
	char control[CMSG_SPACE(sizeof(int))] = {}, byte = 0;
	iovec io = {&byte, 1};
	msghdr message = {};
	message.msg_iov = &io;
	message.msg_iovlen = 1;
	message.msg_control = control;
	message.msg_controllen = sizeof(control);
	cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	int fd = nda_;
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	ASSERT_EQ(sendmsg(ours, &message, 0), 1);

	EXPECT_EQ(in_child([&] {
		int passed = -1;
		nda_ioc_host_pin arg = {};

		if (recvmsg(theirs, &message, 0) != 1)
			return 1;
		memcpy(&passed, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(passed));
		arg.va = memory_.va();
		arg.len = 1;
		arg.dev = bdf_of("vm_edu0");
		arg.access = NDA_ACCESS_READ;
		if (call(passed, NDA_IOC_HOST_PIN, &arg) != EPERM)
			return 2;
		if (mmap(nullptr, page, PROT_READ, MAP_SHARED, passed, 0) != MAP_FAILED ||
			errno != EPERM)
			return 3;
		return destroy(passed, handle);
	}),
		0);
	EXPECT_EQ(status(nda_, handle), ENOENT);
}

/* ---- EVENT ---- */

TEST_F(KmodAbi, AnEventIsSignalledByAnEventfdAlone)
{
	Fd signal(eventfd(0, 0));
	nda_ioc_event event = {nda_, 0};

	EXPECT_EQ(call(nda_, NDA_IOC_EVENT, &event), EBADF);
	event.eventfd = 1000;
	EXPECT_EQ(call(nda_, NDA_IOC_EVENT, &event), EBADF);
	event.eventfd = -2;
	EXPECT_EQ(call(nda_, NDA_IOC_EVENT, &event), EINVAL);
	for (int fd : {int{signal}, int{signal}, -1, -1}) {
		event.eventfd = fd;
		EXPECT_EQ(call(nda_, NDA_IOC_EVENT, &event), 0);
	}
}

/* ---- Anything ---- */

/* Calls with bytes of which some mean something; what matters is that the kernel lives, and
 * that closing ends all. */
TEST_F(KmodAbi, RandomCallsLeaveNothing)
{
	const char *seed_text = getenv("NDA_SEED");
	const uint32_t seed = seed_text ? static_cast<uint32_t>(atoi(seed_text)) : 1;
	std::mt19937 random(seed);
	/* Here, too, no page is mapped more than seven times. */
	constexpr size_t pages = 4096;
	Pages memory(pages * page);
	std::vector<Fd> dmabufs;
	auto word = [&](std::initializer_list<uint64_t> values) {
		return *(values.begin() + random() % values.size());
	};
	RecordProperty("seed", static_cast<int>(seed));

	for (size_t i = 0; i < 20000; i++) {
		const Call &of = calls[random() % std::size(calls)];
		const uint64_t va = memory.va() + i % pages * page;
		std::vector<uint8_t> bytes = good(of, va);
		for (uint32_t n = random() % 4; n > 0; n--) {
			uint64_t value = word({0, 1, 2, 3, page, va, va + 1, ~0ull,
				1ull << 63, 0x7fffffff, 0x80000000, random()});
			size_t width = size_t{1} << random() % 4;
			size_t at = random() % (of.size / width) * width;
			memcpy(bytes.data() + at, &value, width);
		}
		/* A number that is a descriptor would be closed with the export's answer.
		 */
		size_t size = random() % 8 ? of.size : random() % (of.size + 64);
		int error = call(nda_, sized(of.request, size), bytes.data());
		if (error == 0 && of.request == NDA_IOC_EXPORT) {
			nda_ioc_export answer;
			memcpy(&answer, bytes.data(), sizeof(answer));
			dmabufs.emplace_back(answer.fd);
		}
	}
	dmabufs.clear();
	nda_.reset();
}

} // namespace
