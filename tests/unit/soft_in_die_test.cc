// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The model of Ascend 910's RoCE NIC: what it takes, what it leaves behind, and what it
// objects to.
#include "tests/mock/soft_bench.h"

#include <cstring>

#include <nda/hw/in_die.h>

namespace nda::soft_test {
namespace {

namespace hw = nda::hw::in_die;

constexpr unsigned access_flags = all_access | IBV_ACCESS_REMOTE_ATOMIC;
constexpr uint32_t depth = 8;

struct OpenNic {
	ibv_context *context;

	explicit OpenNic(const char *inject)
	{
		nda_soft_nic_attr attr = {};
		attr.model = "in_die";
		attr.inject = inject;
		context = api().nic_open(&attr);
		EXPECT_NE(context, nullptr) << detail();
	}
	~OpenNic() { EXPECT_EQ(api().nic_close(context), 0) << detail(); }
	OpenNic(const OpenNic &) = delete;
};

// A queue that is connected to itself, and 4096 bytes of memory that it reads and writes:
// the plainest possible driver.
class InDie : public ::testing::Test {
protected:
	explicit InDie(const char *inject = nullptr)
		: open_(inject), queue_(npu_, nic_, options())
	{
		mr_ = nic_.reg(memory_, 4096, static_cast<int>(access_flags));
		connect();
	}
	~InDie() override { EXPECT_EQ(api().dereg_mr(mr_), 0); }

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
		o.recv_depth = depth;
		return o;
	}
	void connect()
	{
		ASSERT_EQ(queue_.to_init(access_flags), 0) << detail();
		ASSERT_EQ(queue_.to_rtr(nic_.gid(), queue_.qpn()), 0) << detail();
		ASSERT_EQ(queue_.to_rts(), 0) << detail();
	}

	uint64_t at(uint64_t offset) const { return memory_ + offset; }
	uint64_t &word(uint64_t offset) { return *npu_.host<uint64_t>(at(offset)); }

