// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Starts tests/mock/soft_peer.cc and talks to it.
#ifndef NDA_TESTS_SOFT_PROCESS_H
#define NDA_TESTS_SOFT_PROCESS_H

#include <string>
#include <sys/types.h>
#include <vector>

namespace nda::soft_test {

class PeerProcess {
public:
	PeerProcess();
	~PeerProcess();
	PeerProcess(const PeerProcess &) = delete;

	// Its answer to a line, without the newline; "" at its end or after a deadline.
	std::string ask(const std::string &line);
	void kill(int signal);
	// Waits for its end. True if it came in time.
	bool reap();
	pid_t pid() const { return pid_; }

private:
	pid_t pid_ = -1;
	int to_ = -1;
	int from_ = -1;
	std::string pending_;
};

// The blank-separated parts of a line.
std::vector<std::string> split(const std::string &line);
std::string hex(const void *data, size_t count);

} // namespace nda::soft_test

#endif
