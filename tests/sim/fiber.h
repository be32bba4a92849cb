/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A function with a stack of its own, which runs until it yields or returns and goes on
 * when it is resumed: switching costs less than a microsecond, a thread's would cost many.
 */
#ifndef TESTS_SIM_FIBER_H
#define TESTS_SIM_FIBER_H

#include <stddef.h>
#include <ucontext.h>

#include <functional>

namespace nda::test {

class Fiber {
public:
	explicit Fiber(std::function<void()> body);
	/* Must not be in the middle of its body. */
	~Fiber();

	Fiber(const Fiber &) = delete;
	Fiber &operator=(const Fiber &) = delete;

	/* By the thread that made it. */
	void resume();
	/* By the body. */
	void yield();
	bool done() const { return done_; }

private:
	static void enter();
	void leave();

	std::function<void()> body_;
	bool done_ = false;
	char *stack_;
	ucontext_t own_ = {};
	ucontext_t caller_ = {};
	/* What sanitizers have to know, and nobody else. */
	void *own_fake_ = nullptr;
	void *caller_fake_ = nullptr;
	const void *caller_bottom_ = nullptr;
	size_t caller_size_ = 0;
	[[maybe_unused]] void *own_track_ = nullptr;
	[[maybe_unused]] void *caller_track_ = nullptr;
};

} // namespace nda::test

#endif
