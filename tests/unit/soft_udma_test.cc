// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The model of Ascend 950's URMA engine: its jetties, what they take, what they leave
// behind, and what they object to.
#include "tests/mock/soft_bench.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
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
		std::copy(rest.begin(), rest.end(), words + hw::control_words);
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

// The block that is named is one of the request's; which, no source says.
void expect_within(const hw::cqe &c, uint32_t first, uint32_t units)
{
	EXPECT_LT(static_cast<uint16_t>(c.entry_index - first), units);
}

TEST_F(Udma, PublishesWhatItsQueuesAre)
{
	EXPECT_NE(info_.jetty_id, 0u);
	EXPECT_EQ(info_.jetty_id >> 20, 0u);
	EXPECT_EQ(info_.sq_blocks, blocks);
	EXPECT_EQ(info_.max_inline, hw::max_inline_write);
	EXPECT_EQ(info_.cq_depth, blocks);
	EXPECT_EQ(info_.cqe_bytes, hw::cqe_bytes);
	EXPECT_EQ(*npu_.host<uint32_t>(info_.sq_doorbell), 0u);
	EXPECT_EQ(*npu_.host<uint32_t>(info_.cq_record), 0u);
	EXPECT_FALSE(ready());
}

TEST_F(Udma, Reads)
{
	word<uint64_t>(0) = 0x1122334455667788;
	post(control(hw::op_read, 0), entry(64, 8));
	expect_ok();
	EXPECT_EQ(word<uint64_t>(64), 0x1122334455667788u);
}

TEST_F(Udma, ReachesAnotherNic)
{
	UdmaNic other;
	nda_soft_jetty_attr attr = good();
	attr.pd = other.pd;
	nda_soft_jetty *jetty = api().jetty_create(&attr);
	ASSERT_NE(jetty, nullptr) << detail();
	nda_soft_jetty_info info;
	ASSERT_EQ(api().jetty_query(jetty, &info), 0);
	uint64_t memory = npu_.alloc(64);
	ibv_mr *mr = api().reg_mr(other.pd, memory, 64, access_flags);
	ASSERT_NE(mr, nullptr) << detail();
	nda_soft_jetty_peer there = itself(), back = itself();
	ASSERT_EQ(api().query_eid(other.context, there.eid), 0);
	there.jetty_id = info.jetty_id;
	reset();
	uint32_t unused;
	ASSERT_EQ(api().jetty_connect(jetty_, &there, &tp_id_), 0) << detail();
	ASSERT_EQ(api().jetty_connect(jetty, &back, &unused), 0) << detail();

	word<uint64_t>(64) = 7;
	hw::control f = control(hw::op_write, 0);
	for (int i = 0; i < 16; i++)
		reinterpret_cast<uint8_t *>(f.eid)[i] = there.eid[15 - i];
	f.token_id = mr->lkey;
	f.token_value = mr->rkey;
	f.remote_va = memory + 8;
	post(f, entry(64, 8));
	hw::cqe c = next();
	EXPECT_EQ(c.status, hw::status_ok) << int{c.substatus};
	EXPECT_EQ(*npu_.host<uint64_t>(memory + 8), 7u);
	EXPECT_EQ(c.local_id, info_.jetty_id);
	EXPECT_EQ(c.remote_id, info.jetty_id);
	EXPECT_EQ(c.eid[0], f.eid[0]);
	EXPECT_EQ(c.eid[1], f.eid[1]);

	EXPECT_EQ(api().dereg_mr(mr), 0);
	EXPECT_EQ(api().jetty_destroy(jetty), 0) << detail();
}

TEST_F(Udma, ARequestThatDoesNotAskGetsNoCompletion)
{
	hw::control f = control(hw::op_write, 0);
	f.completion = 0;
	post(f, entry(64, 8));
	EXPECT_FALSE(ready());
	write();
	EXPECT_EQ(next().entry_index, 1);
}

