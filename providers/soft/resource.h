// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Owns a mapping.
#ifndef NDA_SOFT_RESOURCE_H
#define NDA_SOFT_RESOURCE_H

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <sys/mman.h>
#include <utility>

#include "lib/common/fd.h"

namespace nda::soft {

class Mapping {
public:
	Mapping() = default;
	Mapping(Mapping &&other) noexcept
		: base_(std::exchange(other.base_, nullptr)),
		  size_(std::exchange(other.size_, 0))
	{}
	Mapping &operator=(Mapping &&other) noexcept
	{
		std::swap(base_, other.base_);
		std::swap(size_, other.size_);
		return *this;
	}
	~Mapping()
	{
		if (base_)
			munmap(base_, size_);
	}

	// 0 or a negative errno.
	int map(size_t size, int protection, int flags, int fd)
	{
		void *base = mmap(nullptr, size, protection, flags, fd, 0);
		if (base == MAP_FAILED)
			return -errno;
		Mapping fresh;
		fresh.base_ = base;
		fresh.size_ = size;
		*this = std::move(fresh);
		return 0;
	}
	// Addresses that fault whoever touches them.
	int reserve(size_t size)
	{
		return map(
			size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	}

	uint8_t *data() const { return static_cast<uint8_t *>(base_); }
	uint64_t address() const { return reinterpret_cast<uint64_t>(base_); }
	size_t size() const { return size_; }
	explicit operator bool() const { return base_ != nullptr; }

private:
	void *base_ = nullptr;
	size_t size_ = 0;
};

} // namespace nda::soft

#endif
