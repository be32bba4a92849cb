// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// By which way a NIC comes to reach NPU memory, over RDMA devices, a /dev/nda and an NPU
// that are all made up.
#include <cstdlib>
#include <dirent.h>
#include <tuple>

#include <nda/group.h>

#include "tests/mock/nda_fake_npu.h"
#include "tests/mock/nda_verbs.h"

namespace nda::test {
namespace {

FakeVerbs::State &rdma()
{
	return FakeVerbs::state();
}

FakeKernel::State &module()
{
	return FakeKernel::state();
}

int open_descriptors()
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;
	while (dir && readdir(dir))
		n++;
	closedir(dir);
	return n;
}

bool detail_has(const char *text)
{
	return strstr(nda_error_detail(), text) != nullptr;
}

// One of the environment, as long as the test runs.
class Variable {
public:
	explicit Variable(const char *value) { setenv("NDA_MR_WAY", value, 1); }
	~Variable() { unsetenv("NDA_MR_WAY"); }
};

constexpr uint64_t heap_bytes = 1 << 20;
constexpr uint32_t access_all = NDA_ACCESS_LOCAL_WRITE | NDA_ACCESS_REMOTE_WRITE |
	NDA_ACCESS_REMOTE_READ | NDA_ACCESS_REMOTE_ATOMIC;

// An NPU with memory of its own kind, and a NIC.
class Memory : public testing::Test {
protected:
	void SetUp() override { open({}); }
	void TearDown() override
	{
		EXPECT_EQ(nda_nic_close(nic), 0);
		EXPECT_EQ(base ? nda_npu_free(npu, base) : 0, 0);
		EXPECT_EQ(nda_npu_close(npu), 0);
		EXPECT_EQ(open_descriptors(), descriptors);
	}

	void open(const FakeNpu::Nature &nature)
	{
		descriptors = open_descriptors();
		npu = FakeNpu::create(nature, object);
		nic = nda_nic_open("rxe0", nullptr, 0);
		ASSERT_NE(nic, nullptr) << nda_error_detail();
	}
	// All addresses there are belong to an NPU that the kernel knows.
	void kernel_knows_memory() { module().npu_memory = {{0, UINT64_MAX}}; }
	void memory_is_the_npus() { rdma().device_memory = {{0, UINT64_MAX / 2}}; }

	nda_mr *mr_at(uint64_t offset, uint64_t size)
	{
		EXPECT_EQ(base ? 0 : nda_npu_alloc(npu, 1 << 20, &base), 0);
		return nda_mr_register(nic, npu, base + offset, size, access_all);
	}
	nda_mr_info info_of(const nda_mr *mr)
	{
		nda_mr_info info = {};
		EXPECT_EQ(nda_mr_query(mr, &info, sizeof(info)), 0);
		return info;
	}
	static nda_mr_info tried()
	{
		nda_mr_info info = {};
		EXPECT_EQ(nda_mr_tried(&info, sizeof(info)), 0);
		return info;
	}
	static uint32_t reason(const nda_mr_info &info, nda_mr_way way)
	{
		return info.steps[way - 1].reason;
	}
	static int error(const nda_mr_info &info, nda_mr_way way)
	{
		return info.steps[way - 1].error;
	}

	// A group of one PE.
	nda_group *create_group(uint32_t way = NDA_MR_ANY)
	{
		nda_bootstrap alone = {};
		alone.n_pes = 1;
		alone.allgather = [](void *, const void *in, void *out, size_t size) {
			memcpy(out, in, size);
			return 0;
		};
		alone.barrier = [](void *) { return 0; };
		nda_group_attr attr = {};
		attr.heap_bytes = heap_bytes;
		attr.heap_way = way;
		return nda_group_create(&alone, npu, &nic, 1, &attr, sizeof(attr));
	}

