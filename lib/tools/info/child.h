// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Work whose end is not certain, since it runs what others wrote: done in a process of its
// own, which may crash or hang.
#ifndef NDA_INFO_CHILD_H
#define NDA_INFO_CHILD_H

#include <functional>
#include <string>
#include <vector>

namespace nda::info {

constexpr int child_limit_ms = 10000;

struct ChildResult {
	std::vector<std::string> lines; // what it told
	std::string said;               // what came on its standard error
	bool done = false;              // it came to the end of its work
	bool timed_out = false;
	std::string end; // not done: "was killed by signal 11 (Segmentation fault)"
};

using Tell = std::function<void(const std::string &line)>;

// Runs work in a child and waits for it. Its standard output goes nowhere. The caller must
// have no threads.
ChildResult in_child(
	const std::function<void(const Tell &)> &work, int limit_ms = child_limit_ms);

} // namespace nda::info

#endif
