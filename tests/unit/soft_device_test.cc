// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The synthetic verbs device, the extension driver's refusals, and the QP state machine.
#include "tests/mock/soft_bench.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <endian.h>

namespace nda::soft_test {
namespace {

nda_soft_npu_attr manual()
{
	nda_soft_npu_attr attr = {};
	attr.manual = 1;
	return attr;
}

// What C callers can do to an enum.
template <class Enum>
void set_raw(Enum &value, int number)
{
	memcpy(&value, &number, sizeof(value));
}

// ---- Device ----------------------------------------------------------------------------

TEST(Device, HasANameForLibibverbs)
{
	TestNic nic;
	EXPECT_EQ(std::string(ibv_get_device_name(nic.context()->device))
			  .rfind("nda_soft", 0),
		0u);
}

TEST(Device, IsAnswerableByTheInlineFunctionsOfVerbs)
{
	TestNic nic(nullptr, 1024);
	ibv_port_attr port;
	ASSERT_EQ(ibv_query_port(nic.context(), 1, &port), 0);
	EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
	EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	EXPECT_EQ(port.active_mtu, IBV_MTU_1024);
	EXPECT_EQ(port.gid_tbl_len, 2);
	EXPECT_NE(ibv_query_port(nic.context(), 2, &port), 0);
	ibv_device_attr_ex attr;
	ASSERT_EQ(ibv_query_device_ex(nic.context(), nullptr, &attr), 0);
	EXPECT_EQ(attr.orig_attr.phys_port_cnt, 1);
	ibv_send_wr *bad_send = nullptr;
	ibv_recv_wr *bad_recv = nullptr;
	ibv_wc wc;
	ibv_qp qp = {};
	ibv_cq cq = {};
	qp.context = cq.context = nic.context();
	EXPECT_NE(ibv_post_send(&qp, nullptr, &bad_send), 0);
	EXPECT_NE(ibv_post_recv(&qp, nullptr, &bad_recv), 0);
	EXPECT_LT(ibv_poll_cq(&cq, 1, &wc), 0);
}

TEST(DeviceDeathTest, MisuseWithLibibverbsSaysSo)
{
	testing::GTEST_FLAG(death_test_style) = "threadsafe";
	TestNic nic;
	ibv_device_attr attr;
	EXPECT_DEATH(ibv_query_device(nic.context(), &attr), "use libnda's instead");
	EXPECT_DEATH(ibv_alloc_pd(nic.context()), "use libnda's instead");
	EXPECT_DEATH(ibv_create_cq(nic.context(), 16, nullptr, nullptr, 0),
		"use libnda's instead");
	EXPECT_DEATH(ibv_close_device(nic.context()), "use libnda's instead");
}

TEST(Device, GidsNameTheProcessAndDifferByNicAndIndex)
{
	TestNic one, two;
	ibv_gid g[] = {one.gid(0), one.gid(1), two.gid(0), two.gid(1)};
	for (int i = 0; i < 4; i++) {
		EXPECT_EQ(memcmp(g[i].raw + 8, g[0].raw + 8, 8), 0);
		for (int j = 0; j < i; j++)
			EXPECT_NE(memcmp(&g[i], &g[j], sizeof(g[i])), 0);
	}
	EXPECT_EQ(be16toh(*reinterpret_cast<uint16_t *>(g[0].raw)), 0xfe80);
	EXPECT_EQ(g[1].raw[0], 0xfd);
	ibv_gid gid;
	EXPECT_EQ(api().query_gid(one.context(), 1, 2, &gid), -EINVAL);
	EXPECT_EQ(api().query_gid(one.context(), 1, -1, &gid), -EINVAL);
	EXPECT_EQ(api().query_gid(one.context(), 2, 0, &gid), -EINVAL);
}

TEST(Device, OpeningRefusesWhatItDoesNotKnow)
{
	nda_soft_nic_attr attr = {"hns1826", nullptr, 0, 0, nullptr};
	EXPECT_EQ(api().nic_open(&attr), nullptr);
	EXPECT_EQ(errno, ENODEV);
	EXPECT_NE(detail().find("hns1826"), std::string::npos);
	attr.model = nullptr;
	EXPECT_EQ(api().nic_open(&attr), nullptr);
	attr.model = "hns1825";
	for (uint32_t mtu : {1u, 255u, 1500u, 8192u}) {
		attr.mtu_bytes = mtu;
		EXPECT_EQ(api().nic_open(&attr), nullptr);
		EXPECT_EQ(errno, EINVAL);
	}
	EXPECT_EQ(api().nic_open(nullptr), nullptr);
}

TEST(Device, CloseIsBusyWhileObjectsExist)
{
	nda_soft_nic_attr attr = {"hns1825", nullptr, 0, 0, nullptr};
	ibv_context *context = api().nic_open(&attr);
	ASSERT_TRUE(context);
	ibv_pd *pd = api().alloc_pd(context);
	EXPECT_EQ(api().nic_close(context), -EBUSY);
	EXPECT_EQ(api().dealloc_pd(pd), 0);
	ibv_context_extend *extend = ibv_open_extend(context);
	ASSERT_TRUE(extend);
	EXPECT_EQ(api().nic_close(context), -EBUSY);
	EXPECT_EQ(ibv_close_extend(extend), 0);
	EXPECT_EQ(api().nic_close(context), 0);
	EXPECT_EQ(api().nic_close(context), -EINVAL);
	EXPECT_EQ(api().nic_close(nullptr), -EINVAL);
}

TEST(Device, IsCapableOfNda)
{
	TestNic nic;
	ibv_device_attr_extend attr;
	ASSERT_EQ(ibv_query_device_extend(nic.extend(), &attr), 0);
	EXPECT_EQ(attr.ext_cap,
		static_cast<uint32_t>(IBV_EXTEND_DEV_NDA) | IBV_EXTEND_DEV_NDR);
	EXPECT_EQ(nic.extend()->ops->version, IBV_EXTEND_DRIVER_VERSION_V3);
}

TEST(Device, SharedReceiveQueueLiesInNpuMemory)
{
	TestNpu npu(manual());
	TestNic nic;
	ibv_srq_init_attr_extend attr = {};
	attr.pd = nic.pd();
	attr.attr.attr.max_wr = 100;
	attr.attr.attr.max_sge = 1;
	attr.ops = npu.ops();
	ibv_srq_extend *srq = ibv_create_srq_extend(nic.extend(), &attr);
	ASSERT_TRUE(srq) << detail();
	EXPECT_EQ(srq->srq_info.qbuf.entry_cnt, 128u);
	EXPECT_EQ(srq->srq_info.qbuf.entry_size, 16u);
	EXPECT_EQ(attr.attr.attr.max_wr, 128u);
	for (uint64_t at : {srq->srq_info.qbuf.base, srq->srq_info.dbr_pi_va.iov_base,
		     srq->srq_info.dbr_ci_va.iov_base})
		EXPECT_EQ(api().npu_contains(npu.get(), at, 64), 1);
	EXPECT_NE(srq->srq_info.dbr_pi_va.iov_base, srq->srq_info.dbr_ci_va.iov_base);
	EXPECT_EQ(npu.read(srq->srq_info.qbuf.base, 128 * 16),
		std::vector<uint8_t>(128 * 16));
	EXPECT_EQ(srq->srq->pd, nic.pd());
	EXPECT_EQ(srq->srq->context, nic.context());
	EXPECT_EQ(api().dealloc_pd(nic.pd()), -EBUSY);
	EXPECT_EQ(npu.close(), -EBUSY);
	EXPECT_EQ(ibv_destroy_srq_extend(nic.extend(), srq), 0);

	auto refused = [&](auto change, int want) {
		ibv_srq_init_attr_extend bad = attr;
		change(bad);
		errno = 0;
		EXPECT_EQ(ibv_create_srq_extend(nic.extend(), &bad), nullptr);
		EXPECT_EQ(errno, want) << detail();
	};
	using Attr = ibv_srq_init_attr_extend;
	TestNic other;
	refused([](Attr &x) { x.attr.attr.max_wr = 0; }, EINVAL);
	refused([](Attr &x) { x.attr.attr.max_wr = 32769; }, EINVAL);
	refused([](Attr &x) { x.attr.attr.max_sge = 2; }, EINVAL);
	refused([](Attr &x) { x.attr.attr.srq_limit = 1; }, EOPNOTSUPP);
	refused([](Attr &x) { x.srq_cap_flag = 1; }, EOPNOTSUPP);
	refused([](Attr &x) { x.comp_mask = 1; }, EOPNOTSUPP);
	refused([](Attr &x) { x.pd = nullptr; }, EINVAL);
	refused([&](Attr &x) { x.pd = other.pd(); }, EINVAL);
	refused([](Attr &x) { x.ops = nullptr; }, EINVAL);
	refused([](Attr &x) { set_raw(x.type, 9); }, EINVAL);
}

TEST(Device, SharedReceiveQueueIsBusyWhileAQpUsesIt)
{
	TestNpu npu(manual());
	TestNic nic, other;
	TestQueue queue(npu, nic);
	ibv_srq_init_attr_extend attr = {};
	attr.pd = nic.pd();
	attr.attr.attr.max_wr = 1;
	attr.ops = npu.ops();
	ibv_srq_extend *srq = ibv_create_srq_extend(nic.extend(), &attr);
	ASSERT_TRUE(srq) << detail();
	ibv_qp_init_attr_extend qp_attr = {};
	qp_attr.pd = nic.pd();
	qp_attr.attr.send_cq = qp_attr.attr.recv_cq = queue.cq()->cq;
	qp_attr.attr.srq = srq->srq;
	qp_attr.attr.qp_type = IBV_QPT_RC;
	qp_attr.attr.cap.max_send_wr = 4;
	qp_attr.ops = npu.ops();
	ibv_qp_extend *qp = ibv_create_qp_extend(nic.extend(), &qp_attr);
	ASSERT_TRUE(qp) << detail();
	EXPECT_EQ(qp->qp->srq, srq->srq);
	EXPECT_EQ(qp_attr.attr.cap.max_recv_wr, 0u);
	EXPECT_EQ(ibv_destroy_srq_extend(nic.extend(), srq), -EBUSY);
	EXPECT_EQ(ibv_destroy_qp_extend(nic.extend(), qp), 0);
	EXPECT_EQ(ibv_destroy_srq_extend(nic.extend(), srq), 0);
}

// ---- Extended attributes ---------------------------------------------------------------

class Extended : public testing::Test {
protected:
	int set(const ibv_qp_attr_extend &values, int mask)
	{
		ibv_qp_attr_extend attr = values;
		attr.qp = q.qp();
		return ibv_modify_qp_extend(nic.extend(), &attr, mask);
	}
	ibv_qp_attr_extend get(int mask)
	{
		ibv_qp_attr_extend attr = {};
		attr.qp = q.qp();
		EXPECT_EQ(ibv_query_qp_extend(nic.extend(), &attr, mask), 0) << detail();
		return attr;
	}
	void refused(int mask, const char *name, void (*change)(ibv_qp_attr_extend &))
	{
		ibv_qp_attr_extend before = get(all);
		ibv_qp_attr_extend bad = before;
		change(bad);
		EXPECT_EQ(set(bad, mask), -EINVAL) << name;
		EXPECT_NE(detail().find(name), std::string::npos) << detail();
		ibv_qp_attr_extend after = get(all);
		EXPECT_EQ(memcmp(&before, &after, sizeof(before)), 0) << name;
	}
	static constexpr int all = IBV_QP_ATTR_EXTEND_MAX - 1;