TEST_F(Udma, ANopMovesNothing)
{
	post(control(hw::op_nop, 0, 0), {});
	expect_ok();
	EXPECT_EQ(npu_.violations(), 0u);
}

// ---- Requests of several blocks
// ----------------------------------------------------------

TEST_F(Udma, GathersEntriesOfBlocksThatGoOnAtTheRingsStart)
{
	constexpr uint32_t most = 13;
	static_assert(hw::max_sges(hw::op_write) == most);
	for (uint32_t start = blocks - 3; start < blocks; start++) {
		while (head_ % blocks != start) {
			write();
			expect_ok();
			tell_consumer();
		}
		Words entries;
		for (uint32_t i = 0; i < most; i++) {
			word<uint64_t>(1024 + 64 * i) = 100 * start + i;
			entries = after(entries, entry(1024 + 64 * i, 8));
		}
		uint32_t first = head_;
		post(control(hw::op_write, 256, most), entries);
		EXPECT_EQ(head_, first + 4);
		hw::cqe c = next();
		EXPECT_EQ(c.status, hw::status_ok) << int{c.substatus};
		EXPECT_EQ(c.byte_count, 8 * most);
		expect_within(c, first, 4);
		tell_consumer();
		for (uint32_t i = 0; i < most; i++)
			EXPECT_EQ(word<uint64_t>(256 + 8 * i), 100 * start + i);
	}
	EXPECT_EQ(npu_.violations(), 0u);
}

TEST_F(Udma, TakesInlineDataOfBlocksThatGoOnAtTheRingsStart)
{
	for (uint32_t bytes : {1u, 16u, 17u, 200u, hw::max_inline_write}) {
		while (head_ % blocks != blocks - 1) {
			write();
			expect_ok();
			tell_consumer();
		}
		hw::control f = control(hw::op_write, 256, 0);
		f.inline_data = 1;
		f.inline_length = static_cast<uint16_t>(bytes);
		Words data((bytes + 7) / 8);
		std::vector<uint8_t> pattern(bytes);
		for (uint32_t i = 0; i < bytes; i++)
			pattern[i] = static_cast<uint8_t>(i + bytes);
		memcpy(data.data(), pattern.data(), bytes);
		post(f, data);
		EXPECT_EQ(next().byte_count, bytes);
		tell_consumer();
		EXPECT_EQ(npu_.read(at(256), bytes), pattern);
	}
	EXPECT_EQ(npu_.violations(), 0u);
}

TEST_F(Udma, ItsIndicesWrap)
{
	constexpr uint32_t sq_start = ~uint32_t{0} - 5, cq_start = ~uint32_t{0} - 2;
	reset();
	ASSERT_EQ(api().jetty_seek(jetty_, sq_start, cq_start), 0) << detail();
	head_ = sq_start;
	ci_ = cq_start;
	tell_consumer();
	ASSERT_EQ(connect(), 0) << detail();
	for (uint32_t i = 0; i < 20; i++) {
		word<uint64_t>(64) = i + 1;
		word<uint64_t>(72) = 0;
		uint32_t first = head_;
		post(control(hw::op_write, 0, 2), after(entry(64, 8), entry(72, 8)));
		EXPECT_EQ(head_, first + 2);
		hw::cqe c = next();
		EXPECT_EQ(c.status, hw::status_ok) << int{c.substatus};
		expect_within(c, first, 2);
		tell_consumer();
		EXPECT_EQ(word<uint64_t>(0), i + 1);
	}
	EXPECT_EQ(npu_.violations(), 0u);
}

TEST_F(Udma, WaitsForTheConsumersRecordWhenTheCompletionsAreFull)
{
	// In two doorbells: the ring has as many blocks as there are completions.
	for (uint32_t i = 0; i < blocks; i++)
		write();
	write();
	for (uint32_t i = 0; i < blocks; i++)
		expect_ok();
	EXPECT_FALSE(ready());
	tell_consumer();
	EXPECT_EQ(next().entry_index, blocks);
	EXPECT_EQ(npu_.violations(), 0u);
}

// ---- Tokens ----------------------------------------------------------------------------

