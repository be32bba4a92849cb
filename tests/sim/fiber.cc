/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <vector>

#include <tests/mock/sanitizer.h>
#include <tests/sim/fiber.h>

#if NDA_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if NDA_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace nda::test {

namespace {

constexpr size_t guard_bytes = 4096;
constexpr size_t stack_bytes = 1 << 20; /* only what is touched takes memory */

/* Those whose fiber has ended, for the next one. */
thread_local std::vector<char *> free_stacks;
/* The fiber that begins. */
thread_local Fiber *beginning;

char *take_stack()
{
	if (!free_stacks.empty()) {
		char *stack = free_stacks.back();

		free_stacks.pop_back();
		return stack;
	}
	void *memory = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED || mprotect(memory, guard_bytes, PROT_NONE) != 0) {
		perror("Fiber: stack");
		abort();
	}
	return static_cast<char *>(memory) + guard_bytes;
}

/* Around each switch of stacks: the sanitizers must not take it for a broken stack, nor two
 * fibers of one thread for two threads. */
#if NDA_ASAN
void about_to_switch(void **fake, const void *bottom, size_t size)
{
	__sanitizer_start_switch_fiber(fake, bottom, size);
}
void switched(void *fake, const void **bottom, size_t *size)
{
	__sanitizer_finish_switch_fiber(fake, bottom, size);
}
#else
void about_to_switch(void **, const void *, size_t) {}
void switched(void *, const void **, size_t *) {}
#endif

} // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_(take_stack())
{
	getcontext(&own_);
	own_.uc_stack.ss_sp = stack_;
	own_.uc_stack.ss_size = stack_bytes;
	own_.uc_link = nullptr;
	makecontext(&own_, &Fiber::enter, 0);
#if NDA_TSAN
	own_track_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber()
{
#if NDA_TSAN
	__tsan_destroy_fiber(own_track_);
#endif
#if NDA_ASAN
	/* Frames that never returned have left their marks. */
	__asan_unpoison_memory_region(stack_, stack_bytes);
#endif
	free_stacks.push_back(stack_);
}

void Fiber::enter()
{
	Fiber *self = beginning;

	switched(nullptr, &self->caller_bottom_, &self->caller_size_);
	self->body_();
	self->done_ = true;
	self->leave();
}

void Fiber::resume()
{
	beginning = this;
#if NDA_TSAN
	caller_track_ = __tsan_get_current_fiber();
	__tsan_switch_to_fiber(own_track_, 0);
#endif
	about_to_switch(&caller_fake_, stack_, stack_bytes);
	swapcontext(&caller_, &own_);
	switched(caller_fake_, nullptr, nullptr);
}

void Fiber::yield()
{
	leave();
	switched(own_fake_, &caller_bottom_, &caller_size_);
}

void Fiber::leave()
{
#if NDA_TSAN
	__tsan_switch_to_fiber(caller_track_, 0);
#endif
	about_to_switch(done_ ? nullptr : &own_fake_, caller_bottom_, caller_size_);
	swapcontext(&own_, &caller_);
}

} // namespace nda::test
