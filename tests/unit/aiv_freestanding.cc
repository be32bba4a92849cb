/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Compiled by `make lint-freestanding`, never run: everything that a kernel may use of
 * nda/hw and nda/aiv, on a core that needs nothing but memory, as a device compiler would
 * see it. freestanding.sh says what the object must not contain.
 */
#include <nda/aiv/device.h>
#include <nda/aiv/in_die_queue.h>
#include <nda/aiv/rxe_queue.h>
#include <nda/aiv/udma_relay.h>
#include <nda/aiv/xscale_queue.h>
#include <nda/hw/udma.h>
#include <nda/hw/xscale.h>

namespace {

class BareCore {
public:
	[[maybe_unused]] static constexpr bool stages_wqes = false;
	[[maybe_unused]] static constexpr bool has_atomics = false;

	template <class T>
	NDA_DEV T load(uint64_t addr) const
	{
		return *reinterpret_cast<volatile T *>(addr);
	}
	template <class T>
	NDA_DEV void store(uint64_t addr, T value) const
	{
		*reinterpret_cast<volatile T *>(addr) = value;
	}
	template <class T>
	NDA_DEV T load_acquire(uint64_t addr) const
	{
		return __atomic_load_n(reinterpret_cast<T *>(addr), __ATOMIC_ACQUIRE);
	}
	template <class T>
	NDA_DEV void store_release(uint64_t addr, T value) const
	{
		__atomic_store_n(reinterpret_cast<T *>(addr), value, __ATOMIC_RELEASE);
	}
	template <class T>
	NDA_DEV void st_dev(uint64_t addr, T value) const
	{
		store_release(addr, value);
	}
	NDA_DEV void clean(nda::aiv::site, uint64_t, uint64_t) const {}
	NDA_DEV void invalidate(nda::aiv::site, uint64_t, uint64_t) const {}
	NDA_DEV void dsb(nda::aiv::site) const {}
	NDA_DEV void copy(uint64_t dst, uint64_t src, uint64_t bytes) const
	{
		for (uint64_t i = 0; i < bytes; i++)
			store<uint8_t>(dst + i, load<uint8_t>(src + i));
	}
	NDA_DEV uint64_t cycles() const { return load<uint64_t>(0x100000); }
	NDA_DEV uint64_t cycles_per_us() const { return 1000; }
	NDA_DEV void relax() const {}
};

} // namespace

using namespace nda::aiv;
namespace format = nda::hw::hns1825;

extern "C" int nda_kernel(uint64_t table, uint32_t pe, uint64_t a, uint64_t b, uint64_t n,
	const nda_region *remote, const nda_region *local)
{
	Device<BareCore> device;
	int status = device.open(BareCore(), table, 0);

	status |= device.put_nbi(pe, a, b, n) | device.get_nbi(pe, a, b, n);
	status |= device.put(pe, a, b, n) | device.get(pe, a, b, n);
	status |= device.put_nbi(pe, *remote, 0, *local, 0, n);
	status |= device.get_nbi(pe, *local, 0, *remote, 0, n);
	status |= device.fence(pe) | device.quiet(pe) | device.quiet();
	status |= device.signal_nbi(pe, a, n) | device.put_signal_nbi(pe, a, b, n, a, n);
	status |= device.put_strided_nbi(pe, a, b, n, n, 4, 3) |
		device.get_strided_nbi(pe, a, b, n, n, 4, 3) | device.quiet_queues(pe);
	status |= device.wait_until<int32_t>(a, cmp::lt, -1) | device.barrier_all();
	auto batch = device.batch(pe);
	status |= batch.put_nbi(a, b, n) | batch.get_nbi(a, b, n);
	status |= batch.put_submit(a, b, n) | batch.get_submit(a, b, n) | batch.submit();
	status |= hns1825::Queue<BareCore>(
		device.core(), device.queue_address(pe), wait_limits{1, 0})
			  .poll_cq(1);
	return status;
}

