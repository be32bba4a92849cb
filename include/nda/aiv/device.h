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
 * Each core has queues of its own to each PE, as many as the table says. A handle uses one
 * of them, is used by one core and not shared; two handles on one queue index of one core
 * index of one table must not be in use at a time.
 *
 * Order. What is posted to one PE by one handle: WRITEs take effect in that order, on
 * formats that keep it (1825, IN_DIE, XSCALE, rxe); on UDMA only what fence(), signal or
 * put_signal orders. READs and atomics may be late; fence() makes what follows wait for
 * them. A signal takes effect after every put posted before it. Different PEs, handles and
 * queues: no order but by quiet().
 *
 * Every operation returns an enum nda_status:
 * - NDA_OK: posted (nbi), or done.
 * - NDA_INVALID: no such PE, no queue to it (which the own PE may lack, and what a relay's
 *   queue index does not reach), a batch is open on the PE's queue, a range outside its
 *   region, or a key too wide for the format.
 * - NDA_QUEUE_LENT: the queue is lent to a compatibility view.
 * - NDA_TIMEOUT: no credit, or not done, by the table's deadline; not sticky. Of a transfer
 *   of more than one WQE the first may be on their way.
 * - NDA_ABORTED: the host ended all waits of the table, see nda_group_abort().
 * - NDA_NOT_SUPPORTED: the NIC's queue format has no such operation.
 * - Another: the queue's first error completion; sticky, nothing more is posted.
 *
 * Length 0 posts nothing. What is longer than one WQE may be is split: IN_DIE 2^31 bytes,
 * XSCALE and 1825 2^31 - 1, UDMA 256 MiB, rxe 8 MiB.
 *
 * The own PE: where the NIC sends to itself (IN_DIE, XSCALE, 1825, rxe) as to any other. On
 * UDMA the core does it at once: put_immediate and compare_swap16 are NDA_NOT_SUPPORTED,
 * atomics too unless the core has them, and addresses are not checked.
 */
#ifndef NDA_AIV_DEVICE_H
#define NDA_AIV_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include <nda/aiv/core.h>
#include <nda/aiv/hns1825_engine.h>
#include <nda/aiv/local.h>
#include <nda/status.h>
#include <nda/table.h>

namespace nda::aiv {

/* @Engine: of the NIC's queue format, see nda/aiv/queue.h; nda/aiv/rxe_queue.h has another.
 */
template <class Core, class Engine = hns1825::Engine>
class Batch;

template <class Core, class Engine>
class SharedDevice;

enum class cmp : uint8_t {
	eq,
	ne,
	ge,
	gt,
	le,
	lt,
};

/* Some PEs of a table: start, start + stride, ... */
struct team {
	uint32_t start;
	uint32_t stride; /* > 0 */
	uint32_t size;   /* PEs, > 0 */
	uint64_t sync; /* NDA_SYNC_BYTES of the own heap, at the same offset on all of them
			*/
};

template <class Core, class Engine = hns1825::Engine>
class Device {
public:
	/*
	 * @core: copied. @table: address of the published struct nda_table. @core_index:
	 * whose queues to use, below the table's n_cores. @queue_index: which of them,
	 * below its queues_per_core. The header is checked here and never read again.
	 * NDA_OK; NDA_BAD_TABLE: not a table of this version and format, or one that
	 * contradicts itself; NDA_INVALID: no such core or queue. On failure every
	 * operation returns NDA_INVALID.
	 */
	NDA_DEV enum nda_status open(const Core &core, uint64_t table, uint32_t core_index,
		uint32_t queue_index = 0)
	{
		core_ = core;
		n_pes_ = 0;
		if (table == 0 || table % NDA_CACHE_LINE != 0)
			return NDA_BAD_TABLE;
		core_.invalidate(site::table_header, table, sizeof(nda_table));
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
		uint32_t n_queues =
			header<uint32_t>(table, offsetof(nda_table, queues_per_core));
		my_pe_ = header<uint32_t>(table, offsetof(nda_table, my_pe));
		heap_base_ = header<uint64_t>(table, offsetof(nda_table, heap_base));
		heap_bytes_ = header<uint64_t>(table, offsetof(nda_table, heap_bytes));
		/* n_cores * n_pes * stride cannot be computed before it is known to fit. */
		if (n_pes == 0 || n_pes > max_pes_ || n_cores == 0 || my_pe_ >= n_pes ||
			timeout == 0 || queues % NDA_CACHE_LINE != 0 ||
			queues < sizeof(nda_table) || queues > size || n_queues == 0 ||
			(size - queues) / NDA_QUEUE_STRIDE / n_pes / n_queues < n_cores)
			return NDA_BAD_TABLE;
		if (core_index >= n_cores || queue_index >= n_queues)
			return NDA_INVALID;

		limits_ = {timeout, table + offsetof(nda_table, abort)};
		queue_index_ = queue_index;
		n_queues_ = n_queues;
		sync_ = header<uint64_t>(table, offsetof(nda_table, sync_area));
		queues_ = table + queues +
			(uint64_t{core_index} * n_queues + queue_index) * n_pes *
				NDA_QUEUE_STRIDE;
		core_.invalidate(
			site::table_queues, queues_, uint64_t{n_pes} * NDA_QUEUE_STRIDE);
		n_pes_ = n_pes;
		return NDA_OK;
	}

