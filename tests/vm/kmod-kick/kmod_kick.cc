/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Doorbells of Soft-RoCE that the kernel hears: libibverbs posts, but does not ring; a word
 * in memory is changed instead, by this process or by a device's DMA. */
#include <fstream>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <sys/syscall.h>
#include <thread>

#include <tests/vm/kmod_soft_rig.h>
#include <tests/vm/modules/nda_test_edu.h>

namespace {

bool silent;

/* How a provider rings: it writes a request to post nothing to the device's file. */
bool rings(const void *data, size_t size)
{
	ib_uverbs_cmd_hdr header;

	if (size < sizeof(header))
		return false;
	memcpy(&header, data, sizeof(header));
	return header.command == IB_USER_VERBS_CMD_POST_SEND;
}

} // namespace

/* In the C library's place. */
extern "C" [[gnu::visibility("default")]] ssize_t write(
	int fd, const void *data, size_t size)
{
	if (silent && rings(data, size))
		return static_cast<ssize_t>(size);
	return syscall(SYS_write, fd, data, size);
}

namespace {

using namespace nda::test;

const size_t page = static_cast<size_t>(getpagesize());
constexpr int access_all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
constexpr size_t message = 256;

ibv_context *open_rxe()
{
	int n = 0;
	ibv_device **list = ibv_get_device_list(&n);
	ibv_context *context = nullptr;

	for (int i = 0; i < n; i++)
		if (strcmp(ibv_get_device_name(list[i]), "rxe0") == 0)
			context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	EXPECT_NE(context, nullptr);
	return context;
}

void connect(ibv_qp *qp, uint32_t remote)
{
	ibv_context *context = qp->context;
	int gid_index = atoi(getenv("NDA_TEST_GID"));
	ibv_port_attr port = {};
	ibv_qp_attr a = {};

	ASSERT_EQ(ibv_query_port(context, 1, &port), 0);
	a.qp_state = IBV_QPS_INIT;
	a.port_num = 1;
	a.qp_access_flags = access_all;
	ASSERT_EQ(ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				  IBV_QP_ACCESS_FLAGS),
		0);
	a = {};
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = port.active_mtu;
	a.dest_qp_num = remote;
	a.max_dest_rd_atomic = 1;
	a.min_rnr_timer = 12;
	a.ah_attr.is_global = 1;
	ASSERT_EQ(ibv_query_gid(context, 1, gid_index, &a.ah_attr.grh.dgid), 0);
	a.ah_attr.grh.sgid_index = static_cast<uint8_t>(gid_index);
	a.ah_attr.grh.hop_limit = 64;
	a.ah_attr.port_num = 1;
	ASSERT_EQ(ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER),
		0);
	a = {};
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 14;
	a.retry_cnt = 7;
	a.rnr_retry = 7;
	a.max_rd_atomic = 1;
	ASSERT_EQ(ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
		0);
}

/* Two connected QPs of this process, of which the first writes to the second. */
struct Pair {
	explicit Pair(uint8_t *memory, size_t bytes)
		: context(open_rxe()), pd(ibv_alloc_pd(context)),
		  cq(ibv_create_cq(context, 128, nullptr, nullptr, 0)), first(make()),
		  second(make()), data(memory),
		  mr(ibv_reg_mr(pd, memory, bytes, access_all))
	{
		EXPECT_NE(mr, nullptr) << strerror(errno);
		connect(first, second->qp_num);
		connect(second, first->qp_num);
	}
	~Pair()
	{
		EXPECT_EQ(first ? ibv_destroy_qp(first) : 0, 0);
		EXPECT_EQ(ibv_destroy_qp(second), 0);
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
		EXPECT_EQ(ibv_destroy_cq(cq), 0);
		EXPECT_EQ(ibv_dealloc_pd(pd), 0);
		EXPECT_EQ(ibv_close_device(context), 0);
	}
	ibv_qp *make() const
	{
		ibv_qp_init_attr a = {};

		a.send_cq = a.recv_cq = cq;
		a.cap.max_send_wr = 64;
		a.cap.max_recv_wr = 1;
		a.cap.max_send_sge = a.cap.max_recv_sge = 1;
		a.qp_type = IBV_QPT_RC;
		a.sq_sig_all = 1;
		return ibv_create_qp(pd, &a);
	}
	/* Writes the first bytes of the memory to its second half, without ringing. */
	void post(uint64_t id)
	{
		ibv_sge sge = {reinterpret_cast<uintptr_t>(data), message, mr->lkey};
		ibv_send_wr wr = {}, *bad = nullptr;

		wr.wr_id = id;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = sge.addr + page / 2;
		wr.wr.rdma.rkey = mr->rkey;
		silent = true;
		EXPECT_EQ(ibv_post_send(first, &wr, &bad), 0);
		silent = false;
	}
	/* How many complete within a time, all of them well. */
	int completions(int most, int milliseconds)
	{
		ibv_wc wc = {};
		int got = 0;

		for (int i = 0; i < milliseconds * 10 && got < most; i++) {
			while (got < most && ibv_poll_cq(cq, 1, &wc) == 1) {
				EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
				got++;
			}
			usleep(100);
		}
		return got;
	}

