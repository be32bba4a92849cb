// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The model of Ascend 950's URMA engine: its jetties, what they take, what they leave
// behind, and what they object to.
#include "tests/mock/soft_bench.h"

#include <cerrno>
#include <cstring>
#include <vector>

#include <nda/hw/udma.h>

namespace nda::soft_test {
namespace {

namespace hw = nda::hw::udma;

constexpr int access_flags = all_access | IBV_ACCESS_REMOTE_ATOMIC;
constexpr uint32_t blocks = 64;

// What callbacks that have no cookie need: an NPU whose engine runs while memory is filled,
// as an engine's own thread may.
nda_soft_npu *stepped;
void (*plain_memset)(void *to, int value, size_t count);
void memset_and_step(void *to, int value, size_t count)
{
	plain_memset(to, value, count);
	if (stepped)
		api().npu_step(stepped);
}

// A NIC with a protection domain; TestNic's has an extension context, which there is none
// of.
struct UdmaNic {
	ibv_context *context;
	ibv_pd *pd;

	explicit UdmaNic(const char *model = "udma")
	{
		nda_soft_nic_attr attr = {};
		attr.model = model;
		context = api().nic_open(&attr);
		EXPECT_NE(context, nullptr) << detail();
		pd = api().alloc_pd(context);
		EXPECT_NE(pd, nullptr) << detail();
	}
	~UdmaNic()
	{
		EXPECT_EQ(api().dealloc_pd(pd), 0) << detail();
		EXPECT_EQ(api().nic_close(context), 0) << detail();
	}
	UdmaNic(const UdmaNic &) = delete;
};

// A jetty that is connected to itself, and 4096 bytes of memory that it reads and writes:
// the plainest possible driver.
class Udma : public ::testing::Test {
protected:
	Udma()
	{
		ops_ = *npu_.ops();
		plain_memset = ops_.memset_s;
		ops_.memset_s = memset_and_step;
		mr_ = api().reg_mr(nic_.pd, memory_, 4096, access_flags);
		EXPECT_NE(mr_, nullptr) << detail();
		nda_soft_jetty_attr attr = good();
		jetty_ = api().jetty_create(&attr);
		EXPECT_NE(jetty_, nullptr) << detail();
		EXPECT_EQ(api().jetty_query(jetty_, &info_), 0);
		EXPECT_EQ(connect(), 0) << detail();
	}
	~Udma() override
	{
		stepped = nullptr;
		EXPECT_EQ(api().jetty_destroy(jetty_), 0) << detail();
		EXPECT_EQ(api().dereg_mr(mr_), 0);
	}

	static nda_soft_npu_attr manual()
	{
		nda_soft_npu_attr attr = {};
		attr.manual = 1;
		return attr;
	}
	nda_soft_jetty_attr good()
	{
		nda_soft_jetty_attr attr = {};
		attr.pd = nic_.pd;
		attr.ops = &ops_;
		attr.blocks = blocks;
		attr.dma_mode = QUEUE_BUF_DMA_MODE_INDEP_UB;
		return attr;
	}
	nda_soft_jetty_peer itself()
	{
		nda_soft_jetty_peer peer = {};
		EXPECT_EQ(api().query_eid(nic_.context, peer.eid), 0);
		peer.jetty_id = info_.jetty_id;
		peer.timeout = 10;
		peer.retry_count = 7;
		return peer;
	}
	int connect()
	{
		nda_soft_jetty_peer peer = itself();
		return api().jetty_connect(jetty_, &peer, &tp_id_);
	}

	uint64_t at(uint64_t offset) const { return memory_ + offset; }
	template <class T>
	T &word(uint64_t offset)
	{
		return *npu_.host<T>(at(offset));
	}
	hw::control control(uint8_t opcode, uint64_t remote, uint8_t entries = 1)
	{
		uint8_t eid[16], reversed[16];
		EXPECT_EQ(api().query_eid(nic_.context, eid), 0);
		for (int i = 0; i < 16; i++)
			reversed[i] = eid[15 - i];
		hw::control f = {};
		memcpy(f.eid, reversed, sizeof(reversed));
		f.opcode = opcode;
		f.comp_order = 1;
		f.completion = 1;
		f.token_en = 1;
		f.jetty_type = hw::jetty_type_jetty;
		f.tp_id = tp_id_;
		f.sge_count = entries;
		f.token_id = mr_->lkey;
		f.token_value = mr_->rkey;
		f.remote_va = at(remote);
		return f;
	}
	using Words = std::vector<uint64_t>;
	Words entry(uint64_t local, uint32_t length) const
	{
		return {hw::sge_word(length, mr_->lkey), at(local)};
	}
	static Words after(Words first, const Words &second)
	{
		first.insert(first.end(), second.begin(), second.end());
		return first;
	}

	// A request at head_, not yet announced.
	void put(hw::control f, const Words &rest)
	{
		f.owner ^= hw::owner_bit(head_, blocks) ? 1 : 0;
		uint64_t words[hw::max_words] = {};
		hw::encode(f, words);
		memcpy(words + hw::control_words, rest.data(), rest.size() * 8);
		uint32_t units = hw::bbs_of(f);
		for (uint32_t i = 0; i < units; i++, head_++)
			memcpy(npu_.host<uint8_t>(info_.sq_addr +
				       (head_ & (blocks - 1)) * hw::bb_bytes),
				words + i * hw::bb_words, hw::bb_bytes);
	}
	void ring(uint32_t head)
	{
		__atomic_store_n(
			npu_.host<uint32_t>(info_.sq_doorbell), head, __ATOMIC_RELEASE);
		step();
	}
	void post(const hw::control &f, const Words &rest)
	{
		put(f, rest);
		ring(head_);
	}
	void write(uint64_t local = 64, uint64_t remote = 0, uint32_t length = 8)
	{
		post(control(hw::op_write, remote), entry(local, length));
	}
	void step()
	{
		for (int i = 0; i < 4; i++)
			api().npu_step(npu_.get());
	}

