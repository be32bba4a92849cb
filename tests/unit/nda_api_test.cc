// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The C API of NPUs, NICs, memory regions and channels, over the real software.
#include <cstdlib>
#include <cstring>

#include "tests/mock/nda_job.h"

namespace nda::test {
namespace {

nda_npu *open_npu(uint32_t flags = 0)
{
	nda_npu_attr attr = {};
	attr.memory_bytes = 16 << 20;
	attr.flags = flags;
	nda_npu *npu = nda_npu_open("soft", &attr, sizeof(attr));
	EXPECT_NE(npu, nullptr) << nda_error_detail();
	return npu;
}

bool detail_has(const char *text)
{
	return std::string(nda_error_detail()).find(text) != std::string::npos;
}

class Api : public testing::Test {
protected:
	Api() : npu(open_npu()), nic(nda_nic_open("soft:hns1825", nullptr, 0))
	{
		EXPECT_NE(nic, nullptr) << nda_error_detail();
	}
	~Api() override
	{
		EXPECT_EQ(nda_nic_close(nic), 0);
		EXPECT_EQ(nda_npu_close(npu), 0);
	}
	uint64_t alloc(uint64_t size)
	{
		uint64_t addr = 0;
		EXPECT_EQ(nda_npu_alloc(npu, size, &addr), 0) << nda_error_detail();
		return addr;
	}