	/* Every operation returns NDA_INVALID from now on. */
	NDA_DEV void close() { n_pes_ = 0; }

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
		if (post_to_heap<verb::write>(q, dst, src, n))
			return NDA_OK;
		return put_slow(q, dst, src, n);
	}

	/* Starts to read @n bytes of @pe's heap at @src to @dst of the own heap. */
	NDA_DEV enum nda_status get_nbi(uint32_t pe, uint64_t dst, uint64_t src, uint64_t n)
	{
		if (NDA_DEV_RARE(pe >= n_pes_))
			return NDA_INVALID;

		uint64_t q = queue_address(pe);
		if (post_to_heap<verb::read>(q, src, dst, n))
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
		return post_regions<verb::write>(pe, dst, dst_off, src, src_off, n);
	}

	/* @src of @pe with its rkey, @dst of the own PE with its lkey. */
	NDA_DEV enum nda_status get_nbi(uint32_t pe, const nda_region &dst,
		uint64_t dst_off, const nda_region &src, uint64_t src_off, uint64_t n)
	{
		return post_regions<verb::read>(pe, src, src_off, dst, dst_off, n);
	}

	/* As put_nbi(), with @immediate for whoever receives at @pe: it consumes a receive
	 * posted there, and its completion carries the value. Also for @n 0. */
	NDA_DEV enum nda_status put_immediate_nbi(
		uint32_t pe, uint64_t dst, uint64_t src, uint64_t n, uint32_t immediate)
	{
		if constexpr (Engine::supports(verb::write_immediate, 0)) {
			if (pe >= n_pes_)
				return NDA_INVALID;

			operation op = heap_operation(
				verb::write_immediate, queue_address(pe), dst, src, n);
			op.even_empty = true;
			op.immediate = immediate;
			return post_operation(pe, op);
		} else {
			return NDA_NOT_SUPPORTED;
		}
	}

	/* As put_nbi(), with the bytes read here and now: @src is any own address that this
	 * core can load from, and may be used again at once. NDA_INVALID if there are more
	 * than a WQE has room for: IN_DIE 32, UDMA and rxe what the queue was made with. */
	NDA_DEV enum nda_status put_inline_nbi(
		uint32_t pe, uint64_t dst, uint64_t src, uint64_t n)
	{
		if constexpr (Engine::has_inline) {
			if (pe >= n_pes_)
				return NDA_INVALID;

			operation op =
				heap_operation(verb::write, queue_address(pe), dst, src, n);
			op.inline_data = true;
			return post_operation(pe, op);
		} else {
			return NDA_NOT_SUPPORTED;
		}
	}

	/* As put_nbi() of @n_pieces pieces of the own heap, one behind the other, to @dst;
	 * and as get_nbi(), of @src to the pieces. One WQE: NDA_INVALID if they do not fit,
	 * or are too long in all. IN_DIE takes 2, XSCALE 6 and a get 1, UDMA 13 and a get
	 * 6, rxe what the queue was made with. */
	NDA_DEV enum nda_status put_pieces_nbi(
		uint32_t pe, uint64_t dst, const nda_piece *pieces, uint32_t n_pieces)
	{
		return post_pieces(verb::write, pe, dst, pieces, n_pieces);
	}

	NDA_DEV enum nda_status get_pieces_nbi(
		uint32_t pe, uint64_t src, const nda_piece *pieces, uint32_t n_pieces)
	{
		return post_pieces(verb::read, pe, src, pieces, n_pieces);
	}

	/* Writes @value to the 8 bytes at @dst of @pe's heap, after everything put there
	 * before by this handle. Aligned to 8, else NDA_INVALID. */
	NDA_DEV enum nda_status signal_nbi(uint32_t pe, uint64_t dst, uint64_t value)
	{
		return pe < n_pes_ && dst % 8 == 0 ? post_signal(pe, dst, value)
						   : NDA_INVALID;
	}

	/* put_nbi(), and signal_nbi() of @value to @sig behind it: who sees the signal at
	 * @pe sees the data. */
	NDA_DEV enum nda_status put_signal_nbi(uint32_t pe, uint64_t dst, uint64_t src,
		uint64_t n, uint64_t sig, uint64_t value)
	{
		if (pe >= n_pes_ || sig % 8 != 0)
			return NDA_INVALID;
		if constexpr (Engine::supports(verb::write_signal, 0)) {
			if (n != 0 && (Engine::reaches_itself || pe != my_pe_)) {
				uint64_t q = queue_address(pe);
				operation op =
					heap_operation(verb::write_signal, q, dst, src, n);
				op.signal_va = sig + NDA_QUEUE_LOAD(core_, q, remote_delta);
				op.signal_value = value;
				return post_operation(pe, op);
			}
		}
		enum nda_status status = put_nbi(pe, dst, src, n);
		return status == NDA_OK ? post_signal(pe, sig, value) : status;
	}

