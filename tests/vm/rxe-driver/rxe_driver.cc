// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Soft-RoCE's own kernel driver against ours, on a real device: libibv_extend finds
// libnda_rxe.so, a QP made by it is connected by libibverbs to one that libibverbs made,
// and the data plane drives it. What the kernel writes is compared with what ibv_poll_cq
// says of the same operations on a twin, a pair of QPs that are libibverbs' alone.
//
// NDA_TEST_GID: the index of the GID to use on port 1 of rxe0. NDA_TEST_PEER, for RxeWire
// only: the IPv4 address of another machine's device.
#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <poll.h>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <ibv_extend.h>
#include <nda/aiv/device.h>
#include <nda/aiv/host_core.h>
#include <nda/aiv/rxe_queue.h>
#include <nda/driver.h>

namespace {

namespace format = nda::hw::rxe;

// A page more than 10 MiB: after a copy in the last page of 256, rxe of Linux 6.1 looks
// where the next 256 would be, past its table of them (rxe_mr_copy), and KASAN tells.
constexpr uint64_t heap_bytes = (10 << 20) + 4096;
constexpr uint32_t pe = 1;

// A core that is its own proxy: rings the real doorbell as it writes the slot.
class RingingCore : public nda::aiv::HostCore {
public:
	RingingCore() = default;
	RingingCore(const nda_software_doorbell *bell, int *rings)
		: bell_(bell), rings_(rings)
	{}
	template <class T>
	void st_dev(uint64_t addr, T value) const
	{
		HostCore::st_dev(addr, value);
		++*rings_;
		EXPECT_EQ(bell_->ring(bell_->cookie), 0);
	}

private:
	const nda_software_doorbell *bell_ = nullptr;
	int *rings_ = nullptr;
};

using Device = nda::aiv::Device<RingingCore, nda::aiv::rxe::Engine>;

void *host_alloc(size_t size)
{
	return calloc(1, size);
}
void host_memset(void *dst, int value, size_t count)
{
	memset(dst, value, count);
}

ibv_context *open_rxe0()
{
	int n = 0;
	ibv_device **list = ibv_get_device_list(&n);
	ibv_context *context = nullptr;
	for (int i = 0; i < n; i++)
		if (strcmp(ibv_get_device_name(list[i]), "rxe0") == 0)
			context = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return context;
}

// What the kernel counts of the device: PDs, CQs, QPs, MRs.
std::string resources()
{
	std::string text;
	FILE *pipe = popen("rdma resource show rxe0", "r");
	char line[512];
	while (pipe && fgets(line, sizeof(line), pipe))
		text += line;
	return pipe && pclose(pipe) == 0 ? text : "rdma resource show failed";
}

// The context, open for all tests, and memory for both sides.
class World : public testing::Environment {
public:
	void SetUp() override
	{
		context = open_rxe0();
		ASSERT_NE(context, nullptr);
		extend = ibv_open_extend(context);
		ASSERT_NE(extend, nullptr) << strerror(errno);
		ASSERT_NE(getenv("NDA_TEST_GID"), nullptr);
		gid_index = atoi(getenv("NDA_TEST_GID"));
		ASSERT_EQ(ibv_query_gid(context, 1, gid_index, &gid), 0);
		ASSERT_EQ(ibv_query_port(context, 1, &port), 0);
		ops.alloc = host_alloc;
		ops.free = free;
		(ops.memset_s) = host_memset;
	}
	void TearDown() override
	{
		EXPECT_EQ(ibv_close_extend(extend), 0);
		EXPECT_EQ(ibv_close_device(context), 0);
	}

	ibv_context *context = nullptr;
	ibv_context_extend *extend = nullptr;
	ibv_extend_ops ops = {};
	ibv_port_attr port = {};
	ibv_gid gid = {};
	int gid_index = 0;
};

World *world;

struct Path {
	uint8_t timeout = 14; // 67 ms
	uint8_t retry_cnt = 7;
	uint32_t flow_label = 0;
	const ibv_gid *gid = nullptr; // the own one
};

// By libibverbs, whoever made the QP.
void connect(ibv_qp *qp, uint32_t remote_qpn, const Path &path = {})
{
	ibv_qp_attr a = {};
	a.qp_state = IBV_QPS_INIT;
	a.port_num = 1;
	a.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	ASSERT_EQ(ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				  IBV_QP_ACCESS_FLAGS),
		0);
	a = {};
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = world->port.active_mtu;
	a.dest_qp_num = remote_qpn;
	a.rq_psn = 100;
	a.max_dest_rd_atomic = 16;
	a.min_rnr_timer = 12;
	a.ah_attr.is_global = 1;
	a.ah_attr.grh.dgid = path.gid ? *path.gid : world->gid;
	a.ah_attr.grh.flow_label = path.flow_label;
	a.ah_attr.grh.sgid_index = static_cast<uint8_t>(world->gid_index);
	a.ah_attr.grh.hop_limit = 64;
	a.ah_attr.port_num = 1;
	ASSERT_EQ(ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER),
		0);
	a = {};
	a.qp_state = IBV_QPS_RTS;
	a.sq_psn = 100;
	a.timeout = path.timeout;
	a.retry_cnt = path.retry_cnt;
	a.rnr_retry = 7;
	a.max_rd_atomic = 16;
	ASSERT_EQ(ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
		0);
}

