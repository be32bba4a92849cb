// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The software NIC's engine, driven by a format of the test's own whose requests are the
// engine's: what requests of every kind do, and in which order.
#include "providers/soft/engine.h"
#include "tests/mock/soft_bench.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <linux/futex.h>
#include <numeric>
#include <set>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace nda::soft_test {
namespace {

using soft::Completion;
using soft::CompletionQueue;
using soft::Operation;
using soft::Order;
using soft::SendQueue;
using soft::Work;

// The ring is a vector of requests, one for each unit; completions are kept in another.
class PlainFormat final : public soft::QueueFormat {
public:
	struct Entry {
		uint32_t index;
		enum nda_status status;
		bool operator==(const Entry &o) const
		{
			return index == o.index && status == o.status;
		}
	};

	const soft::QueueLayout &layout() const override
	{
		static const soft::QueueLayout none = {};
		return none;
	}
	bool take_doorbell(SendQueue &q, soft::Breach &) const override
	{
		if (q.rung == posted)
			return false;
		q.rung = q.pi = posted;
		return true;
	}
	soft::Breach fetch(const SendQueue &, uint32_t index, Work &work) const override
	{
		work = ring.at(index);
		return {};
	}
	soft::Breach read_consumer(CompletionQueue &cq) const override
	{
		return soft::consumed(cq, consumer, 32);
	}
	void complete(const SendQueue &, const Completion &c) const override
	{
		entries.push_back({c.index, c.status});
	}

	void complete_receive(
		const CompletionQueue &, const soft::Received &r) const override
	{
		received.push_back(r);
		if (on_receive)
			on_receive();
	}

	std::vector<Work> ring;
	uint32_t posted = 0;
	uint32_t consumer = 0;
	mutable std::vector<Entry> entries;
	mutable std::vector<soft::Received> received;
	std::function<void()> on_receive;
};

std::ostream &operator<<(std::ostream &out, const PlainFormat::Entry &e)
{
	return out << "{" << e.index << ", " << e.status << "}";
}

constexpr int everything = all_access | IBV_ACCESS_REMOTE_ATOMIC;

// A queue that is connected to another of the same process.
class Engine : public testing::Test {
protected:
	static constexpr uint64_t size = 1u << 20;

	Engine()
	{
		local = npu.alloc(size);
		remote = npu.alloc(size);
		local_mr = nic.reg(local, size, everything);
		remote_mr = nic.reg(remote, size, everything);
		auto &fabric = soft::Fabric::get();
		EXPECT_EQ(fabric.add_qp(q.qpn), 0);
		EXPECT_EQ(fabric.add_qp(q.peer_qpn), 0);
		q.format = &format;
		q.faults = &faults;
		q.cq = &cq;
		q.depth = cq.depth = 1u << 20;
		q.pd = nic.pd()->handle;
		q.mtu_bytes = 256;
		q.peer = fabric.self();
		q.state = soft::SendState::ready;
		soft::SharedQp &target = fabric.qp(q.peer_qpn);
		target.peer_qpn = q.qpn;
		target.pd = q.pd;
		target.access = everything;
		target.reads = 16;
		target.life = soft::QpLife::receiving;
		engine.attach(q);
	}
	~Engine() override
	{
		engine.detach(q);
		for (uint32_t qpn : {q.qpn, q.peer_qpn})
			soft::Fabric::get().qp(qpn).life = soft::QpLife::closed;
		soft::Fabric::get().remove_qp(q.qpn);
		soft::Fabric::get().remove_qp(q.peer_qpn);
		EXPECT_EQ(api().dereg_mr(local_mr), 0);
		EXPECT_EQ(api().dereg_mr(remote_mr), 0);
	}

	// Offsets are in the two regions.
	Work work(Operation op, uint64_t from, uint64_t to, uint32_t length) const
	{
		Work w;
		w.op = op;
		w.signalled = true;
		w.length = length;
		w.remote = remote + to;
		w.rkey = remote_mr->rkey;
		w.piece_count = 1;
		w.pieces[0] = {local + from, length, local_mr->lkey};
		return w;
	}
	Work write(uint64_t from, uint64_t to, uint32_t length) const
	{
		return work(Operation::write, from, to, length);
	}
	Work read(uint64_t into, uint64_t from, uint32_t length) const
	{
		return work(Operation::read, into, from, length);
	}
	Work fetch_add(uint64_t into, uint64_t at, uint64_t operand) const
	{
		Work w = work(Operation::fetch_add, into, at, 8);
		w.atomic.size = 8;
		w.atomic.swap_or_add = operand;
		return w;
	}
	void post(const Work &w)
	{
		format.ring.insert(format.ring.end(), w.units, w);
		format.posted += w.units;
	}
	void post(const std::vector<Work> &all)
	{
		for (const Work &w : all)
			post(w);
	}
	void reorder(size_t window, uint64_t seed)
	{
		q.window_size = window;
		q.random = seed;
	}
	// Steps until there is nothing to do, at most so often.
	void run(const std::function<void()> &after_each = [] {})
	{
		for (int i = 0; i < 100000; i++) {
			int steps = engine.step();
			after_each();
			if (!steps)
				return;
		}
		FAIL() << "it does not end";
	}
	// For a program that is run again.
	void restart()
	{
		format.ring.clear();
		format.entries.clear();
		format.posted = format.consumer = 0;
		cq.pi = cq.ci = 0;
		q.start_at(0);
		q.window.clear();
		q.state = soft::SendState::ready;
	}
	enum nda_status status_of(const Work &w)
	{
		restart();
		post(w);
		run();
		EXPECT_EQ(format.entries.size(), 1u);
		return format.entries.empty() ? NDA_OK : format.entries[0].status;
	}
	template <class T>
	T &here(uint64_t offset)
	{
		return *npu.host<T>(local + offset);
	}
	template <class T>
	T &there(uint64_t offset)
	{
		return *npu.host<T>(remote + offset);
	}
	// The values that outcome() has after the program, over many seeds.
	std::set<uint64_t> outcomes(const std::function<std::vector<Work>()> &program,
		const std::function<uint64_t()> &outcome, size_t window = 8)
	{
		std::set<uint64_t> seen;
		for (uint64_t seed = 1; seed <= 200; seed++) {
			restart();
			std::vector<Work> all = program();
			reorder(window, seed);
			post(all);
			run();
			EXPECT_EQ(format.entries.size(), all.size());
			for (auto &e : format.entries)
				EXPECT_EQ(e.status, NDA_OK);
			seen.insert(outcome());
		}
		return seen;
	}