/* Every call, for engines that have the most of them. */
template <class Engine>
static inline int whole_kernel(uint64_t table, uint32_t pe, uint64_t a, uint64_t b,
	uint64_t n, const nda_region *remote, const nda_region *local,
	const nda_piece *pieces, uint64_t *former)
{
	Device<BareCore, Engine> device;
	int status = device.open(BareCore(), table, 0);

	status |= device.put_nbi(pe, a, b, n) | device.get_nbi(pe, a, b, n);
	status |= device.put_nbi(pe, *remote, 0, *local, 0, n);
	status |= device.put_immediate_nbi(pe, a, b, n, 1);
	status |= device.put_inline_nbi(pe, a, b, n);
	status |= device.put_pieces_nbi(pe, a, pieces, 2);
	status |= device.get_pieces_nbi(pe, a, pieces, 2);
	status |= device.template fetch_add_nbi<uint64_t>(pe, a, 1, b);
	status |= device.template compare_swap_nbi<uint32_t>(pe, a, 1, 2, b);
	status |= device.template fetch_add<uint64_t>(pe, a, 1, former);
	status |= device.template compare_swap<uint64_t>(pe, a, 1, 2, former);
	status |= device.fence(pe) | device.quiet(pe) | device.quiet();
	status |= device.signal_nbi(pe, a, n) | device.put_signal_nbi(pe, a, b, n, a, n);
	status |= device.put_strided_nbi(pe, a, b, n, n, 4, 3) |
		device.get_strided_nbi(pe, a, b, n, n, 4, 3) | device.quiet_queues(pe);
	status |=
		device.template wait_until<int32_t>(a, cmp::lt, -1) | device.barrier_all();
	auto batch = device.batch(pe);
	status |= batch.put_nbi(a, b, n) | batch.get_nbi(a, b, n);
	status |= batch.put_submit(a, b, n) | batch.get_submit(a, b, n) | batch.submit();
	return status;
}

extern "C" int nda_kernel_rxe(uint64_t table, uint32_t pe, uint64_t a, uint64_t b,
	uint64_t n, const nda_region *remote, const nda_region *local,
	const nda_piece *pieces, uint64_t *former)
{
	return whole_kernel<rxe::Engine>(table, pe, a, b, n, remote, local, pieces, former);
}

extern "C" int nda_kernel_in_die(uint64_t table, uint32_t pe, uint64_t a, uint64_t b,
	uint64_t n, const nda_region *remote, const nda_region *local,
	const nda_piece *pieces, uint64_t *former)
{
	return whole_kernel<in_die::Engine>(
		table, pe, a, b, n, remote, local, pieces, former);
}

extern "C" int nda_host_side_in_die(nda_queue *q, uint32_t head, uint32_t tail)
{
	q->state = in_die::derive_state(*q, head, tail, tail);
	return in_die::queue_usable(*q) + lend(&q->state) +
		in_die::take_back(*q, &q->state);
}

extern "C" void nda_model_in_die(const uint64_t *in, uint64_t *out, uint32_t index)
{
	namespace d = nda::hw::in_die;
	d::wqe w = d::decode(in);
	d::cqe c = d::decode_cqe(in);

	d::encode(w, out);
	d::encode(c, out + d::wqe_words);
	out[12] = d::encode(d::decode_doorbell(in[0])) ^
		d::encode(d::decode_cq_doorbell(in[1]));
	out[13] = static_cast<uint64_t>(d::check(in, index, 256));
	out[14] = d::cq_record(index) + d::syndrome_of(d::status_of(c.status)) +
		d::cqe_sub_status(index);
	out[15] = static_cast<uint64_t>(d::cqe_look(index, index, 256));
}

extern "C" int nda_kernel_xscale(uint64_t table, uint32_t pe, uint64_t a, uint64_t b,
	uint64_t n, const nda_region *remote, const nda_region *local,
	const nda_piece *pieces, uint64_t *former)
{
	return whole_kernel<xscale::Engine>(
		table, pe, a, b, n, remote, local, pieces, former);
}

extern "C" int nda_host_side_xscale(nda_queue *q, uint32_t head, uint32_t tail)
{
	q->state = xscale::derive_state(*q, head, tail, tail);
	return xscale::queue_usable(*q);
}

extern "C" int nda_host_side_rxe(nda_queue *q, uint32_t head, uint32_t tail)
{
	q->state = rxe::derive_state(head, tail, tail);
	return rxe::queue_usable(*q);
}

extern "C" void nda_model_rxe(const uint64_t *in, uint64_t *out)
{
	rxe::format::wqe w = rxe::format::decode(in);
	rxe::format::cqe c = rxe::format::decode_cqe(in);

	rxe::format::encode(w, out);
	rxe::format::encode(c, out + rxe::format::wqe_words);
	out[40] = rxe::format::status_of(c.status);
}

