/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Decoding of what the other side wrote: SQEs and completions of arbitrary bytes. Nothing
 * is lost by decoding, an SQE that passes the strict check has nothing beyond its fields
 * and no more blocks than there may be.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <nda/hw/udma.h>

namespace {

namespace format = nda::hw::udma;

void require(bool condition)
{
	if (!condition)
		abort();
}

void decode_sqe(const uint8_t *data, uint32_t index, uint32_t inline_most)
{
	uint64_t in[format::max_words], out[format::control_words];
	format::sqe_rules rules = {(index & 1) == 0, inline_most};

	memcpy(in, data, sizeof(in));
	format::control f = format::decode(in);
	format::encode(f, out);
	require(memcmp(in, out, sizeof(out)) == 0);
	if (format::check(in, index, 256, rules) != format::sqe_fault::none)
		return;

	uint32_t bbs = format::bbs_of(f);
	require(bbs >= 1 && bbs <= format::max_bbs);
	require(format::total_length(f, in) <= format::max_length);
	if (f.inline_data)
		require(f.inline_length <= inline_most);
	format::sge s = format::decode_sge(in + format::control_words);
	require(format::token_id_fits(s.token_id));
	require(format::token_id_fits(f.token_id));
}

void decode_cqe(const uint8_t *data, uint32_t ci)
{
	uint64_t in[format::cqe_words], out[format::cqe_words];

	memcpy(in, data, sizeof(in));
	format::cqe c = format::decode_cqe(in);
	format::encode(c, out);
	require(memcmp(in, out, sizeof(in)) == 0);
	require(format::status_of(c.status, c.substatus) != NDA_OK);
	require(format::cqe_ready(in[0], ci, 256) == (c.owner == ((ci & 256) == 0)));
	require(format::cqe_good(in[0]) ==
		(c.status == 0 && c.substatus == 0 && c.flush_done == 0));
	require(format::cqe_entry_index(in[0]) == c.entry_index);
	uint32_t done = format::bbs_done(c.entry_index, ci, 256);
	require(done >= 1 && done <= 256);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t index, inline_most;

	if (size < 8 + format::max_words * 8)
		return 0;
	memcpy(&index, data, sizeof(index));
	memcpy(&inline_most, data + 4, sizeof(inline_most));
	data += 8;
	decode_sqe(data, index, inline_most);
	decode_cqe(data, index);
	return 0;
}