	static nda_soft_npu_attr manual()
	{
		nda_soft_npu_attr attr = {};
		attr.manual = 1;
		return attr;
	}

	TestNpu npu{manual()};
	TestNic nic;
	uint64_t local, remote;
	ibv_mr *local_mr, *remote_mr;
	PlainFormat format;
	soft::Faults faults;
	CompletionQueue cq;
	SendQueue q;
	soft::SharedEngine shared{};
	soft::Engine engine{shared};
};

using Values = std::set<uint64_t>;
using Entries = std::vector<PlainFormat::Entry>;

// ---- What requests do ------------------------------------------------------------------

TEST_F(Engine, WriteGathersItsPieces)
{
	std::iota(&here<uint8_t>(0), &here<uint8_t>(256), 0);
	Work w = write(0, 100, 40);
	w.piece_count = 3;
	w.pieces[0] = {local + 10, 7, local_mr->lkey};
	w.pieces[1] = {local + 200, 0, 0}; // empty: its key does not matter
	w.pieces[2] = {local + 50, 33, local_mr->lkey};
	EXPECT_EQ(status_of(w), NDA_OK);
	for (uint32_t i = 0; i < 7; i++)
		EXPECT_EQ(there<uint8_t>(100 + i), 10 + i);
	for (uint32_t i = 0; i < 33; i++)
		EXPECT_EQ(there<uint8_t>(107 + i), 50 + i);
	EXPECT_EQ(there<uint8_t>(140), 0);
}

TEST_F(Engine, ReadScattersIntoItsPieces)
{
	std::iota(&there<uint8_t>(0), &there<uint8_t>(256), 0);
	Work w = read(0, 5, 20);
	w.piece_count = 2;
	w.pieces[0] = {local + 100, 3, local_mr->lkey};
	w.pieces[1] = {local + 10, 17, local_mr->lkey};
	EXPECT_EQ(status_of(w), NDA_OK);
	EXPECT_EQ(here<uint8_t>(100), 5);
	EXPECT_EQ(here<uint8_t>(102), 7);
	EXPECT_EQ(here<uint8_t>(103), 0);
	EXPECT_EQ(here<uint8_t>(10), 8);
	EXPECT_EQ(here<uint8_t>(26), 24);
}

TEST_F(Engine, LargeMessageCrossesPiecesAndParts)
{
	std::vector<uint32_t> pattern(200000);
	std::iota(pattern.begin(), pattern.end(), 1);
	std::vector<uint8_t> bytes(800000);
	memcpy(bytes.data(), pattern.data(), bytes.size());
	npu.write(local, bytes);
	Work w = write(0, 8, 800000);
	w.piece_count = 2;
	w.pieces[0] = {local, 299999, local_mr->lkey};
	w.pieces[1] = {local + 299999, 500001, local_mr->lkey};
	EXPECT_EQ(status_of(w), NDA_OK);
	EXPECT_EQ(npu.read(remote + 8, 800000), bytes);
	npu.write(remote + 8, std::vector<uint8_t>(800000));
	reorder(4, 7);
	EXPECT_EQ(status_of(w), NDA_OK);
	EXPECT_EQ(npu.read(remote + 8, 800000), bytes);
}

TEST_F(Engine, BadPieceIsALocalProtectionErrorAndNothingIsWritten)
{
	here<uint64_t>(0) = 5;
	Work w = write(0, 0, 16);
	w.piece_count = 2;
	w.pieces[0] = {local, 8, local_mr->lkey};
	w.pieces[1] = {local, 8, local_mr->lkey + 1};
	EXPECT_EQ(status_of(w), NDA_LOCAL_PROTECTION);
	EXPECT_EQ(there<uint64_t>(0), 0u);
}

TEST_F(Engine, InlineDataComesFromTheRequest)
{
	Work w = write(0, 3, 208);
	w.piece_count = 0;
	w.has_inline = true;
	std::iota(w.inline_data, w.inline_data + 208, 1);
	EXPECT_EQ(status_of(w), NDA_OK);
	EXPECT_EQ(there<uint8_t>(3), 1);
	EXPECT_EQ(there<uint8_t>(210), 208);
}

TEST_F(Engine, EmptyWriteNeedsNoKey)
{
	Work w = write(0, 0, 0);
	w.rkey = 0;
	w.piece_count = 0;
	EXPECT_EQ(status_of(w), NDA_OK);
}

TEST_F(Engine, AtomicsWorkOnTheTargetAndGiveWhatWasThere)
{
	there<uint64_t>(64) = 40;
	EXPECT_EQ(status_of(fetch_add(8, 64, 2)), NDA_OK);
	EXPECT_EQ(there<uint64_t>(64), 42u);
	EXPECT_EQ(here<uint64_t>(8), 40u);

	Work swap = work(Operation::compare_swap, 16, 64, 4);
	swap.atomic.size = 4;
	swap.atomic.compare = 42;
	swap.atomic.swap_or_add = 7;
	EXPECT_EQ(status_of(swap), NDA_OK);
	EXPECT_EQ(there<uint64_t>(64), 7u);
	EXPECT_EQ(here<uint32_t>(16), 42u);
	EXPECT_EQ(here<uint32_t>(20), 0u);

	there<uint64_t>(72) = 1;
	Work wide = work(Operation::compare_swap, 32, 64, 16);
	wide.atomic.size = 16;
	wide.atomic.compare = (soft::Atomic::Word{1} << 64) | 7;
	wide.atomic.swap_or_add = soft::Atomic::Word{9} << 64;
	EXPECT_EQ(status_of(wide), NDA_OK);
	EXPECT_EQ(there<uint64_t>(64), 0u);
	EXPECT_EQ(there<uint64_t>(72), 9u);
	EXPECT_EQ(here<uint64_t>(32), 7u);
	EXPECT_EQ(here<uint64_t>(40), 1u);
}

TEST_F(Engine, AtomicsNeedAlignment)
{
	for (uint8_t bytes : {4, 8, 16}) {
		Work w = work(Operation::compare_swap, 0, 64 + bytes / 2, bytes);
		w.atomic.size = bytes;
		EXPECT_EQ(status_of(w), NDA_REMOTE_INVALID) << int{bytes};
	}
	EXPECT_EQ(there<uint64_t>(64), 0u);
}

TEST_F(Engine, RegionThatLiesAboutItsAlignmentIsDenied)
{
	// What a peer says of its regions, as far as the engine could believe it.
	const soft::ControlSegment &control = soft::Fabric::get().self()->control();
	auto &entry =
		const_cast<soft::SharedMr &>(control.mrs[soft::mr_index(remote_mr->rkey)]);
	for (uint8_t bytes : {4, 8, 16}) {
		Work w = work(Operation::compare_swap, 0, 64, bytes);
		w.atomic.size = bytes;
		w.atomic.swap_or_add = 1;
		entry.address = remote - bytes / 2;
		EXPECT_EQ(status_of(w), NDA_REMOTE_ACCESS) << int{bytes};
		w.remote -= bytes / 2; // its place in memory is aligned
		EXPECT_EQ(status_of(w), NDA_REMOTE_INVALID) << int{bytes};
		entry.address = remote;
		entry.offset = entry.offset + bytes / 2;
		w.remote = remote + 64;
		EXPECT_EQ(status_of(w), NDA_REMOTE_ACCESS) << int{bytes};
		entry.offset = entry.offset - bytes / 2;
		EXPECT_EQ(status_of(w), NDA_OK) << int{bytes};
		there<uint64_t>(64) = 0;
	}
	EXPECT_EQ(npu.read(remote, 256), std::vector<uint8_t>(256));
	Work sum = write(0, 64, 8);
	sum.reduce = soft::Reduce::add_int32;
	entry.address = remote - 2;
	EXPECT_EQ(status_of(sum), NDA_REMOTE_ACCESS);
	entry.address = remote;
}

TEST_F(Engine, AtomicsNeedAccess)
{
	soft::SharedQp &target = soft::Fabric::get().qp(q.peer_qpn);
	target.access = all_access;
	EXPECT_EQ(status_of(fetch_add(0, 0, 1)), NDA_REMOTE_INVALID);
	target.access = everything;
	target.reads = 0;
	EXPECT_EQ(status_of(fetch_add(0, 0, 1)), NDA_REMOTE_INVALID);
	target.reads = 1;
	ibv_mr *plain = nic.reg(remote, size);
	Work w = fetch_add(0, 0, 1);
	w.rkey = plain->rkey;
	EXPECT_EQ(status_of(w), NDA_REMOTE_ACCESS);
	EXPECT_EQ(api().dereg_mr(plain), 0);
	ibv_mr *constant = nic.reg(local, size, 0);
	w = fetch_add(0, 0, 1);
	w.pieces[0].key = constant->lkey;
	EXPECT_EQ(status_of(w), NDA_LOCAL_PROTECTION) << "the result cannot be put";
	EXPECT_EQ(api().dereg_mr(constant), 0);
	EXPECT_EQ(there<uint64_t>(0), 0u);
}

TEST_F(Engine, ReductionAddsToTheTarget)
{
	there<float>(8) = 1.5f;
	there<float>(12) = -1;
	here<float>(4) = 2;
	here<float>(8) = 3;
	Work w = write(4, 8, 8);
	w.reduce = soft::Reduce::add_fp32;
	EXPECT_EQ(status_of(w), NDA_OK);
	EXPECT_EQ(there<float>(8), 3.5f);
	EXPECT_EQ(there<float>(12), 2);
	w.remote += 2;
	EXPECT_EQ(status_of(w), NDA_REMOTE_INVALID);
}

TEST_F(Engine, ReductionOfEntriesThatAreNotWholeElementsIsABreach)
{
	there<uint64_t>(0) = 1;
	there<uint64_t>(8) = 1;
	Work w = write(0, 0, 8);
	w.reduce = soft::Reduce::add_int32;
	w.piece_count = 2;
	w.pieces[0] = {local, 6, local_mr->lkey};
	w.pieces[1] = {local + 64, 2, local_mr->lkey};
	npu.write(local, std::vector<uint8_t>(128, 1));
	EXPECT_EQ(status_of(w), NDA_LOCAL_LENGTH);
	EXPECT_EQ(engine.violations(), 1u);
	EXPECT_EQ(there<uint64_t>(0), 1u);
	EXPECT_EQ(there<uint64_t>(8), 1u);
}

TEST_F(Engine, NotificationFollowsTheWholePayload)
{
	for (size_t window : {1, 8}) {
		constexpr uint32_t length = 600000;
		npu.write(local, std::vector<uint8_t>(length, 0x55));
		npu.write(remote, std::vector<uint8_t>(size));
		restart();
		reorder(window, 3);
		Work w = write(0, 0, length);
		w.has_notify = true;
		w.notify_address = remote + 700000;
		w.notify_key = remote_mr->rkey;
		w.notify_data = 0x1122334455667788;
		post(w);
		int waited = 0;
		run([&] {
			if (there<uint64_t>(700000) == 0) {
				waited++;
				return;
			}
			EXPECT_EQ(there<uint64_t>(700000), w.notify_data);
			EXPECT_EQ(npu.read(remote, length),
				std::vector<uint8_t>(length, 0x55));
		});
		EXPECT_GT(waited, 1) << "it took one step: nothing was shown";
		EXPECT_EQ(there<uint64_t>(700000), w.notify_data);
	}
}

TEST_F(Engine, NotificationThatIsNotAllowedStopsTheWrite)
{
	here<uint64_t>(0) = 5;
	Work w = write(0, 0, 8);
	w.has_notify = true;
	w.notify_address = remote + 8;
	w.notify_key = remote_mr->rkey + 1;
	EXPECT_EQ(status_of(w), NDA_REMOTE_ACCESS);
	EXPECT_EQ(there<uint64_t>(0), 0u);
}

TEST_F(Engine, RequestsMayTakeSeveralUnits)
{
	Work w = write(0, 0, 8);
	w.units = 3;
	post(w);
	w.units = 1;
	post(w);
	w.units = 4;
	post(w);
	run();
	EXPECT_EQ(format.entries, (Entries{{0, NDA_OK}, {3, NDA_OK}, {4, NDA_OK}}));
	EXPECT_EQ(q.ci, 8u);
}

TEST_F(Engine, RequestThatEndsBeyondWhatWasPostedIsABreach)
{
	Work w = write(0, 0, 8);
	post(w);
	w.units = 4;
	post(w);
	format.posted = 3;
	run();
	EXPECT_EQ(format.entries, (Entries{{0, NDA_OK}, {1, NDA_LOCAL_QP}}));
	EXPECT_EQ(engine.violations(), 1u);
	EXPECT_EQ(q.ci, 3u);
}

TEST_F(Engine, FlushCountsUnitsToo)
{
	Work bad = write(0, 0, 8);
	bad.rkey++;
	Work wide = write(0, 0, 8);
	wide.units = 2;
	post({bad, wide, wide});
	run();
	EXPECT_EQ(format.entries,
		(Entries{{0, NDA_REMOTE_ACCESS}, {1, NDA_FLUSHED}, {3, NDA_FLUSHED}}));
	EXPECT_EQ(q.ci, 5u);
}

// ---- In which order --------------------------------------------------------------------

TEST_F(Engine, WithoutReorderingEverythingIsInOrder)
{
	auto program = [this] {
		there<uint64_t>(0) = 1;
		here<uint64_t>(0) = 2;
		return std::vector<Work>{read(8, 0, 8), write(0, 0, 8)};
	};
	auto result = [this] { return here<uint64_t>(8); };
	EXPECT_EQ(outcomes(program, result, 1), Values{1});
}

TEST_F(Engine, WriteMayOvertakeARead)
{
	auto program = [this] {
		there<uint64_t>(0) = 1;
		here<uint64_t>(0) = 2;
		return std::vector<Work>{read(8, 0, 8), write(0, 0, 8)};
	};
	auto result = [this] { return here<uint64_t>(8); };
	EXPECT_EQ(outcomes(program, result), (Values{1, 2}));
}

TEST_F(Engine, FencedWriteWaitsForReads)
{
	auto program = [this] {
		there<uint64_t>(0) = 1;
		here<uint64_t>(0) = 2;
		Work w = write(0, 0, 8);
		w.fence = true;
		return std::vector<Work>{read(8, 0, 8), w};
	};
	auto result = [this] { return here<uint64_t>(8); };
	EXPECT_EQ(outcomes(program, result), Values{1});
}

TEST_F(Engine, StronglyOrderedWriteWaitsForAtomics)
{
	auto program = [this](bool strong) {
		there<uint64_t>(0) = 1;
		here<uint64_t>(0) = 10;
		Work w = write(0, 0, 8);
		if (strong)
			w.order = Order::strong;
		return std::vector<Work>{fetch_add(8, 0, 1), w};
	};
	auto result = [this] { return there<uint64_t>(0); };
	EXPECT_EQ(outcomes([&] { return program(false); }, result), (Values{10, 11}));
	EXPECT_EQ(outcomes([&] { return program(true); }, result), Values{10});
}

// What a READ fetched is sent on by the next WRITE: only with a fence is it the new.
TEST_F(Engine, WriteOfWhatAReadBringsNeedsAFence)
{
	auto program = [this](bool fence) {
		there<uint64_t>(0) = 7;
		there<uint64_t>(64) = 0;
		here<uint64_t>(0) = 1; // stale
		Work w = write(0, 64, 8);
		w.fence = fence;
		return std::vector<Work>{read(0, 0, 8), w};
	};
	auto result = [this] { return there<uint64_t>(64); };
	EXPECT_EQ(outcomes([&] { return program(false); }, result), (Values{1, 7}));
	EXPECT_EQ(outcomes([&] { return program(true); }, result), Values{7});
}

TEST_F(Engine, WritesTakeEffectInOrder)
{
	auto program = [this] {
		for (uint64_t i = 0; i < 6; i++)
			here<uint64_t>(8 * i) = i + 1;
		std::vector<Work> all;
		for (uint64_t i = 0; i < 6; i++)
			all.push_back(write(8 * i, 0, 8));
		return all;
	};
	EXPECT_EQ(outcomes(program, [this] { return there<uint64_t>(0); }), Values{6});
}

TEST_F(Engine, ReadsAndAtomicsSeeEarlierWrites)
{
	auto program = [this] {
		there<uint64_t>(0) = 0;
		here<uint64_t>(0) = 100;
		return std::vector<Work>{
			write(0, 0, 8), fetch_add(8, 0, 1), read(16, 0, 8)};
	};
	EXPECT_EQ(outcomes(program, [this] { return here<uint64_t>(8); }), Values{100});
	EXPECT_EQ(outcomes(program, [this] { return here<uint64_t>(16); }), Values{101});
}

TEST_F(Engine, FlagFollowsTheWholePayload)
{
	constexpr uint32_t length = 60000;
	npu.write(local, std::vector<uint8_t>(length, 0x55));
	here<uint64_t>(length) = 1;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		npu.write(remote, std::vector<uint8_t>(size));
		restart();
		reorder(8, seed);
		// A read ahead of them, which both may pass.
		post({read(70000, 200000, 60000), write(0, 0, length),
			write(length, 100000, 8)});
		run([&] {
			if (there<uint64_t>(100000)) {
				EXPECT_EQ(npu.read(remote, length),
					std::vector<uint8_t>(length, 0x55));
			}
		});
		EXPECT_EQ(there<uint64_t>(100000), 1u);
	}
}

