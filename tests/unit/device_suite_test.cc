/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What Device offers, on every engine, over the real libnda and software NIC: under the
 * simulator with several seeds, and on threads. */
#include <stdint.h>
#include <string.h>

#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <tests/sim/engines.h>
#include <tests/sim/world.h>

namespace {

using namespace nda;
using namespace nda::test;
using aiv::cmp;
using aiv::verb;

uint8_t *bytes_at(uint64_t addr)
{
	return reinterpret_cast<uint8_t *>(addr);
}

template <class T>
T peek(uint64_t addr)
{
	return __atomic_load_n(reinterpret_cast<T *>(addr), __ATOMIC_ACQUIRE);
}

template <class T>
void poke(uint64_t addr, T value)
{
	__atomic_store_n(reinterpret_cast<T *>(addr), value, __ATOMIC_RELEASE);
}

uint8_t pattern(uint64_t seed, uint64_t i)
{
	return static_cast<uint8_t>(seed * 31 + i * 7 + (i >> 8) + 1);
}

void fill(uint64_t addr, uint64_t n, uint64_t seed)
{
	for (uint64_t i = 0; i < n; i++)
		bytes_at(addr)[i] = pattern(seed, i);
}

/* Where it first differs; n if nowhere. */
uint64_t matching(uint64_t addr, uint64_t n, uint64_t seed)
{
	uint64_t i = 0;

	while (i < n && bytes_at(addr)[i] == pattern(seed, i))
		i++;
	return i;
}

template <class S>
class DeviceSuite : public testing::Test {
protected:
	using Engine = typename S::Engine;
	using Core = typename S::Core;
	using Device = aiv::Device<Core, Engine>;
	using Batch = aiv::Batch<Core, Engine>;
	static constexpr bool simulated = std::is_same<Core, SimCore>::value;

	static WorldOptions options(uint32_t n_pes = 3)
	{
		WorldOptions o;

		o.nic = nic_of<Engine>::name;
		o.n_pes = n_pes;
		o.heap_bytes = 1 << 18;
		o.manual = simulated;
		if (!simulated)
			o.timeout_us = 20000000; /* is never waited for */
		return o;
	}

	void make(const WorldOptions &o) { world_ = std::make_unique<World>(o); }

	/* Runs @body on every core, its heap and region zeroed before, and then @check:
	 * with several seeds where that makes a difference. */
	void run(const std::function<void(Device &, uint32_t pe)> &body,
		const std::function<void()> &check = nullptr)
	{
		run_cores(
			[&](Core core, uint32_t pe, uint32_t index) {
				Device device;

				ASSERT_EQ(device.open(core, world_->table(pe), index),
					NDA_OK);
				body(device, pe);
			},
			check);
	}

	void run_cores(const std::function<void(Core, uint32_t pe, uint32_t core)> &body,
		const std::function<void()> &check = nullptr)
	{
		for (uint64_t seed = 1; seed <= (simulated ? seeds_ : 1); seed++) {
			SCOPED_TRACE("seed " + std::to_string(seed));
			for (uint32_t pe = 0; pe < n_pes(); pe++) {
				memset(bytes_at(world_->heap(pe)), 0,
					world_->options().heap_bytes);
				if (world_->options().region_bytes != 0)
					memset(bytes_at(world_->region_addr(pe)), 0,
						world_->options().region_bytes);
			}
			if constexpr (simulated) {
				Sim sim(seed);

				EXPECT_TRUE(world_->run(
					&sim, [&](uint32_t pe, uint32_t core, SimCore c) {
						body(c, pe, core);
					}));
			} else {
				world_->run_threads(
					[&](uint32_t pe, uint32_t core, aiv::SoftCore c) {
						body(c, pe, core);
					});
			}
			EXPECT_EQ(world_->violations(), 0u);
			if (check && !this->HasFailure())
				check();
			if (this->HasFailure())
				return;
		}
	}

	uint64_t heap(uint32_t pe) const { return world_->heap(pe); }
	uint32_t n_pes() const { return world_->options().n_pes; }

	/* Lets others go on for a while. */
	static void dawdle(const Core &core, uint64_t rounds)
	{
		for (uint64_t i = 0; i < rounds; i++)
			core.relax();
	}

