/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The queue format of UDMA, against worked examples made by independent encoders and bytes
 * recorded from running code. */
#include <stdint.h>
#include <string.h>

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <nda/hw/udma.h>

namespace {

using namespace nda::hw::udma;

constexpr sqe_rules rules = {true, max_inline_write};
constexpr uint32_t depth = 64;

std::string hex(const void *data, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	std::string text;

	for (size_t i = 0; i < size; i++) {
		text += digits[static_cast<const uint8_t *>(data)[i] >> 4];
		text += digits[static_cast<const uint8_t *>(data)[i] & 15];
	}
	return text;
}

/* An SQE in the making: zeros but for what the test puts there. */
struct Sqe {
	uint64_t w[max_words] = {};

	explicit Sqe(const control &f) { encode(f, w); }
	Sqe &sge_at(uint32_t word, uint32_t length, uint64_t va, uint32_t token_id = 0)
	{
		w[word] = sge_word(length, token_id);
		w[word + 1] = va;
		return *this;
	}
	sqe_fault check(uint32_t index = 0, const sqe_rules &r = rules) const
	{
		return nda::hw::udma::check(w, index, depth, r);
	}
};

/* The common inputs of the worked examples. */
control example(uint8_t op)
{
	static const uint8_t eid[16] = {
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	control f = {};

	f.completion = 1;
	f.token_en = 1;
	f.jetty_type = jetty_type_jetty;
	f.owner = 1;
	f.opcode = op;
	f.tp_id = 0x123456;
	f.sge_count = 1;
	f.token_id = 0xabcde;
	memcpy(f.eid, eid, sizeof(eid));
	f.token_value = 0xcafef00d;
	f.remote_va = 0x1122334455667788;
	return f;
}

Sqe plain(uint8_t op)
{
	return Sqe(example(op)).sge_at(6, 0x1000, 0x99aabbccddeeff00);
}

Sqe notified(uint32_t length = 0x1000)
{
	Sqe sqe(example(op_write_notify));

	sqe.w[6] = notify_word(0xabcde, 0xcafef00d);
	sqe.w[7] = 0x2000000010;
	sqe.w[8] = 0x4000000030;
	return sqe.sge_at(10, length, 0x99aabbccddeeff00);
}

Sqe swap(uint32_t size)
{
	return Sqe(example(op_compare_swap)).sge_at(6, size, 0x1000);
}

TEST(UdmaFormat, WriteWithNotifyHasTheBytesOfTheWorkedExample)
{
	EXPECT_EQ(hex(notified().w, 96),
		"000020b000050000"
		"56341201debc0a00"
		"000102030405060708090a0b0c0d0e0f"
		"0df0feca00000000"
		"8877665544332211"
		"debc0a000df0feca"
		"1000000020000000"
		"3000000040000000"
		"0000000000000000"
		"0010000000000000"
		"00ffeeddccbbaa99");
}

TEST(UdmaFormat, ReduceHasTheBytesOfTheWorkedExample)
{
	control f = example(op_write);
	f.owner = 0;
	f.token_en = 1;
	f.udf = 1;
	f.reduce_op = reduce_add;
	f.reduce_type = reduce_float32;
	Sqe sqe(f);

	EXPECT_EQ(hex(sqe.w, 8), "0000a03000030000");
	EXPECT_EQ(hex(reinterpret_cast<const uint8_t *>(sqe.w) + 36, 4), "00a70000");
}

TEST(UdmaFormat, ReadHasTheRecordedBytes)
{
	control f = {};
	uint8_t eid[16] = {0xfe, 0x1b, 0x44, 0x3e, 0xa7, 0xae, 0xb6, 0x67, 0xd9, 0x5c, 0x74,
		0x9a, 0x89, 0xe9, 0x4b, 0xaa};
	f.completion = 1;
	f.token_en = 1;
	f.jetty_type = 1;
	f.owner = 1;
	f.target_hint = 169;
	f.opcode = op_read;
	f.tp_id = 0x3e2094;
	f.sge_count = 1;
	f.token_id = 0x329bd;
	memcpy(f.eid, eid, sizeof(eid));
	f.token_value = 0x15b36e8f;
	f.remote_va = 0xebcde09715ab7b28;

	EXPECT_EQ(hex(Sqe(f).sge_at(6, 4096, 0x12317902994a).w, bb_bytes),
		"000020b0a906000094203e01bd290300fe1b443ea7aeb667d95c749a89e94baa"
		"8f6eb31500000000287bab1597e0cdeb00100000000000004a99027931120000");
}

TEST(UdmaFormat, CompletionWordHasTheBytesOfTheWorkedExample)
{
	cqe f = {};
	uint64_t w[cqe_words];

	f.is_jetty = 1;
	f.owner = 1;
	f.substatus = 2;
	f.status = 3;
	encode(f, w);
	EXPECT_EQ(hex(w, 4), "06000203");
}

TEST(UdmaFormat, RecordedCompletionHasItsFields)
{
	const uint32_t in[16] = {0x00000032, 0x1ca5fff9, 0x0000000f, 0x00389bf8, 0x1000};
	uint64_t w[cqe_words];
	memcpy(w, in, sizeof(w));
	cqe f = decode_cqe(w);

	EXPECT_EQ(f.is_jetty, 1);
	EXPECT_EQ(f.opcode, 3);
	EXPECT_EQ(f.entry_index, 0xfff9);
	EXPECT_EQ(f.local_id, 0xf1ca5u);
	EXPECT_EQ(f.tp_id, 0x389bf8u);
	EXPECT_EQ(f.byte_count, 0x1000u);
}

TEST(UdmaFormat, DecodingControlLosesNothing)
{
	std::mt19937_64 random(1);

	for (int i = 0; i < 10000; i++) {
		uint64_t in[control_words], out[control_words];

		for (uint64_t &word : in)
			word = random();
		encode(decode(in), out);
		ASSERT_EQ(hex(in, sizeof(in)), hex(out, sizeof(out)));
	}
}

TEST(UdmaFormat, DecodingACqeLosesNothing)
{
	std::mt19937_64 random(2);

	for (int i = 0; i < 10000; i++) {
		uint64_t in[cqe_words], out[cqe_words];

		for (uint64_t &word : in)
			word = random();
		encode(decode_cqe(in), out);
		ASSERT_EQ(hex(in, sizeof(in)), hex(out, sizeof(out)));
	}
}

TEST(UdmaFormat, PreparedWordsEqualTheEncoders)
{
	for (uint8_t op : {op_write, op_read, op_write_notify, op_fetch_add})
		for (uint8_t order = 0; order < 16; order++) {
			control f = example(op);
			f.place_order = order & 3;
			f.comp_order = order >> 2 & 1;
			f.fence = order >> 3;
			f.target_hint = 0xa9;
			f.jetty_type = 2;
			f.udf = 1;
			f.reduce_op = reduce_min;
			f.reduce_type = 3;
			Sqe sqe(f);

			EXPECT_EQ(sqe.w[0],
				word0_as(op,
					template_word(true, 2, 0xa9) | order_bits(order) |
						word0_completion | word0_owner | word0_udf |
						opcode_bits(op_write)));
			EXPECT_EQ(sqe.w[1], target_word(0x123456, 0xabcde, 1));
			EXPECT_EQ(sqe.w[4], 0xcafef00d | reduce_bits(reduce_min, 3));
		}
	control f = example(op_write);
	f.inline_data = 1;
	f.inline_length = 208;
	f.sge_count = 0;
	Sqe sqe(f);
	EXPECT_EQ(sqe.w[0],
		template_word(true, 1, 0) | word0_completion | word0_owner |
			opcode_bits(op_write) | inline_bits(208));
	EXPECT_EQ(sqe.w[1], target_word_as(target_word(0x123456, 5, 1), 0xabcde, 0));
}

TEST(UdmaFormat, TheOwnerBitIsSetInTheFirstLap)
{
	EXPECT_TRUE(owner_bit(0, 64));
	EXPECT_TRUE(owner_bit(63, 64));
	EXPECT_FALSE(owner_bit(64, 64));
	EXPECT_TRUE(owner_bit(128, 64));
	EXPECT_FALSE(owner_bit(0xffffffff, 64));
}

/* The sources' own formulas: (ctl + 16 * (n - 1)) / 64 + 1 and (ctl + len - 1) / 64 + 1. */
TEST(UdmaFormat, BlocksAreCountedAsTheSourcesDo)
{
	const struct {
		uint8_t op;
		uint32_t ctl;
	} cases[] = {{op_write, 48}, {op_write_immediate, 64}, {op_write_notify, 80}};

	for (const auto &c : cases) {
		for (uint32_t n = 1; n <= max_sges(c.op); n++)
			EXPECT_EQ(bbs_of_sges(c.op, n), (c.ctl + 16 * (n - 1)) / 64 + 1)
				<< n;
		for (uint32_t n = 1; n <= max_inline(c.op, 1000); n++)
			EXPECT_EQ(bbs_of_inline(c.op, n), (c.ctl + n - 1) / 64 + 1) << n;
		EXPECT_EQ(bbs_of_inline(c.op, max_inline(c.op, 1000)), max_bbs);
		EXPECT_LE(bbs_of_sges(c.op, max_sges(c.op)), max_bbs);
	}
	EXPECT_EQ(bbs_of_sges(op_write, 1), 1u);
	EXPECT_EQ(bbs_of_sges(op_write_immediate, 1), 2u);
	EXPECT_EQ(bbs_of_sges(op_write_immediate, 0), 1u);
	EXPECT_EQ(bbs_of_sges(op_write_notify, 1), 2u);
	EXPECT_EQ(bbs_of(example(op_fetch_add)), 2u);
	EXPECT_EQ(bbs_of(example(op_compare_swap)), 2u);
}

TEST(UdmaFormat, AQueueMayLimitInlineDataFurther)
{
	EXPECT_EQ(max_inline(op_write, 64), 64u);
	EXPECT_EQ(max_inline(op_write_notify, 1000), 176u);
	EXPECT_EQ(max_inline(op_write_immediate, 1000), 192u);
	EXPECT_EQ(max_inline(op_write, 1000), 208u);
	EXPECT_EQ(max_inline_write, 208u);
}

TEST(UdmaFormat, EntriesAreAsManyAsTheSourcesAllow)
{
	EXPECT_EQ(max_sges(op_read), 6u);
	EXPECT_EQ(max_sges(op_write_notify), 11u);
	EXPECT_EQ(max_sges(op_write_immediate), 12u);
}

TEST(UdmaFormat, WhatASenderMakesPassesTheCheck)
{
	EXPECT_EQ(plain(op_write).check(), sqe_fault::none);
	EXPECT_EQ(plain(op_read).check(), sqe_fault::none);
	EXPECT_EQ(notified().check(), sqe_fault::none);
	EXPECT_EQ(notified(0).check(), sqe_fault::none);
	for (uint32_t size : {4, 8, 16}) {
		Sqe sqe = swap(size);
		for (uint32_t i = 0; i < 2 * size; i++)
			reinterpret_cast<uint8_t *>(sqe.w)[64 + i] = 0xff;
		EXPECT_EQ(sqe.check(), sqe_fault::none) << size;
	}
	control nop = example(op_nop);
	nop.sge_count = 0;
	EXPECT_EQ(Sqe(nop).check(), sqe_fault::none);
}

TEST(UdmaFormat, TheCheckSeesAWrongOwnerBit)
{
	Sqe sqe = plain(op_write);

	EXPECT_EQ(sqe.check(depth), sqe_fault::owner);
	EXPECT_EQ(sqe.check(0, {false, 0}), sqe_fault::owner);
	sqe.w[0] &= ~word0_owner;
	EXPECT_EQ(sqe.check(depth), sqe_fault::none);
	EXPECT_EQ(sqe.check(0, {false, 0}), sqe_fault::none);
}

TEST(UdmaFormat, TheCheckSeesEveryReservedBit)
{
	/* Word and bit that must be 0 in a WRITE with one entry. */
	struct bit {
		uint32_t word, first, last;
	};
	const bit reserved[] = {{0, 0, 15}, {0, 20, 20}, {0, 24, 27}, {0, 48, 63},
		{1, 52, 63}, {4, 32, 63}, {6, 52, 63}};

	for (const bit &r : reserved)
		for (uint32_t i = r.first; i <= r.last; i++) {
			Sqe sqe = plain(op_write);
			sqe.w[r.word] |= uint64_t{1} << i;
			EXPECT_NE(sqe.check(), sqe_fault::none) << r.word << ": " << i;
		}
}

TEST(UdmaFormat, TheCheckSeesReservedBitsOfANotifyContext)
{
	for (uint32_t i = 20; i < 32; i++) {
		Sqe sqe = notified();
		sqe.w[6] |= uint64_t{1} << i;
		EXPECT_EQ(sqe.check(), sqe_fault::reserved) << i;
	}
	Sqe sqe = notified();
	sqe.w[9] = 1;
	EXPECT_EQ(sqe.check(), sqe_fault::reserved);
}

TEST(UdmaFormat, TheCheckSeesStaleBytesBehindTheLastField)
{
	for (uint32_t at = 96; at < 128; at++) {
		Sqe sqe = notified();
		reinterpret_cast<uint8_t *>(sqe.w)[at] = 1;
		EXPECT_EQ(sqe.check(), sqe_fault::stale) << at;
	}
	for (uint32_t size : {4u, 8u, 16u})
		for (uint32_t at = 64 + 2 * size; at < 128; at++) {
			Sqe sqe = swap(size);
			reinterpret_cast<uint8_t *>(sqe.w)[at] = 1;
			EXPECT_EQ(sqe.check(), sqe_fault::stale) << size << ": " << at;
		}
	for (uint32_t length : {1u, 8u, 15u, 17u, 80u}) {
		control f = example(op_write);
		f.inline_data = 1;
		f.inline_length = static_cast<uint16_t>(length);
		f.sge_count = 0;
		for (uint32_t at = 48 + length; at < bbs_of(f) * bb_bytes; at++) {
			Sqe sqe(f);
			reinterpret_cast<uint8_t *>(sqe.w)[at] = 1;
			EXPECT_EQ(sqe.check(), sqe_fault::stale) << length << ": " << at;
		}
	}
}

TEST(UdmaFormat, TheCheckSeesLengthsThatCannotBe)
{
	Sqe fetch(example(op_fetch_add));

	EXPECT_EQ(Sqe(example(op_write)).check(), sqe_fault::length);
	EXPECT_EQ(plain(op_write).sge_at(6, max_length + 1, 0).check(), sqe_fault::length);
	EXPECT_EQ(plain(op_write).sge_at(6, max_length, 0).check(), sqe_fault::none);
	for (uint32_t size : {1u, 2u, 7u, 16u, 32u})
		EXPECT_EQ(fetch.sge_at(6, size, 0).check(), sqe_fault::length) << size;
	EXPECT_EQ(swap(32).check(), sqe_fault::length);
	control f = example(op_write);
	f.inline_data = 1;
	f.inline_length = 65;
	f.sge_count = 0;
	EXPECT_EQ(Sqe(f).check(0, {true, 64}), sqe_fault::length);
	EXPECT_EQ(Sqe(f).check(0, {true, 65}), sqe_fault::none);
}

TEST(UdmaFormat, TheCheckSeesTooManyEntries)
{
	for (uint8_t op : {op_write, op_read, op_write_notify}) {
		control f = example(op);

		f.sge_count = static_cast<uint8_t>(max_sges(op) + 1);
		EXPECT_EQ(check_control(f, 0, depth, rules), sqe_fault::sge_count);
		f.sge_count--;
		EXPECT_EQ(check_control(f, 0, depth, rules), sqe_fault::none);
		f.sge_count = 0;
		EXPECT_EQ(check_control(f, 0, depth, rules), sqe_fault::sge_count);
	}
}

TEST(UdmaFormat, TheCheckSeesFlagsThatCannotBe)
{
	control read = example(op_read), fetch = example(op_fetch_add),
		order = example(op_write), reduce = example(op_write);

	read.inline_data = 1;
	fetch.udf = 1;
	order.place_order = 3;
	reduce.udf = 1;
	EXPECT_EQ(check_control(read, 0, depth, rules), sqe_fault::flags);
	EXPECT_EQ(check_control(fetch, 0, depth, rules), sqe_fault::flags);
	EXPECT_EQ(check_control(order, 0, depth, rules), sqe_fault::flags);
	EXPECT_EQ(check_control(reduce, 0, depth, rules), sqe_fault::reduce);
	reduce.reduce_op = reduce_add;
	EXPECT_EQ(check_control(reduce, 0, depth, rules), sqe_fault::none);
	EXPECT_EQ(check_control(example(8), 0, depth, rules), sqe_fault::opcode);
	EXPECT_EQ(check_control(example(op_send), 0, depth, rules), sqe_fault::opcode);
}

TEST(UdmaFormat, NoBytesMakeTheCheckReadBeyondFourBlocks)
{
	std::mt19937_64 random(3);

	for (int i = 0; i < 200000; i++) {
		uint64_t w[control_words];
		for (uint64_t &word : w)
			word = random();
		control f = decode(w);
		f.opcode &= 0xf;
		f.sge_count &= 0x1f;
		if (check_control(f, 0, depth, {owner_bit(0, depth) && f.owner, 1000}) ==
			sqe_fault::none) {
			ASSERT_GE(bbs_of(f), 1u);
			ASSERT_LE(bbs_of(f), max_bbs);
		}
	}
}

TEST(UdmaFormat, OperandsComeInTheirSize)
{
	Sqe sqe = swap(4);

	sqe.w[8] = 0x1122334455667788;
	sqe.w[9] = 0x99aabbccddeeff00;
	EXPECT_EQ(operand(sqe.w, 0, 4), 0x55667788u);
	EXPECT_EQ(operand(sqe.w, 4, 4), 0x11223344u);
	EXPECT_EQ(operand(sqe.w, 0, 8), 0x1122334455667788u);
	EXPECT_EQ(operand(sqe.w, 8, 8), 0x99aabbccddeeff00u);
}

TEST(UdmaFormat, ACompletionIsReadyByTheLapsOwnerBit)
{
	EXPECT_TRUE(cqe_ready(4, 0, 64));
	EXPECT_FALSE(cqe_ready(0, 0, 64));
	EXPECT_TRUE(cqe_ready(0, 64, 64));
	EXPECT_FALSE(cqe_ready(4, 64, 64));
	EXPECT_TRUE(cqe_ready(0, 0xffffffff, 64));
}

TEST(UdmaFormat, ASuccessIsOfTheSendSideWithNoStatusAndNoSubstatus)
{
	for (uint32_t bit = 0; bit < 64; bit++) {
		bool matters = (bit >= 16 && bit < 32) || bit == 7 || bit == 0;
		EXPECT_EQ(cqe_good(uint64_t{1} << bit), !matters) << bit;
	}
}

TEST(UdmaFormat, AnEntryIndexNamesABlockOfTheRing)
{
	EXPECT_EQ(bbs_done(5, 5, 64), 1u);
	EXPECT_EQ(bbs_done(4, 5, 64), 64u);
	/* A free-running index of 16 bits and one that goes round the ring are the same. */
	EXPECT_EQ(bbs_done(0x0001, 0xffffffff, 32768), 3u);
	EXPECT_EQ(bbs_done(0x8001, 0xffff7fff, 32768), 3u);
	EXPECT_EQ(bbs_done(1, 0xffff7fff, 32768), 3u);
}

TEST(UdmaFormat, TheConsumerRecordHasTheMasksWidth)
{
	EXPECT_EQ(cq_record(0x401234, ci_mask_22), 0x1234u);
	EXPECT_EQ(cq_record(0x1401234, ci_mask_24), 0x401234u);
	EXPECT_EQ(cq_record(0x3fffff, ci_mask_22), 0x3fffffu);
}

TEST(UdmaFormat, EveryErrorHasAStatus)
{
	for (uint32_t s = 0; s < 256; s++)
		for (uint32_t sub = 0; sub < 256; sub++)
			EXPECT_NE(status_of(static_cast<uint8_t>(s),
					  static_cast<uint8_t>(sub)),
				NDA_OK);
	EXPECT_EQ(status_of(0, 2), NDA_GENERAL_ERROR);
	EXPECT_EQ(status_of(1, 0), NDA_LOCAL_QP);
	EXPECT_EQ(status_of(2, 1), NDA_LOCAL_LENGTH);
	EXPECT_EQ(status_of(2, 2), NDA_LOCAL_PROTECTION);
	EXPECT_EQ(status_of(2, 3), NDA_BAD_RESPONSE);
	EXPECT_EQ(status_of(2, 4), NDA_LOCAL_QP);
	EXPECT_EQ(status_of(3, 1), NDA_REMOTE_INVALID);
	EXPECT_EQ(status_of(3, 2), NDA_REMOTE_ACCESS);
	EXPECT_EQ(status_of(3, 4), NDA_REMOTE_OPERATION);
	EXPECT_EQ(status_of(4, 0), NDA_RNR_RETRY_EXCEEDED);
	EXPECT_EQ(status_of(5, 0), NDA_RETRY_EXCEEDED);
	EXPECT_EQ(status_of(6, 0), NDA_FLUSHED);
	EXPECT_EQ(status_of(7, 0), NDA_GENERAL_ERROR);
}

} // namespace
