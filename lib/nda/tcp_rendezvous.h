// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// How the processes of a job find PE 0 and each proves to the other, without sending it,
// that it knows the job's secret. This keeps out other jobs, and other users of the machine
// where the address is loopback; it is no protection of the data that follows against
// somebody who can read or change the network's packets.
#ifndef NDA_LIB_TCP_RENDEZVOUS_H
#define NDA_LIB_TCP_RENDEZVOUS_H

#include <cstdint>
#include <vector>

#include "lib/nda/deadline.h"
#include "lib/nda/tcp_link.h"

namespace nda {

struct Rendezvous {
	uint32_t pe;
	uint32_t n_pes;
	const char *address;
	uint16_t port;
	int listen_fd; // PE 0: used if above 0, never closed here
	const uint8_t *secret;
};

// PE 0: fills links[1..n_pes-1] as PEs arrive; on failure those that had arrived are in it.
// Connections that are not of this job are dropped and change nothing.
int accept_peers(const Rendezvous &r, const Deadline &deadline, std::vector<Link> &links);

// The others: connects to PE 0, trying again until the deadline where nobody listens yet.
int connect_to_root(const Rendezvous &r, const Deadline &deadline, Link &link);

// Waits for events. 0, -ETIMEDOUT or another negative errno; interruptions are ridden out.
int poll_fd(int fd, short events, const Deadline &deadline);

} // namespace nda

#endif
