/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Other libraries' descriptions of queues, of arbitrary bytes: whatever is accepted has one
 * of the known layouts and values that its doorbell has room for.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/nda/import_layout.h"

namespace {

using namespace nda;

void require(bool condition)
{
	if (!condition)
		abort();
}

void roce(const uint8_t *sq, const uint8_t *cq, uint8_t choice)
{
	const auto layout = static_cast<nda_import_layout>(choice & 3);
	const auto format = static_cast<nda_format>(choice >> 2 & 7);
	QueueFields q = {};
	if (decode_roce(sq, cq, layout, format, q))
		return;
	require(q.format == NDA_FORMAT_HNS1825 || q.format == NDA_FORMAT_XSCALE);
	require(format == NDA_FORMAT_NONE || format == q.format);
	require(q.layout != NDA_IMPORT_LAYOUT_AUTO);
	require(layout == NDA_IMPORT_LAYOUT_AUTO || layout == q.layout);
	require(q.number != 0 && q.sq_depth != 0 && q.service_level <= 7);
	require(q.mtu_shift <= 4 && q.cos <= 7);
	require(q.wqe_bytes == (q.format == NDA_FORMAT_XSCALE ? 128u : 64u));
}

void ub(const uint8_t *sq, const uint8_t *cq)
{
	QueueFields q = {};
	if (decode_ub(sq, cq, q))
		return;
	require(q.format == NDA_FORMAT_UDMA && q.wqe_bytes == 64 && q.tp_id >> 24 == 0);
	require(q.eid[0] != 0 || q.eid[1] != 0);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t bytes[ai_qp_bytes + 1] = {}; // the longest, and what is asked for
	memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
	EntityFields e = {};
	if (decode_entity(bytes, (bytes[ai_qp_bytes] & 0x80) == 0, e) == 0)
		require(e.local_buffers <= 1024 && e.remote_buffers <= 1024);
	BufferFields b = {};
	if (decode_buffer(bytes, (bytes[ai_qp_bytes] & 0x80) != 0, b) == 0)
		require(b.addr != 0 && b.size != 0 && b.addr + b.size >= b.addr);
	roce(bytes, bytes + context_bytes, bytes[ai_qp_bytes]);
	ub(bytes, bytes + context_bytes);
	QueueFields q = {};
	if (decode_ai_qp(bytes, q) == 0)
		require(q.wqe_bytes == 64 && (q.cq_doorbell == 0 || q.cq_record == 0));
	return 0;
}