class UdmaToken : public Udma {
protected:
	void expect_denied(const hw::control &f)
	{
		word<uint64_t>(64) = 5;
		post(f, entry(64, 8));
		expect_error(hw::status_remote, hw::remote_access);
		EXPECT_EQ(word<uint64_t>(0), 0u);
		EXPECT_EQ(npu_.violations(), 0u);
	}
};

TEST_F(UdmaToken, OfAnotherValueIsDeniedAndTheRestIsFlushed)
{
	hw::control f = control(hw::op_write, 0);
	f.token_value ^= 1u << 16;
	put(f, entry(64, 8));
	put(control(hw::op_write, 0), entry(64, 8));
	ring(head_);
	expect_error(hw::status_remote, hw::remote_access);
	hw::cqe c = next();
	EXPECT_EQ(c.status, hw::status_flushed);
	EXPECT_EQ(c.entry_index, 1);
}

TEST_F(UdmaToken, WhoseIdIsAnothersIsDenied)
{
	ibv_mr *other = api().reg_mr(nic_.pd, memory_, 4096, access_flags);
	ASSERT_NE(other, nullptr);
	hw::control f = control(hw::op_write, 0);
	f.token_id = other->lkey;
	expect_denied(f);
	EXPECT_EQ(api().dereg_mr(other), 0);
}

TEST_F(UdmaToken, ThatIsNotEnabledIsDenied)
{
	hw::control f = control(hw::op_write, 0);
	f.token_en = 0;
	expect_denied(f);
}

TEST_F(UdmaToken, OfASegmentThatIsGoneIsDenied)
{
	ibv_mr *gone = api().reg_mr(nic_.pd, memory_, 4096, access_flags);
	ASSERT_NE(gone, nullptr);
	hw::control f = control(hw::op_write, 0);
	f.token_id = gone->lkey;
	f.token_value = gone->rkey;
	EXPECT_EQ(api().dereg_mr(gone), 0);
	expect_denied(f);
}

TEST_F(UdmaToken, IdAloneNamesAnOwnSegment)
{
	ibv_mr *own = api().reg_mr(nic_.pd, memory_, 4096, IBV_ACCESS_LOCAL_WRITE);
	ASSERT_NE(own, nullptr);
	word<uint64_t>(64) = 5;
	post(control(hw::op_write, 0), {hw::sge_word(8, own->lkey), at(64)});
	expect_ok();
	EXPECT_EQ(word<uint64_t>(0), 5u);
	uint32_t id = own->lkey;
	EXPECT_EQ(api().dereg_mr(own), 0);
	post(control(hw::op_write, 0), {hw::sge_word(8, id), at(64)});
	expect_error(hw::status_local, hw::local_access);
	EXPECT_EQ(npu_.violations(), 0u);
}

// ---- Notifications and immediates ------------------------------------------------------

class UdmaNotify : public Udma {
protected:
	Words notify(uint64_t offset, uint64_t data)
	{
		return {hw::notify_word(mr_->lkey, mr_->rkey), at(offset), data, 0};
	}
};

TEST_F(UdmaNotify, FollowsThePayload)
{
	word<uint64_t>(64) = 5;
	post(control(hw::op_write_notify, 0), after(notify(128, 0xabcdef), entry(64, 8)));
	expect_ok();
	EXPECT_EQ(word<uint64_t>(0), 5u);
	EXPECT_EQ(word<uint64_t>(128), 0xabcdefu);
}

TEST_F(UdmaNotify, ComesAloneToo)
{
	post(control(hw::op_write_notify, 0), after(notify(128, 9), entry(64, 0)));
	expect_ok();
	EXPECT_EQ(word<uint64_t>(128), 9u);
	EXPECT_EQ(npu_.violations(), 0u);
}