TEST_F(Engine, MessageHasNoOrderWithinItself)
{
	constexpr uint32_t length = 256 * 256; // more parts than a pass moves
	npu.write(local, std::vector<uint8_t>(length, 1));
	std::set<bool> last_before_first;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		npu.write(remote, std::vector<uint8_t>(length));
		restart();
		reorder(2, seed);
		post(write(0, 0, length));
		engine.step();
		bool first = there<uint8_t>(0), last = there<uint8_t>(length - 1);
		if (first != last)
			last_before_first.insert(last);
		run();
		EXPECT_EQ(npu.read(remote, length), std::vector<uint8_t>(length, 1));
	}
	EXPECT_EQ(last_before_first, (std::set<bool>{false, true}));
}

TEST_F(Engine, RelaxedRequestsTakeEffectInAnyOrder)
{
	auto program = [this](Order last) {
		for (uint64_t i = 0; i < 3; i++)
			here<uint64_t>(8 * i) = i + 1;
		std::vector<Work> all = {write(0, 0, 8), write(8, 0, 8), write(16, 0, 8)};
		for (Work &w : all)
			w.order = Order::relaxed;
		all.back().order = last;
		return all;
	};
	auto result = [this] { return there<uint64_t>(0); };
	EXPECT_EQ(outcomes([&] { return program(Order::relaxed); }, result),
		(Values{1, 2, 3}));
	EXPECT_EQ(outcomes([&] { return program(Order::strong); }, result), Values{3});
}