	/*
	 * Atomics on the T (uint32_t, uint64_t) at @dst of @pe's heap, atomic among
	 * operations of NICs of that kind. Starting one, those that fetch leave the former
	 * value for read_result() at @result in the own heap, 8 bytes; each that is
	 * outstanding needs a result of its own. NDA_INVALID also: not aligned to T, or
	 * @result not to 8; without one: the queue has no scratch. What the format has:
	 * IN_DIE and rxe fetch_add and compare_swap (and add) of 8 bytes, XSCALE all, UDMA
	 * fetch_add and compare_swap (and add), and the rest only where it is waited for;
	 * 1825 none.
	 */
	template <class T>
	NDA_DEV enum nda_status fetch_add_nbi(
		uint32_t pe, uint64_t dst, T value, uint64_t result)
	{
		return start_atomic<T>(verb::fetch_add, pe, dst, value, T{0}, result);
	}
	/* Stores @swap if the value is @compare. */
	template <class T>
	NDA_DEV enum nda_status compare_swap_nbi(
		uint32_t pe, uint64_t dst, T compare, T swap, uint64_t result)
	{
		return start_atomic<T>(verb::compare_swap, pe, dst, swap, compare, result);
	}
	template <class T>
	NDA_DEV enum nda_status swap_nbi(
		uint32_t pe, uint64_t dst, T value, uint64_t result)
	{
		return start_atomic<T>(verb::swap, pe, dst, value, T{0}, result);
	}
	template <class T>
	NDA_DEV enum nda_status fetch_nbi(uint32_t pe, uint64_t dst, uint64_t result)
	{
		return fetch_add_nbi<T>(pe, dst, T{0}, result);
	}
	template <class T>
	NDA_DEV enum nda_status fetch_and_nbi(
		uint32_t pe, uint64_t dst, T value, uint64_t result)
	{
		return start_atomic<T>(verb::fetch_and, pe, dst, value, T{0}, result);
	}
	template <class T>
	NDA_DEV enum nda_status fetch_or_nbi(
		uint32_t pe, uint64_t dst, T value, uint64_t result)
	{
		return start_atomic<T>(verb::fetch_or, pe, dst, value, T{0}, result);
	}
	template <class T>
	NDA_DEV enum nda_status fetch_xor_nbi(
		uint32_t pe, uint64_t dst, T value, uint64_t result)
	{
		return start_atomic<T>(verb::fetch_xor, pe, dst, value, T{0}, result);
	}
	template <class T>
	NDA_DEV enum nda_status add_nbi(uint32_t pe, uint64_t dst, T value)
	{
		return fetch_add_nbi<T>(pe, dst, value, scratch(pe, NDA_SCRATCH_DISCARD));
	}
	template <class T>
	NDA_DEV enum nda_status set_nbi(uint32_t pe, uint64_t dst, T value)
	{
		return swap_nbi<T>(pe, dst, value, scratch(pe, NDA_SCRATCH_DISCARD));
	}
	template <class T>
	NDA_DEV enum nda_status and_nbi(uint32_t pe, uint64_t dst, T value)
	{
		return fetch_and_nbi<T>(pe, dst, value, scratch(pe, NDA_SCRATCH_DISCARD));
	}
	template <class T>
	NDA_DEV enum nda_status or_nbi(uint32_t pe, uint64_t dst, T value)
	{
		return fetch_or_nbi<T>(pe, dst, value, scratch(pe, NDA_SCRATCH_DISCARD));
	}
	template <class T>
	NDA_DEV enum nda_status xor_nbi(uint32_t pe, uint64_t dst, T value)
	{
		return fetch_xor_nbi<T>(pe, dst, value, scratch(pe, NDA_SCRATCH_DISCARD));
	}
	/* Adds @value to the binary32 at @dst, aligned to 4. */
	NDA_DEV enum nda_status add_f32_nbi(uint32_t pe, uint64_t dst, float value)
	{
		if constexpr (Engine::supports(verb::add_f32, 4)) {
			if (pe >= n_pes_ || dst % 4 != 0)
				return NDA_INVALID;
			return post_staged(pe, dst, verb::add_f32, bits_of(value), 4);
		} else {
			return NDA_NOT_SUPPORTED;
		}
	}

	/* What an atomic of this handle that is done left at @result. */
	template <class T>
	NDA_DEV T read_result(uint64_t result) const
	{
		core_.invalidate(site::result, result, sizeof(T));
		return Engine::template result<T>(core_.template load<T>(result));
	}

