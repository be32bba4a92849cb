// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Steps of a group that succeed or fail together: whoever fails says why, and all hear it.
#ifndef NDA_LIB_EXCHANGE_H
#define NDA_LIB_EXCHANGE_H

#include <cstddef>
#include <cstdint>

#include <nda/bootstrap.h>

namespace nda {

// How a step went on one PE; travels with what the step exchanges.
struct StepReport {
	int32_t code;   // 0 or a negative errno
	char text[764]; // long enough for the story of a registration
};

// The report of a step that gave code in this thread.
StepReport make_report(int code);

class Exchange {
public:
	explicit Exchange(const nda_bootstrap &b) : b_(b) {}

	uint32_t pe() const { return b_.pe; }
	uint32_t n_pes() const { return b_.n_pes; }
	const uint8_t *session() const { return b_.session; }

	int allgather(const void *in, void *out, size_t size) const;
	int barrier() const;

	// 0 if all succeeded, else the code and text of the first PE that did not. reports:
	// n_pes of them, stride bytes apart.
	int verdict(const void *reports, size_t stride) const;
	// Exchanges reports alone.
	int agree(int code) const;

private:
	int callback_failed(int rc, const char *name) const;

	const nda_bootstrap b_;
};

} // namespace nda

#endif