TEST_F(UdmaNotify, CarriesInlineData)
{
	hw::control f = control(hw::op_write_notify, 0, 0);
	f.inline_data = 1;
	f.inline_length = 12;
	post(f, after(notify(128, 9), {0x1122334455667788, 0x99}));
	expect_ok();
	EXPECT_EQ(word<uint64_t>(0), 0x1122334455667788u);
	EXPECT_EQ(word<uint32_t>(8), 0x99u);
	EXPECT_EQ(word<uint64_t>(128), 9u);
}

TEST_F(UdmaNotify, ThatIsNotAllowedStopsThePayload)
{
	Words context = notify(128, 9);
	context[0] = hw::notify_word(mr_->lkey, mr_->rkey ^ 1u << 16);
	word<uint64_t>(64) = 5;
	post(control(hw::op_write_notify, 0), after(context, entry(64, 8)));
	expect_error(hw::status_remote, hw::remote_access);
	EXPECT_EQ(word<uint64_t>(0), 0u);
	EXPECT_EQ(word<uint64_t>(128), 0u);
}

TEST_F(Udma, AnImmediateFindsNoReceive)
{
	word<uint64_t>(64) = 5;
	post(control(hw::op_write_immediate, 0), after({0x1234, 0}, entry(64, 8)));
	expect_error(hw::status_rnr, 0);
	EXPECT_EQ(npu_.violations(), 0u);
}

// ---- Atomics ---------------------------------------------------------------------------

class UdmaAtomic : public Udma {
protected:
	// On offset 0 with the result at 64.
	void atomic(uint8_t opcode, uint32_t bytes, const Words &operands)
	{
		post(control(opcode, 0), after(entry(64, bytes), operands));
	}
};

TEST_F(UdmaAtomic, AddsAndReturnsTheFormerValue)
{
	word<uint64_t>(0) = ~uint64_t{0};
	atomic(hw::op_fetch_add, 8, {3});
	expect_ok();
	EXPECT_EQ(word<uint64_t>(0), 2u);
	EXPECT_EQ(word<uint64_t>(64), ~uint64_t{0});

	atomic(hw::op_fetch_add, 4, {0xfffffffe});
	expect_ok();
	EXPECT_EQ(word<uint64_t>(0), 0u) << "a carry went into the next word";
	EXPECT_EQ(word<uint32_t>(64), 2u);
	EXPECT_EQ(npu_.violations(), 0u);
}

TEST_F(UdmaAtomic, SwapsWhereItCompares)
{
	word<uint64_t>(0) = 40;
	atomic(hw::op_compare_swap, 8, {7, 41});
	expect_ok();
	EXPECT_EQ(word<uint64_t>(0), 40u);
	EXPECT_EQ(word<uint64_t>(64), 40u);
	atomic(hw::op_compare_swap, 8, {7, 40});
	expect_ok();
	EXPECT_EQ(word<uint64_t>(0), 7u);

	atomic(hw::op_compare_swap, 4, {uint64_t{7} << 32 | 9}); // the upper is compared
	expect_ok();
	EXPECT_EQ(word<uint64_t>(0), 9u);

	word<uint64_t>(8) = 1;
	atomic(hw::op_compare_swap, 16, {2, 3, 9, 1});
	expect_ok();
	EXPECT_EQ(word<uint64_t>(0), 2u);
	EXPECT_EQ(word<uint64_t>(8), 3u);
	EXPECT_EQ(word<uint64_t>(64), 9u);
	EXPECT_EQ(word<uint64_t>(72), 1u);
	EXPECT_EQ(npu_.violations(), 0u);
}

TEST_F(UdmaAtomic, ThatIsNotAlignedIsAnInvalidRequest)
{
	hw::control f = control(hw::op_fetch_add, 4);
	post(f, after(entry(64, 8), {1}));
	expect_error(hw::status_remote, hw::remote_unsupported);
	EXPECT_EQ(npu_.violations(), 0u);
}

