// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/queue_format.h"

#include "providers/soft/engine.h"
#include "providers/soft/words.h"

namespace nda::soft {

void QueueFormat::silence(SendQueue &q) const
{
	store_relaxed<uint64_t>(q.doorbell, 0);
}

Breach consumed(CompletionQueue &cq, uint32_t index, uint32_t bits)
{
	uint32_t mask = static_cast<uint32_t>((uint64_t{1} << bits) - 1);
	uint32_t step = (index - cq.ci) & mask;
	if (step > cq.pi - cq.ci)
		return {"consumer index that went back, or beyond what was completed"};
	cq.ci += step;
	return {};
}

} // namespace nda::soft
