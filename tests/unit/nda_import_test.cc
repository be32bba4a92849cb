// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Importing queues of other libraries, over the mocks of Ascend's: what is read, what is
// refused, what is published. That the data plane drives them is nda_import_drive_test's.
#include <functional>
#include <string>
#include <vector>

#include <nda/import.h>
#include <nda/table.h>

#include "tests/mock/ascend/ascend_test.h"
#include "tests/mock/ascend/foreign_queues.h"

namespace nda::test {
namespace {

constexpr uint64_t heap_bytes = 1 << 20;

class Import : public AscendTest {
protected:
	Import() : npu(open())
	{
		attr.my_pe = 0;
		peers.resize(2);
		memory.alloc = [this](uint64_t size) {
			const uint64_t addr = mock.alloc(size);
			foreign.push_back(addr);
			return addr;
		};
		memory.write = [this](uint64_t addr, const void *data, uint64_t size) {
			mock.write(addr, data, size);
		};
		heap = memory.alloc(heap_bytes);
	}
	~Import() override
	{
		mock.fail_call(0);
		if (import) {
			EXPECT_EQ(nda_import_release(import), 0) << nda_error_detail();
		}
		EXPECT_EQ(nda_npu_close(npu), 0) << nda_error_detail();
		for (const uint64_t addr : foreign)
			mock.free(addr);
	}

	// What channels of every kind have, with rings for that format.
	ForeignQueueValues values(uint32_t wqe_bytes, uint32_t sq_depth, uint32_t cqe_bytes,
		uint32_t cq_depth)
	{
		ForeignQueueValues v;
		v.wqe_bytes = wqe_bytes;
		v.sq_depth = sq_depth;
		v.cqe_bytes = cqe_bytes;
		v.cq_depth = cq_depth;
		v.sq = memory.alloc(uint64_t{sq_depth} * wqe_bytes);
		v.cq = memory.alloc(uint64_t{cq_depth} * cqe_bytes);
		v.head_word = memory.alloc(8);
		v.tail_word = memory.alloc(8);
		v.cq_head_word = memory.alloc(8);
		v.cq_tail_word = memory.alloc(8);
		v.sq_doorbell = 0x200000000100;
		v.number = 0x1234;
		v.service_level = 4;
		v.local_addr = heap;
		v.local_bytes = heap_bytes;
		v.remote_addr = 0x500000000000;
		v.remote_bytes = heap_bytes;
		v.local_keys[0] = 0x11110;
		v.remote_keys[1] = 0x22221;
		return v;
	}
	ForeignQueueValues hns1825()
	{
		ForeignQueueValues v = values(64, 1024, 64, 32 * 1024);
		v.sq_record = memory.alloc(8);
		v.cq_record = memory.alloc(8);
		v.mtu_shift = 3;
		v.vendor_word = 5ull << 24 | 3ull << 50;
		return v;
	}
	ForeignQueueValues xscale()
	{
		ForeignQueueValues v = values(128, 1024, 64, 32 * 1024);
		v.cq_doorbell = 0x200000000200;
		v.cq_number = 0x55;
		return v;
	}
	ForeignQueueValues udma()
	{
		ForeignQueueValues v = values(64, 32768, 64, 32768);
		v.cq_record = memory.alloc(8);
		v.cq_number = 0x77;
		v.tp_id = 0x98765;
		v.eid[0] = 0x0102030405060708;
		v.eid[1] = 0x1112131415161718;
		v.remote_keys[0] = 0x33332;
		return v;
	}
	ForeignQueueValues in_die()
	{
		ForeignQueueValues v = values(64, 8192, 32, 8192);
		v.sq_record = 0x200000000300; // not used where there is a register
		v.cq_record = 0x200000000400;
		v.cq_doorbell = 0x200000000200;
		v.cq_number = 0x55;
		return v;
	}

	ForeignEntity roce(const ForeignQueueValues &v, Generation g)
	{
		return {memory, false, roce_sq(v, g), roce_cq(v, g), v};
	}
	ForeignEntity ub(const ForeignQueueValues &v)
	{
		return {memory, true, ub_sq(v), ub_cq(v), v};
	}
	void use(const ForeignEntity &entity, uint32_t pe = 1)
	{
		peers[pe].source = NDA_IMPORT_CHANNEL;
		peers[pe].address = memory.place(entity.bytes);
	}
	void use_ai_qp(const Bytes &bytes, const ForeignQueueValues &v)
	{
		attr.heap_addr = v.local_addr;
		attr.heap_bytes = v.local_bytes;
		peers[1] = {NDA_IMPORT_AI_QP, v.service_level,
			reinterpret_cast<uint64_t>(bytes.data()), v.remote_addr,
			v.remote_bytes, v.local_keys[0], v.remote_keys[1]};
	}

