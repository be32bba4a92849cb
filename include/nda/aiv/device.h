/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Device: what a kernel uses. One handle per core and kernel, made from the published
 * table's address:
 *
 *	nda::aiv::Device<nda::aiv::SoftCore> nda;
 *	if (nda.open(nda::aiv::SoftCore(core), table, core->index) != NDA_OK) ...
 *	nda.put_nbi(pe, dst, src, n);
 *	nda.quiet(pe);
 *
 * Addresses are own NPU addresses: dst of a put and src of a get are symmetric, that is,
 * they name the same offset of the peer's heap. The caller cleans the source of a put from
 * the core's cache before the call (Core::clean, dsb), and invalidates what a get or a peer
 * wrote before reading it; the engine does so only for its own queues.
 *
 * Each core has a queue of its own to each PE. A handle is used by one core and not shared;
 * two handles on one core index of one table must not be in use at a time.
 *
 * Every operation returns an enum nda_status:
 * - NDA_OK: posted (nbi), or done.
 * - NDA_INVALID: no such PE, no queue to it (which only the own PE may lack), a batch is
 *open on the PE's queue, a range outside its region, or a key too wide for the format.
 * - NDA_QUEUE_LENT: the queue is lent to a compatibility view.
 * - NDA_TIMEOUT: no credit, or not done, by the table's deadline; not sticky. Of a transfer
 *   of more than one WQE the first may be on their way.
 * - NDA_NOT_SUPPORTED: the NIC's queue format has no such operation.
 * - Another: the queue's first error completion; sticky, nothing more is posted.
 *
 * Length 0 posts nothing. Longer than one WQE may be (1825: 2^31 - 1 bytes, rxe: 8 MiB) is
 * split.
 */
#ifndef NDA_AIV_DEVICE_H
#define NDA_AIV_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include <nda/aiv/core.h>
#include <nda/aiv/hns1825_engine.h>
#include <nda/status.h>
#include <nda/table.h>

namespace nda::aiv {

/* @Engine: of the NIC's queue format, see nda/aiv/queue.h; nda/aiv/rxe_queue.h has another.
 */
template <class Core, class Engine = hns1825::Engine>
class Batch;

template <class Core, class Engine = hns1825::Engine>
class Device {
public:
	/*
	 * @core: copied. @table: address of the published struct nda_table. @core_index:
	 * whose queues to use, below the table's n_cores. The header is checked here and
	 * never read again. NDA_OK; NDA_BAD_TABLE: not a table of this version and format,
	 * or one that contradicts itself; NDA_INVALID: no such core. On failure every
	 * operation returns NDA_INVALID.
	 */
	NDA_DEV enum nda_status open(const Core &core, uint64_t table, uint32_t core_index)
	{
		core_ = core;
		n_pes_ = 0;
		if (table == 0 || table % NDA_CACHE_LINE != 0)
			return NDA_BAD_TABLE;
		core_.invalidate(table, sizeof(nda_table));
		if (header<uint32_t>(table, offsetof(nda_table, magic)) !=
				NDA_TABLE_MAGIC ||
			header<uint32_t>(table, offsetof(nda_table, version)) !=
				NDA_TABLE_VERSION ||
			header<uint32_t>(table, offsetof(nda_table, format)) !=
				Engine::table_format)
			return NDA_BAD_TABLE;

		uint64_t size = header<uint64_t>(table, offsetof(nda_table, size_bytes));
		uint64_t queues =
			header<uint64_t>(table, offsetof(nda_table, queues_offset));
		uint32_t n_pes = header<uint32_t>(table, offsetof(nda_table, n_pes));
		uint32_t n_cores = header<uint32_t>(table, offsetof(nda_table, n_cores));
		uint32_t timeout =
			header<uint32_t>(table, offsetof(nda_table, device_timeout_us));
		my_pe_ = header<uint32_t>(table, offsetof(nda_table, my_pe));
		heap_base_ = header<uint64_t>(table, offsetof(nda_table, heap_base));
		heap_bytes_ = header<uint64_t>(table, offsetof(nda_table, heap_bytes));
		/* n_cores * n_pes * stride cannot be computed before it is known to fit. */
		if (n_pes == 0 || n_pes > max_pes_ || n_cores == 0 || my_pe_ >= n_pes ||
			timeout == 0 || queues % NDA_CACHE_LINE != 0 ||
			queues < sizeof(nda_table) || queues > size ||
			(size - queues) / NDA_QUEUE_STRIDE / n_pes < n_cores)
			return NDA_BAD_TABLE;
		if (core_index >= n_cores)
			return NDA_INVALID;

		timeout_us_ = timeout;
		queues_ = table + queues + uint64_t{core_index} * n_pes * NDA_QUEUE_STRIDE;
		core_.invalidate(queues_, uint64_t{n_pes} * NDA_QUEUE_STRIDE);
		n_pes_ = n_pes;
		return NDA_OK;
	}

