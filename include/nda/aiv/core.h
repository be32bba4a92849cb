/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the data plane asks of the core that runs it. Engines are templates over a class
 * Core with these const member functions; addresses are NPU addresses as u64, never
 * pointers, and T is an unsigned integer of 1 to 8 bytes, aligned:
 *
 *   T load<T>(addr)                 plain load, may come from the core's own cache
 *   void store<T>(addr, value)      plain store, may stay there
 *   T load_acquire<T>(addr)         later accesses come after it
 *   void store_release<T>(addr, v)  earlier accesses come before it
 *   void st_dev(addr, value)        64-bit store to a device register, past any cache,
 *                                   after all earlier stores
 *   void clean(addr, bytes)         writes the cached lines of exactly that range back
 *   void invalidate(addr, bytes)    the next load of that range comes from memory
 *   void dsb()                      what was cleaned is in memory when this returns
 *   void copy(dst, src, bytes)      bulk copy between own addresses
 *   uint64_t cycles()               a monotonic counter
 *   uint64_t cycles_per_us()        its rate, > 0
 *   void relax()                    once per round of a wait
 *
 * Order comes from acquire and release on the word itself, never from a fence. A core is
 * copied into the handles that use it, so it is small.
 */
#ifndef NDA_AIV_CORE_H
#define NDA_AIV_CORE_H

#include <stddef.h>
#include <stdint.h>

#include <nda/hw/defs.h>
#include <nda/status.h>
#include <nda/table.h>

namespace nda::aiv {

/* A member's type without the const and & that decltype may add. */
template <class T>
struct plain {
	typedef T type;
};
template <class T>
struct plain<const T> {
	typedef T type;
};
template <class T>
struct plain<T &> {
	typedef typename plain<T>::type type;
};

} // namespace nda::aiv

/* A member of the struct nda_queue at NPU address @q, through @core. */
#define NDA_QUEUE_TYPE(member)                                                             \
	typename nda::aiv::plain<decltype(static_cast<nda_queue *>(nullptr)->member)>::type
#define NDA_QUEUE_LOAD(core, q, member)                                                    \
	(core).template load<NDA_QUEUE_TYPE(member)>((q) + offsetof(nda_queue, member))
#define NDA_QUEUE_STORE(core, q, member, value)                                            \
	(core).template store<NDA_QUEUE_TYPE(member)>(                                     \
		(q) + offsetof(nda_queue, member), value)

namespace nda::aiv {

/* The deadline of a device call: the clock is not read before the first idle round. */
template <class Core>
class Deadline {
public:
	NDA_DEV Deadline(const Core &core, uint64_t timeout_us)
		: core_(core), timeout_us_(timeout_us)
	{}

	/* Call before looking, then look, then give up: whoever was kept off the processor
	 * for long still gets a last look. */
	NDA_DEV bool passed()
	{
		uint64_t now = core_.cycles();

		if (!armed_) {
			armed_ = true;
			start_ = now;
		}
		return now - start_ >= timeout_us_ * core_.cycles_per_us();
	}

private:
	const Core &core_;
	uint64_t timeout_us_;
	uint64_t start_ = 0;
	bool armed_ = false;
};

} // namespace nda::aiv

#endif
