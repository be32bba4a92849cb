// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Starts the PEs of a job as processes and stays until all have ended. Each PE inherits two
// descriptors: a ticket to read the job's secret from, and a pipe for the lines it reports.
// The secret is on no command line and in no environment.
#ifndef NDA_PERF_JOB_H
#define NDA_PERF_JOB_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace nda::perf {

// What a started PE reads from its ticket.
struct Ticket {
	uint8_t secret[32];
	uint32_t n_pes;
	uint16_t port;     // where PE 0 listens
	int32_t listen_fd; // PE 0's listening socket; -1 for others
	int32_t report_fd;
};

struct JobPlan {
	uint32_t n_pes = 0;
	// Of a job of two machines: which PEs are started here, where PE 0 listens, and the
	// secret. Otherwise all are, on a free port of loopback, with a secret of their
	// own.
	uint32_t first_pe = 0;
	uint32_t local_pes = 0; // 0: all
	std::string address;
	uint16_t port = 0;
	const uint8_t *secret = nullptr;
	// Run for PE i as: program --job-pe=i --job-fd=FD arguments...
	std::string program;
	std::vector<std::string> arguments;
	// Once a PE has failed, the others have this long to end by themselves.
	int grace_ms = 500;
	// When no PE reports anything for this long, the job is stuck and is ended.
	int silence_ms = 60000;
};

struct JobCallbacks {
	std::function<void(uint32_t pe, const std::string &line)> line;
	// With the status of wait(). Not called for PEs that the parent itself ended.
	std::function<void(uint32_t pe, int wait_status)> end;
	// The job as a whole failed: "object: cause".
	std::function<void(const std::string &message)> failure;
};

// Must be called while the process has a single thread. Returns when every PE is gone: 0,
// or the signal (SIGINT, SIGTERM, SIGHUP) that asked this process to end.
int run_job(const JobPlan &plan, const JobCallbacks &callbacks);

// Reads the ticket of a started PE and closes fd. False, with errno: it is none.
bool read_ticket(int fd, Ticket *ticket);

} // namespace nda::perf

#endif