	NDA_DEV uint32_t my_pe() const { return my_pe_; }
	NDA_DEV uint32_t n_pes() const { return n_pes_; }
	NDA_DEV uint64_t heap_base() const { return heap_base_; }
	NDA_DEV uint64_t heap_bytes() const { return heap_bytes_; }
	NDA_DEV const Core &core() const { return core_; }
	/* Address of the struct nda_queue to @pe, which must exist; for tests and tools. */
	NDA_DEV uint64_t queue_address(uint32_t pe) const
	{
		/* open() made sure that 32 bits are enough. */
		return queues_ + pe * NDA_QUEUE_STRIDE;
	}

	/* Starts to write @n bytes of the own heap at @src to @dst of @pe's heap. */
	NDA_DEV enum nda_status put_nbi(uint32_t pe, uint64_t dst, uint64_t src, uint64_t n)
	{
		if (NDA_DEV_RARE(pe >= n_pes_))
			return NDA_INVALID;

		uint64_t q = queue_address(pe);
		if (post_to_heap<Engine::op_write>(q, dst, src, n))
			return NDA_OK;
		return put_slow(q, dst, src, n);
	}

	/* Starts to read @n bytes of @pe's heap at @src to @dst of the own heap. */
	NDA_DEV enum nda_status get_nbi(uint32_t pe, uint64_t dst, uint64_t src, uint64_t n)
	{
		if (NDA_DEV_RARE(pe >= n_pes_))
			return NDA_INVALID;

		uint64_t q = queue_address(pe);
		if (post_to_heap<Engine::op_read>(q, src, dst, n))
			return NDA_OK;
		return get_slow(q, dst, src, n);
	}

	/* As put_nbi() and get_nbi(), and then as quiet(): waits for everything posted to
	 * @pe. */
	NDA_DEV enum nda_status put(uint32_t pe, uint64_t dst, uint64_t src, uint64_t n)
	{
		enum nda_status status = put_nbi(pe, dst, src, n);

		return status == NDA_OK ? quiet(pe) : status;
	}

	NDA_DEV enum nda_status get(uint32_t pe, uint64_t dst, uint64_t src, uint64_t n)
	{
		enum nda_status status = get_nbi(pe, dst, src, n);

		return status == NDA_OK ? quiet(pe) : status;
	}

	/* The same with memory outside the heap: @dst of @pe with its rkey, @src of the own
	 * PE with its lkey, from these byte offsets on. */
	NDA_DEV enum nda_status put_nbi(uint32_t pe, const nda_region &dst,
		uint64_t dst_off, const nda_region &src, uint64_t src_off, uint64_t n)
	{
		return post_regions<Engine::op_write>(pe, dst, dst_off, src, src_off, n);
	}

	/* @src of @pe with its rkey, @dst of the own PE with its lkey. */
	NDA_DEV enum nda_status get_nbi(uint32_t pe, const nda_region &dst,
		uint64_t dst_off, const nda_region &src, uint64_t src_off, uint64_t n)
	{
		return post_regions<Engine::op_read>(pe, src, src_off, dst, dst_off, n);
	}

	/* As put_nbi(), with @immediate for whoever receives at @pe: it consumes a receive
	 * posted there, and its completion carries the value. Also for @n 0. */
	NDA_DEV enum nda_status put_immediate_nbi(
		uint32_t pe, uint64_t dst, uint64_t src, uint64_t n, uint32_t immediate)
	{
		if constexpr (Engine::has_immediate) {
			if (pe >= n_pes_)
				return NDA_INVALID;

			operation op = heap_operation(
				Engine::op_write_immediate, queue_address(pe), dst, src, n);
			op.even_empty = true;
			op.immediate = immediate;
			return post_operation(pe, op);
		} else {
			return NDA_NOT_SUPPORTED;
		}
	}