TEST_F(Engine, RelaxedRequestWithAFenceWaitsForReadsOnly)
{
	auto program = [this] {
		there<uint64_t>(0) = 1;
		here<uint64_t>(0) = 2;
		here<uint64_t>(16) = 3;
		Work first = read(8, 0, 8), second = write(16, 0, 8),
		     third = write(0, 0, 8);
		first.order = second.order = third.order = Order::relaxed;
		third.fence = true;
		return std::vector<Work>{first, second, third};
	};
	EXPECT_EQ(outcomes(program, [this] { return here<uint64_t>(8); }), (Values{1, 3}));
	EXPECT_EQ(outcomes(program, [this] { return there<uint64_t>(0); }), (Values{2, 3}));
}

TEST_F(Engine, CompletionsKeepTheOrderOfPosting)
{
	auto program = [this] {
		std::vector<Work> all;
		for (int i = 0; i < 5; i++) {
			all.push_back(write(0, 0, 600));
			all.back().order = Order::relaxed;
		}
		return all;
	};
	outcomes(program, [this] {
		EXPECT_EQ(format.entries,
			(Entries{{0, NDA_OK}, {1, NDA_OK}, {2, NDA_OK}, {3, NDA_OK},
				{4, NDA_OK}}));
		return 0;
	});
}