ibv_qp_init_attr init_attr(ibv_cq *cq)
{
	ibv_qp_init_attr a = {};
	a.send_cq = cq;
	a.recv_cq = cq;
	a.cap.max_send_wr = 30;
	a.cap.max_recv_wr = 8;
	a.cap.max_send_sge = 3;
	a.cap.max_recv_sge = 1;
	a.cap.max_inline_data = 48;
	a.qp_type = IBV_QPT_RC;
	return a;
}

// One of libibverbs' own.
struct PlainQp {
	ibv_cq *cq;
	ibv_qp *qp;

	explicit PlainQp(ibv_pd *pd)
	{
		cq = ibv_create_cq(world->context, 30, nullptr, nullptr, 0);
		ibv_qp_init_attr a = init_attr(cq);
		qp = ibv_create_qp(pd, &a);
	}
	~PlainQp()
	{
		EXPECT_EQ(ibv_destroy_qp(qp), 0);
		EXPECT_EQ(ibv_destroy_cq(cq), 0);
	}
	ibv_wc wait()
	{
		ibv_wc wc = {};
		const auto end =
			std::chrono::steady_clock::now() + std::chrono::seconds(20);
		while (ibv_poll_cq(cq, 1, &wc) == 0)
			if (std::chrono::steady_clock::now() > end) {
				ADD_FAILURE() << "no completion in 20 s";
				break;
			}
		return wc;
	}
};

struct Memory {
	uint8_t *data;
	ibv_mr *mr;

	explicit Memory(ibv_pd *pd)
		: data(static_cast<uint8_t *>(aligned_alloc(4096, heap_bytes)))
	{
		memset(data, 0, heap_bytes);
		mr = ibv_reg_mr(pd, data, heap_bytes,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	}
	~Memory()
	{
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
		free(data);
	}
	uint64_t base() const { return reinterpret_cast<uint64_t>(data); }
};

// Objects over one PD, which goes last.
struct Pd {
	ibv_pd *pd = ibv_alloc_pd(world->context);
	~Pd() { EXPECT_EQ(ibv_dealloc_pd(pd), 0); }
};

struct Options {
	uint32_t signal_every = 1;
	uint32_t cqe = 30;
	Path path;
	bool peer_connected = true;
};

// A QP of our driver with the data plane on it, connected to one of libibverbs.
struct Ours {
	struct alignas(64) Table {
		nda_table header;
		nda_queue queues[2];
	};

	Pd pd;
	Memory own{pd.pd};
	Memory peer{pd.pd};
	PlainQp remote{pd.pd};
	ibv_cq_extend *cq = nullptr;
	ibv_qp_extend *qp = nullptr;
	ibv_qp_cap cap = {};
	Table table = {};
	uint64_t slot = 0; // the doorbell
	int rings = 0;
	Device device;
	uint64_t dst = own.base() + 0x1000;
	uint64_t src = own.base() + 0x2000;

	explicit Ours(const Options &options = {})
	{
		ibv_cq_init_attr_extend c = {};
		c.attr.cqe = options.cqe;
		c.ops = &world->ops;
		cq = ibv_create_cq_extend(world->extend, &c);
		EXPECT_NE(cq, nullptr) << strerror(errno);
		ibv_qp_init_attr_extend q = {};
		q.pd = pd.pd;
		q.attr = init_attr(cq->cq);
		q.ops = &world->ops;
		qp = ibv_create_qp_extend(world->extend, &q);
		EXPECT_NE(qp, nullptr) << strerror(errno);
		cap = q.attr.cap;
		connect(qp->qp, remote.qp->qp_num, options.path);
		if (options.peer_connected)
			connect(remote.qp, qp->qp->qp_num);
		fill_table(options);
		const auto *bell = reinterpret_cast<const nda_software_doorbell *>(
			qp->sq_info.resv[0]);
		EXPECT_EQ(bell->magic, NDA_SOFTWARE_DOORBELL_MAGIC);
		EXPECT_EQ(device.open(RingingCore(bell, &rings),
				  reinterpret_cast<uint64_t>(&table), 0),
			NDA_OK);
	}
	~Ours()
	{
		EXPECT_EQ(ibv_destroy_qp_extend(world->extend, qp), 0);
		EXPECT_EQ(ibv_destroy_cq_extend(world->extend, cq), 0);
	}

