// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_SOFT_INJECT_H
#define NDA_SOFT_INJECT_H

#include <cstdint>

namespace nda::soft {

// Faults that a NIC makes on purpose: "NAME:NUMBER,...".
struct Faults {
	uint32_t remote_access_every =
		0; // remote-access-error:N, each N-th request of a queue
	uint32_t retry_exceeded_every = 0; // retry-exceeded:N
	uint32_t drop_every = 0;           // drop:N, vanishes until the retries are used up
	uint32_t delay_us = 0; // delay-us:N, each request takes at least so long
};

// -EINVAL with the bad part named in the detail; nullptr and "" are no faults.
int parse_faults(const char *text, Faults &faults);

} // namespace nda::soft

#endif