	std::unique_ptr<World> world_;
	uint64_t seeds_ = 4;
};
TYPED_TEST_SUITE(DeviceSuite, EnginesAndCores, SettingName);

constexpr uint64_t sizes[] = {0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 255, 256, 257,
	1023, 4095, 4096, 4097, 9001};
constexpr uint64_t room = 10240; /* for the longest, with what must stay untouched around */

/* ---- Put and get ---- */

TYPED_TEST(DeviceSuite, PutMovesBytesOfEverySizeToEveryPeAndNoOthers)
{
	this->make(this->options());
	this->run([&](typename TestFixture::Device &device, uint32_t pe) {
		uint64_t base = this->heap(pe), src = base + 4 * room;

		fill(src, room, pe);
		for (uint64_t n : sizes) {
			for (uint32_t to = 0; to < this->n_pes(); to++)
				ASSERT_EQ(device.put(to, base + pe * room + 8 + 1, src, n),
					NDA_OK);
			ASSERT_EQ(device.barrier_all(), NDA_OK);
			for (uint32_t from = 0; from < this->n_pes(); from++) {
				uint64_t at = base + from * room + 9;

				ASSERT_EQ(matching(at, n, from), n)
					<< "from " << from << " to " << pe;
				ASSERT_EQ(bytes_at(at)[-1], 0);
				ASSERT_EQ(bytes_at(at)[n], 0) << n << " bytes";
			}
			ASSERT_EQ(device.barrier_all(), NDA_OK);
		}
	});
}

TYPED_TEST(DeviceSuite, GetMovesBytesOfEverySizeFromEveryPeAndNoOthers)
{
	this->make(this->options());
	this->run([&](typename TestFixture::Device &device, uint32_t pe) {
		uint64_t base = this->heap(pe), dst = base + 4 * room + 9;

		fill(base, room, pe);
		ASSERT_EQ(device.barrier_all(), NDA_OK);
		for (uint32_t from = 0; from < this->n_pes(); from++)
			for (uint64_t n : sizes) {
				memset(bytes_at(dst - 1), 0xee, room);
				ASSERT_EQ(device.get(from, dst, base, n), NDA_OK);
				ASSERT_EQ(matching(dst, n, from), n)
					<< "from " << from << " to " << pe;
				ASSERT_EQ(bytes_at(dst)[-1], 0xee);
				ASSERT_EQ(bytes_at(dst)[n], 0xee);
			}
		ASSERT_EQ(device.barrier_all(), NDA_OK);
	});
}

TYPED_TEST(DeviceSuite, MorePutsThanTheRingHoldsWaitForCredit)
{
	for (uint32_t signal_every : {1u, 7u, 32u}) {
		WorldOptions o = this->options(2);
		o.signal_every = signal_every;
		this->make(o);
		this->run([&](typename TestFixture::Device &device, uint32_t pe) {
			uint64_t base = this->heap(pe);

			fill(base, 4000, pe);
			for (uint64_t i = 0; i < 4000; i += 8)
				ASSERT_EQ(
					device.put_nbi(i % 3 == 0 ? pe : 1 - pe,
						base + 0x4000 + pe * 4000 + i, base + i, 8),
					NDA_OK);
			ASSERT_EQ(device.barrier_all(), NDA_OK);
			for (uint32_t from = 0; from < 2; from++)
				for (uint64_t i = 0; i < 4000; i += 8)
					for (uint64_t k = i; k < i + 8; k++)
						ASSERT_EQ(bytes_at(base + 0x4000 +
								  from * 4000)[k],
							(i % 3 == 0) == (from == pe)
								? pattern(from, k)
								: 0);
			ASSERT_EQ(device.barrier_all(), NDA_OK);
		});
	}
}

TYPED_TEST(DeviceSuite, RegionsOutsideTheHeap)
{
	WorldOptions o = this->options();
	o.region_bytes = 8192;
	this->make(o);
	this->run([&](typename TestFixture::Device &device, uint32_t pe) {
		uint64_t own = this->world_->region_addr(pe);

		fill(own, 1000, pe);
		for (uint32_t to = 0; to < this->n_pes(); to++) {
			nda_region local = this->world_->own_region(pe, to);
			nda_region remote = this->world_->peer_region(to, pe);

			ASSERT_EQ(
				device.put_nbi(to, remote, 1000 + pe * 333, local, 1, 333),
				NDA_OK);
			ASSERT_EQ(device.put_nbi(to, remote, 8192 - 333, local, 1, 334),
				NDA_INVALID);
		}
		ASSERT_EQ(device.barrier_all(), NDA_OK);
		for (uint32_t from = 0; from < this->n_pes(); from++) {
			nda_region local = this->world_->own_region(pe, from);
			nda_region remote = this->world_->peer_region(from, pe);

			for (uint64_t i = 0; i < 333; i++)
				ASSERT_EQ(bytes_at(own + 1000 + from * 333)[i],
					pattern(from, i + 1));
			ASSERT_EQ(device.get_nbi(
					  from, local, 4000 + from * 1000, remote, 0, 1000),
				NDA_OK);
		}
		ASSERT_EQ(device.quiet(), NDA_OK);
		for (uint32_t from = 0; from < this->n_pes(); from++)
			ASSERT_EQ(matching(own + 4000 + from * 1000, 1000, from), 1000u);
		ASSERT_EQ(device.barrier_all(), NDA_OK);
	});
}

TYPED_TEST(DeviceSuite, StridedTransfersMoveEachElement)
{
	this->make(this->options());
	this->run([&](typename TestFixture::Device &device, uint32_t pe) {
		/* More elements than the ring holds. */
		constexpr uint64_t n = 150, element = 5, wide = 17, narrow = 6;
		uint64_t base = this->heap(pe);

		fill(base, n * narrow, pe);
		ASSERT_EQ(device.barrier_all(), NDA_OK);
		for (uint32_t to = 0; to < this->n_pes(); to++) {
			ASSERT_EQ(device.put_strided_nbi(to, base + room * (1 + pe), base,
					  wide, narrow, element, n),
				NDA_OK);
			ASSERT_EQ(device.get_strided_nbi(to, base + room * (5 + to), base,
					  wide, narrow, element, n),
				NDA_OK);
			ASSERT_EQ(
				device.put_strided_nbi(to, base, base, 1, 1, 1, 0), NDA_OK);
		}
		ASSERT_EQ(device.barrier_all(), NDA_OK);
		for (uint32_t from = 0; from < this->n_pes(); from++)
			for (uint64_t i = 0; i < n * wide; i++) {
				uint8_t want = i % wide < element
					? pattern(from, i / wide * narrow + i % wide)
					: 0;

				ASSERT_EQ(bytes_at(base + room * (1 + from))[i], want) << i;
				ASSERT_EQ(bytes_at(base + room * (5 + from))[i], want) << i;
			}
		ASSERT_EQ(device.barrier_all(), NDA_OK);
	});
}

TYPED_TEST(DeviceSuite, InlinePutTakesTheBytesAtOnceOrSaysThatItCannot)
{
	using E = typename TestFixture::Engine;
	this->make(this->options());
	this->run([&](typename TestFixture::Device &device, uint32_t pe) {
		uint64_t base = this->heap(pe), src = base + 0x1000;

		for (uint32_t to = 0; to < this->n_pes(); to++)
			for (uint64_t n : {0, 1, 3, 8, 11, 16}) {
				fill(src, 16, n);
				enum nda_status status = device.put_inline_nbi(
					to, base + pe * 256 + n * 16, src, n);
				ASSERT_EQ(
					status, E::has_inline ? NDA_OK : NDA_NOT_SUPPORTED);
				memset(bytes_at(src), 0xee, 16);
			}
		ASSERT_EQ(device.barrier_all(), NDA_OK);
		for (uint32_t from = 0; from < this->n_pes(); from++)
			for (uint64_t n : {0, 1, 3, 8, 11, 16}) {
				uint64_t at = base + from * 256 + n * 16;

				if (E::has_inline)
					ASSERT_EQ(matching(at, n, n), n) << "from " << from;
				else
					ASSERT_EQ(peek<uint64_t>(at), 0u);
			}
		ASSERT_EQ(device.barrier_all(), NDA_OK);
	});
}

TYPED_TEST(DeviceSuite, PiecesAreGatheredAndScatteredOrRefused)
{
	using E = typename TestFixture::Engine;
	/* A READ of XSCALE has one local range. */
	constexpr bool scatters = E::table_format != NDA_FORMAT_XSCALE;
	this->make(this->options());
	this->run([&](typename TestFixture::Device &device, uint32_t pe) {
		uint64_t base = this->heap(pe);
		uint32_t to = (pe + 1) % this->n_pes();
		nda_piece out[] = {{base + 100, 33}, {base, 1}};
		nda_piece in[] = {{base + 900, 1}, {base + 1000, 33}};
		const enum nda_status puts = E::has_pieces ? NDA_OK : NDA_NOT_SUPPORTED;
		const enum nda_status gets =
			scatters || !E::has_pieces ? puts : NDA_INVALID;

		fill(base, 200, pe);
		for (uint32_t peer : {to, pe}) {
			ASSERT_EQ(device.put_pieces_nbi(peer, base + 500, out, 2), puts);
			ASSERT_EQ(device.fence(peer), NDA_OK);
			ASSERT_EQ(device.get_pieces_nbi(peer, base + 500, in, 2), gets);
			ASSERT_EQ(device.get_pieces_nbi(peer, base + 501, in + 1, 1), puts);
			ASSERT_EQ(device.quiet(), NDA_OK);
			for (uint64_t i = 0; i < 33 && E::has_pieces; i++)
				ASSERT_EQ(bytes_at(base + 1000)[i],
					i < 32 ? pattern(pe, 101 + i) : pattern(pe, 0));
			ASSERT_EQ(bytes_at(base + 900)[0],
				gets == NDA_OK ? pattern(pe, 100) : 0);
			bytes_at(base + 900)[0] = 0;
			ASSERT_EQ(device.barrier_all(), NDA_OK);
		}
	});
}

/* ---- Order ---- */

TYPED_TEST(DeviceSuite, WhoSeesASignalSeesWhatWasPutBefore)
{
	for (const char *inject : {"", "reorder:8,seed:5"}) {
		WorldOptions o = this->options();
		o.inject = inject;
		o.mtu_bytes = 256;
		this->make(o);
		this->run([&](typename TestFixture::Device &device, uint32_t pe) {
			uint64_t base = this->heap(pe), data = base + room,
				 signal = base + 64;

			for (uint64_t round = 1; round <= 25; round++) {
				uint32_t to =
					static_cast<uint32_t>((pe + round) % this->n_pes());
				uint32_t from = static_cast<uint32_t>(
					(pe + 2 * this->n_pes() - round % this->n_pes()) %
					this->n_pes());

				fill(base + 3 * room, 2000, round + pe);
				for (uint64_t at = 0; at < 2000; at += 500)
					ASSERT_EQ(device.put_nbi(to, data + at,
							  base + 3 * room + at, 500),
						NDA_OK);
				ASSERT_EQ(device.signal_nbi(to, signal, round), NDA_OK);
				ASSERT_EQ(device.template wait_until<uint64_t>(
						  signal, cmp::ge, round),
					NDA_OK);
				ASSERT_EQ(matching(data, 2000, round + from), 2000u)
					<< "round " << round << " from " << from;
				ASSERT_EQ(device.barrier_all(), NDA_OK);
			}
		});
	}
}

TYPED_TEST(DeviceSuite, PutWithSignalIsDataThenSignal)
{
	for (const char *inject : {"", "reorder:8,seed:9"}) {
		WorldOptions o = this->options();
		o.inject = inject;
		o.mtu_bytes = 256;
		this->make(o);
		this->run([&](typename TestFixture::Device &device, uint32_t pe) {
			uint64_t base = this->heap(pe), signal = base + 64;

			for (uint64_t round = 1; round <= 25; round++) {
				uint64_t n = round % 5 == 0 ? 0 : round * 50;
				uint64_t src = base + 4 * room;

				fill(src, n, round + pe);
				for (uint32_t to = 0; to < this->n_pes(); to++)
					ASSERT_EQ(device.put_signal_nbi(to,
							  base + (1 + pe) * room + 3, src,
							  n, signal + 8 * pe, round),
						NDA_OK);
				for (uint32_t from = 0; from < this->n_pes(); from++) {
					ASSERT_EQ(
						device.template wait_until<uint64_t>(
							signal + 8 * from, cmp::ge, round),
						NDA_OK);
					ASSERT_EQ(matching(base + (1 + from) * room + 3, n,
							  round + from),
						n)
						<< "round " << round << " from " << from;
				}
				ASSERT_EQ(device.barrier_all(), NDA_OK);
			}
		});
	}
}

TYPED_TEST(DeviceSuite, SignalsNeedAlignment)
{
	this->make(this->options());
	this->run([&](typename TestFixture::Device &device, uint32_t pe) {
		uint64_t base = this->heap(pe);

		EXPECT_EQ(device.signal_nbi(0, base + 4, 1), NDA_INVALID);
		EXPECT_EQ(
			device.put_signal_nbi(0, base, base, 8, base + 4, 1), NDA_INVALID);
		EXPECT_EQ(device.signal_nbi(this->n_pes(), base, 1), NDA_INVALID);
	});
}

TYPED_TEST(DeviceSuite, FenceKeepsAnEarlierGetFromSeeingALaterPut)
{
	for (const char *inject : {"", "reorder:16,seed:3"}) {
		WorldOptions o = this->options(2);
		o.inject = inject;
		o.mtu_bytes = 256;
		this->make(o);
		this->run([&](typename TestFixture::Device &device, uint32_t pe) {
			uint64_t base = this->heap(pe);
			uint64_t theirs = base + (1 + pe) * room; /* of the peer's heap */

			for (uint64_t round = 1; round <= 20; round++) {
				fill(base + 3 * room, 1000, round);
				ASSERT_EQ(device.get_nbi(
						  1 - pe, base + 4 * room, theirs, 1000),
					NDA_OK);
				ASSERT_EQ(device.fence(1 - pe), NDA_OK);
				ASSERT_EQ(device.put_nbi(
						  1 - pe, theirs, base + 3 * room, 1000),
					NDA_OK);
				ASSERT_EQ(device.fence(1 - pe), NDA_OK);
				ASSERT_EQ(device.get_nbi(
						  1 - pe, base + 5 * room, theirs, 1000),
					NDA_OK);
				ASSERT_EQ(device.quiet(), NDA_OK);
				if (round > 1) {
					ASSERT_EQ(
						matching(base + 4 * room, 1000, round - 1),
						1000u);
				}
				ASSERT_EQ(matching(base + 5 * room, 1000, round), 1000u);
			}
			ASSERT_EQ(device.barrier_all(), NDA_OK);
		});
	}
}

/* ---- Atomics ---- */

template <class T>
T former_to_next(verb what, T former, T operand, T compare)
{
	switch (what) {
	case verb::fetch_add:
		return static_cast<T>(former + operand);
	case verb::compare_swap:
		return former == compare ? operand : former;
	case verb::swap:
		return operand;
	case verb::fetch_and:
		return former & operand;
	case verb::fetch_or:
		return former | operand;
	default:
		return former ^ operand;
	}
}

constexpr verb atomics[] = {verb::fetch_add, verb::compare_swap, verb::swap,
	verb::fetch_and, verb::fetch_or, verb::fetch_xor};

template <class T, class Device>
enum nda_status do_atomic(Device &device, verb what, uint32_t pe, uint64_t dst, T operand,
	T compare, T *former)
{
	switch (what) {
	case verb::fetch_add:
		return device.template fetch_add<T>(pe, dst, operand, former);
	case verb::compare_swap:
		return device.template compare_swap<T>(pe, dst, compare, operand, former);
	case verb::swap:
		return device.template swap<T>(pe, dst, operand, former);
	case verb::fetch_and:
		return device.template fetch_and<T>(pe, dst, operand, former);
	case verb::fetch_or:
		return device.template fetch_or<T>(pe, dst, operand, former);
	default:
		return device.template fetch_xor<T>(pe, dst, operand, former);
	}
}

template <class T, class Device>
enum nda_status start_atomic(Device &device, verb what, uint32_t pe, uint64_t dst,
	T operand, T compare, uint64_t result)
{
	switch (what) {
	case verb::fetch_add:
		return device.template fetch_add_nbi<T>(pe, dst, operand, result);
	case verb::compare_swap:
		return device.template compare_swap_nbi<T>(
			pe, dst, compare, operand, result);
	case verb::swap:
		return device.template swap_nbi<T>(pe, dst, operand, result);
	case verb::fetch_and:
		return device.template fetch_and_nbi<T>(pe, dst, operand, result);
	case verb::fetch_or:
		return device.template fetch_or_nbi<T>(pe, dst, operand, result);
	default:
		return device.template fetch_xor_nbi<T>(pe, dst, operand, result);
	}
}

/* Each PE on words of its own at every PE, against a host's reference. */
template <class T, class Engine, class Device>
void check_atomics(Device &device, uint64_t base, uint32_t pe, uint32_t n_pes)
{
	std::mt19937_64 random(pe + sizeof(T));
	std::vector<T> reference(n_pes, T{0});
	uint64_t word = base + 512 + pe * 32;

	for (uint32_t i = 0; i < 60; i++) {
		verb what = atomics[random() % 6];
		uint32_t to = static_cast<uint32_t>(random() % n_pes);
		T operand = static_cast<T>(random()), former = T{77};
		T compare = random() % 2 == 0 ? reference[to] : operand;
		bool wait = random() % 2 == 0;
		uint64_t result = base + 256 + pe * 8;
		bool has = Engine::supports(what, sizeof(T)) ||
			(wait && Engine::emulates(what, sizeof(T)));
		enum nda_status status = wait
			? do_atomic<T>(device, what, to, word, operand, compare, &former)
			: start_atomic<T>(device, what, to, word, operand, compare, result);

		ASSERT_EQ(status, has ? NDA_OK : NDA_NOT_SUPPORTED)
			<< "verb " << static_cast<int>(what) << " of " << sizeof(T)
			<< " bytes, to " << to << " from " << pe << ", waits " << wait;
		if (!has)
			continue;
		if (!wait) {
			ASSERT_EQ(device.quiet(to), NDA_OK);
			former = device.template read_result<T>(result);
		}
		ASSERT_EQ(former, reference[to]) << "verb " << static_cast<int>(what);
		reference[to] = former_to_next(what, reference[to], operand, compare);
	}
	/* Those that fetch nothing. */
	for (uint32_t to = 0; to < n_pes; to++) {
		auto next = [&](verb what, enum nda_status status, T operand) {
			ASSERT_EQ(status,
				Engine::supports(what, sizeof(T)) ? NDA_OK
								  : NDA_NOT_SUPPORTED)
				<< "verb " << static_cast<int>(what) << " to " << to;
			if (status == NDA_OK)
				reference[to] =
					former_to_next(what, reference[to], operand, T{0});
			ASSERT_EQ(device.quiet(to), NDA_OK);
		};
		T v = static_cast<T>(random());

		next(verb::fetch_add, device.template add_nbi<T>(to, word, v), v);
		next(verb::fetch_xor, device.template xor_nbi<T>(to, word, v), v);
		next(verb::fetch_or, device.template or_nbi<T>(to, word, T{5}), T{5});
		next(verb::fetch_and, device.template and_nbi<T>(to, word, T{6}), T{6});
		next(verb::swap, device.template set_nbi<T>(to, word, T{9}), T{9});
		next(verb::fetch_add, device.template add_nbi<T>(to, word, v), v);
	}
	for (uint32_t to = 0; to < n_pes; to++) {
		uint64_t back = base + 128;

		ASSERT_EQ(device.get(to, back, word, 16), NDA_OK);
		ASSERT_EQ(peek<T>(back), reference[to]) << "at " << to;
		ASSERT_EQ(peek<T>(back + sizeof(T)), T{0}) << "beside it";
	}
}

TYPED_TEST(DeviceSuite, AtomicsAsOnAHostOrNotSupported)
{
	this->make(this->options());
	this->run([&](typename TestFixture::Device &device, uint32_t pe) {
		using E = typename TestFixture::Engine;

		check_atomics<uint64_t, E>(device, this->heap(pe), pe, this->n_pes());
		ASSERT_EQ(device.barrier_all(), NDA_OK);
		memset(bytes_at(this->heap(pe)), 0, 1024);
		ASSERT_EQ(device.barrier_all(), NDA_OK);
		check_atomics<uint32_t, E>(device, this->heap(pe), pe, this->n_pes());
		ASSERT_EQ(device.barrier_all(), NDA_OK);
	});
}

TYPED_TEST(DeviceSuite, AtomicsOfManyAreAtomic)
{
	using E = typename TestFixture::Engine;
	using D = typename TestFixture::Device;
	constexpr uint32_t rounds = 40;
	this->make(this->options());
	if (!E::supports(verb::fetch_add, 8)) {
		this->run([&](D &device, uint32_t pe) {
			EXPECT_EQ(device.template add_nbi<uint64_t>(0, this->heap(pe), 1),
				NDA_NOT_SUPPORTED);
		});
		return;
	}
	std::vector<std::vector<uint64_t>> fetched(3);
	this->run(
		[&](D &device, uint32_t pe) {
			uint64_t base = this->heap(pe);

			/* Each outstanding one has a result of its own. */
			for (uint32_t i = 0; i < rounds; i++)
				ASSERT_EQ(device.template fetch_add_nbi<uint64_t>(
						  0, base + 8, 1, base + 1024 + 8 * i),
					NDA_OK);
			ASSERT_EQ(device.quiet(), NDA_OK);
			fetched[pe].clear();
			for (uint32_t i = 0; i < rounds; i++)
				fetched[pe].push_back(device.template read_result<uint64_t>(
					base + 1024 + 8 * i));
			/* A lock of compare and swap around a plain counter. */
			for (uint32_t i = 0; i < 5; i++) {
				uint64_t seen = 1;

				while (seen != 0)
					ASSERT_EQ(device.template compare_swap<uint64_t>(
							  1, base + 16, 0, pe + 1, &seen),
						NDA_OK);
				ASSERT_EQ(device.get(1, base + 64, base + 24, 8), NDA_OK);
				poke<uint64_t>(base + 64, peek<uint64_t>(base + 64) + 1);
				ASSERT_EQ(device.put(1, base + 24, base + 64, 8), NDA_OK);
				ASSERT_EQ(device.template compare_swap<uint64_t>(
						  1, base + 16, pe + 1, 0, &seen),
					NDA_OK);
				ASSERT_EQ(seen, pe + 1);
			}
			ASSERT_EQ(device.barrier_all(), NDA_OK);
			EXPECT_EQ(peek<uint64_t>(base + 8), pe == 0 ? 3 * rounds : 0u);
			EXPECT_EQ(peek<uint64_t>(base + 24), pe == 1 ? 15u : 0u);
		},
		[&] {
			std::vector<bool> met(3 * rounds);

			for (const auto &of_pe : fetched)
				for (uint64_t value : of_pe) {
					ASSERT_LT(value, met.size());
					EXPECT_FALSE(met[value])
						<< value << " was fetched twice";
					met[value] = true;
				}
		});
}

TYPED_TEST(DeviceSuite, AtomicsRefuseWrongAddresses)
{
	using E = typename TestFixture::Engine;
	using D = typename TestFixture::Device;
	this->make(this->options());
	this->run([&](D &device, uint32_t pe) {
		uint64_t base = this->heap(pe), former = 0;

		if (!E::supports(verb::fetch_add, 8)) {
			EXPECT_EQ(device.template fetch_add_nbi<uint64_t>(
					  0, base, 1, base + 8),
				NDA_NOT_SUPPORTED);
			EXPECT_EQ(device.template fetch_add<uint64_t>(0, base, 1, &former),
				NDA_NOT_SUPPORTED);
			EXPECT_EQ(device.template add_nbi<uint64_t>(0, base, 1),
				NDA_NOT_SUPPORTED);
			return;
		}
		EXPECT_EQ(device.template fetch_add_nbi<uint64_t>(0, base + 4, 1, base),
			NDA_INVALID);
		EXPECT_EQ(device.template fetch_add_nbi<uint64_t>(0, base, 1, base + 4),
			NDA_INVALID);
		EXPECT_EQ(device.template fetch_add_nbi<uint64_t>(0, base, 1, 0),
			NDA_INVALID);
		EXPECT_EQ(device.template fetch_add<uint64_t>(
				  this->n_pes(), base, 1, &former),
			NDA_INVALID);
		EXPECT_EQ(device.template add_nbi<uint64_t>(this->n_pes(), base, 1),
			NDA_INVALID);
	});
}

TYPED_TEST(DeviceSuite, SwapsSixteenBytesOrNotSupported)
{
	using E = typename TestFixture::Engine;
	this->make(this->options());
	this->run([&](typename TestFixture::Device &device, uint32_t pe) {
		uint64_t word = this->heap(pe) + 256, former[2] = {9, 9};
		const uint64_t zero[2] = {}, swap[2] = {pe + 1, 7}, other[2] = {pe + 1, 8};
		uint32_t to = (pe + 1) % this->n_pes(), from = (pe + 2) % this->n_pes();

		if (!E::supports(verb::compare_swap, 16)) {
			EXPECT_EQ(device.compare_swap16(to, word, zero, swap, former),
				NDA_NOT_SUPPORTED);
			return;
		}
		EXPECT_EQ(device.compare_swap16(pe, word, zero, swap, former),
			NDA_NOT_SUPPORTED);
		EXPECT_EQ(device.compare_swap16(to, word + 8, zero, swap, former),
			NDA_INVALID);
		ASSERT_EQ(device.compare_swap16(to, word, zero, swap, former), NDA_OK);
		EXPECT_EQ(former[0], 0u);
		EXPECT_EQ(former[1], 0u);
		/* Half of what is compared with is there. */
		ASSERT_EQ(device.compare_swap16(to, word, other, zero, former), NDA_OK);
		EXPECT_EQ(former[0], pe + 1);
		EXPECT_EQ(former[1], 7u);
		ASSERT_EQ(device.barrier_all(), NDA_OK);
		EXPECT_EQ(peek<uint64_t>(word), from + 1);
		EXPECT_EQ(peek<uint64_t>(word + 8), 7u);
	});
}

TYPED_TEST(DeviceSuite, AddsToFloatsOrNotSupported)
{
	using E = typename TestFixture::Engine;
	this->make(this->options());
	this->run([&](typename TestFixture::Device &device, uint32_t pe) {
		uint64_t base = this->heap(pe);
		bool has = E::supports(verb::add_f32, 4);

		for (int i = 0; i < 10; i++)
			for (uint32_t to = 0; to < this->n_pes(); to++)
				ASSERT_EQ(device.add_f32_nbi(to, base + 64,
						  1.5f + static_cast<float>(pe)),
					has ? NDA_OK : NDA_NOT_SUPPORTED);
		ASSERT_EQ(device.barrier_all(), NDA_OK);
		uint32_t bits = peek<uint32_t>(base + 64);
		float sum;
		memcpy(&sum, &bits, sizeof(sum));
		EXPECT_EQ(sum, has ? 75.0f : 0.0f);
		ASSERT_EQ(device.barrier_all(), NDA_OK);
	});
}

/* ---- Waits ---- */

template <class T, class Device>
void check_comparisons(Device &device, uint64_t addr)
{
	const T values[] = {T(0), T(1), T(-1), std::numeric_limits<T>::min(),
		std::numeric_limits<T>::max(), T(1000)};

	for (T there : values)
		for (T value : values) {
			memcpy(bytes_at(addr), &there, sizeof(T));
			EXPECT_EQ(device.template test<T>(addr, cmp::eq, value),
				there == value);
			EXPECT_EQ(device.template test<T>(addr, cmp::ne, value),
				there != value);
			EXPECT_EQ(device.template test<T>(addr, cmp::ge, value),
				there >= value);
			EXPECT_EQ(device.template test<T>(addr, cmp::gt, value),
				there > value);
			EXPECT_EQ(device.template test<T>(addr, cmp::le, value),
				there <= value);
			EXPECT_EQ(device.template test<T>(addr, cmp::lt, value),
				there < value);
		}
}

TYPED_TEST(DeviceSuite, TestComparesInSixWaysSignedAndUnsigned)
{
	this->make(this->options(1));
	this->run([&](typename TestFixture::Device &device, uint32_t pe) {
		check_comparisons<uint32_t>(device, this->heap(pe));
		check_comparisons<int32_t>(device, this->heap(pe));
		check_comparisons<uint64_t>(device, this->heap(pe));
		check_comparisons<int64_t>(device, this->heap(pe));
	});
}

TYPED_TEST(DeviceSuite, WaitUntilEndsWhenAPeerWrites)
{
	this->make(this->options(2));
	this->run([&](typename TestFixture::Device &device, uint32_t pe) {
		struct Case {
			cmp how;
			int64_t before, value, write;
		};
		const Case cases[] = {{cmp::eq, 0, 5, 5}, {cmp::ne, 5, 5, 6},
			{cmp::ge, 6, 8, 8}, {cmp::gt, 8, 8, 9}, {cmp::le, 9, -4, -4},
			{cmp::lt, -4, -4, -5}};
		uint64_t base = this->heap(pe);

		for (const Case &c : cases) {
			if (pe == 1)
				poke<int64_t>(base, c.before);
			ASSERT_EQ(device.sync_all(), NDA_OK);
			if (pe == 0) {
				this->dawdle(device.core(), 20);
				ASSERT_EQ(device.signal_nbi(
						  1, base, static_cast<uint64_t>(c.write)),
					NDA_OK);
			} else {
				ASSERT_EQ(device.template wait_until<int64_t>(
						  base, c.how, c.value),
					NDA_OK);
				ASSERT_EQ(peek<int64_t>(base), c.write);
			}
			ASSERT_EQ(device.barrier_all(), NDA_OK);
		}
	});
}

TYPED_TEST(DeviceSuite, WaitUntilEndsAtItsDeadline)
{
	WorldOptions o = this->options(1);
	o.timeout_us = 2000;
	this->make(o);
	this->run([&](typename TestFixture::Device &device, uint32_t pe) {
		uint64_t begin = device.core().cycles();

		EXPECT_EQ(device.template wait_until<uint32_t>(this->heap(pe), cmp::ne, 0u),
			NDA_TIMEOUT);
		EXPECT_GE(device.core().cycles() - begin,
			2000 * device.core().cycles_per_us());
	});
}

/* Waits for what never comes. */
template <class Device>
enum nda_status wait_in_vain(Device &device, uint32_t kind, uint64_t base)
{
	enum nda_status status = NDA_OK;

