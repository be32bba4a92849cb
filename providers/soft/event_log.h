// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What a NIC is asked for and what it answers, as lines of JSON in a file, see nda_soft.h.
#ifndef NDA_SOFT_EVENT_LOG_H
#define NDA_SOFT_EVENT_LOG_H

#include "providers/soft/queue_format.h"
#include "providers/soft/resource.h"

#include <atomic>
#include <memory>
#include <string>

namespace nda::soft {

// Engines of several NPUs may write at a time: a line is one write to a file that is
// appended to.
class EventLog {
public:
	// Appends to the file, which is made if need be.
	static int open(const char *path, std::unique_ptr<EventLog> &log);
	void set_nic(const char *name) { nic_ = name; }

	void request(const SendQueue &q, uint32_t index, const Work &work);
	void completion(const SendQueue &q, const Completion &c);
	void received(const SendQueue &q, const Received &r);
	void breach(const SendQueue &q, uint32_t index, const Breach &b);
	// The first write that failed, a negative errno with the detail set; 0 if none did.
	int result() const;

private:
	class Line;
	void write(Line &line);

	std::string path_, nic_;
	Fd fd_;
	std::atomic<int> error_{0}; // nothing is written after one
};

} // namespace nda::soft

#endif
