// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Doorbells through the kernel's modules, over modules, RDMA devices and an NPU that are
// all made up.
#include <nda/channel.h>

#include "tests/mock/nda_fake_npu.h"
#include "tests/mock/nda_verbs.h"

namespace nda::test {
namespace {

FakeKernel::State &module()
{
	return FakeKernel::state();
}

bool detail_has(const char *text)
{
	return strstr(nda_error_detail(), text) != nullptr;
}

class KernelDoorbells : public testing::Test {
protected:
	void SetUp() override { open(Npu::Doorbells::any); }
	void TearDown() override
	{
		EXPECT_EQ(nda_nic_close(nic), 0);
		EXPECT_EQ(nda_npu_close(npu), 0);
	}
	void open(Npu::Doorbells doorbells)
	{
		FakeNpu::Nature nature;
		nature.maps_host_io = true;
		nature.doorbells = doorbells;
		npu = FakeNpu::create(nature, object);
		nic = nda_nic_open("rxe0", nullptr, 0);
		ASSERT_NE(nic, nullptr) << nda_error_detail();
	}
	static doorbell_map_desc at(uint64_t hva, uint64_t size = 8)
	{
		doorbell_map_desc desc = {};
		desc.hva = hva;
		desc.size = size;
		desc.type = DOORBELL_MAP_MODE_HOST_VA;
		return desc;
	}
	uint64_t map(doorbell_map_desc desc)
	{
		return uint64_t(nda_npu_ops(npu)->db_mmap(&desc));
	}
	int unmap(uint64_t addr, doorbell_map_desc desc)
	{
		return nda_npu_ops(npu)->db_unmap(reinterpret_cast<void *>(addr), &desc);
	}
	nda_channel_info info_of(nda_channel *ch)
	{
		nda_channel_info info = {};
		EXPECT_EQ(nda_channel_query(ch, &info, sizeof(info)), 0);
		return info;
	}

