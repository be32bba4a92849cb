/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * SharedDevice: queues that several cores post to, for jobs with more cores than queues.
 * One handle per core, all on the same core index of a table whose group was made with
 * NDA_GROUP_SHARED_QUEUES:
 *
 *	nda::aiv::SharedDevice<nda::aiv::SoftCore> nda;
 *	nda.open(nda::aiv::SoftCore(core), table, 0);
 *	nda.put_nbi(pe, dst, src, n);
 *	nda.quiet(pe);
 *
 * Only for cores that have atomics and coherent caches (Core::has_atomics): vector cores
 * have neither, there a queue per core is the way. Operations and statuses are those of
 * Device; NDA_INVALID also where the queue is not shared. The order of one core's posts is
 * kept, that of different cores is the order in which they got their places. On UDMA
 * neither is: there only quiet() orders.
 *
 * NDA_LOCAL_QP, sticky: another core took its place in the ring and has not written its WQE
 * by the deadline. If it was reading completions when it went, nobody can say so for all
 * cores, and each finds out by its own deadline.
 */
#ifndef NDA_AIV_SHARED_H
#define NDA_AIV_SHARED_H

#include <stdint.h>

#include <nda/aiv/device.h>

namespace nda::aiv {

template <class Core, class Engine = hns1825::Engine>
class SharedDevice {
	static_assert(Core::has_atomics, "cores that share a queue need atomics");

public:
	/* As Device::open(). */
	NDA_DEV enum nda_status open(const Core &core, uint64_t table, uint32_t core_index,
		uint32_t queue_index = 0)
	{
		return device_.open(core, table, core_index, queue_index);
	}

	NDA_DEV uint32_t my_pe() const { return device_.my_pe(); }
	NDA_DEV uint32_t n_pes() const { return device_.n_pes(); }

	NDA_DEV enum nda_status put_nbi(uint32_t pe, uint64_t dst, uint64_t src, uint64_t n)
	{
		return post<verb::write>(pe, dst, src, n);
	}

	NDA_DEV enum nda_status get_nbi(uint32_t pe, uint64_t dst, uint64_t src, uint64_t n)
	{
		return post<verb::read>(pe, src, dst, n);
	}

	/* Waits for what every core has posted to @pe by now. */
	NDA_DEV enum nda_status quiet(uint32_t pe)
	{
		if (pe >= device_.n_pes())
			return NDA_INVALID;
		if (device_.is_own(pe))
			return NDA_OK;

		Deadline<Core> deadline(device_.core_, device_.limits_);
		return device_.queue(pe).quiet_shared(&deadline);
	}

	/* As Device's; the former value is at @result after quiet(). */
	template <class T>
	NDA_DEV enum nda_status fetch_add_nbi(
		uint32_t pe, uint64_t dst, T value, uint64_t result)
	{
		return atomic<T>(verb::fetch_add, pe, dst, value, T{0}, result);
	}

	template <class T>
	NDA_DEV enum nda_status compare_swap_nbi(
		uint32_t pe, uint64_t dst, T compare, T swap, uint64_t result)
	{
		return atomic<T>(verb::compare_swap, pe, dst, swap, compare, result);
	}

	template <class T>
	NDA_DEV T read_result(uint64_t result) const
	{
		return device_.template read_result<T>(result);
	}

private:
	template <verb what>
	NDA_DEV enum nda_status post(
		uint32_t pe, uint64_t symmetric, uint64_t local, uint64_t n)
	{
		enum nda_status status;

		if (pe >= device_.n_pes())
			return NDA_INVALID;
		/* Where the own PE has no queue, it is not one of those. */
		if (device_.queue(pe).template post_shared_fast<what>(
			    symmetric, local, n, &status))
			return status;
		return post(pe,
			device_.heap_operation(
				what, device_.queue_address(pe), symmetric, local, n));
	}

	NDA_DEV enum nda_status post(uint32_t pe, const operation &op)
	{
		if (device_.is_own(pe))
			return do_locally(device_.core_, op);
		return device_.queue(pe).post_shared(op);
	}

	template <class T>
	NDA_DEV enum nda_status atomic(verb what, uint32_t pe, uint64_t dst,
		uint64_t operand, uint64_t compare, uint64_t result)
	{
		if (!Engine::supports(what, sizeof(T)))
			return NDA_NOT_SUPPORTED;
		if (pe >= device_.n_pes() || dst % sizeof(T) != 0 || result % 8 != 0 ||
			result == 0)
			return NDA_INVALID;

		operation op = device_.heap_operation(
			what, device_.queue_address(pe), dst, result, sizeof(T));
		op.size = sizeof(T);
		op.operand = operand;
		op.compare = compare;
		return post(pe, op);
	}

	Device<Core, Engine> device_;
};

} // namespace nda::aiv

#endif