	/* The same, and then as quiet(): @former is set on NDA_OK. NDA_INVALID also where
	 * the queue has no scratch. */
	template <class T>
	NDA_DEV enum nda_status fetch_add(uint32_t pe, uint64_t dst, T value, T *former)
	{
		return finish_atomic<T>(verb::fetch_add, pe, dst, value, T{0}, former);
	}
	template <class T>
	NDA_DEV enum nda_status compare_swap(
		uint32_t pe, uint64_t dst, T compare, T swap, T *former)
	{
		return finish_atomic<T>(verb::compare_swap, pe, dst, swap, compare, former);
	}
	template <class T>
	NDA_DEV enum nda_status swap(uint32_t pe, uint64_t dst, T value, T *former)
	{
		return finish_atomic<T>(verb::swap, pe, dst, value, T{0}, former);
	}
	template <class T>
	NDA_DEV enum nda_status fetch(uint32_t pe, uint64_t dst, T *value)
	{
		return fetch_add<T>(pe, dst, T{0}, value);
	}
	template <class T>
	NDA_DEV enum nda_status fetch_and(uint32_t pe, uint64_t dst, T value, T *former)
	{
		return finish_atomic<T>(verb::fetch_and, pe, dst, value, T{0}, former);
	}
	template <class T>
	NDA_DEV enum nda_status fetch_or(uint32_t pe, uint64_t dst, T value, T *former)
	{
		return finish_atomic<T>(verb::fetch_or, pe, dst, value, T{0}, former);
	}
	template <class T>
	NDA_DEV enum nda_status fetch_xor(uint32_t pe, uint64_t dst, T value, T *former)
	{
		return finish_atomic<T>(verb::fetch_xor, pe, dst, value, T{0}, former);
	}
	/* compare_swap of 16 bytes, aligned to 16; low half first. */
	NDA_DEV enum nda_status compare_swap16(uint32_t pe, uint64_t dst,
		const uint64_t compare[2], const uint64_t swap[2], uint64_t former[2])
	{
		if constexpr (Engine::supports(verb::compare_swap, 16)) {
			uint64_t result = scratch(pe, NDA_SCRATCH_RESULT);

			if (is_own(pe))
				return NDA_NOT_SUPPORTED;
			if (result == 0)
				return NDA_INVALID;
			operation op = heap_operation(
				verb::compare_swap, queue_address(pe), dst, result, 16);
			/* The target's alignment counts, and the heaps' may differ. */
			if (op.remote_va % 16 != 0)
				return NDA_INVALID;
			op.size = 16;
			op.operand = swap[0];
			op.operand_high = swap[1];
			op.compare = compare[0];
			op.compare_high = compare[1];
			enum nda_status status = after_earlier_results(pe);
			if (status == NDA_OK)
				status = post_operation(pe, op);
			if (status == NDA_OK)
				status = quiet(pe);
			if (status == NDA_OK) {
				core_.invalidate(site::result, result, 16);
				former[0] = core_.template load<uint64_t>(result);
				former[1] = core_.template load<uint64_t>(result + 8);
			}
			return status;
		} else {
			return NDA_NOT_SUPPORTED;
		}
	}

	/* Strided: @n elements of @bytes, the strides in bytes, as one batch. */
	NDA_DEV enum nda_status put_strided_nbi(uint32_t pe, uint64_t dst, uint64_t src,
		uint64_t dst_stride, uint64_t src_stride, uint64_t bytes, uint64_t n)
	{
		auto b = batch(pe);
		enum nda_status status = pe < n_pes_ ? NDA_OK : NDA_INVALID;

		for (uint64_t i = 0; status == NDA_OK && i < n; i++)
			status = b.put_nbi(
				dst + i * dst_stride, src + i * src_stride, bytes);
		return status;
	}

	NDA_DEV enum nda_status get_strided_nbi(uint32_t pe, uint64_t dst, uint64_t src,
		uint64_t dst_stride, uint64_t src_stride, uint64_t bytes, uint64_t n)
	{
		auto b = batch(pe);
		enum nda_status status = pe < n_pes_ ? NDA_OK : NDA_INVALID;

		for (uint64_t i = 0; status == NDA_OK && i < n; i++)
			status = b.get_nbi(
				dst + i * dst_stride, src + i * src_stride, bytes);
		return status;
	}

	/* Whether the T at own address @addr compares with @value so. T: 4 or 8 bytes,
	 * signed or not. What the peer wrote before can be read after true, once the core
	 * has invalidated it. */
	template <class T>
	NDA_DEV bool test(uint64_t addr, cmp how, T value) const
	{
		static_assert((sizeof(T) == 4 || sizeof(T) == 8) && T(1) / 2 == T(0),
			"integers of 4 or 8 bytes");
		core_.invalidate(site::waited_word, addr, sizeof(T));
		T there = static_cast<T>(
			core_.template load_acquire<typename word_of<sizeof(T)>::type>(
				addr));

		switch (how) {
		case cmp::eq:
			return there == value;
		case cmp::ne:
			return there != value;
		case cmp::ge:
			return there >= value;
		case cmp::gt:
			return there > value;
		case cmp::le:
			return there <= value;
		case cmp::lt:
			return there < value;
		}
		return false;
	}

