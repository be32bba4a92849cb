/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <tests/mock/sanitizer.h>
#include <tests/sim/last_words.h>

#if NDA_ASAN || NDA_TSAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace nda::test {

namespace {

constexpr int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTERM};
constexpr size_t n_signals = sizeof(signals) / sizeof(signals[0]);

/* Of fixed size: a handler must not follow a pointer that is being changed. */
char last_words[512];
struct sigaction before[n_signals];
/* A fiber that has run over its stack has none left for a handler. */
alignas(16) char handler_stack[1 << 16];

void say()
{
	/* Nothing is left to do about an error. */
	if (write(STDERR_FILENO, last_words, strlen(last_words)) < 0)
		return;
}

/* Says it, and lets the signal do what it would have done. */
void on_signal(int signal, siginfo_t *info, void *)
{
	say();
	for (size_t i = 0; i < n_signals; i++)
		if (signals[i] == signal)
			sigaction(signal, &before[i], nullptr);
	/* A fault comes again by itself, at the same place. */
	if (info->si_code <= 0)
		raise(signal);
}

void listen()
{
	stack_t stack = {};
	struct sigaction action = {};

	stack.ss_sp = handler_stack;
	stack.ss_size = sizeof(handler_stack);
	sigaltstack(&stack, nullptr);
	action.sa_sigaction = on_signal;
	action.sa_flags = SA_ONSTACK | SA_SIGINFO;
	for (size_t i = 0; i < n_signals; i++)
		sigaction(signals[i], &action, &before[i]);
#if NDA_ASAN || NDA_TSAN
	__sanitizer_set_death_callback(say);
#endif
}

} // namespace

void set_last_words(const std::string &words)
{
	static bool listening = false;

	snprintf(last_words, sizeof(last_words), "%s", words.c_str());
	if (!listening)
		listen();
	listening = true;
}

} // namespace nda::test
