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
 *   void st_dev<T>(addr, value)     store of 4 or 8 bytes to a device register, past any
 *                                   cache, after all earlier stores
 *   void clean(at, addr, bytes)     writes the cached lines of exactly that range back
 *   void invalidate(at, addr, n)    the next load of that range comes from memory
 *   void dsb(at)                    what was cleaned is in memory when this returns
 *   void copy(dst, src, bytes)      bulk copy between own addresses
 *   uint64_t cycles()               a monotonic counter
 *   uint64_t cycles_per_us()        its rate, > 0
 *   void relax()                    once per round of a wait
 *   static constexpr bool stages_wqes
 *                                   WQEs are put together in a buffer of the core and
 *                                   copied to the ring; the core then also has
 *     void stage<T>(offset, value)    stores into that buffer of 256 bytes
 *     void unstage(addr, offset, n)   copies from there; in memory when this returns
 *   static constexpr bool has_atomics
 *                                   it can change memory that others change, too:
 *     T compare_swap<T>(addr, compare, swap)
 *                                   of 4 or 8 bytes; the former value; acquires and
 *                                   releases
 *
 * @at names the place in an engine: tests take one away and see what breaks. Order comes
 * from acquire and release on the word itself, never from a fence. A core is copied into
 * the handles that use it, so it is small.
 */
#ifndef NDA_AIV_CORE_H
#define NDA_AIV_CORE_H

#include <stddef.h>
#include <stdint.h>

#include <nda/hw/defs.h>
#include <nda/status.h>
#include <nda/table.h>

namespace nda::aiv {

/* Where an engine cleans, invalidates or waits for what was cleaned. */
enum class site : uint8_t {
	table_header,    /* invalidate: before a handle reads the table's header */
	table_queues,    /* invalidate: ... and its rows */
	wqe_marker,      /* clean: what makes the slot after a WQE invalid */
	wqe,             /* clean: a WQE */
	queue_line,      /* clean: the queue's mutable line, by a post */
	idle_line,       /* clean: ... by a call that neither posts nor polls */
	after_idle,      /* dsb: that line before anything else */
	before_record,   /* dsb: WQE and line before the record */
	sq_record,       /* clean: the SQ's doorbell record or producer index */
	before_doorbell, /* dsb: the record before the doorbell */
	cq_look,      /* invalidate: a CQE, or the CQ's producer index, before each look */
	cq_entry,     /* invalidate: a CQE's rest, now that it is known to be there */
	cq_line,      /* clean: the queue's mutable line, by a poll */
	cq_record,    /* clean: the CQ's consumer record or index */
	after_poll,   /* dsb: the consumer index before anything else */
	abort_word,   /* invalidate: the word that ends waits */
	result,       /* invalidate: the result of an atomic */
	waited_word,  /* invalidate: own memory that a peer changes */
	staged_look,  /* invalidate: a signal's or an operand's own word, before its use */
	staged_word,  /* clean: ... */
	sync_look,    /* invalidate: a team's epoch, which an earlier kernel left */
	sync_counter, /* clean: ... */
	caller,       /* any: a kernel's own data, by itself */
};
constexpr uint32_t n_sites = 23;

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

/* A WQE's bytes from @offset on, for the ring at @addr + @offset. Where a WQE goes over the
 * end of the ring, @addr is that of its part less the part's offset. */
template <class T, class Core>
NDA_DEV void wqe_store(const Core &core, uint64_t addr, uint32_t offset, T value)
{
	if constexpr (Core::stages_wqes)
		core.template stage<T>(offset, value);
	else
		core.template store<T>(addr + offset, value);
}

/* The same after all of them, for the word that makes the WQE valid. */
template <class T, class Core>
NDA_DEV void wqe_store_last(const Core &core, uint64_t addr, uint32_t offset, T value)
{
	if constexpr (Core::stages_wqes)
		core.template stage<T>(offset, value);
	else
		core.template store_release<T>(addr + offset, value);
}

/* Sends them on their way to memory. */
template <class Core>
NDA_DEV void wqe_publish(const Core &core, uint64_t addr, uint32_t offset, uint32_t bytes)
{
	if constexpr (Core::stages_wqes)
		core.unstage(addr + offset, offset, bytes);
	else
		core.clean(site::wqe, addr + offset, bytes);
}

/* What ends a wait. */
struct wait_limits {
	uint64_t timeout_us;
	uint64_t abort; /* address of a word that ends it when it is not 0; 0: none */
};

/* The deadline of a device call: the clock is not read before the first idle round. */
template <class Core>
class Deadline {
public:
	NDA_DEV Deadline(const Core &core, const wait_limits &limits)
		: core_(core), limits_(limits)
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
		return now - start_ >= limits_.timeout_us * core_.cycles_per_us() ||
			aborted();
	}

	/* What a wait that has passed ends with. */
	NDA_DEV enum nda_status status() const
	{
		return aborted_ ? NDA_ABORTED : NDA_TIMEOUT;
	}

private:
	NDA_DEV bool aborted()
	{
		if (limits_.abort == 0)
			return false;
		core_.invalidate(site::abort_word, limits_.abort, sizeof(uint32_t));
		aborted_ = core_.template load_acquire<uint32_t>(limits_.abort) != 0;
		return aborted_;
	}

	const Core &core_;
	wait_limits limits_;
	uint64_t start_ = 0;
	bool armed_ = false;
	bool aborted_ = false;
};

} // namespace nda::aiv

#endif
