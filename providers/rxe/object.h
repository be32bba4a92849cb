// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What CQ, QP and SRQ share. Each is the extended object that the driver returns, with the
// public verbs object behind it, made here and not by libibverbs: libibverbs' own functions
// on it may use no more than what verbs.h shows. ibv_modify_qp and ibv_query_qp do, and
// asynchronous events; posting, polling and destroying do not.
#ifndef NDA_RXE_OBJECT_H
#define NDA_RXE_OBJECT_H

#include <cstdint>
#include <memory>
#include <pthread.h>

namespace nda::rxe {

// The lock of a public verbs object, by which events are acknowledged.
class EventLock {
public:
	EventLock(pthread_mutex_t &mutex, pthread_cond_t &cond);
	~EventLock();
	EventLock(const EventLock &) = delete;
	EventLock &operator=(const EventLock &) = delete;

	// Until completed, which ibv_ack_async_event counts up, is reported. 0, or
	// -ETIMEDOUT: the application has an event that it does not acknowledge.
	int wait(const uint32_t &completed, uint32_t reported);

private:
	pthread_mutex_t &mutex_;
	pthread_cond_t &cond_;
};

// destroy(events) of the kernel's object, which is there while alive; then its events are
// waited for and the object is deleted. On failure it stays as it is, and may be destroyed
// again.
template <class Object, class Destroy>
int destroy_object(Object *object, const uint32_t &completed, Destroy &&destroy)
{
	if (object->alive) {
		const int rc = destroy(object->events);
		if (rc)
			return rc;
		object->alive = false;
	}
	const int rc = object->lock.wait(completed, object->events);
	if (rc == 0)
		delete object;
	return rc;
}

} // namespace nda::rxe

#endif