	hw::request request(
		uint8_t opcode, uint64_t local, uint64_t remote, uint32_t length)
	{
		hw::request r = {};
		r.opcode = opcode;
		r.signalled = true;
		r.length = length;
		r.rkey = mr_->rkey;
		r.remote_va = at(remote);
		r.sges = 1;
		r.data[0] = hw::sge_word(length, mr_->lkey);
		r.data[1] = at(local);
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
	void put(const hw::request &r) { put(hw::request_wqe(r, head_, depth)); }
	void ring(uint64_t value)
	{
		__atomic_store_n(
			npu_.host<uint64_t>(queue_.extend()->sq_info.db_hw_va.iov_base),
			value, __ATOMIC_RELEASE);
		step();
	}
	uint64_t bell(uint32_t head) const
	{
		return hw::doorbell_value(hw::doorbell_template(queue_.qpn(), 4), head);
	}
	void post(const hw::wqe &w)
	{
		put(w);
		ring(bell(head_));
	}
	void post(const hw::request &r) { post(hw::request_wqe(r, head_, depth)); }
	void step()
	{
		for (int i = 0; i < 4; i++)
			api().npu_step(npu_.get());
	}

	void post_receives(uint32_t up_to)
	{
		__atomic_store_n(
			npu_.host<uint32_t>(queue_.extend()->rq_info.dbr_pi_va.iov_base),
			up_to, __ATOMIC_RELEASE);
	}

	uint64_t *cqe_words(uint32_t ci)
	{
		const queue_buf &ring = queue_.cq()->cq_info.qbuf;
		return npu_.host<uint64_t>(
			ring.base + (ci & (ring.entry_cnt - 1)) * ring.entry_size);
	}
	bool ready()
	{
		return hw::cqe_look(static_cast<uint32_t>(cqe_words(ci_)[0]), ci_, depth) !=
			hw::cqe_state::empty;
	}
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
	void tell_consumer() { tell_consumer(consumer(ci_)); }
	uint64_t consumer(uint32_t ci)
	{
		return hw::cq_doorbell_value(
			hw::cq_doorbell_template(
				static_cast<uint32_t>(queue_.cq()->resv[0]), {}),
			ci);
	}

	// An atomic on the word at offset 0 with its result at 64; what is left there.
	uint64_t atomic(uint8_t opcode, uint64_t swap_or_add, uint64_t compare)
	{
		hw::request r = request(opcode, 64, 0, 8);
		r.data[2] = swap_or_add;
		r.data[3] = compare;
		word(64) = 0;
		post(r);
		EXPECT_EQ(next().status, 0);
		tell_consumer();
		return word(64);
	}
	// Posts what breaks a rule.
	void expect_breach(uint8_t status = hw::syndrome_local_qp)
	{
		EXPECT_EQ(npu_.violations(), 1u);
		EXPECT_EQ(next().status, status);
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

TEST_F(InDie, AFreshCompletionRingIsEmptyAndTheQueueHasNoRecords)
{
	for (uint32_t i = 0; i < depth; i++)
		EXPECT_EQ(hw::cqe_look(static_cast<uint32_t>(cqe_words(i)[0]), i, depth),
			hw::cqe_state::empty);
	EXPECT_EQ(queue_.extend()->sq_info.dbr_pi_va.iov_base, 0u);
	EXPECT_EQ(queue_.cq()->cq_info.dbr_ci_va.iov_base, 0u);
	EXPECT_NE(queue_.cq()->cq_info.db_hw_va.iov_base, 0u);
}

TEST_F(InDie, WritesAndTellsWhoseCompletionItIs)
{
	word(64) = 0x1122334455667788;
	post(request(hw::op_write, 64, 0, 8));
	hw::cqe c = next();

	EXPECT_EQ(word(0), 0x1122334455667788u);
	EXPECT_EQ(c.opcode, hw::op_write);
	EXPECT_EQ(c.receive, 0);
	EXPECT_EQ(c.status, 0);
	EXPECT_EQ(c.wqe_index, 0);
	EXPECT_EQ(c.qpn, queue_.qpn());
	EXPECT_EQ(c.remote_qpn, queue_.qpn());
	EXPECT_EQ(c.byte_count, 8u);
	EXPECT_EQ(npu_.violations(), 0u);
}

TEST_F(InDie, Reads)
{
	word(0) = 0x1122334455667788;
	post(request(hw::op_read, 64, 0, 8));

	EXPECT_EQ(next().opcode, hw::op_read);
	EXPECT_EQ(word(64), 0x1122334455667788u);
}

TEST_F(InDie, GathersTwoPieces)
{
	hw::request r = request(hw::op_write, 512, 0, 5);
	memcpy(npu_.host<char>(at(512)), "abcde", 5);
	memcpy(npu_.host<char>(at(640)), "fg", 2);
	r.length = 7;
	r.sges = 2;
	r.data[2] = hw::sge_word(2, mr_->lkey);
	r.data[3] = at(640);
	post(r);

	EXPECT_EQ(next().byte_count, 7u);
	EXPECT_EQ(memcmp(npu_.host<char>(at(0)), "abcdefg", 8), 0);
}

TEST_F(InDie, TakesInlineData)
{
	hw::request r = request(hw::op_write, 0, 0, 32);
	r.inline_data = true;
	for (uint32_t i = 0; i < hw::data_words; i++)
		r.data[i] = 0x0101010101010101 * (i + 1);
	post(r);

	EXPECT_EQ(next().status, 0);
	for (uint32_t i = 0; i < hw::data_words; i++)
		EXPECT_EQ(word(i * 8), 0x0101010101010101 * (i + 1));
}

TEST_F(InDie, AddsAndReturnsTheFormerValue)
{
	word(0) = 40;
	EXPECT_EQ(atomic(hw::op_fetch_add, 2, 0), 40u);
	EXPECT_EQ(word(0), 42u);
}

TEST_F(InDie, SwapsWhereItCompares)
{
	word(0) = 40;
	EXPECT_EQ(atomic(hw::op_compare_swap, 7, 41), 40u);
	EXPECT_EQ(word(0), 40u);
	EXPECT_EQ(atomic(hw::op_compare_swap, 7, 40), 40u);
	EXPECT_EQ(word(0), 7u);
}

TEST_F(InDie, AnAtomicThatIsNotAlignedIsAnInvalidRequest)
{
	hw::request r = request(hw::op_fetch_add, 64, 4, 8);
	post(r);

	EXPECT_EQ(next().status, hw::syndrome_remote_invalid);
	EXPECT_EQ(npu_.violations(), 0u);
}

// Its receives are of the queue itself, which is its own peer.
TEST_F(InDie, AnImmediateConsumesAReceiveWhoseCompletionCarriesIt)
{
	hw::request r = request(hw::op_write_immediate, 64, 0, 8);
	r.immediate = 0xcafe1234;
	word(64) = 0x1122334455667788;
	post_receives(2);
	post(r);

	hw::cqe first = next(), second = next();
	const hw::cqe &sent = first.receive ? second : first;
	const hw::cqe &received = first.receive ? first : second;
	EXPECT_EQ(sent.opcode, hw::op_write_immediate);
	EXPECT_EQ(sent.receive, 0);
	EXPECT_EQ(sent.status, 0);
	EXPECT_EQ(received.receive, 1);
	EXPECT_EQ(received.opcode, hw::received_write_immediate);
	EXPECT_EQ(received.immediate, 0xcafe1234u);
	EXPECT_EQ(received.wqe_index, 0);
	EXPECT_EQ(received.byte_count, 8u);
	EXPECT_EQ(received.qpn, queue_.qpn());
	EXPECT_EQ(word(0), 0x1122334455667788u);
	EXPECT_EQ(npu_.violations(), 0u);
}

struct InDieOverrun : InDie {
	InDieOverrun() : InDie("cq-overrun:1") {}
};

// The send CQ overruns later, as what is posted is flushed.
TEST_F(InDieOverrun, NamesTheCompletionQueueThatFailed)
{
	QueueOptions o = options();
	o.recv_cq = queue_.cq();
	TestQueue y(npu_, nic_, o);
	ASSERT_EQ(y.to_init(access_flags), 0) << detail();
	ASSERT_EQ(y.to_rtr(nic_.gid(), y.qpn()), 0) << detail();
	ASSERT_EQ(y.to_rts(), 0) << detail();

	hw::request r = request(hw::op_write_immediate, 64, 0, 8);
	uint64_t words[hw::wqe_words];
	hw::encode(hw::request_wqe(r, 0, depth), words);
	memcpy(npu_.host<uint8_t>(y.extend()->sq_info.qbuf.base), words, sizeof(words));
	__atomic_store_n(npu_.host<uint32_t>(y.extend()->rq_info.dbr_pi_va.iov_base), 1u,
		__ATOMIC_RELEASE);
	__atomic_store_n(npu_.host<uint64_t>(y.extend()->sq_info.db_hw_va.iov_base),
		hw::doorbell_value(hw::doorbell_template(y.qpn(), 4), 1), __ATOMIC_RELEASE);
	step();

	ibv_async_event event;
	ASSERT_EQ(api().get_async_event(nic_.context(), &event), 0);
	EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
	EXPECT_EQ(event.element.cq, queue_.cq()->cq);
	ASSERT_EQ(api().get_async_event(nic_.context(), &event), 0);
	EXPECT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
	EXPECT_EQ(event.element.qp, y.qp());
	ASSERT_EQ(api().get_async_event(nic_.context(), &event), 0);
	EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
	EXPECT_EQ(event.element.cq, y.cq()->cq);
}

TEST_F(InDie, AWqeThatDoesNotAskGetsNoCompletion)
{
	hw::request r = request(hw::op_write, 64, 0, 8);
	r.signalled = false;
	post(r);
	EXPECT_FALSE(ready());
	post(request(hw::op_write, 64, 0, 8));
	EXPECT_EQ(next().wqe_index, 1);
}

TEST_F(InDie, AKeyThatIsNoneIsARemoteAccessErrorAndTheRestIsFlushed)
{
	hw::request r = request(hw::op_write, 64, 0, 8);
	r.rkey++;
	put(r);
	put(request(hw::op_write, 64, 0, 8));
	ring(bell(head_));

	EXPECT_EQ(next().status, hw::syndrome_remote_access);
	hw::cqe c = next();
	EXPECT_EQ(c.status, hw::syndrome_flushed);
	EXPECT_EQ(c.wqe_index, 1);
}

TEST_F(InDie, AnLkeyThatIsNoneIsALocalProtectionError)
{
	hw::request r = request(hw::op_write, 64, 0, 8);
	r.data[0] = hw::sge_word(8, mr_->lkey + 1);
	post(r);
	EXPECT_EQ(next().status, hw::syndrome_local_protection);
}

TEST_F(InDie, WaitsForTheConsumersDoorbellWhenTheCompletionsAreFull)
{
	for (uint32_t i = 0; i < depth; i++)
		post(request(hw::op_write, 64, 0, 8));
	post(request(hw::op_write, 64, 128, 8)); // there is no place for its completion
	for (uint32_t i = 0; i < depth; i++)
		EXPECT_EQ(next().wqe_index, i);
	EXPECT_FALSE(ready());
	tell_consumer();
	EXPECT_EQ(next().wqe_index, depth);
	EXPECT_EQ(npu_.violations(), 0u);
}

TEST_F(InDie, GoesOnOverItsLaps)
{
	for (uint32_t i = 0; i < 100; i++) {
		word(64) = i;
		post(request(hw::op_write, 64, 0, 8));
		ASSERT_EQ(next().wqe_index, i);
		ASSERT_EQ(word(0), i);
		tell_consumer();
	}
	EXPECT_EQ(npu_.violations(), 0u);
}

TEST_F(InDie, ItsIndicesWrap)
{
	for (uint32_t start : {0xfffdu, 0xfffffdu, 0xfffffffdu}) {
		ASSERT_EQ(queue_.to(IBV_QPS_RESET), 0);
		ASSERT_EQ(api().qp_seek(queue_.qp(), start, start), 0) << detail();
		connect();
		head_ = ci_ = start;
		for (uint32_t i = 0; i < 6; i++) {
			word(64) = start + i;
			post(request(hw::op_write, 64, 0, 8));
			ASSERT_EQ(next().wqe_index, (start + i) & 0xffff);
			ASSERT_EQ(word(0), start + i);
			tell_consumer();
		}
	}
	EXPECT_EQ(npu_.violations(), 0u);
}

TEST_F(InDie, TakesTheBitThatTheSharedMemoryLibrarySetsInTheCqDoorbell)
{
	post(request(hw::op_write, 64, 0, 8));
	EXPECT_EQ(next().status, 0);
	hw::cq_doorbell d = hw::decode_cq_doorbell(consumer(ci_));
	d.notify = 1;
	d.cmd_sn = 0;
	tell_consumer(hw::encode(d));
	post(request(hw::op_write, 64, 0, 8));
	EXPECT_EQ(npu_.violations(), 0u);
}

// ---- What it objects to ----------------------------------------------------------------

TEST_F(InDie, ObjectsToAWqeThatIsNotValidYet)
{
	post(hw::request_wqe(request(hw::op_write, 64, 0, 8), head_ + depth, depth));
	expect_breach();
}

TEST_F(InDie, ObjectsToADoorbellForAWqeThatNobodyWrote)
{
	head_++;
	ring(bell(head_));
	expect_breach();
}

TEST_F(InDie, ObjectsToALengthThatIsNotTheSegments)
{
	hw::request r = request(hw::op_write, 64, 0, 8);
	r.length = 9;
	post(r);
	expect_breach(hw::syndrome_local_length);
}

TEST_F(InDie, ObjectsToAMaskedAtomic)
{
	hw::request r = request(hw::op_masked_fetch_add, 64, 0, 8);
	post(r);
	expect_breach();
}

TEST_F(InDie, ObjectsToASend)
{
	post(request(hw::op_send, 64, 0, 8));
	expect_breach();
}

TEST_F(InDie, ObjectsToADoorbellOfAnotherQp)
{
	put(request(hw::op_write, 64, 0, 8));
	ring(hw::doorbell_value(hw::doorbell_template(queue_.qpn() + 1, 4), head_));
	expect_breach();
}

TEST_F(InDie, ObjectsToADoorbellOfAnotherKind)
{
	put(request(hw::op_write, 64, 0, 8));
	ring(bell(head_) | uint64_t{hw::command_rq} << 24);
	expect_breach();
}

TEST_F(InDie, ObjectsToADoorbellWithAReservedBit)
{
	put(request(hw::op_write, 64, 0, 8));
	ring(bell(head_) | uint64_t{1} << 51);
	expect_breach();
}

TEST_F(InDie, ObjectsToADoorbellBeyondTheRing)
{
	ring(bell(depth + 1));
	expect_breach();
}

TEST_F(InDie, ObjectsToAConsumerIndexBeyondWhatWasCompleted)
{
	post(request(hw::op_write, 64, 0, 8));
	EXPECT_EQ(next().status, 0);
	tell_consumer(consumer(2));
	post(request(hw::op_write, 64, 0, 8));
	EXPECT_EQ(npu_.violations(), 1u);
}

TEST_F(InDie, ObjectsToTheDoorbellOfAnotherCq)
{
	tell_consumer(consumer(0) ^ uint64_t{1} << 23);
	post(request(hw::op_write, 64, 0, 8));
	EXPECT_EQ(npu_.violations(), 1u);
}

TEST_F(InDie, ObjectsToACqDoorbellWithAnotherCommand)
{
	tell_consumer(consumer(0) ^ uint64_t{7} << 24); /* 3 becomes 4 */
	post(request(hw::op_write, 64, 0, 8));
	EXPECT_EQ(npu_.violations(), 1u);
}

} // namespace
} // namespace nda::soft_test