	ibv_context *context;
	ibv_pd *pd;
	ibv_cq *cq;
	ibv_qp *first, *second;
	uint8_t *data;
	ibv_mr *mr;
};

constexpr int long_enough = 20000;

class KmodKick : public SoftTest {
protected:
	void SetUp() override { memset(memory_.data(), 0x3c, page / 2); }
	nda_soft_ioc_bind request(uint64_t va, uint32_t qpn)
	{
		nda_soft_ioc_bind bind = {};

		bind.va = va;
		bind.device =
			static_cast<uint32_t>(ibv_get_device_index(pair_.context->device));
		bind.qpn = qpn;
		return bind;
	}
	uint32_t bind(uint64_t va)
	{
		nda_soft_ioc_bind arg = request(va, pair_.first->qp_num);

		EXPECT_EQ(call(soft_, NDA_SOFT_IOC_BIND, &arg), 0);
		return arg.handle;
	}
	int refusal(nda_soft_ioc_bind arg) { return call(soft_, NDA_SOFT_IOC_BIND, &arg); }
	int unbind(uint32_t handle)
	{
		nda_soft_ioc_unbind arg = {handle, 0};

		return call(soft_, NDA_SOFT_IOC_UNBIND, &arg);
	}
	uint64_t kicks() { return soft_query(soft_, NDA_SOFT_QUERY_KICKS); }
	uint64_t misses() { return soft_query(soft_, NDA_SOFT_QUERY_MISSES); }
	bool come(uint32_t counter, uint64_t value)
	{
		for (int i = 0; i < long_enough && soft_query(soft_, counter) < value; i++)
			usleep(1000);
		return soft_query(soft_, counter) >= value;
	}
	void expect_arrived()
	{
		EXPECT_EQ(memcmp(memory_.data() + page / 2, memory_.data(), message), 0);
	}
	static void ring(volatile void *word)
	{
		auto *at = static_cast<uint32_t *>(const_cast<void *>(word));

		__atomic_store_n(at, *at + 1, __ATOMIC_RELEASE);
	}

	Fd soft_ = open_soft();
	Pages memory_{page}, bell_{page};
	Pair pair_{memory_.data(), page};
};

TEST_F(KmodKick, WhatNobodyRangForDoesNotHappen)
{
	bind(bell_.va());
	pair_.post(1);

	EXPECT_EQ(pair_.completions(1, 300), 0);
}

TEST_F(KmodKick, AWordOfOrdinaryMemoryRings)
{
	bind(bell_.va() + 64);
	uint64_t before = kicks();
	pair_.post(1);
	ring(bell_.data() + 64);

	EXPECT_EQ(pair_.completions(1, long_enough), 1);
	expect_arrived();
	/* It is counted after the device has looked, which may be after it is done. */
	EXPECT_TRUE(come(NDA_SOFT_QUERY_KICKS, before + 1));
	EXPECT_EQ(kicks(), before + 1);
}