TEST_F(Engine, CompletionsComeAsTheyEndWhereTheFormatLetsThem)
{
	auto program = [this] {
		std::vector<Work> all;
		for (int i = 0; i < 3; i++) {
			all.push_back(write(0, 0, 600));
			all.back().order = Order::relaxed;
			all.back().ordered_completion = false;
		}
		return all;
	};
	auto order = [this] {
		uint64_t number = 0;
		for (auto &e : format.entries)
			number = number * 10 + e.index;
		return number;
	};
	EXPECT_EQ(outcomes(program, order), (Values{12, 21, 102, 120, 201, 210}));
}

TEST_F(Engine, ErrorsAreReportedInOrderAndFlushWhatFollows)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		restart();
		reorder(8, seed);
		Work bad = write(0, 0, 8);
		bad.rkey++;
		Work silent = write(0, 0, 8);
		silent.signalled = false;
		post({read(0, 0, 600), silent, bad, write(0, 0, 8), silent});
		run();
		EXPECT_EQ(format.entries,
			(Entries{{0, NDA_OK}, {2, NDA_REMOTE_ACCESS}, {3, NDA_FLUSHED},
				{4, NDA_FLUSHED}}));
		EXPECT_EQ(q.state, soft::SendState::error);
		EXPECT_EQ(q.ci, 5u);
	}
}

