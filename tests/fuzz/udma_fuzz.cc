/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Decoding of what the other side wrote: SQEs and completions of arbitrary bytes. Nothing
 * is lost by decoding, an SQE that passes the strict check has nothing beyond its fields
 * and no more blocks than there may be, and a queue survives any CQ: indices stay in order,
 * a status comes out.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <nda/aiv/device.h>
#include <nda/aiv/host_core.h>
#include <nda/aiv/udma_queue.h>
#include <nda/hw/udma.h>
#include <tests/mock/udma_rig.h>

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
		(c.status == 0 && c.substatus == 0 && c.flush_done == 0 && c.receive == 0));
	require(format::cqe_entry_index(in[0]) == c.entry_index);
	uint32_t done = format::bbs_done(c.entry_index, ci, 256);
	require(done >= 1 && done <= 256);
}

/* A CQ of the input's bytes under a queue with requests outstanding. */
void drain(const uint8_t *data, size_t size, uint32_t start)
{
	constexpr uint32_t depth = 8;
	nda::test::UdmaOptions options;
	options.sq_depth = options.cq_depth = depth;
	options.start = start;
	options.timeout_us = 1;
	options.signal_every = start % 4 + 1;
	nda::test::UdmaRig rig(options);
	nda::aiv::Device<nda::aiv::HostCore, nda::aiv::udma::Engine> device;
	nda_queue &q = rig.queue(1);

	require(device.open(nda::aiv::HostCore(), rig.address(), 0) == NDA_OK);
	for (int i = 0; i < 6; i++)
		require(device.put_nbi(1, 0, 0, 8) == NDA_OK);
	memcpy(rig.cq(1), data, size < depth * 64 ? size : depth * 64);
	enum nda_status status = device.quiet(1);
	require(status != NDA_OK || q.state.tail == q.state.head);
	require(q.state.head - q.state.tail <= depth);
	/* Six that are believed, and a run that is not. */
	require(q.state.cq_ci - start <= 12);
	require(status == NDA_OK || status == NDA_TIMEOUT ||
		q.state.error.status == uint32_t(status));
	require(q.state.error.status == NDA_OK || device.put_nbi(1, 0, 0, 8) == status);
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
	size -= 8;
	decode_sqe(data, index, inline_most);
	decode_cqe(data, index);
	drain(data, size, index);
	return 0;
}