	nda_queue &queue() { return table.queues[pe]; }
	uint8_t *at_peer(uint64_t addr) { return peer.data + (addr - own.base()); }

	void fill_table(const Options &options)
	{
		nda_table &t = table.header;
		t.magic = NDA_TABLE_MAGIC;
		t.version = NDA_TABLE_VERSION;
		t.size_bytes = sizeof(table);
		t.n_pes = 2;
		t.n_cores = 1;
		t.queues_per_core = 1;
		t.format = NDA_FORMAT_RXE;
		t.heap_base = own.base();
		t.heap_bytes = heap_bytes;
		t.queues_offset = offsetof(Table, queues);
		t.device_timeout_us = 20 * 1000 * 1000;
		nda_queue &q = queue();
		q.remote_delta = peer.base() - own.base();
		q.sq_record = qp->sq_info.dbr_pi_va.iov_base;
		q.sq_doorbell = reinterpret_cast<uint64_t>(&slot);
		q.sq_base = qp->sq_info.qbuf.base;
		q.cq_base = cq->cq_info.qbuf.base;
		q.cq_record = cq->cq_info.dbr_ci_va.iov_base;
		q.rxe.cq_producer = cq->cq_info.dbr_pi_va.iov_base;
		q.rkey = peer.mr->rkey;
		q.lkey = own.mr->lkey;
		q.signal_every = options.signal_every;
		q.sq_depth = qp->sq_info.qbuf.entry_cnt;
		q.cq_depth = cq->cq_info.qbuf.entry_cnt;
		q.cqe_stride = cq->cq_info.qbuf.entry_size;
		q.rxe.sq_slot_bytes = qp->sq_info.qbuf.entry_size;
		q.rxe.sq_data_bytes = cap.max_inline_data;
		q.scratch_local = own.base() + heap_bytes - NDA_SCRATCH_BYTES;
		q.valid = 1;
		q.state = nda::aiv::rxe::derive_state(0, 0, 0);
		EXPECT_TRUE(nda::aiv::rxe::queue_usable(q));
	}

	// The CQE of index, once it is there; quiet() has not consumed it.
	format::cqe cqe(uint32_t index)
	{
		const uint32_t mask = queue().cq_depth - 1;
		const nda::aiv::HostCore core;
		const auto end =
			std::chrono::steady_clock::now() + std::chrono::seconds(20);
		while (((core.load_acquire<uint32_t>(queue().rxe.cq_producer) - index - 1) &
			       mask) > mask / 2)
			if (std::chrono::steady_clock::now() > end) {
				ADD_FAILURE() << "no completion " << index << " in 20 s";
				break;
			}
		uint64_t words[format::cqe_words];
		memcpy(words,
			reinterpret_cast<const void *>(queue().cq_base +
				uint64_t{index & mask} * queue().cqe_stride),
			sizeof(words));
		return format::decode_cqe(words);
	}
};

// Two QPs of libibverbs, which do the same.
struct Twin {
	Pd pd;
	Memory own{pd.pd};
	Memory peer{pd.pd};
	PlainQp local{pd.pd};
	PlainQp remote{pd.pd};

