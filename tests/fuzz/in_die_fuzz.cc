/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Decoding of what the other side wrote, on Ascend 910's RoCE NIC: WQEs, doorbells and CQEs
 * of arbitrary bytes. Nothing is lost by decoding, a WQE that passes the check is the one
 * the encoder makes of its fields, but for those that the check leaves alone, and a queue
 * survives any CQ: indices stay in order, a status comes out.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <nda/aiv/device.h>
#include <nda/aiv/host_core.h>
#include <nda/aiv/in_die_queue.h>
#include <tests/mock/in_die_rig.h>

namespace {

using namespace nda;
namespace format = nda::hw::in_die;

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

	format::request r = {};
	r.opcode = w.opcode;
	r.signalled = w.completion != 0;
	r.fence = w.strong_order != 0;
	r.solicited = w.solicited != 0;
	r.inline_data = w.inline_data != 0;
	r.length = w.length;
	r.immediate = w.immediate;
	r.rkey = w.rkey;
	r.remote_va = w.remote_va;
	r.sges = w.sges;
	memcpy(r.data, w.data, sizeof(r.data));
	format::wqe made = format::request_wqe(r, index, depth);
	made.fence = w.fence;
	made.xrc_srqn = w.xrc_srqn;
	made.extended_sge = w.extended_sge;
	made.reduce = w.reduce;
	if (w.inline_data)
		made.sges = w.sges;
	else
		made.inline_type = w.inline_type;
	format::encode(made, out);
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
	require(format::encode(format::decode_cq_doorbell(in[0])) == in[0]);
	require(format::status_of(c.status) != NDA_OK);

	uint32_t first = static_cast<uint32_t>(in[0]);
	format::cqe_state state = format::cqe_look(first, ci, 256);
	require(state == format::cqe_state::empty ||
		(state == format::cqe_state::error) == (c.status != 0 || c.receive != 0));
	uint32_t done = format::wqes_done(format::cqe_wqe_index(first), ci, 256);
	require(done >= 1 && done <= 256);
}

/* A CQ of the input's bytes under a queue with WQEs outstanding. */
void drain(const uint8_t *data, size_t size, uint32_t start)
{
	test::InDieOptions options;
	options.sq_depth = options.cq_depth = 8;
	options.start = start;
	options.timeout_us = 1;
	options.signal_every = start % 4 + 1;
	options.cq_register = start % 3 != 0;
	test::InDieRig rig(options);
	aiv::Device<aiv::HostCore, aiv::in_die::Engine> device;
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