class KmodKickKinds : public KmodKick, public testing::WithParamInterface<uint32_t> {};

TEST_P(KmodKickKinds, AWordOfTheNpusMemoryRings)
{
	SoftMemory memory(soft_, page, GetParam());
	bind(memory.map.va() + 128);
	pair_.post(1);
	ring(memory.map.data() + 128);

	EXPECT_EQ(pair_.completions(1, long_enough), 1);
	expect_arrived();
}

TEST_P(KmodKickKinds, FreeingTheMemoryLeavesADoorbellThatMayBeUnbound)
{
	SoftMemory memory(soft_, page, GetParam());
	uint32_t handle = bind(memory.map.va());
	uint64_t before = kicks();
	ring(memory.map.data());
	EXPECT_TRUE(come(NDA_SOFT_QUERY_KICKS, before + 1));

	EXPECT_EQ(soft_free(soft_, memory.request.handle), 0);
	EXPECT_EQ(unbind(handle), 0);
	EXPECT_EQ(unbind(handle), ENOENT);
}
INSTANTIATE_TEST_SUITE_P(Kinds, KmodKickKinds, testing::Values(NDA_SOFT_RAM, NDA_SOFT_BAR),
	[](const testing::TestParamInfo<uint32_t> &kind) {
		return kind.param == NDA_SOFT_RAM ? "Ram" : "Bar";
	});

TEST_F(KmodKick, MessagesMayBeInTheNpusMemory)
{
	SoftMemory memory(soft_, page);
	auto *data = const_cast<uint8_t *>(memory.map.data());
	memset(data, 0x71, message);
	Pair pair(data, page);
	nda_soft_ioc_bind arg = request(bell_.va(), pair.first->qp_num);
	ASSERT_EQ(call(soft_, NDA_SOFT_IOC_BIND, &arg), 0);
	pair.post(1);
	ring(bell_.data());

	EXPECT_EQ(pair.completions(1, long_enough), 1);
	EXPECT_EQ(data[page / 2], 0x71);
	EXPECT_EQ(data[page / 2 + message - 1], 0x71);
}

TEST_F(KmodKick, ADevicesDmaRings)
{
	Fd nda = open_nda();
	Fd edu(open(
		(std::string("/dev/nda_test_edu-") + getenv("vm_edu0")).c_str(), O_RDWR));
	nda_ioc_host_pin from = {}, to = {};
	Pages value(page);
	*value.data() = 77;
	from.dev = to.dev = bdf_of("vm_edu0");
	from.va = value.va();
	to.va = bell_.va();
	from.len = to.len = page;
	from.access = NDA_ACCESS_READ;
	to.access = NDA_ACCESS_WRITE;
	ASSERT_EQ(call(nda, NDA_IOC_HOST_PIN, &from), 0);
	ASSERT_EQ(call(nda, NDA_IOC_HOST_PIN, &to), 0);
	nda_test_copy copy = {};
	copy.from = {NDA_KIND_PIN, from.handle, 0};
	copy.to = {NDA_KIND_PIN, to.handle, 256};
	copy.nda_fd = nda;
	copy.len = 4;

	bind(bell_.va() + 256);
	pair_.post(1);
	EXPECT_EQ(call(edu, NDA_TEST_COPY, &copy), 0);
	EXPECT_EQ(pair_.completions(1, long_enough), 1);
	expect_arrived();
}

TEST_F(KmodKick, EachRingIsHeard)
{
	bind(bell_.va());

	for (uint64_t i = 0; i < 2000; i++) {
		pair_.post(i);
		ring(bell_.data());
		ASSERT_EQ(pair_.completions(1, long_enough), 1) << i;
	}
}

TEST_F(KmodKick, ARingForManyIsEnough)
{
	bind(bell_.va());
	for (uint64_t i = 0; i < 60; i++)
		pair_.post(i);
	ring(bell_.data());

	EXPECT_EQ(pair_.completions(60, long_enough), 60);
}

