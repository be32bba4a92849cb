// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The 1825 NIC's queues, as nda/hw/hns1825.h describes them. The reader is strict: what the
// NIC may not look at today may be what it looks at tomorrow.
#ifndef NDA_SOFT_HNS1825_MODEL_H
#define NDA_SOFT_HNS1825_MODEL_H

#include "providers/soft/queue_format.h"

namespace nda::soft {

class Hns1825Format final : public QueueFormat {
public:
	const QueueLayout &layout() const override;
	uint32_t cq_ring(uint32_t depth) const override;
	bool take_doorbell(SendQueue &q, Breach &breach) const override;
	Breach fetch(const SendQueue &q, uint32_t index, Work &work) const override;
	Breach read_consumer(CompletionQueue &cq) const override;
	void complete(const SendQueue &q, const Completion &c) const override;
};

} // namespace nda::soft

#endif