extern "C" int nda_host_side(nda_queue *q, uint32_t head, uint32_t tail)
{
	q->state = hns1825::derive_state(*q, head, tail, tail);
	return hns1825::queue_usable(*q) + lend(&q->state) +
		hns1825::take_back(*q, &q->state);
}

extern "C" void nda_model(const uint64_t *in, uint64_t *out, uint32_t index)
{
	format::wqe w = format::decode(in);
	format::cqe c = format::decode_cqe(in);

	format::encode(w, out);
	format::encode(c, out + 8);
	out[12] = format::encode(format::decode_doorbell(in[0]));
	out[13] = static_cast<uint64_t>(format::check(in, index, 256));
	out[14] = format::cq_ring(index) + format::status_of(c.syndrome) +
		format::cq_record_ci(index) + format::sq_record_head(index);
	out[15] = static_cast<uint64_t>(format::cqe_look(in[0], index, 256));
}

extern "C" void nda_model_xscale(const uint64_t *in, uint64_t *out, uint32_t index)
{
	namespace x = nda::hw::xscale;
	x::wqe w = x::decode(in);
	x::cqe c = x::decode_cqe(in);

	x::encode(w, out);
	x::encode(c, out + 16);
	out[20] = x::encode(x::decode_doorbell(in[0])) ^
		x::encode(x::decode_cq_doorbell(in[1]));
	out[21] = static_cast<uint64_t>(x::check(in, index));
	out[22] = x::atomic_outcome(
		w.opcode, x::decode_atomic(w.opcode, w.more, index & 1), in[0]);
	out[23] = uint64_t{x::status_of(c.error)} + x::cqe_ready(in[3], index, 256) +
		x::result4(index);
}

extern "C" int nda_kernel_udma(uint64_t table, uint32_t pe, uint64_t a, uint64_t b,
	uint64_t n, const nda_region *remote, const nda_region *local,
	const nda_piece *pieces, uint64_t *former)
{
	Device<BareCore, udma::Engine> device;
	int status = udma::open_relay(&device, BareCore(), table, 0, pe);

	status |= device.put_nbi(pe, a, b, n) | device.get_nbi(pe, a, b, n);
	status |= device.put_nbi(pe, *remote, 0, *local, 0, n);
	status |= device.put_signal_nbi(pe, a, b, n, a, n);
	status |= device.put_immediate_nbi(pe, a, b, n, 1);
	status |= device.put_inline_nbi(pe, a, b, n);
	status |= device.put_pieces_nbi(pe, a, pieces, 2);
	status |= device.add_nbi<uint64_t>(pe, a, 1);
	status |= device.compare_swap<uint64_t>(pe, a, 1, 2, former);
	status |= device.compare_swap16(pe, a, former, former, former);
	status |= device.fetch_xor<uint64_t>(pe, a, 1, former);
	status |= device.fence(pe) | device.quiet(pe) | device.quiet();
	auto batch = device.batch(pe);
	status |= batch.put_nbi(a, b, n) | batch.put_submit(a, b, n) | batch.submit();
	return status;
}

extern "C" int nda_host_side_udma(nda_queue *q, uint32_t head, uint32_t tail)
{
	udma::describe_peer(q, 1, q->key_words, 2, 3, true, 4, 1, 0);
	q->state = udma::derive_state(*q, head, tail, tail);
	return udma::queue_usable(*q);
}

extern "C" void nda_model_udma(const uint64_t *in, uint64_t *out, uint32_t index)
{
	namespace format = udma::format;
	format::control f = format::decode(in);
	format::cqe c = format::decode_cqe(in);
	format::notify n = format::decode_notify(in);
	format::sge s = format::decode_sge(in);

	format::encode(f, out);
	format::encode(c, out + format::control_words);
	out[14] = static_cast<uint64_t>(format::check(in, index, 256, {true, 64}));
	out[15] = format::operand(in, 8, 4) + n.va + s.va + format::bbs_of(f);
	out[16] = format::status_of(c.status, c.substatus) + format::cqe_good(in[0]);
	out[17] = format::cq_record(index, format::ci_mask_22) +
		format::cqe_ready(in[0], index, 256);
}