	nda_import *do_import()
	{
		return nda_channel_import(npu, peers.data(),
			static_cast<uint32_t>(peers.size()), &attr, sizeof(attr));
	}
	// What the table says of the queue to a PE.
	nda_queue imported(uint32_t pe = 1)
	{
		nda_queue q = {};
		if (!import)
			import = do_import();
		EXPECT_NE(import, nullptr) << nda_error_detail();
		if (!import)
			return q;
		mock.read(nda_import_table(import), &table, sizeof(table));
		mock.read(nda_import_table(import) + table.queues_offset + pe * sizeof(q),
			&q, sizeof(q));
		return q;
	}
	// The errno that importing gives; text: of the detail.
	void expect_refused(int error, const char *text)
	{
		const size_t live = mock.live();
		errno = 0;
		EXPECT_EQ(do_import(), nullptr);
		EXPECT_EQ(errno, error) << nda_error_detail();
		EXPECT_TRUE(detail_has(text)) << nda_error_detail();
		EXPECT_EQ(mock.live(), live) << mock.live_text();
	}
	void set_word(uint64_t addr, uint32_t value) { mock.write(addr, &value, 4); }
	uint32_t word(uint64_t addr)
	{
		uint32_t value = 0;
		mock.read(addr, &value, 4);
		return value;
	}