	/* As put_nbi(), with the bytes read here and now: @src is any own address that this
	 * core can load from, and may be used again at once. NDA_INVALID if there are more
	 * than a WQE of this queue has room for (sq_data_bytes). */
	NDA_DEV enum nda_status put_inline_nbi(
		uint32_t pe, uint64_t dst, uint64_t src, uint64_t n)
	{
		if constexpr (Engine::has_inline) {
			if (pe >= n_pes_)
				return NDA_INVALID;

			operation op = heap_operation(
				Engine::op_write, queue_address(pe), dst, src, n);
			op.inline_data = true;
			return post_operation(pe, op);
		} else {
			return NDA_NOT_SUPPORTED;
		}
	}

	/* As put_nbi() of @n_pieces pieces of the own heap, one behind the other, to @dst;
	 * and as get_nbi(), of @src to the pieces. One WQE: NDA_INVALID if they do not fit,
	 * that is, more than sq_data_bytes / 16 of this queue, or too long in all. */
	NDA_DEV enum nda_status put_pieces_nbi(
		uint32_t pe, uint64_t dst, const nda_piece *pieces, uint32_t n_pieces)
	{
		return post_pieces(Engine::op_write, pe, dst, pieces, n_pieces);
	}

	NDA_DEV enum nda_status get_pieces_nbi(
		uint32_t pe, uint64_t src, const nda_piece *pieces, uint32_t n_pieces)
	{
		return post_pieces(Engine::op_read, pe, src, pieces, n_pieces);
	}

	/* Start an atomic on the 8 bytes at @dst of @pe's heap, whose former value goes to
	 * @result in the own heap; both aligned to 8, else NDA_INVALID. Each that is
	 * outstanding needs a result of its own. Atomic among operations of that NIC. */
	NDA_DEV enum nda_status fetch_add_nbi(
		uint32_t pe, uint64_t dst, uint64_t value, uint64_t result)
	{
		if constexpr (Engine::has_atomics)
			return post_atomic(Engine::op_fetch_add, pe, dst, value, 0, result);
		else
			return NDA_NOT_SUPPORTED;
	}

	/* Stores @swap if the value is @compare. */
	NDA_DEV enum nda_status compare_swap_nbi(
		uint32_t pe, uint64_t dst, uint64_t compare, uint64_t swap, uint64_t result)
	{
		if constexpr (Engine::has_atomics)
			return post_atomic(
				Engine::op_compare_swap, pe, dst, compare, swap, result);
		else
			return NDA_NOT_SUPPORTED;
	}

	/* The same, and then as quiet(): @former is set on NDA_OK. NDA_INVALID also where
	 * the queue has no word of its own for the result (scratch_local). */
	NDA_DEV enum nda_status fetch_add(
		uint32_t pe, uint64_t dst, uint64_t value, uint64_t *former)
	{
		uint64_t result = result_word(pe);
		enum nda_status status = fetch_add_nbi(pe, dst, value, result);

		return status == NDA_OK ? wait_for_result(pe, result, former) : status;
	}

	NDA_DEV enum nda_status compare_swap(uint32_t pe, uint64_t dst, uint64_t compare,
		uint64_t swap, uint64_t *former)
	{
		uint64_t result = result_word(pe);
		enum nda_status status = compare_swap_nbi(pe, dst, compare, swap, result);

		return status == NDA_OK ? wait_for_result(pe, result, former) : status;
	}

	/* Waits until everything posted to @pe is done. */
	NDA_DEV enum nda_status quiet(uint32_t pe)
	{
		if (pe >= n_pes_)
			return NDA_INVALID;

		Deadline<Core> deadline(core_, timeout_us_);
		return queue(pe).quiet(&deadline);
	}

	/* Waits for all PEs, within one deadline. The status of the first PE that has one.
	 */
	NDA_DEV enum nda_status quiet()
	{
		Deadline<Core> deadline(core_, timeout_us_);
		enum nda_status first = n_pes_ == 0 ? NDA_INVALID : NDA_OK;

		for (uint32_t pe = 0; pe < n_pes_; pe++) {
			if (pe == my_pe_ && !reaches_itself())
				continue;
			enum nda_status status = queue(pe).quiet(&deadline);
			if (first == NDA_OK)
				first = status;
		}
		return first;
	}