TEST_F(Engine, FullCompletionQueueHoldsBackWhatFollows)
{
	cq.depth = 2;
	reorder(4, 1);
	for (int i = 0; i < 6; i++)
		post(write(0, 0, 8));
	run();
	EXPECT_EQ(format.entries.size(), 2u);
	format.consumer = 1;
	run();
	EXPECT_EQ(format.entries.size(), 3u);
	format.consumer = 3;
	run();
	format.consumer = 5;
	run();
	EXPECT_EQ(format.entries.size(), 6u);
	EXPECT_EQ(format.entries.back(), (PlainFormat::Entry{5, NDA_OK}));
}

TEST_F(Engine, ConsumerIndexBeyondWhatWasCompletedIsABreach)
{
	format.consumer = 1;
	post({write(0, 0, 8), write(0, 0, 8)});
	run();
	EXPECT_EQ(engine.violations(), 1u);
	EXPECT_EQ(q.state, soft::SendState::error);
	EXPECT_EQ(format.entries, (Entries{{0, NDA_OK}, {1, NDA_FLUSHED}}));
}

// ---- Receives --------------------------------------------------------------------------

// The target is a queue, too, with receives.
class Receives : public Engine {
protected:
	Receives()
	{
		target_format.posted = 0;
		rq.depth = 4;
		rq.producer = reinterpret_cast<const uint8_t *>(&producer);
		rq.consumer = reinterpret_cast<uint8_t *>(&consumer);
		receive_cq.depth = 8;
		make_target(target, q.qpn, q.peer_qpn);
		auto &fabric = soft::Fabric::get();
		open(fabric.qp(q.qpn), q.peer_qpn);
		// Entries may have had a life before this.
		fabric.qp(q.peer_qpn).taken = fabric.qp(q.qpn).offered.load();
		fabric.qp(q.peer_qpn).receives = 1;
		fabric.qp(q.peer_qpn).rnr_ns = 1000000;
		engine.attach(target);
	}
	~Receives() override { engine.detach(target); }
	void make_target(SendQueue &t, uint32_t peer_qpn, uint32_t qpn)
	{
		t.format = &target_format;
		t.faults = &faults;
		t.cq = t.receive_cq = &receive_cq;
		t.depth = 1;
		t.qpn = qpn;
		t.peer_qpn = peer_qpn;
		t.pd = q.pd;
		t.peer = soft::Fabric::get().self();
		t.state = soft::SendState::ready;
		t.receive = &rq;
	}
	void open(soft::SharedQp &entry, uint32_t peer_qpn)
	{
		entry.peer_qpn = peer_qpn;
		entry.pd = q.pd;
		entry.access = everything;
		entry.life = soft::QpLife::receiving;
	}
	void post_receives(uint32_t up_to)
	{
		__atomic_store_n(&producer, up_to, __ATOMIC_RELEASE);
	}
	Work write_with_immediate(uint32_t immediate, uint32_t length = 8)
	{
		Work w = write(0, 0, length);
		w.has_immediate = true;
		w.immediate = immediate;
		return w;
	}
	// As what waits does no step.
	void run_for(uint64_t ns)
	{
		uint64_t end = now_ns() + ns;
		while (now_ns() < end)
			engine.step();
	}

