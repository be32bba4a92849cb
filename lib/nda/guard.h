// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What every extern "C" function goes through: no exception leaves, handles are checked.
#ifndef NDA_LIB_GUARD_H
#define NDA_LIB_GUARD_H

#include <cerrno>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "lib/nda/error.h"

// On each definition of an exported function.
#define NDA_API extern "C" __attribute__((visibility("default")))

namespace nda {

// Runs the body of a function that returns 0 or a negative errno.
template <class Body>
int guard(Body &&body) noexcept
{
	try {
		return body();
	} catch (const std::bad_alloc &) {
		return fail(-ENOMEM, "out of memory");
	} catch (const std::exception &e) {
		return fail(-EIO, "internal error: %s", e.what());
	}
}

// Runs the body of a function that returns a pointer: body(out) sets it and returns 0, or
// returns a negative errno, which goes to errno.
template <class T, class Body>
T *guard_pointer(Body &&body) noexcept
{
	T *out = nullptr;
	const int rc = guard([&] { return body(out); });
	if (rc == 0)
		return out;
	errno = -rc;
	return nullptr;
}

// What a C handle is: a shared reference behind a number that tells the types apart.
// Objects that were made from T hold references of their own, so that handles go in any
// order.
template <class T>
struct Handle {
	explicit Handle(std::shared_ptr<T> object_)
		: magic(T::magic), object(std::move(object_))
	{}
	~Handle() { *static_cast<volatile uint64_t *>(&magic) = 0; }

	uint64_t magic;
	std::shared_ptr<T> object;
};

// The object behind a handle, or nullptr with the detail set: NULL, or a handle of another
// kind. It is an address until it is known to be a handle.
template <class T>
const std::shared_ptr<T> *lookup(const void *address, const char *kind)
{
	if (!address) {
		fail(-EINVAL, "%s is NULL", kind);
		return nullptr;
	}
	const auto *handle = static_cast<const Handle<T> *>(address);
	if (reinterpret_cast<uintptr_t>(address) % alignof(Handle<T>) != 0 ||
		handle->magic != T::magic) {
		fail(-EINVAL, "%p is no %s", address, kind);
		return nullptr;
	}
	return &handle->object;
}

} // namespace nda

#endif