	explicit Twin(const Path &path = {}, bool peer_connected = true)
	{
		connect(local.qp, remote.qp->qp_num, path);
		if (peer_connected)
			connect(remote.qp, local.qp->qp_num);
	}
	void post(
		uint64_t wr_id, const std::function<void(ibv_send_wr &, ibv_sge &)> &change)
	{
		ibv_sge sge = {own.base() + 0x2000, 8, own.mr->lkey};
		ibv_send_wr wr = {}, *bad = nullptr;
		wr.wr_id = wr_id;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.send_flags = IBV_SEND_SIGNALED;
		wr.wr.rdma.remote_addr = peer.base() + 0x1000;
		wr.wr.rdma.rkey = peer.mr->rkey;
		change(wr, sge);
		EXPECT_EQ(ibv_post_send(local.qp, &wr, &bad), 0);
	}
	void post_atomic(uint64_t wr_id, ibv_wr_opcode opcode)
	{
		post(wr_id, [&](ibv_send_wr &wr, ibv_sge &) {
			wr.opcode = opcode;
			wr.wr.atomic.remote_addr = peer.base() + 0x1000;
			wr.wr.atomic.rkey = peer.mr->rkey;
			wr.wr.atomic.compare_add = 1;
			wr.wr.atomic.swap = 2;
		});
	}
};

// A receive for a put with immediate data.
void post_receive(PlainQp &qp)
{
	ibv_recv_wr wr = {}, *bad = nullptr;
	ASSERT_EQ(ibv_post_recv(qp.qp, &wr, &bad), 0);
}

void expect_same(
	const format::cqe &ours, const ibv_wc &theirs, uint32_t our_qpn, uint32_t their_qpn)
{
	EXPECT_EQ(ours.wr_id, theirs.wr_id);
	EXPECT_EQ(ours.status, uint32_t{theirs.status});
	EXPECT_EQ(ours.vendor_err, theirs.vendor_err);
	EXPECT_EQ(ours.qpn, our_qpn);
	EXPECT_EQ(theirs.qp_num, their_qpn);
	if (theirs.status != IBV_WC_SUCCESS)
		return; // the rest means nothing then
	EXPECT_EQ(ours.opcode, uint32_t{theirs.opcode});
	EXPECT_EQ(ours.byte_len, theirs.byte_len);
	EXPECT_EQ(ours.wc_flags, theirs.wc_flags);
	EXPECT_EQ(ours.src_qp, theirs.src_qp);
}

TEST(RxeReal, RingsAreWhatTheKernelSaysTheyAre)
{
	Ours o;
	// 30 entries and a free one, in slots of the next power of two.
	EXPECT_EQ(o.qp->sq_info.qbuf.entry_cnt, 32u);
	EXPECT_EQ(o.qp->sq_info.qbuf.entry_size, 256u);
	EXPECT_EQ(o.cq->cq_info.qbuf.entry_cnt, 32u);
	// Of what the kernel's own completions need, which is more than is ours.
	EXPECT_GE(o.cq->cq_info.qbuf.entry_size, 64u);
	EXPECT_EQ(o.qp->rq_info.qbuf.entry_cnt, 16u);
	EXPECT_EQ(o.cap.max_inline_data, 48u);
	EXPECT_EQ(o.cap.max_send_sge, 3u);
	EXPECT_EQ(world->port.max_msg_sz, format::max_length);
}

TEST(RxeReal, LibibverbsModifiesAndQueriesTheQp)
{
	Ours o;
	ibv_qp_attr attr = {};
	ibv_qp_init_attr init = {};
	ASSERT_EQ(ibv_query_qp(o.qp->qp, &attr,
			  IBV_QP_STATE | IBV_QP_DEST_QPN | IBV_QP_TIMEOUT | IBV_QP_CAP,
			  &init),
		0);
	EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
	EXPECT_EQ(attr.dest_qp_num, o.remote.qp->qp_num);
	EXPECT_EQ(attr.timeout, 14);
	EXPECT_GE(attr.cap.max_send_wr, 30u);
	EXPECT_EQ(attr.cap.max_inline_data, 48u);
	EXPECT_EQ(init.send_cq, o.cq->cq);
	EXPECT_EQ(o.qp->qp->state, IBV_QPS_RTS);
	EXPECT_EQ(ibv_qp_to_qp_ex(o.qp->qp), nullptr);
}

TEST(RxeReal, PutsAndGetsMoveTheBytes)
{
	Ours o;
	for (uint64_t n : {1ul, 8ul, 4095ul, 4096ul, 4097ul, 65536ul, (8ul << 20) + 3}) {
		for (uint64_t i = 0; i < n; i++)
			o.own.data[0x2000 + i] = static_cast<uint8_t>(i * 7 + n);
		ASSERT_EQ(o.device.put(pe, o.dst, o.src, n), NDA_OK) << n;
		EXPECT_EQ(memcmp(o.at_peer(o.dst), o.own.data + 0x2000, n), 0) << n;
		EXPECT_EQ(*(o.at_peer(o.dst) + n), 0) << n;
		memset(o.own.data + 0x2000, 0, n);
		ASSERT_EQ(o.device.get(pe, o.src, o.dst, n), NDA_OK) << n;
		EXPECT_EQ(memcmp(o.at_peer(o.dst), o.own.data + 0x2000, n), 0) << n;
		memset(o.peer.data, 0, heap_bytes);
	}
}

TEST(RxeReal, GoesRoundTheRingsManyTimes)
{
	Options options;
	options.signal_every = 8;
	Ours o(options);
	for (uint64_t i = 0; i < 1000; i++) {
		memcpy(o.own.data + 0x2000 + i % 64 * 8, &i, 8);
		ASSERT_EQ(o.device.put_nbi(pe, o.dst + i % 64 * 8, o.src + i % 64 * 8, 8),
			NDA_OK);
		if (i % 64 == 63) {
			ASSERT_EQ(o.device.quiet(pe), NDA_OK);
		}
	}
	ASSERT_EQ(o.device.quiet(pe), NDA_OK);
	EXPECT_EQ(memcmp(o.at_peer(o.dst), o.own.data + 0x2000, 512), 0);
	EXPECT_GE(o.queue().state.cq_ci, 1000u / 8);
	EXPECT_LT(o.queue().state.cq_ci, 1000u / 4);
}

TEST(RxeReal, NothingStartsBeforeTheDoorbellAndOneRingsForABatch)
{
	Ours o;
	auto batch = o.device.batch(pe);
	for (uint64_t i = 0; i < 16; i++) {
		memcpy(o.own.data + 0x2000 + i * 8, &i, 8);
		ASSERT_EQ(batch.put_nbi(o.dst + i * 8, o.src + i * 8, 8), NDA_OK);
	}
	EXPECT_EQ(o.rings, 0);
	const nda::aiv::HostCore core;
	EXPECT_EQ(core.load_acquire<uint32_t>(o.qp->sq_info.dbr_ci_va.iov_base), 0u);
	ASSERT_EQ(batch.submit(), NDA_OK);
	ASSERT_EQ(o.device.quiet(pe), NDA_OK);
	EXPECT_EQ(o.rings, 1);
	EXPECT_EQ(memcmp(o.at_peer(o.dst), o.own.data + 0x2000, 128), 0);
}

TEST(RxeReal, AFencedPutComesAfterTheGetBeforeIt)
{
	Ours o;
	memset(o.at_peer(o.dst), 1, 65536);
	memset(o.own.data + 0x100000, 2, 65536);
	ASSERT_EQ(o.device.get_nbi(pe, o.src, o.dst, 65536), NDA_OK);
	ASSERT_EQ(o.device.fence(pe), NDA_OK);
	ASSERT_EQ(o.device.put_nbi(pe, o.dst, o.own.base() + 0x100000, 65536), NDA_OK);
	ASSERT_EQ(o.device.quiet(pe), NDA_OK);
	EXPECT_EQ(o.own.data[0x2000], 1);
	EXPECT_EQ(o.own.data[0x2000 + 65535], 1);
	EXPECT_EQ(*o.at_peer(o.dst), 2);
}

// ---- Other operations

TEST(RxeReal, ImmediateDataArriveWithTheBytes)
{
	Ours o;
	post_receive(o.remote);
	post_receive(o.remote);
	memcpy(o.own.data + 0x2000, "with", 4);
	ASSERT_EQ(o.device.put_immediate_nbi(pe, o.dst, o.src, 4, 0xcafe1234), NDA_OK);
	ASSERT_EQ(o.device.put_immediate_nbi(pe, o.dst, o.src, 0, 7), NDA_OK);
	ASSERT_EQ(o.device.quiet(pe), NDA_OK);
	ibv_wc wc = o.remote.wait();
	EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
	EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	EXPECT_EQ(be32toh(wc.imm_data), 0xcafe1234u);
	EXPECT_EQ(wc.byte_len, 4u);
	EXPECT_EQ(memcmp(o.at_peer(o.dst), "with", 4), 0);
	wc = o.remote.wait();
	EXPECT_EQ(be32toh(wc.imm_data), 7u);
	EXPECT_EQ(wc.byte_len, 0u);
}

TEST(RxeReal, InlineDataNeedNoRegisteredMemory)
{
	Ours o;
	const char text[] = "from the stack, and longer than forty bytes";
	ASSERT_EQ(o.device.put_inline_nbi(
			  pe, o.dst, reinterpret_cast<uint64_t>(text), sizeof(text)),
		NDA_OK);
	ASSERT_EQ(o.device.quiet(pe), NDA_OK);
	EXPECT_STREQ(reinterpret_cast<const char *>(o.at_peer(o.dst)), text);
}

TEST(RxeReal, PiecesAreGatheredAndScattered)
{
	Ours o;
	const nda_piece from[3] = {{o.src, 3}, {o.src + 0x1000, 5000}, {o.src + 0x4000, 5}};
	const nda_piece to[2] = {{o.src + 0x10000, 4097}, {o.src + 0x20000, 911}};
	memset(o.own.data + 0x2000, 'a', 3);
	memset(o.own.data + 0x3000, 'b', 5000);
	memset(o.own.data + 0x6000, 'c', 5);
	const std::string all =
		std::string(3, 'a') + std::string(5000, 'b') + std::string(5, 'c');
	ASSERT_EQ(o.device.put_pieces_nbi(pe, o.dst, from, 3), NDA_OK);
	ASSERT_EQ(o.device.quiet(pe), NDA_OK);
	EXPECT_EQ(memcmp(o.at_peer(o.dst), all.data(), all.size()), 0);
	ASSERT_EQ(o.device.get_pieces_nbi(pe, o.dst, to, 2), NDA_OK);
	ASSERT_EQ(o.device.quiet(pe), NDA_OK);
	EXPECT_EQ(memcmp(o.own.data + 0x12000, all.data(), 4097), 0);
	EXPECT_EQ(memcmp(o.own.data + 0x22000, all.data() + 4097, 911), 0);
}

TEST(RxeReal, AtomicsReturnTheFormerValueAndChangeThePeers)
{
	Ours o;
	uint64_t value = 40, former = 0;
	memcpy(o.at_peer(o.dst), &value, 8);
	ASSERT_EQ(o.device.fetch_add<uint64_t>(pe, o.dst, 2, &former), NDA_OK);
	EXPECT_EQ(former, 40u);
	ASSERT_EQ(o.device.compare_swap<uint64_t>(pe, o.dst, 41, 7, &former), NDA_OK);
	EXPECT_EQ(former, 42u);
	ASSERT_EQ(o.device.compare_swap<uint64_t>(pe, o.dst, 42, 7, &former), NDA_OK);
	EXPECT_EQ(former, 42u);
	memcpy(&value, o.at_peer(o.dst), 8);
	EXPECT_EQ(value, 7u);
	for (uint64_t i = 0; i < 20; i++)
		ASSERT_EQ(o.device.fetch_add_nbi<uint64_t>(pe, o.dst, 10, o.src + i * 8),
			NDA_OK);
	ASSERT_EQ(o.device.quiet(pe), NDA_OK);
	for (uint64_t i = 0; i < 20; i++) {
		memcpy(&value, o.own.data + 0x2000 + i * 8, 8);
		EXPECT_EQ(value, 7 + i * 10);
	}
}

// ---- What the kernel writes

TEST(RxeReal, CompletionsSayWhatIbvPollCqSaysOfATwin)
{
	Ours o;
	Twin t;
	post_receive(o.remote);
	post_receive(t.remote);
	ASSERT_EQ(o.device.put_nbi(pe, o.dst, o.src, 24), NDA_OK);
	t.post(0, [](ibv_send_wr &, ibv_sge &sge) { sge.length = 24; });
	ASSERT_EQ(o.device.get_nbi(pe, o.src, o.dst, 5000), NDA_OK);
	t.post(1, [](ibv_send_wr &wr, ibv_sge &sge) {
		wr.opcode = IBV_WR_RDMA_READ;
		sge.length = 5000;
	});
	ASSERT_EQ(o.device.put_immediate_nbi(pe, o.dst, o.src, 16, 9), NDA_OK);
	t.post(2, [](ibv_send_wr &wr, ibv_sge &sge) {
		wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr.imm_data = htobe32(9);
		sge.length = 16;
	});
	ASSERT_EQ(o.device.put_inline_nbi(pe, o.dst, o.src, 40), NDA_OK);
	t.post(3, [](ibv_send_wr &wr, ibv_sge &sge) {
		wr.send_flags |= IBV_SEND_INLINE;
		sge.length = 40;
	});
	ASSERT_EQ(o.device.fetch_add_nbi<uint64_t>(pe, o.dst, 1, o.src), NDA_OK);
	t.post_atomic(4, IBV_WR_ATOMIC_FETCH_AND_ADD);
	ASSERT_EQ(o.device.compare_swap_nbi<uint64_t>(pe, o.dst, 1, 2, o.src), NDA_OK);
	t.post_atomic(5, IBV_WR_ATOMIC_CMP_AND_SWP);
	for (uint32_t i = 0; i < 6; i++) {
		SCOPED_TRACE(i);
		const format::cqe ours = o.cqe(i);
		EXPECT_TRUE(format::sent(format::pair(ours.status, ours.opcode)));
		expect_same(ours, t.local.wait(), o.qp->qp->qp_num, t.local.qp->qp_num);
	}
	EXPECT_EQ(o.device.quiet(pe), NDA_OK);
}

TEST(RxeReal, AWrongRkeyIsARemoteAccessErrorAndFlushesTheRest)
{
	Ours o;
	Twin t;
	const auto wrong = [](ibv_send_wr &wr, ibv_sge &) { wr.wr.rdma.rkey ^= 0x100; };
	auto batch = o.device.batch(pe);
	ASSERT_EQ(batch.put_nbi(o.dst, o.src, 8), NDA_OK);
	o.queue().rkey ^= 0x100;
	for (uint32_t i = 1; i < 4; i++)
		ASSERT_EQ(batch.put_nbi(o.dst, o.src, 8), NDA_OK);
	ASSERT_EQ(batch.submit(), NDA_OK);
	t.post(0, [](ibv_send_wr &, ibv_sge &) {});
	for (uint32_t i = 1; i < 4; i++)
		t.post(i, wrong);
	for (uint32_t i = 0; i < 4; i++) {
		SCOPED_TRACE(i);
		expect_same(o.cqe(i), t.local.wait(), o.qp->qp->qp_num, t.local.qp->qp_num);
	}
	EXPECT_EQ(o.device.quiet(pe), NDA_REMOTE_ACCESS);
	EXPECT_EQ(o.queue().state.tail, 4u);
	EXPECT_EQ(o.queue().state.error.raw_status, IBV_WC_REM_ACCESS_ERR);
	EXPECT_EQ(o.queue().state.error.wqe_index, 1u);
	EXPECT_EQ(o.device.put_nbi(pe, o.dst, o.src, 8), NDA_REMOTE_ACCESS);
	ibv_qp_attr attr = {};
	ibv_qp_init_attr init = {};
	ASSERT_EQ(ibv_query_qp(o.qp->qp, &attr, IBV_QP_STATE, &init), 0);
	EXPECT_EQ(attr.qp_state, IBV_QPS_ERR);
}

TEST(RxeReal, AWrongLkeyIsALocalErrorAlsoWithoutASignal)
{
	Options options;
	options.signal_every = 8;
	Ours o(options);
	Twin t;
	o.queue().lkey ^= 0x100;
	ASSERT_EQ(o.device.put_nbi(pe, o.dst, o.src, 8), NDA_OK);
	t.post(0, [](ibv_send_wr &, ibv_sge &sge) { sge.lkey ^= 0x100; });
	const ibv_wc wc = t.local.wait();
	expect_same(o.cqe(0), wc, o.qp->qp->qp_num, t.local.qp->qp_num);
	// Kernels differ in which of the two it is.
	EXPECT_EQ(o.device.quiet(pe),
		wc.status == IBV_WC_LOC_QP_OP_ERR ? NDA_LOCAL_QP : NDA_LOCAL_PROTECTION);
}

TEST(RxeReal, APeerThatDoesNotAnswerEndsInRetryExceeded)
{
	Options options;
	options.path.timeout = 10; // 4 ms
	options.path.retry_cnt = 2;
	options.peer_connected = false;
	Ours o(options);
	Twin t(options.path, false);
	ASSERT_EQ(o.device.put_nbi(pe, o.dst, o.src, 8), NDA_OK);
	t.post(0, [](ibv_send_wr &, ibv_sge &) {});
	expect_same(o.cqe(0), t.local.wait(), o.qp->qp->qp_num, t.local.qp->qp_num);
	EXPECT_EQ(o.device.quiet(pe), NDA_RETRY_EXCEEDED);
}

// ---- Events, lifetime

// A CQ that overflows, because the data plane was told that it is larger.
TEST(RxeReal, AnAsynchronousEventNamesTheObject)
{
	Options options;
	options.cqe = 7;
	Ours o(options);
	o.queue().cq_depth = 64;
	for (uint32_t i = 0; i < 12; i++)
		ASSERT_EQ(o.device.put_nbi(pe, o.dst, o.src, 8), NDA_OK);
	pollfd p = {world->context->async_fd, POLLIN, 0};
	ASSERT_EQ(poll(&p, 1, 20000), 1) << "no event";
	ibv_async_event event;
	ASSERT_EQ(ibv_get_async_event(world->context, &event), 0);
	EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
	EXPECT_EQ(event.element.cq, o.cq->cq);
	ibv_ack_async_event(&event);
	// There may have been more.
	while (poll(&p, 1, 0) == 1) {
		ASSERT_EQ(ibv_get_async_event(world->context, &event), 0);
		ibv_ack_async_event(&event);
	}
}

TEST(RxeReal, ACqInUseIsNotDestroyed)
{
	Ours o;
	EXPECT_EQ(ibv_destroy_cq_extend(world->extend, o.cq), -EBUSY);
	EXPECT_EQ(o.device.put(pe, o.dst, o.src, 8), NDA_OK);
}

TEST(RxeReal, AnSrqServesAQp)
{
	Pd pd;
	ibv_srq_init_attr_extend s = {};
	s.pd = pd.pd;
	s.attr.attr.max_wr = 30;
	s.attr.attr.max_sge = 1;
	s.ops = &world->ops;
	ibv_srq_extend *srq = ibv_create_srq_extend(world->extend, &s);
	ASSERT_NE(srq, nullptr) << strerror(errno);
	EXPECT_EQ(srq->srq_info.qbuf.entry_cnt, 32u);
	EXPECT_EQ(srq->srq_info.qbuf.entry_size, 64u);
	ibv_cq_init_attr_extend c = {};
	c.attr.cqe = 30;
	c.ops = &world->ops;
	ibv_cq_extend *cq = ibv_create_cq_extend(world->extend, &c);
	ASSERT_NE(cq, nullptr) << strerror(errno);
	ibv_qp_init_attr_extend q = {};
	q.pd = pd.pd;
	q.attr = init_attr(cq->cq);
	q.attr.srq = srq->srq;
	q.ops = &world->ops;
	ibv_qp_extend *qp = ibv_create_qp_extend(world->extend, &q);
	ASSERT_NE(qp, nullptr) << strerror(errno);
	EXPECT_EQ(ibv_destroy_qp_extend(world->extend, qp), 0);
	EXPECT_EQ(ibv_destroy_srq_extend(world->extend, srq), 0);
	EXPECT_EQ(ibv_destroy_cq_extend(world->extend, cq), 0);
}

TEST(RxeReal, TooMuchIsRefusedByTheKernelAndNothingIsLeft)
{
	const std::string before = resources();
	{
		Ours o;
		EXPECT_NE(resources(), before);
		ibv_cq_init_attr_extend c = {};
		c.attr.cqe = INT32_MAX;
		c.ops = &world->ops;
		errno = 0;
		EXPECT_EQ(ibv_create_cq_extend(world->extend, &c), nullptr);
		EXPECT_EQ(errno, EINVAL);
		ibv_qp_init_attr_extend q = {};
		q.pd = o.pd.pd;
		q.attr = init_attr(o.cq->cq);
		q.attr.cap.max_send_wr = UINT32_MAX;
		q.ops = &world->ops;
		EXPECT_EQ(ibv_create_qp_extend(world->extend, &q), nullptr);
		EXPECT_EQ(errno, EINVAL);
		ASSERT_EQ(o.device.put(pe, o.dst, o.src, 8), NDA_OK);
	}
	EXPECT_EQ(resources(), before);
}

// ---- Between two machines

// The other machine has no such QP: what is sent is on the cable, and never answered. The
// lengths tell one label's packets from another's.
TEST(RxeWire, TheFlowLabelSetsTheUdpSourcePort)
{
	const char *peer = getenv("NDA_TEST_PEER");
	ASSERT_NE(peer, nullptr);
	ibv_gid gid = {};
	gid.raw[10] = gid.raw[11] = 0xff;
	ASSERT_EQ(inet_pton(AF_INET, peer, gid.raw + 12), 1);
	uint64_t n = 0;
	for (const uint32_t label : {1u, 0x1234u, 0x12fd1u}) {
		Options options;
		options.path.timeout = 10; // 4 ms
		options.path.retry_cnt = 1;
		options.path.flow_label = label;
		options.path.gid = &gid;
		options.peer_connected = false;
		Ours o(options);
		EXPECT_EQ(o.device.put(pe, o.dst, o.src, n += 8), NDA_RETRY_EXCEEDED);
	}
}

} // namespace

int main(int argc, char **argv)
{
	testing::InitGoogleTest(&argc, argv);
	world = new World;
	testing::AddGlobalTestEnvironment(world);
	return RUN_ALL_TESTS();
}
