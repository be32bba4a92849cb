/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The queue format of the XSCALE NIC, against worked examples made by independent encoders
 * and against recorded bytes. */
#include <stdint.h>
#include <string.h>

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <nda/hw/xscale.h>

namespace {

using namespace nda::hw::xscale;

const uint8_t atomics[] = {op_compare_swap, op_fetch_add, op_masked_compare_swap,
	op_masked_fetch_add, op_masked_compare_swap4, op_masked_fetch_add4};

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

std::string zeros(size_t bytes)
{
	return std::string(bytes * 2, '0');
}

/* The common inputs of the worked examples. */
request example(uint8_t opcode)
{
	request r = {};

	r.opcode = opcode;
	r.signalled = true;
	r.length = atomic_bytes(opcode) ? atomic_bytes(opcode) : 0x1000;
	r.remote_va = 0x1122334455667788;
	r.local_va = 0x99aabbccddeeff00;
	r.rkey = 0xa1b2c3d4;
	r.lkey = 0x15263748;
	return r;
}

struct Words {
	uint64_t w[wqe_words];

	Words(const request &r, uint32_t index) { encode(rdma_wqe(r, index), w); }
	Words(const request &r, const atomic &a, uint32_t index, bool little = false)
	{
		encode(atomic_wqe(r, a, little, index), w);
	}
	explicit Words(const wqe &f) { encode(f, w); }
	wqe_fault check(uint32_t index) const { return nda::hw::xscale::check(w, index); }
	std::string text() const { return hex(w, sizeof(w)); }
};

/* A WRITE of @n pieces of 16 bytes each. */
wqe pieces(uint32_t n, uint8_t opcode = op_write)
{
	request r = example(opcode);

	r.length = n * 16;
	wqe f = rdma_wqe(r, 3);
	f.segments = static_cast<uint8_t>(n + 1);
	for (uint32_t i = 0; i < n && i < max_pieces; i++)
		set_piece(&f, i, {16, 0x10 + i, 0x1000 * (i + uint64_t{1})});
	return f;
}

TEST(XscaleFormat, WriteControlHasTheBytesOfTheWorkedExample)
{
	Words words(example(op_write), 0x20003);

	EXPECT_EQ(hex(words.w, 16), "01100000001000000000000002800100");
}

TEST(XscaleFormat, MaskedCompareSwapControlHasTheBytesOfTheWorkedExample)
{
	Words words(example(op_masked_compare_swap), atomic{}, 7);

	EXPECT_EQ(hex(words.w, 16), "1f200000200000000000000006800300");
}

TEST(XscaleFormat, SegmentsAreRemoteThenLocalAndTheRestIsZero)
{
	Words words(example(op_read), 0);

	EXPECT_EQ(words.text(),
		"02100000001000000000000002000000"
		"00100000d4c3b2a18877665544332211"
		"001000004837261500ffeeddccbbaa99" +
			zeros(80));
}

TEST(XscaleFormat, SendDoorbellHasTheBytesOfTheWorkedExample)
{
	uint64_t value = doorbell_value(doorbell_template(0x1234), 0x20004);

	EXPECT_EQ(hex(&value, sizeof(value)), "2000904602000000");
}

TEST(XscaleFormat, CompletionDoorbellHasTheBytesOfTheWorkedExample)
{
	uint64_t value = cq_doorbell_value(cq_doorbell_template(0x56, cq_fired), 0x20004);

	EXPECT_EQ(hex(&value, sizeof(value)), "0400022b00000000");
	value = cq_doorbell_value(cq_doorbell_template(0x56, cq_keep), 0x20004);
	EXPECT_EQ(hex(&value, sizeof(value)), "0400022b80000000");
}

/* From here on, words are those of recorded vectors, which have 8-byte values big-endian.
 */
TEST(XscaleFormat, OperandsOfMaskedAddAreBigEndian)
{
	atomic a = {};
	a.value = 0xe099341626c91f89;
	a.boundary = ~uint64_t{0};
	Words words(example(op_masked_fetch_add), a, 0);

	EXPECT_EQ(hex(words.w, 8), "2018000010000000");
	EXPECT_EQ(hex(words.w + 6, 80), "e099341626c91f89ffffffffffffffff" + zeros(64));
}

TEST(XscaleFormat, OperandsOfMaskedAddOf4BytesAreBigEndianAndWithoutASecondHalf)
{
	atomic a = {};
	a.value = 0x0f5211e7;
	a.boundary = ~uint64_t{0};
	Words words(example(op_masked_fetch_add4), a, 0);

	EXPECT_EQ(hex(words.w, 8), "2218000008000000");
	EXPECT_EQ(hex(words.w + 6, 80), "0f5211e7ffffffff" + zeros(72));
}

TEST(XscaleFormat, OperandsOfMaskedCompareSwapFillTwoSegments)
{
	atomic a = {};
	a.value = 0xe630a8aba63d0b45;
	a.swap_mask = 0xcf0e25bb77ffab63;
	a.compare = 0x2578c0efa6574744;
	a.compare_mask = 0x1122334455667788;
	Words words(example(op_masked_compare_swap), a, 0);

	EXPECT_EQ(hex(words.w + 6, 80),
		"e630a8aba63d0b452578c0efa6574744"
		"cf0e25bb77ffab631122334455667788" +
			zeros(48));
}

TEST(XscaleFormat, OperandsOfMaskedCompareSwapOf4BytesShareASegment)
{
	atomic a = {};
	a.value = 0xee85fbe3;
	a.compare = 0xf393bc0e;
	a.swap_mask = 0xffffffff;
	a.compare_mask = 0x01020304;
	Words words(example(op_masked_compare_swap4), a, 0);

	EXPECT_EQ(hex(words.w, 8), "2118000010000000");
	EXPECT_EQ(hex(words.w + 6, 80), "ee85fbe3f393bc0effffffff01020304" + zeros(64));
}

TEST(XscaleFormat, OperandsOfPlainFormsAreInTheOrderAskedFor)
{
	atomic a = {};
	a.value = 0xcc512e75d4c0674e;
	a.compare = 0x2578c0efa6574744;

	EXPECT_EQ(hex(Words(example(op_compare_swap), a, 0).w + 6, 80),
		"cc512e75d4c0674e2578c0efa6574744" + zeros(64));
	EXPECT_EQ(hex(Words(example(op_compare_swap), a, 0, true).w + 6, 80),
		"4e67c0d4752e51cc444757a6efc07825" + zeros(64));
	EXPECT_EQ(hex(Words(example(op_fetch_add), a, 0).w, 8), "1b18000010000000");
	EXPECT_EQ(hex(Words(example(op_fetch_add), a, 0).w + 6, 80),
		"cc512e75d4c0674e" + zeros(72));
	EXPECT_EQ(hex(Words(example(op_fetch_add), a, 0, true).w + 6, 80),
		"4e67c0d4752e51cc" + zeros(72));
}

TEST(XscaleFormat, OnlyPlainFormsHaveADoubtfulOrder)
{
	atomic a = {};
	a.value = a.compare = a.boundary = a.swap_mask = a.compare_mask =
		0x0102030405060708;

	for (uint8_t opcode : atomics)
		EXPECT_EQ(Words(example(opcode), a, 0).text() !=
				Words(example(opcode), a, 0, true).text(),
			opcode == op_fetch_add || opcode == op_compare_swap)
			<< int{opcode};
}

TEST(XscaleFormat, AnImmediateHasItsBitAndItsWord)
{
	request r = example(op_write);
	r.with_immediate = true;
	r.immediate = 0x11223344;
	Words words(r, 0);

	EXPECT_EQ(hex(words.w, 16), "01110000001000004433221102000000");
	EXPECT_EQ(words.check(0), wqe_fault::none);
}

TEST(XscaleFormat, AnEmptyImmediateHasNoLocalSegment)
{
	request r = example(op_write);
	r.with_immediate = true;
	r.length = 0;
	Words words(r, 0);

	EXPECT_EQ(words.text(),
		"01090000000000000000000002000000"
		"00000000d4c3b2a18877665544332211" +
			zeros(96));
	EXPECT_EQ(words.check(0), wqe_fault::none);
}

TEST(XscaleFormat, FenceModeAndCompletionHaveTheirBits)
{
	request r = example(op_write);
	r.signalled = false;
	r.fence_mode = 3;

	EXPECT_EQ(Words(r, 0).w[1], uint64_t{3} << 35);
	r.signalled = true;
	r.fence_mode = 0;
	EXPECT_EQ(Words(r, 0).w[1], uint64_t{1} << 33);
}

TEST(XscaleFormat, DecodingLosesNothing)
{
	std::mt19937_64 random(1);

	for (int i = 0; i < 10000; i++) {
		uint64_t in[wqe_words], out[wqe_words];

		for (uint64_t &word : in)
			word = random();
		encode(decode(in), out);
		ASSERT_EQ(hex(in, sizeof(in)), hex(out, sizeof(out)));
		encode(decode_cqe(in), out);
		ASSERT_EQ(hex(in, cqe_bytes), hex(out, cqe_bytes));
		ASSERT_EQ(encode(decode_doorbell(in[0])), in[0]);
		ASSERT_EQ(encode(decode_cq_doorbell(in[0])), in[0]);
	}
}

TEST(XscaleFormat, DecodingOperandsLosesNoneThatTheFormHas)
{
	std::mt19937_64 random(2);

	for (uint8_t opcode : atomics)
		for (bool little : {false, true}) {
			atomic a = {random(), random(), random(), random(), random()};
			uint64_t w[4], again[4];

			encode_atomic(opcode, a, little, w);
			encode_atomic(
				opcode, decode_atomic(opcode, w, little), little, again);
			EXPECT_EQ(hex(w, sizeof(w)), hex(again, sizeof(again)))
				<< int{opcode};
		}
}

TEST(XscaleFormat, PiecesAreReadBackWhereTheyWerePut)
{
	wqe f = decode(Words(pieces(6)).w);

	EXPECT_EQ(pieces_of(f), 6u);
	for (uint32_t i = 0; i < 6; i++) {
		EXPECT_EQ(piece(f, i).length, 16u);
		EXPECT_EQ(piece(f, i).key, 0x10 + i);
		EXPECT_EQ(piece(f, i).va, 0x1000 * (i + uint64_t{1}));
	}
}

TEST(XscaleFormat, PreparedWordsEqualTheEncodersWqe)
{
	for (uint8_t opcode : {op_write, op_read})
		for (bool signalled : {false, true})
			for (uint8_t fence : {0, 2})
				for (uint32_t index :
					{0u, 1u, 0x1ffffu, 0x20003u, 0xfffffffeu}) {
					request r = example(opcode);

					r.signalled = signalled;
					r.fence_mode = fence;
					Words words(r, index);
					EXPECT_EQ(words.w[0],
						control_word(opcode, 2, r.length));
					EXPECT_EQ(words.w[1],
						id_word(index, signalled, fence));
					EXPECT_EQ(
						words.w[2], segment_word(r.length, r.rkey));
					EXPECT_EQ(words.w[3], r.remote_va);
					EXPECT_EQ(
						words.w[4], segment_word(r.length, r.lkey));
					EXPECT_EQ(words.w[5], r.local_va);
				}
}

TEST(XscaleFormat, PreparedWordsOfImmediatesAndAtomicsEqualTheEncodersWqe)
{
	request r = example(op_write);
	r.with_immediate = true;
	r.immediate = 0x80000001;
	EXPECT_EQ(Words(r, 9).w[0], control_word(op_write, 2, 0x1000) | control_immediate);
	EXPECT_EQ(Words(r, 9).w[1], id_word(9, true, 0) | 0x80000001u);

	Words words(example(op_masked_compare_swap), atomic{}, 9);
	EXPECT_EQ(words.w[0], control_word(op_masked_compare_swap, 4, 32));
	EXPECT_EQ(words.w[1], id_word(9, true, 0) | id_inline);
}

TEST(XscaleFormat, TheNextIdWordIsThatOfTheNextIndexAlsoWhereItsFieldWraps)
{
	for (uint32_t index : {0u, 5u, 0x1fffeu, 0x1ffffu, 0x20000u, 0xffffffffu})
		EXPECT_EQ(
			id_word_next(id_word(index, true, 1)), id_word(index + 1, true, 1))
			<< index;
	EXPECT_EQ(bits(id_word(0x1ffff, true, 0), 44, 20), 0xffff8u);
	EXPECT_EQ(bits(id_word(0x20000, true, 0), 44, 20), 0u);
}

TEST(XscaleFormat, TheDoorbellsIndexWrapsAfter262144Wqes)
{
	EXPECT_EQ(decode_doorbell(doorbell_value(0, 0x3ffff)).next_pid, 0x1ffff8u);
	EXPECT_EQ(doorbell_value(doorbell_template(0x1234), 0x40000),
		doorbell_template(0x1234));
	EXPECT_EQ(decode_doorbell(doorbell_template(0xffff)).qp_id, 0xffff);
	EXPECT_EQ(decode_doorbell(doorbell_template(0xffff)).reserved, 0u);
}

TEST(XscaleFormat, TheCompletionDoorbellsIndexHas23Bits)
{
	cq_doorbell f = decode_cq_doorbell(cq_doorbell_value(
		cq_doorbell_template(0xffff, cq_arm_solicited), 0xffffffff));

	EXPECT_EQ(f.next_cid, 0x7fffffu);
	EXPECT_EQ(f.cq_id, 0xffff);
	EXPECT_EQ(f.state, cq_arm_solicited);
	EXPECT_EQ(f.reserved, 0u);
}

TEST(XscaleFormat, NoDoorbellIsIdle)
{
	for (uint32_t head = 0; head < 0x40000; head++)
		ASSERT_NE(doorbell_value(doorbell_template(0), head), doorbell_idle);
}

/* ---- What atomics do ---- */

TEST(XscaleAtomic, AddWithoutBoundaryIsASum)
{
	atomic a = {};
	a.value = 0xffffffffffffffff;

	EXPECT_EQ(atomic_outcome(op_masked_fetch_add, a, 5), 4u);
	EXPECT_EQ(atomic_outcome(op_fetch_add, a, 0), ~uint64_t{0});
}

TEST(XscaleAtomic, AddWithABoundaryEverywhereIsXor)
{
	atomic a = {};
	a.value = 0x0f0f00ff;
	a.boundary = ~uint64_t{0};

	EXPECT_EQ(atomic_outcome(op_masked_fetch_add, a, 0xff00ff00), 0xf00fffffu);
}

/* By the definition: bit by bit, the carry out of a boundary bit is dropped. */
TEST(XscaleAtomic, NoCarryLeavesABoundaryBit)
{
	std::mt19937_64 random(3);

	for (int i = 0; i < 10000; i++) {
		atomic a = {};
		uint64_t former = random(), expected = 0, carry = 0;

		a.value = random();
		a.boundary = random() & random();
		for (int bit = 0; bit < 64; bit++) {
			uint64_t sum = (former >> bit & 1) + (a.value >> bit & 1) + carry;

			expected |= (sum & 1) << bit;
			carry = (a.boundary >> bit & 1) ? 0 : sum >> 1;
		}
		ASSERT_EQ(atomic_outcome(op_masked_fetch_add, a, former), expected);
	}
}

TEST(XscaleAtomic, CompareSwapLooksAndStoresUnderItsMasks)
{
	atomic a = {};
	a.compare = 0x1200;
	a.compare_mask = 0xff00;
	a.value = 0xabcd;
	a.swap_mask = 0x00ff;

	EXPECT_EQ(atomic_outcome(op_masked_compare_swap, a, 0x771234), 0x7712cdu);
	EXPECT_EQ(atomic_outcome(op_masked_compare_swap, a, 0x771334), 0x771334u);
}

TEST(XscaleAtomic, ThePlainFormsAreDecodedAsWhatTheyDo)
{
	uint64_t words[4] = {bswap64(7), bswap64(5), 0, 0};

	EXPECT_EQ(atomic_outcome(
			  op_compare_swap, decode_atomic(op_compare_swap, words, false), 5),
		7u);
	EXPECT_EQ(atomic_outcome(
			  op_compare_swap, decode_atomic(op_compare_swap, words, false), 6),
		6u);
	/* What would be a boundary is ignored. */
	EXPECT_EQ(
		atomic_outcome(op_fetch_add, decode_atomic(op_fetch_add, words, false), 5),
		12u);
}

TEST(XscaleAtomic, AResultOf4BytesIsSwapped)
{
	/* Of the golden vectors: bytes 53 fb b4 9b are the value 0x53fbb49b. */
	const uint8_t bytes[] = {0x53, 0xfb, 0xb4, 0x9b};
	uint32_t raw;

	memcpy(&raw, bytes, sizeof(raw));
	EXPECT_EQ(result4(raw), 0x53fbb49bu);
}

/* ---- check() ---- */

TEST(XscaleCheck, AcceptsWhatTheEncoderMakes)
{
	for (uint32_t index : {0u, 5u, 0x1ffffu, 0x20000u, 0xffffffffu}) {
		for (uint8_t opcode : {op_write, op_read})
			EXPECT_EQ(Words(example(opcode), index).check(index),
				wqe_fault::none);
		for (uint8_t opcode : atomics) {
			atomic a = {1, 2, 3, 4, 5};
			EXPECT_EQ(Words(example(opcode), a, index).check(index),
				wqe_fault::none)
				<< int{opcode};
		}
	}
}

TEST(XscaleCheck, AnEmptyWriteHasNothingWhereALocalSegmentWouldBe)
{
	request r = example(op_write);

	r.with_immediate = true;
	r.length = 0;
	for (uint32_t word = 4; word < wqe_words; word++) {
		Words words(r, 0);

		words.w[word] = 1;
		EXPECT_EQ(words.check(0), wqe_fault::reserved) << word;
	}
}

TEST(XscaleCheck, ObjectsToAnotherIndex)
{
	Words words(example(op_write), 5);

	EXPECT_EQ(words.check(6), wqe_fault::not_valid);
	EXPECT_EQ(words.check(5 + 4096), wqe_fault::not_valid);
}

TEST(XscaleCheck, ObjectsToAnOpcodeThatIsNotUsed)
{
	request r = example(op_send);

	EXPECT_EQ(Words(r, 0).check(0), wqe_fault::opcode);
	r.opcode = 22;
	EXPECT_EQ(Words(r, 0).check(0), wqe_fault::opcode);
}

TEST(XscaleCheck, ObjectsToALengthOutOfRange)
{
	request r = example(op_write);

	r.length = 0;
	EXPECT_EQ(Words(r, 0).check(0), wqe_fault::length);
	r.length = max_length;
	EXPECT_EQ(Words(r, 0).check(0), wqe_fault::none);
	r.length = max_length + 1;
	EXPECT_EQ(Words(r, 0).check(0), wqe_fault::length);
	r = example(op_read);
	r.length = 0; /* invalid on this NIC, whatever it is made of */
	EXPECT_NE(Words(r, 0).check(0), wqe_fault::none);
}

TEST(XscaleCheck, TakesAsManyPiecesAsThereIsRoomForAndOneOfARead)
{
	for (uint32_t n = 1; n <= max_pieces; n++)
		EXPECT_EQ(Words(pieces(n)).check(3), wqe_fault::none) << n;
	EXPECT_EQ(Words(pieces(7)).check(3), wqe_fault::segments);
	EXPECT_EQ(Words(pieces(2, op_read)).check(3), wqe_fault::segments);
}

TEST(XscaleCheck, ObjectsToPiecesThatAreNotTheWhole)
{
	wqe f = pieces(3);

	set_piece(&f, 2, {17, 1, 1});
	EXPECT_EQ(Words(f).check(3), wqe_fault::length);
	set_piece(&f, 2, {0, 1, 1});
	f.length = f.remote.length = 32;
	EXPECT_EQ(Words(f).check(3), wqe_fault::length);
}

TEST(XscaleCheck, ObjectsToAnAtomicOfAnotherShape)
{
	wqe f = atomic_wqe(example(op_masked_fetch_add), atomic{}, false, 0);

	f.length = 8;
	EXPECT_EQ(Words(f).check(0), wqe_fault::length);
	f = atomic_wqe(example(op_masked_fetch_add4), atomic{}, false, 0);
	f.local.length = 8;
	EXPECT_EQ(Words(f).check(0), wqe_fault::length);
	f = atomic_wqe(example(op_masked_compare_swap), atomic{}, false, 0);
	f.segments = 3;
	EXPECT_EQ(Words(f).check(0), wqe_fault::segments);
	f = atomic_wqe(example(op_masked_compare_swap), atomic{}, false, 0);
	f.inline_data = 0;
	EXPECT_EQ(Words(f).check(0), wqe_fault::flags);
}

/* Bytes whose every bit may differ without being wrong, of a WQE of @opcode. */
bool free_byte(uint8_t opcode, int byte)
{
	int operands = opcode == op_masked_compare_swap                    ? 32
		: opcode == op_fetch_add || opcode == op_masked_fetch_add4 ? 8
		: atomic_bytes(opcode) != 0                                ? 16
									   : 0;

	return (byte >= 20 && byte < 32) || (byte >= 36 && byte < 48) ||
		(byte >= 48 && byte < 48 + operands);
}

/* A single bit that is neither an address, a key nor an operand contradicts a constant or
 * another field; fence_mode and the wish for a completion are free. */
TEST(XscaleCheck, ObjectsToAnyOtherSingleBit)
{
	std::vector<uint8_t> opcodes(atomics, atomics + sizeof(atomics));
	opcodes.push_back(op_write);
	opcodes.push_back(op_read);

	for (uint8_t opcode : opcodes)
		for (int bit = 0; bit < 1024; bit++) {
			atomic a = {1, 2, 3, 4, 5};
			Words words = atomic_bytes(opcode) ? Words(example(opcode), a, 1027)
							   : Words(example(opcode), 1027);
			bool free = free_byte(opcode, bit / 8) || bit == 12 * 8 + 1 ||
				bit == 12 * 8 + 3 || bit == 12 * 8 + 4;

			/* Forms of the same shape are told apart by their opcode alone; an
			 * immediate value is a WRITE's to have. */
			if (bit < 8 || (opcode == op_write && bit == 8))
				continue;
			words.w[bit / 64] ^= uint64_t{1} << bit % 64;
			EXPECT_EQ(words.check(1027) == wqe_fault::none, free)
				<< "opcode " << int{opcode} << " byte " << bit / 8
				<< " bit " << bit % 8;
		}
}

/* ---- Completions ---- */

TEST(XscaleCqe, FieldsHaveThePlacesOfTheRecordedError)
{
	/* Of the golden vectors: QPN 0x721b, index 70002 of depth 1024, error 0xa7. */
	const uint8_t bytes[cqe_bytes] = {0xa7, 0x1b, 0x72, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0,
		0, 0, 0, 0x11, 0x11, 0, 0, 2, 0, 0, 0, 1, 0, 0xb9, 0x88, 0, 0, 0, 0};
	uint64_t words[cqe_words];
	memcpy(words, bytes, sizeof(words));
	cqe f = decode_cqe(words);

	EXPECT_EQ(f.error, error_local_mr);
	EXPECT_EQ(f.qp_id, 0x721b);
	EXPECT_EQ(f.length, 0x1000u);
	EXPECT_EQ(f.timestamp, 0x200001111u);
	EXPECT_EQ(f.opcode, op_write);
	EXPECT_EQ(f.wqe_id, wqe_id_of(70002));
	EXPECT_EQ(f.owner, 0);
	EXPECT_EQ(cqe_error(words[0]), error_local_mr);
	EXPECT_EQ(cqe_wqe_index(words[3]), 70002u);
	EXPECT_TRUE(cqe_of_qp(words[0], 0x721b));
	EXPECT_TRUE(cqe_of_qp(words[0], 0xf21b)); /* the field has 15 bits */
	EXPECT_FALSE(cqe_of_qp(words[0], 0x721a));
	EXPECT_TRUE(cqe_ready(words[3], 70002, 1024));
	EXPECT_FALSE(cqe_ready(words[3], 70002 + 1024, 1024));
}

TEST(XscaleCqe, TheFillOfANewRingIsNotReadyInTheFirstLapButZerosAre)
{
	uint64_t word = 0x0101010101010101u * cqe_ring_fill;

	EXPECT_FALSE(cqe_ready(word, 0, 64));
	EXPECT_FALSE(cqe_ready(word, 63, 64));
	EXPECT_TRUE(cqe_ready(0, 0, 64));
	EXPECT_FALSE(cqe_of_qp(0, 0x1234));
}

TEST(XscaleCqe, AWqeIndexHas17Bits)
{
	cqe f = {};
	uint64_t words[cqe_words];

	f.wqe_id = wqe_id_of(0xffffffff);
	encode(f, words);
	EXPECT_EQ(cqe_wqe_index(words[3]), wqe_index_span - 1);
}

TEST(XscaleCqe, EveryErrorHasAStatusAndTheKnownOnesTheirs)
{
	EXPECT_EQ(status_of(0), NDA_OK);
	for (int e = 1; e < 256; e++)
		EXPECT_NE(status_of(static_cast<uint8_t>(e)), NDA_OK) << e;
	EXPECT_EQ(status_of(0x1f), NDA_FLUSHED);
	EXPECT_EQ(status_of(0xff), NDA_FLUSHED);
	EXPECT_EQ(status_of(0x01), NDA_GENERAL_ERROR);
	EXPECT_EQ(status_of(0x80), NDA_LOCAL_QP);
	EXPECT_EQ(status_of(0x84), NDA_LOCAL_QP);
	EXPECT_EQ(status_of(0x85), NDA_GENERAL_ERROR);
	EXPECT_EQ(status_of(0x89), NDA_REMOTE_INVALID);
	EXPECT_EQ(status_of(0x9f), NDA_LOCAL_LENGTH);
	EXPECT_EQ(status_of(0xa0), NDA_BAD_RESPONSE);
	EXPECT_EQ(status_of(0xa1), NDA_GENERAL_ERROR);
	EXPECT_EQ(status_of(0xa2), NDA_RETRY_EXCEEDED);
	EXPECT_EQ(status_of(0xa3), NDA_RNR_RETRY_EXCEEDED);
	EXPECT_EQ(status_of(0xa4), NDA_REMOTE_INVALID);
	EXPECT_EQ(status_of(0xa5), NDA_REMOTE_ACCESS);
	EXPECT_EQ(status_of(0xa6), NDA_REMOTE_OPERATION);
	EXPECT_EQ(status_of(0xa7), NDA_LOCAL_PROTECTION);
	EXPECT_EQ(status_of(0xa8), NDA_BAD_RESPONSE);
	EXPECT_EQ(status_of(0xa9), NDA_GENERAL_ERROR);
	EXPECT_EQ(status_of(0xaa), NDA_BAD_RESPONSE);
	EXPECT_EQ(status_of(0xab), NDA_LOCAL_QP);
	EXPECT_EQ(status_of(0xac), NDA_LOCAL_QP);
	EXPECT_EQ(status_of(0xad), NDA_LOCAL_QP);
	EXPECT_EQ(status_of(0xae), NDA_RETRY_EXCEEDED);
	EXPECT_EQ(status_of(0xbf), NDA_LOCAL_QP);
	EXPECT_EQ(status_of(0xd3), NDA_GENERAL_ERROR);
	EXPECT_EQ(status_of(0xd4), NDA_REMOTE_ACCESS);
	EXPECT_EQ(status_of(0xd5), NDA_REMOTE_ACCESS);
	EXPECT_EQ(status_of(0xd6), NDA_LOCAL_PROTECTION);
	EXPECT_EQ(status_of(0xd7), NDA_REMOTE_ACCESS);
	EXPECT_EQ(status_of(0xd8), NDA_REMOTE_ACCESS);
	EXPECT_EQ(status_of(0xd9), NDA_GENERAL_ERROR);
}

} // namespace
