// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Memory that cores, NIC models and other processes share: order comes from acquire and
// release on the word itself.
#ifndef NDA_SOFT_WORDS_H
#define NDA_SOFT_WORDS_H

#include <cstdint>
#include <cstring>

namespace nda::soft {

template <class T>
T load_acquire(const void *from)
{
	return __atomic_load_n(static_cast<const T *>(from), __ATOMIC_ACQUIRE);
}

template <class T>
T load_relaxed(const void *from)
{
	return __atomic_load_n(static_cast<const T *>(from), __ATOMIC_RELAXED);
}

template <class T>
void store_release(void *to, T value)
{
	__atomic_store_n(static_cast<T *>(to), value, __ATOMIC_RELEASE);
}

template <class T>
void store_relaxed(void *to, T value)
{
	__atomic_store_n(static_cast<T *>(to), value, __ATOMIC_RELAXED);
}

// What a NIC's DMA does: a naturally aligned word of 1, 2, 4 or 8 bytes arrives whole and
// in order, longer transfers in any order within themselves. Ranges may overlap.
inline void dma_move(void *to, const void *from, uint64_t size)
{
	uint64_t both = reinterpret_cast<uint64_t>(to) | reinterpret_cast<uint64_t>(from);
	if (size == 8 && both % 8 == 0)
		store_release(to, load_acquire<uint64_t>(from));
	else if (size == 4 && both % 4 == 0)
		store_release(to, load_acquire<uint32_t>(from));
	else if (size == 2 && both % 2 == 0)
		store_release(to, load_acquire<uint16_t>(from));
	else if (size == 1)
		store_release(to, load_acquire<uint8_t>(from));
	else
		memmove(to, from, size);
}

} // namespace nda::soft

#endif