	FakeVerbs verbs;
	FakeKernel kernel;
	FakeNpu *object = nullptr;
	nda_npu *npu = nullptr;
	nda_nic *nic = nullptr;
	uint64_t base = 0;
	int descriptors = 0;
};

// ---- Each way and each of its failures -------------------------------------------------

class PagesMemory : public Memory {
protected:
	void SetUp() override
	{
		FakeNpu::Nature nature;
		nature.has_host_pages = true;
		open(nature);
	}
};

TEST_F(PagesMemory, GoesByPlainRegistration)
{
	kernel_knows_memory();
	nda_mr *mr = mr_at(64, 4096);
	ASSERT_NE(mr, nullptr) << nda_error_detail();
	const nda_mr_info info = info_of(mr);
	EXPECT_EQ(info.way, uint32_t(NDA_MR_PAGES));
	EXPECT_EQ(reason(info, NDA_MR_PAGES), uint32_t(NDA_MR_TAKEN));
	EXPECT_EQ(reason(info, NDA_MR_DMABUF), uint32_t(NDA_MR_NOT_NEEDED));
	EXPECT_EQ(reason(info, NDA_MR_HOST), uint32_t(NDA_MR_NOT_NEEDED));
	EXPECT_EQ(module().open_files, 0) << "nobody needs the kernel for it";
	EXPECT_EQ(nda_mr_check(mr), 0);
	EXPECT_EQ(nda_mr_deregister(mr), 0);
}

TEST_F(PagesMemory, BeyondTheLimitOfLockedMemorySaysSo)
{
	module().open_error = ENOENT;
	rdma().failed = "reg_mr";
	EXPECT_EQ(mr_at(0, 4096), nullptr);
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_TRUE(detail_has("ordinary pages: Cannot allocate memory (too much for "
			       "RLIMIT_MEMLOCK, ulimit -l?)"))
		<< nda_error_detail();
	EXPECT_EQ(reason(tried(), NDA_MR_PAGES), uint32_t(NDA_MR_LOCKED_LIMIT));
	EXPECT_EQ(error(tried(), NDA_MR_PAGES), -ENOMEM);
	EXPECT_EQ(reason(tried(), NDA_MR_PEER), uint32_t(NDA_MR_IS_PAGES));
	EXPECT_EQ(create_group(), nullptr);
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_EQ(reason(tried(), NDA_MR_HOST), uint32_t(NDA_MR_HEAPS_ONLY));
}

TEST_F(PagesMemory, ThatTheKernelExportsIsTakenWherePagesAreRefused)
{
	kernel_knows_memory();
	memory_is_the_npus();
	rdma().dmabuf_error = 0;
	nda_mr *mr = mr_at(0, 4096);
	ASSERT_NE(mr, nullptr) << nda_error_detail();
	EXPECT_EQ(info_of(mr).way, uint32_t(NDA_MR_DMABUF));
	EXPECT_EQ(reason(info_of(mr), NDA_MR_PAGES), uint32_t(NDA_MR_NIC_REFUSED));
	EXPECT_EQ(error(info_of(mr), NDA_MR_PAGES), -EFAULT);
	EXPECT_EQ(nda_mr_deregister(mr), 0);
}

TEST_F(Memory, IsReachedByDmabufAtAnyOffset)
{
	kernel_knows_memory();
	memory_is_the_npus();
	rdma().dmabuf_error = 0;
	const uint64_t page = host_page_bytes();
	for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, page - 1, page,
		     uint64_t{65537}, uint64_t{0x1234}}) {
		nda_mr *mr = mr_at(offset, 5000);
		ASSERT_NE(mr, nullptr) << nda_error_detail();
		const FakeVerbs::DmabufMr &seen = rdma().dmabuf_mrs.back();
		EXPECT_EQ(seen.addr, base + offset);
		EXPECT_EQ(seen.iova, base + offset);
		EXPECT_EQ(seen.size, 5000u);
		EXPECT_EQ(seen.offset, offset % page);
		EXPECT_EQ(info_of(mr).way, uint32_t(NDA_MR_DMABUF));
		EXPECT_EQ(reason(info_of(mr), NDA_MR_PAGES), uint32_t(NDA_MR_NOT_PAGES));
		EXPECT_EQ(module().objects.size(), 1u);
		EXPECT_EQ(nda_mr_deregister(mr), 0);
		EXPECT_EQ(module().objects.size(), 0u);
	}
}