	/* Waits for that: NDA_OK, or NDA_TIMEOUT or NDA_ABORTED. */
	template <class T>
	NDA_DEV enum nda_status wait_until(uint64_t addr, cmp how, T value) const
	{
		Deadline<Core> deadline(core_, limits_);
		bool expired = false;

		for (;;) {
			if (test<T>(addr, how, value))
				return NDA_OK;
			if (expired)
				return deadline.status();
			expired = deadline.passed();
			core_.relax();
		}
	}

	/*
	 * Waits until every PE of the team has come here; each calls it with one handle.
	 * NDA_INVALID also: the own PE is not in it, or the team has no memory. After
	 * another failure the team's epochs may differ: it is not to be used again.
	 */
	NDA_DEV enum nda_status sync(const team &t)
	{
		uint32_t rank = (my_pe_ - t.start) / (t.stride == 0 ? 1 : t.stride);

		if (n_pes_ == 0 || t.stride == 0 || t.size == 0 || t.sync == 0 ||
			t.sync % NDA_CACHE_LINE != 0 || my_pe_ < t.start ||
			t.size > uint32_t{1} << NDA_SYNC_ROUNDS ||
			(my_pe_ - t.start) % t.stride != 0 || rank >= t.size ||
			t.start >= n_pes_ || (n_pes_ - 1 - t.start) / t.stride < t.size - 1)
			return NDA_INVALID;

		if (t.size == 1)
			return NDA_OK;

		/* No epoch for a round that cannot be. */
		for (uint32_t hop = 1; hop < t.size; hop <<= 1) {
			uint32_t to = t.start + (rank + hop) % t.size * t.stride;
			enum nda_status status = is_own(to) ? NDA_OK : queue(to).usable();
			if (status != NDA_OK)
				return status;
		}

		/* Only this PE's handles write the epoch, perhaps on another core before.
		 */
		uint64_t counter = t.sync + uint64_t{NDA_SYNC_ROUNDS} * NDA_CACHE_LINE;
		core_.invalidate(site::sync_look, counter, sizeof(uint64_t));
		uint64_t epoch = core_.template load<uint64_t>(counter) + 1;
		core_.template store<uint64_t>(counter, epoch);
		core_.clean(site::sync_counter, counter, sizeof(epoch));

		uint64_t cell = t.sync;
		for (uint32_t hop = 1; hop < t.size; hop <<= 1) {
			uint32_t to = t.start + (rank + hop) % t.size * t.stride;
			enum nda_status status = post_signal(to, cell, epoch);

			if (status == NDA_OK)
				status = wait_until<uint64_t>(cell, cmp::ge, epoch);
			if (status != NDA_OK)
				return status;
			cell += NDA_CACHE_LINE;
		}
		return NDA_OK;
	}

	/* quiet() to all PEs, then sync(). */
	NDA_DEV enum nda_status barrier(const team &t)
	{
		enum nda_status status = quiet();

		return status == NDA_OK ? sync(t) : status;
	}

	/* The same with all PEs. */
	NDA_DEV enum nda_status sync_all() { return sync(all()); }
	NDA_DEV enum nda_status barrier_all() { return barrier(all()); }
	NDA_DEV team all() const { return {0, 1, n_pes_, sync_}; }

	/* Waits until everything posted to @pe is done. */
	NDA_DEV enum nda_status quiet(uint32_t pe)
	{
		if (pe >= n_pes_)
			return NDA_INVALID;

		Deadline<Core> deadline(core_, limits_);
		return quiet_row(queue_address(pe), pe, &deadline);
	}

	/* Of all queues of this core to @pe, within one deadline. No other handle on them
	 * may be in use meanwhile. The status of the first queue that has one. */
	NDA_DEV enum nda_status quiet_queues(uint32_t pe)
	{
		if (pe >= n_pes_)
			return NDA_INVALID;

		Deadline<Core> deadline(core_, limits_);
		enum nda_status first = NDA_OK;
		bool any = false;
		uint64_t row = uint64_t{n_pes_} * NDA_QUEUE_STRIDE;
		uint64_t q = queue_address(pe) - queue_index_ * row;
		for (uint32_t i = 0; i < n_queues_; i++, q += row) {
			if (i != queue_index_)
				core_.invalidate(site::table_queues, q, NDA_QUEUE_STRIDE);
			if (!exists(q))
				continue;
			any = true;
			enum nda_status status = queue_at(q).quiet(&deadline);
			if (first == NDA_OK)
				first = status;
		}
		return any || is_own(pe) ? first : NDA_INVALID;
	}

