// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// NICs of RDMA devices that are all in the mind of tests/mock/nda_verbs.h.
#include <nda/channel.h>
#include <nda/nic.h>
#include <nda/npu.h>
#include <nda/table.h>

#include "tests/mock/nda_verbs.h"

namespace nda::test {
namespace {

using testing::Test;

FakeVerbs::State &kernel()
{
	return FakeVerbs::state();
}

void expect_open_fails(const char *name, int error, const char *text)
{
	errno = 0;
	EXPECT_EQ(nda_nic_open(name, nullptr, 0), nullptr) << name;
	EXPECT_EQ(errno, error) << nda_error_detail();
	EXPECT_STREQ(nda_error_detail(), text);
}

TEST(VerbsNic, IsOpenedByTheKernelsName)
{
	FakeVerbs fake;
	for (const char *name : {"rxe0", "rxe0:1"}) {
		nda_nic *nic = nda_nic_open(name, nullptr, 0);
		ASSERT_NE(nic, nullptr) << nda_error_detail();
		nda_nic_info info;
		EXPECT_EQ(nda_nic_query(nic, &info, sizeof(info)), 0);
		EXPECT_STREQ(info.name, name);
		EXPECT_EQ(info.format, uint32_t(NDA_FORMAT_RXE));
		EXPECT_EQ(info.port_active, 1u);
		EXPECT_EQ(info.active_mtu_bytes, 4096u);
		EXPECT_EQ(nda_nic_close(nic), 0);
	}
}

// udev renames devices, also after a program has started.
TEST(VerbsNic, IsFoundByIndexWhereLibibverbsHasAnOldName)
{
	FakeVerbs fake;
	FakeVerbs::add("rocep1s0", "rxe", 12, "rxe_old");
	FakeVerbs::add("rxe_old", "mlx5", 13, "elsewhere");
	nda_nic *nic = nda_nic_open("rocep1s0", nullptr, 0);
	ASSERT_NE(nic, nullptr) << nda_error_detail();
	EXPECT_EQ(nda_nic_close(nic), 0);
}

TEST(VerbsNic, IsFoundByNameWhereLibibverbsKnowsNoIndices)
{
	FakeVerbs fake;
	kernel().indices[0] = -1;
	nda_nic *nic = nda_nic_open("rxe0", nullptr, 0);
	ASSERT_NE(nic, nullptr) << nda_error_detail();
	EXPECT_EQ(nda_nic_close(nic), 0);
}

TEST(VerbsNic, ThatDoesNotExistNamesThoseThatDo)
{
	FakeVerbs fake;
	FakeVerbs::add("mlx5_0", "mlx5", 2);
	expect_open_fails("rxe1", ENODEV,
		"nic rxe1: no such device; the kernel has rxe0, mlx5_0, and software NICs "
		"are soft:hns1825, soft:in_die, soft:xscale, soft:udma");
	kernel().devices.clear();
	expect_open_fails("rxe0", ENODEV,
		"nic rxe0: no such device; the kernel has no RDMA device, and software "
		"NICs are soft:hns1825, soft:in_die, soft:xscale, soft:udma");
}

TEST(VerbsNic, OfAnUnknownFormatIsRefusedByItsDriversName)
{
	FakeVerbs fake;
	FakeVerbs::add("mlx5_0", "mlx5", 2);
	kernel().devices[1].location = "0000:3b:00.0";
	kernel().devices[1].kernel_driver = "mlx5_core";
	expect_open_fails("mlx5_0", EOPNOTSUPP,
		"nic mlx5_0 (mlx5_core at 0000:3b:00.0): the queue format of verbs driver "
		"\"mlx5\" is not known");
}

TEST(VerbsNic, ThatLibibverbsHasNoDriverForIsRefused)
{
	FakeVerbs fake;
	kernel().verbs.clear();
	kernel().indices.clear();
	expect_open_fails("rxe0", ENODEV,
		"nic rxe0: libibverbs has no driver for it; is the provider of rdma-core "
		"installed?");
}

TEST(VerbsNic, WithAWrongPortIsRefused)
{
	FakeVerbs fake;
	expect_open_fails("rxe0:2", EINVAL, "nic rxe0:2: the device has 1 ports");
	expect_open_fails("rxe0:0", EINVAL, "nic rxe0:0: port \"0\" is not in 1..255");
	expect_open_fails("rxe0:", EINVAL, "nic rxe0:: port \"\" is not in 1..255");
	expect_open_fails("rxe0:x", EINVAL, "nic rxe0:x: port \"x\" is not in 1..255");
	expect_open_fails(":1", EINVAL, "nic :1: no device's name");
}

TEST(VerbsNic, OfInfiniBandIsRefused)
{
	FakeVerbs fake;
	kernel().link_layer = IBV_LINK_LAYER_INFINIBAND;
	expect_open_fails("rxe0", EOPNOTSUPP, "nic rxe0: port 1 is not of Ethernet (RoCE)");
}

TEST(VerbsNic, WhoseDriverCannotPlaceQueuesIsRefused)
{
	FakeVerbs fake;
	kernel().ext_cap = IBV_EXTEND_DEV_NDR;
	expect_open_fails("rxe0", EOPNOTSUPP,
		"nic rxe0: its extension driver cannot place queues in NPU memory "
		"(capabilities 0x1)");
}

TEST(VerbsNic, RefusesWhatIsForSoftwareNics)
{
	FakeVerbs fake;
	nda_nic_attr attr = {};
	attr.mtu_bytes = 1024;
	errno = 0;
	EXPECT_EQ(nda_nic_open("rxe0", &attr, sizeof(attr)), nullptr);
	EXPECT_EQ(errno, EINVAL);
	attr = {};
	attr.inject = "drop:3";
	errno = 0;
	EXPECT_EQ(nda_nic_open("rxe0", &attr, sizeof(attr)), nullptr);
	EXPECT_EQ(errno, EINVAL);
	attr = {};
	attr.events = "/tmp/log";
	errno = 0;
	EXPECT_EQ(nda_nic_open("rxe0", &attr, sizeof(attr)), nullptr);
	EXPECT_EQ(errno, EINVAL);
}

TEST(VerbsNic, GivesTheGidsOfItsPort)
{
	FakeVerbs fake;
	kernel().gids = {gid_entry(3, "10.9.9.1"), gid_entry(1, "10.7.7.7", 2, 2)};
	nda_nic *nic = nda_nic_open("rxe0", nullptr, 0);
	ASSERT_NE(nic, nullptr) << nda_error_detail();
	uint8_t gid[16];
	EXPECT_EQ(nda_nic_gid(nic, 3, gid), 0);
	EXPECT_EQ(memcmp(gid + 10, "\xff\xff\x0a\x09\x09\x01", 6), 0);
	EXPECT_EQ(nda_nic_gid(nic, 1, gid), 0);
	EXPECT_EQ(std::string(gid, gid + 16), std::string(16, '\0'));
	EXPECT_EQ(nda_nic_close(nic), 0);
}

// An NPU and a NIC; channels of both.
class VerbsChannel : public Test {
protected:
	void SetUp() override { open(0); }
	void TearDown() override
	{
		EXPECT_EQ(nda_nic_close(nic), 0);
		EXPECT_EQ(nda_npu_close(npu), 0);
	}
	void open(uint32_t flags)
	{
		nda_npu_attr attr = {};
		attr.memory_bytes = 1 << 20;
		attr.flags = flags;
		npu = nda_npu_open("soft", &attr, sizeof(attr));
		ASSERT_NE(npu, nullptr) << nda_error_detail();
		nic = nda_nic_open("rxe0", nullptr, 0);
		ASSERT_NE(nic, nullptr) << nda_error_detail();
	}
	// Connected to a peer that says the same of itself.
	nda_channel *connected(const nda_channel_attr &attr, int expected = 0)
	{
		nda_channel *ch = nda_channel_create(nic, npu, &attr, sizeof(attr));
		EXPECT_NE(ch, nullptr) << nda_error_detail();
		if (!ch)
			return nullptr;
		EXPECT_EQ(nda_channel_export(ch, desc), 0);
		EXPECT_EQ(nda_channel_connect(ch, desc), expected) << nda_error_detail();
		return ch;
	}
	void expect_create_fails(
		const nda_channel_attr &attr, int error, const std::string &text)
	{
		errno = 0;
		EXPECT_EQ(nda_channel_create(nic, npu, &attr, sizeof(attr)), nullptr);
		EXPECT_EQ(errno, error);
		EXPECT_EQ(nda_error_detail(), text);
	}
	static const ibv_qp_attr &rtr()
	{
		for (const ibv_qp_attr &a : kernel().modified)
			if (a.qp_state == IBV_QPS_RTR)
				return a;
		ADD_FAILURE() << "no step to RTR";
		static const ibv_qp_attr none = {};
		return none;
	}

