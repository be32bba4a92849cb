/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Decoding of what the other side wrote: WQEs, doorbells and CQEs of arbitrary bytes.
 * Nothing is lost by decoding, a WQE of one piece or an atomic that passes the strict check
 * is the one the encoder makes of its fields, and a queue survives any CQ: indices stay in
 * order, a status comes out.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <nda/aiv/device.h>
#include <nda/aiv/host_core.h>
#include <nda/aiv/xscale_queue.h>
#include <tests/mock/xscale_rig.h>

namespace {

using namespace nda;
namespace x = nda::hw::xscale;

void require(bool condition)
{
	if (!condition)
		abort();
}

void decode_wqe(const uint8_t *data, uint32_t index)
{
	uint64_t in[x::wqe_words], out[x::wqe_words];

	memcpy(in, data, sizeof(in));
	x::wqe w = x::decode(in);
	x::encode(w, out);
	require(memcmp(in, out, sizeof(in)) == 0);
	if (x::check(in, index) != x::wqe_fault::none)
		return;

	require(x::pieces_of(w) <= x::max_pieces);
	x::request r = {w.opcode, w.completion != 0, w.fence_mode, w.immediate != 0, w.data,
		w.remote.length, w.remote.va, w.local.va, w.remote.key, w.local.key};
	if (x::atomic_bytes(w.opcode)) {
		x::atomic a = x::decode_atomic(w.opcode, w.more, false);

		x::encode(x::atomic_wqe(r, a, false, index), out);
	} else if (x::pieces_of(w) <= 1) {
		x::encode(x::rdma_wqe(r, index), out);
	} else {
		return;
	}
	require(memcmp(in, out, sizeof(in)) == 0);
}

void decode_cqe(const uint8_t *data)
{
	uint64_t in[x::cqe_words], out[x::cqe_words];

	memcpy(in, data, sizeof(in));
	x::cqe c = x::decode_cqe(in);
	x::encode(c, out);
	require(memcmp(in, out, sizeof(in)) == 0);
	require(x::encode(x::decode_doorbell(in[0])) == in[0]);
	require(x::encode(x::decode_cq_doorbell(in[0])) == in[0]);
	require((x::status_of(c.error) == NDA_OK) == (c.error == 0));
	require(x::cqe_wqe_index(in[3]) < x::wqe_index_span);
	require(x::cqe_ready(in[3], 0, 256) != x::cqe_ready(in[3], 256, 256));
}

/* A CQ of the input's bytes under a queue with WQEs outstanding. */
void drain(const uint8_t *data, size_t size, uint32_t start)
{
	test::XscaleOptions options;
	options.sq_depth = options.cq_depth = 8;
	options.start = start;
	options.timeout_us = 1;
	options.signal_every = start % 4 + 1;
	options.cqe_stride = 32;
	test::XscaleRig rig(options);
	aiv::Device<aiv::HostCore, aiv::xscale::Engine> device;
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

	if (size < 4 + x::wqe_bytes)
		return 0;
	memcpy(&index, data, sizeof(index));
	data += sizeof(index);
	size -= sizeof(index);
	decode_wqe(data, index);
	decode_cqe(data);
	drain(data, size, index);
	return 0;
}