// The NIC has its own hold of it; the object stays for what the kernel has to tell.
TEST_F(Memory, NeedsNoDescriptorOfTheDmabuf)
{
	kernel_knows_memory();
	rdma().dmabuf_error = 0;
	nda_mr *first = mr_at(0, 4096);
	const int before = open_descriptors();
	nda_mr *second = mr_at(4096, 4096);
	ASSERT_TRUE(first && second) << nda_error_detail();
	EXPECT_EQ(open_descriptors(), before);
	EXPECT_EQ(module().objects.size(), 2u);
	EXPECT_EQ(nda_mr_deregister(second), 0);
	EXPECT_EQ(nda_mr_deregister(first), 0);
}

TEST_F(Memory, OfANicThatCannotLetGoIsExportedForKeeps)
{
	kernel_knows_memory();
	memory_is_the_npus();
	rdma().dmabuf_error = 0;
	rdma().dmabuf_pins = true;
	nda_mr *mr = mr_at(0, 4096);
	ASSERT_NE(mr, nullptr) << nda_error_detail();
	EXPECT_EQ(info_of(mr).way, uint32_t(NDA_MR_DMABUF));
	ASSERT_EQ(module().exports.size(), 2u);
	EXPECT_EQ(module().exports[1].flags, uint32_t(NDA_EXPORT_ALLOW_PINNED));
	EXPECT_EQ(module().objects.size(), 1u);
	EXPECT_EQ(nda_mr_deregister(mr), 0);
}

