// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What a published table says of a queue, by queue format.
#ifndef NDA_LIB_QUEUE_FORMAT_H
#define NDA_LIB_QUEUE_FORMAT_H

#include <ibv_extend.h>
#include <nda/table.h>

#include "lib/nda/import_layout.h"
#include "lib/nda/nic.h"

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

// The same of a URMA jetty.
struct JettySource {
	Jetty::Queues queues;
	uint64_t eid[2]; // the peer's, as requests have it
	uint32_t tp_id;
	uint32_t signal_every;
	uint64_t remote_delta;
	Keys keys;
};

// And of a queue that another library has made; a completion for each WQE.
struct ForeignQueue {
	const QueueFields *fields;
	uint64_t remote_delta;
	uint32_t lkey;
	uint32_t rkey;
	uint32_t rkey_id;
	uint16_t max_inline;
	uint64_t scratch_local, scratch_remote; // or 0
};

// Fills in all of queue, with the mutable line of one that was never used. False: what the
// driver gave is unusable; queue shows what it was.
bool describe_queue(nda_format format, const QueueSource &source, nda_queue &queue);
bool describe_jetty(const JettySource &source, nda_queue &queue);

// The same, scratch and all, with the mutable line of a queue that has done index WQEs.
bool describe_foreign_queue(const ForeignQueue &foreign, uint32_t index, nda_queue &queue);

// The mutable line of a described queue whose QP was reset: where its rings have come to.
void resume_queue(nda_format format, nda_queue &queue);

// The byte that a CQ's ring is to be filled with before its QP is connected: its driver
// leaves a ring in NPU memory alone, and zeros would read as successes. -1: the driver has
// done what is to be done.
int cq_fill(nda_format format);

} // namespace nda

#endif
