// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What the software NIC's requests do to memory.
#include "providers/soft/transfer.h"

#include <cstring>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace nda::soft {
namespace {

template <class T>
Atomic operands(T swap_or_add, T compare = 0)
{
	Atomic a;
	a.size = sizeof(T);
	a.swap_or_add = swap_or_add;
	a.compare = compare;
	return a;
}

// What the target has afterwards; result is what it had before.
template <class T>
T after(Operation op, const Atomic &a, T target, T &result)
{
	alignas(16) T memory = target;
	execute_atomic(op, a, &memory, &result);
	return memory;
}

template <class T>
class EverySize : public testing::Test {};
using Sizes = testing::Types<uint32_t, uint64_t, Atomic::Word>;
TYPED_TEST_SUITE(EverySize, Sizes, );

TYPED_TEST(EverySize, FetchAddWrapsAndGivesWhatWasThere)
{
	TypeParam old = 1;
	TypeParam all = static_cast<TypeParam>(~TypeParam{0});
	EXPECT_TRUE(after<TypeParam>(
			    Operation::fetch_add, operands<TypeParam>(5), all, old) == 4);
	EXPECT_TRUE(old == all);
}

TYPED_TEST(EverySize, CompareSwapReplacesOnlyWhatIsEqual)
{
	const Atomic a = operands<TypeParam>(7, 3);
	TypeParam old = 0;
	EXPECT_TRUE(after<TypeParam>(Operation::compare_swap, a, 3, old) == 7);
	EXPECT_TRUE(old == 3);
	EXPECT_TRUE(after<TypeParam>(Operation::compare_swap, a, 4, old) == 4);
	EXPECT_TRUE(old == 4);
}

TYPED_TEST(EverySize, TopHalfCounts)
{
	const TypeParam top = TypeParam{1} << (8 * sizeof(TypeParam) - 1);
	TypeParam old = 0;
	EXPECT_TRUE(after<TypeParam>(Operation::compare_swap, operands<TypeParam>(7, top),
			    0, old) == 0);
	EXPECT_TRUE(after<TypeParam>(Operation::compare_swap, operands<TypeParam>(7, top),
			    top, old) == 7);
}

TEST(CompareSwap, MasksChooseWhatIsComparedAndReplaced)
{
	Atomic a = operands<uint32_t>(0xaaaaaaaa, 0x00001200);
	a.compare_mask = 0x0000ff00;
	a.swap_mask = 0xff0000ff;
	uint32_t old = 0;
	EXPECT_EQ(
		after<uint32_t>(Operation::compare_swap, a, 0x55551255, old), 0xaa5512aau);
	EXPECT_EQ(old, 0x55551255u);
	EXPECT_EQ(
		after<uint32_t>(Operation::compare_swap, a, 0x55551355, old), 0x55551355u);
}

TEST(CompareSwap, WithoutComparedBitsItIsASwap)
{
	Atomic a = operands<uint64_t>(9, 1);
	a.compare_mask = 0;
	uint64_t old = 0;
	EXPECT_EQ(after<uint64_t>(Operation::compare_swap, a, 1234, old), 9u);
	EXPECT_EQ(old, 1234u);
}

// As the thread sanitizer sees it, or a processor that orders less than x86.
TYPED_TEST(EverySize, CompareSwapThatReplacesNothingAcquiresWhatItSaw)
{
	alignas(16) TypeParam flag = 0;
	int data = 0;
	std::thread writer([&] {
		data = 42;
		TypeParam old;
		execute_atomic(Operation::fetch_add, operands<TypeParam>(1), &flag, &old);
	});
	TypeParam seen = 0;
	while (seen != 1)
		execute_atomic(
			Operation::compare_swap, operands<TypeParam>(7, 5), &flag, &seen);
	EXPECT_EQ(data, 42);
	writer.join();
	EXPECT_TRUE(flag == 1);
}

TEST(FetchAdd, NoCarryLeavesAFieldsTopBit)
{
	Atomic a = operands<uint32_t>(0x01010101);
	a.boundary = 0x80808080; // four fields of a byte
	uint32_t old = 0;
	EXPECT_EQ(after<uint32_t>(Operation::fetch_add, a, 0xff00ff7f, old), 0x00010080u);
	a.boundary = 0x00008000; // two of 16 bits
	EXPECT_EQ(after<uint32_t>(Operation::fetch_add, a, 0x0000ffff, old), 0x01010100u);
}

TEST(FetchAdd, WithABoundaryEverywhereItIsExclusiveOr)
{
	Atomic a = operands<uint64_t>(0xffff0000ffff0000);
	a.boundary = UINT64_MAX;
	uint64_t old = 0;
	EXPECT_EQ(after<uint64_t>(Operation::fetch_add, a, 0xff00ff00ff00ff00, old),
		0x00ffff0000ffff00u);
}

TEST(Result, IsPutWithItsBytesReversedWhereTheFormatHasItSo)
{
	Atomic a = operands<uint32_t>(0);
	a.swap_result = true;
	uint32_t old = 0;
	after<uint32_t>(Operation::fetch_add, a, 0x11223344, old);
	EXPECT_EQ(old, 0x44332211u);
}

TEST(Result, MayLieAnywhere)
{
	alignas(8) uint64_t memory = 0x1122334455667788;
	uint8_t result[16] = {};
	execute_atomic(Operation::fetch_add, operands<uint64_t>(1), &memory, result + 3);
	uint64_t old;
	memcpy(&old, result + 3, sizeof(old));
	EXPECT_EQ(old, 0x1122334455667788u);
	EXPECT_EQ(result[2] | result[11], 0);
}

TYPED_TEST(EverySize, AdditionsOfSeveralThreadsAllCount)
{
	alignas(16) TypeParam memory = 0;
	auto body = [&memory] {
		for (int i = 0; i < 10000; i++) {
			TypeParam old;
			execute_atomic(Operation::fetch_add, operands<TypeParam>(1),
				&memory, &old);
		}
	};
	std::thread one(body), other(body);
	one.join();
	other.join();
	EXPECT_TRUE(memory == 20000);
}

template <class T>
std::vector<T> reduced(Reduce reduce, std::vector<T> target, const std::vector<T> &from)
{
	reduce_into(reduce, target.data(), from.data(), from.size() * sizeof(T));
	return target;
}

TEST(Reduce, AddsElementByElement)
{
	EXPECT_EQ(reduced<uint8_t>(Reduce::add_int8, {250, 1, 0}, {10, 2, 3}),
		(std::vector<uint8_t>{4, 3, 3}));
	EXPECT_EQ(reduced<int16_t>(Reduce::add_int16, {-5, 300}, {3, 300}),
		(std::vector<int16_t>{-2, 600}));
	EXPECT_EQ(reduced<int32_t>(Reduce::add_int32, {-70000, 1}, {70001, -2}),
		(std::vector<int32_t>{1, -1}));
	EXPECT_EQ(reduced<float>(Reduce::add_fp32, {1.5f, -2}, {0.25f, 2}),
		(std::vector<float>{1.75f, 0}));
}

TEST(Reduce, SourceMayLieAnywhere)
{
	uint8_t bytes[9] = {};
	const float value = 2.5f;
	memcpy(bytes + 1, &value, sizeof(value));
	memcpy(bytes + 5, &value, sizeof(value));
	std::vector<float> target = {1, 2};
	reduce_into(Reduce::add_fp32, target.data(), bytes + 1, 8);
	EXPECT_EQ(target, (std::vector<float>{3.5f, 4.5f}));
}

TEST(Reduce, AdditionsOfSeveralThreadsAllCount)
{
	std::vector<float> target(64);
	const std::vector<float> ones(64, 1);
	auto body = [&] {
		for (int i = 0; i < 1000; i++)
			reduce_into(Reduce::add_fp32, target.data(), ones.data(), 256);
	};
	std::thread one(body), other(body);
	one.join();
	other.join();
	EXPECT_EQ(target, std::vector<float>(64, 2000));
}

} // namespace
} // namespace nda::soft