	/* Waits for all PEs, within one deadline. The status of the first PE that has one.
	 */
	NDA_DEV enum nda_status quiet()
	{
		Deadline<Core> deadline(core_, limits_);
		enum nda_status first = n_pes_ == 0 ? NDA_INVALID : NDA_OK;

		for (uint32_t pe = 0; pe < n_pes_; pe++) {
			if (!exists(queue_address(pe)))
				continue;
			enum nda_status status = queue(pe).quiet(&deadline);
			if (first == NDA_OK)
				first = status;
		}
		return first;
	}

	/* What is posted to @pe after this takes effect after what was posted before: the
	 * NIC waits, not this call. */
	NDA_DEV enum nda_status fence(uint32_t pe)
	{
		if (pe >= n_pes_)
			return NDA_INVALID;
		return is_own(pe) ? NDA_OK : queue(pe).fence();
	}

	/* The same for every PE: each one's next operations after each one's earlier ones.
	 * The status of the first PE that has one. */
	NDA_DEV enum nda_status fence()
	{
		enum nda_status first = n_pes_ == 0 ? NDA_INVALID : NDA_OK;

		for (uint32_t pe = 0; pe < n_pes_; pe++) {
			if (!exists(queue_address(pe)))
				continue;
			enum nda_status status = queue(pe).fence();
			if (first == NDA_OK)
				first = status;
		}
		return first;
	}

	/* Opens a batch: operations on @pe that share one doorbell, see nda/aiv/batch.h. */
	NDA_DEV Batch<Core, Engine> batch(uint32_t pe)
	{
		return Batch<Core, Engine>(this, pe);
	}

private:
	/* Whether the row at @q is a queue: that to the own PE need not be. */
	NDA_DEV bool exists(uint64_t q) const
	{
		return NDA_QUEUE_LOAD(core_, q, valid) != 0;
	}

	friend class Batch<Core, Engine>;
	friend class SharedDevice<Core, Engine>;
	typedef typename Engine::template queue<Core> Queue;

	template <class T>
	NDA_DEV T header(uint64_t table, size_t offset) const
	{
		return core_.template load<T>(table + offset);
	}

	NDA_DEV Queue queue(uint32_t pe) const { return queue_at(queue_address(pe)); }

	NDA_DEV Queue queue_at(uint64_t q) const { return Queue(core_, q, limits_); }

	template <verb what>
	NDA_DEV bool post_to_heap(
		uint64_t q, uint64_t symmetric, uint64_t local, uint64_t n) const
	{
		return Engine::template post_to_heap<what>(core_, q, symmetric, local, n);
	}

	/* Without what only some verbs have: clearing it would cost the usual ones. */
	NDA_DEV operation heap_operation(
		verb what, uint64_t q, uint64_t symmetric, uint64_t local, uint64_t n) const
	{
		operation op;

		op.op = what;
		op.size = 0;
		op.want_completion = op.even_empty = op.fence = false;
		op.inline_data = op.inline_operand = op.ordered = false;
		op.rkey = NDA_QUEUE_LOAD(core_, q, rkey);
		op.rkey_id = NDA_QUEUE_LOAD(core_, q, rkey_id);
		op.lkey = NDA_QUEUE_LOAD(core_, q, lkey);
		op.remote_va = symmetric + NDA_QUEUE_LOAD(core_, q, remote_delta);
		op.local_va = local;
		op.length = n;
		op.n_pieces = 0;
		return op;
	}

	/* Arguments in put_nbi()'s positions, so that the way here is one jump. */
	NDA_DEV_SLOW enum nda_status put_slow(
		uint64_t q, uint64_t dst, uint64_t src, uint64_t n) const noexcept
	{
		return post_row(q, heap_operation(verb::write, q, dst, src, n));
	}

	NDA_DEV_SLOW enum nda_status get_slow(
		uint64_t q, uint64_t dst, uint64_t src, uint64_t n) const noexcept
	{
		return post_row(q, heap_operation(verb::read, q, src, dst, n));
	}

	NDA_DEV static bool in_region(const nda_region &r, uint64_t offset, uint64_t n)
	{
		return offset <= r.size_bytes && n <= r.size_bytes - offset;
	}

	template <verb what>
	NDA_DEV enum nda_status post_regions(uint32_t pe, const nda_region &remote,
		uint64_t remote_off, const nda_region &local, uint64_t local_off,
		uint64_t n) const
	{
		if (pe >= n_pes_ || remote.pe != pe || local.pe != my_pe_ ||
			!in_region(remote, remote_off, n) ||
			!in_region(local, local_off, n) ||
			!Engine::keys_fit(remote.key, local.key))
			return NDA_INVALID;

		if (Engine::template post_to_region<what>(core_, queue_address(pe),
			    remote.addr + remote_off, remote.key, local.addr + local_off,
			    local.key, n))
			return NDA_OK;

		operation op = {};
		op.op = what;
		op.rkey = remote.key;
		op.rkey_id = remote.key_id;
		op.lkey = local.key;
		op.remote_va = remote.addr + remote_off;
		op.local_va = local.addr + local_off;
		op.length = n;
		return post_operation(pe, op);
	}

