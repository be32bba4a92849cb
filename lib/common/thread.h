// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_COMMON_THREAD_H
#define NDA_COMMON_THREAD_H

#include <pthread.h>
#include <signal.h>

namespace nda {

// Starts a thread in which no handler of the application's signals runs. 0 or a negative
// errno.
inline int start_thread(
	pthread_t &thread, const char *name, void *(*body)(void *), void *arg)
{
	sigset_t all, saved;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &saved);
	int rc = pthread_create(&thread, nullptr, body, arg);
	pthread_sigmask(SIG_SETMASK, &saved, nullptr);
	if (rc == 0)
		pthread_setname_np(thread, name);
	return -rc;
}

} // namespace nda

#endif