	nda_npu *npu;
	nda_import *import = nullptr;
	nda_import_attr attr = {};
	std::vector<nda_import_peer> peers;
	ForeignMemory memory;
	std::vector<uint64_t> foreign;
	uint64_t heap = 0;
	nda_table table = {};
};

// ---- 1825 ----------------------------------------------------------------------------

// The doorbell's word as the format has it, with an index of 0.
uint64_t doorbell_1825(uint32_t qpn, uint64_t cos, uint64_t mtu_shift)
{
	return qpn | 1u << 20 | cos << 24 | 21u << 27 | mtu_shift << 50 | 1ull << 53;
}

TEST_F(Import, Of1825InTheVendorLayoutTakesCosAndMtuFromItsWord)
{
	const ForeignQueueValues v = hns1825();
	use(roce(v, Generation::vendor));
	const nda_queue q = imported();
	EXPECT_EQ(table.format, uint32_t{NDA_FORMAT_HNS1825});
	EXPECT_EQ(q.doorbell_template, doorbell_1825(0x1234, 5, 3));
	EXPECT_EQ(q.sq_base, v.sq);
	EXPECT_EQ(q.sq_depth, 1024u);
	EXPECT_EQ(q.sq_doorbell, v.sq_doorbell);
	EXPECT_EQ(q.sq_record, v.sq_record);
	EXPECT_EQ(q.cq_base, v.cq);
	EXPECT_EQ(q.cq_depth, 32768u);
	EXPECT_EQ(q.cqe_stride, 64u);
	EXPECT_EQ(q.cq_record, v.cq_record);
	EXPECT_EQ(q.qpn, 0x1234u);
	EXPECT_EQ(q.lkey, 0x11110u);
	EXPECT_EQ(q.rkey, 0x22221u);
	EXPECT_EQ(q.remote_delta, v.remote_addr - heap);
	EXPECT_EQ(q.signal_every, 1u);
	EXPECT_EQ(q.valid, 1u);
}

TEST_F(Import, Of1825InTheSplitLayoutTakesItsMtuAndTheUsualCos)
{
	use(roce(hns1825(), Generation::split));
	EXPECT_EQ(imported().doorbell_template, doorbell_1825(0x1234, 7, 3));
}

TEST_F(Import, Of1825ThatPublishesNoMtuTakesTheUsualOne)
{
	ForeignQueueValues v = hns1825();
	v.mtu_shift = 0;
	use(roce(v, Generation::split));
	EXPECT_EQ(imported().doorbell_template, doorbell_1825(0x1234, 7, 4));
}

TEST_F(Import, Of1825InTheIntermediateLayoutTakesTheMtuFromTheLowByte)
{
	ForeignQueueValues v = hns1825();
	v.vendor_word = 2;
	use(roce(v, Generation::vendor));
	EXPECT_EQ(imported().doorbell_template, doorbell_1825(0x1234, 7, 2));
}

TEST_F(Import, Of1825WithACqOf31KiEntriesHasARingOf32Ki)
{
	ForeignQueueValues v = hns1825();
	v.cq_depth = 31 * 1024;
	use(roce(v, Generation::vendor));
	EXPECT_EQ(imported().cq_depth, 32768u);
}

TEST_F(Import, Of1825InTheInitialLayoutIsRefused)
{
	use(roce(hns1825(), Generation::initial));
	expect_refused(EOPNOTSUPP, "PE 1: the initial layout has one doorbell address");
}

// ---- XSCALE --------------------------------------------------------------------------

TEST_F(Import, OfXscaleInEachLayoutGivesTheSameQueue)
{
	const ForeignQueueValues v = xscale();
	for (const Generation g : {Generation::initial, Generation::split}) {
		use(roce(v, g));
		const nda_queue q = imported();
		EXPECT_EQ(table.format, uint32_t{NDA_FORMAT_XSCALE});
		// QP in bits 36:21; the index, in 20:0, is 0
		EXPECT_EQ(q.doorbell_template, uint64_t{0x1234} << 21);
		// CQ in bits 38:23, KEEP in 40:39
		EXPECT_EQ(q.xscale.cq_doorbell_template, uint64_t{0x55} << 23 | 1ull << 39);
		EXPECT_EQ(q.sq_doorbell, v.sq_doorbell);
		EXPECT_EQ(q.xscale.cq_doorbell, v.cq_doorbell);
		EXPECT_EQ(q.cqn, 0x55u);
		EXPECT_EQ(q.sq_base, v.sq);
		EXPECT_EQ(q.cq_base, v.cq);
		EXPECT_EQ(nda_import_release(import), 0);
		import = nullptr;
	}
}

// A record in memory is no register.
TEST_F(Import, OfXscaleWhoseSendQueueHasNoRegisterIsRefused)
{
	ForeignQueueValues v = xscale();
	v.mode = 1;
	const Bytes sq = roce_sq(v, Generation::initial);
	v.mode = 0;
	use(ForeignEntity(memory, false, sq, roce_cq(v, Generation::initial), v));
	expect_refused(EOPNOTSUPP, "PE 1: the send queue's doorbell is of mode 1");
}

TEST_F(Import, OfXscaleWhoseCqHasNoRegisterIsRefused)
{
	ForeignQueueValues v = xscale();
	const Bytes sq = roce_sq(v, Generation::initial);
	for (const int8_t mode : {1, -1}) {
		v.mode = mode;
		use(ForeignEntity(memory, false, sq, roce_cq(v, Generation::initial), v));
		expect_refused(EOPNOTSUPP, "PE 1: the completion queue's doorbell is of");
	}
}

// Entries of the size that the format has by default.
TEST_F(Import, OfACqThatIsShorterThanItsEntriesIsRefused)
{
	ForeignQueueValues v = xscale();
	v.cq = memory.alloc(v.cq_depth * 32);
	v.cqe_bytes = 0;
	use(roce(v, Generation::split));
	expect_refused(EFAULT, "PE 1: CQ of 2097152 bytes at");
	uint8_t first = 0xee;
	mock.read(v.cq, &first, 1);
	EXPECT_EQ(first, 0);
}

// The 1825's ring has a power of two of them, whatever the number that is told.
TEST_F(Import, OfACqThatIsShorterThanItsRingIsRefused)
{
	ForeignQueueValues v = hns1825();
	v.cq_depth = 31 * 1024;
	v.cq = memory.alloc(v.cq_depth * 64);
	use(roce(v, Generation::vendor));
	expect_refused(EFAULT, "PE 1: CQ of 2097152 bytes at");
}

TEST_F(Import, OfAnXscaleQueueThatWasNeverUsedMakesItsCqEmpty)
{
	const ForeignQueueValues v = xscale();
	use(roce(v, Generation::split));
	imported();
	uint8_t ends[2] = {};
	mock.read(v.cq, &ends[0], 1);
	mock.read(v.cq + 32768 * 64 - 1, &ends[1], 1);
	EXPECT_EQ(ends[0], 0xff);
	EXPECT_EQ(ends[1], 0xff);
}

TEST_F(Import, OfAnXscaleQueueThatWasUsedLeavesItsCqAlone)
{
	const ForeignQueueValues v = xscale();
	set_word(v.head_word, 5);
	set_word(v.cq_tail_word, 5);
	use(roce(v, Generation::split));
	imported();
	uint8_t first = 0xee;
	mock.read(v.cq, &first, 1);
	EXPECT_EQ(first, 0);
}

// ---- UDMA ----------------------------------------------------------------------------

TEST_F(Import, OfAJettyTakesItsEidAsItIsAndTokensFromTheBuffers)
{
	const ForeignQueueValues v = udma();
	attr.max_inline_bytes = 176;
	use(ub(v));
	const nda_queue q = imported();
	EXPECT_EQ(table.format, uint32_t{NDA_FORMAT_UDMA});
	// tp_id in 23:0, one SGE in 31:24, the segment's id above
	EXPECT_EQ(q.udma.words[0], uint64_t{0x33332} << 32 | 1u << 24 | 0x98765);
	EXPECT_EQ(q.udma.words[1], v.eid[0]);
	EXPECT_EQ(q.udma.words[2], v.eid[1]);
	EXPECT_EQ(q.rkey, 0x22221u);
	EXPECT_EQ(q.rkey_id, 0x33332u);
	EXPECT_EQ(q.lkey, 0x11110u);
	EXPECT_EQ(q.udma.max_inline, 176u);
	EXPECT_EQ(q.sq_depth, 32768u);
	EXPECT_EQ(q.sq_doorbell, v.sq_doorbell);
	EXPECT_EQ(q.cq_record, v.cq_record);
	EXPECT_EQ(q.cq_base, v.cq);
	EXPECT_EQ(q.cqn, 0x77u);
}

TEST_F(Import, OfAJettyThatWasUsedIsRefused)
{
	const ForeignQueueValues v = udma();
	set_word(v.head_word, 2);
	set_word(v.cq_tail_word, 2);
	use(ub(v));
	expect_refused(EOPNOTSUPP, "PE 1: the jetty was used (head 2, CQ tail 2)");
}

TEST_F(Import, OfAJettyOverUbcTpWorksToo)
{
	ForeignEntity e = ub(udma());
	e.bytes.set<int32_t>(20, 5);
	use(e);
	EXPECT_EQ(imported().valid, 1u);
}

TEST_F(Import, OfAJettyWithBlocksOfAnotherSizeOrNoEidIsRefused)
{
	ForeignQueueValues v = udma();
	v.wqe_bytes = 128;
	use(ub(v));
	expect_refused(EPROTO, "blocks of 128 bytes");
	v.wqe_bytes = 64;
	v.eid[0] = v.eid[1] = 0;
	use(ub(v));
	expect_refused(EPROTO, "or no EID");
}

// ---- IN_DIE --------------------------------------------------------------------------

TEST_F(Import, OfAnAiQpRingsItsRegisters)
{
	const ForeignQueueValues v = in_die();
	const Bytes info = ai_qp(v);
	use_ai_qp(info, v);
	const nda_queue q = imported();
	EXPECT_EQ(table.format, uint32_t{NDA_FORMAT_IN_DIE});
	EXPECT_EQ(table.heap_base, heap);
	EXPECT_EQ(q.sq_base, v.sq);
	EXPECT_EQ(q.sq_depth, 8192u);
	EXPECT_EQ(q.sq_doorbell, v.sq_doorbell);
	EXPECT_EQ(q.sq_record, 0u);
	// QPN in 23:0, SL in 50:48
	EXPECT_EQ(q.doorbell_template, 0x1234u | 4ull << 48);
	EXPECT_EQ(q.cq_base, v.cq);
	EXPECT_EQ(q.cq_depth, 8192u);
	EXPECT_EQ(q.cqe_stride, 32u);
	EXPECT_EQ(q.cq_record, 0u);
	EXPECT_EQ(q.in_die.cq_doorbell, v.cq_doorbell);
	// CQN in 23:0, command 3, sequence 1 in 58:57
	EXPECT_EQ(q.in_die.cq_template, 0x55u | 3u << 24 | 1ull << 57);
	EXPECT_EQ(q.lkey, 0x11110u);
	EXPECT_EQ(q.rkey, 0x22221u);
}

TEST_F(Import, OfAnAiQpWhoseCqHasNoRegisterUsesItsRecord)
{
	ForeignQueueValues v = in_die();
	v.cq_doorbell = 0;
	const Bytes info = ai_qp(v);
	use_ai_qp(info, v);
	const nda_queue q = imported();
	EXPECT_EQ(q.cq_record, v.cq_record);
	EXPECT_EQ(q.in_die.cq_doorbell, 0u);
}

TEST_F(Import, OfAnAiQpWithForeignWqesIsRefused)
{
	ForeignQueueValues v = in_die();
	v.wqe_bytes = 128;
	const Bytes info = ai_qp(v);
	use_ai_qp(info, v);
	expect_refused(EPROTO, "PE 1: its WQEs have 128 bytes");
}

TEST_F(Import, OfAnAiQpWantsItsHeap)
{
	const ForeignQueueValues v = in_die();
	const Bytes info = ai_qp(v);
	use_ai_qp(info, v);
	attr.heap_bytes = 0;
	expect_refused(EINVAL, "PE 1: the own heap, 0 bytes");
	attr.heap_bytes = heap_bytes + 1;
	expect_refused(EINVAL, "PE 1: the own heap");
	attr.heap_bytes = heap_bytes;
	peers[1].remote_bytes = 0;
	expect_refused(EINVAL, "PE 1: its heap has 0 bytes");
	peers[1].remote_bytes = UINT64_MAX;
	expect_refused(EINVAL, "PE 1: its heap has");
	peers[1].remote_bytes = heap_bytes;
	peers[1].service_level = 8;
	expect_refused(EINVAL, "service_level 8");
	peers[1].service_level = 0;
	peers[1].address = 0;
	expect_refused(EINVAL, "address is NULL");
}

// ---- Layouts -------------------------------------------------------------------------

TEST_F(Import, TellsWhatItFound)
{
	const ForeignQueueValues v = xscale();
	use(roce(v, Generation::initial));
	imported();
	nda_import_info info = {};
	ASSERT_EQ(nda_import_query(import, 1, &info, sizeof(info)), 0)
		<< nda_error_detail();
	EXPECT_EQ(info.format, uint32_t{NDA_FORMAT_XSCALE});
	EXPECT_EQ(info.layout, uint32_t{NDA_IMPORT_LAYOUT_INITIAL});
	EXPECT_EQ(info.qpn, 0x1234u);
	EXPECT_EQ(info.sq_depth, 1024u);
	EXPECT_EQ(info.remote_addr, v.remote_addr);
	EXPECT_EQ(info.remote_bytes, v.remote_bytes);
	EXPECT_EQ(nda_import_query(import, 0, &info, sizeof(info)), -EINVAL) << "own PE";
	EXPECT_EQ(nda_import_query(import, 2, &info, sizeof(info)), -EINVAL);
	EXPECT_EQ(nda_import_query(import, 1, nullptr, sizeof(info)), -EINVAL);
	EXPECT_EQ(nda_import_query(import, 1, &info, 0), -EINVAL);
}

TEST_F(Import, OfValuesThatFitNoLayoutIsRefused)
{
	const ForeignQueueValues good = hns1825();
	const auto refused = [&](const std::function<void(ForeignQueueValues &)> &change) {
		ForeignQueueValues v = good;
		change(v);
		use(roce(v, Generation::split));
		expect_refused(EPROTO, "PE 1: the send queue's values fit no known layout");
	};
	refused([](ForeignQueueValues &v) { v.number = 0; });
	refused([](ForeignQueueValues &v) { v.wqe_bytes = 0; });
	refused([](ForeignQueueValues &v) { v.wqe_bytes = 96; });
	refused([](ForeignQueueValues &v) { v.wqe_bytes = 16; });
	refused([](ForeignQueueValues &v) { v.wqe_bytes = 8192; });
	refused([](ForeignQueueValues &v) { v.sq_depth = 0; });
	refused([](ForeignQueueValues &v) { v.service_level = 8; });
}

TEST_F(Import, OfAnInitialLayoutWithAModeThatIsNoneIsRefused)
{
	ForeignQueueValues v = xscale();
	v.mode = -1;
	use(roce(v, Generation::initial));
	expect_refused(EPROTO, "fit no known layout");
	v.mode = 2;
	use(roce(v, Generation::initial));
	expect_refused(EPROTO, "fit no known layout");
}

// An initial layout with rubbish behind it may look like a later one.
TEST_F(Import, OfValuesThatFitTwoLayoutsIsRefusedUntilTold)
{
	const ForeignQueueValues v = xscale();
	Bytes sq = roce_sq(v, Generation::initial);
	sq.set<uint32_t>(56, 64);
	use(ForeignEntity(memory, false, sq, roce_cq(v, Generation::initial), v));
	expect_refused(EPROTO, "fit more than one layout");
	attr.layout = NDA_IMPORT_LAYOUT_INITIAL;
	EXPECT_EQ(imported().qpn, 0x1234u);
}

TEST_F(Import, OfALayoutThatIsToldButDoesNotFitIsRefused)
{
	use(roce(hns1825(), Generation::split));
	attr.layout = NDA_IMPORT_LAYOUT_INITIAL;
	expect_refused(EPROTO, "do not fit layout 1");
}

TEST_F(Import, OfAVendorWordWithOtherBitsIsRefused)
{
	for (const uint64_t word :
		{8ull, 1ull << 27, 1ull << 49, 1ull << 53, ~0ull, 5ull << 24 | 1}) {
		ForeignQueueValues v = hns1825();
		v.vendor_word = word;
		use(roce(v, Generation::vendor));
		expect_refused(EPROTO, "vendor word");
	}
}

TEST_F(Import, OfAnMtuThatIsNoneIsRefused)
{
	ForeignQueueValues v = hns1825();
	v.vendor_word = 5ull << 50;
	use(roce(v, Generation::vendor));
	expect_refused(EPROTO, "MTU code is 5");
	v.mtu_shift = 5;
	use(roce(v, Generation::split));
	expect_refused(EPROTO, "MTU code is 5");
}

TEST_F(Import, OfAnotherFormatThanAskedForIsRefused)
{
	use(roce(hns1825(), Generation::vendor));
	attr.format = NDA_FORMAT_XSCALE;
	expect_refused(EPROTO, "that is format 1, asked for is 4");
	use(ub(udma()));
	attr.format = NDA_FORMAT_HNS1825;
	expect_refused(EPROTO, "the queues are of format 5, asked for is 1");
}

TEST_F(Import, OfAQueueTypeThatContradictsTheProtocolIsRefused)
{
	const ForeignQueueValues v = hns1825();
	Bytes sq = roce_sq(v, Generation::vendor);
	sq.set<int32_t>(0, 0);
	use(ForeignEntity(memory, false, sq, roce_cq(v, Generation::vendor), v));
	expect_refused(EPROTO, "the send queue is of type 0");
	const ForeignQueueValues u = udma();
	Bytes jetty = ub_sq(u);
	jetty.set<int32_t>(0, 1);
	use(ForeignEntity(memory, true, jetty, ub_cq(u), u));
	expect_refused(EPROTO, "the send queue is of type 1");
}

// ---- Entities that are none ----------------------------------------------------------

class HostileEntity : public Import {
protected:
	HostileEntity() : v(hns1825()), entity(roce(v, Generation::vendor)) {}
	template <class T>
	void expect_refused_with(size_t offset, T value, int error, const char *text)
	{
		ForeignEntity changed = entity;
		changed.bytes.set(offset, value);
		use(changed);
		expect_refused(error, text);
	}