	PlainFormat target_format;
	uint32_t producer = 0, consumer = 0;
	soft::ReceiveQueue rq;
	CompletionQueue receive_cq;
	SendQueue target;
};

TEST_F(Receives, ImmediateConsumesOneAfterThePayload)
{
	npu.write(local, std::vector<uint8_t>(1000, 0x55));
	target_format.on_receive = [this] {
		EXPECT_EQ(npu.read(remote, 1000), std::vector<uint8_t>(1000, 0x55));
	};
	post_receives(3);
	post({write_with_immediate(0xabcd, 1000), write(0, 0, 8),
		write_with_immediate(5, 0)});
	run();
	run();
	EXPECT_EQ(format.entries, (Entries{{0, NDA_OK}, {1, NDA_OK}, {2, NDA_OK}}));
	ASSERT_EQ(target_format.received.size(), 2u);
	EXPECT_EQ(target_format.received[0].index, 0u);
	EXPECT_EQ(target_format.received[0].qpn, target.qpn);
	EXPECT_EQ(target_format.received[0].immediate, 0xabcdu);
	EXPECT_EQ(target_format.received[0].bytes, 1000u);
	EXPECT_EQ(target_format.received[1].index, 1u);
	EXPECT_EQ(target_format.received[1].immediate, 5u);
	EXPECT_EQ(target_format.received[1].bytes, 0u);
	EXPECT_EQ(consumer, 2u);
	EXPECT_EQ(receive_cq.pi, 2u);
}

TEST_F(Receives, WithoutOneTheRetriesAreUsedUp)
{
	q.rnr_retries = 3; // of a millisecond
	uint64_t begin = now_ns();
	post(write_with_immediate(1));
	while (format.entries.empty() && now_ns() - begin < 5000000000)
		engine.step();
	EXPECT_EQ(format.entries, (Entries{{0, NDA_RNR_RETRY_EXCEEDED}}));
	EXPECT_GE(now_ns() - begin, 3000000u);
}

// No code of the timer stands for more than 655.36 ms.
TEST_F(Receives, PeerWithAnEndlessTimerDoesNotHoldTheQueue)
{
	uint64_t clock = 1000;
	engine.pace([](void *at) { return *static_cast<uint64_t *>(at); }, &clock, 0);
	q.rnr_retries = 3;
	soft::Fabric::get().qp(q.peer_qpn).rnr_ns = UINT64_MAX / 4;
	post(write_with_immediate(1));
	for (int i = 0; i < 100; i++)
		engine.step();
	EXPECT_TRUE(format.entries.empty());
	clock += 3 * uint64_t{655360000};
	for (int i = 0; i < 100; i++)
		engine.step();
	EXPECT_EQ(format.entries, (Entries{{0, NDA_RNR_RETRY_EXCEEDED}}));
}

TEST_F(Receives, OneThatIsPostedLaterIsWaitedFor)
{
	q.rnr_retries = SendQueue::forever;
	post({write_with_immediate(1), write(0, 0, 8)});
	run_for(2000000);
	EXPECT_TRUE(format.entries.empty());
	post_receives(1);
	run_for(2000000);
	EXPECT_EQ(format.entries, (Entries{{0, NDA_OK}, {1, NDA_OK}}));
	EXPECT_EQ(target_format.received.size(), 1u);
}

TEST_F(Receives, RefusalIsAnAnswer)
{
	uint64_t clock = 1000;
	engine.pace([](void *at) { return *static_cast<uint64_t *>(at); }, &clock, 0);
	q.rnr_retries = SendQueue::forever;
	q.give_up_ns = 100;
	soft::SharedQp &entry = soft::Fabric::get().qp(q.peer_qpn);
	post(write_with_immediate(1));
	run();
	run();
	ASSERT_EQ(entry.refused, soft::Fabric::get().qp(q.qpn).offered);

	entry.life = soft::QpLife::closed;
	run();
	clock += 50;
	entry.life = soft::QpLife::receiving;
	run();
	clock += 70;
	entry.life = soft::QpLife::closed;
	run();
	EXPECT_TRUE(format.entries.empty()) << "the two silences were taken for one";
	clock += 100;
	run();
	EXPECT_EQ(format.entries, (Entries{{0, NDA_RETRY_EXCEEDED}}));
}

TEST_F(Receives, TargetWithoutAQueueOfThemIsNotWaitedFor)
{
	soft::Fabric::get().qp(q.peer_qpn).receives = 0;
	q.rnr_retries = SendQueue::forever;
	EXPECT_EQ(status_of(write_with_immediate(1)), NDA_RNR_RETRY_EXCEEDED);
}