	nda_npu *npu;
	nda_nic *nic;
};

// ---- Handles -------------------------------------------------------------------------

TEST_F(Api, RefusesNullHandles)
{
	uint64_t addr = 0;
	char byte = 0;
	uint8_t bytes[256];
	nda_queue queue;
	nda_nic_info info;
	EXPECT_EQ(nda_npu_close(nullptr), -EINVAL);
	EXPECT_STREQ(nda_error_detail(), "npu is NULL");
	EXPECT_EQ(nda_npu_alloc(nullptr, 1, &addr), -EINVAL);
	EXPECT_EQ(nda_npu_free(nullptr, addr), -EINVAL);
	EXPECT_EQ(nda_npu_write(nullptr, addr, &byte, 1), -EINVAL);
	EXPECT_EQ(nda_npu_read(nullptr, &byte, addr, 1), -EINVAL);
	EXPECT_EQ(nda_npu_memset(nullptr, addr, 0, 1), -EINVAL);
	EXPECT_EQ(nda_npu_launch(nullptr, nullptr, nullptr, 1), -EINVAL);
	EXPECT_EQ(nda_npu_wait(nullptr, 0), -EINVAL);
	errno = 0;
	EXPECT_EQ(nda_npu_ops(nullptr), nullptr);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(nda_nic_close(nullptr), -EINVAL);
	EXPECT_EQ(nda_nic_query(nullptr, &info, sizeof(info)), -EINVAL);
	EXPECT_EQ(nda_nic_gid(nullptr, 0, bytes), -EINVAL);
	EXPECT_EQ(nda_mr_register(nullptr, npu, 0, 1, 0), nullptr);
	EXPECT_EQ(nda_mr_register(nic, nullptr, 0, 1, 0), nullptr);
	EXPECT_EQ(nda_mr_deregister(nullptr), -EINVAL);
	EXPECT_EQ(nda_mr_lkey(nullptr), 0u);
	EXPECT_EQ(nda_mr_rkey(nullptr), 0u);
	EXPECT_EQ(nda_channel_create(nullptr, npu, nullptr, 0), nullptr);
	EXPECT_EQ(nda_channel_create(nic, nullptr, nullptr, 0), nullptr);
	EXPECT_EQ(nda_channel_export(nullptr, bytes), -EINVAL);
	EXPECT_EQ(nda_channel_connect(nullptr, bytes), -EINVAL);
	EXPECT_EQ(nda_channel_describe(nullptr, 0, 0, 0, &queue), -EINVAL);
	EXPECT_EQ(nda_channel_destroy(nullptr), -EINVAL);
	EXPECT_EQ(nda_group_destroy(nullptr), -EINVAL);
	EXPECT_EQ(nda_group_barrier(nullptr), -EINVAL);
	EXPECT_EQ(nda_group_pe(nullptr), 0u);
	EXPECT_EQ(nda_group_n_pes(nullptr), 0u);
	EXPECT_EQ(nda_group_heap_base(nullptr), 0u);
	EXPECT_EQ(nda_group_table(nullptr), 0u);
	EXPECT_EQ(nda_group_heap_alloc(nullptr, 1, &addr), -EINVAL);
	EXPECT_EQ(nda_group_heap_free(nullptr, 0), -EINVAL);
	EXPECT_EQ(nda_group_region_deregister(nullptr), -EINVAL);
	EXPECT_EQ(nda_group_region_export(nullptr, bytes), -EINVAL);
	EXPECT_EQ(nda_group_view_lend(nullptr, 0, &addr), -EINVAL);
	EXPECT_EQ(nda_group_view_return(nullptr, 0), -EINVAL);
}

TEST_F(Api, RefusesHandlesOfAnotherKind)
{
	EXPECT_EQ(nda_npu_close(reinterpret_cast<nda_npu *>(nic)), -EINVAL);
	EXPECT_TRUE(detail_has("is no npu"));
	EXPECT_EQ(nda_nic_close(reinterpret_cast<nda_nic *>(npu)), -EINVAL);
	EXPECT_EQ(nda_mr_deregister(reinterpret_cast<nda_mr *>(nic)), -EINVAL);
	EXPECT_EQ(nda_group_destroy(reinterpret_cast<nda_group *>(nic)), -EINVAL);
	EXPECT_EQ(nda_channel_destroy(reinterpret_cast<nda_channel *>(npu)), -EINVAL);
	alignas(16) char rubbish[64] = "no handle at all";
	EXPECT_EQ(nda_npu_close(reinterpret_cast<nda_npu *>(rubbish)), -EINVAL);
	EXPECT_EQ(nda_npu_close(reinterpret_cast<nda_npu *>(rubbish + 1)), -EINVAL);
}

// ---- NPU -----------------------------------------------------------------------------

TEST(NpuApi, RefusesWhatItCannotOpen)
{
	const auto error_of = [](const char *name, const nda_npu_attr *attr, size_t size) {
		errno = 0;
		EXPECT_EQ(nda_npu_open(name, attr, size), nullptr);
		return errno;
	};
	nda_npu_attr attr = {};
	EXPECT_EQ(error_of(nullptr, nullptr, 0), EINVAL);
	EXPECT_EQ(error_of("", nullptr, 0), ENODEV);
	EXPECT_EQ(error_of("warp", nullptr, 0), ENODEV);
	EXPECT_TRUE(detail_has("known are \"soft\"")) << nda_error_detail();
	EXPECT_EQ(error_of("ascend", nullptr, 0), ENODEV);
	attr.comp_mask = 1;
	EXPECT_EQ(error_of("soft", &attr, sizeof(attr)), EINVAL);
	attr = {};
	attr.flags = 1u << 31;
	EXPECT_EQ(error_of("soft", &attr, sizeof(attr)), EINVAL);
	attr = {};
	attr.reserved = 1;
	EXPECT_EQ(error_of("soft", &attr, sizeof(attr)), EINVAL);
	attr = {};
	EXPECT_EQ(error_of("soft", &attr, 1), EINVAL);
	attr.memory_bytes = UINT64_MAX;
	EXPECT_NE(error_of("soft", &attr, sizeof(attr)), 0);
	EXPECT_TRUE(detail_has("npu soft: open, memory of")) << nda_error_detail();
}

TEST_F(Api, AllocatesAlignedMemory)
{
	EXPECT_EQ(alloc(1) % 64, 0u);
	EXPECT_EQ(alloc(4096) % 4096, 0u);
	EXPECT_EQ(alloc(5000) % 4096, 0u);
	uint64_t addr = 7;
	EXPECT_EQ(nda_npu_alloc(npu, 0, &addr), -EINVAL);
	EXPECT_EQ(nda_npu_alloc(npu, 1 << 30, &addr), -ENOMEM);
	EXPECT_TRUE(detail_has("alloc of 1073741824 bytes")) << nda_error_detail();
	EXPECT_EQ(nda_npu_alloc(npu, UINT64_MAX, &addr), -ENOMEM);
	EXPECT_EQ(nda_npu_alloc(npu, 64, nullptr), -EINVAL);
	EXPECT_EQ(addr, 7u);
}

TEST_F(Api, MovesBytesBetweenHostAndNpu)
{
	const uint64_t addr = alloc(100);
	EXPECT_EQ(nda_npu_memset(npu, addr, 0x42, 100), 0);
	EXPECT_EQ(nda_npu_write(npu, addr + 10, "hello", 5), 0);
	char out[20] = {};
	EXPECT_EQ(nda_npu_read(npu, out, addr + 8, 9), 0);
	EXPECT_EQ(memcmp(out, "BBhelloBB", 9), 0);
	EXPECT_EQ(nda_npu_write(npu, addr, nullptr, 0), 0);
	EXPECT_EQ(nda_npu_write(npu, addr, nullptr, 1), -EINVAL);
	EXPECT_EQ(nda_npu_read(npu, nullptr, addr, 1), -EINVAL);
	EXPECT_NE(nda_npu_write(npu, 64, "x", 1), 0);
	EXPECT_NE(nda_npu_read(npu, out, UINT64_MAX - 3, 8), 0);
	EXPECT_EQ(nda_npu_free(npu, addr), 0);
	EXPECT_EQ(nda_npu_free(npu, addr), -EINVAL);
	EXPECT_EQ(nda_npu_free(npu, addr + 1), -EINVAL);
}

void counting_kernel(const nda_core *core, void *arg)
{
	__atomic_fetch_add(
		static_cast<uint64_t *>(arg) + core->index, core->count, __ATOMIC_RELAXED);
}

TEST_F(Api, RunsAKernelOnEachCore)
{
	uint64_t counts[5] = {};
	EXPECT_EQ(nda_npu_wait(npu, 0), -EINVAL);
	ASSERT_EQ(nda_npu_launch(npu, counting_kernel, counts, 4), 0) << nda_error_detail();
	EXPECT_EQ(nda_npu_wait(npu, generous_ms), 0);
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(counts[i], 4u);
	EXPECT_EQ(counts[4], 0u);
	EXPECT_EQ(nda_npu_launch(npu, nullptr, nullptr, 1), -EINVAL);
	EXPECT_EQ(nda_npu_launch(npu, counting_kernel, counts, 0), -EINVAL);
	EXPECT_EQ(nda_npu_launch(npu, counting_kernel, counts, 49), -EINVAL);
}

void gated_kernel(const nda_core *, void *arg)
{
	while (!__atomic_load_n(static_cast<uint32_t *>(arg), __ATOMIC_ACQUIRE)) {}
}

TEST_F(Api, RunsOneKernelAtATimeAndWaitsWithALimit)
{
	uint32_t gate = 0;
	ASSERT_EQ(nda_npu_launch(npu, gated_kernel, &gate, 1), 0);
	EXPECT_EQ(nda_npu_wait(npu, 0), -ETIMEDOUT);
	EXPECT_EQ(nda_npu_wait(npu, 20), -ETIMEDOUT);
	EXPECT_EQ(nda_npu_launch(npu, gated_kernel, &gate, 1), -EBUSY);
	EXPECT_EQ(nda_npu_close(npu), -EBUSY);
	__atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
	EXPECT_EQ(nda_npu_wait(npu, -1), 0);
	EXPECT_EQ(nda_npu_wait(npu, -1), -EINVAL);
}

// ---- NIC and regions -----------------------------------------------------------------

TEST(NicApi, RefusesWhatItCannotOpen)
{
	const auto error_of = [](const char *name, const nda_nic_attr *attr, size_t size) {
		errno = 0;
		EXPECT_EQ(nda_nic_open(name, attr, size), nullptr);
		return errno;
	};
	nda_nic_attr attr = {};
	EXPECT_EQ(error_of(nullptr, nullptr, 0), EINVAL);
	EXPECT_EQ(error_of("mlx5_0", nullptr, 0), ENODEV);
	EXPECT_EQ(error_of("soft:", nullptr, 0), ENODEV);
	EXPECT_EQ(error_of("soft:1900", nullptr, 0), ENODEV);
	EXPECT_TRUE(detail_has("known: hns1825")) << nda_error_detail();
	attr.mtu_bytes = 1500;
	EXPECT_EQ(error_of("soft:hns1825", &attr, sizeof(attr)), EINVAL);
	EXPECT_TRUE(detail_has("mtu_bytes 1500")) << nda_error_detail();
	attr = {};
	attr.reserved = 1;
	EXPECT_EQ(error_of("soft:hns1825", &attr, sizeof(attr)), EINVAL);
	attr = {};
	attr.inject = "no such fault";
	EXPECT_EQ(error_of("soft:hns1825", &attr, sizeof(attr)), EINVAL);
	EXPECT_TRUE(detail_has("no such fault")) << nda_error_detail();
	attr = {};
	attr.events = "/dev/null/log";
	EXPECT_EQ(error_of("soft:hns1825", &attr, sizeof(attr)), ENOTDIR);
	EXPECT_TRUE(detail_has("/dev/null/log")) << nda_error_detail();
	// An older caller has no events.
	nda_nic *nic = nda_nic_open("soft:hns1825", &attr, offsetof(nda_nic_attr, events));
	EXPECT_NE(nic, nullptr) << nda_error_detail();
	EXPECT_EQ(nda_nic_close(nic), 0);
}

TEST(NicApi, SaysWhatTheNicIs)
{
	nda_nic_attr attr = {};
	attr.mtu_bytes = 1024;
	nda_nic *nic = nda_nic_open("soft:hns1825", &attr, sizeof(attr));
	ASSERT_NE(nic, nullptr);
	nda_nic_info info = {};
	ASSERT_EQ(nda_nic_query(nic, &info, sizeof(info)), 0);
	EXPECT_STREQ(info.name, "soft:hns1825");
	EXPECT_EQ(info.format, uint32_t(NDA_FORMAT_HNS1825));
	EXPECT_EQ(info.port_active, 1u);
	EXPECT_EQ(info.active_mtu_bytes, 1024u);
	EXPECT_EQ(info.max_message_bytes, 0x7fffffffu);
	ASSERT_GE(info.gid_count, 2u);
	uint8_t gid[16] = {};
	EXPECT_EQ(nda_nic_gid(nic, 1, gid), 0);
	EXPECT_NE(gid[0], 0);
	EXPECT_EQ(nda_nic_gid(nic, info.gid_count, gid), -EINVAL);
	EXPECT_EQ(nda_nic_gid(nic, UINT32_MAX, gid), -EINVAL);
	EXPECT_EQ(nda_nic_gid(nic, 0, nullptr), -EINVAL);
	EXPECT_EQ(nda_nic_query(nic, nullptr, sizeof(info)), -EINVAL);
	EXPECT_EQ(nda_nic_query(nic, &info, 0), -EINVAL);
	EXPECT_EQ(nda_nic_close(nic), 0);
}

TEST_F(Api, RegistersNpuMemoryAlone)
{
	const uint64_t addr = alloc(8192);
	nda_mr *mr = nda_mr_register(nic, npu, addr + 100, 1000,
		NDA_ACCESS_LOCAL_WRITE | NDA_ACCESS_REMOTE_WRITE);
	ASSERT_NE(mr, nullptr) << nda_error_detail();
	EXPECT_NE(nda_mr_lkey(mr), 0u);
	EXPECT_NE(nda_mr_rkey(mr), 0u);
	EXPECT_EQ(nda_mr_deregister(mr), 0);
	const auto error_of = [&](uint64_t a, uint64_t size, uint32_t access) {
		errno = 0;
		EXPECT_EQ(nda_mr_register(nic, npu, a, size, access), nullptr);
		return errno;
	};
	EXPECT_EQ(error_of(addr, 0, NDA_ACCESS_LOCAL_WRITE), EINVAL);
	EXPECT_EQ(error_of(addr, UINT64_MAX, NDA_ACCESS_LOCAL_WRITE), EINVAL);
	EXPECT_EQ(error_of(addr, 64, 16), EINVAL);
	EXPECT_EQ(error_of(addr, 64, NDA_ACCESS_REMOTE_WRITE), EINVAL);
	EXPECT_EQ(error_of(addr, 1 << 30, NDA_ACCESS_LOCAL_WRITE), EFAULT);
	EXPECT_EQ(
		error_of(reinterpret_cast<uint64_t>(&error_of), 8, NDA_ACCESS_LOCAL_WRITE),
		EFAULT);
}

TEST_F(Api, RegionsOutliveTheirNpuAndNic)
{
	nda_npu *other_npu = open_npu();
	nda_nic *other_nic = nda_nic_open("soft:hns1825", nullptr, 0);
	uint64_t addr = 0;
	ASSERT_EQ(nda_npu_alloc(other_npu, 64, &addr), 0);
	nda_mr *mr =
		nda_mr_register(other_nic, other_npu, addr, 64, NDA_ACCESS_LOCAL_WRITE);
	ASSERT_NE(mr, nullptr);
	EXPECT_EQ(nda_nic_close(other_nic), 0);
	EXPECT_EQ(nda_npu_close(other_npu), 0);
	EXPECT_NE(nda_mr_lkey(mr), 0u);
	EXPECT_EQ(nda_mr_deregister(mr), 0);
}

// ---- Channels ------------------------------------------------------------------------

TEST_F(Api, ConnectsTwoChannelsAndDescribesThem)
{
	nda_channel_attr attr = {};
	attr.sq_depth = 128;
	attr.signal_every = 1;
	nda_channel *a = nda_channel_create(nic, npu, &attr, sizeof(attr));
	nda_channel *b = nda_channel_create(nic, npu, nullptr, 0);
	ASSERT_TRUE(a && b) << nda_error_detail();
	uint8_t desc_a[NDA_CHANNEL_DESC_BYTES], desc_b[NDA_CHANNEL_DESC_BYTES];
	ASSERT_EQ(nda_channel_export(a, desc_a), 0);
	ASSERT_EQ(nda_channel_export(b, desc_b), 0);
	nda_queue queue = {};
	EXPECT_EQ(nda_channel_describe(a, 0, 1, 2, &queue), -ENOTCONN);
	ASSERT_EQ(nda_channel_connect(a, desc_b), 0) << nda_error_detail();
	ASSERT_EQ(nda_channel_connect(b, desc_a), 0) << nda_error_detail();
	EXPECT_EQ(nda_channel_connect(a, desc_b), -EISCONN);
	ASSERT_EQ(nda_channel_describe(a, 0x1000, 0x11, 0x22, &queue), 0)
		<< nda_error_detail();
	EXPECT_EQ(queue.remote_delta, 0x1000u);
	EXPECT_EQ(queue.lkey, 0x11u);
	EXPECT_EQ(queue.rkey, 0x22u);
	EXPECT_EQ(queue.sq_depth, 128u);
	EXPECT_GE(queue.cq_depth, 128u);
	EXPECT_EQ(queue.cqe_stride, 64u);
	EXPECT_EQ(queue.valid, 1u);
	EXPECT_EQ(queue.state.head, 0u);
	// qpn, context size 1, cos 7, type 21; MTU 4096: shift 4, SGID index 1.
	EXPECT_EQ(queue.doorbell_template,
		(queue.qpn & 0xfffffu) | 1u << 20 | 7u << 24 | 21u << 27 | 4ull << 50 |
			1ull << 53);
	EXPECT_EQ(nda_channel_destroy(a), 0);
	EXPECT_EQ(nda_channel_destroy(b), 0);
}

// The side with the larger MTU gives way.
TEST_F(Api, UsesTheSmallerMtuOfBothSides)
{
	nda_nic_attr attr = {};
	attr.mtu_bytes = 512;
	nda_nic *small = nda_nic_open("soft:hns1825", &attr, sizeof(attr));
	nda_channel *a = nda_channel_create(nic, npu, nullptr, 0);
	nda_channel *b = nda_channel_create(small, npu, nullptr, 0);
	ASSERT_TRUE(a && b) << nda_error_detail();
	uint8_t desc_a[NDA_CHANNEL_DESC_BYTES], desc_b[NDA_CHANNEL_DESC_BYTES];
	ASSERT_EQ(nda_channel_export(a, desc_a), 0);
	ASSERT_EQ(nda_channel_export(b, desc_b), 0);
	EXPECT_EQ(nda_channel_connect(a, desc_b), 0) << nda_error_detail();
	EXPECT_EQ(nda_channel_connect(b, desc_a), 0) << nda_error_detail();
	for (nda_channel *ch : {a, b}) {
		nda_queue queue = {};
		ASSERT_EQ(nda_channel_describe(ch, 0, 1, 2, &queue), 0);
		EXPECT_EQ(queue.doorbell_template >> 50 & 7, 1u); // 512 is 256 << 1
		EXPECT_EQ(nda_channel_destroy(ch), 0);
	}
	EXPECT_EQ(nda_nic_close(small), 0);
}

TEST_F(Api, OutlivedByItsChannels)
{
	nda_npu *other_npu = open_npu();
	nda_nic *other_nic = nda_nic_open("soft:hns1825", nullptr, 0);
	nda_channel *ch = nda_channel_create(other_nic, other_npu, nullptr, 0);
	ASSERT_NE(ch, nullptr);
	EXPECT_EQ(nda_npu_close(other_npu), 0);
	EXPECT_EQ(nda_nic_close(other_nic), 0);
	uint8_t desc[NDA_CHANNEL_DESC_BYTES];
	EXPECT_EQ(nda_channel_export(ch, desc), 0);
	EXPECT_EQ(nda_channel_connect(ch, desc), 0) << nda_error_detail();
	EXPECT_EQ(nda_channel_destroy(ch), 0);
}

struct Damage {
	const char *name;
	size_t offset;
	uint8_t value;
	int error;
};

class ChannelDesc : public Api, public testing::WithParamInterface<Damage> {};

TEST_P(ChannelDesc, IsChecked)
{
	nda_channel *ch = nda_channel_create(nic, npu, nullptr, 0);
	ASSERT_NE(ch, nullptr);
	uint8_t desc[NDA_CHANNEL_DESC_BYTES], good[NDA_CHANNEL_DESC_BYTES];
	ASSERT_EQ(nda_channel_export(ch, good), 0);
	memcpy(desc, good, sizeof(desc));
	desc[GetParam().offset] = GetParam().value;
	EXPECT_EQ(nda_channel_connect(ch, desc), GetParam().error) << nda_error_detail();
	EXPECT_EQ(nda_channel_connect(ch, good), 0) << "it must not have been touched";
	EXPECT_EQ(nda_channel_destroy(ch), 0);
}

INSTANTIATE_TEST_SUITE_P(Fields, ChannelDesc,
	testing::Values(Damage{"Magic", 0, 0, -EPROTO},
		Damage{"Version", 4, 2, -EPROTONOSUPPORT},
		Damage{"Size", 6, 127, -EPROTONOSUPPORT}, Damage{"Format", 8, 9, -EINVAL},
		Damage{"Qpn", 15, 1, -EPROTO}, Damage{"Psn", 19, 1, -EPROTO},
		Damage{"MtuNoPowerOfTwo", 20, 1, -EPROTO},
		Damage{"MtuHuge", 23, 1, -EPROTO}, Damage{"RdAtomic", 40, 0, -EPROTO},
		Damage{"Reserved", 44, 1, -EPROTO}, Damage{"LastByte", 127, 1, -EPROTO}),
	[](const auto &p) { return std::string(p.param.name); });

struct BadChannel {
	const char *name;
	std::function<void(nda_channel_attr &)> spoil;
};

class ChannelAttr : public Api, public testing::WithParamInterface<BadChannel> {};

TEST_P(ChannelAttr, IsRefused)
{
	nda_channel_attr attr = {};
	GetParam().spoil(attr);
	errno = 0;
	EXPECT_EQ(nda_channel_create(nic, npu, &attr, sizeof(attr)), nullptr);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_STRNE(nda_error_detail(), "");
}

INSTANTIATE_TEST_SUITE_P(Fields, ChannelAttr,
	testing::Values(BadChannel{"UnknownMask", [](auto &a) { a.comp_mask = 32; }},
		BadChannel{"DepthTooSmall", [](auto &a) { a.sq_depth = 32; }},
		BadChannel{"DepthTooLarge", [](auto &a) { a.sq_depth = 65536; }},
		BadChannel{"DepthNoPower", [](auto &a) { a.sq_depth = 100; }},
		BadChannel{"SignalEvery", [](auto &a) { a.signal_every = 600; }},
		BadChannel{"DmaMode", [](auto &a) { a.dma_mode = 3; }},
		BadChannel{"Reserved", [](auto &a) { a.reserved = 1; }},
		BadChannel{"Gid",
			[](auto &a) {
				a.comp_mask = NDA_CHANNEL_GID_INDEX;
				a.gid_index = 100;
			}},
		BadChannel{"GidIndexAndAddress",
			[](auto &a) {
				a.comp_mask = NDA_CHANNEL_GID_INDEX;
				a.gid_address = "10.9.9.1";
			}},
		BadChannel{"GidAddress", [](auto &a) { a.gid_address = "10.9.9"; }},
		BadChannel{"RoceVersion", [](auto &a) { a.roce_version = 3; }},
		BadChannel{"HopLimit", [](auto &a) { a.hop_limit = 256; }},
		BadChannel{"UdpSourcePort", [](auto &a) { a.udp_source_port = 65536; }},
		BadChannel{"PathMtuNoPower", [](auto &a) { a.path_mtu_bytes = 1500; }},
		BadChannel{"PathMtuTooSmall", [](auto &a) { a.path_mtu_bytes = 128; }},
		BadChannel{"TrafficClass",
			[](auto &a) {
				a.comp_mask = NDA_CHANNEL_TRAFFIC_CLASS;
				a.traffic_class = 256;
			}},
		BadChannel{"ServiceLevel",
			[](auto &a) {
				a.comp_mask = NDA_CHANNEL_SERVICE_LEVEL;
				a.service_level = 8;
			}},
		BadChannel{"Timeout",
			[](auto &a) {
				a.comp_mask = NDA_CHANNEL_TIMEOUT;
				a.timeout = 32;
			}},
		BadChannel{"RetryCount",
			[](auto &a) {
				a.comp_mask = NDA_CHANNEL_RETRY_COUNT;
				a.retry_count = 8;
			}}),
	[](const auto &p) { return std::string(p.param.name); });

TEST_F(Api, SaysHowMuchQueueDidNotFit)
{
	uint64_t all = 0;
	ASSERT_EQ(nda_npu_alloc(npu, 15 << 20, &all), 0) << nda_error_detail();
	nda_channel_attr attr = {};
	attr.sq_depth = 32768;
	errno = 0;
	EXPECT_EQ(nda_channel_create(nic, npu, &attr, sizeof(attr)), nullptr);
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_TRUE(detail_has("channel: nic soft:hns1825: create a "));
	EXPECT_TRUE(detail_has("in NPU memory: npu soft: alloc of")) << nda_error_detail();
}

// ---- Jetties -------------------------------------------------------------------------

class JettyApi : public Api {
protected:
	JettyApi() : udma(nda_nic_open("soft:udma", nullptr, 0))
	{
		EXPECT_NE(udma, nullptr) << nda_error_detail();
	}
	~JettyApi() override { EXPECT_EQ(nda_nic_close(udma), 0); }