	switch (kind) {
	case 0:
		return device.template wait_until<uint64_t>(base, cmp::ne, 0u);
	case 1: /* for completions */
		return device.put(1, base + 64, base + 128, 8);
	case 2: /* for credit */
		for (int i = 0; i < 600 && status == NDA_OK; i++)
			status = device.put_nbi(1, base + 64, base + 128, 8);
		return status;
	case 3: /* for PEs */
		return device.sync_all();
	case 4: /* for credit in a batch */
		return device.put_strided_nbi(1, base + 64, base + 128, 8, 8, 8, 600);
	default:
		status = device.put_nbi(1, base + 64, base + 128, 8);
		return status == NDA_OK ? device.quiet_queues(1) : status;
	}
}

TYPED_TEST(DeviceSuite, AbortEndsEveryWait)
{
	WorldOptions o = this->options(2);
	o.inject = "drop:1";
	this->seeds_ = 1;
	for (uint32_t kind = 0; kind < 6; kind++) {
		std::atomic<bool> begun{false};

		this->make(o);
		this->run([&](typename TestFixture::Device &device, uint32_t pe) {
			if (pe == 1) {
				while (!begun.load())
					device.core().relax();
				this->dawdle(device.core(), 3);
				ASSERT_EQ(nda_group_abort(this->world_->group(0), 7), 0);
				return;
			}
			begun = true;
			EXPECT_EQ(wait_in_vain(device, kind, this->heap(pe)), NDA_ABORTED)
				<< "kind " << kind;
			EXPECT_EQ(wait_in_vain(device, kind, this->heap(pe)), NDA_ABORTED)
				<< "kind " << kind;
		});
	}
}

TYPED_TEST(DeviceSuite, WorkGoesOnAfterAnAbortIsTakenBack)
{
	WorldOptions o = this->options(2);
	o.inject = "delay-us:300";
	this->make(o);
	this->run([&](typename TestFixture::Device &device, uint32_t pe) {
		uint64_t base = this->heap(pe);
		enum nda_status status;

		fill(base + 256, 80, 4);
		ASSERT_EQ(nda_group_abort(this->world_->group(pe), 1), 0);
		ASSERT_EQ(device.put_nbi(1 - pe, base + 512, base + 256, 8), NDA_OK);
		status = device.quiet();
		/* A thread may be away until it is done. */
		EXPECT_TRUE(status == NDA_ABORTED ||
			(!TestFixture::simulated && status == NDA_OK));
		ASSERT_EQ(nda_group_abort(this->world_->group(pe), 0), 0);
		ASSERT_EQ(device.quiet(), NDA_OK);
		ASSERT_EQ(device.put_nbi(1 - pe, base + 520, base + 264, 72), NDA_OK);
		ASSERT_EQ(device.barrier_all(), NDA_OK);
		ASSERT_EQ(matching(base + 512, 80, 4), 80u);
		ASSERT_EQ(device.barrier_all(), NDA_OK);
	});
}

/* ---- Teams ---- */

TYPED_TEST(DeviceSuite, BarriersOfTeamsOfEverySize)
{
	constexpr uint32_t most = 9;
	this->make(this->options(most));
	struct Shape {
		uint32_t start, stride, size;
	};
	std::vector<Shape> shapes;
	for (uint32_t size = 1; size <= most; size++)
		shapes.push_back({most - size, 1, size});
	for (Shape s : {Shape{1, 2, 4}, Shape{0, 4, 3}, Shape{2, 3, 2}, Shape{0, 8, 2}})
		shapes.push_back(s);

	/* How far each PE has come. */
	std::vector<std::atomic<uint32_t>> come(most);
	this->run([&](typename TestFixture::Device &device, uint32_t pe) {
		for (size_t k = 0; k < shapes.size(); k++) {
			const Shape &s = shapes[k];
			aiv::team t = {s.start, s.stride, s.size,
				this->heap(pe) + k * NDA_SYNC_BYTES};
			bool in = pe >= s.start && (pe - s.start) % s.stride == 0 &&
				(pe - s.start) / s.stride < s.size;

			come[pe] = 0;
			ASSERT_EQ(device.barrier_all(), NDA_OK);
			if (!in) {
				EXPECT_EQ(device.sync(t), NDA_INVALID);
				EXPECT_EQ(device.barrier(t), NDA_INVALID);
			}
			for (uint32_t epoch = 1; in && epoch <= 20; epoch++) {
				if ((pe + epoch) % 5 == 0)
					this->dawdle(device.core(), 5);
				come[pe] = epoch;
				ASSERT_EQ(
					epoch % 2 == 0 ? device.sync(t) : device.barrier(t),
					NDA_OK);
				for (uint32_t i = 0; i < s.size; i++)
					ASSERT_GE(come[s.start + i * s.stride], epoch)
						<< "team " << k;
			}
			ASSERT_EQ(device.barrier_all(), NDA_OK);
		}
	});
}

TYPED_TEST(DeviceSuite, HundredsOfEpochsWithPesThatLagAndRunAhead)
{
	this->make(this->options(5));
	std::vector<std::atomic<uint32_t>> come(5);
	this->run([&](typename TestFixture::Device &device, uint32_t pe) {
		std::mt19937 random(pe);

		come[pe] = 0;
		ASSERT_EQ(device.sync_all(), NDA_OK);
		for (uint32_t epoch = 1; epoch <= 300; epoch++) {
			if (random() % 8 == 0)
				this->dawdle(device.core(), random() % 30);
			come[pe] = epoch;
			ASSERT_EQ(device.sync_all(), NDA_OK);
			for (uint32_t i = 0; i < 5; i++) {
				ASSERT_GE(come[i], epoch);
				ASSERT_LE(come[i], epoch + 1);
			}
		}
		ASSERT_EQ(device.barrier_all(), NDA_OK);
	});
}

/* A PE's signals of the next two rounds may come before it looks at the first. */
TYPED_TEST(DeviceSuite, ARoundTakesSignalsThatCameEarly)
{
	this->make(this->options(4));
	this->run([&](typename TestFixture::Device &device, uint32_t pe) {
		uint64_t base = this->heap(pe);

		for (uint64_t round = 0; round < 30; round++) {
			/* To the hop-1 neighbour's data only: it may lag. */
			poke<uint64_t>(base + 64, round + 1);
			ASSERT_EQ(device.put_nbi((pe + 1) % 4, base + 128 + 8 * (round % 3),
					  base + 64, 8),
				NDA_OK);
			if (pe == 2)
				this->dawdle(device.core(), 40);
			ASSERT_EQ(device.barrier_all(), NDA_OK);
			ASSERT_GE(peek<uint64_t>(base + 128 + 8 * (round % 3)), round + 1);
		}
	});
}

TYPED_TEST(DeviceSuite, ATeamMustMakeSense)
{
	this->make(this->options());
	this->run([&](typename TestFixture::Device &device, uint32_t pe) {
		uint64_t sync = this->heap(pe);

		for (aiv::team t : {aiv::team{0, 0, 3, sync}, aiv::team{0, 1, 0, sync},
			     aiv::team{0, 1, 3, 0}, aiv::team{0, 1, 3, sync + 8},
			     aiv::team{0, 1, 4, sync}, aiv::team{0, 2, 3, sync},
			     aiv::team{3, 1, 1, sync}, aiv::team{0, UINT32_MAX, 2, sync}})
			EXPECT_EQ(device.sync(t), NDA_INVALID)
				<< t.start << " " << t.stride << " " << t.size;
	});
}

/* ---- Several queues, several cores ---- */

TYPED_TEST(DeviceSuite, ACoresQueuesWorkSideBySide)
{
	WorldOptions o = this->options();
	o.queues_per_core = 3;
	o.n_cores = 2;
	this->make(o);
	std::vector<std::atomic<uint32_t>> done(this->n_pes());
	this->run_cores([&](typename TestFixture::Core core, uint32_t pe, uint32_t index) {
		typename TestFixture::Device device[3], none;
		uint64_t base = this->heap(pe), src = base + 6 * room;

		if (index == 0)
			fill(src, room, pe);
		for (uint32_t q = 0; q < 3; q++)
			ASSERT_EQ(device[q].open(core, this->world_->table(pe), index, q),
				NDA_OK);
		EXPECT_EQ(none.open(core, this->world_->table(pe), index, 3), NDA_INVALID);
		EXPECT_EQ(none.put_nbi(0, base, base, 8), NDA_INVALID);
		EXPECT_NE(device[0].queue_address(1), device[2].queue_address(1));
		/* The source is there only once core 0 has come. */
		done[pe]++;
		while (done[pe] % 2 != 0)
			core.relax();
		for (uint32_t to = 0; to < this->n_pes(); to++) {
			for (uint64_t i = 0; i < 90; i++)
				ASSERT_EQ(device[i % 3].put_nbi(to,
						  base + pe * room + index * 900 + i * 10,
						  src + index * 900 + i * 10, 10),
					NDA_OK);
			ASSERT_EQ(device[1].quiet_queues(to), NDA_OK);
			/* Everything is there: no other core is needed. */
			ASSERT_EQ(memcmp(bytes_at(this->heap(to) + pe * room + index * 900),
					  bytes_at(src + index * 900), 900),
				0);
		}
		EXPECT_EQ(device[0].quiet_queues(this->n_pes()), NDA_INVALID);
		for (uint32_t q = 0; q < 3; q++)
			ASSERT_EQ(device[q].quiet(), NDA_OK);
	});
}

/* ---- Batches ---- */

TYPED_TEST(DeviceSuite, ABatchIsPostedAtOnceAndShutsOthersOut)
{
	this->make(this->options());
	this->run([&](typename TestFixture::Device &device, uint32_t pe) {
		uint64_t base = this->heap(pe), src = base + 4 * room;

		fill(src, room, pe);
		for (uint32_t to = 0; to < this->n_pes(); to++) {
			auto batch = device.batch(to);

			for (uint64_t i = 0; i < 10; i++)
				ASSERT_EQ(batch.put_nbi(base + pe * room + i * 20,
						  src + i * 20, 20),
					NDA_OK);
			enum nda_status beside =
				device.put_nbi(to, base + 9 * room, src, 8);
			EXPECT_EQ(beside,
				TestFixture::Engine::reaches_itself || to != pe
					? NDA_INVALID
					: NDA_OK);
			ASSERT_EQ(batch.put_submit(base + pe * room + 200, src + 200, 33),
				NDA_OK);
			EXPECT_EQ(batch.submit(), NDA_INVALID);
			ASSERT_EQ(device.quiet(to), NDA_OK);
			/* The next operation opens it again. */
			ASSERT_EQ(batch.get_nbi(base + 5 * room, base + pe * room, 200),
				NDA_OK);
			ASSERT_EQ(batch.submit(), NDA_OK);
			ASSERT_EQ(device.quiet(to), NDA_OK);
			ASSERT_EQ(matching(base + 5 * room, 200, pe), 200u);
		}
		ASSERT_EQ(device.barrier_all(), NDA_OK);
		for (uint32_t from = 0; from < this->n_pes(); from++)
			ASSERT_EQ(matching(base + from * room, 233, from), 233u);
		EXPECT_EQ(device.batch(this->n_pes()).put_nbi(base, src, 8), NDA_INVALID);
		ASSERT_EQ(device.barrier_all(), NDA_OK);
	});
}

TYPED_TEST(DeviceSuite, ABatchDeeperThanTheRingRingsEarly)
{
	for (uint32_t signal_every : {1u, 32u}) {
		WorldOptions o = this->options(2);
		o.signal_every = signal_every;
		this->make(o);
		this->run([&](typename TestFixture::Device &device, uint32_t pe) {
			uint64_t base = this->heap(pe), src = base + 4 * room;

			fill(src, 3000, pe);
			{
				auto batch = device.batch(1 - pe);

				for (uint64_t i = 0; i < 3000; i += 10)
					ASSERT_EQ(batch.put_nbi(base + i, src + i, 10),
						NDA_OK);
			}
			ASSERT_EQ(device.barrier_all(), NDA_OK);
			ASSERT_EQ(matching(base, 3000, 1 - pe), 3000u);
			ASSERT_EQ(device.barrier_all(), NDA_OK);
		});
	}
}

/* ---- Errors ---- */

TYPED_TEST(DeviceSuite, AnErrorIsStickyOnItsQueueAndNotOnOthers)
{
	this->seeds_ = 1;
	for (uint32_t signal_every : {1u, 8u}) {
		WorldOptions o = this->options();
		o.signal_every = signal_every;
		this->make(o);
		this->run([&](typename TestFixture::Device &device, uint32_t pe) {
			uint64_t base = this->heap(pe), src = base + 4 * room;
			/* Beyond what the peer has registered. */
			uint64_t nowhere = base + (uint64_t{1} << 40);

			if (pe != 0)
				return;
			fill(src, 100, 3);
			ASSERT_EQ(device.put_nbi(1, base, src, 100), NDA_OK);
			ASSERT_EQ(device.put_nbi(1, nowhere, src, 8), NDA_OK);
			ASSERT_EQ(device.quiet(1), NDA_REMOTE_ACCESS);
			ASSERT_EQ(matching(this->heap(1), 100, 3), 100u);
			EXPECT_EQ(device.put_nbi(1, base, src, 8), NDA_REMOTE_ACCESS);
			EXPECT_EQ(device.get(1, src, base, 8), NDA_REMOTE_ACCESS);
			EXPECT_EQ(device.signal_nbi(1, base, 1), NDA_REMOTE_ACCESS);
			EXPECT_EQ(device.batch(1).put_nbi(base, src, 8), NDA_REMOTE_ACCESS);
			EXPECT_EQ(device.put_strided_nbi(1, base, src, 8, 8, 8, 3),
				NDA_REMOTE_ACCESS);
			EXPECT_EQ(device.fence(1), NDA_REMOTE_ACCESS);
			EXPECT_EQ(device.put(2, base, src, 100), NDA_OK);
			EXPECT_EQ(device.put(0, base, src, 100), NDA_OK);
			EXPECT_EQ(device.quiet(), NDA_REMOTE_ACCESS);
		});
	}
}

/* Those that take one need a receive at the peer: see the engines' own tests. */
TYPED_TEST(DeviceSuite, ImmediatesAreSaidToBeMissing)
{
	using E = typename TestFixture::Engine;
	this->make(this->options(2));
	this->run([&](typename TestFixture::Device &device, uint32_t pe) {
		uint64_t base = this->heap(pe);
		bool has = E::supports(verb::write_immediate, 0);

		EXPECT_EQ(device.put_immediate_nbi(has ? 2 : 1 - pe, base, base, 8, 1),
			has ? NDA_INVALID : NDA_NOT_SUPPORTED);
	});
}

TYPED_TEST(DeviceSuite, ThereIsNoPeBeyondTheLast)
{
	this->make(this->options());
	this->run([&](typename TestFixture::Device &device, uint32_t pe) {
		uint64_t base = this->heap(pe);

		for (uint32_t to : {this->n_pes(), UINT32_MAX}) {
			EXPECT_EQ(device.put_nbi(to, base, base, 8), NDA_INVALID);
			EXPECT_EQ(device.get_nbi(to, base, base, 8), NDA_INVALID);
			EXPECT_EQ(device.put(to, base, base, 8), NDA_INVALID);
			EXPECT_EQ(device.put_strided_nbi(to, base, base, 8, 8, 8, 1),
				NDA_INVALID);
			EXPECT_EQ(device.quiet(to), NDA_INVALID);
			EXPECT_EQ(device.fence(to), NDA_INVALID);
		}
	});
}

} // namespace
