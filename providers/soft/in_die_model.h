// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The queues of Ascend 910's RoCE NIC, as nda/hw/in_die.h describes them. The reader is
// strict: what the NIC may not look at today may be what it looks at tomorrow.
#ifndef NDA_SOFT_IN_DIE_MODEL_H
#define NDA_SOFT_IN_DIE_MODEL_H

#include "providers/soft/queue_format.h"

namespace nda::soft {

class InDieFormat final : public QueueFormat {
public:
	const QueueLayout &layout() const override;
	void silence(SendQueue &q) const override;
	bool take_doorbell(SendQueue &q, Breach &breach) const override;
	Breach fetch(const SendQueue &q, uint32_t index, Work &work) const override;
	void silence(CompletionQueue &cq) const override;
	Breach read_consumer(CompletionQueue &cq) const override;
	void complete(const SendQueue &q, const Completion &c) const override;
	void complete_receive(const CompletionQueue &cq, const Received &r) const override;
};

} // namespace nda::soft

#endif
