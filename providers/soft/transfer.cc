// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "providers/soft/transfer.h"

#include <algorithm>
#include <cstring>

namespace nda::soft {
namespace {

template <class T>
bool compare_exchange(T *at, T &expected, T desired)
{
	return __atomic_compare_exchange_n(
		at, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

// The compiler would call a library, which may use a lock that other processes do not
// share.
#if defined(__x86_64__)
__attribute__((target("cx16")))
#endif
bool compare_exchange(Atomic::Word *at, Atomic::Word &expected, Atomic::Word desired)
{
	Atomic::Word seen = __sync_val_compare_and_swap(at, expected, desired);
	bool done = seen == expected;
	expected = seen;
	return done;
}

// Acquires: where nothing is replaced it is all that there is of the atomic.
template <class T>
T load(T *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

Atomic::Word load(Atomic::Word *at)
{
	Atomic::Word seen = 0;
	compare_exchange(at, seen, seen);
	return seen;
}

// Makes *at new_value(of what is there), and returns what was there. new_value gives false
// if it is to be left alone.
template <class T, class NewValue>
T update(T *at, NewValue &&new_value)
{
	T seen = load(at);
	T desired;
	while (new_value(seen, desired) && !compare_exchange(at, seen, desired))
		;
	return seen;
}

template <class T>
T add_within(T x, T y, T boundary)
{
	return static_cast<T>(((x & ~boundary) + (y & ~boundary)) ^ ((x ^ y) & boundary));
}

template <class T>
void execute(Operation op, const Atomic &a, void *target, void *result)
{
	const T operand = static_cast<T>(a.swap_or_add);
	const T compare = static_cast<T>(a.compare);
	const T compare_mask = static_cast<T>(a.compare_mask);
	const T swap_mask = static_cast<T>(a.swap_mask);
	const T boundary = static_cast<T>(a.boundary);
	T *at = static_cast<T *>(target);
	T seen;
	if (op == Operation::fetch_add)
		seen = update(at, [&](T old, T &desired) {
			desired = add_within(old, operand, boundary);
			return true;
		});
	else
		seen = update(at, [&](T old, T &desired) {
			desired =
				static_cast<T>((old & ~swap_mask) | (operand & swap_mask));
			return ((old ^ compare) & compare_mask) == 0;
		});
	uint8_t bytes[sizeof(T)];
	memcpy(bytes, &seen, sizeof(T));
	if (a.swap_result)
		std::reverse(bytes, bytes + sizeof(T));
	memcpy(&seen, bytes, sizeof(T));
	// The result is a word that a core polls for.
	if constexpr (sizeof(T) <= 8) {
		if (reinterpret_cast<uintptr_t>(result) % sizeof(T) == 0) {
			__atomic_store_n(static_cast<T *>(result), seen, __ATOMIC_RELEASE);
			return;
		}
	}
	memcpy(result, &seen, sizeof(T));
}

// Integers wrap: T is unsigned.
template <class T>
void add(void *target, const void *from, uint64_t size)
{
	for (uint64_t i = 0; i < size; i += sizeof(T)) {
		T operand;
		memcpy(&operand, static_cast<const uint8_t *>(from) + i, sizeof(T));
		__atomic_fetch_add(
			reinterpret_cast<T *>(static_cast<uint8_t *>(target) + i), operand,
			__ATOMIC_RELEASE);
	}
}

void add_fp32(void *target, const void *from, uint64_t size)
{
	for (uint64_t i = 0; i < size; i += sizeof(float)) {
		float operand;
		memcpy(&operand, static_cast<const uint8_t *>(from) + i, sizeof(operand));
		auto *at = reinterpret_cast<uint32_t *>(static_cast<uint8_t *>(target) + i);
		update(at, [operand](uint32_t old, uint32_t &desired) {
			float value;
			memcpy(&value, &old, sizeof(value));
			value += operand;
			memcpy(&desired, &value, sizeof(value));
			return true;
		});
	}
}

} // namespace

void execute_atomic(Operation op, const Atomic &a, void *target, void *result)
{
	switch (a.size) {
	case 4:
		execute<uint32_t>(op, a, target, result);
		break;
	case 8:
		execute<uint64_t>(op, a, target, result);
		break;
	case 16:
		execute<Atomic::Word>(op, a, target, result);
		break;
	}
}

uint32_t element_size(Reduce reduce)
{
	switch (reduce) {
	case Reduce::add_int16:
		return 2;
	case Reduce::add_int32:
	case Reduce::add_fp32:
		return 4;
	default:
		return 1;
	}
}

void reduce_into(Reduce reduce, void *target, const void *from, uint64_t size)
{
	switch (reduce) {
	case Reduce::none:
		break;
	case Reduce::add_int8:
		add<uint8_t>(target, from, size);
		break;
	case Reduce::add_int16:
		add<uint16_t>(target, from, size);
		break;
	case Reduce::add_int32:
		add<uint32_t>(target, from, size);
		break;
	case Reduce::add_fp32:
		add_fp32(target, from, size);
		break;
	}
}

} // namespace nda::soft
