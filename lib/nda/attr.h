// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Structures that grow: callers pass sizeof. A smaller one than ours was built with an
// older header and gets defaults (zero) for what it lacks; a larger one is newer, and is
// understood as long as what we do not know is zero.
#ifndef NDA_LIB_ATTR_H
#define NDA_LIB_ATTR_H

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lib/nda/error.h"

namespace nda {

constexpr size_t attr_bytes_max = 4096;

// Copies *attr; nullptr gives all zero. T begins with comp_mask, of which the bits of
// known_mask are understood. object names the caller in the error detail.
template <class T>
int read_attr(T &out, const T *attr, size_t size, uint64_t known_mask, const char *object)
{
	memset(&out, 0, sizeof(out));
	if (!attr)
		return 0;
	if (size < sizeof(out.comp_mask) || size > attr_bytes_max)
		return fail(-EINVAL, "%s: attr_size %zu is not in %zu..%zu", object, size,
			sizeof(out.comp_mask), attr_bytes_max);
	memcpy(&out, attr, size < sizeof(out) ? size : sizeof(out));
	const uint8_t *bytes = reinterpret_cast<const uint8_t *>(attr);
	for (size_t i = sizeof(out); i < size; i++)
		if (bytes[i])
			return fail(-EINVAL,
				"%s: attr byte %zu is set, which this version does not "
				"know",
				object, i);
	if (out.comp_mask & ~known_mask)
		return fail(-EINVAL, "%s: comp_mask has unknown bits 0x%llx", object,
			static_cast<unsigned long long>(out.comp_mask & ~known_mask));
	return 0;
}

// Fills a caller's structure of its own size: what it has no room for is left out, what we
// do not know is zero.
template <class T>
int write_info(T *out, size_t size, const T &info, const char *object)
{
	if (!out)
		return fail(-EINVAL, "%s: info is NULL", object);
	if (size == 0 || size > attr_bytes_max)
		return fail(-EINVAL, "%s: info_size %zu is not in 1..%zu", object, size,
			attr_bytes_max);
	const size_t known = size < sizeof(info) ? size : sizeof(info);
	memcpy(out, &info, known);
	memset(reinterpret_cast<uint8_t *>(out) + known, 0, size - known);
	return 0;
}

} // namespace nda

#endif