TEST_F(Receives, IndicesGoAroundTheRing)
{
	q.rnr_retries = SendQueue::forever;
	producer = rq.ci = consumer = 0xfffe;
	for (uint32_t i = 0; i < 10; i++) {
		post_receives(0xfffe + i + 1);
		target_format.consumer = i;
		post(write_with_immediate(i));
		run_for(100000);
		ASSERT_EQ(target_format.received.size(), i + 1);
		EXPECT_EQ(target_format.received[i].index, 0xfffe + i);
		EXPECT_EQ(consumer, 0xfffe + i + 1);
	}
}

TEST_F(Receives, FullCompletionQueueIsWaitedFor)
{
	receive_cq.depth = 1;
	post_receives(2);
	post({write_with_immediate(1), write_with_immediate(2)});
	run_for(1000000);
	EXPECT_EQ(target_format.received.size(), 1u);
	EXPECT_EQ(format.entries.size(), 1u);
	target_format.consumer = 1;
	run_for(1000000);
	EXPECT_EQ(target_format.received.size(), 2u);
	EXPECT_EQ(format.entries.size(), 2u);
}

TEST_F(Receives, RecordBeyondTheRingIsABreach)
{
	post_receives(5);
	post(write_with_immediate(1));
	run();
	EXPECT_EQ(engine.violations(), 1u);
	EXPECT_EQ(target.state, soft::SendState::error);
	EXPECT_TRUE(target_format.received.empty());
}

TEST_F(Receives, EventNamesTheirCompletionQueue)
{
	std::vector<std::pair<ibv_event_type, const CompletionQueue *>> events;
	soft::Faults overrun;
	overrun.cq_overrun_at = 1;
	target.faults = &overrun;
	target.cq = &cq;
	target.cookie = &events;
	target.on_event = [](void *to, ibv_event_type type, const CompletionQueue *which) {
		static_cast<decltype(events) *>(to)->push_back({type, which});
	};
	post_receives(1);
	post(write_with_immediate(1));
	run();
	ASSERT_EQ(events.size(), 2u);
	EXPECT_EQ(events[0].first, IBV_EVENT_CQ_ERR);
	EXPECT_EQ(events[0].second, &receive_cq);
	EXPECT_EQ(events[1].first, IBV_EVENT_QP_FATAL);
	EXPECT_EQ(events[1].second, nullptr);
}

TEST_F(Receives, EngineThatSleepsIsWokenUntilItTakes)
{
	engine.detach(target);
	constexpr uint32_t its_engine = soft::max_npus - 1; // no other one's
	auto &fabric = soft::Fabric::get();
	fabric.qp(q.peer_qpn).engine = its_engine;
	std::atomic<uint32_t> &asleep = fabric.engine(its_engine).asleep;
	asleep = 1;
	std::atomic<bool> woken{false};
	post(write_with_immediate(1));
	std::thread sleeper([&] {
		struct timespec limit = {deadline_ms / 1000, 0};
		EXPECT_EQ(syscall(SYS_futex, &asleep, FUTEX_WAIT, 1, &limit, nullptr, 0), 0)
			<< strerror(errno);
		woken = true;
	});
	while (!woken)
		engine.step();
	sleeper.join();
	asleep = 0;
	EXPECT_TRUE(format.entries.empty());
	fabric.qp(q.peer_qpn).engine = soft::max_npus; // is none
	engine.step();
	post_receives(1);
	engine.attach(target);
	run();
	run();
	EXPECT_EQ(format.entries, (Entries{{0, NDA_OK}}));
}

TEST_F(Receives, QueuesMayShareThem)
{
	// A second pair.
	SendQueue other, other_target;
	PlainFormat other_format;
	auto &fabric = soft::Fabric::get();
	uint32_t qpn = 0, peer = 0;
	ASSERT_EQ(fabric.add_qp(qpn), 0);
	ASSERT_EQ(fabric.add_qp(peer), 0);
	make_target(other, peer, qpn);
	other.format = &other_format;
	other.cq = &cq;
	other.receive = nullptr;
	make_target(other_target, qpn, peer);
	open(fabric.qp(qpn), peer);
	open(fabric.qp(peer), qpn);
	fabric.qp(peer).taken = fabric.qp(qpn).offered.load();
	fabric.qp(peer).receives = 1;
	engine.attach(other);
	engine.attach(other_target);

	post_receives(2);
	post(write_with_immediate(1));
	other_format.ring.push_back(write_with_immediate(2));
	other_format.posted = 1;
	run_for(1000000);
	ASSERT_EQ(target_format.received.size(), 2u);
	std::set<std::array<uint32_t, 2>> who;
	for (auto &r : target_format.received)
		who.insert({r.qpn, r.immediate});
	EXPECT_EQ(who,
		(std::set<std::array<uint32_t, 2>>{
			{target.qpn, 1}, {other_target.qpn, 2}}));
	EXPECT_EQ(consumer, 2u);

	engine.detach(other);
	engine.detach(other_target);
	fabric.qp(qpn).life = fabric.qp(peer).life = soft::QpLife::closed;
	fabric.remove_qp(qpn);
	fabric.remove_qp(peer);
}

} // namespace
} // namespace nda::soft_test
