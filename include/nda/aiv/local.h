/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Operations on the own PE, where the NIC does not send to itself: done at once, by the
 * core. Atomics are so among operations of NICs and cores only if the core's are. Words are
 * stored past the cache, as a NIC would: others may have written to their lines.
 */
#ifndef NDA_AIV_LOCAL_H
#define NDA_AIV_LOCAL_H

#include <stdint.h>

#include <nda/aiv/core.h>
#include <nda/aiv/queue.h>

namespace nda::aiv {

/* What an atomic makes of @former. */
template <class T>
NDA_DEV T combine(verb what, T former, T operand)
{
	if (what == verb::fetch_add)
		return static_cast<T>(former + operand);

	/* A chain of cases may become a table, which would be static data. */
	T both = static_cast<T>(0 - T{what != verb::fetch_xor});
	T former_only =
		static_cast<T>(0 - T{what == verb::fetch_or || what == verb::fetch_xor});
	T operand_only = static_cast<T>(0 - T{what != verb::fetch_and});

	return (former & operand & both) | (former & ~operand & former_only) |
		(~former & operand & operand_only);
}

template <class T, class Core>
NDA_DEV void atomic_locally(const Core &core, const operation &op)
{
	T seen = core.template load_acquire<T>(op.remote_va);

	for (;;) {
		T expected =
			op.op == verb::compare_swap ? static_cast<T>(op.compare) : seen;

		seen = core.template compare_swap<T>(op.remote_va, expected,
			combine<T>(op.op, expected, static_cast<T>(op.operand)));
		if (seen == expected || op.op == verb::compare_swap)
			break;
	}
	core.template st_dev<T>(op.local_va, seen);
}

/* Adds to the binary32 at @addr. */
template <class Core>
NDA_DEV void add_f32_locally(const Core &core, uint64_t addr, uint32_t operand)
{
	union word {
		uint32_t bits;
		float number;
	} value = {operand}, seen = {core.template load_acquire<uint32_t>(addr)};

	for (;;) {
		word sum = seen;

		sum.number += value.number;
		uint32_t found =
			core.template compare_swap<uint32_t>(addr, seen.bits, sum.bits);
		if (found == seen.bits)
			return;
		seen.bits = found;
	}
}

template <class Core>
NDA_DEV_SLOW enum nda_status do_locally(const Core &core, const operation &op) noexcept
{
	if (op.op == verb::write_immediate || op.size > 8)
		return NDA_NOT_SUPPORTED;
	if (is_atomic(op.op) || op.op == verb::add_f32) {
		if constexpr (Core::has_atomics) {
			if (op.op == verb::add_f32)
				add_f32_locally(core, op.remote_va,
					static_cast<uint32_t>(op.operand));
			else if (op.size == 4)
				atomic_locally<uint32_t>(core, op);
			else
				atomic_locally<uint64_t>(core, op);
			return NDA_OK;
		} else {
			return NDA_NOT_SUPPORTED;
		}
	}
	if (op.inline_operand) {
		core.template st_dev<uint64_t>(op.remote_va, op.operand);
		return NDA_OK;
	}
	uint64_t remote = op.remote_va;
	for (uint32_t i = 0; i < (op.n_pieces == 0 ? 1 : op.n_pieces); i++) {
		uint64_t local = op.n_pieces == 0 ? op.local_va : op.pieces[i].addr;
		uint64_t bytes = op.n_pieces == 0 ? op.length : op.pieces[i].length;

		if (op.op == verb::read)
			core.copy(local, remote, bytes);
		else
			core.copy(remote, local, bytes);
		remote += bytes;
	}
	return NDA_OK;
}

} // namespace nda::aiv

#endif
