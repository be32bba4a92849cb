/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The queue format of the 1825, against worked examples made by independent encoders. */
#include <stdint.h>
#include <string.h>

#include <random>
#include <string>

#include <gtest/gtest.h>

#include <nda/hw/hns1825.h>

namespace {

using namespace nda::hw::hns1825;

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

/* The common inputs of the worked examples. */
rdma example(uint8_t opcode)
{
	rdma op = {};

	op.opcode = opcode;
	op.signalled = true;
	op.length = 0x1000;
	op.remote_va = 0x1122334455667788;
	op.local_va = 0x99aabbccddeeff00;
	op.rkey = 0xa1b2c3d4;
	op.lkey = 0x15263748;
	return op;
}

struct Words {
	uint64_t w[wqe_words];

	Words(const rdma &op, uint32_t index, uint32_t depth)
	{
		encode(rdma_wqe(op, index, depth), w);
	}
	wqe_fault check(uint32_t index, uint32_t depth) const
	{
		return nda::hw::hns1825::check(w, index, depth);
	}
};

TEST(Hns1825Format, ReadOfLapOneHasTheBytesOfTheWorkedExample)
{
	Words words(example(op_read), 1027, 1024);

	EXPECT_EQ(hex(words.w, sizeof(words.w)),
		"c0a43002100000000000000000000000"
		"28000000000010000000000000000004"
		"1122334455667788a1b2c3d400003748"
		"99aabbccddeeff000000100095263748");
}

TEST(Hns1825Format, DoorbellHasTheBytesOfTheWorkedExample)
{
	doorbell_params params;
	params.mtu_shift = 4;
	params.sgid_index = 1;
	params.cos = 7;
	params.cntx_size = 1;
	uint64_t value = doorbell_value(doorbell_template(0x1234, params), 1028);

	EXPECT_EQ(hex(&value, sizeof(value)), "341210af04003000");
}

TEST(Hns1825Format, DoorbellParametersGoToTheirBits)
{
	doorbell_params params;
	params.mtu_shift = 7;
	params.sgid_index = 0x7f;
	params.cos = 0;
	params.cntx_size = 2;

	EXPECT_EQ(doorbell_template(0xfffff, params), 0x0ffc0000a82fffffu);
}

TEST(Hns1825Format, SendRecordHasTheBytesOfTheWorkedExample)
{
	uint32_t record = sq_record(1028);

	EXPECT_EQ(hex(&record, sizeof(record)), "00000404");
	EXPECT_EQ(sq_record_head(record), 1028u);
}

TEST(Hns1825Format, ConsumerRecordIsBigEndianOf24Bits)
{
	uint32_t record = cq_record(0xff001002);

	EXPECT_EQ(hex(&record, sizeof(record)), "00001002");
	EXPECT_EQ(cq_record_ci(record), 0x1002u);
}

TEST(Hns1825Format, DecodingAWqeLosesNothing)
{
	std::mt19937_64 random(1);

	for (int i = 0; i < 10000; i++) {
		uint64_t in[wqe_words], out[wqe_words];

		for (uint64_t &word : in)
			word = random();
		encode(decode(in), out);
		ASSERT_EQ(hex(in, sizeof(in)), hex(out, sizeof(out)));
	}
}

TEST(Hns1825Format, DecodingACqeLosesNothing)
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

TEST(Hns1825Format, DecodingADoorbellLosesNothing)
{
	std::mt19937_64 random(3);

	for (int i = 0; i < 10000; i++) {
		uint64_t value = random();

		ASSERT_EQ(encode(decode_doorbell(value)), value);
	}
}

TEST(Hns1825Format, PreparedWordsEqualTheEncodersWqe)
{
	for (uint8_t opcode : {op_write, op_read})
		for (bool signalled : {false, true})
			for (bool fence : {false, true})
				for (uint32_t index : {0u, 1u, 1022u, 1027u, 0xfffffffeu}) {
					rdma op = example(opcode);
					uint64_t keys[2], length = bswap64(op.length);

					op.signalled = signalled;
					op.fence = fence;
					key_words(op.rkey, op.lkey, keys);
					Words words(op, index, 1024);
					EXPECT_EQ(words.w[0],
						control_word(index, 1024, signalled));
					EXPECT_EQ(words.w[1], 0u);
					EXPECT_EQ(words.w[2],
						task_word(length,
							task_bits(
								opcode, signalled, fence)));
					EXPECT_EQ(words.w[3], command_word(opcode));
					EXPECT_EQ(words.w[4], bswap64(op.remote_va));
					EXPECT_EQ(words.w[5], keys[0]);
					EXPECT_EQ(words.w[6], bswap64(op.local_va));
					EXPECT_EQ(words.w[7], gather_word(length, keys[1]));
				}
}

TEST(Hns1825Format, TheNextControlWordIsThatOfTheNextIndexOfTheLap)
{
	for (uint32_t index = 1024; index < 2047; index++)
		ASSERT_EQ(control_word_next(control_word(index, 1024, true)),
			control_word(index + 1, 1024, true))
			<< index;
}

TEST(Hns1825Format, TaskBitsOfAReadComeFromThoseOfAWrite)
{
	EXPECT_EQ(task_bits_as(op_read, task_bits(op_write, true, true)),
		task_bits(op_read, true, true));
	EXPECT_EQ(task_bits_as(op_write, task_bits(op_write, true, false)),
		task_bits(op_write, true, false));
}

TEST(Hns1825Format, AnInvalidMarkerIsNeverAValidWqe)
{
	for (uint32_t index : {0u, 63u, 64u, 127u, 0xffffffffu}) {
		EXPECT_FALSE(wqe_valid(invalid_marker(index, 64), index, 64));
		EXPECT_TRUE(wqe_valid(
			static_cast<uint8_t>(control_word(index, 64, true)), index, 64));
		EXPECT_FALSE(
			wqe_valid(static_cast<uint8_t>(control_word(index - 64, 64, true)),
				index, 64));
	}
	EXPECT_EQ(invalid_marker(0, 64), 0xff);
	EXPECT_EQ(invalid_marker(64, 64), 0x7f);
}

TEST(Hns1825Format, LkeysAboveThirtyBitsDoNotFit)
{
	EXPECT_TRUE(lkey_fits(0x3fffffff));
	EXPECT_FALSE(lkey_fits(0x40000000));
	EXPECT_FALSE(lkey_fits(0x80000000));
}

/* ---- check() ---- */

TEST(Hns1825Check, AcceptsWhatTheEncoderMakes)
{
	for (uint8_t opcode : {op_write, op_read})
		for (bool flag : {false, true})
			for (uint32_t index : {0u, 5u, 1023u, 1024u, 0xffffffffu}) {
				rdma op = example(opcode);

				op.signalled = flag;
				op.fence = !flag;
				EXPECT_EQ(Words(op, index, 1024).check(index, 1024),
					wqe_fault::none);
			}
}

TEST(Hns1825Check, ObjectsToAnotherLap)
{
	Words words(example(op_write), 5, 1024);

	EXPECT_EQ(words.check(5 + 1024, 1024), wqe_fault::not_valid);
}

TEST(Hns1825Check, ObjectsToAnotherIndexOfTheLap)
{
	Words words(example(op_write), 5, 1024);

	EXPECT_EQ(words.check(6, 1024), wqe_fault::msn);
}

TEST(Hns1825Check, ObjectsToALengthOutOfRange)
{
	rdma op = example(op_write);

	op.length = 0;
	EXPECT_EQ(Words(op, 0, 64).check(0, 64), wqe_fault::length);
	op.length = max_length;
	EXPECT_EQ(Words(op, 0, 64).check(0, 64), wqe_fault::none);
	op.length = max_length + 1;
	EXPECT_EQ(Words(op, 0, 64).check(0, 64), wqe_fault::length);
}

TEST(Hns1825Check, ObjectsToAnOpcodeThatIsNeitherWriteNorRead)
{
	rdma op = example(0x05);

	EXPECT_EQ(Words(op, 0, 64).check(0, 64), wqe_fault::opcode);
}

/* Of a posted WQE, exactly these bits may differ without being wrong: addresses, rkey, and
 * fence; a single other bit contradicts a constant or another field. */
TEST(Hns1825Check, ObjectsToAnyOtherSingleBit)
{
	for (uint8_t opcode : {op_write, op_read})
		for (int bit = 0; bit < 512; bit++) {
			Words words(example(opcode), 1027, 1024);
			int byte = bit / 8;
			bool free = (byte >= 32 && byte < 44) ||
				(byte >= 48 && byte < 56) ||
				bit == 16 * 8 + 6 || /* fence */
				(byte == 60 && bit % 8 < 6) ||
				byte == 61; /* lkey above 16 */

			words.w[bit / 64] ^= uint64_t{1} << bit % 64;
			EXPECT_EQ(words.check(1027, 1024) == wqe_fault::none, free)
				<< "byte " << byte << " bit " << bit % 8;
		}
}

TEST(Hns1825Check, ObjectsToCompletionAndSignalBitsThatDiffer)
{
	Words words(example(op_write), 0, 64);

	words.w[0] ^= control_signalled;
	EXPECT_EQ(words.check(0, 64), wqe_fault::completion);
}

/* ---- Completions ---- */

TEST(Hns1825Cqe, FieldsHaveThePlacesOfTheRecordedError)
{
	/* Of the golden vectors: QPN 0xae26f, lap 1, an error with syndrome 5, WQE 0x1002.
	 */
	const uint8_t bytes[cqe_bytes] = {0x6f, 0xe2, 0x0a, 0xa0, 1, 0, 0, 0xf0, 0, 0x10, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 2, 0x10};
	uint64_t words[cqe_words];
	memcpy(words, bytes, sizeof(words));
	cqe f = decode_cqe(words);

	EXPECT_EQ(f.qpn, 0xae26fu);
	EXPECT_EQ(f.owner, 1);
	EXPECT_EQ(f.cqe_size, 1);
	EXPECT_EQ(f.op_type, cqe_op_error);
	EXPECT_EQ(f.wqebb_count, 1u);
	EXPECT_EQ(f.byte_count, 0x1000u);
	EXPECT_EQ(f.syndrome, 5);
	EXPECT_EQ(f.vendor, 0);
	EXPECT_EQ(f.wqe_counter, 0x1002);
	EXPECT_EQ(cqe_syndrome(words[3]), 5);
	EXPECT_EQ(cqe_wqe_counter(words[3]), 0x1002);
	EXPECT_EQ(cqe_look(words[0], 4096, 4096), cqe_state::error);
	EXPECT_EQ(cqe_look(words[0], 0, 4096), cqe_state::empty);
}

TEST(Hns1825Cqe, TheFillOfANewRingIsEmptyInEveryLap)
{
	uint64_t word = 0x0101010101010101u * cqe_ring_fill;

	EXPECT_EQ(cqe_look(word, 0, 64), cqe_state::empty);
	EXPECT_EQ(cqe_look(word, 64, 64), cqe_state::empty);
}

TEST(Hns1825Cqe, TheLoopsConditionIsCqeLookIsDone)
{
	std::mt19937_64 random(4);

	for (int i = 0; i < 100000; i++) {
		uint64_t word = random();
		uint32_t ci = static_cast<uint32_t>(random());
		bool owner = (word >> 31 & 1) != 0;

		if (i % 4 == 0)
			word |= uint64_t{0xf} << 60; /* often an error or empty */
		ASSERT_EQ(word < cqe_special && owner == owner_bit(ci, 256),
			cqe_look(word, ci, 256) == cqe_state::done);
	}
}

TEST(Hns1825Cqe, EverySyndromeIsAnErrorAndTheKnownOnesHaveTheirStatus)
{
	for (int s = 0; s < 256; s++)
		EXPECT_NE(status_of(static_cast<uint8_t>(s)), NDA_OK) << s;
	EXPECT_EQ(status_of(0), NDA_GENERAL_ERROR);
	EXPECT_EQ(status_of(0x01), NDA_LOCAL_LENGTH);
	EXPECT_EQ(status_of(0x02), NDA_LOCAL_QP);
	EXPECT_EQ(status_of(0x03), NDA_GENERAL_ERROR);
	EXPECT_EQ(status_of(0x04), NDA_LOCAL_PROTECTION);
	EXPECT_EQ(status_of(0x05), NDA_FLUSHED);
	EXPECT_EQ(status_of(0x06), NDA_GENERAL_ERROR);
	EXPECT_EQ(status_of(0x10), NDA_BAD_RESPONSE);
	EXPECT_EQ(status_of(0x11), NDA_LOCAL_ACCESS);
	EXPECT_EQ(status_of(0x12), NDA_REMOTE_INVALID);
	EXPECT_EQ(status_of(0x13), NDA_REMOTE_ACCESS);
	EXPECT_EQ(status_of(0x14), NDA_REMOTE_OPERATION);
	EXPECT_EQ(status_of(0x15), NDA_RETRY_EXCEEDED);
	EXPECT_EQ(status_of(0x16), NDA_RNR_RETRY_EXCEEDED);
	EXPECT_EQ(status_of(0x22), NDA_REMOTE_ABORTED);
	EXPECT_EQ(status_of(0xff), NDA_GENERAL_ERROR);
}

TEST(Hns1825Cqe, TheRingIsTheDepthOrTheDepthAnd1024)
{
	EXPECT_EQ(cq_ring(1024), 1024u); /* both are possible: the depth */
	EXPECT_EQ(cq_ring(4096), 4096u);
	EXPECT_EQ(cq_ring(3072), 4096u);
	EXPECT_EQ(cq_ring(7168), 8192u);
	EXPECT_EQ(cq_ring(3000), 0u);
	EXPECT_EQ(cq_ring(0), 0u);
	EXPECT_EQ(cq_ring(0xfffffc00), 0u);
}

} // namespace
