/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The queue formats of Ascend 910's RoCE NIC, against worked examples made by independent
 * encoders and WQEs recorded from the Linux driver of the NIC's family. */
#include <stdint.h>
#include <string.h>

#include <random>
#include <string>

#include <gtest/gtest.h>

#include <nda/hw/in_die.h>

namespace {

using namespace nda::hw::in_die;

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
request example(uint8_t opcode)
{
	request r = {};

	r.opcode = opcode;
	r.signalled = true;
	r.length = 0x1000;
	r.rkey = 0xa1b2c3d4;
	r.remote_va = 0x1122334455667788;
	r.sges = 1;
	r.data[0] = sge_word(0x1000, 0x15263748);
	r.data[1] = 0x99aabbccddeeff00;
	return r;
}

request atomic(uint8_t opcode)
{
	request r = example(opcode);

	r.length = 8;
	r.data[0] = sge_word(8, 0x15263748);
	r.data[2] = 0x0102030405060708;
	r.data[3] = opcode == op_compare_swap ? 0x1112131415161718 : 0;
	return r;
}

request with_inline(uint8_t opcode, uint32_t length)
{
	request r = example(opcode);

	r.length = length;
	r.inline_data = true;
	r.data[0] = r.data[1] = r.data[2] = r.data[3] = 0;
	return r;
}

struct Words {
	uint64_t w[wqe_words];

