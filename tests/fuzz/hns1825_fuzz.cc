/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Decoding of what the other side wrote: WQEs, doorbells and CQEs of arbitrary bytes.
 * Nothing is lost by decoding, a WQE that passes the strict check is the one the encoder
 * makes of its fields, and a queue survives any CQ: indices stay in order, a status comes
 * out.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <nda/aiv/device.h>
#include <nda/aiv/host_core.h>
#include <tests/mock/hns1825_rig.h>

namespace {

using namespace nda;
namespace format = nda::hw::hns1825;

void require(bool condition)
{
	if (!condition)
		abort();
}

void decode_wqe(const uint8_t *data, uint32_t index, uint32_t depth)
{
	uint64_t in[format::wqe_words], out[format::wqe_words];

	memcpy(in, data, sizeof(in));
	format::wqe w = format::decode(in);
	format::encode(w, out);
	require(memcmp(in, out, sizeof(in)) == 0);
	if (format::check(in, index, depth) != format::wqe_fault::none)
		return;

	format::rdma op = {w.opcode, w.completion != 0, w.fence != 0, w.data_len,
		w.remote_va, w.local_va, w.rkey, w.sge_lkey};
	format::encode(format::rdma_wqe(op, index, depth), out);
	require(memcmp(in, out, sizeof(in)) == 0);
}

void decode_cqe(const uint8_t *data, uint32_t ci)
{
	uint64_t in[format::cqe_words], out[format::cqe_words];

	memcpy(in, data, sizeof(in));
	format::cqe c = format::decode_cqe(in);
	format::encode(c, out);
	require(memcmp(in, out, sizeof(in)) == 0);
	require(format::encode(format::decode_doorbell(in[0])) == in[0]);
	require(format::status_of(c.syndrome) != NDA_OK);
	if (format::cqe_look(in[0], ci, 256) == format::cqe_state::error)
		require(c.op_type == format::cqe_op_error);
}

/* A CQ of the input's bytes under a queue with WQEs outstanding. */
void drain(const uint8_t *data, size_t size, uint32_t start)
{
	test::RigOptions options;
	options.sq_depth = options.cq_depth = 8;
	options.start = start;
	options.timeout_us = 1;
	options.signal_every = start % 4 + 1;
	options.cqe_stride = 32;
	test::Rig rig(options);
	aiv::Device<aiv::HostCore> device;
	nda_queue &q = rig.queue(1);

	require(device.open(aiv::HostCore(), rig.address(), 0) == NDA_OK);
	for (int i = 0; i < 6; i++)
		require(device.put_nbi(1, 0, 0, 8) == NDA_OK);
	memcpy(rig.cq(1), data, size < 8 * 32 ? size : 8 * 32);
	enum nda_status status = device.quiet(1);
	require(status != NDA_OK || q.state.tail == q.state.head);
	require(q.state.head - q.state.tail <= 7);
	/* Six that are believed, and a run that is not. */
	require(q.state.cq_ci - start <= 12);
	require(status == NDA_OK || status == NDA_TIMEOUT ||
		q.state.error.status == uint32_t(status));
	require(q.state.error.status == NDA_OK || device.put_nbi(1, 0, 0, 8) == status);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t index;

	if (size < 4 + format::wqe_bytes)
		return 0;
	memcpy(&index, data, sizeof(index));
	data += sizeof(index);
	size -= sizeof(index);
	decode_wqe(data, index, 256);
	decode_cqe(data, index);
	drain(data, size, index);
	return 0;
}
