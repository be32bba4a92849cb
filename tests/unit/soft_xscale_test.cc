// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The model of the XSCALE NIC: what it takes, what it leaves behind, and what it objects
// to.
#include "tests/mock/soft_bench.h"

#include <cstring>

#include <nda/hw/xscale.h>

namespace nda::soft_test {
namespace {

namespace hw = nda::hw::xscale;

constexpr unsigned access_flags = all_access | IBV_ACCESS_REMOTE_ATOMIC;
constexpr uint32_t depth = 8;

struct OpenNic {
	ibv_context *context;

	OpenNic()
	{
		nda_soft_nic_attr attr = {};
		attr.model = "xscale";
		context = api().nic_open(&attr);
		EXPECT_NE(context, nullptr) << detail();
	}
	~OpenNic() { EXPECT_EQ(api().nic_close(context), 0) << detail(); }
	OpenNic(const OpenNic &) = delete;
};

// A queue that is connected to itself, and 4096 bytes of memory that it reads and writes:
// the plainest possible driver.
class Xscale : public ::testing::Test {
protected:
	Xscale() : queue_(npu_, nic_, options())
	{
		mr_ = nic_.reg(memory_, 4096, static_cast<int>(access_flags));
		EXPECT_EQ(queue_.to_init(access_flags), 0) << detail();
		EXPECT_EQ(queue_.to_rtr(nic_.gid(), queue_.qpn()), 0) << detail();
		EXPECT_EQ(queue_.to_rts(), 0) << detail();
	}
	~Xscale() override { EXPECT_EQ(api().dereg_mr(mr_), 0); }

	static nda_soft_npu_attr manual()
	{
		nda_soft_npu_attr attr = {};
		attr.manual = 1;
		return attr;
	}
	static QueueOptions options()
	{
		QueueOptions o;
		o.depth = depth;
		o.cq_depth = depth;
		return o;
	}

	uint64_t at(uint64_t offset) const { return memory_ + offset; }
	template <class T>
	T &word(uint64_t offset)
	{
		return *npu_.host<T>(at(offset));
	}

	hw::request request(
		uint8_t opcode, uint64_t local, uint64_t remote, uint32_t length)
	{
		hw::request r = {};
		r.opcode = opcode;
		r.signalled = true;
		r.length = length;
		r.local_va = at(local);
		r.remote_va = at(remote);
		r.lkey = mr_->lkey;
		r.rkey = mr_->rkey;
		return r;
	}
	// A WQE at head_, not yet announced.
	void put(const hw::wqe &w)
	{
		uint64_t words[hw::wqe_words];
		hw::encode(w, words);
		memcpy(npu_.host<uint8_t>(queue_.extend()->sq_info.qbuf.base +
			       (head_ & (depth - 1)) * hw::wqe_bytes),
			words, sizeof(words));
		head_++;
	}
	void ring(uint64_t value)
	{
		__atomic_store_n(
			npu_.host<uint64_t>(queue_.extend()->sq_info.db_hw_va.iov_base),
			value, __ATOMIC_RELEASE);
		step();
	}
	void ring()
	{
		ring(hw::doorbell_value(hw::doorbell_template(queue_.qpn()), head_));
	}
	void post(const hw::wqe &w)
	{
		put(w);
		ring();
	}
	void post(const hw::request &r) { post(hw::rdma_wqe(r, head_)); }
	void step()
	{
		for (int i = 0; i < 4; i++)
			api().npu_step(npu_.get());
	}

	uint64_t *cqe_words(uint32_t ci)
	{
		const queue_buf &ring = queue_.cq()->cq_info.qbuf;
		return npu_.host<uint64_t>(
			ring.base + (ci & (ring.entry_cnt - 1)) * ring.entry_size);
	}
	bool ready() { return hw::cqe_ready(cqe_words(ci_)[3], ci_, depth); }
	// The next completion, which must be there.
	hw::cqe next()
	{
		EXPECT_TRUE(ready()) << "CQE " << ci_;
		return hw::decode_cqe(cqe_words(ci_++));
	}
	void tell_consumer(uint64_t value)
	{
		__atomic_store_n(
			npu_.host<uint64_t>(queue_.cq()->cq_info.db_hw_va.iov_base), value,
			__ATOMIC_RELEASE);
		step();
	}
	void tell_consumer() { tell_consumer(hw::cq_doorbell_value(cq_template(), ci_)); }
	uint64_t cq_template()
	{
		return hw::cq_doorbell_template(
			static_cast<uint32_t>(queue_.cq()->resv[0]), hw::cq_keep);
	}

