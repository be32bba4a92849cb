// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_LIB_DEADLINE_H
#define NDA_LIB_DEADLINE_H

#include <chrono>
#include <cstdint>

namespace nda {

// A point of the steady clock by which something must be done.
class Deadline {
public:
	using Clock = std::chrono::steady_clock;

	explicit Deadline(uint64_t milliseconds)
		: at_(Clock::now() + std::chrono::milliseconds(milliseconds))
	{}

	Clock::time_point at() const { return at_; }

	// For poll(): rounded up, so that poll does not return just before the deadline; 0
	// when it has passed.
	int remaining_ms() const
	{
		const auto left = at_ - Clock::now();
		if (left <= Clock::duration::zero())
			return 0;
		const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
		return ms > INT32_MAX ? INT32_MAX : static_cast<int>(ms);
	}
	bool passed() const { return Clock::now() >= at_; }

private:
	Clock::time_point at_;
};

} // namespace nda

#endif