TEST_F(KmodKick, AnUnboundDoorbellIsNotHeard)
{
	uint32_t handle = bind(bell_.va());
	EXPECT_EQ(unbind(handle), 0);
	uint64_t before = kicks();
	pair_.post(1);
	ring(bell_.data());

	EXPECT_EQ(pair_.completions(1, 300), 0);
	EXPECT_EQ(kicks(), before);
}

/* ---- What is refused ---- */

TEST_F(KmodKick, UnknownDevicesAndQpsAreRefused)
{
	nda_soft_ioc_bind arg = request(bell_.va(), pair_.first->qp_num);

	arg.qpn = 0xabcdef;
	EXPECT_EQ(refusal(arg), ENOENT);
	arg = request(bell_.va(), pair_.first->qp_num);
	arg.device += 100;
	EXPECT_EQ(refusal(arg), ENODEV);
}

TEST_F(KmodKick, TheKernelsOwnQpsAreRefused)
{
	/* The port's management QP, as the RDMA core has it; an old one does not track it.
	 */
	int want = kernel_is("5.10") ? ENOENT : EPERM;

	EXPECT_EQ(refusal(request(bell_.va(), 1 << 24 | 1)), want);
}

TEST_F(KmodKick, AnotherProcessesQpIsRefused)
{
	EXPECT_EQ(in_child([&] {
		Fd soft = open_soft();
		nda_soft_ioc_bind arg = request(bell_.va(), pair_.first->qp_num);
		return call(soft, NDA_SOFT_IOC_BIND, &arg);
	}),
		EPERM);
}

TEST_F(KmodKick, WordsMustBeAlignedMappedAndFree)
{
	uint32_t qpn = pair_.first->qp_num;
	Pages gone(page), read_only(page, PROT_READ);
	munmap(gone.data(), page);
	nda_soft_ioc_bind arg = request(bell_.va(), qpn);

	EXPECT_EQ(refusal(request(bell_.va() + 4, qpn)), EINVAL);
	EXPECT_EQ(refusal(request(0, qpn)), EINVAL);
	EXPECT_EQ(refusal(request(gone.va(), qpn)), EFAULT);
	EXPECT_EQ(refusal(request(read_only.va(), qpn)), EFAULT);
	EXPECT_EQ(refusal(request(1ull << 63, qpn)), EFAULT);
	arg.flags = 1;
	EXPECT_EQ(refusal(arg), EINVAL);
	bind(bell_.va());
	EXPECT_EQ(refusal(request(bell_.va(), qpn)), EBUSY);
	bind(bell_.va() + 64);
}

TEST_F(KmodKick, AnAnswerThatCannotBeWrittenLeavesNothing)
{
	Pages argument(page);
	*reinterpret_cast<nda_soft_ioc_bind *>(argument.data()) =
		request(bell_.va(), pair_.first->qp_num);
	mprotect(argument.data(), page, PROT_READ);

	EXPECT_EQ(call(soft_, NDA_SOFT_IOC_BIND, argument.data()), EFAULT);
	EXPECT_EQ(soft_query(soft_, NDA_SOFT_QUERY_BINDINGS), 0u);
}

/* ---- What goes while it is bound ---- */

TEST_F(KmodKick, AQpThatIsDestroyedIsMissed)
{
	bind(bell_.va());
	EXPECT_EQ(ibv_destroy_qp(pair_.first), 0);
	pair_.first = nullptr;
	uint64_t before = misses();
	ring(bell_.data());

	EXPECT_TRUE(come(NDA_SOFT_QUERY_MISSES, before + 1));
}

TEST_F(KmodKick, QpsAreDestroyedWhileTheyAreRung)
{
	std::vector<uint32_t> handles;

	for (int i = 0; i < 50; i++) {
		ibv_qp *qp = pair_.make();
		ASSERT_NE(qp, nullptr);
		connect(qp, pair_.second->qp_num);
		nda_soft_ioc_bind arg = request(bell_.va() + 64, qp->qp_num);
		ASSERT_EQ(call(soft_, NDA_SOFT_IOC_BIND, &arg), 0);
		bool stop = false;
		std::thread ringing([&] {
			while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
				ring(bell_.data() + 64);
		});
		EXPECT_EQ(ibv_destroy_qp(qp), 0);
		__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
		ringing.join();
		EXPECT_EQ(unbind(arg.handle), 0);
	}
}