	const uint64_t page = 0x7000 * host_page_bytes();
	FakeVerbs verbs;
	FakeKernel kernel;
	FakeNpu *object = nullptr;
	nda_npu *npu = nullptr;
	nda_nic *nic = nullptr;
};

// ---- Registers -------------------------------------------------------------------------

TEST_F(KernelDoorbells, AreMappedByTheKernelsMappingOfTheirPage)
{
	module().doorbell_pages = {page};
	const uint64_t first = map(at(page + 0x40));
	ASSERT_NE(first, 0u) << nda_error_detail();
	ASSERT_EQ(object->registers.size(), 1u);
	const uint64_t seen = object->registers[0];
	EXPECT_NE(seen, page + 0x40);
	EXPECT_EQ(seen % host_page_bytes(), 0x40u);
	EXPECT_EQ(module().mappings, 1);
	const uint64_t second = map(at(page + 0x80));
	ASSERT_NE(second, 0u);
	EXPECT_EQ(object->registers[1], seen + 0x40) << "one mapping for a page";
	EXPECT_EQ(module().mappings, 1);
	EXPECT_EQ(unmap(first, at(page + 0x40)), 0);
	EXPECT_EQ(module().mappings, 1);
	EXPECT_EQ(unmap(second, at(page + 0x80)), 0);
	EXPECT_EQ(module().mappings, 0);
	EXPECT_TRUE(module().objects.empty());
}

TEST_F(KernelDoorbells, ThatTheKernelRefusesAreMappedWithoutIt)
{
	const uint64_t addr = map(at(page));
	ASSERT_NE(addr, 0u) << nda_error_detail();
	EXPECT_EQ(object->registers[0], page);
	// What the kernel would do by now changes nothing while the page is mapped.
	module().doorbell_pages = {page};
	EXPECT_EQ(map(at(page)), addr) << "the same register has the same address";
	EXPECT_EQ(unmap(addr, at(page)), 0);
	EXPECT_EQ(unmap(addr, at(page)), 0);
	EXPECT_TRUE(object->registers.empty());
	const uint64_t anew = map(at(page));
	EXPECT_NE(object->registers[0], page);
	EXPECT_EQ(unmap(anew, at(page)), 0);
}

TEST_F(KernelDoorbells, WithoutTheModuleAreMappedAsEver)
{
	module().open_error = ENOENT;
	module().doorbell_pages = {page};
	const uint64_t addr = map(at(page));
	ASSERT_NE(addr, 0u) << nda_error_detail();
	EXPECT_EQ(object->registers[0], page);
	EXPECT_EQ(unmap(addr, at(page)), 0);
}

TEST_F(KernelDoorbells, ThatSpanPagesAreMappedWithoutTheKernel)
{
	module().doorbell_pages = {page};
	const doorbell_map_desc wide = at(page + host_page_bytes() - 8, 16);
	const uint64_t addr = map(wide);
	ASSERT_NE(addr, 0u) << nda_error_detail();
	EXPECT_EQ(object->registers[0], wide.hva);
	EXPECT_EQ(unmap(addr, wide), 0);
}

TEST_F(KernelDoorbells, ThatTheNpuCannotMapLeaveNothing)
{
	module().doorbell_pages = {page};
	object->map_error = -EIO;
	EXPECT_EQ(map(at(page)), 0u);
	EXPECT_EQ(errno, EIO);
	EXPECT_EQ(module().mappings, 0);
	EXPECT_TRUE(module().objects.empty());
}

TEST_F(KernelDoorbells, ThatAreTakenAwayAreReported)
{
	module().doorbell_pages = {page};
	const uint64_t addr = map(at(page));
	ASSERT_NE(addr, 0u);
	EXPECT_EQ(object->check_doorbells(), 0);
	FakeKernel::revoke(module().last_handle, NDA_REASON_UNMAPPED);
	EXPECT_EQ(object->check_doorbells(), -ESTALE);
	EXPECT_TRUE(detail_has("a page of doorbells: revoked: the NIC's doorbells were "
			       "unmapped"))
		<< nda_error_detail();
	EXPECT_EQ(unmap(addr, at(page)), 0);
	EXPECT_EQ(object->check_doorbells(), 0);
}

// ---- Words -----------------------------------------------------------------------------

TEST_F(KernelDoorbells, OfSoftRoceAreWatchedByTheKernel)
{
	FakeVerbs::state().software_doorbell = true;
	module().soft_open_error = 0;
	nda_channel *ch = nda_channel_create(nic, npu, nullptr, 0);
	ASSERT_NE(ch, nullptr) << nda_error_detail();
	EXPECT_EQ(info_of(ch).doorbell, uint32_t(NDA_DOORBELL_KERNEL));
	ASSERT_EQ(module().bound.size(), 1u);
	const nda_soft_ioc_bind &bound = module().bound.begin()->second;
	EXPECT_EQ(bound.device, 7u);
	EXPECT_EQ(bound.qpn, 17u);
	EXPECT_EQ(bound.va % 64, 0u);
	EXPECT_EQ(nda_channel_destroy(ch), 0);
	EXPECT_TRUE(module().bound.empty());
}

TEST_F(KernelDoorbells, OfSoftRoceAreProxiedWhereTheKernelDoesNotWatch)
{
	FakeVerbs::state().software_doorbell = true;
	const auto is_proxied = [&] {
		nda_channel *ch = nda_channel_create(nic, npu, nullptr, 0);
		EXPECT_NE(ch, nullptr) << nda_error_detail();
		const bool proxied =
			ch && info_of(ch).doorbell == uint32_t(NDA_DOORBELL_PROXIED);
		EXPECT_EQ(ch ? nda_channel_destroy(ch) : 0, 0);
		return proxied;
	};
	EXPECT_TRUE(is_proxied()) << "no module";
	module().soft_open_error = EACCES;
	EXPECT_TRUE(is_proxied()) << "not root";
	module().soft_open_error = 0;
	module().soft_abi = 2 << 16;
	EXPECT_TRUE(is_proxied()) << "another version";
	module().soft_abi = NDA_SOFT_ABI_VERSION;
	module().kick = 0;
	EXPECT_TRUE(is_proxied()) << "an unfit kernel";
	module().kick = 1;
	module().bind_error = EPERM;
	EXPECT_TRUE(is_proxied()) << "refused";
	module().bind_error = 0;
	EXPECT_FALSE(is_proxied());
}

class OnlyKernelDoorbells : public KernelDoorbells {
protected:
	void SetUp() override { open(Npu::Doorbells::kernel); }
};

TEST_F(OnlyKernelDoorbells, AreRefusedWhereTheKernelHasNoPartInThem)
{
	FakeVerbs::state().software_doorbell = true;
	EXPECT_EQ(nda_channel_create(nic, npu, nullptr, 0), nullptr);
	EXPECT_EQ(errno, ENOENT);
	EXPECT_TRUE(detail_has("opened with NDA_NPU_DOORBELL_KERNEL"))
		<< nda_error_detail();
	EXPECT_TRUE(detail_has("module nda_soft is not loaded")) << nda_error_detail();
	EXPECT_EQ(map(at(page)), 0u);
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT_TRUE(detail_has("opened with NDA_NPU_DOORBELL_KERNEL"))
		<< nda_error_detail();
	module().doorbell_pages = {page};
	const uint64_t addr = map(at(page));
	ASSERT_NE(addr, 0u) << nda_error_detail();
	EXPECT_EQ(unmap(addr, at(page)), 0);
}

class OnlyProxiedDoorbells : public KernelDoorbells {
protected:
	void SetUp() override { open(Npu::Doorbells::proxy); }
};

TEST_F(OnlyProxiedDoorbells, AreNotTheKernels)
{
	FakeVerbs::state().software_doorbell = true;
	module().soft_open_error = 0;
	nda_channel *ch = nda_channel_create(nic, npu, nullptr, 0);
	ASSERT_NE(ch, nullptr) << nda_error_detail();
	EXPECT_EQ(info_of(ch).doorbell, uint32_t(NDA_DOORBELL_PROXIED));
	EXPECT_TRUE(module().bound.empty());
	EXPECT_EQ(nda_channel_destroy(ch), 0);
}

} // namespace
} // namespace nda::test