	uint64_t *cqe_words(uint32_t ci)
	{
		return npu_.host<uint64_t>(
			info_.cq_addr + (ci & (info_.cq_depth - 1)) * info_.cqe_bytes);
	}
	bool ready() { return hw::cqe_ready(cqe_words(ci_)[0], ci_, info_.cq_depth); }
	// The next completion, which must be there.
	hw::cqe next()
	{
		EXPECT_TRUE(ready()) << "CQE " << ci_;
		return hw::decode_cqe(cqe_words(ci_++));
	}
	void tell_consumer(uint32_t value)
	{
		__atomic_store_n(
			npu_.host<uint32_t>(info_.cq_record), value, __ATOMIC_RELEASE);
		step();
	}
	void tell_consumer() { tell_consumer(hw::cq_record(ci_, hw::ci_mask_22)); }
	void expect_ok()
	{
		hw::cqe c = next();
		EXPECT_EQ(c.status, hw::status_ok) << int{c.substatus};
	}
	void expect_error(uint8_t status, uint8_t substatus)
	{
		hw::cqe c = next();
		EXPECT_EQ(c.status, status);
		EXPECT_EQ(c.substatus, substatus);
	}
	// Posts what breaks a rule.
	void expect_breach(
		uint8_t status = hw::status_unsupported_opcode, uint8_t substatus = 0)
	{
		EXPECT_EQ(npu_.violations(), 1u);
		expect_error(status, substatus);
	}
	void reset()
	{
		ASSERT_EQ(api().jetty_reset(jetty_), 0) << detail();
		head_ = ci_ = 0;
	}

	TestNpu npu_{manual()};
	ibv_extend_ops ops_ = {};
	UdmaNic nic_;
	uint64_t memory_ = npu_.alloc(4096);
	ibv_mr *mr_ = nullptr;
	nda_soft_jetty *jetty_ = nullptr;
	nda_soft_jetty_info info_ = {};
	uint32_t tp_id_ = 0;
	uint32_t head_ = 0;
	uint32_t ci_ = 0;
};

TEST_F(Udma, WritesAndTellsWhoseCompletionItIs)
{
	word<uint64_t>(64) = 0x1122334455667788;
	write();
	hw::cqe c = next();

	EXPECT_EQ(word<uint64_t>(0), 0x1122334455667788u);
	EXPECT_EQ(c.status, hw::status_ok);
	EXPECT_EQ(c.receive, 0);
	EXPECT_EQ(c.is_jetty, 1);
	EXPECT_EQ(c.entry_index, 0);
	EXPECT_EQ(c.local_id, info_.jetty_id);
	EXPECT_EQ(c.remote_id, info_.jetty_id);
	EXPECT_EQ(c.tp_id, tp_id_);
	EXPECT_EQ(c.byte_count, 8u);
	EXPECT_EQ(npu_.violations(), 0u);
}

// ---- Reductions ------------------------------------------------------------------------

class UdmaReduce : public Udma {
protected:
	hw::control reduce(uint8_t op, uint8_t type, uint8_t entries = 1)
	{
		hw::control f = control(hw::op_write, 0, entries);
		f.udf = 1;
		f.reduce_op = op;
		f.reduce_type = type;
		return f;
	}
};

TEST_F(UdmaReduce, AddsEntryByEntry)
{
	for (uint32_t i = 0; i < 3; i++) {
		word<uint32_t>(4 * i) = 100 * (i + 1);
		word<uint32_t>(64 + 4 * i) = i + 1;
	}
	post(reduce(hw::reduce_add, 2, 2), after(entry(68, 8), entry(64, 4)));

	expect_ok();
	EXPECT_EQ(word<uint32_t>(0), 102u);
	EXPECT_EQ(word<uint32_t>(4), 203u);
	EXPECT_EQ(word<uint32_t>(8), 301u);
}

TEST_F(UdmaReduce, OfEntriesThatAreNotWholeElementsIsRefused)
{
	npu_.write(memory_, std::vector<uint8_t>(4096, 1));
	post(reduce(hw::reduce_add, 2, 2), after(entry(64, 6), entry(128, 2)));

	expect_breach(hw::status_local, hw::local_length);
	EXPECT_EQ(npu_.read(memory_, 16), std::vector<uint8_t>(16, 1));
}

// ---- Reset -----------------------------------------------------------------------------

TEST_F(Udma, ResetOfAUsedJettyIsNoBreachWhereTheEngineRunsMeanwhile)
{
	write();
	expect_ok();
	stepped = npu_.get();
	reset();
	stepped = nullptr;
	step();
	EXPECT_EQ(npu_.violations(), 0u);

	ASSERT_EQ(connect(), 0) << detail();
	word<uint64_t>(64) = 5;
	write();
	expect_ok();
	EXPECT_EQ(word<uint64_t>(0), 5u);
	EXPECT_EQ(npu_.violations(), 0u);
}

TEST_F(Udma, DoorbellOfAResetJettyIsCountedOnceAndForgotten)
{
	reset();
	ring(3);
	EXPECT_EQ(npu_.violations(), 1u);
	step();
	EXPECT_EQ(npu_.violations(), 1u);

	ASSERT_EQ(connect(), 0) << detail();
	write();
	expect_ok();
	EXPECT_EQ(npu_.violations(), 1u);
}

} // namespace
} // namespace nda::soft_test
