// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What other libraries say of their queues, taken apart. Pure functions on bytes that may
// hold anything; nothing is believed but what these check.
#ifndef NDA_LIB_IMPORT_LAYOUT_H
#define NDA_LIB_IMPORT_LAYOUT_H

#include <cstdint>

#include <nda/import.h>
#include <nda/table.h>

namespace nda {

constexpr uint32_t entity_bytes = 256;
constexpr uint32_t context_bytes = 128; // of an SQ or a CQ
constexpr uint32_t buffer_bytes = 64;
constexpr uint32_t ai_qp_bytes = 368;

// A ChannelEntity that is an AIV channel's with one queue.
struct EntityFields {
	bool ub;
	uint32_t local_buffers, remote_buffers; // numbers of
	uint64_t local_buffer_addr, remote_buffer_addr;
	uint64_t sq_context, cq_context;
};

// A buffer that both sides know.
struct BufferFields {
	uint64_t addr;
	uint64_t size;
	uint32_t keys[2]; // lkey and rkey, or token id and value
};

// A send queue and its completion queue, whatever layout they came in.
struct QueueFields {
	nda_format format;
	nda_import_layout layout;
	uint64_t sq_addr, sq_head_word, sq_tail_word;
	uint64_t sq_doorbell, sq_record; // 0: none
	uint32_t number;                 // QP or jetty
	uint32_t wqe_bytes, sq_depth;
	uint32_t service_level;
	uint64_t cq_addr, cq_tail_word;
	uint64_t cq_doorbell, cq_record; // 0: none
	uint32_t cq_number;
	uint32_t cqe_bytes, cq_depth;
	uint8_t mtu_shift, cos; // 1825
	uint32_t tp_id;         // UDMA
	uint64_t eid[2];        // UDMA, as requests have it
};

// Each returns 0, or -EPROTO or -EOPNOTSUPP with the detail set.
int decode_entity(const uint8_t bytes[entity_bytes], bool check_header, EntityFields &out);
int decode_buffer(const uint8_t bytes[buffer_bytes], bool ub, BufferFields &out);
int decode_roce(const uint8_t sq[context_bytes], const uint8_t cq[context_bytes],
	nda_import_layout layout, nda_format format, QueueFields &out);
int decode_ub(
	const uint8_t sq[context_bytes], const uint8_t cq[context_bytes], QueueFields &out);
int decode_ai_qp(const uint8_t bytes[ai_qp_bytes], QueueFields &out);

} // namespace nda

#endif
