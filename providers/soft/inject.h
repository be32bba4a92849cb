// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_SOFT_INJECT_H
#define NDA_SOFT_INJECT_H

#include <atomic>
#include <cstdint>

namespace nda::soft {

// Faults that a NIC makes on purpose: "NAME:NUMBER,...".
struct Faults {
	uint32_t remote_access_every =
		0; // remote-access-error:N, each N-th request of a queue
	uint32_t retry_exceeded_every = 0; // retry-exceeded:N
	uint32_t rnr_every = 0;            // rnr:N, ends in RNR retry exceeded
	uint32_t drop_every = 0;           // drop:N, vanishes until the retries are used up
	uint32_t delay_us = 0; // delay-us:N, each request takes at least so long
	// reorder:N, so many requests of a queue at a time, in any order and in parts in
	// any order as far as the transport lets them; 0: 1
	uint32_t reorder = 0;
	uint32_t seed = 1;          // seed:N, of the choice of the next one
	uint32_t cq_overrun_at = 0; // cq-overrun:N, a CQ fails at its N-th entry
	uint32_t link_down_at = 0;  // link-down:N, the port, at the NIC's N-th request
	uint32_t link_down_us = 0;  // link-down-us:N, the port, so long after opening

	bool link_goes_down() const { return link_down_at || link_down_us; }
};

// The link of a port, which goes down once.
class Link {
public:
	explicit Link(const Faults &faults);

	void count_request();
	bool down();
	// True once, when it is down.
	bool take_event() { return down() && !told_.exchange(true); }

private:
	const uint64_t down_at_;    // request; 0: none
	const uint64_t down_at_ns_; // 0: never
	std::atomic<uint64_t> requests_{0};
	std::atomic<bool> is_down_{false};
	std::atomic<bool> told_{false};
};

// -EINVAL with the bad part named in the detail; nullptr and "" are no faults.
int parse_faults(const char *text, Faults &faults);

} // namespace nda::soft

#endif