TEST_F(UdmaAtomic, OfAnotherSizeIsRefused)
{
	atomic(hw::op_fetch_add, 16, {1, 1});
	expect_breach(hw::status_local, hw::local_length);
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

TEST_F(UdmaReduce, AddsFloats)
{
	word<float>(0) = 1.5f;
	word<float>(64) = 0.25f;
	post(reduce(hw::reduce_add, hw::reduce_float32), entry(64, 4));
	expect_ok();
	EXPECT_EQ(word<float>(0), 1.75f);
}

TEST_F(UdmaReduce, ThatIsNotModelledIsRefused)
{
	post(reduce(hw::reduce_max, 2), entry(64, 4));
	expect_breach();
}

TEST_F(UdmaReduce, OfATargetThatIsNotAlignedIsAnInvalidRequest)
{
	hw::control f = reduce(hw::reduce_add, 2);
	f.remote_va += 2;
	post(f, entry(64, 4));
	expect_error(hw::status_remote, hw::remote_unsupported);
	EXPECT_EQ(npu_.violations(), 0u);
}

// ---- What it objects to -----------------------------------------------------------------

class UdmaBreach : public Udma {
protected:
	hw::control f_ = control(hw::op_write, 0);

	void post_f() { post(f_, entry(64, 8)); }
	void expect_local_qp()
	{
		expect_breach();
		uint32_t before = head_;
		write(); // is flushed
		hw::cqe c = next();
		EXPECT_EQ(c.status, hw::status_flushed);
		EXPECT_EQ(c.entry_index, static_cast<uint16_t>(before));
		EXPECT_EQ(npu_.violations(), 1u);
	}
};

TEST_F(UdmaBreach, RequestThatHasNotTheLapsOwnerBit)
{
	f_.owner = 1; // put() turns it
	post_f();
	expect_local_qp();
}

TEST_F(UdmaBreach, DoorbellForARequestThatNobodyWrote)
{
	head_++;
	ring(head_);
	expect_local_qp();
}

TEST_F(UdmaBreach, IsToldOfAsTheJettys)
{
	head_++;
	ring(head_);
	ibv_async_event event;
	ASSERT_EQ(api().get_async_event(nic_.context, &event), 0) << detail();
	EXPECT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
	EXPECT_EQ(event.element.qp->qp_num, info_.jetty_id);
	EXPECT_EQ(event.element.qp->send_cq->handle, info_.jfc_id);
	EXPECT_EQ(api().get_async_event(nic_.context, &event), -EAGAIN) << "told twice";
}

TEST_F(UdmaBreach, RequestOfTheLastLap)
{
	for (uint32_t i = 0; i < blocks; i++) {
		write();
		expect_ok();
		tell_consumer();
	}
	head_++;
	ring(head_);
	expect_local_qp();
}

TEST_F(UdmaBreach, ReservedField)
{
	f_.reserved48 = 1;
	post_f();
	expect_local_qp();
}

TEST_F(UdmaBreach, UnknownOpcode)
{
	f_.opcode = 0x1f;
	post_f();
	expect_local_qp();
}

TEST_F(UdmaBreach, AnotherEid)
{
	f_.eid[1] ^= 1;
	post_f();
	expect_local_qp();
}

TEST_F(UdmaBreach, EidInNetworkOrder)
{
	uint64_t first = f_.eid[0];
	f_.eid[0] = __builtin_bswap64(f_.eid[1]);
	f_.eid[1] = __builtin_bswap64(first);
	post_f();
	expect_local_qp();
}

TEST_F(UdmaBreach, AnotherTransport)
{
	f_.tp_id++;
	post_f();
	expect_local_qp();
}

TEST_F(UdmaBreach, SomethingElseThanAJetty)
{
	f_.jetty_type = 0;
	post_f();
	expect_local_qp();
}

TEST_F(UdmaBreach, LeftoversBehindTheLastField)
{
	f_.sge_count = 2; // in its second block
	post(f_, after(after(entry(64, 8), entry(72, 8)), {0, 0, 1}));
	expect_local_qp();
}

TEST_F(UdmaBreach, NoLength)
{
	post(f_, entry(64, 0));
	expect_breach(hw::status_local, hw::local_length);
}

TEST_F(UdmaBreach, RequestThatEndsBeyondWhatWasPosted)
{
	f_.sge_count = 2;
	put(f_, after(entry(64, 8), entry(72, 8)));
	ring(head_ - 1);
	expect_breach();
}

TEST_F(UdmaBreach, DoorbellBeyondTheRing)
{
	ring(head_ + blocks + 1);
	expect_breach();
}

TEST_F(UdmaBreach, DoorbellThatWentBack)
{
	write();
	expect_ok();
	tell_consumer();
	ring(0);
	expect_breach();
	step();
	EXPECT_EQ(npu_.violations(), 1u) << "the register keeps its value";
}

TEST_F(UdmaBreach, ConsumerIndexBeyondWhatWasCompleted)
{
	tell_consumer(3);
	EXPECT_EQ(npu_.violations(), 0u) << "it is read when an entry is written";
	write();
	expect_ok();
	EXPECT_EQ(npu_.violations(), 1u);
	write();
	EXPECT_EQ(next().status, hw::status_flushed);
	EXPECT_EQ(npu_.violations(), 1u) << "told of once";
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

TEST_F(Udma, WhatWasPostedBeforeAResetIsVoid)
{
	// Rung, but not yet seen.
	put(control(hw::op_write, 0), entry(64, 8));
	word<uint64_t>(64) = 5;
	__atomic_store_n(npu_.host<uint32_t>(info_.sq_doorbell), head_, __ATOMIC_RELEASE);
	stepped = npu_.get();
	reset();
	stepped = nullptr;
	step();
	ASSERT_EQ(connect(), 0) << detail();
	step();
	EXPECT_FALSE(ready());
	EXPECT_EQ(word<uint64_t>(0), 0u);
	EXPECT_EQ(npu_.violations(), 0u);
}

TEST_F(Udma, ResetMakesAJettyUsableThatHadFailed)
{
	hw::control f = control(hw::op_write, 0);
	f.token_value ^= 1u << 16;
	post(f, entry(64, 8));
	expect_error(hw::status_remote, hw::remote_access);
	reset();
	ASSERT_EQ(connect(), 0) << detail();
	write();
	expect_ok();
}

// The register keeps its value: what is as far as the stray one must be seen all the same.
TEST_F(Udma, DoorbellThatIsTheStrayOnesValueIsSeen)
{
	reset();
	ring(3);
	ASSERT_EQ(connect(), 0) << detail();
	for (int i = 0; i < 3; i++)
		put(control(hw::op_write, 0), entry(64, 8));
	ring(3);
	for (int i = 0; i < 3; i++)
		expect_ok();
	EXPECT_EQ(npu_.violations(), 1u);
}

// ---- Connecting ------------------------------------------------------------------------

TEST_F(Udma, IsConnectedOnce)
{
	EXPECT_EQ(connect(), -EISCONN);
	write();
	expect_ok();
}

TEST_F(Udma, WhatCannotBeConnectedToIsRefusedAndLeavesTheJettyAsItIs)
{
	reset();
	const nda_soft_jetty_peer right = itself();
	auto refused = [&](int with, auto &&change) {
		nda_soft_jetty_peer peer = right;
		change(peer);
		uint32_t tp_id = 99;
		EXPECT_EQ(api().jetty_connect(jetty_, &peer, &tp_id), with) << detail();
		EXPECT_EQ(tp_id, 99u);
	};
	refused(-EINVAL, [](nda_soft_jetty_peer &p) { p.jetty_id = 0; });
	refused(-EINVAL, [](nda_soft_jetty_peer &p) { p.jetty_id = 1u << 20; });
	refused(-EINVAL, [](nda_soft_jetty_peer &p) { p.timeout = 32; });
	refused(-EINVAL, [](nda_soft_jetty_peer &p) { p.retry_count = 8; });
	refused(-EINVAL, [](nda_soft_jetty_peer &p) { p.reserved[1] = 1; });
	// Of a process that there is not, and this one has no session.
	refused(-ENOTCONN, [](nda_soft_jetty_peer &p) { p.eid[15] ^= 1; });
	uint32_t tp_id;
	EXPECT_EQ(api().jetty_connect(jetty_, nullptr, &tp_id), -EINVAL);
	EXPECT_EQ(api().jetty_connect(jetty_, &right, nullptr), -EINVAL);
	EXPECT_EQ(api().jetty_connect(nullptr, &right, &tp_id), -EINVAL);

	ASSERT_EQ(connect(), 0) << detail();
	write();
	expect_ok();
}

TEST_F(Udma, OneOfTwoThreadsConnectsIt)
{
	for (int round = 0; round < 20; round++) {
		reset();
		int other = 0;
		std::thread thread([&] { other = connect(); });
		uint32_t unused;
		nda_soft_jetty_peer peer = itself();
		int own = api().jetty_connect(jetty_, &peer, &unused);
		thread.join();
		EXPECT_EQ(std::min(own, other), -EISCONN);
		EXPECT_EQ(std::max(own, other), 0);
		tp_id_ = info_.jetty_id;
		write();
		expect_ok();
		tell_consumer();
	}
	EXPECT_EQ(npu_.violations(), 0u);
}

// Its other half is a peer that is not there: the first steps have been done.
TEST_F(Udma, DoorbellBeforeItIsConnectedFailsTheConnection)
{
	reset();
	nda_soft_jetty_peer peer = itself();
	peer.eid[15] ^= 1;
	uint32_t unused;
	ASSERT_EQ(api().jetty_connect(jetty_, &peer, &unused), -ENOTCONN);
	ring(1);
	EXPECT_EQ(npu_.violations(), 1u);
	EXPECT_EQ(connect(), -EIO);
	EXPECT_NE(detail().find("must be reset"), std::string::npos) << detail();
	reset();
	ASSERT_EQ(connect(), 0) << detail();
	write();
	expect_ok();
	EXPECT_EQ(npu_.violations(), 1u);
}

// ---- Making ----------------------------------------------------------------------------

TEST_F(Udma, JettiesThatCannotBeAreRefused)
{
	auto refused = [&](int with, auto &&change) {
		nda_soft_jetty_attr attr = good();
		change(attr);
		errno = 0;
		EXPECT_EQ(api().jetty_create(&attr), nullptr);
		EXPECT_EQ(errno, with) << detail();
	};
	refused(EINVAL, [](nda_soft_jetty_attr &a) { a.pd = nullptr; });
	refused(EINVAL, [](nda_soft_jetty_attr &a) { a.ops = nullptr; });
	refused(EINVAL, [](nda_soft_jetty_attr &a) { a.blocks = 32; });
	refused(EINVAL, [](nda_soft_jetty_attr &a) { a.blocks = 96; });
	refused(EINVAL, [](nda_soft_jetty_attr &a) { a.blocks = 65536; });
	refused(EINVAL, [](nda_soft_jetty_attr &a) { a.dma_mode = 99; });
	TestNic of_queue_pairs;
	refused(EOPNOTSUPP, [&](nda_soft_jetty_attr &a) { a.pd = of_queue_pairs.pd(); });
}

TEST_F(Udma, ItsNicHasNoQueuePairs)
{
	ibv_context_extend *extend = ibv_open_extend(nic_.context);
	ASSERT_NE(extend, nullptr) << detail();
	ibv_cq_init_attr_extend cq = {};
	cq.attr.cqe = 64;
	cq.ops = &ops_;
	errno = 0;
	EXPECT_EQ(ibv_create_cq_extend(extend, &cq), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT_EQ(ibv_close_extend(extend), 0);
}

TEST_F(Udma, KeepsItsNicOpen)
{
	EXPECT_EQ(api().nic_close(nic_.context), -EBUSY);
	EXPECT_EQ(api().dealloc_pd(nic_.pd), -EBUSY);
	EXPECT_EQ(api().npu_close(npu_.get()), -EBUSY);
}

} // namespace
} // namespace nda::soft_test