	Words(const request &r, uint32_t index, uint32_t depth)
	{
		encode(request_wqe(r, index, depth), w);
	}
	std::string text() const { return hex(w, sizeof(w)); }
	wqe_fault check(uint32_t index, uint32_t depth) const
	{
		return nda::hw::in_die::check(w, index, depth);
	}
};

TEST(InDieFormat, WriteOfLapOneHasTheBytesOfTheWorkedExample)
{
	EXPECT_EQ(Words(example(op_write), 8195, 8192).text(),
		"03010000001000000000000000000001"
		"00000000d4c3b2a18877665544332211"
		"001000004837261500ffeeddccbbaa99"
		"00000000000000000000000000000000");
}

TEST(InDieFormat, ReadOfLapZeroBeginsAsTheWorkedExample)
{
	EXPECT_EQ(Words(example(op_read), 5, 8192).text().substr(0, 8), "85010000");
}

/* in_die_verbs/post/v054 */
TEST(InDieFormat, CompareSwapHasTheRecordedBytes)
{
	request r = {};

	r.opcode = op_compare_swap;
	r.signalled = true;
	r.length = 8;
	r.rkey = 0x8f9832f3;
	r.remote_va = 0xa22d27b95d28;
	r.sges = 1;
	r.data[0] = sge_word(8, 0x15bacb71);
	r.data[1] = 0x410e3f517000;
	r.data[2] = 0x86cde12cd5e9c030;
	r.data[3] = 0x85b8170f35900e06;
	EXPECT_EQ(Words(r, 3405371456, 8192).text(),
		"86010000080000000000000000000001"
		"00000000f332988f285db9272da20000"
		"0800000071cbba150070513f0e410000"
		"30c0e9d52ce1cd86060e90350f17b885");
}

/* in_die_verbs/post/v066 */
TEST(InDieFormat, InlineDataWithAnImmediateHasTheRecordedBytes)
{
	request r = {};

	r.opcode = op_write_immediate;
	r.signalled = true;
	r.inline_data = true;
	r.length = 4;
	r.immediate = 0x11e8a9d5;
	r.rkey = 0x8ccefc85;
	r.remote_va = 0x723c2eebc000;
	r.data[0] = 0xa57d9e56;
	EXPECT_EQ(Words(r, 1959, 1024).text(),
		"0411000004000000d5a9e81100000001"
		"0000000085fcce8c00c0eb2e3c720000"
		"569e7da5000000000000000000000000"
		"00000000000000000000000000000000");
}

/* The first word of in_die_verbs/post/v021. */
TEST(InDieFormat, AFenceIsTheStrongOrderBit)
{
	request r = example(op_write_immediate);

	r.fence = true;
	EXPECT_EQ(Words(r, 0, 1024).text().substr(0, 8), "84050000");
}

/* The first word of in_die_verbs/post/v002. */
TEST(InDieFormat, SolicitedIsItsBit)
{
	request r = example(op_write);

	r.solicited = true;
	EXPECT_EQ(Words(r, 1024, 1024).text().substr(0, 8), "03090000");
}

TEST(InDieFormat, TwoSegmentsFollowEachOther)
{
	request r = example(op_write);

	r.length = 0x1234;
	r.sges = 2;
	r.data[2] = sge_word(0x234, 0x15263748);
	r.data[3] = 0xa1a2a3a4a5a6a7a8;
	EXPECT_EQ(Words(r, 8195, 8192).text(),
		"03010000341200000000000000000002"
		"00000000d4c3b2a18877665544332211"
		"001000004837261500ffeeddccbbaa99"
		"3402000048372615a8a7a6a5a4a3a2a1");
}

/* For depths other than 8192, too, as in the driver's recorded WQEs. */
TEST(InDieFormat, TheOwnerBitIsThatOfTheRingsOwnDepth)
{
	EXPECT_TRUE(owner_bit(0, 64));
	EXPECT_TRUE(owner_bit(63, 64));
	EXPECT_FALSE(owner_bit(64, 64));
	EXPECT_TRUE(owner_bit(2363575435, 64));
	EXPECT_FALSE(owner_bit(1024, 1024));
	EXPECT_TRUE(owner_bit(2048, 1024));
	EXPECT_FALSE(owner_bit(0xffffffff, 8192));
}

TEST(InDieFormat, DoorbellHasTheBytesOfTheWorkedExample)
{
	uint64_t value = doorbell_value(doorbell_template(0x1234, 4), 8196);

	EXPECT_EQ(hex(&value, sizeof(value)), "3412000004200400");
}

/* in_die_verbs/post/v006 */
TEST(InDieFormat, DoorbellAndRecordCarry16BitsOfTheHead)
{
	uint64_t value = doorbell_value(doorbell_template(0xbbca86, 1), 2029685206);
	uint32_t record = sq_record(2029685206);

	EXPECT_EQ(hex(&value, sizeof(value)), "86cabb00d6890100");
	EXPECT_EQ(hex(&record, sizeof(record)), "d6890000");
}

TEST(InDieFormat, ConsumerDoorbellHasTheBytesOfTheWorkedExample)
{
	cq_doorbell_params params;
	params.notify = 1;
	params.cmd_sn = 0;
	uint64_t value = cq_doorbell_value(cq_doorbell_template(0x56, params), 8196);

	EXPECT_EQ(hex(&value, sizeof(value)), "5600000304200001");
}

/* in_die_verbs/poll/v001 and v010 */
TEST(InDieFormat, ConsumerDoorbellIsTheDriversByDefault)
{
	cq_doorbell_params params;
	uint64_t value =
		cq_doorbell_value(cq_doorbell_template(0x4c9e6d, params), 16777215);
	EXPECT_EQ(hex(&value, sizeof(value)), "6d9e4c03ffffff02");

	value = cq_doorbell_value(cq_doorbell_template(0x55a17e, params), 16777218);
	EXPECT_EQ(hex(&value, sizeof(value)), "7ea1550302000002");
}

/* in_die_verbs/poll/v008 */
TEST(InDieFormat, ConsumerRecordIs24Bits)
{
	uint32_t record = cq_record(793582989);

	EXPECT_EQ(hex(&record, sizeof(record)), "8d1d4d00");
}

TEST(InDieFormat, TheIdleValueIsNoSqDoorbell)
{
	for (uint32_t qpn : {0u, 1u, 0xffffffu})
		for (uint8_t sl = 0; sl < 8; sl++)
			for (uint32_t head : {0u, 1u, 0xffffu})
				EXPECT_NE(doorbell_value(doorbell_template(qpn, sl), head),
					doorbell_idle);
}

TEST(InDieFormat, DecodingLosesNothing)
{
	std::mt19937_64 random(1);

	for (int i = 0; i < 10000; i++) {
		uint64_t in[wqe_words], out[wqe_words], cqe_out[cqe_words];

		for (uint64_t &word : in)
			word = random();
		encode(decode(in), out);
		ASSERT_EQ(hex(in, sizeof(in)), hex(out, sizeof(out)));
		encode(decode_cqe(in), cqe_out);
		ASSERT_EQ(hex(in, sizeof(cqe_out)), hex(cqe_out, sizeof(cqe_out)));
		ASSERT_EQ(encode(decode_doorbell(in[0])), in[0]);
		ASSERT_EQ(encode(decode_cq_doorbell(in[0])), in[0]);
	}
}

TEST(InDieFormat, PreparedWordsEqualTheEncodersWqe)
{
	for (uint8_t opcode : {op_write, op_read})
		for (bool signalled : {false, true})
			for (uint32_t index : {0u, 1u, 1023u, 1024u, 0xfffffffeu}) {
				request r = example(opcode);
				uint64_t keys[2];

				r.signalled = signalled;
				key_words(r.rkey, 0x15263748, keys);
				Words words(r, index, 1024);
				EXPECT_EQ(words.w[0],
					control_word(opcode, index, 1024, signalled) |
						uint64_t{r.length} << 32);
				EXPECT_EQ(words.w[1], one_sge);
				EXPECT_EQ(words.w[2], keys[0]);
				EXPECT_EQ(words.w[3], r.remote_va);
				EXPECT_EQ(words.w[4], keys[1] | r.length);
				EXPECT_EQ(words.w[5], r.data[1]);
				EXPECT_EQ(words.w[6], 0u);
				EXPECT_EQ(words.w[7], 0u);
			}
}

/* ---- check() ---- */

TEST(InDieCheck, AcceptsWhatTheEncoderMakes)
{
	for (uint32_t index : {0u, 5u, 1023u, 1024u, 0xffffffffu}) {
		for (uint8_t opcode :
			{op_write, op_write_immediate, op_read, op_send, op_send_immediate})
			EXPECT_EQ(Words(example(opcode), index, 1024).check(index, 1024),
				wqe_fault::none);
		for (uint8_t opcode : {op_compare_swap, op_fetch_add})
			EXPECT_EQ(Words(atomic(opcode), index, 1024).check(index, 1024),
				wqe_fault::none);
		EXPECT_EQ(Words(with_inline(op_write, 32), index, 1024).check(index, 1024),
			wqe_fault::none);
	}
}

TEST(InDieCheck, AcceptsARequestOfNoBytesWithAndWithoutASegment)
{
	request r = example(op_write);

	r.length = 0;
	r.data[0] = sge_word(0, 0x15263748);
	EXPECT_EQ(Words(r, 0, 64).check(0, 64), wqe_fault::none);
	r.sges = 0;
	EXPECT_EQ(Words(r, 0, 64).check(0, 64), wqe_fault::none);
}

TEST(InDieCheck, ObjectsToAnotherLap)
{
	EXPECT_EQ(Words(example(op_write), 5, 1024).check(5 + 1024, 1024),
		wqe_fault::not_valid);
}

TEST(InDieCheck, ObjectsToARingOfZeros)
{
	const uint64_t zeros[wqe_words] = {};

	EXPECT_EQ(check(zeros, 0, 1024), wqe_fault::not_valid);
}

TEST(InDieCheck, ObjectsToTheFieldsOfADirectWqe)
{
	for (int bit : {5, 6, 13, 14, 15, 30, 31}) {
		Words words(example(op_write), 0, 64);

		words.w[0] ^= uint64_t{1} << bit;
		EXPECT_EQ(words.check(0, 64), wqe_fault::direct) << bit;
	}
}

TEST(InDieCheck, ObjectsToOpcodesThatNoRequestHas)
{
	for (uint8_t opcode : {op_masked_compare_swap, op_masked_fetch_add, op_register})
		EXPECT_EQ(Words(example(opcode), 0, 64).check(0, 64), wqe_fault::opcode);
}

TEST(InDieCheck, ObjectsToALengthThatIsNotThatOfTheSegments)
{
	request r = example(op_write);

	r.length++;
	EXPECT_EQ(Words(r, 0, 64).check(0, 64), wqe_fault::length);
	r = example(op_write);
	r.sges = 0;
	EXPECT_EQ(Words(r, 0, 64).check(0, 64), wqe_fault::length);
}

TEST(InDieCheck, ObjectsToALengthAboveTheLimit)
{
	request r = example(op_read);

	r.length = max_length;
	r.data[0] = sge_word(r.length, 1);
	EXPECT_EQ(Words(r, 0, 64).check(0, 64), wqe_fault::none);
	r.length++;
	r.data[0] = sge_word(r.length, 1);
	EXPECT_EQ(Words(r, 0, 64).check(0, 64), wqe_fault::length);
}

/* Two lengths whose sum has more than 32 bits. */
TEST(InDieCheck, ObjectsToSegmentsThatOverflowTheLength)
{
	request r = example(op_write);

	r.sges = 2;
	r.length = 8;
	r.data[0] = sge_word(0xfffffff8, 1);
	r.data[2] = sge_word(16, 1);
	EXPECT_EQ(Words(r, 0, 64).check(0, 64), wqe_fault::length);
}

TEST(InDieCheck, ObjectsToMoreSegmentsThanFit)
{
	request r = example(op_write);

	r.sges = 3;
	EXPECT_EQ(Words(r, 0, 64).check(0, 64), wqe_fault::sge_count);
}

TEST(InDieCheck, ObjectsToInlineDataOfAReadOrTooLongOrElsewhere)
{
	EXPECT_EQ(
		Words(with_inline(op_read, 8), 0, 64).check(0, 64), wqe_fault::inline_data);
	EXPECT_EQ(Words(with_inline(op_write, 33), 0, 64).check(0, 64),
		wqe_fault::inline_data);

	Words words(with_inline(op_write, 8), 0, 64);
	words.w[2] |= uint64_t{1} << 31;
	EXPECT_EQ(words.check(0, 64), wqe_fault::inline_data);
}

TEST(InDieCheck, ObjectsToAnAtomicOfAnotherSizeOrWithTwoSegments)
{
	request r = atomic(op_fetch_add);

	r.length = 4;
	r.data[0] = sge_word(4, 1);
	EXPECT_EQ(Words(r, 0, 64).check(0, 64), wqe_fault::atomic);
	r = atomic(op_compare_swap);
	r.sges = 2;
	EXPECT_EQ(Words(r, 0, 64).check(0, 64), wqe_fault::atomic);
}

/* ---- Completions ---- */

/* The completion of in_die/poll_error/v001, and one made by hand from the layout. */
TEST(InDieCqe, FieldsHaveThePlacesOfTheRecordedError)
{
	const uint8_t bytes[cqe_bytes] = {0x83, 0x02, 0x0b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x6f,
		0x78, 0xa2, 0, 0, 0x10, 0, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0, 0,
		0x70, 0x78, 0xa2, 0};
	uint64_t words[cqe_words];
	memcpy(words, bytes, sizeof(words));
	cqe f = decode_cqe(words);

	EXPECT_EQ(f.opcode, op_write);
	EXPECT_EQ(f.owner, 1);
	EXPECT_EQ(f.status, syndrome_local_qp);
	EXPECT_EQ(f.wqe_index, 11);
	EXPECT_EQ(f.qpn, 0xa2786fu);
	EXPECT_EQ(f.byte_count, 0x1000u);
	EXPECT_EQ(f.source_mac, 0x665544332211u);
	EXPECT_EQ(f.remote_qpn, 0xa27870u);

	uint32_t first = static_cast<uint32_t>(words[0]);
	EXPECT_EQ(cqe_status(first), syndrome_local_qp);
	EXPECT_EQ(cqe_wqe_index(first), 11);
	EXPECT_EQ(cqe_look(first, 11, 8192), cqe_state::error);
	EXPECT_EQ(cqe_look(first, 11 + 8192, 8192), cqe_state::empty);
}

TEST(InDieCqe, FieldsOfTheLayoutsEdgesHaveTheirPlaces)
{
	cqe f = {};
	uint64_t words[cqe_words];

	f.receive = 1;
	f.sub_status = 0xab;
	f.source_mac = 0xffffffffffff;
	f.vlan = 0xfff;
	f.loopback = 1;
	encode(f, words);
	EXPECT_EQ(hex(words, sizeof(words)),
		"4000000000000000"
		"00000000000000ab"
		"00000000ffffffff"
		"fffffc3f00000080");
	EXPECT_EQ(cqe_sub_status(static_cast<uint32_t>(words[1] >> 32)), 0xab);
}

TEST(InDieCqe, ARingOfZerosIsEmptyInItsFirstLap)
{
	EXPECT_EQ(cqe_look(0, 0, 64), cqe_state::empty);
	EXPECT_EQ(cqe_look(0, 63, 64), cqe_state::empty);
}

TEST(InDieCqe, TheLoopsConditionIsCqeLookIsDone)
{
	std::mt19937 random(4);

	for (int i = 0; i < 100000; i++) {
		uint32_t word = static_cast<uint32_t>(random());
		uint32_t ci = static_cast<uint32_t>(random());
		uint32_t owner = owner_bit(ci, 256) ? cqe_owner : 0;

		if (i % 2 == 0)
			word &= ~0xff40u; /* often a success */
		ASSERT_EQ((word & cqe_decisive) == owner,
			cqe_look(word, ci, 256) == cqe_state::done);
	}
}

TEST(InDieCqe, ThatOfAReceiveIsNoSuccessOfASendQueue)
{
	EXPECT_EQ(cqe_look(0x80, 0, 64), cqe_state::done);
	EXPECT_EQ(cqe_look(0xc0, 0, 64), cqe_state::error);
	EXPECT_EQ(cqe_look(0x40, 0, 64), cqe_state::empty);
}

TEST(InDieCqe, CountsTheWqesThatAreDoneInTheRingOrBeyond)
{
	EXPECT_EQ(wqes_done(0, 0, 64), 1u);
	EXPECT_EQ(wqes_done(5, 3, 64), 3u);
	EXPECT_EQ(wqes_done(2, 62, 64), 5u);  /* modulo the depth */
	EXPECT_EQ(wqes_done(66, 62, 64), 5u); /* modulo 2^16 */
	EXPECT_EQ(wqes_done(1, 0xfffffffe, 64), 4u);
	EXPECT_EQ(wqes_done(63, 64, 64), 64u);
}

TEST(InDieCqe, EverySyndromeIsAnErrorAndTheKnownOnesHaveTheirStatus)
{
	for (int s = 0; s < 256; s++)
		EXPECT_NE(status_of(static_cast<uint8_t>(s)), NDA_OK) << s;
	EXPECT_EQ(status_of(0x01), NDA_LOCAL_LENGTH);
	EXPECT_EQ(status_of(0x02), NDA_LOCAL_QP);
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
	EXPECT_EQ(status_of(0x23), NDA_GENERAL_ERROR);
	EXPECT_EQ(status_of(0x24), NDA_GENERAL_ERROR);
}

TEST(InDieCqe, ANicsSyndromeOfAStatusIsReadAsThatStatus)
{
	for (int status = NDA_LOCAL_LENGTH; status <= NDA_GENERAL_ERROR; status++)
		EXPECT_EQ(status_of(syndrome_of(static_cast<nda_status>(status))), status);
}

} // namespace