	/* What is posted to @pe after this starts after what was posted before: WRITEs keep
	 * their order anyway, and the next operation waits for READs at the NIC. Does not
	 * wait here. */
	NDA_DEV enum nda_status fence(uint32_t pe)
	{
		return pe < n_pes_ ? queue(pe).fence() : NDA_INVALID;
	}

	/* Opens a batch: operations on @pe that share one doorbell, see nda/aiv/batch.h. */
	NDA_DEV Batch<Core, Engine> batch(uint32_t pe)
	{
		return Batch<Core, Engine>(this, pe);
	}

private:
	/* Whether there is a queue to the own PE. */
	NDA_DEV bool reaches_itself() const
	{
		return core_.template load<uint32_t>(
			       queue_address(my_pe_) + offsetof(nda_queue, valid)) != 0;
	}

	friend class Batch<Core, Engine>;
	typedef typename Engine::operation operation;
	typedef typename Engine::template queue<Core> Queue;

	template <class T>
	NDA_DEV T header(uint64_t table, size_t offset) const
	{
		return core_.template load<T>(table + offset);
	}

	NDA_DEV Queue queue(uint32_t pe) const { return queue_at(queue_address(pe)); }

	NDA_DEV Queue queue_at(uint64_t q) const { return Queue(core_, q, timeout_us_); }

	template <uint8_t opcode>
	NDA_DEV bool post_to_heap(
		uint64_t q, uint64_t symmetric, uint64_t local, uint64_t n) const
	{
		return Engine::template post_to_heap<opcode>(core_, q, symmetric, local, n);
	}

	NDA_DEV operation heap_operation(uint8_t opcode, uint64_t q, uint64_t symmetric,
		uint64_t local, uint64_t n) const
	{
		operation op = {};

		op.opcode = opcode;
		op.rkey = NDA_QUEUE_LOAD(core_, q, rkey);
		op.lkey = NDA_QUEUE_LOAD(core_, q, lkey);
		op.remote_va = symmetric + NDA_QUEUE_LOAD(core_, q, remote_delta);
		op.local_va = local;
		op.length = n;
		return op;
	}

	/* Arguments in put_nbi()'s positions, so that the way here is one jump. */
	NDA_DEV_SLOW enum nda_status put_slow(
		uint64_t q, uint64_t dst, uint64_t src, uint64_t n) const noexcept
	{
		return queue_at(q).post(
			heap_operation(Engine::op_write, q, dst, src, n), false);
	}

	NDA_DEV_SLOW enum nda_status get_slow(
		uint64_t q, uint64_t dst, uint64_t src, uint64_t n) const noexcept
	{
		return queue_at(q).post(
			heap_operation(Engine::op_read, q, src, dst, n), false);
	}

	NDA_DEV static bool in_region(const nda_region &r, uint64_t offset, uint64_t n)
	{
		return offset <= r.size_bytes && n <= r.size_bytes - offset;
	}

	template <uint8_t opcode>
	NDA_DEV enum nda_status post_regions(uint32_t pe, const nda_region &remote,
		uint64_t remote_off, const nda_region &local, uint64_t local_off,
		uint64_t n) const
	{
		if (pe >= n_pes_ || remote.pe != pe || local.pe != my_pe_ ||
			!in_region(remote, remote_off, n) ||
			!in_region(local, local_off, n) ||
			!Engine::keys_fit(remote.key, local.key))
			return NDA_INVALID;

		if (Engine::template post_to_region<opcode>(core_, queue_address(pe),
			    remote.addr + remote_off, remote.key, local.addr + local_off,
			    local.key, n))
			return NDA_OK;

		operation op = {};
		op.opcode = opcode;
		op.rkey = remote.key;
		op.lkey = local.key;
		op.remote_va = remote.addr + remote_off;
		op.local_va = local.addr + local_off;
		op.length = n;
		return post_operation(pe, op);
	}

	NDA_DEV enum nda_status post_pieces(uint8_t opcode, uint32_t pe, uint64_t symmetric,
		const nda_piece *pieces, uint32_t n_pieces) const
	{
		if constexpr (Engine::has_pieces) {
			if (pe >= n_pes_ || n_pieces == 0)
				return NDA_INVALID;

			operation op =
				heap_operation(opcode, queue_address(pe), symmetric, 0, 0);
			for (uint32_t i = 0; i < n_pieces; i++) {
				op.length += pieces[i].length;
				if (pieces[i].length == 0 || op.length < pieces[i].length)
					return NDA_INVALID;
			}
			op.pieces = pieces;
			op.n_pieces = n_pieces;
			return post_operation(pe, op);
		} else {
			return NDA_NOT_SUPPORTED;
		}
	}

