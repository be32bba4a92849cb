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
	bool take_doorbell(SendQueue &q, Breach &breach) const override;
	Breach fetch(const SendQueue &q, Work &work) const override;
	bool complete(SendQueue &q, enum nda_status status, uint8_t vendor) const override;
};

} // namespace nda::soft

#endif