	const ForeignQueueValues v;
	const ForeignEntity entity;
};

TEST_F(HostileEntity, WithoutItsMagicIsRefusedUnlessTheHeaderIsNotLookedAt)
{
	expect_refused_with<uint32_t>(4, 0, EPROTO, "header has magic 0x0");
	expect_refused_with<uint32_t>(8, 255, EPROTO, "size 255");
	attr.flags = NDA_IMPORT_NO_HEADER;
	EXPECT_EQ(imported().valid, 1u);
}

TEST_F(HostileEntity, OfAnotherEngineOrProtocolIsRefused)
{
	for (const int32_t engine : {-1, 0, 2, 3, 5, 1 << 30})
		expect_refused_with<int32_t>(16, engine, EOPNOTSUPP, "not AIV");
	for (const int32_t protocol : {-1, 0, 2, 6, 7, 1000})
		expect_refused_with<int32_t>(20, protocol, EOPNOTSUPP, "is of protocol");
}

TEST_F(HostileEntity, WithOtherNumbersOfQueuesIsRefused)
{
	for (const uint32_t n : {0u, 2u, 0xffffffffu}) {
		expect_refused_with<uint32_t>(40, n, EOPNOTSUPP, "send queues");
		expect_refused_with<uint32_t>(44, n, EOPNOTSUPP, "completion queues");
	}
}

TEST_F(HostileEntity, WithMoreBuffersThanThereCanBeIsRefused)
{
	expect_refused_with<uint32_t>(32, 0xffffffff, EPROTO, "4294967295 local");
	expect_refused_with<uint32_t>(36, 1025, EPROTO, "1025 remote buffers");
}

TEST_F(HostileEntity, WithoutTheHeapsBufferIsRefused)
{
	expect_refused_with<uint32_t>(
		32, 0, EPROTO, "heap_buffer 0: the channel has 0 local");
	expect_refused_with<uint32_t>(36, 0, EPROTO, "and 0 remote");
	attr.heap_buffer = 2;
	use(entity);
	expect_refused(EPROTO, "heap_buffer 2");
}

TEST_F(HostileEntity, WhosePointersLeadNowhereIsRefused)
{
	const struct {
		size_t offset;
		const char *what;
	} pointers[] = {{64, "local buffer"}, {72, "remote buffer"}, {80, "SQ context"},
		{88, "CQ context"}};
	for (const auto &p : pointers)
		for (const uint64_t to : {uint64_t{0}, uint64_t{1}, uint64_t{0xdead0000},
			     ~uint64_t{0}, ~uint64_t{0} - 63, entity.sq_context + 2})
			expect_refused_with<uint64_t>(p.offset, to, EFAULT, p.what);
}

TEST_F(HostileEntity, WhoseContextIsCutOffIsRefused)
{
	const uint64_t small = memory.alloc(64);
	expect_refused_with<uint64_t>(80, small, EFAULT, "SQ context: 128 bytes");
}

TEST_F(HostileEntity, ThatIsCutOffItselfIsRefused)
{
	peers[1].source = NDA_IMPORT_CHANNEL;
	peers[1].address = memory.alloc(128);
	expect_refused(EFAULT, "PE 1: entity: 256 bytes");
	peers[1].address = 0;
	expect_refused(EFAULT, "PE 1: entity");
	peers[1].address = ~uint64_t{0} - 3;
	expect_refused(EFAULT, "PE 1: entity");
}

TEST_F(HostileEntity, OfAnotherDeviceIsRefused)
{
	const uint64_t elsewhere = mock.alloc(256, 1);
	foreign.push_back(elsewhere);
	mock.write(elsewhere, entity.bytes.data(), 256);
	peers[1].source = NDA_IMPORT_CHANNEL;
	peers[1].address = elsewhere;
	expect_refused(EFAULT, "PE 1: entity");
}

TEST_F(HostileEntity, WhoseBuffersAreNoneIsRefused)
{
	const auto refused = [&](size_t offset, auto value, int error, const char *text) {
		ForeignEntity changed = entity;
		Bytes local = buffers(false, v.local_addr, v.local_bytes, 1, 0);
		local.set(offset, value);
		changed.bytes.set(64, memory.place(local));
		use(changed);
		expect_refused(error, text);
	};
	refused(0, int32_t{0}, EPROTO, "local buffer: it is of type 0");
	refused(24, int32_t{1}, EPROTO, "with keys of type 1");
	refused(8, uint64_t{0}, EPROTO, "local buffer: it has");
	refused(16, uint64_t{0}, EPROTO, "local buffer: it has 0 bytes");
	refused(16, ~uint64_t{0}, EPROTO, "local buffer: it has");
	refused(16, heap_bytes + 1, EFAULT, "local buffer: 1048577 bytes");
	refused(8, uint64_t{0xdead0000}, EFAULT, "local buffer");
}

TEST_F(HostileEntity, WhoseRingsAreNoneIsRefused)
{
	const auto refused = [&](const std::function<void(ForeignQueueValues &)> &change,
				     int error) {
		ForeignQueueValues changed = v;
		change(changed);
		use(roce(changed, Generation::vendor));
		expect_refused(error, "PE 1: ");
	};
	refused([](ForeignQueueValues &q) { q.sq = 0; }, EPROTO);
	refused([](ForeignQueueValues &q) { q.cq = 0; }, EPROTO);
	refused([](ForeignQueueValues &q) { q.sq = ~uint64_t{63}; }, EPROTO);
	refused([](ForeignQueueValues &q) { q.sq_depth = 0x80000000; }, EFAULT);
	refused([](ForeignQueueValues &q) { q.sq_depth = 1000; }, EPROTO);
	refused([](ForeignQueueValues &q) { q.cq_depth = 0; }, EPROTO);
	refused([](ForeignQueueValues &q) { q.cq_depth = 0xffffffff; }, EPROTO);
	refused([](ForeignQueueValues &q) { q.cq_depth = 1 << 20; }, EFAULT);
	refused([](ForeignQueueValues &q) { q.cqe_bytes = 20; }, EPROTO);
	refused([](ForeignQueueValues &q) { q.sq += 8; }, EFAULT);
	refused([](ForeignQueueValues &q) { q.sq_doorbell = 0; }, EPROTO);
	refused([](ForeignQueueValues &q) { q.sq_doorbell += 4; }, EPROTO);
	refused([](ForeignQueueValues &q) { q.cq_record = 0; }, EPROTO);
	refused([](ForeignQueueValues &q) { q.number = 0x100000; }, EPROTO);
	refused([](ForeignQueueValues &q) { q.head_word = 0; }, EFAULT);
	refused([](ForeignQueueValues &q) { q.cq_tail_word = 0xdead0000; }, EFAULT);
}

// ---- Arguments -----------------------------------------------------------------------

TEST_F(Import, RefusesWrongArguments)
{
	const auto refused = [&](const char *text) { expect_refused(EINVAL, text); };
	use(roce(hns1825(), Generation::vendor));
	const std::vector<nda_import_peer> good = peers;
	errno = 0;
	EXPECT_EQ(
		nda_channel_import(nullptr, peers.data(), 2, &attr, sizeof(attr)), nullptr);
	EXPECT_EQ(nda_channel_import(npu, nullptr, 2, &attr, sizeof(attr)), nullptr);
	EXPECT_EQ(nda_channel_import(npu, peers.data(), 2, nullptr, 0), nullptr);
	EXPECT_EQ(nda_channel_import(npu, peers.data(), 1, &attr, sizeof(attr)), nullptr);
	EXPECT_EQ(
		nda_channel_import(npu, peers.data(), 65537, &attr, sizeof(attr)), nullptr);
	EXPECT_EQ(errno, EINVAL);
	attr.my_pe = 2;
	refused("my_pe 2");
	attr.my_pe = 1;
	refused("PE 1: it is the own PE");
	attr.my_pe = 0;
	attr.format = NDA_FORMAT_RXE;
	refused("format 2");
	attr.format = 99;
	refused("format 99");
	attr.format = 0;
	attr.layout = 4;
	refused("layout 4");
	attr.layout = 0;
	attr.flags = 2;
	refused("flags 0x2");
	attr.flags = 0;
	attr.reserved = 1;
	refused("reserved 1");
	attr.reserved = 0;
	attr.max_inline_bytes = 65536;
	refused("max_inline_bytes");
	attr.max_inline_bytes = 0;
	attr.heap_addr = heap;
	refused("given besides channels");
	attr.heap_addr = 0;
	peers[1].lkey = 1;
	refused("is given besides");
	peers = good;
	peers[1].source = 3;
	refused("source 3");
	peers[1].source = NDA_IMPORT_NONE;
	refused("no queue leads to any PE");
}

TEST_F(Import, RefusesHandlesThatAreNone)
{
	nda_import_info info;
	EXPECT_EQ(nda_import_table(nullptr), 0u);
	EXPECT_EQ(nda_import_query(nullptr, 0, &info, sizeof(info)), -EINVAL);
	EXPECT_EQ(nda_import_release(nullptr), -EINVAL);
	EXPECT_EQ(nda_import_release(reinterpret_cast<nda_import *>(npu)), -EINVAL);
	EXPECT_TRUE(detail_has("is no import")) << nda_error_detail();
}

TEST_F(Import, KeepsScratchAndSyncInsideTheHeap)
{
	use(roce(hns1825(), Generation::vendor));
	attr.scratch_addr = heap + heap_bytes - 511;
	expect_refused(EINVAL, "scratch_addr");
	attr.scratch_addr = heap + heap_bytes - 448;
	expect_refused(EINVAL, "512 bytes there are not in the heap");
	attr.scratch_addr = heap - 64;
	expect_refused(EINVAL, "scratch_addr");
	attr.scratch_addr = 0;
	attr.sync_addr = heap + heap_bytes - NDA_SYNC_BYTES + 64;
	expect_refused(EINVAL, "sync_addr");
	attr.sync_addr = heap + 32;
	expect_refused(EINVAL, "no multiple of 64");
	attr.sync_addr = heap + heap_bytes - NDA_SYNC_BYTES;
	attr.scratch_addr = heap;
	const nda_queue q = imported();
	EXPECT_EQ(q.scratch_local, heap + NDA_SCRATCH_BYTES);
	EXPECT_EQ(q.scratch_remote, 0x500000000000u);
	EXPECT_EQ(table.sync_area, attr.sync_addr);
}

// ---- Tables --------------------------------------------------------------------------

TEST_F(Import, PublishesOneTableForAllPeers)
{
	peers.resize(4);
	attr.my_pe = 1;
	ForeignQueueValues v[4];
	for (const uint32_t pe : {0u, 3u}) {
		v[pe] = hns1825();
		v[pe].number = 0x100 + pe;
		v[pe].remote_bytes = heap_bytes - pe * 4096;
		use(roce(v[pe], Generation::vendor), pe);
	}
	EXPECT_EQ(imported(0).qpn, 0x100u);
	EXPECT_EQ(table.magic, NDA_TABLE_MAGIC);
	EXPECT_EQ(table.version, NDA_TABLE_VERSION);
	EXPECT_EQ(table.my_pe, 1u);
	EXPECT_EQ(table.n_pes, 4u);
	EXPECT_EQ(table.n_cores, 1u);
	EXPECT_EQ(table.queues_per_core, 1u);
	EXPECT_EQ(table.heap_base, heap);
	EXPECT_EQ(table.heap_bytes, heap_bytes - 3 * 4096) << "the smallest";
	EXPECT_EQ(table.device_timeout_us, 10000000u);
	EXPECT_EQ(imported(3).qpn, 0x103u);
	EXPECT_EQ(imported(1).valid, 0u) << "own PE";
	EXPECT_EQ(imported(2).valid, 0u) << "no channel";
}

TEST_F(Import, OfDifferentFormatsOrHeapsIsRefused)
{
	peers.resize(3);
	use(roce(hns1825(), Generation::vendor), 1);
	use(roce(xscale(), Generation::split), 2);
	expect_refused(EOPNOTSUPP, "PE 2 has a queue of format 4, another of 1");
	ForeignQueueValues v = hns1825();
	v.local_addr += 4096;
	v.local_bytes -= 4096;
	use(roce(v, Generation::vendor), 2);
	expect_refused(EPROTO, "PE 2: the own heap is at");
}

TEST_F(Import, OfOneQueueTwiceIsRefused)
{
	peers.resize(3);
	const ForeignEntity e = roce(hns1825(), Generation::vendor);
	use(e, 1);
	use(e, 2);
	expect_refused(EBUSY, "PE 2: queue 0x1234");
	peers.resize(2);
	imported();
	nda_npu *other = open();
	errno = 0;
	EXPECT_EQ(nda_channel_import(other, peers.data(), 2, &attr, sizeof(attr)), nullptr);
	EXPECT_EQ(errno, EBUSY) << "by another handle of the same device";
	EXPECT_EQ(nda_npu_close(other), 0);
	EXPECT_EQ(nda_import_release(import), 0);
	import = nullptr;
	imported();
}

// ---- Indices -------------------------------------------------------------------------

TEST_F(Import, GoesOnWhereTheQueueHasComeTo)
{
	const ForeignQueueValues v = hns1825();
	set_word(v.head_word, 0xfffffff0);
	set_word(v.cq_tail_word, 0xfffffff0);
	use(roce(v, Generation::vendor));
	const nda_queue q = imported();
	EXPECT_EQ(q.state.head, 0xfffffff0u);
	EXPECT_EQ(q.state.tail, 0xfffffff0u);
	EXPECT_EQ(q.state.cq_ci, 0xfffffff0u);
	EXPECT_EQ(q.state.next_slot, v.sq + (0xfffffff0u & 1023) * 64);
}

TEST_F(Import, OfAQueueWithRequestsUnderWayIsRefused)
{
	const ForeignQueueValues v = hns1825();
	set_word(v.head_word, 1);
	set_word(v.cq_tail_word, 0xffffffff);
	use(roce(v, Generation::vendor));
	expect_refused(EBUSY, "PE 1: the queue has 2 requests under way");
}

TEST_F(Import, GivesBackTheIndices)
{
	const ForeignQueueValues v = hns1825();
	use(roce(v, Generation::vendor));
	nda_queue q = imported();
	q.state.head = q.state.tail = q.state.cq_ci = 7; // as if a kernel had done 7
	mock.write(
		nda_import_table(import) + table.queues_offset + sizeof(q), &q, sizeof(q));
	EXPECT_EQ(nda_import_release(import), 0) << nda_error_detail();
	import = nullptr;
	EXPECT_EQ(word(v.head_word), 7u);
	EXPECT_EQ(word(v.tail_word), 7u);
	EXPECT_EQ(word(v.cq_tail_word), 7u);
	EXPECT_EQ(word(v.cq_head_word), 0u) << "nobody's";
}

TEST_F(Import, TellsOfAQueueInErrorWhenItIsGivenBack)
{
	use(roce(hns1825(), Generation::vendor));
	nda_queue q = imported();
	q.state.error.status = 10;
	mock.write(
		nda_import_table(import) + table.queues_offset + sizeof(q), &q, sizeof(q));
	EXPECT_EQ(nda_import_release(import), -EIO);
	EXPECT_TRUE(detail_has("and error 10")) << nda_error_detail();
	import = nullptr;
}

TEST_F(Import, IsNotReleasedWhileAKernelRuns)
{
	use(roce(hns1825(), Generation::vendor));
	imported();
	mock.kernel_waits = 1;
	EXPECT_EQ(nda_npu_launch_function(npu, this, nullptr, 0, 1), 0);
	EXPECT_EQ(nda_import_release(import), -EBUSY);
	EXPECT_EQ(nda_npu_wait(npu, -1), 0);
}

TEST_F(Import, OutlivesItsNpusHandle)
{
	use(roce(hns1825(), Generation::vendor));
	nda_npu *other = open();
	nda_import *held = nda_channel_import(other, peers.data(), 2, &attr, sizeof(attr));
	ASSERT_NE(held, nullptr) << nda_error_detail();
	EXPECT_EQ(nda_npu_close(other), 0);
	EXPECT_EQ(nda_import_release(held), 0) << nda_error_detail();
}

// ---- Failures ------------------------------------------------------------------------

TEST_F(Import, FailsWithEachCallAndLeavesNothing)
{
	attr.scratch_addr = heap;
	use(roce(xscale(), Generation::split));
	const size_t before = mock.live();
	for (long n = 1;; n++) {
		mock.fail_call(n);
		import = do_import();
		const bool fired = mock.fired();
		mock.fail_call(0);
		if (!fired) {
			ASSERT_NE(import, nullptr) << nda_error_detail();
			EXPECT_GT(n, 20);
			return;
		}
		// A question whose answer is not needed may fail unseen.
		if (import) {
			EXPECT_EQ(nda_import_release(import), 0) << n;
			import = nullptr;
		}
		EXPECT_EQ(mock.live(), before) << n << ": " << mock.live_text();
	}
}

TEST_F(Import, WithoutAContextIsRefused)
{
	use(roce(hns1825(), Generation::vendor));
	mock.set_current_device(-1);
	expect_refused(ENXIO, "import: npu ascend:0: import: this thread has no current");
	mock.set_current_device(0);
}

} // namespace
} // namespace nda::test
