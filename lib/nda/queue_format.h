// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What a published table says of a queue, by queue format.
#ifndef NDA_LIB_QUEUE_FORMAT_H
#define NDA_LIB_QUEUE_FORMAT_H

#include <ibv_extend.h>
#include <nda/table.h>

namespace nda {

// Where it comes from: the extension driver's objects, and the channel.
struct QueueSource {
	const ibv_qp_extend *qp;
	const ibv_cq_extend *cq;
	uint64_t doorbell; // where the device rings
	uint8_t mtu_shift; // log2(path MTU / 256)
	uint8_t sgid_index;
	uint8_t service_level;
	uint32_t signal_every;
	uint64_t remote_delta;
	uint32_t lkey;
	uint32_t rkey;
};

// Fills in all of queue, with the mutable line of one that was never used. False: what the
// driver gave is unusable; queue shows what it was.
bool describe_queue(nda_format format, const QueueSource &source, nda_queue &queue);

// The mutable line of a described queue whose QP was reset: where its rings have come to.
void resume_queue(nda_format format, nda_queue &queue);

// The byte that a CQ's ring is to be filled with before its QP is connected: its driver
// leaves a ring in NPU memory alone, and zeros would read as successes. -1: the driver has
// done what is to be done.
int cq_fill(nda_format format);

} // namespace nda

#endif