	FakeVerbs fake;
	nda_npu *npu = nullptr;
	nda_nic *nic = nullptr;
	uint8_t desc[NDA_CHANNEL_DESC_BYTES] = {};
};

TEST_F(VerbsChannel, TakesTheIpv4GidAndThePortsMtu)
{
	nda_channel *ch = connected({});
	EXPECT_EQ(rtr().ah_attr.grh.sgid_index, 1);
	EXPECT_EQ(rtr().ah_attr.is_global, 1);
	EXPECT_EQ(rtr().path_mtu, IBV_MTU_4096);
	EXPECT_EQ(rtr().ah_attr.grh.hop_limit, 64);
	EXPECT_EQ(nda_channel_destroy(ch), 0);
}

TEST_F(VerbsChannel, TakesWhatItsAttributesSay)
{
	kernel().gids.push_back(gid_entry(5, "fd77::1"));
	nda_channel_attr attr = {};
	attr.gid_address = "fd77::1";
	attr.hop_limit = 3;
	attr.path_mtu_bytes = 1024;
	nda_channel *ch = connected(attr);
	EXPECT_EQ(rtr().ah_attr.grh.sgid_index, 5);
	EXPECT_EQ(rtr().ah_attr.grh.hop_limit, 3);
	EXPECT_EQ(rtr().path_mtu, IBV_MTU_1024);
	EXPECT_EQ(nda_channel_destroy(ch), 0);
}

TEST_F(VerbsChannel, UsesTheSmallerMtuOfBothPorts)
{
	struct {
		ibv_mtu own, peer, path;
	} const cases[] = {{IBV_MTU_4096, IBV_MTU_1024, IBV_MTU_1024},
		{IBV_MTU_1024, IBV_MTU_4096, IBV_MTU_1024},
		{IBV_MTU_2048, IBV_MTU_2048, IBV_MTU_2048}};
	for (const auto &c : cases) {
		kernel().modified.clear();
		kernel().mtu = c.peer;
		nda_channel *peer = nda_channel_create(nic, npu, nullptr, 0);
		kernel().mtu = c.own;
		nda_channel *own = nda_channel_create(nic, npu, nullptr, 0);
		ASSERT_TRUE(peer && own) << nda_error_detail();
		ASSERT_EQ(nda_channel_export(peer, desc), 0);
		ASSERT_EQ(nda_channel_connect(own, desc), 0) << nda_error_detail();
		EXPECT_EQ(rtr().path_mtu, c.path);
		EXPECT_EQ(nda_channel_destroy(own), 0);
		EXPECT_EQ(nda_channel_destroy(peer), 0);
	}
}

TEST_F(VerbsChannel, IsDescribedByTheRingsOfTheDriver)
{
	nda_channel *ch = connected({});
	nda_queue q;
	ASSERT_EQ(nda_channel_describe(ch, 0x7000, 1, 2, &q), 0) << nda_error_detail();
	EXPECT_EQ(q.sq_base, 0x10180u);
	EXPECT_EQ(q.sq_record, 0x10080u);
	EXPECT_EQ(q.cq_record, 0x10100u);
	EXPECT_EQ(q.rxe.cq_producer, 0x10080u);
	EXPECT_EQ(q.sq_doorbell, 0x50000u);
	EXPECT_EQ(q.rxe.sq_slot_bytes, 256u);
	EXPECT_EQ(q.rxe.sq_data_bytes, 48u);
	EXPECT_EQ(q.sq_depth, 1024u);
	EXPECT_EQ(q.cqe_stride, 64u);
	EXPECT_EQ(q.lkey, 1u);
	EXPECT_EQ(q.rkey, 2u);
	EXPECT_EQ(nda_channel_destroy(ch), 0);
}

TEST_F(VerbsChannel, WithAnAddressThatIsMissingListsTheCandidates)
{
	nda_channel_attr attr = {};
	attr.gid_address = "10.9.9.2";
	expect_create_fails(attr, EADDRNOTAVAIL,
		"channel: nic rxe0: no RoCEv2 GID 10.9.9.2; it has 0 RoCEv2 fe80::1, 1 "
		"RoCEv2 "
		"10.9.9.1");
}

TEST_F(VerbsChannel, OnAPortThatIsDownSaysSoFirst)
{
	kernel().port_state = IBV_PORT_DOWN;
	kernel().gids.clear();
	nda_channel_attr attr = {};
	attr.gid_address = "10.9.9.2";
	expect_create_fails(
		attr, ENETDOWN, "channel: nic rxe0: port is down (net device eth7)");
}

TEST_F(VerbsChannel, ToAnUnreachablePeerNamesBothGids)
{
	kernel().rtr_result = ETIMEDOUT;
	nda_channel *ch = connected({}, -ETIMEDOUT);
	const std::string text = nda_error_detail();
	EXPECT_NE(text.find("ibv_modify_qp: Connection timed out (from GID 10.9.9.1 to GID "
			    "10.9.9.1, MTU 4096)"),
		std::string::npos)
		<< text;
	EXPECT_EQ(nda_channel_destroy(ch), 0);
}

// The kernel's function of a label, as its sources have it.
uint32_t port_of_label(uint32_t label)
{
	return 0xc000 | ((label & 0x3fff) ^ (label & 0xfc000) >> 14);
}

TEST_F(VerbsChannel, SetsTheUdpSourcePortByTheFlowLabel)
{
	for (const uint32_t port : {49152u, 49153u, 50000u, 61397u, 65535u}) {
		kernel().modified.clear();
		nda_channel_attr attr = {};
		attr.udp_source_port = port;
		nda_channel *ch = connected(attr);
		EXPECT_NE(rtr().ah_attr.grh.flow_label, 0u);
		EXPECT_EQ(port_of_label(rtr().ah_attr.grh.flow_label), port);
		EXPECT_EQ(kernel().udp_source_port, 0u);
		EXPECT_EQ(nda_channel_destroy(ch), 0);
	}
}

TEST_F(VerbsChannel, WithoutAPortHasNoFlowLabel)
{
	nda_channel *ch = connected({});
	EXPECT_EQ(rtr().ah_attr.grh.flow_label, 0u);
	EXPECT_EQ(nda_channel_destroy(ch), 0);
}

TEST_F(VerbsChannel, LeavesPortsThatNoFlowLabelGivesToTheExtensionDriver)
{
	for (const uint32_t port : {1u, 40000u, 49151u}) {
		kernel().modified.clear();
		nda_channel_attr attr = {};
		attr.udp_source_port = port;
		nda_channel *ch = connected(attr);
		EXPECT_EQ(rtr().ah_attr.grh.flow_label, 0u);
		EXPECT_EQ(kernel().udp_source_port, port);
		EXPECT_EQ(nda_channel_destroy(ch), 0);
	}
}

TEST_F(VerbsChannel, OnAnOlderKernelLeavesThePortToTheExtensionDriver)
{
	for (const char *release : {"4.19.90-2107.6.0", "5.17.15", "next"}) {
		kernel().modified.clear();
		kernel().release = release;
		nda_channel_attr attr = {};
		attr.udp_source_port = 50000;
		nda_channel *ch = connected(attr);
		EXPECT_EQ(rtr().ah_attr.grh.flow_label, 0u) << release;
		EXPECT_EQ(kernel().udp_source_port, 50000u) << release;
		EXPECT_EQ(nda_channel_destroy(ch), 0);
	}
	kernel().release = "5.18.0";
	nda_channel_attr attr = {};
	attr.udp_source_port = 50000;
	kernel().modified.clear();
	nda_channel *ch = connected(attr);
	EXPECT_EQ(rtr().ah_attr.grh.flow_label, 50000u & 0x3fff);
	EXPECT_EQ(nda_channel_destroy(ch), 0);
}

TEST_F(VerbsChannel, WhoseUdpSourcePortCannotBeSetStaysUsable)
{
	kernel().modify_extend_result = -EOPNOTSUPP;
	nda_channel_attr attr = {};
	attr.udp_source_port = 40000;
	nda_channel *ch = connected(attr, -EOPNOTSUPP);
	EXPECT_STREQ(nda_error_detail(),
		"channel: nic rxe0: its extension driver cannot set UDP source port 40000 "
		"of QP "
		"17, which is connected without: Operation not supported");
	nda_queue q;
	EXPECT_EQ(nda_channel_describe(ch, 0, 1, 2, &q), 0) << nda_error_detail();
	EXPECT_EQ(nda_channel_destroy(ch), 0);
}

TEST_F(VerbsChannel, RegistersNpuMemoryAtItsOwnAddress)
{
	uint64_t addr = 0;
	ASSERT_EQ(nda_npu_alloc(npu, 8192, &addr), 0);
	nda_mr *mr = nda_mr_register(nic, npu, addr, 8192, NDA_ACCESS_LOCAL_WRITE);
	ASSERT_NE(mr, nullptr) << nda_error_detail();
	EXPECT_EQ(nda_mr_lkey(mr), 0xfedcba98u);
	EXPECT_EQ(nda_mr_rkey(mr), 0x12345678u);
	EXPECT_EQ(nda_mr_deregister(mr), 0);
	kernel().failed = "reg_mr";
	errno = 0;
	EXPECT_EQ(nda_mr_register(nic, npu, addr, 8192, NDA_ACCESS_LOCAL_WRITE), nullptr);
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_NE(strstr(nda_error_detail(), "RLIMIT_MEMLOCK"), nullptr)
		<< nda_error_detail();
	EXPECT_EQ(nda_npu_free(npu, addr), 0);
}

class StrictNpu : public VerbsChannel {
protected:
	void SetUp() override { open(NDA_NPU_STRICT); }
};

TEST_F(StrictNpu, IsRefusedWithTheReason)
{
	const std::string why = "nic rxe0: reaches host memory only, and npu soft does not "
				"share the host's "
				"address space (strict mode)";
	expect_create_fails({}, EOPNOTSUPP, "channel: " + why);
	uint64_t addr = 0;
	ASSERT_EQ(nda_npu_alloc(npu, 4096, &addr), 0);
	errno = 0;
	EXPECT_EQ(nda_mr_register(nic, npu, addr, 4096, NDA_ACCESS_LOCAL_WRITE), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT_NE(strstr(nda_error_detail(),
			  "peer memory: the host does not know the addresses of npu soft "
			  "(strict mode)"),
		nullptr)
		<< nda_error_detail();
	EXPECT_EQ(nda_npu_free(npu, addr), 0);
}

// Every call of libibverbs and of the driver that can fail, in turn.
TEST(VerbsFailure, OfAnyCallLeavesNothing)
{
	FakeVerbs fake;
	nda_npu_attr npu_attr = {};
	npu_attr.memory_bytes = 1 << 20;
	nda_npu *npu = nda_npu_open("soft", &npu_attr, sizeof(npu_attr));
	ASSERT_NE(npu, nullptr) << nda_error_detail();
	const auto body = [&] {
		nda_nic *nic = nda_nic_open("rxe0", nullptr, 0);
		nda_channel *ch = nic ? nda_channel_create(nic, npu, nullptr, 0) : nullptr;
		uint8_t desc[NDA_CHANNEL_DESC_BYTES];
		const bool good = ch && nda_channel_export(ch, desc) == 0 &&
			nda_channel_connect(ch, desc) == 0;
		EXPECT_TRUE(good || *nda_error_detail());
		EXPECT_EQ(ch ? nda_channel_destroy(ch) : 0, 0);
		EXPECT_EQ(nic ? nda_nic_close(nic) : 0, 0);
		return good;
	};
	long failures = 0;
	for (long n = 1; n < 100; n++) {
		kernel().calls = 0;
		kernel().fail_at = n;
		const bool good = body();
		EXPECT_EQ(kernel().live, 0) << "left behind, call " << n << " failing";
		failures += !good;
		if (kernel().calls < n) {
			EXPECT_TRUE(good) << nda_error_detail();
			break;
		}
	}
	EXPECT_GE(failures, 12);
	EXPECT_LT(failures, 99) << "no end";
	EXPECT_EQ(nda_npu_close(npu), 0);
}

} // namespace
} // namespace nda::test