	NDA_DEV enum nda_status post_atomic(uint8_t opcode, uint32_t pe, uint64_t dst,
		uint64_t compare_add, uint64_t swap, uint64_t result) const
	{
		if (pe >= n_pes_ || dst % 8 != 0 || result % 8 != 0 || result == 0)
			return NDA_INVALID;

		operation op = heap_operation(opcode, queue_address(pe), dst, result, 8);
		op.compare_add = compare_add;
		op.swap = swap;
		return post_operation(pe, op);
	}

	/* Where an atomic that is waited for leaves its result. One word is enough: a queue
	 * keeps its order, so what an earlier one that timed out still writes is
	 * overwritten by the time that a later one is done. */
	NDA_DEV uint64_t result_word(uint32_t pe) const
	{
		return pe < n_pes_ ? NDA_QUEUE_LOAD(core_, queue_address(pe), scratch_local)
				   : 0;
	}

	NDA_DEV enum nda_status wait_for_result(
		uint32_t pe, uint64_t result, uint64_t *former)
	{
		enum nda_status status = quiet(pe);

		if (status != NDA_OK)
			return status;
		core_.invalidate(result, 8);
		*former = core_.template load<uint64_t>(result);
		return NDA_OK;
	}

	NDA_DEV_SLOW enum nda_status post_operation(
		uint32_t pe, const operation &op) const noexcept
	{
		return queue(pe).post(op, false);
	}

	/* Takes the queue at @q for a batch, unless it has one or is lent. */
	NDA_DEV bool open_batch(uint64_t q) const
	{
		uint32_t flags = NDA_QUEUE_LOAD(core_, q, state.flags);

		if ((flags & (NDA_QUEUE_IN_BATCH | NDA_QUEUE_IN_VIEW)) != 0)
			return false;
		NDA_QUEUE_STORE(core_, q, state.rung,
			static_cast<uint16_t>(NDA_QUEUE_LOAD(core_, q, state.head)));
		NDA_QUEUE_STORE(core_, q, state.flags,
			static_cast<uint8_t>(flags | NDA_QUEUE_IN_BATCH));
		return true;
	}

	/* Gives it back, with its line as the batch leaves it, and rings for what the batch
	 * has posted. */
	NDA_DEV void close_batch(uint64_t q) const
	{
		uint32_t head = NDA_QUEUE_LOAD(core_, q, state.head);

		NDA_QUEUE_STORE(core_, q, state.flags,
			static_cast<uint8_t>(NDA_QUEUE_LOAD(core_, q, state.flags) &
				~uint32_t{NDA_QUEUE_IN_BATCH}));
		if (NDA_QUEUE_LOAD(core_, q, state.rung) != static_cast<uint16_t>(head))
			queue_at(q).ring();
	}

	struct batch_result {
		enum nda_status status;
		bool open; /* the batch has the queue, and the line holds its window */
	};

	/* For a batch, which has the queue already if @open. */
	NDA_DEV_SLOW batch_result post_in_batch(uint64_t q, uint64_t symmetric,
		uint64_t local, uint64_t n, uint8_t opcode, bool want_completion,
		bool open) const noexcept
	{
		if (q == 0)
			return {NDA_INVALID, false};
		if (!open && !open_batch(q))
			return {(NDA_QUEUE_LOAD(core_, q, state.flags) &
					NDA_QUEUE_IN_VIEW) != 0
					? NDA_QUEUE_LENT
					: NDA_INVALID,
				false};

		operation op = heap_operation(opcode, q, symmetric, local, n);
		op.want_completion = want_completion;
		return {queue_at(q).post(op, true), true};
	}

	static constexpr uint32_t max_pes_ = UINT32_MAX / NDA_QUEUE_STRIDE;

	Core core_;
	uint64_t queues_ = 0; /* of this core */
	uint64_t timeout_us_ = 0;
	uint32_t n_pes_ = 0; /* 0: not open */
	uint32_t my_pe_ = 0;
	uint64_t heap_base_ = 0;
	uint64_t heap_bytes_ = 0;
};

} // namespace nda::aiv

#include <nda/aiv/batch.h>

#endif