TEST_F(Memory, ThatMayNotBeExportedForKeepsSaysSo)
{
	kernel_knows_memory();
	memory_is_the_npus();
	rdma().dmabuf_error = 0;
	rdma().dmabuf_pins = true;
	module().pinned_error = EPERM;
	EXPECT_EQ(mr_at(0, 4096), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT_EQ(reason(tried(), NDA_MR_DMABUF), uint32_t(NDA_MR_NO_DMABUF));
	EXPECT_TRUE(detail_has("takes no dma-bufs")) << nda_error_detail();
	EXPECT_TRUE(detail_has("importers that cannot let go are not allowed here; module "
			       "nda takes them with sink_remap=1"))
		<< nda_error_detail();
}

struct NoDmabuf {
	const char *name;
	void (*make)();
	uint32_t reason;
	int error;
	const char *text;
};

class WithoutDmabuf : public Memory, public testing::WithParamInterface<NoDmabuf> {};

// Neither does peer memory stand in: the whole story is told.
TEST_P(WithoutDmabuf, IsRefusedWithTheReason)
{
	kernel_knows_memory();
	memory_is_the_npus();
	GetParam().make();
	EXPECT_EQ(mr_at(0, 4096), nullptr);
	EXPECT_EQ(reason(tried(), NDA_MR_DMABUF), GetParam().reason);
	EXPECT_EQ(error(tried(), NDA_MR_DMABUF), GetParam().error);
	EXPECT_EQ(tried().way, uint32_t(NDA_MR_ANY));
	EXPECT_TRUE(detail_has(GetParam().text)) << nda_error_detail();
	EXPECT_TRUE(detail_has("peer memory: Bad address")) << nda_error_detail();
	EXPECT_TRUE(module().objects.empty());
}

// Whatever it was, peer memory is tried.
TEST_P(WithoutDmabuf, GoesByPeerMemory)
{
	kernel_knows_memory();
	memory_is_the_npus();
	rdma().peer_client = true;
	GetParam().make();
	nda_mr *mr = mr_at(0, 4096);
	ASSERT_NE(mr, nullptr) << nda_error_detail();
	EXPECT_EQ(info_of(mr).way, uint32_t(NDA_MR_PEER));
	EXPECT_EQ(reason(info_of(mr), NDA_MR_DMABUF), GetParam().reason);
	EXPECT_TRUE(module().objects.empty());
	EXPECT_EQ(nda_mr_deregister(mr), 0);
}

INSTANTIATE_TEST_SUITE_P(All, WithoutDmabuf,
	testing::Values(
		NoDmabuf{"NoDevice", [] { module().open_error = ENOENT; }, NDA_MR_NO_DEVICE,
			-ENOENT,
			"a dma-buf: /dev/nda: No such file or directory (module nda "
			"is not loaded)"},
		NoDmabuf{"NoPermission", [] { module().open_error = EACCES; },
			NDA_MR_DEVICE_DENIED, -EACCES, "/dev/nda: Permission denied"},
		NoDmabuf{"OtherVersion", [] { module().abi = 2 << 16; },
			NDA_MR_DEVICE_FAILED, -EPROTONOSUPPORT, "version 2.0"},
		NoDmabuf{"NoExport", [] { module().features = 0; }, NDA_MR_NO_EXPORT, 0,
			"a dma-buf: /dev/nda makes none on this kernel"},
		NoDmabuf{"NoBackend", [] { module().npu_memory.clear(); },
			NDA_MR_UNKNOWN_MEMORY, -EOPNOTSUPP,
			"module nda_ascend is not loaded"},
		NoDmabuf{"Freed",
			[] { module().refused[_IOC_NR(NDA_IOC_EXPORT)] = ECANCELED; },
			NDA_MR_FREED, -ECANCELED, "it was freed meanwhile"},
		NoDmabuf{"TooMany", [] { module().max_objects = 0; }, NDA_MR_EXPORT_FAILED,
			-EDQUOT, "too many objects of this process"},
		NoDmabuf{"Alignment",
			[] { module().refused[_IOC_NR(NDA_IOC_EXPORT)] = EINVAL; },
			NDA_MR_EXPORT_FAILED, -EINVAL, "Invalid argument"},
		NoDmabuf{"NotOfTheNic", [] { rdma().dmabuf_error = EOPNOTSUPP; },
			NDA_MR_NO_DMABUF, -EOPNOTSUPP, "takes no dma-bufs"},
		NoDmabuf{"NotOfTheProvider", [] { rdma().dmabuf_error = EPROTONOSUPPORT; },
			NDA_MR_NO_DMABUF, -EPROTONOSUPPORT, "takes no dma-bufs"},
		NoDmabuf{"NotOfLibibverbs", [] { rdma().dmabuf_error = ENOSYS; },
			NDA_MR_NO_DMABUF, -ENOSYS, "takes no dma-bufs"},
		NoDmabuf{"Refused", [] { rdma().dmabuf_error = EINVAL; },
			NDA_MR_NIC_REFUSED, -EINVAL, "a dma-buf: Invalid argument"}),
	[](const auto &p) { return p.param.name; });

TEST_F(Memory, NamesThePeerMemoryModuleThatIsMissing)
{
	memory_is_the_npus();
	module().why[NDA_PART_PEERMEM] = NDA_WHY_NOT_LOADED;
	EXPECT_EQ(mr_at(0, 4096), nullptr);
	EXPECT_EQ(reason(tried(), NDA_MR_PEER), uint32_t(NDA_MR_NO_PEERMEM));
	EXPECT_EQ(error(tried(), NDA_MR_PEER), -EFAULT);
	EXPECT_TRUE(detail_has("peer memory: Bad address (module nda_peermem is not "
			       "loaded)"))
		<< nda_error_detail();
	EXPECT_EQ(reason(tried(), NDA_MR_HOST), uint32_t(NDA_MR_HEAPS_ONLY));
	// Of a client that is there, the NIC's word counts.
	module().why[NDA_PART_PEERMEM] = NDA_WHY_OK;
	EXPECT_EQ(mr_at(0, 4096), nullptr);
	EXPECT_EQ(reason(tried(), NDA_MR_PEER), uint32_t(NDA_MR_NIC_REFUSED));
	// Without the core's interface there can be no client at all.
	rdma().peer_client = true;
	module().why[NDA_PART_PEERMEM] = NDA_WHY_NO_PEER_API;
	EXPECT_EQ(mr_at(0, 4096), nullptr);
	EXPECT_EQ(reason(tried(), NDA_MR_PEER), uint32_t(NDA_MR_NO_PEER_API));
	EXPECT_TRUE(detail_has("no interface for peer memory")) << nda_error_detail();
}

// The vendor's may be there, of which /dev/nda knows nothing.
TEST_F(Memory, GoesByAnotherPeerMemoryClient)
{
	memory_is_the_npus();
	rdma().peer_client = true;
	module().why[NDA_PART_PEERMEM] = NDA_WHY_NOT_LOADED;
	nda_mr *mr = mr_at(0, 4096);
	ASSERT_NE(mr, nullptr) << nda_error_detail();
	EXPECT_EQ(info_of(mr).way, uint32_t(NDA_MR_PEER));
	EXPECT_EQ(nda_mr_deregister(mr), 0);
}

class OtherAddresses : public Memory {
protected:
	void SetUp() override
	{
		FakeNpu::Nature nature;
		nature.unified_addresses = false;
		open(nature);
	}
};

// The host may have something else at that address.
TEST_F(OtherAddresses, AreNeverGivenToTheKernel)
{
	kernel_knows_memory();
	rdma().dmabuf_error = 0;
	EXPECT_EQ(mr_at(0, 4096), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT_EQ(reason(tried(), NDA_MR_DMABUF), uint32_t(NDA_MR_OTHER_ADDRESSES));
	EXPECT_EQ(reason(tried(), NDA_MR_PEER), uint32_t(NDA_MR_OTHER_ADDRESSES));
	EXPECT_EQ(module().open_files, 0);
}

// ---- Forced ways -----------------------------------------------------------------------

TEST_F(PagesMemory, GoesByTheWayOfTheEnvironment)
{
	kernel_knows_memory();
	rdma().dmabuf_error = 0;
	const Variable variable("dmabuf");
	nda_mr *mr = mr_at(0, 4096);
	ASSERT_NE(mr, nullptr) << nda_error_detail();
	EXPECT_EQ(info_of(mr).way, uint32_t(NDA_MR_DMABUF));
	EXPECT_EQ(reason(info_of(mr), NDA_MR_PAGES), uint32_t(NDA_MR_EXCLUDED));
	EXPECT_EQ(nda_mr_deregister(mr), 0);
	rdma().dmabuf_error = EOPNOTSUPP;
	EXPECT_EQ(mr_at(0, 4096), nullptr) << "no other way is taken";
	EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(PagesMemory, OfAWayThatThereIsNotIsRefused)
{
	const Variable variable("rdma");
	EXPECT_EQ(mr_at(0, 4096), nullptr);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_STREQ(
		nda_error_detail(), "NDA_MR_WAY=rdma: it is pages, dmabuf, peer or host");
	EXPECT_EQ(create_group(), nullptr);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(create_group(NDA_MR_SOFT), nullptr);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_TRUE(detail_has("heap_way 5")) << nda_error_detail();
}

TEST_F(PagesMemory, HasTheHeapInHostMemoryIfAskedTo)
{
	const Variable variable("host");
	nda_group *group = create_group();
	ASSERT_NE(group, nullptr) << nda_error_detail();
	nda_mr_info info = {};
	EXPECT_EQ(nda_group_heap_query(group, 0, &info, sizeof(info)), 0);
	EXPECT_EQ(info.way, uint32_t(NDA_MR_HOST));
	EXPECT_GE(nda_group_heap_base(group), FakeNpu::host_shift);
	// Other memory goes as always.
	nda_mr *mr = mr_at(0, 4096);
	ASSERT_NE(mr, nullptr) << nda_error_detail();
	EXPECT_EQ(info_of(mr).way, uint32_t(NDA_MR_PAGES));
	EXPECT_EQ(nda_mr_deregister(mr), 0);
	EXPECT_EQ(nda_group_destroy(group), 0);
}

// ---- Heaps -----------------------------------------------------------------------------

class Matrix : public Memory,
	       public testing::WithParamInterface<std::tuple<bool, bool, bool>> {
protected:
	void SetUp() override
	{
		FakeNpu::Nature nature;
		nature.takes_host_memory = std::get<2>(GetParam());
		open(nature);
	}
};

TEST_P(Matrix, TakesTheFirstWayThatWorks)
{
	const auto [dmabuf, peer, host] = GetParam();
	kernel_knows_memory();
	memory_is_the_npus();
	rdma().dmabuf_error = dmabuf ? 0 : EOPNOTSUPP;
	rdma().peer_client = peer;
	const nda_mr_way expected = dmabuf ? NDA_MR_DMABUF
		: peer                     ? NDA_MR_PEER
		: host                     ? NDA_MR_HOST
					   : NDA_MR_ANY;
	object->on_host_memory = [](uint64_t addr, uint64_t size) {
		rdma().device_memory = {{0, addr}, {addr + size, UINT64_MAX / 4}};
	};
	nda_group *group = create_group();
	nda_mr_info info = tried();
	if (expected == NDA_MR_ANY) {
		EXPECT_EQ(group, nullptr);
		EXPECT_EQ(errno, EOPNOTSUPP);
		EXPECT_EQ(reason(info, NDA_MR_HOST), uint32_t(NDA_MR_NOT_MAPPED));
		EXPECT_TRUE(detail_has("takes no dma-bufs")) << nda_error_detail();
		EXPECT_TRUE(detail_has("peer memory: Bad address")) << nda_error_detail();
		EXPECT_TRUE(detail_has("host memory cannot be mapped to it"))
			<< nda_error_detail();
	} else {
		ASSERT_NE(group, nullptr) << nda_error_detail();
		EXPECT_EQ(nda_group_heap_query(group, 0, &info, sizeof(info)), 0);
		EXPECT_EQ(reason(info, expected), uint32_t(NDA_MR_TAKEN));
		EXPECT_EQ(nda_group_heap_query(group, 1, &info, sizeof(info)), -EINVAL);
	}
	EXPECT_EQ(info.way, uint32_t(expected));
	EXPECT_EQ(reason(info, NDA_MR_PAGES), uint32_t(NDA_MR_NOT_PAGES));
	if (!dmabuf) {
		EXPECT_EQ(reason(info, NDA_MR_DMABUF), uint32_t(NDA_MR_NO_DMABUF));
	}
	if (!dmabuf && !peer) {
		EXPECT_EQ(reason(info, NDA_MR_PEER), uint32_t(NDA_MR_NIC_REFUSED));
	}
	EXPECT_EQ(group ? nda_group_destroy(group) : 0, 0);
	EXPECT_EQ(object->allocations(), 0u);
}

INSTANTIATE_TEST_SUITE_P(All, Matrix,
	testing::Combine(testing::Bool(), testing::Bool(), testing::Bool()),
	[](const auto &p) {
		return std::string(std::get<0>(p.param) ? "Dmabuf" : "NoDmabuf") +
			(std::get<1>(p.param) ? "Peer" : "NoPeer") +
			(std::get<2>(p.param) ? "Host" : "NoHost");
	});

// ---- Revocation ------------------------------------------------------------------------

TEST_F(Memory, ThatIsTakenAwayIsReported)
{
	kernel_knows_memory();
	rdma().dmabuf_error = 0;
	nda_group *group = create_group();
	ASSERT_NE(group, nullptr) << nda_error_detail();
	const uint32_t heap = module().last_handle;
	nda_mr *mr = mr_at(0, 4096);
	ASSERT_NE(mr, nullptr) << nda_error_detail();
	const uint32_t alone = module().last_handle;
	nda_group_region *region = nullptr;
	ASSERT_EQ(nda_group_region_register(group, base, 4096, access_all, &region), 0)
		<< nda_error_detail();
	const uint32_t of_region = module().last_handle;
	uint8_t desc[NDA_REGION_DESC_BYTES];
	nda_mr_info info = {};
	EXPECT_EQ(nda_group_region_query(region, 0, &info, sizeof(info)), 0);
	EXPECT_EQ(info.way, uint32_t(NDA_MR_DMABUF));
	EXPECT_EQ(nda_group_region_query(region, 1, &info, sizeof(info)), -EINVAL);
	EXPECT_EQ(nda_group_check(group), 0);
	EXPECT_EQ(nda_mr_check(mr), 0);
	EXPECT_EQ(nda_group_region_check(region), 0);

	FakeKernel::revoke(of_region, NDA_REASON_FREED);
	EXPECT_EQ(nda_group_region_check(region), -ESTALE);
	EXPECT_STREQ(nda_error_detail(),
		"region: nic rxe0: memory: revoked: its owner freed the memory");
	EXPECT_EQ(nda_group_region_export(region, desc), -ESTALE);
	EXPECT_EQ(nda_group_check(group), 0) << "it does not stand on that";
	EXPECT_EQ(nda_mr_check(mr), 0);

	FakeKernel::revoke(alone, NDA_REASON_MM_EXIT);
	EXPECT_EQ(nda_mr_check(mr), -ESTALE);
	EXPECT_EQ(nda_group_repair(group), 0);

	FakeKernel::revoke(heap, NDA_REASON_UNPLUG);
	EXPECT_EQ(nda_group_check(group), -ESTALE);
	EXPECT_TRUE(detail_has("group: PE 0: heap: nic rxe0: memory: revoked: the device"))
		<< nda_error_detail();
	EXPECT_EQ(nda_group_repair(group), -ESTALE);

	EXPECT_EQ(nda_group_region_deregister(region), 0);
	EXPECT_EQ(nda_mr_deregister(mr), 0);
	EXPECT_EQ(nda_group_destroy(group), 0);
}

TEST_F(Memory, QueriesCheckTheirArguments)
{
	nda_mr_info info = {};
	EXPECT_EQ(nda_mr_query(nullptr, &info, sizeof(info)), -EINVAL);
	EXPECT_EQ(nda_mr_check(nullptr), -EINVAL);
	EXPECT_EQ(nda_mr_tried(nullptr, sizeof(info)), -EINVAL);
	EXPECT_EQ(nda_mr_tried(&info, 0), -EINVAL);
	EXPECT_EQ(nda_group_check(nullptr), -EINVAL);
	EXPECT_EQ(nda_group_heap_query(nullptr, 0, &info, sizeof(info)), -EINVAL);
	EXPECT_EQ(nda_group_region_query(nullptr, 0, &info, sizeof(info)), -EINVAL);
	EXPECT_EQ(nda_group_region_check(nullptr), -EINVAL);
}

// ---- Failures --------------------------------------------------------------------------

// Of each call of the kernel's and of libibverbs, in turn, with every way there is open.
TEST_F(Memory, LeavesNothingWhicheverCallFails)
{
	kernel_knows_memory();
	rdma().dmabuf_error = 0;
	const auto body = [&] {
		nda_group *group = create_group();
		nda_mr *mr = mr_at(1, 4096);
		EXPECT_EQ(mr ? nda_mr_deregister(mr) : 0, 0);
		EXPECT_EQ(group ? nda_group_destroy(group) : 0, 0);
		return group && mr;
	};
	ASSERT_TRUE(body()) << nda_error_detail();
	const int live = rdma().live, open_now = open_descriptors();
	long *const counts[][2] = {
		{&module().calls, &module().fail_at}, {&rdma().calls, &rdma().fail_at}};
	for (const auto &[calls, fail_at] : counts) {
		long n = 0;
		do {
			*calls = 0;
			*fail_at = ++n;
			body();
			EXPECT_EQ(rdma().live, live) << "call " << n;
			EXPECT_EQ(open_descriptors(), open_now) << "call " << n;
			EXPECT_EQ(object->allocations(), 1u) << "call " << n;
			module().objects.clear(); // DESTROY itself may have failed
		} while (*calls >= n && n < 200);
		EXPECT_GE(n, 5);
		EXPECT_LT(n, 200) << "no end";
		*fail_at = 0;
	}
}

} // namespace
} // namespace nda::test