	nda_nic *udma;
};

class RoceOption : public JettyApi, public testing::WithParamInterface<BadChannel> {};

TEST_P(RoceOption, IsRefusedForAJetty)
{
	nda_channel_attr attr = {};
	GetParam().spoil(attr);
	errno = 0;
	EXPECT_EQ(nda_channel_create(udma, npu, &attr, sizeof(attr)), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT_STREQ(nda_error_detail(),
		("channel: nic soft:udma: its jetties take no " +
			std::string(GetParam().name))
			.c_str());
}

INSTANTIATE_TEST_SUITE_P(Fields, RoceOption,
	testing::Values(BadChannel{"gid_index",
				[](auto &a) { a.comp_mask = NDA_CHANNEL_GID_INDEX; }},
		BadChannel{"gid_address", [](auto &a) { a.gid_address = "127.0.0.1"; }},
		BadChannel{"roce_version", [](auto &a) { a.roce_version = 2; }},
		BadChannel{"traffic_class",
			[](auto &a) { a.comp_mask = NDA_CHANNEL_TRAFFIC_CLASS; }},
		BadChannel{"service_level",
			[](auto &a) { a.comp_mask = NDA_CHANNEL_SERVICE_LEVEL; }},
		BadChannel{"hop_limit", [](auto &a) { a.hop_limit = 64; }},
		BadChannel{"udp_source_port", [](auto &a) { a.udp_source_port = 49152; }},
		BadChannel{"path_mtu_bytes", [](auto &a) { a.path_mtu_bytes = 256; }}),
	[](const auto &p) { return std::string(p.param.name); });

TEST_F(JettyApi, RefusesAPortThatIsDown)
{
	nda_nic_attr attr = {};
	attr.inject = "link-down-us:1";
	nda_nic *down = nda_nic_open("soft:udma", &attr, sizeof(attr));
	ASSERT_NE(down, nullptr) << nda_error_detail();
	nda_nic_info info;
	do
		ASSERT_EQ(nda_nic_query(down, &info, sizeof(info)), 0);
	while (info.port_active);
	errno = 0;
	EXPECT_EQ(nda_channel_create(down, npu, nullptr, 0), nullptr);
	EXPECT_EQ(errno, ENETDOWN);
	EXPECT_STREQ(nda_error_detail(), "channel: nic soft:udma: port is down");
	EXPECT_EQ(nda_nic_close(down), 0);
}

// One side has QPs, the other jetties.
TEST_F(JettyApi, RefusesAPeerWhoseQueueFormatDiffers)
{
	nda_channel *of_qp = nda_channel_create(nic, npu, nullptr, 0);
	nda_channel *of_jetty = nda_channel_create(udma, npu, nullptr, 0);
	ASSERT_TRUE(of_qp && of_jetty) << nda_error_detail();
	uint8_t qp[NDA_CHANNEL_DESC_BYTES], jetty[NDA_CHANNEL_DESC_BYTES];
	ASSERT_EQ(nda_channel_export(of_qp, qp), 0);
	ASSERT_EQ(nda_channel_export(of_jetty, jetty), 0);
	EXPECT_EQ(nda_channel_connect(of_jetty, qp), -EINVAL);
	EXPECT_TRUE(detail_has("the peer has a queue pair, this side a jetty"))
		<< nda_error_detail();
	EXPECT_EQ(nda_channel_connect(of_qp, jetty), -EINVAL);
	EXPECT_TRUE(detail_has("the peer has a jetty, this side a queue pair"))
		<< nda_error_detail();
	EXPECT_EQ(nda_channel_connect(of_qp, qp), 0) << "it must not have been touched";
	EXPECT_EQ(nda_channel_connect(of_jetty, jetty), 0)
		<< "it must not have been touched";
	EXPECT_EQ(nda_channel_destroy(of_qp), 0);
	EXPECT_EQ(nda_channel_destroy(of_jetty), 0);
}

// ---- Status, version, search ---------------------------------------------------------

TEST(Status, HasATextAndAnErrnoForEachValue)
{
	for (const int status : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 32, 33, 34,
		     35, 36, 37, 38}) {
		EXPECT_STRNE(nda_status_string(status), "unknown status") << status;
		EXPECT_EQ(nda_status_to_errno(status) == 0, status == 0) << status;
		EXPECT_LE(nda_status_to_errno(status), 0) << status;
	}
	for (const int status : {-1, 14, 31, 39, 1000}) {
		EXPECT_STREQ(nda_status_string(status), "unknown status");
		EXPECT_EQ(nda_status_to_errno(status), -EIO);
	}
	EXPECT_EQ(nda_status_to_errno(NDA_TIMEOUT), -ETIMEDOUT);
	EXPECT_EQ(nda_status_to_errno(NDA_RETRY_EXCEEDED), -ECONNRESET);
}

TEST(Version, IsThatOfTheBuild)
{
	EXPECT_STREQ(nda_version(), NDA_TEST_VERSION);
}

TEST(SearchReport, NamesTheLibraryAndWhatWasTried)
{
	setenv("IBV_EXTEND_DRIVERS", "nda_no_such_driver", 1);
	const int length = nda_search_report(nullptr, 0);
	ASSERT_GT(length, 0) << nda_error_detail();
	std::string text(static_cast<size_t>(length) + 1, 'x');
	EXPECT_EQ(nda_search_report(&text[0], text.size()), length);
	EXPECT_EQ(text.back(), '\0');
	EXPECT_EQ(text.rfind("libibv_extend 4.2.0: ", 0), 0u) << text;
	EXPECT_NE(text.find("nda_no_such_driver"), std::string::npos) << text;
	char little[10];
	EXPECT_EQ(nda_search_report(little, sizeof(little)), length);
	EXPECT_EQ(std::string(little), text.substr(0, 9));
	EXPECT_EQ(nda_search_report(nullptr, 10), -EINVAL);
	unsetenv("IBV_EXTEND_DRIVERS");
}

} // namespace
} // namespace nda::test