TEST_F(KmodKick, AKilledProcessLeavesNothing)
{
	for (int step = 0; step < 3; step++)
		EXPECT_EQ(in_child([&] {
			Fd soft = open_soft();
			Pages memory(page), bell(page);
			Pair pair(memory.data(), page);
			nda_soft_ioc_bind arg = request(bell.va(), pair.first->qp_num);
			if (step > 0 && call(soft, NDA_SOFT_IOC_BIND, &arg))
				return 1;
			if (step > 1) {
				pair.post(1);
				ring(bell.data());
			}
			kill(getpid(), SIGKILL);
			return 2;
		}),
			255);
}

TEST_F(KmodKick, UnbindingTheBarsDeviceSilencesItsDoorbells)
{
	SoftMemory memory(soft_, page, NDA_SOFT_BAR);
	uint32_t handle = bind(memory.map.va());

	ASSERT_EQ(bind_driver("vm_hbm", "nda_soft", "unbind"), 0);
	EXPECT_TRUE(bus_error(memory.map.data()));
	EXPECT_EQ(unbind(handle), 0);
	EXPECT_EQ(bind_driver("vm_hbm", "nda_soft", "bind"), 0);
}

/* Run where a kick is possible, and where it is not: kick_possible is 1 or 0. */
TEST(KmodKickOrNot, WhetherItIsPossibleIsSaid)
{
	EXPECT_EQ(std::to_string(soft_query(open_soft(), NDA_SOFT_QUERY_KICK)),
		getenv("kick_possible"));
}

/* Run where a kick is not possible. */
TEST(KmodKickNot, EveryBindIsRefused)
{
	Fd soft = open_soft();
	Pages memory(page), bell(page);
	Pair pair(memory.data(), page);
	nda_soft_ioc_bind arg = {};

	arg.va = bell.va();
	arg.device = static_cast<uint32_t>(ibv_get_device_index(pair.context->device));
	arg.qpn = pair.first->qp_num;
	EXPECT_EQ(call(soft, NDA_SOFT_IOC_BIND, &arg), EOPNOTSUPP);
	EXPECT_EQ(soft_query(soft, NDA_SOFT_QUERY_BINDINGS), 0);
	++*bell.data();
	EXPECT_EQ(soft_query(soft, NDA_SOFT_QUERY_KICKS), 0);
}

/* Run by itself: the device goes. */
TEST(KmodKickLast, ADeviceThatGoesIsMissedAndNotHeldUp)
{
	Fd soft = open_soft();
	Pages memory(page), bell(page);
	uint64_t before = soft_query(soft, NDA_SOFT_QUERY_MISSES);
	pid_t removing;
	{
		Pair pair(memory.data(), page);
		nda_soft_ioc_bind arg = {};
		arg.va = bell.va();
		arg.device =
			static_cast<uint32_t>(ibv_get_device_index(pair.context->device));
		arg.qpn = pair.first->qp_num;
		ASSERT_EQ(call(soft, NDA_SOFT_IOC_BIND, &arg), 0);

		/* It may wait for this process to close the device. */
		removing = fork();
		if (removing == 0) {
			execlp("rdma", "rdma", "link", "delete", "rxe0", nullptr);
			_exit(1);
		}
		for (int i = 0; i < long_enough; i++) {
			++*bell.data();
			if (soft_query(soft, NDA_SOFT_QUERY_MISSES) > before)
				break;
			usleep(1000);
		}
		EXPECT_GT(soft_query(soft, NDA_SOFT_QUERY_MISSES), before);
		EXPECT_EQ(call(soft, NDA_SOFT_IOC_BIND, &arg), ENODEV);
	}
	int status = 1;
	EXPECT_EQ(waitpid(removing, &status, 0), removing);
	EXPECT_EQ(status, 0);
}

} // namespace