	// An atomic on the T at offset 0, with its result at 64; what is left there, raw.
	template <class T>
	T atomic(uint8_t opcode, const hw::atomic &a)
	{
		word<uint64_t>(64) = 0;
		post(hw::atomic_wqe(request(opcode, 64, 0, sizeof(T)), a, false, head_));
		EXPECT_EQ(next().error, hw::error_none);
		tell_consumer();
		return word<T>(64);
	}
	// Posts what breaks a rule.
	void expect_breach(uint8_t error)
	{
		EXPECT_EQ(npu_.violations(), 1u);
		EXPECT_EQ(next().error, error);
		EXPECT_EQ(queue_.state(), IBV_QPS_ERR);
	}

	TestNpu npu_{manual()};
	OpenNic open_;
	TestNic nic_{open_.context};
	TestQueue queue_;
	uint64_t memory_ = npu_.alloc(4096);
	ibv_mr *mr_ = nullptr;
	uint32_t head_ = 0;
	uint32_t ci_ = 0;
};

TEST_F(Xscale, AFreshCompletionRingIsNotReadyAndTheQueueHasNoRecords)
{
	for (uint32_t i = 0; i < depth; i++)
		EXPECT_FALSE(hw::cqe_ready(cqe_words(i)[3], i, depth));
	EXPECT_EQ(queue_.extend()->sq_info.dbr_pi_va.iov_base, 0u);
	EXPECT_EQ(queue_.cq()->cq_info.dbr_ci_va.iov_base, 0u);
	EXPECT_NE(queue_.cq()->cq_info.db_hw_va.iov_base, 0u);
}

TEST_F(Xscale, WritesAndTellsWhoseCompletionItIs)
{
	word<uint64_t>(64) = 0x1122334455667788;
	post(request(hw::op_write, 64, 0, 8));
	hw::cqe c = next();

	EXPECT_EQ(word<uint64_t>(0), 0x1122334455667788u);
	EXPECT_EQ(c.error, hw::error_none);
	EXPECT_EQ(c.qp_id, queue_.qpn() & 0x7fff);
	EXPECT_EQ(c.opcode, hw::op_write);
	EXPECT_EQ(c.wqe_id, 0u);
	EXPECT_EQ(c.length, 8u);
	post(request(hw::op_write, 64, 8, 8));
	EXPECT_EQ(next().wqe_id, hw::units_per_wqe);
	EXPECT_EQ(npu_.violations(), 0u);
}

TEST_F(Xscale, Reads)
{
	word<uint64_t>(0) = 0x1122334455667788;
	post(request(hw::op_read, 64, 0, 8));

	EXPECT_EQ(next().opcode, hw::op_read);
	EXPECT_EQ(word<uint64_t>(64), 0x1122334455667788u);
}

TEST_F(Xscale, GathersSixPieces)
{
	hw::wqe w = hw::rdma_wqe(request(hw::op_write, 0, 0, 24), head_);
	w.segments = 7;
	for (uint32_t i = 0; i < 6; i++) {
		word<uint32_t>(512 + i * 64) = 0x01010101 * (i + 1);
		hw::set_piece(&w, i, {4, mr_->lkey, at(512 + i * 64)});
	}
	post(w);

	EXPECT_EQ(next().error, hw::error_none);
	for (uint32_t i = 0; i < 6; i++)
		EXPECT_EQ(word<uint32_t>(i * 4), 0x01010101 * (i + 1));
}

TEST_F(Xscale, AddsUnderABoundary)
{
	hw::atomic a = {};
	a.value = 0x00000000ffffffff;
	word<uint64_t>(0) = 1;
	EXPECT_EQ(atomic<uint64_t>(hw::op_masked_fetch_add, a), 1u);
	EXPECT_EQ(word<uint64_t>(0), 0x100000000u);
	a.boundary = 0x80000000; /* two numbers of 32 bits */
	word<uint64_t>(0) = 1;
	EXPECT_EQ(atomic<uint64_t>(hw::op_masked_fetch_add, a), 1u);
	EXPECT_EQ(word<uint64_t>(0), 0u);
	a.boundary = ~uint64_t{0};
	word<uint64_t>(0) = 3;
	EXPECT_EQ(atomic<uint64_t>(hw::op_masked_fetch_add, a), 3u);
	EXPECT_EQ(word<uint64_t>(0), 0xfffffffcu);
}

TEST_F(Xscale, SwapsUnderMasks)
{
	hw::atomic a = {};
	a.compare = 0x1200;
	a.compare_mask = 0xff00;
	a.value = 0xabcd;
	a.swap_mask = 0x00ff;
	word<uint64_t>(0) = 0x771234;
	EXPECT_EQ(atomic<uint64_t>(hw::op_masked_compare_swap, a), 0x771234u);
	EXPECT_EQ(word<uint64_t>(0), 0x7712cdu);
	word<uint64_t>(0) = 0x771334;
	EXPECT_EQ(atomic<uint64_t>(hw::op_masked_compare_swap, a), 0x771334u);
	EXPECT_EQ(word<uint64_t>(0), 0x771334u);
}

TEST_F(Xscale, ThePlainFormsHaveNoMasks)
{
	hw::atomic a = {};
	a.value = 7;
	a.compare = 5;
	word<uint64_t>(0) = 5;
	EXPECT_EQ(atomic<uint64_t>(hw::op_fetch_add, a), 5u);
	EXPECT_EQ(word<uint64_t>(0), 12u);
	a.compare = 12;
	EXPECT_EQ(atomic<uint64_t>(hw::op_compare_swap, a), 12u);
	EXPECT_EQ(word<uint64_t>(0), 7u);
	EXPECT_EQ(atomic<uint64_t>(hw::op_compare_swap, a), 7u);
	EXPECT_EQ(word<uint64_t>(0), 7u);
}

TEST_F(Xscale, LeavesAResultOf4BytesInTheOtherOrder)
{
	hw::atomic a = {};
	a.value = 1;
	word<uint64_t>(0) = 0xaaaaaaaaffffffff;
	EXPECT_EQ(atomic<uint32_t>(hw::op_masked_fetch_add4, a), 0xffffffffu);
	EXPECT_EQ(word<uint64_t>(0), 0xaaaaaaaa00000000u);
	word<uint32_t>(0) = 0x11223344;
	a.compare = 0x11223344;
	a.compare_mask = a.swap_mask = 0xffffffff;
	EXPECT_EQ(atomic<uint32_t>(hw::op_masked_compare_swap4, a), 0x44332211u);
	EXPECT_EQ(word<uint64_t>(0), 0xaaaaaaaa00000001u);
}

TEST_F(Xscale, AnAtomicThatIsNotAlignedIsAnInvalidRequest)
{
	post(hw::atomic_wqe(
		request(hw::op_masked_fetch_add, 64, 4, 8), hw::atomic{}, false, head_));

	EXPECT_EQ(next().error, hw::error_nak_invalid);
	EXPECT_EQ(npu_.violations(), 0u);
}

TEST_F(Xscale, AKeyThatIsNoneIsARemoteAccessErrorAndTheRestIsFlushed)
{
	hw::request r = request(hw::op_write, 64, 0, 8);
	r.rkey++;
	put(hw::rdma_wqe(r, head_));
	put(hw::rdma_wqe(request(hw::op_write, 64, 0, 8), head_));
	ring();

	EXPECT_EQ(next().error, hw::error_nak_access);
	hw::cqe c = next();
	EXPECT_EQ(c.error, hw::error_flushed);
	EXPECT_EQ(c.wqe_id, hw::units_per_wqe);
}

TEST_F(Xscale, WaitsForTheConsumersDoorbellWhenTheCompletionsAreFull)
{
	for (uint32_t i = 0; i < depth; i++)
		post(request(hw::op_write, 64, 0, 8));
	post(request(hw::op_write, 64, 128, 8)); // there is no place for its completion
	for (uint32_t i = 0; i < depth; i++)
		EXPECT_EQ(next().wqe_id, i * hw::units_per_wqe);
	EXPECT_FALSE(ready());
	tell_consumer();
	EXPECT_EQ(next().wqe_id, depth * hw::units_per_wqe);
	EXPECT_EQ(npu_.violations(), 0u);
}

TEST_F(Xscale, GoesOnOverItsLaps)
{
	for (uint32_t i = 0; i < 100; i++) {
		word<uint64_t>(64) = i;
		post(request(hw::op_write, 64, 0, 8));
		ASSERT_EQ(next().wqe_id, hw::wqe_id_of(i));
		ASSERT_EQ(word<uint64_t>(0), i);
		tell_consumer();
	}
	EXPECT_EQ(npu_.violations(), 0u);
}

TEST_F(Xscale, ItsIndicesWrap)
{
	for (uint32_t start : {(1u << 17) - 3, (1u << 18) - 3, (1u << 23) - 3, ~0u - 2}) {
		ASSERT_EQ(queue_.to(IBV_QPS_RESET), 0);
		ASSERT_EQ(api().qp_seek(queue_.qp(), start, start), 0) << detail();
		ASSERT_EQ(queue_.to_init(access_flags), 0);
		ASSERT_EQ(queue_.to_rtr(nic_.gid(), queue_.qpn()), 0);
		ASSERT_EQ(queue_.to_rts(), 0);
		head_ = ci_ = start;
		for (uint32_t i = 0; i < 6; i++) {
			word<uint64_t>(64) = start + i;
			post(request(hw::op_write, 64, 0, 8));
			ASSERT_EQ(next().wqe_id, hw::wqe_id_of(start + i));
			ASSERT_EQ(word<uint64_t>(0), start + i);
			tell_consumer();
		}
	}
	EXPECT_EQ(npu_.violations(), 0u);
}

// ---- What it objects to ----------------------------------------------------------------

TEST_F(Xscale, ObjectsToAWqeThatIsNotTheIndexs)
{
	hw::wqe w = hw::rdma_wqe(request(hw::op_write, 64, 0, 8), head_ + depth);
	post(w);
	expect_breach(hw::error_wqe_format);
}

TEST_F(Xscale, ObjectsToAnEmptyRead)
{
	hw::wqe w = hw::rdma_wqe(request(hw::op_read, 64, 0, 8), head_);
	w.length = w.remote.length = w.local.length = 0;
	post(w);
	expect_breach(hw::error_wqe_length);
}

TEST_F(Xscale, ObjectsToLeftoversBehindTheSegments)
{
	hw::wqe w = hw::rdma_wqe(request(hw::op_write, 64, 0, 8), head_);
	w.more[9] = 1;
	post(w);
	expect_breach(hw::error_wqe_format);
}

TEST_F(Xscale, ObjectsToADoorbellOfAnotherQp)
{
	put(hw::rdma_wqe(request(hw::op_write, 64, 0, 8), head_));
	ring(hw::doorbell_value(hw::doorbell_template(queue_.qpn() + 1), head_));
	expect_breach(hw::error_wqe_format);
}

TEST_F(Xscale, ObjectsToADoorbellThatIsNotWholeWqes)
{
	put(hw::rdma_wqe(request(hw::op_write, 64, 0, 8), head_));
	ring(hw::doorbell_value(hw::doorbell_template(queue_.qpn()), head_) + 4);
	expect_breach(hw::error_wqe_format);
}

TEST_F(Xscale, ObjectsToADoorbellBeyondTheRing)
{
	ring(hw::doorbell_value(hw::doorbell_template(queue_.qpn()), depth + 1));
	expect_breach(hw::error_wqe_format);
}

TEST_F(Xscale, ObjectsToAConsumerIndexBeyondWhatWasCompleted)
{
	post(request(hw::op_write, 64, 0, 8));
	EXPECT_EQ(next().error, hw::error_none);
	tell_consumer(hw::cq_doorbell_value(cq_template(), 2));
	post(request(hw::op_write, 64, 0, 8));
	EXPECT_EQ(npu_.violations(), 1u);
}

TEST_F(Xscale, ObjectsToTheDoorbellOfAnotherCq)
{
	tell_consumer(hw::cq_doorbell_value(cq_template() ^ uint64_t{1} << 23, 0));
	post(request(hw::op_write, 64, 0, 8));
	EXPECT_EQ(npu_.violations(), 1u);
}

} // namespace
} // namespace nda::soft_test
