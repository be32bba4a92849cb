// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/rxe/object.h"

#include <ctime>

#include "providers/rxe/error.h"

namespace nda::rxe {
namespace {

constexpr time_t event_seconds = 10;

} // namespace

EventLock::EventLock(pthread_mutex_t &mutex, pthread_cond_t &cond)
	: mutex_(mutex), cond_(cond)
{
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&mutex_, nullptr);
	pthread_cond_init(&cond_, &attr);
	pthread_condattr_destroy(&attr);
}

EventLock::~EventLock()
{
	pthread_cond_destroy(&cond_);
	pthread_mutex_destroy(&mutex_);
}

int EventLock::wait(const uint32_t &completed, uint32_t reported)
{
	timespec deadline;
	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += event_seconds;
	pthread_mutex_lock(&mutex_);
	int rc = 0;
	while (completed != reported && rc == 0)
		rc = pthread_cond_timedwait(&cond_, &mutex_, &deadline);
	const bool done = completed == reported;
	pthread_mutex_unlock(&mutex_);
	return done
		? 0
		: fail(-ETIMEDOUT, "destroy: %u asynchronous events are not acknowledged",
			  reported - completed);
}

} // namespace nda::rxe