	TestNpu npu{manual()};
	TestNic nic;
	TestQueue q{npu, nic};
};

TEST_F(Extended, EveryAttributeIsKeptByItself)
{
	ibv_qp_attr_extend want = {};
	want.udp_src_port = 0xc123;
	want.feature.type = IBV_HYPER_FEAT_VEROCE;
	want.feature.version = IBV_HYPER_FEAT_V2;
	want.feature.sack_enable = 1;
	want.lb_mode = IBV_LB_MODE_AR;
	want.mpath = {7, 6, 5, 1, {}};
	want.ar.port_rr_enable = 1;
	want.sack.srp_range = 11;
	want.sack.oor_range = 12;
	want.lag_port = 1;
	ibv_qp_attr_extend have = {};
	have.qp = q.qp();
	for (int bit = 1; bit < IBV_QP_ATTR_EXTEND_MAX; bit <<= 1) {
		ASSERT_EQ(set(want, bit), 0) << detail();
		ibv_qp_attr_extend now = get(all);
		EXPECT_NE(memcmp(&now, &have, sizeof(now)), 0) << "bit " << bit;
		have = now;
		ibv_qp_attr_extend others = get(all & ~bit), one = get(bit);
		EXPECT_NE(memcmp(&others, &have, sizeof(have)), 0) << "bit " << bit;
		EXPECT_NE(memcmp(&one, &others, sizeof(one)), 0) << "bit " << bit;
	}
	EXPECT_EQ(have.udp_src_port, 0xc123u);
	EXPECT_EQ(have.feature.type, IBV_HYPER_FEAT_VEROCE);
	EXPECT_EQ(have.feature.version, IBV_HYPER_FEAT_V2);
	EXPECT_EQ(have.feature.sack_enable, 1);
	EXPECT_EQ(have.lb_mode, IBV_LB_MODE_AR);
	EXPECT_EQ(have.mpath.flowlet_pkg_num, 7u);
	EXPECT_EQ(have.mpath.path_num, 6u);
	EXPECT_EQ(have.mpath.interval, 5u);
	EXPECT_EQ(have.mpath.path_rr_enable, 1u);
	EXPECT_EQ(have.ar.port_rr_enable, 1u);
	EXPECT_EQ(have.sack.srp_range, 11u);
	EXPECT_EQ(have.sack.oor_range, 12u);
	EXPECT_EQ(have.lag_port, 1u);
	// A reset QP has forgotten them.
	ASSERT_EQ(q.to(IBV_QPS_RESET), 0);
	ibv_qp_attr_extend fresh = {};
	fresh.qp = q.qp();
	ibv_qp_attr_extend now = get(all);
	EXPECT_EQ(memcmp(&now, &fresh, sizeof(now)), 0);
}

TEST_F(Extended, BadValuesAreRefusedByName)
{
	using Attr = ibv_qp_attr_extend;
	refused(IBV_QP_ATTR_EXTEND_UDP_SRC_PORT, "UDP_SRC_PORT",
		[](Attr &a) { a.udp_src_port = 65536; });
	refused(IBV_QP_ATTR_EXTEND_HYROCE_FEATURE, "HYROCE_FEATURE",
		[](Attr &a) { a.feature.type = 3; });
	refused(IBV_QP_ATTR_EXTEND_HYROCE_FEATURE, "HYROCE_FEATURE",
		[](Attr &a) { a.feature.type = IBV_HYPER_FEAT_HYPER_ROCE; });
	refused(IBV_QP_ATTR_EXTEND_HYROCE_FEATURE, "HYROCE_FEATURE",
		[](Attr &a) { a.feature.version = 1; });
	refused(IBV_QP_ATTR_EXTEND_HYROCE_FEATURE, "HYROCE_FEATURE",
		[](Attr &a) { a.feature.sack_enable = 1; });
	refused(IBV_QP_ATTR_EXTEND_LB_MODE, "LB_MODE",
		[](Attr &a) { set_raw(a.lb_mode, 3); });
	refused(IBV_QP_ATTR_EXTEND_MPATH_CONFIG, "MPATH_CONFIG",
		[](Attr &a) { a.mpath.path_num = 65; });
	refused(IBV_QP_ATTR_EXTEND_MPATH_CONFIG, "MPATH_CONFIG",
		[](Attr &a) { a.mpath.path_rr_enable = 2; });
	refused(IBV_QP_ATTR_EXTEND_AR_CONFIG, "AR_CONFIG",
		[](Attr &a) { a.ar.port_rr_enable = 2; });
	refused(IBV_QP_ATTR_EXTEND_LAG_PORT, "LAG_PORT", [](Attr &a) { a.lag_port = 2; });
	// One that is bad among good ones: none is set.
	refused(all, "LAG_PORT", [](Attr &a) {
		a.udp_src_port = 5;
		a.lag_port = 2;
	});
}

TEST_F(Extended, QpOfAnotherNicIsRefused)
{
	TestNic other;
	ibv_qp_attr_extend attr = {};
	attr.qp = q.qp();
	EXPECT_EQ(ibv_modify_qp_extend(other.extend(), &attr, all), -EINVAL);
	EXPECT_EQ(ibv_query_qp_extend(other.extend(), &attr, all), -EINVAL);
	attr.qp = nullptr;
	EXPECT_EQ(ibv_modify_qp_extend(nic.extend(), &attr, all), -EINVAL);
}

TEST_F(Extended, FeatureIsAgreedOnBeforeReadyToReceive)
{
	TestQueue peer(npu, nic);
	ibv_hyroce_feature ours = {}, theirs = {}, chosen = {};
	uint32_t more = 9;
	ASSERT_EQ(
		ibv_query_qp_supported_hyroce_feature(nic.extend(), q.qp(), 4, 132, &ours),
		0);
	EXPECT_EQ(ours.type, IBV_HYPER_FEAT_HYPER_ROCE);
	EXPECT_EQ(ours.version, IBV_HYPER_FEAT_V3);
	EXPECT_EQ(ours.sack_enable, 1);

	// Equals need one exchange.
	ASSERT_EQ(
		ibv_nego_qp_hyroce_feature(nic.extend(), q.qp(), &ours, &chosen, &more), 0);
	EXPECT_EQ(memcmp(&chosen, &ours, sizeof(ours)), 0);
	EXPECT_EQ(more, 0u);

	// An older peer: both choose the same, and then hear it from each other.
	theirs = ours;
	theirs.version = IBV_HYPER_FEAT_V1;
	theirs.sack_enable = 0;
	ASSERT_EQ(ibv_nego_qp_hyroce_feature(nic.extend(), q.qp(), &theirs, &chosen, &more),
		0);
	EXPECT_EQ(memcmp(&chosen, &theirs, sizeof(chosen)), 0);
	EXPECT_NE(more, 0u);
	ASSERT_EQ(ibv_nego_qp_hyroce_feature(nic.extend(), q.qp(), &theirs, &chosen, &more),
		0);
	EXPECT_EQ(memcmp(&chosen, &theirs, sizeof(chosen)), 0);
	EXPECT_EQ(more, 0u);
	ibv_qp_attr_extend attr = {};
	attr.feature = chosen;
	EXPECT_EQ(set(attr, IBV_QP_ATTR_EXTEND_HYROCE_FEATURE), 0) << detail();

	// Another kind: plain RoCEv2 is what is left.
	theirs.type = IBV_HYPER_FEAT_VEROCE;
	ASSERT_EQ(ibv_nego_qp_hyroce_feature(
			  nic.extend(), peer.qp(), &theirs, &chosen, &more),
		0);
	const ibv_hyroce_feature plain = {};
	EXPECT_EQ(memcmp(&chosen, &plain, sizeof(plain)), 0);
	EXPECT_NE(more, 0u);
	ASSERT_EQ(
		ibv_nego_qp_hyroce_feature(nic.extend(), peer.qp(), &plain, &chosen, &more),
		0);
	EXPECT_EQ(more, 0u);

	theirs.type = 77;
	EXPECT_EQ(ibv_nego_qp_hyroce_feature(nic.extend(), q.qp(), &theirs, &chosen, &more),
		-EINVAL);
	EXPECT_EQ(ibv_query_qp_supported_hyroce_feature(nic.extend(), q.qp(), 8, 0, &ours),
		-EINVAL);
	EXPECT_EQ(
		ibv_query_qp_supported_hyroce_feature(nic.extend(), q.qp(), 0, 256, &ours),
		-EINVAL);

	ASSERT_EQ(q.to_init(), 0);
	EXPECT_EQ(ibv_query_qp_supported_hyroce_feature(nic.extend(), q.qp(), 0, 0, &ours),
		0);
	ASSERT_EQ(q.to_rtr(nic.gid(), peer.qpn()), 0);
	EXPECT_EQ(ibv_query_qp_supported_hyroce_feature(nic.extend(), q.qp(), 0, 0, &ours),
		-EINVAL);
	EXPECT_EQ(ibv_nego_qp_hyroce_feature(nic.extend(), q.qp(), &plain, &chosen, &more),
		-EINVAL);
	EXPECT_EQ(set(attr, IBV_QP_ATTR_EXTEND_HYROCE_FEATURE), -EINVAL);
	EXPECT_EQ(set(attr, IBV_QP_ATTR_EXTEND_UDP_SRC_PORT), 0) << "the others stay free";
}

// ---- Registration ----------------------------------------------------------------------

TEST(Register, RefusesWhatIsNotNpuMemoryOrNotAllowed)
{
	TestNpu npu(manual());
	TestNic nic;
	uint64_t address = npu.alloc(8192);
	int on_the_stack;
	auto reg = [&](uint64_t at, uint64_t bytes, int access) {
		errno = 0;
		ibv_mr *mr = api().reg_mr(nic.pd(), at, bytes, access);
		EXPECT_EQ(mr, nullptr);
		return errno;
	};
	EXPECT_EQ(reg(reinterpret_cast<uint64_t>(&on_the_stack), 4, all_access), EINVAL);
	EXPECT_EQ(reg(address, 0, all_access), EINVAL);
	EXPECT_EQ(reg(address, 8193, all_access), EINVAL);
	EXPECT_EQ(reg(address + 8192, 1, all_access), EINVAL);
	EXPECT_EQ(reg(address, UINT64_MAX, all_access), EINVAL);
	EXPECT_EQ(reg(address, 64, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	EXPECT_EQ(reg(address, 64, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
	EXPECT_EQ(reg(address, 64, IBV_ACCESS_MW_BIND), EOPNOTSUPP);
	EXPECT_EQ(reg(address, 64, IBV_ACCESS_ZERO_BASED), EOPNOTSUPP);
	EXPECT_EQ(api().reg_mr(nullptr, address, 64, 0), nullptr);
	EXPECT_EQ(api().dereg_mr(nullptr), -EINVAL);
	EXPECT_EQ(api().npu_free(npu.get(), address), 0) << "a pin was left";
}

// ---- Creation --------------------------------------------------------------------------

class Create : public testing::Test {
protected:
	Create()
	{
		cq_attr.attr.cqe = 64;
		cq_attr.type = QUEUE_BUF_DMA_MODE_INDEP_UB;
		cq_attr.ops = npu.ops();
		cq = ibv_create_cq_extend(nic.extend(), &cq_attr);
		qp_attr.pd = nic.pd();
		qp_attr.attr.send_cq = qp_attr.attr.recv_cq = cq->cq;
		qp_attr.attr.qp_type = IBV_QPT_RC;
		qp_attr.attr.cap.max_send_wr = 64;
		qp_attr.type = QUEUE_BUF_DMA_MODE_INDEP_UB;
		qp_attr.ops = npu.ops();
	}
	~Create() override { EXPECT_EQ(ibv_destroy_cq_extend(nic.extend(), cq), 0); }
	// The errno of a creation that must fail.
	int create_qp()
	{
		errno = 0;
		EXPECT_EQ(ibv_create_qp_extend(nic.extend(), &qp_attr), nullptr);
		return errno;
	}
	int create_cq()
	{
		errno = 0;
		EXPECT_EQ(ibv_create_cq_extend(nic.extend(), &cq_attr), nullptr);
		return errno;
	}

	TestNpu npu{manual()};
	TestNic nic;
	ibv_cq_init_attr_extend cq_attr = {};
	ibv_qp_init_attr_extend qp_attr = {};
	ibv_cq_extend *cq;
};

TEST_F(Create, FillsInEverythingThatIsPublished)
{
	qp_attr.attr.cap.max_send_wr = 1000;
	ibv_qp_extend *qp = ibv_create_qp_extend(nic.extend(), &qp_attr);
	ASSERT_TRUE(qp) << detail();
	EXPECT_EQ(qp->sq_info.qbuf.entry_cnt, 1024u);
	EXPECT_EQ(qp->sq_info.qbuf.entry_size, 64u);
	EXPECT_EQ(qp_attr.attr.cap.max_send_wr, 1024u);
	EXPECT_EQ(qp->vendor_priv_info.vendor1.db_cos, 7);
	EXPECT_EQ(qp->qp->qp_num, qp->qp->handle);
	EXPECT_EQ(qp->qp->pd, nic.pd());
	EXPECT_EQ(qp->qp->state, IBV_QPS_RESET);
	for (uint64_t at : {qp->sq_info.qbuf.base, qp->sq_info.dbr_pi_va.iov_base,
		     cq->cq_info.qbuf.base, cq->cq_info.dbr_ci_va.iov_base})
		EXPECT_EQ(api().npu_contains(npu.get(), at, 64), 1);
	EXPECT_NE(qp->sq_info.db_hw_va.iov_base, 0u);
	EXPECT_EQ(qp->sq_info.db_hw_va.iov_len, 64u);
	EXPECT_EQ(cq->cq_info.qbuf.entry_size, 64u);
	// An empty ring of zeros would read as successes.
	EXPECT_EQ(npu.read(cq->cq_info.qbuf.base, 64 * 64),
		std::vector<uint8_t>(64 * 64, 0xff));
	EXPECT_EQ(npu.close(), -EBUSY);
	EXPECT_EQ(api().dealloc_pd(nic.pd()), -EBUSY);
	EXPECT_EQ(ibv_destroy_cq_extend(nic.extend(), cq), -EBUSY);
	EXPECT_EQ(ibv_destroy_qp_extend(nic.extend(), qp), 0);
}

TEST_F(Create, DirectWqeIsRefused)
{
	qp_attr.qp_cap_flag = QP_ENABLE_DIRECT_WQE;
	EXPECT_EQ(create_qp(), EOPNOTSUPP);
	EXPECT_NE(detail().find("direct WQE"), std::string::npos);
}

TEST_F(Create, BadQpAttributesAreRefused)
{
	auto with = [this](auto change, int want) {
		ibv_qp_init_attr_extend saved = qp_attr;
		change();
		EXPECT_EQ(create_qp(), want) << detail();
		qp_attr = saved;
	};
	TestNic other;
	static ibv_extend_ops lacking;
	lacking = *npu.ops();
	lacking.db_mmap = nullptr;
	with([&] { qp_attr.attr.qp_type = IBV_QPT_UC; }, EOPNOTSUPP);
	with([&] { qp_attr.attr.send_cq = nullptr; }, EINVAL);
	with([&] { qp_attr.attr.recv_cq = nullptr; }, EINVAL);
	with([&] { qp_attr.pd = nullptr; }, EINVAL);
	with([&] { qp_attr.pd = other.pd(); }, EINVAL);
	with([&] { qp_attr.attr.cap.max_send_wr = 0; }, EINVAL);
	with([&] { qp_attr.attr.cap.max_send_wr = 32769; }, EINVAL);
	with([&] { qp_attr.attr.cap.max_send_sge = 2; }, EINVAL);
	with([&] { qp_attr.ops = nullptr; }, EINVAL);
	with([&] { qp_attr.ops = &lacking; }, EINVAL);
	with([&] { set_raw(qp_attr.type, 9); }, EINVAL);
	EXPECT_EQ(npu.close(), -EBUSY);
}

TEST_F(Create, BadCqAttributesAreRefused)
{
	auto with = [this](auto change, int want) {
		ibv_cq_init_attr_extend saved = cq_attr;
		change();
		EXPECT_EQ(create_cq(), want) << detail();
		cq_attr = saved;
	};
	ibv_comp_channel channel = {};
	with([&] { cq_attr.attr.cqe = 0; }, EINVAL);
	with([&] { cq_attr.attr.cqe = 32769; }, EINVAL);
	with([&] { cq_attr.attr.channel = &channel; }, EOPNOTSUPP);
	with([&] { cq_attr.attr.comp_vector = 1; }, EINVAL);
	with([&] { cq_attr.attr.wc_flags = 1; }, EOPNOTSUPP);
	with([&] { cq_attr.cq_cap_flag = 1; }, EOPNOTSUPP);
	with([&] { cq_attr.ops = nullptr; }, EINVAL);
}

TEST_F(Create, QueuesOnTwoNpusAreRefused)
{
	TestNpu other(manual());
	qp_attr.ops = other.ops();
	EXPECT_EQ(create_qp(), EINVAL);
	EXPECT_NE(detail().find("more than one NPU"), std::string::npos);
	EXPECT_EQ(other.close(), 0) << detail();
}

// Callbacks that fail at the n-th call: nothing may be left behind.
int calls_left;
ibv_extend_ops *real_ops;

TEST_F(Create, NothingIsLeftWhenACallbackFails)
{
	constexpr uint64_t memory = 1 << 20;
	nda_soft_npu_attr npu_attr = manual();
	npu_attr.memory_bytes = memory;
	TestNpu small(npu_attr);
	real_ops = small.ops();
	ibv_extend_ops failing = *real_ops;
	failing.alloc = [](size_t bytes) -> void * {
		if (calls_left-- > 0)
			return real_ops->alloc(bytes);
		errno = ENOSPC;
		return nullptr;
	};
	failing.db_mmap = [](doorbell_map_desc *desc) -> void * {
		if (calls_left-- > 0)
			return real_ops->db_mmap(desc);
		errno = ENOSPC;
		return nullptr;
	};
	qp_attr.ops = cq_attr.ops = &failing;
	for (int n = 0; n < 2; n++) {
		calls_left = n;
		EXPECT_EQ(create_cq(), ENOSPC);
	}
	calls_left = 2;
	ibv_cq_extend *own = ibv_create_cq_extend(nic.extend(), &cq_attr);
	ASSERT_TRUE(own);
	qp_attr.attr.send_cq = qp_attr.attr.recv_cq = own->cq;
	for (int n = 0; n < 3; n++) {
		calls_left = n;
		EXPECT_EQ(create_qp(), ENOSPC);
	}
	calls_left = 3;
	ibv_qp_extend *qp = ibv_create_qp_extend(nic.extend(), &qp_attr);
	ASSERT_TRUE(qp);
	EXPECT_EQ(ibv_destroy_qp_extend(nic.extend(), qp), 0);
	EXPECT_EQ(ibv_destroy_cq_extend(nic.extend(), own), 0);
	small.alloc(memory); // all of it is free again
}

// ---- States ----------------------------------------------------------------------------

class States : public testing::Test {
protected:
	int modify(ibv_qp_attr attr, int mask)
	{
		return api().modify_qp(q.qp(), &attr, mask);
	}
	static constexpr int init_mask =
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	static constexpr int rtr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
		IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		IBV_QP_MIN_RNR_TIMER;
	static constexpr int rts_mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
		IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	ibv_qp_attr init() const
	{
		ibv_qp_attr a = {};
		a.qp_state = IBV_QPS_INIT;
		a.port_num = 1;
		a.qp_access_flags = all_access;
		return a;
	}
	ibv_qp_attr rtr() const
	{
		ibv_qp_attr a = {};
		a.qp_state = IBV_QPS_RTR;
		a.path_mtu = IBV_MTU_1024;
		a.dest_qp_num = q.qpn();
		a.max_dest_rd_atomic = 1;
		a.ah_attr.is_global = 1;
		a.ah_attr.port_num = 1;
		a.ah_attr.grh.dgid = nic.gid();
		a.ah_attr.grh.sgid_index = 1;
		return a;
	}
	ibv_qp_attr rts() const
	{
		ibv_qp_attr a = {};
		a.qp_state = IBV_QPS_RTS;
		a.timeout = 14;
		a.retry_cnt = 7;
		a.rnr_retry = 7;
		a.max_rd_atomic = 1;
		return a;
	}

	TestNpu npu{manual()};
	TestNic nic{nullptr, 2048};
	TestQueue q{npu, nic};
};

TEST_F(States, WholeWayAndBack)
{
	ASSERT_EQ(modify(init(), init_mask), 0) << detail();
	ASSERT_EQ(modify(init(), IBV_QP_ACCESS_FLAGS), 0) << detail();
	ASSERT_EQ(modify(rtr(), rtr_mask), 0) << detail();
	ASSERT_EQ(modify(rts(), rts_mask), 0) << detail();
	EXPECT_EQ(q.state(), IBV_QPS_RTS);
	ibv_qp_attr attr;
	ibv_qp_init_attr init_attr;
	ASSERT_EQ(api().query_qp(q.qp(), &attr, ~0, &init_attr), 0);
	EXPECT_EQ(attr.path_mtu, IBV_MTU_1024);
	EXPECT_EQ(attr.dest_qp_num, q.qpn());
	EXPECT_EQ(attr.timeout, 14);
	EXPECT_EQ(attr.retry_cnt, 7);
	EXPECT_EQ(attr.qp_access_flags, static_cast<unsigned>(all_access));
	EXPECT_EQ(init_attr.cap.max_send_wr, 64u);
	ASSERT_EQ(q.to(IBV_QPS_ERR), 0);
	EXPECT_EQ(q.state(), IBV_QPS_ERR);
	ASSERT_EQ(q.to(IBV_QPS_RESET), 0);
	EXPECT_EQ(q.state(), IBV_QPS_RESET);
}

TEST_F(States, EveryRequiredAttributeIsRequired)
{
	auto each_bit_is_needed = [this](const ibv_qp_attr &attr, int mask,
					  ibv_qp_state from) {
		for (int bit = 1; bit < mask; bit <<= 1) {
			if (bit == IBV_QP_STATE || !(mask & bit))
				continue;
			EXPECT_EQ(modify(attr, mask & ~bit), -EINVAL) << "bit " << bit;
			EXPECT_NE(detail().find("needs"), std::string::npos) << detail();
			EXPECT_EQ(q.state(), from);
		}
	};
	each_bit_is_needed(init(), init_mask, IBV_QPS_RESET);
	ASSERT_EQ(modify(init(), init_mask), 0);
	each_bit_is_needed(rtr(), rtr_mask, IBV_QPS_INIT);
	ASSERT_EQ(modify(rtr(), rtr_mask), 0);
	each_bit_is_needed(rts(), rts_mask, IBV_QPS_RTR);
	ASSERT_EQ(modify(rts(), rts_mask), 0);
}

TEST_F(States, AttributesThatDoNotBelongToAStepAreRefused)
{
	EXPECT_EQ(modify(init(), init_mask | IBV_QP_TIMEOUT), -EINVAL);
	EXPECT_EQ(modify(init(), init_mask | IBV_QP_QKEY), -EINVAL);
	ASSERT_EQ(modify(init(), init_mask), 0);
	EXPECT_EQ(modify(rtr(), rtr_mask | IBV_QP_ALT_PATH), -EINVAL);
	EXPECT_EQ(modify(rtr(), rtr_mask | IBV_QP_RETRY_CNT), -EINVAL);
	ibv_qp_attr err = {};
	err.qp_state = IBV_QPS_ERR;
	EXPECT_EQ(modify(err, IBV_QP_STATE | IBV_QP_TIMEOUT), -EINVAL);
}

TEST_F(States, StepsAreNotSkipped)
{
	EXPECT_EQ(modify(rtr(), rtr_mask), -EINVAL);
	EXPECT_NE(detail().find("RESET to RTR"), std::string::npos) << detail();
	EXPECT_EQ(modify(rts(), rts_mask), -EINVAL);
	ASSERT_EQ(modify(init(), init_mask), 0);
	EXPECT_EQ(modify(rts(), rts_mask), -EINVAL);
	ASSERT_EQ(modify(rtr(), rtr_mask), 0);
	EXPECT_EQ(modify(rtr(), rtr_mask), -EINVAL);
	EXPECT_EQ(modify(init(), init_mask), -EINVAL);
	ibv_qp_attr sqd = {};
	sqd.qp_state = IBV_QPS_SQD;
	EXPECT_EQ(modify(sqd, IBV_QP_STATE), -EINVAL);
}

TEST_F(States, CurrentStateIsChecked)
{
	ibv_qp_attr a = init();
	a.cur_qp_state = IBV_QPS_RTS;
	EXPECT_EQ(modify(a, init_mask | IBV_QP_CUR_STATE), -EINVAL);
	a.cur_qp_state = IBV_QPS_RESET;
	EXPECT_EQ(modify(a, init_mask | IBV_QP_CUR_STATE), 0);
}

TEST_F(States, ValuesAreChecked)
{
	auto bad = [this](ibv_qp_attr attr, int mask, auto change) {
		change(attr);
		EXPECT_EQ(modify(attr, mask), -EINVAL) << detail();
	};
	bad(init(), init_mask, [](ibv_qp_attr &a) { set_raw(a.qp_state, 99); });
	bad(init(), init_mask, [](ibv_qp_attr &a) { a.port_num = 2; });
	bad(init(), init_mask, [](ibv_qp_attr &a) { a.pkey_index = 1; });
	bad(init(), init_mask, [](ibv_qp_attr &a) { a.qp_access_flags = 0x100; });
	ASSERT_EQ(modify(init(), init_mask), 0);
	bad(rtr(), rtr_mask,
		[](ibv_qp_attr &a) { a.path_mtu = IBV_MTU_4096; }); // port: 2048
	bad(rtr(), rtr_mask, [](ibv_qp_attr &a) { set_raw(a.path_mtu, 0); });
	bad(rtr(), rtr_mask, [](ibv_qp_attr &a) { a.dest_qp_num = 1 << 20; });
	bad(rtr(), rtr_mask, [](ibv_qp_attr &a) { a.ah_attr.is_global = 0; });
	bad(rtr(), rtr_mask, [](ibv_qp_attr &a) { a.ah_attr.port_num = 0; });
	bad(rtr(), rtr_mask, [](ibv_qp_attr &a) { a.ah_attr.grh.sgid_index = 2; });
	ASSERT_EQ(modify(rtr(), rtr_mask), 0);
	bad(rts(), rts_mask, [](ibv_qp_attr &a) { a.timeout = 32; });
	bad(rts(), rts_mask, [](ibv_qp_attr &a) { a.retry_cnt = 8; });
	bad(rts(), rts_mask, [](ibv_qp_attr &a) { a.rnr_retry = 8; });
	ASSERT_EQ(modify(rts(), rts_mask), 0);
	EXPECT_EQ(api().modify_qp(nullptr, nullptr, 0), -EINVAL);
	EXPECT_EQ(api().modify_qp(q.qp(), nullptr, 0), -EINVAL);
}

TEST_F(States, SeekOnlyBeforeUse)
{
	EXPECT_EQ(api().qp_seek(q.qp(), 5, 7), 0);
	EXPECT_EQ(api().qp_seek(q.qp(), 5, 7), -EBUSY);
	EXPECT_EQ(api().qp_seek(nullptr, 5, 7), -EINVAL);
	TestQueue other(npu, nic);
	ibv_qp_attr step = init();
	EXPECT_EQ(api().modify_qp(other.qp(), &step, init_mask), 0);
	step = rtr();
	EXPECT_EQ(api().modify_qp(other.qp(), &step, rtr_mask), 0);
	EXPECT_EQ(api().qp_seek(other.qp(), 5, 7), -EBUSY);
}

TEST_F(States, QpnsAreNotReusedAtOnce)
{
	uint32_t before;
	{
		TestQueue x(npu, nic);
		before = x.qpn();
	}
	TestQueue y(npu, nic);
	EXPECT_NE(y.qpn(), before);
	EXPECT_LT(y.qpn(), 1u << 20);
}

// ---- The library -----------------------------------------------------------------------

TEST(Library, ExportsItsTableAndNothingElse)
{
	const char *build = getenv("NDA_TEST_BUILD");
	std::string command = std::string("nm -D --defined-only ") +
		(build ? build : "build") + "/lib/libnda_soft.so";
	FILE *nm = popen(command.c_str(), "r");
	ASSERT_TRUE(nm);
	std::vector<std::string> symbols;
	char line[256];
	while (fgets(line, sizeof(line), nm))
		symbols.push_back(line);
	ASSERT_EQ(pclose(nm), 0) << command;
	ASSERT_EQ(symbols.size(), 1u);
	EXPECT_NE(symbols[0].find(" D nda_soft_api"), std::string::npos) << symbols[0];
}

TEST(Library, TableIsComplete)
{
	EXPECT_EQ(api().version, NDA_SOFT_API_VERSION);
	EXPECT_EQ(api().size, sizeof(struct nda_soft_api));
	// Everything after the two numbers is a pointer to a function.
	const auto *words = reinterpret_cast<void *const *>(&api());
	for (size_t i = 1; i < sizeof(struct nda_soft_api) / sizeof(void *); i++)
		EXPECT_NE(words[i], nullptr) << i;
}

} // namespace
} // namespace nda::soft_test
