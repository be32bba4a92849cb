// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The jetties of UDMA, as nda/hw/udma.h describes them. The reader is strict: what the NIC
// may not look at today may be what it looks at tomorrow.
//
// A region's token id is the index of its key, the token value is the key: a key of an
// earlier region with the same id has another value. An EID is the second GID; requests and
// completions have its bytes in reverse.
#ifndef NDA_SOFT_UDMA_MODEL_H
#define NDA_SOFT_UDMA_MODEL_H

#include "providers/soft/queue_format.h"
#include "providers/soft/shared.h"

namespace nda::soft {

class UdmaFormat final : public QueueFormat {
public:
	const QueueLayout &layout() const override;
	void silence(SendQueue &q) const override;
	bool take_doorbell(SendQueue &q, Breach &breach) const override;
	Breach fetch(const SendQueue &q, uint32_t index, Work &work) const override;
	Breach read_consumer(CompletionQueue &cq) const override;
	void complete(const SendQueue &q, const Completion &c) const override;
};

constexpr uint32_t udma_token_id(uint32_t key)
{
	return mr_index(key);
}

// The two halves of an EID or GID, with the 16 bytes in reverse.
inline void udma_hardware_eid(const uint64_t half[2], uint64_t out[2])
{
	out[0] = __builtin_bswap64(half[1]);
	out[1] = __builtin_bswap64(half[0]);
}

} // namespace nda::soft

#endif
