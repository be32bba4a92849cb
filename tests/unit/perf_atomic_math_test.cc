// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lib/tools/perf/atomic_math.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace nda::perf;
using testing::HasSubstr;

const std::vector<Atomic> all = Options().atomics;

// What a counter and those who changed it know after `each` changes of each of the owners,
// these taking turns.
struct Played {
	std::vector<Change> changes;
	std::vector<uint64_t> folded;
	uint64_t value;
};
Played play(Atomic operation, uint32_t bytes, uint32_t owners, uint64_t each)
{
	Played p;
	p.value = first_value(operation, bytes);
	p.folded.assign(owners, no_operand(operation, bytes));
	for (uint64_t i = 0; i < each; i++)
		for (uint32_t owner = 0; owner < owners; owner++) {
			const uint64_t operand = operand_of(operation, bytes, owner, i);
			p.changes.push_back({p.value, operand});
			p.value = apply(operation, bytes, p.value, operand);
			p.folded[owner] = fold(operation, bytes, p.folded[owner], operand);
		}
	return p;
}

TEST(PerfAtomicMath, Apply_DoesWhatTheNameSays)
{
	EXPECT_EQ(apply(Atomic::fetch_add, 8, UINT32_MAX, 1), uint64_t(1) << 32);
	EXPECT_EQ(apply(Atomic::fetch_add, 4, UINT32_MAX, 1), 0u);
	EXPECT_EQ(apply(Atomic::add, 8, UINT64_MAX, 2), 1u);
	EXPECT_EQ(apply(Atomic::compare_swap, 8, 7, 1), 8u);
	EXPECT_EQ(apply(Atomic::swap, 8, 7, 9), 9u);
	EXPECT_EQ(apply(Atomic::set, 8, 7, 9), 9u);
	EXPECT_EQ(apply(Atomic::fetch_and, 8, 0xc, 0xa), 0x8u);
	EXPECT_EQ(apply(Atomic::fetch_or, 8, 0xc, 0xa), 0xeu);
	EXPECT_EQ(apply(Atomic::fetch_xor, 8, 0xc, 0xa), 0x6u);
}

TEST(PerfAtomicMath, Operand_FitsTheCounterAndChangesIt)
{
	for (Atomic operation : all)
		for (uint32_t bytes : {4u, 8u})
			for (uint32_t owner : {0u, 1u, 33u, 6143u}) {
				const uint64_t operand =
					operand_of(operation, bytes, owner, 5);
				const uint64_t first = first_value(operation, bytes);
				if (bytes == 4) {
					EXPECT_LE(operand, UINT32_MAX);
					EXPECT_LE(first, UINT32_MAX);
				}
				EXPECT_NE(apply(operation, bytes, first, operand), first)
					<< atomic_name(operation) << bytes;
			}
}

TEST(PerfAtomicMath, Operand_OfASwapIsNobodyElses)
{
	for (uint32_t bytes : {4u, 8u}) {
		std::set<uint64_t> seen = {first_value(Atomic::swap, bytes)};
		size_t n = 1;
		for (uint32_t owner : {0u, 1u, 2u, 4000u, 6143u})
			for (uint64_t i = 0; i < 300; i++, n++)
				seen.insert(operand_of(Atomic::swap, bytes, owner, i));
		EXPECT_EQ(seen.size(), n);
	}
}

TEST(PerfAtomicMath, Checks_AcceptWhatHappens)
{
	for (Atomic operation : all)
		for (uint32_t bytes : {4u, 8u})
			for (uint64_t each : {0, 1, 200}) {
				Played p = play(operation, bytes, 3, each);
				EXPECT_EQ(check_final(operation, bytes, p.folded, p.value),
					"");
				EXPECT_EQ(check_chain(operation, bytes, p.changes, p.value),
					"");
			}
}

TEST(PerfAtomicMath, CheckFinal_CatchesALostChange)
{
	for (Atomic operation : all)
		for (uint32_t bytes : {4u, 8u}) {
			Played p = play(operation, bytes, 3, 1);
			const uint64_t before = p.changes[2].former;
			if (operation == Atomic::swap || operation == Atomic::set)
				continue; // it is as if another had been the last
			EXPECT_THAT(check_final(operation, bytes, p.folded, before),
				HasSubstr("the counter is " + std::to_string(before) +
					", not " + std::to_string(p.value)));
		}
}

TEST(PerfAtomicMath, CheckFinal_OfASwapWantsALastOperand)
{
	for (uint32_t bytes : {4u, 8u}) {
		Played p = play(Atomic::set, bytes, 3, 2);
		for (uint64_t last : p.folded)
			EXPECT_EQ(check_final(Atomic::set, bytes, p.folded, last), "");
		for (uint64_t wrong : {p.changes[0].operand,
			     first_value(Atomic::set, bytes), uint64_t(0)})
			EXPECT_THAT(check_final(Atomic::set, bytes, p.folded, wrong),
				HasSubstr("not what somebody stored there last"));
	}
}

TEST(PerfAtomicMath, CheckChain_WantsEachValueFoundOnce)
{
	const auto added = [](const std::vector<uint64_t> &formers, uint64_t value) {
		std::vector<Change> changes;
		for (uint64_t former : formers)
			changes.push_back({former, 1});
		return check_chain(Atomic::fetch_add, 8, changes, value);
	};
	const uint64_t f = first_value(Atomic::fetch_add, 8);
	EXPECT_EQ(added({}, f), "");
	EXPECT_EQ(added({f + 2, f, f + 1}, f + 3), "");
	EXPECT_NE(added({f, f}, f + 1), "");         // one got lost
	EXPECT_NE(added({f, f}, f + 2), "");         // a former value is wrong
	EXPECT_NE(added({f + 1, f + 2}, f + 3), ""); // likewise
	EXPECT_NE(added({f}, f + 2), "");
	EXPECT_NE(added({f, 0xa5a5a5a5a5a5a5a5}, f + 2), ""); // never written
	EXPECT_THAT(added({f, f + 1, f + 1}, f + 2),
		HasSubstr("the value " + std::to_string(f + 1) + " was found more often"));
	EXPECT_THAT(added({f + 1}, f + 2),
		HasSubstr("nobody found the value " + std::to_string(f)));
}

TEST(PerfAtomicMath, CheckChain_CatchesAnyWrongFormerOrFinalValue)
{
	for (Atomic operation : all)
		for (uint32_t bytes : {4u, 8u}) {
			Played p = play(operation, bytes, 2, 3);
			EXPECT_NE(check_chain(operation, bytes, p.changes, p.value ^ 4), "")
				<< atomic_name(operation);
			// and, or: what is set or clear anyway may hide it.
			if (operation == Atomic::fetch_and || operation == Atomic::fetch_or)
				continue;
			for (Change &change : p.changes) {
				change.former ^= 16;
				EXPECT_NE(check_chain(operation, bytes, p.changes, p.value),
					"")
					<< atomic_name(operation);
				change.former ^= 16;
			}
		}
}

} // namespace