	NDA_DEV enum nda_status post_pieces(verb what, uint32_t pe, uint64_t symmetric,
		const nda_piece *pieces, uint32_t n_pieces) const
	{
		if constexpr (Engine::has_pieces) {
			if (pe >= n_pes_ || n_pieces == 0)
				return NDA_INVALID;

			operation op =
				heap_operation(what, queue_address(pe), symmetric, 0, 0);
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

	NDA_DEV bool is_own(uint32_t pe) const
	{
		return !Engine::reaches_itself && pe == my_pe_;
	}

	/* An address in the queue's scratch, 0 if it has none. */
	NDA_DEV uint64_t scratch(uint32_t pe, uint64_t offset) const
	{
		uint64_t base = pe < n_pes_
			? NDA_QUEUE_LOAD(core_, queue_address(pe), scratch_local)
			: 0;

		return base == 0 ? 0 : base + offset;
	}

	NDA_DEV static uint32_t bits_of(float value)
	{
		union {
			float number;
			uint32_t bits;
		} u = {value};

		return u.bits;
	}

	template <uint32_t bytes, class = void>
	struct word_of {
		typedef uint64_t type;
	};
	template <class Any>
	struct word_of<4, Any> {
		typedef uint32_t type;
	};

	template <class T>
	NDA_DEV enum nda_status start_atomic(verb what, uint32_t pe, uint64_t dst,
		uint64_t operand, uint64_t compare, uint64_t result) const
	{
		return Engine::supports(what, sizeof(T))
			? post_atomic<T>(what, pe, dst, operand, compare, result)
			: NDA_NOT_SUPPORTED;
	}

	template <class T>
	NDA_DEV enum nda_status post_atomic(verb what, uint32_t pe, uint64_t dst,
		uint64_t operand, uint64_t compare, uint64_t result) const
	{
		static_assert(sizeof(T) == 4 || sizeof(T) == 8, "4 or 8 bytes");
		if (pe >= n_pes_ || dst % sizeof(T) != 0 || result % 8 != 0 || result == 0)
			return NDA_INVALID;

		operation op =
			heap_operation(what, queue_address(pe), dst, result, sizeof(T));
		op.size = sizeof(T);
		op.operand = operand;
		op.compare = compare;
		return post_operation(pe, op);
	}

	/* One word for results is enough: what an earlier one that timed out still writes
	 * is overwritten by the time that a later one is done. */
	NDA_DEV enum nda_status after_earlier_results(uint32_t pe)
	{
		if constexpr (Engine::keeps_order)
			return NDA_OK;
		else
			return fence(pe);
	}

	template <class T>
	NDA_DEV enum nda_status finish_atomic(verb what, uint32_t pe, uint64_t dst,
		uint64_t operand, uint64_t compare, T *former)
	{
		if (Engine::emulates(what, sizeof(T)) && !is_own(pe))
			return emulate_atomic<T>(
				what, pe, dst, static_cast<T>(operand), former);

		uint64_t result = scratch(pe, NDA_SCRATCH_RESULT);
		enum nda_status status = after_earlier_results(pe);
		/* The own PE's core can do all of them. */
		if (status == NDA_OK)
			status = Engine::emulates(what, sizeof(T))
				? post_atomic<T>(what, pe, dst, operand, compare, result)
				: start_atomic<T>(what, pe, dst, operand, compare, result);
		if (status == NDA_OK)
			status = quiet(pe);
		if (status == NDA_OK)
			*former = is_own(pe) ? read_own_result<T>(result)
					     : read_result<T>(result);
		return status;
	}

	/* What this core left there, in its own order. */
	template <class T>
	NDA_DEV T read_own_result(uint64_t result) const
	{
		core_.invalidate(site::result, result, sizeof(T));
		return core_.template load<T>(result);
	}

	/* By compare_swap until nobody else came between. */
	template <class T>
	NDA_DEV_SLOW enum nda_status emulate_atomic(
		verb what, uint32_t pe, uint64_t dst, T operand, T *former) noexcept
	{
		Deadline<Core> deadline(core_, limits_);
		T seen = 0;
		enum nda_status status =
			dst % sizeof(T) == 0 ? read_word<T>(pe, dst, &seen) : NDA_INVALID;

		while (status == NDA_OK) {
			T expected = seen;

			status = compare_swap<T>(pe, dst, expected,
				combine<T>(what, expected, operand), &seen);
			if (status != NDA_OK || seen == expected)
				break;
			if (deadline.passed())
				status = deadline.status();
		}
		if (status == NDA_OK)
			*former = seen;
		return status;
	}

	/* The T at @dst as it is now. */
	template <class T>
	NDA_DEV enum nda_status read_word(uint32_t pe, uint64_t dst, T *value)
	{
		uint64_t result = scratch(pe, NDA_SCRATCH_RESULT);

		if (result == 0)
			return NDA_INVALID;
		enum nda_status status = after_earlier_results(pe);
		if (status == NDA_OK)
			status = get(pe, result, dst, sizeof(T));
		if (status == NDA_OK)
			*value = read_result<T>(result);
		return status;
	}

	/* A WRITE of the value after everything put before. */
	NDA_DEV enum nda_status post_signal(uint32_t pe, uint64_t dst, uint64_t value)
	{
		if constexpr (Engine::has_inline_operand) {
			operation op =
				heap_operation(verb::write, queue_address(pe), dst, 0, 8);
			op.inline_operand = true;
			op.operand = value;
			op.ordered = true;
			return post_operation(pe, op);
		} else {
			return post_staged(pe, dst, verb::write, value, 8);
		}
	}

	/* An operation whose payload is a word: it lies in the queue's scratch until the
	 * NIC has read it. */
	NDA_DEV_SLOW enum nda_status post_staged(uint32_t pe, uint64_t dst, verb what,
		uint64_t value, uint64_t bytes) noexcept
	{
		uint64_t q = queue_address(pe);
		operation op = heap_operation(what, q, dst, 0, bytes);

		op.operand = value;
		op.ordered = true;
		if (is_own(pe)) {
			op.inline_operand = true;
			return post_operation(pe, op);
		}
		uint64_t base = NDA_QUEUE_LOAD(core_, q, scratch_local);
		if (base == 0)
			return NDA_INVALID;
		uint64_t word = base + NDA_SCRATCH_WORDS + uint64_t{next_word_} * 16;
		next_word_ = next_word_ + 1 < NDA_SCRATCH_N_WORDS ? next_word_ + 1 : 0;

		/* It may still be read for whoever used it last, also on another core,
		 * which may have changed its neighbours too. */
		core_.invalidate(site::staged_look, word, 16);
		uint32_t user = core_.template load<uint32_t>(word + 8);
		uint32_t tail = NDA_QUEUE_LOAD(core_, q, state.tail);
		enum nda_status status = NDA_OK;
		if (user - tail - 1 < NDA_QUEUE_LOAD(core_, q, state.head) - tail) {
			Deadline<Core> deadline(core_, limits_);
			status = queue_at(q).wait_until_done(user, &deadline);
		}
		if (status != NDA_OK)
			return status;
		core_.template store<uint64_t>(word, value);
		core_.template store<uint32_t>(word + 8, queue_at(q).head_after(op));
		core_.clean(site::staged_word, word, 12);
		op.local_va = word;
		op.want_completion = true;
		return queue_at(q).post(op, false);
	}

	NDA_DEV enum nda_status quiet_row(
		uint64_t q, uint32_t pe, Deadline<Core> *deadline) const
	{
		return is_own(pe) ? NDA_OK : queue_at(q).quiet(deadline);
	}

	NDA_DEV enum nda_status post_row(uint64_t q, const operation &op) const
	{
		if constexpr (!Engine::reaches_itself) {
			if (q == queue_address(my_pe_))
				return do_locally(core_, op);
		}
		return queue_at(q).post(op, false);
	}

	NDA_DEV_SLOW enum nda_status post_operation(
		uint32_t pe, const operation &op) const noexcept
	{
		return post_row(queue_address(pe), op);
	}

	/* Takes the queue at @q for a batch, unless it has one or is lent. */
	NDA_DEV bool open_batch(uint64_t q) const
	{
		uint32_t flags = NDA_QUEUE_LOAD(core_, q, state.flags);

		if ((flags & (NDA_QUEUE_IN_BATCH | NDA_QUEUE_IN_VIEW | NDA_QUEUE_SHARED)) !=
			0)
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
		else
			queue_at(q).settle_line();
	}

	struct batch_result {
		enum nda_status status;
		bool open; /* the batch has the queue, and the line holds its window */
	};

	/* For a batch, which has the queue already if @open. */
	NDA_DEV_SLOW batch_result post_in_batch(uint64_t q, uint64_t symmetric,
		uint64_t local, uint64_t n, verb what, bool want_completion,
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

		operation op = heap_operation(what, q, symmetric, local, n);
		if constexpr (!Engine::reaches_itself) {
			if (q == queue_address(my_pe_))
				return {do_locally(core_, op), true};
		}
		op.want_completion = want_completion;
		return {queue_at(q).post(op, true), true};
	}

	static constexpr uint32_t max_pes_ = UINT32_MAX / NDA_QUEUE_STRIDE;

	Core core_;
	uint64_t queues_ = 0; /* of this core */
	wait_limits limits_ = {};
	uint32_t n_pes_ = 0; /* 0: not open */
	uint32_t my_pe_ = 0;
	uint64_t heap_base_ = 0;
	uint64_t heap_bytes_ = 0;
	uint64_t sync_ = 0;
	uint32_t queue_index_ = 0;
	uint32_t n_queues_ = 0;
	uint32_t next_word_ = 0; /* of a queue's scratch */
};

} // namespace nda::aiv

#include <nda/aiv/batch.h>

#endif
